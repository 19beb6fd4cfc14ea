/* The driver's entry points: their results, what they refuse, and that errors are sticky. */
#include "emu_test.h"

#include <pthread.h>

#define OK(call)         assert_int_equal(call, CUDA_SUCCESS)
#define FAILS(call, why) assert_int_equal(call, why)

static const char *const store_body =
    ".reg .u64 %p<3>; .reg .u32 %r<4>; ld.param.u64 %p0, [p0]; ld.param.u32 %r1, [n]; mov.u32 %r0, %tid.x;\n"
    "mad.wide.u32 %p1, %r0, 4, %p0; st.global.u32 [%p1], %r1; ret;";

static void test_before_init(void **state)
{
    (void)state;
    int count;
    CUcontext context;
    FAILS(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    FAILS(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
    FAILS(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    setenv("KILN_EMU_DEVICE", "sm_95", 1);
    capture_stderr();
    CUresult r = cuInit(0);
    assert_contains(captured_stderr(), "'sm_95' is not a device; there are sm_75 sm_80");
    FAILS(r, CUDA_ERROR_INVALID_VALUE);
    setenv("KILN_EMU_DEVICE", "sm_90,sm_80", 1);
    OK(cuInit(0));
}

static void test_devices(void **state)
{
    (void)state;
    int count, value, major, minor;
    CUdevice device;
    char name[64];
    size_t bytes;
    OK(cuDeviceGetCount(&count));
    assert_int_equal(count, 2);
    OK(cuDeviceGet(&device, 1));
    FAILS(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
    OK(cuDeviceGetName(name, sizeof name, 1));
    assert_string_equal(name, "kiln emulated sm_80");
    OK(cuDeviceComputeCapability(&major, &minor, 0));
    assert_int_equal(10 * major + minor, 90);
    OK(cuDeviceGetAttribute(&value, 16, 0));
    assert_int_equal(value, 132);
    OK(cuDeviceGetAttribute(&value, 97, 0));
    assert_int_equal(value, 227 * 1024);
    OK(cuDeviceTotalMem_v2(&bytes, 0));
    assert_true(bytes == (size_t)80 << 30);
    OK(cuDriverGetVersion(&value));
    assert_int_equal(value, 13010);
}

static void test_contexts(void **state)
{
    (void)state;
    CUcontext a, b, c, current;
    CUdevice device;
    unsigned flags;
    int active;
    OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
    assert_int_equal(active, 0);
    FAILS(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuDevicePrimaryCtxRetain(&a, 1));
    OK(cuDevicePrimaryCtxRetain(&b, 1));
    assert_ptr_equal(a, b);
    OK(cuCtxSetCurrent(a));
    OK(cuCtxGetDevice(&device));
    assert_int_equal(device, 1);
    OK(cuCtxCreate_v2(&c, 0, 0));
    OK(cuCtxGetDevice(&device));
    assert_int_equal(device, 0);
    OK(cuCtxPopCurrent_v2(&current));
    assert_ptr_equal(current, c);
    OK(cuCtxPushCurrent_v2(c));
    OK(cuCtxDestroy_v2(c));
    OK(cuCtxGetCurrent(&current));
    assert_ptr_equal(current, a);
    FAILS(cuCtxDestroy_v2(c), CUDA_ERROR_INVALID_CONTEXT);
    FAILS(cuCtxDestroy_v2(a), CUDA_ERROR_INVALID_CONTEXT); /* a is a primary context */
    OK(cuDevicePrimaryCtxRelease_v2(1));
    OK(cuCtxSynchronize());
    OK(cuDevicePrimaryCtxRelease_v2(1));
    FAILS(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    FAILS(cuDevicePrimaryCtxRelease_v2(1), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxSetCurrent(NULL));
}

/* cuCtxCreate_v3 and _v4 without parameters, or with zeroed ones, make a plain context. */
static void test_context_parameters(void **state)
{
    (void)state;
    CUctxCreateParams none = {0}, affinity = {.execAffinityParams = &none, .numExecAffinityParams = 1},
                      cig = {.cigParams = &none};
    CUcontext c, current;
    CUdevice device;
    CUdeviceptr p;
    for (int way = 0; way < 3; way++) {
        OK(way == 0   ? cuCtxCreate_v3(&c, NULL, 0, 0, 1)
           : way == 1 ? cuCtxCreate_v4(&c, NULL, 0, 1)
                      : cuCtxCreate_v4(&c, &none, 0, 1));
        OK(cuCtxGetCurrent(&current));
        assert_ptr_equal(current, c);
        OK(cuMemAlloc_v2(&p, 4));
        OK(cuCtxPopCurrent_v2(NULL));
        OK(cuCtxGetDevice_v2(&device, c));
        assert_int_equal(device, 1);
        OK(cuCtxSynchronize_v2(c));
        OK(cuCtxDestroy_v2(c));
        FAILS(cuCtxGetDevice_v2(&device, c), CUDA_ERROR_INVALID_CONTEXT);
        FAILS(cuCtxSynchronize_v2(c), CUDA_ERROR_INVALID_CONTEXT);
    }
    FAILS(cuCtxGetDevice_v2(&device, NULL), CUDA_ERROR_INVALID_CONTEXT);
    FAILS(cuCtxCreate_v3(&c, &none, 1, 0, 0), CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    FAILS(cuCtxCreate_v4(&c, &affinity, 0, 0), CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    FAILS(cuCtxCreate_v4(&c, &cig, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
    FAILS(cuCtxCreate_v4(NULL, NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuCtxCreate_v4(&c, NULL, 0, 99), CUDA_ERROR_INVALID_DEVICE);
}

static void test_launch_limits(void **state)
{
    (void)state;
    CUmodule m, other;
    CUfunction f;
    CUdeviceptr p;
    unsigned n = 3;
    void *parameters[] = {&p, &p, &n};
    OK(load_text(".version 8.8\n.target sm_90\n.address_size 64\n"
                 ".visible .entry k(.param .u64 p0) .maxntid 128 { ret; }\n"
                 ".visible .entry q(.param .u64 p0) .reqntid 32, 2 { ret; }\n"
                 ".visible .entry s() { .shared .b8 x[40000]; .reg .b32 %r; mov.b32 %r, x; ret; }\n",
                 &m));
    OK(cuMemAlloc_v2(&p, 64));
    OK(cuModuleGetFunction(&f, m, "k"));
    FAILS(cuModuleGetFunction(&f, m, "absent"), CUDA_ERROR_NOT_FOUND);
    OK(cuLaunchKernel(f, 1, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL));
    FAILS(cuLaunchKernel(f, 1, 1, 1, 129, 1, 1, 0, NULL, parameters, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel(f, 1, 1, 1, 0, 1, 1, 0, NULL, parameters, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, parameters, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 50000, NULL, parameters, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetAttribute(f, 8, 227 * 1024));
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 227 * 1024, NULL, parameters, NULL));
    FAILS(cuFuncSetAttribute(f, 8, 227 * 1024 + 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuModuleGetFunction(&f, m, "q"));
    OK(cuLaunchKernel(f, 1, 1, 1, 32, 2, 1, 0, NULL, parameters, NULL));
    FAILS(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuModuleGetFunction(&f, m, "s"));
    int value;
    OK(cuFuncGetAttribute(&value, 1, f));
    assert_int_equal(value, 40000);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, f, 256, 0));
    assert_int_equal(value, 5); /* 228 KB by 40000 bytes, rounded up to 128, plus 1 KB for the system */
    OK(cuModuleUnload(m));
    FAILS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuModuleUnload(m), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuModuleGetFunction(&f, m, "k"), CUDA_ERROR_INVALID_HANDLE);
    OK(load_body(NULL, "ret;", &other));
    OK(cuModuleUnload(other));
    OK(cuMemFree_v2(p));
}

static void test_parameters(void **state)
{
    (void)state;
    CUfunction f = kernel_of(NULL, store_body);
    CUdeviceptr p = device_bytes(128, NULL);
    struct {
        CUdeviceptr p0, p1;
        unsigned n;
    } packed = {p, p, 99};
    size_t size = sizeof packed;
    void *extra[] = {(void *)1, &packed, (void *)2, &size, NULL};
    OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
    uint32_t out[32];
    OK(cuMemcpyDtoH_v2(out, p, sizeof out));
    assert_int_equal(out[31], 99);
    CUlaunchConfig config = {
        .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 8, .blockDimY = 1, .blockDimZ = 1};
    unsigned n = 5;
    void *parameters[] = {&p, &p, &n};
    OK(cuLaunchKernelEx(&config, f, parameters, NULL));
    CUlaunchAttribute cluster = {.id = 4, .value.cluster = {2, 1, 1}};
    config.attrs = &cluster;
    config.numAttrs = 1;
    FAILS(cuLaunchKernelEx(&config, f, parameters, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    OK(cuMemcpyDtoH_v2(out, p, sizeof out));
    assert_int_equal(out[7], 5);
    assert_int_equal(out[8], 99);
    OK(cuMemFree_v2(p));
}

static void test_launch_attributes(void **state)
{
    (void)state;
    enum { STREAM_POLICY = 3, PRIORITY = 8, COMPLETION_EVENT = 12, UNKNOWN = 15, LARGE = 1 << 20 };
    static const struct {
        CUlaunchAttribute attribute;
        CUresult result;
    } rows[] = {
        {{.id = CU_LAUNCH_IGNORE}, CUDA_SUCCESS},
        {{.id = PRIORITY, .value.cooperative = -1}, CUDA_SUCCESS},
        {{.id = CU_LAUNCH_COOPERATIVE}, CUDA_SUCCESS},
        {{.id = CU_LAUNCH_COOPERATIVE, .value.cooperative = 1}, CUDA_ERROR_NOT_SUPPORTED},
        {{.id = CU_LAUNCH_CLUSTER_DIMENSION, .value.cluster = {1, 1, 1}}, CUDA_SUCCESS},
        {{.id = CU_LAUNCH_CLUSTER_DIMENSION, .value.cluster = {1, 0, 1}}, CUDA_ERROR_INVALID_VALUE},
        {{.id = CU_LAUNCH_CLUSTER_DIMENSION, .value.cluster = {1, 1, 2}}, CUDA_ERROR_INVALID_CLUSTER_SIZE},
        {{.id = CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION}, CUDA_SUCCESS},
        {{.id = CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION, .value.programmatic = 1}, CUDA_SUCCESS},
        {{.id = COMPLETION_EVENT}, CUDA_ERROR_NOT_SUPPORTED},
        {{.id = CU_LAUNCH_PREFERRED_CLUSTER_DIMENSION}, CUDA_ERROR_NOT_SUPPORTED},
        {{.id = CU_LAUNCH_DEVICE_UPDATABLE_NODE}, CUDA_ERROR_NOT_SUPPORTED},
        {{.id = STREAM_POLICY}, CUDA_ERROR_INVALID_VALUE},
        {{.id = UNKNOWN}, CUDA_ERROR_INVALID_VALUE},
        {{.id = LARGE}, CUDA_ERROR_INVALID_VALUE},
    };
    CUfunction f = kernel_of(NULL, "ret;");
    CUdeviceptr p = 0;
    unsigned n = 0;
    void *parameters[] = {&p, &p, &n};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUlaunchAttribute attributes[] = {{.id = CU_LAUNCH_IGNORE}, rows[i].attribute};
        CUlaunchConfig config = {1, 1, 1, 8, 1, 1, 0, NULL, attributes, 2};
        capture_stderr();
        CUresult r = cuLaunchKernelEx(&config, f, parameters, NULL);
        captured_stderr();
        assert_int_equal(r, rows[i].result);
        if (r == CUDA_ERROR_NOT_SUPPORTED)
            assert_contains(printed, "CUDA_ERROR_NOT_SUPPORTED: cuLaunchKernelEx with a");
    }
}

/* What a device before sm_90 lacks. */
static void test_older_device(void **state)
{
    (void)state;
    CUcontext context;
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION,
                                   .value.programmatic = 1};
    CUlaunchConfig config = {1, 1, 1, 8, 1, 1, 0, NULL, &attribute, 1};
    _Alignas(64) CUtensorMap map;
    OK(cuCtxCreate_v2(&context, 0, 1));
    CUfunction f = kernel_of(".version 7.1\n.target sm_80", "ret;");
    CUdeviceptr p = 0;
    void *parameters[] = {&p, &p, &p};
    capture_stderr();
    CUresult launched = cuLaunchKernelEx(&config, f, parameters, NULL);
    attribute = (CUlaunchAttribute){.id = CU_LAUNCH_CLUSTER_DIMENSION, .value.cluster = {2, 1, 1}};
    config.gridDimX = 2;
    CUresult clustered = cuLaunchKernelEx(&config, f, parameters, NULL);
    CUresult encoded = cuTensorMapEncodeTiled(&map, 0, 1, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0);
    captured_stderr();
    FAILS(launched, CUDA_ERROR_NOT_SUPPORTED);
    FAILS(clustered, CUDA_ERROR_NOT_SUPPORTED);
    FAILS(encoded, CUDA_ERROR_NOT_SUPPORTED);
    assert_contains(printed, "with a dependent launch, which is for sm_90 and newer\n");
    assert_contains(printed, "with a cluster of several thread blocks, which is for sm_90 and newer\n");
    assert_contains(printed, "a tensor map with a device below sm_90\n");
    OK(cuCtxDestroy_v2(context));
    capture_stderr();
    encoded = cuTensorMapEncodeIm2col(&map, 0, 1, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, 0, 0, 0, 0);
    assert_contains(captured_stderr(), "a tensor map with the im2col mode\n");
    FAILS(encoded, CUDA_ERROR_NOT_SUPPORTED);
}

static void test_settings(void **state)
{
    (void)state;
    int value, other;
    char text[13];
    CUfunction f = kernel_of(NULL, store_body);
    OK(cuCtxGetStreamPriorityRange(&value, &other));
    assert_true(value == 0 && other == -5);
    OK(cuCtxGetStreamPriorityRange(NULL, NULL));
    OK(cuCtxGetCacheConfig(&value));
    assert_int_equal(value, 0);
    FAILS(cuCtxGetCacheConfig(NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuModuleGetLoadingMode(&value));
    assert_int_equal(value, 1);
    OK(cuDeviceCanAccessPeer(&value, 0, 1));
    assert_int_equal(value, 0);
    FAILS(cuDeviceCanAccessPeer(NULL, 0, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuDeviceCanAccessPeer(&value, 0, 2), CUDA_ERROR_INVALID_DEVICE);
    OK(cuDeviceGetPCIBusId(text, sizeof text, 0));
    assert_int_equal(strlen(text), 12);
    FAILS(cuDeviceGetPCIBusId(text, 12, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetAttribute(f, 8, 1000));
    OK(cuFuncGetAttribute(&value, 8, f));
    assert_int_equal(value, 1000);
    OK(cuFuncSetAttribute(f, 9, 50));
    OK(cuFuncGetAttribute(&value, 9, f));
    assert_int_equal(value, 50);
    FAILS(cuFuncSetAttribute(f, 9, 101), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuFuncGetAttribute(&value, 16, f), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuFuncGetAttribute(&value, -1, f), CUDA_ERROR_INVALID_VALUE);
}

/* Null pointers for results, null handles, and kernel parameters that are given twice or not at all. */
static void test_mistaken_calls(void **state)
{
    (void)state;
    int value;
    CUdeviceptr p = device_bytes(128, NULL);
    CUmodule m;
    CUfunction f = kernel_of(NULL, store_body);
    FAILS(cuDriverGetVersion(NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuDeviceGet(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuDeviceComputeCapability(&value, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuModuleGetLoadingMode(NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuModuleGetGlobal_v2(&p, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuModuleLoad(NULL, "absent"), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuModuleLoad(&m, "absent"), CUDA_ERROR_FILE_NOT_FOUND);
    FAILS(cuStreamWaitEvent(NULL, NULL, 0), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuLinkAddFile_v2(NULL, 0, "absent", 0, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuLinkComplete(NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuLinkDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);

    CUlaunchConfig config = {1, 1, 1, 0, 1, 1, 0, NULL, NULL, 0};
    FAILS(cuOccupancyMaxPotentialClusterSize(NULL, f, &config), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuOccupancyMaxPotentialClusterSize(&value, f, &config), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuOccupancyMaxPotentialClusterSize(&value, NULL, &config), CUDA_ERROR_INVALID_HANDLE);
    config.numAttrs = 1;
    FAILS(cuOccupancyMaxActiveClusters(&value, f, &config), CUDA_ERROR_INVALID_VALUE);

    unsigned n = 5;
    size_t size = 8;
    void *parameters[] = {&p, &p, &n}, *lacking[] = {&p, NULL, &n};
    void *extra[] = {(void *)1, parameters, (void *)2, &size, NULL}, *unknown[] = {(void *)3, NULL, NULL};
    FAILS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, extra), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, lacking, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra),
          CUDA_ERROR_INVALID_VALUE); /* too short */
    FAILS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, unknown), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(p));
}

/* A text that is longer than one read of the file. */
static void test_module_from_file(void **state)
{
    (void)state;
    char path[] = "/tmp/kiln_test_api_XXXXXX";
    CUmodule m;
    CUfunction f;
    int file = mkstemp(path);
    assert_true(file >= 0);
    FILE *out = fdopen(file, "w");
    fputs(".version 8.8\n.target sm_90\n.address_size 64\n", out);
    for (int i = 0; i < 3000; i++)
        fputs("// a comment of a line, as long as many another\n", out);
    fputs(".visible .entry last() { ret; }\n", out);
    fclose(out);
    CUresult r = cuModuleLoad(&m, path);
    unlink(path);
    OK(r);
    OK(cuModuleGetFunction(&f, m, "last"));
    OK(cuModuleUnload(m));
}

static void test_pointers(void **state)
{
    (void)state;
    CUdeviceptr p, start;
    void *host;
    unsigned char syncs;
    unsigned long long first, second;
    OK(cuMemAlloc_v2(&p, 16));
    OK(cuMemHostAlloc(&host, 16, 0));
    CUdeviceptr h = (CUdeviceptr)(uintptr_t)host;
    void *found;
    FAILS(cuPointerGetAttribute(&found, 4, p), CUDA_ERROR_INVALID_VALUE);
    OK(cuPointerGetAttribute(&found, 4, h));
    assert_ptr_equal(found, host);
    OK(cuPointerGetAttribute(&syncs, 6, p));
    assert_int_equal(syncs, 1);
    OK(cuPointerGetAttribute(&first, 7, p));
    OK(cuPointerGetAttribute(&second, 7, h));
    assert_true(first != second);
    OK(cuPointerGetAttribute(&start, 11, p + 5));
    assert_true(start == p);
    uint32_t words[4] = {1, 2, 3, 4};
    memcpy(host, words, sizeof words);
    OK(cuMemcpy(p, h, 16));
    memset(host, 0, sizeof words);
    OK(cuMemcpy(h, p, 16));
    assert_memory_equal(host, words, sizeof words);
    OK(cuMemFreeHost(host));
    OK(cuMemFree_v2(p));
}

static void test_memory(void **state)
{
    (void)state;
    CUdeviceptr p, base;
    size_t bytes;
    void *host;
    uint32_t words[4];
    FAILS(cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAlloc_v2(NULL, 4), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc_v2(&p, 16));
    OK(cuMemGetAddressRange_v2(&base, &bytes, p + 5));
    assert_true(base == p && bytes == 16);
    OK(cuMemsetD32_v2(p, 0x01020304, 4));
    OK(cuMemsetD16_v2(p + 2, 0xffff, 1));
    OK(cuMemsetD8_v2(p + 15, 7, 1));
    FAILS(cuMemsetD32_v2(p + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemsetD8_v2(p, 0, 17), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemcpyDtoH_v2(words, p, 16));
    assert_memory_equal(words, ((uint32_t[]){0xffff0304, 0x01020304, 0x01020304, 0x07020304}), 16);
    FAILS(cuMemcpyHtoD_v2(p + 8, words, 9), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemFree_v2(p + 4), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemHostAlloc(&host, 64, 0));
    OK(cuMemcpyDtoHAsync_v2(host, p, 16, NULL));
    assert_memory_equal(host, words, 16);
    FAILS(cuMemFree_v2((CUdeviceptr)(uintptr_t)host), CUDA_ERROR_INVALID_VALUE);
    unsigned type;
    OK(cuPointerGetAttribute(&type, 2, (CUdeviceptr)(uintptr_t)host));
    assert_int_equal(type, 1);
    OK(cuMemFreeHost(host));
    OK(cuMemFree_v2(p));
    FAILS(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemcpyDtoH_v2(words, p, 4), CUDA_ERROR_INVALID_VALUE);
}

static void test_streams_and_events(void **state)
{
    (void)state;
    CUstream s;
    CUevent a, b;
    CUcontext context;
    float ms;
    OK(cuStreamCreateWithPriority(&s, 1, -3));
    OK(cuStreamGetCtx(s, &context));
    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, 0));
    FAILS(cuEventElapsedTime(&ms, a, b), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventRecord(a, s));
    OK(cuEventRecord(b, s));
    OK(cuStreamWaitEvent(s, b, 0));
    OK(cuEventElapsedTime(&ms, a, b));
    assert_true(ms >= 0);
    OK(cuStreamQuery(s));
    OK(cuStreamDestroy_v2(s));
    FAILS(cuStreamSynchronize(s), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventDestroy_v2(a));
    OK(cuEventDestroy_v2(b));
    FAILS(cuEventRecord(a, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamSynchronize((CUstream)(uintptr_t)2));
}

static void test_graph(void **state)
{
    (void)state;
    CUfunction f = kernel_of(NULL, store_body);
    CUdeviceptr p = device_bytes(128, NULL);
    CUstream s;
    CUgraph graph;
    CUgraphExec exec;
    int status;
    size_t nodes;
    uint32_t out[32] = {0};
    unsigned n = 41;
    void *parameters[] = {&p, &p, &n};
    OK(cuStreamCreate(&s, 1));
    OK(cuStreamBeginCapture_v2(s, 0));
    OK(cuStreamIsCapturing(s, &status));
    assert_int_equal(status, 1);
    OK(cuMemsetD32Async(p, 1, 32, s));
    OK(cuLaunchKernel(f, 1, 1, 1, 16, 1, 1, 0, s, parameters, NULL));
    OK(cuMemcpyDtoHAsync_v2(out, p, sizeof out, s));
    OK(cuStreamEndCapture(s, &graph));
    assert_int_equal(out[0], 0); /* recorded, not run */
    OK(cuGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 3);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    OK(cuGraphLaunch(exec, s));
    assert_int_equal(out[15], 41);
    assert_int_equal(out[16], 1);
    OK(cuGraphExecDestroy(exec));
    OK(cuStreamDestroy_v2(s));
    OK(cuMemFree_v2(p));
}

/* External events are recorded and waited for whenever the graph runs, so it fails once they are destroyed. */
static void test_external_events(void **state)
{
    (void)state;
    CUdeviceptr p;
    CUstream s;
    CUevent event;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode list[4] = {0}, wrong = (CUgraphNode)&p;
    char log[8] = "log";
    size_t nodes = 3;
    OK(cuStreamCreate(&s, 1));
    OK(cuEventCreate(&event, 0));
    FAILS(cuEventRecordWithFlags(event, s, 1), CUDA_ERROR_INVALID_VALUE); /* only in a capture */
    FAILS(cuStreamWaitEvent(s, event, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamBeginCapture_v2(s, 2));
    capture_stderr();
    FAILS(cuMemAllocAsync(&p, 16, s), CUDA_ERROR_NOT_SUPPORTED);
    assert_contains(captured_stderr(), "cuMemAllocAsync in a stream capture\n");
    OK(cuEventRecordWithFlags(event, s, 1));
    OK(cuStreamWaitEvent(s, event, 1));
    OK(cuStreamEndCapture(s, &graph));
    OK(cuGraphGetNodes(graph, list, &nodes));
    assert_true(nodes == 2 && list[0] && list[1] && list[0] != list[1]);
    OK(cuGraphInstantiate_v2(&exec, graph, &wrong, log, sizeof log));
    assert_true(!wrong && !log[0]);
    OK(cuGraphLaunch(exec, s));
    OK(cuEventDestroy_v2(event));
    FAILS(cuGraphLaunch(exec, s), CUDA_ERROR_INVALID_HANDLE);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuStreamDestroy_v2(s));
}

/* Objects that a graph uses, and pinned memory, may be freed before the graph runs. */
static void test_gone(void **state)
{
    (void)state;
    CUdeviceptr p = device_bytes(128, NULL), q = device_bytes(128, NULL);
    CUstream s;
    CUgraph graph;
    CUgraphExec fill, copy;
    void *pinned;
    OK(cuStreamCreate(&s, 1));
    OK(cuStreamBeginCapture_v2(s, 0));
    OK(cuMemsetD32Async(p, 1, 32, s));
    OK(cuStreamEndCapture(s, &graph));
    OK(cuGraphInstantiateWithFlags(&fill, graph, 0));
    OK(cuGraphDestroy(graph));
    OK(cuStreamBeginCapture_v2(s, 0));
    OK(cuMemcpyDtoDAsync_v2(q, p, 128, s));
    OK(cuStreamEndCapture(s, &graph));
    OK(cuGraphInstantiateWithFlags(&copy, graph, 0));
    OK(cuGraphDestroy(graph));
    OK(cuGraphLaunch(copy, s));
    OK(cuMemFree_v2(p));
    FAILS(cuGraphLaunch(fill, s), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuGraphLaunch(copy, s), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphExecDestroy(fill));
    OK(cuGraphExecDestroy(copy));
    OK(cuStreamDestroy_v2(s));
    OK(cuMemAllocHost_v2(&pinned, 64));
    FAILS(cuMemcpyDtoH_v2(pinned, q, 65), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemcpyDtoH_v2(pinned, q, 64));
    OK(cuMemFreeHost(pinned));
    FAILS(cuMemcpyDtoH_v2(pinned, q, 64), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemcpyHtoD_v2(q, pinned, 64), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(q));
}

/* Destroying a context frees its objects. It also ends a capture that would block other calls. */
static void test_context_ends(void **state)
{
    (void)state;
    CUcontext context;
    CUstream s;
    CUevent e;
    CUdeviceptr p;
    size_t pitch;
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuStreamCreate(&s, 1));
    OK(cuEventCreate(&e, 0));
    OK(cuStreamBeginCapture_v2(s, 0));
    FAILS(cuMemAlloc_v2(&p, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    OK(cuCtxDestroy_v2(context));
    FAILS(cuStreamSynchronize(s), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuEventQuery(e), CUDA_ERROR_INVALID_HANDLE);
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuMemFree_v2(p));
    FAILS(cuMemAllocPitch_v2(&p, &pitch, (size_t)1 << 33, ((size_t)1 << 31) + 1, 4),
          CUDA_ERROR_OUT_OF_MEMORY);
}

static void test_sticky_errors(void **state)
{
    (void)state;
    CUcontext context;
    CUdeviceptr p;
    OK(cuCtxCreate_v2(&context, 0, 0));
    CUfunction f = kernel_of(NULL, store_body);
    unsigned n = 1;
    p = device_bytes(4, NULL);
    void *parameters[] = {&p, &p, &n};
    capture_stderr();
    OK(cuLaunchKernel(f, 1, 1, 1, 2, 1, 1, 0, NULL, parameters,
                      NULL)); /* as on a device, a later call reports the error */
    captured_stderr();
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    FAILS(cuMemFree_v2(p), CUDA_ERROR_ILLEGAL_ADDRESS);
    FAILS(cuMemAlloc_v2(&p, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuCtxDestroy_v2(context));
    OK(cuMemAlloc_v2(&p, 4)); /* other contexts are not affected */
    OK(cuMemFree_v2(p));
}

static void test_errors_and_symbols(void **state)
{
    (void)state;
    const char *text;
    void *function;
    int status;
    OK(cuGetErrorName(CUDA_ERROR_MISALIGNED_ADDRESS, &text));
    assert_string_equal(text, "CUDA_ERROR_MISALIGNED_ADDRESS");
    OK(cuGetErrorString(CUDA_SUCCESS, &text));
    assert_string_equal(text, "no error");
    FAILS(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
    OK(cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, &status));
    assert_ptr_equal(function, (void *)(uintptr_t)cuMemAlloc_v2);
    assert_int_equal(status, 0);
    OK(cuGetProcAddress_v2("cuNothing", &function, 12000, 0, &status));
    assert_null(function);
    assert_int_equal(status, 1);
    FAILS(cuGetProcAddress("cuNothing", &function, 12000, 0), CUDA_ERROR_NOT_FOUND);
    OK(cuGetProcAddress_v2("cuMemAllocAsync", &function, 11010, 0, &status)); /* introduced in 11.2 */
    assert_null(function);
    assert_int_equal(status, 2);
    FAILS(cuGetProcAddress_v2("cuMemAlloc", &function, 13020, 0, &status), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 4, &status), CUDA_ERROR_INVALID_VALUE);
}

/* The CUDA version of the program decides which entry point a name means. */
static void test_symbols_by_version(void **state)
{
    (void)state;
    const struct {
        int version;
        uintptr_t function;
    } cases[] = {{3020, (uintptr_t)cuCtxCreate_v2},  {11030, (uintptr_t)cuCtxCreate_v2},
                 {11040, (uintptr_t)cuCtxCreate_v3}, {12040, (uintptr_t)cuCtxCreate_v3},
                 {12050, (uintptr_t)cuCtxCreate_v4}, {13010, (uintptr_t)cuCtxCreate_v4}};
    void *function;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OK(cuGetProcAddress("cuCtxCreate", &function, cases[i].version, 2));
        assert_ptr_equal(function, (void *)cases[i].function);
    }
}

/* NVRTC asks for a private table of NVIDIA's driver, and works without it. */
static void test_export_table(void **state)
{
    (void)state;
    const void *table = &table;
    CUuuid id = {{1, 2, 3}};
    FAILS(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_SUPPORTED);
    assert_null(table);
    FAILS(cuGetExportTable(NULL, &id), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuGetExportTable(&table, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* Entry points of programs compiled with a default stream per thread. */
__typeof__(cuMemcpyHtoDAsync_v2) cuMemcpyHtoDAsync_v2_ptsz;
__typeof__(cuMemcpyDtoH_v2) cuMemcpyDtoH_v2_ptds;
__typeof__(cuStreamSynchronize) cuStreamSynchronize_ptsz;
__typeof__(cuStreamGetCtx_v2) cuStreamGetCtx_v2_ptsz;

static void test_per_thread_names(void **state)
{
    (void)state;
    const uint32_t value = 7;
    uint32_t out = 0;
    CUdeviceptr p;
    CUcontext context;
    CUgreenCtx green;
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuMemcpyHtoDAsync_v2_ptsz(p, &value, 4, NULL));
    OK(cuMemcpyDtoH_v2_ptds(&out, p, 4));
    assert_int_equal(out, 7);
    OK(cuStreamSynchronize_ptsz(NULL));
    OK(cuStreamGetCtx_v2_ptsz(NULL, &context, &green));
    assert_ptr_equal(context, test_context);
    assert_null(green);
    OK(cuMemFree_v2(p));
}

/* Each thread has its own current context; threads may launch at the same time. */
static void *launch_many(void *argument)
{
    CUcontext current;
    CUresult r = cuCtxGetCurrent(&current);
    if (r != CUDA_SUCCESS || current)
        return "a new thread has a current context";
    cuCtxSetCurrent(test_context);
    CUfunction f = argument;
    CUdeviceptr p;
    if (cuMemAlloc_v2(&p, 1024 * 4) != CUDA_SUCCESS)
        return "allocation";
    for (unsigned n = 0; n < 50; n++) {
        uint32_t out[1024];
        void *parameters[] = {&p, &p, &n};
        if (cuLaunchKernel(f, 4, 1, 1, 1024, 1, 1, 0, NULL, parameters, NULL) != CUDA_SUCCESS ||
            cuMemcpyDtoH_v2(out, p, sizeof out) != CUDA_SUCCESS || out[1000] != n)
            return "launch";
    }
    return cuMemFree_v2(p) == CUDA_SUCCESS ? NULL : "free";
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    CUfunction f = kernel_of(NULL, store_body);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_many, f), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        if (wrong)
            fail_msg("%s", (char *)wrong);
    }
}

int main(void)
{
    const struct CMUnitTest first[] = {
        cmocka_unit_test(test_before_init),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_context_parameters),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launch_limits),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_launch_attributes),
        cmocka_unit_test(test_older_device),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_mistaken_calls),
        cmocka_unit_test(test_module_from_file),
        cmocka_unit_test(test_pointers),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_streams_and_events),
        cmocka_unit_test(test_graph),
        cmocka_unit_test(test_external_events),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_context_ends),
        cmocka_unit_test(test_sticky_errors),
        cmocka_unit_test(test_errors_and_symbols),
        cmocka_unit_test(test_symbols_by_version),
        cmocka_unit_test(test_export_table),
        cmocka_unit_test(test_per_thread_names),
        cmocka_unit_test(test_threads),
    };
    int failed = cmocka_run_group_tests(first, NULL, NULL);
    return failed + cmocka_run_group_tests(tests, begin_context, end_context);
}
