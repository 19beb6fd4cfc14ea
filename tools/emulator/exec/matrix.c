/* ldmatrix, stmatrix, movmatrix (ISA 9.7.14.5.15 to 9.7.14.5.17). In the fragment of an 8x8 matrix lane l holds elements
   2 (l mod 4) and the next of row l / 4; .trans makes that column l / 4. */
#include "exec.h"

#include "access.h"
#include "warp_op.h"

#define MODE_TRANSPOSED 1

/* The addresses of the rows: lanes 0 to 7 for the first matrix, and so on; before sm_80 all lanes have to hold one. */
static inline bool rows_of(emu_warp *w, const emu_op *op, bool writes, uint64_t at[EMU_LANES])
{
    uint32_t lanes = op->mods.count == 4 ? EMU_ALL : (1u << 8 * op->mods.count) - 1;
    if (!writes && w->block->launch->device_number < 80 &&
        !access_uncounted(w, op, op->arg[0], EMU_ALL, 16, false, at))
        return false;
    if (!access_resolve(w, op, op->arg[0], lanes, 16, writes, at))
        return false;
    uint64_t shared = (uint64_t)(uintptr_t)w->block->shared;
    uint32_t outside = 0;
    ACTIVE_LANES(lanes) outside |= (uint32_t)(at[i] - shared >= w->block->shared_bytes) << i;
    if (outside)
        emu_fault(w, op, outside, CUDA_ERROR_INVALID_ADDRESS_SPACE,
                  "names a row of a matrix that is not in shared memory");
    return !outside;
}

/* Row and place in the row of element e of a lane's fragment. */
static inline unsigned row_of(bool transposed, unsigned lane, unsigned e)
{
    return transposed ? lane % 4 * 2 + e : lane / 4;
}

static inline unsigned column_of(bool transposed, unsigned lane, unsigned e)
{
    return transposed ? lane / 4 : lane % 4 * 2 + e;
}

HANDLER(ldmatrix)
{
    uint64_t at[EMU_LANES];
    bool transposed = op->mods.mode == MODE_TRANSPOSED;
    if (!emu_whole_warp(w, op, mask) || !rows_of(w, op, false, at))
        return;
    for (unsigned n = 0; n < op->mods.count; n++) {
        uint16_t *d = emu_lanes(w, op->list[n]);
        ACTIVE_LANES(mask)
        {
            for (unsigned e = 0; e < 2; e++)
                memcpy(&d[2 * i + e],
                       (const char *)(uintptr_t)at[8 * n + row_of(transposed, i, e)] +
                           2 * column_of(transposed, i, e),
                       2);
        }
    }
}

HANDLER(stmatrix)
{
    uint64_t at[EMU_LANES];
    bool transposed = op->mods.mode == MODE_TRANSPOSED;
    if (!emu_whole_warp(w, op, mask) || !rows_of(w, op, true, at))
        return;
    w->block->stores++;
    for (unsigned n = 0; n < op->mods.count; n++) {
        const uint16_t *s = emu_lanes(w, op->list[n]);
        ACTIVE_LANES(mask)
        {
            for (unsigned e = 0; e < 2; e++)
                memcpy((char *)(uintptr_t)at[8 * n + row_of(transposed, i, e)] +
                           2 * column_of(transposed, i, e),
                       &s[2 * i + e], 2);
        }
    }
}

HANDLER(movmatrix)
{
    uint16_t t[2 * EMU_LANES];
    if (!emu_whole_warp(w, op, mask))
        return;
    memcpy(t, emu_lanes(w, op->arg[1]), sizeof t);
    uint16_t *d = emu_lanes(w, op->arg[0]);
    ACTIVE_LANES(mask)
    {
        for (unsigned e = 0; e < 2; e++)
            d[2 * i + e] = t[8 * (i % 4 * 2 + e) + i / 4];
    }
}

#define MATRIX "sync aligned m8n8 v:x1|x2|x4 m:-|trans? p:shared|shared::cta? b16"

static const emu_row rows[] = {
    {"ldmatrix", MATRIX, "", 65, 75, .run = ldmatrix, .form = EMU_FORM_MATRIX},
    {"stmatrix", MATRIX, "", 78, 90, .run = stmatrix, .form = EMU_FORM_MATRIX},
    {"movmatrix", "sync aligned m8n8 trans b16", "=b32 b32", 78, 75, .run = movmatrix},
};

EXPORT_ROWS(emu_rows_matrix);
