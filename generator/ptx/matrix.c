/* Matrix products, and the loads and stores of their fragments. */
#include "ir.h"

/* ---- what a shape takes, and where its elements lie ------------------------------------------------------------- */

/* A row without registers for a number that is not a shape. */
static const mma_row *row_of(ptx_mma_shape shape)
{
    static const mma_row none = {.bits = 32};
    return (unsigned)shape < PTX_MMA_SHAPE_COUNT ? &mma_rows[shape] : &none;
}

ptx_mma_info ptx_mma_describe(ptx_mma_shape shape)
{
    return row_of(shape)->info;
}

static int elements_per_register(const mma_row *row)
{
    return row->bits < 32 ? 32 / row->bits : 1;
}

/* The index along k of element i of a register: four neighbouring lanes share k. */
static int index_along_k(const mma_row *row, int lane, int reg, int i)
{
    int each = elements_per_register(row);
    return lane % 4 * each + 4 * each * reg + i % each;
}

ptx_element ptx_mma_a(ptx_mma_shape shape, int lane, int i)
{
    const mma_row *row = row_of(shape);
    int reg = i / elements_per_register(row), halves = row->info.m > 8 ? 2 : 1;
    return (ptx_element){lane / 4 + 8 * (reg % halves), index_along_k(row, lane, reg / halves, i)};
}

ptx_element ptx_mma_b(ptx_mma_shape shape, int lane, int i)
{
    const mma_row *row = row_of(shape);
    return (ptx_element){index_along_k(row, lane, i / elements_per_register(row), i), lane / 4};
}

ptx_element ptx_mma_c(ptx_mma_shape shape, int lane, int i)
{
    (void)shape;
    return (ptx_element){lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2};
}

/* ---- the product ------------------------------------------------------------------------------------------------ */

/* Untyped 32 bits fit everything, and 32-bit integers fit untyped bits. */
static bool fragment_takes(ptx_type expected, ptx_type is)
{
    if (is == expected)
        return true;
    if (ptx_type_bytes(expected) != 4 || ptx_type_bytes(is) != 4)
        return false;
    return is == PTX_B32 || (expected == PTX_B32 && type_is_integer(is));
}

bool fragment_fits(ptx_fn *f, const char *operation, char name, int count, ptx_type type,
                   const ptx_val values[], ptx_place at)
{
    char what[24];
    for (int i = 0; i < count; i++) {
        bool is_taken = fragment_takes(type, (ptx_type)values[i].type);
        if (is_taken && val_is_fine(f, values[i]))
            continue;
        snprintf(what, sizeof what, "%s: %c[%d]", operation, name, i);
        if (!val_usable(f, values[i], what, at))
            return false;
        if (!is_taken) {
            fn_problem(f, at, "%s is %s, expected %s", what, ptx_type_name((ptx_type)values[i].type),
                       ptx_type_name(type));
            return false;
        }
    }
    return true;
}

bool are_variables(const ptx_fn *f, int count, const ptx_val values[], int *which)
{
    for (*which = 0; *which < count; ++*which) {
        const ptx_val v = values[*which];
        const ptx_reg *r = v.kind == VAL_REGISTER ? fn_reg(f, v.reg) : NULL;
        if (!r || !r->variable || r->counter)
            return false;
    }
    return true;
}

bool are_different(ptx_fn *f, const char *operation, char name, int count, const ptx_val values[],
                   ptx_place at)
{
    for (int i = 1; i < count; i++) {
        for (int k = 0; k < i; k++) {
            if (values[i].reg == values[k].reg) {
                fn_problem(f, at, "%s: %c[%d] and %c[%d] are the same variable", operation, name, k, name, i);
                return false;
            }
        }
    }
    return true;
}

static bool is_in_place(ptx_fn *f, int count, const ptx_val values[], ptx_place at)
{
    int which;
    if (are_variables(f, count, values, &which))
        return are_different(f, "mma", 'c', count, values, at);
    fn_problem(f, at, "mma: d and c are one array, but c[%d] is not a variable", which);
    return false;
}

/* Fragments are registers, even where a kernel passes a constant. */
static ptx_val in_any_register(ptx_fn *f, ptx_val v, ptx_place at)
{
    return v.kind == VAL_IMMEDIATE ? inst_apply(f, PTX_OP_MOV, PTX_NONE, 1, &v, at) : v;
}

static int add_fragment(ptx_fn *f, ptx_val to[], int count, const ptx_val from[], ptx_place at)
{
    for (int i = 0; i < count; i++)
        to[i] = in_any_register(f, from[i], at);
    return count;
}

/* Appends scales and their selector. */
static int add_scales(ptx_fn *f, ptx_val to[], const ptx_mma_scales *of, ptx_place at)
{
    to[0] = in_any_register(f, of->word, at);
    to[1] = ptx_bits(PTX_U16, (uint64_t)of->byte);
    to[2] = ptx_bits(PTX_U16, (uint64_t)of->thread);
    return 3;
}

static bool scales_fit(ptx_fn *f, char name, int scales, int threads, const ptx_mma_scales *of, ptx_place at)
{
    if (!fragment_fits(f, "mma", name, 1, PTX_B32, &of->word, at))
        return false;
    const bool fits = of->byte >= 0 && of->byte % scales == 0 && of->byte + scales <= 4 && of->thread >= 0 &&
                      of->thread < threads;
    if (!fits)
        fn_problem(f, at, "mma: no scales of %c at byte %d of thread %d", name, of->byte, of->thread);
    return fits;
}

/* `scales`: A's and B's, or null. */
static void build_mma(ptx_fn *f, ptx_mma_shape shape, ptx_val d[], const ptx_val a[], const ptx_val b[],
                      const ptx_val c[], const ptx_mma_scales scales[2], ptx_place at)
{
    enum { OF_SCALES = 3 };
    const mma_row *row = row_of(shape);
    const ptx_mma_info *info = &row->info;
    bool in_place = d == c;
    if (!info->c_count) {
        fn_problem(f, at, "mma: the shape is not a ptx_mma_shape");
        return;
    }
    bool fits = fragment_fits(f, "mma", 'a', info->a_count, info->a_type, a, at) &&
                fragment_fits(f, "mma", 'b', info->b_count, info->b_type, b, at) &&
                fragment_fits(f, "mma", 'c', info->c_count, info->c_type, c, at) &&
                (!in_place || is_in_place(f, info->c_count, c, at));
    if (fits && (info->scales > 0) != (scales != NULL)) {
        fn_problem(f, at, "mma: a shape %s scales", info->scales > 0 ? "with" : "without");
        fits = false;
    }
    fits = fits && (!scales || (scales_fit(f, 'a', info->scales, 2, &scales[0], at) &&
                                scales_fit(f, 'b', info->scales, 4, &scales[1], at)));
    if (!fits) {
        for (int i = 0; !in_place && i < info->c_count; i++)
            d[i] = val_poison;
        return;
    }
    ptx_val operands[8 + 4 + 4 + 2 * OF_SCALES];
    int count = add_fragment(f, operands, info->a_count, a, at);
    count += add_fragment(f, operands + count, info->b_count, b, at);
    count += add_fragment(f, operands + count, info->c_count, c, at);
    for (int i = 0; scales && i < 2; i++)
        count += add_scales(f, operands + count, &scales[i], at);
    const uint8_t groups[] = {(uint8_t)info->c_count, (uint8_t)info->a_count, (uint8_t)info->b_count,
                              (uint8_t)info->c_count, OF_SCALES - 1,          OF_SCALES - 1};
    ptx_inst *inst = inst_append(f, INST_OP, info->c_count, count, at);
    inst->row = op_first(scales ? PTX_OP_MMA_SCALED : PTX_OP_MMA);
    inst->symbol = row->text;
    inst->needs = row->needs;
    inst->groups = arena_copy(f->arena, groups, sizeof groups);
    for (int i = 0; i < count; i++)
        inst->operands[i] = operands[i];
    for (int i = 0; i < info->c_count; i++) {
        inst->results[i] = in_place ? c[i] : val_born(f, info->c_type);
        d[i] = inst->results[i];
    }
}

void ptx_mma_at(ptx_fn *f, ptx_mma_shape shape, ptx_val d[], const ptx_val a[], const ptx_val b[],
                const ptx_val c[], const char *file, int line)
{
    build_mma(f, shape, d, a, b, c, NULL, (ptx_place){file, line});
}

void ptx_mma_scaled_at(ptx_fn *f, ptx_mma_shape shape, ptx_val d[], const ptx_val a[], const ptx_val b[],
                       const ptx_val c[], ptx_mma_scales of_a, ptx_mma_scales of_b, const char *file,
                       int line)
{
    const ptx_mma_scales scales[2] = {of_a, of_b};
    build_mma(f, shape, d, a, b, c, scales, (ptx_place){file, line});
}

/* ---- fragments in shared memory --------------------------------------------------------------------------------- */

enum { MATRIX_ROW_BYTES = 16, MOST_MATRICES = 4 };

static bool matrix_access_fits(ptx_fn *f, const char *what, int count, ptx_val pointer, ptx_place at)
{
    if (!pointer_fits(f, what, pointer, 1u << PTX_SHARED, MATRIX_ROW_BYTES, at))
        return false;
    if (count == 1 || count == 2 || count == 4)
        return true;
    fn_problem(f, at, "%s: %d matrices, expected 1, 2 or 4", what, count);
    return false;
}

void ptx_ldmatrix_at(ptx_fn *f, ptx_op op, int count, ptx_val out[], ptx_val pointer, const char *file,
                     int line)
{
    ptx_place at = {file, line};
    for (int i = 0; i < count && i < MOST_MATRICES; i++)
        out[i] = val_poison;
    if (!matrix_access_fits(f, "ldmatrix", count, pointer, at))
        return;
    ptx_type type = pointer.element == PTX_F16    ? PTX_F16X2
                    : pointer.element == PTX_BF16 ? PTX_BF16X2
                                                  : PTX_B32;
    ptx_inst *inst = inst_build(f, op, type, PTX_NONE, count, 1, &pointer, at);
    for (int i = 0; inst && i < count; i++)
        out[i] = inst->results[i];
}

void ptx_stmatrix_at(ptx_fn *f, ptx_op op, int count, ptx_val pointer, const ptx_val values[],
                     const char *file, int line)
{
    ptx_place at = {file, line};
    ptx_val operands[1 + 4] = {pointer};
    if (!matrix_access_fits(f, "stmatrix", count, pointer, at))
        return;
    add_fragment(f, operands + 1, count, values, at);
    inst_build(f, op, PTX_NONE, PTX_NONE, count, 1 + count, operands, at);
}
