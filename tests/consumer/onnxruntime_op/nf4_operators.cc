/* The operator kiln::Nf4MatMul of ONNX Runtime: y[..., n] = x[..., k] * W.
 *
 *     x       float16 [..., k]
 *     packed  uint8 [n, k / 2]     W's NF4 codes, two per byte along k, the first in the low half
 *     scale   float [n, k / 64]    of each 64 weights along k
 *     y       float16 [..., n]
 *
 * CUDA execution provider: the tensors are on the device, and the kernel is launched on the provider's stream. CPU execution
 * provider: tensors are copied to device 0 and back. This is slow, and meant for tests on the emulated driver.
 */
#include <mutex>
#include <vector>

#include <kiln/kiln.hpp>
#include <onnxruntime_c_api.h>

#include "operators.h"

namespace {

constexpr uint32_t API = 16; /* works with ONNX Runtime 1.16 or newer, even if compiled with newer headers */
static_assert(ORT_API_VERSION >= API, "headers of ONNX Runtime 1.16 or newer are needed");

kiln::loaders<OPERATORS_SLOTS> loaders{operators_bundle};
const OrtApi *api;

#define RETURN_IF_FAILED(call)                                                                               \
    do {                                                                                                     \
        if (OrtStatus *const failed = (call))                                                                \
            return failed;                                                                                   \
    } while (0)

OrtStatus *status_of(kiln::status status, const kiln::loader &loader)
{
    char text[512];
    return status ? nullptr
                  : api->CreateStatus(ORT_FAIL, kiln::describe(text, status, loaders.driver(), loader));
}

struct Tensor {
    std::vector<int64_t> dims;
    void *data = nullptr;
    int64_t columns() const
    {
        return dims.empty() ? 0 : dims.back();
    }
    int64_t rows() const
    {
        int64_t product = 1;
        for (size_t i = 0; i + 1 < dims.size(); i++)
            product *= dims[i];
        return product;
    }
};

OrtStatus *get_input(OrtKernelContext *context, size_t index, Tensor &tensor)
{
    const OrtValue *value{};
    OrtTensorTypeAndShapeInfo *info{};
    size_t rank = 0;
    RETURN_IF_FAILED(api->KernelContext_GetInput(context, index, &value));
    RETURN_IF_FAILED(api->GetTensorMutableData(const_cast<OrtValue *>(value), &tensor.data));
    RETURN_IF_FAILED(api->GetTensorTypeAndShape(value, &info));
    OrtStatus *failed = api->GetDimensionsCount(info, &rank);
    if (!failed) {
        tensor.dims.resize(rank);
        failed = api->GetDimensions(info, tensor.dims.data(), rank);
    }
    api->ReleaseTensorTypeAndShapeInfo(info);
    return failed;
}

OrtStatus *get_output(OrtKernelContext *context, Tensor &tensor)
{
    OrtValue *value{};
    RETURN_IF_FAILED(
        api->KernelContext_GetOutput(context, 0, tensor.dims.data(), tensor.dims.size(), &value));
    return api->GetTensorMutableData(value, &tensor.data);
}

/* Device tensors, in the provider's current context. */
OrtStatus *run_on_stream(OrtKernelContext *context, operators_nf4_gemm_args args, const Tensor &x,
                         const Tensor &packed, const Tensor &scale, const Tensor &y)
{
    void *stream{};
    kiln::loader *loader{};
    RETURN_IF_FAILED(
        api->KernelContext_GetGPUComputeStream(context, &stream)); /* a cudaStream_t, which is a CUstream */
    args.in = reinterpret_cast<CUdeviceptr>(x.data);
    args.packed = reinterpret_cast<CUdeviceptr>(packed.data);
    args.scale = reinterpret_cast<CUdeviceptr>(scale.data);
    args.out = reinterpret_cast<CUdeviceptr>(y.data);
    kiln::status status = loaders.current(loader);
    if (status)
        status = operators_nf4_gemm(*loader, static_cast<CUstream>(stream), args);
    return status_of(status, *loader);
}

/* Host tensors. */
OrtStatus *run_with_copies(operators_nf4_gemm_args args, const Tensor &x, const Tensor &packed,
                           const Tensor &scale, const Tensor &y)
{
    static std::mutex one_at_a_time;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    const size_t m = args.m, n = args.n, k = args.k;
    kiln::driver &driver = loaders.driver();
    kiln::loader none, *loader = &none;
    kiln::memory device_x, device_packed, device_scale, device_y;
    kiln::status status = loaders.load();
    if (status)
        status = driver.set_device();
    if (status)
        status = loaders.current(loader);
    if (status)
        status = device_x.upload(driver, x.data, m * k * 2);
    if (status)
        status = device_packed.upload(driver, packed.data, n * k / 2);
    if (status)
        status = device_scale.upload(driver, scale.data, n * k / 64 * 4);
    if (status)
        status = device_y.allocate(driver, m * n * 2);
    args.in = device_x.address();
    args.packed = device_packed.address();
    args.scale = device_scale.address();
    args.out = device_y.address();
    if (status)
        status = operators_nf4_gemm(*loader, nullptr, args);
    if (status)
        status = device_y.download(y.data, m * n * 2);
    return status_of(status, *loader);
}

struct Nf4MatMul : OrtCustomOp {
    const char *const provider; /* null: CPU */

    explicit Nf4MatMul(const char *provider) : OrtCustomOp{}, provider(provider)
    {
        version = API;
        GetName = [](const OrtCustomOp *) { return "Nf4MatMul"; };
        GetExecutionProviderType = [](const OrtCustomOp *op) {
            return static_cast<const Nf4MatMul *>(op)->provider;
        };
        GetInputTypeCount = [](const OrtCustomOp *) -> size_t { return 3; };
        GetInputType = [](const OrtCustomOp *, size_t index) {
            const ONNXTensorElementDataType types[] = {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
                                                       ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
                                                       ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT};
            return types[index];
        };
        GetInputCharacteristic = [](const OrtCustomOp *, size_t) { return INPUT_OUTPUT_REQUIRED; };
        GetInputMemoryType = [](const OrtCustomOp *, size_t) { return OrtMemTypeDefault; };
        GetOutputTypeCount = [](const OrtCustomOp *) -> size_t { return 1; };
        GetOutputType = [](const OrtCustomOp *, size_t) { return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16; };
        GetOutputCharacteristic = [](const OrtCustomOp *, size_t) { return INPUT_OUTPUT_REQUIRED; };
        CreateKernelV2 = [](const OrtCustomOp *op, const OrtApi *, const OrtKernelInfo *,
                            void **kernel) -> OrtStatus * {
            *kernel = const_cast<OrtCustomOp *>(op); /* it has no state of its own */
            return nullptr;
        };
        KernelDestroy = [](void *) {};
        KernelComputeV2 = [](void *kernel, OrtKernelContext *context) {
            return static_cast<const Nf4MatMul *>(static_cast<const OrtCustomOp *>(kernel))->compute(context);
        };
    }

    OrtStatus *compute(OrtKernelContext *context) const
    {
        Tensor x, packed, scale, y;
        RETURN_IF_FAILED(get_input(context, 0, x));
        RETURN_IF_FAILED(get_input(context, 1, packed));
        RETURN_IF_FAILED(get_input(context, 2, scale));
        const int64_t m = x.rows(), n = packed.rows(), k = x.columns();
        if (x.dims.empty() || packed.dims != std::vector<int64_t>{n, k / 2} ||
            scale.dims != std::vector<int64_t>{n, k / 64} || k % 64 != 0 || m > 65535 || n > INT32_MAX ||
            k > INT32_MAX)
            return api->CreateStatus(ORT_INVALID_ARGUMENT,
                                     "Nf4MatMul: expected x [..., k] with k a multiple of 64 and at most "
                                     "65535 rows, packed [n, k / 2] and scale [n, k / 64]");
        y.dims = x.dims;
        y.dims.back() = n;
        RETURN_IF_FAILED(get_output(context, y));
        if (m == 0 || n == 0)
            return nullptr;
        operators_nf4_gemm_args args{};
        args.m = static_cast<uint32_t>(m);
        args.n = static_cast<uint32_t>(n);
        args.k = static_cast<uint32_t>(k);
        return provider ? run_on_stream(context, args, x, packed, scale, y)
                        : run_with_copies(args, x, packed, scale, y);
    }
};

} // namespace

extern "C" __attribute__((visibility("default"))) OrtStatus *RegisterCustomOps(OrtSessionOptions *options,
                                                                               const OrtApiBase *base)
{
    static const Nf4MatMul on_cpu{nullptr}, on_cuda{"CUDAExecutionProvider"};
    static OrtCustomOpDomain *domain; /* lives as long as the library, because sessions refer to it */
    api = base->GetApi(API);
    if (!api)
        return base->GetApi(1)->CreateStatus(ORT_FAIL, "Nf4MatMul needs ONNX Runtime 1.16 or newer");
    if (!domain) {
        RETURN_IF_FAILED(api->CreateCustomOpDomain("kiln", &domain));
        RETURN_IF_FAILED(api->CustomOpDomain_Add(domain, &on_cpu));
        RETURN_IF_FAILED(api->CustomOpDomain_Add(domain, &on_cuda));
    }
    return api->AddCustomOpDomain(options, domain);
}
