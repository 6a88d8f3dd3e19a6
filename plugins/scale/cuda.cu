/* SPDX-License-Identifier: Apache-2.0
 *
 * Scale on CUDA: one walk over the output as it lies, the three weights (FP32, linear) as
 * operands that are uniform, per channel, or per element of an image, and so the input
 * where it lies inside a larger tensor; then a fused residual and activation.
 */
#include "kernels/walk.cuh"

enum { SCALE, SHIFT, POWER, WEIGHTS };

struct factors {
    const void *x;
    const float *weight[WEIGHTS]; /* NULL: absent */
    float absent[WEIGHTS];
    epilogue_args epilogue;
};

/* Apart: the input is operand WEIGHTS of the walk, else it lies as the output does. */
template <typename T, bool Apart>
struct factors_of : factors {
    template <int N, int K>
    __device__ void load_factor(float v[N], const walk<K> &w, const walk_place<K> &p,
                                int k, int lane) const
    {
        if (weight[k])
            walk_load<float, N>(v, weight[k], w, p, k, lane);
        else
#pragma unroll
            for (int e = 0; e < N; e++)
                v[e] = absent[k];
    }

    template <int N, int K>
    __device__ void apply(float v[N], const walk<K> &w, const walk_place<K> &p, int lane,
                          int64_t i) const
    {
        float a[N], b[N];
        if constexpr (Apart)
            walk_load<T, N>(v, x, w, p, WEIGHTS, lane);
        else
            walk_load_pack<T, N>(v, (const T *)x + i);
        load_factor<N>(a, w, p, SCALE, lane);
        load_factor<N>(b, w, p, SHIFT, lane);
#pragma unroll
        for (int e = 0; e < N; e++)
            v[e] = v[e] * a[e] + b[e];
        if (weight[POWER] || absent[POWER] != 1) {
            load_factor<N>(a, w, p, POWER, lane);
#pragma unroll
            for (int e = 0; e < N; e++)
                v[e] = power(v[e], a[e]);
        }
        walk_finish<T, N>(v, i, epilogue);
    }
};

/* By the number of its elements, as in plugins/scale/scale.c. */
static walk_operand factor_operand(const strata_tensor *y, const strata_tensor *weight)
{
    if (weight->rank == 0 || weight->count == 1)
        return {};
    return weight->count == y->dims[1] ? walk_dense(y, 1, 1)
                                       : walk_dense(y, 1, y->rank - 1);
}

/* Whether x's elements are not where y's would be in memory of its own. */
static bool lies_apart(const strata_tensor *x, const strata_tensor *y)
{
    if (walk_elements(y) != y->size)
        return true;
    for (int d = 0; d < y->rank; d++)
        if (y->dims[d] > 1 && x->strides[d] != y->strides[d])
            return true;
    return false;
}

template <typename T, bool Apart>
static void scale_launch(const strata_run *r)
{
    const int K = WEIGHTS + Apart;
    const strata_scale *params = (const strata_scale *)r->params;
    const double absent[WEIGHTS] = {params->scale, params->shift, params->power};
    walk_operand operand[K];
    factors_of<T, Apart> f = {};
    f.x = r->in[0].data;
    f.epilogue = epilogue_of(r);
    for (int k = 0; k < WEIGHTS; k++) {
        f.weight[k] = r->weight[k].rank ? (const float *)r->weight[k].data : NULL;
        f.absent[k] = (float)absent[k];
        operand[k] = factor_operand(&r->out[0], &r->weight[k]);
    }
    if (Apart)
        operand[K - 1] = walk_tensor(&r->out[0], &r->in[0]);
    walk_launch<T, K>(r, walk_output<K>(&r->out[0], operand), f);
}

static int scale_run(const strata_run *r)
{
    const bool apart = lies_apart(&r->in[0], &r->out[0]);
    layer_float(r->out[0].dtype, [&](auto t) {
        apart ? scale_launch<decltype(t), true>(r) : scale_launch<decltype(t), false>(r);
    });
    return layer_launched(r, "scale");
}

static const strata_row rows[] = {{{CUDA_FLOATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags =
         STRATA_INPLACE_OK | STRATA_PAD_IGNORED | STRATA_PITCHED_IN | STRATA_PITCHED_OUT,
     .epilogues = STRATA_EPILOGUE_RESIDUAL | STRATA_EPILOGUE_ACTIVATION,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .run = scale_run},
};

static const strata_extends scale = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Scale",
    .params_size = sizeof(strata_scale),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&scale};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Scale", extends)
