/* SPDX-License-Identifier: Apache-2.0
 *
 * Bottleneck on Hopper's tensor cores, in one launch: fp16:nhwc8, windows of 3x3.
 */
#include "plugins/bottleneck/shape.h"
#include "plugins/bottleneck/share.cuh"

#include "kernels/shared.cuh"
#include "plugins/common/copy_ahead.cuh"

#define MOST_SIDE INT16_MAX /* pixels */
#define AHEAD 4             /* matrices of weights asked for before the input */

struct bottleneck_state {
    uint8_t
        job[sizeof(bottleneck_job)]; /* whose maps want 64 bytes, which this has not */
    int32_t root, clusters;          /* at once */
    void *packed;
};

static int refuse(const strata_node *n, const char *why)
{
    return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why);
}

/* ---- what it takes --------------------------------------------------------------- */

static bool tail_of(stage_tail *f, const strata_bottleneck *p, int stage)
{
    return stage_tail_of(f, p->activation[stage], p->alpha[stage], p->beta[stage]);
}

static float held(float bound)
{
    const float most = 65504;
    return bound < -most ? -most : bound > most ? most : bound;
}

/* What lies between is the largest FP16 has where it would be infinite. */
static void hold_within(stage_tail *f)
{
    f->low = held(f->low);
    f->high = held(f->high);
}

static const char *refuse_tails(const strata_node *n, const bottleneck_shape &s)
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

static const char *refuse_window(const window &w)
{
    for (int d = 1; d < WINDOW_DIMS; d++)
        if (w.kernel[d] != 3 || w.stride[d] != 1 || w.dilation[d] != 1 ||
            w.begin[d] != 1 || w.out[d] != w.in[d])
            return "windows are 3x3 with a stride of 1 and a pad of 1";
    return w.in[1] > MOST_SIDE || w.in[2] > MOST_SIDE ? "images have up to 32767 rows"
                                                      : NULL;
}

static bottleneck_sizes sizes_of(const bottleneck_shape &s)
{
    return {(int32_t)s.channels, (int32_t)s.reduced, (int32_t)s.convolved,
            (int32_t)s.results,  (int32_t)s.w.in[1], (int32_t)s.w.in[2]};
}

/* Sizes that fit into an int. */
static const char *refuse_channels(const bottleneck_shape &s)
{
    return s.channels > 1024 || s.results > 1024 || s.reduced > 256 || s.convolved > 256
               ? "it is for up to 1024 channels, 256 of them between"
               : NULL;
}

static int bottleneck_accept(const strata_node *n)
{
    bottleneck_shape s = {};
    const int status = bottleneck_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    if (n->math != STRATA_MATH_TENSOR_OP)
        return refuse(n, "it needs math = tensor_op");
    if (n->sm != 90)
        return refuse(n, "it needs a warpgroup's products: compute capability 9.0");
    const char *why = refuse_channels(s);
    if (!why)
        why = refuse_window(s.w);
    if (!why)
        why = refuse_tails(n, s);
    if (!why && (n->in[0].size > INT32_MAX || n->out[0].size > INT32_MAX))
        why = "it is for tensors of less than 2^31 bytes";
    return why ? refuse(n, why) : STRATA_OK;
}

/* ---- setting up ------------------------------------------------------------------ */

static const float *weight_of(const strata_node *n, int weight)
{
    return n->weight[weight].rank > 0 ? (const float *)n->weight[weight].data : NULL;
}

static int pack_weights(const strata_node *n, const bottleneck_shape &s,
                        bottleneck_state *state)
{
    const strata_pack *host =
        n->host->extension ? (const strata_pack *)n->host->extension(STRATA_PACK_V1)
                           : NULL;
    const int root = state->root;
    const bottleneck_weights w = {weight_of(n, STRATA_BOTTLENECK_REDUCE),
                                  weight_of(n, STRATA_BOTTLENECK_REDUCE_BIAS),
                                  weight_of(n, STRATA_BOTTLENECK_WINDOWS),
                                  weight_of(n, STRATA_BOTTLENECK_WINDOWS_BIAS),
                                  weight_of(n, STRATA_BOTTLENECK_PROJECT),
                                  weight_of(n, STRATA_BOTTLENECK_PROJECT_BIAS),
                                  (int32_t)s.channels,
                                  (int32_t)s.reduced,
                                  (int32_t)s.convolved,
                                  (int32_t)s.results};
    if (!host)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1
                           ", which this impl needs for its packed weights");
    const int status = host->alloc(n, (size_t)bottleneck_packed(root), &state->packed);
    if (status != STRATA_OK)
        return status;
    uint8_t *matrices = (uint8_t *)state->packed;
    bottleneck_pack_kernel<<<(unsigned)(root * root * BOTTLENECK_PIECES), CUDA_BLOCK, 0,
                             (cudaStream_t)n->stream>>>(
        w, root, matrices, (float *)(matrices + bottleneck_matrices(root)));
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "packing the weights: %s",
                                          cudaGetErrorString(e));
}

/* As many as the device can have at once. */
static int count_clusters(const strata_node *n, bottleneck_state *s)
{
    const bottleneck_launch &l = bottleneck_launch_of(s->root);
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = bottleneck_config(attributes, s->root, 1);
    config.numAttrs = 2; /* it is asked of clusters of one, too */
    cudaError_t e = shared_allow(l.kernel, (size_t)l.shared);
    if (e == cudaSuccess)
        e = cudaFuncSetAttribute(l.kernel, cudaFuncAttributeNonPortableClusterSizeAllowed,
                                 1);
    if (e == cudaSuccess)
        e = cudaOccupancyMaxActiveClusters(&s->clusters, l.kernel, &config);
    if (e != cudaSuccess) {
        (void)cudaGetLastError(); /* it is told here */
        return STRATA_FAIL(n, STRATA_EDEVICE, "asking for clusters: %s",
                           cudaGetErrorString(e));
    }
    return s->clusters > 0
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "the device has no room for a cluster of %d blocks",
                             s->root * s->root);
}

static int bottleneck_setup(const strata_node *n, void *state)
{
    const strata_bottleneck *p = (const strata_bottleneck *)n->params;
    bottleneck_state *to = (bottleneck_state *)state;
    bottleneck_job job = {};
    bottleneck_shape s = {};
    int status = bottleneck_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    to->root = bottleneck_plan(&job, sizes_of(s));
    job.ahead = AHEAD;
    tail_of(&job.reduced, p, STRATA_BOTTLENECK_REDUCED);
    tail_of(&job.convolved, p, STRATA_BOTTLENECK_CONVOLVED);
    tail_of(&job.projected, p, STRATA_BOTTLENECK_PROJECTED);
    hold_within(&job.reduced);
    hold_within(&job.convolved);
    memcpy(to->job, &job, sizeof job);
    status = count_clusters(n, to);
    return status == STRATA_OK ? pack_weights(n, s, to) : status;
}

/* ---- running --------------------------------------------------------------------- */

static bool map_operands(bottleneck_job *job, const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const strata_tensor *addend = job->adds ? &r->in[1] : y;
    return bottleneck_map(&job->x, x->data, x->dims[0], job->height, job->width,
                          (int32_t)x->dims[1], job->tile_h + 2, job->pitch) &&
           bottleneck_map(&job->addend, addend->data, y->dims[0], job->height, job->width,
                          (int32_t)y->dims[1], job->tile_h, 1 << job->shift);
}

static int bottleneck_run(const strata_run *r)
{
    const bottleneck_state *s = (const bottleneck_state *)r->state;
    bottleneck_job job;
    cudaLaunchAttribute attributes[2] = {};
    memcpy(&job, s->job, sizeof job);
    const int32_t clusters = bottleneck_clusters(&job, r->in[0].dims[0], s->clusters);
    cudaLaunchConfig_t config = bottleneck_config(attributes, s->root, clusters);
    config.stream = layer_stream(r);
    job.weights = (const uint8_t *)s->packed;
    job.bias = (const float *)(job.weights + bottleneck_matrices(s->root));
    job.y = (__half *)r->out[0].data;
    job.adds = r->n_in > 1;
    if (clusters == 0)
        return STRATA_OK;
    if (!map_operands(&job, r))
        return STRATA_FAIL(r, STRATA_EDEVICE,
                           "the driver makes no tensor map of these tensors");
    void *arguments[] = {&job};
    const cudaError_t e =
        cudaLaunchKernelExC(&config, bottleneck_launch_of(s->root).kernel, arguments);
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(r, STRATA_EDEVICE, "kernel bottleneck: %s (%s)",
                                          cudaGetErrorString(e), cudaGetErrorName(e));
}

/* ---- the impl -------------------------------------------------------------------- */

static const strata_row rows[] = {{{STRATA_F16_NHWC8}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED,
     .name = "cluster",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.2,
     .state_size = sizeof(bottleneck_state),
     .accept = bottleneck_accept,
     .setup = bottleneck_setup,
     .run = bottleneck_run,
     .bandwidth = 0.4},
};

static const strata_extends bottleneck = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Bottleneck",
    .params_size = sizeof(strata_bottleneck),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&bottleneck};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Bottleneck", extends)
