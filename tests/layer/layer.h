/* What the parts of kiln-layer share: a device, matrices, the report. A failed call ends the program, with a message. */
#ifndef LAYER_H
#define LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <layer_kernels.h>

/* ---- device.c ---------------------------------------------------------------------------------------------------- */

/* Opens a device of the driver library at this path, or libcuda.so.1 where it is null. False, after saying why: there is none. */
bool device_open(const char *driver_path);
void device_close(void);

/* For the functions of the bundle, whose status goes to device_need. */
extern kiln_loader device_loader;
void device_need(kiln_status status);

/* Device memory with these contents, or with zeros where they are null. */
CUdeviceptr device_new(size_t bytes, const void *contents);
void device_write(CUdeviceptr to, const void *contents, size_t bytes);

/* Waits for what was launched; then copies back and frees. */
void device_take(void *to, CUdeviceptr from, size_t bytes);
void device_free(CUdeviceptr address);

void *host_new(size_t count, size_t bytes); /* zeros */

/* Launches begin with the last thread block from now on, or with the first; a GPU keeps its own order. */
void device_reverse_blocks(bool are_reversed);

/* ---- elements.c --------------------------------------------------------------------------------------------------- */

typedef enum element_type { F32, F16, BF16 } element_type;

/* On the device elements have this type; on the host they are f32, of values that the type has. */
size_t element_bytes(element_type type);
void round_elements(float *values, size_t count, element_type type);
CUdeviceptr elements_upload(const float *values, size_t count, element_type type);
void elements_write(CUdeviceptr to, const float *values, size_t count, element_type type);

/* As device_take. */
void elements_take(float *values, CUdeviceptr from, size_t count, element_type type);

/* f16: of a number from -65504 to 65504, rounded to nearest. */
unsigned half_bits(double value);
double half_value(unsigned bits);

/* ---- the report, in elements.c ------------------------------------------------------------------------------------ */

/* What a kernel made of a product, element by element. */
typedef struct comparison {
    double worst;        /* error as a share of its bound */
    double error, power; /* sums of squares: of the error, of the exact result of the dequantised weights */
    double loss, unquantised; /* of the distance to the result of the weights themselves, of that result */
    double norm_bound;        /* on the root of `error`; 0: none */
    size_t elements, not_finite;
} comparison;

void compare(comparison *c, double got, double exact, double bound, double unquantised);

/* Prints a line; whether all elements are within their bounds. */
bool report(const char *name, uint32_t m, uint32_t n, uint32_t k, const comparison *c);
void report_header(void);

/* ---- weights.c --------------------------------------------------------------------------------------------------- */

/* Row-major: one row per output, as a framework's linear layer has it. */
typedef struct matrix {
    uint32_t rows, columns;
    float *values;
} matrix;

matrix matrix_new(uint32_t rows, uint32_t columns);

/* The real matrix as its file has it. False after a message. */
bool weights_read(const char *path, matrix *real);

/* rows x columns made of the real one, or of its transpose where `is_transposed`, that begins anew at its edges. */
matrix weights_cut(const matrix *real, bool is_transposed, uint32_t first_row, uint32_t first_column,
                   uint32_t rows, uint32_t columns);

/* Samples of the normal distribution, the same ones for the same seed. */
void fill_normal(float *values, size_t count, uint64_t seed);

/* What a layer's norm multiplies by; RMSNorm with it. */
void fill_gamma(float *gamma, size_t count, uint64_t seed);
void normalize(uint32_t n, const float *gamma, float epsilon, double x[]);

/* ---- q4k.c ------------------------------------------------------------------------------------------------------- */

enum { Q4K_ELEMENTS = 256, Q4K_BYTES = 144, Q4K_SUB_ELEMENTS = 32 };

/* A super-block of a GGUF file from 256 numbers. */
void q4k_pack(const float values[Q4K_ELEMENTS], unsigned char block[Q4K_BYTES]);

/* The numbers of a super-block, and beside each |d| * scale * code + |dmin| * minimum, which its rounding goes by. */
void q4k_unpack(const unsigned char block[Q4K_BYTES], double values[Q4K_ELEMENTS],
                double sizes[Q4K_ELEMENTS]);

/* ---- the jobs ---------------------------------------------------------------------------------------------------- */

bool decode_token(const matrix *real, bool is_q8);
bool train_adapter(const matrix *real, element_type type);
bool attend_sequences(const matrix *real);

#endif
