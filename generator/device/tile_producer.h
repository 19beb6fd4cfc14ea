/* Pipelines of tile.h that a producer warp fills from tensor maps. */
#ifndef DEVICE_TILE_PRODUCER_H
#define DEVICE_TILE_PRODUCER_H

#include <kiln/author/tile.h>

#include "layout.h"

enum { UNIT = UNIT_BYTES / 2 /* elements */, WGMMA_ALIGN = 1024 };

enum { TILE_BARRIER_BYTES = 16 }; /* of a stage that a producer fills */

/* Until the enclosing function of tile.h returns, instructions and errors have the place of the author's call: the function's
 * `file` and `line`. */
typedef struct tile_call {
    ptx_fn *f;
    ptx_caller until_now;
} tile_call;
static inline void tile_call_end(const tile_call *call)
{
    ptx_set_caller(call->f, call->until_now);
}
#define TILE_CALL(fn)                                                                                        \
    const tile_call call_                                                                                    \
        __attribute__((cleanup(tile_call_end), unused)) = {fn, ptx_set_caller(fn, (ptx_caller){file, line})}

#define require(f, holds, what) ptx_require_at(f, holds, what, PTX_HERE)

/* Bytes of a matrix in one stage, and in all stages with the barriers that follow them. */
uint32_t tile_producer_slot_bytes(uint32_t units, uint32_t rows);
uint32_t tile_producer_bytes(uint32_t stages, uint32_t units, uint32_t rows);

bool tile_producer_can_copy(const tile_pipeline *p, uint32_t rows);

/* tile_pipeline_start, _next and _end of a pipeline with a producer. */
void tile_producer_start(tile_pipeline *p);
void tile_producer_next(tile_pipeline *p);
void tile_producer_end(tile_pipeline *p);

#endif
