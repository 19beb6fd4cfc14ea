/* Runs one decoder layer on real weights, as any application would: with a bundle's functions, the runtime and the driver table.
 *
 *     kiln-layer WEIGHTS.f32 [JOB] [--driver PATH]
 *
 * train: a step of a low-rank adapter over NF4 weights. attend: a prompt, and tokens after it, through attention with grouped
 * heads. Without JOB: both.
 * The weights are tests/data/minilm_l6_ffn_512x384.f32, a trained model's feed-forward matrix, cut to the layer's shapes.
 *
 * Prints a line per product: the worst error relative to its bound; the relative root-mean-square error compared with float64
 * with the same quantised weights, and with float64 with the original weights (for attention: with the same rounded Q, K and V,
 * and with the original ones). Exit status: 0 if every error is within its bound, 1 if not, 2 for bad usage, 77 without a driver
 * or device.
 */
#include "layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool train(const matrix *real)
{
    bool fine = train_adapter(real, F32);
    fine &= train_adapter(real, BF16);
    return fine;
}

typedef struct job {
    const char *name;
    bool (*run)(const matrix *real);
} job;

static const job jobs[] = {{"train", train}, {"attend", attend_sequences}};

enum { JOBS = sizeof jobs / sizeof *jobs };

typedef struct options {
    const char *weights, *driver;
    const job *only; /* null: both */
} options;

static const job *find_job(const char *name)
{
    for (int i = 0; i < JOBS; i++)
        if (strcmp(jobs[i].name, name) == 0)
            return &jobs[i];
    return NULL;
}

/* Returns the mistake, or null. */
static const char *read_options(int argc, char **argv, options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--driver") == 0) {
            if (++i == argc)
                return "--driver wants a path";
            o->driver = argv[i];
        } else if (word[0] == '-') {
            return "there is one option, --driver";
        } else if (!o->weights) {
            o->weights = word;
        } else if (o->only) {
            return "one job at a time, or both";
        } else if (!(o->only = find_job(word))) {
            return "the jobs are train and attend";
        }
    }
    return o->weights ? NULL : "there are no weights";
}

static bool run(const matrix *real, const job *only)
{
    bool fine = true;
    report_header();
    for (int i = 0; i < JOBS; i++)
        if (!only || only == &jobs[i])
            fine &= jobs[i].run(real);
    puts(fine ? "result    every product is within its bound"
              : "result    WRONG: a product is beyond its bound, or worse");
    return fine;
}

int main(int argc, char **argv)
{
    options o = {0};
    matrix real;
    const char *wrong = read_options(argc, argv, &o);
    if (wrong) {
        fprintf(stderr,
                "kiln-layer: %s\nusage: kiln-layer WEIGHTS.f32 [decode | train | attend] [--driver PATH]\n",
                wrong);
        return 2;
    }
    if (!weights_read(o.weights, &real))
        return 2;
    if (!device_open(o.driver)) {
        free(real.values);
        return o.driver ? 1 : 77;
    }
    const bool fine = run(&real, o.only);
    device_close();
    free(real.values);
    return !fine;
}
