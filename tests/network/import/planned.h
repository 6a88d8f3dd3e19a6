/* SPDX-License-Identifier: Apache-2.0
 *
 * A model imported and made ready to run on the host. A failure fails the test, so these
 * are for tests alone; free what was made in every case.
 */
#ifndef TESTS_NETWORK_IMPORT_PLANNED_H
#define TESTS_NETWORK_IMPORT_PLANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "network/import/import.h"
#include "network/network.h"

struct imported {
    struct import *im;
    char *text;
    size_t text_size;
    void *weights;
    size_t weights_size;
    strata_network *network;
    strata_handle *handle;
    strata_engine *engine;
    strata_context *context;
};

static inline void imported_free(struct imported *x)
{
    strata_context_destroy(x->context);
    strata_engine_destroy(x->engine);
    strata_destroy(x->handle);
    strata_network_destroy(x->network);
    import_free(x->im);
    free(x->weights);
    free(x->text);
}

static inline int imported_open(struct imported *x, const struct onnx_model *m,
                                strata_registry *registry, const struct import_options *o,
                                strata_error *err)
{
    *x = (struct imported){0};
    int status = import_make(&x->im, m, registry, o, err);
    if (status == STRATA_OK)
        status = import_text(x->im, NETWORK_MEMORY_WEIGHTS, &x->text, &x->text_size, err);
    if (status == STRATA_OK)
        status = import_weights(x->im, &x->weights, &x->weights_size, err);
    const struct network_memory memory = {.text = x->text,
                                          .text_size = x->text_size,
                                          .weights = x->weights,
                                          .weights_size = x->weights_size};
    if (status == STRATA_OK)
        status = network_parse(&x->network, &memory, "imported", registry, err);
    if (status == STRATA_OK)
        status = strata_create(&x->handle, "host", err);
    if (status == STRATA_OK)
        status = strata_engine_build(&x->engine, x->handle, x->network, err);
    if (status == STRATA_OK)
        status = strata_context_create(&x->context, x->engine, x->handle, err);
    return status;
}

/* Elements of binding i, inputs first, which are `*n`. */
static inline float *imported_data(const struct imported *x, int i, int64_t *n)
{
    strata_binding b = {.struct_size = sizeof b};
    cr_assert_eq(strata_engine_binding(x->engine, i, &b, NULL), STRATA_OK);
    *n = strata_desc_count(&b.desc);
    return strata_context_data(x->context, i);
}

/* The types of its layers in order, a space between. */
static inline void imported_types(const struct imported *x, char *out, size_t size)
{
    static const char key[] = "\ntype = ";
    size_t used = 0;
    *out = '\0';
    for (const char *at = x->text; (at = strstr(at, key));) {
        at += sizeof key - 1;
        const size_t n = strcspn(at, "\n");
        cr_assert_lt(used + n + 2, size);
        used += (size_t)snprintf(out + used, size - used, "%s%.*s", used ? " " : "",
                                 (int)n, at);
    }
}

#endif /* TESTS_NETWORK_IMPORT_PLANNED_H */
