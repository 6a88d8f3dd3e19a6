/* SPDX-License-Identifier: Apache-2.0
 *
 * A model of a network in the scratch folder, served by the backend in this process, and
 * the same engine beside it for the answers it should give.
 */
#ifndef TESTS_SERVING_SERVING_NET_H
#define TESTS_SERVING_SERVING_NET_H

#include <sys/stat.h>

#include "tests/engine/batch_net.h"
#include "tests/serving/host.h"

enum { ROW = 3 * 6 * 6, UNITS = 7, BATCH = 8 };

struct served {
    struct net net;
    strata_context *context;
    TRITONBACKEND_Backend *backend;
    TRITONBACKEND_Model *model;
    TRITONBACKEND_ModelInstance *instance;
    char text[2048]; /* of the last call */
};

static inline void fill_row(float *x, int n, unsigned seed)
{
    for (int i = 0; i < n; i++) {
        seed = seed * 1103515245u + 12345u;
        x[i] = (float)(seed >> 16 & 0x7fff) / 16384 - 1;
    }
}

/* The engine as version 1 of the model `net`. */
static inline void make_model(struct served *s, const char *profile, const char *shape,
                              const char *outputs, const char *layers)
{
    strata_error err;
    memset(s, 0, sizeof *s);
    OK(open_net(&s->net, profile, shape, outputs, layers, &err));
    OK(strata_context_create(&s->context, s->net.engine, s->net.handle, &err));
    mkdir(in_scratch("net"), 0700);
    mkdir(in_scratch("net/1"), 0700);
    OK(strata_engine_save(s->net.engine, in_scratch("net/1/model.engine"), &err));
}

static inline void serve(struct served *s, const char *config)
{
    s->backend = host_open("", s->text);
    cr_assert_not_null(s->backend, "%s", s->text);
    s->model = host_load(s->backend, scratch, "net", config, true, s->text);
    cr_assert_not_null(s->model, "%s", s->text);
    s->instance = host_instance(s->model, TRITONSERVER_INSTANCEGROUPKIND_CPU, 0, s->text);
    cr_assert_not_null(s->instance, "%s", s->text);
}

static inline void stop_model(struct served *s)
{
    host_end(s->instance);
    host_unload(s->model);
    host_close(s->backend);
    cr_expect_eq(host_objects(), 0, "%ld objects of the server are left", host_objects());
}

static inline void close_served(struct served *s)
{
    stop_model(s);
    strata_context_destroy(s->context);
    close_net(&s->net);
}

/* Of `rows` rows of the convolutions' input, wanting their output. */
static inline TRITONBACKEND_Request request_of(const float *x, int64_t rows)
{
    return (TRITONBACKEND_Request){
        .inputs = {{.name = "x",
                    .type = TRITONSERVER_TYPE_FP32,
                    .dims = {rows, 3, 6, 6},
                    .rank = 4,
                    .n = 1,
                    .data = {x},
                    .bytes = {(uint64_t)rows * ROW * sizeof *x}}},
        .n_inputs = 1,
        .outputs = {"prob"},
        .n_outputs = 1};
}

/* What the engine itself makes of as many rows at once. */
static inline void expected(struct served *s, const float *x, float *y, int64_t rows)
{
    strata_error err;
    OK(strata_context_set_batch(s->context, rows, &err));
    OK(strata_copy_in(s->context, 0, x, &err));
    OK(strata_context_run(s->context, &err));
    OK(strata_copy_out(s->context, 1, y, &err));
}

static inline bool answered(const TRITONBACKEND_Request *r, const float *y, int64_t rows)
{
    return !r->text[0] && r->success && r->n_answers == 1 &&
           r->answers[0].bytes == (uint64_t)rows * UNITS * sizeof *y &&
           memcmp(r->answers[0].data, y, r->answers[0].bytes) == 0;
}

#endif /* TESTS_SERVING_SERVING_NET_H */
