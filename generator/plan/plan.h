/* A configuration's requests: the interface between reading (config.c, variants.c) and generating (bundle/). */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "family/family.h"
#include "family/request.h"
#include "shapes.h"
#include "target/devices.h"
#include "tuned.h"

enum { SHARDS_MOST = 99 };

/* The most bytes of a family's, or the whole bundle's, images. */
typedef struct budget {
    const kiln_family *family; /* null: the bundle */
    uint64_t max_bytes;
    place at;
} budget;

/* A device to choose variants for. */
typedef struct named_device {
    const char *name; /* as in the table of devices */
    kiln_device device;
} named_device;

/* An item of `kernels` with `shapes`, whose variants are to be chosen. */
typedef struct shaped_item {
    request request; /* all values of each tuning parameter that the item omits */
    call_shape *shapes;
    size_t shape_count, shape_capacity;
    named_device *devices;
    size_t device_count;
    bool names_devices; /* otherwise: the targets' representatives that the contract has variants for */
    bool has_workspace; /* calls may pass a workspace as large as a variant needs */
    bool only_shapes;   /* calls of other shapes need not be served */
    uint32_t within;    /* thousandths: 1100 is 1.10 */
    bool names_within; /* the item gives `within`; if not, and no choice meets it, the nearest one is taken */
    uint32_t max_variants;
} shaped_item;

typedef struct plan {
    family_list families;    /* this generator's families */
    const char *bundle;      /* prefix of all generated names */
    const char *config_path; /* "-": a pipe, which has no folder */
    const char *license;     /* SPDX expression for generated files; null: none */
    const char *config;      /* its text */
    size_t config_bytes;
    const char *lock_path; /* the lock file whose variants the bundle has; null: none */
    const char *lock;      /* its text */
    size_t lock_bytes;
    const char **inputs; /* the input files, the configuration first; no pipes */
    size_t input_count, input_capacity;
    const char *target_option; /* the value of --targets, which replaces the configuration's; null: none */
    const char *image_option;  /* the value of --images, as above */
    const char **ptx_names;    /* --ptx names, of each item that embeds one */
    size_t ptx_name_count, ptx_name_capacity;
    bool replaces_all; /* replaces files that kiln did not write, too */
    uint32_t jobs;     /* threads; 0: one per processor */
    uint32_t shards;   /* files for the kernels; 0: all are in NAME.c */
    target *targets;   /* ascending, no duplicates */
    size_t target_count;
    variant **variants; /* configuration order; chosen ones last, in the order of families and values */
    size_t variant_count, variant_capacity;
    shaped_item *shaped;
    size_t shaped_count, shaped_capacity;
    budget *budgets;
    size_t budget_count;
    uint32_t max_driver; /* driver that must load every image: 12020 is CUDA 12.2; 0: any */
    place max_driver_at;
    const tuned_file **tuned;
    size_t tuned_count, tuned_capacity;
    tuned_shape *tuned_shapes; /* of all files, without duplicates for a device */
    size_t tuned_shape_count, tuned_shape_capacity;
    bool has_ptx, has_cubins; /* the image formats; at least one */
    bool is_timed;            /* run ptxas over the PTX */
    bool is_exported;         /* keep the images themselves, not only C */
    place images_at;
    bool is_compressed;
    place compress_at;
} plan;

#endif
