/* What has to hold before a variant is run. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "execute.h"
#include "reference.h"
#include "run.h"

static void conclude(run_result *result, run_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void conclude(run_result *result, run_verdict verdict, const char *format, ...)
{
    va_list list;
    result->verdict = verdict;
    va_start(list, format);
    vsnprintf(result->detail, sizeof result->detail, format, list);
    va_end(list);
}

/* Whether every argument is one that this program can make: a known type, and a shape for every pointer. */
static bool check_arguments(const manifest_variant *v, run_result *result)
{
    if (v->why_not_launched) {
        conclude(result, RUN_SKIPPED, "%s", v->why_not_launched);
        return false;
    }
    if (v->struct_bytes > STRUCT_BYTES) {
        conclude(result, RUN_WRONG, "its argument struct has %llu bytes; at most %d are supported",
                 (unsigned long long)v->struct_bytes, STRUCT_BYTES);
        return false;
    }
    for (size_t i = 0; i < v->arg_count; i++) {
        const manifest_arg *a = &v->args[i];
        const bool is_null =
            !manifest_is_pointer(a) && strcmp(a->type_name, "address") == 0; /* all that it can be */
        if (is_null)
            continue;
        if (a->type == ELEMENT_NONE || (manifest_is_pointer(a) && a->dimension_count == 0)) {
            conclude(result, RUN_SKIPPED, "argument %s: %s", a->name,
                     a->type == ELEMENT_NONE ? "a type that this program cannot make" : "no shape is stated");
            return false;
        }
    }
    return true;
}

static bool check_reference(const manifest_variant *v, const family_row *row, run_result *result)
{
    char name[64];
    const char *names = row && row->args ? row->args : "";
    while (*names) {
        size_t length = strcspn(names, " ");
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        if (!manifest_find_arg(v, name)) {
            char place[256] = "";
            if (row->file)
                snprintf(place, sizeof place, "%s:%d: ", row->file, row->line);
            conclude(result, RUN_WRONG,
                     "%sthe reference of %s asks for an argument \"%s\"; the manifest has none", place,
                     row->name, name);
            return false;
        }
        names += length + (names[length] == ' ');
    }
    return true;
}

static bool check_identity(const manifest_variant *v, const kiln_kernel *k, run_result *result)
{
    if (strcmp(k->id, v->id) == 0 && strcmp(k->entry, v->entry) == 0 && k->key == v->key &&
        memcmp(k->block, v->block, sizeof v->block) == 0)
        return true;
    conclude(result, RUN_WRONG, "the bundle's kernel %s (entry %s) is not what the manifest describes", k->id,
             k->entry);
    return false;
}

static bool is_usable(device *d, const problem *p, const kiln_kernel *kernel, run_result *result)
{
    const uint32_t has = d->loader.device.max_shared_bytes;
    char error[256];
    uint64_t
        needs; /* of sizes that are all 0, the least there is; sizes that need too much are left out later */
    if (problem_evaluate(p, p->variant->shared_bytes, &needs, error, sizeof error) &&
        needs + p->variant->static_shared_bytes > has) {
        conclude(result, RUN_SKIPPED,
                 "it needs %llu bytes of shared memory per thread block, the device has %u",
                 (unsigned long long)(needs + p->variant->static_shared_bytes), has);
        return false;
    }
    if (kiln_usable(&d->loader, kernel))
        return true;
    kiln_error none = {.status = KILN_ERROR_NO_IMAGE, .subject = kernel->id, .detail = ""};
    result->verdict = RUN_SKIPPED;
    kiln_describe_error(&d->loader, &none, kernel, result->detail, sizeof result->detail);
    return false;
}

bool run_may_begin(device *d, const problem *p, const kiln_kernel *kernel, const family_row *row,
                   run_result *result)
{
    return check_identity(p->variant, kernel, result) && check_arguments(p->variant, result) &&
           is_usable(d, p, kernel, result) && check_reference(p->variant, row, result);
}
