/* Debugging directives (ISA 11.5): keeps source lines for reports, and checks the rest as ptxas does. */
#include "parse.h"

static emu_source_place parse_place(emu_parser *p)
{
    emu_source_place place = {.file = (uint32_t)emu_parse_literal(p, "a file's number")};
    place.line = (uint32_t)emu_parse_literal(p, "a line");
    place.column = (uint32_t)emu_parse_literal(p, "a column");
    return place;
}

/* ".loc 1 2 3", and for a line of an inlined function ", function_name label+4, inlined_at 1 2 3". */
static void parse_loc(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    emu_source source = {.at = parse_place(p)};
    if (emu_lex_accept(l, ",")) {
        emu_lex_expect(l, "function_name");
        emu_lex_name(l, "a label");
        if (emu_lex_accept(l, "+"))
            emu_parse_literal(p, "an offset");
        emu_lex_expect(l, ",");
        emu_lex_expect(l, "inlined_at");
        source.inlined_at = parse_place(p);
    }
    emu_source *kept = emu_arena_alloc(&p->module->arena, sizeof *kept);
    *kept = source;
    p->source = source.at.line ? kept : NULL; /* line 0: code that belongs to no source line */
}

static emu_text parse_string(emu_lexer *l)
{
    emu_text text = l->token.text;
    if (l->token.kind != EMU_STRING)
        emu_fail(l, "expected a string, found '%.*s'", EMU_TEXT(text));
    emu_lex_next(l);
    return text;
}

/* '.file 1 "a.cu", 1700000000, 4096': number, name, time of modification and size. */
static void parse_file(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    emu_source_file *file = emu_arena_alloc(&p->module->arena, sizeof *file);
    *file = (emu_source_file){.next = p->module->files};
    file->number = (uint32_t)emu_parse_literal(p, "a file's number");
    for (const emu_source_file *other = file->next; other; other = other->next)
        if (other->number == file->number)
            emu_fail(l, "there is a file %u already", file->number);
    file->name = parse_string(l);
    p->module->files = file;
    for (int i = 0; i < 2 && emu_lex_accept(l, ","); i++)
        emu_parse_literal(p, "a time or a size");
}

/* ".b8 1, -2" or ".b64 label+4, .debug_str, label-label". */
static void parse_data(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    emu_text word = l->token.text;
    emu_type type =
        l->token.kind == EMU_DOT ? emu_type_named((emu_text){word.at + 1, word.size - 1}) : EMU_NONE;
    if (type < EMU_B8 || type > EMU_B64)
        emu_fail(l, "expected .b8, .b16, .b32 or .b64, found '%.*s'", EMU_TEXT(word));
    emu_lex_next(l);
    do {
        bool is_name = l->token.kind == EMU_DOT || l->token.kind == EMU_WORD;
        if (is_name && type < EMU_B32)
            emu_fail(l, "an address takes .b32 or .b64");
        if (l->token.kind == EMU_DOT)
            emu_lex_next(l);
        else if (is_name)
            emu_lex_name(l, "a label");
        if (is_name && emu_lex_accept(l, "+"))
            emu_parse_literal(p, "an offset");
        else if (is_name && emu_lex_accept(l, "-"))
            emu_lex_name(l, "a label");
        if (is_name)
            continue;
        bool is_negative = emu_lex_accept(l, "-");
        uint64_t value = emu_parse_literal(p, "the section"),
                 most = type < EMU_B32 ? (UINT64_C(1) << 8 * emu_types[type].bytes) - 1 : UINT64_MAX;
        if (value > (is_negative && type < EMU_B32 ? most / 2 + 1 : most))
            emu_fail(l, "the number does not fit .%s", emu_types[type].name);
    } while (emu_lex_accept(l, ","));
}

static void parse_section(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    emu_scope *outer = p->scope, *labels = emu_open_scope(p, NULL);
    if (l->token.kind != EMU_DOT || emu_type_named((emu_text){l->token.text.at + 1, l->token.text.size - 1}))
        emu_fail(l, "expected a section such as .debug_info, found '%.*s'", EMU_TEXT(l->token.text));
    emu_lex_next(l);
    emu_lex_expect(l, "{");
    while (!emu_lex_accept(l, "}")) {
        if (l->token.kind != EMU_WORD) {
            parse_data(p);
            continue;
        }
        emu_declare(p, labels, EMU_SYMBOL_LABEL, emu_lex_name(l, "a label"));
        emu_lex_expect(l, ":");
    }
    p->scope = outer;
}

static void parse_pragma(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    do
        parse_string(l);
    while (emu_lex_accept(l, ","));
    emu_lex_expect(l, ";");
}

bool emu_parse_debug(emu_parser *p, emu_debug_place at)
{
    static const struct {
        const char *directive;
        unsigned places;
        void (*parse)(emu_parser *p);
    } rows[] = {
        {".pragma", EMU_DEBUG_MODULE | EMU_DEBUG_FUNCTION | EMU_DEBUG_BODY, parse_pragma},
        {".loc", EMU_DEBUG_BODY, parse_loc},
        {".file", EMU_DEBUG_MODULE, parse_file},
        {".section", EMU_DEBUG_MODULE, parse_section},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].places & at && emu_lex_accept(&p->lexer, rows[i].directive)) {
            rows[i].parse(p);
            return true;
        }
    }
    return false;
}
