/* The files of a module: their common properties, and the one that a target runs. */
#include "external.h"

#include <string.h>

#include "support/messages.h"
#include "target/target.h"

const external_module external_none = {0};

const ptx_file *external_file_for(const external_module *m, target t)
{
    const ptx_file *best = NULL;
    for (size_t i = 0; i < m->file_count; i++) {
        const target has = m->files[i]->made_for;
        if (target_serves(has, t) && (!best || target_is_preferred(has, best->made_for)))
            best = m->files[i];
    }
    return best;
}

static bool same_threads(const uint32_t *x, const uint32_t *y)
{
    return memcmp(x, y, 3 * sizeof *x) == 0;
}

/* Some compilers write b32 where others write u32 or f32. */
static bool is_alike(const ptx_file_param *x, const ptx_file_param *y)
{
    const bool may_be_both = x->type[0] == 'b' || y->type[0] == 'b';
    return x->bytes == y->bytes && x->is_array == y->is_array &&
           (may_be_both || (x->type[0] == 'f') == (y->type[0] == 'f'));
}

const char *external_param_difference(arena *a, const ptx_file_entry *x, const ptx_file_entry *y)
{
    if (x->param_count != y->param_count)
        return arena_format(a, "%u parameters, not %u", (unsigned)y->param_count, (unsigned)x->param_count);
    for (size_t i = 0; i < x->param_count; i++)
        if (!is_alike(&x->params[i], &y->params[i]))
            return arena_format(a, "parameter %s, of %u bytes (%s), not %u (%s)", y->params[i].name,
                                (unsigned)y->params[i].bytes, y->params[i].type, (unsigned)x->params[i].bytes,
                                x->params[i].type);
    return NULL;
}

/* A difference between two files' entries of one name; null: none that callers see. */
static const char *difference(arena *a, const ptx_file_entry *x, const ptx_file_entry *y)
{
    const char *differs = external_param_difference(a, x, y);
    if (!differs && (!same_threads(x->reqntid, y->reqntid) || !same_threads(x->maxntid, y->maxntid)))
        return "another number of threads";
    return differs;
}

/* The caller must meet every file's needs. */
static void add_needs(ptx_file_entry *e, const ptx_file_entry *other)
{
    e->has_dynamic_shared |= other->has_dynamic_shared;
    for (size_t i = 0; i < e->param_count; i++)
        if (other->params[i].alignment > e->params[i].alignment)
            e->params[i].alignment = other->params[i].alignment;
}

static bool check_file(arena *a, const ptx_file *first, const ptx_file *other, diagnostics *d)
{
    bool ok = true;
    for (size_t i = 0; i < first->entry_count; i++) {
        ptx_file_entry *e = &first->entries[i];
        const ptx_file_entry *same = ptx_file_find(other, e->name);
        const char *differs = same ? difference(a, e, same) : "no such entry";
        if (differs) {
            diagnose(d, same ? same->at : (place){other->path, 1, 1}, message_ptx_differs, e->name,
                     first->path, differs);
            ok = false;
        } else {
            add_needs(e, same);
        }
    }
    return ok;
}

bool external_check_module(arena *a, const external_module *m, place at, diagnostics *d)
{
    char name[TARGET_NAME_BYTES];
    bool ok = true;
    for (size_t i = 0; i < m->file_count; i++) {
        for (size_t k = 0; k < i; k++)
            if (target_compare(m->files[i]->made_for, m->files[k]->made_for) == 0) {
                diagnose(d, at, message_ptx_same_target, target_print(m->files[i]->made_for, name),
                         m->files[k]->path, m->files[i]->path);
                ok = false;
            }
        ok = (i == 0 || check_file(a, m->files[0], m->files[i], d)) && ok;
    }
    return ok;
}

/* "sm_80, sm_90a" */
static const char *targets_of(arena *a, const external_module *const *modules, size_t count)
{
    char name[TARGET_NAME_BYTES];
    text has = text_new(a);
    for (size_t m = 0; m < count; m++)
        for (size_t i = 0; i < modules[m]->file_count; i++)
            text_printf(&has, "%s%s", has.length > 0 ? ", " : "",
                        target_print(modules[m]->files[i]->made_for, name));
    return has.data;
}

bool external_check_targets(arena *a, const external_module *const *modules, size_t module_count,
                            const target *targets, size_t target_count, place at, diagnostics *d)
{
    char name[TARGET_NAME_BYTES];
    bool ok = true;
    for (size_t i = 0; i < target_count; i++) {
        size_t m = 0;
        while (m < module_count && !external_file_for(modules[m], targets[i]))
            m++;
        if (m < module_count)
            continue;
        diagnose(d, at, message_ptx_without_target, target_print(targets[i], name),
                 targets_of(a, modules, module_count));
        ok = false;
    }
    return ok;
}

const char *external_license(const external_module *m)
{
    return m->license ? m->license : "NOASSERTION";
}
