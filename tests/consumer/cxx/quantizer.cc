#include "quantizer.h"

#include <memory>
#include <utility>

#include <kiln/kiln.hpp>

#include "minimal.h"

namespace {

struct Device { // destroyed from below: the loader, its memory, the context, the driver
    kiln::driver driver;
    struct Context {
        const kiln::driver &driver;
        bool retained = false;
        ~Context()
        {
            if (retained)
                driver->device_primary_ctx_release(0);
        }
    } context{driver};
    kiln::storage<MINIMAL_SLOTS> storage;
    kiln::loader loader;

    kiln::status open(const char *driver_path)
    {
        const kiln::status loaded = driver.load(driver_path);
        if (!loaded)
            return loaded;
        CUcontext current{};
        driver->init(0);
        context.retained = driver->device_primary_ctx_retain(&current, 0) == 0;
        driver->ctx_set_current(current);
        return loader.open(storage, driver, minimal_bundle);
    }

    CUdeviceptr allocate(std::size_t bytes) const
    {
        CUdeviceptr address = 0;
        driver->mem_alloc(&address, bytes);
        return address;
    }
};

/* The text of a status; of a mistake the runtime's line about it. */
std::string text_of(kiln::status status, const kiln::loader &loader)
{
    char text[256];
    const std::string line = status ? status.text() : loader.describe(text);
    return line.empty() ? status.text() : line;
}

} // namespace

std::string quantize(const char *driver_path, const std::vector<float> &x, float &scale)
{
    auto device = std::make_unique<Device>();
    kiln::status status = device->open(driver_path);
    if (!status)
        return text_of(status, device->loader);
    kiln::loader loader = std::move(device->loader); // the handle may move, its memory stays
    const kiln::driver &driver = device->driver;

    minimal_nf4_quantize_args args{};
    args.in = device->allocate(x.size() * sizeof x[0]);
    args.scale = device->allocate(sizeof scale);
    args.packed = device->allocate(x.size() / 2);
    args.n = x.size();
    driver->memcpy_htod(args.in, x.data(), x.size() * sizeof x[0]);

    const kiln_kernel *kernel{};
    std::size_t count{};
    status = minimal_nf4_quantize_pick(loader, args, &kernel);
    if (status)
        status = minimal_nf4_quantize_candidates(loader, args, nullptr, 0, &count);
    if (status && (!kernel || count == 0))
        return "nothing would be launched";
    if (status)
        status = minimal_nf4_quantize(loader, nullptr, args);
    driver->memcpy_dtoh(&scale, args.scale, sizeof scale);
    return text_of(status, loader);
}
