/* Computes the Levenshtein distance. */
#include "distance.h"

#include <string.h>

size_t text_distance(const char *a, const char *b, const char *end)
{
    enum { MOST = 256 };
    size_t row[MOST], m = strcspn(a, end), n = strcspn(b, end);
    n = n < MOST - 1 ? n : MOST - 1;
    for (size_t k = 0; k <= n; k++)
        row[k] = k;
    for (size_t i = 1; i <= m; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t k = 1; k <= n; k++) {
            size_t best = diagonal + (a[i - 1] != b[k - 1]);
            diagonal = row[k];
            best = row[k] + 1 < best ? row[k] + 1 : best;
            row[k] = row[k - 1] + 1 < best ? row[k - 1] + 1 : best;
        }
    }
    return row[n];
}
