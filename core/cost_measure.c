/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of the device. What is to be measured is set up side by side, on random data,
 * and runs once to warm up; then rounds go over all of it, so that a slow moment of the
 * machine falls on everything alike, and medians are taken. Work is submitted to the
 * engine's stream between two events, on the host thus with the threads that later runs
 * have.
 */
#include "core/cost.h"

#include <stdlib.h>
#include <string.h>

#include "core/engine.h"
#include "core/progress.h"
#include "core/threads.h"

#define ROUNDS 5
#define SLOW 3          /* times the layer's best: one round is enough */
#define SHORT_NS 200000 /* below it an untimed run goes before the timed ones */
#define ENOUGH_NS 20000 /* that a round should take */
#define MOST_REPEATS 8
#define BATCH_BYTES (INT64_C(256) << 20) /* of tensors set up side by side */
#define PATTERN 4096                     /* elements of random data, repeated */

struct trial {
    const struct cost_query *query;
    const strata_engine *engine;
    struct engine_node node; /* a copy that owns what setup packs */
    struct engine_view view;
    strata_tensor *weights;
    strata_run run;
    void *state, *ctx;
    void *from, *to; /* of a conversion */
    bool set_up, opened;
    int repeats, n;
    int64_t best;           /* ns that the layer can do without this trial, 0: unknown */
    double warm;            /* ns of the run that warms up */
    double samples[ROUNDS]; /* ns */
};

/* Random elements of each dtype: in [-1, 1), small integers, and indices of 0. Weights
 * are positive, as variances must be. */
struct pattern {
    float fp32[PATTERN], weight[PATTERN];
    uint16_t fp16[PATTERN];
    int8_t small[PATTERN];
    int32_t zero[PATTERN];
};

static void make_pattern(struct pattern *p)
{
    uint64_t state = 42;
    memset(p->zero, 0, sizeof p->zero);
    for (size_t i = 0; i < PATTERN; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        float x = (float)(state >> 40) / (float)(1 << 23) - 1;
        p->fp32[i] = x;
        p->weight[i] = 0.55f + 0.45f * x;
        p->fp16[i] = half_from_float(x);
        p->small[i] = (int8_t)(state >> 57);
    }
}

static const void *pattern_of(const struct pattern *p, int dtype, bool weight)
{
    const void *const patterns[STRATA_DTYPE_COUNT] = {
        [STRATA_FP32] = weight ? p->weight : p->fp32,
        [STRATA_FP16] = p->fp16,
        [STRATA_INT8] = p->small,
        [STRATA_UINT8] = p->small,
        [STRATA_INT32] = p->zero,
    };
    return patterns[dtype];
}

/* ---- memory ---------------------------------------------------------------------------
 */

static size_t tensor_bytes(const strata_tensor *t)
{
    return (size_t)t->size * strata_dtype_size(t->dtype);
}

static int fill_memory(struct trial *t, void *data, size_t bytes, int dtype, bool weight,
                       const struct pattern *p, strata_error *err)
{
    const struct device_ops *ops = t->engine->handle->device->ops;
    strata_stream *s = t->engine->handle->stream;
    size_t chunk = PATTERN * strata_dtype_size(dtype);
    int status = STRATA_OK;
    for (size_t at = 0; at < bytes && status == STRATA_OK; at += chunk)
        status = ops->copy(s, (char *)data + at, pattern_of(p, dtype, weight),
                           bytes - at < chunk ? bytes - at : chunk, COPY_TO_DEVICE, err);
    return status;
}

static int get_memory(struct trial *t, void **out, size_t bytes, int dtype, bool weight,
                      const struct pattern *p, strata_error *err)
{
    *out = allocator_get(&t->engine->handle->allocator, bytes, "a measurement", err);
    return *out ? fill_memory(t, *out, bytes, dtype, weight, p, err) : STRATA_ENOMEM;
}

static int get_tensors(struct trial *t, strata_tensor *tensors, int n, bool weight,
                       const struct pattern *p, strata_error *err)
{
    int status = STRATA_OK;
    for (int i = 0; i < n && status == STRATA_OK; i++)
        if (tensors[i].rank > 0 || !weight)
            status = get_memory(t, &tensors[i].data, tensor_bytes(&tensors[i]),
                                tensors[i].dtype, weight, p, err);
    return status;
}

static void put_tensors(struct trial *t, strata_tensor *tensors, int n)
{
    for (int i = 0; tensors && i < n; i++) {
        allocator_put(&t->engine->handle->allocator, tensors[i].data,
                      tensor_bytes(&tensors[i]));
        tensors[i].data = NULL;
    }
}

/* ---- a trial ------------------------------------------------------------------- */

static void close_trial(struct trial *t)
{
    struct allocator *memory = &t->engine->handle->allocator;
    const struct cost_query *q = t->query;
    if (!q->candidate) {
        allocator_put(memory, t->from, (size_t)strata_desc_bytes(&q->from));
        allocator_put(memory, t->to, (size_t)strata_desc_bytes(&q->to));
        return;
    }
    const strata_impl *impl = &q->candidate->impl->impl;
    if (t->opened && impl->ctx_close)
        impl->ctx_close(t->ctx);
    if (t->set_up && impl->teardown)
        impl->teardown(t->state);
    for (size_t i = 0; i < t->node.n_packs; i++)
        allocator_put(memory, t->node.packs[i].ptr, t->node.packs[i].bytes);
    put_tensors(t, q->in, t->node.n_in);
    put_tensors(t, q->out, t->node.n_out);
    put_tensors(t, t->weights, t->run.n_weights);
    if (t->view.epilogue.flags & STRATA_EPILOGUE_RESIDUAL)
        put_tensors(t, &t->view.residual, 1);
    allocator_put(memory, t->run.workspace, t->run.workspace_size);
    free(t->node.packs);
    free(t->weights);
    free(t->state);
    free(t->ctx);
}

static int fail_trial(const struct trial *t, int status, const char *phase,
                      strata_error *err)
{
    if (status == STRATA_OK)
        return status;
    error_set(err, status, "%s", strata_status_text(status));
    if (t->query->candidate)
        error_prefix(err, "layer '%s', impl %s, %s for a measurement", t->query->layer,
                     t->query->candidate->impl->impl.name, phase);
    return status;
}

static int setup_on_stream(void *payload, void *stream, strata_error *err)
{
    struct trial *t = *(struct trial **)payload;
    const strata_impl *impl = &t->query->candidate->impl->impl;
    threads_set(t->engine->threads);
    t->view.node.stream = stream;
    t->view.node.err = err;
    int status = impl->setup ? impl->setup(&t->view.node, t->state) : STRATA_OK;
    t->set_up = status == STRATA_OK;
    if (status == STRATA_OK && impl->ctx_open)
        status = impl->ctx_open(&t->view.node, t->state, t->ctx);
    t->opened = t->set_up && status == STRATA_OK;
    return fail_trial(t, status, "setup", err);
}

static int prepare_run(struct trial *t, const struct pattern *p, uint64_t *packed,
                       strata_error *err)
{
    const struct engine_candidate *c = t->query->candidate;
    const strata_impl *impl = &c->impl->impl;
    const strata_engine *e = t->engine;
    int n_weights = (int)t->node.layer->type->n_weights;
    t->weights = zalloc((size_t)n_weights, sizeof *t->weights, "a measurement", err);
    t->state = zalloc(1, impl->state_size, "an impl's state", err);
    t->ctx = zalloc(1, impl->ctx_size, "an impl's context", err);
    if (!t->weights || !t->state || !t->ctx)
        return STRATA_ENOMEM;
    memcpy(t->weights, t->query->weights, (size_t)n_weights * sizeof *t->weights);
    t->run = (strata_run){.struct_size = sizeof(strata_run),
                          .n_in = t->node.n_in,
                          .n_out = t->node.n_out,
                          .n_weights = n_weights,
                          .state = t->state,
                          .ctx = t->ctx,
                          .in = t->query->in,
                          .out = t->query->out,
                          .weight = t->weights,
                          .epilogue = &t->view.epilogue,
                          .host = registry_host()};
    for (int i = 0; i < n_weights; i++)
        t->weights[i].data = NULL;
    t->view = (struct engine_view){.in = t->query->in,
                                   .out = t->query->out,
                                   .weight = t->weights,
                                   .fused = c->fused,
                                   .allocator = &e->handle->allocator,
                                   .packed = packed};
    if (t->node.n_out > 0)
        t->view.residual = t->query->out[0]; /* of its shape and format */
    engine_fill_view(&t->view, e, &t->node, c->row, err);
    t->run.params = t->view.node.params;
    int status = STRATA_OK;
    if (t->view.epilogue.flags & STRATA_EPILOGUE_RESIDUAL)
        status = get_tensors(t, &t->view.residual, 1, false, p, err);
    if (status == STRATA_OK)
        status = get_tensors(t, t->query->in, t->node.n_in, false, p, err);
    if (status == STRATA_OK)
        status = get_tensors(t, t->query->out, t->node.n_out, false, p, err);
    if (status == STRATA_OK)
        status = get_tensors(t, t->weights, n_weights, true, p, err);
    if (status != STRATA_OK || c->workspace == 0)
        return status;
    t->run.workspace =
        allocator_get(&e->handle->allocator, c->workspace, "a workspace", err);
    t->run.workspace_size = t->run.workspace ? c->workspace : 0;
    return t->run.workspace ? STRATA_OK : STRATA_ENOMEM;
}

static int open_trial(struct trial *t, const struct pattern *p, uint64_t *packed,
                      strata_error *err)
{
    const struct cost_query *q = t->query;
    const struct device_ops *ops = t->engine->handle->device->ops;
    strata_stream *s = t->engine->handle->stream;
    int status;
    if (!q->candidate) {
        status = get_memory(t, &t->from, (size_t)strata_desc_bytes(&q->from),
                            q->from.dtype, false, p, err);
        return status != STRATA_OK
                   ? status
                   : get_memory(t, &t->to, (size_t)strata_desc_bytes(&q->to), q->to.dtype,
                                false, p, err);
    }
    t->node = t->engine->nodes[q->candidate->node];
    t->node.packs = NULL;
    t->node.n_packs = t->node.packs_capacity = 0;
    status = prepare_run(t, p, packed, err);
    if (status == STRATA_OK)
        status = ops->submit(s, setup_on_stream, &t, sizeof t, err);
    if (status == STRATA_OK)
        status = ops->stream_synchronize(s, err);
    return status;
}

/* ---- timing -------------------------------------------------------------------- */

struct run_payload {
    struct trial *trial;
    int repeats;
};

static int run_on_stream(void *payload, void *stream, strata_error *err)
{
    const struct run_payload *p = payload;
    struct trial *t = p->trial;
    const strata_impl *impl = &t->query->candidate->impl->impl;
    int status = STRATA_OK;
    threads_set(t->engine->threads);
    t->run.stream = stream;
    t->run.err = err;
    for (int i = 0; i < p->repeats && status == STRATA_OK; i++)
        status = impl->run(&t->run);
    return fail_trial(t, status, "run", err);
}

static int enqueue(struct trial *t, int repeats, strata_error *err)
{
    const struct device_ops *ops = t->engine->handle->device->ops;
    strata_stream *s = t->engine->handle->stream;
    struct run_payload p = {t, repeats};
    int status = STRATA_OK;
    if (t->query->candidate)
        return ops->submit(s, run_on_stream, &p, sizeof p, err);
    for (int i = 0; i < repeats && status == STRATA_OK; i++)
        status = ops->reformat(s, &t->query->to, t->to, &t->query->from, t->from, err);
    return status;
}

/* ns of one run. A short one follows an untimed one: while that runs, the rest is put on
 * the stream, so that no gap lies between the events. */
static int time_trial(struct trial *t, strata_event *const events[2], double *ns,
                      strata_error *err)
{
    const struct device_ops *ops = t->engine->handle->device->ops;
    strata_stream *s = t->engine->handle->stream;
    bool brief = t->repeats && t->warm < SHORT_NS;
    double ms = 0;
    int status = brief ? enqueue(t, 1, err) : STRATA_OK;
    int repeats = t->repeats ? t->repeats : 1; /* 0: to warm up */
    if (status == STRATA_OK)
        status = ops->event_record(events[0], s, err);
    if (status == STRATA_OK)
        status = enqueue(t, repeats, err);
    if (status == STRATA_OK)
        status = ops->event_record(events[1], s, err);
    if (status == STRATA_OK)
        status = ops->stream_synchronize(s, err);
    if (status == STRATA_OK)
        status = ops->event_elapsed(&ms, events[0], events[1], err);
    *ns = ms * 1e6 / repeats;
    return status;
}

static bool empty(const struct trial *t)
{
    for (int i = 0; t->query->candidate && i < t->run.n_out; i++)
        if (t->run.out[i].count > 0)
            return false;
    return t->query->candidate != NULL;
}

/* Best of the trial's layer, in this batch or before, without the trial itself. */
static double rival(const struct trial *trials, size_t n, size_t index)
{
    const struct engine_candidate *c = trials[index].query->candidate;
    double best = (double)trials[index].best;
    for (size_t i = 0; c && i < n; i++) {
        const struct trial *t = &trials[i];
        if (i != index && t->n && t->query->candidate &&
            t->query->candidate->node == c->node && (best == 0 || t->samples[0] < best))
            best = t->samples[0];
    }
    return best;
}

static int warm_up(struct trial *t, strata_event *const events[2], strata_error *err)
{
    int status = time_trial(t, events, &t->warm, err);
    double repeats = t->warm > 0 ? ENOUGH_NS / t->warm : MOST_REPEATS;
    t->repeats = repeats < 1 ? 1 : repeats > MOST_REPEATS ? MOST_REPEATS : (int)repeats;
    return status;
}

static void report(struct progress *p, const struct trial *trials, size_t n, int round,
                   size_t index)
{
    const struct cost_query *q = trials[index].query;
    struct progress_state s = {.layer = q->layer,
                               .impl = q->candidate ? q->candidate->impl->impl.name
                                                    : "(reformat)",
                               .best_us = rival(trials, n, index) / 1e3,
                               .index = (size_t)round * n + index,
                               .count = (ROUNDS + 1) * n};
    progress_show(p, &s);
}

static int time_trials(struct trial *trials, size_t n, strata_event *const events[2],
                       strata_error *err)
{
    struct progress progress;
    int status = STRATA_OK;
    progress_begin(&progress);
    for (int round = 0; round <= ROUNDS; round++) /* round 0 warms up */
        for (size_t i = 0; i < n && status == STRATA_OK && !progress_interrupted(); i++) {
            struct trial *t = &trials[i];
            double best = rival(trials, n, i);
            if (empty(t) || (t->n && best > 0 && t->samples[0] > SLOW * best))
                continue;
            report(&progress, trials, n, round, i);
            if (round == 0)
                status = warm_up(t, events, err);
            else if ((status = time_trial(t, events, &t->samples[t->n], err)) ==
                     STRATA_OK)
                t->n++;
        }
    progress_end(&progress);
    return status;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct cost summarise(struct trial *t)
{
    if (empty(t))
        return (struct cost){.ns = 1, .runs = 1};
    if (t->n == 0)
        return (struct cost){0};
    qsort(t->samples, (size_t)t->n, sizeof *t->samples, ascending);
    double middle = t->samples[t->n / 2];
    double spread = t->samples[t->n * 3 / 4] - t->samples[t->n / 4];
    int64_t ns = middle < 1 ? 1 : (int64_t)(middle + 0.5);
    return (struct cost){.ns = ns < COST_NS_MAX ? ns : COST_NS_MAX,
                         .spread = (int64_t)(spread < COST_NS_MAX ? spread : 0),
                         .runs = t->n};
}

/* ---- the source ---------------------------------------------------------------- */

static int64_t query_bytes(const strata_engine *e, const struct cost_query *q)
{
    int64_t bytes = 0;
    if (!q->candidate)
        return strata_desc_bytes(&q->from) + strata_desc_bytes(&q->to);
    const struct engine_node *n = &e->nodes[q->candidate->node];
    for (int i = 0; i < n->n_in; i++)
        bytes += (int64_t)tensor_bytes(&q->in[i]);
    for (int i = 0; i < n->n_out; i++)
        bytes += (int64_t)tensor_bytes(&q->out[i]);
    for (size_t w = 0; w < n->layer->type->n_weights; w++)
        bytes += 2 * (int64_t)tensor_bytes(&q->weights[w]); /* and its packed copy */
    return bytes + (int64_t)q->candidate->workspace;
}

static int measure_batch(strata_engine *e, const struct cost_query *const *queries,
                         const int64_t *best, size_t n, const struct pattern *p,
                         struct cost *costs, strata_error *err)
{
    const struct device_ops *ops = e->handle->device->ops;
    strata_event *events[2] = {NULL, NULL};
    uint64_t packed = 0;
    size_t opened = 0;
    int status = STRATA_ENOMEM;
    struct trial *trials = zalloc(n, sizeof *trials, "measurements", err);
    if (!trials)
        return status;
    status = STRATA_OK;
    for (int i = 0; i < 2 && status == STRATA_OK; i++)
        status = ops->event_create(e->handle->device, &events[i], err);
    for (; opened < n && status == STRATA_OK; opened++) {
        struct trial *t = &trials[opened];
        *t = (struct trial){.query = queries[opened], .engine = e, .best = best[opened]};
        status = open_trial(t, p, &packed, err);
    }
    if (status == STRATA_OK)
        status = ops->stream_synchronize(e->handle->stream, err);
    if (status == STRATA_OK)
        status = time_trials(trials, n, events, err);
    ops->stream_synchronize(e->handle->stream, NULL); /* nothing runs on what goes */
    for (size_t i = 0; i < opened; i++) {
        costs[i] = summarise(&trials[i]);
        close_trial(&trials[i]);
    }
    for (int i = 0; i < 2; i++)
        if (events[i])
            ops->event_destroy(events[i]);
    free(trials);
    return status;
}

static int measure(struct cost_source *s, const struct cost_query *const *queries,
                   const int64_t *best, size_t n, struct cost *costs, strata_error *err)
{
    strata_engine *e = ((struct cost_device *)s)->engine;
    struct pattern *pattern = zalloc(1, sizeof *pattern, "random data", err);
    int status = pattern ? STRATA_OK : STRATA_ENOMEM;
    if (pattern)
        make_pattern(pattern);
    for (size_t first = 0, last; first < n && status == STRATA_OK; first = last) {
        int64_t bytes = 0;
        for (last = first; last < n && (last == first || bytes < BATCH_BYTES); last++)
            bytes += query_bytes(e, queries[last]);
        if (progress_interrupted() || (s->deadline > 0 && progress_now() > s->deadline))
            break;
        status = measure_batch(e, queries + first, best + first, last - first, pattern,
                               costs + first, err);
    }
    free(pattern);
    return status;
}

void cost_device_init(struct cost_device *d, strata_engine *e)
{
    *d =
        (struct cost_device){{.name = "device", .measure = measure, .confirms = true}, e};
}
