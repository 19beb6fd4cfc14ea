/* The table of instructions: one row per form, next to the handlers in the files of exec/.

   A row's modifiers are items separated by spaces, in the ISA's order. An item is a word ("ftz"), alternatives ("lo|hi"), or
   a named set ("@int"); with "?" it is optional ("ftz?"). A program may have them in any order, except words of the
   instruction's name, and words of one kind, such as types. A letter and a colon before an item say which field keeps
   the choice: t type, s source type, r rounding, b boolean operator, c comparison (mode), m mode (index of the alternative),
   p space, v vector size. A plain word that has a flag sets it.

   A row's operands are items separated by spaces. An item has a type: t, s, w (twice as wide as t), the name of a type, or p
   (predicate). Before it: = destination, _ the sink is allowed, ~ wider registers are allowed (ld, st, cvt), ! may be negated,
   * as many elements as v says. After it: |p a second destination, a predicate; |p? an optional one; ? optional.
   Other items: [] is an address; # is an integer constant, which goes to op->imm; the words in decode/pattern.c are u32
   operands with a range; hint is the cache policy of .L2::cache_hint; zero is an argument 0 that the program does not write.
   The alternative "-" is a placeholder, which keeps the indices of the others. */
#ifndef EMU_OPERATIONS_H
#define EMU_OPERATIONS_H

#include "../core/program.h"

/* Operands that a pattern cannot describe: the decoder has a function for each kind. */
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
    const char *only; /* or the targets with a or f that have it, such as "100f 120f" */
    emu_handler *run;
    emu_handler *const *by_type;                /* by emu_type */
    emu_handler *(*pick)(const emu_mods *mods); /* returns NULL for combinations that do not exist */
    emu_form form;
    const char *(*refuse)(const emu_instruction *i, const emu_mods *mods); /* see below; may be NULL */
    const char *lacks; /* NULL, or not emulated: "'wgmma' is"; `modifiers` is then a prefix of a word */
} emu_row;

/* refusals.c: each returns the reason why ptxas 13.0 refuses the instruction, or NULL. */
const char *emu_refuse_hint(const emu_instruction *i, const emu_mods *mods);
const char *emu_refuse_vector(const emu_instruction *i, const emu_mods *mods);
const char *emu_refuse_token(const emu_instruction *i, const emu_mods *mods);
const char *emu_refuse_count(const emu_instruction *i, const emu_mods *mods);
const char *emu_refuse_map_field(const emu_instruction *i, const emu_mods *mods);

/* True if the instruction has a modifier with this prefix. */
bool emu_has_modifier(const emu_instruction *i, const char *prefix);

typedef struct emu_rows {
    const emu_row *rows;
    size_t count;
} emu_rows;

/* move.c: handlers that the decoder adds to instructions. */
typedef struct emu_micro {
    emu_handler *extend[EMU_TYPES][4]; /* from an integer or bit type to 2^(j+1) bytes */
    emu_handler *chop[5][4];           /* from 2^i bytes to 2^j bytes, j < i */
    emu_handler *add[4];               /* 2^i bytes, at least 2 */
    emu_handler *copy[5];              /* 2^i bytes */
    emu_handler *copy_predicate;
    emu_handler *special;        /* imm: the special register */
    emu_handler *shared_address; /* from an offset in shared memory, 4 or 8 bytes */
} emu_micro;

/* control.c: handlers of control flow. Targets are in op->imm. */
typedef struct emu_control {
    emu_handler *branch, *branch_uniform, *branch_indexed, *call_indirect, *fail_assertion;
    emu_handler *call, *ret, *exit;
    emu_handler *load_local, *store_local; /* call parameters: arg 0 register, imm offset, mods.count bytes */
} emu_control;

/* The handlers as compiled for one instruction set of the host. levels.c picks one. */
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
