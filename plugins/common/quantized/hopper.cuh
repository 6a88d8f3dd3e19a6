/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bytes on Hopper's tensor cores: common/product's kernel, sums in 32 bits,
 * and what the definition makes of a sum. Every operation rounds as on the host.
 *
 * A thread has two neighbours of each eight columns. Filters are packed in an order that
 * makes them four neighbours of each sixteen, a word of bytes.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_HOPPER_CUH
#define PLUGINS_COMMON_QUANTIZED_HOPPER_CUH

#include "plugins/common/product/hopper.cuh"

#define QUANTIZED_LANES 16    /* columns that change places among themselves */
#define QUANTIZED_COLUMNS 256 /* of a tile at most: what columns have is padded to them  \
                               */

/* The filter whose sums are those of a column of B. */
static __host__ __device__ inline int32_t quantized_filter(int32_t column)
{
    return column / 16 * 16 + column % 8 / 2 * 4 + column / 8 % 2 * 2 + column % 2;
}

/* scale and bias are set, for whole tiles of columns. */
struct quantized_product_job : product_job {
    const int32_t *offset;  /* of each column: -zero_in*(sum of its weights); NULL: 0 */
    const float *scale_out; /* of bytes */
    int32_t zero_out;
    int32_t is_unsigned, to_unsigned;
};

/* ---- what becomes of a sum ------------------------------------------------------ */

/* sum + offset as a float, where the compiler leaves it; see product_begin(). */
static __device__ inline float quantized_begin(int32_t sum, int32_t offset)
{
    float v;
    asm volatile("{\n.reg .s32 whole;\n"
                 "add.s32 whole, %1, %2;\n"
                 "cvt.rn.f32.s32 %0, whole;\n}\n"
                 : "=f"(v)
                 : "r"(sum), "r"(offset));
    return v;
}

/* Division by a scale to bytes. Within 2^-60 to 2^60 a product with the inverse is
 * mended twice by what is left over, which rounds as a division does (Markstein, "IA-64
 * and Elementary Functions", 2000, theorem 8.4). */
struct quantized_rounding {
    float scale, inverse, limit; /* limit: of y, beyond which bytes saturate */
    int32_t zero;
    bool regular;

    __device__ inline quantized_rounding(const quantized_product_job &job)
    {
        scale = job.scale_out ? __ldg(job.scale_out) : 1;
        zero = job.zero_out;
        regular = scale > 0x1p-60f && scale < 0x1p60f;
        inverse = __frcp_rn(scale);
        limit = scale * 1024;
    }
    __device__ inline float divide(float y) const
    {
        if (!regular)
            return smaller(larger(__fdiv_rn(y, scale), -1024), 1024);
        y = smaller(larger(y, -limit), limit);
        float q = __fmul_rn(y, inverse);
        q = fmaf(fmaf(-q, scale, y), inverse, q);
        return fmaf(fmaf(-q, scale, y), inverse, q);
    }
    /* Ties to even; a NaN is 0. Not yet saturated. */
    __device__ inline int32_t round(float y) const
    {
        const float q = divide(y), whole = __fadd_rn(q, 0x1.8p23f);
        const int32_t integer = __float_as_int(whole) - __float_as_int(0x1.8p23f) + zero;
        return isnan(q) ? 0 : integer;
    }
};

/* Four integers, saturated, as a word of bytes, the first lowest. */
static __device__ inline uint32_t saturate_four(const int32_t (&x)[4], bool to_unsigned)
{
    uint32_t high, word;
    if (to_unsigned) {
        asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(x[3]), "r"(x[2]));
        asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;"
            : "=r"(word)
            : "r"(x[1]), "r"(x[0]), "r"(high));
    } else {
        asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(x[3]), "r"(x[2]));
        asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;"
            : "=r"(word)
            : "r"(x[1]), "r"(x[0]), "r"(high));
    }
    return word;
}

/* Sums of columns column_of(e), as floats, become activated values. */
template <int N, class Column>
static __device__ inline void quantized_finish(const quantized_product_job &job,
                                               float (&v)[N], const Column &column_of)
{
#pragma unroll
    for (int e = 0; e < N; e += 4) { /* four neighbours */
        const float4 f = __ldg((const float4 *)(job.scale + column_of(e)));
        const float4 b = __ldg((const float4 *)(job.bias + column_of(e)));
        v[e] = __fadd_rn(__fmul_rn(v[e], f.x), b.x);
        v[e + 1] = __fadd_rn(__fmul_rn(v[e + 1], f.y), b.y);
        v[e + 2] = __fadd_rn(__fmul_rn(v[e + 2], f.z), b.z);
        v[e + 3] = __fadd_rn(__fmul_rn(v[e + 3], f.w), b.w);
    }
    activate_all(v, job.activation);
}

/* ---- storing -------------------------------------------------------------------- */

/* Words of four neighbours from column `column` on. */
static __device__ inline void quantized_words(const quantized_product_job &job,
                                              const quantized_rounding &rounding,
                                              const float *v, int32_t column,
                                              uint32_t (&words)[1])
{
    int32_t x[4];
#pragma unroll
    for (int e = 0; e < 4; e++)
        x[e] = column + e < job.real ? rounding.round(v[e]) : 0;
    words[0] = saturate_four(x, job.to_unsigned);
}

static __device__ inline void quantized_words(const quantized_product_job &job,
                                              const quantized_rounding &, const float *v,
                                              int32_t column, uint32_t (&words)[2])
{
#pragma unroll
    for (int w = 0; w < 2; w++)
        words[w] = pack_two(__half(), column + w * 2 < job.real ? v[w * 2] : 0,
                            column + w * 2 + 1 < job.real ? v[w * 2 + 1] : 0);
}

static __device__ inline void store_words(uint32_t to, const uint32_t (&words)[1])
{
    asm volatile("st.shared.b32 [%0], %1;\n" ::"r"(to), "r"(words[0]) : "memory");
}

static __device__ inline void store_words(uint32_t to, const uint32_t (&words)[2])
{
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};\n" ::"r"(to), "r"(words[0]),
                 "r"(words[1])
                 : "memory");
}

/* A warpgroup's, as product_store. */
template <class C>
struct quantized_panels {
    enum {
        CHUNKS = C::Columns / PRODUCT_CHUNK,
        WORDS = C::Size, /* of four neighbours */
        Joined = QUANTIZED_LANES
    };
    const quantized_product_job &job;
    const product_memory<C> &memory;
    const int group;
    const int thread;        /* of the warpgroup */
    uint32_t first, swizzle; /* this lane's row of the first panel; of its pieces */

    __device__ inline quantized_panels(const quantized_product_job &job,
                                       const product_memory<C> &memory, int group)
        : job(job), memory(memory), group(group), thread(threadIdx.x % 128)
    {
        const int row = thread / 32 * 16 + thread % 32 / 4;
        first = memory.panel(group, 0) + row * C::PanelRow;
        swizzle = C::PanelRow == 128  ? row % 8
                  : C::PanelRow == 64 ? row / 2 % 4
                                      : row / 4 % 2;
    }

    __device__ inline void fetch(int32_t) const
    {
    }

    /* Values of chunk i: two rows by two sixteens of columns by four neighbours, from
     * column `column` and the row of `first` on. */
    __device__ inline void put_chunk(const quantized_rounding &rounding,
                                     const float (&v)[16], int i, int32_t column) const
    {
        enum { EACH = C::Panel / PRODUCT_CHUNK };
        const uint32_t panel = first + i / EACH * C::PanelBytes;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const uint32_t byte =
                (i % EACH * PRODUCT_CHUNK + h * QUANTIZED_LANES + thread % 4 * 4) *
                C::Size;
            const uint32_t to = panel + (byte / 16 ^ swizzle) * 16 + byte % 16;
#pragma unroll
            for (int r = 0; r < 2; r++) {
                uint32_t words[WORDS];
                quantized_words(job, rounding, v + (r * 2 + h) * 4,
                                column + h * QUANTIZED_LANES, words);
                store_words(to + r * 8 * C::PanelRow, words);
            }
        }
    }

    /* Chunk i of the sums, which a thread's registers hold by constant indices only. */
    __device__ inline void begin_chunk(const int32_t (&sum)[C::Parts][C::Columns / 8][4],
                                       int i, int32_t column, float (&v)[16]) const
    {
        int32_t offset[2][4] = {};
        if (job.offset)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int4 four =
                    __ldg((const int4 *)(job.offset + column + h * QUANTIZED_LANES));
                offset[h][0] = four.x;
                offset[h][1] = four.y;
                offset[h][2] = four.z;
                offset[h][3] = four.w;
            }
#pragma unroll
        for (int k = 0; k < C::Parts * CHUNKS; k++)
            if (i == k)
#pragma unroll
                for (int e = 0; e < 16; e++)
                    v[e] =
                        quantized_begin(sum[k / CHUNKS][k % CHUNKS * 4 + e / 4 % 2 * 2 +
                                                        e % 4 / 2][e / 8 * 2 + e % 2],
                                        offset[e / 4 % 2][e % 4]);
    }

    template <class Send>
    __device__ inline void run(const int32_t (&sum)[C::Parts][C::Columns / 8][4],
                               int32_t column, uint32_t, const Send &send) const
    {
        const quantized_rounding rounding(job);
        named_sync(PRODUCT_STORE + group, 128); /* the last tile has left the panels */
#pragma unroll 1
        for (int i = 0; i < C::Parts * CHUNKS; i++) {
            const int32_t c = column + i % CHUNKS * PRODUCT_CHUNK + thread % 4 * 4;
            float v[16];
            begin_chunk(sum, i, c, v);
            quantized_finish(job, v,
                             [&](int e) { return c + e / 4 % 2 * QUANTIZED_LANES; });
            put_chunk(rounding, v, i, c);
            if (i % CHUNKS == CHUNKS - 1) {
                publish_shared();
                named_sync(PRODUCT_STORE + group, 128);
                if (thread == 0) {
                    send(i / CHUNKS);
                    copy_group_commit();
                }
            }
        }
        if (thread == 0) {
            copy_group_wait_read();
            barrier_arrive(memory.stored(group));
        }
    }

    /* Sixteen neighbours, whose sums by the ranks are `step` apart, to memory. */
    static __device__ inline void join(const quantized_product_job &job,
                                       const int32_t *sums, int32_t step, int32_t,
                                       int32_t row, int32_t column)
    {
        const quantized_rounding rounding(job);
        int32_t total[QUANTIZED_LANES] = {};
        float v[QUANTIZED_LANES];
        uint32_t words[4][WORDS];
        for (int32_t r = 0; r < job.split; r++)
#pragma unroll
            for (int e = 0; e < QUANTIZED_LANES; e += 4) {
                const int4 four = *(const int4 *)(sums + r * step + e);
                total[e] += four.x;
                total[e + 1] += four.y;
                total[e + 2] += four.z;
                total[e + 3] += four.w;
            }
#pragma unroll
        for (int e = 0; e < QUANTIZED_LANES; e++) {
            const int32_t at = quantized_filter(e);
            v[at] = quantized_begin(total[e],
                                    job.offset ? __ldg(job.offset + column + at) : 0);
        }
        quantized_finish(job, v, [&](int e) { return column + e; });
#pragma unroll
        for (int e = 0; e < 4; e++)
            quantized_words(job, rounding, v + e * 4, column + e * 4, words[e]);
        uint4 *to = (uint4 *)((typename C::Result *)job.to + row * job.to_row + column);
        const uint32_t *from = words[0];
#pragma unroll
        for (int w = 0; w < WORDS; w++)
            if (column + w * (QUANTIZED_LANES / WORDS) < job.n)
                to[w] = make_uint4(from[w * 4], from[w * 4 + 1], from[w * 4 + 2],
                                   from[w * 4 + 3]);
    }
};

/* The kind of a tile: results are bytes or __half, pieces of K 128 bytes or 64. */
template <typename Result_, int Row_>
struct quantized_bytes {
    typedef int8_t Element;
    typedef Result_ Result;
    typedef int32_t Sum;
    typedef quantized_product_job Job;
    static const int Row = Row_;
    static const bool Bias = false;
    template <class C>
    using store = quantized_panels<C>;

    template <class Consumer, class Sums>
    static __device__ inline void multiply(Consumer &consumer, Sums &sum, int32_t steps)
    {
        if (consumer.job.is_unsigned)
            consumer.template multiply<uint8_t>(sum, steps);
        else
            consumer.template multiply<int8_t>(sum, steps);
    }
};

#endif /* PLUGINS_COMMON_QUANTIZED_HOPPER_CUH */
