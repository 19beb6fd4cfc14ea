/* Attributes of functions, and occupancy. */
#include "api.h"

static unsigned product(const unsigned n[3])
{
    return n[0] * n[1] * n[2];
}

unsigned emu_max_threads(CUfunction f)
{
    if (f->function->has_required_threads)
        return product(f->function->required_threads);
    if (f->function->has_max_threads && product(f->function->max_threads) < 1024)
        return product(f->function->max_threads);
    return 1024;
}

/* .maxnreg, or what the block's limit leaves for each thread, in steps of 8. */
unsigned emu_entry_registers(CUfunction f)
{
    const emu_function *k = f->function;
    if (k->max_registers)
        return k->max_registers / 8 * 8;
    if (!k->min_blocks || (!k->has_max_threads && !k->has_required_threads))
        return 0;
    unsigned warps = (emu_max_threads(f) + EMU_LANES - 1) / EMU_LANES;
    unsigned registers = EMU_REGISTERS_PER_BLOCK / EMU_LANES / warps / k->min_blocks / 8 * 8;
    return registers > 256 ? 256 : registers;
}

/* PTX registers are virtual; this is a typical number for a kernel, or less if .maxnreg requires it. */
static unsigned register_count(CUfunction f)
{
    unsigned most = f->function->max_registers;
    return most && most < 32 ? most : 32;
}

/* CUfunction_attribute */
enum {
    MAX_THREADS,
    SHARED_BYTES,
    CONST_BYTES,
    LOCAL_BYTES,
    REGISTERS,
    PTX_VERSION,
    BINARY_VERSION,
    CACHE_MODE_CA,
    MAX_DYNAMIC_SHARED,
    CARVEOUT,
    MOST_ATTRIBUTES = 16,
};

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction f)
{
    EMU_ENTER(context);
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emu_is(f, EMU_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    switch (attribute) {
    case MAX_THREADS:
        *value = (int)emu_max_threads(f);
        break;
    case SHARED_BYTES:
        *value = (int)f->program->static_shared_bytes;
        break;
    case CONST_BYTES:
        *value = f->module->const_bank ? (int)f->module->const_bank->bytes : 0;
        break;
    case LOCAL_BYTES:
        *value = (int)f->program->local_bytes - 16;
        break;
    case REGISTERS:
        *value = (int)register_count(f);
        break;
    case PTX_VERSION:
        *value = (int)f->module->parsed->version;
        break;
    case BINARY_VERSION:
        *value = (int)context->device->model->number;
        break;
    case MAX_DYNAMIC_SHARED:
        *value = f->max_dynamic_shared_bytes;
        break;
    case CARVEOUT:
        *value = f->preferred_carveout;
        break;
    default:
        if (emu_get_cluster_attribute(f, attribute, value))
            break;
        if (attribute < 0 || attribute >= MOST_ATTRIBUTES)
            return CUDA_ERROR_INVALID_VALUE;
        *value = 0;
    }
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction f, int attribute, int value)
{
    EMU_ENTER(context);
    if (!emu_is(f, EMU_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult r;
    int room = (int)context->device->model->shared_per_block_optin - (int)f->program->static_shared_bytes;
    if (attribute == MAX_DYNAMIC_SHARED && value >= 0 && value <= room)
        f->max_dynamic_shared_bytes = value;
    else if (attribute == CARVEOUT && value >= -1 && value <= 100)
        f->preferred_carveout = value;
    else if (emu_set_cluster_attribute(f, attribute, value, &r))
        return r;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetCacheConfig(CUfunction f, int config)
{
    EMU_ENTER(context);
    if (!emu_is(f, EMU_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    return config < 0 || config > 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction f)
{
    EMU_ENTER(context);
    if (!module)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emu_is(f, EMU_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    *module = f->module;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction f)
{
    EMU_ENTER(context);
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emu_is(f, EMU_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    *name = f->name;
    return CUDA_SUCCESS;
}

int emu_occupancy(CUfunction f, unsigned threads, size_t dynamic_shared_bytes)
{
    const emu_device_model *m = f->module->context->device->model;
    size_t reserved = m->number >= 80 ? EMU_RESERVED_SHARED_PER_BLOCK : 0;
    size_t shared = emu_align_up(f->program->static_shared_bytes + dynamic_shared_bytes, 128) + reserved;
    unsigned warps = (threads + EMU_LANES - 1) / EMU_LANES, registers = register_count(f) * warps * EMU_LANES;
    unsigned blocks = m->blocks_per_multiprocessor, by;
    by = m->threads_per_multiprocessor / (warps * EMU_LANES);
    blocks = by < blocks ? by : blocks;
    by = EMU_REGISTERS_PER_BLOCK / registers;
    blocks = by < blocks ? by : blocks;
    by = shared ? (unsigned)(m->shared_per_multiprocessor / shared) : blocks;
    return (int)(by < blocks ? by : blocks);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction f, int threads,
                                                              size_t dynamic_shared_bytes, unsigned flags)
{
    EMU_ENTER(context);
    if (!blocks || threads <= 0 || flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emu_is(f, EMU_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    bool fits = (unsigned)threads <= emu_max_threads(f);
    *blocks = fits ? emu_occupancy(f, (unsigned)threads, dynamic_shared_bytes) : 0;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads,
                                                     size_t dynamic_shared_bytes)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, threads, dynamic_shared_bytes, 0);
}

/* ---- clusters ------------------------------------------------------------------------------------------------------ */

/* Thread blocks of the configuration on one multiprocessor. */
static CUresult occupancy_of(CUfunction f, const CUlaunchConfig *c, unsigned *blocks)
{
    if (!emu_is(f, EMU_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    uint64_t threads = (uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ;
    if (threads == 0)
        return CUDA_ERROR_INVALID_VALUE;
    bool fits = threads <= emu_max_threads(f) && (int64_t)c->sharedMemBytes <= f->max_dynamic_shared_bytes;
    *blocks = fits ? (unsigned)emu_occupancy(f, (unsigned)threads, c->sharedMemBytes) : 0;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction f, const CUlaunchConfig *c)
{
    EMU_ENTER(context);
    unsigned blocks;
    if (!size || !c)
        return CUDA_ERROR_INVALID_VALUE;
    EMU_CHECK(occupancy_of(f, c, &blocks));
    unsigned most = context->device->model->number < 90 ? 1 : emu_most_cluster_blocks(f);
    if (f->cluster[0])
        most = (unsigned)(f->cluster[0] * f->cluster[1] * f->cluster[2]);
    *size = blocks ? (int)most : 0;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction f, const CUlaunchConfig *c)
{
    EMU_ENTER(context);
    unsigned blocks;
    uint32_t cluster[3];
    const uint32_t *given = NULL;
    bool is_explicit;
    if (!count || !c || (c->numAttrs && !c->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    EMU_CHECK(occupancy_of(f, c, &blocks));
    for (unsigned i = 0; i < c->numAttrs; i++)
        if (c->attrs[i].id == CU_LAUNCH_CLUSTER_DIMENSION)
            given = &c->attrs[i].value.cluster.x;
    EMU_CHECK(emu_choose_cluster(f, given, cluster, &is_explicit));
    if (!is_explicit || product(cluster) > emu_most_cluster_blocks(f))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    *count = (int)(context->device->model->multiprocessors * blocks / product(cluster));
    return CUDA_SUCCESS;
}
