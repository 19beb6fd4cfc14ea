/* Fuzzes kiln_zstd with hostile frames: it gives libzstd's result or refuses the frame, and accesses only the frame and the
 * scratch, which end at protected pages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <zstd.h>
#include <zstd_errors.h>

#include "../../replay.h"
#include "frames.h"

enum { MOST_BYTES = 1 << 16 };

static size_t page;
static char *frame_end, *scratch_end;
static char expected[MOST_BYTES];

/* libzstd.a is not instrumented for libFuzzer, so its results replace coverage. */
__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t reached[ZSTD_error_maxCode + 18];

/* Returns memory of this many bytes that ends at a protected page. */
static char *end_of_guarded(size_t bytes)
{
    const size_t whole = (bytes + page - 1) / page * page;
    char *start = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED || mprotect(start + whole, page, PROT_NONE) != 0)
        abort();
    return start + whole;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    page = (size_t)sysconf(_SC_PAGESIZE);
    frame_end = end_of_guarded(MOST_BYTES);
    scratch_end = end_of_guarded(SCRATCH_BYTES(MOST_BYTES));
    return 0;
}

static void expand(const char *frame, size_t size, uint64_t expanded_bytes)
{
    const kiln_image image = {.data = frame, .bytes = size, .expanded_bytes = expanded_bytes};
    const size_t scratch_bytes = SCRATCH_BYTES(expanded_bytes);
    char *scratch = scratch_end - scratch_bytes;
    const kiln_status status = kiln_zstd(&image, scratch, scratch_bytes);
    const size_t bytes = ZSTD_decompress(expected, sizeof expected, frame, size);
    if (ZSTD_isError(bytes))
        reached[ZSTD_getErrorCode(bytes)] = 1;
    else
        for (size_t rest = bytes, i = ZSTD_error_maxCode; rest > 0; rest >>= 1, i++)
            reached[i] = 1;
    if (status == KILN_ERROR_CORRUPT_IMAGE)
        return;
    if (status != KILN_OK || bytes != expanded_bytes || memcmp(scratch, expected, bytes) != 0 ||
        scratch[bytes] != '\0')
        abort();
}

/* Tries the frame's size as the bundle's size, and another one. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > MOST_BYTES)
        return 0;
    char *frame = frame_end - size;
    if (size > 0)
        memcpy(frame, data, size);
    const unsigned long long stated = ZSTD_getFrameContentSize(frame, size);
    if (stated < MOST_BYTES)
        expand(frame, size, stated);
    expand(frame, size, MOST_BYTES - 1);
    return 0;
}
