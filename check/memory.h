/* SPDX-License-Identifier: Apache-2.0
 *
 * Guarded blocks, on the host or on a device, and tensors addressed element by element.
 */
#ifndef CHECK_MEMORY_H
#define CHECK_MEMORY_H

#include <stdbool.h>

#include "core/handle.h"
#include "formats/format.h"

/* Memory with a band on each side. What lies on a device has a mirror on the host, in
 * which it is filled and checked; on the host the mirror is the memory itself. */
struct block {
    unsigned char *base, *data, *copy; /* copy: content that must not change, or NULL */
    size_t bytes;
    strata_handle *on; /* NULL: the host */
    void *device_base; /* NULL: the host */
    void *memory;      /* what a plugin is given; 256-byte aligned */
};

/* `bytes` filled, with a band on each side; not uploaded yet. */
bool block_make(struct block *b, strata_handle *on, size_t bytes, unsigned char fill);
/* From now on block_check wants the content as it is. */
bool block_protect(struct block *b);
void block_free(struct block *b);
/* Bands and all, on the handle's stream; they wait for it. Nothing to do on the host, or
 * for a block never made. */
int block_upload(const struct block *b, strata_error *err);
int block_download(struct block *b, strata_error *err);

enum block_verdict { BLOCK_FINE, BLOCK_OUTSIDE, BLOCK_CHANGED };
/* What happened to the mirror, with a message if it is not fine. */
enum block_verdict block_check(const struct block *b, const char *what, int index,
                               strata_error *err);

/* Dense row-major FP64 values to and from a tensor in any format, in host memory. */
void tensor_fill(const strata_tensor *t, const double *values);
void tensor_read(double *values, const strata_tensor *t);
/* A value as it is stored in a dtype. */
double tensor_round(int32_t dtype, double x);
/* Set the pad lanes; false: no memory. */
bool tensor_set_pads(const strata_tensor *t, double x);

enum tensor_verdict { TENSOR_FINE, TENSOR_PAD, TENSOR_GAP, TENSOR_NO_MEMORY };
/* Whether a pad lane is not 0 (unless dirty), or an element that belongs to no index
 * lost the byte pattern the memory began with; then with a message. */
enum tensor_verdict tensor_check_outside(const strata_tensor *t, bool dirty,
                                         unsigned char pattern, strata_error *err);
/* First live element, in row-major order, all of whose bytes are the pattern; -1. */
int64_t tensor_find_pattern(const strata_tensor *t, unsigned char pattern);

#endif /* CHECK_MEMORY_H */
