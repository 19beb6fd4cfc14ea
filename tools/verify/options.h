/* The command line of kiln-verify. */
#ifndef VERIFY_OPTIONS_H
#define VERIFY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "run.h"

typedef struct options {
    const char *driver; /* null: libcuda.so.1 */
    const char *filter; /* null: every variant */
    const char *json;   /* null: none */
    const char *data;   /* null: none */
    int device;
    bool is_listing, wants_help;
    run_options run;
} options;

/* False after a message on stderr. */
bool options_read(options *o, int argc, char **argv);
void options_print_help(void);

#endif
