/* SPDX-License-Identifier: Apache-2.0
 *
 * Module cublaslt: what its layers share. A layer says which product a node is and makes
 * its operands in setup; each rank of the library's list is an impl.
 */
#ifndef PLUGINS_COMMON_CUBLASLT_MODULE_H
#define PLUGINS_COMMON_CUBLASLT_MODULE_H

#include <strata/layers.h>

#include "plugins/common/cublaslt/product.h"

#define CUBLASLT_EPILOGUES (STRATA_EPILOGUE_RESIDUAL | STRATA_EPILOGUE_ACTIVATION)
/* Its GELU is the tanh form, approximated: cublaslt_start takes it for FP16. */
#define CUBLASLT_ACTIVATIONS                                                             \
    (UINT64_C(1) << STRATA_RELU | UINT64_C(1) << STRATA_GELU_TANH)

extern const strata_extends cublaslt_convolution, cublaslt_fully_connected,
    cublaslt_matrix_multiply, cublaslt_rnn;

/* What a layer's node is as a product, or why it is none. */
typedef int cublaslt_describe(const strata_node *n, struct cublaslt_problem *out);

/* Fill in what all layers have alike; vetoes FP16 and BF16 without leave to use tensor
 * cores, and GELU where its tanh is too coarse. */
int cublaslt_start(const strata_node *n, struct cublaslt_problem *out);

int cublaslt_accept(const strata_node *n, cublaslt_describe *describe, int rank);
size_t cublaslt_workspace(const strata_node *n, cublaslt_describe *describe, int rank);

/* Callbacks of one rank, named accept_R and so on, from `describe` and
 * `setup_rank(n, state, rank)`; WAY_accept_R and so on from WAY_describe and
 * WAY_setup_rank. */
#define CUBLASLT_RANK(R) CUBLASLT_WAY_RANK(, R)
#define CUBLASLT_WAY_RANK(way, R)                                                        \
    static int way##accept_##R(const strata_node *n)                                     \
    {                                                                                    \
        return cublaslt_accept(n, way##describe, R);                                     \
    }                                                                                    \
    static size_t way##workspace_##R(const strata_node *n)                               \
    {                                                                                    \
        return cublaslt_workspace(n, way##describe, R);                                  \
    }                                                                                    \
    static int way##setup_##R(const strata_node *n, void *state)                         \
    {                                                                                    \
        return way##setup_rank(n, state, R);                                             \
    }

/* An impl; of another way, `first` is the id of rank 0. */
#define CUBLASLT_IMPL(R, rows_, state_, run_)                                            \
    CUBLASLT_WAY_IMPL(, 1, R, rows_, state_, run_)
#define CUBLASLT_WAY_IMPL(way, first, R, rows_, state_, run_)                            \
    CUBLASLT_FLAGGED_IMPL(way, first, R, rows_, state_, run_, 0)
#define CUBLASLT_FLAGGED_IMPL(way, first, R, rows_, state_, run_, flags_)                \
    {                                                                                    \
        .id = first + R, .device = STRATA_CUDA,                                          \
        .flags = (flags_) | STRATA_WEIGHT_PACKED | STRATA_NAN_DROPPED, /* by its relu */ \
            .epilogues = CUBLASLT_EPILOGUES, .name = "cublaslt_" #way #R,                \
        .rows = STRATA_ARRAY(rows_), .activations = CUBLASLT_ACTIVATIONS,                \
        .efficiency = 0.7, .state_size = sizeof(state_), .accept = way##accept_##R,      \
        .workspace = way##workspace_##R, .setup = way##setup_##R, .run = run_            \
    }

#endif /* PLUGINS_COMMON_CUBLASLT_MODULE_H */
