/* A launch of a variant, seen from the host: scalars, input buffers, and expected outputs. */
#ifndef VERIFY_PROBLEM_H
#define VERIFY_PROBLEM_H

#include <kiln/kiln.h>

#include "../support/pool.h"
#include "manifest.h"

enum {
    MAX_ARGS = 64,
    SIZES_BYTES = 64 * MAX_ARGS, /* of problem_describe's texts */
    MOST_ALIGNMENT = 1 << 16     /* bytes; the largest alignment with which rules are evaluated */
};

/* How an output is compared. */
typedef enum expectation {
    EXPECT_NOTHING, /* only checked for being the same in every run */
    EXPECT_BITS,    /* exactly `expected_bits` */
    EXPECT_VALUES   /* |got - value| <= bound, or both NaN, or equal */
} expectation;

typedef struct kiln_argument {
    const manifest_arg *about;
    uint64_t
        integer; /* an integer scalar; a pointer's address, for rules: 0, which is aligned to anything, until it is known */
    double real;    /* a scalar of a float type */
    bool is_null;   /* an optional input that this problem leaves out: it has no elements */
    uint64_t count; /* pointers: elements, and how many along each dimension */
    uint64_t extent[MAX_DIMENSIONS];
    size_t bytes;
    void
        *host; /* pointers: the elements in the kernel's type; for outputs their contents before the launch */
    expectation expectation;
    void *expected_bits;
    double *expected_value, *bound;
    unsigned char *is_said;      /* per element: `expect` stated it; null: no element is stated */
    unsigned char *is_gap;       /* per element: the launch must not change it; null: no gaps */
    double norm_bound;           /* bound on the norm of all errors (root of the sum of squares); 0: none */
    struct reference_call *call; /* set while a function of a reference runs */
} argument;

typedef struct kiln_problem {
    const manifest_variant *variant;
    const manifest_variant *made_for; /* the inputs' variant; another variant may run on them */
    const kiln_device *device;
    argument args[MAX_ARGS];
    size_t arg_count;
    pool memory;   /* of the buffers */
    bool is_plain; /* inputs are a typical tensor without extreme values, for counts and times */
    struct reference_call *call; /* set while a function of a reference runs */
} problem;

typedef enum problem_status {
    PROBLEM_LEGAL,
    PROBLEM_EMPTY,   /* a success that launches nothing */
    PROBLEM_ILLEGAL, /* breaks a rule */
    PROBLEM_BROKEN   /* an expression cannot be evaluated */
} problem_status;

/* Sets all scalars to 0. False, with a message, if the variant has more than MAX_ARGS arguments. */
bool problem_open(problem *p, const manifest_variant *v, const kiln_device *device, char *error,
                  size_t error_bytes);
void problem_close(problem *p);

/* Returns the argument with this name; null: there is none. */
argument *problem_find(problem *p, const char *name);

/* Returns the value of an integer scalar; 0 if there is none with this name. */
uint64_t problem_integer(problem *p, const char *name);

/* Returns a parameter of the variant as a number, 0 if there is none with this name; and whether it has this
 * value. */
uint64_t problem_parameter(const problem *p, const char *name);
bool problem_has_parameter(const problem *p, const char *name, const char *value);

/* Returns whether an argument is an integer scalar, which can be a size. */
bool problem_is_size(const argument *a);

/* Evaluates a formula. False, with a message, if it has no value for these scalars. `error` may be null, here and in
 * problem_measure. */
bool problem_evaluate(const problem *p, const formula *f, uint64_t *value, char *error, size_t error_bytes);

/* Computes the buffers' sizes from the scalars, and checks the rules. `broken` gets the first broken rule (may be
 * null). */
problem_status problem_measure(problem *p, const manifest_rule **broken, char *error, size_t error_bytes);

/* Whether each argument's type can hold its value. */
bool problem_fits_types(const problem *p);

/* Calls `note` with the numbers that the rules compare an argument with, and with the divisors of its remainders. */
void problem_note_bounds(const problem *p, const argument *a, void (*note)(void *to, uint64_t bound),
                         void *to);

/* Sets each pointer's required alignment in bytes, a power of two: its declared alignment, or more if a rule
 * requires more for these scalars. */
void problem_least_alignments(problem *p, uint64_t alignments[MAX_ARGS]);
void problem_forget_addresses(problem *p);

/* Returns whether some rule tests the argument's alignment. */
bool problem_has_alignment_rule(const problem *p, const argument *a);

/* Returns the elements of all buffers, after problem_measure; without scratch, which is neither filled nor
 * compared. */
uint64_t problem_elements(const problem *p);

/* Gives every pointer argument zeroed host memory of its size; frees what an earlier call allocated. */
void problem_allocate(problem *p);

/* Allocates an output's expectation, zeroed; it lives as long as the buffers. */
void expect_bits(problem *p, argument *a);
void expect_values(problem *p, argument *a);

/* Makes the whole output a gap, after expect_values; clear `is_gap` of each element that the kernel writes. */
void expect_gaps(problem *p, argument *a);

/* Expects exactly this value of element i, rounded to the type, after expect_values; for kernels whose order of
 * additions is known. A value outside the bound changes nothing, since the bound holds for any order. */
void expect_last_bit(argument *a, uint64_t i, double value);

/* Writes "n=65 group_size=32". */
void problem_describe(const problem *p, char *text, size_t bytes);

#endif
