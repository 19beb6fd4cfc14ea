/* The tables: operations, special registers, cache hints and orders, matrix products, driver versions. */
#include <string.h>

#include "ir.h"

/* ---- operations ------------------------------------------------------------------------------------------------- */

#define ANY                                                                                                  \
    {                                                                                                        \
        63,                                                                                                  \
        {                                                                                                    \
            75, TARGET_BASE                                                                                  \
        }                                                                                                    \
    }
#define AT(sm, version)                                                                                      \
    {                                                                                                        \
        version,                                                                                             \
        {                                                                                                    \
            sm, TARGET_BASE                                                                                  \
        }                                                                                                    \
    }
#define FAMILY(sm, version)                                                                                  \
    {                                                                                                        \
        version,                                                                                             \
        {                                                                                                    \
            sm, TARGET_FAMILY                                                                                \
        }                                                                                                    \
    }
#define ARCH(sm, version)                                                                                    \
    {                                                                                                        \
        version,                                                                                             \
        {                                                                                                    \
            sm, TARGET_ARCH                                                                                  \
        }                                                                                                    \
    }

#define VARIES  TRAIT_VARIES
#define VOTE    TRAIT_VOTE
#define SYNC    TRAIT_SYNC
#define WARP    TRAIT_WARP
#define GROUP   TRAIT_GROUP
#define ONCE    TRAIT_ONCE
#define SLOW    TRAIT_SLOW
#define LONG    TRAIT_LONG
#define T(type) (1u << PTX_##type)
#define PRED    T(PRED)
#define B8      T(B8)
#define B16     T(B16)
#define U16     T(U16)
#define S16     T(S16)
#define F16     T(F16)
#define BF16    T(BF16)
#define B32     T(B32)
#define U32     T(U32)
#define S32     T(S32)
#define F32     T(F32)
#define F16X2   T(F16X2)
#define BF16X2  T(BF16X2)
#define B64     T(B64)
#define S64     T(S64)
#define U64     T(U64)
#define F64     T(F64)
#define F32X2   T(F32X2)
#define INT16   (T(U16) | T(S16))
#define INT32   (T(U32) | T(S32))
#define INT64   (T(U64) | T(S64))
#define BITS16  (B16 | INT16)
#define BITS32  (B32 | INT32 | F16X2 | BF16X2)
#define BITS64  (B64 | INT64)
#define ANY8    (B8 | T(U8) | T(S8))
#define ANY16   (BITS16 | F16 | BF16)
#define ANY32   (BITS32 | F32)
#define ANY64   (BITS64 | F64 | F32X2)
#define NUMBER  (INT16 | INT32 | INT64 | F16 | F32 | F64)
#define SAME    FROM_SAME

/* clang-format off */
#define ROW(op, text, signature, types, from, traits, needs) {PTX_OP_##op, text, signature, types, from, traits, needs},
const op_row op_rows[] = {
#include "ops.def"
};
#undef ROW
/* clang-format on */
const size_t op_row_count = sizeof op_rows / sizeof op_rows[0];

const op_row *op_first(ptx_op op)
{
    size_t low = 0, high = op_row_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (op_rows[middle].op < op)
            low = middle + 1;
        else
            high = middle;
    }
    return &op_rows[low];
}

static bool row_takes(const op_row *row, ptx_type type, ptx_type from)
{
    if (type != PTX_NONE && !(row->types & type_bit(type)))
        return false;
    if (row->from == FROM_SAME)
        return from == type;
    return from == PTX_NONE || (row->from & type_bit(from));
}

const op_row *op_find(ptx_op op, ptx_type type, ptx_type from)
{
    const op_row *end = op_rows + op_row_count;
    for (const op_row *row = op_first(op); row < end && row->op == op; row++)
        if (row_takes(row, type, from))
            return row;
    return NULL;
}

const char *op_mnemonic(const op_row *row, char buffer[24])
{
    size_t n = strcspn(row->text, ".$ ");
    memcpy(buffer, row->text, n);
    buffer[n] = '\0';
    return buffer;
}

/* ---- special registers: name, type, where it may differ, needs ----------------------------------- */

const sreg_row sreg_rows[PTX_SREG_COUNT] = {
    [PTX_TID_X] = {"%tid.x", PTX_U32, LEVEL_LANE, ANY},
    [PTX_TID_Y] = {"%tid.y", PTX_U32, LEVEL_LANE, ANY},
    [PTX_TID_Z] = {"%tid.z", PTX_U32, LEVEL_LANE, ANY},
    [PTX_NTID_X] = {"%ntid.x", PTX_U32, LEVEL_BLOCK, ANY},
    [PTX_NTID_Y] = {"%ntid.y", PTX_U32, LEVEL_BLOCK, ANY},
    [PTX_NTID_Z] = {"%ntid.z", PTX_U32, LEVEL_BLOCK, ANY},
    [PTX_CTAID_X] = {"%ctaid.x", PTX_U32, LEVEL_BLOCK, ANY},
    [PTX_CTAID_Y] = {"%ctaid.y", PTX_U32, LEVEL_BLOCK, ANY},
    [PTX_CTAID_Z] = {"%ctaid.z", PTX_U32, LEVEL_BLOCK, ANY},
    [PTX_NCTAID_X] = {"%nctaid.x", PTX_U32, LEVEL_BLOCK, ANY},
    [PTX_NCTAID_Y] = {"%nctaid.y", PTX_U32, LEVEL_BLOCK, ANY},
    [PTX_NCTAID_Z] = {"%nctaid.z", PTX_U32, LEVEL_BLOCK, ANY},
    [PTX_LANEID] = {"%laneid", PTX_U32, LEVEL_LANE, ANY},
    [PTX_SMID] = {"%smid", PTX_U32, LEVEL_LANE, ANY},
    [PTX_DYNAMIC_SMEM_SIZE] = {"%dynamic_smem_size", PTX_U32, LEVEL_BLOCK, ANY},
    [PTX_LANEMASK_EQ] = {"%lanemask_eq", PTX_U32, LEVEL_LANE, ANY},
    [PTX_LANEMASK_LT] = {"%lanemask_lt", PTX_U32, LEVEL_LANE, ANY},
    [PTX_LANEMASK_LE] = {"%lanemask_le", PTX_U32, LEVEL_LANE, ANY},
    [PTX_LANEMASK_GT] = {"%lanemask_gt", PTX_U32, LEVEL_LANE, ANY},
    [PTX_LANEMASK_GE] = {"%lanemask_ge", PTX_U32, LEVEL_LANE, ANY},
    [PTX_CLOCK64] = {"%clock64", PTX_U64, LEVEL_LANE, ANY},
    [PTX_GLOBALTIMER] = {"%globaltimer", PTX_U64, LEVEL_LANE, ANY},
};

/* ---- cache hints, orders and scopes, in the order in which PTX has them: who takes them, needs ------------------ */

#define LD TAKE_LOAD
#define ST TAKE_STORE
const hint_row hint_rows[] = {
    {PTX_RELAXED, LD | ST | TAKE_ATOM | TAKE_RED, ".relaxed", ANY},
    {PTX_ACQUIRE, LD | TAKE_ATOM, ".acquire", ANY},
    {PTX_RELEASE, ST | TAKE_ATOM | TAKE_RED, ".release", ANY},
    {PTX_ACQ_REL, TAKE_ATOM | TAKE_FENCE, ".acq_rel", ANY},
    {PTX_SC, TAKE_FENCE, ".sc", ANY},
    {PTX_CTA, LD | ST | TAKE_ATOM | TAKE_RED | TAKE_FENCE | TAKE_MEMBAR, ".cta", ANY},
    {PTX_GPU, LD | ST | TAKE_ATOM | TAKE_RED | TAKE_FENCE | TAKE_MEMBAR, ".gpu", ANY},
    {PTX_SYS, LD | ST | TAKE_ATOM | TAKE_RED | TAKE_FENCE | TAKE_MEMBAR, ".sys", ANY},
    {PTX_VOLATILE, LD | ST, ".volatile", ANY},
    {PTX_CA, LD | TAKE_CP_ASYNC, ".ca", ANY},
    {PTX_WB, ST, ".wb", ANY},
    {PTX_CG, LD | ST | TAKE_CP_ASYNC, ".cg", ANY},
    {PTX_CS, LD | ST, ".cs", ANY},
    {PTX_LU, LD, ".lu", ANY},
    {PTX_CV, LD, ".cv", ANY},
    {PTX_WT, ST, ".wt", ANY},
    {PTX_NC, LD, ".nc", ANY},
    {PTX_NO_ALLOCATE, LD | ST, ".L1::no_allocate", AT(75, 74)},
    {PTX_EVICT_FIRST, LD | ST, ".L1::evict_first", AT(75, 74)},
    {PTX_EVICT_LAST, LD | ST, ".L1::evict_last", AT(75, 74)},
    {PTX_L2_EVICT_FIRST, LD | ST, ".L2::evict_first", AT(100, 88)},
    {PTX_L2_EVICT_LAST, LD | ST, ".L2::evict_last", AT(100, 88)},
    {HINT_POLICY, LD | ST | TAKE_CP_ASYNC, ".L2::cache_hint", AT(80, 74)},
    {PTX_L2_64B, LD | TAKE_CP_ASYNC, ".L2::64B", AT(75, 74)},
    {PTX_L2_128B, LD | TAKE_CP_ASYNC, ".L2::128B", AT(75, 74)},
    {PTX_L2_256B, LD | TAKE_CP_ASYNC, ".L2::256B", AT(80, 74)},
};
const size_t hint_row_count = sizeof hint_rows / sizeof hint_rows[0];

/* ---- matrix products: shape, registers of A, B and C and their types, bits of an element, needs ------------------ */

/* clang-format off */
#define ROW(m, n, k, name, a, b, c, na, nb, nc, ab, sum, bits, needs)                                        \
    {PTX_MMA_M##m##N##n##K##k##_##name, "m" #m "n" #n "k" #k ".row.col." c "." a "." b "." c,                \
     {m, n, k, na, nb, nc, PTX_##ab, PTX_##ab, PTX_##sum, 0}, bits, needs},
#define SCALED(m, n, k, name, kind, scales, a, b, scale, bits)                                               \
    {PTX_MMA_M##m##N##n##K##k##_##name,                                                                      \
     "m" #m "n" #n "k" #k ".row.col.kind::" kind ".block_scale.scale_vec::" #scales "X.f32." a "." b ".f32." scale, \
     {m, n, k, 4, 2, 4, PTX_B32, PTX_B32, PTX_F32, scales}, bits, FAMILY(120, 87)},
const mma_row mma_rows[PTX_MMA_SHAPE_COUNT] = {
#include "mma.def"
};
#undef ROW
#undef SCALED

#define ROW(k, name, a, b, d, a_register, d_register, bits, needs)                                           \
    {PTX_WGMMA_##name, "k" #k, "." d "." a "." b, k, bits, PTX_##a_register, PTX_##d_register, needs},
const wgmma_row wgmma_rows[PTX_WGMMA_TYPES_COUNT] = {
#include "wgmma.def"
};
#undef ROW
/* clang-format on */

/* ---- requirements ------------------------------------------------------------------------------------------------- */

const ptx_requirement requirement_lowest = ANY;

bool ptx_fits(target needs, target t)
{
    if (needs.kind == TARGET_ARCH)
        return t.kind == TARGET_ARCH && t.sm == needs.sm;
    if (needs.kind == TARGET_FAMILY && t.kind == TARGET_BASE)
        return false;
    return t.sm >= needs.sm;
}

ptx_requirement requirement_join(ptx_requirement a, ptx_requirement b)
{
    ptx_requirement joined = a.target.sm >= b.target.sm ? a : b;
    joined.version = a.version >= b.version ? a.version : b.version;
    if (a.target.kind == TARGET_ARCH || b.target.kind == TARGET_ARCH)
        joined.target.kind = TARGET_ARCH;
    else if (a.target.kind == TARGET_FAMILY || b.target.kind == TARGET_FAMILY)
        joined.target.kind = TARGET_FAMILY;
    return joined;
}

/* ---- drivers: the CUDA release that brought each .version (PTX ISA, release history) ---------------------------- */

uint32_t ptx_min_driver(uint16_t version)
{
    static const struct {
        uint16_t version;
        uint32_t driver;
    } rows[] = {
        {63, 10000}, {64, 10010}, {65, 10020}, {70, 11000}, {71, 11010}, {72, 11020},
        {73, 11030}, {74, 11040}, {75, 11050}, {76, 11060}, {77, 11070}, {78, 11080},
        {80, 12000}, {81, 12010}, {82, 12020}, {83, 12030}, {84, 12040}, {85, 12050},
        {86, 12070}, {87, 12080}, {88, 12090}, {90, 13000}, {91, 13010},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].version == version)
            return rows[i].driver;
    return 0;
}
