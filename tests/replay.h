/* A fuzz target defines both functions; libFuzzer and the replay program call them. */
#ifndef TEST_REPLAY_H
#define TEST_REPLAY_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#endif
