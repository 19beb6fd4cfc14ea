/* Sizes and offsets of the structs that callers fill or read, for callers in other languages: in the manifest, and as
 * assertions in C, so that the bundle does not compile where a machine or a compiler has another layout. */
#include "write.h"

#include <string.h>

#include <kiln/kiln.h>

#include "c_text.h"

/* ---- the runtime's structs --------------------------------------------------------------------------------------- */

typedef struct row {
    const char *of, *member; /* member null: the struct itself */
    size_t offset;           /* or the struct's size */
    size_t alignment;        /* of a struct */
} row;

#define STRUCT(type)                                                                                         \
    {                                                                                                        \
#type, NULL, sizeof(type), _Alignof(type)                                                            \
    }
#define MEMBER(type, member)                                                                                 \
    {                                                                                                        \
#type, #member, offsetof(type, member), 0                                                            \
    }
#define ENTRY(name, symbol, parameters) MEMBER(kiln_driver, name),

/* clang-format off */
static const row rows[] = {
    STRUCT(kiln_driver),
    MEMBER(kiln_driver, library),
    KILN_DRIVER_FUNCTIONS(ENTRY)
    STRUCT(kiln_options),
    MEMBER(kiln_options, wait),
    MEMBER(kiln_options, wait_context),
    MEMBER(kiln_options, check_image),
    MEMBER(kiln_options, log),
    MEMBER(kiln_options, log_bytes),
    MEMBER(kiln_options, scratch),
    MEMBER(kiln_options, scratch_bytes),
    MEMBER(kiln_options, ptx_only),
    MEMBER(kiln_options, overlap_launches),
    MEMBER(kiln_options, launch_hook),
    MEMBER(kiln_options, launch_hook_context),
    STRUCT(kiln_error),
    MEMBER(kiln_error, status),
    MEMBER(kiln_error, driver_result),
    MEMBER(kiln_error, subject),
    MEMBER(kiln_error, detail),
    MEMBER(kiln_error, needed),
    MEMBER(kiln_error, present),
    MEMBER(kiln_error, log_bytes),
    STRUCT(kiln_launch_event),
    MEMBER(kiln_launch_event, kernel),
    MEMBER(kiln_launch_event, params),
    MEMBER(kiln_launch_event, stream),
    MEMBER(kiln_launch_event, grid),
    MEMBER(kiln_launch_event, block),
    MEMBER(kiln_launch_event, shared_bytes),
    MEMBER(kiln_launch_event, is_after),
    MEMBER(kiln_launch_event, driver_result),
    STRUCT(kiln_candidate),
    MEMBER(kiln_candidate, kernel),
    MEMBER(kiln_candidate, cycles),
    MEMBER(kiln_candidate, why_not),
    STRUCT(kiln_bundle),
    MEMBER(kiln_bundle, layout_version),
    MEMBER(kiln_bundle, kernel_count),
    MEMBER(kiln_bundle, slot_count),
    MEMBER(kiln_bundle, scratch_bytes),
    STRUCT(kiln_kernel),
    MEMBER(kiln_kernel, key),
    MEMBER(kiln_kernel, id),
    MEMBER(kiln_kernel, sizes),
    STRUCT(kiln_index_family),
    MEMBER(kiln_index_family, args_bytes),
    STRUCT(kiln_slot),
    STRUCT(kiln_loader),
};
/* clang-format on */

static const row *const rows_end = rows + sizeof rows / sizeof rows[0];

void write_structs(json *j)
{
    json_key(j, "structs");
    json_begin_object(j);
    for (const row *r = rows; r < rows_end;) {
        json_key(j, r->of);
        json_begin_inline_object(j);
        json_number_member(j, "bytes", r->offset);
        json_number_member(j, "alignment", r->alignment);
        json_key(j, "offsets");
        json_begin_inline_object(j);
        for (r++; r < rows_end && r->member; r++)
            json_number_member(j, r->member, r->offset);
        json_end(j);
        json_end(j);
    }
    json_end(j);
}

/* ---- assertions -------------------------------------------------------------------------------------------------- */

/* Starts a new line if the words do not fit. */
static void add_words(text *out, size_t *line, const char *words)
{
    if (out->length - *line + strlen(words) > C_COLUMNS) {
        text_add(out, "\n   ");
        *line = out->length - strlen("   ");
    }
    text_add(out, words);
}

static void add_offset(text *out, size_t *line, const char *member, size_t offset)
{
    add_words(out, line, arena_format(out->arena, " AT(%s, %u)", member, (unsigned)offset));
}

/* Begins the assertions about STRUCT; returns the column. */
static size_t begin(text *out, const char *type, size_t bytes)
{
    text_printf(out, "#define STRUCT %s\n", type);
    const size_t line = out->length;
    text_printf(out, "_Static_assert(sizeof(STRUCT) == %u", (unsigned)bytes);
    return line;
}

static void end(text *out, size_t line)
{
    add_words(out, &line, ",");
    add_words(out, &line, " \"differs from the manifest\");");
    text_add(out, "\n#undef STRUCT\n");
}

void write_assertion_macro(text *out)
{
    text_add(out, "\n#define AT(member, offset) &&offsetof(STRUCT, member) == offset\n");
}

void write_args_assertion(text *out, const bundle_family *f)
{
    if (f->field_count == 0)
        return;
    text_add(out, "\n");
    size_t line = begin(out, f->args_struct, f->args_bytes);
    for (size_t i = 0; i < f->field_count; i++)
        add_offset(out, &line, f->fields[i].member, f->fields[i].offset);
    end(out, line);
}

void write_struct_assertions(text *out)
{
    text_add(out, "/* The structs of kiln.h that callers fill or read. */\n");
    for (const row *r = rows; r < rows_end;) {
        size_t line = begin(out, r->of, r->offset);
        add_words(out, &line, arena_format(out->arena, " && _Alignof(STRUCT) == %u", (unsigned)r->alignment));
        for (r++; r < rows_end && r->member; r++)
            add_offset(out, &line, r->member, r->offset);
        end(out, line);
    }
    text_add(out, "\n");
}
