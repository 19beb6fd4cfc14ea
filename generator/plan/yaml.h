/* YAML 1.2 text -> a tree with places, without features that configurations do not use. */
#ifndef PLAN_YAML_H
#define PLAN_YAML_H

#include "support/arena.h"
#include "support/diagnostics.h"

typedef enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAP } yaml_kind;

typedef struct yaml_node yaml_node;
struct yaml_node {
    yaml_kind kind;
    place at;
    const char *text; /* YAML_SCALAR; a NUL in it becomes '?' */
    bool quoted;      /* quoted or a block: never a number, a boolean or null */
    bool refused;     /* already diagnosed: report nothing more about it */

    yaml_node *first; /* YAML_LIST: its elements; YAML_MAP: its values */
    yaml_node *next;  /* its next sibling */
    const char *key;  /* in a mapping */
    place key_at;
};

/* Parses one document. Diagnostics for invalid YAML (the result is then null) and for byte sequences that are not
 * UTF-8, tags, anchors, aliases, merge keys, duplicate keys, keys that are not words, further documents and deep
 * nesting. `file` is its name in diagnostics. */
yaml_node *yaml_parse(arena *a, const char *file, const char *data, size_t bytes, diagnostics *d);

/* The value under a key; null if there is none, or `map` is not a mapping or is null. */
const yaml_node *yaml_member(const yaml_node *map, const char *key);

/* Whether a plain scalar is YAML's null: nothing, ~ or null. */
bool yaml_is_null(const yaml_node *node);

#endif
