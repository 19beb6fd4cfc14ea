/* --queue: runs variants whose ids come on standard input. */
#define _POSIX_C_SOURCE 200809L /* getline */
#include "queue.h"

#include <stdlib.h>
#include <string.h>

#include "verify.h"
#include "watch.h"

int queue_run(device *d, const kiln_index *index, const manifest *m, const run_results *all, const options *o,
              const char **running)
{
    char *line = NULL;
    size_t room = 0;
    bool has_context = true;
    results_write_facts(stdout, all);
    while (has_context && fflush(stdout) == 0 && getline(&line, &room, stdin) > 0) {
        line[strcspn(line, "\r\n")] = '\0';
        const run_result *slot = results_slot(all, line);
        const manifest_variant *v = slot ? all->variants[slot - all->results] : NULL;
        run_result result = {.verdict = RUN_WRONG,
                             .detail = "no such variant: the bundle lacks it, or --filter or --own-images "
                                       "leaves it out"};
        if (v) {
            *running = v->id;
            watch_variant(v->id);
            has_context = run_variant(d, m, v, kiln_find(index, v->key), &o->run, NULL, &result);
        }
        results_write_line(stdout, v ? v : &(manifest_variant){.id = line}, &result);
    }
    free(line);
    if (fflush(stdout) != 0)
        return VERIFY_EXIT_WRONG;
    return has_context ? VERIFY_EXIT_OK : VERIFY_EXIT_LOST;
}
