/* Judges a call of a family's function on a device for one variant: whether it may be launched, and how long it takes.
 * */
#ifndef BUNDLE_CALL_H
#define BUNDLE_CALL_H

#include "expression/expression.h"
#include "images.h"
#include "plan/plan.h"

typedef struct call {
    const kiln_family *family;
    const kiln_device *device;
    const uint64_t *args; /* by argument; for a pointer its alignment, 0: null */
} call;

/* The inputs of an estimate: the members of kiln_work in kiln/estimate.h. */
enum {
    TERM_BLOCKS,
    TERM_RESIDENT,
    TERM_LENGTH,
    TERM_REPEATS,
    TERM_SIDE_TRIPS,
    TERM_WAIT,
    TERM_BLOCK_BYTES,
    TERM_BYTES,
    TERM_EXTRA,
    TERM_COUNT
};

/* A family's expressions about a call, bound to a variant or unbound. */
typedef struct terms {
    const kiln_family *family;
    const variant *variant; /* null: not bound */
    size_t rule_count;
    const expression **rules; /* in the family's order */
    const bool *asks;         /* by rule: whether it uses parameters */
    const bool *asks_tuning;  /* by rule: whether it uses tuning parameters */
    const expression *shared_bytes;
    const expression *time[TERM_COUNT]; /* null: 0 */
    uint32_t *alignments; /* by argument, if bound: the variant's alignment of a pointer; otherwise 0 */
} terms;

terms terms_of(arena *a, const kiln_family *family);
/* Binds the expressions to a variant of the family. */
terms terms_bind(arena *a, const terms *t, const variant *v);

/* The value of a bound expression. */
uint64_t call_number(const call *c, const expression *e);

/* The value of an expression that a user wrote; false if it subtracts below 0, divides by 0, or exceeds 64 bits. */
bool call_try_number(const call *c, const expression *e, uint64_t *value);

/* The first rule that the call breaks, among the rules that use parameters or among the others; null: none. */
const kiln_rule *call_broken_rule(const call *c, const terms *t, bool of_params);

/* The demand that the call fails in a broken rule, as expression_demand words it. */
const char *call_demand(arena *a, const call *c, const terms *t, const kiln_rule *broken, const char *verb);

/* A pointer with less alignment than the variant needs; null: none. */
const kiln_arg *call_misaligned(const call *c, const terms *t);

/* An array of 2^63 bytes or more, for which launches of the variant fail; null: none. */
const kiln_arg *call_too_large(arena *a, const call *c, const variant *v);

/* An integer argument of the variant whose value exceeds its type; null: none. */
const kiln_arg *call_too_wide(const call *c, const variant *v);

/* Whether the device has the shared memory that the call needs, in addition to the kernel's `fixed` static bytes. */
bool call_has_room(const call *c, const terms *t, uint32_t fixed);

/* family_usual: the family's usual value of a size, or null. The other sets all usual values in `args`, except for the
 * arguments in `is_named`, with the variant's contract. */
const kiln_value *family_usual(const kiln_family *family, const kiln_arg *arg);
void call_put_usual(arena *a, const call *c, const variant *v, const bool *is_named, uint64_t *args);

/* Whether the argument is the workspace's size; and the size that the variant needs, 0 if none. */
bool is_workspace_size(const kiln_family *family, const kiln_arg *arg);
uint64_t call_workspace(arena *a, const call *c, const variant *v);

/* Dispatch's estimate in cycles. */
uint64_t call_cycles(const call *c, const terms *t, const kiln_code *code);

/* The inputs of estimates from the image for the variant's highest target, and its static shared memory. */
typedef struct kernel_code {
    kiln_code code;
    uint32_t static_shared_bytes;
    uint32_t min_driver;
} kernel_code;
kernel_code kernel_code_of(arena *scratch, const plan *p, const variant *v);

/* Whether an image of the variant runs on a device of this compute capability. */
bool variant_serves(const plan *p, const variant *v, uint32_t sm);

/* The measured shape nearest to the call; null: none is near, or the shapes were measured on another device. */
const tuned_shape *call_nearest_shape(arena *a, const call *c, const tuned_choice *tuned);

#endif
