/* SPDX-License-Identifier: Apache-2.0
 *
 * What was decided about siblings, in words, as JSON and back. What is read is hostile
 * until the layers that it names were found to be siblings.
 */
#include "planner/merge/merge.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "ini/names.h"
#include "core/text.h"
#include "io/json.h"
#include "planner/explain/explain.h"

void planner_free_merges(struct planner_merges *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->verdicts && i < m->groups.n; i++)
        free(m->verdicts[i].why);
    free(m->verdicts);
    network_free_groups(&m->groups);
    free(m);
}

const strata_network *planner_unmerged(const struct planner *planner)
{
    const strata_network *net = planner->network;
    return net->merged && !net->merged->pairs && net->merged != net->base->merged
               ? net->base
               : net;
}

char *planner_merge_text(const struct planner_verdict *v)
{
    char merged[TEXT_REAL], apart[TEXT_REAL];
    if (v->why)
        return text_print("%s", v->why);
    explain_in_us(merged, v->merged);
    explain_in_us(apart, v->apart);
    return text_print("%s us merged, %s us apart", merged, apart);
}

/* ---- writing ------------------------------------------------------------------------
 */

static const char *const behinds[BEHIND_KINDS] = {
    [BEHIND_TURNED] = "turned", [BEHIND_GATED] = "gated", [BEHIND_JOINED] = "joined"};

static json_t *group_json(const strata_network *net, const struct network_siblings *g,
                          const struct planner_verdict *v)
{
    json_t *layers = json_array();
    char *text = planner_merge_text(v);
    for (int c = 0; c < g->n; c++)
        layers =
            json_add(layers, json_string(net->layers[network_sibling(g, c, 0)].name));
    json_t *j = json_pack("{s:o, s:i, s:b, s:I, s:I, s:s?}", "layers", layers, "length",
                          g->length, "done", v->done, "apart", (json_int_t)v->apart,
                          "merged", (json_int_t)v->merged, "text", text);
    if (g->behind != BEHIND_NOTHING)
        j = json_put(j, "behind", json_string(behinds[g->behind]));
    if (network_join_of(g) >= 0)
        j = json_put(j, "into", json_string(net->layers[network_join_of(g)].name));
    if (v->why)
        j = json_put(j, "why", json_string(v->why));
    free(text);
    return j;
}

json_t *planner_merges_json(const struct planner *planner)
{
    const struct planner_merges *m = planner->merges;
    json_t *list = json_array();
    for (size_t i = 0; m && i < m->groups.n; i++)
        list = json_add(list, group_json(planner_unmerged(planner), &m->groups.list[i],
                                         &m->verdicts[i]));
    return list;
}

/* ---- reading ------------------------------------------------------------------------
 */

static int read_behind(enum network_behind *out, const char *name, strata_error *err)
{
    *out = BEHIND_NOTHING;
    for (int k = BEHIND_NOTHING + 1; name && k < BEHIND_KINDS; k++)
        if (strcmp(name, behinds[k]) == 0)
            *out = (enum network_behind)k;
    return name && *out == BEHIND_NOTHING
               ? error_set(err, STRATA_EPARSE, "'%s' behind layers is not known", name)
               : STRATA_OK;
}

static int find_layer(int *out, const struct names *names, const char *name,
                      strata_error *err)
{
    *out = name ? names_get(names, name) : -1;
    return *out < 0
               ? error_set(err, STRATA_EPARSE, "there is no layer '%s'", name ? name : "")
               : STRATA_OK;
}

static int read_layers(struct network_groups *out, const json_t *layers, int length,
                       enum network_behind behind, int into, const strata_network *net,
                       const struct names *names, strata_error *err)
{
    int first[NETWORK_MAX_SIBLINGS];
    const size_t n = json_array_size(layers);
    if (n > NETWORK_MAX_SIBLINGS)
        return error_set(err, STRATA_EPARSE, "%zu layers; at most %d can be one", n,
                         NETWORK_MAX_SIBLINGS);
    for (size_t c = 0; c < n; c++) {
        const char *name = json_string_value(json_array_get(layers, c));
        if (find_layer(&first[c], names, name, err) != STRATA_OK)
            return STRATA_EPARSE;
    }
    return network_add_siblings(out, net, first, (int)n, length, behind, into, err);
}

static int read_group(struct planner_merges *m, const json_t *j,
                      const strata_network *net, const struct names *names,
                      strata_error *err)
{
    struct planner_verdict *v = &m->verdicts[m->groups.n];
    json_error_t wrong;
    strata_error refused = {0};
    json_t *layers;
    json_int_t apart, merged;
    const char *why = NULL, *name = NULL, *join = NULL;
    enum network_behind behind;
    int length, done, into = -1;
    if (json_unpack_ex((json_t *)j, &wrong, 0,
                       "{s:o, s:i, s:b, s:I, s:I, s?:s, s?:s, s?:s}", "layers", &layers,
                       "length", &length, "done", &done, "apart", &apart, "merged",
                       &merged, "behind", &name, "into", &join, "why", &why) != 0)
        return error_set(err, STRATA_EPARSE, "%s", wrong.text);
    if (read_behind(&behind, name, err) != STRATA_OK ||
        (join && find_layer(&into, names, join, err) != STRATA_OK))
        return STRATA_EPARSE;
    if (apart < 0 || apart >= PLAN_INFINITE || merged < 0 || merged >= PLAN_INFINITE)
        return error_set(err, STRATA_EPARSE, "a cost is out of range");
    int status =
        read_layers(&m->groups, layers, length, behind, into, net, names, &refused);
    if (status != STRATA_OK) /* what the file says is wrong, not what was asked for */
        return error_set(err, status == STRATA_ENOMEM ? status : STRATA_EPARSE, "%s",
                         refused.message);
    *v = (struct planner_verdict){.apart = apart, .merged = merged, .done = done};
    return why && !(v->why = duplicate(why, err)) ? STRATA_ENOMEM : STRATA_OK;
}

int planner_merges_read(struct planner_merges **out, const json_t *list,
                        const strata_network *net, strata_error *err)
{
    struct names names = {0};
    struct planner_merges *m = *out = NULL;
    const size_t n = json_array_size(list);
    int status = STRATA_OK;
    if (n == 0)
        return STRATA_OK;
    if (n > net->n_layers)
        return error_set(err, STRATA_EPARSE, "%zu merges of %zu layers", n,
                         net->n_layers);
    if (!(m = zalloc(1, sizeof *m, "the plan", err)) ||
        !(m->verdicts = zalloc(n, sizeof *m->verdicts, "the plan", err)))
        status = STRATA_ENOMEM;
    for (size_t i = 0; i < net->n_layers && status == STRATA_OK; i++)
        status = names_put(&names, net->layers[i].name, (int)i, err);
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        status = read_group(m, json_array_get(list, i), net, &names, err);
        if (status != STRATA_OK)
            error_prefix(err, "merge %zu", i);
    }
    names_free(&names);
    if (status == STRATA_OK)
        *out = m;
    else
        planner_free_merges(m);
    return status;
}

static void keep_done(struct planner_merges *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->groups.n; i++) {
        struct network_siblings g = m->groups.list[i];
        free(m->verdicts[i].why);
        m->verdicts[i].why = NULL;
        if (m->verdicts[i].done)
            m->groups.list[n++] = g;
        else
            free(g.layers);
    }
    m->groups.n = n;
}

int planner_merge_recorded(strata_network **out, const json_t *list,
                           const strata_network *net, strata_error *err)
{
    struct planner_merges *m;
    *out = NULL;
    int status = planner_merges_read(&m, list, net, err);
    if (status != STRATA_OK)
        return status;
    if (m)
        keep_done(m);
    if (m && m->groups.n > 0)
        status = network_merge(out, net, &m->groups, err);
    else
        *out = network_retain(net);
    planner_free_merges(m);
    return status;
}
