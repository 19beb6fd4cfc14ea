/* Weight formats: how a lane decodes quantised blocks that lie in shared (or global) memory as a file has them. GGUF's have
 * their scales and minima in the blocks; int4 and nf4 are kiln's own, as int4_quantize and nf4_quantize make them, and have
 * them in arrays. A quad of nf4 is four codes in 16 bits, which stand for values that are not integers.
 *
 * Codes come in UNITS: a 32-bit word of a block's low code bits, and the bits that belong to it elsewhere. A unit gives 1, 2
 * or 4 QUADS: a quad is the codes of four consecutive elements, one in each byte. A GROUP is the units that are decoded
 * together; a lane of a matrix product takes one group of a block, 32 or 64 elements. A PART is the elements of a group under
 * one scale.
 *
 *     element of quad q of unit u, from the group's first:  unit_step * u + quad_step * q
 *     element = scale of its part * (code - offset) + minimum of its part
 *
 * Use: format_lane_init once per lane, where group and unit stay the same; format_find for each block, or once for a row of
 * blocks and then format_move; format_codes and format_numbers for each block. Where scales are in arrays, format_numbers takes
 * the place of the group's: format_find_numbers.
 */
#ifndef DEVICE_FORMAT_H
#define DEVICE_FORMAT_H

#include "bytes.h"

enum { FORMAT_MOST_UNITS = 8, FORMAT_MOST_QUADS = 4, FORMAT_MOST_PARTS = 4, FORMAT_RUNS = 4 };

/* Words of a block that a lane reads: at byte + group * its group + half * (group / 2) + odd * (group % 2). */
typedef struct format_run {
    enum { RUN_NONE, RUN_UNITS /* a word for each unit */, RUN_GROUP /* one word */, RUN_SCALES } kind;
    uint8_t byte, group, half, odd;
} format_run;

typedef struct format_decoder format_decoder;

typedef struct weight_format {
    const char *name;         /* as the package gguf has it, in lower case */
    uint16_t elements, bytes; /* of a quantised block */
    uint8_t groups;           /* of a block */
    uint8_t units, parts;     /* of a group */
    uint8_t quads, quad_step; /* of a unit; elements from one to the next */
    uint8_t unit_step;        /* elements from one unit to the next */
    uint8_t offset;           /* of codes */
    uint8_t raise, lift;      /* see FORMAT_RAISED and FORMAT_LIFTED; 0: it saves nothing */
    bool is_signed;           /* quads are S32, of signed bytes; else U32, of unsigned ones */
    bool has_minimum;         /* else minima are 0, and not made */
    uint16_t scale_elements;  /* of a row under one scale in an array; 0: scales are in the blocks */
    const format_decoder *decoder;
    format_run runs[FORMAT_RUNS];
} weight_format;

/* The names, for a parameter of a family; and the format of such a word. */
#define FORMAT_WORDS "q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs mxfp4 tq2_0"
const weight_format *format_named(const char *name); /* null: there is none */
const weight_format *format_at(uint32_t i);          /* null behind the last */

/* int4: `group` elements, 32, 64, 128 or 256, share a scale, and a zero where it has them: scale * (code - zero), else
 * scale * (code - 8). */
const weight_format *format_int4(bool has_zeros, bool is_high_first, uint32_t group);

/* nf4: a group shares a scale; scale * value of the code. */
const weight_format *format_nf4(bool is_high_first, uint32_t group);

/* ---- where elements are ------------------------------------------------------------------------------------------- */

static inline uint32_t format_group_elements(const weight_format *w)
{
    return w->elements / w->groups;
}

/* From the group's first element. */
static inline uint32_t format_quad_element(const weight_format *w, uint32_t unit, uint32_t quad)
{
    return w->unit_step * unit + w->quad_step * quad;
}

static inline uint32_t format_quad_part(const weight_format *w, uint32_t quad)
{
    return w->parts == 1 ? 0 : quad;
}

/* The elements of part p are part_elements consecutive ones from quad_step * p on. */
static inline uint32_t format_part_elements(const weight_format *w)
{
    return format_group_elements(w) / w->parts;
}

/* What the address of any block is a multiple of where the tensor's is one of 16: 1, 2, 4, 8 or 16. */
static inline uint32_t format_alignment(const weight_format *w)
{
    uint32_t lowest = w->bytes & (~(uint32_t)w->bytes + 1);
    return lowest < 16 ? lowest : 16;
}

/* The first element of a group in its block, U32; of a row's group. */
ptx_val format_group_element(ptx_fn *f, const weight_format *w, ptx_val group);
uint32_t format_row_element(const weight_format *w, uint32_t group);

/* ---- decoding ----------------------------------------------------------------------------------------------------- */

/* How exact the scales and minima are whose d is 0, infinite or a NaN (all others are exact), and where codes are. */
typedef enum format_rule {
    FORMAT_EXACT, /* as the package has them */
    FORMAT_FINITE, /* a zero's sign is lost, and an infinity is a NaN, as it is in a sum anyhow; an instruction less for each */
    FORMAT_RAISED, /* the same, and codes of quad q may come raise * q bits up in their bytes, with scales as much smaller */
    FORMAT_LIFTED /* as FORMAT_FINITE, and codes of quad q may come lift * q bits up */
} format_rule;

/* What depends on the lane's group and first unit alone. */
typedef struct format_lane {
    const weight_format *format;
    format_rule rule;
    ptx_val group, unit;
    ptx_val offset[FORMAT_RUNS];     /* bytes from each run's first; poison: none */
    uint32_t alignment[FORMAT_RUNS]; /* of these */
    /* How codes' high bits and scales are unpacked: as the format's file says. */
    ptx_val select, shift, turn, first, last, value[16];
} format_lane;

/* `group` is a U32, register or immediate. `unit` too, for a lane that takes some of a group's units, the first of them; poison
 * is 0. */
format_lane format_lane_init(ptx_fn *f, const weight_format *w, ptx_val group, ptx_val unit,
                             format_rule rule);

/* Says that the lane's first unit is an even one: two units are loaded at once. */
void format_lane_pair(format_lane *lane);

/* Loads the table of values for a format whose codes stand for values; others need none. `type` is F32 for format_floats and
 * format_weights, F16 or BF16 for format_pairs. */
void format_lane_values(ptx_fn *f, format_lane *lane, ptx_type type);

/* A block in memory, as a lane sees it. */
typedef struct format_place {
    byte_order order;
    ptx_val block;            /* rounded down to a multiple of 4 */
    ptx_val run[FORMAT_RUNS]; /* pointers to this lane's words, but for the runs' `byte` */
} format_place;

/* `block` is a pointer to a block's first byte, in shared or global memory; the tensor's address is a multiple of 16, or has
 * the same offset to one as here. Where blocks are no multiples of 4 bytes, up to three bytes before and behind are read. */
format_place format_find(ptx_fn *f, const format_lane *lane, ptx_val block);

/* The block of a row's group, that row's first block being at `row`, in shared memory: what changes from block to block is
 * immediates. */
format_place format_find_group(ptx_fn *f, const format_lane *lane, ptx_val row, uint32_t group);

/* The block that lies a number of bytes, a multiple of 4, further: an S32 or U32, which costs an addition for each of up to
 * four pointers; an immediate costs nothing. */
format_place format_move(ptx_fn *f, const format_lane *lane, const format_place *place, ptx_val bytes);

/* The codes of `count` units from `first` on, counted from the lane's own unit where it has one. */
void format_codes(ptx_fn *f, const format_lane *lane, const format_place *place, uint32_t first,
                  uint32_t count, ptx_val quads[][FORMAT_MOST_QUADS]);

/* Arrays of F32 numbers, one for each scale_elements elements of a row: scales, and zeros where the format has minima. */
static inline uint32_t format_arrays(const weight_format *w)
{
    return w->scale_elements == 0 ? 0 : w->has_minimum ? 2 : 1;
}

/* Bytes in shared memory of the numbers for scale_elements elements: a scale, and behind it a zero. */
static inline uint32_t format_numbers_bytes(const weight_format *w)
{
    return 4 * format_arrays(w);
}

/* Whether a row's group has other numbers than the one before it. */
static inline bool format_begins_scale(const weight_format *w, uint32_t group)
{
    return w->scale_elements == 0 || group * format_group_elements(w) % w->scale_elements == 0;
}

/* Where the numbers of a row's group are: in its block, or in an array whose first number of the row is at `row`. */
format_place format_find_numbers(ptx_fn *f, const format_lane *lane, ptx_val row, uint32_t group);

/* Scales and minima of the group's parts, F32. */
void format_numbers(ptx_fn *f, const format_lane *lane, const format_place *place,
                    ptx_val scale[FORMAT_MOST_PARTS], ptx_val minimum[FORMAT_MOST_PARTS]);

/* code - offset of the four elements of a quad, or the code's value, F32, exactly. */
void format_floats(ptx_fn *f, const format_lane *lane, ptx_val quad, ptx_val x[4]);

/* code * 2^-149 of the four elements of a quad of unsigned codes, F32, exactly: one instruction each. */
void format_denormals(ptx_fn *f, ptx_val quad, ptx_val x[4]);

/* The same as two pairs of F16 or BF16, the first element lowest, exactly, or values rounded to the type: B32. BF16 takes sm_80. */
void format_pairs(ptx_fn *f, const format_lane *lane, ptx_type type, ptx_val quad, ptx_val pairs[2]);

/* scale * (code - offset) + minimum of the quad's elements, in F32 and then rounded to pairs of F16 or BF16, as above. */
void format_weights(ptx_fn *f, const format_lane *lane, ptx_type type, ptx_val quad, ptx_val scale,
                    ptx_val minimum, ptx_val pairs[2]);

/* The same in F16, by arithmetic on pairs: scale and minimum are F16X2 of two equal halves, the codes `lift` bits up in their
 * bytes. The result alone is rounded. */
void format_half_weights(ptx_fn *f, const weight_format *w, ptx_val quad, uint32_t lift, ptx_val scale,
                         ptx_val minimum, ptx_val pairs[2]);

/* Whether codes stand for values that are not integers, as in nf4. */
bool format_has_values(const weight_format *w);

/* Whether scales and minima are numbers of F16 in the file. */
bool format_has_half_numbers(const weight_format *w);

#endif
