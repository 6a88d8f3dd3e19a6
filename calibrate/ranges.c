/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of ranges and their text.
 */
#include "calibrate/ranges.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/histogram.h"
#include "core/alloc.h"
#include "core/text.h"
#include "io/file.h"

#define MAX_LINE (RANGES_NAME_MAX + 128)

void ranges_free(struct ranges *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->list[i].tensor);
    free(r->list);
    *r = (struct ranges){.n = 0};
}

/* Where the tensor is, or belongs. */
static size_t position(const struct ranges *r, const char *tensor)
{
    size_t low = 0, high = r->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(r->list[middle].tensor, tensor) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct range *ranges_find(const struct ranges *r, const char *tensor)
{
    const size_t at = position(r, tensor);
    return at < r->n && strcmp(r->list[at].tensor, tensor) == 0 ? &r->list[at] : NULL;
}

int ranges_put(struct ranges *r, const char *tensor, double low, double high,
               int64_t seen, strata_error *err)
{
    const size_t at = position(r, tensor);
    if (at < r->n && strcmp(r->list[at].tensor, tensor) == 0) {
        r->list[at] = (struct range){r->list[at].tensor, low, high, seen};
        return STRATA_OK;
    }
    int status = grow(&r->list, &r->capacity, r->n, sizeof *r->list, err);
    char *copy = status == STRATA_OK ? duplicate(tensor, err) : NULL;
    if (!copy)
        return STRATA_ENOMEM;
    memmove(&r->list[at + 1], &r->list[at], (r->n - at) * sizeof *r->list);
    r->list[at] = (struct range){copy, low, high, seen};
    r->n++;
    return STRATA_OK;
}

/* ---- reading -------------------------------------------------------------------------
 */

struct reader {
    const char *path;
    int line;
    strata_error *err;
};

static int refuse(const struct reader *r, const char *format, ...) PRINTF_LIKE(2, 3);
static int refuse(const struct reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error_set_va(r->err, STRATA_EPARSE, format, args);
    va_end(args);
    error_prefix(r->err, "%s:%d: error", r->path, r->line);
    return STRATA_EPARSE;
}

/* A number of FP32's range, then one blank; NULL after refusing. */
static const char *read_bound(const struct reader *r, const char *at, const char *what,
                              double *out)
{
    const size_t n = strspn(at, "+-.0123456789eE");
    char *end;
    *out = text_to_real(at, &end) + 0.0;
    if (n == 0 || end != at + n || *end != ' ') {
        refuse(r, "%s is missing: a line is LOW HIGH SEEN TENSOR, with one blank between",
               what);
        return NULL;
    }
    if (!(fabs(*out) <= (double)FLT_MAX)) {
        refuse(r, "%s %.*s: beyond what FP32 holds", what, (int)(n < 40 ? n : 40), at);
        return NULL;
    }
    return end + 1;
}

/* A whole number without sign or leading zeros, then one blank; NULL after refusing. */
static const char *read_seen(const struct reader *r, const char *at, int64_t *out)
{
    const size_t digits = strspn(at, "0123456789");
    *out = 0;
    if (digits == 0 || digits > 18 || (digits > 1 && *at == '0') || at[digits] != ' ') {
        refuse(r, "the number of values is missing, or above 18 digits: a line is LOW "
                  "HIGH SEEN TENSOR, with one blank between");
        return NULL;
    }
    for (size_t i = 0; i < digits; i++)
        *out = 10 * *out + (at[i] - '0');
    return at + digits + 1;
}

static int check_name(const struct reader *r, const char *name)
{
    const size_t n = strlen(name);
    if (n == 0)
        return refuse(r, "the tensor's name is missing");
    if (n > RANGES_NAME_MAX)
        return refuse(r, "a tensor's name of %zu bytes; at most %d are allowed", n,
                      RANGES_NAME_MAX);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7F)
            return refuse(r, "character 0x%02x in a tensor's name",
                          (unsigned char)name[i]);
    return STRATA_OK;
}

static int read_entry(const struct reader *r, struct ranges *all, const char *line)
{
    double low = 0, high = 0;
    int64_t seen = 0;
    const char *at = read_bound(r, line, "the low end", &low);
    if (at)
        at = read_bound(r, at, "the high end", &high);
    if (at)
        at = read_seen(r, at, &seen);
    if (!at || check_name(r, at) != STRATA_OK)
        return STRATA_EPARSE;
    if (low > high)
        return refuse(r, "the low end is above the high one");
    const int order = all->n ? strcmp(all->list[all->n - 1].tensor, at) : -1;
    if (order == 0)
        return refuse(r, "the tensor stands twice; remove one of the lines");
    if (order > 0)
        return refuse(r, "the tensors are not sorted; sort the lines by name, as bytes");
    return ranges_put(all, at, low, high, seen, r->err);
}

static int read_line(const struct reader *r, struct ranges *all, const char *line,
                     size_t n)
{
    if (strlen(line) != n)
        return refuse(r, "a NUL byte");
    if (r->line > 1)
        return line[0] == '#' || n == 0 ? STRATA_OK : read_entry(r, all, line);
    if (strncmp(line, "strata-ranges ", 14) != 0)
        return refuse(r, "no ranges: the first line must be 'strata-ranges 1'");
    return strcmp(line + 14, "1") == 0
               ? STRATA_OK
               : refuse(r, "format '%.20s' of the file; this library reads 1", line + 14);
}

static int parse_lines(struct ranges *all, const char *text, size_t size,
                       const char *path, strata_error *err)
{
    char line[MAX_LINE + 1];
    struct reader r = {path, 0, err};
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t n = end ? (size_t)(end - (text + at)) : size - at;
        r.line++;
        if (!end)
            return refuse(&r, "the last line has no end; the file may be cut short");
        if (n > MAX_LINE)
            return refuse(&r, "a line of %zu bytes; at most %d are allowed", n, MAX_LINE);
        memcpy(line, text + at, n);
        line[n] = '\0';
        int status = read_line(&r, all, line, n);
        if (status != STRATA_OK)
            return status;
        at += n + 1;
    }
    r.line++;
    return r.line == 1 ? refuse(&r, "the file is empty") : STRATA_OK;
}

int ranges_parse(struct ranges *r, const char *text, size_t size, const char *path,
                 strata_error *err)
{
    int status = parse_lines(r, text, size, path, err);
    if (status != STRATA_OK)
        ranges_free(r);
    return status;
}

int ranges_read(struct ranges *r, const char *path, strata_error *err)
{
    struct file_bytes bytes = {0};
    int status = file_read(&bytes, path, RANGES_FILE_MAX, err);
    if (status == STRATA_OK)
        status = ranges_parse(r, bytes.data, bytes.size, path, err);
    file_free(&bytes);
    return status;
}

/* ---- writing -------------------------------------------------------------------------
 */

/* The shortest decimal that reads back as the same value. */
static const char *shortest(char out[TEXT_REAL], double x)
{
    for (int digits = 6; digits < 17; digits++) {
        char *end;
        if (text_to_real(text_real(out, digits, x), &end) == x)
            return out;
    }
    return text_real(out, 17, x);
}

int ranges_text(char **text, size_t *size, const struct ranges *r, strata_error *err)
{
    *text = NULL;
    FILE *f = open_memstream(text, size);
    if (!f)
        return error_no_memory(err, 0, "a table of ranges");
    fputs("strata-ranges 1\n# LOW HIGH SEEN TENSOR, sorted by TENSOR\n", f);
    for (size_t i = 0; i < r->n; i++) {
        char low[TEXT_REAL], high[TEXT_REAL];
        fprintf(f, "%s %s %" PRId64 " %s\n", shortest(low, r->list[i].low),
                shortest(high, r->list[i].high), r->list[i].seen, r->list[i].tensor);
    }
    return text_finish(f, text) ? STRATA_OK
                                : error_no_memory(err, 0, "a table of ranges");
}

int ranges_write(const struct ranges *r, const char *path, strata_error *err)
{
    char *text;
    size_t size = 0;
    int status = ranges_text(&text, &size, r, err);
    if (status == STRATA_OK)
        status = file_write(path, text, size, err);
    free(text);
    return status;
}
