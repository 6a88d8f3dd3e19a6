/* SPDX-License-Identifier: Apache-2.0
 *
 * What each group of siblings costs in a plan where all are apart and in one where all
 * are merged.
 */
#include "planner/merge/merge.h"

#include <stdlib.h>
#include <string.h>

/* ---- bills --------------------------------------------------------------------------
 */

/* A plan's prices by node and tensor, of which each is paid once a group. */
struct bill {
    const struct planner *planner;
    int64_t *conversions; /* of each tensor of the network */
    int *nodes, *tensors; /* the group, from 1 on, that last paid for it */
    int group;
    int64_t sum;
};

static int open_bill(struct bill *b, const struct planner *planner, strata_error *err)
{
    const size_t n = planner->network->n_tensors;
    *b = (struct bill){.planner = planner,
                       .conversions = zalloc(n, sizeof(int64_t), "prices", err),
                       .nodes = zalloc(planner->n_nodes, sizeof(int), "prices", err),
                       .tensors = zalloc(n, sizeof(int), "prices", err)};
    if (!b->conversions || !b->nodes || !b->tensors)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < planner->plan->n_steps; i++) {
        const struct plan_step *s = &planner->plan->steps[i];
        b->conversions[planner->model->tensor_of[s->tensor]] += s->cost;
    }
    return STRATA_OK;
}

static void close_bill(struct bill *b)
{
    free(b->conversions);
    free(b->nodes);
    free(b->tensors);
}

static void put_tensor(struct bill *b, int tensor)
{
    b->sum += b->tensors[tensor] == b->group ? 0 : b->conversions[tensor];
    b->tensors[tensor] = b->group;
}

/* What a node costs, and the conversions of what it reads and writes; the same of who
 * computes it, where that is another. */
static void put_node(struct bill *b, int node)
{
    const struct planner *planner = b->planner;
    const struct network_layer *l = &planner->network->layers[node];
    if (b->nodes[node] == b->group)
        return;
    b->nodes[node] = b->group;
    const struct planner_candidate *c =
        planner_chosen(planner, planner->plan, (size_t)node);
    if (c->kind == CANDIDATE_ABSORBED && c->grouped)
        put_node(b, planner->nodes[node].previous);
    b->sum += plan_chosen(&planner->model->problem, planner->plan->choices,
                          (int)planner->network->n_inputs + node)
                  ->cost;
    for (int i = 0; i < l->n_inputs; i++)
        put_tensor(b, l->inputs[i]);
    for (int i = 0; i < l->n_outputs; i++)
        put_tensor(b, l->outputs[i]);
}

/* The layer that makes a tensor may compute the one that reads it. */
static void put_producer(struct bill *b, int tensor)
{
    const int producer = b->planner->network->tensors[tensor].producer;
    if (producer >= 0)
        put_node(b, producer);
}

/* A network output that lies in the joined tensor as it is gets a copy, which no problem
 * knows. */
static int64_t copy_of(const struct planner *planner, int tensor)
{
    const strata_network *net = planner->network;
    const struct plan_problem *p = &planner->model->problem;
    const int producer = net->tensors[tensor].producer;
    strata_desc d;
    if (!planner->is_output[tensor] || producer < 0 ||
        planner_chosen(planner, planner->plan, (size_t)producer)->kind != CANDIDATE_ALIAS)
        return 0;
    const struct plan_choice *c =
        plan_chosen(p, planner->plan->choices, (int)net->n_inputs + producer);
    const struct plan_label *label =
        &p->labels[plan_out_label(c, net->tensors[tensor].port)];
    if (label->stage == PLAN_CUT || /* the problem has that one */
        planner_desc(&d, net, tensor, label->format, NULL) != STRATA_OK)
        return 0;
    const int64_t bytes = strata_desc_bytes(&d);
    return cost_of_reformat(bytes, bytes, &planner->device.properties);
}

int64_t planner_merge_copies(const struct planner *planner)
{
    int64_t cost = 0;
    for (size_t o = 0; o < planner->network->n_outputs; o++)
        cost += copy_of(planner, planner->network->outputs[o].tensor);
    return cost;
}

/* ---- groups -------------------------------------------------------------------------
 */

/* Both plans' bills, and who reads what in the network that is apart. */
struct pricing {
    struct bill apart, merged;
    int *first;        /* reading of each tensor; -1: none */
    int *next, *layer; /* of each reading: the next one, and whose it is */
    bool *stays;       /* layers that are as they are wherever siblings are merged */
};

static int list_readings(struct pricing *p, const strata_network *net, strata_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < net->n_layers; i++)
        n += (size_t)net->layers[i].n_inputs;
    p->first = zalloc(net->n_tensors, sizeof *p->first, "prices", err);
    p->next = zalloc(n, sizeof *p->next, "prices", err);
    p->layer = zalloc(n, sizeof *p->layer, "prices", err);
    p->stays = zalloc(net->n_layers, sizeof *p->stays, "prices", err);
    if (!p->first || !p->next || !p->layer || !p->stays)
        return STRATA_ENOMEM;
    memset(p->first, -1, net->n_tensors * sizeof *p->first);
    memset(p->stays, true, net->n_layers * sizeof *p->stays);
    n = 0;
    for (size_t i = 0; i < net->n_layers; i++)
        for (int k = 0; k < net->layers[i].n_inputs; k++, n++) {
            p->layer[n] = (int)i;
            p->next[n] = p->first[net->layers[i].inputs[k]];
            p->first[net->layers[i].inputs[k]] = (int)n;
        }
    return STRATA_OK;
}

static void close_pricing(struct pricing *p)
{
    close_bill(&p->apart);
    close_bill(&p->merged);
    free(p->first);
    free(p->next);
    free(p->layer);
    free(p->stays);
}

/* The layers that read a result and stay, in both plans. */
static void put_readers(struct pricing *p, int result)
{
    const strata_network *base = p->apart.planner->network,
                         *net = p->merged.planner->network;
    for (int r = p->first[result]; r >= 0; r = p->next[r]) {
        const struct network_layer *l = &base->layers[p->layer[r]];
        if (!p->stays[p->layer[r]] || l->n_outputs == 0)
            continue;
        put_node(&p->apart, p->layer[r]);
        put_node(&p->merged, net->tensors[l->outputs[0]].producer);
    }
}

/* What stands in the merged network for a group's layers. */
static void put_merged(struct pricing *p, const struct network_siblings *g, int result,
                       int join)
{
    const strata_network *net = p->merged.planner->network;
    for (int k = 0; k < network_siblings_made(g); k++)
        put_node(&p->merged, net->tensors[result].producer - k);
    for (int k = 0; k < network_siblings_joined(g); k++)
        put_node(&p->merged, net->tensors[join].producer - k);
}

/* One of a group's results. */
static void put_result(struct pricing *p, int result)
{
    put_readers(p, result);
    p->apart.sum += copy_of(p->apart.planner, result);
    p->merged.sum += copy_of(p->merged.planner, result);
}

/* A group in a plan where it is apart and one where all are merged. */
static void price(struct planner_verdict *v, struct pricing *p,
                  const struct network_siblings *g, int group)
{
    const strata_network *base = p->apart.planner->network;
    const int join = g->behind == BEHIND_JOINED
                         ? base->layers[network_behind_layer(g, 0)].outputs[0]
                         : -1;
    p->apart.group = p->merged.group = group;
    p->apart.sum = p->merged.sum = 0;
    for (int k = 0; k < network_siblings_count(g); k++)
        put_node(&p->apart, g->layers[k]);
    put_merged(p, g, network_siblings_result(base, g, 0), join);
    put_producer(&p->apart, base->layers[g->layers[0]].inputs[0]);
    put_producer(&p->merged, base->layers[g->layers[0]].inputs[0]);
    for (int c = 0; c < (g->behind == BEHIND_GATED ? 1 : g->n); c++)
        put_result(p, network_siblings_result(base, g, c));
    if (join >= 0)
        put_result(p, join);
    v->apart = p->apart.sum;
    v->merged = p->merged.sum;
}

int planner_merge_prices(struct planner_verdict *out, const struct network_groups *groups,
                         const struct planner *apart, const struct planner *merged,
                         strata_error *err)
{
    struct pricing p = {.first = NULL};
    int status = open_bill(&p.apart, apart, err);
    if (status == STRATA_OK)
        status = open_bill(&p.merged, merged, err);
    if (status == STRATA_OK)
        status = list_readings(&p, apart->network, err);
    for (size_t i = 0; i < groups->n && status == STRATA_OK; i++)
        for (int k = 0; k < network_siblings_count(&groups->list[i]); k++)
            p.stays[groups->list[i].layers[k]] = false;
    for (size_t i = 0; i < groups->n && status == STRATA_OK; i++)
        price(&out[i], &p, &groups->list[i], (int)i + 1);
    close_pricing(&p);
    return status;
}
