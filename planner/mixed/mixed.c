/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of a network with and without pairs, and the mixture that costs least.
 */
#include "planner/mixed/mixed.h"

#include <stdlib.h>
#include <string.h>

#include "planner/cost/progress.h"
#include "planner/merge/merge.h"

enum kind { ROUNDED, FLOATS, MIXTURE, KINDS };

enum {
    MOST_TURNED = 3, /* regions behind each other that are turned over together */
    /* Plans of turned regions at most: so many, and a few for each region. */
    MOST_PLANS = 20,
    MOST_PLANS_EACH = 2
};

/* Of a plan: by what a region's price may differ in another one. */
#define AROUND 0.003

struct mixing {
    const strata_network *base;
    struct planner_device device; /* quiet */
    const struct planner_surplus *surplus;
    bool rough; /* regions are not turned over */
    struct cost_memory memory;
    struct planner_mixes *m;
    struct planner *plans[KINDS];
    bool *state;   /* of each region: in floats; the best so far */
    int64_t apart; /* what no region has, in one of the first two plans: the less */
    int64_t cost;  /* its plan's, with what that takes beyond its prices */
    struct cost_report spent; /* on plans that are gone */
    size_t most;
};

/* ---- one plan -----------------------------------------------------------------------
 */

static int64_t surplus_of(const struct mixing *x, const bool *state)
{
    int64_t sum = 0;
    for (size_t r = 0; x->surplus && r < x->m->pairs.n_regions; r++)
        sum += (state[r] ? x->surplus->floats : x->surplus->rounded)[r];
    return sum;
}

static int64_t cost_of(const struct mixing *x, const struct planner *planner,
                       const bool *state)
{
    return planner->plan->cost + planner_merge_copies(planner) + surplus_of(x, state);
}

/* Whether a plan's costs are as good as those of a whole one. */
static bool is_known(const struct planner *planner)
{
    const struct cost_options *o = &planner->network->build.costs;
    const struct cost_report *r = &planner->costs;
    return r->complete || r->kind == COSTS_ANALYTIC ||
           (r->kind == COSTS_FILE && o->miss == MISS_ANALYTIC);
}

static bool is_any(const struct mixing *x, const bool *state, bool dropped)
{
    bool any = false;
    for (size_t r = 0; r < x->m->pairs.n_regions; r++)
        any |= state[r] == dropped;
    return any;
}

/* whole: siblings are merged, where that costs less. */
static int plan(struct planner **out, struct mixing *x, const bool *state, bool whole,
                strata_error *err)
{
    struct cost_source *costs = x->memory.real ? &x->memory.source : NULL;
    strata_network *net = NULL;
    *out = NULL;
    int status = cost_memory_next(&x->memory, whole, err);
    if (status == STRATA_OK)
        status = is_any(x, state, true)
                     ? network_drop_pairs(&net, x->base, &x->m->pairs, state, err)
                     : STRATA_OK;
    if (status == STRATA_OK)
        status = (whole ? planner_make_merged : planner_make)(out, net ? net : x->base,
                                                              &x->device, costs, err);
    strata_network_destroy(net);
    x->m->plans++;
    return status;
}

/* A plan that cannot be made is none; what ends planning is told. */
static int plan_if_possible(struct planner **out, struct mixing *x, const bool *state,
                            bool whole, strata_error *err)
{
    strata_error why = {0};
    const int status = plan(out, x, state, whole, &why);
    if (status != STRATA_OK && whole)
        log_line(STRATA_LOG_INFO, "not planned in floats: %s", why.message);
    return status == STRATA_ENOMEM || status == STRATA_EBUSY
               ? error_set(err, status, "%s", why.message)
               : STRATA_OK;
}

static void add_report(struct cost_report *to, const struct cost_report *from)
{
    to->measured += from->measured;
    to->solved += from->solved;
    to->seconds += from->seconds;
    to->kept |= from->kept;
    to->mended += from->mended;
    to->loaded += from->loaded;
}

/* PLAN_INFINITE: there is no such plan, or it is not known what it costs. */
static int weigh(int64_t *cost, struct mixing *x, const bool *state, strata_error *err)
{
    struct planner *planner;
    *cost = PLAN_INFINITE;
    int status = plan_if_possible(&planner, x, state, false, err);
    if (!planner)
        return status;
    if (is_known(planner))
        *cost = cost_of(x, planner, state);
    add_report(&x->spent, &planner->costs);
    planner_free(planner);
    return status;
}

/* ---- regions ------------------------------------------------------------------------
 */

static int bill(int64_t *out, const struct mixing *x, const struct planner *planner,
                strata_error *err)
{
    struct execution *execution;
    const int status = execution_make(&execution, planner, planner->plan, err);
    if (status == STRATA_OK)
        planner_mix_bill(out, x->m, execution, false);
    execution_free(execution);
    return status;
}

/* What regions take in both plans, for the verdicts. */
static int price(struct mixing *x, strata_error *err)
{
    const size_t n = x->m->pairs.n_regions;
    int64_t *sums = zalloc(n, 2 * sizeof *sums, "prices", err);
    int status = sums ? bill(sums, x, x->plans[ROUNDED], err) : STRATA_ENOMEM;
    if (status == STRATA_OK)
        status = bill(sums + n, x, x->plans[FLOATS], err);
    for (size_t r = 0; r < n && status == STRATA_OK; r++)
        x->m->list[r] = (struct planner_mix){
            .rounded = sums[r] + (x->surplus ? x->surplus->rounded[r] : 0),
            .floats = sums[n + r] + (x->surplus ? x->surplus->floats[r] : 0)};
    free(sums);
    return status;
}

/* ---- the mixture --------------------------------------------------------------------
 */

static int64_t price_of(const struct planner_mix *v, bool dropped)
{
    return dropped ? v->floats : v->rounded;
}

static int64_t prices_of(const struct mixing *x, const bool *state)
{
    int64_t sum = 0;
    for (size_t r = 0; r < x->m->pairs.n_regions; r++)
        sum += price_of(&x->m->list[r], state[r]);
    return sum;
}

static void take_if_better(struct mixing *x, const bool *state, int64_t cost)
{
    if (cost >= x->cost)
        return;
    x->cost = cost;
    memcpy(x->state, state, x->m->pairs.n_regions);
}

/* All rounded, all floats, each as it costs less; the first where others gain nothing. */
static int begin(struct mixing *x, bool *state, strata_error *err)
{
    const size_t n = x->m->pairs.n_regions;
    int64_t cost;
    memset(x->state, false, n);
    x->cost = cost_of(x, x->plans[ROUNDED], x->state);
    x->apart = x->cost - prices_of(x, x->state);
    memset(state, true, n);
    cost = cost_of(x, x->plans[FLOATS], state);
    take_if_better(x, state, cost);
    if (cost - prices_of(x, state) < x->apart)
        x->apart = cost - prices_of(x, state);
    for (size_t r = 0; r < n; r++)
        state[r] = x->m->list[r].floats < x->m->list[r].rounded;
    if (!is_any(x, state, true) || !is_any(x, state, false))
        return STRATA_OK;
    const int status = weigh(&cost, x, state, err);
    take_if_better(x, state, cost);
    return status;
}

/* Whether a choice may cost less than the best: what its regions cost more can only come
 * back from what changes between kinds take there, all that is beyond the regions' own
 * prices and what no region has; and those depend a little on what is around. */
static bool is_promising(const struct mixing *x, const bool *state)
{
    const int64_t own = prices_of(x, x->state);
    const int64_t changes = x->cost - own - x->apart;
    return prices_of(x, state) - own <=
           (changes > 0 ? changes : 0) + (int64_t)(AROUND * (double)x->cost);
}

/* `width` regions from one on as they are not; of equal plans more is rounded. */
static int turn(struct mixing *x, bool *state, size_t first, size_t width, bool *gained,
                strata_error *err)
{
    int64_t cost;
    memcpy(state, x->state, x->m->pairs.n_regions);
    for (size_t r = first; r < first + width; r++) {
        if (state[r] != x->state[first])
            return STRATA_OK; /* turned over alone, and then this one */
        state[r] = !state[r];
    }
    if (!is_promising(x, state))
        return STRATA_OK;
    const int status = weigh(&cost, x, state, err);
    const bool same = cost == x->cost && !state[first];
    *gained = cost < x->cost || same;
    if (*gained) {
        x->cost = cost;
        memcpy(x->state, state, x->m->pairs.n_regions);
    }
    return status;
}

/* Regions by themselves until that gains nothing; then neighbours, and all anew. */
static int improve(struct mixing *x, bool *state, strata_error *err)
{
    const size_t n = x->m->pairs.n_regions;
    size_t width = 1, since = 0; /* places that gained nothing, at this width */
    int status = STRATA_OK;
    for (size_t at = 0; width <= MOST_TURNED && width <= n && status == STRATA_OK;) {
        bool gained = false;
        if (x->m->plans >= x->most || progress_interrupted())
            return STRATA_OK;
        status = turn(x, state, at, width, &gained, err);
        since = gained ? 0 : since + 1;
        if (gained && width > 1) {
            width = 1;
        } else if (since > n - width) {
            width++;
            since = 0;
        }
        at = width <= n && at < n - width ? at + 1 : 0;
    }
    return status;
}

static int search(struct mixing *x, strata_error *err)
{
    bool *state = zalloc(x->m->pairs.n_regions, sizeof *state, "regions", err);
    int status = state ? begin(x, state, err) : STRATA_ENOMEM;
    x->most = x->m->plans + MOST_PLANS + MOST_PLANS_EACH * x->m->pairs.n_regions;
    if (status == STRATA_OK && !x->rough)
        status = improve(x, state, err);
    free(state);
    return status;
}

/* ---- all of it ----------------------------------------------------------------------
 */

static int plan_alike(struct mixing *x, enum kind kind, strata_error *err)
{
    memset(x->state, kind == FLOATS, x->m->pairs.n_regions);
    return kind == ROUNDED ? plan(&x->plans[kind], x, x->state, true, err)
                           : plan_if_possible(&x->plans[kind], x, x->state, true, err);
}

/* The best one is there, or is made; siblings may be merged in it, too. */
static int plan_mixture(struct mixing *x, strata_error *err)
{
    if (!is_any(x, x->state, true) || !is_any(x, x->state, false))
        return STRATA_OK;
    return plan_if_possible(&x->plans[MIXTURE], x, x->state, true, err);
}

/* Of plans that cost the same the one that rounds more. */
static enum kind choose(struct mixing *x)
{
    enum kind best = ROUNDED;
    bool *all = x->state;
    int64_t least = PLAN_INFINITE;
    const size_t n = x->m->pairs.n_regions;
    if (x->plans[MIXTURE] && is_known(x->plans[MIXTURE])) {
        best = MIXTURE;
        least = cost_of(x, x->plans[MIXTURE], x->state);
        for (size_t r = 0; r < n; r++)
            x->m->list[r].dropped = x->state[r];
    }
    for (int kind = FLOATS; kind >= ROUNDED; kind--) {
        if (!x->plans[kind] || (kind == FLOATS && !is_known(x->plans[kind])))
            continue;
        memset(all, kind == FLOATS, n);
        const int64_t cost = cost_of(x, x->plans[kind], all);
        if (cost < least || (kind == ROUNDED && cost == least)) {
            best = (enum kind)kind;
            least = cost;
        }
    }
    for (size_t r = 0; r < n && best != MIXTURE; r++)
        x->m->list[r].dropped = best == FLOATS;
    return best;
}

static void tell(const struct planner_mixes *m)
{
    log_line(STRATA_LOG_INFO, "%zu plans with and without rounding of %zu regions",
             m->plans, m->pairs.n_regions);
    for (size_t r = 0; r < m->pairs.n_regions; r++) {
        char *name = network_region_name(m->network, &m->pairs.regions[r], NULL);
        char *text = planner_mix_text(&m->list[r]);
        if (name && text)
            log_line(STRATA_LOG_INFO, "'%s': %s", name, text);
        free(name);
        free(text);
    }
}

/* The plan that stays, what planning took, and what was measured for it. */
static int conclude(struct planner **out, struct mixing *x, strata_error *err)
{
    const enum kind best = choose(x);
    struct planner *planner = x->plans[best];
    int status = cost_memory_next(&x->memory, false, err);
    for (int k = 0; k < KINDS && status == STRATA_OK; k++) {
        if (!x->plans[k] || k == (int)best)
            continue;
        add_report(&planner->costs, &x->plans[k]->costs);
        status = cost_table_merge(&planner->known, &x->plans[k]->known, err);
    }
    add_report(&planner->costs, &x->spent);
    if (status == STRATA_OK)
        status = cost_table_merge(&planner->known, &x->memory.before, err);
    if (status != STRATA_OK)
        return status;
    planner->mixes = x->m;
    x->m = NULL;
    x->plans[best] = NULL;
    *out = planner;
    return STRATA_OK;
}

/* Note what the plan that stays does, and tell it. */
static int settle(struct planner *planner, strata_error *err)
{
    planner->device.quiet = false;
    const int status = planner_note_fusions(planner, err);
    planner_tell_merges(planner);
    tell(planner->mixes);
    return status;
}

static int open_mixing(struct mixing *x, const strata_network *network,
                       const struct planner_device *device, struct cost_source *costs,
                       strata_error *err)
{
    x->base = network;
    x->device = *device;
    x->device.quiet = true;
    x->rough = device->mixed_again && !x->surplus;
    cost_memory_open(&x->memory, costs, device);
    if (!(x->m = zalloc(1, sizeof *x->m, "regions", err)))
        return STRATA_ENOMEM;
    x->m->network = network_retain(network);
    int status = network_find_pairs(&x->m->pairs, network, err);
    if (status != STRATA_OK)
        return status;
    const size_t n = x->m->pairs.n_regions;
    x->m->list = zalloc(n, sizeof *x->m->list, "regions", err);
    x->state = zalloc(n, sizeof *x->state, "regions", err);
    return x->m->list && x->state ? STRATA_OK : STRATA_ENOMEM;
}

static void close_mixing(struct mixing *x)
{
    for (int k = 0; k < KINDS; k++)
        planner_free(x->plans[k]);
    planner_free_mixes(x->m);
    cost_memory_close(&x->memory);
    free(x->state);
}

/* Where floats alone cannot be planned, or not by known costs, all stays as it is. */
static int mix(struct planner **out, struct mixing *x, strata_error *err)
{
    int status = plan_alike(x, ROUNDED, err);
    if (status == STRATA_OK)
        status = plan_alike(x, FLOATS, err);
    if (status == STRATA_OK && x->plans[FLOATS] && is_known(x->plans[FLOATS])) {
        status = price(x, err);
        if (status == STRATA_OK)
            status = search(x, err);
        if (status == STRATA_OK)
            status = plan_mixture(x, err);
    }
    if (status == STRATA_OK)
        status = conclude(out, x, err);
    return status == STRATA_OK ? settle(*out, err) : status;
}

int planner_make_mixed(struct planner **out, const strata_network *network,
                       const struct planner_device *device, struct cost_source *costs,
                       strata_error *err)
{
    struct mixing x = {.surplus = NULL};
    *out = NULL;
    if (!network->build.mixed || network->build.objective != OBJECTIVE_TIME)
        return planner_make_merged(out, network, device, costs, err);
    int status = open_mixing(&x, network, device, costs, err);
    if (status == STRATA_OK)
        status = x.m->pairs.n_regions > 0
                     ? mix(out, &x, err)
                     : planner_make_merged(out, network, device, costs, err);
    close_mixing(&x);
    return status;
}

static int open_again(struct mixing *x, const struct planner *before,
                      struct cost_source *costs, strata_error *err)
{
    int status = open_mixing(x, before->mixes->network, &before->device, costs, err);
    return status == STRATA_OK ? cost_memory_add(&x->memory, &before->known, err)
                               : status;
}

int planner_mix_again(struct planner **out, const struct planner *before,
                      struct cost_source *costs, const struct planner_surplus *surplus,
                      strata_error *err)
{
    struct mixing x = {.surplus = surplus};
    *out = NULL;
    int status = open_again(&x, before, costs, err);
    if (status == STRATA_OK)
        status = mix(out, &x, err);
    if (status == STRATA_OK)
        (*out)->mixes->in_place = surplus != NULL;
    close_mixing(&x);
    return status;
}

/* The verdicts are those from before. */
static int take_alike(struct planner **out, struct mixing *x, enum kind kind,
                      const struct planner_mixes *before, strata_error *err)
{
    struct planner *planner = x->plans[kind];
    if (!planner)
        return error_set(err, STRATA_EPLAN, "there is no plan in floats");
    for (size_t r = 0; r < x->m->pairs.n_regions; r++) {
        x->m->list[r] = before->list[r];
        x->m->list[r].dropped = kind == FLOATS;
    }
    planner->device.quiet = false;
    planner->mixes = x->m;
    x->m = NULL;
    x->plans[kind] = NULL;
    *out = planner;
    return planner_note_fusions(planner, err);
}

int planner_mix_alike(struct planner **out, const struct planner *before, bool dropped,
                      struct cost_source *costs, strata_error *err)
{
    const enum kind kind = dropped ? FLOATS : ROUNDED;
    struct mixing x = {.surplus = NULL};
    *out = NULL;
    int status = open_again(&x, before, costs, err);
    if (status == STRATA_OK)
        status = plan_alike(&x, kind, err);
    if (status == STRATA_OK)
        status = take_alike(out, &x, kind, before->mixes, err);
    close_mixing(&x);
    return status;
}
