/* What is said of any node: a wrong kind, an unknown key. */
#include "config_reader.h"

#include <string.h>

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

bool reader_is_kind(const reader *r, const yaml_node *node, yaml_kind kind, const char *key,
                    const char *expected)
{
    if (node->refused)
        return false;
    if (yaml_is_null(node)) {
        /* libfyaml gives no place for a value that is not there: the parser took the key's. */
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

/* Its characters, which are safe in a comment of C: identifiers, AND, OR, WITH and parentheses. */
const char *reader_license(const reader *r, const yaml_node *node)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-:() ";
    if (!reader_is_kind(r, node, YAML_SCALAR, "license", "an SPDX license expression"))
        return NULL;
    const char *s = node->text;
    if (*s && s[0] != ' ' && s[strlen(s) - 1] != ' ' && s[strspn(s, allowed)] == '\0')
        return s;
    diagnose(r->d, node->at, message_license, quote_text(r->arena, s));
    return NULL;
}
