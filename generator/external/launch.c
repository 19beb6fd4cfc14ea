/* Grid, block and shared memory of a kernel of external PTX: what its PTX says, else the configuration, else the caller. */
#include "build.h"

#include <string.h>

#include "expression/expression.h"
#include "support/messages.h"
#include "support/quote.h"
#include "target/target.h"

enum {
    SHARED_BYTES_WITHOUT_OPTIN = 48 * 1024, /* CUDA programming guide: more is asked for per kernel ... */
    MOST_SHARED_BYTES = 227 * 1024          /* ... up to this on 9.0 and 10.x, the most of any */
};

/* ---- what is made ------------------------------------------------------------------------------------------------ */

kiln_arg *external_add_arg(external_build *m, const char *name, const char *type, const char *summary)
{
    kiln_arg *arg = &m->args[m->arg_count++];
    *arg = (kiln_arg){.name = name, .kind = KILN_ARG_VALUE, .type = type, .summary = summary};
    return arg;
}

void external_add_rule(external_build *m, const char *condition, const char *words)
{
    m->rules[m->rule_count++] = (kiln_rule){condition, words};
}

bool external_is_number(const external_build *m, const char *source, uint64_t *number)
{
    if (!source || expression_try(m->arena, m->family, source, false))
        return false;
    return expression_is_constant(
        expression_bind(m->arena, expression_parse(m->arena, m->family, source), NULL), number);
}

void external_cannot_launch(external_build *m, const char *why)
{
    if (m->why_not_launched.length == 0)
        text_add(&m->why_not_launched, why);
}

/* ---- grid, block, shared memory ---------------------------------------------------------------------------------- */

static const char *text_of(external_text t, const char *otherwise)
{
    return t.text ? t.text : otherwise;
}

/* As a whole name: grid_x is not in "my_grid_x". */
static bool has_name(const char *shape, const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    for (const char *c = shape + strcspn(shape, letters); *c; c += strcspn(c, letters)) {
        const size_t length = strspn(c, letters);
        if (strncmp(c, name, length) == 0 && name[length] == '\0')
            return true;
        c += length;
    }
    return false;
}

static bool is_in_shapes(const external_build *m, const char *name)
{
    for (size_t i = 0; i < m->kernel->param_count; i++)
        if (m->args[i].kind != KILN_ARG_VALUE && has_name(m->args[i].shape, name))
            return true;
    return false;
}

/* The caller gives it: the dimensions that shapes name, which say what the kernel does with them; else all three. */
static void leave_grid(external_build *m)
{
    static const char *const names[] = {"grid_x", "grid_y", "grid_z"};
    const bool are_named =
        is_in_shapes(m, "grid_x") || is_in_shapes(m, "grid_y") || is_in_shapes(m, "grid_z");
    for (int i = 0; i < 3; i++) {
        if (are_named && !is_in_shapes(m, names[i]))
            continue;
        const bool is_needed = i == 0 || are_named; /* a shape has no room for what 0 would stand for */
        external_add_arg(m, names[i], "u32", is_needed ? "thread blocks" : "thread blocks; 0 is 1");
        m->family->grid[i] = is_needed ? names[i] : arena_format(m->arena, "max(%s, 1)", names[i]);
        if (is_needed)
            external_add_rule(m, arena_format(m->arena, "%s >= 1", names[i]),
                              arena_format(m->arena, "%s must be at least 1", names[i]));
    }
    if (!are_named)
        external_cannot_launch(m, "the configuration gives no grid, and no shape has grid_x");
}

void external_take_grid(external_build *m)
{
    const external_request *q = m->q;
    if (!q->grid[0].text) {
        leave_grid(m);
        return;
    }
    for (int i = 0; i < 3; i++)
        m->family->grid[i] = text_of(q->grid[i], "1");
}

static void set_block(external_build *m, const uint32_t threads[3])
{
    memcpy(m->kernel->shape.block, threads, sizeof m->kernel->shape.block);
}

/* The caller gives it; a block of 0 is the most that the PTX allows, where it says so. */
static void leave_block(external_build *m, const uint32_t *most)
{
    arena *a = m->arena;
    static const uint32_t none[3] = {0};
    const uint32_t threads = most[0] ? most[0] * most[1] * most[2] : MOST_THREADS;
    set_block(m, none);
    external_add_arg(m, "block_x", "u32",
                     most[0] ? arena_format(a, "threads; 0 is %u x %u x %u", (unsigned)most[0],
                                            (unsigned)most[1], (unsigned)most[2])
                             : "threads");
    external_add_arg(m, "block_y", "u32", "0 is 1");
    external_add_arg(m, "block_z", "u32", "0 is 1");
    for (int i = 0; i < 3; i++) {
        const char *given = i == 0 ? "block_x" : arena_format(a, "max(block_%c, 1)", "xyz"[i]);
        m->kernel->block[i] =
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

void external_take_block(external_build *m)
{
    const external_request *q = m->q;
    const ptx_file_entry *e = q->entry;
    const uint32_t *most = e->maxntid, *asked = q->block;
    const uint64_t threads = (uint64_t)asked[0] * asked[1] * asked[2];
    const char *limit = NULL;
    if (e->reqntid[0] && asked[0] && memcmp(asked, e->reqntid, sizeof e->reqntid) != 0)
        limit = arena_format(m->arena, "%u x %u x %u, its .reqntid", (unsigned)e->reqntid[0],
                             (unsigned)e->reqntid[1], (unsigned)e->reqntid[2]);
    else if (most[0] && threads > most[0] * most[1] * most[2])
        limit = arena_format(m->arena, "at most %u, its .maxntid", (unsigned)(most[0] * most[1] * most[2]));
    else if (threads > MOST_THREADS || asked[2] > MOST_THREADS_Z)
        limit = arena_format(m->arena, "at most %u, %u of them along z", (unsigned)MOST_THREADS,
                             (unsigned)MOST_THREADS_Z);
    if (limit)
        diagnose(m->d, q->block_at, message_entry_block, e->name, limit);
    if (e->reqntid[0])
        set_block(m, e->reqntid);
    else if (asked[0])
        set_block(m, asked);
    else
        leave_block(m, most);
}

/* A number of bytes is its own maximum; else the configuration's, else what every launch may use. */
static uint32_t most_shared_bytes(external_build *m)
{
    const external_request *q = m->q;
    uint64_t bytes = 0;
    const bool is_number = external_is_number(m, q->shared_bytes.text, &bytes);
    const uint32_t said = q->max_shared_bytes ? q->max_shared_bytes : MOST_SHARED_BYTES;
    if (is_number && bytes > said)
        diagnose(m->d, q->shared_bytes.at, message_entry_too_large, (unsigned)said, "shared_bytes",
                 quote_text(m->arena, q->shared_bytes.text));
    if (q->max_shared_bytes > MOST_SHARED_BYTES)
        diagnose(m->d, q->max_shared_at, message_entry_too_large, (unsigned)MOST_SHARED_BYTES,
                 "max_shared_bytes", arena_format(m->arena, "%u", (unsigned)q->max_shared_bytes));
    if (q->max_shared_bytes)
        return q->max_shared_bytes;
    return is_number ? (uint32_t)bytes : SHARED_BYTES_WITHOUT_OPTIN;
}

void external_take_shared(external_build *m)
{
    const external_request *q = m->q;
    if (!q->entry->has_dynamic_shared) {
        if (q->shared_bytes.text || q->max_shared_bytes)
            diagnose(m->d, q->shared_bytes.text ? q->shared_bytes.at : q->at, message_entry_shared,
                     q->entry->name);
        return;
    }
    const uint32_t most = most_shared_bytes(m);
    if (!q->shared_bytes.text) {
        external_add_arg(m, "shared_bytes", "u32",
                         arena_format(m->arena, "of dynamic shared memory, at most %u", (unsigned)most));
        external_cannot_launch(m, "the configuration gives no shared_bytes");
    }
    m->family->shared_bytes = text_of(q->shared_bytes, "shared_bytes");
    m->kernel->shape.shared_bytes = most;
    uint64_t fixed;
    if (external_is_number(m, q->shared_bytes.text, &fixed))
        m->kernel->shape.least_shared_bytes = most;
}
