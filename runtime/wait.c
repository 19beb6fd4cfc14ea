/* Waits for another thread. The only file with a system call besides dlopen. */
#include <sched.h>

#include "internal.h"

void kiln_acquire(kiln_loader *loader, uint32_t *lock)
{
    const kiln_options *options = &loader->options;
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) != 0) {
        if (options->wait != NULL)
            options->wait(options->wait_context);
        else
            sched_yield();
    }
}
