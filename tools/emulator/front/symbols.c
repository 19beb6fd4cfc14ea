/* Declares names and looks them up in scopes (ISA 4.4). */
#include "parse.h"

static emu_symbol **bucket_of(const emu_module *m, const emu_scope *scope, emu_text name)
{
    uint32_t h = 2166136261u ^ (uint32_t)((uintptr_t)scope >> 4);
    for (size_t i = 0; i < name.size; i++)
        h = (h ^ (uint8_t)name.at[i]) * 16777619u;
    return &m->buckets[(h ^ h >> 15) % m->bucket_count];
}

static void add_buckets(emu_module *m)
{
    emu_symbol **old = m->buckets;
    const uint32_t old_count = m->bucket_count;
    m->bucket_count = old_count ? 4 * old_count : 256;
    m->buckets = emu_arena_alloc(&m->arena, m->bucket_count * sizeof *m->buckets);
    for (uint32_t i = 0; i < old_count; i++) {
        for (emu_symbol *s = old[i], *next; s; s = next) {
            emu_symbol **bucket = bucket_of(m, s->scope, s->name);
            next = s->next;
            s->next = *bucket;
            *bucket = s;
        }
    }
}

/* `name` itself, or name<count>, among the first `declared` symbols. */
static emu_symbol *find_here(const emu_module *m, const emu_scope *scope, emu_text name, bool is_numbered,
                             uint32_t declared)
{
    for (emu_symbol *s = m->bucket_count ? *bucket_of(m, scope, name) : NULL; s; s = s->next)
        if (s->scope == scope && s->is_numbered == is_numbered && s->sequence < declared &&
            emu_text_same(s->name, name))
            return s;
    return NULL;
}

/* All trailing digits form the number, as in ptxas, so a numbered prefix that ends in a digit is never found. */
static bool split_number(emu_text name, emu_text *prefix, uint32_t *number)
{
    size_t n = name.size;
    while (n > 0 && name.at[n - 1] >= '0' && name.at[n - 1] <= '9')
        n--;
    if (n == name.size || name.size - n > 9)
        return false;
    *prefix = (emu_text){name.at, n};
    *number = 0;
    for (; n < name.size; n++)
        *number = *number * 10 + (uint32_t)(name.at[n] - '0');
    return true;
}

emu_symbol *emu_find(const emu_module *m, const emu_scope *scope, emu_text name, uint32_t declared,
                     uint32_t *number)
{
    emu_text prefix;
    uint32_t n = 0;
    bool numbered = split_number(name, &prefix, &n);
    *number = 0;
    for (; scope; scope = scope->outer) {
        emu_symbol *s = find_here(m, scope, name, false, declared);
        if (s)
            return s;
        s = numbered ? find_here(m, scope, prefix, true, declared) : NULL;
        if (s && n < s->count) {
            *number = n;
            return s;
        }
    }
    return NULL;
}

emu_function *emu_find_function(const emu_module *m, emu_text name, uint32_t declared)
{
    const emu_symbol *s = find_here(m, m->scope, name, false, declared);
    return s && s->kind == EMU_SYMBOL_FUNCTION ? s->function : NULL;
}

emu_scope *emu_open_scope(emu_parser *p, emu_function *function)
{
    emu_scope *scope = emu_arena_alloc(&p->module->arena, sizeof *scope);
    scope->outer = p->scope;
    scope->function = function;
    p->scope = scope;
    return scope;
}

static void refuse_second(emu_parser *p, emu_text name, const emu_symbol *first)
{
    if (first)
        emu_fail(&p->lexer, "'%.*s' is declared twice; first in line %u", EMU_TEXT(name), first->line);
}

static emu_symbol *add_symbol(emu_parser *p, emu_scope *scope, emu_symbol_kind kind, emu_text name)
{
    emu_module *m = p->module;
    if (m->symbol_count == m->bucket_count)
        add_buckets(m);
    emu_symbol *s = emu_arena_alloc(&m->arena, sizeof *s);
    emu_symbol **bucket = bucket_of(m, scope, name);
    *s = (emu_symbol){.next = *bucket,
                      .name = name,
                      .scope = scope,
                      .kind = kind,
                      .line = p->lexer.token.line,
                      .vector = 1,
                      .count = 1,
                      .sequence = m->symbol_count++};
    *bucket = s;
    return s;
}

emu_symbol *emu_declare(emu_parser *p, emu_scope *scope, emu_symbol_kind kind, emu_text name)
{
    emu_text prefix;
    uint32_t number;
    const bool has_number = split_number(name, &prefix, &number);
    const emu_symbol *range = has_number ? find_here(p->module, scope, prefix, true, UINT32_MAX) : NULL;
    refuse_second(p, name, find_here(p->module, scope, name, false, UINT32_MAX));
    refuse_second(p, name, range && number < range->count ? range : NULL); /* %r3 after %r<9> */
    emu_symbol *s = add_symbol(p, scope, kind, name);
    if (has_number) {
        s->next_number = scope->numbers;
        scope->numbers = s;
    }
    return s;
}

emu_symbol *emu_declare_numbered(emu_parser *p, emu_scope *scope, emu_text name, uint32_t count)
{
    emu_text prefix;
    uint32_t number;
    refuse_second(p, name, find_here(p->module, scope, name, true, UINT32_MAX));
    for (const emu_symbol *s = scope->numbers; s;
         s = s->next_number) /* %r<9> after %r3; labels do not count */
        if (s->kind != EMU_SYMBOL_LABEL && split_number(s->name, &prefix, &number) && number < count &&
            emu_text_same(prefix, name) &&
            (s->name.size == prefix.size + 1 || s->name.at[prefix.size] != '0'))
            refuse_second(p, s->name, s);
    emu_symbol *s = add_symbol(p, scope, EMU_SYMBOL_REGISTER, name);
    s->is_numbered = true;
    s->count = count;
    return s;
}
