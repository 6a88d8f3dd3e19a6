/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_LEAD_H
#define KERNELS_LEAD_H

#ifdef __cplusplus
extern "C"
#endif
    /* A short kernel that lets the next one be launched at once; gives a cudaError_t.
     * lead.cu */
    int
    lead_cuda_launch(void *stream);

#endif /* KERNELS_LEAD_H */
