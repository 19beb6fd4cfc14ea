/* Reads items of `kernels` with `shapes`: the calls and devices to choose variants for, and the limits. */
#include <stdlib.h>
#include <string.h>

#include "config_reader.h"
#include "support/messages.h"
#include "support/quote.h"
#include "support/words.h"
#include "target/devices.h"
#include "target/target.h"
#include "variants.h"

enum { ONE = 1000, USUAL_WITHIN = 1100, USUAL_MOST = 8 };

const char shaped_keys[] = "shapes devices workspace within max_variants only_these_shapes";

/* ---- devices ------------------------------------------------------------------------------------------------------ */

static bool is_served(const plan *p, uint32_t sm)
{
    for (size_t i = 0; i < p->target_count; i++)
        if (target_serves(p->targets[i], (target){(uint16_t)sm, TARGET_FAMILY}))
            return true;
    return false;
}

static void add_device(const reader *r, shaped_item *item, const char *name, kiln_device device)
{
    size_t capacity = item->device_count;
    named_device *added =
        arena_push(r->arena, (void **)&item->devices, &item->device_count, &capacity, sizeof *added);
    *added = (named_device){name, device};
}

/* Reads words that name a device in the table. */
static void read_device(const reader *r, shaped_item *item, const yaml_node *list, const yaml_node *node)
{
    kiln_device device;
    if (!reader_is_kind(r, node, YAML_SCALAR, "devices", "a device"))
        return;
    const yaml_node *first = reader_earlier(list, node);
    const char *name = device_find(0, node->text, &device);
    const char *called = name ? "" : device_names(r->arena, node->text),
               *quoted = quote_text(r->arena, node->text);
    if (first)
        diagnose(r->d, node->at, message_device_twice, quoted, first->at.line);
    else if (!name && *called)
        diagnose(r->d, node->at, message_device_ambiguous, quoted, called);
    else if (!name)
        diagnose(r->d, node->at, message_device_unknown, quoted, device_names(r->arena, NULL));
    else if (!is_served(r->plan, device.sm) && !r->has_wrong_target)
        diagnose(r->d, node->at, message_device_unserved, name, (unsigned)device.sm);
    else
        add_device(r, item, name, device);
}

static void read_devices(const reader *r, shaped_item *item, const yaml_node *list)
{
    item->names_devices = true;
    if (reader_is_kind(r, list, YAML_LIST, "devices", "a list of devices"))
        for (const yaml_node *node = list->first; node; node = node->next)
            read_device(r, item, list, node);
}

/* Takes each listed target's representative device; a target without one has no estimates. */
static void take_usual_devices(const reader *r, shaped_item *item)
{
    for (size_t i = 0; i < r->plan->target_count; i++) {
        kiln_device device;
        const char *name = device_find(r->plan->targets[i].sm, NULL, &device);
        bool is_new = name != NULL;
        for (size_t k = 0; k < item->device_count && is_new; k++)
            is_new = strcmp(item->devices[k].name, name) != 0;
        if (is_new)
            add_device(r, item, name, device);
    }
}

/* ---- limits ------------------------------------------------------------------------------------------------------- */

static void read_workspace(const reader *r, shaped_item *item, const yaml_node *node)
{
    if (!reader_is_kind(r, node, YAML_SCALAR, "workspace", "allowed or none"))
        return;
    item->has_workspace = strcmp(node->text, "allowed") == 0;
    if (!words_contain("allowed none", node->text))
        diagnose(r->d, node->at, message_workspace_unknown, reader_quote(r, node),
                 suggest_text(r->arena, node->text, "allowed none"));
}

/* Reads "1.10": one or two digits, and up to three after the point. */
static void read_within(const reader *r, shaped_item *item, const yaml_node *node)
{
    enum { MOST = 99990 };
    item->names_within = true;
    if (!reader_is_kind(r, node, YAML_SCALAR, "within", "a ratio"))
        return;
    const char *word = node->text, *point = word + strspn(word, "0123456789");
    const size_t whole = (size_t)(point - word), digits = *point == '.' ? strspn(point + 1, "0123456789") : 0;
    uint32_t ratio = (uint32_t)strtoul(word, NULL, 10) * ONE, unit = ONE;
    for (size_t i = 0; i < digits && i < 3; i++)
        ratio += (uint32_t)(point[1 + i] - '0') * (unit /= 10);
    const bool is_ratio = !node->quoted && whole >= 1 && whole <= 2 && digits <= 3 &&
                          (*point == '\0' || digits > 0) && (*point ? point[1 + digits] == '\0' : true) &&
                          ratio >= ONE && ratio <= MOST;
    if (is_ratio)
        item->within = ratio;
    else
        diagnose(r->d, node->at, message_within_not_ratio, reader_quote(r, node));
}

static void read_most(const reader *r, shaped_item *item, const yaml_node *node)
{
    if (!reader_is_kind(r, node, YAML_SCALAR, "max_variants", "a number"))
        return;
    const size_t digits = strspn(node->text, "0123456789");
    const unsigned long count =
        digits > 0 && digits <= 2 && !node->text[digits] && !node->quoted ? strtoul(node->text, NULL, 10) : 0;
    if (count >= 1 && count <= MOST_CHOSEN)
        item->max_variants = (uint32_t)count;
    else
        diagnose(r->d, node->at, message_count_not_number, MOST_CHOSEN, reader_quote(r, node));
}

static void read_only(const reader *r, shaped_item *item, const yaml_node *node)
{
    if (!reader_is_kind(r, node, YAML_SCALAR, "only_these_shapes", "true or false"))
        return;
    item->only_shapes = strcmp(node->text, "true") == 0;
    if (node->quoted || !words_contain("true false", node->text))
        diagnose(r->d, node->at, message_only_not_boolean, reader_quote(r, node));
}

/* ---- the item ----------------------------------------------------------------------------------------------------- */

static bool has_tuning(const kiln_family *family)
{
    for (size_t i = 0; i < family_param_count(family); i++)
        if (family->params[i].role == KILN_ROLE_TUNING)
            return true;
    return false;
}

/* Takes every value of a tuning parameter that the item omits. */
static void take_all_values(arena *a, request *q, size_t index)
{
    const kiln_param *param = &q->family->params[index];
    const bool is_range = param->type == KILN_PARAM_INT && !param->words;
    const char *words = is_range ? "" : param_values_text(a, param);
    size_t length;
    for (const char *w; (w = words_next(&words, &length));)
        *(param_value *)arena_push(a, (void **)&q->values[index].items, &q->values[index].count,
                                   &q->values[index].capacity, sizeof(param_value)) =
            param_value_of(a, param, arena_string(a, w, length));
    for (uint64_t n = param->min; is_range && n <= param->max; n += param->step ? param->step : 1) {
        const char *word = arena_format(a, "%u", (unsigned)n);
        *(param_value *)arena_push(a, (void **)&q->values[index].items, &q->values[index].count,
                                   &q->values[index].capacity, sizeof(param_value)) =
            param_value_of(a, param, word);
    }
}

/* Sorts values into the family's order, so that the item's order changes nothing. */
static void sort_values(request *q, size_t index)
{
    const kiln_param *param = &q->family->params[index];
    param_value *items = q->values[index].items;
    for (size_t i = 1; i < q->values[index].count; i++)
        for (size_t k = i;
             k > 0 && param_value_place(param, &items[k]) < param_value_place(param, &items[k - 1]); k--) {
            const param_value value = items[k];
            items[k] = items[k - 1];
            items[k - 1] = value;
        }
}

static void read_shapes(const reader *r, shaped_item *item, const yaml_node *list)
{
    shape_list shapes = {0};
    if (!reader_is_kind(r, list, YAML_LIST, "shapes", "a list of shapes"))
        return;
    variant like = {.family = item->request.family};
    request_values(&item->request, 0, &like);
    for (const yaml_node *node = list->first; node; node = node->next)
        reader_read_shape(r, item->request.family, &like, node, &shapes);
    item->shapes = shapes.items;
    item->shape_count = shapes.count;
}

void reader_read_shaped(reader *r, const yaml_node *node, const request *asked)
{
    static const struct {
        const char *key;
        void (*read)(const reader *, shaped_item *, const yaml_node *);
    } readers[] = {{"devices", read_devices},   {"workspace", read_workspace},    {"within", read_within},
                   {"max_variants", read_most}, {"only_these_shapes", read_only}, {"shapes", read_shapes}};
    shaped_item item = {
        .request = *asked, .has_workspace = true, .within = USUAL_WITHIN, .max_variants = USUAL_MOST};
    request *q = &item.request;
    const int before = r->d->count;
    if (!q->family->time.length && has_tuning(q->family)) {
        diagnose(r->d, yaml_member(node, "shapes")->at, message_shapes_external, q->family->name);
        return;
    }
    for (size_t i = 0; i < family_param_count(q->family); i++)
        if (q->values[i].count == 0 && q->family->params[i].role == KILN_ROLE_TUNING)
            take_all_values(r->arena, q, i);
    request_fill_defaults(r->arena, q);
    for (size_t i = 0; i < family_param_count(q->family); i++)
        sort_values(q, i);
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
        if (yaml_member(node, readers[i].key))
            readers[i].read(r, &item, yaml_member(node, readers[i].key));
    if (!item.names_devices)
        take_usual_devices(r, &item);
    if (r->d->count == before)
        *(shaped_item *)arena_push(r->arena, (void **)&r->plan->shaped, &r->plan->shaped_count,
                                   &r->plan->shaped_capacity, sizeof item) = item;
}
