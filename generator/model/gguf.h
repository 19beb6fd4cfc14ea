/* Reads a GGUF model file, versions 2 and 3, little endian.
 *
 * What describes the model (keys, tensor names and offsets) is read into memory and checked when the file is opened;
 * tensor data is read on request, into the caller's memory. Nothing is mapped: if another program truncates a mapped
 * file, the reader dies of SIGBUS, whatever the flags; a read comes back short and is an error here. Reading also needs
 * less memory: a model is never in host memory as a whole, which matters if GPU and CPU share it.
 *
 * No input aborts. Every function that can fail returns false or NULL and leaves one sentence in `error`. An open
 * gguf_file never changes: threads may share it.
 */
#ifndef GGUF_H
#define GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One line, without a line end: the place (byte, key or tensor), what was expected and what was found. */
typedef struct gguf_error {
    char text[384];
} gguf_error;

typedef struct gguf_file gguf_file;

/* NULL on error. The path must live as long as the file. */
gguf_file *gguf_open(const char *path, gguf_error *error);
const char *gguf_path(const gguf_file *file);
/* Closes the file and frees its strings, arrays and tensors. NULL is allowed. */
void gguf_close(gguf_file *file);

/* ---- Keys ---- */

/* Not NUL-terminated; valid UTF-8, which may contain a NUL. */
typedef struct gguf_string {
    const char *bytes;
    size_t size;
} gguf_string;

typedef struct gguf_array {
    const unsigned char *bytes; /* advanced by gguf_next_string; not aligned */
    uint64_t count;
} gguf_array;

bool gguf_has(const gguf_file *file, const char *key);

uint64_t gguf_key_count(const gguf_file *file);
/* Keys are sorted by name; index < gguf_key_count. */
gguf_string gguf_key_at(const gguf_file *file, uint64_t index);
/* Writes the value as one line of text: "true", "0.5", "linear", "an array of 3 i32". Longer strings are truncated to
 * `room`. */
void gguf_show_value(const gguf_file *file, uint64_t index, char *text, size_t room);

/* An error names the key, the type expected and what was found: another type, or no such key. No type is converted. */
bool gguf_get_u32(const gguf_file *file, const char *key, uint32_t *value, gguf_error *error);
bool gguf_get_f32(const gguf_file *file, const char *key, float *value, gguf_error *error);
bool gguf_get_bool(const gguf_file *file, const char *key, bool *value, gguf_error *error);
bool gguf_get_string(const gguf_file *file, const char *key, gguf_string *value, gguf_error *error);
bool gguf_get_strings(const gguf_file *file, const char *key, gguf_array *value, gguf_error *error);
bool gguf_get_f32s(const gguf_file *file, const char *key, gguf_array *value, gguf_error *error);
bool gguf_get_i32s(const gguf_file *file, const char *key, gguf_array *value, gguf_error *error);

bool gguf_string_is(gguf_string string, const char *text);
/* Removes and returns the array's first string. The array must not be empty. */
gguf_string gguf_next_string(gguf_array *strings);
/* index < count. */
float gguf_f32_at(gguf_array f32s, uint64_t index);
int32_t gguf_i32_at(gguf_array i32s, uint64_t index);

/* ---- Tensors ---- */

/* ggml's numbers. A file with a tensor of any other type is rejected. */
enum {
    GGUF_F32 = 0,
    GGUF_F16 = 1,
    GGUF_Q4_0 = 2,
    GGUF_Q4_1 = 3,
    GGUF_Q5_0 = 6,
    GGUF_Q5_1 = 7,
    GGUF_Q8_0 = 8,
    GGUF_Q8_1 = 9,
    GGUF_Q2_K = 10,
    GGUF_Q3_K = 11,
    GGUF_Q4_K = 12,
    GGUF_Q5_K = 13,
    GGUF_Q6_K = 14,
    GGUF_Q8_K = 15,
    GGUF_IQ2_XXS = 16,
    GGUF_IQ2_XS = 17,
    GGUF_IQ3_XXS = 18,
    GGUF_IQ1_S = 19,
    GGUF_IQ4_NL = 20,
    GGUF_IQ3_S = 21,
    GGUF_IQ2_S = 22,
    GGUF_IQ4_XS = 23,
    GGUF_I8 = 24,
    GGUF_I16 = 25,
    GGUF_I32 = 26,
    GGUF_I64 = 27,
    GGUF_F64 = 28,
    GGUF_IQ1_M = 29,
    GGUF_BF16 = 30,
    GGUF_TQ1_0 = 34,
    GGUF_TQ2_0 = 35,
    GGUF_MXFP4 = 39,
    GGUF_NVFP4 = 40,
    GGUF_Q1_0 = 41,
};

typedef struct gguf_type {
    uint32_t number;       /* one of the above */
    const char *name;      /* "Q4_0" */
    uint32_t block_values; /* numbers in a block; dims[0] of a tensor is a multiple of it */
    uint32_t block_bytes;
} gguf_type;

/* "Q4_0" or "q4_0"; NULL if there is no such type. */
const gguf_type *gguf_find_type(const char *name);

typedef struct gguf_tensor {
    char name[65]; /* printable ASCII */
    const gguf_type *type;
    uint32_t dim_count; /* 1 to 4 */
    uint64_t dims[4];   /* dims[0] is contiguous (ggml's order); no dim is 0, unused ones are 1 */
    uint64_t offset; /* from the start of the file, a multiple of general.alignment; no two tensors overlap */
    uint64_t bytes;  /* fits a size_t */
} gguf_tensor;

/* NULL if the file has no such tensor. */
const gguf_tensor *gguf_find_tensor(const gguf_file *file, const char *name);
uint64_t gguf_tensor_count(const gguf_file *file);
/* Tensors sorted by name; index < gguf_tensor_count. */
const gguf_tensor *gguf_tensor_at(const gguf_file *file, uint64_t index);

/* Reads `bytes` bytes of the tensor, starting at offset `from`; from + bytes <= tensor->bytes. */
bool gguf_read(const gguf_file *file, const gguf_tensor *tensor, uint64_t from, void *into, size_t bytes,
               gguf_error *error);

#endif
