/* SPDX-License-Identifier: Apache-2.0
 *
 * Cast on CUDA: over memory as it lies, packs of 16 bytes of the wider type. Pad lanes
 * are cast with the others and become zero afterwards.
 */
#include "plugins/cast/cast.h"

#include "plugins/common/convert.cuh"
#include "plugins/common/move/move.h"
#include "plugins/common/pointwise_walk.cuh"

template <typename To, typename From>
struct cast_body {
    static const int N = 16 / (int)(sizeof(To) > sizeof(From) ? sizeof(To) : sizeof(From));
    typedef pack<From, N> raw;
    To *y;
    const From *x;
    bool saturate;

    template <int M> __device__ void put(const From *from, int64_t i) const
    {
        const pack<From, M> v = *(const pack<From, M> *)from;
        pack<To, M> to;
#pragma unroll
        for (int e = 0; e < M; e++)
            to.v[e] = cast_element<To>(v.v[e], saturate);
        *(pack<To, M> *)(y + i) = to;
    }
    __device__ void load(raw &v, int64_t i) const
    {
        v = *(const raw *)(x + i);
    }
    __device__ void finish(const raw &v, int64_t i) const
    {
        put<N>(v.v, i);
    }
    __device__ void one(int64_t i) const
    {
        put<1>(x + i, i);
    }
};

template <typename To, typename From>
static void cast_pair(const strata_run *r)
{
    const strata_cast *p = (const strata_cast *)r->params;
    point_flat(r, cast_body<To, From>{(To *)r->out[0].data, (const From *)r->in[0].data,
                                      p->saturate != 0});
}

static int cast_run(const strata_run *r)
{
    layer_dtype(r->in[0].dtype, [&](auto from) {
        layer_dtype(r->out[0].dtype,
                    [&](auto to) { cast_pair<decltype(to), decltype(from)>(r); });
    });
    const int status = layer_launched(r, "cast");
    return status == STRATA_OK ? move_clear_pads(r, &r->out[0]) : status;
}

static int cast_accept(const strata_node *n)
{
    const strata_cast *p = (const strata_cast *)n->params;
    return n->out[0].dtype == p->to
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the output has another dtype");
}

static const strata_row rows[] = {CAST_ROWS};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .accept = cast_accept,
     .run = cast_run,
     .bandwidth = 0.9},
};

static const strata_extends cast = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Cast",
    .params_size = sizeof(strata_cast),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&cast};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Cast", extends)
