/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise's impl by a kernel compiled for the program, beside the interpreter.
 */
#ifndef PLUGINS_POINTWISE_COMPILED_CUH
#define PLUGINS_POINTWISE_COMPILED_CUH

#include "plugins/pointwise/source.h"

struct compiled_state {
    struct program program;
    struct source_kind kind;
    cudaKernel_t kernel;
};

int compiled_accept(const strata_node *n); /* of what the interpreter takes */
int compiled_setup(const strata_node *n, void *state);
int compiled_run(const strata_run *r);

/* The dtype of the floats; all truths: as FP32. */
static inline int32_t float_dtype(const strata_tensor *in, int32_t n_in,
                                  const strata_tensor *out)
{
    int32_t dtype = out->dtype;
    for (int32_t i = 0; i < n_in && dtype == STRATA_BOOL8; i++)
        dtype = in[i].dtype;
    return dtype == STRATA_BOOL8 ? STRATA_FP32 : dtype;
}

#endif /* PLUGINS_POINTWISE_COMPILED_CUH */
