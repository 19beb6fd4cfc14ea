/* Rows of weights in a ring. */
#include "row_ring.h"
#include "copy.h"
#include "lanes.h"

enum { WORD = 4 };

/* Rounds `bytes` up to an odd number of pieces of `piece` bytes. */
static uint32_t odd_pieces(uint32_t bytes, uint32_t piece)
{
    return piece * ((bytes + piece - 1) / piece | 1);
}

/* A word that is not aligned to 4 bytes is loaded together with the next one (device/bytes.h). */
static uint32_t most_bytes(uint32_t bytes, uint32_t alignment, uint32_t start)
{
    return alignment < WORD ? (bytes + WORD - 1) / WORD * WORD + start : bytes + start - alignment;
}

row_ring_shape row_ring_stage(uint32_t bytes, uint32_t alignment, uint32_t lane_bytes, uint32_t number_bytes)
{
    const uint32_t of_sectors = odd_pieces(most_bytes(bytes, alignment, SECTOR_BYTES), SECTOR_BYTES);
    const bool is_wide = lane_bytes > WORD && of_sectors <= bytes + bytes / 4,
               has_whole_sectors = alignment == UNIT_BYTES && bytes % SECTOR_BYTES == 0;
    row_ring_shape s = {.bytes = bytes,
                        .alignment = alignment,
                        .start = is_wide || !has_whole_sectors ? SECTOR_BYTES : UNIT_BYTES,
                        .lane_bytes = is_wide ? lane_bytes : WORD};
    const uint32_t most = most_bytes(bytes, alignment, s.start);
    s.pieces = (most + UNIT_BYTES - 1) / UNIT_BYTES;
    s.rows = (layout){.row_bytes = is_wide ? of_sectors : odd_pieces(most, UNIT_BYTES),
                      .unit_bytes = UNIT_BYTES,
                      .padded_rows = number_bytes ? 8 : 0,
                      .pad_bytes = is_wide || number_bytes > WORD ? SECTOR_BYTES : UNIT_BYTES};
    return s;
}

void row_ring_plan(row_ring *r)
{
    const uint32_t lanes = r->threads / r->rows;
    r->lanes = lanes > ROW_RING_LANES ? lanes : ROW_RING_LANES;
    r->pass = r->threads / r->lanes;
    r->passes = r->rows / r->pass;
}

uint32_t row_ring_row_bit(const row_ring_shape *s)
{
    return s->rows.row_bytes / UNIT_BYTES % 2 ? 2 : 1;
}

/* Swaps bit 0 of the row with row_ring_row_bit's bit. */
ptx_val row_ring_row_of(const row_ring *r, ptx_val tid)
{
    ptx_fn *f = r->f;
    ptx_val row = ptx_shr(f, tid, lanes_log2(r->lanes));
    if (r->lanes != ROW_RING_LANES)
        return row;
    const uint32_t bit = row_ring_row_bit(&r->of);
    ptx_val other = ptx_shr(f, row, bit);
    ptx_val differ = ptx_and(f, ptx_xor(f, row, other), 1);
    return ptx_xor(f, row, ptx_mul(f, differ, 1u | 1u << bit));
}

void row_ring_init(row_ring *r, ptx_val tid, ptx_val shared, ptx_val row_bytes)
{
    ptx_fn *f = r->f;
    for (uint32_t i = 0; i < r->passes; i++)
        r->from[i] = ptx_var(f, r->from[i]);
    r->piece = ptx_mul(f, ptx_and(f, tid, r->lanes - 1), UNIT_BYTES);
    ptx_val to = ptx_add(f, layout_row_at(f, &r->of.rows, row_ring_row_of(r, tid)), shared);
    r->to = ptx_add(f, to, r->piece);
    r->left = ptx_var(f, ptx_as(f, PTX_S32, row_bytes));
}

/* This thread's pieces of a row in the stage. */
typedef struct pieces {
    ptx_val from;          /* pointer to the first piece */
    ptx_val before, reach; /* bytes from the first piece to the row's first byte, to its stage's end; S32 */
    ptx_val left;          /* bytes to the row's end */
} pieces;

static pieces find_pieces(row_ring *r, ptx_val from)
{
    ptx_fn *f = r->f;
    pieces p;
    ptx_val row_offset = ptx_u32(0), start = from;
    if (!row_ring_is_aligned(&r->of)) {
        row_offset = ptx_and(f, ptx_cvt(f, PTX_U32, from), r->of.start - 1);
        start = ptx_and(f, from, ~(uint64_t)(r->of.start - 1));
    }
    ptx_val mine = ptx_add(f, start, ptx_cvt(f, PTX_U64, r->piece));
    p.from = ptx_pointer(f, PTX_GLOBAL, PTX_U32, mine);
    p.before = ptx_as(f, PTX_S32, ptx_sub(f, row_offset, r->piece));
    p.reach = ptx_add(f, p.before, r->of.bytes);
    p.left = ptx_add(f, p.before, r->left);
    return p;
}

/* Whether the first piece may lie before the row. */
static bool has_piece_before(const row_ring *r)
{
    return r->of.start > UNIT_BYTES;
}

static void copy_row(row_ring *r, ptx_val from, ptx_val to, bool is_last)
{
    ptx_fn *f = r->f;
    const uint32_t step = UNIT_BYTES * r->lanes;
    const int hints = PTX_NC | PTX_NO_ALLOCATE;
    const pieces p = find_pieces(r, from);
    for (uint32_t byte = 0; byte < UNIT_BYTES * r->of.pieces; byte += step) {
        ptx_val piece = ptx_at_bytes(f, p.from, byte), piece_to = shared_at(f, PTX_U32, to, byte);
        const bool is_first = byte == 0 && has_piece_before(r);
        /* Whether every lane's piece has bytes of every row. */
        const bool is_inner = !is_first && byte + step - UNIT_BYTES < r->of.bytes;
        if (is_inner && !is_last) {
            copy_unit(f, piece_to, piece, NULL, hints);
            continue;
        }
        ptx_val in_row = is_last ? ptx_sub(f, p.left, byte) : p.left;
        ptx_val has_bytes = is_first ? ptx_lt(f, p.before, UNIT_BYTES) : ptx_gt(f, p.reach, byte);
        PTX_IF (f, has_bytes) {
            is_last ? copy_cut(f, piece_to, piece, in_row) : copy_unit(f, piece_to, piece, NULL, hints);
        }
    }
}

/* The row's last stage, piece by piece. */
static void copy_tail(row_ring *r, ptx_val from, ptx_val to)
{
    ptx_fn *f = r->f;
    const uint32_t step = UNIT_BYTES * r->lanes;
    const pieces p = find_pieces(r, from);
    ptx_val end = ptx_min(f, p.reach, UNIT_BYTES * r->of.pieces);
    ptx_val first = ptx_s32(0);
    if (has_piece_before(r))
        first = ptx_select(f, ptx_ge(f, p.before, UNIT_BYTES), ptx_s32((int32_t)step), 0);
    PTX_FOR (f, byte, first, end, step) {
        ptx_side_loop(f);
        ptx_val piece = ptx_at(f, ptx_cast_ptr(f, p.from, PTX_U8), byte);
        ptx_val piece_to = ptx_add(f, to, ptx_as(f, PTX_U32, byte));
        copy_cut(f, shared_at(f, PTX_U32, piece_to, 0), ptx_cast_ptr(f, piece, PTX_U32),
                 ptx_sub(f, p.left, byte));
    }
}

static void copy_rows(row_ring *r, ptx_val to, bool is_last)
{
    for (uint32_t i = 0; i < r->passes; i++) {
        ptx_val row_to = i == 0 ? to : ptx_add(r->f, to, i * layout_rows(&r->of.rows, r->pass));
        if (is_last && r->is_lean)
            copy_tail(r, r->from[i], row_to);
        else
            copy_row(r, r->from[i], row_to, is_last);
    }
}

void row_ring_copy(row_ring *r, ptx_val offset)
{
    ptx_fn *f = r->f;
    ptx_val to = ptx_add(f, r->to, offset);
    PTX_IF (f, ptx_gt(f, r->left, r->of.bytes)) {
        copy_rows(r, to, false);
    }
    PTX_ELSE (f) {
        ptx_rarely(f);
        copy_rows(r, to, true);
    }
}

void row_ring_step(row_ring *r)
{
    ptx_fn *f = r->f;
    for (uint32_t i = 0; i < r->passes; i++)
        ptx_add_to(f, r->from[i], r->of.bytes);
    ptx_sub_to(f, r->left, r->of.bytes);
}

row_ring_row row_ring_find(const row_ring *r, ptx_val at, ptx_val address)
{
    ptx_fn *f = r->f;
    ptx_val low = ptx_cvt(f, PTX_U32, address);
    if (r->finds_starts || r->of.bytes % r->of.start != 0)
        return (row_ring_row){.at = at, .offset = ptx_var(f, low)};
    return (row_ring_row){.at = ptx_add(f, at, ptx_and(f, low, r->of.start - 1))};
}

ptx_val row_ring_next(const row_ring *r, const row_ring_row *row, ptx_val offset)
{
    ptx_fn *f = r->f;
    ptx_val at = ptx_add(f, row->at, offset);
    if (row->offset.type == PTX_NONE)
        return at;
    ptx_val row_offset = ptx_and(f, row->offset, r->of.start - 1);
    ptx_add_to(f, row->offset, r->of.bytes);
    return ptx_add(f, at, row_offset);
}
