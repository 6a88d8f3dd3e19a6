/* SPDX-License-Identifier: Apache-2.0
 *
 * What the launches of the persistent kernels share.
 */
#ifndef PLUGINS_RNN_LAUNCH_CUH
#define PLUGINS_RNN_LAUNCH_CUH

#include "kernels/layer.cuh"
#include "kernels/shared.cuh"
#include "plugins/rnn/persistent.h"

#define PERSISTENT_ROWS 8     /* least of a group */
#define PERSISTENT_EMPTY 0xff /* each byte of a slot that waits to be filled */

/* A kernel and its blocks, each of which owns `units` hidden units. */
struct persistent_entry {
    const void *kernel;
    int units, threads, shared; /* shared: bytes */
};

static inline cudaError_t persistent_permit(const persistent_entry &entry)
{
    return entry.shared > 0 ? shared_allow(entry.kernel, (size_t)entry.shared)
                            : cudaSuccess;
}

/* Groups of rows, of `groups`, that can be resident at once; 0: none, or an error, which
 * *e has. */
static inline int persistent_room(const persistent_entry &entry, int64_t hidden,
                                  int directions, int64_t groups, cudaError_t *e)
{
    const int64_t blocks = hidden / entry.units * directions;
    int device, processors, each;
    if ((*e = cudaGetDevice(&device)) ||
        (*e = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount,
                                     device)) ||
        (*e = persistent_permit(entry)) ||
        (*e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
             &each, entry.kernel, entry.threads, (size_t)entry.shared)))
        return 0;
    const int64_t room = (int64_t)processors * each / blocks;
    return (int)(groups < room ? groups : room);
}

/* Rows, at most `most`, and groups of a shape. As few rows to a group as let all of the
 * batch run at once, for then each block waits for the fewest; else the most, and further
 * launches. */
static inline int
persistent_divide(const strata_node *n, int64_t hidden, int directions, int64_t batch,
                  int most, persistent_entry (*entry_of)(const persistent_shape &),
                  persistent_shape *s)
{
    for (s->rows = PERSISTENT_ROWS; s->rows <= most; s->rows *= 2) {
        const int64_t groups = (batch + s->rows - 1) / s->rows;
        cudaError_t e = cudaSuccess;
        s->groups = persistent_room(entry_of(*s), hidden, directions, groups, &e);
        if (e != cudaSuccess)
            return STRATA_FAIL(n, STRATA_EDEVICE, "persistent RNN: %s",
                               cudaGetErrorString(e));
        if (s->groups > 0 && (s->groups == groups || s->rows == most))
            return STRATA_OK;
    }
    return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                       "blocks of %lld units cannot all run at once on this device",
                       (long long)(hidden * directions));
}

static inline int persistent_packed(const strata_node *n)
{
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "packing the weights: %s",
                                          cudaGetErrorString(e));
}

/* A layer: the slots emptied but the first step's, which has the initial state, and
 * launches of as many rows as are resident at once. */
static inline int persistent_enqueue(const strata_run *r, const persistent_shape *s,
                                     const persistent_entry &entry,
                                     const persistent_job *job)
{
    const size_t slot =
        sizeof(uint16_t) * (size_t)persistent_slot(job->batch, job->hidden);
    const int rows = s->groups * s->rows;
    persistent_job j = *job;
    j.slot = persistent_slot(j.batch, j.hidden);
    void *arguments[] = {&j};
    cudaError_t e = persistent_permit(entry);
    for (int d = 0; d < j.directions && j.steps > 1 && e == cudaSuccess; d++)
        e = cudaMemsetAsync((char *)j.line[d].slots + slot, PERSISTENT_EMPTY,
                            slot * (size_t)(j.steps - 1), layer_stream(r));
    for (j.first = 0; j.first < j.batch && e == cudaSuccess; j.first += rows) {
        const dim3 grid((unsigned)(j.hidden / entry.units),
                        (unsigned)(j.directions * s->groups));
        e = cudaLaunchCooperativeKernel(entry.kernel, grid, dim3((unsigned)entry.threads),
                                        arguments, (size_t)entry.shared, layer_stream(r));
    }
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(r, STRATA_EDEVICE, "persistent RNN: %s",
                                          cudaGetErrorString(e));
}

#endif /* PLUGINS_RNN_LAUNCH_CUH */
