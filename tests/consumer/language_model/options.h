/* The command line. */
#ifndef LM_OPTIONS_H
#define LM_OPTIONS_H

#include "sample.h"

typedef struct options {
    const char *model, *prompt;
    const char *driver; /* null: libcuda.so.1 */
    uint32_t count;     /* most tokens to write */
    uint32_t context;   /* tokens that the cache has room for; 0: enough for prompt and answer */
    bool is_chat, is_quiet;
    bool is_bench;      /* print rates as JSON instead of the answer */
    bool has_no_graphs; /* launch each kernel by itself */
    bool is_help;       /* --help: the usage was printed */
    sampler sampler;
} options;

/* Returns false after a mistake, and prints it with the usage to stderr. */
bool read_options(options *o, int argc, char **argv);

#endif
