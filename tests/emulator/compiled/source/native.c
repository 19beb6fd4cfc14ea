/* The host's grid: the threads of a block are coroutines, which switch only where they wait for each other. */
#define _XOPEN_SOURCE 700
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBERS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBERS 1
#endif
#endif
#ifdef FIBERS /* the address sanitizer must know whose stack is in use */
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(save, bottom, size)  ((void)(save), (void)(bottom), (void)(size))
#define __sanitizer_finish_switch_fiber(save, bottom, size) ((void)(save), (void)(bottom), (void)(size))
#endif

enum { MOST_THREADS = 1024, STACK_BYTES = 65536, MOST_ROUNDS = 10000000 };

typedef struct coroutine {
    ucontext_t context;
    char *stack;
    native_dim index;
    bool ended;
} coroutine;

/* The values that the lanes of a warp exchange. A lane has arrived from its deposit until all lanes of its mask have read
   it. */
typedef struct warp {
    uint64_t values[32];
    uint32_t arrived, left;
} warp;

native_dim threadIdx, blockIdx, blockDim, gridDim;
_Alignas(16) char native_shared[49152];

static coroutine threads[MOST_THREADS], *running;
static warp warps[MOST_THREADS / 32];
static ucontext_t scheduler;
static const void *scheduler_stack;
static size_t scheduler_stack_bytes;
static native_kernel *current_kernel;
static const native_arguments *current_arguments;
static unsigned thread_count, alive, barrier_arrived, barrier_generation, barrier_sum, barrier_result;

static void give_way(void)
{
    coroutine *me = running;
    void *fake = NULL;
    __sanitizer_start_switch_fiber(me->ended ? NULL : &fake, scheduler_stack, scheduler_stack_bytes);
    swapcontext(&me->context, &scheduler);
    __sanitizer_finish_switch_fiber(fake, &scheduler_stack, &scheduler_stack_bytes);
}

static void start(void)
{
    __sanitizer_finish_switch_fiber(NULL, &scheduler_stack, &scheduler_stack_bytes);
    current_kernel(current_arguments);
    running->ended = true;
    alive--;
    give_way();
}

static void resume(coroutine *t)
{
    void *fake = NULL;
    running = t;
    threadIdx = t->index;
    __sanitizer_start_switch_fiber(&fake, t->stack, STACK_BYTES);
    swapcontext(&scheduler, &t->context);
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
}

static void make_thread(unsigned i)
{
    coroutine *t = &threads[i];
    if (!t->stack)
        t->stack = malloc(STACK_BYTES); /* reused by later blocks */
    if (!t->stack || getcontext(&t->context) != 0)
        abort();
    t->context.uc_stack.ss_sp = t->stack;
    t->context.uc_stack.ss_size = STACK_BYTES;
    t->context.uc_link = NULL;
    t->index = (native_dim){i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
    t->ended = false;
    makecontext(&t->context, start, 0);
}

static void run_block(void)
{
    thread_count = alive = blockDim.x * blockDim.y * blockDim.z;
    barrier_arrived = barrier_sum = 0;
    memset(warps, 0, sizeof warps);
    for (unsigned i = 0; i < thread_count; i++)
        make_thread(i);
    for (unsigned round = 0; alive; round++) {
        if (round == MOST_ROUNDS) {
            fprintf(stderr, "native: %u threads wait forever\n", alive);
            abort();
        }
        for (unsigned i = 0; i < thread_count; i++)
            if (!threads[i].ended)
                resume(&threads[i]);
    }
}

void native_run(native_kernel *kernel, const native_arguments *arguments, native_dim grid, native_dim block)
{
    current_kernel = kernel;
    current_arguments = arguments;
    gridDim = grid;
    blockDim = block;
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
                run_block();
}

int __syncthreads_count(int predicate)
{
    unsigned generation = barrier_generation;
    barrier_sum += predicate != 0;
    if (++barrier_arrived == thread_count) {
        barrier_result = barrier_sum;
        barrier_sum = barrier_arrived = 0;
        barrier_generation++;
    }
    while (barrier_generation == generation)
        give_way();
    return (int)barrier_result;
}

void __syncthreads(void)
{
    __syncthreads_count(0);
}

/* The thread's linear index in its block, which decides its lane, as in PTX. */
static uint32_t own_index(void)
{
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

static uint32_t present(uint32_t mask)
{
    uint32_t first = own_index() & ~31u, there = thread_count - first;
    return there < 32 ? mask & ((1u << there) - 1) : mask;
}

void native_exchange(uint32_t mask, uint64_t value, uint64_t values[32])
{
    warp *w = &warps[own_index() / 32];
    uint32_t lane = 1u << (own_index() & 31);
    mask = present(mask);
    while (w->left & lane)
        give_way();
    w->values[own_index() & 31] = value;
    w->arrived |= lane;
    while ((w->arrived & mask) != mask)
        give_way();
    memcpy(values, w->values, sizeof w->values);
    w->left |= lane;
    if ((w->left & mask) == mask) {
        w->left &= ~mask;
        w->arrived &= ~mask;
    }
}

void __syncwarp(uint32_t mask)
{
    uint64_t values[32];
    native_exchange(mask, 0, values);
}

void native_shuffle(char kind, uint32_t mask, void *value, size_t bytes, uint32_t by, uint32_t width)
{
    uint64_t bits = 0, values[32];
    uint32_t lane = own_index() & 31, first = lane & ~(width - 1), last = first | (width - 1), from = lane;
    memcpy(&bits, value, bytes);
    native_exchange(mask, bits, values);
    if (kind == 'i')
        from = first | (by & (width - 1));
    else if (kind == 'u' && lane >= first + by)
        from = lane - by;
    else if (kind == 'd' && lane + by <= last)
        from = lane + by;
    else if (kind == 'x' && (lane ^ by) <= last)
        from = lane ^ by;
    memcpy(value, &values[from], bytes);
}

uint32_t __ballot_sync(uint32_t mask, int predicate)
{
    uint64_t values[32];
    uint32_t result = 0;
    native_exchange(mask, predicate != 0, values);
    for (unsigned i = 0; i < 32; i++)
        result |= (present(mask) >> i & 1) && values[i] ? 1u << i : 0;
    return result;
}

uint32_t __match_any_sync(uint32_t mask, uint32_t value)
{
    uint64_t values[32];
    uint32_t result = 0;
    native_exchange(mask, value, values);
    for (unsigned i = 0; i < 32; i++)
        result |= (present(mask) >> i & 1) && values[i] == value ? 1u << i : 0;
    return result;
}

uint32_t __match_all_sync(uint32_t mask, uint32_t value, int *same)
{
    *same = __match_any_sync(mask, value) == present(mask);
    return *same ? present(mask) : 0;
}
