/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans apart, merged, and merged within concatenations; which of them stays.
 */
#include "planner/merge/merge.h"

#include <stdlib.h>
#include <string.h>

enum way { WAY_APART, WAY_MERGED, WAY_JOINED, WAYS };
/* Plans that there may be of one network: with groups apart, merged, those joined that
 * can be, or each in its own way. */
enum { APART, ALL, JOINED, SOME, PLANS };

/* A network's plans, while they are compared. */
struct weighing {
    struct planner *plans[PLANS];
    struct planner_merges *m;
    struct network_groups plain; /* m's, without concatenations behind them */
    /* Of each group, by its way to be merged; NULL where no plan has groups so. */
    struct planner_verdict *prices[WAYS];
    enum way *better, *ways; /* of each group: to be merged; as it gains most */
};

/* The groups that are not apart, each in its way. */
static int choose(struct network_groups *out, const struct planner_merges *m,
                  const enum way *ways, const strata_network *net, strata_error *err)
{
    int first[NETWORK_MAX_SIBLINGS], status = STRATA_OK;
    *out = (struct network_groups){0};
    for (size_t i = 0; i < m->groups.n && status == STRATA_OK; i++) {
        const struct network_siblings *g = &m->groups.list[i];
        const bool less = ways[i] == WAY_MERGED && g->behind == BEHIND_JOINED;
        for (int c = 0; c < g->n; c++)
            first[c] = network_sibling(g, c, 0);
        if (ways[i] != WAY_APART)
            status = network_add_siblings(out, net, first, g->n, g->length,
                                          less ? BEHIND_NOTHING : g->behind,
                                          network_join_of(g), err);
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
    return a->plan->cost + planner_merge_copies(a) <
           b->plan->cost + planner_merge_copies(b);
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
    to->costs.mended += from->costs.mended;
    to->costs.loaded += from->costs.loaded;
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

/* A plan that cannot be made is none; what ends planning is told. */
static int plan_if_possible(struct planner **out, const struct weighing *w,
                            const struct network_groups *groups,
                            struct cost_source *costs, strata_error *err)
{
    strata_error why = {0};
    const int status = plan_merged(out, w->plans[APART], groups, costs, &why);
    return status == STRATA_ENOMEM || status == STRATA_EBUSY
               ? error_set(err, status, "%s", why.message)
               : STRATA_OK;
}

static int price(struct weighing *w, enum way way, int plan,
                 const struct network_groups *groups, strata_error *err)
{
    if (!w->plans[plan])
        return STRATA_OK;
    w->prices[way] = zalloc(groups->n, sizeof *w->prices[way], "prices", err);
    return w->prices[way] ? planner_merge_prices(w->prices[way], groups, w->plans[APART],
                                                 w->plans[plan], err)
                          : STRATA_ENOMEM;
}

/* Of all groups, with nothing behind them where that is a concatenation. why: it cannot
 * be made. */
static int plan_all(struct weighing *w, struct cost_source *costs, strata_error *why,
                    strata_error *err)
{
    for (size_t i = 0; i < w->m->groups.n; i++)
        w->ways[i] = WAY_MERGED;
    int status = choose(&w->plain, w->m, w->ways, w->plans[APART]->network, err);
    if (status != STRATA_OK)
        return status;
    status = plan_merged(&w->plans[ALL], w->plans[APART], &w->plain, costs, why);
    if (status == STRATA_ENOMEM || status == STRATA_EBUSY)
        return error_set(err, status, "%s", why->message);
    return price(w, WAY_MERGED, ALL, &w->plain, err);
}

/* The same within concatenations, where there are such. */
static int plan_joined(struct weighing *w, struct cost_source *costs, strata_error *err)
{
    bool joins = false;
    for (size_t i = 0; i < w->m->groups.n; i++)
        joins |= w->m->groups.list[i].behind == BEHIND_JOINED;
    if (!joins)
        return STRATA_OK;
    int status = plan_if_possible(&w->plans[JOINED], w, &w->m->groups, costs, err);
    return status == STRATA_OK ? price(w, WAY_JOINED, JOINED, &w->m->groups, err)
                               : status;
}

static int64_t gain_of(const struct weighing *w, enum way way, size_t i)
{
    const struct planner_verdict *v = &w->prices[way][i];
    return v->apart - v->merged;
}

static void find_way(struct weighing *w, size_t i)
{
    const bool both =
        w->prices[WAY_JOINED] && w->m->groups.list[i].behind == BEHIND_JOINED;
    w->better[i] = both && gain_of(w, WAY_JOINED, i) > gain_of(w, WAY_MERGED, i)
                       ? WAY_JOINED
                       : WAY_MERGED;
    w->ways[i] = gain_of(w, w->better[i], i) > 0 ? w->better[i] : WAY_APART;
}

/* How a group is in a plan. */
static enum way way_in(const struct weighing *w, int plan, size_t i)
{
    const bool joins = w->m->groups.list[i].behind == BEHIND_JOINED;
    const enum way ways[PLANS] = {[APART] = WAY_APART,
                                  [ALL] = WAY_MERGED,
                                  [JOINED] = joins ? WAY_JOINED : WAY_MERGED,
                                  [SOME] = w->ways[i]};
    return ways[plan];
}

static bool is_as_they_gain(const struct weighing *w, int plan)
{
    bool same = w->plans[plan] != NULL;
    for (size_t i = 0; i < w->m->groups.n && same; i++)
        same = way_in(w, plan, i) == w->ways[i];
    return same;
}

/* Each group as it gains most, where that is none of the plans that are there. */
static int plan_some(struct weighing *w, struct cost_source *costs, strata_error *err)
{
    struct network_groups groups;
    for (size_t i = 0; i < w->m->groups.n; i++)
        find_way(w, i);
    for (int k = APART; k < SOME; k++)
        if (is_as_they_gain(w, k))
            return STRATA_OK;
    int status = choose(&groups, w->m, w->ways, w->plans[APART]->network, err);
    if (status == STRATA_OK)
        status = plan_if_possible(&w->plans[SOME], w, &groups, costs, err);
    network_free_groups(&groups);
    return status;
}

/* Which of the plans stays. */
static int best_of(struct planner *plans[PLANS])
{
    int best = APART;
    for (int k = PLANS - 1; k > APART; k--) /* of some, if that is as good as of all */
        if (plans[k] && is_known(plans[k]) && is_better(plans[k], plans[best]))
            best = k;
    return best;
}

/* The verdicts, and groups as they are in the plan that stays. */
static int conclude(struct weighing *w, int best, strata_error *err)
{
    for (size_t i = 0; i < w->m->groups.n; i++) {
        struct network_siblings *g = &w->m->groups.list[i];
        struct planner_verdict *v = &w->m->verdicts[i];
        const enum way way = way_in(w, best, i),
                       told = way == WAY_APART ? w->better[i] : way;
        *v = w->prices[told][i];
        v->done = way != WAY_APART;
        if (told == WAY_MERGED)
            network_leave_join(g);
        if (best == APART && w->ways[i] != WAY_APART &&
            !(v->why = duplicate(is_known(w->plans[ALL])
                                     ? "the whole plan costs no less with it"
                                     : "its costs were not measured in time",
                                 err)))
            return STRATA_ENOMEM;
    }
    return STRATA_OK;
}

static int open_weighing(struct weighing *w, strata_error *err)
{
    const size_t n = w->m->groups.n;
    w->better = zalloc(n, sizeof *w->better, "siblings", err);
    w->ways = zalloc(n, sizeof *w->ways, "siblings", err);
    return w->better && w->ways ? STRATA_OK : STRATA_ENOMEM;
}

static void close_weighing(struct weighing *w)
{
    network_free_groups(&w->plain);
    for (int way = 0; way < WAYS; way++)
        free(w->prices[way]);
    free(w->better);
    free(w->ways);
}

/* A plan with merged layers that cannot be made is none: the one apart stays. */
static int weigh(struct weighing *w, int *best, struct cost_source *costs,
                 strata_error *err)
{
    strata_error why = {0};
    *best = APART;
    int status = open_weighing(w, err);
    if (status == STRATA_OK)
        status = plan_all(w, costs, &why, err);
    if (status != STRATA_OK)
        return status;
    if (!w->plans[ALL])
        return refuse_all(w->m, why.message, err);
    status = plan_joined(w, costs, err);
    if (status == STRATA_OK)
        status = plan_some(w, costs, err);
    if (status != STRATA_OK)
        return status;
    *best = best_of(w->plans);
    return conclude(w, *best, err);
}

void planner_tell_merges(const struct planner *planner)
{
    const struct planner_merges *m = planner->merges;
    for (size_t i = 0; m && i < m->groups.n; i++) {
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
    struct weighing w = {.plans = {NULL}};
    int best = APART;
    *out = NULL;
    int status = planner_make(&w.plans[APART], network, device, costs, err);
    if (status == STRATA_OK)
        status = make_merges(&w.m, network, err);
    if (status == STRATA_OK && w.m->groups.n > 0)
        status = weigh(&w, &best, costs, err);
    for (int k = 0; k < PLANS && status == STRATA_OK; k++)
        status = take_over(w.plans[best], w.plans[k], err);
    if (status == STRATA_OK) {
        *out = w.plans[best];
        (*out)->merges = w.m;
        w.plans[best] = NULL;
        w.m = NULL;
        if (!device->quiet)
            planner_tell_merges(*out);
    }
    for (int k = 0; k < PLANS; k++)
        planner_free(w.plans[k]);
    close_weighing(&w);
    planner_free_merges(w.m);
    return status;
}
