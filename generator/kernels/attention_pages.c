/* Page tables: addresses of the rows of a tile of keys. An octet's entry is two U64, in bytes: the offsets of its rows of K and of
 * V. With a scale for each key it is four, and the third is the offset of the scales. After the entries each thread that builds
 * entries keeps two U32, to save registers: the reciprocal of the page size, and the sequence's first page. */
#include "attention_copy.h"
#include "device/shared.h"

enum { TILES = 2, OWN_BYTES = 8 };

static uint32_t entries_bytes(const attention *a)
{
    return TILES * a->tile_k / OCTET * a->entry_bytes;
}

uint32_t attention_pages_bytes(const attention *a)
{
    return a->layout == ATTENTION_PAGED ? entries_bytes(a) + a->tile_k / OCTET * OWN_BYTES : 0;
}

/* This thread's octet of a tile: recomputed rather than kept. A number past the last means none. */
static ptx_val octet_of(const attention *a)
{
    ptx_fn *f = a->f;
    if (a->warp_octets == 0)
        return ptx_tid_x(f);
    ptx_val lane = ptx_laneid(f), warp = ptx_warpid_x(f);
    ptx_val octet = ptx_mad(f, warp, a->warp_octets, lane);
    ptx_val has_one = ptx_lt(f, lane, a->warp_octets);
    return ptx_select(f, has_one, octet, a->tile_k / OCTET);
}

static ptx_val own_numbers(const attention *a)
{
    ptx_fn *f = a->f;
    ptx_val at = ptx_mad(f, octet_of(a), OWN_BYTES, a->entries);
    return shared_at(f, PTX_U32, at, entries_bytes(a));
}

/* The place of this thread's octet of a tile: an entry of the table, and a row of its page. */
typedef struct place {
    ptx_val key, entry, row;
} place;

/* own[0] * 2^-32 is at most 9/8 * 2^-32 below 1 / size, and a key is below 2^30: so the quotient is at most 1 too small. */
static place find_octet(const attention *a, ptx_val counted)
{
    ptx_fn *f = a->f;
    ptx_val first = attention_key(a, counted), size = a->page_size, own[2];
    ptx_val key = ptx_mad(f, octet_of(a), OCTET, first);
    ptx_load_vec(f, 2, own, own_numbers(a), PTX_PLAIN);
    ptx_val number = ptx_mul_hi(f, key, own[0]);
    ptx_val row = ptx_var(f, ptx_sub(f, key, ptx_mul(f, number, size)));
    ptx_val entry = ptx_var(f, ptx_add(f, number, own[1]));
    PTX_WHEN (f, ptx_ge(f, row, size)) {
        ptx_add_to(f, entry, 1);
        ptx_sub_to(f, row, size);
    }
    return (place){key, entry, row};
}

/* Fetches the page of this thread's octet of a tile. Pages past the last key are not read. */
static void fetch(attention *a, ptx_val counted)
{
    ptx_fn *f = a->f;
    const place at = find_octet(a, counted);
    ptx_val from = ptx_at(f, a->page_table, at.entry);
    PTX_WHEN (f, ptx_lt(f, at.key, a->k.end)) {
        ptx_set(f, a->page, ptx_as(f, PTX_U32, ptx_load_hint(f, from, PTX_NC)));
    }
}

static ptx_val tile_at(const attention *a, ptx_val counted)
{
    ptx_fn *f = a->f;
    ptx_val is_odd = ptx_and(f, counted, a->tile_k);
    return ptx_mad(f, is_odd, a->entry_bytes / OCTET, a->entries);
}

static ptx_val bytes_before(const attention *a, const attention_matrix *m, ptx_val row)
{
    ptx_fn *f = a->f;
    ptx_val in_page = ptx_mul_wide(f, row, m->row_stride), page = ptx_cvt(f, PTX_U64, a->page);
    ptx_val elements = ptx_mad(f, page, m->batch_stride, in_page);
    return m->bytes == 1 ? elements : ptx_mul(f, elements, m->bytes);
}

/* Also fetches the pages of the next tile. The row is recomputed when the page arrives. */
static void lay_out(attention *a, ptx_val counted)
{
    ptx_fn *f = a->f;
    ptx_val row = find_octet(a, counted).row;
    ptx_val k = bytes_before(a, &a->k, row), v = bytes_before(a, &a->v, row);
    const ptx_val entry[2] = {k, v};
    ptx_val tile = tile_at(a, counted), to = ptx_mad(f, octet_of(a), a->entry_bytes, tile);
    ptx_store_vec(f, 2, shared_at(f, PTX_U64, to, 0), entry, PTX_PLAIN);
    if (a->kv == ATTENTION_INT8_TOKEN) {
        ptx_val scales = bytes_before(a, &a->k_scales, row);
        ptx_store(f, shared_at(f, PTX_U64, to, a->k_scales.in_entry), scales);
    }
    fetch(a, ptx_add(f, counted, a->tile_k));
}

static ptx_val has_octet(const attention *a)
{
    return ptx_lt(a->f, octet_of(a), a->tile_k / OCTET);
}

void attention_init_pages(attention *a, uint32_t warp_octets)
{
    ptx_fn *f = a->f;
    if (a->layout != ATTENTION_PAGED)
        return;
    a->warp_octets = warp_octets;
    a->entries = ptx_address(f, ptx_shared(f, PTX_U64, attention_pages_bytes(a) / 8, UNIT_BYTES));
    a->page = ptx_var(f, ptx_u32(0));
    PTX_IF (f, has_octet(a)) {
        const ptx_val own[2] = {ptx_div(f, UINT32_MAX, a->page_size), a->first_page};
        ptx_store_vec(f, 2, own_numbers(a), own, PTX_PLAIN);
        fetch(a, a->first_key);
        lay_out(a, a->first_key);
    }
    attention_select_pages(a, a->first_key);
    ptx_barrier(f);
}

void attention_select_pages(attention *a, ptx_val counted)
{
    if (a->layout == ATTENTION_PAGED)
        a->octets = tile_at(a, counted);
}

void attention_build_pages(attention *a, ptx_val counted)
{
    ptx_fn *f = a->f;
    if (a->layout != ATTENTION_PAGED)
        return;
    PTX_IF (f, has_octet(a)) {
        lay_out(a, ptx_add(f, counted, a->tile_k));
    }
}

ptx_val attention_octet_at(const attention *a, ptx_val row)
{
    ptx_fn *f = a->f;
    const uint32_t log = a->entry_bytes == UNIT_BYTES ? 1 : 2; /* 16 or 32 bytes for eight rows */
    ptx_val times = ptx_shl(f, row, log);
    return ptx_add(f, a->octets, ptx_and(f, times, (a->tile_k << log) - a->entry_bytes));
}

ptx_val attention_load_octet(const attention *a, const attention_matrix *m, ptx_val octet, uint32_t rows)
{
    return ptx_load(a->f, shared_at(a->f, PTX_U64, octet, rows / OCTET * a->entry_bytes + m->in_entry));
}
