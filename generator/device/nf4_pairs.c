/* A table with the two values of each byte. Each entry has 128 bytes of copies side by side, so that no two lanes hit the
 * same bank. Shuffles from a register would take a shift and a shuffle per weight, and a shuffle uses as much of the memory
 * pipe as the load of a pair.
 *
 * If entries are 128 bytes apart, an address takes a prmt for the byte and a mad. In a table of 64 KB at a multiple of 64 KB
 * they are 256 bytes apart, and one prmt inserts the byte into the address.
 */
#include "nf4_pairs.h"
#include "shared.h"

/* clang-format off */
const double nf4_values[16] = {
    -1.0,                 -0.6961928009986877,  -0.5250730514526367,  -0.39491748809814453,
    -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
    0.07958029955625534,  0.16093020141124725,  0.24611230194568634,  0.33791524171829224,
    0.44070982933044434,  0.5626170039176941,   0.7229568362236023,   1.0,
};
/* clang-format on */

enum { BYTES = 256, COPIES_BYTES = NF4_PAIRS_BYTES / BYTES };

/* By is_aligned. prmt's selector of byte 0: the lowest of a number, or the second byte of an address; and the factor of other
 * bytes. */
static const struct {
    uint32_t entry_stride, first_selector, selector_step;
} forms[] = {{COPIES_BYTES, 0x4440, 1}, {256, 0x7604, 16}};

/* Words of an entry: two values, or one pair of 16-bit values. */
static uint32_t words_of(const nf4_pairs *p)
{
    return p->type == PTX_F16 || p->type == PTX_BF16 ? 1 : 2;
}

static ptx_type word_type(const nf4_pairs *p)
{
    return words_of(p) == 1 ? PTX_U32 : p->type;
}

static uint32_t word_bytes(const nf4_pairs *p)
{
    return p->type == PTX_F64 ? 8 : 4;
}

/* Bytes from `start` to the table. */
static uint32_t skipped(const nf4_pairs *p)
{
    return p->is_aligned ? p->reserved : 0;
}

static ptx_val at(const nf4_pairs *p, ptx_val address, uint32_t bytes)
{
    return shared_at(p->f, word_type(p), address, skipped(p) + bytes);
}

uint32_t nf4_pairs_bytes(const nf4_pairs *p)
{
    return BYTES * forms[p->is_aligned].entry_stride + skipped(p);
}

uint32_t nf4_pairs_layout(nf4_pairs *p, ptx_val shared)
{
    const uint32_t alignment = NF4_PAIRS_ALIGNED_BYTES;
    p->start = shared;
    if (p->is_aligned) {
        ptx_val past = ptx_add(p->f, shared, alignment - 1 - p->reserved);
        p->start = ptx_and(p->f, past, 0u - alignment);
    }
    return nf4_pairs_bytes(p);
}

/* ---- filling ------------------------------------------------------------------------------------------------------ */

/* The words of all entries. */
static ptx_val constants(const nf4_pairs *p)
{
    const uint32_t words = words_of(p);
    uint64_t bits[2 * BYTES] = {0};
    for (uint32_t i = 0; i < 2 * BYTES; i++) {
        const uint32_t byte = i / 2, second = i % 2;
        const bool is_upper = second != (p->is_high_first ? 1 : 0);
        const uint64_t value = ptx_number(p->type, nf4_values[byte >> (is_upper ? 4 : 0) & 15]).bits;
        bits[i * words / 2] |= value << (words == 1 ? 16 * second : 0);
    }
    return ptx_global_table(p->f, word_type(p), BYTES * words, bits);
}

/* Fills `count` units of 16 bytes, `threads` apart, from unit `number` on. The copies of one entry are eight units. */
static void fill_units(const nf4_pairs *p, ptx_val pairs, ptx_val number, uint32_t threads, uint32_t count)
{
    ptx_fn *f = p->f;
    const uint32_t entries_apart = threads / 8, words = words_of(p), in_unit = UNIT_BYTES / word_bytes(p);
    const uint32_t stride = forms[p->is_aligned].entry_stride;
    ptx_val entry = ptx_shr(f, number, 3);
    ptx_val from = ptx_at(f, pairs, words == 1 ? entry : ptx_shl(f, entry, 1));
    ptx_val to = ptx_mad(f, number, UNIT_BYTES, p->start);
    if (p->is_aligned)
        to = ptx_mad(f, entry, stride - COPIES_BYTES, to);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t distance = i * entries_apart;
        ptx_val source = ptx_at_const(f, from, distance * words), word[4];
        ptx_val unit = at(p, to, distance * stride);
        ptx_load_vec(f, (int)words, word, source, PTX_NC);
        for (uint32_t w = words; w < in_unit; w++)
            word[w] = word[w - words];
        ptx_store_vec(f, (int)in_unit, unit, word, PTX_PLAIN);
    }
}

void nf4_pairs_find(nf4_pairs *p, ptx_val lane)
{
    const uint32_t pair_bytes = words_of(p) * word_bytes(p);
    ptx_val copy = ptx_and(p->f, lane, COPIES_BYTES / pair_bytes - 1);
    p->mine = ptx_mad(p->f, copy, pair_bytes, p->start);
}

void nf4_pairs_fill(const nf4_pairs *p, ptx_val tid)
{
    enum { UNITS = NF4_PAIRS_BYTES / UNIT_BYTES, AT_ONCE = 8 };
    ptx_fn *f = p->f;
    const uint32_t threads = ptx_block_x(f);
    ptx_val pairs = constants(p);
    if (threads * AT_ONCE >= UNITS) {
        fill_units(p, pairs, tid, threads, UNITS / threads);
        if (UNITS % threads != 0)
            PTX_IF (f, ptx_lt(f, tid, UNITS % threads)) {
                fill_units(p, pairs, ptx_add(f, tid, UNITS / threads * threads), threads, 1);
            }
        return;
    }
    PTX_FOR (f, first, ptx_u32(0), UNITS, threads * AT_ONCE) { /* ptxas would hoist all loads */
        fill_units(p, pairs, ptx_add(f, first, tid), threads, AT_ONCE);
    }
}

/* ---- decoding ----------------------------------------------------------------------------------------------------- */

void nf4_pairs_decode(const nf4_pairs *p, ptx_val word, uint32_t byte, ptx_val out[2])
{
    const uint32_t selector = forms[p->is_aligned].first_selector + forms[p->is_aligned].selector_step * byte;
    nf4_pairs_decode_selected(p, word, ptx_u32(selector), out);
}

ptx_val nf4_pairs_selector(const nf4_pairs *p, ptx_val byte)
{
    return ptx_mad(p->f, byte, forms[p->is_aligned].selector_step, forms[p->is_aligned].first_selector);
}

void nf4_pairs_decode_selected(const nf4_pairs *p, ptx_val word, ptx_val selector, ptx_val out[2])
{
    ptx_fn *f = p->f;
    ptx_val entry = ptx_prmt(f, word, p->is_aligned ? p->mine : ptx_u32(0), selector);
    if (!p->is_aligned)
        entry = ptx_mad(f, entry, COPIES_BYTES, p->mine);
    ptx_load_vec(f, (int)words_of(p), out, at(p, entry, 0), PTX_PLAIN);
}
