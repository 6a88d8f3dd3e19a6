/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of the layers that the oneDNN module extends, made into problems with random
 * data and an FP64 answer from plain loops.
 */
#ifndef TESTS_LAYERS_ONEDNN_PROBLEMS_H
#define TESTS_LAYERS_ONEDNN_PROBLEMS_H

#include "tests/layers/onednn_trial.h"

/* A constant strata_ints. */
#define INTS(...)                                                                        \
    {                                                                                    \
        (const int64_t[]){__VA_ARGS__},                                                  \
            sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)                           \
    }

struct convolution_case {
    const char *name;
    int rank;
    int64_t n, c, k, in[3];
    int64_t kernel[3];
    strata_convolution params;
    bool bias;
};

/* FullyConnected. */
struct product_case {
    const char *name;
    int rank;
    int64_t in[5];
    int64_t units;
    bool transposed, bias;
};

struct pooling_case {
    const char *name;
    int rank;
    int64_t n, c, in[3], kernel[3];
    strata_pooling params;
};

/* Params stay the case's, so that must outlive the problem. */
struct problem convolution_problem(const struct convolution_case *c);
struct problem pooling_problem(const struct pooling_case *c);
/* params is filled and must outlive the problem. */
struct problem product_problem(const struct product_case *c,
                               strata_fully_connected *params);

#endif /* TESTS_LAYERS_ONEDNN_PROBLEMS_H */
