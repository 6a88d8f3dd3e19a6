/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of depthwise convolution share: the job, what a thread makes of it,
 * and the tail. A thread makes rows of some neighbouring pixels of a pack of channels.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_DEPTHWISE_CUH
#define PLUGINS_CONVOLUTION_CUDA_DEPTHWISE_CUH

#include "plugins/convolution/cuda/convolution.cuh"

enum { DEPTHWISE_BLOCK = 128, DEPTHWISE_WIDE = 4 };

struct depthwise_job {
    const void *x, *residual;
    void *y;
    const float *weight; /* [kernel element][stored channel] */
    const float *bias;   /* or NULL */
    epilogue_args epilogue;
    convolution_bounds bounds;
    uint32_t units;                /* threads with work */
    divisor packs, across, chunks; /* how many: of channels, of pixels, of rows */
    bool innermost;                /* channels are */
    bool plain;                    /* results are sums between low and high */
    float low, high;
    uint32_t channels, stored, rows;          /* rows: of a chunk */
    int64_t x_image, x_pack, y_image, y_pack; /* strides in elements */
    int32_t x_row, x_step, y_row, y_step;     /* of images below 2^31 elements */
    int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
    int32_t begin_h, begin_w, height, width, out_h, out_w;
};

/* What a thread makes: `wide` columns of the rows from first_row to before end_row. */
struct depthwise_unit {
    uint32_t pack, image, c;
    int32_t column, first_row, end_row;
};

static __device__ inline depthwise_unit depthwise_unit_of(const depthwise_job &job,
                                                          uint32_t u, int lanes, int wide)
{
    depthwise_unit v;
    uint32_t across, chunk;
    if (job.innermost) {
        const uint32_t pixels = divide_by(u, job.packs);
        const uint32_t rows = divide_by(pixels, job.across);
        v.pack = u - pixels * job.packs.d;
        across = pixels - rows * job.across.d;
        v.image = divide_by(rows, job.chunks);
        chunk = rows - v.image * job.chunks.d;
    } else {
        const uint32_t rows = divide_by(u, job.across);
        const uint32_t planes = divide_by(rows, job.chunks);
        across = u - rows * job.across.d;
        chunk = rows - planes * job.chunks.d;
        v.image = divide_by(planes, job.packs);
        v.pack = planes - v.image * job.packs.d;
    }
    v.c = v.pack * lanes;
    v.column = (int32_t)across * wide;
    v.first_row = (int32_t)(chunk * job.rows);
    v.end_row = min(v.first_row + (int32_t)job.rows, job.out_h);
    return v;
}

/* Results of a row: a pack a pixel, or with `Groups` pixels beside each other one. */
template <typename T, int V, int Wide, bool Groups>
static __device__ inline void depthwise_put(const depthwise_job &job,
                                            const depthwise_unit &unit, int32_t row,
                                            const float (&value)[Wide * V])
{
    T *y = (T *)job.y + unit.image * job.y_image + unit.pack * job.y_pack;
    const int32_t at = row * job.y_row + unit.column * job.y_step;
    if constexpr (Groups) {
        pack<T, Wide * V> all;
#pragma unroll
        for (int i = 0; i < Wide * V; i++)
            from_float(&all.v[i], value[i]);
        store_pack(y + at, all);
    } else {
#pragma unroll
        for (int o = 0; o < Wide; o++) {
            pack<T, V> one;
#pragma unroll
            for (int v = 0; v < V; v++)
                from_float(&one.v[v], value[o * V + v]);
            if (unit.column + o < job.out_w)
                store_pack(y + (at + o * job.y_step), one);
        }
    }
}

/* The tail in full. Inline: an array handed to a call lives in memory, whether the call is
 * made or not. */
template <typename T, int V, int Wide, bool Groups>
static __device__ inline void
depthwise_finish(const depthwise_job &job, const depthwise_unit &unit, int32_t row,
                 float (&value)[Wide * V])
{
    const int64_t image = unit.image * job.y_image + unit.pack * job.y_pack;
    const int32_t at = row * job.y_row + unit.column * job.y_step;
    const uint32_t real = unit.c < job.channels ? job.channels - unit.c : 0;
    if (job.residual) {
        pack<T, V> add[Wide];
#pragma unroll
        for (int o = 0; o < Wide; o++)
            add[o] = load_pack_if<T, V>((const T *)job.residual + image +
                                            (at + o * job.y_step),
                                        unit.column + o < job.out_w);
#pragma unroll
        for (int i = 0; i < Wide * V; i++)
            value[i] += to_float(add[i / V].v[i % V]);
    }
    activate_all(value, job.epilogue.activation);
#pragma unroll
    for (int i = 0; i < Wide * V; i++)
        value[i] = i % V < real ? value[i] : 0.0f;
    depthwise_put<T, V, Wide, Groups>(job, unit, row, value);
}

/* Sums, scaled and shifted, become a row of results. */
template <typename T, int V, int Wide, bool Groups>
static __device__ inline void depthwise_store(const depthwise_job &job,
                                              const depthwise_unit &unit, int32_t row,
                                              const float (&sum)[Wide][V])
{
    float value[Wide * V];
#pragma unroll
    for (int i = 0; i < Wide * V; i++)
        value[i] = sum[i / V][i % V];
    if (!job.bounds.plain)
        return depthwise_finish<T, V, Wide, Groups>(job, unit, row, value);
#pragma unroll
    for (int i = 0; i < Wide * V; i++)
        value[i] = bounded(value[i], job.bounds);
    depthwise_put<T, V, Wide, Groups>(job, unit, row, value);
}

#endif /* PLUGINS_CONVOLUTION_CUDA_DEPTHWISE_CUH */
