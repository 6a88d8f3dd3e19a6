/* SPDX-License-Identifier: Apache-2.0
 *
 * PGM and PPM, as text (P2, P3) and binary (P5, P6). Samples are scaled from 0..maxval
 * to 0..255, to the nearest; maxval up to 65535.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/image/private.h"

#include <inttypes.h>

#include "io/printable.h"

struct scanner {
    const unsigned char *bytes;
    size_t size, at;
    strata_error *err;
};

static bool is_space(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* White space, and comments from '#' to the end of the line. */
static void skip_space(struct scanner *s)
{
    bool comment = false;
    for (; s->at < s->size; s->at++) {
        unsigned char c = s->bytes[s->at];
        if (c == '#')
            comment = true;
        else if (c == '\n' || c == '\r')
            comment = false;
        if (!comment && !is_space(c))
            return;
    }
}

/* A decimal number from min to max. */
static int read_number(struct scanner *s, const char *what, uint32_t min, uint32_t max,
                       uint32_t *out)
{
    char shown[PRINTABLE_SIZE];
    uint64_t value = 0;
    skip_space(s);
    size_t start = s->at;
    for (; s->at < s->size && s->bytes[s->at] >= '0' && s->bytes[s->at] <= '9'; s->at++)
        value = value > max ? value : value * 10 + (uint64_t)(s->bytes[s->at] - '0');
    if (s->at == start && start >= s->size)
        return error_set(s->err, STRATA_EPARSE,
                         "byte %zu: the file ends where %s is needed", start, what);
    if (s->at == start)
        return error_set(s->err, STRATA_EPARSE, "byte %zu: found '%s' where %s is needed",
                         start, printable(shown, s->bytes + start, 1), what);
    if (value < min || value > max)
        return error_set(s->err, STRATA_EPARSE,
                         "byte %zu: %s is '%s', allowed are %" PRIu32 " to %" PRIu32,
                         start, what, printable(shown, s->bytes + start, s->at - start),
                         min, max);
    *out = (uint32_t)value;
    return STRATA_OK;
}

static uint8_t scale_sample(uint32_t value, uint32_t maxval)
{
    return (uint8_t)((value * 255 + maxval / 2) / maxval);
}

static int read_binary(struct image *im, struct scanner *s, size_t n, uint32_t maxval)
{
    const unsigned char *from = s->bytes + s->at;
    size_t width = maxval > 255 ? 2 : 1; /* bytes a sample, the high one first */
    for (size_t i = 0; i < n; i++, from += width) {
        uint32_t value = width == 2 ? (uint32_t)(from[0] << 8 | from[1]) : from[0];
        if (value > maxval)
            return error_set(s->err, STRATA_EPARSE,
                             "byte %zu: sample %" PRIu32 " is above maxval %" PRIu32,
                             (size_t)(from - s->bytes), value, maxval);
        im->pixels[i] = scale_sample(value, maxval);
    }
    s->at += n * width;
    return STRATA_OK;
}

static int read_text(struct image *im, struct scanner *s, size_t n, uint32_t maxval)
{
    uint32_t value = 0;
    for (size_t i = 0; i < n; i++) {
        int status = read_number(s, "a sample", 0, maxval, &value);
        if (status != STRATA_OK)
            return status;
        im->pixels[i] = scale_sample(value, maxval);
    }
    return STRATA_OK;
}

/* Before anything is allocated: the bytes left can hold n samples. A text sample takes a
 * digit and, all but the last, a separator. */
static int check_left(const struct scanner *s, uint64_t n, bool text, uint32_t maxval)
{
    uint64_t needed = text ? 2 * n - 1 : n * (maxval > 255 ? 2 : 1);
    if (needed <= s->size - s->at)
        return STRATA_OK;
    return error_set(s->err, STRATA_EPARSE,
                     "byte %zu: %zu bytes of samples, %" PRIu64
                     " are needed; the file is "
                     "cut short",
                     s->at, s->size - s->at, needed);
}

int image_read_netpbm(struct image *out, const void *bytes, size_t size,
                      const struct image_limits *limits, strata_error *err)
{
    struct scanner s = {bytes, size, 2, err};
    const bool text = s.bytes[1] < '4';
    const int channels = s.bytes[1] == '3' || s.bytes[1] == '6' ? 3 : 1;
    uint32_t side = (uint32_t)limits->side, width = 0, height = 0, maxval = 0;
    if (size > 2 && !is_space(s.bytes[2]) && s.bytes[2] != '#')
        return error_set(err, STRATA_EPARSE, "byte 2: white space is needed after P%c",
                         s.bytes[1]);
    int status = read_number(&s, "the width", 1, side, &width);
    if (status == STRATA_OK)
        status = read_number(&s, "the height", 1, side, &height);
    if (status == STRATA_OK)
        status = read_number(&s, "the largest sample", 1, 65535, &maxval);
    if (status != STRATA_OK)
        return status;
    if (s.at >= size || !is_space(s.bytes[s.at]))
        return error_set(err, STRATA_EPARSE,
                         "byte %zu: one white space is needed after the largest sample",
                         s.at);
    s.at++;
    uint64_t n = (uint64_t)width * height * (uint64_t)channels;
    status = check_left(&s, n, text, maxval);
    if (status == STRATA_OK)
        status = image_alloc(out, width, height, channels, limits, err);
    if (status != STRATA_OK)
        return status;
    status = (text ? read_text : read_binary)(out, &s, (size_t)n, maxval);
    if (status == STRATA_OK) {
        size_t end = s.at;
        while (s.at < size && is_space(s.bytes[s.at]))
            s.at++;
        if (s.at < size)
            status = error_set(err, STRATA_EPARSE,
                               "byte %zu: %zu bytes after the last sample; one image a "
                               "file is allowed",
                               end, size - end);
    }
    if (status != STRATA_OK)
        image_free(out);
    return status;
}
