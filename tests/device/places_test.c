/* Layouts give the same addresses at build time and on the emulated device, for every unit of every row.
 *
 *     device_places_test DRIVER
 */
#include "../../generator/device/x_ring.h"
#include "emitted.h"

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
    CUmodule module;
    int wrong = 0;
    if (argc != 2)
        return 2;
    open_driver(argv[1]);
    layouts[LAYOUTS - 3] = layout_of_codes();
    layouts[LAYOUTS - 2] = x_ring_layout(false);
    layouts[LAYOUTS - 1] = x_ring_layout(true);
    arena *a = arena_new();
    ptx_fn *f = ptx_new(a, "places", (target){80, TARGET_BASE}, (const uint32_t[]){THREADS, 1, 1});
    emit(f);
    CUfunction function = load_emitted(a, f, "places", &module);
    CUdeviceptr out = allocate(sizeof got);
    need(driver.launch_kernel(function, 1, 1, 1, THREADS, 1, 1, 0, NULL, (void *[]){&out}, NULL) == 0,
         "cuLaunchKernel");
    download(got, out, sizeof got);
    for (uint32_t i = 0; i < LAYOUTS; i++)
        for (uint32_t row = 0; row < ROWS; row++)
            for (uint32_t unit = 0; unit < UNITS; unit++)
                wrong += got[i][row][unit] != layout_byte(&layouts[i], row, unit);
    printf("%d wrong of %d\n", wrong, LAYOUTS * THREADS);
    arena_free(a);
    return wrong != 0;
}
