/* Checks that the codec never calls malloc, calloc or free, which libzstd.a refers to, and stays within zstd.h's stack limit. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "frames.h"

enum { TEXT_BYTES = 200000, STACK_BYTES = 65536, PAINT = 0xa5 };

/* ---- the heap --------------------------------------------------------------------------------------------------- */

static _Alignas(16) unsigned char heap[64 << 20];
static size_t heap_used;
static int heap_is_closed;

static void say_and_abort(const char *name)
{
    fputs(name, stderr); /* unbuffered */
    fputs(" was called\n", stderr);
    abort();
}

void *malloc(size_t bytes)
{
    const size_t at = heap_used;
    if (heap_is_closed)
        say_and_abort("malloc");
    if (bytes > sizeof heap - 16 - at)
        return NULL;
    heap_used += (bytes | 15) + 1;
    return heap + at;
}

void *calloc(size_t count, size_t bytes) /* never freed, so always of zeros */
{
    if (heap_is_closed)
        say_and_abort("calloc");
    return malloc(count * bytes);
}

void free(void *memory)
{
    (void)memory;
    if (heap_is_closed)
        say_and_abort("free");
}

/* ---- the stack -------------------------------------------------------------------------------------------------- */

static unsigned char stack[STACK_BYTES];
static char text[TEXT_BYTES], frame[TEXT_BYTES];
static _Alignas(16) char scratch[SCRATCH_BYTES(TEXT_BYTES)];
static kiln_image image = {.data = frame, .expanded_bytes = TEXT_BYTES};
static kiln_status status;
static ucontext_t caller, callee;

static void do_nothing(void)
{
}

static void expand(void)
{
    status = kiln_zstd(&image, scratch, sizeof scratch);
}

/* Returns the bytes of a painted stack that a function overwrites. */
static size_t stack_bytes(void (*function)(void))
{
    memset(stack, PAINT, sizeof stack);
    getcontext(&callee);
    callee.uc_stack.ss_sp = stack;
    callee.uc_stack.ss_size = sizeof stack;
    callee.uc_link = &caller;
    makecontext(&callee, function, 0);
    swapcontext(&caller, &callee);
    size_t untouched = 0;
    while (untouched < sizeof stack && stack[untouched] == PAINT)
        untouched++;
    return sizeof stack - untouched;
}

/* Makes a text like PTX: few words in irregular order. */
static void write_text(void)
{
    static const char *const words[] = {"add.u32 ", "mov.b64 ", "%r1", "%r2",
                                        "%rd7",     ", ",       ";\n", "ld.global.f32 "};
    uint32_t draw = 1;
    size_t at = 0;
    while (at < TEXT_BYTES) {
        draw = draw * 1664525 + 1013904223;
        const char *word = words[draw >> 29];
        const size_t length = strlen(word), room = TEXT_BYTES - at;
        memcpy(text + at, word, length < room ? length : room);
        at += length < room ? length : room;
    }
}

int main(void)
{
    write_text();
    image.bytes = pack(frame, sizeof frame, text, TEXT_BYTES, 1);
    const size_t used_before = heap_used;
    printf("the frame has %zu bytes, packing took %zu bytes of heap\n", (size_t)image.bytes, used_before);
    fflush(stdout);

    heap_is_closed = 1;
    const size_t least = stack_bytes(do_nothing), most = stack_bytes(expand);
    heap_is_closed = 0;
    if (status != KILN_OK || memcmp(scratch, text, TEXT_BYTES) != 0 || used_before == 0)
        return fputs("FAILED: the text did not come back\n", stderr), 1;
    printf("%zu bytes of stack\n", most - least);
    if (most - least > STATED_BYTES)
        return fprintf(stderr, "FAILED: zstd.h states at most %d\n", STATED_BYTES), 1;
    return 0;
}
