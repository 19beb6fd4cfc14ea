/* Debugging directives (ISA 11.5): keeps source lines for reports, and skips the rest. */
#include "parse.h"

/* .loc and .file end with their line, not with a semicolon. */
static bool is_in_line(const emu_lexer *l, uint32_t line)
{
    return l->token.line == line && l->token.kind != EMU_END;
}

static uint32_t read_number(emu_lexer *l, uint32_t line)
{
    if (!is_in_line(l, line) || l->token.kind != EMU_INT)
        return 0;
    uint32_t number = (uint32_t)l->token.value;
    emu_lex_next(l);
    return number;
}

static emu_source_place read_place(emu_lexer *l, uint32_t line)
{
    emu_source_place place = {.file = read_number(l, line)};
    place.line = read_number(l, line);
    place.column = read_number(l, line);
    return place;
}

static void parse_loc(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    uint32_t line = l->token.line;
    emu_lex_next(l);
    emu_source source = {.at = read_place(l, line)};
    while (is_in_line(l, line)) {
        if (emu_lex_accept(l, "inlined_at"))
            source.inlined_at = read_place(l, line);
        else
            emu_lex_next(l);
    }
    emu_source *kept = emu_arena_alloc(&p->module->arena, sizeof *kept);
    *kept = source;
    p->source = source.at.line ? kept : NULL; /* line 0: code that belongs to no source line */
}

static void parse_file(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    uint32_t line = l->token.line;
    emu_lex_next(l);
    emu_source_file *file = emu_arena_alloc(&p->module->arena, sizeof *file);
    *file = (emu_source_file){.next = p->module->files, .number = read_number(l, line)};
    if (is_in_line(l, line) && l->token.kind == EMU_STRING) {
        file->name = l->token.text;
        p->module->files = file;
    }
    while (is_in_line(l, line))
        emu_lex_next(l);
}

static void skip_section(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    while (!emu_lex_is(l, "{") && l->token.kind != EMU_END)
        emu_lex_next(l);
    while (!emu_lex_is(l, "}") && l->token.kind != EMU_END)
        emu_lex_next(l);
    emu_lex_expect(l, "}");
}

static void parse_pragma(emu_parser *p)
{
    emu_lexer *l = &p->lexer;
    do {
        emu_lex_next(l);
        if (l->token.kind != EMU_STRING)
            emu_fail(l, "expected a string, found '%.*s'", EMU_TEXT(l->token.text));
        emu_lex_next(l);
    } while (emu_lex_is(l, ","));
    emu_lex_expect(l, ";");
}

bool emu_skip_debug(emu_parser *p)
{
    static const struct {
        const char *directive;
        void (*parse)(emu_parser *p);
    } rows[] = {
        {".pragma", parse_pragma}, {".loc", parse_loc}, {".file", parse_file}, {".section", skip_section}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (emu_lex_is(&p->lexer, rows[i].directive)) {
            rows[i].parse(p);
            return true;
        }
    }
    return false;
}
