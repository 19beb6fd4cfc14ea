/* Compares pick() with a search through all subsets of small tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "choose/pick.h"

enum { TABLES = 20000, CANDIDATES = 9, POINTS = 6, NEEDS = 3 };

static uint64_t seed = 1;

/* xorshift64 */
static uint32_t draw(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)((seed >> 11) % below);
}

/* ---- all subsets -------------------------------------------------------------------------------------------------- */

typedef struct small_table {
    pick_table table;
    uint64_t times[CANDIDATES * POINTS];
    bool meets[CANDIDATES * NEEDS];
    uint64_t bytes[CANDIDATES];
    size_t asked; /* calls of bytes_of */
} small_table;

typedef struct subset {
    uint32_t set; /* one bit per candidate */
    uint32_t count, worst;
    uint64_t cost, bytes;
    bool is_covered;
} subset;

static uint64_t bytes_of(void *context, size_t candidate)
{
    small_table *t = context;
    t->asked++;
    return t->bytes[candidate];
}

static subset judge(const small_table *t, uint32_t set)
{
    const pick_table *p = &t->table;
    subset s = {.set = set, .is_covered = true};
    for (size_t i = 0; i < p->candidate_count; i++)
        if (set >> i & 1) {
            s.count++;
            s.bytes += t->bytes[i];
        }
    for (size_t n = 0; n < p->need_count; n++) {
        bool is_met = false;
        for (size_t i = 0; i < p->candidate_count; i++)
            is_met = is_met || ((set >> i & 1) && t->meets[i * p->need_count + n]);
        s.is_covered = s.is_covered && is_met;
    }
    for (size_t point = 0; point < p->point_count; point++) {
        uint64_t best = PICK_NEVER, least = PICK_NEVER;
        for (size_t i = 0; i < p->candidate_count; i++) {
            const uint64_t time = t->times[i * p->point_count + point];
            best = time < best ? time : best;
            least = (set >> i & 1) && time < least ? time : least;
        }
        if (least == PICK_NEVER) {
            s.is_covered = false;
            return s;
        }
        const uint32_t ratio = (uint32_t)((least * 1000 + best - 1) / best);
        s.worst = ratio > s.worst ? ratio : s.worst;
        s.cost += pick_log2(least, best);
    }
    return s;
}

/* Whether x is better. The lowest candidates break ties: bit 0 comes first. */
static bool is_better(const small_table *t, const subset *x, const subset *y)
{
    const bool bytes_first = t->table.is_least_bytes;
    if (bytes_first && x->bytes != y->bytes)
        return x->bytes < y->bytes;
    if (x->count != y->count)
        return x->count < y->count;
    if (x->cost != y->cost)
        return x->cost < y->cost;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes;
    const uint32_t differ = x->set ^ y->set;
    return (x->set & (differ & -differ)) != 0;
}

static subset best_subset(const small_table *t, uint32_t ratio)
{
    subset best = {0};
    for (uint32_t set = 1; set < 1u << t->table.candidate_count; set++) {
        const subset s = judge(t, set);
        if (s.is_covered && s.worst <= ratio && s.count <= t->table.most &&
            (best.set == 0 || is_better(t, &s, &best)))
            best = s;
    }
    return best;
}

/* Finds the least ratio of sets of this size, and the smallest set that serves at any ratio. */
static void find_limits(const small_table *t, uint32_t *ratio, uint32_t *fewest)
{
    *ratio = *fewest = UINT32_MAX;
    for (uint32_t set = 1; set < 1u << t->table.candidate_count; set++) {
        const subset s = judge(t, set);
        if (s.is_covered && s.count < *fewest)
            *fewest = s.count;
        if (s.is_covered && s.count <= t->table.most && s.worst < *ratio)
            *ratio = s.worst;
    }
}

/* ---- tables ------------------------------------------------------------------------------------------------------- */

/* Draws few different times and bytes, so that sets often tie. */
static void make_table(small_table *t)
{
    const size_t candidates = 1 + draw(CANDIDATES), points = 1 + draw(POINTS), needs = draw(NEEDS + 1);
    const uint32_t kinds = draw(4) ? 2 + draw(5) : 1000, rare = 2 + draw(4), scale = draw(8) ? 1 : 1u << 30;
    memset(t, 0, sizeof *t);
    t->table = (pick_table){.candidate_count = candidates,
                            .point_count = points,
                            .need_count = needs,
                            .times = t->times,
                            .meets = t->meets,
                            .within = 1000 + 100 * draw(21),
                            .most = 1 + draw(1 + draw(5)),
                            .is_least_bytes = draw(3) == 0,
                            .bytes_of = bytes_of,
                            .context = t};
    for (size_t i = 0; i < candidates; i++)
        t->bytes[i] = draw(3);
    const bool is_twice = draw(2) == 0;
    for (size_t p = 0; p < points; p++) {
        for (size_t i = 0; i < candidates; i++)
            t->times[i * points + p] =
                draw(rare) == 0 ? PICK_NEVER : (uint64_t)scale * (kinds + draw(kinds * 4));
        if (is_twice) /* the first and the last candidate are equal */
            t->times[p] = t->times[(candidates - 1) * points + p];
        t->times[draw((uint32_t)candidates) * points + p] = (uint64_t)scale * (kinds + draw(kinds));
    }
    for (size_t n = 0; n < needs; n++) {
        for (size_t i = 0; i < candidates; i++)
            t->meets[i * needs + n] = draw(rare) == 0;
        t->meets[draw((uint32_t)candidates) * needs + n] = true;
    }
}

static uint32_t set_of(const picked *p)
{
    uint32_t set = 0;
    for (size_t i = 0; i < p->count; i++) {
        assert_true(i == 0 || p->items[i] > p->items[i - 1]);
        set |= 1u << p->items[i];
    }
    return set;
}

static void check_set(const small_table *t, const picked *p, const subset *expected)
{
    assert_int_equal(set_of(p), expected->set);
    assert_int_equal(p->worst, expected->worst);
    assert_int_equal(p->mean, expected->cost / t->table.point_count);
}

static void test_subsets(void **state)
{
    (void)state;
    size_t seen[PICK_UNDECIDED + 1] = {0}, asked = 0;
    for (int number = 0; number < TABLES; number++) {
        arena *a = arena_new();
        small_table t;
        make_table(&t);
        const picked p = pick(a, &t.table);
        assert_false(p.is_partial);
        subset expected = best_subset(&t, t.table.within);
        seen[p.status]++;
        asked += t.asked > 0;
        if (expected.set) {
            assert_int_equal(p.status, PICK_MADE);
            check_set(&t, &p, &expected);
        } else {
            uint32_t ratio, fewest;
            find_limits(&t, &ratio, &fewest);
            assert_int_equal(p.status, fewest > t.table.most ? PICK_UNCOVERED : PICK_TOO_SLOW);
            t.table.is_least_bytes = false;
            expected = best_subset(&t, ratio);
            assert_int_equal(p.count, p.status == PICK_UNCOVERED ? fewest : expected.count);
            if (p.status == PICK_TOO_SLOW) {
                const subset found = judge(&t, set_of(&p));
                assert_true(found.is_covered && found.worst == ratio);
                assert_int_equal(p.worst, ratio);
            }
        }
        arena_free(a);
    }
    printf("%zu made, %zu too slow, %zu uncovered; %zu asked for bytes\n", seen[PICK_MADE],
           seen[PICK_TOO_SLOW], seen[PICK_UNCOVERED], asked);
    assert_true(seen[PICK_MADE] > TABLES / 10 && seen[PICK_TOO_SLOW] > TABLES / 10 &&
                seen[PICK_UNCOVERED] > TABLES / 20 && asked > TABLES / 10 && asked < TABLES);
}

/* Ratios beyond 99.99 and beyond 32 bits of thousandths. */
static void test_slow(void **state)
{
    (void)state;
    static const struct {
        uint64_t times[4];
        uint32_t worst;
    } rows[] = {{{1, 500, 500, 1}, 500000}, {{1, 4000000, 5000000, 1}, 4000000000}};
    static const bool none[1];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        arena *a = arena_new();
        const pick_table t = {.candidate_count = 2,
                              .point_count = 2,
                              .times = rows[i].times,
                              .meets = none,
                              .within = 1100,
                              .most = 1};
        small_table bytes = {.bytes = {1, 2}};
        pick_table with = t;
        with.bytes_of = bytes_of;
        with.context = &bytes;
        const picked p = pick(a, &with);
        assert_int_equal(p.status, PICK_TOO_SLOW);
        assert_int_equal(p.worst, rows[i].worst);
        arena_free(a);
    }
}

/* ---- logarithms --------------------------------------------------------------------------------------------------- */

/* Logarithms are rounded down. Within 1e-6 of a unit either neighbour is right. */
static void check_log2(uint64_t time, uint64_t best)
{
    const long double exact = log2l((long double)time / (long double)best) * 65536;
    const uint64_t found = pick_log2(time, best);
    assert_true((long double)found <= exact + 1e-6L && (long double)found >= exact - 1 - 1e-6L);
}

static void test_log2(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 63; n++)
        assert_int_equal(pick_log2(UINT64_C(1) << n, 1), n << 16);
    for (int i = 0; i < 200000; i++) {
        const uint64_t best = (((uint64_t)draw(1u << 31) << 32) + draw(UINT32_MAX)) >> draw(63) | 1;
        uint64_t time = (((uint64_t)draw(1u << 31) << 32) + draw(UINT32_MAX)) >> draw(63);
        time = draw(2) ? best + draw(1000) : time;
        check_log2(time < best ? best : time, time < best ? time | 1 : best);
        check_log2(best + best / 1000, best);
    }
    uint64_t last = 0;
    for (uint64_t time = 1000; time < 100000; time++) { /* never less for a longer time */
        assert_true(pick_log2(time, 1000) >= last);
        last = pick_log2(time, 1000);
    }
    assert_true(pick_log2(PICK_NEVER, 1) == PICK_NEVER && pick_log2(0, 0) == 0 &&
                pick_log2(1, 0) == PICK_NEVER);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_subsets), cmocka_unit_test(test_slow),
                                              cmocka_unit_test(test_log2)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
