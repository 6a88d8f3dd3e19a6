/* SPDX-License-Identifier: Apache-2.0
 *
 * A network with its layers fused, against the same without: for tests of fusion.
 */
#ifndef TESTS_PLANNER_FUSING_H
#define TESTS_PLANNER_FUSING_H

#include <math.h>

#include "tests/engine/engine_session.h"
#include "tests/planner/planning.h"

#define FP32 "build.precision=fp32"
#define FP16 "build.precision=fp16"

static inline int build(struct session *s, const char *ini, const char *const *set,
                        size_t n_set)
{
    return session_build(s, spill_text("net.ini", ini), set, n_set);
}

static inline int plan(struct planning *s, const char *ini, const char *const *set,
                       size_t n_set)
{
    return planning_open(s, spill_text("net.ini", ini), set, n_set);
}

/* Values of the first output, for the caller to free; run twice, as memory is reused. */
static inline float *output(struct session *s, int64_t *count)
{
    strata_context *c = NULL;
    strata_binding b = {.struct_size = sizeof b};
    const strata_engine *e = s->engine;
    cr_assert_eq(strata_context_create(&c, e, s->handle, &s->err), STRATA_OK, "%s",
                 s->err.message);
    srand(42);
    for (int i = 0; i < (int)e->execution->n_inputs; i++) {
        cr_assert_eq(strata_engine_binding(e, i, &b, NULL), STRATA_OK);
        float *x = strata_context_data(c, i);
        for (int64_t k = 0; k < b.bytes / 4; k++)
            x[k] = (float)(rand() % 256) / 128 - 1;
    }
    for (int run = 0; run < 2; run++)
        cr_assert_eq(strata_context_run(c, &s->err), STRATA_OK, "%s", s->err.message);
    cr_assert_eq(strata_engine_binding(e, (int)e->execution->n_inputs, &b, NULL),
                 STRATA_OK);
    float *values = malloc((size_t)b.bytes);
    cr_assert_neq(values, NULL);
    memcpy(values, strata_context_data(c, (int)e->execution->n_inputs), (size_t)b.bytes);
    *count = b.bytes / 4;
    strata_context_destroy(c);
    return values;
}

static inline double worst_difference(const float *a, const float *b, int64_t n)
{
    double worst = 0, largest = 1e-30;
    for (int64_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
        largest = fmax(largest, fabs((double)a[i]));
    }
    return worst / largest;
}

static inline void expect_same_values(const char *name, const char *ini,
                                      const char *exact, const char *precision,
                                      double tolerance)
{
    struct session plain, fused;
    const char *no[] = {"build.fusion=no", exact};
    int64_t n, m;
    cr_assert_eq(build(&plain, ini, no, 2), STRATA_OK, "%s: %s", name, plain.err.message);
    float *a = output(&plain, &n);
    release(&plain);
    cr_assert_eq(build(&fused, ini, &precision, 1), STRATA_OK, "%s: %s", name,
                 fused.err.message);
    float *b = output(&fused, &m);
    release(&fused);
    cr_assert_eq(n, m);
    double worst = worst_difference(a, b, n);
    cr_expect_leq(worst, tolerance, "%s, %s: %g", name, precision, worst);
    free(a);
    free(b);
}

#endif /* TESTS_PLANNER_FUSING_H */
