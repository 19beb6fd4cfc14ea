/* Tests `kiln choose` on items of the product's families: a chosen variant serves each random legal call, and small choices equal
 * those of a search through all sets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/author/families.h>

#include "choose/candidates.h"
#include "choose/choose.h"
#include "family/family.h"
#include "plan/config.h"

enum { CALLS = 10000, TRIES = 10 * CALLS, REPAIRS = 60, MOST_TRIED = 12 };
#define LARGE (UINT64_C(1) << 40)

static const kiln_family *const families[] = {KILN_FAMILIES, NULL};
static const char device_words[][24] = {"T4", "A100", "RTX 3090", "Jetson Orin Nano", "RTX 4090",
                                        "L4", "H100", "B200",     "RTX 5090",         "Jetson Thor"};
enum { DEVICES = sizeof device_words / sizeof device_words[0] };

static uint64_t seed = 88172645463325252;

/* xorshift64 */
static uint64_t draw(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (seed >> 11) % below;
}

/* ---- items -------------------------------------------------------------------------------------------------------- */

#define EVERY "sm_75, sm_80, sm_87, sm_90, sm_100, sm_120"
#define NEWER "sm_80, sm_90, sm_120" /* no variant on sm_75 has the contract */

/* Each item has one contract. */
static const struct {
    const char *targets, *text;
    bool is_refused; /* the choice only serves its shapes, so it refuses some legal calls */
} items[] = {
    {EVERY, "family: nf4_gemm, a: f16, shapes: [{m: [1, 7, 64, 2048], n: [4096, 14336], k: 4096}]", false},
    {EVERY, "family: nf4_gemm, a: bf16, workspace: none, shapes: [{m: [1, 7, 64, 2048], n: 4096, k: 4096}]",
     false},
    {NEWER,
     "family: linear, activation: half, x: bf16, y: bf16, shapes: [{m: [1, 33, 512], n: 4096, k: 4096}]",
     false},
    {EVERY, "family: linear, activation: q8, x: f16, y: f16, shapes: [{m: [1, 4], n: 4096, k: 4096}]", false},
    {EVERY, "family: linear, activation: q8, x: s8, y: f16, shapes: [{m: [1, 33, 512], n: 4096, k: 4096}]",
     false},
    {EVERY,
     "family: linear, format: q8_0, activation: half, x: f16, y: f16, epilogue: residual, "
     "shapes: [{m: [1, 33, 512], n: 4096, k: 14336}]",
     false},
    {EVERY,
     "family: attention, type: bf16, causal: true, shapes: [{batch: [1, 8], q_heads: 32, kv_heads: 8, "
     "q_length: [1, 512], k_length: 2048}]",
     false},
    {EVERY,
     "family: attention, type: f16, layout: ragged, shapes: [{batch: [1, 8], q_heads: 32, kv_heads: 8, "
     "q_length: [1, 512], k_length: 2048}]",
     false},
    {EVERY,
     "family: attention, type: bf16, layout: paged, shapes: [{batch: [1, 8], q_heads: 32, kv_heads: 8, "
     "q_length: [1, 512], k_length: 2048}]",
     false},
    {EVERY, "family: rmsnorm_q4k_gemv, activation: q8, x: f16, y: f16, shapes: [{n: [4096, 14336], k: 4096}]",
     false},
    {EVERY, "family: nvfp4_gemv, c: bf16, shapes: [{m: [128, 4096], k: [2048, 7168], l: [1, 4]}]", false},
    {EVERY, "family: nf4_gemm_transposed, a: f16, shapes: [{m: [1, 64, 2048], n: 4096, k: 4096}]", false},
    {EVERY, "family: nvfp4_gemv, c: bf16, only_these_shapes: true, shapes: [{m: 4096, k: 2048, l: 1}]", true},
};

static plan *choose_for(arena *a, const char *targets, const char *item, diagnostics *d)
{
    const char *config = arena_format(
        a, "bundle: app\ntargets: [%s]\nkernels:\n  - {within: 1.25, max_variants: 12, %s}\n", targets, item);
    static const choose_options anew = {.ignores_lock = true};
    const config_options options = {.choose = choose_variants, .choose_context = &anew};
    return config_read_text(a, families, "item.yaml", config, strlen(config), &options, d);
}

/* ---- random calls ------------------------------------------------------------------------------------------------- */

typedef struct caller {
    candidates *c;
    const kiln_family *family;
    size_t args;
    bool *is_chosen;   /* by candidate */
    bool *asks_tuning; /* by rule */
    bool *names;       /* [rule][argument] */
    kiln_device devices[DEVICES];
} caller;

static caller caller_of(arena *a, const plan *p, candidates *c)
{
    caller of = {.c = c, .family = c->item->request.family};
    const terms *t = &c->items[0].terms;
    of.args = family_arg_count(of.family);
    of.is_chosen = arena_alloc(a, c->count);
    of.asks_tuning = arena_alloc(a, t->rule_count + 1);
    of.names = arena_alloc(a, (t->rule_count + 1) * of.args);
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < p->variant_count; k++)
            of.is_chosen[i] = of.is_chosen[i] || strcmp(p->variants[k]->id, c->items[i].variant->id) == 0;
    for (size_t i = 0; i < t->rule_count; i++) {
        const expression *rule = expression_parse(a, of.family, of.family->rules[i].condition);
        expression_mark_args(rule, of.names + i * of.args);
        for (size_t k = 0; k < family_param_count(of.family); k++)
            if (of.family->params[k].role == KILN_ROLE_TUNING && expression_uses_param(rule, k))
                of.asks_tuning[i] = true;
    }
    for (size_t i = 0; i < DEVICES; i++)
        if (!device_find(0, device_words[i], &of.devices[i]))
            exit((printf("no device %s\n", device_words[i]), 1));
    return of;
}

/* Returns numbers near the edges of tiles, multiples, odd numbers, small and very large numbers. */
static uint64_t draw_size(const kiln_arg *arg)
{
    static const uint32_t units[] = {8, 16, 32, 64, 128, 256, 512, 1024};
    const uint64_t most = strstr(arg->type, "16") ? UINT16_MAX : UINT32_MAX;
    const uint64_t unit = units[draw(sizeof units / sizeof units[0])];
    const uint64_t sizes[] = {draw(9),
                              unit * draw(64),
                              unit * draw(64) + draw(3),
                              (1u << draw(16)) + draw(3),
                              1 + 2 * draw(4096),
                              unit * draw(most / unit),
                              draw(most)};
    return sizes[draw(8) % (sizeof sizes / sizeof sizes[0])] % (most + 1);
}

static uint64_t draw_arg(const caller *of, size_t i)
{
    const kiln_arg *arg = &of->family->args[i];
    const kiln_workspace *w = of->family->workspace;
    if (arg->kind != KILN_ARG_VALUE)
        return arg_may_be_null(arg) && draw(2) ? 0 : UINT64_C(16) << draw(5);
    if (w && strcmp(arg->name, w->size) == 0)
        return of->c->item->has_workspace && draw(2) ? LARGE : 0;
    return draw(16) ? draw_size(arg) : draw(2);
}

/* Returns the first rule without tuning parameters that the call breaks, or the number of rules if it breaks none. */
static size_t find_broken(const caller *of, const call *asked)
{
    const terms *t = &of->c->items[0].terms;
    size_t i = 0;
    while (i < t->rule_count && (of->asks_tuning[i] || call_number(asked, t->rules[i])))
        i++;
    return i;
}

/* Changes the last legal call: redraws some or all of its arguments, then those that a broken rule names. Returns false if the
 * result is not legal. */
static bool draw_call(const caller *of, uint64_t *args, const call *asked)
{
    const size_t rules = of->c->items[0].terms.rule_count;
    const bool is_new = draw(100) == 0;
    for (size_t i = 0; i < of->args; i++)
        if (is_new || draw(4) == 0)
            args[i] = draw_arg(of, i);
    for (int repairs = 0; repairs < REPAIRS; repairs++) {
        const size_t broken = find_broken(of, asked);
        size_t named = 0, which = 0;
        if (broken == rules)
            return true;
        for (size_t i = 0; i < of->args; i++)
            if (of->names[broken * of->args + i] && draw(++named) == 0)
                which = i;
        args[which] = draw_arg(of, which);
    }
    return false;
}

static bool can_launch(const caller *of, size_t i, const call *asked)
{
    const candidate *one = &of->c->items[i];
    return variant_serves(of->c->plan, one->variant, asked->device->sm) &&
           !call_broken_rule(asked, &one->terms, false) && !call_broken_rule(asked, &one->terms, true) &&
           !call_misaligned(asked, &one->terms) &&
           call_has_room(asked, &one->terms, one->code.static_shared_bytes);
}

/* Returns the first chosen variant that can launch the call, else the first other one, or the number of candidates. */
static size_t find_server(const caller *of, bool is_chosen, const call *asked)
{
    size_t i = 0;
    while (i < of->c->count && !(of->is_chosen[i] == is_chosen && can_launch(of, i, asked)))
        i++;
    return i;
}

static void print_refused(const caller *of, const call *asked, size_t server)
{
    printf("refused on sm_%u, although %s serves it:", (unsigned)asked->device->sm,
           of->c->items[server].variant->id);
    for (size_t i = 0; i < of->args; i++)
        printf(" %s=%llu", of->family->args[i].name, (unsigned long long)asked->args[i]);
    putchar('\n');
}

/* Checks that the item's random calls are all served, or, if the item says so, that some are not. */
static bool test_calls(size_t number)
{
    arena *a = arena_new();
    diagnostics d = {.out = stdout};
    const plan *p = choose_for(a, items[number].targets, items[number].text, &d);
    if (!p)
        return false;
    candidates c = candidates_of(a, p, &p->shaped[0], &p->shaped[0].request);
    if (!candidates_judge(&c, &d))
        return false;
    const caller of = caller_of(a, p, &c);
    uint64_t *args = arena_alloc(a, (of.args + 1) * sizeof *args);
    size_t legal = 0, refused = 0, drawn = 0;
    for (; legal < CALLS && drawn < TRIES; drawn++) {
        const call asked = {of.family, &of.devices[draw(DEVICES)], args};
        if (!draw_call(&of, args, &asked))
            continue;
        const bool is_served = find_server(&of, true, &asked) < c.count;
        const size_t other = is_served ? c.count : find_server(&of, false, &asked);
        legal += is_served || other < c.count;
        if (!is_served && other < c.count && refused++ == 0 && !items[number].is_refused)
            print_refused(&of, &asked, other);
    }
    printf("%s: %zu of %zu candidates; %zu legal calls of %zu drawn, %zu refused\n", c.name, p->variant_count,
           c.count, legal, drawn, refused);
    const bool ok = legal == CALLS && (items[number].is_refused ? refused > 0 : refused == 0);
    arena_free(a);
    return ok;
}

/* ---- small choices ------------------------------------------------------------------------------------------------ */

static const char *const small_items[] = {
    "family: nf4_gemm, a: f16, strategy: [simt, mma], tile_m: [1, 8, 32], tile_n: [16, 64], k_warps: 8, "
    "stages: 2, table: compact, split_k: 1, shapes: [{m: [1, 8, 64], n: [4096, 14336], k: 4096}]",
    "family: linear, activation: half, x: f16, y: f16, strategy: mma, vectors: 1, rows: 2, chunk: 65536, "
    "rounding: once, overlap: false, tile_m: [8, 16, 32], tile_n: 64, k_warps: [2, 4], stages: 2, "
    "split_k: [1, 4], shapes: [{m: [1, 16, 200], n: [1024, 4096], k: 4096}]",
    "family: nvfp4_gemv, strategy: simt, decode: software, rows: [1, 2, 4], k_warps: [1, 4], "
    "lane_codes: [16, 32], shapes: [{m: [128, 4096], k: [1024, 7168], l: [1, 8]}]",
    "family: attention, strategy: mma, tile_q: [16, 64], tile_k: [32, 64], split_k: [1, 0], "
    "pack_gqa: false, shapes: [{batch: 1, q_heads: 32, kv_heads: 8, q_length: [1, 300], k_length: [512, "
    "4096]}]",
};

typedef struct subset {
    uint32_t set, count;
    uint64_t cost, bytes;
} subset;

/* Returns the best subset that is within the ratio everywhere and meets every need; the set 0 if there is none. */
static subset judge_subset(candidates *c, uint32_t set)
{
    subset s = {.set = set}, none = {0};
    for (size_t n = 0; n < c->need_count; n++) {
        bool is_met = false;
        for (size_t i = 0; i < c->count; i++)
            is_met = is_met || ((set >> i & 1) && c->meets[i * c->need_count + n]);
        if (!is_met)
            return none;
    }
    for (size_t p = 0; p < c->point_count; p++) {
        uint64_t least = PICK_NEVER, best = PICK_NEVER;
        for (size_t i = 0; i < c->count; i++) {
            const uint64_t time = c->times[i * c->point_count + p];
            best = time < best ? time : best;
            least = (set >> i & 1) && time < least ? time : least;
        }
        if (least == PICK_NEVER || least * 1000 > best * c->item->within)
            return none;
        s.cost += pick_log2(least, best);
    }
    for (size_t i = 0; i < c->count; i++)
        if (set >> i & 1) {
            s.count++;
            s.bytes += candidate_bytes(c, i);
        }
    return s;
}

static bool is_better(const subset *x, const subset *y)
{
    if (x->count != y->count)
        return x->count < y->count;
    if (x->cost != y->cost)
        return x->cost < y->cost;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes;
    const uint32_t differ = x->set ^ y->set;
    return (x->set & (differ & -differ)) != 0;
}

static bool test_small(const char *item)
{
    arena *a = arena_new();
    diagnostics d = {.out = stdout};
    const plan *p = choose_for(a, NEWER, item, &d);
    if (!p)
        return false;
    candidates c = candidates_of(a, p, &p->shaped[0], &p->shaped[0].request);
    if (c.count > MOST_TRIED || !candidates_judge(&c, &d))
        return (printf("%s: %zu candidates\n", c.name, c.count), false);
    subset best = {0};
    for (uint32_t set = 1; set < 1u << c.count; set++) {
        const subset s = judge_subset(&c, set);
        if (s.set && (best.set == 0 || is_better(&s, &best)))
            best = s;
    }
    const caller of = caller_of(a, p, &c);
    uint32_t chosen = 0;
    for (size_t i = 0; i < c.count; i++)
        chosen |= (uint32_t)of.is_chosen[i] << i;
    printf("%s: 0x%x of %zu candidates, the best of all sets is 0x%x\n", c.name, (unsigned)chosen, c.count,
           (unsigned)best.set);
    const bool ok = chosen == best.set;
    arena_free(a);
    return ok;
}

int main(void)
{
    bool ok = true;
    for (size_t i = 0; i < sizeof items / sizeof items[0]; i++)
        ok = test_calls(i) && ok;
    for (size_t i = 0; i < sizeof small_items / sizeof small_items[0]; i++)
        ok = test_small(small_items[i]) && ok;
    return !ok;
}
