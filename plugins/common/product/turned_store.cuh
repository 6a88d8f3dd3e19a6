/* SPDX-License-Identifier: Apache-2.0
 *
 * From turned sums to results: two blocks that share a tile's depth each finish half of
 * its pixels and are sent what the other one has of them. Results lie as rows of pixels
 * in shared memory, from where the copy engine stores them, and where an addend has come
 * to. What most layers have behind their sums is written out.
 */
#ifndef PLUGINS_COMMON_PRODUCT_TURNED_STORE_CUH
#define PLUGINS_COMMON_PRODUCT_TURNED_STORE_CUH

#include "plugins/common/product/turned_moves.cuh"
#include "plugins/common/product/turned_tile.cuh"
#include "plugins/common/product/written.cuh"

static __device__ inline float4 load_sums(uint32_t from)
{
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\n"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(from)
                 : "memory");
    return v;
}

/* A warpgroup's. */
template <class C>
struct turned_store {
    typedef typename C::Element T;
    typedef float sums[C::Eights][4];
    const turned_job &job;
    const turned_memory<C> &memory;
    const int group, thread;
    const uint32_t rank;
    float bias[2];   /* of this thread's two channels */
    int32_t channel; /* the first of them */

    __device__ inline turned_store(const turned_job &job, const turned_memory<C> &memory,
                                   int group, uint32_t rank)
        : job(job), memory(memory), group(group), thread(threadIdx.x % 128), rank(rank)
    {
    }

    /* ---- sums of two blocks ---- */

    /* Of those that block `of` finishes, the n-th eight's. */
    __device__ inline void pick(float (&v)[4], const sums &sum, uint32_t of, int n) const
    {
        enum { PART = turned_part(C::Eights, 2) };
#pragma unroll
        for (int e = 0; e < 4; e++)
            v[e] = of > 0 && PART + n < C::Eights ? sum[(PART + n) % C::Eights][e]
                                                  : sum[n][e];
    }

    __device__ inline void send(const sums &sum) const
    {
        const uint32_t of = rank ^ 1;
        const uint32_t to = address_of_rank(memory.panel(group) + thread * 16, of);
        const uint32_t barrier = address_of_rank(memory.joined(group), of);
#pragma unroll
        for (int n = 0; n < turned_part(C::Eights, 2); n++) {
            float v[4];
            pick(v, sum, of, n);
            send_four(to + n * TURNED_SUMS, barrier, v);
        }
    }

    /* This block's sums become the first ones. */
    __device__ inline void join(sums &sum) const
    {
        const uint32_t from = memory.panel(group) + thread * 16;
        barrier_wait(memory.joined(group), 0);
#pragma unroll
        for (int n = 0; n < turned_part(C::Eights, 2); n++) {
            const float4 x = load_sums(from + n * TURNED_SUMS);
            float v[4];
            pick(v, sum, rank, n);
            sum[n][0] = v[0] + x.x;
            sum[n][1] = v[1] + x.y;
            sum[n][2] = v[2] + x.z;
            sum[n][3] = v[3] + x.w;
        }
    }

    /* ---- results ---- */

    __device__ inline void fetch(const turned_place &p)
    {
        channel = p.channel + group * 64 + thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
        for (int i = 0; i < 2; i++)
            bias[i] = job.bias && !job.scale && channel + i * 8 < job.real
                          ? __ldg(job.bias + channel + i * 8)
                          : 0.0f;
    }

    /* Lanes of eight have the pixels of a matrix of 8 x 8: channels 0 to 7 of this warp's
     * sixteen, 8 to 15, the same of the next pixels. */
    __device__ inline uint32_t first_place(void) const
    {
        const uint32_t lane = thread % 32, chunk = thread / 32 * 2 + lane / 8 % 2;
        return memory.panel(group) + (lane / 16 * 8 + lane % 8) * PRODUCT_ROW +
               (chunk ^ lane % 8) * 16;
    }

    template <bool Addend, bool Both>
    __device__ inline uint32_t result_of(float v, float w, float add, uint32_t addend,
                                         product_bounds bounds) const
    {
        v += add;
        w += add;
        if (Addend) {
            const float2 x = unpack_two(T(), addend);
            v = fmaf(job.beta, x.x, v);
            w = fmaf(job.beta, x.y, w);
        }
        return pack_two(T(), bounds.of<Both>(v), bounds.of<Both>(w));
    }

    /* Written out, for what most layers have: bounds behind a bias and an addend. */
    template <int Part, bool Addend, bool Both>
    __device__ inline void write(const sums &sum) const
    {
        const product_bounds bounds(job.activation);
        const uint32_t to = first_place();
#pragma unroll
        for (int n = 0; n < Part; n += 2) {
            uint32_t x[4] = {}, y[4];
            if (Addend && n + 1 < Part)
                load_turned(x, to + n * TURNED_EIGHT);
            else if (Addend)
                load_turned(*(uint32_t(*)[2])x, to + n * TURNED_EIGHT);
#pragma unroll
            for (int e = 0; e < (n + 1 < Part ? 4 : 2); e++) {
                const float(&s)[4] = sum[n + e / 2];
                y[e] = result_of<Addend, Both>(s[e % 2 * 2], s[e % 2 * 2 + 1],
                                               bias[e % 2], x[e], bounds);
            }
            if (n + 1 < Part)
                store_turned(to + n * TURNED_EIGHT, y);
            else
                store_turned(to + n * TURNED_EIGHT, *(const uint32_t(*)[2])y);
        }
    }

    /* The same with all there is, in a loop. */
    template <int Part>
    __device__ inline void write_any(const sums &sum) const
    {
        uint32_t to = first_place();
#pragma unroll 1
        for (int n = 0; n < Part; n++, to += TURNED_EIGHT) {
            float v[4];
            uint32_t x[2] = {}, y[2];
#pragma unroll
            for (int k = 0; k < Part; k++)
                if (n == k)
#pragma unroll
                    for (int e = 0; e < 4; e++)
                        v[e] = product_begin(1, sum[k][e], bias[e / 2]);
            if (job.addend)
                load_turned(x, to);
            product_finish<T>(
                job, v, x, [&](int e) { return channel + e / 2 * 8; }, y);
            store_turned(to, y);
        }
    }

    template <int Part>
    __device__ inline void write_of(const sums &sum) const
    {
        const int32_t kind = job.activation.kind;
        const bool low = kind < 0 || kind == STRATA_RELU;
        if (job.scale || job.real < job.n || !product_bounds::are(job.activation))
            write_any<Part>(sum);
        else if (job.addend)
            write<Part, true, true>(sum);
        else if (low)
            write<Part, false, false>(sum);
        else
            write<Part, false, true>(sum);
    }

    /* The addend of `count` eights of pixels to where the results will lie. */
    __device__ inline void load_addend(int32_t row, int32_t pixel, int32_t count) const
    {
        const int32_t boxes = count > 0 ? (count + job.box - 1) / job.box : 0;
        barrier_expect(memory.addend(group), boxes * job.box * TURNED_EIGHT);
        for (int32_t b = 0; b < boxes; b++)
            copy_matrix(memory.panel(group) + b * job.box * TURNED_EIGHT, &job.c,
                        memory.addend(group), row, pixel + b * job.box * 8, 0);
    }

    __device__ inline void send_results(int32_t row, int32_t pixel, int32_t count) const
    {
        for (int32_t n = 0; n < count && row < job.n; n += job.box)
            if (pixel + n * 8 < job.m)
                store_matrix(&job.d, memory.panel(group) + n * TURNED_EIGHT, row,
                             pixel + n * 8, 0);
        copy_group_commit();
    }

    /* n: tiles before. */
    template <int Split>
    __device__ inline void finish(sums &sum, const turned_place &p, uint32_t n)
    {
        enum { PART = turned_part(C::Eights, Split) };
        const int32_t begin = Split > 1 ? (int32_t)rank * PART : 0;
        const int32_t count = min((int32_t)PART, C::Eights - begin);
        const int32_t row = p.channel + group * 64;
        const int32_t pixel = p.pixel + begin * 8;
        if constexpr (Split > 1) {
            cluster_wait();
            send(sum);
            join(sum);
        }
        if (thread == 0)
            copy_group_wait_read();
        named_sync(PRODUCT_STORE + group, 128); /* sums are read, results are sent */
        if (Split > 1 && job.addend && thread == 0)
            load_addend(row, pixel, count);
        if (job.addend)
            barrier_wait(memory.addend(group), n % 2);
        write_of<PART>(sum);
        publish_shared();
        named_sync(PRODUCT_STORE + group, 128);
        if (thread == 0)
            send_results(row, pixel, count);
    }

    __device__ inline void finish_of(sums &sum, const turned_place &p, uint32_t n)
    {
        if constexpr (C::Splits)
            if (job.split > 1)
                return finish<2>(sum, p, n);
        finish<1>(sum, p, n);
    }

    /* Before the sums are made. */
    __device__ inline void begin(const turned_place &p)
    {
        fetch(p);
        if (!job.addend || (C::Splits && job.split > 1) || thread != 0)
            return;
        copy_group_wait_read();
        load_addend(p.channel + group * 64, p.pixel, C::Eights);
    }

    /* Shared memory ends with the block. */
    __device__ inline void end(void) const
    {
        if (thread == 0)
            copy_group_wait_read();
    }
};

#endif /* PLUGINS_COMMON_PRODUCT_TURNED_STORE_CUH */
