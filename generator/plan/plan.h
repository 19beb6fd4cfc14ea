/* What a configuration asks for: the seam between reading it (config.c, variants.c) and baking it (bundle/). */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "family/family.h"
#include "family/request.h"
#include "shapes.h"
#include "target/devices.h"
#include "tuned.h"

enum { SHARDS_MOST = 99 };

/* The most bytes that the images of a family, or of the whole bundle, may have together. */
typedef struct budget {
    const kiln_family *family; /* null: the bundle */
    uint64_t max_bytes;
    place at;
} budget;

/* A device to choose variants for. */
typedef struct named_device {
    const char *name; /* as the table of devices has it */
    kiln_device device;
} named_device;

/* An item of `kernels` with `shapes`, whose variants are to be chosen. */
typedef struct shaped_item {
    request request; /* of a tuning parameter that the item does not name: all values */
    call_shape *shapes;
    size_t shape_count, shape_capacity;
    named_device *devices;
    size_t device_count;
    bool
        names_devices; /* else those that stand for the targets, as far as the contract has variants for them */
    bool has_workspace; /* calls give one as large as a variant asks for */
    bool only_shapes;   /* calls of other shapes need not be served */
    uint32_t within;    /* thousandths: 1100 is 1.10 */
    bool names_within;  /* else a choice that cannot be within it is the nearest to it */
    uint32_t max_variants;
} shaped_item;

typedef struct plan {
    family_list families;    /* known to this generator */
    const char *bundle;      /* prefix of everything generated */
    const char *config_path; /* "-": a pipe, which has no folder */
    const char *license;     /* SPDX expression for generated files; null: none */
    const char *config;      /* its text */
    size_t config_bytes;
    const char *lock_path; /* of the lock file whose variants the bundle has; null: none */
    const char *lock;      /* its text */
    size_t lock_bytes;
    const char **inputs; /* the files that were read, the configuration first; no pipes */
    size_t input_count, input_capacity;
    const char *target_option; /* what --targets said in place of the configuration; null: nothing */
    const char *image_option;  /* likewise of --images */
    const char **ptx_names;    /* of --ptx, of each item that embeds one */
    size_t ptx_name_count, ptx_name_capacity;
    bool replaces_all; /* also files that kiln did not write */
    uint32_t jobs;     /* threads that bake; 0: one per processor */
    uint32_t shards;   /* files that the kernels are spread over; 0: all are in NAME.c */
    target *targets;   /* ascending, no duplicates */
    size_t target_count;
    variant **variants; /* configuration order; chosen ones last, in the order of families and values */
    size_t variant_count, variant_capacity;
    shaped_item *shaped;
    size_t shaped_count, shaped_capacity;
    budget *budgets;
    size_t budget_count;
    uint32_t max_driver; /* every image must load there: 12020 is CUDA 12.2; 0: any */
    place max_driver_at;
    const tuned_file **tuned;
    size_t tuned_count, tuned_capacity;
    tuned_shape *tuned_shapes; /* of all files, each of a device once */
    size_t tuned_shape_count, tuned_shape_capacity;
    bool has_ptx, has_cubins; /* the formats of images; one at least */
    bool is_timed;            /* ptxas runs over the PTX */
    bool is_exported;         /* the images are wanted as they are, not as C alone */
    place images_at;
    bool is_compressed;
    place compress_at;
} plan;

#endif
