/* Operators of PyTorch over kiln's NF4 kernels:
 *
 *     nf4::quantize(weight) -> (packed, scale)     float [n, k] to uint8 [n, k / 2] and float [n, k / 64]
 *     nf4::linear(x, packed, scale) -> y           [..., k] to [..., n], in float16 or bfloat16; has a gradient for x
 *     nf4::linear_transposed(y, packed, scale)     [..., n] to [..., k]: that gradient
 *
 * On CUDA they run on PyTorch's current stream, and PyTorch's allocator gives them their workspace. On the CPU their tensors
 * are copied to device 0 and back. This is slow, and meant for tests on the emulated driver.
 */
#include <deque>
#include <mutex>
#include <tuple>

#include <torch/library.h>
#include <torch/torch.h>
#ifdef WITH_CUDA
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

#include <kiln/kiln.hpp>

#include "adapter.h"

namespace {

using at::Tensor;

kiln::loaders<ADAPTER_SLOTS> loaders{adapter_bundle};

void check(kiln::status status, const kiln::loader &loader = {})
{
    char text[512];
    TORCH_CHECK(status.ok(), kiln::describe(text, status, loaders.driver(), loader));
}

/* ---- Devices. Each gives a loader, a stream, and addresses of tensors. */

kiln::loader &loader_on(int device)
{
    kiln::loader *loader{};
    check(loaders.load());
    check(loaders.driver().set_device(device)); /* autograd's threads may not have a context yet */
    check(loaders.current(loader), *loader);
    return *loader;
}

std::mutex one_at_a_time;

struct Host {
    const std::lock_guard<std::mutex> lock{one_at_a_time};
    kiln::loader &loader = loader_on(0);
    CUstream stream = nullptr;
    std::deque<kiln::memory> memory;
    std::deque<std::pair<Tensor, kiln::memory *>> outputs;

    explicit Host(const Tensor &)
    {
    }
    CUdeviceptr input(const Tensor &tensor)
    {
        check(memory.emplace_back().upload(loaders.driver(), tensor.data_ptr(), tensor.nbytes()));
        return memory.back().address();
    }
    CUdeviceptr zeros(size_t bytes)
    {
        check(memory.emplace_back().zeros(loaders.driver(), bytes));
        return memory.back().address();
    }
    CUdeviceptr output(const Tensor &tensor)
    {
        check(memory.emplace_back().allocate(loaders.driver(), tensor.nbytes()));
        outputs.emplace_back(tensor, &memory.back());
        return memory.back().address();
    }
    void finish()
    {
        for (const auto &[tensor, from] : outputs)
            check(from->download(tensor.data_ptr(), tensor.nbytes()));
    }
};

#ifdef WITH_CUDA
struct Device {
    const c10::cuda::CUDAGuard guard;
    kiln::loader &loader;
    CUstream stream;
    Tensor like;
    std::deque<Tensor> memory; /* PyTorch's allocator keeps it for this stream until the launch is over */

    explicit Device(const Tensor &like)
        : guard(like.device()), loader(loader_on(like.get_device())),
          stream(c10::cuda::getCurrentCUDAStream()), like(like)
    {
    }
    CUdeviceptr input(const Tensor &tensor)
    {
        return reinterpret_cast<CUdeviceptr>(tensor.data_ptr());
    }
    CUdeviceptr output(const Tensor &tensor)
    {
        return input(tensor);
    }
    CUdeviceptr zeros(size_t bytes)
    {
        return input(
            memory.emplace_back(at::zeros({static_cast<int64_t>(bytes)}, like.options().dtype(at::kByte))));
    }
    void finish()
    {
    }
};
#endif

/* ---- Shapes. The functions for Meta tensors check them too. */

Tensor empty_product(const Tensor &in, const Tensor &packed, const Tensor &scale, bool transposed)
{
    TORCH_CHECK(packed.dim() == 2 && packed.scalar_type() == at::kByte,
                "nf4: expected packed to be uint8 [n, k / 2], found ", packed.scalar_type(), " ",
                packed.sizes());
    const auto n = packed.sym_size(0), k = packed.sym_size(1) * 2;
    TORCH_CHECK(scale.dim() == 2 && scale.scalar_type() == at::kFloat && scale.sym_size(0) == n &&
                    scale.sym_size(1) * 64 == k,
                "nf4: expected scale to be float [n, k / 64] = [", n, ", ", k / 64, "], found ",
                scale.scalar_type(), " ", scale.sym_sizes());
    TORCH_CHECK(in.dim() >= 1 && in.sym_size(-1) == (transposed ? n : k),
                "nf4: expected a last dimension of ", transposed ? n : k, ", found ", in.sym_sizes());
    TORCH_CHECK(in.scalar_type() == at::kHalf || in.scalar_type() == at::kBFloat16,
                "nf4: expected float16 or bfloat16, found ", in.scalar_type());
    TORCH_CHECK(in.device() == packed.device() && in.device() == scale.device(),
                "nf4: expected tensors on one device");
    auto sizes = in.sym_sizes().vec();
    sizes.back() = transposed ? k : n;
    return at::empty_symint(sizes, in.options());
}

std::tuple<Tensor, Tensor> empty_quantized(const Tensor &weight)
{
    TORCH_CHECK(weight.dim() == 2 && weight.scalar_type() == at::kFloat && weight.sym_size(1) % 64 == 0,
                "nf4: expected weight to be float [n, k] with k a multiple of 64, found ",
                weight.scalar_type(), " ", weight.sym_sizes());
    const auto n = weight.sym_size(0), k = weight.sym_size(1);
    return {at::empty_symint({n, k / 2}, weight.options().dtype(at::kByte)),
            at::empty_symint({n, k / 64}, weight.options())};
}

/* ---- The operators. */

template <typename Place> std::tuple<Tensor, Tensor> quantize(const Tensor &weight)
{
    auto [packed, scale] = empty_quantized(weight);
    if (weight.numel() == 0)
        return {packed, scale};
    Place place(weight);
    const Tensor contiguous = weight.contiguous();
    adapter_nf4_quantize_args args{};
    args.in = place.input(contiguous);
    args.packed = place.output(packed);
    args.scale = place.output(scale);
    args.n = static_cast<uint64_t>(weight.numel());
    check(adapter_nf4_quantize(place.loader, place.stream, args), place.loader);
    place.finish();
    return {packed, scale};
}

/* Shared by nf4_gemm and nf4_gemm_transposed, which differ only in their names. */
template <typename Place, typename Args>
Tensor product(const Tensor &in, const Tensor &packed, const Tensor &scale, bool transposed, uint32_t type,
               kiln_status (*workspace)(kiln_loader *, const Args *, uint64_t *, uint64_t *),
               kiln_status (*launch)(kiln_loader *, CUstream, const Args *))
{
    const Tensor out = empty_product(in, packed, scale, transposed);
    if (out.numel() == 0)
        return out;
    if (in.numel() == 0)
        return out.zero_();
    Place place(in);
    const Tensor x = in.contiguous(), codes = packed.contiguous(), scales = scale.contiguous();
    Args args{};
    args.a = type;
    args.m = static_cast<uint32_t>(in.numel() / in.size(-1));
    args.n = static_cast<uint32_t>(packed.size(0));
    args.k = static_cast<uint32_t>(packed.size(1) * 2);
    args.in = place.input(x);
    args.packed = place.input(codes);
    args.scale = place.input(scales);
    args.out = place.output(out);
    uint64_t bytes = 0, counter_bytes = 0;
    check(workspace(place.loader, &args, &bytes, &counter_bytes), place.loader);
    args.workspace = place.zeros(bytes);
    args.tile_counters = place.zeros(counter_bytes);
    args.workspace_size = bytes / sizeof(float);
    check(launch(place.loader, place.stream, &args), place.loader);
    place.finish();
    return out;
}

template <typename Place> Tensor linear(const Tensor &x, const Tensor &packed, const Tensor &scale)
{
    const uint32_t type = x.scalar_type() == at::kHalf ? ADAPTER_NF4_GEMM_A_F16 : ADAPTER_NF4_GEMM_A_BF16;
    return product<Place, adapter_nf4_gemm_args>(x, packed, scale, false, type, adapter_nf4_gemm_workspace,
                                                 adapter_nf4_gemm);
}
template <typename Place> Tensor linear_transposed(const Tensor &y, const Tensor &packed, const Tensor &scale)
{
    const uint32_t type =
        y.scalar_type() == at::kHalf ? ADAPTER_NF4_GEMM_TRANSPOSED_A_F16 : ADAPTER_NF4_GEMM_TRANSPOSED_A_BF16;
    return product<Place, adapter_nf4_gemm_transposed_args>(
        y, packed, scale, true, type, adapter_nf4_gemm_transposed_workspace, adapter_nf4_gemm_transposed);
}

/* Returns the gradient for x; quantised weights have no gradient. */
struct Linear : torch::autograd::Function<Linear> {
    static Tensor forward(torch::autograd::AutogradContext *context, const Tensor &x, const Tensor &packed,
                          const Tensor &scale)
    {
        const at::AutoDispatchBelowADInplaceOrView below;
        context->save_for_backward({packed, scale});
        static const auto op =
            c10::Dispatcher::singleton().findSchemaOrThrow("nf4::linear", "").typed<decltype(linear<Host>)>();
        return op.call(x, packed, scale);
    }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext *context,
                                                   torch::autograd::variable_list given)
    {
        const auto saved = context->get_saved_variables();
        static const auto op = c10::Dispatcher::singleton()
                                   .findSchemaOrThrow("nf4::linear_transposed", "")
                                   .typed<decltype(linear_transposed<Host>)>();
        return {op.call(given[0], saved[0], saved[1]), Tensor(), Tensor()};
    }
};

} // namespace

TORCH_LIBRARY(nf4, library)
{
    library.def("quantize(Tensor weight) -> (Tensor packed, Tensor scale)");
    library.def("linear(Tensor x, Tensor packed, Tensor scale) -> Tensor");
    library.def("linear_transposed(Tensor y, Tensor packed, Tensor scale) -> Tensor");
}
TORCH_LIBRARY_IMPL(nf4, CPU, library)
{
    library.impl("quantize", quantize<Host>);
    library.impl("linear", linear<Host>);
    library.impl("linear_transposed", linear_transposed<Host>);
}
#ifdef WITH_CUDA
TORCH_LIBRARY_IMPL(nf4, CUDA, library)
{
    library.impl("quantize", quantize<Device>);
    library.impl("linear", linear<Device>);
    library.impl("linear_transposed", linear_transposed<Device>);
}
#endif
TORCH_LIBRARY_IMPL(nf4, Meta, library)
{
    library.impl("quantize", empty_quantized);
    library.impl("linear", [](const Tensor &x, const Tensor &packed, const Tensor &scale) {
        return empty_product(x, packed, scale, false);
    });
    library.impl("linear_transposed", [](const Tensor &y, const Tensor &packed, const Tensor &scale) {
        return empty_product(y, packed, scale, true);
    });
}
TORCH_LIBRARY_IMPL(nf4, Autograd, library)
{
    library.impl("linear", [](const Tensor &x, const Tensor &packed, const Tensor &scale) {
        return Linear::apply(x, packed, scale);
    });
}
