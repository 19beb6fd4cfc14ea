/* A table with the two values of each byte. Each entry has 128 bytes of copies side by side, so that no two lanes hit the
 * same bank. Shuffles out of a register would take a shift and a shuffle for each weight, and a shuffle takes as much of
 * the memory pipe as the load of a pair.
 *
 * Where entries are 128 bytes apart, an address takes a prmt for the byte and a mad. In a table of 64 KB at a multiple of
 * 64 KB they are 256 bytes apart, and one prmt puts the byte into the address.
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

enum { BYTES = 256, COPIES_BYTES = NF4_PAIRS_BYTES / BYTES, ALIGNED_STRIDE = 256 };

static bool is_packed(const nf4_pairs *p)
{
    return p->type == PTX_F16 || p->type == PTX_BF16;
}

static uint32_t pair_bytes(const nf4_pairs *p)
{
    return p->type == PTX_F64 ? 16 : is_packed(p) ? 4 : 8;
}

/* The type of one value, or of a pair of 16-bit values. */
static ptx_type word_type(const nf4_pairs *p)
{
    return is_packed(p) ? PTX_U32 : p->type;
}

static ptx_val at(const nf4_pairs *p, ptx_val address, uint32_t bytes)
{
    return shared_at(p->f, word_type(p), address, bytes);
}

uint32_t nf4_pairs_bytes(const nf4_pairs *p)
{
    return p->is_aligned ? NF4_PAIRS_ALIGNED_BYTES + p->reserved : NF4_PAIRS_BYTES;
}

uint32_t nf4_pairs_layout(nf4_pairs *p, ptx_val shared)
{
    const uint32_t alignment = NF4_PAIRS_ALIGNED_BYTES;
    p->start = shared;
    if (!p->is_aligned)
        return nf4_pairs_bytes(p);
    ptx_val past = ptx_add(p->f, shared, alignment - 1 - p->reserved);
    p->start = ptx_and(p->f, past, 0u - alignment);
    p->skipped = p->reserved;
    return nf4_pairs_bytes(p);
}

/* ---- filling ------------------------------------------------------------------------------------------------------ */

static uint64_t value_bits(const nf4_pairs *p, uint32_t byte, uint32_t second)
{
    uint32_t is_upper = second ^ (p->is_high_first ? 1 : 0);
    return ptx_number(p->type, nf4_values[byte >> (is_upper ? 4 : 0) & 15]).bits;
}

static ptx_val constants(const nf4_pairs *p)
{
    uint64_t bits[2 * BYTES];
    for (uint32_t i = 0; i < BYTES; i++) {
        uint64_t first = value_bits(p, i, 0), second = value_bits(p, i, 1);
        if (is_packed(p)) {
            bits[i] = first | second << 16;
        } else {
            bits[2 * i] = first;
            bits[2 * i + 1] = second;
        }
    }
    return ptx_global_table(p->f, word_type(p), is_packed(p) ? BYTES : 2 * BYTES, bits);
}

/* Writes sixteen bytes of copies of the entry at `from`. */
static void copy_entry(const nf4_pairs *p, ptx_val from, ptx_val to)
{
    ptx_fn *f = p->f;
    ptx_val word[4];
    int words = is_packed(p) ? 1 : 2, count = p->type == PTX_F64 ? 2 : 4;
    if (is_packed(p))
        word[0] = ptx_load_hint(f, from, PTX_NC);
    else
        ptx_load_vec(f, 2, word, from, PTX_NC);
    for (int i = words; i < count; i++)
        word[i] = word[i - words];
    ptx_store_vec(f, count, to, word, PTX_PLAIN);
}

/* Fills `count` units of 16 bytes from `number` on, `threads` apart; an entry has eight. */
static void fill_units(const nf4_pairs *p, ptx_val pairs, ptx_val number, uint32_t threads, uint32_t count)
{
    ptx_fn *f = p->f;
    uint32_t entries_apart = threads / 8, words = is_packed(p) ? 1 : 2;
    ptx_val entry = ptx_shr(f, number, 3);
    ptx_val from = ptx_at(f, pairs, words == 1 ? entry : ptx_shl(f, entry, 1));
    ptx_val to = ptx_mad(f, number, UNIT_BYTES, p->start);
    if (p->is_aligned)
        to = ptx_mad(f, entry, ALIGNED_STRIDE - COPIES_BYTES, to);
    uint32_t stride = p->is_aligned ? ALIGNED_STRIDE : COPIES_BYTES;
    for (uint32_t i = 0; i < count; i++)
        copy_entry(p, ptx_at_const(f, from, i * entries_apart * words),
                   at(p, to, p->skipped + i * entries_apart * stride));
}

void nf4_pairs_find(nf4_pairs *p, ptx_val lane)
{
    ptx_fn *f = p->f;
    ptx_val copy = ptx_and(f, lane, COPIES_BYTES / pair_bytes(p) - 1);
    p->mine = ptx_mad(f, copy, pair_bytes(p), p->start);
}

void nf4_pairs_fill(const nf4_pairs *p, ptx_val tid)
{
    enum { UNITS = NF4_PAIRS_BYTES / UNIT_BYTES, AT_ONCE = 8 };
    ptx_fn *f = p->f;
    const uint32_t threads = ptx_block_x(f);
    ptx_val pairs = constants(p);
    if (threads * AT_ONCE >= UNITS) {
        fill_units(p, pairs, tid, threads, UNITS / threads);
        return;
    }
    PTX_FOR (f, first, ptx_u32(0), UNITS, threads * AT_ONCE) { /* ptxas would hoist all loads */
        fill_units(p, pairs, ptx_add(f, first, tid), threads, AT_ONCE);
    }
}

/* ---- decoding ----------------------------------------------------------------------------------------------------- */

static ptx_val entry_of(const nf4_pairs *p, ptx_val word, uint32_t byte)
{
    ptx_fn *f = p->f;
    if (p->is_aligned)
        return ptx_prmt(f, word, p->mine, 0x7604 | byte << 4);
    ptx_val code = ptx_prmt(f, word, 0, 0x4440 | byte);
    return ptx_mad(f, code, COPIES_BYTES, p->mine);
}

void nf4_pairs_decode(const nf4_pairs *p, ptx_val word, uint32_t byte, ptx_val out[2])
{
    ptx_val entry = at(p, entry_of(p, word, byte), p->skipped);
    if (is_packed(p))
        out[0] = ptx_load(p->f, entry);
    else
        ptx_load_vec(p->f, 2, out, entry, PTX_PLAIN);
}
