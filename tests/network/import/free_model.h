/* SPDX-License-Identifier: Apache-2.0
 *
 * A model's text with free dims, opened with names or numbers in their place. A failure
 * fails the test.
 */
#ifndef TESTS_NETWORK_IMPORT_FREE_MODEL_H
#define TESTS_NETWORK_IMPORT_FREE_MODEL_H

#include "network/import/private.h"
#include "tests/network/import/model_text.h"

#define FREE_MODEL_BYTES 4096

struct free_model {
    struct message bytes;
    const struct onnx_model *onnx;
    strata_registry *registry;
};

/* `text` has the batch in place of each '@', the length of each '#' and the past of each
 * '$'. */
static inline struct free_model free_model_of_opset(int opset, const char *text,
                                                    const char *batch, const char *length,
                                                    const char *past)
{
    char copy[FREE_MODEL_BYTES];
    struct free_model m = {0};
    strata_error err = {0};
    snprintf(copy, sizeof copy, "ir 8\nopset %d\n", opset);
    for (size_t n = strlen(copy); *text; text++, n = strlen(copy)) {
        const char one[2] = {*text, '\0'};
        snprintf(copy + n, sizeof copy - n, "%s",
                 *text == '@'   ? batch
                 : *text == '#' ? length
                 : *text == '$' ? past
                                : one);
    }
    m.bytes = model_bytes(copy);
    cr_assert_eq(strata_registry_create(&m.registry, NULL, &err), STRATA_OK, "%s",
                 err.message);
    cr_assert_eq(onnx_parse(&m.onnx, m.bytes.bytes, m.bytes.size, "model", NULL, &err),
                 STRATA_OK, "%s\n%s", err.message, copy);
    return m;
}

static inline struct free_model free_model_open(const char *text, const char *batch,
                                                const char *length, const char *past)
{
    return free_model_of_opset(21, text, batch, length, past);
}

static inline void free_model_close(struct free_model *m)
{
    onnx_close(m->onnx);
    strata_registry_destroy(m->registry);
    free(m->bytes.bytes);
}

#endif /* TESTS_NETWORK_IMPORT_FREE_MODEL_H */
