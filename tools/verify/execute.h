/* Executes a problem once on a device: buffers, poison, launch, results. */
#ifndef VERIFY_EXECUTE_H
#define VERIFY_EXECUTE_H

#include "buffers.h"
#include "problem.h"

typedef struct execution {
    kiln_launch_function launch; /* a kernel's launcher or a family's function */
    const kiln_kernel *kernel;   /* for messages */
    bool is_least_aligned;       /* every pointer has its minimum alignment and no more */
    unsigned char poison;        /* contents of outputs before the launch */
    bool is_unpoisoned;          /* outputs are uninitialised, for a device that reports reads of them */
    bool without_optional;       /* outputs that may be null are null */
    bool without_empty;          /* pointers to arrays without elements are null */
    block_order order;           /* of thread blocks, if the device can choose */
} execution;

/* The results: each output's bytes, in `memory`; null for inputs and for outputs left out. */
typedef struct outcome {
    unsigned char *outputs[MAX_ARGS];
    pool memory;
} outcome;

typedef enum execute_status {
    EXECUTE_OK,
    EXECUTE_WRONG, /* a finding; the message describes it */
    EXECUTE_LOST,  /* a finding, and the context accepts no more work */
    EXECUTE_LACKS /* not a finding: the emulated driver lacks a feature that the kernel uses; the message names it */
} execute_status;

/* Runs the problem, waits, then checks: a launch happens exactly when the problem is not empty, with the
 * manifest's geometry; inputs and guards are unchanged; so are an empty problem's outputs. */
execute_status execute(device *d, problem *p, const execution *e, bool is_empty, outcome *o, char *error,
                       size_t error_bytes);
void outcome_free(outcome *o);

/* Fills the family's argument struct with these addresses (by argument); scalars come from the problem. */
enum { STRUCT_BYTES = 1024 };
typedef struct argument_struct {
    _Alignas(16) unsigned char bytes[STRUCT_BYTES];
} argument_struct;
void argument_struct_fill(argument_struct *s, const problem *p, const CUdeviceptr addresses[MAX_ARGS]);

#endif
