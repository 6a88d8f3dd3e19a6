/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests through the backend: answers are those of the engine bit for bit, what is
 * wrong fails alone, and every request is answered once and released once whatever fails.
 */
#include <pthread.h>

#include "serving/triton/backend.h"
#include "tests/serving/serving_net.h"

TestSuite(triton, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

static const char batches[] = "[profile]\nN = 1, 4, 8\n";

static void make_convolutions(struct served *s)
{
    make_model(s, batches, "N x 3 x 6 x 6", "prob", row_net);
}

Test(triton, each_request_has_the_answer_of_the_engine)
{
    static const int64_t rows[][4] = {{1, 0}, {8, 0}, {3, 5}, {1, 2, 3, 2}, {2, 2}};
    static float x[BATCH * ROW], y[BATCH * UNITS];
    struct served s;
    make_convolutions(&s);
    serve(&s, NULL);
    fill_row(x, BATCH * ROW, 1);
    for (size_t k = 0; k < ARRAY_LENGTH(rows); k++) {
        TRITONBACKEND_Request r[4];
        uint32_t n = 0;
        for (int64_t at = 0; n < 4 && rows[k][n]; at += rows[k][n++])
            r[n] = request_of(x + at * ROW, rows[k][n]);
        expected(&s, x, y, rows[k][0] + rows[k][1] + rows[k][2] + rows[k][3]);
        host_execute(s.instance, r, n, s.text);
        cr_assert_eq(s.text[0], 0, "%s", s.text);
        int64_t at = 0;
        for (uint32_t i = 0; i < n; at += rows[k][i++]) {
            cr_expect(answered(&r[i], y + at * UNITS, rows[k][i]), "case %zu, %u: %s", k,
                      i, r[i].text);
            cr_expect(r[i].times[0] > 0 && r[i].times[0] <= r[i].times[1] &&
                      r[i].times[1] < r[i].times[2] && r[i].times[2] <= r[i].times[3]);
            host_clear(&r[i]);
        }
    }
    cr_expect_eq(s.instance->report.rows, 1 + 8 + 8 + 8 + 4);
    cr_expect_eq(s.instance->report.batches, ARRAY_LENGTH(rows));
    close_served(&s);
}

/* An input in pieces that end inside of rows, some of them empty. */
static void cut(TRITONBACKEND_Input *in)
{
    static const uint64_t ends[] = {0, 4, 400, 400, 404, 1200, 1292};
    const char *data = in->data[0];
    const uint64_t whole = in->bytes[0];
    uint64_t begin = 0;
    in->n = 0;
    for (size_t i = 0; i <= ARRAY_LENGTH(ends); i++) {
        const uint64_t end = i < ARRAY_LENGTH(ends) ? ends[i] : whole;
        in->data[in->n] = data + begin;
        in->bytes[in->n++] = end - begin;
        begin = end;
    }
}

Test(triton, inputs_may_come_in_pieces_and_outputs_be_unwanted)
{
    static float x[BATCH * ROW], y[BATCH * UNITS];
    struct served s;
    make_convolutions(&s);
    serve(&s, NULL);
    fill_row(x, BATCH * ROW, 2);
    expected(&s, x, y, BATCH);
    TRITONBACKEND_Request r[] = {request_of(x, 3), request_of(x + 3 * ROW, 4),
                                 request_of(x + 7 * ROW, 1)};
    cut(&r[0].inputs[0]);
    r[1].n_outputs = 0;
    host_execute(s.instance, r, 3, s.text);
    cr_expect(answered(&r[0], y, 3), "%s", r[0].text);
    cr_expect(r[1].success && r[1].n_answers == 0);
    cr_expect(answered(&r[2], y + 7 * UNITS, 1), "%s", r[2].text);
    for (int i = 0; i < 3; i++)
        host_clear(&r[i]);
    close_served(&s);
}

/* ---- what is wrong ----------------------------------------------------------------- */

static void set_rank(TRITONBACKEND_Request *r)
{
    r->inputs[0].rank = 3;
}
static void set_dim(TRITONBACKEND_Request *r)
{
    r->inputs[0].dims[3] = 5;
}
static void set_type(TRITONBACKEND_Request *r)
{
    r->inputs[0].type = TRITONSERVER_TYPE_INT32;
}
static void cut_short(TRITONBACKEND_Request *r)
{
    r->inputs[0].bytes[0] -= 4;
}
static void leave_out(TRITONBACKEND_Request *r)
{
    r->n_inputs = 0;
}
static void cancel(TRITONBACKEND_Request *r)
{
    r->cancelled = true;
}
static void ask_for_none(TRITONBACKEND_Request *r)
{
    r->outputs[0] = "none";
}
static void add_rows(TRITONBACKEND_Request *r)
{
    r->inputs[0].dims[0] = 9;
}
static void put_on_gpu(TRITONBACKEND_Request *r)
{
    r->inputs[0].kind = TRITONSERVER_MEMORY_GPU;
}

static const struct wrong {
    void (*make)(TRITONBACKEND_Request *r);
    TRITONSERVER_Error_Code code;
    const char *text;
} wrongs[] = {
    {set_rank, TRITONSERVER_ERROR_INVALID_ARG,
     "'x' is TYPE_FP32 2 x 3 x 6; the engine's"},
    {set_dim, TRITONSERVER_ERROR_INVALID_ARG, "'x' is TYPE_FP32 2 x 3 x 6 x 5"},
    {set_type, TRITONSERVER_ERROR_INVALID_ARG, "'x' is TYPE_INT32"},
    {cut_short, TRITONSERVER_ERROR_INVALID_ARG, "'x': 860 bytes; 2 rows are 864"},
    {leave_out, TRITONSERVER_ERROR_INVALID_ARG, "no such input"},
    {cancel, TRITONSERVER_ERROR_CANCELLED, "cancelled"},
    {ask_for_none, TRITONSERVER_ERROR_INVALID_ARG, "no output 'none'"},
    {add_rows, TRITONSERVER_ERROR_INVALID_ARG, "'x' has 9 rows; the engine takes 1 to 8"},
    {put_on_gpu, TRITONSERVER_ERROR_INVALID_ARG, "'x': device memory for an engine of"},
};

Test(triton, what_is_wrong_fails_alone_and_by_name)
{
    static float x[BATCH * ROW], y[BATCH * UNITS];
    struct served s;
    make_convolutions(&s);
    serve(&s, NULL);
    fill_row(x, BATCH * ROW, 3);
    expected(&s, x, y, BATCH);
    for (size_t k = 0; k < ARRAY_LENGTH(wrongs); k++) {
        TRITONBACKEND_Request r[] = {request_of(x, 1), request_of(x + ROW, 2),
                                     request_of(x + 3 * ROW, 5)};
        wrongs[k].make(&r[1]);
        host_execute(s.instance, r, 3, s.text);
        cr_assert_eq(s.text[0], 0, "%s", s.text);
        cr_expect(answered(&r[0], y, 1), "case %zu: %s", k, r[0].text);
        cr_expect(answered(&r[2], y + 3 * UNITS, 5), "case %zu: %s", k, r[2].text);
        cr_expect(strstr(r[1].text, wrongs[k].text) && r[1].code == wrongs[k].code,
                  "case %zu: %d: %s", k, (int)r[1].code, r[1].text);
        cr_expect(r[1].reported == 1 && !r[1].success);
        for (int i = 0; i < 3; i++)
            host_clear(&r[i]);
    }
    close_served(&s);
}

Test(triton, a_lost_device_is_unavailable_by_name)
{
    strata_error err = {.status = STRATA_EDEVICELOST,
                        .message = "cuda:0 is lost: xid 79\n  restart the process"};
    TRITONSERVER_Error *e = error_of(&err);
    cr_expect_eq(TRITONSERVER_ErrorCode(e), TRITONSERVER_ERROR_UNAVAILABLE);
    cr_expect_str_eq(TRITONSERVER_ErrorMessage(e), "cuda:0 is lost: xid 79");
    cr_expect_eq(host_lines(TRITONSERVER_LOG_ERROR), 1, "the whole of it is in the log");
    TRITONSERVER_ErrorDelete(e);
}

/* ---- calls of the server fail ------------------------------------------------------ */

/* All of a model's life, with the k-th call failing; whether anything noticed. */
static bool live_with_fault(struct served *s, const float *x, const float *y, long k)
{
    bool well = false;
    TRITONBACKEND_Request r[] = {request_of(x, 3), request_of(x + 3 * ROW, 5)};
    host_fail_at(k);
    s->instance = NULL;
    s->model = NULL;
    if ((s->backend = host_open("", s->text)) && !s->text[0] &&
        (s->model = host_load(s->backend, scratch, "net", NULL, true, s->text)) &&
        (s->instance =
             host_instance(s->model, TRITONSERVER_INSTANCEGROUPKIND_CPU, 0, s->text))) {
        host_execute(s->instance, r, 2, s->text);
        well = !s->text[0] && !r[0].text[0] && !r[1].text[0];
        cr_expect(!well ||
                      (memcmp(r[0].answers[0].data, y, 3 * UNITS * 4) == 0 &&
                       memcmp(r[1].answers[0].data, y + 3 * UNITS, 5 * UNITS * 4) == 0),
                  "call %ld fails, and answers are wrong", k);
        host_clear(&r[0]);
        host_clear(&r[1]);
    }
    return well;
}

static void end_after_fault(struct served *s)
{
    host_fail_at(0);
    if (s->instance)
        host_end(s->instance);
    if (s->model)
        host_unload(s->model);
    if (s->backend)
        host_close(s->backend);
}

Test(triton, every_call_of_the_server_may_fail)
{
    static float x[BATCH * ROW], y[BATCH * UNITS];
    struct served s;
    long noticed = 0;
    make_convolutions(&s);
    fill_row(x, BATCH * ROW, 4);
    expected(&s, x, y, BATCH);
    host_fail_at(0);
    cr_assert(live_with_fault(&s, x, y, 0), "%s", s.text);
    const long calls = host_fail_at(0);
    end_after_fault(&s);
    cr_assert(calls > 60, "%ld calls", calls);
    for (long k = 1; k <= calls; k++) {
        noticed += !live_with_fault(&s, x, y, k);
        end_after_fault(&s);
        cr_expect_eq(host_objects(), 0, "call %ld fails: %ld objects are left", k,
                     host_objects());
    }
    cr_expect(noticed > 20 && noticed < calls, "%ld of %ld", noticed, calls);
    strata_context_destroy(s.context);
    close_net(&s.net);
}

/* ---- what is told ------------------------------------------------------------------ */

Test(triton, memory_and_metrics_are_those_of_the_engine)
{
    static float x[BATCH * ROW];
    struct served s;
    make_convolutions(&s);
    serve(&s, NULL);
    fill_row(x, BATCH * ROW, 5);
    cr_expect(s.model->report.memory >= strata_engine_weight_bytes(s.net.engine));
    cr_expect(s.instance->report.memory >= strata_engine_arena_bytes(s.net.engine));
    TRITONBACKEND_Request r[] = {request_of(x, 3), request_of(x + 3 * ROW, 2)};
    host_execute(s.instance, r, 2, s.text);
    cr_expect_eq(host_metric("strata_batch_rows_total", "version=1,batch=8"), 5);
    cr_expect_eq(host_metric("strata_batch_rows_total", "version=1,batch=4"), 0);
    cr_expect_eq(host_metric("strata_padding_rows_total", "model=net,version=1"), 3);
    cr_expect_eq(host_metric("strata_copied_in_bytes_total", "model=net"), 5 * ROW * 4);
    cr_expect_eq(host_metric("strata_copied_out_bytes_total", "model=net"),
                 5 * UNITS * 4);
    cr_expect_eq(host_metric("strata_in_place_runs_total", "model=net"), 0);
    host_clear(&r[0]);
    host_clear(&r[1]);
    close_served(&s);
}

Test(triton, a_full_aligned_batch_is_read_and_written_in_place)
{
    enum { WIDE = 64 * 64 * 3 };
    static _Alignas(256) float x[8 * WIDE], y[8 * WIDE];
    struct served s;
    make_model(&s, "", "8 x 3 x 64 x 64", "y",
               "[layer y]\ntype = Activation\nkind = relu\n");
    serve(&s, NULL);
    fill_row(x, 8 * WIDE, 6);
    TRITONBACKEND_Request r = {.inputs = {{.name = "x",
                                           .type = TRITONSERVER_TYPE_FP32,
                                           .dims = {8, 3, 64, 64},
                                           .rank = 4,
                                           .n = 1,
                                           .data = {x},
                                           .bytes = {sizeof x}}},
                               .n_inputs = 1,
                               .outputs = {"y"},
                               .n_outputs = 1,
                               .place = y};
    host_execute(s.instance, &r, 1, s.text);
    cr_assert_eq(r.text[0], 0, "%s", r.text);
    for (int i = 0; i < 8 * WIDE; i++)
        cr_assert_eq(y[i], x[i] > 0 ? x[i] : 0);
    cr_expect_eq(host_metric("strata_in_place_runs_total", "model=net"), 1);
    cr_expect_eq(host_metric("strata_copied_in_bytes_total", "model=net"), 0);
    cr_expect_eq(host_metric("strata_copied_out_bytes_total", "model=net"), 0);
    host_clear(&r);
    close_served(&s);
}

Test(triton, a_server_without_metrics_serves)
{
    static float x[ROW], y[UNITS];
    struct served s;
    host_without_metrics(true);
    make_convolutions(&s);
    serve(&s, NULL);
    fill_row(x, ROW, 7);
    cr_expect_null(TRITONBACKEND_ModelInstanceReady(s.instance), "it is ready");
    expected(&s, x, y, 1);
    TRITONBACKEND_Request r = request_of(x, 1);
    host_execute(s.instance, &r, 1, s.text);
    cr_expect(answered(&r, y, 1), "%s", r.text);
    host_clear(&r);
    close_served(&s);
}

/* ---- beside each other ------------------------------------------------------------- */

struct client {
    TRITONBACKEND_ModelInstance *instance;
    const float *x, *y;
    int wrong;
};

static void *ask(void *arg)
{
    struct client *c = arg;
    char text[2048];
    for (int k = 0; k < 40; k++) {
        TRITONBACKEND_Request r = request_of(c->x + k % BATCH * ROW, 1);
        host_execute(c->instance, &r, 1, text);
        c->wrong += !answered(&r, c->y + k % BATCH * UNITS, 1);
        host_clear(&r);
    }
    return NULL;
}

Test(triton, instances_run_beside_each_other)
{
    static float x[BATCH * ROW], y[BATCH * UNITS];
    struct served s;
    struct client clients[3];
    pthread_t threads[3];
    make_convolutions(&s);
    serve(&s, NULL);
    fill_row(x, BATCH * ROW, 8);
    for (int i = 0; i < BATCH; i++)
        expected(&s, x + i * ROW, y + i * UNITS, 1);
    for (int i = 0; i < 3; i++) {
        clients[i] = (struct client){.x = x, .y = y, .instance = s.instance};
        if (i > 0)
            clients[i].instance =
                host_instance(s.model, TRITONSERVER_INSTANCEGROUPKIND_CPU, 0, s.text);
        cr_assert_eq(pthread_create(&threads[i], NULL, ask, &clients[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(clients[i].wrong, 0);
        if (i > 0)
            host_end(clients[i].instance);
    }
    close_served(&s);
}

/* ---- dims that vary, sequences ----------------------------------------------------- */

Test(triton, requests_of_unlike_shapes_run_apart)
{
    enum { T = 12, WIDTH = 4 };
    static const int64_t lengths[] = {12, 5, 12, 1, 5};
    static float x[5][T * WIDTH];
    struct served s;
    TRITONBACKEND_Request r[5];
    make_model(&s, "[profile]\nN = 1, 8\nT = 1..12: 4, 12\n", "N x T x 4", "y",
               "[layer y]\ntype = Softmax\naxis = 1\n");
    serve(&s, NULL);
    cr_expect(strstr(s.model->config, "\"dims\":[-1,4]"), "%s", s.model->config);
    for (int i = 0; i < 5; i++) {
        fill_row(x[i], T * WIDTH, (unsigned)i);
        r[i] = request_of(x[i], 1);
        r[i].inputs[0].rank = 3;
        r[i].inputs[0].dims[1] = lengths[i];
        r[i].inputs[0].dims[2] = WIDTH;
        r[i].inputs[0].bytes[0] = (uint64_t)lengths[i] * WIDTH * 4;
        r[i].outputs[0] = "y";
    }
    host_execute(s.instance, r, 5, s.text);
    for (int i = 0; i < 5; i++) {
        float y[T * WIDTH];
        strata_error err;
        cr_assert_eq(r[i].text[0], 0, "%s", r[i].text);
        OK(strata_context_set_batch(s.context, 1, &err));
        OK(strata_context_set_dimension(s.context, "T", lengths[i], &err));
        OK(strata_copy_in(s.context, 0, x[i], &err));
        OK(strata_context_run(s.context, &err));
        OK(strata_copy_out(s.context, 1, y, &err));
        cr_expect_eq(r[i].answers[0].dims[1], lengths[i]);
        cr_expect_eq(r[i].answers[0].bytes, (uint64_t)lengths[i] * WIDTH * 4);
        cr_expect_eq(memcmp(r[i].answers[0].data, y, r[i].answers[0].bytes), 0, "%d", i);
        host_clear(&r[i]);
    }
    close_served(&s);
}

/* A running sum, which begins at 1.5 in each row. */
static const char total[] = "[state total]\nshape = 2 x 3\nnext = sum\nvalue = 1.5\n"
                            "[layer sum]\ntype = ElementWise\nop = sum\n"
                            "inputs = total, x\n"
                            "[layer y]\ntype = Activation\nkind = relu\ninputs = sum\n";

static TRITONBACKEND_Request step(const float *x, const int32_t *ready, uint32_t flags)
{
    return (TRITONBACKEND_Request){.inputs = {{.name = "x",
                                               .type = TRITONSERVER_TYPE_FP32,
                                               .dims = {1, 3},
                                               .rank = 2,
                                               .n = 1,
                                               .data = {x},
                                               .bytes = {12}},
                                              {.name = "STRATA_READY",
                                               .type = TRITONSERVER_TYPE_INT32,
                                               .dims = {1, 1},
                                               .rank = 2,
                                               .n = 1,
                                               .data = {ready},
                                               .bytes = {4}}},
                                   .n_inputs = 2,
                                   .outputs = {"y"},
                                   .n_outputs = 1,
                                   .flags = flags};
}

Test(triton, a_row_is_a_sequence_that_others_do_not_disturb)
{
    enum { START = TRITONSERVER_REQUEST_FLAG_SEQUENCE_START, END = 2 };
    /* Flags of each row's step, -1 without one; and its steps so far, 0: refused. */
    static const struct {
        int flags[2], runs[2];
    } turns[] = {
        {{START, START}, {1, 1}}, {{0, -1}, {2, 0}},    {{-1, 0}, {0, 2}},
        {{0, 0}, {3, 3}},         {{END, 0}, {4, 4}},   {{0, 0}, {0, 5}},
        {{START, 0}, {1, 6}},     {{0, START}, {2, 1}},
    };
    static const float x[2][3] = {{1, 2, 3}, {4, 5, 6}};
    static const int32_t yes = 1, no = 0;
    struct served s;
    make_model(&s, "", "2 x 3", "y", total);
    serve(&s, NULL);
    cr_expect(strstr(s.model->config, "\"sequence_batching\":{\"direct\":{}"), "%s",
              s.model->config);
    for (size_t k = 0; k < ARRAY_LENGTH(turns); k++) {
        TRITONBACKEND_Request r[2];
        for (int i = 0; i < 2; i++) {
            const int flags = turns[k].flags[i];
            r[i] = step(x[i], flags < 0 ? &no : &yes, flags < 0 ? 0 : (uint32_t)flags);
            r[i].n_outputs = flags >= 0;
        }
        host_execute(s.instance, r, 2, s.text);
        cr_assert_eq(s.text[0], 0, "%s", s.text);
        for (int i = 0; i < 2; i++) {
            const bool refused = turns[k].flags[i] >= 0 && turns[k].runs[i] == 0;
            cr_expect_eq(r[i].text[0] != 0, refused, "turn %zu: %s", k, r[i].text);
            for (int e = 0; e < 3 && turns[k].runs[i] > 0; e++)
                cr_expect_eq(((float *)r[i].answers[0].data)[e],
                             1.5f + (float)turns[k].runs[i] * x[i][e], "turn %zu, %d", k,
                             i);
            host_clear(&r[i]);
        }
    }
    close_served(&s);
}
