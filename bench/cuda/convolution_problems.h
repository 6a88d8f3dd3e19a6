/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions that are timed: those of ResNet-50, the first and depthwise ones of
 * MobileNet v2, and a few in FP32.
 */
#ifndef BENCH_CUDA_CONVOLUTION_PROBLEMS_H
#define BENCH_CUDA_CONVOLUTION_PROBLEMS_H

#include <stddef.h>
#include <stdint.h>

static const struct problem {
    const char *name;
    int64_t channels, size, filters, kernel, stride, groups;
    int residual, count; /* count: in one ResNet-50 */
    const char *in;      /* format, if not fp16:nhwc8 */
} problems[] = {
    {"stem fp32", 3, 224, 64, 7, 2, 1, 0, 1, "fp32:nchw"},
    {"stem fp16", 3, 224, 64, 7, 2, 1, 0, 0, "fp16:nchw"},
    {"stem 3x3 fp32", 3, 224, 32, 3, 2, 1, 0, 0, "fp32:nchw"},
    {"stem 3x3 fp16", 3, 224, 32, 3, 2, 1, 0, 0, "fp16:nchw"},
    {"s1 1x1 64-64", 64, 56, 64, 1, 1, 1, 0, 1, NULL},
    {"s1 3x3 64", 64, 56, 64, 3, 1, 1, 0, 3, NULL},
    {"s1 1x1 64-256", 64, 56, 256, 1, 1, 1, 0, 1, NULL},
    {"s1 1x1 64-256 +r", 64, 56, 256, 1, 1, 1, 1, 3, NULL},
    {"s1 1x1 256-64", 256, 56, 64, 1, 1, 1, 0, 2, NULL},
    {"s2 1x1 256-128", 256, 56, 128, 1, 1, 1, 0, 1, NULL},
    {"s2 3x3 128 /2", 128, 56, 128, 3, 2, 1, 0, 1, NULL},
    {"s2 1x1 256-512 /2", 256, 56, 512, 1, 2, 1, 0, 1, NULL},
    {"s2 1x1 128-512 +r", 128, 28, 512, 1, 1, 1, 1, 4, NULL},
    {"s2 1x1 512-128", 512, 28, 128, 1, 1, 1, 0, 3, NULL},
    {"s2 3x3 128", 128, 28, 128, 3, 1, 1, 0, 3, NULL},
    {"s3 1x1 512-256", 512, 28, 256, 1, 1, 1, 0, 1, NULL},
    {"s3 3x3 256 /2", 256, 28, 256, 3, 2, 1, 0, 1, NULL},
    {"s3 1x1 512-1024 /2", 512, 28, 1024, 1, 2, 1, 0, 1, NULL},
    {"s3 1x1 256-1024 +r", 256, 14, 1024, 1, 1, 1, 1, 6, NULL},
    {"s3 1x1 1024-256", 1024, 14, 256, 1, 1, 1, 0, 5, NULL},
    {"s3 3x3 256", 256, 14, 256, 3, 1, 1, 0, 5, NULL},
    {"s4 1x1 1024-512", 1024, 14, 512, 1, 1, 1, 0, 1, NULL},
    {"s4 3x3 512 /2", 512, 14, 512, 3, 2, 1, 0, 1, NULL},
    {"s4 1x1 1024-2048/2", 1024, 14, 2048, 1, 2, 1, 0, 1, NULL},
    {"s4 1x1 512-2048 +r", 512, 7, 2048, 1, 1, 1, 1, 3, NULL},
    {"s4 1x1 2048-512", 2048, 7, 512, 1, 1, 1, 0, 2, NULL},
    {"s4 3x3 512", 512, 7, 512, 3, 1, 1, 0, 2, NULL},
    {"dw 3x3 96 /2", 96, 112, 96, 3, 2, 96, 0, 0, NULL},
    {"dw 3x3 144", 144, 56, 144, 3, 1, 144, 0, 0, NULL},
    {"dw 3x3 144 nchw", 144, 56, 144, 3, 1, 144, 0, 0, "fp16:nchw"},
    {"dw 3x3 144 nc2hw2", 144, 56, 144, 3, 1, 144, 0, 0, "fp16:nc/2hw2"},
    {"dw 3x3 144 fp32", 144, 56, 144, 3, 1, 144, 0, 0, "fp32:nchw"},
    {"dw 3x3 576", 576, 14, 576, 3, 1, 576, 0, 0, NULL},
    {"dw 5x5 240 /2", 240, 28, 240, 5, 2, 240, 0, 0, NULL},
    {"fp32 nchw 3x3 128", 128, 28, 128, 3, 1, 1, 0, 0, "fp32:nchw"},
    {"fp32 nhwc 3x3 128", 128, 28, 128, 3, 1, 1, 0, 0, "fp32:nhwc"},
    {"fp32 nhwc 3x3 /2", 128, 28, 128, 3, 2, 1, 0, 0, "fp32:nhwc"},
    {"fp32 nchw 3x3 512", 512, 7, 512, 3, 1, 1, 0, 0, "fp32:nchw"},
    {"fp32 nchw 1x1 256", 256, 56, 64, 1, 1, 1, 0, 0, "fp32:nchw"},
    {"fp32 nhwc 1x1 256", 256, 56, 64, 1, 1, 1, 0, 0, "fp32:nhwc"},
    {"fp32 nhwc 1x1 /2", 256, 56, 512, 1, 2, 1, 0, 0, "fp32:nhwc"},
};

#endif /* BENCH_CUDA_CONVOLUTION_PROBLEMS_H */
