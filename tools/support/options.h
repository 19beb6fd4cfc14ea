/* Reads a tool's command line into a struct, by a table. */
#ifndef SUPPORT_OPTIONS_H
#define SUPPORT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum option_kind {
    OPTION_FLAG,   /* sets a bool */
    OPTION_TEXT,   /* sets a const char *, once */
    OPTION_NUMBER, /* sets a uint64_t */
    OPTION_OTHER   /* calls `read` */
} option_kind;

typedef struct option_table option_table;

typedef struct option_row {
    const char *name; /* without the dashes */
    option_kind kind;
    size_t place;         /* offset in the struct */
    uint64_t least, most; /* for a number; for a text, `least` is 1 if it must not be empty */
    bool (*read)(const option_table *t, const struct option_row *row, const char *text, void *place);
    char letter;  /* short form of an option with a value; 0: none */
    bool is_told; /* kiln-verify: results depend on the option, and name it */
} option_row;

#define OPTION_ROW(option, what, type, member) .name = option, .kind = what, .place = offsetof(type, member)

struct option_table {
    const char *program; /* for messages: "kiln-verify" */
    const option_row *rows;
    size_t count;         /* at most 64 */
    size_t most_operands; /* operands are words that belong to no option */
};

/* Reads the options and moves the operands to the end of argv. Sets a bit of `given`, if not null, for each row
 * whose option is present. Returns the index of the first operand; 0 after a message on stderr. */
int options_parse(const option_table *t, int argc, char **argv, void *into, uint64_t *given);

/* Returns 16 for "0x...", else 10: a leading 0 does not make a number octal. */
int number_base(const char *text);

/* Parses a number for `read`: false after a message on stderr. */
bool option_number(const option_table *t, const option_row *row, const char *text, uint64_t *value);
bool option_refuse(const option_table *t, const option_row *row, const char *text, const char *why);

#endif
