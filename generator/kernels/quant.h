/* Shared by the 4-bit quantisers: int4 (symmetric, asymmetric) and nf4, each as scale, pack, unpack and quantize.
 *
 * A kernel makes four independent choices, each with a small interface here: the layout of elements in memory (type), of
 * groups on lanes (geometry), the conversion to a code and back (coder), and the order in which two codes share a byte
 * (nibbles).
 *
 * ARITHMETIC. Elements are widened to f32; f64 stays f64. A code is the result of div.rn, add.rn, rounding to nearest even
 * and clamping, bit for bit. A NaN does not count in its group's extremes and gets code 0, as does a quotient that is a NaN
 * (infinity by an infinite scale). A group without a number has NaNs for minimum and maximum.
 */
#ifndef KERNELS_QUANT_H
#define KERNELS_QUANT_H

#include <kiln/author/family.h>

#include "device/nf4_nested.h"

enum {
    QUANT_WARPS = 8, /* per thread block */
    QUANT_MOST_STEPS = 8,
    QUANT_MOST_LANE_ELEMENTS = 8
};

typedef enum quant_coder { QUANT_INT4_SYM, QUANT_INT4_ASYM, QUANT_NF4 } quant_coder;

/* A variant during emission. */
typedef struct quant {
    ptx_fn *f;
    quant_coder coder;
    bool makes_scales, makes_codes; /* scale, pack; quantize makes both; unpack neither */
    ptx_type type;                  /* of the tensor */
    ptx_type wide;                  /* of arithmetic, scales and zeros */
    bool has_pairs;                 /* finds extremes of 16-bit elements two at a time */
    bool is_high_first;
    uint32_t group; /* 0: an argument gives it */

    /* Geometry. A warp takes a step with one access. A row is the smallest number of steps that holds whole groups: one, or
     * as many as a group fills. A tile has `rows` rows. */
    uint32_t lane_elements, step_elements, tile_elements, steps;
    uint32_t lanes; /* per group */
    uint32_t row_steps, rows;
    uint32_t large_group; /* smallest group that a thread block does not keep in shared memory */

    ptx_val tensor, packed, n, group_size; /* arguments, as far as the entry has them */
    uint32_t stored;   /* numbers of a group in memory: the scale, asymmetric also the zero */
    ptx_val number[2]; /* pointers to these */
    nf4_nested nested; /* replaces the scale's if is_nested */
    bool is_nested;

    /* The coder's tables in the lanes' registers, after quant_load_tables; poison if unused. */
    ptx_val threshold, base; /* nf4: this lane's bucket */
    ptx_val value;           /* unpack: lanes i and i + 16 have code i's value before zero and scale, F32 */

    /* This warp's tile, after quant_find_tile. */
    ptx_val lane;       /* U32 */
    ptx_val first;      /* its first element, U64 */
    ptx_val lane_first; /* this lane's first, U64 */
    ptx_val left;       /* elements from the tile's first to the end, at most tile_elements, U32 */
    bool is_cut;        /* this lane may lack elements */
    /* In a cut tile, else poison: this lane's first element from the whole tile's first, U32, and how many follow up to the end,
     * S32, not positive if it has none. */
    ptx_val offset, has;
} quant;

/* The numbers that code a group's elements; poison if not computed. */
typedef enum quant_number {
    QUANT_SCALE,
    QUANT_ZERO,        /* asymmetric only */
    QUANT_INVERSE,     /* 1 / scale, rounded correctly, in place of the scale: see quant_invert */
    QUANT_MINUS_SCALE, /* computed with the inverse */
    QUANT_RANGE,       /* numerator of the scale, until it is inverted */
    QUANT_NUMBERS
} quant_number;
typedef struct quant_numbers {
    ptx_val at[QUANT_NUMBERS];
} quant_numbers;

/* ---- quant_tile.c: types and geometry ----------------------------------------------------------------------------- */

/* Reads the parameters that decide the geometry; f may be null. The entry sets the others and the arguments. */
quant quant_init(ptx_fn *f, const kiln_variant *v, quant_coder coder);

/* Finds the warp's tile. The predicate that it returns holds if there is one. */
ptx_val quant_find_tile(quant *q);
/* Sets left and lane_first. The predicate holds if the tile is full. */
ptx_val quant_find_left(quant *q);

/* The part of a tile that begins `start` elements (U32) after its first and has `steps` steps: a cut tile of one row. */
quant quant_cut(const quant *tile, ptx_val start, uint32_t steps);
/* Whether a cut tile has this lane's element i of a step. A new predicate where it is used: eight that stay live take
 * registers for themselves. */
ptx_val quant_in_bounds(const quant *q, uint32_t step, uint32_t i);

/* This lane's first element of the tile; the bytes of its first codes. */
ptx_val quant_tile_at(quant *q);
ptx_val quant_packed_at(quant *q);

/* A lane's elements of a tile, [step][element]: widened, or as words of memory, [step][word]. */
typedef ptx_val quant_elements[QUANT_MOST_STEPS][QUANT_MOST_LANE_ELEMENTS];
void quant_load_words(quant *q, uint32_t count, ptx_val at, ptx_val x[]);
void quant_widen(quant *q, uint32_t count, ptx_val x[]);
/* One element if the predicate holds, else a NaN, which is neutral: it changes no extreme, and its code is 0. */
ptx_val quant_nan(const quant *q);
ptx_val quant_load_element(quant *q, ptx_val at, ptx_val in_bounds);
/* `count` neighbours, aligned to their size; only the first ones may be in bounds. */
void quant_load_elements(quant *q, uint32_t count, ptx_val at, const ptx_val in_bounds[], ptx_val x[]);

/* A lane's elements, and its codes, of a step of the tile that begins at `at` for this lane; elements of a cut tile. */
void quant_load_cut(quant *q, ptx_val at, uint32_t step, ptx_val x[]);
void quant_store_elements(quant *q, ptx_val at, uint32_t step, const ptx_val x[]);
ptx_val quant_load_codes(quant *q, ptx_val at, uint32_t step);
void quant_store_codes(quant *q, ptx_val at, uint32_t step, ptx_val codes);

/* Address of number i of group `first` + `index`, U64 and U32; and the numbers of that group, out of bounds scales of 1
 * (nested ones: 0). in_bounds null: always in bounds. */
ptx_val quant_number_at(quant *q, uint32_t i, ptx_val first, ptx_val index);
quant_numbers quant_load_numbers(quant *q, ptx_val first, ptx_val index, const ptx_val *in_bounds);

/* ---- quant_code.c: numbers and codes ------------------------------------------------------------------------------ */

/* The operation that combines extremes of a group. There is one extreme per number that the group stores: the absmax, or the
 * maximum and minimum. They are poison until an element, or a pair, is added. */
ptx_op quant_extreme(const quant *q, uint32_t i);
void quant_extremes_add(quant *q, ptx_val extremes[2], ptx_val x);
quant_numbers quant_numbers_of(quant *q, const ptx_val extremes[2]);

/* Whether codes may be computed with the inverse of these numbers: neither huge nor tiny nor NaNs. */
ptx_val quant_is_plain(quant *q, const quant_numbers *g);
/* Replaces the scale by the numbers that division by its inverse needs. If the entry makes scales, they are valid only for the
 * scale's own group, else for any elements. A whole tile's numbers must be plain. Those of a cut tile are returned unchanged,
 * unless the product with the inverse gives the right codes for any scale. */
quant_numbers quant_invert(quant *q, const quant_numbers *g);

/* Sets the tables that the entry needs. */
void quant_load_tables(quant *q);

/* The codes of a lane's `count` elements in the low 4*count bits of a U32; the bits above are undefined. stride 0: all
 * elements are of one group; 1: each has its own numbers. Divides by div.rn unless the numbers are inverted. Needs all lanes. */
ptx_val quant_codes(quant *q, const quant_numbers *g, uint32_t stride, const ptx_val x[], uint32_t count);

/* The i-th element of a word of codes. Needs all lanes. */
ptx_val quant_value(quant *q, const quant_numbers *g, ptx_val codes, uint32_t i);

/* ---- quant_any.c: where the group's size is an argument ------------------------------------------------------------ */

/* The kernels of scale and quantize; of pack and unpack. */
void quant_any_scale(quant *q);
void quant_any_tiles(quant *q);

#endif
