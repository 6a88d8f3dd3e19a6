/* SPDX-License-Identifier: Apache-2.0
 *
 * One node at a time: poison what it is to write, copy what it is to leave alone, run it,
 * wait, compare. All memory is reached through the device's interface, so that host and
 * other devices are checked alike.
 */
#include "engine/context/check.h"

#include <stdlib.h>
#include <string.h>

static const struct device_ops *ops(const strata_context *c)
{
    return c->handle->device->ops;
}

/* ---- opening ----------------------------------------------------------------------- */

bool context_check_wanted(void)
{
    const char *value = secure_getenv("STRATA_CHECK");
    return value && value[0] && strcmp(value, "0") != 0;
}

/* A constant, if nothing is left that makes it anew. */
static int take_constant(strata_context *c, const struct guard_block *b, int node,
                         strata_error *err)
{
    if (node < 0 || context_makes(c, node))
        return STRATA_OK;
    const int status = ops(c)->copy(c->stream, b->data, c->engine->parts[node]->constant,
                                    b->bytes, COPY_ON_DEVICE, err);
    return status == STRATA_OK ? ops(c)->stream_synchronize(c->stream, err) : status;
}

static int make_values(strata_context *c, strata_error *err)
{
    const struct execution *x = c->execution;
    int status = STRATA_OK;
    for (size_t v = 0; v < x->n_values && status == STRATA_OK; v++) {
        const struct execution_value *value = &x->values[v];
        struct guard_block *b = &c->check->values[v];
        if (value->alias >= 0 || (c->whole != c && value->binding >= 0))
            continue;
        status = guard_make(c, b, (size_t)value->bytes, err);
        if (status == STRATA_OK)
            status = take_constant(c, b, value->constant, err);
    }
    return status;
}

static size_t largest_workspace(const struct execution *x)
{
    size_t bytes = 0;
    for (size_t i = 0; i < x->n_nodes; i++)
        bytes = x->nodes[i].workspace > bytes ? x->nodes[i].workspace : bytes;
    return bytes;
}

int context_check_open(strata_context *c, strata_error *err)
{
    c->check = zalloc(1, sizeof *c->check, "a check", err);
    if (!c->check)
        return STRATA_ENOMEM;
    c->check->values =
        zalloc(c->execution->n_values, sizeof *c->check->values, "a check", err);
    if (!c->check->values)
        return STRATA_ENOMEM;
    log_line(STRATA_LOG_WARNING,
             "%s: STRATA_CHECK is set: every node is checked, which takes many times as "
             "long; without it nothing is",
             c->engine->network->path);
    int status = make_values(c, err);
    return status != STRATA_OK ? status
                               : guard_make(c, &c->check->workspace,
                                            largest_workspace(c->execution), err);
}

static void forget_kept(struct context_check *k)
{
    for (size_t i = 0; i < k->n_kept; i++)
        free(k->kept[i].copy);
    k->n_kept = 0;
}

void context_check_close(strata_context *c)
{
    struct context_check *k = c->check;
    if (!k)
        return;
    for (size_t v = 0; k->values && v < c->execution->n_values; v++)
        guard_free(c, &k->values[v]);
    guard_free(c, &k->workspace);
    forget_kept(k);
    free(k->values);
    free(k->kept);
    free(k->image);
    free(k);
    c->check = NULL;
}

void *context_check_value(const strata_context *c, int value)
{
    return c->check->values[c->execution->values[value].owner].data;
}

/* ---- before a node ----------------------------------------------------------------- */

static int keep(strata_context *c, const void *data, size_t bytes, const char *what,
                int index, strata_error *err)
{
    struct context_check *k = c->check;
    if (bytes == 0)
        return STRATA_OK;
    int status = grow(&k->kept, &k->capacity, k->n_kept, sizeof *k->kept, err);
    if (status != STRATA_OK)
        return status;
    struct guard_kept *kept = &k->kept[k->n_kept];
    *kept = (struct guard_kept){data, bytes, malloc(bytes), what, index, NULL};
    if (!kept->copy)
        return error_no_memory(err, bytes, "a copy to compare with");
    k->n_kept++;
    return guard_fetch(c, kept->copy, data, bytes, err);
}

static bool is_output(const struct context_node *node, const strata_tensor *t)
{
    for (int i = 0; i < node->run.n_out; i++)
        if (guard_overlap(&node->out[i], t))
            return true;
    return false;
}

static bool is_input(const struct context_node *node, const strata_tensor *t)
{
    for (int i = 0; i < node->run.n_in; i++)
        if (guard_overlap(&node->in[i], t))
            return true;
    return guard_overlap(&node->residual, t);
}

/* The block that a value's memory is, unless it is the application's. */
static const struct guard_block *block_of(const strata_context *c, int value)
{
    const int owner = c->execution->values[value].owner;
    const struct guard_block *b = &c->check->values[owner];
    return b->data && c->value_data[owner] == b->data ? b : NULL;
}

/* Around an output that is made inside a larger one. */
static int keep_beside(strata_context *c, size_t node, int i, strata_error *err)
{
    const strata_tensor *t = &c->nodes[node].out[i];
    const struct guard_block *b = block_of(c, c->execution->nodes[node].out_values[i]);
    const char *begin = t->data, *end = begin + guard_bytes(t);
    if (!b || is_input(&c->nodes[node], t) || end > b->data + b->bytes)
        return STRATA_OK;
    int status = keep(c, b->data, (size_t)(begin - b->data),
                      "what lies in one memory before output", i, err);
    if (status == STRATA_OK)
        status = keep(c, end, (size_t)(b->data + b->bytes - end),
                      "what lies in one memory behind output", i, err);
    if (status != STRATA_OK || t->count == 0 || guard_is_dense(t))
        return status;
    status =
        keep(c, begin, guard_bytes(t), "what lies between channels of output", i, err);
    if (status == STRATA_OK)
        c->check->kept[c->check->n_kept - 1].but = t;
    return status;
}

static int keep_inputs(strata_context *c, size_t i, strata_error *err)
{
    const struct execution_node *n = &c->execution->nodes[i];
    const struct pack_memory *packs = &c->engine->parts[i]->packs;
    struct context_node *node = &c->nodes[i];
    int status = STRATA_OK;
    for (int k = 0; k < n->n_ports && status == STRATA_OK; k++)
        if (!is_output(node, &node->in[k]))
            status =
                keep(c, node->in[k].data, guard_bytes(&node->in[k]), "input", k, err);
    if (n->residual_value >= 0 && !is_output(node, &node->residual) &&
        status == STRATA_OK)
        status = keep(c, node->residual.data, guard_bytes(&node->residual),
                      "residual input", 0, err);
    for (int k = 0; k < node->run.n_weights && status == STRATA_OK; k++)
        if (node->run.weight[k].rank > 0)
            status = keep(c, node->run.weight[k].data, guard_bytes(&node->run.weight[k]),
                          "weight", k, err);
    for (size_t k = 0; k < packs->n && status == STRATA_OK; k++)
        status = keep(c, packs->list[k].ptr, packs->list[k].bytes, "packed weights",
                      (int)k, err);
    for (int k = 0; k < n->n_out && status == STRATA_OK; k++)
        status = keep_beside(c, i, k, err);
    return status;
}

/* Fill what the node is to write with a byte. */
static int fill(strata_context *c, size_t i, int byte, strata_error *err)
{
    const struct execution_node *n = &c->execution->nodes[i];
    struct context_node *node = &c->nodes[i];
    int status = STRATA_OK;
    for (int k = 0; k < n->n_out && status == STRATA_OK; k++)
        if (!is_input(node, &node->out[k]))
            status = guard_fill(c, &node->out[k], byte, err);
    if (n->workspace && status == STRATA_OK)
        status = ops(c)->fill(c->stream, node->run.workspace, byte, n->workspace, err);
    return status;
}

/* Of each value of the node, and of its workspace. */
static int each_block(strata_context *c, size_t i,
                      int (*visit)(strata_context *c, size_t node,
                                   const struct guard_block *b, const char *what,
                                   int index, strata_error *err),
                      strata_error *err)
{
    const struct execution_node *n = &c->execution->nodes[i];
    const struct {
        const int *values;
        int n;
        const char *what;
    } groups[] = {{n->out_values, n->n_out, "output"},
                  {n->in_values, n->n_in, "input"},
                  {&n->residual_value, n->residual_value >= 0, "residual input"}};
    int status = STRATA_OK;
    for (size_t g = 0; g < ARRAY_LENGTH(groups); g++)
        for (int k = 0; k < groups[g].n && status == STRATA_OK; k++) {
            const struct guard_block *b = block_of(c, groups[g].values[k]);
            if (b)
                status = visit(c, i, b, groups[g].what, k, err);
        }
    return status != STRATA_OK || n->workspace == 0
               ? status
               : visit(c, i, &c->check->workspace, "workspace", 0, err);
}

static int guard_block(strata_context *c, size_t node, const struct guard_block *b,
                       const char *what, int index, strata_error *err)
{
    (void)node;
    (void)what;
    (void)index;
    return guard_set(c, b, err);
}

static int prepare(strata_context *c, size_t i, strata_error *err)
{
    const struct execution_node *n = &c->execution->nodes[i];
    c->check->workspace.bytes = n->workspace;
    if (n->workspace)
        c->nodes[i].run.workspace = c->check->workspace.data;
    forget_kept(c->check);
    int status = ops(c)->stream_synchronize(c->stream, err);
    for (int k = 0; k < n->n_in && status == STRATA_OK; k++)
        status = guard_input(c, i, k, err);
    if (status == STRATA_OK)
        status = keep_inputs(c, i, err);
    if (status == STRATA_OK)
        status = each_block(c, i, guard_block, err);
    return status != STRATA_OK ? status : fill(c, i, GUARD_POISON, err);
}

/* ---- after a node ------------------------------------------------------------------ */

static int compare_kept(strata_context *c, size_t node, strata_error *err)
{
    const struct context_check *k = c->check;
    int status = STRATA_OK;
    for (size_t i = 0; i < k->n_kept && status == STRATA_OK; i++) {
        const struct guard_kept *kept = &k->kept[i];
        char *now = malloc(kept->bytes);
        if (!now)
            return error_no_memory(err, kept->bytes, "a copy to compare");
        status = guard_fetch(c, now, kept->data, kept->bytes, err);
        if (status == STRATA_OK && kept->but)
            guard_transfer(kept->but, kept->copy, now);
        if (status == STRATA_OK && memcmp(now, kept->copy, kept->bytes) != 0) {
            size_t at = 0;
            while (now[at] == kept->copy[at])
                at++;
            status = guard_found(c, node, err, "changed %s %d, from byte %zu on",
                                 kept->what, kept->index, at);
        }
        free(now);
    }
    return status;
}

/* The first tensor of several with a NaN, and where; *which -1: none. */
static int find_nan(strata_context *c, const strata_tensor *t, int n, int *which,
                    int64_t *at, strata_error *err)
{
    int status = STRATA_OK;
    *which = -1;
    for (int i = 0; i < n && status == STRATA_OK && *which < 0; i++) {
        status = guard_find_nan(c, &t[i], at, err);
        *which = *at >= 0 ? i : -1;
    }
    return status;
}

/* Run the node again, numbers where there was poison; memory of the application's stays
 * as it is. */
static int run_again(strata_context *c, size_t i, const struct execution_step *step,
                     strata_error *err)
{
    const struct execution_node *n = &c->execution->nodes[i];
    struct context_node *node = &c->nodes[i];
    int status = fill(c, i, GUARD_OTHER, err);
    for (int k = 0; k < n->n_in && status == STRATA_OK; k++)
        if (block_of(c, n->in_values[k]))
            status =
                guard_fill_pads(c, &node->in[execution_port(n, k)], GUARD_OTHER, err);
    if (status == STRATA_OK)
        status = context_enqueue_step(c, step, err);
    return status != STRATA_OK ? status : ops(c)->stream_synchronize(c->stream, err);
}

/* No output has a NaN. A maximum may lose one of an input by right, but then what comes
 * out at the end looks sound. */
static int warn_of_lost_nan(strata_context *c, size_t i, strata_error *err)
{
    struct context_node *node = &c->nodes[i];
    strata_error note = {0};
    char place[GUARD_PLACE];
    enum guard_sight seen;
    int input;
    int64_t at;
    bool floats = false;
    for (int k = 0; k < node->run.n_out; k++)
        floats |= guard_can_be_nan(&node->out[k]);
    if (!floats)
        return STRATA_OK;
    int status = find_nan(c, node->in, node->run.n_in, &input, &at, err);
    if (status != STRATA_OK || input < 0)
        return status;
    status = guard_look(c, &node->in[input], at, &seen, place, err);
    if (status != STRATA_OK)
        return status;
    error_set(&note, STRATA_EINTERNAL, "input %d is NaN at %s, no output is anywhere",
              input, place);
    guard_name(c, i, "", &note);
    log_line(STRATA_LOG_WARNING, "%s", note.message);
    return STRATA_OK;
}

/* A NaN that no input had: where it goes when outputs, workspace and input pads hold
 * numbers, the node has read them, or not written. */
static int explain_nan(strata_context *c, size_t i, const struct execution_step *step,
                       strata_error *err)
{
    struct context_node *node = &c->nodes[i];
    int output, input;
    int64_t at, at_input;
    char place[GUARD_PLACE];
    enum guard_sight seen = GUARD_SEES_NAN;
    for (int k = 0; k < node->run.n_out; k++)
        if (is_input(node, &node->out[k]))
            return STRATA_OK; /* its inputs are gone */
    int status = find_nan(c, node->out, node->run.n_out, &output, &at, err);
    if (status != STRATA_OK || output < 0)
        return status != STRATA_OK ? status : warn_of_lost_nan(c, i, err);
    status = find_nan(c, node->in, node->run.n_in, &input, &at_input, err);
    if (status != STRATA_OK || input >= 0)
        return status;
    status = run_again(c, i, step, err);
    if (status == STRATA_OK)
        status = guard_look(c, &node->out[output], at, &seen, place, err);
    if (status == STRATA_OK && seen == GUARD_SEES_FILL)
        status = guard_found(c, i, err, "did not write output %d at %s", output, place);
    else if (status == STRATA_OK && seen == GUARD_SEES_VALUE)
        status = guard_found(c, i, err,
                             "output %d at %s depends on what its outputs, its workspace "
                             "or pads of its inputs held before",
                             output, place);
    return status;
}

static int inspect(strata_context *c, size_t i, const struct execution_step *step,
                   strata_error *err)
{
    int status = each_block(c, i, guard_check, err);
    if (status == STRATA_OK)
        status = compare_kept(c, i, err);
    for (int k = 0; k < c->nodes[i].run.n_out && status == STRATA_OK; k++)
        status = guard_output(c, i, k, err);
    return status != STRATA_OK ? status : explain_nan(c, i, step, err);
}

int context_check_step(strata_context *c, const struct execution_step *step,
                       strata_error *err)
{
    const bool runs = step->kind == STEP_RUN;
    const size_t node = runs ? (size_t)step->node : 0;
    int status = runs ? prepare(c, node, err) : STRATA_OK;
    if (status == STRATA_OK)
        status = context_enqueue_step(c, step, err);
    if (status != STRATA_OK)
        return status;
    status = ops(c)->stream_synchronize(c->stream, err);
    if (status != STRATA_OK && runs && c->handle->properties.kind != STRATA_HOST)
        error_prefix(
            err, "%s:%d: error: layer '%s', impl %s, run", c->engine->network->path,
            c->execution->nodes[node].layer->place.line, c->execution->nodes[node].name,
            c->execution->nodes[node].impl->impl.name);
    return status == STRATA_OK && runs ? inspect(c, node, step, err) : status;
}
