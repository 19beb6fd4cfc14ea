/* One decoder layer on real weights, through what any application has: a bundle's functions, the runtime, the driver table.
 *
 *     kiln-layer WEIGHTS.f32 [--driver PATH]
 *
 * Decoding: a token through RMSNorm fused with Q4_K projections. Training: a step of a low-rank adapter over NF4 weights.
 * The weights are tests/data/minilm_l6_ffn_512x384.f32, a trained model's feed-forward matrix, cut to the layer's shapes.
 *
 * A line per product has the worst error as a share of its bound; the relative root-mean-square error against float64 with
 * the same quantised weights, and against float64 with the weights as they were. Exit status: 0 when every error is within
 * its bound, 1 when not, 2 for bad usage, 77 when there is no driver or device to run on.
 */
#include "layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool run_all(const matrix *real)
{
    report_header();
    bool fine = decode_token(real, false);
    fine &= decode_token(real, true);
    fine &= train_adapter(real, F32);
    fine &= train_adapter(real, BF16);
    puts(fine ? "result    every product is within its bound"
              : "result    WRONG: a product is beyond its bound");
    return fine;
}

int main(int argc, char **argv)
{
    const char *path = NULL, *driver_path = NULL;
    matrix real;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--driver") == 0 && i + 1 < argc)
            driver_path = argv[++i];
        else if (!path && argv[i][0] != '-')
            path = argv[i];
        else
            path = "";
    }
    if (!path || !*path) {
        fprintf(stderr, "usage: kiln-layer WEIGHTS.f32 [--driver PATH]\n");
        return 2;
    }
    if (!weights_read(path, &real))
        return 2;
    if (!device_open(driver_path)) {
        free(real.values);
        return driver_path ? 1 : 77;
    }
    const bool fine = run_all(&real);
    device_close();
    free(real.values);
    return !fine;
}
