/* The table of frequencies that rope takes, as models' configurations describe it, to copy; and a layer's Q and K rotated in
 * place, as parts of one matrix, with slots that are the tokens' own rows.
 *
 * usage: attention_rope DRIVER
 *        attention_rope table KIND ROTARY_DIM THETA FACTOR LENGTH LOW HIGH    prints the magnitude and the table
 */
#include "../calls.h"

#include <math.h>

#include "attention_sample.h"

/* ---- the table ---------------------------------------------------------------------------------------------------- */

/* rope_scaling of a model's configuration, as Hugging Face's transformers reads it; rope_type is the kind. */
typedef struct rope_scaling {
    enum { ROPE_DEFAULT, ROPE_LINEAR, ROPE_LLAMA3, ROPE_YARN } kind;
    double theta;  /* rope_theta */
    double factor; /* all but the default */
    double length; /* original_max_position_embeddings: llama3, yarn */
    double low,
        high; /* llama3: low_freq_factor and high_freq_factor; yarn: beta_slow and beta_fast, usually 1 and 32 */
} rope_scaling;

static const long double two_pi = 6.283185307179586476925286766559005768L;

/* The share of a frequency that stays as it was; the rest is divided by the factor. A pair turns `turns` times over the
 * original length. */
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
    case ROPE_YARN: /* a ramp over pairs, from the one that turns beta_fast times to that of beta_slow */
    default:
        first = fmaxl(floorl(per_turn * logl((long double)s->length / (s->high * two_pi))), 0);
        last = fminl(ceill(per_turn * logl((long double)s->length / (s->low * two_pi))), rotary_dim - 1);
        return 1 - fminl(fmaxl((pair - first) / (last > first ? last - first : 0.001L), 0), 1);
    }
}

/* Fills rotary_dim / 2 frequencies, fractions of a turn for each position. Returns the magnitude, in place of which a
 * configuration of yarn may have an attention_factor. */
static double rope_table(const rope_scaling *s, uint32_t rotary_dim, uint64_t frequencies[])
{
    for (uint32_t pair = 0; pair < rotary_dim / 2; pair++) {
        const long double angle = powl((long double)s->theta, -2 * (long double)pair / rotary_dim);
        const long double kept = share_kept(s, pair, rotary_dim, (long double)s->length * angle / two_pi);
        const long double scaled = kept == 1 ? angle : angle * kept + angle * (1 - kept) / s->factor;
        frequencies[pair] = (uint64_t)roundl(ldexpl(scaled / two_pi, 64));
    }
    return s->kind == ROPE_YARN && s->factor > 1 ? 0.1 * log(s->factor) + 1 : 1;
}

static int print_table(char **words)
{
    static const char *const kinds[] = {"default", "linear", "llama3", "yarn"};
    static uint64_t frequencies[128];
    rope_scaling s = {.theta = strtod(words[2], NULL),
                      .factor = strtod(words[3], NULL),
                      .length = strtod(words[4], NULL),
                      .low = strtod(words[5], NULL),
                      .high = strtod(words[6], NULL)};
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

static const rope_scaling yarn = {ROPE_YARN, 10000, 8, 4096, 1, 32};
static const uint32_t positions[TOKENS] = {0, 1, 131072, 4095, 0x80000000};

/* Pairs of neighbours; V and what is behind rotary_dim stay. */
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
    const attention_sample_rope_args args = {.q = all,
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
                                             .type = ATTENTION_SAMPLE_ROPE_TYPE_F32,
                                             .head_dim = HEAD_DIM,
                                             .pairs = ATTENTION_SAMPLE_ROPE_PAIRS_NEIGHBOURS,
                                             .cache = ATTENTION_SAMPLE_ROPE_CACHE_SAME};
    const kiln_status status = attention_sample_rope(&loader, NULL, &args);
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
    judge(status == KILN_OK && worst > 0 && worst < 0x1p-20, "in place", status); /* of pairs up to 1 */
}

int main(int argc, char **argv)
{
    if (argc == 9 && strcmp(argv[1], "table") == 0)
        return print_table(argv + 2);
    need(argc == 2, "attention_rope DRIVER");
    open_device(argv[1], &attention_sample_bundle);
    check_in_place();
    return end_calls();
}
