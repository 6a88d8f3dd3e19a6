/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs: what is put on a stream between begin and end, launched as one. Captures see
 * their own thread alone, so other threads' work cannot break one.
 */
#include "kernels/stream.h"

int cuda_capture(strata_stream *s, enum cudaStreamCaptureMode mode, strata_error *err)
{
    struct cuda_device *d = cuda_device(s->device);
    int status = cuda_enter(d, err);
    return status != STRATA_OK
               ? status
               : cuda_status(d, cudaStreamBeginCapture(cuda_stream(s)->native, mode),
                             "beginning a graph", err);
}

int cuda_capture_begin(strata_stream *s, strata_error *err)
{
    return cuda_capture(s, cudaStreamCaptureModeThreadLocal, err);
}

int cuda_capture_end(strata_stream *s, void **out, strata_error *err)
{
    struct cuda_device *d = cuda_device(s->device);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t ready = NULL;
    int status = cuda_enter(d, err);
    if (status == STRATA_OK)
        status = cuda_status(d, cudaStreamEndCapture(cuda_stream(s)->native, &graph),
                             "ending a graph", err);
    if (status == STRATA_OK)
        status = cuda_status(d, cudaGraphInstantiate(&ready, graph, 0),
                             "preparing a graph", err);
    if (graph)
        cudaGraphDestroy(graph);
    if (status == STRATA_OK) /* now, not at the first launch */
        status = cuda_status(d, cudaGraphUpload(ready, cuda_stream(s)->native),
                             "uploading a graph", err);
    if (status != STRATA_OK && ready)
        cudaGraphExecDestroy(ready);
    *out = status == STRATA_OK ? ready : NULL;
    return status;
}

int cuda_graph_launch(strata_stream *s, void *graph, strata_error *err)
{
    struct cuda_device *d = cuda_device(s->device);
    int status = cuda_enter(d, err);
    return status != STRATA_OK
               ? status
               : cuda_status(d, cudaGraphLaunch(graph, cuda_stream(s)->native),
                             "launching a graph", err);
}

void cuda_graph_destroy(struct device *base, void *graph)
{
    struct cuda_device *d = cuda_device(base);
    if (graph && cuda_enter(d, NULL) == STRATA_OK)
        cuda_status(d, cudaGraphExecDestroy(graph), "destroying a graph", NULL);
}
