/* SPDX-License-Identifier: Apache-2.0
 *
 * The device's reformat against a device-to-device copy of as many bytes, in the same
 * run, alternating, on the same buffers.
 *
 * Bytes count where they are read and where they are written, pads of the destination
 * included, so a copy of half of them moves the same amount through memory. Every launch
 * reads and writes other buffers than the one before, and a buffer set is several times
 * the L2 cache. Times are medians of device events. docs/performance.md holds floors and
 * results, docs/log/reformat.md predictions.
 *
 *   reformat_cuda [--rows] [--row NAME]... [--shape SHAPE]... [--format NAME]...
 * [--quick]
 *     --rows: also the rows that were not chosen; --row: also this one
 *     --shape: this one, as 1024x512x14x14, instead of all
 *     --format: between these, as int8:nc/32hw32, instead of the four of the card
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/handle.h"
#include "formats/format.h"

enum {
    SETS = 3,
    BURST = 6,
    MOST_RUNS = 15,
    MOST_FORMATS = 8,
    MOST_ROWS = 16,
    MOST_SHAPES = 16
};

static const char *const card[] = {"fp32:nchw", "fp16:nchw", "fp16:nc/2hw2",
                                   "fp16:nhwc8"};

static const struct shape {
    int64_t dims[4];
    double goal;
} shapes[] = {
    {{512, 64, 56, 56}, 0.90},   {{512, 67, 56, 56}, 0.90}, {{8192, 3, 56, 56}, 0.85},
    {{32768, 64, 7, 7}, 0.85},   {{32768, 67, 7, 7}, 0.85}, {{524288, 3, 7, 7}, 0.85},
    {{1024, 512, 14, 14}, 0.90}, {{4096, 512, 7, 7}, 0.85}, {{128, 256, 56, 56}, 0.90},
    {{64, 3, 1024, 1024}, 0.85},
};

struct bench {
    strata_handle *handle;
    const struct device_ops *ops;
    strata_event *from, *to;
    char *a[SETS], *b[SETS];
    size_t room;
    int runs;
    const char *rows[MOST_ROWS]; /* to time besides the chosen one */
    int n_rows;
    const char *only[MOST_SHAPES]; /* shapes, "1024x512x14x14"; none: all */
    int n_only;
    const char *formats[MOST_FORMATS];
    int n_formats;
    bool all_rows;
};

/* One kind of launch: a row of the table, or (row < 0) a copy. */
struct subject {
    int row;
    strata_desc dst, src;
    size_t bytes; /* read and written, together */
};

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int launch(const struct bench *b, const struct subject *s, int set,
                  strata_error *err)
{
    strata_stream *stream = b->handle->stream;
    if (s->row < 0)
        return b->ops->copy(stream, b->b[set], b->a[set], s->bytes / 2, COPY_ON_DEVICE,
                            err);
    return b->ops->reformat_row(stream, (size_t)s->row, &s->dst, b->b[set], &s->src,
                                b->a[set], err);
}

/* Milliseconds of a launch, in a burst over rotating buffers. */
static int burst(double *ms, struct bench *b, const struct subject *s, strata_error *err)
{
    strata_stream *stream = b->handle->stream;
    int status = b->ops->event_record(b->from, stream, err);
    for (int i = 0; i < BURST && status == STRATA_OK; i++)
        status = launch(b, s, i % SETS, err);
    if (status == STRATA_OK)
        status = b->ops->event_record(b->to, stream, err);
    if (status == STRATA_OK)
        status = b->ops->event_synchronize(b->to, err);
    if (status == STRATA_OK)
        status = b->ops->event_elapsed(ms, b->from, b->to, err);
    *ms /= BURST;
    return status;
}

/* Medians of both, alternating; the first burst warms up. */
static int compare(double *ours, double *copy, struct bench *b, const struct subject *s,
                   strata_error *err)
{
    double times[2][MOST_RUNS + 1];
    const struct subject plain = {.row = -1, .bytes = s->bytes};
    int status = STRATA_OK;
    for (int i = 0; i <= b->runs && status == STRATA_OK; i++) {
        status = burst(&times[0][i], b, s, err);
        if (status == STRATA_OK)
            status = burst(&times[1][i], b, &plain, err);
    }
    for (int k = 0; k < 2; k++)
        qsort(times[k] + 1, (size_t)b->runs, sizeof times[k][0], by_value);
    *ours = times[0][1 + b->runs / 2];
    *copy = times[1][1 + b->runs / 2];
    return status;
}

/* A column of the table; *ratio is 0 where the row does not take the pair. */
static int column(double *ratio, struct bench *b, const struct subject *s, bool chosen,
                  strata_error *err)
{
    double ours, copy;
    int status = compare(&ours, &copy, b, s, err);
    *ratio = 0;
    if (status == STRATA_EUNSUPPORTED && !chosen) {
        error_clear(err);
        return STRATA_OK;
    }
    if (status != STRATA_OK)
        return status;
    *ratio = copy / ours;
    if (chosen)
        printf(" %5.0f", (double)s->bytes * 1e-6 / copy);
    printf("  %c%-8s %6.1f %.3f", chosen ? '*' : ' ',
           b->ops->reformat_row_name((size_t)s->row), ours * 1e3, *ratio);
    fflush(stdout);
    return STRATA_OK;
}

static bool is_wanted(const struct bench *b, int row)
{
    for (int i = 0; i < b->n_rows; i++)
        if (strcmp(b->rows[i], b->ops->reformat_row_name((size_t)row)) == 0)
            return true;
    return b->all_rows;
}

static void name_shape(char *text, size_t size, const int64_t *dims)
{
    snprintf(text, size, "%lldx%lldx%lldx%lld", (long long)dims[0], (long long)dims[1],
             (long long)dims[2], (long long)dims[3]);
}

static bool is_asked(const struct bench *b, const int64_t *dims)
{
    char shape[64];
    name_shape(shape, sizeof shape, dims);
    for (int i = 0; i < b->n_only; i++)
        if (strcmp(b->only[i], shape) == 0)
            return true;
    return b->n_only == 0;
}

/* One ordered pair at one shape; *ratio is the chosen row's. */
static int pair(double *ratio, struct bench *b, const int64_t *dims, const char *to,
                const char *from, strata_error *err)
{
    struct subject s = {.row = 0};
    char shape[64];
    double other;
    int status = strata_desc_format(&s.dst, to, dims, 4, err);
    if (status == STRATA_OK)
        status = strata_desc_format(&s.src, from, dims, 4, err);
    if (status != STRATA_OK)
        return status;
    name_shape(shape, sizeof shape, dims);
    printf("%-16s %-12s %-12s", shape, from, to);
    s.bytes = (size_t)(strata_desc_bytes(&s.dst) + strata_desc_bytes(&s.src));
    const int chosen = (int)b->ops->reformat_choose(&s.dst, b->b[0], &s.src, b->a[0]);
    s.row = chosen;
    status = column(ratio, b, &s, true, err);
    for (int row = 0; row < (int)b->ops->reformat_rows(); row++) {
        s.row = row;
        if (row != chosen && is_wanted(b, row) && status == STRATA_OK)
            status = column(&other, b, &s, false, err);
    }
    printf("\n");
    return status;
}

struct summary {
    double least[ARRAY_LENGTH(shapes)];
    char where[ARRAY_LENGTH(shapes)][64];
};

static int all_pairs(struct summary *sum, struct bench *b, size_t i, strata_error *err)
{
    int status = STRATA_OK;
    sum->least[i] = 1e9;
    const int n = b->n_formats;
    for (int k = 0; k < n * n && status == STRATA_OK; k++) {
        const char *from = b->formats[k / n], *to = b->formats[k % n];
        double ratio = 0;
        if (k / n == k % n)
            continue;
        status = pair(&ratio, b, shapes[i].dims, to, from, err);
        if (ratio < sum->least[i]) {
            sum->least[i] = ratio;
            snprintf(sum->where[i], sizeof sum->where[i], "%s to %s", from, to);
        }
    }
    return status;
}

static void print_summary(const struct summary *sum)
{
    printf("\nleast ratio to a copy, of the ordered pairs\n");
    for (size_t i = 0; i < ARRAY_LENGTH(shapes); i++) {
        char shape[64];
        if (sum->least[i] == 0)
            continue;
        name_shape(shape, sizeof shape, shapes[i].dims);
        printf("%-16s %6.3f (goal %.2f%s) %s\n", shape, sum->least[i], shapes[i].goal,
               sum->least[i] < shapes[i].goal ? ", MISSED" : "", sum->where[i]);
    }
}

static size_t room_needed(const struct bench *b, strata_error *err)
{
    size_t most = 0;
    strata_desc d;
    for (size_t i = 0; i < ARRAY_LENGTH(shapes); i++)
        for (int k = 0; k < b->n_formats; k++)
            if (is_asked(b, shapes[i].dims) &&
                strata_desc_format(&d, b->formats[k], shapes[i].dims, 4, err) ==
                    STRATA_OK &&
                (size_t)strata_desc_bytes(&d) > most)
                most = (size_t)strata_desc_bytes(&d);
    return most;
}

static int open_bench(struct bench *b, strata_error *err)
{
    int status = strata_create(&b->handle, "cuda:0", err);
    if (status != STRATA_OK)
        return status;
    b->ops = b->handle->device->ops;
    b->room = room_needed(b, err);
    uint32_t *noise = malloc(b->room);
    if (!noise)
        return error_no_memory(err, b->room, "random data");
    uint32_t state = 1;
    for (size_t i = 0; i < b->room / 4; i++)
        noise[i] = state = state * 1664525u + 1013904223u;
    status = b->ops->event_create(b->handle->device, &b->from, err);
    if (status == STRATA_OK)
        status = b->ops->event_create(b->handle->device, &b->to, err);
    for (int i = 0; i < SETS && status == STRATA_OK; i++) {
        b->a[i] = allocator_get(&b->handle->allocator, b->room, "a source", err);
        b->b[i] = allocator_get(&b->handle->allocator, b->room, "a destination", err);
        status = b->a[i] && b->b[i] ? b->ops->copy(b->handle->stream, b->a[i], noise,
                                                   b->room, COPY_TO_DEVICE, err)
                                    : STRATA_ENOMEM;
    }
    if (status == STRATA_OK)
        status = strata_stream_synchronize(b->handle->stream, err);
    free(noise);
    return status;
}

static void close_bench(struct bench *b)
{
    if (!b->handle)
        return;
    for (int i = 0; i < SETS; i++) {
        allocator_put(&b->handle->allocator, b->a[i], b->room);
        allocator_put(&b->handle->allocator, b->b[i], b->room);
    }
    strata_event_destroy(b->from);
    strata_event_destroy(b->to);
    strata_destroy(b->handle);
}

/* The value of a repeated option; false: another option, or too many. */
static bool listed(const char **list, int *n, int most, const char *name, char **argv,
                   int *at)
{
    if (strcmp(argv[*at], name) != 0 || !argv[*at + 1] || *n == most)
        return false;
    list[(*n)++] = argv[++*at];
    return true;
}

static bool parse(struct bench *b, char **argv)
{
    for (int i = 1; argv[i]; i++) {
        if (strcmp(argv[i], "--rows") == 0)
            b->all_rows = true;
        else if (strcmp(argv[i], "--quick") == 0)
            b->runs = 5;
        else if (!listed(b->rows, &b->n_rows, MOST_ROWS, "--row", argv, &i) &&
                 !listed(b->only, &b->n_only, MOST_SHAPES, "--shape", argv, &i) &&
                 !listed(b->formats, &b->n_formats, MOST_FORMATS, "--format", argv, &i))
            return false;
    }
    if (b->n_formats == 0) {
        memcpy(b->formats, card, sizeof card);
        b->n_formats = ARRAY_LENGTH(card);
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct summary sum;
    struct bench b = {.runs = MOST_RUNS};
    strata_error err = {0};
    (void)argc;
    if (!parse(&b, argv)) {
        fprintf(
            stderr,
            "usage: %s [--rows] [--row NAME]... [--shape SHAPE]... [--format NAME]...\n"
            "       [--quick]\n",
            argv[0]);
        return 2;
    }
    int status = open_bench(&b, &err);
    if (status == STRATA_OK)
        printf("%s\n%-16s %-12s %-12s %5s  row (*: chosen), us, share of the copy\n",
               strata_device_name(b.handle), "shape", "from", "to", "copy");
    for (size_t i = 0; i < ARRAY_LENGTH(shapes) && status == STRATA_OK; i++)
        if (is_asked(&b, shapes[i].dims))
            status = all_pairs(&sum, &b, i, &err);
    close_bench(&b);
    if (status == STRATA_OK)
        print_summary(&sum);
    else
        fprintf(stderr, "%s\n", err.message);
    return status == STRATA_OK ? 0 : status == STRATA_EUNSUPPORTED ? 3 : 1;
}
