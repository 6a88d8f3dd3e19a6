/* SPDX-License-Identifier: Apache-2.0
 *
 * The plans of an engine file: the record of the whole, and one for each other
 * combination of listed sizes. Records name modules by their place in section `plugins`.
 */
#include "engine/file/stored.h"

#include "planner/merge/merge.h"
#include "planner/mixed/mixed.h"

#include <stdlib.h>

int engine_section_json(json_t **out, const struct engine_file *f, const char *name,
                        strata_error *err)
{
    const struct engine_section *s = engine_file_find(f, name);
    json_error_t wrong;
    *out = NULL;
    if (!s)
        return error_set(err, STRATA_EPARSE, "there is no section '%s'", name);
    *out = json_loadb(s->data, s->size, JSON_REJECT_DUPLICATES, &wrong);
    if (*out)
        return STRATA_OK;
    return error_set(err, STRATA_EPARSE, "section '%s', line %d, column %d: %s", name,
                     wrong.line, wrong.column, wrong.text);
}

/* ---- writing --------------------------------------------------------------------- */

static int number_of(const void *list, const struct module *m)
{
    return engine_plugin_index(list, m);
}

static json_t *smaller_json(const strata_engine *e, const json_t *plugins)
{
    json_t *list = json_array();
    for (size_t i = 0; i < e->n_smaller; i++)
        list = json_add(list, engine_plan_json(e->smaller[i], plugins));
    return list;
}

json_t *engine_plan_json(const strata_engine *e, const json_t *plugins)
{
    const struct record_modules modules = {.list = plugins, .number = number_of};
    return json_put(record_json(e->planner, e->execution, &modules), "smaller",
                    smaller_json(e, plugins));
}

/* ---- reading --------------------------------------------------------------------- */

struct plugins {
    const struct engine_plugin *list;
    size_t n;
};

static const struct module *module_at(const void *list, int64_t number)
{
    const struct plugins *p = list;
    return number >= 0 && (uint64_t)number < p->n ? p->list[number].module : NULL;
}

/* Plans for the other sizes are as the first, without such plans of their own. */
static int read_smaller(struct engine_stored *s, const json_t *list,
                        const strata_network *net, const struct record_modules *modules,
                        strata_error *err)
{
    const size_t n = json_array_size(list), needed = engine_count_plans(net) - 1;
    int status = STRATA_OK;
    if (n != needed)
        return error_set(err, STRATA_EPARSE,
                         "%zu plans for smaller sizes, the network has %zu", n, needed);
    if (!(s->smaller = zalloc(n, sizeof(*s->smaller), "the plan", err)))
        return STRATA_ENOMEM;
    for (; s->n_smaller < n && status == STRATA_OK; s->n_smaller++) {
        status = record_read(&s->smaller[s->n_smaller],
                             json_array_get(list, s->n_smaller), net, modules, err);
        if (status != STRATA_OK)
            error_prefix(err, "smaller plan %zu", s->n_smaller);
    }
    return status;
}

/* The network of a file's text becomes the one that its plan is of. */
static int make_network(strata_network **net, const json_t *plan, strata_error *err)
{
    strata_network *mixed, *merged;
    int status =
        planner_mix_recorded(&mixed, json_object_get(plan, "quantised"), *net, err);
    if (status != STRATA_OK)
        return status;
    status = planner_merge_recorded(&merged, json_object_get(plan, "merges"), mixed, err);
    strata_network_destroy(mixed);
    if (status != STRATA_OK)
        return status;
    strata_network_destroy(*net);
    *net = merged;
    return STRATA_OK;
}

int engine_read_plan(struct engine_stored *s, strata_network **net,
                     const struct engine_plugin *plugins, size_t n_plugins,
                     strata_error *err)
{
    const struct plugins list = {plugins, n_plugins};
    const struct record_modules modules = {.list = &list, .at = module_at};
    json_t *plan = NULL;
    int status = engine_section_json(&plan, &s->file, SECTION_PLAN, err);
    if (status != STRATA_OK)
        return status;
    status = make_network(net, plan, err);
    if (status == STRATA_OK)
        status = record_read(&s->record, plan, *net, &modules, err);
    if (status == STRATA_OK)
        status = read_smaller(s, json_object_get(plan, "smaller"), *net, &modules, err);
    json_decref(plan); /* records have their own references */
    if (status != STRATA_OK)
        error_prefix(err, "section '" SECTION_PLAN "'");
    return status;
}

void engine_stored_free(struct engine_stored *s)
{
    if (!s)
        return;
    record_free(s->record);
    for (size_t i = 0; i < s->n_smaller; i++)
        record_free(s->smaller[i]);
    free(s->smaller);
    engine_file_close(&s->file);
    free(s);
}
