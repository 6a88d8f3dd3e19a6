/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks run on data.
 */
#include "calibrate/probe.h"

int samples_step(const struct samples *s, const char *what, size_t i, size_t n,
                 strata_error *err)
{
    return !s->step || s->step(s->of, what, i, n)
               ? STRATA_OK
               : error_set(err, STRATA_EBUSY, "interrupted, %s: %zu of %zu", what, i, n);
}

void probe_set_options(strata_network *net)
{
    net->build.fusion = false;
    net->build.precision = PRECISION_FP32;
    net->build.costs.kind = COSTS_ANALYTIC;
}

int probe_open(struct probe *t, strata_handle *handle, strata_network *net,
               strata_error *err)
{
    *t = (struct probe){.network = network_retain(net)};
    probe_set_options(t->network);
    int status = strata_engine_build(&t->engine, handle, t->network, err);
    return status == STRATA_OK
               ? strata_context_create(&t->context, t->engine, handle, err)
               : status;
}

int probe_open_quantised(struct probe *t, strata_handle *handle,
                         const struct quantising *q, strata_error *err)
{
    static const struct quantised_names in_memory = {NULL, NULL};
    struct quantised made = {.text = NULL};
    strata_network *net = NULL;
    *t = (struct probe){.network = NULL};
    int status = quantised_make(&made, q, &in_memory, err);
    if (status == STRATA_OK) {
        const struct network_memory memory = {.text = made.text,
                                              .text_size = made.text_size,
                                              .weights = made.weights,
                                              .weights_size = made.weights_size};
        status = network_parse(&net, &memory, "the quantised network", q->registry, err);
    }
    if (status == STRATA_OK) {
        net->build = q->scheme->net->build;
        net->build.costs = (struct cost_options){.kind = COSTS_ANALYTIC};
        status = probe_open(t, handle, net, err);
    }
    strata_network_destroy(net); /* the probe's reference stays */
    t->made = made;
    return status;
}

/* Engines read weights where they are: those last as long. */
void probe_close(struct probe *t)
{
    strata_context_destroy(t->context);
    strata_engine_destroy(t->engine);
    strata_network_destroy(t->network);
    quantised_free(&t->made);
    *t = (struct probe){.network = NULL};
}
