/* Clusters of thread blocks: launch attributes, special registers, barrier.cluster, and shared memory of other blocks: values,
   then each rule, broken and kept. */
#include "rules.h"

static const char header[] = ".version 8.8\n.target sm_90";

#define OK(call)          assert_int_equal(call, CUDA_SUCCESS)
#define FAILS(call, what) assert_int_equal(call, what)

/* ---- launches ------------------------------------------------------------------------------------------------------ */

enum { MUST_BE_SET = 10, WIDTH = 11, HEIGHT = 12, DEPTH = 13, ALLOWS_LARGE = 14, POLICY = 15 };

static CUfunction kernel_with(const char *directives, const char *body)
{
    static char text[4096];
    CUmodule module;
    CUfunction f;
    snprintf(
        text, sizeof text,
        ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p0) %s\n{\n%s\n}\n",
        directives, body);
    if (load_text(text, &module) != CUDA_SUCCESS)
        fail_msg("%s", test_log);
    OK(cuModuleGetFunction(&f, module, "k"));
    return f;
}

typedef struct extents {
    unsigned x, y, z;
} extents;

/* cluster.x 0: the launch gives no cluster size. */
static CUresult launch_extents(CUfunction f, extents grid, extents cluster, CUstream stream, CUdeviceptr p0)
{
    void *parameters[] = {&p0};
    CUlaunchAttribute attributes[] = {
        {.id = CU_LAUNCH_CLUSTER_SCHEDULING, .value.cooperative = 1},
        {.id = CU_LAUNCH_CLUSTER_DIMENSION, .value.cluster = {cluster.x, cluster.y, cluster.z}}};
    CUlaunchConfig config = {grid.x, grid.y, grid.z, 1, 1, 1, 0, stream, attributes, cluster.x ? 2 : 1};
    return cuLaunchKernelEx(&config, f, parameters, NULL);
}

static int attribute_of(CUfunction f, int attribute)
{
    int value = -1;
    OK(cuFuncGetAttribute(&value, attribute, f));
    return value;
}

static void test_sizes(void **state)
{
#define INVALID CUDA_ERROR_INVALID_CLUSTER_SIZE
    static const struct {
        const char *directives;
        extents grid, cluster;
        bool allows_large;
        CUresult result;
    } rows[] = {
        {"", {4, 1, 1}, {2, 1, 1}, false, CUDA_SUCCESS},
        {"", {6, 4, 2}, {3, 2, 1}, false, CUDA_SUCCESS},
        {"", {8, 1, 1}, {8, 1, 1}, false, CUDA_SUCCESS},
        {"", {16, 1, 1}, {16, 1, 1}, false, INVALID},
        {"", {16, 1, 1}, {16, 1, 1}, true, CUDA_SUCCESS},
        {"", {32, 1, 1}, {32, 1, 1}, true, INVALID},
        {"", {5, 1, 1}, {2, 1, 1}, false, INVALID},
        {"", {4, 3, 1}, {1, 2, 1}, false, INVALID},
        {".reqnctapercluster 2", {4, 1, 1}, {0, 0, 0}, false, CUDA_SUCCESS},
        {".reqnctapercluster 2", {4, 1, 1}, {2, 1, 1}, false, CUDA_SUCCESS},
        {".reqnctapercluster 2", {4, 1, 1}, {4, 1, 1}, false, INVALID},
        {".reqnctapercluster 2", {5, 1, 1}, {0, 0, 0}, false, INVALID},
        {".reqnctapercluster 3, 2", {3, 2, 1}, {0, 0, 0}, false, CUDA_SUCCESS},
        {".reqnctapercluster 16", {16, 1, 1}, {0, 0, 0}, false, INVALID},
        {".explicitcluster", {4, 1, 1}, {0, 0, 0}, false, INVALID},
        {".explicitcluster", {4, 1, 1}, {1, 1, 1}, false, CUDA_SUCCESS},
        {".explicitcluster .reqnctapercluster 4", {4, 1, 1}, {0, 0, 0}, false, CUDA_SUCCESS},
        {".maxclusterrank 4", {8, 1, 1}, {4, 1, 1}, false, CUDA_SUCCESS},
        {".maxclusterrank 4", {8, 1, 1}, {8, 1, 1}, false, INVALID},
        {".reqnctapercluster 0 .maxclusterrank 0", {5, 1, 1}, {0, 0, 0}, false, CUDA_SUCCESS},
    };
    (void)state;
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        CUfunction f = kernel_with(rows[n].directives, "ret;");
        if (rows[n].allows_large)
            OK(cuFuncSetAttribute(f, ALLOWS_LARGE, 1));
        CUresult r = launch_extents(f, rows[n].grid, rows[n].cluster, NULL, 0);
        if (r != rows[n].result)
            fail_msg("row %zu: %d", n, (int)r);
    }
    CUmodule module;
    FAILS(
        load_text(
            ".version 8.8\n.target sm_90\n.address_size 64\n.entry k() .reqnctapercluster 2 .maxclusterrank 2 { ret; }",
            &module),
        CUDA_ERROR_INVALID_PTX);
    assert_contains(test_log, "exclude each other");
    FAILS(load_text(".version 8.8\n.target sm_80\n.address_size 64\n.entry k() .reqnctapercluster 2 { ret; }",
                    &module),
          CUDA_ERROR_INVALID_PTX);
    assert_contains(test_log, "needs .target sm_90");
}

static void test_attributes(void **state)
{
    (void)state;
    CUfunction f = kernel_with("", "ret;"),
               g = kernel_with(".explicitcluster .reqnctapercluster 4, 2", "ret;");
    int value;
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_CLUSTER_DIMENSION, .value.cluster = {4, 1, 1}};
    CUlaunchConfig config = {8, 1, 1, 1024, 1, 1, 0, NULL, &attribute, 1};
    assert_int_equal(attribute_of(f, WIDTH), 0);
    assert_int_equal(attribute_of(g, WIDTH), 4);
    assert_int_equal(attribute_of(g, HEIGHT), 2);
    assert_int_equal(attribute_of(g, DEPTH), 1);
    assert_int_equal(attribute_of(f, MUST_BE_SET), 0);
    assert_int_equal(attribute_of(g, MUST_BE_SET), 1);
    FAILS(cuFuncSetAttribute(g, WIDTH, 2), CUDA_ERROR_NOT_PERMITTED);
    FAILS(cuFuncSetAttribute(f, WIDTH, -1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuFuncSetAttribute(f, MUST_BE_SET, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuFuncSetAttribute(f, ALLOWS_LARGE, 2), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuFuncSetAttribute(f, POLICY, 3), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetAttribute(f, POLICY, 2));
    assert_int_equal(attribute_of(f, POLICY), 2);
    OK(cuOccupancyMaxPotentialClusterSize(&value, f, &config));
    assert_int_equal(value, 8);
    OK(cuFuncSetAttribute(f, ALLOWS_LARGE, 1));
    OK(cuOccupancyMaxPotentialClusterSize(&value, f, &config));
    assert_int_equal(value, 16);
    OK(cuOccupancyMaxPotentialClusterSize(&value, g, &config));
    assert_int_equal(value, 8);
    OK(cuOccupancyMaxActiveClusters(&value, f, &config));
    assert_int_equal(value,
                     132 * 2 / 4); /* an H100 holds two blocks of 1,024 threads on each multiprocessor */
    FAILS(cuOccupancyMaxActiveClusters(&value, g, &config), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    config.numAttrs = 0;
    OK(cuOccupancyMaxActiveClusters(&value, g, &config));
    assert_int_equal(value, 132 * 2 / 8);
    FAILS(cuOccupancyMaxActiveClusters(&value, f, &config), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    OK(cuFuncSetAttribute(f, WIDTH, 2));
    FAILS(launch_extents(f, (extents){4, 1, 1}, (extents){0, 0, 0}, NULL, 0),
          CUDA_ERROR_INVALID_CLUSTER_SIZE);
    OK(cuFuncSetAttribute(f, HEIGHT, 1));
    OK(cuFuncSetAttribute(f, DEPTH, 1));
    OK(launch_extents(f, (extents){4, 1, 1}, (extents){0, 0, 0}, NULL, 0));
    OK(cuDeviceGetAttribute(&value, 120, 0));
    assert_int_equal(value, 1);
}

/* ---- special registers --------------------------------------------------------------------------------------------- */

enum { VALUES = 16 };

/* Each block stores what it reads at its linear index. */
static const char specials[] =
    ".reg .u64 %p<3>; .reg .u32 %r<20>; .reg .pred %q<2>;\n"
    "ld.param.u64 %p0, [p0];\n"
    "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; mov.u32 %r2, %ctaid.z;\n"
    "mov.u32 %r3, %nctaid.x; mov.u32 %r4, %nctaid.y;\n"
    "mad.lo.u32 %r1, %r2, %r4, %r1; mad.lo.u32 %r0, %r1, %r3, %r0; mad.wide.u32 %p0, %r0, 64, %p0;\n"
    "mov.u32 %r1, %clusterid.x; st.global.u32 [%p0], %r1; mov.u32 %r1, %clusterid.y; st.global.u32 [%p0+4], %r1;\n"
    "mov.u32 %r1, %clusterid.z; st.global.u32 [%p0+8], %r1; mov.u32 %r1, %nclusterid.x; st.global.u32 [%p0+12], %r1;\n"
    "mov.u32 %r1, %nclusterid.y; st.global.u32 [%p0+16], %r1; mov.u32 %r1, %nclusterid.z; st.global.u32 [%p0+20], %r1;\n"
    "mov.u32 %r1, %cluster_ctaid.x; st.global.u32 [%p0+24], %r1; mov.u32 %r1, %cluster_ctaid.y; st.global.u32 [%p0+28], %r1;\n"
    "mov.u32 %r1, %cluster_ctaid.z; st.global.u32 [%p0+32], %r1; mov.u32 %r1, %cluster_nctaid.x; st.global.u32 [%p0+36], %r1;\n"
    "mov.u32 %r1, %cluster_nctaid.y; st.global.u32 [%p0+40], %r1; mov.u32 %r1, %cluster_nctaid.z; st.global.u32 [%p0+44], %r1;\n"
    "mov.u32 %r1, %cluster_ctarank; st.global.u32 [%p0+48], %r1; mov.u32 %r1, %cluster_nctarank; st.global.u32 [%p0+52], %r1;\n"
    "mov.pred %q0, %is_explicit_cluster; selp.u32 %r1, 1, 0, %q0; st.global.u32 [%p0+56], %r1;\n"
    "ret;";

static void check_specials(CUdeviceptr p, extents grid, extents cluster, bool is_explicit)
{
    static uint32_t out[64][VALUES];
    OK(cuMemcpyDtoH_v2(out, p, sizeof out));
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                extents in = {x % cluster.x, y % cluster.y, z % cluster.z};
                const uint32_t expected[] = {x / cluster.x,
                                             y / cluster.y,
                                             z / cluster.z,
                                             grid.x / cluster.x,
                                             grid.y / cluster.y,
                                             grid.z / cluster.z,
                                             in.x,
                                             in.y,
                                             in.z,
                                             cluster.x,
                                             cluster.y,
                                             cluster.z,
                                             in.x + cluster.x * (in.y + cluster.y * in.z),
                                             cluster.x * cluster.y * cluster.z,
                                             is_explicit};
                assert_memory_equal(out[x + grid.x * (y + grid.y * z)], expected, sizeof expected);
            }
}

static void test_specials(void **state)
{
    (void)state;
    extents grid = {6, 4, 2}, cluster = {3, 2, 1}, none = {0, 0, 0}, one = {1, 1, 1}, tall = {1, 2, 2},
            wide = {2, 1, 2};
    CUdeviceptr p = device_bytes(64 * 4 * VALUES, NULL);
    cuMemsetD32_v2(p, 0, 64 * VALUES);
    CUfunction f = kernel_with("", specials), g = kernel_with(".reqnctapercluster 2, 1, 2", specials);
    OK(launch_extents(f, grid, cluster, NULL, p));
    check_specials(p, grid, cluster, true);
    OK(launch_extents(f, grid, tall, NULL, p));
    check_specials(p, grid, tall, true);
    OK(launch_extents(f, grid, none, NULL, p));
    check_specials(p, grid, one, false);
    OK(launch_extents(f, grid, one, NULL, p));
    check_specials(p, grid, one, true);
    OK(launch_extents(g, grid, none, NULL, p));
    check_specials(p, grid, wide, true);
    OK(cuMemFree_v2(p));
}

/* A captured launch keeps its cluster. */
static void test_graph(void **state)
{
    (void)state;
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    extents grid = {6, 2, 1}, cluster = {2, 2, 1};
    CUdeviceptr p = device_bytes(64 * 4 * VALUES, NULL);
    CUfunction f = kernel_with("", specials);
    OK(cuStreamCreate(&stream, 1));
    OK(cuStreamBeginCapture_v2(stream, 0));
    OK(launch_extents(f, grid, cluster, stream, p));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    cuMemsetD32_v2(p, 0, 64 * VALUES);
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    check_specials(p, grid, cluster, true);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFree_v2(p));
}

/* ---- values -------------------------------------------------------------------------------------------------------- */

#define LOOP_REGISTERS                                                                                       \
    ".reg .u64 %p<9>; .reg .u32 %r<20>; .reg .pred %q<4>; .reg .b64 %d<8>; .reg .f32 %f<4>;\n"
#define SYNC "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"

/* Every form of address: each thread stores rank, lane and the number of the form in the next block of the ring, which reads it
   from its own memory, by ld.shared. */
static void test_addresses(void **state)
{
    (void)state;
    static const char body[] = LOOP_REGISTERS
        ".shared .align 16 .b8 s[1024];\n"
        "ld.param.u64 %p0, [p0]; mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %cluster_nctarank;\n"
        "add.u32 %r3, %r1, 1; rem.u32 %r3, %r3, %r2; shl.b32 %r4, %r0, 2; mad.lo.u32 %r5, %r1, 1000, %r0;\n" SYNC
        /* 0: mapa of a variable, u32; 1: of a register, with an offset; 2: u64; 3: generic; 4: cvta; 5: bits of the address */
        "mapa.shared::cluster.u32 %r6, s, %r3; add.u32 %r6, %r6, %r4; st.shared::cluster.u32 [%r6], %r5;\n"
        "mov.u32 %r7, s; mapa.shared::cluster.u32 %r6, %r7, %r3; add.u32 %r6, %r6, %r4; add.u32 %r5, %r5, 100;\n"
        "st.shared::cluster.u32 [%r6+128], %r5;\n"
        "mov.u64 %d0, s; mapa.shared::cluster.u64 %d1, %d0, %r3; cvt.u64.u32 %d2, %r4; add.u64 %d1, %d1, %d2;\n"
        "add.u32 %r5, %r5, 100; st.shared::cluster.u32 [%d1+256], %r5;\n"
        "cvta.shared.u64 %d0, s; mapa.u64 %d1, %d0, %r3; add.u64 %d1, %d1, %d2; add.u32 %r5, %r5, 100;\n"
        "st.u32 [%d1+384], %r5;\n"
        "cvt.u64.u32 %d3, %r6; cvta.shared::cluster.u64 %d4, %d3; add.u32 %r5, %r5, 100; st.u32 [%d4+512], %r5;\n"
        "and.b32 %r8, %r7, 0xffffff; shl.b32 %r9, %r3, 24; or.b32 %r8, %r8, %r9; add.u32 %r8, %r8, %r4; add.u32 %r5, %r5, 100;\n"
        "st.shared::cluster.u32 [%r8+640], %r5;\n" SYNC
        "mov.u32 %r10, %ctaid.x; mov.u32 %r12, %ntid.x; mad.lo.u32 %r10, %r10, %r12, %r0; mad.wide.u32 %p1, %r10, 32, %p0;\n"
        "add.u32 %r6, %r7, %r4;\n"
        "ld.shared.u32 %r11, [%r6]; st.global.u32 [%p1], %r11; ld.shared.u32 %r11, [%r6+128]; st.global.u32 [%p1+4], %r11;\n"
        "ld.shared::cta.u32 %r11, [%r6+256]; st.global.u32 [%p1+8], %r11; ld.shared::cluster.u32 %r11, [%r6+384];\n"
        "st.global.u32 [%p1+12], %r11; cvta.shared.u64 %d0, s; add.u64 %d0, %d0, %d2; ld.u32 %r11, [%d0+512];\n"
        "st.global.u32 [%p1+16], %r11; ld.shared.u32 %r11, [%r6+640]; st.global.u32 [%p1+20], %r11;\n"
        /* 6: getctarank of own, next and generic addresses; 7: isspacep */
        "getctarank.shared::cluster.u32 %r11, s; mapa.shared::cluster.u32 %r12, s, %r3; getctarank.shared::cluster.u32 %r12, %r12;\n"
        "mad.lo.u32 %r11, %r12, 10, %r11; mapa.u64 %d5, %d0, %r3; getctarank.u64 %r12, %d5; mad.lo.u32 %r11, %r12, 100, %r11;\n"
        "st.global.u32 [%p1+24], %r11;\n"
        "isspacep.shared::cluster %q0, %d5; selp.u32 %r11, 1, 0, %q0; isspacep.shared %q0, %d5; @%q0 add.u32 %r11, %r11, 2;\n"
        "isspacep.shared::cta %q0, %d0; @%q0 add.u32 %r11, %r11, 4; isspacep.shared::cluster %q0, %p0; @%q0 add.u32 %r11, %r11, 8;\n"
        "mapa.u64 %d6, %d0, %r2; isspacep.shared::cluster %q0, %d6; @%q0 add.u32 %r11, %r11, 16;\n"
        "st.global.u32 [%p1+28], %r11;\n" SYNC "ret;";
    enum { BLOCKS = 6, CLUSTER = 3, THREADS = 32 };
    static uint32_t out[BLOCKS][THREADS][8];
    CUfunction f = kernel_of(header, body);
    CUdeviceptr p = device_bytes(sizeof out, NULL);
    OK(launch_clusters(f, BLOCKS, CLUSTER, THREADS, p, p, 0));
    OK(cuMemcpyDtoH_v2(out, p, sizeof out));
    for (unsigned b = 0; b < BLOCKS; b++)
        for (unsigned t = 0; t < THREADS; t++) {
            unsigned rank = b % CLUSTER, from = (rank + CLUSTER - 1) % CLUSTER, next = (rank + 1) % CLUSTER;
            for (unsigned form = 0; form < 6; form++)
                assert_int_equal(out[b][t][form], from * 1000 + t + 100 * form);
            assert_int_equal(out[b][t][6], rank + 10 * next + 100 * next);
            assert_int_equal(out[b][t][7], 1 + 4);
        }
    OK(cuMemFree_v2(p));
}

/* Loads, stores and atomics of every size: a histogram that the blocks of a cluster share, and vectors. */
static void test_histogram(void **state)
{
    (void)state;
    static const char body[] = LOOP_REGISTERS
        ".shared .align 16 .b8 s[256]; .shared .align 16 .b8 v[512];\n"
        "ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1]; mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank;\n"
        "mov.u32 %r2, %cluster_nctarank; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, s;\n"
        "setp.lt.u32 %q0, %r0, 64; shl.b32 %r6, %r0, 2; add.u32 %r7, %r5, %r6; @%q0 st.shared.u32 [%r7], 0;\n" SYNC
        "mad.lo.u32 %r8, %r3, %r4, %r0; mad.wide.u32 %p2, %r8, 4, %p1; ld.global.u32 %r9, [%p2];\n"
        "rem.u32 %r10, %r9, %r2; div.u32 %r11, %r9, %r2; and.b32 %r11, %r11, 63; shl.b32 %r11, %r11, 2;\n"
        "mapa.shared::cluster.u32 %r12, %r5, %r10; add.u32 %r12, %r12, %r11; red.shared::cluster.add.u32 [%r12], 1;\n"
        "atom.relaxed.cluster.shared::cluster.add.u32 %r13, [%r12], 0; cvt.u64.u32 %d0, %r12; cvta.shared::cluster.u64 %d0, %d0;\n"
        "atom.add.u32 %r13, [%d0], 1;\n" SYNC
        "shr.u32 %r14, %r3, 2; mul.lo.u32 %r14, %r14, %r2; add.u32 %r14, %r14, %r1; mad.lo.u32 %r14, %r14, 64, %r0;\n"
        "mad.wide.u32 %p3, %r14, 4, %p0; @!%q0 bra END; ld.shared.u32 %r15, [%r7]; st.global.u32 [%p3], %r15;\nEND:\n"
        "ret;";
    enum { BLOCKS = 8, CLUSTER = 4, THREADS = 96, BINS = 64 };
    static uint32_t in[BLOCKS * THREADS], out[BLOCKS][BINS], expected[BLOCKS][BINS];
    for (unsigned n = 0; n < BLOCKS * THREADS; n++) {
        in[n] = (uint32_t)(random_bits() % 5000);
        expected[n / THREADS / CLUSTER * CLUSTER + in[n] % CLUSTER][in[n] / CLUSTER % BINS] += 2;
    }
    CUfunction f = kernel_of(header, body);
    CUdeviceptr p0 = device_bytes(sizeof out, NULL), p1 = device_bytes(sizeof in, in);
    OK(launch_clusters(f, BLOCKS, CLUSTER, THREADS, p0, p1, 0));
    OK(cuMemcpyDtoH_v2(out, p0, sizeof out));
    assert_memory_equal(out, expected, sizeof out);
    OK(cuMemFree_v2(p0));
    OK(cuMemFree_v2(p1));
}

/* Each width, scalar and vector, strong and weak, from or to another block's memory. */
static void test_widths(void **state)
{
    static const struct {
        const char *load, *store;
    } rows[] = {
        {"ld.shared::cluster.b8 %h0, [%r4];", "st.shared.b8 [%r3+64], %h0;"},
        {"ld.shared::cluster.b16 %h0, [%r4];", "st.shared.b16 [%r3+64], %h0;"},
        {"ld.shared::cluster.b32 %r5, [%r4];", "st.shared.b32 [%r3+64], %r5;"},
        {"ld.shared::cluster.b64 %d0, [%r4];", "st.shared.b64 [%r3+64], %d0;"},
        {"ld.shared::cluster.v2.b32 {%r5, %r6}, [%r4];", "st.shared.v2.b32 [%r3+64], {%r5, %r6};"},
        {"ld.shared::cluster.v4.b32 {%r5, %r6, %r7, %r8}, [%r4];",
         "st.shared.v4.b32 [%r3+64], {%r5, %r6, %r7, %r8};"},
        {"ld.shared::cluster.v2.b64 {%d0, %d1}, [%r4];", "st.shared.v2.b64 [%r3+64], {%d0, %d1};"},
        {"ld.relaxed.cluster.shared::cluster.b32 %r5, [%r4];", "st.shared.b32 [%r3+64], %r5;"},
        {"ld.volatile.shared::cluster.b64 %d0, [%r4];", "st.shared.b64 [%r3+64], %d0;"},
        {"ld.shared.b64 %d0, [%r3];", "st.shared::cluster.b64 [%r4+64], %d0;"},
        {"ld.shared.v4.b32 {%r5, %r6, %r7, %r8}, [%r3];",
         "st.shared::cluster.v4.b32 [%r4+64], {%r5, %r6, %r7, %r8};"},
        {"ld.shared.b16 %h0, [%r3];", "st.release.cluster.shared::cluster.b16 [%r4+64], %h0;"},
    };
    static const unsigned bytes[] = {1, 2, 4, 8, 8, 16, 16, 4, 8, 8, 16, 2};
    (void)state;
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        char body[2048];
        uint8_t out[2][64];
        snprintf(
            body, sizeof body,
            ".reg .u64 %%p<4>; .reg .b32 %%r<12>; .reg .b16 %%h<2>; .reg .b64 %%d<2>; .reg .pred %%q0;\n"
            ".shared .align 16 .b8 s[128];\n"
            "ld.param.u64 %%p0, [p0]; mov.u32 %%r0, %%tid.x; mov.u32 %%r1, %%cluster_ctarank; xor.b32 %%r2, %%r1, 1;\n"
            "mov.u32 %%r3, s; mapa.shared::cluster.u32 %%r4, %%r3, %%r2; add.u32 %%r9, %%r3, %%r0;\n"
            "mad.lo.u32 %%r10, %%r1, 100, %%r0; cvt.u16.u32 %%h1, %%r10; st.shared.b8 [%%r9], %%h1; st.shared.b8 [%%r9+64], 255;\n"
            "%s\nsetp.ne.u32 %%q0, %%r0, 0; @%%q0 bra SKIP;\n%s\n%s\nSKIP:\n%s\n"
            "ld.shared.b8 %%h0, [%%r9+64]; mad.lo.u32 %%r11, %%r1, 64, %%r0; cvt.u64.u32 %%p1, %%r11; add.u64 %%p1, %%p1, %%p0;\n"
            "st.global.b8 [%%p1], %%h0; ret;",
            SYNC, rows[n].load, rows[n].store, SYNC);
        CUfunction f = kernel_of(header, body);
        CUdeviceptr p = device_bytes(sizeof out, NULL);
        OK(launch_clusters(f, 2, 2, 64, p, p, 0));
        OK(cuMemcpyDtoH_v2(out, p, sizeof out));
        for (unsigned rank = 0; rank < 2; rank++)
            for (unsigned k = 0; k < 64; k++)
                assert_int_equal(out[rank][k], k < bytes[n] ? (1 - rank) * 100 + k : 255);
        OK(cuMemFree_v2(p));
    }
}

/* ---- rules --------------------------------------------------------------------------------------------------------- */

/* r1, r2: ranks of this block and the other one; q0: r1 is 0; q2, q3: lane 0 of block 0 and of block 1; r3, r4: s of this block
   and of the other one; r6, r7: this thread's word in them; r8, r9: their mbarriers, of one arrival. */
#define PROLOGUE                                                                                             \
    ".reg .u64 %p<9>; .reg .u32 %r<24>; .reg .pred %q<6>; .reg .b64 %d<6>; .reg .b64 %x<2>;\n"               \
    ".shared .align 16 .b8 s[1024]; .shared .align 8 .b64 b;\n"                                              \
    "ld.param.u64 %p0, [p0]; mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1;\n"     \
    "mov.u32 %r3, s; mapa.shared::cluster.u32 %r4, %r3, %r2; shl.b32 %r5, %r0, 2; add.u32 %r6, %r3, %r5;\n"  \
    "add.u32 %r7, %r4, %r5; mov.u32 %r8, b; mapa.shared::cluster.u32 %r9, %r8, %r2;\n"                       \
    "setp.eq.u32 %q0, %r1, 0; setp.eq.u32 %q1, %r0, 0; and.pred %q2, %q0, %q1; setp.ne.and.u32 %q3, %r1, 0, %q1;\n"
#define ARRIVE       "barrier.cluster.arrive.aligned;\n"
#define RELAXED      "barrier.cluster.arrive.relaxed.aligned;\n"
#define WAIT         "barrier.cluster.wait.aligned;\n"
#define FILL         "st.shared.u32 [%r6], %r0;\n"
#define READ         "ld.shared::cluster.u32 %r10, [%r7];\n"
#define WRITE        "st.shared::cluster.u32 [%r7], %r0;\n"
#define ZERO_WRITES  "@%q0 st.shared::cluster.u32 [%r7], %r0;\n"
#define ONE_READS    "@!%q0 ld.shared.u32 %r10, [%r6];\n"
#define INIT         "@%q1 mbarrier.init.shared.b64 [%r8], 1;\n"
#define READY        INIT "fence.mbarrier_init.release.cluster;\n" SYNC
#define UNTIL(wait)  "LOOP: " wait " %q4, [%r8], 0; @!%q4 bra LOOP;\n"
#define TRY          "mbarrier.try_wait.parity.shared::cta.b64"
#define TRY_CLUSTER  "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"
#define TRY_CTA      "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64"
#define SEND(arrive) WRITE "bar.warp.sync 0xffffffff;\n@%q1 " arrive " _, [%r9];\n"
#define TAKE(wait)   UNTIL(wait) "bar.warp.sync 0xffffffff;\nld.shared.u32 %r10, [%r6];\n"

static const rule rules[] = {
    /* barrier.cluster */
    {"a warp arrives twice", ARRIVE ARRIVE WAIT, "arrives at the cluster's barrier a second time", 0, 0},
    {"", ARRIVE WAIT ARRIVE WAIT, NULL, 0, 0},
    {"a warp arrives twice, the other one once",
     "@%q0 bra ZERO;\n" ARRIVE WAIT "bra END;\nZERO:\n" ARRIVE ARRIVE WAIT "END:\n",
     "arrives at the cluster's barrier a second time", 0, 0},
    {"a wait without an arrival", WAIT, "without having arrived there since its last wait", 0, 0},
    {"two waits", ARRIVE WAIT WAIT, "without having arrived there since its last wait", 0, 0},
    {"a warp never arrives",
     "setp.eq.u32 %q4, %r0, 33; @%q4 bra WAIT;\n"
     "barrier.cluster.arrive;\nWAIT: barrier.cluster.wait;\n",
     "the launch makes no progress", 64, 0},
    {"a warp that has ended is not waited for", "@%q0 exit;\n" ARRIVE WAIT, NULL, 0, 0},
    {"a warp arrives and ends", "@%q0 bra ZERO;\n" ARRIVE "exit;\nZERO:\n" ARRIVE WAIT, NULL, 64, 0},
    {"only one warp of a block waits",
     ARRIVE "setp.lt.u32 %q4, %r0, 32; @!%q4 bra NEXT;\n" WAIT "NEXT: bar.sync 0;\n" ARRIVE WAIT, NULL, 64,
     0},
    {"lanes have ended before an aligned barrier", "setp.lt.u32 %q4, %r0, 5; @%q4 exit;\n" ARRIVE WAIT,
     "is at an aligned barrier that 5 threads of its warp skip", 0, 0},
    {"", "setp.lt.u32 %q4, %r0, 5; @%q4 exit;\nbarrier.cluster.arrive; barrier.cluster.wait;\n", NULL, 0, 0},
    {"lanes are at different aligned barriers",
     "setp.lt.u32 %q4, %r0, 5; @%q4 bra FIVE;\n" ARRIVE "bra WAIT;\nFIVE:\n" ARRIVE "WAIT:\n" WAIT,
     "waits at an aligned barrier while lanes", 0, 0},
    {"",
     "setp.lt.u32 %q4, %r0, 5; @%q4 bra FIVE;\nbarrier.cluster.arrive; bra WAIT;\nFIVE: barrier.cluster.arrive;\nWAIT:\n" WAIT,
     NULL, 0, 0},
    {"a relaxed arrival publishes nothing",
     SYNC "@%q0 bra ZERO;\n" FILL "ZERO:\n" RELAXED WAIT "@!%q0 bra END;\n" READ "END:\n" SYNC,
     "with nothing to order the two", 0, 0},
    {"",
     SYNC "@%q0 bra ZERO;\n" FILL "ZERO: fence.acq_rel.cluster;\n" RELAXED WAIT "@!%q0 bra END;\n" READ
          "END:\n" SYNC,
     NULL, 0, 0},
    {"", SYNC "@%q0 bra ZERO;\n" FILL "ZERO:\n" ARRIVE WAIT "@!%q0 bra END;\n" READ "END:\n" SYNC, NULL, 0,
     0},
    {"",
     SYNC "@%q0 bra ZERO;\n" FILL "ZERO: fence.release.sync_restrict::shared::cta.cluster;\n" RELAXED WAIT
          "@!%q0 bra END;\n" READ "END: fence.acquire.sync_restrict::shared::cluster.cluster;\n" SYNC,
     NULL, 0, 0},
    {"the fence before a relaxed arrival is for the block only",
     SYNC "@%q0 bra ZERO;\n" FILL "ZERO: fence.acq_rel.cta;\n" RELAXED WAIT "@!%q0 bra END;\n" READ
          "END:\n" SYNC,
     "with nothing to order the two", 0, 0},
    {"an access between arrival and wait",
     SYNC ARRIVE "@%q0 bra ZERO;\n" FILL "ZERO:\n" WAIT "@!%q0 bra END;\n" READ "END:\n" SYNC,
     "with nothing to order the two", 0, 0},
    {"a block of one cluster is not one of the other's", FILL ARRIVE WAIT, NULL, 0, 1},
    /* shared memory of other blocks */
    {"a read before the other block has started", "@!%q0 bra END;\n" WRITE "END:\n" SYNC,
     "which may not have started", 0, 0},
    {"", SYNC "@!%q0 bra END;\n" WRITE "END:\n" SYNC, NULL, 0, 0},
    {"an atomic before the other block has started", FILL "@%q3 red.shared::cluster.add.u32 [%r4], 1;\n" SYNC,
     "which may not have started", 0, 0},
    {"a block ends while it may be read", FILL SYNC "@%q0 exit;\n" READ,
     "ends its block while thread (31,0,0) of block (1,0,0) may still access", 0, 0},
    {"a block has ended before it is read", FILL SYNC "@%q0 bra ZERO;\nexit;\nZERO:\n" READ,
     "of block (1,0,0), which has ended", 0, 0},
    {"", FILL SYNC READ SYNC, NULL, 0, 0},
    {"", FILL SYNC READ ARRIVE WAIT, NULL, 64, 4},
    {"a barrier of the block orders no other block", FILL SYNC ZERO_WRITES "bar.sync 0;\n" ONE_READS SYNC,
     "with nothing to order the two", 0, 0},
    {"", FILL SYNC ZERO_WRITES SYNC ONE_READS, NULL, 0, 0},
    {"a warp reads what the wait of another warp of its block has ordered",
     FILL SYNC ZERO_WRITES ARRIVE "setp.lt.u32 %q4, %r0, 32; @!%q4 bra READ;\n" WAIT "READ:\n" ONE_READS
                                  "@%q4 bra END;\n" WAIT "END:\n" SYNC,
     "with nothing to order the two", 64, 0},
    {"",
     FILL SYNC ZERO_WRITES ARRIVE "setp.lt.u32 %q4, %r0, 32; @!%q4 bra READ;\n" WAIT
                                  "READ: bar.sync 0;\n" ONE_READS "@%q4 bra END;\n" WAIT "END:\n" SYNC,
     NULL, 64, 0},
    {"two blocks write to a third",
     SYNC
     "mapa.shared::cluster.u32 %r10, %r3, 2; setp.eq.u32 %q4, %r1, 2; @%q4 bra END; @!%q1 bra END; st.shared::cluster.u32 [%r10], %r1;\nEND:\n" SYNC,
     "with nothing to order the two", 0, 3},
    {"",
     SYNC
     "mapa.shared::cluster.u32 %r10, %r3, 2; setp.eq.u32 %q4, %r1, 2; @%q4 bra END; @!%q1 bra END; red.shared::cluster.add.u32 [%r10], %r1;\nEND:\n" SYNC,
     "that were never written", 0, 3},
    {"",
     FILL SYNC
     "mapa.shared::cluster.u32 %r10, %r3, 2; setp.eq.u32 %q4, %r1, 2; @%q4 bra END; @!%q1 bra END; red.shared::cluster.add.u32 [%r10], %r1;\nEND:\n" SYNC,
     NULL, 0, 3},
    {"atomics whose scope is the block",
     FILL SYNC
     "@%q2 red.relaxed.cta.shared::cluster.add.u32 [%r4], 1;\n@%q3 red.relaxed.cta.shared::cta.add.u32 [%r3], 1;\n" SYNC,
     "with nothing to order the two", 0, 0},
    {"",
     FILL SYNC "@%q2 red.relaxed.cluster.shared::cluster.add.u32 [%r4], 1;\n"
               "@%q3 red.relaxed.cluster.shared::cta.add.u32 [%r3], 1;\n" SYNC,
     NULL, 0, 0},
    {"bytes that no thread wrote", SYNC "@!%q2 bra END;\n" READ "END:\n" SYNC,
     "reads 4 bytes that were never written, at 0x400 of .shared memory of block (1,0,0)", 0, 0},
    {"", FILL SYNC "@!%q2 bra END;\n" READ "END:\n" SYNC, NULL, 0, 0},
    {"an undefined value", SYNC "@%q2 st.shared::cluster.b64 [%r4], %x0;\n" SYNC,
     "uses an uninitialised register as the value that it stores", 0, 0},
    {"a rank that the cluster does not have",
     SYNC "mapa.shared::cluster.u32 %r10, %r3, 2;\nld.shared::cluster.u32 %r11, [%r10];\n" SYNC,
     "which belongs to the block of rank 2: the cluster has only 2 blocks", 0, 0},
    {"the same, generic", SYNC "cvta.shared.u64 %d0, s; mapa.u64 %d0, %d0, 5;\nld.u32 %r11, [%d0];\n" SYNC,
     "which belongs to the block of rank 5: the cluster has only 2 blocks", 0, 0},
    {"behind the end of the other block's memory", SYNC "ld.shared::cluster.u32 %r11, [%r4+65536];\n" SYNC,
     "of .shared::cluster memory, which ends at", 0, 0},
    {"in what the system reserves there",
     SYNC
     "mapa.shared::cluster.u32 %r10, %r3, %r2; and.b32 %r10, %r10, 0xff000000;\nld.shared::cluster.u32 %r11, [%r10+16];\n" SYNC,
     "of .shared::cluster memory, below its start at", 0, 0},
    {"a misaligned address", SYNC "ld.shared::cluster.u32 %r11, [%r4+2];\n" SYNC,
     "which is not a multiple of 4", 0, 0},
    {"another block's address without ::cluster", SYNC "ld.shared.u32 %r11, [%r4];\n" SYNC,
     "this needs .shared::cluster", 0, 0},
    {"",
     FILL SYNC
     "ld.shared.u32 %r11, [%r3]; ld.shared.u32 %r11, [s]; ld.shared::cluster.u32 %r11, [s]; ld.shared::cluster.u32 %r11, [%r4];\n" SYNC,
     NULL, 0, 0},
    /* flags and mbarriers */
    {"a flag in the other block's memory, relaxed",
     "st.shared.u32 [%r6], 0;\n" SYNC
     "@!%q0 bra ONE;\n@%q1 st.global.u32 [%p0], 7;\n@%q1 st.relaxed.cluster.shared::cluster.u32 [%r4+64], 1;\nbra END;\n"
     "ONE: ld.relaxed.cluster.shared.u32 %r10, [%r3+64]; setp.eq.u32 %q4, %r10, 0; @%q4 bra ONE;\nld.global.u32 %r11, [%p0];\nEND:\n" SYNC,
     "with nothing to order the two", 0, 0},
    {"",
     "st.shared.u32 [%r6], 0;\n" SYNC
     "@!%q0 bra ONE;\n@%q1 st.global.u32 [%p0], 7;\n@%q1 st.release.cluster.shared::cluster.u32 [%r4+64], 1;\nbra END;\n"
     "ONE: ld.acquire.cluster.shared.u32 %r10, [%r3+64]; setp.eq.u32 %q4, %r10, 0; @%q4 bra ONE;\nld.global.u32 %r11, [%p0];\nEND:\n" SYNC,
     NULL, 0, 0},
    {"a relaxed arrival at the other block's mbarrier",
     READY
     "@!%q0 bra ONE;\n" SEND("mbarrier.arrive.relaxed.cluster.shared::cluster.b64") "bra END;\nONE:\n" TAKE(
         TRY_CLUSTER) "END:\n" SYNC,
     "with nothing to order the two", 0, 0},
    {"",
     READY
     "@!%q0 bra ONE;\n" SEND("fence.acq_rel.cluster;\n@%q1 mbarrier.arrive.relaxed.cluster.shared::cluster.b64") "bra END;\nONE:\n" TAKE(
         TRY_CLUSTER) "END:\n" SYNC,
     NULL, 0, 0},
    {"",
     READY
     "@!%q0 bra ONE;\n" SEND("mbarrier.arrive.release.cluster.shared::cluster.b64") "bra END;\nONE:\n" TAKE(
         TRY_CLUSTER) "END:\n" SYNC,
     NULL, 0, 0},
    {"",
     READY "@!%q0 bra ONE;\n" SEND("mbarrier.arrive.shared::cluster.b64") "bra END;\nONE:\n" TAKE(
         TRY) "END:\n" SYNC,
     NULL, 0, 0},
    {"an arrival whose scope is the block",
     READY "@!%q0 bra ONE;\n" SEND("mbarrier.arrive.release.cta.shared::cluster.b64") "bra END;\nONE:\n" TAKE(
         TRY_CLUSTER) "END:\n" SYNC,
     "with nothing to order the two", 0, 0},
    {"a wait whose scope is the block",
     READY
     "@!%q0 bra ONE;\n" SEND("mbarrier.arrive.release.cluster.shared::cluster.b64") "bra END;\nONE:\n" TAKE(
         TRY_CTA) "END:\n" SYNC,
     "with nothing to order the two", 0, 0},
    {"an arrival before the other block has initialised its mbarrier",
     SYNC "@%q3 mbarrier.init.shared.b64 [%r8], 1;\n@!%q2 bra END;\nnanosleep.u32 100;\n"
          "mbarrier.arrive.shared::cluster.b64 _, [%r9];\nEND: bar.warp.sync 0xffffffff;\n" SYNC,
     "with nothing to order the two", 0, 0},
    {"a test of the other block's mbarrier",
     READY "cvt.u64.u32 %d0, %r9; cvta.shared::cluster.u64 %d0, %d0;\n"
           "mbarrier.test_wait.parity.b64 %q4, [%d0], 0;\n" SYNC,
     "names another block's mbarrier object", 0, 0},
    {"the state of the other block's mbarrier",
     READY "cvt.u64.u32 %d0, %r9; cvta.shared::cluster.u64 %d0, %d0;\n"
           "@%q1 mbarrier.arrive.b64 %d1, [%d0];\n" SYNC,
     "names another block's mbarrier object", 0, 0},
    {"",
     READY "cvt.u64.u32 %d0, %r9; cvta.shared::cluster.u64 %d0, %d0;\n"
           "@%q1 mbarrier.arrive.release.cluster.b64 _, [%d0];\n" UNTIL(TRY) SYNC,
     NULL, 0, 0},
};

enum { RULES = sizeof rules / sizeof *rules };

static void test_rules(void **state)
{
    (void)state;
    check_rules(header, "", PROLOGUE, rules, RULES);
}

static void test_ptxas(void **state)
{
    (void)state;
    check_ptxas(header, "", PROLOGUE, rules, RULES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),  cmocka_unit_test(test_attributes), cmocka_unit_test(test_specials),
        cmocka_unit_test(test_graph),  cmocka_unit_test(test_addresses),  cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_widths), cmocka_unit_test(test_rules),      cmocka_unit_test(test_ptxas),
    };
    setenv("KILN_EMU_CHECK", "all,same", 1);
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
