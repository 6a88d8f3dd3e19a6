/* SPDX-License-Identifier: Apache-2.0
 *
 * Which layers are siblings: one table of the types that can be, and how they agree.
 */
#include "network/merge/merge.h"

#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

#include "core/alloc.h"

/* ---- rules --------------------------------------------------------------------------
 */

enum role { FIRST, LATER };

/* Of a type: where it stands in a chain, and along what it is joined. */
static const struct rule {
    const char *type;
    enum role role;
    const char *count;  /* attribute of the number of results; NULL: none */
    const char *turned; /* attribute with which weight 0 and its factors have results
                           along the other of their two dims; NULL: none */
    int axis;           /* of the output; negative: from the end */
    int weight_axis[3];
    bool may_lack; /* a weight other than the first that some siblings have, others not:
                      zeros */
} rules[] = {
    {"core::Convolution@1", FIRST, "filters", NULL, 1, {0, 0}, true},
    {"core::FullyConnected@1", FIRST, "units", "transposed", 1, {0, 0}, true},
    {"core::MatrixMultiply@1", FIRST, "units", "transpose_b", -1, {1, 0, 1}, true},
    {"core::Scale@1", LATER, NULL, NULL, 1, {0, 0, 0}, false},
    {"core::Activation@1", LATER, NULL, NULL, 1, {0}, false},
};

static const struct rule *rule_of(const struct network_layer *layer)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
        if (strcmp(rules[i].type, layer->type->full_name) == 0)
            return &rules[i];
    return NULL;
}

static bool is_set(const struct network_layer *layer, const char *name)
{
    const strata_attr *a = network_find_attr(layer, name);
    return a && a->type == STRATA_BOOL &&
           *(const int32_t *)((const char *)layer->params + a->offset) != 0;
}

struct network_joint network_joint_of(const strata_network *net,
                                      const struct network_layer *layer)
{
    const struct rule *r = rule_of(layer);
    struct network_joint j = {.count = network_find_attr(layer, r->count),
                              .axis = r->axis};
    if (j.axis < 0)
        j.axis += net->tensors[layer->outputs[0]].rank;
    memcpy(j.weight_axis, r->weight_axis, sizeof j.weight_axis);
    const bool turned = is_set(layer, r->turned);
    for (size_t w = 0; turned && w < layer->type->n_weights && w < 3; w++)
        if (w == 0 || layer->type->weights[w].flags & STRATA_FACTORS)
            j.weight_axis[w] = 1 - j.weight_axis[w];
    return j;
}

/* ---- layers that agree --------------------------------------------------------------
 */

/* Dims that agree, but for one. */
static bool same_but(const int64_t *a, int a_rank, const int64_t *b, int b_rank, int axis)
{
    bool same = a_rank == b_rank;
    for (int d = 0; same && d < a_rank; d++)
        same = d == axis || a[d] == b[d];
    return same;
}

/* Of weights 0: whether both are multiplied, of values that are stored alike. */
static bool same_storage(const struct network_weight *x, const struct network_weight *y)
{
    return x->factors && y->factors ? x->view.dtype == y->view.dtype
                                    : x->factors == y->factors;
}

static bool same_weights(const struct network_layer *a, const struct network_layer *b,
                         const struct network_joint *joint, const struct rule *rule)
{
    for (size_t w = 0; w < a->type->n_weights; w++) {
        const struct network_weight *x = &a->weights[w], *y = &b->weights[w];
        const bool both = network_has_weight(a, w) && network_has_weight(b, w);
        const bool either = network_has_weight(a, w) || network_has_weight(b, w);
        if (both ? !same_but(x->dims, x->rank, y->dims, y->rank, joint->weight_axis[w]) ||
                       x->dtype != y->dtype
                 : either && (w == 0 || !rule->may_lack))
            return false;
    }
    return a->type->n_weights == 0 || same_storage(&a->weights[0], &b->weights[0]);
}

static bool agree(const strata_network *net, const struct network_layer *a,
                  const struct network_layer *b)
{
    const struct network_tensor *x = &net->tensors[a->outputs[0]],
                                *y = &net->tensors[b->outputs[0]];
    if (a->type != b->type)
        return false;
    const struct network_joint joint = network_joint_of(net, a);
    return network_same_attributes(a, b, joint.count) &&
           same_weights(a, b, &joint, rule_of(a)) &&
           same_but(x->dims, x->rank, y->dims, y->rank, joint.axis) &&
           x->dtype == y->dtype;
}

/* ---- layers by themselves -----------------------------------------------------------
 */

static bool is_float(const struct network_tensor *t)
{
    return dtype_is_free(t->dtype) && !t->exact;
}

/* One that reads and writes one float tensor each, of which the user says nothing. */
static bool is_plain(const strata_network *net, const struct network_layer *l)
{
    const struct network_tensor *y = &net->tensors[l->outputs[0]];
    return l->n_inputs == 1 && l->n_ports == 1 && l->n_outputs == 1 && !l->impl &&
           !l->formats && l->n_names == 0 && is_float(&net->tensors[l->inputs[0]]) &&
           is_float(y) && !y->formats && network_elements(y->dims, y->rank) > 0;
}

/* Whether a plan may compute with a weight's integers, not with its floats: of groups and
 * halves of bytes it cannot. */
static bool may_be_integers(const strata_network *net, const struct network_layer *l,
                            const struct network_weight *w)
{
    return w->factors && !w->shared && !w->factors->shared &&
           !network_has_plain_weight(net, l);
}

/* Whether every weight that a layer has can be joined: floats, with as many entries along
 * the axis as there are results. */
static bool has_joinable_weights(const strata_network *net, const struct network_layer *l)
{
    const struct network_joint joint = network_joint_of(net, l);
    const int64_t results = net->tensors[l->outputs[0]].dims[joint.axis];
    for (size_t w = 0; w < l->type->n_weights; w++) {
        const struct network_weight *x = &l->weights[w];
        const int axis = joint.weight_axis[w];
        if (network_has_weight(l, w) &&
            (x->dtype != STRATA_FP32 || may_be_integers(net, l, x) || x->rank <= axis ||
             x->dims[axis] != results))
            return false;
    }
    return true;
}

/* A Scale by an element each has weights of higher rank. */
static bool scales_channels(const struct network_layer *l)
{
    const strata_scale *p = l->params;
    bool any = false, flat = true;
    for (size_t w = 0; w < l->type->n_weights; w++)
        if (network_has_weight(l, w)) {
            any = true;
            flat &= l->weights[w].rank == 1;
        }
    return !any ||
           (flat && (p->mode == STRATA_SCALE_AUTO || p->mode == STRATA_SCALE_CHANNEL));
}

static bool can_begin(const strata_network *net, const struct network_layer *l)
{
    const struct rule *r = rule_of(l);
    return r && r->role == FIRST && l->type->n_weights <= ARRAY_LENGTH(r->weight_axis) &&
           is_plain(net, l) && network_has_weight(l, 0) && has_joinable_weights(net, l) &&
           (strcmp(r->type, "core::Convolution@1") != 0 ||
            ((const strata_convolution *)l->params)->groups == 1);
}

/* Results lie along `axis` before it. */
static bool can_follow(const strata_network *net, const struct network_layer *l, int axis)
{
    const struct rule *r = rule_of(l);
    bool weights = false;
    if (!r || r->role != LATER || l->type->n_weights > ARRAY_LENGTH(r->weight_axis) ||
        !is_plain(net, l))
        return false;
    for (size_t w = 0; w < l->type->n_weights; w++)
        weights |= network_has_weight(l, w);
    if (strcmp(r->type, "core::Scale@1") == 0 && !scales_channels(l))
        return false;
    return !weights || (axis == r->axis && has_joinable_weights(net, l));
}

/* ---- chains -------------------------------------------------------------------------
 */

static int read_all(struct network_reading *r, const strata_network *net,
                    strata_error *err)
{
    *r = (struct network_reading){net,
                                  zalloc(net->n_tensors, sizeof(int), "siblings", err),
                                  zalloc(net->n_tensors, sizeof(int), "siblings", err)};
    if (!r->readers || !r->reader)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < net->n_layers; i++)
        for (int k = 0; k < net->layers[i].n_inputs; k++) {
            r->readers[net->layers[i].inputs[k]]++;
            r->reader[net->layers[i].inputs[k]] = (int)i;
        }
    for (size_t o = 0; o < net->n_outputs; o++)
        r->readers[net->outputs[o].tensor]++;
    return STRATA_OK;
}

static void free_reading(struct network_reading *r)
{
    free(r->readers);
    free(r->reader);
}

/* The layers from a first one on that only it is read by; how many. */
static int follow(int out[NETWORK_MAX_CHAIN], const struct network_reading *r, int first)
{
    const struct network_layer *layers = r->net->layers;
    const int axis = network_joint_of(r->net, &layers[first]).axis;
    int n = 0;
    out[n++] = first;
    while (n < NETWORK_MAX_CHAIN) {
        const int tensor = layers[out[n - 1]].outputs[0];
        if (r->readers[tensor] != 1)
            break;
        const int next = r->reader[tensor]; /* 0 if an output is the one reader */
        if (layers[next].n_inputs != 1 || layers[next].inputs[0] != tensor ||
            !can_follow(r->net, &layers[next], axis))
            break;
        out[n++] = next;
    }
    return n;
}

/* How many layers from the first on two chains have alike. */
static int common_length(const strata_network *net, const int *a, int n, const int *b,
                         int m)
{
    int k = 0;
    while (k < n && k < m && agree(net, &net->layers[a[k]], &net->layers[b[k]]))
        k++;
    return k;
}

void network_free_groups(struct network_groups *groups)
{
    for (size_t i = 0; i < groups->n; i++)
        free(groups->list[i].layers);
    free(groups->list);
    *groups = (struct network_groups){0};
}

/* Takes `layers`. */
static int append(struct network_groups *groups, int *layers, int n, int length,
                  strata_error *err)
{
    int status =
        grow(&groups->list, &groups->capacity, groups->n, sizeof *groups->list, err);
    if (status == STRATA_OK)
        groups->list[groups->n++] =
            (struct network_siblings){.layers = layers, .n = n, .length = length};
    else
        free(layers);
    return status;
}

/* ---- groups -------------------------------------------------------------------------
 */

/* First layers by what they read: the next one of the same tensor. */
struct heads {
    int *last; /* of each tensor; -1: none */
    int *next; /* of each layer; -1: the end */
    bool *taken;
};

static int find_heads(struct heads *h, const strata_network *net, strata_error *err)
{
    h->last = zalloc(net->n_tensors, sizeof *h->last, "siblings", err);
    h->next = zalloc(net->n_layers, sizeof *h->next, "siblings", err);
    h->taken = zalloc(net->n_layers, sizeof *h->taken, "siblings", err);
    if (!h->last || !h->next || !h->taken)
        return STRATA_ENOMEM;
    for (size_t t = 0; t < net->n_tensors; t++)
        h->last[t] = -1;
    for (size_t i = net->n_layers; i-- > 0;) {
        h->next[i] = -1;
        if (!can_begin(net, &net->layers[i]))
            continue;
        h->next[i] = h->last[net->layers[i].inputs[0]];
        h->last[net->layers[i].inputs[0]] = (int)i;
    }
    return STRATA_OK;
}

static void free_heads(struct heads *h)
{
    free(h->last);
    free(h->next);
    free(h->taken);
}

/* Readers of one tensor that a layer is held against: time stays linear. */
enum { MOST_LOOKED = 4 * NETWORK_MAX_SIBLINGS };

static void find_behind(struct network_siblings *g, const struct network_reading *r)
{
    network_find_behind(g, r,
                        network_joint_of(r->net, &r->net->layers[g->layers[0]]).axis);
}

static void find_join(struct network_siblings *g, const struct network_reading *r,
                      const struct network_siblings *others, size_t n, int into)
{
    network_find_join(g, r, network_joint_of(r->net, &r->net->layers[g->layers[0]]).axis,
                      others, n, into);
}

/* The chains of first layers, as far as they go together, as a group. */
static int make_group(struct network_groups *out, const struct network_reading *r,
                      const int *first, int n, int length, strata_error *err)
{
    int chain[NETWORK_MAX_CHAIN];
    int *all = zalloc((size_t)n, (size_t)(length + 1) * sizeof *all, "siblings", err);
    if (!all)
        return STRATA_ENOMEM;
    for (int c = 0; c < n; c++) {
        follow(chain, r, first[c]);
        memcpy(all + c * length, chain, (size_t)length * sizeof *all);
    }
    int status = append(out, all, n, length, err);
    if (status == STRATA_OK)
        find_behind(&out->list[out->n - 1], r);
    return status;
}

/* A layer and those behind it that no group has: whose whole chains are alike, or else as
 * far as all are. */
static int gather(struct network_groups *out, const struct network_reading *r,
                  struct heads *h, int first, bool whole, strata_error *err)
{
    int mine[NETWORK_MAX_CHAIN], other[NETWORK_MAX_CHAIN], all[NETWORK_MAX_SIBLINGS];
    const int most = follow(mine, r, first);
    int length = most, n = 0, looked = 0;
    all[n++] = first;
    for (int i = h->next[first];
         i >= 0 && n < NETWORK_MAX_SIBLINGS && looked < MOST_LOOKED; i = h->next[i]) {
        looked++;
        if (h->taken[i])
            continue;
        const int m = follow(other, r, i);
        const int same = common_length(r->net, mine, most, other, m);
        if (same == 0 || (whole && (same != most || same != m)))
            continue;
        length = same < length ? same : length;
        all[n++] = i;
    }
    for (int c = 0; c < n && n > 1; c++)
        h->taken[all[c]] = true;
    return n > 1 ? make_group(out, r, all, n, length, err) : STRATA_OK;
}

static int by_first(const void *a, const void *b)
{
    const struct network_siblings *x = a, *y = b;
    return (x->layers[0] > y->layers[0]) - (x->layers[0] < y->layers[0]);
}

int network_find_siblings(struct network_groups *out, const strata_network *net,
                          strata_error *err)
{
    struct network_reading r = {0};
    struct heads h = {0};
    *out = (struct network_groups){0};
    if (!net->build.fusion || !net->build.merge)
        return STRATA_OK;
    int status = read_all(&r, net, err);
    if (status == STRATA_OK)
        status = find_heads(&h, net, err);
    for (int whole = 1; whole >= 0; whole--)
        for (size_t i = 0; i < net->n_layers && status == STRATA_OK; i++)
            if (!h.taken[i] && h.next[i] >= 0)
                status = gather(out, &r, &h, (int)i, whole, err);
    if (out->n > 1)
        qsort(out->list, out->n, sizeof *out->list, by_first);
    for (size_t i = 0; i < out->n && status == STRATA_OK; i++)
        find_join(&out->list[i], &r, out->list, i, -1);
    free_reading(&r);
    free_heads(&h);
    if (status != STRATA_OK)
        network_free_groups(out);
    return status;
}

static int refuse(const strata_network *net, int layer, const char *why,
                  strata_error *err)
{
    return error_set(err, STRATA_EINVAL, "layer '%s' cannot be one with others: %s",
                     net->layers[layer].name, why);
}

/* Put the chain of a first layer behind the others, if it is like the first of them. */
static int put_chain(int *all, int n, const struct network_reading *r, int first,
                     int length, strata_error *err)
{
    const struct network_layer *l = &r->net->layers[first];
    int chain[NETWORK_MAX_CHAIN];
    for (int c = 0; c < n; c++)
        if (all[c * length] == first)
            return refuse(r->net, first, "it stands twice", err);
    if (!can_begin(r->net, l))
        return refuse(r->net, first, "it is no product with constant weights", err);
    if (follow(chain, r, first) < length)
        return refuse(r->net, first, "its chain is shorter", err);
    if (n > 0 && (l->inputs[0] != r->net->layers[all[0]].inputs[0] ||
                  common_length(r->net, all, length, chain, length) < length))
        return refuse(r->net, first, "it differs from the first of them", err);
    memcpy(all + n * length, chain, (size_t)length * sizeof *all);
    return STRATA_OK;
}

static bool is_taken(const struct network_groups *groups, int layer)
{
    for (size_t i = 0; i < groups->n; i++)
        for (int c = 0; c < groups->list[i].n; c++)
            if (network_sibling(&groups->list[i], c, 0) == layer)
                return true;
    return false;
}

/* Whether what is behind a new group is what it shall be. */
static int check_behind(struct network_siblings *g, const struct network_reading *r,
                        const struct network_groups *groups, enum network_behind behind,
                        int into, strata_error *err)
{
    if (behind == BEHIND_NOTHING)
        return STRATA_OK;
    if (behind == BEHIND_JOINED)
        find_join(g, r, groups->list, groups->n, into);
    else
        find_behind(g, r);
    return g->behind == behind ? STRATA_OK
                               : refuse(r->net, g->layers[0],
                                        "what is behind them is something else", err);
}

int network_add_siblings(struct network_groups *groups, const strata_network *net,
                         const int *first, int n, int length, enum network_behind behind,
                         int into, strata_error *err)
{
    struct network_reading r = {0};
    if (n < 2 || n > NETWORK_MAX_SIBLINGS || length < 1 || length > NETWORK_MAX_CHAIN)
        return error_set(err, STRATA_EINVAL,
                         "%d chains of %d layers; 2 to %d of 1 to %d can be one", n,
                         length, NETWORK_MAX_SIBLINGS, NETWORK_MAX_CHAIN);
    struct network_siblings g = {
        .layers = zalloc((size_t)n, (size_t)(length + 1) * sizeof(int), "siblings", err),
        .n = n,
        .length = length};
    int status = g.layers ? read_all(&r, net, err) : STRATA_ENOMEM;
    for (int c = 0; c < n && status == STRATA_OK; c++)
        status = is_taken(groups, first[c])
                     ? refuse(net, first[c], "it is one with others already", err)
                     : put_chain(g.layers, c, &r, first[c], length, err);
    if (status == STRATA_OK)
        status = check_behind(&g, &r, groups, behind, into, err);
    if (status == STRATA_OK)
        status =
            grow(&groups->list, &groups->capacity, groups->n, sizeof *groups->list, err);
    free_reading(&r);
    if (status == STRATA_OK)
        groups->list[groups->n++] = g;
    else
        free(g.layers);
    return status;
}
