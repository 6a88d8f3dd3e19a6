/* SPDX-License-Identifier: Apache-2.0
 *
 * store.cuh's results, written out for what most products need: an addend or none, one
 * activation or nothing behind it. The loop that has all that others need jumps from
 * piece to piece of itself, and waits for the next one's instructions each time.
 */
#ifndef PLUGINS_COMMON_PRODUCT_WRITTEN_CUH
#define PLUGINS_COMMON_PRODUCT_WRITTEN_CUH

#include "plugins/common/product/store.cuh"

/* Nothing, ReLU, ReLU6 and clip as two bounds. */
struct product_bounds {
    float low, high;

    static __device__ inline bool are(const activation_args &a)
    {
        return a.kind < 0 || a.kind == STRATA_RELU || a.kind == STRATA_RELU6 ||
               a.kind == STRATA_CLIP;
    }
    __device__ inline product_bounds(const activation_args &a)
    {
        const bool six = a.kind == STRATA_RELU6, clip = a.kind == STRATA_CLIP;
        low = six || a.kind == STRATA_RELU ? 0.0f : clip ? a.alpha : -INFINITY;
        high = six ? 6.0f : clip ? a.beta : INFINITY;
    }
    /* Both bounds, or the lower one, as there is no other. */
    template <bool Both>
    __device__ inline float of(float x) const
    {
        x = larger(x, low);
        return Both ? smaller(x, high) : x;
    }
};

/* GELU as a half has it: max(x, 0) - a*2^q(a), a of |x| up to 6, where q is a polynomial
 * nearest to the logarithm of the normal distribution's tail. Before it is rounded it is
 * off by 0.1 of FP16's last place at most; one instruction of the function unit. */
static __device__ inline float gelu_of_half(float x)
{
    const float a = smaller(fabsf(x), 6);
    float q = fmaf(3.24442626e-05f, a, -0.000748414081f);
    q = fmaf(q, a, 0.00794223323f);
    q = fmaf(q, a, -0.0530517213f);
    q = fmaf(q, a, -0.45917055f);
    q = fmaf(q, a, -1.15103662f);
    q = fmaf(q, a, -1.00000763f);
    return fmaf(-a, exp2_near(q), larger(x, 0));
}

/* A warpgroup's, of FP16 or BF16. Behind: GELU, which has no addend before it, or
 * STRATA_CLIP, all that are bounds. */
template <class C, int Behind, class Memory = product_memory<C>>
struct product_written : product_store<C, Memory> {
    typedef product_store<C, Memory> loop;
    typedef typename C::Element T;
    typedef const float (&sums)[C::Parts][C::Columns / 8][4];
    enum { CHUNKS = C::Columns / PRODUCT_CHUNK, EACH = C::Panel / PRODUCT_CHUNK };

    using loop::loop;

    __device__ inline ~product_written()
    {
        if (this->thread == 0)
            copy_group_wait_read(); /* shared memory ends with the block */
    }

    /* Two neighbours. x: of the addend. */
    template <bool Addend, int Kind>
    __device__ inline uint32_t finish_two(float v, float w, float2 bias, uint32_t x,
                                          product_bounds bounds) const
    {
        v = fmaf(this->job.alpha, v, bias.x);
        w = fmaf(this->job.alpha, w, bias.y);
        if (Addend) {
            const float2 two = unpack_two(T(), x);
            v = fmaf(this->job.beta, two.x, v);
            w = fmaf(this->job.beta, two.y, w);
        }
        if (Kind == STRATA_GELU) {
            v = gelu_of_half(v);
            w = gelu_of_half(w);
        } else if (Kind >= 0) {
            v = bounds.of<Kind == STRATA_CLIP>(v);
            w = bounds.of<Kind == STRATA_CLIP>(w);
        }
        return pack_two(T(), v, w);
    }

    /* Sixteen columns: half h of chunk i. */
    template <bool Addend, int Kind>
    __device__ inline void write_half(sums sum, int i, int h, product_bounds bounds) const
    {
        const int column = i % CHUNKS, piece = (i % EACH * 2 + h) * 2;
        const uint32_t to =
            this->first + i / EACH * C::PanelBytes + (piece ^ this->swizzled) * 16;
        const float2 *bias = (const float2 *)this->memory.bias(this->group) +
                             column * 16 + h * 8 + this->thread % 4;
        uint32_t x[4] = {}, y[4];
        if (Addend)
            load_matrices(x, to);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const float(&s)[4] = sum[i / CHUNKS][column * 4 + h * 2 + e / 2];
            y[e] = finish_two<Addend, Kind>(s[e % 2 * 2], s[e % 2 * 2 + 1],
                                            bias[e / 2 * 4], x[e], bounds);
        }
        store_matrices(to, y);
    }

    template <bool Addend, int Kind, class Send>
    __device__ inline void write(sums sum, const Send &send) const
    {
        const product_bounds bounds(this->job.activation);
#pragma unroll
        for (int i = 0; i < C::Parts * CHUNKS; i++) {
            write_half<Addend, Kind>(sum, i, 0, bounds);
            write_half<Addend, Kind>(sum, i, 1, bounds);
            if (i % CHUNKS == CHUNKS - 1)
                product_send(this->group, i / CHUNKS, send);
        }
    }

    template <bool Addend, class Send>
    __device__ inline void write_all(sums sum, const Send &send) const
    {
        const int32_t kind = this->job.activation.kind;
        if constexpr (Behind == STRATA_CLIP) {
            if (kind < 0 || kind == STRATA_RELU)
                write<Addend, STRATA_RELU>(sum, send);
            else
                write<Addend, STRATA_CLIP>(sum, send);
        } else if constexpr (Addend) {
            write<true, -1>(sum, send);
        } else {
            if (kind < 0)
                write<false, -1>(sum, send);
            else
                write<false, Behind>(sum, send);
        }
    }

    __device__ inline bool is_written(void) const
    {
        const product_job &job = this->job;
        if (job.scale || job.real < job.n)
            return false;
        return Behind == STRATA_CLIP ? product_bounds::are(job.activation)
                                     : job.activation.kind < 0 ||
                                           (job.activation.kind == Behind && !job.addend);
    }

    /* n: tiles before. send(part): stores its panels, by one thread. Who writes panels
     * waits until the last ones have been read, and not who multiplies before that. */
    template <class Send>
    __device__ inline void run(sums sum, int32_t column, uint32_t n,
                               const Send &send) const
    {
        const product_job &job = this->job;
        if (this->thread == 0)
            copy_group_wait_read();
        if (!is_written())
            return loop::run(sum, column, n, send);
#pragma unroll
        for (int i = 0; i < loop::OWN; i++)
            if (this->thread + i * 128 < C::Columns)
                this->memory.bias(this->group)[this->thread + i * 128] = this->bias[i];
        if (job.addend)
            barrier_wait(this->memory.addend(this->group), n % 2);
        named_sync(PRODUCT_STORE + this->group, 128);
        if (job.addend)
            write_all<true>(sum, send);
        else
            write_all<false>(sum, send);
        if (job.addend)
            product_sent(job, this->memory, this->group);
    }
};

/* The kind of a tile whose results are. */
template <typename T, int Behind>
struct product_written_floats : product_floats<T> {
    template <class C>
    using store = product_written<C, Behind>;
};

#endif /* PLUGINS_COMMON_PRODUCT_WRITTEN_CUH */
