/* A preloaded library. One of the program's own calls of malloc, calloc and realloc fails; at exit it prints leaks to stderr.
 *
 *     LM_FAIL_HEAP  which one, from 1 on
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void __libc_free(void *memory);

static long allocations, blocks; /* blocks that are not yet freed */

static int is_first(struct dl_phdr_info *info, size_t bytes, void *found)
{
    uintptr_t *range = found;
    (void)bytes;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            range[0] = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            range[1] = range[0] + info->dlpi_phdr[i].p_memsz;
        }
    return 1; /* dl_iterate_phdr lists the program itself first */
}

static int is_programs(const void *caller)
{
    static uintptr_t range[2];
    if (!range[1])
        dl_iterate_phdr(is_first, range);
    return (uintptr_t)caller >= range[0] && (uintptr_t)caller < range[1];
}

static int fails(const void *caller)
{
    static long failing = -1;
    const char *text = getenv("LM_FAIL_HEAP");
    if (failing < 0)
        failing = text ? strtol(text, NULL, 10) : 0;
    return is_programs(caller) && ++allocations == failing;
}

static void *counted(void *memory, const void *caller)
{
    blocks += memory && is_programs(caller);
    return memory;
}

void *malloc(size_t bytes)
{
    const void *caller = __builtin_return_address(0);
    return fails(caller) ? NULL : counted(__libc_malloc(bytes), caller);
}

void *calloc(size_t count, size_t bytes)
{
    const void *caller = __builtin_return_address(0);
    return fails(caller) ? NULL : counted(__libc_calloc(count, bytes), caller);
}

void *realloc(void *old, size_t bytes)
{
    const void *caller = __builtin_return_address(0);
    if (fails(caller))
        return NULL;
    void *memory = __libc_realloc(old, bytes);
    return old ? memory : counted(memory, caller);
}

void free(void *memory)
{
    blocks -= memory && is_programs(__builtin_return_address(0));
    __libc_free(memory);
}

__attribute__((destructor)) static void report(void)
{
    fprintf(stderr, "heap: %ld allocations", allocations);
    if (blocks)
        fprintf(stderr, ", left: %ld blocks", blocks);
    fputc('\n', stderr);
}
