/* The command line of kiln-verify. */
#ifndef VERIFY_OPTIONS_H
#define VERIFY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "part.h"
#include "run.h"

enum { DEFAULT_SEED = 1 };

typedef struct options {
    const char *driver; /* null: libcuda.so.1 */
    const char *filter; /* null: every variant */
    const char *json;   /* null: none */
    const char *junit;  /* null: none */
    const char *data;   /* null: none; its hash after it is read */
    part_share part;
    uint64_t device;
    uint64_t mutants;        /* 0: none */
    const char *only;        /* mutants by number: "3,17"; null: all */
    uint64_t least;          /* percent of the mutants that must be killed */
    uint64_t jobs;           /* processes that run mutants at once; 0: one per processor */
    const char *launch_lock; /* null: none */
    uint64_t launch_seconds; /* 0: no limit */
    bool is_listing, is_queue, overlaps, wants_help, wants_own_images, wants_no_times, resumes, replaces_all;
    uint64_t given; /* a bit for each row of the table of options: given on the command line */
    run_options run;
} options;

/* False after a message on stderr. */
bool options_read(options *o, int argc, char **argv);
void options_print_help(void);

/* Lists the options that were given and that affect results, except the seed and the part, in the order of --help. */
char *options_describe(const options *o, pool *memory);

#endif
