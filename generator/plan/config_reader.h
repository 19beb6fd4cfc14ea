/* Shared by the readers of a configuration's parts: config.c reads the whole, config_ptx.c the ptx: items. */
#ifndef PLAN_CONFIG_READER_H
#define PLAN_CONFIG_READER_H

#include "config.h"
#include "plan.h"
#include "support/names.h"
#include "yaml.h"

enum { LONGEST_BUNDLE = 47 /* kiln_bundle.name holds 48 bytes */ };
extern const char image_formats[], image_codecs[];

typedef struct reader {
    arena *arena;
    diagnostics *d;
    plan *plan;
    place *target_places; /* parallel to plan->targets */
    const config_options *options;
    bool *is_ptx_used; /* parallel to options->ptx */
    size_t budget_capacity;
    bool has_wrong_target; /* a target that no variant serves is then not reported */
    bool takes_stranded;   /* variants that run on no target are allowed */
    /* A family's name to its first variant: only external PTX while `kernels` is read, all families afterwards. */
    name_table family_names;
} reader;

/* A node as "found": 'word', a list, a mapping, nothing. */
const char *reader_quote(const reader *r, const yaml_node *node);

/* "true" or "false" for a boolean of YAML 1.1, such as 'yes' or 'True', which kiln reads as text; otherwise
 * null. */
const char *reader_old_boolean(const char *word);

/* "; did you mean 'true'?" for such words and misspellings; otherwise empty. */
const char *reader_suggest_boolean(const reader *r, const char *word);

/* Whether the node is a scalar with a value, a list with elements or a mapping; otherwise a diagnostic. */
bool reader_is_kind(const reader *r, const yaml_node *node, yaml_kind kind, const char *key,
                    const char *expected);

/* Returns whether the node is a path that is not empty; otherwise reports what was expected. */
bool reader_is_path(const reader *r, const yaml_node *node, const char *key, const char *expected);

/* Diagnostics for keys of a mapping that are not among these words; true if there are none. */
bool reader_check_keys(const reader *r, const yaml_node *map, const char *keys, const char *of);

/* The element of `list` before `node` that is equal to it, or null. */
const yaml_node *reader_earlier(const yaml_node *list, const yaml_node *node);

/* Reads a number between two limits; otherwise false after a diagnostic. */
bool reader_number(const reader *r, const yaml_node *node, const char *key, uint64_t least, uint64_t most,
                   uint64_t *value);

typedef struct shape_list {
    call_shape *items;
    size_t count, capacity;
} shape_list;

/* Appends the shapes of a mapping from sizes to values: shapes.c has the grammar. `like` is a variant of the family, in
 * whose scope expressions are checked; null: a measured shape, whose sizes are numbers. False after a diagnostic. */
bool reader_read_shape(const reader *r, const kiln_family *family, const variant *like, const yaml_node *map,
                       shape_list *out);

/* The keys of an item with `shapes`: shaped.c. */
extern const char shaped_keys[];
enum { MOST_CHOSEN = 64 }; /* the limit of max_variants */
void reader_read_shaped(reader *r, const yaml_node *item, const request *asked);

/* A file's path: relative paths start at the configuration's folder. */
const char *reader_path(const reader *r, const char *asked);

/* The family of this name if it has a variant; otherwise null. Call it after `kernels` is read. */
const kiln_family *reader_find_family(const reader *r, const char *name);

/* Records an input file, for the depfile. Skips pipes, since they cannot be read again. */
void reader_add_input(reader *r, const char *path);

/* An SPDX expression, which is safe in a C comment; or null after a diagnostic. */
const char *reader_license(const reader *r, const yaml_node *node);

void reader_read_kernel(reader *r, const yaml_node *item);

/* Reads a kernels: item with `ptx`. */
void reader_read_ptx(reader *r, const yaml_node *item);

/* Reads the files that `tuned` lists: tuned.c. Call it after `kernels` is read. */
void reader_read_tuned(reader *r, const yaml_node *list);

/* Diagnostics for --ptx names that no item embeds. */
void reader_check_ptx_names(const reader *r);

#endif
