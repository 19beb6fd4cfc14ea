/* Calls the plugin's methods in TensorRT's order, without TensorRT's libraries: the builder's, serialisation, and two
 * execution contexts in each of two CUDA contexts. Compares the results with float64.
 *
 * usage: app PLUGIN.so [libcuda.so.1]
 */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <dlfcn.h>

#include <NvInfer.h>
#include <kiln/kiln.hpp>

using namespace nvinfer1;

namespace {

constexpr int32_t N = 64, K = 1024, MAX_ROWS = 70;
const double NF4[16] = {-1.0,
                        -0.6961928009986877,
                        -0.5250730514526367,
                        -0.39491748809814453,
                        -0.28444138169288635,
                        -0.18477343022823334,
                        -0.09105003625154495,
                        0.0,
                        0.07958029955625534,
                        0.16093020141124725,
                        0.24611230194568634,
                        0.33791524171829224,
                        0.44070982933044434,
                        0.5626170039176941,
                        0.7229568362236023,
                        1.0};

kiln::driver driver;

void need(bool holds, const char *what)
{
    if (!holds) {
        std::printf("FAILED: %s\n", what);
        std::exit(1);
    }
}
void need(kiln::status status)
{
    char text[256];
    if (!status)
        need(false, driver.describe(text));
}
/* Returns a function that kiln's table lacks. */
template <typename Function> Function *symbol(const char *name)
{
    void *const found = dlsym(driver->library, name);
    need(found != nullptr, name);
    return reinterpret_cast<Function *>(found);
}

struct Logger final : ILogger {
    std::string last;
    void log(Severity, const char *text) noexcept override
    {
        last = text;
    }
} logger;
struct Finder final : ILoggerFinder {
    ILogger *findLogger() override
    {
        return &logger;
    }
} finder;

/* Small multiples of powers of two, which are exact in f16. */
struct Half {
    uint16_t bits;
    double value;
};
Half half(int i) /* -8/8 ... 7/8 */
{
    const int eighths = i % 16 - 8, magnitude = std::abs(eighths);
    if (magnitude == 0)
        return {0, 0};
    const int exponent = std::ilogb(magnitude);
    const int fraction = (magnitude << (10 - exponent)) & 0x3ff;
    return {static_cast<uint16_t>((eighths < 0 ? 0x8000 : 0) | (exponent - 3 + 15) << 10 | fraction),
            eighths / 8.0};
}
double value_of(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    const double magnitude =
        exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
    return bits & 0x8000 ? -magnitude : magnitude;
}

Dims dims(int32_t rows, int32_t columns)
{
    Dims made{};
    made.nbDims = 3;
    made.d[0] = 1;
    made.d[1] = rows;
    made.d[2] = columns;
    return made;
}
PluginTensorDesc tensor(int32_t rows, int32_t columns, DataType type = DataType::kHALF)
{
    PluginTensorDesc made{};
    made.dims = dims(rows, columns);
    made.type = type;
    made.format = TensorFormat::kLINEAR;
    return made;
}
DynamicPluginTensorDesc dynamic_tensor(int32_t columns, DataType type = DataType::kHALF)
{
    DynamicPluginTensorDesc made{};
    made.desc = tensor(-1, columns, type);
    made.min = dims(1, columns);
    made.opt = made.max = dims(MAX_ROWS, columns);
    return made;
}
template <typename Capability> Capability &capability(IPluginV3 &plugin, PluginCapabilityType type)
{
    IPluginCapability *const found = plugin.getCapabilityInterface(type);
    need(found != nullptr, "the plugin has the capability");
    return *static_cast<Capability *>(found);
}

size_t free_bytes()
{
    static const auto get = symbol<int(size_t *, size_t *)>("cuMemGetInfo_v2");
    size_t free = 0, total = 0;
    need(driver.check("cuMemGetInfo", get(&free, &total)));
    return free;
}

/* Calls enqueue. Returns the largest error, relative to the rounding bound of the sum of the products' magnitudes. */
double enqueue(IPluginV3 &context, int32_t rows, size_t workspace_bytes, const std::vector<int8_t> &packed,
               const std::vector<float> &scale)
{
    auto &runtime = capability<IPluginV3OneRuntime>(context, PluginCapabilityType::kRUNTIME);
    const PluginTensorDesc in = tensor(rows, K), out = tensor(rows, N);
    std::vector<uint16_t> x(static_cast<size_t>(rows * K)), y(static_cast<size_t>(rows * N));
    for (size_t i = 0; i < x.size(); i++)
        x[i] = half(static_cast<int>(i * 7 + i / K)).bits;
    kiln::memory device_x, device_y, workspace;
    need(device_x.upload(driver, x.data(), x.size() * 2));
    need(device_y.allocate(driver, y.size() * 2));
    need(workspace.allocate(driver, workspace_bytes));
    need(driver->memset_d8(workspace.address(), 0xff, workspace_bytes) == 0,
         "the workspace is written"); /* as by another layer */

    cudaStream_t stream{};
    need(driver.check("cuStreamCreate", symbol<int(cudaStream_t *, unsigned)>("cuStreamCreate")(&stream, 1)));
    const void *const inputs[] = {reinterpret_cast<void *>(device_x.address())};
    void *const outputs[] = {reinterpret_cast<void *>(device_y.address())};
    const size_t before = free_bytes();
    need(runtime.onShapeChange(&in, 1, &out, 1) == 0, "onShapeChange");
    need(runtime.enqueue(&in, &out, inputs, outputs, reinterpret_cast<void *>(workspace.address()), stream) ==
             0,
         logger.last.c_str());
    need(driver.check("cuStreamSynchronize", symbol<int(cudaStream_t)>("cuStreamSynchronize")(stream)));
    need(free_bytes() == before, "onShapeChange and enqueue allocate no device memory");
    need(driver.check("cuStreamDestroy", symbol<int(cudaStream_t)>("cuStreamDestroy_v2")(stream)));
    need(device_y.download(y.data(), y.size() * 2));

    double worst = 0;
    for (int m = 0; m < rows; m++)
        for (int n = 0; n < N; n++) {
            double sum = 0, magnitudes = 0;
            for (int k = 0; k < K; k++) {
                const int at = n * K + k;
                const int code =
                    static_cast<uint8_t>(packed[static_cast<size_t>(at / 2)]) >> (at % 2 * 4) & 15;
                const double product = value_of(x[static_cast<size_t>(m * K + k)]) * NF4[code] *
                                       static_cast<double>(scale[static_cast<size_t>(at / 64)]);
                sum += product;
                magnitudes += std::fabs(product);
            }
            worst = std::max(worst, std::fabs(value_of(y[static_cast<size_t>(m * N + n)]) - sum) /
                                        (magnitudes * std::ldexp(1, -10)));
        }
    return worst;
}

} // namespace

int main(int argc, char **argv)
{
    need(argc > 1, "usage: app PLUGIN.so [libcuda.so.1]");
    need(driver.load(argc > 2 ? argv[2] : nullptr));
    need(driver.set_device());
    void *const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    need(library != nullptr, "the plugin's library opens");
    int32_t count = 0;
    using GetCreators = IPluginCreatorInterface *const *(int32_t &);
    IPluginCreatorInterface *const *const creators =
        reinterpret_cast<GetCreators *>(dlsym(library, "getCreators"))(count);
    reinterpret_cast<void (*)(ILoggerFinder *)>(dlsym(library, "setLoggerFinder"))(&finder);
    need(count == 1, "one creator");
    auto &creator = *static_cast<IPluginCreatorV3One *>(creators[0]);

    std::vector<int8_t> packed(N * K / 2);
    std::vector<float> scale(N * K / 64);
    for (size_t i = 0; i < packed.size(); i++)
        packed[i] = static_cast<int8_t>(i * 37 + i / 251);
    for (size_t i = 0; i < scale.size(); i++)
        scale[i] = 0.01f * static_cast<float>(i % 9 + 1);

    /* The builder. */
    const int32_t n = N, k = K;
    PluginField fields[] = {{"n", &n, PluginFieldType::kINT32, 1},
                            {"k", &k, PluginFieldType::kINT32, 1},
                            {"packed", packed.data(), PluginFieldType::kINT8, N * K / 2},
                            {"scale", scale.data(), PluginFieldType::kFLOAT32, N * K / 64}};
    PluginFieldCollection given{4, fields};
    std::unique_ptr<IPluginV3> built{creator.createPlugin("layer", &given, TensorRTPhase::kBUILD)};
    need(built != nullptr, logger.last.c_str());
    auto &build = capability<IPluginV3OneBuild>(*built, PluginCapabilityType::kBUILD);
    const DynamicPluginTensorDesc good[] = {dynamic_tensor(K), dynamic_tensor(N)};
    const DynamicPluginTensorDesc bad[] = {dynamic_tensor(K, DataType::kFLOAT), dynamic_tensor(N)};
    need(build.supportsFormatCombination(0, good, 1, 1) && build.supportsFormatCombination(1, good, 1, 1),
         "f16 in and out");
    need(!build.supportsFormatCombination(0, bad, 1, 1), "no f32");
    need(build.configurePlugin(good, 1, good + 1, 1) == 0, "configurePlugin");
    const size_t workspace_bytes = build.getWorkspaceSize(good, 1, good + 1, 1);
    need(workspace_bytes > 0, "some kernels take a workspace");

    /* The plugin refuses mistakes, and TensorRT's log says why. */
    const DynamicPluginTensorDesc narrow = dynamic_tensor(K - 64);
    std::unique_ptr<IPluginV3> other{built->clone()};
    need(capability<IPluginV3OneBuild>(*other, PluginCapabilityType::kBUILD)
                     .configurePlugin(&narrow, 1, good + 1, 1) != 0 &&
             logger.last.find("expected x of [..., k]") != std::string::npos,
         "x of another k");
    fields[2].length--;
    need(!creator.createPlugin("layer", &given, TensorRTPhase::kBUILD) &&
             logger.last.find("packed of n * k / 2") != std::string::npos,
         "too few codes");

    /* The engine's file and the runtime. Each CUDA context has its own engine. */
    const PluginFieldCollection *const saved =
        capability<IPluginV3OneRuntime>(*built, PluginCapabilityType::kRUNTIME).getFieldsToSerialize();
    double worst = 0;
    for (int cuda_context = 0; cuda_context < 2; cuda_context++) {
        if (cuda_context == 1) {
            CUcontext second{};
            need(driver.check("cuCtxCreate",
                              symbol<int(CUcontext *, unsigned, int)>("cuCtxCreate_v2")(&second, 0, 0)));
        }
        std::unique_ptr<IPluginV3> engine{creator.createPlugin("layer", saved, TensorRTPhase::kRUNTIME)};
        need(engine != nullptr, logger.last.c_str());
        auto &runtime = capability<IPluginV3OneRuntime>(*engine, PluginCapabilityType::kRUNTIME);
        std::unique_ptr<IPluginV3> first{runtime.attachToContext(nullptr)},
            second{runtime.attachToContext(nullptr)};
        need(first && second, logger.last.c_str());
        const PluginTensorDesc large = tensor(MAX_ROWS + 1, K);
        need(capability<IPluginV3OneRuntime>(*first, PluginCapabilityType::kRUNTIME)
                     .onShapeChange(&large, 1, nullptr, 1) != 0,
             "more rows than the engine was built for");
        for (int32_t rows : {1, 3, MAX_ROWS, 1}) {
            worst = std::max(worst, enqueue(*first, rows, workspace_bytes, packed, scale));
            worst = std::max(worst, enqueue(*second, rows, workspace_bytes, packed, scale));
        }
    }
    std::printf("Nf4Linear: 16 calls of enqueue in 2 contexts, the largest error is %s\n",
                worst <= 1 ? "in bounds" : "OUT OF BOUNDS");
    return worst <= 1 ? 0 : 1;
}
