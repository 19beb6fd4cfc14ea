/* YAML as a tree with places. libfyaml 0.7.12 counts the marks of nodes from 0, but the places of errors from 1. */
#include "yaml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfyaml.h>

#include "../support/files.h"

void yaml_complain(const yaml_node *node, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "%s:%d:%d: error: ", node->file, node->line, node->column);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
}

/* ---- the tree ----------------------------------------------------------------------------------------------------- */

static void set_place(yaml_node *made, struct fy_node *from)
{
    const struct fy_mark *mark =
        fy_node_is_scalar(from) ? fy_token_start_mark(fy_node_get_scalar_token(from)) : NULL;
    if (mark) {
        made->line = mark->line + 1;
        made->column = mark->column + 1;
    }
}

static yaml_node *copy_node(pool *p, const char *file, struct fy_node *from)
{
    yaml_node *made = pool_allocate(p, sizeof *made), **end = &made->first;
    void *iterator = NULL;
    *made = (yaml_node){.file = file, .line = 1, .column = 1};
    size_t length = 0;
    const char *text = from && fy_node_is_scalar(from) ? fy_node_get_scalar(from, &length) : "";
    if (!from || fy_node_is_scalar(from)) {
        made->text = pool_copy(p, text ? text : "", text ? length : 0);
        if (from)
            set_place(made, from);
        return made;
    }
    made->kind = fy_node_is_mapping(from) ? YAML_MAP : YAML_LIST;
    if (made->kind == YAML_LIST) {
        for (struct fy_node *item; (item = fy_node_sequence_iterate(from, &iterator)); end = &(*end)->next)
            *end = copy_node(p, file, item);
    } else {
        for (struct fy_node_pair *pair; (pair = fy_node_mapping_iterate(from, &iterator));
             end = &(*end)->next) {
            const yaml_node *key = copy_node(p, file, fy_node_pair_key(pair));
            *end = copy_node(p, file, fy_node_pair_value(pair));
            (*end)->key = key->kind == YAML_SCALAR ? key->text : "";
            (*end)->line = key->line;
            (*end)->column = key->column;
        }
    }
    if (made->first) {
        made->line = made->first->line;
        made->column = made->first->column;
    }
    return made;
}

/* ---- the file ----------------------------------------------------------------------------------------------------- */

static void report_syntax(const char *path, struct fy_diag *diag)
{
    void *iterator = NULL;
    const struct fy_diag_error *first = fy_diag_errors_iterate(diag, &iterator);
    fprintf(stderr, "%s:%d:%d: error: not valid YAML: %s\n", path, first ? first->line : 1,
            first ? first->column : 1, first && first->msg ? first->msg : "the parser gives no reason");
}

yaml_node *yaml_read(pool *p, const char *path, bool *is_missing)
{
    size_t length = 0;
    const char *text = file_read(p, path, &length);
    if (is_missing)
        *is_missing = !text && errno == ENOENT;
    if (!text && !(is_missing && *is_missing))
        fprintf(stderr, "%s: error: cannot read: %s\n", path, strerror(errno));
    if (!text)
        return NULL;
    struct fy_diag_cfg diag_configuration;
    fy_diag_cfg_default(&diag_configuration);
    diag_configuration.fp = NULL;
    struct fy_diag *diag = fy_diag_create(&diag_configuration);
    fy_diag_set_collect_errors(diag, true);
    const struct fy_parse_cfg configuration = {
        .flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_DEFAULT_VERSION_1_2, .diag = diag};
    struct fy_document *document = fy_document_build_from_string(&configuration, text, length);
    void *iterator = NULL;
    yaml_node *root = NULL;
    if (document || !fy_diag_errors_iterate(diag, &iterator)) /* otherwise the file is empty */
        root = copy_node(p, path, document ? fy_document_root(document) : NULL);
    else
        report_syntax(path, diag);
    fy_document_destroy(document);
    fy_diag_destroy(diag);
    return root;
}

/* ---- checks of nodes ---------------------------------------------------------------------------------------------- */

const yaml_node *yaml_member(const yaml_node *map, const char *key)
{
    for (const yaml_node *node = map->kind == YAML_MAP ? map->first : NULL; node; node = node->next)
        if (strcmp(node->key, key) == 0)
            return node;
    return NULL;
}

bool yaml_is_kind(const yaml_node *node, yaml_kind kind, const char *expected)
{
    static const char *const found[] = {
        [YAML_SCALAR] = "a value", [YAML_LIST] = "a list", [YAML_MAP] = "a mapping"};
    const bool is_empty = node->kind == YAML_SCALAR ? !*node->text : !node->first;
    if (node->kind == kind && !is_empty)
        return true;
    yaml_complain(node, "expected %s%s%s%s, found %s", expected, node->key ? " for '" : "",
                  node->key ? node->key : "", node->key ? "'" : "", is_empty ? "nothing" : found[node->kind]);
    return false;
}

bool yaml_check_keys(const yaml_node *map, const char *keys, const char *of)
{
    bool ok = true;
    for (const yaml_node *node = map->first; node; node = node->next) {
        const char *word = keys;
        const size_t length = strlen(node->key);
        while (*word && (strncmp(word, node->key, length) != 0 || (word[length] && word[length] != ' '))) {
            word += strcspn(word, " ");
            word += *word == ' ';
        }
        if (*word && length > 0)
            continue;
        ok = false;
        yaml_complain(node, "expected a key of %s, found '%s'; there are %s", of, node->key, keys);
    }
    return ok;
}

bool yaml_number(const yaml_node *node, unsigned long long *value)
{
    enum { DIGITS = 18 };
    if (node->kind != YAML_SCALAR)
        return false;
    const size_t digits = strspn(node->text, "0123456789");
    *value = strtoull(node->text, NULL, 10);
    return digits > 0 && digits <= DIGITS && !node->text[digits];
}
