/* A search by depth. A demand is a need, or a point at which a candidate has to be within the ratio; each level takes a candidate
 * that meets the hardest unmet demand. The number of candidates and the mean are found among those that no other replaces. Then
 * all candidates are searched for sets that are as good, since bytes decide among these. */
#include "pick.h"

#include <string.h>

enum { MOST_DEPTH = 64, WORD_BITS = 64, MOST_STEPS = 4000000 };

typedef struct search {
    const pick_table *table;
    size_t count;             /* of candidates that are left */
    const size_t *candidates; /* ascending */
    size_t demands, words;
    uint64_t *met;  /* [candidate left][word]: the demands that it meets */
    uint64_t *cost; /* [candidate left][point]: log2 of its ratio; PICK_NEVER */
    size_t depth;
    size_t taken[MOST_DEPTH];
    uint64_t *unmet;  /* [depth][word] */
    uint64_t *lowest; /* [depth][point]: the least cost of those taken */
    size_t steps;
    bool asks_bytes; /* among sets of equal cost */
    bool has_best;
    uint64_t best_cost, best_bytes; /* bytes: PICK_NEVER until they are asked for */
    size_t best[MOST_DEPTH];        /* candidates of the table, ascending */
} search;

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

static uint64_t time_of(const pick_table *t, size_t candidate, size_t point)
{
    return t->times[candidate * t->point_count + point];
}

static uint64_t best_time(const pick_table *t, size_t point)
{
    uint64_t best = PICK_NEVER;
    for (size_t i = 0; i < t->candidate_count; i++)
        if (time_of(t, i, point) < best)
            best = time_of(t, i, point);
    return best;
}

static bool is_within(uint64_t time, uint64_t best, uint32_t ratio)
{
    __extension__ typedef unsigned __int128 wide;
    return time != PICK_NEVER && (wide)time * PICK_ONE <= (wide)best * ratio;
}

/* Rounded up. */
static uint32_t ratio_of(uint64_t time, uint64_t best)
{
    __extension__ typedef unsigned __int128 wide;
    if (time == PICK_NEVER)
        return UINT32_MAX;
    if (best == 0)
        return time == 0 ? PICK_ONE : UINT32_MAX;
    const wide ratio = ((wide)time * PICK_ONE + best - 1) / best;
    return ratio < UINT32_MAX ? (uint32_t)ratio : UINT32_MAX;
}

/* ---- candidates that can be left out ------------------------------------------------------------------------------ */

/* Whether x is at least as good as y everywhere, and better somewhere or before it. */
static bool replaces(const pick_table *t, size_t x, size_t y)
{
    bool is_better = x < y;
    for (size_t p = 0; p < t->point_count; p++) {
        if (time_of(t, x, p) > time_of(t, y, p))
            return false;
        is_better = is_better || time_of(t, x, p) < time_of(t, y, p);
    }
    for (size_t n = 0; n < t->need_count; n++) {
        if (t->meets[y * t->need_count + n] && !t->meets[x * t->need_count + n])
            return false;
        is_better = is_better || t->meets[x * t->need_count + n] > t->meets[y * t->need_count + n];
    }
    return is_better;
}

static bool is_replaced(const pick_table *t, size_t y)
{
    for (size_t x = 0; x < t->candidate_count; x++)
        if (x != y && replaces(t, x, y))
            return true;
    return false;
}

/* ---- the search --------------------------------------------------------------------------------------------------- */

static search search_begin(arena *a, const pick_table *t, bool takes_replaced)
{
    search s = {.table = t, .asks_bytes = takes_replaced, .best_bytes = PICK_NEVER};
    size_t *candidates = arena_alloc(a, (t->candidate_count + 1) * sizeof *candidates);
    for (size_t i = 0; i < t->candidate_count; i++)
        if (takes_replaced || !is_replaced(t, i))
            candidates[s.count++] = i;
    s.candidates = candidates;
    s.demands = t->point_count + t->need_count;
    s.words = s.demands / WORD_BITS + 1;
    s.met = arena_alloc(a, s.count * s.words * sizeof *s.met);
    s.cost = arena_alloc(a, (s.count * t->point_count + 1) * sizeof *s.cost);
    s.unmet = arena_alloc(a, (MOST_DEPTH + 1) * s.words * sizeof *s.unmet);
    s.lowest = arena_alloc(a, ((MOST_DEPTH + 1) * t->point_count + 1) * sizeof *s.lowest);
    for (size_t p = 0; p < t->point_count; p++) {
        const uint64_t best = best_time(t, p);
        for (size_t i = 0; i < s.count; i++)
            s.cost[i * t->point_count + p] = pick_log2(time_of(t, s.candidates[i], p), best);
    }
    return s;
}

/* Which demands each candidate meets, with this ratio. */
static void set_ratio(search *s, uint32_t ratio)
{
    const pick_table *t = s->table;
    memset(s->met, 0, s->count * s->words * sizeof *s->met);
    for (size_t d = 0; d < s->demands; d++) {
        const bool is_point = d < t->point_count;
        const uint64_t best = is_point ? best_time(t, d) : 0;
        for (size_t i = 0; i < s->count; i++) {
            const size_t c = s->candidates[i];
            const bool is_met = is_point ? is_within(time_of(t, c, d), best, ratio)
                                         : t->meets[c * t->need_count + (d - t->point_count)];
            s->met[i * s->words + d / WORD_BITS] |= (uint64_t)is_met << d % WORD_BITS;
        }
    }
}

static bool meets(const search *s, size_t i, size_t demand)
{
    return s->met[i * s->words + demand / WORD_BITS] >> demand % WORD_BITS & 1;
}

static bool meets_all(const search *s, size_t i, const uint64_t *unmet)
{
    for (size_t w = 0; w < s->words; w++)
        if (unmet[w] & ~s->met[i * s->words + w])
            return false;
    return true;
}

/* The unmet demand that the fewest candidates meet; `demands`: none is unmet. */
static size_t hardest_demand(const search *s, const uint64_t *unmet)
{
    size_t hardest = s->demands, fewest = SIZE_MAX;
    for (size_t d = 0; d < s->demands && fewest > 1; d++) {
        if (!(unmet[d / WORD_BITS] >> d % WORD_BITS & 1))
            continue;
        size_t count = 0;
        for (size_t i = 0; i < s->count && count < fewest; i++)
            count += meets(s, i, d);
        if (count < fewest) {
            fewest = count;
            hardest = d;
        }
    }
    return hardest;
}

/* Of table's candidates. */
static uint64_t bytes_of(const search *s, const size_t *items)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->depth; i++)
        bytes += s->table->bytes_of(s->table->context, items[i]);
    return bytes;
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

/* Whether the first of two sets of equal cost is to be preferred: fewer bytes, then the lower candidates. */
static bool is_preferred(search *s, const size_t *items, uint64_t *bytes)
{
    if (memcmp(items, s->best, s->depth * sizeof *items) == 0)
        return false;
    if (s->best_bytes == PICK_NEVER)
        s->best_bytes = bytes_of(s, s->best);
    *bytes = bytes_of(s, items);
    if (*bytes != s->best_bytes)
        return *bytes < s->best_bytes;
    size_t i = 0;
    while (items[i] == s->best[i])
        i++;
    return items[i] < s->best[i];
}

static void consider_taken(search *s, uint64_t cost)
{
    size_t items[MOST_DEPTH];
    uint64_t bytes = PICK_NEVER;
    for (size_t i = 0; i < s->depth; i++)
        items[i] = s->candidates[s->taken[i]];
    sort(items, s->depth);
    if (s->has_best &&
        (cost > s->best_cost || (cost == s->best_cost && !(s->asks_bytes && is_preferred(s, items, &bytes)))))
        return;
    s->has_best = true;
    s->best_cost = cost;
    s->best_bytes = bytes;
    memcpy(s->best, items, s->depth * sizeof *items);
}

/* Takes one more, at `level` of the depth. Stops at the first set where only its existence matters. */
static void descend(search *s, size_t level, bool is_any_enough)
{
    const size_t points = s->table->point_count;
    const uint64_t *unmet = s->unmet + level * s->words, *lowest = s->lowest + level * points;
    const size_t demand = hardest_demand(s, unmet);
    if (level == s->depth || demand == s->demands) {
        uint64_t cost = 0;
        for (size_t p = 0; p < points; p++)
            cost += lowest[p];
        if (demand == s->demands && level == s->depth)
            consider_taken(s, cost);
        return;
    }
    for (size_t i = 0; i < s->count && s->steps < MOST_STEPS; i++) {
        if (!meets(s, i, demand) || (level + 1 == s->depth && !meets_all(s, i, unmet)))
            continue;
        s->steps++;
        uint64_t *next_unmet = s->unmet + (level + 1) * s->words,
                 *next_lowest = s->lowest + (level + 1) * points;
        for (size_t w = 0; w < s->words; w++)
            next_unmet[w] = unmet[w] & ~s->met[i * s->words + w];
        for (size_t p = 0; p < points; p++) {
            const uint64_t own = s->cost[i * points + p];
            next_lowest[p] = own < lowest[p] ? own : lowest[p];
        }
        s->taken[level] = i;
        descend(s, level + 1, is_any_enough);
        if (is_any_enough && s->has_best)
            return;
    }
}

/* Whether there is a set of so many; the best one is in s->best. Smaller sets do not count. */
static bool find_sets(search *s, size_t depth, bool is_any_enough)
{
    s->depth = depth;
    memset(s->unmet, 0, s->words * sizeof *s->unmet);
    for (size_t d = 0; d < s->demands; d++)
        s->unmet[d / WORD_BITS] |= UINT64_C(1) << d % WORD_BITS;
    for (size_t p = 0; p < s->table->point_count; p++)
        s->lowest[p] = PICK_NEVER;
    descend(s, 0, is_any_enough);
    return s->has_best;
}

/* The fewest that meet all demands at this ratio; most + 1: more than that. */
static size_t fewest_at(search *s, uint32_t ratio, size_t most)
{
    set_ratio(s, ratio);
    for (size_t depth = 1; depth <= most; depth++) {
        s->has_best = false;
        if (find_sets(s, depth, true))
            return depth;
    }
    return most + 1;
}

static picked result(const search *s, pick_status status)
{
    const pick_table *t = s->table;
    picked p = {.status = status, .items = s->best, .count = s->depth};
    for (size_t point = 0; point < t->point_count; point++) {
        uint64_t least = PICK_NEVER;
        for (size_t i = 0; i < p.count; i++)
            if (time_of(t, p.items[i], point) < least)
                least = time_of(t, p.items[i], point);
        const uint32_t ratio = ratio_of(least, best_time(t, point));
        if (ratio > p.worst) {
            p.worst = ratio;
            p.worst_point = point;
        }
        p.mean += pick_log2(least, best_time(t, point));
    }
    p.mean = t->point_count ? p.mean / t->point_count : 0;
    return p;
}

/* The best set of so many at this ratio; `s` has the one by count and mean alone. */
static picked best_at(arena *a, search *s, size_t count, uint32_t ratio, pick_status status)
{
    s->has_best = false;
    find_sets(s, count, false);
    search *all = arena_alloc(a, sizeof *all);
    *all = search_begin(a, s->table, true);
    set_ratio(all, ratio);
    all->has_best = true;
    all->best_cost = s->best_cost;
    for (size_t i = 0; i < count; i++)
        all->best[i] = s->best[i];
    find_sets(all, count, false);
    return result(all, s->steps < MOST_STEPS ? status : PICK_UNDECIDED);
}

/* The least ratio at which `most` are enough, by halving; PICK_MOST_RATIO: none up to that. */
static uint32_t least_ratio(search *s, size_t most)
{
    uint32_t low = s->table->within, high = PICK_MOST_RATIO;
    if (fewest_at(s, high, most) > most)
        return high;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (fewest_at(s, middle, most) > most)
            low = middle;
        else
            high = middle;
    }
    return high;
}

picked pick(arena *a, const pick_table *t)
{
    search s = search_begin(a, t, false);
    const size_t most = t->most < MOST_DEPTH ? t->most : MOST_DEPTH;
    const size_t fewest = fewest_at(&s, t->within, most);
    if (fewest <= most)
        return best_at(a, &s, fewest, t->within, PICK_MADE);
    const uint32_t ratio = least_ratio(&s, most);
    const size_t needed = fewest_at(&s, ratio, MOST_DEPTH);
    if (s.steps >= MOST_STEPS)
        return (picked){.status = PICK_UNDECIDED};
    if (needed > most)
        return (picked){.status = PICK_UNCOVERED, .count = needed};
    return best_at(a, &s, needed, ratio, PICK_TOO_SLOW);
}
