/* The emulated driver's report as a struct. */
#include "profile.h"

#include <libfyaml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const access_kind_names[ACCESS_KINDS] = {"read", "write", "atomic"};

static struct fy_node *find(struct fy_node *n, const char *path)
{
    return n ? fy_node_by_path(n, path, FY_NT, FYNWF_DONT_FOLLOW) : NULL;
}

static uint64_t get(struct fy_node *n, const char *path)
{
    struct fy_node *found = find(n, path);
    const char *text = found ? fy_node_get_scalar0(found) : NULL;
    return text ? strtoull(text, NULL, 10) : 0;
}

static const char *keep(profile *p, const char *text)
{
    return pool_copy(&p->memory, text, strlen(text));
}

static void read_accesses(struct fy_node *n, access_counts by[ACCESS_KINDS])
{
    for (int k = 0; k < ACCESS_KINDS; k++) {
        struct fy_node *kind = find(n, access_kind_names[k]);
        by[k] = (access_counts){.requests = get(kind, "requests"),
                                .sectors = get(kind, "sectors"),
                                .distinct_sectors = get(kind, "distinct_sectors"),
                                .bytes = get(kind, "bytes"),
                                .bytes_used = get(kind, "bytes_used"),
                                .wavefronts = get(kind, "wavefronts"),
                                .ideal_wavefronts = get(kind, "ideal_wavefronts")};
    }
}

static void read_classes(profile *p, struct fy_node *classes)
{
    counters *c = &p->counters;
    struct fy_node_pair *pair;
    void *at = NULL;
    while ((pair = fy_node_mapping_iterate(classes, &at)) && c->class_count < MAX_CLASSES) {
        struct fy_node *value = fy_node_pair_value(pair);
        c->classes[c->class_count++] = (class_count){keep(p, fy_node_get_scalar0(fy_node_pair_key(pair))),
                                                     get(value, "thread"), get(value, "warp")};
    }
}

static void read_allocations(profile *p, struct fy_node *rows)
{
    counters *c = &p->counters;
    struct fy_node *row;
    void *at = NULL;
    while ((row = fy_node_sequence_iterate(rows, &at)) && c->allocation_count < MAX_ALLOCATIONS) {
        allocation_counts *a = &c->allocations[c->allocation_count++];
        struct fy_node *parameter = fy_node_sequence_get_by_index(find(row, "parameters"), 0);
        struct fy_node *name = find(row, "name");
        size_t index = parameter ? strtoull(fy_node_get_scalar0(parameter), NULL, 10) : SIZE_MAX;
        a->is_argument = index < p->problem.arg_count;
        a->name = a->is_argument ? p->problem.args[index].about->name
                  : name         ? keep(p, fy_node_get_scalar0(name))
                                 : "(unnamed)";
        a->bytes = a->is_argument ? p->problem.args[index].bytes : get(row, "bytes");
        read_accesses(row, a->by);
    }
}

void read_counters(profile *p)
{
    counters *c = &p->counters;
    struct fy_document *document = fy_document_build_from_string(NULL, p->report, strlen(p->report));
    struct fy_node *root = document ? fy_document_root(document) : NULL;
    if (!root)
        die(3, "the driver's report is no JSON");
    c->thread_instructions = get(root, "thread_instructions");
    c->warp_instructions = get(root, "warp_instructions");
    c->lane_slots = get(root, "lane_slots");
    c->branches = get(root, "branches/warp");
    c->divergent_branches = get(root, "branches/divergent");
    c->barriers = get(root, "barriers/warp");
    c->products = get(root, "tensor/products");
    c->multiply_adds = get(root, "tensor/multiply_adds");
    read_classes(p, find(root, "classes"));
    read_accesses(find(root, "shared"), c->shared);
    read_accesses(find(root, "local"), c->local);
    read_allocations(p, find(root, "allocations"));
    fy_document_destroy(document);
}

const class_count *find_class(const counters *c, const char *name)
{
    static const class_count none;
    for (size_t i = 0; i < c->class_count; i++)
        if (strcmp(c->classes[i].name, name) == 0)
            return &c->classes[i];
    return &none;
}

access_counts sum_accesses(const access_counts by[ACCESS_KINDS])
{
    access_counts s = {0};
    for (int k = 0; k < ACCESS_KINDS; k++) {
        s.requests += by[k].requests;
        s.sectors += by[k].sectors;
        s.distinct_sectors += by[k].distinct_sectors;
        s.bytes += by[k].bytes;
        s.bytes_used += by[k].bytes_used;
        s.wavefronts += by[k].wavefronts;
        s.ideal_wavefronts += by[k].ideal_wavefronts;
    }
    return s;
}
