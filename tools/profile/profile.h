/* Shared by the parts of kiln-profile. Every failure ends the program with a message: status 1 for a mistake in
 * the input, 2 for one in the command line, 3 for a failure of the machine. */
#ifndef PROFILE_H
#define PROFILE_H

#include <kiln/kiln.h>

#include "../verify/manifest.h"
#include "../verify/problem.h"

typedef struct access_counts {
    uint64_t requests, sectors, distinct_sectors, bytes, bytes_used, wavefronts, ideal_wavefronts;
} access_counts;

enum { READ, WRITE, ATOMIC, ACCESS_KINDS };
extern const char *const access_kind_names[ACCESS_KINDS];

typedef struct class_count {
    const char *name;
    uint64_t thread, warp;
} class_count;

typedef struct allocation_counts {
    const char *name; /* the argument's name, or the module variable's */
    bool is_argument;
    uint64_t bytes;
    access_counts by[ACCESS_KINDS];
} allocation_counts;

enum { MAX_CLASSES = 24, MAX_SHAPES = 32, MAX_ALLOCATIONS = MAX_ARGS + 64 };

/* What causes wavefronts of shared memory. */
enum { THREADS, PRODUCTS, BULK, WAVEFRONT_USERS };
extern const char *const wavefront_user_names[WAVEFRONT_USERS];

typedef struct shape_count {
    const char *name;
    uint64_t products, multiply_adds, shared_bytes, wavefronts;
} shape_count;

enum { BULK_LOAD, BULK_STORE, BULK_REDUCTION, BULK_KINDS };
extern const char *const bulk_kind_names[BULK_KINDS];

typedef struct bulk_count {
    uint64_t copies, global_bytes, shared_bytes;
} bulk_count;

/* The emulated driver's report; tools/emulator/count/count.h defines what is counted. */
typedef struct counters {
    uint64_t thread_instructions, warp_instructions, lane_slots;
    class_count classes[MAX_CLASSES];
    size_t class_count;
    uint64_t branches, divergent_branches, barriers, products, multiply_adds;
    shape_count shapes[MAX_SHAPES];
    size_t shape_count;
    bulk_count bulk[BULK_KINDS];
    uint64_t tests, passed_tests, group_waits;
    access_counts shared[ACCESS_KINDS], local[ACCESS_KINDS];
    uint64_t wavefronts[WAVEFRONT_USERS];
    allocation_counts allocations[MAX_ALLOCATIONS];
    size_t allocation_count;
} counters;

/* ptxas's figures for the image; `missing` says why they are unknown. */
typedef struct registers {
    const char *missing;
    uint64_t count, stack_bytes, spill_store_bytes, spill_load_bytes;
} registers;

typedef struct profile {
    const char *input, *variant, *target, *args, *driver_path; /* from the command line */
    bool json, lines, wants_help;
    char bin[1024], folder[1024];
    pool memory;
    const manifest_image *image;
    const char *ptx;
    kiln_driver driver;
    kiln_device device;
    problem problem;
    uint64_t bytes_read, bytes_written, elements; /* cost; 0: not stated */
    const char *report;                           /* JSON */
    counters counters;
    registers registers;
} profile;

_Noreturn void die(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* files.c */
char *read_file(profile *p, const char *path, size_t *length);
/* Runs a program and returns its output, with stderr if requested. The status is 127 if it cannot be run. */
char *run_program(profile *p, const char *const argv[], bool with_errors, int *status);
/* Makes p->folder, and forks a process to do the work; the parent removes the folder however the worker ends.
 * Returns in the worker. */
void make_folder(profile *p);

/* bundle.c: finds the variant of a configuration, or of a generated bundle; sets p->variant to its id, p->image and p->ptx. */
const manifest_variant *find_variant(profile *p);

/* measure.c: opens a device of the target's kind; then evaluates the cost and launches once, which sets p->report,
 * the counters and the registers. */
void open_device(profile *p);
void measure(profile *p);

/* print.c */
void print_table(const profile *p);
void print_json(const profile *p);

#endif
