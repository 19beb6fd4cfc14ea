/* Weight formats: how a lane decodes quantised blocks, stored in shared memory as in a file. GGUF's blocks
 * contain their scales and minima; int4 and nf4 are kiln's own, as int4_quantize and nf4_quantize make them, with scales and
 * zeros in arrays. A quad of nf4 is four codes in 16 bits, which index values that are not integers.
 *
 * Codes come in UNITS: a 32-bit word of a block's low code bits, and the bits that belong to it elsewhere. A unit has 1, 2 or
 * 4 QUADS: a quad is the codes of four consecutive elements, one in each byte. A GROUP is the units that are decoded
 * together: by one lane on CUDA cores, by four lanes on tensor cores and in gguf_dequantize, each of which takes one or two. A
 * PART is the elements of a group under one scale.
 *
 *     element of quad q of unit u, from the group's first:  unit_step * u + quad_step * q
 *     element = scale of its part * (code - offset) + minimum of its part
 *
 * All strategies of linear, and gguf_dequantize, take blocks of 32, 64, 128 or 256 elements, in groups of one of these shapes:
 *
 *     units  quads  parts  unit_step  quad_step   elements     such as
 *     4      2      1      4          16          32           Q4_0
 *     4      2      1      8          4           32           int4
 *     8      1      1      4          0           32           Q8_0
 *     8      2      2      4          32          64           Q4_K
 *     4      4      4      4          32          64           Q6_K: groups 2i and 2i + 1 interleave, 16 elements of each in turn
 *
 * Runs of words (below) begin at multiples of 4 bytes of the block; if its size is no multiple of 4, also at bytes that equal
 * the first run's modulo 4. The steps of runs, d_byte and the bytes of eight groups are multiples of 4. The test
 * device.formats checks each format.
 *
 * Use: format_lane_init once per lane, while group and unit stay the same; format_find for each block, or once for a row of
 * blocks and then format_move; format_codes and format_numbers for each block. If scales are in arrays, pass
 * format_find_numbers' place to format_numbers.
 */
#ifndef DEVICE_FORMAT_H
#define DEVICE_FORMAT_H

#include "bytes.h"

enum { FORMAT_MOST_UNITS = 8, FORMAT_MOST_QUADS = 4, FORMAT_MOST_PARTS = 4, FORMAT_RUNS = 4 };

/* Words of a block that a lane reads: at byte + group * g + half * (g / 2) + odd * (g % 2), with g the lane's group. */
typedef struct format_run {
    enum { RUN_NONE, RUN_UNITS /* a word for each unit */, RUN_GROUP /* one word */, RUN_SCALES } kind;
    uint8_t byte, group, half, odd;
} format_run;

typedef struct format_decoder format_decoder;

typedef struct weight_format {
    const char *name;         /* as in the package gguf, in lower case */
    uint16_t elements, bytes; /* of a quantised block */
    enum {
        NUMBERS_F16,     /* scales and minima are in the block */
        NUMBERS_E8M0,    /* scales are powers of two, in the block */
        NUMBERS_PRODUCT, /* scales and minima are an F16 of the block times small integers */
        NUMBERS_F32      /* scales and zeros are in arrays beside the codes */
    } numbers;
    uint8_t groups;                    /* per quantised block */
    uint8_t units, parts;              /* per group */
    uint8_t quads, quad_step;          /* quads per unit; elements from one quad to the next */
    uint8_t unit_step;                 /* elements from one unit to the next */
    uint8_t offset;                    /* of codes */
    uint8_t scaled_shift, plain_shift; /* see FORMAT_SCALED_SHIFT and FORMAT_PLAIN_SHIFT; 0: no gain */
    bool is_signed;                    /* quads are S32, of signed bytes; else U32, of unsigned ones */
    bool has_minimum;                  /* else minima are 0, and not computed */
    bool is_high_first;      /* int4, nf4: the first of two neighbours' codes is in the high nibble */
    uint16_t d_byte;         /* of a block's d, F16, and after it the minima's factor */
    uint16_t scale_elements; /* per scale in an array; 0: scales are in the blocks */
    const format_decoder *decoder;
    format_run runs[FORMAT_RUNS];
} weight_format;

/* GGUF's formats: name, number of the parameter's word, which never changes, elements of a block, bytes of 256 elements. FIRST
 * and NEXT differ if text stands between the rows. */
/* clang-format off */
#define GGUF_FORMATS(FIRST, NEXT) \
    FIRST(q4_0, 1, 32, 144) \
    NEXT(q4_1, 2, 32, 160) \
    NEXT(q5_0, 3, 32, 176) \
    NEXT(q5_1, 4, 32, 192) \
    NEXT(q8_0, 5, 32, 272) \
    NEXT(q2_k, 6, 256, 84) \
    NEXT(q3_k, 7, 256, 110) \
    NEXT(q4_k, 8, 256, 144) \
    NEXT(q5_k, 9, 256, 176) \
    NEXT(q6_k, 10, 256, 210) \
    NEXT(iq4_nl, 11, 32, 144) \
    NEXT(iq4_xs, 12, 256, 136) \
    NEXT(mxfp4, 13, 32, 136) \
    NEXT(tq2_0, 14, 256, 66)
/* clang-format on */

/* The names as a parameter's words, and their numbers. */
#define FORMAT_WORD(name, ...)                #name
#define FORMAT_NEXT_WORD(name, ...)           " " #name
#define FORMAT_WORDS                          GGUF_FORMATS(FORMAT_WORD, FORMAT_NEXT_WORD)
#define FORMAT_NUMBER(name, number, ...)      #number
#define FORMAT_NEXT_NUMBER(name, number, ...) " " #number
#define FORMAT_NUMBERS                        GGUF_FORMATS(FORMAT_NUMBER, FORMAT_NEXT_NUMBER)

/* The format of a word. */
const weight_format *format_named(const char *name);
const weight_format *format_at(uint32_t i); /* null after the last */

/* int4: `group` elements, 32, 64, 128 or 256, share a scale, and a zero if there are zeros: scale * (code - zero), else scale
 * * (code - 8). */
const weight_format *format_int4(bool has_zeros, bool is_high_first, uint32_t group);

/* nf4: a group shares a scale; an element is scale times the code's value. */
const weight_format *format_nf4(bool is_high_first, uint32_t group);

/* ---- where elements are ------------------------------------------------------------------------------------------- */

static inline uint32_t format_group_elements(const weight_format *w)
{
    return w->elements / w->groups;
}

/* Quad q's first element, from the group's first. */
static inline uint32_t format_quad_element(const weight_format *w, uint32_t unit, uint32_t quad)
{
    return w->unit_step * unit + w->quad_step * quad;
}

static inline uint32_t format_quad_part(const weight_format *w, uint32_t quad)
{
    return w->parts == 1 ? 0 : quad;
}

/* Part p has part_elements consecutive elements from quad_step * p on. */
static inline uint32_t format_part_elements(const weight_format *w)
{
    return format_group_elements(w) / w->parts;
}

/* Alignment of any block if the tensor is 16-byte aligned: 1, 2, 4, 8 or 16. */
static inline uint32_t format_alignment(const weight_format *w)
{
    uint32_t lowest = w->bytes & (~(uint32_t)w->bytes + 1);
    return lowest < 16 ? lowest : 16;
}

/* The first element of a group in its block, U32; for a row's group. */
ptx_val format_group_element(ptx_fn *f, const weight_format *w, ptx_val group);
uint32_t format_row_element(const weight_format *w, uint32_t group);

/* ---- decoding ----------------------------------------------------------------------------------------------------- */

/* How exact scales and minima are if d is 0, infinite or a NaN (all others are exact), and how codes are shifted. */
typedef enum format_rule {
    FORMAT_EXACT, /* as in the package gguf */
    FORMAT_FINITE, /* a zero loses its sign, and an infinity becomes a NaN, as in any sum; saves an instruction for each */
    FORMAT_SCALED_SHIFT, /* FORMAT_FINITE; codes of quad q are shifted left by scaled_shift * q bits, scales divided by as much */
    FORMAT_PLAIN_SHIFT /* FORMAT_FINITE; codes of quad q are shifted left by plain_shift * q bits: for format_half_weights */
} format_rule;

/* Values that depend only on the lane's group and first unit. */
typedef struct format_lane {
    const weight_format *format;
    format_rule rule;
    ptx_val group, unit;
    ptx_val offset[FORMAT_RUNS];     /* bytes from each run's first; poison: none */
    uint32_t alignment[FORMAT_RUNS]; /* of these */
    /* For unpacking codes' high bits and scales: see the format's decoder. */
    ptx_val select, shift, rotation, first, last, value[16];
} format_lane;

/* `group` is a U32, register or immediate. So is `unit`, the lane's first unit if the lane takes only some units of a group; poison
 * is 0. It is a multiple of `units`, the number of units that are loaded at once, 1 or 2. */
format_lane format_lane_init(ptx_fn *f, const weight_format *w, ptx_val group, ptx_val unit, uint32_t units,
                             format_rule rule);

/* Loads the value table, if the format's codes index values; a no-op for others. `type` is F32 for format_floats and
 * format_weights, F16 or BF16 for format_pairs. */
void format_lane_values(ptx_fn *f, format_lane *lane, ptx_type type);

/* A block in memory, as a lane sees it. */
typedef struct format_place {
    byte_order order;
    ptx_val block;            /* rounded down to a multiple of 4 */
    ptx_val run[FORMAT_RUNS]; /* pointers to this lane's words, minus the runs' `byte` */
} format_place;

/* Finds the block at `block`, a pointer to its first byte in shared memory. The tensor is 16-byte aligned, or as far
 * from a multiple of 16 as here. If a block's size is not a multiple of 4, up to three bytes before and after it are read. */
format_place format_find(ptx_fn *f, const format_lane *lane, ptx_val block);

/* Finds the block of a row's group; `row` is that row's first block, in shared memory: only immediates change from block to
 * block. */
format_place format_find_group(ptx_fn *f, const format_lane *lane, ptx_val row, uint32_t group);

/* Moves to the block `bytes` further, a multiple of 4: an S32 or U32 costs an addition for each of up to four pointers; an
 * immediate costs nothing. */
format_place format_move(ptx_fn *f, const format_lane *lane, const format_place *place, ptx_val bytes);

/* The codes of `count` units from `first` on, counted from the lane's own unit if it has one. */
void format_codes(ptx_fn *f, const format_lane *lane, const format_place *place, uint32_t first,
                  uint32_t count, ptx_val quads[][FORMAT_MOST_QUADS]);

/* Arrays of F32 numbers, one for each scale_elements elements of a row: scales, and zeros if the format has minima. */
static inline uint32_t format_arrays(const weight_format *w)
{
    return w->scale_elements == 0 ? 0 : w->has_minimum ? 2 : 1;
}

/* Bytes in shared memory of the numbers for scale_elements elements: a scale, followed by a zero. */
static inline uint32_t format_numbers_bytes(const weight_format *w)
{
    return 4 * format_arrays(w);
}

/* Whether a row's group has its own numbers, not those of the group before it. */
static inline bool format_begins_scale(const weight_format *w, uint32_t group)
{
    return w->scale_elements == 0 || group * format_group_elements(w) % w->scale_elements == 0;
}

/* Finds the numbers of a row's group: in its block, or in an array whose first number of the row is at `row`. */
format_place format_find_numbers(ptx_fn *f, const format_lane *lane, ptx_val row, uint32_t group);

/* Scales and minima of the group's parts, F32. */
void format_numbers(ptx_fn *f, const format_lane *lane, const format_place *place,
                    ptx_val scale[FORMAT_MOST_PARTS], ptx_val minimum[FORMAT_MOST_PARTS]);

/* Decodes code - offset of the four elements of a quad, or the code's value, F32, exactly. */
void format_floats(ptx_fn *f, const format_lane *lane, ptx_val quad, ptx_val x[4]);

/* Decodes code * 2^-149 of a quad's four unsigned codes, F32, exactly: one instruction each. */
void format_denormals(ptx_fn *f, ptx_val quad, ptx_val x[4]);

/* Decodes two pairs of F16 or BF16, the first element lowest, exactly, or values rounded to the type: B32. BF16 needs sm_80. */
void format_pairs(ptx_fn *f, const format_lane *lane, ptx_type type, ptx_val quad, ptx_val pairs[2]);

/* scale * (code - offset) + minimum of the quad's elements, in F32, rounded to pairs of F16 or BF16, as above. */
void format_weights(ptx_fn *f, const format_lane *lane, ptx_type type, ptx_val quad, ptx_val scale,
                    ptx_val minimum, ptx_val pairs[2]);

/* format_weights in F16, by pair arithmetic: scale and minimum are F16X2 of two equal halves, the codes shifted left by
 * `shift`. Only the result is rounded. */
void format_half_weights(ptx_fn *f, const weight_format *w, ptx_val quad, uint32_t shift, ptx_val scale,
                         ptx_val minimum, ptx_val pairs[2]);

/* Whether codes index values that are not integers: nf4. IQ4_NL's, IQ4_XS's and MXFP4's values are integers: signed bytes, or
 * bytes with an offset. */
bool format_has_values(const weight_format *w);

/* Whether scales and minima are F16 in the file. */
static inline bool format_has_half_numbers(const weight_format *w)
{
    return w->numbers == NUMBERS_F16;
}

#endif
