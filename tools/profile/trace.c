/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace in the JSON that Perfetto and Chrome read: the host's calls on one track, each
 * stream's copies and layers on its own, memory as counters. All times are the host's,
 * in us; a stream's are placed by an event that was waited for with an eye on the clock.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/context/context.h"
#include "io/file.h"
#include "tools/profile/profile.h"
#include "tools/run/run.h"

enum { HOST = 1, DEVICE = 2 }; /* processes of the trace */
enum { BEGUN, COPIED_IN, COMPUTED, COPIED_OUT, MARKS };

struct trace {
    json_t *events;
    uint64_t allocated;   /* bytes of all lanes */
    pthread_mutex_t lock; /* guards both: memory is watched from any thread */
    double zero;          /* us on the host's clock */
};

struct lane {
    struct trace *trace;
    size_t number;
    strata_handle *handle;
    strata_context *context;
    strata_event *base, *marks[MARKS];
    double base_us; /* when base was passed */
    void **host;    /* of the bindings */
    double run_us;  /* begin of the run that is told, on the trace's clock */
    json_t *steps;  /* told so far, placed once the run's begin is known */
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* ---- events of the trace ------------------------------------------------------------
 */

static void put(struct trace *t, json_t *event)
{
    pthread_mutex_lock(&t->lock);
    json_array_append_new(t->events, event);
    pthread_mutex_unlock(&t->lock);
}

static void put_slice(struct trace *t, int process, size_t track, const char *name,
                      double begin, double took, json_t *args)
{
    put(t, json_pack("{s:s, s:s, s:i, s:I, s:f, s:f, s:o*}", "ph", "X", "name", name,
                     "pid", process, "tid", (json_int_t)track, "ts", begin, "dur", took,
                     "args", args));
}

static void put_counter(struct trace *t, const char *name, double when, double bytes)
{
    put(t, json_pack("{s:s, s:s, s:i, s:f, s:{s:f}}", "ph", "C", "name", name, "pid",
                     DEVICE, "ts", when, "args", "bytes", bytes));
}

static void put_name(struct trace *t, const char *what, int process, size_t track,
                     const char *name)
{
    put(t, json_pack("{s:s, s:s, s:i, s:I, s:{s:s}}", "ph", "M", "name", what, "pid",
                     process, "tid", (json_int_t)track, "args", "name", name));
}

/* An arrow from the call to the run; `end` is 'f' at its head. */
static void put_flow(struct trace *t, const char *phase, int process, size_t track,
                     double when, size_t id)
{
    json_t *event = json_pack("{s:s, s:s, s:s, s:i, s:I, s:f, s:I}", "ph", phase, "name",
                              "run", "cat", "enqueue", "pid", process, "tid",
                              (json_int_t)track, "ts", when, "id", (json_int_t)id);
    if (*phase == 'f')
        json_object_set_new(event, "bp", json_string("e"));
    put(t, event);
}

static void note_memory(void *user, const strata_memory_event *e)
{
    struct trace *t = user;
    pthread_mutex_lock(&t->lock);
    t->allocated += e->what ? e->bytes : -e->bytes;
    const double bytes = (double)t->allocated;
    pthread_mutex_unlock(&t->lock);
    put_counter(t, "allocated", now_us() - t->zero, bytes);
}

/* ---- lanes --------------------------------------------------------------------------
 */

static json_t *step_args(const strata_step *s)
{
    json_t *args =
        json_pack("{s:s, s:s, s:f, s:f, s:f}", "reads", s->from, "writes", s->to, "bytes",
                  s->bytes, "operations", s->operations, "floor us", s->floor_us);
    if (s->kind == STRATA_STEP_RUN) {
        json_object_set_new(args, "layer", json_string(s->layer));
        json_object_set_new(args, "impl", json_string(s->impl));
        json_object_set_new(args, "module", json_string(s->module));
    }
    return args;
}

static void note_step(void *user, const strata_engine *e, int step, double begin,
                      double took)
{
    struct lane *l = user;
    (void)e;
    json_array_append_new(l->steps, json_pack("[i, f, f]", step, begin, took));
}

static int open_host_memory(struct lane *l, const strata_engine *e, strata_error *err)
{
    const struct execution *x = e->execution;
    int status = STRATA_OK;
    l->host = zalloc(x->n_bindings, sizeof *l->host, "host memory", err);
    for (size_t i = 0; l->host && i < x->n_bindings && status == STRATA_OK; i++) {
        const size_t bytes = (size_t)x->values[x->bindings[i].value].bytes;
        l->host[i] = strata_host_alloc(l->handle, bytes, err);
        status = l->host[i] ? STRATA_OK : STRATA_ENOMEM;
        if (status == STRATA_OK && i < x->n_inputs)
            status = run_read_input(l->context, e, (int)i, "random:1", 0, err);
        if (status == STRATA_OK && i < x->n_inputs)
            status = strata_copy_out(l->context, (int)i, l->host[i], err);
    }
    return l->host ? status : STRATA_ENOMEM;
}

static int open_lane(struct lane *l, const strata_engine *e, const struct tool_options *o,
                     const char *device, strata_error *err)
{
    const strata_profiler profiler = {
        .struct_size = sizeof profiler, .step = note_step, .user = l};
    char name[32];
    l->steps = json_array();
    snprintf(name, sizeof name, "stream %zu", l->number);
    put_name(l->trace, "thread_name", DEVICE, l->number, name);
    int status = strata_create(&l->handle, device, err);
    if (status == STRATA_OK)
        strata_set_memory_observer(l->handle, note_memory, l->trace);
    if (status == STRATA_OK)
        status = strata_context_create(&l->context, e, l->handle, err);
    if (status == STRATA_OK)
        l->context->starts_over = true;
    if (status == STRATA_OK)
        status = run_set_sizes(l->context, o, err);
    if (status == STRATA_OK)
        status = open_host_memory(l, e, err);
    if (status == STRATA_OK)
        status = strata_context_use_graph(l->context, 0, err);
    if (status == STRATA_OK)
        status = strata_context_prepare(l->context, err);
    if (status == STRATA_OK)
        status = strata_context_set_profiler(l->context, &profiler, err);
    for (int m = 0; m < MARKS && status == STRATA_OK; m++)
        status = strata_event_create(&l->marks[m], l->handle, err);
    return status == STRATA_OK ? strata_event_create(&l->base, l->handle, err) : status;
}

static void close_lane(struct lane *l, const strata_engine *e)
{
    const struct execution *x = e->execution;
    if (l->handle) /* what is under way uses what goes */
        strata_stream_synchronize(strata_get_stream(l->handle), NULL);
    for (size_t i = 0; l->host && i < x->n_bindings; i++)
        strata_host_free(l->handle, l->host[i],
                         (size_t)x->values[x->bindings[i].value].bytes);
    free(l->host);
    strata_context_destroy(l->context);
    for (int m = 0; m < MARKS; m++)
        strata_event_destroy(l->marks[m]);
    strata_event_destroy(l->base);
    if (l->handle)
        strata_set_memory_observer(l->handle, NULL, NULL);
    strata_destroy(l->handle);
    json_decref(l->steps);
}

/* Where the stream's clock stands on the host's. */
static int set_base(struct lane *l, strata_error *err)
{
    strata_stream *stream = strata_get_stream(l->handle);
    int status = strata_event_record(l->base, stream, err);
    if (status == STRATA_OK)
        status = strata_event_synchronize(l->base, err);
    l->base_us = now_us() - l->trace->zero;
    return status;
}

/* ---- runs ---------------------------------------------------------------------------
 */

static int mark(struct lane *l, int which, strata_error *err)
{
    return strata_event_record(l->marks[which], strata_get_stream(l->handle), err);
}

static int copy_all(struct lane *l, bool in, strata_error *err)
{
    const strata_engine *e = l->context->engine;
    int status = STRATA_OK;
    for (size_t i = in ? 0 : e->execution->n_inputs;
         i < (in ? e->execution->n_inputs : e->execution->n_bindings) &&
         status == STRATA_OK;
         i++)
        status = in ? strata_enqueue_copy_in(l->context, (int)i, l->host[i], err)
                    : strata_enqueue_copy_out(l->context, (int)i, l->host[i], err);
    return status;
}

static int enqueue(struct lane *l, size_t id, strata_error *err)
{
    struct trace *t = l->trace;
    const double begin = now_us() - t->zero;
    int status = mark(l, BEGUN, err);
    if (status == STRATA_OK)
        status = copy_all(l, true, err);
    if (status == STRATA_OK)
        status = mark(l, COPIED_IN, err);
    if (status == STRATA_OK)
        status = strata_context_enqueue(l->context, NULL, err);
    if (status == STRATA_OK)
        status = mark(l, COMPUTED, err);
    if (status == STRATA_OK)
        status = copy_all(l, false, err);
    if (status == STRATA_OK)
        status = mark(l, COPIED_OUT, err);
    const double end = now_us() - t->zero;
    put_slice(t, HOST, 0, "enqueue", begin, end - begin,
              json_pack("{s:I}", "stream", (json_int_t)l->number));
    put_flow(t, "s", HOST, 0, begin, id);
    return status;
}

static int times(struct lane *l, double us[MARKS], double *run, strata_error *err)
{
    double ms = 0;
    int status = STRATA_OK;
    for (int m = 0; m < MARKS && status == STRATA_OK; m++) {
        status = strata_event_elapsed(&ms, l->base, l->marks[m], err);
        us[m] = l->base_us + ms * 1e3;
    }
    if (status == STRATA_OK)
        status = strata_event_elapsed(&ms, l->base,
                                      l->context->active->profile->events[0], err);
    *run = l->base_us + ms * 1e3;
    return status;
}

static void put_steps(struct lane *l, double run)
{
    size_t i;
    json_t *told;
    strata_step step = {.struct_size = sizeof step};
    json_array_foreach(l->steps, i, told)
    {
        const double begin = run + json_number_value(json_array_get(told, 1));
        strata_engine_step(l->context->active->engine,
                           (int)json_integer_value(json_array_get(told, 0)), &step, NULL);
        put_slice(l->trace, DEVICE, l->number, step.name, begin,
                  json_number_value(json_array_get(told, 2)), step_args(&step));
        if (l->number == 0)
            put_counter(l->trace, "in use in stream 0's context", begin,
                        (double)step.live_bytes);
    }
    json_array_clear(l->steps);
}

static int finish(struct lane *l, size_t id, strata_error *err)
{
    double us[MARKS], run, begin = now_us() - l->trace->zero;
    int status = strata_context_wait(l->context, err);
    put_slice(l->trace, HOST, 0, "wait", begin, now_us() - l->trace->zero - begin,
              json_pack("{s:I}", "stream", (json_int_t)l->number));
    if (status == STRATA_OK)
        status = times(l, us, &run, err);
    if (status != STRATA_OK)
        return status;
    put_slice(l->trace, DEVICE, l->number, "copy in", us[BEGUN],
              us[COPIED_IN] - us[BEGUN], NULL);
    put_slice(l->trace, DEVICE, l->number, "run", us[COPIED_IN],
              us[COMPUTED] - us[COPIED_IN], NULL);
    put_slice(l->trace, DEVICE, l->number, "copy out", us[COMPUTED],
              us[COPIED_OUT] - us[COMPUTED], NULL);
    put_flow(l->trace, "f", DEVICE, l->number, us[COPIED_IN], id);
    put_steps(l, run);
    return status;
}

static int trace_runs(struct lane *lanes, size_t streams, size_t runs, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t l = 0; l < streams && status == STRATA_OK; l++)
        status = set_base(&lanes[l], err);
    for (size_t r = 0; r < runs && status == STRATA_OK; r++) {
        for (size_t l = 0; l < streams && status == STRATA_OK; l++)
            status = enqueue(&lanes[l], r * streams + l + 1, err);
        for (size_t l = 0; l < streams && status == STRATA_OK; l++)
            status = finish(&lanes[l], r * streams + l + 1, err);
    }
    return status;
}

static int write_trace(const struct trace *t, const char *path, strata_error *err)
{
    json_t *file =
        json_pack("{s:O, s:s}", "traceEvents", t->events, "displayTimeUnit", "ns");
    char *text = json_dumps(file, JSON_COMPACT | JSON_REAL_PRECISION(12));
    int status = text ? file_write(path, text, strlen(text), err)
                      : error_no_memory(err, 0, "a trace");
    free(text);
    json_decref(file);
    return status;
}

int profile_trace(const strata_engine *e, const struct tool_options *o,
                  const char *device, size_t streams, size_t runs, const char *path,
                  strata_error *err)
{
    struct trace t = {.events = json_array(), .zero = now_us()};
    struct lane *lanes = zalloc(streams, sizeof *lanes, "streams", err);
    int status = lanes && t.events ? STRATA_OK : STRATA_ENOMEM;
    pthread_mutex_init(&t.lock, NULL);
    put_name(&t, "process_name", HOST, 0, "host");
    put_name(&t, "thread_name", HOST, 0, "calls");
    put_name(&t, "process_name", DEVICE, 0, strata_device_name(e->handle));
    for (size_t l = 0; l < streams && status == STRATA_OK; l++) {
        lanes[l].trace = &t;
        lanes[l].number = l;
        status = open_lane(&lanes[l], e, o, device, err);
    }
    if (status == STRATA_OK)
        status = trace_runs(lanes, streams, runs, err);
    for (size_t l = 0; lanes && l < streams; l++)
        if (lanes[l].trace)
            close_lane(&lanes[l], e);
    if (status == STRATA_OK)
        status = write_trace(&t, path, err);
    pthread_mutex_destroy(&t.lock);
    json_decref(t.events);
    free(lanes);
    return status;
}
