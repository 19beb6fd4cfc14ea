/* A kernel of external PTX while its family is made: external.c has names and arguments, external_launch.c the launch. */
#ifndef EXTERNAL_BUILD_H
#define EXTERNAL_BUILD_H

#include "external.h"

enum {
    EXTERNAL_LAUNCH_ARGS = 7 /* grid, block, shared_bytes */,
    EXTERNAL_LAUNCH_RULES = 6 /* 3 of the grid, 3 of the block */
};

typedef struct external_build {
    arena *arena;
    const external_request *q;
    diagnostics *d;
    const char *name;
    kiln_family *family;
    kiln_arg *args;
    size_t arg_count;
    kiln_rule *rules;
    size_t rule_count;
    external_kernel *kernel;
    text why_not_launched;
} external_build;

kiln_arg *external_add_arg(external_build *m, const char *name, const char *type, const char *summary);
void external_add_rule(external_build *m, const char *condition, const char *words);

/* Whether a text of the configuration is a number, whatever the arguments are; false too where it is none or wrong. */
bool external_is_number(const external_build *m, const char *source, uint64_t *number);

/* The first reason stays. */
void external_cannot_launch(external_build *m, const char *why);

/* Each adds the arguments that the caller gives, behind the kernel's own. */
void external_take_grid(external_build *m);
void external_take_block(external_build *m);
void external_take_shared(external_build *m);

#endif
