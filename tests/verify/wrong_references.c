/* Invalid references: kiln-verify reports each with its line and does not start. */
#include <kiln/reference.h>

static const kiln_pattern none[] = {{0}};

static void expect(kiln_problem *p, const kiln_pattern *pattern)
{
    (void)p, (void)pattern;
}

KILN_REFERENCE(axpi, .expect = expect);
KILN_REFERENCE(nf4_unpack, .expect = expect);
KILN_REFERENCE(nf4_quantize, .args = "n");
KILN_REFERENCE(axpy, .expect = expect, .patterns = none);
