/* The command line of kiln-verify. */
#ifndef VERIFY_OPTIONS_H
#define VERIFY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "run.h"

/* Every step-th of a list, from the first-th on. */
typedef struct sample_share {
    uint64_t first, step;
} sample_share;

#define DEVICE_UNNAMED UINT64_MAX

enum { DEFAULT_SEED = 1 };

typedef struct options {
    const char *driver; /* null: libcuda.so.1 */
    const char *filter; /* null: every variant */
    const char *json;   /* null: none */
    const char *data;   /* null: none */
    sample_share sample;
    uint64_t device;  /* DEVICE_UNNAMED: the first */
    uint64_t mutants; /* 0: none */
    const char *only; /* of them, by number: "3,17"; null: all */
    uint64_t least;   /* percent of them that have to be killed */
    uint64_t jobs;    /* processes at a time that run them; 0: one per processor */
    bool is_listing, wants_help, wants_own_images;
    run_options run;
} options;

/* False after a message on stderr. */
bool options_read(options *o, int argc, char **argv);
void options_print_help(void);

#endif
