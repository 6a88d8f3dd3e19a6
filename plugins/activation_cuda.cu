/* SPDX-License-Identifier: Apache-2.0
 *
 * Activation on CUDA: walks over memory as it lies, 16 bytes a thread and step, and sets
 * pad lanes to zero again, since f(0) is not 0 for every kind.
 */
#include "kernels/layer.cuh"

struct activation_job {
    void *y;
    const void *x;
    int64_t size; /* elements, pad lanes included */
    bool pads;    /* there are some */
    channel_map channels;
    activation_args activation;
};

template <typename T, int N>
static __device__ void activate_pack(const activation_job &job, int64_t at)
{
    pack<T, N> p = *(const pack<T, N> *)((const T *)job.x + at);
#pragma unroll
    for (int k = 0; k < N; k++) {
        float y = activate(to_float(p.v[k]), job.activation);
        if (job.pads && channel_of(at + k, job.channels) >= job.channels.channels)
            y = 0;
        from_float(&p.v[k], y);
    }
    *(pack<T, N> *)((T *)job.y + at) = p;
}

template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK) activation_kernel(activation_job job)
{
    const int N = 16 / (int)sizeof(T);
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK * N;
    for (int64_t at = ((int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x) * N; at < job.size;
         at += step) {
        if (at + N <= job.size)
            activate_pack<T, N>(job, at);
        else
            for (int64_t i = at; i < job.size; i++)
                activate_pack<T, 1>(job, i);
    }
}

static int activation_run(const strata_run *r)
{
    const strata_activation *p = (const strata_activation *)r->params;
    const strata_tensor *y = &r->out[0];
    activation_job job = {};
    job.y = y->data;
    job.x = r->in[0].data;
    job.size = y->size;
    job.pads = y->size != y->count;
    job.channels = channel_map_of(y);
    job.activation.kind = p->kind;
    job.activation.alpha = (float)strata_activation_alpha(p);
    job.activation.beta = (float)strata_activation_beta(p);
    if (y->dtype == STRATA_FP16)
        activation_kernel<__half>
            <<<layer_blocks(y->size, CUDA_BLOCK * 8), CUDA_BLOCK, 0, layer_stream(r)>>>(
                job);
    else
        activation_kernel<float>
            <<<layer_blocks(y->size, CUDA_BLOCK * 4), CUDA_BLOCK, 0, layer_stream(r)>>>(
                job);
    return layer_launched(r, "activation");
}

static const strata_row rows[] = {{{CUDA_FLOATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = activation_run},
};

static const strata_extends activation = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Activation",
    .params_size = sizeof(strata_activation),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&activation};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Activation", extends)
