/* SPDX-License-Identifier: Apache-2.0
 *
 * Gated on CUDA: the halves are two operands of one walk.
 */
#include "plugins/common/pointwise_walk.cuh"
#include "plugins/gated/gated.h"

template <typename T>
struct gate {
    static const int K = 2, N = 16 / (int)sizeof(T);
    T *y;
    const T *a, *b;
    activation_args f;

    template <int M> __device__ void at(const walk<K> &w, const walk_place<K> &p, int lane,
                                        int64_t i) const
    {
        float u[M], v[M];
        point_load<T, M>(u, a, w, p, 0, lane);
        point_load<T, M>(v, b, w, p, 1, lane);
#pragma unroll
        for (int e = 0; e < M; e++)
            v[e] *= activate(u[e], f);
        point_store<T, M>(y + walk_to<K>(w, p, lane, i), v);
    }
    __device__ void zero_pad(int64_t i) const
    {
        y[i] = point_element<T>(0.0f);
    }
};

template <typename T>
static void gated_of(const strata_run *r)
{
    const strata_gated *p = (const strata_gated *)r->params;
    const strata_tensor *x = &r->in[0], *out = &r->out[0];
    const strata_activation f = gated_activation(p);
    const int32_t axis = gated_axis(p, x->rank);
    const strata_tensor a = gated_half(x, axis, 0), b = gated_half(x, axis, 1);
    const walk_operand operand[2] = {point_operand(out, &a), point_operand(out, &b)};
    gate<T> body = {(T *)out->data, (const T *)a.data, (const T *)b.data, {}};
    body.f.kind = p->kind;
    body.f.alpha = (float)strata_activation_alpha(&f);
    body.f.beta = (float)strata_activation_beta(&f);
    point_walk(r, body, operand);
}

static int gated_run(const strata_run *r)
{
    layer_float(r->out[0].dtype, [&](auto t) { gated_of<decltype(t)>(r); });
    return layer_launched(r, "gated");
}

static const strata_row rows[] = {{{CUDA_FLOATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED | STRATA_PITCHED_IN | STRATA_PITCHED_OUT,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .accept = gated_accept,
     .run = gated_run,
     .bandwidth = 0.9},
};

static const strata_extends gated = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Gated",
    .params_size = sizeof(strata_gated),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&gated};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Gated", extends)
