/* SPDX-License-Identifier: Apache-2.0
 *
 * The input products of all steps at once, each panel with the same rows in turn.
 */
#include "plugins/rnn/job.h"

#define TEAM_WORK 1000000. /* multiply-adds that pay for a thread team */
#define BLOCK 64           /* rows to a task */
#define AT_ONCE (1 << 19)  /* numbers whose digits are kept: what a core's cache has */

/* Rows from `at` on: how many, and which of the code's sums takes them. */
static int portion(int64_t left, int *index)
{
    *index = left >= 8 ? 3 : left >= 4 ? 2 : left >= 2;
    return 1 << *index;
}

/* A row of the input and where its sums go, rows after each other: dividing for each
 * takes as long as some of its multiply-adds. */
struct place {
    int64_t t, row, x, sum;
};

static struct place place_of(const struct rnn_job *j, int direction, int64_t panel,
                             int64_t at)
{
    const int64_t t = at / j->p.batch, row = at % j->p.batch;
    return (struct place){t, row, t * j->x_step + row * j->x_row,
                          rnn_sums_place(j, t, row, direction, panel)};
}

static void advance(const struct rnn_job *j, int direction, int64_t panel,
                    struct place *p)
{
    if (++p->row == j->p.batch) {
        p->row = 0;
        p->t++;
        p->x = p->t * j->x_step;
        p->sum = rnn_sums_place(j, p->t, 0, direction, panel);
    } else {
        p->x += j->x_row;
        p->sum += j->p.gates * RNN_LANES;
    }
}

static uint8_t *x_digits(const struct rnn_job *j, int64_t row)
{
    return (uint8_t *)(j->room.x_digits +
                       row % j->room.x_rows * rnn_whole_lanes(j->depth));
}

static void multiply(const struct rnn_job *j, int direction, int64_t panel, int64_t from,
                     int64_t to)
{
    static const int spans[] = {0, RNN_ONE, 0, RNN_THREE, RNN_FOUR};
    const int64_t gates = j->p.gates;
    const struct rnn_packed *line = &j->line[direction];
    const float *bias = line->bias + panel * (gates + 1) * RNN_LANES;
    const void *weight = (const char *)line->input + (size_t)panel * line->input_panel;
    struct rnn_sums s = {.gate = RNN_LANES};
    struct place at = place_of(j, direction, panel, from);
    if (line->step[0])
        s.step = line->step[0] + panel * gates * RNN_LANES;
    if (line->less[0])
        s.less = line->less[0] + panel * gates * RNN_LANES;
    for (int64_t row = from; row < to;) {
        int index;
        const int rows = portion(to - row, &index);
        for (int m = 0; m < rows; m++, row++) {
            s.a[m] = j->x + at.x;
            s.start[m] = bias;
            s.sum[m] = j->room.sums + at.sum;
            if (j->host->packing == RNN_DIGITS) {
                s.digits[m] = x_digits(j, row);
                s.unit[m] = j->room.x_unit[row % j->room.x_rows];
            }
            advance(j, direction, panel, &at);
        }
        if (j->host->packing == RNN_DIGITS)
            rnn_sum_digits(&s, rows, j->depth, weight);
        else
            j->code->sum[j->host->packing][index][spans[gates]](&s, j->depth, weight);
    }
}

/* Every gate has the input as it is. */
static void skip(const struct rnn_job *j, int direction, int64_t panel, int64_t from,
                 int64_t to)
{
    const float *bias = j->line[direction].bias + panel * (j->p.gates + 1) * RNN_LANES;
    const int64_t left = j->p.hidden - panel * RNN_LANES;
    struct place at = place_of(j, direction, panel, from);
    for (int64_t row = from; row < to; row++, advance(j, direction, panel, &at)) {
        const float *x = j->x + at.x + panel * RNN_LANES;
        float *sum = j->room.sums + at.sum;
        for (int64_t i = 0; i < j->p.gates * RNN_LANES; i++)
            sum[i] = bias[i] + (i % RNN_LANES < left ? x[i % RNN_LANES] : 0);
    }
}

static void make_digits(const struct rnn_job *j, int64_t from, int64_t to)
{
#pragma omp parallel for schedule(static) if ((to - from) * j->depth >                   \
                                              (int64_t)TEAM_WORK / 4)
    for (int64_t row = from; row < to; row++) {
        const float *x =
            j->x + row / j->p.batch * j->x_step + row % j->p.batch * j->x_row;
        j->room.x_unit[row % j->room.x_rows] =
            rnn_digits_of_row(x_digits(j, row), x, j->depth);
    }
}

/* Of rows [from, to). */
static void sum_rows(const struct rnn_job *j, int64_t from, int64_t to)
{
    const struct rnn_plan *p = &j->p;
    const int64_t blocks = (to - from + BLOCK - 1) / BLOCK;
    const int64_t tasks = p->directions * j->panels * blocks;
    const int multiplies = rnn_multiplies(p, j->layer);
    const double steps = (double)(to - from) / (double)p->batch;
    const double work = steps * rnn_step_work(j, j->depth);
#pragma omp parallel for schedule(static) if (work > TEAM_WORK)
    for (int64_t i = 0; i < tasks; i++) {
        const int64_t first = from + i % blocks * BLOCK;
        const int64_t end = first + BLOCK < to ? first + BLOCK : to;
        const int direction = (int)(i / blocks / j->panels);
        (multiplies ? multiply : skip)(j, direction, i / blocks % j->panels, first, end);
    }
}

void rnn_sum_inputs(const struct rnn_job *j)
{
    const int64_t rows = j->p.steps * j->p.batch;
    const int digits = j->host->packing == RNN_DIGITS && rnn_multiplies(&j->p, j->layer);
    const int64_t at_once = digits ? j->room.x_rows : rows;
    for (int64_t from = 0; from < rows; from += at_once) {
        const int64_t to = from + at_once < rows ? from + at_once : rows;
        if (digits)
            make_digits(j, from, to);
        sum_rows(j, from, to);
    }
}

int64_t rnn_rows_at_once(int64_t rows, int64_t depth)
{
    const int64_t blocks = AT_ONCE / BLOCK / (depth > 0 ? depth : 1);
    const int64_t most = blocks > 1 ? blocks * BLOCK : BLOCK;
    return rows < most ? rows : most;
}
