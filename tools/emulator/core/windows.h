/* Generic addresses of the windows that are not global memory (ISA 6.4.1.1). They lie above all that a host gives to a
   process, so they never mean host memory. */
#ifndef EMU_WINDOWS_H
#define EMU_WINDOWS_H

#include <stdint.h>

#define EMU_WINDOW_BYTES  (UINT64_C(1) << 40)
#define EMU_SHARED_WINDOW (UINT64_C(1) << 48)
#define EMU_LOCAL_WINDOW  (EMU_SHARED_WINDOW + EMU_WINDOW_BYTES)
#define EMU_PARAM_WINDOW  (EMU_LOCAL_WINDOW + EMU_WINDOW_BYTES)

#endif
