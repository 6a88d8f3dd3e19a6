/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of a warpgroup as fours of neighbours. A thread has two neighbours of each eight
 * columns; columns of B that are packed in this order make them four neighbours of each
 * sixteen, which are a word of bytes.
 */
#ifndef PLUGINS_COMMON_PRODUCT_FOURS_CUH
#define PLUGINS_COMMON_PRODUCT_FOURS_CUH

#include "plugins/common/product/store.cuh"

#define PRODUCT_LANES 16 /* columns that change places among themselves */

/* The column of the weight whose sums are those of a column of B. */
static __host__ __device__ inline int32_t product_column(int32_t column)
{
    return column / 16 * 16 + column % 8 / 2 * 4 + column / 8 % 2 * 2 + column % 2;
}

static inline int64_t product_whole_lanes(int64_t columns)
{
    return (columns + PRODUCT_LANES - 1) / PRODUCT_LANES * PRODUCT_LANES;
}

/* Sum e of sixteen of chunk k: two rows by two sixteens of columns by four neighbours. */
template <int Chunks, typename Sum, int P, int N>
static __device__ inline Sum product_sum(const Sum (&sum)[P][N][4], int k, int e)
{
    return sum[k / Chunks][k % Chunks * 4 + e / 4 % 2 * 2 + e % 4 / 2][e / 8 * 2 + e % 2];
}

/* Where a thread's fours lie in its warpgroup's panels. */
template <class C>
struct product_fours {
    uint32_t first, swizzle; /* this lane's row of the first panel; of its pieces */
    uint32_t lane;           /* bytes of this lane's four among sixteen */

    __device__ inline product_fours(const product_memory<C> &memory, int group,
                                    int buffer = 0)
    {
        const int thread = threadIdx.x % 128, row = thread / 32 * 16 + thread % 32 / 4;
        first = memory.panel(group, 0, buffer) + row * C::PanelRow;
        swizzle = C::PanelRow == 128  ? row % 8
                  : C::PanelRow == 64 ? row / 2 % 4
                                      : row / 4 % 2;
        lane = thread % 4 * 4 * C::Size;
        if (C::Size == 1) /* never more than a piece's 16 bytes */
            first += lane;
        /* Kept: the compiler would make them anew for each chunk. */
        asm volatile("" : "+r"(first), "+r"(swizzle));
    }

    /* Of chunk i: two rows by two sixteens of columns. */
    __device__ inline uint32_t place(int i, int four) const
    {
        enum { EACH = C::Panel / PRODUCT_CHUNK };
        const uint32_t from =
            (i % EACH * PRODUCT_CHUNK + four % 2 * PRODUCT_LANES) * C::Size;
        const uint32_t row =
            first + i / EACH * C::PanelBytes + four / 2 * 8 * C::PanelRow;
        return C::Size == 1 ? row + (from / 16 ^ swizzle) * 16
                            : row + ((from + lane) / 16 ^ swizzle) * 16 + lane % 16;
    }
};

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

static __device__ inline void store_words(uint32_t to, const uint32_t (&words)[4])
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(to), "r"(words[0]),
                 "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
}

/* Sixteen neighbours, whose sums by the ranks are `step` apart. Four: of four sums. */
template <class Four, typename Sum>
static __device__ inline void product_total(Sum (&total)[PRODUCT_LANES], const Sum *sums,
                                            int32_t step, int32_t split)
{
    for (int32_t r = 0; r < split; r++)
#pragma unroll
        for (int e = 0; e < PRODUCT_LANES; e += 4) {
            const Four four = *(const Four *)(sums + r * step + e);
            total[e] += four.x;
            total[e + 1] += four.y;
            total[e + 2] += four.z;
            total[e + 3] += four.w;
        }
}

/* Their four words or more to memory, as far as there are columns. */
template <typename Result, int Words>
static __device__ inline void product_put(const product_job &job,
                                          const uint32_t (&words)[4][Words], int32_t row,
                                          int32_t column)
{
    uint4 *to = (uint4 *)((Result *)job.to + row * job.to_row + column);
    const uint32_t *from = words[0];
#pragma unroll
    for (int w = 0; w < Words; w++)
        if (column + w * (PRODUCT_LANES / Words) < job.n)
            to[w] = make_uint4(from[w * 4], from[w * 4 + 1], from[w * 4 + 2],
                               from[w * 4 + 3]);
}

#endif /* PLUGINS_COMMON_PRODUCT_FOURS_CUH */
