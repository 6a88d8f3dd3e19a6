/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any bytes as an ONNX model that is imported. What the importer takes
 * it writes, as text and as weights.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "network/import/import.h"
#include "network/network.h"
#include "registry/registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_network(const struct import *im)
{
    strata_error err = {0};
    char *text = NULL;
    void *weights = NULL;
    size_t n;
    if (import_text(im, NETWORK_MEMORY_WEIGHTS, &text, &n, &err) == STRATA_OK)
        import_weights(im, &weights, &n, &err);
    free(text);
    free(weights);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static strata_registry *registry;
    strata_error err = {0};
    const struct onnx_model *m;
    struct import *im = NULL;
    if (!registry && strata_registry_create(&registry, NULL, &err) != STRATA_OK)
        abort();
    err = (strata_error){0};
    if (onnx_parse(&m, data, size, "fuzz", NULL, &err) != STRATA_OK)
        return 0;
    const int status = import_make(&im, m, registry, NULL, &err);
    if (status != err.status)
        abort();
    if (status == STRATA_OK)
        write_network(im);
    import_free(im);
    onnx_close(m);
    return 0;
}
