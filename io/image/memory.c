/* SPDX-License-Identifier: Apache-2.0
 *
 * The pixels of an image, and the limits all readers share.
 */
#include "io/image/private.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/checked.h"

const struct image_limits image_default_limits = {
    .side = 32768,
    .pixels = UINT64_C(1) << 28,
    .bytes = UINT64_C(1) << 30,
};

int image_alloc(struct image *out, int64_t width, int64_t height, int channels,
                const struct image_limits *limits, strata_error *err)
{
    int64_t pixels = 0, bytes = 0;
    *out = (struct image){0};
    if (width < 1 || height < 1 || width > limits->side || height > limits->side)
        return error_set(err, STRATA_EPARSE,
                         "image is %" PRId64 " x %" PRId64 " pixels, sides of 1 to %d "
                         "are allowed",
                         width, height, limits->side);
    if (!checked_mul(width, height, &pixels) || (uint64_t)pixels > limits->pixels)
        return error_set(err, STRATA_EPARSE,
                         "image is %" PRId64 " x %" PRId64 " pixels, at most %" PRIu64
                         " pixels are allowed",
                         width, height, limits->pixels);
    if (!checked_mul(pixels, channels, &bytes))
        return error_set(err, STRATA_EOVERFLOW, "image size does not fit");
    out->pixels = malloc((size_t)bytes);
    if (!out->pixels)
        return error_no_memory(err, (size_t)bytes, "an image");
    out->width = (int)width;
    out->height = (int)height;
    out->channels = channels;
    return STRATA_OK;
}

void image_free(struct image *im)
{
    if (!im)
        return;
    free(im->pixels);
    *im = (struct image){0};
}
