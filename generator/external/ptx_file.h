/* The contents of an external PTX file: targets, entries and their parameters, read from its text. */
#ifndef EXTERNAL_PTX_FILE_H
#define EXTERNAL_PTX_FILE_H

#include "support/arena.h"
#include "support/diagnostics.h"
#include "support/names.h"
#include "target/target.h"

typedef struct ptx_file_param {
    const char *name;
    const char *type;   /* of one element, without the dot: "u32", "b8" */
    uint32_t bytes;     /* of the whole parameter */
    uint32_t alignment; /* of the parameter; for a pointer, the alignment that .ptr promises: 0 if none */
    bool is_array;      /* a struct by value: .b8 p[24] */
    bool is_pointer;    /* has .ptr; a .u64 without it may be a pointer too */
} ptx_file_param;

typedef struct ptx_file_entry {
    const char *name;
    place at;
    ptx_file_param *params;
    size_t param_count, param_capacity;
    uint32_t reqntid[3], maxntid[3]; /* threads; all 0 without the directive */
    bool has_dynamic_shared;         /* it, or a function of the file, uses a .extern .shared array */
} ptx_file_entry;

typedef struct ptx_file {
    const char *path;   /* in diagnostics */
    const char *asked;  /* in the configuration */
    const char *source; /* of the file */
    size_t source_bytes;
    const char *ptx; /* to embed: without a trailing NUL or line information */
    size_t bytes;
    target says, made_for; /* .target, and its current name */
    uint16_t version;      /* 78 is .version 7.8 */
    uint32_t min_driver;
    place debug_at; /* of "debug" after .target; line 0: absent */
    ptx_file_entry *entries;
    size_t entry_count, entry_capacity;
    name_table entry_names; /* indices into entries */
} ptx_file;

/* Reads a file; `asked` and `at` are its name and place in the configuration. Null after diagnostics: it cannot be
 * read, is not PTX, has an unknown version or 32-bit addresses, has no .entry, or needs a symbol that no driver has. */
ptx_file *ptx_file_read(arena *a, const char *path, const char *asked, place at, diagnostics *d);

/* Reads a text in memory, with a NUL after its bytes. */
ptx_file *ptx_file_read_text(arena *a, const char *path, const char *asked, const char *data, size_t bytes,
                             diagnostics *d);

/* Null if there is none. */
const ptx_file_entry *ptx_file_find(const ptx_file *file, const char *name);

#endif
