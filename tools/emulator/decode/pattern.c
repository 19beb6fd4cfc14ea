/* The operand patterns of the operation table: see exec/operations.h. */
#include "decoder.h"

#include <string.h>

/* u32 operands (after # immediates) whose constants must be in a range. Values in registers are checked during the launch. */
typedef struct constant_range {
    const char *word;
    uint32_t least, most, step;
    const char *wrong;
} constant_range;

static const constant_range ranges[] = {
    {"barrier", 0, 15, 1, "the barriers are numbered from 0 to 15"},
    {"threads", 0, UINT32_MAX, EMU_LANES, "the number of threads at a barrier must be a multiple of 32"},
    {"arriving", 1, UINT32_MAX, EMU_LANES,
     "the number of threads at a barrier must be a multiple of 32, not 0"},
    {"parity", 0, 1, 1, "the parity of a phase is 0 or 1"},
    {"arrivals", 1, INT32_MAX, 1, "an mbarrier object counts at least 1 arrival"},
    {"bits", 0, 255, 1, "a position or a number of bits must be from 0 to 255"},
    {"event", 0, 15, 1, "the performance events are numbered from 0 to 15"},
    {"events", 0, 65535, 1, "a mask of performance events has 16 bits"},
};

typedef struct pattern_item {
    bool destination, sink, vector, may_be_braced, optional, is_address, is_immediate, is_hint, is_zero,
        is_fraction;
    const constant_range *range; /* NULL: none */
    bool pair, pair_optional;
    unsigned allow;
    emu_type type;
} pattern_item;

typedef struct pattern_state {
    emu_decoder *d;
    emu_op *op;
    emu_uses uses;
    emu_destination destinations[12];
    unsigned destination_count;
    bool has_address; /* op->imm is its offset */
} pattern_state;

static emu_type widened(emu_type type)
{
    switch (type) {
    case EMU_U16:
        return EMU_U32;
    case EMU_S16:
        return EMU_S32;
    case EMU_U32:
        return EMU_U64;
    case EMU_S32:
        return EMU_S64;
    default:
        return EMU_NONE;
    }
}

/* ISA: packed and bf16 types need registers of bit type. */
static emu_type register_type(unsigned type)
{
    bool is_own = emu_types[type].class == EMU_PACKED || type == EMU_BF16;
    return is_own ? (emu_type)type : emu_bits_type(emu_types[type].bytes);
}

static emu_type operand_type(const emu_mods *mods, emu_text name)
{
    if (name.size != 1)
        return emu_type_named(name);
    switch (name.at[0]) {
    case 't':
        return (emu_type)mods->type;
    case 's':
        return (emu_type)mods->source;
    case 'w':
        return widened((emu_type)mods->type);
    case 'x':
        return register_type(mods->type);
    case 'y':
        return register_type(mods->source);
    default:
        return EMU_PRED;
    }
}

static const char *parse_item(const char *at, const emu_mods *mods, pattern_item *item)
{
    *item = (pattern_item){0};
    for (;; at++) {
        if (*at == '=')
            item->destination = true;
        else if (*at == '_')
            item->sink = true;
        else if (*at == '~')
            item->allow |= EMU_RELAXED_WIDTH;
        else if (*at == '!')
            item->allow |= EMU_NEGATABLE;
        else if (*at == '&')
            item->allow |= EMU_ADDRESS_OF;
        else if (*at == '%')
            item->allow |= EMU_SPECIAL;
        else if (*at == '#')
            item->is_immediate = true;
        else if (*at == '*')
            *(mods->count > 1 ? &item->vector : &item->may_be_braced) = true;
        else
            break;
    }
    size_t size = strcspn(at, " ?|");
    emu_text name = {at, size};
    item->is_address = emu_text_is(name, "[]");
    item->is_fraction = emu_text_is(name, "fraction");
    item->is_hint = emu_text_is(name, "hint");
    item->is_zero = emu_text_is(name, "zero");
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (emu_text_is(name, ranges[i].word))
            item->range = &ranges[i];
    if (item->range)
        item->type = EMU_U32;
    else if (item->is_fraction)
        item->type = EMU_F32;
    else if (!item->is_address && !item->is_immediate && !item->is_hint && !item->is_zero)
        item->type = operand_type(mods, name);
    at += size;
    if (strncmp(at, "|p", 2) == 0) {
        item->pair = true;
        item->pair_optional = at[2] == '?';
        at += 2 + item->pair_optional;
    } else if (*at == '?') {
        item->optional = true;
        at++;
    }
    return at + (*at == ' ');
}

static void push(pattern_state *s, uint32_t arg, bool is_destination)
{
    s->op->arg[s->uses.args++] = arg;
    s->uses.writes = (uint8_t)(s->uses.writes + is_destination);
}

static uint32_t destination(pattern_state *s, const emu_operand *o, const pattern_item *item, emu_type type,
                            bool sink)
{
    emu_destination to = emu_decode_destination(s->d, o, type, item->allow, sink);
    s->destinations[s->destination_count++] = to;
    return to.arg;
}

static void decode_vector(pattern_state *s, const emu_operand *o, const pattern_item *item)
{
    emu_operand elements[8];
    unsigned count = s->op->mods.count;
    push(s, EMU_SINK, item->destination);
    if (!emu_decode_elements(s->d, o, count, elements))
        return;
    uint32_t args[8];
    for (unsigned i = 0; i < count; i++) {
        if (item->destination)
            args[i] = destination(s, &elements[i], item, item->type, true);
        else if (elements[i].kind == EMU_OPERAND_SINK && count * emu_types[item->type].bytes == 32)
            args[i] = EMU_SINK;
        else
            args[i] = emu_decode_source(s->d, &elements[i], item->type, item->allow);
    }
    if (!s->op->list)
        s->op->list = (const uint32_t *)(uintptr_t)emu_list_begin(s->d);
    for (unsigned i = 0; i < count; i++)
        emu_list_push(s->d, args[i]);
    s->uses.list_size = (uint16_t)(s->uses.list_size + count);
    s->uses.list_writes |= item->destination;
    s->uses.list_results = (uint16_t)(s->uses.list_results + (item->destination ? count : 0));
}

static void decode_pair(pattern_state *s, const emu_operand *o, const pattern_item *item)
{
    bool is_pair = o->kind == EMU_OPERAND_PAIR;
    const emu_operand *first = is_pair ? &o->items[0] : o;
    if (!is_pair && !item->pair_optional)
        emu_decode_error(s->d, "expected two destinations, as in d|p");
    const bool may_sink = item->sink || (is_pair && item->type == EMU_PRED);
    push(s, destination(s, first, item, item->type, may_sink), true);
    push(s, is_pair ? destination(s, &o->items[1], item, EMU_PRED, true) : EMU_SINK, true);
}

static void check_constant(pattern_state *s, const emu_operand *o, const constant_range *range)
{
    uint32_t value = (uint32_t)o->value;
    if (range && o->kind == EMU_OPERAND_INT &&
        (value < range->least || value > range->most || value % range->step != 0))
        emu_decode_error(s->d, "%s", range->wrong);
}

/* Checks that a constant fraction is above 0 and at most 1. */
static void check_fraction(pattern_state *s, const emu_operand *o)
{
    double value = 1;
    float single;
    if (o->kind == EMU_OPERAND_DOUBLE)
        memcpy(&value, &o->value, sizeof value);
    if (o->kind == EMU_OPERAND_SINGLE) {
        memcpy(&single, &o->value, sizeof single);
        value = (double)single;
    }
    if (!(value > 0 && value <= 1))
        emu_decode_error(s->d, "a fraction must be above 0 and at most 1");
}

/* cvta of a variable names the space that the variable is in. */
static void check_space(pattern_state *s, const emu_operand *o)
{
    const emu_symbol *v = o->kind == EMU_OPERAND_NAME ? emu_find_variable(s->d, o) : NULL;
    unsigned space = s->op->mods.space;
    bool agrees = !v || v->space == space || (space == EMU_PARAM && v->space == EMU_PARAM_CALL) ||
                  (space == EMU_SHARED_CLUSTER && v->space == EMU_SHARED);
    if (!agrees && emu_text_is(s->d->instruction->opcode, "cvta"))
        emu_decode_error(s->d, "'%.*s' is in .%s, the instruction takes it for .%s", EMU_TEXT(o->name),
                         emu_space_names[v->space], emu_space_names[space]);
}

static void decode_item(pattern_state *s, const emu_operand *o, const pattern_item *item)
{
    if (item->may_be_braced && o->kind == EMU_OPERAND_VECTOR && o->count == 1)
        o = &o->items[0]; /* "ld.global.b32 {r}, [a]": Triton writes it, ptxas reads it as one register */
    check_constant(s, o, item->range);
    if (item->is_fraction)
        check_fraction(s, o);
    if (item->is_address) {
        push(s, emu_decode_address(s->d, o, s->op), false);
        s->has_address = true;
    } else if (item->is_immediate) {
        if (o->kind != EMU_OPERAND_INT)
            emu_decode_error(s->d, "expected an integer constant");
        else if (s->has_address && o->value != 128)
            emu_decode_error(s->d, "expected 128, which is the only size");
        if (!s->has_address)
            s->op->imm = (int64_t)o->value;
    } else if (item->is_hint) {
        if (!(s->op->mods.flags & EMU_CACHE_HINT))
            emu_decode_error(s->d, "a cache policy needs .L2::cache_hint");
        emu_decode_source(s->d, o, EMU_B64, 0);
    } else if (item->vector) {
        decode_vector(s, o, item);
    } else if (item->pair) {
        decode_pair(s, o, item);
    } else if (item->destination) {
        push(s, destination(s, o, item, item->type, item->sink), true);
    } else {
        check_space(s, o);
        push(s, emu_decode_source(s->d, o, item->type, item->allow), false);
    }
}

static void decode_missing(pattern_state *s, const pattern_item *item)
{
    if (item->is_hint) {
        if (s->op->mods.flags & EMU_CACHE_HINT)
            emu_decode_error(s->d, ".L2::cache_hint needs a cache policy as the last operand");
        return;
    }
    push(s, emu_decode_constant(s->d, emu_types[item->type].bytes, 0), false);
}

bool emu_decode_operands(emu_decoder *d, const emu_row *row, const emu_instruction *i, emu_op *op)
{
    unsigned errors = d->in->log->errors, n = 0;
    pattern_state s = {.d = d, .op = op};
    pattern_item item;
    for (const char *at = row->operands; *at;) {
        at = parse_item(at, &op->mods, &item);
        if (item.is_zero)
            push(&s, emu_decode_constant(d, 4, 0), false);
        else if (n < i->operand_count)
            decode_item(&s, &i->operands[n++], &item);
        else if (item.optional)
            decode_missing(&s, &item);
        else {
            emu_decode_error(d, "'%s' needs more than %u operands", row->opcode, n);
            return false;
        }
    }
    if (n < i->operand_count)
        emu_decode_error(d, "'%s' takes %u operands here, %u are given", row->opcode, n, i->operand_count);
    if (d->in->log->errors != errors)
        return false;
    emu_emit(d, op, s.uses);
    for (unsigned k = 0; k < s.destination_count; k++)
        emu_finish_destination(d, &s.destinations[k]);
    return true;
}
