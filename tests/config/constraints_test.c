/* kiln_require names every parameter that its condition depends on, since `combinations: legal` decides a constraint once these
 * have values. Draws combinations from a fixed seed, and changes one parameter at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "family/constraints.h"
#include "family/family.h"
#include "family/shape.h"
#include "support/words.h"
#include <kiln/author/families.h>

enum {
    DRAWS = 20000,
    ROUND = 64 /* three in four values of a range are multiples: few others go together */
};

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % below;
}

static param_value draw_value(arena *a, const kiln_param *p, uint64_t *state)
{
    if (p->type == KILN_PARAM_INT && !p->words) {
        const uint32_t any = p->min + draw(state, (p->max - p->min) / p->step + 1) * p->step,
                       round = any / ROUND * ROUND;
        const bool is_round = round >= p->min && (round - p->min) % p->step == 0 && draw(state, 4) > 0;
        return param_value_of(a, p, arena_format(a, "%u", (unsigned)(is_round ? round : any)));
    }
    const char *const words = param_values_text(a, p), *cursor = words;
    uint32_t count = 0;
    size_t length;
    while (words_next(&cursor, &length))
        count++;
    cursor = words;
    const char *word = NULL;
    for (uint32_t i = draw(state, count) + 1; i > 0; i--)
        word = words_next(&cursor, &length);
    return param_value_of(a, p, arena_string(a, word, length));
}

/* The only constraint that the variant breaks; the number of constraints if it breaks none or several. *broken counts these. */
static size_t only_broken(arena *a, const variant *v, size_t *broken)
{
    constraints asked = {.arena = a};
    shape_ask(v, oldest_target, NULL, &asked);
    size_t only = asked.count;
    *broken = 0;
    for (size_t i = 0; i < asked.count; i++)
        if (!asked.items[i].holds) {
            only = i;
            ++*broken;
        }
    return *broken == 1 ? only : asked.count;
}

static void check_change(arena *a, const constraints *all, const variant *v, size_t param, uint64_t *state)
{
    const kiln_param *changed = &v->family->params[param];
    variant other = *v;
    other.values[param] = draw_value(a, changed, state);
    size_t broken, broken_other;
    const size_t one = only_broken(a, v, &broken), two = only_broken(a, &other, &broken_other);
    if (broken + broken_other != 1) /* both are legal, or another constraint decides too */
        return;
    const constraint *c = &all->items[broken ? one : two];
    if (!words_contain(c->params, changed->name))
        fail_msg("%s: '%s' names '%s', depends on %s", v->family->name, c->text, c->params, changed->name);
}

static void test_named_params(void **unused)
{
    static const kiln_family *const families[] = {KILN_FAMILIES, NULL};
    arena *kept = arena_new(), *a = arena_new();
    uint64_t state = 1;
    (void)unused;
    for (const kiln_family *const *family = families; *family; family++) {
        const constraints all = constraints_of(kept, *family);
        const size_t count = family_param_count(*family);
        for (int i = 0; i < DRAWS && all.count > 0; i++, arena_clear(a)) {
            variant v = {.family = *family};
            for (size_t k = 0; k < count; k++) {
                const kiln_param *p = &(*family)->params[k];
                v.values[k] =
                    draw(&state, 3) > 0 ? draw_value(a, p, &state) : param_value_of(a, p, p->default_value);
            }
            size_t broken;
            only_broken(a, &v, &broken);
            for (size_t k = 0; k < count && broken <= 1; k++)
                check_change(a, &all, &v, k, &state);
        }
    }
    arena_free(kept);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_named_params)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
