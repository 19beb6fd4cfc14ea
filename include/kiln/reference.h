/* References for kernels of your own, for whoever verifies a bundle: what a kernel should have computed, in float64.
 *
 * A program of kiln_add_verify (VERIFY of kiln_add_bundle) runs every kernel of a bundle at the sizes around its edges, on
 * inputs that hurt. For kiln's own families it knows what has to come out. For a family of your own, or a kernel of
 * external PTX, a reference says so:
 *
 *     #include <math.h>
 *     #include <kiln/reference.h>
 *
 *     static void expect(kiln_problem *p, const kiln_pattern *pattern)          // y[i] = a * x[i] + y[i]
 *     {
 *         const double a = kiln_get_real(p, "a");
 *         kiln_argument *x = kiln_get_argument(p, "x"), *y = kiln_get_argument(p, "y");
 *         (void)pattern;
 *         for (uint64_t i = 0; i < kiln_get_count(y); i++) {
 *             const double exact = fma(a, kiln_get_value(x, i), kiln_get_value(y, i));
 *             kiln_expect_value(y, i, exact, kiln_get_unit(y) * fabs(exact) + kiln_get_smallest(y));
 *         }
 *     }
 *
 *     KILN_REFERENCE(saxpy, .expect = expect);
 *
 * and is compiled into the program: kiln_add_verify(TARGET BUNDLE REFERENCES saxpy_reference.c). One reference serves all
 * variants of its family; types, sizes and parameters are asked for by name. A kernel that runs without a reference fails
 * the program unless it is listed (UNCOMPARED saxpy). A reference of a kernel that the bundle does not have, and a second
 * one of the same kernel, end the program before anything runs, with the place of the reference.
 *
 * A reference should know the contract and not the kernel: write it from the definition, in another order of operations,
 * and share no table or constant with the code that makes the kernel, or it repeats its mistakes.
 *
 * Mistakes. Functions here do not return after a mistake of the reference (an argument that there is not, an index beyond
 * the last element, an element without expectation): the variant counts as wrong, with the place of KILN_REFERENCE and
 * what the mistake was, and the program goes on with the next variant. Free nothing that is kiln's; keep no pointer that a
 * function here returned beyond the call of `plan`, `make` or `expect`. One thread calls all of them.
 */
#ifndef KILN_REFERENCE_H
#define KILN_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kiln/as_int.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One call of one variant: its arguments, with the input buffers in the host's memory, and what should come out. */
typedef struct kiln_problem kiln_problem;

/* An argument of it: a scalar, or a buffer of elements, those of its shape with the last dimension the fastest. */
typedef struct kiln_argument kiln_argument;

/* The sizes that a variant is tried at. */
typedef struct kiln_size_plan kiln_size_plan;

/* Random numbers: a pure function of the stream and an index, so that a failure can be made again from the seed that the
 * report prints. Copy it freely. */
typedef struct kiln_random {
    uint64_t key;
} kiln_random;

/* ---- the reference ---------------------------------------------------------------------------------------------- */

enum {
    KILN_PATTERN_RANDOM =
        1, /* independent random numbers: `expect` may give bounds that hold for sums of such alone */
    KILN_PATTERN_LARGE = 2,    /* at sizes of more than 16384 elements too; the others are for small ones */
    KILN_PATTERN_NONFINITE = 4 /* holds NaNs or infinities */
};

/* A kind of input. Every size is tried with several of them in turn. */
typedef struct kiln_pattern {
    const char *name; /* for the report; null ends a list */
    unsigned flags;   /* KILN_PATTERN_..., or 0 */
    int number;       /* the reference's own, for its `make`; without one a kiln_fill_kind */
} kiln_pattern;

typedef struct kiln_reference {
    /* The family's name, or that of an external kernel's function (what stands in NAME_saxpy): "saxpy". */
    const char *name;

    /* Arguments that every variant must have, separated by spaces: what the functions below ask for. Null: none. */
    const char *args;

    /* Ends with a null name. Null: normal, uniform, huge beside tiny, equal, alternating, zero and denormal numbers. */
    const kiln_pattern *patterns;

    /* Notes the sizes to try. Null: edges of the launch geometry, bounds of rules, small numbers and powers of two, one size
     * at a time and together, as far as the rules and --max-elements allow. */
    void (*plan)(kiln_size_plan *plan);

    /* Notes more of them, which are tried with a grid for one multiprocessor whatever the limit of elements: what a grid for
     * all multiprocessors leaves to loops only when problems are large. Null: none. */
    void (*plan_few)(kiln_size_plan *plan);

    /* Fills the inputs, and the scalars of float types; sizes are fixed by then, buffers are zeroed. Null: kiln_fill_all. */
    void (*make)(kiln_problem *p, const kiln_pattern *pattern, kiln_random s);

    /* Says what comes out: kiln_expect_value or kiln_expect_bits for each element of each output, or kiln_expect_nothing
     * for an output. Not called where the rules say that there is nothing to do. */
    void (*expect)(kiln_problem *p, const kiln_pattern *pattern);

    /* Whether `expect` knows what becomes of NaNs and infinities. Else patterns with KILN_PATTERN_NONFINITE are run, under
     * all checks, and compared with a second run alone. */
    bool expects_nonfinite;

    /* Where it stands; KILN_REFERENCE fills them in. */
    const char *file;
    int line;
} kiln_reference;

/* Defines the reference of a family or an external kernel, given by its bare name, and makes it known to the program that
 * the file is compiled into. What follows are members of kiln_reference. At file scope; any number in a file. */
#define KILN_REFERENCE(kernel, ...)                                                                          \
    static const kiln_reference kiln_reference_of_##kernel = {                                               \
        .name = #kernel, .file = __FILE__, .line = __LINE__, __VA_ARGS__};                                   \
    static const kiln_reference *const kiln_reference_entry_##kernel                                         \
        __attribute__((used, section("kiln_references"))) = &kiln_reference_of_##kernel

/* ---- what a call is asked for ----------------------------------------------------------------------------------- */

/* Whether the variant has an argument: one with a `when` may be missing. kiln_get_argument is for those that are there. */
bool kiln_has_argument(const kiln_problem *p, const char *name);
kiln_argument *kiln_get_argument(kiln_problem *p, const char *name);

/* A scalar of an integer type: a size. */
uint64_t kiln_get_integer(const kiln_problem *p, const char *name);

/* A scalar of a float type, as the kernel gets it: setting it rounds to the type. Setting is for `make`. */
double kiln_get_real(const kiln_problem *p, const char *name);
void kiln_set_real(kiln_problem *p, const char *name, double value);

/* The variant's parameters: "f32", "64", "true"; and as a number. External kernels have none. */
const char *kiln_get_param(const kiln_problem *p, const char *name);
bool kiln_param_is(const kiln_problem *p, const char *name, const char *value);
uint64_t kiln_get_param_number(const kiln_problem *p, const char *name);

/* ---- arguments -------------------------------------------------------------------------------------------------- */

/* Of the scalar, or of what the pointer points at: "u8" to "u64", "i8" to "i64" (however the family spells them), "f16",
 * "bf16", "f32" or "f64". */
const char *kiln_get_type(const kiln_argument *a);

/* Elements of a buffer, in all and along one dimension of its shape, counted from 0; dimensions. */
uint64_t kiln_get_count(const kiln_argument *a);
uint64_t kiln_get_extent(const kiln_argument *a, size_t dimension);
size_t kiln_get_dimensions(const kiln_argument *a);

/* An element before the launch, as a number (64-bit integers beyond 2^53 are rounded) and as bits, zero-extended. Of
 * inputs, and of buffers that are input and output. */
double kiln_get_value(const kiln_argument *a, uint64_t index);
uint64_t kiln_get_bits(const kiln_argument *a, uint64_t index);

/* For `make`. A number is rounded to the type: floats to nearest even, overflowing to infinity; integers to nearest, within
 * the type's range, a NaN to 0. */
void kiln_set_value(kiln_argument *a, uint64_t index, double value);
void kiln_set_bits(kiln_argument *a, uint64_t index, uint64_t bits);

/* Of the argument's type: half an ulp of 1 as a share of 1, which is what one rounding costs (2^-24 f32, 2^-53 f64, 2^-11
 * f16, 2^-8 bf16), the smallest positive and the largest finite number, and a number rounded to it. Of float types. */
double kiln_get_unit(const kiln_argument *a);
double kiln_get_smallest(const kiln_argument *a);
double kiln_get_largest(const kiln_argument *a);
double kiln_round(const kiln_argument *a, double value);

/* ---- expectations: in `expect` ---------------------------------------------------------------------------------- */

/* What the kernel wrote may be this far from `value`. Both NaN, or both the same infinity, is right; an infinity where a
 * number is expected is as far away as the least number that rounds to it. The report's "worst" is the largest error as a
 * share of its bound: state what the contract promises, and see how close the kernel comes. `bound` is at least 0, where
 * 0 asks for equality, and finite: what may be anything is for kiln_expect_nothing. */
void kiln_expect_value(kiln_argument *a, uint64_t index, double value, double bound);

/* Exactly these bits; where they are a NaN, any NaN. Not in one buffer with kiln_expect_value. */
void kiln_expect_bits(kiln_argument *a, uint64_t index, uint64_t bits);

/* Nothing is known of this output but that each run gives the same. A reference that says so of all outputs compares
 * nothing, which fails the program. */
void kiln_expect_nothing(kiln_argument *a);

/* ---- inputs: in `make` ------------------------------------------------------------------------------------------ */

typedef enum KILN_AS_INT kiln_fill_kind {
    KILN_FILL_NORMAL,      /* mean 0, deviation 1 */
    KILN_FILL_UNIFORM,     /* in [-1, 1) */
    KILN_FILL_REAL,        /* the numbers of --data, from a random place on; normal without it */
    KILN_FILL_DENORMAL,    /* up to 64 times the smallest positive value, both signs */
    KILN_FILL_LARGEST,     /* the largest finite magnitude, and random shares of it */
    KILN_FILL_ZERO,        /* both zeros */
    KILN_FILL_EQUAL,       /* one random number everywhere */
    KILN_FILL_ALTERNATING, /* x, -x, x, ... */
    KILN_FILL_HUGE_TINY,   /* one number in 41 of 2^12, the others of 2^-12 */
    KILN_FILL_SPREAD,      /* all magnitudes alike, from the smallest to 2^-10 of the root of the largest */
    KILN_FILL_ANY_BITS,    /* all finite bit patterns alike */
    KILN_FILL_NONFINITE    /* normal, one in 16 a NaN or an infinity */
} kiln_fill_kind;

/* Fills a buffer of floats so; one of integers with random bits, whatever the kind. */
void kiln_fill(kiln_argument *a, kiln_fill_kind kind, kiln_random s);

/* Fills all inputs by the pattern's number, each from a stream of its own. Scalars of float types are positive, small, each
 * another number, with some patterns 1: what needs others has a `make` of its own. */
void kiln_fill_all(kiln_problem *p, const kiln_pattern *pattern, kiln_random s);

/* A stream that is independent of `s` and of those with other numbers. */
kiln_random kiln_random_fork(kiln_random s, uint64_t number);

/* The index-th number of a stream: 64 bits; less than `limit`, which is at least 1; in [0, 1) with 53 bits; of the normal
 * distribution with mean 0 and deviation 1. */
uint64_t kiln_random_bits(kiln_random s, uint64_t index);
uint64_t kiln_random_below(kiln_random s, uint64_t index, uint64_t limit);
double kiln_random_uniform(kiln_random s, uint64_t index);
double kiln_random_normal(kiln_random s, uint64_t index);

/* ---- sizes: in `plan` ------------------------------------------------------------------------------------------- */

/* The scalars that kiln_add_sizes will take, 0 at first; each stays as it is until it is set again. */
void kiln_set_size(kiln_size_plan *plan, const char *name, uint64_t value);

/* Notes a call with the scalars as they are now. One that a rule forbids, that the options leave out (--size,
 * --max-elements) or that is noted already is passed over, so edges may be given without care. */
void kiln_add_sizes(kiln_size_plan *plan);

/* Notes those that are tried without a `plan`, beside one's own. */
void kiln_add_default_sizes(kiln_size_plan *plan);

/* For kiln_get_param and kiln_has_argument; its buffers are not there yet. */
const kiln_problem *kiln_get_problem(const kiln_size_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
