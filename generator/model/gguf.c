/* The GGUF reader. The format: ggml's document gguf.md, versions 2 and 3.
 *
 *   "GGUF", u32 version, u64 tensors, u64 keys
 *   keys:    string name, u32 type, value        a string: u64 bytes, the bytes; an array: u32 type, u64 count, items
 *   tensors: string name, u32 dims, u64 each dim, u32 type, u64 offset
 *   the tensors' bytes, from the next multiple of general.alignment on, where their offsets count from
 */
#define _POSIX_C_SOURCE 200809L
#include "gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sets the message; false. */
#define FAIL(error, ...) (snprintf((error)->text, sizeof(error)->text, __VA_ARGS__), false)

enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64, KINDS };

/* Types of keys, by GGUF's number. */
static const struct {
    const char *name;
    uint32_t bytes; /* 0: a length precedes it */
} kinds[KINDS] = {
    [U8] = {"u8", 1},         [I8] = {"i8", 1},       [U16] = {"u16", 2}, [I16] = {"i16", 2},
    [U32] = {"u32", 4},       [I32] = {"i32", 4},     [F32] = {"f32", 4}, [BOOL] = {"bool", 1},
    [STRING] = {"string", 0}, [ARRAY] = {"array", 0}, [U64] = {"u64", 8}, [I64] = {"i64", 8},
    [F64] = {"f64", 8},
};

/* Types of tensors; source: ggml-common.h. */
static const gguf_type types[] = {
    /* number, name, values, bytes */
    {GGUF_F32, "F32", 1, 4},
    {GGUF_F16, "F16", 1, 2},
    {GGUF_BF16, "BF16", 1, 2},
    {GGUF_F64, "F64", 1, 8},
    {GGUF_I8, "I8", 1, 1},
    {GGUF_I16, "I16", 1, 2},
    {GGUF_I32, "I32", 1, 4},
    {GGUF_I64, "I64", 1, 8},
    {GGUF_Q4_0, "Q4_0", 32, 18},
    {GGUF_Q4_1, "Q4_1", 32, 20},
    {GGUF_Q5_0, "Q5_0", 32, 22},
    {GGUF_Q5_1, "Q5_1", 32, 24},
    {GGUF_Q8_0, "Q8_0", 32, 34},
    {GGUF_Q8_1, "Q8_1", 32, 36},
    {GGUF_Q2_K, "Q2_K", 256, 84},
    {GGUF_Q3_K, "Q3_K", 256, 110},
    {GGUF_Q4_K, "Q4_K", 256, 144},
    {GGUF_Q5_K, "Q5_K", 256, 176},
    {GGUF_Q6_K, "Q6_K", 256, 210},
    {GGUF_Q8_K, "Q8_K", 256, 292},
    {GGUF_IQ1_S, "IQ1_S", 256, 50},
    {GGUF_IQ1_M, "IQ1_M", 256, 56},
    {GGUF_IQ2_XXS, "IQ2_XXS", 256, 66},
    {GGUF_IQ2_XS, "IQ2_XS", 256, 74},
    {GGUF_IQ2_S, "IQ2_S", 256, 82},
    {GGUF_IQ3_XXS, "IQ3_XXS", 256, 98},
    {GGUF_IQ3_S, "IQ3_S", 256, 110},
    {GGUF_IQ4_NL, "IQ4_NL", 32, 18},
    {GGUF_IQ4_XS, "IQ4_XS", 256, 136},
    {GGUF_TQ1_0, "TQ1_0", 256, 54},
    {GGUF_TQ2_0, "TQ2_0", 256, 66},
    {GGUF_MXFP4, "MXFP4", 32, 17},
    {GGUF_NVFP4, "NVFP4", 64, 36},
    {GGUF_Q1_0, "Q1_0", 128, 18},
};

enum { MOST_KEY_BYTES = 65535, MOST_TENSOR_NAME_BYTES = 64, MOST_DIMS = 4, DEFAULT_ALIGNMENT = 32 };

/* Smallest encodings, used to reject an impossible count before allocating. Key: one-byte name, type, one-byte value.
 * Tensor: one-byte name, one dim, type, offset. */
enum { LEAST_KEY_BYTES = 8 + 1 + 4 + 1, LEAST_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8 };

typedef struct gguf_key {
    uint64_t name;         /* offset in the header, whose memory moves as it grows */
    const char *name_text; /* the name, once the header is complete */
    uint32_t name_bytes;
    uint32_t kind, item_kind; /* item_kind: of an array */
    uint64_t count;           /* items of an array, bytes of a string */
    uint64_t value;           /* offset of the number, the string's bytes or the first item */
} gguf_key;

struct gguf_file {
    const char *path;
    int descriptor;
    uint64_t size; /* at the time of opening */
    unsigned char *header;
    uint64_t header_size, header_room; /* bytes read of the file's beginning; bytes allocated */
    uint64_t at;                       /* while the header is read: the next byte */
    gguf_key *keys;                    /* sorted by name */
    uint64_t key_count;
    gguf_tensor *tensors; /* sorted by name */
    uint64_t tensor_count;
};

static bool read_file(gguf_file *file, gguf_error *error);
static bool read_keys(gguf_file *file, gguf_error *error);
static bool read_key(gguf_file *file, gguf_key *key, gguf_error *error);
static bool read_value(gguf_file *file, gguf_key *key, gguf_error *error);
static bool read_tensors(gguf_file *file, gguf_error *error);
static bool sort_keys(gguf_file *file, gguf_error *error);
static bool read_tensor(gguf_file *file, gguf_tensor *tensor, gguf_error *error);
static bool place_tensors(gguf_file *file, gguf_error *error);
static bool sort_tensors(gguf_file *file, gguf_error *error);

gguf_file *gguf_open(const char *path, gguf_error *error)
{
    gguf_file *file = calloc(1, sizeof *file);
    struct stat status;
    if (!file) {
        (void)FAIL(error, "out of memory");
        return NULL;
    }
    file->path = path;
    file->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = (file->descriptor >= 0 && fstat(file->descriptor, &status) == 0) ||
              FAIL(error, "cannot be opened: %s", strerror(errno));
    if (ok && !S_ISREG(status.st_mode))
        ok = FAIL(error, "expected a regular file, found a %s",
                  S_ISDIR(status.st_mode) ? "folder" : "pipe or device");
    if (ok)
        file->size = (uint64_t)status.st_size;
    if (!ok || !read_file(file, error)) {
        gguf_close(file);
        return NULL;
    }
    return file;
}

const char *gguf_path(const gguf_file *file)
{
    return file->path;
}

void gguf_close(gguf_file *file)
{
    if (!file)
        return;
    if (file->descriptor >= 0)
        close(file->descriptor);
    free(file->header);
    free(file->keys);
    free(file->tensors);
    free(file);
}

/* ---- The header, as a stream of numbers and strings ---- */

/* Reads up to `bytes` bytes from `at` and returns how many. After a short read, *cause is the errno, or 0 at the end of file. */
static size_t read_at(const gguf_file *file, uint64_t at, void *into, size_t bytes, int *cause)
{
    size_t done = 0;
    *cause = 0;
    while (done < bytes) {
        ssize_t read = pread(file->descriptor, (char *)into + done, bytes - done, (off_t)(at + done));
        if (read < 0 && errno == EINTR)
            continue;
        if (read <= 0) {
            *cause = read < 0 ? errno : 0;
            break;
        }
        done += (size_t)read;
    }
    return done;
}

/* Ensures that the next `bytes` bytes of the file are in memory, from file->at on. */
static bool need(gguf_file *file, uint64_t bytes, const char *what, gguf_error *error)
{
    if (bytes > file->size - file->at)
        return FAIL(error,
                    "byte %" PRIu64 ": expected %" PRIu64
                    " bytes of %s, found the end of the file after %" PRIu64,
                    file->at, bytes, what, file->size - file->at);
    uint64_t end = file->at + bytes;
    if (end <= file->header_size)
        return true;
    if (end > file->header_room) {
        uint64_t room = file->header_room ? file->header_room : 1 << 16;
        while (room < end) /* end is at most a file's size, which is signed: no overflow */
            room *= 2;
        unsigned char *grown = room <= SIZE_MAX ? realloc(file->header, (size_t)room) : NULL;
        if (!grown)
            return FAIL(error, "byte %" PRIu64 ": out of memory for %" PRIu64 " bytes of %s", file->at, bytes,
                        what);
        file->header = grown;
        file->header_room = room;
    }
    /* Fills the buffer: fewer reads. */
    uint64_t most = file->header_room < file->size ? file->header_room : file->size;
    int cause;
    file->header_size += read_at(file, file->header_size, file->header + file->header_size,
                                 (size_t)(most - file->header_size), &cause);
    if (end > file->header_size)
        return FAIL(error, "byte %" PRIu64 ": expected %s, found %s", file->header_size, what,
                    cause ? strerror(cause) : "that the file was shortened while it was read");
    return true;
}

static uint64_t number_at(const unsigned char *bytes, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

static bool read_u32(gguf_file *file, uint32_t *value, const char *what, gguf_error *error)
{
    if (!need(file, 4, what, error))
        return false;
    *value = (uint32_t)number_at(file->header + file->at, 4);
    file->at += 4;
    return true;
}

static bool read_u64(gguf_file *file, uint64_t *value, const char *what, gguf_error *error)
{
    if (!need(file, 8, what, error))
        return false;
    *value = number_at(file->header + file->at, 8);
    file->at += 8;
    return true;
}

/* How many bytes of `text` are valid UTF-8: all, or those before the first invalid one. */
static uint64_t valid_utf8(const unsigned char *text, uint64_t bytes)
{
    uint64_t i = 0;
    while (i < bytes) {
        unsigned lead = text[i];
        unsigned more = lead < 0x80                   ? 0
                        : lead >= 0xc2 && lead < 0xe0 ? 1
                        : lead >= 0xe0 && lead < 0xf0 ? 2
                                                      : 3;
        if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || more >= bytes - i)
            return i;
        for (unsigned k = 1; k <= more; k++)
            if ((text[i + k] & 0xc0) != 0x80)
                return i;
        /* Rejects overlong forms, surrogates, and code points above U+10FFFF. */
        unsigned next = more ? text[i + 1] : 0;
        if ((lead == 0xe0 && next < 0xa0) || (lead == 0xed && next >= 0xa0) ||
            (lead == 0xf0 && next < 0x90) || (lead == 0xf4 && next >= 0x90))
            return i;
        i += more + 1;
    }
    return bytes;
}

/* Reads a string; `at` is the offset of its bytes. */
static bool read_string(gguf_file *file, uint64_t *at, uint64_t *bytes, const char *what, gguf_error *error)
{
    if (!read_u64(file, bytes, what, error) || !need(file, *bytes, what, error))
        return false;
    *at = file->at;
    uint64_t valid = valid_utf8(file->header + file->at, *bytes);
    if (valid < *bytes)
        return FAIL(error, "byte %" PRIu64 ": expected UTF-8 in %s, found byte 0x%02x", file->at + valid,
                    what, file->header[file->at + valid]);
    file->at += *bytes;
    return true;
}

static bool read_name(gguf_file *file, uint64_t *at, uint64_t *bytes, uint64_t most, const char *what,
                      gguf_error *error)
{
    uint64_t start = file->at;
    if (!read_string(file, at, bytes, what, error))
        return false;
    if (*bytes == 0 || *bytes > most)
        return FAIL(error, "byte %" PRIu64 ": expected %s of 1 to %" PRIu64 " bytes, found %" PRIu64, start,
                    what, most, *bytes);
    for (uint64_t i = 0; i < *bytes; i++)
        if (file->header[*at + i] <= ' ' || file->header[*at + i] > '~')
            return FAIL(error, "byte %" PRIu64 ": expected printable ASCII in %s, found byte 0x%02x", *at + i,
                        what, file->header[*at + i]);
    return true;
}

static bool read_file(gguf_file *file, gguf_error *error)
{
    uint32_t version;
    if (!need(file, 4, "\"GGUF\"", error))
        return false;
    if (memcmp(file->header, "GGUF", 4) != 0)
        return FAIL(error, "byte 0: expected \"GGUF\", found bytes %02x %02x %02x %02x", file->header[0],
                    file->header[1], file->header[2], file->header[3]);
    file->at = 4;
    if (!read_u32(file, &version, "the version", error))
        return false;
    if (version == 0x02000000 || version == 0x03000000)
        return FAIL(error, "byte 4: expected a little-endian file, found a big-endian one");
    if (version != 2 && version != 3)
        return FAIL(error, "byte 4: expected version 2 or 3, found %" PRIu32, version);
    if (!read_u64(file, &file->tensor_count, "the number of tensors", error) ||
        !read_u64(file, &file->key_count, "the number of keys", error))
        return false;
    if (file->key_count > file->size / LEAST_KEY_BYTES)
        return FAIL(error, "byte 16: expected at most the %" PRIu64 " keys that fit the file, found %" PRIu64,
                    file->size / LEAST_KEY_BYTES, file->key_count);
    if (file->tensor_count > file->size / LEAST_TENSOR_BYTES)
        return FAIL(error,
                    "byte 8: expected at most the %" PRIu64 " tensors that fit the file, found %" PRIu64,
                    file->size / LEAST_TENSOR_BYTES, file->tensor_count);
    return read_keys(file, error) && read_tensors(file, error) && sort_keys(file, error) &&
           place_tensors(file, error) && sort_tensors(file, error);
}

/* Allocates at least one row, so that NULL means out of memory even for count 0. calloc checks the product for overflow. */
static bool allocate(void **rows, uint64_t count, size_t row_bytes, const char *what, gguf_error *error)
{
    *rows = count < SIZE_MAX ? calloc((size_t)count + 1, row_bytes) : NULL;
    return *rows || FAIL(error, "out of memory for %" PRIu64 " %s", count, what);
}

/* ---- Keys ---- */

static const char *name_of(const gguf_file *file, const gguf_key *key)
{
    return (const char *)file->header + key->name;
}

static bool read_keys(gguf_file *file, gguf_error *error)
{
    void *rows;
    if (!allocate(&rows, file->key_count, sizeof *file->keys, "keys", error))
        return false;
    file->keys = rows;
    for (uint64_t i = 0; i < file->key_count; i++)
        if (!read_key(file, &file->keys[i], error))
            return false;
    return true;
}

static bool read_key(gguf_file *file, gguf_key *key, gguf_error *error)
{
    uint64_t bytes, start = file->at;
    if (!read_name(file, &key->name, &bytes, MOST_KEY_BYTES, "a key's name", error) ||
        !read_u32(file, &key->kind, "a key's type", error))
        return false;
    key->name_bytes = (uint32_t)bytes;
    if (key->kind == ARRAY && (!read_u32(file, &key->item_kind, "the type of an array's items", error) ||
                               !read_u64(file, &key->count, "the length of an array", error)))
        return false;
    if (key->kind >= KINDS || (key->kind == ARRAY && (key->item_kind >= KINDS || key->item_kind == ARRAY)))
        return FAIL(
            error, "key '%.*s' at byte %" PRIu64 ": expected a known type%s, found number %" PRIu32 "%s",
            (int)key->name_bytes, name_of(file, key), start, key->kind == ARRAY ? " of an array's items" : "",
            key->kind == ARRAY ? key->item_kind : key->kind,
            key->kind == ARRAY && key->item_kind == ARRAY ? " (array)" : "");
    return read_value(file, key, error);
}

/* Reads a value, or all items of an array. Strings and bools are validated, since not every byte pattern is legal; for the
 * other types the position is recorded and the bytes are skipped. */
static bool read_value(gguf_file *file, gguf_key *key, gguf_error *error)
{
    uint32_t kind = key->kind == ARRAY ? key->item_kind : key->kind;
    uint64_t count = key->kind == ARRAY ? key->count : 1, bytes;
    char what[80];
    snprintf(what, sizeof what, "key '%.*s'", key->name_bytes < 60 ? (int)key->name_bytes : 60,
             name_of(file, key));
    key->value = file->at;
    if (kind == STRING) {
        if (key->kind == STRING)
            return read_string(file, &key->value, &key->count, what, error);
        for (uint64_t i = 0, at; i < count; i++)
            if (!read_string(file, &at, &bytes, what, error))
                return false;
        return true;
    }
    /* Division checks the product: count may be anything. */
    if (count > (file->size - file->at) / kinds[kind].bytes)
        return FAIL(error,
                    "byte %" PRIu64 ": expected %" PRIu64
                    " of type %s in %s, found the end of the file after %" PRIu64 " bytes",
                    file->at, count, kinds[kind].name, what, file->size - file->at);
    bytes = count * kinds[kind].bytes;
    if (!need(file, bytes, what, error))
        return false;
    for (uint64_t i = 0; kind == BOOL && i < count; i++)
        if (file->header[file->at + i] > 1)
            return FAIL(error, "byte %" PRIu64 ": expected a bool of 0 or 1 in %s, found %u", file->at + i,
                        what, file->header[file->at + i]);
    file->at += bytes;
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    const gguf_key *x = a, *y = b;
    size_t shared = x->name_bytes < y->name_bytes ? x->name_bytes : y->name_bytes;
    int order = memcmp(x->name_text, y->name_text, shared);
    return order ? order : (x->name_bytes > y->name_bytes) - (x->name_bytes < y->name_bytes);
}

/* Call it after the whole header is read: its memory then no longer moves. */
static bool sort_keys(gguf_file *file, gguf_error *error)
{
    for (uint64_t i = 0; i < file->key_count; i++)
        file->keys[i].name_text = name_of(file, &file->keys[i]);
    qsort(file->keys, (size_t)file->key_count, sizeof *file->keys, compare_keys);
    for (uint64_t i = 1; i < file->key_count; i++)
        if (compare_keys(&file->keys[i - 1], &file->keys[i]) == 0)
            return FAIL(error, "key '%.*s': expected once, found twice", (int)file->keys[i].name_bytes,
                        file->keys[i].name_text);
    return true;
}

static const gguf_key *find_key(const gguf_file *file, const char *name)
{
    size_t bytes = strlen(name);
    gguf_key wanted = {.name_text = name, .name_bytes = (uint32_t)bytes};
    if (bytes > MOST_KEY_BYTES)
        return NULL;
    return bsearch(&wanted, file->keys, (size_t)file->key_count, sizeof *file->keys, compare_keys);
}

const gguf_type *gguf_find_type(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcasecmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

bool gguf_has(const gguf_file *file, const char *key)
{
    return find_key(file, key) != NULL;
}

uint64_t gguf_key_count(const gguf_file *file)
{
    return file->key_count;
}

gguf_string gguf_key_at(const gguf_file *file, uint64_t index)
{
    return (gguf_string){file->keys[index].name_text, file->keys[index].name_bytes};
}

static double real_at(const unsigned char *bytes, uint32_t kind)
{
    const uint64_t bits = number_at(bytes, kinds[kind].bytes);
    const uint32_t single_bits = (uint32_t)bits;
    float single;
    double value;
    memcpy(&single, &single_bits, sizeof single);
    memcpy(&value, &bits, sizeof value);
    return kind == F32 ? (double)single : value;
}

static int64_t signed_at(const unsigned char *bytes, uint32_t kind)
{
    const uint64_t sign = UINT64_C(1) << (8 * kinds[kind].bytes - 1);
    return (int64_t)((number_at(bytes, kinds[kind].bytes) ^ sign) - sign);
}

/* Unprintable characters, including NUL, become question marks. */
static void show_string(const char *bytes, uint64_t count, char *text, size_t room)
{
    const size_t length = count < room ? (size_t)count : room - 1;
    memcpy(text, bytes, length);
    text[length] = 0;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            text[i] = '?';
}

void gguf_show_value(const gguf_file *file, uint64_t index, char *text, size_t room)
{
    const gguf_key *key = &file->keys[index];
    const unsigned char *bytes = file->header + key->value;
    switch (key->kind) {
    case ARRAY:
        snprintf(text, room, "an array of %" PRIu64 " %s", key->count, kinds[key->item_kind].name);
        break;
    case STRING:
        show_string((const char *)bytes, key->count, text, room);
        break;
    case BOOL:
        snprintf(text, room, "%s", *bytes ? "true" : "false");
        break;
    case F32: /* enough digits to read back the same number */
        snprintf(text, room, "%.9g", real_at(bytes, F32));
        break;
    case F64:
        snprintf(text, room, "%.17g", real_at(bytes, F64));
        break;
    case I8:
    case I16:
    case I32:
    case I64:
        snprintf(text, room, "%" PRId64, signed_at(bytes, key->kind));
        break;
    default:
        snprintf(text, room, "%" PRIu64, number_at(bytes, kinds[key->kind].bytes));
    }
}

/* The key, if it has the type; item_kind is for an array. */
static const gguf_key *get(const gguf_file *file, const char *name, uint32_t kind, uint32_t item_kind,
                           gguf_error *error)
{
    const gguf_key *key = find_key(file, name);
    if (key && key->kind == kind && (kind != ARRAY || key->item_kind == item_kind))
        return key;
    bool is_array = key && key->kind == ARRAY;
    (void)FAIL(error, "key '%s': expected %s%s, found %s%s", name, kind == ARRAY ? "an array of " : "",
               kinds[kind == ARRAY ? item_kind : kind].name, is_array ? "an array of " : "",
               key ? kinds[is_array ? key->item_kind : key->kind].name : "no such key");
    return NULL;
}

bool gguf_get_u32(const gguf_file *file, const char *name, uint32_t *value, gguf_error *error)
{
    const gguf_key *key = get(file, name, U32, 0, error);
    if (key)
        *value = (uint32_t)number_at(file->header + key->value, 4);
    return key;
}

bool gguf_get_f32(const gguf_file *file, const char *name, float *value, gguf_error *error)
{
    const gguf_key *key = get(file, name, F32, 0, error);
    if (key)
        *value = gguf_f32_at((gguf_array){file->header + key->value, 1}, 0);
    return key;
}

bool gguf_get_bool(const gguf_file *file, const char *name, bool *value, gguf_error *error)
{
    const gguf_key *key = get(file, name, BOOL, 0, error);
    if (key)
        *value = file->header[key->value];
    return key;
}

bool gguf_get_string(const gguf_file *file, const char *name, gguf_string *value, gguf_error *error)
{
    const gguf_key *key = get(file, name, STRING, 0, error);
    if (key)
        *value = (gguf_string){(const char *)file->header + key->value, (size_t)key->count};
    return key;
}

static bool get_array(const gguf_file *file, const char *name, uint32_t item_kind, gguf_array *value,
                      gguf_error *error)
{
    const gguf_key *key = get(file, name, ARRAY, item_kind, error);
    if (key)
        *value = (gguf_array){file->header + key->value, key->count};
    return key;
}

bool gguf_get_strings(const gguf_file *file, const char *key, gguf_array *value, gguf_error *error)
{
    return get_array(file, key, STRING, value, error);
}

bool gguf_get_f32s(const gguf_file *file, const char *key, gguf_array *value, gguf_error *error)
{
    return get_array(file, key, F32, value, error);
}

bool gguf_get_i32s(const gguf_file *file, const char *key, gguf_array *value, gguf_error *error)
{
    return get_array(file, key, I32, value, error);
}

bool gguf_string_is(gguf_string string, const char *text)
{
    return string.size == strlen(text) && memcmp(string.bytes, text, string.size) == 0;
}

gguf_string gguf_next_string(gguf_array *strings)
{
    gguf_string string = {(const char *)strings->bytes + 8, (size_t)number_at(strings->bytes, 8)};
    strings->bytes += 8 + string.size;
    strings->count--;
    return string;
}

float gguf_f32_at(gguf_array f32s, uint64_t index)
{
    uint32_t bits = (uint32_t)number_at(f32s.bytes + 4 * index, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

int32_t gguf_i32_at(gguf_array i32s, uint64_t index)
{
    uint32_t bits = (uint32_t)number_at(i32s.bytes + 4 * index, 4);
    int32_t value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- Tensors ---- */

static bool read_tensors(gguf_file *file, gguf_error *error)
{
    void *rows;
    if (!allocate(&rows, file->tensor_count, sizeof *file->tensors, "tensors", error))
        return false;
    file->tensors = rows;
    for (uint64_t i = 0; i < file->tensor_count; i++)
        if (!read_tensor(file, &file->tensors[i], error))
            return false;
    return true;
}

/* Reads and checks one tensor's header. place_tensors checks its bytes, whose start is known only after the last header. */
static bool read_tensor(gguf_file *file, gguf_tensor *tensor, gguf_error *error)
{
    uint64_t name, name_bytes;
    uint32_t number;
    if (!read_name(file, &name, &name_bytes, MOST_TENSOR_NAME_BYTES, "a tensor's name", error))
        return false;
    memcpy(tensor->name, file->header + name, (size_t)name_bytes);
    if (!read_u32(file, &tensor->dim_count, "a tensor's number of dims", error))
        return false;
    if (tensor->dim_count == 0 || tensor->dim_count > MOST_DIMS)
        return FAIL(error, "tensor '%s': expected 1 to %d dims, found %" PRIu32, tensor->name, MOST_DIMS,
                    tensor->dim_count);
    for (uint32_t i = 0; i < MOST_DIMS; i++) {
        tensor->dims[i] = 1;
        if (i < tensor->dim_count && !read_u64(file, &tensor->dims[i], "a tensor's dims", error))
            return false;
        if (tensor->dims[i] == 0)
            return FAIL(error, "tensor '%s': expected dims of at least 1, found dims[%" PRIu32 "] = 0",
                        tensor->name, i);
    }
    if (!read_u32(file, &number, "a tensor's type", error) ||
        !read_u64(file, &tensor->offset, "a tensor's offset", error))
        return false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].number == number)
            tensor->type = &types[i];
    if (!tensor->type)
        return FAIL(error, "tensor '%s': expected a type of ggml, found number %" PRIu32, tensor->name,
                    number);
    if (tensor->dims[0] % tensor->type->block_values != 0)
        return FAIL(error,
                    "tensor '%s': expected dims[0] to be a multiple of %s's %" PRIu32 ", found %" PRIu64,
                    tensor->name, tensor->type->name, tensor->type->block_values, tensor->dims[0]);
    tensor->bytes = tensor->dims[0] / tensor->type->block_values;
    const uint64_t factors[] = {tensor->type->block_bytes, tensor->dims[1], tensor->dims[2], tensor->dims[3]};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        /* The file's size is the bound: larger numbers need not be exact. */
        if (tensor->bytes > file->size / factors[i] || tensor->bytes > SIZE_MAX / factors[i])
            return FAIL(error,
                        "tensor '%s': expected %" PRIu64 " x %" PRIu64 " x %" PRIu64 " x %" PRIu64
                        " %s to fit the file, found %" PRIu64 " bytes",
                        tensor->name, tensor->dims[0], tensor->dims[1], tensor->dims[2], tensor->dims[3],
                        tensor->type->name, file->size);
        tensor->bytes *= factors[i];
    }
    return true;
}

static int compare_offsets(const void *a, const void *b)
{
    const gguf_tensor *x = a, *y = b;
    return x->offset == y->offset ? strcmp(x->name, y->name) : x->offset < y->offset ? -1 : 1;
}

static bool place_tensors(gguf_file *file, gguf_error *error)
{
    uint32_t alignment = DEFAULT_ALIGNMENT;
    if (gguf_has(file, "general.alignment") && !gguf_get_u32(file, "general.alignment", &alignment, error))
        return false;
    if (alignment < 8 || (alignment & (alignment - 1)) != 0)
        return FAIL(error, "key 'general.alignment': expected a power of two of at least 8, found %" PRIu32,
                    alignment);
    /* file->at <= file->size < 2^63: the sum is exact. A file without tensors may end before the padding does. */
    uint64_t data = (file->at + alignment - 1) / alignment * alignment;
    for (uint64_t i = 0; i < file->tensor_count; i++) {
        gguf_tensor *tensor = &file->tensors[i];
        if (tensor->offset % alignment != 0)
            return FAIL(error,
                        "tensor '%s': expected an offset that is a multiple of %" PRIu32 ", found %" PRIu64,
                        tensor->name, alignment, tensor->offset);
        if (data > file->size || tensor->offset > file->size - data ||
            tensor->bytes > file->size - data - tensor->offset)
            return FAIL(error,
                        "tensor '%s': expected %" PRIu64 " bytes at offset %" PRIu64
                        " of the data, found the end of the file after %" PRIu64 " of the data",
                        tensor->name, tensor->bytes, tensor->offset,
                        file->size > data ? file->size - data : 0);
        tensor->offset += data;
    }
    qsort(file->tensors, (size_t)file->tensor_count, sizeof *file->tensors, compare_offsets);
    for (uint64_t i = 1; i < file->tensor_count; i++) {
        const gguf_tensor *before = &file->tensors[i - 1], *tensor = &file->tensors[i];
        uint64_t apart = tensor->offset - before->offset;
        if (apart < before->bytes) {
            uint64_t shared = before->bytes - apart < tensor->bytes ? before->bytes - apart : tensor->bytes;
            return FAIL(error,
                        "tensor '%s': expected bytes of its own, found %" PRIu64
                        " that are of tensor '%s' too",
                        tensor->name, shared, before->name);
        }
    }
    return true;
}

static int compare_tensor_names(const void *a, const void *b)
{
    const gguf_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static bool sort_tensors(gguf_file *file, gguf_error *error)
{
    qsort(file->tensors, (size_t)file->tensor_count, sizeof *file->tensors, compare_tensor_names);
    for (uint64_t i = 1; i < file->tensor_count; i++)
        if (compare_tensor_names(&file->tensors[i - 1], &file->tensors[i]) == 0)
            return FAIL(error, "tensor '%s': expected once, found twice", file->tensors[i].name);
    return true;
}

static int compare_with_name(const void *name, const void *tensor)
{
    return strcmp(name, ((const gguf_tensor *)tensor)->name);
}

const gguf_tensor *gguf_find_tensor(const gguf_file *file, const char *name)
{
    return bsearch(name, file->tensors, (size_t)file->tensor_count, sizeof *file->tensors, compare_with_name);
}

uint64_t gguf_tensor_count(const gguf_file *file)
{
    return file->tensor_count;
}

const gguf_tensor *gguf_tensor_at(const gguf_file *file, uint64_t index)
{
    return &file->tensors[index];
}

bool gguf_read(const gguf_file *file, const gguf_tensor *tensor, uint64_t from, void *into, size_t bytes,
               gguf_error *error)
{
    int cause;
    size_t read = read_at(file, tensor->offset + from, into, bytes, &cause);
    if (read == bytes)
        return true;
    return FAIL(error, "tensor '%s': expected %zu bytes at byte %" PRIu64 ", found %zu: %s", tensor->name,
                bytes, tensor->offset + from, read,
                cause ? strerror(cause) : "the file was shortened after it was opened");
}
