/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention on Hopper's tensor cores: from a job to a launch of any kind of tile.
 */
#ifndef PLUGINS_ATTENTION_LAUNCH_CUH
#define PLUGINS_ATTENTION_LAUNCH_CUH

#include "plugins/attention/hopper.cuh"

#include "plugins/common/product/tensor_map.cuh"

struct hopper_launch {
    const void *kernel;
    int32_t dim, rows, keys, threads;
    int32_t fixed, stage; /* bytes: without tiles, of one pair of K and V */
    int32_t stages;       /* 0: as many as there are tiles */
    bool odd;
    int32_t most;  /* tiles, where all are there at once; 0: they are not */
    int32_t share; /* warpgroups that share queries and have a tile each, or 0 */
};

/* Boxes of box_rows x box_columns of a tensor's heads. */
static bool map_heads(CUtensorMap *map, const void *data, const attention_view *v,
                      int32_t dtype, int64_t dim, int64_t rows, int64_t heads,
                      int64_t batch, int32_t box_rows, int32_t box_columns)
{
    const int64_t last =
        (batch - 1) * v->batch + (heads - 1) * v->head + (rows - 1) * v->row;
    const uint64_t dims[4] = {(uint64_t)dim, (uint64_t)rows, (uint64_t)heads,
                              (uint64_t)batch};
    const int64_t strides[3] = {v->row, v->head, v->batch};
    const uint32_t box[4] = {(uint32_t)box_columns, (uint32_t)box_rows, 1, 1};
    return tensor_map_boxes(map, data, dtype, 4, dims, strides, box,
                            (last + dim) * tensor_map_size(dtype));
}

#ifndef L2_KEPT
#define L2_KEPT (16 << 20) /* bytes of K and V that stay in L2 while heads share them */
#endif

static uint32_t section_of(const struct attention_plan *p, int64_t heads)
{
    const int64_t bytes = p->keys * (p->dim + p->v_dim) * tensor_map_size(p->q.dtype);
    const int64_t kv = bytes > 0 ? L2_KEPT / bytes : heads;
    const int64_t section = (kv < 1 ? 1 : kv) * p->group;
    return (uint32_t)(section < heads ? section : heads);
}

/* A divisor of nothing, where there is nothing to divide. */
static int64_t at_least_one(int64_t x)
{
    return x > 0 ? x : 1;
}

/* All but the maps and the scale. */
static void fill_job(hopper_job *job, const attention_job *a, const hopper_launch *l,
                     uint32_t *counters)
{
    const struct attention_plan &p = a->plan;
    job->plan = p;
    job->counters = counters;
    job->lengths = a->lengths;
    job->mask = a->mask;
    job->y = a->y;
    job->tiles = (uint32_t)((p.length + l->rows - 1) / l->rows);
    job->heads = (uint32_t)(p.batch * p.heads);
    job->section = section_of(&p, job->heads);
    job->by_section = divisor_of(at_least_one((int64_t)job->section * job->tiles));
    job->by_heads = divisor_of(at_least_one(job->section));
    job->by_batch = divisor_of(p.heads);
    job->left = p.window_left >= 0 && p.window_left < HOPPER_FAR ? (int32_t)p.window_left
                                                                 : 2 * HOPPER_FAR;
    job->right = p.window_right >= 0 && p.window_right < HOPPER_FAR
                     ? (int32_t)p.window_right
                     : 2 * HOPPER_FAR - 2;
    if (p.causal)
        job->right = 0;
    job->scale = (float)(l->odd ? p.scale : p.scale * 1.4426950408889634);
}

/* The kernel takes the job alone, or what begins with it. */
static cudaError_t launch_job(const hopper_launch *l, const hopper_job *job,
                              cudaStream_t stream)
{
    const int64_t tiles = (job->plan.keys + l->keys - 1) / l->keys;
    const int64_t bytes = l->fixed + (l->stages ? l->stages : tiles) * l->stage;
    cudaError_t e = shared_allow(l->kernel, (size_t)bytes);
    int device = 0, units = 0;
    if (e == cudaSuccess)
        e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device);
    if (e != cudaSuccess)
        return e;
    const uint32_t parts = job->tiles * job->heads;
    cudaLaunchAttribute overlap = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(l->stages && parts > (uint32_t)units ? (uint32_t)units : parts);
    config.blockDim = dim3(l->threads);
    config.dynamicSmemBytes = (size_t)bytes;
    config.stream = stream;
    config.attrs = &overlap;
    config.numAttrs = 1;
    void *arguments[] = {(void *)job};
    return cudaLaunchKernelExC(&config, l->kernel, arguments);
}

#endif /* PLUGINS_ATTENTION_LAUNCH_CUH */
