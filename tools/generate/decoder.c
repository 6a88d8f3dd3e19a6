/* SPDX-License-Identifier: Apache-2.0
 *
 * A decoder: a network from the tokens of a text to the logits of what comes next.
 */
#include "tools/generate/decoder.h"

#include <strata/sizes.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "tools/values.h"

struct decoder {
    strata_context *context;
    const strata_network *network;
    int logits;           /* binding; the tokens are binding 0 */
    int64_t least, most;  /* tokens of a run */
    int64_t room;         /* of a text */
    struct values places; /* logits of the last run, a row a place */
    int32_t *text;        /* what it was fed; NULL where states remember it */
    size_t n;             /* tokens fed */
    void *row, *out;      /* of the last run, as bound */
    size_t row_bytes, out_bytes;
};

/* ---- which network is one -----------------------------------------------------------
 */

static bool is_token(int dtype)
{
    return dtype == STRATA_INT32 || dtype == STRATA_INT64;
}

static int find_logits(struct decoder *d, const char *name, strata_error *err)
{
    const strata_network *net = d->network;
    const size_t n = net->n_outputs - net->n_states; /* the states' are last */
    for (size_t i = 0; i < n; i++)
        if (name ? strcmp(net->outputs[i].name, name) == 0 : n == 1) {
            d->logits = (int)(net->n_inputs - net->n_states + i);
            return STRATA_OK;
        }
    if (name)
        error_set(err, STRATA_EINVAL, "--logits %s: there is no such output, but:", name);
    else
        error_set(err, STRATA_EINVAL, "which output is the logits? Add --logits NAME:");
    for (size_t i = 0; i < n; i++)
        error_append(err, " %s", net->outputs[i].name);
    return STRATA_EINVAL;
}

/* Sizes that a dim of the tokens may have. */
static void range_of(const struct decoder *d, int dim, int64_t *least, int64_t *most)
{
    const struct network_input *in = &d->network->inputs[0];
    const int symbol = in->symbols[dim];
    *least = *most = d->network->tensors[in->tensor].dims[dim];
    if (symbol >= 0) {
        *least = d->network->symbols[symbol].least;
        *most = d->network->symbols[symbol].most;
    }
}

static int check_tokens(struct decoder *d, strata_error *err)
{
    const size_t n = d->network->n_inputs - d->network->n_states;
    if (n != 1)
        return error_set(err, STRATA_EINVAL,
                         "a decoder has one input, of tokens; this network has %zu", n);
    const struct network_input *in = &d->network->inputs[0];
    const int rank = d->network->tensors[in->tensor].rank;
    int64_t least = 1, most = 1;
    if (!is_token(in->format.dtype))
        return error_set(err, STRATA_EINVAL, "input '%s' is %s; tokens are i32 or i64",
                         in->name, strata_dtype_name(in->format.dtype));
    if (rank > 2)
        return error_set(err, STRATA_EINVAL,
                         "input '%s' has %d dims; tokens are T or N x T", in->name, rank);
    if (rank == 2)
        range_of(d, 0, &least, &most);
    if (least > 1 || most < 1)
        return error_set(err, STRATA_EINVAL,
                         "input '%s' is for %" PRId64 " texts; one is generated: let its "
                         "first dim be 1, or a name of [profile] that may be 1",
                         in->name, least);
    range_of(d, rank - 1, &d->least, &d->most);
    return STRATA_OK;
}

/* How long a text may get: what states count has room; without states a run has it all.
 */
static int find_room(struct decoder *d, strata_error *err)
{
    const strata_network *net = d->network;
    const char *name = net->inputs[0].name;
    d->room = net->n_states ? INT64_MAX : d->most;
    for (size_t i = 0; i < net->n_states; i++)
        if (net->states[i].room && net->states[i].room < d->room)
            d->room = net->states[i].room;
    if (d->least <= 1)
        return STRATA_OK;
    return error_set(err, STRATA_EINVAL,
                     "input '%s' takes %" PRId64 " tokens at least, but a text grows by "
                     "one: let its last dim be a name of [profile] from 1 on, as T = "
                     "1..%" PRId64,
                     name, d->least, d->most);
}

static const struct network_output *logits_of(const struct decoder *d)
{
    const strata_network *net = d->network;
    return &net->outputs[(size_t)d->logits - (net->n_inputs - net->n_states)];
}

static int check_logits(const struct decoder *d, strata_error *err)
{
    const struct network_output *out = logits_of(d);
    const struct network_tensor *t = &d->network->tensors[out->tensor];
    const int dtype = out->format.dtype;
    if (dtype_range(dtype) == 0 || dtype == STRATA_FP64)
        return error_set(err, STRATA_EINVAL,
                         "output '%s' is %s; logits are floats of 32 bits or fewer",
                         out->name, strata_dtype_name(dtype));
    if (t->dims[t->rank - 1] < 1)
        return error_set(err, STRATA_EINVAL, "output '%s' has no elements", out->name);
    return STRATA_OK;
}

static int describe(struct decoder *d, const strata_network *net, const char *logits,
                    strata_error *err)
{
    d->network = net;
    int status = check_tokens(d, err);
    if (status == STRATA_OK)
        status = find_logits(d, logits, err);
    if (status == STRATA_OK)
        status = find_room(d, err);
    return status == STRATA_OK ? check_logits(d, err) : status;
}

int decoder_look(int64_t *vocabulary, const strata_network *net, const char *logits,
                 strata_error *err)
{
    struct decoder d = {.n = 0};
    int status = describe(&d, net, logits, err);
    *vocabulary = status == STRATA_OK ? decoder_vocabulary(&d) : 0;
    return status;
}

int decoder_open(struct decoder **out, const strata_engine *e, strata_handle *handle,
                 const char *logits, strata_error *err)
{
    struct decoder *d = zalloc(1, sizeof *d, "a decoder", err);
    *out = NULL;
    if (!d)
        return STRATA_ENOMEM;
    int status = describe(d, e->network, logits, err);
    if (status == STRATA_OK)
        status = strata_context_create(&d->context, e, handle, err);
    if (status == STRATA_OK && d->network->n_states == 0) {
        d->text = zalloc((size_t)d->room, sizeof *d->text, "a text", err);
        status = d->text ? STRATA_OK : STRATA_ENOMEM;
    }
    if (status == STRATA_OK)
        *out = d;
    else
        decoder_close(d);
    return status;
}

void decoder_close(struct decoder *d)
{
    if (!d)
        return;
    strata_context_destroy(d->context);
    values_free(&d->places);
    free(d->text);
    free(d->row);
    free(d->out);
    free(d);
}

/* ---- runs ---------------------------------------------------------------------------
 */

/* At least so many bytes, whose old contents do not matter. */
static int make_room(void **memory, size_t *have, size_t bytes, strata_error *err)
{
    if (bytes <= *have)
        return STRATA_OK;
    free(*memory);
    *memory = zalloc(1, bytes, "tokens and logits", err);
    *have = *memory ? bytes : 0;
    return *memory ? STRATA_OK : STRATA_ENOMEM;
}

static int put_tokens(struct decoder *d, const int32_t *ids, size_t n, strata_error *err)
{
    const struct network_input *in = &d->network->inputs[0];
    const int rank = d->network->tensors[in->tensor].rank;
    const bool wide = in->format.dtype == STRATA_INT64;
    const int64_t dims[] = {rank == 1 ? (int64_t)n : 1, (int64_t)n};
    int status = make_room(&d->row, &d->row_bytes, n * sizeof(int64_t), err);
    if (status != STRATA_OK)
        return status;
    for (size_t i = 0; i < n; i++)
        if (wide)
            ((int64_t *)d->row)[i] = ids[i];
        else
            ((int32_t *)d->row)[i] = ids[i];
    status = strata_context_set_shape(d->context, 0, rank, dims, err);
    return status == STRATA_OK ? strata_copy_in(d->context, 0, d->row, err) : status;
}

int64_t decoder_vocabulary(const struct decoder *d)
{
    const struct network_tensor *t = &d->network->tensors[logits_of(d)->tensor];
    return t->dims[t->rank - 1];
}

static int take_logits(struct decoder *d, strata_error *err)
{
    strata_binding b = {.struct_size = sizeof b};
    int status = strata_context_binding(d->context, d->logits, &b, err);
    if (status == STRATA_OK)
        status = make_room(&d->out, &d->out_bytes, (size_t)b.bytes, err);
    if (status == STRATA_OK)
        status = strata_copy_out(d->context, d->logits, d->out, err);
    values_free(&d->places);
    if (status == STRATA_OK)
        status = values_read(&d->places, &b.desc, d->out, "logits", err);
    if (status != STRATA_OK)
        return status;
    const int64_t words = d->places.dims[d->places.rank - 1];
    if (words == decoder_vocabulary(d) && d->places.count > 0)
        return STRATA_OK;
    return error_set(err, STRATA_EINVAL,
                     "output '%s' ends with a dim of %" PRId64
                     " in this run, and of %" PRId64
                     " at most; that of logits is the same in all",
                     b.name, words, decoder_vocabulary(d));
}

static int run(struct decoder *d, const int32_t *ids, size_t n, strata_error *err)
{
    const int status = put_tokens(d, ids, n, err);
    return status == STRATA_OK ? strata_context_run(d->context, err) : status;
}

int64_t decoder_room(const struct decoder *d)
{
    return d->room - (int64_t)d->n;
}

int decoder_feed(struct decoder *d, const int32_t *ids, size_t n, strata_error *err)
{
    const size_t most = (size_t)d->most;
    int status = STRATA_OK;
    if ((int64_t)n > decoder_room(d))
        return error_set(err, STRATA_EOVERFLOW,
                         "%zu tokens: the network has room for %" PRId64
                         ", of which %" PRId64 " are left",
                         n, d->room, decoder_room(d));
    if (d->text) {
        memcpy(d->text + d->n, ids, n * sizeof *ids);
        status = run(d, d->text, d->n + n, err);
    }
    for (size_t at = 0, k; !d->text && at < n && status == STRATA_OK; at += k) {
        k = n - at < most ? n - at : most;
        status = run(d, ids + at, k, err);
    }
    if (status != STRATA_OK)
        return status;
    d->n += n;
    return take_logits(d, err);
}

const float *decoder_logits(const struct decoder *d)
{
    return (const float *)d->places.data + d->places.count - decoder_vocabulary(d);
}
