#include "bake.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <unistd.h>

#include "plan/variants.h"

enum { MOST_JOBS = 64 };

/* Threads take variants in order, one at a time. */
typedef struct bakery {
    const plan *plan;
    spool *spool;
    baked *made;
    atomic_size_t next;
    atomic_bool has_failed;
} bakery;

typedef struct baker {
    bakery *all;
    arena *arena, *scratch;
    pthread_t thread;
} baker;

static void bake_one(const baker *b, size_t i)
{
    const bakery *all = b->all;
    const variant *v = all->plan->variants[i];
    baked *made = &all->made[i];
    if (plan_image_owner(all->plan, i, NULL) == i)
        made->count = variant_images(b->arena, b->scratch, all->spool, all->plan, v, &made->images);
}

/* Does not report a family's mistake, since another thread may be at an earlier variant that fails too. */
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
        bake_one(b, i);
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

/* Bakes in order, so that the first failure ends the generator. */
static void bake_in_order(const baker *b)
{
    for (size_t i = 0; i < b->all->plan->variant_count; i++)
        bake_one(b, i);
}

baked *bake_all(arena *a, const plan *p, spool *s)
{
    baker bakers[MOST_JOBS];
    const size_t jobs = job_count(p);
    bakery all = {.plan = p, .spool = s, .made = arena_alloc(a, p->variant_count * sizeof *all.made)};
    size_t helpers = 0;
    baker self = {.all = &all, .arena = a, .scratch = arena_new()};
    for (; helpers + 1 < jobs; helpers++) {
        baker *b = &bakers[helpers];
        *b = (baker){.all = &all, .arena = arena_new(), .scratch = arena_new()};
        if (pthread_create(&b->thread, NULL, bake_some, b) != 0) {
            arena_free(b->arena);
            arena_free(b->scratch);
            break;
        }
    }
    bake_some(&self);
    for (size_t i = 0; i < helpers; i++) {
        pthread_join(bakers[i].thread, NULL);
        arena_adopt(a, bakers[i].arena);
        arena_free(bakers[i].scratch);
    }
    if (atomic_load(&all.has_failed))
        bake_in_order(&self);
    arena_free(self.scratch);
    return all.made;
}
