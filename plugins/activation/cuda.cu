/* SPDX-License-Identifier: Apache-2.0
 *
 * Activation on CUDA: walks over memory as it lies, 16 bytes a thread. Pad lanes become
 * zero, since f(0) is not 0 for every kind.
 */
#include "kernels/walk.cuh"

template <typename T>
struct activation_of {
    const void *x;
    activation_args activation;

    template <int N, int K>
    __device__ void apply(float v[N], const walk<K> &, const walk_place<K> &, int,
                          int64_t i) const
    {
        walk_load_pack<T, N>(v, (const T *)x + i);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = activate(v[k], activation);
    }
};

template <typename T>
static void activation_launch(const strata_run *r)
{
    const strata_activation *p = (const strata_activation *)r->params;
    const walk_operand operand = walk_tensor(&r->out[0], &r->in[0]);
    activation_of<T> a = {};
    a.x = r->in[0].data;
    a.activation.kind = p->kind;
    a.activation.alpha = (float)strata_activation_alpha(p);
    a.activation.beta = (float)strata_activation_beta(p);
    walk_launch<T, 1>(r, walk_over<1>(&r->out[0], &operand), a);
}

static int activation_run(const strata_run *r)
{
    layer_float(r->out[0].dtype, [&](auto t) { activation_launch<decltype(t)>(r); });
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
