/* SPDX-License-Identifier: Apache-2.0
 *
 * Guarded blocks and tensors addressed element by element, for layer tests.
 */
#ifndef CHECK_HARNESS_MEMORY_H
#define CHECK_HARNESS_MEMORY_H

#include <stdbool.h>

#include "formats/format.h"

struct block {
    unsigned char *base, *data, *copy; /* copy: content that must not change, or NULL */
    size_t bytes;
    unsigned char band;    /* byte that its bands hold */
    unsigned char *device; /* the content's address on a device, or NULL: mirror.h */
    size_t lead;           /* bytes of the content before a tensor in it */
};

/* `bytes` at a 256-byte boundary, filled, with a band on each side. */
bool block_make(struct block *b, size_t bytes, unsigned char fill);
/* The same in memory of the caller's, block_whole(bytes) long at a 256-byte boundary;
 * bands_only leaves the content as it is. */
size_t block_whole(size_t bytes);
void block_lay(struct block *b, unsigned char *memory, size_t bytes, unsigned char fill,
               bool bands_only);
/* Fill the bands anew: BAND_PLAIN is a tiny number as floating point, BAND_NAN is NaN. */
#define BAND_PLAIN 0xa5
#define BAND_NAN 0xff
void block_set_bands(struct block *b, unsigned char band);
/* From now on block_check wants the content as it is. */
bool block_protect(struct block *b);
void block_free(struct block *b);
enum block_verdict { BLOCK_FINE, BLOCK_OUTSIDE, BLOCK_CHANGED };
/* What happened to the mirror, with a message if it is not fine. */
enum block_verdict block_check(const struct block *b, const char *what, int index,
                               strata_error *err);

/* Values (check/harness/number.h) to and from a tensor in any format. */
void tensor_fill(const strata_tensor *t, const void *values);
void tensor_read(void *values, const strata_tensor *t);
/* Set the pad lanes: to zero, or to what must not be read; false: no memory. */
bool tensor_set_pads(const strata_tensor *t, bool poison);
enum tensor_verdict { TENSOR_FINE, TENSOR_PAD, TENSOR_GAP, TENSOR_NO_MEMORY };
/* Whether a pad lane is not 0 (unless dirty), or an element that belongs to no index
 * lost the byte pattern the memory began with; then with a message. */
enum tensor_verdict tensor_check_outside(const strata_tensor *t, bool dirty,
                                         unsigned char pattern, strata_error *err);
/* First live element, in row-major order, all of whose bytes are the pattern; -1. */
int64_t tensor_find_pattern(const strata_tensor *t, unsigned char pattern);

#endif /* CHECK_HARNESS_MEMORY_H */
