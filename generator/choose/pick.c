/* A depth-first search. A demand is a need, or a point at which some candidate of the set must be within the ratio.
 * Each level branches on the unmet demand that the fewest candidates meet: it tries each of these candidates in turn.
 * Later branches of the level exclude the earlier candidates, so each set is visited once. */
#include "pick.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64, MOST_STEPS = 1000000000 };

/* What a search looks for, and the order of sets: the first key that differs decides. */
typedef enum goal {
    GOAL_ANY,        /* the first set */
    GOAL_MEAN,       /* mean */
    GOAL_TIES,       /* mean, bytes, lowest candidates */
    GOAL_LEAST_BYTES /* bytes, candidates, mean, lowest candidates */
} goal;

typedef struct set {
    size_t count; /* 0: none */
    size_t items[PICK_MOST];
    uint64_t cost;  /* sum over the points of log2(time / fastest time) */
    uint64_t bytes; /* PICK_NEVER: not asked for yet */
} set;

typedef struct branch {
    size_t candidate;
    uint64_t gain;
} branch;

typedef struct search {
    const pick_table *table;
    goal goal;
    size_t *active; /* candidates that can improve the goal, ascending */
    size_t active_count;
    size_t demands, words; /* demands that no other implies; words of a bit for each */
    uint32_t *ratio;       /* [candidate][point], rounded up */
    uint64_t *cost;        /* [candidate][point]: log2 of the ratio */
    uint64_t *met;         /* [candidate][word]: the demands that it meets */
    uint64_t *met_by;      /* [demand][word]: the candidates that meet it */
    uint64_t *open; /* bits of the candidates that may be taken, except those that an earlier branch covers */
    size_t depth;   /* most candidates of a set */
    size_t taken[PICK_MOST]; /* by level */
    uint64_t *unmet;         /* [level][word] */
    uint64_t *lowest;        /* [level][point]: the least cost of the taken candidates */
    uint64_t *blocked;       /* bits of the candidates that meet a demand of count_apart */
    uint64_t steps;          /* work: candidates times demands or points */
    branch *branches;        /* [level][candidate] */
    set best;
} search;

/* ---- ratios ------------------------------------------------------------------------------------------------------- */

uint64_t pick_log2(uint64_t time, uint64_t best)
{
    enum { BITS = 16 };
    if (time == PICK_NEVER || best == 0)
        return time == best ? 0 : PICK_NEVER;
    uint64_t whole = 0;
    __extension__ typedef unsigned __int128 wide;
    wide x = ((wide)time << 62) / best; /* 2.62 */
    while (x >> 63) {
        x >>= 1;
        whole++;
    }
    uint64_t bits = 0;
    for (int i = 0; i < BITS; i++) {
        x = (x * x) >> 62;
        bits <<= 1;
        if (x >> 63) {
            x >>= 1;
            bits |= 1;
        }
    }
    return whole << BITS | bits;
}

/* Rounded up; UINT32_MAX: larger, or the candidate cannot be launched. */
uint32_t pick_ratio(uint64_t time, uint64_t best)
{
    __extension__ typedef unsigned __int128 wide;
    if (time == PICK_NEVER)
        return UINT32_MAX;
    if (best == 0)
        return time == 0 ? PICK_ONE : UINT32_MAX;
    const wide ratio = ((wide)time * PICK_ONE + best - 1) / best;
    return ratio < UINT32_MAX ? (uint32_t)ratio : UINT32_MAX;
}

static uint64_t time_of(const pick_table *t, size_t candidate, size_t point)
{
    return t->times[candidate * t->point_count + point];
}

static size_t words_of_candidates(const search *s)
{
    return s->table->candidate_count / WORD_BITS + 1;
}

static search search_begin(arena *a, const pick_table *t)
{
    search s = {.table = t};
    const size_t demands = t->point_count + t->need_count, most_words = demands / WORD_BITS + 1;
    const size_t cells = t->candidate_count * t->point_count + 1, levels = PICK_MOST + 1;
    s.active = arena_alloc(a, (t->candidate_count + 1) * sizeof *s.active);
    s.open = arena_alloc(a, words_of_candidates(&s) * sizeof *s.open);
    s.blocked = arena_alloc(a, words_of_candidates(&s) * sizeof *s.blocked);
    s.branches = arena_alloc(a, (levels * t->candidate_count + 1) * sizeof *s.branches);
    s.ratio = arena_alloc(a, cells * sizeof *s.ratio);
    s.cost = arena_alloc(a, cells * sizeof *s.cost);
    s.met = arena_alloc(a, (t->candidate_count + 1) * most_words * sizeof *s.met);
    s.met_by = arena_alloc(a, (demands + 1) * (t->candidate_count / WORD_BITS + 1) * sizeof *s.met_by);
    s.unmet = arena_alloc(a, levels * most_words * sizeof *s.unmet);
    s.lowest = arena_alloc(a, (levels * t->point_count + 1) * sizeof *s.lowest);
    for (size_t p = 0; p < t->point_count; p++) {
        uint64_t best = PICK_NEVER;
        for (size_t i = 0; i < t->candidate_count; i++)
            best = time_of(t, i, p) < best ? time_of(t, i, p) : best;
        for (size_t i = 0; i < t->candidate_count; i++) {
            s.ratio[i * t->point_count + p] = pick_ratio(time_of(t, i, p), best);
            s.cost[i * t->point_count + p] = pick_log2(time_of(t, i, p), best);
        }
    }
    return s;
}

static size_t count_bits(const uint64_t *x, const uint64_t *y, size_t words)
{
    size_t count = 0;
    for (size_t w = 0; w < words; w++)
        count += (size_t)__builtin_popcountll(x[w] & y[w]);
    return count;
}

static bool is_subset(const uint64_t *x, const uint64_t *of, size_t words)
{
    for (size_t w = 0; w < words; w++)
        if (x[w] & ~of[w])
            return false;
    return true;
}

/* Adds the demand stored after the others, unless one of them implies it: every candidate that meets that demand meets this
 * one too. Removes the demands that the new demand implies. */
static void take_demand(search *s)
{
    const size_t words = words_of_candidates(s);
    const uint64_t *own = s->met_by + s->demands * words;
    size_t kept = 0;
    for (size_t d = 0; d < s->demands; d++)
        if (is_subset(s->met_by + d * words, own, words))
            return;
    for (size_t d = 0; d <= s->demands; d++) {
        const uint64_t *other = s->met_by + d * words;
        if (d == s->demands || !is_subset(own, other, words))
            memmove(s->met_by + kept++ * words, other, words * sizeof *other);
    }
    s->demands = kept;
}

/* Sorts demands by the number of candidates that meet them, fewest first. */
static void sort_demands(search *s)
{
    const size_t words = words_of_candidates(s);
    for (size_t d = 1; d < s->demands; d++)
        for (size_t k = d; k > 0; k--) {
            uint64_t *x = s->met_by + (k - 1) * words, *y = s->met_by + k * words;
            if (count_bits(x, x, words) <= count_bits(y, y, words))
                break;
            for (size_t w = 0; w < words; w++) {
                const uint64_t bits = x[w];
                x[w] = y[w];
                y[w] = bits;
            }
        }
}

/* Finds the demands at this ratio, and which candidates meet each. At UINT32_MAX a point accepts every legal launch. */
static void set_ratio(search *s, uint32_t ratio)
{
    const pick_table *t = s->table;
    const size_t words = words_of_candidates(s);
    s->demands = 0;
    for (size_t d = 0; d < t->point_count + t->need_count; d++) {
        uint64_t *own = s->met_by + s->demands * words;
        memset(own, 0, words * sizeof *own);
        for (size_t i = 0; i < t->candidate_count; i++) {
            const bool is_met = d < t->point_count ? time_of(t, i, d) != PICK_NEVER &&
                                                         s->ratio[i * t->point_count + d] <= ratio
                                                   : t->meets[i * t->need_count + d - t->point_count];
            own[i / WORD_BITS] |= (uint64_t)is_met << i % WORD_BITS;
        }
        take_demand(s);
    }
    sort_demands(s);
    s->words = s->demands / WORD_BITS + 1;
    memset(s->met, 0, t->candidate_count * s->words * sizeof *s->met);
    for (size_t d = 0; d < s->demands; d++)
        for (size_t i = 0; i < t->candidate_count; i++)
            s->met[i * s->words + d / WORD_BITS] |=
                (s->met_by[d * words + i / WORD_BITS] >> i % WORD_BITS & 1) << d % WORD_BITS;
}

/* ---- candidates that can be left out ------------------------------------------------------------------------------ */

static bool meets_all(const search *s, size_t i, const uint64_t *demands)
{
    return is_subset(demands, s->met + i * s->words, s->words);
}

/* Whether x is as fast as y at each point and meets what y meets. */
static bool is_as_good(const search *s, size_t x, size_t y)
{
    const size_t points = s->table->point_count;
    for (size_t p = 0; p < points; p++)
        if (time_of(s->table, x, p) > time_of(s->table, y, p))
            return false;
    return meets_all(s, x, s->met + y * s->words);
}

static uint64_t candidate_bytes_of(const search *s, size_t i)
{
    return s->table->bytes_of(s->table->context, i);
}

/* Whether x can replace y in every set without a loss for the goal. If each can replace the other, the first stays. */
static bool replaces(const search *s, size_t x, size_t y)
{
    switch (s->goal) {
    case GOAL_ANY:
        return meets_all(s, x, s->met + y * s->words) && (x < y || !meets_all(s, y, s->met + x * s->words));
    case GOAL_MEAN:
        return is_as_good(s, x, y) && (x < y || !is_as_good(s, y, x));
    case GOAL_LEAST_BYTES: {
        if (!meets_all(s, x, s->met + y * s->words))
            return false;
        const uint64_t of_x = candidate_bytes_of(s, x), of_y = candidate_bytes_of(s, y);
        return of_x < of_y || (of_x == of_y && x < y && is_as_good(s, x, y));
    }
    case GOAL_TIES:
        break;
    }
    return false;
}

static void set_goal(search *s, goal wanted)
{
    s->goal = wanted;
    s->active_count = 0;
    memset(s->open, 0, words_of_candidates(s) * sizeof *s->open);
    for (size_t y = 0; y < s->table->candidate_count; y++) {
        bool is_replaced = false;
        for (size_t x = 0; x < s->table->candidate_count && !is_replaced; x++)
            is_replaced = x != y && replaces(s, x, y);
        if (is_replaced)
            continue;
        s->active[s->active_count++] = y;
        s->open[y / WORD_BITS] |= UINT64_C(1) << y % WORD_BITS;
    }
}

/* ---- the order of sets -------------------------------------------------------------------------------------------- */

static int compare(uint64_t x, uint64_t y)
{
    return x < y ? -1 : x > y;
}

static int compare_bytes(const search *s, set *x, set *y)
{
    set *both[] = {x, y};
    for (int k = 0; k < 2; k++) {
        if (both[k]->bytes != PICK_NEVER)
            continue;
        both[k]->bytes = 0;
        for (size_t i = 0; i < both[k]->count; i++)
            both[k]->bytes += candidate_bytes_of(s, both[k]->items[i]);
    }
    return compare(x->bytes, y->bytes);
}

static int compare_items(const set *x, const set *y)
{
    int order = 0;
    for (size_t i = 0; i < x->count && i < y->count && order == 0; i++)
        order = compare(x->items[i], y->items[i]);
    return order;
}

static int compare_sets(const search *s, set *x, set *y)
{
    int order = 0;
    if (s->goal == GOAL_LEAST_BYTES) {
        order = compare_bytes(s, x, y);
        order = order ? order : compare(x->count, y->count);
    }
    order = order ? order : compare(x->cost, y->cost);
    if (order || s->goal == GOAL_MEAN || compare_items(x, y) == 0)
        return order;
    order = compare_bytes(s, x, y);
    return order ? order : compare_items(x, y);
}

static void sort(size_t *items, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && items[k] < items[k - 1]; k--) {
            const size_t item = items[k];
            items[k] = items[k - 1];
            items[k - 1] = item;
        }
}

/* ---- the search --------------------------------------------------------------------------------------------------- */

static bool has_bit(const uint64_t *bits, size_t i)
{
    return bits[i / WORD_BITS] >> i % WORD_BITS & 1;
}

/* Returns the unmet demand that the fewest open candidates meet; s->demands if every demand is met. */
static size_t hardest_demand(const search *s, const uint64_t *unmet)
{
    const size_t words = words_of_candidates(s);
    size_t hardest = s->demands, fewest = SIZE_MAX;
    for (size_t d = 0; d < s->demands && fewest > 0; d++) {
        const size_t count = has_bit(unmet, d) ? count_bits(s->met_by + d * words, s->open, words) : SIZE_MAX;
        if (count < fewest) {
            fewest = count;
            hardest = d;
        }
    }
    return hardest;
}

/* Counts unmet demands of which no open candidate meets two: a lower bound on the candidates still needed. */
static size_t count_apart(search *s, const uint64_t *unmet)
{
    const size_t words = words_of_candidates(s);
    size_t count = 0;
    for (size_t w = 0; w < words; w++)
        s->blocked[w] = ~s->open[w];
    for (size_t d = 0; d < s->demands; d++) {
        const uint64_t *own = s->met_by + d * words;
        bool is_apart = has_bit(unmet, d);
        for (size_t w = 0; w < words && is_apart; w++)
            is_apart = !(own[w] & s->open[w] & s->blocked[w]);
        for (size_t w = 0; w < words && is_apart; w++)
            s->blocked[w] |= own[w];
        count += is_apart;
    }
    return count;
}

static uint64_t sum(const uint64_t *values, size_t count)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += values[i];
    return total;
}

static bool asks_mean(const search *s)
{
    return s->goal == GOAL_MEAN || s->goal == GOAL_TIES;
}

/* By how much the candidate reduces the sum of costs, or the number of unmet demands. */
static uint64_t gain_of(const search *s, size_t level, size_t i)
{
    const size_t points = s->table->point_count;
    const uint64_t *lowest = s->lowest + level * points, *cost = s->cost + i * points;
    uint64_t gain = 0;
    if (!asks_mean(s))
        return count_bits(s->unmet + level * s->words, s->met + i * s->words, s->words);
    for (size_t p = 0; p < points; p++)
        gain += cost[p] < lowest[p] ? lowest[p] - cost[p] : 0;
    return gain;
}

static int compare_branches(const void *x, const void *y)
{
    const branch *a = x, *b = y;
    const int order = compare(b->gain, a->gain);
    return order ? order : compare(a->candidate, b->candidate);
}

/* Lists the open candidates that meet a demand, largest gain first; returns their number. */
static size_t list_branches(search *s, size_t level, size_t demand, branch *branches)
{
    const uint64_t *met_by = s->met_by + demand * words_of_candidates(s);
    size_t count = 0;
    for (size_t k = 0; k < s->active_count; k++) {
        const size_t i = s->active[k];
        if (has_bit(met_by, i) && has_bit(s->open, i))
            branches[count++] = (branch){i, gain_of(s, level, i)};
    }
    qsort(branches, count, sizeof *branches, compare_branches);
    return count;
}

/* An upper bound on a set's further gain: the sum of the largest gains, as many as candidates can still be taken. */
static uint64_t most_gain(const search *s, size_t level)
{
    const size_t left = s->depth - level;
    uint64_t largest[PICK_MOST] = {0}; /* descending */
    for (size_t k = 0; k < s->active_count; k++) {
        if (!has_bit(s->open, s->active[k]))
            continue;
        uint64_t gain = gain_of(s, level, s->active[k]);
        for (size_t n = 0; n < left && gain > 0; n++)
            if (gain > largest[n]) {
                const uint64_t smaller = largest[n];
                largest[n] = gain;
                gain = smaller;
            }
    }
    return sum(largest, left);
}

/* A lower bound on the bytes for the unmet demands: the fewest bytes per demand of any candidate, times their number. */
static uint64_t least_bytes(const search *s, size_t level, size_t unmet_count)
{
    uint64_t least = PICK_NEVER;
    for (size_t k = 0; k < s->active_count; k++) {
        const size_t i = s->active[k];
        const uint64_t gain = has_bit(s->open, i) ? gain_of(s, level, i) : 0;
        const uint64_t bytes = gain ? candidate_bytes_of(s, i) : PICK_NEVER;
        const uint64_t price = gain && gain < unmet_count ? bytes * unmet_count / gain : bytes;
        least = price < least ? price : least;
    }
    return least;
}

/* Whether no set below this level can be as good as the best. */
static bool is_hopeless(search *s, size_t level)
{
    const size_t points = s->table->point_count;
    const uint64_t *unmet = s->unmet + level * s->words;
    uint64_t bytes = 0;
    s->steps += s->demands * words_of_candidates(s) + s->active_count * (asks_mean(s) ? points : s->words);
    if (count_apart(s, unmet) > s->depth - level)
        return true;
    if (asks_mean(s))
        return sum(s->lowest + level * points, points) > s->best.cost + most_gain(s, level);
    if (s->goal == GOAL_ANY || s->best.bytes == PICK_NEVER)
        return false;
    for (size_t k = 0; k < level; k++)
        bytes += candidate_bytes_of(s, s->taken[k]);
    const uint64_t more = least_bytes(s, level, count_bits(unmet, unmet, s->words));
    return more == PICK_NEVER || bytes + more > s->best.bytes;
}

/* Compares the set taken above this level, which meets all demands, with the best. */
static void consider(search *s, size_t level)
{
    set found = {.count = level, .bytes = PICK_NEVER};
    memcpy(found.items, s->taken, level * sizeof *found.items);
    sort(found.items, level);
    found.cost = sum(s->lowest + level * s->table->point_count, s->table->point_count);
    if (s->best.count == 0 || compare_sets(s, &found, &s->best) < 0)
        s->best = found;
}

static void take(search *s, size_t level, size_t i)
{
    const size_t points = s->table->point_count;
    const uint64_t *unmet = s->unmet + level * s->words, *lowest = s->lowest + level * points;
    uint64_t *next_unmet = s->unmet + (level + 1) * s->words, *next_lowest = s->lowest + (level + 1) * points;
    for (size_t w = 0; w < s->words; w++)
        next_unmet[w] = unmet[w] & ~s->met[i * s->words + w];
    for (size_t p = 0; p < points; p++)
        next_lowest[p] = s->cost[i * points + p] < lowest[p] ? s->cost[i * points + p] : lowest[p];
    s->taken[level] = i;
}

static bool is_done(const search *s)
{
    return s->steps >= MOST_STEPS || (s->goal == GOAL_ANY && s->best.count > 0);
}

static void descend(search *s, size_t level)
{
    const uint64_t *unmet = s->unmet + level * s->words;
    const size_t demand = hardest_demand(s, unmet);
    branch *branches = s->branches + level * s->table->candidate_count;
    if (demand == s->demands) {
        consider(s, level);
        return;
    }
    if (level == s->depth || is_hopeless(s, level))
        return;
    const size_t count = list_branches(s, level, demand, branches);
    size_t k = 0;
    for (; k < count && !is_done(s); k++) {
        const size_t i = branches[k].candidate;
        if (level + 1 < s->depth || meets_all(s, i, unmet)) {
            take(s, level, i);
            descend(s, level + 1);
        }
        s->open[i / WORD_BITS] &= ~(UINT64_C(1) << i % WORD_BITS);
    }
    while (k-- > 0)
        s->open[branches[k].candidate / WORD_BITS] |= UINT64_C(1) << branches[k].candidate % WORD_BITS;
}

/* Finds the best set of at most `depth` candidates, after set_ratio(ratio). s->best is a known set to improve on, or empty. */
static bool find_sets(search *s, size_t depth, uint32_t ratio)
{
    const uint64_t slowest = pick_log2(ratio, PICK_ONE);
    s->depth = depth;
    memset(s->unmet, 0, s->words * sizeof *s->unmet);
    for (size_t d = 0; d < s->demands; d++)
        s->unmet[d / WORD_BITS] |= UINT64_C(1) << d % WORD_BITS;
    for (size_t p = 0; p < s->table->point_count; p++)
        s->lowest[p] = slowest; /* no set is slower anywhere */
    descend(s, 0);
    return s->best.count > 0;
}

/* Whether at most `most` candidates meet all demands at this ratio; s->best is such a set. */
static bool is_enough(search *s, uint32_t ratio, size_t most)
{
    set_ratio(s, ratio);
    set_goal(s, GOAL_ANY);
    s->best.count = 0;
    return find_sets(s, most, ratio);
}

/* The size of the smallest set that meets all demands at this ratio; most + 1: there is none of at most `most`. */
static size_t fewest_at(search *s, uint32_t ratio, size_t most)
{
    set_ratio(s, ratio);
    set_goal(s, GOAL_ANY);
    for (size_t depth = 1; depth <= most; depth++) {
        s->best.count = 0;
        if (find_sets(s, depth, ratio))
            return depth;
    }
    return most + 1;
}

static picked result(const search *s, pick_status status)
{
    const size_t points = s->table->point_count;
    picked p = {.status = status, .count = s->best.count, .is_partial = s->steps >= MOST_STEPS};
    memcpy(p.items, s->best.items, sizeof p.items);
    for (size_t point = 0; point < points; point++) {
        uint32_t least = UINT32_MAX;
        for (size_t i = 0; i < p.count; i++) {
            const uint32_t ratio = s->ratio[p.items[i] * points + point];
            least = ratio < least ? ratio : least;
        }
        if (least > p.worst) {
            p.worst = least;
            p.worst_point = point;
        }
    }
    p.mean = points ? s->best.cost / points : 0;
    return p;
}

/* The least ratio above `low` at which `most` candidates suffice, by bisection; s->best is a set that suffices at some ratio. */
static uint32_t least_ratio(search *s, size_t most, uint32_t low)
{
    uint32_t high = result(s, PICK_TOO_SLOW).worst;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (is_enough(s, middle, most))
            high = result(s, PICK_TOO_SLOW).worst;
        else
            low = middle;
    }
    return high;
}

/* Looks for a better set than s->best at the ratio that is set. */
static void improve(search *s, goal wanted, size_t depth, uint32_t ratio)
{
    set_goal(s, wanted);
    find_sets(s, depth, ratio);
}

picked pick(arena *a, const pick_table *t)
{
    search s = search_begin(a, t);
    const size_t most = t->most < PICK_MOST ? t->most : PICK_MOST;
    size_t count = fewest_at(&s, t->within, most);
    if (count <= most && t->is_least_bytes) {
        improve(&s, GOAL_LEAST_BYTES, most, t->within);
        return result(&s, PICK_MADE);
    }
    if (count <=
        most) { /* the least mean without replaced candidates, then the best of the sets with that mean */
        improve(&s, GOAL_MEAN, count, t->within);
        improve(&s, GOAL_TIES, count, t->within);
        return result(&s, PICK_MADE);
    }
    count = fewest_at(&s, UINT32_MAX, PICK_MOST);
    if (count > PICK_MOST || s.steps >= MOST_STEPS)
        return (picked){.status = PICK_UNDECIDED};
    if (count > most)
        return (picked){.status = PICK_UNCOVERED, .count = count};
    fewest_at(&s, least_ratio(&s, most, t->within), most);
    return s.steps < MOST_STEPS ? result(&s, PICK_TOO_SLOW) : (picked){.status = PICK_UNDECIDED};
}
