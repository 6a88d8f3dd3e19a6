/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine to its file. Sections hold no time, path or address, and JSON is written with
 * sorted keys: the same engine is the same bytes. A loaded engine is written as it was
 * read.
 */
#include "engine/file/stored.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arguments.h"
#include "io/stream.h"
#include "registry/math/mode.h"
#include "planner/explain/explain.h"

/* Sections and the memory behind them. */
struct contents {
    struct engine_section sections[ENGINE_FILE_SECTIONS];
    void *owned[ENGINE_FILE_SECTIONS];
    size_t n;
};

/* Takes the memory. */
static void add(struct contents *c, const char *name, void *data, size_t size)
{
    struct engine_section *s = &c->sections[c->n];
    snprintf(s->name, sizeof s->name, "%s", name);
    s->data = data;
    s->size = size;
    c->owned[c->n++] = data;
}

/* Takes the reference. */
static int add_json(struct contents *c, const char *name, json_t *j, strata_error *err)
{
    size_t size;
    char *text = json_text(j, &size);
    json_decref(j);
    if (!text)
        return error_no_memory(err, 0, name);
    add(c, name, text, size);
    return STRATA_OK;
}

static int add_labels(struct contents *c, const strata_network *net, strata_error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = net->n_labels ? text_stream(&text, &size) : NULL;
    if (!f)
        return net->n_labels ? error_no_memory(err, 0, "labels") : STRATA_OK;
    for (size_t i = 0; i < net->n_labels; i++)
        fprintf(f, "%s\n", net->labels[i]);
    if (!text_finish(f, &text))
        return error_no_memory(err, 0, "labels");
    add(c, SECTION_LABELS, text, size);
    return STRATA_OK;
}

static json_t *device_json(const strata_engine *e)
{
    const struct device_properties *d = &e->handle->properties;
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:s}", "kind",
                     d->kind == STRATA_HOST ? "host" : "cuda", "name", d->name, "build",
                     d->build, "sm", d->sm, "threads", d->threads, "math",
                     math_name(e->execution->math));
}

/* What a run takes at each combination of listed sizes. */
static json_t *sizes_json(const strata_engine *e)
{
    const strata_network *net = e->network;
    json_t *list = json_array();
    for (size_t k = 0; k < engine_count_plans(net); k++) {
        const strata_engine *one = engine_plan(e, k);
        json_t *sizes = json_object();
        for (size_t i = 0; i < net->n_symbols; i++)
            sizes = json_put(sizes, net->symbols[i].name, json_integer(one->sizes[i]));
        list = json_add(
            list, json_pack("{s:o, s:I, s:I, s:I}", "sizes", sizes, "cost",
                            (json_int_t)execution_predicts(one->execution), "arena_bytes",
                            (json_int_t)one->execution->arena_bytes, "reformats",
                            (json_int_t)one->planner->plan->n_reformats));
    }
    return list;
}

/* Without the network's path, which says where it lay and not what it is. */
static int add_report(struct contents *c, const strata_engine *e, strata_error *err)
{
    const struct planner *p = e->planner;
    struct explain *answers = NULL;
    int status =
        explain_plan(&answers, &p->model->problem, &p->plan_options, p->plan, err);
    if (status != STRATA_OK)
        return status;
    json_t *report = explain_json(p, e->execution, answers, e->weight_bytes);
    json_object_del(json_object_get(report, "network"), "path");
    explain_free(answers);
    if (e->network->n_symbols > 0)
        report = json_put(report, "sizes", sizes_json(e));
    return add_json(c, SECTION_REPORT, report, err);
}

static int add_plan(struct contents *c, const strata_engine *e, strata_error *err)
{
    json_t *records = engine_plugin_records(e);
    json_t *plan = records ? engine_plan_json(e, records) : NULL;
    int status = add_json(c, SECTION_PLUGINS, records, err);
    if (status != STRATA_OK) {
        json_decref(plan);
        return status;
    }
    return add_json(c, SECTION_PLAN, plan, err);
}

/* Of all batches: measured or recorded costs that were at hand. */
static int add_costs(struct contents *c, const strata_engine *e, strata_error *err)
{
    struct cost_table all;
    char *text = NULL;
    size_t size = 0;
    cost_table_init(&all, e->planner->known.device);
    int status = cost_table_merge(&all, &e->planner->known, err);
    for (size_t i = 0; i < e->n_smaller && status == STRATA_OK; i++)
        status = cost_table_merge(&all, &e->smaller[i]->planner->known, err);
    if (status == STRATA_OK)
        status = cost_table_text(&text, &size, &all, err);
    if (status == STRATA_OK)
        add(c, SECTION_COSTS, text, size);
    cost_table_free(&all);
    return status;
}

static int add_texts(struct contents *c, const strata_engine *e, strata_error *err)
{
    char *text = NULL;
    size_t size = 0;
    /* Layers stand in the file as the user wrote them, the plan says which are one. */
    int status =
        network_write(&text, &size, network_loaded(e->network), e->execution->math, err);
    if (status != STRATA_OK)
        return status;
    add(c, SECTION_NETWORK, text, size);
    status = add_labels(c, e->network, err);
    return status == STRATA_OK ? add_costs(c, e, err) : status;
}

static int collect(struct contents *c, const strata_engine *e, strata_error *err)
{
    void *weights = NULL;
    size_t size = 0;
    int status;
    if ((status = add_json(c, SECTION_DEVICE, device_json(e), err)) != STRATA_OK ||
        (status = add_plan(c, e, err)) != STRATA_OK ||
        (status = add_texts(c, e, err)) != STRATA_OK ||
        (status = add_report(c, e, err)) != STRATA_OK ||
        (status = engine_write_weights(&weights, &size, network_loaded(e->network),
                                       err)) != STRATA_OK)
        return status;
    add(c, SECTION_WEIGHTS, weights, size);
    return STRATA_OK;
}

int strata_engine_save(const strata_engine *e, const char *path, strata_error *err)
{
    struct contents c = {.n = 0};
    int status = ARGUMENTS(err, {"engine", e}, {"path", path});
    if (status != STRATA_OK)
        return status;
    if (e->stored)
        return engine_file_write(path, e->stored->file.sections,
                                 e->stored->file.n_sections, strata_version(), err);
    if (network_reads(e->network, path))
        return error_set(err, STRATA_EINVAL,
                         "%s: would be replaced, but the network is made of it; name "
                         "another file for the engine",
                         path);
    status = collect(&c, e, err);
    if (status == STRATA_OK)
        status = engine_file_write(path, c.sections, c.n, strata_version(), err);
    else
        error_prefix(err, "%s", path);
    for (size_t i = 0; i < c.n; i++)
        free(c.owned[i]);
    return status;
}
