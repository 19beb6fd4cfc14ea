/* Makes a layer's weights from a real matrix, and its inputs. */
#include "layer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { REAL_ROWS = 512, REAL_COLUMNS = 384, SHIFT = 128 };

static matrix matrix_new(uint32_t rows, uint32_t columns)
{
    return (matrix){rows, columns, host_new((size_t)rows * columns, sizeof(float))};
}

bool weights_read(const char *path, matrix *real)
{
    const size_t count = (size_t)REAL_ROWS * REAL_COLUMNS;
    *real = matrix_new(REAL_ROWS, REAL_COLUMNS);
    FILE *in = fopen(path, "rb");
    bool is_whole = in && fread(real->values, sizeof(float), count, in) == count && fgetc(in) == EOF;
    if (in)
        fclose(in);
    if (!is_whole) {
        fprintf(stderr, "kiln-layer: %s does not hold %d x %d float32 numbers\n", path, REAL_ROWS,
                REAL_COLUMNS);
        free(real->values);
    }
    return is_whole;
}

/* Each repetition along one axis is shifted along the other, so that no row or column occurs twice. */
matrix weights_cut(const matrix *real, bool is_transposed, uint32_t first_row, uint32_t first_column,
                   uint32_t rows, uint32_t columns)
{
    const uint32_t height = is_transposed ? real->columns : real->rows;
    const uint32_t width = is_transposed ? real->rows : real->columns;
    matrix cut = matrix_new(rows, columns);
    for (uint32_t i = 0; i < rows; i++) {
        for (uint32_t k = 0; k < columns; k++) {
            const uint32_t down = first_row + i, across = first_column + k;
            const uint32_t row = (down + SHIFT * (across / width)) % height;
            const uint32_t column = (across + SHIFT * (down / height)) % width;
            const uint32_t place =
                is_transposed ? column * real->columns + row : row * real->columns + column;
            cut.values[(size_t)i * columns + k] = real->values[place];
        }
    }
    return cut;
}

/* xorshift64* and the Box-Muller transform. */
static double next_uniform(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return ((double)(*state * UINT64_C(0x2545f4914f6cdd1d) >> 11) + 0.5) * 0x1p-53;
}

void fill_normal(float *values, size_t count, uint64_t seed)
{
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < count; i++) {
        const double radius = sqrt(-2 * log(next_uniform(&state)));
        values[i] = (float)(radius * cos(6.283185307179586 * next_uniform(&state)));
    }
}

void fill_gamma(float *gamma, size_t count, uint64_t seed)
{
    fill_normal(gamma, count, seed);
    for (size_t i = 0; i < count; i++)
        gamma[i] = 1 + gamma[i] / 8;
}

void normalize(uint32_t n, const float *gamma, float epsilon, double x[])
{
    double squares = 0;
    for (uint32_t i = 0; i < n; i++)
        squares += x[i] * x[i];
    const double factor = 1 / sqrt(squares / n + (double)epsilon);
    for (uint32_t i = 0; i < n; i++)
        x[i] *= factor * (double)gamma[i];
}
