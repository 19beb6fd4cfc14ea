/* Calls that the quantisers' generated functions refuse: the documented status, no launch, nothing written.
 *
 *     quantisers_refuse DRIVER
 */
#include "../../calls.h"

#include "sample.h"

enum { MEMORY_BYTES = 1 << 16, POISON = 0xDA, N = 1000, NO_SUCH_WORD = 99 };

static CUdeviceptr memory; /* poison: negative numbers, so that their scales have other bytes */
static bool is_untouched(void)
{
    static unsigned char seen[MEMORY_BYTES];
    download(seen, memory, sizeof seen);
    for (size_t i = 0; i < sizeof seen; i++) {
        if (seen[i] != POISON)
            return false;
    }
    return true;
}

/* `launches`: whether a successful call launches. */
static void check(const char *what, kiln_status status, kiln_status expected, unsigned launches)
{
    judge(status == expected && launched.count == launches && is_untouched() == !launches, what, status);
    launched.count = 0;
    set(memory, POISON, MEMORY_BYTES);
}

/* Makes a correct call with one change. */
#define TRY(entry, good, change, expected)                                                                   \
    do {                                                                                                     \
        sample_##entry##_args a = good;                                                                      \
        a.change;                                                                                            \
        check(#entry ": " #change, sample_##entry(&loader, NULL, &a), KILN_ERROR_##expected, 0);             \
    } while (0)

/* Tries a pointer that is null, off by one, and off by half its alignment. */
#define TRY_POINTER(entry, good, pointer, alignment)                                                         \
    do {                                                                                                     \
        TRY(entry, good, pointer = 0, NULL_POINTER);                                                         \
        TRY(entry, good, pointer += 1, MISALIGNED);                                                          \
        TRY(entry, good, pointer += (alignment) / 2, MISALIGNED);                                            \
    } while (0)

/* Tests common to all entries. A call without elements needs nothing, not even pointers. */
#define TRY_SIZES(entry, good)                                                                               \
    do {                                                                                                     \
        sample_##entry##_args right = good, empty = {.n = 0}, any = good;                                    \
        check(#entry ": right", sample_##entry(&loader, NULL, &right), KILN_OK, 1);                          \
        check(#entry ": n = 0", sample_##entry(&loader, NULL, &empty), KILN_OK, 0);                          \
        any.group = GROUP_ANY;                                                                               \
        any.group_size = UINT64_MAX;                                                                         \
        check(#entry ": the largest group_size", sample_##entry(&loader, NULL, &any), KILN_OK, 1);           \
        any.group_size = 0;                                                                                  \
        check(#entry ": group_size = 0", sample_##entry(&loader, NULL, &any), KILN_ERROR_BAD_ARGUMENT, 0);   \
        TRY(entry, good, n = (UINT64_C(1) << 40) + 1, BAD_ARGUMENT);                                         \
        TRY(entry, good, n = UINT64_MAX, BAD_ARGUMENT);                                                      \
        TRY(entry, good, type = NO_SUCH_WORD, NO_VARIANT);                                                   \
        TRY(entry, good, group = NO_SUCH_WORD, NO_VARIANT);                                                  \
        TRY(entry, good, group = 32, NO_VARIANT); /* the bundle lacks these */                               \
        TRY(entry, good, group = 5, NO_VARIANT);  /* not the number of a word */                             \
        right.group = 64;                         /* numeric parameters are passed directly */               \
        check(#entry ": group = 64", sample_##entry(&loader, NULL, &right), KILN_OK, 1);                     \
        check(#entry ": no arguments", sample_##entry(&loader, NULL, NULL), KILN_ERROR_NULL_POINTER, 0);     \
        check(#entry ": no loader", sample_##entry(NULL, NULL, &right), KILN_ERROR_NULL_POINTER, 0);         \
        TRY_POINTER(entry, good, scale, 4);                                                                  \
        right.type = TYPE_F64;                                                                               \
        right.scale += 4;                                                                                    \
        check(#entry ": f64, scale += 4", sample_##entry(&loader, NULL, &right), KILN_ERROR_MISALIGNED, 0);  \
    } while (0)

#define TRY_ZERO(entry, good)                                                                                \
    do {                                                                                                     \
        sample_##entry##_args asym = good;                                                                   \
        asym.mode = MODE_ASYM;                                                                               \
        check(#entry ": asym", sample_##entry(&loader, NULL, &asym), KILN_OK, 1);                            \
        TRY_POINTER(entry, asym, zero, 4);                                                                   \
        TRY(entry, good, mode = NO_SUCH_WORD, NO_VARIANT);                                                   \
        sample_##entry##_args sym = good;                                                                    \
        sym.zero = 1; /* this entry ignores it */                                                            \
        check(#entry ": sym, zero = 1", sample_##entry(&loader, NULL, &sym), KILN_OK, 1);                    \
    } while (0)

/* All entries number words alike. */
enum {
    TYPE_F64 = SAMPLE_INT4_PACK_TYPE_F64,
    MODE_ASYM = SAMPLE_INT4_PACK_MODE_ASYM,
    GROUP_ANY = SAMPLE_INT4_PACK_GROUP_ANY
};

static void try_int4(CUdeviceptr at[4])
{
    const sample_int4_scale_args scale = {.in = at[0], .scale = at[1], .zero = at[2], .n = N};
    const sample_int4_pack_args pack = {.in = at[0], .scale = at[1], .zero = at[2], .packed = at[3], .n = N};
    const sample_int4_quantize_args quantize = {
        .in = at[0], .scale = at[1], .zero = at[2], .packed = at[3], .n = N};
    const sample_int4_unpack_args unpack = {
        .out = at[0], .scale = at[1], .zero = at[2], .packed = at[3], .n = N};
    TRY_SIZES(int4_scale, scale);
    TRY_SIZES(int4_pack, pack);
    TRY_SIZES(int4_quantize, quantize);
    TRY_SIZES(int4_unpack, unpack);
    TRY_ZERO(int4_scale, scale);
    TRY_ZERO(int4_pack, pack);
    TRY_ZERO(int4_quantize, quantize);
    TRY_ZERO(int4_unpack, unpack);
    TRY_POINTER(int4_scale, scale, in, 16);
    TRY_POINTER(int4_pack, pack, in, 16);
    TRY_POINTER(int4_pack, pack, packed, 16);
    TRY_POINTER(int4_quantize, quantize, in, 16);
    TRY_POINTER(int4_quantize, quantize, packed, 16);
    TRY_POINTER(int4_unpack, unpack, packed, 16);
    TRY_POINTER(int4_unpack, unpack, out, 16);
    TRY(int4_pack, pack, nibbles = NO_SUCH_WORD, NO_VARIANT);
    TRY(int4_quantize, quantize, nibbles = NO_SUCH_WORD, NO_VARIANT);
    TRY(int4_unpack, unpack, nibbles = NO_SUCH_WORD, NO_VARIANT);
}

static void try_nf4(CUdeviceptr at[4])
{
    const sample_nf4_scale_args scale = {.in = at[0], .scale = at[1], .n = N};
    const sample_nf4_pack_args pack = {.in = at[0], .scale = at[1], .packed = at[3], .n = N};
    const sample_nf4_quantize_args quantize = {.in = at[0], .scale = at[1], .packed = at[3], .n = N};
    const sample_nf4_unpack_args unpack = {.out = at[0], .scale = at[1], .packed = at[3], .n = N};
    TRY_SIZES(nf4_scale, scale);
    TRY_SIZES(nf4_pack, pack);
    TRY_SIZES(nf4_quantize, quantize);
    TRY_SIZES(nf4_unpack, unpack);
    TRY_POINTER(nf4_scale, scale, in, 16);
    TRY_POINTER(nf4_pack, pack, in, 16);
    TRY_POINTER(nf4_pack, pack, packed, 16);
    TRY_POINTER(nf4_quantize, quantize, in, 16);
    TRY_POINTER(nf4_quantize, quantize, packed, 16);
    TRY_POINTER(nf4_unpack, unpack, packed, 16);
    TRY_POINTER(nf4_unpack, unpack, out, 16);
    TRY(nf4_pack, pack, nibbles = NO_SUCH_WORD, NO_VARIANT);
    TRY(nf4_quantize, quantize, nibbles = NO_SUCH_WORD, NO_VARIANT);
    TRY(nf4_unpack, unpack, nibbles = NO_SUCH_WORD, NO_VARIANT);
}

/* A variant's own function knows its parameters. */
static void try_variant(CUdeviceptr at[4])
{
    sample_nf4_scale_args a = {.in = at[0], .scale = at[1], .n = N};
    check("nf4_scale_f16_64: as left out", sample_nf4_scale_f16_64(&loader, NULL, &a), KILN_OK, 1);
    a.type = TYPE_F64;
    check("nf4_scale_f16_64: f64", sample_nf4_scale_f16_64(&loader, NULL, &a), KILN_ERROR_NO_VARIANT, 0);
}

/* The details name the mistake. */
static void try_details(CUdeviceptr at[4])
{
    kiln_error error;
    sample_nf4_scale_args a = {.in = at[0] + 8, .scale = at[1], .n = N};
    check("nf4_scale: in += 8", sample_nf4_scale(&loader, NULL, &a), KILN_ERROR_MISALIGNED, 0);
    kiln_last_error(&loader, &error);
    judge(error.status == KILN_ERROR_MISALIGNED &&
              strcmp(error.detail, "in must be aligned to 16 bytes") == 0,
          error.detail, error.status);
}

int main(int argc, char **argv)
{
    CUdeviceptr at[4];
    if (argc != 2)
        return 2;
    open_device(argv[1], &sample_bundle);
    memory = allocate(MEMORY_BYTES);
    set(memory, POISON, MEMORY_BYTES);
    for (size_t i = 0; i < 4; i++)
        at[i] = memory + i * MEMORY_BYTES / 4;
    try_int4(at);
    try_nf4(at);
    try_variant(at);
    try_details(at);
    const sample_nf4_scale_args a = {.in = at[0], .scale = at[1], .n = N};
    need(kiln_close(&loader) == KILN_OK, "kiln_close");
    check("nf4_scale: after kiln_close", sample_nf4_scale(&loader, NULL, &a), KILN_ERROR_CLOSED, 0);
    printf("%u of %u calls ended as documented\n", trials - wrong, trials);
    return wrong != 0;
}
