/* Reads and writes tuned files. generator/README.md describes the format. */
#include "results.h"

#include <stdio.h>
#include <string.h>

#include "../support/files.h"
#include "../support/json.h"
#include "yaml.h"

uint32_t results_find(const results *r, const char *family, const char *shape, const char *id)
{
    for (size_t i = 0; i < r->count; i++)
        if (strcmp(r->items[i].id, id) == 0 && strcmp(r->items[i].shape, shape) == 0 &&
            strcmp(r->items[i].family, family) == 0)
            return r->items[i].nanoseconds;
    return 0;
}

void results_add(results *r, const char *family, const char *shape, const char *id, uint32_t nanoseconds)
{
    r->items = pool_grow(r->memory, r->items, r->count, sizeof *r->items);
    r->items[r->count++] =
        (tune_time){pool_copy(r->memory, family, strlen(family)), pool_copy(r->memory, shape, strlen(shape)),
                    pool_copy(r->memory, id, strlen(id)), nanoseconds};
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

static const char *capability_text(const results *r, char text[16])
{
    snprintf(text, 16, "%u.%u", (unsigned)r->sm / 10, (unsigned)r->sm % 10);
    return text;
}

static bool is_same_device(const results *r, const yaml_node *root)
{
    char capability[16];
    unsigned long long count = 0;
    const yaml_node *sm = yaml_member(root, "compute_capability"),
                    *multiprocessors = yaml_member(root, "multiprocessors");
    if (!sm || sm->kind != YAML_SCALAR || !multiprocessors || !yaml_number(multiprocessors, &count)) {
        yaml_complain(root, "expected compute_capability and multiprocessors, as in a tuned file");
        return false;
    }
    if (strcmp(sm->text, capability_text(r, capability)) == 0 && count == r->multiprocessors)
        return true;
    yaml_complain(
        sm,
        "it is for another device, %s with %llu multiprocessors, and this is %s with %u: give -o another name",
        sm->text, count, capability, (unsigned)r->multiprocessors);
    return false;
}

static bool read_entry(results *r, const yaml_node *item)
{
    const yaml_node *family = yaml_member(item, "family"), *shape = yaml_member(item, "shape"),
                    *times = yaml_member(item, "nanoseconds");
    char text[2048] = "";
    size_t used = 0;
    if (!family || family->kind != YAML_SCALAR || !shape || shape->kind != YAML_MAP || !times ||
        times->kind != YAML_MAP) {
        yaml_complain(item, "expected a mapping with 'family', 'shape' and 'nanoseconds'");
        return false;
    }
    for (const yaml_node *size = shape->first; size; size = size->next) {
        unsigned long long number;
        if (!yaml_number(size, &number)) {
            yaml_complain(size, "expected a number for '%s'", size->key);
            return false;
        }
        if (used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s: %llu", used ? ", " : "",
                                     size->key, number);
    }
    for (const yaml_node *time = times->first; time; time = time->next) {
        unsigned long long nanoseconds = 0;
        if (!yaml_number(time, &nanoseconds) || nanoseconds == 0 || nanoseconds > UINT32_MAX) {
            yaml_complain(time, "expected nanoseconds, from 1 to 4294967295");
            return false;
        }
        if (!results_find(r, family->text, text, time->key))
            results_add(r, family->text, text, time->key, (uint32_t)nanoseconds);
    }
    return true;
}

bool results_read(results *r, const char *path)
{
    bool is_missing;
    const yaml_node *root = yaml_read(r->memory, path, &is_missing);
    if (!root)
        return is_missing;
    if (root->kind == YAML_SCALAR && !*root->text) /* an empty file */
        return true;
    if (!is_same_device(r, root))
        return false;
    const yaml_node *list = yaml_member(root, "times");
    for (const yaml_node *item = list && list->kind == YAML_LIST ? list->first : NULL; item;
         item = item->next)
        if (!read_entry(r, item))
            return false;
    return true;
}

/* ---- writing ------------------------------------------------------------------------------------------------------- */

static bool is_of(const tune_time *x, const tune_time *y)
{
    return strcmp(x->family, y->family) == 0 && strcmp(x->shape, y->shape) == 0;
}

static void print_results(FILE *out, const results *r, bool *is_written)
{
    char capability[16];
    fprintf(out, "# Times of kernels on one device. A configuration takes them: tuned: [this file]\n");
    if (r->is_emulated)
        fprintf(out, "# The device was the emulated one: its times do not predict a GPU.\n");
    fprintf(out, "device: ");
    json_string(out, r->device);
    fprintf(out, "\ncompute_capability: %s\nmultiprocessors: %u\ntimes:\n", capability_text(r, capability),
            (unsigned)r->multiprocessors);
    for (size_t i = 0; i < r->count; i++) {
        if (is_written[i])
            continue;
        fprintf(out, "  - family: %s\n    shape: {%s}\n    nanoseconds:\n", r->items[i].family,
                r->items[i].shape);
        for (size_t k = i; k < r->count; k++) {
            if (is_written[k] || !is_of(&r->items[i], &r->items[k]))
                continue;
            fprintf(out, "      %s: %u\n", r->items[k].id, (unsigned)r->items[k].nanoseconds);
            is_written[k] = true;
        }
    }
}

bool results_may_write(const char *path)
{
    if (is_plain_file(path))
        return out_may_open(path,
                            NULL); /* existing tuned files have been read, so any form may be overwritten */
    fprintf(stderr,
            "%s: error: expected a regular file, or a new one, found a folder, pipe, device or broken link\n",
            path);
    return false;
}

bool results_write(const results *r, const char *path)
{
    out_file f;
    if (!out_open(&f, path))
        return false;
    print_results(f.out, r, pool_allocate(r->memory, r->count + 1));
    return out_close(&f);
}
