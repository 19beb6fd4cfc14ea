/* Compares O and the log-sum-exp with their bounds, over many keys with equal scores, with scores that rise from the first keys
 * on, and at both ends of the scores' range. V has one row (its stride is 0), so the exact O is that row for any weights, and
 * the error of O is what the sums lose. Equal scores need only one row of K too.
 *
 *     attention_long DRIVER
 */
#include "../../calls.h"

#include <math.h>

#include "sample.h"

typedef sample_attention_args attention_args;

enum { MOST_DIM = 64, MOST_SPLITS = 4, K_STRIDE = 8 /* for rising scores: rows of K overlap */ };

typedef enum element { F16, BF16, F32, F64 } element;

static const uint32_t type_words[] = {
    [F16] = SAMPLE_ATTENTION_TYPE_F16,
    [BF16] = SAMPLE_ATTENTION_TYPE_BF16,
    [F32] = SAMPLE_ATTENTION_TYPE_F32,
    [F64] = SAMPLE_ATTENTION_TYPE_F64,
};
static const char *const type_names[] = {"f16", "bf16", "f32", "f64"};
static const double half_ulps[] = {0x1p-11, 0x1p-8, 0x1p-24, 0x1p-53};
static const size_t sizes[] = {2, 2, 4, 8};

/* ---- elements --------------------------------------------------------------------------------------------------- */

/* Decodes an element of at least 2^-14. */
static double decode(element type, const void *from, size_t i)
{
    uint16_t half;
    float single;
    double number;
    if (type == F64)
        return memcpy(&number, (const double *)from + i, sizeof number), number;
    if (type == F32)
        return memcpy(&single, (const float *)from + i, sizeof single), (double)single;
    memcpy(&half, (const uint16_t *)from + i, sizeof half);
    int fraction_bits = type == F16 ? 10 : 7, bias = type == F16 ? 15 : 127;
    int exponent = (half & 0x7fff) >> fraction_bits, fraction = half & ((1 << fraction_bits) - 1);
    double magnitude = exponent ? ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits) : 0;
    return half >> 15 ? -magnitude : magnitude;
}

/* Truncates x to the type; x is 0, or from 2^-14 to 2^15. */
static void encode(element type, void *to, size_t i, double x)
{
    if (type == F64) {
        ((double *)to)[i] = x;
    } else if (type == F32) {
        ((float *)to)[i] = (float)x;
    } else {
        int fraction_bits = type == F16 ? 10 : 7, bias = type == F16 ? 15 : 127, exponent;
        double half = frexp(fabs(x), &exponent); /* [1/2, 1) */
        unsigned fraction = (unsigned)ldexp(half, fraction_bits + 1) & ((1U << fraction_bits) - 1);
        unsigned bits = (unsigned)(exponent - 1 + bias) << fraction_bits | fraction;
        ((uint16_t *)to)[i] = (uint16_t)(x == 0 ? 0 : bits | (x < 0 ? 0x8000U : 0U));
    }
}

static double rounded(element type, double x)
{
    double held;
    encode(type, &held, 0, x);
    return decode(type, &held, 0);
}

/* ---- one problem ------------------------------------------------------------------------------------------------ */

typedef struct long_case {
    element type;
    uint32_t dim, keys, split_k;
    bool rises;
    double query, key, scale; /* if query is not 0, every score is the product of the three */
} long_case;

static unsigned char q[MOST_DIM * 8], v[MOST_DIM * 8], out[MOST_DIM * 8];

/* Returns the score of key j. The first 100 keys have the lowest scores, so the weights of later keys are added to small sums;
 * each further 3000 keys are above the keys before them. */
static double score_of(const long_case *c, uint32_t j)
{
    if (c->query != 0)
        return c->scale * c->query * rounded(c->type, c->key);
    if (!c->rises)
        return c->dim * 0.125;
    return j < 100 ? 1 : 1.3125 + j / 3000 * 0.25;
}

static CUdeviceptr upload_k(const long_case *c)
{
    size_t count = c->rises ? (size_t)c->keys * K_STRIDE + c->dim : c->dim;
    unsigned char *k = calloc(count, sizes[c->type]);
    need(k, "calloc");
    for (size_t i = 0; i < count && !c->rises; i++)
        encode(c->type, k, i, c->query == 0 ? 0.25 : i == 0 ? c->key : 0);
    for (uint32_t j = 0; j < c->keys && c->rises; j++)
        encode(c->type, k, (size_t)j * K_STRIDE, score_of(c, j));
    CUdeviceptr at = upload(k, count * sizes[c->type]);
    free(k);
    return at;
}

static attention_args arguments(const long_case *c)
{
    for (uint32_t d = 0; d < c->dim; d++) {
        encode(c->type, q, d, c->query != 0 ? (d == 0 ? c->query : 0) : c->rises ? d == 0 : 0.5);
        encode(c->type, v, d, 1 + fmod(d * 0.6180339887, 1));
    }
    size_t bytes = c->dim * sizes[c->type];
    attention_args a = {.q = upload(q, bytes),
                        .k = upload_k(c),
                        .v = upload(v, bytes),
                        .out = upload(q, bytes),
                        .lse = allocate(8),
                        .workspace = allocate(MOST_SPLITS * (MOST_DIM + 8) * 8),
                        .tile_counters = allocate(4),
                        .batch = 1,
                        .q_heads = 1,
                        .kv_heads = 1,
                        .q_length = 1,
                        .k_length = c->keys,
                        .scale = c->query != 0 ? c->scale : 1,
                        .k_row_stride = c->rises ? K_STRIDE : 0,
                        .workspace_size = c->split_k > 1 ? c->split_k * (c->dim + 8) : 0,
                        .type = type_words[c->type],
                        .head_dim = c->dim};
    set(a.tile_counters, 0, 4);
    return a;
}

static void release(const attention_args *a)
{
    const CUdeviceptr all[] = {a->q, a->k, a->v, a->out, a->lse, a->workspace, a->tile_counters};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        need(driver.mem_free(all[i]) == 0, "cuMemFree");
}

/* ---- the bounds of `kiln families attention` -------------------------------------------------------------------- */

typedef struct exact_sums {
    double most, log;      /* the largest score; the logarithm of the sum of exponentials */
    double deviation;      /* sum of p * d */
    double o_sums, l_sums; /* relative error of sums over the keys */
} exact_sums;

static exact_sums sum_exactly(const long_case *c)
{
    bool on_tensor_cores = c->type == F16 || c->type == BF16;
    double u = c->type == F64 ? 0x1p-53 : 0x1p-24, chunk = c->keys < 4096 ? c->keys : 4096, sum = 0;
    exact_sums e = {.most = score_of(c, c->keys - 1)};
    for (uint32_t j = 0; j < c->keys; j++) {
        double score = score_of(c, j), weight = exp(score - e.most);
        double size = fabs(score), d = u * ((c->dim + 2) * size + 2 * (e.most - score) + 8);
        sum += weight;
        e.deviation += weight * (d + (on_tensor_cores ? ceil(c->dim / 16.0) * 0x1p-20 * size : 0));
    }
    e.deviation /= sum;
    e.log = e.most + log(sum);
    e.o_sums = u * (c->keys + 4.0);
    e.l_sums = c->keys / 16.0;
    if (on_tensor_cores) {
        e.o_sums = half_ulps[c->type]; /* rounding of weights, and loss in sums */
        e.l_sums = chunk / 4 + c->keys / 4096.0;
    }
    e.l_sums = u * (e.l_sums + 2 * c->split_k + 8 + 8 * (fabs(e.log) + fabs(e.most)));
    return e;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void try_one(const long_case *c)
{
    attention_args a = arguments(c);
    launched = (launch){0};
    kiln_status status = sample_attention(&loader, NULL, &a);
    unsigned char log[8];
    double worst = 0, lse;
    exact_sums e = sum_exactly(c);
    download(out, a.out, c->dim * sizes[c->type]);
    download(log, a.lse, sizeof log);
    lse = decode(c->type == F64 ? F64 : F32, log, 0);
    for (uint32_t d = 0; d < c->dim; d++) {
        double row = decode(c->type, v, d), error = fabs(decode(c->type, out, d) - row);
        worst = fmax(worst, isnan(error) ? INFINITY : error / (row * (e.o_sums + half_ulps[c->type])));
    }
    double of_log = fabs(lse - e.log) / (e.deviation + e.l_sums);
    printf(
        "%-4s head_dim %2u, %7u keys, split_k %u, %s scores: O at %.3f of its bound, log-sum-exp at %.3f\n",
        type_names[c->type], c->dim, c->keys, c->split_k, c->rises ? "rising" : "equal", worst, of_log);
    judge(status == KILN_OK && launched.count == 1 && launched.grid[0] == c->split_k && worst <= 1 &&
              of_log <= 1,
          "sums over many keys", status);
    release(&a);
}

/* clang-format off */
static const struct {
    long_case c;
    uint32_t least_sm, most_sm;
} cases[] = {
    {{F16,  16, 4096,    1, true, 0, 0, 0},  75, -1U}, /* a chunk, and one key more */
    {{F16,  16, 4097,    1, true, 0, 0, 0},  75, -1U},
    {{BF16, 16, 16390,   4, true, 0, 0, 0},  80, -1U},
    {{F16,  64, 65536,   1, false, 0, 0, 0}, 75, -1U},
    {{BF16, 64, 65536,   4, false, 0, 0, 0}, 80, -1U},
    {{F16,  16, 65600,   4, true, 0, 0, 0},  75, -1U},
    {{BF16, 16, 65600,   1, true, 0, 0, 0},  80, -1U},
    {{F16,  16, 262144,  1, false, 0, 0, 0}, 75, -1U},
    {{BF16, 16, 262144,  4, false, 0, 0, 0}, 80, -1U},
    {{BF16, 16, 1 << 20, 1, false, 0, 0, 0}, 80, 89},
    {{F16,  16, 1 << 20, 1, false, 0, 0, 0}, 90, -1U},
    {{F32,  16, 65536,   1, false, 0, 0, 0}, 75, 89},
    {{F64,  16, 20000,   1, true, 0, 0, 0},  75, 89},
};
/* clang-format on */

/* Scores at both ends of their range, with 70 keys: ln(70) is 4.2484952420493594. */
static void try_ends(void)
{
    static const struct {
        element type;
        double query, key, scale;
    } ends[] = {
        {F32, 0x1p60, 0x1p66, 1},          {F32, 0x1p60, -0x1p66, 1},          {F32, 0x1p-60, 0x1p-66, 1},
        {F32, 1, -4.2484952420493594, 1},  {F32, 0x1p60, 0x1p66, 0x1p-126},    {F32, 0x1p60, 0x1p66, 0},
        {F64, 0x1p500, 0x1p520, 1},        {F64, 0x1p500, -0x1p520, 1},        {F64, 0x1p-500, 0x1p-520, 1},
        {F64, 1, -4.2484952420493594, 1},  {F64, 0x1p500, 0x1p520, 0x1p-1022}, {F64, 0x1p500, 0x1p520, 0},
        {F16, 0x1p15, 0x1p15, 0x1p96},     {F16, 0x1p15, -0x1p15, 0x1p96},     {F16, 0x1p-14, 0x1p-14, 1},
        {F16, 1, -4.2484952420493594, 1},  {F16, 0x1p15, 0x1p15, 0x1p-126},    {F16, 0x1p15, 0x1p15, 0},
        {BF16, 0x1p60, 0x1p66, 1},         {BF16, 0x1p60, -0x1p66, 1},         {BF16, 0x1p-60, 0x1p-66, 1},
        {BF16, 1, -4.2484952420493594, 1}, {BF16, 0x1p60, 0x1p66, 0x1p-126},   {BF16, 0x1p60, 0x1p66, 0},
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (ends[i].type == BF16 && loader.device.sm < 80)
            continue;
        printf("query %.3g, key %.3g, scale %.3g: ", ends[i].query, ends[i].key, ends[i].scale);
        try_one(&(long_case){ends[i].type, 16, 70, 1, false, ends[i].query, ends[i].key, ends[i].scale});
    }
}

int main(int argc, char **argv)
{
    need(argc == 2, "attention_long DRIVER");
    open_device(argv[1], &sample_bundle);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (loader.device.sm >= cases[i].least_sm && loader.device.sm <= cases[i].most_sm)
            try_one(&cases[i].c);
    try_ends();
    return end_calls();
}
