/* The report: a line per product. */
#include "layer.h"

#include <math.h>
#include <stdio.h>

void compare(comparison *c, double got, double exact, double bound, double unquantised)
{
    const double error = fabs(got - exact);
    c->elements++;
    if (!isfinite(got))
        c->not_finite++;
    c->worst = fmax(c->worst, error == 0 ? 0 : error / bound);
    c->error += error * error;
    c->power += exact * exact;
    c->loss += (got - unquantised) * (got - unquantised);
    c->unquantised += unquantised * unquantised;
}

void report_header(void)
{
    printf("%-26s %5s %5s %5s  %11s  %13s  %12s\n", "product", "m", "n", "k", "error/bound", "RMSE, float64",
           "RMSE, weights");
}

bool report(const char *name, uint32_t m, uint32_t n, uint32_t k, const comparison *c)
{
    const double all = c->norm_bound > 0 ? sqrt(c->error) / c->norm_bound : 0, worst = fmax(c->worst, all);
    const bool is_right = c->elements == (size_t)m * n && c->not_finite == 0 && worst <= 1;
    printf("%-26s %5u %5u %5u  %11.4f  %13.2e  %12.5f   %s\n", name, m, n, k, worst,
           sqrt(c->error / c->power), sqrt(c->loss / c->unquantised), is_right ? "PASS" : "FAIL");
    return is_right;
}
