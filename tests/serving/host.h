/* SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for Triton Inference Server: the functions that the backend calls, and
 * requests by hand. It counts its objects, how often each request is answered and
 * released, and can let the k-th call fail.
 */
#ifndef TESTS_SERVING_HOST_H
#define TESTS_SERVING_HOST_H

#include "serving/triton/triton_abi.h"

enum { HOST_DIMS = 8, HOST_TENSORS = 4, HOST_PIECES = 16 };

struct TRITONSERVER_Error {
    TRITONSERVER_Error_Code code;
    char text[2048];
};

struct TRITONBACKEND_Input {
    const char *name;
    TRITONSERVER_DataType type;
    int64_t dims[HOST_DIMS];
    uint32_t rank, n;
    const void *data[HOST_PIECES];
    uint64_t bytes[HOST_PIECES];
    TRITONSERVER_MemoryType kind;
};

struct TRITONBACKEND_Output {
    char name[64];
    TRITONSERVER_DataType type;
    int64_t dims[HOST_DIMS];
    uint32_t rank;
    uint64_t bytes;
    void *data;
    TRITONBACKEND_Request *request;
};

struct TRITONBACKEND_Request {
    TRITONBACKEND_Input inputs[HOST_TENSORS];
    uint32_t n_inputs, n_outputs;
    const char *outputs[HOST_TENSORS]; /* that are wanted */
    bool cancelled;
    uint32_t flags;
    void *place; /* memory for the first output, aligned; NULL: the host's own */
    /* What came of it. */
    int sent, released, reported;
    bool success;
    uint64_t times[4];
    TRITONSERVER_Error_Code code; /* of a failure */
    char text[2048];              /* "": it went well */
    TRITONBACKEND_Output answers[HOST_TENSORS];
    uint32_t n_answers;
};

/* What the backend told of a model or an instance. */
struct host_report {
    uint64_t memory;
    uint64_t rows, batches; /* of statistics */
};

struct TRITONBACKEND_Backend {
    void *state;
};
struct TRITONBACKEND_Model {
    TRITONBACKEND_Backend *backend;
    void *state;
    char name[64], folder[512];
    char *config;     /* JSON */
    uint64_t version; /* 1 */
    bool complete;
    struct host_report report;
};
struct TRITONBACKEND_ModelInstance {
    TRITONBACKEND_Model *model;
    void *state;
    TRITONSERVER_InstanceGroupKind kind;
    int32_t device;
    struct host_report report;
};

/* A backend with the command line's options, as JSON; NULL: it failed, text says why. */
TRITONBACKEND_Backend *host_open(const char *cmdline, char *text);
void host_close(TRITONBACKEND_Backend *b);
/* A model of FOLDER/NAME; config may be NULL, an empty one. */
TRITONBACKEND_Model *host_load(TRITONBACKEND_Backend *b, const char *folder,
                               const char *name, const char *config, bool complete,
                               char *text);
void host_unload(TRITONBACKEND_Model *m);
TRITONBACKEND_ModelInstance *host_instance(TRITONBACKEND_Model *m,
                                           TRITONSERVER_InstanceGroupKind kind,
                                           int32_t device, char *text);
void host_end(TRITONBACKEND_ModelInstance *i);
/* "" and the requests are the backend's, or an error and they are not. */
void host_execute(TRITONBACKEND_ModelInstance *i, TRITONBACKEND_Request *r, uint32_t n,
                  char *text);
void host_clear(TRITONBACKEND_Request *r); /* its answers */

/* Objects of the host that the backend has not given back. */
long host_objects(void);
/* The k-th call from now on that can fail does; 0: none. Returns calls since the last. */
long host_fail_at(long k);
/* A counter's value; labels as "model=a,version=1", or a part of it. -1: there is none.
 */
double host_metric(const char *name, const char *labels);
/* The server has no metrics, from now on. */
void host_without_metrics(bool without);
/* How many lines the backend logged at a level. */
long host_lines(TRITONSERVER_LogLevel level);
/* The backend API that the host says it is of. */
extern uint32_t host_minor;

#endif /* TESTS_SERVING_HOST_H */
