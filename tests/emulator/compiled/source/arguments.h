/* Structs that kernels take by value, for the functions and for the test that launches them. */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include <stdint.h>

struct mixture {
    uint32_t scale;
    uint8_t bytes[5];
    int16_t offset;
    unsigned long long big;
    float factor;
};

#endif
