/* The function for a single head: against float64, at lengths beside a tile's and with as many as the published kernels
 * read stale keys for; the same bits as the family's own function; and what it refuses.
 *
 * usage: attention_single_head DRIVER
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_sample.h"

enum { HEAD_DIM = 16, LONGEST = 100, NUMBERS = LONGEST * HEAD_DIM };

static kiln_driver driver;
static kiln_slot slots[ATTENTION_SAMPLE_SLOTS];
static kiln_loader loader;
static float q[NUMBERS], k[NUMBERS], v[NUMBERS];
static CUdeviceptr at_q, at_k, at_v, at_out;
static unsigned wrong;

static void need(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

static void judge(bool is_right, const char *what, uint32_t seq_len)
{
    wrong += !is_right;
    printf("%s %s, seq_len %u\n", is_right ? "ok   " : "WRONG", what, (unsigned)seq_len);
}

static CUdeviceptr upload(const void *from, size_t bytes)
{
    CUdeviceptr address = 0;
    need(driver.mem_alloc(&address, bytes) == 0 && driver.memcpy_htod(address, from, bytes) == 0,
         "an upload");
    return address;
}

static void open_device(const char *path)
{
    CUcontext context = NULL;
    need(kiln_driver_load(&driver, path, NULL) == KILN_OK && driver.init(0) == 0, "the driver");
    need(driver.device_primary_ctx_retain(&context, 0) == 0 && driver.ctx_set_current(context) == 0,
         "the context");
    need(kiln_open(&loader, &driver, &attention_sample_bundle, slots, ATTENTION_SAMPLE_SLOTS, NULL) ==
             KILN_OK,
         "kiln_open");
}

static void make_inputs(void)
{
    for (int i = 0; i < NUMBERS; i++) {
        q[i] = sinf((float)i);
        k[i] = cosf(0.7f * (float)i);
        v[i] = sinf(1.3f * (float)i + 1);
    }
    at_q = upload(q, sizeof q);
    at_k = upload(k, sizeof k);
    at_v = upload(v, sizeof v);
    at_out = upload(v, sizeof v);
}

static attention_sample_attention_single_head_args single(uint32_t seq_len)
{
    return (attention_sample_attention_single_head_args){.q = at_q,
                                                         .k = at_k,
                                                         .v = at_v,
                                                         .out = at_out,
                                                         .seq_len = seq_len,
                                                         .scale = 0.25,
                                                         .type = ATTENTION_SAMPLE_ATTENTION_TYPE_F32,
                                                         .head_dim = HEAD_DIM,
                                                         .causal = 1};
}

/* The driver's memory after a launch. */
static void fetch(float *out)
{
    need(driver.ctx_synchronize() == 0 && driver.memcpy_dtoh(out, at_out, sizeof q) == 0, "a download");
}

/* One row of O; float64. */
static void attend(uint32_t row, double *out)
{
    double sum = 0;
    memset(out, 0, HEAD_DIM * sizeof *out);
    for (uint32_t j = 0; j <= row; j++) {
        double score = 0;
        for (int d = 0; d < HEAD_DIM; d++)
            score += (double)q[row * HEAD_DIM + (uint32_t)d] * k[j * HEAD_DIM + (uint32_t)d];
        const double weight = exp(0.25 * score); /* the scores are at most 4 */
        sum += weight;
        for (int d = 0; d < HEAD_DIM; d++)
            out[d] += weight * v[j * HEAD_DIM + (uint32_t)d];
    }
    for (int d = 0; d < HEAD_DIM; d++)
        out[d] /= sum;
}

/* Right in all rows, and nothing behind them touched. */
static void check_values(uint32_t seq_len)
{
    static float out[NUMBERS];
    const attention_sample_attention_single_head_args args = single(seq_len);
    need(driver.memcpy_htod(at_out, v, sizeof v) == 0, "an upload");
    const kiln_status status = attention_sample_attention_single_head(&loader, NULL, &args);
    fetch(out);
    bool is_right = status == KILN_OK && memcmp(out + seq_len * HEAD_DIM, v + seq_len * HEAD_DIM,
                                                (LONGEST - seq_len) * HEAD_DIM * sizeof *out) == 0;
    for (uint32_t row = 0; row < seq_len; row++) {
        double exact[HEAD_DIM];
        attend(row, exact);
        for (uint32_t d = 0; d < HEAD_DIM; d++)
            is_right &= fabs(out[row * HEAD_DIM + d] - exact[d]) <= 0x1p-20; /* of values up to 1 */
    }
    judge(is_right, "against float64", seq_len);
}

static void check_bits(uint32_t seq_len)
{
    static float out[NUMBERS], same[NUMBERS];
    const attention_sample_attention_single_head_args a = single(seq_len);
    const attention_sample_attention_args all = {.q = a.q,
                                                 .k = a.k,
                                                 .v = a.v,
                                                 .out = a.out,
                                                 .batch = 1,
                                                 .q_heads = 1,
                                                 .kv_heads = 1,
                                                 .q_length = seq_len,
                                                 .k_length = seq_len,
                                                 .scale = a.scale,
                                                 .q_row_stride = HEAD_DIM,
                                                 .k_row_stride = HEAD_DIM,
                                                 .v_row_stride = HEAD_DIM,
                                                 .out_row_stride = HEAD_DIM,
                                                 .type = a.type,
                                                 .head_dim = a.head_dim,
                                                 .causal = a.causal};
    bool is_right = attention_sample_attention_single_head(&loader, NULL, &a) == KILN_OK;
    fetch(out);
    is_right &= attention_sample_attention(&loader, NULL, &all) == KILN_OK;
    fetch(same);
    judge(is_right && memcmp(out, same, sizeof out) == 0, "the bits of the family's function", seq_len);
}

static void check_refused(void)
{
    attention_sample_attention_single_head_args args = single(LONGEST);
    judge(attention_sample_attention_single_head(&loader, NULL, NULL) == KILN_ERROR_NULL_POINTER,
          "no arguments", 0);
    args.k = 0;
    judge(attention_sample_attention_single_head(&loader, NULL, &args) == KILN_ERROR_NULL_POINTER,
          "k is null", LONGEST);
    args = single(LONGEST);
    args.v += 4;
    judge(attention_sample_attention_single_head(&loader, NULL, &args) == KILN_ERROR_MISALIGNED,
          "v is misaligned", LONGEST);
    args = single(LONGEST);
    args.head_dim = 208;
    judge(attention_sample_attention_single_head(&loader, NULL, &args) == KILN_ERROR_NO_VARIANT,
          "no such head_dim", LONGEST);
    args = single(0);
    judge(attention_sample_attention_single_head(&loader, NULL, &args) == KILN_OK, "nothing to do", 0);
}

int main(int argc, char **argv)
{
    static const uint32_t lengths[] = {1, 2, 31, 32, 33, 63, 64, 65, LONGEST};
    need(argc == 2, "attention_single_head DRIVER");
    open_device(argv[1]);
    make_inputs();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        check_values(lengths[i]);
        check_bits(lengths[i]);
    }
    check_refused();
    kiln_close(&loader);
    return wrong != 0;
}
