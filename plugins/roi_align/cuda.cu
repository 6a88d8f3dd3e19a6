/* SPDX-License-Identifier: Apache-2.0
 *
 * RoiAlign on CUDA: a thread makes one element of the output, in the order of its memory;
 * neighbours read neighbouring elements, or channels that lie side by side.
 */
#include "kernels/layer.cuh"
#include "plugins/roi_align/roi_align.h"

struct roi_job {
    strata_tensor x, y;
    const float *roi;
    const void *image;
    double scale;
    int64_t sampling, count;
    int32_t mode, coordinates, image_dtype;
    channel_map channel;
};

template <typename T>
static __device__ inline float point(const roi_job &j, const T *x, const roi_pair &h,
                                     const roi_pair &w)
{
    const int64_t *stride = j.x.strides;
    const int64_t at[4] = {
        h.low * stride[2] + w.low * stride[3], h.low * stride[2] + w.high * stride[3],
        h.high * stride[2] + w.low * stride[3], h.high * stride[2] + w.high * stride[3]};
    const float weight[4] = {
        (float)(h.low_weight * w.low_weight), (float)(h.low_weight * w.high_weight),
        (float)(h.high_weight * w.low_weight), (float)(h.high_weight * w.high_weight)};
    float result = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float value = weight[k] != 0 ? weight[k] * to_float(x[at[k]]) : 0;
        if (j.mode == STRATA_ROI_AVERAGE)
            result += value;
        else
            result = k == 0 || value > result || value != value ? value : result;
    }
    return result;
}

template <typename T>
static __device__ inline float bin(const roi_job &j, int64_t region, uint32_t channel,
                                   int64_t row, int64_t column)
{
    const float *roi = j.roi + region * 4;
    const struct roi_side h = roi_side((double)roi[1], (double)roi[3], j.y.dims[2],
                                       j.x.dims[2], j.scale, j.sampling, j.coordinates);
    const struct roi_side w = roi_side((double)roi[0], (double)roi[2], j.y.dims[3],
                                       j.x.dims[3], j.scale, j.sampling, j.coordinates);
    const int64_t image = index_value(j.image, j.image_dtype, region);
    if (image < 0 || image >= j.x.dims[0])
        return 0;
    const uint32_t v = j.channel.vector;
    const T *x =
        (const T *)j.x.data + image * j.x.strides[0] +
        (v > 1 ? channel / v * j.x.strides[1] + channel % v : channel * j.x.strides[1]);
    const int64_t points = h.points * w.points;
    int64_t top, bottom, left, right;
    roi_inside(&h, row, &top, &bottom);
    roi_inside(&w, column, &left, &right);
    const bool all = (bottom - top) * (right - left) == points; /* else one is a 0 */
    float result = 0;
    for (int64_t a = top; a < bottom; a++) {
        const roi_pair y = roi_point(&h, row, a);
        for (int64_t b = left; b < right; b++) {
            const bool first = all && a == top && b == left;
            const float value = point(j, x, y, roi_point(&w, column, b));
            if (j.mode == STRATA_ROI_AVERAGE)
                result += value;
            else
                result = first || value > result || value != value ? value : result;
        }
    }
    return j.mode == STRATA_ROI_AVERAGE && points > 0 ? result / (float)points : result;
}

template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    roi_kernel(const __grid_constant__ roi_job j)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    const int64_t last = j.y.vector_dim == 1 ? j.y.vector : 1;
    int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    for (; i < j.count; i += step) {
        const uint32_t channel = channel_of(i, j.channel);
        const int64_t region = i / j.y.strides[0];
        const int64_t row = i / j.y.strides[2] % j.y.dims[2];
        const int64_t column =
            i / (j.y.strides[3] > last ? j.y.strides[3] : last) % j.y.dims[3];
        const float value =
            channel < j.channel.channels ? bin<T>(j, region, channel, row, column) : 0.0f;
        from_float((T *)j.y.data + i, value);
    }
}

template <typename T>
static int launch(const strata_run *r)
{
    const strata_roi_align *p = (const strata_roi_align *)r->params;
    roi_job j = {};
    j.x = r->in[0];
    j.y = r->out[0];
    j.roi = (const float *)r->in[1].data;
    j.image = r->in[2].data;
    j.image_dtype = r->in[2].dtype;
    j.scale = p->scale;
    j.sampling = p->sampling;
    j.mode = p->mode;
    j.coordinates = p->coordinates;
    j.count = j.y.size;
    j.channel = channel_map_of(&j.y);
    roi_kernel<T>
        <<<layer_blocks(j.count, CUDA_BLOCK), CUDA_BLOCK, 0, layer_stream(r)>>>(j);
    return layer_launched(r, "roi_align");
}

static int roi_run(const strata_run *r)
{
    switch (r->out[0].dtype) {
    case STRATA_FP16:
        return launch<__half>(r);
    case STRATA_BF16:
        return launch<__nv_bfloat16>(r);
    default:
        return launch<float>(r);
    }
}

static const strata_row rows[] = {
    {{STRATA_FOUR | STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_BF16_NCHW |
          STRATA_BF16_NHWC | STRATA_BF16_NHWC8,
      STRATA_F32_NCHW, INDEX_FORMATS},
     {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = roi_run,
     .bandwidth = 0.3},
};

static const strata_extends roi_align = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::RoiAlign",
    .params_size = sizeof(strata_roi_align),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&roi_align};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::RoiAlign", extends)
