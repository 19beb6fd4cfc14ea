/* Functions that the files of the parser share. */
#ifndef EMU_PARSE_H
#define EMU_PARSE_H

#include "lex.h"
#include "module.h"

typedef struct emu_parser {
    emu_lexer lexer;
    emu_module *module;
    emu_scope *scope;
    emu_function *function; /* the function whose body is being parsed */
    emu_list instructions, variables, branch_targets;
    const emu_source *source; /* the last .loc of the body */
    emu_lack lacks;           /* of the function whose declaration is being parsed */
    unsigned depth;           /* nesting depth in the current statement */
    emu_list open_items;      /* operands of open lists; those of the innermost list come last */
} emu_parser;

/* A constant expression's value (ISA 4.5.5). */
typedef struct emu_value {
    enum { EMU_VALUE_SIGNED, EMU_VALUE_UNSIGNED, EMU_VALUE_DOUBLE, EMU_VALUE_SINGLE } kind;
    uint64_t bits;
} emu_value;

/* Limit of nesting, for every construct that can contain itself, so that the host's stack cannot overflow. ptxas has such a
   limit too. */
#define EMU_MAX_DEPTH 100
void emu_go_deeper(emu_parser *p);
void emu_come_back(emu_parser *p);

emu_value emu_parse_expression(emu_parser *p);
uint64_t emu_parse_integer(emu_parser *p, const char *what);
uint64_t emu_parse_literal(emu_parser *p, const char *what); /* a single number, as in directives */

/* Notes that the function being declared uses something that is not emulated. Keeps only the first. */
void emu_lacks(emu_parser *p, const char *what);

emu_scope *emu_open_scope(emu_parser *p, emu_function *function);
emu_symbol *emu_declare(emu_parser *p, emu_scope *scope, emu_symbol_kind kind, emu_text name);
/* Declares name<count>: name0 and so on, but not `name` itself, which may mean something else. */
emu_symbol *emu_declare_numbered(emu_parser *p, emu_scope *scope, emu_text name, uint32_t count);

bool emu_at_declaration(const emu_parser *p);
emu_linkage emu_accept_linkage(emu_parser *p); /* accepts at most one of .visible and similar words */
/* Fails if a call parameter's alignment is more than ptxas accepts in a body, or for a function with a body. */
void emu_check_call_alignment(emu_parser *p, const emu_symbol *s);
/* Parses one declaration up to and including its ';'. */
void emu_parse_declaration(emu_parser *p);
/* A formal parameter: ".param .u64 .ptr .global .align 16 name[12]" or ".reg .u32 name". Only those of kernels and prototypes may
   have ".ptr", or be called "_". */
emu_symbol *emu_parse_parameter(emu_parser *p, emu_scope *scope, bool may_be_unnamed);

typedef enum emu_list_kind {
    EMU_PARAMETERS,
    EMU_RESULTS,
    EMU_PARAMETERS_OF_KERNEL,
    EMU_PARAMETERS_OF_PROTOTYPE,
    EMU_RESULTS_OF_PROTOTYPE
} emu_list_kind;

/* "(parameter, ...)". */
emu_symbol **emu_parse_parameters(emu_parser *p, emu_list_kind kind, size_t *count);
/* The directives after the parameters of a .func or prototype: ".noreturn", then others in any order. */
void emu_parse_device_directives(emu_parser *p);
/* ".callprototype (result) _ (parameters);" */
void emu_parse_prototype(emu_parser *p, emu_symbol *s);

void emu_parse_body(emu_parser *p);
void emu_skip_attributes(emu_parser *p,
                         bool may_be_managed); /* "(.managed, .unified(1, 2))", after .attribute */
/* Where a debugging directive may stand. */
typedef enum emu_debug_place {
    EMU_DEBUG_MODULE = 1,
    EMU_DEBUG_FUNCTION = 2,
    EMU_DEBUG_BODY = 4
} emu_debug_place;
/* Parses a .pragma, .loc, .file or .section that may stand in this place, and keeps what reports need. Returns true if there
   was one. */
bool emu_parse_debug(emu_parser *p, emu_debug_place at);

#endif
