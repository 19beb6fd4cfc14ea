/* kiln-profile: runs one variant of a configuration or bundle on the emulated driver and prints what it counted,
   by argument, beside what the manifest says that it costs. */
#include "profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] = "usage: kiln-profile CONFIG|BUNDLE --variant ID [--target T] [--args "
                            "n=1048576,...] [--driver PATH] [--json]\n"
                            "\n"
                            "  CONFIG         a configuration, or\n"
                            "  BUNDLE         what was generated from one: NAME.json with NAME.c beside it, "
                            "or the folder of the two\n"
                            "  --variant ID   as `kiln list CONFIG` prints it, or its key\n"
                            "  --target T     the device, as sm_90 (the default), or one image, as sm_100a\n"
                            "  --args A       every size of the kernel; other scalars as wanted\n"
                            "  --driver PATH  another build of the emulated driver\n"
                            "  --json         everything, for programs\n";

static void read_options(profile *p, int argc, char **argv)
{
    const struct {
        const char *name, **value;
    } options[] = {{"--variant", &p->variant},
                   {"--target", &p->target},
                   {"--args", &p->args},
                   {"--driver", &p->driver_path}};
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        while (k < sizeof options / sizeof *options && strcmp(argv[i], options[k].name) != 0)
            k++;
        if (k < sizeof options / sizeof *options) {
            if (++i == argc)
                die(2, "%s needs a value", argv[i - 1]);
            *options[k].value = argv[i];
        } else if (strcmp(argv[i], "--json") == 0) {
            p->json = true;
        } else if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            exit(0);
        } else if (argv[i][0] == '-') {
            die(2, "there is no option %s\n%s", argv[i], usage);
        } else if (p->input) {
            die(2, "'%s' is one input too many", argv[i]);
        } else {
            p->input = argv[i];
        }
    }
    if (!p->input || !p->variant)
        die(2, "%s is missing\n%s", p->input ? "--variant" : "a configuration or bundle", usage);
}

static void find_own_folder(profile *p)
{
    ssize_t n = readlink("/proc/self/exe", p->bin, sizeof p->bin - 1);
    if (n <= 0)
        die(3, "where this program is cannot be found out");
    *strrchr(p->bin, '/') = '\0';
}

static uint64_t cost(const profile *p, const formula *f)
{
    char error[512];
    uint64_t value = 0;
    if (f && !problem_evaluate(&p->problem, f, &value, error, sizeof error))
        die(1, "%s: %s", formula_text(f), error);
    return value;
}

int main(int argc, char **argv)
{
    static profile p = {.target = "sm_90", .args = ""};
    char error[512];
    read_options(&p, argc, argv);
    find_own_folder(&p);
    make_folder(&p);
    const manifest_variant *v = find_variant(&p);
    open_device(&p);
    if (!problem_open(&p.problem, v, &p.device, error, sizeof error))
        die(1, "%s: %s", v->id, error);
    read_args(&p);
    p.bytes_read = cost(&p, v->bytes_read);
    p.bytes_written = cost(&p, v->bytes_written);
    p.elements = cost(&p, v->elements);
    launch(&p);
    read_counters(&p);
    read_registers(&p);
    (p.json ? print_json : print_table)(&p);
    problem_close(&p.problem);
    pool_free(&p.memory);
    return fflush(stdout) == 0 ? 0 : 3;
}
