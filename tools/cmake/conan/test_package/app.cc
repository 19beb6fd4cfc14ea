/* Quantises one group and prints its scale: app [libcuda.so.1]. */
#include <algorithm>
#include <cstdio>

#include <kiln/kiln.hpp>

#include "minimal.h"

int main(int argc, char **argv)
{
    float x[64], result = 0;
    std::fill(x, x + 64, 0.5f);
    x[7] = -8;

    kiln::driver driver;
    kiln::memory in, scale, packed;
    kiln::storage<MINIMAL_SLOTS> storage;
    kiln::loader loader;
    kiln::status status = driver.load(argc > 1 ? argv[1] : nullptr);
    if (status)
        status = driver.set_device();
    if (status)
        status = in.upload(driver, x, sizeof x);
    if (status)
        status = scale.allocate(driver, sizeof result);
    if (status)
        status = packed.allocate(driver, 32);
    if (status)
        status = loader.open(storage, driver, minimal_bundle);
    minimal_nf4_quantize_args args{};
    args.in = in.address();
    args.scale = scale.address();
    args.packed = packed.address();
    args.n = 64;
    if (status)
        status = minimal_nf4_quantize(loader, nullptr, args);
    if (status)
        status = scale.download(&result, sizeof result);
    char text[256];
    std::printf("%s, scale %g\n", status ? status.text() : kiln::describe(text, status, driver, loader),
                static_cast<double>(result));
    return status ? 0 : 1;
}
