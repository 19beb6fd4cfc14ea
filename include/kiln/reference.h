/* References for your own kernels: the results that a kernel should compute, in float64.
 *
 * A program of kiln_add_verify (VERIFY of kiln_add_bundle) runs every kernel of a bundle at edge-case sizes, on
 * difficult inputs. It knows the expected results of kiln's own families. For your own family, or a kernel of external
 * PTX, write a reference:
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
 * and compile it into the program: kiln_add_verify(TARGET BUNDLE REFERENCES saxpy_reference.c). One reference serves
 * all variants of its family; it reads types, sizes and parameters by name. A kernel that runs without a reference
 * fails the program unless it is listed (UNCOMPARED saxpy). A reference of a kernel that the bundle lacks, and a second
 * reference of the same kernel, end the program before anything runs; the error names the reference's source line.
 *
 * A reference should know the contract and not the kernel: write it from the definition, in another order of
 * operations. It must share no table or constant with the code that makes the kernel, or it repeats that code's
 * mistakes.
 *
 * Mistakes. Functions here do not return after a mistake of the reference (a missing argument, an index beyond the last
 * element, an element without expectation). The variant then counts as wrong, the report names the mistake and the line
 * of KILN_REFERENCE, and the program continues with the next variant. Free no memory of kiln's; use no pointer that a
 * function here returned after `plan`, `make` or `expect` has returned. One thread calls all of them.
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

/* One call of one variant: its arguments, with the input buffers in host memory, and the expected results. */
typedef struct kiln_problem kiln_problem;

/* An argument of a problem: a scalar, or a buffer of elements in its shape, with the last dimension the fastest. */
typedef struct kiln_argument kiln_argument;

/* The sizes that a variant is tried at. */
typedef struct kiln_size_plan kiln_size_plan;

/* Random numbers: a pure function of the stream and an index, so that a failure can be reproduced from the seed in the
 * report. Copy it freely. */
typedef struct kiln_random {
    uint64_t key;
} kiln_random;

/* ---- the reference ---------------------------------------------------------------------------------------------- */

enum {
    KILN_PATTERN_RANDOM =
        1, /* independent random numbers: `expect` may give bounds that hold only for sums of such numbers */
    KILN_PATTERN_LARGE = 2,    /* used at sizes above 16384 elements too; other patterns only at small ones */
    KILN_PATTERN_NONFINITE = 4 /* holds NaNs or infinities */
};

/* A kind of input. Every size is tried with several patterns in turn. */
typedef struct kiln_pattern {
    const char *name; /* for the report; null ends a list */
    unsigned flags;   /* KILN_PATTERN_..., or 0 */
    int number;       /* for the reference's own `make`; without one a kiln_fill_kind */
} kiln_pattern;

typedef struct kiln_reference {
    /* The family's name, or the name of an external kernel's function (the suffix in NAME_saxpy): "saxpy". */
    const char *name;

    /* Arguments that every variant must have, separated by spaces: those that the functions below read. Null: none. */
    const char *args;

    /* Ends with a null name. Null: normal, uniform, huge next to tiny, equal, alternating, zero and denormal numbers.
     * */
    const kiln_pattern *patterns;

    /* Adds the sizes to try. Null: edges of the launch geometry, bounds of rules, small numbers and powers of two, one
     * size at a time and together, as far as the rules and --max-elements allow. */
    void (*plan)(kiln_size_plan *plan);

    /* Adds sizes that are tried with a grid for one multiprocessor, without the limit of elements: a full grid reaches
     * its loops only at large sizes. Null: none. */
    void (*plan_few)(kiln_size_plan *plan);

    /* Fills the inputs and the float scalars; sizes are already fixed and buffers zeroed. Null: kiln_fill_all. */
    void (*make)(kiln_problem *p, const kiln_pattern *pattern, kiln_random s);

    /* States the expected results: kiln_expect_value or kiln_expect_bits for each element of each output, or
     * kiln_expect_nothing for an output. Not called if the rules say that there is nothing to do. */
    void (*expect)(kiln_problem *p, const kiln_pattern *pattern);

    /* Whether `expect` handles NaNs and infinities. If not, patterns with KILN_PATTERN_NONFINITE run under all checks
     * and are only compared with a second run. */
    bool expects_nonfinite;

    /* Its source line; KILN_REFERENCE fills it in. */
    const char *file;
    int line;
} kiln_reference;

/* Defines the reference of a family or an external kernel, given by its bare name, and registers it with the program
 * that the file is compiled into. The other arguments are members of kiln_reference. At file scope; any number per
 * file. */
#define KILN_REFERENCE(kernel, ...)                                                                          \
    static const kiln_reference kiln_reference_of_##kernel = {                                               \
        .name = #kernel, .file = __FILE__, .line = __LINE__, __VA_ARGS__};                                   \
    static const kiln_reference *const kiln_reference_entry_##kernel                                         \
        __attribute__((used, section("kiln_references"))) = &kiln_reference_of_##kernel

/* ---- arguments and parameters of a problem ---------------------------------------------------------------------- */

/* kiln_has_argument returns whether the call has an argument: one with a `when` may be missing. kiln_get_argument
 * returns an argument that must exist. */
bool kiln_has_argument(const kiln_problem *p, const char *name);
kiln_argument *kiln_get_argument(kiln_problem *p, const char *name);

/* Returns an integer scalar: a size. */
uint64_t kiln_get_integer(const kiln_problem *p, const char *name);

/* Get or set a float scalar, as the kernel receives it: setting it rounds to the type. Set it only in `make`. */
double kiln_get_real(const kiln_problem *p, const char *name);
void kiln_set_real(kiln_problem *p, const char *name, double value);

/* Return the variant's parameter as a word ("f32", "64", "true"), compared with a word, or as a number. External
 * kernels have none. */
const char *kiln_get_param(const kiln_problem *p, const char *name);
bool kiln_param_is(const kiln_problem *p, const char *name, const char *value);
uint64_t kiln_get_param_number(const kiln_problem *p, const char *name);

/* ---- arguments -------------------------------------------------------------------------------------------------- */

/* Returns the type of the scalar or of the buffer's elements: "u8" to "u64", "i8" to "i64" (also for s8 to s64), "f16",
 * "bf16", "f32" or "f64". */
const char *kiln_get_type(const kiln_argument *a);

/* Return the elements of a buffer, in all and along one dimension of its shape, counted from 0; and the number of
 * dimensions. */
uint64_t kiln_get_count(const kiln_argument *a);
uint64_t kiln_get_extent(const kiln_argument *a, size_t dimension);
size_t kiln_get_dimensions(const kiln_argument *a);

/* Return an element before the launch, as a number (64-bit integers beyond 2^53 are rounded) and as bits,
 * zero-extended. For inputs, and buffers that are input and output. */
double kiln_get_value(const kiln_argument *a, uint64_t index);
uint64_t kiln_get_bits(const kiln_argument *a, uint64_t index);

/* Set an element, in `make`. A number is rounded to the type: floats to nearest even, overflowing to infinity; integers
 * to nearest, clamped to the type's range, a NaN to 0. */
void kiln_set_value(kiln_argument *a, uint64_t index, double value);
void kiln_set_bits(kiln_argument *a, uint64_t index, uint64_t bits);

/* Return properties of a float argument's type: its unit roundoff, the relative error of one rounding (2^-24 f32, 2^-53
 * f64, 2^-11 f16, 2^-8 bf16); the smallest positive number; the largest finite number; and a number rounded to the
 * type. */
double kiln_get_unit(const kiln_argument *a);
double kiln_get_smallest(const kiln_argument *a);
double kiln_get_largest(const kiln_argument *a);
double kiln_round(const kiln_argument *a, double value);

/* ---- expectations: in `expect` ---------------------------------------------------------------------------------- */

/* States that the kernel's result may differ from `value` by at most `bound`. Both NaN, or both the same infinity, is
 * right; an infinity in place of a number counts as the smallest number that rounds to it. The report's "worst" is the
 * largest error relative to its bound: state what the contract promises, and see how close the kernel comes. `bound`
 * must be finite and at least 0; 0 requires equality. For results that may be anything use kiln_expect_nothing. */
void kiln_expect_value(kiln_argument *a, uint64_t index, double value, double bound);

/* Expects exactly these bits; if they are a NaN, any NaN. Not in one buffer with kiln_expect_value. */
void kiln_expect_bits(kiln_argument *a, uint64_t index, uint64_t bits);

/* Expects only that each run gives the same output. A reference that calls it for all outputs compares nothing, which
 * fails the program. */
void kiln_expect_nothing(kiln_argument *a);

/* ---- inputs: in `make` ------------------------------------------------------------------------------------------ */

typedef enum KILN_AS_INT kiln_fill_kind {
    KILN_FILL_NORMAL,      /* mean 0, deviation 1 */
    KILN_FILL_UNIFORM,     /* in [-1, 1) */
    KILN_FILL_REAL,        /* the numbers of --data, from a random offset on; normal without it */
    KILN_FILL_DENORMAL,    /* up to 64 times the smallest positive value, both signs */
    KILN_FILL_LARGEST,     /* the largest finite magnitude, and random fractions of it */
    KILN_FILL_ZERO,        /* both zeros */
    KILN_FILL_EQUAL,       /* one random number everywhere */
    KILN_FILL_ALTERNATING, /* x, -x, x, ... */
    KILN_FILL_HUGE_TINY,   /* one number in 41 about 2^12, the others about 2^-12 */
    KILN_FILL_SPREAD, /* log-uniform magnitudes, from the smallest to 2^-10 of the square root of the largest */
    KILN_FILL_ANY_BITS, /* uniform over all finite bit patterns */
    KILN_FILL_NONFINITE /* normal, one in 16 a NaN or an infinity */
} kiln_fill_kind;

/* Fills a buffer of floats with that kind of number; a buffer of integers always with random bits. */
void kiln_fill(kiln_argument *a, kiln_fill_kind kind, kiln_random s);

/* Fills all inputs by the pattern's number, each from its own stream. Float scalars are small, positive and
 * distinct; some patterns set them to 1. Write a `make` if the kernel needs other values. */
void kiln_fill_all(kiln_problem *p, const kiln_pattern *pattern, kiln_random s);

/* Returns a stream independent of `s` and of forks with other numbers. */
kiln_random kiln_random_fork(kiln_random s, uint64_t number);

/* Return the index-th number of a stream: 64 bits; less than `limit`, which is at least 1; in [0, 1) with 53 bits;
 * normal with mean 0 and deviation 1. */
uint64_t kiln_random_bits(kiln_random s, uint64_t index);
uint64_t kiln_random_below(kiln_random s, uint64_t index, uint64_t limit);
double kiln_random_uniform(kiln_random s, uint64_t index);
double kiln_random_normal(kiln_random s, uint64_t index);

/* ---- sizes: in `plan` ------------------------------------------------------------------------------------------- */

/* Sets a scalar for the next kiln_add_sizes; each is 0 at first and keeps its value until it is set again. */
void kiln_set_size(kiln_size_plan *plan, const char *name, uint64_t value);

/* Adds a call with the current scalars. Calls that a rule forbids, that the options exclude (--size, --max-elements) or
 * that were added before are skipped, so edges need no checks. */
void kiln_add_sizes(kiln_size_plan *plan);

/* Adds the sizes that are tried without a `plan`. */
void kiln_add_default_sizes(kiln_size_plan *plan);

/* Returns the problem, for kiln_get_param and kiln_has_argument; its buffers do not exist yet. */
const kiln_problem *kiln_get_problem(const kiln_size_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
