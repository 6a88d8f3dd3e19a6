/* SPDX-License-Identifier: Apache-2.0
 *
 * What Reduce gathers of floats where one float would not hold it.
 */
#ifndef PLUGINS_REDUCE_FLOATS_CUH
#define PLUGINS_REDUCE_FLOATS_CUH

#include "plugins/common/reduce/reduce.cuh"
#include "plugins/reduce/number.cuh"

/* ---- log of a sum of exponentials ------------------------------------------------- */

template <typename Y>
struct exponents {
    struct Tally {
        float sum, most; /* of exp(x - shift(most)) */
    };
    Y *y;

    /* An infinity or a NaN is no shift. */
    static __device__ float shift(float most)
    {
        return fabsf(most) < INFINITY ? most : 0;
    }
    static __device__ float moved(float sum, float from, float to)
    {
        return sum == 0 ? 0 : sum * __expf(shift(from) - shift(to));
    }

    __device__ void start(Tally &t) const
    {
        t.sum = 0;
        t.most = -INFINITY;
    }

    template <typename T, int N>
    __device__ void take(Tally &t, const pack<T, N> &p, int64_t) const
    {
        float most = t.most;
#pragma unroll
        for (int k = 0; k < N; k++)
            most = larger(most, number(p.v[k]));
        float sum = moved(t.sum, t.most, most);
#pragma unroll
        for (int k = 0; k < N; k++)
            sum += __expf(number(p.v[k]) - shift(most));
        t.sum = sum;
        t.most = most;
    }

    __device__ void join(Tally &t, const Tally &other) const
    {
        const float most = larger(t.most, other.most);
        t.sum = moved(t.sum, t.most, most) + moved(other.sum, other.most, most);
        t.most = most;
    }

    __device__ Tally below(const Tally &t, int d) const
    {
        return {__shfl_down_sync(0xffffffffu, t.sum, d),
                __shfl_down_sync(0xffffffffu, t.most, d)};
    }

    __device__ void close(const Tally &t, int64_t at) const
    {
        put(y + at, shift(t.most) + logf(t.sum));
    }
};

/* ---- products of floats ----------------------------------------------------------- */

/* As mantissa and exponent: a part may leave FP32's range where the whole does not, and
 * one thread's infinity times another's 0 would be a NaN. */
template <typename Y>
struct products {
    struct Tally {
        float mantissa;
        int32_t exponent;
    };
    Y *y;

    /* Held where a sum of exponents would leave 32 bits. */
    static __device__ int32_t bounded(int32_t exponent)
    {
        const int32_t most = 1 << 30;
        return max(-most, min(most, exponent));
    }
    /* x's fraction; 0, infinities and NaNs have no exponent. */
    static __device__ float split(float x, int32_t *exponent)
    {
        int own = 0;
        if (x == 0 || !(fabsf(x) < INFINITY))
            return x;
        x = frexpf(x, &own);
        *exponent = bounded(*exponent + own);
        return x;
    }

    __device__ void start(Tally &t) const
    {
        t.mantissa = 1;
        t.exponent = 0;
    }

    template <typename T, int N>
    __device__ void take(Tally &t, const pack<T, N> &p, int64_t) const
    {
#pragma unroll
        for (int k = 0; k < N; k++)
            t.mantissa *= split(number(p.v[k]), &t.exponent);
        t.mantissa = split(t.mantissa, &t.exponent);
    }

    __device__ void join(Tally &t, const Tally &other) const
    {
        t.exponent = bounded(t.exponent + other.exponent);
        t.mantissa = split(t.mantissa * other.mantissa, &t.exponent);
    }

    __device__ Tally below(const Tally &t, int d) const
    {
        return {__shfl_down_sync(0xffffffffu, t.mantissa, d),
                __shfl_down_sync(0xffffffffu, t.exponent, d)};
    }

    __device__ void close(const Tally &t, int64_t at) const
    {
        put(y + at, ldexpf(t.mantissa, t.exponent));
    }
};

#endif /* PLUGINS_REDUCE_FLOATS_CUH */
