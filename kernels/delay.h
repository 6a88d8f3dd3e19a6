/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_DELAY_H
#define KERNELS_DELAY_H

#ifdef __cplusplus
extern "C"
#endif
    /* Keep a stream busy; gives a cudaError_t. delay.cu */
    int
    delay_cuda_launch(double ms, void *stream);

#endif /* KERNELS_DELAY_H */
