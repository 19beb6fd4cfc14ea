/* One launch of one variant as the host sees it: scalars, input buffers, and what should come out. */
#ifndef VERIFY_PROBLEM_H
#define VERIFY_PROBLEM_H

#include <kiln/kiln.h>

#include "../support/pool.h"
#include "manifest.h"

enum {
    MAX_ARGS = 64,
    SIZES_BYTES = 64 * MAX_ARGS, /* of problem_describe's texts */
    MOST_ALIGNMENT = 1 << 16     /* bytes; the most that rules are tried with */
};

/* What is known of an output. */
typedef enum expectation {
    EXPECT_NOTHING, /* it is only checked for being the same in every run */
    EXPECT_BITS,    /* exactly `expected_bits` */
    EXPECT_VALUES   /* |got - value| <= bound, or both NaN, or equal */
} expectation;

typedef struct kiln_argument {
    const manifest_arg *about;
    uint64_t
        integer;  /* a scalar of an integer type; of a pointer its address, for rules: 0, which is aligned to
                       * anything, until an execution has one */
    double real;  /* a scalar of a float type */
    bool is_null; /* an optional input that this problem leaves out: it has no elements */
    uint64_t count; /* pointers: elements, and how many along each dimension */
    uint64_t extent[MAX_DIMENSIONS];
    size_t bytes;
    void *
        host; /* pointers: the elements, in the kernel's type; for outputs what lies there before the launch */
    expectation expectation;
    void *expected_bits;
    double *expected_value, *bound;
    unsigned char *is_said; /* for each element whether `expect` said something; null: of none */
    unsigned char *is_gap;  /* for each element whether the launch has to leave it as it was; null: of none */
    double
        norm_bound; /* of all errors together, the square root of the sum of their squares; 0: there is none */
    struct reference_call *call; /* within a function of a reference */
} argument;

typedef struct kiln_problem {
    const manifest_variant *variant;
    const manifest_variant *made_for; /* the variant that the inputs were made for; another may run on them */
    const kiln_device *device;
    argument args[MAX_ARGS];
    size_t arg_count;
    pool memory;   /* of the buffers */
    bool is_plain; /* inputs are those of a usual tensor, without extreme values, for counts and times */
    struct reference_call *call; /* within a function of a reference */
} problem;

typedef enum problem_status {
    PROBLEM_LEGAL,
    PROBLEM_EMPTY,   /* a success that launches nothing */
    PROBLEM_ILLEGAL, /* breaks a rule */
    PROBLEM_BROKEN   /* an expression cannot be evaluated */
} problem_status;

/* All scalars 0. False, and a message, when the variant has more arguments than MAX_ARGS. */
bool problem_open(problem *p, const manifest_variant *v, const kiln_device *device, char *error,
                  size_t error_bytes);
void problem_close(problem *p);

/* Null when the variant has no argument of this name. */
argument *problem_find(problem *p, const char *name);

/* The value of a scalar of an integer type; 0 when there is none of this name. */
uint64_t problem_integer(problem *p, const char *name);

/* A parameter of the variant as a number; 0 when there is none of this name. And whether it has this value. */
uint64_t problem_parameter(const problem *p, const char *name);
bool problem_has_parameter(const problem *p, const char *name, const char *value);

/* Whether an argument is a scalar of an integer type, so that it can be a size. */
bool problem_is_size(const argument *a);

/* False, and a message, when it cannot be evaluated for these scalars. */
bool problem_evaluate(const problem *p, const formula *f, uint64_t *value, char *error, size_t error_bytes);

/* Works out the buffers' sizes from the scalars, and whether the rules hold. `broken` gets the first rule that does not
 * (may be null). */
problem_status problem_measure(problem *p, const manifest_rule **broken, char *error, size_t error_bytes);

/* Whether each argument's type can hold its value. */
bool problem_fits_types(const problem *p);

/* Calls `note` with the numbers that the rules compare an argument with, or divide it by for a remainder. */
void problem_note_bounds(const problem *p, const argument *a, void (*note)(void *to, uint64_t bound),
                         void *to);

/* The bytes that each pointer's address has to be a multiple of, powers of two: what its declaration says, or more where
 * the rules ask for more with these scalars. */
void problem_least_alignments(problem *p, uint64_t alignments[MAX_ARGS]);
void problem_forget_addresses(problem *p);

/* Whether some rule speaks of the argument. */
bool problem_has_alignment_rule(const problem *p, const argument *a);

/* Elements of all buffers together, after problem_measure, except scratch, which is neither made nor compared. */
uint64_t problem_elements(const problem *p);

/* Gives every pointer argument zeroed host memory of its size; what an earlier call gave is gone. */
void problem_allocate(problem *p);

/* Memory for an output's expectation, zeroed; it lives as long as the buffers. */
void expect_bits(problem *p, argument *a);
void expect_values(problem *p, argument *a);

/* After expect_values, of an output with gaps: all of it is one until `is_gap` of an element is cleared. */
void expect_gaps(problem *p, argument *a);

/* Element i, after expect_values, where the order of its additions is known: exactly this value, rounded to the type. One that
 * is out of the bound changes nothing, since the bound holds for any order. */
void expect_last_bit(argument *a, uint64_t i, double value);

/* "n=65 group_size=32" */
void problem_describe(const problem *p, char *text, size_t bytes);

#endif
