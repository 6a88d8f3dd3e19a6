/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of FP32 as they are, without tensor cores: hopper.cuh's kernel, whose threads
 * multiply what the copy engine brings. A thread has the sums that it would have of
 * wgmma, two rows of each 64 by two columns of each eight, so that all behind a sum is
 * the same. It reads four neighbours of K at a time: of a row eight lanes have each, in
 * the eight places that the swizzle gives them.
 */
#ifndef PLUGINS_COMMON_PRODUCT_PLAIN_CUH
#define PLUGINS_COMMON_PRODUCT_PLAIN_CUH

#include "plugins/common/product/launch.cuh"

static __device__ inline float4 load_four(uint32_t from)
{
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\n"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(from));
    return v;
}

static __device__ inline float four_at(const float4 &v, int i)
{
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

/* A lane's rows of A and of B in a stage. */
struct product_plain_rows {
    uint32_t a, b;        /* bytes to the first */
    uint32_t row, column; /* of eight */

    __device__ inline product_plain_rows(int first)
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
        row = lane / 4;
        column = lane % 4 * 2;
        a = (first + warp * 16 + row) * PRODUCT_ROW;
        b = column * PRODUCT_ROW;
    }
};

/* Four of K, `piece`, into sums. a, b: a stage's. */
template <int P, int N>
static __device__ inline void product_plain_piece(float (&sum)[P][N][4],
                                                  const product_plain_rows &rows,
                                                  uint32_t a, uint32_t b, uint32_t piece)
{
    const uint32_t from = a + rows.a + (piece ^ rows.row) * 16;
    const uint32_t columns[2] = {b + rows.b + (piece ^ rows.column) * 16,
                                 b + rows.b + PRODUCT_ROW +
                                     (piece ^ (rows.column + 1)) * 16};
    float4 x[P][2];
#pragma unroll
    for (int r = 0; r < P * 2; r++)
        x[r / 2][r % 2] = load_four(from + (r / 2 * 64 + r % 2 * 8) * PRODUCT_ROW);
#pragma unroll
    for (int c = 0; c < N * 2; c++) {
        const float4 y = load_four(columns[c % 2] + c / 2 * 8 * PRODUCT_ROW);
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
            for (int r = 0; r < P * 2; r++) {
                float &s = sum[r / 2][c / 2][r % 2 * 2 + c % 2];
                s = fmaf(four_at(x[r / 2][r % 2], k), four_at(y, k), s);
            }
    }
}

/* The kind of a tile. */
struct product_plain {
    typedef float Element, Result, Sum;
    typedef product_job Job;
    static const int Row = PRODUCT_ROW;
    static const bool Bias = true;
    static const int Buffers = 1;
    template <class C>
    using store = product_store<C>;

    template <class Consumer, int P, int N>
    static __device__ inline void multiply(Consumer &consumer, float (&sum)[P][N][4],
                                           int32_t steps)
    {
        const product_plain_rows rows(consumer.group * P * 64);
#pragma unroll
        for (int i = 0; i < P * N * 4; i++)
            sum[i / 4 / N][i / 4 % N][i % 4] = 0;
        for (int32_t step = 0; step < steps; step++) {
            const int32_t at = consumer.stage.at;
            barrier_wait(consumer.memory.full(at), consumer.stage.parity);
#pragma unroll 2
            for (uint32_t piece = 0; piece < PRODUCT_ROW / 16; piece++)
                product_plain_piece(sum, rows, consumer.memory.a(at),
                                    consumer.memory.b(at), piece);
            __syncwarp(); /* all lanes have read */
            consumer.release(at);
            consumer.stage.advance();
        }
    }
};

#define PRODUCT_PLAIN(...) &launch_of<product_tile<product_plain, __VA_ARGS__>>

#endif /* PLUGINS_COMMON_PRODUCT_PLAIN_CUH */
