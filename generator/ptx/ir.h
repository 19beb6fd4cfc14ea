/* The kernel under construction, for the builder, the checker and the printer. Structured: blocks open and close in one
 * list of instructions, and branches exist only in print. */
#ifndef PTX_IR_H
#define PTX_IR_H

#include "builder.h"

/* ---- values ----------------------------------------------------------------------------------------------------- */

/* The last three are literals, plain C numbers: bits of an int64_t, a uint64_t or a double, until an operation gives
 * them a type. Uninitialised memory seldom holds their numbers. */
enum { VAL_POISON, VAL_REGISTER, VAL_IMMEDIATE, VAL_SIGNED = 0x61, VAL_UNSIGNED, VAL_REAL };

typedef struct ptx_place {
    const char *file;
    int line;
} ptx_place;

typedef struct ptx_reg {
    uint8_t type, space; /* space: for pointers; those to shared memory have 32 bits */
    bool variable;       /* ptx_set may write it */
    bool counter;        /* counter of a PTX_FOR, which only the loop writes */
    bool declared;       /* without an initial value */
    bool derived;        /* pointers: not an array's own, so the real alignment may exceed `align` */
    uint8_t span; /* 5 or 7: the value is 2^span * k + the thread's number in its warp or warpgroup; 0: not */
    uint8_t zeros; /* integers: low bits known to be 0 */
    uint8_t said;  /* level: the most at which it differs, as the author declares; LEVEL_LANE: not declared */
    uint32_t align; /* pointers: known alignment in bytes; 0: unknown */
    uint32_t scope; /* index of the block where it was made */
    size_t born;    /* position after the defining instruction; 0 for variables, parameters and arrays */
    int moved_line; /* where ptx_set moved it into a variable; 0: not moved */
} ptx_reg;

/* ---- the operations table --------------------------------------------------------------------------------------- */

enum {
    TRAIT_VARIES = 1,
    TRAIT_VOTE = 2,
    TRAIT_SYNC = 4,
    TRAIT_WARP = 8,
    TRAIT_GROUP = 16,
    TRAIT_ONCE = 32,
    TRAIT_SLOW = 64,
    TRAIT_LONG = 128
};
#define FROM_SAME (1u << 31)

typedef struct op_row {
    ptx_op op;
    const char *text;
    const char *signature;
    uint32_t types, from;
    uint8_t traits;
    ptx_requirement needs;
} op_row;

extern const op_row op_rows[];
extern const size_t op_row_count;

/* The row of an operation for these types, or null. */
const op_row *op_find(ptx_op op, ptx_type type, ptx_type from);
/* The first row of an operation. */
const op_row *op_first(ptx_op op);
/* "add" of "add.rn.$t", into buffer. */
const char *op_mnemonic(const op_row *row, char buffer[24]);

/* Where a value may differ: nowhere in a thread block, between its warpgroups, its warps, the lanes of a warp. */
typedef enum level { LEVEL_BLOCK, LEVEL_GROUP, LEVEL_WARP, LEVEL_LANE } level;

/* Logarithms of a warp's and a warpgroup's threads. */
enum { WARP_SPAN = 5, GROUP_SPAN = 7 };

typedef struct sreg_row {
    const char *name;
    ptx_type type;
    level level;
    ptx_requirement needs;
} sreg_row;
extern const sreg_row sreg_rows[PTX_SREG_COUNT];

/* Operations that take a hint, an order or a scope. */
enum {
    TAKE_LOAD = 1,
    TAKE_STORE = 2,
    TAKE_CP_ASYNC = 4,
    TAKE_ATOM = 8,
    TAKE_RED = 16,
    TAKE_FENCE = 32,
    TAKE_MEMBAR = 64
};
enum {
    HINT_OPERATORS = PTX_CA | PTX_CG | PTX_CS | PTX_LU | PTX_CV | PTX_WB | PTX_WT,
    HINT_LEVEL1 = PTX_NO_ALLOCATE | PTX_EVICT_FIRST | PTX_EVICT_LAST,
    HINT_LEVEL2 = PTX_L2_EVICT_FIRST | PTX_L2_EVICT_LAST,
    HINT_PREFETCH = PTX_L2_64B | PTX_L2_128B | PTX_L2_256B,
    HINT_ORDERS = PTX_RELAXED | PTX_ACQUIRE | PTX_RELEASE | PTX_ACQ_REL | PTX_SC,
    HINT_SCOPES = PTX_CTA | PTX_GPU | PTX_SYS,
    HINT_POLICY = 1 << 25 /* .L2::cache_hint: set if the pointer has a policy */
};
typedef struct hint_row {
    int bit, takes;
    const char *text;
    ptx_requirement needs;
} hint_row;
extern const hint_row hint_rows[];
extern const size_t hint_row_count;

typedef struct mma_row {
    ptx_mma_shape shape;
    const char *text;
    ptx_mma_info info;
    int bits; /* of an element of A or B */
    ptx_requirement needs;
} mma_row;
extern const mma_row mma_rows[PTX_MMA_SHAPE_COUNT];

typedef struct wgmma_row {
    ptx_wgmma_types types;
    const char *depth, *names; /* "k16", ".f32.f16.f16" */
    int k;
    int bits; /* of an element of A or B */
    ptx_type a_type, d_type;
    ptx_requirement needs;
} wgmma_row;
extern const wgmma_row wgmma_rows[PTX_WGMMA_TYPES_COUNT];

/* ---- requirements ------------------------------------------------------------------------------------------------- */

extern const ptx_requirement requirement_lowest;
/* Returns what a and b need together, in code for one target: family features have no lowest target. */
ptx_requirement requirement_join(ptx_requirement a, ptx_requirement b);

/* ---- types ------------------------------------------------------------------------------------------------------ */

const char *type_bits_name(ptx_type type);   /* "b32" */
const char *type_memory_name(ptx_type type); /* "b16" for f16, which loads lack */
ptx_type type_wide(ptx_type type);           /* U64 for U32; PTX_NONE */
bool type_needs_register(ptx_type type);     /* has no immediates: 16-bit floats and pairs of floats */
bool type_is_integer(ptx_type type);         /* numbers or bits, but not pairs */
uint32_t type_bit(ptx_type type);

/* ---- instructions ----------------------------------------------------------------------------------------------- */

typedef enum inst_kind {
    INST_OP,
    INST_IF, /* operand 0: the predicate */
    INST_ELSE,
    INST_END_IF,
    INST_LOOP,
    INST_END_LOOP, /* operand 0: repeat while it holds */
    INST_BREAK,    /* operand 0: leave `scope` if it holds */
    INST_NOTE      /* `symbol` is the text */
} inst_kind;

typedef struct ptx_inst {
    inst_kind kind;
    const op_row *row; /* INST_OP */
    ptx_type type, from;
    ptx_space space; /* $S */
    int vector;      /* operands or results of a v, z, g or j */
    int hints;
    const char
        *symbol; /* y: an array's name or "[parameter]"; r: a special register; mma's shape; ptx_raw's text */
    const uint8_t *groups;      /* mma, wgmma: the size of each g and j */
    const ptx_wgmma_form *form; /* of a wgmma product, which reads D after the operands of its signature */
    uint8_t result_count, operand_count;
    ptx_val *results, *operands;
    ptx_val guard;         /* predicate of PTX_WHEN, else poison */
    uint32_t within;       /* the enclosing block */
    uint32_t scope;        /* control: the block that it opens, ends or leaves */
    ptx_requirement needs; /* beyond the row's */
    level varies;          /* beyond the row's */
    bool whole_warp;       /* beyond the row's */
    ptx_place at;
} ptx_inst;

/* ---- the kernel ------------------------------------------------------------------------------------------------- */

typedef struct list {
    void *items;
    size_t count, capacity;
} list;

typedef enum scope_kind {
    SCOPE_KERNEL,
    SCOPE_IF,
    SCOPE_ELSE,
    SCOPE_TEST,
    SCOPE_WHEN,
    SCOPE_FOR,
    SCOPE_LOOP
} scope_kind;

/* Where a block's instructions are counted: with the enclosing block's, per trip of a loop, or not at all. */
enum { COUNT_AROUND, COUNT_MAIN, COUNT_SIDE, COUNT_NOT };

typedef struct scope {
    scope_kind kind;
    uint32_t parent;
    bool open;
    bool has_else;                    /* SCOPE_IF */
    bool has_break;                   /* loops */
    bool repeated;                    /* SCOPE_LOOP: ptx_repeat_if was called */
    uint8_t counted;                  /* COUNT_: set by ptx_main_loop and its like */
    uint32_t test;                    /* SCOPE_FOR: the block of the test for an empty loop, 0 for none */
    uint32_t label;                   /* number in its labels; an else has its if's */
    uint32_t pair;                    /* SCOPE_ELSE: the block of its if */
    ptx_val counter, start, to, step; /* SCOPE_FOR */
    ptx_place at;
} scope;

typedef struct kernel_param {
    const char *name;
    ptx_type type, element; /* a tensor map: PTX_PTR and PTX_NONE */
    bool is_constant;       /* see ptx_set_constant */
} kernel_param;

typedef struct memory_array {
    const char *name;
    ptx_space space;
    ptx_type element;
    uint32_t count, align;
    const uint64_t *bits; /* constants */
    bool dynamic;
} memory_array;

static const char dynamic_name[] = "dynamic_shared";

typedef struct problem {
    ptx_place at;
    const char *text;
} problem;

struct ptx_fn {
    arena *arena;
    const char *entry;
    target target;
    target_range *alike; /* range of the targets with the same kernel; null: not recorded */
    uint32_t block[3];
    uint32_t min_blocks;
    list regs;     /* ptx_reg; number 0 is unused */
    list top;      /* ptx_inst *: parameters and the addresses of arrays */
    list body;     /* ptx_inst * */
    list scopes;   /* scope; 0 is the kernel */
    list params;   /* kernel_param */
    list symbols;  /* symbol */
    list problems; /* problem */
    list calls; /* size_t: the body's length at the start of each call whose arguments are being evaluated */
    size_t called_at; /* the body's length at the last such start of a call whose arguments are complete */
    uint32_t current; /* innermost open scope */
    uint32_t labels;
    bool has_main_loop;
    uint32_t shared_bytes;  /* of static arrays */
    uint32_t dynamic_align; /* of dynamic shared memory; 0: there is none */
    uint32_t dynamic_bytes; /* taken by ptx_take_dynamic; 0: not taken */
    ptx_caller caller;      /* the author's call, whose place the instructions get; null: their own */
    uint32_t const_bytes, local_bytes;
    ptx_val guard;
};

ptx_reg *fn_reg(const ptx_fn *f, uint32_t reg);
ptx_inst *fn_inst(const list *insts, size_t i);
scope *fn_scope(const ptx_fn *f, uint32_t i);

/* ---- what the builder's files share ----------------------------------------------------------------------------- */

void *list_add(ptx_fn *f, list *l, size_t element_bytes);
/* The place of the author's call if there is one, else `own`. */
ptx_place fn_place(const ptx_fn *f, ptx_place own);
__attribute__((format(printf, 3, 4))) void fn_problem(ptx_fn *f, ptx_place at, const char *format, ...);

/* Whether a text is printable ASCII, the only characters allowed in PTX. */
bool text_is_ptx(const char *s);

ptx_val val_register(ptx_fn *f, ptx_type type);
ptx_val val_born(ptx_fn *f, ptx_type type); /* result of the instruction just appended */
ptx_val val_retyped(ptx_val v, ptx_type type);
extern const ptx_val val_poison;

/* False for poison. If no known problem explains it, its author never gave it a value: adds a problem that calls it
 * `what`. */
bool val_given(ptx_fn *f, ptx_val v, const char *what, ptx_place at);

/* Converts a literal to an immediate of the type, if the type has that number: a fraction is rounded to a float, others
 * are exact. Leaves other values unchanged. False after a problem that calls the literal `what`. */
bool val_settle(ptx_fn *f, ptx_val *v, ptx_type type, const char *what, ptx_place at);
bool val_is_literal(ptx_val v);

/* Whether a value may be used here: it has a value, was not moved away, and its block has not ended. Adds a problem if
 * not. */
bool val_usable(ptx_fn *f, ptx_val v, const char *what, ptx_place at);

/* Checks without a problem, for callers with many values: they call val_usable only if this is false. */
bool val_is_fine(const ptx_fn *f, ptx_val v);

/* The place of a call that ptx_call_begins recorded; its arguments have been evaluated. */
ptx_place call_place(ptx_fn *f, const char *file, int line);

/* False, with a problem, if two of the values were emitted while the arguments of the last such call were evaluated: C
 * leaves their order open. */
bool vals_in_order(ptx_fn *f, int count, const ptx_val values[], ptx_place at);

/* Appends an instruction with room for results and operands, under the current guard. */
ptx_inst *inst_append(ptx_fn *f, inst_kind kind, int results, int operands, ptx_place at);
/* Applies an operation to operands, checked against its row; returns result 0 or poison. type: PTX_NONE to take an
 * operand's. */
ptx_val inst_apply(ptx_fn *f, ptx_op op, ptx_type type, int count, const ptx_val operands[], ptx_place at);
/* Builds an operation with all results; null after a problem. */
ptx_inst *inst_build(ptx_fn *f, ptx_op op, ptx_type type, ptx_type from, int vector, int count,
                     const ptx_val operands[], ptx_place at);

/* The value, in a register if its type has no immediates. */
ptx_val val_in_register(ptx_fn *f, ptx_val v, ptx_place at);
/* Records facts about an operation's result: its low bits, whether it counts threads. */
void facts_note(ptx_fn *f, const ptx_inst *inst);
int val_zeros(const ptx_fn *f, ptx_val v);
int val_span(const ptx_fn *f, ptx_val v);

/* Whether a value points to a 64-bit word in shared memory. */
bool mbarrier_fits(ptx_fn *f, ptx_val barrier, ptx_place at);
/* Whether a pointer is to one of the spaces (bits 1 << ptx_space) and may be a multiple of `bytes`. The problem names
 * `what`. */
bool pointer_fits(ptx_fn *f, const char *what, ptx_val pointer, uint32_t spaces, uint32_t bytes,
                  ptx_place at);
/* Whether memory can hold elements of this type; reports if not. */
bool element_fits(ptx_fn *f, const char *what, ptx_type element, ptx_place at);
/* Whether an instruction of a kind (TAKE_) takes these hints, this order or scope. */
bool hints_fit(ptx_fn *f, const char *what, int takes, int hints, bool global, ptx_place at);
/* The pointer's cache policy; poison if none. */
ptx_val pointer_policy(ptx_val pointer);
/* Sets space, hints and their needs, in an instruction that accesses memory through a pointer. */
void inst_describe(ptx_inst *inst, ptx_val pointer, int hints);

/* Whether values may be a fragment: registers `name` of the operation `what`. Variables are registers that it changes. */
bool fragment_fits(ptx_fn *f, const char *what, char name, int count, ptx_type type, const ptx_val values[],
                   ptx_place at);
bool are_variables(const ptx_fn *f, int count, const ptx_val values[], int *which);
/* Whether all these registers differ; reports two that are the same. */
bool are_different(ptx_fn *f, const char *operation, char name, int count, const ptx_val values[],
                   ptx_place at);

/* The number after the $ at *s in ptx_raw's text, or -1; moves *s to its last digit. */
int raw_number(const char **s);

/* The registers' names in print, and how instructions are written with them. */
typedef struct names {
    const ptx_fn *f;
    bool has_places;  /* append to each line a comment with its place in the kernel's source */
    uint32_t *number; /* per register; 0: unused */
    uint32_t *used;   /* per class */
} names;
names names_make(const ptx_fn *f);
bool names_has(const names *n, const ptx_inst *inst); /* whether any of its results is used */
void print_value(text *out, const names *n, ptx_val v);
void print_instruction(text *out, const names *n, const ptx_inst *inst);

/* Divergence: where registers may differ, and where threads may have diverged. */
typedef struct divergence {
    uint8_t *reg, *scope; /* level */
    uint8_t *row;         /* level of k, for registers with a span */
} divergence;
divergence divergence_make(const ptx_fn *f);
level divergence_of(const divergence *d, ptx_val v);
level divergence_here(const ptx_fn *f, const divergence *d, uint32_t scope);
bool needs_whole_warp(const ptx_inst *inst);

/* Adds a problem for each access to a register of a product of wgmma in flight, and for each missing fence and wait. */
void check_in_flight(ptx_fn *f);
/* Adds a problem for each use of a declared variable that is not set on every path to it. */
void check_definitions(ptx_fn *f);
/* Adds a problem for code that must not precede ptx_grid_wait, and if threads may miss it. */
void check_dependent(ptx_fn *f);

uint32_t scope_open(ptx_fn *f, scope_kind kind, ptx_place at);

#endif
