/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that move nothing, and Shuffles composed.
 */
#include "planner/planner.h"

#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

/* Whether a transpose leaves the dims that are not 1 in their order. Entry i of `order`
 * is of dim order[i] of `from`, or of dim i of `to`: one of them is there. */
static bool keeps_order(strata_ints order, const struct network_tensor *from,
                        const struct network_tensor *to)
{
    int64_t last = -1;
    for (int64_t i = 0; i < order.n; i++) {
        if ((from ? from->dims[order.v[i]] : to->dims[i]) == 1)
            continue;
        if (order.v[i] < last)
            return false;
        last = order.v[i];
    }
    return true;
}

/* Where no two elements change their order, the image and the channel of each are kept
 * with dims 0 and 1, and so is its place in the plane, which every layout counts alike.
 */
static bool shuffle_is_alias(const strata_network *net, const struct network_layer *layer,
                             int format)
{
    const strata_shuffle *p = layer->params;
    const struct network_tensor *in = &net->tensors[layer->inputs[0]];
    const struct network_tensor *out = &net->tensors[layer->outputs[0]];
    const struct format *f = format_at(format);
    if (!keeps_order(p->first, in, NULL) || !keeps_order(p->second, NULL, out))
        return false;
    return (f->order == ORDER_LINEAR && f->vector == 1) ||
           (in->rank >= 2 && out->rank >= 2 &&
            memcmp(in->dims, out->dims, 2 * sizeof *in->dims) == 0);
}

/* ---- another format ------------------------------------------------------------------
 */

/* A tensor's memory as sizes, outermost first: pieces of dims, which have numbers. */
struct pieces {
    int n, number[2 * STRATA_MAX_RANK];
};

/* Dims of a Shuffle's middle, before and behind its reshape, both cut so that the pieces
 * are the same: those of dim d are [first[d], first[d + 1]). */
struct refined {
    int64_t size[2 * STRATA_MAX_RANK];
    int before[STRATA_MAX_RANK + 1], behind[STRATA_MAX_RANK + 1];
};

static bool refine(struct refined *r, const int64_t *before, int n_before,
                   const int64_t *behind, int n_behind)
{
    int n = 0, i = 0, k = 0;
    int64_t a = 1, b = 1;
    for (;; n++) {
        for (; a == 1 && i < n_before; i++) {
            r->before[i] = n;
            a = before[i];
        }
        for (; b == 1 && k < n_behind; k++) {
            r->behind[k] = n;
            b = behind[k];
        }
        if (a == 1 || b == 1)
            break;
        r->size[n] = a < b ? a : b;
        if (r->size[n] < 1 || a % r->size[n] != 0 || b % r->size[n] != 0)
            return false;
        a /= r->size[n];
        b /= r->size[n];
    }
    r->before[n_before] = r->behind[n_behind] = n;
    return a == b;
}

/* The dim that is k-th in memory. */
static int dim_in_memory(const struct format *f, int rank, int k)
{
    if (f->order == ORDER_LAST && rank > 2)
        return k == 0 ? 0 : k == rank - 1 ? 1 : k + 1;
    if (f->order == ORDER_BATCH)
        return (k + 1) % rank;
    return k;
}

/* Whether a format has its dims one after another in memory, each as a whole. */
static bool has_whole_dims(const struct format *f, const struct network_tensor *t)
{
    return f->vector == 1 ||
           (f->order == ORDER_LAST && t->rank > 1 && t->dims[1] % f->vector == 0);
}

static void put_pieces(struct pieces *p, const int *first, int dim)
{
    for (int i = first[dim]; i < first[dim + 1]; i++)
        p->number[p->n++] = i;
}

static int place_in(strata_ints order, int dim)
{
    int at = 0;
    while (order.n && order.v[at] != dim)
        at++;
    return order.n ? at : dim;
}

bool planner_turns_nothing(const struct planner *planner,
                           const struct network_layer *layer, int in_format,
                           int out_format)
{
    const struct format *a = format_at(in_format), *b = format_at(out_format);
    if (!planner->network->build.fusion || layer->impl || a->dtype != b->dtype ||
        strcmp(layer->type->full_name, "core::Shuffle@1") != 0)
        return false;
    const strata_shuffle *p = layer->params;
    const struct network_tensor *in = &planner->network->tensors[layer->inputs[0]];
    const struct network_tensor *out = &planner->network->tensors[layer->outputs[0]];
    int64_t before[STRATA_MAX_RANK], behind[STRATA_MAX_RANK];
    struct refined r;
    struct pieces x = {0}, y = {0};
    for (int d = 0; d < in->rank; d++)
        before[d] = in->dims[p->first.n ? p->first.v[d] : d];
    for (int d = 0; d < out->rank; d++)
        behind[p->second.n ? p->second.v[d] : d] = out->dims[d];
    if (!has_whole_dims(a, in) || !has_whole_dims(b, out) ||
        !refine(&r, before, in->rank, behind, out->rank))
        return false;
    for (int k = 0; k < in->rank; k++)
        put_pieces(&x, r.before, place_in(p->first, dim_in_memory(a, in->rank, k)));
    for (int k = 0; k < out->rank; k++) {
        const int dim = dim_in_memory(b, out->rank, k);
        put_pieces(&y, r.behind, p->second.n ? (int)p->second.v[dim] : dim);
    }
    return x.n == y.n && memcmp(x.number, y.number, (size_t)x.n * sizeof(int)) == 0;
}

/* ---- the same format -----------------------------------------------------------------
 */

static bool scale_is_alias(const struct network_layer *layer)
{
    const strata_scale *p = layer->params;
    for (size_t w = 0; w < layer->type->n_weights; w++)
        if (network_has_weight(layer, w))
            return false;
    return p->scale == 1 && p->shift == 0 && p->power == 1;
}

/* The dim that a Slice shortens and where it begins there; -1: several, or with steps. A
 * slice of everything is of dim 0. */
static int sliced_dim(const strata_network *net, const struct network_layer *layer,
                      int64_t *begin)
{
    const strata_slice *p = layer->params;
    const struct network_tensor *in = &net->tensors[layer->inputs[0]];
    const struct network_tensor *out = &net->tensors[layer->outputs[0]];
    int dim = 0, shortened = 0;
    *begin = 0;
    const int64_t count = p->like.n ? p->like.n : p->begin.n;
    for (int64_t k = 0; k < count; k++) {
        const int64_t from = p->begin.n ? p->begin.v[k] : 0;
        int64_t d = p->axes.n ? p->axes.v[k] : k;
        d += d < 0 ? in->rank : 0;
        if (p->step.n && p->step.v[k] != 1)
            return -1;
        if (in->dims[d] == out->dims[d])
            continue;
        shortened++;
        dim = (int)d;
        *begin = from < 0 ? from + in->dims[d] : from;
        *begin = *begin < 0 ? 0 : *begin;
    }
    return shortened > 1 ? -1 : dim;
}

/* The same of one output of several: they are along one axis, in order. */
static int split_dim(const strata_network *net, const struct network_layer *layer,
                     int port, int64_t *begin)
{
    const strata_slice *p = layer->params;
    const int dim =
        (int)(p->axis < 0 ? p->axis + net->tensors[layer->inputs[0]].rank : p->axis);
    *begin = 0;
    for (int k = 0; k < port; k++)
        *begin += net->tensors[layer->outputs[k]].dims[dim];
    return dim;
}

static struct planner_slice find_slice(const struct planner *planner,
                                       const struct network_layer *layer, int port,
                                       int format)
{
    const strata_slice *p = layer->params;
    int64_t begin;
    int dim = p->split.n || p->parts ? split_dim(planner->network, layer, port, &begin)
                                     : sliced_dim(planner->network, layer, &begin);
    return dim < 0 ? (struct planner_slice){.begin = -1}
                   : planner_find_slice(planner, layer->inputs[0], layer->outputs[port],
                                        dim, begin, format);
}

struct planner_slice planner_find_alias(const struct planner *planner,
                                        const struct network_layer *layer, int port,
                                        int format)
{
    const char *type = layer->type->full_name;
    bool same = false;
    if (!planner->network->build.fusion || layer->impl)
        return (struct planner_slice){.begin = -1};
    if (strcmp(type, "core::Slice@1") == 0)
        return find_slice(planner, layer, port, format);
    if (strcmp(type, "core::Identity@1") == 0)
        same = true;
    else if (strcmp(type, "core::Scale@1") == 0)
        same = scale_is_alias(layer);
    else if (strcmp(type, "core::Shuffle@1") == 0)
        same = shuffle_is_alias(planner->network, layer, format);
    return (struct planner_slice){.begin = same ? 0 : -1};
}

/* ---- composition ---------------------------------------------------------------------
 */

struct composed {
    strata_shuffle params;
    int64_t first[STRATA_MAX_RANK], shape[STRATA_MAX_RANK], second[STRATA_MAX_RANK];
};

static int64_t entry(strata_ints order, int64_t i)
{
    return order.n ? order.v[i] : i;
}

strata_shuffle *planner_compose(const strata_network *net, const struct network_layer *a,
                                const struct network_layer *b, strata_error *err)
{
    const strata_shuffle *p = a->params, *q = b->params;
    int in = net->tensors[a->inputs[0]].rank, middle = net->tensors[a->outputs[0]].rank;
    int out = net->tensors[b->outputs[0]].rank;
    bool early = p->shape.n == 0; /* a only transposes */
    if (!early && q->shape.n)
        return NULL;
    struct composed *c = zalloc(1, sizeof *c, "a composed Shuffle", err);
    if (!c)
        return NULL;
    const struct network_layer *reshapes = early ? b : a;
    const strata_shuffle *r = reshapes->params;
    const struct network_tensor *end = &net->tensors[reshapes->outputs[0]];
    for (int i = 0; i < in; i++)
        c->first[i] = early ? entry(p->first, entry(p->second, entry(q->first, i)))
                            : entry(p->first, i);
    for (int i = 0; i < end->rank; i++) /* the reshape's dims, -1 and 0 resolved */
        c->shape[entry(r->second, i)] = end->dims[i];
    for (int i = 0; i < out; i++)
        c->second[i] = early ? entry(q->second, i)
                             : entry(p->second, entry(q->first, entry(q->second, i)));
    c->params.first = (strata_ints){c->first, in};
    c->params.shape = (strata_ints){c->shape, early ? out : middle};
    c->params.second = (strata_ints){c->second, out};
    return &c->params;
}
