/* Writes the counters of this folder to the report. */
#ifndef EMU_COUNT_REPORT_H
#define EMU_COUNT_REPORT_H

#include "../core/launch.h"

#include <stdio.h>

/* Appends the launch's counters to the file. The process's first launch empties it. */
void emu_write_report(const emu_launch *launch, const char *path);

void emu_write_string(FILE *f, emu_text s);

/* True if the file is missing, empty, or begins with `begins`, as a report does. */
bool emu_may_replace(const char *path, const char *begins);

#endif
