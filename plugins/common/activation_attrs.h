/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of activations in the order of their enumerators, and rows of attributes for a
 * layer that has one, or none, among other things: its kind and two numbers.
 */
#ifndef PLUGINS_COMMON_ACTIVATION_ATTRS_H
#define PLUGINS_COMMON_ACTIVATION_ATTRS_H

#include <strata/layers.h>

#define ACTIVATION_KINDS                                                                 \
    "relu|leaky_relu|relu6|clip|sigmoid|tanh|elu|selu|softplus|softsign|gelu|silu|"      \
    "hard_sigmoid|hard_swish|mish|gelu_tanh|swish|celu|thresholded_relu|shrink|"         \
    "scaled_tanh"

/* clang-format off */
/* The numbers of a kind, of which `at` is the field's offset. */
#define ACTIVATION_NUMBER(called, at)                                                    \
    {.name = called, .type = STRATA_F64, .offset = at, .def = STRATA_KIND_DEFAULT,       \
     .doc = "as in Activation; inf: the kind's own"}

/* before, behind: of the names `activation`, `alpha`, `beta`; of: whose function it is.
 * The kind's field is 0 for none, 1 + STRATA_RELU ... */
#define ACTIVATION_ATTRS(before, behind, at_kind, at_alpha, at_beta, of)                 \
    {.name = before "activation" behind, .type = STRATA_ENUM, .offset = at_kind,         \
     .choices = "none|" ACTIVATION_KINDS,                                                \
     .doc = "function of " of ", as in Activation"},                                     \
    ACTIVATION_NUMBER(before "alpha" behind, at_alpha),                                  \
    ACTIVATION_NUMBER(before "beta" behind, at_beta)
/* clang-format on */

#endif /* PLUGINS_COMMON_ACTIVATION_ATTRS_H */
