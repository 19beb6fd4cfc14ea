/* The command line. */
#ifndef LM_OPTIONS_H
#define LM_OPTIONS_H

#include "sample.h"

typedef struct options {
    const char *model, *prompt;
    const char *driver; /* null: libcuda.so.1 */
    uint32_t count;     /* tokens to write at most */
    uint32_t context;   /* tokens that the cache has room for; 0: as many as prompt and answer need */
    bool is_chat, is_quiet;
    bool is_bench;      /* print rates as JSON instead of the answer */
    bool has_no_graphs; /* launch each kernel by itself */
    bool is_help;       /* the usage was printed, and that is all */
    sampler sampler;
} options;

/* False: stderr says what is wrong and how the program is called. */
bool read_options(options *o, int argc, char **argv);

#endif
