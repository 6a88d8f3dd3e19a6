/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding a pattern from its last node up, and what its rows ask about it.
 */
#include "network/import/pattern/match.h"
#include "network/import/symbols/symbols.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "formats/format.h"
#include "io/weights/weights.h"

enum { NEAR = 6 }; /* nodes between a value and an input */

/* ---- finding -------------------------------------------------------------------------
 */

static double number_of(const struct value *v)
{
    const int64_t n = v && v->constant ? value_count(v) : 0;
    const double first = n > 0 ? value_real(v, 0) : NAN;
    for (int64_t i = 1; i < n; i++)
        if (value_real(v, i) != first)
            return NAN;
    return first;
}

/* A constant of a half type is its number but for that type's rounding. */
static bool is_number(const struct value *v, double number)
{
    const double slack = v->dtype == STRATA_FP16   ? 1e-3
                         : v->dtype == STRATA_BF16 ? 8e-3
                                                   : 1e-6;
    return fabs(number_of(v) - number) <= slack * fabs(number);
}

static bool find_node(struct match *m, int at, struct node *n, unsigned swaps);

static bool find_arg(struct match *m, const struct arg *a, int value, unsigned swaps)
{
    const struct value *v = graph_value(&m->im->g, value);
    if (!v)
        return false;
    if (a->kind == ARG_NUMBER)
        return v->constant && is_number(v, a->number);
    if (a->kind == ARG_CONSTANT && !v->constant)
        return false;
    if (a->kind == ARG_INNER &&
        (!v->node || v->constant || !find_node(m, a->statement, v->node, swaps)))
        return false;
    if (m->values[a->name] >= 0)
        return m->values[a->name] == value;
    m->values[a->name] = value;
    return true;
}

static bool one_output(const struct graph *g, const struct node *n)
{
    for (int i = 1; i < n->n_out; i++)
        if (n->out[i] >= 0 && g->values[n->out[i]].readers > 0)
            return false;
    return n->n_out > 0 && n->out[0] >= 0;
}

/* Inputs beyond those in the text. */
static bool rest_is_constant(const struct graph *g, const struct statement *s,
                             const struct node *n)
{
    for (int i = s->n_args; i < n->n_in; i++)
        if (n->in[i] >= 0 && (!s->rest || !g->values[n->in[i]].constant))
            return false;
    return true;
}

/* `swaps` has a bit for each statement: its two operands come in the other order. */
static bool find_node(struct match *m, int at, struct node *n, unsigned swaps)
{
    const struct statement *s = &m->parsed->statements[at];
    const struct graph *g = &m->im->g;
    const bool swapped = (swaps >> at & 1) != 0;
    if (m->nodes[at])
        return m->nodes[at] == n;
    if (!statement_takes(s, n) || n->n_in < s->n_args || !one_output(g, n) ||
        !rest_is_constant(g, s, n) || (swapped && !node_commutes(n)))
        return false;
    if (at + 1 < m->parsed->n && g->values[n->out[0]].readers != s->reads)
        return false;
    m->nodes[at] = n;
    for (int i = 0; i < s->n_args; i++)
        if (!find_arg(m, &s->args[i], n->in[swapped ? 1 - i : i], swaps))
            return false;
    m->values[s->name] = n->out[0];
    return true;
}

bool match_find(struct match *m, struct node *root)
{
    const struct parsed *p = m->parsed;
    if (!statement_takes(&p->statements[p->n - 1], root))
        return false;
    for (unsigned swaps = 0; swaps < 1u << p->n; swaps++) {
        if (swaps & ~p->swaps)
            continue;
        memset(m->nodes, 0, sizeof m->nodes);
        for (int i = 0; i < p->n_names; i++)
            m->values[i] = VALUE_NONE;
        if (find_node(m, p->n - 1, root, swaps))
            return true;
    }
    return false;
}

/* ---- for rows ------------------------------------------------------------------------
 */

struct graph *match_graph(const struct match *m)
{
    return &m->im->g;
}

int match_value(const struct match *m, const char *name)
{
    const int i = parsed_name(m->parsed, name);
    return i >= 0 ? m->values[i] : VALUE_NONE;
}

const struct value *match_tensor(const struct match *m, const char *name)
{
    return graph_value(&m->im->g, match_value(m, name));
}

const struct node *match_node(const struct match *m, const char *name)
{
    const int value = parsed_name(m->parsed, name);
    for (int i = 0; i < m->parsed->n; i++)
        if (m->parsed->statements[i].name == value)
            return m->nodes[i];
    return NULL;
}

/* Whether that dim of a value is one of an input's that may vary, as far as a few nodes
 * tell. */
static bool is_free(const struct import *im, int value, int rank, int dim, int depth)
{
    const struct value *v = graph_value(&im->g, value);
    bool free = v && v->node && depth == 0;
    if (!v || v->constant || free)
        return free;
    for (int d = 0; !v->node && d < v->rank; d++) {
        const struct symbol *s = v->symbols[d] ? &im->symbols[v->symbols[d] - 1] : NULL;
        free |= s && symbol_is_kept(s) && symbol_has_range(s) &&
                (v->rank != rank || d == dim);
    }
    for (int i = 0; v->node && i < v->node->n_in && !free; i++)
        free = is_free(im, v->node->in[i], rank, dim, depth - 1);
    return free;
}

bool match_may_vary(const struct match *m, const char *name, int dim)
{
    return m->im->n_symbols > 0 &&
           is_free(m->im, match_value(m, name), match_tensor(m, name)->rank, dim, NEAR);
}

const char *match_word(const struct match *m)
{
    return m->pattern->word;
}

bool match_op(const struct match *m, const char *name, const char *op)
{
    const struct node *n = match_node(m, name);
    return n && strcmp(n->op, op) == 0;
}

double match_number(const struct match *m, const char *name)
{
    return number_of(match_tensor(m, name));
}

bool match_near(double x, double number)
{
    return fabs(x - number) <= 1e-6 * fabs(number);
}

int match_constant(struct match *m, const char *name, int rank, const int64_t *dims,
                   double factor)
{
    const struct value *v = match_tensor(m, name);
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= dims[d];
    const int64_t count = v ? value_count(v) : 0;
    if (!v || (count != n && count != 1) || n == 0)
        return VALUE_NONE;
    if (count == n && factor == 1 && v->dtype == STRATA_FP32)
        return graph_add_constant(&m->im->g, v->name, v->dtype, rank, dims, v->data);
    float *to = arena_get(&m->im->g.arena, (size_t)n, sizeof *to);
    for (int64_t i = 0; to && i < n; i++)
        to[i] = (float)(value_real(v, count == 1 ? 0 : i) * factor);
    return to ? graph_add_constant(&m->im->g, v->name, STRATA_FP32, rank, dims, to)
              : VALUE_NONE;
}

struct node *match_add(struct match *m, const char *op, const int *in, int n)
{
    const int out = graph_add_value(&m->im->g, "");
    return graph_add_node(&m->im->g, op, in, n, &out, 1);
}

struct node *match_own(struct match *m, const char *op, const int *in, int n)
{
    struct node *node = match_add(m, op, in, n);
    if (node)
        node->domain = PATTERN_DOMAIN;
    return node;
}

struct node *match_again(struct match *m, const char *name)
{
    const struct node *from = match_node(m, name);
    struct graph *g = &m->im->g;
    struct node *n = from ? match_add(m, from->op, from->in, from->n_in) : NULL;
    if (!n)
        return NULL;
    n->domain = from->domain;
    n->attributes = arena_copy(&g->arena, from->attributes,
                               from->n_attributes * sizeof *n->attributes);
    n->n_attributes = n->attributes ? from->n_attributes : 0;
    return n;
}
