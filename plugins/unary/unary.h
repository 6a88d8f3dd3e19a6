/* SPDX-License-Identifier: Apache-2.0
 *
 * What Unary's impls on all devices share: which dtypes an operation takes.
 */
#ifndef PLUGINS_UNARY_UNARY_H
#define PLUGINS_UNARY_UNARY_H

#include <strata/layers.h>

enum { UNARY_FLOATS = 1, UNARY_INTEGERS = 2, UNARY_BOOLS = 4 };

static inline int unary_takes(int32_t op)
{
    switch (op) {
    case STRATA_UNARY_NOT: return UNARY_BOOLS;
    case STRATA_UNARY_BIT_NOT: return UNARY_INTEGERS;
    case STRATA_UNARY_ABS:
    case STRATA_UNARY_NEG:
    case STRATA_UNARY_SIGN:
    case STRATA_UNARY_FLOOR:
    case STRATA_UNARY_CEIL:
    case STRATA_UNARY_ROUND:
    case STRATA_UNARY_IS_NAN:
    case STRATA_UNARY_IS_INF: return UNARY_FLOATS | UNARY_INTEGERS;
    default: return UNARY_FLOATS;
    }
}

static inline int unary_class(int32_t dtype)
{
    return dtype == STRATA_FP32 || dtype == STRATA_FP16 || dtype == STRATA_BF16 ||
                   dtype == STRATA_FP64
               ? UNARY_FLOATS
           : dtype == STRATA_BOOL8                            ? UNARY_BOOLS
           : dtype == STRATA_E4M3 || dtype == STRATA_E5M2 ? 0
                                                          : UNARY_INTEGERS;
}

static inline int unary_tests(int32_t op)
{
    return op == STRATA_UNARY_IS_NAN || op == STRATA_UNARY_IS_INF;
}

static inline int unary_check(const strata_node *n)
{
    const strata_unary *p = (const strata_unary *)n->params;
    const int takes = unary_takes(p->op);
    if (!(takes & unary_class(n->in[0].dtype)))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "the input's dtype is none that this op takes: it takes %s; "
                           "put a Cast before it",
                           takes == UNARY_BOOLS      ? "bool"
                           : takes == UNARY_FLOATS   ? "floats"
                           : takes == UNARY_INTEGERS ? "integers"
                                                     : "floats and integers");
    return STRATA_OK;
}

/* Rows hold more pairs of dtypes than the op has. */
static inline int unary_accept(const strata_node *n)
{
    const strata_unary *p = (const strata_unary *)n->params;
    const int32_t out = unary_tests(p->op) ? STRATA_BOOL8 : n->in[0].dtype;
    if (n->out[0].dtype != out)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the op gives another dtype");
    return unary_check(n);
}

#endif /* PLUGINS_UNARY_UNARY_H */
