/* SPDX-License-Identifier: Apache-2.0
 *
 * What a row of bench/serving/soak that is wrong looks like.
 */
#include "bench/serving/soak.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool soak_is_row(struct soak *s, int batch, int64_t place, int row, const char *out)
{
    if (batch != SOAK_ANY_BATCH)
        return memcmp(soak_output(s, batch, place, row), out, s->row_out) == 0;
    for (int b = 0; b < s->n_batches; b++)
        for (int64_t k = 0; k < s->batches[b]; k++)
            if (memcmp(soak_output(s, b, k, row), out, s->row_out) == 0)
                return true;
    return false;
}

static float value(const char *row, size_t i)
{
    float v;
    memcpy(&v, row + i * sizeof v, sizeof v);
    return v;
}

struct difference {
    size_t differ, first, last; /* values, by their bits */
    double most, apart;         /* the largest one; of all over the row's size */
};

static bool same(const char *a, size_t i, const char *b, size_t j)
{
    return memcmp(a + i * sizeof(float), b + j * sizeof(float), sizeof(float)) == 0;
}

static struct difference compare(const char *out, const char *right, size_t n)
{
    struct difference d = {.first = n};
    double apart = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        const double x = (double)value(out, i), y = (double)value(right, i);
        size += y * y;
        if (same(out, i, right, i))
            continue;
        d.first = d.differ++ ? d.first : i;
        d.last = i;
        d.most = isfinite(x) ? fmax(d.most, fabs(x - y)) : INFINITY;
        apart += isfinite(x) ? (x - y) * (x - y) : 0;
    }
    d.apart = size > 0 ? sqrt(apart / size) : 0;
    return d;
}

/* Whether most values are those of a row from the shift-th on. */
static bool is_shifted(const char *out, const char *right, size_t n, size_t shift)
{
    size_t differ = 0;
    for (size_t i = 0; i + shift < n && differ <= (n - shift) / 2; i++)
        differ += !same(out, i, right, i + shift);
    return differ <= (n - shift) / 2;
}

static int tell_shift(struct soak *s, const char *out, size_t n, char *text, int at)
{
    for (int row = 0; row < SOAK_ROWS; row++)
        for (size_t shift = 1; shift <= n / 2; shift++) {
            const char *right = soak_output(s, 0, 0, row);
            const bool back = is_shifted(right, out, n, shift);
            if (back || is_shifted(out, right, n, shift))
                return at + snprintf(text + at, (size_t)(SOAK_TEXT - at),
                                     "; they are row %d's, moved by %s%zu values", row,
                                     back ? "" : "-", shift);
        }
    return at;
}

static int tell_nearest(struct soak *s, int own, const char *out, size_t n, char *text,
                        int at)
{
    int nearest = -1;
    struct difference least = {.apart = INFINITY};
    for (int row = 0; row < SOAK_ROWS; row++) {
        const struct difference d = compare(out, soak_output(s, 0, 0, row), n);
        if (row == own || d.apart >= least.apart)
            continue;
        nearest = row;
        least = d;
    }
    return nearest < 0 ? at
                       : at + snprintf(text + at, (size_t)(SOAK_TEXT - at),
                                       "; nearest other row %d, %zu differ, by %.3g %%",
                                       nearest, least.differ, least.apart * 100);
}

/* The row, then what it must be. */
static void keep(const struct soak *s, const char *out, const char *right, int row)
{
    static atomic_int kept;
    char path[SOAK_TEXT];
    if (!s->folder)
        return;
    snprintf(path, sizeof path, "%s/row-%d-%d-%d", s->folder, (int)getpid(),
             atomic_fetch_add(&kept, 1), row);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(out, s->row_out, 1, f) != 1 || fwrite(right, s->row_out, 1, f) != 1)
        fprintf(stderr, "%s: cannot be written\n", path);
    if (f)
        fclose(f);
}

/* Of what a row may be, by plans and places, that which the fewest values differ from. */
static const char *closest(struct soak *s, int row, const char *out, size_t n)
{
    const char *found = NULL;
    size_t least = n + 1;
    for (int b = 0; b < s->n_batches; b++)
        for (int64_t k = 0; k < s->batches[b]; k++) {
            const struct difference d = compare(out, soak_output(s, b, k, row), n);
            if (d.differ >= least)
                continue;
            found = soak_output(s, b, k, row);
            least = d.differ;
        }
    return found;
}

void soak_look(struct soak *s, int batch, int64_t place, int row, const char *out,
               char text[SOAK_TEXT])
{
    const size_t n = s->row_out / sizeof(float);
    const char *right = batch == SOAK_ANY_BATCH ? closest(s, row, out, n)
                                                : soak_output(s, batch, place, row);
    const struct difference d = compare(out, right, n);
    size_t none = 0, unwritten = 0;
    int other = 0;
    char as_before[sizeof(float)];
    memset(as_before, SOAK_UNWRITTEN, sizeof as_before);
    for (size_t i = 0; i < n; i++) {
        none += isfinite(value(out, i)) ? 0 : 1;
        unwritten += same(out, i, as_before, 0);
    }
    while (other < SOAK_ROWS && !soak_is_row(s, SOAK_ANY_BATCH, 0, other, out))
        other++;
    int at = snprintf(text, SOAK_TEXT,
                      "row %d: %zu of %zu values differ, from %zu to %zu, by %.3g %% of "
                      "its size, %.3g at most; %zu are no numbers, %zu unwritten",
                      row, d.differ, n, d.first, d.last, d.apart * 100, d.most, none,
                      unwritten);
    if (other < SOAK_ROWS)
        snprintf(text + at, (size_t)(SOAK_TEXT - at), "; they are those of row %d",
                 other);
    else
        tell_shift(s, out, n, text, tell_nearest(s, row, out, n, text, at));
    keep(s, out, right, row);
}
