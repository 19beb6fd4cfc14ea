/* The rest of the generator's interface to a kernel under construction: make, check, query, print. Authors use
 * kiln/author/ptx.h. Knows no configuration, no family, no writer. */
#ifndef PTX_BUILDER_H
#define PTX_BUILDER_H

#include <stdio.h>

#include <kiln/author/ptx.h>

#include "support/arena.h"
#include "target/target.h"

/* The minimum that an operation, or a body, needs. */
typedef struct ptx_requirement {
    uint16_t version; /* 78 is .version 7.8 */
    target target;
} ptx_requirement;

/* A kernel for one target. block is the thread block's size, printed as .maxntid. */
ptx_fn *ptx_new(arena *a, const char *entry, target t, const uint32_t block[3]);

/* .minnctapersm: at least this many thread blocks on a multiprocessor, at the cost of registers. */
void ptx_min_blocks(ptx_fn *f, uint32_t blocks);

/* The range, which the caller keeps, is narrowed by each ptx_has_sm of the body. */
void ptx_find_alike(ptx_fn *f, target_range *alike);

/* Declares the array of this parameter or tensor map constant: it may be read before ptx_grid_wait. Call it after the
 * kernel's body, before ptx_check. */
void ptx_set_constant(ptx_fn *f, const char *name);

/* Checks the finished body: types, definition before use on every path, scopes closed, no barrier in code that diverges
 * within a block and no warp operation in code that diverges within a warp, unless declared uniform, nothing above the
 * target, before ptx_grid_wait only reads of constant arrays. Prints "kernel-source-file:line: error: ..." lines to
 * `out`, unless it is null. */
bool ptx_check(ptx_fn *f, FILE *out);

/* The kernel's parameters in order: their count; the name and type of one. *element is the element type of a PTX_PTR, and
 * PTX_NONE for a tensor map. */
size_t ptx_param_count(const ptx_fn *f);
const char *ptx_param_at(const ptx_fn *f, size_t i, ptx_type *type, ptx_type *element);

/* Whether the kernel may begin before the preceding launch has ended: it has a ptx_grid_wait. */
bool ptx_is_dependent(const ptx_fn *f);

/* Alignment of dynamic shared memory, also after static arrays. A cp.async of 16 bytes is a separate L2
 * request unless the other half of its sector goes to the same aligned 32 bytes (measured on an H100). */
enum { SHARED_ALIGN = 32 };

/* The least dynamic shared memory that the kernel uses, in bytes; 0: it uses none. */
uint32_t ptx_dynamic_bytes(const ptx_fn *f);
/* Bytes of the kernel's static shared arrays, up to the start of dynamic shared memory if there is any. */
uint32_t ptx_shared_bytes(const ptx_fn *f);

/* The uses of ptx_raw in the order of the kernel: their number, and the text of one as written, which lives as long as
 * the kernel. */
size_t ptx_raw_count(const ptx_fn *f);
const char *ptx_raw_text(const ptx_fn *f, size_t i);

/* What one warp executes: issue slots; those of integer instructions, conversions and moves; wavefronts of 128 bytes through
 * shared memory and the L1 cache; products on tensor cores, in the units of kiln_warp_code (kiln/estimate.h). */
typedef struct ptx_cost {
    uint32_t issues, integers, wavefronts, products, s8_products, fp4_products;
} ptx_cost;

/* A trip of the main loop, a trip of each side loop, and the rest. */
typedef struct ptx_costs {
    ptx_cost loop, side, rest;
} ptx_costs;
ptx_costs ptx_count(const ptx_fn *f);

/* Whether a target meets a body's needs. */
bool ptx_fits(target needs, target t);

/* The lowest .version and .target for the body's operations (never below the builder's lowest, sm_75). */
ptx_requirement ptx_needs(const ptx_fn *f);

/* The header (".version .target .address_size") and everything after it. Bodies of equal bytes are the same kernel. With places,
 * each instruction is followed by a comment with the line of the kernel's source that emitted it. */
void ptx_print_header(text *out, ptx_requirement needs);
void ptx_print_body(text *out, const ptx_fn *f, bool has_places);

/* The IR, for people: `kiln show --ir`. */
void ptx_dump(const ptx_fn *f, FILE *out);

/* The first driver version that supports a .version: 78 gives 11080. 0 for an unknown version. */
uint32_t ptx_min_driver(uint16_t version);

/* "f16" -> PTX_F16; PTX_NONE for other words. And back. */
ptx_type ptx_type_named(const char *word);
const char *ptx_type_name(ptx_type type);
uint32_t ptx_type_bytes(ptx_type type);

#endif
