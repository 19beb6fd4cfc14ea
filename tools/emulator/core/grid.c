/* Distributes blocks over host threads. A worker runs each block to its end before it takes the next one. Only if a block
   runs for long (it may be waiting for a later block) does the worker alternate between blocks, up to as many as the device
   can hold. */
#include "launch.h"

#include <fenv.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

typedef struct pool {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    emu_launch *launch; /* the launch that helpers should join */
    unsigned threads;   /* that run it, the caller's included */
    unsigned wanted;    /* helpers that have not joined yet */
    unsigned helpers;
} pool;

static pool the_pool = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0, 0, 0};
static pthread_mutex_t launch_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t common_factor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A shuffled order steps by about 0.618 of all blocks, so that neighbours are far apart and every run has the same order.
   The step has no factor in common with the number of blocks, so that it reaches each block once. */
static uint64_t step_of(uint64_t count)
{
    uint64_t step = (uint64_t)((double)count * 0.618) | 1;
    while (common_factor(step, count) > 1)
        step++;
    return step;
}

static void choose_blocks(emu_launch *l, const emu_limits *limits)
{
    uint64_t last = limits->last_block, first = limits->first_block;
    l->block_count = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    l->end_block = last < l->block_count ? last + 1 : l->block_count;
    l->first_block = first < l->end_block ? first : l->end_block;
    l->order = limits->order;
    l->step = l->order == EMU_SHUFFLE ? step_of(l->end_block - l->first_block) : 1;
}

/* At least one thread, even if there is no block to run. */
static unsigned threads_for(const emu_launch *l, uint64_t most)
{
    uint64_t blocks = l->end_block - l->first_block;
    return (unsigned)(blocks == 0 ? 1 : blocks < most ? blocks : most);
}

typedef struct worker {
    emu_launch *launch;
    emu_block **blocks; /* live blocks first; then ended ones, whose memory later blocks reuse */
    unsigned live, room, most;
} worker;

static emu_block *spare_block(worker *k)
{
    if (k->live == k->room) {
        unsigned room = 2 * k->room + 1;
        emu_block **grown = emu_alloc(room * sizeof *grown);
        if (k->room)
            memcpy(grown, k->blocks, k->room * sizeof *grown);
        free(k->blocks);
        k->blocks = grown;
        k->room = room;
    }
    if (!k->blocks[k->live])
        k->blocks[k->live] = emu_alloc(sizeof(emu_block));
    return k->blocks[k->live++];
}

static uint64_t numbered_block(const emu_launch *l, uint64_t number)
{
    uint64_t count = l->end_block - l->first_block;
    if (l->order == EMU_FORWARD)
        return l->first_block + number;
    if (l->order == EMU_REVERSE)
        return l->end_block - 1 - number;
    return l->first_block + (uint64_t)((u128)(number + 1) * l->step % count);
}

static bool start_block(worker *k)
{
    emu_launch *l = k->launch;
    for (;;) {
        uint64_t number = __atomic_fetch_add(&l->next_number, 1, __ATOMIC_RELAXED);
        if (number >= l->end_block - l->first_block)
            return false;
        uint64_t index = numbered_block(l, number);
        if (__atomic_load_n(&l->fault_block, __ATOMIC_RELAXED) >= index) {
            emu_block_start(spare_block(k), l, index);
            return true;
        }
        if (l->order == EMU_FORWARD)
            return false; /* all blocks that are left have higher numbers */
    }
}

static void end_block(worker *k, unsigned i)
{
    emu_block *ended = k->blocks[i];
    k->blocks[i] = k->blocks[--k->live];
    k->blocks[k->live] = ended;
}

/* Uses the default floating-point environment, as the device does: fesetround and -ffast-math change the host thread's. */
static void run_blocks(emu_launch *l, unsigned threads)
{
    fenv_t host;
    fegetenv(&host);
    fesetenv(FE_DFL_ENV);
    unsigned resident = l->multiprocessors * l->max_resident_blocks;
    worker k = {.launch = l, .most = (resident + threads - 1) / threads};
    while (k.live || start_block(&k)) {
        bool all_unfinished = true;
        for (unsigned i = 0; i < k.live;) {
            if (emu_block_run(k.blocks[i]) == EMU_BLOCK_UNFINISHED) {
                i++;
                continue;
            }
            end_block(&k, i);
            all_unfinished = false;
        }
        if (all_unfinished && k.live < k.most)
            start_block(&k);
        if (all_unfinished && threads > 1)
            sched_yield(); /* the blocks may be waiting for a block of another host thread */
    }
    for (unsigned i = 0; i < k.room && k.blocks[i]; i++) {
        emu_block_free(k.blocks[i]);
        free(k.blocks[i]);
    }
    free(k.blocks);
    fesetenv(&host);
}

static void *help_launches(void *unused)
{
    pool *p = unused;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->wanted)
            pthread_cond_wait(&p->wake, &p->lock);
        p->wanted--;
        emu_launch *l = p->launch;
        unsigned threads = p->threads;
        pthread_mutex_unlock(&p->lock);
        run_blocks(l, threads);
        pthread_mutex_lock(&p->lock);
        if (--l->workers_left == 0)
            pthread_cond_broadcast(&p->done);
    }
    return NULL;
}

static void call_helpers(emu_launch *l, unsigned wanted)
{
    pool *p = &the_pool;
    pthread_mutex_lock(&p->lock);
    while (p->helpers < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, help_launches, p) != 0)
            break;
        pthread_detach(thread);
        p->helpers++;
    }
    wanted = wanted < p->helpers ? wanted : p->helpers;
    p->launch = l;
    p->threads = wanted + 1;
    p->wanted = l->workers_left = wanted;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

static void await_helpers(emu_launch *l)
{
    pthread_mutex_lock(&the_pool.lock);
    while (l->workers_left)
        pthread_cond_wait(&the_pool.done, &the_pool.lock);
    pthread_mutex_unlock(&the_pool.lock);
}

CUresult emu_run_launch(emu_launch *l)
{
    emu_limits limits;
    if (!emu_read_limits(&limits))
        return l->report.result = CUDA_ERROR_INVALID_VALUE;
    choose_blocks(l, &limits);
    l->fault_block = UINT64_MAX;
    l->most_jumps = limits.jumps;
    l->most_idle_jumps = limits.idle_jumps;
    EMU_TELL(&l->audience, launch_begin, l);
    unsigned threads = l->is_ordered ? 1 : threads_for(l, limits.threads);
    l->is_shared = threads > 1;
    pthread_mutex_lock(&launch_lock); /* only one launch at a time uses the helpers */
    if (threads > 1)
        call_helpers(l, threads - 1);
    run_blocks(l, threads);
    if (threads > 1)
        await_helpers(l);
    pthread_mutex_unlock(&launch_lock);
    EMU_TELL(&l->audience, launch_end, l);
    return emu_result_of(l);
}
