/* SPDX-License-Identifier: Apache-2.0
 *
 * What the readers of weights files fill in. Records are small because a file may hold
 * a million of them: loading must stay within the file's size plus 64 MiB.
 */
#ifndef IO_WEIGHTS_PRIVATE_H
#define IO_WEIGHTS_PRIVATE_H

#include "io/file.h"
#include "io/weights/weights.h"

struct weight_record {
    uint64_t offset;                /* bytes, from weights.data */
    uint32_t name;                  /* offset in weights.names */
    uint32_t dims[STRATA_MAX_RANK]; /* the formats' own limit is 2^31 - 1 */
    uint8_t dtype, rank;
};

struct weights {
    const char *names; /* NUL-terminated names at the records' offsets */
    const char *data;
    struct weight_record *records; /* in the file's order */
    uint32_t *order;               /* records sorted by name */
    size_t count;
    struct file_bytes file; /* the private copy; empty for weights_parse */
    void *extra;            /* owned: a copy of the header, or transposed elements */
};

/* safetensors.c, npy.c */
/* Fill w from a whole file; on failure the caller closes w. Names are decoded in place
 * in w->file when that holds `bytes`. */
int safetensors_parse(struct weights *w, const void *bytes, size_t size,
                      const struct weight_limits *limits, strata_error *err);
int npy_load(struct weights *w, const void *bytes, size_t size,
             const struct weight_limits *limits, strata_error *err);

#define NPY_MAGIC "\x93NUMPY"
#define NPY_MAGIC_SIZE 6

/* record.c */
/* Elements of dims, each at most the limits; `what` names the tensor in messages. */
int weight_count(int64_t *out, const int64_t *dims, int rank,
                 const struct weight_limits *limits, const char *what, strata_error *err);

#endif /* IO_WEIGHTS_PRIVATE_H */
