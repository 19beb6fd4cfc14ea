/* A PTX module as parsed: symbols, functions, instructions. Nothing here knows what an instruction does. */
#ifndef EMU_MODULE_H
#define EMU_MODULE_H

#include "types.h"

typedef struct emu_symbol emu_symbol;
typedef struct emu_function emu_function;

/* A brace level. Names are looked up from the inside out. */
typedef struct emu_scope {
    struct emu_scope *outer;
    emu_function *function; /* NULL at module level */
    emu_symbol *numbers;    /* symbols whose names end in digits, the last one first */
} emu_scope;

typedef enum emu_symbol_kind {
    EMU_SYMBOL_REGISTER,
    EMU_SYMBOL_VARIABLE,
    EMU_SYMBOL_LABEL,
    EMU_SYMBOL_FUNCTION,
    EMU_SYMBOL_TARGETS,   /* .branchtargets, .calltargets */
    EMU_SYMBOL_PROTOTYPE, /* .callprototype */
} emu_symbol_kind;

/* One element of an initialiser. */
typedef struct emu_initial {
    enum { EMU_INITIAL_INT, EMU_INITIAL_DOUBLE, EMU_INITIAL_SINGLE, EMU_INITIAL_ADDRESS } kind;
    uint64_t index; /* element */
    uint64_t value; /* bits, or the offset added to the address */
    emu_text name;  /* of the variable or function whose address it is */
    bool generic;
    uint64_t mask; /* 0xff00-style extraction; 0: none */
    uint32_t line;
} emu_initial;

struct emu_symbol {
    emu_symbol *next;        /* in its hash bucket */
    emu_symbol *next_number; /* of the scope's */
    emu_text name;
    emu_scope *scope;
    emu_symbol_kind kind;
    uint32_t line;
    emu_space space;
    emu_type type;
    uint8_t vector;    /* 1, 2, 4 */
    bool is_numbered;  /* name<count> */
    uint32_t count;    /* of name<count>, else 1 */
    uint32_t sequence; /* order of declaration in the module, from 0 */
    /* variables */
    uint64_t bytes;
    uint32_t alignment;
    uint32_t parameter_offset; /* of a kernel */
    bool is_external, is_unsized, is_array, is_parameter, is_entry_parameter;
    bool is_opaque; /* .texref and its like */
    emu_initial *initial;
    size_t initial_count;
    /* labels: index of the next instruction of the function; lists of targets */
    size_t instruction;
    emu_text *targets;
    size_t target_count;
    emu_function *function;
};

typedef enum emu_operand_kind {
    EMU_OPERAND_NAME,    /* name, element, value = offset added to it */
    EMU_OPERAND_INT,     /* value */
    EMU_OPERAND_DOUBLE,  /* value */
    EMU_OPERAND_SINGLE,  /* value */
    EMU_OPERAND_ADDRESS, /* [items[0] + value]; items[1..]: what follows a comma inside the brackets */
    EMU_OPERAND_VECTOR,  /* {items} */
    EMU_OPERAND_LIST,    /* (items), of call */
    EMU_OPERAND_PAIR,    /* items[0] | items[1] */
    EMU_OPERAND_SINK,    /* _ */
} emu_operand_kind;

typedef struct emu_operand {
    emu_operand_kind kind;
    bool is_negated; /* ! */
    bool has_offset;
    bool is_index; /* value counts elements: name[3] */
    char element;  /* 0, x, y, z, w */
    uint32_t count;
    emu_text name;
    uint64_t value;
    struct emu_operand *items;
} emu_operand;

#define EMU_MAX_MODIFIERS 20
#define EMU_MAX_OPERANDS  16

typedef struct emu_source_place {
    uint32_t file, line, column; /* a file by its number; line 0: none */
} emu_source_place;

/* Where an instruction comes from, as .loc tells it. */
typedef struct emu_source {
    emu_source_place at, inlined_at;
} emu_source;

typedef struct emu_source_file { /* .file */
    struct emu_source_file *next;
    uint32_t number;
    emu_text name;
} emu_source_file;

typedef struct emu_instruction {
    emu_text opcode;
    emu_text *modifiers;
    emu_operand *operands;
    uint8_t modifier_count, operand_count;
    bool is_guarded, guard_negated;
    emu_text guard;
    uint32_t line;
    emu_text text;            /* the whole line */
    const emu_source *source; /* NULL: not told */
    emu_scope *scope;
} emu_instruction;

/* Something that is right and not emulated; `what` is NULL when there is nothing. */
typedef struct emu_lack {
    const char *what;
    uint32_t line;
    emu_text text; /* of the line */
} emu_lack;

struct emu_function {
    emu_function *next;
    emu_text name;
    uint32_t line;
    uint32_t sequence; /* of its symbol */
    bool is_entry, is_defined;
    emu_scope *scope;
    emu_symbol **parameters, **results;
    size_t parameter_count, result_count;
    emu_instruction *instructions;
    size_t instruction_count;
    uint64_t parameter_bytes;
    unsigned max_threads[3], required_threads[3]; /* 0: not given */
    bool has_max_threads, has_required_threads;
    unsigned min_blocks, max_registers;
    unsigned cluster[3];         /* .reqnctapercluster; 0: not given */
    unsigned max_cluster_blocks; /* .maxclusterrank; 0: not given */
    bool needs_cluster;          /* .explicitcluster */
    emu_lack lacks;              /* among its directives and parameters */
};

/* What a pointer to the function holds: no address of memory, and not null. */
static inline uint64_t emu_function_address(const emu_function *f)
{
    return 16 * (1 + (uint64_t)f->sequence);
}

typedef struct emu_module {
    emu_arena arena;
    emu_text source;
    unsigned version; /* 10 * major + minor */
    struct {
        unsigned number; /* 90 for sm_90a */
        char kind;       /* 0, a, f */
        emu_text name;
        bool independent_samplers; /* texmode_independent */
    } target;
    emu_scope *scope;
    emu_symbol **buckets; /* of names, at least as many as symbols */
    uint32_t bucket_count;
    emu_symbol **variables; /* in order of declaration, with those inside functions */
    size_t variable_count;
    emu_function *functions, **last_function;
    uint32_t symbol_count;
    emu_source_file *files;
} emu_module;

/* Parses `source`; false when the log has errors. The source must stay, follow a newline and end in NUL. */
bool emu_parse(emu_module *module, emu_text source, emu_log *log);

/* The symbol that `name` means in `scope`; for name<count> with the number in `*number`. NULL: none. */
emu_symbol *emu_find(const emu_module *module, const emu_scope *scope, emu_text name, uint32_t *number);
emu_function *emu_find_function(const emu_module *module, emu_text name);

#endif
