/* SPDX-License-Identifier: Apache-2.0
 *
 * The shared headers of host plugins: windows against brute force, half conversion
 * against the core's for every value, every matrix tile this CPU has against FP64 and in
 * a convolution, the activation rows against their definition, and extremes of rows.
 */
#include "plugins/convolution/core.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/format.h"
#include "plugins/common/reduce/reduce.h"

static int quiet_fail(strata_error *err, int code, const char *format, ...)
{
    (void)err;
    (void)format;
    return code;
}

static const strata_host host = { .struct_size = sizeof host, .fail = quiet_fail };

static strata_tensor plane(int64_t h, int64_t w)
{
    return (strata_tensor){ .rank = 4, .dims = { 1, 1, h, w } };
}

Test(kernels, windows_match_brute_force)
{
    int checked = 0;
    for (int64_t in = 1; in < 12; in++)
        for (int64_t code = 0; code < 4 * 3 * 3 * 4 * 4; code++) {
            int64_t kernel = 1 + code % 4, stride = 1 + code / 4 % 3;
            int64_t dilation = 1 + code / 12 % 3;
            int64_t pad[] = { 0, code / 36 % 4, 0, code / 144 };
            int64_t kernels[] = { 1, kernel };
            struct window_attrs a = { .kernel = { kernels, 2 },
                                      .stride = { &stride, 1 },
                                      .dilation = { &dilation, 1 },
                                      .pad = { pad, 4 } };
            int64_t expected = 0, extent = (kernel - 1) * dilation + 1;
            strata_tensor t = plane(3, in);
            struct window w;
            for (int64_t at = -pad[1]; at + extent <= in + pad[3]; at += stride)
                expected++;
            int status = window_resolve(&w, &a, &t, &host, NULL);
            cr_expect((status == STRATA_OK) == (expected > 0));
            if (status != STRATA_OK)
                continue;
            cr_expect(w.out[2] == expected, "in %d code %d: %d outputs, should be %d",
                      (int)in, (int)code, (int)w.out[2], (int)expected);
            bool empty = false;
            for (int64_t o = 0; o < w.out[2]; o++) {
                bool any = false;
                for (int64_t k = 0; k < kernel; k++) {
                    int64_t lo, hi, at = o * stride - pad[1] + k * dilation;
                    bool inside = at >= 0 && at < in;
                    window_valid(&w, 2, k, &lo, &hi);
                    cr_expect((o >= lo && o < hi) == inside, "in %d code %d o %d k %d",
                              (int)in, (int)code, (int)o, (int)k);
                    any |= inside;
                }
                empty |= !any;
            }
            cr_expect(window_has_empty(&w) == empty, "in %d code %d", (int)in, (int)code);
            checked++;
        }
    cr_expect(checked > 4000, "%d windows", checked);
}

Test(kernels, same_padding_gives_input_over_stride)
{
    for (int64_t in = 1; in < 20; in++)
        for (int64_t kernel = 1; kernel < 6; kernel++)
            for (int64_t stride = 1; stride < 5; stride++)
                for (int32_t mode = STRATA_PAD_SAME_UPPER; mode <= STRATA_PAD_SAME_LOWER;
                     mode++) {
                    struct window_attrs a = { .kernel = { &kernel, 1 },
                                              .stride = { &stride, 1 },
                                              .pad_mode = mode };
                    strata_tensor t = plane(in, in);
                    struct window w;
                    cr_assert(window_resolve(&w, &a, &t, &host, NULL) == STRATA_OK);
                    int64_t odd = w.end[2] - w.begin[2];
                    cr_expect(w.out[2] == (in + stride - 1) / stride);
                    cr_expect(mode == STRATA_PAD_SAME_UPPER ? odd == 0 || odd == 1
                                                            : odd == 0 || odd == -1);
                }
}

/* Sizes that would overflow are refused, not computed. */
Test(kernels, huge_windows_are_refused)
{
    int64_t huge = INT64_MAX, large = INT32_MAX, one = 1;
    const struct window_attrs attrs[] = {
        { .kernel = { &huge, 1 } },
        { .kernel = { &one, 1 }, .pad = { &huge, 1 } },
        { .kernel = { &one, 1 }, .stride = { &huge, 1 } },
        { .kernel = { &one, 1 }, .dilation = { &huge, 1 } },
        { .kernel = { &large, 1 }, .dilation = { &large, 1 }, .pad = { &large, 1 } },
    };
    struct window w;
    strata_tensor t = plane(5, 5);
    for (size_t i = 0; i < sizeof attrs / sizeof attrs[0]; i++)
        cr_expect(window_resolve(&w, &attrs[i], &t, &host, NULL) != STRATA_OK, "%zu", i);
    t = (strata_tensor){ .rank = 5, .dims = { 1, 1, large, large, large } };
    struct window_attrs a = { .kernel = { &one, 1 } };
    cr_expect(window_resolve(&w, &a, &t, &host, NULL) == STRATA_EOVERFLOW);
}

Test(kernels, half_conversion_agrees_with_the_core)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        float ours = element_from_half((uint16_t)h), theirs = half_to_float((uint16_t)h);
        cr_assert(strata_bits_of_float(ours) == strata_bits_of_float(theirs), "half %x", h);
    }
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += 251) {
        float x = strata_float_of_bits((uint32_t)bits);
        if (x == x)
            cr_assert(element_to_half(x) == half_from_float(x), "float %x",
                      (uint32_t)bits);
    }
    for (int64_t n = 0; n < 40; n++) {
        float from[40], back[41] = { 0 };
        uint16_t half[41] = { 0 };
        for (int64_t i = 0; i < n; i++)
            from[i] = (float)(i * i) / 7 - 30;
        element_to_half_row(half, from, n);
        element_from_half_row(back, half, n);
        for (int64_t i = 0; i < n; i++)
            cr_expect(half[i] == half_from_float(from[i]) &&
                          back[i] == half_to_float(half[i]),
                      "row of %d, element %d", (int)n, (int)i);
        cr_expect(half[n] == 0 && back[n] == 0, "row of %d wrote past its end", (int)n);
    }
}

/* Rows of the table that this CPU runs: the chosen one and all after it. */
Test(kernels, every_matrix_tile_is_right)
{
    const struct gemm_tile *end =
        gemm_tiles + sizeof gemm_tiles / sizeof gemm_tiles[0];
    enum { LDC = GEMM_MAX_COLUMNS + 3, LDB = GEMM_MAX_COLUMNS + 5 };
    static float a[GEMM_DEPTH * GEMM_MAX_ROWS], b[GEMM_DEPTH * LDB];
    static float c[GEMM_MAX_ROWS * LDC], before[GEMM_MAX_ROWS * LDC];
    for (const struct gemm_tile *t = gemm_choose(); t < end; t++)
        for (int vectors = 1; vectors <= 3; vectors++)
            for (int64_t depth = 1; depth <= GEMM_DEPTH; depth += 61)
                for (int accumulate = 0; accumulate < 2; accumulate++) {
                    for (size_t i = 0; i < sizeof a / sizeof a[0]; i++)
                        a[i] = (float)(rand() % 257 - 128) / 128;
                    for (size_t i = 0; i < sizeof b / sizeof b[0]; i++)
                        b[i] = (float)(rand() % 257 - 128) / 128;
                    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++)
                        before[i] = c[i] = (float)(rand() % 257 - 128) / 128;
                    t->tile[vectors - 1](depth, a, b, LDB, c, LDC, accumulate);
                    for (int m = 0; m < GEMM_MAX_ROWS; m++)
                        for (int j = 0; j < LDC; j++) {
                            double want = (double)before[m * LDC + j];
                            bool inside = m < t->rows && j < vectors * t->vector;
                            want = inside && !accumulate ? 0 : want;
                            for (int64_t k = 0; inside && k < depth; k++)
                                want += (double)a[k * t->rows + m] *
                                        (double)b[k * LDB + j];
                            cr_expect(fabs(want - (double)c[m * LDC + j]) < 1e-4,
                                      "%s, %d vectors, depth %d, row %d, column %d",
                                      t->name, vectors, (int)depth, m, j);
                        }
                }
}

static void fill_grid(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(rand() % 257 - 128) / 128;
}

/* The layer test reaches only the row that this CPU prefers; here the product method is
 * held against the direct one for all rows, weights packed ahead and as used. */
Test(kernels, convolution_methods_agree_with_every_tile)
{
    enum { IN = 2 * 3 * 11 * 13, OUT_C = 13, WEIGHT = OUT_C * 3 * 9 };
    static const strata_epilogue none = { 0 };
    const int64_t kernel = 3, stride = 2, pads[] = { 1, 0, 2, 1 };
    struct window_attrs attrs = {
        .kernel = { &kernel, 1 }, .stride = { &stride, 1 }, .pad = { pads, 4 }
    };
    strata_tensor t = plane(11, 13);
    struct convolution cv = { .groups = 1, .in_c = 3, .out_c = OUT_C, .depth = 27 };
    cr_assert(window_resolve(&cv.w, &attrs, &t, &host, NULL) == STRATA_OK);
    int64_t count = 2 * OUT_C * window_out_count(&cv.w);
    float *in = malloc(IN * sizeof *in), *weight = malloc(WEIGHT * sizeof *weight);
    float bias[OUT_C], *want = malloc((size_t)count * sizeof *want);
    float *got = malloc((size_t)count * sizeof *got);
    cr_assert(in && weight && want && got);
    fill_grid(in, IN);
    fill_grid(weight, WEIGHT);
    fill_grid(bias, OUT_C);
    struct convolution_job job = { .cv = &cv, .in = in, .out = want, .weight = weight,
                                   .bias = bias, .epilogue = &none, .images = 2 };
    job.scratch_size = convolution_scratch(&cv.w);
    job.scratch = malloc(job.scratch_size);
    cr_assert(job.scratch);
    convolution_compute(&job);
    job.out = got;
    const struct gemm_tile *end = gemm_tiles + ARRAY_LENGTH(gemm_tiles);
    for (cv.tile = gemm_choose(); cv.tile < end; cv.tile++)
        for (int pack = 0; pack < 2; pack++) {
            float *packed = malloc(convolution_packed_size(&cv));
            cr_assert(packed);
            convolution_pack_all(&cv, packed, weight);
            cv.packed = pack ? packed : NULL;
            memset(got, 0xff, (size_t)count * sizeof *got);
            convolution_compute(&job);
            for (int64_t i = 0; i < count; i++)
                cr_expect(fabsf(got[i] - want[i]) <= 1e-4f, "%s, packed %d, element %d",
                          cv.tile->name, pack, (int)i);
            free(packed);
        }
    free(job.scratch);
    free(in);
    free(weight);
    free(want);
    free(got);
}

Test(kernels, activation_rows_match_their_definition)
{
    enum { N = 401 };
    for (int32_t kind = 0; kind < STRATA_ACTIVATION_COUNT; kind++) {
        double alpha = kind == STRATA_CLIP ? -1.5 : 0.2, beta = 0.75;
        float row[N];
        for (int i = 0; i < N; i++)
            row[i] = (float)(i - 200) / 8;
        element_activate_row(kind, alpha, beta, row, N);
        for (int i = 0; i < N; i++) {
            double x = (i - 200) / 8.0;
            double want = element_activate_exact(kind, x, alpha, beta);
            cr_expect(fabs((double)row[i] - want) <= 2e-6 * (1 + fabs(want)),
                      "activation %d of %g is %g, should be %g", kind, x, (double)row[i],
                      want);
        }
    }
}

/* With NaN, infinities of both signs, both and neither, at any place of a row, among
 * numbers whose sum is infinite, too. */
static void check_extremes(const struct gather_code *code, int n)
{
    enum { NANS = 1, INFINITIES = 2, KINDS = 4 };
    float x[300];
    for (int kind = 0; kind < KINDS; kind++) {
        float most = -INFINITY, least = INFINITY;
        for (int i = 0; i < n; i++)
            x[i] = (float)(rand() % 2000 - 1000) * (n % 2 ? 1 : 3e35F);
        if (kind & INFINITIES) {
            x[rand() % n] = INFINITY;
            x[rand() % n] = -INFINITY;
        }
        for (int i = 0; i < n; i++) {
            most = fmaxf(most, x[i]);
            least = fminf(least, x[i]);
        }
        if (kind & NANS)
            x[rand() % n] = most = least = NAN;
        const float up = code->row(GATHER_MAX, x, n, 0);
        const float low = code->row(GATHER_MIN, x, n, 0);
        cr_expect(kind & NANS ? isnan(up) && isnan(low) : up == most && low == least,
                  "%d elements, kind %d: %g and %g, should be %g and %g", n, kind,
                  (double)up, (double)low, (double)most, (double)least);
    }
}

Test(kernels, extremes_of_rows_are_exact)
{
    const struct gather_code *codes[] = {&gather_code_plain,
#ifdef ELEMENT_X86
                                         element_has_f16c() ? &gather_code_avx2 : NULL,
#endif
                                         gather_choose()};
    for (size_t c = 0; c < sizeof codes / sizeof codes[0]; c++)
        for (int n = 1; n <= 300 && codes[c]; n++)
            check_extremes(codes[c], n);
}
