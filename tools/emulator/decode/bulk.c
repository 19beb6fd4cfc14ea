/* Operands of bulk copies: see exec/bulk.h. */
#include "../exec/bulk.h"

#include "decoder.h"

#include <string.h>

static bool has(const emu_instruction *i, const char *word)
{
    return emu_has_modifier(i, word);
}

/* The number before the d of .1d to .5d; 0: no tensor. */
static unsigned rank_of(const emu_instruction *i)
{
    for (unsigned n = 0; n < i->modifier_count; n++)
        if (i->modifiers[n].size == 2 && i->modifiers[n].at[1] == 'd')
            return (unsigned)(i->modifiers[n].at[0] - '0');
    return 0;
}

/* The operation of a reduction, by its place among those of atom (exec/update.h). */
static uint8_t operation_of(const emu_instruction *i)
{
    static const char *const names[] = {"and", "or", "xor", "exch", "add", "inc", "dec", "min", "max"};
    for (unsigned k = 0; k < sizeof names / sizeof *names; k++)
        for (unsigned n = 0; n < i->modifier_count; n++)
            if (emu_text_is(i->modifiers[n], names[k]))
                return (uint8_t)k;
    return 0;
}

/* [map, {coordinates}] */
static void decode_coordinates(emu_decoder *d, const emu_operand *o, unsigned rank, emu_op *op)
{
    emu_operand elements[8];
    if (o->kind != EMU_OPERAND_ADDRESS || o->count != 2) {
        emu_decode_error(d, "expected [tensor map, {%u coordinates}]", rank);
        return;
    }
    if (!emu_decode_elements(d, &o->items[1], rank, elements))
        return;
    uint32_t args[8];
    for (unsigned n = 0; n < rank; n++)
        args[n] = emu_decode_source(d, &elements[n], EMU_S32, 0);
    op->list = (const uint32_t *)(uintptr_t)emu_list_begin(d);
    for (unsigned n = 0; n < rank; n++)
        emu_list_push(d, args[n]);
    op->mods.count = (uint8_t)rank;
}

static uint32_t decode_map(emu_decoder *d, const emu_operand *o, emu_op *op)
{
    emu_operand map = *o;
    map.count = 1;
    op->mods.space = EMU_GENERIC;
    d->program->has_maps = true;
    return emu_decode_address(d, &map, op);
}

/* [dst], [src], size, [mbar]; [dst], [src], size; [dst], [map, {...}], [mbar]; [map, {...}], [src]; [map, {...}]; the mask of
   .multicast::cluster after [mbar]; and a cache policy. */
bool emu_decode_bulk(emu_decoder *d, const emu_instruction *i, emu_op *op)
{
    const emu_operand *o = i->operands;
    const unsigned errors = d->in->log->errors, rank = rank_of(i);
    const bool loads = has(i, "mbarrier::"), prefetches = has(i, "prefetch"),
               hinted = has(i, "L2::cache_hint"), multicasts = has(i, "multicast::");
    const emu_space shared = has(i, "shared::cluster") ? EMU_SHARED_CLUSTER : EMU_SHARED;
    const unsigned count = (rank ? 0u : 1u) + (prefetches ? 1u : 2u) + (loads ? 1u : 0u);
    if (!emu_has_operands(d, i, count + multicasts + hinted))
        return false;
    if (hinted)
        emu_decode_source(d, &o[count + multicasts], EMU_B64, 0);
    emu_op global = {.run = op->run, .mods = {.space = EMU_GLOBAL, .mode = EMU_BULK_GLOBAL}};
    emu_op mbarrier = {.run = op->run, .mods = {.space = (uint8_t)shared, .mode = EMU_BULK_MBARRIER}};
    if (loads && !has(i, "global"))
        global.mods.space = EMU_SHARED;
    op->mods.mode = EMU_BULK_FIRST;
    op->mods.combine = operation_of(i);
    if (prefetches) {
        op->arg[0] = decode_map(d, &o[0], op);
        decode_coordinates(d, &o[0], rank, op);
    } else {
        op->mods.space = (uint8_t)shared;
        op->arg[0] = emu_decode_address(d, &o[loads ? 0 : 1], op);
        if (rank) {
            global.arg[0] = decode_map(d, &o[loads ? 1 : 0], &global);
            decode_coordinates(d, &o[loads ? 1 : 0], rank, op);
        } else {
            global.arg[0] = emu_decode_address(d, &o[loads ? 1 : 0], &global);
            op->arg[1] = emu_decode_source(d, &o[2], EMU_U32, 0);
            if (o[2].kind == EMU_OPERAND_INT && o[2].value % 16)
                emu_decode_error(d, "the size must be a multiple of 16");
        }
        if (loads)
            mbarrier.arg[0] = emu_decode_address(d, &o[count - 1], &mbarrier);
        if (multicasts)
            mbarrier.arg[1] = emu_decode_source(d, &o[count], EMU_B16, 0);
    }
    if (d->in->log->errors != errors)
        return false;
    d->program->has_bulk = true;
    emu_emit(d, op, (emu_uses){.args = (uint8_t)(rank ? 1 : 2), .list_size = (uint16_t)rank});
    if (!prefetches)
        emu_emit(d, &global, (emu_uses){.args = 1});
    if (loads)
        emu_emit(d, &mbarrier, (emu_uses){.args = multicasts ? 2 : 1});
    return true;
}

/* st.async and red.async [dst], value, [mbar]: an operation for each address. */
bool emu_decode_remote(emu_decoder *d, const emu_instruction *i, emu_op *op)
{
    const emu_operand *o = i->operands;
    const unsigned errors = d->in->log->errors, count = op->mods.count;
    const emu_type type = (emu_type)op->mods.type;
    emu_operand elements[4];
    if (!emu_has_operands(d, i, 3) || (count > 1 && !emu_decode_elements(d, &o[1], count, elements)))
        return false;
    emu_op mbarrier = {.run = op->run, .mods = {.space = op->mods.space, .mode = EMU_BULK_MBARRIER}};
    op->mods.mode = EMU_BULK_FIRST;
    op->mods.combine = operation_of(i);
    op->arg[0] = emu_decode_address(d, &o[0], op);
    mbarrier.arg[0] = emu_decode_address(d, &o[2], &mbarrier);
    if (count > 1) {
        uint32_t args[4];
        for (unsigned n = 0; n < count; n++)
            args[n] = emu_decode_source(d, &elements[n], type, 0);
        op->list = (const uint32_t *)(uintptr_t)emu_list_begin(d);
        for (unsigned n = 0; n < count; n++)
            emu_list_push(d, args[n]);
    } else {
        op->arg[1] = emu_decode_source(d, &o[1], type, 0);
    }
    if (d->in->log->errors != errors)
        return false;
    d->program->has_bulk = true;
    emu_emit(d, op, (emu_uses){.args = count > 1 ? 1 : 2, .list_size = (uint16_t)(count > 1 ? count : 0)});
    emu_emit(d, &mbarrier, (emu_uses){.args = 1});
    return true;
}

/* tensormap.cp_fenceproxy [dst], [src], 128: the first operation has the source. */
bool emu_decode_map_copy(emu_decoder *d, const emu_instruction *i, emu_op *op)
{
    const emu_operand *o = i->operands;
    const unsigned errors = d->in->log->errors;
    if (!emu_has_operands(d, i, 3))
        return false;
    emu_op to = {.run = op->run, .mods = {.space = EMU_GLOBAL, .mode = EMU_BULK_GLOBAL}};
    op->mods = (emu_mods){.space = EMU_SHARED, .mode = EMU_BULK_FIRST, .count = 1};
    op->arg[0] = emu_decode_address(d, &o[1], op);
    to.arg[0] = emu_decode_address(d, &o[0], &to);
    if (o[2].kind != EMU_OPERAND_INT || o[2].value != 128)
        emu_decode_error(d, "expected 128, which is the only size");
    if (d->in->log->errors != errors)
        return false;
    emu_emit(d, op, (emu_uses){.args = 1});
    emu_emit(d, &to, (emu_uses){.args = 1});
    return true;
}
