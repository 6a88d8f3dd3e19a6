/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend's own time: a request of one row through it over a stand-in for the server,
 * against the same run without it, in turns.
 *
 *   bench/serving/backend_time REPOSITORY MODEL [ROUNDS]
 *
 * The model has an engine of the host, with inputs and outputs of FP32. Prints one line
 * of JSON: microseconds of both, medians of ROUNDS rounds, their difference, and how many
 * tensors a request has.
 */
#include <strata/parts.h>
#include <strata/sizes.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/serving/host.h"

enum { RUNS = 200 }; /* of a round */

struct tensors {
    char names[HOST_TENSORS][64];
    float *data[HOST_TENSORS];
    strata_binding bindings[HOST_TENSORS];
    int n, n_in;
};

struct alone {
    strata_registry *registry;
    strata_handle *handle;
    strata_engine *engine;
    strata_context *context;
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return values[n / 2];
}

static int open_alone(struct alone *a, const char *repository, const char *model,
                      strata_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/1/model.engine", repository, model);
    int status = strata_registry_create(&a->registry, NULL, err);
    if (status == STRATA_OK)
        status = strata_create(&a->handle, "host", err);
    if (status == STRATA_OK)
        status = strata_engine_load(&a->engine, a->handle, a->registry, path, err);
    if (status == STRATA_OK)
        status = strata_context_create(&a->context, a->engine, a->handle, err);
    if (status == STRATA_OK)
        status = strata_context_set_batch(a->context, 1, err);
    return status;
}

static int describe(struct tensors *t, const struct alone *a, strata_error *err)
{
    int status = STRATA_OK;
    t->n = strata_engine_bindings(a->engine);
    if (t->n > HOST_TENSORS)
        t->n = HOST_TENSORS;
    for (int i = 0; i < t->n && status == STRATA_OK; i++) {
        strata_binding *b = &t->bindings[i];
        b->struct_size = sizeof *b;
        status = strata_context_binding(a->context, i, b, err);
        t->n_in += b->is_input;
        snprintf(t->names[i], sizeof t->names[i], "%s", b->name);
        t->data[i] = aligned_alloc(256, ((size_t)b->bytes + 255) / 256 * 256);
        if (!t->data[i])
            return STRATA_ENOMEM;
        memset(t->data[i], 0, (size_t)b->bytes);
    }
    return status;
}

static TRITONBACKEND_Request request_of(const struct tensors *t)
{
    TRITONBACKEND_Request r = {.n_inputs = (uint32_t)t->n_in,
                               .n_outputs = (uint32_t)(t->n - t->n_in)};
    for (int i = 0; i < t->n_in; i++) {
        TRITONBACKEND_Input *in = &r.inputs[i];
        *in = (TRITONBACKEND_Input){.name = t->names[i],
                                    .type = TRITONSERVER_TYPE_FP32,
                                    .rank = (uint32_t)t->bindings[i].desc.rank,
                                    .n = 1,
                                    .data = {t->data[i]},
                                    .bytes = {(uint64_t)t->bindings[i].bytes}};
        memcpy(in->dims, t->bindings[i].desc.dims, in->rank * sizeof *in->dims);
    }
    for (int i = t->n_in; i < t->n; i++)
        r.outputs[i - t->n_in] = t->names[i];
    return r;
}

static double time_backend(TRITONBACKEND_ModelInstance *instance, const struct tensors *t,
                           char *text)
{
    TRITONBACKEND_Request r = request_of(t);
    const double begin = now_us();
    host_execute(instance, &r, 1, text);
    const double took = now_us() - begin;
    if (!text[0] && r.text[0])
        memcpy(text, r.text, sizeof r.text);
    host_clear(&r);
    return took;
}

static double time_alone(const struct alone *a, const struct tensors *t,
                         strata_error *err)
{
    strata_memory memory[HOST_TENSORS];
    for (int i = 0; i < t->n; i++)
        memory[i] = (strata_memory){t->data[i], (uint64_t)t->bindings[i].bytes,
                                    STRATA_MEMORY_HOST, 0};
    strata_part part = {sizeof part, 1, memory, NULL, memory + t->n_in, 0};
    const double begin = now_us();
    strata_context_run_parts(a->context, &part, 1, err);
    return now_us() - begin;
}

/* Medians of a round each, so that a moment of the machine does not meet one alone. */
static int measure(TRITONBACKEND_ModelInstance *instance, const struct alone *a,
                   const struct tensors *t, int rounds, char *text)
{
    double *with = calloc((size_t)rounds, sizeof *with),
           *without = calloc((size_t)rounds, sizeof *without), times[2][RUNS];
    strata_error err = {0};
    for (int k = 0; with && without && k < rounds && !text[0] && !err.status; k++) {
        for (int i = 0; i < RUNS && !text[0] && !err.status; i++) {
            times[0][i] = time_backend(instance, t, text);
            times[1][i] = time_alone(a, t, &err);
        }
        with[k] = median(times[0], RUNS);
        without[k] = median(times[1], RUNS);
    }
    if (err.status)
        snprintf(text, sizeof err.message, "%s", err.message);
    const bool well = with && without && !text[0];
    if (well) {
        const double both = median(with, rounds), own = median(without, rounds);
        printf("{\"backend_us\": %.3f, \"alone_us\": %.3f, \"own_us\": %.3f, "
               "\"tensors\": %d}\n",
               both, own, both - own, t->n);
    }
    free(with);
    free(without);
    return well ? 0 : 1;
}

int main(int argc, char **argv)
{
    static char text[STRATA_MESSAGE_SIZE];
    struct alone alone = {0};
    struct tensors tensors = {.n = 0};
    strata_error err = {0};
    const int rounds = argc > 3 ? atoi(argv[3]) : 21;
    if (argc < 3 || rounds < 1) {
        fputs("usage: backend_time REPOSITORY MODEL [ROUNDS]\n", stderr);
        return 2;
    }
    if (open_alone(&alone, argv[1], argv[2], &err) != STRATA_OK ||
        describe(&tensors, &alone, &err) != STRATA_OK) {
        fprintf(stderr, "backend_time: %s\n", err.message);
        return 1;
    }
    TRITONBACKEND_Backend *backend = host_open("", text);
    TRITONBACKEND_Model *model =
        backend ? host_load(backend, argv[1], argv[2], NULL, true, text) : NULL;
    TRITONBACKEND_ModelInstance *instance =
        model ? host_instance(model, TRITONSERVER_INSTANCEGROUPKIND_CPU, 0, text) : NULL;
    const int code = instance ? measure(instance, &alone, &tensors, rounds, text) : 1;
    if (code)
        fprintf(stderr, "backend_time: %s\n", text);
    return code; /* the process's end gives all memory back */
}
