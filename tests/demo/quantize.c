/* The demonstration: converts a real model's weights to NF4 and back on the device, and compares with plain C on the host.
 *
 *     kiln-demo WEIGHTS.f32 [--driver PATH] [--emulator PATH]
 *
 * Like any application it uses the generated header and the runtime. The device is a real GPU if libcuda.so.1 has one,
 * else the emulated driver. Exit status: 0 if device and host agree bit for bit, 1 if not, 2 for bad usage, 77 without a
 * driver.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <kiln_default.h>

enum { GROUP = 64 };

/* ---- the same in plain C ------------------------------------------------------------------------------------------- */

static const float table[16] = {
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};

static void quantize_on_host(const float *in, float *scale, unsigned char *packed, size_t n)
{
    memset(packed, 0, (n + 1) / 2);
    for (size_t i = 0; i < n; i++) {
        float *s = &scale[i / GROUP];
        if (i % GROUP == 0) {
            *s = 1e-12f;
            for (size_t k = i; k < i + GROUP && k < n; k++)
                *s = fmaxf(*s, fabsf(in[k]));
        }
        unsigned code = 0;
        while (code < 15 && in[i] / *s > (float)(((double)table[code] + (double)table[code + 1]) / 2))
            code++;
        packed[i / 2] = (unsigned char)(packed[i / 2] | code << (i % 2 ? 4 : 0));
    }
}

static void unpack_on_host(const unsigned char *packed, const float *scale, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = table[packed[i / 2] >> (i % 2 ? 4 : 0) & 15] * scale[i / GROUP];
}

/* ---- the device ---------------------------------------------------------------------------------------------------- */

static kiln_driver driver; /* the caller owns all storage */
static kiln_slot slots[KILN_DEFAULT_SLOTS];
static kiln_loader loader;
static char jit_log[4096];

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void need(const char *call, int result)
{
    char text[256];
    if (result == 0)
        return;
    kiln_describe_driver(&driver, call, result, text, sizeof text);
    fprintf(stderr, "kiln-demo: %s\n", text);
    exit(1);
}

static void need_kiln(kiln_status status)
{
    char text[2048];
    kiln_error error;
    if (status == KILN_OK)
        return;
    kiln_last_error(&loader, &error);
    kiln_describe_error(&loader, &error, NULL, text, sizeof text);
    fprintf(stderr, "kiln-demo: %s\n%s", text, error.log_bytes ? jit_log : "");
    exit(1);
}

/* Opens a driver that has a device. Prints its name, or why there is none. */
static int open_driver(const char *path)
{
    const char *shown = path ? path : "libcuda.so.1", *missing = NULL;
    int count = 0;
    kiln_status status = kiln_driver_load(&driver, path, &missing);
    if (status != KILN_OK) {
        printf("driver    %s: %s%s%s\n", shown, kiln_status_string(status), missing ? ": " : "",
               missing ? missing : "");
        return 0;
    }
    char text[256] = "it has no device";
    const int result = driver.init(0);
    if (result == 0 && driver.device_get_count(&count) == 0 && count > 0) {
        printf("driver    %s\n", shown);
        return 1;
    }
    if (result != 0)
        kiln_describe_driver(&driver, "cuInit", result, text, sizeof text);
    printf("driver    %s: %s\n", shown, text);
    kiln_driver_close(&driver);
    return 0;
}

static void open_device(void)
{
    CUcontext context;
    char name[128] = "";
    int device, version;
    kiln_options options = {.check_image = kiln_check_image, .log = jit_log, .log_bytes = sizeof jit_log};
    need("cuDeviceGet", driver.device_get(&device, 0));
    need("cuDeviceGetName", driver.device_get_name(name, (int)sizeof name, device));
    need("cuDriverGetVersion", driver.driver_get_version(&version));
    need("cuDevicePrimaryCtxRetain", driver.device_primary_ctx_retain(&context, device));
    need("cuCtxSetCurrent", driver.ctx_set_current(context));
    need_kiln(kiln_open(&loader, &driver, &kiln_default_bundle, slots, KILN_DEFAULT_SLOTS, &options));
    printf("device    %s (sm_%u, driver %d.%d)\n", name, (unsigned)loader.device.sm, version / 1000,
           version % 1000 / 10);
}

static CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr address = 0;
    need("cuMemAlloc", driver.mem_alloc(&address, bytes));
    return address;
}

/* Returns the milliseconds of one call and the wait for it. */
static double timed_quantize(const kiln_default_nf4_quantize_args *args)
{
    double start = now();
    need_kiln(kiln_default_nf4_quantize(&loader, NULL, args));
    need("cuCtxSynchronize", driver.ctx_synchronize());
    return 1e3 * (now() - start);
}

static double timed_unpack(const kiln_default_nf4_unpack_args *args)
{
    double start = now();
    need_kiln(kiln_default_nf4_unpack(&loader, NULL, args));
    need("cuCtxSynchronize", driver.ctx_synchronize());
    return 1e3 * (now() - start);
}

typedef struct quantized {
    float *scale, *back;
    unsigned char *packed;
} quantized;

static void *host_memory(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory) {
        fprintf(stderr, "kiln-demo: out of memory\n");
        exit(1);
    }
    return memory;
}

static quantized new_quantized(size_t n)
{
    return (quantized){.scale = host_memory((n + GROUP - 1) / GROUP * sizeof(float)),
                       .back = host_memory(n * sizeof(float)),
                       .packed = host_memory((n + 1) / 2)};
}

static void free_quantized(quantized *q)
{
    free(q->scale);
    free(q->back);
    free(q->packed);
}

static void run_on_device(const float *weights, size_t n, const quantized *q)
{
    size_t scale_bytes = (n + GROUP - 1) / GROUP * sizeof(float), packed_bytes = (n + 1) / 2;
    CUdeviceptr in = allocate(n * sizeof(float)), scale = allocate(scale_bytes),
                packed = allocate(packed_bytes);
    CUdeviceptr out = allocate(n * sizeof(float));
    const kiln_default_nf4_quantize_args quantize = {.in = in, .scale = scale, .packed = packed, .n = n};
    const kiln_default_nf4_unpack_args unpack = {.packed = packed, .scale = scale, .out = out, .n = n};
    need("cuMemcpyHtoD", driver.memcpy_htod(in, weights, n * sizeof(float)));
    double first = timed_quantize(&quantize), then = timed_quantize(&quantize);
    printf("quantise  %.3f ms (the first call, which loads the kernel, %.3f ms)\n", then, first);
    first = timed_unpack(&unpack), then = timed_unpack(&unpack);
    printf("unpack    %.3f ms (the first call %.3f ms)\n", then, first);
    need("cuMemcpyDtoH", driver.memcpy_dtoh(q->scale, scale, scale_bytes));
    need("cuMemcpyDtoH", driver.memcpy_dtoh(q->packed, packed, packed_bytes));
    need("cuMemcpyDtoH", driver.memcpy_dtoh(q->back, out, n * sizeof(float)));
    const CUdeviceptr all[] = {in, scale, packed, out};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        need("cuMemFree", driver.mem_free(all[i]));
}

/* ---- the report ---------------------------------------------------------------------------------------------------- */

static void report_error(const char *who, const float *weights, const float *back, size_t n)
{
    double error = 0, power = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        double difference = (double)back[i] - (double)weights[i];
        error += difference * difference;
        power += (double)weights[i] * (double)weights[i];
        most = fmax(most, fabs(difference));
    }
    printf("%-9s relative RMSE %.6f, largest error %.6f\n", who, sqrt(error / power), most);
}

/* Returns the number of elements, of `bytes` each, that differ. */
static size_t count_different(const void *a, const void *b, size_t count, size_t bytes)
{
    size_t different = 0;
    for (size_t i = 0; i < count; i++)
        different += memcmp((const char *)a + i * bytes, (const char *)b + i * bytes, bytes) != 0;
    return different;
}

static int report(const float *weights, size_t n, const quantized *device, const quantized *host)
{
    size_t groups = (n + GROUP - 1) / GROUP, bytes = (n + 1) / 2 + groups * sizeof(float);
    size_t codes = count_different(device->packed, host->packed, (n + 1) / 2, 1);
    size_t scales = count_different(device->scale, host->scale, groups, sizeof(float));
    size_t values = count_different(device->back, host->back, n, sizeof(float));
    printf("size      %zu bytes of float32 became %zu, %.2f bits per weight\n", n * sizeof(float), bytes,
           8.0 * (double)bytes / (double)n);
    report_error("device", weights, device->back, n);
    report_error("host", weights, host->back, n);
    printf("different %zu of %zu code bytes, %zu of %zu scales, %zu of %zu weights\n", codes, (n + 1) / 2,
           scales, groups, values, n);
    if (codes || scales || values) {
        puts("result    WRONG: the device and the plain C reference differ");
        return 1;
    }
    puts("result    the device and the plain C reference agree bit for bit");
    return 0;
}

/* ---- command line -------------------------------------------------------------------------------------------------- */

static float *read_weights(const char *path, size_t *n)
{
    FILE *in = fopen(path, "rb");
    long bytes = -1;
    if (in && fseek(in, 0, SEEK_END) == 0)
        bytes = ftell(in);
    if (bytes < (long)sizeof(float)) {
        fprintf(stderr, "kiln-demo: cannot read %s\n", path);
        exit(2);
    }
    float *weights = host_memory((size_t)bytes);
    rewind(in);
    *n = fread(weights, sizeof(float), (size_t)bytes / sizeof(float), in);
    fclose(in);
    return weights;
}

int main(int argc, char **argv)
{
    const char *path = NULL, *driver_path = NULL, *emulator = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--driver") == 0 && i + 1 < argc)
            driver_path = argv[++i];
        else if (strcmp(argv[i], "--emulator") == 0 && i + 1 < argc)
            emulator = argv[++i];
        else
            path = argv[i];
    }
    if (!path || path[0] == '-') {
        fprintf(stderr, "usage: kiln-demo WEIGHTS.f32 [--driver PATH] [--emulator PATH]\n");
        return 2;
    }
    size_t n;
    float *weights = read_weights(path, &n);
    if (!open_driver(driver_path) && (!emulator || !open_driver(emulator)))
        return 77;
    printf("weights   %zu float32 numbers of a trained model\n", n);
    open_device();
    quantized device = new_quantized(n), host = new_quantized(n);
    run_on_device(weights, n, &device);
    quantize_on_host(weights, host.scale, host.packed, n);
    unpack_on_host(host.packed, host.scale, host.back, n);
    int status = report(weights, n, &device, &host);
    need_kiln(kiln_close(&loader));
    kiln_driver_close(&driver);
    free_quantized(&device);
    free_quantized(&host);
    free(weights);
    return status;
}
