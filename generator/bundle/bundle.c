/* The back half of the generator: render everything, then write. */
#include "bundle.h"

#include <string.h>

#include "../family.h"
#include "../support/files.h"
#include "write.h"

static const char *path_in(arena *a, const char *folder, const char *name, const char *extension)
{
    const size_t length = strlen(folder);
    const char *slash = length == 0 || folder[length - 1] == '/' ? "" : "/";
    return arena_format(a, "%s%s%s.%s", folder, slash, name, extension);
}

int bundle_generate(arena *a, const plan *p, diagnostics *d, const char *output_dir)
{
    const bundle_model *m = model_build(a, p);
    const char *outputs[] = {path_in(a, output_dir, p->bundle, "c"), path_in(a, output_dir, p->bundle, "h"),
                             path_in(a, output_dir, p->bundle, "json")};
    const text texts[] = {write_source(a, m), write_header(a, m), write_manifest(a, m),
                          write_depfile(a, outputs, 3, &p->config_path, 1)};
    file_output files[4];
    for (size_t i = 0; i < 4; i++)
        files[i] = (file_output){i < 3 ? outputs[i] : path_in(a, output_dir, p->bundle, "d"), texts[i].data,
                                 texts[i].length};
    return files_write(a, files, 4, d) ? 0 : 1;
}

bool bundle_show(arena *a, const plan *p, const kiln_variant *v, target t, bool ir, FILE *out)
{
    (void)p;
    const family_limits limits = family_limits_of(a, v->family);
    if (!variant_runs_on(&limits, v, t))
        return false;
    const ptx_fn *kernel = build_kernel(a, v, t);
    if (ir)
        ptx_dump(kernel, out);
    else
        fputs(print_kernel(a, kernel, t).ptx, out);
    return true;
}
