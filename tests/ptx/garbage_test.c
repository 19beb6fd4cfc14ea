/* Uninitialised values: every call of the builder accepts any garbage without a crash. If a value cannot belong to the
 * kernel, the error says that it was never set. */
#define _GNU_SOURCE /* open_memstream */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../generator/ptx/builder.h"

/* Correct values, and the garbage g. */
typedef struct scene {
    ptx_val n, x, s, p, wide, variable;
} scene;

/* clang-format off */
static void in_arithmetic(ptx_fn *f, const scene *k, ptx_val g)
{
    ptx_neg(f, g);
    ptx_add(f, g, k->n);
    ptx_add(f, k->n, g);
    ptx_fma(f, g, g, g);
    ptx_select(f, g, k->n, k->n);
    ptx_cvt(f, PTX_U64, g);
    ptx_as(f, PTX_S32, g);
    ptx_prmt(f, k->n, g, ptx_u32(0));
}
static void in_pairs(ptx_fn *f, const scene *k, ptx_val g)
{
    ptx_val parts[2] = {k->n, g};
    ptx_pack(f, PTX_B64, 2, parts);
    ptx_unpack(f, PTX_U32, 2, parts, g);
    ptx_cvt_pair(f, PTX_F16X2, g, g);
}
static void in_variables(ptx_fn *f, const scene *k, ptx_val g)
{
    ptx_var(f, g);
    ptx_set(f, g, k->n);
    ptx_set(f, k->variable, g);
    ptx_add_to(f, k->variable, g);
    ptx_uniform(f, g);
}
static void in_addresses(ptx_fn *f, const scene *k, ptx_val g)
{
    ptx_at(f, g, k->n);
    ptx_at(f, k->x, g);
    ptx_at_const(f, g, 3);
    ptx_cast_ptr(f, g, PTX_U8);
    ptx_address(f, g);
    ptx_pointer(f, PTX_GLOBAL, PTX_F32, g);
    ptx_with_policy(f, g, g);
    ptx_with_policy(f, k->x, g);
    ptx_prefetch_l2(f, g);
    ptx_prefetch_l2_bytes(f, g, k->n);
    ptx_prefetch_l2_bytes(f, k->x, g);
}
static void in_memory(ptx_fn *f, const scene *k, ptx_val g)
{
    ptx_val values[16], garbage[16];
    for (int i = 0; i < 16; i++)
        garbage[i] = g;
    ptx_load(f, g);
    ptx_load_vec(f, 4, values, g, PTX_PLAIN);
    ptx_load_vec(f, 8, values, g, PTX_PLAIN);
    ptx_store(f, g, k->n);
    ptx_store(f, k->x, g);
    ptx_store_vec(f, 4, k->x, garbage, PTX_PLAIN);
    ptx_store_vec(f, 8, ptx_cast_ptr(f, k->x, PTX_U16), garbage, PTX_PLAIN);
    ptx_store_vec(f, 16, ptx_cast_ptr(f, k->x, PTX_S8), garbage, PTX_PLAIN);
    ptx_store_vec(f, 8, g, values, PTX_PLAIN);
}
static void in_copies(ptx_fn *f, const scene *k, ptx_val g)
{
    ptx_cp_async(f, g, k->x, 16, PTX_CG);
    ptx_cp_async(f, k->s, g, 16, PTX_CG);
    ptx_cp_async_zfill(f, k->s, k->x, 16, g, PTX_CG);
    ptx_mbarrier_init(f, g, k->n);
    ptx_mbarrier_init(f, ptx_cast_ptr(f, k->s, PTX_B64), g);
}
static void in_atomics(ptx_fn *f, const scene *k, ptx_val g)
{
    ptx_atom_add(f, g, k->n, PTX_PLAIN);
    ptx_atom_add(f, k->x, g, PTX_PLAIN);
    ptx_atom_cas(f, k->x, k->n, g, PTX_PLAIN);
    ptx_red_add(f, k->x, g, PTX_PLAIN);
}
static void in_warps(ptx_fn *f, const scene *k, ptx_val g)
{
    ptx_val in_range;
    ptx_shfl_xor(f, g, ptx_u32(1));
    ptx_shfl_idx(f, k->n, g);
    ptx_shfl_up_in_range(f, k->n, g, &in_range);
    ptx_reduce_lanes(f, PTX_OP_ADD, 32, g);
    ptx_ballot(f, g);
    ptx_match_all_at(f, g, PTX_HERE);
}
static void in_matrices(ptx_fn *f, const scene *k, ptx_val g)
{
    ptx_val a[8], c[8];
    for (int i = 0; i < 8; i++) {
        a[i] = g;
        c[i] = k->n;
    }
    ptx_mma(f, PTX_MMA_M16N8K16_F16_F32, c, a, a, a);
    ptx_mma_to(f, PTX_MMA_M16N8K16_F16_F32, a, a, a);
    ptx_ldmatrix(f, 4, c, g);
    ptx_stmatrix(f, 4, g, c);
    ptx_stmatrix(f, 4, k->s, a);
}
static void in_group_products(ptx_fn *f, const scene *k, ptx_val g)
{
    const ptx_wgmma_form form = {.types = PTX_WGMMA_S8_S32, .n = 8};
    ptx_val bad[4] = {g, g, g, g}, good[4] = {k->variable, k->variable, k->variable, k->variable};
    ptx_wgmma(f, form, 0, bad, bad, g);
    ptx_wgmma(f, form, g, good, good, k->wide);
    ptx_wgmma(f, form, 0, good, bad, k->wide);
    ptx_wgmma_shared(f, form, 1, bad, k->wide, k->wide);
    ptx_wgmma_shared(f, form, 1, good, g, k->wide);
    ptx_descriptor(f, g, ((ptx_matrix){.swizzle_bytes = 128}));
}
static void in_control(ptx_fn *f, const scene *k, ptx_val g)
{
    PTX_IF (f, g) {
        ptx_add(f, k->n, k->n);
    }
    PTX_WHEN (f, g) {
        ptx_add(f, k->n, k->n);
    }
    PTX_FOR (f, i, g, k->n, ptx_u32(1)) {
        ptx_add(f, i, k->n);
    }
    PTX_FOR (f, i, k->n, g, ptx_u32(1)) {
        ptx_break_if(f, g);
    }
    PTX_LOOP (f) {
        ptx_repeat_if(f, g);
    }
}
static void in_text(ptx_fn *f, const scene *k, ptx_val g)
{
    const ptx_type u32 = PTX_U32;
    const ptx_raw_form form = {.text = "add.u32 $0, $1, $2", .sm = 75, .version = 63};
    ptx_val out;
    ptx_raw(f, form, 1, &u32, &out, 2, ((ptx_val[]){k->n, g}));
}

static void (*const calls[])(ptx_fn *f, const scene *k, ptx_val g) = {
    in_arithmetic, in_pairs, in_variables, in_addresses, in_memory, in_copies, in_atomics, in_warps, in_matrices,
    in_group_products, in_control, in_text};
enum { CALLS = sizeof calls / sizeof calls[0], REGISTER = 1 };
/* clang-format on */

/* Returns the checker's errors for a kernel with g in these calls. */
static char *complaints(void (*call)(ptx_fn *f, const scene *k, ptx_val g), ptx_val g)
{
    char *said = NULL;
    size_t bytes;
    arena *a = arena_new();
    FILE *out = open_memstream(&said, &bytes);
    ptx_fn *f = ptx_new(a, "k", (target){90, TARGET_BASE}, (const uint32_t[]){64, 1, 1});
    scene k = {.n = ptx_param(f, PTX_U32, "n"), .x = ptx_param_ptr(f, PTX_U32, "x")};
    k.s = ptx_shared(f, PTX_U32, 64, 16);
    k.p = ptx_lt(f, k.n, ptx_u32(1));
    k.wide = ptx_cvt(f, PTX_U64, k.n);
    k.variable = ptx_var(f, ptx_u32(1));
    call(f, &k, g);
    assert_false(ptx_check(f, out));
    fclose(out);
    arena_free(a);
    return said;
}

/* Values that no call returns: the first error of any call is that they were never set. */
static void impossible_values_are_told(void **state)
{
    (void)state;
    static const ptx_val values[] = {
        {.kind = 3, .type = PTX_U32, .reg = 1},
        {.kind = 0xcc,
         .type = 0xcc,
         .reg = 0xcccccccc,
         .element = 0xcc,
         .space = 0xcc,
         .bits = 0xcccccccccccccccc},
        {.kind = REGISTER, .type = PTX_U32, .reg = 0},
        {.kind = REGISTER, .type = PTX_U32, .reg = 0xffffffff},
        {.kind = REGISTER, .type = PTX_U32, .reg = 4000},
        {.kind = REGISTER, .type = 200, .reg = 1},
        {.kind = REGISTER, .type = PTX_PTR, .element = 200, .reg = 2},
        {.kind = REGISTER, .type = PTX_PTR, .element = PTX_U32, .space = 77, .reg = 2},
        {.kind = REGISTER,
         .type = PTX_PTR,
         .element = PTX_U32,
         .space = PTX_GLOBAL,
         .reg = 2,
         .bits = UINT64_MAX},
        {.kind = REGISTER, .type = PTX_PTR, .element = PTX_U32, .space = PTX_GLOBAL, .reg = 0xffff},
        {.kind = 2, .type = 99, .bits = 1},
    };
    for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
        for (size_t i = 0; i < CALLS; i++) {
            char *said = complaints(calls[i], values[v]);
            char first[256];
            snprintf(first, sizeof first, "%.*s", (int)strcspn(said, "\n"), said);
            if (!strstr(first, "was never given a value"))
                fail_msg("value %zu, call %zu: %s", v, i, first);
            free(said);
        }
    }
}

/* Random bytes, some of which are the kernel's values by chance. */
static void any_bytes_are_taken(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (int round = 0; round < 2000; round++) {
        unsigned char bytes[sizeof(ptx_val)];
        ptx_val g;
        for (size_t i = 0; i < sizeof bytes; i++) {
            random = random * 1664525u + 1013904223u;
            bytes[i] = (unsigned char)(random >> 24 & (round % 2 ? 0xff : 0x07));
        }
        memcpy(&g, bytes, sizeof g);
        char *said = NULL;
        size_t length;
        arena *a = arena_new();
        FILE *out = open_memstream(&said, &length);
        ptx_fn *f = ptx_new(a, "k", (target){90, TARGET_BASE}, (const uint32_t[]){64, 1, 1});
        const scene k = {ptx_param(f, PTX_U32, "n"),     ptx_param_ptr(f, PTX_U32, "x"),
                         ptx_shared(f, PTX_U32, 64, 16), ptx_lt(f, ptx_tid_x(f), ptx_u32(1)),
                         ptx_bits(PTX_U64, 1),           ptx_var(f, ptx_u32(1))};
        calls[(size_t)round / 2 % CALLS](f, &k, g);
        ptx_check(f, out);
        fclose(out);
        free(said);
        arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impossible_values_are_told),
        cmocka_unit_test(any_bytes_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
