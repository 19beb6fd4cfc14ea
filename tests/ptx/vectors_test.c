/* Runs the golden kernel `vectors` on the emulated device: each thread loads a vector and stores it in reverse.
 *
 *     ptx_vectors_test DRIVER PTX
 */
#include "../driver.h"

enum { THREADS = 32, ROWS = 7, MOST_BYTES = 16 * THREADS, LARGEST_PTX = 1 << 16 };

/* From emit_vectors(): bytes of an element, elements per thread, the addend. */
static const struct {
    const char *name;
    int bytes, count, more;
} rows[ROWS] = {{"f16", 2, 8, 0}, {"bf16", 2, 8, 0}, {"u16", 2, 8, 1}, {"s8", 1, 16, 0},
                {"u8", 1, 8, 1},  {"b8", 1, 16, 0},  {"s16", 2, 8, 0}};

static unsigned element(const unsigned char *at, int bytes)
{
    return bytes == 1 ? at[0] : at[0] | (unsigned)at[1] << 8;
}

/* Fills with uniformly random bits, different for each row. */
static void fill(unsigned char *bytes, int row)
{
    uint32_t state = 12345u + (uint32_t)row;
    for (int i = 0; i < MOST_BYTES; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)(state >> 24);
    }
}

static int count_wrong(int row, const unsigned char *in, const unsigned char *out)
{
    const int bytes = rows[row].bytes, count = rows[row].count;
    const unsigned mask = bytes == 1 ? 0xff : 0xffff;
    int wrong = 0;
    for (int thread = 0; thread < THREADS; thread++) {
        for (int i = 0; i < count; i++) {
            const int from = thread * count + count - 1 - i, to = thread * count + i;
            const unsigned expected = (element(in + from * bytes, bytes) + (unsigned)rows[row].more) & mask;
            wrong += element(out + to * bytes, bytes) != expected;
        }
    }
    if (wrong)
        printf("%s: %d of %d elements are wrong\n", rows[row].name, wrong, THREADS * count);
    return wrong;
}

int main(int argc, char **argv)
{
    static char ptx[LARGEST_PTX];
    static unsigned char in[ROWS][MOST_BYTES], out[MOST_BYTES];
    CUdeviceptr addresses[1 + 2 * ROWS];
    void *params[1 + 2 * ROWS];
    CUmodule module;
    int32_t wide[THREADS];
    int wrong = 0;
    if (argc != 3)
        return 2;
    FILE *file = fopen(argv[2], "rb");
    need(file != NULL, "opening the PTX");
    ptx[fread(ptx, 1, sizeof ptx - 1, file)] = '\0';
    fclose(file);
    open_driver(argv[1]);
    CUfunction function = load_kernel(ptx, "vectors", &module);
    for (int i = 0; i < 1 + 2 * ROWS; i++) {
        addresses[i] = allocate(MOST_BYTES);
        params[i] = &addresses[i];
    }
    for (int row = 0; row < ROWS; row++) {
        fill(in[row], row);
        upload_to(addresses[1 + 2 * row], in[row], MOST_BYTES);
    }
    need(driver.launch_kernel(function, 1, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL) == 0,
         "cuLaunchKernel");
    for (int row = 0; row < ROWS; row++) {
        download(out, addresses[2 + 2 * row], (size_t)(THREADS * rows[row].count * rows[row].bytes));
        wrong += count_wrong(row, in[row], out);
    }
    download(wide, addresses[0], sizeof wide);
    for (int thread = 0; thread < THREADS; thread++)
        wrong += wide[thread] != (signed char)in[3][16 * thread + 5];
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
