// nvcc -arch=sm_75 -ptx nvcc.cu -o nvcc.ptx
struct bounds {
    double low, high;
    int weight;
};

__device__ unsigned long long launches;

__global__ void saxpy(unsigned n, float a, const float *x, float *y)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

// Each thread block computes one sum, of the elements within the bounds.
extern "C" __global__ void __launch_bounds__(128)
    bounded_sums(unsigned n, const float *x, float *sums, struct bounds b)
{
    extern __shared__ float parts[];
    unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    parts[t] = i < n && x[i] >= b.low && x[i] <= b.high ? x[i] * b.weight : 0;
    for (unsigned s = blockDim.x / 2; s > 0; s /= 2) {
        __syncthreads();
        if (t < s)
            parts[t] += parts[t + s];
    }
    if (t == 0)
        sums[blockIdx.x] = parts[0];
    if (t == 0)
        atomicAdd(&launches, 1);
}

namespace device {
template <typename T> __global__ void fill(T *p, T value, unsigned n)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        p[i] = value;
}
template __global__ void fill(float *, float, unsigned);
template __global__ void fill(short *, short, unsigned);
} // namespace device
