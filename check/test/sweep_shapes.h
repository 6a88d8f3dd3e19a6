/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes that cases are run over: N, C, then space.
 */
#ifndef CHECK_TEST_SWEEP_SHAPES_H
#define CHECK_TEST_SWEEP_SHAPES_H

#include "check/harness/harness.h"

#define SWEEP_MOST_SHAPES 200
#define SWEEP_FEW_SHAPES 4
#define SWEEP_LARGE_SHAPES 3

/* Each fills out, as many as its constant says at most, and returns how many they are. */
/* Small ones first, so that what fails first is small. */
size_t sweep_shapes(struct harness_shape *out, int rank, bool thorough);
/* With one image and several, pad lanes and none. */
size_t sweep_few_shapes(struct harness_shape *out, int rank);
/* Of some ten thousand elements. */
size_t sweep_large_shapes(struct harness_shape *out, int rank);

#endif /* CHECK_TEST_SWEEP_SHAPES_H */
