/* Mutations, a row of a table for each kind: a function that offers every change that an instruction has. What nobody
 * could tell from the original by its results is not offered: operands of a sum in the other order, the sign of an
 * addition's type, hints to caches, which of the barriers' numbers is used. */
#include "offers.h"

#include <inttypes.h>
#include <string.h>

/* ---- guards and branches ----------------------------------------------------------------------------------------- */

static void offer_guards(offers *o)
{
    const text_span guard = o->statement->guard;
    if (guard.length == 0)
        return;
    const char *text = o->text->bytes + guard.at;
    if (memchr(text, '!', guard.length))
        offer(o, guard, "@%.*s", (int)(text + guard.length - strchr(text, '!') - 1), strchr(text, '!') + 1);
    else
        offer(o, guard, "@!%.*s", (int)guard.length - 1, text + 1);
    offer(o, guard, "%s", "");
}

static void list_guards(offers *o)
{
    if (!is_opcode_of(o, "bra"))
        offer_guards(o);
}

static void list_branches(offers *o)
{
    if (!is_opcode_of(o, "bra") || o->statement->operand_count != 1)
        return;
    offer_guards(o);
    offer(o, o->statement->whole, "%s", "");
    for (size_t i = 0; i < o->function->label_count; i++)
        offer_word(o, o->statement->operands[0], o->function->labels[i]);
}

/* ---- what goes as a whole ---------------------------------------------------------------------------------------- */

static const char barriers[] = "bar barrier mbarrier", fences[] = "membar fence";

/* Without them a kernel is slower, and as right. */
static const char hints[] = "prefetch prefetchu discard applypriority nanosleep pmevent";

static void list_barriers(offers *o)
{
    if (is_opcode_of(o, barriers))
        offer(o, o->statement->whole, "%s", "");
}

static void list_fences(offers *o)
{
    static const word_row scopes[] = {
        {"gl", "cta"}, {"sys", "cta"}, {"gpu", "cta"}, {"cluster", "cta"}, {NULL, NULL},
    };
    if (!is_opcode_of(o, fences))
        return;
    offer(o, o->statement->whole, "%s", "");
    offer_rows(o, 1, scopes);
}

/* "cp.async.wait_group 1" and its like. */
static bool is_wait(const offers *o)
{
    static const char *const words[] = {"wait_group", "wait_all", "commit_group", "commit_async"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (opcode_has(o, words[i]))
            return true;
    return is_opcode_of(o, "wgmma tcgen05") && (opcode_has(o, "fence") || opcode_has(o, "wait"));
}

static void list_waits(offers *o)
{
    int64_t groups;
    if (!is_wait(o))
        return;
    offer(o, o->statement->whole, "%s", "");
    if (o->statement->operand_count == 1 && read_integer(o->text, o->statement->operands[0], &groups))
        offer(o, o->statement->operands[0], "%" PRId64, groups + 1);
}

/* A function ends behind its last instruction, return or not. */
static bool is_last_return(const offers *o)
{
    const ptx_function *f = o->function;
    return o->statement + 1 == f->statements + f->statement_count && is_opcode_of(o, "ret exit");
}

static void list_drops(offers *o)
{
    if (!is_opcode_of(o, barriers) && !is_opcode_of(o, fences) && !is_wait(o) && !is_opcode_of(o, "bra") &&
        !is_last_return(o))
        offer(o, o->statement->whole, "%s", "");
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static const struct kind_row {
    const char *name;
    void (*list)(offers *o);
} kinds[MUTATION_KINDS] = {
    [MUTATE_OPERATION] = {"operation", list_operations},
    [MUTATE_COMPARISON] = {"comparison", list_comparisons},
    [MUTATE_OPERAND] = {"operand", list_operands},
    [MUTATE_REGISTER] = {"register", list_registers},
    [MUTATE_IMMEDIATE] = {"immediate", list_immediates},
    [MUTATE_ADDRESS] = {"address", list_addresses},
    [MUTATE_GUARD] = {"guard", list_guards},
    [MUTATE_DROP] = {"dropped", list_drops},
    [MUTATE_BARRIER] = {"barrier", list_barriers},
    [MUTATE_FENCE] = {"fence", list_fences},
    [MUTATE_WAIT] = {"wait", list_waits},
    [MUTATE_LANES] = {"lanes", list_lanes},
    [MUTATE_ROUNDING] = {"rounding", list_roundings},
    [MUTATE_QUALIFIER] = {"qualifier", list_qualifiers},
    [MUTATE_BRANCH] = {"branch", list_branches},
};

const char *mutation_name(mutation_kind kind)
{
    return kinds[kind].name;
}

static size_t list_kind(offers o, mutation_kind kind)
{
    if (!is_opcode_of(&o, hints))
        kinds[kind].list(&o);
    return o.count;
}

size_t mutation_count(const ptx_text *t, const ptx_function *f, const ptx_statement *s, mutation_kind kind)
{
    return list_kind((offers){.text = t, .function = f, .statement = s, .wanted = SIZE_MAX}, kind);
}

mutation mutation_at(const ptx_text *t, const ptx_function *f, const ptx_statement *s, mutation_kind kind,
                     size_t wanted)
{
    mutation m = {.text = ""};
    list_kind((offers){.text = t, .function = f, .statement = s, .wanted = wanted, .kept = &m}, kind);
    return m;
}

char *mutation_apply(const ptx_text *t, const mutation *m, pool *memory)
{
    size_t inserted = strlen(m->text), behind = m->span.at + m->span.length;
    char *text = pool_allocate(memory, t->length - m->span.length + inserted + 1);
    memcpy(text, t->bytes, m->span.at);
    memcpy(text + m->span.at, m->text, inserted);
    memcpy(text + m->span.at + inserted, t->bytes + behind, t->length - behind);
    return text;
}
