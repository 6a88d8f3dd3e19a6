/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows and bands against the loops that define them, and sizes that no loop ends.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "plugins/convolution/band.h"
#include "tests/planner/planning.h"

TestSuite(windows, .init = scratch_make, .fini = scratch_remove, .timeout = 120);

/* ---- windows ------------------------------------------------------------------------ */

static bool sees(const struct window *w, int64_t o, int64_t k)
{
    int64_t at = o * w->stride[2] - w->begin[2] + k * w->dilation[2];
    return at >= 0 && at < w->in[2];
}

static bool draw_window(struct window *w)
{
    *w = (struct window){1, 2, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0},
                         {1, 1, 1}, {1, 1, 1}};
    w->kernel[2] = 1 + rand() % 9;
    w->stride[2] = 1 + rand() % 9;
    w->dilation[2] = 1 + rand() % 9;
    w->in[2] = 1 + rand() % 9;
    w->begin[2] = rand() % 20;
    w->end[2] = rand() % 20;
    int64_t room = w->in[2] + w->begin[2] + w->end[2] - window_extent(w, 2);
    w->out[2] = room / w->stride[2] + 1;
    return room >= 0;
}

Test(windows, elements_that_meet_the_input_are_found)
{
    struct window w;
    srand(3);
    for (int round = 0; round < 200000; round++) {
        bool empty = false;
        if (!draw_window(&w))
            continue;
        int64_t next = window_next(&w, 2, 0);
        for (int64_t k = 0; k < w.kernel[2]; k++) {
            bool any = false;
            for (int64_t o = 0; o < w.out[2]; o++)
                any |= sees(&w, o, k);
            cr_assert_eq(any, k == next, "round %d", round);
            next = any ? window_next(&w, 2, k + 1) : next;
        }
        cr_assert_eq(next, w.kernel[2]);
        for (int64_t o = 0; o < w.out[2]; o++) {
            bool any = false;
            for (int64_t k = 0; k < w.kernel[2]; k++)
                any |= sees(&w, o, k);
            empty |= !any;
        }
        cr_assert_eq(window_has_empty(&w) != 0, empty, "round %d", round);
    }
}

/* ---- bands -------------------------------------------------------------------------- */

/* The rows of a band by their definition. */
static int64_t rows_of(const struct convolution *cv, const strata_node *n)
{
    int64_t out = cv->w.out[cv->w.first], best = out;
    int64_t most = convolution_columns_of(cv, out) * 33 / 32;
    size_t share = CONVOLUTION_BAND_BYTES / (size_t)convolution_threads();
    size_t bytes = convolution_band_bytes(&cv->w, n, out);
    for (int64_t rows = out - 1; rows > 0 && bytes > share; rows--)
        if (convolution_columns_of(cv, rows) <= most) {
            best = rows;
            bytes = convolution_band_bytes(&cv->w, n, rows);
        }
    return best;
}

Test(windows, bands_are_those_of_their_definition)
{
    int split = 0;
    srand(4);
    for (int round = 0; round < 4000; round++) {
        struct convolution cv = {.tile = gemm_choose()};
        strata_tensor in = {.rank = 4, .dims = {8, 1 + rand() % 200}};
        strata_tensor out = {.rank = 4, .dims = {8, 1 + rand() % 200}};
        const strata_node n = {.in = &in, .out = &out};
        cv.w = (struct window){2, 1, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0},
                               {1, 1, 1}, {1, 1, 1}};
        for (int d = 1; d < WINDOW_DIMS; d++) {
            cv.w.in[d] = cv.w.out[d] = 1 + rand() % (d == 1 ? 700 : 60);
            cv.w.kernel[d] = rand() % 2 ? 3 : 1;
            cv.w.begin[d] = cv.w.end[d] = cv.w.kernel[d] / 2;
        }
        cv.pointwise = cv.w.kernel[1] == 1 && cv.w.kernel[2] == 1;
        convolution_merge(&cv);
        const struct convolution_bands b = convolution_bands(&cv, &n);
        split += b.count > 1;
        if (b.count > 1)
            cr_assert_eq(b.rows, rows_of(&cv, &n), "round %d", round);
    }
    cr_expect_gt(split, 1000);
}

/* ---- sizes -------------------------------------------------------------------------- */

static int64_t arena_of(const char *input, const char *layer)
{
    struct planning p;
    char text[600];
    snprintf(text, sizeof text,
             "[network]\nformat = 1\noutputs = y\n[build]\ncosts = analytic\n"
             "[weights w]\nrandom = 1\n[input x]\nshape = %s\n[layer y]\n%s",
             input, layer);
    cr_assert_eq(planning_open(&p, spill_text("net.ini", text), NULL, 0), STRATA_OK, "%s",
                 p.err.message);
    const int64_t bytes = p.execution->arena_bytes;
    planning_close(&p);
    return bytes;
}

Test(windows, planning_ends_whatever_the_sizes)
{
    arena_of("1 x 1 x 131084 x 131072",
             "type = Convolution\nfilters = 4\nkernel = 1\nweights = w:y\n");
    arena_of("1 x 4 x 8 x 8", "type = Pooling\nkind = max\nkernel = 2147483647\n"
                              "pad = 1073741823\n");
    arena_of("1 x 4 x 8 x 8", "type = Pooling\nkind = average\nkernel = 3\n"
                              "stride = 2147483647\npad = 1\n");
    cr_expect_lt(arena_of("1 x 2 x 8 x 8",
                          "type = Convolution\nfilters = 2\nkernel = 3\n"
                          "stride = 2147483647\nweights = w:y\n"),
                 1 << 20, "the copy of an image is as large as what is seen of it");
}
