/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights by panels of RNN_LANES units: for each k the units side by side, a gate after
 * the other. Units beyond the last are zeros.
 */
#include "plugins/rnn/host.h"

int64_t rnn_panels(const struct rnn_plan *p)
{
    return (p->hidden + RNN_LANES - 1) / RNN_LANES;
}

/* Rows of RNN_LANES in each part of a panel, and in all of a line; -1: overflow. */
struct rows {
    int64_t input, recurrent, bias, peephole;
};

static struct rows rows_of(const struct rnn_plan *p, int layer)
{
    return (struct rows){
        .input = rnn_multiplies(p, layer) ? rnn_depth(p, layer) * p->gates : 0,
        .recurrent = p->hidden * p->gates,
        .bias = p->gates + 1,
        .peephole = p->op == STRATA_RNN_LSTM ? 3 : 0,
    };
}

static int64_t line_elements(const struct rnn_plan *p, int layer)
{
    const struct rows r = rows_of(p, layer);
    int64_t n = r.input + r.recurrent + r.bias + r.peephole;
    return __builtin_mul_overflow(n, rnn_panels(p) * RNN_LANES, &n) ? -1 : n;
}

struct rnn_packed rnn_packed_line(const struct rnn_plan *p, const float *packed,
                                  int layer, int direction)
{
    const int64_t step = rnn_panels(p) * RNN_LANES;
    const struct rows r = rows_of(p, layer);
    struct rnn_packed line;
    for (int i = 0; i < layer; i++)
        packed += p->directions * line_elements(p, i);
    packed += direction * line_elements(p, layer);
    line.input = packed;
    line.recurrent = line.input + r.input * step;
    line.bias = line.recurrent + r.recurrent * step;
    line.peephole = line.bias + r.bias * step;
    return line;
}

/* A matrix of G*H rows of k, as code.h has it. */
static void pack_matrix(const struct rnn_plan *p, float *to, const float *from, int64_t k)
{
    for (int64_t unit = 0; unit < p->hidden; unit++) {
        float *lane = to + unit / RNN_LANES * k * p->gates * RNN_LANES + unit % RNN_LANES;
        for (int g = 0; g < p->gates; g++) {
            const int64_t first = g / 2 * 2, width = p->gates - first > 1 ? 2 : 1;
            const float *row = from + (g * p->hidden + unit) * k;
            for (int64_t i = 0; i < k; i++)
                lane[(first * k + i * width + g % 2) * RNN_LANES] = row[i];
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

static void pack_line(const strata_node *n, const struct rnn_plan *p, float *packed,
                      int layer, int direction)
{
    const struct rnn_packed line = rnn_packed_line(p, packed, layer, direction);
    const int64_t i = layer * p->directions + direction, depth = rnn_depth(p, layer);
    const int64_t rows = p->gates * p->hidden;
    const float *first = n->weight[RNN_W].data, *upper = n->weight[RNN_U].data;
    if (rnn_multiplies(p, layer))
        pack_matrix(p, (float *)line.input,
                    layer ? upper + (i - p->directions) * rows * depth
                          : first + direction * rows * depth,
                    depth);
    pack_matrix(p, (float *)line.recurrent,
                (const float *)n->weight[RNN_R].data + i * rows * p->hidden, p->hidden);
    if (n->weight[RNN_B].rank > 0)
        pack_bias(p, (float *)line.bias,
                  (const float *)n->weight[RNN_B].data + i * 2 * rows);
    if (n->weight[RNN_P].rank > 0)
        pack_peephole(p, (float *)line.peephole,
                      (const float *)n->weight[RNN_P].data + i * 3 * p->hidden);
}

int rnn_pack(const strata_node *n, float **packed)
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
    for (int i = 0; i < p.layers; i++) {
        const int64_t line = line_elements(&p, i);
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
    *packed = memory;
    for (int layer = 0; layer < p.layers; layer++)
        for (int d = 0; d < p.directions; d++)
            pack_line(n, &p, *packed, layer, d);
    return STRATA_OK;
}
