/* SPDX-License-Identifier: Apache-2.0
 *
 * Host reformat against memcpy in the same run, alternating, on the same threads.
 *
 * Bytes count once where they are read and once where they are written, for both sides.
 * Floor: a pair moves bytes of src + bytes of dst through memory whatever it does; with
 * streaming stores that is all it moves, so a copy of equal bytes bounds it. Prediction:
 * a transposition of 8 x 8 fp32 takes about 12 cycles for 256 bytes, several times faster
 * than memory feeds two cores, so each pair should reach 0.8 of memcpy. Measured on two
 * cores of an AMD EPYC (Zen 4), idle otherwise: 0.62 to 1.3 where channels move, since
 * conversion and the passes through scratch do not overlap memory in full, and 1.2 to 2.0
 * for runs, which stream where the C library's memcpy partly does not.
 *
 * Goal: at least 0.5 for every pair above 64 MB. Run it on an idle machine: with fewer
 * free cores than threads it measures the scheduler.
 */
#include "formats/reformat/reformat.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "bench/samples.h"

#define MAX_RUNS 15

static const char *const names[] = {"fp32:nchw",     "fp16:nchw", "fp16:nc/2hw2",
                                    "fp16:nhwc8",    "fp32:nhwc", "fp32:nc/8hw8",
                                    "fp32:nc/16hw16"};
#define CARD 4 /* the first four: all ordered pairs, and each with the rest */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* memcpy on the threads reformat uses, one equal part each. */
static void parallel_memcpy(char *dst, const char *src, size_t bytes)
{
#ifdef _OPENMP
#pragma omp parallel
    {
        const size_t n = (size_t)omp_get_num_threads(), i = (size_t)omp_get_thread_num();
        const size_t from = bytes / n * i, to = i + 1 == n ? bytes : bytes / n * (i + 1);
        memcpy(dst + from, src + from, to - from);
    }
#else
    memcpy(dst, src, bytes);
#endif
}

struct result {
    double reformat, memcpy; /* seconds, medians */
};

static int measure(struct result *out, const strata_desc *dst, char *dst_data,
                   const strata_desc *src, const char *src_data, int runs,
                   strata_error *err)
{
    double ours[MAX_RUNS], theirs[MAX_RUNS];
    const size_t bytes = (size_t)(strata_desc_bytes(dst) + strata_desc_bytes(src)) / 2;
    for (int i = -1; i < runs; i++) { /* run -1 warms up */
        const double start = seconds();
        const int status = reformat(dst, dst_data, src, src_data, err);
        if (status != STRATA_OK)
            return status;
        const double middle = seconds();
        parallel_memcpy(dst_data, src_data, bytes);
        if (i >= 0) {
            ours[i] = middle - start;
            theirs[i] = seconds() - middle;
        }
    }
    *out = (struct result){median(ours, (size_t)runs), median(theirs, (size_t)runs)};
    return STRATA_OK;
}

/* One line of the table; *worst keeps the least ratio. */
static int bench_pair(const char *to, const char *from, const int64_t *dims, char *a,
                      char *b, int runs, double *worst, strata_error *err)
{
    strata_desc dst, src;
    struct result r;
    int status = strata_desc_format(&dst, to, dims, 4, err);
    if (status == STRATA_OK)
        status = strata_desc_format(&src, from, dims, 4, err);
    if (status == STRATA_OK)
        status = measure(&r, &dst, a, &src, b, runs, err);
    if (status != STRATA_OK)
        return status;
    const double bytes = (double)(strata_desc_bytes(&dst) + strata_desc_bytes(&src));
    const double copied = floor(bytes / 2) * 2;
    const double ratio = bytes / r.reformat / (copied / r.memcpy);
    char shape[64];
    snprintf(shape, sizeof(shape), "%lldx%lldx%lldx%lld", (long long)dims[0],
             (long long)dims[1], (long long)dims[2], (long long)dims[3]);
    printf("%-15s %-15s %-16s %-14s %8.1f %8.1f %6.2f\n", from, to, shape,
           reformat_row_name(reformat_choose(&dst, &src)), bytes / r.reformat * 1e-9,
           copied / r.memcpy * 1e-9, ratio);
    fflush(stdout);
    if (ratio < *worst)
        *worst = ratio;
    return STRATA_OK;
}

static int bench_shape(const int64_t *dims, char *a, char *b, int runs, double *worst,
                       strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        for (size_t j = 0; j < ARRAY_LENGTH(names) && status == STRATA_OK; j++)
            if (i < CARD || j < CARD)
                status = bench_pair(names[j], names[i], dims, a, b, runs, worst, err);
    return status;
}

int main(int argc, char **argv)
{
    static const int64_t shapes[][4] = {
        {8, 64, 224, 224},
        {8, 67, 224, 224},
        {64, 3, 448, 448},
    };
    const int quick = argc == 2 && strcmp(argv[1], "--quick") == 0;
    const size_t capacity = (size_t)1 << 30;
    strata_error err = {0};
    double worst = HUGE_VAL, narrow = HUGE_VAL;
    int status = STRATA_OK;
    if (argc > 1 && !quick) {
        fprintf(stderr, "usage: %s [--quick]\n", argv[0]);
        return 2;
    }
    char *a = malloc(capacity), *b = malloc(capacity);
    if (a == NULL || b == NULL) {
        fprintf(stderr, "out of memory: needs 2 GiB\n");
        status = STRATA_ENOMEM;
        goto done;
    }
    memset(a, 1, capacity); /* every page in place before the clock runs */
    memset(b, 1, capacity);
    printf("%-15s %-15s %-16s %-14s %8s %8s %6s\n", "from", "to", "shape", "row", "GB/s",
           "memcpy", "ratio");
    for (size_t s = 0; s < ARRAY_LENGTH(shapes) && status == STRATA_OK; s++)
        status = bench_shape(shapes[s], a, b, quick ? 3 : MAX_RUNS,
                             shapes[s][1] < 8 ? &narrow : &worst, &err);
    if (status != STRATA_OK)
        fprintf(stderr, "%s\n", err.message);
    else
        printf("least ratio %.2f (goal 0.50), with three channels %.2f\n", worst, narrow);
done:
    free(a);
    free(b);
    return status == STRATA_OK ? 0 : 1;
}
