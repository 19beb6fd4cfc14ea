/* Where mutations are offered: all that an instruction has are counted, and one is kept. */
#ifndef VERIFY_MUTATE_OFFERS_H
#define VERIFY_MUTATE_OFFERS_H

#include "mutate.h"

typedef struct offers {
    const ptx_text *text;
    const ptx_function *function;
    const ptx_statement *statement;
    size_t count, wanted;
    mutation *kept;
} offers;

void offer(offers *o, text_span span, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Another word of the text in its place; nothing, when it is the same. */
void offer_word(offers *o, text_span span, text_span other);

/* ---- opcodes ----------------------------------------------------------------------------------------------------- */

/* The number-th part of "setp.lt.and.f32", without its dot; "shared::cta" is one. */
bool opcode_part(const offers *o, size_t number, text_span *part);
text_span opcode_base(const offers *o);

/* Its last part, which is a type where it has one. */
text_span opcode_last(const offers *o);

/* Whether one of its parts behind the first is this word. */
bool opcode_has(const offers *o, const char *word);

/* Whether its first part is one of these, with spaces between. */
bool is_opcode_of(const offers *o, const char *list);
bool is_float_operation(const offers *o);

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* What may stand in a word's place, with spaces between; a row without a word ends a table. */
typedef struct word_row {
    const char *word, *others;
} word_row;

void offer_row(offers *o, text_span word, const word_row *rows);

/* For each part of the opcode from the first_part-th on. */
void offer_rows(offers *o, size_t first_part, const word_row *rows);

/* "12", "0x1f", "-1" */
bool read_integer(const ptx_text *t, text_span word, int64_t *value);

/* By one, by a bit, and doubled. */
void offer_integer(offers *o, text_span word);

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

/* opcodes.c */
void list_operations(offers *o);
void list_comparisons(offers *o);
void list_roundings(offers *o);
void list_lanes(offers *o);
void list_qualifiers(offers *o);

/* operands.c */
void list_operands(offers *o);
void list_registers(offers *o);
void list_immediates(offers *o);
void list_addresses(offers *o);

#endif
