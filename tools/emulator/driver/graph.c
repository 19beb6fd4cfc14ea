/* The entry points of graphs. */
#include "api.h"

#include <stdlib.h>

struct CUgraphExec_st {
    CUcontext context;
    emu_work *first;
};

CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
    EMU_ENTER(context);
    if (!graph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = emu_make_graph(context);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    CUresult r = emu_ready();
    if (r != CUDA_SUCCESS || !emu_is(graph, EMU_GRAPH))
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    emu_free_graph(graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    CUresult r = emu_ready();
    if (r != CUDA_SUCCESS || !emu_is(graph, EMU_GRAPH) || !count)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    size_t room = nodes ? *count : 0;
    size_t i = 0;
    for (emu_work *w = graph->first; w && i < room; w = w->next)
        nodes[i++] = (CUgraphNode)w;
    *count = nodes ? i : graph->count;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    EMU_ENTER(context);
    if (!exec || !emu_is(graph, EMU_GRAPH) || flags > 15)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphExec e = emu_alloc(sizeof *e);
    e->context = context;
    emu_work **last = &e->first;
    for (const emu_work *w = graph->first; w; w = w->next) {
        *last = emu_copy_work(w);
        last = &(*last)->next;
    }
    emu_register(e, EMU_GRAPH_EXEC, context);
    *exec = e;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
                               size_t log_bytes)
{
    if (error_node)
        *error_node = NULL;
    if (log && log_bytes)
        *log = '\0';
    return cuGraphInstantiateWithFlags(exec, graph, 0);
}

/* The objects that a node uses may have been destroyed since it was recorded. */
static CUresult check_node(const emu_work *w)
{
    bool is_alive = true;
    switch (w->kind) {
    case EMU_WORK_LAUNCH:
        is_alive = emu_is(w->launch.function, EMU_FUNCTION) && w->launch.function->serial == w->launch.serial;
        break;
    case EMU_WORK_RECORD:
    case EMU_WORK_WAIT:
        is_alive = emu_is(w->event, EMU_EVENT);
        break;
    case EMU_WORK_COPY:
        return emu_check_copy(w);
    case EMU_WORK_SET:
        return emu_memory_holding(w->set.to, w->set.count * w->set.element) ? CUDA_SUCCESS
                                                                            : CUDA_ERROR_INVALID_VALUE;
    default:
        break;
    }
    return is_alive ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    EMU_ENTER(context);
    CUresult r = emu_check_stream(context, &stream);
    if (r != CUDA_SUCCESS)
        return r;
    if (!emu_is(exec, EMU_GRAPH_EXEC) || exec->context != context)
        return CUDA_ERROR_INVALID_VALUE;
    for (const emu_work *w = exec->first; w && r == CUDA_SUCCESS; w = w->next)
        r = check_node(w);
    emu_end_overlap(context, stream); /* a graph waits for all earlier work, and later work for the graph */
    for (const emu_work *w = exec->first; w && r == CUDA_SUCCESS && context->error == CUDA_SUCCESS;
         w = w->next) {
        emu_work *node = emu_copy_work(w);
        r = emu_submit(context, stream, node);
        free(node);
    }
    emu_end_overlap(context, stream);
    return r;
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    EMU_ENTER(context);
    EMU_CHECK(emu_check_stream(context, &stream));
    return emu_is(exec, EMU_GRAPH_EXEC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    CUresult r = emu_ready();
    if (r != CUDA_SUCCESS || !emu_is(exec, EMU_GRAPH_EXEC))
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    emu_free_work(exec->first);
    emu_unregister(exec);
    free(exec);
    return CUDA_SUCCESS;
}

EMU_PER_THREAD(cuGraphLaunch, _ptsz);
EMU_PER_THREAD(cuGraphUpload, _ptsz);
