/* SPDX-License-Identifier: Apache-2.0
 *
 * shape and weight_shape on any input: rank 1 to 8, empty tensors, sizes at the edge of
 * what fits. They may refuse with a message; they may not crash, change what they read,
 * or answer with dims that make no sense.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/test/test.h"

static const struct harness_shape shapes[] = {
    {1, {1}},
    {1, {0}},
    {2, {1, 1}},
    {2, {3, 0}},
    {2, {0, 8}},
    {3, {1, 7, 5}},
    {3, {0, 7, 5}},
    {4, {1, 1, 1, 1}},
    {4, {3, 9, 7, 5}},
    {4, {2, 8, 6, 4}},
    {4, {0, 8, 7, 7}},
    {4, {1, 0, 7, 7}},
    {4, {1, 8, 0, 7}},
    {4, {1, 8, 7, 0}},
    {4, {1, 8, 1, 100000}},
    {4, {2147483647, 8, 7, 7}},
    {4, {1, 2147483647, 7, 7}},
    {4, {1, 8, 2147483647, 2147483647}},
    {4, {1, 1, 1, INT64_MAX}},
    {5, {1, 2, 3, 4, 5}},
    {6, {1, 2, 3, 2, 3, 2}},
    {7, {1, 2, 1, 2, 1, 2, 1}},
    {8, {1, 2, 1, 2, 1, 2, 1, 2}},
};

/* Each field that a plugin can write, whole or not. */
static void check_output(struct check_child *c, const strata_tensor *t, int i)
{
    if (t->rank < 1 || t->rank > STRATA_MAX_RANK) {
        check_found(c, "shape-invalid", "output %d has rank %d", i, t->rank);
        return;
    }
    if (t->dtype < 0 || t->dtype >= STRATA_DTYPE_COUNT)
        check_found(c, "shape-invalid", "output %d has dtype %d", i, t->dtype);
    for (int d = 0; d < t->rank; d++)
        if (t->dims[d] < 0) {
            check_found(c, "shape-invalid", "output %d has dim %d of %lld", i, d,
                        (long long)t->dims[d]);
            return;
        }
}

static void fill_input(strata_tensor *t, const struct harness_shape *s, int32_t dtype)
{
    *t = (strata_tensor){
        .rank = s->rank, .dtype = dtype, .vector = 1, .vector_dim = -1, .count = 1};
    memcpy(t->dims, s->dims, sizeof t->dims);
    for (int d = 0; d < s->rank; d++)
        if (__builtin_mul_overflow(t->count, s->dims[d], &t->count))
            t->count = INT64_MAX;
}

/* One call; its status, outputs in out. */
static int call_shape(struct check_child *c, struct harness_node *n, strata_tensor *out)
{
    const strata_layer *l = &c->layer->layer;
    strata_tensor expected[HARNESS_WEIGHTS] = {{0}};
    error_clear(&n->err);
    for (int i = 0; i < HARNESS_OUTPUTS; i++)
        harness_blank_output(n, &out[i]);
    n->node.out = out;
    harness_enter(n, "weight_shape");
    int status = l->weight_shape ? l->weight_shape(&n->node, expected) : STRATA_OK;
    for (int i = 0; i < n->node.n_weights && status == STRATA_OK; i++)
        if (n->weight[i].rank == 0 && expected[i].rank > 0)
            n->weight[i] = expected[i];
    if (status == STRATA_OK && l->shape) {
        harness_enter(n, "shape");
        status = l->shape(&n->node);
    }
    harness_enter(n, "");
    return status;
}

static void try_shape(struct check_child *c, struct harness_node *n, const void *params,
                      const struct harness_shape *in)
{
    strata_tensor first[HARNESS_OUTPUTS], second[HARNESS_OUTPUTS];
    cases_write_shapes(c->report->place.shapes, sizeof c->report->place.shapes, in,
                       n->node.n_in);
    for (int i = 0; i < n->node.n_in; i++)
        fill_input(&n->in[i], &in[i], c->cases.in_dtype[i]);
    memset(n->weight, 0, sizeof n->weight);
    int status = call_shape(c, n, first);
    c->report->runs++;
    if (status != STRATA_OK && n->err.length == 0)
        check_found(c, "message-missing", "shape returned %d without a message", status);
    if (status == STRATA_OK && n->err.status != STRATA_OK)
        check_found(c, "status-lost", "shape failed but returned 0: %s", n->err.message);
    if (status == STRATA_OK)
        for (int i = 0; i < n->node.n_out; i++)
            check_output(c, &first[i], i);
    memset(n->weight, 0, sizeof n->weight);
    int again = call_shape(c, n, second);
    bool same = again == status;
    for (int i = 0; i < n->node.n_out && same && status == STRATA_OK; i++)
        same = first[i].rank == second[i].rank && first[i].dtype == second[i].dtype &&
               memcmp(first[i].dims, second[i].dims, sizeof first[i].dims) == 0;
    if (!same)
        check_found(c, "shape-impure", "a second call gives another shape");
    if (memcmp(params, n->params, c->layer->layer.params_size) != 0) {
        check_found(c, "params-modified", "shape changed params");
        memcpy(n->params, params, c->layer->layer.params_size);
    }
}

/* The shapes given, or those of the network beside the file and every odd one. */
static void try_shapes(struct check_child *c, struct harness_node *n, const void *params)
{
    const struct check_cases *k = &c->cases;
    struct harness_shape in[HARNESS_INPUTS];
    for (size_t i = 0; i < c->o->n_shapes; i++)
        if (cases_parse_shapes(c->o->shapes[i], in) == n->node.n_in)
            try_shape(c, n, params, in);
    for (size_t i = 0; i < k->n_own; i++)
        if (cases_parse_shapes(k->own[i].shapes, in) == n->node.n_in)
            try_shape(c, n, params, in);
    for (size_t i = 0; i < ARRAY_LENGTH(shapes) && n->node.n_in > 0 && !c->o->n_shapes;
         i++) {
        cases_inputs(k, &shapes[i], in);
        try_shape(c, n, params, in);
    }
}

static void try_attributes(struct check_child *c, const char *attrs)
{
    struct harness_node n = {.phase = c->report->place.phase,
                             .in_dtype = c->cases.in_dtype};
    struct harness_shape in[HARNESS_INPUTS];
    const size_t size = c->layer->layer.params_size;
    void *params = malloc(size + 1);
    const int n_in = cases_plain(c, in);
    copy_text(c->report->place.attrs, sizeof c->report->place.attrs, attrs);
    cases_write_shapes(c->report->place.shapes, sizeof c->report->place.shapes, in, n_in);
    if (params && harness_open(&n, c->layer, attrs, in, n_in, NULL, 0) == STRATA_OK) {
        memcpy(params, n.params, size);
        try_shapes(c, &n, params);
    }
    harness_close(&n);
    free(params);
}

void check_shapes(struct check_child *c)
{
    for (size_t i = 0; i < c->cases.n; i++)
        try_attributes(c, c->cases.attrs[i]);
}
