/* The report of a launch: one line of JSON in the file that KILN_EMU_REPORT names. The process's first launch empties the
   file. KILN_EMU_REPORT_LINES=1 adds every executed instruction, with its line of the PTX text. A failed launch has a
   result and no counters, since how far its blocks came is chance. */
#define _POSIX_C_SOURCE 200809L /* S_ISREG */
#include "report.h"
#include "count.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const kind_names[EMU_ACCESS_KINDS] = {"read", "write", "atomic"};

void emu_write_string(FILE *f, emu_text s)
{
    fputc('"', f);
    for (size_t i = 0; i < s.size; i++) {
        unsigned char c = (unsigned char)s.at[i];
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < 32 || c > 126)
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

static void write_triple(FILE *f, const char *name, const uint32_t v[3])
{
    fprintf(f, ",\"%s\":[%u,%u,%u]", name, v[0], v[1], v[2]);
}

/* ---- instructions -------------------------------------------------------------------------------------------------- */

typedef struct sums {
    uint64_t warps, slots, lanes;
    uint64_t class_warps[EMU_WORK_CLASSES], class_lanes[EMU_WORK_CLASSES];
    uint64_t tests, group_waits; /* lanes */
    uint64_t branches, divergent, barrier_warps, barrier_lanes, tensor_warps, multiply_adds;
} sums;

static sums add_up(const emu_counts *c)
{
    sums s = {0};
    const emu_program *p = c->program;
    for (size_t n = 0; n < p->op_count; n++) {
        const emu_instruction *i = p->instructions[p->ops[n].at];
        const emu_count_op *o = &c->total.ops[n];
        if (!p->uses[n].is_first || !o->warps)
            continue;
        emu_work_class class = emu_work_class_of(i);
        s.warps += o->warps;
        s.slots += o->slots;
        s.lanes += o->lanes;
        s.class_warps[class] += o->warps;
        s.class_lanes[class] += o->lanes;
        if (emu_is_branch(i)) {
            s.branches += o->warps;
            s.divergent += o->parted;
        }
        if (emu_is_barrier(i)) {
            s.barrier_warps += o->warps;
            s.barrier_lanes += o->lanes;
        }
        s.tests += emu_is_test(i) ? o->lanes : 0;
        s.group_waits += emu_is_group_wait(i) ? o->lanes : 0;
        uint64_t multiply_adds = emu_multiply_adds(i);
        s.tensor_warps += multiply_adds ? o->warps : 0;
        s.multiply_adds += multiply_adds * o->warps;
    }
    return s;
}

/* Adds up the requests of all operations of an instruction. */
static emu_count_access accesses_of(const emu_counts *c, size_t op, emu_count_place place)
{
    const emu_program *p = c->program;
    emu_count_access a = {0};
    for (size_t n = op; n < p->op_count && p->ops[n].at == p->ops[op].at; n++)
        emu_add_access(&a, &c->total.accesses[n][place]);
    return a;
}

static void write_wavefronts(FILE *f, const emu_count_access *a)
{
    fprintf(f,
            "\"requests\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"wavefronts\":%" PRIu64
            ",\"ideal_wavefronts\":%" PRIu64 "}",
            a->requests, a->bytes, a->wavefronts, a->ideal_wavefronts);
}

/* ---- products and shared memory ------------------------------------------------------------------------------------ */

typedef struct shape {
    char name[96]; /* the opcode, and the modifiers from the shape on */
    uint64_t products, multiply_adds;
    emu_count_access shared;
} shape;

static void name_shape(const emu_instruction *i, char name[96])
{
    bool is_after = false;
    int size = snprintf(name, 96, "%.*s", EMU_TEXT(i->opcode));
    for (unsigned n = 0; n < i->modifier_count && size < 96; n++) {
        is_after |=
            i->modifiers[n].at[0] == 'm' && i->modifiers[n].at[1] >= '0' && i->modifiers[n].at[1] <= '9';
        if (is_after)
            size += snprintf(name + size, (size_t)(96 - size), ".%.*s", EMU_TEXT(i->modifiers[n]));
    }
}

static void write_shapes(FILE *f, const emu_counts *c)
{
    const emu_program *p = c->program;
    shape *all = emu_alloc((p->op_count + 1) * sizeof *all);
    size_t count = 0;
    for (size_t n = 0; n < p->op_count; n++) {
        const emu_instruction *i = p->instructions[p->ops[n].at];
        const uint64_t warps = c->total.ops[n].warps, multiply_adds = emu_multiply_adds(i);
        size_t k = 0;
        if (!p->uses[n].is_first || !warps || !multiply_adds)
            continue;
        name_shape(i, all[count].name);
        while (strcmp(all[k].name, all[count].name) != 0)
            k++;
        count += k == count;
        const emu_count_access shared = accesses_of(c, n, EMU_AT_SHARED);
        all[k].products += warps;
        all[k].multiply_adds += warps * multiply_adds;
        emu_add_access(&all[k].shared, &shared);
    }
    fputs(",\"shapes\":[", f);
    for (size_t k = 0; k < count; k++) {
        fprintf(f, "%s{\"name\":\"%s\",\"products\":%" PRIu64 ",\"multiply_adds\":%" PRIu64 ",\"shared\":{",
                k ? "," : "", all[k].name, all[k].products, all[k].multiply_adds);
        write_wavefronts(f, &all[k].shared);
        fputs("}", f);
    }
    fputs("]", f);
    free(all);
}

/* Shared memory's wavefronts by user. */
static void write_users(FILE *f, const emu_counts *c)
{
    const emu_program *p = c->program;
    uint64_t all = 0, products = 0, bulk = 0;
    for (size_t n = 0; n < p->op_count; n++) {
        const emu_instruction *i = p->instructions[p->ops[n].at];
        const uint64_t wavefronts = c->total.accesses[n][EMU_AT_SHARED].wavefronts;
        all += wavefronts;
        products += emu_multiply_adds(i) ? wavefronts : 0;
        bulk += emu_is_bulk_copy(i) ? wavefronts : 0;
    }
    fprintf(f, ",\"wavefronts\":{\"threads\":%" PRIu64 ",\"products\":%" PRIu64 ",\"bulk\":%" PRIu64 "}",
            all - products - bulk, products, bulk);
}

static void write_sums(FILE *f, const emu_counts *c, const sums *s)
{
    fprintf(f,
            ",\"thread_instructions\":%" PRIu64 ",\"warp_instructions\":%" PRIu64 ",\"lane_slots\":%" PRIu64
            ",\"classes\":{",
            s->lanes, s->warps, s->slots);
    for (int i = 0; i < EMU_WORK_CLASSES; i++)
        fprintf(f, "%s\"%s\":{\"thread\":%" PRIu64 ",\"warp\":%" PRIu64 "}", i ? "," : "",
                emu_work_class_names[i], s->class_lanes[i], s->class_warps[i]);
    fprintf(f,
            "},\"branches\":{\"warp\":%" PRIu64 ",\"divergent\":%" PRIu64
            "},\"barriers\":{\"thread\":%" PRIu64 ",\"warp\":%" PRIu64 "},\"tensor\":{\"products\":%" PRIu64
            ",\"multiply_adds\":%" PRIu64,
            s->branches, s->divergent, s->barrier_lanes, s->barrier_warps, s->tensor_warps, s->multiply_adds);
    write_shapes(f, c);
    fputs("}", f);
}

static void write_bulk(FILE *f, const emu_counts *c, const sums *s)
{
    static const char *const names[EMU_BULK_KINDS] = {"load", "store", "reduction"};
    fputs(",\"bulk\":{", f);
    for (int k = 0; k < EMU_BULK_KINDS; k++)
        fprintf(f,
                "%s\"%s\":{\"copies\":%" PRIu64 ",\"global_bytes\":%" PRIu64 ",\"shared_bytes\":%" PRIu64 "}",
                k ? "," : "", names[k], c->total.bulk[k].copies, c->total.bulk[k].global_bytes,
                c->total.bulk[k].shared_bytes);
    fprintf(f, "},\"waits\":{\"tests\":%" PRIu64 ",\"passed\":%" PRIu64 ",\"groups\":%" PRIu64 "}", s->tests,
            c->total.passed, s->group_waits);
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

static uint64_t count_bits(const uint64_t *bits, uint64_t bytes)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < bytes / 8; i++)
        n += (uint64_t)__builtin_popcountll(bits[i]);
    return n;
}

/* Writes the members and the closing brace; the caller has written the opening one. */
static void write_sectors(FILE *f, const emu_count_access *a, uint64_t distinct)
{
    fprintf(f,
            "\"requests\":%" PRIu64 ",\"sectors\":%" PRIu64 ",\"distinct_sectors\":%" PRIu64
            ",\"bytes\":%" PRIu64 ",\"bytes_used\":%" PRIu64 "}",
            a->requests, a->sectors, distinct, a->bytes, a->bytes_used);
}

static void write_shared(FILE *f, const emu_count_access a[EMU_ACCESS_KINDS])
{
    fputs(",\"shared\":{", f);
    for (int k = 0; k < EMU_ACCESS_KINDS; k++) {
        fprintf(f, "%s\"%s\":{", k ? "," : "", kind_names[k]);
        write_wavefronts(f, &a[k]);
    }
    fputs("}", f);
}

static void write_local(FILE *f, const emu_count_access a[EMU_ACCESS_KINDS])
{
    fputs(",\"local\":{", f);
    for (int k = 0; k < EMU_ACCESS_KINDS; k++)
        fprintf(f, "%s\"%s\":{\"requests\":%" PRIu64 ",\"bytes\":%" PRIu64 "}", k ? "," : "", kind_names[k],
                a[k].requests, a[k].bytes);
    fputs("}", f);
}

/* Writes the positions of the kernel's parameters that point into the allocation. */
static void write_parameters(FILE *f, const emu_launch *l, const emu_allocation *a)
{
    const emu_function *k = l->program->kernel;
    const char *gap = "";
    uint64_t at = 0;
    fputs(",\"parameters\":[", f);
    for (size_t i = 0; i < k->parameter_count; i++) {
        uint64_t value = 0;
        at = emu_align_up(at, k->parameters[i]->alignment);
        if (k->parameters[i]->bytes == sizeof value)
            memcpy(&value, l->parameters + at, sizeof value);
        at += k->parameters[i]->bytes;
        if (value - a->base >= a->mapped_bytes)
            continue;
        fprintf(f, "%s%zu", gap, i);
        gap = ",";
    }
    fputs("]", f);
}

static void write_row(FILE *f, const emu_launch *l, const emu_count_row *r)
{
    static const char *const kinds[] = {"device", "host", "managed", "module", "const"};
    const emu_allocation *a = r->allocation;
    fprintf(f, "{\"base\":\"0x%" PRIx64 "\",\"bytes\":%" PRIu64 ",\"kind\":\"%s\"", a->base, a->bytes,
            kinds[a->kind]);
    if (a->name) {
        fputs(",\"name\":", f);
        emu_write_string(f, emu_text_of(a->name));
    }
    write_parameters(f, l, a);
    for (int k = 0; k < EMU_ACCESS_KINDS; k++) {
        const emu_count_access *t = &r->total[k];
        fprintf(f, ",\"%s\":{", kind_names[k]);
        write_sectors(f, t, t->requests ? count_bits(r->seen[k], r->seen_bytes) : 0);
    }
    fputs("}", f);
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = (*(emu_count_row *const *)a)->allocation->base,
             y = (*(emu_count_row *const *)b)->allocation->base;
    return (x > y) - (x < y);
}

/* Returns the rows by address; the caller frees the array. */
static emu_count_row **sort_rows(const emu_counts *c)
{
    emu_count_row **rows = emu_alloc((c->row_count + 1) * sizeof *rows);
    memcpy(rows, c->rows, c->row_count * sizeof *rows);
    qsort(rows, c->row_count, sizeof *rows, by_address);
    return rows;
}

static void write_rows(FILE *f, const emu_counts *c, const emu_launch *l)
{
    emu_count_row **rows = sort_rows(c);
    fputs(",\"allocations\":[", f);
    for (size_t i = 0; i < c->row_count; i++) {
        if (i)
            fputs(",", f);
        write_row(f, l, rows[i]);
    }
    fputs("]", f);
    free(rows);
}

/* ---- lines --------------------------------------------------------------------------------------------------------- */

static uint64_t distinct_of(const emu_counts *c, size_t op)
{
    const emu_program *p = c->program;
    uint64_t sectors = 0;
    for (size_t n = op; n < p->op_count && p->ops[n].at == p->ops[op].at; n++)
        for (size_t r = 0; r < c->row_count; r++)
            if (c->rows[r]->seen_by[n])
                sectors += count_bits(c->rows[r]->seen_by[n], c->rows[r]->seen_bytes);
    return sectors;
}

static bool is_touched(const emu_counts *c, const emu_count_row *row, size_t op)
{
    const emu_program *p = c->program;
    for (size_t n = op; n < p->op_count && p->ops[n].at == p->ops[op].at; n++)
        if (row->seen_by[n])
            return true;
    return false;
}

/* Writes the positions of the allocations that the instruction touched. */
static void write_touched(FILE *f, const emu_counts *c, emu_count_row *const *rows, size_t op)
{
    const char *gap = "";
    fputs(",\"touched\":[", f);
    for (size_t i = 0; i < c->row_count; i++)
        if (is_touched(c, rows[i], op)) {
            fprintf(f, "%s%zu", gap, i);
            gap = ",";
        }
    fputs("]", f);
}

static void write_line_accesses(FILE *f, const emu_counts *c, emu_count_row *const *rows, size_t op)
{
    emu_count_access a = accesses_of(c, op, EMU_AT_ALLOCATIONS), s = accesses_of(c, op, EMU_AT_SHARED),
                     l = accesses_of(c, op, EMU_AT_LOCAL);
    if (a.requests) {
        fputs(",\"allocations\":{", f);
        write_sectors(f, &a, distinct_of(c, op));
        write_touched(f, c, rows, op);
    }
    if (s.requests) {
        fputs(",\"shared\":{", f);
        write_wavefronts(f, &s);
    }
    if (l.requests)
        fprintf(f, ",\"local\":{\"requests\":%" PRIu64 ",\"bytes\":%" PRIu64 "}", l.requests, l.bytes);
}

static emu_text trimmed(emu_text t)
{
    while (t.size && (*t.at == ' ' || *t.at == '\t'))
        t = (emu_text){t.at + 1, t.size - 1};
    return t;
}

static void write_lines(FILE *f, const emu_counts *c)
{
    const emu_program *p = c->program;
    const char *gap = "";
    emu_count_row **rows = sort_rows(c);
    fputs(",\"lines\":[", f);
    for (size_t n = 0; n < p->op_count; n++) {
        const emu_instruction *i = p->instructions[p->ops[n].at];
        const emu_count_op *o = &c->total.ops[n];
        if (!p->uses[n].is_first || !o->warps)
            continue;
        fprintf(f,
                "%s{\"line\":%u,\"class\":\"%s\",\"thread\":%" PRIu64 ",\"warp\":%" PRIu64
                ",\"slots\":%" PRIu64,
                gap, i->line, emu_work_class_names[emu_work_class_of(i)], o->lanes, o->warps, o->slots);
        write_line_accesses(f, c, rows, n);
        if (emu_is_branch(i))
            fprintf(f, ",\"divergent\":%" PRIu64, o->parted);
        if (emu_multiply_adds(i))
            fprintf(f, ",\"multiply_adds\":%" PRIu64, emu_multiply_adds(i) * o->warps);
        fputs(",\"text\":", f);
        emu_write_string(f, trimmed(i->text));
        fputs("}", f);
        gap = ",";
    }
    fputs("]", f);
    free(rows);
}

/* ---- the file ------------------------------------------------------------------------------------------------------ */

#define LINE_BEGINS "{\"launch\":"

static void write_launch(FILE *f, const emu_counts *c, const emu_launch *l)
{
    fprintf(f, LINE_BEGINS "%" PRIu64 ",\"kernel\":", l->serial);
    emu_write_string(f, l->program->kernel->name);
    fprintf(f, ",\"device\":\"sm_%u\"", l->device_number);
    write_triple(f, "grid", l->grid);
    write_triple(f, "block", l->block);
    fprintf(f, ",\"static_shared_bytes\":%u,\"dynamic_shared_bytes\":%u,\"result\":%d",
            l->program->static_shared_bytes, l->dynamic_shared_bytes, emu_result_of(l));
    if (emu_result_of(l) == 0) {
        sums s = add_up(c);
        write_sums(f, c, &s);
        if (l->program->has_bulk)
            write_bulk(f, c, &s);
        write_shared(f, c->total.shared);
        write_users(f, c);
        write_local(f, c->total.local);
        write_rows(f, c, l);
        if (c->wants_lines)
            write_lines(f, c);
    }
    fputs("}\n", f);
}

bool emu_may_replace(const char *path, const char *begins)
{
    char front[64] = "";
    struct stat about;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0)
        return true;
    FILE *f = fopen(path, "r");
    if (!f)
        return true; /* writing the file will report the error */
    front[fread(front, 1, strlen(begins), f)] = '\0';
    fclose(f);
    return strcmp(front, begins) == 0;
}

void emu_write_report(const emu_launch *l, const char *path)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool is_begun, is_refused; /* refused: a message was printed, and nothing is written */
    pthread_mutex_lock(&lock);
    if (!is_begun && !is_refused && !emu_may_replace(path, LINE_BEGINS)) {
        is_refused = true;
        fprintf(stderr,
                "kiln emulator: KILN_EMU_REPORT: %s is not a report, so it is not overwritten; no report is "
                "written\n",
                path);
    }
    if (is_refused) {
        pthread_mutex_unlock(&lock);
        return;
    }
    FILE *f = fopen(path, is_begun ? "a" : "w");
    if (f) {
        write_launch(f, l->counts, l);
        is_begun = true;
        if (fclose(f) != 0)
            f = NULL;
    }
    if (!f) { /* on a full disk the last line may be cut: none follows it */
        is_refused = true;
        fprintf(stderr, "kiln emulator: cannot write KILN_EMU_REPORT to %s; no more is written\n", path);
    }
    pthread_mutex_unlock(&lock);
}
