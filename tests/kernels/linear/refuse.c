/* Calls of linear in which some of several matrices have no rows: it writes all outputs or none.
 *
 *     linear_refuse DRIVER
 */
#include "../../calls.h"

#include "sample.h"

static void check(const kiln_kernel *kernel, const sample_linear_args *args, kiln_status expected)
{
    launched.count = 0;
    const kiln_status status = kernel->launch(&loader, NULL, args);
    judge(status == expected && launched.count == 0, kernel->id, status);
}

int main(int argc, char **argv)
{
    need(argc == 2, "linear_refuse DRIVER");
    open_device(argv[1], &sample_bundle);
    for (uint32_t i = 0; i < sample_index.bundle->kernel_count; i++) {
        const kiln_kernel *kernel = sample_index.kernels[i];
        if (!has(kernel, "linear/"))
            continue;
        const sample_linear_args none = {.m = 1, .k = 256}, second = {.m = 1, .n_2 = 64, .k = 256},
                                 third = {.m = 1, .n_3 = 64, .k = 256};
        check(kernel, &none, KILN_OK);
        check(kernel, &second, KILN_ERROR_BAD_ARGUMENT);
        check(kernel, &third, KILN_ERROR_BAD_ARGUMENT);
    }
    printf("%u of %u calls ended as documented\n", trials - wrong, trials);
    return wrong || !trials;
}
