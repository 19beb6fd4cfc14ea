/* From variants to images: builds, checks, folds, hashes; and prints C into the spool. */
#ifndef BUNDLE_IMAGES_H
#define BUNDLE_IMAGES_H

#include <kiln/estimate.h>

#include "external/external.h"
#include "plan/plan.h"
#include "ptx/builder.h"
#include "support/spool.h"

/* XXH3, 128 bit. */
typedef struct image_hash {
    uint64_t high, low;
} image_hash;

/* One PTX text or cubin, with the facts that selection needs. */
typedef struct image {
    target made_for;       /* the lowest listed target with this text; for a cubin and external PTX its own */
    ptx_requirement needs; /* .target and .version: the lowest that the operations need; not for a cubin */
    uint32_t min_driver;
    uint32_t static_shared_bytes; /* not for external PTX */
    ptx_costs costs;              /* not for external PTX */
    bool is_dependent;            /* it waits for the preceding launch: ptx_grid_wait */
    bool is_cubin;
    const char *data; /* the PTX or the cubin; null once it is in the spool */
    size_t bytes;
    image_hash hash;
    image_hash ptx_hash; /* for a cubin: hash of its PTX */
    size_t stored_bytes; /* bytes in the bundle: the data, or its frame if the plan is compressed */
    image_hash stored_hash;
    spool_range array; /* the bundle's bytes as a C array, in the spool */
    spool_range plain; /* the unpacked data, for ptxas or an export */
} image;

/* Whether the variant's kernel takes this argument, or this tensor map. */
bool variant_has_arg(const variant *v, const kiln_arg *arg);
bool variant_has_map(const variant *v, const kiln_map *map);

/* Whether any of one family's variants, null-terminated, has it. */
bool variants_have_arg(const variant *const *variants, const kiln_arg *arg);

/* A bundle's use of an argument that a call sets. */
typedef enum arg_use {
    ARG_READ,    /* by some variant */
    ARG_IGNORED, /* part of a workspace that no variant takes */
    ARG_REFUSED
} arg_use;

/* The use by the variants of one family, null-terminated. */
arg_use arg_use_of(const variant *const *variants, const kiln_arg *arg);

/* The argument's type with "$name" substituted. */
const char *variant_arg_type(const variant *v, const kiln_arg *arg);

/* How many of the family's arguments are not launch geometry. */
size_t variant_param_count(const variant *v);

/* Bytes of an element that a pointer points to. */
uint32_t variant_element_bytes(arena *a, const variant *v, const kiln_arg *arg);

/* Alignment of a pointer: the family's, or an element's size if that is larger. */
uint32_t variant_arg_alignment(arena *a, const variant *v, const kiln_arg *arg);

/* The variant's kernel for one target, checked; a kernel that fails is an error of its family. */
ptx_fn *build_kernel(arena *a, const variant *v, target t);

/* The kernel as one text, header first. */
image print_kernel(arena *a, const ptx_fn *kernel, target t, bool has_places);

/* The estimate's inputs from a kernel: its counts, and its shape. */
kiln_code code_of(ptx_costs costs, const kiln_shape *shape);

/* A driver's version: 11080 -> "11.8". */
const char *cuda_version_text(arena *a, uint32_t driver);

image_hash image_hash_of(const char *data, size_t bytes);

/* The variant's PTX images, in ascending order: the files of its module, or one for every target of the plan that it runs
 * on. A text that the next lower base target already has is folded into that one. Returns how many. Their data goes into the spool,
 * unless s is null. Clears the scratch: a kernel takes hundreds of times its text. */
size_t variant_images(arena *a, arena *scratch, spool *s, const plan *p, const variant *v, image **images);

/* Bytes of the variant's PTX images in a bundle. */
uint64_t variant_bytes(const plan *p, const variant *v);

/* Puts the image's data into the spool as the C array of this name: such arrays are ten times the rest of a bundle. */
const char *image_array(arena *a, const variant *v, const image *i);
void image_spool(arena *scratch, spool *s, const plan *p, const variant *v, image *i);

#endif
