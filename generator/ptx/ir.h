/* The kernel under construction, as the builder, the checker and the printer see it. Structured: blocks open and close
 * in one list of instructions, and branches exist only in print. */
#ifndef PTX_IR_H
#define PTX_IR_H

#include "builder.h"

/* ---- values ----------------------------------------------------------------------------------------------------- */

enum { VAL_POISON, VAL_REGISTER, VAL_IMMEDIATE };

typedef struct ptx_place {
    const char *file;
    int line;
} ptx_place;

typedef struct ptx_reg {
    uint8_t type, space; /* space: of pointers, which live in 32 bits in shared memory */
    bool variable;       /* ptx_set may write it */
    bool counter;        /* of a PTX_FOR: only the loop writes it */
    bool declared;       /* without a first value */
    bool said_uniform;
    uint32_t align;      /* pointers: bytes that it is known to be a multiple of, 0 when not known */
    uint32_t scope;      /* index of the block that it was made in */
    size_t born;         /* position after the instruction that made it; 0 for variables, parameters and arrays */
    int born_line;
    const char *born_file;
    int moved_line;      /* where ptx_set moved it into a variable, 0 when not */
} ptx_reg;

/* ---- the operations table --------------------------------------------------------------------------------------- */

enum { TRAIT_VARIES = 1, TRAIT_SYNC = 2 };
#define FROM_SAME (1u << 31)

typedef struct op_row {
    ptx_op op;
    const char *text;
    const char *signature;
    uint32_t types, from;
    uint8_t traits;
    ptx_floor needs;
} op_row;

extern const op_row op_rows[];
extern const size_t op_row_count;

/* The row of an operation that takes these types, or null. */
const op_row *op_find(ptx_op op, ptx_type type, ptx_type from);
/* The first row of an operation. */
const op_row *op_first(ptx_op op);
/* "add" of "add.rn.$t", into buffer. */
const char *op_mnemonic(const op_row *row, char buffer[24]);

typedef struct sreg_row {
    const char *name;
    ptx_type type;
    bool varies;
    ptx_floor needs;
} sreg_row;
extern const sreg_row sreg_rows[PTX_SREG_COUNT];

typedef struct hint_row {
    int bit;
    const char *text;
    bool loads, stores;
    ptx_floor needs;
} hint_row;
extern const hint_row hint_rows[];
extern const size_t hint_row_count;

/* ---- floors ----------------------------------------------------------------------------------------------------- */

extern const ptx_floor floor_lowest;
/* Does a body that needs `needs` fit a target? */
bool floor_fits(ptx_floor needs, ptx_floor target);
/* What a body needs that holds both; for a target, since family features have no lowest target of their own. */
ptx_floor floor_join(ptx_floor a, ptx_floor b);
/* The .version that a .target came with; 0 for one that is not known. */
uint16_t floor_target_version(uint16_t sm, char kind);

/* ---- types ------------------------------------------------------------------------------------------------------ */

const char *type_bits_name(ptx_type type);   /* "b32" */
const char *type_memory_name(ptx_type type); /* "b16" for f16, which loads do not know */
ptx_type type_wide(ptx_type type);           /* U64 for U32; PTX_NONE */
bool type_is_float16(ptx_type type);         /* f16, bf16 and their pairs */
uint32_t type_bit(ptx_type type);

/* ---- instructions ----------------------------------------------------------------------------------------------- */

typedef enum inst_kind {
    INST_OP,
    INST_IF,       /* operand 0: the predicate */
    INST_ELSE,
    INST_END_IF,
    INST_LOOP,
    INST_END_LOOP, /* operand 0: again while it holds */
    INST_BREAK,    /* operand 0: out of `scope` where it holds */
    INST_NOTE      /* `symbol` is the text */
} inst_kind;

typedef struct ptx_inst {
    inst_kind kind;
    const op_row *row;  /* INST_OP */
    ptx_type type, from;
    ptx_space space;    /* $S */
    int vector;         /* how many operands or results a v or z stands for */
    int hints;
    const char *symbol; /* y: an array's name or "[parameter]"; r: a special register */
    uint8_t result_count, operand_count;
    ptx_val *results, *operands;
    ptx_val guard;      /* predicate of PTX_WHEN, else poison */
    uint32_t within;    /* the block that it stands in */
    uint32_t scope;     /* control: the block that it opens, ends or leaves */
    ptx_floor needs;    /* beyond the row's */
    bool varies;        /* beyond the row's */
    ptx_place at;
} ptx_inst;

/* ---- the kernel ------------------------------------------------------------------------------------------------- */

typedef struct list {
    void *items;
    size_t count, capacity;
} list;

typedef enum scope_kind { SCOPE_KERNEL, SCOPE_IF, SCOPE_ELSE, SCOPE_TEST, SCOPE_WHEN, SCOPE_FOR, SCOPE_LOOP } scope_kind;

typedef struct scope {
    scope_kind kind;
    uint32_t parent;
    bool open;
    bool has_else;   /* SCOPE_IF */
    bool has_break;  /* loops */
    bool repeated;   /* SCOPE_LOOP: ptx_repeat_if was called */
    uint32_t test;   /* SCOPE_FOR: the block of the test for an empty loop, 0 for none */
    uint32_t label;  /* number in its labels; an else has its if's */
    uint32_t pair;   /* SCOPE_ELSE: the block of its if */
    ptx_val counter, to, step; /* SCOPE_FOR */
    ptx_place at;
} scope;

typedef struct kernel_param {
    const char *name;
    ptx_type type, element;
} kernel_param;

/* An array in shared or constant memory. */
typedef struct memory_array {
    const char *name;
    ptx_space space;
    ptx_type element;
    uint32_t count, align;
    const uint64_t *bits; /* constants */
    bool dynamic;
} memory_array;

typedef struct problem {
    ptx_place at;
    const char *text;
} problem;

struct ptx_fn {
    arena *arena;
    const char *entry;
    ptx_floor target;
    uint32_t block[3];
    uint32_t min_blocks;
    list regs;     /* ptx_reg; number 0 is not used */
    list top;      /* ptx_inst *: parameters and the addresses of arrays */
    list body;     /* ptx_inst * */
    list scopes;   /* scope; 0 is the kernel */
    list params;   /* kernel_param */
    list symbols;  /* symbol */
    list problems; /* problem */
    uint32_t current; /* innermost open scope */
    uint32_t labels;
    uint32_t shared_bytes; /* of static arrays */
    uint32_t const_bytes;
    ptx_val guard;
};

ptx_reg *fn_reg(const ptx_fn *f, uint32_t reg);
ptx_inst *fn_inst(const list *insts, size_t i);
scope *fn_scope(const ptx_fn *f, uint32_t i);

/* ---- what the builder's files share ----------------------------------------------------------------------------- */

void *list_add(ptx_fn *f, list *l, size_t element_bytes);
__attribute__((format(printf, 3, 4))) void fn_problem(ptx_fn *f, ptx_place at, const char *format, ...);

ptx_val val_register(ptx_fn *f, ptx_type type);
ptx_val val_born(ptx_fn *f, ptx_type type, ptx_place at); /* as the result of the instruction just appended */
ptx_val val_retyped(ptx_val v, ptx_type type);
extern const ptx_val val_poison;

/* True when a value may be used here. Poison: false, in silence. Else false and a problem that calls it `what`. */
bool val_usable(ptx_fn *f, ptx_val v, const char *what, ptx_place at);

/* False, with a problem, when two of the values were emitted by two instructions on the line of the call that they are
 * arguments of: C leaves open which was emitted first. */
bool vals_in_order(ptx_fn *f, int count, const ptx_val values[], ptx_place at);

/* Appends an instruction with room for results and operands, under the current guard. */
ptx_inst *inst_append(ptx_fn *f, inst_kind kind, int results, int operands, ptx_place at);
/* An operation over operands, checked against its row; result 0 or poison. type: PTX_NONE to take an operand's. */
ptx_val inst_apply(ptx_fn *f, ptx_op op, ptx_type type, int count, const ptx_val operands[], ptx_place at);
/* The same, with all results: *inst is null when there was a problem. */
ptx_inst *inst_build(ptx_fn *f, ptx_op op, ptx_type type, ptx_type from, int vector, int count,
                     const ptx_val operands[], ptx_place at);

/* The registers' names in print, and how instructions are written with them. */
typedef struct names {
    const ptx_fn *f;
    uint32_t *number; /* per register; 0: it is not used */
    uint32_t *used;   /* per class: how many */
} names;
names names_make(const ptx_fn *f);
bool names_has(const names *n, const ptx_inst *inst); /* is a result of it used at all? */
void print_value(text *out, const names *n, ptx_val v);
void print_instruction(text *out, const names *n, const ptx_inst *inst);

/* Divergence: which registers and blocks may differ between the threads of a block. */
typedef struct divergence {
    bool *reg, *scope;
} divergence;
divergence divergence_make(const ptx_fn *f);
bool divergent_here(const ptx_fn *f, const divergence *d, uint32_t scope);

/* Adds a problem for each use of a declared variable that is not set on every path to it. */
void check_definitions(ptx_fn *f);

uint32_t scope_open(ptx_fn *f, scope_kind kind, ptx_place at);

#endif
