/* Tensor maps, which launchers encode on their stack and pass to kernels. Included by generated code. */
#ifndef KILN_TENSOR_MAP_H
#define KILN_TENSOR_MAP_H

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

/* cuda.h's CUtensorMap. */
typedef struct kiln_tensor_map {
    uint64_t words[16];
} __attribute__((aligned(64))) kiln_tensor_map;

enum { KILN_MOST_DIMENSIONS = 5 };

/* The parts of a variant's map that are the same in all calls. */
typedef struct kiln_box {
    const char *refused; /* message for a map that the driver rejects */
    int type;            /* CUtensorMapDataType */
    uint32_t element_bytes, dimensions;
    uint32_t sizes[KILN_MOST_DIMENSIONS]; /* elements of the box, innermost first */
    int swizzle;                          /* CUtensorMapSwizzle */
} kiln_box;

/* x * y, or UINT64_MAX if that is more: the driver rejects it as a stride. */
static inline uint64_t kiln_capped_product(uint64_t x, uint64_t y)
{
    return y != 0 && x > UINT64_MAX / y ? UINT64_MAX : x * y;
}

/* Encodes the map of an array at `data`. sizes: elements per dimension, innermost first; strides: elements, of all dimensions
 * except the first; null: contiguous. Elements outside of the array are read as zeros. If a size is 0, the map is zeros.
 * One copy per bundle. OK; DRIVER_SYMBOL; BAD_ARGUMENT if the driver rejects it. */
__attribute__((noinline, unused)) static kiln_status
kiln_encode_map(kiln_loader *loader, const char *subject, const kiln_box *box, CUdeviceptr data,
                const uint64_t *sizes, const uint64_t *strides, kiln_tensor_map *map)
{
    enum { NO_INTERLEAVE = 0, L2_128_BYTES = 2, FILL_ZEROS = 0 };
    static const uint32_t each[KILN_MOST_DIMENSIONS] = {1, 1, 1, 1, 1};
    uint64_t stride_bytes[KILN_MOST_DIMENSIONS], elements = 1;
    for (uint32_t i = 0; i < 16; i++)
        map->words[i] = 0;
    for (uint32_t i = 0; i < box->dimensions; i++) {
        if (i > 0)
            stride_bytes[i - 1] =
                kiln_capped_product(strides ? strides[i - 1] : elements, box->element_bytes);
        elements = kiln_capped_product(elements, sizes[i]);
    }
    if (elements == 0)
        return KILN_OK;
    if (loader->driver->tensor_map_encode_tiled == NULL)
        return kiln_fail(loader, KILN_ERROR_DRIVER_SYMBOL, subject, "cuTensorMapEncodeTiled");
    const int result = loader->driver->tensor_map_encode_tiled(
        (struct CUtensorMap_st *)map, box->type, box->dimensions, (void *)(uintptr_t)data, sizes,
        stride_bytes, box->sizes, each, NO_INTERLEAVE, box->swizzle, L2_128_BYTES, FILL_ZEROS);
    return result == 0 ? KILN_OK : kiln_fail(loader, KILN_ERROR_BAD_ARGUMENT, subject, box->refused);
}

#ifdef __cplusplus
}
#endif

#endif
