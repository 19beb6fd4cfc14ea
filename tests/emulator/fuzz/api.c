/* Calls the driver's entry points in any order, with handles that are invented, destroyed, or of another kind or context.
   Five bytes of the input are a call and its arguments. The process must survive; every result must be an error code that
   has a name; no call may accept an invented handle; and a fresh context must work afterwards. */
#include "fuzz.h"

typedef struct call {
    uint8_t what, a, b, c, d;
} call;

enum { SLOTS = 6, HOST_BYTES = 4096, MOST_CALLS = 100 };

static CUcontext contexts[SLOTS];
static CUmodule modules[SLOTS];
static CUfunction functions[SLOTS];
static CUstream streams[SLOTS];
static CUevent events[SLOTS];
static CUgraph graphs[SLOTS];
static CUgraphExec execs[SLOTS];
static CUdeviceptr addresses[SLOTS], shadows[SLOTS];
static void *hosts[SLOTS];
static char host[HOST_BYTES];
static union {
    char bytes[256];
    size_t size;
    unsigned long long number;
    unsigned u;
    int i;
    float f;
    CUcontext context;
    CUmodule module;
    CUdevice device;
    CUuuid uuid;
    const char *text;
    void *function;
} out;

static const size_t sizes[] = {0, 1, 3, 4, 16, 256, 4096, 65536, (size_t)1 << 46, SIZE_MAX, SIZE_MAX / 2 + 1};
static const unsigned dimensions[] = {0, 1, 1, 1, 2, 32, 33, 64, 65, 1024, 1025, 65536, 0xffffffff};
static const int numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, -1, 16, 49152, 101376, 1 << 30};
#define GOOD                                                                                                 \
    ".version 8.8\n.target sm_75\n.address_size 64\n.global .u32 g[4];\n.const .u32 c = 7;\n"                \
    ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n.reg .u64 %p; .reg .u32 %r<3>;\n"                   \
    "ld.param.u64 %p, [p]; ld.param.u32 %r0, [n]; ld.const.u32 %r1, [c]; add.u32 %r2, %r0, %r1;\n"           \
    "st.global.u32 [%p], %r2; ret;\n}\n"
#define FAULTY                                                                                               \
    ".version 8.8\n.target sm_75\n.address_size 64\n.visible .entry k() { trap; }\n"                         \
    ".visible .entry other(.param .align 8 .b8 p[40]) { ret; }\n"
static const char *const texts[] = {
    GOOD,
    FAULTY,
    ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k() { ret; }\n",
    ".version 8.8\n.target sm_75\n.address_size 64\n.visible .entry k() { nonsense; }\n",
    "\177ELF",
    "",
};
static const char *const names[] = {"k", "g", "c", "other", "", "cuMemAlloc", "cuNothing", "/nowhere"};

#define COUNT(table)   (sizeof(table) / sizeof *(table))
#define PICK(table, n) ((table)[(n) % COUNT(table)])
#define OUT(table, n)  ((n) % 32 == 31 ? NULL : &(table)[(n) % SLOTS])
#define NULL_OR(n, p)  ((n) % 32 == 31 ? NULL : (p))

/* A handle from the table, live or destroyed, or one that no call returned: see is_invented. */
#define IN(table, n) (is_invented(n) ? (void *)invented(n) : (void *)(table)[(n) % SLOTS])

static bool is_invented(uint8_t n)
{
    return n >= 0xf0;
}

static uintptr_t invented(uint8_t n)
{
    static char nothing[64];
    const uintptr_t all[] = {0x1234567890, UINTPTR_MAX, (uintptr_t)nothing, 0x200000000000};
    return PICK(all, n);
}

static CUdeviceptr address_at(uint8_t n)
{
    static const CUdeviceptr odd[] = {0, 1, 0x200000000000, 0x20fffffffff0, UINT64_MAX};
    return is_invented(n) ? PICK(odd, n) : addresses[n % SLOTS] + (n >= 0x80 ? n % 8 : 0);
}

/* Memory of the process, or pinned memory, perhaps freed. */
static void *host_at(uint8_t n)
{
    return n % 32 == 31 ? NULL : n % 2 && hosts[n % SLOTS] ? hosts[n % SLOTS] : host;
}

static size_t host_size(uint8_t n)
{
    size_t size = PICK(sizes, n);
    return size > HOST_BYTES ? HOST_BYTES : size;
}

static void count_call(void *data)
{
    ++*(unsigned *)data;
}

static void count_callback(CUstream stream, CUresult status, void *data)
{
    (void)stream;
    (void)status;
    count_call(data);
}

static CUresult load(const call *k)
{
    static char log[64];
    static int options[3];
    void *values[] = {log, (void *)PICK(sizes, k->c > 8 ? 4 : k->c), NULL};
    options[0] = k->d % 4 == 3 ? 3 : 5;
    options[1] = k->d % 4 == 3 ? 4 : 6;
    options[2] = PICK(numbers, k->d);
    unsigned count = (unsigned)PICK(sizes, k->c) > sizeof log ? 0 : k->d % 4;
    return cuModuleLoadDataEx(OUT(modules, k->a), NULL_OR(k->b / 8, PICK(texts, k->b)), count, options,
                              NULL_OR(k->c, values));
}

static CUresult launch(const call *k)
{
    static uint32_t n = 5;
    static char bytes[64];
    void *parameters[] = {&addresses[k->d % SLOTS], &n};
    size_t size = PICK(sizes, k->d) > sizeof bytes ? sizeof bytes : PICK(sizes, k->d);
    void *extra[] = {(void *)1, bytes, (void *)2, &size, NULL};
    void *wrong[] = {(void *)7, bytes, NULL};
    unsigned grid_y = k->b % 16 == 15 ? PICK(dimensions, k->c) : 1;
    bool by_buffer = k->d % 8 == 6, both = k->d % 32 == 30, neither = k->d % 32 == 31;
    return cuLaunchKernel(IN(functions, k->a), PICK(dimensions, k->b) % 65, grid_y == 65536 ? grid_y : 1,
                          k->b % 16 == 14 ? 0 : 1, PICK(dimensions, k->c), 1, k->c % 16 == 15 ? 65 : 1,
                          (unsigned)(k->d % 16 == 7 ? PICK(numbers, k->b) : 0), IN(streams, k->d),
                          by_buffer || neither ? NULL : parameters,
                          k->d % 32 == 29     ? wrong
                          : by_buffer || both ? extra
                                              : NULL);
}

static CUresult launch_ex(const call *k)
{
    static uint32_t n = 5;
    CUlaunchAttribute attributes[2] = {{.id = k->c % 6}, {.id = 4, .value.cluster = {k->d % 3, 1, 1}}};
    CUlaunchConfig config = {
        PICK(dimensions, k->b) % 65, 1,       1, PICK(dimensions, k->c), 1, 1, 0, IN(streams, k->d),
        NULL_OR(k->c, attributes),   k->d % 3};
    void *parameters[] = {&addresses[k->d % SLOTS], &n};
    return cuLaunchKernelEx(NULL_OR(k->d, &config), IN(functions, k->a), NULL_OR(k->b, parameters), NULL);
}

static CUresult copy_to_host(const call *k)
{
    return cuMemcpyDtoHAsync_v2(host_at(k->d), address_at(k->a), host_size(k->b), IN(streams, k->c));
}

static CUresult copy_from_host(const call *k)
{
    return cuMemcpyHtoDAsync_v2(address_at(k->a), host_at(k->d), host_size(k->b), IN(streams, k->c));
}

static CUresult nodes(const call *k)
{
    static CUgraphNode list[8];
    static size_t count;
    count = k->c % 9;
    return cuGraphGetNodes(IN(graphs, k->a), NULL_OR(k->b, list), NULL_OR(k->d, &count));
}

static CUresult exchange_mode(const call *k)
{
    int mode = PICK(numbers, k->a);
    return cuThreadExchangeStreamCaptureMode(NULL_OR(k->b, &mode));
}

static CUresult error_text(const call *k)
{
    return k->b % 2 ? cuGetErrorName((CUresult)PICK(numbers, k->a), NULL_OR(k->c, &out.text))
                    : cuGetErrorString((CUresult)PICK(numbers, k->a), NULL_OR(k->c, &out.text));
}

static unsigned called;
static size_t total;

#include "api_calls.h"

#define DEFINE(name, handle, expression)                                                                     \
    static CUresult call_##name(const call *k)                                                               \
    {                                                                                                        \
        (void)k;                                                                                             \
        return expression;                                                                                   \
    }
API_CALLS(DEFINE)

#define ROW(name, handle, expression) {#name, call_##name, handle},
static const struct {
    const char *name;
    CUresult (*function)(const call *k);
    bool has_handle; /* argument a is a handle */
} calls[] = {API_CALLS(ROW)};

static CUcontext made[2 * MOST_CALLS]; /* all contexts, also those whose slot was overwritten */
static unsigned made_count;

static void note_contexts(void)
{
    for (int i = 0; i < SLOTS; i++) {
        unsigned n = 0;
        while (n < made_count && made[n] != contexts[i])
            n++;
        if (n == made_count && n < sizeof made / sizeof *made)
            made[made_count++] = contexts[i];
    }
}

static void make(const call *k)
{
    const char *name = NULL;
    size_t n = k->what % COUNT(calls);
    CUresult r = calls[n].function(k);
    if (getenv("FUZZ_SHOW"))
        fprintf(stderr, "%s %u %u %u %u: %d\n", calls[n].name, k->a, k->b, k->c, k->d, (int)r);
    note_contexts();
    bool is_known = cuGetErrorName(r, &name) == CUDA_SUCCESS && name;
    if (!is_known || (r == CUDA_SUCCESS && calls[n].has_handle && is_invented(k->a))) {
        fprintf(stderr, "%s(%u, %u, %u, %u) gave %d\n", calls[n].name, k->a, k->b, k->c, k->d, (int)r);
        abort();
    }
}

/* Destroys all objects that are still alive. */
static void clean_up(void)
{
    CUcontext context;
    while (cuCtxPopCurrent_v2(&context) == CUDA_SUCCESS)
        ;
    for (int i = 0; i < SLOTS; i++) {
        cuGraphDestroy(graphs[i]);
        cuGraphExecDestroy(execs[i]);
    }
    while (made_count)
        cuCtxDestroy_v2(made[--made_count]);
    for (int device = 0; device < 5; device++)
        cuDevicePrimaryCtxReset_v2(device);
    memset(contexts, 0, sizeof contexts);
    memset(modules, 0, sizeof modules);
    memset(functions, 0, sizeof functions);
    memset(streams, 0, sizeof streams);
    memset(events, 0, sizeof events);
    memset(graphs, 0, sizeof graphs);
    memset(execs, 0, sizeof execs);
    memset(addresses, 0, sizeof addresses);
    memset(hosts, 0, sizeof hosts);
}

/* A new context must not be affected by earlier calls. */
static void check_fresh_context(void)
{
    CUcontext context;
    CUdeviceptr p;
    fuzz_must(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
    fuzz_must(cuMemAlloc_v2(&p, 64), "cuMemAlloc in a fresh context");
    fuzz_must(cuMemsetD8_v2(p, 1, 64), "cuMemsetD8 in a fresh context");
    fuzz_must(cuCtxSynchronize(), "cuCtxSynchronize in a fresh context");
    fuzz_must(cuCtxDestroy_v2(context), "cuCtxDestroy");
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_begin();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    call k;
    for (size_t at = 0; at + sizeof k <= bytes && at < MOST_CALLS * sizeof k; at += sizeof k) {
        memcpy(&k, data + at, sizeof k);
        make(&k);
    }
    clean_up();
    check_fresh_context();
    return 0;
}
