/* The switch of the checks, and reports: see check.h. */
#include "check.h"

#include "launch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_REPORTS 10

static struct {
    pthread_mutex_t lock;
    unsigned count;
    bool at_exit;
} reports = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct {
    const char *name;
    unsigned checks;
} names[] = {
    {"memory", EMU_CHECK_MEMORY}, {"init", EMU_CHECK_INIT}, {"race", EMU_CHECK_RACE},
    {"sync", EMU_CHECK_SYNC},     {"all", EMU_CHECK_ALL},   {"none", 0},
};

unsigned emu_checks_from(const char *text, emu_text *bad)
{
    unsigned checks = 0;
    *bad = (emu_text){0};
    if (!text)
        return EMU_CHECK_MEMORY | EMU_CHECK_SYNC;
    while (*text) {
        emu_text word = {text, strcspn(text, ",")};
        size_t i = 0;
        while (i < sizeof names / sizeof *names && !emu_text_is(word, names[i].name))
            i++;
        if (i == sizeof names / sizeof *names)
            *bad = word;
        else
            checks |= names[i].checks;
        text += word.size + (text[word.size] == ',');
    }
    return checks;
}

/* KILN_EMU_VERBOSE: 0 prints nothing, 2 everything. */
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
    if (show && reports.count > show)
        fprintf(stderr, "kiln emulator: %u reports, the first %u are shown\n", reports.count, show);
}

void emu_print_report(const char *text)
{
    pthread_mutex_lock(&reports.lock);
    if (!reports.at_exit)
        reports.at_exit = atexit(print_count) == 0;
    if (++reports.count <= reports_to_show())
        fprintf(stderr, "%s", text);
    pthread_mutex_unlock(&reports.lock);
}

static const char *error_name(int result)
{
    switch (result) {
    case 700:
        return "CUDA_ERROR_ILLEGAL_ADDRESS";
    case 702:
        return "CUDA_ERROR_LAUNCH_TIMEOUT";
    case 715:
        return "CUDA_ERROR_ILLEGAL_INSTRUCTION";
    case 716:
        return "CUDA_ERROR_MISALIGNED_ADDRESS";
    case 717:
        return "CUDA_ERROR_INVALID_ADDRESS_SPACE";
    default:
        return "CUDA_ERROR_LAUNCH_FAILED";
    }
}

static void append_place(emu_log *log, const emu_launch *l, const emu_op *op)
{
    const emu_program *p = l->program;
    const emu_instruction *i = p->instructions[op->at];
    emu_log_append(log, "  in %s, line %u: %.*s\n", p->functions[op->at], i->line, EMU_TEXT(i->text));
}

static void append_thread(emu_log *log, const emu_block *b, uint32_t thread)
{
    const uint32_t *n = b->launch->block;
    emu_log_append(log, "thread (%u,%u,%u) of block (%u,%u,%u)", thread % n[0], thread / n[0] % n[1],
                   thread / n[0] / n[1], b->id[0], b->id[1], b->id[2]);
}

/* The launch keeps the report of its lowest block, so that it is the same one for any number of host threads. */
static void keep_report(emu_block *b, int result, emu_log *log)
{
    emu_launch *l = b->launch;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (b->index < l->fault_block) {
        free(l->report.text);
        l->report = (emu_report){result, b->index, log->text};
        __atomic_store_n(&l->fault_block, b->index, __ATOMIC_RELAXED);
        log->text = NULL;
    }
    pthread_mutex_unlock(&lock);
    emu_log_free(log);
}

void emu_fault(emu_warp *w, const emu_op *op, uint32_t lanes, int result, const char *what, ...)
{
    emu_block *b = w->block;
    emu_log log = {0};
    char sentence[512];
    uint32_t first = (uint32_t)__builtin_ctz(lanes), others = (uint32_t)__builtin_popcount(lanes) - 1;
    va_list args;
    va_start(args, what);
    vsnprintf(sentence, sizeof sentence, what, args);
    va_end(args);
    const emu_program *p = b->launch->program;
    emu_log_append(&log, "kiln emulator: %s in kernel %.*s\n", error_name(result), EMU_TEXT(p->kernel->name));
    append_place(&log, b->launch, op);
    emu_log_append(&log, "  ");
    append_thread(&log, b, w->id * EMU_LANES + first);
    emu_log_append(&log, " %s\n", sentence);
    if (others)
        emu_log_append(&log, "  and %u more lane%s of its warp\n", others, others == 1 ? "" : "s");
    keep_report(b, result, &log);
    emu_stop(w);
}

static const char *const waits[] = {
    [EMU_WAIT_NONE] = "runs without storing anything",
    [EMU_WAIT_LANES] = "waits for other lanes of its warp",
    [EMU_WAIT_WARP] = "waits for other lanes of its warp",
    [EMU_WAIT_BARRIER] = "waits at the barrier",
    [EMU_WAIT_ARRIVE] = "waits for its warp to arrive at the barrier",
};

static bool is_over_limit(const emu_block *b)
{
    return b->jumps > b->launch->most_jumps;
}

static void append_fragment(emu_log *log, const emu_warp *w, const emu_fragment *f)
{
    uint32_t first = (uint32_t)__builtin_ctz(f->mask);
    emu_log_append(log, "  ");
    append_thread(log, w->block, w->id * EMU_LANES + first);
    emu_log_append(log, " (lanes 0x%08x of warp %u) %s", f->mask, w->id,
                   f->wait == EMU_WAIT_NONE && is_over_limit(w->block) ? "still runs" : waits[f->wait]);
    if (f->wait == EMU_WAIT_LANES || f->wait == EMU_WAIT_WARP)
        emu_log_append(log, ": members 0x%08x, of these 0x%08x have exited and 0x%08x are elsewhere",
                       f->members, f->members & ~w->alive, f->members & w->alive & ~f->mask);
    emu_log_append(log, "\n  ");
    append_place(log, w->block->launch, f->pc);
}

void emu_report_deadlock(emu_block *b)
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
        emu_log_append(&log, "the launch makes no progress\n");
    for (unsigned n = 0; n < b->warp_count; n++) {
        const emu_warp *w = &b->warps[n];
        emu_fragment running = {.pc = w->pc, .mask = w->active};
        if (w->active && shown++ < 12)
            append_fragment(&log, w, &running);
        for (unsigned i = 0; i < w->parked; i++)
            if (shown++ < 12)
                append_fragment(&log, w, &w->fragments[i]);
    }
    if (shown > 12)
        emu_log_append(&log, "  and %u more groups of lanes\n", shown - 12);
    keep_report(b, 702, &log);
}
