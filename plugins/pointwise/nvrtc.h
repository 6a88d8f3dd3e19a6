/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels compiled while the process runs, by NVRTC, which is found when it is first
 * needed: nothing links it. C and CUDA.
 */
#ifndef PLUGINS_POINTWISE_NVRTC_H
#define PLUGINS_POINTWISE_NVRTC_H

#include <cuda_runtime_api.h>

#include <strata/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether there is an NVRTC: STRATA_OK, or EUNSUPPORTED with the reason in n->err. */
int nvrtc_check(const strata_node *n);

/* The kernel called `name` of a source for n->sm, ready on the current device. A source
 * is compiled once a process, and its kernels live as long as that. */
int nvrtc_kernel(const strata_node *n, const char *source, const char *name,
                 cudaKernel_t *kernel);

#ifdef __cplusplus
}
#endif

#endif /* PLUGINS_POINTWISE_NVRTC_H */
