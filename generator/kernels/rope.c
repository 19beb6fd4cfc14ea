/* rope: rotates queries and keys by their positions, and appends keys and values to a cache.
 *
 * GEOMETRY. A thread block has a token. It first makes the cosines and sines of all pairs, in shared memory. Then each warp
 * takes tasks: as many heads of Q, K or V as its lanes have room for. A lane of a head has two chunks of 16 bytes, such that
 * both elements of a pair are in one lane, and neighbours have neighbouring chunks. Few tokens have several thread blocks each.
 *
 * POSITIONS. A frequency is a fraction of a turn, so its product with a position wraps as the angle does, and no position
 * is too far.
 */
#include <kiln/author/families.h>

#include "device/codes.h"
#include "device/lanes.h"
#include "device/narrow.h"
#include "device/tail.h"
#include "device/turn.h"

enum { WARPS = 4, THREADS = WARPS * WARP_LANES, PARTS = 2, MOST_ELEMENTS = 8 };

#define LEAST_MOST 0x1p-118f

typedef enum cache_kind { SAME, E4M3, INT8, INT8_TOKEN } cache_kind;

/* Heads of one token: of Q, K or V, of the output, of the cache or of its scales. */
typedef struct heads {
    ptx_val pointer; /* to the first */
    ptx_val stride;  /* elements from head to head, U64 */
} heads;

/* A variant while it is emitted. A lane has as many pairs as a chunk has elements: half of them are part 0, the others
 * part 1. */
typedef struct rope {
    ptx_fn *f;
    ptx_type type;
    cache_kind cache;
    bool has_sm_80, has_sm_89, is_halves;
    uint32_t head_dim;
    uint32_t elements; /* of a chunk */
    uint32_t lanes;    /* of a head: those that have chunks, and more up to a power of two */

    ptx_val token, rotary_dim, q_heads, k_heads, v_heads; /* U32 */
    heads q, k, v, out, k_cache, v_cache, k_scale, v_scale;
    ptx_val has_slot;       /* the cache has a place for the token */
    ptx_val cosines, sines; /* of all pairs, in shared memory */
    ptx_val lane, head;     /* number in its head; of the head, in its warp; U32 */
    ptx_val has_chunks;     /* the head has some for this lane */
    ptx_val chunk[PARTS];   /* the first elements of its chunks, U32 */
    ptx_val rotated[PARTS]; /* whether the pairs of a part are */
    ptx_val pair[PARTS];    /* the first of them, U32 */
    ptx_val cosine[MOST_ELEMENTS], sine[MOST_ELEMENTS];
} rope;

/* Lanes that share a head. */
static uint32_t lanes_of_head(uint32_t head_dim, uint32_t elements)
{
    uint32_t lanes = 1;
    while (lanes * PARTS * elements < head_dim)
        lanes *= 2;
    return lanes;
}

/* ---- arguments ---------------------------------------------------------------------------------------------------- */

/* Moves a pointer by `index` strides. */
static ptx_val move(ptx_fn *f, ptx_val pointer, ptx_val index, ptx_val stride)
{
    return ptx_at(f, pointer, ptx_mul(f, index, stride));
}

static void declare_pointers(rope *r, ptx_val *frequencies, ptx_val *positions, ptx_val *slots)
{
    ptx_fn *f = r->f;
    r->q.pointer = ptx_param_ptr(f, r->type, "q");
    r->k.pointer = ptx_param_ptr(f, r->type, "k");
    r->v.pointer = ptx_param_ptr(f, r->type, "v");
    *frequencies = ptx_param_ptr(f, PTX_U64, "frequencies");
    *positions = ptx_param_ptr(f, PTX_U32, "positions");
    *slots = ptx_param_ptr(f, PTX_S64, "slots");
    r->out.pointer = ptx_param_ptr(f, r->type, "q_out");
    const bool is_same = r->cache == SAME, is_token = r->cache == INT8_TOKEN;
    const ptx_type element = is_same ? r->type : PTX_S8;
    r->k_cache.pointer = ptx_param_ptr(f, element, is_same ? "k_cache" : "k_codes");
    r->v_cache.pointer = ptx_param_ptr(f, element, is_same ? "v_cache" : "v_codes");
    if (is_same)
        return;
    r->k_scale.pointer = ptx_param_ptr(f, PTX_F32, is_token ? "k_scales" : "k_scale");
    r->v_scale.pointer = ptx_param_ptr(f, PTX_F32, is_token ? "v_scales" : "v_scale");
}

/* Moves the token's heads to where they are in a matrix. */
static void find_row(rope *r, heads *of, const char *row_stride, const char *head_stride)
{
    ptx_fn *f = r->f;
    ptx_val row = ptx_param(f, PTX_U64, row_stride);
    of->stride = ptx_param(f, PTX_U64, head_stride);
    of->pointer = move(f, of->pointer, ptx_cvt(f, PTX_U64, r->token), row);
}

/* The same in the cache, or among its scales, for K and V. */
static void find_slot(rope *r, heads *k, heads *v, ptx_val page, ptx_val row, const char *const strides[3])
{
    ptx_fn *f = r->f;
    ptx_val page_stride = ptx_param(f, PTX_U64, strides[0]), row_stride = ptx_param(f, PTX_U64, strides[1]);
    k->stride = v->stride = ptx_param(f, PTX_U64, strides[2]);
    ptx_val in_page = ptx_mul(f, row, row_stride);
    ptx_val element = ptx_mad(f, page, page_stride, in_page);
    k->pointer = ptx_at(f, k->pointer, element);
    v->pointer = ptx_at(f, v->pointer, element);
}

/* A slot that is negative, or beyond the cache, is none. Without K and V there are no slots. */
static ptx_val load_slot(rope *r, ptx_val slots)
{
    ptx_fn *f = r->f;
    ptx_val slot = ptx_var(f, ptx_u64(UINT64_MAX));
    ptx_val appended = ptx_or(f, r->k_heads, r->v_heads);
    PTX_WHEN (f, ptx_ne(f, appended, ptx_u32(0))) {
        ptx_val loaded = ptx_load_hint(f, ptx_at(f, slots, r->token), PTX_NC);
        ptx_set(f, slot, ptx_as(f, PTX_U64, loaded));
    }
    return ptx_warp_uniform(f, slot);
}

static void find_cache(rope *r, ptx_val slots, ptx_val pages, ptx_val page_size)
{
    static const char *const cache[] = {"cache_page_stride", "cache_row_stride", "cache_head_stride"},
                             *const scale[] = {"scale_page_stride", "scale_row_stride", "scale_head_stride"};
    ptx_fn *f = r->f;
    ptx_val slot = load_slot(r, slots);
    r->has_slot = ptx_lt(f, slot, ptx_mul_wide(f, pages, page_size));
    ptx_val low = ptx_cvt(f, PTX_U32, slot);
    ptx_val number = ptx_div(f, low, page_size);
    ptx_val before = ptx_mul(f, number, page_size);
    ptx_val row = ptx_cvt(f, PTX_U64, ptx_sub(f, low, before));
    ptx_val page = ptx_cvt(f, PTX_U64, number);
    find_slot(r, &r->k_cache, &r->v_cache, page, row, cache);
    if (r->cache == INT8_TOKEN)
        find_slot(r, &r->k_scale, &r->v_scale, page, row, scale);
    else
        r->k_scale.stride = r->v_scale.stride = ptx_u64(1);
}

/* ---- the lane's elements ------------------------------------------------------------------------------------------ */

/* Halves: of the lanes that share a head the first have the pairs, an element of each in either chunk; the others what is
 * not rotated. Neighbours: both elements of a pair are in one chunk. */
static void find_chunks(rope *r)
{
    ptx_fn *f = r->f;
    const uint32_t all = r->head_dim / (PARTS * r->elements);
    ptx_val thread = ptx_laneid(f);
    r->lane = ptx_and(f, thread, ptx_u32(r->lanes - 1));
    r->head = ptx_shr(f, thread, ptx_u32(lanes_log2(r->lanes)));
    r->has_chunks = ptx_lt(f, r->lane, ptx_u32(all));
    ptx_val first = ptx_mul(f, r->lane, ptx_u32(r->elements)), half = ptx_shr(f, r->rotary_dim, ptx_u32(1));
    ptx_val has_pairs = ptx_lt(f, first, half);
    for (uint32_t part = 0; part < PARTS; part++) {
        ptx_val behind = ptx_add(f, first, ptx_u32(part * all * r->elements));
        if (r->is_halves) {
            ptx_val moved = ptx_add(f, first, half);
            r->chunk[part] = ptx_select(f, has_pairs, part == 0 ? first : moved, part == 0 ? moved : behind);
            r->rotated[part] = has_pairs;
            r->pair[part] = ptx_add(f, first, ptx_u32(part * r->elements / 2));
        } else {
            r->chunk[part] = behind;
            r->rotated[part] = ptx_lt(f, behind, r->rotary_dim);
            r->pair[part] = ptx_shr(f, behind, ptx_u32(1));
        }
    }
}

/* The elements of a pair among the lane's: */
static uint32_t first_of_pair(const rope *r, uint32_t pair)
{
    return r->is_halves ? pair : 2 * pair;
}

static uint32_t second_of_pair(const rope *r, uint32_t pair)
{
    return r->is_halves ? pair + r->elements : 2 * pair + 1;
}

/* Zeros where they are out of bounds. */
static void load_chunks(rope *r, ptx_val head, ptx_val in_bounds, ptx_val x[])
{
    ptx_fn *f = r->f;
    const bool is_f32 = r->type == PTX_F32;
    ptx_val raw[4], pair[2];
    for (uint32_t part = 0; part < PARTS; part++) {
        tail_load(f, is_f32 ? PTX_F32 : PTX_U32, 4, raw, ptx_at(f, head, r->chunk[part]), &in_bounds, PTX_CS);
        for (uint32_t i = 0; i < 4; i++) {
            ptx_val *to = &x[part * r->elements];
            if (is_f32) {
                to[i] = raw[i];
                continue;
            }
            widen_pair(f, r->type, raw[i], pair);
            to[2 * i] = ptx_var(f, pair[0]);
            to[2 * i + 1] = ptx_var(f, pair[1]);
        }
    }
}

/* ---- rotation ----------------------------------------------------------------------------------------------------- */

static void fill_table(rope *r, ptx_val frequencies, ptx_val position, ptx_val magnitude)
{
    ptx_fn *f = r->f;
    r->cosines = ptx_shared(f, PTX_F32, r->head_dim / 2, 16);
    r->sines = ptx_shared(f, PTX_F32, r->head_dim / 2, 16);
    ptx_val pairs = ptx_shr(f, r->rotary_dim, ptx_u32(1));
    PTX_FOR (f, pair, ptx_tid_x(f), pairs, ptx_u32(THREADS)) {
        ptx_val frequency = ptx_load_hint(f, ptx_at(f, frequencies, pair), PTX_NC);
        turn_values turn = turn_evaluate(f, ptx_mul(f, frequency, position));
        ptx_val cosine_at = ptx_at(f, r->cosines, pair), sine_at = ptx_at(f, r->sines, pair);
        ptx_store(f, cosine_at, ptx_mul(f, turn.cosine, magnitude));
        ptx_store(f, sine_at, ptx_mul(f, turn.sine, magnitude));
    }
    ptx_barrier(f);
}

static void load_table(rope *r)
{
    ptx_fn *f = r->f;
    const uint32_t pairs = r->elements / 2;
    for (uint32_t part = 0; part < PARTS; part++) {
        ptx_val has_pairs = ptx_and(f, r->rotated[part], r->has_chunks);
        ptx_val cosine_at = ptx_at(f, r->cosines, r->pair[part]),
                sine_at = ptx_at(f, r->sines, r->pair[part]);
        tail_load(f, PTX_F32, pairs, &r->cosine[part * pairs], cosine_at, &has_pairs, PTX_PLAIN);
        tail_load(f, PTX_F32, pairs, &r->sine[part * pairs], sine_at, &has_pairs, PTX_PLAIN);
    }
}

static void rotate(rope *r, ptx_val x[])
{
    ptx_fn *f = r->f;
    for (uint32_t part = 0; part < PARTS; part++) {
        PTX_WHEN (f, r->rotated[part]) {
            for (uint32_t i = part * r->elements / 2; i < (part + 1) * r->elements / 2; i++) {
                ptx_val first = x[first_of_pair(r, i)], second = x[second_of_pair(r, i)];
                ptx_val against = ptx_neg(f, ptx_mul(f, second, r->sine[i])),
                        along = ptx_mul(f, first, r->sine[i]);
                ptx_set(f, first, ptx_fma(f, first, r->cosine[i], against));
                ptx_set(f, second, ptx_fma(f, second, r->cosine[i], along));
            }
        }
    }
}

/* ---- the cache ---------------------------------------------------------------------------------------------------- */

static void store_chunks(rope *r, ptx_val head, ptx_val in_bounds, const ptx_val x[])
{
    ptx_fn *f = r->f;
    for (uint32_t part = 0; part < PARTS; part++) {
        ptx_val at = ptx_at(f, head, r->chunk[part]);
        PTX_IF (f, in_bounds) {
            narrow_store(f, r->type, r->has_sm_80, r->elements, at, &x[part * r->elements], PTX_PLAIN);
        }
    }
}

static void store_codes(rope *r, ptx_val head, ptx_val in_bounds, ptx_val factor, const ptx_val x[])
{
    ptx_fn *f = r->f;
    const uint32_t count = r->elements / CODES;
    for (uint32_t part = 0; part < PARTS; part++) {
        ptx_val scaled[CODES], words[MOST_ELEMENTS / CODES];
        for (uint32_t i = 0; i < r->elements; i++) {
            scaled[i % CODES] = ptx_mul(f, x[part * r->elements + i], factor);
            if (i % CODES == CODES - 1)
                words[i / CODES] =
                    r->cache == E4M3 ? codes_e4m3(f, r->has_sm_89, scaled) : codes_int8(f, scaled);
        }
        ptx_val at = ptx_cast_ptr(f, ptx_at(f, head, r->chunk[part]), PTX_U32);
        PTX_WHEN (f, in_bounds) {
            ptx_store_vec(f, (int)count, at, words, PTX_PLAIN);
        }
    }
}

/* What a head's elements are multiplied by: of the largest magnitude, by its bits, so that a NaN is the largest. Stores the
 * scale. */
static ptx_val make_scale(rope *r, ptx_val at, ptx_val in_bounds, const ptx_val x[])
{
    ptx_fn *f = r->f;
    ptx_val most = ptx_as(f, PTX_U32, ptx_f32(LEAST_MOST));
    for (uint32_t i = 0; i < PARTS * r->elements; i++)
        most = ptx_max(f, ptx_as(f, PTX_U32, ptx_abs(f, x[i])), most);
    most = ptx_as(f, PTX_F32, ptx_reduce_lanes(f, PTX_OP_MAX, (int)r->lanes, most));
    ptx_val scale = ptx_mul(f, most, ptx_f32(1.0f / 127));
    ptx_val is_first = ptx_eq(f, r->lane, ptx_u32(0));
    PTX_WHEN (f, ptx_and(f, is_first, in_bounds)) {
        ptx_store(f, at, scale);
    }
    return ptx_mul(f, ptx_rcp_approx(f, most), ptx_f32(127));
}

static ptx_val load_factor(rope *r, ptx_val at, ptx_val in_bounds)
{
    ptx_fn *f = r->f;
    ptx_val scale = ptx_var(f, ptx_f32(1));
    PTX_WHEN (f, in_bounds) {
        ptx_set(f, scale, ptx_load_hint(f, at, PTX_NC));
    }
    return ptx_rcp(f, scale);
}

/* ---- tasks -------------------------------------------------------------------------------------------------------- */

/* The first of K's where `is_key`, else of V's. */
static ptx_val choose(ptx_fn *f, ptx_val is_key, const heads *k, const heads *v, ptx_val head)
{
    ptx_val of_k = ptx_address(f, k->pointer), of_v = ptx_address(f, v->pointer);
    ptx_val at = ptx_pointer(f, PTX_GLOBAL, (ptx_type)k->pointer.element, ptx_select(f, is_key, of_k, of_v));
    ptx_val stride = ptx_select(f, is_key, k->stride, v->stride);
    return move(f, at, head, stride);
}

static void take_query(rope *r, ptx_val head)
{
    ptx_fn *f = r->f;
    ptx_val x[PARTS * MOST_ELEMENTS];
    ptx_val in_bounds = ptx_and(f, r->has_chunks, ptx_lt(f, head, r->q_heads));
    ptx_val wide = ptx_cvt(f, PTX_U64, head);
    load_chunks(r, move(f, r->q.pointer, wide, r->q.stride), in_bounds, x);
    rotate(r, x);
    store_chunks(r, move(f, r->out.pointer, wide, r->out.stride), in_bounds, x);
}

static void append(rope *r, ptx_val is_key, ptx_val head)
{
    ptx_fn *f = r->f;
    ptx_val x[PARTS * MOST_ELEMENTS], factor;
    ptx_val count = ptx_select(f, is_key, r->k_heads, r->v_heads);
    ptx_val in_bounds = ptx_and(f, r->has_chunks, ptx_lt(f, head, count));
    ptx_val wide = ptx_cvt(f, PTX_U64, head);
    load_chunks(r, choose(f, is_key, &r->k, &r->v, wide), in_bounds, x);
    PTX_IF (f, is_key) {
        rotate(r, x);
    }
    ptx_val to = choose(f, is_key, &r->k_cache, &r->v_cache, wide);
    if (r->cache == SAME) {
        store_chunks(r, to, in_bounds, x);
        return;
    }
    ptx_val scale_at = choose(f, is_key, &r->k_scale, &r->v_scale, wide);
    if (r->cache == INT8_TOKEN)
        factor = make_scale(r, scale_at, in_bounds, x);
    else
        factor = load_factor(r, scale_at, in_bounds);
    store_codes(r, to, in_bounds, factor, x);
}

static ptx_val tasks_of(rope *r, ptx_val count)
{
    const uint32_t in_task = (uint32_t)WARP_LANES / r->lanes;
    ptx_val raised = ptx_add(r->f, count, ptx_u32(in_task - 1));
    return ptx_shr(r->f, raised, ptx_u32(lanes_log2(in_task)));
}

/* The lane's head of the warp's task, the task counted from the first of its matrix. */
static ptx_val head_of(rope *r, ptx_val task)
{
    return ptx_mad(r->f, task, ptx_u32((uint32_t)WARP_LANES / r->lanes), r->head);
}

/* A token without a slot has the tasks of Q alone. */
static void take_tasks(rope *r)
{
    ptx_fn *f = r->f;
    ptx_val warp = ptx_warpid_x(f), block = ptx_ctaid_y(f), blocks = ptx_special(f, PTX_NCTAID_Y);
    ptx_val first = ptx_mad(f, block, ptx_u32(WARPS), warp), step = ptx_mul(f, blocks, ptx_u32(WARPS));
    ptx_val of_q = tasks_of(r, r->q_heads);
    ptx_val with_k = ptx_add(f, of_q, tasks_of(r, r->k_heads));
    ptx_val all = ptx_add(f, with_k, tasks_of(r, r->v_heads));
    PTX_FOR (f, task, first, ptx_select(f, r->has_slot, all, of_q), step) {
        PTX_IF (f, ptx_lt(f, task, of_q)) {
            take_query(r, head_of(r, task));
        }
        PTX_ELSE (f) {
            ptx_val is_key = ptx_lt(f, task, with_k);
            ptx_val before = ptx_select(f, is_key, of_q, with_k);
            append(r, is_key, head_of(r, ptx_sub(f, task, before)));
        }
    }
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

static cache_kind cache_of(const kiln_variant *v)
{
    return kiln_is(v, "cache", "same")   ? SAME
           : kiln_is(v, "cache", "e4m3") ? E4M3
           : kiln_is(v, "cache", "int8") ? INT8
                                         : INT8_TOKEN;
}

static void emit(ptx_fn *f, const kiln_variant *v)
{
    rope r = {.f = f,
              .type = kiln_type(v, "type"),
              .cache = cache_of(v),
              .has_sm_80 = kiln_has_sm(v, 80),
              .is_halves = kiln_is(v, "pairs", "halves"),
              .head_dim = kiln_int(v, "head_dim")};
    ptx_val frequencies, positions, slots;
    r.has_sm_89 = r.cache == E4M3 && kiln_has_sm(v, 89);
    r.elements = r.type == PTX_F32 ? 4 : 8;
    r.lanes = lanes_of_head(r.head_dim, r.elements);
    declare_pointers(&r, &frequencies, &positions, &slots);
    ptx_param(f, PTX_U32, "n");
    r.q_heads = ptx_param(f, PTX_U32, "q_heads");
    r.k_heads = ptx_param(f, PTX_U32, "k_heads");
    r.v_heads = ptx_param(f, PTX_U32, "v_heads");
    r.rotary_dim = ptx_param(f, PTX_U32, "rotary_dim");
    ptx_val magnitude = ptx_param(f, PTX_F32, "magnitude");
    ptx_val pages = ptx_param(f, PTX_U32, "pages"), page_size = ptx_param(f, PTX_U32, "page_size");
    r.token = ptx_ctaid_x(f);
    ptx_val position = ptx_load_hint(f, ptx_at(f, positions, r.token), PTX_NC);
    find_row(&r, &r.q, "q_row_stride", "q_head_stride");
    find_row(&r, &r.k, "k_row_stride", "k_head_stride");
    find_row(&r, &r.v, "v_row_stride", "v_head_stride");
    find_row(&r, &r.out, "out_row_stride", "out_head_stride");
    find_cache(&r, slots, pages, page_size);
    find_chunks(&r);
    fill_table(&r, frequencies, ptx_cvt(f, PTX_U64, position), magnitude);
    load_table(&r);
    take_tasks(&r);
}

static void shape(kiln_shape *s, const kiln_variant *v)
{
    (void)v;
    s->block[0] = THREADS;
}

/* ---- the family --------------------------------------------------------------------------------------------------- */

/* clang-format off */
static const kiln_param params[] = {
    {.name = "type", .type = KILN_PARAM_WORD, .role = KILN_ROLE_CONTRACT, .words = "f16 bf16 f32", .default_value = "f16",
     .summary = "element type of Q, K and V, and of the rotated Q"},
    {.name = "head_dim", .type = KILN_PARAM_INT, .role = KILN_ROLE_CONTRACT, .min = 16, .max = 256, .step = 16,
     .default_value = "128", .summary = "elements of a head"},
    {.name = "pairs", .type = KILN_PARAM_WORD, .role = KILN_ROLE_CONTRACT, .words = "halves neighbours", .numbers = "1 2",
     .default_value = "halves",
     .summary = "pair i is elements i and i + rotary_dim / 2 (halves, as in GPT-NeoX and Llama), or 2 * i and 2 * i + 1 (neighbours, as in GPT-J)"},
    {.name = "cache", .type = KILN_PARAM_WORD, .role = KILN_ROLE_CONTRACT, .words = "same e4m3 int8 int8_token", .numbers = "1 2 3 4",
     .default_value = "same",
     .summary = "of the cache; same: type; e4m3, int8: 8 bits, with a scale for each head; int8_token: with a scale for each token and head, written beside them"},
    {.name = NULL},
};

#define LAST(count)       "(max(" count ", 1) - 1)"
#define ROWS(of, heads)                                                                                                \
    "select(n * " heads " == 0, 0, " LAST("n") " * " of "_row_stride + " LAST(heads) " * " of "_head_stride + head_dim)"
#define SLOTS(of, heads, elements)                                                                                     \
    "select(pages * page_size * " heads " == 0, 0, " LAST("pages") " * " of "_page_stride + " LAST("page_size") " * "  \
    of "_row_stride + " LAST(heads) " * " of "_head_stride + " elements ")"
#define IS_STATIC "cache == e4m3 || cache == int8"

static const kiln_arg args[] = {
    {"q", KILN_ARG_IN, "$type", ROWS("q", "q_heads"), 16, NULL, "Q, a row for each token"},
    {"k", KILN_ARG_IN, "$type", ROWS("k", "k_heads"), 16, NULL, "K"},
    {"v", KILN_ARG_IN, "$type", ROWS("v", "v_heads"), 16, NULL, "V"},
    {"frequencies", KILN_ARG_CONSTANT, "u64", "rotary_dim / 2", 8, NULL,
     "of each pair: how far one position turns it, in fractions of a turn, 2^-64 each"},
    {"positions", KILN_ARG_IN, "u32", "n", 4, NULL,
     "of each token; i32 that are not negative have the same bits"},
    {"slots", KILN_ARG_IN, "i64", "select(k_heads + v_heads == 0, 0, n)", 8, NULL,
     "where each token's K and V go: page * page_size + row, another for each. With one that is negative or beyond the cache nothing is appended"},
    {"q_out", KILN_ARG_OUT, "$type", ROWS("out", "q_heads"), 16, NULL, "the rotated Q; may be q, with q's strides"},
    {"k_cache", KILN_ARG_INOUT, "$type", SLOTS("cache", "k_heads", "head_dim"), 16, "cache == same", "the cache of K; what gets no token stays as it is"},
    {"v_cache", KILN_ARG_INOUT, "$type", SLOTS("cache", "v_heads", "head_dim"), 16, "cache == same", "the cache of V, with the same strides"},
    {"k_codes", KILN_ARG_INOUT, "i8", SLOTS("cache", "k_heads", "head_dim"), 16, "cache != same", "the cache of K: signed bytes, or e4m3 numbers"},
    {"v_codes", KILN_ARG_INOUT, "i8", SLOTS("cache", "v_heads", "head_dim"), 16, "cache != same", "the cache of V, with the same strides"},
    {"k_scale", KILN_ARG_CONSTANT, "f32", "k_heads", 4, IS_STATIC, "of each head of K: what codes are multiplied by"},
    {"v_scale", KILN_ARG_CONSTANT, "f32", "v_heads", 4, IS_STATIC, "the same for V"},
    {"k_scales", KILN_ARG_INOUT, "f32", SLOTS("scale", "k_heads", "1"), 4, "cache == int8_token", "of each slot and head of K: what codes are multiplied by"},
    {"v_scales", KILN_ARG_INOUT, "f32", SLOTS("scale", "v_heads", "1"), 4, "cache == int8_token", "the same for V, with the same strides"},
    {"n", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "tokens"},
    {"q_heads", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "heads of Q; may be 0"},
    {"k_heads", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "heads of K; may be 0"},
    {"v_heads", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "heads of V; may be 0"},
    {"rotary_dim", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "elements of a head that are rotated, its first; the others stay"},
    {"magnitude", KILN_ARG_VALUE, "f32", NULL, 0, NULL, "factor of cosines and sines; usually 1"},
    {"pages", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "pages of the cache"},
    {"page_size", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of a page"},
    {"q_row_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements of Q from token to token"},
    {"q_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements of Q from head to head"},
    {"k_row_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "the same for K"},
    {"k_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "the same for K"},
    {"v_row_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "the same for V"},
    {"v_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "the same for V"},
    {"out_row_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "the same for q_out"},
    {"out_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "the same for q_out"},
    {"cache_page_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements of a cache from page to page"},
    {"cache_row_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements of a cache from row to row of a page"},
    {"cache_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements of a cache from head to head"},
    {"scale_page_stride", KILN_ARG_VALUE, "u64", NULL, 0, "cache == int8_token", "the same for scales"},
    {"scale_row_stride", KILN_ARG_VALUE, "u64", NULL, 0, "cache == int8_token", "the same for scales"},
    {"scale_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, "cache == int8_token", "the same for scales"},
    {.name = NULL},
};

#define EIGHTHS(a, b) a " % 8 == 0 && " b " % 8 == 0"

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
    {"out_row_stride >= head_dim || n <= 1", "out_row_stride must be at least head_dim"},
    {"out_head_stride >= head_dim || q_heads <= 1", "out_head_stride must be at least head_dim"},
    {"cache_page_stride >= head_dim || pages <= 1", "cache_page_stride must be at least head_dim"},
    {"cache_row_stride >= head_dim || page_size <= 1", "cache_row_stride must be at least head_dim"},
    {"cache_head_stride >= head_dim || max(k_heads, v_heads) <= 1", "cache_head_stride must be at least head_dim"},
    {NULL, NULL},
};

#define LANE_HEADS   "(head_dim / select(type == f32, 8, 16))"
#define WARP_HEADS                                                                                                     \
    "select(" LANE_HEADS " > 16, 1, select(" LANE_HEADS " > 8, 2, select(" LANE_HEADS " > 4, 4, select(" LANE_HEADS " > 2, 8, " \
    "select(" LANE_HEADS " > 1, 16, 32)))))"
#define TASKS(heads) "ceil_div(" heads ", " WARP_HEADS ")"
#define BLOCKS       "ceil_div(" TASKS("q_heads") " + " TASKS("k_heads") " + " TASKS("v_heads") ", 4)"
#define TYPE_BYTES   "select(type == f32, 4, 2)"
/* clang-format on */

const kiln_family rope_family = {
    .name = "rope",
    .summary = "rotate queries and keys by their positions, and append keys and values to a cache",
    .source = "RoFormer (arXiv:2104.09864); slots and pages as vLLM has them (arXiv:2309.06180)",
    .accuracy =
        "an angle is position * frequency * 2^-64 turns, exactly; its cosine c and sine s are within 2^-22. An element of a "
        "pair (a, b) becomes magnitude * (a * c - b * s) or magnitude * (a * s + b * c), within 2^-21 * |magnitude| * (|a| + "
        "|b|), plus one rounding to the type; the others keep their bits. A code is the nearest one, of two the even one, to "
        "a quotient that is within 2^-21 of x / scale, relatively, where x is the element before it is rounded to the type; "
        "at most 448 (e4m3), from -128 to 127 (int8). int8_token: scale is max(|x|) / 127 within 2^-22, relatively, max(|x|) "
        "of at least 2^-118. This holds where products with cosines, and with 1 / scale, are normal numbers of f32 or 0",
    .nonfinite =
        "IEEE arithmetic: a NaN or an infinity comes to both elements of its pair, and to no others. In the cache a NaN is "
        "0x7f (e4m3) or 0 (int8), an infinity the largest code. int8_token: a head with one has a scale that is a NaN or an "
        "infinity, and codes 0",
    .params = params,
    .args = args,
    .rules = rules,
    .empty = "n == 0 || q_heads + k_heads + v_heads == 0",
    .shape = shape,
    .grid = {"n", "max(min(" BLOCKS ", ceil_div(multiprocessors * 8, max(n, 1))), 1)"},
    .cost = {.bytes_read =
                 "n * (q_heads + k_heads + v_heads) * head_dim * " TYPE_BYTES " + n * 12 + rotary_dim * 4",
             .bytes_written = "n * q_heads * head_dim * " TYPE_BYTES
                              " + n * (k_heads + v_heads) * (head_dim * select(cache == same, " TYPE_BYTES
                              ", 1) + select(cache == int8_token, 4, 0))",
             .elements = "n * (q_heads + k_heads + v_heads) * head_dim"},
    .min_sm = 75,
    .emit = emit,
};
