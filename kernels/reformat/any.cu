/* SPDX-License-Identifier: Apache-2.0
 *
 * The row that takes everything: a thread moves one element of the destination, pads
 * included, in the order of its dims. Bounded by index arithmetic.
 */
#include "kernels/reformat/common.cuh"

#define THREADS 256
#define MOST_BLOCKS (1 << 20)

/* double holds every value of every dtype. */
static __device__ double load_any(const void *p, int64_t at, int dtype)
{
    switch (dtype) {
    case STRATA_FP32:
        return ((const float *)p)[at];
    case STRATA_FP16:
        return __half2float(((const __half *)p)[at]);
    case STRATA_INT32:
        return ((const int32_t *)p)[at];
    case STRATA_INT8:
        return ((const int8_t *)p)[at];
    default:
        return ((const uint8_t *)p)[at];
    }
}

static __device__ void store_any(void *p, int64_t at, int dtype, double x)
{
    const int32_t i = __double2int_rn(x); /* saturates */
    switch (dtype) {
    case STRATA_FP32:
        ((float *)p)[at] = (float)x;
        break;
    case STRATA_FP16:
        ((__half *)p)[at] = __float2half_rn((float)x);
        break;
    case STRATA_INT32:
        ((int32_t *)p)[at] = x == x ? i : 0;
        break;
    case STRATA_INT8:
        ((int8_t *)p)[at] = (int8_t)(x == x ? max(-128, min(127, i)) : 0);
        break;
    default:
        ((uint8_t *)p)[at] = (uint8_t)(x == x ? max(0, min(255, i)) : 0);
    }
}

static __device__ void copy_bits(void *dst, int64_t to, const void *src, int64_t from,
                                 int dtype)
{
    if (dtype == STRATA_FP32 || dtype == STRATA_INT32)
        ((uint32_t *)dst)[to] = ((const uint32_t *)src)[from];
    else if (dtype == STRATA_FP16)
        ((uint16_t *)dst)[to] = ((const uint16_t *)src)[from];
    else
        ((uint8_t *)dst)[to] = ((const uint8_t *)src)[from];
}

static __device__ int64_t step_in(const strata_desc &d, int dim, int64_t i)
{
    return dim == d.vector_dim ? i / d.vector * d.strides[dim] + i % d.vector
                               : i * d.strides[dim];
}

static __device__ void move_one(const reformat_any &j, uint64_t index)
{
    int64_t to = 0, from = 0;
    bool pad = false;
    for (int d = j.dst_desc.rank - 1; d >= 0; d--) {
        uint64_t extent = j.dst_desc.dims[d];
        if (d == j.dst_desc.vector_dim)
            extent = (extent + j.dst_desc.vector - 1) / j.dst_desc.vector *
                     j.dst_desc.vector;
        const int64_t i = (int64_t)(index % extent);
        index /= extent;
        pad |= i >= j.dst_desc.dims[d];
        to += step_in(j.dst_desc, d, i);
        from += step_in(j.src_desc, d, i);
    }
    if (pad)
        store_any(j.dst, to, j.dst_desc.dtype, 0);
    else if (j.dst_desc.dtype == j.src_desc.dtype)
        copy_bits(j.dst, to, j.src, from, j.dst_desc.dtype);
    else
        store_any(j.dst, to, j.dst_desc.dtype,
                  load_any(j.src, from, j.src_desc.dtype));
}

static __global__ void __launch_bounds__(THREADS) any_kernel(const reformat_any j)
{
    const uint64_t step = (uint64_t)gridDim.x * THREADS;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < j.count; i += step)
        move_one(j, i);
}

extern "C" int reformat_launch_any(const struct reformat_any *j, void *stream)
{
    const uint64_t blocks = (j->count + THREADS - 1) / THREADS;
    any_kernel<<<(unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), THREADS, 0,
                 (cudaStream_t)stream>>>(*j);
    return cudaPeekAtLastError();
}
