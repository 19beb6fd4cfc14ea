/* Products of warpgroups: forms, fragments, matrix descriptors. */
#include "ir.h"

enum { MOST_N = 256, ROWS = 64, WARP_ROWS = 16, A_REGISTERS = 4 };

/* ---- what a form takes, and where its elements lie -------------------------------------------------------------- */

/* Per thread. */
static int d_registers(const wgmma_row *row, int n)
{
    return row->d_type == PTX_F16X2 ? n / 4 : n / 2;
}

ptx_mma_info ptx_wgmma_describe(ptx_wgmma_form form)
{
    if ((unsigned)form.types >= PTX_WGMMA_TYPES_COUNT)
        return (ptx_mma_info){.m = 0};
    const wgmma_row *row = &wgmma_rows[form.types];
    return (ptx_mma_info){.m = ROWS,
                          .n = form.n,
                          .k = row->k,
                          .a_count = A_REGISTERS,
                          .c_count = d_registers(row, form.n),
                          .a_type = row->a_type,
                          .c_type = row->d_type};
}

ptx_element ptx_wgmma_a(ptx_wgmma_types types, int thread, int i)
{
    const int bits = (unsigned)types < PTX_WGMMA_TYPES_COUNT ? wgmma_rows[types].bits : 32;
    const int each = 32 / bits, reg = i / each, lane = thread % 32;
    return (ptx_element){thread / 32 * WARP_ROWS + lane / 4 + reg % 2 * 8,
                         lane % 4 * each + reg / 2 * 4 * each + i % each};
}

/* The elements of eight columns follow those of the eight before. */
ptx_element ptx_wgmma_d(ptx_wgmma_types types, int thread, int i)
{
    const int lane = thread % 32;
    (void)types;
    return (ptx_element){thread / 32 * WARP_ROWS + lane / 4 + i / 2 % 2 * 8,
                         i / 4 * 8 + lane % 4 * 2 + i % 2};
}

/* ---- the product ------------------------------------------------------------------------------------------------ */

static bool is_n(const wgmma_row *row, int n)
{
    const bool is_any = n > 0 && n <= MOST_N && n % 8 == 0;
    return row->d_type == PTX_S32 ? is_any && (n <= 32 || n % 16 == 0) : is_any;
}

static const char *form_trouble(const ptx_wgmma_form *form, const wgmma_row *row, bool is_shared)
{
    const bool is_integer = row->d_type == PTX_S32;
    if (!is_n(row, form->n))
        return is_integer ? "n must be 8, 16, 24, 32 or a multiple of 16 up to 256"
                          : "n must be a multiple of 8 up to 256";
    if (is_integer && (form->negates_a || form->negates_b))
        return "integers are not negated";
    if (!is_integer && form->saturates)
        return "only sums of bytes saturate";
    if ((form->transposes_a || form->transposes_b) && row->bits != 16)
        return "only f16 and bf16 are transposed";
    return form->transposes_a && !is_shared ? "A is in registers, and cannot be transposed" : NULL;
}

static bool form_fits(ptx_fn *f, const ptx_wgmma_form *form, bool is_shared, ptx_place at)
{
    if ((unsigned)form->types >= PTX_WGMMA_TYPES_COUNT) {
        fn_problem(f, at, "wgmma: the types are not a ptx_wgmma_types");
        return false;
    }
    const char *trouble = form_trouble(form, &wgmma_rows[form->types], is_shared);
    if (trouble)
        fn_problem(f, at, "wgmma: %s", trouble);
    return !trouble;
}

static bool descriptor_fits(ptx_fn *f, char name, ptx_val v, ptx_place at)
{
    char what[40];
    snprintf(what, sizeof what, "wgmma: the descriptor of %c", name);
    if (!val_usable(f, v, what, at))
        return false;
    if (v.kind == VAL_REGISTER && (v.type == PTX_U64 || v.type == PTX_B64))
        return true;
    fn_problem(f, at, "%s is %s, expected u64 from ptx_descriptor", what, ptx_type_name((ptx_type)v.type));
    return false;
}

/* The number 0 or 1, or a predicate. */
static bool adds_fits(ptx_fn *f, ptx_val *adds, ptx_place at)
{
    const char *what = "wgmma: whether it adds to d";
    if (!val_given(f, *adds, what, at) || !val_settle(f, adds, PTX_U32, what, at) ||
        !val_usable(f, *adds, what, at))
        return false;
    if (adds->kind == VAL_IMMEDIATE ? adds->bits <= 1 : adds->type == PTX_PRED)
        return true;
    fn_problem(f, at, "%s is %s, expected 0, 1 or a predicate", what,
               adds->kind == VAL_IMMEDIATE ? "another number" : ptx_type_name((ptx_type)adds->type));
    return false;
}

/* Registers, of which D's are variables. */
static bool registers_fit(ptx_fn *f, const wgmma_row *row, int n, const ptx_val d[], const ptx_val *a,
                          ptx_place at)
{
    int which;
    if (a && !fragment_fits(f, "wgmma", 'a', A_REGISTERS, row->a_type, a, at))
        return false;
    if (!fragment_fits(f, "wgmma", 'd', d_registers(row, n), row->d_type, d, at))
        return false;
    for (int i = 0; a && i < A_REGISTERS; i++)
        if (a[i].kind != VAL_REGISTER) {
            fn_problem(f, at, "wgmma: a[%d] is a number, expected a register", i);
            return false;
        }
    if (are_variables(f, d_registers(row, n), d, &which))
        return are_different(f, "wgmma", 'd', d_registers(row, n), d, at);
    fn_problem(f, at, "wgmma: d[%d] is not a variable", which);
    return false;
}

/* -1 negates, 1 does not; 1 transposes, 0 does not. Returns their number. */
static int add_flags(const ptx_wgmma_form *form, const wgmma_row *row, bool is_shared, ptx_val to[4])
{
    int count = 0;
    if (row->d_type != PTX_S32) {
        to[count++] = ptx_s32(form->negates_a ? -1 : 1);
        to[count++] = ptx_s32(form->negates_b ? -1 : 1);
    }
    if (row->bits == 16 && is_shared)
        to[count++] = ptx_s32(form->transposes_a);
    if (row->bits == 16)
        to[count++] = ptx_s32(form->transposes_b);
    return count;
}

static void append_product(ptx_fn *f, const ptx_wgmma_form *form, ptx_op op, const ptx_val operands[],
                           int count, int flags, const ptx_val d[], ptx_place at)
{
    const wgmma_row *row = &wgmma_rows[form->types];
    const int results = d_registers(row, form->n);
    const uint8_t of_registers[] = {(uint8_t)results, A_REGISTERS, (uint8_t)flags},
                  of_shared[] = {(uint8_t)results, (uint8_t)flags};
    ptx_inst *inst = inst_append(f, INST_OP, results, count, at);
    inst->row = op_first(op);
    inst->symbol = arena_format(f->arena, "m64n%d%s%s%s", form->n, row->depth,
                                form->saturates ? ".satfinite" : "", row->names);
    inst->needs = row->needs;
    inst->groups = op == PTX_OP_WGMMA ? arena_copy(f->arena, of_registers, sizeof of_registers)
                                      : arena_copy(f->arena, of_shared, sizeof of_shared);
    inst->form = arena_copy(f->arena, form, sizeof *form);
    for (int i = 0; i < count; i++)
        inst->operands[i] = operands[i];
    for (int i = 0; i < results; i++)
        inst->results[i] = d[i];
}

/* The operands of the signature, then D where it is read. */
static void product(ptx_fn *f, ptx_wgmma_form form, ptx_val adds, const ptx_val d[],
                    const ptx_val *a_registers, const ptx_val *a_descriptor, ptx_val b, ptx_place at)
{
    ptx_val operands[A_REGISTERS + 2 + 4 + MOST_N / 2];
    const bool is_shared = a_descriptor != NULL;
    int count = 0;
    if (!form_fits(f, &form, is_shared, at) || (is_shared && !descriptor_fits(f, 'A', *a_descriptor, at)) ||
        !descriptor_fits(f, 'B', b, at) || !adds_fits(f, &adds, at) ||
        !registers_fit(f, &wgmma_rows[form.types], form.n, d, a_registers, at))
        return;
    for (int i = 0; i < (is_shared ? 1 : A_REGISTERS); i++)
        operands[count++] = is_shared ? *a_descriptor : a_registers[i];
    operands[count++] = b;
    operands[count++] = adds;
    const int flags = add_flags(&form, &wgmma_rows[form.types], is_shared, &operands[count]);
    count += flags;
    const bool is_fresh = adds.kind == VAL_IMMEDIATE && adds.bits == 0;
    for (int i = 0; !is_fresh && i < d_registers(&wgmma_rows[form.types], form.n); i++)
        operands[count++] = d[i];
    append_product(f, &form, is_shared ? PTX_OP_WGMMA_SHARED : PTX_OP_WGMMA, operands, count, flags, d, at);
}

void ptx_wgmma_at(ptx_fn *f, ptx_wgmma_form form, ptx_val adds, ptx_val d[], const ptx_val a[], ptx_val b,
                  const char *file, int line)
{
    product(f, form, adds, d, a, NULL, b, (ptx_place){file, line});
}

void ptx_wgmma_shared_at(ptx_fn *f, ptx_wgmma_form form, ptx_val adds, ptx_val d[], ptx_val a, ptx_val b,
                         const char *file, int line)
{
    product(f, form, adds, d, NULL, &a, b, (ptx_place){file, line});
}

/* ---- descriptors ------------------------------------------------------------------------------------------------ */

enum { FIELD_BYTES = 1 << 18 };

static bool is_field(uint32_t bytes)
{
    return bytes < FIELD_BYTES && bytes % 16 == 0;
}

static bool is_swizzle(uint32_t bytes)
{
    return bytes == 0 || bytes == 32 || bytes == 64 || bytes == 128;
}

/* The largest power of two that is known to divide the address. */
static uint32_t known_multiple(const ptx_fn *f, ptx_val pointer)
{
    const uint32_t align = fn_reg(f, pointer.reg)->align, bits = align | (uint32_t)pointer.offset;
    return align ? bits & (0 - bits) : 1;
}

ptx_val ptx_descriptor_at(ptx_fn *f, ptx_val pointer, ptx_matrix matrix, const char *file, int line)
{
    ptx_place at = {file, line};
    const uint64_t mode = matrix.swizzle_bytes == 128  ? 1
                          : matrix.swizzle_bytes == 64 ? 2
                          : matrix.swizzle_bytes == 32 ? 3
                                                       : 0;
    if (!pointer_fits(f, "ptx_descriptor", pointer, 1u << PTX_SHARED, 1, at))
        return val_poison;
    if (!is_swizzle(matrix.swizzle_bytes) || !is_field(matrix.stride_bytes) ||
        !is_field(matrix.leading_bytes)) {
        fn_problem(
            f, at,
            "ptx_descriptor: expected a swizzle of 0, 32, 64 or 128 bytes, and multiples of 16 below 2^18");
        return val_poison;
    }
    const uint32_t pattern_bytes = mode ? 8 * matrix.swizzle_bytes : 16, known = known_multiple(f, pointer);
    if (known < pattern_bytes) {
        fn_problem(f, at, "ptx_descriptor: expected a pointer known to be a multiple of %u bytes, not of %u",
                   pattern_bytes, known);
        return val_poison;
    }
    ptx_val address = ptx_address_at(f, pointer, file, line);
    ptx_val start = ptx_op2(f, PTX_OP_SHR, address, ptx_u32(4), file, line);
    ptx_val wide = ptx_cvt_at(f, PTX_OP_CVT, PTX_U64, start, file, line);
    const uint64_t fields =
        mode << 62 | (uint64_t)(matrix.stride_bytes >> 4) << 32 | (uint64_t)(matrix.leading_bytes >> 4) << 16;
    return ptx_op2(f, PTX_OP_OR, wide, ptx_bits(PTX_B64, fields), file, line);
}
