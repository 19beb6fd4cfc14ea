/* rope: rotates queries and keys by their positions, and appends keys and values to a cache.
 *
 * GEOMETRY. A warp has as many heads of a token's Q, K or V as fit its lanes. A lane of a head has two chunks of 16 bytes,
 * such that both elements of a pair are in one lane, and neighbours have neighbouring chunks. While these are in flight, the
 * thread block computes the cosines and sines of the token's pairs, in shared memory.
 *
 * POSITIONS. A frequency is a fraction of a turn, so its product with a position wraps like the angle, and any position is
 * valid.
 */
#include "descriptor.h"
#include <kiln/author/families.h>

#include "device/codes.h"
#include "device/lanes.h"
#include "device/narrow.h"
#include "device/tail.h"

enum { WARPS = 8, THREADS = WARPS * WARP_LANES, PARTS = 2, WORDS = 4, MATRICES = 3, MOST_ELEMENTS = 8 };

typedef enum cache_kind { SAME, E4M3, INT8, INT8_TOKEN } cache_kind; /* in the order of cache's words */

enum { CACHE, SCALES, KINDS };     /* a slot is a row of the cache, and with int8_token of scales */
enum { PAGE, ROW, HEAD, STRIDES }; /* distances of pages, of a page's rows and of a row's heads */

/* A variant during emission. A lane has two chunks: as many pairs as a chunk has elements. A part is half of these pairs. */
typedef struct rope {
    ptx_fn *f;
    ptx_type type;
    cache_kind cache;
    bool is_halves;
    uint32_t head_dim;
    uint32_t elements; /* of a chunk */
    uint32_t lanes;    /* lanes of a head: those that have chunks, rounded up to a power of two */

    ptx_val in[MATRICES], heads[MATRICES];                          /* Q, K, V */
    ptx_val in_row[MATRICES], in_head[MATRICES], out_row, out_head; /* strides: elements, U64 */
    ptx_val frequencies, positions, slots, q_out;
    ptx_val slot_of[KINDS][2];           /* K, V; with e4m3 and int8 there is a scale per head */
    ptx_val slot_stride[KINDS][STRIDES]; /* elements, U64 */
    ptx_val rotary_dim, magnitude, pages, page_size;

    ptx_val token;              /* U32 */
    ptx_val is_query, is_value; /* the warp's kind; neither: keys */
    ptx_val head;               /* this lane's head, among the token's, U64 */
    ptx_val lane;               /* the lane's number in the head, U32 */
    ptx_val in_bounds;          /* the head exists, with chunks for this lane */
    ptx_val chunk[PARTS];       /* the first elements of this lane's chunks, U32 */
    ptx_val is_rotated[PARTS];  /* whether this part's pairs are rotated */
    ptx_val pair[PARTS];        /* index of the part's first pair, U32 */
    ptx_val raw[PARTS][WORDS];  /* the chunks as in memory: F32, or pairs in U32 */
    ptx_val cosines, sines;     /* of all pairs, in shared memory, times the magnitude */
    ptx_val x[PARTS * MOST_ELEMENTS];
} rope;

/* ---- arguments ---------------------------------------------------------------------------------------------------- */

static void declare_arguments(rope *r)
{
    static const struct {
        const char *in, *heads, *row, *head;
    } names[MATRICES] = {{"q", "q_heads", "q_row_stride", "q_head_stride"},
                         {"k", "k_heads", "k_row_stride", "k_head_stride"},
                         {"v", "v_heads", "v_row_stride", "v_head_stride"}};
    static const char *const caches[2][2] = {{"k_codes", "v_codes"}, {"k_cache", "v_cache"}};
    static const char *const scales[2][2] = {{"k_scale", "v_scale"}, {"k_scales", "v_scales"}};
    static const char *const strides[KINDS][STRIDES] = {
        {"cache_page_stride", "cache_row_stride", "cache_head_stride"},
        {"scale_page_stride", "scale_row_stride", "scale_head_stride"}};
    ptx_fn *f = r->f;
    const bool is_same = r->cache == SAME, is_token = r->cache == INT8_TOKEN;
    for (uint32_t i = 0; i < MATRICES; i++)
        r->in[i] = ptx_param_ptr(f, r->type, names[i].in);
    r->frequencies = ptx_param_ptr(f, PTX_U64, "frequencies");
    r->positions = ptx_param_ptr(f, PTX_U32, "positions");
    r->slots = ptx_param_ptr(f, PTX_S64, "slots");
    r->q_out = ptx_param_ptr(f, r->type, "q_out");
    for (uint32_t i = 0; i < 2; i++)
        r->slot_of[CACHE][i] = ptx_param_ptr(f, is_same ? r->type : PTX_S8, caches[is_same][i]);
    for (uint32_t i = 0; i < 2 && !is_same; i++)
        r->slot_of[SCALES][i] = ptx_param_ptr(f, PTX_F32, scales[is_token][i]);
    ptx_param(f, PTX_U32, "n");
    for (uint32_t i = 0; i < MATRICES; i++)
        r->heads[i] = ptx_param(f, PTX_U32, names[i].heads);
    r->rotary_dim = ptx_param(f, PTX_U32, "rotary_dim");
    r->magnitude = ptx_param(f, PTX_F32, "magnitude");
    r->pages = ptx_param(f, PTX_U32, "pages");
    r->page_size = ptx_param(f, PTX_U32, "page_size");
    for (uint32_t i = 0; i < MATRICES; i++) {
        r->in_row[i] = ptx_param(f, PTX_U64, names[i].row);
        r->in_head[i] = ptx_param(f, PTX_U64, names[i].head);
    }
    r->out_row = ptx_param(f, PTX_U64, "out_row_stride");
    r->out_head = ptx_param(f, PTX_U64, "out_head_stride");
    for (uint32_t i = 0; i < (is_token ? KINDS : 1) * STRIDES; i++)
        r->slot_stride[i / STRIDES][i % STRIDES] = ptx_param(f, PTX_U64, strides[i / STRIDES][i % STRIDES]);
}

/* ---- the warp's heads --------------------------------------------------------------------------------------------- */

/* Chooses the value for Q, K or V, by the warp's kind. */
static ptx_val choose(rope *r, const ptx_val of[MATRICES])
{
    return ptx_select(r->f, r->is_query, of[0], ptx_select(r->f, r->is_value, of[2], of[1]));
}

/* The first warps of a token have heads of Q, the next ones those of K, then of V. */
static void find_head(rope *r)
{
    ptx_fn *f = r->f;
    const uint32_t warp_heads = (uint32_t)WARP_LANES / r->lanes;
    ptx_val block = ptx_ctaid_y(f), thread = ptx_laneid(f);
    ptx_val warp = ptx_mad(f, block, WARPS, ptx_warpid_x(f));
    ptx_val first[MATRICES] = {ptx_u32(0)}; /* warps of each */
    for (uint32_t i = 1; i < MATRICES; i++) {
        ptx_val up = ptx_add(f, r->heads[i - 1], warp_heads - 1);
        ptx_val warps = ptx_shr(f, up, lanes_log2(warp_heads));
        first[i] = i == 1 ? warps : ptx_add(f, first[i - 1], warps);
    }
    r->is_query = ptx_lt(f, warp, first[1]);
    r->is_value = ptx_ge(f, warp, first[2]);
    ptx_val before = choose(r, first);
    ptx_val of_warp = ptx_shl(f, ptx_sub(f, warp, before), lanes_log2(warp_heads));
    ptx_val head = ptx_add(f, of_warp, ptx_shr(f, thread, lanes_log2(r->lanes)));
    r->head = ptx_cvt(f, PTX_U64, head);
    r->lane = ptx_and(f, thread, r->lanes - 1);
    ptx_val has_head = ptx_lt(f, head, choose(r, r->heads));
    ptx_val has_chunks = ptx_lt(f, r->lane, r->head_dim / (PARTS * r->elements));
    r->in_bounds = ptx_and(f, has_head, has_chunks);
}

/* Halves: the first lanes of a head have the pairs, an element of each in either chunk; the others the elements that are not
 * rotated. Neighbours: both elements of a pair are in one chunk. */
static void find_chunks(rope *r)
{
    ptx_fn *f = r->f;
    ptx_val first = ptx_mul(f, r->lane, r->elements), half = ptx_shr(f, r->rotary_dim, 1);
    ptx_val has_pairs = ptx_lt(f, first, half), moved = ptx_add(f, first, half);
    for (uint32_t part = 0; part < PARTS; part++) {
        ptx_val chunk = ptx_add(f, first, part * r->head_dim / PARTS);
        if (r->is_halves) {
            r->chunk[part] = ptx_select(f, has_pairs, part == 0 ? first : moved, part == 0 ? moved : chunk);
            r->is_rotated[part] = has_pairs;
            r->pair[part] = ptx_add(f, first, part * r->elements / PARTS);
        } else {
            r->chunk[part] = chunk;
            r->is_rotated[part] = ptx_lt(f, chunk, r->rotary_dim);
            r->pair[part] = ptx_shr(f, chunk, 1);
        }
    }
}

/* Loads the chunks unconverted; zeros if out of bounds. */
static void load_chunks(rope *r)
{
    ptx_fn *f = r->f;
    ptx_val address[MATRICES];
    for (uint32_t i = 0; i < MATRICES; i++)
        address[i] = ptx_address(f, r->in[i]);
    ptx_val all = ptx_pointer(f, PTX_GLOBAL, r->type, choose(r, address));
    ptx_val row_stride = choose(r, r->in_row);
    ptx_val row = ptx_mul(f, row_stride, ptx_cvt(f, PTX_U64, r->token));
    ptx_val head_stride = choose(r, r->in_head);
    ptx_val head = ptx_at(f, all, ptx_mad(f, r->head, head_stride, row));
    for (uint32_t part = 0; part < PARTS; part++)
        tail_load(f, r->type == PTX_F32 ? PTX_F32 : PTX_U32, WORDS, r->raw[part],
                  ptx_at(f, head, r->chunk[part]), &r->in_bounds, PTX_CS);
}

/* Widens the chunks to F32, in variables; tail_load has made variables of those that are F32. */
static void widen_chunks(rope *r)
{
    for (uint32_t i = 0; i < PARTS * WORDS; i++) {
        ptx_val raw = r->raw[i / WORDS][i % WORDS], pair[2];
        if (r->type == PTX_F32) {
            r->x[i] = raw;
            continue;
        }
        widen_pair(r->f, r->type, raw, pair);
        for (uint32_t n = 0; n < 2; n++)
            r->x[2 * i + n] = ptx_var(r->f, pair[n]);
    }
}

/* ---- sine and cosine ------------------------------------------------------------------------------------------------ */

/* The upper 32 bits of the fraction are cut into a quadrant and the rest, from -1/8 to 1/8 of a turn, by integer operations.
 * So the only errors, in the result, are: 2^-29.3 for the truncated bits, 2^-24.3 for the rest as F32, 2^-24.8 for the
 * polynomials, and half an ulp for each of their last operations, 2^-25: together less than 2^-22. */

/* sin(pi / 4 * z) / z and cos(pi / 4 * z) in powers of z^2, minimax for |z| <= 1: errors of 2^-29.6 and 2^-24.8. */
static const float sine_terms[] = {-3.587725840916309e-05f, 0.002489871967821371f, -0.0807453672709205f,
                                   0.7853981525427293f},
                   cosine_terms[] = {-0.0003191601610296707f, 0.01585039762005845f, -0.308424488492642f, 1};

enum { EIGHTH = 1 << 29, TERMS = 4 };

static ptx_val polynomial(ptx_fn *f, const float terms[TERMS], ptx_val x)
{
    ptx_val sum = ptx_f32(terms[0]);
    for (int i = 1; i < TERMS; i++)
        sum = ptx_fma(f, sum, x, terms[i]);
    return sum;
}

/* Flips the sign if bit 31 of `flip` is set. */
static ptx_val flip_sign(ptx_fn *f, ptx_val x, ptx_val flip)
{
    ptx_val bits = ptx_as(f, PTX_U32, x);
    return ptx_as(f, PTX_F32, ptx_lop3(f, bits, flip, 0x80000000, 0x78)); /* a ^ (b & c) */
}

/* Computes cosine and sine, F32, each within 2^-22. turn: the angle in 2^-64 full turns, a U64, so that it wraps exactly. */
static void evaluate_turn(ptx_fn *f, ptx_val turn, ptx_val *cosine, ptx_val *sine)
{
    ptx_val parts[2];
    ptx_unpack(f, PTX_U32, 2, parts, turn);
    ptx_val raised = ptx_add(f, parts[1], EIGHTH); /* the quadrant is in bits 30 and 31 */
    ptx_val in_quadrant = ptx_and(f, raised, 2 * EIGHTH - 1);
    ptx_val rest = ptx_as(f, PTX_S32, ptx_sub(f, in_quadrant, EIGHTH));
    ptx_val z = ptx_mul(f, ptx_cvt(f, PTX_F32, rest), 1.0f / EIGHTH);
    ptx_val square = ptx_mul(f, z, z);
    ptx_val odd_term = ptx_mul(f, polynomial(f, sine_terms, square), z);
    ptx_val even_term = polynomial(f, cosine_terms, square);
    ptx_val is_odd = ptx_ne(f, ptx_and(f, raised, 2 * EIGHTH), 0);
    ptx_val before = ptx_select(f, is_odd, odd_term, even_term);
    ptx_val after = ptx_select(f, is_odd, even_term, odd_term);
    *sine = flip_sign(f, after, raised);
    *cosine = flip_sign(f, before, ptx_add(f, raised, 2 * EIGHTH));
}

static void make_table(rope *r)
{
    ptx_fn *f = r->f;
    r->cosines = ptx_shared(f, PTX_F32, r->head_dim / 2, 16);
    r->sines = ptx_shared(f, PTX_F32, r->head_dim / 2, 16);
    ptx_val pair = ptx_tid_x(f), pairs = ptx_shr(f, r->rotary_dim, 1);
    PTX_IF (f, ptx_lt(f, pair, pairs)) {
        ptx_val position = ptx_load_as(f, PTX_U32, ptx_at(f, r->positions, r->token), PTX_NC);
        ptx_val frequency = ptx_load_hint(f, ptx_at(f, r->frequencies, pair), PTX_NC);
        ptx_val cosine, sine;
        evaluate_turn(f, ptx_mul(f, frequency, ptx_cvt(f, PTX_U64, position)), &cosine, &sine);
        ptx_val cosine_at = ptx_at(f, r->cosines, pair), sine_at = ptx_at(f, r->sines, pair);
        ptx_store(f, cosine_at, ptx_mul(f, cosine, r->magnitude));
        ptx_store(f, sine_at, ptx_mul(f, sine, r->magnitude));
    }
    ptx_barrier(f);
}

/* ---- rotation ----------------------------------------------------------------------------------------------------- */

static void rotate(rope *r)
{
    ptx_fn *f = r->f;
    const uint32_t pairs = r->elements / PARTS;
    for (uint32_t part = 0; part < PARTS; part++) {
        ptx_val keys_too = ptx_and(f, r->is_rotated[part], ptx_not(f, r->is_value));
        PTX_IF (f, ptx_and(f, keys_too, r->in_bounds)) {
            ptx_val cosine[4], sine[4];
            ptx_load_vec(f, (int)pairs, cosine, ptx_at(f, r->cosines, r->pair[part]), PTX_PLAIN);
            ptx_load_vec(f, (int)pairs, sine, ptx_at(f, r->sines, r->pair[part]), PTX_PLAIN);
            for (uint32_t i = 0; i < pairs; i++) {
                const uint32_t pair = part * pairs + i;
                ptx_val first = r->x[r->is_halves ? pair : 2 * pair];
                ptx_val second = r->x[r->is_halves ? pair + r->elements : 2 * pair + 1];
                ptx_val against = ptx_neg(f, ptx_mul(f, second, sine[i])), along = ptx_mul(f, first, sine[i]);
                ptx_set(f, first, ptx_fma(f, first, cosine[i], against));
                ptx_set(f, second, ptx_fma(f, second, cosine[i], along));
            }
        }
    }
}

/* ---- what is written ---------------------------------------------------------------------------------------------- */

/* The array of K or of V. */
static ptx_val choose_array(rope *r, uint32_t kind)
{
    ptx_fn *f = r->f;
    const ptx_val *of = r->slot_of[kind];
    ptx_val of_k = ptx_address(f, of[0]), of_v = ptx_address(f, of[1]);
    return ptx_pointer(f, PTX_GLOBAL, (ptx_type)of[0].element, ptx_select(f, r->is_value, of_v, of_k));
}

/* The address of this lane's head in the cache, or among its scales. */
static ptx_val find_slot(rope *r, ptx_val slot, uint32_t kind)
{
    ptx_fn *f = r->f;
    const ptx_val *stride = r->slot_stride[kind];
    ptx_val low = ptx_cvt(f, PTX_U32, slot);
    ptx_val page = ptx_div(f, low, r->page_size);
    ptx_val row = ptx_cvt(f, PTX_U64, ptx_sub(f, low, ptx_mul(f, page, r->page_size)));
    ptx_val of_page = ptx_mul(f, ptx_cvt(f, PTX_U64, page), stride[PAGE]);
    ptx_val of_row = ptx_mad(f, row, stride[ROW], of_page), all = choose_array(r, kind);
    return ptx_at(f, all, ptx_mad(f, r->head, stride[HEAD], of_row));
}

static void store_chunks(rope *r, ptx_val head, ptx_val in_bounds)
{
    ptx_fn *f = r->f;
    PTX_IF (f, in_bounds) {
        for (uint32_t part = 0; part < PARTS; part++) {
            ptx_val at = ptx_at(f, head, r->chunk[part]);
            narrow_store(f, r->type, r->elements, at, &r->x[part * r->elements], PTX_PLAIN);
        }
    }
}

static void store_codes(rope *r, ptx_val head, ptx_val in_bounds, ptx_val factor)
{
    ptx_fn *f = r->f;
    for (uint32_t part = 0; part < PARTS; part++) {
        ptx_val scaled[CODES], words[MOST_ELEMENTS / CODES];
        for (uint32_t i = 0; i < r->elements; i++) {
            scaled[i % CODES] = ptx_mul(f, r->x[part * r->elements + i], factor);
            if (i % CODES == CODES - 1)
                words[i / CODES] = r->cache == E4M3 ? codes_e4m3(f, scaled) : codes_int8(f, scaled);
        }
        ptx_val at = ptx_cast_ptr(f, ptx_at(f, head, r->chunk[part]), PTX_U32);
        PTX_WHEN (f, in_bounds) {
            ptx_store_vec(f, (int)(r->elements / CODES), at, words, PTX_PLAIN);
        }
    }
}

/* Appends nothing if the slot is negative or past the cache. */
static void append(rope *r)
{
    ptx_fn *f = r->f;
    ptx_val slot = ptx_var(f, ptx_u64(UINT64_MAX)), factor;
    PTX_WHEN (f, r->in_bounds) {
        ptx_val loaded = ptx_load_hint(f, ptx_at(f, r->slots, r->token), PTX_NC);
        ptx_set(f, slot, ptx_as(f, PTX_U64, loaded));
    }
    ptx_val has_slot = ptx_lt(f, slot, ptx_mul_wide(f, r->pages, r->page_size));
    ptx_val to = find_slot(r, slot, CACHE);
    if (r->cache == SAME) {
        store_chunks(r, to, has_slot);
        return;
    }
    if (r->cache == INT8_TOKEN) { /* scaled for this token: the head's scale is stored */
        ptx_val at = find_slot(r, slot, SCALES);
        ptx_val most = codes_absmax(f, r->x, PARTS * r->elements, r->lanes);
        ptx_val scale = ptx_mul(f, most, 1.0f / 127), is_first = ptx_eq(f, r->lane, 0);
        PTX_WHEN (f, ptx_and(f, is_first, has_slot)) {
            ptx_store(f, at, scale);
        }
        factor = ptx_mul(f, ptx_rcp_approx(f, most), 127);
    } else { /* by the head's scale for all tokens */
        ptx_val all = choose_array(r, SCALES), scale;
        tail_load(f, PTX_F32, 1, &scale, ptx_at(f, all, r->head), &has_slot, PTX_NC);
        factor = ptx_rcp(f, scale);
    }
    store_codes(r, to, has_slot, factor);
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

static rope init(ptx_fn *f, const kiln_variant *v)
{
    rope r = {.f = f,
              .type = kiln_type(v, "type"),
              .cache = (cache_kind)kiln_word_index(v, "cache"),
              .is_halves = kiln_is(v, "pairs", "halves"),
              .head_dim = kiln_int(v, "head_dim"),
              .lanes = 1};
    r.elements = r.type == PTX_F32 ? 4 : 8;
    while (r.lanes * PARTS * r.elements < r.head_dim)
        r.lanes *= 2;
    return r;
}

static void emit(ptx_fn *f, const kiln_variant *v)
{
    rope r = init(f, v);
    declare_arguments(&r);
    r.token = ptx_ctaid_x(f);
    find_head(&r);
    find_chunks(&r);
    load_chunks(&r);
    make_table(&r);
    widen_chunks(&r);
    rotate(&r);
    PTX_IF (f, r.is_query) {
        ptx_val row = ptx_mul(f, ptx_cvt(f, PTX_U64, r.token), r.out_row);
        ptx_val element = ptx_mad(f, r.head, r.out_head, row);
        store_chunks(&r, ptx_at(f, r.q_out, element), r.in_bounds);
    }
    PTX_ELSE (f) {
        append(&r);
    }
}

static void shape(kiln_shape *s, const kiln_variant *v)
{
    s->block[0] = THREADS;
    kiln_number(s, v, "warp_heads", WARP_LANES / init(NULL, v).lanes);
}

/* ---- the family --------------------------------------------------------------------------------------------------- */

/* clang-format off */
static const kiln_param params[] = {
    PARAM(WORD, CONTRACT, "type", "f16 bf16 f32", "f16", "element type of Q, K and V, and of the rotated Q"),
    PARAM(INT, CONTRACT, "head_dim", NULL, "128", "elements of a head", .min = 16, .max = 256, .step = 16),
    PARAM(WORD, CONTRACT, "pairs", "halves neighbours", "halves",
          "pair i is elements i and i + rotary_dim / 2 (halves, as in GPT-NeoX and Llama), or 2 * i and 2 * i + 1 (neighbours, as in GPT-J)", .numbers = "1 2"),
    PARAM(WORD, CONTRACT, "cache", "same e4m3 int8 int8_token", "same",
          "elements of the cache\nsame: type; e4m3, int8: 8 bits, with a scale for each head; int8_token: with a scale for each token and head, written beside them", .numbers = "1 2 3 4"),
    {.name = NULL},
};

#define LAST(count)       "(max(" count ", 1) - 1)"
#define ROWS(of, heads)                                                                                                \
    "select(n * " heads " == 0, 0, " LAST("n") " * " of "_row_stride + " LAST(heads) " * " of "_head_stride + head_dim)"
#define SLOTS(of, heads, elements)                                                                                     \
    "select(pages * page_size * " heads " == 0, 0, " LAST("pages") " * " of "_page_stride + " LAST("page_size") " * "  \
    of "_row_stride + " LAST(heads) " * " of "_head_stride + " elements ")"
#define IS_STATIC "cache == e4m3 || cache == int8"

#define CACHE_ARG(name, heads, type, when, text) {name, KILN_ARG_INOUT, type, SLOTS("cache", heads, "head_dim"), 16, when, text}
#define COUNT(name, text)                    {name, KILN_ARG_VALUE, "u32", NULL, 0, NULL, text}
#define STRIDE(name, when, text)             {name, KILN_ARG_VALUE, "u64", NULL, 0, when, text}

static const kiln_arg args[] = {
    {"q", KILN_ARG_IN, "$type", ROWS("q", "q_heads"), 16, NULL, "Q, a row for each token"},
    {"k", KILN_ARG_IN, "$type", ROWS("k", "k_heads"), 16, NULL, "K"},
    {"v", KILN_ARG_IN, "$type", ROWS("v", "v_heads"), 16, NULL, "V"},
    {"frequencies", KILN_ARG_CONSTANT, "u64", "rotary_dim / 2", 8, NULL,
     "how far one position turns each pair\nin units of 2^-64 of a full turn"},
    {"positions", KILN_ARG_IN, "u32", "n", 4, NULL,
     "position of each token; i32 of at least 0 also serve: they have the same bits"},
    {"slots", KILN_ARG_IN, "i64", "select(k_heads + v_heads == 0, 0, n)", 8, NULL,
     "page * page_size + row for each token's K and V\nslots in the cache must differ; a token whose slot is negative or beyond the cache is not appended"},
    {"q_out", KILN_ARG_OUT, "$type", ROWS("out", "q_heads"), 16, NULL, "the rotated Q\nmay be q, with q's strides"},
    CACHE_ARG("k_cache", "k_heads", "$type", "cache == same", "the cache of K\nslots without a token are unchanged"),
    CACHE_ARG("v_cache", "v_heads", "$type", "cache == same", "the cache of V\nwith the strides of K's"),
    CACHE_ARG("k_codes", "k_heads", "i8", "cache != same", "the cache of K: signed bytes, or e4m3 numbers"),
    CACHE_ARG("v_codes", "v_heads", "i8", "cache != same", "the cache of V\nwith the strides of K's"),
    {"k_scale", KILN_ARG_CONSTANT, "f32", "k_heads", 4, IS_STATIC, "factor of the codes of each head of K"},
    {"v_scale", KILN_ARG_CONSTANT, "f32", "v_heads", 4, IS_STATIC, "the same for V"},
    {"k_scales", KILN_ARG_INOUT, "f32", SLOTS("scale", "k_heads", "1"), 4, "cache == int8_token", "factor of the codes of each slot and head of K"},
    {"v_scales", KILN_ARG_INOUT, "f32", SLOTS("scale", "v_heads", "1"), 4, "cache == int8_token", "the same for V, with the same strides"},
    COUNT("n", "tokens"),
    COUNT("q_heads", "heads of Q; may be 0"),
    COUNT("k_heads", "heads of K; may be 0"),
    COUNT("v_heads", "heads of V; may be 0"),
    COUNT("rotary_dim", "the first elements of a head, which are rotated; the others stay"),
    {"magnitude", KILN_ARG_VALUE, "f32", NULL, 0, NULL, "factor of cosines and sines; usually 1"},
    COUNT("pages", "pages of the cache"),
    COUNT("page_size", "rows of a page"),
    STRIDE("q_row_stride", NULL, "elements of Q from token to token"),
    STRIDE("q_head_stride", NULL, "elements of Q from head to head"),
    STRIDE("k_row_stride", NULL, "the same for K"),
    STRIDE("k_head_stride", NULL, "the same for K"),
    STRIDE("v_row_stride", NULL, "the same for V"),
    STRIDE("v_head_stride", NULL, "the same for V"),
    STRIDE("out_row_stride", NULL, "the same for q_out"),
    STRIDE("out_head_stride", NULL, "the same for q_out"),
    STRIDE("cache_page_stride", NULL, "elements of a cache from page to page"),
    STRIDE("cache_row_stride", NULL, "elements of a cache from row to row of a page"),
    STRIDE("cache_head_stride", NULL, "elements of a cache from head to head"),
    STRIDE("scale_page_stride", "cache == int8_token", "the same for scales"),
    STRIDE("scale_row_stride", "cache == int8_token", "the same for scales"),
    STRIDE("scale_head_stride", "cache == int8_token", "the same for scales"),
    {.name = NULL},
};

#define EIGHTHS(a, b) a " % 8 == 0 && " b " % 8 == 0"
#define HOLDS_HEAD(stride, count, words) \
    {stride " >= head_dim || " count " <= 1", stride " must be at least head_dim where " words " is above 1"}
#define HOLDS_HEADS(stride, count, heads) /* without heads the stride is unused, and may be 0 */                       \
    {stride " >= head_dim || " count " <= 1 || " heads " == 0",                                                        \
     stride " must be at least head_dim where " count " is above 1 and " heads " above 0"}

static const kiln_rule rules[] = {
    {"rotary_dim % 16 == 0 && rotary_dim <= head_dim", "rotary_dim must be a multiple of 16, and at most head_dim"},
    {"n <= 2147483647", "n must be below 2^31"},
    {"q_heads <= 65535 && k_heads <= 65535 && v_heads <= 65535", "heads must be at most 65535"},
    {"page_size >= 1", "page_size must be at least 1"},
    {"pages * page_size <= 2147483648", "pages * page_size must be at most 2^31"},
    {"finite(magnitude)", "magnitude must be finite"},
    {EIGHTHS("q_row_stride", "q_head_stride"), "strides of q must be multiples of 8"},
    {EIGHTHS("k_row_stride", "k_head_stride"), "strides of k must be multiples of 8"},
    {EIGHTHS("v_row_stride", "v_head_stride"), "strides of v must be multiples of 8"},
    {EIGHTHS("out_row_stride", "out_head_stride"), "strides of q_out must be multiples of 8"},
    {EIGHTHS("cache_page_stride", "cache_row_stride") " && cache_head_stride % 8 == 0", "strides of the cache must be multiples of 8"},
    HOLDS_HEADS("out_row_stride", "n", "q_heads"),
    HOLDS_HEAD("out_head_stride", "q_heads", "q_heads"),
    HOLDS_HEADS("cache_page_stride", "pages", "k_heads + v_heads"),
    HOLDS_HEADS("cache_row_stride", "page_size", "k_heads + v_heads"),
    HOLDS_HEAD("cache_head_stride", "max(k_heads, v_heads)", "k_heads or v_heads"),
    {"cache != int8_token || k_heads + v_heads == 0 || (scale_page_stride >= 1 || pages <= 1) && (scale_row_stride >= 1 || page_size <= 1) && "
     "(scale_head_stride >= 1 || max(k_heads, v_heads) <= 1)", "strides of the scales must be at least 1 where there is more than one page, row or head"},
    {NULL, NULL},
};

#define WARPS_OF(heads) "ceil_div(" heads ", warp_heads)"
#define BLOCKS       "ceil_div(" WARPS_OF("q_heads") " + " WARPS_OF("k_heads") " + " WARPS_OF("v_heads") ", 8)"
#define TYPE_BYTES   "select(type == f32, 4, 2)"
/* clang-format on */

static const kiln_dense dense[] = {
    {"q", "n, q_heads, head_dim", "q_row_stride q_head_stride", NULL},
    {"k", "n, k_heads, head_dim", "k_row_stride k_head_stride", NULL},
    {"v", "n, v_heads, head_dim", "v_row_stride v_head_stride", NULL},
    {"q_out", "n, q_heads, head_dim", "out_row_stride out_head_stride", NULL},
    {"k_cache k_codes v_cache v_codes", "pages, page_size, max(k_heads, v_heads), head_dim",
     "cache_page_stride cache_row_stride cache_head_stride", NULL},
    {"k_scales v_scales", "pages, page_size, max(k_heads, v_heads)",
     "scale_page_stride scale_row_stride scale_head_stride", "cache == int8_token"},
    {.args = NULL},
};

static const kiln_value usual[] = {{"rotary_dim", "head_dim"},
                                   {"page_size", "16"},
                                   {"pages", "ceil_div(n, max(1, page_size))"},
                                   {NULL, NULL}};

static const kiln_value example[] = {
    {"n", "4"},         {"q_heads", "8"}, {"k_heads", "2"},    {"v_heads", "2"}, {"rotary_dim", "head_dim"},
    {"magnitude", "1"}, {"pages", "16"},  {"page_size", "16"}, {.arg = NULL},
};

const kiln_family rope_family = {
    .name = "rope",
    .summary = "rotate Q and K by position, append K and V to a cache",
    .source = "RoFormer (arXiv:2104.09864); slots and pages as vLLM has them (arXiv:2309.06180)",
    .accuracy =
        "an angle is position * frequency * 2^-64 turns, exactly; its cosine c and sine s are within 2^-22. An element of a "
        "pair (a, b) becomes magnitude * (a * c - b * s) or magnitude * (a * s + b * c), within 2^-21 * |magnitude| * (|a| + "
        "|b|), plus one rounding to the type; the other elements keep their bits. A code is the quotient x / scale, rounded to nearest even. "
        "The quotient has a relative error of at most 2^-21, and is exact if scale is a power of two; x is the "
        "element before it is rounded to the type. Codes are at most 448 (e4m3), from -128 to 127 (int8). int8_token: scale is max(|x|) / 127, where max(|x|) counts as at least 2^-118, "
        "with a relative error of at most 2^-22. This holds if products with cosines, and with 1 / scale, are normal numbers of f32 or 0",
    .nonfinite =
        "IEEE arithmetic: a NaN or an infinity comes to both elements of its pair, and to no others. In the cache a NaN is "
        "0x7f (e4m3) or 0 (int8), an infinity the largest code. int8_token: a head that contains a NaN or an infinity has such "
        "a scale, and codes 0",
    .params = params,
    .args = args,
    .rules = rules,
    .dense = dense,
    .example = example,
    .usual = usual,
    .empty = "n == 0 || q_heads + k_heads + v_heads == 0",
    .numbers = "warp_heads",
    .shape = shape,
    .grid = {"n", BLOCKS},
    .cost = {.bytes_read =
                 "n * (q_heads + k_heads + v_heads) * head_dim * " TYPE_BYTES " + n * 12 + rotary_dim * 4",
             .bytes_written = "n * q_heads * head_dim * " TYPE_BYTES
                              " + n * (k_heads + v_heads) * (head_dim * select(cache == same, " TYPE_BYTES
                              ", 1) + select(cache == int8_token, 4, 0))",
             .elements = "n * (q_heads + k_heads + v_heads) * head_dim"},
    .min_sm = 75,
    .emit = emit,
};
