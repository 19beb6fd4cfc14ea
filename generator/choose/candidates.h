/* The variants that compete for one contract of an item with shapes, and the time of each at each point: a shape on a
 * device. */
#ifndef CHOOSE_CANDIDATES_H
#define CHOOSE_CANDIDATES_H

#include "bundle/call.h"
#include "pick.h"

typedef struct candidate {
    const variant *variant;
    terms terms;
    kernel_code code;
    const expression **demands; /* its conditions on a call, beyond those that every variant has */
    size_t demand_count;
    uint64_t bytes; /* of its images; PICK_NEVER: not counted yet */
} candidate;

typedef struct candidates {
    const plan *plan;
    const shaped_item *item;
    const char *name; /* of the contract */
    candidate *items; /* in the order of their values */
    size_t count, capacity;
    named_device *devices; /* of the item, those that some candidate runs on */
    size_t device_count;
    const call_shape **shapes; /* of the item, except inner sizes of ranges that a rule forbids */
    size_t shape_count;
    uint64_t *times; /* [candidate][point]; PICK_NEVER: it cannot be launched there */
    size_t point_count;
    bool *meets; /* [candidate][need] */
    size_t need_count;
    arena *arena;
} candidates;

/* Every legal variant of the item with the contract's values; its other parameters take the item's values. */
candidates candidates_of(arena *a, const plan *p, const shaped_item *item, const request *contract);

/* Fills in times and needs. False after diagnostics: a shape omits a size, or no variant serves it. */
bool candidates_judge(candidates *c, diagnostics *d);

/* The variants of the contract among earlier choices. Only their rules are known. */
candidates candidates_among(arena *a, const plan *p, const shaped_item *item, const request *contract,
                            variant *const *variants, size_t count);

/* Checks for each shape that the item names that some candidate meets the rules; skips sizes inside of ranges. False after
 * diagnostics. */
bool candidates_keep_rules(candidates *c, diagnostics *d);

bool contract_has(const request *contract, const variant *v);

/* "m=64 n=4096 k=4096 on H100" */
const char *candidates_point_text(const candidates *c, size_t point);

/* "linear format=q4_k x=bf16": a contract, without the parameters at their defaults. */
const char *contract_name(arena *a, const request *contract);

/* Whether the variant needs a workspace; the largest one, in bytes, over the points where the variant can be launched. */
bool candidate_needs_workspace(const candidates *c, size_t index);
uint64_t candidate_workspace_bytes(candidates *c, size_t index);

/* Bytes of its images in a bundle. */
uint64_t candidate_bytes(void *candidates, size_t candidate);

#endif
