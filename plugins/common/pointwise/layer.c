/* SPDX-License-Identifier: Apache-2.0
 *
 * What the pointwise layers have alike as layers: the broadcast's shape, the veto of
 * vectors that do not meet, references.
 */
#include "plugins/common/dense.h"
#include "plugins/common/pointwise.h"
#include "plugins/common/pointwise/exact.h"

/* Dim d of the output from dim `own` of input k, which is the same from the end. */
static int stretch(const strata_node *n, int32_t k, int own, int d)
{
    const int64_t dim = n->in[k].dims[own];
    int64_t *out = &n->out[0].dims[d];
    if (dim != *out && dim != 1 && *out != 1)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "dim %d of input %d is %lld, before it %lld; equal dims or 1 "
                           "are needed",
                           own, (int)k, (long long)dim, (long long)*out);
    if (*out == 1)
        *out = dim;
    return STRATA_OK;
}

int pointwise_shape(const strata_node *n)
{
    strata_tensor *out = &n->out[0];
    int32_t rank = 0;
    for (int32_t k = 0; k < n->n_in; k++)
        rank = n->in[k].rank > rank ? n->in[k].rank : rank;
    out->rank = rank;
    for (int32_t d = 0; d < rank; d++)
        out->dims[d] = 1;
    for (int32_t k = 0; k < n->n_in; k++)
        for (int32_t d = 0; d < n->in[k].rank; d++) {
            int status = stretch(n, k, d, d + rank - n->in[k].rank);
            if (status)
                return status;
        }
    return STRATA_OK;
}

int pointwise_accept(const strata_node *n)
{
    for (int32_t k = 0; k < n->n_in; k++) {
        const strata_tensor *t = &n->in[k];
        if (t->rank < n->out[0].rank && t->vector > 1 && t->dims[t->vector_dim] > 1)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                               "input %d of rank %d has vectors along another dim than "
                               "the output; give it rank %d",
                               (int)k, (int)t->rank, (int)n->out[0].rank);
    }
    return STRATA_OK;
}

/* ---- references ----------------------------------------------------------------------
 */

struct operand {
    const strata_tensor *t;
    const void *data;
};

static double value_double(const struct operand *o, int64_t i)
{
    return dense_is_real(o->t->dtype) ? ((const double *)o->data)[i]
                                      : (double)((const int64_t *)o->data)[i];
}

static void element(const strata_node *n, const struct operand *o, int count, int op,
                    const struct pointwise_constants *k, int64_t i, void *to)
{
    const strata_tensor *out = &n->out[0];
    const int integers = !dense_is_real(o[count - 1].t->dtype) &&
                         (count < 2 || !dense_is_real(o[count - 2].t->dtype));
    int64_t index[STRATA_MAX_RANK], x[POINTWISE_INPUTS] = {0};
    double v[POINTWISE_INPUTS] = {0};
    dense_index(out, i, index);
    for (int j = 0; j < count; j++) {
        const int64_t at = dense_broadcast_from(o[j].t, index, out->rank);
        if (integers)
            x[j] = ((const int64_t *)o[j].data)[at];
        else
            v[j] = value_double(&o[j], at);
    }
    int64_t whole = integers ? exact_integer(op, k, x[0], x[1], x[2]) : 0;
    double real = integers ? 0 : exact_double(op, k, v[0], v[1], v[2]);
    for (int j = 2; j < count && op != POINTWISE_SELECT; j++) {
        whole = exact_integer(op, k, whole, x[j], 0);
        real = exact_double(op, k, real, v[j], 0);
    }
    if (dense_is_real(out->dtype))
        ((double *)to)[i] = real;
    else
        ((int64_t *)to)[i] =
            dense_wrap(out->dtype, integers ? whole : exact_truncated(real, out->dtype));
}

int pointwise_reference(const strata_node *n, const void *const *in,
                        const void *const *weight, void *const *out, int op,
                        const struct pointwise_constants *k)
{
    struct operand operand[POINTWISE_INPUTS];
    const int64_t total = dense_count(&n->out[0]);
    int count = 0;
    for (int32_t i = 0; i < n->n_in; i++)
        operand[count++] = (struct operand){&n->in[i], in[i]};
    if (n->n_weights > 0)
        operand[count++] = (struct operand){&n->weight[0], weight[0]};
    for (int64_t i = 0; i < total; i++)
        element(n, operand, count, op, k, i, out[0]);
    return STRATA_OK;
}
