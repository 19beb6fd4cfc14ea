/* From variants to images: builds, checks, folds, hashes; and prints C into the spool. */
#include "images.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "c_text.h"
#include "compress.h"
#include "expression/expression.h"
#include "external/external.h"
#include "family/family.h"
#include "family/shape.h"
#include "support/family_code.h"
#include "target/target.h"

static uint64_t value_of(arena *a, const variant *v, const char *expression_text)
{
    return expression_value(expression_parse(a, v->family, expression_text), v);
}

/* Called many times for each variant and argument, so it parses in its own arena. */
static bool holds(const variant *v, const char *when)
{
    if (!when)
        return true;
    arena *own = arena_new();
    const bool has = value_of(own, v, when) != 0;
    arena_free(own);
    return has;
}

bool variant_has_arg(const variant *v, const kiln_arg *arg)
{
    return holds(v, arg->when);
}

bool variant_has_map(const variant *v, const kiln_map *map)
{
    return holds(v, map->when);
}

bool variants_have_arg(const variant *const *variants, const kiln_arg *arg)
{
    while (*variants && !variant_has_arg(*variants, arg))
        variants++;
    return *variants != NULL;
}

arg_use arg_use_of(const variant *const *variants, const kiln_arg *arg)
{
    const kiln_family *family = (*variants)->family;
    const kiln_workspace *w = family->workspace;
    const char *const of_workspace[] = {w ? w->arg : NULL, w ? w->counters : NULL, w ? w->size : NULL,
                                        family->workspace_parts};
    for (size_t i = 0; w && i < sizeof of_workspace / sizeof *of_workspace; i++)
        if (of_workspace[i] && strcmp(of_workspace[i], arg->name) == 0 &&
            !variants_have_arg(variants, arg_find(family->args, w->arg)))
            return ARG_IGNORED;
    return variants_have_arg(variants, arg) ? ARG_READ : ARG_REFUSED;
}

size_t variant_param_count(const variant *v)
{
    size_t count = 0;
    while (v->family->args[count].name)
        count++;
    return count - v->launch_args;
}

const char *variant_arg_type(const variant *v, const kiln_arg *arg)
{
    if (arg->type[0] != '$')
        return arg->type;
    const arg_type_choice choice = family_arg_type_choice(arg);
    const kiln_param *params = v->family->params;
    for (size_t i = 0; params && params[i].name; i++)
        if (strlen(params[i].name) == choice.name_length &&
            memcmp(params[i].name, arg->type + 1, choice.name_length) == 0)
            return arg_type_for(choice, v->values[i].text);
    internal_error("family %s: argument %s has the type of %s, which is no parameter", v->family->name,
                   arg->name, arg->type + 1);
}

/* "i32" is PTX's s32; all other types have PTX's names. */
static ptx_type ptx_type_of(arena *a, const char *type)
{
    return ptx_type_named(type[0] == 'i' ? arena_format(a, "s%s", type + 1) : type);
}

uint32_t variant_element_bytes(arena *a, const variant *v, const kiln_arg *arg)
{
    return ptx_type_bytes(ptx_type_of(a, variant_arg_type(v, arg)));
}

uint32_t variant_arg_alignment(arena *a, const variant *v, const kiln_arg *arg)
{
    const uint32_t element = variant_element_bytes(a, v, arg);
    const char *own = arg_variant_alignment(v->family, arg);
    const uint64_t asked = own ? value_of(a, v, own) : arg->alignment;
    if (own && !is_alignment(asked))
        family_error("%s: argument %s: the alignment \"%s\" is %llu, no power of two up to %d", v->id,
                     arg->name, own, (unsigned long long)asked, MOST_ALIGNMENT);
    return asked > element ? (uint32_t)asked : element;
}

/* ---- build ------------------------------------------------------------------------------------------------------- */

/* The driver fills the kernel's parameters by position, so they must match the descriptor's, one by one. */
static void check_params(arena *a, const variant *v, const ptx_fn *kernel)
{
    size_t i = 0;
    for (const kiln_arg *arg = v->family->args; arg->name; arg++) {
        if (!variant_has_arg(v, arg))
            continue;
        if (i == ptx_param_count(kernel))
            family_error("%s: the kernel has no parameter for argument %s", v->id, arg->name);
        ptx_type type, element;
        const char *name = ptx_param_at(kernel, i++, &type, &element);
        const ptx_type declared = ptx_type_of(a, variant_arg_type(v, arg));
        const bool is_pointer = arg->kind != KILN_ARG_VALUE;
        if (strcmp(name, arg->name) != 0)
            family_error("%s: the kernel's parameter is %s where the descriptor has %s", v->id, name,
                         arg->name);
        if (is_pointer != (type == PTX_PTR) || (is_pointer ? element : type) != declared)
            family_error("%s: parameter %s is %s%s, its argument is %s%s", v->id, name,
                         type == PTX_PTR ? "pointer to " : "",
                         ptx_type_name(type == PTX_PTR ? element : type), is_pointer ? "pointer to " : "",
                         ptx_type_name(declared));
    }
    for (const kiln_map *map = v->family->maps; map && map->name; map++) {
        if (!variant_has_map(v, map))
            continue;
        ptx_type type = PTX_NONE, element = PTX_NONE;
        const char *name =
            i < ptx_param_count(kernel) ? ptx_param_at(kernel, i++, &type, &element) : "missing";
        if (strcmp(name, map->name) != 0 || type != PTX_PTR || element != PTX_NONE)
            family_error("%s: the kernel's parameter is %s where the descriptor has the tensor map %s", v->id,
                         name, map->name);
    }
    if (i != ptx_param_count(kernel))
        family_error("%s: the kernel has %u parameters, the descriptor %u", v->id,
                     (unsigned)ptx_param_count(kernel), (unsigned)i);
}

/* `alike` gets the targets that have the same kernel. */
static ptx_fn *build_alike(arena *a, const variant *v, target t, target_range *alike)
{
    *alike = (target_range){0, UINT32_MAX};
    const kiln_shape shape = shape_for(v, t, alike);
    ptx_fn *kernel = ptx_new(a, v->entry, t, shape.block);
    ptx_find_alike(kernel, alike);
    if (shape.blocks_per_multiprocessor)
        ptx_min_blocks(kernel, shape.blocks_per_multiprocessor);
    family_code_begin("emit", v->id, target_text(a, t));
    v->family->emit(kernel, &(kiln_variant){v, t, alike});
    family_code_end();
    for (const kiln_arg *arg = v->family->args; arg->name; arg++)
        if (arg->kind == KILN_ARG_CONSTANT)
            ptx_set_constant(kernel, arg->name);
    for (const kiln_map *map = v->family->maps; map && map->name; map++)
        if (arg_find(v->family->args, map->arg)->kind == KILN_ARG_CONSTANT)
            ptx_set_constant(kernel, map->name);
    if (!ptx_check(kernel, family_errors_are_silent() ? NULL : stderr))
        family_error("%s fails its check for %s", v->id, target_text(a, t));
    check_params(a, v, kernel);
    const uint32_t dynamic_bytes = ptx_dynamic_bytes(kernel);
    if (dynamic_bytes > shape.shared_bytes)
        family_error(
            "%s: the kernel uses at least %u bytes of dynamic shared memory, but its shape's shared_bytes is %u",
            v->id, (unsigned)dynamic_bytes, (unsigned)shape.shared_bytes);
    return kernel;
}

ptx_fn *build_kernel(arena *a, const variant *v, target t)
{
    target_range alike;
    return build_alike(a, v, t, &alike);
}

/* ---- print and fold ---------------------------------------------------------------------------------------------- */

const char *cuda_version_text(arena *a, uint32_t driver)
{
    return arena_format(a, "%u.%u", (unsigned)(driver / 1000), (unsigned)(driver % 1000 / 10));
}

image_hash image_hash_of(const char *data, size_t bytes)
{
    const XXH128_hash_t hash = XXH3_128bits(data, bytes);
    return (image_hash){hash.high64, hash.low64};
}

static kiln_warp_code warp_code(ptx_cost cost)
{
    return (kiln_warp_code){cost.issues,   cost.integers,    cost.wavefronts,
                            cost.products, cost.s8_products, cost.fp4_products};
}

kiln_code code_of(ptx_costs costs, const kiln_shape *shape)
{
    const uint32_t warps = (shape->block[0] * shape->block[1] * shape->block[2] + 31) / 32;
    const uint32_t loop_warps = shape->loop_warps ? shape->loop_warps : 1;
    return (kiln_code){.loop = warp_code(costs.loop),
                       .side = warp_code(costs.side),
                       .rest = warp_code(costs.rest),
                       .warps = warps,
                       .trip = shape->trip ? shape->trip : 1,
                       .loop_warps = loop_warps,
                       .loop_groups = warps / loop_warps};
}

image print_kernel(arena *a, const ptx_fn *kernel, target t, bool has_places)
{
    image made = {.made_for = t,
                  .needs = ptx_needs(kernel),
                  .static_shared_bytes = ptx_shared_bytes(kernel),
                  .is_dependent = ptx_is_dependent(kernel),
                  .costs = ptx_count(kernel)};
    made.min_driver = ptx_min_driver(made.needs.version);
    text ptx = text_new(a);
    ptx_print_header(&ptx, made.needs);
    ptx_print_body(&ptx, kernel, has_places);
    made.data = ptx.data;
    made.bytes = ptx.length;
    made.hash = image_hash_of(made.data, made.bytes);
    return made;
}

/* Compares hashes: one of the texts is already freed. */
static bool same_text(const image *a, const image *b)
{
    return a->bytes == b->bytes && a->hash.high == b->hash.high && a->hash.low == b->hash.low;
}

/* Without a spool only counts the bytes. */
static void store(arena *scratch, spool *s, const plan *p, const variant *v, image *i)
{
    if (s)
        image_spool(scratch, s, p, v, i);
    else
        i->stored_bytes = p->is_compressed ? compress(scratch, i->data, i->bytes).length : i->bytes;
}

/* An image can only be folded into the newest base image below it, since selection would take that one instead. */
static size_t emitted_images(arena *a, arena *scratch, spool *s, const plan *p, const variant *v,
                             image **images)
{
    image kept[TARGETS_MOST];
    const image *newest_base = NULL;
    target_range like_newest = {0, 0};
    size_t count = 0;
    for (size_t i = 0; i < p->target_count; i++) {
        const target t = p->targets[i];
        if (!(v->runs_on >> i & 1u))
            continue;
        if (newest_base && t.sm >= like_newest.from && t.sm < like_newest.below &&
            ptx_fits(newest_base->needs.target, t))
            continue;
        target_range alike;
        kept[count] = print_kernel(scratch, build_alike(scratch, v, t, &alike), t, false);
        const bool is_folded = newest_base && same_text(newest_base, &kept[count]);
        if (!is_folded)
            store(scratch, s, p, v, &kept[count]);
        arena_clear(scratch);
        if (is_folded)
            continue;
        if (t.kind == TARGET_BASE) {
            newest_base = &kept[count];
            like_newest = alike;
        }
        count++;
    }
    *images = arena_copy(a, kept, count * sizeof *kept);
    return count;
}

static size_t external_images(arena *a, arena *scratch, spool *s, const plan *p, const variant *v,
                              image **images)
{
    const external_module *m = v->module;
    *images = arena_alloc(a, m->file_count * sizeof **images);
    for (size_t i = 0; i < m->file_count; i++) {
        const ptx_file *file = m->files[i];
        image *made = &(*images)[i];
        *made = (image){.made_for = file->made_for,
                        .needs = {file->version, file->says},
                        .min_driver = file->min_driver,
                        .data = file->ptx,
                        .bytes = file->bytes,
                        .hash = image_hash_of(file->ptx, file->bytes)};
        store(scratch, s, p, v, made);
        arena_clear(scratch);
    }
    return m->file_count;
}

size_t variant_images(arena *a, arena *scratch, spool *s, const plan *p, const variant *v, image **images)
{
    return (v->kind == VARIANT_EXTERNAL ? external_images : emitted_images)(a, scratch, s, p, v, images);
}

uint64_t variant_bytes(const plan *p, const variant *v)
{
    arena *a = arena_new(), *scratch = arena_new();
    image *images;
    uint64_t bytes = 0;
    const size_t count = variant_images(a, scratch, NULL, p, v, &images);
    for (size_t i = 0; i < count; i++)
        bytes += images[i].stored_bytes;
    arena_free(scratch);
    arena_free(a);
    return bytes;
}

/* ---- as C -------------------------------------------------------------------------------------------------------- */

const char *image_array(arena *a, const variant *v, const image *i)
{
    return arena_format(a, "%s_%s%s", v->entry, target_text(a, i->made_for), i->is_cubin ? "_cubin" : "");
}

/* ELF requires alignment of its numbers. */
static void add_array(text *out, const variant *v, const image *i)
{
    text_printf(out, "\nstatic const char %s[]%s =", image_array(out->arena, v, i),
                i->is_cubin ? " __attribute__((aligned(64)))" : "");
    if (i->is_cubin)
        c_add_literal_bytes(out, i->data, i->bytes);
    else
        c_add_literal_lines(out, i->data);
}

static void add_compressed_array(text *out, const variant *v, image *i)
{
    const text frame = compress(out->arena, i->data, i->bytes);
    text_printf(out, "\nstatic const char %s[] =", image_array(out->arena, v, i));
    c_add_literal_bytes(out, frame.data, frame.length);
    i->stored_bytes = frame.length;
    i->stored_hash = image_hash_of(frame.data, frame.length);
}

void image_spool(arena *scratch, spool *s, const plan *p, const variant *v, image *i)
{
    text out = text_new(scratch);
    i->stored_bytes = i->bytes;
    i->stored_hash = i->hash;
    if (p->is_compressed)
        add_compressed_array(&out, v, i);
    else
        add_array(&out, v, i);
    text_add(&out, ";\n");
    i->array = spool_add(s, out.data, out.length);
    if (((p->has_cubins || p->is_timed) && !i->is_cubin) || p->is_exported)
        i->plain = spool_add(s, i->data, i->bytes);
    i->data = NULL;
}
