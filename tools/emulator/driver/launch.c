/* Kernel launches: what the driver refuses, and parameters. */
#include "api.h"

#include <stdlib.h>
#include <string.h>

static bool is_grid_too_large(const uint32_t grid[3], const uint32_t block[3])
{
    return grid[0] > 2147483647u || grid[1] > 65535 || grid[2] > 65535 || block[0] > 1024 ||
           block[1] > 1024 || block[2] > 64;
}

static CUresult check_launch(CUcontext context, CUfunction f, const uint32_t grid[3], const uint32_t block[3],
                             uint32_t shared_bytes)
{
    if (!emu_is(f, EMU_FUNCTION) || f->module->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    const emu_function *k = f->function;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (!threads || !grid[0] || !grid[1] || !grid[2] || is_grid_too_large(grid, block) ||
        threads > emu_max_threads(f))
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < 3; i++)
        if (k->has_required_threads && block[i] != k->required_threads[i])
            return CUDA_ERROR_INVALID_VALUE;
    if ((int64_t)shared_bytes > f->max_dynamic_shared_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    return emu_occupancy(f, (unsigned)threads, shared_bytes) > 0 ? CUDA_SUCCESS
                                                                 : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

/* extra: pairs of a name and a value; a buffer and its size instead of one pointer per parameter. */
static CUresult parameters_from_buffer(const emu_function *k, void **extra, char *bytes)
{
    enum { END = 0, BUFFER = 1, SIZE = 2 };
    const char *buffer = NULL;
    const size_t *size = NULL;
    for (; (uintptr_t)extra[0] != END; extra += 2) {
        if ((uintptr_t)extra[0] == BUFFER)
            buffer = extra[1];
        else if ((uintptr_t)extra[0] == SIZE)
            size = extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (!buffer || !size || *size < k->parameter_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(bytes, buffer, k->parameter_bytes);
    return CUDA_SUCCESS;
}

static CUresult read_parameters(const emu_function *k, void **parameters, void **extra, char *bytes)
{
    if (k->parameter_count == 0)
        return CUDA_SUCCESS;
    if (parameters && extra)
        return CUDA_ERROR_INVALID_VALUE;
    if (extra)
        return parameters_from_buffer(k, extra, bytes);
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t at = 0;
    for (size_t i = 0; i < k->parameter_count; i++) {
        const emu_symbol *s = k->parameters[i];
        if (!parameters[i])
            return CUDA_ERROR_INVALID_VALUE;
        at = emu_align_up(at, s->alignment);
        memcpy(bytes + at, parameters[i], s->bytes);
        at += s->bytes;
    }
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
                        void **parameters, void **extra)
{
    EMU_ENTER(context);
    emu_work work = {.kind = EMU_WORK_LAUNCH};
    uint32_t grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
    CUresult r = check_launch(context, f, grid, block, shared_bytes);
    if (r == CUDA_SUCCESS)
        r = emu_check_stream(context, &stream);
    if (r != CUDA_SUCCESS)
        return r;
    work.launch.function = f;
    work.launch.shared_bytes = shared_bytes;
    memcpy(work.launch.grid, grid, sizeof grid);
    memcpy(work.launch.block, block, sizeof block);
    work.launch.parameter_bytes = (uint32_t)f->function->parameter_bytes;
    work.launch.parameters = emu_alloc(f->function->parameter_bytes + 16);
    r = read_parameters(f->function, parameters, extra, work.launch.parameters);
    if (r != CUDA_SUCCESS) {
        free(work.launch.parameters);
        return r;
    }
    return emu_submit(context, stream, &work);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **parameters, void **extra)
{
    EMU_ENTER(context);
    if (!c || (c->numAttrs && !c->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < c->numAttrs; i++) {
        const CUlaunchAttribute *a = &c->attrs[i];
        bool clusters = a->id == CU_LAUNCH_CLUSTER_DIMENSION &&
                        (a->value.cluster.x > 1 || a->value.cluster.y > 1 || a->value.cluster.z > 1);
        if (clusters || (a->id == CU_LAUNCH_COOPERATIVE && a->value.cooperative))
            return CUDA_ERROR_NOT_SUPPORTED;
    }
    return cuLaunchKernel(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
                          c->sharedMemBytes, c->hStream, parameters, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z,
                                   unsigned shared_bytes, CUstream stream, void **parameters)
{
    EMU_ENTER(context);
    (void)f;
    (void)grid_x;
    (void)grid_y;
    (void)grid_z;
    (void)block_x;
    (void)block_y;
    (void)block_z;
    (void)shared_bytes;
    (void)stream;
    (void)parameters;
    return CUDA_ERROR_NOT_SUPPORTED;
}

EMU_PER_THREAD(cuLaunchCooperativeKernel, _ptsz);
EMU_PER_THREAD(cuLaunchKernelEx, _ptsz);
EMU_PER_THREAD(cuLaunchKernel, _ptsz);
