/* rmsnorm_q4k_gemv's tiles of W: 8 super-blocks, 1152 bytes, of each of a warp's rows, or 16 where it has one row.
 *
 * A warp has a double buffer in shared memory. While it multiplies one stage, the other fills with the next, across the ends
 * of rows: with cp.async from sm_80 on, below with a load and a store. A piece is 16 bytes, and piece p of a tile is at byte
 * 16 * p of the stage, whichever lane copies it.
 *
 * SECTORS. An odd row starts in the middle of a sector where rows have an odd number of super-blocks. Then lane l takes piece
 * l - 1, so that each copy of 512 bytes starts at a sector, and every sector except those at a tile's ends is requested
 * once. A warp's rows are two apart, so that they are alike in this.
 *
 * A chunk of 1024 elements is 18 sectors, and such a row requests 19: half of the last one belongs to the row's next chunk,
 * which comes after all rows of the pass. Keeping these sectors would take 4 KB of shared memory, and such chunks are for
 * devices that have little. Over even and odd rows 1.03 times the bytes are moved.
 */
#include "device/copy.h"
#include "rmsnorm_q4k.h"

enum { BLOCK_PIECES = Q4K_BLOCK_BYTES / UNIT_BYTES };

static uint32_t copies_of(const gemv *g)
{
    return (g->tiles * GEMV_TILE_PIECES + 1 + 31) /
           32; /* one more where lanes take the piece before theirs */
}

/* Groups 2i and 2i + 1 have the even and the odd rows of a stretch. A warp's groups are 8 apart, so that all its rows are
 * even, or all odd. */
ptx_val gemv_row(gemv *g, ptx_val group)
{
    ptx_fn *f = g->f;
    if (g->rows == 1)
        return group;
    ptx_val odd = ptx_and(f, group, ptx_u32(1));
    ptx_val even = ptx_sub(f, group, odd);
    return ptx_mad(f, even, ptx_u32(g->rows), odd);
}

/* Checks which of a group's rows are in bounds; beyond the last group none are, and nothing is left to copy. */
static void check_group(gemv *g)
{
    ptx_fn *f = g->f;
    ptx_set(f, g->next_left, g->row_stages);
    for (uint32_t r = 0; r < g->rows; r++) {
        ptx_val row = r == 0 ? g->next_row : ptx_add(f, g->next_row, ptx_u32(2 * r));
        ptx_set(f, g->next_in_bounds[r], ptx_lt(f, row, g->rows_here));
    }
}

/* The pieces of this warp's first group; the others have the same offset in a sector. */
static void find_pieces(gemv *g)
{
    ptx_fn *f = g->f;
    ptx_val row = ptx_add(f, g->next_row, g->first_row);
    ptx_val both_odd = ptx_and(f, row, g->row_blocks);
    ptx_val behind = ptx_and(f, both_odd, ptx_u32(1));
    g->piece[0] = ptx_sub(f, g->lane, behind);
    for (uint32_t i = 1; i < copies_of(g); i++)
        g->piece[i] = ptx_add(f, g->piece[0], ptx_u32(32 * i));
    g->lane_to = ptx_mad(f, g->piece[0], ptx_u32(UNIT_BYTES), g->stages);
    for (uint32_t i = 0; i < copies_of(g) && g->has_sm_80; i++) {
        g->in_stage[i] = ptx_lt(f, g->piece[i], ptx_u32(g->tiles * GEMV_TILE_PIECES));
        g->in_last[i] = ptx_lt(f, g->piece[i], g->last_pieces);
    }
    ptx_val in_row = ptx_shr(f, g->chunk_first, ptx_u32(8));
    ptx_val first_piece = ptx_mad(f, in_row, ptx_u32(BLOCK_PIECES), g->piece[0]);
    ptx_val byte = ptx_as(f, PTX_S32, ptx_shl(f, first_piece, ptx_u32(4)));
    ptx_val start = ptx_at(f, g->w, byte);
    for (uint32_t r = 0; r < g->rows; r++) {
        ptx_val here = r == 0 ? row : ptx_add(f, row, ptx_u32(2 * r));
        ptx_val block = ptx_mul_wide(f, here, g->row_blocks);
        ptx_val row_byte = ptx_mul(f, block, ptx_u64(Q4K_BLOCK_BYTES));
        g->next_from[r] = ptx_var(f, ptx_address(f, ptx_at(f, start, row_byte)));
    }
}

/* Counts the stages of a row of the chunk; finds the step from its last stage to this warp's next group. */
static void count_stages(gemv *g)
{
    ptx_fn *f = g->f;
    uint32_t blocks = g->tiles * Q4K_TILE_BLOCKS;
    ptx_val before = ptx_sub(f, g->chunk_blocks, ptx_u32(1));
    ptx_val whole = ptx_div(f, before, ptx_u32(blocks));
    ptx_val rest = ptx_and(f, before, ptx_u32(blocks - 1));
    g->row_stages = ptx_add(f, whole, ptx_u32(1));
    g->last_pieces = ptx_mad(f, rest, ptx_u32(BLOCK_PIECES), ptx_u32(BLOCK_PIECES));
    ptx_val rows = ptx_mul_wide(f, g->row_blocks, ptx_u32(GEMV_WARPS * g->rows * Q4K_BLOCK_BYTES));
    ptx_val copied = ptx_mul_wide(f, whole, ptx_u32(g->tiles * GEMV_TILE_BYTES));
    g->group_step = ptx_sub(f, rows, copied);
}

static void copy_rows(gemv *g, ptx_val to, const ptx_val is_mine[])
{
    ptx_fn *f = g->f;
    for (uint32_t r = 0; r < g->rows; r++) {
        PTX_IF (f, g->next_in_bounds[r]) {
            ptx_val from = ptx_pointer(f, PTX_GLOBAL, PTX_U32, g->next_from[r]);
            for (uint32_t i = 0; i < copies_of(g); i++) {
                uint32_t byte = 32 * UNIT_BYTES * i;
                PTX_WHEN (f, is_mine[i]) {
                    copy_unit(f, g->has_sm_80,
                              shared_at(f, PTX_U32, to, r * g->tiles * GEMV_TILE_BYTES + byte),
                              ptx_at_bytes(f, from, byte), NULL, PTX_NC | PTX_NO_ALLOCATE);
                }
            }
        }
    }
}

/* Emitted once for all stages: emitted twice, it spills registers. */
static void copy_through_registers(gemv *g, ptx_val to, ptx_val is_last)
{
    ptx_fn *f = g->f;
    ptx_val is_mine[GEMV_MOST_COPIES], stage = ptx_u32(g->tiles * GEMV_TILE_PIECES);
    ptx_val pieces = ptx_select(f, is_last, g->last_pieces, stage);
    for (uint32_t i = 0; i < copies_of(g); i++)
        is_mine[i] = ptx_lt(f, g->piece[i], pieces);
    copy_rows(g, to, is_mine);
}

static void advance(gemv *g, ptx_val step)
{
    for (uint32_t r = 0; r < g->rows; r++)
        ptx_add_to(g->f, g->next_from[r], step);
}

/* Copies the next tile, if there is one, into the stage at `stage`. */
static void fill_stage(gemv *g)
{
    ptx_fn *f = g->f;
    ptx_val to = ptx_add(f, g->lane_to, g->stage);
    ptx_val is_last = ptx_eq(f, g->next_left, ptx_u32(1));
    if (!g->has_sm_80)
        copy_through_registers(g, to, is_last);
    PTX_IF (f, is_last) {
        ptx_rarely(f);
        if (g->has_sm_80)
            copy_rows(g, to, g->in_last);
        advance(g, g->group_step);
        ptx_add_to(f, g->next_row, ptx_u32(GEMV_WARPS * g->rows));
        check_group(g);
    }
    PTX_ELSE (f) {
        if (g->has_sm_80)
            copy_rows(g, to, g->in_stage);
        advance(g, ptx_u64(g->tiles * GEMV_TILE_BYTES));
        ptx_sub_to(f, g->next_left, ptx_u32(1));
    }
    copy_commit(f, g->has_sm_80);
}

void gemv_init_tiles(gemv *g)
{
    ptx_fn *f = g->f;
    g->next_row = ptx_var(f, gemv_row(g, g->warp));
    g->next_left = ptx_declare(f, PTX_U32);
    for (uint32_t r = 0; r < g->rows; r++)
        g->next_in_bounds[r] = ptx_declare(f, PTX_PRED);
    count_stages(g);
    find_pieces(g);
    check_group(g);
    g->stage = ptx_var(f, ptx_u32(0));
    fill_stage(g);
}

void gemv_next_tile(gemv *g)
{
    ptx_fn *f = g->f;
    shared_toggle(f, g->stage, ptx_u32(gemv_stage_bytes(g)));
    fill_stage(g);
    copy_wait(f, g->has_sm_80, GEMV_STAGES - 1);
    ptx_warp_barrier(f);
}

void gemv_end_tile(gemv *g)
{
    ptx_warp_barrier(g->f);
}

void gemv_clear_stages(gemv *g)
{
    ptx_fn *f = g->f;
    ptx_val zero[4], at = ptx_mad(f, g->lane, ptx_u32(UNIT_BYTES), g->stages);
    for (uint32_t i = 0; i < 4; i++)
        zero[i] = ptx_u32(0);
    for (uint32_t i = 0; i < GEMV_STAGES * gemv_stage_bytes(g) / 512; i++)
        ptx_store_vec(f, 4, shared_at(f, PTX_U32, at, 512 * i), zero, PTX_PLAIN);
    ptx_warp_barrier(f);
}
