/* What the files of the parser share. */
#ifndef EMU_PARSE_H
#define EMU_PARSE_H

#include "lex.h"
#include "module.h"

typedef struct emu_parser {
    emu_lexer lexer;
    emu_module *module;
    emu_scope *scope;
    emu_function *function; /* whose body is being read */
    emu_list instructions, variables;
    const emu_source *source; /* what the last .loc of the body says */
    emu_lack lacks;           /* of the function whose head is being read */
    unsigned depth;           /* of nesting inside the current statement */
    emu_list open_items;      /* operands of the open lists, the innermost list's last */
} emu_parser;

/* A constant expression's value (ISA 4.5.5). */
typedef struct emu_value {
    enum { EMU_VALUE_SIGNED, EMU_VALUE_UNSIGNED, EMU_VALUE_DOUBLE, EMU_VALUE_SINGLE } kind;
    uint64_t bits;
} emu_value;

/* For every construct that can contain its own kind, so that no text overflows the host's stack. ptxas has
   such a limit too. */
#define EMU_MAX_DEPTH 100
void emu_go_deeper(emu_parser *p);
void emu_come_back(emu_parser *p);

emu_value emu_parse_expression(emu_parser *p);
uint64_t emu_parse_integer(emu_parser *p, const char *what);
uint64_t emu_parse_literal(emu_parser *p, const char *what); /* one number, as in directives */

/* What a function whose head is being read has, and the emulator has not; the first is kept. */
void emu_lacks(emu_parser *p, const char *what);

emu_scope *emu_open_scope(emu_parser *p, emu_function *function);
emu_symbol *emu_declare(emu_parser *p, emu_scope *scope, emu_symbol_kind kind, emu_text name);
/* name<count>: name0 and so on, but not `name` itself, which may mean something else. */
emu_symbol *emu_declare_numbered(emu_parser *p, emu_scope *scope, emu_text name, uint32_t count);

bool emu_at_declaration(const emu_parser *p);
void emu_accept_linkage(emu_parser *p); /* .visible and its like, at most one of them */
/* One declaration statement up to and with its ';'. */
void emu_parse_declaration(emu_parser *p);
/* A formal parameter: ".param .u64 .ptr .global .align 16 name[12]" or ".reg .u32 name". */
emu_symbol *emu_parse_parameter(emu_parser *p, bool of_kernel);

void emu_parse_body(emu_parser *p);
void emu_skip_statement(emu_parser *p); /* to behind its ';' */
/* .pragma, .loc, .file, .section: true when one was there. Only what reports want of them is kept. */
bool emu_skip_debug(emu_parser *p);

#endif
