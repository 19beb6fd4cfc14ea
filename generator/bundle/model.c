/* The bundle as its writers need it: every name, number and text is decided. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/driver.h>
#include <kiln/zstd.h>

#include "bake.h"
#include "c_text.h"
#include "cubins.h"
#include "extents.h"
#include "family/dense.h"
#include "plan/variants.h"
#include "pointers.h"
#include "sizes.h"
#include "support/messages.h"
#include "support/names.h"
#include "support/quote.h"
#include "support/words.h"
#include "target/target.h"

/* ---- small helpers ----------------------------------------------------------------------------------------------- */

const expression *bind_text(arena *a, const kiln_family *family, const char *expression_text,
                            const variant *v)
{
    return expression_bind(a, expression_parse(a, family, expression_text), v);
}

bool family_has_value(const bundle_family *f, size_t param_index, const char *value)
{
    for (size_t i = 0; i < f->variant_count; i++)
        if (strcmp(f->variants[i]->variant->values[param_index].text, value) == 0)
            return true;
    return false;
}

size_t family_values(arena *a, const bundle_family *f, size_t param_index, const char ***values)
{
    *values = arena_alloc(a, (f->variant_count + 1) * sizeof **values);
    size_t count = 0;
    for (size_t i = 0; i < f->variant_count; i++) {
        const char *value = f->variants[i]->variant->values[param_index].text;
        size_t k = 0;
        while (k < count && strcmp((*values)[k], value) != 0)
            k++;
        if (k == count)
            (*values)[count++] = value;
    }
    return count;
}

bool family_asks_rule(arena *a, const bundle_family *f, const kiln_rule *rule)
{
    uint64_t value;
    bool is_used[KILN_MAX_ARGS] = {false};
    const expression *condition = bind_text(a, f->family, rule->condition, f->common);
    if (expression_is_constant(condition, &value) && value)
        return false;
    expression_mark_args(condition, is_used);
    for (size_t i = 0; i < f->field_count; i++)
        if (f->fields[i].is_ignored && is_used[f->fields[i].arg - f->family->args])
            return false;
    return true;
}

bool needs_workspace(const bundle_family *f)
{
    for (size_t i = 0; i < f->variant_count; i++)
        if (!variant_has_arg(f->variants[i]->variant, arg_find(f->family->args, f->workspace->arg)))
            return false;
    return true;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- variants ---------------------------------------------------------------------------------------------------- */

static void find_shared_bytes(bundle_variant *made)
{
    made->max_shared_bytes = made->variant->shape.shared_bytes;
    made->min_shared_bytes = made->variant->shape.least_shared_bytes;
    for (size_t i = 0; i < made->image_count; i++)
        if (made->images[i].static_shared_bytes > made->static_shared_bytes)
            made->static_shared_bytes = made->images[i].static_shared_bytes;
}

/* Older devices have no programmatic launches, so their images need not wait. */
static bool are_dependent(const image *images, size_t count)
{
    enum { FIRST_SM = 90 };
    size_t newer = 0, dependent = 0;
    for (size_t i = 0; i < count; i++)
        if (images[i].made_for.sm >= FIRST_SM) {
            newer++;
            dependent += images[i].is_dependent;
        }
    return newer > 0 && dependent == newer;
}

/* Whether a member of kiln_time is 0 for the variant in every call. */
static bool is_always_zero(const variant *v, const char *source)
{
    arena *scratch = arena_new();
    uint64_t value;
    const bool is_zero =
        !source || (expression_is_constant(bind_text(scratch, v->family, source, v), &value) && value == 0);
    arena_free(scratch);
    return is_zero;
}

/* Checks that the family's kiln_time fits the loops that its kernel marks. */
static void check_time(const variant *v, const ptx_costs *costs)
{
    const kiln_time *time = &v->family->time;
    const kiln_code code = code_of(*costs, &v->shape);
    if (!time->length != !costs->loop.issues)
        family_error("%s: %s", v->id,
                     time->length ? "time has a length, but the kernel has no ptx_main_loop"
                                  : "the kernel has a ptx_main_loop, but time has no length");
    if (!time->side_trips && costs->side.issues)
        family_error("%s: the kernel has a ptx_side_loop, but time has no side_trips", v->id);
    if (!costs->side.issues && !is_always_zero(v, time->side_trips))
        family_error("%s: time has side_trips, but the kernel has no ptx_side_loop", v->id);
    if (time->length && v->shape.trip == 0)
        family_error("%s: time has a length, but the shape has no trip", v->id);
    if (code.warps % code.loop_warps != 0)
        family_error("%s: %u warps share a loop, which does not divide the %u warps", v->id,
                     (unsigned)code.loop_warps, (unsigned)code.warps);
}

static void take_images(baked images, bundle_variant *made)
{
    const variant *v = made->variant;
    made->ptx = made->images = images.images;
    made->ptx_count = made->image_count = images.count;
    if (made->image_count == 0)
        internal_error("%s runs on none of the bundle's targets", v->id);
    made->costs = made->images[made->image_count - 1].costs;
    check_time(v, &made->costs);
    memcpy(made->block, v->shape.block, sizeof made->block);
    find_shared_bytes(made);
    made->is_dependent = are_dependent(made->images, made->image_count);
}

/* Adds cubins after its PTX images, or in their place. False after a diagnostic. */
static bool add_own_cubins(arena *a, const assembler *s, const plan *p, bundle_variant *v, diagnostics *d)
{
    arena *scratch = arena_new();
    image cubins[TARGETS_MOST];
    const size_t kept = p->has_ptx ? v->ptx_count : 0;
    const size_t count = assemble_variant(s, scratch, p, v->variant, v->ptx, v->ptx_count, cubins, d);
    v->images = arena_alloc(a, (kept + count) * sizeof *v->images);
    v->image_count = kept + count;
    memcpy(v->images, v->ptx, kept * sizeof *v->images);
    for (size_t i = 0; i < count; i++) {
        image_spool(scratch, s->spool, p, v->variant, &cubins[i]);
        v->images[kept + i] = cubins[i];
    }
    arena_free(scratch);
    return count > 0;
}

static bool add_cubins(arena *a, bundle_model *m, diagnostics *d)
{
    assembler s;
    if (!assembler_open(&s, a, m->spool, "cubin", m->plan->images_at, d))
        return false;
    bool ok = true;
    for (size_t i = 0; i < m->variant_count; i++) {
        bundle_variant *v = &m->variants[i];
        if (v->owner == v)
            ok = add_own_cubins(a, &s, m->plan, v, d) && ok;
        v->images = v->owner->images;
        v->image_count = v->owner->image_count;
    }
    m->ptxas = s.version;
    m->cubin_driver = s.min_driver;
    assembler_close(&s);
    return ok;
}

/* ---- families ---------------------------------------------------------------------------------------------------- */

static const struct scalar {
    const char *type, *c_type;
    uint32_t bytes;
} scalars[] = {
    {"u8", "uint8_t", 1}, {"u16", "uint16_t", 2}, {"u32", "uint32_t", 4},     {"u64", "uint64_t", 8},
    {"i8", "int8_t", 1},  {"i16", "int16_t", 2},  {"i32", "int32_t", 4},      {"i64", "int64_t", 8},
    {"s8", "int8_t", 1},  {"s16", "int16_t", 2},  {"s32", "int32_t", 4},      {"s64", "int64_t", 8},
    {"f32", "float", 4},  {"f64", "double", 8},   {"b8", "unsigned char", 1}, {"address", "CUdeviceptr", 8},
};

/* A scalar whose type a parameter names is a double in the struct; the launcher narrows it. */
static struct scalar scalar_of(const kiln_family *family, const kiln_arg *arg)
{
    if (arg->kind != KILN_ARG_VALUE)
        return (struct scalar){arg->type, "CUdeviceptr", 8};
    const char *type = arg->type[0] == '$' ? "f64" : arg->type;
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
        if (strcmp(scalars[i].type, type) == 0)
            return scalars[i];
    family_error("family %s: a scalar argument cannot be %s, as %s is", family->name, arg->type, arg->name);
}

static uint32_t round_up(uint32_t bytes, uint32_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

/* Appends a field. */
static void add_field(bundle_family *f, bundle_field field, uint32_t bytes)
{
    if (field.alignment == 0)
        field.alignment = bytes;
    field.offset = round_up(f->args_bytes, field.alignment);
    f->args_bytes = field.offset + bytes * (field.elements ? field.elements : 1);
    f->fields[f->field_count++] = field;
}

/* 0 means the bundle's only value, otherwise the family's default if the bundle has it. */
static const char *value_when_zero(arena *a, const bundle_family *f, size_t param_index)
{
    const char **values;
    if (family_values(a, f, param_index, &values) == 1)
        return values[0];
    const char *value = f->family->params[param_index].default_value;
    return family_has_value(f, param_index, value) ? value : NULL;
}

/* A value with a shape is an array of bytes: a struct that an external kernel takes by value. */
static void add_arg_field(arena *a, bundle_family *f, const kiln_arg *arg)
{
    const struct scalar scalar = scalar_of(f->family, arg);
    const size_t group = arg_group_length(f->family, arg);
    bundle_field field = {
        .name = arg->name, .member = arg->name, .group_length = group, .c_type = scalar.c_type, .arg = arg};
    if (group > 0)
        field.member = arena_format(a, "%.*s.%s", (int)group, arg->name, arg->name + group + 1);
    if (arg->kind == KILN_ARG_VALUE && arg->shape) {
        field.elements = (uint32_t)strtoul(arg->shape, NULL, 10);
        field.alignment = arg->alignment;
    }
    const arg_use use = arg_use_of(f->common->alike, arg);
    field.is_read = use == ARG_READ;
    field.is_ignored = use == ARG_IGNORED;
    add_field(f, field, scalar.bytes);
}

/* A group's struct begins and ends at its members' alignment. */
static void align_group(bundle_family *f, const kiln_arg *member)
{
    const size_t group = arg_group_length(f->family, member);
    for (const kiln_arg *arg = f->family->args; group > 0 && arg->name; arg++)
        if (strncmp(arg->name, member->name, group + 1) == 0)
            f->args_bytes = round_up(f->args_bytes, scalar_of(f->family, arg).bytes);
}

static void make_fields(arena *a, bundle_family *f)
{
    const kiln_param *params = f->family->params;
    size_t arg_count = 0;
    while (f->family->args[arg_count].name)
        arg_count++;
    f->fields = arena_alloc(a, (arg_count + KILN_MAX_PARAMS) * sizeof *f->fields);
    for (const kiln_arg *arg = f->family->args; arg->name; arg++) {
        const size_t group = arg_group_length(f->family, arg);
        if (arg == f->family->args || strncmp(arg[-1].name, arg->name, group + 1) != 0)
            align_group(f, arg);
        add_arg_field(a, f, arg);
        if (!arg[1].name || strncmp(arg[1].name, arg->name, group + 1) != 0)
            align_group(f, arg);
    }
    for (size_t i = 0; params && params[i].name; i++) {
        if (params[i].role != KILN_ROLE_CONTRACT)
            continue;
        bundle_field field = {.name = params[i].name,
                              .member = params[i].name,
                              .c_type = "uint32_t",
                              .param = &params[i],
                              .param_index = i,
                              .is_read = true};
        if (params[i].type != KILN_PARAM_BOOL)
            field.when_zero = value_when_zero(a, f, i);
        add_field(f, field, 4);
    }
    uint32_t widest = 1;
    for (size_t i = 0; i < f->field_count; i++)
        widest = f->fields[i].alignment > widest ? f->fields[i].alignment : widest;
    f->args_bytes = round_up(f->args_bytes, widest);
}

bool call_can_serve(const variant *v, const kiln_call *call)
{
    for (const kiln_arg *arg = v->family->args; arg->name; arg++)
        if (arg->kind != KILN_ARG_VALUE && arg->kind != KILN_ARG_INOUT && !arg_may_be_null(arg) &&
            variant_has_arg(v, arg) && !arg_find(call->args, arg->name))
            return false;
    return true;
}

static bool is_served(const bundle_family *f, const kiln_call *call)
{
    for (size_t i = 0; i < f->variant_count; i++)
        if (call_can_serve(f->variants[i]->variant, call))
            return true;
    return false;
}

/* Makes a family of each special call, with the call's arguments. */
static void make_calls(arena *a, bundle_family *f)
{
    const kiln_call *calls = f->family->calls;
    size_t count = 0;
    while (calls && calls[count].name)
        count++;
    f->calls = arena_alloc(a, count * sizeof *f->calls);
    for (size_t i = 0; i < count; i++) {
        if (!is_served(f, &calls[i]))
            continue;
        kiln_family *family = arena_copy(a, f->family, sizeof *family);
        family->args = calls[i].args;
        family->workspace = NULL;
        family->dense = NULL;
        const char *function = arena_format(a, "%s_%s", f->function, calls[i].name);
        bundle_family *call = &f->calls[f->call_count++];
        *call = (bundle_family){.family = family,
                                .function = function,
                                .args_struct = arena_format(a, "%s_args", function),
                                .enum_prefix = f->enum_prefix,
                                .variants = f->variants,
                                .variant_count = f->variant_count,
                                .common = f->common,
                                .call = &calls[i]};
        make_fields(a, call);
    }
}

static bool reads_strides(arena *a, const bundle_family *f)
{
    for (const kiln_dense *row = f->family->dense; row && row->args; row++) {
        const dense_stride *strides;
        const size_t count =
            dense_applies(a, f->family, row, f->common) ? dense_strides(a, f->family, row, &strides) : 0;
        for (size_t i = 0; i < count; i++)
            if (variants_have_arg(f->common->alike, arg_find(f->family->args, strides[i].arg)))
                return true;
    }
    return false;
}

/* A variant that stands for all of the family's variants. */
static const variant *common_of(arena *a, const bundle_family *f)
{
    variant *common = arena_alloc(a, sizeof *common);
    const variant **alike = arena_alloc(a, (f->variant_count + 1) * sizeof *alike);
    for (size_t i = 0; i < f->variant_count; i++)
        alike[i] = f->variants[i]->variant;
    alike[f->variant_count] = NULL;
    *common = (variant){.family = f->family, .alike = alike};
    return common;
}

static bundle_family *family_of(arena *a, bundle_model *m, name_table *names, const kiln_family *family)
{
    size_t i = names_add(a, names, family->name, m->family_count);
    if (i == NAME_NONE)
        i = m->family_count++;
    m->families[i].family = family;
    return &m->families[i];
}

/* A family may have the size only in variants that take a workspace. */
static bool has_workspace_size(const bundle_family *f)
{
    const kiln_workspace *w = f->family->workspace;
    return w && variants_have_arg(f->common->alike, arg_find(f->family->args, w->size));
}

static void make_families(arena *a, bundle_model *m)
{
    name_table names = {0};
    m->families = arena_alloc(a, m->variant_count * sizeof *m->families);
    for (size_t i = 0; i < m->variant_count; i++) {
        bundle_family *f = family_of(a, m, &names, m->variants[i].variant->family);
        m->variants[i].family = f;
        f->variant_count++;
    }
    for (size_t i = 0; i < m->family_count; i++) {
        bundle_family *f = &m->families[i];
        f->variants = arena_alloc(a, f->variant_count * sizeof *f->variants);
        f->variant_count = 0;
        f->function = arena_format(a, "%s_%s", m->name, f->family->name);
        f->args_struct = arena_format(a, "%s_args", f->function);
        f->enum_prefix = arena_format(a, "%s_", upper_case(a, f->function));
    }
    for (size_t i = 0; i < m->variant_count; i++) {
        bundle_family *f = &m->families[m->variants[i].family - m->families];
        f->variants[f->variant_count++] = &m->variants[i];
    }
    for (size_t i = 0; i < m->family_count; i++) {
        m->families[i].common = common_of(a, &m->families[i]);
        make_fields(a, &m->families[i]);
        m->families[i].has_strides = reads_strides(a, &m->families[i]);
        make_calls(a, &m->families[i]);
        pointers_make(a, &m->families[i]);
        extents_make(a, &m->families[i]);
        sizes_make(a, &m->families[i]);
        if (strcmp(m->families[i].function, m->families[i].variants[0]->function) != 0 &&
            has_workspace_size(&m->families[i]))
            m->families[i].workspace = m->families[i].family->workspace;
    }
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

/* Families alternate. Shard i of n has every n-th slot, so that a new kernel in one shard changes no other. */
static void make_slots(bundle_model *m)
{
    const uint32_t shards = m->plan->shards ? m->plan->shards : 1;
    uint32_t used[SHARDS_MOST] = {0};
    for (size_t i = 0; i < m->family_count; i++)
        m->families[i].shard = (uint32_t)i % shards;
    for (size_t i = 0; i < m->family_count; i++) /* kernels are in the file of their module */
        m->families[i].shard = m->families[i].variants[0]->owner->family->shard;
    for (size_t i = 0; i < m->variant_count; i++) {
        const uint32_t shard = m->variants[i].family->shard;
        const uint32_t slot = shard + shards * used[shard]++;
        m->variants[i].slot = slot;
        m->slot_count = slot >= m->slot_count ? slot + 1 : m->slot_count;
    }
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* A name in the generated header, without the bundle's prefix, or in the generated source. */
typedef struct taken_name {
    const char *name;
    const variant *of; /* variant with this name; null: a name of every bundle */
} taken_name;

typedef struct taken_names {
    taken_name *items;
    size_t count, capacity;
} taken_names;

static void add_name(arena *a, taken_names *all, const char *name, const char *suffix, const variant *of)
{
    *(taken_name *)arena_push(a, (void **)&all->items, &all->count, &all->capacity, sizeof *all->items) =
        (taken_name){arena_format(a, "%s%s", name, suffix), of};
}

static void add_family_names(arena *a, taken_names *all, const bundle_family *f, size_t prefix)
{
    const variant *first = f->variants[0]->variant;
    add_name(a, all, f->args_struct + prefix, "", first);
    if (strcmp(f->function, f->variants[0]->function) != 0) {
        add_name(a, all, f->function + prefix, "", first);
        add_name(a, all, f->function + prefix, "_pick", first);
        add_name(a, all, f->function + prefix, "_candidates", first);
        if (f->workspace) {
            add_name(a, all, f->function + prefix, "_workspace", first);
            add_name(a, all, f->function + prefix, "_workspace_max", first);
        }
    }
    if (f->has_strides)
        add_name(a, all, f->function + prefix, "_set_contiguous", first);
    for (size_t i = 0; i < f->call_count; i++) {
        add_name(a, all, f->calls[i].function + prefix, "", first);
        add_name(a, all, f->calls[i].args_struct + prefix, "", first);
    }
    for (size_t i = 0; i < f->variant_count; i++) {
        add_name(a, all, f->variants[i]->function + prefix, "", f->variants[i]->variant);
        add_name(a, all, f->variants[i]->function + prefix, "_kernel", f->variants[i]->variant);
    }
}

static int compare_names(const void *x, const void *y)
{
    return strcmp(((const taken_name *)x)->name, ((const taken_name *)y)->name);
}

/* Only names that a user chose can be wrong; others are the families' authors'. */
static bool report_name(const bundle_model *m, const taken_name *x, const taken_name *y, diagnostics *d)
{
    const variant *chosen = y->of && y->of->kind == VARIANT_EXTERNAL ? y->of : x->of;
    const char *first = x->of ? x->of->id : "every bundle", *second = y->of ? y->of->id : "every bundle";
    if (!chosen || chosen->kind != VARIANT_EXTERNAL)
        family_error("%s_%s is a name of %s and of %s", m->name, x->name, first, second);
    diagnose(d, chosen->at, message_name_taken, m->name, x->name, first, second);
    return false;
}

/* File-local names in write_source.c and its like; names of families and kernels can collide through a user's kernel
 * name: "check" and "id" both have a check_id. */
static void add_static_names(arena *a, taken_names *all, const bundle_model *m)
{
    static const char *const before[] = {"check_", "choose_", "consider_", "find_",  "call_",
                                         "run_",   "launch_", "miss_",     "unread_"};
    static const char *const behind[] = {"_name", "_id", "_entry", "_images", "_module", "_pointers"};
    const variant *last = NULL;
    for (size_t i = 0; i < m->variant_count; i++) {
        const variant *v = m->variants[i].variant;
        const bool is_first = !last || last->family != v->family;
        const char *const names[] = {v->entry, v->family->name};
        last = v;
        if (v->kind != VARIANT_EXTERNAL)
            continue;
        for (int n = 0; n < (is_first && strcmp(names[0], names[1]) != 0 ? 2 : 1); n++) {
            for (size_t k = 0; k < sizeof before / sizeof *before; k++)
                add_name(a, all, before[k], names[n], v);
            for (size_t k = 0; k < sizeof behind / sizeof *behind; k++)
                add_name(a, all, names[n], behind[k], v);
        }
    }
}

static bool check_apart(const bundle_model *m, taken_names *all, diagnostics *d)
{
    bool ok = true;
    if (all->count > 0)
        qsort(all->items, all->count, sizeof *all->items, compare_names);
    for (size_t i = 1; i < all->count; i++)
        if (strcmp(all->items[i - 1].name, all->items[i].name) == 0)
            ok = report_name(m, &all->items[i - 1], &all->items[i], d) && ok;
    return ok;
}

/* Functions, structs and kernels share one name space in the generated header, with every bundle's own names. */
static bool check_names(arena *a, const bundle_model *m, diagnostics *d)
{
    static const char *const own[] = {"bundle", "index", "manifest_crc", "KERNELS", "SLOTS", "SCRATCH_BYTES"};
    taken_names all = {0}, statics = {0};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        add_name(a, &all, own[i], "", NULL);
    for (size_t i = 0; i < m->family_count; i++)
        add_family_names(a, &all, &m->families[i], strlen(m->name) + 1);
    add_static_names(a, &statics, m);
    const bool are_apart = check_apart(m, &all, d);
    return check_apart(m, &statics, d) && are_apart;
}

/* ---- the index --------------------------------------------------------------------------------------------------- */

/* Open addressing, at most half full, so that a miss ends soon. */
static void make_table(arena *a, bundle_model *m)
{
    uint32_t places = 2;
    while (places < 2 * m->variant_count)
        places *= 2;
    m->table = arena_alloc(a, places * sizeof *m->table);
    m->table_mask = places - 1;
    for (uint32_t i = 0; i < m->variant_count; i++) {
        uint32_t at = (uint32_t)(m->variants[i].variant->key & m->table_mask);
        while (m->table[at] != 0)
            at = (at + 1) & m->table_mask;
        m->table[at] = i + 1;
    }
}

/* ---- scratch ----------------------------------------------------------------------------------------------------- */

/* The largest image and its NUL, rounded up to a multiple of 16, and the decoder's context. */
static void find_scratch_bytes(bundle_model *m)
{
    size_t most = 0;
    for (size_t i = 0; i < m->variant_count; i++)
        for (size_t k = 0; k < m->variants[i].image_count; k++)
            if (m->variants[i].images[k].bytes > most)
                most = m->variants[i].images[k].bytes;
    m->scratch_bytes = (most | 15) + 1 + KILN_ZSTD_CONTEXT_BYTES;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static const char *command_of(arena *a, const plan *p)
{
    text out = text_new(a);
    text_printf(&out, "kiln generate %s", quote_shell(a, file_name(p->config_path)));
    if (p->target_option)
        text_printf(&out, " --targets %s", p->target_option);
    for (size_t i = 0; i < p->ptx_name_count; i++)
        text_printf(&out, " --ptx %s=...", p->ptx_names[i]);
    if (p->image_option)
        text_printf(&out, " --images %s", p->image_option);
    if (p->shards)
        text_printf(&out, " --shards %u", (unsigned)p->shards);
    return out.data;
}

static void find_min_drivers(bundle_model *m)
{
    for (size_t i = 0; i < m->variant_count; i++) {
        bundle_variant *v = &m->variants[i];
        for (size_t k = 0; k < v->image_count; k++)
            if (v->images[k].is_cubin != m->plan->has_ptx && v->images[k].min_driver > v->min_driver)
                v->min_driver = v->images[k].min_driver;
        if (v->min_driver > m->min_driver)
            m->min_driver = v->min_driver;
    }
}

_Static_assert(sizeof((kiln_bundle *)0)->name == 48, "LONGEST_BUNDLE of config.c leaves room for the zero");

const bundle_model *model_build(arena *a, const plan *p, spool *s, diagnostics *d)
{
    bundle_model *m = arena_alloc(a, sizeof *m);
    *m = (bundle_model){.name = p->bundle,
                        .upper_name = upper_case(a, p->bundle),
                        .command = command_of(a, p),
                        .plan = p,
                        .spool = s,
                        .variant_count = p->variant_count,
                        .min_driver = KILN_OLDEST_DRIVER};
    m->variants = arena_alloc(a, p->variant_count * sizeof *m->variants);
    for (size_t i = 0; i < p->variant_count; i++) {
        m->variants[i].variant = p->variants[i];
        m->variants[i].function = arena_format(a, "%s_%s", p->bundle, p->variants[i]->entry);
    }
    make_families(a, m);
    if (!check_names(a, m, d))
        return NULL;
    const baked *made = bake_all(a, p, s);
    for (size_t i = 0; i < p->variant_count; i++) {
        const size_t owner = plan_image_owner(p, i, NULL);
        m->variants[i].owner = &m->variants[owner];
        m->module_count += owner == i;
        take_images(made[owner], &m->variants[i]);
    }
    if (p->has_cubins && !add_cubins(a, m, d))
        return NULL;
    find_min_drivers(m);
    make_slots(m);
    make_table(a, m);
    if (p->is_compressed)
        find_scratch_bytes(m);
    return m;
}
