/* KILN_EMU_RECORD=PATH: writes a line of JSON per launch to PATH.PID.jsonl. A place, [first byte, bytes], points into
   PATH.PID.bytes, which has the texts and the memory. A launch can reach the variables of its module, the allocations that its
   parameters point to, those that these point to, and so on. "pointers" are the offsets of words that hold an address in that
   memory, because another driver allocates it elsewhere. */
#include "record.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_BYTES ((uint64_t)64 << 20) /* limit of a launch's memory */

typedef struct recorded {
    uint64_t at, bytes;
    const emu_symbol *variable; /* NULL: an allocation */
    char *before;
} recorded;

struct emu_record {
    const emu_work *work;
    const char *left_out; /* the reason why the launch cannot be repeated */
    recorded *blocks;
    size_t count, room;
    uint64_t bytes;
};

/* ---- the memory that a launch can reach ----------------------------------------------------------------------------- */

static bool has_block(const emu_record *r, uint64_t address)
{
    for (size_t i = 0; i < r->count; i++)
        if (address - r->blocks[i].at <= r->blocks[i].bytes)
            return true;
    return false;
}

static void add_block(emu_record *r, uint64_t at, uint64_t bytes, const emu_symbol *variable)
{
    r->blocks = emu_with_room(r->blocks, r->count, &r->room, sizeof *r->blocks);
    r->bytes += bytes;
    if (r->bytes > MOST_BYTES)
        r->left_out = "more than 64 MiB of memory";
    r->blocks[r->count++] = (recorded){.at = at, .bytes = bytes, .variable = variable};
}

static uint64_t word_at(const char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static void follow_pointers(emu_record *r, const char *bytes, uint64_t count)
{
    for (uint64_t i = 0; i + 8 <= count; i += 8) {
        uint64_t address = word_at(bytes + i);
        if (!emu_memory_contains(address) || has_block(r, address))
            continue;
        const emu_allocation *a = emu_memory_holding(address, 0);
        if (a)
            add_block(r, a->base, a->bytes, NULL);
    }
}

static void add_variables(emu_record *r, CUmodule m)
{
    for (size_t i = 0; i < m->parsed->variable_count; i++) {
        const emu_symbol *s = m->parsed->variables[i];
        if (!s->bytes || (s->space != EMU_GLOBAL && s->space != EMU_CONST))
            continue;
        uint64_t start = s->space == EMU_CONST ? m->const_bank->base : 0;
        if (s->scope != m->parsed->scope)
            r->left_out = "a variable inside a function";
        else
            add_block(r, start + m->addresses[s->sequence], s->bytes, s);
    }
}

static const char *bytes_of(const recorded *b)
{
    return (const char *)(uintptr_t)b->at;
}

emu_record *emu_begin_record(const emu_work *work)
{
    const char *path = getenv("KILN_EMU_RECORD"), *only = getenv("KILN_EMU_BLOCKS");
    if (!path || !*path || (only && *only))
        return NULL;
    emu_record *r = emu_alloc(sizeof *r);
    r->work = work;
    if (work->launch.function->program->has_maps)
        r->left_out = "tensor maps, whose bytes each driver encodes in its own way";
    add_variables(r, work->launch.function->module);
    follow_pointers(r, work->launch.parameters, work->launch.parameter_bytes);
    for (size_t i = 0; i < r->count && !r->left_out; i++)
        follow_pointers(r, bytes_of(&r->blocks[i]), r->blocks[i].bytes);
    for (size_t i = 0; i < r->count && !r->left_out; i++) {
        recorded *b = &r->blocks[i];
        b->before = emu_alloc(b->bytes);
        memcpy(b->before, bytes_of(b), b->bytes);
    }
    return r;
}

/* ---- the files ----------------------------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    pid_t process; /* the process that opened the files; a forked child opens its own */
    FILE *lines, *bytes;
    char *text; /* the last text that was written, and its place in the file */
    uint64_t text_at;
} files = {.lock = PTHREAD_MUTEX_INITIALIZER};

static FILE *open_file(const char *ending)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.%ld.%s", getenv("KILN_EMU_RECORD"), (long)getpid(), ending);
    FILE *f = fopen(path, "wb");
    if (!f)
        fprintf(stderr, "kiln emulator: KILN_EMU_RECORD: %s cannot be written\n", path);
    return f;
}

static bool open_files(void)
{
    if (files.process != getpid()) {
        files.process = getpid();
        free(files.text);
        files.text = NULL;
        files.lines = open_file("jsonl");
        files.bytes = open_file("bytes");
    }
    return files.lines && files.bytes;
}

static uint64_t put_bytes(const char *bytes, uint64_t count)
{
    uint64_t at = (uint64_t)ftello(files.bytes);
    fwrite(bytes, 1, count, files.bytes);
    return at;
}

static uint64_t put_text(const char *text)
{
    if (!files.text || strcmp(files.text, text) != 0) {
        free(files.text);
        files.text = emu_alloc(strlen(text) + 1);
        memcpy(files.text, text, strlen(text) + 1);
        files.text_at = put_bytes(text, strlen(text));
    }
    return files.text_at;
}

static void print_pointers(const emu_record *r, const char *name, const char *bytes, uint64_t count)
{
    const char *gap = "";
    fprintf(files.lines, ",\"%s\":[", name);
    for (uint64_t i = 0; i + 8 <= count; i += 8)
        if (has_block(r, word_at(bytes + i))) {
            fprintf(files.lines, "%s%" PRIu64, gap, i);
            gap = ",";
        }
    fputs("]", files.lines);
}

/* Writes all bytes from before the launch, and the range that the launch changed. */
static void print_block(const emu_record *r, const recorded *b, CUresult result)
{
    const char *after = bytes_of(b);
    uint64_t first = 0, end = b->bytes;
    fprintf(files.lines, "{\"at\":%" PRIu64 ",\"bytes\":%" PRIu64, b->at, b->bytes);
    if (b->variable)
        fprintf(files.lines, ",\"name\":\"%.*s\"", EMU_TEXT(b->variable->name));
    fprintf(files.lines, ",\"before\":[%" PRIu64 ",%" PRIu64 "]", put_bytes(b->before, b->bytes), b->bytes);
    print_pointers(r, "pointers", b->before, b->bytes);
    while (first < end && b->before[first] == after[first])
        first++;
    while (end > first && b->before[end - 1] == after[end - 1])
        end--;
    if (first < end && result == CUDA_SUCCESS) {
        fprintf(files.lines, ",\"first\":%" PRIu64 ",\"after\":[%" PRIu64 ",%" PRIu64 "]", first,
                put_bytes(after + first, end - first), end - first);
        print_pointers(r, "pointers_after", after, b->bytes);
    }
    fputs("}", files.lines);
}

static void print_launch(const emu_record *r, CUresult result)
{
    FILE *f = files.lines;
    CUfunction k = r->work->launch.function;
    const uint32_t *grid = r->work->launch.grid, *block = r->work->launch.block,
                   *cluster = r->work->launch.cluster;
    const char *text = k->module->source + 1, *parameters = r->work->launch.parameters;
    fprintf(f, "{\"device\":%u,\"target\":\"%.*s\",\"text\":[%" PRIu64 ",%zu],\"entry\":\"%s\",\"result\":%d",
            k->module->context->device->model->number, EMU_TEXT(k->module->parsed->target.name),
            put_text(text), strlen(text), k->name, (int)result);
    fprintf(f, ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"shared_bytes\":%u,\"dependent\":%s", grid[0],
            grid[1], grid[2], block[0], block[1], block[2], r->work->launch.shared_bytes,
            r->work->launch.is_dependent ? "true" : "false");
    if (r->work->launch.is_explicit_cluster)
        fprintf(f, ",\"cluster\":[%u,%u,%u]", cluster[0], cluster[1], cluster[2]);
    if (r->left_out) {
        fprintf(f, ",\"left_out\":\"%s\"}\n", r->left_out);
        return;
    }
    fputs(",\"parameters\":\"", f);
    for (uint32_t i = 0; i < r->work->launch.parameter_bytes; i++)
        fprintf(f, "%02x", (unsigned char)parameters[i]);
    fputs("\"", f);
    print_pointers(r, "pointers", parameters, r->work->launch.parameter_bytes);
    fputs(",\"blocks\":[", f);
    for (size_t i = 0; i < r->count; i++) {
        fputs(i ? "," : "", f);
        print_block(r, &r->blocks[i], result);
    }
    fputs("]}\n", f);
}

void emu_end_record(emu_record *r, CUresult result)
{
    if (!r)
        return;
    pthread_mutex_lock(&files.lock);
    if (open_files()) {
        print_launch(r, result);
        fflush(files.bytes);
        fflush(files.lines);
    }
    pthread_mutex_unlock(&files.lock);
    for (size_t i = 0; i < r->count; i++)
        free(r->blocks[i].before);
    free(r->blocks);
    free(r);
}
