// Multiplies NF4 weights on the GPU, or on the emulated driver, and prints an element beside its exact value.
#include <cstdio>
#include <cstdlib>
#include <kiln/kiln.hpp>
#include "appkernels.h"

constexpr int N = 64, K = 1024;
static float w[N * K], x[K], y[N];

int main()
{
    kiln::driver driver;
    kiln::storage<APPKERNELS_SLOTS> storage; // the caller owns all storage
    kiln::loader loader;                     // closes itself
    kiln::memory weights, packed, scale, in, out;

    auto check = [&](kiln::status status) {
        char text[512];
        if (status)
            return;
        std::puts(kiln::describe(text, status, driver, loader));
        std::exit(1);
    };

    double exact = 0;
    for (int i = 0; i < N * K; i++)
        w[i] = static_cast<float>(i % 3 - 1); // NF4 holds -1, 0 and 1 exactly
    for (int k = 0; k < K; k++)
        exact += (x[k] = static_cast<float>(k)) * w[k];
    check(driver.load()); // libcuda.so.1
    check(driver.set_device());

    check(loader.open(storage, driver,
                      appkernels_bundle));

    check(weights.upload(driver, w, N*K*4));
    check(packed.allocate(driver, N*K/2));
    check(scale.allocate(driver, N*K/64*4));
    appkernels_nf4_quantize_args q{};
    q.in = weights.address(), q.n = N*K;
    q.packed = packed.address();
    q.scale = scale.address();
    check(appkernels_nf4_quantize(loader, nullptr, q));

    check(in.upload(driver, x, K*4));
    check(out.allocate(driver, N*4));
    appkernels_nf4_gemm_args g{};
    g.in = in.address(), g.m = 1;
    g.packed = q.packed, g.n = N;
    g.scale = q.scale, g.k = K;
    g.out = out.address();
    check(appkernels_nf4_gemm(loader, nullptr, g));

    check(out.download(y, sizeof y));
    std::printf("y[0] = %g, exactly %g\n", y[0], exact);
    return y[0] != exact;
}
