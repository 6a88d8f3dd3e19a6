/* SPDX-License-Identifier: Apache-2.0
 *
 * The cases of every built-in layer, for the tests of the host's impls and of CUDA's.
 */
#ifndef TESTS_LAYERS_LAYER_CASES_H
#define TESTS_LAYERS_LAYER_CASES_H

#include "check/harness/harness.h"

/* Layers that combine many elements into one: Convolution, FullyConnected, Pooling. */
extern const struct layer_case layer_cases_w[];
extern const size_t layer_cases_w_count;
/* Layers that compute element by element or move data. */
extern const struct layer_case layer_cases_f[];
extern const size_t layer_cases_f_count;
/* Large sizes, for devices. */
extern const struct layer_case layer_cases_large[];
extern const size_t layer_cases_large_count;

#endif /* TESTS_LAYERS_LAYER_CASES_H */
