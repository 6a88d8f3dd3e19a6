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
/* oneDNN has no softsign, and a hard_sigmoid made of its clip would lose a NaN; to keep
 * one in the relu, relu6 and clip of every convolution would cost more than it is worth.
 */
#define ONEDNN_ACTIVATIONS                                                               \
    ((UINT64_C(1) << STRATA_ACTIVATION_COUNT) - 1 - (UINT64_C(1) << STRATA_SOFTSIGN) -   \
     (UINT64_C(1) << STRATA_HARD_SIGMOID))

/* Put the node's epilogue into attr and bind its operands. */
int onednn_epilogue(const strata_node *n, const struct onednn_request *request,
                    dnnl_primitive_attr_t attr, struct onednn_arguments *arguments);

#endif /* PLUGINS_COMMON_ONEDNN_EPILOGUE_H */
