/* Launches kernels from external PTX and compares their results: app [DRIVER]. */
#include <math.h>
#include <string.h>

#include "app.h"
#include "external.h"

enum { N = 1000, BLOCKS = (N + 127) / 128, ROWS = 4, COLUMNS = N / ROWS };

static kiln_slot slots[EXTERNAL_SLOTS];
static kiln_loader loader;
static float x[N], y[N], sums[BLOCKS];

/* Returns 0 after a failure; kiln then refuses the launch. */
static CUdeviceptr upload(const void *data, size_t bytes)
{
    CUdeviceptr at = 0;
    if (!failed("cuMemAlloc", driver.mem_alloc(&at, bytes)))
        failed("cuMemcpyHtoD", driver.memcpy_htod(at, data, bytes));
    return at;
}

static int check(const char *what, kiln_status status, kiln_status expected, int right)
{
    kiln_error error;
    const int ok = status == expected && right;
    kiln_last_error(&loader, &error);
    printf("%s: %s%s%s%s\n", what, kiln_status_string(status), status == KILN_OK ? "" : ": ",
           status == KILN_OK ? "" : error.detail, ok ? "" : ", WRONG");
    return ok;
}

static int check_saxpy(CUdeviceptr at_x, CUdeviceptr at_y)
{
    const external_saxpy_args args = {.n = N, .a = 2, .x = at_x, .y = at_y};
    int right = 1;
    kiln_status status = external_saxpy(&loader, NULL, &args);
    driver.memcpy_dtoh(y, at_y, sizeof y);
    for (int i = 0; i < N; i++)
        right &= y[i] == 2 * x[i] + 1;
    right = check("saxpy", status, KILN_OK, right);
    right &= check("nothing", external_saxpy(&loader, NULL, &(external_saxpy_args){.n = 0}), KILN_OK, 1);
    status = external_saxpy(&loader, NULL, &(external_saxpy_args){.n = N, .x = at_x});
    return right & check("no y", status, KILN_ERROR_NULL_POINTER, 1);
}

/* A kernel that takes a struct by value, and whose grid the caller chooses. */
static int check_sums(CUdeviceptr at_x, CUdeviceptr at_sums)
{
    const struct bounds {
        double low, high;
        int weight;
    } bounds = {.low = 100, .high = 700, .weight = 3};
    external_bounded_sums_args args = {
        .n = N, .x = at_x, .sums = at_sums, .grid_x = BLOCKS, .shared_bytes = 128 * 4};
    double got = 0, expected = 0;
    memcpy(args.bounds, &bounds, sizeof bounds);
    kiln_status status = external_bounded_sums(&loader, NULL, &args); /* block_x = 0 means .maxntid threads */
    driver.memcpy_dtoh(sums, at_sums, sizeof sums);
    for (int i = 0; i < BLOCKS; i++)
        got += sums[i];
    for (int i = 100; i <= 700; i++)
        expected += 3 * x[i];
    int right = check("bounded_sums", status, KILN_OK, got == expected);
    args.block_x = 256;
    right &= check("block", external_bounded_sums(&loader, NULL, &args), KILN_ERROR_BAD_ARGUMENT, 1);
    args.block_x = 128;
    args.shared_bytes = 50000;
    right &= check("shared", external_bounded_sums(&loader, NULL, &args), KILN_ERROR_BAD_ARGUMENT, 1);
    args.shared_bytes = 512;
    args.grid_x = 0;
    return right & check("grid", external_bounded_sums(&loader, NULL, &args), KILN_ERROR_BAD_ARGUMENT, 1);
}

static int check_transpose(CUdeviceptr at_x, CUdeviceptr at_y)
{
    const external_transpose_args args = {.out = at_y, .in = at_x, .rows = ROWS, .columns = COLUMNS};
    int right = 1;
    kiln_status status = external_transpose(&loader, NULL, &args);
    driver.memcpy_dtoh(y, at_y, sizeof y);
    for (int i = 0; i < N; i++)
        right &= y[i % COLUMNS * ROWS + i / COLUMNS] == x[i];
    right = check("transpose", status, KILN_OK, right);
    /* Rows without elements: the grid has thread blocks, but they must not access memory. */
    status = external_transpose(&loader, NULL, &(external_transpose_args){.rows = ROWS});
    right &= check("no columns", status, KILN_OK, driver.ctx_synchronize() == 0);
    status = external_transpose(&loader, NULL, &(external_transpose_args){.rows = ROWS, .columns = 1});
    right &= check("no matrices", status, KILN_ERROR_NULL_POINTER, 1);
    status = external_transpose(
        &loader, NULL, &(external_transpose_args){.out = at_y, .in = at_x, .rows = -1, .columns = 1});
    return right & check("fewer", status, KILN_ERROR_BAD_ARGUMENT, 1);
}

/* The variants' conditions test the number of columns. Checks which variant runs. */
static int check_variants(CUdeviceptr at_x, CUdeviceptr at_y)
{
    static const struct {
        unsigned columns;
        const kiln_kernel *kernel;
    } rows[] = {{32, &external_transpose_rows_32_kernel}, {33, &external_transpose_rows_64_kernel}};
    external_transpose_rows_args args = {.out = at_y, .in = at_x, .rows = ROWS};
    int right = 1;
    for (int i = 0; i < 2; i++) {
        const kiln_kernel *picked;
        args.columns = rows[i].columns;
        int is_right = external_transpose_rows_pick(&loader, &args, &picked) == KILN_OK;
        is_right &= picked == rows[i].kernel;
        kiln_status status = external_transpose_rows(&loader, NULL, &args);
        driver.memcpy_dtoh(y, at_y, sizeof y);
        for (unsigned k = 0; k < ROWS * args.columns; k++)
            is_right &= y[k % args.columns * ROWS + k / args.columns] == x[k];
        right &= check(picked->id, status, KILN_OK, is_right);
    }
    right &= check("a variant's own", external_transpose_rows_32(&loader, NULL, &args),
                   KILN_ERROR_BAD_ARGUMENT, 1);
    args.columns = 4097;
    kiln_candidate all[2];
    size_t count;
    kiln_status status = external_transpose_rows_candidates(&loader, &args, all, 2, &count);
    right &= check("candidates", status, KILN_OK, count == 2);
    for (size_t i = 0; i < count; i++)
        printf("  %s: %s\n", all[i].kernel->id, all[i].why_not);
    return right & check("none", external_transpose_rows(&loader, NULL, &args), KILN_ERROR_BAD_ARGUMENT, 1);
}

static int check_softmax(CUdeviceptr at_x, CUdeviceptr at_y)
{
    external_softmax_args args = {.out = at_y, .x = at_x, .columns = COLUMNS, .grid_x = ROWS};
    double sum = 0, worst = 0;
    kiln_status status = external_softmax(&loader, NULL, &args);
    driver.memcpy_dtoh(y, at_y, sizeof y);
    for (int i = 0; i < COLUMNS; i++)
        sum += exp(i - (COLUMNS - 1));
    for (int i = 0; i < N; i++)
        worst = fmax(worst, fabs(y[i] - exp(i % COLUMNS - (COLUMNS - 1)) / sum));
    int right = check("softmax", status, KILN_OK, worst < 1e-6);
    args.columns = 513;
    return right & check("columns", external_softmax(&loader, NULL, &args), KILN_ERROR_BAD_ARGUMENT, 1);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }
    if (no_device(argc > 1 ? argv[1] : NULL))
        return 77;
    CUdeviceptr at_x = upload(x, sizeof x), at_y = upload(y, sizeof y), at_sums = upload(sums, sizeof sums);
    kiln_status status = kiln_open(&loader, &driver, &external_bundle, slots, EXTERNAL_SLOTS, NULL);
    int right = (status == KILN_OK || check("open", status, KILN_OK, 1)) && check_saxpy(at_x, at_y) &&
                check_sums(at_x, at_sums) && check_transpose(at_x, at_y) && check_variants(at_x, at_y) &&
                check_softmax(at_x, at_y);
    kiln_close(&loader);
    driver.device_primary_ctx_release(0);
    kiln_driver_close(&driver);
    puts(right ? "right" : "WRONG");
    return !right;
}
