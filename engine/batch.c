/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches of an engine: whether it is right for fewer rows than it was built for, and the
 * engines inside it that are planned for the smaller ones of [profile].
 */
#include "engine/file/stored.h"

#include <stdlib.h>

/* Bytes from row to row of a binding; 0 if its rows are not in one piece each. */
static int64_t row_bytes(const strata_desc *d)
{
    const int64_t row = strata_desc_size(d) / d->dims[0];
    return d->dims[0] == 1 || d->strides[0] == row ? strata_desc_bytes(d) / d->dims[0]
                                                   : 0;
}

/* Which bindings have a row for each of the batch, given the network for another. */
static int find_rows(strata_engine *e, const strata_network *other, strata_error *err)
{
    const struct execution *x = e->execution;
    for (size_t i = 0; i < x->n_bindings; i++) {
        const struct execution_value *v = &x->values[x->bindings[i].value];
        if (other->tensors[v->tensor].dims[0] == e->network->tensors[v->tensor].dims[0])
            continue;
        e->row_bytes[i] = row_bytes(&v->desc);
        if (e->row_bytes[i] == 0)
            return error_set(err, STRATA_EUNSUPPORTED,
                             "'%s' is bound as %s, where rows are not in one piece each",
                             x->bindings[i].name,
                             format_mask_name(UINT64_C(1) << v->format, v->desc.rank));
    }
    return STRATA_OK;
}

/* One row more asks everything of a network that fewer would, and layers that hold the
 * batch as a number give themselves away. */
static int probe(strata_engine *e, strata_error *err)
{
    strata_network *other = NULL;
    int status = network_batch(e->network, &e->batch, err);
    if (status == STRATA_OK)
        status = network_rebatch(&other, e->network, e->batch + 1, err);
    if (status == STRATA_OK)
        status = find_rows(e, other, err);
    strata_network_destroy(other);
    return status;
}

static int add_smaller(strata_engine *e, int64_t batch, strata_error *err)
{
    strata_network *net = NULL;
    strata_engine *smaller = NULL;
    struct record *record = NULL;
    int status = network_rebatch(&net, e->network, batch, err);
    if (status == STRATA_OK && e->stored) {
        record = e->stored->smaller[e->n_smaller];
        e->stored->smaller[e->n_smaller] = NULL;
    }
    if (status == STRATA_OK)
        status = engine_build_lent(&smaller, e, net, record, err);
    strata_network_destroy(net); /* the engine has its own reference */
    if (status != STRATA_OK)
        return status;
    smaller->batch = batch;
    e->smaller[e->n_smaller++] = smaller;
    return STRATA_OK;
}

/* Mutual recursion with build (engine.c): it ends because what it builds has a lender,
 * and then no batches are added. */
int engine_add_batches(strata_engine *e, strata_error *err)
{
    const strata_network *net = e->network;
    strata_error why = {0};
    int status = probe(e, &why);
    if (status == STRATA_ENOMEM || (status != STRATA_OK && net->n_batches > 1))
        return error_set(err, status, "%s: %s", net->path, why.message);
    if (status != STRATA_OK) {
        e->only_batch = duplicate(why.message, err);
        return e->only_batch ? STRATA_OK : STRATA_ENOMEM;
    }
    e->smaller = zalloc(net->n_batches, sizeof(*e->smaller), "an engine's batches", err);
    status = e->smaller ? STRATA_OK : STRATA_ENOMEM;
    for (size_t i = 0; i + 1 < net->n_batches && status == STRATA_OK; i++)
        status = add_smaller(e, net->batches[i], err);
    return status;
}

/* Mutual recursion with strata_engine_destroy (engine.c): it ends because the engines
 * inside have none inside. */
void engine_free_batches(strata_engine *e)
{
    for (size_t i = 0; i < e->n_smaller; i++)
        strata_engine_destroy(e->smaller[i]);
    free(e->smaller);
    free(e->only_batch);
}

int64_t strata_engine_batch(const strata_engine *e)
{
    return e ? e->batch : 0;
}

int strata_engine_batches(const strata_engine *e, int64_t *out, int n)
{
    if (!e)
        return 0;
    for (int i = 0; out && i < n && i <= (int)e->n_smaller; i++)
        out[i] = i < (int)e->n_smaller ? e->smaller[i]->batch : e->batch;
    return (int)e->n_smaller + 1;
}
