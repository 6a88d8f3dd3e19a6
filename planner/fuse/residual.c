/* SPDX-License-Identifier: Apache-2.0
 *
 * Residual blocks as one layer: three Convolutions, 1x1, of windows, and 1x1, each with
 * an Activation or none, and a sum with what was there before.
 *
 *   InvertedResidual  its windows are depthwise. Either product may be missing: a first
 *                     block expands nothing, and where squeeze-and-excite stands before
 *                     the projection, only what is before it is one.
 *   Bottleneck        its windows are of all channels; both products are there. What is
 *                     added may be a shortcut, another product of what the block reads,
 *                     which is a member then if it comes behind the last product.
 *
 * Each chain is a group at its first layer, and a longer one with the sum. Prices decide
 * whether either runs.
 */
#include "planner/fuse/members.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_MEMBERS = 8,
    WEIGHT = 0, /* of a Convolution */
    BIAS = 1
};

/* Of the layer that is made. Weight 2*stage is one's factors, the next its bias. */
enum { FIRST, WINDOWS, LAST, STAGES, SHORTCUT = STAGES };

/* A chain that begins at a node. */
struct chain {
    const struct kind *kind;
    int nodes[MOST_MEMBERS];
    int n;
    int ended; /* of them with the sum; 0: there is none */
    int whole; /* without it */
    int x, addend;
    bool shortcut; /* what is added is a product of x, and a member */
    bool present[STAGES];
    int64_t results[STAGES];
    strata_convolution windows;
    int32_t activation[STAGES]; /* 0: none; 1 + STRATA_RELU ... */
    double alpha[STAGES], beta[STAGES];
    int32_t before;         /* that of what is projected, without the sum */
    struct made_layer made; /* its weights */
};

/* What chains may become. */
struct kind {
    enum made_kind made;
    const char *together;
    bool complete; /* all stages must be there */
    const struct registry_layer *(*type_of)(const strata_network *net);
    bool (*has_windows)(const struct planner *planner, int node);
    void (*set)(struct made_layer *m, const struct chain *c);
};

/* ---- what can be part of one ----------------------------------------------------- */

/* Of images, by constants of FP32. */
static bool is_convolution(const struct planner *planner, int node)
{
    return members_may_convolve(planner, node) &&
           tensor_of(planner, planner->nodes[node].layer->inputs[0])->rank == 4;
}

/* Whether a list of spatial dims says but one thing. */
static bool is_all(strata_ints list, int64_t value)
{
    for (int64_t i = 0; i < list.n; i++)
        if (list.v[i] != value)
            return false;
    return true;
}

/* A product of each pixel. */
static bool is_point(const struct planner *planner, int node)
{
    if (!is_convolution(planner, node))
        return false;
    const struct network_layer *l = planner->nodes[node].layer;
    const strata_convolution *p = l->params;
    const struct network_weight *w = &l->weights[WEIGHT];
    return p->groups == 1 && is_all(p->stride, 1) && is_all(p->pad, 0) &&
           network_elements(w->dims + 2, w->rank - 2) == 1;
}

static bool is_depthwise(const struct planner *planner, int node)
{
    if (!is_convolution(planner, node))
        return false;
    const struct network_layer *l = planner->nodes[node].layer;
    const strata_convolution *p = l->params;
    return p->groups > 1 && p->groups == tensor_of(planner, l->inputs[0])->dims[1] &&
           p->groups == tensor_of(planner, l->outputs[0])->dims[1];
}

/* Of all channels, and more than a product of each pixel. */
static bool is_dense(const struct planner *planner, int node)
{
    if (!is_convolution(planner, node))
        return false;
    const struct network_layer *l = planner->nodes[node].layer;
    const struct network_weight *w = &l->weights[WEIGHT];
    return ((const strata_convolution *)l->params)->groups == 1 &&
           network_elements(w->dims + 2, w->rank - 2) > 1;
}

/* Whether a node adds something to the last of a chain. */
static bool is_sum(const struct planner *planner, const struct chain *c, int node,
                   int *addend)
{
    const struct network_layer *l = planner->nodes[node].layer;
    const int last = planner->nodes[c->nodes[c->n - 1]].out[0];
    if (!members_are_summed(planner, node))
        return false;
    *addend = l->inputs[l->inputs[0] == last];
    return dtype_is_free(tensor_of(planner, *addend)->dtype) &&
           members_are_alike(planner, *addend, last);
}

/* ---- chains ---------------------------------------------------------------------- */

/* The node that alone reads a chain's last, if it may belong to one; or -1. */
static int next_of(const struct planner *planner, const struct chain *c,
                   const int *reader)
{
    return c->n < MOST_MEMBERS ? members_next(planner, c->nodes[c->n - 1], reader) : -1;
}

static void add_weights(struct chain *c, const struct planner *planner, int node,
                        int stage)
{
    const struct network_layer *l = planner->nodes[node].layer;
    struct network_weight *to = &c->made.weights[2 * stage];
    to[WEIGHT] = l->weights[WEIGHT];
    to[WEIGHT].rank = stage == WINDOWS ? 4 : 2; /* a window of one pixel has no more */
    to[BIAS] = l->weights[BIAS];
    c->present[stage] = true;
    c->results[stage] = l->weights[WEIGHT].dims[0];
    c->nodes[c->n++] = node;
}

/* The activation behind a chain's last, if there is one. */
static void add_activation(struct chain *c, const struct planner *planner,
                           const int *reader, int stage)
{
    const int next = next_of(planner, c, reader);
    if (next < 0)
        return;
    const struct network_layer *l = planner->nodes[next].layer;
    if (!is_type(l, "core::Activation@1") || l->n_inputs != 1)
        return;
    const strata_activation *a = l->params;
    c->activation[stage] = 1 + a->kind;
    c->alpha[stage] = a->alpha;
    c->beta[stage] = a->beta;
    c->nodes[c->n++] = next;
}

static bool add_first(struct chain *c, const struct planner *planner, const int *reader,
                      int node)
{
    if (!is_point(planner, node))
        return false;
    add_weights(c, planner, node, FIRST);
    add_activation(c, planner, reader, FIRST);
    return true;
}

static void add_windows(struct chain *c, const struct planner *planner, const int *reader,
                        int node)
{
    const strata_convolution *p = planner->nodes[node].layer->params;
    c->windows = *p;
    c->windows.filters = c->windows.groups = 0; /* its windows alone */
    add_weights(c, planner, node, WINDOWS);
    add_activation(c, planner, reader, WINDOWS);
}

/* A product of what the chain reads, which its sum alone reads. */
static bool add_shortcut(struct chain *c, const struct planner *planner)
{
    const struct registry_layer *type = c->kind->type_of(planner->network);
    const int node = tensor_of(planner, c->addend)->producer;
    if (type->n_weights <= 2 * SHORTCUT + BIAS || node <= c->nodes[c->n - 1] ||
        !is_point(planner, node) || planner->nodes[node].layer->inputs[0] != c->x ||
        !members_are_joined(planner, node))
        return false;
    const struct network_layer *l = planner->nodes[node].layer;
    c->made.weights[2 * SHORTCUT] = l->weights[WEIGHT];
    c->made.weights[2 * SHORTCUT].rank = 2;
    c->made.weights[2 * SHORTCUT + BIAS] = l->weights[BIAS];
    c->nodes[c->n++] = node;
    return true;
}

/* Whether a sum can be of the block: what it adds is there before, or made by it. */
static bool add_sum(struct chain *c, const struct planner *planner, int sum)
{
    if (sum < 0 || !is_sum(planner, c, sum, &c->addend))
        return false;
    c->whole = c->n;
    if (tensor_of(planner, c->addend)->producer >= c->nodes[0])
        c->shortcut = add_shortcut(c, planner);
    if (!c->shortcut && tensor_of(planner, c->addend)->producer >= c->nodes[0])
        return false;
    c->nodes[c->n++] = sum;
    return true;
}

/* And what follows: an activation, or a sum and then an activation. */
static void add_last(struct chain *c, const struct planner *planner, const int *reader)
{
    const int node = next_of(planner, c, reader);
    if (node < 0 || !is_point(planner, node))
        return;
    add_weights(c, planner, node, LAST);
    const int sum = next_of(planner, c, reader);
    if (add_sum(c, planner, sum)) {
        add_activation(c, planner, reader, LAST);
        c->ended = c->n;
        return;
    }
    add_activation(c, planner, reader, LAST);
    c->before = c->activation[LAST];
}

/* False: nothing of the kind begins there, or it is one layer. */
static bool find_chain(struct chain *c, const struct kind *kind,
                       const struct planner *planner, const int *reader, int node)
{
    *c = (struct chain){.kind = kind, .x = planner->nodes[node].layer->inputs[0]};
    for (int i = 0; i < STAGES; i++)
        c->alpha[i] = c->beta[i] = STRATA_KIND_DEFAULT;
    const int windows =
        add_first(c, planner, reader, node) ? next_of(planner, c, reader) : node;
    if (windows < 0 || !kind->has_windows(planner, windows))
        return false;
    add_windows(c, planner, reader, windows);
    c->whole = c->n;
    add_last(c, planner, reader);
    if (!c->ended)
        c->whole = c->n;
    return kind->complete ? c->present[FIRST] && c->present[LAST]
                          : c->present[FIRST] || c->present[LAST];
}

/* ---- kinds ----------------------------------------------------------------------- */

static const struct registry_layer *inverted_residual(const strata_network *net)
{
    return net->inverted_residual;
}

static const struct registry_layer *bottleneck(const strata_network *net)
{
    return net->bottleneck;
}

#define SET_STAGES(p, c)                                                                 \
    (memcpy((p)->activation, (c)->activation, sizeof(p)->activation),                    \
     memcpy((p)->alpha, (c)->alpha, sizeof(p)->alpha),                                   \
     memcpy((p)->beta, (c)->beta, sizeof(p)->beta))

static void set_inverted(struct made_layer *m, const struct chain *c)
{
    strata_inverted_residual *p = &m->params.inverted_residual;
    p->depthwise = c->windows;
    p->expanded = c->results[FIRST];
    p->projected = c->results[LAST];
    SET_STAGES(p, c);
}

static void set_bottleneck(struct made_layer *m, const struct chain *c)
{
    strata_bottleneck *p = &m->params.bottleneck;
    p->windows = c->windows;
    p->reduced = c->results[FIRST];
    p->convolved = c->results[WINDOWS];
    p->projected = c->results[LAST];
    SET_STAGES(p, c);
}

static const struct kind kinds[] = {
    {.made = MADE_INVERTED_RESIDUAL,
     .together = "all in one InvertedResidual",
     .type_of = inverted_residual,
     .has_windows = is_depthwise,
     .set = set_inverted},
    {.made = MADE_BOTTLENECK,
     .together = "all in one Bottleneck",
     .complete = true,
     .type_of = bottleneck,
     .has_windows = is_dense,
     .set = set_bottleneck},
};

/* ---- groups ---------------------------------------------------------------------- */

static struct made_layer make(const struct chain *c, const struct planner *planner,
                              bool sum)
{
    const struct network_layer *first = planner->nodes[c->nodes[0]].layer;
    const int members = sum ? c->ended : c->whole;
    const bool adds = sum && !c->shortcut;
    struct chain some = *c;
    struct made_layer m = c->made;
    m.layer = (struct network_layer){.name = first->name,
                                     .type = c->kind->type_of(planner->network),
                                     .place = first->place,
                                     .n_inputs = 1 + adds,
                                     .n_outputs = 1};
    m.kind = c->kind->made;
    m.inputs[0] = c->x;
    m.inputs[1] = adds ? c->addend : 0;
    for (int i = 0; i < 2 && !sum; i++)
        m.weights[2 * SHORTCUT + i] = (struct network_weight){0};
    m.output = planner->nodes[c->nodes[members - 1]].layer->outputs[0];
    if (!sum)
        some.activation[LAST] = c->before;
    c->kind->set(&m, &some);
    return m;
}

static int add_groups(struct planner *planner, const struct chain *c, strata_error *err)
{
    const int first = c->nodes[0], members = c->ended ? c->ended : c->whole;
    const char *together = c->kind->together;
    const struct made_layer whole = make(c, planner, false);
    members_link(planner, c->nodes, members);
    int status = planner_add_group(planner, first, &whole, c->whole, together, err);
    if (status == STRATA_OK && c->ended) {
        const struct made_layer all = make(c, planner, true);
        status = planner_add_longer(planner, first, &all, members, together, err);
    }
    return status == STRATA_OK ? members_note(planner, c->nodes, members, together, err)
                               : status;
}

static int add_blocks(struct planner *planner, const struct kind *kind, const int *reader,
                      strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < planner->n_nodes && status == STRATA_OK; i++) {
        struct chain c;
        if (is_convolution(planner, (int)i) &&
            find_chain(&c, kind, planner, reader, (int)i))
            status = add_groups(planner, &c, err);
    }
    return status;
}

int planner_make_residuals(struct planner *planner, strata_error *err)
{
    int status = STRATA_OK;
    int *reader = planner_find_readers(planner, "the residual blocks", err);
    if (!reader)
        return STRATA_ENOMEM;
    for (size_t k = 0; k < ARRAY_LENGTH(kinds) && status == STRATA_OK; k++)
        if (planner_has_impl(planner, kinds[k].type_of(planner->network)))
            status = add_blocks(planner, &kinds[k], reader, err);
    free(reader);
    return status;
}
