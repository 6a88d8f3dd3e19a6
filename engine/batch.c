/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes of an engine: whether it is right for fewer rows than it was built for, and the
 * engines inside it that are planned for the other sizes that [profile] lists.
 */
#include "engine/file/stored.h"

#include <stdlib.h>
#include <string.h>

/* Bytes from row to row of a binding; 0 if its rows are not in one piece each. */
static int64_t row_bytes(const strata_desc *d)
{
    const int64_t row = strata_desc_size(d) / d->dims[0];
    return d->dims[0] == 1 || d->strides[0] == row ? strata_desc_bytes(d) / d->dims[0]
                                                   : 0;
}

static int rows_apart(const strata_engine *e, size_t binding, strata_error *err)
{
    const struct execution *x = e->execution;
    const struct execution_value *v = &x->values[x->bindings[binding].value];
    return error_set(err, STRATA_EUNSUPPORTED,
                     "'%s' is bound as %s, where rows are not in one piece each",
                     x->bindings[binding].name,
                     format_mask_name(UINT64_C(1) << v->format, v->desc.rank));
}

/* Which bindings have a row for each of the batch, given the network for another. */
static int find_rows(strata_engine *e, const strata_network *other, strata_error *err)
{
    const struct execution *x = e->execution;
    int status = STRATA_OK;
    for (size_t i = 0; i < x->n_bindings && status == STRATA_OK; i++) {
        const struct execution_value *v = &x->values[x->bindings[i].value];
        if (other->tensors[v->tensor].dims[0] == e->network->tensors[v->tensor].dims[0])
            continue;
        e->row_bytes[i] = row_bytes(&v->desc);
        if (e->row_bytes[i] == 0)
            status = rows_apart(e, i, err);
    }
    if (status != STRATA_OK)
        memset(e->row_bytes, 0, x->n_bindings * sizeof *e->row_bytes);
    return status;
}

uint64_t engine_bytes_of_rows(const strata_engine *e, size_t binding, int64_t rows)
{
    const struct execution *x = e->execution;
    const int64_t of_row = e->row_bytes[binding];
    return (uint64_t)(of_row ? of_row * rows
                             : x->values[x->bindings[binding].value].bytes);
}

int engine_settle_rows(strata_engine *e, const strata_engine *whole, strata_error *err)
{
    const struct execution *x = e->execution;
    strata_error why = {0};
    if (whole->batch_symbol >= 0)
        e->batch = e->sizes[whole->batch_symbol];
    else if (network_batch(e->network, &e->batch, &why) != STRATA_OK)
        e->batch = whole->batch; /* it has no rows, or is run whole */
    for (size_t i = 0; i < x->n_bindings; i++) {
        const strata_desc *d = &x->values[x->bindings[i].value].desc;
        if (!whole->row_bytes[i] || strata_desc_count(d) == 0)
            continue;
        if ((e->row_bytes[i] = row_bytes(d)) == 0)
            return rows_apart(e, i, err);
    }
    return STRATA_OK;
}

/* One row more asks everything of a network that fewer would, and layers that hold the
 * batch as a number give themselves away. */
static int probe_batch(strata_engine *e, strata_error *err)
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

/* The shapes of the least sizes; and with each size changed by a step, but not to 1,
 * which stands for any in places: layers that hold it as a number give themselves away.
 */
static int probe_sizes(const strata_engine *e, strata_error *err)
{
    const strata_network *net = e->network;
    int64_t sizes[NETWORK_MAX_SYMBOLS];
    int status = STRATA_OK;
    for (size_t k = 0; k <= net->n_symbols && status == STRATA_OK; k++) {
        strata_network *other = NULL;
        for (size_t i = 0; i < net->n_symbols; i++) {
            const struct network_symbol *s = &net->symbols[i];
            const int64_t near =
                s->most - s->step > 1 ? s->most - s->step : s->most + s->step;
            const bool batch = (int)i == e->batch_symbol;
            sizes[i] = batch                 ? s->most
                       : k == net->n_symbols ? s->least
                       : k == i              ? near
                                             : s->most;
        }
        status = network_resize(&other, net, sizes, err);
        strata_network_destroy(other);
    }
    return status;
}

static int add_smaller(strata_engine *e, size_t plan, strata_error *err)
{
    int64_t sizes[NETWORK_MAX_SYMBOLS] = {0};
    strata_network *net = NULL;
    strata_engine *smaller = NULL;
    struct record *record = NULL;
    engine_plan_sizes(e->network, plan, sizes);
    int status = network_resize(&net, e->network, sizes, err);
    if (status == STRATA_OK && e->stored) {
        record = e->stored->smaller[e->n_smaller];
        e->stored->smaller[e->n_smaller] = NULL;
    }
    if (status == STRATA_OK)
        status = engine_build_lent(&smaller, e, net, record, err);
    strata_network_destroy(net); /* the engine has its own reference */
    if (status != STRATA_OK)
        return status;
    e->smaller[e->n_smaller++] = smaller;
    memcpy(smaller->sizes, sizes, sizeof sizes);
    return engine_settle_rows(smaller, e, err);
}

/* Which sizes it is right for, and whether rows are apart. */
static int probe(strata_engine *e, strata_error *err)
{
    const strata_network *net = e->network;
    strata_error why = {0};
    int status = probe_batch(e, &why);
    if (status == STRATA_ENOMEM)
        return error_set(err, status, "%s", why.message);
    if (status != STRATA_OK && !(e->only_batch = duplicate(why.message, err)))
        return STRATA_ENOMEM;
    e->batch_symbol = status == STRATA_OK ? net->batch_symbol : -1;
    if (net->batch_symbol >= 0 && e->batch_symbol < 0)
        log_line(STRATA_LOG_INFO, "%s: %s is no batch, and run at its very sizes: %s",
                 net->path, net->symbols[net->batch_symbol].name, why.message);
    status = probe_sizes(e, &why);
    return status == STRATA_OK ? status : error_set(err, status, "%s", why.message);
}

/* Mutual recursion with build (engine.c): it ends because what it builds has a lender,
 * and then no sizes are added. */
int engine_add_sizes(strata_engine *e, strata_error *err)
{
    const size_t n = engine_count_plans(e->network);
    int status = probe(e, err);
    if (status != STRATA_OK)
        return status;
    engine_plan_sizes(e->network, n - 1, e->sizes);
    e->smaller = zalloc(n, sizeof(*e->smaller), "an engine's sizes", err);
    status = e->smaller ? STRATA_OK : STRATA_ENOMEM;
    for (size_t i = 0; i + 1 < n && status == STRATA_OK; i++)
        status = add_smaller(e, i, err);
    return status;
}

/* Mutual recursion with strata_engine_destroy (engine.c): it ends because the engines
 * inside have none inside. */
void engine_free_sizes(strata_engine *e)
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
    if (e->batch_symbol < 0) {
        if (out && n > 0)
            out[0] = e->batch;
        return 1;
    }
    const struct network_symbol *s = &e->network->symbols[e->batch_symbol];
    for (int i = 0; out && i < n && i < (int)s->n_sizes; i++)
        out[i] = s->sizes[i];
    return (int)s->n_sizes;
}
