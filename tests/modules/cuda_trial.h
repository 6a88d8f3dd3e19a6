/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of cuda_trial.c, put on a stream; results are cudaError_t.
 */
#ifndef TESTS_MODULES_CUDA_TRIAL_H
#define TESTS_MODULES_CUDA_TRIAL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int trial_add(float *y, const float *x, int64_t n, float add, void *stream);
int trial_wait(int64_t ns, void *stream);
int trial_fault(void *stream);

#ifdef __cplusplus
}
#endif

#endif /* TESTS_MODULES_CUDA_TRIAL_H */
