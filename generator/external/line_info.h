/* Line information of external PTX, which names the sources: .file, .loc and the .debug sections. */
#ifndef EXTERNAL_LINE_INFO_H
#define EXTERNAL_LINE_INFO_H

#include "ptx_file.h"

/* The place and the path of the first .file with an absolute path, as compilers write it with -lineinfo; null: none. */
const char *line_info_absolute_path(arena *a, const ptx_file *file, place *at);

/* Removes line information from the text; empty lines stay, so that line numbers do not change. */
void line_info_leave_out(arena *a, ptx_file *file);

#endif
