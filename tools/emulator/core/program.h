/* A kernel decoded for execution: a flat array of operations, each with its handler and its operands resolved. */
#ifndef EMU_PROGRAM_H
#define EMU_PROGRAM_H

#include "../front/module.h"

typedef struct emu_warp emu_warp;
typedef struct emu_op emu_op;

/* Executes one operation for the lanes in `mask`, which is never empty. */
typedef void emu_handler(emu_warp *warp, const emu_op *op, uint32_t mask);

enum { EMU_RN, EMU_RZ, EMU_RM, EMU_RP, EMU_RNA, EMU_RNI, EMU_RZI, EMU_RMI, EMU_RPI };
enum { EMU_COMBINE_NONE, EMU_COMBINE_AND, EMU_COMBINE_OR, EMU_COMBINE_XOR };

/* Arithmetic modifiers. */
enum {
    EMU_FTZ = 1 << 0,
    EMU_SAT = 1 << 1,
    EMU_RELU = 1 << 2,
    EMU_NAN = 1 << 3,
    EMU_ABS = 1 << 4,
    EMU_XORSIGN = 1 << 5,
    EMU_CC = 1 << 6,
    EMU_SATFINITE = 1 << 7,
    EMU_OOB = 1 << 8,
    EMU_WRAP = 1 << 9,
    EMU_SHIFTAMT = 1 << 10,
    EMU_APPROX = 1 << 11,
};

/* Modifiers of memory and control operations. */
enum {
    EMU_RELAXED = 1 << 0,
    EMU_ACQUIRE = 1 << 1,
    EMU_RELEASE = 1 << 2,
    EMU_VOLATILE = 1 << 3,
    EMU_STRONG = EMU_RELAXED | EMU_ACQUIRE | EMU_RELEASE | EMU_VOLATILE,
    EMU_SCOPE_CTA = 1 << 4,
    EMU_SCOPE_CLUSTER = 2 << 4,
    EMU_SCOPE_GPU = 3 << 4,
    EMU_SCOPE_SYS = 4 << 4,
    EMU_SCOPE = 7 << 4,
    EMU_CACHE_HINT = 1 << 7,
    EMU_NON_COHERENT = 1 << 8,
    EMU_ALIGNED = 1 << 9,
    EMU_UNIFORM = 1 << 10,
    EMU_TO = 1 << 11,
    EMU_ADDRESS_32 = 1 << 12, /* register plus offset wrap at 32 bits */
};

typedef struct emu_mods {
    uint8_t type, source; /* emu_type: of the instruction; the second type of set, slct, cvt, ... */
    union {
        uint8_t round;   /* EMU_RN... */
        uint8_t combine; /* EMU_COMBINE_...: the boolean operator of setp, set, lop3 */
    };
    uint8_t mode;  /* index of the chosen alternative in its row, or the comparison */
    uint8_t space; /* emu_space */
    uint8_t count; /* elements of the vector; 1 for scalars */
    uint16_t flags;
} emu_mods;

#define EMU_MAX_ARGS 6

/* Operand offsets are relative to the warp's registers; with bit 0 set, to the program's constants. */
struct emu_op {
    emu_handler *run;
    const uint32_t *list; /* elements of vector operands */
    int64_t imm;          /* immediate, address offset, or the target as a const emu_op * */
    uint32_t arg[EMU_MAX_ARGS];
    uint32_t guard; /* offset of the predicate, bit 0: negated; 0: none */
    uint32_t at;    /* index of the instruction in the program */
    emu_mods mods;
};

#define EMU_LANES 32

/* A slot holds a value of all 32 lanes side by side; slots begin on cache lines. */
static inline uint32_t emu_slot_bytes(emu_type type)
{
    uint32_t bytes = EMU_LANES * (uint32_t)emu_types[type].bytes;
    return type == EMU_PRED || bytes < 64 ? 64 : bytes;
}

/* Unused results go to this slot. */
#define EMU_SINK       0u
#define EMU_SINK_BYTES 512u

/* What an operation reads and writes, for observers. The first `writes` entries of arg are destinations. list_writes: the
   list is a destination; if it also holds sources, the first list_results entries are the destinations. */
typedef struct emu_uses {
    uint8_t writes, args;
    bool list_writes;
    bool is_first; /* the first operation of its instruction */
    uint16_t list_size, list_results;
} emu_uses;

typedef struct emu_program {
    const emu_module *module;
    const emu_function *kernel;
    emu_arena arena;
    emu_op *ops;
    emu_uses *uses; /* by operation */
    size_t op_count;
    const emu_instruction **instructions;
    const char **functions; /* by instruction: the name of its function */
    size_t instruction_count;
    char *constants;
    uint32_t constant_bytes;
    uint32_t register_bytes;
    uint32_t local_bytes;           /* per thread, parameters of calls included */
    uint32_t reserved_shared_bytes; /* reserved for the system at the start of shared memory on this device */
    uint32_t static_shared_bytes;
    uint32_t dynamic_shared_start; /* after the reserved and the static bytes */
    const emu_op *entry;
    bool has_products;       /* uses wgmma.mma_async */
    bool sets_registers;     /* setmaxnreg */
    bool has_bulk;           /* bulk copies */
    bool has_maps;           /* bulk copies by tensor maps */
    struct emu_plans *plans; /* kept by the checks, in the arena; NULL until a launch needs them */
} emu_program;

#endif
