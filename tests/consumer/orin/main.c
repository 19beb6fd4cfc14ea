/* Runs a token through decoder layers and compares with float64: orin-layer [--full] [DRIVER].
 *
 * The first token is launched kernel by kernel. The launches are then recorded as a CUDA graph, which is replayed for the tokens
 * that follow. Small sizes by default, for the emulated driver; --full takes those of an 8-billion-parameter model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"

enum { REPLAYED = 3 };

static const sizes small = {.width = 256, .hidden = 512, .q_heads = 16, .context = 64};
static const sizes full = {.width = 4096, .hidden = 14336, .q_heads = 32, .context = 2048};

/* Sets the inputs of the token at this position, and a random embedding before the first layer. */
static bool begin_token(const model *m, device *d, uint32_t position, token *now)
{
    uint64_t random = position;
    float *x = malloc(m->size.width * sizeof *x);
    if (!x)
        return failed("out of memory");
    for (uint32_t i = 0; i < m->size.width; i++)
        x[i] = (float)random_unit(&random);
    *now = (token){.slot = model_slot(m, position), .position = position, .length = position + 1};
    const bool ok = device_upload(d, m->layers[0].in, x, m->size.width * sizeof *x) &&
                    device_upload(d, m->token, now, sizeof *now);
    free(x);
    return ok;
}

static bool run(model *m, device *d, const sizes *size)
{
    uint32_t position = size->context * 3 / 4 - 2; /* the tokens cross a page boundary of the cache */
    token now;
    if (!model_open(m, size, d) || !model_preload(m, d))
        return false;
    printf("%s, sm_%u, driver of CUDA %d.%d; %d layers, width %u, %u and %d heads\n", d->name,
           d->loader.device.sm, d->version / 1000, d->version % 1000 / 10, LAYERS, size->width, size->q_heads,
           K_HEADS);

    if (!begin_token(m, d, position, &now) || !model_launch(m, d) || !model_check(m, d, &now))
        return false;
    if (!device_record(d) || !model_launch(m, d) || !device_recorded(d))
        return false;
    for (int i = 0; i < REPLAYED; i++)
        if (!begin_token(m, d, ++position, &now) || !device_replay(d))
            return false;
    puts("after a graph of the same launches:");
    return model_check(m, d, &now);
}

int main(int argc, char **argv)
{
    static device d;
    static model m;
    bool is_full = false, ptx_only = false;
    int at = 1;
    for (; at < argc; at++)
        if (strcmp(argv[at], "--full") == 0)
            is_full = true;
        else if (strcmp(argv[at], "--ptx") == 0)
            ptx_only = true;
        else
            break;
    if (argc > at + 1 || (at < argc && argv[at][0] == '-')) {
        fputs("usage: orin-layer [--full] [--ptx] [DRIVER]\n", stderr);
        return 2;
    }
    const bool ok = device_open(&d, argv[at], ptx_only) && run(&m, &d, is_full ? &full : &small);
    if (ok)
        puts("right");
    model_close(&m);
    device_close(&d);
    return !ok;
}
