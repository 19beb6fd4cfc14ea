/* A pipeline that one thread fills with bulk copies. Each stage has two mbarriers: one completes a phase when the stage is full,
 * the other when all consumers have left the stage. Consumers hold two stages: the current one, and the one before it, which a
 * product in flight may read.
 *
 * In call j of tile_pipeline_next, counted from 0, consumers leave stage j - HELD. In the first HELD calls that is an empty stage
 * at the end of the ring, which the producer fills only then. So a fill of one of the last HELD stages waits for one phase more
 * than a fill of another stage. */
#include "tile_producer.h"

#include "lanes.h"

enum { HELD = 2, BARRIER_BYTES = TILE_BARRIER_BYTES, EMPTY = 8, MOST_BOX_ROWS = 256 };
enum { PRODUCER_REGISTERS = 24, MOST_REGISTERS = 240 };

/* ---- matrices ------------------------------------------------------------------------------------------------------ */

/* Each matrix of a stage begins at a multiple of its swizzle's pattern. */
uint32_t tile_producer_slot_bytes(uint32_t units, uint32_t rows)
{
    return (UNIT_BYTES * units * rows + WGMMA_ALIGN - 1) / WGMMA_ALIGN * WGMMA_ALIGN;
}

uint32_t tile_producer_bytes(uint32_t stages, uint32_t units, uint32_t rows)
{
    return stages * (tile_producer_slot_bytes(units, rows) + BARRIER_BYTES);
}

bool tile_producer_can_copy(const tile_pipeline *p, uint32_t rows)
{
    ptx_fn *f = p->f;
    return require(f, rows > 0 && rows <= MOST_BOX_ROWS,
                   "tile_pipeline_add_map: there must be 1 to 256 rows") &&
           require(f, p->stages > HELD, "tile_pipeline_add_map: there must be at least three stages") &&
           require(f, ptx_block_x(f) % TILE_PRODUCER_THREADS == 0 && ptx_block_x(f) > TILE_PRODUCER_THREADS,
                   "tile_pipeline_add_map: the thread block must be whole warpgroups, and one more");
}

/* ---- mbarriers ----------------------------------------------------------------------------------------------------- */

static uint32_t consumer_threads(const tile_pipeline *p)
{
    return ptx_block_x(p->f) - TILE_PRODUCER_THREADS;
}

static ptx_val full_of(const tile_pipeline *p, uint32_t stage)
{
    return ptx_at_bytes(p->f, p->barriers, BARRIER_BYTES * stage);
}

static ptx_val empty_of(const tile_pipeline *p, uint32_t stage)
{
    return ptx_at_bytes(p->f, full_of(p, stage), EMPTY);
}

static void wait(ptx_fn *f, ptx_val barrier, ptx_val parity)
{
    PTX_LOOP (f) {
        ptx_val is_over = ptx_mbarrier_try_parity(f, barrier, parity);
        ptx_repeat_if(f, ptx_not(f, is_over));
    }
}

void tile_producer_start(tile_pipeline *p)
{
    ptx_fn *f = p->f;
    ptx_val shared = ptx_shared_dynamic_aligned(f, PTX_B64, WGMMA_ALIGN), tid = ptx_tid_x(f);
    p->barriers = ptx_at_bytes(f, shared, p->stages * p->stage_bytes);
    p->current = p->stages - 1;
    PTX_IF (f, ptx_eq(f, tid, 0)) {
        for (uint32_t i = 0; i < p->stages; i++) {
            ptx_mbarrier_init(f, full_of(p, i), 1);
            ptx_mbarrier_init(f, empty_of(p, i), consumer_threads(p) / WARP_LANES);
        }
        ptx_fence_mbarrier_init(f);
    }
    ptx_barrier(f);
}

/* ---- the producer -------------------------------------------------------------------------------------------------- */

/* The producer's state, which changes from stage to stage. */
typedef struct producer {
    ptx_val stage, barrier, parity; /* offset, address of the mbarriers, parity of its consumers' phase */
    ptx_val column[TILE_MOST_SLOTS];
} producer;

static void advance(const tile_pipeline *p, producer *c)
{
    ptx_fn *f = p->f;
    const uint32_t first_refill = (p->stages - HELD) * p->stage_bytes, end = p->stages * p->stage_bytes;
    ptx_add_to(f, c->stage, p->stage_bytes);
    ptx_add_to(f, c->barrier, BARRIER_BYTES);
    ptx_val is_refill = ptx_eq(f, c->stage, first_refill), is_end = ptx_eq(f, c->stage, end);
    PTX_WHEN (f, is_refill) {
        ptx_xor_to(f, c->parity, 1);
    }
    PTX_WHEN (f, is_end) {
        ptx_set(f, c->stage, 0);
        ptx_sub_to(f, c->barrier, p->stages * BARRIER_BYTES);
    }
    for (uint32_t i = 0; i < p->slot_count; i++)
        ptx_add_to(f, c->column[i], p->slots[i].units * p->slots[i].in_unit);
}

/* One thread's loop over the stages. */
static void produce(const tile_pipeline *p, ptx_val count)
{
    ptx_fn *f = p->f;
    uint32_t bytes = 0;
    producer c;
    c.stage = ptx_var(f, ptx_u32(0));
    c.barrier = ptx_var(f, ptx_address(f, p->barriers));
    c.parity = ptx_var(f, ptx_u32(1));
    for (uint32_t i = 0; i < p->slot_count; i++) {
        c.column[i] = ptx_var(f, ptx_u32(0));
        bytes += p->slots[i].rows * p->slots[i].units * UNIT_BYTES;
    }
    PTX_FOR (f, i, 0, count, 1) {
        ptx_val full = ptx_pointer(f, PTX_SHARED, PTX_B64, c.barrier);
        wait(f, ptx_at_bytes(f, full, EMPTY), c.parity);
        ptx_mbarrier_arrive_bytes(f, full, bytes);
        ptx_val stage = ptx_add(f, p->shared, c.stage);
        for (uint32_t k = 0; k < p->slot_count; k++) {
            const tile_slot *s = &p->slots[k];
            const ptx_val first[] = {c.column[k], s->first};
            ptx_val to = ptx_at_bytes(f, ptx_pointer(f, PTX_SHARED, PTX_U8, stage), s->byte);
            ptx_tensor_load(f, 2, to, s->map, first, full);
        }
        advance(p, &c);
    }
}

/* Registers of a consumer, including its share of the producer's; 0: those at entry. */
static uint32_t consumer_registers(const tile_pipeline *p)
{
    const uint32_t groups = consumer_threads(p) / TILE_PRODUCER_THREADS, entry = ptx_entry_registers(p->f);
    if (entry >= MOST_REGISTERS || entry < PRODUCER_REGISTERS)
        return 0;
    const uint32_t each = entry + (entry - PRODUCER_REGISTERS) / groups / 8 * 8;
    return each < MOST_REGISTERS ? each : MOST_REGISTERS;
}

tile_block tile_consumers_begin(tile_pipeline *p, ptx_val count, const char *file, int line)
{
    ptx_fn *f = p->f;
    const uint32_t registers = consumer_registers(p);
    TILE_CALL(f);
    tile_block b = {.pipeline = p, .file = file, .line = line};
    if (!p->has_producer || !require(f, p->has_started, "TILE_CONSUMERS: the pipeline has not started") ||
        !require(f, p->next_count == 0, "TILE_CONSUMERS: a pipeline can have only one such block"))
        return b;
    ptx_val tid = ptx_tid_x(f);
    PTX_IF (f, ptx_ge(f, tid, consumer_threads(p))) {
        ptx_rarely(f);
        if (registers)
            ptx_setmaxnreg_dec(f, PRODUCER_REGISTERS);
        PTX_IF (f, ptx_lt(f, tid, consumer_threads(p) + WARP_LANES)) {
            PTX_IF (f, ptx_elect(f)) {
                produce(p, count);
            }
        }
    }
    b.block = ptx_else_begin(f, file, line);
    if (registers)
        ptx_setmaxnreg_inc(f, registers);
    p->is_first_lane = ptx_eq(f, ptx_laneid(f), 0);
    p->parity = ptx_var(f, ptx_u32(1));
    return b;
}

/* ---- the consumers ------------------------------------------------------------------------------------------------- */

void tile_producer_next(tile_pipeline *p)
{
    ptx_fn *f = p->f;
    p->current = (p->current + 1) % p->stages;
    ptx_warp_barrier(f);
    PTX_WHEN (f, p->is_first_lane) {
        ptx_mbarrier_arrive(f, empty_of(p, (p->current + p->stages - HELD) % p->stages));
    }
    if (p->current == 0)
        ptx_xor_to(f, p->parity, 1);
    wait(f, full_of(p, p->current), p->parity);
}

void tile_producer_end(tile_pipeline *p)
{
    ptx_barrier_named(p->f, 1, consumer_threads(p));
}

void tile_consumers_end(tile_block *b)
{
    tile_pipeline *p = b->pipeline;
    b->pipeline = NULL;
    if (!b->block.f)
        return;
    p->parity = (ptx_val){0};
    ptx_require_at(p->f, p->next_count % p->stages <= 1,
                   "TILE_CONSUMERS: a loop must call tile_pipeline_next `stages` times", b->file, b->line);
    ptx_block_end(&b->block);
}
