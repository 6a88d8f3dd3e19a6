/* SPDX-License-Identifier: Apache-2.0
 *
 * The server's description of a model. What it lacks comes from the engine: the batch,
 * tensors, their types and dims, who batches and at which sizes. What it says is
 * compared, and a contradiction is refused when the model loads, with both sides.
 */
#include "serving/triton/backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* 64-bit numbers may come as texts. */
static int64_t number_of(const json_t *value)
{
    return json_is_string(value) ? strtoll(json_string_value(value), NULL, 10)
                                 : json_integer_value(value);
}

/* ---- files ------------------------------------------------------------------------- */

struct search {
    const struct model *model;
    char looked[512]; /* for, as a message lists it */
    char *out;
    size_t size;
};

static bool is_there(struct search *s, const char *name)
{
    const size_t used = strlen(s->looked);
    if (!*name)
        return false;
    snprintf(s->looked + used, sizeof s->looked - used, "%s%s", used ? ", " : "", name);
    const int n = snprintf(s->out, s->size, "%s/%" PRIu64 "/%s", s->model->folder,
                           s->model->version, name);
    return n > 0 && (size_t)n < s->size && access(s->out, R_OK) == 0;
}

static const char *parameter(const struct model *m, const char *name)
{
    return text_of(json_object_get(json_object_get(m->config, "parameters"), name),
                   "string_value");
}

static bool may_build(const struct model *m)
{
    return !strcmp(parameter(m, "build"), "yes");
}

int config_engine_file(char *out, size_t size, const struct model *m, int capability,
                       strata_error *err)
{
    struct search s = {.model = m, .out = out, .size = size};
    char key[24];
    snprintf(key, sizeof key, "%d.%d", capability / 10, capability % 10);
    const json_t *of_gpus = json_object_get(m->config, "cc_model_filenames");
    if ((capability > 0 && is_there(&s, text_of(of_gpus, key))) ||
        is_there(&s, text_of(m->config, "default_model_filename")) ||
        is_there(&s, "model.engine") || (may_build(m) && is_there(&s, "model.ini")))
        return STRATA_OK;
    err->status = STRATA_ENOTFOUND;
    snprintf(err->message, sizeof err->message,
             "version %" PRIu64 " has no engine; looked for %s: copy one there",
             m->version, s.looked);
    return STRATA_ENOTFOUND;
}

TRITONSERVER_Error *config_turns(struct model *m)
{
    const char *text = parameter(m, "turns");
    m->turns = !*text                 ? m->backend->turns
               : !strcmp(text, "yes") ? STRATA_TURNS_ON
                                      : STRATA_TURNS_OFF;
    if (m->turns != STRATA_TURNS_OFF || !*text || !strcmp(text, "no"))
        return NULL;
    return error_text(TRITONSERVER_ERROR_INVALID_ARG,
                      "%s: the parameter turns is '%s'; write yes or no, or leave it out",
                      m->name, text);
}

void config_device(const struct model *m, TRITONSERVER_InstanceGroupKind *kind,
                   int32_t *id)
{
    static const struct {
        const char *name;
        TRITONSERVER_InstanceGroupKind kind;
    } kinds[] = {{"KIND_CPU", TRITONSERVER_INSTANCEGROUPKIND_CPU},
                 {"KIND_GPU", TRITONSERVER_INSTANCEGROUPKIND_GPU},
                 {"KIND_MODEL", TRITONSERVER_INSTANCEGROUPKIND_MODEL}};
    const json_t *group = json_array_get(json_object_get(m->config, "instance_group"), 0);
    const json_t *gpu = json_array_get(json_object_get(group, "gpus"), 0);
    *id = gpu ? (int32_t)number_of(gpu) : 0;
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (!strcmp(text_of(group, "kind"), kinds[i].name))
            *kind = kinds[i].kind;
}

/* ---- tensors ----------------------------------------------------------------------- */

static json_t *make_tensor(const struct model *m, const struct tensor *t)
{
    json_t *dims = json_array();
    const int first = m->batched;
    for (int i = first; i < t->rank; i++)
        json_array_append_new(dims, json_integer(t->dims[i]));
    json_t *out = json_pack("{s:s, s:s, s:o}", "name", t->name, "data_type",
                            type_name(t->type), "dims", dims);
    if (first ==
        t->rank) { /* the server has no tensors without dims: one of 1 stands in */
        json_array_append_new(dims, json_integer(1));
        json_object_set_new(out, "reshape", json_pack("{s:[]}", "shape"));
    }
    return out;
}

static bool dims_agree(const struct tensor *t, int first, const json_t *dims)
{
    if (json_array_size(dims) != (size_t)(t->rank - first))
        return false;
    for (int i = first; i < t->rank; i++) {
        const int64_t theirs = number_of(json_array_get(dims, (size_t)(i - first)));
        if (theirs != t->dims[i] && t->dims[i] >= 0)
            return false;
    }
    return true;
}

static TRITONSERVER_Error *compare(const struct model *m, const struct tensor *t,
                                   const json_t *theirs)
{
    char ours[256];
    const json_t *reshape = json_object_get(theirs, "reshape"),
                 *dims = json_object_get(reshape ? reshape : theirs,
                                         reshape ? "shape" : "dims");
    if (!strcmp(text_of(theirs, "data_type"), type_name(t->type)) &&
        dims_agree(t, m->batched, dims))
        return NULL;
    char *shape = json_dumps(dims, JSON_COMPACT);
    tensor_text(ours, sizeof ours, t, m->batched);
    TRITONSERVER_Error *error = error_text(
        TRITONSERVER_ERROR_INVALID_ARG,
        "%s: tensor '%s' is %s %s in the config, %s%s in the engine; mend or leave out "
        "its entry",
        m->name, t->name, text_of(theirs, "data_type"), shape ? shape : "", ours,
        m->batched ? " beside the batch" : "");
    free(shape);
    return error;
}

static const struct tensor *find_tensor(const struct tensor *t, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(t[i].name, name))
            return &t[i];
    return NULL;
}

/* The entries that are there. */
static TRITONSERVER_Error *compare_all(const struct model *m, const char *kind,
                                       const struct tensor *t, int n)
{
    size_t i;
    json_t *theirs;
    TRITONSERVER_Error *error = NULL;
    json_array_foreach(json_object_get(m->config, kind), i, theirs)
    {
        const struct tensor *ours = find_tensor(t, n, text_of(theirs, "name"));
        if (error)
            break;
        error =
            ours ? compare(m, ours, theirs)
                 : error_text(TRITONSERVER_ERROR_INVALID_ARG,
                              "%s: the engine has no %s '%s'; its first is '%s'", m->name,
                              kind, text_of(theirs, "name"), n ? t->name : "");
    }
    return error;
}

static bool names(const json_t *list, const char *name)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) if (!strcmp(text_of(one, "name"), name)) return true;
    return false;
}

/* A config may leave outputs out, but no input. */
static void complete_tensors(struct model *m)
{
    json_t *in = json_object_get(m->config, "input"),
           *out = json_object_get(m->config, "output");
    const bool any = json_array_size(out) > 0;
    for (int i = 0; i < m->n_in; i++)
        if (!names(in, m->tensors[i].name))
            json_array_append_new(in, make_tensor(m, &m->tensors[i]));
    for (int i = m->n_in; i < m->n_in + m->n_out && !any; i++)
        json_array_append_new(out, make_tensor(m, &m->tensors[i]));
}

static TRITONSERVER_Error *require_inputs(const struct model *m)
{
    for (int i = 0; i < m->n_in; i++)
        if (!names(json_object_get(m->config, "input"), m->tensors[i].name))
            return error_text(TRITONSERVER_ERROR_INVALID_ARG,
                              "%s: the config lacks input '%s', and the server may not "
                              "complete it",
                              m->name, m->tensors[i].name);
    return NULL;
}

/* ---- the batch --------------------------------------------------------------------- */

/* 0 beside tensors says that shapes hold the batch; 0 alone, nothing. */
static TRITONSERVER_Error *settle_batch(struct model *m, bool complete)
{
    const int64_t theirs = number_of(json_object_get(m->config, "max_batch_size"));
    const bool silent = theirs == 0 && complete &&
                        json_array_size(json_object_get(m->config, "input")) == 0;
    if (theirs == 0 && !(silent && m->batched)) {
        m->batched = false;
        return NULL;
    }
    if (!m->batched)
        return error_text(TRITONSERVER_ERROR_INVALID_ARG,
                          "%s: max_batch_size is %" PRId64 ", but not all tensors of the "
                          "engine have rows that run apart: write 0",
                          m->name, theirs);
    if (theirs > m->batch)
        return error_text(TRITONSERVER_ERROR_INVALID_ARG,
                          "%s: max_batch_size is %" PRId64 "; the engine takes %" PRId64
                          " rows: write at most that, or build it for more",
                          m->name, theirs, m->batch);
    if (theirs == 0)
        json_object_set_new(m->config, "max_batch_size", json_integer(m->batch));
    return NULL;
}

/* ---- who batches ------------------------------------------------------------------- */

static json_t *dynamic_batching(const struct model *m)
{
    const int64_t most = number_of(json_object_get(m->config, "max_batch_size"));
    json_t *sizes = json_array();
    for (int i = 0; i < m->n_batches; i++)
        if (m->batches[i] <= most)
            json_array_append_new(sizes, json_integer(m->batches[i]));
    return json_pack("{s:o}", "preferred_batch_size", sizes);
}

static json_t *sequence_batching(void)
{
    return json_pack("{s:{}, s:[{s:s, s:[{s:s, s:[i, i]}]}]}", "direct", "control_input",
                     "name", "STRATA_READY", "control", "kind", "CONTROL_SEQUENCE_READY",
                     "int32_false_true", 0, 1);
}

static void complete_scheduler(struct model *m)
{
    const int64_t most = number_of(json_object_get(m->config, "max_batch_size"));
    if (json_object_get(m->config, "dynamic_batching") ||
        json_object_get(m->config, "sequence_batching"))
        return;
    if (m->has_states)
        json_object_set_new(m->config, "sequence_batching", sequence_batching());
    else if (m->batched && most > 1)
        json_object_set_new(m->config, "dynamic_batching", dynamic_batching(m));
}

static void find_ready(struct model *m, const json_t *batching)
{
    size_t i, k;
    json_t *input, *control;
    json_array_foreach(json_object_get(batching, "control_input"), i, input)
        json_array_foreach(
            json_object_get(input, "control"), k,
            control) if (!strcmp(text_of(control, "kind"), "CONTROL_SEQUENCE_READY"))
            m->ready = text_of(input, "name");
}

static TRITONSERVER_Error *check_scheduler(struct model *m)
{
    const json_t *policy = json_object_get(m->config, "model_transaction_policy"),
                 *sequences = json_object_get(m->config, "sequence_batching");
    const char *why = NULL;
    find_ready(m, sequences);
    if (json_is_true(json_object_get(policy, "decoupled")))
        why = "decoupled: every request has one answer; take it out";
    else if (sequences && !m->has_states)
        why = "sequence_batching, but the network has no [state]; take it out";
    else if (m->has_states && !sequences)
        why = "the network has states: it needs sequence_batching";
    else if (json_object_get(sequences, "oldest"))
        why = "sequence_batching by the oldest strategy; states stay in their row of the "
              "batch: write direct";
    else if (m->has_states && m->batched && m->batch > 1 && !m->ready)
        why = "sequence_batching of several rows needs a control_input of "
              "CONTROL_SEQUENCE_READY";
    return why ? error_text(TRITONSERVER_ERROR_UNSUPPORTED, "%s: %s", m->name, why)
               : NULL;
}

/* ---- settling ---------------------------------------------------------------------- */

static TRITONSERVER_Error *hand_over(const struct model *m)
{
    TRITONSERVER_Message *message = NULL;
    char *text = json_dumps(m->config, JSON_COMPACT);
    if (!text)
        return error_memory("a model's config");
    TRITONSERVER_Error *error =
        TRITONSERVER_MessageNewFromSerializedJson(&message, text, strlen(text));
    if (!error) {
        error = TRITONBACKEND_ModelSetConfig(m->triton, 1, message);
        forget(TRITONSERVER_MessageDelete(message));
    }
    free(text);
    return error;
}

static TRITONSERVER_Error *complete_config(struct model *m)
{
    static const char *const lists[] = {"input", "output"};
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        if (!json_is_array(json_object_get(m->config, lists[i])))
            json_object_set_new(m->config, lists[i], json_array());
    complete_tensors(m);
    complete_scheduler(m);
    TRITONSERVER_Error *error = require_inputs(m); /* there was memory for them */
    return error ? error : hand_over(m);
}

TRITONSERVER_Error *config_settle(struct model *m)
{
    bool complete = false;
    TRITONSERVER_Error *error =
        TRITONBACKEND_ModelAutoCompleteConfig(m->triton, &complete);
    if (!error)
        error = settle_batch(m, complete);
    if (!error)
        error = compare_all(m, "input", m->tensors, m->n_in);
    if (!error)
        error = compare_all(m, "output", m->tensors + m->n_in, m->n_out);
    if (!error)
        error = complete ? complete_config(m) : require_inputs(m);
    return error ? error : check_scheduler(m);
}
