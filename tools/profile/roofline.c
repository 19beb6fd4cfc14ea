/* The roofline: how long each resource of a GPU would need for what was counted, were it busy all the time. Estimates,
   from PTX and not from machine code, with every byte moved once and all multiprocessors in use. Half precision is as
   fast as instructions are issued, or nearly; moves and conversions count there alone. */
#include "profile.h"

const char *const limit_names[LIMITS] = {"memory", "issue",   "integer", "float",
                                         "double", "special", "shared",  "tensor"};

/* Bandwidth, multiprocessors, clock and tensor rate are NVIDIA's, looked up where the source says; lanes by the table
   "Throughput of native arithmetic instructions" of the CUDA C++ Programming Guide. */
const gpu gpus[] = {
    {"T4", 320, 40, 1590, 64, 64, 2, 65, "NVIDIA T4 data sheet (as fpsbench.com lists Tesla T4)"},
    {"A100 SXM 80GB", 2039, 108, 1410, 64, 64, 32, 312,
     "NVIDIA A100 data sheet (as glennklockwood.com/garden/processors/A100 has it); clock: "
     "thundercompute.com, A100 specs"},
    {"L4", 300, 58, 2040, 64, 128, 2, 121,
     "NVIDIA Ada GPU Architecture 2.01 (7,424 lanes and clock as fpsbench.com lists L4; 121 = half of 242 "
     "sparse)"},
    {"RTX 4090", 1008, 128, 2520, 64, 128, 2, 165.2,
     "NVIDIA Ada GPU Architecture 2.01 (as hmc-tech.com lists RTX 4090)"},
    {"H100 SXM", 3350, 132, 1980, 64, 128, 64, 989.4,
     "NVIDIA H100 data sheet (as glennklockwood.com/garden/processors/h100 has it)"},
    {"H200 SXM", 4800, 132, 1980, 64, 128, 64, 989.4,
     "NVIDIA H200 data sheet (as hmc-tech.com and aiwiki.ai/wiki/nvidia_h200 have it; the compute dies are "
     "H100's)"},
    {"RTX 5090", 1792, 170, 2407, 128, 128, 2, 209.5,
     "Linux Format, May 2025, RTX 5090 (838 sparse with f16 sums: a quarter of it)"},
};
const size_t gpu_count = sizeof gpus / sizeof *gpus;

/* Per multiprocessor and clock, on all of these. */
enum { SCHEDULERS = 4, SPECIAL_LANES = 16, WAVEFRONTS = 1 };

static double distinct_bytes(const counters *c)
{
    double sectors = 0;
    for (size_t i = 0; i < c->allocation_count; i++)
        sectors += (double)sum_accesses(c->allocations[i].by).distinct_sectors;
    return 32 * sectors;
}

int roofline(const counters *c, const gpu *g, double us[LIMITS])
{
    double clocks = g->multiprocessors * g->megahertz; /* per microsecond, all multiprocessors */
    int most = 0;
    us[LIMIT_MEMORY] = distinct_bytes(c) / g->gigabytes / 1e3;
    us[LIMIT_ISSUE] = (double)c->warp_instructions / SCHEDULERS / clocks;
    us[LIMIT_INTEGER] = (double)find_class(c, "integer")->thread / g->integer_lanes / clocks;
    us[LIMIT_FLOAT] = (double)find_class(c, "float")->thread / g->float_lanes / clocks;
    us[LIMIT_DOUBLE] = (double)find_class(c, "double")->thread / g->double_lanes / clocks;
    us[LIMIT_SPECIAL] = (double)find_class(c, "special")->thread / SPECIAL_LANES / clocks;
    us[LIMIT_SHARED] = (double)sum_accesses(c->shared).wavefronts / WAVEFRONTS / clocks;
    us[LIMIT_TENSOR] = 2 * (double)c->multiply_adds / g->tensor_teraflops / 1e6;
    for (int i = 1; i < LIMITS; i++)
        most = us[i] > us[most] ? i : most;
    return most;
}
