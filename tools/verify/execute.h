/* One execution of a problem on a device: buffers, poison, launch, results. */
#ifndef VERIFY_EXECUTE_H
#define VERIFY_EXECUTE_H

#include "buffers.h"
#include "problem.h"

typedef struct execution {
    kiln_launch_function launch; /* a kernel's launcher or a family's function */
    const kiln_kernel *kernel;   /* for messages */
    bool is_least_aligned;       /* every pointer is aligned to what it has to be, and to no more */
    unsigned char poison;        /* what outputs hold before */
    bool is_unpoisoned;          /* outputs hold nothing, for a device that notices reads of it */
    bool without_optional;       /* outputs that may be null are */
    bool without_empty;          /* pointers to arrays without elements are null */
    block_order order;           /* of thread blocks, where the device can choose */
} execution;

/* What came back: for each output its bytes, in `memory`; null for inputs and outputs left out. */
typedef struct outcome {
    unsigned char *outputs[MAX_ARGS];
    pool memory;
} outcome;

typedef enum execute_status {
    EXECUTE_OK,
    EXECUTE_WRONG, /* a finding: the message says what */
    EXECUTE_LOST,  /* a finding too, and the context takes no more work */
    EXECUTE_LACKS  /* no finding: the emulated driver lacks what the kernel asks for, the message says what */
} execute_status;

/* Runs and waits, then checks: a launch exactly when the problem is not empty, with the manifest's geometry; inputs and
 * guards as they were; an empty problem's outputs too. */
execute_status execute(device *d, problem *p, const execution *e, bool is_empty, outcome *o, char *error,
                       size_t error_bytes);
void outcome_free(outcome *o);

/* The family's argument struct for these addresses (by argument; scalars are taken from the problem). */
enum { STRUCT_BYTES = 1024 };
typedef struct argument_struct {
    _Alignas(16) unsigned char bytes[STRUCT_BYTES];
} argument_struct;
void argument_struct_fill(argument_struct *s, const problem *p, const CUdeviceptr addresses[MAX_ARGS]);

#endif
