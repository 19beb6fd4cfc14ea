/* The layout that generated C and the runtime share. Applications include the generated header instead.
 *
 * Everything here is constant data in read-only memory, written by `kiln generate`, alive as long as the program.
 * Each kernel is an object of its own and refers only to its own name, launcher, module and images, so a linker that
 * collects sections (-ffunction-sections -fdata-sections -Wl,--gc-sections) keeps just the kernels a program uses.
 */
#ifndef KILN_BUNDLE_H
#define KILN_BUNDLE_H

#include <kiln/driver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes whenever a struct of this file, driver.h or kiln.h changes, or a function that generated code calls. kiln_open
 * refuses a bundle of another layout. In every layout kiln_index begins with `bundle` and kiln_bundle with
 * `layout_version`. */
#define KILN_LAYOUT_VERSION 1

typedef struct kiln_loader kiln_loader; /* kiln.h */

/* What a PTX target promises (PTX ISA, .target): base code runs on every newer device, architecture-specific code
 * ("sm_90a") on that one compute capability, family-specific code ("sm_100f") on its family. */
enum { KILN_TARGET_BASE = 0, KILN_TARGET_ARCH = 1, KILN_TARGET_FAMILY = 2 };

enum { KILN_IMAGE_PTX = 0, KILN_IMAGE_CUBIN = 1 };

/* One compiled form of a module. */
typedef struct kiln_image {
    const char *data;   /* PTX text, NUL-terminated, or a cubin */
    uint64_t bytes;     /* without the NUL */
    uint64_t hash_high; /* XXH3, 128 bit, of data[0..bytes): high and low half */
    uint64_t hash_low;
    uint32_t min_driver; /* as cuDriverGetVersion reports it: 12080 is CUDA 12.8 */
    uint16_t sm;         /* the target it was made for: 75, 80, 90, 100, 120 */
    uint8_t kind;        /* KILN_TARGET_... */
    uint8_t format;      /* KILN_IMAGE_... */
} kiln_image;

/* What one cuModuleLoadDataEx loads. */
typedef struct kiln_module {
    const kiln_image *images; /* in no order that matters: selection looks at all */
    uint32_t image_count;
    uint32_t slot; /* where in the loader's slots its CUmodule is kept */
} kiln_module;

/* args points at the family's generated argument struct. */
typedef int (*kiln_launch_function)(kiln_loader *loader, CUstream stream, const void *args);

/* One baked kernel variant. */
typedef struct kiln_kernel {
    uint64_t key; /* XXH3, 64 bit, of id */
    /* "family/param=value,..." with every parameter, in the family's order; of external PTX the kernel's name */
    const char *id;
    const char *entry; /* name of the .entry in the module */
    const kiln_module *module;
    kiln_launch_function launch;
    uint32_t block[3]; /* threads; zeros when each launch says how many */
    uint32_t slot;     /* where its CUfunction is kept; the module's slot for the module's first kernel */
    uint32_t
        max_shared_bytes; /* most dynamic shared memory that a launch asks for; opted in at load where it has to be */
    /* The two fill what was padding, which is 0, so that the layout is the same. */
    uint16_t static_shared_bytes; /* what the kernel has beside; 0 for external PTX */
    uint16_t least_shared_words;  /* of 4 bytes: the least dynamic shared memory that a launch asks for */
} kiln_kernel;

/* What kiln_open needs. No pointers, so that it keeps no kernel alive. */
typedef struct kiln_bundle {
    uint32_t layout_version;
    uint32_t kernel_count;
    uint32_t module_count;
    uint32_t slot_count;
    char name[48];
} kiln_bundle;

/* All kernels of a bundle. Only programs that find, enumerate or preload everything refer to it. */
typedef struct kiln_index {
    const kiln_bundle *bundle;
    const kiln_kernel *const *kernels; /* bundle->kernel_count of them, in configuration order */
    const uint32_t
        *table; /* open addressing, linear probing from key & table_mask: kernel's place + 1, 0 if free */
    uint32_t table_mask;
} kiln_index;

#ifdef __cplusplus
}
#endif

#endif
