/* A call of a family's function on a device, judged for one variant: whether it may be launched, and how long it takes. */
#ifndef BUNDLE_CALL_H
#define BUNDLE_CALL_H

#include "expression/expression.h"
#include "images.h"
#include "plan/plan.h"

typedef struct call {
    const kiln_family *family;
    const kiln_device *device;
    const uint64_t *args; /* by argument; of a pointer what its address is a multiple of, 0: null */
} call;

/* What an estimate is made of, as kiln_work of kiln/estimate.h has it. */
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

/* The expressions of a family that decide about a call; bound to a variant, or not. */
typedef struct terms {
    const kiln_family *family;
    const variant *variant; /* null: not bound */
    size_t rule_count;
    const expression **rules; /* as the family's */
    const bool *asks;         /* whether the rule asks for parameters, beside each */
    const bool *asks_tuning;  /* and for those that dispatch chooses */
    const expression *shared_bytes;
    const expression *time[TERM_COUNT]; /* null: 0 */
    uint32_t *alignments;               /* of a variant, by argument: of a pointer that it has; else 0 */
} terms;

/* Parses a family's. */
terms terms_of(arena *a, const kiln_family *family);
/* Binds them to a variant of it. */
terms terms_bind(arena *a, const terms *t, const variant *v);

/* The value of a bound expression. */
uint64_t call_number(const call *c, const expression *e);

/* The same of an expression that a user wrote; false where it subtracts more than there is, or divides by 0. */
bool call_try_number(const call *c, const expression *e, uint64_t *value);

/* The first rule that the call breaks, of those that ask for parameters or of those that do not; null: none. */
const kiln_rule *call_broken_rule(const call *c, const terms *t, bool of_params);

/* What the call lacks for a rule that it breaks, as expression_demand has it. */
const char *call_demand(arena *a, const call *c, const terms *t, const kiln_rule *broken, const char *verb);

/* A pointer that the variant wants aligned to more than it is; null: none. */
const kiln_arg *call_misaligned(const call *c, const terms *t);

/* An array that would have 2^63 bytes or more, which launches of the variant refuse; null: none. */
const kiln_arg *call_too_large(arena *a, const call *c, const variant *v);

/* An integer of the variant's that its type cannot hold; null: none. */
const kiln_arg *call_too_wide(arena *a, const call *c, const variant *v);

/* Whether the device has the shared memory that the call takes, beside `fixed` bytes of the kernel's own. */
bool call_has_room(const call *c, const terms *t, uint32_t fixed);

/* The usual value of a size that the family has one for, else null; and that of all such, but those that are named by argument,
 * with the variant's contract. */
const kiln_value *family_usual(const kiln_family *family, const kiln_arg *arg);
void call_put_usual(arena *a, const call *c, const variant *v, const bool *is_named, uint64_t *args);

/* Whether the argument says how large the workspace is; and how large the variant wants it, 0 where it takes none. */
bool is_workspace_size(const kiln_family *family, const kiln_arg *arg);
uint64_t call_workspace(arena *a, const call *c, const variant *v);

/* Cycles, as dispatch estimates them. */
uint64_t call_cycles(const call *c, const terms *t, const kiln_code *code);

/* What estimates read of the image for the variant's highest target, and its static shared memory. */
typedef struct kernel_code {
    kiln_code code;
    uint32_t static_shared_bytes;
    uint32_t min_driver;
} kernel_code;
kernel_code kernel_code_of(arena *scratch, const plan *p, const variant *v);

/* Whether an image of the variant runs on a device of this compute capability. */
bool variant_serves(const plan *p, const variant *v, uint32_t sm);

/* The nearest shape that some of the variants were measured at; null: none is near, or on another device. `args` are the
 * call's. */
const tuned_shape *call_nearest_shape(arena *a, const call *c, const tuned_choice *tuned);

#endif
