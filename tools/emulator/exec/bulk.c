/* Bulk copies of bytes and of tensor boxes (ISA 9.7.9.25.4, 9.7.9.27). core/bulk.c has the copies in flight. */
#include "bulk.h"

#include "../core/bulk.h"
#include "../core/tensor_map.h"
#include "mbarrier.h"
#include "update.h"

#include <stdlib.h>

enum { UNIT = 16, TENSOR_ALIGNMENT = 128, MAP_ALIGNMENT = 64 };

/* ---- what a copy does to bytes ------------------------------------------------------------------------------------- */

static void write_copy(const emu_bulk *bulk, char *to, const char *from, uint32_t bytes)
{
    (void)bulk;
    memcpy(to, from, bytes);
}

static void write_flushed(const emu_bulk *bulk, char *to, const char *from, uint32_t bytes)
{
    (void)bulk;
    for (uint32_t n = 0; n < bytes; n += sizeof(float)) {
        float f;
        memcpy(&f, from + n, sizeof f);
        f = flush_float(f);
        memcpy(to + n, &f, sizeof f);
    }
}

static void write_reduced(const emu_bulk *bulk, char *to, const char *from, uint32_t bytes)
{
    const unsigned each = emu_types[bulk->element.type].bytes;
    for (uint32_t n = 0; n < bytes; n += each) {
        uint64_t value = 0;
        memcpy(&value, from + n, each);
        update(&bulk->element, false, each, (uint64_t)(uintptr_t)(to + n), value, 0);
    }
}

/* ---- addresses ----------------------------------------------------------------------------------------------------- */

static bool is_aligned(emu_warp *w, const emu_op *op, uint32_t lane, uint64_t at, unsigned alignment,
                       const char *what)
{
    if (at % alignment)
        emu_fault(w, op, 1u << lane, CUDA_ERROR_MISALIGNED_ADDRESS,
                  "gives 0x%llx as %s, which is not a multiple of %u", (unsigned long long)at, what,
                  alignment);
    return at % alignment == 0;
}

static void repeat(uint64_t at[EMU_LANES], uint64_t address)
{
    for (int i = 0; i < EMU_LANES; i++)
        at[i] = address;
}

/* Reports an access by one lane to one piece of memory. */
static void tell_access(emu_warp *w, const emu_op *op, uint32_t lane, uint64_t host, uint32_t bytes,
                        bool writes)
{
    uint64_t at[EMU_LANES];
    repeat(at, host);
    EMU_TELL(w->audience, access, w, op, 1u << lane, bytes, writes, at);
}

typedef struct shared_place {
    emu_block *holder;
    uint32_t offset;
} shared_place;

/* Finds the bytes in shared memory by checking their first and last 16. Returns false after a fault. */
static bool find_shared(emu_warp *w, const emu_op *op, uint32_t lane, uint64_t address, uint64_t bytes,
                        bool writes, shared_place *place)
{
    uint64_t first[EMU_LANES], last[EMU_LANES];
    repeat(first, address);
    repeat(last, address + bytes - UNIT);
    if (!access_find(w, op, 1u << lane, UNIT, writes, first) ||
        !access_find(w, op, 1u << lane, UNIT, writes, last))
        return false;
    if (last[0] - first[0] != bytes - UNIT) {
        emu_fault(w, op, 1u << lane, CUDA_ERROR_ILLEGAL_ADDRESS,
                  "accesses %llu bytes at 0x%llx, which lie in the shared memory of several thread blocks",
                  (unsigned long long)bytes, (unsigned long long)address);
        return false;
    }
    place->holder = emu_block_holding(w->block, first[0]);
    place->offset = offset_in(place->holder, first[0]);
    return true;
}

/* Returns true if one allocation holds all the bytes; otherwise the launch fails. */
static bool is_inside_global(emu_warp *w, const emu_op *op, uint32_t lane, uint64_t address, uint32_t bytes,
                             bool writes)
{
    uint64_t at[EMU_LANES];
    repeat(at, address);
    if (!access_global(w, op, 1u << lane, 1, writes, at))
        return false;
    const emu_recent *r = &w->block->recent[op->at % EMU_RECENT];
    if (address + bytes <= r->end)
        return true;
    repeat(at, r->end);
    emu_bounds_global(w, op, 1u << lane, 1, writes, at);
    return false;
}

/* ---- issue --------------------------------------------------------------------------------------------------------- */

static void add_piece(emu_bulk *bulk, emu_bulk_piece piece)
{
    const uint32_t n = bulk->piece_count;
    if (piece.bytes == 0)
        return;
    if (n == 0 || (n >= 8 && (n & (n - 1)) == 0)) /* doubles the capacity */
        bulk->pieces = emu_grow(bulk->pieces, n * sizeof piece, (n ? 2 * n : 8) * sizeof piece);
    bulk->pieces[bulk->piece_count++] = piece;
}

/* The operands of the instruction's lanes. */
typedef struct operands {
    emu_bulk_kind kind;
    uint64_t shared[EMU_LANES], other[EMU_LANES], mbarrier[EMU_LANES];
    emu_bulk last; /* the copy that the previous lane issued; no pieces: none */
} operands;

/* True for a store of the same bytes as the previous lane's. */
static bool is_repeated(const emu_bulk *last, const emu_bulk *bulk)
{
    return bulk->kind == EMU_BULK_STORE && last->piece_count && last->piece_count == bulk->piece_count &&
           memcmp(last->pieces, bulk->pieces, bulk->piece_count * sizeof *bulk->pieces) == 0;
}

/* Reports the copy's accesses to the observers and issues it. Takes ownership of the pieces. */
static void start(emu_warp *w, const emu_op *op, uint32_t lane, emu_bulk *bulk)
{
    bool loads = bulk->kind == EMU_BULK_LOAD, tells = EMU_IS_TOLD(w->audience, access) && !bulk->is_repeated;
    for (uint32_t n = 0; tells && n < bulk->piece_count; n++) {
        const emu_bulk_piece *p = &bulk->pieces[n];
        tell_access(w, op, lane, (uint64_t)(uintptr_t)bulk->holder->shared + p->shared, p->bytes, loads);
        if (p->global)
            tell_access(w, op + 1, lane, p->global, p->bytes, !loads);
    }
    EMU_TELL(w->audience, bulk_issue, w, op, bulk);
    if (w->state == EMU_WARP_FAULTED)
        free(bulk->pieces);
    else
        emu_bulk_issue(bulk);
}

/* Returns true if the cluster has all blocks of the multicast mask, all still running; otherwise the launch fails. */
static bool is_mask_right(emu_warp *w, const emu_op *op, uint32_t lane, uint32_t mask)
{
    const emu_cluster *c = w->block->cluster;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned rank = (unsigned)__builtin_ctz(left);
        if (rank >= c->count)
            emu_fault(w, op, 1u << lane, CUDA_ERROR_ILLEGAL_ADDRESS,
                      "gives the block mask 0x%x, but its cluster has only %u block%s", mask, c->count,
                      c->count > 1 ? "s" : "");
        else if (c->blocks[rank].live_warps == 0)
            emu_fault(w, op, 1u << lane, CUDA_ERROR_ILLEGAL_ADDRESS,
                      "copies to the block of rank %u, which has ended", rank);
        else
            continue;
        return false;
    }
    return true;
}

/* Issues a copy to each block of the mask, at the same offsets. Takes ownership of the pieces. */
static void start_multicast(emu_warp *w, const emu_op *op, uint32_t lane, emu_bulk *bulk, uint32_t mask)
{
    emu_cluster *c = w->block->cluster;
    size_t bytes = bulk->piece_count * sizeof *bulk->pieces;
    for (; mask && w->state != EMU_WARP_FAULTED; mask &= mask - 1) {
        uint64_t bits;
        emu_mbarrier m;
        emu_bulk one = *bulk;
        one.holder = &c->blocks[__builtin_ctz(mask)];
        if (!load_mbarrier(w, op + 2, lane, (uint64_t)(uintptr_t)one.holder->shared + bulk->mbarrier, &bits,
                           &m))
            break;
        one.phase = m.phase;
        one.pieces = emu_alloc(bytes + 1);
        if (bytes)
            memcpy(one.pieces, bulk->pieces, bytes);
        start(w, op, lane, &one);
    }
    free(bulk->pieces);
}

/* Argument 1 of op + 2 is the multicast mask, or the sink without .multicast. */
static bool start_all(emu_warp *w, const emu_op *op, uint32_t lane, operands *o, emu_bulk *bulk)
{
    if (bulk->kind != EMU_BULK_LOAD || op[2].arg[1] == EMU_SINK) {
        bulk->is_repeated = is_repeated(&o->last, bulk);
        start(w, op, lane, bulk);
        o->last = *bulk;
        return w->state != EMU_WARP_FAULTED;
    }
    uint32_t mask = ((const uint16_t *)emu_lanes(w, op[2].arg[1]))[lane];
    if (is_mask_right(w, op, lane, mask))
        start_multicast(w, op, lane, bulk, mask);
    else
        free(bulk->pieces);
    return w->state != EMU_WARP_FAULTED;
}

/* Sets what all copies need. A load's mbarrier must be in the destination's block. Returns false after a fault. */
static bool prepare(emu_warp *w, const emu_op *op, uint32_t lane, uint64_t mbarrier, emu_block *holder,
                    emu_bulk *bulk)
{
    uint64_t bits;
    emu_mbarrier m;
    bulk->op = op;
    bulk->from = w->block;
    bulk->holder = holder;
    bulk->thread = thread_of(w, lane);
    if (bulk->kind != EMU_BULK_LOAD)
        return true;
    if (emu_block_holding(w->block, mbarrier) != holder) {
        emu_fault(w, op + 2, 1u << lane, CUDA_ERROR_INVALID_ADDRESS_SPACE,
                  "names an mbarrier object that is not in the destination's block");
        return false;
    }
    if (!load_mbarrier(w, op + 2, lane, mbarrier, &bits, &m))
        return false;
    bulk->mbarrier = offset_in(holder, mbarrier);
    bulk->phase = m.phase;
    return true;
}

/* Reads the lanes' addresses without checking them. Returns false after a fault. */
static bool addresses_of(emu_warp *w, const emu_op *op, uint32_t mask, uint64_t at[EMU_LANES])
{
    if (!access_announce(w, op, op->arg[0], mask))
        return false;
    access_addresses(w, op, op->arg[0], mask, at);
    return true;
}

static bool read_operands(emu_warp *w, const emu_op *op, uint32_t mask, emu_bulk_kind kind, operands *o)
{
    o->kind = kind;
    o->last.piece_count = 0;
    return addresses_of(w, op, mask, o->shared) && addresses_of(w, op + 1, mask, o->other) &&
           (kind != EMU_BULK_LOAD || mbarriers_uncounted(w, op + 2, 0, mask, true, o->mbarrier));
}

/* ---- bytes --------------------------------------------------------------------------------------------------------- */

/* Finds the source, in shared memory, of a copy to another block. Returns false after a fault. */
static bool find_source(emu_warp *w, const emu_op *op, uint32_t lane, uint64_t address, uint32_t bytes,
                        const emu_block *holder, uint64_t *host)
{
    shared_place place;
    if (holder == w->block) {
        emu_fault(w, op, 1u << lane, CUDA_ERROR_LAUNCH_FAILED,
                  "copies from shared memory to its own block's: the destination must be in another block");
        return false;
    }
    if (!find_shared(w, op, lane, address, bytes, false, &place))
        return false;
    *host = (uint64_t)(uintptr_t)place.holder->shared + place.offset;
    return true;
}

/* Returns false after a fault. */
static bool copy_lane(emu_warp *w, const emu_op *op, uint32_t lane, operands *o)
{
    uint32_t size = LANES_OF(const uint32_t, 1)[lane];
    uint64_t shared = o->shared[lane], other = o->other[lane];
    bool loads = o->kind == EMU_BULK_LOAD, in_shared = op[1].mods.space == EMU_SHARED;
    emu_bulk bulk = {.kind = o->kind, .bytes = size, .element = op->mods};
    shared_place place;
    bulk.element.mode = op->mods.combine;
    bulk.write = op->mods.type == EMU_NONE ? write_copy : write_reduced;
    if (size % UNIT) {
        emu_fault(w, op, 1u << lane, CUDA_ERROR_MISALIGNED_ADDRESS,
                  "copies %u bytes, which is not a multiple of %d", size, UNIT);
        return false;
    }
    if (!is_aligned(w, op, lane, shared, UNIT, "an address of shared memory") ||
        !is_aligned(w, op, lane, other, UNIT,
                    in_shared ? "an address of shared memory" : "an address of global memory"))
        return false;
    if (size == 0)
        return true;
    if (!find_shared(w, op, lane, shared, size, loads, &place) ||
        !prepare(w, op, lane, o->mbarrier[lane], place.holder, &bulk) ||
        !(in_shared ? find_source(w, op + 1, lane, other, size, place.holder, &other)
                    : is_inside_global(w, op + 1, lane, other, size, !loads)))
        return false;
    add_piece(&bulk, (emu_bulk_piece){other, place.offset, size});
    return start_all(w, op, lane, o, &bulk);
}

static void copy_bytes(emu_warp *w, const emu_op *op, uint32_t mask, emu_bulk_kind kind)
{
    operands o;
    if (!read_operands(w, op, mask, kind, &o))
        return;
    ACTIVE_LANES(mask)
    if (!copy_lane(w, op, i, &o))
        return;
}

HANDLER(load)
{
    if (op->mods.mode == EMU_BULK_FIRST)
        copy_bytes(w, op, mask, EMU_BULK_LOAD);
}

HANDLER(store)
{
    if (op->mods.mode == EMU_BULK_FIRST)
        copy_bytes(w, op, mask, EMU_BULK_STORE);
}

HANDLER(reduce)
{
    if (op->mods.mode == EMU_BULK_FIRST)
        copy_bytes(w, op, mask, EMU_BULK_REDUCTION);
}

HANDLER(commit)
{
    (void)op;
    ACTIVE_LANES(mask) emu_bulk_commit(w->block, thread_of(w, i));
}

/* mods.mode: 1 with .read. */
HANDLER(wait_group)
{
    emu_bulk_wait(w->block, w->id, mask, (uint32_t)op->imm, op->mods.mode == 1);
}

/* ---- boxes of tensors ---------------------------------------------------------------------------------------------- */

/* Reads the tensor map at the address. Returns false after a fault. */
static bool read_map(emu_warp *w, const emu_op *op, uint32_t lane, uint64_t address, unsigned rank,
                     emu_tensor_map *map)
{
    uint64_t at[EMU_LANES], rest[EMU_LANES];
    const char *wrong;
    repeat(at, address);
    repeat(rest, address + MAP_ALIGNMENT);
    if (!is_aligned(w, op, lane, address, MAP_ALIGNMENT, "the address of a tensor map") ||
        !access_find(w, op, 1u << lane, MAP_ALIGNMENT, false, at) ||
        !access_find(w, op, 1u << lane, MAP_ALIGNMENT, false, rest))
        return false;
    EMU_TELL(w->audience, map_read, w, op, lane, at[0]);
    if (w->state == EMU_WARP_FAULTED)
        return false;
    *map = emu_map_unpack((const void *)(uintptr_t)at[0]);
    wrong = emu_map_wrong(map);
    if (wrong)
        emu_fault(w, op, 1u << lane, CUDA_ERROR_ILLEGAL_INSTRUCTION, "uses an invalid tensor map: %s", wrong);
    else if ((wrong = emu_map_lacks(map)) != NULL)
        emu_fault(w, op, 1u << lane, CUDA_ERROR_NOT_SUPPORTED,
                  "uses a tensor map with %s, which is not emulated", wrong);
    else if (map->rank != rank)
        emu_fault(w, op, 1u << lane, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                  "gives %u coordinates for a tensor map of %u dimensions", rank, map->rank);
    else
        return true;
    return false;
}

/* A box, and its place in the tensor and in shared memory. */
typedef struct box {
    emu_tensor_map map;
    int64_t corner[EMU_MAP_RANKS]; /* coordinates */
    uint32_t count[EMU_MAP_RANKS]; /* elements along each dimension */
    uint32_t row_bytes;
    uint64_t rows;
    uint32_t shared; /* offset */
} box;

static box box_of(const emu_warp *w, const emu_op *op, uint32_t lane, const emu_tensor_map *map)
{
    box b = {.map = *map, .rows = 1};
    for (unsigned d = 0; d < map->rank; d++) {
        uint32_t step = d ? map->step[d] : 1;
        b.corner[d] = ((const int32_t *)emu_lanes(w, op->list[d]))[lane];
        b.count[d] = (map->box[d] + step - 1) / step;
        b.rows *= d ? b.count[d] : 1;
    }
    b.row_bytes = b.count[0] * emu_map_element_bytes(map);
    return b;
}

/* Returns the host address of a row of the box in the tensor, or 0 if the row lies outside. */
static uint64_t row_address(const box *b, uint32_t row)
{
    uint64_t at = b->map.address + (uint64_t)(b->corner[0] * (int64_t)emu_map_element_bytes(&b->map));
    for (unsigned d = 1; d < b->map.rank; d++) {
        int64_t c = b->corner[d] + (int64_t)(row % b->count[d]) * b->map.step[d];
        row /= b->count[d];
        if (c < 0 || c >= (int64_t)b->map.size[d])
            return 0;
        at += (uint64_t)c * b->map.stride[d - 1];
    }
    return at;
}

/* A swizzle permutes bits of the address in shared memory (ISA 5.5.7). */
static uint32_t swizzled(const box *b, uint32_t at)
{
    return at ^ (at >> 7 & (emu_map_span(&b->map) / UNIT - 1)) * UNIT;
}

/* Adds the bytes [from, end) of a row, in pieces that are contiguous in shared memory. */
static void add_part(emu_bulk *bulk, const box *b, uint32_t row, uint64_t address, int64_t from, int64_t end)
{
    uint32_t most = b->map.swizzle ? UNIT : b->row_bytes;
    while (from < end) {
        int64_t next = (from / most + 1) * most, until = next < end ? next : end;
        uint32_t at = b->shared + row * b->row_bytes + (uint32_t)from;
        add_piece(bulk, (emu_bulk_piece){address ? address + (uint64_t)from : 0, swizzled(b, at),
                                         (uint32_t)(until - from)});
        from = until;
    }
}

/* Adds a row. Stores skip elements outside the tensor, loads fill them. Returns false after a fault. */
static bool add_row(emu_warp *w, const emu_op *op, uint32_t lane, emu_bulk *bulk, const box *b, uint32_t row)
{
    int64_t each = emu_map_element_bytes(&b->map), first = -b->corner[0] * each, row_bytes = b->row_bytes;
    int64_t last = first + (int64_t)b->map.size[0] * each;
    uint64_t address = row_address(b, row);
    bool loads = bulk->kind == EMU_BULK_LOAD;
    first = !address || first > row_bytes ? row_bytes : first < 0 ? 0 : first;
    last = last > row_bytes ? row_bytes : last < first ? first : last;
    if (last > first &&
        !is_inside_global(w, op, lane, address + (uint64_t)first, (uint32_t)(last - first), !loads))
        return false;
    if (loads)
        add_part(bulk, b, row, 0, 0, first);
    add_part(bulk, b, row, address, first, last);
    if (loads)
        add_part(bulk, b, row, 0, last, row_bytes);
    return true;
}

static bool is_box_right(emu_warp *w, const emu_op *op, uint32_t lane, const box *b, emu_bulk_kind kind)
{
    long long bytes = (long long)b->corner[0] * emu_map_element_bytes(&b->map);
    if (bytes % UNIT) {
        emu_fault(w, op, 1u << lane, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                  "names a box that begins at byte %lld of the tensor's rows, which is not a multiple of %d",
                  bytes, UNIT);
        return false;
    }
    for (unsigned d = 0; d < b->map.rank && kind != EMU_BULK_LOAD; d++)
        if (b->corner[d] < 0) {
            emu_fault(w, op, 1u << lane, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                      "stores to a box with the negative coordinate %lld", (long long)b->corner[d]);
            return false;
        }
    return true;
}

/* Returns the type of a reduction's elements, or EMU_NONE if the operation lacks the map's type. */
static emu_type reduced_type(const emu_tensor_map *map, unsigned operation)
{
    static const uint8_t types[EMU_MAP_TYPES] = {
        [EMU_MAP_U32] = EMU_U32,   [EMU_MAP_S32] = EMU_S32,     [EMU_MAP_U64] = EMU_U64,
        [EMU_MAP_S64] = EMU_S64,   [EMU_MAP_F16] = EMU_F16,     [EMU_MAP_F32] = EMU_F32,
        [EMU_MAP_BF16] = EMU_BF16, [EMU_MAP_F32_FTZ] = EMU_F32,
    };
    const emu_type type = (emu_type)types[map->type];
    const bool is_integer = type == EMU_U32 || type == EMU_S32 || type == EMU_U64 || type == EMU_S64;
    bool fits = operation <= XOR                       ? is_integer
                : operation == INC || operation == DEC ? type == EMU_U32
                : operation == ADD                     ? type != EMU_S64
                                                       : type != EMU_F32;
    return fits ? type : EMU_NONE;
}

static bool set_writer(emu_warp *w, const emu_op *op, uint32_t lane, const emu_tensor_map *map,
                       emu_bulk *bulk)
{
    bulk->write = write_copy;
    bulk->fill = map->fill ? 0xff : 0; /* OOB-NaN has all bits set, as in fma.oob */
    if (bulk->kind == EMU_BULK_LOAD && (map->type == EMU_MAP_F32_FTZ || map->type == EMU_MAP_TF32_FTZ))
        bulk->write = write_flushed;
    if (bulk->kind != EMU_BULK_REDUCTION)
        return true;
    bulk->write = write_reduced;
    bulk->element =
        (emu_mods){.type = (uint8_t)reduced_type(map, op->mods.combine), .mode = op->mods.combine};
    if (bulk->element.type == EMU_NONE)
        emu_fault(w, op, 1u << lane, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                  "reduces a tensor whose element type this operation does not support");
    return bulk->element.type != EMU_NONE;
}

static bool copy_box(emu_warp *w, const emu_op *op, uint32_t lane, operands *o)
{
    emu_tensor_map map;
    emu_bulk bulk = {.kind = o->kind};
    uint64_t shared = o->shared[lane];
    bool loads = o->kind == EMU_BULK_LOAD;
    if (!is_aligned(w, op, lane, shared, TENSOR_ALIGNMENT, "an address of shared memory") ||
        !read_map(w, op + 1, lane, o->other[lane], op->mods.count, &map) ||
        !set_writer(w, op, lane, &map, &bulk))
        return false;
    shared_place place;
    box b = box_of(w, op, lane, &map);
    bool is_right = is_box_right(w, op, lane, &b, o->kind) &&
                    find_shared(w, op, lane, shared, b.rows * b.row_bytes, loads, &place) &&
                    prepare(w, op, lane, o->mbarrier[lane], place.holder, &bulk);
    bulk.bytes = (uint32_t)(b.rows * b.row_bytes);
    if (is_right)
        b.shared = place.offset;
    for (uint32_t row = 0; is_right && row < b.rows; row++)
        is_right = add_row(w, op + 1, lane, &bulk, &b, row);
    if (is_right)
        return start_all(w, op, lane, o, &bulk);
    free(bulk.pieces);
    return false;
}

static void copy_boxes(emu_warp *w, const emu_op *op, uint32_t mask, emu_bulk_kind kind)
{
    operands o;
    if (op->mods.mode != EMU_BULK_FIRST || !read_operands(w, op, mask, kind, &o))
        return;
    ACTIVE_LANES(mask)
    if (!copy_box(w, op, i, &o))
        return;
}

HANDLER_CALLS(load_box, copy_boxes, EMU_BULK_LOAD)
HANDLER_CALLS(store_box, copy_boxes, EMU_BULK_STORE)
HANDLER_CALLS(reduce_box, copy_boxes, EMU_BULK_REDUCTION)

/* Checks the map and the coordinates of the box. */
HANDLER(prefetch_box)
{
    uint64_t map[EMU_LANES];
    if (!addresses_of(w, op, mask, map))
        return;
    ACTIVE_LANES(mask)
    {
        emu_tensor_map m;
        if (!read_map(w, op, i, map[i], op->mods.count, &m))
            return;
        box b = box_of(w, op, i, &m);
        if (!is_box_right(w, op, i, &b, EMU_BULK_LOAD))
            return;
    }
}

/* ---- the instructions ---------------------------------------------------------------------------------------------- */

#define MBARRIER "mbarrier::complete_tx::bytes"
#define HINT     " L2::cache_hint?"
#define DIM      "1d|2d|3d|4d|5d"
#define BULK(opcode, modifiers, version, handler)                                                            \
    {                                                                                                        \
        opcode, modifiers, "", version, 90, .run = handler, .form = EMU_FORM_BULK                            \
    }

static const emu_row rows[] = {
    BULK("cp", "async bulk shared::cluster global " MBARRIER HINT, 80, load),
    BULK("cp", "async bulk shared::cta global " MBARRIER HINT, 86, load),
    BULK("cp", "async bulk shared::cluster global " MBARRIER " multicast::cluster" HINT, 80, load),
    BULK("cp", "async bulk shared::cluster shared::cta " MBARRIER, 80, load),
    BULK("cp", "reduce async bulk shared::cluster shared::cta " MBARRIER " add t:u32|s32|u64", 80, load),
    BULK("cp", "reduce async bulk shared::cluster shared::cta " MBARRIER " min|max t:u32|s32", 80, load),
    BULK("cp", "reduce async bulk shared::cluster shared::cta " MBARRIER " inc|dec t:u32", 80, load),
    BULK("cp", "reduce async bulk shared::cluster shared::cta " MBARRIER " and|or|xor t:b32", 80, load),
    BULK("cp", "async bulk global shared::cta bulk_group" HINT, 80, store),
    BULK("cp", "reduce async bulk global shared::cta bulk_group" HINT " add t:u32|s32|u64|f32|f64", 80,
         reduce),
    BULK("cp", "reduce async bulk global shared::cta bulk_group" HINT " add noftz t:f16|bf16", 80, reduce),
    BULK("cp", "reduce async bulk global shared::cta bulk_group" HINT " min|max t:u32|s32|u64|s64|f16|bf16",
         80, reduce),
    BULK("cp", "reduce async bulk global shared::cta bulk_group" HINT " inc|dec t:u32", 80, reduce),
    BULK("cp", "reduce async bulk global shared::cta bulk_group" HINT " and|or|xor t:b32|b64", 80, reduce),
    {"cp", "async bulk commit_group", "", 80, 90, .run = commit},
    {"cp", "async bulk wait_group m:-|read?", "#", 80, 90, .run = wait_group},
    BULK("cp", "async bulk tensor " DIM " shared::cluster global tile? " MBARRIER HINT, 80, load_box),
    BULK("cp", "async bulk tensor " DIM " shared::cta global tile? " MBARRIER HINT, 86, load_box),
    BULK("cp", "async bulk tensor " DIM " shared::cluster global tile? " MBARRIER " multicast::cluster" HINT,
         80, load_box),
    BULK("cp", "async bulk tensor " DIM " global shared::cta tile? bulk_group" HINT, 80, store_box),
    BULK("cp",
         "reduce async bulk tensor " DIM
         " global shared::cta add|min|max|inc|dec|and|or|xor tile? bulk_group" HINT,
         80, reduce_box),
    BULK("cp", "async bulk prefetch tensor " DIM " L2 global tile?" HINT, 80, prefetch_box),
};

EXPORT_ROWS(emu_rows_bulk);
