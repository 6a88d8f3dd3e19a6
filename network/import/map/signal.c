/* SPDX-License-Identifier: Apache-2.0
 *
 * Fourier transforms as products with a constant matrix: short ones, as models of sound
 * have them, are bound by reading their input anyway.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "formats/format.h"
#include "network/import/map/compose.h"

#define PI 3.14159265358979323846

/* A transform of `length` points, of which `n_in` come in and `n_out` go out. */
struct transform {
    int64_t length, n_in, n_out;
    int in, out;  /* numbers of a point: 2 of a complex one */
    double scale; /* 1/length of an inverse one */
    bool inverse;
    bool half; /* points beyond the middle are known from those before it */
};

/* cos or sin of a full turn times k/n, exactly 0 and 1 where they are. */
static double turn(int64_t k, int64_t n, bool sine)
{
    const int64_t at = (sine ? 4 * k + 3 * n : 4 * k) % (4 * n); /* sin t = cos(t - 90) */
    if (at == n || at == 3 * n)
        return 0;
    return at == 0 ? 1 : at == 2 * n ? -1 : cos(PI / 2 * (double)at / (double)n);
}

/* The share of number `from` of point i in number `to` of point k. */
static double share(const struct transform *t, int64_t i, int from, int64_t k, int to)
{
    const int64_t at = i * k % t->length;
    const double sign = t->inverse ? 1 : -1;
    const bool twice = t->half && t->inverse && i > 0 && 2 * i != t->length;
    const double scale = t->scale * (twice ? 2 : 1);
    if (i >= t->length)
        return 0;
    if (from == to)
        return scale * turn(at, t->length, false);
    return scale * (from ? -sign : sign) * turn(at, t->length, true);
}

/* Integer of a constant input, or `otherwise` where it is absent. */
static int64_t integer_input(struct mapping *m, int i, const char *name,
                             int64_t otherwise)
{
    const struct value *v = map_constant(m, i, name);
    return v ? value_integer(v, 0) : otherwise;
}

/* ---- DFT -----------------------------------------------------------------------------
 */

static bool read_transform(struct mapping *m, struct transform *t, int64_t *axis)
{
    const struct value *x = map_input(m, 0);
    const int rank = map_input_rank(m, 0);
    if (!x || rank < 2 || !dtype_is_free(x->dtype) || x->dims[rank - 1] < 1 ||
        x->dims[rank - 1] > 2) {
        map_refuse(m,
                   "its input is of rank %d; floats with a last dim of 1 or 2 are "
                   "taken",
                   rank);
        return false;
    }
    *axis =
        map_axis(m, integer_input(m, 2, "axis", node_integer(m->node, "axis", -2)), rank);
    if (*axis == rank - 1)
        map_refuse(m, "'axis' is the dim of real and imaginary parts");
    if (m->refused)
        return false;
    t->inverse = node_integer(m->node, "inverse", 0) != 0;
    t->half = node_integer(m->node, "onesided", 0) != 0;
    t->n_in = x->dims[*axis];
    t->length = integer_input(m, 1, "dft_length",
                              t->half && t->inverse ? 2 * (t->n_in - 1) : t->n_in);
    t->n_out = t->half && !t->inverse ? t->length / 2 + 1 : t->length;
    t->in = (int)x->dims[rank - 1];
    t->out = t->half && t->inverse ? 1 : 2;
    t->scale = t->inverse && t->length > 0 ? 1 / (double)t->length : 1;
    if (!m->refused && (t->length < 1 || t->length > INT32_MAX))
        map_refuse(m, "'dft_length' is %lld", (long long)t->length);
    return !m->refused;
}

static int matrix(struct mapping *m, const struct transform *t)
{
    const int64_t dims[] = {t->n_in * t->in, t->n_out * t->out};
    double *v = compose_room(m, sizeof *v, dims, 2);
    for (int64_t r = 0; v && r < dims[0]; r++)
        for (int64_t c = 0; c < dims[1]; c++)
            v[r * dims[1] + c] =
                share(t, r / t->in, (int)(r % t->in), c / t->out, (int)(c % t->out));
    return v ? compose_reals(m, 2, dims, v) : VALUE_NONE;
}

/* The axis goes before the last dim, and with it becomes a row. */
static void make_dft(struct mapping *m)
{
    struct transform t;
    int64_t axis, order[STRATA_MAX_RANK], back[STRATA_MAX_RANK], dims[STRATA_MAX_RANK];
    if (!read_transform(m, &t, &axis))
        return;
    const struct value *x = map_input(m, 0);
    const int rank = x->rank;
    for (int d = 0, n = 0; d < rank; d++)
        if (d != axis && d != rank - 1)
            order[n++] = d;
    order[rank - 2] = axis;
    order[rank - 1] = rank - 1;
    for (int d = 0; d < rank; d++) {
        back[order[d]] = d;
        dims[d] = x->dims[order[d]];
    }
    dims[rank - 2] = t.n_in * t.in;
    const int w = matrix(m, &t);
    if (w < 0 || m->refused)
        return;
    int y = compose_transpose(m, compose_input(m, 0), rank, order, rank - 1, dims);
    if (rank == 2)
        y = compose_reshape(m, y, 2, (const int64_t[]){1, dims[0]});
    y = compose_one(m, "MatrixMultiply", y);
    section_weight(m->s, "b", w);
    dims[rank - 2] = t.n_out;
    dims[rank - 1] = t.out;
    y = compose_reshape(m, y, rank, dims);
    section_integers(m->g, m->s, "second", back, rank);
    compose_end(m, 0, -1);
}

/* ---- STFT ----------------------------------------------------------------------------
 */

/* Frames of a signal are what a window of a convolution passes over. */
static int filters(struct mapping *m, const struct transform *t, const double *window)
{
    const int64_t dims[] = {t->n_out * 2, t->in, t->length};
    double *v = compose_room(m, sizeof *v, dims, 3);
    for (int64_t k = 0; v && k < dims[0]; k++)
        for (int64_t i = 0; i < dims[1] * dims[2]; i++) {
            const int64_t at = i % t->length;
            v[k * dims[1] * dims[2] + i] =
                share(t, at, (int)(i / t->length), k / 2, (int)(k % 2)) *
                (window ? window[at] : 1);
        }
    return v ? compose_reals(m, 3, dims, v) : VALUE_NONE;
}

static void make_stft(struct mapping *m)
{
    static const int64_t order[] = {0, 2, 1};
    const struct value *x = map_input(m, 0), *window = map_constant(m, 2, "window");
    const int64_t step = integer_input(m, 1, "frame_step", 0);
    const int64_t whole = x && x->rank == 3 ? x->dims[1] : 0;
    const int64_t length =
        integer_input(m, 3, "frame_length", window ? value_count(window) : whole);
    if (m->refused)
        return;
    if (whole == 0 || !dtype_is_free(x->dtype) || x->dims[2] < 1 || x->dims[2] > 2 ||
        step < 1 || length < 1 || length > whole ||
        (window && value_count(window) != length)) {
        map_refuse(m,
                   "frames of %lld every %lld of a signal of %lld, or its window, "
                   "cannot be",
                   (long long)length, (long long)step, (long long)whole);
        return;
    }
    struct transform t = {.length = length, .n_in = length, .scale = 1, .out = 2};
    t.half = node_integer(m->node, "onesided", 1) != 0;
    t.n_out = t.half ? length / 2 + 1 : length;
    t.in = (int)x->dims[2];
    const int64_t frames = (whole - length) / step + 1;
    const double *factors = window ? compose_values(m, window) : NULL;
    const int w = filters(m, &t, factors);
    if (w < 0 || (window && !factors))
        return;
    int y = compose_transpose(m, compose_input(m, 0), 3, order, 0, NULL);
    y = compose_one(m, "Convolution", y);
    section_integer(m->g, m->s, "stride", step);
    section_weight(m->s, "weight", w);
    compose_transpose(m, y, 3, order, 4, (const int64_t[]){0, frames, t.n_out, 2});
    compose_end(m, 0, -1);
}

static const struct map_rule rules[] = {
    {.op = "DFT", .finish = make_dft, .note = "length and axis must be constant"},
    {.op = "STFT",
     .finish = make_stft,
     .note = "step, window and length must be constant"},
};

const struct map_table map_signal = {"Signals", rules, ARRAY_LENGTH(rules)};
