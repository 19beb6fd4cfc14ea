/* From variants to images: build, check, fold, hash. */
#ifndef BUNDLE_IMAGES_H
#define BUNDLE_IMAGES_H

#include <kiln/estimate.h>

#include "external/external.h"
#include "plan/plan.h"
#include "ptx/builder.h"

/* One PTX text or cubin, and what selection has to know about it. */
typedef struct image {
    target made_for; /* the lowest listed target with this text; of a cubin and of external PTX its own */
    ptx_requirement
        needs; /* what .target and .version say: the lowest that the operations take; not of a cubin */
    uint32_t min_driver;
    uint32_t static_shared_bytes; /* not of external PTX */
    ptx_costs costs;              /* likewise */
    const char *ptx;              /* null for a cubin, and where nothing but C comes of it */
    text literal;                 /* of PTX, as C has it */
    const unsigned char *cubin;   /* null for PTX */
    size_t bytes;
    uint64_t hash_high, hash_low; /* XXH3, 128 bit, of either */
} image;

/* Whether the variant's kernel takes this argument, and the argument's type with "$name" put in. */
bool variant_has_arg(arena *a, const variant *v, const kiln_arg *arg);
const char *variant_arg_type(const variant *v, const kiln_arg *arg);

/* Of a pointer: what an element takes. */
uint32_t variant_element_bytes(arena *a, const variant *v, const kiln_arg *arg);

/* Of a pointer: what the family asks for, or an element's size when that is more. */
uint32_t variant_arg_alignment(arena *a, const variant *v, const kiln_arg *arg);

/* The variant's kernel for one target, checked; a kernel that fails is an error of its family. */
ptx_fn *build_kernel(arena *a, const variant *v, target t);

/* The kernel as one text, header first. */
image print_kernel(arena *a, const ptx_fn *kernel, target t);

/* What estimates read of a kernel: what was counted in it, and its shape. */
kiln_code code_of(ptx_costs costs, const kiln_shape *shape);

/* Fills in the hash of what the image has. */
void image_hash(image *i);

/* The variant's PTX images, for every target of the plan that it runs on, in ascending order. A text that the next lower
 * base target already has is folded into that one. Returns how many; *images has room for as many cubins more as there are
 * targets. */
size_t bake_images(arena *a, const plan *p, const variant *v, image **images);

/* The files of a module of external PTX, likewise. */
size_t external_images(arena *a, const plan *p, const external_module *m, image **images);

#endif
