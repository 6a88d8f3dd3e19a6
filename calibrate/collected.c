/* SPDX-License-Identifier: Apache-2.0
 *
 * Collections as text.
 */
#include "calibrate/collected.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "io/stream.h"
#include "io/file.h"
#include "io/lines.h"

#define MOST_DIGITS 18

struct reader {
    struct lines lines;
    const char *at; /* what is not read yet; a NUL stands behind the text */
};

static bool skip(struct reader *r, const char *word)
{
    const size_t n = strlen(word);
    const bool is = strncmp(r->at, word, n) == 0;
    r->at += is ? n : 0;
    return is;
}

static bool whole(struct reader *r, int64_t *out)
{
    const bool minus = *r->at == '-';
    const size_t digits = strspn(r->at + minus, "0123456789");
    if (digits == 0 || digits > MOST_DIGITS)
        return false;
    *out = strtoll(r->at, NULL, 10);
    r->at += minus + digits;
    return true;
}

static bool real(struct reader *r, double *out)
{
    char *end;
    const size_t n = strspn(r->at, "+-.0123456789eE");
    *out = text_to_real(r->at, &end) + 0.0;
    if (n == 0 || end != r->at + n || !isfinite(*out))
        return false;
    r->at = end;
    return true;
}

static bool end_line(struct reader *r)
{
    r->lines.line++;
    return skip(r, "\n");
}

/* "1216:4,1217:9", ascending; "-" of none. */
static int read_bins(struct reader *r, struct histogram *h)
{
    int64_t last = -1, sum = 0, bin, count;
    if (skip(r, "- "))
        return h->seen == 0 ? STRATA_OK : lines_refuse(&r->lines, "the bins are missing");
    do {
        if (!whole(r, &bin) || !skip(r, ":") || !whole(r, &count))
            return lines_refuse(&r->lines,
                                "BIN:COUNT is needed, ',' between and a blank behind");
        if (bin <= last || bin >= 2 * HISTOGRAM_SIDE || count < 1 ||
            sum > HISTOGRAM_SEEN_MAX - count)
            return lines_refuse(&r->lines,
                                "bin %" PRId64 ": bins ascend from 0 to %d, each with a "
                                "count from 1 on",
                                bin, 2 * HISTOGRAM_SIDE - 1);
        h->bins[bin] = count;
        last = bin;
        sum += count;
    } while (skip(r, ","));
    if (sum != h->seen)
        return lines_refuse(&r->lines,
                            "the bins hold %" PRId64 " values, not the %" PRId64 " seen",
                            sum, h->seen);
    return skip(r, " ")
               ? STRATA_OK
               : lines_refuse(&r->lines, "a blank and the tensor's name are needed");
}

static int read_histogram(struct reader *r, struct histogram *h)
{
    int64_t exponent = 0;
    histogram_open(h);
    if (!whole(r, &exponent) || !skip(r, " ") || !real(r, &h->low) || !skip(r, " ") ||
        !real(r, &h->high) || !skip(r, " ") || !whole(r, &h->seen) || !skip(r, " ") ||
        !whole(r, &h->odd) || !skip(r, " "))
        return lines_refuse(
            &r->lines, "a line is EXPONENT LOW HIGH SEEN ODD BIN:COUNT,... TENSOR, with "
                       "one blank between");
    if (exponent < HISTOGRAM_LEAST || exponent > HISTOGRAM_MOST || h->seen < 0 ||
        h->odd < 0 || h->low > h->high ||
        fmax(fabs(h->low), fabs(h->high)) > ldexp(1, (int)exponent))
        return lines_refuse(&r->lines, "exponent, ends and counts do not go together");
    h->exponent = (int)exponent;
    return read_bins(r, h);
}

static int find_tensor(const struct reader *r, const struct collection *c,
                       const char *name, size_t *at)
{
    const strata_network *net = c->scheme->net;
    for (*at = 0; *at < net->n_tensors; ++*at)
        if (c->tensors[*at] && strcmp(net->tensors[*at].name, name) == 0)
            return STRATA_OK;
    error_set(r->lines.err, STRATA_EINVAL,
              "no tensor '%.200s' of this network becomes int8; the file is of another "
              "one: remove it, or name another",
              name);
    error_prefix(r->lines.err, "%s:%d: error", r->lines.path, r->lines.line);
    return STRATA_EINVAL;
}

static int read_entry(struct reader *r, struct collection *c, bool *read)
{
    struct histogram h;
    size_t at = 0;
    int status = read_histogram(r, &h);
    if (status != STRATA_OK)
        return status;
    const size_t n = strcspn(r->at, "\n");
    char *name = text_print("%.*s", (int)(n < 1024 ? n : 1024), r->at);
    status =
        name ? find_tensor(r, c, name, &at) : error_no_memory(r->lines.err, 0, "a name");
    free(name);
    if (status == STRATA_OK && read[at])
        return lines_refuse(&r->lines,
                            "the tensor stands twice; remove one of the lines");
    if (status == STRATA_OK) {
        read[at] = true;
        *c->tensors[at] = h;
        r->at += n;
    }
    return status;
}

static int read_header(struct reader *r, struct collection *c, size_t n)
{
    int64_t done, all;
    r->lines.line = 1;
    if (!skip(r, "strata-collected 1\n"))
        return lines_refuse(&r->lines,
                            "no collection: the first line must be 'strata-collected 1'");
    r->lines.line = 2;
    if (!skip(r, "samples ") || !whole(r, &done) || !skip(r, " of ") || !whole(r, &all) ||
        done < 0 || done > all)
        return lines_refuse(&r->lines, "the second line must be 'samples DONE of ALL'");
    if (all != (int64_t)n)
        return error_set(r->lines.err, STRATA_EINVAL,
                         "%s: is of %" PRId64 " samples, not of %zu; give the data that "
                         "it was begun with, or another file",
                         r->lines.path, all, n);
    c->done = (size_t)done;
    return end_line(r) ? STRATA_OK : lines_refuse(&r->lines, "a line's end is needed");
}

static int parse(struct reader *r, struct collection *c, size_t n, bool *read)
{
    int status = read_header(r, c, n);
    while (status == STRATA_OK && *r->at) {
        if (*r->at == '#')
            r->at += strcspn(r->at, "\n");
        else
            status = read_entry(r, c, read);
        if (status == STRATA_OK && !end_line(r))
            status = lines_refuse(&r->lines,
                                  "the last line has no end; the file may be cut short");
    }
    for (size_t t = 0; t < c->scheme->net->n_tensors && status == STRATA_OK; t++)
        if (c->tensors[t] && !read[t])
            status = error_set(r->lines.err, STRATA_EINVAL,
                               "%s: lacks tensor '%s', which becomes int8; the file is "
                               "of another network: remove it, or name another",
                               r->lines.path, c->scheme->net->tensors[t].name);
    return status;
}

int collected_parse(struct collection *c, const char *text, size_t size, size_t n,
                    const char *path, strata_error *err)
{
    struct reader r = {.lines = {path, 1, err}};
    struct file_bytes bytes = {0};
    bool *read = zalloc(c->scheme->net->n_tensors, sizeof *read, "a table", err);
    int status = read ? file_copy(&bytes, text, size, path, err) : STRATA_ENOMEM;
    if (status == STRATA_OK && memchr(text, '\0', size))
        status = lines_refuse(&r.lines, "a NUL byte");
    r.at = bytes.data;
    if (status == STRATA_OK)
        status = parse(&r, c, n, read);
    file_free(&bytes);
    free(read);
    return status;
}

int collected_read(struct collection *c, const char *path, size_t n, strata_error *err)
{
    struct file_bytes f = {0};
    int status = file_read(&f, path, COLLECTED_FILE_MAX, err);
    if (status == STRATA_ENOTFOUND) { /* it begins now */
        error_clear(err);
        return STRATA_OK;
    }
    if (status == STRATA_OK)
        status = collected_parse(c, f.data, f.size, n, path, err);
    file_free(&f);
    return status;
}

/* ---- writing -------------------------------------------------------------------------
 */

static void write_histogram(FILE *f, const struct histogram *h, const char *name)
{
    char low[TEXT_REAL], high[TEXT_REAL];
    const char *gap = "";
    fprintf(f, "%d %s %s %" PRId64 " %" PRId64 " ", h->exponent,
            text_real(low, 17, h->low), text_real(high, 17, h->high), h->seen, h->odd);
    for (int i = 0; i < 2 * HISTOGRAM_SIDE; i++)
        if (h->bins[i]) {
            fprintf(f, "%s%d:%" PRId64, gap, i, h->bins[i]);
            gap = ",";
        }
    fprintf(f, "%s %s\n", h->seen ? "" : "-", name);
}

int collected_write(const struct collection *c, const char *path, size_t n,
                    strata_error *err)
{
    const strata_network *net = c->scheme->net;
    char *text = NULL;
    size_t size = 0;
    FILE *f = text_stream(&text, &size);
    if (f) {
        fprintf(f,
                "strata-collected 1\nsamples %zu of %zu\n"
                "# EXPONENT LOW HIGH SEEN ODD BIN:COUNT,... TENSOR\n",
                c->done, n);
        for (size_t t = 0; t < net->n_tensors; t++)
            if (c->tensors[t])
                write_histogram(f, c->tensors[t], net->tensors[t].name);
    }
    int status = f && text_finish(f, &text) ? file_write(path, text, size, err)
                                            : error_no_memory(err, 0, "a collection");
    free(text);
    return status;
}
