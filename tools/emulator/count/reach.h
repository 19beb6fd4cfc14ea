/* Which instructions the launches of a process executed. When the process exits, the file KILN_EMU_UNREACHED gets a line of JSON
   for each kernel that was launched, with the instructions for which one of these holds.

   reached   no thread reached the instruction
   true      its guard was false for every thread that reached it, so none executed it
   false     its guard was true for every thread that reached it */
#ifndef EMU_REACH_H
#define EMU_REACH_H

#include "../core/launch.h"

void emu_reach_launch(emu_launch *launch);

#endif
