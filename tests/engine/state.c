/* SPDX-License-Identifier: Apache-2.0
 *
 * States: what a context keeps from run to run, and its rows reset, copied, saved and
 * restored.
 */
#include <math.h>

#include <strata/state.h>

#include "engine/context/context.h"
#include "tests/engine/batch_net.h"

TestSuite(state, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

enum { ROWS = 2, ROW = 3, N = ROWS * ROW };

/* total grows by x, and steps by one. sum is read on: the state has memory of its own. */
static const char total[] = "[state total]\nshape = 2 x 3\nnext = sum\nvalue = 1.5\n";
static const char steps[] =
    "[state steps]\nshape = 2\ndtype = i32\nnext = more\nroom = 3\n"
    "[layer same]\ntype = Compare\nop = equal\ninputs = steps, steps\n"
    "[layer one]\ntype = Cast\nto = i32\ninputs = same\n"
    "[layer more]\ntype = ElementWise\nop = sum\ninputs = steps, one\n";
static const char sum[] = "[layer sum]\ntype = ElementWise\nop = sum\ninputs = total, x\n"
                          "[layer y]\ntype = Activation\nkind = relu\ninputs = sum\n";

struct kept_net {
    struct net n;
    strata_context *c;
};

static void open_kept(struct kept_net *k, const char *parts)
{
    strata_error err;
    char layers[2000];
    snprintf(layers, sizeof layers, "%s%s%s", total, parts, sum);
    OK(open_net(&k->n, "", "2 x 3", "y", layers, &err));
    OK(strata_context_create(&k->c, k->n.engine, k->n.handle, &err));
}

static void close_kept(struct kept_net *k)
{
    strata_context_destroy(k->c);
    close_net(&k->n);
}

static int run(strata_context *c, const float *x, float *y, strata_error *err)
{
    int status = strata_copy_in(c, 0, x, err);
    if (status == STRATA_OK)
        status = strata_context_run(c, err);
    return status == STRATA_OK ? strata_copy_out(c, 1, y, err) : status;
}

static const float x[N] = {1, 2, 3, 4, 5, 6};

/* y after so many runs of each row. */
static void expect_runs(const float *y, int first, int second)
{
    for (int i = 0; i < N; i++) {
        const int runs = i < ROW ? first : second;
        cr_expect_eq(y[i], 1.5f + (float)runs * x[i], "element %d is %g", i,
                     (double)y[i]);
    }
}

Test(state, a_run_begins_with_what_the_run_before_left)
{
    struct kept_net k;
    strata_error err;
    strata_context *other;
    float y[N];
    open_kept(&k, "");
    cr_expect_eq(strata_engine_bindings(k.n.engine), 2, "states are not bound");
    cr_expect_eq(strata_engine_find(k.n.engine, "total"), -1);
    for (int i = 1; i <= 20; i++) {
        OK(run(k.c, x, y, &err));
        expect_runs(y, i, i);
    }
    OK(strata_context_create(&other, k.n.engine, k.n.handle, &err));
    OK(run(other, x, y, &err));
    expect_runs(y, 1, 1);
    strata_context_destroy(other);
    close_kept(&k);
}

Test(state, preparing_changes_none)
{
    struct kept_net k;
    strata_error err;
    float y[N];
    open_kept(&k, steps);
    for (int i = 1; i <= 3; i++) {
        OK(strata_context_prepare(k.c, &err));
        OK(run(k.c, x, y, &err));
        expect_runs(y, i, i);
    }
    close_kept(&k);
}

Test(state, rows_are_reset_and_copied_alone)
{
    struct kept_net k;
    strata_error err;
    float y[N];
    open_kept(&k, "");
    OK(run(k.c, x, y, &err));
    OK(strata_context_reset_state(k.c, 1, &err));
    OK(run(k.c, x, y, &err));
    expect_runs(y, 2, 1);
    OK(strata_context_copy_state(k.c, 0, 1, &err));
    OK(run(k.c, x, y, &err));
    for (int i = 0; i < ROW; i++) /* the total of row 0, and the input of row 1 */
        cr_expect_eq(y[ROW + i], 1.5f + 2 * x[i] + x[ROW + i]);
    OK(strata_context_reset_state(k.c, STRATA_ALL_ROWS, &err));
    OK(run(k.c, x, y, &err));
    expect_runs(y, 1, 1);
    close_kept(&k);
}

Test(state, saved_states_go_on_where_they_were)
{
    struct kept_net k;
    strata_error err;
    strata_context *other;
    float y[N];
    open_kept(&k, steps);
    OK(run(k.c, x, y, &err));
    const size_t all = strata_context_state_bytes(k.c, STRATA_ALL_ROWS);
    const size_t one = strata_context_state_bytes(k.c, 1);
    char *saved = malloc(all), *row = malloc(one);
    OK(strata_context_save_state(k.c, STRATA_ALL_ROWS, saved, all, &err));
    OK(run(k.c, x, y, &err));
    OK(strata_context_save_state(k.c, 1, row, one, &err));
    OK(strata_context_create(&other, k.n.engine, k.n.handle, &err));
    OK(strata_context_restore_state(other, STRATA_ALL_ROWS, saved, all, &err));
    OK(run(other, x, y, &err));
    expect_runs(y, 2, 2);
    OK(strata_context_restore_state(other, STRATA_ALL_ROWS, saved, all, &err));
    OK(strata_context_restore_state(other, 0, row, one, &err)); /* as another row */
    OK(run(other, x, y, &err));
    for (int i = 0; i < ROW; i++)
        cr_expect_eq(y[i], 1.5f + 2 * x[ROW + i] + x[i]);
    strata_context_destroy(other);
    free(saved);
    free(row);
    close_kept(&k);
}

Test(state, what_is_not_these_states_is_refused_and_changes_nothing)
{
    struct kept_net k;
    strata_error err;
    float y[N];
    open_kept(&k, steps);
    OK(run(k.c, x, y, &err));
    const size_t all = strata_context_state_bytes(k.c, STRATA_ALL_ROWS);
    char *saved = malloc(all);
    OK(strata_context_save_state(k.c, STRATA_ALL_ROWS, saved, all, &err));
    cr_expect_eq(strata_context_state_bytes(k.c, 2), 0);
    cr_expect_eq(strata_context_reset_state(k.c, 2, &err), STRATA_EINVAL);
    cr_expect(strstr(err.message, "rows 0 to 1"), "%s", err.message);
    cr_expect_eq(strata_context_copy_state(k.c, 0, 2, &err), STRATA_EINVAL);
    cr_expect_eq(strata_context_copy_state(k.c, 0, STRATA_ALL_ROWS, &err), STRATA_EINVAL);
    cr_expect_eq(strata_context_save_state(k.c, 0, saved, 3, &err), STRATA_EINVAL);
    cr_expect_eq(strata_context_restore_state(k.c, 0, NULL, all, &err), STRATA_EINVAL);
    cr_expect_eq(strata_context_restore_state(k.c, 0, saved, all, &err), STRATA_EPARSE);
    for (size_t i = 0; i < 32; i++) { /* of the first state's heading */
        saved[i] = (char)(saved[i] ^ 4);
        cr_expect_eq(strata_context_restore_state(k.c, STRATA_ALL_ROWS, saved, all, &err),
                     STRATA_EPARSE, "byte %zu", i);
        saved[i] = (char)(saved[i] ^ 4);
    }
    OK(run(k.c, x, y, &err));
    expect_runs(y, 2, 2);
    free(saved);
    close_kept(&k);
}

Test(state, counting_past_the_room_is_told)
{
    struct kept_net k;
    strata_error err;
    float y[N];
    open_kept(&k, steps);
    for (int i = 0; i < 3; i++)
        OK(run(k.c, x, y, &err));
    OK(strata_context_reset_state(k.c, 0, &err));
    cr_expect_eq(run(k.c, x, y, &err), STRATA_EOVERFLOW);
    cr_expect(strstr(err.message, "'steps', row 1, is 4"), "%s", err.message);
    OK(strata_context_reset_state(k.c, 1, &err));
    OK(run(k.c, x, y, &err));
    close_kept(&k);
}

static void enqueue_runs(strata_context *c, int n)
{
    strata_error err;
    for (int i = 0; i < n; i++)
        OK(strata_context_enqueue(c, NULL, &err));
}

Test(state, counting_past_the_room_is_told_by_the_wait_behind_several_runs)
{
    struct kept_net k;
    strata_error err;
    float y[N];
    open_kept(&k, steps);
    OK(run(k.c, x, y, &err));
    enqueue_runs(k.c, 3);
    cr_expect_eq(strata_context_wait(k.c, &err), STRATA_EOVERFLOW);
    cr_expect(strstr(err.message, "is 4"), "%s", err.message);
    OK(strata_context_wait(k.c, &err)); /* told once */
    OK(strata_context_reset_state(k.c, STRATA_ALL_ROWS, &err));
    enqueue_runs(k.c, 3);
    OK(strata_context_wait(k.c, &err));
    close_kept(&k);
}

Test(state, preparing_looks_at_no_count)
{
    static const char far[] = "[state steps]\nshape = 2\ndtype = i32\nnext = more\n"
                              "value = 9\nroom = 3\n"
                              "[layer more]\ntype = Identity\ninputs = steps\n";
    struct kept_net k;
    strata_error err;
    float y[N];
    open_kept(&k, far);
    OK(strata_context_prepare(k.c, &err));
    cr_expect_eq(run(k.c, x, y, &err), STRATA_EOVERFLOW);
    close_kept(&k);
}

/* Of a context that is measured; a run for which the room is too small fails still. */
Test(state, full_ones_start_over_where_runs_are_measured)
{
    static const char far[] = "[state steps]\nshape = 2\ndtype = i32\nnext = more\n"
                              "value = 9\nroom = 3\n"
                              "[layer more]\ntype = Identity\ninputs = steps\n";
    struct kept_net k;
    strata_error err;
    float y[N];
    open_kept(&k, steps);
    k.c->starts_over = true;
    for (int i = 0; i < 9; i++) /* full after 3 runs, over by the next, which counts not */
        OK(run(k.c, x, y, &err));
    OK(run(k.c, x, y, &err));
    expect_runs(y, 2, 2);
    close_kept(&k);
    open_kept(&k, far);
    k.c->starts_over = true;
    cr_expect_eq(run(k.c, x, y, &err), STRATA_EOVERFLOW);
    close_kept(&k);
}

/* next is written where the state lies if nothing reads that later. */
Test(state, in_place_where_the_readers_are_done)
{
    struct kept_net k;
    open_kept(&k, steps);
    const struct execution *e = k.n.engine->execution;
    cr_assert_eq(e->n_states, 2);
    cr_expect(e->states[0].shared, "ElementWise works in place");
    cr_expect(e->states[1].shared);
    close_kept(&k);
    struct net n;
    strata_error err;
    static const char late[] =
        "[state old]\nshape = 2 x 3\nnext = new\n"
        "[layer new]\ntype = Identity\ninputs = x\n"
        "[layer y]\ntype = ElementWise\nop = sum\ninputs = new, old\n";
    float y[N];
    strata_context *c;
    OK(open_net(&n, "", "2 x 3", "y", late, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    for (int i = 0; i < 3; i++) {
        OK(run(c, x, y, &err));
        for (int j = 0; j < N; j++)
            cr_expect_eq(y[j], (i ? 2 : 1) * x[j], "run %d", i);
    }
    strata_context_destroy(c);
    close_net(&n);
}

/* Steps of one position, over caches that grow in place, are one run of all of them. */
Test(state, steps_of_attention_are_one_run_of_all)
{
    enum { T = 8, HEADS = 2, DIM = 4, LINE = HEADS * DIM };
    static const char grow[] =
        "[state k]\nshape = 1 x 2 x 8 x 4\nnext = att:1\n"
        "[state v]\nshape = 1 x 2 x 8 x 4\nnext = att:2\n"
        "[state steps]\nshape = 1\ndtype = i32\nnext = more\nroom = 8\n"
        "[layer same]\ntype = Compare\nop = equal\ninputs = steps, steps\n"
        "[layer one]\ntype = Cast\nto = i32\ninputs = same\n"
        "[layer more]\ntype = ElementWise\nop = sum\ninputs = steps, one\n"
        "[layer att]\ntype = Attention\ncausal = yes\ncache = yes\n"
        "inputs = x, x, x, none, k, v, steps\n";
    static const char whole[] = "[layer att]\ntype = Attention\ncausal = yes\n"
                                "inputs = x, x, x\n";
    struct net steps_net, whole_net;
    strata_error err;
    strata_context *one, *all;
    float data[HEADS * T * DIM], answer[HEADS * T * DIM], now[LINE], y[LINE];
    srand(7);
    for (size_t i = 0; i < sizeof data / sizeof *data; i++)
        data[i] = (float)rand() / (float)RAND_MAX * 2 - 1;
    OK(open_net(&whole_net, "", "1 x 2 x 8 x 4", "att", whole, &err));
    OK(strata_context_create(&all, whole_net.engine, whole_net.handle, &err));
    OK(run(all, data, answer, &err));
    OK(open_net(&steps_net, "", "1 x 2 x 1 x 4", "att", grow, &err));
    cr_expect(steps_net.engine->execution->states[0].shared, "the caches are in place");
    cr_expect(steps_net.engine->execution->states[1].shared, "the caches are in place");
    OK(strata_context_create(&one, steps_net.engine, steps_net.handle, &err));
    for (int sequence = 0; sequence < 2; sequence++) {
        for (int t = 0; t < T; t++) {
            for (int i = 0; i < LINE; i++)
                now[i] = data[(i / DIM * T + t) * DIM + i % DIM];
            OK(run(one, now, y, &err));
            for (int i = 0; i < LINE; i++)
                cr_expect(fabsf(y[i] - answer[(i / DIM * T + t) * DIM + i % DIM]) < 1e-5f,
                          "step %d, element %d", t, i);
        }
        cr_expect_eq(run(one, now, y, &err), STRATA_EOVERFLOW, "the room is taken");
        OK(strata_context_reset_state(one, 0, &err));
    }
    strata_context_destroy(one);
    strata_context_destroy(all);
    close_net(&steps_net);
    close_net(&whole_net);
}

Test(state, a_failed_run_leaves_no_half_changed_states)
{
    struct kept_net k;
    strata_error err;
    float y[N];
    open_kept(&k, "");
    OK(run(k.c, x, y, &err));
    k.c->lost = true; /* as context_settle leaves it */
    cr_expect_eq(strata_context_run(k.c, &err), STRATA_EINVAL);
    cr_expect(strstr(err.message, "reset or restore"), "%s", err.message);
    cr_expect_eq(strata_context_reset_state(k.c, 0, &err), STRATA_OK);
    cr_expect_eq(strata_context_run(k.c, &err), STRATA_EINVAL, "one row is not all");
    OK(strata_context_reset_state(k.c, STRATA_ALL_ROWS, &err));
    OK(run(k.c, x, y, &err));
    expect_runs(y, 1, 1);
    close_kept(&k);
}

/* Rows of other sequences must not be computed along. */
Test(state, a_smaller_batch_needs_a_plan_of_its_own)
{
    struct net n;
    strata_error err;
    strata_context *c;
    float y[N];
    static const char layers[] =
        "[state total]\nshape = N x 3\nnext = sum\nvalue = 1.5\n"
        "[layer sum]\ntype = ElementWise\nop = sum\ninputs = total, x\n"
        "[layer y]\ntype = Activation\nkind = relu\ninputs = sum\n";
    OK(open_net(&n, "[profile]\nN = 1, 3\n", "N x 3", "y", layers, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    OK(strata_context_set_batch(c, 2, &err));
    cr_expect_eq(strata_context_run(c, &err), STRATA_EUNSUPPORTED);
    cr_expect(strstr(err.message, "list it in [profile]"), "%s", err.message);
    const float rows[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    float all[9];
    OK(strata_context_set_batch(c, 1, &err));
    OK(run(c, rows, y, &err));
    OK(strata_context_set_batch(c, 3, &err));
    OK(run(c, rows, all, &err));
    for (int i = 0; i < 9; i++)
        cr_expect_eq(all[i], 1.5f + (i < 3 ? 2 : 1) * rows[i], "element %d", i);
    strata_context_destroy(c);
    close_net(&n);
}

Test(state, engine_files_keep_them)
{
    struct kept_net k;
    strata_error err;
    strata_engine *loaded;
    strata_context *c;
    float y[N];
    open_kept(&k, steps);
    OK(strata_engine_save(k.n.engine, in_scratch("net.engine"), &err));
    OK(strata_engine_load(&loaded, k.n.handle, k.n.registry, in_scratch("net.engine"),
                          &err));
    cr_assert_eq(strata_engine_states(loaded), 2);
    OK(strata_context_create(&c, loaded, k.n.handle, &err));
    for (int i = 1; i <= 3; i++) {
        OK(run(c, x, y, &err));
        expect_runs(y, i, i);
    }
    cr_expect_eq(run(c, x, y, &err), STRATA_EOVERFLOW);
    strata_context_destroy(c);
    strata_engine_destroy(loaded);
    close_kept(&k);
}

Test(state, sections_that_are_wrong_are_refused_with_their_place)
{
    static const struct {
        const char *state, *message;
    } cases[] = {
        {"[state s]\nshape = 2 x 3\n", "next"},
        {"[state s]\nshape = 2 x 3\nnext = no\n", "'no'"},
        {"[state s]\nshape = 2 x 3\nnext = x\n", "Identity"},
        {"[state s]\nshape = 3 x 2\nnext = y\n", "'y' is 2 x 3; the state 's' is 3 x 2"},
        {"[state s]\nshape = 2 x 3\ndtype = i32\nnext = y\n", "dtype"},
        {"[state s]\nshape = 2 x 3\nroom = 4\nnext = y\n", "room bounds integers"},
        {"[state x]\nshape = 2 x 3\nnext = y\n", "an input, too"},
        {"[state s]\nshape = 2 x 3\nnext = y\nrom = 4\n", "did you mean 'room'"},
        {"[state s]\nshape = 2 x 3\nformat = fp32:chwn\nnext = y\n", "rows of a state"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct net n;
        strata_error err;
        char layers[400];
        snprintf(layers, sizeof layers, "%s[layer y]\ntype = Identity\ninputs = x\n",
                 cases[i].state);
        cr_expect_neq(open_net(&n, "", "2 x 3", "y", layers, &err), STRATA_OK, "case %zu",
                      i);
        cr_expect(strstr(err.message, cases[i].message), "case %zu: %s", i, err.message);
        cr_expect(strstr(err.message, "net.ini:"), "case %zu: %s", i, err.message);
        close_net(&n);
    }
}
