/* Prints the cost of a choice as a Markdown table: for each item with shapes, the time of the chosen variants over the best legal
 * variant at each shape and device, and the same for another configuration's variants of that contract.
 *
 * usage: choose_costs CONFIG OTHER */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <kiln/author/families.h>

#include "choose/candidates.h"
#include "choose/choose.h"
#include "family/family.h"
#include "plan/config.h"

static const kiln_family *const families[] = {KILN_FAMILIES, NULL};

typedef struct cost {
    size_t variants, unserved; /* points at which no variant can be launched */
    uint64_t bytes;
    double worst, mean; /* time over the best, at the points that are served */
} cost;

static bool has_values(const plan *p, const variant *v)
{
    for (size_t i = 0; i < p->variant_count; i++) {
        bool is_same = p->variants[i]->family == v->family;
        for (size_t k = 0; is_same && k < family_param_count(v->family); k++)
            is_same = strcmp(p->variants[i]->values[k].text, v->values[k].text) == 0;
        if (is_same)
            return true;
    }
    return false;
}

static cost cost_of(candidates *c, const plan *p)
{
    cost of = {.worst = 1};
    double sum = 0;
    bool *is_there = arena_alloc(c->arena, c->count + 1);
    for (size_t i = 0; i < c->count; i++) {
        is_there[i] = has_values(p, c->items[i].variant);
        of.variants += is_there[i];
        of.bytes += is_there[i] ? candidate_bytes(c, i) : 0;
    }
    for (size_t point = 0; point < c->point_count; point++) {
        uint64_t best = PICK_NEVER, least = PICK_NEVER;
        for (size_t i = 0; i < c->count; i++) {
            const uint64_t time = c->times[i * c->point_count + point];
            best = time < best ? time : best;
            least = is_there[i] && time < least ? time : least;
        }
        if (least == PICK_NEVER) {
            of.unserved++;
            continue;
        }
        const double ratio = (double)least / (double)best;
        of.worst = ratio > of.worst ? ratio : of.worst;
        sum += log(ratio);
    }
    of.mean = of.unserved < c->point_count ? exp(sum / (double)(c->point_count - of.unserved)) : 0;
    return of;
}

static void print_cost(const candidates *c, const cost *of)
{
    if (of->variants == 0)
        printf(" none | | | |");
    else if (of->unserved == c->point_count)
        printf(" %zu | %.0f | serve no shape | |", of->variants, (double)of->bytes / 1000);
    else if (of->unserved > 0)
        printf(" %zu | %.0f | %.2f, %zu unserved | %.3f |", of->variants, (double)of->bytes / 1000, of->worst,
               of->unserved, of->mean);
    else
        printf(" %zu | %.0f | %.2f | %.3f |", of->variants, (double)of->bytes / 1000, of->worst, of->mean);
}

int main(int argc, char **argv)
{
    arena *a = arena_new();
    diagnostics d = {.out = stderr};
    static const choose_options anew = {.ignores_lock = true};
    const config_options options = {.choose = choose_variants, .choose_context = &anew};
    if (argc != 3)
        return 2;
    static const choose_options locked = {0};
    const config_options other_options = {.choose = choose_variants, .choose_context = &locked};
    const plan *p = config_read(a, families, argv[1], &options, &d),
               *other = config_read(a, families, argv[2], &other_options, &d);
    if (!p || !other)
        return 1;
    printf("| contract | legal | chosen | KB | worst | mean | %s: variants | KB | worst | mean |\n",
           other->bundle);
    printf("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (size_t i = 0; i < p->shaped_count; i++) {
        candidates c = candidates_of(a, p, &p->shaped[i], &p->shaped[i].request);
        if (!candidates_judge(&c, &d))
            return 1;
        const cost chosen = cost_of(&c, p), others = cost_of(&c, other);
        printf("| %s | %zu |", c.name, c.count);
        print_cost(&c, &chosen);
        print_cost(&c, &others);
        putchar('\n');
    }
    arena_free(a);
    return 0;
}
