/* SPDX-License-Identifier: Apache-2.0
 *
 * What a state becomes: `next` names the tensor that a run leaves in it, one of the
 * network's outputs, which has the state's shape and is written in its format.
 */
#include "network/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

static void print_dims(const struct network_tensor *t, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < t->rank && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%lld", i ? " x " : "",
                                 (long long)t->dims[i]);
}

static void check_next(struct loader *l, const struct network_tensor *state,
                       const struct network_tensor *next, const struct config_pair *p)
{
    char needed[160], found[160];
    print_dims(state, needed, sizeof needed);
    print_dims(next, found, sizeof found);
    if (!state->rank || !next->rank) /* an error was recorded */
        return;
    if (next->rank != state->rank ||
        memcmp(next->dims, state->dims, (size_t)next->rank * sizeof *next->dims) != 0)
        config_error(l->c, p->value_place, "'%s' is %s; the state '%s' is %s", next->name,
                     found, state->name, needed);
    else if (next->dtype != state->dtype)
        config_error(l->c, p->value_place,
                     "'%s' is %s, the state '%s' %s: give it that dtype, or put a Cast "
                     "between",
                     next->name, strata_dtype_name(next->dtype), state->name,
                     strata_dtype_name(state->dtype));
}

/* Without `dtype` and `format`, floats lie in the state as between layers: nothing is
 * converted from a run to the next. */
static void settle_format(struct loader *l, struct config_section *s,
                          struct network_input *in)
{
    static const int dtypes[] = {
        [PRECISION_FP16] = STRATA_FP16, [PRECISION_BF16] = STRATA_BF16};
    const enum precision precision = l->net->build.precision;
    if (config_get(s, "dtype") || config_get(s, "format"))
        return;
    if (precision == PRECISION_FP16 || precision == PRECISION_BF16)
        in->format.dtype = dtypes[precision];
}

/* Rows are told apart where they lie one after another. */
static void check_rows(struct loader *l, const struct network_state *state,
                       const struct network_input *in)
{
    const struct network_tensor *t = &l->net->tensors[in->tensor];
    strata_error why = {0};
    strata_desc desc;
    if (!t->rank)
        return;
    for (int d = 0; d < t->rank; d++)
        if (in->symbols[d] >= 0 && (d > 0 || in->symbols[d] != l->net->batch_symbol))
            config_error(l->c, state->place,
                         "'%s' of state '%s' has several sizes: a state keeps its shape; "
                         "give it the largest as a number",
                         l->net->symbols[in->symbols[d]].name, in->name);
        else if (in->sums[d].first >= 0)
            config_error(l->c, state->place,
                         "dim %d of state '%s' has several sizes: a state keeps its "
                         "shape; give it the largest as a number",
                         d, in->name);
    if (format_desc(&desc, in->format, t->dims, t->rank, &why) != STRATA_OK)
        config_failed(l->c, state->place, &why);
    else if (desc.strides[0] * t->dims[0] < strata_desc_size(&desc))
        config_error(l->c, state->place,
                     "the rows of a state lie one after another; in this format those "
                     "of '%s' do not",
                     in->name);
}

static int add_next(struct loader *l, struct network_state *state,
                    struct config_section *s, struct reference r,
                    const struct config_pair *p)
{
    strata_network *net = l->net;
    struct network_input *in = &net->inputs[state->input];
    struct network_output *out = &net->outputs[net->n_outputs];
    if (r.node < (int)net->n_inputs) {
        config_error(l->c, p->value_place,
                     "'%s' is an input or a state; put an Identity layer between",
                     network_node_name(l, r.node));
        return STRATA_OK;
    }
    settle_format(l, s, in);
    check_rows(l, state, in);
    out->tensor = l->drafts[r.node - (int)net->n_inputs].first_tensor + r.port;
    out->format = in->format;
    out->name = duplicate(net->tensors[out->tensor].name, l->err);
    if (!out->name)
        return STRATA_ENOMEM;
    state->output = (int)net->n_outputs++;
    check_next(l, &net->tensors[in->tensor], &net->tensors[out->tensor], p);
    return STRATA_OK;
}

static int read_next(struct loader *l, struct network_state *state)
{
    const char *name = l->net->inputs[state->input].name;
    struct config_section *s = NULL;
    for (size_t i = 0; i < config_sections(l->c) && !s; i++) {
        struct config_section *at = config_section(l->c, i);
        if (strcmp(at->kind, "state") == 0 && strcmp(at->name, name) == 0)
            s = at;
    }
    const struct config_pair *p = s ? config_get(s, "next") : NULL;
    struct reference r;
    if (!p || p->invalid)
        return STRATA_OK;
    const struct config_item item = {p->value, 0};
    return network_reference(l, p, &item, &r) ? add_next(l, state, s, r, p) : STRATA_OK;
}

int network_read_states(struct loader *l)
{
    strata_network *net = l->net;
    const size_t n = net->n_outputs + net->n_states;
    int status = STRATA_OK;
    if (net->n_states == 0)
        return STRATA_OK;
    struct network_output *outputs = realloc(net->outputs, n * sizeof *outputs);
    if (!outputs)
        return error_no_memory(l->err, n * sizeof *outputs, "outputs");
    memset(outputs + net->n_outputs, 0, net->n_states * sizeof *outputs);
    net->outputs = outputs;
    for (size_t i = 0; i < net->n_states && status == STRATA_OK; i++)
        status = read_next(l, &net->states[i]);
    return status;
}
