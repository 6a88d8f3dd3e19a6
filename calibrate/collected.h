/* SPDX-License-Identifier: Apache-2.0
 *
 * A collection that was begun, as text, so that it can go on:
 *
 *   strata-collected 1
 *   samples 25 of 100
 *   # EXPONENT LOW HIGH SEEN ODD BIN:COUNT,... TENSOR, sorted by TENSOR
 *   3 -3.25 7.5 51380224 0 1216:4,1217:9 conv1
 */
#ifndef CALIBRATE_COLLECTED_H
#define CALIBRATE_COLLECTED_H

#include "calibrate/collect.h"

#define COLLECTED_FILE_MAX (UINT64_C(1) << 30) /* bytes */

/* Into an open collection over n samples; a file that does not exist is no failure.
 * EPARSE names the line; EINVAL: it is of other data or of another network. */
int collected_read(struct collection *c, const char *path, size_t n, strata_error *err);
int collected_parse(struct collection *c, const char *text, size_t size, size_t n,
                    const char *path, strata_error *err);
int collected_write(const struct collection *c, const char *path, size_t n,
                    strata_error *err);

#endif /* CALIBRATE_COLLECTED_H */
