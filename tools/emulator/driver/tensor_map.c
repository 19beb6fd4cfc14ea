/* Tensor maps: see core/tensor_map.h for the layout of their 128 bytes. */
#include "api.h"

#include "../core/tensor_map.h"

#include <stdio.h>

/* CUtensorMapDataType to the codes of tensormap.replace, which have another order. */
static const uint8_t types[] = {EMU_MAP_U8,      EMU_MAP_U16,  EMU_MAP_U32,     EMU_MAP_S32, EMU_MAP_U64,
                                EMU_MAP_S64,     EMU_MAP_F16,  EMU_MAP_F32,     EMU_MAP_F64, EMU_MAP_BF16,
                                EMU_MAP_F32_FTZ, EMU_MAP_TF32, EMU_MAP_TF32_FTZ};

enum { TYPES = sizeof types / sizeof *types, MOST_TYPE = 15, MOST_SWIZZLE = 6, MOST_INTERLEAVE = 2 };

static CUresult not_supported(const char *what)
{
    char text[200];
    snprintf(text, sizeof text, "kiln emulator: CUDA_ERROR_NOT_SUPPORTED: a tensor map with %s\n", what);
    emu_print_report(text, 1);
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult enter_tensor_map(const CUtensorMap *map)
{
    EMU_ENTER(context);
    if (context->device->model->number < 90)
        return not_supported("a device below sm_90");
    return !map || (uintptr_t)map % 64 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type, unsigned rank, void *address,
                                const uint64_t *sizes, const uint64_t *strides, const unsigned *box,
                                const unsigned *element_strides, int interleave, int swizzle, int promotion,
                                int fill)
{
    EMU_CHECK(enter_tensor_map(map));
    if (type < 0 || type > MOST_TYPE || rank == 0 || rank > EMU_MAP_RANKS || interleave < 0 ||
        interleave > MOST_INTERLEAVE || swizzle < 0 || swizzle > MOST_SWIZZLE || promotion < 0 ||
        promotion > 3 || fill < 0 || fill > 1 || !sizes || !box || !element_strides || (rank > 1 && !strides))
        return CUDA_ERROR_INVALID_VALUE;
    emu_tensor_map m = {.address = (uint64_t)(uintptr_t)address,
                        .rank = rank,
                        .type = type < TYPES ? types[type] : EMU_MAP_TYPES,
                        .interleave = (uint32_t)interleave,
                        .swizzle = swizzle < 3 ? (uint32_t)swizzle : 3,
                        .atomicity = swizzle > 3 ? (uint32_t)swizzle - 3 : 0,
                        .fill = (uint32_t)fill};
    for (unsigned d = 0; d < rank; d++) {
        m.size[d] = sizes[d];
        m.box[d] = box[d];
        m.step[d] = element_strides[d];
        if (d + 1 < rank)
            m.stride[d] = strides[d];
    }
    if (emu_map_wrong(&m) || element_strides[0] == 0 || element_strides[0] > 8 || (interleave && rank < 3))
        return CUDA_ERROR_INVALID_VALUE;
    const char *lacks = emu_map_lacks(&m);
    if (lacks)
        return not_supported(lacks);
    emu_map_pack(&m, map);
    return CUDA_SUCCESS;
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
    EMU_CHECK(enter_tensor_map(map));
    if ((uintptr_t)address % 16)
        return CUDA_ERROR_INVALID_VALUE;
    emu_map_set(map, EMU_MAP_ADDRESS, 0, (uint64_t)(uintptr_t)address);
    return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, int type, unsigned rank, void *address,
                                 const uint64_t *sizes, const uint64_t *strides, const int *lower,
                                 const int *upper, unsigned channels, unsigned pixels,
                                 const unsigned *element_strides, int interleave, int swizzle, int promotion,
                                 int fill)
{
    EMU_CHECK(enter_tensor_map(map));
    (void)type, (void)rank, (void)address, (void)sizes, (void)strides, (void)lower, (void)upper,
        (void)channels;
    (void)pixels, (void)element_strides, (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    return not_supported("the im2col mode");
}
