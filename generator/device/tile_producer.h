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

/* Bytes of a matrix in one stage, and in all stages with the barriers that follow them. */
uint32_t tile_producer_slot_bytes(uint32_t units, uint32_t rows);
uint32_t tile_producer_bytes(uint32_t stages, uint32_t units, uint32_t rows);

bool tile_producer_can_copy(const tile_pipeline *p, uint32_t rows, place at);

/* tile_pipeline_start, _next and _end of a pipeline with a producer. */
void tile_producer_start(tile_pipeline *p);
void tile_producer_next(tile_pipeline *p);
void tile_producer_end(tile_pipeline *p);

#endif
