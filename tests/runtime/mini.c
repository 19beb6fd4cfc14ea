/* Two variants of one family, written by hand in the form of `kiln generate`: a reference that is small enough to read.
 *
 * Each text is a named array and each variant is a separate object. Only the index refers to all of them. */
#pragma GCC diagnostic ignored "-Woverlength-strings"

#include "mini.h"

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* ==== axpy ==== */

static const char axpy_name[] = "axpy";

static const char axpy_pointers_texts[] = "x is null\0"
                                          "x must be aligned to 4 bytes\0"
                                          "y is null\0"
                                          "y must be aligned to 4 bytes";
static const kiln_pointer axpy_pointers_rows[] = {
    {offsetof(mini_axpy_args, x), 4, 0, 10},
    {offsetof(mini_axpy_args, y), 4, 39, 49},
};
static const kiln_pointers axpy_pointers = {axpy_pointers_texts, axpy_pointers_rows, 2};

static const char axpy_pointers_1_texts[] = "x must be aligned to 8 bytes\0"
                                            "y must be aligned to 8 bytes";
static const kiln_pointer axpy_pointers_1_rows[] = {
    {offsetof(mini_axpy_args, x), 8, 0, 0},
    {offsetof(mini_axpy_args, y), 8, 29, 29},
};
static const kiln_pointers axpy_pointers_1 = {axpy_pointers_1_texts, axpy_pointers_1_rows, 2};

static const char axpy_sizes_1[] = "3:n:u64";

/* The checks of every variant. */
static kiln_status check_axpy(kiln_loader *loader, const mini_axpy_args *a)
{
    const kiln_status status = kiln_begin(loader, a, axpy_name);
    if (status != KILN_OK)
        return status;
    if (!(a->n <= 1099511627776)) {
        static const char detail[] = "n is at most 2^40";
        return kiln_fail(loader, KILN_ERROR_BAD_ARGUMENT, axpy_name, detail);
    }
    if (a->n == 0)
        return KILN_OK;
    return kiln_check_pointers(loader, axpy_name, &axpy_pointers, a, 0x3u);
}

/* y[i] = a * x[i] + y[i]; an element has 2^shift bytes. */
/* clang-format off */
#define AXPY(version, sm, type, shift) \
    ".version " version "\n" \
    ".target sm_" sm "\n" \
    ".address_size 64\n" \
    "\n" \
    ".visible .entry axpy_" type "(\n" \
    "    .param .u64 %param_x,\n" \
    "    .param .u64 %param_y,\n" \
    "    .param ." type " %param_a,\n" \
    "    .param .u64 %param_n\n" \
    ")\n" \
    ".maxntid 256, 1, 1\n" \
    "{\n" \
    "    .reg .pred %p;\n" \
    "    .reg .b32 %block, %threads, %thread;\n" \
    "    .reg .b64 %i, %n, %x, %y, %offset;\n" \
    "    .reg ." type " %a, %xi, %yi;\n" \
    "\n" \
    "    mov.u32 %block, %ctaid.x;\n" \
    "    mov.u32 %threads, %ntid.x;\n" \
    "    mov.u32 %thread, %tid.x;\n" \
    "    cvt.u64.u32 %i, %thread;\n" \
    "    mad.wide.u32 %i, %block, %threads, %i;\n" \
    "    ld.param.u64 %n, [%param_n];\n" \
    "    setp.ge.u64 %p, %i, %n;\n" \
    "    @%p bra done;\n" \
    "    ld.param.u64 %x, [%param_x];\n" \
    "    ld.param.u64 %y, [%param_y];\n" \
    "    ld.param." type " %a, [%param_a];\n" \
    "    shl.b64 %offset, %i, " shift ";\n" \
    "    add.u64 %x, %x, %offset;\n" \
    "    add.u64 %y, %y, %offset;\n" \
    "    ld.global." type " %xi, [%x];\n" \
    "    ld.global." type " %yi, [%y];\n" \
    "    fma.rn." type " %yi, %a, %xi, %yi;\n" \
    "    st.global." type " [%y], %yi;\n" \
    "done:\n" \
    "    ret;\n" \
    "}\n"
/* clang-format on */

/* axpy/type=f32 */

static const char axpy_f32_id[] = "axpy/type=f32";
static const char axpy_f32_entry[] = "axpy_f32";

static const char axpy_f32_sm_75[] = AXPY("6.3", "75", "f32", "2");

static const char axpy_f32_sm_90[] = AXPY("7.8", "90", "f32", "2");

static const kiln_image axpy_f32_images[] = {
    {.data = axpy_f32_sm_75,
     .bytes = sizeof axpy_f32_sm_75 - 1,
     .hash_high = 0xf0251f237da15277,
     .hash_low = 0xdc84cd6f17f58695,
     .min_driver = 10000,
     .sm = 75,
     .kind = KILN_TARGET_BASE,
     .format = KILN_IMAGE_PTX},
    {.data = axpy_f32_sm_90,
     .bytes = sizeof axpy_f32_sm_90 - 1,
     .hash_high = 0x7793a2be00e79640,
     .hash_low = 0x89669340d09b4ddd,
     .min_driver = 11080,
     .sm = 90,
     .kind = KILN_TARGET_BASE,
     .format = KILN_IMAGE_PTX},
};
static const kiln_module axpy_f32_module = {.images = axpy_f32_images, .image_count = 2, .slot = 0};

static kiln_status run_axpy_f32(kiln_loader *loader, CUstream stream, const void *args)
{
    const mini_axpy_args *a = args;
    const uint64_t grid[3] = {ceil_div(a->n, 256), 1, 1};
    float a_f32 = (float)a->a;
    const void *const params[] = {&a->x, &a->y, &a_f32, &a->n};
    return kiln_launch(loader, &mini_axpy_f32_kernel, stream, grid, 0, params);
}

kiln_status mini_axpy_f32(kiln_loader *loader, CUstream stream, const mini_axpy_args *a)
{
    const kiln_status status = check_axpy(loader, a);
    if (status != KILN_OK || a->n == 0)
        return status;
    return run_axpy_f32(loader, stream, a);
}

static kiln_status launch_axpy_f32(kiln_loader *loader, CUstream stream, const void *args)
{
    return mini_axpy_f32(loader, stream, args);
}

const kiln_kernel mini_axpy_f32_kernel = {
    .key = 0x7af4c523ce13e520,
    .id = axpy_f32_id,
    .entry = axpy_f32_entry,
    .module = &axpy_f32_module,
    .launch = launch_axpy_f32,
    .run = run_axpy_f32,
    .sizes = axpy_sizes_1,
    .block = {256, 1, 1},
    .slot = 0,
    .max_shared_bytes = 0,
};

/* axpy/type=f64 */

static const char axpy_f64_id[] = "axpy/type=f64";
static const char axpy_f64_entry[] = "axpy_f64";

static const char axpy_f64_sm_75[] = AXPY("6.3", "75", "f64", "3");

static const kiln_image axpy_f64_images[] = {
    {.data = axpy_f64_sm_75,
     .bytes = sizeof axpy_f64_sm_75 - 1,
     .hash_high = 0x5a45a46a98bc26ac,
     .hash_low = 0x5fdaf5316c0d601b,
     .min_driver = 10000,
     .sm = 75,
     .kind = KILN_TARGET_BASE,
     .format = KILN_IMAGE_PTX},
};
static const kiln_module axpy_f64_module = {.images = axpy_f64_images, .image_count = 1, .slot = 1};

static kiln_status run_axpy_f64(kiln_loader *loader, CUstream stream, const void *args)
{
    const mini_axpy_args *a = args;
    const kiln_status status = kiln_check_pointers(loader, axpy_name, &axpy_pointers_1, a, 0x0u);
    if (status != KILN_OK)
        return status;
    const uint64_t grid[3] = {ceil_div(a->n, 256), 1, 1};
    const void *const params[] = {&a->x, &a->y, &a->a, &a->n};
    return kiln_launch(loader, &mini_axpy_f64_kernel, stream, grid, 0, params);
}

kiln_status mini_axpy_f64(kiln_loader *loader, CUstream stream, const mini_axpy_args *a)
{
    const kiln_status status = check_axpy(loader, a);
    if (status != KILN_OK || a->n == 0)
        return status;
    return run_axpy_f64(loader, stream, a);
}

static kiln_status launch_axpy_f64(kiln_loader *loader, CUstream stream, const void *args)
{
    return mini_axpy_f64(loader, stream, args);
}

const kiln_kernel mini_axpy_f64_kernel = {
    .key = 0x048fc9ba80d16269,
    .id = axpy_f64_id,
    .entry = axpy_f64_entry,
    .module = &axpy_f64_module,
    .launch = launch_axpy_f64,
    .run = run_axpy_f64,
    .sizes = axpy_sizes_1,
    .block = {256, 1, 1},
    .slot = 1,
    .max_shared_bytes = 0,
};

/* Picks the variant for these arguments on this device. */
static const kiln_kernel *choose_axpy(const kiln_loader *loader, mini_axpy_args a)
{
    if (a.type == MINI_AXPY_TYPE_F32 && kiln_usable(loader, &mini_axpy_f32_kernel))
        return &mini_axpy_f32_kernel;
    if (a.type == MINI_AXPY_TYPE_F64 && kiln_usable(loader, &mini_axpy_f64_kernel))
        return &mini_axpy_f64_kernel;
    return NULL;
}

kiln_status mini_axpy_pick(kiln_loader *loader, const mini_axpy_args *args, const kiln_kernel **kernel)
{
    if (!kernel)
        return kiln_begin(loader, NULL, axpy_name);
    *kernel = NULL;
    const kiln_status status = check_axpy(loader, args);
    if (status != KILN_OK || args->n == 0)
        return status;
    *kernel = choose_axpy(loader, *args);
    if (!*kernel) {
        static const char detail[] = "no variant has this type or runs on this device";
        return kiln_fail(loader, KILN_ERROR_NO_VARIANT, axpy_name, detail);
    }
    return KILN_OK;
}

kiln_status mini_axpy(kiln_loader *loader, CUstream stream, const mini_axpy_args *args)
{
    const kiln_kernel *kernel;
    const kiln_status status = mini_axpy_pick(loader, args, &kernel);
    return kernel ? kernel->run(loader, stream, args) : status;
}

/* ==== the bundle ==== */

const kiln_bundle mini_bundle = {
    .layout_version = 4,
    .kernel_count = MINI_KERNELS,
    .module_count = 2,
    .slot_count = MINI_SLOTS,
    .name = "mini",
};

static const kiln_kernel *const kernels[] = {
    &mini_axpy_f32_kernel,
    &mini_axpy_f64_kernel,
};

/* The place of a kernel, from 1, by key & mask; 0 is free. */
static const uint32_t table[] = {1, 2, 0, 0};

const kiln_index mini_index = {.bundle = &mini_bundle, .kernels = kernels, .table = table, .table_mask = 3};
