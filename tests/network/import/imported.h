/* SPDX-License-Identifier: Apache-2.0
 *
 * Models from a text (model_text.h), imported: constants that their outputs are, the
 * network's text, or what the importer refuses.
 */
#ifndef TESTS_NETWORK_IMPORT_IMPORTED_H
#define TESTS_NETWORK_IMPORT_IMPORTED_H

#include "network/import/private.h"
#include "tests/network/import/model_text.h"

struct imported {
    struct message bytes;
    const struct onnx_model *model;
    strata_registry *registry;
    struct import *im;
    int status;
    strata_error err;
};

static inline struct imported import_model_text(const char *text)
{
    struct imported i = {.bytes = model_bytes(text)};
    cr_assert_eq(strata_registry_create(&i.registry, NULL, &i.err), STRATA_OK, "%s",
                 i.err.message);
    cr_assert_eq(
        onnx_parse(&i.model, i.bytes.bytes, i.bytes.size, "model.onnx", NULL, &i.err),
        STRATA_OK, "%s\n%s", i.err.message, text);
    i.status = import_make(&i.im, i.model, i.registry, NULL, &i.err);
    return i;
}

static inline void imported_close(struct imported *i)
{
    import_free(i->im);
    onnx_close(i->model);
    strata_registry_destroy(i->registry);
    free(i->bytes.bytes);
}

/* Output k, which is a constant of the network. */
static inline const struct value *imported_constant(const struct imported *i, size_t k)
{
    const int output = i->im->g.outputs[k];
    for (size_t s = 0; s < i->im->n_sections; s++) {
        const struct section *section = i->im->sections[s];
        if (section->n_out == 1 && section->out[0] == output &&
            strcmp(section->type, "Constant") == 0)
            return &i->im->g.values[section->weights[0].value];
    }
    return NULL;
}

/* All outputs of the model as a text: "2x1: 3 4.5; -: 7". The caller frees it. */
static inline char *imported_values(const char *text)
{
    struct imported i = import_model_text(text);
    char *out = NULL;
    size_t size;
    FILE *f = open_memstream(&out, &size);
    cr_assert_eq(i.status, STRATA_OK, "%s\n%s", i.err.message, text);
    for (size_t k = 0; k < i.im->g.n_outputs; k++) {
        const struct value *v = imported_constant(&i, k);
        fputs(k ? "; " : "", f);
        if (!v) {
            fputs("computed", f);
            continue;
        }
        for (int d = 0; d < v->rank; d++)
            fprintf(f, "%s%lld", d ? "x" : "", (long long)v->dims[d]);
        fputs(v->rank ? ":" : "-:", f);
        for (int64_t e = 0; e < value_count(v); e++)
            fprintf(f, " %.5g", value_real(v, e));
    }
    fclose(f);
    imported_close(&i);
    return out;
}

static inline void expect_values(const char *name, const char *text, const char *wanted)
{
    char *found = imported_values(text);
    cr_expect_str_eq(found, wanted, "%s: %s, should be %s", name, found, wanted);
    free(found);
}

/* Refused, and the reason holds `what`. */
static inline void expect_import_refused(const char *name, const char *text,
                                         const char *what)
{
    struct imported i = import_model_text(text);
    cr_expect_eq(i.status, STRATA_EUNSUPPORTED, "%s: status %d", name, i.status);
    cr_expect_not_null(strstr(i.err.message, what), "%s: no '%s' in: %s", name, what,
                       i.err.message);
    imported_close(&i);
}

/* The network's INI text; the caller frees it. */
static inline char *imported_text(const char *text)
{
    struct imported i = import_model_text(text);
    char *out = NULL;
    size_t size;
    cr_assert_eq(i.status, STRATA_OK, "%s\n%s", i.err.message, text);
    cr_assert_eq(import_text(i.im, "weights", &out, &size, &i.err), STRATA_OK, "%s",
                 i.err.message);
    imported_close(&i);
    return out;
}

static inline void expect_text(const char *name, const char *text, const char *what)
{
    char *found = imported_text(text);
    cr_expect_not_null(strstr(found, what), "%s: no '%s' in:\n%s", name, what, found);
    free(found);
}

#endif /* TESTS_NETWORK_IMPORT_IMPORTED_H */
