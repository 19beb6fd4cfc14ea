/* Prints the kernels of kernels.c and compares them with golden/NAME.ptx, byte by byte.
 *     ptx_golden_test GOLDEN_DIR             compares
 *     ptx_golden_test GOLDEN_DIR --update    writes them (target update_ptx_goldens; read the diff)
 *     ptx_golden_test GOLDEN_DIR --assemble  assembles each with ptxas at its own .target; 77 (skipped) without ptxas
 *     ptx_golden_test GOLDEN_DIR --ir NAME   prints one kernel's IR */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels.h"

static const char *golden_dir;

static ptx_fn *emitted(arena *a, const test_kernel *k)
{
    ptx_fn *f = ptx_new(a, k->name, k->target, k->block);
    k->emit(f);
    return f;
}

static text printed(arena *a, ptx_fn *f, bool has_places)
{
    text t = text_new(a);
    ptx_print_header(&t, ptx_needs(f));
    ptx_print_body(&t, f, has_places);
    return t;
}

/* Removes the places. Every instruction has one, except the last ret. */
static void remove_places(char *ptx)
{
    static const char mark[] = " // tests/ptx/kernels";
    char *to = ptx;
    for (const char *line = ptx, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        const char *place = strstr(line, mark);
        const bool has_place = place && place < end;
        if (strncmp(line, "\t@", 2) == 0 || strncmp(line, "\tmov", 4) == 0 || end[-1] == ':')
            assert_true(has_place);
        const size_t length = (size_t)((has_place ? place : end) - line);
        memmove(to, line, length);
        to += length;
        *to++ = '\n';
    }
    *to = '\0';
}

static FILE *open_golden(const char *name, const char *mode)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.ptx", golden_dir, name);
    return fopen(path, mode);
}

static void matches_golden(void **state)
{
    const test_kernel *k = *state;
    static char expected[1 << 16];
    arena *a = arena_new();
    ptx_fn *f = emitted(a, k);
    assert_true(ptx_check(f, stderr));
    text t = printed(a, f, false), with_places = printed(a, f, true);
    FILE *file = open_golden(k->name, "rb");
    assert_non_null(file);
    size_t n = fread(expected, 1, sizeof expected - 1, file);
    fclose(file);
    expected[n] = '\0';
    assert_string_equal(t.data, expected);
    remove_places(with_places.data);
    assert_string_equal(with_places.data, expected);
    arena_free(a);
}

static int update(void)
{
    for (size_t i = 0; i < test_kernel_count; i++) {
        arena *a = arena_new();
        ptx_fn *f = emitted(a, &test_kernels[i]);
        if (!ptx_check(f, stderr))
            return 1;
        text t = printed(a, f, false);
        FILE *file = open_golden(test_kernels[i].name, "wb");
        if (!file)
            return 1;
        fwrite(t.data, 1, t.length, file);
        fclose(file);
        arena_free(a);
    }
    return 0;
}

/* Returns the target that a golden names, such as "sm_90"; empty without one. */
static void read_target(const char *name, char made_for[16])
{
    char line[256];
    FILE *file = open_golden(name, "rb");
    made_for[0] = '\0';
    while (file && !made_for[0] && fgets(line, sizeof line, file))
        if (strncmp(line, ".target ", 8) == 0)
            snprintf(made_for, 16, "%.*s", (int)strcspn(line + 8, "\n"), line + 8);
    if (file)
        fclose(file);
}

static int assemble(void)
{
    char made_for[16], command[4500];
    int failures = 0;
    /* NOLINTNEXTLINE(cert-env33-c): a fixed command */
    if (system("ptxas --version >/dev/null 2>&1") != 0) {
        printf("SKIPPED: ptxas is not on PATH\n");
        return 77;
    }
    for (size_t i = 0; i < test_kernel_count; i++) {
        const char *name = test_kernels[i].name;
        read_target(name, made_for);
        snprintf(command, sizeof command, "ptxas -arch=%s '%s/%s.ptx' -o /dev/null", made_for, golden_dir,
                 name);
        int failed = system(command) != 0; /* NOLINT(cert-env33-c): folders of the source tree */
        printf("%s for %s: %s\n", name, made_for, failed ? "refused" : "accepted");
        failures += failed;
    }
    return failures != 0;
}

static int show_ir(const char *name)
{
    arena *a = arena_new();
    for (size_t i = 0; i < test_kernel_count; i++)
        if (strcmp(test_kernels[i].name, name) == 0)
            ptx_dump(emitted(a, &test_kernels[i]), stdout);
    arena_free(a);
    return 0;
}

int main(int argc, char **argv)
{
    enum { MOST = 64 };
    struct CMUnitTest tests[MOST];
    if (argc < 2)
        return 2;
    golden_dir = argv[1];
    if (argc == 3 && strcmp(argv[2], "--update") == 0)
        return update();
    if (argc == 3 && strcmp(argv[2], "--assemble") == 0)
        return assemble();
    if (argc == 4)
        return show_ir(argv[3]);
    memset(tests, 0, sizeof tests);
    for (size_t i = 0; i < test_kernel_count && i < MOST; i++) {
        tests[i].name = test_kernels[i].name;
        tests[i].test_func = matches_golden;
        tests[i].initial_state = (void *)&test_kernels[i];
    }
    return _cmocka_run_group_tests("ptx golden", tests, test_kernel_count, NULL, NULL);
}
