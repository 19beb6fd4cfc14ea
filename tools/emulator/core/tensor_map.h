/* Tensor maps (ISA 5.5.8), which describe a tensor to bulk copies. NVIDIA does not document their 128 bytes. The layout here:

       bytes    field
       0-7      address of element 0
       12-13    little-endian, from bit 0 on: rank - 1 (3 bits), element type (4), interleave (2), swizzle (3),
                swizzle atomicity (2), fill (1); the codes are those of tensormap.replace, ISA 9.7.9.28
       16-47    strides in bytes of dimensions 1 to 4, 8 bytes each
       48-67    sizes in elements of dimensions 0 to 4, 4 bytes each; 0 stands for 2^32
       68-77    the box's sizes, 2 bytes each
       78-82    the element strides, 1 byte each

   All other bits are ignored, so tensormap.replace can make a map from zeros. One of them is bit 21 of the second 8 bytes, which
   programs clear in NVIDIA's maps. */
#ifndef EMU_TENSOR_MAP_H
#define EMU_TENSOR_MAP_H

#include "../support/emu.h"

#define EMU_MAP_BYTES 128u
#define EMU_MAP_RANKS 5u

/* Element types by their codes in tensormap.replace. */
typedef enum emu_map_type {
    EMU_MAP_U8,
    EMU_MAP_U16,
    EMU_MAP_U32,
    EMU_MAP_S32,
    EMU_MAP_U64,
    EMU_MAP_S64,
    EMU_MAP_F16,
    EMU_MAP_F32,
    EMU_MAP_F32_FTZ,
    EMU_MAP_F64,
    EMU_MAP_BF16,
    EMU_MAP_TF32,
    EMU_MAP_TF32_FTZ,
    EMU_MAP_TYPES /* the packed types follow: not emulated */
} emu_map_type;

typedef struct emu_tensor_map {
    uint64_t address;
    uint64_t size[EMU_MAP_RANKS];       /* elements */
    uint64_t stride[EMU_MAP_RANKS - 1]; /* bytes; from dimension 1 on */
    uint32_t box[EMU_MAP_RANKS], step[EMU_MAP_RANKS];
    uint32_t rank;
    uint32_t type; /* emu_map_type */
    uint32_t interleave, swizzle, atomicity, fill;
} emu_tensor_map;

void emu_map_pack(const emu_tensor_map *map, void *bytes);
emu_tensor_map emu_map_unpack(const void *bytes);

unsigned emu_map_element_bytes(const emu_tensor_map *map);
/* Bytes per row of the swizzle's pattern; 16 without a swizzle. */
unsigned emu_map_span(const emu_tensor_map *map);
/* Return a rule of cuTensorMapEncodeTiled that the map breaks, and a feature of it that is not emulated; or NULL. */
const char *emu_map_wrong(const emu_tensor_map *map);
const char *emu_map_lacks(const emu_tensor_map *map);

/* The fields of tensormap.replace. */
typedef enum emu_map_field {
    EMU_MAP_ADDRESS,
    EMU_MAP_RANK,
    EMU_MAP_BOX,
    EMU_MAP_SIZE,
    EMU_MAP_STRIDE,
    EMU_MAP_STEP,
    EMU_MAP_TYPE,
    EMU_MAP_INTERLEAVE,
    EMU_MAP_SWIZZLE,
    EMU_MAP_ATOMICITY,
    EMU_MAP_FILL
} emu_map_field;

/* which: the dimension; for strides, the dimension minus 1. */
void emu_map_set(void *bytes, emu_map_field field, unsigned which, uint64_t value);

#endif
