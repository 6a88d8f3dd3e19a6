/* SPDX-License-Identifier: Apache-2.0
 *
 * Select on CUDA: words of the elements' size move, whatever they hold.
 */
#include "plugins/common/dtype.h"
#include "plugins/common/pointwise_walk.cuh"

template <typename T>
struct choose {
    static const int K = 3, N = 16 / (int)sizeof(T);
    struct raw {
        pack<uint8_t, N> c;
        pack<T, N> a, b;
    };
    T *y;
    const uint8_t *c;
    const T *a, *b;
    bool one_c, one_a, one_b; /* of one element */

    __device__ void load(raw &x, int64_t i) const
    {
        if (!one_c)
            x.c = *(const pack<uint8_t, N> *)(c + i);
        if (!one_a)
            x.a = *(const pack<T, N> *)(a + i);
        if (!one_b)
            x.b = *(const pack<T, N> *)(b + i);
    }
    __device__ void finish(const raw &x, int64_t i) const
    {
        pack<T, N> v;
#pragma unroll
        for (int e = 0; e < N; e++)
            v.v[e] = (one_c ? *c : x.c.v[e]) ? (one_a ? *a : x.a.v[e])
                                             : (one_b ? *b : x.b.v[e]);
        *(pack<T, N> *)(y + i) = v;
    }
    __device__ void one(int64_t i) const
    {
        y[i] = c[one_c ? 0 : i] ? a[one_a ? 0 : i] : b[one_b ? 0 : i];
    }
    template <int M> __device__ void at(const walk<K> &w, const walk_place<K> &p, int lane,
                                        int64_t i) const
    {
        uint8_t truth[M];
        T u[M], v[M];
        pack<T, M> chosen;
        point_load<uint8_t, M>(truth, c, w, p, 0, lane);
        point_load<T, M>(u, a, w, p, 1, lane);
        point_load<T, M>(v, b, w, p, 2, lane);
#pragma unroll
        for (int e = 0; e < M; e++)
            chosen.v[e] = truth[e] ? u[e] : v[e];
        *(pack<T, M> *)(y + i) = chosen;
    }
    __device__ void zero_pad(int64_t i) const
    {
        y[i] = 0;
    }
};

template <typename T>
static void select_of(const strata_run *r)
{
    const strata_tensor *out = &r->out[0];
    bool one[3], flat = true;
    walk_operand operand[3];
    for (int k = 0; k < 3; k++) {
        one[k] = r->in[k].count == 1;
        flat = flat && (one[k] || point_alike(out, &r->in[k]));
        operand[k] = point_operand(out, &r->in[k]);
    }
    choose<T> body = {(T *)out->data,
                      (const uint8_t *)r->in[0].data,
                      (const T *)r->in[1].data,
                      (const T *)r->in[2].data,
                      one[0],
                      one[1],
                      one[2]};
    flat ? point_flat(r, body) : point_walk(r, body, operand);
}

static int select_run(const strata_run *r)
{
    switch (dtype_size(r->out[0].dtype)) {
    case 1: select_of<uint8_t>(r); break;
    case 2: select_of<uint16_t>(r); break;
    case 4: select_of<uint32_t>(r); break;
    default: select_of<uint64_t>(r); break;
    }
    return layer_launched(r, "select");
}

#define ROW(format) {{STRATA_BOOL_NCHW, format, format}, {format}}
static const strata_row rows[] = {
    ROW(STRATA_F32_NCHW), ROW(STRATA_F16_NCHW), ROW(STRATA_BF16_NCHW),
    ROW(STRATA_F64_NCHW), ROW(STRATA_I32_NCHW), ROW(STRATA_I64_NCHW),
    ROW(STRATA_U8_NCHW),  ROW(STRATA_I8_NCHW),  ROW(STRATA_BOOL_NCHW),
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = select_run,
     .bandwidth = 0.9},
};

static const strata_extends select_extends = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Select",
    .params_size = 0,
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&select_extends};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Select", extends)
