/* SPDX-License-Identifier: Apache-2.0
 *
 * What the CUDA kernels of Deconvolution share. State and tensors are Convolution's.
 */
#ifndef PLUGINS_DECONVOLUTION_CUDA_DECONVOLUTION_CUH
#define PLUGINS_DECONVOLUTION_CUDA_DECONVOLUTION_CUH

#include "plugins/convolution/cuda/convolution.cuh"
#include "plugins/common/deconvolution/deconvolution.h"

/* Of phases side by side. */
struct sides_state : convolution_state {
    int64_t side; /* columns of a phase */
};

static inline int deconvolution_resolve(const strata_node *n, convolution_state *s)
{
    const strata_deconvolution *p = (const strata_deconvolution *)n->params;
    s->groups = p->groups;
    s->in_c = n->in[0].dims[1] / p->groups;
    s->out_c = n->out[0].dims[1] / p->groups;
    return deconvolution_window(&s->w, p, &n->in[0], &n->weight[DECONVOLUTION_WEIGHT],
                                n->host, n->err);
}

/* ---- impls, a file each -------------------------------------------------------------- */

CONVOLUTION_TACTIC(transposed_direct)
int phases_accept(const strata_node *n);
CONVOLUTION_TACTIC(phases_256x128)
CONVOLUTION_TACTIC(phases_128x256)
CONVOLUTION_TACTIC(phases_128x128)
CONVOLUTION_TACTIC(phases_128x64)
CONVOLUTION_TACTIC(phases_64x64)

#endif /* PLUGINS_DECONVOLUTION_CUDA_DECONVOLUTION_CUH */
