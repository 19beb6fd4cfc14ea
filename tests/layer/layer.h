/* Shared by the parts of kiln-layer: a device, matrices, the report. A failed call ends the program with a message. */
#ifndef LAYER_H
#define LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <layer_kernels.h>

/* ---- device.c ---------------------------------------------------------------------------------------------------- */

/* Opens a device of the driver library at this path; null means libcuda.so.1. Returns false after a message if there is none. */
bool device_open(const char *driver_path);
void device_close(void);

/* The loader for the bundle's functions; pass their status to device_need. */
extern kiln_loader device_loader;
void device_need(kiln_status status);

/* Allocates device memory with these contents, or zeros if null. */
CUdeviceptr device_new(size_t bytes, const void *contents);
void device_write(CUdeviceptr to, const void *contents, size_t bytes);

/* Waits for all launches, copies back, and frees. */
void device_take(void *to, CUdeviceptr from, size_t bytes);
void device_free(CUdeviceptr address);

void *host_new(size_t count, size_t bytes); /* zeros */

/* Later launches begin with the last thread block, or with the first; a GPU has its own order. */
void device_reverse_blocks(bool are_reversed);

/* ---- elements.c --------------------------------------------------------------------------------------------------- */

typedef enum element_type { F32, F16, BF16 } element_type;

/* Device elements have this type. Host elements are f32, with values exact in the type. */
size_t element_bytes(element_type type);
void round_elements(float *values, size_t count, element_type type);
CUdeviceptr elements_upload(const float *values, size_t count, element_type type);
void elements_write(CUdeviceptr to, const float *values, size_t count, element_type type);

/* Like device_take. */
void elements_take(float *values, CUdeviceptr from, size_t count, element_type type);

/* ---- the report, in elements.c ------------------------------------------------------------------------------------ */

/* The errors of a product, accumulated element by element. */
typedef struct comparison {
    double worst;             /* largest error relative to its bound */
    double error, power;      /* sums of squares: the error, and the exact result with dequantised weights */
    double loss, unquantised; /* `error` and `power` for the original weights */
    double norm_bound;        /* bound on the root of `error`; 0: no bound */
    size_t elements, not_finite;
} comparison;

void compare(comparison *c, double got, double exact, double bound, double unquantised);

/* Prints a line. Returns whether all elements are within their bounds. */
bool report(const char *name, uint32_t m, uint32_t n, uint32_t k, const comparison *c);
void report_header(void);

/* ---- weights.c --------------------------------------------------------------------------------------------------- */

/* Row-major: one row per output, like a framework's linear layer. */
typedef struct matrix {
    uint32_t rows, columns;
    float *values;
} matrix;

/* Reads the real matrix from its file. Returns false after a message. */
bool weights_read(const char *path, matrix *real);

/* Returns rows x columns of the real matrix, or of its transpose, repeated periodically. */
matrix weights_cut(const matrix *real, bool is_transposed, uint32_t first_row, uint32_t first_column,
                   uint32_t rows, uint32_t columns);

/* Fills with samples of the normal distribution, the same for the same seed. */
void fill_normal(float *values, size_t count, uint64_t seed);

/* The weights of a layer's norm, and RMSNorm with them. */
void fill_gamma(float *gamma, size_t count, uint64_t seed);
void normalize(uint32_t n, const float *gamma, float epsilon, double x[]);

/* ---- the jobs ---------------------------------------------------------------------------------------------------- */

bool train_adapter(const matrix *real, element_type type);
bool attend_sequences(const matrix *real);

#endif
