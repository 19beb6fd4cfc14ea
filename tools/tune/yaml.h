/* YAML as a tree with places. Mistakes are reported on stderr as "file:line:column: error: text". */
#ifndef TUNE_YAML_H
#define TUNE_YAML_H

#include <stdbool.h>

#include "../support/pool.h"

typedef enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAP } yaml_kind;

typedef struct yaml_node yaml_node;
struct yaml_node {
    yaml_kind kind;
    const char *file;
    int line, column; /* from 1; for a list or mapping, those of its first element */
    const char *text; /* YAML_SCALAR */
    const char *key;  /* in a mapping */
    yaml_node *first; /* YAML_LIST, YAML_MAP */
    yaml_node *next;
};

/* Reads a file. Null after a message: the file does not exist or is not YAML. is_missing, if not null: a missing
 * file is no mistake; returns null without a message. */
yaml_node *yaml_read(pool *p, const char *path, bool *is_missing);

/* Returns the member; null if there is none with this name. */
const yaml_node *yaml_member(const yaml_node *map, const char *key);

/* Each prints a message if it is false. */
bool yaml_is_kind(const yaml_node *node, yaml_kind kind, const char *expected);
bool yaml_check_keys(const yaml_node *map, const char *keys, const char *of);
__attribute__((format(printf, 2, 3))) void yaml_complain(const yaml_node *node, const char *format, ...);

/* Parses a number of at most 18 digits; false, without a message, if it is not one. */
bool yaml_number(const yaml_node *node, unsigned long long *value);

#endif
