/* SPDX-License-Identifier: Apache-2.0
 *
 * Pad lanes of what an application binds: zero by the contract, which STRATA_CHECK=1
 * holds it to, or of any content where the input's section says so.
 */
#include "tests/engine/engine_session.h"

#include <math.h>

TestSuite(pads, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

#define OK(call) cr_assert_eq((call), STRATA_OK, "%s", s.err.message)

enum { ROWS = 2, CHANNELS = 3, SIDE = 4, LANES = 8, COUNT = ROWS * SIDE * SIDE * LANES };
enum { OUT = ROWS * CHANNELS * 2 * 2 };

/* An impl of oneDNN that needs pads of zero. */
static const char *const pooling[] = {"layer y.impl=onednn_blocked", "input x.pads=any"};

static bool open_pooling(struct session *s, const char *const *set, size_t n)
{
    static const char net[] =
        "[network]\nformat = 1\noutputs = y\n[build]\ncosts = analytic\n"
        "[input x]\nshape = 2 x 3 x 4 x 4\nformat = fp32:nc/8hw8\n"
        "[layer y]\ntype = Pooling\nkernel = 2x2\nkind = average\nstride = 2x2\n";
    return session_build(s, spill_text("net.ini", net), set, n) == STRATA_OK;
}

/* Values by place, and NaN or zero in the five lanes behind three channels. */
static void fill(float x[COUNT], bool clean)
{
    for (int i = 0; i < COUNT; i++)
        x[i] = i % LANES < CHANNELS ? (float)(i * 7 % 11) - 5 : clean ? 0 : NAN;
}

static void run(struct session *s, const float *x, float y[OUT])
{
    strata_context *c = NULL;
    cr_assert_eq(strata_context_create(&c, s->engine, s->handle, &s->err), STRATA_OK);
    cr_assert_eq(strata_context_bind(c, 0, (void *)(uintptr_t)x, &s->err), STRATA_OK);
    cr_assert_eq(strata_context_run(c, &s->err), STRATA_OK, "%s", s->err.message);
    cr_assert_eq(strata_copy_out(c, 1, y, &s->err), STRATA_OK);
    strata_context_destroy(c);
}

static int cleaning_steps(const strata_engine *e)
{
    int n = 0;
    for (int i = 0; i < strata_engine_steps(e); i++) {
        strata_step step = {.struct_size = sizeof step};
        cr_assert_eq(strata_engine_step(e, i, &step, NULL), STRATA_OK);
        n += step.kind == STRATA_STEP_REFORMAT && strcmp(step.from, step.to) == 0;
    }
    return n;
}

/* The application's memory, which is not to be written. */
static float *bound(bool clean)
{
    float *x = aligned_alloc(256, COUNT * sizeof *x);
    cr_assert_not_null(x);
    fill(x, clean);
    return x;
}

Test(pads, any_content_is_cleaned_where_a_layer_needs_zeros)
{
    struct session s;
    float *x = bound(false), *clean = bound(true), want[OUT], got[OUT];
    float *before = bound(false);
    strata_engine *loaded = NULL;
    if (!open_pooling(&s, pooling, 1))
        cr_skip_test("this build has no oneDNN impl");
    cr_expect_eq(cleaning_steps(s.engine), 0, "by default pads are zero already");
    run(&s, clean, want);
    release(&s);
    cr_assert(open_pooling(&s, pooling, 2), "%s", s.err.message);
    cr_expect_eq(cleaning_steps(s.engine), 1);
    run(&s, x, got);
    cr_expect_arr_eq(got, want, sizeof got);
    cr_expect_eq(memcmp(x, before, COUNT * sizeof *x), 0, "bound memory was written");
    OK(strata_engine_save(s.engine, in_scratch("net.engine"), &s.err));
    OK(strata_engine_load(&loaded, s.handle, s.registry, in_scratch("net.engine"),
                          &s.err));
    cr_expect_eq(cleaning_steps(loaded), 1, "the file says so too");
    strata_engine_destroy(loaded);
    release(&s);
    free(x), free(clean), free(before);
}

/* One that ignores pads needs no pass for it. */
Test(pads, any_content_costs_nothing_where_nobody_looks)
{
    static const char *const set[] = {"layer y.impl=any", "layer y.format=fp32:nc/8hw8",
                                      "input x.pads=any"};
    struct session s;
    float *x = bound(false), *clean = bound(true), want[OUT], got[OUT];
    cr_assert(open_pooling(&s, set, 3), "%s", s.err.message);
    cr_expect_eq(cleaning_steps(s.engine), 0);
    run(&s, clean, want);
    run(&s, x, got);
    cr_expect_arr_eq(got, want, sizeof got);
    release(&s);
    free(x), free(clean);
}

Test(pads, a_check_names_the_binding_and_not_a_plugin)
{
    static const char *const set[] = {"layer y.impl=any", "layer y.format=fp32:nc/8hw8",
                                      "input x.pads=any"};
    struct session s;
    float *x = bound(false), y[OUT], *before = bound(false);
    strata_context *c = NULL;
    cr_assert_eq(setenv("STRATA_CHECK", "1", 1), 0);
    strata_set_logger(NULL, NULL, STRATA_LOG_ERROR);
    cr_assert(open_pooling(&s, set, 2), "%s", s.err.message);
    OK(strata_context_create(&c, s.engine, s.handle, &s.err));
    OK(strata_context_bind(c, 0, x, &s.err));
    cr_expect_eq(strata_context_run(c, &s.err), STRATA_EINVAL);
    cr_expect_not_null(strstr(s.err.message, "input 'x': STRATA_CHECK: its pad lane at "
                                             "(0, 3, 0, 0) is not zero"),
                       "%s", s.err.message);
    cr_expect_null(strstr(s.err.message, "impl"), "%s", s.err.message);
    fill(x, true);
    OK(strata_context_run(c, &s.err));
    x[COUNT - 1] = 1; /* of the last row, which a run of one does not read */
    cr_expect_eq(strata_context_run(c, &s.err), STRATA_EINVAL);
    OK(strata_context_set_batch(c, 1, &s.err));
    OK(strata_context_run(c, &s.err));
    strata_context_destroy(c);
    release(&s);
    fill(x, false);
    cr_assert(open_pooling(&s, set, 3), "%s", s.err.message);
    run(&s, x, y);
    cr_expect_eq(memcmp(x, before, COUNT * sizeof *x), 0, "bound memory was written");
    release(&s);
    free(x), free(before);
}
