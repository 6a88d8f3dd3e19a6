/* SPDX-License-Identifier: Apache-2.0
 *
 * A model as a network, and what its users ask of it.
 */
#include "network/import/cache/cache.h"

#include <string.h>

#define IR_NEWEST 14 /* that is known */

/* A file that is newer than what is known: most of it may mean what it always did. */
static void tell_versions(const struct onnx_model *m)
{
    if (m->ir_version > IR_NEWEST)
        log_line(STRATA_LOG_WARNING, "%s: IR version %lld is newer than %d; reading on",
                 m->path, (long long)m->ir_version, IR_NEWEST);
    for (size_t i = 0; i < m->n_opsets; i++) {
        const char *domain = m->opsets[i].domain;
        if ((!*domain || strcmp(domain, "ai.onnx") == 0) &&
            m->opsets[i].version > GRAPH_OPSET)
            log_line(STRATA_LOG_WARNING,
                     "%s: opset %lld of ai.onnx is newer than %d; reading on, its "
                     "operators as those of %d",
                     m->path, (long long)m->opsets[i].version, GRAPH_OPSET, GRAPH_OPSET);
    }
}

/* ---- options that name inputs ---- */

/* Up to a few of the model's inputs, for a message. */
static void append_inputs(const struct onnx_graph *g, strata_error *err)
{
    enum { TOLD = 8 };
    for (size_t i = 0; i < g->n_inputs && i < TOLD; i++)
        error_append(err, "%s'%s'", i ? ", " : "", g->inputs[i].name);
    if (g->n_inputs > TOLD)
        error_append(err, " and %zu others", g->n_inputs - TOLD);
}

static int check_input(const struct onnx_model *m, const char *option, const char *name,
                       strata_error *err)
{
    const struct onnx_graph *g = &m->graph;
    bool held = false;
    for (size_t i = 0; i < g->n_inputs; i++)
        if (strcmp(g->inputs[i].name, name) == 0)
            return STRATA_OK;
    for (size_t i = 0; i < g->n_initializers; i++)
        held |= strcmp(g->initializers[i].name, name) == 0;
    error_set(err, STRATA_EINVAL, "--%s %s: %s; ", option, name,
              held ? "the model holds that value itself, and takes no other"
                   : "the model has no input of that name");
    error_append(err, g->n_inputs ? "it has " : "it has none at all, so leave this out");
    append_inputs(g, err);
    return STRATA_EINVAL;
}

/* Whether dims of inputs have a name, or it is a part of theirs, as in past+length. */
static bool is_dim(const struct onnx_graph *g, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < g->n_inputs; i++)
        for (int d = 0; d < g->inputs[i].rank; d++) {
            const struct onnx_dim *dim = &g->inputs[i].dims[d];
            const char *called = *dim->symbol ? dim->symbol : IMPORT_UNNAMED;
            found |= dim->value < 0 && strstr(called, name);
        }
    return found;
}

/* No error: who imports many models gives all of them the same sizes. */
static void tell_dims(const struct onnx_model *m, const struct import_options *o)
{
    for (size_t i = 0; i < o->n_symbols; i++)
        if (!is_dim(&m->graph, o->symbols[i].name))
            log_line(STRATA_LOG_WARNING,
                     "%s: --dim %s: no input has a free dim of that name, so it is of no "
                     "effect",
                     m->path, o->symbols[i].name);
}

static int check_options(const struct onnx_model *m, const struct import_options *o,
                         strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < o->n_shapes && status == STRATA_OK; i++)
        status = check_input(m, "shape", o->shapes[i].name, err);
    for (size_t i = 0; i < o->n_constants && status == STRATA_OK; i++)
        status = check_input(m, "constant", o->constants[i].name, err);
    return status;
}

/* ---- outputs that are inputs of the next run ---- */

static int find_output(const struct import *im, const char *name)
{
    const struct onnx_graph *g = &im->model->graph;
    for (size_t i = 0; i < g->n_outputs && g->n_outputs == im->g.n_outputs; i++)
        if (strcmp(g->outputs[i].name, name) == 0)
            return im->g.outputs[i];
    return -1;
}

static bool same_shape(const struct value *a, const struct value *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (int d = 0; same && d < a->rank; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

static int pair(struct import *im, const struct import_state *s, strata_error *err)
{
    const int input = import_find_input(im, s->input);
    const int output = find_output(im, s->output);
    if (input < 0 || output < 0)
        return error_set(err, STRATA_EINVAL, "no %s of the network is called '%s'",
                         input < 0 ? "input" : "output",
                         input < 0 ? s->input : s->output);
    struct value *v = &im->g.values[im->g.inputs[input]];
    if (v->next)
        return error_set(err, STRATA_EINVAL,
                         "input '%s' has several outputs as its next value", s->input);
    if (v->rank < 1 || !same_shape(v, &im->g.values[output]))
        return error_set(err, STRATA_EINVAL,
                         "output '%s' cannot be the next '%s': their shapes or types "
                         "differ. A cache that grows is none: see [state] and Attention",
                         s->output, s->input);
    v->next = output + 1;
    return STRATA_OK;
}

/* Whether the i-th output of the model is a state's next value. */
static bool is_paired(const struct import *im, size_t i)
{
    for (size_t k = 0; k < im->options.n_states; k++)
        if (strcmp(im->model->graph.outputs[i].name, im->options.states[k].output) == 0)
            return true;
    return false;
}

static int pair_states(struct import *im, strata_error *err)
{
    struct graph *g = &im->g;
    size_t left = 0;
    int status = STRATA_OK;
    for (size_t k = 0; k < im->options.n_states && status == STRATA_OK; k++)
        status = pair(im, &im->options.states[k], err);
    if (status != STRATA_OK || im->options.n_states == 0)
        return status;
    for (size_t i = 0; i < g->n_outputs; i++)
        if (!is_paired(im, i))
            g->outputs[left++] = g->outputs[i];
    g->n_outputs = left;
    return left ? STRATA_OK
                : error_set(err, STRATA_EINVAL, "the network has no outputs left");
}

/* ---- for users ---- */

static int make(struct import **out, struct import *start, strata_error *err)
{
    import_find_symbols(start);
    return start->n_symbols ? import_with_symbols(out, start, err)
                            : import_at(out, start, NULL, NULL, err);
}

static int make_told(struct import **out, struct import *start, strata_error *err)
{
    const struct import_options own = start->options;
    struct cache c;
    int status = cache_find(&c, start->model, &own, err);
    if (status == STRATA_OK) {
        start->options = cache_options(&c, &own);
        status = make(out, start, err);
    }
    if (status == STRATA_OK)
        status = cache_pair(*out, c.room, err);
    if (status == STRATA_OK)
        status = pair_states(*out, err);
    if (status == STRATA_OK) {
        cache_drop(*out);
        import_tell_names(*out);
    }
    if (*out)
        (*out)->options = own;
    cache_free(&c);
    return status;
}

int import_make(struct import **out, const struct onnx_model *m,
                strata_registry *registry, const struct import_options *options,
                strata_error *err)
{
    struct import start = {.model = m, .registry = registry, .places = VALUE_NONE};
    *out = NULL;
    if (options)
        start.options = *options;
    const int status = check_options(m, &start.options, err);
    if (status != STRATA_OK)
        return status;
    tell_versions(m);
    tell_dims(m, &start.options);
    return make_told(out, &start, err);
}

const struct import_refusal *import_refusals(const struct import *im, size_t *n)
{
    *n = im ? im->n_refusals : 0;
    return *n ? im->refusals : NULL;
}

const char *const *import_wanted(const struct import *im, size_t *n)
{
    *n = im ? im->n_wanted : 0;
    return *n ? im->wanted : NULL;
}

int import_find_input(const struct import *im, const char *name)
{
    for (size_t i = 0; i < im->g.n_inputs; i++)
        if (strcmp(im->g.values[im->g.inputs[i]].name, name) == 0)
            return (int)i;
    return -1;
}

int import_counted_axis(const struct import *im, size_t i)
{
    return im && im->counted && i < im->n_counted ? im->counted[i] : -1;
}

bool import_reads_input(const struct import *im, int input)
{
    return im->g.values[im->g.inputs[input]].readers > 0;
}
