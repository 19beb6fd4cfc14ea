/* Finding the table row for an instruction's modifiers: see operations.h. */
#include "operations.h"

#include "targets.h"

#include <stdio.h>
#include <string.h>

enum { MOST_MODIFIERS = 24 };

static const struct {
    const char *name, *item;
} sets[] = {
    {"rnd", "r:rn|rz|rm|rp"},
    {"irnd", "r:rni|rzi|rmi|rpi"},
    {"int", "t:u16|u32|u64|s16|s32|s64"},
    {"int32", "t:u32|s32"},
    {"int64", "t:u64|s64"},
    {"int32_64", "t:u32|u64|s32|s64"},
    {"signed", "t:s16|s32|s64"},
    {"bits", "t:b16|b32|b64"},
    {"any", "t:b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64"},
    {"half", "t:f16|f16x2|bf16|bf16x2"},
    {"icmp", "c:eq|ne|lt|le|gt|ge|lo|ls|hi|hs"},
    {"fcmp", "c:eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan"},
    {"bool", "b:and|or|xor"},
    {"mem", "t:b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64"},
    {"scope", "cta|cluster|gpu|sys"},
    {"l1", "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"},
    {"l2", "L2::evict_normal|L2::evict_first|L2::evict_last"},
    {"prefetch", "L2::64B|L2::128B|L2::256B"},
};

typedef struct word_value {
    const char *word;
    unsigned value;
} word_value;

static const word_value flags[] = {
    {"ftz", EMU_FTZ},
    {"sat", EMU_SAT},
    {"relu", EMU_RELU},
    {"NaN", EMU_NAN},
    {"abs", EMU_ABS},
    {"xorsign", EMU_XORSIGN},
    {"cc", EMU_CC},
    {"satfinite", EMU_SATFINITE},
    {"oob", EMU_OOB},
    {"wrap", EMU_WRAP},
    {"shiftamt", EMU_SHIFTAMT},
    {"approx", EMU_APPROX},
    {"relaxed", EMU_RELAXED},
    {"acquire", EMU_ACQUIRE},
    {"release", EMU_RELEASE},
    {"acq_rel", EMU_ACQUIRE | EMU_RELEASE},
    {"volatile", EMU_VOLATILE},
    {"mmio", EMU_VOLATILE},
    {"cta", EMU_SCOPE_CTA},
    {"cluster", EMU_SCOPE_CLUSTER},
    {"gpu", EMU_SCOPE_GPU},
    {"sys", EMU_SCOPE_SYS},
    {"L2::cache_hint", EMU_CACHE_HINT},
    {"nc", EMU_NON_COHERENT},
    {"aligned", EMU_ALIGNED},
    {"uni", EMU_UNIFORM},
    {"to", EMU_TO},
};

static const word_value roundings[] = {
    {"rn", EMU_RN},   {"rz", EMU_RZ},   {"rm", EMU_RM},   {"rp", EMU_RP},   {"rna", EMU_RNA},
    {"rni", EMU_RNI}, {"rzi", EMU_RZI}, {"rmi", EMU_RMI}, {"rpi", EMU_RPI},
};

static const word_value combines[] = {
    {"and", EMU_COMBINE_AND},
    {"or", EMU_COMBINE_OR},
    {"xor", EMU_COMBINE_XOR},
};

static const word_value spaces[] = {
    {"global", EMU_GLOBAL},
    {"shared", EMU_SHARED},
    {"shared::cta", EMU_SHARED},
    {"local", EMU_LOCAL},
    {"const", EMU_CONST},
    {"param", EMU_PARAM},
    {"param::entry", EMU_PARAM},
    {"param::func", EMU_PARAM_CALL},
    {"shared::cluster", EMU_SHARED},
};

/* Comparison words in the order of the EMU_COMPARE_ values of exec_compare.c. */
static const word_value comparisons[] = {
    {"eq", 0},   {"ne", 1},   {"lt", 2},  {"le", 3},  {"gt", 4},   {"ge", 5},
    {"equ", 6},  {"neu", 7},  {"ltu", 8}, {"leu", 9}, {"gtu", 10}, {"geu", 11},
    {"num", 12}, {"nan", 13}, {"lo", 14}, {"ls", 15}, {"hi", 16},  {"hs", 17},
};

/* Modifiers that need more than the row that they stand in. */
static const struct {
    const char *word;
    unsigned version, target;
} floors[] = {
    {"relu", 70, 80},
    {"NaN", 70, 80},
    {"xorsign", 72, 86},
    {"oob", 81, 90},
    {"L1::evict_normal", 74, 70},
    {"L1::evict_unchanged", 74, 70},
    {"L1::evict_first", 74, 70},
    {"L1::evict_last", 74, 70},
    {"L1::no_allocate", 74, 70},
    {"L2::evict_normal", 74, 80},
    {"param::entry", 83, 0},
    {"param::func", 83, 0},

    {"L2::64B", 74, 75},
    {"L2::128B", 74, 75},
    {"L2::256B", 74, 80},
    {"L2::cache_hint", 74, 80},
    {"v8", 81, 90},
    {"cluster", 78, 90},
    {"shared::cluster", 78, 90},
    {"shared::cta", 78, 30},
    {"relaxed", 60, 70},
    {"acquire", 60, 70},
    {"release", 60, 70},
    {"acq_rel", 60, 70},
    {"mmio", 82, 70},
};

/* One item of a modifier pattern. */
typedef struct item {
    char field; /* 0: a plain word */
    bool optional;
    const char *from, *to; /* alternatives */
} item;

#define MAX_ITEMS 16

static bool lookup(const word_value *table, size_t count, emu_text word, unsigned *value)
{
    for (size_t i = 0; i < count; i++)
        if (emu_text_is(word, table[i].word)) {
            *value = table[i].value;
            return true;
        }
    return false;
}

#define LOOKUP(table, word, value) lookup(table, sizeof(table) / sizeof *(table), word, value)

static item parse_item(const char *from, const char *to)
{
    item it = {.optional = to[-1] == '?'};
    to -= it.optional;
    for (size_t i = 0; *from == '@' && i < sizeof sets / sizeof *sets; i++)
        if (emu_text_is((emu_text){from + 1, (size_t)(to - from - 1)}, sets[i].name)) {
            from = sets[i].item;
            to = from + strlen(from);
        }
    if (from[1] == ':' && from[2] != ':') {
        it.field = from[0];
        from += 2;
    }
    it.from = from;
    it.to = to;
    return it;
}

static size_t parse_pattern(const char *pattern, item items[MAX_ITEMS])
{
    size_t count = 0;
    while (*pattern && count < MAX_ITEMS) {
        const char *end = pattern + strcspn(pattern, " ");
        items[count++] = parse_item(pattern, end);
        pattern = end + (*end == ' ');
    }
    return count;
}

static bool matches(const item *it, emu_text word, unsigned *index)
{
    *index = 0;
    for (const char *from = it->from; from <= it->to; ++*index) {
        const char *end = memchr(from, '|', (size_t)(it->to - from));
        if (!end)
            end = it->to;
        if (emu_text_same((emu_text){from, (size_t)(end - from)}, word))
            return true;
        from = end + 1;
    }
    return false;
}

static void keep(emu_mods *mods, char field, emu_text word, unsigned index)
{
    unsigned value = 0;
    switch (field) {
    case 't':
        mods->type = (uint8_t)emu_type_named(word);
        break;
    case 's':
        mods->source = (uint8_t)emu_type_named(word);
        break;
    case 'r':
        LOOKUP(roundings, word, &value);
        mods->round = (uint8_t)value;
        break;
    case 'b':
        LOOKUP(combines, word, &value);
        mods->combine = (uint8_t)value;
        break;
    case 'c':
        LOOKUP(comparisons, word, &value);
        mods->mode = (uint8_t)value;
        break;
    case 'm':
        mods->mode = (uint8_t)index;
        break;
    case 'p':
        LOOKUP(spaces, word, &value);
        mods->space = (uint8_t)value;
        break;
    case 'v':
        mods->count = (uint8_t)(word.at[1] - '0');
        break;
    default:
        if (LOOKUP(flags, word, &value))
            mods->flags = (uint16_t)(mods->flags | value);
    }
}

/* How far the modifiers go along with the row; all of them and a complete row: true. */
static bool match_row(const emu_row *row, const emu_instruction *in, emu_mods *mods, size_t *matched,
                      const char **wanted)
{
    item items[MAX_ITEMS];
    size_t count = parse_pattern(row->modifiers, items), at = 0;
    bool used[MAX_ITEMS] = {false};
    *mods = (emu_mods){.count = 1};
    *matched = 0;
    for (; *matched < in->modifier_count; ++*matched) {
        emu_text word = in->modifiers[*matched];
        size_t i = at;
        unsigned index = 0;
        while (i < count && (used[i] || !matches(&items[i], word, &index)) && (used[i] || items[i].optional))
            i++;
        if (i == count || used[i] || !matches(&items[i], word, &index)) {
            *wanted = at < count ? items[at].from : "";
            return false;
        }
        used[i] = true;
        keep(mods, items[i].field, word, index);
        if (!items[i].optional)
            at = i + 1;
    }
    for (size_t i = at; i < count; i++)
        if (!items[i].optional) {
            *wanted = items[i].from;
            return false;
        }
    return true;
}

static void log_no_form(const emu_decode_input *in, const emu_instruction *i, size_t best, const char *wanted)
{
    while (strncmp(wanted, "-|", 2) == 0) /* a place that only counts */
        wanted += 2;
    size_t size = strcspn(wanted, " ?");
    if (best < i->modifier_count)
        emu_log_error(in->log, i->line, i->text, "'.%.*s' is not a modifier that '%.*s' takes here%s%.*s",
                      EMU_TEXT(i->modifiers[best]), EMU_TEXT(i->opcode), size ? "; expected " : "", (int)size,
                      wanted);
    else
        emu_log_error(in->log, i->line, i->text, "'%.*s' needs one more modifier%s%.*s", EMU_TEXT(i->opcode),
                      size ? ": " : "", (int)size, wanted);
}

static bool has_floor(const emu_decode_input *in, const emu_instruction *i, const char *what,
                      unsigned version, unsigned target)
{
    const emu_module *m = in->module;
    if (m->version < version)
        emu_log_error(in->log, i->line, i->text, "'%s' needs .version %u.%u", what, version / 10,
                      version % 10);
    else if (m->target.number < target)
        emu_log_error(in->log, i->line, i->text, "'%s' needs .target sm_%u", what, target);
    else
        return true;
    return false;
}

/* Hints of ld and st are for global memory, known or generic. */
static bool has_hint_of_other_space(const emu_instruction *i, const emu_mods *mods)
{
    bool has_hint = false;
    for (size_t m = 0; m < i->modifier_count; m++)
        has_hint |= i->modifiers[m].size > 4 && memcmp(i->modifiers[m].at + 2, "::", 2) == 0;
    return has_hint && (emu_text_is(i->opcode, "ld") || emu_text_is(i->opcode, "st")) &&
           mods->space != EMU_GLOBAL && mods->space != EMU_GENERIC;
}

static bool allowed(const emu_decode_input *in, const emu_instruction *i, const emu_row *row,
                    const emu_mods *mods)
{
    if (!has_floor(in, i, row->opcode, row->version, row->target))
        return false;
    if (has_hint_of_other_space(i, mods)) {
        emu_log_error(in->log, i->line, i->text, "a cache hint of '%s' is for global memory", row->opcode);
        return false;
    }
    for (size_t m = 0; m < i->modifier_count; m++)
        for (size_t f = 0; f < sizeof floors / sizeof *floors; f++)
            if (emu_text_is(i->modifiers[m], floors[f].word) &&
                !has_floor(in, i, floors[f].word, floors[f].version, floors[f].target))
                return false;
    if (row->only && !emu_target_in(in->module->target.number, in->module->target.kind, row->only)) {
        emu_log_error(in->log, i->line, i->text, "this form of '%s' needs one of the targets %s", row->opcode,
                      row->only);
        return false;
    }
    return true;
}

/* Some forms differ in the number of operands only. */
static bool takes_operands(const emu_row *row, unsigned count)
{
    unsigned least = 0, most = 0;
    for (const char *at = row->operands; at && *at;) {
        size_t size = strcspn(at, " ");
        if (strncmp(at, "zero", 4) == 0) {
            at += 5;
            continue;
        }
        most++;
        least += at[size - 1] != '?' || (size > 2 && at[size - 2] == 'p' && at[size - 3] == '|');
        at += size + (at[size] == ' ');
    }
    return row->decode || (count >= least && count <= most);
}

/* Where a modifier of a memory operation stands in the ISA's grammar: semantics, scope, space, all others. */
static unsigned rank_of(emu_text modifier)
{
    static const char *const words[] = {
        "|weak|volatile|mmio|relaxed|acquire|release|acq_rel|", "|cta|cluster|gpu|sys|",
        "|const|global|local|param|param::entry|param::func|shared|shared::cta|shared::cluster|"};
    char wanted[32];
    if (modifier.size > sizeof wanted - 3)
        return 3;
    snprintf(wanted, sizeof wanted, "|%.*s|", EMU_TEXT(modifier));
    unsigned rank = 0;
    while (rank < 3 && !strstr(words[rank], wanted))
        rank++;
    return rank;
}

/* ptxas takes the modifiers of memory operations in any order, and CUDA's own headers have atom.add.release.gpu. */
static bool put_in_order(emu_instruction *i, emu_text ordered[MOST_MODIFIERS])
{
    bool is_memory = emu_text_is(i->opcode, "ld") || emu_text_is(i->opcode, "st") ||
                     emu_text_is(i->opcode, "atom") || emu_text_is(i->opcode, "red");
    unsigned count = 0;
    if (!is_memory || i->modifier_count > MOST_MODIFIERS)
        return false;
    for (unsigned rank = 0; rank <= 3; rank++)
        for (unsigned m = 0; m < i->modifier_count; m++)
            if (rank_of(i->modifiers[m]) == rank)
                ordered[count++] = i->modifiers[m];
    i->modifiers = ordered;
    return true;
}

const emu_row *emu_match(const emu_decode_input *in, const emu_instruction *i, emu_mods *mods)
{
    emu_text modifiers[MOST_MODIFIERS];
    emu_instruction ordered = *i;
    if (put_in_order(&ordered, modifiers))
        i = &ordered;
    const emu_level *level = emu_host_level();
    size_t best = 0;
    const char *wanted = "";
    bool known = false;
    const emu_row *other_count =
        NULL; /* right but for the number of operands, which the decoder will report */
    for (size_t t = 0; t < level->table_count; t++)
        for (const emu_row *row = level->tables[t]->rows;
             row < level->tables[t]->rows + level->tables[t]->count; row++) {
            size_t matched = 0;
            const char *row_wanted = "";
            if (!emu_text_is(i->opcode, row->opcode))
                continue;
            if (match_row(row, i, mods, &matched, &row_wanted)) {
                if (takes_operands(row, i->operand_count))
                    return allowed(in, i, row, mods) ? row : NULL;
                other_count = row;
            }
            if (!known || matched > best) {
                best = matched;
                wanted = row_wanted;
            }
            known = true;
        }
    const char *refused = emu_refused(i);
    if (refused) {
        emu_log_unsupported(in->log, i->line, i->text, "%s not emulated", refused);
        return NULL;
    }
    if (other_count) {
        size_t matched;
        match_row(other_count, i, mods, &matched, &wanted);
        return other_count;
    }
    if (known)
        log_no_form(in, i, best, wanted);
    else
        emu_log_error(in->log, i->line, i->text, "'%.*s' is not an instruction", EMU_TEXT(i->opcode));
    return NULL;
}
