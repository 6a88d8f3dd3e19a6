/* SPDX-License-Identifier: Apache-2.0
 *
 * Image readers on files written here, and on malformed ones.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_PNG
#include <png.h>
#endif
#ifdef HAVE_JPEG
#include <turbojpeg.h>
#endif

#include "io/image/image.h"

TestSuite(image, .timeout = 600);

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))
#define BYTES(s) (s), sizeof(s) - 1
#define P STRATA_EPARSE
#define U STRATA_EUNSUPPORTED

/* ---- netpbm and IDX ---- */

static const struct good {
    const char *name, *bytes;
    size_t size;
    int width, height, channels;
    const char *pixels;
} good[] = {
    {"P2", BYTES("P2\n3 2\n255\n0 1 2\n253 254 255\n"), 3, 2, 1, "\0\1\2\xfd\xfe\xff"},
    {"P2 on one line, no end", BYTES("P2 2 1 255 7 9"), 2, 1, 1, "\7\11"},
    {"P2 with comments", BYTES("P2#a\n#b 9 9\n2 # c\n 1\r255\n7 #d\n9"), 2, 1, 1,
     "\7\11"},
    {"P2 of maxval 3", BYTES("P2 4 1 3 0 1 2 3"), 4, 1, 1, "\0\x55\xaa\xff"},
    {"P2 of maxval 65535", BYTES("P2 3 1 65535 0 32768 65535"), 3, 1, 1, "\0\x80\xff"},
    {"P3", BYTES("P3 1 2 255 1 2 3 4 5 6"), 1, 2, 3, "\1\2\3\4\5\6"},
    {"P5", BYTES("P5 2 2 255\n\1\2\n "), 2, 2, 1, "\1\2\n "},
    {"P5 whose first sample is a space", BYTES("P5 2 1 255\n \t"), 2, 1, 1, " \t"},
    {"P5 and a line feed", BYTES("P5 2 1 255\n\1\2\n"), 2, 1, 1, "\1\2"},
    {"P5 of maxval 1", BYTES("P5 2 1 1\n\0\1"), 2, 1, 1, "\0\xff"},
    {"P5 of maxval 256", BYTES("P5 2 1 256\n\0\x80\1\0"), 2, 1, 1, "\x80\xff"},
    {"P6", BYTES("P6\t2\v1\f255\r\1\2\3\4\5\6"), 2, 1, 3, "\1\2\3\4\5\6"},
    {"P6 of maxval 65535", BYTES("P6 1 1 65535\n\0\0\x80\0\xff\xff"), 1, 1, 3,
     "\0\x80\xff"},
    {"IDX", BYTES("\0\0\10\2\0\0\0\2\0\0\0\3abcdef"), 3, 2, 1, "abcdef"},
    {"IDX of one image", BYTES("\0\0\10\3\0\0\0\1\0\0\0\1\0\0\0\2ab"), 2, 1, 1, "ab"},
};

Test(image, files_give_the_pixels_they_hold)
{
    for (size_t i = 0; i < LENGTH(good); i++) {
        const struct good *g = &good[i];
        struct image im;
        strata_error err = {0};
        cr_assert_eq(image_parse(&im, g->bytes, g->size, "x", NULL, &err), STRATA_OK,
                     "%s: %s", g->name, err.message);
        cr_expect(im.width == g->width && im.height == g->height &&
                      im.channels == g->channels,
                  "%s: %d x %d x %d", g->name, im.width, im.height, im.channels);
        cr_expect_eq(
            memcmp(im.pixels, g->pixels, (size_t)(g->width * g->height * g->channels)), 0,
            "%s", g->name);
        image_free(&im);
        image_free(&im);
    }
    image_free(NULL);
}

static const struct bad {
    const char *name, *bytes;
    size_t size;
    int status;
    const char *place, *allowed;
} bad[] = {
    {"empty file", BYTES(""), P, "byte 0", "read are PGM, PPM, IDX"},
    {"text", BYTES("hello"), P, "byte 0", "read are PGM, PPM, IDX"},
    {"P alone", BYTES("P"), P, "byte 0", "read are"},
    {"P8", BYTES("P8 1 1"), P, "byte 0", "read are"},
    {"bitmap", BYTES("P4 1 1 \1"), U, "PBM", "convert it to PGM"},
    {"arbitrary map", BYTES("P7\nWIDTH 1"), U, "PAM", "convert it to PPM"},
    {"gzip", BYTES("\x1f\x8b\10\0"), U, "gzip", "gunzip"},
    {"GIF", BYTES("GIF89a"), U, "GIF", "convert it to PNG"},
    {"BMP", BYTES("BM\0\0"), U, "BMP", "convert it to PNG"},
    {"P5 alone", BYTES("P5"), P, "byte 2", "the width is needed"},
    {"P5 without space", BYTES("P51 1 255\n\1"), P, "byte 2", "white space"},
    {"no height", BYTES("P5 1"), P, "byte 4", "the height is needed"},
    {"no maxval", BYTES("P5 1 1\n"), P, "byte 7", "the largest sample is needed"},
    {"comment without an end", BYTES("P5 1 1 # 255\x01"), P, "ends where",
     "the largest sample is needed"},
    {"width 0", BYTES("P5 0 1 255\n"), P, "the width is '0'", "1 to 32768"},
    {"height 0", BYTES("P5 1 0 255\n"), P, "the height is '0'", "1 to 32768"},
    {"width one above", BYTES("P5 32769 1 255\n"), P, "the width is '32769'",
     "1 to 32768"},
    {"width 2^64+1", BYTES("P5 18446744073709551617 1 255\n\1"), P, "byte 3: the width",
     "1 to 32768"},
    {"width 2^32+1", BYTES("P5 4294967297 1 255\n\1"), P, "byte 3: the width",
     "1 to 32768"},
    {"width negative", BYTES("P5 -1 1 255\n"), P, "found '-'", "the width is needed"},
    {"width in hexadecimal", BYTES("P5 0x1 1 255\n"), P, "the width is '0'",
     "1 to 32768"},
    {"width with an escape", BYTES("P5 \x1b[2J 1 255\n"), P, "found '?'",
     "the width is needed"},
    {"maxval 0", BYTES("P5 1 1 0\n\0"), P, "the largest sample is '0'", "1 to 65535"},
    {"maxval 65536", BYTES("P5 1 1 65536\n\0"), P, "the largest sample is '65536'",
     "1 to 65535"},
    {"end after maxval", BYTES("P5 1 1 255"), P, "byte 10", "one white space"},
    {"comment after maxval", BYTES("P5 1 1 255#\n\1"), P, "byte 10", "one white space"},
    {"P5 cut short", BYTES("P5 2 2 255\n\1\2\3"), P, "byte 11: 3 bytes", "4 are needed"},
    {"P5 one byte too many", BYTES("P5 1 1 255\n\1\2"), P, "byte 12: 1 bytes",
     "one image a file"},
    {"two images", BYTES("P5 1 1 255\n\1P5 1 1 255\n\1"), P, "byte 12",
     "one image a file"},
    {"P5 above maxval", BYTES("P5 2 1 9\n\11\12"), P, "byte 10: sample 10", "maxval 9"},
    {"16-bit above maxval", BYTES("P5 1 1 256\n\1\1"), P, "sample 257", "maxval 256"},
    {"16-bit cut short", BYTES("P5 1 1 256\n\1"), P, "1 bytes of samples",
     "2 are needed"},
    {"P6 cut short", BYTES("P6 1 1 255\n\1\2"), P, "2 bytes of samples", "3 are needed"},
    {"large and empty", BYTES("P6 16384 16384 255\n"), P, "0 bytes of samples",
     "805306368 are needed"},
    {"large and text", BYTES("P3 16384 16384 255\n1 2 3"), P, "5 bytes of samples",
     "1610612735 are needed"},
    {"P2 cut short", BYTES("P2 2 1 255 1 "), P, "byte 11: 2 bytes of samples",
     "3 are needed"},
    {"P2 one sample short", BYTES("P2 2 1 255 001 "), P, "byte 15", "a sample is needed"},
    {"P2 one sample too many", BYTES("P2 1 1 255 1 2"), P, "byte 12", "one image a file"},
    {"P2 above maxval", BYTES("P2 1 1 255 256"), P, "a sample is '256'", "0 to 255"},
    {"P2 negative", BYTES("P2 1 1 255 -1"), P, "found '-'", "a sample is needed"},
    {"P2 with letters", BYTES("P2 2 1 255 1x2"), P, "found 'x'", "a sample is needed"},
    {"IDX of two bytes", BYTES("\0\0"), P, "byte 0", "a type and a rank"},
    {"IDX of floats", BYTES("\0\0\15\1\0\0\0\1\0\0\0\0"), U, "type 0x0d", "only 0x08"},
    {"IDX of rank 0", BYTES("\0\0\10\0"), P, "byte 3: rank 0", "1 to 4"},
    {"IDX of rank 5", BYTES("\0\0\10\5\0\0\0\1"), P, "byte 3: rank 5", "1 to 4"},
    {"IDX dims cut short", BYTES("\0\0\10\2\0\0\0\1\0\0\0"), P, "7 bytes of dims",
     "8 are needed"},
    {"IDX one element short", BYTES("\0\0\10\2\0\0\0\2\0\0\0\2abc"), P, "3 elements",
     "product of the dims"},
    {"IDX one element too many", BYTES("\0\0\10\1\0\0\0\1ab"), P, "2 elements",
     "product of the dims"},
    {"IDX overflow",
     BYTES("\0\0\10\4\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
     P, "0 elements", "product of the dims"},
    {"IDX wraps to one", BYTES("\0\0\10\4\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0"), P,
     "0 elements", "product of the dims"},
    {"IDX of labels", BYTES("\0\0\10\1\0\0\0\2ab"), U, "rank 1", "one image is needed"},
    {"IDX of two images", BYTES("\0\0\10\3\0\0\0\2\0\0\0\1\0\0\0\1ab"), U, "first dim 2",
     "one image is needed"},
    {"IDX of no pixels", BYTES("\0\0\10\2\0\0\0\0\0\0\0\2"), P, "2 x 0 pixels",
     "sides of 1 to 32768"},
#ifdef HAVE_PNG
    {"PNG signature alone", BYTES("\x89PNG\r\n\x1a\n"), P, "PNG: ", "cut short"},
    {"PNG without IHDR", BYTES("\x89PNG\r\n\x1a\n\0\0\0\0IEND\xae\x42\x60\x82"), P,
     "PNG: ", "damaged"},
    {"PNG of 2^31-1 x 2^31-1",
     BYTES("\x89PNG\r\n\x1a\n\0\0\0\15IHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\10\2\0\0\0\0\0"
           "\0\0"),
     P, "PNG: ", "damaged"},
#endif
#ifdef HAVE_JPEG
    {"JPEG start alone", BYTES("\xff\xd8\xff"), P, "JPEG: ", "cut short"},
    {"JPEG of noise", BYTES("\xff\xd8\xff\xe0noise and no more"), P,
     "JPEG: ", "cut short"},
#endif
};

Test(image, malformed_files_are_refused_with_place_and_remedy)
{
    for (size_t i = 0; i < LENGTH(bad); i++) {
        const struct bad *b = &bad[i];
        struct image im = {.width = 7};
        strata_error err = {0};
        unsigned char *copy = malloc(b->size ? b->size : 1);
        cr_assert_not_null(copy);
        memcpy(copy, b->bytes, b->size);
        int status = image_parse(&im, copy, b->size, "in/bad.img", NULL, &err);
        cr_expect_eq(status, b->status, "%s: %s", b->name, err.message);
        cr_expect(!im.pixels && im.width == 0, "%s: an image in spite of failure",
                  b->name);
        cr_expect_eq(strstr(err.message, "in/bad.img: "), err.message, "%s", err.message);
        cr_expect_not_null(strstr(err.message, b->place), "%s: %s", b->name, err.message);
        cr_expect_not_null(strstr(err.message, b->allowed), "%s: %s", b->name,
                           err.message);
        for (const char *c = err.message; *c; c++)
            cr_expect(*c >= ' ' && *c <= '~', "%s: byte %02x shown", b->name, *c & 0xff);
        cr_expect_eq(image_parse(&im, copy, b->size, "x", NULL, NULL), b->status);
        free(copy);
    }
}

Test(image, limits_hold_at_them_and_refuse_one_above)
{
    static const char file[] = "P5 3 2 255\nabcdef";
    const struct image_limits at = {3, 6, sizeof file - 1};
    const struct image_limits below[] = {
        {2, 6, 100}, {3, 5, 100}, {3, 6, sizeof file - 2}};
    const struct image_limits most = {32767, UINT64_MAX, UINT64_MAX};
    static const char *const messages[] = {"1 to 2", "at most 5 pixels", "at most 16"};
    struct image im;
    cr_expect_eq(image_parse(&im, BYTES(file), "x", &at, NULL), STRATA_OK);
    image_free(&im);
    cr_expect_eq(image_parse(&im, BYTES(file), "x", &most, NULL), STRATA_OK);
    image_free(&im);
    for (size_t i = 0; i < LENGTH(below); i++) {
        strata_error err = {0};
        cr_expect_eq(image_parse(&im, BYTES(file), "x", &below[i], &err), STRATA_EPARSE);
        cr_expect_not_null(strstr(err.message, messages[i]), "%s", err.message);
    }
}

Test(image, idx_files_are_read)
{
    struct idx x;
    strata_error err = {0};
    cr_assert_eq(
        idx_parse(&x, BYTES("\0\0\10\3\0\0\0\2\0\0\0\1\0\0\0\3abcdef"), "x", &err),
        STRATA_OK, "%s", err.message);
    cr_expect(x.rank == 3 && x.dims[0] == 2 && x.dims[1] == 1 && x.dims[2] == 3);
    cr_expect_eq(memcmp(x.data, "abcdef", 6), 0);
    idx_free(&x);
    idx_free(&x);
    idx_free(NULL);
    cr_expect_eq(idx_parse(&x, BYTES("\0\0\10\1\0\0\0\0"), "x", &err), STRATA_OK);
    idx_free(&x);
    cr_expect_eq(idx_parse(&x, BYTES("\x1f\x8b\10\0\0\0"), "a.gz", &err), U);
    cr_expect_not_null(strstr(err.message, "a.gz: "), "%s", err.message);
    cr_expect_not_null(strstr(err.message, "gunzip"), "%s", err.message);
    cr_expect_null(x.data);
    cr_expect_eq(idx_read(&x, "/nonexistent.idx", NULL), STRATA_ENOTFOUND);
    cr_expect_eq(image_read(&(struct image){0}, "/dev/zero", NULL, NULL), STRATA_EINVAL);
}

Test(image, files_on_disk_are_read_by_content_not_by_name)
{
    char path[] = "/tmp/strata-image-XXXXXX";
    int fd = mkstemp(path);
    struct image im;
    strata_error err = {0};
    cr_assert(fd >= 0 && write(fd, BYTES("P5 1 1 255\n*")) == 12);
    close(fd);
    cr_expect_eq(image_read(&im, path, NULL, &err), STRATA_OK, "%s", err.message);
    cr_expect(im.pixels && im.pixels[0] == '*');
    image_free(&im);
    unlink(path);
}

/* ---- PNG and JPEG ---- */

#ifdef HAVE_PNG
/* libpng writes rows in `format`; ours must give `expected`. */
static void expect_png(uint32_t format, const void *rows, const void *map,
                       uint32_t colors, int channels, const uint8_t *expected)
{
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = 3,
                     .height = 2,
                     .format = format,
                     .colormap_entries = colors};
    unsigned char file[4096];
    png_alloc_size_t size = sizeof file;
    struct image im;
    strata_error err = {0};
    cr_assert(png_image_write_to_memory(&png, file, &size, 0, rows, 0, map), "%s",
              png.message);
    cr_assert_eq(image_parse(&im, file, size, "x", NULL, &err), STRATA_OK, "%s",
                 err.message);
    cr_assert(im.width == 3 && im.height == 2 && im.channels == channels, "format %u",
              format);
    for (int i = 0; i < 6 * channels; i++)
        cr_expect_eq(im.pixels[i], expected[i], "format %u, sample %d: %d, not %d",
                     format, i, im.pixels[i], expected[i]);
    image_free(&im);
    for (size_t cut = 8; cut + 16 < size; cut++) { /* checksum and IEND may be missing */
        unsigned char *part = malloc(cut);
        cr_assert_not_null(part);
        memcpy(part, file, cut);
        cr_expect_eq(image_parse(&im, part, cut, "x", NULL, NULL), STRATA_EPARSE,
                     "cut to %zu of %zu bytes was read", cut, (size_t)size);
        image_free(&im);
        free(part);
    }
}

Test(image, png_of_every_kind_is_read)
{
    static const uint8_t grey[6] = {0, 1, 2, 127, 128, 255};
    static const uint8_t rgb[18] = {0,  1,  2,  3,  4,  5,   6,   7,   8,
                                    90, 91, 92, 93, 94, 255, 254, 253, 252};
    static const uint8_t map[6] = {10, 20, 30, 40, 50, 60}, index[6] = {0, 1, 1, 0, 1, 0};
    static const uint8_t from_map[18] = {10, 20, 30, 40, 50, 60, 40, 50, 60,
                                         10, 20, 30, 40, 50, 60, 10, 20, 30};
    static const uint8_t clear[12] = {9, 0, 9, 255, 200, 0, 200, 255, 0, 0, 255, 255};
    static const uint8_t on_black[6] = {0, 9, 0, 200, 0, 255};
    static const uint16_t deep[6] = {0, 65535, 0, 65535, 65535, 0}; /* linear */
    static const uint8_t deep8[6] = {0, 255, 0, 255, 255, 0};
    expect_png(PNG_FORMAT_GRAY, grey, NULL, 0, 1, grey);
    expect_png(PNG_FORMAT_RGB, rgb, NULL, 0, 3, rgb);
    expect_png(PNG_FORMAT_RGB_COLORMAP, index, map, 2, 3, from_map);
    expect_png(PNG_FORMAT_GA, clear, NULL, 0, 1, on_black);
    expect_png(PNG_FORMAT_LINEAR_Y, deep, NULL, 0, 1, deep8);
}
#endif

#ifdef HAVE_JPEG
static unsigned char *encode(int subsampling, int flags, unsigned long *size)
{
    static uint8_t pixels[24 * 40 * 3];
    unsigned char *file = NULL;
    tjhandle encoder = tjInitCompress();
    for (int i = 0; i < 24 * 40; i++)
        for (int c = 0; c < 3; c++)
            pixels[3 * i + c] = (uint8_t)(i % 40 * 4 + i / 40 * (c + 1));
    cr_assert_eq(tjCompress2(encoder, pixels, 40, 0, 24, TJPF_RGB, &file, size,
                             subsampling, 98, flags),
                 0);
    tjDestroy(encoder);
    return file;
}

Test(image, jpeg_is_read_near_what_was_written)
{
    static const int samplings[] = {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_GRAY};
    for (size_t s = 0; s < LENGTH(samplings); s++)
        for (int flags = 0; flags <= TJFLAG_PROGRESSIVE; flags += TJFLAG_PROGRESSIVE) {
            unsigned long size = 0;
            struct image im;
            strata_error err = {0};
            unsigned char *file = encode(samplings[s], flags, &size);
            cr_assert_eq(image_parse(&im, file, size, "x", NULL, &err), STRATA_OK, "%s",
                         err.message);
            int channels = samplings[s] == TJSAMP_GRAY ? 1 : 3;
            cr_assert(im.width == 40 && im.height == 24 && im.channels == channels);
            for (int i = 0; i < 24 * 40; i++)
                for (int c = 0; c < channels; c++) {
                    int x = i % 40 * 4, y = i / 40;
                    double v = channels == 3 ? x + y * (c + 1)
                                             : x + y * (0.299 + 2 * 0.587 + 3 * 0.114);
                    cr_expect(fabs(im.pixels[channels * i + c] - v) <= 6,
                              "sampling %zu, pixel %d, channel %d: %d, not %g", s, i, c,
                              im.pixels[channels * i + c], v);
                }
            image_free(&im);
            error_clear(&err);
            cr_expect_eq(image_parse(&im, file, size / 2, "x", NULL, &err),
                         STRATA_EPARSE);
            cr_expect_null(im.pixels);
            const struct image_limits small = {39, 10000, 100000};
            error_clear(&err);
            cr_expect_eq(image_parse(&im, file, size, "x", &small, &err), STRATA_EPARSE);
            cr_expect_not_null(strstr(err.message, "40 x 24 pixels, sides of 1 to 39"),
                               "%s", err.message);
            tjFree(file);
        }
}

Test(image, jpeg_of_four_channels_is_refused)
{
    static uint8_t pixels[16 * 16 * 4];
    unsigned char *file = NULL;
    unsigned long size = 0;
    struct image im;
    strata_error err = {0};
    tjhandle encoder = tjInitCompress();
    cr_assert_eq(tjCompress2(encoder, pixels, 16, 0, 16, TJPF_CMYK, &file, &size,
                             TJSAMP_444, 90, 0),
                 0);
    tjDestroy(encoder);
    cr_expect_eq(image_parse(&im, file, size, "x", NULL, &err), STRATA_EUNSUPPORTED);
    cr_expect_not_null(strstr(err.message, "CMYK"), "%s", err.message);
    tjFree(file);
}
#endif
