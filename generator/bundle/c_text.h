/* Pieces of C as text: literals, comments, expressions, prototypes. */
#ifndef BUNDLE_C_TEXT_H
#define BUNDLE_C_TEXT_H

#include "model.h"

enum { C_COLUMNS = 110 };

const char *upper_case(arena *a, const char *s);

/* The characters of a string literal, without its quotes. */
void c_add_escaped(text *out, const char *s, size_t length);

/* Add a text as adjacent string literals, one per line of the text; and bytes, 64 per line. */
void c_add_literal_lines(text *out, const char *s);
void c_add_literal_bytes(text *out, const char *bytes, size_t count);

/* "static const char NAME[] = "...";", broken before the literal if too long. */
void c_add_text_constant(text *out, int indent, const char *name, const char *s);

/* Statements on lines of at most C_COLUMNS, each after `indent`; continuation lines are four columns deeper. */
void c_add_statements(text *out, const char *indent, const char *statements);

/* A comment, wrapped, starting at the current column `column` and continued there; a newline in `body` is kept. */
void c_add_comment(text *out, int column, const char *body);

/* The SPDX line of a license; nothing for null. */
void c_add_license(text *out, const char *license);

/* Head, list and tail on one line; if too long, broken after the list's commas, && and ||, and continued below the
 * list's start. `head` has no newline. */
void c_add_wrapped(text *out, const char *head, const char *list, const char *tail);

/* "kiln_status FUNCTION(kiln_loader *loader, CUstream stream, const ARGS *args)" and a tail. */
void c_add_prototype(text *out, const char *function, const char *args_struct, const char *tail);

/* The prototype of a function that answers a question about a call and launches nothing: "pick", "candidates",
 * "workspace" or "workspace_max". "kiln_status FAMILY_pick(kiln_loader *loader, const ARGS *args, const kiln_kernel
 * **kernel)" and a tail. */
void c_add_query_prototype(text *out, const bundle_family *f, const char *query, const char *tail);

/* The C++ overload, which takes `const ARGS &args`: one row of the query's macro per function. The macro is defined before
 * the rows and undefined after them. */
void c_add_query_macros(text *out);
void c_add_query_undefs(text *out);
void c_add_query_overload(text *out, const bundle_family *f, const char *query);

/* Statements in C and in C++, for comments: "C: f(&args); C++: f(args);", on two lines if too long; and a call, with
 * the text before and after `args`. */
const char *c_in_both(arena *a, const char *c, const char *cpp);
const char *c_example_call(arena *a, const char *function, const char *before, const char *after);

/* A comment with a function's purpose and a call of it in C and in C++; the other function is for a query. */
void c_add_call_comment(text *out, const char *what, const char *function, const char *before,
                        const char *behind);
void c_add_query_comment(text *out, const bundle_family *f, const char *query, const char *what);

/* An expression over arguments and device properties; arguments are printed with a prefix ("a->n"), properties with
 * "loader->device.", or a given prefix. */
const char *c_expression(arena *a, const expression *e, const char *prefix);
const char *c_expression_on(arena *a, const expression *e, const char *prefix, const char *device_prefix);

/* The enumerator of a word parameter's value: NAME_FAMILY_PARAM_WORD. */
const char *c_enumerator(arena *a, const bundle_family *f, const kiln_param *param, const char *word);

/* A parameter's value to compare with a field: the enumerator or the number. */
const char *c_value(arena *a, const bundle_family *f, const kiln_param *param, const char *value);

#endif
