/* SPDX-License-Identifier: Apache-2.0
 *
 * Bottleneck on Hopper's tensor cores, in one launch: fp16:nhwc8, windows of 3x3.
 */
#include "plugins/bottleneck/accept.cuh"
#include "plugins/bottleneck/impls.cuh"

#define AHEAD 4 /* matrices of weights asked for before the input */

struct bottleneck_state {
    uint8_t
        job[sizeof(bottleneck_job)]; /* whose maps want 64 bytes, which this has not */
    int32_t root, clusters;          /* at once */
    void *packed;
};

/* Sizes that fit into an int. */
static const char *refuse_channels(const bottleneck_shape &s)
{
    if (s.shortcut)
        return "it adds no product of its input";
    return s.channels > 1024 || s.results > 1024 || s.reduced > 256 || s.convolved > 256
               ? "it is for up to 1024 channels, 256 of them between"
               : NULL;
}

static int bottleneck_accept(const strata_node *n)
{
    return bottleneck_take(n, refuse_channels);
}

/* ---- setting up ------------------------------------------------------------------ */

static int pack_weights(const strata_node *n, const bottleneck_shape &s,
                        bottleneck_state *state)
{
    const int root = state->root;
    const int status = alloc_packed(n, bottleneck_packed(root), &state->packed);
    if (status != STRATA_OK)
        return status;
    bottleneck_pack_kernel<<<(unsigned)(root * root * BOTTLENECK_PIECES), CUDA_BLOCK, 0,
                             (cudaStream_t)n->stream>>>(weights_of(n, s), root,
                                                        (uint8_t *)state->packed);
    return packed_status(n);
}

/* As many as the device can have at once. */
static int count_clusters(const strata_node *n, bottleneck_state *s)
{
    const bottleneck_launch &l = bottleneck_launch_of(s->root);
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = bottleneck_config(attributes, s->root, 1);
    config.numAttrs = 2; /* it is asked of clusters of one, too */
    return clusters_at_once(n, l.kernel, config, s->root * s->root, &s->clusters);
}

static int bottleneck_setup(const strata_node *n, void *state)
{
    bottleneck_state *to = (bottleneck_state *)state;
    bottleneck_job job = {};
    bottleneck_shape s = {};
    int status = bottleneck_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    to->root = bottleneck_plan(&job, sizes_of(s));
    job.ahead = AHEAD;
    bottleneck_set_tails(&job, n);
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
    return map_operands(&job, r)
               ? launch_job(r, config, bottleneck_launch_of(s->root).kernel, &job)
               : no_map(r);
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
    {.id = 2,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED,
     .name = "strip",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.5,
     .state_size = sizeof(many_state<strip_job>),
     .accept = strip_accept,
     .setup = strip_setup,
     .run = strip_run,
     .bandwidth = 0.7},
    {.id = 3,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED,
     .name = "stream",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.5,
     .state_size = sizeof(many_state<stream_job>),
     .accept = stream_accept,
     .setup = stream_setup,
     .run = stream_run,
     .bandwidth = 0.7},
    {.id = 4,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED,
     .name = "roll",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.6,
     .state_size = sizeof(many_state<roll_job>),
     .accept = roll_accept,
     .setup = roll_setup,
     .run = roll_run,
     .bandwidth = 0.7},
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
