/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any bytes as a weights file and as the text of a safetensors header.
 * Everything that is read is used.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/weights/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct weights *w, size_t i)
{
    struct weight_view v = weights_at(w, i), found;
    int64_t count = (int64_t)(v.bytes / weight_dtype_size(v.dtype));
    if (weights_find(w, v.name, &found, NULL) != STRATA_OK || found.data != v.data)
        abort();
    float *values = malloc((size_t)count * sizeof *values + 1);
    if (values && weights_convert(values, STRATA_FP32, v.data, v.dtype, count, NULL))
        abort();
    free(values);
}

static void parse(const uint8_t *data, size_t size)
{
    strata_error err = {0};
    struct weights *w;
    int status = weights_parse(&w, data, size, "fuzz", NULL, &err);
    if (status != err.status || (status == STRATA_OK) != (w != NULL))
        abort();
    for (size_t i = 0; w && i < weights_count(w); i++)
        use(w, i);
    weights_close(w);
}

/* By way of a file, which both functions that open one must read alike. */
static void open_file(const uint8_t *data, size_t size)
{
    static char folder[] = "/tmp/strata-fuzz-XXXXXX", path[64];
    struct weights *a, *b;
    if (!path[0]) {
        if (!mkdtemp(folder))
            abort();
        snprintf(path, sizeof path, "%s/w", folder);
    }
    FILE *f = fopen(path, "w");
    if (!f)
        abort();
    if (size)
        fwrite(data, 1, size, f);
    fclose(f);
    int first = weights_open(&a, path, NULL, NULL);
    int second = weights_open_beneath(&b, folder, "w", 0, NULL, NULL);
    if (first != second || (a && weights_count(a) != weights_count(b)))
        abort();
    weights_close(a);
    weights_close(b);
}

/* As it is, and as header and data apart at the last '}', with the length put right: few
 * mutations of a file keep the length they need. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse(data, size);
    if (size % 16 == 0)
        open_file(data, size);
    const uint8_t *end = memrchr(data, '}', size);
    size_t n = end ? (size_t)(end - data) + 1 : size;
    uint8_t *file = calloc(1, 8 + size);
    if (!file)
        return 0;
    for (int i = 0; i < 4; i++)
        file[i] = (uint8_t)(n >> 8 * i & 0xff);
    if (size > 0)
        memcpy(file + 8, data, size);
    parse(file, 8 + size);
    free(file);
    return 0;
}
