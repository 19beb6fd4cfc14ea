/* Each family's typed function, and those that only return which variant would serve these arguments on this device.
 *
 * Variants with equal contract parameters form a choice. Among those whose rules the call meets, the one with the
 * lowest estimate is launched: kiln/estimate.h has the model, and this file its inputs. Variants of external PTX have
 * no estimate: the first in the configuration is launched. Times from tuned files take precedence as kiln/tuned.h
 * describes. */
#include <inttypes.h>
#include <kiln/tuned.h>
#include <string.h>

#include "c_text.h"
#include "family/family.h"
#include "write.h"

/* ---- what a variant's launch takes ------------------------------------------------------------------------------- */

/* Prints the expression for consider_FAMILY, where `a` and `device` are in scope. */
static const char *c_choice_expression(arena *a, const expression *e)
{
    return c_expression_on(a, e, "a.", "device.");
}

static const char *c_number(arena *a, const variant *v, const char *source)
{
    return c_choice_expression(a, bind_text(a, v->family, source, v));
}

/* A member of the initialiser, unless it is 0. */
static void add_member(arena *a, text *out, const variant *v, const char *name, const char *source)
{
    const char *value = source ? c_number(a, v, source) : "0";
    if (strcmp(value, "0") != 0 && strcmp(value, "UINT64_C(0)") != 0)
        text_printf(out, ".%s = %s, ", name, value);
}

static void write_code(text *out, const bundle_variant *v, const char *indent)
{
    const kiln_code code = code_of(v->costs, &v->variant->shape);
    const kiln_warp_code parts[] = {code.loop, code.side, code.rest};
    text_printf(out, "%sstatic const kiln_code code = {", indent);
    for (int i = 0; i < 3; i++)
        text_printf(out, "{%u, %u, %u, %u, %u, %u}, ", (unsigned)parts[i].issues, (unsigned)parts[i].integers,
                    (unsigned)parts[i].wavefronts, (unsigned)parts[i].products,
                    (unsigned)parts[i].s8_products, (unsigned)parts[i].fp4_products);
    text_printf(out, "%u, %u, %u, %u};\n", (unsigned)code.warps, (unsigned)code.trip,
                (unsigned)code.loop_warps, (unsigned)code.loop_groups);
}

/* "&(kiln_work){...}" */
static const char *work_of(arena *a, const variant *v)
{
    const kiln_family *family = v->family;
    text out = text_new(a);
    text_add(&out, "&(kiln_work){");
    add_member(a, &out, v, "blocks", family_blocks(a, family));
    add_member(a, &out, v, "resident", "blocks_per_multiprocessor");
    add_member(a, &out, v, "length", family->time.length);
    add_member(a, &out, v, "repeats", family->time.repeats ? family->time.repeats : "1");
    add_member(a, &out, v, "side_trips", family->time.side_trips);
    add_member(a, &out, v, "wait", family->time.wait);
    add_member(a, &out, v, "block_bytes", family->time.block_bytes);
    add_member(a, &out, v, "bytes", family_bytes(a, family));
    add_member(a, &out, v, "extra", family->time.extra);
    out.data[out.length - 2] = '\0';
    return arena_format(a, "%s}", out.data);
}

/* ---- what rules a variant out ------------------------------------------------------------------------------------ */

/* "61440 > device.max_shared_bytes" for a variant that does not fit on some device with this call's arguments;
 * otherwise null. kiln_usable checks what does not depend on the call. */
static const char *no_room(arena *a, const bundle_variant *v)
{
    const uint32_t fixed = v->static_shared_bytes;
    if (v->min_shared_bytes == v->max_shared_bytes ||
        v->max_shared_bytes + fixed <= target_shared_bytes(v->owner->images[0].made_for))
        return NULL;
    return c_number(a, v->variant,
                    arena_format(a, "%s + %u > max_shared_bytes", family_shared_bytes(v->variant->family),
                                 (unsigned)fixed));
}

/* Each condition that rules the variant out, with the constant of its message: "a.k % 512 != 0 ? rule_1 : ". */
typedef struct reasons {
    text constants, chain;
    size_t count;
} reasons;

static void add_reason(arena *a, reasons *r, const char *condition, const char *why)
{
    if (strcmp(condition, "0") == 0)
        return;
    const char *name = arena_format(a, "why_%u", (unsigned)++r->count);
    c_add_text_constant(&r->constants, 12, name, why);
    text_printf(&r->chain, "%s ? %s : ", condition, name);
}

static reasons reasons_of(arena *a, const bundle_family *f, const bundle_variant *bv)
{
    const variant *v = bv->variant;
    reasons r = {.constants = text_new(a), .chain = text_new(a)};
    for (const kiln_rule *rule = v->family->rules; rule && rule->condition; rule++) {
        const expression *broken = expression_parse(a, v->family, arena_format(a, "!(%s)", rule->condition));
        if (expression_uses(broken, NAME_PARAM) && family_asks_rule(a, f, rule))
            add_reason(a, &r, c_choice_expression(a, expression_bind(a, broken, v)), rule->text);
    }
    for (size_t i = 0; i < f->field_count; i++) {
        const kiln_arg *arg = f->fields[i].arg;
        if (!arg || arg->kind == KILN_ARG_VALUE || !variant_has_arg(v, arg))
            continue;
        const uint32_t alignment = variant_arg_alignment(a, v, arg);
        if (alignment > arg->alignment && arg_variant_alignment(v->family, arg))
            add_reason(a, &r, arena_format(a, "a.%s %% %u != 0", f->fields[i].member, (unsigned)alignment),
                       arena_format(a, "%s must be aligned to %u bytes", arg->name, (unsigned)alignment));
    }
    const char *room = no_room(a, bv);
    if (room)
        add_reason(a, &r, room, "the device has less shared memory than this call takes");
    return r;
}

/* "kiln_is_sure(&device, 80, 11040, 67072)", about the lowest image that every newer device runs; "0" if there is
 * none. */
static const char *is_sure(arena *a, const bundle_variant *v)
{
    const image *lowest = NULL;
    for (size_t i = 0; i < v->owner->image_count; i++) {
        const image *one = &v->owner->images[i];
        if (!one->is_cubin && one->made_for.kind == TARGET_BASE &&
            (!lowest || one->made_for.sm < lowest->made_for.sm))
            lowest = one;
    }
    if (!lowest)
        return "0";
    return arena_format(a, "kiln_is_sure(&device, %u, %u, %u)", (unsigned)lowest->made_for.sm,
                        (unsigned)lowest->min_driver,
                        (unsigned)(v->static_shared_bytes + v->min_shared_bytes));
}

/* ---- what was measured ------------------------------------------------------------------------------------------- */

static tuned_choice tuned_of(arena *a, const plan *p, bundle_variant *const *choice, size_t count)
{
    const variant **variants = arena_alloc(a, count * sizeof *variants);
    for (size_t i = 0; i < count; i++)
        variants[i] = choice[i]->variant;
    return count > 1 ? tuned_choice_of(a, p, variants, count) : (tuned_choice){0};
}

/* The members of the argument struct that shapes name; members that no variant of the bundle has do not matter. */
static const bundle_field *field_of(const bundle_family *f, size_t arg)
{
    for (size_t i = 0; i < f->field_count; i++)
        if (f->fields[i].arg == &f->family->args[arg])
            return &f->fields[i];
    return NULL;
}

/* The constant `measured` and the number `nearest`. */
static void write_shapes(arena *a, text *out, const bundle_family *f, const tuned_choice *tuned,
                         const char *indent)
{
    text names = text_new(a), members = text_new(a), rows = text_new(a);
    size_t columns = 0;
    for (size_t k = 0; k < tuned->arg_count; k++) {
        const bundle_field *field = field_of(f, tuned->args[k]);
        if (!field)
            continue;
        text_printf(&names, ", %s", field->name);
        text_printf(&members, "%s(uint64_t)a.%s", columns++ ? ", " : "", field->member);
    }
    for (size_t i = 0; i < tuned->shape_count; i++) {
        const tuned_shape *s = tuned->shapes[i];
        text_printf(&rows, "%s    {%u, %u", indent, (unsigned)s->file->sm,
                    (unsigned)s->file->multiprocessors);
        for (size_t k = 0; k < tuned->arg_count; k++) {
            if (!field_of(f, tuned->args[k]))
                continue;
            const uint64_t size = s->sizes[tuned->args[k]];
            text_add(&rows, ", ");
            if (size == TUNED_ANY_SIZE)
                text_add(&rows, "KILN_ANY_SIZE");
            else
                text_add_decimal(&rows, size);
        }
        text_add(&rows, "},\n");
    }
    text_printf(out, "%s/* sm, multiprocessors%s */\n%sstatic const uint64_t measured[][%u] = {\n%s%s};\n",
                indent, names.data, indent, (unsigned)(2 + columns), rows.data, indent);
    c_add_wrapped(out, arena_format(a, "%sconst size_t nearest = kiln_nearest(", indent),
                  arena_format(a, "&device, measured[0], %u, %s%s%s, %u", (unsigned)tuned->shape_count,
                               columns ? "(const uint64_t[]){" : "NULL", members.data, columns ? "}" : "",
                               (unsigned)columns),
                  ");\n");
}

/* The constant `nanoseconds`: one per shape, followed by 0. */
static void write_nanoseconds(text *out, const tuned_choice *tuned, const variant *v, const char *indent)
{
    text_printf(out, "%sstatic const uint32_t nanoseconds[] = {", indent);
    for (size_t i = 0; i < tuned->shape_count; i++)
        text_printf(out, "%u, ", (unsigned)tuned_nanoseconds(tuned->shapes[i], v));
    text_add(out, "0};\n");
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

/* A single variant needs no estimate, and external PTX has none: the first that serves the call is taken. */
static void write_candidates(text *out, const plan *p, const bundle_family *f, bundle_variant *const *choice,
                             size_t count, const char *indent)
{
    arena *a = arena_new(),
          *kept = arena_new(); /* a is cleared after each candidate: expressions take much memory */
    const bool has_estimate = count > 1 && choice[0]->variant->kind == VARIANT_EMITTED;
    const tuned_choice tuned = tuned_of(kept, p, choice, count);
    if (tuned.shape_count > 0)
        write_shapes(kept, out, f, &tuned, indent);
    for (size_t i = 0; i < count; i++) {
        const reasons r = reasons_of(a, f, choice[i]);
        const char *inner = arena_format(a, "%s    ", indent);
        text_printf(out, "%s{\n%s", indent, r.constants.data);
        if (has_estimate)
            write_code(out, choice[i], inner);
        if (tuned.shape_count > 0)
            write_nanoseconds(out, &tuned, choice[i]->variant, inner);
        c_add_wrapped(out,
                      arena_format(a, "%skiln_consider%s(", inner, tuned.shape_count > 0 ? "_tuned" : ""),
                      arena_format(a, "c, &device, &%s_kernel, %s, %sNULL, %s%s, %s", choice[i]->function,
                                   is_sure(a, choice[i]), r.chain.data,
                                   tuned.shape_count > 0 ? "nanoseconds[nearest], " : "",
                                   has_estimate ? "&code" : "NULL",
                                   has_estimate ? work_of(a, choice[i]->variant) : "NULL"),
                      ");\n");
        text_printf(out, "%s}\n", indent);
        arena_clear(a);
    }
    arena_free(kept);
    arena_free(a);
}

/* ---- choices ----------------------------------------------------------------------------------------------------- */

static bool same_choice(const bundle_family *f, const bundle_variant *x, const bundle_variant *y)
{
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        if (field->param && strcmp(x->variant->values[field->param_index].text,
                                   y->variant->values[field->param_index].text) != 0)
            return false;
    }
    return true;
}

/* Takes out of `left` the variants that agree with its first one, in order. */
static size_t take_choice(const bundle_family *f, bundle_variant **left, size_t *left_count,
                          bundle_variant **choice)
{
    size_t count = 0, kept = 0;
    bundle_variant *first = left[0];
    for (size_t i = 0; i < *left_count; i++) {
        if (same_choice(f, first, left[i]))
            choice[count++] = left[i];
        else
            left[kept++] = left[i];
    }
    *left_count = kept;
    return count;
}

const char *choice_condition(arena *a, const bundle_family *f, const variant *v, const bool *is_asked)
{
    text out = text_new(a);
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        if (!field->param || (is_asked && !is_asked[field->param_index]))
            continue;
        const char *value = v->values[field->param_index].text;
        text_add(&out, out.length > 0 ? " && " : "");
        if (field->param->type == KILN_PARAM_BOOL)
            text_printf(&out, "%sa.%s", strcmp(value, "true") == 0 ? "" : "!", field->name);
        else
            text_printf(&out, "a.%s == %s", field->name, c_value(a, f, field->param, value));
    }
    return out.data;
}

static void write_choices(arena *a, text *out, const plan *p, const bundle_family *f)
{
    bundle_variant **left = arena_copy(a, f->variants, f->variant_count * sizeof *left);
    bundle_variant **choice = arena_alloc(a, f->variant_count * sizeof *choice);
    size_t left_count = f->variant_count;
    while (left_count > 0) {
        const size_t count = take_choice(f, left, &left_count, choice);
        const char *condition = choice_condition(a, f, choice[0]->variant, NULL);
        if (condition[0] == '\0') {
            write_candidates(out, p, f, choice, count, "    ");
            return;
        }
        c_add_wrapped(out, "    if (", condition, ") {\n");
        write_candidates(out, p, f, choice, count, "        ");
        text_add(out, "        return;\n    }\n");
    }
}

/* ---- the functions ----------------------------------------------------------------------------------------------- */

static bool names_params(const bundle_family *f)
{
    return f->field_count > 0 && f->fields[f->field_count - 1].param;
}

static size_t count_choices(arena *a, const bundle_family *f)
{
    bundle_variant **left = arena_copy(a, f->variants, f->variant_count * sizeof *left);
    bundle_variant **choice = arena_alloc(a, f->variant_count * sizeof *choice);
    size_t left_count = f->variant_count, count = 0;
    for (; left_count > 0; count++)
        take_choice(f, left, &left_count, choice);
    return count;
}

/* The bundle's values, for an error message: "the bundle has type f16 bf16, group 64". */
static const char *what_there_is(arena *a, const bundle_family *f)
{
    size_t combinations = 1;
    text out = text_new(a);
    for (size_t i = 0; i < f->field_count; i++) {
        if (!f->fields[i].param)
            continue;
        const char **values;
        const size_t count = family_values(a, f, f->fields[i].param_index, &values);
        combinations *= count;
        text_printf(&out, "%s%s", out.length > 0 ? ", " : "the bundle has ", f->fields[i].name);
        for (size_t k = 0; k < count; k++)
            text_printf(&out, " %s", values[k]);
    }
    if (count_choices(a, f) < combinations)
        text_add(&out, "; not every combination");
    return out.length > 0 ? out.data : "no variant of the bundle serves these arguments";
}

void write_defaults(arena *a, text *out, const bundle_family *f)
{
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        if (field->when_zero)
            text_printf(out, "    if (a.%s == 0)\n        a.%s = %s;\n", field->name, field->name,
                        c_value(a, f, field->param, field->when_zero));
    }
}

void write_check_of_result(text *out, const bundle_family *f, const char *condition, const char *detail)
{
    text_printf(out, "    if (%s) {\n", condition);
    c_add_text_constant(out, 8, "detail", detail);
    text_printf(out, "        return kiln_fail(loader, KILN_ERROR_NULL_POINTER, %s_name, detail);\n    }\n",
                f->family->name);
}

/* A variant's contract values: "KILN_DEFAULT_ROPE_TYPE_F16, 128, ". */
static const char *numbers_of(arena *a, const bundle_family *f, const variant *v)
{
    text out = text_new(a);
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        if (!field->param)
            continue;
        const char *value = v->values[field->param_index].text;
        if (field->param->type == KILN_PARAM_BOOL)
            value = strcmp(value, "true") == 0 ? "1" : "0";
        else
            value = c_value(a, f, field->param, value);
        text_printf(&out, "%s%s", out.length > 0 ? ", " : "", value);
    }
    return out.data;
}

/* miss_FAMILY: fails, and names the first value that differs from the nearest choice's. */
static void write_miss_function(arena *a, text *out, const bundle_family *f)
{
    bundle_variant **left = arena_copy(a, f->variants, f->variant_count * sizeof *left);
    bundle_variant **choice = arena_alloc(a, f->variant_count * sizeof *choice);
    size_t left_count = f->variant_count;
    unsigned numbers = 0, choices = 0;
    text asked = text_new(a), details = text_new(a), constants = text_new(a), rows = text_new(a);
    const char *there_is = what_there_is(a, f);
    for (size_t i = 0; i < f->field_count; i++) {
        const char *name = f->fields[i].name;
        if (!f->fields[i].param)
            continue;
        text_printf(&asked, "%sa.%s", numbers > 0 ? ", " : "", name);
        text_printf(&details, "%s%s_differs", numbers++ > 0 ? ", " : "", name);
        c_add_text_constant(&constants, 4, arena_format(a, "%s_differs", name),
                            arena_format(a, "%s differs; %s", name, there_is));
    }
    for (; left_count > 0; choices++) {
        take_choice(f, left, &left_count, choice);
        c_add_wrapped(&rows, "        {", numbers_of(a, f, choice[0]->variant), "},\n");
    }
    text_add(
        out,
        "\n/* Fails, and names the first value that differs from the nearest choice. */\n__attribute__((noinline)) ");
    c_add_wrapped(out, arena_format(a, "static kiln_status miss_%s(", f->family->name),
                  arena_format(a, "kiln_loader *loader, const %s *args", f->args_struct), ")\n{\n");
    text_printf(out, "    static const uint32_t choices[][%u] = {\n%s    };\n%s", numbers, rows.data,
                constants.data);
    c_add_wrapped(out, "    static const char *const details[] = {", details.data, "};\n");
    text_printf(out, "    %s a = *args;\n", f->args_struct);
    write_defaults(a, out, f);
    c_add_wrapped(out, "    const uint32_t asked[] = {", asked.data, "};\n");
    text_printf(out,
                "    const size_t at = kiln_first_difference(asked, choices[0], %u, %u);\n"
                "    return kiln_fail(loader, KILN_ERROR_NO_VARIANT, %s_name, details[at]);\n}\n",
                choices, numbers, f->family->name);
}

static void write_choose_function(arena *a, text *out, const plan *p, const bundle_family *f)
{
    text body = text_new(a);
    write_defaults(a, &body, f);
    write_choices(a, &body, p, f);

    text_add(out, "\n/* Every variant of the caller's contract, with its estimate. */\n");
    c_add_wrapped(out, arena_format(a, "static void consider_%s(", f->family->name),
                  arena_format(a, "kiln_choice *c, const %s *args", f->args_struct),
                  ")\n{\n    const kiln_device device = c->loader->device;\n");
    text_printf(out, "    %s a = *args;\n", f->args_struct);
    if (!strstr(body.data, "a."))
        text_add(out, "    (void)a;\n");
    text_add_bytes(out, body.data, body.length);
    text_add(out, "}\n");

    if (names_params(f))
        write_miss_function(a, out, f);
    text_add(
        out,
        "\n/* Picks the variant for these arguments on this device; if none serves them, one whose launch reports why. */\n");
    c_add_wrapped(
        out, arena_format(a, "static kiln_status choose_%s(", f->family->name),
        arena_format(a, "kiln_loader *loader, const %s *args, const kiln_kernel **kernel", f->args_struct),
        ")\n{\n");
    text_printf(out,
                "    kiln_choice choice = {.loader = loader, .limit = KILN_NO_LIMIT};\n"
                "    consider_%s(&choice, args);\n"
                "    *kernel = choice.best ? choice.best : choice.fallback;\n",
                f->family->name);
    if (names_params(f))
        text_printf(out, "    if (!*kernel)\n        return miss_%s(loader, args);\n", f->family->name);
    text_add(out, "    return KILN_OK;\n}\n");
}

/* Checks and chooses: *kernel is null after a failure and if there is nothing to do. */
static void write_find_function(arena *a, text *out, const bundle_family *f)
{
    text_add(out, "\n");
    c_add_wrapped(
        out, arena_format(a, "static kiln_status find_%s(", f->family->name),
        arena_format(a, "kiln_loader *loader, const %s *args, const kiln_kernel **kernel", f->args_struct),
        ")\n{\n    *kernel = NULL;\n");
    write_call_of_check(a, out, f, "check", "args");
    text_printf(out, "    return choose_%s(loader, args, kernel);\n}\n", f->family->name);
}

/* Returns the status that the launch would have: KILN_NO_LAUNCH makes the launch's own checks. */
static void write_pick_function(text *out, const bundle_family *f)
{
    text_add(out, "\n");
    c_add_query_prototype(out, f, "pick", ")\n{\n");
    write_check_of_result(out, f, "!kernel", "kernel is null");
    text_printf(out,
                "    kiln_status status = find_%s(loader, args, kernel);\n"
                "    if (*kernel)\n"
                "        status = (*kernel)->run(loader, KILN_NO_LAUNCH, args);\n"
                "    if (status != KILN_OK)\n"
                "        *kernel = NULL;\n"
                "    return status;\n}\n",
                f->family->name);
}

static void write_candidates_function(arena *a, text *out, const bundle_family *f)
{
    const kiln_family *family = f->family;
    text_add(out, "\n");
    c_add_query_prototype(out, f, "candidates", ")\n{\n");
    write_check_of_result(out, f, "!count || (capacity > 0 && !list)",
                          "count, or list with a capacity, is null");
    text_add(out, "    *count = 0;\n");
    write_call_of_check(a, out, f, "check", "args");
    text_printf(
        out,
        "    kiln_candidate none;\n"
        "    kiln_choice choice = {.loader = loader, .limit = KILN_NO_LIMIT, .list = list ? list : &none, "
        ".capacity = capacity};\n"
        "    consider_%s(&choice, args);\n"
        "    *count = choice.count;\n"
        "    return KILN_OK;\n}\n",
        family->name);
}

void write_family_function(arena *a, text *out, const plan *p, const bundle_family *f)
{
    if (strcmp(f->function, f->variants[0]->function) == 0)
        return; /* no parameters: the variant's function is the family's */
    write_choose_function(a, out, p, f);
    write_find_function(a, out, f);
    write_pick_function(out, f);
    write_candidates_function(a, out, f);
    text_add(out, "\n");
    c_add_prototype(out, f->function, f->args_struct, ")\n{\n");
    text_printf(out,
                "    const kiln_kernel *kernel;\n"
                "    const kiln_status status = find_%s(loader, args, &kernel);\n"
                "    return kernel ? kernel->run(loader, stream, args) : status;\n"
                "}\n",
                f->family->name);
}
