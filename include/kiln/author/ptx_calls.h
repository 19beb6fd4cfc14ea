/* The functions that the macros of kiln/author/ptx.h and its parts call. Authors need not read it. */
#ifndef KILN_PTX_CALLS_H
#define KILN_PTX_CALLS_H

#include <kiln/author/ptx.h>

#ifdef __cplusplus
extern "C" {
#endif
/* clang-format off */

/* The operations, in the order of generator/ptx/ops.def, which has the text, the operands and the requirements of each. */
typedef enum KILN_AS_INT ptx_op {
    PTX_OP_ADD, PTX_OP_ADD_RZ, PTX_OP_ADD_RM, PTX_OP_ADD_RP, PTX_OP_SUB,
    PTX_OP_MUL, PTX_OP_MUL_RZ, PTX_OP_MUL_RM, PTX_OP_MUL_RP, PTX_OP_MUL_HI, PTX_OP_MUL_WIDE,
    PTX_OP_MAD, PTX_OP_MAD_HI, PTX_OP_MAD_WIDE,
    PTX_OP_FMA, PTX_OP_FMA_RZ, PTX_OP_FMA_RM, PTX_OP_FMA_RP, PTX_OP_FMA_RELU,
    PTX_OP_FMA_MIXED, PTX_OP_ADD_MIXED, PTX_OP_SUB_MIXED,
    PTX_OP_DIV, PTX_OP_DIV_FULL, PTX_OP_DIV_APPROX, PTX_OP_REM,
    PTX_OP_RCP, PTX_OP_RCP_APPROX, PTX_OP_SQRT, PTX_OP_SQRT_APPROX, PTX_OP_RSQRT_APPROX,
    PTX_OP_EX2, PTX_OP_EX2_FTZ, PTX_OP_LG2, PTX_OP_LG2_FTZ, PTX_OP_SIN, PTX_OP_COS, PTX_OP_TANH,
    PTX_OP_MIN, PTX_OP_MAX, PTX_OP_MIN_NAN, PTX_OP_MAX_NAN, PTX_OP_MIN3, PTX_OP_MAX3,
    PTX_OP_ABS, PTX_OP_NEG, PTX_OP_COPYSIGN,
    PTX_OP_AND, PTX_OP_OR, PTX_OP_XOR, PTX_OP_NOT, PTX_OP_SHL, PTX_OP_SHR, PTX_OP_SHF_L, PTX_OP_SHF_R,
    PTX_OP_BFE, PTX_OP_BFI, PTX_OP_LOP3, PTX_OP_PRMT, PTX_OP_PRMT_RC8, PTX_OP_PRMT_RC16, PTX_OP_PRMT_F4E,
    PTX_OP_POPC, PTX_OP_CLZ, PTX_OP_BREV, PTX_OP_BFIND,
    PTX_OP_DP4A_UU, PTX_OP_DP4A_US, PTX_OP_DP4A_SU, PTX_OP_DP4A_SS,
    PTX_OP_EQ, PTX_OP_NE, PTX_OP_LT, PTX_OP_LE, PTX_OP_GT, PTX_OP_GE,
    PTX_OP_EQU, PTX_OP_LTU, PTX_OP_LEU, PTX_OP_GTU, PTX_OP_GEU, PTX_OP_NUM, PTX_OP_NAN, PTX_OP_SELP,
    PTX_OP_CVT, PTX_OP_CVT_RZ, PTX_OP_CVT_SAT, PTX_OP_CVT_RNI, PTX_OP_CVT_RZI, PTX_OP_CVT_RMI, PTX_OP_CVT_RPI,
    PTX_OP_CVT_TF32, PTX_OP_CVT_PAIR,
    PTX_OP_CVT_E4M3X2, PTX_OP_CVT_E5M2X2, PTX_OP_CVT_E4M3X2_F16X2, PTX_OP_CVT_E5M2X2_F16X2,
    PTX_OP_CVT_FROM_E4M3X2, PTX_OP_CVT_FROM_E5M2X2,
    PTX_OP_CVT_E2M1X2, PTX_OP_CVT_FROM_E2M1X2,
    PTX_OP_MOV, PTX_OP_PACK, PTX_OP_UNPACK,
    PTX_OP_SPECIAL, PTX_OP_SYMBOL, PTX_OP_TENSOR_MAP, PTX_OP_LOAD_PARAM,
    PTX_OP_LOAD, PTX_OP_LOAD_POLICY, PTX_OP_STORE, PTX_OP_STORE_POLICY,
    PTX_OP_POLICY_FIRST, PTX_OP_POLICY_LAST, PTX_OP_POLICY_NORMAL, PTX_OP_POLICY_UNCHANGED,
    PTX_OP_PREFETCH_L1, PTX_OP_PREFETCH_L2, PTX_OP_PREFETCH_L2_BULK, PTX_OP_PREFETCH_MAP,
    PTX_OP_SHFL_BFLY, PTX_OP_SHFL_IDX, PTX_OP_SHFL_UP, PTX_OP_SHFL_DOWN, PTX_OP_SHFL_UP_P, PTX_OP_SHFL_DOWN_P,
    PTX_OP_VOTE_ALL, PTX_OP_VOTE_ANY, PTX_OP_BALLOT, PTX_OP_MATCH_ANY, PTX_OP_MATCH_ALL,
    PTX_OP_REDUX_ADD, PTX_OP_REDUX_MIN, PTX_OP_REDUX_MAX, PTX_OP_REDUX_AND, PTX_OP_REDUX_OR, PTX_OP_REDUX_XOR,
    PTX_OP_ACTIVEMASK, PTX_OP_WARP_BARRIER, PTX_OP_ELECT,
    PTX_OP_BARRIER, PTX_OP_BARRIER_UNCHECKED, PTX_OP_BARRIER_NAMED, PTX_OP_BARRIER_ARRIVE,
    PTX_OP_MMA, PTX_OP_MMA_SCALED, PTX_OP_LDMATRIX, PTX_OP_LDMATRIX_TRANS, PTX_OP_STMATRIX, PTX_OP_STMATRIX_TRANS, PTX_OP_MOVMATRIX,
    PTX_OP_WGMMA, PTX_OP_WGMMA_SHARED, PTX_OP_WGMMA_FENCE, PTX_OP_WGMMA_COMMIT, PTX_OP_WGMMA_WAIT,
    PTX_OP_SETMAXNREG_INC, PTX_OP_SETMAXNREG_DEC,
    PTX_OP_CP_ASYNC, PTX_OP_CP_ASYNC_POLICY, PTX_OP_CP_ASYNC_ZFILL, PTX_OP_CP_ASYNC_ZFILL_POLICY,
    PTX_OP_CP_COMMIT, PTX_OP_CP_WAIT, PTX_OP_CP_WAIT_ALL, PTX_OP_CP_ARRIVE, PTX_OP_CP_ARRIVE_NOINC,
    PTX_OP_MBAR_INIT, PTX_OP_MBAR_INVAL, PTX_OP_MBAR_ARRIVE, PTX_OP_MBAR_ARRIVE_COUNT, PTX_OP_MBAR_ARRIVE_BYTES,
    PTX_OP_MBAR_TEST, PTX_OP_MBAR_TEST_PARITY, PTX_OP_MBAR_TRY, PTX_OP_MBAR_TRY_PARITY,
    PTX_OP_BULK_LOAD, PTX_OP_BULK_STORE, PTX_OP_TENSOR_LOAD, PTX_OP_TENSOR_STORE,
    PTX_OP_BULK_COMMIT, PTX_OP_BULK_WAIT, PTX_OP_BULK_WAIT_READ,
    PTX_OP_ATOM_ADD, PTX_OP_ATOM_MIN, PTX_OP_ATOM_MAX, PTX_OP_ATOM_AND, PTX_OP_ATOM_OR, PTX_OP_ATOM_XOR,
    PTX_OP_ATOM_EXCH, PTX_OP_ATOM_INC, PTX_OP_ATOM_DEC, PTX_OP_ATOM_CAS,
    PTX_OP_RED_ADD, PTX_OP_RED_MIN, PTX_OP_RED_MAX, PTX_OP_RED_AND, PTX_OP_RED_OR, PTX_OP_RED_XOR,
    PTX_OP_RED_INC, PTX_OP_RED_DEC,
    PTX_OP_FENCE, PTX_OP_MEMBAR, PTX_OP_FENCE_ASYNC, PTX_OP_FENCE_MBARRIER, PTX_OP_NANOSLEEP,
    PTX_OP_GRID_WAIT, PTX_OP_GRID_LAUNCH_NEXT,
    PTX_OP_RAW,
    PTX_OP_COUNT
} ptx_op;

ptx_val ptx_op0(ptx_fn *f, ptx_op op, const char *file, int line);
ptx_val ptx_op1(ptx_fn *f, ptx_op op, ptx_val a, const char *file, int line);
ptx_val ptx_ordered_op2(ptx_fn *f, ptx_op op, ptx_val a, ptx_val b, const char *file, int line);
ptx_val ptx_ordered_op3(ptx_fn *f, ptx_op op, ptx_val a, ptx_val b, ptx_val c, const char *file, int line);
ptx_val ptx_ordered_op4(ptx_fn *f, ptx_op op, ptx_val a, ptx_val b, ptx_val c, ptx_val d, const char *file, int line);
void ptx_effect0(ptx_fn *f, ptx_op op, const char *file, int line);
void ptx_effect1(ptx_fn *f, ptx_op op, ptx_val a, const char *file, int line);
void ptx_ordered_effect2(ptx_fn *f, ptx_op op, ptx_val a, ptx_val b, const char *file, int line);
ptx_val ptx_cvt_at(ptx_fn *f, ptx_op op, ptx_type to, ptx_val a, const char *file, int line);
ptx_val ptx_ordered_cvt_pair(ptx_fn *f, ptx_type to, ptx_val low, ptx_val high, const char *file, int line);
ptx_val ptx_as_at(ptx_fn *f, ptx_type type, ptx_val a, const char *file, int line);
ptx_val ptx_pack_at(ptx_fn *f, ptx_type type, int count, const ptx_val parts[], const char *file, int line);
void ptx_unpack_at(ptx_fn *f, ptx_type type, int count, ptx_val parts[], ptx_val a, const char *file, int line);

void ptx_note_at(ptx_fn *f, const char *comment, const char *file, int line);
ptx_val ptx_param_at_line(ptx_fn *f, ptx_type type, const char *name, const char *file, int line);
ptx_val ptx_param_ptr_at_line(ptx_fn *f, ptx_type element, const char *name, const char *file, int line);
ptx_val ptx_var_at(ptx_fn *f, ptx_val initial, const char *file, int line);
ptx_val ptx_declare_at(ptx_fn *f, ptx_type type, const char *file, int line);
void ptx_set_value(ptx_fn *f, ptx_val variable, ptx_val value, const char *file, int line);
void ptx_update_value(ptx_fn *f, ptx_op op, ptx_val variable, ptx_val b, const char *file, int line);
void ptx_ordered_accumulate(ptx_fn *f, ptx_op op, ptx_val variable, ptx_val a, ptx_val b, const char *file, int line);

ptx_val ptx_ordered_at(ptx_fn *f, ptx_val pointer, ptx_val index, const char *file, int line);
ptx_val ptx_at_elements(ptx_fn *f, ptx_val pointer, int64_t elements, const char *file, int line);
ptx_val ptx_at_byte_count(ptx_fn *f, ptx_val pointer, int64_t bytes, const char *file, int line);
ptx_val ptx_cast_ptr_at(ptx_fn *f, ptx_val pointer, ptx_type element, const char *file, int line);
ptx_val ptx_address_at(ptx_fn *f, ptx_val pointer, const char *file, int line);
ptx_val ptx_pointer_at(ptx_fn *f, ptx_space space, ptx_type element, ptx_val address, const char *file, int line);
ptx_val ptx_load_at(ptx_fn *f, ptx_type type, ptx_val pointer, int hints, const char *file, int line);
void ptx_ordered_store(ptx_fn *f, ptx_val pointer, ptx_val value, int hints, const char *file, int line);
void ptx_load_vec_at(ptx_fn *f, int count, ptx_val out[], ptx_val pointer, int hints, const char *file, int line);
void ptx_store_vec_at(ptx_fn *f, int count, ptx_val pointer, const ptx_val values[], int hints, const char *file,
                      int line);
ptx_val ptx_shared_at(ptx_fn *f, ptx_type element, uint32_t count, uint32_t align, const char *file, int line);
ptx_val ptx_local_at(ptx_fn *f, ptx_type element, uint32_t count, uint32_t align, const char *file, int line);
ptx_val ptx_shared_dynamic_at(ptx_fn *f, ptx_type element, uint32_t align, const char *file, int line);
ptx_val ptx_table_at(ptx_fn *f, ptx_space space, ptx_type element, uint32_t count, const uint64_t bits[],
                     const char *file, int line);

ptx_val ptx_ordered_with_policy(ptx_fn *f, ptx_val pointer, ptx_val policy, const char *file, int line);
void ptx_prefetch_at(ptx_fn *f, ptx_op op, ptx_val pointer, const char *file, int line);
void ptx_prefetch_bytes_at(ptx_fn *f, ptx_val pointer, ptx_val bytes, const char *file, int line);

ptx_val ptx_ordered_shfl(ptx_fn *f, ptx_op op, ptx_val a, ptx_val lane, int lanes, const char *file, int line);
ptx_val ptx_ordered_shfl_pred(ptx_fn *f, ptx_op op, ptx_val a, ptx_val lane, int lanes, ptx_val *in_range,
                         const char *file, int line);
ptx_val ptx_match_all_at(ptx_fn *f, ptx_val a, const char *file, int line);
ptx_val ptx_elect_at(ptx_fn *f, const char *file, int line);
ptx_val ptx_reduce_lanes_at(ptx_fn *f, ptx_op op, int lanes, ptx_val a, const char *file, int line);
ptx_val ptx_special_at(ptx_fn *f, ptx_sreg which, const char *file, int line);
ptx_val ptx_warpid_x_at(ptx_fn *f, const char *file, int line);
ptx_val ptx_global_thread_x_at(ptx_fn *f, bool wide, const char *file, int line);
ptx_val ptx_uniform_at(ptx_fn *f, ptx_val a, int threads, const char *file, int line);
void ptx_raw_at(ptx_fn *f, ptx_raw_form form, int results, const ptx_type types[], ptx_val out[], int operands,
                const ptx_val values[], const char *file, int line);

void ptx_ldmatrix_at(ptx_fn *f, ptx_op op, int count, ptx_val out[], ptx_val pointer, const char *file, int line);
void ptx_stmatrix_at(ptx_fn *f, ptx_op op, int count, ptx_val pointer, const ptx_val values[], const char *file,
                     int line);

void ptx_ordered_cp_async(ptx_fn *f, ptx_val to, ptx_val from, uint32_t bytes, int hints, const char *file, int line);
void ptx_ordered_cp_async_zfill(ptx_fn *f, ptx_val to, ptx_val from, uint32_t bytes, ptx_val from_bytes, int hints,
                           const char *file, int line);
ptx_val ptx_mbarrier_at(ptx_fn *f, ptx_op op, ptx_val barrier, const char *file, int line);
ptx_val ptx_ordered_mbarrier(ptx_fn *f, ptx_op op, ptx_val barrier, ptx_val b, const char *file, int line);
ptx_val ptx_ordered_atom(ptx_fn *f, ptx_op op, ptx_val pointer, ptx_val value, int order, const char *file, int line);
ptx_val ptx_ordered_atom_cas(ptx_fn *f, ptx_val pointer, ptx_val expected, ptx_val value, int order, const char *file,
                        int line);
void ptx_ordered_red(ptx_fn *f, ptx_op op, ptx_val pointer, ptx_val value, int order, const char *file, int line);
void ptx_fence_at(ptx_fn *f, ptx_op op, int order, const char *file, int line);

ptx_val ptx_tensor_map_at(ptx_fn *f, const char *name, const char *file, int line);
void ptx_ordered_bulk_load(ptx_fn *f, ptx_val to, ptx_val from, ptx_val bytes, ptx_val barrier, const char *file, int line);
void ptx_ordered_bulk_store(ptx_fn *f, ptx_val to, ptx_val from, ptx_val bytes, const char *file, int line);
void ptx_ordered_tensor_load(ptx_fn *f, int dimensions, ptx_val to, ptx_val map, const ptx_val first[], ptx_val barrier,
                             const char *file, int line);
void ptx_ordered_tensor_store(ptx_fn *f, int dimensions, ptx_val map, const ptx_val first[], ptx_val from, const char *file,
                              int line);
void ptx_prefetch_map_at(ptx_fn *f, ptx_val map, const char *file, int line);
void ptx_setmaxnreg_at(ptx_fn *f, ptx_op op, uint32_t registers, const char *file, int line);

/* For functions that emit parts of kernels. */
/* Gives the instructions that follow, and mistakes in them, the place of an author's call; a null file: their own. Returns the
 * previous place. */
typedef struct ptx_caller {
    const char *file;
    int line;
} ptx_caller;
ptx_caller ptx_set_caller(ptx_fn *f, ptx_caller caller);
/* Takes the first `bytes` of dynamic shared memory, which the shape must have. False if an earlier call took them. */
bool ptx_take_dynamic(ptx_fn *f, uint32_t bytes);

/* An open block of PTX_IF and similar macros. */
typedef struct ptx_block {
    ptx_fn *f;     /* null once it has ended */
    ptx_val value; /* PTX_FOR: the counter */
    uint32_t scope;
    int state;     /* PTX_FOR: 1 once its body has ended normally */
} ptx_block;

ptx_block ptx_if_begin(ptx_fn *f, ptx_val predicate, const char *file, int line);
ptx_block ptx_else_begin(ptx_fn *f, const char *file, int line);
ptx_block ptx_when_begin(ptx_fn *f, ptx_val predicate, const char *file, int line);
ptx_block ptx_ordered_for_begin(ptx_fn *f, ptx_val from, ptx_val to, ptx_val step, const char *file, int line);
ptx_block ptx_loop_begin(ptx_fn *f, const char *file, int line);
bool ptx_for_body(const ptx_block *block, ptx_val counter); /* still to be emitted? */
void ptx_block_end(ptx_block *block);
void ptx_repeat_if_at(ptx_fn *f, ptx_val predicate, const char *file, int line);
void ptx_break_if_at(ptx_fn *f, ptx_val predicate, const char *file, int line);
void ptx_main_loop_at(ptx_fn *f, const char *file, int line);
void ptx_side_loop_at(ptx_fn *f, const char *file, int line);
void ptx_rarely_at(ptx_fn *f, const char *file, int line);

/* For calls with several values: records where the call begins before C evaluates its arguments, so that the checker sees
 * if two arguments emit instructions, whose order C leaves open. PTX_CALL_ also passes the source location. */
#define PTX_ORDERED_(f, call) (ptx_call_begins(f), call)
#define PTX_CALL_(f, call, ...) PTX_ORDERED_(f, ptx_ordered_##call(f, __VA_ARGS__, PTX_HERE))
void ptx_call_begins(ptx_fn *f);

#define ptx_op2(f, op, a, b, ...) PTX_ORDERED_(f, ptx_ordered_op2(f, op, PTX_VAL_(a), PTX_VAL_(b), __VA_ARGS__))
#define ptx_op3(f, op, a, b, c, ...) \
    PTX_ORDERED_(f, ptx_ordered_op3(f, op, PTX_VAL_(a), PTX_VAL_(b), PTX_VAL_(c), __VA_ARGS__))
#define ptx_set_at(f, variable, value, ...) ptx_set_value(f, variable, PTX_VAL_(value), __VA_ARGS__)
#define ptx_update_at(f, op, variable, b, ...) ptx_update_value(f, op, variable, PTX_VAL_(b), __VA_ARGS__)
#define ptx_shfl_at(f, op, a, lane, ...) PTX_ORDERED_(f, ptx_ordered_shfl(f, op, a, PTX_VAL_(lane), __VA_ARGS__))

#define PTX_PASTE_(a, b)         a##b
#define PTX_PASTE_LINE_(a, line) PTX_PASTE_(a, line)
#define PTX_NAME_(prefix)        PTX_PASTE_LINE_(prefix, __LINE__)
#define PTX_BLOCK_(name, begin)  for (ptx_block name = begin; name.f; ptx_block_end(&name))

/* A value, or a C number whose type the operation decides. */
ptx_val ptx_signed_literal(int64_t value);
ptx_val ptx_unsigned_literal(uint64_t value);
ptx_val ptx_real_literal(double value);

#ifdef __cplusplus
}
static inline ptx_val ptx_val_of(ptx_val v)            { return v; }
static inline ptx_val ptx_val_of(int v)                { return ptx_signed_literal(v); }
static inline ptx_val ptx_val_of(long v)               { return ptx_signed_literal(v); }
static inline ptx_val ptx_val_of(long long v)          { return ptx_signed_literal(v); }
static inline ptx_val ptx_val_of(unsigned v)           { return ptx_unsigned_literal(v); }
static inline ptx_val ptx_val_of(unsigned long v)      { return ptx_unsigned_literal(v); }
static inline ptx_val ptx_val_of(unsigned long long v) { return ptx_unsigned_literal(v); }
static inline ptx_val ptx_val_of(double v)             { return ptx_real_literal(v); }
#define PTX_VAL_(x) ptx_val_of(x)
#else
static inline ptx_val ptx_same_value(ptx_val v) { return v; }
#define PTX_VAL_(x)                                                                                              \
    _Generic((x), ptx_val: ptx_same_value, float: ptx_real_literal, double: ptx_real_literal,                    \
             unsigned: ptx_unsigned_literal, unsigned long: ptx_unsigned_literal,                                \
             unsigned long long: ptx_unsigned_literal, default: ptx_signed_literal)(x)
#endif
/* clang-format on */

#endif
