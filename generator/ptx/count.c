/* Counts what one warp executes, statically: for estimates of time (kiln/estimate.h).
 *
 * A loop with constant bounds counts all trips, any other one trip; an if counts as taken. */
#include "ir.h"

enum {
    WAVEFRONT_BYTES = 128,
    SLOW_ISSUES = 4, /* special functions: a warp occupies the unit for eight cycles, while others issue */
    LONG_ISSUES = 12 /* exact quotients and roots: a sequence of instructions */
};

static uint32_t issues_of(const ptx_inst *inst)
{
    return inst->row->traits & TRAIT_SLOW ? SLOW_ISSUES : inst->row->traits & TRAIT_LONG ? LONG_ISSUES : 1;
}

/* The integer pipe's share: operations on integers, bits and predicates, except addresses in memory and products. */
static uint32_t integers_of(const ptx_inst *inst)
{
    switch (inst->row->op) {
    case PTX_OP_LOAD:
    case PTX_OP_LOAD_POLICY:
    case PTX_OP_STORE:
    case PTX_OP_STORE_POLICY:
    case PTX_OP_MMA:
    case PTX_OP_WGMMA:
    case PTX_OP_WGMMA_SHARED:
    case PTX_OP_MMA_SCALED:
    case PTX_OP_LDMATRIX:
    case PTX_OP_LDMATRIX_TRANS:
    case PTX_OP_STMATRIX:
    case PTX_OP_STMATRIX_TRANS:
    case PTX_OP_SHFL_BFLY:
    case PTX_OP_SHFL_IDX:
    case PTX_OP_SHFL_UP:
    case PTX_OP_SHFL_DOWN:
    case PTX_OP_BARRIER:
    case PTX_OP_WARP_BARRIER:
        return 0;
    case PTX_OP_CVT:
    case PTX_OP_CVT_PAIR:
    case PTX_OP_CVT_TF32:
    case PTX_OP_MOV:
    case PTX_OP_PACK:
    case PTX_OP_UNPACK:
        return 1;
    default:
        return type_is_integer(inst->type) || inst->type == PTX_PRED || inst->type == PTX_PTR;
    }
}

/* Each lane has its own address; the warp's are adjacent. */
static uint32_t wavefronts_of_lanes(uint32_t bytes)
{
    const uint32_t all = 32 * bytes;
    return all <= WAVEFRONT_BYTES ? 1 : all / WAVEFRONT_BYTES;
}

/* Rows of operands have 32 bytes. The four warps of a warpgroup read B once; each reads its own 16 rows of A. */
static uint32_t wavefronts_of_product(const ptx_inst *inst)
{
    const uint32_t rows = (uint32_t)inst->form->n / 4 + (inst->row->op == PTX_OP_WGMMA_SHARED ? 16 : 0);
    return (32 * rows + WAVEFRONT_BYTES - 1) / WAVEFRONT_BYTES;
}

static uint32_t wavefronts_of(const ptx_inst *inst)
{
    switch (inst->row->op) {
    case PTX_OP_LOAD:
    case PTX_OP_LOAD_POLICY:
    case PTX_OP_STORE:
    case PTX_OP_STORE_POLICY:
        return wavefronts_of_lanes((uint32_t)inst->vector * ptx_type_bytes(inst->type));
    case PTX_OP_CP_ASYNC:
    case PTX_OP_CP_ASYNC_POLICY:
    case PTX_OP_CP_ASYNC_ZFILL:
    case PTX_OP_CP_ASYNC_ZFILL_POLICY:
        return wavefronts_of_lanes((uint32_t)inst->operands[2].bits);
    case PTX_OP_LDMATRIX:
    case PTX_OP_LDMATRIX_TRANS:
    case PTX_OP_STMATRIX:
    case PTX_OP_STMATRIX_TRANS:
        return (uint32_t)inst->vector;
    case PTX_OP_SHFL_BFLY:
    case PTX_OP_SHFL_IDX:
    case PTX_OP_SHFL_UP:
    case PTX_OP_SHFL_DOWN:
        return 1;
    case PTX_OP_WGMMA:
    case PTX_OP_WGMMA_SHARED:
        return wavefronts_of_product(inst);
    default:
        return 0;
    }
}

/* Adds `times` products. Floats of 8 bits take half as long as those of 16, and those of 32 twice as long; integers of 4 bits take
 * half as long as those of 8. */
static void add_products(ptx_cost *cost, const ptx_inst *inst, uint32_t times)
{
    enum { PRODUCT = 256, S8_PRODUCT = 1024, FP4_PRODUCT = 2048 /* multiply-adds */ };
    if (inst->form) {
        const wgmma_row *row = &wgmma_rows[inst->form->types];
        cost->products += times * (uint32_t)(16 * inst->form->n * row->k * row->bits / (16 * PRODUCT));
    }
    for (int i = 0; inst->symbol && i < PTX_MMA_SHAPE_COUNT; i++) {
        const mma_row *row = &mma_rows[i];
        if (row->text != inst->symbol)
            continue;
        const uint32_t bits = times * (uint32_t)(row->info.m * row->info.n * row->info.k * row->bits);
        if (row->info.c_type == PTX_S32)
            cost->s8_products += bits / (8 * S8_PRODUCT);
        else if (row->bits == 4)
            cost->fp4_products += bits / (4 * FP4_PRODUCT);
        else
            cost->products += bits / (16 * PRODUCT);
    }
}

/* How often a block runs, and where it counts. */
typedef struct frequency {
    uint32_t times;
    uint8_t counted; /* COUNT_; not COUNT_NOT */
} frequency;

/* An if with an else counts one arm: the first, unless it is the rare one. */
static uint32_t times_of(const ptx_fn *f, const scope *s)
{
    if (s->counted == COUNT_NOT || (s->kind == SCOPE_ELSE && fn_scope(f, s->pair)->counted != COUNT_NOT))
        return 0;
    if (s->kind != SCOPE_FOR || s->test || s->has_break || s->start.kind != VAL_IMMEDIATE ||
        s->to.kind != VAL_IMMEDIATE || s->step.kind != VAL_IMMEDIATE || s->step.bits == 0)
        return 1;
    return (uint32_t)((s->to.bits - s->start.bits + s->step.bits - 1) / s->step.bits);
}

static frequency *frequencies(const ptx_fn *f)
{
    frequency *all = arena_alloc(f->arena, f->scopes.count * sizeof *all);
    all[0] = (frequency){1, COUNT_AROUND};
    for (uint32_t i = 1; i < f->scopes.count; i++) {
        const scope *s = fn_scope(f, i);
        const frequency around = all[s->parent];
        const bool is_marked = s->counted == COUNT_MAIN || s->counted == COUNT_SIDE;
        all[i] = is_marked ? (frequency){around.times > 0, s->counted}
                           : (frequency){around.times * times_of(f, s), around.counted};
    }
    return all;
}

ptx_costs ptx_count(const ptx_fn *f)
{
    ptx_costs costs = {0};
    ptx_cost *const parts[] = {
        [COUNT_AROUND] = &costs.rest, [COUNT_MAIN] = &costs.loop, [COUNT_SIDE] = &costs.side};
    const frequency *all = frequencies(f);
    for (size_t i = 0; i < f->body.count; i++) {
        const ptx_inst *inst = fn_inst(&f->body, i);
        const frequency here = all[inst->within];
        ptx_cost *part = parts[here.counted];
        if (inst->kind == INST_OP) {
            part->issues += here.times * issues_of(inst);
            part->integers += here.times * integers_of(inst);
            part->wavefronts += here.times * wavefronts_of(inst);
            add_products(part, inst, here.times);
        } else if (inst->kind != INST_NOTE) {
            part->issues += here.times;
        }
    }
    return costs;
}
