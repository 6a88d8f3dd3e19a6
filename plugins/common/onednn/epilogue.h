/* SPDX-License-Identifier: Apache-2.0
 *
 * Epilogues as oneDNN post-ops, in the order of strata_epilogue: scale, bias, residual,
 * activation.
 */
#ifndef PLUGINS_COMMON_ONEDNN_EPILOGUE_H
#define PLUGINS_COMMON_ONEDNN_EPILOGUE_H

#include "plugins/common/onednn/primitive.h"

/* What onednn_epilogue turns into post-ops, for an impl's declaration. */
#define ONEDNN_EPILOGUES                                                                 \
    (STRATA_EPILOGUE_SCALE | STRATA_EPILOGUE_BIAS | STRATA_EPILOGUE_RESIDUAL |           \
     STRATA_EPILOGUE_ACTIVATION)
/* Not softsign, celu, thresholded_relu, shrink and scaled_tanh, which oneDNN lacks, nor
 * hard_sigmoid: made of its clip it would lose a NaN. To keep one in the relu, relu6 and
 * clip of every convolution would cost more than it is worth: STRATA_NAN_DROPPED. */
#define ONEDNN_KIND(kind_) (UINT64_C(1) << (kind_))
#define ONEDNN_ACTIVATIONS                                                               \
    ((ONEDNN_KIND(STRATA_SWISH + 1) - 1) & ~ONEDNN_KIND(STRATA_SOFTSIGN) &               \
     ~ONEDNN_KIND(STRATA_HARD_SIGMOID))

/* Put the node's epilogue into attr and bind its operands. */
int onednn_epilogue(const strata_node *n, const struct onednn_request *request,
                    dnnl_primitive_attr_t attr, struct onednn_arguments *arguments);

#endif /* PLUGINS_COMMON_ONEDNN_EPILOGUE_H */
