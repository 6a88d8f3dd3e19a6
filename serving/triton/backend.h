/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the backend: what its files share.
 *
 *   backend   the entries that the server calls, options, log, metrics' families
 *   model     one version of a model: engines by device, tensors, memory reports
 *   config    the server's description of a model, completed from the engine, or compared
 *   tensor    a binding as the server sees it
 *   instance  a context; its runs
 *   sequence  runs of networks with states, whose rows are sequences
 *   io        a request's memory to a part, an answer's outputs
 *   answer    a request and its response, sent and released once
 *   sender    threads that help to send the answers of a batch
 *
 * It sees the public headers alone, as any application.
 */
#ifndef SERVING_TRITON_BACKEND_H
#define SERVING_TRITON_BACKEND_H

#include <jansson.h>
#include <pthread.h>

#include <strata/parts.h>
#include <strata/sizes.h>
#include <strata/state.h>

#include "serving/triton/triton_abi.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ---- backend.c --------------------------------------------------------------------- */

enum metric {
    METRIC_ROWS,    /* that were run, by the batch that the plan is for */
    METRIC_PADDING, /* rows that were computed for nothing */
    METRIC_COPIED_IN,
    METRIC_COPIED_OUT,
    METRIC_CROSS_DEVICE,
    METRIC_IN_PLACE, /* runs */
    METRIC_COUNT
};

struct backend {
    strata_registry *registry;
    int threads; /* of a run; 0: as the engine says */
    int turns;   /* of instances on a GPU, where the model does not say: STRATA_TURNS_* */
    struct senders *senders;
    TRITONSERVER_MetricFamily *families[METRIC_COUNT]; /* NULL: the server has none */
};

/* The server's error of one of ours: its first line; the whole of it goes to the log. */
TRITONSERVER_Error *error_of(const strata_error *err);
TRITONSERVER_Error *error_text(TRITONSERVER_Error_Code code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
TRITONSERVER_Error *error_memory(const char *what);
void server_log(TRITONSERVER_LogLevel level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Of a call that nothing hangs on. */
void forget(TRITONSERVER_Error *error);
/* The JSON of a message; NULL: it cannot be read. */
json_t *json_of(TRITONSERVER_Message *message);

/* ---- tensor.c ---------------------------------------------------------------------- */

/* A binding, its dims in the order of its memory. The name lives as long as the engine.
 */
struct tensor {
    const char *name;
    TRITONSERVER_DataType type;
    int32_t rank;
    int32_t order[STRATA_MAX_RANK]; /* the binding's dim at each place */
    int64_t dims[STRATA_MAX_RANK];  /* -1: it varies */
};

const char *type_name(TRITONSERVER_DataType type); /* "TYPE_FP32", as configs have it */
/* EUNSUPPORTED: the server has no such tensors. */
int tensor_describe(struct tensor *out, const strata_binding *b, strata_error *err);
/* "FP32 8 x -1 x 3", from dim `first` on. */
void tensor_text(char *out, size_t size, const struct tensor *t, int first);

/* ---- model.c ----------------------------------------------------------------------- */

/* An engine on a device, shared by the device's instances. */
struct placed {
    struct placed *next;
    char device[32]; /* "cuda:0" */
    strata_handle *handle;
    strata_engine *engine;
    uint64_t bytes; /* of weights */
};

struct model {
    TRITONBACKEND_Model *triton;
    struct backend *backend;
    const char *name, *folder;
    uint64_t version;
    json_t *config;
    bool batched; /* the first dim of all tensors counts the rows of requests */
    bool varies;  /* some dims have several sizes, beside the batch */
    bool has_states;
    const char *ready; /* the input that says which rows have a sequence's next step */
    int turns;         /* of instances on a GPU: STRATA_TURNS_* */
    int64_t batch;     /* rows that a run takes at most */
    int n_in, n_out;
    struct tensor *tensors; /* inputs first */
    int n_batches;
    int64_t *batches; /* that the engine has plans for, ascending */
    TRITONSERVER_Metric *metrics[METRIC_COUNT];
    TRITONSERVER_Metric **rows; /* of METRIC_ROWS, for each of the batches */
    pthread_mutex_t lock;       /* guards the list */
    struct placed *placed;
};

TRITONSERVER_Error *model_create(struct model **out, TRITONBACKEND_Model *triton,
                                 struct backend *backend);
void model_destroy(struct model *m);
/* The engine for instances of a kind and device, loaded if none of them has yet. */
TRITONSERVER_Error *model_engine(struct model *m, TRITONSERVER_InstanceGroupKind kind,
                                 int32_t id, struct placed **out);
/* `bytes` on a device, for reports of memory; NULL: none, or no memory for it. */
TRITONSERVER_BufferAttributes *memory_usage(const char *device, uint64_t bytes);

/* ---- config.c ---------------------------------------------------------------------- */

/* Fills in what the model's config lacks, where the server allows it, and refuses what
 * contradicts the engine. */
TRITONSERVER_Error *config_settle(struct model *m);
/* Whether instances take turns: as its parameter says, or the backend's option. */
TRITONSERVER_Error *config_turns(struct model *m);
/* The file of the model's version for a device of a compute capability times ten (0: the
 * host): the path in `out`, and what was looked for. ENOTFOUND. */
int config_engine_file(char *out, size_t size, const struct model *m, int capability,
                       strata_error *err);
/* Where the model's first instance is to run; nothing, if the config leaves it open. */
void config_device(const struct model *m, TRITONSERVER_InstanceGroupKind *kind,
                   int32_t *id);

/* ---- instance.c -------------------------------------------------------------------- */

struct answer;

struct instance {
    TRITONBACKEND_ModelInstance *triton;
    struct model *model;
    const struct placed *placed;
    strata_handle *handle;
    strata_context *context;
    bool on_gpu;
    int32_t device;         /* its number */
    struct answer *answers; /* room for n_answers requests */
    uint32_t n_answers;
    strata_part *parts;
    struct answer **of_part;
    struct sequence *sequence; /* NULL: the network has no states, or one row */
    strata_context_stats counted;
};

TRITONSERVER_Error *instance_create(struct instance **out,
                                    TRITONBACKEND_ModelInstance *triton, struct model *m);
void instance_destroy(struct instance *i);
TRITONSERVER_Error *instance_execute(struct instance *i, TRITONBACKEND_Request **requests,
                                     uint32_t n);
TRITONSERVER_Error *instance_ready(const struct instance *i);
/* Runs answers' parts and settles each; what failed is sent. */
void instance_run(struct instance *i, strata_part *parts, struct answer **of, size_t n);

/* ---- sender.c ---------------------------------------------------------------------- */

/* At most so many threads; NULL: no memory, and each instance sends by itself. */
struct senders *senders_open(int most);
void senders_close(struct senders *s);

/* ---- sequence.c -------------------------------------------------------------------- */

/* Several rows that are a sequence each. */
int sequence_open(struct instance *i, strata_error *err);
void sequence_close(struct instance *i);
void sequence_run(struct instance *i, uint32_t n);
/* Whether a request begins a sequence, or ends one. */
bool sequence_flag(TRITONBACKEND_Request *request, uint32_t flag);

#endif /* SERVING_TRITON_BACKEND_H */
