/* The table of instructions: one row per form, kept beside the handlers in the files of exec/.

   A row's modifiers are space-separated items, in the ISA's order. An item is a word ("ftz"), alternatives
   ("lo|hi"), or a named set ("@int"), each perhaps optional ("ftz?"). A program may have them in any order, except words
   of the instruction's name and those of one kind, as types. A letter and a colon before an item say where its choice is kept: t type, s source type, r rounding,
   b boolean operator, c comparison (mode), m mode (index of the alternative), p space, v vector size. Plain words set their flag
   when they have one.

   A row's operands are space-separated items: a type letter (t, s; w: twice as wide as t; a type's name; p: predicate)
   with, before it, = destination, _ the sink is allowed, ~ wider registers are allowed (ld, st, cvt), ! may be negated,
   * as many elements as v says; after it, |p a second destination predicate, |p? an optional one, ? optional.
   [] is an address, # an integer constant, which goes to op->imm, barrier, threads and parity a barrier's u32, hint the cache policy that .L2::cache_hint asks for,
   zero an argument that is not written and is 0. An alternative "-" only counts; no modifier is spelled so. */
#ifndef EMU_OPERATIONS_H
#define EMU_OPERATIONS_H

#include "../core/program.h"

/* Operands that no pattern can say: the decoder has a function for each kind. */
typedef enum emu_form {
    EMU_BY_PATTERN,
    EMU_FORM_MOV,
    EMU_FORM_BRA,
    EMU_FORM_BRX,
    EMU_FORM_CALL,
    EMU_FORM_RET,
    EMU_FORM_MMA,
    EMU_FORM_MATRIX,
    EMU_FORM_COPY,
    EMU_FORM_WGMMA,
    EMU_FORM_BULK,
    EMU_FORM_REMOTE,
    EMU_FORM_MAP_COPY,
    EMU_FORMS
} emu_form;

typedef struct emu_row {
    const char *opcode, *modifiers, *operands;
    uint8_t version;  /* lowest .version, 10 * major + minor; 0: any */
    uint16_t target;  /* lowest target number; 0: any */
    const char *only; /* or: "100f 120f", a and f targets that have it */
    emu_handler *run;
    emu_handler *const *by_type;                /* EMU_TYPES entries */
    emu_handler *(*pick)(const emu_mods *mods); /* NULL: this combination is none */
    emu_form form;
    const char *(*refuse)(const emu_instruction *i, const emu_mods *mods); /* refusals.c; NULL: none */
    const char *lacks; /* "'wgmma' is": it is not emulated; `modifiers` is then how one of its words begins */
} emu_row;

/* What a row's words and operands exclude: each returns why ptxas 13.0 refuses the instruction, or NULL. */
const char *emu_refuse_hint(const emu_instruction *i, const emu_mods *mods);
const char *emu_refuse_vector(const emu_instruction *i, const emu_mods *mods);
const char *emu_refuse_token(const emu_instruction *i, const emu_mods *mods);
const char *emu_refuse_count(const emu_instruction *i, const emu_mods *mods);
const char *emu_refuse_map_field(const emu_instruction *i, const emu_mods *mods);

/* Whether a modifier begins like this. */
bool emu_has_modifier(const emu_instruction *i, const char *prefix);

typedef struct emu_rows {
    const emu_row *rows;
    size_t count;
} emu_rows;

/* Handlers that the decoder emits around instructions: move.c. */
typedef struct emu_micro {
    emu_handler *extend[EMU_TYPES][4]; /* from an integer or bit type to 2, 4, 8, 16 bytes ([log2 - 1]) */
    emu_handler *chop[5][4];           /* from 2^i bytes to 2^j bytes, j < i */
    emu_handler *add[4];               /* 2^i bytes; from 2 bytes on */
    emu_handler *copy[5];              /* 2^i bytes */
    emu_handler *copy_predicate;
    emu_handler *special;        /* imm: which special register */
    emu_handler *shared_address; /* from an offset in shared memory, 4 or 8 bytes */
} emu_micro;

/* Handlers of control flow: control.c. Targets are in op->imm. */
typedef struct emu_control {
    emu_handler *branch, *branch_uniform, *branch_indexed, *call_indirect, *fail_assertion;
    emu_handler *call, *ret, *exit;
    emu_handler *load_local, *store_local; /* call parameters: arg 0 register, imm offset, mods.count bytes */
} emu_control;

/* The handlers as compiled for one instruction set of the host; levels.c picks one. */
typedef struct emu_level {
    const emu_rows *const *tables;
    size_t table_count;
    const emu_micro *micro;
    const emu_control *control;
} emu_level;

const emu_level *emu_host_level(void);

static inline const emu_micro *emu_micro_handlers(void)
{
    return emu_host_level()->micro;
}

static inline const emu_control *emu_control_handlers(void)
{
    return emu_host_level()->control;
}

#endif
