/* Uninitialised registers and memory. Moves and arithmetic pass undefined lanes on without a report, since compilers
   compute values before the condition that decides whether they are needed. A report comes where the value matters: as an
   address, a guard, a member mask, a barrier's operand, an operand of an atomic, or in a store to global or shared memory.
   From then on it counts as defined, so that one mistake is reported once. An undefined address or control operand ends the
   launch. Kernels, copies and fills mark the memory that they write. A load of which no byte was written is reported in
   global and shared memory; in local memory and call parameters it makes the register undefined. A load that is written in
   part counts as defined: compilers read padding together with data, and shift the parts out. A vector store is reported if
   all of its elements are undefined. Granularity: a lane of a register, a byte of memory. */
#include "check.h"
#include "plan.h"

#include "../core/async.h"
#include "../core/bulk.h"
#include "../core/tensor_map.h"
#include "../exec/access.h"
#include "../exec/wgmma.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- the state of a block ---------------------------------------------------------------------------------------- */

typedef struct emu_init {
    size_t slots;
    uint32_t *defined;       /* by warp and slot: lanes with a defined value */
    uint8_t *shared, *local; /* one per byte of memory: 1 if written */
} emu_init;

static uint32_t *defined_of(const emu_warp *w)
{
    const emu_init *k = w->block->init;
    return k->defined + (size_t)w->id * k->slots;
}

/* On a device, registers hold stale values. Here they hold NaNs, so that undefined values show in results. */
static void launch_begin(emu_launch *l)
{
    l->garbage = 0xff;
}

static void block_free(emu_block *b)
{
    emu_init *k = b->init;
    if (!k)
        return;
    free(k->defined);
    free(k->shared);
    free(k->local);
    free(k);
    b->init = NULL;
}

static void block_begin(emu_block *b)
{
    const emu_program *p = b->launch->program;
    block_free(b);
    emu_init *k = b->init = emu_alloc(sizeof *k);
    k->slots = p->plans->slots;
    k->defined = emu_alloc(b->warp_count * k->slots * sizeof *k->defined);
    for (unsigned n = 0; n < b->warp_count; n++)
        k->defined[n * k->slots] = EMU_ALL;
    k->shared = emu_alloc(b->shared_bytes + 64);
    memset(k->shared, 1, p->reserved_shared_bytes);
    k->local = emu_alloc((size_t)b->warp_count * EMU_LANES * p->local_bytes);
}

/* ---- registers ----------------------------------------------------------------------------------------------------- */

static uint32_t all_of(const emu_plan *p, const uint32_t *defined)
{
    uint32_t d =
        defined[p->source[0]] & defined[p->source[1]] & defined[p->source[2]] & defined[p->source[3]];
    for (unsigned n = EMU_PLAN_SOURCES; n < p->source_count; n++)
        d &= defined[p->sources[n]];
    return d;
}

static void define_results(const emu_plan *p, uint32_t *defined, uint32_t mask, uint32_t d)
{
    for (unsigned n = 0; n < p->write_count; n++) {
        uint32_t *to = &defined[p->writes[n]];
        *to = (*to & ~mask) | (d & mask);
    }
}

static uint32_t lanes_of(const emu_warp *w, uint32_t arg)
{
    return arg & 1 ? EMU_ALL : defined_of(w)[arg >> 6];
}

static void report(emu_warp *w, const emu_op *op, uint32_t lanes, const char *what)
{
    if (lanes)
        emu_fault(w, op, lanes, CUDA_ERROR_LAUNCH_FAILED, "uses an uninitialised register as %s", what);
}

static void note_undefined(emu_warp *w, const emu_op *op, uint32_t lanes, const char *what)
{
    if (lanes)
        emu_note(w, op, lanes, EMU_NOBODY, "uses an uninitialised register as %s", what);
}

static void define(emu_warp *w, uint32_t arg, uint32_t lanes)
{
    if (!(arg & 1))
        defined_of(w)[arg >> 6] |= lanes;
}

static void check_guard(emu_warp *w, const emu_op *op)
{
    note_undefined(w, op, w->active & ~defined_of(w)[op->guard >> 6], "the guard");
    define(w, op->guard & ~1u, w->active);
}

static void address(emu_warp *w, const emu_op *op, uint32_t arg, uint32_t mask)
{
    report(w, op, mask & ~lanes_of(w, arg), "an address");
}

static uint32_t nonzero(const emu_warp *w, const emu_op *op, uint32_t arg)
{
    unsigned bytes = emu_types[op->mods.type].bytes;
    if (op->mods.type == EMU_PRED)
        return emu_predicate(w, arg);
    uint32_t mask = 0;
    const char *v = emu_lanes(w, arg);
    for (uint32_t i = 0; i < EMU_LANES; i++)
        for (unsigned k = 0; k < bytes; k++)
            mask |= (uint32_t)(v[i * bytes + k] != 0) << i;
    return mask;
}

static uint32_t decided_lanes(const emu_warp *w, const emu_op *op, bool by_one)
{
    uint32_t a = lanes_of(w, op->arg[1]), b = lanes_of(w, op->arg[2]), d = a & b;
    if (d == EMU_ALL || (by_one && op->mods.type != EMU_PRED))
        return d;
    uint32_t flip = by_one ? 0 : EMU_ALL;
    return d | (a & (nonzero(w, op, op->arg[1]) ^ flip)) | (b & (nonzero(w, op, op->arg[2]) ^ flip));
}

static uint32_t shuffled(const emu_warp *w, const emu_op *op)
{
    uint32_t a = lanes_of(w, op->arg[2]), d = 0;
    const uint32_t *by = emu_lanes(w, op->arg[3]), *c = emu_lanes(w, op->arg[4]);
    if (a == EMU_ALL)
        return a;
    for (int lane = 0; lane < EMU_LANES; lane++) {
        int segment = (int)(c[lane] >> 8 & 31), clamp = (int)(c[lane] & 31), b = (int)(by[lane] & 31);
        int most = (lane & segment) | (clamp & ~segment), mode = op->mods.mode;
        int j = mode == 0   ? lane - b
                : mode == 1 ? lane + b
                : mode == 2 ? lane ^ b
                            : ((lane & segment) | (b & ~segment));
        bool inside = mode == 0 ? j >= most : j <= most;
        d |= (a >> ((inside ? j : lane) & 31) & 1) << lane;
    }
    return d;
}

static void check_stored(emu_warp *w, const emu_op *op, uint32_t mask)
{
    unsigned count = op->mods.count > 1 ? op->mods.count : 1;
    const uint32_t *values = count > 1 ? op->list : &op->arg[1];
    uint32_t any = 0;
    for (unsigned n = 0; n < count; n++)
        any |= lanes_of(w, values[n]);
    note_undefined(w, op, mask & ~any, "the value that it stores");
    for (unsigned n = 0; n < count; n++)
        define(w, values[n], mask & ~any);
}

/* The lanes whose operands, except the address, are defined. */
static uint32_t operands_of(const emu_warp *w, const emu_plan *p)
{
    uint32_t d = EMU_ALL;
    for (unsigned n = 0; n < p->source_count; n++)
        d &= p->sources[n] != p->address ? defined_of(w)[p->sources[n]] : EMU_ALL;
    return d;
}

/* Skips the address, which is checked where it is used. */
static void check_operands(emu_warp *w, const emu_op *op, const emu_plan *p, uint32_t mask)
{
    uint32_t *defined = defined_of(w), undefined = 0;
    for (unsigned n = 0; n < p->source_count; n++)
        if (p->sources[n] != p->address) {
            undefined |= mask & ~defined[p->sources[n]];
            defined[p->sources[n]] |= mask;
        }
    note_undefined(w, op, undefined, "an operand of this");
}

static uint8_t *parameter_bytes(const emu_warp *w, const emu_op *op, uint32_t lane)
{
    uint64_t thread = (uint64_t)w->id * EMU_LANES + lane;
    return w->block->init->local + thread * w->block->launch->program->local_bytes + op->imm;
}

static void store_parameter(emu_warp *w, const emu_op *op, uint32_t mask)
{
    uint32_t d = lanes_of(w, op->arg[0]);
    for (uint32_t i = 0; i < EMU_LANES; i++)
        if (mask >> i & 1)
            memset(parameter_bytes(w, op, i), d >> i & 1, op->mods.count);
}

static void load_parameter(emu_warp *w, const emu_op *op, const emu_plan *p, uint32_t mask)
{
    uint32_t d = 0;
    for (uint32_t i = 0; i < EMU_LANES; i++)
        if (mask >> i & 1)
            d |= (uint32_t)(memchr(parameter_bytes(w, op, i), 1, op->mods.count) != NULL) << i;
    define_results(p, defined_of(w), mask, d);
}

/* The accumulators matter only where scale-d is true. */
static void multiply(emu_warp *w, const emu_op *op, const emu_plan *p, uint32_t mask)
{
    if (op->mods.mode != EMU_WGMMA_PRODUCT)
        return;
    emu_wgmma f = emu_wgmma_of(op);
    unsigned results = emu_wgmma_d_registers(&f);
    uint32_t adds = emu_predicate(w, op->arg[0]), d = EMU_ALL;
    note_undefined(w, op, mask & ~lanes_of(w, op->arg[0]), "an operand of this");
    define(w, op->arg[0], mask);
    for (unsigned n = 0; n < EMU_WGMMA_A_FRAGMENTS && (f.flags & EMU_WGMMA_A_REGISTERS); n++)
        d &= lanes_of(w, op->list[results + n]);
    for (unsigned n = 0; n < results; n++)
        d &= lanes_of(w, op->list[n]) | ~adds;
    define_results(p, defined_of(w), mask, d);
}

static void issue(emu_warp *w, const emu_op *op, uint32_t mask)
{
    const emu_plan *p = emu_plan_of(w, op);
    uint32_t *defined = defined_of(w);
    if (op->guard)
        check_guard(w, op);
    if (!mask)
        return;
    uint32_t d = all_of(p, defined);
    switch ((emu_flow)p->flow) {
    case EMU_FLOW_LANES:
        define_results(p, defined, mask, d);
        return;
    case EMU_FLOW_SELECT: {
        uint32_t c = emu_predicate(w, op->arg[3]), a = lanes_of(w, op->arg[1]), b = lanes_of(w, op->arg[2]);
        uint32_t known = op->arg[3] & 1 ? EMU_ALL : defined[op->arg[3] >> 6];
        define_results(p, defined, mask, known & ((a & c) | (b & ~c)));
        return;
    }
    case EMU_FLOW_AND:
    case EMU_FLOW_OR:
        define_results(p, defined, mask, decided_lanes(w, op, p->flow == EMU_FLOW_OR));
        return;
    case EMU_FLOW_PRODUCT:
        multiply(w, op, p, mask);
        return;
    case EMU_FLOW_FRESH:
        define_results(p, defined, mask, EMU_ALL);
        return;
    case EMU_FLOW_CONTROL:
        define_results(p, defined, mask, EMU_ALL);
        report(w, op, mask & ~d, "an operand of this");
        return;
    case EMU_FLOW_BULK: /* sizes and coordinates are addresses, too */
        report(w, op, mask & ~operands_of(w, p), "an operand of this");
        return;
    case EMU_FLOW_COPY:
    case EMU_FLOW_REMOTE:
        check_operands(w, op, p, mask);
        return;
    case EMU_FLOW_ATOMIC:
    case EMU_FLOW_MBARRIER:
        check_operands(w, op, p, mask);
        define_results(p, defined, mask, EMU_ALL);
        return;
    case EMU_FLOW_PARAM_STORE:
        store_parameter(w, op, mask);
        return;
    case EMU_FLOW_PARAM_LOAD:
        load_parameter(w, op, p, mask);
        return;
    default: /* loads and stores, which access() handles because it sees resolved addresses; and exchanges */
        return;
    }
}

/* Lanes that had to wait for others execute the operation again, so only the lanes that execute it now get a result. */
static void exchange(emu_warp *w, const emu_op *op, uint32_t lanes)
{
    const emu_plan *p = emu_plan_of(w, op);
    uint32_t *defined = defined_of(w);
    if (p->flow == EMU_FLOW_SHUFFLE)
        define_results(p, defined, lanes, shuffled(w, op));
    else if (p->flow == EMU_FLOW_WARP)
        define_results(p, defined, lanes, lanes & ~all_of(p, defined) ? 0 : EMU_ALL);
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

/* More than a lane ever accesses at once. */
#define MANY_BYTES 256

static bool is_written(const emu_allocation *a, uint64_t offset)
{
    return __atomic_load_n(&a->written[offset / 8], __ATOMIC_RELAXED) >> offset % 8 & 1;
}

static void mark_byte(uint8_t *at, uint8_t bits, bool is_written)
{
    uint8_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
    if (is_written && (old & bits) != bits)
        __atomic_fetch_or(at, bits, __ATOMIC_RELAXED);
    else if (!is_written && (old & bits))
        __atomic_fetch_and(at, (uint8_t)~bits, __ATOMIC_RELAXED);
}

static void mark_written(emu_allocation *a, uint64_t offset, uint64_t bytes, bool is_written)
{
    uint64_t end = offset + bytes;
    while (offset < end && (offset % 8 || end - offset < 8)) {
        uint64_t most = 8 - offset % 8, n = end - offset < most ? end - offset : most;
        mark_byte(&a->written[offset / 8], (uint8_t)(((1u << n) - 1) << offset % 8), is_written);
        offset += n;
    }
    if (end - offset >= MANY_BYTES) { /* a copy or fill by the host: no other thread marks these bytes */
        memset(&a->written[offset / 8], is_written ? 0xff : 0, (end - offset) / 8);
        offset += (end - offset) & ~(uint64_t)7;
    }
    for (; end - offset >= 8; offset += 8)
        mark_byte(&a->written[offset / 8], 0xff, is_written);
    if (offset < end)
        mark_byte(&a->written[offset / 8], (uint8_t)((1u << (end - offset)) - 1), is_written);
}

static void host_copied(uint64_t to, uint64_t from, uint64_t bytes)
{
    emu_allocation *a = emu_memory_holding(to, bytes), *b = from ? emu_memory_holding(from, bytes) : NULL;
    if (!a || !a->written)
        return;
    if (!b || !b->written) {
        mark_written(a, to - a->base, bytes, true);
        return;
    }
    for (uint64_t k = 0; k < bytes; k++)
        mark_written(a, to - a->base + k, 1, is_written(b, from - b->base + k));
}

/* Reserves address space; only pages that are touched take memory. */
static void allocated(emu_allocation *a)
{
    if (a->kind != EMU_ALLOCATION_DEVICE)
        return;
    void *p = mmap(NULL, a->bytes / 8 + 1, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    a->written = p == MAP_FAILED ? NULL : p;
}

static void freed(emu_allocation *a)
{
    if (a->written)
        munmap(a->written, a->bytes / 8 + 1);
    a->written = NULL;
}

const emu_memory_observer emu_init_memory = {.allocated = allocated, .freed = freed, .copied = host_copied};

/* Where the marks of one lane's bytes are. */
typedef struct marks {
    uint8_t *bytes; /* shared and local memory: one mark per byte */
    emu_allocation *allocation;
    uint64_t offset;
    bool is_local;
} marks;

static marks find_marks(const emu_warp *w, const emu_op *op, uint64_t at)
{
    const emu_block *b = w->block;
    uint64_t local = at - (uint64_t)(uintptr_t)b->local;
    const emu_block *holder = emu_block_holding(b, at);
    if (holder)
        return (marks){.bytes = holder->init->shared + (at - (uint64_t)(uintptr_t)holder->shared)};
    if (local < (uint64_t)b->warp_count * EMU_LANES * b->launch->program->local_bytes)
        return (marks){.bytes = b->init->local + local, .is_local = true};
    emu_allocation *a = emu_allocation_at(b, op, at);
    return (marks){.allocation = a && a->written ? a : NULL, .offset = a ? at - a->base : 0};
}

/* Bit k: byte `from` + k is written. */
static uint32_t written(const marks *m, unsigned from, unsigned bytes)
{
    uint32_t bits = 0;
    for (unsigned k = 0; k < bytes; k++) {
        bool is = true;
        if (m->bytes)
            is = m->bytes[from + k];
        else if (m->allocation)
            is = is_written(m->allocation, m->offset + from + k);
        bits |= (uint32_t)is << k;
    }
    return bits;
}

static void write_bytes(const marks *m, unsigned from, unsigned bytes, bool is)
{
    if (m->bytes)
        memset(m->bytes + from, is, bytes);
    else if (m->allocation)
        mark_written(m->allocation, m->offset + from, bytes, is);
}

/* The fast path: all lanes read from shared memory, or from one allocation, and every byte was written. */

/* The map has a byte per byte of memory, 1 for written. */
static inline bool written_in_shared(const uint8_t *map, const uint64_t at[EMU_LANES], uint64_t base,
                                     unsigned bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t all = ones;
    for (unsigned k = 0; k < bytes; k += 8)
        EACH_LANE
        {
            uint64_t some = ones;
            memcpy(&some, map + (at[i] - base) + k, bytes < 8 ? bytes : 8);
            all &= some;
        }
    return all == ones;
}

/* The map has a bit per byte of memory; the accesses are aligned. */
static inline bool written_in_allocation(const uint8_t *map, const uint64_t at[EMU_LANES], uint64_t base,
                                         unsigned bytes)
{
    unsigned full = bytes < 8 ? (1u << bytes) - 1 : 0xff, all = full;
    for (unsigned k = 0; k < bytes; k += 8)
        EACH_LANE
        {
            uint64_t offset = at[i] - base + k;
            all &= (unsigned)__atomic_load_n(&map[offset / 8], __ATOMIC_RELAXED) >> offset % 8;
        }
    return all == full;
}

/* One instance per size, so that the loops are unrolled. */
#define WRITTEN_BY_SIZE(place, map, base)                                                                    \
    (bytes == 4    ? place(map, at, base, 4)                                                                 \
     : bytes == 16 ? place(map, at, base, 16)                                                                \
     : bytes == 8  ? place(map, at, base, 8)                                                                 \
     : bytes == 2  ? place(map, at, base, 2)                                                                 \
                   : bytes == 1 && place(map, at, base, 1))

/* True if every byte that the lanes read is written; false also if the fast path cannot tell. Idle lanes repeat an active
   one. */
static inline bool surely_written(const emu_warp *w, const emu_op *op, unsigned bytes,
                                  const uint64_t at[EMU_LANES])
{
    const emu_block *b = w->block;
    const emu_recent *r = &b->recent[op->at % EMU_RECENT];
    uint64_t shared = (uint64_t)(uintptr_t)b->shared;
    access_span s = access_extent(at);
    if (s.low >= shared && s.high + bytes <= shared + b->shared_bytes)
        return WRITTEN_BY_SIZE(written_in_shared, b->init->shared, shared);
    if (s.low < r->base || s.high + bytes > r->end || s.low_bits & (bytes - 1))
        return false;
    return !r->allocation->written ||
           WRITTEN_BY_SIZE(written_in_allocation, r->allocation->written, r->allocation->base);
}

static void define_loaded(emu_warp *w, uint32_t arg, uint32_t mask, uint32_t lanes)
{
    uint32_t *to = &defined_of(w)[arg >> 6];
    if (arg != EMU_SINK)
        *to = (*to & ~mask) | (mask & lanes);
}

/* Always defined. .const and .param have no marks. */
static void load_constant(emu_warp *w, const emu_op *op, uint32_t mask)
{
    unsigned count = op->mods.count > 1 ? op->mods.count : 1;
    for (unsigned n = 0; n < count; n++)
        define_loaded(w, count > 1 ? op->list[n] : op->arg[0], mask, EMU_ALL);
}

static void check_read(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes,
                       const uint64_t at[EMU_LANES])
{
    bool is_load = emu_plan_of(w, op)->flow == EMU_FLOW_LOAD;
    unsigned count = is_load && op->mods.count > 1 && op->mods.count <= 8 ? op->mods.count : 1,
             each = bytes / count; /* in other operations `count` is not the number of elements */
    uint32_t loaded[8] = {0}, never = 0;
    uint32_t known = surely_written(w, op, bytes, at) ? mask : 0;
    for (unsigned n = 0; n < count; n++)
        loaded[n] = known;
    for (uint32_t i = 0; known != mask && i < EMU_LANES; i++) {
        if (!(mask >> i & 1))
            continue;
        marks m = find_marks(w, op, at[i]);
        bool any = m.is_local || each > 32;
        for (unsigned n = 0; n < count && each <= 32; n++) {
            uint32_t bits = written(&m, n * each, each);
            any |= bits != 0;
            loaded[n] |= (uint32_t)(bits != 0) << i;
        }
        never |= (uint32_t)!any << i;
    }
    for (unsigned n = 0; is_load && n < count; n++)
        define_loaded(w, count > 1 ? op->list[n] : op->arg[0], mask, loaded[n] | never);
    if (!never)
        return;
    char place[160];
    uint64_t address = at[__builtin_ctz(never)];
    emu_note(w, op, never, EMU_NOBODY, "reads %u bytes that were never written, at %s", bytes,
             emu_describe_place(w, address, place, sizeof place));
}

static void note_write(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes,
                       const uint64_t at[EMU_LANES])
{
    const emu_plan *p = emu_plan_of(w, op);
    bool is_store = p->flow == EMU_FLOW_STORE;
    unsigned count = is_store && op->mods.count > 1 ? op->mods.count : 1;
    for (unsigned n = 0; n < count; n++) {
        uint32_t d = !is_store ? EMU_ALL : lanes_of(w, count > 1 ? op->list[n] : op->arg[1]);
        for (uint32_t i = 0; i < EMU_LANES; i++)
            if (mask >> i & 1) {
                marks m = find_marks(w, op, at[i]);
                write_bytes(&m, n * (bytes / count), bytes / count, d >> i & 1);
            }
    }
}

static uint32_t lanes_outside_local(const emu_warp *w, const emu_op *op, uint32_t mask,
                                    const uint64_t at[EMU_LANES])
{
    if (op->mods.space == EMU_LOCAL || op->mods.space == EMU_PARAM_CALL)
        return 0;
    for (uint32_t i = 0; i < EMU_LANES && op->mods.space == EMU_GENERIC; i++)
        if ((mask >> i & 1) && find_marks(w, op, at[i]).is_local)
            mask &= ~(UINT32_C(1) << i);
    return mask;
}

static void access(emu_warp *w, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                   const uint64_t at[EMU_LANES])
{
    const emu_plan *p = emu_plan_of(w, op);
    if (op->mods.space == EMU_CONST || op->mods.space == EMU_PARAM) {
        if (p->flow == EMU_FLOW_LOAD)
            load_constant(w, op, mask);
        return;
    }
    if (p->flow == EMU_FLOW_BULK || p->flow == EMU_FLOW_REMOTE)
        return;
    if (!writes || p->flow == EMU_FLOW_ATOMIC) /* an mbarrier operation reads its object, too */
        check_read(w, op, mask, bytes, at);
    if (p->flow == EMU_FLOW_STORE)
        check_stored(w, op, lanes_outside_local(w, op, mask, at));
    if (writes && p->flow != EMU_FLOW_COPY) /* a copy writes when it completes */
        note_write(w, op, mask, bytes, at);
}

static void copy_read(emu_warp *w, const emu_op *op, emu_copy *copy, uint64_t at, unsigned done,
                      unsigned bytes)
{
    marks m = find_marks(w, op, at);
    uint32_t unwritten = ((1u << bytes) - 1) & ~written(&m, 0, bytes);
    copy->unwritten |= (uint16_t)(unwritten << done);
}

static void copied(emu_block *b, const emu_copy *c, bool by_mbarrier)
{
    (void)by_mbarrier;
    for (unsigned k = 0; k < c->bytes; k++)
        b->init->shared[c->to + k] = !(c->unwritten >> k & 1);
}

/* Returns true if 16 bytes of the source, at *where, were never written. */
static bool has_unwritten(const emu_warp *w, const emu_op *op, uint64_t at, uint32_t bytes, uint64_t *where)
{
    for (uint32_t k = 0; k < bytes; k += 16) {
        marks m = find_marks(w, op, at + k);
        *where = at + k;
        if (!written(&m, 0, bytes - k < 16 ? bytes - k : 16))
            return true;
    }
    return false;
}

static void copy_marks(const emu_warp *w, const emu_op *op, uint64_t from, uint64_t to, uint32_t bytes)
{
    for (uint32_t k = 0; k < bytes; k++) {
        marks source = find_marks(w, op, from + k), destination = find_marks(w, op, to + k);
        write_bytes(&destination, 0, 1, written(&source, 0, 1));
    }
}

/* What a copy writes counts as written when it is issued: a thread that reads it too early races. */
static void bulk_issue(emu_warp *w, const emu_op *op, const emu_bulk *bulk)
{
    bool loads = bulk->kind == EMU_BULK_LOAD, reduces = bulk->element.type != EMU_NONE, is_told = false;
    uint64_t base = (uint64_t)(uintptr_t)bulk->holder->shared, where;
    char place[160];
    for (uint32_t n = 0; n < bulk->piece_count; n++) {
        const emu_bulk_piece *p = &bulk->pieces[n];
        uint64_t from = loads ? p->global : base + p->shared, to = loads ? base + p->shared : p->global;
        if (!is_told && ((p->global && has_unwritten(w, op + 1, from, p->bytes, &where)) ||
                         (reduces && has_unwritten(w, op + 1, to, p->bytes, &where)))) {
            is_told = true;
            emu_note(w, op, 1u << bulk->thread % EMU_LANES, EMU_NOBODY,
                     "copies %u bytes that were never written, at %s", p->bytes < 16 ? p->bytes : 16,
                     emu_describe_place(w, where, place, sizeof place));
        }
        if (p->global) {
            copy_marks(w, op + 1, from, to, p->bytes);
        } else {
            marks m = find_marks(w, op, to);
            write_bytes(&m, 0, p->bytes, true);
        }
    }
}

static void map_read(emu_warp *w, const emu_op *op, uint32_t lane, uint64_t map)
{
    uint32_t any = 0;
    for (uint32_t k = 0; k < EMU_MAP_BYTES; k += 16) {
        marks m = find_marks(w, op, map + k);
        any |= written(&m, 0, 16);
    }
    if (!any)
        emu_note(w, op, 1u << lane, EMU_NOBODY, "uses a tensor map that was never written");
}

const emu_observer emu_init_check = {
    .launch_begin = launch_begin,
    .block_begin = block_begin,
    .block_free = block_free,
    .issue = issue,
    .exchange = exchange,
    .address = address,
    .access = access,
    .copy_read = copy_read,
    .copied = copied,
    .bulk_issue = bulk_issue,
    .map_read = map_read,
};
