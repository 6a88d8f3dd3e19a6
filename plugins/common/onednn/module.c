/* SPDX-License-Identifier: Apache-2.0
 *
 * Module onednn: host impls from oneDNN 2 for layers that core defines. In run, oneDNN's
 * own bookkeeping for a call's arguments takes a few hundred bytes from malloc; the
 * module itself allocates nothing there.
 */
#include "plugins/common/onednn/primitive.h"

static const strata_extends *const extends[] = {
    &onednn_convolution,           &onednn_deconvolution,
    &onednn_fully_connected,       &onednn_lrn,
    &onednn_matrix_multiply,       &onednn_pooling,
    &onednn_quantized_convolution, &onednn_quantized_deconvolution,
    &onednn_quantized_product};

STRATA_MODULE_EXTENDS("onednn", "1.0.0",
                      "+core::Convolution,+core::Deconvolution,+core::FullyConnected,"
                      "+core::LRN,+core::MatrixMultiply,+core::Pooling,"
                      "+core::QuantizedConvolution,+core::QuantizedDeconvolution,"
                      "+core::QuantizedProduct",
                      extends)
