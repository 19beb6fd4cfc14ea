/* Waiting for another thread. The only member that asks the operating system for anything but the driver library. */
#include <sched.h>

#include "internal.h"

void kiln_wait(const kiln_options *options)
{
    if (options->wait != NULL)
        options->wait(options->wait_context);
    else
        sched_yield();
}
