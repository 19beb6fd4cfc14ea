/* Counter-based random numbers. Mixer: the finaliser of SplitMix64 (Steele, Lea, Flood, 2014), twice per number. */
#include "random.h"

#include <math.h>

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

random_stream random_fork(random_stream s, uint64_t number)
{
    return (random_stream){mix(mix(s.key + UINT64_C(0x9e3779b97f4a7c15)) ^ number)};
}

random_stream random_open(uint64_t seed, const char *name)
{
    random_stream s = random_fork((random_stream){seed}, 0);
    for (; *name; name++)
        s = random_fork(s, (unsigned char)*name);
    return s;
}

uint64_t random_bits(random_stream s, uint64_t index)
{
    return mix(mix(s.key + index * UINT64_C(0x9e3779b97f4a7c15)) + s.key);
}

double random_uniform(random_stream s, uint64_t index)
{
    return (double)(random_bits(s, index) >> 11) * 0x1p-53;
}

/* Box and Muller, 1958; two numbers of a second stream per result. */
double random_normal(random_stream s, uint64_t index)
{
    double radius = sqrt(-2 * log(1 - random_uniform(s, 2 * index)));
    return radius * cos(6.283185307179586 * random_uniform(s, 2 * index + 1));
}

uint64_t random_below(random_stream s, uint64_t index, uint64_t limit)
{
    return random_bits(s, index) % limit;
}
