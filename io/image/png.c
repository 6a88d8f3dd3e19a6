/* SPDX-License-Identifier: Apache-2.0
 *
 * PNG through libpng's simplified interface: palettes are expanded, 16-bit samples become
 * 8-bit ones, transparency is composited on black.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/image/private.h"

#ifdef HAVE_PNG
#include <png.h>
#include <string.h>

#include "io/printable.h"

static int failed(const png_image *png, strata_error *err)
{
    char shown[PRINTABLE_SIZE];
    return error_set(
        err, STRATA_EPARSE, "PNG: %s; the file is damaged or cut short",
        printable(shown, png->message, strnlen(png->message, sizeof png->message)));
}

int image_read_png(struct image *out, const void *bytes, size_t size,
                   const struct image_limits *limits, strata_error *err)
{
    const png_color black = {0, 0, 0};
    png_image png = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&png, bytes, size))
        return failed(&png, err);
    int channels = png.format & PNG_FORMAT_FLAG_COLOR ? 3 : 1;
    png.format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
    png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
    int status = image_alloc(out, png.width, png.height, channels, limits, err);
    if (status == STRATA_OK &&
        !png_image_finish_read(&png, &black, out->pixels, 0, NULL)) {
        status = failed(&png, err);
        image_free(out);
    }
    png_image_free(&png);
    return status;
}
#else
typedef int image_png_not_built; /* a translation unit must not be empty */
#endif
