/* Reads libfyaml's events instead of its documents: documents resolve and drop what must be diagnosed here. Marks of
 * libfyaml 0.7.12 count from 0, the places of its errors from 1. */
#include "yaml.h"

#include <stdlib.h>
#include <string.h>

#include <libfyaml.h>

#include "support/messages.h"
#include "support/names.h"
#include "support/quote.h"
#include "support/utf8.h"

enum { DEEPEST = 8 };

typedef struct reader {
    arena *arena;
    const char *file, *data;
    size_t bytes;
    diagnostics *d;
    struct fy_parser *parser;
    bool stopped; /* a diagnostic ended the reading */
    bool partial; /* the tree is not whole */
} reader;

/* ---- UTF-8 ------------------------------------------------------------------------------------------------------ */

static bool check_utf8(const reader *r)
{
    place at = {r->file, 1, 1};
    for (size_t i = 0, length; i < r->bytes; i += length) {
        length = utf8_sequence(r->data + i, r->bytes - i);
        if (length == 0) {
            diagnose(r->d, at, message_not_utf8, (unsigned char)r->data[i]);
            return false;
        }
        at.column++;
        if (r->data[i] == '\n')
            at = (place){r->file, at.line + 1, 1};
    }
    return true;
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

static place place_of(const reader *r, const struct fy_mark *mark, place otherwise)
{
    return mark ? (place){r->file, mark->line + 1, mark->column + 1} : otherwise;
}

static const char *token_text(const reader *r, struct fy_token *token)
{
    size_t length = 0;
    const char *from = token ? fy_token_get_text(token, &length) : NULL;
    char *copy = arena_string(r->arena, from ? from : "", from ? length : 0);
    for (size_t i = 0; from && i < length; i++)
        if (copy[i] == '\0')
            copy[i] = '?';
    return copy;
}

/* A token's source text: libfyaml expands tags. */
static const char *token_source(const reader *r, struct fy_token *token)
{
    const struct fy_mark *start = fy_token_start_mark(token), *end = fy_token_end_mark(token);
    if (!start || !end || end->input_pos > r->bytes || start->input_pos >= end->input_pos)
        return quote_text(r->arena, token_text(r, token));
    const char *source =
        arena_string(r->arena, r->data + start->input_pos, end->input_pos - start->input_pos);
    return quote_text(r->arena, source);
}

/* libfyaml's marks of anchors and aliases come after their '&' or '*'. */
static place before(place at)
{
    at.column -= at.column > 1;
    return at;
}

static yaml_node *new_node(reader *r, struct fy_event *event, yaml_kind kind, place otherwise)
{
    yaml_node *node = arena_alloc(r->arena, sizeof *node);
    node->kind = kind;
    node->at = place_of(r, fy_event_start_mark(event), otherwise);
    struct fy_token *tag = fy_event_get_tag_token(event), *anchor = fy_event_get_anchor_token(event);
    if (tag) {
        place at = place_of(r, fy_token_start_mark(tag), node->at);
        diagnose(r->d, at, message_yaml_tag, token_source(r, tag));
    }
    if (anchor) {
        place at = before(place_of(r, fy_token_start_mark(anchor), node->at));
        diagnose(r->d, at, message_yaml_anchor, quote_text(r->arena, token_text(r, anchor)));
    }
    node->refused = tag || anchor;
    return node;
}

static yaml_node *new_scalar(reader *r, struct fy_event *event, place otherwise)
{
    yaml_node *node = new_node(r, event, YAML_SCALAR, otherwise);
    struct fy_token *token = fy_event_get_token(event);
    node->text = token_text(r, token);
    node->quoted = token && fy_token_scalar_style(token) != FYSS_PLAIN;
    return node;
}

static yaml_node *new_alias(reader *r, struct fy_event *event, place otherwise)
{
    yaml_node *node = new_node(r, event, YAML_SCALAR, otherwise);
    node->text = token_text(r, fy_event_get_token(event));
    node->at = before(node->at);
    diagnose(r->d, node->at, message_yaml_alias, quote_text(r->arena, node->text));
    node->refused = true;
    return node;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static yaml_node *read_node(reader *r, struct fy_event *event, place otherwise, int depth);

/* The next event, which the caller frees; null at the end or after a syntax error. */
static struct fy_event *next_event(reader *r)
{
    return r->stopped ? NULL : fy_parser_parse(r->parser);
}

static void read_list(reader *r, yaml_node *list, int depth)
{
    yaml_node **end = &list->first;
    for (struct fy_event *event; (event = next_event(r));) {
        enum fy_event_type type = event->type;
        if (type != FYET_SEQUENCE_END) {
            *end = read_node(r, event, list->at, depth);
            if (*end)
                end = &(*end)->next;
        }
        fy_parser_event_free(r->parser, event);
        if (type == FYET_SEQUENCE_END)
            return;
    }
}

/* Whether a key is allowed in a mapping with these keys, given with their lines; otherwise a diagnostic. */
static bool take_key(reader *r, name_table *keys, const yaml_node *key)
{
    if (key->refused)
        return false;
    if (key->kind != YAML_SCALAR || yaml_is_null(key)) {
        static const char *const kinds[] = {"nothing", "a list", "a mapping"};
        diagnose(r->d, key->at, message_key_kind, kinds[key->kind]);
        return false;
    }
    if (strcmp(key->text, "<<") == 0 && !key->quoted) {
        diagnose(r->d, key->at, message_yaml_merge_key);
        return false;
    }
    const size_t first_line = names_add(r->arena, keys, key->text, (size_t)key->at.line);
    if (first_line != NAME_NONE)
        diagnose(r->d, key->at, message_duplicate_key, quote_text(r->arena, key->text), (int)first_line);
    return first_line == NAME_NONE;
}

static void read_map(reader *r, yaml_node *map, int depth)
{
    yaml_node **end = &map->first;
    const yaml_node *key = NULL;
    name_table keys = {0};
    for (struct fy_event *event; (event = next_event(r));) {
        enum fy_event_type type = event->type;
        if (type != FYET_MAPPING_END) {
            yaml_node *node = read_node(r, event, key ? key->at : map->at, depth);
            if (node && key && take_key(r, &keys, key)) {
                node->key = key->text;
                node->key_at = key->at;
                *end = node;
                end = &node->next;
            }
            key = key ? NULL : node;
        }
        fy_parser_event_free(r->parser, event);
        if (type == FYET_MAPPING_END)
            return;
    }
}

/* Reads the node that an event begins. The caller keeps the event; its data is copied before the next event. */
static yaml_node *read_node(reader *r, struct fy_event *event, place otherwise, int depth)
{
    if (event->type == FYET_SCALAR)
        return new_scalar(r, event, otherwise);
    if (event->type == FYET_ALIAS)
        return new_alias(r, event, otherwise);
    bool is_list = event->type == FYET_SEQUENCE_START;
    yaml_node *node = new_node(r, event, is_list ? YAML_LIST : YAML_MAP, otherwise);
    if (depth == DEEPEST) {
        diagnose(r->d, node->at, message_yaml_too_deep, DEEPEST);
        r->stopped = r->partial = true;
        return NULL;
    }
    if (is_list)
        read_list(r, node, depth + 1);
    else
        read_map(r, node, depth + 1);
    return node;
}

/* ---- the stream ------------------------------------------------------------------------------------------------- */

static yaml_node *read_stream(reader *r)
{
    place start = {r->file, 1, 1};
    yaml_node *root = NULL;
    int documents = 0;
    for (struct fy_event *event; (event = next_event(r));) {
        enum fy_event_type type = event->type;
        if (type == FYET_DOCUMENT_START && documents++ > 0) {
            diagnose(r->d, place_of(r, fy_event_start_mark(event), start), message_yaml_second_document);
            r->stopped = true;
        } else if (type == FYET_SCALAR || type == FYET_ALIAS || type == FYET_SEQUENCE_START ||
                   type == FYET_MAPPING_START) {
            root = read_node(r, event, start, 0);
        }
        fy_parser_event_free(r->parser, event);
    }
    return root;
}

static void report_syntax(const reader *r, struct fy_diag *diag)
{
    void *cursor = NULL;
    struct fy_diag_error *error = fy_diag_errors_iterate(diag, &cursor);
    place at = {r->file, error ? error->line : 1, error ? error->column : 1};
    diagnose(r->d, at, message_yaml_syntax, error && error->msg ? error->msg : "the parser gives no reason");
}

static struct fy_diag *new_diag(void)
{
    struct fy_diag_cfg config;
    fy_diag_cfg_default(&config);
    config.fp = NULL;
    config.colorize = false;
    struct fy_diag *diag = fy_diag_create(&config);
    if (diag)
        fy_diag_set_collect_errors(diag, true);
    return diag;
}

yaml_node *yaml_parse(arena *a, const char *file, const char *data, size_t bytes, diagnostics *d)
{
    reader r = {.arena = a, .file = file, .data = data, .bytes = bytes, .d = d};
    if (!check_utf8(&r))
        return NULL;
    struct fy_diag *diag = new_diag();
    const struct fy_parse_cfg config = {.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG |
                                                 FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE,
                                        .diag = diag};
    r.parser = diag ? fy_parser_create(&config) : NULL;
    if (!r.parser || fy_parser_set_string(r.parser, data, bytes) != 0)
        internal_error("libfyaml cannot be started");
    yaml_node *root = read_stream(&r);
    bool is_yaml = r.stopped || !fy_parser_get_stream_error(r.parser);
    if (!is_yaml)
        report_syntax(&r, diag);
    fy_parser_destroy(r.parser);
    fy_diag_destroy(diag);
    return is_yaml && !r.partial ? root : NULL;
}

const yaml_node *yaml_member(const yaml_node *map, const char *key)
{
    for (const yaml_node *node = map && map->kind == YAML_MAP ? map->first : NULL; node; node = node->next)
        if (strcmp(node->key, key) == 0)
            return node;
    return NULL;
}

bool yaml_is_null(const yaml_node *node)
{
    if (node->kind != YAML_SCALAR || node->quoted)
        return false;
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++)
        if (strcmp(node->text, nulls[i]) == 0)
            return true;
    return false;
}
