/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's side of reach.cuh: what it takes, weights, the job.
 */
#include "plugins/convolution/cuda/hopper_pack.cuh"
#include "plugins/convolution/cuda/reach_plan.cuh"

#define MOST_WAVES 4 /* of blocks; more is for tiles that go on */
#define MULTIPROCESSORS 132

static bool plan_of(reach_plan *p, const strata_tensor *x, const convolution_state &s)
{
    return reach_plan_of(p, x->dims[0], s.w.in[1], s.w.in[2], stored_channels(x),
                         s.out_c);
}

static const char *refusal(const strata_node *n, const convolution_state &s)
{
    const window &w = s.w;
    reach_plan p = {};
    for (int d = 1; d < WINDOW_DIMS; d++)
        if (w.kernel[d] != 3 || w.stride[d] != 1 || w.dilation[d] != 1 ||
            w.begin[d] != 1 || w.out[d] != w.in[d])
            return "windows are 3x3 with a stride of 1 and a pad of 1";
    if (w.in[0] != 1)
        return "it is for images of two dims";
    if (!plan_of(&p, &n->in[0], s))
        return "its weights and what windows reach do not fit in shared memory";
    return p.units * p.filters * p.splits > MOST_WAVES * MULTIPROCESSORS
               ? "it is for fewer pixels"
               : NULL;
}

int reach_accept(const strata_node *n)
{
    convolution_state s;
    int status = gemm_accept(n);
    if (status == STRATA_OK)
        status = convolution_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    const char *why = product_math_refusal(n);
    if (!why)
        why = refusal(n, s);
    if (!why)
        why = hopper_refusal(n, s);
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : STRATA_OK;
}

int reach_setup(const strata_node *n, void *state)
{
    convolution_state *s = (convolution_state *)state;
    reach_plan p = {};
    reach_pack_job job = {};
    int status = convolution_resolve(n, s);
    if (status == STRATA_OK && !plan_of(&p, &n->in[0], *s))
        status = STRATA_FAIL(n, STRATA_EUNSUPPORTED, "it has no room");
    job.size = reach_packed(p);
    for (p.splits = 1; status == STRATA_OK && p.splits <= REACH_SPLITS; p.splits *= 2)
        status = convolution_prepare(n, s, reach_kernel_of(p), REACH_MEMORY);
    job.in_c = s->in_c;
    job.out_c = s->out_c;
    job.panels = p.stored;
    return status == STRATA_OK
               ? convolution_pack(n, s, job, sizeof(__half), reach_pack_kernel)
               : status;
}

int reach_run(const strata_run *r)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const strata_tensor *x = &r->in[0];
    const int64_t height = s->w.in[1], width = s->w.in[2];
    reach_plan p = {};
    reach_job job = {};
    cudaLaunchAttribute attributes[2] = {};
    if (!plan_of(&p, x, *s))
        return STRATA_FAIL(r, STRATA_EUNSUPPORTED, "it has no room");
    if (p.units == 0)
        return STRATA_OK;
    hopper_fill(&job, r);
    reach_fill(&job, p, x->dims[0], height, width);
    if (!reach_map(&job.a, p, x->data, x->dims[0], height, width, stored_channels(x),
                   pixel_pitch(x)))
        return STRATA_FAIL(r, STRATA_EDEVICE,
                           "the driver makes no tensor map of these tensors");
    cudaLaunchConfig_t config = reach_config(attributes, p);
    config.stream = layer_stream(r);
    const void *weights = s->packed;
    void *arguments[] = {&job, &weights};
    const cudaError_t e = cudaLaunchKernelExC(&config, reach_kernel_of(p), arguments);
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "kernel convolution reach: %s (%s)",
                             cudaGetErrorString(e), cudaGetErrorName(e));
}
