/* SPDX-License-Identifier: Apache-2.0
 *
 * Module cublaslt: CUDA impls from cuBLASLt for layers that core defines.
 */
#include "plugins/common/cublaslt/module.h"

static const strata_extends *const extends[] = {
    &cublaslt_convolution, &cublaslt_fully_connected, &cublaslt_matrix_multiply,
    &cublaslt_rnn};

STRATA_MODULE_EXTENDS("cublaslt", "1.0.0",
                      "+core::Convolution,+core::FullyConnected,+core::MatrixMultiply,"
                      "+core::RNN",
                      extends)
