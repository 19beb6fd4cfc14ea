/* The emulated driver, with mistakes in the kernels that it is given: an image that is the text of the file N.from in
 * the folder KILN_FAULTS, N from 0, is loaded as the text of N.to, and "planted N" said on stderr. Every other entry
 * point is the emulated driver's own, which this library is linked with. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 20, NAME_BYTES = 4096, CUDA_ERROR_NOT_FOUND = 500 };

typedef int load_function(void **module, const void *image, unsigned count, int *options, void **values);

load_function faulty_load __asm__("cuModuleLoadDataEx");

/* False: there is no such file. */
static bool read_text(int number, const char *ending, char text[MOST_BYTES])
{
    char path[NAME_BYTES];
    const char *folder = getenv("KILN_FAULTS");
    snprintf(path, sizeof path, "%s/%d.%s", folder ? folder : "", number, ending);
    FILE *in = fopen(path, "rb");
    if (!in)
        return false;
    text[fread(text, 1, MOST_BYTES - 1, in)] = '\0';
    fclose(in);
    return true;
}

int faulty_load(void **module, const void *image, unsigned count, int *options, void **values)
{
    static char from[MOST_BYTES], to[MOST_BYTES];
    load_function *load = NULL;
    void *symbol = dlsym(RTLD_NEXT, "cuModuleLoadDataEx");
    memcpy(&load, &symbol, sizeof load);
    if (!load)
        return CUDA_ERROR_NOT_FOUND;
    for (int i = 0; read_text(i, "from", from); i++) {
        if (strcmp(from, image) != 0 || !read_text(i, "to", to))
            continue;
        fprintf(stderr, "planted %d\n", i);
        return load(module, to, count, options, values);
    }
    return load(module, image, count, options, values);
}
