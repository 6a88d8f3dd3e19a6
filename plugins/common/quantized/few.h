/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles of hopper.cu for launches of few blocks. Behind another kernel these wait for
 * code that nobody left near rather than for operations, so values in doubt have a way of
 * their own, in line. It takes registers, which larger tiles do not have, and lengthens
 * what many blocks run.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_FEW_H
#define PLUGINS_COMMON_QUANTIZED_FEW_H

#include "plugins/common/product/launch.cuh"
#include "plugins/common/quantized/hopper.h"
#include "plugins/common/quantized/words.cuh"

/* Of the same tile, or NULL. */
const product_launch *quantized_few_launch(int tactic);

/* Whether a launch of the job, which has all but its tiles, is one of few blocks. */
bool quantized_is_few(const quantized_product_job &job, const product_launch &l,
                      const quantized_hopper_state &state);

cudaError_t quantized_few_run(const quantized_product_job &of, const product_launch &l,
                              const quantized_hopper_state &state, cudaStream_t stream);

#endif /* PLUGINS_COMMON_QUANTIZED_FEW_H */
