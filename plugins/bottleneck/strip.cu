/* SPDX-License-Identifier: Apache-2.0
 *
 * Bottleneck of many pixels on Hopper's tensor cores, in one launch: fp16:nhwc8, windows
 * of 3x3, up to 64 channels between.
 */
#include "plugins/bottleneck/accept.cuh"
#include "plugins/bottleneck/impls.cuh"
#include "plugins/bottleneck/strip_share.cuh"

/* Sizes that fit into an int. */
static const char *refuse_channels(const bottleneck_shape &s)
{
    return s.channels > 64 * STRIP_PARTS || s.results > 64 * STRIP_PARTS ||
                   s.reduced > 64 || s.convolved > 64
               ? "it is for up to 256 channels, 64 of them between"
           : !s.shortcut     ? NULL
           : s.channels > 64 ? "it adds a product of up to 64 channels"
           : s.results % 8   ? "it adds a product to whole eights of results alone"
                             : NULL;
}

#define LEAST_STEPS 32 /* for a quarter of the multiprocessors */

int strip_accept(const strata_node *n)
{
    bottleneck_shape s = {};
    strip_job job = {};
    const int status = bottleneck_take(n, refuse_channels);
    if (status != STRATA_OK || bottleneck_resolve(n, &s) != STRATA_OK)
        return status;
    strip_plan(&job, sizes_of(s));
    return n->in[0].dims[0] * job.strips.d * job.steps < LEAST_STEPS
               ? refuse(n, "it is for more pixels")
               : STRATA_OK;
}

/* ---- setting up ------------------------------------------------------------------- */

static int pack_weights(const strata_node *n, const bottleneck_shape &s,
                        const strip_job &job, void **packed)
{
    const int status = alloc_packed(n, strip_packed(job), packed);
    if (status != STRATA_OK)
        return status;
    strip_pack_kernel<<<(unsigned)strip_matrices(job), CUDA_BLOCK, 0,
                        (cudaStream_t)n->stream>>>(weights_of(n, s), job.panels,
                                                   job.parts, (uint8_t *)*packed);
    return packed_status(n);
}

int strip_setup(const strata_node *n, void *state)
{
    strip_state *to = (strip_state *)state;
    strip_job job = {};
    bottleneck_shape s = {};
    int status = bottleneck_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    strip_plan(&job, sizes_of(s));
    bottleneck_set_tails(&job, n);
    memcpy(to->job, &job, sizeof job);
    to->blocks = device_attribute(cudaDevAttrMultiProcessorCount);
    status = allow_memory(n, (const void *)strip_kernel,
                          (size_t)strip_shared_bytes(job, job.slots));
    return status == STRATA_OK ? pack_weights(n, s, job, &to->packed) : status;
}

/* ---- running ---------------------------------------------------------------------- */

int strip_run(const strata_run *r)
{
    const strip_state *s = (const strip_state *)r->state;
    const strata_tensor *x = &r->in[0];
    strip_job job;
    cudaLaunchAttribute attributes[1] = {};
    memcpy(&job, s->job, sizeof job);
    const int32_t blocks = strip_blocks(&job, x->dims[0], s->blocks);
    cudaLaunchConfig_t config = strip_config(attributes, job, blocks);
    config.stream = layer_stream(r);
    job.weights = (const uint8_t *)s->packed;
    job.bias =
        (const float *)(job.weights + strip_matrices(job) * (int64_t)BOTTLENECK_PIECE);
    job.addend = r->n_in > 1 ? (const __half *)r->in[1].data : NULL;
    job.y = (__half *)r->out[0].data;
    if (blocks == 0)
        return STRATA_OK;
    return strip_map(&job, x->data, x->dims[0], (int32_t)x->dims[1])
               ? launch_job(r, config, (const void *)strip_kernel, &job)
               : no_map(r);
}
