/* SPDX-License-Identifier: Apache-2.0
 *
 * What first layers on tensor cores have in common: the images and windows they take.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_STEM_CHECK_CUH
#define PLUGINS_CONVOLUTION_CUDA_STEM_CHECK_CUH

#include "plugins/convolution/cuda/convolution.cuh"

enum {
    FILTERS = 64, /* of a block */
    MOST_KERNEL = 7,
    MOST_STRIDE = 4
};

static inline int stem_check(const strata_node *n)
{
    convolution_state s;
    const struct window *w = &s.w;
    if (n->math != STRATA_MATH_TENSOR_OP)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "uses tensor cores; allow them with math = tensor_op");
    const int status = convolution_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    if (s.groups != 1 || s.in_c > 4 || n->in[0].rank > 4)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "takes 1 to 4 channels, one group and at most 2 spatial dims");
    for (int d = 1; d < WINDOW_DIMS; d++)
        if (w->kernel[d] > MOST_KERNEL || w->stride[d] > MOST_STRIDE ||
            w->dilation[d] != 1 || w->in[d] > INT16_MAX || w->begin[d] > INT16_MAX)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                               "takes windows up to %d, strides up to %d, no dilation",
                               MOST_KERNEL, MOST_STRIDE);
    if (stored_channels(&n->out[0]) % 8)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld filters; needed is a multiple of 8 in fp16:nhwc",
                           (long long)s.out_c);
    if (n->out[0].size / stored_channels(&n->out[0]) > INT32_MAX / 2 ||
        s.out_c > 65535 * FILTERS)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "over 2^30 pixels");
    return STRATA_OK;
}

#endif /* PLUGINS_CONVOLUTION_CUDA_STEM_CHECK_CUH */
