/* Layouts of shared memory: lanes that load or store together access different banks. And fragments: the registers of A.
 *
 * A warp's access of 4 bytes per lane is one wavefront if no two lanes need different words of one of the 32 banks. With 8 bytes
 * per lane each half warp is one wavefront, with 16 bytes each quarter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../generator/device/format.h"
#include "../../generator/device/fp4_rows.h"
#include "../../generator/device/fragment.h"
#include "../../generator/device/sums.h"
#include "../../generator/device/x_ring.h"
#include "../../generator/kernels/attention_copy.h"
#include "../../generator/kernels/linear.h"

enum { LANES = 32, BANKS = 32, WORD = 4 };

typedef uint32_t addresses[LANES];

/* Returns the most wavefronts of any part of the warp. */
static uint32_t wavefronts(const addresses at, uint32_t bytes)
{
    const uint32_t lanes = LANES * WORD / bytes, words = bytes / WORD;
    uint32_t most = 0;
    for (uint32_t first = 0; first < LANES; first += lanes) {
        uint32_t word_of[BANKS][LANES], count[BANKS] = {0};
        for (uint32_t i = 0; i < lanes * words; i++) {
            const uint32_t word = at[first + i / words] / WORD + i % words, bank = word % BANKS;
            bool is_known = false;
            for (uint32_t j = 0; j < count[bank]; j++)
                is_known |= word_of[bank][j] == word;
            if (!is_known)
                word_of[bank][count[bank]++] = word;
            most = count[bank] > most ? count[bank] : most;
        }
    }
    return most;
}

static void counts_wavefronts(void **state)
{
    (void)state;
    addresses at;
    static const struct {
        uint32_t step, bytes, wavefronts;
    } rows[] = {{4, 4, 1}, {0, 4, 1},    {8, 4, 2},   {128, 4, 32},
                {8, 8, 1}, {128, 8, 16}, {16, 16, 1}, {128, 16, 8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (uint32_t lane = 0; lane < LANES; lane++)
            at[lane] = rows[i].step * lane;
        assert_int_equal(wavefronts(at, rows[i].bytes), rows[i].wavefronts);
    }
}

/* ---- activations -------------------------------------------------------------------------------------------------- */

static uint32_t byte_at(const layout *l, uint32_t row, uint32_t byte)
{
    return layout_byte(l, row, byte / l->unit_bytes) + byte % l->unit_bytes;
}

/* Lane (g, t) loads four of the 16 elements of a run; in wide layouts eight elements of two runs, in woven layouts eight of the
 * whole step. */
static void loads_x(void **state)
{
    (void)state;
    enum { ELEMENT = 2, RUN_BYTES = 16 * ELEMENT };
    const layout plain = x_ring_layout(false), woven = x_ring_layout(true);
    for (uint32_t run = 0; run < X_RING_RUNS; run++) {
        addresses narrow, wide, whole;
        for (uint32_t lane = 0; lane < LANES; lane++) {
            const uint32_t g = lane / 4, t = lane % 4;
            narrow[lane] = byte_at(&plain, g, run * RUN_BYTES + 4 * ELEMENT * t);
            wide[lane] = byte_at(&plain, g, run / 2 * 2 * RUN_BYTES + 8 * ELEMENT * t);
            whole[lane] = byte_at(&woven, g, 16 * ELEMENT * t + run / 2 * 8 * ELEMENT);
        }
        assert_int_equal(wavefronts(narrow, 8), 1);
        assert_int_equal(wavefronts(wide, 16), 1);
        assert_int_equal(wavefronts(whole, 16), 1);
    }
}

/* Lane (g, t) loads 4 codes of a unit, or 8 of two units. */
static void loads_codes(void **state)
{
    (void)state;
    const layout l = layout_of_codes();
    for (uint32_t unit = 0; unit < l.row_bytes / UNIT_BYTES; unit++) {
        addresses four, eight;
        for (uint32_t lane = 0; lane < LANES; lane++) {
            four[lane] = byte_at(&l, lane / 4, unit * UNIT_BYTES + lane % 4 * 4);
            eight[lane] = byte_at(&l, lane / 4, unit / 2 * 2 * UNIT_BYTES + lane % 4 * 8);
        }
        assert_int_equal(wavefronts(four, 4), 1);
        assert_int_equal(wavefronts(eight, 8), 1);
    }
}

/* Eight lanes copy a row. */
static void copies_x(void **state)
{
    (void)state;
    const layout layouts[] = {x_ring_layout(false), x_ring_layout(true), layout_of_codes()};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        const layout l = layouts[i];
        addresses at;
        for (uint32_t lane = 0; lane < LANES; lane++)
            at[lane] = layout_byte(&l, lane / 8, lane % 8);
        assert_int_equal(wavefronts(at, UNIT_BYTES), 1);
        for (uint32_t lane = 0; lane < LANES; lane += 2) /* the halves of a sector: README.md */
            assert_int_equal(at[lane] / SECTOR_BYTES, at[lane + 1] / SECTOR_BYTES);
    }
}

/* ---- weights ------------------------------------------------------------------------------------------------------ */

enum { WARP_ROWS = 32, STAGES = 7 };

/* Stages of W in strategies of linear. Lane (g, t) loads unit t of a group of row g or, paired, units 2t and 2t + 1. */
static const struct {
    uint32_t elements;
    bool pairs_bytes; /* units are paired although they are not aligned to 8 bytes */
} stages[STAGES] = {
    {512, false}, {256, false},              /* mma with up to 16 rows of x; with more */
    {128, true},  {256, true},               /* tiles, also with x s8 */
    {512, true},  {1024, true}, {2048, true} /* mma with x s8: 2, 4, 8 k_warps */
};

static bool is_aligned(const weight_format *format)
{
    return format_alignment(format) % 8 == 0;
}

static row_ring_shape shape_of(const weight_format *format, size_t stage)
{
    const bool pairs = format->units == 8 && (stages[stage].pairs_bytes || is_aligned(format));
    return linear_ring_stage(format, stages[stage].elements, pairs);
}

/* The row's byte in shared memory, if row 0 begins at byte `first` of a sector, and each next row `step` bytes further. */
static uint32_t row_at(const row_ring_shape *s, uint32_t row, uint32_t first, uint32_t step)
{
    return layout_rows(&s->rows, row) + (first + step * row) % s->start;
}

/* Lane (g, t) loads its codes of row g, from `byte` on; bytes_load rounds addresses. */
static uint32_t load_codes(const weight_format *format, size_t stage, uint32_t first, uint32_t step,
                           uint32_t byte)
{
    const row_ring_shape s = shape_of(format, stage);
    const bool is_pair = format->units == 8 && (stages[stage].pairs_bytes || s.lane_bytes == 8);
    const uint32_t lane_bytes = is_pair ? 8 : 4, bytes = is_pair && is_aligned(format) ? 8 : 4;
    addresses at;
    for (uint32_t lane = 0; lane < LANES; lane++)
        at[lane] = (row_at(&s, lane / 4, first, step) + byte + lane_bytes * (lane % 4)) / bytes * bytes;
    return wavefronts(at, bytes);
}

/* Lane (g, t) loads scales in the block of row g + 8t. */
static uint32_t load_numbers(const weight_format *format, size_t stage, uint32_t first, uint32_t step,
                             uint32_t byte)
{
    const row_ring_shape s = shape_of(format, stage);
    const uint32_t alignment = format_alignment(format),
                   bytes = format->numbers == NUMBERS_PRODUCT && alignment > WORD ? alignment : WORD;
    addresses at;
    for (uint32_t lane = 0; lane < LANES; lane++)
        at[lane] = (row_at(&s, lane / 4 + 8 * (lane % 4), first, step) + byte) / bytes * bytes;
    return wavefronts(at, bytes);
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The most wavefronts of an access, if all rows begin at the same byte of a sector, or if they begin at any. */
static uint32_t most_ways(uint32_t (*load)(const weight_format *, size_t, uint32_t, uint32_t, uint32_t),
                          const weight_format *format, size_t stage, bool begins_anywhere)
{
    const uint32_t alignment = format_alignment(format);
    uint32_t most = 0;
    for (uint32_t first = 0; first < SECTOR_BYTES; first += alignment)
        for (uint32_t step = 0; step < (begins_anywhere ? SECTOR_BYTES : 1); step += alignment)
            for (uint32_t byte = 0; byte < WORD; byte += alignment)
                most = larger(most, load(format, stage, first, step, byte));
    return most;
}

/* Four threads copy a row. With an odd number of sectors in a row, the sectors of all rows stay whole; otherwise only those of
 * every second row. */
static void copies_stage(const row_ring_shape *s)
{
    const uint32_t bit = row_ring_row_bit(s);
    addresses at;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const uint32_t number = lane / 4, differs = (number ^ number >> bit) & 1;
        at[lane] = layout_rows(&s->rows, number ^ differs * (1 | 1u << bit)) + lane % 4 * UNIT_BYTES;
    }
    assert_int_equal(wavefronts(at, UNIT_BYTES), 1);
    uint32_t whole = 0;
    for (uint32_t row = 0; row < WARP_ROWS; row++)
        whole += layout_rows(&s->rows, row) % SECTOR_BYTES == 0;
    assert_int_equal(whole, s->lane_bytes == 8 ? WARP_ROWS : WARP_ROWS / 2);
}

/* Wavefronts of loads of codes and of scales, as multiples of the fewest possible: for each stage if all rows begin at the same
 * byte of a sector, and the most of all stages if they begin at any. */
typedef struct ways {
    const char *format;
    uint32_t codes[STAGES], numbers[STAGES], any_codes, any_numbers;
} ways;

/* clang-format off */
static const ways table[] = {
    /*           mma   tiles  mma, x s8 */
    {"q4_0",   {1, 1,  1, 1,  1, 1, 1}, {4, 4,  4, 4,  4, 4, 4}, 3, 4},
    {"q4_1",   {1, 1,  1, 1,  1, 1, 1}, {4, 4,  4, 4,  4, 4, 4}, 3, 4},
    {"q5_0",   {1, 1,  1, 1,  1, 1, 1}, {4, 4,  4, 4,  4, 4, 4}, 3, 4},
    {"q5_1",   {1, 1,  1, 1,  1, 1, 1}, {4, 4,  4, 4,  4, 4, 4}, 2, 4},
    {"q8_0",   {1, 1,  2, 2,  2, 2, 2}, {4, 4,  4, 4,  8, 8, 8}, 4, 8},
    {"q2_k",   {1, 1,  0, 1,  1, 1, 1}, {4, 4,  0, 4,  4, 4, 4}, 3, 4},
    {"q3_k",   {1, 1,  0, 1,  1, 1, 1}, {4, 4,  0, 4,  4, 4, 4}, 3, 4},
    {"q4_k",   {1, 1,  0, 1,  1, 1, 1}, {2, 2,  0, 2,  2, 2, 2}, 2, 2},
    {"q5_k",   {1, 1,  0, 2,  1, 1, 1}, {2, 1,  0, 1,  2, 2, 2}, 2, 2},
    {"q6_k",   {1, 1,  0, 1,  1, 1, 1}, {4, 4,  0, 4,  4, 4, 4}, 3, 4},
    {"iq4_nl", {1, 1,  1, 1,  1, 1, 1}, {4, 4,  4, 4,  4, 4, 4}, 3, 4},
    {"iq4_xs", {1, 1,  0, 1,  1, 1, 1}, {2, 2,  0, 2,  2, 2, 2}, 2, 4},
    {"mxfp4",  {1, 1,  1, 1,  1, 1, 1}, {4, 4,  4, 4,  4, 4, 4}, 3, 4},
    {"tq2_0",  {1, 1,  0, 1,  1, 1, 1}, {4, 4,  0, 4,  4, 4, 4}, 3, 4},
};
/* clang-format on */

static void loads_weights(void **state)
{
    (void)state;
    const weight_format *format;
    for (uint32_t i = 0; (format = format_at(i)) != NULL; i++) {
        assert_in_range(i, 0, sizeof table / sizeof *table - 1);
        assert_string_equal(format->name, table[i].format);
        uint32_t any_codes = 0, any_numbers = 0;
        for (size_t j = 0; j < STAGES; j++) {
            if (stages[j].elements < format->elements)
                continue;
            const row_ring_shape s = shape_of(format, j);
            copies_stage(&s);
            assert_int_equal(most_ways(load_codes, format, j, false), table[i].codes[j]);
            assert_int_equal(most_ways(load_numbers, format, j, false), table[i].numbers[j]);
            any_codes = larger(any_codes, most_ways(load_codes, format, j, true));
            any_numbers = larger(any_numbers, most_ways(load_numbers, format, j, true));
        }
        assert_int_equal(any_codes, table[i].any_codes);
        assert_int_equal(any_numbers, table[i].any_numbers);
    }
}

/* int4 and nf4: rows of codes begin at multiples of 16, and numbers are in arrays. Lane (g, t) loads those of row g + 8t. */
static void loads_arrays(void **state)
{
    (void)state;
    for (uint32_t group = 32; group <= 256; group *= 2)
        for (int has_zeros = 0; has_zeros < 2; has_zeros++)
            for (size_t j = 0; j < STAGES; j++) {
                const weight_format *format = format_int4(has_zeros, false, group);
                if (stages[j].elements < group)
                    continue;
                const row_ring_shape s = shape_of(format, j);
                const layout l = linear_numbers_layout(format, stages[j].elements);
                addresses at;
                for (uint32_t lane = 0; lane < LANES; lane++)
                    at[lane] = layout_rows(&l, lane / 4 + 8 * (lane % 4));
                assert_int_equal(wavefronts(at, l.unit_bytes), 1);
                copies_stage(&s);
                assert_int_equal(s.start, UNIT_BYTES);
                assert_int_equal(most_ways(load_codes, format, j, true), 1);
            }
}

/* x s8: four threads copy the scales of a row's blocks in tiles, and lane (g, t) loads those of rows 2t and 2t + 1 with or without
 * sums. */
static void copies_and_loads_scales_of_x(void **state)
{
    (void)state;
    for (uint32_t tile_m = 64; tile_m <= 128; tile_m *= 2)
        for (int has_sums = 0; has_sums < 2; has_sums++) {
            const layout l = linear_q8_blocks(tile_m, true, has_sums);
            const uint32_t bytes = l.unit_bytes / 8;
            addresses copies, loads;
            for (uint32_t lane = 0; lane < LANES; lane++) {
                copies[lane] = layout_byte(&l, lane % 4, lane / 32) + lane / 4 % 8 * bytes;
                loads[lane] = layout_byte(&l, 1, 2) + lane % 4 * 2 * bytes;
            }
            assert_int_equal(wavefronts(copies, WORD), has_sums ? 2 : 1);
            assert_int_equal(wavefronts(loads, 2 * bytes), 1);
        }
}

/* Lane (g, t) loads 8 bytes of its row's half stage; ldmatrix a unit of eight rows; four lanes copy a row; lane (g, t) loads a word
 * of the scales of row g. */
static void loads_fp4(void **state)
{
    (void)state;
    const layout words = fp4_rows_layout(false), matrices = fp4_rows_layout(true);
    addresses codes, copies, scales;
    for (uint32_t unit = 0; unit < FP4_ROW_UNITS; unit++) {
        uint32_t seen = 0;
        for (uint32_t row = 0; row < 8; row++)
            seen |= 1u << layout_byte(&matrices, row, unit) / UNIT_BYTES % 8;
        assert_int_equal(seen, 0xff);
    }
    for (uint32_t step = 0; step < 2; step++) {
        for (uint32_t lane = 0; lane < LANES; lane++)
            codes[lane] = byte_at(&words, lane / 4, 32 * step + lane % 4 * 8);
        assert_int_equal(wavefronts(codes, 8), 1);
    }
    for (int i = 0; i < 2; i++) {
        for (uint32_t lane = 0; lane < LANES; lane++)
            copies[lane] = layout_byte(i ? &matrices : &words, lane / FP4_ROW_UNITS, lane % FP4_ROW_UNITS);
        assert_int_equal(wavefronts(copies, UNIT_BYTES), 1);
        for (uint32_t lane = 0; lane < LANES; lane += 2)
            assert_int_equal(copies[lane] / SECTOR_BYTES, copies[lane + 1] / SECTOR_BYTES);
    }
    for (uint32_t lane = 0; lane < LANES; lane++)
        scales[lane] = lane / 4 * FP4_SCALE_BYTES;
    assert_int_equal(wavefronts(scales, WORD), 1);
    for (uint32_t lane = 0; lane < LANES; lane++) /* each lane loads from its own row of 32 */
        scales[lane] = (lane / 4 + lane % 4 * 8) * FP4_SCALE_BYTES;
    assert_int_equal(wavefronts(scales, WORD), 1);
}

/* Lane (g, t) loads 8 bytes of a block of row g, or 16 bytes of its half stage; eight lanes copy a row. */
static void loads_mxfp8(void **state)
{
    (void)state;
    const layout bytes = layout_of_codes();
    addresses at;
    for (uint32_t block = 0; block < 4; block++) {
        for (uint32_t lane = 0; lane < LANES; lane++)
            at[lane] = byte_at(&bytes, lane / 4, 32 * block + lane % 4 * 8);
        assert_int_equal(wavefronts(at, 8), 1);
    }
    for (uint32_t step = 0; step < 2; step++) {
        for (uint32_t lane = 0; lane < LANES; lane++)
            at[lane] = byte_at(&bytes, lane / 4, 64 * step + lane % 4 * 16);
        assert_int_equal(wavefronts(at, UNIT_BYTES), 1);
    }
    for (uint32_t lane = 0; lane < LANES; lane++)
        at[lane] = layout_byte(&bytes, lane / 8, lane % 8);
    assert_int_equal(wavefronts(at, UNIT_BYTES), 1);
}

/* ---- sums --------------------------------------------------------------------------------------------------------- */

/* Lane (g, t) stores column g of row 2t. */
static void stores_sums(void **state)
{
    (void)state;
    for (uint32_t columns = 16; columns <= 256; columns *= 2) {
        const layout l = shared_sums_layout(columns);
        addresses at;
        for (uint32_t lane = 0; lane < LANES; lane++)
            at[lane] = layout_byte(&l, 2 * (lane % 4), lane / 4);
        assert_int_equal(wavefronts(at, WORD), 1);
    }
}

/* ---- attention ---------------------------------------------------------------------------------------------------- */

/* Eight lanes load the rows of a matrix of ldmatrix. */
static void loads_matrices(void **state)
{
    (void)state;
    static const uint32_t threads[] = {32, 64, 128, 256};
    for (uint32_t units = 1; units <= 64; units++) {
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
            layout l;
            attention_strips(&l, 0, 64, units, threads[i]);
            for (uint32_t unit = 0; unit < units; unit++) {
                addresses at;
                for (uint32_t lane = 0; lane < LANES; lane++)
                    at[lane] = layout_byte(&l, lane, unit);
                assert_int_equal(wavefronts(at, UNIT_BYTES), 1);
            }
        }
    }
}

/* tile.h: eight lanes load the rows of a matrix, four lanes load the same words of a row, and neighbouring lanes copy neighbouring
 * units. */
static void loads_and_copies_tiles(void **state)
{
    (void)state;
    for (uint32_t units = 2; units <= 8; units *= 2) {
        const layout l = layout_of_matrices(units);
        addresses rows, words, copies;
        for (uint32_t unit = 0; unit < units; unit++) {
            for (uint32_t lane = 0; lane < LANES; lane++) {
                rows[lane] = layout_byte(&l, lane, unit);
                words[lane] = layout_byte(&l, lane / 4, unit);
            }
            assert_int_equal(wavefronts(rows, UNIT_BYTES), 1);
            assert_int_equal(wavefronts(words, UNIT_BYTES), 1);
        }
        for (uint32_t lane = 0; lane < LANES; lane++)
            copies[lane] = layout_byte(&l, lane / units, lane % units);
        assert_int_equal(wavefronts(copies, UNIT_BYTES), 1);
    }
}

/* ---- fragments ---------------------------------------------------------------------------------------------------- */

static void finds_registers_of_a(void **state)
{
    (void)state;
    enum { K = 16, IN_REGISTER = 2 };
    const ptx_mma_shape shape = PTX_MMA_M16N8K16_F16_F32;
    for (int lane = 0; lane < LANES; lane++) {
        for (uint32_t i = 0; i < 4; i++) {
            const ptx_element e = ptx_mma_a(shape, lane, IN_REGISTER * (int)fragment_a(i % 2, i / 2));
            assert_int_equal(e.row, lane / 4 + 8 * (int)(i % 2));
            assert_int_equal(e.column, K / 2 * (int)(i / 2) + IN_REGISTER * (lane % 4));
        }
        for (int e = 0; e < 4; e++) { /* sums.h: C has rows g and g + 8, columns 2t and 2t + 1 */
            const ptx_element c = ptx_mma_c(shape, lane, e);
            assert_int_equal(c.row, lane / 4 + e / 2 * 8);
            assert_int_equal(c.column, 2 * (lane % 4) + e % 2);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_wavefronts),
                                       cmocka_unit_test(loads_x),
                                       cmocka_unit_test(loads_codes),
                                       cmocka_unit_test(copies_x),
                                       cmocka_unit_test(loads_weights),
                                       cmocka_unit_test(loads_arrays),
                                       cmocka_unit_test(copies_and_loads_scales_of_x),
                                       cmocka_unit_test(loads_fp4),
                                       cmocka_unit_test(loads_mxfp8),
                                       cmocka_unit_test(stores_sums),
                                       cmocka_unit_test(loads_matrices),
                                       cmocka_unit_test(loads_and_copies_tiles),
                                       cmocka_unit_test(finds_registers_of_a)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
