/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers one after another. FP16 and BF16 are widened: sums and states are FP32.
 */
#include "plugins/rnn/host.h"

#include <omp.h>

#include "plugins/common/element.h"

#define TEAM_WORK 1000000. /* multiply-adds that pay for a thread team */
#define STEP_WORK 200000.  /* of one step, that pay for a barrier */
#define BLOCK 64           /* rows of the input product to a task */
#define NEAR (128 << 10)   /* floats of R that fit a core's cache */

/* Rows of the workspace, in floats. */
struct room {
    float *x;          /* T x B x I, where the input is not FP32 */
    float *sums;       /* T x B x D x panels x gates x lanes: of the inputs, and biases */
    float *between[2]; /* T x B x D*H: outputs of layers, in turns */
    float *h[2], *c, *reset; /* D x B x units; h in turns of steps */
    int64_t *length;         /* B */
};

struct job {
    const strata_run *r;
    struct rnn_plan p;
    const struct rnn_code *code;
    const float *packed;
    struct room room;
    int64_t panels, units, sums; /* units: with those of whole panels; sums: of a row */
    /* Of the layer at hand. */
    int layer;
    struct rnn_packed line[2];
    const float *x;
    int64_t x_step, x_row, depth;
};

/* ---- workspace -----------------------------------------------------------------------
 */

/* n rows of `width` floats from *used on, in whole cache lines; false: overflow. */
static int take(size_t *used, int64_t n, int64_t width, char *base, float **at)
{
    int64_t bytes;
    if (__builtin_mul_overflow(n, width, &bytes) ||
        __builtin_mul_overflow(bytes, (int64_t)sizeof(float), &bytes) ||
        __builtin_add_overflow(bytes, (int64_t)63, &bytes))
        return 0;
    *at = base ? (float *)(base + *used) : NULL;
    return !__builtin_add_overflow(*used, (size_t)bytes & ~(size_t)63, used);
}

/* Bytes; SIZE_MAX: overflow. */
static size_t furnish(const struct rnn_plan *p, int32_t dtype, char *base,
                      struct room *room)
{
    const int64_t units = rnn_panels(p) * RNN_LANES, rows = p->steps * p->batch;
    const int64_t states = p->directions * p->batch;
    size_t used = 0;
    float *length;
    if (!take(&used, rows, dtype == STRATA_FP32 ? 0 : p->inputs, base, &room->x) ||
        !take(&used, rows, p->directions * units * p->gates, base, &room->sums) ||
        !take(&used, states, units, base, &room->h[0]) ||
        !take(&used, states, units, base, &room->h[1]) ||
        !take(&used, states, units, base, &room->c) ||
        !take(&used, states, units, base, &room->reset) ||
        !take(&used, p->batch, 2, base, &length))
        return SIZE_MAX;
    for (int i = 0; i < 2; i++)
        if (!take(&used, rows, p->layers > 1 + i ? p->directions * p->hidden : 0, base,
                  &room->between[i]))
            return SIZE_MAX;
    room->length = (int64_t *)(void *)length;
    return used;
}

size_t rnn_host_workspace(const strata_node *n)
{
    const struct rnn_plan p = rnn_plan_of(n->params, n->in, n->weight);
    struct room room;
    return furnish(&p, n->in[RNN_X].dtype, NULL, &room);
}

int rnn_host_setup(const strata_node *n, void *state)
{
    return rnn_pack(n, &((struct rnn_host *)state)->packed);
}

/* ---- the input products --------------------------------------------------------------
 */

/* Rows of a from `at` on: how many, and which of the code's sums takes them. */
static int portion(int64_t left, int *index)
{
    *index = left >= 8 ? 3 : left >= 4 ? 2 : left >= 2;
    return 1 << *index;
}

static float *sums_at(const struct job *j, int64_t row, int direction, int64_t panel)
{
    const int64_t each = j->p.gates * RNN_LANES;
    return j->room.sums + row * j->sums + (direction * j->panels + panel) * each;
}

static const float *input_row(const struct job *j, int64_t row)
{
    return j->x + row / j->p.batch * j->x_step + row % j->p.batch * j->x_row;
}

static void multiply(const struct job *j, int direction, int64_t panel, int64_t from,
                     int64_t to)
{
    static const int spans[] = {0, RNN_ONE, 0, RNN_THREE, RNN_FOUR};
    const int64_t each = j->p.gates * RNN_LANES;
    const struct rnn_packed *line = &j->line[direction];
    const float *bias = line->bias + panel * (j->p.gates + 1) * RNN_LANES;
    float sum[RNN_ROWS * RNN_MOST_GATES * RNN_LANES] __attribute__((aligned(64)));
    for (int64_t row = from; row < to;) {
        const float *a[RNN_ROWS];
        int index;
        const int rows = portion(to - row, &index);
        for (int m = 0; m < rows; m++)
            a[m] = input_row(j, row + m);
        j->code->sum[index][spans[j->p.gates]](sum, a, j->depth,
                                               line->input + panel * j->depth * each);
        for (int m = 0; m < rows; m++, row++)
            for (int64_t i = 0; i < each; i++)
                sums_at(j, row, direction, panel)[i] = sum[m * each + i] + bias[i];
    }
}

/* Every gate has the input as it is. */
static void skip(const struct job *j, int direction, int64_t panel, int64_t from,
                 int64_t to)
{
    const float *bias = j->line[direction].bias + panel * (j->p.gates + 1) * RNN_LANES;
    for (int64_t row = from; row < to; row++) {
        const float *x = input_row(j, row) + panel * RNN_LANES;
        const int64_t left = j->p.hidden - panel * RNN_LANES;
        float *sum = sums_at(j, row, direction, panel);
        for (int64_t i = 0; i < j->p.gates * RNN_LANES; i++)
            sum[i] = bias[i] + (i % RNN_LANES < left ? x[i % RNN_LANES] : 0);
    }
}

static void sum_inputs(const struct job *j)
{
    const struct rnn_plan *p = &j->p;
    const int64_t rows = p->steps * p->batch, blocks = (rows + BLOCK - 1) / BLOCK;
    const int64_t tasks = p->directions * j->panels * blocks;
    const int multiplies = rnn_multiplies(p, j->layer);
    const double work = (double)rows * (double)j->sums * (double)j->depth;
#pragma omp parallel for schedule(static) if (work > TEAM_WORK)
    for (int64_t i = 0; i < tasks; i++) {
        const int64_t from = i % blocks * BLOCK;
        const int64_t to = from + BLOCK < rows ? from + BLOCK : rows;
        const int direction = (int)(i / blocks / j->panels);
        (multiplies ? multiply : skip)(j, direction, i / blocks % j->panels, from, to);
    }
}

/* ---- steps ---------------------------------------------------------------------------
 */

/* Rows that do step i, up to RNN_ROWS from *row on. */
static int next_rows(const struct job *j, int64_t i, int64_t *row, int64_t end,
                     int64_t *found)
{
    int n = 0;
    for (; *row < end && n < RNN_ROWS; ++*row)
        if (j->room.length[*row] > i)
            found[n++] = *row;
    return n;
}

static int64_t state_at(const struct job *j, int direction, int64_t row)
{
    return (direction * j->p.batch + row) * j->units;
}

/* sum = a panel's recurrent sums of some rows of `from`. */
static void recur(const struct job *j, int direction, int64_t panel, const float *from,
                  const int64_t *row, int n, enum rnn_span span, int gates, float *sum)
{
    const float *weight =
        j->line[direction].recurrent + panel * j->p.hidden * j->p.gates * RNN_LANES;
    for (int m = 0; m < n;) {
        const float *a[RNN_ROWS];
        int index;
        const int rows = portion(n - m, &index);
        for (int k = 0; k < rows; k++)
            a[k] = from + state_at(j, direction, row[m + k]);
        j->code->sum[index][span](sum + m * gates * RNN_LANES, a, j->p.hidden, weight);
        m += rows;
    }
}

static void put(const struct job *j, int direction, int64_t t, int64_t row, int64_t panel,
                const float *h)
{
    const struct rnn_plan *p = &j->p;
    const strata_tensor *y = &j->r->out[RNN_Y];
    const int64_t unit = panel * RNN_LANES, left = p->hidden - unit;
    const int64_t n = left < RNN_LANES ? left : RNN_LANES;
    if (j->layer + 1 < p->layers)
        memcpy(j->room.between[j->layer % 2] +
                   ((t * p->batch + row) * p->directions + direction) * p->hidden + unit,
               h, (size_t)n * sizeof *h);
    else
        element_store_row(
            y->data, y->dtype,
            t * p->y_step + row * p->y_row + direction * p->y_direction + unit, 1, h, n);
}

static void add(float *to, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += x[i];
}

/* Some rows of a direction. */
struct rows {
    int direction;
    int64_t first, end;
};

/* Step i of a panel of some rows; late: gru's second half, behind the reset. */
struct turn {
    const struct rows *rows;
    int64_t panel, i;
    int late;
};

/* gru's first half: the candidate's product is of reset*h. */
static void begin_gru(const struct job *j, const struct rnn_rule *rule, float *z,
                      const float *s, const float *old, float *reset)
{
    add(z, s, 2 * RNN_LANES);
    j->code->gru_gates(rule, z);
    for (int k = 0; k < RNN_LANES; k++)
        reset[k] = z[RNN_RESET * RNN_LANES + k] * old[k];
}

/* h from the sums z, of the input, and s, recurrent. */
static void end_cell(const struct job *j, const struct turn *t, float *z, float *s,
                     const float *old, float *c, float *h)
{
    const struct rnn_plan *p = &j->p;
    const struct rnn_rule *rule = &p->rule[t->rows->direction];
    const struct rnn_packed *line = &j->line[t->rows->direction];
    if (t->late) {
        add(z + RNN_CANDIDATE * RNN_LANES, s, RNN_LANES);
        j->code->gru(rule, z, NULL, old, h);
    } else if (p->op == STRATA_RNN_GRU) {
        float *after = s + RNN_CANDIDATE * RNN_LANES;
        add(z, s, 2 * RNN_LANES);
        add(after, line->bias + (t->panel * (p->gates + 1) + p->gates) * RNN_LANES,
            RNN_LANES);
        j->code->gru_gates(rule, z);
        j->code->gru(rule, z, after, old, h);
    } else {
        add(z, s, p->gates * RNN_LANES);
        if (p->op == STRATA_RNN_LSTM)
            j->code->lstm(rule, z,
                          j->r->weight[RNN_P].rank > 0
                              ? line->peephole + t->panel * 3 * RNN_LANES
                              : NULL,
                          c, h);
        else
            j->code->simple(rule, z, h);
    }
}

static void move(const struct job *j, const struct turn *t)
{
    const struct rnn_plan *p = &j->p;
    const int direction = t->rows->direction;
    const int before = p->op == STRATA_RNN_GRU && !p->reset_after;
    const enum rnn_span span = t->late         ? RNN_LAST
                               : before        ? RNN_FIRST_TWO
                               : p->gates == 4 ? RNN_FOUR
                               : p->gates == 3 ? RNN_THREE
                                               : RNN_ONE;
    const int gates = t->late ? 1 : before ? 2 : p->gates;
    const float *old = j->room.h[t->i % 2];
    float *next = j->room.h[(t->i + 1) % 2];
    float sum[RNN_ROWS * RNN_MOST_GATES * RNN_LANES] __attribute__((aligned(64)));
    int64_t row[RNN_ROWS], at = t->rows->first;
    for (int n; (n = next_rows(j, t->i, &at, t->rows->end, row)) > 0;) {
        recur(j, direction, t->panel, t->late ? j->room.reset : old, row, n, span, gates,
              sum);
        for (int m = 0; m < n; m++) {
            const int64_t time = rnn_time(p, direction, j->room.length[row[m]], t->i);
            const int64_t state = state_at(j, direction, row[m]) + t->panel * RNN_LANES;
            float *s = sum + m * gates * RNN_LANES;
            float *z = sums_at(j, time * p->batch + row[m], direction, t->panel);
            if (before && !t->late) {
                begin_gru(j, &p->rule[direction], z, s, old + state,
                          j->room.reset + state);
                continue;
            }
            end_cell(j, t, z, s, old + state, j->room.c + state, next + state);
            put(j, direction, time, row[m], t->panel, next + state);
        }
    }
}

static int halves_of(const struct rnn_plan *p)
{
    return p->op == STRATA_RNN_GRU && !p->reset_after ? 2 : 1;
}

/* Rows know nothing of each other: each thread has its own, for all steps. */
static void walk_rows(const struct job *j, int64_t steps, int64_t team, int64_t self)
{
    const struct rnn_plan *p = &j->p;
    const int64_t wanted = team / p->directions, most = p->batch;
    const int64_t parts = wanted < 1 ? 1 : wanted < most ? wanted : most;
    for (int64_t task = self; task < p->directions * parts; task += team) {
        const int64_t part = task % parts;
        const struct rows rows = {(int)(task / parts), p->batch * part / parts,
                                  p->batch * (part + 1) / parts};
        for (int64_t i = 0; i < steps; i++)
            for (int late = 0; late < halves_of(p); late++)
                for (int64_t panel = 0; panel < j->panels; panel++)
                    move(j, &(struct turn){&rows, panel, i, late});
    }
}

/* Each thread has its own panels, and waits for the others' at each step. */
static void walk_panels(const struct job *j, int64_t steps, int64_t team, int64_t self)
{
    const struct rnn_plan *p = &j->p;
    const int64_t tasks = p->directions * j->panels;
    const int64_t first = tasks * self / team, last = tasks * (self + 1) / team;
    for (int64_t i = 0; i < steps; i++)
        for (int late = 0; late < halves_of(p); late++) {
            for (int64_t task = first; task < last; task++) {
                const struct rows rows = {(int)(task / j->panels), 0, p->batch};
                move(j, &(struct turn){&rows, task % j->panels, i, late});
            }
            if (team > 1) {
#pragma omp barrier
            }
        }
}

static void walk_steps(const struct job *j)
{
    const struct rnn_plan *p = &j->p;
    const double work = (double)j->sums * (double)p->hidden * (double)p->batch;
    const int near = j->units * p->gates * p->hidden <= NEAR;
    const int apart = near && p->directions * p->batch > 1;
    int64_t longest = 0;
    for (int64_t b = 0; b < p->batch; b++)
        longest = j->room.length[b] > longest ? j->room.length[b] : longest;
    const int shared = apart ? work * (double)longest > TEAM_WORK
                             : work > STEP_WORK && p->directions * j->panels > 1;
#pragma omp parallel if (shared)
    (apart ? walk_rows : walk_panels)(j, longest, omp_get_num_threads(),
                                      omp_get_thread_num());
}

/* ---- layers --------------------------------------------------------------------------
 */

/* First states; zeros in the units beyond the last. */
static void begin(const struct job *j, float *to, int input)
{
    const struct rnn_plan *p = &j->p;
    const void *given = rnn_input(j->r->n_in, j->r->in, input);
    const int64_t lines = p->directions * p->batch, first = j->layer * lines;
    memset(to, 0, (size_t)(lines * j->units) * sizeof *to);
    for (int64_t i = 0; i < lines && given; i++)
        element_load_row(to + i * j->units, given, j->r->in[input].dtype,
                         (first + i) * p->hidden, 1, p->hidden);
}

static void end(const struct job *j)
{
    const struct rnn_plan *p = &j->p;
    const int64_t lines = p->directions * p->batch, first = j->layer * lines;
    for (int64_t i = 0; i < lines; i++) {
        const float *h = j->room.h[j->room.length[i % p->batch] % 2];
        for (int out = RNN_HN; out < j->r->n_out; out++)
            element_store_row(j->r->out[out].data, j->r->out[out].dtype,
                              (first + i) * p->hidden, 1,
                              (out == RNN_HN ? h : j->room.c) + i * j->units, p->hidden);
    }
}

/* y is 0 behind a sequence's end. */
static void clear(const struct job *j)
{
    const strata_tensor *y = &j->r->out[RNN_Y];
    const struct rnn_plan *p = &j->p;
    if (!rnn_input(j->r->n_in, j->r->in, RNN_LENGTHS))
        return;
    if (j->layer + 1 == p->layers)
        memset(y->data, 0,
               (size_t)y->count * (y->dtype == STRATA_FP32 ? sizeof(float) : 2));
    else
        memset(j->room.between[j->layer % 2], 0,
               (size_t)(p->steps * p->batch * p->directions * p->hidden) * sizeof(float));
}

static void take_input(struct job *j)
{
    const strata_tensor *x = &j->r->in[RNN_X];
    const struct rnn_plan *p = &j->p;
    const int64_t rows = p->steps * p->batch, wide = p->directions * p->hidden;
    j->x = x->data;
    j->x_step = p->x_step;
    j->x_row = p->x_row;
    j->depth = rnn_depth(p, j->layer);
    if (j->layer > 0) {
        j->x = j->room.between[(j->layer - 1) % 2];
        j->x_step = p->batch * wide;
        j->x_row = wide;
    } else if (x->dtype != STRATA_FP32) {
#pragma omp parallel for schedule(static) if (x->count > 65536)
        for (int64_t row = 0; row < rows; row++)
            element_load_row(j->room.x + row * p->inputs, x->data, x->dtype,
                             row * p->inputs, 1, p->inputs);
        j->x = j->room.x;
    }
}

int rnn_host_run(const strata_run *r)
{
    const struct rnn_host *state = r->state;
    struct job j = {.r = r,
                    .p = rnn_plan_of(r->params, r->in, r->weight),
                    .code = rnn_code_choose(),
                    .packed = state->packed};
    const struct rnn_plan *p = &j.p;
    const int32_t *lengths = rnn_input(r->n_in, r->in, RNN_LENGTHS);
    furnish(p, r->in[RNN_X].dtype, r->workspace, &j.room);
    j.panels = rnn_panels(p);
    j.units = j.panels * RNN_LANES;
    j.sums = p->directions * p->gates * j.units;
    for (int64_t b = 0; b < p->batch; b++)
        j.room.length[b] = rnn_length(p, lengths, b);
    for (j.layer = 0; j.layer < p->layers; j.layer++) {
        for (int d = 0; d < p->directions; d++)
            j.line[d] = rnn_packed_line(p, j.packed, j.layer, d);
        take_input(&j);
        clear(&j);
        sum_inputs(&j);
        begin(&j, j.room.h[0], RNN_H0);
        begin(&j, j.room.c, RNN_C0);
        memcpy(j.room.h[1], j.room.h[0],
               (size_t)(p->directions * p->batch * j.units) * sizeof(float));
        walk_steps(&j);
        end(&j);
    }
    return STRATA_OK;
}
