#include "shape.h"

#include <string.h>

#include "support/family_code.h"
#include "target/devices.h"
#include "target/target.h"

const target oldest_target = {75, TARGET_BASE};

kiln_shape shape_ask(const variant *v, target t, target_range *alike, struct kiln_constraints *noted)
{
    kiln_shape s = {.min_sm = v->family->min_sm, .constraints = noted};
    char name[TARGET_NAME_BYTES];
    family_code_begin("shape", v->id ? v->id : v->family->name, target_print(t, name));
    if (v->family->shape)
        v->family->shape(&s, &(kiln_variant){v, t, alike});
    else
        s.block[0] = 1;
    family_code_end();
    s.constraints = NULL;
    return s;
}

static void check_block(const variant *v, const uint32_t block[3])
{
    for (int i = 0; i < 3; i++) {
        const unsigned most = i == 2 ? MOST_THREADS_Z : MOST_THREADS;
        if (block[i] < 1 || block[i] > most)
            family_error("%s: %u threads along %c of a block; 1 to %u can be there", v->id,
                         (unsigned)block[i], 'x' + i, most);
    }
    if ((uint64_t)block[0] * block[1] * block[2] > MOST_THREADS)
        family_error("%s: a block of %llu threads; the limit is %u", v->id,
                     (unsigned long long)block[0] * block[1] * block[2], (unsigned)MOST_THREADS);
}

kiln_shape shape_for(const variant *v, target t, target_range *alike)
{
    kiln_shape s = shape_ask(v, t, alike, NULL);
    for (int i = 1; i < 3; i++)
        s.block[i] = s.block[i] ? s.block[i] : 1;
    check_block(v, s.block);
    enum { MOST_BLOCKS = 32 }; /* of a multiprocessor: CUDA programming guide, technical specifications */
    if (s.blocks_per_multiprocessor > MOST_BLOCKS)
        family_error("%s: %u blocks per multiprocessor; the limit is %d", v->id,
                     (unsigned)s.blocks_per_multiprocessor, MOST_BLOCKS);
    if (!v->family->shared_bytes)
        s.least_shared_bytes = s.shared_bytes;
    if (s.least_shared_bytes > s.shared_bytes)
        family_error("%s: at least %u bytes of dynamic shared memory, at most %u", v->id,
                     (unsigned)s.least_shared_bytes, (unsigned)s.shared_bytes);
    return s;
}

bool variant_runs_on(const variant *v, target t)
{
    const kiln_shape *s = &v->shape;
    kiln_device device;
    return t.sm >= s->min_sm && (s->max_sm == 0 || t.sm <= s->max_sm) &&
           (!s->is_specific || t.kind != TARGET_BASE) &&
           (!device_find(t.sm, NULL, &device) || s->least_shared_bytes <= device.max_shared_bytes);
}

static bool is_same_but_for_blocks(kiln_shape a, kiln_shape b)
{
    return memcmp(a.block, b.block, sizeof a.block) == 0 && a.shared_bytes == b.shared_bytes &&
           a.least_shared_bytes == b.least_shared_bytes && a.min_sm == b.min_sm && a.max_sm == b.max_sm &&
           a.is_specific == b.is_specific && memcmp(a.numbers, b.numbers, sizeof a.numbers) == 0;
}

void variant_fill_shape(arena *a, variant *v, const target *targets, size_t count)
{
    blocks_step *steps = arena_alloc(a, (count + 1) * sizeof *steps);
    v->blocks = steps;
    v->shape = shape_for(v, oldest_target, NULL);
    for (size_t i = 0; i < count; i++) {
        const target t = targets[i];
        if (!variant_runs_on(v, t))
            continue;
        const kiln_shape s = shape_for(v, t, NULL);
        const uint32_t blocks = s.blocks_per_multiprocessor;
        if (!is_same_but_for_blocks(s, v->shape))
            family_error("%s: the shape is another one for sm_%u; what needs that is a variant of its own",
                         v->id, (unsigned)t.sm);
        if (v->runs_on == 0 || blocks < v->shape.blocks_per_multiprocessor)
            v->shape.blocks_per_multiprocessor = blocks;
        if (v->blocks_count == 0 || steps[v->blocks_count - 1].blocks != blocks)
            steps[v->blocks_count++] = (blocks_step){t.sm, blocks};
        v->runs_on |= UINT32_C(1) << i;
    }
}
