/* SPDX-License-Identifier: Apache-2.0
 *
 * An instance: a context on a stream of its own. The server enters one at a time, which
 * is a context's rule; instances run beside each other.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "serving/triton/answer.h"

/* ---- runs -------------------------------------------------------------------------- */

/* The call's message is of the first part that has its status; where no part has failed,
 * of all. */
void instance_run(struct instance *i, strata_part *parts, struct answer **of, size_t n)
{
    strata_error err;
    bool told = false, all = true;
    const int status = strata_context_run_parts(i->context, parts, n, &err);
    for (size_t k = 0; k < n; k++)
        all = all && parts[k].status == STRATA_OK;
    for (size_t k = 0; k < n && status != STRATA_OK; k++) {
        const int own = all ? status : parts[k].status;
        strata_error why = {.status = own};
        strncat(why.message, strata_status_text(own), 256);
        if (own != STRATA_OK)
            answer_fail_status(of[k], all || (own == status && !told) ? &err : &why);
        told = told || own == status;
    }
}

static bool same_dims(const struct model *m, const struct answer *a,
                      const struct answer *b)
{
    for (int k = 0; k < m->n_in; k++)
        if (memcmp(a->dims[k] + m->batched, b->dims[k] + m->batched,
                   (size_t)(m->tensors[k].rank - m->batched) * sizeof(int64_t)) != 0)
            return false;
    return true;
}

/* Of the runs with an answer. */
static int set_dims(struct instance *i, const struct answer *a, strata_error *err)
{
    const struct model *m = i->model;
    int status = STRATA_OK;
    for (int k = 0; k < m->n_in && m->varies && status == STRATA_OK; k++) {
        const struct tensor *t = &m->tensors[k];
        int64_t dims[STRATA_MAX_RANK];
        for (int d = 0; d < t->rank; d++)
            dims[t->order[d]] = a->dims[k][d];
        status = strata_context_set_shape(i->context, k, t->rank, dims, err);
    }
    return status;
}

/* Of those that wait, the first and all of its shape that fit beside it. */
static size_t take_parts(struct instance *i, struct answer *first,
                         const struct answer *end)
{
    size_t n = 0;
    int64_t rows = 0;
    for (struct answer *a = first; a < end; a++) {
        if (!a->response || a->taken || rows + a->rows > i->model->batch ||
            (i->model->varies && !same_dims(i->model, first, a)))
            continue;
        a->taken = true;
        make_outputs(i, a);
        if (!a->response)
            continue;
        rows += a->rows;
        i->of_part[n] = a;
        i->parts[n++] = part_of(a);
    }
    return n;
}

static void count_rows(const struct instance *i, size_t n)
{
    const struct model *m = i->model;
    int64_t rows = 0;
    int at = 0;
    for (size_t k = 0; k < n; k++)
        rows += i->parts[k].rows;
    while (at < m->n_batches - 1 && m->batches[at] < rows)
        at++;
    if (m->rows[at])
        forget(TRITONSERVER_MetricIncrement(m->rows[at], (double)rows));
    if (m->metrics[METRIC_PADDING] && m->batches[at] > rows)
        forget(TRITONSERVER_MetricIncrement(m->metrics[METRIC_PADDING],
                                            (double)(m->batches[at] - rows)));
}

/* A lone sequence's first step. */
static int begin_sequence(struct instance *i, const struct answer *a, strata_error *err)
{
    return i->model->has_states &&
                   sequence_flag(a->request, TRITONSERVER_REQUEST_FLAG_SEQUENCE_START)
               ? strata_context_reset_state(i->context, STRATA_ALL_ROWS, err)
               : STRATA_OK;
}

static void run_parts(struct instance *i, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        struct answer *a = &i->answers[k];
        strata_error err;
        if (!a->response || a->taken)
            continue;
        if (set_dims(i, a, &err) != STRATA_OK ||
            begin_sequence(i, a, &err) != STRATA_OK) {
            answer_fail_status(a, &err);
            continue;
        }
        const size_t parts = take_parts(i, a, i->answers + n);
        if (parts > 0) {
            instance_run(i, i->parts, i->of_part, parts);
            count_rows(i, parts);
        }
    }
}

/* ---- metrics ----------------------------------------------------------------------- */

static void count(const struct model *m, enum metric which, uint64_t more)
{
    if (m->metrics[which] && more > 0)
        forget(TRITONSERVER_MetricIncrement(m->metrics[which], (double)more));
}

static void count_copies(struct instance *i)
{
    const strata_context_stats before = i->counted;
    strata_context_stats s = {.struct_size = sizeof s};
    if (strata_context_get_stats(i->context, &s, NULL) != STRATA_OK)
        return;
    i->counted = s;
    count(i->model, METRIC_COPIED_IN, s.copied_in - before.copied_in);
    count(i->model, METRIC_COPIED_OUT, s.copied_out - before.copied_out);
    count(i->model, METRIC_CROSS_DEVICE, s.cross_device - before.cross_device);
    count(i->model, METRIC_IN_PLACE, s.in_place - before.in_place);
}

/* ---- execution --------------------------------------------------------------------- */

/* gather, run, scatter, send, report, release */
TRITONSERVER_Error *instance_execute(struct instance *i, TRITONBACKEND_Request **requests,
                                     uint32_t n)
{
    struct times t;
    if (n > i->n_answers)
        return error_text(TRITONSERVER_ERROR_INTERNAL,
                          "%s: %u requests at once; an instance takes %u", i->model->name,
                          n, i->n_answers);
    TRITONSERVER_Error *error = answers_begin(i->answers, requests, n);
    if (error)
        return error;
    t.begun = now();
    for (uint32_t k = 0; k < n; k++)
        gather(i, &i->answers[k]);
    t.computing = now();
    if (i->sequence)
        sequence_run(i, n);
    else
        run_parts(i, n);
    t.computed = now();
    senders_send(i->model->backend->senders, i->answers, n);
    count_copies(i);
    t.ended = now();
    answers_end(i, i->answers, n, &t);
    return NULL;
}

TRITONSERVER_Error *instance_ready(const struct instance *i)
{
    strata_error err;
    return strata_device_ok(i->handle, &err) == STRATA_OK ? NULL : error_of(&err);
}

/* ---- creation ---------------------------------------------------------------------- */

/* A part of zeros, which every network takes: what parts need is there before the first
 * request, and no other GPU that is lost by then keeps it from being had. Whatever is
 * wrong with it is told to the request. */
static void try_part(struct instance *i)
{
    const struct model *m = i->model;
    strata_part part = {.struct_size = sizeof part, .rows = m->batch};
    strata_memory *inputs = calloc((size_t)m->n_in + 1, sizeof *inputs);
    bool well = inputs;
    for (int k = 0; k < m->n_in && well; k++) {
        strata_binding b = {.struct_size = sizeof b};
        well = strata_context_binding(i->context, k, &b, NULL) == STRATA_OK;
        inputs[k] = (strata_memory){.data = well ? calloc(1, (size_t)b.bytes) : NULL,
                                    .bytes = well ? (uint64_t)b.bytes : 0};
        well = well && inputs[k].data;
    }
    part.inputs = inputs;
    if (well)
        strata_context_run_parts(i->context, &part, 1, NULL);
    for (int k = 0; inputs && k < m->n_in; k++)
        free(inputs[k].data);
    free(inputs);
}

/* Each plan once, so that no request is the first. */
static int prepare(struct instance *i, strata_error *err)
{
    const struct model *m = i->model;
    int status = STRATA_OK;
    if (!m->batched || m->has_states)
        return strata_context_prepare(i->context, err);
    for (int k = 0; k < m->n_batches && status == STRATA_OK; k++) {
        status = strata_context_set_batch(i->context, m->batches[k], err);
        if (status == STRATA_OK)
            status = strata_context_prepare(i->context, err);
    }
    if (status == STRATA_OK && !m->varies && i->on_gpu)
        try_part(i);
    return status;
}

static int make_room(struct instance *i, strata_error *err)
{
    int status = STRATA_OK;
    i->n_answers = i->model->batched ? (uint32_t)i->model->batch : 1;
    i->answers = calloc(i->n_answers, sizeof *i->answers);
    i->parts = calloc(i->n_answers, sizeof *i->parts);
    i->of_part = calloc(i->n_answers, sizeof *i->of_part);
    if (!i->answers || !i->parts || !i->of_part) {
        *err = (strata_error){.status = STRATA_ENOMEM,
                              .message = "out of memory for an instance"};
        return STRATA_ENOMEM;
    }
    for (uint32_t k = 0; k < i->n_answers && status == STRATA_OK; k++)
        status = answer_open(&i->answers[k], i->model, err);
    return status;
}

static int open_context(struct instance *i, strata_error *err)
{
    int status = strata_create(&i->handle, i->placed->device, err);
    if (status == STRATA_OK)
        status = strata_context_create(&i->context, i->placed->engine, i->handle, err);
    if (status == STRATA_OK)
        status = strata_context_set_turns(i->context, i->model->turns, err);
    if (status == STRATA_OK)
        status = prepare(i, err);
    if (status == STRATA_OK)
        status = make_room(i, err);
    if (status == STRATA_OK && i->model->has_states && i->model->batched &&
        i->model->batch > 1)
        status = sequence_open(i, err);
    i->counted.struct_size = sizeof i->counted;
    return status == STRATA_OK ? strata_context_get_stats(i->context, &i->counted, err)
                               : status;
}

static void report_memory(const struct instance *i)
{
    strata_memory_stats stats = {.struct_size = sizeof stats};
    if (strata_get_memory_stats(i->handle, &stats, NULL) != STRATA_OK)
        return;
    TRITONSERVER_BufferAttributes *usage =
        memory_usage(i->placed->device, stats.current_bytes);
    if (!usage)
        return;
    forget(TRITONBACKEND_ModelInstanceReportMemoryUsage(i->triton, &usage, 1));
    forget(TRITONSERVER_BufferAttributesDelete(usage));
}

static TRITONSERVER_Error *place_instance(struct instance *i)
{
    TRITONSERVER_InstanceGroupKind kind;
    struct placed *placed = NULL;
    int32_t id = 0;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceKind(i->triton, &kind);
    if (!error)
        error = TRITONBACKEND_ModelInstanceDeviceId(i->triton, &id);
    if (!error)
        error = model_engine(i->model, kind, id, &placed);
    if (error)
        return error;
    const char *number = strchr(placed->device, ':');
    i->placed = placed;
    i->on_gpu = number;
    i->device = number ? atoi(number + 1) : 0;
    return NULL;
}

TRITONSERVER_Error *instance_create(struct instance **out,
                                    TRITONBACKEND_ModelInstance *triton, struct model *m)
{
    strata_error err;
    struct instance *i = calloc(1, sizeof *i);
    if (!i)
        return error_memory("an instance");
    i->triton = triton;
    i->model = m;
    TRITONSERVER_Error *error = place_instance(i);
    if (!error && open_context(i, &err) != STRATA_OK)
        error = error_of(&err);
    if (error) {
        instance_destroy(i);
        return error;
    }
    if (i->on_gpu)
        server_log(TRITONSERVER_LOG_INFO,
                   "model '%s' version %" PRIu64 " on %s: runs are %s", m->name,
                   m->version, i->placed->device, strata_context_turns(i->context));
    report_memory(i);
    *out = i;
    return NULL;
}

void instance_destroy(struct instance *i)
{
    if (!i)
        return;
    sequence_close(i);
    for (uint32_t k = 0; i->answers && k < i->n_answers; k++)
        answer_close(&i->answers[k]);
    free(i->answers);
    free(i->parts);
    free(i->of_part);
    strata_context_destroy(i->context);
    strata_destroy(i->handle);
    free(i);
}
