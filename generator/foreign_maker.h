/* A kernel from elsewhere while its family is made: foreign.c has names and arguments, foreign_launch.c the launch. */
#ifndef GENERATOR_FOREIGN_MAKER_H
#define GENERATOR_FOREIGN_MAKER_H

#include "foreign.h"

enum {
    MAKER_LAUNCH_ARGS = 7 /* grid, block, shared_bytes */,
    MAKER_LAUNCH_RULES = 6 /* 3 of the grid, 3 of the block */
};

typedef struct maker {
    arena *arena;
    const foreign_request *q;
    diagnostics *d;
    const char *name;
    kiln_family *family;
    kiln_arg *args;
    size_t arg_count;
    kiln_rule *rules;
    size_t rule_count;
    foreign_kernel *kernel;
    text why_not_launched;
} maker;

kiln_arg *maker_add_arg(maker *m, const char *name, const char *type, const char *summary);
void maker_add_rule(maker *m, const char *condition, const char *words);

/* Whether a text of the configuration is a number, whatever the arguments are; false too where it is none or wrong. */
bool maker_is_number(const maker *m, const char *source, uint64_t *number);

/* The first reason stays. */
void maker_cannot_launch(maker *m, const char *why);

/* Each adds the arguments that the caller gives, behind the kernel's own. */
void maker_take_grid(maker *m);
void maker_take_block(maker *m);
void maker_take_shared(maker *m);

#endif
