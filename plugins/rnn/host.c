/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers one after another. FP16 and BF16 are widened: sums and states are FP32.
 */
#include "plugins/rnn/job.h"

#include "plugins/common/element.h"

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
                      struct rnn_room *room)
{
    const int64_t units = rnn_panels(p) * RNN_LANES, rows = p->steps * p->batch;
    const int64_t states = p->directions * p->batch;
    size_t used = 0;
    const int has_digits = rnn_may_have_digits(p) && rnn_has_digits();
    const int64_t deepest = rnn_whole_lanes(
        p->layers > 1 && p->directions * p->hidden > p->inputs ? p->directions * p->hidden
                                                               : p->inputs);
    float *length, *beyond[2];
    room->x_rows = has_digits ? rnn_rows_at_once(rows, deepest) : 0;
    if (!take(&used, rows, dtype == STRATA_FP32 ? 0 : p->inputs, base, &room->x) ||
        !take(&used, rows, p->directions * units * p->gates, base, &room->sums) ||
        !take(&used, states, units, base, &room->h[0]) ||
        !take(&used, states, units, base, &room->h[1]) ||
        !take(&used, states, units, base, &room->c) ||
        !take(&used, states, units, base, &room->reset) ||
        !take(&used, p->batch, 2, base, &length) ||
        !take(&used, room->x_rows, deepest, base, &room->x_digits) ||
        !take(&used, room->x_rows, 1, base, &room->x_unit) ||
        !take(&used, has_digits ? states : 0, units, base, &room->h_digits[0]) ||
        !take(&used, has_digits ? states : 0, units, base, &room->h_digits[1]) ||
        !take(&used, has_digits ? states : 0, 2, base, &beyond[0]) ||
        !take(&used, has_digits ? states : 0, 2, base, &beyond[1]))
        return SIZE_MAX;
    for (int i = 0; i < 2; i++)
        if (!take(&used, rows, p->layers > 1 + i ? p->directions * p->hidden : 0, base,
                  &room->between[i]))
            return SIZE_MAX;
    room->length = (int64_t *)(void *)length;
    for (int i = 0; i < 2; i++)
        room->beyond[i] = (int64_t *)(void *)beyond[i];
    return used;
}

size_t rnn_host_workspace(const strata_node *n)
{
    const struct rnn_plan p = rnn_plan_of(n->params, n->in, n->weight);
    struct rnn_room room;
    return furnish(&p, n->in[RNN_X].dtype, NULL, &room);
}

int rnn_host_setup(const strata_node *n, void *state)
{
    return rnn_pack(n, state);
}

/* ---- layers --------------------------------------------------------------------------
 */

/* First states; zeros in the units beyond the last. */
static void begin(const struct rnn_job *j, float *to, int input)
{
    const struct rnn_plan *p = &j->p;
    const void *given = rnn_input(j->r->n_in, j->r->in, input);
    const int64_t lines = p->directions * p->batch, first = j->layer * lines;
    memset(to, 0, (size_t)(lines * j->units) * sizeof *to);
    for (int64_t i = 0; i < lines && given; i++)
        element_load_row(to + i * j->units, given, j->r->in[input].dtype,
                         (first + i) * p->hidden, 1, p->hidden);
}

/* Digits of the first states. */
static void begin_digits(const struct rnn_job *j)
{
    const int64_t lines = j->p.directions * j->p.batch;
    for (int64_t i = 0; i < lines && j->host->packing == RNN_DIGITS; i++) {
        j->room.beyond[0][i] = j->room.beyond[1][i] = -1;
        for (int64_t at = i * j->units; at < (i + 1) * j->units; at += RNN_LANES)
            if (!rnn_digits_of_states((uint8_t *)(j->room.h_digits[0] + at),
                                      j->room.h[0] + at))
                j->room.beyond[0][i] = 0;
    }
}

static void end(const struct rnn_job *j)
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
static void clear(const struct rnn_job *j)
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

static void take_input(struct rnn_job *j)
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
    struct rnn_job j = {.r = r,
                        .p = rnn_plan_of(r->params, r->in, r->weight),
                        .code = rnn_code_choose(),
                        .host = r->state};
    const struct rnn_plan *p = &j.p;
    const int32_t *lengths = rnn_input(r->n_in, r->in, RNN_LENGTHS);
    furnish(p, r->in[RNN_X].dtype, r->workspace, &j.room);
    j.panels = rnn_panels(p);
    j.units = j.panels * RNN_LANES;
    for (int64_t b = 0; b < p->batch; b++)
        j.room.length[b] = rnn_length(p, lengths, b);
    for (j.layer = 0; j.layer < p->layers; j.layer++) {
        for (int d = 0; d < p->directions; d++)
            j.line[d] = rnn_packed_line(p, j.host, j.layer, d);
        take_input(&j);
        clear(&j);
        rnn_sum_inputs(&j);
        begin(&j, j.room.h[0], RNN_H0);
        begin(&j, j.room.c, RNN_C0);
        memcpy(j.room.h[1], j.room.h[0],
               (size_t)(p->directions * p->batch * j.units) * sizeof(float));
        begin_digits(&j);
        rnn_walk_steps(&j);
        end(&j);
    }
    return STRATA_OK;
}
