/* See tensor_map.h. */
#include "tensor_map.h"

#include <string.h>

/* A field's place: its first byte and word size, and for a bit field also its first bit and width. */
static const struct {
    uint8_t at, bytes, bit, bits;
} places[] = {
    [EMU_MAP_ADDRESS] = {0, 8, 0, 0},  [EMU_MAP_RANK] = {12, 2, 0, 3},
    [EMU_MAP_TYPE] = {12, 2, 3, 4},    [EMU_MAP_INTERLEAVE] = {12, 2, 7, 2},
    [EMU_MAP_SWIZZLE] = {12, 2, 9, 3}, [EMU_MAP_ATOMICITY] = {12, 2, 12, 2},
    [EMU_MAP_FILL] = {12, 2, 14, 1},   [EMU_MAP_STRIDE] = {16, 8, 0, 0},
    [EMU_MAP_SIZE] = {48, 4, 0, 0},    [EMU_MAP_BOX] = {68, 2, 0, 0},
    [EMU_MAP_STEP] = {78, 1, 0, 0},
};

void emu_map_set(void *bytes, emu_map_field field, unsigned which, uint64_t value)
{
    uint64_t word = 0, mask = (UINT64_C(1) << places[field].bits) - 1;
    const uint64_t most = places[field].bytes < 4 ? (UINT64_C(1) << 8 * places[field].bytes) - 1 : UINT64_MAX;
    if (!places[field].bits && value > most) /* a box size or an element stride, too large in any case */
        value = most;
    char *at = (char *)bytes + places[field].at + (size_t)which * places[field].bytes;
    memcpy(&word, at, places[field].bytes);
    word = places[field].bits ? (word & ~(mask << places[field].bit)) | (value & mask) << places[field].bit
                              : value;
    memcpy(at, &word, places[field].bytes);
}

static uint64_t get(const void *bytes, emu_map_field field, unsigned which)
{
    uint64_t word = 0;
    memcpy(&word, (const char *)bytes + places[field].at + (size_t)which * places[field].bytes,
           places[field].bytes);
    return places[field].bits ? word >> places[field].bit & ((UINT64_C(1) << places[field].bits) - 1) : word;
}

void emu_map_pack(const emu_tensor_map *m, void *bytes)
{
    memset(bytes, 0, EMU_MAP_BYTES);
    emu_map_set(bytes, EMU_MAP_ADDRESS, 0, m->address);
    emu_map_set(bytes, EMU_MAP_RANK, 0, m->rank - 1);
    emu_map_set(bytes, EMU_MAP_TYPE, 0, m->type);
    emu_map_set(bytes, EMU_MAP_INTERLEAVE, 0, m->interleave);
    emu_map_set(bytes, EMU_MAP_SWIZZLE, 0, m->swizzle);
    emu_map_set(bytes, EMU_MAP_ATOMICITY, 0, m->atomicity);
    emu_map_set(bytes, EMU_MAP_FILL, 0, m->fill);
    for (unsigned d = 0; d < m->rank; d++) {
        emu_map_set(bytes, EMU_MAP_SIZE, d, m->size[d]);
        emu_map_set(bytes, EMU_MAP_BOX, d, m->box[d]);
        emu_map_set(bytes, EMU_MAP_STEP, d, m->step[d]);
        if (d)
            emu_map_set(bytes, EMU_MAP_STRIDE, d - 1, m->stride[d - 1]);
    }
}

emu_tensor_map emu_map_unpack(const void *bytes)
{
    emu_tensor_map m = {.address = get(bytes, EMU_MAP_ADDRESS, 0),
                        .rank = (uint32_t)get(bytes, EMU_MAP_RANK, 0) + 1,
                        .type = (uint32_t)get(bytes, EMU_MAP_TYPE, 0),
                        .interleave = (uint32_t)get(bytes, EMU_MAP_INTERLEAVE, 0),
                        .swizzle = (uint32_t)get(bytes, EMU_MAP_SWIZZLE, 0),
                        .atomicity = (uint32_t)get(bytes, EMU_MAP_ATOMICITY, 0),
                        .fill = (uint32_t)get(bytes, EMU_MAP_FILL, 0)};
    for (unsigned d = 0; d < EMU_MAP_RANKS; d++) {
        uint64_t size = get(bytes, EMU_MAP_SIZE, d);
        m.size[d] = size ? size : UINT64_C(1) << 32;
        m.box[d] = (uint32_t)get(bytes, EMU_MAP_BOX, d);
        m.step[d] = (uint32_t)get(bytes, EMU_MAP_STEP, d);
        if (d)
            m.stride[d - 1] = get(bytes, EMU_MAP_STRIDE, d - 1);
    }
    return m;
}

unsigned emu_map_element_bytes(const emu_tensor_map *m)
{
    static const uint8_t bytes[EMU_MAP_TYPES] = {1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4};
    return bytes[m->type];
}

unsigned emu_map_span(const emu_tensor_map *m)
{
    return 16u << m->swizzle;
}

static bool is_float(const emu_tensor_map *m)
{
    return m->type >= EMU_MAP_F16;
}

const char *emu_map_lacks(const emu_tensor_map *m)
{
    if (m->type >= EMU_MAP_TYPES)
        return "a packed element type";
    if (m->interleave)
        return "an interleaved layout";
    if (m->swizzle > 3)
        return "the 96-byte swizzle";
    if (m->atomicity)
        return "a swizzle atomicity other than 16 bytes";
    if (m->swizzle && m->box[0] * emu_map_element_bytes(m) < emu_map_span(m))
        return "a box whose rows are shorter than the swizzle's";
    return NULL;
}

const char *emu_map_wrong(const emu_tensor_map *m)
{
    if (m->rank == 0 || m->rank > EMU_MAP_RANKS)
        return "its rank is not one of 1 to 5";
    if (m->address % 16)
        return "its address is not a multiple of 16";
    for (unsigned d = 0; d < m->rank; d++) {
        if (m->size[d] == 0 || m->size[d] > UINT64_C(1) << 32)
            return "a size is not one of 1 to 2^32";
        if (d && (m->stride[d - 1] % 16 || m->stride[d - 1] >> 40))
            return "a stride is not a multiple of 16 below 2^40";
        if (m->box[d] == 0 || m->box[d] > 256)
            return "a size of the box is not one of 1 to 256";
        if (d && (m->step[d] == 0 || m->step[d] > 8)) /* ignored for dimension 0 */
            return "an element stride is not one of 1 to 8";
    }
    if (m->type >= EMU_MAP_TYPES || m->swizzle > 3)
        return NULL; /* see emu_map_lacks */
    uint32_t inner = m->box[0] * emu_map_element_bytes(m);
    if (m->interleave == 0 && inner % 16)
        return "a row of the box is not a multiple of 16 bytes";
    if (m->interleave == 0 && m->swizzle && inner > emu_map_span(m))
        return "a row of the box is longer than the swizzle's";
    if (m->fill && !is_float(m))
        return "it fills with NaNs, but its elements are integers";
    return NULL;
}
