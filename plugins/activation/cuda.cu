/* SPDX-License-Identifier: Apache-2.0
 *
 * Activation on CUDA: memory as it lies, with a kernel for each kind, where there are no
 * pads; else, and where the input lies inside a larger tensor, a walk. Pad lanes become
 * zero, since f(0) is not 0 for every kind.
 */
#include "plugins/common/pointwise_walk.cuh"

template <typename T>
struct activation_of {
    const void *x;
    activation_args activation;

    template <int N, int K>
    __device__ void apply(float v[N], const walk<K> &w, const walk_place<K> &p, int lane,
                          int64_t) const
    {
        walk_load<T, N>(v, x, w, p, 0, lane);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = activate(v[k], activation);
    }
};

/* A body of plugins/common/pointwise_walk.cuh. */
template <typename T, int Kind>
struct activation_flat {
    static const int N = 16 / (int)sizeof(T);
    typedef pack<T, N> raw;
    T *y;
    const T *x;
    float alpha, beta;

    __device__ T of(T from) const
    {
        const activation_args args = {Kind, alpha, beta};
        T to;
        from_float(&to, activate(to_float(from), args));
        return to;
    }
    __device__ void load(raw &v, int64_t i) const
    {
        v = *(const raw *)(x + i);
    }
    __device__ void finish(const raw &v, int64_t i) const
    {
        raw to;
#pragma unroll
        for (int k = 0; k < N; k++)
            to.v[k] = of(v.v[k]);
        *(raw *)(y + i) = to;
    }
    __device__ void one(int64_t i) const
    {
        y[i] = of(x[i]);
    }
};

template <typename T, int Kind = 0>
static void activation_of_kind(const strata_run *r, const activation_args &a)
{
    if constexpr (Kind < STRATA_ACTIVATION_COUNT) {
        if (a.kind != Kind) {
            activation_of_kind<T, Kind + 1>(r, a);
            return;
        }
        const activation_flat<T, Kind> body = {
            (T *)r->out[0].data, (const T *)r->in[0].data, a.alpha, a.beta};
        point_flat(r, body);
    }
}

template <typename T>
static void activation_launch(const strata_run *r)
{
    const strata_activation *p = (const strata_activation *)r->params;
    const strata_tensor *y = &r->out[0], *x = &r->in[0];
    const activation_args args = {p->kind, (float)strata_activation_alpha(p),
                                  (float)strata_activation_beta(p)};
    if (point_alike(y, x)) {
        activation_of_kind<T>(r, args);
        return;
    }
    const walk_operand operand = walk_tensor(y, x);
    const activation_of<T> a = {x->data, args};
    walk_launch<T, 1>(r, walk_output<1>(y, &operand), a);
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
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED | STRATA_PITCHED_IN |
              STRATA_PITCHED_OUT,
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
