/* Line information of external PTX, which names the sources: .file, .loc and the .debug sections. */
#ifndef EXTERNAL_LINE_INFO_H
#define EXTERNAL_LINE_INFO_H

#include "ptx_file.h"

/* The place and the path of the first .file that begins at a root, as compilers write it with -lineinfo; null: none. */
const char *line_info_absolute_path(arena *a, const ptx_file *file, place *at);

/* Leaves all of it out of the text; the lines stay, empty, so that places in them are those of the file. */
void line_info_leave_out(arena *a, ptx_file *file);

#endif
