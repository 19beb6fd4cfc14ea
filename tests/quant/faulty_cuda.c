/* The emulated driver, with one mistake in the kernel that it is given: where an image is the text in the file that
 * KILN_FAULT_FROM names, the text in KILN_FAULT_TO is loaded in its stead. Any other image is refused, so that no fault goes
 * unplanted. Every other entry point is the emulated driver's own, which this library is linked with. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUDA_ERROR_INVALID_IMAGE = 200, MOST_BYTES = 1 << 20 };

typedef int load_function(void **module, const void *image, unsigned count, int *options, void **values);

load_function faulty_load __asm__("cuModuleLoadDataEx");

static const char *read_text(const char *variable)
{
    static char texts[2][MOST_BYTES];
    static unsigned used;
    char *text = texts[used++ % 2];
    const char *path = getenv(variable);
    FILE *in = path ? fopen(path, "rb") : NULL;
    size_t bytes = in ? fread(text, 1, MOST_BYTES - 1, in) : 0;
    text[bytes] = '\0';
    if (in)
        fclose(in);
    return text;
}

int faulty_load(void **module, const void *image, unsigned count, int *options, void **values)
{
    load_function *load = NULL;
    void *symbol = dlsym(RTLD_NEXT, "cuModuleLoadDataEx");
    memcpy(&load, &symbol, sizeof load);
    const char *from = read_text("KILN_FAULT_FROM"), *to = read_text("KILN_FAULT_TO");
    if (!load || strcmp(from, image) != 0 || !*to) {
        fputs("faulty_cuda: not the image that the fault is for\n", stderr);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    return load(module, to, count, options, values);
}
