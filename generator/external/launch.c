/* Grid, block and shared memory of a kernel of external PTX: from its PTX, else the configuration, else the caller. */
#include "build.h"

#include <string.h>

#include "expression/expression.h"
#include "support/messages.h"
#include "support/quote.h"
#include "target/target.h"

enum {
    SHARED_BYTES_WITHOUT_OPTIN = 48 * 1024, /* CUDA programming guide: a kernel opts in to more than this */
    MOST_SHARED_BYTES = 227 * 1024          /* the largest opt-in limit, on 9.0 and 10.x */
};

/* ---- grid, block, shared memory ---------------------------------------------------------------------------------- */

static bool is_in_shapes(const external_build *m, const char *name)
{
    for (size_t i = 0; i < m->param_count; i++)
        if (m->args[i].kind != KILN_ARG_VALUE && external_has_name(m->args[i].shape, name))
            return true;
    return false;
}

/* Leaves the grid to the caller: the dimensions that shapes name, which define their meaning; otherwise all three. */
static void leave_grid(external_build *m)
{
    static const char *const names[] = {"grid_x", "grid_y", "grid_z"};
    const bool are_named =
        is_in_shapes(m, "grid_x") || is_in_shapes(m, "grid_y") || is_in_shapes(m, "grid_z");
    for (int i = 0; i < 3; i++) {
        if (are_named && !is_in_shapes(m, names[i]))
            continue;
        const bool is_needed = i == 0 || are_named; /* a shape cannot hold the value that 0 means */
        external_add_arg(m, names[i], "u32", is_needed ? "thread blocks" : "thread blocks; 0 is 1");
        m->family->grid[i] = is_needed ? names[i] : arena_format(m->arena, "max(%s, 1)", names[i]);
        if (is_needed)
            external_add_rule(m, arena_format(m->arena, "%s >= 1", names[i]),
                              arena_format(m->arena, "%s must be at least 1", names[i]));
    }
    if (!are_named)
        external_cannot_launch(m, "the configuration gives no grid, and no shape has grid_x");
}

/* A variant's launch text, or null: the caller gives it. A caller cannot if there are several variants, since it does
 * not know which one runs. */
static const char *said(external_build *m, size_t i, external_text t, const char *key)
{
    if (!t.text && m->q->variant_count > 1)
        diagnose(m->d, m->q->variants[i].at, message_variant_launch, key);
    return t.text;
}

void external_take_grid(external_build *m)
{
    const external_request *q = m->q;
    const char *texts[EXTERNAL_VARIANTS_MOST];
    bool is_given = false;
    for (size_t i = 0; i < q->variant_count; i++)
        is_given = is_given || q->variants[i].launch.grid[0].text;
    if (!is_given) {
        leave_grid(m);
        return;
    }
    for (int k = 0; k < 3; k++) {
        for (size_t i = 0; i < q->variant_count; i++) {
            const external_text own = q->variants[i].launch.grid[k];
            texts[i] = k == 0 ? said(m, i, own, "grid") : own.text;
            texts[i] = texts[i] ? texts[i] : "1";
        }
        m->family->grid[k] = external_by_variant(m, texts);
    }
}

/* Leaves the block to the caller; 0 means the largest that the PTX allows, if it has a limit. */
static void leave_block(external_build *m, const uint32_t *most)
{
    arena *a = m->arena;
    const uint32_t threads = most[0] ? most[0] * most[1] * most[2] : MOST_THREADS;
    external_add_arg(m, "block_x", "u32",
                     most[0] ? arena_format(a, "threads; 0 is %u x %u x %u", (unsigned)most[0],
                                            (unsigned)most[1], (unsigned)most[2])
                             : "threads");
    external_add_arg(m, "block_y", "u32", "0 is 1");
    external_add_arg(m, "block_z", "u32", "0 is 1");
    for (int i = 0; i < 3; i++) {
        const char *given = i == 0 ? "block_x" : arena_format(a, "max(block_%c, 1)", "xyz"[i]);
        m->variants[0].given_block[i] =
            most[0] ? arena_format(a, "select(block_x == 0, %u, %s)", (unsigned)most[i], given) : given;
    }
    external_add_rule(m,
                      arena_format(a,
                                   "max(block_x, max(block_y, block_z)) <= %u && "
                                   "block_x * max(block_y, 1) * max(block_z, 1) <= %u",
                                   (unsigned)MOST_THREADS, (unsigned)threads),
                      arena_format(a, "block_x * block_y * block_z must be at most %u%s", (unsigned)threads,
                                   most[0] ? ", the kernel's .maxntid" : ""));
    external_add_rule(m, arena_format(a, "block_z <= %u", (unsigned)MOST_THREADS_Z),
                      arena_format(a, "block_z must be at most %u", (unsigned)MOST_THREADS_Z));
    if (!most[0])
        external_add_rule(m, "block_x >= 1", "block_x must be at least 1");
    external_cannot_launch(m, "the configuration gives no block");
}

/* A number from the configuration; 0: not given, or wrong, after a diagnostic. */
static uint32_t count_of(external_build *m, size_t i, external_text t, const char *key)
{
    enum { LARGEST_COUNT = 999999 };
    uint64_t number = 0;
    if (!t.text || (external_is_number(m, i, t.text, &number) && number > 0 && number <= LARGEST_COUNT))
        return (uint32_t)number;
    diagnose(m->d, t.at, message_entry_count, LARGEST_COUNT, key, quote_text(m->arena, t.text),
             external_with(m, i, t.text));
    return 0;
}

/* "256 threads", "16 x 16 x 1 threads" */
static const char *block_text(arena *a, const uint32_t block[3])
{
    if (block[1] == 1 && block[2] == 1)
        return arena_format(a, "%u threads", (unsigned)block[0]);
    return arena_format(a, "%u x %u x %u threads", (unsigned)block[0], (unsigned)block[1],
                        (unsigned)block[2]);
}

static void take_block(external_build *m, size_t i)
{
    const external_variant *own = &m->q->variants[i];
    const ptx_file_entry *e = own->entry;
    const uint32_t *most = e->maxntid;
    uint32_t asked[3], *block = m->variants[i].shape.block;
    for (int k = 0; k < 3; k++)
        asked[k] = k > 0 && !own->launch.block[k].text ? 1 : count_of(m, i, own->launch.block[k], "block");
    const uint64_t threads = (uint64_t)asked[0] * asked[1] * asked[2];
    const char *limit = NULL, *says = "";
    if (e->reqntid[0] && asked[0] && memcmp(asked, e->reqntid, sizeof e->reqntid) != 0)
        limit = block_text(m->arena, e->reqntid), says = ", as its .reqntid says";
    else if (most[0] && threads > most[0] * most[1] * most[2])
        limit = arena_format(m->arena, "at most %u threads", (unsigned)(most[0] * most[1] * most[2])),
        says = ", as its .maxntid says";
    else if (threads > MOST_THREADS)
        limit = arena_format(m->arena, "at most %u threads", (unsigned)MOST_THREADS);
    else if (asked[2] > MOST_THREADS_Z)
        limit = arena_format(m->arena, "at most %u threads along z", (unsigned)MOST_THREADS_Z);
    if (limit)
        diagnose(m->d, own->launch.block_at, message_entry_block, limit, e->name, says,
                 block_text(m->arena, asked));
    if (e->reqntid[0])
        memcpy(block, e->reqntid, sizeof e->reqntid);
    else if (said(m, i, own->launch.block[0], "block"))
        memcpy(block, asked, sizeof asked);
    else
        leave_block(m, most);
}

/* A constant is its own maximum; else the configuration's, else the limit of every launch. */
static uint32_t most_shared_bytes(external_build *m, size_t i)
{
    const external_launch *own = &m->q->variants[i].launch;
    uint64_t bytes = 0;
    const bool is_number = external_is_number(m, i, own->shared_bytes.text, &bytes);
    const uint32_t asked = count_of(m, i, own->max_shared_bytes, "max_shared_bytes");
    const uint32_t most = asked ? asked : MOST_SHARED_BYTES;
    if (is_number && bytes > most)
        diagnose(m->d, own->shared_bytes.at, message_entry_too_large, (unsigned)most, "shared_bytes",
                 quote_text(m->arena, own->shared_bytes.text));
    if (asked > MOST_SHARED_BYTES)
        diagnose(m->d, own->max_shared_bytes.at, message_entry_too_large, (unsigned)MOST_SHARED_BYTES,
                 "max_shared_bytes", arena_format(m->arena, "%u", (unsigned)asked));
    if (asked)
        return asked;
    return is_number ? (uint32_t)bytes : SHARED_BYTES_WITHOUT_OPTIN;
}

/* The expression for a variant's bytes. */
static const char *take_shared(external_build *m, size_t i)
{
    const external_variant *own = &m->q->variants[i];
    const external_text bytes = own->launch.shared_bytes;
    kiln_shape *shape = &m->variants[i].shape;
    if (!own->entry->has_dynamic_shared) {
        if (bytes.text || own->launch.max_shared_bytes.text)
            diagnose(m->d, bytes.text ? bytes.at : own->at, message_entry_shared, own->entry->name);
        return "0";
    }
    const uint32_t most = most_shared_bytes(m, i);
    uint64_t fixed;
    shape->shared_bytes = most;
    if (external_is_number(m, i, bytes.text, &fixed))
        shape->least_shared_bytes = most;
    if (said(m, i, bytes, "shared_bytes"))
        return bytes.text;
    external_add_arg(m, "shared_bytes", "u32",
                     arena_format(m->arena, "of dynamic shared memory, at most %u", (unsigned)most));
    external_cannot_launch(m, "the configuration gives no shared_bytes");
    return "shared_bytes";
}

/* A mistake that all variants share is reported for the first. */
void external_take_block(external_build *m)
{
    const int before = m->d->count;
    for (size_t i = 0; i < m->q->variant_count && m->d->count == before; i++)
        take_block(m, i);
}

void external_take_shared(external_build *m)
{
    const int before = m->d->count;
    const char *texts[EXTERNAL_VARIANTS_MOST];
    for (size_t i = 0; i < m->q->variant_count && m->d->count == before; i++)
        texts[i] = take_shared(m, i);
    if (m->d->count == before)
        m->family->shared_bytes = external_by_variant(m, texts);
}
