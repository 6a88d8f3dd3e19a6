/* SPDX-License-Identifier: Apache-2.0
 *
 * store.cuh's results, written out for what most products need: an addend or none, GELU
 * or nothing behind it. The loop that has all that others need jumps from piece to piece
 * of itself, and waits for the next one's instructions each time.
 */
#ifndef PLUGINS_COMMON_PRODUCT_WRITTEN_CUH
#define PLUGINS_COMMON_PRODUCT_WRITTEN_CUH

#include "plugins/common/product/store.cuh"

/* A warpgroup's, of FP16 or BF16. */
template <class C, class Memory = product_memory<C>>
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
    __device__ inline uint32_t finish_two(float v, float w, float2 bias, uint32_t x) const
    {
        v = fmaf(this->job.alpha, v, bias.x);
        w = fmaf(this->job.alpha, w, bias.y);
        if (Addend) {
            const float2 two = unpack_two(T(), x);
            v = fmaf(this->job.beta, two.x, v);
            w = fmaf(this->job.beta, two.y, w);
        }
        if (Kind == STRATA_GELU) {
            v = gelu(v);
            w = gelu(w);
        }
        return pack_two(T(), v, w);
    }

    /* Sixteen columns: half h of chunk i. */
    template <bool Addend, int Kind>
    __device__ inline void write_half(sums sum, int i, int h) const
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
                                            bias[e / 2 * 4], x[e]);
        }
        store_matrices(to, y);
    }

    template <bool Addend, int Kind, class Send>
    __device__ inline void write(sums sum, const Send &send) const
    {
#pragma unroll
        for (int i = 0; i < C::Parts * CHUNKS; i++) {
            write_half<Addend, Kind>(sum, i, 0);
            write_half<Addend, Kind>(sum, i, 1);
            if (i % CHUNKS == CHUNKS - 1)
                product_send(this->group, i / CHUNKS, send);
        }
    }

    /* n: tiles before. send(part): stores its panels, by one thread. Who writes panels
     * waits until the last ones have been read, and not who multiplies before that. */
    template <class Send>
    __device__ inline void run(sums sum, int32_t column, uint32_t n,
                               const Send &send) const
    {
        const product_job &job = this->job;
        const int32_t kind = job.activation.kind;
        const bool gelu = kind == STRATA_GELU && !job.addend;
        if (this->thread == 0)
            copy_group_wait_read();
        if (job.scale || job.real < job.n || (kind >= 0 && !gelu))
            return loop::run(sum, column, n, send);
#pragma unroll
        for (int i = 0; i < loop::OWN; i++)
            if (this->thread + i * 128 < C::Columns)
                this->memory.bias(this->group)[this->thread + i * 128] = this->bias[i];
        if (job.addend)
            barrier_wait(this->memory.addend(this->group), n % 2);
        named_sync(PRODUCT_STORE + this->group, 128);
        if (gelu)
            write<false, STRATA_GELU>(sum, send);
        else if (job.addend)
            write<true, -1>(sum, send);
        else
            write<false, -1>(sum, send);
        if (job.addend)
            product_sent(this->memory, this->group);
    }
};

/* The kind of a tile whose results are. */
template <typename T>
struct product_written_floats : product_floats<T> {
    template <class C>
    using store = product_written<C>;
};

#endif /* PLUGINS_COMMON_PRODUCT_WRITTEN_CUH */
