/* Device and host memory, copies and fills. */
#include "../core/report.h"
#include "api.h"

static CUresult allocate(CUcontext context, size_t bytes, emu_allocation_kind kind, emu_allocation **made)
{
    unsigned device = (unsigned)context->device->ordinal;
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    bool host = kind == EMU_ALLOCATION_HOST;
    uint64_t room = context->device->model->memory_bytes - emu_memory_used(device);
    if (!host && bytes > room)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = emu_memory_alloc(bytes, kind, device, context);
    return *made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult allocate_device(CUcontext context, CUdeviceptr *address, size_t bytes,
                                emu_allocation_kind kind)
{
    emu_allocation *a;
    if (!address)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = allocate(context, bytes, kind, &a);
    if (r == CUDA_SUCCESS)
        *address = a->base;
    return r;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    EMU_ENTER_UNSAFE(context);
    return allocate_device(context, address, bytes, EMU_ALLOCATION_DEVICE);
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags)
{
    EMU_ENTER_UNSAFE(context);
    return flags != 1 && flags != 2 ? CUDA_ERROR_INVALID_VALUE
                                    : allocate_device(context, address, bytes, EMU_ALLOCATION_MANAGED);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                            unsigned element)
{
    EMU_ENTER(context);
    if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    if (width > SIZE_MAX / height - 512)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pitch = emu_align_up(width, 512);
    return cuMemAlloc_v2(address, *pitch * height);
}

static CUresult release(CUdeviceptr address, bool host)
{
    emu_allocation *a = emu_memory_holding(address, 1);
    bool is_host = a && a->kind == EMU_ALLOCATION_HOST;
    bool is_own =
        a && a->base == address && a->kind != EMU_ALLOCATION_MODULE && a->kind != EMU_ALLOCATION_CONST;
    if (!is_own || is_host != host)
        return CUDA_ERROR_INVALID_VALUE;
    emu_memory_free(a);
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    EMU_ENTER_UNSAFE(context);
    return address ? release(address, false) : CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    EMU_ENTER(context);
    EMU_CHECK(emu_check_stream(context, &stream));
    if (emu_is_captured(stream)) {
        emu_print_report("kiln emulator: CUDA_ERROR_NOT_SUPPORTED: cuMemAllocAsync in a stream capture\n", 1);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return allocate_device(context, address, bytes, EMU_ALLOCATION_DEVICE);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    EMU_ENTER(context);
    EMU_CHECK(emu_check_stream(context, &stream));
    return emu_is_captured(stream) ? CUDA_ERROR_INVALID_VALUE /* the graph does not own the memory */
                                   : release(address, false);
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags)
{
    EMU_ENTER_UNSAFE(context);
    emu_allocation *a;
    if (!address || flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = allocate(context, bytes, EMU_ALLOCATION_HOST, &a);
    if (r == CUDA_SUCCESS)
        *address = (void *)(uintptr_t)a->base;
    return r;
}

CUresult cuMemAllocHost_v2(void **address, size_t bytes)
{
    return cuMemHostAlloc(address, bytes, 0);
}

CUresult cuMemFreeHost(void *address)
{
    EMU_ENTER_UNSAFE(context);
    return release((CUdeviceptr)(uintptr_t)address, true);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned flags)
{
    EMU_ENTER(context);
    emu_allocation *a = emu_memory_holding((CUdeviceptr)(uintptr_t)host, 1);
    if (!address || flags || !a || a->kind != EMU_ALLOCATION_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    *address = (CUdeviceptr)(uintptr_t)host;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned *flags, void *host)
{
    EMU_ENTER(context);
    emu_allocation *a = emu_memory_holding((CUdeviceptr)(uintptr_t)host, 1);
    if (!flags || !a || a->kind != EMU_ALLOCATION_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = 2; /* CU_MEMHOSTALLOC_DEVICEMAP, which all host memory is */
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    EMU_ENTER(context);
    if (!free_bytes || !total_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *total_bytes = context->device->model->memory_bytes;
    *free_bytes = *total_bytes - emu_memory_used((unsigned)context->device->ordinal);
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    EMU_ENTER(context);
    emu_allocation *a = emu_memory_holding(address, 1);
    if (!a)
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = a->base;
    if (bytes)
        *bytes = a->bytes;
    return CUDA_SUCCESS;
}

/* CUpointer_attribute */
enum {
    POINTER_CONTEXT = 1,
    POINTER_MEMORY_TYPE = 2,
    POINTER_DEVICE_POINTER = 3,
    POINTER_HOST_POINTER = 4,
    POINTER_SYNC_MEMOPS = 6,
    POINTER_BUFFER_ID = 7,
    POINTER_IS_MANAGED = 8,
    POINTER_DEVICE_ORDINAL = 9,
    POINTER_RANGE_START = 11,
    POINTER_RANGE_SIZE = 12,
    POINTER_MAPPED = 13,
};

CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr address)
{
    EMU_ENTER(context);
    emu_allocation *a = emu_memory_holding(address, 1);
    if (!value || !a)
        return CUDA_ERROR_INVALID_VALUE;
    bool host = a->kind == EMU_ALLOCATION_HOST, managed = a->kind == EMU_ALLOCATION_MANAGED;
    switch (attribute) {
    case POINTER_CONTEXT:
        *(CUcontext *)value = a->context;
        break;
    case POINTER_MEMORY_TYPE:
        *(unsigned *)value = host ? 1 : 2;
        break;
    case POINTER_DEVICE_POINTER:
        *(CUdeviceptr *)value = address;
        break;
    case POINTER_HOST_POINTER:
        if (!host && !managed)
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)value = (void *)(uintptr_t)address;
        break;
    case POINTER_SYNC_MEMOPS:
        *(unsigned char *)value = 1;
        break;
    case POINTER_BUFFER_ID:
        *(unsigned long long *)value = a->serial;
        break;
    case POINTER_IS_MANAGED:
        *(unsigned *)value = managed;
        break;
    case POINTER_DEVICE_ORDINAL:
        *(int *)value = (int)a->device;
        break;
    case POINTER_RANGE_START:
        *(CUdeviceptr *)value = a->base;
        break;
    case POINTER_RANGE_SIZE:
        *(size_t *)value = a->bytes;
        break;
    case POINTER_MAPPED:
        *(unsigned char *)value = 1;
        break;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

static CUresult submit_copy(uint64_t to, uint64_t from, size_t bytes, bool to_host, bool from_host,
                            CUstream stream)
{
    EMU_ENTER(context);
    CUresult r = emu_check_stream(context, &stream);
    if (r != CUDA_SUCCESS || bytes == 0)
        return r;
    emu_work work = {.kind = EMU_WORK_COPY};
    work.copy.to = to;
    work.copy.from = from;
    work.copy.bytes = bytes;
    work.copy.to_host = to_host;
    work.copy.from_host = from_host;
    r = emu_check_copy(&work);
    return r == CUDA_SUCCESS ? emu_submit(context, stream, &work) : r;
}

static uint64_t number(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

/* A copy without a stream runs on the legacy stream, and the host waits for it. */
static CUresult allows_copy(void)
{
    EMU_ENTER(context);
    EMU_CHECK(emu_capture_allows_stream(context, NULL));
    return emu_capture_allows_unsafe();
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return submit_copy(to, from, bytes, !emu_memory_contains(to), !emu_memory_contains(from), stream);
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    EMU_CHECK(allows_copy());
    return cuMemcpyAsync(to, from, bytes, NULL);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return submit_copy(to, number(from), bytes, false, true, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return submit_copy(number(to), from, bytes, true, false, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return submit_copy(to, from, bytes, false, false, stream);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    EMU_CHECK(allows_copy());
    return cuMemcpyHtoDAsync_v2(to, from, bytes, NULL);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    EMU_CHECK(allows_copy());
    return cuMemcpyDtoHAsync_v2(to, from, bytes, NULL);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    EMU_CHECK(allows_copy());
    return cuMemcpyDtoDAsync_v2(to, from, bytes, NULL);
}

static CUresult submit_set(uint64_t to, uint32_t value, uint32_t element, size_t count, CUstream stream)
{
    EMU_ENTER(context);
    CUresult r = emu_check_stream(context, &stream);
    if (r != CUDA_SUCCESS || count == 0)
        return r;
    if (to % element || count > SIZE_MAX / element || !emu_memory_holding(to, count * element))
        return CUDA_ERROR_INVALID_VALUE;
    emu_work work = {.kind = EMU_WORK_SET};
    work.set.to = to;
    work.set.value = value;
    work.set.element = element;
    work.set.count = count;
    return emu_submit(context, stream, &work);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    return submit_set(to, value, 1, count, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
    return submit_set(to, value, 2, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream)
{
    return submit_set(to, value, 4, count, stream);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
    return cuMemsetD8Async(to, value, count, NULL);
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count)
{
    return cuMemsetD16Async(to, value, count, NULL);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count)
{
    return cuMemsetD32Async(to, value, count, NULL);
}

EMU_PER_THREAD(cuMemAllocAsync, _ptsz);
EMU_PER_THREAD(cuMemFreeAsync, _ptsz);
EMU_PER_THREAD(cuMemcpyAsync, _ptsz);
EMU_PER_THREAD(cuMemcpyDtoDAsync_v2, _ptsz);
EMU_PER_THREAD(cuMemcpyDtoD_v2, _ptds);
EMU_PER_THREAD(cuMemcpyDtoHAsync_v2, _ptsz);
EMU_PER_THREAD(cuMemcpyDtoH_v2, _ptds);
EMU_PER_THREAD(cuMemcpyHtoDAsync_v2, _ptsz);
EMU_PER_THREAD(cuMemcpyHtoD_v2, _ptds);
EMU_PER_THREAD(cuMemcpy, _ptds);
EMU_PER_THREAD(cuMemsetD16Async, _ptsz);
EMU_PER_THREAD(cuMemsetD16_v2, _ptds);
EMU_PER_THREAD(cuMemsetD32Async, _ptsz);
EMU_PER_THREAD(cuMemsetD32_v2, _ptds);
EMU_PER_THREAD(cuMemsetD8Async, _ptsz);
EMU_PER_THREAD(cuMemsetD8_v2, _ptds);
