/* SPDX-License-Identifier: Apache-2.0
 *
 * group, instance, batch and lp on the host: memory is blocks of rows of lanes, where a
 * lane is a channel. Channels are gathered each for itself, then in groups.
 */
#ifndef PLUGINS_NORMALIZATION_CHANNELS_H
#define PLUGINS_NORMALIZATION_CHANNELS_H

#include "plugins/normalization/stretch.h"

#define PIECES 64            /* of a block at most */
#define GROUPS 8             /* of channels, that all threads have enough of */
#define PIECE_SIZE (1 << 15) /* elements at least */

/* A tensor as blocks of rows of lanes. Channel c of image n has place n*padded + c in all
 * arrays, which is also block*lanes + lane. For lp a lane is a line along the axis. */
struct norm_image {
    int64_t blocks, rows, lanes;
    int64_t images, channels, padded;
    int64_t pieces; /* of a block, that are gathered apart */
    int64_t groups; /* of channels that share what they gather */
};

static struct norm_image norm_image_of(const strata_normalization *p,
                                       const strata_tensor *x)
{
    struct norm_image m = {0};
    if (p->kind == STRATA_NORMALIZATION_LP) {
        const int32_t axis = norm_axis(p, x->rank);
        m.images = m.blocks = norm_span(x, 0, axis);
        m.rows = x->dims[axis];
        m.channels = m.padded = m.lanes = m.groups = norm_span(x, axis + 1, x->rank);
    } else {
        const int64_t plane = norm_span(x, 2, x->rank);
        m.images = x->dims[0];
        m.channels = x->dims[1];
        m.padded = (m.channels + x->vector - 1) / x->vector * x->vector;
        m.rows = plane;
        m.groups = norm_groups(p, x);
        const bool last = x->rank > 2 && x->strides[x->rank - 1] == m.padded;
        m.lanes = last || x->rank == 2 ? m.padded : x->vector;
        m.blocks = m.images * m.padded / m.lanes;
    }
    m.pieces = m.rows * m.lanes / PIECE_SIZE;
    m.pieces = m.pieces < 1 ? 1 : m.pieces > PIECES ? PIECES : m.pieces;
    m.pieces = m.pieces > m.rows ? m.rows : m.pieces;
    return m;
}

/* Floats of workspace: shift, factor and addend of each place, and what pieces gather. */
static size_t norm_workspace(const strata_node *n)
{
    const strata_normalization *p = n->params;
    if (norm_by_rows(p) || n->in[0].count == 0)
        return 0;
    const struct norm_image m = norm_image_of(p, &n->in[0]);
    return (size_t)(m.images * m.padded * (3 + m.pieces)) * sizeof(float);
}

struct norm_room {
    float *shift, *factor, *addend, *part;
};

static struct norm_room norm_room_of(const struct norm_image *m, float *memory)
{
    const int64_t n = m->images * m->padded;
    return (struct norm_room){memory, memory + n, memory + 2 * n, memory + 3 * n};
}

/* A stretch of rows of one block: how many rows, or columns of one row, go at once. */
struct norm_stretch {
    int64_t rows, width;
};

static struct norm_stretch norm_stretch_of(int64_t lanes)
{
    struct norm_stretch s = {1, lanes < GATHER_STRETCH ? lanes : GATHER_STRETCH};
    if (lanes <= GATHER_STRETCH)
        s.rows = GATHER_STRETCH / lanes;
    return s;
}

static void norm_gather_piece(const struct norm_call *c, const struct norm_image *m,
                              enum gather g, const struct norm_room *room, int64_t block,
                              int64_t piece, bool first)
{
    const struct norm_stretch s = norm_stretch_of(m->lanes);
    const int64_t from = m->rows * piece / m->pieces;
    const int64_t to = m->rows * (piece + 1) / m->pieces;
    float *a = room->part + (block * m->pieces + piece) * m->lanes;
    const float *shift = g == GATHER_CENTRED ? room->shift + block * m->lanes : NULL;
    float buffer[2 * GATHER_STRETCH];
    for (int64_t i = 0; i < m->lanes; i++)
        a[i] = gather_start(g);
    for (int64_t row = from; row < to; row += s.rows)
        for (int64_t j = 0; j < m->lanes; j += s.width) {
            const int64_t rows = to - row < s.rows ? to - row : s.rows;
            const int64_t width = m->lanes - j < s.width ? m->lanes - j : s.width;
            const int64_t at = (block * m->rows + row) * m->lanes + j;
            const float *x = first ? norm_first_load(c, at, rows * width, buffer)
                                   : norm_load(c, at, rows * width, buffer);
            gather_lanes(c->code, g, a + j, x, shift ? shift + j : NULL, width,
                         rows * width);
        }
}

/* p-norms other than the first two, which no vector instruction knows. */
static void norm_power_block(const struct norm_call *c, const struct norm_image *m,
                             const struct norm_room *room, int64_t block, bool first)
{
    float *a = room->part + block * m->pieces * m->lanes, x[2 * GATHER_STRETCH];
    const float p = (float)c->params->p;
    memset(a, 0, (size_t)(m->pieces * m->lanes) * sizeof *a);
    for (int64_t row = 0; row < m->rows; row++)
        for (int64_t j = 0; j < m->lanes; j += GATHER_STRETCH) {
            const int64_t at = (block * m->rows + row) * m->lanes + j;
            const int64_t part = norm_part(j, m->lanes);
            const float *v =
                first ? norm_first_load(c, at, part, x) : norm_load(c, at, part, x);
            for (int64_t i = 0; i < part; i++)
                a[j + i] += powf(fabsf(v[i]), p);
        }
}

/* What all pieces gathered in a channel. */
static double norm_total(const struct norm_image *m, const float *part, int64_t place)
{
    double sum = 0;
    part += place / m->lanes * m->pieces * m->lanes + place % m->lanes;
    for (int64_t i = 0; i < m->pieces; i++)
        sum += (double)part[i * m->lanes];
    return sum;
}

static void norm_gather(const struct norm_call *c, const struct norm_image *m,
                        enum gather g, const struct norm_room *room, bool first)
{
    const bool power = c->params->kind == STRATA_NORMALIZATION_LP && c->params->p > 2;
#pragma omp parallel for schedule(static) if (c->run->in[0].size >= WALK_PARALLEL)
    for (int64_t i = 0; i < m->blocks * m->pieces; i++)
        if (!power)
            norm_gather_piece(c, m, g, room, i / m->pieces, i % m->pieces, first);
        else if (i % m->pieces == 0)
            norm_power_block(c, m, room, i / m->pieces, first);
}

/* result[place]: what the group of the place gathered, made into a number. */
static void norm_share(const struct norm_call *c, const struct norm_image *m,
                       const float *part, float *result,
                       float (*close)(const strata_normalization *p, double sum,
                                      int64_t n))
{
    const int64_t each = m->channels / m->groups;
    for (int64_t g = 0; g < m->images * m->groups; g++) {
        const int64_t first = g / m->groups * m->padded + g % m->groups * each;
        double sum = 0;
        for (int64_t k = 0; k < each; k++)
            sum += norm_total(m, part, first + k);
        const float value = close(c->params, sum, each * m->rows);
        for (int64_t k = 0; k < each; k++)
            result[first + k] = value;
    }
}

static float norm_mean_of(const strata_normalization *p, double sum, int64_t n)
{
    (void)p;
    return (float)(sum / (double)n);
}

static float norm_lp_of(const strata_normalization *p, double sum, int64_t n)
{
    (void)n;
    const double norm = p->p == 1   ? sum
                        : p->p == 2 ? sqrt(sum)
                                    : pow(sum, 1 / (double)p->p);
    return sum == 0 ? 0 : (float)(1 / norm);
}

/* Shift and factor of each place by the input. */
static void norm_look(const struct norm_call *c, const struct norm_image *m,
                      const struct norm_room *room)
{
    const strata_normalization *p = c->params;
    if (p->kind == STRATA_NORMALIZATION_LP) {
        norm_gather(c, m, p->p == 1 ? GATHER_ABS : GATHER_SQUARE, room, true);
        norm_share(c, m, room->part, room->factor, norm_lp_of);
        return;
    }
    norm_gather(c, m, GATHER_SUM, room, true);
    norm_share(c, m, room->part, room->shift, norm_mean_of);
    norm_gather(c, m, GATHER_CENTRED, room, false);
    norm_share(c, m, room->part, room->factor, norm_inverse);
}

/* And what weights make of them. Pads: 0 throughout. */
static void norm_weigh(const struct norm_call *c, const struct norm_image *m,
                       const struct norm_room *room)
{
    const bool batch = c->params->kind == STRATA_NORMALIZATION_BATCH;
    const float *w[NORM_WEIGHTS];
    for (int k = 0; k < NORM_WEIGHTS; k++)
        w[k] = c->run->weight[k].rank ? c->run->weight[k].data : NULL;
    for (int64_t n = 0; n < m->images; n++)
        for (int64_t k = 0; k < m->channels; k++) {
            const int64_t at = n * m->padded + k;
            if (batch) {
                room->shift[at] = w[NORM_MEAN] ? w[NORM_MEAN][k] : 0;
                room->factor[at] = norm_inverse(
                    c->params, w[NORM_VARIANCE] ? (double)w[NORM_VARIANCE][k] : 1, 1);
            }
            if (w[NORM_SCALE])
                room->factor[at] *= w[NORM_SCALE][k];
            if (w[NORM_BIAS])
                room->addend[at] = w[NORM_BIAS][k];
        }
}

static void norm_adjust_piece(const struct norm_call *c, const struct norm_image *m,
                              const struct norm_room *room, int64_t block, int64_t piece)
{
    const struct norm_stretch s = norm_stretch_of(m->lanes);
    const int64_t from = m->rows * piece / m->pieces;
    const int64_t to = m->rows * (piece + 1) / m->pieces, place = block * m->lanes;
    const bool batch = c->params->kind == STRATA_NORMALIZATION_BATCH;
    float buffer[2 * GATHER_STRETCH];
    for (int64_t row = from; row < to; row += s.rows)
        for (int64_t j = 0; j < m->lanes; j += s.width) {
            const int64_t rows = to - row < s.rows ? to - row : s.rows;
            const int64_t width = m->lanes - j < s.width ? m->lanes - j : s.width;
            const int64_t at = (block * m->rows + row) * m->lanes + j, n = rows * width;
            const float *x =
                batch ? norm_first_load(c, at, n, buffer) : norm_load(c, at, n, buffer);
            float *y = norm_target(c, at, buffer);
            adjust_lanes(c->code, y, x, room->shift + place + j, room->factor + place + j,
                         room->addend + place + j, width, n);
            norm_store(c, at, n, y, buffer);
        }
}

/* Whether the planes of a group lie in one piece, and groups are enough for all threads:
 * then each is gathered twice and written while caches hold it. */
static bool norm_is_grouped(const struct norm_call *c, const struct norm_image *m)
{
    const bool shares = c->params->kind == STRATA_NORMALIZATION_GROUP ||
                        c->params->kind == STRATA_NORMALIZATION_INSTANCE;
    return shares && m->lanes == 1 &&
           (m->images * m->groups >= GROUPS || c->run->in[0].size < WALK_PARALLEL);
}

/* The sum of what g makes of n elements in one piece. */
static double norm_gather_line(const struct norm_call *c, enum gather g, int64_t at,
                               int64_t n, float shift, bool first)
{
    float buffer[2 * GATHER_STRETCH];
    double sum = 0;
    for (int64_t j = 0; j < n; j += GATHER_STRETCH) {
        const int64_t part = norm_part(j, n);
        const float *x = first ? norm_first_load(c, at + j, part, buffer)
                               : norm_load(c, at + j, part, buffer);
        sum += (double)c->code->row(g, x, part, shift);
    }
    return sum;
}

static void norm_group(const struct norm_call *c, const struct norm_image *m,
                       int64_t group)
{
    const float *scale = c->run->weight[NORM_SCALE].data;
    const float *bias = c->run->weight[NORM_BIAS].data;
    const int64_t each = m->channels / m->groups, n = each * m->rows;
    const float mean =
        (float)(norm_gather_line(c, GATHER_SUM, group * n, n, 0, true) / (double)n);
    const float factor = norm_inverse(
        c->params, norm_gather_line(c, GATHER_CENTRED, group * n, n, mean, false), n);
    float buffer[2 * GATHER_STRETCH];
    for (int64_t k = 0; k < each; k++) {
        const int64_t channel = group % m->groups * each + k;
        for (int64_t j = 0; j < m->rows; j += GATHER_STRETCH) {
            const int64_t at = group * n + k * m->rows + j, part = norm_part(j, m->rows);
            const float *x = norm_load(c, at, part, buffer);
            float *y = norm_target(c, at, buffer);
            c->code->adjust_line(y, x, mean, scale ? factor * scale[channel] : factor,
                                 bias ? bias[channel] : 0, part);
            norm_store(c, at, part, y, buffer);
        }
    }
}

static int norm_grouped(const struct norm_call *c, const struct norm_image *m)
{
#pragma omp parallel for schedule(static) if (c->run->in[0].size >= WALK_PARALLEL)
    for (int64_t i = 0; i < m->images * m->groups; i++)
        norm_group(c, m, i);
    return STRATA_OK;
}

static int norm_channels(const struct norm_call *c)
{
    const strata_run *r = c->run;
    const struct norm_image m = norm_image_of(c->params, &r->in[0]);
    const struct norm_room room = norm_room_of(&m, r->workspace);
    if (norm_is_grouped(c, &m))
        return norm_grouped(c, &m);
    memset(room.shift, 0, (size_t)(m.images * m.padded * 3) * sizeof *room.shift);
    if (c->params->kind != STRATA_NORMALIZATION_BATCH)
        norm_look(c, &m, &room);
    norm_weigh(c, &m, &room);
#pragma omp parallel for schedule(static) if (r->in[0].size >= WALK_PARALLEL)
    for (int64_t i = 0; i < m.blocks * m.pieces; i++)
        norm_adjust_piece(c, &m, &room, i / m.pieces, i % m.pieces);
    walk_clear_pads(&r->out[0]);
    if (c->sum)
        walk_clear_pads(c->sum);
    return STRATA_OK;
}

#endif /* PLUGINS_NORMALIZATION_CHANNELS_H */
