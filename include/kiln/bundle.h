/* The layout shared by generated C and the runtime. Applications include the generated header instead.
 *
 * Everything here is constant data in read-only memory, written by `kiln generate`, alive as long as the program. Each
 * kernel is a separate object and refers only to its own name, launcher, module and images, so a linker that collects
 * sections (-ffunction-sections -fdata-sections -Wl,--gc-sections) keeps only the kernels that a program uses.
 */
#ifndef KILN_BUNDLE_H
#define KILN_BUNDLE_H

#include <kiln/driver.h>
#include <kiln/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes whenever a struct of this file, driver.h or kiln.h changes, or a function that generated code calls.
 * kiln_open rejects a bundle of another layout. In every layout kiln_index begins with `bundle` and kiln_bundle with
 * `layout_version`. */
#define KILN_LAYOUT_VERSION 4

typedef struct kiln_loader kiln_loader; /* kiln.h */

/* Which devices run an image (PTX ISA, .target): base code runs on every newer device, architecture-specific code
 * ("sm_90a") on that one compute capability, family-specific code ("sm_100f") on its family. */
enum { KILN_TARGET_BASE = 0, KILN_TARGET_ARCH = 1, KILN_TARGET_FAMILY = 2 };

enum { KILN_IMAGE_PTX = 0, KILN_IMAGE_CUBIN = 1 };

/* Expands image->data into expanded_bytes bytes and a NUL at the start of `scratch`, the caller's memory, aligned to
 * 16. It may overwrite all of `scratch`. CORRUPT_IMAGE, SCRATCH_TOO_SMALL. */
typedef struct kiln_image kiln_image;
typedef kiln_status (*kiln_codec)(const kiln_image *image, void *scratch, size_t scratch_bytes);

/* One compiled form of a module. */
struct kiln_image {
    const char *data;   /* PTX text, NUL-terminated, or a cubin; packed if there is a codec */
    uint64_t bytes;     /* of data, without the NUL */
    uint64_t hash_high; /* XXH3, 128 bit, of data[0..bytes): high and low half */
    uint64_t hash_low;
    uint32_t min_driver;     /* as cuDriverGetVersion reports it: 12080 is CUDA 12.8 */
    uint16_t sm;             /* the target it was made for: 75, 80, 90, 100, 120 */
    uint8_t kind;            /* KILN_TARGET_... */
    uint8_t format;          /* KILN_IMAGE_... */
    uint64_t expanded_bytes; /* size of the expanded data, without a NUL; 0 without a codec */
    kiln_codec codec;        /* null: the driver takes data directly */
};

/* What one cuModuleLoadDataEx loads. */
typedef struct kiln_module {
    const kiln_image *images; /* in any order: selection looks at all of them */
    uint32_t image_count;
    uint32_t slot; /* the loader's slot for its CUmodule */
} kiln_module;

/* What a launch requires of one device pointer in an argument struct. */
typedef struct kiln_pointer {
    uint16_t offset;     /* in the struct */
    uint16_t alignment;  /* bytes, a power of two; 1: any */
    uint16_t is_null;    /* offset, in the table's texts, of the message for a null pointer */
    uint16_t misaligned; /* offset of the message for a misaligned pointer */
} kiln_pointer;

typedef struct kiln_pointers {
    const char *texts;
    const kiln_pointer *rows;
    uint32_t count; /* at most 32 */
} kiln_pointers;

/* args points at the family's generated argument struct. */
typedef kiln_status (*kiln_launch_function)(kiln_loader *loader, CUstream stream, const void *args);

/* kiln_kernel.flags. DEPENDENT: the images for sm_90 and newer wait for the preceding launch themselves, and may begin
 * before it has ended (programmatic dependent launch). */
enum { KILN_KERNEL_DEPENDENT = 1 };

/* One variant of a kernel. */
typedef struct kiln_kernel {
    uint64_t key; /* XXH3, 64 bit, of id */
    /* "family/param=value,..." with every parameter in the family's order, except those that the family gained later and that
     * have their default; the kernel's name for external PTX */
    const char *id;
    const char *entry; /* name of the .entry in the module */
    const kiln_module *module;
    kiln_launch_function launch;   /* checks its arguments and runs */
    kiln_launch_function run;      /* skips the checks that the family's function has made */
    const kiln_pointers *pointers; /* its requirements beyond the family's; null: none */
    /* The integer parameters, without strides: "4:m:u32 5:n:u32" are params[4] and params[5]. s: signed. Null: none. */
    const char *sizes;
    uint32_t block[3]; /* threads; zeros if each launch passes its own */
    uint32_t slot;     /* the slot for its CUfunction; the module's slot for the module's first kernel */
    /* Largest and smallest dynamic shared memory of a launch; the largest is opted in at load if needed. */
    uint32_t max_shared_bytes, min_shared_bytes;
    uint32_t static_shared_bytes;       /* static shared memory; 0 for external PTX */
    uint32_t blocks_per_multiprocessor; /* .minnctapersm; 0: not set */
    uint32_t flags;                     /* KILN_KERNEL_... */
} kiln_kernel;

/* The input of kiln_open. No pointers to kernels, so it keeps no kernel alive. */
typedef struct kiln_bundle {
    uint32_t layout_version;
    uint32_t kernel_count;
    uint32_t module_count;
    uint32_t slot_count;
    uint64_t scratch_bytes; /* needed to expand its images; 0: no image has a codec */
    char name[48];
} kiln_bundle;

/* The name of a number in an argument struct. Texts are offsets in kiln_index.texts. */
typedef struct kiln_word {
    uint32_t text; /* "f16" */
    uint32_t number;
} kiln_word;

/* A parameter that the caller of a family names. */
typedef struct kiln_selector {
    uint32_t text;   /* "type" */
    uint32_t offset; /* offset of its uint32_t in the argument struct */
    uint32_t
        first_word; /* in kiln_index.words: the values that this bundle has kernels for; none: it is a number */
    uint32_t word_count;
} kiln_selector;

/* Returns the kernel that a family's call would launch, or the status that it would return. */
typedef kiln_status (*kiln_pick_function)(kiln_loader *loader, const void *args, const kiln_kernel **kernel);

typedef struct kiln_index_family {
    kiln_launch_function call; /* NAME_FAMILY: checks its arguments, picks a kernel and launches it */
    kiln_pick_function
        pick;              /* NAME_FAMILY_pick; null for a family without parameters, which has one kernel */
    uint32_t text;         /* "nf4_gemm" */
    uint32_t args_bytes;   /* of the argument struct */
    uint32_t first_kernel; /* in kiln_index.family_kernels */
    uint32_t kernel_count;
    uint32_t first_selector; /* in kiln_index.selectors */
    uint32_t selector_count;
} kiln_index_family;

/* All kernels of a bundle. Only programs that find, enumerate or preload kernels refer to it. */
typedef struct kiln_index {
    const kiln_bundle *bundle;
    const kiln_kernel *const *kernels; /* bundle->kernel_count of them, in configuration order */
    const uint32_t
        *table; /* open addressing, linear probing from key & table_mask: kernel's index + 1, 0 if free */
    uint32_t table_mask;
    uint32_t family_count;
    const kiln_index_family *families;
    const uint32_t *family_kernels; /* indices in `kernels`, family after family */
    const kiln_selector *selectors;
    const kiln_word *words;
    const char *texts; /* of families, selectors and words, each NUL-terminated */
} kiln_index;

#ifdef __cplusplus
}
#endif

#endif
