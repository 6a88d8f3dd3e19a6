/* SPDX-License-Identifier: Apache-2.0
 *
 * InvertedResidual on tensor cores, in one launch: fp16:nhwc8, windows of 3x3 or 5x5.
 * Tactics are how many channels between are taken at a time, and whether results are
 * spread over blocks, each of which makes what is between again.
 */
#include "plugins/inverted_residual/shape.h"
#include "plugins/inverted_residual/share.cuh"

#include "kernels/shared.cuh"

struct inverted_state {
    inverted_job job;
    int32_t shared; /* bytes */
    void *packed;
};

static int refuse(const strata_node *n, const char *why)
{
    return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why);
}

/* ---- what it takes --------------------------------------------------------------- */

static bool tail_of(stage_tail *f, const strata_inverted_residual *p, int stage)
{
    return stage_tail_of(f, p->activation[stage], p->alpha[stage], p->beta[stage]);
}

static const char *refuse_tails(const strata_node *n, const inverted_shape &s)
{
    const strata_inverted_residual *p = (const strata_inverted_residual *)n->params;
    const int last = s.projects ? STRATA_INVERTED_PROJECTED : STRATA_INVERTED_CONVOLVED;
    stage_tail f;
    for (int i = s.expands ? 0 : 1; i <= last; i++)
        if (!tail_of(&f, p, i))
            return stage_tails;
    tail_of(&f, p, last);
    return s.results % 8 == 0 || stage_keeps_zero(f)
               ? NULL
               : "the activation of 0 is none, and there are pads behind the channels";
}

static const char *refuse_window(const window &w)
{
    for (int d = 1; d < WINDOW_DIMS; d++)
        if (w.dilation[d] != 1 || w.stride[d] > 2 || w.begin[d] >= w.kernel[d] ||
            w.in[d] > INT16_MAX || w.out[d] > INT16_MAX)
            return "windows are not dilated, have strides of 1 or 2 and pads smaller "
                   "than "
                   "they are";
    return (w.kernel[1] == 3 || w.kernel[1] == 5) && w.kernel[2] == w.kernel[1] &&
                   w.stride[1] == w.stride[2]
               ? NULL
               : "windows are 3x3 or 5x5, their strides one for both dims";
}

struct inverted_tactic {
    int32_t step, part; /* channels of a step, results of a part, at most */
};

static inverted_sizes sizes_of(const strata_node *n, const inverted_shape &s,
                               inverted_tactic tactic, int multiprocessors)
{
    inverted_sizes z = {};
    z.images = n->in[0].dims[0];
    z.in_c = inverted_rounded((int32_t)s.channels, 8);
    z.middle = inverted_rounded((int32_t)s.middle, 8);
    z.out_c = s.projects ? inverted_rounded((int32_t)s.results, 8) : 0;
    z.expands = s.expands;
    z.in_h = (int32_t)s.w.in[1], z.in_w = (int32_t)s.w.in[2];
    z.out_h = (int32_t)s.w.out[1], z.out_w = (int32_t)s.w.out[2];
    z.kernel = (int32_t)s.w.kernel[1];
    z.stride = (int32_t)s.w.stride[1];
    z.pad_h = (int32_t)s.w.begin[1], z.pad_w = (int32_t)s.w.begin[2];
    z.step = tactic.step;
    z.part = tactic.part;
    z.multiprocessors = multiprocessors;
    return z;
}

#define MOST_CHANNELS (1 << 14)

static int inverted_accept(const strata_node *n, inverted_tactic tactic)
{
    inverted_shape s;
    inverted_job job;
    const int status = inverted_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    if (n->math != STRATA_MATH_TENSOR_OP)
        return refuse(n, "it needs math = tensor_op");
    if (n->sm < 90)
        return refuse(n, "it needs clusters of blocks: compute capability 9.0");
    const char *why = refuse_window(s.w);
    if (!why)
        why = refuse_tails(n, s);
    if (!why && n->n_in > 1 && !s.projects)
        why = "a second input is added to projected results alone";
    if (!why && (n->in[0].size > INT32_MAX || n->out[0].size > INT32_MAX ||
                 n->out[0].count > INT32_MAX / INVERTED_CLUSTER))
        why = "it is for images of less than 2^31 elements, and 2^27 results";
    if (!why && (s.channels > MOST_CHANNELS || s.middle > MOST_CHANNELS ||
                 s.results > MOST_CHANNELS))
        why = "it is for up to 2^14 channels";
    if (!why && tactic.part < INVERTED_RESULTS &&
        (!s.projects || s.results <= tactic.part))
        why = "there are too few results to spread";
    if (why)
        return refuse(n, why);
    const inverted_sizes z = sizes_of(n, s, tactic, 1);
    return inverted_plan(&job, &z) ? STRATA_OK
                                   : refuse(n, "a tile does not fit into shared memory");
}

/* ---- setting up ------------------------------------------------------------------ */

static const float *weight_of(const strata_node *n, int weight)
{
    return n->weight[weight].rank > 0 ? (const float *)n->weight[weight].data : NULL;
}

static int pack_weights(const strata_node *n, const inverted_shape &s,
                        inverted_state *state)
{
    const strata_pack *host =
        n->host->extension ? (const strata_pack *)n->host->extension(STRATA_PACK_V1)
                           : NULL;
    const inverted_job &j = state->job;
    inverted_weights w = {};
    w.expand = weight_of(n, STRATA_INVERTED_EXPAND);
    w.expand_bias = s.expands ? weight_of(n, STRATA_INVERTED_EXPAND_BIAS) : NULL;
    w.depthwise = weight_of(n, STRATA_INVERTED_DEPTHWISE);
    w.depthwise_bias = weight_of(n, STRATA_INVERTED_DEPTHWISE_BIAS);
    w.project = weight_of(n, STRATA_INVERTED_PROJECT);
    w.project_bias = weight_of(n, STRATA_INVERTED_PROJECT_BIAS);
    w.in_c = (int32_t)s.channels;
    w.middle = (int32_t)s.middle;
    w.out_c = s.projects ? (int32_t)s.results : 0;
    if (!host)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1
                           ", which this impl needs for its packed weights");
    const int status = host->alloc(n, (size_t)inverted_packed(j), &state->packed);
    if (status != STRATA_OK)
        return status;
    inverted_pack_kernel<<<(unsigned)(max(j.parts, 1) * j.count), CUDA_BLOCK, 0,
                           (cudaStream_t)n->stream>>>(j, w, (char *)state->packed);
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "packing the weights: %s",
                                          cudaGetErrorString(e));
}

/* Clusters of as many blocks as the device can have at once. */
static int choose_cluster(const strata_node *n, const inverted_state *s)
{
    cudaLaunchAttribute attributes[2] = {};
    const void *f = (const void *)inverted_kernel_of(s->job);
    const cudaLaunchConfig_t config = inverted_launch(attributes, s->job, 1, s->shared);
    int clusters = 0;
    cudaError_t e = shared_allow(f, (size_t)s->shared);
    if (e == cudaSuccess)
        e = cudaFuncSetAttribute(f, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (e == cudaSuccess)
        e = cudaOccupancyMaxActiveClusters(&clusters, f, &config);
    if (e != cudaSuccess) {
        (void)cudaGetLastError(); /* it is told here */
        return STRATA_FAIL(n, STRATA_EDEVICE, "asking for clusters: %s",
                           cudaGetErrorString(e));
    }
    return clusters > 0 ? STRATA_OK
                        : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                                      "the device has no room for a cluster of %d blocks",
                                      1 << s->job.shift);
}

static int inverted_setup(const strata_node *n, void *state, inverted_tactic tactic)
{
    const strata_inverted_residual *p = (const strata_inverted_residual *)n->params;
    inverted_state *to = (inverted_state *)state;
    inverted_shape s;
    int status = inverted_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    const inverted_sizes z =
        sizes_of(n, s, tactic, device_attribute(cudaDevAttrMultiProcessorCount));
    to->shared = inverted_plan(&to->job, &z);
    tail_of(&to->job.expanded, p, STRATA_INVERTED_EXPANDED);
    tail_of(&to->job.convolved, p, STRATA_INVERTED_CONVOLVED);
    tail_of(&to->job.projected, p, STRATA_INVERTED_PROJECTED);
    status = choose_cluster(n, to);
    return status == STRATA_OK ? pack_weights(n, s, to) : status;
}

/* ---- running --------------------------------------------------------------------- */

static int inverted_run(const strata_run *r)
{
    const inverted_state *s = (const inverted_state *)r->state;
    inverted_job job = s->job;
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config =
        inverted_launch(attributes, job, r->in[0].dims[0], s->shared);
    config.stream = layer_stream(r);
    job.x = (const __half *)r->in[0].data;
    job.y = (__half *)r->out[0].data;
    job.addend = r->n_in > 1 ? (const __half *)r->in[1].data : NULL;
    job.steps = (const char *)s->packed;
    job.project_bias = (const float *)(job.steps + inverted_pieces(job));
    void *arguments[] = {&job};
    if (config.gridDim.x == 0)
        return STRATA_OK;
    const cudaError_t e =
        cudaLaunchKernelExC(&config, (const void *)inverted_kernel_of(job), arguments);
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "kernel inverted residual: %s (%s)",
                             cudaGetErrorString(e), cudaGetErrorName(e));
}

/* ---- the impls ------------------------------------------------------------------- */

#define TACTIC(name, ...)                                                                \
    static int accept_##name(const strata_node *n)                                       \
    {                                                                                    \
        return inverted_accept(n, {__VA_ARGS__});                                        \
    }                                                                                    \
    static int setup_##name(const strata_node *n, void *state)                           \
    {                                                                                    \
        return inverted_setup(n, state, {__VA_ARGS__});                                  \
    }
TACTIC(block_64, 64, INVERTED_RESULTS)
TACTIC(block_32, 32, INVERTED_RESULTS)
TACTIC(spread_64, 64, 32)
TACTIC(spread_32, 32, 32)

static const strata_row rows[] = {{{STRATA_F16_NHWC8}, {STRATA_SAME}}};

#define IMPL(id_, name_, tactic)                                                         \
    {                                                                                    \
        .id = id_, .device = STRATA_CUDA, .flags = STRATA_WEIGHT_PACKED, .name = name_,  \
        .rows = STRATA_ARRAY(rows), .efficiency = 0.2,                                   \
        .state_size = sizeof(inverted_state), .accept = accept_##tactic,                 \
        .setup = setup_##tactic, .run = inverted_run, .bandwidth = 0.4                   \
    }

static const strata_impl impls[] = {
    IMPL(1, "block_64", block_64),
    IMPL(2, "block_32", block_32),
    IMPL(3, "spread_64", spread_64),
    IMPL(4, "spread_32", spread_32),
};

static const strata_extends inverted_residual = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::InvertedResidual",
    .params_size = sizeof(strata_inverted_residual),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&inverted_residual};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::InvertedResidual", extends)
