/* Rows of the tables in which families describe themselves. */
#ifndef KERNELS_DESCRIPTOR_H
#define KERNELS_DESCRIPTOR_H

#include <kiln/author/family.h>

/* A parameter: WORD, INT or BOOL; CONTRACT or TUNING; its name, legal values, default and summary, followed by other members
 * of kiln_param: PARAM(WORD, CONTRACT, "pairs", "halves neighbours", "halves", "of what", .numbers = "1 2"). */
#define PARAM(is, role_of, called, values, otherwise, ...)                                                   \
    {                                                                                                        \
        .name = called, .type = KILN_PARAM_##is, .role = KILN_ROLE_##role_of, .words = values,               \
        .default_value = otherwise, .summary = __VA_ARGS__                                                   \
    }

/* The parameter that selects which bits of a byte hold the first of its two codes. */
#define NIBBLES_PARAM                                                                                        \
    PARAM(                                                                                                   \
        WORD, CONTRACT, "nibbles", "low high", "low",                                                        \
        "order of a byte's codes\nlow: element 2i in bits 0-3 of byte i, 2i+1 in bits 4-7; high: the reverse")

/* The workspace and tile_counters of kernels with split_k, which split `along`: partial sums of type `of_type`, and a counter for
 * each `per` sums. `y` names the result. */
/* clang-format off */
#define SHARING_ARGS(along, of_type, per, y)                                                                             \
    {"workspace", KILN_ARG_SCRATCH, of_type, "workspace_size", 16, "split_k != 1",                                       \
     "partial sums over " along "\nworkspace and tile_counters belong to one launch at a time"},                         \
    {"tile_counters", KILN_ARG_INOUT, "u32", "workspace_size / " per, 4, "split_k != 1",                                 \
     "all 0 before a launch, which leaves them 0\nif one is not 0, " y " is wrong; they belong to one launch at a time"}
/* clang-format on */

#endif
