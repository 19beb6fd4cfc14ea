/* Graphs as data: the submitted work in order. */
#include "api.h"

#include <stdlib.h>
#include <string.h>

void emu_free_work(emu_work *work)
{
    while (work) {
        emu_work *next = work->next;
        free(work->launch.parameters);
        free(work);
        work = next;
    }
}

emu_work *emu_copy_work(const emu_work *work)
{
    emu_work *copy = emu_alloc(sizeof *copy);
    *copy = *work;
    copy->next = NULL;
    if (work->launch.parameters) {
        copy->launch.parameters = emu_alloc(work->launch.parameter_bytes + 16u);
        memcpy(copy->launch.parameters, work->launch.parameters, work->launch.parameter_bytes);
    }
    return copy;
}

CUgraph emu_make_graph(CUcontext context)
{
    CUgraph g = emu_alloc(sizeof *g);
    g->context = context;
    g->last = &g->first;
    emu_register(g, EMU_GRAPH, context);
    return g;
}

void emu_free_graph(CUgraph graph)
{
    emu_free_work(graph->first);
    emu_unregister(graph);
    free(graph);
}

void emu_add_node(CUgraph graph, const emu_work *work)
{
    emu_work *node = emu_copy_work(work);
    *graph->last = node;
    graph->last = &node->next;
    graph->count++;
}
