/* From variants to images: build, check, fold, hash; and as C, in the spool. */
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

/* One PTX text or cubin, and what selection has to know about it. */
typedef struct image {
    target made_for; /* the lowest listed target with this text; of a cubin and of external PTX its own */
    ptx_requirement
        needs; /* what .target and .version say: the lowest that the operations take; not of a cubin */
    uint32_t min_driver;
    uint32_t static_shared_bytes; /* not of external PTX */
    ptx_costs costs;              /* likewise */
    bool is_dependent;            /* it waits for the launch in front of it: ptx_grid_wait */
    bool is_cubin;
    const char *data; /* the PTX or the cubin; null once it is in the spool */
    size_t bytes;
    image_hash hash;
    image_hash ptx_hash; /* of a cubin: of the PTX that it was made of */
    size_t stored_bytes; /* what the bundle holds: the data, or its frame where the plan is compressed */
    image_hash stored_hash;
    spool_range array; /* what the bundle holds as C, in the spool */
    spool_range plain; /* the data as it is, where ptxas or an export wants it */
} image;

/* Whether the variant's kernel takes this argument, and the argument's type with "$name" put in. */
bool variant_has_arg(const variant *v, const kiln_arg *arg);

/* Whether some of one family's variants, up to a null, has it. */
bool variants_have_arg(const variant *const *variants, const kiln_arg *arg);

/* What a bundle does with an argument that a call sets. Those of a workspace go with the workspace. */
typedef enum arg_use {
    ARG_READ,    /* by some variant */
    ARG_IGNORED, /* of a workspace that no variant takes */
    ARG_REFUSED
} arg_use;

/* By the variants of one family, up to a null. */
arg_use arg_use_of(const variant *const *variants, const kiln_arg *arg);
const char *variant_arg_type(const variant *v, const kiln_arg *arg);

/* How many of the family's arguments are not launch geometry. */
size_t variant_param_count(const variant *v);

/* Of a pointer: what an element takes. */
uint32_t variant_element_bytes(arena *a, const variant *v, const kiln_arg *arg);

/* Of a pointer: what the family asks for, or an element's size when that is more. */
uint32_t variant_arg_alignment(arena *a, const variant *v, const kiln_arg *arg);

/* The variant's kernel for one target, checked; a kernel that fails is an error of its family. */
ptx_fn *build_kernel(arena *a, const variant *v, target t);

/* The kernel as one text, header first. */
image print_kernel(arena *a, const ptx_fn *kernel, target t, bool has_places);

/* What estimates read of a kernel: what was counted in it, and its shape. */
kiln_code code_of(ptx_costs costs, const kiln_shape *shape);

/* Of a driver: 11080 -> "11.8". */
const char *cuda_version_text(arena *a, uint32_t driver);

/* Of an image, or of any bytes. */
image_hash image_hash_of(const char *data, size_t bytes);

/* The variant's PTX images, in ascending order: the files of its module, or one for every target of the plan that it runs
 * on. A text that the next lower base target already has is folded into that one. Returns how many. Their data is in the spool then; s null: nowhere. The
 * scratch is cleared: a kernel takes hundreds of times its text. */
size_t variant_images(arena *a, arena *scratch, spool *s, const plan *p, const variant *v, image **images);

/* Bytes that the variant's PTX images have in a bundle. */
uint64_t variant_bytes(const plan *p, const variant *v);

/* Puts the image's data into the spool as the C array of this name: it is ten times as much as all else of a bundle. */
const char *image_array(arena *a, const variant *v, const image *i);
void image_spool(arena *scratch, spool *s, const plan *p, const variant *v, image *i);

#endif
