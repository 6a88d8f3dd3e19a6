/* SPDX-License-Identifier: Apache-2.0
 *
 * The step that the weights of an RNN are whole numbers of, which decides whether they
 * are packed as bytes, and products of those.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "plugins/rnn/host.h"

Test(rnn_steps, a_row_of_whole_numbers_has_a_step)
{
    static const float rows[][4] = {{3, -1.5f, 0, 190.5f}, {0, 0, -0.f, 0}};
    cr_expect_eq(rnn_find_step(rows[0], 4, 0), 1.5f);
    cr_expect_eq(rnn_find_step(rows[1], 4, 0), 0);
}

/* A byte has none of them. */
Test(rnn_steps, a_row_with_what_is_no_number_has_none)
{
    static const float odd[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 4; i++)
        for (int at = 0; at < 3; at++)
            for (int other = 0; other < 2; other++) {
                float row[3] = {(float)other, (float)other, (float)other};
                row[at] = odd[i];
                cr_expect_eq(rnn_find_step(row, 3, 0), -1, "%g and %d", (double)odd[i],
                             other);
                cr_expect_eq(rnn_find_step(row, 3, 1), -1, "%g and %d", (double)odd[i],
                             other);
            }
}

enum {
    DEEP = 37,
    FOURS = (DEEP + 3) / 4,
    WHOLE = 48,
    GATES = 4,
    COLUMNS = GATES * RNN_LANES
};

/* Weights of a panel: [four][gate][lane][of the four], and what high digits begin with.
 */
static void fill_panel(int8_t *panel, int32_t *less)
{
    memset(panel, 0, FOURS * COLUMNS * 4);
    memset(less, 0, COLUMNS * sizeof *less);
    for (int k = 0; k < DEEP; k++)
        for (int c = 0; c < COLUMNS; c++) {
            const int n = (k * 31 + c * 17) % 255 - 127;
            panel[(k / 4 * COLUMNS + c) * 4 + k % 4] = (int8_t)n;
            less[c] -= 128 * n;
        }
}

/* How far a sum is from that in FP64, of the sum of sizes; 0: both are the same that is
 * no finite number, and infinity: one is. */
static double off_by(double got, double sum, double sizes)
{
    if (isnan(sum) || isnan(got))
        return isnan(sum) && isnan(got) ? 0 : INFINITY;
    if (isinf(sum) || isinf(got))
        return sum == got ? 0 : INFINITY;
    return sizes > 0 ? fabs(got - sum) / sizes : fabs(got);
}

/* The farthest of row m. */
static double row_off_by(const struct rnn_sums *s, int m, const int8_t *panel)
{
    double most = 0;
    for (int c = 0; c < COLUMNS; c++) {
        double sum = s->start[m][c], sizes = fabs(sum);
        for (int k = 0; k < DEEP; k++) {
            const double w = panel[(k / 4 * COLUMNS + c) * 4 + k % 4];
            sum += w * s->step[c] * s->a[m][k];
            sizes += fabs(w * s->step[c] * s->a[m][k]);
        }
        most = fmax(most, off_by(s->sum[m][c], sum, sizes));
    }
    return most;
}

/* Three rows of numbers, weights and where their sums go. */
struct product {
    int8_t panel[FOURS * COLUMNS * 4];
    int32_t less[COLUMNS];
    uint8_t digits[3][4 * WHOLE];
    float row[3][WHOLE], start[COLUMNS], step[COLUMNS], sum[3][COLUMNS];
    struct rnn_sums s;
};

/* Of scale times numbers. */
static void fill(struct product *p, float scale)
{
    p->s = (struct rnn_sums){.gate = RNN_LANES, .step = p->step, .less = p->less};
    fill_panel(p->panel, p->less);
    for (int c = 0; c < COLUMNS; c++) {
        p->start[c] = (float)(c - 20) * scale;
        p->step[c] = 0.01f * (float)(c + 1);
    }
    for (int m = 0; m < 3; m++) {
        for (int k = 0; k < DEEP; k++)
            p->row[m][k] = scale * sinf((float)(m * DEEP + k));
        p->s.a[m] = p->row[m];
        p->s.start[m] = p->start;
        p->s.sum[m] = p->sum[m];
    }
}

/* Weights of inputs [from, to) are 0. */
static void clear_weights(struct product *p, int from, int to)
{
    for (int k = from; k < to; k++)
        for (int c = 0; c < COLUMNS; c++) {
            int8_t *w = &p->panel[(k / 4 * COLUMNS + c) * 4 + k % 4];
            p->less[c] += 128 * *w;
            *w = 0;
        }
}

/* Two rows at once and one alone. */
static double off_of(struct product *p,
                     float (*digits_of)(uint8_t *, const float *, int64_t))
{
    double most = 0;
    for (int m = 0; m < 3; m++) {
        p->s.digits[m] = p->digits[m];
        p->s.unit[m] = digits_of(p->digits[m], p->row[m], DEEP);
    }
    rnn_sum_digits(&p->s, 3, DEEP, p->panel);
    for (int m = 0; m < 3; m++)
        most = fmax(most, row_off_by(&p->s, m, p->panel));
    return most;
}

/* With `odd` among the numbers. */
static double off_with(float scale, float odd)
{
    static struct product p;
    fill(&p, scale);
    for (int m = 0; m < 3; m++)
        p.row[m][m * 9] = odd;
    return off_of(&p, rnn_digits_of_row);
}

Test(rnn_steps, sums_of_digits_are_as_far_off_as_floats)
{
    static const float scales[] = {1, 1e-3f, 700, 1e20f, 1e-25f};
    if (!rnn_has_digits())
        cr_skip_test("this processor has no AVX-512 VNNI");
    for (int i = 0; i < 5; i++) {
        const double off = off_with(scales[i], 0);
        cr_expect_lt(off, 2e-7, "%g: %g", (double)scales[i], off);
    }
}

/* As of a row's h, panel after panel. */
static float digits_of_states(uint8_t *to, const float *h, int64_t n)
{
    float unit = 0x1p-23f;
    for (int64_t i = 0; i < n; i += RNN_LANES)
        if (!rnn_digits_of_states(to + 4 * i, h + i))
            unit = 0;
    return unit;
}

Test(rnn_steps, sums_of_tiny_states_are_as_far_off_as_floats)
{
    static const float scales[] = {1, 0.1f, 0.01f, 1e-3f, 1e-5f, 1e-10f};
    static struct product p;
    if (!rnn_has_digits())
        cr_skip_test("this processor has no AVX-512 VNNI");
    for (int i = 0; i < 6; i++) {
        fill(&p, scales[i]);
        const double off = off_of(&p, digits_of_states);
        cr_expect_lt(off, 1e-6, "%g: %g", (double)scales[i], off);
        for (int k = 0; k < RNN_LANES; k++)
            p.row[0][k] *= 1e-5f;
        clear_weights(&p, RNN_LANES, DEEP);
        const double few = off_of(&p, digits_of_states);
        cr_expect_lt(few, 1e-6, "16 of %g: %g", (double)scales[i] * 1e-5, few);
    }
}

Test(rnn_steps, states_of_0_and_of_an_ordinary_size_have_digits)
{
    uint8_t digits[64];
    float h[RNN_LANES] = {0};
    if (!rnn_has_digits())
        cr_skip_test("this processor has no AVX-512 VNNI");
    cr_expect(rnn_digits_of_states(digits, h));
    h[3] = 1e-6f;
    cr_expect_not(rnn_digits_of_states(digits, h));
    h[4] = -0x1p-6f;
    cr_expect(rnn_digits_of_states(digits, h));
}

/* They are not made digits. */
Test(rnn_steps, sums_of_what_is_no_number_are_those_of_floats)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    uint8_t digits[64];
    float h[RNN_LANES] = {1, -1, 0.5f};
    if (!rnn_has_digits())
        cr_skip_test("this processor has no AVX-512 VNNI");
    cr_expect(rnn_digits_of_states(digits, h));
    for (int i = 0; i < 3; i++) {
        h[7] = odd[i];
        cr_expect_not(rnn_digits_of_states(digits, h));
        cr_expect_lt(off_with(1, odd[i]), 2e-7, "%g", (double)odd[i]);
    }
    cr_expect_lt(off_with(1, 1e35f), 2e-7);
    cr_expect_lt(off_with(1e-35f, 0), 2e-7);
    h[7] = 1.001f;
    cr_expect_not(rnn_digits_of_states(digits, h));
}

/* Of a time stamp that no sum has, say. */
Test(rnn_steps, numbers_beside_large_ones_are_not_lost)
{
    static const float large[] = {1.7e9f, -1e9f, 900};
    static struct product p;
    if (!rnn_has_digits())
        cr_skip_test("this processor has no AVX-512 VNNI");
    for (int i = 0; i < 3; i++)
        for (int n = 1; n <= DEEP / 2; n += 5) {
            fill(&p, 1);
            clear_weights(&p, 0, n);
            for (int m = 0; m < 3; m++)
                for (int k = 0; k < n; k++)
                    p.row[m][k] = large[i];
            const double off = off_of(&p, rnn_digits_of_row);
            cr_expect_lt(off, 4e-7, "%d of %g: %g", n, (double)large[i], off);
        }
}

Test(rnn_steps, rows_of_about_one_size_have_digits)
{
    float x[DEEP] = {0};
    uint8_t digits[4 * WHOLE];
    if (!rnn_has_digits())
        cr_skip_test("this processor has no AVX-512 VNNI");
    cr_expect_gt(rnn_digits_of_row(digits, x, DEEP), 0, "zeros");
    x[5] = 1e9f;
    cr_expect_gt(rnn_digits_of_row(digits, x, DEEP), 0, "one number");
    for (int k = 0; k < DEEP; k++)
        x[k] = k % 3 ? 700 * sinf((float)k) : 0;
    cr_expect_gt(rnn_digits_of_row(digits, x, DEEP), 0);
    x[4] = 1e-12f;
    cr_expect_gt(rnn_digits_of_row(digits, x, DEEP), 0, "one that is small");
    x[4] = 1e6f;
    cr_expect_eq(rnn_digits_of_row(digits, x, DEEP), 0, "one that is large");
}
