/* How handlers are written. A handler works on whole slots. If all lanes are active, it is a plain loop that the compiler
   vectorises; otherwise it computes all lanes in a temporary and copies the active ones. So an expression must
   be harmless for any bits, also those of inactive lanes.

   The files of exec/ are compiled once per instruction set of the host; exported names use EMU_LEVEL_NAME. */
#ifndef EMU_EXEC_H
#define EMU_EXEC_H

#include "../core/launch.h"
#include "../core/warp.h"
#include "operations.h"

#include <string.h>

#define EMU_JOIN_(a, b)      a##_##b
#define EMU_JOIN(a, b)       EMU_JOIN_(a, b)
#define EMU_LEVEL_NAME(name) EMU_JOIN(name, EMU_LEVEL)

/* A destination is either the same slot as a source or disjoint from it, so lanes are independent. */
#ifdef __clang__
#define EACH_LANE                                                                                            \
    _Pragma("clang loop vectorize(assume_safety) unroll(disable)") for (int i = 0; i < EMU_LANES; i++)
#else
#define EACH_LANE _Pragma("GCC ivdep") for (int i = 0; i < EMU_LANES; i++)
#endif

#define ACTIVE_LANES(mask)                                                                                   \
    for (uint32_t m_ = (mask), i = 0; m_ && (i = (uint32_t)__builtin_ctz(m_), true); m_ &= m_ - 1)

#define LANES_OF(T, n) ((T *)emu_lanes(w, op->arg[n]))

/* Writes `value`, an expression of the lane index i, to the active lanes of d. */
#define SET_LANES(T, d, value)                                                                               \
    do {                                                                                                     \
        T *d_ = (d);                                                                                         \
        if (mask == EMU_ALL) {                                                                               \
            EACH_LANE d_[i] = (T)(value);                                                                    \
        } else {                                                                                             \
            T t_[EMU_LANES];                                                                                 \
            EACH_LANE t_[i] = (T)(value);                                                                    \
            ACTIVE_LANES(mask) d_[i] = t_[i];                                                                \
        }                                                                                                    \
    } while (0)

#define HANDLER(name) static void name(emu_warp *w, const emu_op *op, uint32_t mask)

/* A handler that calls a function with more arguments. */
#define HANDLER_CALLS(name, function, ...)                                                                   \
    HANDLER(name)                                                                                            \
    {                                                                                                        \
        function(w, op, mask, __VA_ARGS__);                                                                  \
    }

/* Returns true if all 32 lanes are active. Otherwise the lanes wait for the others; if some have exited, the launch fails. */
static inline bool is_whole_warp(emu_warp *w, const emu_op *op, uint32_t mask)
{
    if (mask == EMU_ALL)
        return true;
    if (mask != w->alive) {
        emu_wait_at(w, op, (emu_fragment){.mask = mask, .members = EMU_ALL, .wait = EMU_WAIT_LANES});
        return false;
    }
    return !emu_is_misused(w, op, mask, EMU_PART_OF_WARP);
}

/* d = f(a), f(a, b), f(a, b, c). T is the type of the destination, A, B, C those of the sources; a, b, c are values of one
   lane. */
#define DEFINE1(name, T, A, value)                                                                           \
    static inline T name##_f(A a)                                                                            \
    {                                                                                                        \
        return (T)(value);                                                                                   \
    }                                                                                                        \
    HANDLER(name)                                                                                            \
    {                                                                                                        \
        const A *a_ = LANES_OF(const A, 1);                                                                  \
        SET_LANES(T, LANES_OF(T, 0), name##_f(a_[i]));                                                       \
    }

#define DEFINE2(name, T, A, B, value)                                                                        \
    static inline T name##_f(A a, B b)                                                                       \
    {                                                                                                        \
        return (T)(value);                                                                                   \
    }                                                                                                        \
    HANDLER(name)                                                                                            \
    {                                                                                                        \
        const A *a_ = LANES_OF(const A, 1);                                                                  \
        const B *b_ = LANES_OF(const B, 2);                                                                  \
        SET_LANES(T, LANES_OF(T, 0), name##_f(a_[i], b_[i]));                                                \
    }

#define DEFINE3(name, T, A, B, C, value)                                                                     \
    static inline T name##_f(A a, B b, C c)                                                                  \
    {                                                                                                        \
        return (T)(value);                                                                                   \
    }                                                                                                        \
    HANDLER(name)                                                                                            \
    {                                                                                                        \
        const A *a_ = LANES_OF(const A, 1);                                                                  \
        const B *b_ = LANES_OF(const B, 2);                                                                  \
        const C *c_ = LANES_OF(const C, 3);                                                                  \
        SET_LANES(T, LANES_OF(T, 0), name##_f(a_[i], b_[i], c_[i]));                                         \
    }

/* For prefetches, whose addresses need not be valid; hints; and register limits, which have no effect here. */
static inline void nothing(emu_warp *w, const emu_op *op, uint32_t mask)
{
    (void)w, (void)op, (void)mask;
}

#define TYPES(name) static emu_handler *const name[EMU_TYPES]

#define EXPORT_ROWS(name) const emu_rows EMU_LEVEL_NAME(name) = {rows, sizeof rows / sizeof *rows}

/* Reinterprets bits without breaking aliasing rules. */
static inline uint32_t bits_of_float(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float float_of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint64_t bits_of_double(double d)
{
    uint64_t u;
    memcpy(&u, &d, sizeof u);
    return u;
}

static inline double double_of_bits(uint64_t u)
{
    double d;
    memcpy(&d, &u, sizeof d);
    return d;
}

/* Makes all NaNs the same one, so that results do not depend on the host. */
static inline float canonical(float f)
{
    return f == f ? f : float_of_bits(0x7fffffff);
}

static inline double canonical64(double d)
{
    return d == d ? d : double_of_bits(0x7fffffffffffffff);
}

#endif
