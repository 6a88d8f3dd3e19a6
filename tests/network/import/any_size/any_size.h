/* SPDX-License-Identifier: Apache-2.0
 *
 * A network for any sizes against the model imported at each. A failure fails the test.
 */
#ifndef TESTS_NETWORK_IMPORT_ANY_SIZE_ANY_SIZE_H
#define TESTS_NETWORK_IMPORT_ANY_SIZE_ANY_SIZE_H

#include <math.h>

#include <strata/sizes.h>

#include "tests/network/import/free_model.h"
#include "tests/network/import/planned.h"

enum { ROWS = 3, LENGTH = 9, VALUES = 1 << 14 };

/* Halved twice, and doubled as often beside it. */
#define HALVES                                                                           \
    "init s f 3 1 1 2\nnode MaxPool x -> a kernel_shape=[2] strides=[2]\n"               \
    "node MaxPool a -> b kernel_shape=[2] strides=[2]\n"                                 \
    "node Resize b,_,s -> c mode='nearest'\nnode Concat a,c -> d axis=1\n"               \
    "node Resize d,_,s -> e mode='nearest'\nnode Concat x,e -> y axis=1\noutput y\n"

/* As imported_open, with costs that are not measured. */
static inline void open_import(struct imported *x, const struct free_model *m,
                               const struct import_options *o, const char *name)
{
    static const char build[] = "\n[build]\ncosts = analytic\n";
    strata_error err = {0};
    *x = (struct imported){0};
    cr_assert_eq(import_make(&x->im, m->onnx, m->registry, o, &err), STRATA_OK, "%s: %s",
                 name, err.message);
    cr_assert_eq(
        import_text(x->im, NETWORK_MEMORY_WEIGHTS, &x->text, &x->text_size, &err),
        STRATA_OK, "%s", err.message);
    cr_assert_eq(import_weights(x->im, &x->weights, &x->weights_size, &err), STRATA_OK,
                 "%s", err.message);
    x->text = realloc(x->text, x->text_size + sizeof build);
    cr_assert_not_null(x->text);
    memcpy(x->text + x->text_size, build, sizeof build);
    const struct network_memory memory = {.text = x->text,
                                          .text_size = strlen(x->text),
                                          .weights = x->weights,
                                          .weights_size = x->weights_size};
    cr_assert_eq(network_parse(&x->network, &memory, name, m->registry, &err), STRATA_OK,
                 "%s: %s\n%s", name, err.message, x->text);
    cr_assert_eq(strata_create(&x->handle, "host", &err), STRATA_OK);
    cr_assert_eq(strata_engine_build(&x->engine, x->handle, x->network, &err), STRATA_OK,
                 "%s: %s\n%s", name, err.message, x->text);
    cr_assert_eq(strata_context_create(&x->context, x->engine, x->handle, &err),
                 STRATA_OK, "%s: %s", name, err.message);
}

static inline void fill(float *x, int64_t n, unsigned seed)
{
    cr_assert_leq(n, VALUES);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1103515245u + 12345u;
        x[i] = (float)(seed >> 16 & 0x7fff) / 16384 - 1;
    }
}

/* Inputs of the model at its own sizes into both, and their outputs compared. */
static inline void expect_same(const struct imported *any, const struct imported *fixed,
                               const char *name, const char *sizes)
{
    static float x[VALUES], found[VALUES], wanted[VALUES];
    const int n_in = (int)fixed->network->n_inputs;
    strata_binding b = {.struct_size = sizeof b}, a = b;
    strata_error err = {0};
    for (int i = 0; i < n_in; i++) {
        cr_assert_eq(strata_engine_binding(fixed->engine, i, &b, &err), STRATA_OK);
        cr_assert_eq(
            strata_context_set_shape(any->context, i, b.desc.rank, b.desc.dims, &err),
            STRATA_OK, "%s at %s: %s\n%s", name, sizes, err.message, any->text);
    }
    for (int i = 0; i < n_in; i++) {
        cr_assert_eq(strata_engine_binding(fixed->engine, i, &b, &err), STRATA_OK);
        fill(x, strata_desc_count(&b.desc), 7 + (unsigned)i);
        cr_assert_eq(strata_copy_in(fixed->context, i, x, &err), STRATA_OK);
        cr_assert_eq(strata_copy_in(any->context, i, x, &err), STRATA_OK, "%s at %s: %s",
                     name, sizes, err.message);
    }
    cr_assert_eq(strata_context_run(fixed->context, &err), STRATA_OK, "%s", err.message);
    cr_assert_eq(strata_context_run(any->context, &err), STRATA_OK, "%s at %s: %s", name,
                 sizes, err.message);
    cr_assert_eq(strata_engine_binding(fixed->engine, n_in, &b, &err), STRATA_OK);
    cr_assert_eq(strata_context_binding(any->context, n_in, &a, &err), STRATA_OK);
    const int64_t n = strata_desc_count(&b.desc);
    cr_assert_eq(strata_desc_count(&a.desc), n, "%s at %s", name, sizes);
    cr_assert_leq(n, VALUES);
    cr_assert_eq(strata_copy_out(fixed->context, n_in, wanted, &err), STRATA_OK);
    cr_assert_eq(strata_copy_out(any->context, n_in, found, &err), STRATA_OK);
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(found[i] - wanted[i]) <= 1e-5f * fmaxf(1, fabsf(wanted[i])))) {
            cr_expect(false, "%s at %s: element %d is %g, should be %g\n%s", name, sizes,
                      (int)i, (double)found[i], (double)wanted[i], any->text);
            return;
        }
}

#endif /* TESTS_NETWORK_IMPORT_ANY_SIZE_ANY_SIZE_H */
