/* SPDX-License-Identifier: Apache-2.0
 *
 * IDX (MNIST): two zero bytes, type, rank, dims as big-endian 32-bit numbers, elements.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/image/private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/checked.h"
#include "io/file.h"

#define IDX_UBYTE 0x08

/* Dims and where the elements start; the size is checked against them. */
static int read_head(struct idx *out, const unsigned char *bytes, size_t size,
                     size_t *start, strata_error *err)
{
    const int most = (int)ARRAY_LENGTH(out->dims);
    int64_t count;
    if (size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "gzip files are not read; unpack it with gunzip");
    if (size < 4 || bytes[0] != 0 || bytes[1] != 0)
        return error_set(err, STRATA_EPARSE,
                         "byte 0: not an IDX file (%zu bytes), which starts with two "
                         "zero bytes, a type and a rank",
                         size);
    if (bytes[2] != IDX_UBYTE)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "byte 2: IDX type 0x%02x; only 0x08, unsigned bytes, is read",
                         bytes[2]);
    if (bytes[3] < 1 || bytes[3] > most)
        return error_set(err, STRATA_EPARSE, "byte 3: rank %d, allowed are 1 to %d",
                         bytes[3], most);
    out->rank = bytes[3];
    *start = 4 + 4 * (size_t)out->rank;
    if (size < *start)
        return error_set(
            err, STRATA_EPARSE,
            "byte 4: %zu bytes of dims, %d are needed; the file is cut short", size - 4,
            4 * out->rank);
    for (int d = 0; d < out->rank; d++) {
        const unsigned char *b = bytes + 4 + 4 * d;
        out->dims[d] = (int64_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
    }
    if (!checked_product(out->dims, out->rank, &count) ||
        (uint64_t)count != size - *start)
        return error_set(err, STRATA_EPARSE,
                         "byte %zu: %zu elements, which is not the product of the dims",
                         *start, size - *start);
    return STRATA_OK;
}

int idx_parse(struct idx *out, const void *bytes, size_t size, const char *path,
              strata_error *err)
{
    size_t start = 0;
    *out = (struct idx){0};
    int status = read_head(out, bytes, size, &start, err);
    if (status == STRATA_OK) {
        out->data = malloc(size - start + 1);
        if (!out->data)
            status = error_no_memory(err, size - start + 1, "IDX elements");
    }
    if (status != STRATA_OK) {
        error_prefix(err, "%s", path);
        *out = (struct idx){0};
        return status;
    }
    memcpy(out->data, (const char *)bytes + start, size - start);
    return STRATA_OK;
}

int idx_read(struct idx *out, const char *path, strata_error *err)
{
    struct file_bytes file;
    *out = (struct idx){0};
    int status = file_read(&file, path, image_default_limits.bytes, err);
    if (status != STRATA_OK)
        return status;
    status = idx_parse(out, file.data, file.size, path, err);
    file_free(&file);
    return status;
}

void idx_free(struct idx *x)
{
    if (!x)
        return;
    free(x->data);
    *x = (struct idx){0};
}

/* One grey image: dims h, w or 1, h, w. */
int image_read_idx(struct image *out, const void *bytes, size_t size,
                   const struct image_limits *limits, strata_error *err)
{
    struct idx head = {0};
    size_t start = 0;
    int status = read_head(&head, bytes, size, &start, err);
    if (status != STRATA_OK)
        return status;
    if (head.rank < 2 || head.rank > 3 || (head.rank == 3 && head.dims[0] != 1))
        return error_set(err, STRATA_EUNSUPPORTED,
                         "IDX file of rank %d with first dim %" PRId64 "; one image is "
                         "needed: rank 2, or rank 3 with first dim 1",
                         head.rank, head.dims[0]);
    status = image_alloc(out, head.dims[head.rank - 1], head.dims[head.rank - 2], 1,
                         limits, err);
    if (status == STRATA_OK)
        memcpy(out->pixels, (const char *)bytes + start, size - start);
    return status;
}
