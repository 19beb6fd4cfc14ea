/* YAML as a tree with places, and what is wrong with it: on stderr, "file:line:column: error: text". */
#ifndef TUNE_YAML_H
#define TUNE_YAML_H

#include <stdbool.h>

#include "../support/pool.h"

typedef enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAP } yaml_kind;

typedef struct yaml_node yaml_node;
struct yaml_node {
    yaml_kind kind;
    const char *file;
    int line, column; /* from 1; of a list or mapping those of what it begins with */
    const char *text; /* YAML_SCALAR */
    const char *key;  /* in a mapping */
    yaml_node *first; /* YAML_LIST, YAML_MAP */
    yaml_node *next;
};

/* Null after a message: there is no such file, or it is not YAML. is_missing, where not null: a file that is not there is no
 * mistake, null comes back without a message. */
yaml_node *yaml_read(pool *p, const char *path, bool *is_missing);

/* Null when there is none of this name. */
const yaml_node *yaml_member(const yaml_node *map, const char *key);

/* Each prints where it is false. */
bool yaml_is_kind(const yaml_node *node, yaml_kind kind, const char *expected);
bool yaml_check_keys(const yaml_node *map, const char *keys, const char *of);
__attribute__((format(printf, 2, 3))) void yaml_complain(const yaml_node *node, const char *format, ...);

/* Reads a number of at most 18 digits; false if it is not one, and nothing is printed. */
bool yaml_number(const yaml_node *node, unsigned long long *value);

#endif
