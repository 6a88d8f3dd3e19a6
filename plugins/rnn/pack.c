/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights by panels of RNN_LANES units: for each k the units side by side, a gate after
 * the other. Units beyond the last are zeros. Matrices are floats, or bytes with the step
 * that each unit's gate counts in; with digits, for each four k the units side by side,
 * of each the four, and gate after gate.
 */
#include "plugins/rnn/host.h"

int64_t rnn_panels(const struct rnn_plan *p)
{
    return (p->hidden + RNN_LANES - 1) / RNN_LANES;
}

/* Rows of RNN_LANES floats in each part of a panel, and in all of a line; -1: overflow.
 */
struct rows {
    int64_t input, recurrent, bias, peephole, step, less;
};

/* Of a matrix of so many columns. */
static int64_t matrix_rows(const struct rnn_plan *p, enum rnn_packing packing, int64_t k)
{
    return packing == RNN_FLOATS  ? k * p->gates
           : packing == RNN_BYTES ? (k * p->gates + 3) / 4
                                  : (k + 3) / 4 * p->gates;
}

static struct rows rows_of(const struct rnn_plan *p, enum rnn_packing packing, int layer)
{
    const int64_t input = rnn_multiplies(p, layer) ? rnn_depth(p, layer) : 0;
    return (struct rows){
        .input = matrix_rows(p, packing, input),
        .recurrent = matrix_rows(p, packing, p->hidden),
        .bias = p->gates + 1,
        .peephole = p->op == STRATA_RNN_LSTM ? 3 : 0,
        .step = packing != RNN_FLOATS ? p->gates : 0,
        .less = packing == RNN_DIGITS ? p->gates : 0,
    };
}

static int64_t line_elements(const struct rnn_plan *p, enum rnn_packing packing,
                             int layer)
{
    const struct rows r = rows_of(p, packing, layer);
    int64_t n = r.input + r.recurrent + r.bias + r.peephole + 2 * (r.step + r.less);
    return __builtin_mul_overflow(n, rnn_panels(p) * RNN_LANES, &n) ? -1 : n;
}

struct rnn_packed rnn_packed_line(const struct rnn_plan *p, const struct rnn_host *host,
                                  int layer, int direction)
{
    const int64_t panels = rnn_panels(p) * RNN_LANES;
    const struct rows r = rows_of(p, host->packing, layer);
    const float *at = host->packed;
    struct rnn_packed line;
    for (int i = 0; i < layer; i++)
        at += p->directions * line_elements(p, host->packing, i);
    at += direction * line_elements(p, host->packing, layer);
    line.input = at;
    line.recurrent = at += r.input * panels;
    line.bias = at += r.recurrent * panels;
    line.peephole = at += r.bias * panels;
    at += r.peephole * panels;
    line.input_panel = (size_t)(r.input * RNN_LANES) * sizeof *at;
    line.recurrent_panel = (size_t)(r.recurrent * RNN_LANES) * sizeof *at;
    for (int i = 0; i < 2; i++, at += r.step * panels)
        line.step[i] = r.step ? at : NULL;
    for (int i = 0; i < 2; i++, at += r.less * panels)
        line.less[i] = r.less ? (const int32_t *)(const void *)at : NULL;
    return line;
}

/* Where a panel's lane of a gate is at k = i. */
static int64_t place_of(const struct rnn_plan *p, int64_t k, int g, int64_t i)
{
    const int64_t first = g / 2 * 2, width = p->gates - first > 1 ? 2 : 1;
    return (first * k + i * width + g % 2) * RNN_LANES;
}

/* A matrix and what it counts, as in struct rnn_packed. */
struct matrix {
    void *to;
    size_t panel;
    float *step;
    int32_t *less;
};

static struct matrix matrix_of(const struct rnn_packed *line, int recurrent)
{
    return (struct matrix){(void *)(recurrent ? line->recurrent : line->input),
                           recurrent ? line->recurrent_panel : line->input_panel,
                           (float *)line->step[recurrent],
                           (int32_t *)line->less[recurrent]};
}

/* A row of k for a lane of one gate in floats, or of a step. */
static void pack_row(const struct rnn_plan *p, void *lane, const float *row, int64_t k,
                     int g, const float *step)
{
    for (int64_t i = 0; i < k; i++)
        if (step)
            ((int8_t *)lane)[place_of(p, k, g, i)] = rnn_count(row[i], *step);
        else
            ((float *)lane)[place_of(p, k, g, i)] = row[i];
}

/* The same for digits, in fours. */
static void pack_fours(const struct rnn_plan *p, int8_t *lane, const float *row,
                       int64_t k, int g, float step, int32_t *less)
{
    for (int64_t i = 0; i < k; i++) {
        const int8_t n = rnn_count(row[i], step);
        lane[((i / 4 * p->gates + g) * RNN_LANES) * 4 + i % 4] = n;
        *less -= 128 * n;
    }
}

/* G*H rows of k, in panels. */
static void pack_matrix(const struct rnn_plan *p, const struct matrix *m,
                        const float *from, int64_t k)
{
    const size_t size = m->step && !m->less ? sizeof(int8_t) : sizeof(float);
    float likely = 0;
    for (int64_t unit = 0; unit < p->hidden; unit++) {
        const int64_t at = unit / RNN_LANES, lane = unit % RNN_LANES;
        char *first = (char *)m->to + (size_t)at * m->panel + (size_t)lane * size;
        for (int g = 0; g < p->gates; g++) {
            const float *row = from + (g * p->hidden + unit) * k;
            const int64_t column = (at * p->gates + g) * RNN_LANES + lane;
            float *own = m->step ? m->step + column : NULL;
            if (own)
                *own = rnn_find_step(row, k, likely);
            if (own && *own > 0)
                likely = *own;
            if (m->less)
                pack_fours(p, (int8_t *)first, row, k, g, *own, m->less + column);
            else
                pack_row(p, first, row, k, g, own);
        }
    }
}

static void pack_bias(const struct rnn_plan *p, float *to, const float *from)
{
    const int64_t rows = p->gates * p->hidden;
    for (int64_t unit = 0; unit < p->hidden; unit++) {
        float *lane =
            to + unit / RNN_LANES * (p->gates + 1) * RNN_LANES + unit % RNN_LANES;
        for (int g = 0; g < p->gates; g++) {
            const int apart =
                p->op == STRATA_RNN_GRU && g == RNN_CANDIDATE && p->reset_after;
            const float *b = from + g * p->hidden + unit;
            lane[g * RNN_LANES] = apart ? b[0] : b[0] + b[rows];
            if (apart)
                lane[p->gates * RNN_LANES] = b[rows];
        }
    }
}

static void pack_peephole(const struct rnn_plan *p, float *to, const float *from)
{
    for (int64_t unit = 0; unit < p->hidden; unit++)
        for (int i = 0; i < 3; i++)
            to[(unit / RNN_LANES * 3 + i) * RNN_LANES + unit % RNN_LANES] =
                from[i * p->hidden + unit];
}

static void pack_line(const strata_node *n, const struct rnn_plan *p,
                      const struct rnn_host *host, int layer, int direction)
{
    const struct rnn_packed line = rnn_packed_line(p, host, layer, direction);
    const int64_t i = layer * p->directions + direction, depth = rnn_depth(p, layer);
    const int64_t rows = p->gates * p->hidden;
    const struct matrix input = matrix_of(&line, 0), recurrent = matrix_of(&line, 1);
    const float *first = n->weight[RNN_W].data, *upper = n->weight[RNN_U].data;
    if (rnn_multiplies(p, layer))
        pack_matrix(p, &input,
                    layer ? upper + (i - p->directions) * rows * depth
                          : first + direction * rows * depth,
                    depth);
    pack_matrix(p, &recurrent,
                (const float *)n->weight[RNN_R].data + i * rows * p->hidden, p->hidden);
    if (n->weight[RNN_B].rank > 0)
        pack_bias(p, (float *)line.bias,
                  (const float *)n->weight[RNN_B].data + i * 2 * rows);
    if (n->weight[RNN_P].rank > 0)
        pack_peephole(p, (float *)line.peephole,
                      (const float *)n->weight[RNN_P].data + i * 3 * p->hidden);
}

int rnn_pack(const strata_node *n, struct rnn_host *host)
{
    const struct rnn_plan p = rnn_plan_of(n->params, n->in, n->weight);
    const strata_pack *pack =
        n->host->extension ? n->host->extension(STRATA_PACK_V1) : NULL;
    int64_t elements = 0;
    size_t bytes;
    void *memory;
    int status;
    if (!pack)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1 ", for packed weights");
    host->packing = rnn_packing_of(n, &p);
    for (int i = 0; i < p.layers; i++) {
        const int64_t line = line_elements(&p, host->packing, i);
        if (line < 0 || __builtin_add_overflow(elements, p.directions * line, &elements))
            return STRATA_FAIL(n, STRATA_EOVERFLOW, "weights of %lld units",
                               (long long)p.hidden);
    }
    if (__builtin_mul_overflow((size_t)elements, sizeof(float), &bytes))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "weights of %lld units",
                           (long long)p.hidden);
    if ((status = pack->alloc(n, bytes, &memory)))
        return status;
    memset(memory, 0, bytes);
    host->packed = memory;
    for (int layer = 0; layer < p.layers; layer++)
        for (int d = 0; d < p.directions; d++)
            pack_line(n, &p, host, layer, d);
    return STRATA_OK;
}
