/* Records launches, so that another driver can repeat them. */
#ifndef EMU_RECORD_H
#define EMU_RECORD_H

#include "api.h"

typedef struct emu_record emu_record;

/* Called before a launch: copies the memory that the launch can reach. Returns NULL if KILN_EMU_RECORD is not set, or only
   some thread blocks run. */
emu_record *emu_begin_record(const emu_work *work);
/* Called after the launch: writes the launch and its result, and frees the record. */
void emu_end_record(emu_record *record, CUresult result);

#endif
