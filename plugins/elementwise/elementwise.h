/* SPDX-License-Identifier: Apache-2.0
 *
 * What ElementWise's impls on all devices share: which dtypes an operation takes, and its
 * number among the pointwise operations.
 */
#ifndef PLUGINS_ELEMENTWISE_ELEMENTWISE_H
#define PLUGINS_ELEMENTWISE_ELEMENTWISE_H

#include <strata/layers.h>

#include "plugins/common/pointwise/operations.h"

#define ELEMENTWISE_INPUTS 8

enum { ELEMENTWISE_FLOATS = 1, ELEMENTWISE_INTEGERS = 2, ELEMENTWISE_BOOLS = 4 };

static inline int elementwise_takes(int32_t op)
{
    return op == STRATA_MEAN                                ? ELEMENTWISE_FLOATS
           : op >= STRATA_BIT_AND                           ? ELEMENTWISE_INTEGERS
           : op >= STRATA_AND && op <= STRATA_XOR           ? ELEMENTWISE_BOOLS
                                                            : ELEMENTWISE_FLOATS |
                                                    ELEMENTWISE_INTEGERS;
}

static inline int elementwise_class(int32_t dtype)
{
    return dtype == STRATA_FP32 || dtype == STRATA_FP16 || dtype == STRATA_BF16 ||
                   dtype == STRATA_FP64
               ? ELEMENTWISE_FLOATS
           : dtype == STRATA_BOOL8                            ? ELEMENTWISE_BOOLS
           : dtype == STRATA_E4M3 || dtype == STRATA_E5M2 ? 0
                                                          : ELEMENTWISE_INTEGERS;
}

/* Mean is a sum to begin with. */
static inline int elementwise_operation(const strata_elementwise *p)
{
    return p->op == STRATA_MOD && p->fmod ? POINTWISE_FMOD
           : p->op == STRATA_MEAN         ? POINTWISE_ELEMENTWISE + STRATA_SUM
                                          : POINTWISE_ELEMENTWISE + p->op;
}

static inline struct pointwise_constants elementwise_constants(int32_t dtype)
{
    struct pointwise_constants k = {0, 0, 0, 0};
    k.bits = dtype == STRATA_INT64 ? 64 : dtype == STRATA_INT32 ? 32 : 8;
    return k;
}

/* All inputs are of one dtype, but pow's two may differ. */
static inline int elementwise_check(const strata_node *n)
{
    const strata_elementwise *p = (const strata_elementwise *)n->params;
    const int takes = elementwise_takes(p->op);
    for (int32_t k = 0; k < n->n_in; k++) {
        if (!(takes & elementwise_class(n->in[k].dtype)))
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "input %d's dtype is none that this op takes: it takes "
                               "%s; put a Cast before it",
                               (int)k,
                               takes == ELEMENTWISE_BOOLS      ? "bool"
                               : takes == ELEMENTWISE_FLOATS   ? "floats"
                               : takes == ELEMENTWISE_INTEGERS ? "integers"
                                                               : "floats and integers");
        if (p->op != STRATA_POW && n->in[k].dtype != n->in[0].dtype)
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "inputs 0 and %d have two dtypes; put a Cast before one "
                               "of them (pow alone takes two)",
                               (int)k);
    }
    return STRATA_OK;
}

#endif /* PLUGINS_ELEMENTWISE_ELEMENTWISE_H */
