/* SPDX-License-Identifier: Apache-2.0
 *
 * Choosing a reader by a file's first bytes.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/image/private.h"

#include <inttypes.h>
#include <string.h>

#include "io/file.h"

#ifdef HAVE_PNG
#define PNG_NAME ", PNG"
#else
#define PNG_NAME ""
#define image_read_png NULL
#endif
#ifdef HAVE_JPEG
#define JPEG_NAME ", JPEG"
#else
#define JPEG_NAME ""
#define image_read_jpeg NULL
#endif

static const struct {
    const char *start;
    size_t n; /* bytes of start */
    const char *name;
    image_reader *read; /* NULL: see remedy */
    const char *remedy;
} readers[] = {
    {"P2", 2, "PGM", image_read_netpbm, NULL},
    {"P3", 2, "PPM", image_read_netpbm, NULL},
    {"P5", 2, "PGM", image_read_netpbm, NULL},
    {"P6", 2, "PPM", image_read_netpbm, NULL},
    {"P1", 2, "PBM", NULL, "convert it to PGM"},
    {"P4", 2, "PBM", NULL, "convert it to PGM"},
    {"P7", 2, "PAM", NULL, "convert it to PPM"},
    {"\x89PNG\r\n\x1a\n", 8, "PNG", image_read_png,
     "build with libpng, or convert to PPM"},
    {"\xff\xd8\xff", 3, "JPEG", image_read_jpeg,
     "build with TurboJPEG, or convert to PPM"},
    {"\0\0", 2, "IDX", image_read_idx, NULL},
    {"\x1f\x8b", 2, "gzip", NULL, "unpack it with gunzip"},
    {"GIF8", 4, "GIF", NULL, "convert it to PNG or PPM"},
    {"BM", 2, "BMP", NULL, "convert it to PNG or PPM"},
    {"RIFF", 4, "WebP", NULL, "convert it to PNG or PPM"},
    {"II*", 3, "TIFF", NULL, "convert it to PNG or PPM"},
    {"MM\0*", 4, "TIFF", NULL, "convert it to PNG or PPM"},
};

const char *image_formats(void)
{
    return "PGM, PPM, IDX" PNG_NAME JPEG_NAME;
}

static int parse(struct image *out, const void *bytes, size_t size,
                 const struct image_limits *limits, strata_error *err)
{
    if (size > limits->bytes)
        return error_set(err, STRATA_EPARSE,
                         "file has %zu bytes, at most %" PRIu64 " are allowed", size,
                         limits->bytes);
    for (size_t i = 0; i < ARRAY_LENGTH(readers); i++) {
        if (size < readers[i].n || memcmp(bytes, readers[i].start, readers[i].n) != 0)
            continue;
        if (readers[i].read)
            return readers[i].read(out, bytes, size, limits, err);
        return error_set(err, STRATA_EUNSUPPORTED, "%s files are not read; %s",
                         readers[i].name, readers[i].remedy);
    }
    return error_set(err, STRATA_EPARSE,
                     "byte 0: not an image of a known kind (%zu bytes); read are %s",
                     size, image_formats());
}

int image_parse(struct image *out, const void *bytes, size_t size, const char *path,
                const struct image_limits *limits, strata_error *err)
{
    *out = (struct image){0};
    int status = parse(out, bytes, size, limits ? limits : &image_default_limits, err);
    if (status != STRATA_OK)
        error_prefix(err, "%s", path);
    return status;
}

int image_read(struct image *out, const char *path, const struct image_limits *limits,
               strata_error *err)
{
    struct file_bytes file;
    *out = (struct image){0};
    uint64_t most = (limits ? limits : &image_default_limits)->bytes;
    int status = file_read(&file, path, most, err);
    if (status != STRATA_OK)
        return status;
    status = image_parse(out, file.data, file.size, path, limits, err);
    file_free(&file);
    return status;
}
