/* kiln-profile: runs one variant of a configuration or bundle on the emulated driver and prints its counters by
 * argument, beside the cost that the manifest states. */
#include "profile.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/options.h"
#include "../verify/families/families.h"

static const char usage[] =
    "usage: kiln-profile CONFIG|BUNDLE --variant ID [--target T] [--args "
    "n=1048576,...] [--driver PATH] [--json [--lines]]\n"
    "\n"
    "  CONFIG         a configuration, or\n"
    "  BUNDLE         a generated bundle: NAME.json with NAME.c beside it, "
    "or the folder of the two\n"
    "  --variant ID   as `kiln list CONFIG` prints it, or its key\n"
    "  --target T     the device, such as sm_90 (the default), or one image, such as sm_100a\n"
    "  --args A       a value for every size that arrays or the grid depend on; other scalars are optional\n"
    "  --driver PATH  another build of the emulated driver\n"
    "  --json         print everything as JSON\n"
    "  --lines        also the counters of every instruction, and the PTX\n";

/* Flushes standard output; exits with status 3 if that fails. */
static void end_output(void)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        die(3, "cannot write the output: %s", strerror(errno));
}

static void read_options(profile *p, int argc, char **argv)
{
    static const option_row rows[] = {{OPTION_ROW("variant", OPTION_TEXT, profile, variant)},
                                      {OPTION_ROW("target", OPTION_TEXT, profile, target)},
                                      {OPTION_ROW("args", OPTION_TEXT, profile, args)},
                                      {OPTION_ROW("driver", OPTION_TEXT, profile, driver_path)},
                                      {OPTION_ROW("json", OPTION_FLAG, profile, json)},
                                      {OPTION_ROW("lines", OPTION_FLAG, profile, lines)},
                                      {OPTION_ROW("help", OPTION_FLAG, profile, wants_help)}};
    static const option_table table = {"kiln-profile", rows, sizeof rows / sizeof rows[0], 1};
    const int first = options_parse(&table, argc, argv, p, NULL);
    if (first == 0)
        exit(2);
    p->input = argv[first];
    if (p->wants_help) {
        fputs(usage, stdout);
        end_output();
        exit(0);
    }
    if (!p->input || !p->variant)
        die(2, "%s is missing\n%s", p->input ? "--variant" : "a configuration or bundle", usage);
}

/* ---- --args ------------------------------------------------------------------------------------------------------ */

/* --args sets the scalars. The inputs that go with them are those of kiln-verify, with the family's first pattern. */
static const uint64_t most_bytes = UINT64_C(4) << 30; /* of all buffers together */

_Noreturn static void no_argument(const profile *p, const char *name)
{
    fprintf(stderr, "kiln-profile: --args: %s has no scalar '%s'; it has", p->variant, name);
    for (size_t i = 0; i < p->problem.arg_count; i++)
        if (!manifest_is_pointer(p->problem.args[i].about))
            fprintf(stderr, " %s (%s)", p->problem.args[i].about->name, p->problem.args[i].about->type_name);
    fputs("\n", stderr);
    exit(2);
}

static void set_scalar(argument *a, const char *text)
{
    char *end;
    const char *type = a->about->type_name;
    errno = 0;
    if (!problem_is_size(a)) {
        a->real = a->about->type == ELEMENT_F32 ? (double)strtof(text, &end) : strtod(text, &end);
        if (fabs(a->real) < 1)
            errno = 0; /* it was rounded to a subnormal number or 0 */
    } else {
        uint64_t bits = 8 * element_bytes(a->about->type);
        a->integer = strtoull(text, &end, number_base(text));
        if (*text == '-' || *text == '+' || *text == ' ' || (bits < 64 && a->integer >> bits))
            errno = ERANGE;
    }
    if (!*text || *end || errno)
        die(2, "--args: expected %s for %s, found '%s'", type, a->about->name, text);
}

/* Reads NAME=VALUE,... and notes which scalars are given. */
static void read_list(profile *p, bool given[MAX_ARGS])
{
    char *list = pool_copy(&p->memory, p->args, strlen(p->args)), *next;
    for (char *at = list; at && *at; at = next) {
        next = strchr(at, ',');
        if (next)
            *next++ = '\0';
        char *value = strchr(at, '=');
        if (!value)
            die(2, "--args: expected NAME=VALUE, found '%s'", at);
        *value++ = '\0';
        argument *a = problem_find(&p->problem, at);
        if (!a || manifest_is_pointer(a->about))
            no_argument(p, at);
        if (given[a - p->problem.args])
            die(2, "--args: %s is there twice", at);
        given[a - p->problem.args] = true;
        set_scalar(a, value);
    }
}

/* Returns whether an array's size or the grid depends on it; other scalars, such as limits of a window, default to
 * 0. */
static bool is_needed(const profile *p, const argument *a)
{
    const manifest_variant *v = p->problem.variant;
    bool is_in = v->empty && formula_mentions(v->empty, a->about->name);
    for (int i = 0; i < 3; i++)
        is_in = is_in || formula_mentions(v->grid[i], a->about->name);
    for (size_t i = 0; i < p->problem.arg_count; i++) {
        const manifest_arg *about = p->problem.args[i].about;
        for (size_t d = 0; d < about->dimension_count; d++)
            is_in = is_in || formula_mentions(about->shape[d], a->about->name);
    }
    return is_in;
}

/* Reports all missing scalars together. */
static void check_given(const profile *p, const bool given[MAX_ARGS])
{
    const char *separator = "kiln-profile: --args lacks ";
    for (size_t i = 0; i < p->problem.arg_count; i++) {
        const argument *a = &p->problem.args[i];
        if (!problem_is_size(a) || given[i] || !is_needed(p, a))
            continue;
        fprintf(stderr, "%s%s (%s)", separator, a->about->name, a->about->type_name);
        separator = ", ";
    }
    if (*separator == 'k')
        return;
    fputs("\n", stderr);
    exit(2);
}

static void check_sizes(profile *p)
{
    char error[512], list[1024];
    const manifest_rule *broken = NULL;
    uint64_t bytes = 0;
    problem_describe(&p->problem, list, sizeof list);
    switch (problem_measure(&p->problem, &broken, error, sizeof error)) {
    case PROBLEM_LEGAL:
        break;
    case PROBLEM_EMPTY:
        die(1, "%s launches nothing: %s", list, formula_text(p->problem.variant->empty));
    case PROBLEM_ILLEGAL:
        die(1, "%s breaks a rule: %s", list, broken->text);
    default:
        die(1, "%s: %s", list, error);
    }
    for (size_t i = 0; i < p->problem.arg_count; i++) {
        const argument *a = &p->problem.args[i];
        bytes = manifest_is_pointer(a->about) && a->bytes < most_bytes ? bytes + a->bytes
                : manifest_is_pointer(a->about)                        ? most_bytes
                                                                       : bytes;
    }
    if (bytes >= most_bytes)
        die(1, "%s needs buffers of 4 GiB or more, which is too much to emulate", list);
}

static void read_args(profile *p)
{
    bool given[MAX_ARGS] = {false};
    argument scalars[MAX_ARGS];
    const manifest_variant *v = p->problem.variant;
    const family_row *family = family_find(v->family);
    read_list(p, given);
    check_given(p, given);
    check_sizes(p);
    problem_allocate(&p->problem);
    p->problem.is_plain = true;
    memcpy(scalars, p->problem.args, sizeof scalars);
    if (family)
        family->make(&p->problem, &family->patterns[0], random_open(1, v->id));
    else
        generic_make(&p->problem, &generic_patterns[0], random_open(1, v->id));
    for (size_t i = 0; i < p->problem.arg_count; i++)
        if (given[i]) {
            p->problem.args[i].integer = scalars[i].integer;
            p->problem.args[i].real = scalars[i].real;
        }
}

/* ---- main --------------------------------------------------------------------------------------------------------- */

static void find_own_folder(profile *p)
{
    ssize_t n = readlink("/proc/self/exe", p->bin, sizeof p->bin - 1);
    if (n <= 0)
        die(3, "the path of this program is unknown");
    *strrchr(p->bin, '/') = '\0';
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
    for (size_t i = 0; i < p.problem.arg_count; i++)
        p.problem.args[i].is_null = p.problem.args[i].about->direction == DIRECTION_OPTIONAL_IN;
    read_args(&p);
    measure(&p);
    (p.json ? print_json : print_table)(&p);
    problem_close(&p.problem);
    pool_free(&p.memory);
    end_output();
    return 0;
}
