/* Reads JSON. */
#include "reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool reader_open(reader *r, const char *text, size_t length)
{
    struct fy_diag_cfg diag_configuration;
    fy_diag_cfg_default(&diag_configuration);
    struct fy_diag *diag = fy_diag_create(&diag_configuration);
    if (!diag) {
        snprintf(r->error, r->error_bytes, "%s: no memory to read it", r->what);
        return false;
    }
    fy_diag_set_collect_errors(diag, true);
    struct fy_parse_cfg configuration = {.flags = FYPCF_QUIET | FYPCF_JSON_FORCE, .diag = diag};
    r->document = fy_document_build_from_string(&configuration, text, length);
    if (!r->document) {
        void *iterator = NULL;
        const struct fy_diag_error *first = fy_diag_errors_iterate(diag, &iterator);
        snprintf(r->error, r->error_bytes, "%s, line %zu: %s", r->what,
                 r->line ? r->line : (size_t)(first ? first->line : 0), first ? first->msg : "not JSON");
    }
    fy_diag_destroy(diag);
    return r->document != NULL;
}

void reader_close(reader *r)
{
    fy_document_destroy(r->document);
}

void reader_refuse(reader *r, const char *format, ...)
{
    char what[512], line[32] = "";
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    if (r->line)
        snprintf(line, sizeof line, ", line %zu", r->line);
    snprintf(r->error, r->error_bytes, "%s%s%s%s: %s", r->what, line, r->where[0] ? ", " : "", r->where,
             what);
    longjmp(r->failed, 1);
}

fy_node *reader_find_member(reader *r, fy_node *object, const char *name)
{
    if (!fy_node_is_mapping(object))
        reader_refuse(r, "expected an object with '%s'", name);
    fy_node *member = fy_node_mapping_lookup_by_string(object, name, strlen(name));
    size_t length = 0;
    const char *text = member && fy_node_is_scalar(member) ? fy_node_get_scalar(member, &length) : NULL;
    bool is_null = text && length == 4 && memcmp(text, "null", 4) == 0;
    return is_null ? NULL : member;
}

fy_node *reader_get_member(reader *r, fy_node *object, const char *name)
{
    fy_node *member = reader_find_member(r, object, name);
    if (!member)
        reader_refuse(r, "'%s' is missing", name);
    return member;
}

const char *reader_get_text(reader *r, fy_node *node, const char *name)
{
    size_t length = 0;
    const char *text = fy_node_is_scalar(node) ? fy_node_get_scalar(node, &length) : NULL;
    if (!text)
        reader_refuse(r, "'%s' is not a text", name);
    return pool_copy(r->memory, text, length);
}

const char *reader_get_text_member(reader *r, fy_node *object, const char *name)
{
    return reader_get_text(r, reader_get_member(r, object, name), name);
}

const char *reader_find_text(reader *r, fy_node *object, const char *name)
{
    fy_node *member = reader_find_member(r, object, name);
    return member ? reader_get_text(r, member, name) : NULL;
}

uint64_t reader_parse_number(reader *r, const char *text, const char *name, int base)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, base);
    if (!*text || *end || *text == '-' || errno)
        reader_refuse(r, "'%s' is '%s', no number", name, text);
    return value;
}

uint64_t reader_get_number_member(reader *r, fy_node *object, const char *name)
{
    return reader_parse_number(r, reader_get_text_member(r, object, name), name, 10);
}

size_t reader_get_count(reader *r, fy_node *array, const char *name)
{
    if (!fy_node_is_sequence(array))
        reader_refuse(r, "'%s' is not an array", name);
    return (size_t)fy_node_sequence_item_count(array);
}
