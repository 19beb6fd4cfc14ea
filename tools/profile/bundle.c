/* Finds the image of a variant of a configuration or a bundle: the manifest names it, NAME.c has its text. */
#include "profile.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/distance.h"

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static const char *join(profile *p, const char *folder, const char *name)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path)
        die(1, "too long a path: %s/%s", folder, name);
    return pool_copy(&p->memory, path, (size_t)n);
}

static const char *manifest_in(profile *p, const char *folder)
{
    const char *found = NULL;
    struct dirent *entry;
    DIR *d = opendir(folder);
    if (!d)
        die(1, "cannot read the folder %s", folder);
    while ((entry = readdir(d))) {
        if (!ends_with(entry->d_name, ".json"))
            continue;
        if (found)
            die(1, "%s holds several manifests: %s, %s; name one", folder, strrchr(found, '/') + 1,
                entry->d_name);
        found = join(p, folder, entry->d_name);
    }
    closedir(d);
    if (!found)
        die(1, "%s holds no manifest (NAME.json)", folder);
    return found;
}

static const char *generate(profile *p)
{
    int status;
    const char *const argv[] = {
        join(p, p->bin, "kiln"), "generate", p->input, "--images", "ptx", "--output", p->folder, NULL};
    run_program(p, argv, false, &status);
    if (status == 127)
        die(3, "there is no %s", argv[0]);
    if (status != 0)
        die(1, "the generator took no bundle from %s", p->input);
    return manifest_in(p, p->folder);
}

static const char *find_manifest(profile *p)
{
    struct stat about;
    if (stat(p->input, &about) != 0)
        die(1, "there is no %s", p->input);
    return S_ISDIR(about.st_mode)         ? manifest_in(p, p->input)
           : ends_with(p->input, ".json") ? p->input
                                          : generate(p);
}

/* ---- the variant ----------------------------------------------------------------------------------------------- */

/* Returns whether `a` is nearer to what was asked: a variant of the named family comes before one with similar
 * parameters. */
static bool is_nearer(const char *wanted, const manifest_variant *a, const manifest_variant *b)
{
    const size_t of_a = text_distance(wanted, a->id, "/"), of_b = text_distance(wanted, b->id, "/");
    return of_a != of_b ? of_a < of_b : text_distance(wanted, a->id, "") < text_distance(wanted, b->id, "");
}

/* Compares by id, or by key as `kiln list` prints it. */
static bool is_wanted(const char *wanted, const manifest_variant *v)
{
    char key[17];
    snprintf(key, sizeof key, "%016llx", (unsigned long long)v->key);
    return strcmp(v->id, wanted) == 0 || strcmp(key, wanted) == 0;
}

_Noreturn static void no_variant(const profile *p, const manifest *m)
{
    const manifest_variant *near[3] = {0};
    for (size_t i = 0; i < m->variant_count; i++) { /* the nearest three, in order */
        const manifest_variant *v = &m->variants[i];
        for (size_t k = 0; v && k < 3; k++)
            if (!near[k] || is_nearer(p->variant, v, near[k])) {
                const manifest_variant *next = near[k];
                near[k] = v;
                v = next;
            }
    }
    fprintf(stderr, "kiln-profile: %s has no variant %s\n", m->bundle, p->variant);
    for (size_t k = 0; k < 3 && near[k]; k++)
        fprintf(stderr, "  %s %s\n", k ? "                " : "the nearest are:", near[k]->id);
    exit(1);
}

/* ---- the image ------------------------------------------------------------------------------------------------- */

/* Rates how well an image suits a target: the named image first, then one for the architecture, one for its
 * family, and the newest of the older targets. 0: it does not run there. */
static unsigned suits(const char *image, const char *target)
{
    char *kind, *target_kind;
    unsigned number = (unsigned)strtoul(image + 3, &kind, 10);
    unsigned device = (unsigned)strtoul(target + 3, &target_kind, 10);
    if (strcmp(image, target) == 0)
        return 4000;
    if (*target_kind || number > device)
        return 0;
    if (*kind == 'a')
        return number == device ? 3000 : 0;
    if (*kind == 'f')
        return number / 10 == device / 10 ? 2000 + number : 0;
    return 1000 + number;
}

static bool is_target(const char *text)
{
    size_t digits = strncmp(text, "sm_", 3) == 0 ? strspn(text + 3, "0123456789") : 0;
    const char *end = text + 3 + digits;
    return digits >= 2 && digits <= 3 && (!*end || ((*end == 'a' || *end == 'f') && !end[1]));
}

/* Says that the device has less shared memory than the variant needs, if that is why it has no image for it. */
static void say_shared_memory(profile *p, const manifest_variant *v)
{
    enum { EVERY_DEVICE_HAS = 48 * 1024 };
    if (v->max_shared_bytes <= EVERY_DEVICE_HAS)
        return;
    open_device(p);
    if (v->max_shared_bytes + v->static_shared_bytes > p->device.max_shared_bytes)
        fprintf(stderr, "kiln-profile: it takes up to %llu bytes of shared memory, %s has %u\n",
                (unsigned long long)v->max_shared_bytes, p->target, (unsigned)p->device.max_shared_bytes);
}

static const manifest_image *find_image(profile *p, const manifest_variant *v)
{
    const manifest_image *best = NULL;
    if (!is_target(p->target))
        die(2, "--target: '%s' is not a target; expected one such as sm_90", p->target);
    for (size_t i = 0; i < v->image_count; i++)
        if (suits(v->images[i].target, p->target) > (best ? suits(best->target, p->target) : 0))
            best = &v->images[i];
    if (best)
        return best;
    if (v->image_count == 0 && v->cubin_count > 0)
        die(1,
            "the images of %s are cubins, and the emulated driver runs PTX: profile the bundle's configuration",
            v->id);
    fprintf(stderr, "kiln-profile: no image of %s runs on %s; it has", v->id, p->target);
    for (size_t i = 0; i < v->image_count; i++)
        fprintf(stderr, "%s %s", i ? "," : "", v->images[i].target);
    fputs("\n", stderr);
    say_shared_memory(p, v);
    exit(1);
}

/* Joins the string literals from `at` up to a semicolon, as the generator writes them. */
static size_t join_literals(const char *at, char *text)
{
    size_t n = 0;
    for (bool inside = false; *at && (inside || *at != ';'); at++) {
        if (*at == '"')
            inside = !inside;
        else if (inside && *at == '\\' && at[1] >= '0' && at[1] <= '7')
            text[n++] = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0')), at += 3;
        else if (inside && *at == '\\')
            text[n++] = (char)(*++at == 'n' ? '\n' : *at == 't' ? '\t' : *at);
        else if (inside)
            text[n++] = *at;
    }
    text[n] = '\0';
    return n;
}

/* Finds the image by its hash, whatever its variable's name: in NAME.c or, for a bundle in shards, in NAME_1.c and
 * so on. */
static const char *read_image(profile *p, const char *manifest_path, const manifest_variant *v)
{
    enum { SHARDS_MOST = 99 };
    char path[4096], ending[32];
    const int base = (int)(strlen(manifest_path) - strlen(".json"));
    if (p->image->is_compressed)
        die(1, "the images of %s are compressed: profile a bundle that is configured without 'compress'",
            v->id);
    snprintf(ending, sizeof ending, "_%s[] =\n", p->image->target);
    for (int shard = 0; shard <= SHARDS_MOST; shard++) {
        size_t length;
        if (shard == 0)
            snprintf(path, sizeof path, "%.*s.c", base, manifest_path);
        else
            snprintf(path, sizeof path, "%.*s_%d.c", base, manifest_path, shard);
        if (shard > 0 && access(path, R_OK) != 0)
            break;
        const char *at = read_file(p, path, &length);
        char *ptx = pool_allocate(&p->memory, length + 1);
        while ((at = strstr(at, ending))) {
            at += strlen(ending);
            const kiln_image image = {.data = ptx,
                                      .bytes = join_literals(at, ptx),
                                      .hash_high = p->image->hash_high,
                                      .hash_low = p->image->hash_low};
            if (image.bytes == p->image->bytes && kiln_check_image(&image) == KILN_OK)
                return ptx;
        }
    }
    die(1, "the sources beside %s do not have the image of %s for %s that the manifest names", manifest_path,
        v->id, p->image->target);
}

const manifest_variant *find_variant(profile *p)
{
    char error[512];
    size_t length, i = 0;
    const char *path = find_manifest(p), *text = read_file(p, path, &length);
    const manifest *m = manifest_read(&p->memory, text, length, error, sizeof error);
    if (!m)
        die(1, "%s: %s", path, error);
    while (i < m->variant_count && !is_wanted(p->variant, &m->variants[i]))
        i++;
    if (i == m->variant_count)
        no_variant(p, m);
    if (m->variants[i].why_not_launched)
        die(1, "%s cannot be launched from here: %s", m->variants[i].id, m->variants[i].why_not_launched);
    p->variant = m->variants[i].id; /* --variant may be a key */
    p->image = find_image(p, &m->variants[i]);
    p->ptx = read_image(p, path, &m->variants[i]);
    return &m->variants[i];
}
