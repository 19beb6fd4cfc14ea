/* A TensorRT plugin: y[..., n] = x[..., k] * W, with x and y in f16 and W in NF4, as kiln's nf4_gemm takes it.
 *
 * The weights are plugin fields, so the engine's file holds them: packed has n * k / 2 bytes, two codes per byte along k,
 * and scale has n * k / 64 numbers. All execution contexts of an engine share one copy on the device.
 *
 * Kernels are loaded in attachToContext. After that enqueue takes no lock, allocates nothing and loads nothing.
 */
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include <NvInfer.h>
#include <kiln/kiln.hpp>

#include "layers.h"

using namespace nvinfer1;

namespace {

constexpr char NAME[] = "Nf4Linear", VERSION[] = "1", NAMESPACE[] = "kiln";

kiln::loaders<LAYERS_SLOTS> loaders{layers_bundle};
ILoggerFinder *logger_finder; /* TensorRT sets this when it loads the library */

/* Returns true for success; otherwise writes the error to TensorRT's log. */
bool log(const char *what)
{
    ILogger *const logger = logger_finder ? logger_finder->findLogger() : nullptr;
    if (logger)
        logger->log(ILogger::Severity::kERROR, what);
    return false;
}
bool check(kiln::status status, const kiln::loader &loader)
{
    char text[512];
    return status ? true : log(kiln::describe(text, status, loaders.driver(), loader));
}

struct Weights {
    int32_t n = 0, k = 0;
    std::vector<int8_t> packed;
    std::vector<float> scale;
    kiln::memory device_packed, device_scale; /* allocated by the first attachToContext */
    std::mutex mutex;                         /* several threads may create execution contexts */

    bool upload(const kiln::loader &loader)
    {
        const std::lock_guard<std::mutex> lock(mutex);
        kiln::driver &driver = loaders.driver();
        return device_scale.address() ||
               (check(device_packed.upload(driver, packed.data(), packed.size()), loader) &&
                check(device_scale.upload(driver, scale.data(), scale.size() * sizeof scale[0]), loader));
    }
};

class Nf4Linear final : public IPluginV3,
                        public IPluginV3OneCore,
                        public IPluginV3OneBuild,
                        public IPluginV3OneRuntime {
  public:
    Nf4Linear(std::shared_ptr<Weights> weights, int32_t max_rows)
        : weights_(std::move(weights)), max_rows_(max_rows)
    {
    }

    /* ---- IPluginV3, IPluginV3OneCore */

    IPluginCapability *getCapabilityInterface(PluginCapabilityType type) noexcept override
    {
        switch (type) {
        case PluginCapabilityType::kCORE:
            return static_cast<IPluginV3OneCore *>(this);
        case PluginCapabilityType::kBUILD:
            return static_cast<IPluginV3OneBuild *>(this);
        case PluginCapabilityType::kRUNTIME:
            return static_cast<IPluginV3OneRuntime *>(this);
        }
        return nullptr;
    }
    Nf4Linear *clone() noexcept override
    {
        return new Nf4Linear(weights_, max_rows_);
    }
    const char *getPluginName() const noexcept override
    {
        return NAME;
    }
    const char *getPluginVersion() const noexcept override
    {
        return VERSION;
    }
    const char *getPluginNamespace() const noexcept override
    {
        return NAMESPACE;
    }

    /* ---- IPluginV3OneBuild */

    int32_t getNbOutputs() const noexcept override
    {
        return 1;
    }
    int32_t getOutputDataTypes(DataType *output, int32_t, const DataType *input,
                               int32_t) const noexcept override
    {
        output[0] = input[0];
        return 0;
    }
    int32_t getOutputShapes(const DimsExprs *inputs, int32_t, const DimsExprs *, int32_t, DimsExprs *outputs,
                            int32_t, IExprBuilder &expressions) noexcept override
    {
        outputs[0] = inputs[0];
        outputs[0].d[outputs[0].nbDims - 1] = expressions.constant(weights_->n);
        return 0;
    }
    bool supportsFormatCombination(int32_t at, const DynamicPluginTensorDesc *tensors, int32_t,
                                   int32_t) noexcept override
    {
        return tensors[at].desc.type == DataType::kHALF && tensors[at].desc.format == TensorFormat::kLINEAR;
    }
    int32_t configurePlugin(const DynamicPluginTensorDesc *in, int32_t, const DynamicPluginTensorDesc *,
                            int32_t) noexcept override
    {
        max_rows_ = static_cast<int32_t>(rows_of(in[0].max));
        return fits(in[0].max) ? 0 : -1;
    }
    size_t getWorkspaceSize(const DynamicPluginTensorDesc *in, int32_t, const DynamicPluginTensorDesc *,
                            int32_t) const noexcept override
    {
        kiln::loader *loader{};
        uint64_t bytes = 0, counter_bytes = 0;
        const auto args = args_for(rows_of(in[0].max));
        if (check(loaders.current(loader), *loader))
            check(layers_nf4_gemm_workspace_max(*loader, args, &bytes, &counter_bytes), *loader);
        return bytes;
    }

    /* ---- IPluginV3OneRuntime */

    /* TensorRT has made the engine's context current. */
    IPluginV3 *attachToContext(IPluginResourceContext *) noexcept override
    {
        std::unique_ptr<Nf4Linear> attached{clone()};
        return attached->prepare() ? attached.release() : nullptr;
    }
    int32_t onShapeChange(const PluginTensorDesc *in, int32_t, const PluginTensorDesc *,
                          int32_t) noexcept override
    {
        return fits(in[0].dims) && rows_of(in[0].dims) <= max_rows_ ? 0 : -1;
    }
    int32_t enqueue(const PluginTensorDesc *in, const PluginTensorDesc *, const void *const *inputs,
                    void *const *outputs, void *workspace, cudaStream_t stream) noexcept override
    {
        auto args = args_for(rows_of(in[0].dims));
        args.in = reinterpret_cast<CUdeviceptr>(inputs[0]);
        args.out = reinterpret_cast<CUdeviceptr>(outputs[0]);
        args.packed = weights_->device_packed.address();
        args.scale = weights_->device_scale.address();
        args.workspace = reinterpret_cast<CUdeviceptr>(workspace);
        args.tile_counters = counters_.address();
        args.workspace_size = workspace_bytes_ / sizeof(float);
        return check(layers_nf4_gemm(*loader_, stream, args), *loader_) ? 0 : -1;
    }
    const PluginFieldCollection *getFieldsToSerialize() noexcept override
    {
        fields_ = {{"n", &weights_->n, PluginFieldType::kINT32, 1},
                   {"k", &weights_->k, PluginFieldType::kINT32, 1},
                   {"max_rows", &max_rows_, PluginFieldType::kINT32, 1},
                   {"packed", weights_->packed.data(), PluginFieldType::kINT8,
                    static_cast<int32_t>(weights_->packed.size())},
                   {"scale", weights_->scale.data(), PluginFieldType::kFLOAT32,
                    static_cast<int32_t>(weights_->scale.size())}};
        collection_ = {static_cast<int32_t>(fields_.size()), fields_.data()};
        return &collection_;
    }

  private:
    static int64_t rows_of(const Dims &dims)
    {
        int64_t rows = 1;
        for (int32_t i = 0; i + 1 < dims.nbDims; i++)
            rows *= dims.d[i];
        return rows;
    }
    bool fits(const Dims &dims) const
    {
        return (dims.nbDims > 0 && dims.d[dims.nbDims - 1] == weights_->k && rows_of(dims) <= 65535) ||
               log("Nf4Linear: expected x of [..., k] with at most 65535 rows");
    }
    layers_nf4_gemm_args args_for(int64_t rows) const
    {
        layers_nf4_gemm_args args{};
        args.m = static_cast<uint32_t>(rows);
        args.n = static_cast<uint32_t>(weights_->n);
        args.k = static_cast<uint32_t>(weights_->k);
        return args;
    }
    /* Allocates all that enqueue needs. The counters are zero before a launch, and each launch resets them to zero. They
     * cannot be in TensorRT's workspace, because other layers write to it. */
    bool prepare()
    {
        uint64_t counter_bytes = 0;
        return check(loaders.current(loader_), *loader_) && check(loader_->preload(layers_index), *loader_) &&
               check(layers_nf4_gemm_workspace_max(*loader_, args_for(max_rows_), &workspace_bytes_,
                                                   &counter_bytes),
                     *loader_) &&
               check(counters_.zeros(loaders.driver(), counter_bytes), *loader_) &&
               weights_->upload(*loader_);
    }

    std::shared_ptr<Weights> weights_;
    int32_t max_rows_;
    kiln::loader *loader_ = nullptr;
    kiln::memory counters_;
    uint64_t workspace_bytes_ = 0;
    std::vector<PluginField> fields_;
    PluginFieldCollection collection_{};
};

class Creator final : public IPluginCreatorV3One {
  public:
    IPluginV3 *createPlugin(const char *, const PluginFieldCollection *given, TensorRTPhase) noexcept override
    {
        auto weights = std::make_shared<Weights>();
        int32_t max_rows = 0; /* configurePlugin sets it */
        for (int32_t i = 0; i < given->nbFields; i++) {
            const PluginField &field = given->fields[i];
            if (is(field, "n", PluginFieldType::kINT32))
                std::memcpy(&weights->n, field.data, sizeof weights->n);
            else if (is(field, "k", PluginFieldType::kINT32))
                std::memcpy(&weights->k, field.data, sizeof weights->k);
            else if (is(field, "max_rows", PluginFieldType::kINT32))
                std::memcpy(&max_rows, field.data, sizeof max_rows);
            else if (is(field, "packed", PluginFieldType::kINT8))
                copy(weights->packed, field);
            else if (is(field, "scale", PluginFieldType::kFLOAT32))
                copy(weights->scale, field);
            else
                return log("Nf4Linear: a field of another name or type than those of getFieldNames"), nullptr;
        }
        const size_t weight_count = static_cast<size_t>(weights->n) * static_cast<size_t>(weights->k);
        if (weights->n <= 0 || weights->k <= 0 || weights->k % 64 != 0 ||
            weights->packed.size() != weight_count / 2 || weights->scale.size() != weight_count / 64)
            return log("Nf4Linear: expected n, k (a multiple of 64), packed of n * k / 2 bytes and scale of n * k / 64 numbers"),
                   nullptr;
        return new Nf4Linear(std::move(weights), max_rows);
    }
    const PluginFieldCollection *getFieldNames() noexcept override
    {
        return &collection_;
    }
    const char *getPluginName() const noexcept override
    {
        return NAME;
    }
    const char *getPluginVersion() const noexcept override
    {
        return VERSION;
    }
    const char *getPluginNamespace() const noexcept override
    {
        return NAMESPACE;
    }

  private:
    static bool is(const PluginField &field, const char *name, PluginFieldType type)
    {
        return std::strcmp(field.name, name) == 0 && field.type == type && field.length > 0;
    }
    template <typename T> static void copy(std::vector<T> &to, const PluginField &field)
    {
        const T *const from = static_cast<const T *>(field.data);
        to.assign(from, from + field.length);
    }
    PluginField fields_[4] = {{"n", nullptr, PluginFieldType::kINT32, 1},
                              {"k", nullptr, PluginFieldType::kINT32, 1},
                              {"packed", nullptr, PluginFieldType::kINT8, 1},
                              {"scale", nullptr, PluginFieldType::kFLOAT32, 1}};
    const PluginFieldCollection collection_{4, fields_};
};

} // namespace

/* TensorRT calls these after it loads the plugin library: IPluginRegistry::loadLibrary, or trtexec --dynamicPlugins. */
extern "C" __attribute__((visibility("default"))) IPluginCreatorInterface *const *getCreators(int32_t &count)
{
    static Creator creator;
    static IPluginCreatorInterface *const creators[] = {&creator};
    count = 1;
    return creators;
}
extern "C" __attribute__((visibility("default"))) void setLoggerFinder(ILoggerFinder *finder)
{
    logger_finder = finder;
}
