/* Records launches, so that another driver can repeat them. */
#ifndef EMU_RECORD_H
#define EMU_RECORD_H

#include "api.h"

typedef struct emu_record emu_record;

/* Before a launch: copies the memory that it can reach. NULL: KILN_EMU_RECORD is not set, or only some thread blocks run. */
emu_record *emu_begin_record(const emu_work *work);
/* After the launch: writes it with its result, and frees the record. */
void emu_end_record(emu_record *record, CUresult result);

#endif
