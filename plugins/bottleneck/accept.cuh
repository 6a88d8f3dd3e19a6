/* SPDX-License-Identifier: Apache-2.0
 *
 * What a bottleneck's impls on Hopper's tensor cores take and set up alike.
 */
#ifndef PLUGINS_BOTTLENECK_ACCEPT_CUH
#define PLUGINS_BOTTLENECK_ACCEPT_CUH

#include "plugins/bottleneck/shape.h"
#include "plugins/bottleneck/share.cuh"

#include "kernels/shared.cuh"
#include "plugins/common/copy_ahead.cuh"

#define MOST_SIDE INT16_MAX /* pixels */

static inline int refuse(const strata_node *n, const char *why)
{
    return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why);
}

/* ---- what it takes --------------------------------------------------------------- */

static inline bool tail_of(stage_tail *f, const strata_bottleneck *p, int stage)
{
    return stage_tail_of(f, p->activation[stage], p->alpha[stage], p->beta[stage]);
}

static inline float held(float bound)
{
    const float most = 65504;
    return bound < -most ? -most : bound > most ? most : bound;
}

/* What lies between is the largest FP16 has where it would be infinite. */
static inline void hold_within(stage_tail *f)
{
    f->low = held(f->low);
    f->high = held(f->high);
}

static inline const char *refuse_tails(const strata_node *n, const bottleneck_shape &s)
{
    const strata_bottleneck *p = (const strata_bottleneck *)n->params;
    stage_tail f;
    for (int i = 0; i < STRATA_BOTTLENECK_STAGES; i++)
        if (!tail_of(&f, p, i))
            return stage_tails;
    return s.results % 8 == 0 || stage_keeps_zero(f)
               ? NULL
               : "the activation of 0 is none, and there are pads behind the channels";
}

static inline const char *refuse_window(const window &w)
{
    for (int d = 1; d < WINDOW_DIMS; d++)
        if (w.kernel[d] != 3 || w.stride[d] != 1 || w.dilation[d] != 1 ||
            w.begin[d] != 1 || w.out[d] != w.in[d])
            return "windows are 3x3 with a stride of 1 and a pad of 1";
    return w.in[1] > MOST_SIDE || w.in[2] > MOST_SIDE ? "images have up to 32767 rows"
                                                      : NULL;
}

static inline bottleneck_sizes sizes_of(const bottleneck_shape &s)
{
    return {(int32_t)s.channels, (int32_t)s.reduced, (int32_t)s.convolved,
            (int32_t)s.results,  (int32_t)s.w.in[1], (int32_t)s.w.in[2],
            s.shortcut};
}

/* channels: why there are too many, or NULL. */
static inline int bottleneck_take(const strata_node *n,
                                  const char *(*channels)(const bottleneck_shape &s))
{
    bottleneck_shape s = {};
    const int status = bottleneck_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    if (n->math != STRATA_MATH_TENSOR_OP)
        return refuse(n, "it needs math = tensor_op");
    if (n->sm != 90)
        return refuse(n, "it needs a warpgroup's products: compute capability 9.0");
    const char *why = channels(s);
    if (!why)
        why = refuse_window(s.w);
    if (!why)
        why = refuse_tails(n, s);
    if (!why && (n->in[0].size > INT32_MAX || n->out[0].size > INT32_MAX))
        why = "it is for tensors of less than 2^31 elements";
    return why ? refuse(n, why) : STRATA_OK;
}

/* ---- setting up ------------------------------------------------------------------ */

template <class Job>
static void bottleneck_set_tails(Job *job, const strata_node *n)
{
    const strata_bottleneck *p = (const strata_bottleneck *)n->params;
    tail_of(&job->reduced, p, STRATA_BOTTLENECK_REDUCED);
    tail_of(&job->convolved, p, STRATA_BOTTLENECK_CONVOLVED);
    tail_of(&job->projected, p, STRATA_BOTTLENECK_PROJECTED);
    hold_within(&job->reduced);
    hold_within(&job->convolved);
}

static inline const float *weight_of(const strata_node *n, int weight)
{
    return n->weight[weight].rank > 0 ? (const float *)n->weight[weight].data : NULL;
}

static inline bottleneck_weights weights_of(const strata_node *n,
                                            const bottleneck_shape &s)
{
    return {weight_of(n, STRATA_BOTTLENECK_REDUCE),
            weight_of(n, STRATA_BOTTLENECK_REDUCE_BIAS),
            weight_of(n, STRATA_BOTTLENECK_WINDOWS),
            weight_of(n, STRATA_BOTTLENECK_WINDOWS_BIAS),
            weight_of(n, STRATA_BOTTLENECK_PROJECT),
            weight_of(n, STRATA_BOTTLENECK_PROJECT_BIAS),
            weight_of(n, BOTTLENECK_SHORTCUT),
            weight_of(n, BOTTLENECK_SHORTCUT_BIAS),
            (int32_t)s.channels,
            (int32_t)s.reduced,
            (int32_t)s.convolved,
            (int32_t)s.results};
}

static inline int alloc_packed(const strata_node *n, int64_t bytes, void **packed)
{
    const strata_pack *host =
        n->host->extension ? (const strata_pack *)n->host->extension(STRATA_PACK_V1)
                           : NULL;
    return host ? host->alloc(n, (size_t)bytes, packed)
                : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                              "the host has no " STRATA_PACK_V1
                              ", which this impl needs for its packed weights");
}

/* What the kernel that packs was told. */
static inline int packed_status(const strata_node *n)
{
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "packing the weights: %s",
                                          cudaGetErrorString(e));
}

static inline int allow_memory(const strata_node *n, const void *kernel, size_t bytes)
{
    const cudaError_t e = shared_allow(kernel, bytes);
    if (e == cudaSuccess)
        return STRATA_OK;
    (void)cudaGetLastError(); /* it is told here */
    return STRATA_FAIL(n, STRATA_EDEVICE, "asking for shared memory: %s",
                       cudaGetErrorString(e));
}

/* As many clusters of `blocks` as the device can have at once. */
static inline int clusters_at_once(const strata_node *n, const void *kernel,
                                   const cudaLaunchConfig_t &config, int blocks,
                                   int32_t *clusters)
{
    const int status = allow_memory(n, kernel, config.dynamicSmemBytes);
    if (status != STRATA_OK)
        return status;
    cudaError_t e =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (e == cudaSuccess)
        e = cudaOccupancyMaxActiveClusters(clusters, kernel, &config);
    if (e != cudaSuccess) {
        (void)cudaGetLastError(); /* it is told here */
        return STRATA_FAIL(n, STRATA_EDEVICE, "asking for clusters: %s",
                           cudaGetErrorString(e));
    }
    return *clusters > 0
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "the device has no room for a cluster of %d blocks", blocks);
}

/* ---- running --------------------------------------------------------------------- */

static inline int launch_job(const strata_run *r, const cudaLaunchConfig_t &config,
                             const void *kernel, void *job)
{
    void *arguments[] = {job};
    const cudaError_t e = cudaLaunchKernelExC(&config, kernel, arguments);
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(r, STRATA_EDEVICE, "kernel bottleneck: %s (%s)",
                                          cudaGetErrorString(e), cudaGetErrorName(e));
}

static inline int no_map(const strata_run *r)
{
    return STRATA_FAIL(r, STRATA_EDEVICE,
                       "the driver makes no tensor map of these tensors");
}

#endif /* PLUGINS_BOTTLENECK_ACCEPT_CUH */
