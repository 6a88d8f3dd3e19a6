/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of a layer: rows that do a step are taken up to RNN_ROWS at a time, a panel
 * after the other, and the threads of a team have their own rows or their own panels.
 */
#include "plugins/rnn/job.h"

#include <sched.h>

#include "plugins/common/element.h"
#include "plugins/common/team/threads.h"

#define TEAM_WORK 1000000. /* multiply-adds that pay for a thread team */
#define STEP_WORK 150000.  /* of one step, that pay for a barrier */
#define NEAR (128 << 10)   /* floats of R that fit a core's cache */
#define PAUSES 200         /* before a thread that waits leaves its processor to others */

/* Step i of a panel of some rows of a direction; late: gru's second half, behind the
 * reset. */
struct turn {
    int direction, late;
    int64_t first, end; /* rows */
    int64_t panel, i;
};

/* Rows that do a step at once. Each array has their lanes side by side, and the gates of
 * sum are `apart`, which has place for the rows that a product has beside them. */
struct group {
    int n, index; /* index: of the code's sums */
    int64_t apart;
    int64_t row[RNN_ROWS], time[RNN_ROWS];
    int64_t state[RNN_ROWS]; /* place of the panel's first unit in h and c */
    int64_t z[RNN_ROWS];     /* place of the inputs' sums */
    float sum[RNN_MOST_GATES * RNN_ROWS * RNN_LANES] __attribute__((aligned(64)));
    float old[RNN_ROWS * RNN_LANES] __attribute__((aligned(64)));
    float c[RNN_ROWS * RNN_LANES] __attribute__((aligned(64)));
    float h[RNN_ROWS * RNN_LANES] __attribute__((aligned(64)));
};

/* The next rows from *at on; whether there are any. */
static int next_group(const struct rnn_job *j, const struct turn *t, int64_t *at,
                      struct group *g)
{
    const struct rnn_plan *p = &j->p;
    int n = 0;
    for (; *at < t->end && n < RNN_ROWS; ++*at) {
        const int64_t length = j->room.length[*at];
        if (length <= t->i)
            continue;
        g->row[n] = *at;
        g->time[n] = rnn_time(p, t->direction, length, t->i);
        g->state[n] = (t->direction * p->batch + *at) * j->units + t->panel * RNN_LANES;
        g->z[n] = rnn_sums_place(j, g->time[n], *at, t->direction, t->panel);
        n++;
    }
    g->n = n;
    g->index = n > 4 ? 3 : n > 2 ? 2 : n > 1;
    g->apart = (1 << g->index) * RNN_LANES;
    return n > 0;
}

/* Whether the states that a step begins with are beyond digits: who has found so was
 * before the meeting. */
static int is_beyond(const struct rnn_job *j, int64_t state, int64_t step)
{
    return __atomic_load_n(&j->room.beyond[step % 2][state], __ATOMIC_RELAXED) == step;
}

/* The next states' digits. */
static void put_digits(const struct rnn_job *j, const struct turn *t,
                       const struct group *g)
{
    float *to = j->room.h_digits[(t->i + 1) % 2];
    int64_t *beyond = j->room.beyond[(t->i + 1) % 2] + t->direction * j->p.batch;
    for (int m = 0; m < g->n; m++)
        if (!rnn_digits_of_states((uint8_t *)(to + g->state[m]), g->h + m * RNN_LANES))
            __atomic_store_n(&beyond[g->row[m]], t->i + 1, __ATOMIC_RELAXED);
}

/* Gates from `first` on go on from the inputs' sums with those of `from`, states. own:
 * gru's candidate begins with its bias, and is left to the reset. */
static void recur(const struct rnn_job *j, const struct turn *t, struct group *g,
                  const float *from, enum rnn_span span, int first, const float *own)
{
    const struct rnn_packed *line = &j->line[t->direction];
    const void *weight =
        (const char *)line->recurrent + (size_t)t->panel * line->recurrent_panel;
    struct rnn_sums s = {.gate = g->apart, .own = own};
    if (line->step[1])
        s.step = line->step[1] + t->panel * j->p.gates * RNN_LANES;
    if (line->less[1])
        s.less = line->less[1] + t->panel * j->p.gates * RNN_LANES;
    for (int m = 0; m < 1 << g->index; m++) {
        const int row = m < g->n ? m : g->n - 1;
        s.a[m] = from + g->state[row] - t->panel * RNN_LANES;
        s.start[m] = j->room.sums + g->z[row] + first * RNN_LANES;
        s.sum[m] = g->sum + first * g->apart + m * RNN_LANES;
        if (j->host->packing == RNN_DIGITS) {
            const int64_t state = t->direction * j->p.batch + g->row[row];
            const float *digits = j->room.h_digits[t->i % 2] + state * j->units;
            s.digits[m] = (const uint8_t *)digits;
            s.unit[m] = is_beyond(j, state, t->i) ? 0 : 0x1p-23f;
        }
    }
    if (j->host->packing == RNN_DIGITS)
        rnn_sum_digits(&s, g->n, j->p.hidden, weight);
    else
        j->code->sum[j->host->packing][g->index][span](&s, j->p.hidden, weight);
}

/* ---- cells ---------------------------------------------------------------------------
 */

static const float *old_states(const struct rnn_job *j, const struct turn *t)
{
    return j->room.h[t->i % 2];
}

static const float *bias_of(const struct rnn_job *j, const struct turn *t, int gate)
{
    return j->line[t->direction].bias + (t->panel * (j->p.gates + 1) + gate) * RNN_LANES;
}

static void move_lstm(const struct rnn_job *j, const struct turn *t, struct group *g)
{
    const float *peephole =
        j->r->weight[RNN_P].rank > 0
            ? j->line[t->direction].peephole + t->panel * 3 * RNN_LANES
            : NULL;
    recur(j, t, g, old_states(j, t), RNN_FOUR, 0, NULL);
    j->code->gather(g->c, j->room.c, g->state, g->n);
    j->code->lstm(&j->p.rule[t->direction], g->sum, g->apart, peephole, g->c, g->h,
                  g->n * RNN_LANES);
    j->code->scatter(j->room.c, g->state, g->c, g->n);
}

static void move_gru(const struct rnn_job *j, const struct turn *t, struct group *g)
{
    const struct rnn_rule *rule = &j->p.rule[t->direction];
    const int64_t n = g->n * RNN_LANES;
    recur(j, t, g, old_states(j, t), RNN_THREE, 0, bias_of(j, t, j->p.gates));
    j->code->gather(g->old, old_states(j, t), g->state, g->n);
    j->code->gather(g->sum + RNN_CANDIDATE * g->apart,
                    j->room.sums + RNN_CANDIDATE * RNN_LANES, g->z, g->n);
    j->code->gru_gates(rule, g->sum, g->apart, n);
    j->code->gru(rule, g->sum, g->apart, g->sum + j->p.gates * g->apart, g->old, g->h, n);
}

/* Where the candidate's product is of reset*h: what the others' panels wait for. */
static void reset_gru(const struct rnn_job *j, const struct turn *t, struct group *g)
{
    const float *reset = g->sum + RNN_RESET * g->apart;
    recur(j, t, g, old_states(j, t), RNN_FIRST_TWO, 0, NULL);
    j->code->gru_gates(&j->p.rule[t->direction], g->sum, g->apart, g->n * RNN_LANES);
    j->code->scatter(j->room.sums + RNN_UPDATE * RNN_LANES, g->z,
                     g->sum + RNN_UPDATE * g->apart, g->n);
    for (int m = 0; m < g->n; m++)
        for (int i = 0; i < RNN_LANES; i++)
            j->room.reset[g->state[m] + i] =
                reset[m * RNN_LANES + i] * old_states(j, t)[g->state[m] + i];
}

static void end_gru(const struct rnn_job *j, const struct turn *t, struct group *g)
{
    recur(j, t, g, j->room.reset, RNN_LAST, RNN_CANDIDATE, NULL);
    j->code->gather(g->old, old_states(j, t), g->state, g->n);
    j->code->gather(g->sum + RNN_UPDATE * g->apart, j->room.sums + RNN_UPDATE * RNN_LANES,
                    g->z, g->n);
    j->code->gru(&j->p.rule[t->direction], g->sum, g->apart, NULL, g->old, g->h,
                 g->n * RNN_LANES);
}

static void move_simple(const struct rnn_job *j, const struct turn *t, struct group *g)
{
    recur(j, t, g, old_states(j, t), RNN_ONE, 0, NULL);
    j->code->simple(&j->p.rule[t->direction], g->sum, g->h, g->n * RNN_LANES);
}

/* ---- a turn --------------------------------------------------------------------------
 */

/* Place of the panel's first unit in the layer's output. */
static int64_t output_place(const struct rnn_job *j, const struct turn *t, int64_t time,
                            int64_t row)
{
    const struct rnn_plan *p = &j->p;
    const int64_t unit = t->panel * RNN_LANES;
    if (j->layer + 1 == p->layers)
        return time * p->y_step + row * p->y_row + t->direction * p->y_direction + unit;
    return ((time * p->batch + row) * p->directions + t->direction) * p->hidden + unit;
}

/* h is the next state, and an output. */
static void put(const struct rnn_job *j, const struct turn *t, const struct group *g)
{
    const struct rnn_plan *p = &j->p;
    const strata_tensor *y = &j->r->out[RNN_Y];
    const int64_t left = p->hidden - t->panel * RNN_LANES;
    const int64_t n = left < RNN_LANES ? left : RNN_LANES;
    const int last = j->layer + 1 == p->layers;
    const int32_t dtype = last ? y->dtype : STRATA_FP32;
    void *to = last ? y->data : j->room.between[j->layer % 2];
    int64_t place[RNN_ROWS];
    for (int m = 0; m < g->n; m++)
        place[m] = output_place(j, t, g->time[m], g->row[m]);
    j->code->scatter(j->room.h[(t->i + 1) % 2], g->state, g->h, g->n);
    if (j->host->packing == RNN_DIGITS)
        put_digits(j, t, g);
    if (dtype == STRATA_FP32 && n == RNN_LANES)
        j->code->scatter(to, place, g->h, g->n);
    else
        for (int m = 0; m < g->n; m++)
            element_store_row(to, dtype, place[m], 1, g->h + m * RNN_LANES, n);
}

static int halves_of(const struct rnn_plan *p)
{
    return p->op == STRATA_RNN_GRU && !p->reset_after ? 2 : 1;
}

static void move(const struct rnn_job *j, const struct turn *t)
{
    const struct rnn_plan *p = &j->p;
    struct group g;
    for (int64_t at = t->first; next_group(j, t, &at, &g);) {
        if (halves_of(p) == 2 && !t->late) {
            reset_gru(j, t, &g);
            continue;
        }
        (t->late                    ? end_gru
         : p->op == STRATA_RNN_LSTM ? move_lstm
         : p->op == STRATA_RNN_GRU  ? move_gru
                                    : move_simple)(j, t, &g);
        put(j, t, &g);
    }
}

/* ---- teams ---------------------------------------------------------------------------
 */

/* The k-th of [first, last), from the last on in every second step: what a cache still
 * has of R then comes first. */
static int64_t in_turns(const struct turn *t, int64_t first, int64_t last, int64_t k)
{
    return (t->i + t->late) % 2 ? first + last - 1 - k : k;
}

/* Rows know nothing of each other: each thread has its own, for all steps. */
static void walk_rows(const struct rnn_job *j, int64_t steps, int64_t team, int64_t self)
{
    const struct rnn_plan *p = &j->p;
    const int64_t wanted = team / p->directions, most = p->batch;
    const int64_t parts = wanted < 1 ? 1 : wanted < most ? wanted : most;
    for (int64_t task = self; task < p->directions * parts; task += team) {
        const int64_t part = task % parts;
        struct turn t = {.direction = (int)(task / parts),
                         .first = p->batch * part / parts,
                         .end = p->batch * (part + 1) / parts};
        for (t.i = 0; t.i < steps; t.i++)
            for (t.late = 0; t.late < halves_of(p); t.late++)
                for (int64_t k = 0; k < j->panels; k++) {
                    t.panel = in_turns(&t, 0, j->panels, k);
                    move(j, &t);
                }
    }
}

/* Where the threads of a team wait for each other: how often one of them came. libgomp's
 * barrier wakes sleepers by a system call whether there are any or not, and where a
 * thread has lost its processor the others spin for milliseconds. */
struct meeting {
    int64_t come __attribute__((aligned(64)));
};

static void meet(struct meeting *m, int64_t all)
{
    __atomic_add_fetch(&m->come, 1, __ATOMIC_ACQ_REL);
    for (int i = 0; __atomic_load_n(&m->come, __ATOMIC_ACQUIRE) < all; i++) {
        if (i >= PAUSES)
            sched_yield();
#ifdef ELEMENT_X86
        else
            __builtin_ia32_pause();
#endif
    }
}

/* Each thread has its own panels, and waits for the others' at each step. */
static void walk_panels(const struct rnn_job *j, struct meeting *m, int64_t steps,
                        int64_t team, int64_t self)
{
    const struct rnn_plan *p = &j->p;
    const int64_t tasks = p->directions * j->panels;
    const int64_t first = tasks * self / team, last = tasks * (self + 1) / team;
    struct turn t = {.end = p->batch};
    int64_t met = 0;
    for (t.i = 0; t.i < steps; t.i++)
        for (t.late = 0; t.late < halves_of(p); t.late++) {
            for (int64_t k = first; k < last; k++) {
                const int64_t task = in_turns(&t, first, last, k);
                t.direction = (int)(task / j->panels);
                t.panel = task % j->panels;
                move(j, &t);
            }
            meet(m, ++met * team);
        }
}

void rnn_walk_steps(const struct rnn_job *j)
{
    const struct rnn_plan *p = &j->p;
    const double work = rnn_step_work(j, p->hidden);
    const int near = j->units * p->gates * p->hidden <= NEAR;
    const int apart = near && p->directions * p->batch > 1;
    struct meeting m = {0};
    int64_t longest = 0;
    for (int64_t b = 0; b < p->batch; b++)
        longest = j->room.length[b] > longest ? j->room.length[b] : longest;
    const int shared = apart ? work * (double)longest > TEAM_WORK
                             : work > STEP_WORK && p->directions * j->panels > 1;
#pragma omp parallel if (shared)
    {
        const int64_t team = team_size(), self = team_self();
        if (apart)
            walk_rows(j, longest, team, self);
        else
            walk_panels(j, &m, longest, team, self);
    }
}
