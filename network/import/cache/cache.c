/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches of keys and values as states with room: a decoder that takes the keys of all
 * tokens before, and gives them with the new ones, becomes one that takes tokens alone.
 * Which inputs and outputs these are, attention tells (upgrade/grouped.c); one more state
 * counts what rows hold, in place of the mask that told it.
 */
#include "network/import/cache/cache.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

enum {
    PAST_KEY = 3,
    PRESENT_KEY = 1,
    SEQLENS = 5,
    COSINES = 7
}; /* ports of GroupQueryAttention */

static const struct onnx_value *find_named(const struct onnx_value *all, size_t n,
                                           const char *name)
{
    for (size_t i = 0; i < n && *name; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

static int add_state(struct cache *c, const char *output, const char *input,
                     strata_error *err)
{
    if (grow(&c->states, &c->states_capacity, c->n_states, sizeof *c->states, err) !=
        STRATA_OK)
        return STRATA_ENOMEM;
    c->states[c->n_states++] = (struct import_state){output, input};
    return STRATA_OK;
}

/* A dim that the model leaves free is `size`, unless an option says otherwise. */
static int add_size(struct cache *c, const struct onnx_dim *dim, int64_t size,
                    strata_error *err)
{
    for (size_t i = 0; i < c->n_symbols; i++)
        if (strcmp(c->symbols[i].name, dim->symbol) == 0)
            return STRATA_OK;
    if (dim->value >= 0 || !*dim->symbol)
        return STRATA_OK;
    if (grow(&c->symbols, &c->symbols_capacity, c->n_symbols, sizeof *c->symbols, err) !=
        STRATA_OK)
        return STRATA_ENOMEM;
    c->symbols[c->n_symbols++] =
        (struct import_symbol){.name = dim->symbol, .n = 1, .values = {size}};
    return STRATA_OK;
}

/* The input of the model that a value is computed from, by first inputs of nodes. */
static const struct onnx_value *source_of(const struct onnx_graph *g, const char *name)
{
    const struct onnx_value *in = NULL;
    size_t steps = 0, i;
    do {
        for (i = 0; i < g->n_nodes; i++)
            if (g->nodes[i].n_outputs && strcmp(g->nodes[i].outputs[0], name) == 0)
                break;
        if (i == g->n_nodes || g->nodes[i].n_inputs == 0)
            break;
        name = g->nodes[i].inputs[0];
        in = find_named(g->inputs, g->n_inputs, name);
    } while (!in && ++steps < g->n_nodes);
    return in;
}

/* Past and present keys or values of a node, if they are the model's. */
static int take_pair(struct cache *c, const struct onnx_graph *g,
                     const struct onnx_node *n, int port, int64_t room, strata_error *err)
{
    const char *output = n->outputs[PRESENT_KEY + port];
    const struct onnx_value *in =
        find_named(g->inputs, g->n_inputs, n->inputs[PAST_KEY + port]);
    if (!in || in->rank != 4 || !find_named(g->outputs, g->n_outputs, output))
        return STRATA_OK;
    const int64_t given = in->dims[2].value;
    c->room = given >= 0 && given < c->room ? given : c->room;
    int status = add_size(c, &in->dims[2], room, err);
    return status == STRATA_OK ? add_state(c, output, in->name, err) : status;
}

static int take_node(struct cache *c, const struct onnx_graph *g,
                     const struct onnx_node *n, int64_t room, strata_error *err)
{
    int status = STRATA_OK;
    if (strcmp(n->op, "GroupQueryAttention") != 0 || n->n_inputs <= SEQLENS ||
        n->n_outputs <= PRESENT_KEY + 1)
        return STRATA_OK;
    for (int port = 0; port < 2 && status == STRATA_OK; port++)
        status = take_pair(c, g, n, port, room, err);
    const struct onnx_value *mask = source_of(g, n->inputs[SEQLENS]);
    if (status == STRATA_OK && mask && mask->rank == 2)
        status = add_size(c, &mask->dims[1], room, err);
    return status;
}

/* ---- dims of heads -------------------------------------------------------------------
 */

static const struct onnx_tensor *find_initializer(const struct onnx_graph *g,
                                                  const char *name)
{
    for (size_t i = 0; i < g->n_initializers && *name; i++)
        if (strcmp(g->initializers[i].name, name) == 0)
            return &g->initializers[i];
    return NULL;
}

static const struct onnx_node *find_maker(const struct onnx_graph *g, const char *name)
{
    for (size_t i = 0; i < g->n_nodes && *name; i++)
        if (g->nodes[i].n_outputs && strcmp(g->nodes[i].outputs[0], name) == 0)
            return &g->nodes[i];
    return NULL;
}

static int64_t integer_of(const struct onnx_node *n, const char *name)
{
    for (size_t i = 0; i < n->n_attributes; i++)
        if (strcmp(n->attributes[i].name, name) == 0)
            return n->attributes[i].integer;
    return 0;
}

/* Columns of the product that a value is of, behind a sum and a rotation; 0: it is of
 * none. */
static int64_t columns_of(const struct onnx_graph *g, const char *name)
{
    const struct onnx_node *n = find_maker(g, name);
    while (n && n->n_inputs > 1 &&
           (strcmp(n->op, "Add") == 0 || strcmp(n->op, "RotaryEmbedding") == 0)) {
        const struct onnx_node *before = find_maker(g, n->inputs[0]);
        n = before < n ? before : NULL; /* producers first; no circle */
    }
    const struct onnx_tensor *b =
        n && n->n_inputs > 1 ? find_initializer(g, n->inputs[1]) : NULL;
    if (n && strcmp(n->op, "MatMulNBits") == 0)
        return integer_of(n, "N");
    return n && strcmp(n->op, "MatMul") == 0 && b && b->rank == 2 ? b->dims[1] : 0;
}

/* Elements of a head, by the product that is the query or the angles of all of them; 0:
 * neither tells. */
static int64_t head_of(const struct onnx_graph *g, const struct onnx_node *n)
{
    const int64_t queries = integer_of(n, "num_heads"),
                  packed = *n->inputs[1] ? 0 : 2 * integer_of(n, "kv_num_heads"),
                  heads = queries + packed, columns = columns_of(g, n->inputs[0]);
    const struct onnx_tensor *cosines =
        n->n_inputs > COSINES ? find_initializer(g, n->inputs[COSINES]) : NULL;
    if (heads > 0 && columns > 0 && columns % heads == 0)
        return columns / heads;
    return cosines && cosines->rank == 2 && integer_of(n, "rotary_embedding_dim") == 0
               ? 2 * cosines->dims[1]
               : 0;
}

/* A dim of heads that has a name, as newer builders give it: what the products say. */
static int take_heads(struct cache *c, const struct onnx_graph *g,
                      const struct onnx_node *n, strata_error *err)
{
    int status = STRATA_OK;
    if (strcmp(n->op, "GroupQueryAttention") != 0 || n->n_inputs <= PAST_KEY + 1)
        return STRATA_OK;
    const int64_t head = head_of(g, n);
    for (int port = 0; port < 2 && status == STRATA_OK; port++) {
        const struct onnx_value *in =
            find_named(g->inputs, g->n_inputs, n->inputs[PAST_KEY + port]);
        if (in && in->rank == 4 && head > 0)
            status = add_size(c, &in->dims[3], head, err);
    }
    return status;
}

/* ---- options -------------------------------------------------------------------------
 */

/* Options of the user, then those that follow of the caches. */
static int copy_options(struct cache *c, const struct import_options *o,
                        strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < o->n_states && status == STRATA_OK; i++)
        status = add_state(c, o->states[i].output, o->states[i].input, err);
    for (size_t i = 0; i < o->n_symbols && status == STRATA_OK; i++) {
        status = grow(&c->symbols, &c->symbols_capacity, c->n_symbols, sizeof *c->symbols,
                      err);
        if (status == STRATA_OK)
            c->symbols[c->n_symbols++] = o->symbols[i];
    }
    return status;
}

int cache_find(struct cache *c, const struct onnx_model *m,
               const struct import_options *o, strata_error *err)
{
    *c = (struct cache){.room = o->cache};
    int status = copy_options(c, o, err);
    const size_t before = c->n_states;
    for (size_t i = 0; i < m->graph.n_nodes && status == STRATA_OK; i++)
        status = take_heads(c, &m->graph, &m->graph.nodes[i], err);
    for (size_t i = 0; i < m->graph.n_nodes && status == STRATA_OK && o->cache; i++)
        status = take_node(c, &m->graph, &m->graph.nodes[i], o->cache, err);
    if (status == STRATA_OK && o->cache && c->n_states == before)
        return error_set(err, STRATA_EINVAL,
                         "no GroupQueryAttention of the model has past keys that are its "
                         "inputs, and present ones that are its outputs: nothing can be "
                         "a cache. Without --cache, lengths that the model leaves free "
                         "stay so, --dim PAST=0..1024, and who runs it hands the keys "
                         "from a run to the next");
    return status;
}

struct import_options cache_options(const struct cache *c, const struct import_options *o)
{
    struct import_options out = *o;
    out.states = c->states;
    out.n_states = c->n_states;
    out.symbols = c->symbols;
    out.n_symbols = c->n_symbols;
    return out;
}

void cache_free(struct cache *c)
{
    free(c->states);
    free(c->symbols);
    *c = (struct cache){0};
}

/* ---- the state that counts -----------------------------------------------------------
 */

/* The input of the network that the last of the states is; -1: there is none. */
static int last_cache(const struct import *im)
{
    const struct graph *g = &im->g;
    const struct import_options *o = &im->options;
    for (size_t i = 0; i < g->n_inputs && o->cache && o->n_states; i++)
        if (strcmp(g->values[g->inputs[i]].name, o->states[o->n_states - 1].input) == 0)
            return g->inputs[i];
    return VALUE_NONE;
}

void cache_load(struct import *im)
{
    struct graph *g = &im->g;
    const int past = last_cache(im);
    if (past < 0)
        return;
    im->places = graph_add_value(g, "places");
    struct value *v = graph_value(g, im->places);
    if (!v)
        return;
    const struct value *rows = &g->values[past];
    v->dtype = STRATA_INT32;
    v->rank = 1;
    v->dims[0] = rows->dims[0];
    v->symbols[0] = rows->symbols[0];
    g->inputs[g->n_inputs++] = im->places;
}

int cache_pair(struct import *im, int64_t room, strata_error *err)
{
    struct graph *g = &im->g;
    if (im->places < 0)
        return STRATA_OK;
    if (!im->counts)
        return error_set(err, STRATA_EINVAL,
                         "no output of the model depends on its caches");
    g->values[im->places].next = g->outputs[--g->n_outputs] + 1;
    g->values[im->places].room = room;
    return STRATA_OK;
}

void cache_drop(struct import *im)
{
    struct graph *g = &im->g;
    size_t left = 0;
    for (size_t i = 0; i < g->n_inputs && im->places >= 0; i++) {
        const struct value *v = &g->values[g->inputs[i]];
        if (v->readers > 0 || v->next)
            g->inputs[left++] = g->inputs[i];
    }
    g->n_inputs = im->places >= 0 ? left : g->n_inputs;
}
