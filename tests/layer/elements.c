/* Elements of tensors: f32, or the host's f32 rounded to f16 or bf16. */
#include "layer.h"

#include <stdio.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double half_value(unsigned bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double magnitude = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return bits & 0x8000 ? -magnitude : magnitude;
}

/* Returns the f16 nearest to a number from -65504 to 65504. */
static unsigned half_bits(double value)
{
    const double magnitude = fabs(value);
    const int exponent = magnitude < 0x1p-14 ? -14 : ilogb(magnitude);
    const unsigned units =
        (unsigned)nearbyint(ldexp(magnitude, 10 - exponent)); /* a carry goes into the exponent */
    return (signbit(value) ? 0x8000U : 0) + (unsigned)(exponent + 14) * 1024 + units;
}

static unsigned bf16_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static float bf16_value(unsigned high)
{
    const uint32_t bits = (uint32_t)high << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

size_t element_bytes(element_type type)
{
    return type == F32 ? sizeof(float) : sizeof(uint16_t);
}

static uint16_t to_bits(float value, element_type type)
{
    return (uint16_t)(type == F16 ? half_bits((double)value) : bf16_bits(value));
}

static float to_value(uint16_t bits, element_type type)
{
    return type == F16 ? (float)half_value(bits) : bf16_value(bits);
}

void round_elements(float *values, size_t count, element_type type)
{
    for (size_t i = 0; i < count && type != F32; i++)
        values[i] = to_value(to_bits(values[i], type), type);
}

void elements_write(CUdeviceptr to, const float *values, size_t count, element_type type)
{
    if (type == F32) {
        device_write(to, values, count * sizeof(float));
        return;
    }
    uint16_t *bits = host_new(count, sizeof *bits);
    for (size_t i = 0; i < count; i++)
        bits[i] = to_bits(values[i], type);
    device_write(to, bits, count * sizeof *bits);
    free(bits);
}

CUdeviceptr elements_upload(const float *values, size_t count, element_type type)
{
    const CUdeviceptr address = device_new(count * element_bytes(type), NULL);
    elements_write(address, values, count, type);
    return address;
}

void elements_take(float *values, CUdeviceptr from, size_t count, element_type type)
{
    if (type == F32) {
        device_take(values, from, count * sizeof(float));
        return;
    }
    uint16_t *bits = host_new(count, sizeof *bits);
    device_take(bits, from, count * sizeof *bits);
    for (size_t i = 0; i < count; i++)
        values[i] = to_value(bits[i], type);
    free(bits);
}

/* ---- the report: a line per product ------------------------------------------------------------------------------ */

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
