/* SPDX-License-Identifier: Apache-2.0
 *
 * Images as network inputs: PGM, PPM, MNIST IDX without a library, PNG and JPEG where
 * the libraries were found; resize and normalisation as the INI's input section says.
 */
#ifndef IO_IMAGE_IMAGE_H
#define IO_IMAGE_IMAGE_H

#include <stdbool.h>

#include "core/status.h"

struct image {
    uint8_t *pixels; /* height x width x channels, owned */
    int width, height;
    int channels; /* 1 or 3 (RGB) */
};

struct image_limits {
    int side;        /* pixels, 32768 */
    uint64_t pixels; /* 2^28 */
    uint64_t bytes;  /* of the file, 1 GiB */
};
extern const struct image_limits image_default_limits;

/* By content, not by name; limits NULL: default. */
int image_read(struct image *out, const char *path, const struct image_limits *limits,
               strata_error *err);
int image_parse(struct image *out, const void *bytes, size_t size, const char *path,
                const struct image_limits *limits, strata_error *err);
void image_free(struct image *im);
/* "PGM, PPM, IDX, PNG, JPEG" as built. */
const char *image_formats(void);

enum image_resize {
    IMAGE_STRETCH,   /* to the size asked, aspect not kept */
    IMAGE_CROP,      /* shorter side to fit, centre cut out */
    IMAGE_LETTERBOX, /* longer side to fit, rest filled with `fill` */
    IMAGE_EXACT      /* refuse any other size */
};
enum image_channels { IMAGE_RGB, IMAGE_BGR, IMAGE_GRAY };

/* value = (pixel*scale - mean[c])/std[c], c in the order asked for. */
struct image_transform {
    enum image_resize resize;
    enum image_channels channels;
    double scale;
    double mean[4], std[4];
    double fill; /* pixel value of letterbox borders */
    bool antialias; /* where the image shrinks, over all pixels that fall into one */
};
extern const struct image_transform image_identity;

/* Bilinear (half-pixel centres) to height x width: between the two nearest pixels of each
 * axis as OpenCV's INTER_LINEAR, or antialiased as Pillow's Image.resize(BILINEAR). Then dst[c][h][w] as FP32 with 1 or 3
 * channels. Grey is spread to RGB and RGB to grey (ITU-R BT.601) as needed. */
int image_to_tensor(float *dst, int channels, int height, int width,
                    const struct image *im, const struct image_transform *t,
                    strata_error *err);

/* IDX files (MNIST): dims and elements; ubyte only. gzip is not read. */
struct idx {
    uint8_t *data;
    int rank;
    int64_t dims[4];
};
int idx_read(struct idx *out, const char *path, strata_error *err);
int idx_parse(struct idx *out, const void *bytes, size_t size, const char *path,
              strata_error *err);
void idx_free(struct idx *x);

#endif /* IO_IMAGE_IMAGE_H */
