/* SPDX-License-Identifier: Apache-2.0
 *
 * What was decided about regions, in words, as JSON and back. What is read is hostile
 * until the layers that it names were found to be pairs.
 */
#include "planner/mixed/mixed.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "ini/names.h"
#include "io/json.h"
#include "planner/explain/explain.h"
#include "planner/merge/merge.h"

void planner_free_mixes(struct planner_mixes *m)
{
    if (!m)
        return;
    network_free_pairs(&m->pairs);
    strata_network_destroy(m->network);
    free(m->list);
    free(m);
}

const strata_network *planner_unmixed(const struct planner *planner)
{
    const strata_network *net = planner_unmerged(planner);
    return net->merged && net->merged->pairs && net->merged != net->base->merged
               ? net->base
               : net;
}

char *planner_mix_text(const struct planner_mix *v)
{
    char rounded[TEXT_REAL], floats[TEXT_REAL];
    explain_in_us(rounded, v->rounded);
    explain_in_us(floats, v->floats);
    return v->dropped
               ? text_print("floats, %s us, where 8 bits take %s", floats, rounded)
               : text_print("8 bits, %s us, where floats take %s", rounded, floats);
}

/* ---- writing ------------------------------------------------------------------------
 */

static json_t *region_json(const struct planner_mixes *m, int region)
{
    const strata_network *net = m->network;
    const struct network_region *r = &m->pairs.regions[region];
    const struct planner_mix *v = &m->list[region];
    json_t *pairs = json_array();
    char *text = planner_mix_text(v);
    for (size_t i = 0; i < m->pairs.n; i++)
        if (m->pairs.list[i].region == region)
            pairs =
                json_add(pairs, json_string(net->layers[m->pairs.list[i].quantize].name));
    json_t *j = json_pack("{s:s, s:s, s:o, s:b, s:b, s:I, s:I, s:s?}", "first",
                          net->layers[r->first].name, "last", net->layers[r->last].name,
                          "pairs", pairs, "floats", v->dropped, "in_place", m->in_place,
                          "cost_rounded", (json_int_t)v->rounded, "cost_floats",
                          (json_int_t)v->floats, "text", text);
    free(text);
    return j;
}

json_t *planner_mixes_json(const struct planner *planner)
{
    const struct planner_mixes *m = planner->mixes;
    json_t *list = json_array();
    for (size_t r = 0; m && r < m->pairs.n_regions; r++)
        list = json_add(list, region_json(m, (int)r));
    return list;
}

/* ---- reading ------------------------------------------------------------------------
 */

struct reading {
    struct planner_mixes *m;
    struct names names; /* of layers */
    int *pair_of;       /* of each layer, that a list may name once; -1: none */
    bool *taken;        /* each pair */
};

static int find_layer(int *out, const struct reading *r, const char *name,
                      strata_error *err)
{
    *out = name ? names_get(&r->names, name) : -1;
    return *out < 0
               ? error_set(err, STRATA_EPARSE, "there is no layer '%s'", name ? name : "")
               : STRATA_OK;
}

static int read_pair(struct reading *r, const json_t *name, int region, strata_error *err)
{
    int layer;
    if (find_layer(&layer, r, json_string_value(name), err) != STRATA_OK)
        return STRATA_EPARSE;
    const int pair = r->pair_of[layer];
    if (pair < 0 || r->taken[pair])
        return error_set(err, STRATA_EPARSE, "layer '%s' %s", json_string_value(name),
                         pair < 0 ? "cannot be left out" : "stands twice");
    r->taken[pair] = true;
    r->m->pairs.list[pair].region = region;
    return STRATA_OK;
}

static int read_region(struct reading *r, const json_t *j, size_t at, strata_error *err)
{
    struct network_region *region = &r->m->pairs.regions[at];
    json_error_t wrong;
    json_t *pairs;
    json_int_t rounded, floats;
    const char *first, *last;
    int dropped, in_place;
    if (json_unpack_ex((json_t *)j, &wrong, 0, "{s:s, s:s, s:o, s:b, s:b, s:I, s:I}",
                       "first", &first, "last", &last, "pairs", &pairs, "floats",
                       &dropped, "in_place", &in_place, "cost_rounded", &rounded,
                       "cost_floats", &floats) != 0)
        return error_set(err, STRATA_EPARSE, "%s", wrong.text);
    if (rounded < 0 || rounded >= PLAN_INFINITE || floats < 0 || floats >= PLAN_INFINITE)
        return error_set(err, STRATA_EPARSE, "a cost is out of range");
    if (find_layer(&region->first, r, first, err) != STRATA_OK ||
        find_layer(&region->last, r, last, err) != STRATA_OK)
        return STRATA_EPARSE;
    r->m->in_place = in_place;
    r->m->list[at] = (struct planner_mix){rounded, floats, dropped};
    for (size_t i = 0; i < json_array_size(pairs); i++)
        if (read_pair(r, json_array_get(pairs, i), (int)at, err) != STRATA_OK)
            return STRATA_EPARSE;
    return STRATA_OK;
}

/* Pairs of the network, which no region has yet; room for n regions. */
static int open_reading(struct reading *r, const strata_network *net, size_t n,
                        strata_error *err)
{
    r->pair_of = zalloc(net->n_layers, sizeof *r->pair_of, "the plan", err);
    if (!r->pair_of || !(r->m = zalloc(1, sizeof *r->m, "the plan", err)))
        return STRATA_ENOMEM;
    struct network_pairs *p = &r->m->pairs;
    r->m->network = network_retain(net);
    int status = network_find_pairs(p, net, err);
    if (status != STRATA_OK)
        return status;
    free(p->regions); /* they are as the record has them, whatever is found today */
    free(p->region_of);
    p->region_of = NULL;
    p->n_regions = n;
    p->regions = zalloc(n, sizeof *p->regions, "the plan", err);
    r->m->list = zalloc(n, sizeof *r->m->list, "the plan", err);
    r->taken = zalloc(p->n, sizeof *r->taken, "the plan", err);
    if (!p->regions || !r->m->list || !r->taken)
        return STRATA_ENOMEM;
    memset(r->pair_of, -1, net->n_layers * sizeof *r->pair_of);
    for (size_t i = 0; i < p->n; i++)
        r->pair_of[p->list[i].quantize] = (int)i;
    for (size_t i = 0; i < net->n_layers && status == STRATA_OK; i++)
        status = names_put(&r->names, net->layers[i].name, (int)i, err);
    return status;
}

/* Pairs that no region has are none. */
static void keep_taken(struct reading *r)
{
    struct network_pairs *p = &r->m->pairs;
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        if (r->taken[i])
            p->list[n++] = p->list[i];
    p->n = n;
}

int planner_mixes_read(struct planner_mixes **out, const json_t *list,
                       const strata_network *net, strata_error *err)
{
    struct reading r = {.m = NULL};
    const size_t n = json_array_size(list);
    *out = NULL;
    if (n == 0)
        return STRATA_OK;
    if (n > net->n_layers)
        return error_set(err, STRATA_EPARSE, "%zu regions of %zu layers", n,
                         net->n_layers);
    int status = open_reading(&r, net, n, err);
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        status = read_region(&r, json_array_get(list, i), i, err);
        if (status != STRATA_OK)
            error_prefix(err, "region %zu", i);
    }
    if (status == STRATA_OK) {
        keep_taken(&r);
        *out = r.m;
        r.m = NULL;
    }
    planner_free_mixes(r.m);
    names_free(&r.names);
    free(r.pair_of);
    free(r.taken);
    return status;
}

int planner_mix_recorded(strata_network **out, const json_t *list,
                         const strata_network *net, strata_error *err)
{
    struct planner_mixes *m;
    *out = NULL;
    int status = planner_mixes_read(&m, list, net, err);
    if (status != STRATA_OK)
        return status;
    const size_t n = m ? m->pairs.n_regions : 0;
    bool *dropped = zalloc(n, sizeof *dropped, "the plan", err);
    bool any = false;
    for (size_t r = 0; dropped && r < n; r++)
        any |= dropped[r] = m->list[r].dropped;
    if (!dropped)
        status = STRATA_ENOMEM;
    else if (any)
        status = network_drop_pairs(out, net, &m->pairs, dropped, err);
    else
        *out = network_retain(net);
    free(dropped);
    planner_free_mixes(m);
    return status;
}
