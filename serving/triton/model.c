/* SPDX-License-Identifier: Apache-2.0
 *
 * A version of a model: the engine of each device that has an instance, and what the
 * server is told of it. A reload is another object: what runs on the old one ends there.
 */
#include "serving/triton/backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- engines ----------------------------------------------------------------------- */

static void placed_free(struct placed *p)
{
    if (!p)
        return;
    strata_engine_destroy(p->engine);
    strata_destroy(p->handle);
    free(p);
}

/* Measured now: for who asked for it in the config. */
static int build(struct placed *p, const struct model *m, const char *path,
                 strata_error *err)
{
    strata_network *network;
    int status = strata_network_load(&network, path, m->backend->registry, NULL, err);
    if (status == STRATA_OK)
        status = strata_engine_build(&p->engine, p->handle, network, err);
    strata_network_destroy(network);
    return status;
}

static bool is_network(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && !strcmp(path + n - 4, ".ini");
}

static int place(struct placed *p, const struct model *m, strata_error *err)
{
    char path[4096];
    strata_memory_stats stats = {.struct_size = sizeof stats};
    int status = strata_create(&p->handle, p->device, err);
    if (status == STRATA_OK)
        status = strata_set_threads(p->handle, m->backend->threads, err);
    if (status == STRATA_OK)
        status = config_engine_file(path, sizeof path, m,
                                    strata_device_capability(p->handle), err);
    if (status == STRATA_OK)
        status = is_network(path) ? build(p, m, path, err)
                                  : strata_engine_load(&p->engine, p->handle,
                                                       m->backend->registry, path, err);
    if (status == STRATA_OK)
        status = strata_get_memory_stats(p->handle, &stats, err);
    const uint64_t weights = strata_engine_weight_bytes(p->engine);
    p->bytes = stats.current_bytes > weights ? stats.current_bytes : weights;
    return status;
}

/* Messages of engines begin with their path, which clients need not know. */
static TRITONSERVER_Error *error_of_engine(const struct model *m, const char *device,
                                           strata_error *err)
{
    const char *text = err->message;
    const size_t folder = strlen(m->folder);
    if (!strncmp(text, m->folder, folder) && text[folder] == '/')
        text += folder + 1;
    strata_error named = {.status = err->status};
    snprintf(named.message, sizeof named.message, "%.200s on %s: %.*s", m->name, device,
             STRATA_MESSAGE_SIZE - 512, text);
    return error_of(&named);
}

static TRITONSERVER_Error *load_engine(struct model *m, const char *device,
                                       struct placed **out)
{
    strata_error err;
    struct placed *p = calloc(1, sizeof *p);
    if (!p)
        return error_memory("an engine");
    snprintf(p->device, sizeof p->device, "%s", device);
    if (place(p, m, &err) != STRATA_OK) {
        placed_free(p);
        return error_of_engine(m, device, &err);
    }
    p->next = m->placed;
    m->placed = *out = p;
    return NULL;
}

static TRITONSERVER_Error *engine_on(struct model *m, const char *device,
                                     struct placed **out)
{
    TRITONSERVER_Error *error = NULL;
    pthread_mutex_lock(&m->lock);
    for (*out = m->placed; *out && strcmp((*out)->device, device) != 0;)
        *out = (*out)->next;
    if (!*out)
        error = load_engine(m, device, out);
    pthread_mutex_unlock(&m->lock);
    return error;
}

/* The second device, where the engine is not for the first; then the first's error. */
static TRITONSERVER_Error *engine_on_either(struct model *m, const char *first,
                                            const char *second, struct placed **out)
{
    TRITONSERVER_Error *error = engine_on(m, first, out);
    if (!error || TRITONSERVER_ErrorCode(error) != TRITONSERVER_ERROR_UNSUPPORTED)
        return error;
    TRITONSERVER_Error *other = engine_on(m, second, out);
    if (other) {
        forget(other);
        return error;
    }
    server_log(TRITONSERVER_LOG_WARN, "%s; instances run on %s, which it is for",
               TRITONSERVER_ErrorMessage(error), second);
    forget(error);
    return NULL;
}

/* A server with GPUs puts instances there unless the config says otherwise: those of an
 * engine of the host run on the host. */
TRITONSERVER_Error *model_engine(struct model *m, TRITONSERVER_InstanceGroupKind kind,
                                 int32_t id, struct placed **out)
{
    char gpu[32];
    snprintf(gpu, sizeof gpu, "cuda:%d", (int)id);
    switch (kind) {
    case TRITONSERVER_INSTANCEGROUPKIND_CPU:
        return engine_on(m, "host", out);
    case TRITONSERVER_INSTANCEGROUPKIND_GPU:
        return engine_on_either(m, gpu, "host", out);
    case TRITONSERVER_INSTANCEGROUPKIND_AUTO:
        return engine_on_either(m, "host", gpu, out);
    case TRITONSERVER_INSTANCEGROUPKIND_MODEL:
        break;
    }
    return error_text(TRITONSERVER_ERROR_UNSUPPORTED,
                      "%s: an instance of KIND_MODEL; strata runs on one device: write "
                      "KIND_CPU or KIND_GPU",
                      m->name);
}

/* The engine that the config is completed from: of the device of the first instance. */
static TRITONSERVER_Error *first_engine(struct model *m, struct placed **out)
{
    TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_AUTO;
    int32_t id = 0;
    config_device(m, &kind, &id);
    return model_engine(m, kind, id, out);
}

/* ---- tensors ----------------------------------------------------------------------- */

static int describe_tensors(struct model *m, const strata_engine *e, strata_error *err)
{
    int status = STRATA_OK;
    for (int i = 0; i < strata_engine_bindings(e) && status == STRATA_OK; i++) {
        strata_binding b = {.struct_size = sizeof b};
        status = strata_engine_binding(e, i, &b, err);
        if (status == STRATA_OK)
            status = tensor_describe(&m->tensors[i], &b, err);
        *(b.is_input ? &m->n_in : &m->n_out) += status == STRATA_OK;
    }
    return status;
}

/* Whether every tensor's first dim follows the number of rows. */
static int find_rows(struct model *m, strata_context *c, strata_error *err)
{
    bool all = true;
    for (int i = 0; i < m->n_in + m->n_out; i++)
        all = all && m->tensors[i].rank > 0 && m->tensors[i].dims[0] == m->batch;
    m->batched = all;
    if (!all || m->batch == 1 || m->has_states)
        return STRATA_OK;
    if (strata_context_set_batch(c, 1, NULL) != STRATA_OK) {
        m->batched = false;
        return STRATA_OK;
    }
    for (int i = 0; i < m->n_in + m->n_out; i++) {
        strata_binding b = {.struct_size = sizeof b};
        int status = strata_context_binding(c, i, &b, err);
        if (status != STRATA_OK)
            return status;
        m->batched = m->batched && b.desc.dims[0] == 1;
    }
    return strata_context_set_batch(c, m->batch, err);
}

/* Dims of the tensors that a dimension of the engine stands in: they change with it. */
static int find_varying(struct model *m, strata_context *c, const strata_dimension *d,
                        strata_error *err)
{
    int status = STRATA_OK;
    if (d->is_batch || d->least == d->most)
        return STRATA_OK;
    m->varies = true;
    status = strata_context_set_dimension(c, d->name, d->least, err);
    for (int i = 0; i < m->n_in + m->n_out && status == STRATA_OK; i++) {
        struct tensor *t = &m->tensors[i];
        strata_binding b = {.struct_size = sizeof b};
        status = strata_context_binding(c, i, &b, err);
        for (int k = 0; k < t->rank && status == STRATA_OK; k++)
            if (t->dims[k] >= 0 && b.desc.dims[t->order[k]] != t->dims[k])
                t->dims[k] = -1;
    }
    return status != STRATA_OK ? status
                               : strata_context_set_dimension(c, d->name, d->most, err);
}

static int probe(struct model *m, const struct placed *p, strata_error *err)
{
    strata_context *c;
    int status = strata_context_create(&c, p->engine, p->handle, err);
    if (status == STRATA_OK)
        status = find_rows(m, c, err);
    for (int i = 0; i < strata_engine_dimensions(p->engine) && status == STRATA_OK; i++) {
        strata_dimension d = {.struct_size = sizeof d};
        status = strata_engine_dimension(p->engine, i, &d, err);
        if (status == STRATA_OK)
            status = find_varying(m, c, &d, err);
    }
    strata_context_destroy(c);
    return status;
}

static TRITONSERVER_Error *describe(struct model *m, const struct placed *p)
{
    const strata_engine *e = p->engine;
    const size_t n = (size_t)strata_engine_bindings(e);
    strata_error err;
    m->batch = strata_engine_batch(e);
    m->has_states = strata_engine_states(e) > 0;
    m->n_batches = strata_engine_batches(e, NULL, 0);
    m->tensors = calloc(n + 1, sizeof *m->tensors);
    m->batches = calloc((size_t)m->n_batches + 1, sizeof *m->batches);
    m->rows = calloc((size_t)m->n_batches + 1, sizeof *m->rows);
    if (!m->tensors || !m->batches || !m->rows)
        return error_memory("a model");
    strata_engine_batches(e, m->batches, m->n_batches);
    if (describe_tensors(m, e, &err) != STRATA_OK || probe(m, p, &err) != STRATA_OK)
        return error_of_engine(m, p->device, &err);
    return NULL;
}

/* ---- reports ----------------------------------------------------------------------- */

TRITONSERVER_BufferAttributes *memory_usage(const char *device, uint64_t bytes)
{
    TRITONSERVER_BufferAttributes *b = NULL;
    const char *number = strchr(device, ':');
    if (bytes == 0)
        return NULL;
    TRITONSERVER_Error *error = TRITONSERVER_BufferAttributesNew(&b);
    if (!error)
        error = TRITONSERVER_BufferAttributesSetMemoryType(
            b, number ? TRITONSERVER_MEMORY_GPU : TRITONSERVER_MEMORY_CPU);
    if (!error)
        error = TRITONSERVER_BufferAttributesSetMemoryTypeId(b, number ? atoi(number + 1)
                                                                       : 0);
    if (!error)
        error = TRITONSERVER_BufferAttributesSetByteSize(b, bytes);
    if (error && b)
        forget(TRITONSERVER_BufferAttributesDelete(b));
    const bool failed = error;
    forget(error);
    return failed ? NULL : b;
}

/* Weights on the first device; instances on others tell of theirs. */
static void report_memory(struct model *m)
{
    TRITONSERVER_BufferAttributes *usage =
        memory_usage(m->placed->device, m->placed->bytes);
    if (!usage)
        return;
    forget(TRITONBACKEND_ModelReportMemoryUsage(m->triton, &usage, 1));
    forget(TRITONSERVER_BufferAttributesDelete(usage));
}

static TRITONSERVER_Metric *open_metric(const struct model *m, enum metric which,
                                        int64_t batch)
{
    TRITONSERVER_MetricFamily *family = m->backend->families[which];
    TRITONSERVER_Metric *metric = NULL;
    char version[24], rows[24];
    if (!family)
        return NULL;
    snprintf(version, sizeof version, "%" PRIu64, m->version);
    snprintf(rows, sizeof rows, "%" PRId64, batch);
    const TRITONSERVER_Parameter *labels[] = {
        TRITONSERVER_ParameterNew("model", TRITONSERVER_PARAMETER_STRING, m->name),
        TRITONSERVER_ParameterNew("version", TRITONSERVER_PARAMETER_STRING, version),
        TRITONSERVER_ParameterNew("batch", TRITONSERVER_PARAMETER_STRING, rows)};
    const bool all = labels[0] && labels[1] && labels[2];
    if (all)
        forget(TRITONSERVER_MetricNew(&metric, family, labels, batch ? 3 : 2));
    for (size_t i = 0; i < COUNT_OF(labels); i++)
        if (labels[i])
            TRITONSERVER_ParameterDelete((TRITONSERVER_Parameter *)(uintptr_t)labels[i]);
    return metric;
}

static void open_metrics(struct model *m)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (i != METRIC_ROWS)
            m->metrics[i] = open_metric(m, (enum metric)i, 0);
    for (int i = 0; i < m->n_batches; i++)
        m->rows[i] = open_metric(m, METRIC_ROWS, m->batches[i]);
}

/* ---- model ------------------------------------------------------------------------- */

static TRITONSERVER_Error *read_model(struct model *m)
{
    TRITONBACKEND_ArtifactType type;
    TRITONSERVER_Message *config;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelName(m->triton, &m->name);
    if (!error)
        error = TRITONBACKEND_ModelVersion(m->triton, &m->version);
    if (!error)
        error = TRITONBACKEND_ModelRepository(m->triton, &type, &m->folder);
    if (!error && type != TRITONBACKEND_ARTIFACT_FILESYSTEM)
        error = error_text(TRITONSERVER_ERROR_UNSUPPORTED,
                           "%s: strata reads models from folders alone", m->name);
    if (!error)
        error = TRITONBACKEND_ModelConfig(m->triton, 1, &config);
    if (error)
        return error;
    m->config = json_of(config);
    forget(TRITONSERVER_MessageDelete(config));
    return m->config ? NULL
                     : error_text(TRITONSERVER_ERROR_INTERNAL,
                                  "%s: the server's config is no JSON", m->name);
}

TRITONSERVER_Error *model_create(struct model **out, TRITONBACKEND_Model *triton,
                                 struct backend *backend)
{
    struct placed *first;
    struct model *m = calloc(1, sizeof *m);
    if (!m)
        return error_memory("a model");
    m->triton = triton;
    m->backend = backend;
    pthread_mutex_init(&m->lock, NULL);
    TRITONSERVER_Error *error = read_model(m);
    if (!error)
        error = config_turns(m);
    if (!error)
        error = first_engine(m, &first);
    if (!error)
        error = describe(m, first);
    if (!error)
        error = config_settle(m);
    if (error) {
        model_destroy(m);
        return error;
    }
    report_memory(m);
    open_metrics(m);
    *out = m;
    return NULL;
}

void model_destroy(struct model *m)
{
    if (!m)
        return;
    for (int i = 0; i < METRIC_COUNT; i++)
        if (m->metrics[i])
            forget(TRITONSERVER_MetricDelete(m->metrics[i]));
    for (int i = 0; m->rows && i < m->n_batches; i++)
        if (m->rows[i])
            forget(TRITONSERVER_MetricDelete(m->rows[i]));
    for (struct placed *p = m->placed, *next; p; p = next) {
        next = p->next;
        placed_free(p);
    }
    json_decref(m->config);
    pthread_mutex_destroy(&m->lock);
    free(m->tensors);
    free(m->batches);
    free(m->rows);
    free(m);
}
