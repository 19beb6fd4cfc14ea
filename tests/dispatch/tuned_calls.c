/* Prints the picks of a bundle with tuned files: for each line of standard input, "FAMILY SIZE ...", the picked variant, then a
 * line for each candidate. check_tuned.py writes the bundle and reads this output.
 *
 *     tuned_calls DRIVER
 */
#include "../calls.h"

#include "tuned.h"

enum { MOST = 16, SOME_ADDRESS = 1 << 20 };

static void show(kiln_status status, const kiln_kernel *picked, const kiln_candidate *list, size_t count)
{
    printf("pick %s\n", status == KILN_OK && picked ? picked->id : kiln_status_string(status));
    for (size_t i = 0; i < count; i++) {
        const int is_measured = (list[i].cycles & KILN_MEASURED) != 0;
        printf("%s %llu %s\n",
               list[i].why_not ? "ruled_out"
               : is_measured   ? "measured"
                               : "estimated",
               (unsigned long long)(list[i].cycles & ~KILN_MEASURED), list[i].kernel->id);
    }
}

#define SHOW(family, ...)                                                                                    \
    do {                                                                                                     \
        const tuned_##family##_args args = {__VA_ARGS__};                                                    \
        const kiln_kernel *picked = NULL;                                                                    \
        kiln_candidate list[MOST];                                                                           \
        size_t count = 0;                                                                                    \
        kiln_status status = tuned_##family##_pick(&loader, &args, &picked);                                 \
        if (status == KILN_OK)                                                                               \
            status = tuned_##family##_candidates(&loader, &args, list, MOST, &count);                        \
        show(status, picked, list, count);                                                                   \
    } while (0)

int main(int argc, char **argv)
{
    char line[256], family[64];
    const CUdeviceptr at = SOME_ADDRESS;
    if (argc != 2)
        return 2;
    is_dry = true;
    open_device(argv[1], &tuned_bundle);
    while (fgets(line, sizeof line, stdin)) {
        unsigned m = 0, n = 0, k = 0;
        unsigned long long last = 0;
        if (sscanf(line, "%63s m=%u n=%u k=%u %*[a-z_]=%llu", family, &m, &n, &k, &last) < 4)
            return 2;
        if (strcmp(family, "rmsnorm_q4k_gemv") == 0)
            SHOW(rmsnorm_q4k_gemv, .in = at, .gamma = at, .w = at, .out = at, .n = n, .k = k);
        else if (strcmp(family, "nf4_gemm") == 0)
            SHOW(nf4_gemm, .in = at, .packed = at, .scale = at, .out = at, .workspace = at,
                 .tile_counters = at, .m = m, .n = n, .k = k, .workspace_size = last);
        else
            SHOW(nf4_gemm_transposed, .in = at, .packed = at, .scale = at, .out = at, .workspace = at,
                 .tile_counters = at, .m = m, .n = n, .k = k, .normal_scales = (uint32_t)last);
    }
    kiln_close(&loader);
    return 0;
}
