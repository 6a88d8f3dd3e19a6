/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows chosen by indices, on CUDA. The output is one run of words of at most 16 bytes:
 * neighbouring threads write neighbouring words, whatever a row's length, so a warp moves
 * 512 bytes of one long row or several short rows. A thread has several words in flight.
 * Where there are many long rows, each is a block's.
 */
#ifndef PLUGINS_COMMON_INDEX_CUH
#define PLUGINS_COMMON_INDEX_CUH

#include "kernels/layer.cuh"
#include "kernels/overlap.cuh"
#include "plugins/common/index.h"

#define INDEX_LONG (2 * CUDA_BLOCK) /* words of a row that a block takes alone */
#define INDEX_LONGEST 8192
#define INDEX_MANY 4096 /* rows that keep a large device busy with a block each */

/* x / by, by the shorter division where both are short. */
static __device__ inline uint64_t index_divide(uint64_t x, uint64_t by)
{
    return (x | by) >> 32 ? x / by : (uint32_t)x / (uint32_t)by;
}

/* Words i < count of rows first, first + 1, ...; by: words of a row. `source` gives the
 * input row of an output row, or -1 for zeros. */
template <typename W, typename S, int FLIGHT>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    index_rows_kernel(W *to, const W *from, divisor by, uint32_t count, int64_t first,
                      const __grid_constant__ S source)
{
    launch_next();
    wait_for_previous();
    const uint32_t start = blockIdx.x * (uint32_t)(CUDA_BLOCK * FLIGHT) + threadIdx.x;
    int64_t row[FLIGHT];
    W word[FLIGHT];
#pragma unroll
    for (int u = 0; u < FLIGHT; u++) {
        const uint32_t i = min(start + u * CUDA_BLOCK, count - 1);
        row[u] = source(first + divide_by(i, by));
    }
#pragma unroll
    for (int u = 0; u < FLIGHT; u++) {
        const uint32_t i = min(start + u * CUDA_BLOCK, count - 1);
        word[u] = W{};
        if (row[u] >= 0)
            word[u] = from[row[u] * by.d + remainder_by(i, by)];
    }
#pragma unroll
    for (int u = 0; u < FLIGHT; u++)
        if (start + u * CUDA_BLOCK < count)
            __stcs(to + first * by.d + start + u * CUDA_BLOCK, word[u]);
}

/* Rows of many words, a block each: of 65,536 rows of 8 KB, chosen at random, an H200
 * moves 4.1 TB/s so and 3.95 by the kernel above; of 1.5 KB 3.5 and 3.95. */
template <typename W, typename S>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    index_long_kernel(W *to, const W *from, uint32_t words,
                      const __grid_constant__ S source)
{
    launch_next();
    wait_for_previous();
    const int64_t row = source(blockIdx.x);
    const W *x = from + row * words;
    W *y = to + (int64_t)blockIdx.x * words;
    for (uint32_t i = threadIdx.x; i < words; i += CUDA_BLOCK)
        y[i] = row < 0 ? W{} : x[i];
}

/* As many launches as keep the words of one below 2^31. */
template <typename W, typename S>
static int index_rows_of(const strata_run *r, void *to, const void *from, int64_t rows,
                         int64_t row_bytes, const S &source, const char *name)
{
    const int FLIGHT = 4;
    const int64_t words = row_bytes / (int64_t)sizeof(W), most = 0x7fffffff / words;
    int status = STRATA_OK;
    if (sizeof(W) == 16 && words >= INDEX_LONG && words <= INDEX_LONGEST &&
        rows >= INDEX_MANY && rows <= 0x7fffffff) {
        launch_overlapped(index_long_kernel<W, S>, (unsigned)rows, CUDA_BLOCK, 0,
                          layer_stream(r), (W *)to, (const W *)from, (uint32_t)words,
                          source);
        return layer_launched(r, name);
    }
    if (most == 0)
        return STRATA_FAIL(r, STRATA_EUNSUPPORTED,
                           "a row has %lld words of %d bytes; below 2^31 are supported",
                           (long long)words, (int)sizeof(W));
    for (int64_t first = 0; first < rows && status == STRATA_OK; first += most) {
        const uint32_t count =
            (uint32_t)((rows - first < most ? rows - first : most) * words);
        launch_overlapped(index_rows_kernel<W, S, FLIGHT>,
                          layer_blocks(count, CUDA_BLOCK * FLIGHT), CUDA_BLOCK, 0,
                          layer_stream(r), (W *)to, (const W *)from, divisor_of(words),
                          count, first, source);
        status = layer_launched(r, name);
    }
    return status;
}

/* Copy rows of `row_bytes` by the widest words; tensors are dense and aligned to 16. */
template <typename S>
static int index_copy_rows(const strata_run *r, void *to, const void *from, int64_t rows,
                           int64_t row_bytes, const S &source, const char *name)
{
    if (rows == 0 || row_bytes == 0)
        return STRATA_OK;
    const uint64_t low =
        (uint64_t)row_bytes | (uint64_t)(uintptr_t)to | (uint64_t)(uintptr_t)from;
    if (low % 16 == 0)
        return index_rows_of<uint4>(r, to, from, rows, row_bytes, source, name);
    if (low % 8 == 0)
        return index_rows_of<uint2>(r, to, from, rows, row_bytes, source, name);
    if (low % 4 == 0)
        return index_rows_of<unsigned>(r, to, from, rows, row_bytes, source, name);
    if (low % 2 == 0)
        return index_rows_of<unsigned short>(r, to, from, rows, row_bytes, source, name);
    return index_rows_of<unsigned char>(r, to, from, rows, row_bytes, source, name);
}

#endif /* PLUGINS_COMMON_INDEX_CUH */
