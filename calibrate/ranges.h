/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges of tensors, and their text form, made to be read, compared, edited and kept in
 * version control:
 *
 *   strata-ranges 1
 *   # LOW HIGH SEEN TENSOR, sorted by TENSOR
 *   -3.25 7.5 51380224 conv1
 *
 * LOW and HIGH are what a quantised tensor shall hold, SEEN how many values they are
 * from.
 */
#ifndef CALIBRATE_RANGES_H
#define CALIBRATE_RANGES_H

#include "core/status.h"

#define RANGES_FILE_MAX (UINT64_C(1) << 28) /* bytes */
#define RANGES_NAME_MAX 255                 /* bytes of a tensor's name */

struct range {
    char *tensor; /* owned */
    double low, high;
    int64_t seen;
};

struct ranges {
    struct range *list; /* sorted by tensor, as bytes */
    size_t n, capacity;
};

void ranges_free(struct ranges *r);
const struct range *ranges_find(const struct ranges *r, const char *tensor);
/* Replaces one that is there. */
int ranges_put(struct ranges *r, const char *tensor, double low, double high,
               int64_t seen, strata_error *err);

/* EPARSE names the line; path is for messages. *r is empty before, and after a failure.
 */
int ranges_parse(struct ranges *r, const char *text, size_t size, const char *path,
                 strata_error *err);
int ranges_read(struct ranges *r, const char *path, strata_error *err);
/* Reads back as the same. */
int ranges_text(char **text, size_t *size, const struct ranges *r, strata_error *err);
int ranges_write(const struct ranges *r, const char *path, strata_error *err);

#endif /* CALIBRATE_RANGES_H */
