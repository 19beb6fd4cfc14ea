/* The whole text of the loader's messages about programs that it refuses: refused.txt. */
#include "emu_test.h"

static char goldens[65536];

static int read_goldens(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return 1;
    size_t size = fread(goldens, 1, sizeof goldens - 1, file);
    goldens[size ? size - 1 : 0] = '\0'; /* without the last newline */
    return fclose(file) != 0 || size == sizeof goldens - 1;
}

/* Ends the text before `mark` and returns the text after it; NULL: no mark. */
static char *split(char *text, const char *mark)
{
    char *at = strstr(text, mark);
    if (!at)
        return NULL;
    *at = '\0';
    return at + strlen(mark);
}

/* Loads the program, or the kernel of which it is the body. */
static CUresult load_program(const char *program, CUmodule *module)
{
    static char kernel[4096];
    snprintf(kernel, sizeof kernel,
             ".version 8.8\n"
             ".target sm_90\n"
             ".address_size 64\n"
             ".visible .entry k(.param .u64 a)\n"
             "{\n"
             ".reg .b32 %%r<9>; .reg .b64 %%d<9>; .reg .f32 %%f<9>; .reg .pred %%p<9>; .reg .b16 %%h<9>;\n"
             "%s\n}",
             program);
    return load_text(program[0] == '.' ? program : kernel, module);
}

static void test_messages(void **state)
{
    (void)state;
    int count = 0;
    for (char *name = split(goldens, "\n== "); name; count++) {
        char *next = split(name, "\n== "), *program = split(name, "\n"), *log = split(program, "\n--\n");
        CUmodule module;
        assert_non_null(log);
        if (load_program(program, &module) == CUDA_SUCCESS && !*test_log)
            fail_msg("taken: %s", name);
        if (strlen(test_log) != strlen(log) + 1 || strncmp(test_log, log, strlen(log)) != 0)
            fail_msg("%s says\n%s\nnot\n%s", name, test_log, log);
        name = next;
    }
    assert_true(count >= 50);
    print_message("%d messages\n", count);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_messages)};
    if (argc != 2 || read_goldens(argv[1])) {
        fprintf(stderr, "usage: test_messages FILE\n");
        return 2;
    }
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
