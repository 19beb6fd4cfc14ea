/* The calls that the pages of generator/kernels show. readme.py copies each body into its page; here they run on the emulated
 * driver under all checks, over arrays of zeros. */
#include <stdio.h>
#include <stdlib.h>

#include "app.h"

enum { ARRAY_BYTES = 1 << 20 }; /* no array below is longer */

static kiln_driver driver;
static kiln_loader loader;
static kiln_slot slots[APP_SLOTS];
static CUstream stream;

static void check(kiln_status status)
{
    char text[512];
    kiln_error error = {.status = status};
    if (status == KILN_OK)
        return;
    puts(kiln_status_string(status));
    kiln_last_error(&loader, &error);
    kiln_describe_error(&loader, &error, NULL, text, sizeof text);
    puts(text);
    exit(1);
}

static void need(int result, const char *call)
{
    if (result == 0)
        return;
    printf("%s: error %d\n", call, result);
    exit(1);
}

static CUdeviceptr allocate(uint64_t bytes)
{
    CUdeviceptr result;
    need(driver.mem_alloc(&result, bytes), "cuMemAlloc");
    need(driver.memset_d8(result, 0, bytes), "cuMemsetD8");
    return result;
}

static CUdeviceptr x, y, w, w_q, w_k, w_v, w_up, w_gate, w_scales, w_zeros, codes, scales, gamma_factors;
static CUdeviceptr q, k_rows, v_rows, out, frequencies, positions, k_cache, v_cache, page_table, lengths,
    cache_slots, rows;
static const uint32_t m = 2, n = 128, k = 512, batch = 2, tokens = 1, length = 40, pages_each = 2;

/* Each as wide as a page. */
/* clang-format off */

static void int4(void)
{
    app_int4_quantize_args to = {.in = w, .n = n * k, .packed = codes, .scale = scales}; /* f16[n * k] */
    check(app_int4_quantize(&loader, stream, &to));

    app_int4_unpack_args back = {.packed = codes, .scale = scales, .n = n * k, .out = y};
    check(app_int4_unpack(&loader, stream, &back));
}

static void nf4_gemm(void)
{
    app_nf4_quantize_args weights = {.in = w, .n = n * k, .packed = codes, .scale = scales};
    check(app_nf4_quantize(&loader, stream, &weights));

    app_nf4_gemm_args product = {
        .in = x, .packed = codes, .scale = scales, .out = y, /* y[m, n] = x[m, k] * W */
        .m = m, .n = n, .k = k,
    };
    uint64_t bytes, counters;
    check(app_nf4_gemm_workspace_max(&loader, &product, &bytes, &counters)); /* enough for fewer rows, too */
    product.workspace = allocate(bytes), product.workspace_size = bytes / 4;
    product.tile_counters = allocate(counters); /* zeros; each launch leaves them zero */
    check(app_nf4_gemm(&loader, stream, &product));
}

static void nf4_gemm_transposed(void)
{
    app_nf4_gemm_transposed_args gradient = {
        .in = y, .packed = codes, .scale = scales, .out = x, /* dx[m, k] = dy[m, n] * W^T */
        .m = m, .n = n, .k = k, .normal_scales = 0,
    };
    uint64_t bytes, counters;
    check(app_nf4_gemm_transposed_workspace_max(&loader, &gradient, &bytes, &counters));
    gradient.workspace = allocate(bytes), gradient.workspace_size = bytes / 4;
    gradient.tile_counters = allocate(counters); /* zeros */
    check(app_nf4_gemm_transposed(&loader, stream, &gradient));
}

static void gguf_rows(void)
{
    app_gguf_rows_args embeddings = {
        .packed = w, .tensor_rows = n, .k = k, .index = rows, .n = tokens, .out = x, /* x[i] = W[rows[i]] */
    };
    check(app_gguf_rows(&loader, stream, &embeddings));
}

static void linear_qkv(void)
{
    app_linear_args qkv = {
        .in = x, .m = m, .k = k, .gamma = gamma_factors, .eps = 1e-5f,
        .norm = APP_LINEAR_NORM_RMS, .x = APP_LINEAR_X_F16,
        .matrices = 3,
        .w = w_q, .n = n, .out = q, /* q[m, n] = h * w_q^T */
        .w_2 = w_k, .n_2 = n / 4, .out_2 = k_rows,
        .w_3 = w_v, .n_3 = n / 4, .out_3 = v_rows,
    };
    check(app_linear(&loader, stream, &qkv));
}

static void linear_gated(void)
{
    app_q8_quantize_args bytes = {.in = x, .m = m, .k = k, .codes = codes, .scale = scales};
    check(app_q8_quantize(&loader, stream, &bytes));

    app_linear_args gated = {
        .in = codes, .in_scale = scales, .x = APP_LINEAR_X_S8,
        .epilogue = APP_LINEAR_EPILOGUE_SWIGLU,
        .w = w_up, .gate = w_gate, .m = m, .n = n, .k = k, .out = y, /* silu(x * w_gate^T) * (x * w_up^T) */
    };
    check(app_linear(&loader, stream, &gated));
}

static void linear_int4(void)
{
    app_linear_args product = {
        .format = APP_LINEAR_FORMAT_INT4, .group = 128, .mode = APP_LINEAR_MODE_ASYM,
        .activation = APP_LINEAR_ACTIVATION_HALF, .x = APP_LINEAR_X_F16,
        .in = x, .w = w, .w_scales = w_scales, .w_zeros = w_zeros, .out = y,
        .m = m, .n = n, .k = k,
    };
    check(app_linear(&loader, stream, &product));
}

static void rmsnorm_q4k_gemv(void)
{
    app_rmsnorm_q4k_gemv_args product = {
        .in = x, .gamma = gamma_factors, .eps = 1e-5f, .w = w, .n = n, .k = k, .out = y,
    };
    check(app_rmsnorm_q4k_gemv(&loader, stream, &product));
}

static void q4k_dequantize(void)
{
    app_q4k_dequantize_args tensor = {.packed = w, .n = n * k, .out = y};
    check(app_q4k_dequantize(&loader, stream, &tensor));
}

static void gguf_dequantize(void)
{
    app_gguf_dequantize_args tensor = {.packed = w, .n = n * k, .out = y};
    check(app_gguf_dequantize(&loader, stream, &tensor));
}

static void nvfp4(void)
{
    app_fp4_quantize_args vectors = {.in = x, .m = batch, .k = k, .packed = codes, .scale = scales, .global_scale = 2688};
    check(app_fp4_quantize(&loader, stream, &vectors)); /* inputs of at most 1: 448 * 6 / 1 */

    app_nvfp4_gemv_args products = {
        .a = w, .sfa = w_scales, .m = n, .k = k, .l = batch,
        .b = codes, .sfb = scales, .b_rows = 1, /* 0 means 128 rows for each vector */
        .global_scale = 1, .alpha = 1.0f / 2688, .out = y,
    };
    check(app_nvfp4_gemv(&loader, stream, &products));
}

static void fp4_gemm(void)
{
    app_fp4_quantize_args weights = {.in = w, .m = n, .k = k, .packed = codes, .scale = scales, .global_scale = 2688};
    check(app_fp4_quantize(&loader, stream, &weights));

    app_fp4_gemm_args products = {
        .in = x, .w = codes, .w_scales = scales, .m = m, .n = n, .k = k,
        .alpha = 1.0f / 2688, .out = y, /* y[m][n] */
    };
    check(app_fp4_gemm(&loader, stream, &products));
}

static void rope(void)
{
    app_rope_args rotate = {
        .q = q, .k = k_rows, .v = v_rows, .q_out = q, .k_cache = k_cache, .v_cache = v_cache,
        .frequencies = frequencies, .positions = positions, .slots = cache_slots,
        .n = tokens, .q_heads = 32, .k_heads = 8, .v_heads = 8, .rotary_dim = 128, .magnitude = 1,
        .pages = batch * pages_each, .page_size = 16,
    };
    app_rope_set_contiguous(&rotate); /* or your own strides */
    check(app_rope(&loader, stream, &rotate));
}

static void attention_prompt(void)
{
    app_attention_args prompt = {
        .q = q, .k = k_rows, .v = v_rows, .out = out, .causal = 1,
        .batch = 1, .q_heads = 32, .kv_heads = 8, .q_length = length, .k_length = length,
        .scale = 0.08838834764831845, /* 1 / sqrt(128) */
    };
    app_attention_set_contiguous(&prompt); /* [batch, length, heads, 128] */
    check(app_attention(&loader, stream, &prompt));
}

static void attention_step(void)
{
    app_attention_args step = {
        .q = q, .k = k_cache, .v = v_cache, .out = out, .causal = 1, .layout = APP_ATTENTION_LAYOUT_PAGED,
        .batch = batch, .q_heads = 32, .kv_heads = 8, .q_length = 1, .k_length = pages_each * 16,
        .scale = 0.08838834764831845,
        .sequences = {.k_lengths = lengths, .q_rows = batch},
        .pages = {.table = page_table, .stride = pages_each, .entries = batch * pages_each,
                  .count = batch * pages_each, .size = 16},
    };
    app_attention_set_contiguous(&step); /* pages of [16, heads, 128] */
    uint64_t bytes, counters;
    check(app_attention_workspace_max(&loader, &step, &bytes, &counters)); /* also for fewer keys and sequences */
    step.workspace = allocate(bytes), step.workspace_size = bytes / 4;
    step.tile_counters = allocate(counters); /* zeros */
    check(app_attention(&loader, stream, &step));
}

/* clang-format on */

static void open_device(const char *path)
{
    CUcontext context;
    check(kiln_driver_load(&driver, path, NULL));
    need(driver.init(0), "cuInit");
    need(driver.device_primary_ctx_retain(&context, 0), "cuDevicePrimaryCtxRetain");
    need(driver.ctx_set_current(context), "cuCtxSetCurrent");
    check(kiln_open(&loader, &driver, &app_bundle, slots, APP_SLOTS, NULL));
}

int main(int argc, char **argv)
{
    CUdeviceptr *const arrays[] = {&w_q,         &w_k,       &w_v,     &w_up,          &w_gate,
                                   &x,           &y,         &w,       &w_scales,      &w_zeros,
                                   &codes,       &scales,    &q,       &k_rows,        &v_rows,
                                   &out,         &k_cache,   &v_cache, &gamma_factors, &lengths,
                                   &frequencies, &positions, &rows,    &page_table,    &cache_slots};
    void (*const calls[])(void) = {
        int4,        nf4_gemm,         nf4_gemm_transposed, gguf_rows,       linear_qkv, linear_gated,
        linear_int4, rmsnorm_q4k_gemv, q4k_dequantize,      gguf_dequantize, nvfp4,      fp4_gemm,
        rope,        attention_prompt, attention_step};
    open_device(argc > 1 ? argv[1] : NULL);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = allocate(ARRAY_BYTES);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        calls[i]();
        need(driver.ctx_synchronize(), "cuCtxSynchronize");
    }
    puts("every call of the pages ran");
    return 0;
}
