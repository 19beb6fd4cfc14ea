#include "quantizer.h"

#include <array>
#include <memory>

#include "minimal.h"

namespace {

struct Device { // zero at first, as kiln wants its storage
    kiln_driver driver{};
    kiln_loader loader{};
    std::array<kiln_slot, MINIMAL_SLOTS> slots{};
    ~Device()
    {
        kiln_close(&loader);
        driver.device_primary_ctx_release(0);
        kiln_driver_close(&driver);
    }
};

CUdeviceptr allocate(const Device &device, std::size_t bytes)
{
    CUdeviceptr address = 0;
    device.driver.mem_alloc(&address, bytes);
    return address;
}

} // namespace

std::string quantize(const char *driver_path, const std::vector<float> &x, float &scale)
{
    auto device = std::make_unique<Device>();
    CUcontext context{};
    if (kiln_driver_load(&device->driver, driver_path, nullptr) != KILN_OK)
        return "no driver";
    device->driver.init(0);
    device->driver.device_primary_ctx_retain(&context, 0);
    device->driver.ctx_set_current(context);

    minimal_nf4_quantize_args args{};
    args.in = allocate(*device, x.size() * sizeof x[0]);
    args.scale = allocate(*device, sizeof scale);
    args.packed = allocate(*device, x.size() / 2);
    args.n = x.size();
    device->driver.memcpy_htod(args.in, x.data(), x.size() * sizeof x[0]);
    kiln_status status = kiln_open(&device->loader, &device->driver, &minimal_bundle, device->slots.data(),
                                   device->slots.size(), nullptr);
    const kiln_kernel *kernel{};
    std::size_t count{};
    if (status == KILN_OK)
        status = minimal_nf4_quantize_pick(&device->loader, args, &kernel);
    if (status == KILN_OK)
        status = minimal_nf4_quantize_candidates(&device->loader, args, nullptr, 0, &count);
    if (status == KILN_OK && (!kernel || count == 0))
        return "nothing would be launched";
    if (status == KILN_OK)
        status = minimal_nf4_quantize(&device->loader, nullptr, args);
    device->driver.memcpy_dtoh(&scale, args.scale, sizeof scale);
    return kiln_status_string(status);
}
