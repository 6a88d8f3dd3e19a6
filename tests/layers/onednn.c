/* SPDX-License-Identifier: Apache-2.0
 *
 * The oneDNN module: every impl and every pair of formats of its rows, at awkward sizes,
 * against plain FP64 loops; epilogues, vetoes, threads. Loaded by hand (onednn_trial.h),
 * so this needs neither the registry nor the core. Skipped where it was not built.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/layers/onednn_problems.h"

TestSuite(onednn, .init = trial_load, .timeout = 600);

/* What oneDNN may use, unless the environment holds it back: then nothing is certain. */
static bool cpu_has_avx2(void)
{
#if defined(__x86_64__)
    return !getenv("ONEDNN_MAX_CPU_ISA") && __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

static bool cpu_has_avx512(void)
{
#if defined(__x86_64__)
    return cpu_has_avx2() && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

/* ---- convolution ---- */

/* clang-format off */
static const struct convolution_case convolutions[] = {
    {"one value", 4, 1, 1, 1, {1, 1}, {1, 1}, {.groups = 1}, false},
    {"first layer", 4, 1, 3, 64, {23, 21}, {3, 3},
     {.groups = 1, .stride = INTS(2)}, true},
    {"grey first layer", 4, 2, 1, 8, {13, 9}, {5, 5},
     {.groups = 1, .pad = INTS(2)}, true},
    {"seven to eight", 4, 1, 7, 8, {9, 11}, {3, 3}, {.groups = 1, .pad = INTS(1)}, true},
    {"fifteen to 17", 4, 3, 15, 17, {7, 5}, {3, 3}, {.groups = 1, .pad = INTS(1)}, true},
    {"17 to 33", 4, 2, 17, 33, {8, 6}, {3, 3}, {.groups = 1, .pad = INTS(1)}, true},
    {"16 to 64", 4, 1, 16, 64, {14, 14}, {3, 3}, {.groups = 1, .pad = INTS(1)}, false},
    {"1x1", 4, 1, 64, 16, {13, 13}, {1, 1}, {.groups = 1}, true},
    {"1x1 tails", 4, 2, 33, 15, {5, 7}, {1, 1}, {.groups = 1}, true},
    {"1x1 stride 2", 4, 1, 16, 33, {9, 7}, {1, 1},
     {.groups = 1, .stride = INTS(2)}, true},
    {"asymmetric pads", 4, 1, 16, 16, {10, 9}, {3, 5},
     {.groups = 1, .pad = INTS(0, 3, 2, 1), .stride = INTS(1, 2)}, true},
    {"dilated", 4, 1, 33, 16, {15, 12}, {3, 3},
     {.groups = 1, .dilation = INTS(2, 3), .pad = INTS(2)}, true},
    {"end cut off", 4, 1, 8, 8, {10, 10}, {2, 2}, {.groups = 1, .stride = INTS(3)}, true},
    {"depthwise 32", 4, 1, 32, 32, {9, 9}, {3, 3}, {.groups = 32, .pad = INTS(1)}, true},
    {"depthwise 33", 4, 2, 33, 33, {7, 9}, {3, 3},
     {.groups = 33, .pad = INTS(1), .stride = INTS(2)}, true},
    {"groups of 16", 4, 1, 32, 64, {7, 7}, {3, 3}, {.groups = 2, .pad = INTS(1)}, true},
    {"groups of 3", 4, 1, 6, 4, {7, 7}, {3, 3}, {.groups = 2, .pad = INTS(1)}, true},
    {"1-D", 3, 2, 16, 17, {31}, {3}, {.groups = 1, .pad = INTS(1, 0)}, true},
    {"3-D", 5, 1, 16, 16, {5, 4, 6}, {3, 3, 3}, {.groups = 1, .pad = INTS(1)}, true},
};
static const struct convolution_case pixels[] = {
    {"pixel", 4, 1, 40, 40, {1, 1}, {3, 3}, {.groups = 1, .pad = INTS(1)}, true},
    {"depthwise pixel", 4, 1, 40, 40, {1, 1}, {3, 3},
     {.groups = 40, .pad = INTS(1)}, true},
    {"depthwise step", 3, 1, 40, 40, {1}, {3}, {.groups = 40, .pad = INTS(1)}, true},
};
/* clang-format on */

Test(onednn, convolution_matches_the_loops_in_every_row)
{
    uint64_t taken = 0;
    for (size_t i = 0; i < LENGTH(convolutions); i++) {
        struct problem p = convolution_problem(&convolutions[i]);
        uint64_t here = trial_attempt_all(&p);
        cr_expect(here, "no impl takes %s", p.name);
        taken |= here;
        problem_free(&p);
    }
    cr_expect(taken & STRATA_F32_NCHW, "linear was never taken");
    if (cpu_has_avx2())
        cr_expect(taken & STRATA_F32_NC8HW8, "blocks of 8 were never taken");
    if (cpu_has_avx512())
        cr_expect(taken & STRATA_F32_NC16HW16, "blocks of 16 were never taken");
}

/* ---- epilogues ---- */

/* The answer before the epilogue is kept; each variant is checked and then undone. */
static uint64_t with_epilogue(struct problem *p, int32_t flags, int32_t activation,
                              double alpha, double beta)
{
    size_t bytes = (size_t)trial_product(p->out_dims, p->out_rank) * sizeof(double);
    double *expected = p->expected, *magnitude = p->magnitude;
    uint64_t taken;

    problem_answer(p);
    memcpy(p->expected, expected, bytes);
    memcpy(p->magnitude, magnitude, bytes);
    p->flags = flags, p->activation = activation, p->alpha = alpha, p->beta = beta;
    problem_epilogue(p);
    taken = trial_attempt_all(p);
    free(p->expected), free(p->magnitude);
    p->expected = expected, p->magnitude = magnitude;
    return taken;
}

static const struct {
    int32_t kind;
    double alpha, beta;
} kinds[] = {
    {STRATA_RELU, 0, 0},
    {STRATA_LEAKY_RELU, 0.1, 0},
    {STRATA_RELU6, 0, 0},
    {STRATA_CLIP, -0.25, 0.75},
    {STRATA_CLIP, 0.5, 1.5},
    {STRATA_CLIP, -INFINITY, 0.5},
    {STRATA_CLIP, 0, INFINITY},
    {STRATA_SIGMOID, 0, 0},
    {STRATA_TANH, 0, 0},
    {STRATA_ELU, 0.7, 0},
    {STRATA_SELU, 1.67326, 1.0507},
    {STRATA_SOFTPLUS, 0, 0},
    {STRATA_GELU, 0, 0},
    {STRATA_SILU, 0, 0},
    {STRATA_HARD_SWISH, 0, 0},
    {STRATA_MISH, 0, 0},
    {STRATA_GELU_TANH, 0, 0},
    {STRATA_SWISH, 1.702, 0},
};

/* Where the plain layer is taken, so is each epilogue; with older vector instructions at
 * least some impl takes it. */
static void every_epilogue(struct problem *p)
{
    uint64_t plain = trial_attempt_all(p), taken;
    problem_add_operands(p);
    for (int32_t flags = 1; flags < STRATA_EPILOGUE_ACTIVATION; flags++) {
        taken = with_epilogue(p, flags, 0, 0, 0);
        cr_expect(cpu_has_avx2() ? taken == plain : taken != 0,
                  "%s: epilogue %d is refused", p->name, flags);
    }
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        int32_t flags = STRATA_EPILOGUE_ACTIVATION | (i % 2 ? 7 : 0);
        taken = with_epilogue(p, flags, kinds[i].kind, kinds[i].alpha, kinds[i].beta);
        cr_expect(cpu_has_avx2() ? taken == plain : taken != 0,
                  "%s: activation %d is refused", p->name, kinds[i].kind);
    }
    problem_free(p);
}

Test(onednn, convolution_computes_every_declared_epilogue)
{
    static const char *const names[] = {"first layer",  "17 to 33",     "1x1 tails",
                                        "depthwise 33", "groups of 16", "16 to 64",
                                        "1-D",          "3-D"};
    for (size_t i = 0; i < LENGTH(convolutions); i++)
        for (size_t j = 0; j < LENGTH(names); j++)
            if (strcmp(names[j], convolutions[i].name) == 0) {
                struct problem p = convolution_problem(&convolutions[i]);
                every_epilogue(&p);
            }
}

/* One image of one pixel: its residual looks like a value a channel. Right where it is
 * taken, and somewhere it is. */
Test(onednn, convolution_adds_a_residual_of_one_pixel)
{
    for (size_t i = 0; i < LENGTH(pixels); i++) {
        struct problem p = convolution_problem(&pixels[i]);
        trial_attempt_all(&p);
        problem_add_operands(&p);
        for (int32_t flags = STRATA_EPILOGUE_RESIDUAL; flags < STRATA_EPILOGUE_ACTIVATION;
             flags++)
            cr_expect(with_epilogue(&p, flags, 0, 0, 0), "%s: nobody takes epilogue %d",
                      p.name, (int)flags);
        problem_free(&p);
    }
}

/* ---- fully connected ---- */

static const struct product_case products[] = {
    {"one by one", 2, {1, 1}, 1, false, false},
    {"vector", 2, {1, 33}, 10, false, true},
    {"rows", 2, {7, 64}, 17, true, true},
    {"image", 4, {2, 16, 5, 3}, 15, false, true},
    {"image transposed", 4, {3, 32, 4, 4}, 33, true, true},
    {"tail channels", 4, {1, 17, 3, 5}, 64, false, false},
    {"global", 4, {1, 64, 1, 1}, 100, false, true},
};

Test(onednn, fully_connected_matches_the_loops_in_every_row)
{
    for (size_t i = 0; i < LENGTH(products); i++) {
        strata_fully_connected params = {0};
        struct problem p = product_problem(&products[i], &params);
        cr_expect(trial_attempt_all(&p), "no impl takes %s", p.name);
        problem_free(&p);
    }
}

Test(onednn, fully_connected_computes_every_declared_epilogue)
{
    for (size_t i = 1; i < LENGTH(products); i++) {
        strata_fully_connected params = {0};
        struct problem p = product_problem(&products[i], &params);
        every_epilogue(&p);
    }
}

/* ---- pooling ---- */

#define MAX_OF(...) .params = {.kind = STRATA_POOL_MAX, __VA_ARGS__}
#define AVERAGE_OF(...) .params = {.kind = STRATA_POOL_AVERAGE, __VA_ARGS__}

/* clang-format off */
static const struct pooling_case poolings[] = {
    {"max 3x3 ceil", 4, 1, 64, {14, 14}, {3, 3},
     MAX_OF(.kernel = INTS(3), .stride = INTS(2), .ceil_mode = 1)},
    {"max tails", 4, 2, 17, {9, 7}, {2, 3},
     MAX_OF(.kernel = INTS(2, 3), .stride = INTS(2), .pad = INTS(1))},
    {"max uneven pads", 4, 1, 7, {8, 9}, {3, 3},
     MAX_OF(.kernel = INTS(3), .stride = INTS(2), .pad = INTS(0, 1, 1, 0))},
    {"max end cut off", 4, 1, 8, {10, 10}, {2, 2},
     MAX_OF(.kernel = INTS(2), .stride = INTS(3))},
    {"average", 4, 2, 33, {9, 9}, {3, 3},
     AVERAGE_OF(.kernel = INTS(3), .pad = INTS(1))},
    {"average with pads", 4, 1, 15, {9, 8}, {3, 3},
     AVERAGE_OF(.kernel = INTS(3), .pad = INTS(1), .count_include_pad = 1)},
    {"average ceil", 4, 1, 3, {8, 8}, {3, 3},
     AVERAGE_OF(.kernel = INTS(3), .stride = INTS(2), .ceil_mode = 1)},
    {"average uneven pads", 4, 1, 16, {7, 6}, {2, 2},
     AVERAGE_OF(.kernel = INTS(2), .pad = INTS(0, 0, 1, 1))},
    {"global average", 4, 2, 17, {13, 13}, {13, 13}, AVERAGE_OF(.global = 1)},
    {"one channel", 4, 1, 1, {5, 5}, {2, 2}, MAX_OF(.kernel = INTS(2))},
    {"1-D", 3, 2, 16, {31}, {3}, MAX_OF(.kernel = INTS(3), .stride = INTS(2))},
    {"3-D", 5, 1, 9, {5, 4, 6}, {2, 2, 2}, AVERAGE_OF(.kernel = INTS(2))},
};
/* clang-format on */

Test(onednn, pooling_matches_the_loops_in_every_row)
{
    for (size_t i = 0; i < LENGTH(poolings); i++) {
        struct problem p = pooling_problem(&poolings[i]);
        cr_expect(trial_attempt_all(&p), "no impl takes %s", p.name);
        problem_free(&p);
    }
}

/* ---- vetoes and misuse ---- */

/* accept's message for the problem, which must be a veto. */
static void expect_veto(const struct problem *p, const char *impl, uint64_t in,
                        uint64_t out, const char *reason)
{
    struct trial t;
    trial_open(&t, p, trial_impl(p->layer, impl), in, out);
    cr_expect(t.impl->accept(&t.node) == STRATA_EUNSUPPORTED, "%s was taken", p->name);
    cr_expect(strstr(t.error.text, reason), "%s: \"%s\" does not say \"%s\"", p->name,
              t.error.text, reason);
    trial_close(&t);
}

/* clang-format off */
static const struct convolution_case groups_of_3 = {
    "groups of 3", 4, 1, 6, 4, {7, 7}, {3, 3}, {.groups = 2}, true};
static const struct pooling_case dilated = {
    "dilated", 4, 1, 16, {11, 11}, {3, 3},
    MAX_OF(.kernel = INTS(3), .dilation = INTS(2))};
static const struct pooling_case overhang = {
    "ceil with pads", 4, 1, 16, {8, 8}, {3, 3},
    AVERAGE_OF(.kernel = INTS(3), .stride = INTS(2), .ceil_mode = 1,
               .count_include_pad = 1)};
static const struct pooling_case pads_alone = {
    "pads alone", 4, 1, 16, {4, 4}, {2, 2}, MAX_OF(.kernel = INTS(2), .pad = INTS(2))};
/* clang-format on */

Test(onednn, refuses_what_only_the_reference_kernel_computes)
{
    struct problem p = convolution_problem(&groups_of_3), q = pooling_problem(&dilated);
    expect_veto(&p, "onednn_nc16hw16", STRATA_F32_NC16HW16, STRATA_F32_NC16HW16,
                "reference kernel");
    expect_veto(&q, "onednn", STRATA_F32_NCHW, STRATA_F32_NCHW, "reference kernel");
    problem_free(&p);
    problem_free(&q);
}

Test(onednn, refuses_an_average_that_would_count_the_overhang)
{
    struct problem p = pooling_problem(&overhang);
    expect_veto(&p, "onednn", STRATA_F32_NCHW, STRATA_F32_NCHW, "ceil_mode");
    problem_free(&p);
}

Test(onednn, refuses_windows_of_pads_alone)
{
    struct problem p = pooling_problem(&pads_alone);
    expect_veto(&p, "onednn", STRATA_F32_NCHW, STRATA_F32_NCHW, "pads alone");
    problem_free(&p);
}

Test(onednn, refuses_an_activation_it_did_not_declare)
{
    struct problem p = convolution_problem(&convolutions[0]);
    p.flags = STRATA_EPILOGUE_ACTIVATION;
    p.activation = STRATA_SOFTSIGN;
    expect_veto(&p, "onednn_nchw", STRATA_F32_NCHW, STRATA_F32_NCHW, "activation");
    p.activation = STRATA_ACTIVATION_COUNT;
    expect_veto(&p, "onednn_nchw", STRATA_F32_NCHW, STRATA_F32_NCHW, "activation");
    problem_free(&p);
}

static void first_layer(struct problem *p, struct trial *t)
{
    *p = convolution_problem(&convolutions[1]);
    trial_open(t, p, trial_impl(p->layer, "onednn_nhwc"), STRATA_F32_NHWC,
               STRATA_F32_NHWC);
}

Test(onednn, setup_without_pack_memory_says_so)
{
    struct problem p;
    struct trial t;
    first_layer(&p, &t);
    t.node.host = &trial_bare_host;
    cr_expect(trial_setup(&t) == STRATA_EUNSUPPORTED);
    cr_expect(strstr(t.error.text, STRATA_PACK_V1), "%s", t.error.text);
    trial_close(&t);
    problem_free(&p);
}

Test(onednn, run_refuses_another_batch_and_a_short_workspace)
{
    struct problem p;
    struct trial t;
    first_layer(&p, &t);
    cr_assert(trial_setup(&t) == STRATA_OK, "%s", t.error.text);
    strata_run r = trial_call(&t);
    r.workspace_size = 0;
    cr_expect(t.workspace_size == 0 || t.impl->run(&r) == STRATA_EINTERNAL);
    r.workspace_size = t.workspace_size;
    t.in.dims[0]++;
    cr_expect(t.impl->run(&r) == STRATA_EUNSUPPORTED);
    cr_expect(strstr(t.error.text, "batch of 1, found 2"), "%s", t.error.text);
    trial_close(&t);
    problem_free(&p);
}

/* ---- threads ---- */

struct worker {
    struct trial *shared; /* state, inputs and weights; nothing of it is written */
    struct trial own;     /* output, context and workspace */
    int status;
};

static void *worker_main(void *argument)
{
    struct worker *w = argument;
    strata_run r = trial_call(&w->own);
    r.state = w->shared->state;
    for (int i = 0; i < 50 && w->status == STRATA_OK; i++) {
        w->status = w->own.impl->accept(&w->own.node);
        if (w->status == STRATA_OK)
            w->status = w->own.impl->run(&r);
    }
    return NULL;
}

static void two_contexts(const struct problem *p, const strata_impl *impl, uint64_t in,
                         uint64_t out)
{
    struct worker workers[2] = {0};
    pthread_t threads[2];
    struct trial first;
    size_t bytes;

    trial_open(&first, p, impl, in, out);
    bytes = (size_t)first.out.size * sizeof(float);
    cr_assert(trial_setup(&first) == STRATA_OK, "%s", first.error.text);
    strata_run r = trial_call(&first);
    cr_assert(impl->run(&r) == STRATA_OK, "%s", first.error.text);
    for (int i = 0; i < 2; i++) {
        struct worker *w = &workers[i];
        w->shared = &first;
        trial_open(&w->own, p, impl, in, out);
        cr_assert(impl->ctx_open(&w->own.node, first.state, w->own.ctx) == STRATA_OK);
        w->own.workspace = trial_workspace(first.workspace_size);
        w->own.workspace_size = first.workspace_size;
    }
    for (int i = 0; i < 2; i++)
        cr_assert(pthread_create(&threads[i], NULL, worker_main, &workers[i]) == 0);
    for (int i = 0; i < 2; i++)
        cr_assert(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < 2; i++) {
        cr_expect(workers[i].status == STRATA_OK, "%s", workers[i].own.error.text);
        cr_expect(memcmp(workers[i].own.out.data, first.out.data, bytes) == 0,
                  "%s by %s: context %d differs", p->name, impl->name, i);
        trial_close(&workers[i].own);
    }
    trial_close(&first);
}

static const struct pooling_case max_28 = {
    "max", 4, 1, 32, {28, 28}, {3, 3}, MAX_OF(.kernel = INTS(3), .stride = INTS(2))};

Test(onednn, contexts_on_two_threads_agree_bit_by_bit)
{
    struct problem p = convolution_problem(&convolutions[6]),
                   q = pooling_problem(&max_28);
    two_contexts(&p, trial_impl(p.layer, "onednn_nchw"), STRATA_F32_NCHW,
                 STRATA_F32_NCHW);
    two_contexts(&p, trial_impl(p.layer, "onednn_nhwc"), STRATA_F32_NHWC,
                 STRATA_F32_NHWC);
    two_contexts(&q, trial_impl(q.layer, "onednn"), STRATA_F32_NCHW, STRATA_F32_NCHW);
    if (cpu_has_avx2())
        two_contexts(&p, trial_impl(p.layer, "onednn_nc8hw8"), STRATA_F32_NC8HW8,
                     STRATA_F32_NC8HW8);
    problem_free(&p);
    problem_free(&q);
}

static void other_threads(const struct problem *p, const char *impl, uint64_t format,
                          int made, int run)
{
    struct trial t;
    trial_open(&t, p, trial_impl(p->layer, impl), format, format);
    omp_set_num_threads(made);
    cr_assert(trial_setup(&t) == STRATA_OK, "%s", t.error.text);
    strata_run r = trial_call(&t);
    omp_set_num_threads(run);
    cr_assert(t.impl->run(&r) == STRATA_OK, "%s", t.error.text);
    cr_expect(trial_workspace_intact(&t), "%s for %d threads, run by %d", impl, made,
              run);
    cr_expect(omp_get_max_threads() == run);
    trial_expect_values(&t, impl);
    trial_close(&t);
}

Test(onednn, run_with_another_number_of_threads_stays_in_its_workspace)
{
    struct problem p = convolution_problem(&convolutions[6]);
    struct problem q = pooling_problem(&max_28);
    for (int made = 1; made <= 4; made += 3) {
        other_threads(&p, "onednn_nchw", STRATA_F32_NCHW, made, 5 - made);
        other_threads(&p, "onednn_nhwc", STRATA_F32_NHWC, made, 5 - made);
        other_threads(&q, "onednn", STRATA_F32_NCHW, made, 5 - made);
    }
    problem_free(&p);
    problem_free(&q);
}

/* Workspaces are planned before others are set up. With one element a plane, the bytes of
 * nchw and of nhwc are the same, which is no reason to get the other's kernel. */
Test(onednn, setup_keeps_to_the_workspace_that_was_planned)
{
    static const struct product_case global = {
        .name = "global", .rank = 4, .in = {1, 1280, 1, 1}, .units = 1000, .bias = true};
    static const uint64_t formats[] = {STRATA_F32_NCHW, STRATA_F32_NHWC};
    static const char *const impls[] = {"onednn", "onednn_folded"};
    strata_fully_connected params = {0};
    struct problem p = product_problem(&global, &params);
    struct trial trials[2];
    size_t planned[2];
    for (int i = 0; i < 2; i++) {
        trial_open(&trials[i], &p, trial_impl(p.layer, impls[i]), formats[i],
                   STRATA_F32_NCHW);
        planned[i] = trials[i].impl->workspace(&trials[i].node);
    }
    for (int i = 0; i < 2; i++) {
        struct trial *t = &trials[i];
        cr_assert(trial_setup(t) == STRATA_OK, "%s", t->error.text);
        cr_expect_eq(t->workspace_size, planned[i], "%s: %zu bytes, planned %zu",
                     impls[i], t->workspace_size, planned[i]);
        strata_run r = trial_call(t);
        cr_expect(t->impl->run(&r) == STRATA_OK, "%s: %s", impls[i], t->error.text);
        trial_expect_values(t, impls[i]);
        trial_close(t);
    }
    problem_free(&p);
}
