/* Pipelines of tile.h that a producer warp fills from tensor maps. */
#ifndef DEVICE_TILE_PRODUCER_H
#define DEVICE_TILE_PRODUCER_H

#include <kiln/author/tile.h>

#include "layout.h"

enum { UNIT = UNIT_BYTES / 2 /* elements */, WGMMA_ALIGN = 1024 };

/* An author's source line. */
typedef struct place {
    const char *file;
    int line;
} place;

static inline bool require(ptx_fn *f, place at, bool holds, const char *what)
{
    return ptx_require_at(f, holds, what, at.file, at.line);
}

/* Whether `depth` elements, `packed` of them per byte, are whole units. */
static inline bool is_packed(uint32_t depth, uint32_t packed)
{
    return packed > 0 && depth % (packed * UNIT_BYTES) == 0;
}

/* Bytes of one matrix, with room for the barriers, which come after all stages. */
uint32_t tile_producer_bytes(uint32_t stages, uint32_t units, uint32_t rows);
uint32_t tile_producer_add(tile_pipeline *p, ptx_val map, ptx_val first, uint32_t rows, uint32_t packed,
                           place at);

/* tile_pipeline_start, _next and _end. */
void tile_producer_start(tile_pipeline *p);
void tile_producer_next(tile_pipeline *p);
void tile_producer_end(tile_pipeline *p);

#endif
