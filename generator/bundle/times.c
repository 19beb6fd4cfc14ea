#include "times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cubins.h"
#include "target/target.h"

/* Slowest first; equal ones by id and target. */
static int compare_times(const void *x, const void *y)
{
    const image_time *a = x, *b = y;
    if (a->microseconds != b->microseconds)
        return a->microseconds < b->microseconds ? 1 : -1;
    const int order = strcmp(a->variant, b->variant);
    return order ? order : target_compare(a->target, b->target);
}

static size_t list_images(arena *a, const bundle_model *m, assembly **work)
{
    size_t count = 0;
    for (size_t i = 0; i < m->variant_count; i++)
        count += m->variants[i].ptx_count;
    *work = arena_alloc(a, (count + 1) * sizeof **work);
    count = 0;
    for (size_t i = 0; i < m->variant_count; i++) {
        const bundle_variant *v = &m->variants[i];
        for (size_t k = 0; v->owner == v && k < v->ptx_count; k++)
            (*work)[count++] =
                (assembly){.variant = v->variant, .ptx = &v->ptx[k], .target = v->ptx[k].made_for};
    }
    return count;
}

bool times_measure(arena *a, const bundle_model *m, image_times *times, diagnostics *d)
{
    assembler s;
    assembly *work;
    const size_t count = list_images(a, m, &work);
    if (!assembler_open(&s, a, m->spool, "times", (place){.file = "--times"}, d))
        return false;
    s.at_once = m->plan->jobs ? m->plan->jobs : 1;
    s.is_timed = true;
    const bool ok = assemble(&s, a, work, count, d);
    *times = (image_times){s.version, arena_alloc(a, (count + 1) * sizeof *times->rows), count};
    for (size_t i = 0; i < count; i++)
        times->rows[i] = (image_time){work[i].variant->id, work[i].target, work[i].microseconds};
    qsort(times->rows, count, sizeof *times->rows, compare_times);
    assembler_close(&s);
    return ok;
}

void times_print(const image_times *times, bool only_rows)
{
    uint64_t sum = 0;
    char name[TARGET_NAME_BYTES];
    printf("variant\ttarget\tmilliseconds\n");
    for (size_t i = 0; i < times->count; i++) {
        const image_time *row = &times->rows[i];
        printf("%s\t%s\t%.1f\n", row->variant, target_print(row->target, name),
               (double)row->microseconds / 1000);
        sum += row->microseconds;
    }
    if (!only_rows)
        printf("total of %zu image%s: %.1f ms, ptxas %s\n", times->count, times->count == 1 ? "" : "s",
               (double)sum / 1000, times->ptxas);
}
