/* The function for a single head: against float64, at lengths beside a tile's and with as many as the published kernels
 * read stale keys for; the same bits as the family's own function; and what it refuses.
 *
 * usage: attention_single_head DRIVER
 */
#include "../calls.h"

#include <math.h>

#include "attention_sample.h"

enum { HEAD_DIM = 16, LONGEST = 100, NUMBERS = LONGEST * HEAD_DIM };

static float q[NUMBERS], k[NUMBERS], v[NUMBERS];
static CUdeviceptr at_q, at_k, at_v, at_out;

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

static void judge_at(bool is_right, const char *what, uint32_t seq_len, kiln_status status)
{
    char text[64];
    snprintf(text, sizeof text, "%s, seq_len %u", what, (unsigned)seq_len);
    judge(is_right, text, status);
    launched.count = 0;
}

/* Right in all rows, and nothing behind them touched. */
static void check_values(uint32_t seq_len)
{
    static float out[NUMBERS];
    const attention_sample_attention_single_head_args args = single(seq_len);
    upload_to(at_out, v, sizeof v);
    const kiln_status status = attention_sample_attention_single_head(&loader, NULL, &args);
    download(out, at_out, sizeof out);
    bool is_right = status == KILN_OK && memcmp(out + seq_len * HEAD_DIM, v + seq_len * HEAD_DIM,
                                                (LONGEST - seq_len) * HEAD_DIM * sizeof *out) == 0;
    for (uint32_t row = 0; row < seq_len; row++) {
        double exact[HEAD_DIM];
        attend(row, exact);
        for (uint32_t d = 0; d < HEAD_DIM; d++)
            is_right &= fabs(out[row * HEAD_DIM + d] - exact[d]) <= 0x1p-20; /* of values up to 1 */
    }
    judge_at(is_right, "against float64", seq_len, status);
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
    upload_to(at_out, v, sizeof v);
    const kiln_status one = attention_sample_attention_single_head(&loader, NULL, &a);
    download(out, at_out, sizeof out);
    upload_to(at_out, v, sizeof v);
    const kiln_status other = attention_sample_attention(&loader, NULL, &all);
    download(same, at_out, sizeof same);
    const bool is_right = one == KILN_OK && other == KILN_OK && memcmp(out, same, sizeof out) == 0;
    judge_at(is_right, "the bits of the family's function", seq_len, other);
}

/* An empty cache: K and V are not there, and O is zero. */
static void check_no_keys(void)
{
    static float out[NUMBERS], zero[NUMBERS];
    const attention_sample_attention_single_head_args a = single(LONGEST);
    attention_sample_attention_args all = {.q = a.q,
                                           .out = a.out,
                                           .batch = 1,
                                           .q_heads = 1,
                                           .kv_heads = 1,
                                           .q_length = LONGEST,
                                           .scale = a.scale,
                                           .q_row_stride = HEAD_DIM,
                                           .out_row_stride = HEAD_DIM,
                                           .type = a.type,
                                           .head_dim = a.head_dim,
                                           .causal = a.causal};
    upload_to(at_out, v, sizeof v);
    kiln_status status = attention_sample_attention(&loader, NULL, &all);
    download(out, at_out, sizeof out);
    judge_at(status == KILN_OK && memcmp(out, zero, sizeof out) == 0, "no keys, K and V null", LONGEST,
             status);
    all.k_length = 1;
    status = attention_sample_attention(&loader, NULL, &all);
    judge_at(status == KILN_ERROR_NULL_POINTER && launched.count == 0, "one key, K and V null", LONGEST,
             status);
}

static void expect_refused(const char *what, const attention_sample_attention_single_head_args *args,
                           kiln_status wanted)
{
    expect(what, attention_sample_attention_single_head(&loader, NULL, args), wanted, 0);
}

static void check_refused(void)
{
    attention_sample_attention_single_head_args args = single(LONGEST);
    expect_refused("no arguments", NULL, KILN_ERROR_NULL_POINTER);
    args.k = 0;
    expect_refused("k is null", &args, KILN_ERROR_NULL_POINTER);
    args = single(LONGEST);
    args.v += 4;
    expect_refused("v is misaligned", &args, KILN_ERROR_MISALIGNED);
    args = single(LONGEST);
    args.head_dim = 208;
    expect_refused("no such head_dim", &args, KILN_ERROR_NO_VARIANT);
    static const double scales[] = {-1, NAN, INFINITY, -INFINITY, 1e39}; /* the last is infinite in f32 */
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        args = single(LONGEST);
        args.scale = scales[i];
        expect_refused("scale is negative, not finite or beyond f32", &args, KILN_ERROR_BAD_ARGUMENT);
    }
    args = single(0);
    expect_refused("nothing to do", &args, KILN_OK);
}

int main(int argc, char **argv)
{
    static const uint32_t lengths[] = {1, 2, 31, 32, 33, 63, 64, 65, LONGEST};
    need(argc == 2, "attention_single_head DRIVER");
    open_device(argv[1], &attention_sample_bundle);
    make_inputs();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        check_values(lengths[i]);
        check_bits(lengths[i]);
    }
    check_no_keys();
    check_refused();
    return end_calls();
}
