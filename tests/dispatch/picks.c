/* Prints the default bundle's candidates for the calls below: a line for each, like `kiln explain`, for check_picks.py to
 * compare. Checks that NAME_FAMILY_pick takes the candidate with the least estimate.
 *
 *     dispatch_picks DRIVER
 */
#include "../calls.h"

#include "kiln_default.h"

enum { MOST = 64, SOME_ADDRESS = 1 << 20 };

static void show(const char *call, kiln_status status, const kiln_kernel *picked, const kiln_candidate *list,
                 size_t count)
{
    const kiln_candidate *best = NULL;
    printf("call %s\n", call);
    for (size_t i = 0; i < count; i++) {
        if (list[i].why_not)
            printf("- %s: %s\n", list[i].kernel->id, list[i].why_not);
        else
            printf("%llu %s\n", (unsigned long long)list[i].cycles, list[i].kernel->id);
        if (!list[i].why_not && (!best || list[i].cycles < best->cycles))
            best = &list[i];
    }
    judge(status == KILN_OK && count > 0 && best && picked == best->kernel, call, status);
}

/* One call of a family: the text for kiln explain, then the same arguments in C. */
#define SHOW(family, call, ...)                                                                              \
    do {                                                                                                     \
        const kiln_default_##family##_args args = {__VA_ARGS__};                                             \
        const kiln_kernel *picked = NULL;                                                                    \
        kiln_candidate list[MOST];                                                                           \
        size_t count = 0, again = 0;                                                                         \
        kiln_status status = kiln_default_##family##_pick(&loader, &args, &picked);                          \
        if (status == KILN_OK)                                                                               \
            status = kiln_default_##family##_candidates(&loader, &args, list, MOST, &count);                 \
        show(#family " " call, status, picked, list, count);                                                 \
        status = kiln_default_##family##_candidates(&loader, &args, NULL, 0, &again);                        \
        judge(status == KILN_OK && again == count, "a list without room: " call, status);                    \
    } while (0)

static const CUdeviceptr at = SOME_ADDRESS;

static void show_products(uint32_t m, uint32_t n, uint32_t k)
{
#define PRODUCT                                                                                              \
    .in = at, .packed = at, .scale = at, .out = at, .workspace = at, .tile_counters = at, .m = m, .n = n,    \
    .k = k
    char sizes[200];
    snprintf(sizes, sizeof sizes, "m=%u n=%u k=%u", (unsigned)m, (unsigned)n, (unsigned)k);
    printf("sizes %s\n", sizes);
    SHOW(nf4_gemm, "a=f16 workspace_size=0", PRODUCT, .a = KILN_DEFAULT_NF4_GEMM_A_F16);
    SHOW(nf4_gemm, "a=bf16 workspace_size=1000000000", PRODUCT, .a = KILN_DEFAULT_NF4_GEMM_A_BF16,
         .workspace_size = 1000000000);
    SHOW(nf4_gemm, "a=f32 workspace_size=0", PRODUCT, .a = KILN_DEFAULT_NF4_GEMM_A_F32);
    SHOW(nf4_gemm_transposed, "a=f16 workspace_size=0", PRODUCT, .a = KILN_DEFAULT_NF4_GEMM_TRANSPOSED_A_F16);
    SHOW(nf4_gemm_transposed, "a=bf16 workspace_size=1000000000", PRODUCT,
         .a = KILN_DEFAULT_NF4_GEMM_TRANSPOSED_A_BF16, .workspace_size = 1000000000);
}

static void show_gemv(uint32_t m, uint32_t k, uint32_t l)
{
    printf("sizes m=%u k=%u l=%u\n", (unsigned)m, (unsigned)k, (unsigned)l);
    SHOW(nvfp4_gemv, "", .a = at, .sfa = at, .b = at, .sfb = at, .out = at, .m = m, .k = k, .l = l);
}

static void show_attention(uint32_t queries, uint32_t keys, uint64_t workspace_size)
{
    printf(
        "sizes batch=1 q_heads=32 kv_heads=8 q_length=%u k_length=%u workspace_size=%llu splits=0 scale=1 q_row_stride=4096 "
        "k_row_stride=1024 v_row_stride=1024 out_row_stride=4096 q_head_stride=128 k_head_stride=128 v_head_stride=128 "
        "out_head_stride=128\n",
        (unsigned)queries, (unsigned)keys, (unsigned long long)workspace_size);
    SHOW(attention, "type=bf16", .q = at, .k = at, .v = at, .out = at, .workspace = at, .tile_counters = at,
         .batch = 1, .q_heads = 32, .kv_heads = 8, .q_length = queries, .k_length = keys, .scale = 1,
         .q_row_stride = 4096, .k_row_stride = 1024, .v_row_stride = 1024, .out_row_stride = 4096,
         .q_head_stride = 128, .k_head_stride = 128, .v_head_stride = 128, .out_head_stride = 128,
         .workspace_size = workspace_size, .type = KILN_DEFAULT_ATTENTION_TYPE_BF16);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    is_dry = true;
    open_device(argv[1], &kiln_default_bundle);
    static const uint32_t rows[] = {1, 2, 8, 9, 16, 32, 33, 64, 512, 4096};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        show_products(rows[i], 4096, 4096);
        show_products(rows[i], 14336, 4096);
    }
    show_gemv(7168, 16384, 1);
    show_gemv(4096, 7168, 8);
    show_gemv(30, 4128, 1);
    show_gemv(4096, 7168 + 16, 1);
    for (uint32_t queries = 1; queries <= 4096; queries *= 8) {
        show_attention(queries, 4096, 0);
        show_attention(queries, 8192, 1000000000);
    }
    return end_calls();
}
