/* SPDX-License-Identifier: Apache-2.0
 *
 * What the methods of convolution share: the resolved layer, one call, and the tail of
 * bias and epilogue. Images are dense FP32 [C][D][H][W].
 */
#ifndef PLUGINS_CONVOLUTION_JOB_H
#define PLUGINS_CONVOLUTION_JOB_H

#include "plugins/convolution/gemm_tile.h"
#include "plugins/common/activate.h"
#include "plugins/common/window.h"

struct convolution {
    struct window w;
    int64_t groups, in_c, out_c;   /* channels per group */
    int64_t depth;                 /* k: in_c * kernel elements */
    const struct gemm_tile *tile;  /* NULL: direct */
    const float *packed;           /* weights in tile order, or NULL: packed as used */
    int32_t pointwise;             /* columns are the input's own rows */
};

struct convolution_job {
    const struct convolution *cv;
    const float *in;
    float *out;
    const float *residual;       /* like out; NULL unless the epilogue has one */
    const float *weight, *bias;  /* bias may be NULL */
    const strata_epilogue *epilogue;
    int64_t images;
    char *scratch;               /* for direct: convolution_scratch bytes */
    size_t scratch_size;
};

static inline int64_t convolution_panels(const struct convolution *cv)
{
    return (cv->out_c + cv->tile->rows - 1) / cv->tile->rows;
}

/* Bytes of packed weights; 0 on overflow. */
static inline size_t convolution_packed_size(const struct convolution *cv)
{
    int64_t size = cv->groups * (int64_t)sizeof(float);
    if (__builtin_mul_overflow(size, convolution_panels(cv) * cv->tile->rows, &size) ||
        __builtin_mul_overflow(size, cv->depth, &size))
        return 0;
    return (size_t)size;
}

/* k in [k0, k0 + n) of one panel of filters of a group; absent filters are zero. */
static inline void convolution_pack(const struct convolution *cv, float *dst,
                                    const float *weight, int64_t group, int64_t panel,
                                    int64_t k0, int64_t n)
{
    int64_t kernel = window_kernel_count(&cv->w), rows = cv->tile->rows;
    for (int64_t k = k0; k < k0 + n; k++)
        for (int64_t m = 0; m < rows; m++) {
            int64_t filter = panel * rows + m;
            int64_t at = (group * cv->out_c + filter) * cv->depth +
                         k % cv->in_c * kernel + k / cv->in_c;
            *dst++ = filter < cv->out_c ? weight[at] : 0;
        }
}

static inline void convolution_pack_all(const struct convolution *cv, float *dst,
                                        const float *weight)
{
    for (int64_t g = 0; g < cv->groups; g++)
        for (int64_t p = 0; p < convolution_panels(cv); p++) {
            convolution_pack(cv, dst, weight, g, p, 0, cv->depth);
            dst += cv->tile->rows * cv->depth;
        }
}

/* ---- the tail: y = activation(scale*(x + bias) + shift + residual) ------------- */

static inline void convolution_tail(const struct convolution_job *job, int64_t image,
                                    int64_t channel, int64_t pixel, int64_t n)
{
    const strata_epilogue *e = job->epilogue;
    int64_t plane = window_out_count(&job->cv->w);
    int64_t at =
        (image * job->cv->groups * job->cv->out_c + channel) * plane + pixel;
    float *y = job->out + at;
    float scale = e->flags & STRATA_EPILOGUE_SCALE ? e->scale[channel] : 1;
    float shift = e->flags & STRATA_EPILOGUE_BIAS ? e->bias[channel] : 0;
    if (job->bias)
        shift += scale * job->bias[channel];
    if (scale != 1 || shift != 0)
        for (int64_t i = 0; i < n; i++)
            y[i] = y[i] * scale + shift;
    if (job->residual)
        for (int64_t i = 0; i < n; i++)
            y[i] += job->residual[at + i];
    if (e->flags & STRATA_EPILOGUE_ACTIVATION)
        activate_row(e->activation, e->alpha, e->beta, y, n);
}

/* Input index along d of output o at kernel element k; -1 in the pads. */
static inline int64_t convolution_index(const struct window *w, int d, int64_t o,
                                        int64_t k)
{
    int64_t i = o * w->stride[d] - w->begin[d] + k * w->dilation[d];
    return i >= 0 && i < w->in[d] ? i : -1;
}

/* dst[i] = src[i*stride]; the usual strides are constants in their loops. */
static inline void convolution_copy(float *dst, const float *src, int64_t stride,
                                    int64_t n)
{
    if (stride == 1)
        for (int64_t i = 0; i < n; i++)
            dst[i] = src[i];
    else if (stride == 2)
        for (int64_t i = 0; i < n; i++)
            dst[i] = src[2 * i];
    else
        for (int64_t i = 0; i < n; i++)
            dst[i] = src[i * stride];
}

#endif /* PLUGINS_CONVOLUTION_JOB_H */
