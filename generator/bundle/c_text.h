/* Pieces of C as text: literals, comments, expressions, prototypes. */
#ifndef BUNDLE_C_TEXT_H
#define BUNDLE_C_TEXT_H

#include "model.h"

enum { C_COLUMNS = 110 };

const char *upper_case(arena *a, const char *s);

/* The characters of a string literal, without its quotes. */
void c_add_escaped(text *out, const char *s, size_t length);

/* A text as adjacent string literals, one per line of it, each on a line of its own; and bytes, 64 on a line. */
void c_add_literal_lines(text *out, const char *s);
void c_add_literal_bytes(text *out, const char *bytes, size_t count);

/* "static const char NAME[] = "...";", broken before the literal where it is too long. */
void c_add_text_constant(text *out, int indent, const char *name, const char *s);

/* Statements on lines of at most C_COLUMNS, each after `indent`; what a statement has on more lines, four columns further. */
void c_add_statements(text *out, const char *indent, const char *statements);

/* A comment, wrapped, starting at the current column `column` and continued there; a newline in `body` is kept. */
void c_add_comment(text *out, int column, const char *body);

/* The SPDX line of a license; nothing for null. */
void c_add_license(text *out, const char *license);

/* Head, list and tail on one line; where that is too long, broken after the list's commas and its && and ||, and
 * continued below the list's start. `head` has no newline. */
void c_add_wrapped(text *out, const char *head, const char *list, const char *tail);

/* "kiln_status FUNCTION(kiln_loader *loader, CUstream stream, const ARGS *args)" and a tail. */
void c_add_prototype(text *out, const char *function, const char *args_struct, const char *tail);

/* A function that tells about a call and launches nothing: "pick", "candidates", "workspace" or "workspace_max".
 * "kiln_status FAMILY_pick(kiln_loader *loader, const ARGS *args, const kiln_kernel **kernel)" and a tail. */
void c_add_query_prototype(text *out, const bundle_family *f, const char *query, const char *tail);

/* The same for C++, which takes `const ARGS &args`: a row of the query's macro, which is defined before and undefined behind. */
void c_add_query_macros(text *out);
void c_add_query_undefs(text *out);
void c_add_query_overload(text *out, const bundle_family *f, const char *query);

/* Statements in C and in C++, for comments: "C: f(&args);  C++: f(args);", on two lines where that is too long; and of a call,
 * with what stands before and after `args`. */
const char *c_in_both(arena *a, const char *c, const char *cpp);
const char *c_example_call(arena *a, const char *function, const char *before, const char *after);

/* A comment that says what a function does and has a call of it in C and in C++; and the same of a query. */
void c_add_call_comment(text *out, const char *what, const char *function, const char *before,
                        const char *behind);
void c_add_query_comment(text *out, const bundle_family *f, const char *query, const char *what);

/* An expression of arguments and device facts; arguments are printed with a prefix ("a->n"), facts with "loader->device.", or
 * with their own. */
const char *c_expression(arena *a, const expression *e, const char *prefix);
const char *c_expression_on(arena *a, const expression *e, const char *prefix, const char *device_prefix);

/* The enumerator of a word parameter's value: NAME_FAMILY_PARAM_WORD. */
const char *c_enumerator(arena *a, const bundle_family *f, const kiln_param *param, const char *word);

/* A value of a parameter as it is compared with a field: the enumerator or the number. */
const char *c_value(arena *a, const bundle_family *f, const kiln_param *param, const char *value);

#endif
