/* SPDX-License-Identifier: Apache-2.0
 *
 * From sums to results: a warpgroup finishes them in registers and lays them as panels in
 * shared memory, from where the copy engine stores them; an addend has come to the same
 * places the same way. All of a tile goes through one loop: written out, the code would
 * be longer than what a multiprocessor keeps of it, and would be fetched again and again.
 */
#ifndef PLUGINS_COMMON_PRODUCT_STORE_CUH
#define PLUGINS_COMMON_PRODUCT_STORE_CUH

#include "kernels/activate.cuh"
#include "plugins/common/product/hopper_tile.cuh"
#include "plugins/common/product/pair.cuh"

/* Products of columns column_of(e), with the bias in them but where there is a scale. */
template <int N, class Column>
static __device__ inline void product_scale(const product_job &job, float (&v)[N],
                                            const Column &column_of)
{
    if (job.scale)
#pragma unroll
        for (int e = 0; e < N; e++)
            if (column_of(e) < job.real)
                v[e] = fmaf(__ldg(job.scale + column_of(e)), v[e],
                            job.bias ? __ldg(job.bias + column_of(e)) : 0.0f);
}

/* Behind the addend. Activations need not keep a pad's 0. */
template <int N, class Column>
static __device__ inline void product_activate(const product_job &job, float (&v)[N],
                                               const Column &column_of)
{
    activate_all(v, job.activation);
    if (job.real < job.n)
#pragma unroll
        for (int e = 0; e < N; e++)
            v[e] = column_of(e) < job.real ? v[e] : 0.0f;
}

/* Products become results, in pairs of neighbours. x: of the addend. */
template <typename T, int N, class Column>
static __device__ inline void
product_finish(const product_job &job, float (&v)[N], const uint32_t (&x)[N / 2],
               const Column &column_of, uint32_t (&y)[N / 2])
{
    product_scale(job, v, column_of);
    if (job.addend)
#pragma unroll
        for (int e = 0; e < N; e += 2) {
            const float2 two = unpack_two(T(), x[e / 2]);
            v[e] = fmaf(job.beta, two.x, v[e]);
            v[e + 1] = fmaf(job.beta, two.y, v[e + 1]);
        }
    product_activate(job, v, column_of);
#pragma unroll
    for (int e = 0; e < N; e += 2)
        y[e / 2] = pack_two(T(), v[e], v[e + 1]);
}

/* alpha * sum + bias, where the compiler leaves it: it would else compute this for every
 * case of a choice, to choose among results. */
static __device__ inline float product_begin(float alpha, float sum, float bias)
{
    float v;
    asm volatile("fma.rn.f32 %0, %1, %2, %3;\n"
                 : "=f"(v)
                 : "f"(alpha), "f"(sum), "f"(bias));
    return v;
}

/* The same of floats: x, the addend, and v, the results. */
template <int N, class Column>
static __device__ inline void product_finish(const product_job &job, float (&v)[N],
                                             const float (&x)[N], const Column &column_of)
{
    product_scale(job, v, column_of);
    if (job.addend)
#pragma unroll
        for (int e = 0; e < N; e++)
            v[e] = fmaf(job.beta, x[e], v[e]);
    product_activate(job, v, column_of);
}

static __device__ inline float2 load_floats(uint32_t from)
{
    float2 two;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];\n"
                 : "=f"(two.x), "=f"(two.y)
                 : "r"(from)
                 : "memory");
    return two;
}

static __device__ inline void add_four(float *v, const float *from)
{
    const float4 x = *(const float4 *)from;
    v[0] += x.x;
    v[1] += x.y;
    v[2] += x.z;
    v[3] += x.w;
}

static __device__ inline void add_eight(float (&v)[8], const float *from)
{
    add_four(v, from);
    add_four(v + 4, from + 4);
}

/* A warpgroup's panels of a part are written: one thread has send(part) store them. */
template <class Send>
static __device__ inline void product_send(int group, int part, const Send &send)
{
    publish_shared();
    named_sync(PRODUCT_STORE + group, 128);
    if (threadIdx.x % 128 == 0) {
        send(part);
        copy_group_commit();
    }
}

/* All parts are sent: once they are read, an addend may come to their place. Without one
 * nobody waits to be told. */
template <class Memory, class... Buffer>
static __device__ inline void product_sent(const product_job &job, const Memory &memory,
                                           int group, Buffer... buffer)
{
    if (threadIdx.x % 128 == 0) {
        copy_group_wait_read();
        if (job.addend)
            barrier_arrive(memory.stored(group, buffer...));
    }
}

/* A warpgroup's. */
template <class C, class Memory = product_memory<C>>
struct product_store {
    typedef typename C::Element T;
    static const bool Floats = sizeof(T) == 4; /* else halves */
    enum {
        CHUNKS = C::Columns / PRODUCT_CHUNK,
        OWN = (C::Columns + 127) / 128,
        Joined = 8 /* neighbours that a thread joins at a time */
    };

    const product_job &job;
    const Memory &memory;
    const int group;
    const int thread;         /* of the warpgroup */
    uint32_t first, swizzled; /* this lane's row of the first panel; its piece there */
    float bias[OWN];          /* of columns `thread`, `thread` + 128 ... of the tile */

    /* Lanes of eight have rows of a matrix of 8 x 8 each, two by two of them. Of floats,
     * lanes of four have a row, and two neighbours of each eight columns. */
    __device__ inline product_store(const product_job &job, const Memory &memory,
                                    int group)
        : job(job), memory(memory), group(group), thread(threadIdx.x % 128)
    {
        const int lane = thread % 32;
        if constexpr (Floats) {
            static_assert(C::Panel == PRODUCT_CHUNK, "a chunk is a panel");
            const int row = thread / 32 * 16 + lane / 4;
            first = memory.panel(group, 0) + row * PRODUCT_ROW + lane % 2 * 8;
            swizzled = lane % 4 / 2 ^ row % 8;
        } else {
            const int row = thread / 32 * 16 + lane % 16;
            first = memory.panel(group, 0) + row * (C::Panel * 2);
            swizzled = lane / 16 ^ (C::Panel == 64 ? row % 8 : row / 2 % 4);
        }
    }

    /* Before the product, so that it is there behind it. */
    __device__ inline void fetch(int32_t column)
    {
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            const int32_t c = thread + i * 128;
            bias[i] = job.bias && !job.scale && c < C::Columns && column + c < job.real
                          ? __ldg(job.bias + column + c)
                          : 0;
        }
    }

    /* As finish_chunk(). Sums e and e + 1 are neighbours, two rows by four eights. */
    __device__ inline void finish_floats(float (&v)[16], int i, int32_t column) const
    {
        const uint32_t panel = first + i * C::PanelBytes;
        float x[16] = {};
        if (job.addend)
#pragma unroll
            for (int e = 0; e < 16; e += 2) {
                const float2 two = load_floats(float_place(panel, e));
                x[e] = two.x;
                x[e + 1] = two.y;
            }
        column += i % CHUNKS * PRODUCT_CHUNK + thread % 4 * 2;
        product_finish(job, v, x, [&](int e) { return column + e / 4 * 8 + e % 2; });
#pragma unroll
        for (int e = 0; e < 16; e += 2)
            store_two(float_place(panel, e), v[e], v[e + 1]);
    }

    __device__ inline uint32_t float_place(uint32_t panel, int e) const
    {
        return panel + e % 4 / 2 * 8 * PRODUCT_ROW + (e / 4 * 2 ^ swizzled) * 16;
    }

    /* Chunk i of the tile, whose columns begin at `column`. */
    __device__ inline void finish_chunk(float (&v)[16], int i, int32_t column) const
    {
        enum { EACH = C::Panel / PRODUCT_CHUNK };
        const uint32_t panel = first + i / EACH * C::PanelBytes;
        const int piece = i % EACH * (PRODUCT_CHUNK / 8);
        const uint32_t to[2] = {panel + (piece ^ swizzled) * 16,
                                panel + (piece + 2 ^ swizzled) * 16};
        uint32_t x[8] = {}, y[8];
        if (job.addend)
#pragma unroll
            for (int h = 0; h < 2; h++)
                load_matrices(*(uint32_t(*)[4])(x + h * 4), to[h]);
        column += i % CHUNKS * PRODUCT_CHUNK + thread % 4 * 2;
        product_finish<T>(
            job, v, x, [&](int e) { return column + e / 4 * 8 + e % 2; }, y);
#pragma unroll
        for (int h = 0; h < 2; h++)
            store_matrices(to[h], *(const uint32_t(*)[4])(y + h * 4));
    }

    /* n: tiles before. send(part): stores its panels, by one thread. */
    template <class Send>
    __device__ inline void run(const float (&sum)[C::Parts][C::Columns / 8][4],
                               int32_t column, uint32_t n, const Send &send) const
    {
        const float alpha = job.scale ? 1 : job.alpha;
#pragma unroll
        for (int i = 0; i < OWN; i++)
            if (thread + i * 128 < C::Columns)
                memory.bias(group)[thread + i * 128] = bias[i];
        if (job.addend)
            barrier_wait(memory.addend(group), n % 2);
        named_sync(PRODUCT_STORE + group, 128);
#pragma unroll 1
        for (int i = 0; i < C::Parts * CHUNKS; i++) {
            const float2 *from =
                (const float2 *)(memory.bias(group) + i % CHUNKS * PRODUCT_CHUNK) +
                thread % 4;
            const float2 b[4] = {from[0], from[4], from[8], from[12]};
            float v[16];
#pragma unroll
            for (int k = 0; k < C::Parts * CHUNKS; k++)
                if (i == k)
#pragma unroll
                    for (int e = 0; e < 16; e++)
                        v[e] = product_begin(
                            alpha, sum[k / CHUNKS][k % CHUNKS * 4 + e / 4][e % 4],
                            e % 2 ? b[e / 4].y : b[e / 4].x);
            if constexpr (Floats)
                finish_floats(v, i, column);
            else
                finish_chunk(v, i, column);
            if (i % CHUNKS == CHUNKS - 1)
                product_send(group, i / CHUNKS, send);
        }
        product_sent(job, memory, group);
    }

    /* What eight neighbours need but sums, asked for before these are there. Rows of
     * floats may end with the first four. */
    struct early {
        uint4 words[sizeof(T) / 2];
        float bias[8];

        __device__ inline void load(const product_job &job, int32_t batch, int32_t row,
                                    int32_t column)
        {
            const int64_t at = batch * job.addend_batch + row * job.addend_row + column;
            const uint4 *from = (const uint4 *)((const T *)job.addend + at);
#pragma unroll
            for (int w = 0; w < (int)sizeof(T) / 2; w++)
                if (job.addend && (w == 0 || column + 8 <= job.n))
                    words[w] = from[w];
#pragma unroll
            for (int e = 0; e < 8; e++)
                bias[e] = job.bias && !job.scale && column + e < job.real
                              ? __ldg(job.bias + column + e)
                              : 0.0f;
        }
    };

    /* Neighbours, whose sums by the ranks are `step` floats apart, to memory. */
    static __device__ inline void join(const product_job &job, const early &with,
                                       const float *sums, int32_t step, int32_t batch,
                                       int32_t row, int32_t column)
    {
        float v[8] = {};
#pragma unroll 4
        for (int32_t r = 0; r < job.split; r++)
            add_eight(v, sums + r * step);
        if (!job.scale)
#pragma unroll
            for (int e = 0; e < 8; e++)
                v[e] = fmaf(job.alpha, v[e], with.bias[e]);
        const int64_t to = batch * job.to_batch + row * job.to_row + column;
        put(job, v, with, (T *)job.to + to, column);
    }

    /* Eight neighbours to memory. */
    template <typename U>
    static __device__ inline void put(const product_job &job, float (&v)[8],
                                      const early &with, U *to, int32_t column)
    {
        const uint4 &words = with.words[0];
        const uint32_t x[4] = {words.x, words.y, words.z, words.w};
        uint32_t y[4];
        if (job.plain) {
#pragma unroll
            for (int e = 0; e < 8; e += 2) {
                const float2 two = unpack_two(T(), x[e / 2]);
                y[e / 2] = pack_two(T(), fmaf(job.beta, two.x, v[e]),
                                    fmaf(job.beta, two.y, v[e + 1]));
            }
            *(uint4 *)to = make_uint4(y[0], y[1], y[2], y[3]);
            return;
        }
        product_finish<T>(
            job, v, x, [&](int e) { return column + e; }, y);
        *(uint4 *)to = make_uint4(y[0], y[1], y[2], y[3]);
    }

    static __device__ inline void put(const product_job &job, float (&v)[8],
                                      const early &with, float *to, int32_t column)
    {
        float x[8];
#pragma unroll
        for (int w = 0; w < 2; w++) {
            x[w * 4] = __uint_as_float(with.words[w].x);
            x[w * 4 + 1] = __uint_as_float(with.words[w].y);
            x[w * 4 + 2] = __uint_as_float(with.words[w].z);
            x[w * 4 + 3] = __uint_as_float(with.words[w].w);
        }
        product_finish(job, v, x, [&](int e) { return column + e; });
        *(float4 *)to = make_float4(v[0], v[1], v[2], v[3]);
        if (column + 8 <= job.n)
            *(float4 *)(to + 4) = make_float4(v[4], v[5], v[6], v[7]);
    }
};

/* FP16 or BF16, or floats as TF32, the kind of a tile. */
template <typename T>
struct product_floats {
    typedef T Element, Result;
    typedef float Sum;
    typedef product_job Job;
    static const int Row = PRODUCT_ROW;
    static const bool Bias = true;
    static const int Buffers = 1;
    template <class C>
    using store = product_store<C>;

    template <class Consumer, class Sums>
    static __device__ inline void multiply(Consumer &consumer, Sums &sum, int32_t steps)
    {
        consumer.template multiply<T>(sum, steps);
    }
};

#endif /* PLUGINS_COMMON_PRODUCT_STORE_CUH */
