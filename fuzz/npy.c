/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any text as the header of an .npy file. The first byte chooses the
 * version; magic and length are made right, so that inputs reach the dict.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/weights/npy.h"
#include "io/weights/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Data follows the header's line feed. */
static size_t header_size(const uint8_t *data, size_t size)
{
    const uint8_t *line = memchr(data, '\n', size);
    return line ? (size_t)(line - data) + 1 : size;
}

/* To each type that layers have; and written, read again as it was. */
static void convert(const struct weights *w, int dtype)
{
    static char folder[] = "/tmp/strata-fuzz-XXXXXX", path[64];
    struct weight_view v = weights_at(w, 0);
    int64_t count = (int64_t)(v.bytes / weight_dtype_size(v.dtype));
    size_t bytes = (size_t)count * strata_dtype_size(dtype);
    struct weights *again = NULL;
    void *values = malloc(bytes + 1);
    if (!values || weights_convert(values, dtype, v.data, v.dtype, count, NULL))
        abort();
    if (!path[0]) {
        if (!mkdtemp(folder))
            abort();
        snprintf(path, sizeof path, "%s/x.npy", folder);
    }
    if (bytes % 16 == 0 && (npy_write(path, dtype, v.dims, v.rank, values, NULL) ||
                            weights_open(&again, path, NULL, NULL)))
        abort();
    if (again) { /* BF16 and FP8 are written as FP32 */
        const struct weight_view w = weights_at(again, 0);
        const int found = weight_dtype_core(w.dtype);
        if (found != dtype ? found != STRATA_FP32 || w.bytes != (size_t)count * 4
                           : w.bytes != bytes || memcmp(w.data, values, bytes))
            abort();
    }
    weights_close(again);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    strata_error err = {0};
    struct weights *w;
    if (size < 1 || size > 60000)
        return 0;
    size_t version = data[0] % 3u + 1, start = version == 1 ? 10 : 12;
    size_t n = header_size(data + 1, size - 1);
    uint8_t *file = calloc(1, start + size - 1);
    if (!file)
        return 0;
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (uint8_t)version;
    file[8] = (uint8_t)(n & 0xff);
    file[9] = (uint8_t)(n >> 8);
    memcpy(file + start, data + 1, size - 1);
    int status = weights_parse(&w, file, start + size - 1, "fuzz", NULL, &err);
    if (status != err.status || (status == STRATA_OK) != (w != NULL))
        abort();
    for (int dtype = 0; w && dtype < STRATA_DTYPE_COUNT; dtype++)
        convert(w, dtype);
    weights_close(w);
    free(file);
    return 0;
}
