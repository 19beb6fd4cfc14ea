/* A parsed PTX module: symbols, functions, instructions. It does not know what instructions do. */
#ifndef EMU_MODULE_H
#define EMU_MODULE_H

#include "types.h"

typedef struct emu_symbol emu_symbol;
typedef struct emu_function emu_function;

/* A brace level. Names are looked up from the innermost scope outwards. */
typedef struct emu_scope {
    struct emu_scope *outer;
    emu_function *function; /* NULL at module level */
    emu_symbol *numbers;    /* symbols whose names end in digits, newest first */
} emu_scope;

typedef enum emu_linkage { EMU_STATIC, EMU_VISIBLE, EMU_WEAK, EMU_COMMON, EMU_EXTERN } emu_linkage;

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
    uint64_t value; /* the bits, or the offset that is added to the address */
    emu_text name;  /* the variable or function whose address it is */
    bool generic;
    uint64_t mask;     /* such as 0xff00(name): bits of the address; 0: none */
    uint32_t declared; /* number of symbols declared before the name, as in emu_symbol.sequence */
    uint32_t line;
} emu_initial;

struct emu_symbol {
    emu_symbol *next;        /* next in the hash bucket */
    emu_symbol *next_number; /* next in emu_scope.numbers */
    emu_text name;
    emu_scope *scope;
    emu_symbol_kind kind;
    uint32_t line;
    emu_space space;
    emu_type type;
    uint8_t vector;      /* 1, 2, 4 */
    bool is_numbered;    /* name<count> */
    uint32_t count;      /* of name<count>, else 1 */
    uint32_t sequence;   /* number of the declaration in the module, from 0 */
    emu_linkage linkage; /* of a variable */
    /* size of a variable */
    uint64_t bytes;
    uint32_t alignment;
    uint8_t dimensions;        /* of an array */
    uint32_t parameter_offset; /* of a kernel's parameter */
    bool is_unsized, is_array, is_parameter, is_entry_parameter, is_result;
    bool are_functions; /* .calltargets */
    bool is_opaque;     /* .texref and similar types */
    emu_initial *initial;
    size_t initial_count;
    /* labels and target lists: index of the next instruction of the function */
    size_t instruction;
    emu_text *targets;
    size_t target_count;
    emu_function *function; /* of a function's or prototype's name */
};

typedef enum emu_operand_kind {
    EMU_OPERAND_NAME,    /* name, element, value = offset added to it */
    EMU_OPERAND_INT,     /* value */
    EMU_OPERAND_DOUBLE,  /* value */
    EMU_OPERAND_SINGLE,  /* value */
    EMU_OPERAND_ADDRESS, /* [items[0] + value]; items[1..]: the operands after a comma inside the brackets */
    EMU_OPERAND_VECTOR,  /* {items} */
    EMU_OPERAND_LIST,    /* (items), of call */
    EMU_OPERAND_PAIR,    /* items[0] | items[1] */
    EMU_OPERAND_SINK,    /* _ */
} emu_operand_kind;

typedef struct emu_operand {
    emu_operand_kind kind;
    bool is_negated; /* ! */
    bool has_offset;
    bool is_index; /* value is an index: name[3] */
    char element;  /* 0, x, y, z, w */
    uint32_t count;
    emu_text name;
    uint64_t value;
    struct emu_operand *items;
} emu_operand;

#define EMU_MAX_MODIFIERS 20
#define EMU_MAX_OPERANDS  16

typedef struct emu_source_place {
    uint32_t file, line, column; /* file number; line 0: none */
} emu_source_place;

/* The source place of an instruction, as given by .loc. */
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
    const emu_source *source; /* NULL: unknown */
    emu_scope *scope;
    uint32_t declared; /* number of symbols declared before it, as in emu_symbol.sequence */
} emu_instruction;

/* Valid PTX that is not emulated. `what` is NULL if there is none. */
typedef struct emu_lack {
    const char *what;
    uint32_t line;
    emu_text text; /* the line */
} emu_lack;

struct emu_function {
    emu_function *next;
    emu_text name;
    uint32_t line;
    uint32_t sequence; /* sequence of its symbol */
    bool is_entry, is_defined;
    emu_linkage linkage;
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
    emu_lack lacks;              /* in its directives and parameters */
};

/* The value of a pointer to the function: no memory address, and not 0. */
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
        bool independent_samplers; /* .target has texmode_independent */
    } target;
    emu_scope *scope;
    emu_symbol **buckets; /* hash table of names, at least as large as the number of symbols */
    uint32_t bucket_count;
    emu_symbol **variables; /* in order of declaration, those inside functions included */
    size_t variable_count;
    emu_function *functions, **last_function;
    uint32_t symbol_count;
    emu_source_file *files;
} emu_module;

/* Parses `source`. Returns false if the log has errors. The source must outlive the module, be preceded by a newline, and
   end in NUL. */
bool emu_parse(emu_module *module, emu_text source, emu_log *log);

/* Returns the symbol that `name` means in `scope` where `declared` symbols have been declared, or NULL. Later declarations do not
   count. For name<count>, *number is the number. */
emu_symbol *emu_find(const emu_module *module, const emu_scope *scope, emu_text name, uint32_t declared,
                     uint32_t *number);
emu_function *emu_find_function(const emu_module *module, emu_text name, uint32_t declared);

#endif
