/* Bulk copies and tensor maps: the values of every form, compared with the ISA's tables (5.5.3, 5.5.7, 9.7.9.25, 9.7.9.27),
   under all checks; then each rule, broken and kept. Independent of the emulator's code. If ptxas is installed, it must accept
   every kernel. */
#include "rules.h"

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
} types[] = {{"u8", 1, false},     {"u16", 2, false}, {"u32", 4, false},    {"s32", 4, false},
             {"u64", 8, false},    {"s64", 8, false}, {"f16", 2, true},     {"f32", 4, true},
             {"f64", 8, true},     {"bf16", 2, true}, {"f32.ftz", 4, true}, {"tf32", 4, true},
             {"tf32.ftz", 4, true}};

enum { TYPES = sizeof types / sizeof *types, NONE = 0, FILL_NAN = 1, F32_FTZ = 10, TF32_FTZ = 12 };

typedef struct tensor {
    int type, rank, swizzle, fill; /* swizzle: 0 to 3 */
    uint64_t size[MOST_RANK], stride[MOST_RANK - 1];
    unsigned box[MOST_RANK], step[MOST_RANK];
    int corner[MOST_RANK];
    int shared; /* offset of the box in shared memory, after a multiple of 1024 */
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

/* Returns the place of byte `at` of shared memory after swizzling: the tables of 5.5.7, with rows of eight chunks. */
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

/* Finds the byte of the box's element n in shared memory and in the tensor. Returns false if it lies outside the tensor. */
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
/* Copies all bytes between shared memory and the buffer at p0, by all threads. */
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

/* Returns the bytes of shared memory up to the end of the box, rounded up to kilobytes. */
static unsigned shared_extent(const tensor *t)
{
    return ((unsigned)t->shared + box_bytes(t) + 1023) / 1024 * 1024;
}

static const char *load_body_of(const tensor *t, int form)
{
    static const char *const forms[] = {
        "cp.async.bulk.tensor.%dd.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%%r5], [%%p2, ",
        "cp.async.bulk.tensor.%dd.shared::cta.global.mbarrier::complete_tx::bytes [%%r5], [%%p2, ",
        "cp.async.bulk.tensor.%dd.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%%r5], [%%p2, ",
        "cp.async.bulk.tensor.%dd.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%%r5], [%%p2, "};
    static char body[8192];
    body[0] = '\0';
    ADD("%s%s", DECLARE, START TO_SHARED("FILL") FENCE_ASYNC "bar.sync 0;\n");
    ADD("add.u32 %%r5, %%r1, %d; createpolicy.fractional.L2::evict_first.b64 %%x0;\n", t->shared);
    ADD("@%%q0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], %u;\n@%%q0 ", box_bytes(t));
    ADD(forms[form], t->rank);
    add_coordinates(body, sizeof body, t);
    ADD("], [bar]%s;\n", form >= 2 ? ", %x0" : "");
    ADD("%s", WAIT_PHASE("W", "bar", "0") TO_GLOBAL("OUT") "ret;");
    return body;
}

/* Stores and reductions; every second body gives a cache policy. */
static const char *store_body_of(const tensor *t, const char *operation)
{
    static unsigned turn;
    bool is_hinted = ++turn % 2;
    static char body[8192];
    body[0] = '\0';
    ADD("%s%s", DECLARE, START TO_SHARED("FILL") FENCE_ASYNC "bar.sync 0;\n");
    ADD("createpolicy.fractional.L2::evict_first.b64 %%x0; add.u32 %%r5, %%r1, %d;\n", t->shared);
    ADD("@%%q0 cp.%sasync.bulk.tensor.%dd.global.shared::cta%s%s.bulk_group%s [%%p2, ",
        operation ? "reduce." : "", t->rank, operation ? "." : "", operation ? operation : ".tile",
        is_hinted ? ".L2::cache_hint" : "");
    add_coordinates(body, sizeof body, t);
    ADD("], [%%r5]%s;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;",
        is_hinted ? ", %x0" : "");
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

/* Makes every fourth number subnormal. */
static void add_subnormals(uint8_t *bytes, uint64_t count)
{
    for (uint64_t n = 0; n + 4 <= count; n += 16) {
        bytes[n + 2] &= 0x7f;
        bytes[n + 3] &= 0x80;
    }
}

/* A load with .ftz keeps only the sign of a subnormal number. */
static void flush(const tensor *t, uint8_t *element)
{
    if ((t->type == F32_FTZ || t->type == TF32_FTZ) && !(element[2] & 0x80) && !(element[3] & 0x7f))
        element[0] = element[1] = element[2] = 0;
}

static void check_load(const tensor *t, int form)
{
    uint64_t size = tensor_bytes(t);
    unsigned extent = shared_extent(t), each = (unsigned)types[t->type].bytes, count = box_bytes(t) / each,
             at;
    uint8_t *in = random_bytes(size), *want = random_bytes(extent), *out = malloc(extent);
    CUfunction f = function_of(load_body_of(t, form));
    if (each == 4)
        add_subnormals(in, size);
    CUdeviceptr p0 = device_bytes(extent, want), p1 = device_bytes(size, in);
    CUtensorMap map = map_of(t, p1);
    allow_shared(f);
    for (unsigned n = 0; n < count; n++) {
        uint64_t global;
        if (place(t, n, &at, &global))
            flush(t, memcpy(want + at, in + global, each));
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
                check_load(&t, (type + rank) % 4);
                t = random_tensor(type, rank, swizzle, true);
                check_store(&t);
            }
}

/* Boxes and tensors of the largest sizes: a box larger than shared memory, and one far outside its allocation. */
static void test_large_boxes(void **state)
{
    static const tensor cases[] = {
        {.type = 5,
         .rank = 5,
         .size = {UINT64_C(1) << 32, UINT64_C(1) << 32, UINT64_C(1) << 32, 9, 9},
         .stride = {16, 16, 16, 16},
         .box = {256, 256, 256, 256, 256},
         .step = {1, 1, 1, 1, 1}},
        {.type = 5,
         .rank = 2,
         .size = {UINT64_C(1) << 32, UINT64_C(1) << 32},
         .stride = {(UINT64_C(1) << 40) - 16},
         .box = {16, 2},
         .step = {1, 8},
         .corner = {2147483646, 2147483647}},
    };
    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        CUcontext context;
        assert_int_equal(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
        CUfunction f = function_of(load_body_of(&cases[n], 0));
        CUdeviceptr p = device_bytes(4096, NULL);
        CUtensorMap map = map_of(&cases[n], p);
        allow_shared(f);
        cuMemsetD32_v2(p, 0, 1024);
        capture_stderr();
        CUresult r = run(f, 1, THREADS, p, p, 1024, &map);
        captured_stderr();
        assert_int_equal(r, CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_contains(printed, n ? "no device address" : "writes 16 bytes at 0x800000007f0");
        assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
    }
}

/* ---- bytes --------------------------------------------------------------------------------------------------------- */

/* Loads and stores of all sizes, in every form; the stores copy what was loaded. */
static void test_bytes(void **state)
{
    static const char *const loads[] = {
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%p5], %r9, [bar];\n",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r5], [%p5], %r9, [bar];\n",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r5], [%p5], %r9, [bar], %x0;\n",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r5], [%p5], %r9, [bar], %x0;\n"};
    static const char *const stores[] = {
        "cp.async.bulk.global.shared::cta.bulk_group [%p0], [%r5], %r9;\n",
        "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%p0], [%r5], %r9, %x0;\n"};
    (void)state;
    for (unsigned bytes = 0; bytes <= 40000; bytes += bytes < 256 ? 16 : 15904) {
        uint8_t *in = random_bytes(40016), *out = malloc(40016);
        char body[8192] = "";
        ADD("%s%s", DECLARE, START);
        ADD("add.u32 %%r5, %%r1, 1040; add.u64 %%p5, %%p1, 16; createpolicy.fractional.L2::evict_first.b64 %%x0;\n"
            "cp.async.bulk.prefetch.L2.global [%%p5], %%r9;\n"
            "@%%q0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], %%r9;\n@%%q0 %s%s",
            loads[bytes / 16 % 4], WAIT_PHASE("W", "bar", "0"));
        ADD("@%%q0 %scp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;\n"
            "cp.async.bulk.wait_group 0; ret;",
            stores[bytes / 16 % 2]);
        CUfunction f = function_of(body);
        CUdeviceptr p0 = device_bytes(40016, in), p1 = device_bytes(40016, in);
        CUtensorMap map = {{0}};
        allow_shared(f);
        cuMemsetD8_v2(p0, 0xee, 40016);
        assert_int_equal(run(f, 1, THREADS, p0, p1, bytes, &map), CUDA_SUCCESS);
        assert_int_equal(cuMemcpyDtoH_v2(out, p0, 40016), CUDA_SUCCESS);
        assert_memory_equal(out, in + 16, bytes);
        for (unsigned n = bytes; n < 40016; n++)
            assert_int_equal(out[n], 0xee);
        cuMemFree_v2(p0);
        cuMemFree_v2(p1);
        free(in);
        free(out);
    }
}

/* ---- reductions ---------------------------------------------------------------------------------------------------- */

typedef struct reduction {
    const char *operation, *type;
    int map_type; /* -1: tensor reductions do not have it */
} reduction;

static const reduction reductions[] = {
    {"add", "u32", 2},  {"add", "s32", 3},       {"add", "u64", 4},        {"add", "f32", 7},
    {"add", "f64", -1}, {"min", "u32", 2},       {"min", "s32", 3},        {"min", "u64", 4},
    {"min", "s64", 5},  {"min", "f16", 6},       {"max", "u32", 2},        {"max", "s32", 3},
    {"max", "u64", 4},  {"max", "s64", 5},       {"max", "bf16", 9},       {"min", "bf16", 9},
    {"max", "f16", 6},  {"inc", "u32", 2},       {"dec", "u32", 2},        {"and", "b32", 2},
    {"or", "b32", 3},   {"xor", "b32", 2},       {"and", "b64", 4},        {"or", "b64", 5},
    {"xor", "b64", 4},  {"add.noftz", "f16", 6}, {"add.noftz", "bf16", 9},
};

static double float_of(const char *type, uint64_t bits)
{
    uint32_t b = (uint32_t)bits;
    float f;
    double d;
    if (strcmp(type, "f64") == 0) {
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    if (strcmp(type, "bf16") == 0)
        b <<= 16;
    if (strcmp(type, "f16") == 0) {
        int e = (int)(b >> 10 & 31);
        double m = e ? 1024 + (b & 1023) : b & 1023;
        return ldexp(m, (e ? e : 1) - 25) * (b >> 15 ? -1 : 1);
    }
    memcpy(&f, &b, sizeof f);
    return f;
}

/* Small integers, which every type represents, so that sums are exact. */
static uint64_t bits_of(const char *type, int v)
{
    double d = v;
    float f = (float)v;
    uint64_t bits = 0;
    uint32_t b;
    if (strcmp(type, "f64") == 0) {
        memcpy(&bits, &d, sizeof d);
    } else if (strcmp(type, "f32") == 0 || strcmp(type, "bf16") == 0) {
        memcpy(&b, &f, sizeof f);
        bits = type[0] == 'b' ? b >> 16 : b;
    } else if (strcmp(type, "f16") == 0) {
        int e = 0;
        double m = v ? fabs(frexp(v, &e)) : 0;
        bits = v ? (uint64_t)(e + 14) << 10 | ((uint64_t)ldexp(m, 11) & 1023) : 0;
        bits |= v < 0 ? 0x8000 : 0;
    } else {
        bits = (uint64_t)(int64_t)v;
    }
    return bits;
}

static uint64_t reduced(const reduction *r, uint64_t old, uint64_t b)
{
    const char *o = r->operation;
    bool is_float = r->type[0] == 'f' || strcmp(r->type, "bf16") == 0, is_signed = r->type[0] == 's';
    bool is_less = is_float    ? float_of(r->type, old) < float_of(r->type, b)
                   : is_signed ? (r->type[1] == '3' ? (int32_t)old < (int32_t)b : (int64_t)old < (int64_t)b)
                               : old < b;
    if (is_float && o[0] == 'a')
        return bits_of(r->type, (int)(float_of(r->type, old) + float_of(r->type, b)));
    if (strcmp(o, "add") == 0)
        return old + b;
    if (o[0] == 'm')
        return is_less == (o[1] == 'i') ? old : b;
    if (strcmp(o, "inc") == 0)
        return old >= b ? 0 : old + 1;
    if (strcmp(o, "dec") == 0)
        return old == 0 || old > b ? b : old - 1;
    return strcmp(o, "and") == 0 ? old & b : strcmp(o, "or") == 0 ? old | b : old ^ b;
}

static void check_reduction(const reduction *r, bool is_tensor, bool is_hinted)
{
    enum { COUNT = 128 };
    unsigned each = (unsigned)(r->type[1] == '6' ? 8 : r->type[strlen(r->type) - 2] == '1' ? 2 : 4);
    uint8_t from[COUNT * 8], to[COUNT * 8], want[COUNT * 8], out[COUNT * 8];
    tensor t = {.type = r->map_type, .rank = 1, .size = {COUNT}, .box = {COUNT}, .step = {1}};
    char body[8192] = "";
    for (unsigned n = 0; n < COUNT; n++) {
        uint64_t a = bits_of(r->type, (int)(random_bits() % 41) - 20),
                 b = bits_of(r->type, (int)(random_bits() % 41) - 20);
        if (each == 4) {
            a &= UINT32_MAX;
            b &= UINT32_MAX;
        }
        uint64_t result = reduced(r, a, b);
        memcpy(to + n * each, &a, each);
        memcpy(from + n * each, &b, each);
        memcpy(want + n * each, &result, each);
    }
    CUdeviceptr p0 = device_bytes(COUNT * each, from), p1 = device_bytes(COUNT * each, to);
    CUtensorMap map = {{0}};
    if (is_tensor) {
        map = map_of(&t, p1);
        char operation[16];
        snprintf(operation, sizeof operation, "%.3s", r->operation);
        operation[strcspn(operation, ".")] = '\0';
        ADD("%s", store_body_of(&t, operation));
    } else {
        ADD("%s%s", DECLARE,
            START TO_SHARED("FILL") FENCE_ASYNC
            "bar.sync 0;\ncreatepolicy.fractional.L2::evict_first.b64 %x0;\n"
            "@%q0 cp.reduce.async.bulk.global.shared::cta.bulk_group");
        ADD("%s.%s.%s [%%p1], [%%r1], %%r9%s;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;",
            is_hinted ? ".L2::cache_hint" : "", r->operation, r->type, is_hinted ? ", %x0" : "");
    }
    CUfunction f = function_of(body);
    allow_shared(f);
    assert_int_equal(run(f, 1, THREADS, p0, p1, COUNT * each, &map), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyDtoH_v2(out, p1, COUNT * each), CUDA_SUCCESS);
    if (memcmp(out, want, COUNT * each) != 0)
        fail_msg("%s.%s%s", r->operation, r->type, is_tensor ? " of a tensor" : "");
    cuMemFree_v2(p0);
    cuMemFree_v2(p1);
}

static void test_reductions(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof reductions / sizeof *reductions; n++) {
        check_reduction(&reductions[n], false, false);
        check_reduction(&reductions[n], false, true);
        if (reductions[n].map_type >= 0)
            check_reduction(&reductions[n], true, false);
    }
}

static void check_box_reduction(const reduction *r, const tensor *t)
{
    uint64_t size = tensor_bytes(t);
    unsigned extent = shared_extent(t), each = (unsigned)types[t->type].bytes, count = box_bytes(t) / each,
             at;
    uint8_t *in = random_bytes(extent), *want = random_bytes(size), *out = malloc(size);
    CUfunction f = function_of(store_body_of(t, r->operation));
    CUdeviceptr p0 = device_bytes(extent, in), p1 = device_bytes(size, want);
    CUtensorMap map = map_of(t, p1);
    allow_shared(f);
    for (unsigned n = 0; n < count; n++) {
        uint64_t global, a = 0, b = 0;
        if (!place(t, n, &at, &global))
            continue;
        memcpy(&a, want + global, each);
        memcpy(&b, in + at, each);
        a = reduced(r, a, b);
        memcpy(want + global, &a, each);
    }
    assert_int_equal(run(f, 1, THREADS, p0, p1, extent, &map), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyDtoH_v2(out, p1, size), CUDA_SUCCESS);
    for (uint64_t n = 0; n < size; n++)
        if (out[n] != want[n])
            fail_msg("%s.%s rank %d swizzle %d: byte %u of the tensor is %02x, not %02x", r->operation,
                     r->type, t->rank, t->swizzle, (unsigned)n, out[n], want[n]);
    cuMemFree_v2(p0);
    cuMemFree_v2(p1);
    free(in);
    free(want);
    free(out);
}

/* Reductions of integers in boxes of every rank and swizzle. */
static void test_box_reductions(void **state)
{
    unsigned turn = 0;
    (void)state;
    for (int rank = 1; rank <= MOST_RANK; rank++)
        for (int swizzle = 0; swizzle < 4; swizzle++)
            for (size_t n = 0; n < sizeof reductions / sizeof *reductions; n++) {
                const reduction *r = &reductions[n];
                if (r->map_type < 0 || types[r->map_type].is_float || ++turn % 3)
                    continue;
                tensor t = random_tensor(r->map_type, rank, swizzle, true);
                check_box_reduction(r, &t);
            }
}

/* ---- the rules: a kernel that breaks one, and one that keeps it ---------------------------------------------------- */

/* Thread 0 (%q0) copies; p0 and p1 are 8 KiB, p1 holds data; the map is of p1, 32 x 16 floats, its box 8 x 4 (128 bytes). */
#define LOAD(to, from, bytes, object)                                                                        \
    "@%q0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [" to "], [" from "], " bytes    \
    ", [" object "];\n"
#define BOX(to, coordinates)                                                                                 \
    "@%q0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [" to             \
    "], [%p2, " coordinates "], [bar];\n"
#define EXPECT(bytes, object) "@%q0 mbarrier.arrive.expect_tx.shared.b64 _, [" object "], " bytes ";\n"
#define STORE(to, from, bytes)                                                                               \
    "@%q0 cp.async.bulk.global.shared::cta.bulk_group [" to "], [" from "], " bytes ";\n"
#define COMMIT     "cp.async.bulk.commit_group;\n"
#define WAIT_GROUP "cp.async.bulk.wait_group 0;\n"
#define WAIT_READ  "cp.async.bulk.wait_group.read 0;\n"
#define WAIT       WAIT_PHASE("W", "bar", "0")
#define WAIT_2     WAIT_PHASE("V", "bar2", "0")
#define SYNC       "bar.sync 0;\n"
#define MINE       "shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2;\n"
#define READ       "@%q0 ld.shared.b32 %r4, [%r3];\n"
#define WRITE      "st.shared.b32 [%r3], %r0;\n"
/* The second warp sleeps until the first one has run as far as it can. */
#define LATE(label)                                                                                          \
    "setp.lt.u32 %q2, %r0, 32; @%q2 bra " label "; mov.u32 %r6, 0;\n" label                                  \
    "S: nanosleep.u32 20; add.u32 %r6, %r6, 1; setp.lt.u32 %q3, %r6, 40; @%q3 bra " label "S;\n" label ":\n"
#define READ_LATE "setp.lt.u32 %q2, %r0, 32; @!%q2 ld.shared.b32 %r4, [%r3];\n"
#define FIRST     "setp.eq.u32 %q0, %r0, 0; mov.u32 %r1, s; mov.u32 %r0, %tid.x; setp.eq.u32 %q0, %r0, 0;\n"
#define BARS      ".shared .align 8 .b64 bar2;\n"
#define BEGIN                                                                                                \
    BARS "mov.u32 %r0, %tid.x; setp.eq.u32 %q0, %r0, 0; mov.u32 %r1, s; mov.u32 %r4, 0;\n" MINE              \
         "@%q0 mbarrier.init.shared.b64 [bar], 1; @%q0 mbarrier.init.shared.b64 [bar2], 1;\n"
#define READY BEGIN SYNC
#define MAKE                                                                                                                        \
    "@!%q0 bra MADE; add.u32 %r5, %r1, 4096; st.shared.v4.b32 [%r5], {0, 0, 0, 0}; st.shared.v4.b32 [%r5+16], {0, 0, 0, 0};\n"      \
    "st.shared.v4.b32 [%r5+32], {0, 0, 0, 0}; st.shared.v4.b32 [%r5+48], {0, 0, 0, 0}; st.shared.v4.b32 [%r5+64], {0, 0, 0, 0};\n"  \
    "st.shared.v4.b32 [%r5+80], {0, 0, 0, 0}; st.shared.v4.b32 [%r5+96], {0, 0, 0, 0}; st.shared.v4.b32 [%r5+112], {0, 0, 0, 0};\n" \
    "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r5], %p1;\n"                                                     \
    "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r5], 1;\n"                                                                 \
    "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r5], 0, 8;\n"                                                           \
    "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r5], 1, 4;\n"                                                           \
    "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r5], 0, 32;\n"                                                       \
    "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r5], 1, 16;\n"                                                       \
    "mov.b64 %x1, 128; tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r5], 0, %x1;\n"                                 \
    "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r5], 0, 1;\n"                                                    \
    "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r5], 1, 1;\n"                                                    \
    "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r5], 7;\n"                                                             \
    "tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r5], 0;\n"                                                    \
    "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r5], 0;\n"                                                         \
    "tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r5], 0;\nMADE: add.u32 %r5, %r1, 4096;\n"                             \
    "bar.warp.sync 0xffffffff; setp.ge.u32 %q2, %r0, 32; @%q2 bra COPIED;\n"                                                        \
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%p0], [%r5], 128;\nCOPIED: mov.b64 %p2, %p0;\n"
/* The first warp of block 0 writes 128 bytes at p0; block 1 waits until it sees them. */
#define TWO_BLOCKS(fence)                                                                                        \
    READY                                                                                                        \
    "mov.u32 %r5, %ctaid.x; setp.eq.u32 %q2, %r5, 1; @%q2 bra SECOND; setp.ge.u32 %q3, %r0, 32; @%q3 bra END;\n" \
    "cvt.u64.u32 %p4, %r2; add.u64 %p4, %p4, %p0; st.global.b32 [%p4], %r0;\n" fence                             \
    "bar.warp.sync 0xffffffff; @%q0 st.release.gpu.global.b32 [%p0+4096], 1; bra END;\n"                         \
    "SECOND: ld.acquire.gpu.global.b32 %r5, [%p0+4096]; setp.ne.u32 %q2, %r5, 1; @%q2 bra SECOND;\n"
#define ACQUIRE_MAP "fence.proxy.tensormap::generic.acquire.gpu [%p2], 128;\n"

typedef struct bulk_rule {
    const char *name, *body;
    const char *words; /* words of its only report; NULL: no report */
} bulk_rule;

static const bulk_rule rules[] = {
    {"bytes read before the wait", READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") READ WAIT,
     "which a copy of thread (0,0,0)"},
    {"", READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT READ, NULL},
    {"bytes overwritten before the wait",
     READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") "@%q0 st.shared.b32 [%r1], 7;\n" WAIT,
     "which a copy of thread (0,0,0)"},
    {"", READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT WRITE, NULL},
    {"a wait for another copy",
     READY EXPECT("256", "bar") EXPECT("256", "bar2") LOAD("%r1+512", "%p1", "256", "bar2")
         LOAD("%r1", "%p1", "256", "bar") WAIT_2 READ WAIT,
     "thread (0,0,0)"},
    {"",
     READY EXPECT("256", "bar") EXPECT("256", "bar2") LOAD("%r1+512", "%p1", "256", "bar2")
         LOAD("%r1", "%p1", "256", "bar") WAIT_2 WAIT READ,
     NULL},
    {"one thread waits for all",
     READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") "@!%q0 bra END;\n" WAIT "END:\n" LATE("L")
         READ_LATE,
     "thread (0,0,0)"},
    {"",
     READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") "@!%q0 bra END;\n" WAIT
                                                                 "END:\n" SYNC READ_LATE,
     NULL},
    {"a copy of what another copy still writes",
     READY EXPECT("512", "bar") LOAD("%r1", "%p1", "256", "bar") LOAD("%r1+128", "%p1", "256", "bar") WAIT,
     "which a copy of thread (0,0,0)"},
    {"a store of what a load still writes",
     READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") STORE("%p0", "%r1", "256")
         COMMIT WAIT_GROUP WAIT,
     "which a copy of thread (0,0,0)"},
    {"",
     READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT STORE("%p0", "%r1", "256")
         COMMIT WAIT_GROUP,
     NULL},
    {"a slot filled again without a barrier",
     READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT READ_LATE
     "mov.u32 %r6, 0;\nS: nanosleep.u32 20; add.u32 %r6, %r6, 1; setp.lt.u32 %q3, %r6, 40; @%q3 bra S;\n" EXPECT(
         "256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT_PHASE("Z", "bar", "1"),
     "with nothing to order the two"},
    {"",
     READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT READ_LATE SYNC EXPECT("256", "bar")
         LOAD("%r1", "%p1", "256", "bar") WAIT_PHASE("Z", "bar", "1") READ,
     NULL},
    {"a store of what threads wrote, without a proxy fence",
     READY WRITE SYNC STORE("%p0", "%r1", "256") COMMIT WAIT_GROUP,
     "reads 256 bytes at 0x800 of .shared memory, which"},
    {"", READY WRITE FENCE_ASYNC SYNC STORE("%p0", "%r1", "256") COMMIT WAIT_GROUP, NULL},
    {"", READY WRITE "fence.proxy.async.shared::cta;\n" SYNC STORE("%p0", "%r1", "256") COMMIT WAIT_GROUP,
     NULL},
    {"a proxy fence, and no barrier", READY WRITE FENCE_ASYNC STORE("%p0", "%r1", "256") COMMIT WAIT_GROUP,
     "with nothing to order the two"},
    {"a load over what threads wrote, without a proxy fence",
     READY WRITE SYNC EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT,
     "with no fence.proxy.async between the two"},
    {"", READY WRITE FENCE_ASYNC SYNC EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT, NULL},
    {"a load from global memory that threads wrote, without a proxy fence",
     READY "cvt.u64.u32 %p4, %r2; add.u64 %p4, %p4, %p0; st.global.b32 [%p4], %r0;\n" SYNC EXPECT(
         "256", "bar") LOAD("%r1", "%p0", "256", "bar") WAIT,
     "with no fence.proxy.async between the two"},
    {"",
     READY
     "cvt.u64.u32 %p4, %r2; add.u64 %p4, %p4, %p0; st.global.b32 [%p4], %r0; fence.proxy.async.global;\n" SYNC
         EXPECT("256", "bar") LOAD("%r1", "%p0", "256", "bar") WAIT,
     NULL},
    {"the source of a store overwritten",
     READY WRITE FENCE_ASYNC SYNC STORE("%p0", "%r1", "256") COMMIT
     "@%q0 st.shared.b32 [%r1], 7;\n" WAIT_GROUP,
     "which a copy of thread (0,0,0)"},
    {"",
     READY WRITE FENCE_ASYNC SYNC STORE("%p0", "%r1", "256") COMMIT WAIT_READ
     "@%q0 st.shared.b32 [%r1], 7;\n" WAIT_GROUP,
     NULL},
    {"a wait for what is not committed",
     READY WRITE FENCE_ASYNC SYNC STORE("%p0", "%r1", "256") WAIT_READ
     "@%q0 st.shared.b32 [%r1], 7;\n" COMMIT WAIT_GROUP,
     "which a copy of thread (0,0,0)"},
    {"what a store writes read after a wait for its source",
     READY WRITE FENCE_ASYNC SYNC STORE("%p0", "%r1", "256") COMMIT WAIT_READ
     "@%q0 ld.global.b32 %r4, [%p0];\n" WAIT_GROUP,
     "which a copy of thread (0,0,0)"},
    {"",
     READY WRITE FENCE_ASYNC SYNC STORE("%p0", "%r1", "256") COMMIT WAIT_GROUP
     "@%q0 ld.global.b32 %r4, [%p0];\n",
     NULL},
    {"two stores to the same bytes",
     READY WRITE FENCE_ASYNC SYNC "setp.eq.u32 %q0, %r0, 32;\n" STORE(
         "%p0", "%r1", "128") "setp.eq.u32 %q0, %r0, 0;\n" STORE("%p0", "%r1+128", "128") COMMIT WAIT_GROUP,
     "races: writes 128 bytes at"},
    {"every lane of a warp stores the same bytes",
     READY WRITE FENCE_ASYNC SYNC "setp.lt.u32 %q0, %r0, 32;\n" STORE("%p0", "%r1", "256") COMMIT WAIT_GROUP,
     "races: stores the same bytes to the same place as another lane of its warp"},
    {"lanes of a warp store other bytes to the same place",
     READY WRITE FENCE_ASYNC SYNC
     "setp.lt.u32 %q0, %r0, 2; shl.b32 %r6, %r0, 7; add.u32 %r6, %r6, %r1;\n" STORE("%p0", "%r6", "128")
         COMMIT WAIT_GROUP,
     "still writes: nothing has waited for it"},
    {"every lane of a warp initialises an mbarrier object",
     READY
     ".shared .align 8 .b64 third; setp.lt.u32 %q1, %r0, 32; @%q1 mbarrier.init.shared.b64 [third], 1;\n",
     "with nothing to order the two, the same value"},
    {"a fence of a tensor map in shared memory",
     READY
     "cvt.u64.u32 %p4, %r1; cvta.shared.u64 %p4, %p4; fence.proxy.tensormap::generic.acquire.gpu [%p4], 128;\n",
     "which is no address of .global memory"},
    {"", READY "mov.u64 %p4, 0; fence.proxy.tensormap::generic.acquire.gpu [%p4], 128;\n", NULL},
    {"two reductions of the same bytes",
     READY WRITE FENCE_ASYNC SYNC
     "@%q0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%p1], [%r1], 128; setp.eq.u32 %q0, %r0, 32;\n"
     "@%q0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%p1], [%r1], 128;\n" COMMIT WAIT_GROUP,
     NULL},
    {"the thread ends before its store has read",
     READY WRITE FENCE_ASYNC SYNC STORE("%p0", "%r1", "256") COMMIT, "no cp.async.bulk.wait_group covers it"},
    {"", READY WRITE FENCE_ASYNC SYNC STORE("%p0", "%r1", "256") COMMIT WAIT_READ, NULL},
    {"the block ends before a load", READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar"),
     "before any thread has seen the end of the mbarrier's phase"},
    {"fewer bytes expected than are copied",
     READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") LOAD("%r1+256", "%p1", "256", "bar") WAIT
     "mov.u32 %r6, 0;\nTURN: mbarrier.test_wait.parity.shared.b64 %q1, [bar], 1; add.u32 %r6, %r6, 1; setp.lt.u32 %q2, %r6, 40; @%q2 bra TURN;\n",
     "the phase expects fewer bytes than are copied"},
    {"more bytes expected than are copied", READY EXPECT("320", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT,
     "0 of 1 arrivals are missing, and 64 bytes"},
    {"one copy of more bytes than are expected",
     READY EXPECT("128", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT,
     "0 of 1 arrivals are missing, and 128 more bytes have arrived than were expected"},
    {"no arrival",
     READY "@%q0 mbarrier.expect_tx.shared.b64 [bar], 256;\n" LOAD("%r1", "%p1", "256", "bar") WAIT,
     "to end its phase of parity 0: 1 of 1 arrivals are missing\n"},
    {"each waits for the other",
     READY "setp.lt.u32 %q2, %r0, 32; @%q2 bra OTHER;\n" WAIT
           "setp.eq.u32 %q3, %r0, 32; @%q3 mbarrier.arrive.shared.b64 _, [bar2]; bra END;\n"
           "OTHER:\n" WAIT_2 "@%q0 mbarrier.arrive.shared.b64 _, [bar];\nEND:\n",
     "what its warps wait for cannot come, and nothing is in flight"},
    {"some wait at a barrier of the block, some for a phase",
     READY "setp.lt.u32 %q2, %r0, 32; @%q2 bra OTHER;\n" SYNC
           "@!%q0 mbarrier.arrive.shared.b64 _, [bar];\nbra END;\nOTHER:\n" WAIT SYNC "END:\n",
     "what its warps wait for cannot come, and nothing is in flight"},
    {"a test that gives up",
     READY
     "mov.u32 %r6, 0;\nTURN: mbarrier.try_wait.parity.shared.b64 %q1, [bar], 0, 20; add.u32 %r6, %r6, 1;\n"
     "setp.lt.u32 %q2, %r6, 5000; @%q2 bra TURN;\n",
     NULL},
    {"an mbarrier that no one has initialised",
     BARS "mov.u32 %r0, %tid.x; setp.eq.u32 %q0, %r0, 0; mov.u32 %r1, s;\n" LOAD("%r1", "%p1", "256", "bar"),
     "uses an mbarrier object that is not initialised"},
    {"an mbarrier initialised without a barrier of the block",
     BEGIN "setp.eq.u32 %q3, %r0, 32; @%q3 mbarrier.arrive.shared.b64 _, [bar];\n",
     "with nothing to order the two"},
    {"a copy completes at an mbarrier that another lane has initialised",
     BEGIN EXPECT("256", "bar") "setp.eq.u32 %q0, %r0, 1;\n" LOAD("%r1", "%p1", "256", "bar") SYNC WAIT,
     "with nothing to order the two"},
    {"",
     BEGIN EXPECT("256", "bar") "bar.warp.sync 0xffffffff; setp.eq.u32 %q0, %r0, 1;\n" LOAD(
         "%r1", "%p1", "256", "bar") SYNC WAIT,
     NULL},
    {"", BEGIN EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") SYNC WAIT, NULL},
    {"",
     BEGIN "fence.mbarrier_init.release.cluster;\n" EXPECT("256", "bar")
         LOAD("%r1", "%p1", "256", "bar") "@!%q0 bra END;\n" WAIT "END:\n",
     NULL},
    {"", READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT, NULL},
    {"an mbarrier invalidated in flight",
     READY EXPECT("256", "bar")
         LOAD("%r1", "%p1", "256", "bar") "@%q0 mbarrier.inval.shared.b64 [bar];\n" EXPECT("0", "bar2") WAIT_2
     "mov.u32 %r6, 0;\nTURN: mbarrier.test_wait.parity.shared.b64 %q1, [bar2], 1;\n"
     "add.u32 %r6, %r6, 1; setp.lt.u32 %q2, %r6, 40; @%q2 bra TURN;\n",
     "invalidated while the copy was in flight"},
    {"an mbarrier initialised twice", READY "@%q0 mbarrier.init.shared.b64 [bar], 1;\n",
     "mbarrier.inval must come first"},
    {"", READY "@%q0 mbarrier.inval.shared.b64 [bar]; @%q0 mbarrier.init.shared.b64 [bar], 1;\n", NULL},
    {"an invalid mbarrier", READY "@%q0 mbarrier.inval.shared.b64 [bar];\n" EXPECT("256", "bar"),
     "uses an mbarrier object that is not initialised"},
    {"a count of transactions too large",
     READY "@%q0 mbarrier.expect_tx.shared.b64 [bar], 1048575;\n"
           "@%q0 mbarrier.expect_tx.shared.b64 [bar], 1;\n",
     "which then leaves its range"},
    {"",
     READY
     "@%q0 mbarrier.expect_tx.shared.b64 [bar], 1048575; @%q0 mbarrier.complete_tx.shared.b64 [bar], 1048575;\n",
     NULL},
    {"more bytes arrive than the count can hold",
     READY "@%q0 mbarrier.complete_tx.shared.b64 [bar], 1048575;\n" LOAD("%r1", "%p1", "256", "bar") WAIT,
     "completes 256 bytes at an mbarrier object, whose transaction count then leaves its range"},
    {"an old state",
     READY "@!%q0 bra END; mbarrier.arrive.shared.b64 %x1, [bar]; mbarrier.arrive.shared.b64 %x2, [bar];\n"
           "mbarrier.test_wait.shared.b64 %q1, [bar], %x1;\nEND:\n",
     "neither the current nor the preceding one"},
    {"",
     READY "@!%q0 bra END; mbarrier.arrive.shared.b64 %x1, [bar]; mbarrier.arrive.shared.b64 %x2, [bar];\n"
           "mbarrier.test_wait.shared.b64 %q1, [bar], %x2;\nEND:\n",
     NULL},
    {"a size that is no multiple of 16", READY "mov.u32 %r5, 24;\n" LOAD("%r1", "%p1", "%r5", "bar"),
     "copies 24 bytes"},
    {"a destination that is no multiple of 16", READY LOAD("%r1+8", "%p1", "32", "bar"),
     "as an address of shared memory"},
    {"a source that is no multiple of 16", READY LOAD("%r1", "%p1+8", "32", "bar"),
     "as an address of global memory"},
    {"a destination outside of shared memory", READY LOAD("%r1+65520", "%p1", "32", "bar"),
     "of .shared memory, which ends"},
    {"a source outside of its allocation", READY LOAD("%r1", "%p1+8176", "32", "bar"), "past the end of"},
    {"a store outside of its allocation", READY WRITE FENCE_ASYNC SYNC STORE("%p0+8128", "%r1", "256"),
     "past the end of"},
    {"a source that no one has written",
     READY EXPECT("256", "bar") LOAD("%r1", "%p1+4096", "256", "bar") WAIT,
     "copies 16 bytes that were never written"},
    {"a size that is undefined", READY LOAD("%r1", "%p1", "%u0", "bar"), "uses an uninitialised register as"},
    {"coordinates that are undefined", READY BOX("%r1", "{%c0, 0}"), "uses an uninitialised register as"},
    {"a box", READY EXPECT("128", "bar") BOX("%r1+1024", "{4, 2}") WAIT, NULL},
    {"a box in shared memory that is not aligned to 128", READY BOX("%r1+64", "{0, 0}"),
     "which is not a multiple of 128"},
    {"a box that begins between two sixteens of bytes", READY BOX("%r1+128", "{2, 0}"),
     "names a box that begins at byte 8 of the tensor's rows, which is not a multiple of 16"},
    {"one coordinate too many",
     READY
     "@%q0 cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1+128], [%p2, {0, 0, 0}], [bar];\n",
     "gives 3 coordinates for a tensor map of 2 dimensions"},
    {"a negative coordinate of a store",
     READY "@%q0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%p2, {0, -1}], [%r1+128];\n",
     "with the negative coordinate -1"},
    {"an invalid map", READY "mov.b64 %p2, %p1;\n" BOX("%r1+128", "{0, 0}"), "uses an invalid tensor map"},
    {"a map between two sixty-fours of bytes", READY "add.u64 %p2, %p2, 16;\n" BOX("%r1+128", "{0, 0}"),
     "which is not a multiple of 64"},
    {"an operation that the map's type does not have",
     READY
     "@%q0 cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.tile.bulk_group [%p2, {0, 0}], [%r1+128];\n",
     "whose element type this operation does not support"},
    {"a prefetch of a box",
     READY "prefetch.tensormap [%p2]; cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%p2, {4, -7}];\n",
     NULL},
    {"another block's bytes, without a proxy fence",
     TWO_BLOCKS("") EXPECT("128", "bar") LOAD("%r1", "%p0", "128", "bar") WAIT "END:\n",
     "with no fence.proxy.async between the two"},
    {"", TWO_BLOCKS(FENCE_ASYNC) EXPECT("128", "bar") LOAD("%r1", "%p0", "128", "bar") WAIT "END:\n", NULL},
    {"", TWO_BLOCKS("") FENCE_ASYNC EXPECT("128", "bar") LOAD("%r1", "%p0", "128", "bar") WAIT "END:\n",
     NULL},
    {"a made map that no fence acquires", READY MAKE SYNC EXPECT("128", "bar") BOX("%r1", "{4, 2}") WAIT,
     "with no fence.proxy.tensormap that acquires the map"},
    {"", READY MAKE SYNC ACQUIRE_MAP EXPECT("128", "bar") BOX("%r1", "{4, 2}") WAIT, NULL},
    {"a made map of 8 dimensions",
     READY MAKE SYNC
     "@%q0 tensormap.replace.tile.rank.global.b1024.b32 [%p2], 7;\n" ACQUIRE_MAP BOX("%r1", "{4, 2}"),
     "uses an invalid tensor map: its rank is not one of 1 to 5"},
    {"a made map, and no barrier",
     READY MAKE LATE("L") ACQUIRE_MAP "setp.eq.u32 %q0, %r0, 32;\n" EXPECT("128", "bar") BOX("%r1", "{4, 2}")
         WAIT,
     "with nothing to order the two"},
};

/* With the check `proxy`: copies to bytes that loads have read. */
static const bulk_rule proxy_rules[] = {
    {"a slot is filled again after it was read, with a barrier only",
     READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT
     "ld.shared.b32 %r4, [%r3];\n" SYNC EXPECT("256", "bar2") LOAD("%r1", "%p1", "256", "bar2") WAIT_2,
     "which thread (0,0,0) of block (0,0,0) reads in line 18, with no fence.proxy.async between the two"},
    {"",
     READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT
     "ld.shared.b32 %r4, [%r3];\n" FENCE_ASYNC SYNC EXPECT("256", "bar2") LOAD("%r1", "%p1", "256", "bar2")
         WAIT_2,
     NULL},
    {"",
     READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT
     "ld.shared.b32 %r4, [%r3];\n" SYNC FENCE_ASYNC EXPECT("256", "bar2") LOAD("%r1", "%p1", "256", "bar2")
         WAIT_2,
     NULL},
    {"the second of two loads comes after the fence",
     READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT
     "ld.shared.b32 %r4, [%r3];\n" FENCE_ASYNC "ld.shared.b32 %r4, [%r3];\n" SYNC EXPECT("256", "bar2")
         LOAD("%r1", "%p1", "256", "bar2") WAIT_2,
     "with no fence.proxy.async between the two"},
    {"global memory is read and then stored to",
     READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT
     "@%q0 ld.global.b32 %r4, [%p1];\n" STORE("%p1", "%r1", "256") COMMIT WAIT_GROUP,
     "with no fence.proxy.async between the two"},
    {"",
     READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT
     "@%q0 ld.global.b32 %r4, [%p1];\n" FENCE_ASYNC STORE("%p1", "%r1", "256") COMMIT WAIT_GROUP,
     NULL},
    {"a slot that a store has read is filled again",
     READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT STORE("%p0", "%r1", "256")
         COMMIT WAIT_READ EXPECT("256", "bar2") LOAD("%r1", "%p1", "256", "bar2") WAIT_2 WAIT_GROUP,
     NULL},
};

/* With the check `lanes`: the second warp reads the slot, and its lane 0 (%q4) releases it to thread 0, which fills it again. */
#define LAST_LANE_0 "setp.eq.u32 %q4, %r0, 32; setp.lt.u32 %q2, %r0, 32;\n"
#define REFILL(read)                                                                                         \
    READY EXPECT("256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT LAST_LANE_0                             \
        "@%q2 bra FIRST_WARP;\n" read                                                                        \
        "@%q4 mbarrier.arrive.shared.b64 _, [bar2]; bra END;\nFIRST_WARP: @!%q0 bra END;\n" WAIT_2 EXPECT(   \
            "256", "bar") LOAD("%r1", "%p1", "256", "bar") WAIT_PHASE("Z", "bar", "1") "END:\n"
#define READ_SLOT "ld.shared.b32 %r4, [%r3];\n"

static const bulk_rule lanes_rules[] = {
    {"one lane arrives for its warp, and nothing brings the lanes together", REFILL(READ_SLOT),
     "which thread (33,0,0) of block (0,0,0) reads in line 20 with only another lane's release"},
    {"", REFILL(READ_SLOT "bar.warp.sync 0xffffffff;\n"), NULL},
    {"", REFILL(READ_SLOT "elect.sync _|%q3, 0xffffffff;\n"), NULL},
    {"", REFILL(READ_SLOT "shfl.sync.idx.b32 %r5, %r4, 0, 31, 0xffffffff;\n"), NULL},
    {"", REFILL("@%q4 " READ_SLOT), NULL},
    {"",
     REFILL("and.b32 %r5, %r0, 7; shl.b32 %r5, %r5, 4; add.u32 %r5, %r5, %r1;\n"
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r5];\n"),
     NULL},
    {"a barrier of the warp after the release covers nothing",
     REFILL(READ_SLOT "@%q4 mbarrier.arrive.shared.b64 _, [bar2];\nbar.sync 1, 32;\n@!%q2 bra END;\n"),
     "which thread (33,0,0) of block (0,0,0) reads in line 20 with only another lane's release"},
    {"the lanes read again after a warp-wide operation",
     REFILL(READ_SLOT "bar.warp.sync 0xffffffff;\n" READ_SLOT),
     "which thread (33,0,0) of block (0,0,0) reads in line 22 with only another lane's release"},
    {"only two lanes meet",
     REFILL(READ_SLOT "setp.gt.u32 %q3, %r0, 33; @%q3 bra MET; bar.warp.sync 3;\nMET:\n"),
     "which thread (34,0,0) of block (0,0,0) reads in line 20 with only another lane's release"},
    {"lanes meet in a chain",
     REFILL("setp.gt.u32 %q3, %r0, 33;\n@%q3 bra TAIL;\nsetp.eq.u32 %q3, %r0, 33;\n@%q3 " READ_SLOT
            "bar.warp.sync 3;\nTAIL:\n"),
     NULL},
    {"one lane sets a flag for its warp",
     READY LAST_LANE_0 "st.shared.b32 [%r3], 0;\n" SYNC "@%q2 bra FIRST_WARP;\n" READ_SLOT
                       "@%q4 st.release.cta.shared.b32 [%r1], 1;\nbra END;\nFIRST_WARP: @!%q0 bra END;\n"
                       "S: ld.acquire.cta.shared.b32 %r5, [%r1];\nsetp.eq.u32 %q3, %r5, 0;\n@%q3 bra S;\n"
                       "st.shared.b32 [%r1+140], 7;\nEND:\n",
     "which thread (35,0,0) of block (0,0,0) reads in line 19 with only another lane's release"},
};

static void check_bulk_rules(const bulk_rule *all, size_t count)
{
    static uint32_t data[1024];
    for (size_t n = 0; n < count; n++) {
        char body[8192] = "";
        CUcontext context;
        tensor t = {.type = 7, .rank = 2, .size = {32, 16}, .stride = {128}, .box = {8, 4}, .step = {1, 1}};
        ADD("%s%sret;", DECLARE, all[n].body);
        assert_int_equal(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
        CUfunction f = function_of(body);
        CUdeviceptr p0 = device_bytes(8192, NULL), p1 = device_bytes(8192, NULL);
        assert_int_equal(cuMemcpyHtoD_v2(p1, data, sizeof data), CUDA_SUCCESS);
        CUtensorMap map = map_of(&t, p1);
        allow_shared(f);
        cuMemsetD32_v2(p0 + 4096, 0, 1);
        capture_stderr();
        CUresult r = run(f, strstr(body, "%ctaid") ? 2 : 1, THREADS, p0, p1, 0, &map);
        captured_stderr();
        const char *what = all[n].name[0] ? all[n].name : all[n - 1].name;
        expect_report(what, all[n].words, r);
        assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
    }
}

static void test_rules(void **state)
{
    (void)state;
    check_bulk_rules(rules, sizeof rules / sizeof *rules);
}

static void test_proxy_rules(void **state)
{
    (void)state;
    check_bulk_rules(proxy_rules, sizeof proxy_rules / sizeof *proxy_rules);
}

static void test_lanes_rules(void **state)
{
    (void)state;
    check_bulk_rules(lanes_rules, sizeof lanes_rules / sizeof *lanes_rules);
}

/* ---- what is refused ----------------------------------------------------------------------------------------------- */

static void test_refused(void **state)
{
    static const struct {
        const char *instruction, *words;
    } cases[] = {
        {"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r0], [%p0, {%r0, %r0, %r0}], [%r0], {%h0};",
         "a bulk copy with .im2col is not emulated"},
        {"cp.async.bulk.global.shared::cta.bulk_group [%p0], [%r0], 24;",
         "the size must be a multiple of 16"},
        {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%p0], [%r0], 16;", "'cp'"},
        {"cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%p0], [%r0], 16;", "'cp'"},
        {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.b32 [%r0], [%r0], 16, [%r0];",
         "'.b32' is not a modifier that 'cp' takes here"},
        {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.min.u64 [%r0], [%r0], 16, [%r0];",
         "'.u64' is not a modifier that 'cp' takes here"},
        {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.xor.u32 [%r0], [%r0], 16, [%r0];",
         "'.u32' is not a modifier that 'cp' takes here"},
        {"cp.async.bulk.global.shared::cta.bulk_group [%p0], [%r0], 16, [%r0];",
         "'cp' takes 3 operands, 4 are given"},
        {"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%p0, {%r0}], [%r0];",
         "expected a vector of 2 elements"},
        {"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%p0], [%r0];",
         "expected [tensor map, {2 coordinates}]"},
        {"tensormap.replace.tile.rank.shared.b1024.b32 [%r0], 1;",
         "'.shared' is not a modifier that 'tensormap' takes here"},
        {"tensormap.replace.tile.swizzle_atomicity.b1024.b32 [%p0], 1;", "needs one of the targets 100f"},
        {"tensormap.replace.tile.box_dim.b1024.b32 [%p0], 5, 1;", "this number is not one of the field's"},
        {"tensormap.replace.tile.elemtype.b1024.b32 [%p0], %r0;", "the new value of this field is a number"},
    };
    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        char body[512];
        CUmodule module;
        CUfunction f;
        snprintf(
            body, sizeof body,
            ".reg .b32 %%r<2>; .reg .b64 %%p<2>; .reg .b16 %%h<2>;\nmov.b32 %%r0, 0; mov.b64 %%p0, 0;\n%s\nret;",
            cases[n].instruction);
        CUresult r = load_text(text_of(NULL, body), &module);
        if (r == CUDA_SUCCESS)
            assert_int_equal(cuModuleGetFunction(&f, module, "k"), CUDA_ERROR_NOT_SUPPORTED);
        assert_contains(test_log, cases[n].words);
    }
}

/* The arguments of cuTensorMapEncodeTiled, and a change of one. */
typedef struct encoding {
    tensor t;
    int interleave;
} encoding;

typedef struct change {
    size_t at, bytes; /* 0 bytes: none */
    uint64_t value;
} change;

/* clang-format off */
#define CHANGE(member, value)      {offsetof(encoding, member), sizeof(((encoding *)0)->member), value}
/* clang-format on */
#define BOX_SIZE(columns, rows) CHANGE(t.box[0], columns), CHANGE(t.box[1], rows)
#define SIZE(columns, rows, pitch)                                                                           \
    CHANGE(t.size[0], columns), CHANGE(t.size[1], rows), CHANGE(t.stride[0], pitch)
#define SWIZZLE(mode) CHANGE(t.swizzle, mode)

static const encoding right = {
    .t = {.type = 7, .rank = 2, .size = {32, 16}, .stride = {128}, .box = {8, 4}, .step = {1, 1}}};

/* Arguments that the documentation excludes, one at a time. */
static void test_encoding(void **state)
{
    enum { VALID = CUDA_SUCCESS, INVALID = CUDA_ERROR_INVALID_VALUE, REFUSED = CUDA_ERROR_NOT_SUPPORTED };
    const uint64_t most = UINT64_C(1) << 32;
    const struct {
        const char *what;
        int result;
        change changes[6];
    } cases[] = {
        {"right", VALID, {{0}}},
        {"sizes of 2^32", VALID, {SIZE(most, most, 128)}},
        {"a box of 256", VALID, {CHANGE(t.type, 0), SIZE(512, 512, 512), BOX_SIZE(256, 256)}},
        {"type", INVALID, {CHANGE(t.type, 16)}},
        {"rank 0", INVALID, {CHANGE(t.rank, 0)}},
        {"rank 6", INVALID, {CHANGE(t.rank, 6)}},
        {"size 0", INVALID, {SIZE(32, 0, 128)}},
        {"size", INVALID, {SIZE(most + 1, 16, 128)}},
        {"stride", INVALID, {SIZE(32, 16, 136)}},
        {"stride 2^40", INVALID, {SIZE(32, 16, UINT64_C(1) << 40)}},
        {"box 0", INVALID, {BOX_SIZE(8, 0)}},
        {"box 257", INVALID, {BOX_SIZE(8, 257)}},
        {"a row of 24 bytes", INVALID, {BOX_SIZE(6, 4)}},
        {"step 0", INVALID, {CHANGE(t.step[1], 0)}},
        {"step 9", INVALID, {CHANGE(t.step[1], 9)}},
        {"a row longer than 32 bytes", INVALID, {SWIZZLE(1), BOX_SIZE(12, 4)}},
        {"a row longer than 128 bytes", INVALID, {SWIZZLE(3), SIZE(64, 16, 256), BOX_SIZE(36, 4)}},
        {"swizzle", INVALID, {SWIZZLE(7)}},
        {"NaNs of integers", INVALID, {CHANGE(t.type, 2), CHANGE(t.fill, 1)}},
        {"interleave", INVALID, {CHANGE(interleave, 3)}},
        {"interleaved in two dimensions", INVALID, {CHANGE(interleave, 1)}},
        {"interleaved",
         REFUSED,
         {CHANGE(interleave, 1), CHANGE(t.rank, 3), CHANGE(t.size[2], 2), CHANGE(t.stride[1], 2048),
          CHANGE(t.box[2], 1), CHANGE(t.step[2], 1)}},
        {"a packed type", REFUSED, {CHANGE(t.type, 13)}},
        {"a swizzle of 32 bytes", REFUSED, {SWIZZLE(4), BOX_SIZE(32, 4)}},
        {"rows shorter than the swizzle's", REFUSED, {SWIZZLE(3)}},
    };
    CUtensorMap maps[2];
    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        encoding e = right;
        const tensor *t = &e.t;
        for (size_t k = 0; k < 6; k++)
            memcpy((char *)&e + cases[n].changes[k].at, &cases[n].changes[k].value,
                   cases[n].changes[k].bytes);
        capture_stderr();
        CUresult r = cuTensorMapEncodeTiled(&maps[0], t->type, (unsigned)t->rank, (void *)4096, t->size,
                                            t->stride, t->box, t->step, e.interleave, t->swizzle, 0, t->fill);
        captured_stderr();
        if ((int)r != cases[n].result)
            fail_msg("%s: %d, not %d", cases[n].what, (int)r, cases[n].result);
    }
    const tensor *t = &right.t;
#define ENCODE(map, address)                                                                                 \
    cuTensorMapEncodeTiled((CUtensorMap *)(map), t->type, 2, (void *)(address), t->size, t->stride, t->box,  \
                           t->step, 0, 0, 0, 0)
    assert_int_equal(ENCODE(&maps[0], (uintptr_t)4104), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ENCODE((char *)&maps[0] + 32, (uintptr_t)4096), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ENCODE(NULL, (uintptr_t)4096), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ENCODE(&maps[0], (uintptr_t)4096), CUDA_SUCCESS);
    assert_int_equal(ENCODE(&maps[1], (uintptr_t)8192), CUDA_SUCCESS);
    assert_int_equal(cuTensorMapReplaceAddress(&maps[0], (void *)8192), CUDA_SUCCESS);
    assert_memory_equal(&maps[0], &maps[1], sizeof maps[0]);
    assert_int_equal(cuTensorMapReplaceAddress(&maps[0], (void *)8200), CUDA_ERROR_INVALID_VALUE);
}

/* ---- ptxas --------------------------------------------------------------------------------------------------------- */

/* ptxas accepts all kernels of this file. */
static void test_ptxas(void **state)
{
    char name[32];
    (void)state;
    ptxas_text text = begin_ptxas(header);
    for (size_t n = 0; n < sizeof rules / sizeof *rules; n++) {
        char body[8192] = "";
        ADD("%s%sret;", DECLARE, rules[n].body);
        snprintf(name, sizeof name, "rule%zu", n);
        fputs(text_of(name, body), text.file);
    }
    for (int n = 0; n < 20; n++) {
        tensor t = random_tensor(0, 1 + n / 4, 0, false);
        snprintf(name, sizeof name, "load%d", n);
        fputs(text_of(name, load_body_of(&t, n % 4)), text.file);
        snprintf(name, sizeof name, "store%d", n);
        fputs(text_of(name, store_body_of(&t, n % 3 == 0 ? NULL : n % 3 == 1 ? "add" : "xor")), text.file);
    }
    end_ptxas(&text);
}

/* With the argument "proxy" or "lanes", runs under that check: a process reads KILN_EMU_CHECK only once. */
int main(int count, char **arguments)
{
    const char *check = count > 1 ? arguments[1] : NULL;
    char checks[32];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes),          cmocka_unit_test(test_large_boxes),
        cmocka_unit_test(test_bytes),          cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_box_reductions), cmocka_unit_test(test_rules),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_encoding),
        cmocka_unit_test(test_ptxas),
    };
    const struct CMUnitTest of_proxy[] = {cmocka_unit_test(test_proxy_rules)};
    const struct CMUnitTest of_lanes[] = {cmocka_unit_test(test_lanes_rules)};
    snprintf(checks, sizeof checks, "all,same%s%s", check ? "," : "", check ? check : "");
    setenv("KILN_EMU_CHECK", checks, 1);
    if (!check)
        return cmocka_run_group_tests(tests, begin_context, end_context);
    return strcmp(check, "lanes") == 0 ? cmocka_run_group_tests(of_lanes, begin_context, end_context)
                                       : cmocka_run_group_tests(of_proxy, begin_context, end_context);
}
