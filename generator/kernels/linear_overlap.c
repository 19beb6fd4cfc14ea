/* linear's overlapping launches (kiln_options.overlap_launches). From sm_90 on a thread block may begin while the preceding
 * launch still runs. It prefetches the first of its rows of W to the L2 cache, lets the next launch begin, and waits. A
 * prefetch reads nothing, so that launch may even write W.
 */
#include "linear.h"

enum { MOST_BYTES = 64 * 1024 /* per matrix and thread block: about what arrives while one kernel ends */ };

/* One matrix's rows among the rows from `first` to `end`: their first, and their number. */
static ptx_val find_rows(linear *g, uint32_t matrix, ptx_val first, ptx_val end, ptx_val *count)
{
    ptx_fn *f = g->f;
    const ptx_val n = g->n[g->is_pair ? 0 : matrix];
    ptx_val bound[2] = {first, end};
    for (int i = 0; i < 2; i++) {
        if (g->is_pair) {
            bound[i] = ptx_div(f, bound[i], g->column_rows);
        } else if (matrix > 0) {
            ptx_val raised = ptx_max(f, bound[i], g->first_row_of[matrix]);
            bound[i] = ptx_sub(f, raised, g->first_row_of[matrix]);
        }
        bound[i] = ptx_min(f, bound[i], n);
    }
    *count = ptx_sub(f, bound[1], bound[0]);
    return bound[0];
}

/* Prefetches from the multiple of 16 before the rows to the last one that they reach. */
static void prefetch_matrix(linear *g, uint32_t matrix, ptx_val first, ptx_val end)
{
    ptx_fn *f = g->f;
    ptx_val count, row = find_rows(g, matrix, first, end, &count);
    ptx_val all = ptx_mul(f, ptx_min(f, count, LINEAR_PASS_ROWS), g->w_row_bytes);
    ptx_val bytes = ptx_min(f, all, MOST_BYTES);
    ptx_val from = ptx_mad_wide(f, row, g->w_row_bytes, ptx_address(f, g->w[matrix]));
    ptx_val behind = ptx_and(f, ptx_cvt(f, PTX_U32, from), UNIT_BYTES - 1);
    ptx_val start = ptx_sub(f, from, ptx_cvt(f, PTX_U64, behind));
    ptx_val units = ptx_and(f, ptx_add(f, bytes, behind), ~(uint32_t)(UNIT_BYTES - 1));
    ptx_val is_first = ptx_eq(f, g->tid, 0);
    PTX_WHEN (f, ptx_and(f, is_first, ptx_gt(f, units, 0))) {
        ptx_prefetch_l2_bytes(f, ptx_pointer(f, PTX_GLOBAL, PTX_U8, start), units);
    }
}

void linear_overlap(linear *g, ptx_val first, ptx_val end)
{
    for (uint32_t i = 0; i < g->matrices; i++)
        prefetch_matrix(g, i, first, end);
    ptx_grid_launch_next(g->f);
    ptx_grid_wait(g->f);
}
