/* From a mistake to its printed report: see report.h. */
#include "report.h"

#include "async.h"
#include "launch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *error_name(CUresult result)
{
    const emu_error *e = emu_error_of(result);
    return e ? e->name : "CUDA_ERROR_UNKNOWN";
}

static int print_source_place(char *text, size_t bytes, const char *before, const emu_module *m,
                              emu_source_place place)
{
    const emu_source_file *file = m->files;
    while (file && file->number != place.file)
        file = file->next;
    emu_text name = file ? file->name : (emu_text){"?", 1};
    int length = snprintf(text, bytes, "%s%.*s:%u:%u", before, EMU_TEXT(name), place.line, place.column);
    return length < (int)bytes ? length : (int)bytes - 1;
}

const char *emu_source_of(const emu_program *p, uint32_t at, char text[EMU_SOURCE_BYTES])
{
    const emu_source *s = p->instructions[at]->source;
    size_t room = EMU_SOURCE_BYTES - 1, n = 0; /* the last byte is for the closing parenthesis */
    text[0] = '\0';
    if (!s)
        return text;
    n = (size_t)print_source_place(text, room, " (", p->module, s->at);
    if (s->inlined_at.line)
        n += (size_t)print_source_place(text + n, room - n, ", inlined at ", p->module, s->inlined_at);
    memcpy(text + n, ")", 2);
    return text;
}

const char *emu_describe_place(const emu_warp *w, uint64_t at, char *text, size_t room)
{
    const emu_block *b = w->block, *holder = emu_block_holding(b, at);
    uint64_t local = at - (uint64_t)(uintptr_t)b->local;
    const emu_allocation *a = emu_memory_contains(at) ? emu_memory_find(at) : NULL;
    int n = 0;
    if (holder)
        n = snprintf(text, room, "0x%llx of .shared memory",
                     (unsigned long long)(at - (uint64_t)(uintptr_t)holder->shared));
    if (holder && holder != b)
        snprintf(text + n, room - (size_t)n, " of block (%u,%u,%u)", holder->id[0], holder->id[1],
                 holder->id[2]);
    if (holder)
        return text;
    if (local < (uint64_t)b->warp_count * EMU_LANES * b->launch->program->local_bytes)
        snprintf(text, room, "0x%llx of .local memory",
                 (unsigned long long)(local % b->launch->program->local_bytes));
    else if (a)
        snprintf(text, room, "0x%llx, byte %llu of %s %llu (%llu bytes at 0x%llx)", (unsigned long long)at,
                 (unsigned long long)(at - a->base),
                 a->name ? "the variable that is allocation" : "allocation", (unsigned long long)a->serial,
                 (unsigned long long)a->bytes, (unsigned long long)a->base);
    else
        snprintf(text, room, "0x%llx", (unsigned long long)at);
    return text;
}

const char *emu_describe_thread(const emu_warp *w, uint64_t block, uint32_t thread, char *text, size_t room)
{
    const uint32_t *n = w->block->launch->block, *g = w->block->launch->grid;
    snprintf(text, room, "thread (%u,%u,%u) of block (%llu,%llu,%llu)", thread % n[0], thread / n[0] % n[1],
             thread / n[0] / n[1], (unsigned long long)(block % g[0]),
             (unsigned long long)(block / g[0] % g[1]), (unsigned long long)(block / g[0] / g[1]));
    return text;
}

static void append_place(emu_log *log, const emu_launch *l, const emu_op *op)
{
    char source[EMU_SOURCE_BYTES];
    const emu_program *p = l->program;
    const emu_instruction *i = p->instructions[op->at];
    emu_log_append(log, "  in %s, line %u: %.*s%s\n", p->functions[op->at], i->line, EMU_TEXT(i->text),
                   emu_source_of(p, op->at, source));
}

static void append_thread(emu_log *log, const emu_block *b, uint32_t thread)
{
    const uint32_t *n = b->launch->block;
    emu_log_append(log, "thread (%u,%u,%u) of block (%u,%u,%u)", thread % n[0], thread / n[0] % n[1],
                   thread / n[0] / n[1], b->id[0], b->id[1], b->id[2]);
}

static pthread_mutex_t keep_lock = PTHREAD_MUTEX_INITIALIZER;

/* The launch keeps the report of its lowest cluster, so that it is the same one for any number of host threads. */
static void keep_report(emu_block *b, CUresult result, emu_log *log)
{
    emu_launch *l = b->launch;
    pthread_mutex_lock(&keep_lock);
    if (b->cluster->index < l->fault_cluster) {
        free(l->report.text);
        l->report = (emu_report){result, log->text};
        __atomic_store_n(&l->fault_cluster, b->cluster->index, __ATOMIC_RELAXED);
        log->text = NULL;
    }
    pthread_mutex_unlock(&keep_lock);
    emu_log_free(log);
}

static void append_sentence(emu_log *log, emu_warp *w, const emu_op *op, uint32_t lanes, CUresult result,
                            const char *what, va_list args)
{
    char sentence[512 + EMU_SOURCE_BYTES];
    uint32_t first = (uint32_t)__builtin_ctz(lanes), others = (uint32_t)__builtin_popcount(lanes) - 1;
    const emu_launch *l = w->block->launch;
    vsnprintf(sentence, sizeof sentence, what, args);
    emu_log_append(log, "kiln emulator: %s in kernel %.*s\n", error_name(result),
                   EMU_TEXT(l->program->kernel->name));
    append_place(log, l, op);
    emu_log_append(log, "  ");
    append_thread(log, w->block, w->id * EMU_LANES + first);
    emu_log_append(log, " %s\n", sentence);
    if (others)
        emu_log_append(log, "  and %u more lane%s of its warp\n", others, others == 1 ? "" : "s");
}

void emu_fault(emu_warp *w, const emu_op *op, uint32_t lanes, CUresult result, const char *what, ...)
{
    emu_log log = {0};
    va_list args;
    va_start(args, what);
    append_sentence(&log, w, op, lanes, result, what, args);
    va_end(args);
    keep_report(w->block, result, &log);
    emu_stop(w);
}

static emu_finding *find_place(emu_findings *f, uint32_t at, uint32_t other, const char *what)
{
    for (size_t n = 0; n < f->count; n++)
        if (f->all[n].at == at && f->all[n].other == other && f->all[n].what == what)
            return &f->all[n];
    f->all = emu_with_room(f->all, f->count, &f->room, sizeof *f->all);
    f->all[f->count] = (emu_finding){.at = at, .other = other, .what = what, .cluster = UINT64_MAX};
    return &f->all[f->count++];
}

void emu_note(emu_warp *w, const emu_op *op, uint32_t lanes, uint32_t other, const char *what, ...)
{
    emu_cluster *c = w->block->cluster;
    pthread_mutex_lock(&keep_lock);
    emu_finding *f = find_place(&c->launch->findings, op->at, other, what);
    f->times += (unsigned)__builtin_popcount(lanes);
    if (c->index < f->cluster) {
        emu_log log = {0};
        va_list args;
        va_start(args, what);
        append_sentence(&log, w, op, lanes, CUDA_ERROR_LAUNCH_FAILED, what, args);
        va_end(args);
        free(f->text);
        f->cluster = c->index;
        f->order = c->findings++;
        f->text = log.text;
    }
    pthread_mutex_unlock(&keep_lock);
}

static const char *const waits[] = {
    [EMU_WAIT_NONE] = "runs without storing anything",
    [EMU_WAIT_LANES] = "waits for other lanes of its warp",
    [EMU_WAIT_WARP] = "waits for other lanes of its warp",
    [EMU_WAIT_BARRIER] = "waits at barrier",
    [EMU_WAIT_ARRIVE] = "waits for its warp to arrive at barrier",
    [EMU_WAIT_CLUSTER_ARRIVE] = "waits for its warp to arrive at the cluster's barrier",
    [EMU_WAIT_CLUSTER] = "waits at the cluster's barrier",
    [EMU_WAIT_REGISTERS] = "waits for registers of the block's pool",
    [EMU_WAIT_WARPGROUP] = "waits for the other warps of its warpgroup to commit their part of the products",
    [EMU_WAIT_FENCE] = "waits for the other warps of its warpgroup to reach wgmma.fence",
};

static void append_barrier(emu_log *log, const emu_block *b, unsigned number)
{
    const emu_barrier *barrier = &b->barriers[number];
    uint32_t alive = 0;
    for (unsigned n = 0; n < b->warp_count; n++)
        alive += (uint32_t)__builtin_popcount(b->warps[n].alive);
    emu_log_append(log, " %u: %u of %u threads have arrived", number, barrier->arrived,
                   barrier->expected ? barrier->expected : EMU_LANES * b->live_warps);
    if (alive < b->launch->threads)
        emu_log_append(log, ", %u threads of the block have exited", b->launch->threads - alive);
}

static bool is_over_limit(const emu_block *b)
{
    return b->jumps > b->launch->most_jumps;
}

/* If the lane has failed the test of an mbarrier, says what the mbarrier waits for. */
static bool append_tested(emu_log *log, const emu_warp *w, uint32_t lane)
{
    uint64_t bits;
    if (!w->tested[lane])
        return false;
    memcpy(&bits, w->block->shared + w->tested[lane] - 1, sizeof bits);
    emu_mbarrier m = emu_mbarrier_unpack(bits);
    emu_log_append(
        log,
        "waits for the mbarrier object at 0x%x of .shared memory to end its phase of parity %u: %u of %u "
        "arrivals are missing",
        w->tested[lane] - 1, m.phase & 1, m.pending, m.expected);
    if (m.transactions > 0)
        emu_log_append(log, ", and %d bytes", m.transactions);
    else if (m.transactions < 0)
        emu_log_append(log, ", and %d more bytes have arrived than were expected", -m.transactions);
    return true;
}

static void append_fragment(emu_log *log, const emu_warp *w, const emu_fragment *f)
{
    uint32_t first = (uint32_t)__builtin_ctz(f->mask);
    emu_log_append(log, "  ");
    append_thread(log, w->block, w->id * EMU_LANES + first);
    emu_log_append(log, " (lanes 0x%08x of warp %u) ", f->mask, w->id);
    if (f->wait != EMU_WAIT_NONE || is_over_limit(w->block) || !append_tested(log, w, first))
        emu_log_append(log, "%s",
                       f->wait == EMU_WAIT_NONE && is_over_limit(w->block) ? "still runs" : waits[f->wait]);
    if (f->wait == EMU_WAIT_LANES || f->wait == EMU_WAIT_WARP)
        emu_log_append(log, ": members 0x%08x, of these 0x%08x have exited and 0x%08x are elsewhere",
                       f->members, f->members & ~w->alive, f->members & w->alive & ~f->mask);
    else if (f->wait == EMU_WAIT_REGISTERS)
        emu_log_append(log, ": it has %u per thread and wants %u, but only %u per thread of a warp are free",
                       w->registers, (unsigned)f->pc->imm, w->block->free_registers / EMU_LANES);
    else if (f->wait == EMU_WAIT_CLUSTER)
        emu_log_append(log, ": %u of %u warps have arrived", w->block->cluster->arrived,
                       w->block->cluster->live_warps);
    else if (f->wait == EMU_WAIT_BARRIER || f->wait == EMU_WAIT_ARRIVE)
        append_barrier(log, w->block, f->barrier);
    emu_log_append(log, "\n  ");
    append_place(log, w->block->launch, f->pc);
}

static void append_block(emu_log *log, const emu_block *b, unsigned *shown)
{
    for (unsigned n = 0; n < b->warp_count; n++) {
        const emu_warp *w = &b->warps[n];
        emu_fragment running = {.pc = w->pc, .mask = w->active};
        if (w->active && (*shown)++ < 12)
            append_fragment(log, w, &running);
        for (unsigned i = 0; i < w->parked; i++)
            if ((*shown)++ < 12)
                append_fragment(log, w, &w->fragments[i]);
    }
}

void emu_fault_deadlock(emu_block *b)
{
    emu_log log = {0};
    unsigned shown = 0;
    emu_log_append(&log, "kiln emulator: CUDA_ERROR_LAUNCH_TIMEOUT in kernel %.*s: ",
                   EMU_TEXT(b->launch->program->kernel->name));
    if (is_over_limit(b))
        emu_log_append(&log,
                       "a block jumped back more than %llu times, which is the limit of KILN_EMU_JUMPS\n",
                       (unsigned long long)b->launch->most_jumps);
    else
        emu_log_append(&log, "the launch makes no progress%s\n",
                       b->cluster->waiting_turns == UINT64_MAX
                           ? ": what its warps wait for cannot come, and nothing is in flight"
                       : b->idle_jumps > b->launch->most_idle_jumps
                           ? ": its warps only jump back (KILN_EMU_JUMPS=0 lifts this limit)"
                           : "");
    for (unsigned rank = 0; rank < b->cluster->count; rank++)
        append_block(&log, &b->cluster->blocks[rank], &shown);
    if (shown > 12)
        emu_log_append(&log, "  and %u more groups of lanes\n", shown - 12);
    keep_report(b, CUDA_ERROR_LAUNCH_TIMEOUT, &log);
}

/* ---- printing ------------------------------------------------------------------------------------------------------ */

#define MOST_REPORTS 10

static struct {
    pthread_mutex_t lock;
    unsigned count;
    bool at_exit;
    pid_t process; /* a forked child must not print its parent's count */
} reports = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* KILN_EMU_VERBOSE: 0 prints nothing, 2 prints everything. */
static unsigned reports_to_show(void)
{
    const char *verbose = getenv("KILN_EMU_VERBOSE");
    if (verbose && strcmp(verbose, "0") == 0)
        return 0;
    return verbose && strcmp(verbose, "2") == 0 ? UINT_MAX : MOST_REPORTS;
}

static void print_count(void)
{
    unsigned show = reports_to_show();
    if (show && reports.count > show && reports.process == getpid())
        fprintf(stderr, "kiln emulator: %u reports, the first %u are shown\n", reports.count, show);
}

void emu_print_report(const char *text, uint64_t times)
{
    pthread_mutex_lock(&reports.lock);
    reports.process = getpid();
    if (!reports.at_exit)
        reports.at_exit = atexit(print_count) == 0;
    if (++reports.count <= reports_to_show())
        fprintf(stderr, "%s", text);
    if (times > 1 && reports.count <= reports_to_show())
        fprintf(stderr, "  %llu times in this launch\n", (unsigned long long)times);
    pthread_mutex_unlock(&reports.lock);
}

static int by_cluster(const void *a, const void *b)
{
    const emu_finding *x = a, *y = b;
    return x->cluster != y->cluster ? (x->cluster > y->cluster) - (x->cluster < y->cluster)
                                    : (x->order > y->order) - (x->order < y->order);
}

/* Clusters above the one with the fault were stopped by chance somewhere, so they do not count; all others have ended. */
void emu_print_reports(emu_launch *l)
{
    emu_findings *f = &l->findings;
    if (f->count)
        qsort(f->all, f->count, sizeof *f->all, by_cluster);
    for (size_t n = 0; n < f->count; n++) {
        if (f->all[n].cluster <= l->fault_cluster)
            emu_print_report(f->all[n].text, l->report.result ? 0 : f->all[n].times);
        free(f->all[n].text);
    }
    if (l->report.text)
        emu_print_report(l->report.text, 0);
    free(f->all);
    free(l->report.text);
    *f = (emu_findings){0};
    l->report.text = NULL;
}

CUresult emu_result_of(const emu_launch *l)
{
    return l->report.result ? l->report.result : l->findings.count ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}
