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
#include "io/stream.h"
#include "io/file.h"
#include "io/lines.h"

#define LONGEST (RANGES_NAME_MAX + 128) /* line */

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

/* A number of FP32's range, then one blank; NULL after refusing. */
static const char *read_bound(const struct lines *l, const char *at, const char *what,
                              double *out)
{
    const size_t n = strspn(at, "+-.0123456789eE");
    char *end;
    *out = text_to_real(at, &end) + 0.0;
    if (n == 0 || end != at + n || *end != ' ') {
        lines_refuse(
            l, "%s is missing: a line is LOW HIGH SEEN TENSOR, with one blank between",
            what);
        return NULL;
    }
    if (!(fabs(*out) <= (double)FLT_MAX)) {
        lines_refuse(l, "%s %.*s: beyond what FP32 holds", what, (int)(n < 40 ? n : 40),
                     at);
        return NULL;
    }
    return end + 1;
}

static int check_name(const struct lines *l, const char *name)
{
    const size_t n = strlen(name);
    if (n == 0)
        return lines_refuse(l, "the tensor's name is missing");
    if (n > RANGES_NAME_MAX)
        return lines_refuse(l, "a tensor's name of %zu bytes; at most %d are allowed", n,
                            RANGES_NAME_MAX);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7F)
            return lines_refuse(l, "character 0x%02x in a tensor's name",
                                (unsigned char)name[i]);
    return STRATA_OK;
}

static int read_entry(struct ranges *all, const struct lines *l, const char *line)
{
    double low = 0, high = 0;
    int64_t seen = 0;
    const char *at = read_bound(l, line, "the low end", &low);
    if (at)
        at = read_bound(l, at, "the high end", &high);
    if (at && !(at = lines_number(at, &seen)))
        return lines_refuse(l, "the number of values is missing, or above 18 digits: a "
                               "line is LOW HIGH SEEN TENSOR, with one blank between");
    if (!at || check_name(l, at) != STRATA_OK)
        return STRATA_EPARSE;
    if (low > high)
        return lines_refuse(l, "the low end is above the high one");
    const int order = all->n ? strcmp(all->list[all->n - 1].tensor, at) : -1;
    if (order == 0)
        return lines_refuse(l, "the tensor stands twice; remove one of the lines");
    if (order > 0)
        return lines_refuse(
            l, "the tensors are not sorted; sort the lines by name, as bytes");
    return ranges_put(all, at, low, high, seen, l->err);
}

static int read_line(void *of, const struct lines *l, const char *line)
{
    if (l->line > 1)
        return read_entry(of, l, line);
    if (strncmp(line, "strata-ranges ", 14) != 0)
        return lines_refuse(l, "no ranges: the first line must be 'strata-ranges 1'");
    return strcmp(line + 14, "1") == 0
               ? STRATA_OK
               : lines_refuse(l, "format '%.20s' of the file; this library reads 1",
                              line + 14);
}

int ranges_parse(struct ranges *r, const char *text, size_t size, const char *path,
                 strata_error *err)
{
    int status = lines_parse(text, size, path, 1, LONGEST, read_line, r, err);
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
    FILE *f = text_stream(text, size);
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
