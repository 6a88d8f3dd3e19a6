/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedAttention on CUDA: what its files share.
 */
#ifndef PLUGINS_QUANTIZED_ATTENTION_FLOAT8_H
#define PLUGINS_QUANTIZED_ATTENTION_FLOAT8_H

#include "plugins/attention/job.cuh"

/* Scales of one element each, on the device; to_scale: of outputs of E4M3. */
struct quantized_attention_job {
    attention_job job;
    const float *q_scale, *k_scale, *v_scale, *to_scale;
};

/* turned: quantized_attention_float8_workspace bytes; counters: as attention_hopper's. */
size_t quantized_attention_float8_workspace(const struct attention_plan *p);
cudaError_t quantized_attention_float8(const struct quantized_attention_job *a,
                                       void *turned, void *counters, cudaStream_t stream);

#endif /* PLUGINS_QUANTIZED_ATTENTION_FLOAT8_H */
