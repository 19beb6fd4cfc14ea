/* Vectors of more than four narrow elements: PTX has none, so they are vectors of 32-bit words, taken apart and put
 * together. */
#include "ir.h"

enum { MOST_WORDS = 4, BYTES_OF_WORD = 4 };

bool vector_is_narrow(int count, ptx_val pointer)
{
    if (pointer.kind != VAL_REGISTER || pointer.type != PTX_PTR)
        return false;
    uint32_t size = ptx_type_bytes((ptx_type)pointer.element);
    return (count == 8 && (size == 1 || size == 2)) || (count == 16 && size == 1);
}

static int words_of(int count, ptx_val pointer)
{
    return count * (int)ptx_type_bytes((ptx_type)pointer.element) / BYTES_OF_WORD;
}

static ptx_val apply3(ptx_fn *f, ptx_op op, ptx_val a, ptx_val b, ptx_val c, ptx_place at)
{
    return inst_apply(f, op, PTX_NONE, 3, (ptx_val[]){a, b, c}, at);
}

void vector_load_narrow(ptx_fn *f, int count, ptx_val out[], ptx_val pointer, int hints, ptx_place at)
{
    ptx_type element = (ptx_type)pointer.element;
    bool is_bytes = ptx_type_bytes(element) == 1;
    ptx_val words[MOST_WORDS], as_words = pointer;
    for (int i = 0; i < count; i++)
        out[i] = val_poison;
    as_words.element = (uint8_t)(!is_bytes ? PTX_B32 : element == PTX_S8 ? PTX_S32 : PTX_U32);
    int parts = count / words_of(count, pointer);
    ptx_load_vec_at(f, words_of(count, pointer), words, as_words, hints, at.file, at.line);
    for (int i = 0; i < count && words[0].kind != VAL_POISON; i++) {
        uint32_t position = (uint32_t)(i % parts) * 8;
        if (is_bytes)
            out[i] = apply3(f, PTX_OP_BFE, words[i / parts], ptx_u32(position), ptx_u32(8), at);
        else if (i % parts == 0)
            ptx_unpack_at(f, element, 2, &out[i], words[i / parts], at.file, at.line);
    }
}

/* A value of which the low bits are stored, in 32 bits whose other bits do not matter. */
static ptx_val in_word(ptx_fn *f, ptx_val v, ptx_place at)
{
    ptx_type is = (ptx_type)v.type;
    if (v.kind == VAL_IMMEDIATE)
        return ptx_u32((uint32_t)v.bits);
    if (ptx_type_bytes(is) == 8)
        return ptx_cvt_at(f, PTX_OP_CVT, PTX_U32, val_retyped(v, PTX_U64), at.file, at.line);
    if (ptx_type_bytes(is) == 2)
        return ptx_cvt_at(f, PTX_OP_CVT, PTX_U32, val_retyped(v, PTX_U16), at.file, at.line);
    return val_retyped(v, PTX_U32);
}

static ptx_val joined(ptx_fn *f, ptx_val low, ptx_val high, uint32_t selector, ptx_place at)
{
    return apply3(f, PTX_OP_PRMT, val_retyped(low, PTX_B32), val_retyped(high, PTX_B32), ptx_u32(selector),
                  at);
}

/* Two values of 16 bits are packed as they are; of wider ones the low halves are taken. */
static ptx_val pair(ptx_fn *f, const ptx_val values[], ptx_place at)
{
    if (ptx_type_bytes((ptx_type)values[0].type) == 2 && values[0].type == values[1].type)
        return ptx_pack_at(f, PTX_B32, 2, values, at.file, at.line);
    ptx_val low = in_word(f, values[0], at);
    return joined(f, low, in_word(f, values[1], at), 0x5410, at);
}

static ptx_val quad(ptx_fn *f, const ptx_val values[], ptx_place at)
{
    ptx_val word[4];
    for (int i = 0; i < 4; i++)
        word[i] = in_word(f, values[i], at);
    ptx_val low = joined(f, word[0], word[1], 0x0040, at);
    ptx_val high = joined(f, word[2], word[3], 0x0040, at);
    return joined(f, low, high, 0x5410, at);
}

void vector_store_narrow(ptx_fn *f, int count, ptx_val pointer, const ptx_val values[], int hints,
                         ptx_place at)
{
    ptx_val words[MOST_WORDS], as_words = pointer;
    int parts = count / words_of(count, pointer);
    for (int i = 0; i < words_of(count, pointer); i++)
        words[i] = (parts == 2 ? pair : quad)(f, &values[i * parts], at);
    as_words.element = PTX_B32;
    ptx_store_vec_at(f, words_of(count, pointer), as_words, words, hints, at.file, at.line);
}
