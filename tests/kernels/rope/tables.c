/* Code to copy: computes rope's table of frequencies from a model's configuration. Then tests: rotates a layer's Q and K in place,
 * as parts of one matrix, with the tokens' own rows as the cache; rotates only Q; appends only K and V; fills paged 8-bit caches
 * that attention reads.
 *
 * usage: rope_tables DRIVER
 *        rope_tables table KIND ROTARY_DIM THETA FACTOR LENGTH LOW HIGH MSCALE ALL_DIM whole|fractions
 *                                                                        prints the magnitude and the table
 */
#include "../../calls.h"

#include <math.h>

#include "sample.h"

/* ---- the table ---------------------------------------------------------------------------------------------------- */

/* rope_scaling of a model's configuration, as Hugging Face's transformers reads it; rope_type is the kind. */
typedef struct rope_scaling {
    enum { ROPE_DEFAULT, ROPE_LINEAR, ROPE_LLAMA3, ROPE_YARN } kind;
    double theta;  /* rope_theta */
    double factor; /* all kinds except the default */
    double length; /* original_max_position_embeddings: llama3, yarn */
    double low,
        high; /* llama3: low_freq_factor and high_freq_factor; yarn: beta_slow and beta_fast, usually 1 and 32 */
    double mscale, mscale_all_dim; /* yarn: 0 if the configuration lacks one */
    bool is_not_truncated;         /* yarn: "truncate" is false, as for gpt-oss */
} rope_scaling;

static const long double two_pi = 6.283185307179586476925286766559005768L;

/* Returns the share of a frequency that stays unchanged; the rest is divided by the factor. A pair makes `turns` turns over
 * the original length. */
static long double share_kept(const rope_scaling *s, uint32_t pair, uint32_t rotary_dim, long double turns)
{
    const long double per_turn = rotary_dim / (2 * logl((long double)s->theta));
    long double first, last;
    switch (s->kind) {
    case ROPE_DEFAULT:
        return 1;
    case ROPE_LINEAR:
        return 0;
    case ROPE_LLAMA3:
        return fminl(fmaxl((turns - s->low) / (s->high - s->low), 0), 1);
    case ROPE_YARN: /* a ramp over pairs, from beta_fast turns to beta_slow turns */
    default:
        first = per_turn * logl((long double)s->length / (s->high * two_pi));
        last = per_turn * logl((long double)s->length / (s->low * two_pi));
        first = fmaxl(s->is_not_truncated ? first : floorl(first), 0);
        last = fminl(s->is_not_truncated ? last : ceill(last), rotary_dim - 1);
        return 1 - fminl(fmaxl((pair - first) / (last > first ? last - first : 0.001L), 0), 1);
    }
}

/* The magnitude. An attention_factor of the configuration replaces it. */
static double rope_magnitude(const rope_scaling *s)
{
    const double step = s->kind == ROPE_YARN && s->factor > 1 ? 0.1 * log(s->factor) : 0;
    return s->mscale > 0 && s->mscale_all_dim > 0 ? (step * s->mscale + 1) / (step * s->mscale_all_dim + 1)
                                                  : step + 1;
}

/* Fills rotary_dim / 2 frequencies, as fractions of a turn per position. Returns the magnitude. */
static double rope_table(const rope_scaling *s, uint32_t rotary_dim, uint64_t frequencies[])
{
    for (uint32_t pair = 0; pair < rotary_dim / 2; pair++) {
        const long double angle = powl((long double)s->theta, -2 * (long double)pair / rotary_dim);
        const long double kept = share_kept(s, pair, rotary_dim, (long double)s->length * angle / two_pi);
        const long double scaled = kept == 1 ? angle : angle * kept + angle * (1 - kept) / s->factor;
        frequencies[pair] = (uint64_t)roundl(ldexpl(scaled / two_pi, 64));
    }
    return rope_magnitude(s);
}

static int print_table(char **words)
{
    static const char *const kinds[] = {"default", "linear", "llama3", "yarn"};
    static uint64_t frequencies[128];
    rope_scaling s = {.theta = strtod(words[2], NULL),
                      .factor = strtod(words[3], NULL),
                      .length = strtod(words[4], NULL),
                      .low = strtod(words[5], NULL),
                      .high = strtod(words[6], NULL),
                      .mscale = strtod(words[7], NULL),
                      .mscale_all_dim = strtod(words[8], NULL),
                      .is_not_truncated = strcmp(words[9], "whole") != 0};
    const uint32_t rotary_dim = (uint32_t)strtoul(words[1], NULL, 10);
    for (int kind = 0; kind < 4; kind++) {
        if (strcmp(words[0], kinds[kind]) == 0)
            s.kind = kind;
    }
    printf("%.17g\n", rope_table(&s, rotary_dim, frequencies));
    for (uint32_t pair = 0; pair < rotary_dim / 2; pair++)
        printf("%llu\n", (unsigned long long)frequencies[pair]);
    return 0;
}

/* ---- in place ----------------------------------------------------------------------------------------------------- */

enum { HEAD_DIM = 96, ROTARY_DIM = 64, TOKENS = 5, Q_HEADS = 3, HEADS = Q_HEADS + 2, ROW = HEADS * HEAD_DIM };

static const rope_scaling yarn = {
    .kind = ROPE_YARN, .theta = 10000, .factor = 8, .length = 4096, .low = 1, .high = 32};
static const uint32_t positions[TOKENS] = {0, 1, 131072, 4095, 0x80000000};

/* Rotates pairs of neighbours; V and the elements after rotary_dim stay unchanged. */
static double rotated(const float row[ROW], uint32_t element, uint32_t position, const uint64_t frequencies[],
                      double magnitude)
{
    const uint32_t i = element % HEAD_DIM;
    if (i >= ROTARY_DIM || element / HEAD_DIM == HEADS - 1)
        return row[element];
    const uint64_t turn = position * frequencies[i / 2];
    const long double angle = ldexpl((long double)turn, -64) * two_pi;
    const long double c = magnitude * cosl(angle), s = magnitude * sinl(angle);
    return (double)(i % 2 ? row[element - 1] * s + row[element] * c
                          : row[element] * c - row[element + 1] * s);
}

static void check_in_place(void)
{
    static float before[TOKENS][ROW], after[TOKENS][ROW];
    static uint64_t frequencies[ROTARY_DIM / 2];
    static const int64_t slots[TOKENS] = {0, 1, 2, -1, 4};
    const double magnitude = rope_table(&yarn, ROTARY_DIM, frequencies);
    for (uint32_t i = 0; i < TOKENS * ROW; i++)
        before[i / ROW][i % ROW] = sinf((float)i);
    const CUdeviceptr all = upload(before, sizeof before), k = all + Q_HEADS * HEAD_DIM * sizeof(float),
                      v = k + HEAD_DIM * sizeof(float);
    const sample_rope_args args = {.q = all,
                                   .k = k,
                                   .v = v,
                                   .frequencies = upload(frequencies, sizeof frequencies),
                                   .positions = upload(positions, sizeof positions),
                                   .slots = upload(slots, sizeof slots),
                                   .q_out = all,
                                   .k_cache = k,
                                   .v_cache = v,
                                   .n = TOKENS,
                                   .q_heads = Q_HEADS,
                                   .k_heads = 1,
                                   .v_heads = 1,
                                   .rotary_dim = ROTARY_DIM,
                                   .magnitude = (float)magnitude,
                                   .pages = TOKENS,
                                   .page_size = 1,
                                   .q_row_stride = ROW,
                                   .q_head_stride = HEAD_DIM,
                                   .k_row_stride = ROW,
                                   .v_row_stride = ROW,
                                   .out_row_stride = ROW,
                                   .out_head_stride = HEAD_DIM,
                                   .cache_page_stride = ROW,
                                   .type = SAMPLE_ROPE_TYPE_F32,
                                   .head_dim = HEAD_DIM,
                                   .pairs = SAMPLE_ROPE_PAIRS_NEIGHBOURS,
                                   .cache = SAMPLE_ROPE_CACHE_SAME};
    const kiln_status status = sample_rope(&loader, NULL, &args);
    download(after, all, sizeof after);
    double worst = 0;
    for (uint32_t i = 0; i < TOKENS * ROW; i++) {
        const uint32_t token = i / ROW, element = i % ROW;
        const bool stays = slots[token] < 0 && element >= Q_HEADS * HEAD_DIM;
        const double exact =
            stays ? before[token][element]
                  : rotated(before[token], element, positions[token], frequencies, (float)magnitude);
        worst = fmax(worst, fabs(after[token][element] - exact));
    }
    judge(status == KILN_OK && worst > 0 && worst < 0x1p-20, "in place", status); /* for pairs up to 1 */
}

/* ---- parts -------------------------------------------------------------------------------------------------------- */

enum { PART_DIM = 16, PART_HEADS = 2, PART_PAGES = 3, PART_PAGE = 2, PART_ROW = PART_HEADS * PART_DIM };

/* Rotates Q by angle 0, or appends K and V, with strides for arrays without gaps: those of the absent arrays are 0. */
static void check_part(uint32_t q_heads, uint32_t cache_heads, uint32_t cache, const char *what)
{
    static float in[TOKENS][PART_ROW], out[TOKENS + 1][PART_ROW];
    static const uint64_t frequencies[PART_DIM / 2];
    static const int64_t slots[TOKENS] = {0, 1, 2, 3, 4};
    for (uint32_t i = 0; i < TOKENS * PART_ROW; i++)
        in[i / PART_ROW][i % PART_ROW] = (float)(i + 1);
    const CUdeviceptr all = upload(in, sizeof in), at_out = allocate(sizeof out);
    const bool is_same = cache == SAMPLE_ROPE_CACHE_SAME;
    sample_rope_args args = {.q = q_heads ? all : 0,
                             .k = cache_heads ? all : 0,
                             .v = cache_heads ? all : 0,
                             .frequencies = upload(frequencies, sizeof frequencies),
                             .positions = upload(positions, sizeof positions),
                             .slots = cache_heads ? upload(slots, sizeof slots) : 0,
                             .q_out = q_heads ? at_out : 0,
                             .k_cache = cache_heads && is_same ? at_out : 0,
                             .v_cache = cache_heads && is_same ? allocate(sizeof out) : 0,
                             .n = TOKENS,
                             .q_heads = q_heads,
                             .k_heads = cache_heads,
                             .v_heads = cache_heads,
                             .rotary_dim = PART_DIM,
                             .magnitude = 1,
                             .pages = PART_PAGES,
                             .page_size = PART_PAGE,
                             .type = SAMPLE_ROPE_TYPE_F32,
                             .head_dim = PART_DIM,
                             .pairs = SAMPLE_ROPE_PAIRS_HALVES,
                             .cache = cache};
    sample_rope_set_contiguous(&args);
    const kiln_status status = sample_rope(&loader, NULL, &args);
    download(out, at_out, sizeof out);
    bool is_right = status == KILN_OK;
    for (uint32_t i = 0; i < TOKENS * PART_ROW; i++)
        is_right &= in[i / PART_ROW][i % PART_ROW] == out[i / PART_ROW][i % PART_ROW];
    judge(is_right, what, status);
}

/* ---- caches of 8 bits --------------------------------------------------------------------------------------------- */

enum {
    DIM = 64,
    LENGTH = 37, /* tokens of the sequence; its last query attends */
    QUERY_HEADS = 4,
    CACHE_HEADS = 2,
    ALL_HEADS = QUERY_HEADS + 2 * CACHE_HEADS,
    PAGE = 16,
    PAGES = 4,
    CACHE_ROW = CACHE_HEADS * DIM,
    WORKSPACE = QUERY_HEADS * (DIM + 8), /* floats, for a single part, because there are few keys */
    COUNTERS = 17 * QUERY_HEADS
};

static const int32_t pages[PAGES] = {2, 0, 3, -1};

/* Converts 0 or a normal number that is exact in f16. */
static uint16_t half_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x == 0 ? 0
                  : (uint16_t)(bits >> 16 & 0x8000) | (uint16_t)(((bits & 0x7fffffff) - (112U << 23)) >> 13);
}

static float number_of_half(uint16_t half)
{
    const int exponent = half >> 10 & 31, sign = half & 0x8000 ? -1 : 1;
    const float fraction = (float)(half & 1023);
    return (float)sign * (exponent ? ldexpf(1024 + fraction, exponent - 25) : ldexpf(fraction, -24));
}

static float rows[LENGTH][ALL_HEADS][DIM];

/* Rows of different sizes, whose largest keys are far apart. */
static void make_tokens(uint16_t halves[LENGTH][ALL_HEADS][DIM])
{
    for (uint32_t i = 0; i < LENGTH * ALL_HEADS * DIM; i++) {
        const uint32_t token = i / (ALL_HEADS * DIM), head = i / DIM % ALL_HEADS, d = i % DIM;
        const float size = head < QUERY_HEADS ? 96 : (float)(8 << token % 4);
        const float x = rintf(size * sinf(0.37f * (float)i + (float)(i % 11))) / 64;
        rows[token][head][d] = x;
        halves[token][head][d] = half_of(x);
    }
}

/* Computes in float64, from the numbers before quantisation. */
static double attended(uint32_t head, uint32_t column)
{
    const uint32_t k = QUERY_HEADS + head / (QUERY_HEADS / CACHE_HEADS), v = k + CACHE_HEADS;
    double sum = 0, weights = 0;
    for (uint32_t j = 0; j < LENGTH; j++) {
        double score = 0;
        for (uint32_t d = 0; d < DIM; d++)
            score += (double)rows[LENGTH - 1][head][d] * rows[j][k][d];
        weights += exp(score / 8);
        sum += exp(score / 8) * rows[j][v][column];
    }
    return sum / weights;
}

/* Without rotation the only loss is the rounding of codes: one step in V, and the same in the scores. */
static void check_cache(uint32_t cache, uint32_t kv, const char *what, double most)
{
    static uint16_t halves[LENGTH][ALL_HEADS][DIM], out[QUERY_HEADS][DIM];
    static const uint64_t frequencies[DIM / 2];
    static const uint32_t at_start[LENGTH];
    static const uint32_t length = LENGTH, counters[COUNTERS];
    const float scales[CACHE_HEADS] = {0x1p-6f, 0x1.8p-6f};
    int64_t slots[LENGTH];
    for (uint32_t i = 0; i < LENGTH; i++)
        slots[i] = (int64_t)pages[i / PAGE] * PAGE + i % PAGE;
    make_tokens(halves);
    const CUdeviceptr q = upload(halves, sizeof halves), k = q + QUERY_HEADS * DIM * sizeof **halves[0],
                      v = k + CACHE_ROW * sizeof **halves[0], of_heads = upload(scales, sizeof scales),
                      k_codes = allocate(PAGES * PAGE * CACHE_ROW),
                      v_codes = allocate(PAGES * PAGE * CACHE_ROW),
                      k_scales = allocate(PAGES * PAGE * CACHE_HEADS * sizeof(float)),
                      v_scales = allocate(PAGES * PAGE * CACHE_HEADS * sizeof(float)),
                      at_out = allocate(sizeof out);
    const bool is_of_tokens = kv == SAMPLE_ATTENTION_KV_INT8_TOKEN;
    const sample_rope_args write = {.q = q,
                                    .k = k,
                                    .v = v,
                                    .frequencies = upload(frequencies, sizeof frequencies),
                                    .positions = upload(at_start, sizeof at_start),
                                    .slots = upload(slots, sizeof slots),
                                    .q_out = q,
                                    .k_codes = k_codes,
                                    .v_codes = v_codes,
                                    .k_scale = is_of_tokens ? 0 : of_heads,
                                    .v_scale = is_of_tokens ? 0 : of_heads,
                                    .k_scales = is_of_tokens ? k_scales : 0,
                                    .v_scales = is_of_tokens ? v_scales : 0,
                                    .n = LENGTH,
                                    .q_heads = QUERY_HEADS,
                                    .k_heads = CACHE_HEADS,
                                    .v_heads = CACHE_HEADS,
                                    .rotary_dim = DIM,
                                    .magnitude = 1,
                                    .pages = PAGES,
                                    .page_size = PAGE,
                                    .q_row_stride = ALL_HEADS * DIM,
                                    .q_head_stride = DIM,
                                    .k_row_stride = ALL_HEADS * DIM,
                                    .k_head_stride = DIM,
                                    .v_row_stride = ALL_HEADS * DIM,
                                    .v_head_stride = DIM,
                                    .out_row_stride = ALL_HEADS * DIM,
                                    .out_head_stride = DIM,
                                    .cache_page_stride = PAGE * CACHE_ROW,
                                    .cache_row_stride = CACHE_ROW,
                                    .cache_head_stride = DIM,
                                    .scale_page_stride = PAGE * CACHE_HEADS,
                                    .scale_row_stride = CACHE_HEADS,
                                    .scale_head_stride = 1,
                                    .type = SAMPLE_ROPE_TYPE_F16,
                                    .head_dim = DIM,
                                    .pairs = SAMPLE_ROPE_PAIRS_HALVES,
                                    .cache = cache};
    const sample_attention_args read = {.q = q + (LENGTH - 1) * sizeof *halves,
                                        .k_codes = k_codes,
                                        .v_codes = v_codes,
                                        .k_scale = write.k_scale,
                                        .v_scale = write.v_scale,
                                        .k_scales = write.k_scales,
                                        .v_scales = write.v_scales,
                                        .out = at_out,
                                        .batch = 1,
                                        .q_heads = QUERY_HEADS,
                                        .kv_heads = CACHE_HEADS,
                                        .q_length = 1,
                                        .k_length = PAGES * PAGE,
                                        .scale = 0.125,
                                        .q_row_stride = ALL_HEADS * DIM,
                                        .q_head_stride = DIM,
                                        .out_row_stride = QUERY_HEADS * DIM,
                                        .out_head_stride = DIM,
                                        .k_batch_stride = write.cache_page_stride,
                                        .k_row_stride = CACHE_ROW,
                                        .k_head_stride = DIM,
                                        .v_batch_stride = write.cache_page_stride,
                                        .v_row_stride = CACHE_ROW,
                                        .v_head_stride = DIM,
                                        .scale_batch_stride = write.scale_page_stride,
                                        .scale_row_stride = CACHE_HEADS,
                                        .scale_head_stride = 1,
                                        .workspace = allocate(WORKSPACE * sizeof(float)),
                                        .workspace_size = WORKSPACE,
                                        .tile_counters = upload(counters, sizeof counters),
                                        .sequences.k_lengths = upload(&length, sizeof length),
                                        .sequences.q_rows = 1,
                                        .pages.table = upload(pages, sizeof pages),
                                        .pages.entries = PAGES,
                                        .pages.count = PAGES,
                                        .pages.size = PAGE,
                                        .type = SAMPLE_ATTENTION_TYPE_F16,
                                        .head_dim = DIM,
                                        .layout = SAMPLE_ATTENTION_LAYOUT_PAGED,
                                        .kv = kv};
    kiln_status status = sample_rope(&loader, NULL, &write);
    if (status == KILN_OK)
        status = sample_attention(&loader, NULL, &read);
    download(out, at_out, sizeof out);
    double worst = 0;
    for (uint32_t i = 0; i < QUERY_HEADS * DIM; i++)
        worst = fmax(worst, fabs(number_of_half(out[i / DIM][i % DIM]) - attended(i / DIM, i % DIM)));
    printf("%s: within %.5f\n", what, worst);
    judge(status == KILN_OK && worst > 0 && worst < most, what, status);
}

int main(int argc, char **argv)
{
    if (argc == 12 && strcmp(argv[1], "table") == 0)
        return print_table(argv + 2);
    need(argc == 2, "rope_tables DRIVER");
    open_device(argv[1], &sample_bundle);
    check_in_place();
    check_part(PART_HEADS, 0, SAMPLE_ROPE_CACHE_SAME, "Q alone");
    check_part(PART_HEADS, 0, SAMPLE_ROPE_CACHE_INT8_TOKEN, "Q alone, with a cache of int8_token");
    check_part(0, PART_HEADS, SAMPLE_ROPE_CACHE_SAME, "K and V alone");
    check_cache(SAMPLE_ROPE_CACHE_E4M3, SAMPLE_ATTENTION_KV_E4M3, "attention over e4m3", 0.04);
    check_cache(SAMPLE_ROPE_CACHE_INT8, SAMPLE_ATTENTION_KV_INT8, "attention over int8", 0.01);
    check_cache(SAMPLE_ROPE_CACHE_INT8_TOKEN, SAMPLE_ATTENTION_KV_INT8_TOKEN, "attention over int8_token",
                0.005);
    return end_calls();
}
