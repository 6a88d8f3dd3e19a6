/* SPDX-License-Identifier: Apache-2.0
 *
 * JPEG through TurboJPEG, with the accurate inverse transform. Grey and three-component
 * files are read. Whatever the decoder warns of, a file cut short first of all, is
 * refused. The EXIF orientation is not applied.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/image/private.h"

#ifdef HAVE_JPEG
#include <string.h>
#include <turbojpeg.h>

#include "io/printable.h"

#define FLAGS (TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS)

static int failed(tjhandle decoder, strata_error *err)
{
    char shown[PRINTABLE_SIZE];
    const char *text = tjGetErrorStr2(decoder);
    return error_set(err, STRATA_EPARSE, "JPEG: %s; the file is damaged or cut short",
                     printable(shown, text, strlen(text)));
}

int image_read_jpeg(struct image *out, const void *bytes, size_t size,
                    const struct image_limits *limits, strata_error *err)
{
    int width = 0, height = 0, subsampling = 0, space = 0, status;
    tjhandle decoder = tjInitDecompress();
    if (!decoder)
        return error_no_memory(err, 0, "a JPEG decoder");
    if (tjDecompressHeader3(decoder, bytes, size, &width, &height, &subsampling,
                            &space) != 0) {
        status = failed(decoder, err);
        goto done;
    }
    if (width < 1 || height < 1) { /* tables alone, which is success for the decoder */
        status = error_set(err, STRATA_EPARSE,
                           "JPEG: no image in the file; it is damaged or cut short");
        goto done;
    }
    if (space == TJCS_CMYK || space == TJCS_YCCK) {
        status = error_set(err, STRATA_EUNSUPPORTED,
                           "JPEG: has the four channels of print (CMYK); convert it to "
                           "RGB");
        goto done;
    }
    int grey = space == TJCS_GRAY;
    status = image_alloc(out, width, height, grey ? 1 : 3, limits, err);
    if (status == STRATA_OK &&
        tjDecompress2(decoder, bytes, size, out->pixels, width, 0, height,
                      grey ? TJPF_GRAY : TJPF_RGB, FLAGS) != 0) {
        status = failed(decoder, err);
        image_free(out);
    }
done:
    tjDestroy(decoder);
    return status;
}
#else
typedef int image_jpeg_not_built; /* a translation unit must not be empty */
#endif
