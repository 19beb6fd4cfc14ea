/* Checks that apply to any node: its kind, its keys. */
#include "config_reader.h"

#include <string.h>

#include "support/files.h"
#include "support/messages.h"
#include "support/quote.h"
#include "support/words.h"

const char *reader_quote(const reader *r, const yaml_node *node)
{
    if (node->kind != YAML_SCALAR)
        return node->kind == YAML_LIST ? "a list" : "a mapping";
    if (yaml_is_null(node))
        return "nothing";
    const char *quote = node->quoted ? "\"" : "'";
    return arena_format(r->arena, "%s%s%s", quote, quote_text(r->arena, node->text), quote);
}

const char *reader_old_boolean(const char *word)
{
    return words_contain("yes Yes YES on On ON True TRUE", word)     ? "true"
           : words_contain("no No NO off Off OFF False FALSE", word) ? "false"
                                                                     : NULL;
}

const char *reader_suggest_boolean(const reader *r, const char *word)
{
    char buffer[8];
    const char *old = reader_old_boolean(word);
    const char *meant = old ? old : nearest_word(word, "true false", buffer, sizeof buffer);
    return meant ? arena_format(r->arena, "; did you mean '%s'?", meant) : "";
}

bool reader_is_kind(const reader *r, const yaml_node *node, yaml_kind kind, const char *key,
                    const char *expected)
{
    if (node->refused)
        return false;
    if (yaml_is_null(node)) {
        /* libfyaml gives no place for a missing value: the parser took the key's. */
        diagnose(r->d, node->at, message_null_value, expected, key);
        return false;
    }
    if (node->kind != kind) {
        diagnose(r->d, node->at, message_wrong_kind, expected, key, reader_quote(r, node));
        return false;
    }
    if (kind == YAML_LIST && !node->first) {
        diagnose(r->d, node->at, message_empty_list, expected, key);
        return false;
    }
    return true;
}

bool reader_is_path(const reader *r, const yaml_node *node, const char *key, const char *expected)
{
    if (!reader_is_kind(r, node, YAML_SCALAR, key, expected))
        return false;
    if (!*node->text)
        diagnose(r->d, node->at, message_wrong_kind, expected, key, reader_quote(r, node));
    return *node->text;
}

bool reader_check_keys(const reader *r, const yaml_node *map, const char *keys, const char *of)
{
    bool ok = true;
    for (const yaml_node *node = map->first; node; node = node->next) {
        if (words_contain(keys, node->key))
            continue;
        ok = false;
        diagnose(r->d, node->key_at, message_unknown_key, of,
                 arena_format(r->arena, "'%s'", quote_text(r->arena, node->key)),
                 suggest_text(r->arena, node->key, keys));
    }
    return ok;
}

const yaml_node *reader_earlier(const yaml_node *list, const yaml_node *node)
{
    for (const yaml_node *n = list->first; node->kind == YAML_SCALAR && n && n != node; n = n->next)
        if (n->kind == YAML_SCALAR && !n->refused && strcmp(n->text, node->text) == 0)
            return n;
    return NULL;
}

const char *reader_path(const reader *r, const char *asked)
{
    const char *slash = strrchr(r->plan->config_path, '/');
    if (!slash || asked[0] == '/')
        return asked;
    const size_t folder = (size_t)(slash - r->plan->config_path) + 1;
    return arena_format(r->arena, "%s%s", arena_string(r->arena, r->plan->config_path, folder), asked);
}

const kiln_family *reader_find_family(const reader *r, const char *name)
{
    const size_t i = names_find(&r->family_names, name, strlen(name));
    if (i != NAME_NONE)
        return r->plan->variants[i]->family;
    for (size_t k = 0; k < r->plan->shaped_count; k++)
        if (strcmp(r->plan->shaped[k].request.family->name, name) == 0)
            return r->plan->shaped[k].request.family;
    return NULL;
}

void reader_add_input(reader *r, const char *path)
{
    if (!file_is_stream(path))
        *(const char **)arena_push(r->arena, (void **)&r->plan->inputs, &r->plan->input_count,
                                   &r->plan->input_capacity, sizeof path) = path;
}

/* ---- licenses: SPDX expressions (SPDX specification, annex on license expressions) -------------------------------- */

static const char *skip_spaces(const char *s)
{
    return s + strspn(s, " ");
}

/* Skips a word of a license; null: there is none, or it is an operator. */
static const char *skip_license_id(const char *s)
{
    static const char in_ids[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:";
    s = skip_spaces(s);
    const size_t length = strspn(s, in_ids);
    for (const char *const *word = (const char *const[]){"AND", "OR", "WITH", NULL}; *word; word++)
        if (length == strlen(*word) && strncmp(s, *word, length) == 0)
            return NULL;
    return length > 0 ? s + length : NULL;
}

static const char *skip_word(const char *s, const char *word)
{
    const size_t length = strlen(word);
    s = skip_spaces(s);
    return strncmp(s, word, length) == 0 && strchr(" (", s[length]) && s[length] ? s + length : NULL;
}

enum { DEEPEST_LICENSE = 16 };

/* Skips "MIT", "GPL-2.0+ WITH x" or "(...)", and further ones after AND and OR; null: there is none. */
static const char *skip_license(const char *s, int depth)
{
    for (;;) {
        const char *with;
        s = skip_spaces(s);
        if (*s == '(') {
            s = depth < DEEPEST_LICENSE ? skip_license(s + 1, depth + 1) : NULL;
            s = s ? skip_spaces(s) : NULL;
            s = s && *s == ')' ? s + 1 : NULL;
        } else {
            s = skip_license_id(s);
            s = s && *s == '+' ? s + 1 : s;
            if (s && (with = skip_word(s, "WITH")))
                s = skip_license_id(with);
        }
        const char *next = s ? skip_word(s, "AND") : NULL;
        next = s && !next ? skip_word(s, "OR") : next;
        if (!next)
            return s;
        s = next;
    }
}

const char *reader_license(const reader *r, const yaml_node *node)
{
    if (!reader_is_kind(r, node, YAML_SCALAR, "license", "an SPDX license expression"))
        return NULL;
    const char *end = skip_license(node->text, 0);
    if (end && *end == '\0')
        return node->text;
    diagnose(r->d, node->at, message_license, quote_text(r->arena, node->text));
    return NULL;
}
