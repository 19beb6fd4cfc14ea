/* Rows of weights in a ring. */
#include "row_ring.h"
#include "copy.h"
#include "lanes.h"

/* A row takes an odd number of pieces, so that eight rows that begin at the same byte of a sector are in different banks.
 * But then both halves of a sector go to the same 32 bytes only in every second row, and L2 requests for W grow by 1.5
 * (device/README.md). Padding after eight rows halves the conflicts of 16-byte loads of
 * numbers in rows eight apart. Copies into these rows take up to two wavefronts, and rows that begin at different bytes of a
 * sector may conflict. */
row_ring_shape row_ring_stage(uint32_t bytes)
{
    row_ring_shape s = {.bytes = bytes,
                        .pieces = (bytes + ROW_RING_SECTOR - 1 + UNIT_BYTES - 1) / UNIT_BYTES};
    s.rows = (layout){.row_bytes = UNIT_BYTES * (s.pieces | 1), .unit_bytes = UNIT_BYTES, .padded_rows = 8};
    return s;
}

static uint32_t lanes_of(const row_ring *r)
{
    return r->lanes ? r->lanes : ROW_RING_LANES;
}

uint32_t row_ring_pass(const row_ring *r)
{
    return r->threads / lanes_of(r);
}

ptx_val row_ring_row_of(const row_ring *r, ptx_val tid)
{
    return r->lanes ? ptx_shr(r->f, tid, lanes_log2(r->lanes)) : ptx_div(r->f, tid, lanes_of(r));
}

void row_ring_init(row_ring *r, ptx_val tid, ptx_val shared, ptx_val row_bytes)
{
    ptx_fn *f = r->f;
    for (uint32_t i = 0; i < r->passes; i++)
        r->from[i] = ptx_var(f, r->from[i]);
    r->piece = ptx_mul(f, ptx_and(f, tid, lanes_of(r) - 1), UNIT_BYTES);
    ptx_val to = ptx_add(f, layout_row_at(f, &r->of.rows, row_ring_row_of(r, tid)), shared);
    r->to = ptx_add(f, to, r->piece);
    r->left = ptx_var(f, ptx_as(f, PTX_S32, row_bytes));
}

/* This thread's pieces of a row in the stage. */
typedef struct pieces {
    ptx_val from;          /* pointer to the first one */
    ptx_val before, reach; /* bytes from there to the row's first byte, and to the end of its stage, S32 */
    ptx_val left;          /* bytes to the row's end */
} pieces;

static pieces find_pieces(row_ring *r, ptx_val from)
{
    ptx_fn *f = r->f;
    pieces p;
    ptx_val behind = ptx_and(f, ptx_cvt(f, PTX_U32, from), ROW_RING_SECTOR - 1);
    ptx_val sector = ptx_and(f, from, ~(uint64_t)(ROW_RING_SECTOR - 1));
    ptx_val mine = ptx_add(f, sector, ptx_cvt(f, PTX_U64, r->piece));
    p.from = ptx_pointer(f, PTX_GLOBAL, PTX_U32, mine);
    p.before = ptx_as(f, PTX_S32, ptx_sub(f, behind, r->piece));
    p.reach = ptx_add(f, p.before, r->of.bytes);
    p.left = ptx_add(f, p.before, r->left);
    return p;
}

/* Whether every lane's piece has bytes of every row. */
static bool is_inner(const row_ring *r, uint32_t byte)
{
    return byte > 0 && byte + UNIT_BYTES * (lanes_of(r) - 1) < r->of.bytes;
}

static void copy_row(row_ring *r, ptx_val from, ptx_val to, bool is_last)
{
    ptx_fn *f = r->f;
    const uint32_t step = UNIT_BYTES * lanes_of(r);
    const int hints = PTX_NC | PTX_NO_ALLOCATE;
    const pieces p = find_pieces(r, from);
    for (uint32_t byte = 0; byte < UNIT_BYTES * r->of.pieces; byte += step) {
        ptx_val piece = ptx_at_bytes(f, p.from, byte), piece_to = shared_at(f, PTX_U32, to, byte);
        if (is_inner(r, byte) && !is_last) {
            copy_unit(f, piece_to, piece, NULL, hints);
            continue;
        }
        ptx_val in_row = is_last ? ptx_sub(f, p.left, byte) : p.left;
        ptx_val has_bytes = byte == 0 ? ptx_lt(f, p.before, UNIT_BYTES) : ptx_gt(f, p.reach, byte);
        PTX_IF (f, has_bytes) {
            is_last ? copy_cut(f, piece_to, piece, in_row) : copy_unit(f, piece_to, piece, NULL, hints);
        }
    }
}

/* The row's last stage, piece by piece. */
static void copy_tail(row_ring *r, ptx_val from, ptx_val to)
{
    ptx_fn *f = r->f;
    const uint32_t step = UNIT_BYTES * lanes_of(r);
    const pieces p = find_pieces(r, from);
    ptx_val end = ptx_min(f, p.reach, UNIT_BYTES * r->of.pieces);
    ptx_val is_before = ptx_ge(f, p.before, UNIT_BYTES);
    ptx_val first = ptx_select(f, is_before, ptx_s32((int32_t)step), 0);
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
        ptx_val row_to = i == 0 ? to : ptx_add(r->f, to, i * layout_rows(&r->of.rows, row_ring_pass(r)));
        if (is_last && r->is_lean)
            copy_tail(r, r->from[i], row_to);
        else
            copy_row(r, r->from[i], row_to, is_last);
    }
}

ptx_val row_ring_has_next(const row_ring *r)
{
    return ptx_gt(r->f, r->left, 0);
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
    if (r->finds_starts || r->of.bytes % ROW_RING_SECTOR != 0)
        return (row_ring_row){.at = at, .behind = ptx_var(f, low)};
    return (row_ring_row){.at = ptx_add(f, at, ptx_and(f, low, ROW_RING_SECTOR - 1))};
}

ptx_val row_ring_next(const row_ring *r, const row_ring_row *row, ptx_val offset)
{
    ptx_fn *f = r->f;
    ptx_val at = ptx_add(f, row->at, offset);
    if (row->behind.type == PTX_NONE)
        return at;
    ptx_val behind = ptx_and(f, row->behind, ROW_RING_SECTOR - 1);
    ptx_add_to(f, row->behind, r->of.bytes);
    return ptx_add(f, at, behind);
}
