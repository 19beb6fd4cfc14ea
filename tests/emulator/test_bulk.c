/* Bulk copies and tensor maps: the values of every form, against the ISA's tables (5.5.3, 5.5.7, 9.7.9.25, 9.7.9.27), under all
   checks; then each rule, broken and kept. Nothing here knows how the emulator does it. ptxas, where it is, takes every kernel. */
#include "rules_test.h"

#include <math.h>

static const char header[] = ".version 8.8\n.target sm_90a\n.address_size 64\n"
                             ".extern .shared .align 1024 .b8 s[];\n";

enum { MOST_RANK = 5, SHARED_BYTES = 65536 };

/* A kernel with a tensor map as its last parameter. */
static const char *text_of(const char *name, const char *body)
{
    static char text[32768];
    snprintf(
        text, sizeof text,
        "%s.visible .entry %s(.param .u64 p0, .param .u64 p1, .param .u32 n, .param .align 64 .b8 m[128])\n{\n%s\n}\n",
        name ? "" : header, name ? name : "k", body);
    return text;
}

static CUfunction function_of(const char *body)
{
    CUmodule module;
    CUfunction f;
    CUresult r = load_text(text_of(NULL, body), &module);
    if (r != CUDA_SUCCESS)
        fail_msg("load: %d\n%s\n%s", (int)r, test_log, body);
    r = cuModuleGetFunction(&f, module, "k");
    if (r != CUDA_SUCCESS)
        fail_msg("function: %d\n%s\n%s", (int)r, test_log, body);
    return f;
}

static CUresult run(CUfunction f, unsigned grid, unsigned threads, CUdeviceptr p0, CUdeviceptr p1, unsigned n,
                    CUtensorMap *map)
{
    void *parameters[] = {&p0, &p1, &n, map};
    CUresult r = cuLaunchKernel(f, grid, 1, 1, threads, 1, 1, SHARED_BYTES, NULL, parameters, NULL);
    return r != CUDA_SUCCESS ? r : cuCtxSynchronize();
}

static void allow_shared(CUfunction f)
{
    enum { MAX_DYNAMIC_SHARED = 8 };
    assert_int_equal(cuFuncSetAttribute(f, MAX_DYNAMIC_SHARED, SHARED_BYTES), CUDA_SUCCESS);
}

/* ---- boxes --------------------------------------------------------------------------------------------------------- */

/* CUtensorMapDataType */
static const struct {
    const char *name;
    int bytes;
    bool is_float;
} types[] = {{"u8", 1, false},  {"u16", 2, false}, {"u32", 4, false}, {"s32", 4, false}, {"u64", 8, false},
             {"s64", 8, false}, {"f16", 2, true},  {"f32", 4, true},  {"f64", 8, true},  {"bf16", 2, true}};

enum { TYPES = sizeof types / sizeof *types, NONE = 0, FILL_NAN = 1 };

typedef struct tensor {
    int type, rank, swizzle, fill; /* swizzle: 0 to 3 */
    uint64_t size[MOST_RANK], stride[MOST_RANK - 1];
    unsigned box[MOST_RANK], step[MOST_RANK];
    int corner[MOST_RANK];
    int shared; /* where the box begins in shared memory, behind a multiple of 1024 */
} tensor;

static unsigned count_along(const tensor *t, int d)
{
    unsigned step = d ? t->step[d] : 1;
    return (t->box[d] + step - 1) / step;
}

static unsigned box_bytes(const tensor *t)
{
    unsigned n = (unsigned)types[t->type].bytes;
    for (int d = 0; d < t->rank; d++)
        n *= count_along(t, d);
    return n;
}

static uint64_t tensor_bytes(const tensor *t)
{
    return t->rank == 1 ? t->size[0] * (unsigned)types[t->type].bytes
                        : t->stride[t->rank - 2] * t->size[t->rank - 1];
}

/* Where byte `at` of shared memory lies after swizzling: the tables of 5.5.7, of rows of eight chunks. */
static unsigned swizzled(int swizzle, unsigned at)
{
    unsigned row = at / 128, chunk = at / 16 % 8;
    switch (swizzle) {
    case 1:
        chunk ^= row % 2;
        break;
    case 2:
        chunk ^= row % 4;
        break;
    case 3:
        chunk ^= row % 8;
        break;
    default:
        break;
    }
    return row * 128 + chunk * 16 + at % 16;
}

/* Element n of the box: its byte in shared memory, and in the tensor; false where it lies outside. */
static bool place(const tensor *t, unsigned n, unsigned *shared, uint64_t *global)
{
    unsigned bytes = (unsigned)types[t->type].bytes;
    bool is_inside = true;
    *shared = swizzled(t->swizzle, (unsigned)t->shared + n * bytes);
    *global = 0;
    for (int d = 0; d < t->rank; d++) {
        int64_t c = t->corner[d] + (int64_t)(n % count_along(t, d) * (d ? t->step[d] : 1));
        n /= count_along(t, d);
        is_inside &= c >= 0 && c < (int64_t)t->size[d];
        *global += (uint64_t)c * (d ? t->stride[d - 1] : bytes);
    }
    return is_inside;
}

static tensor random_tensor(int type, int rank, int swizzle, bool stores)
{
    tensor t = {.type = type, .rank = rank, .swizzle = swizzle};
    unsigned bytes = (unsigned)types[type].bytes, span = 16u << swizzle, unit = 16 / bytes;
    t.box[0] = swizzle ? span / bytes : unit * (1 + (unsigned)(random_bits() % 4));
    t.size[0] = t.box[0] + random_bits() % (2 * t.box[0]);
    t.corner[0] = (int)(unit * (random_bits() % 4)) - (stores ? 0 : (int)unit);
    uint64_t stride = (t.size[0] * bytes + 15) / 16 * 16 + random_bits() % 3 * 16;
    for (int d = 1; d < rank; d++) {
        t.box[d] = 1 + (unsigned)(random_bits() % (rank > 3 ? 4 : 9));
        t.step[d] = random_bits() % 3 ? 1 : 1 + (unsigned)(random_bits() % 3);
        t.size[d] = 1 + random_bits() % (rank > 3 ? 5 : 12);
        t.corner[d] = (int)(random_bits() % 6) - (stores ? 0 : 2);
        t.stride[d - 1] = stride;
        stride *= t.size[d];
        stride += random_bits() % 2 * 16;
    }
    t.step[0] = 1;
    t.fill = types[type].is_float && random_bits() % 2 ? FILL_NAN : NONE;
    t.shared = (int)(random_bits() % 9) * 128;
    return t;
}

static CUtensorMap map_of(const tensor *t, CUdeviceptr address)
{
    CUtensorMap map;
    assert_int_equal(cuTensorMapEncodeTiled(&map, t->type, (unsigned)t->rank, (void *)(uintptr_t)address,
                                            t->size, t->stride, t->box, t->step, 0, t->swizzle, 0, t->fill),
                     CUDA_SUCCESS);
    map.opaque[1] &= ~(UINT64_C(1) << 21); /* programs do this to NVIDIA's maps */
    return map;
}

#define ADD(...) snprintf(body + strlen(body), sizeof body - strlen(body), __VA_ARGS__)

static void add_coordinates(char *to, size_t size, const tensor *t)
{
    for (int d = 0; d < t->rank; d++)
        snprintf(to + strlen(to), size - strlen(to), "%s%d", d ? ", " : "{", t->corner[d]);
    snprintf(to + strlen(to), size - strlen(to), "}");
}

#define DECLARE                                                                                                 \
    ".reg .u64 %p<9>; .reg .u32 %r<19>; .reg .pred %q<5>; .reg .b64 %x<5>; .reg .b32 %c<5>; .reg .b32 %u<3>;\n" \
    ".shared .align 8 .b64 bar;\n"                                                                              \
    "ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1]; ld.param.u32 %r9, [n]; mov.b64 %p2, m; cvta.param.u64 %p2, %p2;\n"
#define START                                                                                                \
    "mov.u32 %r0, %tid.x; setp.eq.u32 %q0, %r0, 0; mov.u32 %r1, s; @%q0 mbarrier.init.shared.b64 [bar], 1;\nbar.sync 0;\n"
/* Between shared memory and the buffer at p0: all bytes, by all threads. */
#define TO_GLOBAL(label)                                                                                                    \
    "shl.b32 %r2, %r0, 2;\n" label ": add.u32 %r3, %r1, %r2; cvt.u64.u32 %p4, %r2; add.u64 %p4, %p4, %p0;\n"                \
    "ld.shared.b32 %r4, [%r3]; st.global.b32 [%p4], %r4; add.u32 %r2, %r2, 256; setp.lt.u32 %q1, %r2, %r9; @%q1 bra " label \
    ";\n"
#define TO_SHARED(label)                                                                                                    \
    "shl.b32 %r2, %r0, 2;\n" label ": add.u32 %r3, %r1, %r2; cvt.u64.u32 %p4, %r2; add.u64 %p4, %p4, %p0;\n"                \
    "ld.global.b32 %r4, [%p4]; st.shared.b32 [%r3], %r4; add.u32 %r2, %r2, 256; setp.lt.u32 %q1, %r2, %r9; @%q1 bra " label \
    ";\n"
#define FENCE_ASYNC "fence.proxy.async;\n"
#define WAIT_PHASE(label, object, parity)                                                                    \
    label ": mbarrier.try_wait.parity.shared.b64 %q1, [" object "], " parity "; @!%q1 bra " label ";\n"

enum { THREADS = 64 };

/* The bytes of shared memory that a box takes, with those before it, to whole kilobytes. */
static unsigned shared_extent(const tensor *t)
{
    return ((unsigned)t->shared + box_bytes(t) + 1023) / 1024 * 1024;
}

static const char *load_body_of(const tensor *t, int form)
{
    static const char *const forms[] = {
        "cp.async.bulk.tensor.%dd.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%%r5], [%%p2, ",
        "cp.async.bulk.tensor.%dd.shared::cta.global.mbarrier::complete_tx::bytes [%%r5], [%%p2, ",
        "cp.async.bulk.tensor.%dd.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%%r5], [%%p2, "};
    static char body[8192];
    body[0] = '\0';
    ADD("%s%s", DECLARE, START TO_SHARED("FILL") FENCE_ASYNC "bar.sync 0;\n");
    ADD("add.u32 %%r5, %%r1, %d; createpolicy.fractional.L2::evict_first.b64 %%x0;\n", t->shared);
    ADD("@%%q0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], %u;\n@%%q0 ", box_bytes(t));
    ADD(forms[form], t->rank);
    add_coordinates(body, sizeof body, t);
    ADD("], [bar]%s;\n", form == 2 ? ", %x0" : "");
    ADD("%s", WAIT_PHASE("W", "bar", "0") TO_GLOBAL("OUT") "ret;");
    return body;
}

static const char *store_body_of(const tensor *t, const char *operation)
{
    static char body[8192];
    body[0] = '\0';
    ADD("%s%s", DECLARE, START TO_SHARED("FILL") FENCE_ASYNC "bar.sync 0;\n");
    ADD("add.u32 %%r5, %%r1, %d;\n@%%q0 cp.%sasync.bulk.tensor.%dd.global.shared::cta%s%s.bulk_group [%%p2, ",
        t->shared, operation ? "reduce." : "", t->rank, operation ? "." : "",
        operation ? operation : ".tile");
    add_coordinates(body, sizeof body, t);
    ADD("], [%%r5];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;");
    return body;
}

static uint8_t *random_bytes(uint64_t count)
{
    uint8_t *bytes = malloc(count);
    assert_non_null(bytes);
    for (uint64_t n = 0; n < count; n++)
        bytes[n] = (uint8_t)random_bits();
    return bytes;
}

static void check_load(const tensor *t, int form)
{
    uint64_t size = tensor_bytes(t);
    unsigned extent = shared_extent(t), each = (unsigned)types[t->type].bytes, count = box_bytes(t) / each,
             at;
    uint8_t *in = random_bytes(size), *want = random_bytes(extent), *out = malloc(extent);
    CUfunction f = function_of(load_body_of(t, form));
    CUdeviceptr p0 = device_bytes(extent, want), p1 = device_bytes(size, in);
    CUtensorMap map = map_of(t, p1);
    allow_shared(f);
    for (unsigned n = 0; n < count; n++) {
        uint64_t global;
        if (place(t, n, &at, &global))
            memcpy(want + at, in + global, each);
        else
            memset(want + at, t->fill == FILL_NAN ? 0xff : 0, each);
    }
    CUresult r = run(f, 1, THREADS, p0, p1, extent, &map);
    assert_int_equal(r, CUDA_SUCCESS);
    assert_int_equal(cuMemcpyDtoH_v2(out, p0, extent), CUDA_SUCCESS);
    for (unsigned n = 0; n < extent; n++)
        if (out[n] != want[n])
            fail_msg("%s rank %d swizzle %d: byte %u of shared memory is %02x, not %02x", types[t->type].name,
                     t->rank, t->swizzle, n, out[n], want[n]);
    cuMemFree_v2(p0);
    cuMemFree_v2(p1);
    free(in);
    free(want);
    free(out);
}

static void check_store(const tensor *t)
{
    uint64_t size = tensor_bytes(t);
    unsigned extent = shared_extent(t), each = (unsigned)types[t->type].bytes, count = box_bytes(t) / each,
             at;
    uint8_t *in = random_bytes(extent), *want = random_bytes(size), *out = malloc(size);
    CUfunction f = function_of(store_body_of(t, NULL));
    CUdeviceptr p0 = device_bytes(extent, in), p1 = device_bytes(size, want);
    CUtensorMap map = map_of(t, p1);
    allow_shared(f);
    for (unsigned n = 0; n < count; n++) {
        uint64_t global;
        if (place(t, n, &at, &global))
            memcpy(want + global, in + at, each);
    }
    assert_int_equal(run(f, 1, THREADS, p0, p1, extent, &map), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyDtoH_v2(out, p1, size), CUDA_SUCCESS);
    for (uint64_t n = 0; n < size; n++)
        if (out[n] != want[n])
            fail_msg("%s rank %d swizzle %d: byte %u of the tensor is %02x, not %02x", types[t->type].name,
                     t->rank, t->swizzle, (unsigned)n, out[n], want[n]);
    cuMemFree_v2(p0);
    cuMemFree_v2(p1);
    free(in);
    free(want);
    free(out);
}

static void test_boxes(void **state)
{
    (void)state;
    for (int rank = 1; rank <= MOST_RANK; rank++)
        for (int swizzle = 0; swizzle < 4; swizzle++)
            for (int type = 0; type < TYPES; type++) {
                tensor t = random_tensor(type, rank, swizzle, false);
                check_load(&t, (type + rank) % 3);
                t = random_tensor(type, rank, swizzle, true);
                check_store(&t);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes),
    };
    setenv("KILN_EMU_CHECK", "all,same", 1);
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
