/* wgmma (ISA 9.7.15): 64 rows of A, in shared memory or registers, times columns of B in shared memory. Each of the four
   warps of a warpgroup has 16 rows of A and D, in the fragments of mma.m16n8, and reads all of B. */
#include "access.h"
#include "matrix.h"
#include "tensor.h"
#include "warpgroup.h"

enum { MOST_N = 256 };

/* ---- matrices in shared memory ------------------------------------------------------------------------------------- */

/* A matrix may begin in any row of a swizzle's pattern, and inside a row if the rest of that row has room for the matrix's
   row. The swizzle permutes address bits, as measured on an H100 (tools/bench). */
static bool is_descriptor_right(emu_warp *w, const emu_op *op, char name, uint64_t descriptor,
                                bool is_mn_major, unsigned rows)
{
    shared_matrix m = matrix_of(descriptor, is_mn_major);
    const uint64_t fields = UINT64_C(0xc00e3fff3fff3fff);
    uint32_t inside = m.start % m.span, extent = is_mn_major ? 2 * rows : 32;
    extent = extent < m.span ? extent : m.span;
    if (descriptor & ~fields)
        emu_fault(w, op, EMU_ALL, CUDA_ERROR_LAUNCH_FAILED,
                  "gives the matrix descriptor 0x%016llx for %c, which has bits that belong to no field",
                  (unsigned long long)descriptor, name);
    else if (descriptor >> 49 & 7)
        emu_fault(w, op, EMU_ALL, CUDA_ERROR_LAUNCH_FAILED,
                  "gives a matrix descriptor with a base offset for %c, which is not emulated: begin the "
                  "swizzle's pattern at a multiple of %u bytes",
                  name, 8 * m.span);
    else if (m.span > CHUNK_BYTES && inside + extent > m.span)
        emu_fault(
            w, op, EMU_ALL, CUDA_ERROR_MISALIGNED_ADDRESS,
            "begins %c at 0x%x of .shared memory, %u bytes into a row of the %u-byte swizzle's pattern, "
            "whose rest is shorter than %c's %u bytes",
            name, m.start, inside, m.span, name, extent);
    else
        return true;
    return false;
}

/* Checks the accesses to the chunks, one chunk per lane, and reports them to the observers. Returns false after a fault. */
static bool access_chunks(emu_warp *w, const emu_op *op, const uint32_t *places, unsigned count)
{
    for (unsigned from = 0; from < count; from += EMU_LANES) {
        unsigned left = count - from, lanes = left < EMU_LANES ? left : EMU_LANES;
        uint32_t mask = lanes == EMU_LANES ? EMU_ALL : (1u << lanes) - 1;
        uint64_t at[EMU_LANES];
        for (unsigned i = 0; i < EMU_LANES; i++)
            at[i] = w->block->shared_base + places[from + (i < lanes ? i : 0)];
        if (!access_shared(w, op, mask, CHUNK_BYTES, false, at))
            return false;
        EMU_TELL(w->audience, access, w, op, mask, CHUNK_BYTES, false, at);
        if (w->state == EMU_WARP_FAULTED)
            return false;
    }
    return true;
}

/* The four warps share one read of B, so each counts a quarter of B's chunks. */
static void request_chunks(emu_warp *w, const emu_op *op, const uint32_t *places, unsigned count)
{
    for (unsigned from = 0; from < count; from += EMU_LANES) {
        unsigned left = count - from, lanes = left < EMU_LANES ? left : EMU_LANES;
        uint64_t at[EMU_LANES];
        for (unsigned i = 0; i < EMU_LANES; i++)
            at[i] = (uint64_t)(uintptr_t)w->block->shared + places[from + (i < lanes ? i : 0)];
        EMU_TELL(w->audience, request, w, op, lanes == EMU_LANES ? EMU_ALL : (1u << lanes) - 1, CHUNK_BYTES,
                 false, at, NULL);
    }
}

/* ---- the product --------------------------------------------------------------------------------------------------- */

/* The warp's rows of A, and the columns of B, 32 bytes each. */
typedef struct operands {
    uint8_t a[16][EMU_WGMMA_ROW_BYTES], b[MOST_N][EMU_WGMMA_ROW_BYTES];
} operands;

static void gather(const emu_warp *w, uint64_t descriptor, bool is_mn_major, unsigned first_row,
                   unsigned rows, uint8_t (*to)[EMU_WGMMA_ROW_BYTES])
{
    shared_matrix m = matrix_of(descriptor, is_mn_major);
    const char *shared = w->block->shared;
    for (unsigned n = 0; n < 2 * rows; n++)
        if (!is_mn_major) {
            memcpy(to[n / 2] + n % 2 * CHUNK_BYTES, shared + chunk_place(&m, first_row + n / 2, n % 2),
                   CHUNK_BYTES);
        } else {
            const char *chunk = shared + chunk_place(&m, first_row / 8 + n / 16, n % 16);
            for (unsigned e = 0; e < 8; e++)
                memcpy(to[n / 16 * 8 + e] + n % 16 * 2, chunk + 2 * e, 2);
        }
}

/* Register r of a lane has four bytes of row lane / 4, plus 8 if r is odd; they are in the row's second half if r is 2 or 3. */
static void gather_registers(const emu_warp *w, const uint32_t *registers, uint8_t (*to)[EMU_WGMMA_ROW_BYTES])
{
    for (unsigned r = 0; r < EMU_WGMMA_A_FRAGMENTS; r++)
        for (unsigned lane = 0; lane < EMU_LANES; lane++)
            memcpy(to[lane / 4 + r % 2 * 8] + r / 2 * CHUNK_BYTES + lane % 4 * 4,
                   (const char *)emu_lanes(w, registers[r]) + 4 * (size_t)lane, 4);
}

static void negate(uint8_t (*rows)[EMU_WGMMA_ROW_BYTES], unsigned count, unsigned element)
{
    unsigned bytes = emu_wgmma_element_bytes(element);
    for (unsigned n = 0; n < count; n++)
        for (unsigned k = bytes - 1; k < EMU_WGMMA_ROW_BYTES; k += bytes)
            rows[n][k] ^= 0x80;
}

static void read_operands(const emu_warp *w, const emu_product *p, const emu_wgmma *f, operands *o)
{
    if (f->flags & EMU_WGMMA_A_REGISTERS)
        gather_registers(w, p->op->list + emu_wgmma_d_registers(f), o->a);
    else
        gather(w, p->a, f->flags & EMU_WGMMA_A_MN_MAJOR, first_row_of(w), 16, o->a);
    gather(w, p->b, f->flags & EMU_WGMMA_B_MN_MAJOR, 0, f->n, o->b);
    if (f->flags & EMU_WGMMA_A_NEGATED)
        negate(o->a, 16, f->a);
    if (f->flags & EMU_WGMMA_B_NEGATED)
        negate(o->b, f->n, f->b);
}

/* Eight columns of D. Element i of a lane is in row lane / 4, plus 8 if i is 2 or 3, and column lane % 4 * 2 + i % 2. */
typedef uint32_t eight_columns[MOST_ROWS][COLUMNS];

static void read_d(const emu_warp *w, const emu_product *p, const emu_wgmma *f, unsigned block,
                   eight_columns d)
{
    memset(d, 0, sizeof(eight_columns));
    for (unsigned i = 0; i < 4 && p->adds; i++)
        for (unsigned lane = 0; lane < EMU_LANES; lane++) {
            uint32_t *to = &d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
            if (f->d == EMU_F16)
                *to = bits_of_float(half_to_float(
                    ((const uint16_t *)emu_lanes(w, p->op->list[block * 2 + i / 2]))[2 * lane + i % 2]));
            else
                *to = ((const uint32_t *)emu_lanes(w, p->op->list[block * 4 + i]))[lane];
        }
}

static void write_d(const emu_warp *w, const emu_product *p, const emu_wgmma *f, unsigned block,
                    eight_columns d)
{
    for (unsigned i = 0; i < 4; i++)
        for (unsigned lane = 0; lane < EMU_LANES; lane++) {
            uint32_t from = d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
            if (f->d == EMU_F16)
                ((uint16_t *)emu_lanes(w, p->op->list[block * 2 + i / 2]))[2 * lane + i % 2] = (uint16_t)from;
            else
                ((uint32_t *)emu_lanes(w, p->op->list[block * 4 + i]))[lane] = from;
        }
}

static void set_vector(tensor_vector *v, const uint8_t *row, unsigned element)
{
    unsigned bytes = emu_wgmma_element_bytes(element);
    v->is_special = false;
    for (unsigned k = 0; k < EMU_WGMMA_ROW_BYTES / bytes; k++) {
        uint32_t bits = 0;
        memcpy(&bits, row + k * bytes, bytes);
        tensor_set(v, k, element, bits);
    }
}

/* The fast path for f16 and bf16 with f32 accumulators. Returns false if a value is not finite or too small. */
static bool multiply_tile(tensor_model model, const operands *o, const emu_wgmma *f, unsigned block,
                          eight_columns d)
{
    uint16_t a[MOST_ROWS][MOST_STEP], b[MOST_STEP][COLUMNS];
    tile t;
    memcpy(a, o->a, sizeof a);
    for (unsigned n = 0; n < COLUMNS; n++)
        for (unsigned k = 0; k < MOST_STEP; k++)
            memcpy(&b[k][n], &o->b[block * COLUMNS + n][2 * k], 2);
    if (!tile_fill(&t, model, f->a == EMU_EL_F16, a, b, d) || !tile_multiply(model, &t, MOST_STEP))
        return false;
    memcpy(d, t.d, sizeof t.d);
    return true;
}

static void multiply_float(emu_warp *w, const emu_product *p, const emu_wgmma *f, const operands *o)
{
    bool is_fp8 = f->a >= EMU_EL_E4M3;
    tensor_model model = {is_fp8 ? 13 : 25, TENSOR_MOST_TERMS, is_fp8 ? 13 : 23, false};
    unsigned k = EMU_WGMMA_ROW_BYTES / emu_wgmma_element_bytes(f->a);
    tensor_vector a[MOST_ROWS], b;
    for (unsigned row = 0; row < MOST_ROWS; row++)
        set_vector(&a[row], o->a[row], f->a);
    for (unsigned block = 0; block < f->n / COLUMNS; block++) {
        eight_columns d;
        read_d(w, p, f, block, d);
        bool is_done = f->a <= EMU_EL_BF16 && f->d == EMU_F32 && multiply_tile(model, o, f, block, d);
        for (unsigned n = 0; n < COLUMNS && !is_done; n++) {
            set_vector(&b, o->b[block * COLUMNS + n], f->b);
            for (unsigned row = 0; row < MOST_ROWS; row++)
                d[row][n] = tensor_dot(model, &a[row], &b, k, float_of_bits(d[row][n]), f->d == EMU_F16);
        }
        write_d(w, p, f, block, d);
    }
}

static void multiply_integer(emu_warp *w, const emu_product *p, const emu_wgmma *f, const operands *o)
{
    for (unsigned block = 0; block < f->n / COLUMNS; block++) {
        eight_columns d;
        read_d(w, p, f, block, d);
        for (unsigned row = 0; row < MOST_ROWS; row++)
            for (unsigned n = 0; n < COLUMNS; n++) {
                int64_t sum = (int32_t)d[row][n];
                for (unsigned k = 0; k < EMU_WGMMA_ROW_BYTES; k++)
                    sum +=
                        small_integer(f->a, o->a[row][k]) * small_integer(f->b, o->b[block * COLUMNS + n][k]);
                if (p->op->mods.flags & EMU_SATFINITE)
                    sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
                d[row][n] = (uint32_t)sum;
            }
        write_d(w, p, f, block, d);
    }
}

static void multiply(emu_warp *w, const emu_product *p)
{
    emu_wgmma f = emu_wgmma_of(p->op);
    operands o;
    read_operands(w, p, &f, &o);
    if (f.d == EMU_S32)
        multiply_integer(w, p, &f, &o);
    else
        multiply_float(w, p, &f, &o);
}

/* ---- the instructions ---------------------------------------------------------------------------------------------- */

HANDLER(fence)
{
    if (!is_in_warpgroup(w, op, mask))
        return;
    EMU_TELL(w->audience, warpgroup, w, op, NULL);
    emu_product_fence(w, op, mask);
}

HANDLER(commit)
{
    if (!is_in_warpgroup(w, op, mask))
        return;
    emu_product_commit(w);
    EMU_TELL(w->audience, warpgroup, w, op, NULL);
}

HANDLER(wait_group)
{
    if (!is_in_warpgroup(w, op, mask))
        return;
    EMU_TELL(w->audience, warpgroup, w, op, NULL);
    emu_product_wait(w, op, mask);
}

/* Returns true if the value is the same in all lanes; otherwise the launch fails. */
static bool are_alike(emu_warp *w, const emu_op *op, uint32_t arg, const char *what)
{
    const uint64_t *descriptor = emu_lanes(w, arg);
    uint32_t differ = 0;
    for (unsigned i = 1; i < EMU_LANES; i++)
        differ |= (uint32_t)(descriptor[i] != descriptor[0]) << i;
    if (differ)
        emu_fault(w, op, differ, CUDA_ERROR_LAUNCH_FAILED, "and the first lane of its warp give different %s",
                  what);
    return !differ;
}

HANDLER(mma_async)
{
    emu_wgmma f = emu_wgmma_of(op);
    bool has_a = f.flags & EMU_WGMMA_A_REGISTERS;
    uint32_t places[MOST_CHUNKS];
    unsigned a_count;
    if (!is_in_warpgroup(w, op, mask) || !access_announce(w, op, op->arg[1], mask) ||
        (!has_a && !access_announce(w, op, op->arg[2], mask)))
        return;
    uint32_t adds = emu_predicate(w, op->arg[0]);
    if (adds != 0 && adds != EMU_ALL) {
        emu_fault(w, op, adds, CUDA_ERROR_LAUNCH_FAILED,
                  "and other lanes of its warp give different values of scale-d");
        return;
    }
    if (!are_alike(w, op, op->arg[1], "matrix descriptors of B") ||
        (!has_a && !are_alike(w, op, op->arg[2], "matrix descriptors of A")))
        return;
    emu_product p = {.op = op, .b = *LANES_OF(const uint64_t, 1), .adds = adds != 0};
    if (!has_a) {
        p.a = *LANES_OF(const uint64_t, 2);
        if (!is_descriptor_right(w, op, 'A', p.a, f.flags & EMU_WGMMA_A_MN_MAJOR, 64))
            return;
    }
    if (!is_descriptor_right(w, op, 'B', p.b, f.flags & EMU_WGMMA_B_MN_MAJOR, f.n))
        return;
    unsigned count = chunks_of(w, &p, &a_count, places);
    if (!access_chunks(w, op, places, a_count) || !access_chunks(w, op, places + a_count, count - a_count))
        return;
    if (EMU_IS_TOLD(w->audience, request)) {
        unsigned quarter = (count - a_count) / EMU_WARPGROUP_WARPS;
        request_chunks(w, op, places, a_count);
        request_chunks(w, op, places + a_count + w->id % EMU_WARPGROUP_WARPS * quarter, quarter);
    }
    multiply(w, &p);
    emu_product_issue(w, &p);
    EMU_TELL(w->audience, warpgroup, w, op, &p);
}

#define BYTE_SHAPES(k)                                                                                       \
    "m64n8k" k "|m64n16k" k "|m64n24k" k "|m64n32k" k "|m64n48k" k "|m64n64k" k "|m64n80k" k "|m64n96k" k    \
    "|m64n112k" k "|m64n128k" k "|m64n144k" k "|m64n160k" k "|m64n176k" k "|m64n192k" k "|m64n208k" k        \
    "|m64n224k" k "|m64n240k" k "|m64n256k" k
#define SHAPES(k)                                                                                            \
    BYTE_SHAPES(k)                                                                                           \
    "|m64n40k" k "|m64n56k" k "|m64n72k" k "|m64n88k" k "|m64n104k" k "|m64n120k" k "|m64n136k" k            \
    "|m64n152k" k "|m64n168k" k "|m64n184k" k "|m64n200k" k "|m64n216k" k "|m64n232k" k "|m64n248k" k
#define ALIGNED "sync aligned"
#define PRODUCT(modifiers, version)                                                                          \
    {                                                                                                        \
        "wgmma", "m:-|-|-|mma_async " ALIGNED " " modifiers, "", version, 90,                                \
            .only = "90a", .run = mma_async, .form = EMU_FORM_WGMMA                                          \
    }
#define F8 "e4m3|e5m2"

static const char *refuse_negative(const emu_instruction *i, const emu_mods *mods)
{
    (void)mods;
    return i->operand_count && (int64_t)i->operands[0].value < 0 ? "the number of groups must not be negative"
                                                                 : NULL;
}

static const emu_row rows[] = {
    {"wgmma", "m:fence " ALIGNED, "", 80, 90, "90a", .run = fence},
    {"wgmma", "m:-|commit_group " ALIGNED, "", 80, 90, "90a", .run = commit},
    {"wgmma", "m:-|-|wait_group " ALIGNED, "#", 80, 90, "90a", .run = wait_group, .refuse = refuse_negative},
    PRODUCT(SHAPES("16") " f16|f32 f16 f16", 80),
    PRODUCT(SHAPES("16") " f32 bf16 bf16", 80),
    PRODUCT(SHAPES("8") " f32 tf32 tf32", 80),
    PRODUCT(SHAPES("32") " f16|f32 " F8 " " F8, 80),
    PRODUCT(BYTE_SHAPES("32") " satfinite? s32 s8 s8", 80),
    PRODUCT(BYTE_SHAPES("32") " satfinite? s32 u8 u8", 80),
    PRODUCT(BYTE_SHAPES("32") " satfinite? s32 s8 u8", 84),
    PRODUCT(BYTE_SHAPES("32") " satfinite? s32 u8 s8", 84),
};

EXPORT_ROWS(emu_rows_wgmma);
