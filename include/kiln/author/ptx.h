/* The PTX builder, for kernel authors.
 *
 * An emit function calls these to write one kernel. Every call that emits appends one PTX instruction (or the few that
 * its comment names) and returns a typed virtual register. A C `for` unrolls at build time; PTX_FOR is a loop on the
 * device. Blocks are scopes: a value made inside one may not be used after it.
 *
 *     ptx_val n = ptx_param(f, PTX_U32, "n"), a = ptx_param(f, PTX_F32, "a");
 *     ptx_val x = ptx_param_ptr(f, PTX_F32, "x"), y = ptx_param_ptr(f, PTX_F32, "y");
 *     ptx_val i = ptx_global_thread_x(f);
 *     PTX_IF(f, ptx_lt(f, i, n)) {
 *         ptx_val xi = ptx_load(f, ptx_at(f, x, i));
 *         ptx_val at = ptx_at(f, y, i);
 *         ptx_val yi = ptx_load(f, at);
 *         ptx_store(f, at, ptx_fma(f, a, xi, yi));
 *     }
 *
 * ORDER OF EVALUATION. C leaves the order in which a call's arguments are evaluated open. With two emitting calls as
 * arguments of one call, two compilers make two different kernels. Nest at most one emitting call in another, your own
 * functions included; give the others a name first. (Making an immediate, ptx_at_const, ptx_as and ptx_cast_ptr emit
 * nothing and may nest.) The checker reports two in a call of a function of this header; it cannot see them in calls
 * of your own functions or in array initialisers.
 *
 * ERRORS. A mistake, such as a wrong type or a value used after its block, is recorded with the kernel's source line
 * and reported by the checker when the kernel is finished. The call then returns a poison value. Later calls accept
 * poison silently, so each mistake is reported once. A zeroed ptx_val is poison too, and using it is an error; so is
 * using an uninitialised one, unless it happens to hold a valid value. No function here fails in another way.
 *
 * Values are small structs; copy them freely. They live as long as the ptx_fn. Only one thread may use a ptx_fn.
 *
 * Matrix products are in kiln/author/ptx_matrix.h, those of warpgroups in kiln/author/ptx_wgmma.h; asynchronous copies,
 * atomics and fences in kiln/author/ptx_sync.h; bulk copies and tensor maps in kiln/author/ptx_bulk.h. This header includes
 * all four.
 */
#ifndef KILN_PTX_H
#define KILN_PTX_H
/* Columns are aligned by hand. */
/* clang-format off */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kiln/as_int.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One kernel under construction. */
typedef struct ptx_fn ptx_fn;

/* ---- types ------------------------------------------------------------------------------------------------------ */

/* B types are untyped bits: logic, packing and shuffles take them, arithmetic does not. 8-bit types are element types
 * of pointers; loads widen them to U32 or S32. B8 also names the register type of 4-bit float pairs. */
typedef enum KILN_AS_INT ptx_type {
    PTX_NONE, PTX_PRED,
    PTX_B8, PTX_U8, PTX_S8,
    PTX_B16, PTX_U16, PTX_S16, PTX_F16, PTX_BF16,
    PTX_B32, PTX_U32, PTX_S32, PTX_F32, PTX_F16X2, PTX_BF16X2,
    PTX_B64, PTX_U64, PTX_S64, PTX_F64,
    PTX_F32X2, /* two F32, one instruction from sm_100 on */
    PTX_PTR /* an address with a state space and an element type: 64 bits, in shared memory 32 */
} ptx_type;

typedef enum KILN_AS_INT ptx_space { PTX_GENERIC, PTX_GLOBAL, PTX_SHARED, PTX_CONST, PTX_LOCAL } ptx_space;

/* A register, an immediate or poison (a zeroed ptx_val). The members are private to the builder. */
typedef struct ptx_val {
    uint64_t bits;   /* value of an immediate; pointers: number of the register with the cache policy, 0 for none */
    uint32_t reg;    /* number of a register */
    int32_t offset;  /* pointers: bytes, folded into the address of a load or store */
    uint8_t kind;    /* poison, register, immediate */
    uint8_t type;    /* ptx_type */
    uint8_t element; /* pointers: ptx_type of an element */
    uint8_t space;   /* pointers: ptx_space */
} ptx_val;

/* The source location that the macros below add to each call. */
#define PTX_HERE __FILE__, __LINE__

/* ---- immediates: emit nothing ----------------------------------------------------------------------------------- */

/* Most calls also accept a plain C number for a value: ptx_add(f, x, 4). The number gets the type of the other
 * operands. A number that does not fit that type is an error; a fraction is rounded to a float. If no operand has a
 * type, as in a variable's initial value, use the functions below. */
ptx_val ptx_u16(uint16_t value);
ptx_val ptx_s16(int16_t value);
ptx_val ptx_u32(uint32_t value);
ptx_val ptx_s32(int32_t value);
ptx_val ptx_u64(uint64_t value);
ptx_val ptx_s64(int64_t value);
ptx_val ptx_f32(float value); /* printed exactly, as 0f and the bits in hex */
ptx_val ptx_f64(double value);
ptx_val ptx_bits(ptx_type type, uint64_t bits);    /* any type, by its bits */
ptx_val ptx_number(ptx_type type, double value);   /* any number type, rounded to nearest even; x2: both halves */
/* A number or bits that do not fit the type are an error where they are used. */
/* 16-bit floats and pairs of floats cannot be immediate operands: each use of one emits a mov before the instruction.
 * Hold it in a ptx_var outside a loop. */

/* ---- the kernel ------------------------------------------------------------------------------------------------- */

/* Declares a parameter, in the order of the calls. It is loaded at the top of the kernel, unless unused. */
#define ptx_param(f, type, name)        ptx_param_at_line(f, type, name, PTX_HERE)
/* Declares a pointer to global memory with elements of this type. */
#define ptx_param_ptr(f, element, name) ptx_param_ptr_at_line(f, element, name, PTX_HERE)
/* Writes a comment line into the PTX: printable ASCII, like all text in PTX. */
#define ptx_note(f, comment)            ptx_note_at(f, comment, PTX_HERE)

/* ---- control ---------------------------------------------------------------------------------------------------- */

/* Never leave a block with break, return or goto: its end would not be emitted, and the checker reports it. */

/* Runs the block in threads whose predicate holds; PTX_ELSE(f), right after it, in the others. */
#define PTX_IF(f, predicate)   PTX_BLOCK_(PTX_NAME_(ptx_if_), ptx_if_begin(f, predicate, PTX_HERE))
#define PTX_ELSE(f)            PTX_BLOCK_(PTX_NAME_(ptx_else_), ptx_else_begin(f, PTX_HERE))
/* Predicates each instruction inside, without a branch; no control flow and no PTX_WHEN inside. */
#define PTX_WHEN(f, predicate) PTX_BLOCK_(PTX_NAME_(ptx_when_), ptx_when_begin(f, predicate, PTX_HERE))
/* for (i = from; i < to; i += step), with i, declared here, read-only inside. from decides the type: U32, S32, U64,
 * S64; step is positive; i + step must not wrap. Two instructions test for an empty loop, unless both bounds are
 * immediates. The back edge is a conditional branch. */
#define PTX_FOR(f, i, from, to, step)                                                                        \
    for (ptx_block i##_block = PTX_CALL_(f, for_begin, PTX_VAL_(from), PTX_VAL_(to), PTX_VAL_(step));        \
         i##_block.f; ptx_block_end(&i##_block))                                                             \
        for (ptx_val i = i##_block.value; ptx_for_body(&i##_block, i); i##_block.state = 1)
/* Runs the block, and repeats it while the predicate of ptx_repeat_if holds; that must be the block's last call. */
#define PTX_LOOP(f)            PTX_BLOCK_(PTX_NAME_(ptx_loop_), ptx_loop_begin(f, PTX_HERE))
#define ptx_repeat_if(f, predicate) ptx_repeat_if_at(f, predicate, PTX_HERE)
/* Leaves the innermost PTX_FOR or PTX_LOOP if the predicate holds. */
#define ptx_break_if(f, predicate)  ptx_break_if_at(f, predicate, PTX_HERE)

/* Marks the enclosing PTX_FOR or PTX_LOOP as the main loop, which takes most of the kernel's time. The generator counts
 * the instructions of a trip for dispatch's estimates (kiln_time). At most one per kernel; emits nothing. */
#define ptx_main_loop(f) ptx_main_loop_at(f, PTX_HERE)
/* Marks a side loop, which prepares the main loop's data. All side loops must run equally often. */
#define ptx_side_loop(f) ptx_side_loop_at(f, PTX_HERE)
/* Marks an arm of an if that few warps or few trips take: it is not counted. Otherwise an if counts as taken, and an if
 * with an else counts its first arm. */
#define ptx_rarely(f)    ptx_rarely_at(f, PTX_HERE)

/* ---- variables -------------------------------------------------------------------------------------------------- */

/* A register that can be set again. If the value is the result of the instruction just emitted, that instruction writes
 * the variable and no mov is emitted; the value itself may then no longer be used. */
#define ptx_var(f, initial)         ptx_var_at(f, initial, PTX_HERE)
#define ptx_declare(f, type)        ptx_declare_at(f, type, PTX_HERE) /* uninitialised: set it before every use */
#define ptx_set(f, variable, value) ptx_set_at(f, variable, value, PTX_HERE)

/* In place: variable = op(variable, b), and variable = a*b + variable. */
#define ptx_add_to(f, variable, b)    ptx_update_at(f, PTX_OP_ADD, variable, b, PTX_HERE)
#define ptx_sub_to(f, variable, b)    ptx_update_at(f, PTX_OP_SUB, variable, b, PTX_HERE)
#define ptx_mul_to(f, variable, b)    ptx_update_at(f, PTX_OP_MUL, variable, b, PTX_HERE)
#define ptx_min_to(f, variable, b)    ptx_update_at(f, PTX_OP_MIN, variable, b, PTX_HERE)
#define ptx_max_to(f, variable, b)    ptx_update_at(f, PTX_OP_MAX, variable, b, PTX_HERE)
#define ptx_or_to(f, variable, b)     ptx_update_at(f, PTX_OP_OR, variable, b, PTX_HERE)
#define ptx_xor_to(f, variable, b)    ptx_update_at(f, PTX_OP_XOR, variable, b, PTX_HERE)
#define ptx_fma_to(f, variable, a, b) PTX_CALL_(f, accumulate, PTX_OP_FMA, variable, PTX_VAL_(a), PTX_VAL_(b))
#define ptx_mad_to(f, variable, a, b) PTX_CALL_(f, accumulate, PTX_OP_MAD, variable, PTX_VAL_(a), PTX_VAL_(b))
#define ptx_dp4a_to(f, variable, a, b) PTX_CALL_(f, accumulate, PTX_OP_DP4A_SS, variable, PTX_VAL_(a), PTX_VAL_(b))

/* ---- arithmetic ------------------------------------------------------------------------------------------------- */
/* Operands have one type, which is the result's too, unless noted. Floats round to nearest even unless the name ends in
 * _rz (to zero), _rm (down) or _rp (up). Integers wrap. */

/* Add, sub, mul and fma take f16x2, bf16x2 and f32x2 (sm_100) too. */
#define ptx_add(f, a, b)       ptx_op2(f, PTX_OP_ADD, a, b, PTX_HERE) /* all integers and floats */
#define ptx_sub(f, a, b)       ptx_op2(f, PTX_OP_SUB, a, b, PTX_HERE)
#define ptx_mul(f, a, b)       ptx_op2(f, PTX_OP_MUL, a, b, PTX_HERE) /* integers: the low half */
#define ptx_mul_hi(f, a, b)    ptx_op2(f, PTX_OP_MUL_HI, a, b, PTX_HERE)
#define ptx_mul_wide(f, a, b)  ptx_op2(f, PTX_OP_MUL_WIDE, a, b, PTX_HERE) /* 16 or 32 bits; result twice as wide */
#define ptx_mad(f, a, b, c)    ptx_op3(f, PTX_OP_MAD, a, b, c, PTX_HERE)   /* integers: low half of a*b, plus c */
#define ptx_mad_hi(f, a, b, c) ptx_op3(f, PTX_OP_MAD_HI, a, b, c, PTX_HERE)
#define ptx_mad_wide(f, a, b, c) ptx_op3(f, PTX_OP_MAD_WIDE, a, b, c, PTX_HERE) /* c and the result twice as wide */
#define ptx_div(f, a, b)       ptx_op2(f, PTX_OP_DIV, a, b, PTX_HERE) /* integers; f32, f64 correctly rounded */
#define ptx_rem(f, a, b)       ptx_op2(f, PTX_OP_REM, a, b, PTX_HERE)
#define ptx_fma(f, a, b, c)    ptx_op3(f, PTX_OP_FMA, a, b, c, PTX_HERE) /* floats: one rounding */
#define ptx_fma_relu(f, a, b, c) ptx_op3(f, PTX_OP_FMA_RELU, a, b, c, PTX_HERE) /* f16, bf16 and pairs */
#define ptx_add_rz(f, a, b)    ptx_op2(f, PTX_OP_ADD_RZ, a, b, PTX_HERE) /* _rz _rm _rp: f32, f64 */
#define ptx_add_rm(f, a, b)    ptx_op2(f, PTX_OP_ADD_RM, a, b, PTX_HERE)
#define ptx_add_rp(f, a, b)    ptx_op2(f, PTX_OP_ADD_RP, a, b, PTX_HERE)
#define ptx_mul_rz(f, a, b)    ptx_op2(f, PTX_OP_MUL_RZ, a, b, PTX_HERE)
#define ptx_mul_rm(f, a, b)    ptx_op2(f, PTX_OP_MUL_RM, a, b, PTX_HERE)
#define ptx_mul_rp(f, a, b)    ptx_op2(f, PTX_OP_MUL_RP, a, b, PTX_HERE)
#define ptx_fma_rz(f, a, b, c) ptx_op3(f, PTX_OP_FMA_RZ, a, b, c, PTX_HERE)
#define ptx_fma_rm(f, a, b, c) ptx_op3(f, PTX_OP_FMA_RM, a, b, c, PTX_HERE)
#define ptx_fma_rp(f, a, b, c) ptx_op3(f, PTX_OP_FMA_RP, a, b, c, PTX_HERE)
/* Mixed precision: a and b F16 or BF16, c and the result F32; sm_100. a*b + c, a + c, a - c. */
#define ptx_fma_mixed(f, a, b, c) ptx_op3(f, PTX_OP_FMA_MIXED, a, b, c, PTX_HERE)
#define ptx_add_mixed(f, a, c) ptx_op2(f, PTX_OP_ADD_MIXED, a, c, PTX_HERE)
#define ptx_sub_mixed(f, a, c) ptx_op2(f, PTX_OP_SUB_MIXED, a, c, PTX_HERE)
#define ptx_div_full(f, a, b)   ptx_op2(f, PTX_OP_DIV_FULL, a, b, PTX_HERE)   /* f32, 2 ulp */
#define ptx_div_approx(f, a, b) ptx_op2(f, PTX_OP_DIV_APPROX, a, b, PTX_HERE) /* f32, 2 ulp, |b| < 2^126 */
#define ptx_rcp(f, a)          ptx_op1(f, PTX_OP_RCP, a, PTX_HERE) /* f32, f64, correctly rounded */
#define ptx_rcp_approx(f, a)   ptx_op1(f, PTX_OP_RCP_APPROX, a, PTX_HERE) /* f32, 1 ulp */
#define ptx_sqrt(f, a)         ptx_op1(f, PTX_OP_SQRT, a, PTX_HERE)       /* f32, f64, correctly rounded */
#define ptx_sqrt_approx(f, a)  ptx_op1(f, PTX_OP_SQRT_APPROX, a, PTX_HERE)
#define ptx_rsqrt_approx(f, a) ptx_op1(f, PTX_OP_RSQRT_APPROX, a, PTX_HERE) /* f32, f64 */
#define ptx_ex2_approx(f, a)   ptx_op1(f, PTX_OP_EX2, a, PTX_HERE) /* f32 2 ulp; f16, f16x2 */
#define ptx_ex2_approx_ftz(f, a) ptx_op1(f, PTX_OP_EX2_FTZ, a, PTX_HERE) /* f32, bf16, bf16x2: one SASS instruction */
#define ptx_lg2_approx(f, a)   ptx_op1(f, PTX_OP_LG2, a, PTX_HERE) /* f32 */
#define ptx_lg2_approx_ftz(f, a) ptx_op1(f, PTX_OP_LG2_FTZ, a, PTX_HERE)
#define ptx_sin_approx(f, a)   ptx_op1(f, PTX_OP_SIN, a, PTX_HERE)
#define ptx_cos_approx(f, a)   ptx_op1(f, PTX_OP_COS, a, PTX_HERE)
#define ptx_tanh_approx(f, a)  ptx_op1(f, PTX_OP_TANH, a, PTX_HERE) /* f32, f16, f16x2, bf16, bf16x2 */
#define ptx_min(f, a, b)       ptx_op2(f, PTX_OP_MIN, a, b, PTX_HERE) /* a NaN loses to a number */
#define ptx_max(f, a, b)       ptx_op2(f, PTX_OP_MAX, a, b, PTX_HERE)
#define ptx_min_nan(f, a, b)   ptx_op2(f, PTX_OP_MIN_NAN, a, b, PTX_HERE) /* a NaN wins: f32, f16, bf16, pairs */
#define ptx_max_nan(f, a, b)   ptx_op2(f, PTX_OP_MAX_NAN, a, b, PTX_HERE)
#define ptx_min3(f, a, b, c)   ptx_op3(f, PTX_OP_MIN3, a, b, c, PTX_HERE) /* f32; sm_100 */
#define ptx_max3(f, a, b, c)   ptx_op3(f, PTX_OP_MAX3, a, b, c, PTX_HERE)
#define ptx_abs(f, a)          ptx_op1(f, PTX_OP_ABS, a, PTX_HERE) /* signed integers, floats, pairs */
#define ptx_neg(f, a)          ptx_op1(f, PTX_OP_NEG, a, PTX_HERE)
#define ptx_copysign(f, sign, a) ptx_op2(f, PTX_OP_COPYSIGN, sign, a, PTX_HERE) /* f32, f64: a with sign's sign */

/* ---- bits ------------------------------------------------------------------------------------------------------- */
/* The first operand decides the type; the others are integers or bits of its width. Floats: see ptx_as. */

#define ptx_and(f, a, b)       ptx_op2(f, PTX_OP_AND, a, b, PTX_HERE) /* predicates too */
#define ptx_or(f, a, b)        ptx_op2(f, PTX_OP_OR, a, b, PTX_HERE)
#define ptx_xor(f, a, b)       ptx_op2(f, PTX_OP_XOR, a, b, PTX_HERE)
#define ptx_not(f, a)          ptx_op1(f, PTX_OP_NOT, a, PTX_HERE)
#define ptx_shl(f, a, count)   ptx_op2(f, PTX_OP_SHL, a, count, PTX_HERE) /* counts of the width and more give 0 */
#define ptx_shr(f, a, count)   ptx_op2(f, PTX_OP_SHR, a, count, PTX_HERE) /* signed types fill with the sign */
#define ptx_shf_l(f, low, high, count) ptx_op3(f, PTX_OP_SHF_L, low, high, count, PTX_HERE) /* high half, count mod 32 */
#define ptx_shf_r(f, low, high, count) ptx_op3(f, PTX_OP_SHF_R, low, high, count, PTX_HERE) /* low half, count mod 32 */
#define ptx_bfe(f, a, position, length) ptx_op3(f, PTX_OP_BFE, a, position, length, PTX_HERE) /* sign-extends S types */
#define ptx_bfi(f, field, base, position, length) \
    PTX_CALL_(f, op4, PTX_OP_BFI, PTX_VAL_(field), PTX_VAL_(base), PTX_VAL_(position), PTX_VAL_(length))
/* Bit (a, b, c) of the table, which is an immediate: the function of 0xF0, 0xCC and 0xAA ("(a & b) | c" is 0xEA). */
#define ptx_lop3(f, a, b, c, table) PTX_CALL_(f, op4, PTX_OP_LOP3, PTX_VAL_(a), PTX_VAL_(b), PTX_VAL_(c), ptx_u32(table))
/* Four bytes of b:a picked by the nibbles of selector: 0-3 from a, 4-7 from b; bit 3 replicates the byte's sign. */
#define ptx_prmt(f, a, b, selector) ptx_op3(f, PTX_OP_PRMT, a, b, selector, PTX_HERE)
#define ptx_prmt_rc8(f, a, b, selector) ptx_op3(f, PTX_OP_PRMT_RC8, a, b, selector, PTX_HERE)   /* byte to all four */
#define ptx_prmt_rc16(f, a, b, selector) ptx_op3(f, PTX_OP_PRMT_RC16, a, b, selector, PTX_HERE) /* half to both */
#define ptx_prmt_f4e(f, a, b, selector) ptx_op3(f, PTX_OP_PRMT_F4E, a, b, selector, PTX_HERE)   /* b:a >> 8*selector */
#define ptx_popc(f, a)         ptx_op1(f, PTX_OP_POPC, a, PTX_HERE) /* 32 or 64 bits, U32 out */
#define ptx_clz(f, a)          ptx_op1(f, PTX_OP_CLZ, a, PTX_HERE)
#define ptx_brev(f, a)         ptx_op1(f, PTX_OP_BREV, a, PTX_HERE)
#define ptx_bfind(f, a)        ptx_op1(f, PTX_OP_BFIND, a, PTX_HERE) /* 0xffffffff when there is none */
/* c + the sum of four products of bytes; the two letters give the signedness of a and b. C and the result are U32 for
 * _uu, else S32. */
#define ptx_dp4a_uu(f, a, b, c) ptx_op3(f, PTX_OP_DP4A_UU, a, b, c, PTX_HERE)
#define ptx_dp4a_us(f, a, b, c) ptx_op3(f, PTX_OP_DP4A_US, a, b, c, PTX_HERE)
#define ptx_dp4a_su(f, a, b, c) ptx_op3(f, PTX_OP_DP4A_SU, a, b, c, PTX_HERE)
#define ptx_dp4a_ss(f, a, b, c) ptx_op3(f, PTX_OP_DP4A_SS, a, b, c, PTX_HERE)

/* ---- comparison and choice -------------------------------------------------------------------------------------- */
/* Return a predicate. With a NaN eq, lt, le, gt, ge are false; ne and the unordered ones, with a u, are true. */

#define ptx_eq(f, a, b)        ptx_op2(f, PTX_OP_EQ, a, b, PTX_HERE)
#define ptx_ne(f, a, b)        ptx_op2(f, PTX_OP_NE, a, b, PTX_HERE) /* floats: unordered */
#define ptx_lt(f, a, b)        ptx_op2(f, PTX_OP_LT, a, b, PTX_HERE)
#define ptx_le(f, a, b)        ptx_op2(f, PTX_OP_LE, a, b, PTX_HERE)
#define ptx_gt(f, a, b)        ptx_op2(f, PTX_OP_GT, a, b, PTX_HERE)
#define ptx_ge(f, a, b)        ptx_op2(f, PTX_OP_GE, a, b, PTX_HERE)
#define ptx_equ(f, a, b)       ptx_op2(f, PTX_OP_EQU, a, b, PTX_HERE)
#define ptx_ltu(f, a, b)       ptx_op2(f, PTX_OP_LTU, a, b, PTX_HERE)
#define ptx_leu(f, a, b)       ptx_op2(f, PTX_OP_LEU, a, b, PTX_HERE)
#define ptx_gtu(f, a, b)       ptx_op2(f, PTX_OP_GTU, a, b, PTX_HERE)
#define ptx_geu(f, a, b)       ptx_op2(f, PTX_OP_GEU, a, b, PTX_HERE)
#define ptx_ordered(f, a, b)   ptx_op2(f, PTX_OP_NUM, a, b, PTX_HERE) /* neither is a NaN */
#define ptx_unordered(f, a, b) ptx_op2(f, PTX_OP_NAN, a, b, PTX_HERE)
#define ptx_select(f, predicate, yes, no) ptx_op3(f, PTX_OP_SELP, yes, no, predicate, PTX_HERE)

/* ---- conversion ------------------------------------------------------------------------------------------------- */

/* Converts to another type: integers widen (by their own sign) or keep the low bits; conversion to a float rounds to
 * nearest even. From float to integer name the rounding: _rni nearest even, _rzi to zero, _rmi down, _rpi up; out of
 * range clamps, NaN gives 0. The same four round a float to an integral value of its own type. */
#define ptx_cvt(f, to, a)      ptx_cvt_at(f, PTX_OP_CVT, to, a, PTX_HERE)
#define ptx_cvt_rz(f, to, a)   ptx_cvt_at(f, PTX_OP_CVT_RZ, to, a, PTX_HERE) /* to a narrower float */
#define ptx_cvt_sat(f, to, a)  ptx_cvt_at(f, PTX_OP_CVT_SAT, to, a, PTX_HERE) /* integers clamp; floats to [0, 1] */
#define ptx_cvt_rni(f, to, a)  ptx_cvt_at(f, PTX_OP_CVT_RNI, to, a, PTX_HERE)
#define ptx_cvt_rzi(f, to, a)  ptx_cvt_at(f, PTX_OP_CVT_RZI, to, a, PTX_HERE)
#define ptx_cvt_rmi(f, to, a)  ptx_cvt_at(f, PTX_OP_CVT_RMI, to, a, PTX_HERE)
#define ptx_cvt_rpi(f, to, a)  ptx_cvt_at(f, PTX_OP_CVT_RPI, to, a, PTX_HERE)
#define ptx_cvt_tf32(f, a)     ptx_cvt_at(f, PTX_OP_CVT_TF32, PTX_B32, a, PTX_HERE) /* F32 to tf32 in B32; sm_80 */
/* Two F32 to a pair, low half first. F16X2, BF16X2; sm_80. */
#define ptx_cvt_pair(f, to, low, high) PTX_CALL_(f, cvt_pair, to, PTX_VAL_(low), PTX_VAL_(high))
/* Pairs of narrow floats: e4m3 and e5m2 in B16 (sm_89), e2m1 in B8 (sm_100 and up, a and f targets). */
#define ptx_e4m3x2_from_f32(f, low, high) ptx_op2(f, PTX_OP_CVT_E4M3X2, high, low, PTX_HERE)
#define ptx_e5m2x2_from_f32(f, low, high) ptx_op2(f, PTX_OP_CVT_E5M2X2, high, low, PTX_HERE)
#define ptx_e4m3x2_from_f16x2(f, a) ptx_op1(f, PTX_OP_CVT_E4M3X2_F16X2, a, PTX_HERE)
#define ptx_e5m2x2_from_f16x2(f, a) ptx_op1(f, PTX_OP_CVT_E5M2X2_F16X2, a, PTX_HERE)
#define ptx_f16x2_from_e4m3x2(f, a) ptx_op1(f, PTX_OP_CVT_FROM_E4M3X2, a, PTX_HERE)
#define ptx_f16x2_from_e5m2x2(f, a) ptx_op1(f, PTX_OP_CVT_FROM_E5M2X2, a, PTX_HERE)
#define ptx_e2m1x2_from_f32(f, low, high) ptx_op2(f, PTX_OP_CVT_E2M1X2, high, low, PTX_HERE)
#define ptx_f16x2_from_e2m1x2(f, a) ptx_op1(f, PTX_OP_CVT_FROM_E2M1X2, a, PTX_HERE)

/* The same bits under another type of the same width; emits nothing. */
#define ptx_as(f, type, a)     ptx_as_at(f, type, a, PTX_HERE)
/* Packs count parts (2 or 4), the lowest first, into one value of a type; unpacks a value into parts of a type: one mov each. */
#define ptx_pack(f, type, count, parts) ptx_pack_at(f, type, count, parts, PTX_HERE)
#define ptx_unpack(f, type, count, parts, a) ptx_unpack_at(f, type, count, parts, a, PTX_HERE)

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* Cache hints, combined with |. Each raises the kernel's requirement if needed. */
typedef enum KILN_AS_INT ptx_hint {
    PTX_PLAIN = 0,
    PTX_CA = 1 << 0, PTX_CG = 1 << 1, PTX_CS = 1 << 2, PTX_LU = 1 << 3, PTX_CV = 1 << 4, /* loads: one of these */
    PTX_WB = 1 << 5, PTX_WT = 1 << 6,                                  /* stores: one of these, PTX_CG or PTX_CS */
    PTX_NC = 1 << 7,           /* loads: memory is read-only while the kernel runs */
    PTX_NO_ALLOCATE = 1 << 8,  /* .L1::no_allocate */
    PTX_EVICT_FIRST = 1 << 9,  /* .L1::evict_first */
    PTX_EVICT_LAST = 1 << 10,  /* .L1::evict_last */
    PTX_L2_64B = 1 << 11, PTX_L2_128B = 1 << 12, PTX_L2_256B = 1 << 13, /* loads: prefetch size; 256B from sm_80 */
    PTX_VOLATILE = 1 << 14,
    PTX_L2_EVICT_FIRST = 1 << 15, PTX_L2_EVICT_LAST = 1 << 16, /* 32-byte accesses only; sm_100 */
    /* Instead of hints, one order and one scope, for memory that other threads access at the same time. Loads: relaxed,
     * acquire; stores: relaxed, release; atomics: all but SC; fences: ACQ_REL, SC. */
    PTX_RELAXED = 1 << 17, PTX_ACQUIRE = 1 << 18, PTX_RELEASE = 1 << 19, PTX_ACQ_REL = 1 << 20, PTX_SC = 1 << 21,
    PTX_CTA = 1 << 22, PTX_GPU = 1 << 23, PTX_SYS = 1 << 24 /* scopes: the thread block, the device, everything */
} ptx_hint;

/* Advances a pointer by `index` elements: an immediate is folded into the address; a U32 or S32 takes one mad.wide
 * (shared memory: mad), a U64 two instructions, one if elements are bytes. */
#define ptx_at(f, pointer, index)         PTX_CALL_(f, at, pointer, PTX_VAL_(index))
/* Advances a pointer by a constant number of elements or bytes, which may be negative; emits nothing. */
#define ptx_at_const(f, pointer, elements) ptx_at_elements(f, pointer, elements, PTX_HERE)
#define ptx_at_bytes(f, pointer, bytes)   ptx_at_byte_count(f, pointer, bytes, PTX_HERE)
/* The same address with another element type; emits nothing. */
#define ptx_cast_ptr(f, pointer, element) ptx_cast_ptr_at(f, pointer, element, PTX_HERE)
/* Converts a pointer to its address, U64 (in shared memory U32), for arithmetic of your own, and back. Emits an add if
 * an offset is folded in, else nothing. */
#define ptx_address(f, pointer)           ptx_address_at(f, pointer, PTX_HERE)
#define ptx_pointer(f, space, element, address) ptx_pointer_at(f, space, element, address, PTX_HERE)

/* Loads or stores one element. Loads of 8-bit elements give U32 (U8, B8) or S32; stores of 8 and 16-bit integers also
 * accept wider values and write the low bits. The address must be a multiple of the element's size. */
#define ptx_load(f, pointer)               ptx_load_at(f, PTX_NONE, pointer, PTX_PLAIN, PTX_HERE)
#define ptx_load_hint(f, pointer, hints)   ptx_load_at(f, PTX_NONE, pointer, hints, PTX_HERE)
/* Loads an 8 or 16-bit integer into a wider type (U32, S32, U64, S64), extended by the element's sign. */
#define ptx_load_as(f, type, pointer, hints) ptx_load_at(f, type, pointer, hints, PTX_HERE)
#define ptx_store(f, pointer, value)       PTX_CALL_(f, store, pointer, PTX_VAL_(value), PTX_PLAIN)
#define ptx_store_hint(f, pointer, value, hints) PTX_CALL_(f, store, pointer, PTX_VAL_(value), hints)
/* Load or store 2, 4 or 8 neighbouring elements, or 16 of 8 bits, together at most 16 bytes (32 from sm_100, in global
 * memory); the address must be a multiple of their total size. Eight or more elements of 8 or 16 bits are moved as
 * words, which a few instructions unpack or pack. */
#define ptx_load_vec(f, count, out, pointer, hints)    ptx_load_vec_at(f, count, out, pointer, hints, PTX_HERE)
#define ptx_store_vec(f, count, pointer, values, hints) ptx_store_vec_at(f, count, pointer, values, hints, PTX_HERE)

/* Attaches an L2 cache policy to the pointer, for each load, store and ptx_cp_async through it; emits nothing. sm_80. A
 * policy is a B64 value: it applies to a fraction (above 0, at most 1) of the lines; the others have normal priority. */
#define ptx_with_policy(f, pointer, policy) PTX_CALL_(f, with_policy, pointer, policy)
#define ptx_policy_evict_first(f, share)     ptx_op1(f, PTX_OP_POLICY_FIRST, ptx_f32(share), PTX_HERE)
#define ptx_policy_evict_last(f, share)      ptx_op1(f, PTX_OP_POLICY_LAST, ptx_f32(share), PTX_HERE)
#define ptx_policy_evict_normal(f, share)    ptx_op1(f, PTX_OP_POLICY_NORMAL, ptx_f32(share), PTX_HERE)
#define ptx_policy_evict_unchanged(f, share) ptx_op1(f, PTX_OP_POLICY_UNCHANGED, ptx_f32(share), PTX_HERE)
/* Prefetches the line of an address in global memory; an unmapped address does no harm. */
#define ptx_prefetch_l1(f, pointer)       ptx_prefetch_at(f, PTX_OP_PREFETCH_L1, pointer, PTX_HERE)
#define ptx_prefetch_l2(f, pointer)       ptx_prefetch_at(f, PTX_OP_PREFETCH_L2, pointer, PTX_HERE)
/* Prefetches `bytes`, a U32, of global memory from one thread; all of them must be mapped. The address and the number
 * are multiples of 16. sm_90. */
#define ptx_prefetch_l2_bytes(f, pointer, bytes) ptx_prefetch_bytes_at(f, pointer, bytes, PTX_HERE)

/* Declares an array in shared memory, aligned to `align` bytes, a power of two up to 65536. A kernel's static arrays take
 * at most 48 KB together. The dynamic array is larger: one per kernel, sized by the launch, aligned to 32 bytes, or to
 * more, up to 1024. */
#define ptx_shared(f, element, count, align) ptx_shared_at(f, element, count, align, PTX_HERE)
#define ptx_shared_dynamic(f, element)    ptx_shared_dynamic_at(f, element, 0, PTX_HERE)
#define ptx_shared_dynamic_aligned(f, element, align) ptx_shared_dynamic_at(f, element, align, PTX_HERE)
/* Declares a per-thread array in local memory, which is cached global memory: for data too large for registers and
 * rarely needed. At most 512 KB together. */
#define ptx_local(f, element, count, align) ptx_local_at(f, element, count, align, PTX_HERE)
/* Defines a table of constants (count elements, by their bits) in the module's constant memory, at most 64 KB together.
 * Fast if all lanes of a warp read one element. */
#define ptx_const_table(f, element, count, bits) ptx_table_at(f, PTX_CONST, element, count, bits, PTX_HERE)
/* Defines a table in global memory, for tables of which each lane reads its own element. */
#define ptx_global_table(f, element, count, bits) ptx_table_at(f, PTX_GLOBAL, element, count, bits, PTX_HERE)

/* ---- warps and thread blocks ------------------------------------------------------------------------------------ */

/* Warp operations need all 32 lanes to converge. The checker reports one in divergent code: under a predicate, or in a
 * loop, that depends on more than parameters, block numbers, the warp (tid.x / 32, or a comparison of tid.x with a
 * multiple of 32), votes and values derived from them; see ptx_warp_uniform.
 *
 * Shuffles take 32 and 64-bit values of any type; 64 bits are two shuffles and two movs. */
#define PTX_ALL_LANES 0xffffffffu
#define ptx_shfl_xor(f, a, mask)   ptx_shfl_at(f, PTX_OP_SHFL_BFLY, a, mask, 32, PTX_HERE) /* from lane ^ mask */
#define ptx_shfl_idx(f, a, lane)   ptx_shfl_at(f, PTX_OP_SHFL_IDX, a, lane, 32, PTX_HERE)  /* from that lane */
#define ptx_shfl_up(f, a, delta)   ptx_shfl_at(f, PTX_OP_SHFL_UP, a, delta, 32, PTX_HERE)  /* lane - delta, or own */
#define ptx_shfl_down(f, a, delta) ptx_shfl_at(f, PTX_OP_SHFL_DOWN, a, delta, 32, PTX_HERE)
/* Shuffle within segments of 2, 4, 8 or 16 lanes, counted from the segment's first. */
#define ptx_shfl_xor_in(f, a, mask, lanes)   ptx_shfl_at(f, PTX_OP_SHFL_BFLY, a, mask, lanes, PTX_HERE)
#define ptx_shfl_idx_in(f, a, lane, lanes)   ptx_shfl_at(f, PTX_OP_SHFL_IDX, a, lane, lanes, PTX_HERE)
#define ptx_shfl_up_in(f, a, delta, lanes)   ptx_shfl_at(f, PTX_OP_SHFL_UP, a, delta, lanes, PTX_HERE)
#define ptx_shfl_down_in(f, a, delta, lanes) ptx_shfl_at(f, PTX_OP_SHFL_DOWN, a, delta, lanes, PTX_HERE)
/* Also set *in_range to whether the source lane was in range. */
#define ptx_shfl_up_in_range(f, a, delta, in_range)                                                          \
    PTX_CALL_(f, shfl_pred, PTX_OP_SHFL_UP_P, a, PTX_VAL_(delta), 32, in_range)
#define ptx_shfl_down_in_range(f, a, delta, in_range)                                                        \
    PTX_CALL_(f, shfl_pred, PTX_OP_SHFL_DOWN_P, a, PTX_VAL_(delta), 32, in_range)
#define ptx_vote_all(f, p)      ptx_op2(f, PTX_OP_VOTE_ALL, p, ptx_u32(PTX_ALL_LANES), PTX_HERE)
#define ptx_vote_any(f, p)      ptx_op2(f, PTX_OP_VOTE_ANY, p, ptx_u32(PTX_ALL_LANES), PTX_HERE)
#define ptx_ballot(f, p)        ptx_op2(f, PTX_OP_BALLOT, p, ptx_u32(PTX_ALL_LANES), PTX_HERE)
#define ptx_match_any(f, a)     ptx_op2(f, PTX_OP_MATCH_ANY, a, ptx_u32(PTX_ALL_LANES), PTX_HERE)
#define ptx_match_all(f, a)     ptx_match_all_at(f, a, PTX_HERE) /* the predicate: all lanes have the same value */
/* Vote among the lanes in a mask; each of them must reach the call. Divergence is checked only for a full mask. */
#define ptx_vote_all_mask(f, p, mask)  ptx_op2(f, PTX_OP_VOTE_ALL, p, mask, PTX_HERE)
#define ptx_vote_any_mask(f, p, mask)  ptx_op2(f, PTX_OP_VOTE_ANY, p, mask, PTX_HERE)
#define ptx_ballot_mask(f, p, mask)    ptx_op2(f, PTX_OP_BALLOT, p, mask, PTX_HERE)
#define ptx_match_any_mask(f, a, mask) ptx_op2(f, PTX_OP_MATCH_ANY, a, mask, PTX_HERE)
#define ptx_warp_barrier_mask(f, mask) ptx_effect1(f, PTX_OP_WARP_BARRIER, mask, PTX_HERE)
#define ptx_elect(f)            ptx_elect_at(f, PTX_HERE) /* a predicate that holds in one lane; sm_90 */
/* Reduces over all lanes, in one instruction: U32, S32 (and, or, xor: B32 too); sm_80. */
#define ptx_redux_add(f, a)     ptx_op2(f, PTX_OP_REDUX_ADD, a, ptx_u32(PTX_ALL_LANES), PTX_HERE)
#define ptx_redux_min(f, a)     ptx_op2(f, PTX_OP_REDUX_MIN, a, ptx_u32(PTX_ALL_LANES), PTX_HERE)
#define ptx_redux_max(f, a)     ptx_op2(f, PTX_OP_REDUX_MAX, a, ptx_u32(PTX_ALL_LANES), PTX_HERE)
#define ptx_redux_and(f, a)     ptx_op2(f, PTX_OP_REDUX_AND, a, ptx_u32(PTX_ALL_LANES), PTX_HERE)
#define ptx_redux_or(f, a)      ptx_op2(f, PTX_OP_REDUX_OR, a, ptx_u32(PTX_ALL_LANES), PTX_HERE)
#define ptx_redux_xor(f, a)     ptx_op2(f, PTX_OP_REDUX_XOR, a, ptx_u32(PTX_ALL_LANES), PTX_HERE)
#define ptx_activemask(f)       ptx_op0(f, PTX_OP_ACTIVEMASK, PTX_HERE)
#define ptx_warp_barrier(f)     ptx_effect1(f, PTX_OP_WARP_BARRIER, ptx_u32(PTX_ALL_LANES), PTX_HERE)
/* Reduces over groups of `lanes` neighbouring lanes (2, 4, ... 32): a shuffle and an operation per step; every lane
 * gets the result. op is PTX_OP_ADD, PTX_OP_MUL, PTX_OP_MIN, PTX_OP_MAX, PTX_OP_AND, PTX_OP_OR or PTX_OP_XOR, or one of
 * their forms with _NAN or a rounding. */
#define ptx_reduce_lanes(f, op, lanes, a) ptx_reduce_lanes_at(f, op, lanes, a, PTX_HERE)

/* Waits for all threads of the block; stores to shared memory before it are visible after it. The checker reports one
 * in divergent code, unless ptx_uniform declares the condition uniform. */
#define ptx_barrier(f)              ptx_effect0(f, PTX_OP_BARRIER, PTX_HERE)
#define ptx_barrier_divergent_ok(f) ptx_effect0(f, PTX_OP_BARRIER_UNCHECKED, PTX_HERE)
/* Named barrier `id` (1-15) for part of the thread block: `threads` threads, whole warps; arrive does not wait. The checker
 * reports lanes of a warp that may have diverged; it does not check which warps arrive. */
#define ptx_barrier_named(f, id, threads)  PTX_CALL_(f, effect2, PTX_OP_BARRIER_NAMED, PTX_VAL_(id), PTX_VAL_(threads))
#define ptx_barrier_arrive(f, id, threads) PTX_CALL_(f, effect2, PTX_OP_BARRIER_ARRIVE, PTX_VAL_(id), PTX_VAL_(threads))
/* Declare that a value is the same in all threads of the block, of the warpgroup, or of the warp. Emit nothing; return
 * the value. */
#define ptx_uniform(f, a)           ptx_uniform_at(f, a, 0, PTX_HERE)
#define ptx_warpgroup_uniform(f, a) ptx_uniform_at(f, a, 128, PTX_HERE)
#define ptx_warp_uniform(f, a)      ptx_uniform_at(f, a, 32, PTX_HERE)

typedef enum KILN_AS_INT ptx_sreg {
    PTX_TID_X, PTX_TID_Y, PTX_TID_Z,
    PTX_NTID_X, PTX_NTID_Y, PTX_NTID_Z,
    PTX_CTAID_X, PTX_CTAID_Y, PTX_CTAID_Z,
    PTX_NCTAID_X, PTX_NCTAID_Y, PTX_NCTAID_Z,
    PTX_LANEID, PTX_SMID, PTX_DYNAMIC_SMEM_SIZE,
    PTX_LANEMASK_EQ, PTX_LANEMASK_LT, PTX_LANEMASK_LE, PTX_LANEMASK_GT, PTX_LANEMASK_GE,
    PTX_CLOCK64, PTX_GLOBALTIMER, /* U64; the others U32 */
    PTX_SREG_COUNT
} ptx_sreg;
#define ptx_special(f, which)  ptx_special_at(f, which, PTX_HERE)
#define ptx_tid_x(f)           ptx_special(f, PTX_TID_X)
#define ptx_tid_y(f)           ptx_special(f, PTX_TID_Y)
#define ptx_ctaid_x(f)         ptx_special(f, PTX_CTAID_X)
#define ptx_ctaid_y(f)         ptx_special(f, PTX_CTAID_Y)
#define ptx_ctaid_z(f)         ptx_special(f, PTX_CTAID_Z)
#define ptx_nctaid_x(f)        ptx_special(f, PTX_NCTAID_X)
#define ptx_laneid(f)          ptx_special(f, PTX_LANEID)
/* tid.x / 32: the warp's number in a one-dimensional block. Two instructions. */
#define ptx_warpid_x(f)        ptx_warpid_x_at(f, PTX_HERE)
/* ctaid.x * block + tid.x as U32 (3 instructions), and as U64, for grids of 2^32 threads and more (4). */
#define ptx_global_thread_x(f)   ptx_global_thread_x_at(f, false, PTX_HERE)
#define ptx_global_thread_x64(f) ptx_global_thread_x_at(f, true, PTX_HERE)
/* Returns the threads per block along x, known at build time. */
uint32_t ptx_block_x(const ptx_fn *f);
/* Returns the registers that a thread has at entry, if its thread block and the shape's blocks_per_multiprocessor fill the register
 * file: for ptx_setmaxnreg_inc and _dec. */
uint32_t ptx_entry_registers(const ptx_fn *f);
/* Returns whether the target is at least this sm, such as 80. A body that does not ask is the same for all targets; one
 * that does is emitted once for each answer. */
bool ptx_has_sm(ptx_fn *f, uint32_t sm);

/* Reports the error `what` at the caller's PTX_HERE unless `holds`; for functions that emit parts of kernels. Returns
 * `holds`. */
bool ptx_require_at(ptx_fn *f, bool holds, const char *what, const char *file, int line);

/* Returns whether an integer is an immediate, and if so sets *value: for functions that check their arguments. */
bool ptx_is_immediate(ptx_val v, uint64_t *value);

/* ---- what the builder lacks ------------------------------------------------------------------------------------- */

/* Emits one instruction as PTX text, without its semicolon or a comment: $0, $1 ... stand for the results and then the
 * operands, each at least once. Types are not checked against the instruction; the results may differ between lanes
 * (ptx_warp_uniform). Each use is recorded with the kernel. */
typedef struct ptx_raw_form {
    const char *text; /* "mul24.lo.u32 $0, $1, $2" */
    uint16_t sm;      /* the lowest target, 90, and below the kind, 0 or 'a' or 'f' */
    char kind;
    uint16_t version; /* the lowest .version times 10 */
    bool whole_warp;  /* needs all lanes to converge */
} ptx_raw_form;
#define ptx_raw(f, form, results, types, out, operands, values)                                              \
    ptx_raw_at(f, form, results, types, out, operands, values, PTX_HERE)

#ifdef __cplusplus
}
#endif

/* clang-format on */

#include <kiln/author/ptx_bulk.h>
#include <kiln/author/ptx_matrix.h>
#include <kiln/author/ptx_sync.h>
#include <kiln/author/ptx_wgmma.h>

#include <kiln/author/ptx_calls.h>

#endif
