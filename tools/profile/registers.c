/* What ptxas, where there is one, makes of the image for the image's own target. */
#include "profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *write_image(profile *p)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/image.ptx", p->folder);
    FILE *f = fopen(path, "w");
    if (!f || fputs(p->ptx, f) < 0 || fclose(f) != 0)
        die(3, "cannot write %s", path);
    return pool_copy(&p->memory, path, strlen(path));
}

/* The number before the words. */
static uint64_t number_before(const char *text, const char *words)
{
    const char *at = strstr(text, words);
    while (at && at > text && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at ? strtoull(at, NULL, 10) : 0;
}

void read_registers(profile *p)
{
    char arch[32];
    int status;
    snprintf(arch, sizeof arch, "-arch=%s", p->image->target);
    const char *const argv[] = {"ptxas", "-v", arch, "-o", "/dev/null", write_image(p), NULL};
    const char *said = run_program(p, argv, true, &status);
    const char *used = strstr(said, "Used ");
    if (status == 127)
        p->registers.missing = "no ptxas on the PATH";
    else if (status != 0 || !used)
        p->registers.missing = "ptxas does not take the image";
    else
        p->registers = (registers){.count = strtoull(used + strlen("Used "), NULL, 10),
                                   .stack_bytes = number_before(said, " bytes stack frame"),
                                   .spill_store_bytes = number_before(said, " bytes spill stores"),
                                   .spill_load_bytes = number_before(said, " bytes spill loads")};
}
