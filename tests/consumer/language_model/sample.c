#include "sample.h"

#include <math.h>
#include <stddef.h>

/* Returns a random number in [0, 1), by splitmix64 (Steele, Lea, Flood, 2014). */
static double next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static bool is_better(const float *logits, uint32_t a, uint32_t b)
{
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

/* Sifts the root down; the root of a heap is its best token. */
static void sift_down(uint32_t *heap, uint32_t count, uint32_t root, const float *logits)
{
    for (uint32_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && is_better(logits, heap[child + 1], heap[child]))
            child++;
        if (!is_better(logits, heap[child], heap[root]))
            return;
        const uint32_t moved = heap[root];
        heap[root] = heap[child];
        heap[child] = moved;
    }
}

/* Removes the best token from a heap of `count`, and stores it after the remaining tokens. */
static uint32_t take_best(uint32_t *heap, uint32_t count, const float *logits)
{
    const uint32_t best = heap[0];
    heap[0] = heap[count - 1];
    heap[count - 1] = best;
    sift_down(heap, count - 1, 0, logits);
    return best;
}

static uint32_t best_of(const float *logits, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

/* Moves the tokens to sample from to the end of `order`, the best one last. Returns their number. */
static uint32_t keep_best(sampler *s, const float *logits, uint32_t count)
{
    const uint32_t most = s->top_k && s->top_k < count ? s->top_k : count;
    double all = 0, sum = 0;
    for (uint32_t i = 0; i < count; i++)
        s->order[i] = i;
    for (uint32_t i = count / 2; i-- > 0;)
        sift_down(s->order, count, i, logits);
    for (uint32_t i = 0; i < most; i++)
        take_best(s->order, count - i, logits);
    const uint32_t *best = &s->order[count - 1];
    for (uint32_t i = 0; i < most; i++)
        all += exp((double)logits[best[-(ptrdiff_t)i]] - (double)logits[*best]);
    for (uint32_t i = 0; i < most; i++) {
        sum += exp((double)logits[best[-(ptrdiff_t)i]] - (double)logits[*best]);
        if (sum >= (double)s->top_p * all)
            return i + 1;
    }
    return most;
}

bool sample(sampler *s, float *logits, uint32_t count, uint32_t *token)
{
    for (uint32_t i = 0; i < count; i++) {
        if (isnan(logits[i])) {
            logits[i] = -INFINITY;
            s->nan_count++;
        }
    }
    *token = best_of(logits, count);
    if (isinf(logits[*token]))
        return false;
    if (s->temperature <= 0)
        return true;

    const uint32_t kept = keep_best(s, logits, count);
    const uint32_t *best = &s->order[count - 1];
    double sum = 0;
    for (uint32_t i = 0; i < kept; i++)
        sum += exp(((double)logits[best[-(ptrdiff_t)i]] - (double)logits[*best]) / (double)s->temperature);
    double left = next_random(&s->random) * sum;
    for (uint32_t i = 0; i < kept; i++) {
        *token = best[-(ptrdiff_t)i];
        left -= exp(((double)logits[*token] - (double)logits[*best]) / (double)s->temperature);
        if (left < 0)
            break;
    }
    return true;
}
