/* See reach.h. */
#include "reach.h"

#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CAME = 1, HELD = 2, FAILED = 4 };

/* A kernel. Modules with the same text share one entry. */
typedef struct emu_reach {
    struct emu_reach *next;
    char *name;
    unsigned device_number;
    uint64_t launches;
    size_t op_count;
    uint8_t *seen; /* by operation */
    struct reach_op {
        char *text; /* of the instruction, at its first operation; NULL at its other operations */
        uint32_t line;
        bool has_guard;
    } * ops;
} emu_reach;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static emu_reach *kernels, **last = &kernels;
static const char *path;

static char *copy_of(emu_text t)
{
    char *copy = emu_alloc(t.size + 1);
    memcpy(copy, t.at, t.size);
    return copy;
}

/* Returns the instruction that begins with this operation. NULL: none does, or it is the ret at a function's end. */
static const emu_instruction *instruction_at(const emu_program *p, size_t op)
{
    const emu_instruction *i = p->instructions[p->ops[op].at];
    const bool is_end = emu_text_is(i->text, p->functions[p->ops[op].at]);
    return p->uses[op].is_first && !is_end ? i : NULL;
}

static bool is_of(const emu_reach *r, const emu_launch *l)
{
    const emu_program *p = l->program;
    if (r->op_count != p->op_count || r->device_number != l->device_number ||
        !emu_text_is(p->kernel->name, r->name))
        return false;
    for (size_t n = 0; n < r->op_count; n++) {
        const emu_instruction *i = instruction_at(p, n);
        if (!i != !r->ops[n].text || (i && !emu_text_is(i->text, r->ops[n].text)))
            return false;
    }
    return true;
}

static emu_reach *make(const emu_launch *l)
{
    const emu_program *p = l->program;
    emu_reach *r = emu_alloc(sizeof *r);
    r->name = copy_of(p->kernel->name);
    r->device_number = l->device_number;
    r->op_count = p->op_count;
    r->seen = emu_alloc(p->op_count);
    r->ops = emu_alloc(p->op_count * sizeof *r->ops);
    for (size_t n = 0; n < p->op_count; n++) {
        const emu_instruction *i = instruction_at(p, n);
        if (i)
            r->ops[n] = (struct reach_op){copy_of(i->text), i->line, p->ops[n].guard != 0};
    }
    *last = r;
    last = &r->next;
    return r;
}

static void issue(emu_warp *w, const emu_op *op, uint32_t mask)
{
    const emu_launch *l = w->block->launch;
    uint8_t *seen = &l->reach->seen[op - l->program->ops];
    const uint8_t now = (uint8_t)(CAME | (mask ? HELD : 0) | (mask != w->active ? FAILED : 0));
    if (now & ~__atomic_load_n(seen, __ATOMIC_RELAXED))
        __atomic_fetch_or(seen, now, __ATOMIC_RELAXED);
}

/* ---- the file ------------------------------------------------------------------------------------------------------ */

#define LINE_BEGINS "{\"unreached\":"

/* Returns what never happened, in the words of the file, or NULL. */
static const char *never(const emu_reach *r, size_t op)
{
    const uint8_t seen = r->seen[op];
    return !(seen & CAME)                             ? "reached"
           : !(seen & HELD)                           ? "true"
           : r->ops[op].has_guard && !(seen & FAILED) ? "false"
                                                      : NULL;
}

static void write_kernel(FILE *f, const emu_reach *r)
{
    size_t instructions = 0;
    const char *gap = "";
    for (size_t n = 0; n < r->op_count; n++)
        instructions += r->ops[n].text != NULL;
    fputs(LINE_BEGINS, f);
    emu_write_string(f, emu_text_of(r->name));
    fprintf(f, ",\"device\":\"sm_%u\",\"launches\":%" PRIu64 ",\"instructions\":%zu,\"lines\":[",
            r->device_number, r->launches, instructions);
    for (size_t n = 0; n < r->op_count; n++) {
        if (!r->ops[n].text || !never(r, n))
            continue;
        fprintf(f, "%s{\"line\":%u,\"never\":\"%s\",\"text\":", gap, r->ops[n].line, never(r, n));
        emu_write_string(f, emu_text_of(r->ops[n].text));
        fputc('}', f);
        gap = ",";
    }
    fputs("]}\n", f);
}

static void write_all(void)
{
    if (!emu_may_replace(path, LINE_BEGINS)) {
        fprintf(stderr, "kiln emulator: KILN_EMU_UNREACHED: %s is not a report, so it is not overwritten\n",
                path);
        return;
    }
    FILE *f = fopen(path, "w");
    for (const emu_reach *r = kernels; f && r; r = r->next)
        write_kernel(f, r);
    if (!f || fclose(f) != 0)
        fprintf(stderr, "kiln emulator: cannot write KILN_EMU_UNREACHED to %s\n", path);
}

/* ---- the launch ---------------------------------------------------------------------------------------------------- */

static const emu_observer reacher = {.issue = issue};

void emu_reach_launch(emu_launch *l)
{
    const char *wanted = getenv("KILN_EMU_UNREACHED");
    if (!wanted || !*wanted)
        return;
    pthread_mutex_lock(&lock);
    if (!path) {
        path = copy_of(emu_text_of(wanted));
        atexit(write_all);
    }
    emu_reach *r = kernels;
    while (r && !is_of(r, l))
        r = r->next;
    l->reach = r ? r : make(l);
    l->reach->launches++;
    pthread_mutex_unlock(&lock);
    emu_observe(l, &reacher);
}
