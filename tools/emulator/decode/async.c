/* cp.async has two addresses and an optional operand that is a size or a predicate. */
#include "decoder.h"

/* [dst], [src], bytes{, src-size or ignore-src}{, cache-policy}: argument 0 is the destination's address, 1 the size or
   predicate; mods.count the bytes, mods.mode what argument 1 is (0: nothing, 1: size, 2: predicate). A second operation,
   mods.mode 3, holds the source's address. */
bool emu_decode_copy(emu_decoder *d, const emu_instruction *i, emu_op *op)
{
    unsigned errors = d->in->log->errors, n = i->operand_count;
    const emu_operand *o = i->operands;
    bool hinted = op->mods.flags & EMU_CACHE_HINT, l1 = emu_text_is(i->modifiers[1], "ca");
    if (n < 3u + hinted || n > 4u + hinted) {
        emu_decode_error(d, "'cp.async' takes [dst], [src], a size, and perhaps a source size%s",
                         hinted ? "; then the cache policy" : "");
        return false;
    }
    if (hinted)
        emu_decode_source(d, &o[n - 1], EMU_B64, 0);
    bool fits =
        o[2].kind == EMU_OPERAND_INT && (o[2].value == 16 || (l1 && (o[2].value == 4 || o[2].value == 8)));
    if (!fits) {
        emu_decode_error(d, l1 ? "cp.async.ca copies 4, 8 or 16 bytes" : "cp.async.cg copies 16 bytes");
        return false;
    }
    op->mods.count = (uint8_t)o[2].value;
    emu_op source = {.run = op->run, .mods = {.space = EMU_GLOBAL, .count = op->mods.count, .mode = 3}};
    op->mods.space = EMU_SHARED;
    op->arg[0] = emu_decode_address(d, &o[0], op);
    source.arg[0] = emu_decode_address(d, &o[1], &source);
    op->mods.mode = 0;
    if (n - hinted == 4) {
        uint32_t slot;
        const emu_symbol *s = emu_decode_register(d, &o[3], &slot);
        op->mods.mode = s && s->type == EMU_PRED ? 2 : 1;
        op->arg[1] = op->mods.mode == 2 ? emu_decode_source(d, &o[3], EMU_PRED, EMU_NEGATABLE)
                                        : emu_decode_source(d, &o[3], EMU_U32, 0);
        if (op->mods.mode == 2 && d->in->module->version < 75)
            emu_decode_error(d, "the operand ignore-src needs .version 7.5");
    }
    if (d->in->log->errors != errors)
        return false;
    emu_emit(d, op, (emu_uses){.args = (uint8_t)(op->mods.mode ? 2 : 1)});
    emu_emit(d, &source, (emu_uses){.args = 1});
    return true;
}
