/* The command line of kiln-verify. */
#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include "options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/files.h"
#include "../support/options.h"
#include "verify.h"

/* The host stores and computes every element, too. */
#define MOST_ELEMENTS (UINT64_C(1) << 32)

enum { DEFAULT_PROBLEMS = 400, FULL_PROBLEMS = 5000 };

void options_print_help(void)
{
    char inputs[16] = "all";
    if (kiln_verify_inputs > 0)
        snprintf(inputs, sizeof inputs, "%u", kiln_verify_inputs);
    printf(
        "usage: kiln-verify [OPTION]...\n"
        "       kiln-verify merge PART.json... [-o FILE] [--junit FILE] [--no-times] [--force]\n"
        "Runs every kernel of a bundle at sizes around its edges, on difficult inputs, and compares the results with a\n"
        "float64 reference.\n"
        "\n"
        "  --list              print the variants and which have a reference; run nothing\n"
        "  --filter TEXT       variants with TEXT in the id, or only the one with that id; * stands for any text\n"
        "  --own-images        only variants with an image for exactly this target\n"
        "  --part I/N          only part I of N, from 1 on: each variant is in one part, and all parts cost about the same\n"
        "  --driver PATH       this driver library (default: libcuda.so.1)\n"
        "  --device N          the driver's N-th device (default: 0)\n"
        "  --seed N            seed of the random inputs (default: 1)\n"
        "  --max-elements N    skip problems with more elements in all buffers together (default: 262144), except the smallest\n"
        "                      with a whole tile\n"
        "  --inputs N          N kinds of input at each size, and the next kinds at the next size (default: %s)\n"
        "  --input NAME        only this kind of input, named as in reports, at every size\n"
        "  --big N             one more problem of about N elements, regardless of --max-elements\n"
        "  --size NAME=N       only sizes at which this argument is N; may be combined. If no tried size has N: the smallest\n"
        "                      tried sizes, with this argument set to N\n"
        "  --full              every input at every size, and more sizes\n"
        "  --data FILE         raw little-endian float32 numbers of a real model, as one more input\n"
        "  --mutate N          make N different changes, each of a word of the kernels' PTX, and report changes that the cases\n"
        "                      above do not find; --seed chooses the changes, the inputs have seed 1\n"
        "  --mutants LIST      only these mutants, by their numbers in a report: 3,17,256\n"
        "  --mutate-least P    fail if less than P percent of them are found (default: 0)\n"
        "  --jobs N            processes that run mutants in parallel (default: one per processor)\n"
        "  --json FILE         also write the results as JSON; - is standard output. During the run, FILE.journal has the\n"
        "                      finished variants\n"
        "  --junit FILE        also write the results as JUnit XML, for CI servers; - is standard output\n"
        "  --force             replace files of other programs at FILE\n"
        "  --no-times          omit times: two runs write the same bytes\n"
        "  --resume            continue from FILE.journal: variants in it do not run again\n"
        "  --overlap           on sm_90 and newer, if a kernel itself waits for the preceding launch, precede it by a launch\n"
        "                      that writes its inputs late; the emulated driver always does so\n"
        "  --queue             read variant ids from standard input, one per line, run each immediately, and write a line of\n"
        "                      JSON for each to standard output; the first line has the facts of the run\n"
        "  --launch-lock FILE  lock FILE while a kernel runs, so that processes sharing a device run one at a time\n"
        "  --launch-seconds N  end the process if a launch has not ended after N seconds\n"
        "  --help              print this\n"
        "\n"
        "merge joins the results of parts: it prints their table, and writes them to FILE.\n"
        "\n"
        "cases: sizes with inputs that ran. refused: sizes that break a rule, and calls with null or misaligned pointers,\n"
        "each of which the function must refuse without launching anything.\n"
        "\n"
        "found: a wrong element, a report of the emulated driver, or a launch that does not end. A change that does not load\n"
        "is replaced by another. If ptxas is on the PATH, changes that give the same machine code do not count.\n"
        "\n"
        "Exit status: 0 all correct, 1 something is wrong, 2 bad usage, 77 no driver, no device, or one that runs none of the\n"
        "variants (1 instead if --driver or --device asked for it); 4 the context is lost (--queue: start another process for\n"
        "the other ids), 5 a launch has not ended after --launch-seconds. With --mutate, a change that is not found is\n"
        "a failure only with --mutate-least. A kernel that is wrong unchanged is a failure, and so is a change that ends\n"
        "its process.\n",
        inputs);
}

/* "3/16" */
static bool read_part(const option_table *t, const option_row *row, const char *text, void *place)
{
    char number[24];
    part_share *part = place;
    size_t length = strcspn(text, "/");
    if (text[length] != '/' || length >= sizeof number)
        return option_refuse(t, row, text, "is not I/N");
    memcpy(number, text, length);
    number[length] = '\0';
    if (!option_number(t, row, number, &part->number) || !option_number(t, row, text + length + 1, &part->of))
        return false;
    return part->number <= part->of || option_refuse(t, row, text, "is not I/N with I from 1 to N");
}

/* "k=12288" */
static bool read_size(const option_table *t, const option_row *row, const char *text, void *place)
{
    asked_sizes *asked = place;
    size_value size = {.value = 0};
    size_t length = strcspn(text, "=");
    if (text[length] != '=' || length == 0 || length >= sizeof size.name)
        return option_refuse(t, row, text, "is not NAME=N");
    memcpy(size.name, text, length);
    if (asked_find(asked, size.name))
        return option_refuse(t, row, text, "names a size that has a value already");
    if (asked->count == MOST_ASKED)
        return option_refuse(t, row, text, "is one too many");
    if (!option_number(t, row, text + length + 1, &size.value))
        return false;
    asked->items[asked->count++] = size;
    return true;
}

static const option_row option_rows[] = {
    {OPTION_ROW("list", OPTION_FLAG, options, is_listing)},
    {OPTION_ROW("filter", OPTION_TEXT, options, filter), .least = 1, .is_told = true},
    {OPTION_ROW("own-images", OPTION_FLAG, options, wants_own_images), .is_told = true},
    {OPTION_ROW("part", OPTION_OTHER, options, part), .least = 1, .most = MOST_PARTS, .read = read_part},
    {OPTION_ROW("driver", OPTION_TEXT, options, driver), .least = 1},
    {OPTION_ROW("device", OPTION_NUMBER, options, device), .most = 1023},
    {OPTION_ROW("seed", OPTION_NUMBER, options, run.seed), .most = UINT64_MAX},
    {OPTION_ROW("max-elements", OPTION_NUMBER, options, run.limits.max_elements), .least = 64,
     .most = MOST_ELEMENTS, .is_told = true},
    {OPTION_ROW("inputs", OPTION_NUMBER, options, run.inputs), .least = 1, .most = MOST_INPUTS,
     .is_told = true},
    {OPTION_ROW("input", OPTION_TEXT, options, run.input), .least = 1, .is_told = true},
    {OPTION_ROW("big", OPTION_NUMBER, options, run.limits.big), .most = MOST_ELEMENTS, .is_told = true},
    {OPTION_ROW("size", OPTION_OTHER, options, run.limits.only), .most = INT64_MAX, .read = read_size,
     .is_told = true},
    {OPTION_ROW("full", OPTION_FLAG, options, run.limits.is_full), .is_told = true},
    {OPTION_ROW("data", OPTION_TEXT, options, data), .least = 1, .is_told = true},
    {OPTION_ROW("mutate", OPTION_NUMBER, options, mutants), .least = 1, .most = 1000000},
    {OPTION_ROW("mutants", OPTION_TEXT, options, only), .least = 1},
    {OPTION_ROW("mutate-least", OPTION_NUMBER, options, least), .most = 100},
    {OPTION_ROW("jobs", OPTION_NUMBER, options, jobs), .least = 1, .most = 256},
    {OPTION_ROW("json", OPTION_TEXT, options, json), .least = 1},
    {OPTION_ROW("junit", OPTION_TEXT, options, junit), .least = 1},
    {OPTION_ROW("force", OPTION_FLAG, options, replaces_all)},
    {OPTION_ROW("no-times", OPTION_FLAG, options, wants_no_times)},
    {OPTION_ROW("resume", OPTION_FLAG, options, resumes)},
    {OPTION_ROW("overlap", OPTION_FLAG, options, overlaps), .is_told = true},
    {OPTION_ROW("queue", OPTION_FLAG, options, is_queue)},
    {OPTION_ROW("launch-lock", OPTION_TEXT, options, launch_lock), .least = 1},
    {OPTION_ROW("launch-seconds", OPTION_NUMBER, options, launch_seconds), .least = 1, .most = 86400},
    {OPTION_ROW("help", OPTION_FLAG, options, wants_help)},
};

static const option_table table = {
    .program = "kiln-verify", .rows = option_rows, .count = sizeof option_rows / sizeof option_rows[0]};

/* "3,17" */
static bool is_number_list(const char *text)
{
    for (size_t digits; (digits = strspn(text, "0123456789")) > 0; text += digits + 1)
        if (text[digits] == '\0')
            return true;
        else if (text[digits] != ',')
            return false;
    return false;
}

static bool complain(const char *what)
{
    fprintf(stderr, "kiln-verify: %s\n", what);
    return false;
}

static bool check_together(const options *o)
{
    if (o->only && !is_number_list(o->only)) {
        fprintf(stderr, "kiln-verify: --mutants: '%s' is no list of numbers with commas between\n", o->only);
        return false;
    }
    if (o->mutants == 0 && (o->least || o->jobs || o->only))
        return complain("--mutants, --mutate-least and --jobs are for --mutate");
    if (o->mutants && (o->part.of > 1 || o->resumes || o->wants_no_times))
        return complain(
            "--part, --resume and --no-times are not for --mutate: which mutants there are depends on "
            "all variants together");
    if (o->mutants && o->junit)
        return complain("--junit is not for --mutate: mutants are no tests of the bundle");
    if (o->is_queue && (o->part.of > 1 || o->resumes || o->json || o->junit || o->mutants || o->is_listing))
        return complain(
            "--queue reads what runs and writes what came out by itself: --part, --resume, --json, --junit, "
            "--mutate and --list are not for it");
    if (o->mutants && (o->launch_lock || o->launch_seconds))
        return complain("--launch-lock and --launch-seconds are not for --mutate");
    if (o->wants_no_times && !o->json && !o->junit)
        return complain("--no-times is for --json and --junit");
    if (o->json && o->junit && is_same_output(o->json, o->junit))
        return complain("--json and --junit name the same file");
    if (o->resumes && (!o->json || !is_plain_file(o->json)))
        return complain("--resume goes on with the journal of --json FILE: it needs one, and a plain file");
    return true;
}

bool options_read(options *o, int argc, char **argv)
{
    *o = (options){.part = {1, 1},
                   .device = DEVICE_UNNAMED,
                   .run = {.seed = DEFAULT_SEED,
                           .limits = {.max_elements = DEFAULT_ELEMENTS, .max_problems = DEFAULT_PROBLEMS}}};
    if (!options_parse(&table, argc, argv, o, &o->given) || !check_together(o))
        return false;
    if (o->run.limits.is_full)
        o->run.limits.max_problems = FULL_PROBLEMS;
    o->run.may_add = o->run.inputs == 0;
    if (o->run.inputs == 0)
        o->run.inputs = o->run.limits.is_full || kiln_verify_inputs == 0 ? MOST_INPUTS : kiln_verify_inputs;
    return true;
}

/* Quotes text for a shell. */
static void write_word(FILE *out, const char *text)
{
    if (*text && !text[strcspn(text, " \t\n'\"\\")]) {
        fputs(text, out);
        return;
    }
    fputc('\'', out);
    for (; *text; text++)
        fprintf(out, *text == '\'' ? "'\\''" : "%c", *text);
    fputc('\'', out);
}

static void write_option(FILE *out, const options *o, const option_row *row)
{
    const char *place = (const char *)o + row->place;
    const asked_sizes *asked = (const void *)place;
    if (row->kind == OPTION_OTHER) { /* --size */
        for (size_t i = 0; i < asked->count; i++)
            fprintf(out, "%s--%s %s=%llu", ftell(out) ? " " : "", row->name, asked->items[i].name,
                    (unsigned long long)asked->items[i].value);
        return;
    }
    fprintf(out, "%s--%s", ftell(out) ? " " : "", row->name);
    if (row->kind != OPTION_FLAG)
        fputc(' ', out);
    if (row->kind == OPTION_NUMBER)
        fprintf(out, "%llu", (unsigned long long)*(const uint64_t *)(const void *)place);
    else if (row->kind == OPTION_TEXT)
        write_word(out, *(const char *const *)(const void *)place);
}

char *options_describe(const options *o, pool *memory)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    for (size_t i = 0; out && i < sizeof option_rows / sizeof option_rows[0]; i++)
        if (option_rows[i].is_told && (o->given >> i & 1))
            write_option(out, o, &option_rows[i]);
    if (!out || fclose(out) != 0) {
        fputs("kiln-verify: out of memory\n", stderr);
        exit(3);
    }
    char *copy = pool_copy(memory, text, length);
    free(text);
    return copy;
}
