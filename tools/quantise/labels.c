/* SPDX-License-Identifier: Apache-2.0
 *
 * The classes of samples, in the order of the samples.
 */
#include "tools/quantise/quantise.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"

enum { MOST_DIGITS = 9 };
#define LABELS_BYTES (UINT64_C(1) << 28)

static int check_count(const char *path, size_t found, size_t n, strata_error *err)
{
    return found == n ? STRATA_OK
                      : error_set(err, STRATA_EINVAL,
                                  "%s: %zu labels, but %zu samples; one each is needed, "
                                  "in the order of the samples' names",
                                  path, found, n);
}

static int from_idx(int64_t *out, const char *path, size_t n, strata_error *err)
{
    struct idx x = {0};
    int status = idx_read(&x, path, err);
    if (status == STRATA_OK && x.rank != 1)
        status = error_set(err, STRATA_EINVAL, "%s: has %d dims; labels have one", path,
                           x.rank);
    if (status == STRATA_OK)
        status = check_count(path, (size_t)x.dims[0], n, err);
    for (size_t i = 0; i < n && status == STRATA_OK; i++)
        out[i] = x.data[i];
    idx_free(&x);
    return status;
}

static int from_npy(int64_t *out, const char *path, size_t n, strata_error *err)
{
    struct weights *w = NULL;
    int status = weights_open(&w, path, NULL, err);
    if (status != STRATA_OK)
        return status;
    const struct weight_view v = weights_at(w, 0);
    const size_t found = v.bytes / weight_dtype_size(v.dtype);
    if (v.dtype <= WEIGHT_F8_E5M2)
        status = error_set(err, STRATA_EINVAL, "%s: labels are integers, not %s", path,
                           weight_dtype_name(v.dtype));
    if (status == STRATA_OK)
        status = check_count(path, found, n, err);
    if (status == STRATA_OK)
        status = weights_convert(out, STRATA_INT64, v.data, v.dtype, (int64_t)n, err);
    weights_close(w);
    return status;
}

/* A whole number a line; empty lines at the end are none. */
static int from_text(int64_t *out, const char *path, size_t n, strata_error *err)
{
    struct file_bytes f = {0};
    size_t found = 0, line = 0;
    int status = file_read(&f, path, LABELS_BYTES, err);
    const char *at = f.data, *end = at + f.size;
    for (; status == STRATA_OK && at < end; at++) {
        const size_t digits = strspn(at, "0123456789");
        const size_t blanks = strspn(at + digits, " \t\r");
        line++;
        if (digits > MOST_DIGITS ||
            (at[digits + blanks] && at[digits + blanks] != '\n') ||
            (digits == 0 && at + strspn(at, " \t\r\n") < end)) {
            status = error_set(err, STRATA_EPARSE,
                               "%s:%zu: error: a class is needed, a whole number of at "
                               "most %d digits on each line",
                               path, line, MOST_DIGITS);
            break;
        }
        if (digits && found < n)
            out[found] = strtoll(at, NULL, 10);
        found += digits > 0;
        at += digits + blanks;
    }
    if (status == STRATA_OK)
        status = check_count(path, found, n, err);
    file_free(&f);
    return status;
}

int labels_read(int64_t **out, const char *path, size_t n, strata_error *err)
{
    char head[6] = "";
    *out = zalloc(n, sizeof **out, "labels", err);
    if (!*out)
        return STRATA_ENOMEM;
    const size_t size = file_head(head, sizeof head, path);
    int status =
        size == 6 && memcmp(head, "\x93NUMPY", 6) == 0  ? from_npy(*out, path, n, err)
        : size >= 4 && memcmp(head, "\0\0\x08", 3) == 0 ? from_idx(*out, path, n, err)
                                                        : from_text(*out, path, n, err);
    status = tool_file_status(status, err);
    if (status != STRATA_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}
