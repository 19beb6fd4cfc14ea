/* Layouts give the same addresses at build time and on the emulated device, for every unit of every row.
 *
 *     device_places_test DRIVER
 */
#include <stdio.h>
#include <stdlib.h>

#include <kiln/kiln.h>

#include "../../generator/device/x_ring.h"
#include "../../generator/ptx/builder.h"

enum { ROWS = 64, UNITS = 8, THREADS = ROWS * UNITS };

static layout layouts[] = {
    {.row_bytes = 144, .unit_bytes = 16},
    {.row_bytes = 112, .unit_bytes = 16, .padded_rows = 8, .pad_bytes = 32},
    {.row_bytes = 512, .unit_bytes = 64},
    {.row_bytes = 32, .unit_bytes = 16, .strip_bytes = 2064, .turn_count = 1, .turns = {{2, 0}}},
    {.row_bytes = 128, .unit_bytes = 16, .turn_count = 2, .turns = {{3, 1}, {0, 2}}},
    {0}, /* layouts of functions */
    {0},
    {0},
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static kiln_driver driver;

static void need(int result, const char *what)
{
    if (result == 0)
        return;
    printf("%s failed: %d\n", what, result);
    exit(1);
}

/* out[layout][row][unit], U32 */
static void emit(ptx_fn *f)
{
    ptx_val out = ptx_param_ptr(f, PTX_U32, "out"), tid = ptx_tid_x(f);
    ptx_val row = ptx_div(f, tid, UNITS), unit = ptx_and(f, tid, UNITS - 1);
    ptx_val to = ptx_at(f, out, tid);
    for (uint32_t i = 0; i < LAYOUTS; i++)
        ptx_store(f, ptx_at_const(f, to, i * THREADS), layout_at(f, &layouts[i], row, unit));
}

int main(int argc, char **argv)
{
    static uint32_t got[LAYOUTS][ROWS][UNITS];
    CUdeviceptr out;
    void *params[] = {&out};
    CUcontext context;
    CUmodule module;
    CUfunction function;
    int wrong = 0;
    if (argc != 2)
        return 2;
    layouts[LAYOUTS - 3] = layout_of_codes();
    layouts[LAYOUTS - 2] = x_ring_layout(false);
    layouts[LAYOUTS - 1] = x_ring_layout(true);
    arena *a = arena_new();
    ptx_fn *f = ptx_new(a, "places", (target){80, TARGET_BASE}, (const uint32_t[]){THREADS, 1, 1});
    emit(f);
    need(!ptx_check(f, stderr), "the check of the kernel");
    text ptx = text_new(a);
    ptx_print_header(&ptx, ptx_needs(f));
    ptx_print_body(&ptx, f, false);
    need((int)kiln_driver_load(&driver, argv[1], NULL), "loading the driver");
    need(driver.init(0), "cuInit");
    need(driver.device_primary_ctx_retain(&context, 0), "the context");
    need(driver.ctx_set_current(context), "cuCtxSetCurrent");
    need(driver.module_load_data_ex(&module, ptx.data, 0, NULL, NULL), "cuModuleLoadDataEx");
    need(driver.module_get_function(&function, module, "places"), "cuModuleGetFunction");
    need(driver.mem_alloc(&out, sizeof got), "cuMemAlloc");
    need(driver.launch_kernel(function, 1, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL), "cuLaunchKernel");
    need(driver.ctx_synchronize(), "the kernel");
    need(driver.memcpy_dtoh(got, out, sizeof got), "cuMemcpyDtoH");
    for (uint32_t i = 0; i < LAYOUTS; i++)
        for (uint32_t row = 0; row < ROWS; row++)
            for (uint32_t unit = 0; unit < UNITS; unit++)
                wrong += got[i][row][unit] != layout_byte(&layouts[i], row, unit);
    printf("%d wrong of %d\n", wrong, LAYOUTS * THREADS);
    arena_free(a);
    return wrong != 0;
}
