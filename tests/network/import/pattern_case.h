/* SPDX-License-Identifier: Apache-2.0
 *
 * A model imported with patterns and without: the layers that are left, and what they
 * compute. A failure fails the test.
 */
#ifndef TESTS_NETWORK_IMPORT_PATTERN_CASE_H
#define TESTS_NETWORK_IMPORT_PATTERN_CASE_H

#include <math.h>

#include "tests/network/import/planned.h"
#include "tests/network/import/statements.h"

struct pattern_case {
    const char *shapes, *text;
    const char *types;   /* of the layers that are left */
    const char *says;    /* in the network's text; NULL: not asked */
    const char *further; /* an output beside the last value; NULL: none */
};

#define ROWS(text, types, says)                                                          \
    {                                                                                    \
        "x=2x3x8", text, types, says, NULL                                               \
    }

/* Heads of 8 elements, three of them, split off rows of 24 and joined again. */
#define QUERIES(x) "q0 = Reshape " x " [2,5,3,8]; q = Transpose q0 perm=0,2,1,3; "
#define KEYS(x) "k0 = Reshape " x " [2,7,3,8]; k = Transpose k0 perm=0,2,3,1; "
#define VALUES(x) "v0 = Reshape " x " [2,7,3,8]; v = Transpose v0 perm=0,2,1,3; "
#define JOIN "t = Transpose o perm=0,2,1,3; y = Reshape t [2,5,24]"
#define SHARES(s) "w = Softmax " s " axis=-1; o = MatMul w v; "
#define APART "x=2x5x24 d=2x7x24 e=2x7x24"

static strata_registry *registry;

static inline void open_registry(void)
{
    strata_error err = {0};
    cr_assert_eq(strata_registry_create(&registry, NULL, &err), STRATA_OK, "%s",
                 err.message);
}

static inline void close_registry(void)
{
    strata_registry_destroy(registry);
}

static inline void run(struct imported *x, const struct pattern_case *c,
                       const struct model_text *t, bool patterns)
{
    const struct import_options o = {.no_patterns = !patterns};
    strata_error err = {0};
    unsigned seed = 3;
    cr_assert_eq(imported_open(x, &t->model, registry, &o, &err), STRATA_OK, "%s: %s",
                 c->text, err.message);
    for (size_t i = 0; i < t->model.graph.n_inputs; i++) {
        int64_t n;
        float *data = imported_data(x, (int)i, &n);
        for (int64_t k = 0; k < n; k++)
            data[k] = model_text_random(&seed) * 2;
    }
    cr_assert_eq(strata_context_run(x->context, &err), STRATA_OK, "%s", err.message);
}

static inline void expect_same(const struct pattern_case *c, const struct imported *a,
                               const struct imported *b, int index)
{
    int64_t n, n_b;
    const float *found = imported_data(a, index, &n);
    const float *wanted = imported_data(b, index, &n_b);
    float most = 0;
    cr_assert_eq(n, n_b, "%s", c->text);
    for (int64_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(wanted[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(found[i] - wanted[i]) <= 2e-6f * most)) {
            cr_expect(false, "%s: element %d is %g, should be %g", c->text, (int)i,
                      (double)found[i], (double)wanted[i]);
            return;
        }
}

static inline void expect_case(const struct pattern_case *c)
{
    struct model_text *t = model_text_make(c->shapes, c->text, c->further);
    struct imported with, without;
    char types[512];
    run(&with, c, t, true);
    run(&without, c, t, false);
    imported_types(&with, types, sizeof types);
    cr_expect_str_eq(types, c->types, "%s: %s, should be %s\n%s", c->text, types,
                     c->types, with.text);
    if (c->says)
        cr_expect(strstr(with.text, c->says), "%s: no '%s' in\n%s", c->text, c->says,
                  with.text);
    for (size_t k = 0; k < t->model.graph.n_outputs; k++)
        expect_same(c, &with, &without, (int)(t->model.graph.n_inputs + k));
    imported_free(&with);
    imported_free(&without);
    free(t);
}

#endif /* TESTS_NETWORK_IMPORT_PATTERN_CASE_H */
