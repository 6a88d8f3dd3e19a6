/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters of the built-in layer InvertedResidual, for modules that add impls to it; as
 * in strata/layers.h, which has those of the others.
 */
#ifndef STRATA_INVERTED_RESIDUAL_H
#define STRATA_INVERTED_RESIDUAL_H

#include <strata/layers.h>

#ifdef __cplusplus
extern "C" {
#endif

/* InvertedResidual: a 1x1 convolution (or none), a depthwise one, a 1x1 one (or none),
 * each with a bias and an activation; the last result has a second input added before
 * its activation. A product is there where it has results or a weight. */
enum { STRATA_INVERTED_EXPANDED, STRATA_INVERTED_CONVOLVED, STRATA_INVERTED_PROJECTED,
       STRATA_INVERTED_STAGES };
typedef struct strata_inverted_residual {
    strata_convolution depthwise; /* its windows alone */
    int64_t expanded, projected;  /* results of the products; 0: of the weights */
    int32_t activation[STRATA_INVERTED_STAGES]; /* 0: none; 1 + STRATA_RELU ... */
    int32_t reserved;
    double alpha[STRATA_INVERTED_STAGES], beta[STRATA_INVERTED_STAGES]; /* of these;
                                                     +infinity: the kind's own */
} strata_inverted_residual;
enum { STRATA_INVERTED_EXPAND, STRATA_INVERTED_EXPAND_BIAS, STRATA_INVERTED_DEPTHWISE,
       STRATA_INVERTED_DEPTHWISE_BIAS, STRATA_INVERTED_PROJECT,
       STRATA_INVERTED_PROJECT_BIAS, STRATA_INVERTED_WEIGHTS };

#ifdef __cplusplus
}
#endif

#endif /* STRATA_INVERTED_RESIDUAL_H */
