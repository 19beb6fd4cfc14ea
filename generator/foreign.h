/* From an .entry of somebody else's PTX, and what a configuration adds to it, to a family and its only variant. */
#ifndef GENERATOR_FOREIGN_H
#define GENERATOR_FOREIGN_H

#include "ptx_file.h"

/* A text of the configuration; null: none. */
typedef struct foreign_text {
    const char *text;
    place at;
} foreign_text;

typedef struct foreign_arg {
    foreign_text name;
    foreign_text about; /* "in f32[n]", "u32" */
} foreign_arg;

/* What the configuration says of one entry. */
typedef struct foreign_request {
    const ptx_file_entry *entry;
    const foreign_module *module;
    place at;
    foreign_text name;
    foreign_arg *args;
    size_t arg_count, arg_capacity;
    bool has_args;
    bool has_descriptions; /* a mapping, in which an argument with nothing said is as the PTX has it */
    place args_at;
    foreign_text grid[3]; /* over arguments; none: the caller gives it */
    uint32_t block[3];    /* threads; 0: what the PTX or the caller says */
    place block_at;
    foreign_text shared_bytes; /* over arguments; none: the caller gives it, where the kernel takes any */
    uint32_t max_shared_bytes; /* 0: none was said */
    place max_shared_at;
    foreign_text *rules; /* conditions over arguments that hold at every launch */
    size_t rule_count, rule_capacity;
} foreign_request;

/* Every file of a module has its entries, with the same parameters and directives; and each target of the plan is served. */
bool foreign_check_module(arena *a, const foreign_module *m, const plan *p, place at, diagnostics *d);

/* Makes the family and appends its variant to the plan, or says what is wrong. */
void foreign_add(arena *a, const foreign_request *q, plan *p, size_t *capacity, diagnostics *d);

/* The file whose text a target takes; null: none. */
const ptx_file *foreign_file_for(const foreign_module *m, target t);

#endif
