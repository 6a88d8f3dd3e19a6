/* SPDX-License-Identifier: Apache-2.0
 *
 * Which kernels cuDNN offers for a problem: the engine configurations of its heuristics
 * that keep to the rules (cudnn_choose), as execution plans. Choices are made once a
 * process and kept.
 */
#ifndef PLUGINS_CONVOLUTION_CUDNN_CHOICE_H
#define PLUGINS_CONVOLUTION_CUDNN_CHOICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "plugins/convolution/cudnn/graph.h"

#ifndef CUDNN_TACTICS
#define CUDNN_TACTICS 8
#endif

/* What plans are made for: a device, or the description of one. */
struct cudnn_target {
    int device;                          /* CUDA's number of it; -1: described only */
    cudnnHandle_t handle;                /* NULL: described only */
    cudnnBackendDescriptor_t properties; /* NULL where there is a handle */
};

/* One execution plan. cuDNN does not promise that two threads may run one at a time. */
struct cudnn_plan {
    cudnnBackendDescriptor_t descriptor;
    pthread_mutex_t lock;
    size_t workspace; /* bytes */
    int64_t engine;   /* cuDNN's number of it */
    bool compiled;    /* at run time */
    char knobs[96];   /* "type=value ..." */
};

struct cudnn_choice {
    struct cudnn_choice *next;
    int device;
    struct cudnn_problem problem;
    struct cudnn_builder graph;
    int n;
    struct cudnn_plan plans[CUDNN_TACTICS];
    char reason[256]; /* why there are none */
};

/* The choice for a problem, at most CUDNN_TACTICS plans, best first by cuDNN's own
 * judgement: modes A and B, then the fallback list. Left out are kernels with tensor
 * cores where the problem forbids them and always those that round inputs, reduce in less
 * than FP32, transform (Winograd, FFT) or differ from run to run. Ones compiled at run
 * time serve only where there is no other, and not where ours are faster. NULL: out of
 * memory. Thread-safe. */
struct cudnn_choice *cudnn_choose(const struct cudnn_target *target,
                                  const struct cudnn_problem *problem);

#endif /* PLUGINS_CONVOLUTION_CUDNN_CHOICE_H */
