/* SPDX-License-Identifier: Apache-2.0
 *
 * A backend for Triton that computes nothing: each request is answered with the outputs
 * of its model's config, FP32 and unwritten, at once or after the microseconds that the
 * config's parameter wait_us says for a full batch, in proportion to its rows. What a
 * client of it waits for beyond these is the server's and the transport's part of any
 * model that takes as long. With the parameter alone 1 one batch waits at a time, as on a
 * device that is not shared. Answers of a batch are sent by several threads, as Strata's
 * are.
 */
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "serving/triton/answer.h"

/* Not in triton_abi.h: Strata's backend has no use for it. */
TRITONSERVER_Error *TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request *request,
                                                      uint32_t index,
                                                      TRITONBACKEND_Input **out);

enum { OUTPUTS = 8, RANK = 8, SENDERS = 3, MOST = 256 };

static pthread_mutex_t device = PTHREAD_MUTEX_INITIALIZER;
static struct senders *senders;

struct null_model {
    uint64_t wait_ns; /* of `batch` rows */
    int64_t batch;
    bool alone;
    int n;
    struct null_output {
        char name[64];
        int64_t dims[RANK]; /* the first is of rows */
        uint32_t rank;
        uint64_t row_bytes;
    } outputs[OUTPUTS];
};

uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static TRITONSERVER_Error *refuse(const char *why)
{
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, why);
}

TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
{
    (void)backend;
    senders = senders_open(SENDERS);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend)
{
    (void)backend;
    senders_close(senders);
    return NULL;
}

/* ---- model ----------------------------------------------------------------------- */

static int64_t number_of(const json_t *value)
{
    return json_is_string(value) ? strtoll(json_string_value(value), NULL, 10)
                                 : json_integer_value(value);
}

static TRITONSERVER_Error *read_outputs(struct null_model *m, const json_t *config)
{
    size_t i, k;
    json_t *one, *dim;
    json_array_foreach(json_object_get(config, "output"), i, one)
    {
        const json_t *dims = json_object_get(one, "dims");
        const char *name = json_string_value(json_object_get(one, "name"));
        struct null_output *o = &m->outputs[m->n];
        if (m->n == OUTPUTS || !name || strlen(name) >= sizeof o->name ||
            json_array_size(dims) >= RANK)
            return refuse("the null backend cannot have these outputs");
        strcpy(o->name, name);
        o->rank = 1;
        o->row_bytes = sizeof(float);
        json_array_foreach(dims, k, dim)
        {
            o->dims[o->rank++] = number_of(dim);
            o->row_bytes *= (uint64_t)number_of(dim);
        }
        m->n++;
    }
    return m->n ? NULL : refuse("the null backend needs outputs in the config");
}

static int64_t parameter(const json_t *config, const char *name)
{
    const json_t *found = json_object_get(json_object_get(config, "parameters"), name);
    return number_of(json_object_get(found, "string_value"));
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    TRITONSERVER_Message *message = NULL;
    const char *text;
    size_t bytes;
    struct null_model *m = calloc(1, sizeof *m);
    TRITONSERVER_Error *error =
        m ? TRITONBACKEND_ModelConfig(model, 1, &message) : refuse("out of memory");
    if (!error)
        error = TRITONSERVER_MessageSerializeToJson(message, &text, &bytes);
    if (!error) {
        json_t *config = json_loadb(text, bytes, 0, NULL);
        error = read_outputs(m, config);
        m->wait_ns = (uint64_t)parameter(config, "wait_us") * 1000;
        m->alone = parameter(config, "alone") > 0;
        m->batch = number_of(json_object_get(config, "max_batch_size"));
        json_decref(config);
    }
    if (message)
        TRITONSERVER_MessageDelete(message);
    if (!error)
        error = TRITONBACKEND_ModelSetState(model, m);
    if (error)
        free(m);
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    void *m = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelState(model, &m);
    free(m);
    return error;
}

/* ---- execution ------------------------------------------------------------------- */

static int64_t rows_of(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Input *input;
    const int64_t *dims;
    uint32_t rank;
    TRITONSERVER_Error *error = TRITONBACKEND_RequestInputByIndex(request, 0, &input);
    if (!error)
        error =
            TRITONBACKEND_InputProperties(input, NULL, NULL, &dims, &rank, NULL, NULL);
    const int64_t rows = !error && rank > 0 ? dims[0] : 1;
    TRITONSERVER_ErrorDelete(error);
    return rows;
}

/* The response with its outputs; NULL: none, which a client of it then lacks. */
static TRITONBACKEND_Response *respond(const struct null_model *m,
                                       TRITONBACKEND_Request *request)
{
    const int64_t rows = rows_of(request);
    TRITONBACKEND_Response *response = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ResponseNew(&response, request);
    for (int i = 0; i < m->n && !error; i++) {
        const struct null_output *o = &m->outputs[i];
        TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
        TRITONBACKEND_Output *output;
        int64_t dims[RANK], id = 0;
        void *data;
        memcpy(dims, o->dims, sizeof dims);
        dims[0] = rows;
        error = TRITONBACKEND_ResponseOutput(response, &output, o->name,
                                             TRITONSERVER_TYPE_FP32, dims, o->rank);
        if (!error)
            error = TRITONBACKEND_OutputBuffer(output, &data,
                                               (uint64_t)rows * o->row_bytes, &type, &id);
    }
    TRITONSERVER_ErrorDelete(error);
    return response;
}

/* sender.c's threads call it, as they call Strata's. */
void answer_send(struct answer *a)
{
    if (a->response)
        TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseSend(
            a->response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
    a->response = NULL;
}

/* As who waits for a device does. */
static void compute(const struct null_model *m, int64_t rows)
{
    const uint64_t wait = m->wait_ns * (uint64_t)rows / (uint64_t)(m->batch + !m->batch);
    if (m->alone)
        pthread_mutex_lock(&device);
    const uint64_t begun = now();
    while (now() - begun < wait)
        ;
    if (m->alone)
        pthread_mutex_unlock(&device);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, uint32_t n)
{
    TRITONBACKEND_Model *model;
    void *state = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceModel(instance, &model);
    if (!error)
        error = TRITONBACKEND_ModelState(model, &state);
    if (error)
        return error;
    const struct null_model *m = state;
    struct answer answers[MOST];
    int64_t rows = 0;
    if (n > MOST)
        return refuse("the null backend cannot have so many requests");
    const uint64_t begun = now();
    for (uint32_t i = 0; i < n; i++)
        rows += rows_of(requests[i]);
    compute(m, rows);
    const uint64_t computed = now();
    for (uint32_t i = 0; i < n; i++)
        answers[i] = (struct answer){.response = respond(m, requests[i])};
    senders_send(senders, answers, n);
    const uint64_t ended = now();
    for (uint32_t i = 0; i < n; i++) {
        TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceReportStatistics(
            instance, requests[i], true, begun, begun, computed, ended));
        TRITONSERVER_ErrorDelete(
            TRITONBACKEND_RequestRelease(requests[i], TRITONSERVER_REQUEST_RELEASE_ALL));
    }
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceReportBatchStatistics(
        instance, n, begun, begun, computed, ended));
    return NULL;
}
