/* Clusters of blocks over host threads. A worker runs one cluster at a time to its end; only a cluster that runs for
 * long (it may be waiting for a later one) shares its worker with others, up to what the device could hold. */
#include "launch.h"

#include <fenv.h>
#include <sched.h>
#include <stdlib.h>

__extension__ typedef unsigned __int128 u128;

typedef struct pool {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    emu_launch *launch; /* the launch that helpers should join */
    unsigned threads;   /* threads that run the launch, including the caller's */
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

/* A shuffled order steps by 0.618 of all clusters, so that neighbours are far apart and every run has the same order. The
 * step has no factor in common with their number, so it meets each cluster once. */
static uint64_t step_of(uint64_t count)
{
    uint64_t step = (uint64_t)((double)count * 0.618) | 1;
    while (common_factor(step, count) > 1)
        step++;
    return step;
}

/* For clusters of several blocks, the ones to run are chosen when they would begin. */
static void choose_clusters(emu_launch *l, const emu_limits *limits)
{
    uint64_t last = limits->last_block, first = limits->first_block;
    l->block_count = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    l->end_block = last < l->block_count ? last + 1 : l->block_count;
    l->first_block = first < l->end_block ? first : l->end_block;
    l->cluster_blocks = l->cluster[0] * l->cluster[1] * l->cluster[2];
    l->first_cluster = l->cluster_blocks == 1 ? l->first_block : 0;
    l->end_cluster = l->cluster_blocks == 1 ? l->end_block : l->block_count / l->cluster_blocks;
    l->order = limits->order;
    l->step = l->order == EMU_SHUFFLE ? step_of(l->end_cluster - l->first_cluster) : 1;
}

/* At least one, though it may find no cluster to run. */
static unsigned threads_for(const emu_launch *l, uint64_t most)
{
    uint64_t clusters = l->end_cluster - l->first_cluster;
    return (unsigned)(clusters == 0 ? 1 : clusters < most ? clusters : most);
}

typedef struct worker {
    emu_launch *launch;
    emu_cluster **clusters; /* live blocks first; then ended ones, whose memory later blocks reuse */
    size_t room;
    unsigned live, most;
} worker;

static emu_cluster *spare_cluster(worker *k)
{
    k->clusters = emu_with_room(k->clusters, k->live, &k->room, sizeof(emu_cluster *));
    if (!k->clusters[k->live])
        k->clusters[k->live] = emu_alloc(sizeof(emu_cluster));
    return k->clusters[k->live++];
}

static uint64_t numbered_cluster(const emu_launch *l, uint64_t number)
{
    uint64_t count = l->end_cluster - l->first_cluster;
    if (l->order == EMU_FORWARD)
        return l->first_cluster + number;
    if (l->order == EMU_REVERSE)
        return l->end_cluster - 1 - number;
    return l->first_cluster + (uint64_t)((u128)(number + 1) * l->step % count);
}

/* Returns true if a block of the cluster is to run. */
static bool is_chosen(const emu_launch *l, uint64_t index)
{
    uint32_t id[3];
    for (uint32_t rank = 0; rank < l->cluster_blocks; rank++) {
        uint64_t block = emu_block_of_cluster(l, index, rank, id);
        if (block >= l->first_block && block < l->end_block)
            return true;
    }
    return false;
}

static bool start_cluster(worker *k)
{
    emu_launch *l = k->launch;
    for (;;) {
        uint64_t number = __atomic_fetch_add(&l->next_number, 1, __ATOMIC_RELAXED);
        if (number >= l->end_cluster - l->first_cluster)
            return false;
        uint64_t index = numbered_cluster(l, number);
        if (!is_chosen(l, index))
            continue;
        if (__atomic_load_n(&l->fault_cluster, __ATOMIC_RELAXED) >= index) {
            emu_cluster_start(spare_cluster(k), l, index);
            return true;
        }
        if (l->order == EMU_FORWARD)
            return false; /* all blocks that are left have higher numbers */
    }
}

static void end_cluster(worker *k, unsigned i)
{
    emu_cluster *ended = k->clusters[i];
    k->clusters[i] = k->clusters[--k->live];
    k->clusters[k->live] = ended;
}

/* Uses the default floating-point environment, as the device does: fesetround and -ffast-math change the host thread's. */
static void run_clusters(emu_launch *l, unsigned threads)
{
    fenv_t host;
    fegetenv(&host);
    fesetenv(FE_DFL_ENV);
    unsigned resident = l->multiprocessors * l->max_resident_blocks / l->cluster_blocks;
    worker k = {.launch = l, .most = (resident + threads - 1) / threads};
    while (k.live || start_cluster(&k)) {
        bool all_unfinished = true;
        for (unsigned i = 0; i < k.live;) {
            if (emu_cluster_run(k.clusters[i]) == EMU_CLUSTER_UNFINISHED) {
                i++;
                continue;
            }
            end_cluster(&k, i);
            all_unfinished = false;
        }
        if (all_unfinished && k.live < k.most)
            start_cluster(&k);
        if (all_unfinished && threads > 1)
            sched_yield(); /* clusters may be waiting for one of another host thread */
    }
    for (unsigned i = 0; i < k.room && k.clusters[i]; i++) {
        emu_cluster_free(k.clusters[i]);
        free(k.clusters[i]);
    }
    free(k.clusters);
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
        run_clusters(l, threads);
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
    choose_clusters(l, &limits);
    l->fault_cluster = UINT64_MAX;
    l->most_jumps = limits.jumps;
    l->most_idle_jumps = limits.idle_jumps;
    EMU_TELL(&l->audience, launch_begin, l);
    unsigned threads = l->is_ordered ? 1 : threads_for(l, limits.threads);
    l->is_shared = threads > 1;
    pthread_mutex_lock(&launch_lock); /* only one launch at a time uses the helpers */
    if (threads > 1)
        call_helpers(l, threads - 1);
    run_clusters(l, threads);
    if (threads > 1)
        await_helpers(l);
    pthread_mutex_unlock(&launch_lock);
    EMU_TELL(&l->audience, launch_end, l);
    return emu_result_of(l);
}
