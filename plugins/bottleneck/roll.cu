/* SPDX-License-Identifier: Apache-2.0
 *
 * Bottleneck of many pixels on Hopper's tensor cores, in one launch: fp16:nhwc8, windows
 * of 3x3, more than 64 channels between and up to 128.
 */
#include "plugins/bottleneck/accept.cuh"
#include "plugins/bottleneck/impls.cuh"
#include "plugins/bottleneck/roll_share.cuh"

/* Sizes that fit into an int. */
static const char *refuse_channels(const bottleneck_shape &s)
{
    if (s.shortcut)
        return "it adds no product of its input";
    return s.channels > 1024 || s.results > 1024 || s.reduced > 128 || s.convolved > 128
               ? "it is for up to 1024 channels, 128 of them between"
           : s.reduced <= 64 && s.convolved <= 64
               ? "it is for more than 64 channels between"
               : NULL;
}

#define LEAST_PIXELS 3000

int roll_accept(const strata_node *n)
{
    bottleneck_shape s = {};
    const int status = bottleneck_take(n, refuse_channels);
    if (status != STRATA_OK || bottleneck_resolve(n, &s) != STRATA_OK)
        return status;
    return n->in[0].dims[0] * s.w.in[1] * s.w.in[2] < LEAST_PIXELS
               ? refuse(n, "it is for more pixels")
               : STRATA_OK;
}

/* ---- setting up ------------------------------------------------------------------- */

static int pack_weights(const strata_node *n, const bottleneck_shape &s,
                        const roll_job &job, void **packed)
{
    const int status = alloc_packed(n, roll_packed(job), packed);
    if (status != STRATA_OK)
        return status;
    ring_pack_kernel<<<(unsigned)roll_pieces(job) * 2, CUDA_BLOCK, 0,
                       (cudaStream_t)n->stream>>>(weights_of(n, s), job.panels, job.parts,
                                                  (uint8_t *)*packed);
    return packed_status(n);
}

int roll_setup(const strata_node *n, void *state)
{
    roll_state *to = (roll_state *)state;
    roll_job job = {};
    bottleneck_shape s = {};
    cudaLaunchAttribute attributes[2] = {};
    int status = bottleneck_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    roll_plan(&job, sizes_of(s));
    bottleneck_set_tails(&job, n);
    memcpy(to->job, &job, sizeof job);
    status = clusters_at_once(n, (const void *)roll_kernel, roll_config(attributes, 1),
                              ROLL_CLUSTER, &to->clusters);
    return status == STRATA_OK ? pack_weights(n, s, job, &to->packed) : status;
}

/* ---- running ---------------------------------------------------------------------- */

int roll_run(const strata_run *r)
{
    const roll_state *s = (const roll_state *)r->state;
    const strata_tensor *x = &r->in[0];
    roll_job job;
    cudaLaunchAttribute attributes[2] = {};
    memcpy(&job, s->job, sizeof job);
    const int32_t clusters = roll_clusters(&job, x->dims[0], s->clusters);
    cudaLaunchConfig_t config = roll_config(attributes, clusters);
    config.stream = layer_stream(r);
    job.weights = (const uint8_t *)s->packed;
    job.bias = (const float *)(job.weights + roll_pieces(job) * (int64_t)ROLL_PIECE);
    job.addend = r->n_in > 1 ? (const __half *)r->in[1].data : NULL;
    job.y = (__half *)r->out[0].data;
    if (clusters == 0)
        return STRATA_OK;
    return roll_map(&job, x->data, x->dims[0], (int32_t)x->dims[1])
               ? launch_job(r, config, (const void *)roll_kernel, &job)
               : no_map(r);
}
