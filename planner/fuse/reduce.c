/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions: a Reduce and what stands next to it as one layer, a Reduce with another
 * op, or the global Pooling that a mean over the plane is. Before it there may be
 * Shuffles that permute and one operation on the elements, after it one operation on the
 * results. Chains end at one node, as those of element-wise layers do, which take what
 * these leave.
 */
#include "planner/fuse/members.h"
#include "planner/fuse/notes.h"

#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

enum { MOST_BEFORE = 4, MOST_NODES = MOST_BEFORE + 2 };

/* What a layer may be in a chain. */
enum role {
    ROLE_NONE,
    ROLE_PERMUTE,
    ROLE_ABS, /* of the elements, to EXP */
    ROLE_SQUARE,
    ROLE_EXP,
    ROLE_REDUCE,
    ROLE_SQRT, /* of the results, and the next */
    ROLE_LOG
};

static const struct rewrite {
    enum role before, after; /* ROLE_NONE: nothing */
    int op, becomes;
    const char *how;
} rewrites[] = {
    {ROLE_ABS, ROLE_NONE, STRATA_REDUCE_SUM, STRATA_REDUCE_L1, "both in one Reduce, l1"},
    {ROLE_SQUARE, ROLE_SQRT, STRATA_REDUCE_SUM, STRATA_REDUCE_L2,
     "all in one Reduce, l2"},
    {ROLE_SQUARE, ROLE_NONE, STRATA_REDUCE_SUM, STRATA_REDUCE_SUM_SQUARE,
     "both in one Reduce, sum_square"},
    {ROLE_NONE, ROLE_SQRT, STRATA_REDUCE_SUM_SQUARE, STRATA_REDUCE_L2,
     "both in one Reduce, l2"},
    {ROLE_EXP, ROLE_LOG, STRATA_REDUCE_SUM, STRATA_REDUCE_LOG_SUM_EXP,
     "all in one Reduce, log_sum_exp"},
    {ROLE_EXP, ROLE_NONE, STRATA_REDUCE_LOG_SUM, STRATA_REDUCE_LOG_SUM_EXP,
     "both in one Reduce, log_sum_exp"},
    {ROLE_NONE, ROLE_LOG, STRATA_REDUCE_SUM, STRATA_REDUCE_LOG_SUM,
     "both in one Reduce, log_sum"},
};

/* Nodes of a Reduce and around it, in their order, whether or not they make a chain. */
struct around {
    int nodes[MOST_NODES];
    enum role roles[MOST_NODES];
    int n, reduce;
};

/* ---- layers ------------------------------------------------------------------------ */

static bool same_dims(const struct network_tensor *a, const struct network_tensor *b)
{
    return a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

static bool is_real(const struct network_tensor *t)
{
    return dtype_is_free(t->dtype) || t->dtype == STRATA_FP64;
}

/* Whether a tensor is a Constant of one element, 2. */
static bool is_two(const strata_network *net, int tensor)
{
    const struct network_tensor *t = &net->tensors[tensor];
    float value = 0;
    if (t->producer < 0 || !is_type(&net->layers[t->producer], "core::Constant@1"))
        return false;
    const struct network_weight *w = &net->layers[t->producer].weights[0];
    return w->source == WEIGHT_FILE && w->dtype == STRATA_FP32 &&
           network_elements(w->dims, w->rank) == 1 &&
           network_weight_load(w, &value, NULL) == STRATA_OK && value == 2;
}

static bool is_square(const strata_network *net, const struct network_layer *layer)
{
    if (is_type(layer, "core::ElementWise@1") && layer->n_inputs == 2) {
        const int op = ((const strata_elementwise *)layer->params)->op;
        return (op == STRATA_PRODUCT && layer->inputs[0] == layer->inputs[1]) ||
               (op == STRATA_POW && is_two(net, layer->inputs[1]));
    }
    if (!is_type(layer, "core::Scale@1"))
        return false;
    const strata_scale *p = layer->params;
    for (size_t w = 0; w < layer->type->n_weights; w++)
        if (network_has_weight(layer, w))
            return false;
    return p->scale == 1 && p->shift == 0 && p->power == 2;
}

static enum role role_of(const strata_network *net, const struct network_layer *layer)
{
    static const enum role unary[STRATA_UNARY_COUNT] = {[STRATA_UNARY_ABS] = ROLE_ABS,
                                                        [STRATA_UNARY_EXP] = ROLE_EXP,
                                                        [STRATA_UNARY_SQRT] = ROLE_SQRT,
                                                        [STRATA_UNARY_LOG] = ROLE_LOG};
    if (layer->n_inputs < 1 || layer->n_outputs != 1 || layer->ports)
        return ROLE_NONE;
    if (is_type(layer, "core::Reduce@1"))
        return ROLE_REDUCE;
    if (is_type(layer, "core::Shuffle@1"))
        return ROLE_PERMUTE;
    const struct network_tensor *x = &net->tensors[layer->inputs[0]];
    if (!is_real(x) || !same_dims(x, &net->tensors[layer->outputs[0]]))
        return ROLE_NONE;
    if (is_type(layer, "core::Unary@1"))
        return unary[((const strata_unary *)layer->params)->op];
    return is_square(net, layer) ? ROLE_SQUARE : ROLE_NONE;
}

/* ---- one layer --------------------------------------------------------------------- */

static int64_t entry(strata_ints order, int64_t i)
{
    return order.n ? order.v[i] : i;
}

/* The dim of what the nodes first to the Reduce read that each dim of what that reads
 * is; false where a Shuffle among them does more than permute. */
static bool trace_dims(int order[STRATA_MAX_RANK], const struct planner *planner,
                       const struct around *a, int first)
{
    for (int d = 0; d < STRATA_MAX_RANK; d++)
        order[d] = d;
    for (int i = a->reduce - 1; i >= first; i--) {
        const struct network_layer *layer = planner->nodes[a->nodes[i]].layer;
        const strata_shuffle *p = layer->params;
        if (a->roles[i] != ROLE_PERMUTE)
            continue;
        if (p->shape.n)
            return false;
        for (int d = 0; d < planner->network->tensors[layer->inputs[0]].rank; d++)
            order[d] = (int)entry(p->first, entry(p->second, order[d]));
    }
    return true;
}

/* A Reduce of x that leaves what the network's does, where dim d of what that reads is
 * dim order[d] of x; its dims that go are put into `gone`. False: there is none. */
static bool map_axes(struct made_layer *out, const strata_network *net,
                     const struct network_layer *reduce, const int *order, bool *gone)
{
    const strata_reduce *p = reduce->params;
    const struct network_tensor *x = &net->tensors[out->inputs[0]];
    struct network_tensor left = {.rank = 0};
    int last = -1;
    for (int64_t i = 0; i < (p->axes.n ? p->axes.n : x->rank); i++) {
        const int64_t d = p->axes.n ? p->axes.v[i] : i;
        gone[out->axes[i] = order[d < 0 ? d + x->rank : d]] = true;
    }
    for (int d = 0; d < x->rank; d++) {
        if (gone[order[d]] || x->dims[order[d]] == 1)
            continue;
        if (order[d] < last)
            return false;
        last = order[d];
    }
    for (int d = 0; d < x->rank; d++)
        if (!gone[d] || p->keep_dims)
            left.dims[left.rank++] = gone[d] ? 1 : x->dims[d];
    if (left.rank == 0)
        left.dims[left.rank++] = 1;
    out->params.reduce.axes.n = p->axes.n ? p->axes.n : x->rank;
    return same_dims(&left, &net->tensors[out->output]);
}

/* Why a Reduce is no global Pooling; NULL: it is. */
static const char *refuse_pooling(const strata_network *net, const struct made_layer *m,
                                  const bool *gone)
{
    const struct network_tensor *x = &net->tensors[m->inputs[0]];
    bool plane = x->rank >= 3 && x->rank <= 5;
    bool empty = false;
    for (int d = 0; d < x->rank; d++) {
        plane &= gone[d] == (d >= 2);
        empty |= x->dims[d] == 0;
    }
    return m->params.reduce.op != STRATA_REDUCE_MEAN ? "it is no mean"
           : !plane ? "a global Pooling is a mean over all spatial dims"
           : !m->params.reduce.keep_dims ? "a global Pooling keeps dims"
           : !dtype_is_free(x->dtype)    ? "Pooling does not take its dtype"
           : empty                       ? "Pooling does not take an empty plane"
           : !net->pooling               ? "there is no Pooling here"
                                         : NULL;
}

static const struct rewrite *find_rewrite(enum role before, int op, enum role after)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rewrites); i++)
        if (rewrites[i].before == before && rewrites[i].op == op &&
            rewrites[i].after == after)
            return &rewrites[i];
    return NULL;
}

/* The nodes first to last as one layer. NULL and how it is so; or why it is not. */
static const char *write_layer(struct made_layer *out, const struct planner *planner,
                               const struct around *a, int first, int last,
                               const char **how)
{
    const strata_network *net = planner->network;
    const struct network_layer *head = planner->nodes[a->nodes[first]].layer;
    const struct network_layer *reduce = planner->nodes[a->nodes[a->reduce]].layer;
    const enum role after = last > a->reduce ? a->roles[last] : ROLE_NONE;
    enum role before = ROLE_NONE;
    int order[STRATA_MAX_RANK];
    bool gone[STRATA_MAX_RANK] = {false};
    for (int i = first; i < a->reduce; i++)
        before = a->roles[i] != ROLE_PERMUTE ? a->roles[i] : before;
    strata_reduce p = *(const strata_reduce *)reduce->params;
    const struct rewrite *r = find_rewrite(before, p.op, after);
    if (!r && (before || after))
        return "no Reduce computes all of it";
    p.op = r ? r->becomes : p.op;
    *how = r ? r->how : "both in one Reduce";
    *out =
        (struct made_layer){.layer = {.name = head->name,
                                      .type = reduce->type,
                                      .place = head->place,
                                      .n_inputs = 1,
                                      .n_outputs = 1},
                            .kind = MADE_REDUCE,
                            .params.reduce = p,
                            .inputs = {head->inputs[0]},
                            .output = planner->nodes[a->nodes[last]].layer->outputs[0]};
    if (!trace_dims(order, planner, a, first))
        return "the Shuffle reshapes";
    if (!map_axes(out, net, reduce, order, gone))
        return "the dims that stay change places";
    const char *why = refuse_pooling(net, out, gone);
    if (!why) {
        *how = first == last ? "the mean over its plane is a global Pooling"
                             : "both in one global Pooling";
        out->kind = MADE_POOLING;
        out->layer.type = net->pooling;
        out->params.pooling =
            (strata_pooling){.kind = STRATA_POOL_AVERAGE, .global = 1, .p = 2};
    }
    made_layer_settle(out);
    return first < last ? NULL : why;
}

/* ---- chains ------------------------------------------------------------------------ */

/* A Reduce, what is before it with at most one operation, and the one after it. */
static struct around look_around(const struct planner *planner, int reduce, int after)
{
    const strata_network *net = planner->network;
    struct around a = {.n = 0};
    int before[MOST_BEFORE], n = 0;
    enum role roles[MOST_BEFORE], role;
    bool operates = false;
    for (int k = reduce; n < MOST_BEFORE; n++) {
        k = net->tensors[planner->nodes[k].layer->inputs[0]].producer;
        role = k < 0 ? ROLE_NONE : role_of(net, planner->nodes[k].layer);
        if (role < ROLE_PERMUTE || role > ROLE_EXP || (operates && role != ROLE_PERMUTE))
            break;
        operates |= role != ROLE_PERMUTE;
        before[n] = k;
        roles[n] = role;
    }
    while (n-- > 0) {
        a.roles[a.n] = roles[n];
        a.nodes[a.n++] = before[n];
    }
    a.reduce = a.n;
    a.roles[a.n] = ROLE_REDUCE;
    a.nodes[a.n++] = reduce;
    role = after < 0 ? ROLE_NONE : role_of(net, planner->nodes[after].layer);
    if (role == ROLE_SQRT || role == ROLE_LOG) {
        a.roles[a.n] = role;
        a.nodes[a.n++] = after;
    }
    return a;
}

/* Why the tensor between two nodes must exist; NULL: it need not. */
static const char *refuse_link(const struct planner *planner, int before, int node)
{
    const struct network_layer *p = planner->nodes[before].layer;
    const struct network_layer *next = planner->nodes[node].layer;
    const int tensor = p->outputs[0];
    int reads = 0;
    for (int i = 0; i < next->n_inputs; i++)
        reads += next->inputs[i] == tensor;
    return planner->is_output[tensor]         ? "its output is a network output"
           : planner->readers[tensor] > reads ? "its output has other readers"
           : planner->network->tensors[tensor].formats
               ? "the network gives its output a format"
           : p->impl    ? "the network asks for an impl of it"
           : next->impl ? "the network asks for an impl of this layer"
                        : NULL;
}

/* Why the nodes first to last are not one layer; NULL: they are, `made`. */
static const char *refuse_chain(struct made_layer *made, const struct planner *planner,
                                const struct around *a, int first, int last,
                                const char **how)
{
    const char *why = NULL;
    if (first == last && planner->nodes[a->nodes[first]].layer->impl)
        why = "the network asks for an impl of this layer";
    for (int i = first; i < last && !why; i++)
        why = refuse_link(planner, a->nodes[i], a->nodes[i + 1]);
    return why ? why : write_layer(made, planner, a, first, last, how);
}

/* The longest chain, of those the one that begins first; false: there is none. */
static bool choose_chain(const struct planner *planner, const struct around *a,
                         int *first, int *last)
{
    struct made_layer made;
    const char *how;
    int longest = 0;
    *first = *last = a->reduce;
    for (int f = 0; f <= a->reduce; f++)
        for (int l = a->reduce; l < a->n; l++)
            if (l - f + 1 > longest && !refuse_chain(&made, planner, a, f, l, &how)) {
                longest = l - f + 1;
                *first = f;
                *last = l;
            }
    return longest > 0;
}

static int note(struct planner *planner, int node, int into, bool possible,
                const char *why, strata_error *err)
{
    struct planner_fusion *f = &planner->fusions[node];
    return into >= 0 && into != node ? notes_add(f, possible, into, err, "%.200s: %s",
                                                 planner->nodes[into].layer->name, why)
                                     : notes_add(f, possible, into, err, "%s", why);
}

/* What stands next to a chain, and a mean that is no Pooling. */
static int note_refusals(struct planner *planner, const struct around *a, int first,
                         int last, bool found, strata_error *err)
{
    struct made_layer made;
    const int reduce = a->nodes[a->reduce];
    const char *how, *why;
    int status = STRATA_OK;
    if (first > 0) {
        why = refuse_link(planner, a->nodes[first - 1], a->nodes[first]);
        why = why ? why : refuse_chain(&made, planner, a, first - 1, last, &how);
        status = note(planner, a->nodes[first], a->nodes[first - 1], false, why, err);
    }
    if (status == STRATA_OK && last + 1 < a->n) {
        why = refuse_chain(&made, planner, a, first, last + 1, &how);
        status = note(planner, a->nodes[last + 1], a->nodes[last], false, why, err);
    }
    const strata_reduce *p = planner->nodes[reduce].layer->params;
    if (status != STRATA_OK || found || p->op != STRATA_REDUCE_MEAN)
        return status;
    why = refuse_chain(&made, planner, a, a->reduce, a->reduce, &how);
    return note(planner, reduce, -1, false, why, err);
}

/* The groups that begin in a chain; all end where it ends. */
static int make_groups(struct planner *planner, const struct around *a, int first,
                       int last, strata_error *err)
{
    struct made_layer made;
    const char *how = NULL;
    int status = STRATA_OK;
    for (int i = last; i >= first && status == STRATA_OK; i--) {
        if (i < last) {
            planner->nodes[a->nodes[i]].next = a->nodes[i + 1];
            planner->nodes[a->nodes[i + 1]].previous = a->nodes[i];
        }
        if (i <= a->reduce && !refuse_chain(&made, planner, a, i, last, &how))
            status =
                planner_add_group(planner, a->nodes[i], &made, last - i + 1, how, err);
    }
    for (int i = first + 1; i <= last && status == STRATA_OK; i++)
        status = note(planner, a->nodes[i], a->nodes[i - 1], true, how, err);
    return status == STRATA_OK && first == last
               ? note(planner, a->nodes[first], a->nodes[first], true, how, err)
               : status;
}

int planner_make_reductions(struct planner *planner, strata_error *err)
{
    const size_t n = planner->n_nodes;
    int status = STRATA_OK, *reader = zalloc(planner->network->n_tensors, sizeof *reader,
                                             "the reductions", err);
    if (!reader)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < planner->nodes[i].layer->n_inputs; k++)
            reader[planner->nodes[i].layer->inputs[k]] = (int)i + 1;
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        const struct network_layer *layer = planner->nodes[i].layer;
        int first, last;
        if (role_of(planner->network, layer) != ROLE_REDUCE)
            continue;
        const struct around a =
            look_around(planner, (int)i, reader[layer->outputs[0]] - 1);
        const bool found = choose_chain(planner, &a, &first, &last);
        if (found)
            status = make_groups(planner, &a, first, last, err);
        if (status == STRATA_OK)
            status = note_refusals(planner, &a, first, last, found, err);
    }
    free(reader);
    return status;
}
