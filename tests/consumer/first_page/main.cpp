// Multiplies NF4 weights on the GPU, or on the emulated driver, and prints an element beside its exact value.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <kiln/kiln.hpp>
#include "appkernels.h"

int main()
{
    constexpr int N = 64, K = 1024;
    kiln::driver driver;
    kiln::storage<APPKERNELS_SLOTS> storage; // the caller owns all storage
    kiln::loader loader;                      // closes itself

    auto check = [&](kiln::status status) {
        char text[512];
        if (status)
            return;
        std::puts(kiln::describe(text, status, driver, loader));
        std::exit(1);
    };
    auto need = [&](const char *call, int result) { check(driver.check(call, result)); };
    auto upload = [&](const std::vector<float> &from, size_t bytes) {
        CUdeviceptr to{};
        need("cuMemAlloc", driver->mem_alloc(&to, bytes));
        need("cuMemcpyHtoD", driver->memcpy_htod(to, from.data(), bytes));
        return to;
    };

    std::vector<float> w(N * K), x(K), y(N);
    double exact = 0;
    for (int i = 0; i < N * K; i++)
        w[i] = static_cast<float>(i % 3 - 1); // NF4 holds -1, 0 and 1 exactly
    for (int k = 0; k < K; k++)
        exact += (x[k] = static_cast<float>(k)) * w[k];

    CUcontext context{};
    check(driver.load()); // libcuda.so.1
    need("cuInit", driver->init(0));
    need("cuDevicePrimaryCtxRetain", driver->device_primary_ctx_retain(&context, 0));
    need("cuCtxSetCurrent", driver->ctx_set_current(context));

    check(loader.open(storage, driver,
                      appkernels_bundle));

    appkernels_nf4_quantize_args q{};
    q.in = upload(w, N*K*4), q.n = N*K;
    q.packed = upload(w, N*K/2);
    q.scale = upload(w, N*K/64*4);
    check(appkernels_nf4_quantize(
        loader, nullptr, q));

    appkernels_nf4_gemm_args g{};
    g.in = upload(x, K*4), g.m = 1;
    g.packed = q.packed, g.n = N;
    g.scale = q.scale, g.k = K;
    g.out = upload(y, N*4);
    check(appkernels_nf4_gemm(
        loader, nullptr, g));

    need("cuMemcpyDtoH", driver->memcpy_dtoh(
        y.data(), g.out, N*4));
    std::printf("y[0] = %g, exactly %g\n",
                y[0], exact);

    return y[0] != exact;
}
