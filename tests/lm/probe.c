/* Inspects kiln-lm's model between its steps, for comparison with other programs.
 *
 *     lm_probe MODEL.gguf TOKENS FOLDER [--driver PATH] [--steps N]   writes the stream after each layer
 *     lm_probe MODEL.gguf TOKENS --greedy N [--driver PATH]           prints the N tokens that follow
 *
 * TOKENS is a text file of numbers. FOLDER gets layer_00.f32 and so on, the residual stream after each layer, as
 * f32[tokens, width], and logits.f32, f32[tokens, vocabulary]; the last N tokens are read one by one [0].
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder.h"
#include "sample.h"

enum { MOST_TOKENS = 1024 };

static bool append(device *d, const char *folder, const char *name, CUdeviceptr from, size_t bytes)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.f32", folder, name);
    char *copy = malloc(bytes);
    FILE *out = fopen(path, "ab");
    bool ok = copy && out && device_download(d, copy, from, bytes) && fwrite(copy, 1, bytes, out) == bytes;
    ok = out && fclose(out) == 0 && ok;
    free(copy);
    return ok || failed("cannot write %s", path);
}

static bool probe(decoder *n, const int32_t *tokens, uint32_t count, const char *folder)
{
    const model *m = n->model;
    char name[32];
    if (!decoder_embed(n, tokens, count))
        return false;
    for (uint32_t i = 0; i < m->layer_count; i++) {
        snprintf(name, sizeof name, "layer_%02u", i);
        if (!decoder_layer(n, i, count) ||
            !append(n->device, folder, name, n->state, (size_t)count * m->width * sizeof(float)))
            return false;
    }
    n->length += count;
    return decoder_head(n, count) &&
           append(n->device, folder, "logits", n->logits, (size_t)count * m->vocabulary * sizeof(float));
}

static bool run(device *d, model *m, const int32_t *tokens, uint32_t count, uint32_t steps,
                const char *folder)
{
    decoder n;
    if (!decoder_open(&n, m, d, count + 1, (decoder_options){.has_all_logits = true}))
        return false;
    for (uint32_t from = 0; from < count;) {
        const uint32_t together = from < count - steps ? count - steps - from : 1;
        const uint32_t now = together < CHUNK ? together : CHUNK;
        if (!probe(&n, tokens + from, now, folder))
            return false;
        from += now;
    }
    return true;
}

/* Runs like kiln-lm: the prompt in chunks, then a graph for each token. */
static bool generate(device *d, const model *m, const int32_t *tokens, uint32_t count, uint32_t most)
{
    decoder n;
    uint32_t token;
    sampler greedy = {0};
    float *logits = malloc(m->vocabulary * sizeof *logits);
    bool ok = logits && decoder_open(&n, m, d, count + most, (decoder_options){0});
    for (uint32_t from = 0; ok && from < count; from += CHUNK)
        ok = decoder_read(&n, tokens + from, count - from < CHUNK ? count - from : CHUNK);
    for (uint32_t i = 0; ok && i < most; i++) {
        ok = device_download(d, logits, n.logits, m->vocabulary * sizeof *logits) &&
             sample(&greedy, logits, m->vocabulary, &token) && printf("%u\n", token) > 0 &&
             (i + 1 == most || decoder_step(&n, (int32_t)token));
    }
    free(logits);
    if (greedy.nan_count)
        return failed("%llu logits were NaN", (unsigned long long)greedy.nan_count);
    return ok;
}

static uint32_t read_tokens(const char *path, int32_t *tokens)
{
    static char text[16 * MOST_TOKENS];
    FILE *in = fopen(path, "r");
    uint32_t count = 0;
    if (!in)
        return 0;
    text[fread(text, 1, sizeof text - 1, in)] = 0;
    fclose(in);
    for (char *at = text, *end; count < MOST_TOKENS; at = end) {
        tokens[count] = (int32_t)strtol(at, &end, 10);
        if (end == at)
            break;
        count++;
    }
    return count;
}

static int usage(void)
{
    fprintf(stderr, "usage: lm_probe MODEL.gguf TOKENS FOLDER [--driver PATH] [--steps N]\n"
                    "       lm_probe MODEL.gguf TOKENS --greedy N [--driver PATH]\n");
    return 2;
}

int main(int argc, char **argv)
{
    static int32_t tokens[MOST_TOKENS];
    static device d;
    static model m;
    gguf_error error;
    const char *driver = NULL, *folder = NULL;
    uint32_t steps = 0, greedy = 0;
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--driver") == 0 && i + 1 < argc)
            driver = argv[++i];
        else if (strcmp(argv[i], "--steps") == 0 && i + 1 < argc)
            steps = (uint32_t)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--greedy") == 0 && i + 1 < argc)
            greedy = (uint32_t)strtoul(argv[++i], NULL, 10);
        else
            folder = argv[i];
    }
    const uint32_t count = argc > 2 ? read_tokens(argv[2], tokens) : 0;
    if (count == 0 || steps > count || !folder == !greedy)
        return usage();
    gguf_file *file = gguf_open(argv[1], &error);
    const bool ok =
        (file || failed("%s: %s", argv[1], error.text)) && model_open(&m, file) && device_open(&d, driver) &&
        model_upload(&m, file, &d) &&
        (greedy ? generate(&d, &m, tokens, count, greedy) : run(&d, &m, tokens, count, steps, folder));
    device_close(&d);
    model_close(&m);
    gguf_close(file);
    return !ok;
}
