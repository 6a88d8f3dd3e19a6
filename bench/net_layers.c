/* SPDX-License-Identifier: Apache-2.0
 *
 * Each step of a run between two events, in the order and with the caches of a run; the
 * median of some runs. Events between kernels take about a microsecond each, so that the
 * sum is above the time of a run. The floor of a step is the longer of its bytes at the
 * memory's bandwidth and its operations at the peak of the device, launch left out.
 */
#include "bench/net_layers.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/context.h"

enum { ROUNDS = 21 };

struct row {
    const char *name, *impl;
    char formats[64];
    double us[ROUNDS], median, bytes, operations, floor_us;
};

static double tensors_bytes(const strata_tensor *t, int n)
{
    double bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += (double)t[i].size * (double)strata_dtype_size(t[i].dtype);
    return bytes;
}

static double operations(const strata_context *c, int index)
{
    const struct context_node *at = &c->nodes[index];
    const struct engine_node *n = &c->engine->nodes[index];
    const strata_layer *layer = &n->layer->type->layer;
    struct engine_view v = {
        .in = at->in, .out = at->out, .weight = n->weights, .fused = n->n_fused};
    double count = 0;
    engine_fill_view(&v, c->engine, n, n->row, NULL);
    if (layer->flops)
        return layer->flops(&v.node);
    for (int i = 0; i < n->n_out; i++)
        count += (double)at->out[i].count;
    return count;
}

static void describe_run(struct row *r, const strata_context *c, int index)
{
    const struct engine_node *n = &c->engine->nodes[index];
    const strata_tensor *in = c->nodes[index].in, *out = c->nodes[index].out;
    const int dtype = n->n_out ? out[0].dtype : STRATA_FP32;
    const struct device_properties *d = &c->handle->properties;
    r->name = n->name;
    r->impl = n->impl->impl.name;
    snprintf(r->formats, sizeof r->formats, "%s > %s",
             n->n_in ? format_mask_name(in[0].format, in[0].rank) : "-",
             n->n_out ? format_mask_name(out[0].format, out[0].rank) : "-");
    r->bytes = tensors_bytes(in, n->n_in) + tensors_bytes(out, n->n_out);
    for (int w = 0; w < c->nodes[index].run.n_weights; w++) /* as the impl reads them */
        if (n->weights[w].rank > 0)
            r->bytes += (double)n->weights[w].size * (double)strata_dtype_size(dtype);
    if (n->residual_value >= 0)
        r->bytes += (double)c->engine->values[n->residual_value].bytes;
    r->operations = operations(c, index);
    r->floor_us = 1e6 * r->operations / d->flops[dtype];
}

static void describe(struct row *r, const strata_context *c, const struct engine_step *s)
{
    const struct engine_value *values = c->engine->values;
    if (s->kind == STEP_RUN) {
        describe_run(r, c, s->node);
    } else {
        const struct engine_value *from = &values[s->from], *to = &values[s->to];
        r->name = c->engine->network->tensors[to->tensor].name;
        r->impl = "(reformat)";
        r->bytes = (double)from->bytes + (double)to->bytes;
        snprintf(r->formats, sizeof r->formats, "%s > %s",
                 format_mask_name(UINT64_C(1) << from->format, from->desc.rank),
                 format_mask_name(UINT64_C(1) << to->format, to->desc.rank));
    }
    const double memory_us = 1e6 * r->bytes / c->handle->properties.bandwidth;
    r->floor_us = memory_us > r->floor_us ? memory_us : r->floor_us;
}

static int time_round(strata_context *c, strata_event **events, struct row *rows,
                      int round, strata_error *err)
{
    const strata_engine *e = c->engine;
    double ms = 0;
    int status = context_begin(c, err);
    if (status == STRATA_OK)
        status = strata_event_record(events[0], c->stream, err);
    for (size_t s = 0; s < e->n_steps && status == STRATA_OK; s++) {
        status = context_enqueue_steps(c, s, s + 1, NULL, err);
        if (status == STRATA_OK)
            status = strata_event_record(events[s + 1], c->stream, err);
    }
    if (status == STRATA_OK)
        status = context_settle(c, err);
    for (size_t s = 0; s < e->n_steps && status == STRATA_OK; s++) {
        status = strata_event_elapsed(&ms, events[s], events[s + 1], err);
        rows[s].us[round] = ms * 1e3;
    }
    return status;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int slowest_first(const void *a, const void *b)
{
    double x = ((const struct row *)a)->median, y = ((const struct row *)b)->median;
    return (x < y) - (x > y);
}

static void print_rows(struct row *rows, size_t n)
{
    double sum = 0, floors = 0;
    for (size_t i = 0; i < n; i++) {
        qsort(rows[i].us, ROUNDS, sizeof *rows[i].us, by_value);
        rows[i].median = rows[i].us[ROUNDS / 2];
        sum += rows[i].median;
        floors += rows[i].floor_us;
    }
    qsort(rows, n, sizeof *rows, slowest_first);
    fprintf(stderr, "# %9s %6s %9s %6s %9s %9s  %-14s %-27s %s\n", "us", "share",
            "floor us", "floor%", "MB", "GFLOP", "impl", "formats", "layer");
    for (size_t i = 0; i < n; i++) {
        const struct row *r = &rows[i];
        if (r->impl)
            fprintf(stderr, "# %9.2f %5.1f%% %9.2f %5.0f%% %9.3f %9.3f  %-14s %-27s %s\n",
                    r->median, 100 * r->median / sum, r->floor_us,
                    100 * r->floor_us / r->median, r->bytes * 1e-6, r->operations * 1e-9,
                    r->impl, r->formats, r->name);
    }
    fprintf(stderr, "# %9.2f 100.0%% %9.2f %5.0f%%  of all\n", sum, floors,
            100 * floors / sum);
}

int net_layers_print(strata_context *c, strata_error *err)
{
    const strata_engine *e = c->engine;
    struct row *rows = calloc(e->n_steps + 1, sizeof *rows);
    strata_event **events = calloc(e->n_steps + 1, sizeof *events);
    int status = rows && events ? STRATA_OK : STRATA_ENOMEM;
    for (size_t s = 0; s <= e->n_steps && status == STRATA_OK; s++)
        status = strata_event_create(&events[s], c->handle, err);
    for (size_t s = 0; s < e->n_steps && status == STRATA_OK; s++)
        if (e->steps[s].kind != STEP_RELABEL)
            describe(&rows[s], c, &e->steps[s]);
    for (int round = 0; round < ROUNDS && status == STRATA_OK; round++)
        status = time_round(c, events, rows, round, err);
    if (status == STRATA_OK)
        print_rows(rows, e->n_steps);
    for (size_t s = 0; events && s <= e->n_steps; s++)
        strata_event_destroy(events[s]);
    free(events);
    free(rows);
    return status;
}
