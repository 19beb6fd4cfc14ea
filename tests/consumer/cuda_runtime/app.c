/* Quantises one group on a stream of the CUDA runtime, and prints its scale. Exits with 77 if there is no device. */
#include <cuda_runtime.h>
#include <stdio.h>

#include "minimal.h"

enum { N = 64 };

static kiln_driver driver;
static kiln_slot slots[MINIMAL_SLOTS];
static kiln_loader loader;

static int failed(const char *what, cudaError_t error)
{
    if (error != cudaSuccess)
        printf("%s: %s\n", what, cudaGetErrorString(error));
    return error != cudaSuccess;
}

/* Returns true if the runtime refused a call, and prints why. */
static int refused(kiln_status status)
{
    kiln_error error;
    char text[512];
    if (status != KILN_OK) {
        kiln_last_error(&loader, &error);
        kiln_describe_error(&loader, &error, NULL, text, sizeof text);
        puts(text);
    }
    return status != KILN_OK;
}

int main(void)
{
    float x[N], scale = 0, *in, *scales;
    unsigned char *packed;
    cudaStream_t stream;
    for (int i = 0; i < N; i++)
        x[i] = (float)(i - 32) / 4;

    /* The CUDA runtime makes the primary context current at its first call, which must come before kiln_open. */
    if (failed("cudaSetDevice", cudaSetDevice(0)) || failed("cudaMalloc", cudaMalloc((void **)&in, sizeof x)))
        return 77;
    if (failed("cudaMalloc", cudaMalloc((void **)&scales, sizeof scale)) ||
        failed("cudaMalloc", cudaMalloc((void **)&packed, N / 2)) ||
        failed("cudaStreamCreate", cudaStreamCreate(&stream)) ||
        failed("cudaMemcpyAsync", cudaMemcpyAsync(in, x, sizeof x, cudaMemcpyHostToDevice, stream)))
        return 1;

    /* the driver that the CUDA runtime has opened */
    kiln_status status = kiln_driver_load(&driver, NULL, NULL);
    if (status != KILN_OK) {
        puts(kiln_status_string(status));
        return 1;
    }
    status = kiln_open(&loader, &driver, &minimal_bundle, slots, MINIMAL_SLOTS, NULL);
    if (status == KILN_OK)
        status = minimal_nf4_quantize(
            &loader, stream, /* a cudaStream_t is a CUstream */
            &(minimal_nf4_quantize_args){
                .in = (CUdeviceptr)in, .scale = (CUdeviceptr)scales, .packed = (CUdeviceptr)packed, .n = N});
    if (refused(status) ||
        failed("cudaMemcpyAsync",
               cudaMemcpyAsync(&scale, scales, sizeof scale, cudaMemcpyDeviceToHost, stream)) ||
        failed("cudaStreamSynchronize", cudaStreamSynchronize(stream)))
        return 1;
    printf("%s, scale %g\n", kiln_status_string(status), (double)scale);

    kiln_close(&loader); /* before the CUDA runtime destroys its context, at exit or in cudaDeviceReset */
    cudaStreamDestroy(stream);
    cudaFree(packed);
    cudaFree(scales);
    cudaFree(in);
    kiln_driver_close(&driver);
    return status != KILN_OK;
}
