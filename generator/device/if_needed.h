/* PTX_IF and PTX_WHEN for blocks that only some variants predicate. */
#ifndef DEVICE_IF_NEEDED_H
#define DEVICE_IF_NEEDED_H

#include <kiln/author/ptx.h>

enum { IF_NOT_NEEDED = 2 }; /* a state that no block of the builder has */

static inline void if_needed_end(ptx_block *block)
{
    if (block->state == IF_NOT_NEEDED)
        block->f = NULL;
    else
        ptx_block_end(block);
}

/* A PTX_IF if is_needed, a C condition, holds. Otherwise the block runs in all threads, and the predicate is not emitted.
 * WHEN_NEEDED is the same, but a PTX_WHEN instead of the PTX_IF unless may_branch holds. */
#define IF_NEEDED(fn, is_needed, predicate) WHEN_NEEDED (fn, is_needed, true, predicate)
#define WHEN_NEEDED(fn, is_needed, may_branch, predicate)                                                    \
    for (ptx_block PTX_NAME_(needed_) = !(is_needed)   ? (ptx_block){.f = (fn), .state = IF_NOT_NEEDED}      \
                                        : (may_branch) ? ptx_if_begin(fn, predicate, PTX_HERE)               \
                                                       : ptx_when_begin(fn, predicate, PTX_HERE);            \
         PTX_NAME_(needed_).f; if_needed_end(&PTX_NAME_(needed_)))

#endif
