/* SPDX-License-Identifier: Apache-2.0
 *
 * Models as the server describes them: completed from the engine, or refused when they
 * load, with both sides; files by device; options.
 */
#include <jansson.h>

#include "serving/triton/backend.h"
#include "tests/serving/serving_net.h"

TestSuite(triton_config, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

static void make_convolutions(struct served *s)
{
    make_model(s, "[profile]\nN = 1, 4, 8\n", "N x 3 x 6 x 6", "prob", conv_net);
    s->backend = host_open("", s->text);
    cr_assert_not_null(s->backend, "%s", s->text);
}

static void close_model(struct served *s)
{
    host_close(s->backend);
    cr_expect_eq(host_objects(), 0, "%ld objects of the server are left", host_objects());
    strata_context_destroy(s->context);
    close_net(&s->net);
}

static void load(struct served *s, const char *config, bool complete)
{
    s->model = host_load(s->backend, scratch, "net", config, complete, s->text);
}

#define X "{\"name\":\"x\",\"data_type\":\"TYPE_FP32\",\"dims\":[3,6,6]}"
#define PROB "{\"name\":\"prob\",\"data_type\":\"TYPE_FP32\",\"dims\":[7,1,1]}"

/* What is in a config, and what it becomes. */
static const struct completion {
    const char *config, *whole;
} completions[] = {
    {"{}", "{\"input\":[" X "],\"output\":[" PROB "],\"max_batch_size\":8,"
           "\"dynamic_batching\":{\"preferred_batch_size\":[1,4,8]}}"},
    {"{\"max_batch_size\":4}",
     "{\"input\":[" X "],\"output\":[" PROB "],\"max_batch_size\":4,"
     "\"dynamic_batching\":{\"preferred_batch_size\":[1,4]}}"},
    {"{\"max_batch_size\":8,\"dynamic_batching\":{\"max_queue_delay_microseconds\":5}}",
     "{\"input\":[" X "],\"output\":[" PROB "],\"max_batch_size\":8,"
     "\"dynamic_batching\":{\"max_queue_delay_microseconds\":5}}"},
    {"{\"max_batch_size\":0,\"input\":[{\"name\":\"x\",\"data_type\":\"TYPE_FP32\","
     "\"dims\":[\"8\",3,6,6]}]}",
     "{\"input\":[{\"name\":\"x\",\"data_type\":\"TYPE_FP32\",\"dims\":[\"8\",3,6,6]}],"
     "\"output\":[{\"name\":\"prob\",\"data_type\":\"TYPE_FP32\",\"dims\":[8,7,1,1]}],"
     "\"max_batch_size\":0}"},
};

Test(triton_config, is_completed_from_the_engine)
{
    struct served s;
    make_convolutions(&s);
    for (size_t k = 0; k < ARRAY_LENGTH(completions); k++) {
        load(&s, completions[k].config, true);
        cr_assert_not_null(s.model, "case %zu: %s", k, s.text);
        json_t *found = json_loads(s.model->config, 0, NULL),
               *wanted = json_loads(completions[k].whole, 0, NULL);
        cr_assert_not_null(wanted);
        cr_expect(json_equal(found, wanted), "case %zu: %s", k, s.model->config);
        json_decref(found);
        json_decref(wanted);
        host_unload(s.model);
    }
    close_model(&s);
}

static const struct refusal {
    const char *config;
    bool complete;
    const char *text;
} refusals[] = {
    {"{\"max_batch_size\":9}", true, "max_batch_size is 9; the engine takes 8 rows"},
    {"{\"input\":[{\"name\":\"x\",\"data_type\":\"TYPE_FP16\",\"dims\":[8,3,6,6]}]}",
     true,
     "'x' is TYPE_FP16 [8,3,6,6] in the config, TYPE_FP32 8 x 3 x 6 x 6 in the engine"},
    {"{\"max_batch_size\":8,\"input\":[{\"name\":\"x\",\"data_type\":\"TYPE_FP32\","
     "\"dims\":[3,6,7]}]}",
     true,
     "'x' is TYPE_FP32 [3,6,7] in the config, TYPE_FP32 3 x 6 x 6 beside the batch in "
     "the "
     "engine"},
    {"{\"max_batch_size\":8,\"output\":[{\"name\":\"y\",\"data_type\":\"TYPE_FP32\","
     "\"dims\":[7,1,1]}]}",
     true, "the engine has no output 'y'; its first is 'prob'"},
    {"{\"max_batch_size\":8}", false, "the config lacks input 'x'"},
    {"{\"model_transaction_policy\":{\"decoupled\":true}}", true, "decoupled"},
    {"{\"sequence_batching\":{}}", true, "the network has no [state]"},
    {"{\"instance_group\":[{\"kind\":\"KIND_MODEL\"}]}", true, "KIND_MODEL"},
    {"{\"parameters\":{\"turns\":{\"string_value\":\"1\"}}}", true,
     "the parameter turns is '1'; write yes or no"},
    {"{\"instance_group\":[{\"kind\":\"KIND_CPU\"}],"
     "\"default_model_filename\":\"cut.engine\"}",
     true, "net on host: 1/cut.engine"},
};

Test(triton_config, is_refused_with_both_sides)
{
    struct served s;
    make_convolutions(&s);
    const struct blob whole = slurp(in_scratch("net/1/model.engine"));
    FILE *f = fopen(in_scratch("net/1/cut.engine"), "wb");
    cr_assert(f && fwrite(whole.bytes, 1, whole.size / 2, f) == whole.size / 2);
    fclose(f);
    free(whole.bytes);
    for (size_t k = 0; k < ARRAY_LENGTH(refusals); k++) {
        load(&s, refusals[k].config, refusals[k].complete);
        cr_assert_null(s.model, "case %zu loads", k);
        cr_expect(strstr(s.text, refusals[k].text), "case %zu: %s", k, s.text);
        cr_expect(!strstr(s.text, scratch), "a path is told: %s", s.text);
    }
    cr_expect_eq(rename(in_scratch("net/1/model.engine"), in_scratch("net/1/other")), 0);
    load(&s, "{\"cc_model_filenames\":{\"9.0\":\"a\"},\"default_model_filename\":\"b\"}",
         true);
    cr_expect(!s.model &&
                  strstr(s.text, "net on host: version 1 has no engine; looked for b, "
                                 "model.engine: copy one there"),
              "%s", s.text);
    close_model(&s);
}

Test(triton_config, a_network_is_built_where_it_is_asked_for)
{
    struct served s;
    make_convolutions(&s);
    cr_assert_eq(rename(in_scratch("net.ini"), in_scratch("net/1/model.ini")), 0);
    cr_assert_eq(remove(in_scratch("net/1/model.engine")), 0);
    load(&s, NULL, true);
    cr_expect(!s.model && strstr(s.text, "looked for model.engine"), "%s", s.text);
    load(&s, "{\"parameters\":{\"build\":{\"string_value\":\"yes\"}}}", true);
    cr_assert_not_null(s.model, "%s", s.text);
    host_unload(s.model);
    close_model(&s);
}

Test(triton_config, an_instance_of_a_gpu_runs_on_the_host_where_the_engine_is_for_it)
{
    struct served s;
    make_convolutions(&s);
    load(&s, "{\"instance_group\":[{\"kind\":\"KIND_GPU\",\"gpus\":[0]}]}", true);
    cr_assert_not_null(s.model, "%s", s.text);
    cr_expect(host_lines(TRITONSERVER_LOG_WARN) > 0);
    s.instance = host_instance(s.model, TRITONSERVER_INSTANCEGROUPKIND_GPU, 0, s.text);
    cr_assert_not_null(s.instance, "%s", s.text);
    host_end(s.instance);
    host_unload(s.model);
    close_model(&s);
}

/* The parameter of a model, then the backend's option, then the rule. */
Test(triton_config, a_model_says_whether_it_takes_turns)
{
    static const struct {
        const char *cmdline, *config;
        int turns;
    } cases[] = {
        {"", "{}", STRATA_TURNS_AUTO},
        {"\"turns\":\"1\"", "{}", STRATA_TURNS_ON},
        {"\"turns\":\"0\"", "{}", STRATA_TURNS_OFF},
        {"\"turns\":\"0\"", "{\"parameters\":{\"turns\":{\"string_value\":\"yes\"}}}",
         STRATA_TURNS_ON},
        {"\"turns\":\"1\"", "{\"parameters\":{\"turns\":{\"string_value\":\"no\"}}}",
         STRATA_TURNS_OFF},
    };
    struct served s;
    make_convolutions(&s);
    for (size_t k = 0; k < ARRAY_LENGTH(cases); k++) {
        host_close(s.backend);
        s.backend = host_open(cases[k].cmdline, s.text);
        cr_assert_not_null(s.backend, "case %zu: %s", k, s.text);
        load(&s, cases[k].config, true);
        cr_assert_not_null(s.model, "case %zu: %s", k, s.text);
        const struct model *m = s.model->state;
        cr_expect_eq(m->turns, cases[k].turns, "case %zu: %d", k, m->turns);
        s.instance =
            host_instance(s.model, TRITONSERVER_INSTANCEGROUPKIND_CPU, 0, s.text);
        cr_assert_not_null(s.instance, "case %zu: %s", k, s.text);
        host_end(s.instance);
        host_unload(s.model);
    }
    close_model(&s);
}

Test(triton_config, options_are_checked)
{
    static const struct {
        const char *cmdline, *text;
        long warnings;
    } cases[] = {
        {"\"threads\":\"1\",\"log_level\":\"0\"", "", 0},
        {"\"turns\":\"1\"", "", 0},
        {"\"turns\":\"0\"", "", 0},
        {"\"turns\":\"2\"", "strata,turns=2: write a number from 0 to 1", 0},
        {"\"threads\":\"-1\"", "strata,threads=-1: write a number from 0 to 4096", 0},
        {"\"log_level\":\"4x\"", "strata,log_level=4x", 0},
        {"\"thread\":\"1\",\"auto-complete-config\":\"true\"", "", 1},
    };
    for (size_t k = 0; k < ARRAY_LENGTH(cases); k++) {
        char text[2048];
        const long before = host_lines(TRITONSERVER_LOG_WARN);
        TRITONBACKEND_Backend *b = host_open(cases[k].cmdline, text);
        cr_expect(strstr(text, cases[k].text) && !b == (cases[k].text[0] != 0),
                  "case %zu: %s", k, text);
        cr_expect_eq(host_lines(TRITONSERVER_LOG_WARN) - before, cases[k].warnings);
        if (b)
            host_close(b);
    }
}

Test(triton_config, an_older_server_is_refused)
{
    char text[2048];
    host_minor = 16;
    cr_expect_null(host_open("", text));
    cr_expect(strstr(text, "backend API is 1.16; strata needs 1.17"), "%s", text);
    host_minor = 17;
    TRITONBACKEND_Backend *b = host_open("", text);
    cr_assert_not_null(b, "%s", text);
    host_close(b);
}
