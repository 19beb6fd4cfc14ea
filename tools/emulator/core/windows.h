/* Generic addresses of the windows of shared, local and parameter memory (ISA 6.4.1.1). They are above all addresses of a
   host process, so they never collide with host memory. */
#ifndef EMU_WINDOWS_H
#define EMU_WINDOWS_H

#include <stdint.h>

#define EMU_WINDOW_BYTES  (UINT64_C(1) << 40)
#define EMU_SHARED_WINDOW (UINT64_C(1) << 48)
#define EMU_LOCAL_WINDOW  (EMU_SHARED_WINDOW + EMU_WINDOW_BYTES)
#define EMU_PARAM_WINDOW  (EMU_LOCAL_WINDOW + EMU_WINDOW_BYTES)

#endif
