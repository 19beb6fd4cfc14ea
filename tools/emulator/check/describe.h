/* Places and threads in the words of a report. */
#ifndef EMU_DESCRIBE_H
#define EMU_DESCRIBE_H

#include "../core/launch.h"

/* Where a host address lies, in terms of its allocation. */
const char *emu_describe_place(const emu_warp *warp, uint64_t at, char *text, size_t room);
/* A thread of any block of the launch. */
const char *emu_describe_thread(const emu_warp *warp, uint64_t block, uint32_t thread, char *text,
                                size_t room);

#endif
