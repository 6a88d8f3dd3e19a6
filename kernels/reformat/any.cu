/* SPDX-License-Identifier: Apache-2.0
 *
 * The row that takes everything: a thread moves one element of the destination, pads
 * included, in the order of its dims. Bounded by index arithmetic.
 */
#include <cuda_fp8.h>

#include "kernels/reformat/common.cuh"
#include "kernels/overlap.cuh"

#define THREADS 256
#define MOST_BLOCKS (1 << 20)

/* A value of any dtype. FP64 holds those of all floats, but not every INT64: integers and
 * booleans stay whole. */
struct any_value {
    double x;
    int64_t i;
    bool whole;
};

static __device__ any_value real(double x)
{
    return {x, 0, false};
}

static __device__ any_value whole(int64_t i)
{
    return {0, i, true};
}

static __device__ double from_fp8(uint8_t bits, __nv_fp8_interpretation_t kind)
{
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(bits, kind)));
}

static __device__ any_value load_any(const void *p, int64_t at, int dtype)
{
    switch (dtype) {
    case STRATA_FP64:
        return real(((const double *)p)[at]);
    case STRATA_FP32:
        return real(((const float *)p)[at]);
    case STRATA_FP16:
        return real(__half2float(((const __half *)p)[at]));
    case STRATA_BF16:
        return real(__bfloat162float(((const __nv_bfloat16 *)p)[at]));
    case STRATA_E4M3:
        return real(from_fp8(((const uint8_t *)p)[at], __NV_E4M3));
    case STRATA_E5M2:
        return real(from_fp8(((const uint8_t *)p)[at], __NV_E5M2));
    case STRATA_INT64:
        return whole(((const int64_t *)p)[at]);
    case STRATA_INT32:
        return whole(((const int32_t *)p)[at]);
    case STRATA_INT8:
        return whole(((const int8_t *)p)[at]);
    case STRATA_BOOL8:
        return whole(((const uint8_t *)p)[at] != 0);
    default:
        return whole(((const uint8_t *)p)[at]);
    }
}

/* The nearest integer, saturated; NaN is 0. */
static __device__ int64_t nearest(const any_value &v, int64_t least, int64_t most)
{
    const int64_t i = v.whole ? v.i : v.x == v.x ? __double2ll_rn(v.x) : 0;
    return max(least, min(most, i));
}

/* Past 2^53 an integer is beyond the range of FP8 and rounding it twice does no harm. */
static __device__ uint8_t to_fp8(const any_value &v, __nv_fp8_interpretation_t kind)
{
    return __nv_cvt_double_to_fp8(v.whole ? (double)v.i : v.x, __NV_SATFINITE, kind);
}

/* Every value is rounded once. */
static __device__ void store_any(void *p, int64_t at, int dtype, const any_value &v)
{
    switch (dtype) {
    case STRATA_FP64:
        ((double *)p)[at] = v.whole ? __ll2double_rn(v.i) : v.x;
        break;
    case STRATA_FP32:
        ((float *)p)[at] = v.whole ? __ll2float_rn(v.i) : __double2float_rn(v.x);
        break;
    case STRATA_FP16:
        ((__half *)p)[at] = v.whole ? __ll2half_rn(v.i) : __double2half(v.x);
        break;
    case STRATA_BF16:
        ((__nv_bfloat16 *)p)[at] =
            v.whole ? __ll2bfloat16_rn(v.i) : __double2bfloat16(v.x);
        break;
    case STRATA_E4M3:
        ((uint8_t *)p)[at] = to_fp8(v, __NV_E4M3);
        break;
    case STRATA_E5M2:
        ((uint8_t *)p)[at] = to_fp8(v, __NV_E5M2);
        break;
    case STRATA_INT64:
        ((int64_t *)p)[at] = nearest(v, INT64_MIN, INT64_MAX);
        break;
    case STRATA_INT32:
        ((int32_t *)p)[at] = (int32_t)nearest(v, INT32_MIN, INT32_MAX);
        break;
    case STRATA_INT8:
        ((int8_t *)p)[at] = (int8_t)nearest(v, INT8_MIN, INT8_MAX);
        break;
    case STRATA_BOOL8:
        ((uint8_t *)p)[at] = v.whole ? v.i != 0 : v.x != 0;
        break;
    default:
        ((uint8_t *)p)[at] = (uint8_t)nearest(v, 0, UINT8_MAX);
    }
}

static __device__ void copy_bits(void *dst, int64_t to, const void *src, int64_t from,
                                 int dtype)
{
    switch (dtype) {
    case STRATA_FP64:
    case STRATA_INT64:
        ((uint64_t *)dst)[to] = ((const uint64_t *)src)[from];
        break;
    case STRATA_FP32:
    case STRATA_INT32:
        ((uint32_t *)dst)[to] = ((const uint32_t *)src)[from];
        break;
    case STRATA_FP16:
    case STRATA_BF16:
        ((uint16_t *)dst)[to] = ((const uint16_t *)src)[from];
        break;
    default:
        ((uint8_t *)dst)[to] = ((const uint8_t *)src)[from];
    }
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
            extent =
                (extent + j.dst_desc.vector - 1) / j.dst_desc.vector * j.dst_desc.vector;
        const int64_t i = (int64_t)(index % extent);
        index /= extent;
        pad |= i >= j.dst_desc.dims[d];
        to += step_in(j.dst_desc, d, i);
        from += step_in(j.src_desc, d, i);
    }
    if (pad)
        store_any(j.dst, to, j.dst_desc.dtype, whole(0));
    else if (j.dst_desc.dtype == j.src_desc.dtype)
        copy_bits(j.dst, to, j.src, from, j.dst_desc.dtype);
    else
        store_any(j.dst, to, j.dst_desc.dtype, load_any(j.src, from, j.src_desc.dtype));
}

static __global__ void __launch_bounds__(THREADS) any_kernel(const reformat_any j)
{
    wait_for_previous();
    launch_next();
    const uint64_t step = (uint64_t)gridDim.x * THREADS;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < j.count;
         i += step)
        move_one(j, i);
}

extern "C" int reformat_launch_any(const struct reformat_any *j, void *stream)
{
    const uint64_t blocks = (j->count + THREADS - 1) / THREADS;
    launch_overlapped(any_kernel, (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS),
                      THREADS, 0, (cudaStream_t)stream, *j);
    return cudaPeekAtLastError();
}
