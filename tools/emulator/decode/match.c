/* Finds the row in the table of instructions (exec/operations.h) that an instruction's modifiers match, and checks the
   further requirements of modifiers. */
#include "match.h"

#include "../support/targets.h"

#include <string.h>

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
    {"shared::cluster", EMU_SHARED_CLUSTER},
};

/* Comparison words in the order of the EMU_COMPARE_ values of exec/compare.c. */
static const word_value comparisons[] = {
    {"eq", 0},   {"ne", 1},   {"lt", 2},  {"le", 3},  {"gt", 4},   {"ge", 5},
    {"equ", 6},  {"neu", 7},  {"ltu", 8}, {"leu", 9}, {"gtu", 10}, {"geu", 11},
    {"num", 12}, {"nan", 13}, {"lo", 14}, {"ls", 15}, {"hi", 16},  {"hs", 17},
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

/* Parses the next item of a pattern. Returns false at its end. */
static bool next_item(const char **pattern, item *it)
{
    const char *end = *pattern + strcspn(*pattern, " ");
    if (end == *pattern)
        return false;
    *it = parse_item(*pattern, end);
    *pattern = end + (*end == ' ');
    return true;
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

static void set_modifier(emu_mods *mods, char field, emu_text word, unsigned index)
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

/* Words that ptxas treats as part of the instruction's name. */
static const struct {
    const char *opcodes, *words;
} name_words[] = {
    {"|mul|mad|madc|mul24|mad24|", "|lo|hi|wide|"},
    {"|dp2a|", "|lo|hi|"},
    {"|shf|", "|l|r|"},
    {"|div|", "|full|"},
    {"|cvta|", "|to|"},
    {"|cvt|", "|pack|"},
    {"|brx|", "|idx|"},
    {"|setmaxnreg|", "|inc|dec|"},
    {"|wgmma|", "|mma_async|fence|commit_group|wait_group|"},
    {"|createpolicy|", "|fractional|"},
    {"|fence|membar|", "|proxy|"},
    {"|bar|barrier|", "|cta|cluster|warp|arrive|wait|red|"},
    {"|cp|", "|reduce|async|bulk|prefetch|tensor|commit_group|wait_group|read|wait_all|mbarrier|arrive|"},
    {"|tensormap|", "|replace|cp_fenceproxy|"},
    {"|mbarrier|",
     "|init|inval|expect_tx|complete_tx|pending_count|arrive|arrive_drop|test_wait|try_wait|parity|"},
};

static bool is_listed(const char *list, emu_text word)
{
    for (const char *at = list + 1; *at; at += strcspn(at, "|") + 1)
        if (emu_text_same((emu_text){at, strcspn(at, "|")}, word))
            return true;
    return false;
}

/* Modifiers of one kind stay in the ISA's order. Those of the name come first. */
typedef enum word_kind {
    IN_NAME,
    IS_TYPE,
    IS_LAYOUT,
    IS_SPACE,
    IS_PRIORITY,
    IS_OPERATION,
    IS_FREE,
    WORD_KINDS
} word_kind;

static word_kind kind_of(emu_text opcode, emu_text word)
{
    static const char *const lists[WORD_KINDS] = {
        [IS_TYPE] = "|e4m3|e5m2|e3m2|e2m3|e2m1|ue8m0|ue4m3|s4|u4|s2|u2|b1|",
        [IS_LAYOUT] = "|row|col|",
        [IS_SPACE] = "|global|shared|shared::cta|shared::cluster|",
        [IS_PRIORITY] = "|L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged|",
        [IS_OPERATION] = "|xor|and|popc|",
    };
    for (size_t i = 0; i < sizeof name_words / sizeof *name_words; i++)
        if (is_listed(name_words[i].opcodes, opcode) && is_listed(name_words[i].words, word))
            return IN_NAME;
    if (emu_type_named(word) != EMU_NONE)
        return IS_TYPE;
    for (word_kind k = IS_TYPE; k < IS_FREE; k++)
        if (is_listed(lists[k], word))
            return k;
    return IS_FREE;
}

/* How the items of a row match the modifiers of an instruction. */
typedef struct match {
    item items[MAX_ITEMS];
    size_t count, matched;
    emu_text words[MAX_ITEMS]; /* the modifier that each item took; empty: none */
    size_t behind[WORD_KINDS]; /* 1 + the last item that took a word of the kind */
} match;

static bool is_late_in_name(const word_kind *kinds, size_t at)
{
    return at > 0 && kinds[at] == IN_NAME && kinds[at - 1] != IN_NAME;
}

/* Modifiers may come in any order, as in ptxas; CUDA's own headers have atom.add.release.gpu. */
static bool take_word(match *m, emu_text word, word_kind kind, emu_mods *mods)
{
    unsigned index;
    for (size_t i = kind == IS_FREE ? 0 : m->behind[kind]; i < m->count; i++)
        if (!m->words[i].size && matches(&m->items[i], word, &index)) {
            m->words[i] = word;
            m->behind[kind] = i + 1;
            set_modifier(mods, m->items[i].field, word, index);
            return true;
        }
    return false;
}

/* A fast path: most programs have modifiers in the row's order. */
static bool match_in_order(const emu_row *row, const emu_instruction *in, emu_mods *mods)
{
    const char *pattern = row->modifiers;
    item it;
    *mods = (emu_mods){.count = 1};
    for (unsigned n = 0; n < in->modifier_count; n++) {
        unsigned index;
        bool fits;
        do {
            if (!next_item(&pattern, &it))
                return false;
            fits = matches(&it, in->modifiers[n], &index);
        } while (!fits && it.optional);
        if (!fits)
            return false;
        set_modifier(mods, it.field, in->modifiers[n], index);
    }
    while (next_item(&pattern, &it))
        if (!it.optional)
            return false;
    return true;
}

/* Returns true if the modifiers match the whole row. Otherwise m->matched is how many matched. */
static bool match_row(const emu_row *row, const emu_instruction *in, const word_kind *kinds, emu_mods *mods,
                      match *m, const char **wanted)
{
    *m = (match){0};
    for (const char *pattern = row->modifiers;
         m->count < MAX_ITEMS && next_item(&pattern, &m->items[m->count]);)
        m->count++;
    *mods = (emu_mods){.count = 1};
    *wanted = "";
    while (m->matched < in->modifier_count && !is_late_in_name(kinds, m->matched) &&
           take_word(m, in->modifiers[m->matched], kinds[m->matched], mods))
        m->matched++;
    size_t open = 0;
    bool complete = m->matched == in->modifier_count;
    while (open < m->count && (m->words[open].size || (complete && m->items[open].optional)))
        open++;
    if (open < m->count)
        *wanted = m->items[open].from;
    return complete && open == m->count;
}

static void log_no_form(const emu_decode_input *in, const emu_instruction *i, const word_kind *kinds,
                        size_t best, const char *wanted)
{
    while (strncmp(wanted, "-|", 2) == 0) /* skips placeholders */
        wanted += 2;
    size_t size = strcspn(wanted, " ?");
    if (best < i->modifier_count && is_late_in_name(kinds, best))
        emu_log_error(in->log, i->line, i->text,
                      "'.%.*s' belongs to the name of '%.*s': it comes before '.%.*s'",
                      EMU_TEXT(i->modifiers[best]), EMU_TEXT(i->opcode), EMU_TEXT(i->modifiers[best - 1]));
    else if (best < i->modifier_count)
        emu_log_error(in->log, i->line, i->text, "'.%.*s' is not a modifier that '%.*s' takes here%s%.*s",
                      EMU_TEXT(i->modifiers[best]), EMU_TEXT(i->opcode), size ? "; expected " : "", (int)size,
                      wanted);
    else
        emu_log_error(in->log, i->line, i->text, "'%.*s' needs one more modifier%s%.*s", EMU_TEXT(i->opcode),
                      size ? ": " : "", (int)size, wanted);
}

/* Some forms differ only in the number of operands. */
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
    return row->form != EMU_BY_PATTERN || (count >= least && count <= most);
}

/* Puts the modifiers in the row's order, which the decoders expect. */
static void put_in_order(const match *m, emu_text *ordered)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->words[i].size)
            *ordered++ = m->words[i];
}

static const emu_row *find_in_order(const emu_instruction *i, emu_mods *mods)
{
    const emu_level *level = emu_host_level();
    for (size_t t = 0; t < level->table_count; t++)
        for (size_t n = 0; n < level->tables[t]->count; n++) {
            const emu_row *row = &level->tables[t]->rows[n];
            if (emu_text_is(i->opcode, row->opcode) && !row->lacks && match_in_order(row, i, mods) &&
                takes_operands(row, i->operand_count))
                return row;
        }
    return NULL;
}

/* ---- versions and targets ------------------------------------------------------------------------------------------- */

/* Modifiers that require more than their row does, as in ptxas 13.0. */
static const struct {
    const char *word;
    unsigned version, target;
} requirements[] = {
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

static bool meets(const emu_decode_input *in, const emu_instruction *i, const char *what, unsigned version,
                  unsigned target)
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

static bool is_target_of(const emu_decode_input *in, const emu_instruction *i, const emu_row *row)
{
    if (!meets(in, i, row->opcode, row->version, row->target))
        return false;
    for (size_t m = 0; m < i->modifier_count; m++)
        for (size_t f = 0; f < sizeof requirements / sizeof *requirements; f++)
            if (emu_text_is(i->modifiers[m], requirements[f].word) &&
                !meets(in, i, requirements[f].word, requirements[f].version, requirements[f].target))
                return false;
    if (!row->only || emu_target_in(in->module->target.number, in->module->target.kind, row->only))
        return true;
    emu_log_error(in->log, i->line, i->text, "this form of '%s' needs one of the targets %s", row->opcode,
                  row->only);
    return false;
}

static bool is_allowed(const emu_decode_input *in, const emu_instruction *i, const emu_row *row,
                       const emu_mods *mods)
{
    if (!is_target_of(in, i, row))
        return false;
    const char *refusal = row->refuse ? row->refuse(i, mods) : NULL;
    if (refusal)
        emu_log_error(in->log, i->line, i->text, "%s", refusal);
    return !refusal;
}

/* ---- the row of an instruction ------------------------------------------------------------------------------------- */

const emu_row *emu_match(const emu_decode_input *in, const emu_instruction *i, emu_mods *mods,
                         emu_text *ordered)
{
    match m;
    word_kind kinds[EMU_MAX_MODIFIERS];
    const emu_row *plain = find_in_order(i, mods);
    if (plain) {
        for (unsigned n = 0; n < i->modifier_count; n++)
            ordered[n] = i->modifiers[n];
        return is_allowed(in, i, plain, mods) ? plain : NULL;
    }
    for (unsigned n = 0; n < i->modifier_count; n++)
        kinds[n] = kind_of(i->opcode, i->modifiers[n]);
    const emu_level *level = emu_host_level();
    size_t best = 0;
    const char *wanted = "", *lacks = NULL;
    bool known = false;
    const emu_row *other_count = NULL; /* the decoder will report the number of operands */
    for (size_t t = 0; t < level->table_count; t++)
        for (const emu_row *row = level->tables[t]->rows;
             row < level->tables[t]->rows + level->tables[t]->count; row++) {
            const char *row_wanted;
            if (!emu_text_is(i->opcode, row->opcode))
                continue;
            if (row->lacks) {
                if (!lacks && emu_has_modifier(i, row->modifiers))
                    lacks = row->lacks;
                continue;
            }
            if (match_row(row, i, kinds, mods, &m, &row_wanted)) {
                put_in_order(&m, ordered);
                if (takes_operands(row, i->operand_count))
                    return is_allowed(in, i, row, mods) ? row : NULL;
                other_count = row;
            }
            if (!known || m.matched > best) {
                best = m.matched;
                wanted = row_wanted;
            }
            known = true;
        }
    if (lacks) {
        emu_log_unsupported(in->log, i->line, i->text, "%s not emulated", lacks);
        return NULL;
    }
    if (other_count) {
        match_row(other_count, i, kinds, mods, &m, &wanted);
        put_in_order(&m, ordered);
        return other_count;
    }
    if (known)
        log_no_form(in, i, kinds, best, wanted);
    else
        emu_log_error(in->log, i->line, i->text, "'%.*s' is not an instruction", EMU_TEXT(i->opcode));
    return NULL;
}
