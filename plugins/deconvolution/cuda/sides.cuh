/* SPDX-License-Identifier: Apache-2.0
 *
 * Phases side by side: the columns of one product whose rows are the pixels of the first
 * phase. A's windows are those of all phases together, of which each phase reads its own;
 * the copy engine stores its results, the stride apart. The kernel is whole strides, so
 * that all phases are equally deep. For sm_90a.
 */
#ifndef PLUGINS_DECONVOLUTION_CUDA_SIDES_CUH
#define PLUGINS_DECONVOLUTION_CUDA_SIDES_CUH

#include "plugins/common/product/windows.cuh"
#include "plugins/common/product/written.cuh"

#define SIDES 16 /* at most: each has a map */

struct sides_job : product_job {
    CUtensorMap y[SIDES]; /* pixels of a phase: `d` is the first */
    divisor side;  /* columns of a phase, in whole panels; pads behind the filters */
    divisor own_w; /* elements in a row of a phase's window */
    int32_t first[SIDES]; /* its first element of the window of all */
    int32_t filters;
};

template <class Take>
static __device__ inline void product_with_source(const sides_job &job,
                                                  const product_place &p, int32_t step,
                                                  const Take &take)
{
    if (!job.window.on)
        return take(job.a, job.window, step);
    const uint32_t side = divide_by((uint32_t)p.column, job.side);
    const uint32_t own = divide_by((uint32_t)step, job.window.pieces);
    const uint32_t r = divide_by(own, job.own_w), s = own - r * job.own_w.d;
    const uint32_t element = job.first[side] + r * job.window.kernel_w.d + s;
    take(job.a, job.window, step + (int32_t)((element - own) * job.window.pieces.d));
}

static __device__ inline void product_put(const sides_job &job, uint32_t panel,
                                          int32_t column, int32_t row, int32_t)
{
    const uint32_t side = divide_by((uint32_t)column, job.side);
    const int32_t filter = column - (int32_t)(side * job.side.d);
    const uint32_t image = divide_by((uint32_t)row, job.window.pixels);
    const uint32_t pixel = (uint32_t)row - image * job.window.pixels.d;
    const uint32_t h = divide_by(pixel, job.window.width);
    if (filter < job.filters)
        store_window(&job.y[side], panel, filter,
                     (int32_t)(pixel - h * job.window.width.d), (int32_t)h,
                     (int32_t)image);
}

/* Bias, and a factor where a tile is one phase's, are the filter's. */
template <class C>
struct sides_store : product_written<C, STRATA_CLIP> {
    typedef product_written<C, STRATA_CLIP> written;
    using written::written;

    __device__ inline const sides_job &sides(void) const
    {
        return static_cast<const sides_job &>(this->job);
    }

    __device__ inline void fetch(int32_t column)
    {
        const sides_job &job = sides();
#pragma unroll
        for (int i = 0; i < written::loop::OWN; i++) {
            const int32_t c = this->thread + i * 128;
            const int32_t filter =
                (int32_t)remainder_by((uint32_t)(column + c), job.side);
            this->bias[i] =
                job.bias && !job.scale && c < C::Columns && filter < job.filters
                    ? __ldg(job.bias + filter)
                    : 0;
        }
    }

    template <class Send>
    __device__ inline void run(typename written::sums sum, int32_t column, uint32_t n,
                               const Send &send) const
    {
        written::run(sum, (int32_t)remainder_by((uint32_t)column, sides().side), n, send);
    }
};

/* The kind of a tile. */
template <typename T>
struct sides_floats : product_floats<T> {
    typedef sides_job Job;
    template <class C>
    using store = sides_store<C>;
};

/* ---- weights --------------------------------------------------------------------------
 */

template <typename T>
struct sides_pack_job {
    T *packed;           /* [phase][column][element][channel, to whole pieces] */
    const float *weight; /* [channel][filter][kernel element] */
    int64_t size, stored, in_c, filters, side, taps;
    int64_t own, own_w, step_h, step_w; /* elements of a phase; taps between them */
    int64_t last[SIDES];                /* tap of its first element */
};

template <typename T>
static __global__ void sides_pack_kernel(sides_pack_job<T> job)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < job.size;
         i += step) {
        const int64_t c = i % job.stored, rest = i / job.stored;
        const int64_t e = rest % job.own, column = rest / job.own;
        const int64_t k = column % job.side;
        const int64_t tap = job.last[column / job.side] - e / job.own_w * job.step_h -
                            e % job.own_w * job.step_w;
        job.packed[i] =
            convert<T>(c < job.in_c && k < job.filters
                           ? job.weight[(c * job.filters + k) * job.taps + tap]
                           : 0.0f);
    }
}

#endif /* PLUGINS_DECONVOLUTION_CUDA_SIDES_CUH */
