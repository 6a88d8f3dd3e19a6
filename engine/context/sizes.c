/* SPDX-License-Identifier: Apache-2.0
 *
 * The sizes that a context's next runs are for, and what its bindings are at these.
 */
#include "engine/context/context.h"

#include <strata/sizes.h>

#include <inttypes.h>

#include "core/arguments.h"

/* ---- what is wanted -------------------------------------------------------------- */

static int check_batch(const strata_engine *e, int64_t batch, strata_error *err)
{
    if (e->only_batch && batch != e->batch)
        return error_set(err, STRATA_EUNSUPPORTED, "%s: a batch of %" PRId64 ": %s",
                         e->network->path, batch, e->only_batch);
    if (batch < 1 || batch > e->batch)
        return error_set(err, STRATA_EINVAL,
                         "a batch of %" PRId64 "; the engine takes 1 to %" PRId64
                         "; build the network with a larger one for more",
                         batch, e->batch);
    return e->batch_symbol < 0
               ? STRATA_OK
               : network_check_size(e->network, e->batch_symbol, batch, err);
}

static void want_batch(strata_context *c, int64_t batch)
{
    c->batch = batch;
    if (c->engine->batch_symbol >= 0)
        c->sizes[c->engine->batch_symbol] = batch;
    c->resolved = false;
}

int context_set_rows(strata_context *c, int64_t rows, strata_error *err)
{
    int status = check_batch(c->engine, rows, err);
    if (status == STRATA_OK && rows != c->batch)
        want_batch(c, rows);
    return status;
}

int strata_context_set_batch(strata_context *c, int64_t batch, strata_error *err)
{
    int status = context_enter(c, __func__, err);
    if (status != STRATA_OK)
        return status;
    return context_leave(c, context_set_rows(c, batch, err));
}

static void want_size(strata_context *c, int symbol, int64_t size)
{
    c->sizes[symbol] = size;
    if (symbol == c->engine->batch_symbol)
        c->batch = size;
    c->resolved = false;
}

static int set_dimension(strata_context *c, const char *name, int64_t size,
                         strata_error *err)
{
    const strata_network *net = c->engine->network;
    int symbol;
    int status = network_require_symbol(&symbol, net, name, err);
    if (status == STRATA_OK)
        status = network_check_size(net, symbol, size, err);
    if (status == STRATA_OK)
        want_size(c, symbol, size);
    return status;
}

int strata_context_set_dimension(strata_context *c, const char *name, int64_t extent,
                                 strata_error *err)
{
    int status = ARGUMENTS(err, {"context", c}, {"name", name});
    if (status == STRATA_OK)
        status = context_enter(c, __func__, err);
    return status != STRATA_OK ? status
                               : context_leave(c, set_dimension(c, name, extent, err));
}

/* A dim that is a sum follows from its names, which other inputs give; told is what it
 * can never be. */
static int check_sum(const strata_context *c, const struct network_input *in, int d,
                     int64_t size, strata_error *err)
{
    int64_t least, most;
    network_sum_range(c->engine->network, &in->sums[d], &least, &most);
    if (size >= least && size <= most)
        return STRATA_OK;
    return error_set(err, STRATA_EINVAL,
                     "input '%s': dim %d is %" PRId64 ", outside of %" PRId64 "..%" PRId64
                     ", the sum of names of [profile]",
                     in->name, d, size, least, most);
}

/* A dim of an input: the symbol's, a row of the batch, or fixed. sizes: of the symbols,
 * -1 where none was given yet. */
static int check_dim(const strata_context *c, int index, int d, int64_t size,
                     int64_t *sizes, strata_error *err)
{
    const strata_engine *e = c->engine;
    const struct network_input *in = &e->network->inputs[index];
    const int symbol = in->symbols[d];
    const int64_t most = e->network->tensors[in->tensor].dims[d];
    if (symbol >= 0 && sizes[symbol] >= 0 && sizes[symbol] != size)
        return error_set(err, STRATA_EINVAL,
                         "input '%s': dims of %" PRId64 " and %" PRId64
                         " are both named %s",
                         in->name, sizes[symbol], size, e->network->symbols[symbol].name);
    if (symbol >= 0) {
        sizes[symbol] = size;
        return network_check_size(e->network, symbol, size, err);
    }
    if (in->sums[d].first >= 0)
        return check_sum(c, in, d, size, err);
    if (size == most)
        return STRATA_OK;
    if (d == 0 && e->row_bytes[index])
        return check_batch(e, size, err);
    return error_set(err, STRATA_EINVAL,
                     "input '%s': dim %d is %" PRId64 ", not %" PRId64
                     "; a name of [profile] there would let it vary",
                     in->name, d, most, size);
}

static int set_shape(strata_context *c, int index, int rank, const int64_t *dims,
                     strata_error *err)
{
    const strata_network *net = c->engine->network;
    int64_t sizes[NETWORK_MAX_SYMBOLS];
    int status = STRATA_OK;
    if (index < 0 || index >= (int)net->n_inputs)
        return error_set(err, STRATA_EINVAL, "input %d: there are %zu", index,
                         net->n_inputs);
    const struct network_input *in = &net->inputs[index];
    if (rank != net->tensors[in->tensor].rank)
        return error_set(err, STRATA_EINVAL, "input '%s' has %d dims, not %d", in->name,
                         net->tensors[in->tensor].rank, rank);
    for (size_t i = 0; i < NETWORK_MAX_SYMBOLS; i++)
        sizes[i] = -1;
    for (int d = 0; d < rank && status == STRATA_OK; d++)
        status = check_dim(c, index, d, dims[d], sizes, err);
    if (status != STRATA_OK)
        return status;
    for (int i = 0; i < (int)net->n_symbols; i++)
        if (sizes[i] >= 0)
            want_size(c, i, sizes[i]);
    if (in->symbols[0] < 0 && c->engine->row_bytes[index])
        want_batch(c, dims[0]);
    return STRATA_OK;
}

int strata_context_set_shape(strata_context *c, int index, int rank, const int64_t *dims,
                             strata_error *err)
{
    int status = ARGUMENTS(err, {"context", c}, {"dims", dims});
    if (status == STRATA_OK)
        status = context_enter(c, __func__, err);
    return status != STRATA_OK ? status
                               : context_leave(c, set_shape(c, index, rank, dims, err));
}

/* ---- the binding then ------------------------------------------------------------- */

static int get_binding(strata_context *c, int index, strata_binding *out,
                       strata_error *err)
{
    strata_binding found = {.struct_size = sizeof found};
    int status = context_resolve(c, err);
    if (status == STRATA_OK)
        status = strata_engine_binding(c->active->engine, index, &found, err);
    if (status != STRATA_OK)
        return status;
    const int64_t row_bytes = c->active->engine->row_bytes[index];
    if (row_bytes) {
        found.desc.dims[0] = context_rows(c);
        found.bytes = row_bytes * found.desc.dims[0];
    }
    struct_give(out, &found, sizeof found);
    return STRATA_OK;
}

int strata_context_binding(strata_context *c, int index, strata_binding *out,
                           strata_error *err)
{
    int status = ARGUMENTS(err, {"context", c}, {"out", out});
    if (status == STRATA_OK)
        status = struct_check(out->struct_size, SIZE_THROUGH(strata_binding, bytes),
                              "strata_binding", err);
    if (status == STRATA_OK)
        status = context_enter(c, __func__, err);
    return status != STRATA_OK ? status
                               : context_leave(c, get_binding(c, index, out, err));
}
