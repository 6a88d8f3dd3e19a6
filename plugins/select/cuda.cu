/* SPDX-License-Identifier: Apache-2.0
 *
 * Select on CUDA: words of the elements' size move, whatever they hold.
 */
#include "plugins/common/dtype.h"
#include "plugins/common/pointwise_walk.cuh"

/* Words of 32 bits; packs of smaller elements would be taken apart in registers. */
template <int Words> struct words {
    uint32_t v[Words];
};

template <int Bytes>
static __device__ inline words<(Bytes + 3) / 4> fetch_words(const void *from)
{
    typedef typename word_of<Bytes>::type word;
    union {
        word w;
        words<(Bytes + 3) / 4> x;
    } u = {*(const word *)from};
    return u.x;
}

/* One element again and again. */
template <typename T, int Words>
static __device__ inline words<Words> repeat_words(T value)
{
    const uint32_t ones = sizeof(T) == 1 ? 0x01010101u : sizeof(T) == 2 ? 0x00010001u : 1;
    words<Words> x;
#pragma unroll
    for (int w = 0; w < Words; w++)
        x.v[w] = (uint32_t)((uint64_t)value >> (sizeof(T) == 8 && w % 2 ? 32 : 0)) * ones;
    return x;
}

/* Single: whether some operands may have one element. */
template <typename T, bool Single>
struct choose {
    static const int K = 3, S = (int)sizeof(T), N = 16 / S, C = (N + 3) / 4;
    struct raw {
        words<C> c;
        words<4> a, b;
    };
    T *y;
    const uint8_t *c;
    const T *a, *b;
    bool one_c, one_a, one_b; /* of one element */

    __device__ void load(raw &x, int64_t i) const
    {
        x.c =
            Single && one_c ? repeat_words<uint8_t, C>(*c) : fetch_words<N>(c + i);
        x.a = Single && one_a ? repeat_words<T, 4>(*a) : fetch_words<16>(a + i);
        x.b = Single && one_b ? repeat_words<T, 4>(*b) : fetch_words<16>(b + i);
    }
    /* Byte k of a word is of element (4*w + k) / S. */
    static __device__ uint32_t mask(const words<C> &truth, int w)
    {
        uint32_t bytes = 0;
#pragma unroll
        for (int k = 0; k < 4; k++)
            bytes |= (uint32_t)((4 * w + k) / S % 4) << 4 * k;
        return __byte_perm(truth.v[4 * w / S / 4], 0, bytes);
    }
    __device__ void finish(const raw &x, int64_t i) const
    {
        words<C> truth;
        uint32_t v[4];
#pragma unroll
        for (int w = 0; w < C; w++)
            truth.v[w] = __vcmpgtu4(x.c.v[w], 0);
#pragma unroll
        for (int w = 0; w < 4; w++) {
            const uint32_t m = mask(truth, w);
            v[w] = (x.a.v[w] & m) | (x.b.v[w] & ~m);
        }
        *(uint4 *)(y + i) = make_uint4(v[0], v[1], v[2], v[3]);
    }
    __device__ void one(int64_t i) const
    {
        y[i] = c[Single && one_c ? 0 : i] ? a[Single && one_a ? 0 : i]
                                          : b[Single && one_b ? 0 : i];
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
        *(pack<T, M> *)(y + walk_to<K>(w, p, lane, i)) = chosen;
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
    const choose<T, true> body = {(T *)out->data,
                                  (const uint8_t *)r->in[0].data,
                                  (const T *)r->in[1].data,
                                  (const T *)r->in[2].data,
                                  one[0],
                                  one[1],
                                  one[2]};
    if (!flat)
        point_walk(r, body, operand);
    else if (one[0] || one[1] || one[2])
        point_flat(r, body);
    else
        point_flat(r, choose<T, false>{body.y, body.c, body.a, body.b});
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
     .flags = STRATA_PAD_IGNORED | STRATA_PITCHED_IN | STRATA_PITCHED_OUT,
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
