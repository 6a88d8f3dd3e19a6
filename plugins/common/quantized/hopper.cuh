/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bytes on Hopper's tensor cores: common/product's kernel, sums in 32 bits,
 * and what the definition makes of a sum. Every operation rounds as on the host.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_HOPPER_CUH
#define PLUGINS_COMMON_QUANTIZED_HOPPER_CUH

#include "plugins/common/product/fours.cuh"
#include "plugins/common/product/hopper.cuh"
#include "plugins/common/quantized/single.cuh"

static __device__ inline uint32_t load_word(uint32_t from)
{
    uint32_t word;
    asm volatile("ld.shared.b32 %0, [%1];\n" : "=r"(word) : "r"(from) : "memory");
    return word;
}

/* Element i of an array in registers. */
template <typename T, int N>
static __device__ inline T register_at(const T (&of)[N], int i)
{
    if constexpr (N == 1) {
        return of[0];
    } else {
        T half[N / 2];
#pragma unroll
        for (int k = 0; k < N / 2; k++)
            half[k] = i & N / 2 ? of[k + N / 2] : of[k];
        return register_at(half, i & (N / 2 - 1));
    }
}

/* Sixteen of a thread's sums as they are, four neighbours of word w or the e-th. */
template <int Chunks, int P, int N>
struct quantized_chunk {
    const int32_t (&sum)[P][N][4];
    int chunk; /* registers are found by constant indices only */

    __device__ inline int4 four(int w) const
    {
        int32_t x[4];
#pragma unroll
        for (int k = 0; k < P * Chunks; k++)
            if (chunk == k)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    x[e] = product_sum<Chunks>(sum, k, w * 4 + e);
        return make_int4(x[0], x[1], x[2], x[3]);
    }
    __device__ inline int32_t one(int at) const
    {
        int32_t found = 0;
#pragma unroll
        for (int k = 0; k < P * Chunks; k++) {
            int32_t x[16];
#pragma unroll
            for (int e = 0; e < 16; e++)
                x[e] = product_sum<Chunks>(sum, k, e);
            found = chunk == k ? register_at(x, at) : found;
        }
        return found;
    }
};

/* The same of sums in the order of columns of B. */
struct quantized_total {
    const int32_t (&sum)[PRODUCT_LANES];

    __device__ inline int4 four(int w) const
    {
        return make_int4(one(w * 4), one(w * 4 + 1), one(w * 4 + 2), one(w * 4 + 3));
    }
    __device__ inline int32_t one(int at) const
    {
        int32_t x[PRODUCT_LANES];
#pragma unroll
        for (int e = 0; e < PRODUCT_LANES; e++)
            x[product_column(e)] = sum[e];
        return register_at(x, at);
    }
};

/* A warpgroup's, as product_store. */
template <class C>
struct quantized_panels {
    static const bool Singly = C::Kind::Singly;
    enum {
        CHUNKS = C::Columns / PRODUCT_CHUNK,
        WORDS = C::Size, /* of four neighbours */
        Joined = PRODUCT_LANES
    };
    typedef typename C::Job Job;
    const Job &job;
    const product_memory<C> &memory;
    const int group;
    const int thread; /* of the warpgroup */
    uint32_t halves;  /* QUICK_HALVES */
    float ahead;      /* loaded for others of its line */

    __device__ inline quantized_panels(const Job &job, const product_memory<C> &memory,
                                       int group)
        : job(job), memory(memory), group(group), thread(threadIdx.x % 128)
    {
        /* Loaded, as it were: a constant is no operand beside another. */
        halves = __shfl_sync(0xffffffff, QUICK_HALVES, 0);
    }

    /* What the sums of a tile's columns are finished with comes near while these are
     * made: a thread loads one of each line, which is then there for all. */
    __device__ inline void fetch(int32_t column)
    {
        enum { LINE = 32 };
        const float *from = thread % 2 == 0 ? job.scale : job.bias;
        if (C::Size == 1 && thread % 4 < 2) /* of floats nothing is quick */
            from = thread % 2 == 0 ? job.quick_scale : job.quick_bias;
        const int line = thread / 4;
        ahead = 0;
        if (line < C::Columns / LINE)
            ahead = __ldg(from + column + line * LINE);
        else if (thread == 127 && C::Size == 1)
            ahead = load_here(job.scale_out);
    }

    /* Behind the products: until then the compiler may not drop the load. */
    __device__ inline void fetched(void) const
    {
        asm volatile("" ::"f"(ahead));
    }

    template <class Way>
    __device__ inline void load_offsets(int32_t column, int32_t (&offset)[2][4]) const
    {
        if constexpr (Way::Offset)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int4 four =
                    __ldg((const int4 *)(job.offset + column + h * PRODUCT_LANES));
                offset[h][0] = four.x;
                offset[h][1] = four.y;
                offset[h][2] = four.z;
                offset[h][3] = four.w;
            }
    }

    /* Chunk i of the sums, which a thread's registers hold by constant indices only. */
    template <class Way>
    __device__ inline void begin_chunk(const int32_t (&sum)[C::Parts][C::Columns / 8][4],
                                       int i, int32_t column, float (&v)[16]) const
    {
        int32_t offset[2][4] = {};
        load_offsets<Way>(column, offset);
#pragma unroll
        for (int k = 0; k < C::Parts * CHUNKS; k++)
            if (i == k)
#pragma unroll
                for (int e = 0; e < 16; e++)
                    v[e] = quantized_begin<Way>(product_sum<CHUNKS>(sum, k, e),
                                                offset[e / 4 % 2][e % 4]);
    }

    template <class Way, class Send>
    __device__ inline void store_chunks(const int32_t (&sum)[C::Parts][C::Columns / 8][4],
                                        int32_t column, const product_fours<C> &fours,
                                        const Send &send) const
    {
#pragma unroll 1
        for (int i = 0; i < C::Parts * CHUNKS; i++) {
            const int32_t c = column + i % CHUNKS * PRODUCT_CHUNK;
            const auto column_of = [&](int e) { return c + e / 4 % 2 * PRODUCT_LANES; };
            /* It lies where the results will. */
            const auto addend_of = [&](int w) {
                return Way::Joined ? load_word(fours.place(i, w)) : 0;
            };
            float v[16];
            uint32_t words[4][WORDS];
            begin_chunk<Way>(sum, i, c, v);
            const auto steps_of = [&](int w) {
                return quantized_load_steps(job, column_of(w * 4));
            };
            const quantized_chunk<CHUNKS, C::Parts, C::Columns / 8> sums = {sum, i};
            quantized_words<Way>(job, v, sums, column_of, addend_of, steps_of, halves,
                                 words);
#pragma unroll
            for (int w = 0; w < 4; w++)
                store_words(fours.place(i, w), words[w]);
            if (i % CHUNKS == CHUNKS - 1)
                product_send(group, i / CHUNKS, send);
        }
    }

    template <class Send>
    __device__ inline void run(const int32_t (&sum)[C::Parts][C::Columns / 8][4],
                               int32_t column, uint32_t n, const Send &send) const
    {
        const int buffer = n % C::Buffers;
        if (C::Buffers > 1 && n > 0)
            product_sent(job, memory, group, buffer ^ 1);
        if (job.addend)
            barrier_wait(memory.addend(group, buffer), n / C::Buffers % 2);
        named_sync(PRODUCT_STORE + group, 128); /* the last tile has left the panels */
        quantized_way_of<C::Size == 1>(job, [&](auto way) {
            store_chunks<decltype(way)>(sum, column + thread % 4 * 4,
                                        product_fours<C>(memory, group, buffer), send);
        });
        if (C::Buffers == 1)
            product_sent(job, memory, group);
    }

    /* Sixteen sums as floats and the addend's words, to memory. */
    template <class Way>
    static __device__ inline void store_joined(const Job &job,
                                               const int32_t (&total)[PRODUCT_LANES],
                                               int32_t row, int32_t column)
    {
        float v[PRODUCT_LANES];
        uint32_t words[4][WORDS], addend[4] = {};
#pragma unroll
        for (int e = 0; e < PRODUCT_LANES; e++) {
            const int32_t at = product_column(e);
            v[at] = quantized_begin<Way>(
                total[e], Way::Offset ? __ldg(job.offset + column + at) : 0);
        }
        if (Way::Joined) {
            const uint4 x = *(const uint4 *)((const uint8_t *)job.addend +
                                             row * job.addend_row + column);
            addend[0] = x.x;
            addend[1] = x.y;
            addend[2] = x.z;
            addend[3] = x.w;
        }
        const auto addend_of = [&](int w) {
            if constexpr (Singly)
                return register_at(addend, w);
            else
                return addend[w];
        };
        const quantized_total sums = {total};
        quantized_words<Way>(
            job, v, sums, [&](int e) { return column + e; }, addend_of,
            [&](int w) { return quantized_load_steps(job, column + w * 4); },
            QUICK_HALVES, words);
        product_put<typename C::Result>(job, words, row, column);
    }

    typedef product_nothing early;

    /* Sixteen neighbours, whose sums by the ranks are `step` apart. */
    static __device__ inline void join(const Job &job, const early &, const int32_t *sums,
                                       int32_t step, int32_t, int32_t row, int32_t column)
    {
        int32_t total[PRODUCT_LANES] = {};
        product_total<int4>(total, sums, step, job.split);
        quantized_way_of<C::Size == 1>(
            job, [&](auto way) { store_joined<decltype(way)>(job, total, row, column); });
    }
};

/* The kind of a tile: results are bytes or __half, pieces of K 128 bytes or 64. Few: for
 * launches of few blocks, which wait for cold code: values in doubt one by one. */
template <typename Result_, int Row_, bool Few = false>
struct quantized_bytes {
    typedef int8_t Element;
    typedef Result_ Result;
    typedef int32_t Sum;
    typedef std::conditional_t<Few, quantized_few_job, quantized_product_job> Job;
    static const int Row = Row_;
    static const bool Bias = false;
    static const int Buffers = 2;
    static const bool Singly = Few;
    template <class C>
    using store = quantized_panels<C>;

    template <class Consumer, class Sums>
    static __device__ inline void multiply(Consumer &consumer, Sums &sum, int32_t steps)
    {
        if (consumer.job.is_unsigned)
            consumer.template multiply<uint8_t>(sum, steps);
        else
            consumer.template multiply<int8_t>(sum, steps);
        consumer.store.fetched();
    }
};

#endif /* PLUGINS_COMMON_QUANTIZED_HOPPER_CUH */
