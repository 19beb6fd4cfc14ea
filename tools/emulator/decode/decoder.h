/* Functions that the files of the decoder share, and that a row's own decode function may use. */
#ifndef EMU_DECODER_H
#define EMU_DECODER_H

#include "match.h"

typedef struct emu_fixup {
    size_t op;
    const emu_function *function; /* the jump's target: the function's start */
    const emu_symbol *label;      /* or, if `function` is NULL, a label */
    size_t to;                    /* or, if both are NULL, an operation */
} emu_fixup;

typedef struct emu_table_fixup { /* one entry of a branch table */
    size_t list_index;
    const emu_symbol *label;
} emu_table_fixup;

typedef struct emu_function_code {
    const emu_function *function;
    size_t laid_out; /* how many instructions are laid out */
    size_t start;
    uint32_t return_slot;
    bool is_listed;              /* in emu_decoder.functions */
    bool can_be_called;          /* false while it is laid out or decoded: a call would be recursive */
    uint32_t *op_of_instruction; /* for labels; one entry more than instructions */
} emu_function_code;

typedef struct emu_decoder {
    const emu_decode_input *in;
    emu_program *program;
    emu_function_code *code; /* the function that is laid out or decoded */
    const emu_instruction *instruction;
    uint32_t guard;
    bool is_first;
    emu_list ops, uses, instructions, function_names, lists, fixups, table_fixups, functions;
    struct constant *constant_buckets[256];
    uint32_t constant_room;
    uint32_t temporaries[24], temporary_count, temporaries_used;
    uint64_t scratch; /* in local memory; 0: none yet */
    uint32_t dynamic_shared_alignment;
} emu_decoder;

enum { EMU_RELAXED_WIDTH = 1, EMU_ADDRESS_OF = 2, EMU_SPECIAL = 4, EMU_NEGATABLE = 8 };

/* Decode an operand to an argument. Each logs an error and returns the sink if the operand is not allowed. */
uint32_t emu_decode_source(emu_decoder *d, const emu_operand *o, emu_type type, unsigned allow);
uint32_t emu_decode_constant(emu_decoder *d, unsigned bytes, uint64_t value);
uint32_t emu_decode_address(emu_decoder *d, const emu_operand *o, emu_op *op);

/* A destination whose register may be wider than the type: the operation writes `arg`, and emu_finish_destination extends
   it. */
typedef struct emu_destination {
    uint32_t arg, slot;
    emu_type type, reg_type;
} emu_destination;

emu_destination emu_decode_destination(emu_decoder *d, const emu_operand *o, emu_type type, unsigned allow,
                                       bool sink_allowed);
void emu_finish_destination(emu_decoder *d, const emu_destination *destination);

/* Returns the register that `o` names, and its slot; NULL without an error if `o` is no register. */
const emu_symbol *emu_decode_register(emu_decoder *d, const emu_operand *o, uint32_t *slot);
/* Returns the vector register if `o` names a whole one; otherwise NULL. */
const emu_symbol *emu_decode_vector(emu_decoder *d, const emu_operand *o, uint32_t *slot);
/* The elements of {...} or of a vector register. Returns false after an error. */
bool emu_decode_elements(emu_decoder *d, const emu_operand *o, unsigned count, emu_operand *elements);

uint32_t emu_slot(emu_decoder *d, const emu_symbol *s);
uint32_t emu_temporary(emu_decoder *d);

/* Returns false after an error, if the number of operands is not `count`. */
bool emu_has_operands(emu_decoder *d, const emu_instruction *i, unsigned count);

/* Appends an operation of the current instruction. */
void emu_emit(emu_decoder *d, const emu_op *op, emu_uses uses);
void emu_copy_register(emu_decoder *d, emu_type type, uint32_t to, uint32_t from);
size_t emu_list_begin(emu_decoder *d);
void emu_list_push(emu_decoder *d, uint32_t arg);

void emu_decode_error(emu_decoder *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Logs an instruction that is valid PTX, but not emulated. */
void emu_decode_unsupported(emu_decoder *d, emu_text name, const char *what);
emu_place *emu_place_of(emu_decoder *d, uint32_t sequence);
emu_function_code *emu_find_code(emu_decoder *d, const emu_function *f);
const emu_symbol *emu_find_variable(emu_decoder *d, const emu_operand *o);
/* The symbol that a name means at this instruction, or NULL. For name<count>, *number is the number. */
const emu_symbol *emu_find_name(const emu_decoder *d, emu_text name, uint32_t *number);
bool emu_variable_address(emu_decoder *d, const emu_symbol *s, uint64_t *address);

/* The parts of call{.uni} {(results),} callee{, (arguments)}{, prototype or targets}; callee is NULL if it is missing. */
typedef struct emu_call {
    const emu_operand *results, *callee, *arguments;
    const emu_operand *prototype; /* or a list of targets; NULL: neither */
} emu_call;

emu_call emu_call_parts(const emu_instruction *i);

/* layout.c: lays out the kernel and the functions that it calls, callees first, with their shared and local variables; then
   dynamic shared memory. */
void emu_layout_functions(emu_decoder *d);
void emu_layout_dynamic_shared(emu_decoder *d);

/* forms.c: parts of the matrix instructions. emu_push_vector appends a vector of at most 128 elements to the list. */
bool emu_element_named(emu_text name, uint8_t *element);
void emu_push_vector(emu_decoder *d, const emu_operand *o, unsigned count, emu_type type, bool is_result);
/* Requires a bit-typed register among the elements: f16, bf16, tf32 and narrower floats are kept in such registers. */
void emu_check_is_bits(emu_decoder *d, const emu_operand *o);

/* Decodes operands by the row's pattern. */
bool emu_decode_operands(emu_decoder *d, const emu_row *row, const emu_instruction *i, emu_op *op);

/* Decode rows whose operands have no pattern, and emit their operations. */
bool emu_decode_mov(emu_decoder *d, const emu_instruction *i, emu_op *op);
bool emu_decode_bra(emu_decoder *d, const emu_instruction *i, emu_op *op);
bool emu_decode_brx(emu_decoder *d, const emu_instruction *i, emu_op *op);
bool emu_decode_call(emu_decoder *d, const emu_instruction *i, emu_op *op);
bool emu_decode_mma(emu_decoder *d, const emu_instruction *i, emu_op *op);
bool emu_decode_matrix(emu_decoder *d, const emu_instruction *i, emu_op *op);
bool emu_decode_copy(emu_decoder *d, const emu_instruction *i, emu_op *op);
bool emu_decode_bulk(emu_decoder *d, const emu_instruction *i, emu_op *op);
bool emu_decode_remote(emu_decoder *d, const emu_instruction *i, emu_op *op);
bool emu_decode_map_copy(emu_decoder *d, const emu_instruction *i, emu_op *op);
bool emu_decode_wgmma(emu_decoder *d, const emu_instruction *i, emu_op *op);
bool emu_decode_ret(emu_decoder *d, const emu_instruction *i, emu_op *op);

#endif
