/* How a kernel family describes itself, for kernel authors.
 *
 * A family is one constant kiln_family: its parameters (fixed when a variant is generated), its arguments (passed at
 * each launch), the rules, launch geometry, dispatch and cost that follow from both, and the function that emits the
 * kernel's body. Everything but that function is data, so that the generator can print it as C (typed launchers), as
 * text (manifest, `kiln families`) and evaluate it.
 *
 * Expressions are text over arguments and parameters by name, in unsigned 64-bit integers:
 *     literals      12  0x10
 *     names         n  group  type        a parameter's word is compared with a word on its right: type == f16
 *                   A word made of digits is a number too: select(group == any, group_size, group). A bool is 0 or 1.
 *                   Arguments are u16, u32 or u64 values; pointers only in aligned() and given().
 *     device        multiprocessors  max_shared_bytes  sm  multiprocessor_shared_bytes  multiprocessor_threads
 *     shape         threads  shared_bytes: the variant's; blocks_per_multiprocessor: of the variant, on this device.
 *                   A parameter or an argument of that name takes precedence
 *     numbers       those that kiln_family.numbers lists, wherever parameters are allowed: the variant's
 *     operators     * / %   + -   == != < <= > >=   &&   ||   !   in C's order; a comparison is 0 or 1
 *     functions     ceil_div(a, b)  min(a, b)  max(a, b)  select(condition, a, b)  aligned(pointer, bytes)
 *                   given(pointer): an optional pointer is not null
 *                   negative(x) only of a signed integer or float argument: it is less than 0, or a NaN.
 *                   finite(x) only of a float argument: it is neither an infinity nor a NaN
 * Every expression of every family is parsed when the generator starts; a mistake ends it with an error that names the
 * family and the text. Subtraction below zero and division by zero are mistakes of the family: rules must exclude them.
 */
#ifndef KILN_FAMILY_H
#define KILN_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kiln/author/ptx.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KILN_MAX_PARAMS = 32, KILN_MAX_ARGS = 60, KILN_MAX_MAPS = 8 };

/* ---- parameters ------------------------------------------------------------------------------------------------- */

typedef enum KILN_AS_INT kiln_param_type {
    KILN_PARAM_WORD, /* one of `words` */
    KILN_PARAM_INT,  /* one of `words`, all decimal, or min..max in steps when words is null */
    KILN_PARAM_BOOL  /* true or false */
} kiln_param_type;

/* Whether a parameter matters to the caller or only changes the speed. */
typedef enum KILN_AS_INT kiln_param_role {
    KILN_ROLE_CONTRACT, /* changes results or layout: the caller names it in the argument struct */
    KILN_ROLE_TUNING    /* dispatch chooses */
} kiln_param_role;

typedef struct kiln_param {
    const char *name; /* [a-z][a-z0-9_]*, at most 40, no word of C's or kiln's; null ends the list */
    kiln_param_type type;
    kiln_param_role role;
    const char *words; /* legal values, separated by single spaces: "f32 f64 f16 bf16" */
    /* A contract parameter: the number of each word in argument structs, in the order of `words`: "1 2". f16 bf16 f32
     * f64, low high, any, and words of digits have fixed numbers and are omitted. Callers compile the numbers in: a new
     * word gets a new number, wherever it is in `words`. */
    const char *numbers;
    uint32_t min, max, step;
    const char *default_value;
    /* True for a parameter added after the family's first release: ids and functions omit it at its default, so
     * programs keep the keys and calls that they were compiled with. */
    bool is_later;
    const char *summary; /* like kiln_arg.summary */
} kiln_param;

/* ---- arguments -------------------------------------------------------------------------------------------------- */

typedef enum KILN_AS_INT kiln_arg_kind {
    KILN_ARG_VALUE, /* a scalar */
    KILN_ARG_IN,    /* device pointers, by direction */
    KILN_ARG_OUT,
    KILN_ARG_INOUT,
    KILN_ARG_OPTIONAL_IN, /* optional arguments may be null */
    KILN_ARG_OPTIONAL_OUT,
    KILN_ARG_SCRATCH, /* memory to work in, with undefined contents before and after */
    /* As KILN_ARG_IN, for weights and tables: callers promise that earlier launches do not write it, unless a copy, an
     * event or the host waits for them. So a kernel may read it before ptx_grid_wait. */
    KILN_ARG_CONSTANT
} kiln_arg_kind;

typedef struct kiln_arg {
    const char *name; /* as in kiln_param; null ends the list; the order is that of the kernel's parameters */
    kiln_arg_kind kind;
    /* Scalars: u16 u32 u64, i16 i32 i64 (or s16 s32 s64), f32 f64. Pointer elements: these, and u8 i8 s8, f16 bf16, b8
     * b16 b32 b64. "$name" is the type that the parameter `name` names; "$name:f64:f32" is f64 if that type is f64,
     * else f32. A scalar of such a type is a double in C and must be f32 or f64; next to elements that may be f16,
     * write "$name:f64:f32". emit calls ptx_param and ptx_param_ptr with the same types, PTX_S32 for i32. */
    const char *type;
    /* Pointers: elements per dimension, outermost first, separated by ", ": "m, k"; else null. If a dimension is 0 in a
     * call, the pointer may be null, and the kernel must not dereference it. */
    const char *shape;
    /* Pointers: required alignment in bytes, a power of two up to 256, which is what cuMemAlloc promises. If this is
     * 0 or smaller than an element, the element's size applies. Checked before a launch. */
    uint32_t alignment;
    const char *when; /* condition over parameters; null: every variant has it */
    /* One line for the generated header; after a newline, details that `kiln families` and Python's help() print too. */
    const char *summary;
} kiln_arg;

/* ---- what follows from them ------------------------------------------------------------------------------------- */

/* A condition that must hold, and the message if it does not. A condition without parameters is checked for every call,
 * before `empty`, and may name arguments that some variants lack. */
typedef struct kiln_rule {
    const char *condition; /* null ends the list */
    const char *text;      /* "k must be a multiple of 64" */
} kiln_rule;

/* The inputs of dispatch's estimates, beside the grid and the counted instructions: see kiln/estimate.h. Each is an
 * expression over arguments, parameters, device and shape; null: 0, unless noted. `wait` and `extra` of kiln's own families are
 * guesses: no GPU has measured them. kiln-tune's times replace estimates. */
typedef struct kiln_time {
    const char *length;  /* iterations of the main loop in a thread block, in the unit of kiln_shape.trip */
    const char *repeats; /* runs of the main loop in a thread block; null: 1 */
    const char *side_trips;  /* trips of the loops that ptx_side_loop marks */
    const char *wait;        /* cycles per trip that wait for memory if no other warp has work */
    const char *block_bytes; /* bytes that a thread block reads from the L2 cache */
    const char *extra;       /* additional cycles: the reduction of partial sums */
} kiln_time;

/* A row of the family's accuracy. */
typedef struct kiln_bound {
    const char *where; /* "strategy mma"; null ends the list */
    const char *text;  /* "adds 40 * 2^-24 * S, truncated by tensor cores" */
} kiln_bound;

/* The minimum that the work needs, in closed form; null: 0. Tests compare the emulator's counters with it. */
typedef struct kiln_cost {
    const char *bytes_read; /* compulsory bytes of all inputs and outputs */
    const char *bytes_written;
    const char *elements; /* the unit of work that kiln-profile counts per: "n" */
} kiln_cost;

/* An alignment that depends on the variant. */
typedef struct kiln_alignment {
    const char *arg;   /* a pointer, whose own alignment is 0; null ends the list */
    const char *bytes; /* over parameters: "4 * vector"; values as for kiln_arg.alignment */
} kiln_alignment;

/* Memory that some variants need in addition to the caller's arrays. */
typedef struct kiln_workspace {
    const char *arg, *counters; /* pointers that only some variants have: scratch, and zeroed counters */
    const char *size; /* the u64 argument with the number of elements of `arg`, for dispatch and rules */
    /* Elements and counters that a call needs, over arguments and parameters. If counter_elements is null, the shape of
     * `counters` applies. These and the two shapes must never decrease as an argument grows. */
    const char *elements;
    const char *counter_elements;
} kiln_workspace;

/* A tensor map of an argument's array, for bulk copies of boxes (kiln/author/ptx_bulk.h). The launcher encodes it for each call and
 * passes it after the arguments: emit calls ptx_tensor_map for each, in this order. Callers pass only the array. If a
 * dimension of the array is 0, the map is zeros, and the kernel must not use it. */
typedef struct kiln_map {
    const char *name; /* the kernel's parameter, named as an argument; null ends the list */
    /* The pointer, aligned to at least 16 bytes. Its shape gives the tensor's 1 to 5 dimensions. Rules must ensure that
     * each stride is a multiple of 16 bytes below 2^40, and each dimension at most 2^32. */
    const char *arg;
    const char *strides; /* elements, of all dimensions except the last, over arguments; null: contiguous */
    /* Elements of the box per dimension, outermost first, 1 to 256, over parameters: "128, 64". A row of the box has a
     * multiple of 16 bytes, and with a swizzle at most swizzle_bytes. */
    const char *box;
    const char *swizzle_bytes; /* 0, 32, 64 or 128, over parameters; null: 0 */
    const char *when;          /* condition over parameters; null: every variant has it */
} kiln_map;

/* Dimensions of contiguous arrays. NAME_FAMILY_set_contiguous computes strides from them. */
typedef struct kiln_dense {
    const char *args; /* pointers with the same strides, separated by single spaces; null ends the list */
    const char *dims; /* elements per dimension, outermost first, over arguments and parameters: "m, k" */
    /* The stride argument of each dimension, in order; the last stride, 1, may be omitted; "": no strides. */
    const char *strides;
    const char *when; /* condition over parameters; null: always */
} kiln_dense;

/* The value that a call passes for one argument of the family. */
typedef struct kiln_value {
    const char *arg;   /* null ends the list */
    const char *value; /* over the call's arguments and integer contract parameters; must fit the argument */
} kiln_value;

/* An additional typed function with fewer arguments: NAME_FAMILY_single_head. */
typedef struct kiln_call {
    const char *name; /* the suffix of the family's name; null ends the list */
    const char *summary;
    const kiln_arg *args;     /* ends with a null name; those that the family has are passed on unchanged */
    const kiln_value *values; /* for the family's other arguments; an argument without a value is 0 */
} kiln_call;

typedef struct kiln_variant kiln_variant;

enum { KILN_MAX_NUMBERS = 8 };

/* A variant's resources on a multiprocessor, which depend only on its parameters. Read by the launch, the grid and the
 * kernel. */
typedef struct kiln_shape {
    uint32_t block[3]; /* threads; 0 means 1, except in the first */
    /* Dynamic shared memory. If the family has shared_bytes: the maximum and minimum over legal calls. */
    uint32_t shared_bytes, least_shared_bytes;
    /* Targets that run it: from the family's min_sm on unless set; max_sm 0: any newer target. */
    uint32_t min_sm, max_sm;
    bool is_specific; /* only on targets of one architecture or family: sm_90a, sm_100f */
    /* Thread blocks per multiprocessor that ptxas must leave registers for (.minnctapersm); 0: not set. May depend on
     * the target: kiln_has_sm. */
    uint32_t blocks_per_multiprocessor;
    /* Registers per thread that ptxas uses, if more thread blocks fit than blocks_per_multiprocessor: estimates use it.
     * 0: no more fit. */
    uint32_t registers;
    /* For the loop that ptx_main_loop marks. trip: a warp's work in a trip, in the unit of kiln_time.length; 0: 1.
     * loop_warps: warps of a thread block that share its trips; 0: 1, each warp runs all of them. */
    uint32_t trip, loop_warps;
    struct kiln_constraints *constraints; /* private to the generator */
    uint64_t numbers[KILN_MAX_NUMBERS];   /* set by kiln_number, in the order of kiln_family.numbers */
} kiln_shape;

/* Sets one of kiln_family.numbers; call it in `shape`. Expressions then use the number instead of repeating the
 * calculation. Numbers that are not set are 0. An unlisted name ends the generator with an error that names it. */
void kiln_number(kiln_shape *s, const kiln_variant *v, const char *name, uint64_t value);

/* Makes a combination of parameters legal only if `holds`; call it in `shape`. `params` names the parameters that the
 * constraint depends on, separated by single spaces; `text` states the constraint: "rows times batch is at most 8:
 * registers". State every constraint for every variant, met or not, so that the generator knows all of them; the shape
 * of a variant that breaks one is not used. */
void kiln_require(kiln_shape *s, bool holds, const char *params, const char *text);

/* Like kiln_require, for shared memory: `bytes` must be at most `most`. `text` names what takes the memory, in the
 * plural: "tile_m and stages with strategy mma". The diagnostic adds how many bytes they take. */
void kiln_require_shared_bytes(kiln_shape *s, uint32_t bytes, uint32_t most, const char *params,
                               const char *text);

typedef struct kiln_family {
    const char *name;      /* [a-z][a-z0-9_]* without double underscores */
    const char *summary;   /* one line */
    const char *source;    /* the paper, format or kernel that the contract comes from */
    const char *nonfinite; /* results for NaNs and infinities; null: unspecified */
    /* accuracy: how far each output may be from the exact result, and for which inputs; null: unspecified. bounds: what
     * adds to that error, by parameter or argument; null: nothing. */
    const char *accuracy;
    const kiln_bound *bounds;
    const kiln_param *params; /* ends with a null name; may be null */
    const kiln_arg *args;     /* ends with a null name */
    /* Words, or null. Adjacent arguments WORD_name become members of a struct in the argument struct: a caller writes
     * WORD.name. Everywhere else they keep their names. */
    const char *groups;
    const kiln_alignment *alignments; /* of arguments whose alignment depends on the variant; may be null */
    /* Names, separated by single spaces, of numbers that `shape` sets with kiln_number and expressions use; null: none. */
    const char *numbers;
    /* Sets a variant's resources, and rejects combinations; null: one thread, any combination. */
    void (*shape)(kiln_shape *s, const kiln_variant *v);
    const kiln_rule *rules; /* over arguments and parameters, checked at every launch; may be null */
    const char *empty;   /* condition over arguments: nothing to do, success without a launch; may be null */
    const char *grid[3]; /* thread blocks, over arguments, parameters, device and shape; null: 1 */
    /* Dynamic shared memory that depends on a call's arguments, over arguments, parameters and shape; null: the
     * shape's. */
    const char *shared_bytes;
    /* The family's function considers the variants that match the call's contract words, whose rules and alignments the
     * call meets, and that the device can run. It launches the one with the lowest estimate; on a tie, the first in the
     * configuration. */
    kiln_time time;
    const kiln_workspace *workspace; /* null: none. Else NAME_FAMILY_workspace returns its size */
    /* The argument with the number of parts that share the work, or null. Bundles without a workspace ignore it, like
     * the workspace's own arguments. */
    const char *workspace_parts;
    const kiln_call *calls;  /* null: the family's own function is the only one */
    const kiln_dense *dense; /* null: no argument is a stride */
    const kiln_map *maps;    /* null: no tensor maps; at most KILN_MAX_MAPS in a variant */
    /* A small legal call, for the generated header: numbers, or C for floats, over contract parameters. Other values
     * are 0 there, and pointers are variables of their names. Null: the values are variables, too. */
    const kiln_value *example;
    /* Typical sizes, over arguments and contract parameters, for sizes that a shape in a configuration omits. Sizes
     * without a value here are the smallest that the rules allow. May be null. */
    const kiln_value *usual;
    /* Conditions over arguments and parameters under which another contract is faster, each with that contract's name.
     * A shape that meets one gets a warning. May be null. */
    const kiln_rule *advice;
    kiln_cost cost;
    uint32_t min_sm; /* lowest target that some variant runs on */
    void (*emit)(ptx_fn *f, const kiln_variant *v);
} kiln_family;

/* ---- inside emit ------------------------------------------------------------------------------------------------ */

/* Return the value of a parameter of the variant. A name that the family does not declare, or one of another type, ends
 * the generator with an error that names both. kiln_int takes a word made of digits too. */
uint32_t kiln_int(const kiln_variant *v, const char *param);
bool kiln_bool(const kiln_variant *v, const char *param);
bool kiln_is(const kiln_variant *v, const char *param, const char *word);

/* Returns the index of a word parameter's value in the parameter's list of words. */
uint32_t kiln_word_index(const kiln_variant *v, const char *param);

/* The PTX type that a word parameter names ("f16"). */
ptx_type kiln_type(const kiln_variant *v, const char *param);

/* Like ptx_has_sm, which a body may call too. */
bool kiln_has_sm(const kiln_variant *v, uint32_t sm);

/* ---- a generator ------------------------------------------------------------------------------------------------- */

/* Runs kiln's command line with these families, in the order that `kiln families` prints; the list ends with null.
 * Returns the exit status. kiln_add_generator makes the program that calls it. */
int kiln_main(int argc, char **argv, const kiln_family *const *families);

#ifdef __cplusplus
}
#endif

#endif
