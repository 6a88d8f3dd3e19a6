/* SPDX-License-Identifier: Apache-2.0
 *
 * One reader per image format; image.c chooses by content. Readers fill `out` whole or
 * leave it empty; messages do not name the path, image_parse puts it before them.
 */
#ifndef IO_IMAGE_PRIVATE_H
#define IO_IMAGE_PRIVATE_H

#include <stdbool.h>

#include "io/image/image.h"

typedef int image_reader(struct image *out, const void *bytes, size_t size,
                         const struct image_limits *limits, strata_error *err);

image_reader image_read_netpbm;
image_reader image_read_idx;
image_reader image_read_png;
image_reader image_read_jpeg;

/* memory.c */
/* Check a size that a file claims and allocate the pixels. */
int image_alloc(struct image *out, int64_t width, int64_t height, int channels,
                const struct image_limits *limits, strata_error *err);

#endif /* IO_IMAGE_PRIVATE_H */
