/* SPDX-License-Identifier: Apache-2.0
 *
 * Constants are made with the engine, once for all its sizes: no run copies them, none
 * writes over them, and no weight is kept beside them.
 */
#include "tests/engine/engine_session.h"

#include <math.h>

TestSuite(constants, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

#define OK_OF(s, call) cr_assert_eq((call), STRATA_OK, "%s", (s)->err.message)
#define OK(call) cr_assert_eq((call), STRATA_OK, "%s", s.err.message)

enum { COUNT = 3 * 5 * 7 };

/* q is read by a sum that may write over its first input, p is an output, too, and j is
 * joined. */
static const char net[] =
    "[network]\nformat = 1\noutputs = y, p, k\n[build]\ncosts = analytic\n"
    "[weights w]\nrandom = 1\n"
    "[input x]\nshape = 1 x 3 x 5 x 7\n"
    "[layer q]\ntype = Constant\nshape = 1 x 3 x 5 x 7\nweights = w:q\n"
    "[layer p]\ntype = Constant\nshape = 1 x 3 x 5 x 7\nweights = w:p\n"
    "[layer j]\ntype = Constant\nshape = 1 x 3 x 5 x 7\nweights = w:j\n"
    "[layer sum]\ntype = ElementWise\ninputs = q, x\n"
    "[layer y]\ntype = ElementWise\ninputs = sum, p\n"
    "[layer k]\ntype = Concatenation\ninputs = x, j\naxis = 1\n";

static int kind_of(const struct session *s, const char *name)
{
    for (int i = 0; i < strata_engine_steps(s->engine); i++) {
        strata_step step = {.struct_size = sizeof step};
        cr_assert_eq(strata_engine_step(s->engine, i, &step, NULL), STRATA_OK);
        if (strcmp(step.name, name) == 0)
            return step.kind;
    }
    cr_assert_fail("no step is '%s'", name);
    return -1;
}

static void run(struct session *s, strata_context *c, float x, float y[COUNT],
                float k[2 * COUNT])
{
    float in[COUNT];
    for (int i = 0; i < COUNT; i++)
        in[i] = x;
    cr_assert_eq(strata_copy_in(c, 0, in, &s->err), STRATA_OK);
    cr_assert_eq(strata_context_run(c, &s->err), STRATA_OK, "%s", s->err.message);
    cr_assert_eq(strata_copy_out(c, 1, y, &s->err), STRATA_OK);
    cr_assert_eq(strata_copy_out(c, 3, k, &s->err), STRATA_OK);
}

/* By two contexts in turns, and again by the first. */
static void check_runs(struct session *s)
{
    strata_context *c[2] = {NULL, NULL};
    float y[3][COUNT], k[3][2 * COUNT];
    for (int i = 0; i < 2; i++)
        cr_assert_eq(strata_context_create(&c[i], s->engine, s->handle, &s->err),
                     STRATA_OK, "%s", s->err.message);
    for (int i = 0; i < 3; i++)
        run(s, c[i % 2], i % 2 ? 4.0F : 0.0F, y[i], k[i]);
    cr_expect_arr_eq(y[0], y[2], sizeof y[0], "a run leaves constants as they are");
    for (int i = 0; i < COUNT; i++)
        cr_expect_float_eq(y[1][i] - y[0][i], 4, 1e-5, "element %d", i);
    cr_expect_arr_eq(k[0] + COUNT, k[1] + COUNT, sizeof k[0] / 2);
    cr_expect(fabsf(k[0][COUNT]) > 0, "what is joined was made");
    for (int i = 0; i < 2; i++)
        strata_context_destroy(c[i]);
}

Test(constants, no_run_makes_or_changes_them)
{
    static const char *const formats[] = {"layer q.format=fp32:nchw",
                                          "layer q.format=fp32:nhwc"};
    uint64_t bytes[2];
    for (size_t f = 0; f < 2; f++) {
        struct session s;
        OK(session_build(&s, spill_text("net.ini", net), &formats[f], 1));
        cr_expect_eq(kind_of(&s, "q"), STRATA_STEP_RELABEL, "%s", formats[f]);
        cr_expect_eq(kind_of(&s, "p"), STRATA_STEP_RUN, "an output is the caller's");
        check_runs(&s);
        bytes[f] = strata_engine_weight_bytes(s.engine);
        release(&s);
    }
    cr_expect_eq(bytes[1], bytes[0], "in another order it takes the weight's place");
}

/* The nodes' parts in engines for all sizes; who checks contexts has all weights. */
static const char sized[] =
    "[network]\nformat = 1\noutputs = y\n[build]\ncosts = analytic\nfusion = no\n"
    "[profile]\nN = 1, 2, 4\n[weights w]\nrandom = 1\n"
    "[input x]\nshape = N x 3 x 5 x 7\n"
    "[layer q]\ntype = Constant\nshape = 1 x 3 x 5 x 7\nweights = w:q\n"
    "format = fp32:nhwc\n"
    "[layer y]\ntype = ElementWise\ninputs = x, q\n";

static const struct engine_part *part_of(const strata_engine *e, const char *layer)
{
    for (size_t i = 0; i < e->execution->n_nodes; i++)
        if (strcmp(e->execution->nodes[i].name, layer) == 0)
            return e->parts[i];
    cr_assert_fail("no node is '%s'", layer);
    return NULL;
}

static void expect_sum(struct session *s, int64_t rows)
{
    enum { MOST = 4 };
    strata_context *c;
    float x[MOST * COUNT], y[2][MOST * COUNT];
    OK_OF(s, strata_context_create(&c, s->engine, s->handle, &s->err));
    OK_OF(s, strata_context_set_batch(c, rows, &s->err));
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < MOST * COUNT; i++)
            x[i] = k ? (float)i : 0;
        OK_OF(s, strata_copy_in(c, 0, x, &s->err));
        OK_OF(s, strata_context_run(c, &s->err));
        OK_OF(s, strata_copy_out(c, 1, y[k], &s->err));
    }
    cr_expect(fabsf(y[0][1]) > 0, "it was made");
    for (int64_t i = 0; i < rows * COUNT; i++) {
        cr_expect_float_eq(y[0][i], y[0][i % COUNT], 0, "row of element %d", (int)i);
        cr_expect_float_eq(y[1][i], x[i] + y[0][i], 1e-4, "element %d", (int)i);
    }
    strata_context_destroy(c);
}

Test(constants, all_sizes_have_one)
{
    struct session s;
    OK(session_build(&s, spill_text("net.ini", sized), NULL, 0));
    const struct engine_part *whole = part_of(s.engine, "q");
    cr_assert_eq(s.engine->n_smaller, 2);
    cr_expect_eq(whole->constant_bytes, COUNT * sizeof(float));
    cr_expect_null(whole->weights[0].data);
    for (size_t i = 0; i < 2; i++) {
        const struct engine_part *part = part_of(s.engine->smaller[i], "q");
        cr_expect_eq(part->constant, whole->constant);
        cr_expect_eq(part->constant_bytes, 0);
        cr_expect_eq(s.engine->smaller[i]->weight_bytes, 0);
    }
    for (int64_t rows = 1; rows <= 4; rows++)
        expect_sum(&s, rows);
    release(&s);
}

/* Whether it was built to be checked or not, and runs so or not. */
Test(constants, contexts_that_check_have_their_own)
{
    for (int k = 0; k < 4; k++) {
        struct session s;
        cr_assert_eq(setenv("STRATA_CHECK", k & 1 ? "1" : "0", 1), 0);
        OK(session_build(&s, spill_text("net.ini", sized), NULL, 0));
        cr_expect_eq(part_of(s.engine, "q")->weights[0].data != NULL, k & 1);
        cr_expect_eq(part_of(s.engine->smaller[0], "q")->constant_bytes > 0, k & 1);
        cr_assert_eq(setenv("STRATA_CHECK", k & 2 ? "1" : "0", 1), 0);
        for (int64_t rows = 1; rows <= 4; rows++)
            expect_sum(&s, rows);
        release(&s);
    }
    cr_assert_eq(unsetenv("STRATA_CHECK"), 0);
}
