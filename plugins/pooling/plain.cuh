/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling as it is written, an output a thread, in any layout and with pitches: p-norms,
 * and maxima with their indices.
 */
#ifndef PLUGINS_POOLING_PLAIN_CUH
#define PLUGINS_POOLING_PLAIN_CUH

#include "plugins/pooling/window.cuh"

/* Element (n, c, i): n*image + c/vector*channel + c%vector + i*step. */
struct plain_tensor {
    void *data;
    int64_t image, channel, step[WINDOW_DIMS];
    uint32_t vector;
};

struct plain_job {
    plain_tensor x, y, index;  /* index.data: NULL without indices */
    int64_t size;              /* outputs, pad lanes included */
    uint32_t channels, stored; /* stored: in memory */
    int64_t kernel[WINDOW_DIMS], stride[WINDOW_DIMS], dilation[WINDOW_DIMS];
    int64_t begin[WINDOW_DIMS], in[WINDOW_DIMS], out[WINDOW_DIMS];
    float p;
    bool last; /* neighbouring threads have neighbouring channels, else columns */
};

struct plain_place {
    int64_t image, o[WINDOW_DIMS];
    uint32_t channel;
};

static __device__ inline int64_t plain_take(int64_t &i, int64_t n)
{
    const int64_t q = (i | n) >> 32 ? i / n : (int64_t)((uint32_t)i / (uint32_t)n);
    const int64_t rest = i - q * n;
    i = q;
    return rest;
}

static __device__ inline plain_place plain_find(const plain_job &job, int64_t i)
{
    plain_place p;
    if (job.last)
        p.channel = (uint32_t)plain_take(i, job.stored);
    for (int d = WINDOW_DIMS - 1; d >= 0; d--)
        p.o[d] = plain_take(i, job.out[d]);
    if (!job.last)
        p.channel = (uint32_t)plain_take(i, job.stored);
    p.image = i;
    return p;
}

static __device__ inline int64_t plain_offset(const plain_tensor &t, const plain_place &p)
{
    return p.image * t.image + p.channel / t.vector * t.channel + p.channel % t.vector;
}

static __device__ inline int64_t plain_at(const plain_tensor &t, const plain_place &p)
{
    return plain_offset(t, p) + p.o[0] * t.step[0] + p.o[1] * t.step[1] +
           p.o[2] * t.step[2];
}

/* The window's maximum and where it is in the plane, -1: in the pads; or the sum of
 * powers.
 */
template <typename T, bool Max>
static __device__ inline float plain_window(const plain_job &job, const plain_place &p,
                                            int64_t &index)
{
    const T *x = (const T *)job.x.data + plain_offset(job.x, p);
    float v = pool_start<Max>();
    int64_t i[WINDOW_DIMS], k[WINDOW_DIMS];
    index = -1;
    for (k[0] = 0; k[0] < job.kernel[0]; k[0]++)
        for (k[1] = 0; k[1] < job.kernel[1]; k[1]++)
            for (k[2] = 0; k[2] < job.kernel[2]; k[2]++) {
                bool inside = true;
                int64_t offset = 0;
                for (int d = 0; d < WINDOW_DIMS; d++) {
                    i[d] = p.o[d] * job.stride[d] - job.begin[d] + k[d] * job.dilation[d];
                    inside = inside && i[d] >= 0 && i[d] < job.in[d];
                    offset += i[d] * job.x.step[d];
                }
                if (!inside)
                    continue;
                const float a = to_float(x[offset]);
                if (!Max)
                    v += job.p == 2   ? a * a
                         : job.p == 1 ? fabsf(a)
                                      : power(fabsf(a), job.p);
                else if (index < 0 || a > v || (a != a && v == v)) {
                    v = a;
                    index = (i[0] * job.in[1] + i[1]) * job.in[2] + i[2];
                }
            }
    return v;
}

template <typename T, bool Max>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    plain_kernel(const __grid_constant__ plain_job job)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    launch_next();
    wait_for_previous();
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < job.size;
         i += step) {
        const plain_place p = plain_find(job, i);
        T *y = (T *)job.y.data + plain_at(job.y, p);
        int64_t index;
        if (p.channel >= job.channels) {
            from_float(y, 0.0f);
            continue;
        }
        const float v = plain_window<T, Max>(job, p, index);
        from_float(y, Max || job.p == 1 ? v
                      : job.p == 2      ? sqrtf(v)
                                        : power(v, 1 / job.p));
        if (Max && job.index.data)
            ((int64_t *)job.index.data)[plain_at(job.index, p)] =
                index < 0 ? -1
                          : (p.image * job.channels + p.channel) * job.in[0] * job.in[1] *
                                    job.in[2] +
                                index;
    }
}

/* ---- on the host --------------------------------------------------------------------
 */

static inline plain_tensor plain_tensor_of(const strata_tensor *t, const struct window *w)
{
    plain_tensor v = {t->data, t->strides[0], t->strides[1], {}, (uint32_t)t->vector};
    if (t->vector_dim != 1 || t->vector < 1)
        v.vector = 1;
    for (int d = 0; d < WINDOW_DIMS; d++)
        v.step[d] = pool_step(t, w, d);
    return v;
}

template <typename T>
static void pool_plain(const strata_run *r)
{
    const pooling *pool = (const pooling *)r->state;
    const struct window *w = &pool->w;
    const strata_tensor *y = &r->out[0];
    plain_job job = {};
    job.x = plain_tensor_of(&r->in[0], w);
    job.y = plain_tensor_of(y, w);
    if (r->n_out > 1)
        job.index = plain_tensor_of(&r->out[1], w);
    job.channels = (uint32_t)y->dims[1];
    job.stored = (job.channels + job.y.vector - 1) / job.y.vector * job.y.vector;
    job.size = y->dims[0] * job.stored * window_out_count(w);
    job.p = pool->p;
    job.last = job.y.vector == 8 || (job.y.vector == 1 && y->strides[1] == 1);
    for (int d = 0; d < WINDOW_DIMS; d++) {
        job.kernel[d] = w->kernel[d];
        job.stride[d] = w->stride[d];
        job.dilation[d] = w->dilation[d];
        job.begin[d] = w->begin[d];
        job.in[d] = w->in[d];
        job.out[d] = w->out[d];
    }
    const unsigned blocks = layer_blocks(job.size, CUDA_BLOCK);
    launch_overlapped(pool->kind == STRATA_POOL_MAX ? plain_kernel<T, true>
                                                    : plain_kernel<T, false>,
                      blocks, CUDA_BLOCK, 0, layer_stream(r), job);
}

#endif /* PLUGINS_POOLING_PLAIN_CUH */
