/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans apart and merged, and what each group costs in them.
 */
#include "planner/merge/merge.h"

#include <stdlib.h>
#include <string.h>

/* ---- prices -------------------------------------------------------------------------
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

/* Who makes a tensor may compute who reads it. */
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

static int64_t copies(const struct planner *planner)
{
    int64_t cost = 0;
    for (size_t o = 0; o < planner->network->n_outputs; o++)
        cost += copy_of(planner, planner->network->outputs[o].tensor);
    return cost;
}

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

/* A group in a plan where it is apart and one where all are merged. */
static void price(struct planner_verdict *v, struct pricing *p,
                  const struct network_siblings *g, int group)
{
    const strata_network *base = p->apart.planner->network,
                         *net = p->merged.planner->network;
    p->apart.group = p->merged.group = group;
    p->apart.sum = p->merged.sum = 0;
    for (int k = 0; k < network_siblings_count(g); k++)
        put_node(&p->apart, g->layers[k]);
    const int last = network_siblings_result(base, g, 0);
    for (int k = 0; k < network_siblings_made(g); k++)
        put_node(&p->merged, net->tensors[last].producer - k);
    put_producer(&p->apart, base->layers[g->layers[0]].inputs[0]);
    put_producer(&p->merged, base->layers[g->layers[0]].inputs[0]);
    for (int c = 0; c < (g->behind == BEHIND_GATED ? 1 : g->n); c++) {
        const int result = network_siblings_result(base, g, c);
        put_readers(p, result);
        p->apart.sum += copy_of(p->apart.planner, result);
        p->merged.sum += copy_of(p->merged.planner, result);
    }
    v->apart = p->apart.sum;
    v->merged = p->merged.sum;
}

static int price_all(struct planner_merges *m, const struct planner *apart,
                     const struct planner *merged, strata_error *err)
{
    struct pricing p = {.first = NULL};
    int status = open_bill(&p.apart, apart, err);
    if (status == STRATA_OK)
        status = open_bill(&p.merged, merged, err);
    if (status == STRATA_OK)
        status = list_readings(&p, apart->network, err);
    for (size_t i = 0; i < m->groups.n && status == STRATA_OK; i++)
        for (int k = 0; k < network_siblings_count(&m->groups.list[i]); k++)
            p.stays[m->groups.list[i].layers[k]] = false;
    for (size_t i = 0; i < m->groups.n && status == STRATA_OK; i++)
        price(&m->verdicts[i], &p, &m->groups.list[i], (int)i + 1);
    close_pricing(&p);
    return status;
}

/* ---- plans --------------------------------------------------------------------------
 */

/* The groups of a verdict, as groups of the same network. */
static int choose(struct network_groups *out, const struct planner_merges *m,
                  const strata_network *net, strata_error *err)
{
    int first[NETWORK_MAX_SIBLINGS], status = STRATA_OK;
    *out = (struct network_groups){0};
    for (size_t i = 0; i < m->groups.n && status == STRATA_OK; i++) {
        const struct network_siblings *g = &m->groups.list[i];
        for (int c = 0; c < g->n; c++)
            first[c] = network_sibling(g, c, 0);
        if (m->verdicts[i].done)
            status =
                network_add_siblings(out, net, first, g->n, g->length, g->behind, err);
    }
    return status;
}

static int plan_merged(struct planner **out, const struct planner *apart,
                       const struct network_groups *groups, struct cost_source *costs,
                       strata_error *err)
{
    strata_network *net;
    *out = NULL;
    int status = network_merge(&net, apart->network, groups, err);
    if (status == STRATA_OK)
        status = planner_make(out, net, &apart->device, costs, err);
    strata_network_destroy(net);
    return status;
}

/* Less by the network's objective; plans that keep less apart must gain by it. */
static bool is_better(const struct planner *a, const struct planner *b)
{
    const bool counts = a->network->build.objective == OBJECTIVE_REFORMATS;
    if (counts && a->plan->n_reformats != b->plan->n_reformats)
        return a->plan->n_reformats < b->plan->n_reformats;
    return a->plan->cost + copies(a) < b->plan->cost + copies(b);
}

/* Whether a plan's costs are as good as those of the one apart. */
static bool is_known(const struct planner *planner)
{
    const struct cost_options *o = &planner->network->build.costs;
    const struct cost_report *r = &planner->costs;
    return r->complete || r->kind == COSTS_ANALYTIC ||
           (r->kind == COSTS_FILE && o->miss == MISS_ANALYTIC);
}

/* What planning took goes to the one that stays, and what it knew. */
static int take_over(struct planner *to, const struct planner *from, strata_error *err)
{
    if (!from || from == to)
        return STRATA_OK;
    to->costs.measured += from->costs.measured;
    to->costs.solved += from->costs.solved;
    to->costs.seconds += from->costs.seconds;
    to->costs.kept |= from->costs.kept;
    to->costs.busy |= from->costs.busy;
    return cost_table_merge(&to->known, &from->known, err);
}

static int refuse_all(struct planner_merges *m, const char *why, strata_error *err)
{
    for (size_t i = 0; i < m->groups.n; i++) {
        m->verdicts[i].done = false;
        free(m->verdicts[i].why);
        if (!(m->verdicts[i].why = duplicate(why, err)))
            return STRATA_ENOMEM;
    }
    return STRATA_OK;
}

/* Plans that there may be of one network. */
enum { APART, ALL, SOME, PLANS };

/* Of some groups, where neither all nor none gain. */
static int plan_some(struct planner *plans[PLANS], struct planner_merges *m,
                     struct cost_source *costs, strata_error *err)
{
    struct network_groups groups;
    size_t n = 0;
    for (size_t i = 0; i < m->groups.n; i++) {
        m->verdicts[i].done = m->verdicts[i].merged < m->verdicts[i].apart;
        n += m->verdicts[i].done;
    }
    if (n == 0 || n == m->groups.n)
        return STRATA_OK;
    int status = choose(&groups, m, plans[APART]->network, err);
    if (status == STRATA_OK)
        status = plan_merged(&plans[SOME], plans[APART], &groups, costs, err);
    network_free_groups(&groups);
    return status;
}

/* Which of the plans stays; the verdicts say so. */
static int settle(struct planner *plans[PLANS], struct planner_merges *m,
                  strata_error *err)
{
    int best = APART;
    for (int k = PLANS - 1; k > APART; k--) /* of some, if that is as good as of all */
        if (plans[k] && is_known(plans[k]) && is_better(plans[k], plans[best]))
            best = k;
    for (size_t i = 0; i < m->groups.n; i++) {
        struct planner_verdict *v = &m->verdicts[i];
        const bool gains = v->done;
        v->done = best == ALL || (best == SOME && gains);
        if (best == APART && gains &&
            !(v->why =
                  duplicate(is_known(plans[ALL]) ? "the whole plan costs no less with it"
                                                 : "its costs were not measured in time",
                            err)))
            return -1;
    }
    return best;
}

/* A plan with merged layers that cannot be made is none: the one apart stays. */
static int weigh(struct planner *plans[PLANS], struct planner_merges *m, int *best,
                 struct cost_source *costs, strata_error *err)
{
    strata_error why = {0};
    *best = APART;
    int status = plan_merged(&plans[ALL], plans[APART], &m->groups, costs, &why);
    if (status == STRATA_ENOMEM || status == STRATA_EBUSY)
        return error_set(err, status, "%s", why.message);
    if (status != STRATA_OK)
        return refuse_all(m, why.message, err);
    status = price_all(m, plans[APART], plans[ALL], err);
    if (status != STRATA_OK)
        return status;
    status = plan_some(plans, m, costs, &why);
    if (status == STRATA_ENOMEM || status == STRATA_EBUSY)
        return error_set(err, status, "%s", why.message);
    *best = settle(plans, m, err);
    return *best < 0 ? STRATA_ENOMEM : STRATA_OK;
}

static void tell(const struct planner *planner)
{
    const struct planner_merges *m = planner->merges;
    for (size_t i = 0; i < m->groups.n; i++) {
        char *name =
            network_siblings_name(planner_unmerged(planner), &m->groups.list[i], 0, NULL);
        char *text = planner_merge_text(&m->verdicts[i]);
        if (name && text)
            log_line(STRATA_LOG_INFO, "%s '%s': %s",
                     m->verdicts[i].done ? "merged" : "did not merge", name, text);
        free(name);
        free(text);
    }
}

static int make_merges(struct planner_merges **out, const strata_network *net,
                       strata_error *err)
{
    struct planner_merges *m = *out = zalloc(1, sizeof *m, "siblings", err);
    int status = m ? network_find_siblings(&m->groups, net, err) : STRATA_ENOMEM;
    if (status == STRATA_OK && m->groups.n > 0)
        m->verdicts = zalloc(m->groups.n, sizeof *m->verdicts, "siblings", err);
    return status == STRATA_OK && m->groups.n > 0 && !m->verdicts ? STRATA_ENOMEM
                                                                  : status;
}

int planner_make_merged(struct planner **out, const strata_network *network,
                        const struct planner_device *device, struct cost_source *costs,
                        strata_error *err)
{
    struct planner *plans[PLANS] = {NULL};
    struct planner_merges *m = NULL;
    int best = APART;
    *out = NULL;
    int status = planner_make(&plans[APART], network, device, costs, err);
    if (status == STRATA_OK)
        status = make_merges(&m, network, err);
    if (status == STRATA_OK && m->groups.n > 0)
        status = weigh(plans, m, &best, costs, err);
    for (int k = 0; k < PLANS && status == STRATA_OK; k++)
        status = take_over(plans[best], plans[k], err);
    if (status == STRATA_OK) {
        *out = plans[best];
        (*out)->merges = m;
        plans[best] = NULL;
        m = NULL;
        tell(*out);
    }
    for (int k = 0; k < PLANS; k++)
        planner_free(plans[k]);
    planner_free_merges(m);
    return status;
}
