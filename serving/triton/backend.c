/* SPDX-License-Identifier: Apache-2.0
 *
 * The entries that the server calls, and what holds for all models: one registry of
 * plugins, the log, the families of metrics. Entries of models and instances hand on to
 * model.c and instance.c, whose objects are the server's state of theirs.
 *
 * Options: --backend-config=strata,NAME=VALUE, of the table below.
 */
#include "serving/triton/backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors and log ---------------------------------------------------------------- */

static TRITONSERVER_Error_Code code_of(int status)
{
    static const TRITONSERVER_Error_Code codes[] = {
        [STRATA_EINVAL] = TRITONSERVER_ERROR_INVALID_ARG,
        [STRATA_EOVERFLOW] = TRITONSERVER_ERROR_INVALID_ARG,
        [STRATA_ENOTFOUND] = TRITONSERVER_ERROR_NOT_FOUND,
        [STRATA_EUNSUPPORTED] = TRITONSERVER_ERROR_UNSUPPORTED,
        [STRATA_EBUSY] = TRITONSERVER_ERROR_UNAVAILABLE,
        [STRATA_ENOMEM] = TRITONSERVER_ERROR_UNAVAILABLE,
        [STRATA_EDEVICELOST] = TRITONSERVER_ERROR_UNAVAILABLE,
    };
    const size_t at = (size_t)status;
    return at < COUNT_OF(codes) && codes[at] ? codes[at] : TRITONSERVER_ERROR_INTERNAL;
}

TRITONSERVER_Error *error_of(const strata_error *err)
{
    char first[512];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(err->message, "\n"), err->message);
    if (strchr(err->message, '\n'))
        server_log(TRITONSERVER_LOG_ERROR, "%s", err->message);
    return TRITONSERVER_ErrorNew(code_of(err->status), first);
}

TRITONSERVER_Error *error_text(TRITONSERVER_Error_Code code, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return TRITONSERVER_ErrorNew(code, text);
}

TRITONSERVER_Error *error_memory(const char *what)
{
    return error_text(TRITONSERVER_ERROR_UNAVAILABLE, "out of memory for %s", what);
}

void forget(TRITONSERVER_Error *error)
{
    if (error)
        TRITONSERVER_ErrorDelete(error);
}

void server_log(TRITONSERVER_LogLevel level, const char *format, ...)
{
    char text[STRATA_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    forget(TRITONSERVER_LogMessage(level, "strata", 0, text));
}

/* What is worth a line to who plans engines is noise to who serves them. */
static void log_strata(void *user, int level, const char *text)
{
    static const TRITONSERVER_LogLevel levels[] = {
        [STRATA_LOG_ERROR] = TRITONSERVER_LOG_ERROR,
        [STRATA_LOG_WARNING] = TRITONSERVER_LOG_WARN,
        [STRATA_LOG_INFO] = TRITONSERVER_LOG_VERBOSE,
        [STRATA_LOG_DEBUG] = TRITONSERVER_LOG_VERBOSE,
    };
    (void)user;
    forget(TRITONSERVER_LogMessage(levels[level], "strata", 0, text));
}

json_t *json_of(TRITONSERVER_Message *message)
{
    const char *text;
    size_t bytes;
    TRITONSERVER_Error *error =
        TRITONSERVER_MessageSerializeToJson(message, &text, &bytes);
    json_t *json = error ? NULL : json_loadb(text, bytes, 0, NULL);
    forget(error);
    return json;
}

/* ---- options ----------------------------------------------------------------------- */

enum { TURNS_UNSAID = -1 };

struct options {
    const char *plugin_path;
    long threads, senders, turns, log_level;
};

static const struct option {
    const char *name;
    long least, most; /* of a number; most 0: a text */
    size_t offset;
} options_known[] = {
    {"plugin_path", 0, 0, offsetof(struct options, plugin_path)},
    {"threads", 0, 4096, offsetof(struct options, threads)},
    {"senders", 0, 8, offsetof(struct options, senders)},
    {"turns", 0, 1, offsetof(struct options, turns)},
    {"log_level", STRATA_LOG_ERROR, STRATA_LOG_DEBUG,
     offsetof(struct options, log_level)},
};

/* Those that the server gives every backend. */
static const char *const options_of_server[] = {
    "auto-complete-config",   "backend-directory", "default-max-batch-size",
    "min-compute-capability", "grpc-port",         "http-port"};

static TRITONSERVER_Error *set_option(struct options *out, const struct option *o,
                                      const char *value)
{
    char *end;
    void *field = (char *)out + o->offset;
    if (!o->most) {
        *(const char **)field = value;
        return NULL;
    }
    const long number = strtol(value, &end, 10);
    if (end == value || *end || number < o->least || number > o->most)
        return error_text(TRITONSERVER_ERROR_INVALID_ARG,
                          "--backend-config=strata,%s=%s: write a number from %ld to %ld",
                          o->name, value, o->least, o->most);
    *(long *)field = number;
    return NULL;
}

static const struct option *find_option(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(options_known); i++)
        if (!strcmp(options_known[i].name, name))
            return &options_known[i];
    return NULL;
}

static TRITONSERVER_Error *read_options(struct options *out, json_t *config)
{
    const char *name;
    json_t *value;
    TRITONSERVER_Error *error = NULL;
    json_object_foreach(json_object_get(config, "cmdline"), name, value)
    {
        const struct option *o = find_option(name);
        bool known = o;
        for (size_t i = 0; i < COUNT_OF(options_of_server); i++)
            known = known || !strcmp(options_of_server[i], name);
        if (!known)
            server_log(
                TRITONSERVER_LOG_WARN,
                "--backend-config=strata,%s: no such option; there are plugin_path, "
                "threads, senders, turns and log_level",
                name);
        if (o && !error && json_is_string(value))
            error = set_option(out, o, json_string_value(value));
    }
    return error;
}

/* ---- backend ----------------------------------------------------------------------- */

static const struct family {
    const char *name, *help;
} families[METRIC_COUNT] = {
    [METRIC_ROWS] = {"strata_batch_rows_total", "rows run, by the batch of their plan"},
    [METRIC_PADDING] = {"strata_padding_rows_total", "rows computed for nothing"},
    [METRIC_COPIED_IN] = {"strata_copied_in_bytes_total", "bytes copied to bindings"},
    [METRIC_COPIED_OUT] = {"strata_copied_out_bytes_total", "bytes copied from bindings"},
    [METRIC_CROSS_DEVICE] = {"strata_cross_device_bytes_total",
                             "bytes copied from or to another GPU"},
    [METRIC_IN_PLACE] = {"strata_in_place_runs_total",
                         "runs that used the requests' memory where it is"},
};

static void open_families(struct backend *b)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        forget(TRITONSERVER_MetricFamilyNew(&b->families[i],
                                            TRITONSERVER_METRIC_KIND_COUNTER,
                                            families[i].name, families[i].help));
}

static void backend_destroy(struct backend *b)
{
    if (!b)
        return;
    for (int i = 0; i < METRIC_COUNT; i++)
        if (b->families[i])
            forget(TRITONSERVER_MetricFamilyDelete(b->families[i]));
    senders_close(b->senders);
    strata_registry_destroy(b->registry);
    strata_set_logger(NULL, NULL, STRATA_LOG_WARNING);
    free(b);
}

static TRITONSERVER_Error *backend_create(struct backend **out, json_t *config)
{
    struct options o = {
        .log_level = STRATA_LOG_WARNING, .senders = 3, .turns = TURNS_UNSAID};
    strata_error err;
    struct backend *b = calloc(1, sizeof *b);
    TRITONSERVER_Error *error =
        b ? read_options(&o, config) : error_memory("the backend");
    if (!error) {
        const strata_registry_options found = {.struct_size = sizeof found,
                                               .search_path = o.plugin_path};
        strata_set_logger(log_strata, NULL, (int)o.log_level);
        if (strata_registry_create(&b->registry, &found, &err) != STRATA_OK)
            error = error_of(&err);
    }
    if (error) {
        backend_destroy(b);
        return error;
    }
    b->threads = (int)o.threads;
    b->turns = o.turns == TURNS_UNSAID ? STRATA_TURNS_AUTO
               : o.turns               ? STRATA_TURNS_ON
                                       : STRATA_TURNS_OFF;
    b->senders = senders_open((int)o.senders);
    open_families(b);
    *out = b;
    return NULL;
}

/* ---- entries ----------------------------------------------------------------------- */

static TRITONSERVER_Error *check_server(void)
{
    uint32_t major, minor;
    TRITONSERVER_Error *error = TRITONBACKEND_ApiVersion(&major, &minor);
    if (error || (major == TRITON_API_MAJOR && minor >= TRITON_API_MINOR))
        return error;
    return error_text(TRITONSERVER_ERROR_UNSUPPORTED,
                      "the server's backend API is %u.%u; strata needs %d.%d or a later "
                      "minor: a server of 23.10 or later",
                      major, minor, TRITON_API_MAJOR, TRITON_API_MINOR);
}

TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
{
    TRITONSERVER_Message *message;
    struct backend *b = NULL;
    TRITONSERVER_Error *error = check_server();
    if (!error)
        error = TRITONBACKEND_BackendConfig(backend, &message);
    if (error)
        return error;
    json_t *config = json_of(message);
    error = backend_create(&b, config);
    json_decref(config);
    if (!error && (error = TRITONBACKEND_BackendSetState(backend, b)))
        backend_destroy(b);
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend)
{
    void *state;
    TRITONSERVER_Error *error = TRITONBACKEND_BackendState(backend, &state);
    if (!error)
        backend_destroy(state);
    return error;
}

/* Before any model is known: two instances a GPU, where one copies while the other
 * computes; one on the host, whose runs share its processors. */
TRITONSERVER_Error *
TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend,
                                  TRITONBACKEND_BackendAttribute *attributes)
{
    (void)backend;
    TRITONSERVER_Error *error = TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
        attributes, TRITONSERVER_INSTANCEGROUPKIND_GPU, 2, NULL, 0);
    if (!error)
        error = TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
            attributes, TRITONSERVER_INSTANCEGROUPKIND_CPU, 1, NULL, 0);
    if (!error)
        error = TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(attributes,
                                                                              true);
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    TRITONBACKEND_Backend *backend;
    void *state = NULL;
    struct model *m = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelBackend(model, &backend);
    if (!error)
        error = TRITONBACKEND_BackendState(backend, &state);
    if (!error)
        error = model_create(&m, model, state);
    if (!error && (error = TRITONBACKEND_ModelSetState(model, m)))
        model_destroy(m);
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    void *state;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelState(model, &state);
    if (!error)
        model_destroy(state);
    return error;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    TRITONBACKEND_Model *model;
    void *state = NULL;
    struct instance *i = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceModel(instance, &model);
    if (!error)
        error = TRITONBACKEND_ModelState(model, &state);
    if (!error)
        error = instance_create(&i, instance, state);
    if (!error && (error = TRITONBACKEND_ModelInstanceSetState(instance, i)))
        instance_destroy(i);
    return error;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
    void *state;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceState(instance, &state);
    if (!error)
        instance_destroy(state);
    return error;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, uint32_t n)
{
    void *state;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceState(instance, &state);
    return error ? error : instance_execute(state, requests, n);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance *instance)
{
    void *state;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceState(instance, &state);
    return error ? error : instance_ready(state);
}
