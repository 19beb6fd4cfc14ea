/* Prints the roofline's estimates, a table for readers, and the same as JSON. */
#include "profile.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../support/json.h"

static double ratio(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : 0;
}

/* ---- the roofline ------------------------------------------------------------------------------------------------ */

/* The roofline: how long each resource of a GPU would need for the counted work if it were busy all the time.
 * Estimates from PTX rather than machine code, with every byte moved once and all multiprocessors in use. Half
 * precision runs at about the issue rate, so it counts only as issued instructions; so do moves and conversions. */
enum {
    LIMIT_MEMORY,
    LIMIT_ISSUE,
    LIMIT_INTEGER,
    LIMIT_FLOAT,
    LIMIT_DOUBLE,
    LIMIT_SPECIAL,
    LIMIT_SHARED,
    LIMIT_TENSOR,
    LIMITS
};

typedef struct gpu {
    const char *name;
    double gigabytes; /* per second */
    unsigned multiprocessors;
    double megahertz;                                  /* highest clock */
    unsigned integer_lanes, float_lanes, double_lanes; /* per multiprocessor */
    double tensor_teraflops;                           /* dense, f16 with f32 accumulation */
    double s8_teraops, fp4_teraflops;                  /* dense; block-scaled e2m1, 0: no such products */
    const char *source;
} gpu;

static const char *const limit_names[LIMITS] = {"memory", "issue",   "integer", "float",
                                                "double", "special", "shared",  "tensor"};

/* Bandwidth, multiprocessors, clock and tensor rates are NVIDIA's, from the named source; lanes are from the table
 * "Throughput of native arithmetic instructions" of the CUDA C++ Programming Guide. */
static const gpu gpus[] = {
    {"T4", 320, 40, 1590, 64, 64, 2, 65, 130, 0, "NVIDIA T4 data sheet (as fpsbench.com lists Tesla T4)"},
    {"A100 SXM 80GB", 2039, 108, 1410, 64, 64, 32, 312, 624, 0,
     "NVIDIA A100 data sheet (as glennklockwood.com/garden/processors/A100 has it); clock: "
     "thundercompute.com, A100 specs"},
    {"L4", 300, 58, 2040, 64, 128, 2, 121, 242, 0,
     "NVIDIA Ada GPU Architecture 2.01 (7,424 lanes and clock as fpsbench.com lists L4; 121 = half of 242 "
     "sparse)"},
    {"RTX 4090", 1008, 128, 2520, 64, 128, 2, 165.2, 660.6, 0,
     "NVIDIA Ada GPU Architecture 2.01 (as hmc-tech.com lists RTX 4090)"},
    {"H100 SXM", 3350, 132, 1980, 64, 128, 64, 989.4, 1979, 0,
     "NVIDIA H100 data sheet (as glennklockwood.com/garden/processors/h100 has it)"},
    {"H200 SXM", 4800, 132, 1980, 64, 128, 64, 989.4, 1979, 0,
     "NVIDIA H200 data sheet (as hmc-tech.com and aiwiki.ai/wiki/nvidia_h200 have it; the compute dies are "
     "H100's)"},
    {"RTX 5090", 1792, 170, 2407, 128, 128, 2, 209.5, 838, 1676,
     "Linux Format, May 2025, RTX 5090 (838 sparse with f16 sums: a quarter of it)"},
};
enum { GPUS = sizeof gpus / sizeof *gpus };

/* Per multiprocessor and clock, the same on all of these GPUs. */
enum { SCHEDULERS = 4, SPECIAL_LANES = 16, WAVEFRONTS = 1 };

/* A guess: threads' loads and stores share a port with wgmma's operands and bulk copies; false: they have their own. The probe
 * wgmma_rate (tools/bench/probes/rates.py) can tell: together with lds.128 x 16, with n 128 and A in shared memory, products
 * reach 2341 operations per clock with one port, and 4096 with two. */
static const bool threads_share_port = true;

static const class_count *find_class(const counters *c, const char *name)
{
    static const class_count none;
    for (size_t i = 0; i < c->class_count; i++)
        if (strcmp(c->classes[i].name, name) == 0)
            return &c->classes[i];
    return &none;
}

static access_counts sum_accesses(const access_counts by[ACCESS_KINDS])
{
    access_counts s = {0};
    for (int k = 0; k < ACCESS_KINDS; k++) {
        s.requests += by[k].requests;
        s.sectors += by[k].sectors;
        s.distinct_sectors += by[k].distinct_sectors;
        s.bytes += by[k].bytes;
        s.bytes_used += by[k].bytes_used;
        s.wavefronts += by[k].wavefronts;
        s.ideal_wavefronts += by[k].ideal_wavefronts;
    }
    return s;
}

static double distinct_bytes(const counters *c)
{
    double sectors = 0;
    for (size_t i = 0; i < c->allocation_count; i++)
        sectors += (double)sum_accesses(c->allocations[i].by).distinct_sectors;
    return 32 * sectors;
}

/* Wavefronts of the busiest port of shared memory. */
static double port_wavefronts(const counters *c)
{
    const uint64_t *w = c->wavefronts;
    double threads = (double)w[THREADS], others = (double)(w[PRODUCTS] + w[BULK]);
    return threads_share_port ? threads + others : fmax(threads, others);
}

/* Dense TFLOP/s or TOP/s of products, by the operands' types in their name. 8-bit floats have twice the rate of f16, tf32 half of
 * it; a GPU without block-scaled e2m1 decodes it to f16. */
static double product_rate(const gpu *g, const char *name)
{
    static const char *const bytes[] = {".e4m3", ".e5m2", ".e2m1", ".e2m3", ".e3m2"};
    if (strstr(name, "kind::mxf4"))
        return g->fp4_teraflops > 0 ? g->fp4_teraflops : g->tensor_teraflops;
    if (strstr(name, ".s8") || strstr(name, ".u8"))
        return g->s8_teraops;
    if (strstr(name, ".tf32"))
        return g->tensor_teraflops / 2;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        if (strstr(name, bytes[i]))
            return 2 * g->tensor_teraflops;
    return g->tensor_teraflops;
}

static double tensor_us(const counters *c, const gpu *g)
{
    double us = 0;
    for (size_t i = 0; i < c->shape_count; i++)
        us += 2 * (double)c->shapes[i].multiply_adds / product_rate(g, c->shapes[i].name) / 1e6;
    return us;
}

/* Returns the limit with the longest time. */
static int roofline(const counters *c, const gpu *g, double us[LIMITS])
{
    double clocks = g->multiprocessors * g->megahertz; /* per microsecond, over all multiprocessors */
    int most = 0;
    us[LIMIT_MEMORY] = distinct_bytes(c) / g->gigabytes / 1e3;
    us[LIMIT_ISSUE] = (double)c->warp_instructions / SCHEDULERS / clocks;
    us[LIMIT_INTEGER] = (double)find_class(c, "integer")->thread / g->integer_lanes / clocks;
    us[LIMIT_FLOAT] = (double)find_class(c, "float")->thread / g->float_lanes / clocks;
    us[LIMIT_DOUBLE] = (double)find_class(c, "double")->thread / g->double_lanes / clocks;
    us[LIMIT_SPECIAL] = (double)find_class(c, "special")->thread / SPECIAL_LANES / clocks;
    us[LIMIT_SHARED] = port_wavefronts(c) / WAVEFRONTS / clocks;
    us[LIMIT_TENSOR] = tensor_us(c, g);
    for (int i = 1; i < LIMITS; i++)
        most = us[i] > us[most] ? i : most;
    return most;
}

/* ---- the table ------------------------------------------------------------------------------------------------- */

/* Returns the bytes moved for all arguments, without tables, which every block reads. */
static uint64_t moved_bytes(const counters *c, int kind)
{
    uint64_t sectors = 0;
    for (size_t i = 0; i < c->allocation_count; i++)
        if (c->allocations[i].is_argument)
            sectors += c->allocations[i].by[kind].sectors +
                       (kind == WRITE ? c->allocations[i].by[ATOMIC].sectors : 0);
    return 32 * sectors;
}

static void print_count(const profile *p, const char *name, uint64_t count)
{
    printf("%-20s %14" PRIu64, name, count);
    if (p->elements)
        printf(" %10.4f per element", ratio(count, p->elements));
    puts("");
}

static void print_instructions(const profile *p)
{
    const counters *c = &p->counters;
    print_count(p, "thread instructions", c->thread_instructions);
    for (size_t i = 0; i < c->class_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "  %s", c->classes[i].name);
        if (c->classes[i].thread)
            print_count(p, name, c->classes[i].thread);
    }
    print_count(p, "lane slots", c->lane_slots);
    print_count(p, "warp instructions", c->warp_instructions);
    printf("branches %" PRIu64 ", divergent %" PRIu64 "; barriers %" PRIu64 "; matrix products %" PRIu64
           ", multiply-adds %" PRIu64 "\n",
           c->branches, c->divergent_branches, c->barriers, c->products, c->multiply_adds);
    printf("cost by the manifest: %" PRIu64 " elements, %" PRIu64 " bytes read, %" PRIu64 " written\n",
           p->elements, p->bytes_read, p->bytes_written);
    printf("moved over that: read %.4f, written %.4f", ratio(moved_bytes(c, READ), p->bytes_read),
           ratio(moved_bytes(c, WRITE), p->bytes_written));
    printf("\nregisters (ptxas, %s): ", p->image->target);
    if (p->registers.missing)
        printf("%s\n\n", p->registers.missing);
    else
        printf("%" PRIu64 "; spilled: %" PRIu64 " bytes stored, %" PRIu64 " loaded; stack %" PRIu64
               " bytes\n\n",
               p->registers.count, p->registers.spill_store_bytes, p->registers.spill_load_bytes,
               p->registers.stack_bytes);
}

static void print_memory(const counters *c)
{
    int width = 12;
    for (size_t i = 0; i < c->allocation_count; i++)
        if (c->allocations[i].by[READ].requests && width < (int)strlen(c->allocations[i].name))
            width = (int)strlen(c->allocations[i].name);
    printf("%-*s %-6s %10s %12s %12s %14s %8s %10s\n", width, "argument", "", "requests", "sectors",
           "distinct", "bytes used", "use", "moved/comp");
    for (size_t i = 0; i < c->allocation_count; i++)
        for (int k = 0; k < ACCESS_KINDS; k++) {
            const allocation_counts *a = &c->allocations[i];
            const access_counts *n = &a->by[k];
            if (n->requests)
                printf("%-*s %-6s %10" PRIu64 " %12" PRIu64 " %12" PRIu64 " %14" PRIu64 " %8.3f %10.3f\n",
                       width, a->name, access_kind_names[k], n->requests, n->sectors, n->distinct_sectors,
                       n->bytes_used, ratio(n->bytes_used, 32 * n->sectors),
                       ratio(32 * n->sectors, a->bytes));
        }
    for (int k = 0; k < ACCESS_KINDS; k++)
        if (c->shared[k].requests)
            printf("%-*s %-6s %10" PRIu64 " %12" PRIu64 " wavefronts, %" PRIu64 " ideal, %.3f\n", width,
                   "(shared)", access_kind_names[k], c->shared[k].requests, c->shared[k].wavefronts,
                   c->shared[k].ideal_wavefronts,
                   ratio(c->shared[k].wavefronts, c->shared[k].ideal_wavefronts));
    for (int k = 0; k < ACCESS_KINDS; k++)
        if (c->local[k].requests)
            printf("%-*s %-6s %10" PRIu64 " %12" PRIu64 " bytes\n", width, "(local)", access_kind_names[k],
                   c->local[k].requests, c->local[k].bytes);
}

/* Prints nothing for a kernel without tensor cores or bulk copies. */
static void print_products(const counters *c)
{
    for (size_t i = 0; i < c->shape_count; i++)
        printf("%-40s %10" PRIu64 " products, %14" PRIu64 " multiply-adds, %12" PRIu64
               " bytes of shared memory\n",
               c->shapes[i].name, c->shapes[i].products, c->shapes[i].multiply_adds,
               c->shapes[i].shared_bytes);
    for (int k = 0; k < BULK_KINDS; k++)
        if (c->bulk[k].copies)
            printf("bulk %-9s %10" PRIu64 " copies, %14" PRIu64 " bytes of global memory, %" PRIu64
                   " of shared memory\n",
                   bulk_kind_names[k], c->bulk[k].copies, c->bulk[k].global_bytes, c->bulk[k].shared_bytes);
    if (c->tests + c->group_waits)
        printf("tests of mbarriers %" PRIu64 ", passed %" PRIu64 "; waits for bulk groups %" PRIu64 "\n",
               c->tests, c->passed_tests, c->group_waits);
    if (c->wavefronts[PRODUCTS] + c->wavefronts[BULK])
        printf("wavefronts of shared memory: threads %" PRIu64 ", operands of products %" PRIu64
               ", bulk copies %" PRIu64 "\n",
               c->wavefronts[THREADS], c->wavefronts[PRODUCTS], c->wavefronts[BULK]);
}

static void print_roofline(const counters *c)
{
    fputs("\nat least, in us:", stdout);
    for (int k = 0; k < LIMITS; k++)
        printf(" %8s", limit_names[k]);
    puts("  limited by");
    for (size_t i = 0; i < GPUS; i++) {
        double us[LIMITS];
        int limit = roofline(c, &gpus[i], us);
        printf("%-16s", gpus[i].name);
        for (int k = 0; k < LIMITS; k++)
            printf(" %8.3f", us[k]);
        printf("  %s\n", limit_names[limit]);
    }
    puts("Estimates from PTX; no cache, every resource busy all the time. --json names the sources of the "
         "GPUs' figures.");
}

void print_table(const profile *p)
{
    char args[1024];
    problem_describe(&p->problem, args, sizeof args);
    printf("%s on %s (image %s), %s\n\n", p->variant, p->target, p->image->target, args);
    print_instructions(p);
    print_memory(&p->counters);
    print_products(&p->counters);
    print_roofline(&p->counters);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

/* Writes a ratio, or null if the denominator is 0. */
static void member_ratio(const char *name, uint64_t a, uint64_t b)
{
    if (b)
        printf(",\"%s\":%.6g", name, ratio(a, b));
    else
        printf(",\"%s\":null", name);
}

static void json_arguments(const profile *p)
{
    const char *gap = "";
    fputs(",\"args\":{", stdout);
    for (size_t i = 0; i < p->problem.arg_count; i++) {
        const argument *a = &p->problem.args[i];
        if (manifest_is_pointer(a->about))
            continue;
        printf("%s\"%s\":", gap, a->about->name);
        if (problem_is_size(a))
            printf("%" PRIu64, a->integer);
        else
            printf(isfinite(a->real) ? "%.17g" : "\"%g\"", a->real);
        gap = ",";
    }
    fputs("}", stdout);
}

static void json_cost(const profile *p)
{
    printf(",\"cost\":{\"elements\":%" PRIu64 ",\"bytes_read\":%" PRIu64 ",\"bytes_written\":%" PRIu64,
           p->elements, p->bytes_read, p->bytes_written);
    member_ratio("read_over_compulsory", moved_bytes(&p->counters, READ), p->bytes_read);
    member_ratio("written_over_compulsory", moved_bytes(&p->counters, WRITE), p->bytes_written);
    fputs("}", stdout);
}

static void json_instructions(const profile *p)
{
    const counters *c = &p->counters;
    printf(",\"instructions\":{\"thread\":%" PRIu64 ",\"warp\":%" PRIu64 ",\"lane_slots\":%" PRIu64,
           c->thread_instructions, c->warp_instructions, c->lane_slots);
    member_ratio("thread_per_element", c->thread_instructions, p->elements);
    member_ratio("active_lanes", c->thread_instructions, 32 * c->warp_instructions);
    fputs(",\"classes\":{", stdout);
    for (size_t i = 0; i < c->class_count; i++) {
        printf("%s\"%s\":{\"thread\":%" PRIu64 ",\"warp\":%" PRIu64, i ? "," : "", c->classes[i].name,
               c->classes[i].thread, c->classes[i].warp);
        member_ratio("thread_per_element", c->classes[i].thread, p->elements);
        fputs("}", stdout);
    }
    printf("},\"branches\":%" PRIu64 ",\"divergent_branches\":%" PRIu64 ",\"barriers\":%" PRIu64
           ",\"products\":%" PRIu64 ",\"multiply_adds\":%" PRIu64 "}",
           c->branches, c->divergent_branches, c->barriers, c->products, c->multiply_adds);
}

static void json_allocations(const counters *c)
{
    fputs(",\"allocations\":[", stdout);
    for (size_t i = 0; i < c->allocation_count; i++) {
        const allocation_counts *a = &c->allocations[i];
        fputs(i ? "," : "", stdout);
        json_print(stdout, "{\"name\":%s,\"is_argument\":%c,\"bytes\":%" PRIu64, a->name, a->is_argument,
                   a->bytes);
        for (int k = 0; k < ACCESS_KINDS; k++) {
            const access_counts *n = &a->by[k];
            printf(",\"%s\":{\"requests\":%" PRIu64 ",\"sectors\":%" PRIu64 ",\"distinct_sectors\":%" PRIu64
                   ",\"bytes\":%" PRIu64 ",\"bytes_used\":%" PRIu64,
                   access_kind_names[k], n->requests, n->sectors, n->distinct_sectors, n->bytes,
                   n->bytes_used);
            member_ratio("sector_use", n->bytes_used, 32 * n->sectors);
            member_ratio("moved_over_compulsory", 32 * n->sectors, a->bytes);
            fputs("}", stdout);
        }
        fputs("}", stdout);
    }
    fputs("]", stdout);
}

static void json_shared(const counters *c)
{
    fputs(",\"shared\":{", stdout);
    for (int k = 0; k < ACCESS_KINDS; k++) {
        const access_counts *n = &c->shared[k];
        printf("%s\"%s\":{\"requests\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"wavefronts\":%" PRIu64
               ",\"ideal_wavefronts\":%" PRIu64,
               k ? "," : "", access_kind_names[k], n->requests, n->bytes, n->wavefronts, n->ideal_wavefronts);
        member_ratio("wavefronts_over_ideal", n->wavefronts, n->ideal_wavefronts);
        fputs("}", stdout);
    }
    fputs("},\"wavefronts\":{", stdout);
    for (int k = 0; k < WAVEFRONT_USERS; k++)
        printf("%s\"%s\":%" PRIu64, k ? "," : "", wavefront_user_names[k], c->wavefronts[k]);
    fputs("}", stdout);
}

static void json_registers(const profile *p)
{
    const registers *r = &p->registers;
    if (r->missing)
        json_print(stdout, ",\"registers\":{\"missing\":%s}", r->missing);
    else
        json_print(stdout,
                   ",\"registers\":{\"target\":%s,\"count\":%" PRIu64 ",\"stack_bytes\":%" PRIu64
                   ",\"spill_store_bytes\":%" PRIu64 ",\"spill_load_bytes\":%" PRIu64 "}",
                   p->image->target, r->count, r->stack_bytes, r->spill_store_bytes, r->spill_load_bytes);
}

static void json_roofline(const counters *c)
{
    fputs(",\"roofline\":[", stdout);
    for (size_t i = 0; i < GPUS; i++) {
        const gpu *g = &gpus[i];
        double us[LIMITS];
        int limit = roofline(c, g, us);
        printf("%s{\"gpu\":\"%s\",\"gigabytes_per_second\":%g,\"multiprocessors\":%u,\"megahertz\":%g,"
               "\"integer_lanes\":%u,"
               "\"float_lanes\":%u,\"double_lanes\":%u,\"tensor_teraflops\":%g,"
               "\"s8_teraops\":%g,\"fp4_teraflops\":%g,\"source\":\"%s\",\"microseconds\":{",
               i ? "," : "", g->name, g->gigabytes, g->multiprocessors, g->megahertz, g->integer_lanes,
               g->float_lanes, g->double_lanes, g->tensor_teraflops, g->s8_teraops, g->fp4_teraflops,
               g->source);
        for (int k = 0; k < LIMITS; k++)
            printf("%s\"%s\":%.6g", k ? "," : "", limit_names[k], us[k]);
        printf("},\"limit\":\"%s\"}", limit_names[limit]);
    }
    fputs("]", stdout);
}

void print_json(const profile *p)
{
    json_print(stdout, "{\"variant\":%s,\"target\":%s,\"image\":%s", p->variant, p->target, p->image->target);
    json_arguments(p);
    json_cost(p);
    json_registers(p);
    json_instructions(p);
    json_allocations(&p->counters);
    json_shared(&p->counters);
    json_roofline(&p->counters);
    if (p->lines)
        json_print(stdout, ",\"ptx\":%s", p->ptx);
    printf(",\"report\":%s}\n", p->report);
}
