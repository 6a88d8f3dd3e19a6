/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wrong with the command's inputs, outputs and sizes, as far as the network tells
 * it: before costs are measured, not after.
 */
#include "tools/run/run.h"

#include <stdlib.h>
#include <string.h>

/* A batch that was not planned for runs in a larger one, whatever its layers take. */
static int resize(strata_network **out, const strata_network *net,
                  const struct run_sizes *s, strata_error *err)
{
    int64_t sizes[NETWORK_MAX_SYMBOLS];
    if (net->n_symbols == 0) {
        *out = network_retain(net);
        return STRATA_OK;
    }
    memcpy(sizes, s->sizes, sizeof sizes);
    if (net->batch_symbol >= 0)
        sizes[net->batch_symbol] = net->symbols[net->batch_symbol].most;
    int status = network_resize(out, net, sizes, err);
    for (size_t i = 0; i < net->n_inputs && status == STRATA_OK; i++)
        network_input_dims((*out)->tensors[net->inputs[i].tensor].dims, net,
                           &net->inputs[i], s->sizes);
    return status;
}

static int check_inputs(const strata_network *net, const struct tool_options *o,
                        strata_error *err)
{
    bool *given = zalloc(net->n_inputs, sizeof *given, "inputs", err);
    int status = given ? STRATA_OK : STRATA_ENOMEM;
    for (size_t i = 0; i < o->n_inputs && status == STRATA_OK; i++) {
        int index;
        const char *file;
        status = run_find_binding(net, o->inputs[i], true, &index, &file, err);
        if (status == STRATA_OK && given[index])
            status = error_set(err, STRATA_EINVAL, "%s: input '%s' is given twice", file,
                               net->inputs[index].name);
        if (status == STRATA_OK)
            status = run_look_at_input(net, index, file, o->item, err);
        if (status == STRATA_OK)
            given[index] = true;
    }
    free(given);
    return status;
}

int run_look(const void *options, const strata_network *net, strata_error *err)
{
    const struct tool_options *o = options;
    struct run_sizes s;
    strata_network *at = NULL;
    int status = STRATA_OK, index;
    const char *file;
    for (size_t i = 0; i < o->n_outputs && o->outputs_named && status == STRATA_OK; i++)
        status = run_find_binding(net, o->outputs[i], false, &index, &file, err);
    if (status == STRATA_OK && (o->n_inputs > 0 || o->n_dims > 0))
        status = run_find_sizes(&s, net, o, err);
    if (status == STRATA_OK && (o->n_inputs > 0 || o->n_dims > 0))
        status = tool_file_status(resize(&at, net, &s, err), err);
    if (status == STRATA_OK && at)
        status = check_inputs(at, o, err);
    strata_network_destroy(at);
    return status;
}
