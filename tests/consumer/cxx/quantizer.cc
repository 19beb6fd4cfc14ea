#include "quantizer.h"

#include <memory>
#include <utility>

#include <kiln/kiln.hpp>

#include "minimal.h"

namespace {

struct Device { // destroyed in reverse order: the loader, its memory, the context, the driver
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
        CUcontext current{};
        kiln::status status = driver.load(driver_path);
        if (status)
            status = driver.check("cuInit", driver->init(0));
        if (status) {
            status = driver.check("cuDevicePrimaryCtxRetain", driver->device_primary_ctx_retain(&current, 0));
            context.retained = status.ok();
        }
        if (status)
            status = driver.check("cuCtxSetCurrent", driver->ctx_set_current(current));
        return status ? loader.open(storage, driver, minimal_bundle) : status;
    }

    kiln::status allocate(CUdeviceptr &address, std::size_t bytes)
    {
        return driver.check("cuMemAlloc", driver->mem_alloc(&address, bytes));
    }
};

/* Returns the status as text; for a failure, with all its details. */
std::string text_of(kiln::status status, const kiln::driver &driver, const kiln::loader &loader)
{
    char text[256];
    return status ? status.text() : kiln::describe(text, status, driver, loader);
}

} // namespace

std::string quantize(const char *driver_path, const std::vector<float> &x, float &scale)
{
    auto device = std::make_unique<Device>();
    kiln::status status = device->open(driver_path);
    if (!status)
        return text_of(status, device->driver, device->loader);
    kiln::loader loader = std::move(device->loader); // the handle may move, its memory must not
    kiln::driver &driver = device->driver;

    minimal_nf4_quantize_args args{};
    args.n = x.size();
    status = device->allocate(args.in, x.size() * sizeof x[0]);
    if (status)
        status = device->allocate(args.scale, sizeof scale);
    if (status)
        status = device->allocate(args.packed, x.size() / 2);
    if (status)
        status = driver.check("cuMemcpyHtoD", driver->memcpy_htod(args.in, x.data(), x.size() * sizeof x[0]));

    const kiln_kernel *kernel{};
    std::size_t count{};
    if (status)
        status = minimal_nf4_quantize_pick(loader, args, &kernel);
    if (status)
        status = minimal_nf4_quantize_candidates(loader, args, nullptr, 0, &count);
    if (status && (!kernel || count == 0))
        return "nothing would be launched";
    if (status)
        status = minimal_nf4_quantize(loader, nullptr, args);
    if (status)
        status = driver.check("cuMemcpyDtoH", driver->memcpy_dtoh(&scale, args.scale, sizeof scale));
    return text_of(status, driver, loader);
}
