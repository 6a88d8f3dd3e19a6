/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention as exporters spell it out: products, a factor before or behind them, addends
 * that are masks, a softmax. Heads that were split off a product's columns, and are
 * joined again, are left where they are: then all is of rank 3, and queries, keys and
 * values that one product gives, or could give, are one packed input.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "network/import/pattern/linear.h"
#include "network/import/pattern/scores.h"
#include "network/import/pattern/view.h"

enum { RANK = 4 };
enum { QUERIES, KEYS, VALUES, PARTS };

/* Heads side by side in rows of a value. */
struct flat {
    int source;
    bool turned; /* a sequence's first rows of all batches, then its second ones */
    int64_t heads, offset, row; /* elements */
};

struct attention {
    struct match *m;
    struct graph *g;
    int part[PARTS];  /* values of rank 4 */
    bool keys_turned; /* batch x heads x dim x keys */
    struct scores of; /* scale 0: the layer's */
    int64_t batch, heads, kv_heads, length, keys, dim, v_dim;
    struct flat flat[PARTS];
};

/* ---- sizes ---------------------------------------------------------------------------
 */

static bool read_sizes(struct attention *a)
{
    const struct value *q = graph_value(a->g, a->part[QUERIES]);
    const struct value *k = graph_value(a->g, a->part[KEYS]);
    const struct value *v = graph_value(a->g, a->part[VALUES]);
    if (!q || !k || !v || q->rank != RANK || k->rank != RANK || v->rank != RANK)
        return false;
    a->batch = q->dims[0];
    a->heads = q->dims[1];
    a->length = q->dims[2];
    a->dim = q->dims[3];
    a->kv_heads = k->dims[1];
    a->keys = k->dims[a->keys_turned ? 3 : 2];
    a->v_dim = v->dims[3];
    return k->dims[0] == a->batch && v->dims[0] == a->batch &&
           v->dims[1] == a->kv_heads && v->dims[2] == a->keys &&
           k->dims[a->keys_turned ? 2 : 3] == a->dim && a->kv_heads > 0 &&
           a->heads % a->kv_heads == 0 &&
           (a->kv_heads == a->heads || a->kv_heads == 1 || !a->keys_turned);
}

/* Addends are no larger than the scores. */
static bool fit_addends(const struct attention *a)
{
    const int64_t scores[] = {a->batch, a->heads, a->length, a->keys};
    for (int i = 0; i < a->of.n; i++) {
        const struct value *v = graph_value(a->g, a->of.addend[i].value);
        if (!v || v->rank < 0)
            return false;
        for (int d = 0; d < v->rank; d++) {
            const int at = RANK - v->rank + d;
            if (v->dims[d] != 1 && (at < 0 || v->dims[d] != scores[at]))
                return false;
        }
    }
    return true;
}

/* `s` and `y` of the text are the softmax and the product with the values, `w` what
 * gives zeros to a query that sees no key, as the layer does. */
static bool read_spelled_out(struct attention *a, const char *product)
{
    const struct node *s = match_node(a->m, "s"), *y = match_node(a->m, product);
    const struct node *w = match_node(a->m, "w");
    const struct value *x = graph_value(a->g, s->in[0]);
    const int64_t axis = node_integer(s, "axis", -1);
    if (!x || (axis != -1 && axis != x->rank - 1) || y->in[0] != (w ? w : s)->out[0] ||
        !scores_find(a->g, s->in[0], &a->of))
        return false;
    a->part[QUERIES] = a->of.queries;
    a->part[KEYS] = a->of.keys;
    a->part[VALUES] = y->in[1];
    a->keys_turned = true;
    if (!read_sizes(a))
        return false;
    if (match_near(a->of.scale * sqrt((double)a->dim), 1))
        a->of.scale = 0;
    return fit_addends(a);
}

/* An operator of rank 4. */
static bool read_operator(struct attention *a)
{
    const struct node *n = match_node(a->m, "o");
    for (int i = 0; i < PARTS; i++)
        a->part[i] = n->in[i];
    a->of.addend[0] = (struct addend){match_value(a->m, "m"), VALUE_NONE, false};
    a->of.n = a->of.addend[0].value >= 0;
    a->of.scale = node_real(n, "scale", 0);
    return read_sizes(a);
}

/* ---- heads in rows -------------------------------------------------------------------
 */

static bool find_flat(const struct attention *a, int part, struct flat *f)
{
    const bool turned = part == KEYS && a->keys_turned;
    const int64_t size = part == VALUES ? a->v_dim : a->dim;
    int64_t n[RANK], step[RANK], repeated[RANK];
    struct view v;
    if (!view_of(a->g, a->part[part], &v))
        return false;
    for (int d = 0; d < RANK; d++) {
        const int from = turned && d >= 2 ? 5 - d : d;
        if (!view_dim(&v, from, &n[d], &step[d], &repeated[d]) ||
            (d != 1 && repeated[d] != 1))
            return false;
    }
    const int64_t count = value_count(graph_value(a->g, v.source));
    f->source = v.source;
    f->heads = n[1];
    f->offset = v.offset;
    f->turned = n[0] > 1 && n[2] > 1 && step[2] == n[0] * step[0];
    f->row = n[2] > 1 && !f->turned ? step[2] : n[0] > 1 ? step[0] : count;
    return (n[3] == 1 || step[3] == 1) && (n[1] == 1 || step[1] == size) &&
           (n[2] == 1 || n[0] == 1 || f->turned || step[0] == n[2] * step[2]) &&
           count == n[0] * n[2] * f->row && f->offset + n[1] * size <= f->row;
}

static bool find_flats(struct attention *a)
{
    for (int i = 0; i < PARTS; i++)
        if (!find_flat(a, i, &a->flat[i]))
            return false;
    a->kv_heads = a->flat[KEYS].heads;
    return a->flat[QUERIES].heads == a->heads && a->flat[VALUES].heads == a->kv_heads &&
           a->heads % a->kv_heads == 0;
}

static bool same_order(const struct attention *a)
{
    return a->flat[KEYS].turned == a->flat[QUERIES].turned &&
           a->flat[VALUES].turned == a->flat[QUERIES].turned;
}

static bool is_packed(const struct attention *a)
{
    const struct flat *q = &a->flat[QUERIES], *k = &a->flat[KEYS], *v = &a->flat[VALUES];
    return q->source == k->source && q->source == v->source && same_order(a) &&
           a->v_dim == a->dim && a->keys == a->length && q->row == k->row &&
           q->row == v->row && q->row == (a->heads + 2 * a->kv_heads) * a->dim &&
           q->offset == 0 && k->offset == a->heads * a->dim &&
           v->offset == (a->heads + a->kv_heads) * a->dim;
}

static int64_t columns(const struct attention *a, int part)
{
    return a->flat[part].heads * (part == VALUES ? a->v_dim : a->dim);
}

static bool is_apart(const struct attention *a)
{
    for (int i = 0; i < PARTS; i++)
        if (a->flat[i].row != columns(a, i))
            return false;
    return true;
}

/* ---- products that could be one, or apart ---------------------------------------------
 */

/* One product with the columns of all three; false: they have not one operand. */
static bool join_products(struct attention *a)
{
    struct linear l[PARTS];
    for (int i = 0; i < PARTS; i++)
        if (graph_value(a->g, a->flat[i].source)->readers != 1 ||
            !linear_find(a->g, a->flat[i].source, &l[i]))
            return false;
    if (a->v_dim != a->dim || a->keys != a->length || !same_order(a))
        return false;
    const int y = linear_join(a->m, l, PARTS);
    for (int i = 0; i < PARTS && y >= 0; i++)
        a->flat[i].source = y;
    return y >= 0;
}

/* Whether all that a product gives is read here. */
static bool is_used_up(const struct attention *a, int source)
{
    int64_t used = 0, row = 0;
    for (int i = 0; i < PARTS; i++)
        if (a->flat[i].source == source) {
            used += columns(a, i);
            row = a->flat[i].row;
        }
    return used == row;
}

/* Parts of one product, as keys and values of another sequence are, by a product each:
 * then nothing has to be cut out of it. */
static void split_products(struct attention *a)
{
    struct flat to[PARTS];
    for (int i = 0; i < PARTS; i++) {
        const struct flat *f = &a->flat[i];
        const int64_t n = columns(a, i);
        struct linear l;
        to[i] = *f;
        if (f->row == n || !is_used_up(a, f->source) || !linear_find(a->g, f->source, &l))
            continue;
        to[i].source = linear_part(a->m, &l, f->offset, n);
        to[i].offset = 0;
        to[i].row = n;
    }
    memcpy(a->flat, to, sizeof to);
}

/* ---- emission ------------------------------------------------------------------------
 */

/* The value with other dims; a first one that stays is 0: any batch will do. */
static int reshape(const struct attention *a, int value, int rank, const int64_t *dims)
{
    const struct value *v = graph_value(a->g, value);
    int64_t to[STRATA_MAX_RANK];
    if (v && v->rank == rank && memcmp(v->dims, dims, (size_t)rank * sizeof *dims) == 0)
        return value;
    memcpy(to, dims, (size_t)rank * sizeof *dims);
    if (v && v->rank > 0 && v->dims[0] == to[0])
        to[0] = 0;
    const int in[] = {value, graph_add_integers(a->g, 1, to, rank)};
    const struct node *n = match_add(a->m, "Reshape", in, 2);
    return n ? n->out[0] : VALUE_NONE;
}

/* Zeros where scores stay, and the fill where they do not. */
static int fill_out(const struct attention *a, int value, const struct addend *from)
{
    const int dtype = graph_value(a->g, from->fill)->dtype;
    const void *data = arena_get(&a->g->arena, 1, sizeof(double));
    const int zero = graph_add_constant(a->g, "", dtype, 0, NULL, data);
    const int in[] = {value, from->filled ? from->fill : zero,
                      from->filled ? zero : from->fill};
    const struct node *n = data ? match_add(a->m, "Where", in, 3) : NULL;
    return n ? n->out[0] : VALUE_NONE;
}

/* The sum of all addends, of at most 4 dims. */
static int mask(const struct attention *a)
{
    int sum = VALUE_NONE;
    for (int i = 0; i < a->of.n; i++) {
        const struct addend *from = &a->of.addend[i];
        const struct value *v = graph_value(a->g, from->value);
        const int extra = v->rank > RANK ? v->rank - RANK : 0;
        int64_t dims[STRATA_MAX_RANK];
        memcpy(dims, v->dims + extra, sizeof dims - (size_t)extra * sizeof *dims);
        const int own = extra ? reshape(a, from->value, RANK, dims) : from->value;
        const int x = from->fill >= 0 ? fill_out(a, own, from) : own;
        const int in[] = {sum, x};
        const struct node *n = sum >= 0 ? match_add(a->m, "Add", in, 2) : NULL;
        sum = sum < 0 ? x : n ? n->out[0] : VALUE_NONE;
    }
    return sum;
}

static struct node *layer(const struct attention *a, int q, int k, int v)
{
    const int in[] = {q, k, v, mask(a)};
    struct node *n = match_own(a->m, "Attention", in, in[3] >= 0 ? 4 : k >= 0 ? 3 : 1);
    if (a->of.scale != 0)
        node_set_real(a->g, n, "scale", a->of.scale);
    return n;
}

/* Batches for sequences, of three dims. */
static int turn(const struct attention *a, int value)
{
    static const int64_t order[] = {1, 0, 2};
    struct node *n = match_add(a->m, "Transpose", &value, 1);
    node_set_integers(a->g, n, "perm", order, ARRAY_LENGTH(order));
    return n ? n->out[0] : VALUE_NONE;
}

/* The part's columns of rows that have more. */
static int cut(const struct attention *a, int value, int part)
{
    const int64_t axis = 2, begin = a->flat[part].offset, end = begin + columns(a, part);
    const int in[] = {value, graph_add_integers(a->g, 1, &begin, 1),
                      graph_add_integers(a->g, 1, &end, 1),
                      graph_add_integers(a->g, 1, &axis, 1)};
    const struct node *n = match_add(a->m, "Slice", in, ARRAY_LENGTH(in));
    return n ? n->out[0] : VALUE_NONE;
}

/* Rows of a part alone, or of all that lies in them. */
static int rows(const struct attention *a, int part, bool whole)
{
    const struct flat *f = &a->flat[part];
    const int64_t length = part == QUERIES ? a->length : a->keys;
    const int64_t dims[] = {a->batch, length, f->row};
    const int64_t turned[] = {length, a->batch, f->row};
    const int all = reshape(a, f->source, 3, f->turned ? turned : dims);
    const int own = whole || f->row == columns(a, part) ? all : cut(a, all, part);
    return f->turned ? turn(a, own) : own;
}

/* All of rank 3, or NULL. */
static struct node *flat_layer(struct attention *a)
{
    struct node *n = NULL;
    if (!find_flats(a))
        return NULL;
    const bool joined = !is_packed(a) && is_apart(a) && join_products(a);
    if (joined)
        a->flat[QUERIES].row = (a->heads + 2 * a->kv_heads) * a->dim;
    if (joined || is_packed(a))
        n = layer(a, rows(a, QUERIES, true), VALUE_NONE, VALUE_NONE);
    else {
        split_products(a);
        n = layer(a, rows(a, QUERIES, false), rows(a, KEYS, false),
                  rows(a, VALUES, false));
    }
    node_set_integer(a->g, n, "heads", a->heads);
    if (a->kv_heads != a->heads)
        node_set_integer(a->g, n, "kv_heads", a->kv_heads);
    return n;
}

/* Whether Transpose t brings the heads of a batch behind its queries; and in *turned,
 * whether it brings the batches behind them, too. */
static bool joins_heads(const struct attention *a, bool *turned)
{
    int64_t perm[STRATA_MAX_RANK];
    const struct node *t = match_node(a->m, "t");
    int at = 0, order[RANK] = {0};
    if (node_integers(t, "perm", perm, STRATA_MAX_RANK) != RANK)
        return false;
    const bool behind = perm[0] == 2 && perm[1] == 0;
    *turned = a->batch > 1 && a->length > 1 && behind;
    for (int d = 0; d < RANK; d++)
        if (perm[d] != 0)
            order[at++] = (int)perm[d];
    return (a->batch == 1 || perm[0] == 0 || behind) && order[0] == 2 && order[1] == 1 &&
           order[2] == 3;
}

static struct node *finish_flat(struct attention *a)
{
    const struct value y = *match_tensor(a->m, "y");
    bool turned = false;
    struct node *n = joins_heads(a, &turned) ? flat_layer(a) : NULL;
    const int64_t columns = a->heads * a->v_dim;
    const int64_t dims[] = {turned ? a->length : a->batch, turned ? a->batch : a->length,
                            columns};
    if (!n)
        return NULL;
    const int made = turned ? turn(a, n->out[0]) : n->out[0];
    if (y.rank == 3 && memcmp(y.dims, dims, sizeof dims) == 0)
        return a->g->nodes[a->g->n_nodes - 1];
    int64_t to[STRATA_MAX_RANK];
    memcpy(to, y.dims, sizeof to);
    if (to[0] == dims[0])
        to[0] = 0;
    const int in[] = {made, graph_add_integers(a->g, 1, to, y.rank)};
    return match_add(a->m, "Reshape", in, 2);
}

static struct attention begin(struct match *m)
{
    return (struct attention){.m = m, .g = match_graph(m)};
}

static struct node *emit_flat(struct match *m)
{
    struct attention a = begin(m);
    return read_spelled_out(&a, "o") ? finish_flat(&a) : NULL;
}

static struct node *emit_flat_operator(struct match *m)
{
    struct attention a = begin(m);
    const struct node *from = match_node(m, "o");
    const bool plain =
        !node_attribute(from, "qk_matmul_output_mode") && read_operator(&a);
    const bool causal = node_integer(from, "is_causal", 0) != 0;
    const double softcap = node_real(from, "softcap", 0);
    const size_t first = a.g->n_nodes;
    struct node *n = plain ? finish_flat(&a) : NULL;
    for (size_t i = first; n && i < a.g->n_nodes; i++)
        if (strcmp(a.g->nodes[i]->op, "Attention") == 0) {
            node_set_integer(a.g, a.g->nodes[i], "causal", causal);
            node_set_real(a.g, a.g->nodes[i], "softcap", softcap);
        }
    return n;
}

/* Keys with their elements last: as they were before they were turned, or turned back. */
static int keys_upright(const struct attention *a)
{
    static const int64_t back[] = {0, 1, 3, 2};
    const struct node *t = maker(a->g, a->part[KEYS]);
    int64_t perm[STRATA_MAX_RANK];
    if (is_op(t, "Transpose") &&
        node_integers(t, "perm", perm, STRATA_MAX_RANK) == RANK &&
        memcmp(perm, back, sizeof back) == 0)
        return t->in[0];
    struct node *n = match_add(a->m, "Transpose", &a->part[KEYS], 1);
    node_set_integers(a->g, n, "perm", back, RANK);
    return n ? n->out[0] : VALUE_NONE;
}

/* Keys or values whose heads another value has, each for several heads of queries;
 * VALUE_NONE: each has its own. */
static int shared_heads(const struct attention *a, int part, int64_t *heads)
{
    const bool turned = part == KEYS && a->keys_turned;
    int64_t n[RANK], step[RANK], repeated[RANK], dense = 1;
    struct view v;
    if (!view_of(a->g, a->part[part], &v))
        return VALUE_NONE;
    for (int d = RANK; d-- > 0; dense *= n[d]) {
        const int from = turned && d >= 2 ? 5 - d : d;
        if (!view_dim(&v, from, &n[d], &step[d], &repeated[d]) ||
            (n[d] > 1 && step[d] != dense) || (d != 1 && repeated[d] != 1))
            return VALUE_NONE;
    }
    const struct value *source = graph_value(a->g, v.source);
    const bool whole =
        source->rank == RANK && v.offset == 0 && memcmp(source->dims, n, sizeof n) == 0;
    *heads = n[1];
    return whole && repeated[1] > 1 ? v.source : VALUE_NONE;
}

static struct node *emit_heads(struct match *m)
{
    struct attention a = begin(m);
    int64_t k_heads, v_heads;
    if (!read_spelled_out(&a, "y"))
        return NULL;
    const int k = shared_heads(&a, KEYS, &k_heads),
              v = shared_heads(&a, VALUES, &v_heads);
    if (k >= 0 && v >= 0 && k_heads == v_heads)
        return layer(&a, a.part[QUERIES], k, v);
    return layer(&a, a.part[QUERIES], keys_upright(&a), a.part[VALUES]);
}

#define JOINED "; t = Transpose o; y = Reshape|Flatten t ..."
#define SEEN "s = Softmax a; n = IsNaN s; w = Where n 0 s; "

static const struct pattern table[] = {
    {.text = "s = Softmax a; o = MatMul s v" JOINED, .emit = emit_flat},
    {.text = SEEN "o = MatMul w v" JOINED, .emit = emit_flat},
    {.text = "o = Attention q k v m" JOINED, .emit = emit_flat_operator},
    {.text = "o = Attention q k v" JOINED, .emit = emit_flat_operator},
    {.text = "s = Softmax a; y = MatMul s v", .emit = emit_heads},
    {.text = SEEN "y = MatMul w v", .emit = emit_heads},
};

const struct pattern_table pattern_attentions = {table, ARRAY_LENGTH(table)};
