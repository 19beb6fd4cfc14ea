/* The window is whole pieces of 16 bytes from the sector on that the first byte is in. A piece before the first byte's own is not
 * read: it may lie before the tensor. Of the last one only what is asked for is. */
#include "rows.h"

enum { PIECE = 16, SECTOR = 32 };

typedef struct window {
    ptx_val from, to; /* this thread's first piece */
    ptx_val before;   /* S32: bytes from the piece's first to the first that is asked for */
    ptx_val left;     /* S32: bytes from the piece's first to the last that is asked for */
} window;

/* The bytes behind the last whole piece, and zeros to its end. */
static void copy_tail(ptx_fn *f, const row_copier *c, ptx_val start, ptx_val to, ptx_val end)
{
    ptx_val rest = ptx_and(f, end, ptx_u32(PIECE - 1));
    ptx_val byte = ptx_add(f, ptx_sub(f, end, rest), c->thread);
    ptx_val has_rest = ptx_ne(f, rest, ptx_u32(0));
    ptx_val is_in_piece = ptx_lt(f, c->thread, ptx_u32(PIECE));
    PTX_IF (f, ptx_and(f, has_rest, is_in_piece)) {
        ptx_val value = ptx_var(f, ptx_u32(0));
        PTX_WHEN (f, ptx_lt(f, c->thread, rest)) {
            ptx_set(f, value, ptx_load_hint(f, ptx_at(f, start, byte), PTX_NC | PTX_NO_ALLOCATE));
        }
        ptx_store(f, ptx_at(f, ptx_cast_ptr(f, to, PTX_U8), byte), value);
    }
}

static void copy_piece(ptx_fn *f, const row_copier *c, const window *w, uint32_t offset, bool is_first)
{
    ptx_val left = offset == 0 ? w->left : ptx_sub(f, w->left, ptx_s32((int)offset));
    ptx_val is_mine = ptx_gt(f, left, ptx_s32(c->has_sm_80 ? 0 : PIECE - 1));
    if (is_first)
        is_mine = ptx_and(f, is_mine, ptx_lt(f, w->before, ptx_s32(PIECE)));
    ptx_val from = ptx_at_bytes(f, w->from, offset), to = ptx_at_bytes(f, w->to, offset), words[4];
    ptx_val size = c->has_sm_80 ? ptx_as(f, PTX_U32, ptx_min(f, left, ptx_s32(PIECE))) : left;
    PTX_WHEN (f, is_mine) {
        if (c->has_sm_80) {
            ptx_cp_async_zfill(f, to, from, PIECE, size, PTX_CG);
        } else {
            ptx_load_vec(f, 4, words, from, PTX_NC | PTX_NO_ALLOCATE);
            ptx_store_vec(f, 4, to, words, PTX_PLAIN);
        }
    }
}

ptx_val rows_copy(ptx_fn *f, const row_copier *c, ptx_val to, ptx_val from, ptx_val bytes,
                  uint32_t most_bytes)
{
    ptx_val address = ptx_address(f, from);
    ptx_val low = ptx_cvt(f, PTX_U32, address);
    ptx_val offset = ptx_and(f, low, ptx_u32(SECTOR - 1));
    ptx_val sector = ptx_and(f, address, ptx_u64(~(uint64_t)(SECTOR - 1)));
    ptx_val start = ptx_pointer(f, PTX_GLOBAL, PTX_U8, sector);
    ptx_val end = ptx_add(f, offset, bytes);
    ptx_val mine = ptx_shl(f, c->thread, ptx_u32(4));
    ptx_val to_bytes = ptx_cast_ptr(f, to, PTX_U8);
    window w = {.from = ptx_cast_ptr(f, ptx_at(f, start, mine), PTX_U32)};
    w.to = ptx_cast_ptr(f, ptx_at(f, to_bytes, mine), PTX_U32);
    w.before = ptx_as(f, PTX_S32, ptx_sub(f, offset, mine));
    w.left = ptx_as(f, PTX_S32, ptx_sub(f, end, mine));
    for (uint32_t byte = 0; byte < rows_room(most_bytes); byte += PIECE * c->threads)
        copy_piece(f, c, &w, byte, byte == 0);
    if (!c->has_sm_80)
        copy_tail(f, c, start, to, end);
    return ptx_at(f, to_bytes, offset);
}
