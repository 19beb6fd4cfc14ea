/* A word that begins s bytes after a multiple of 4 spans two aligned words: one prmt of both with selector 0x3210 + 0x1111 *
 * s, s up to 4, extracts it. Consecutive words share the aligned ones. */
#include "bytes.h"
#include "shared.h"

enum { WORD = 4, MOST_WORDS = 16, IN_PLACE = 0x3210, BYTE_FURTHER = 0x1111 };

byte_order bytes_order(ptx_fn *f, ptx_val pointer, uint32_t alignment, uint32_t phase)
{
    byte_order order = {.alignment = alignment};
    if (alignment % WORD == 0)
        return order;
    ptx_val offset = ptx_and(f, ptx_address(f, pointer), WORD - 1);
    order.selector[0] = ptx_mad(f, offset, BYTE_FURTHER, IN_PLACE);
    order.selector[1] = order.selector[0];
    if (phase > 0)
        order.selector[1] = ptx_add(f, order.selector[0], BYTE_FURTHER * phase);
    return order;
}

ptx_val bytes_round(ptx_fn *f, ptx_val pointer, uint32_t alignment)
{
    if (alignment % WORD == 0)
        return ptx_cast_ptr(f, pointer, PTX_U32);
    return shared_at(f, PTX_U32, ptx_and(f, ptx_address(f, pointer), ~(WORD - 1u)), 0);
}

/* Words per load: 4, 2 or 1. */
static uint32_t load_width(uint32_t alignment, uint32_t byte, uint32_t left)
{
    uint32_t words = 4;
    while (words > 1 && (words > left || alignment % (WORD * words) != 0 || byte % (WORD * words) != 0))
        words /= 2;
    return words;
}

static void load_aligned(ptx_fn *f, ptx_val rounded, uint32_t alignment, uint32_t byte, uint32_t count,
                         ptx_val words[])
{
    for (uint32_t i = 0, width; i < count; i += width) {
        ptx_val at = ptx_at_bytes(f, rounded, byte + WORD * i);
        width = load_width(alignment, byte + WORD * i, count - i);
        ptx_load_vec(f, (int)width, &words[i], at, PTX_PLAIN);
    }
}

void bytes_load(ptx_fn *f, const byte_order *order, ptx_val rounded, uint32_t alignment, uint32_t byte,
                uint32_t count, ptx_val words[])
{
    if (order->alignment % WORD == 0) {
        load_aligned(f, rounded, alignment, byte, count, words);
        return;
    }
    ptx_val whole[MOST_WORDS + 1] = {{0}};
    uint32_t phase = byte % WORD;
    load_aligned(f, rounded, WORD, byte - phase, count + 1, whole);
    for (uint32_t i = 0; i < count; i++)
        words[i] = ptx_prmt(f, whole[i], whole[i + 1], order->selector[phase == 0 ? 0 : 1]);
}

ptx_val bytes_load_low(ptx_fn *f, const byte_order *order, ptx_val rounded, uint32_t byte)
{
    ptx_val word = ptx_load(f, ptx_at_bytes(f, rounded, byte));
    return order->alignment % WORD == 0 ? word : ptx_prmt(f, word, word, order->selector[0]);
}
