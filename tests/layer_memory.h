/* SPDX-License-Identifier: Apache-2.0
 *
 * Guarded blocks and tensors addressed element by element, for layer tests.
 */
#ifndef TESTS_LAYER_MEMORY_H
#define TESTS_LAYER_MEMORY_H

#include <stdbool.h>

#include "formats/format.h"

struct block {
    unsigned char *base, *data, *copy; /* copy: content that must not change, or NULL */
    size_t bytes;
    unsigned char *device; /* the content's address on a device, or NULL: layer_mirror.h */
};

/* `bytes` at a 256-byte boundary, filled, with a band on each side. */
bool block_make(struct block *b, size_t bytes, unsigned char fill);
/* The same in memory of the caller's, block_whole(bytes) long at a 256-byte boundary;
 * bands_only leaves the content as it is. */
size_t block_whole(size_t bytes);
void block_lay(struct block *b, unsigned char *memory, size_t bytes, unsigned char fill,
               bool bands_only);
/* From now on block_check wants the content as it is. */
bool block_protect(struct block *b);
void block_free(struct block *b);
/* EINTERNAL if a band or protected content changed; a block never made is fine. */
int block_check(const struct block *b, const char *what, int index, strata_error *err);

/* Dense row-major FP64 values to and from a tensor in any format. */
void tensor_fill(const strata_tensor *t, const double *values);
void tensor_read(double *values, const strata_tensor *t);
/* A value as it is stored in a dtype. */
double tensor_round(int32_t dtype, double x);
/* Set the pad lanes; false: no memory. */
bool tensor_set_pads(const strata_tensor *t, double x);
/* EINTERNAL if a pad lane is not 0 (unless dirty), or if an element that belongs to no
 * index lost the byte pattern the memory began with. */
int tensor_check_outside(const strata_tensor *t, bool dirty, unsigned char pattern,
                         strata_error *err);

#endif /* TESTS_LAYER_MEMORY_H */
