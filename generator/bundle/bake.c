#include "bake.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MOST_JOBS = 64 };

/* Variants are taken in their order, each by the next that is free. */
typedef struct bakery {
    const plan *plan;
    baked *made;
    atomic_size_t next;
    atomic_bool has_failed;
} bakery;

typedef struct baker {
    bakery *all;
    arena *arena;
    pthread_t thread;
} baker;

/* What a family does wrong is not said here, since another thread may be at an earlier variant that fails too. */
static void *bake_some(void *argument)
{
    const baker *b = argument;
    bakery *all = b->all;
    jmp_buf failure;
    if (setjmp(failure) != 0) {
        atomic_store(&all->has_failed, true);
        family_errors_jump_to(NULL);
        return NULL;
    }
    family_errors_jump_to(&failure);
    while (!atomic_load(&all->has_failed)) {
        const size_t i = atomic_fetch_add(&all->next, 1);
        if (i >= all->plan->variant_count)
            break;
        if (!all->plan->variants[i]->external)
            all->made[i].count =
                bake_images(b->arena, all->plan, all->plan->variants[i], &all->made[i].images);
    }
    family_errors_jump_to(NULL);
    return NULL;
}

static size_t job_count(const plan *p)
{
    const long processors = p->jobs ? (long)p->jobs : sysconf(_SC_NPROCESSORS_ONLN);
    const size_t wanted = processors < 1 ? 1 : processors > MOST_JOBS ? MOST_JOBS : (size_t)processors;
    return wanted < p->variant_count ? wanted : p->variant_count;
}

/* One after another, so that the first that fails is the one that ends the generator. */
static void bake_in_order(arena *a, const plan *p)
{
    image *images;
    for (size_t i = 0; i < p->variant_count; i++)
        if (!p->variants[i]->external)
            bake_images(a, p, p->variants[i], &images);
}

baked *bake_all(arena *a, const plan *p)
{
    baker bakers[MOST_JOBS];
    const size_t jobs = job_count(p);
    bakery all = {.plan = p, .made = arena_alloc(a, p->variant_count * sizeof *all.made)};
    size_t helpers = 0;
    for (; helpers + 1 < jobs; helpers++) {
        baker *b = &bakers[helpers];
        *b = (baker){.all = &all, .arena = arena_new()};
        if (pthread_create(&b->thread, NULL, bake_some, b) != 0) {
            arena_free(b->arena);
            break;
        }
    }
    bake_some(&(baker){.all = &all, .arena = a});
    for (size_t i = 0; i < helpers; i++) {
        pthread_join(bakers[i].thread, NULL);
        arena_adopt(a, bakers[i].arena);
    }
    if (atomic_load(&all.has_failed))
        bake_in_order(a, p);
    return all.made;
}
