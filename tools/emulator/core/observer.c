/* Subscriptions: see observer.h. */
#include "observer.h"

#include "launch.h"

#include <assert.h>

void emu_observe(emu_launch *l, const emu_observer *o)
{
    emu_audience *a = &l->audience;
    assert(l->observers < EMU_MOST_OBSERVERS);
    l->observers++;
    size_t n;
#define EMU_EVENT(event, says)                                                                               \
    for (n = 0; a->event[n]; n++) {                                                                          \
    }                                                                                                        \
    a->event[n] = o->event;
    EMU_EVENTS(EMU_EVENT)
#undef EMU_EVENT
}

bool emu_is_misused(emu_warp *w, const emu_op *op, uint32_t lanes, emu_misuse what)
{
    EMU_TELL(w->audience, misuse, w, op, lanes, what);
    return w->state == EMU_WARP_FAULTED;
}
