/* SPDX-License-Identifier: Apache-2.0
 *
 * Scale: y = (x*scale + shift)^power in any float format; may run in place. Each of the
 * three is an attribute or a weight: one element, one per channel, or one per element of
 * an image. An activation behind it goes in the same pass.
 *
 * Factors and addends of channels take memory as it lies, a piece a thread; the rest (one
 * per element, a power) walks.
 */
#include <strata/layers.h>

#include "plugins/common/activate.h"
#include "plugins/common/affine.h"
#include "plugins/common/dense.h"
#include "plugins/common/walk.h"

enum { SCALE, SHIFT, POWER, WEIGHTS };

static const char *const names[WEIGHTS] = {"scale", "shift", "power"};

/* Elements of one image. */
static int64_t scale_image(const strata_tensor *x)
{
    int64_t count = 1;
    for (int d = 1; d < x->rank; d++)
        count *= x->dims[d];
    return count;
}

/* How a weight lies along the input: by its number of elements, so that (C) and
 * (1, C, 1, 1) mean the same. STRATA_SCALE_AUTO: it fits nowhere. */
static int32_t scale_mode(const strata_tensor *weight, const strata_tensor *x)
{
    int64_t count = dense_count(weight);
    return count == 1                ? STRATA_SCALE_UNIFORM
           : count == x->dims[1]     ? STRATA_SCALE_CHANNEL
           : count == scale_image(x) ? STRATA_SCALE_ELEMENTWISE
                                     : STRATA_SCALE_AUTO;
}

static int scale_weight_shape(const strata_node *n, strata_tensor *expected)
{
    const strata_scale *p = n->params;
    const strata_tensor *x = &n->in[0];
    for (int k = 0; k < WEIGHTS && x->rank >= 2; k++) {
        if (p->mode == STRATA_SCALE_AUTO && n->weight[k].rank > 0)
            continue;
        expected[k].rank = 1;
        expected[k].dims[0] = p->mode == STRATA_SCALE_UNIFORM ? 1 : x->dims[1];
        if (p->mode == STRATA_SCALE_ELEMENTWISE) {
            expected[k].rank = x->rank - 1;
            memcpy(expected[k].dims, x->dims + 1,
                   sizeof(int64_t) * (size_t)(x->rank - 1));
        }
    }
    return STRATA_OK;
}

static int scale_shape(const strata_node *n)
{
    const strata_tensor *x = &n->in[0];
    if (x->rank < 2)
        return STRATA_FAIL(n, STRATA_EINVAL, "input has rank %d; 2 or more is needed",
                           (int)x->rank);
    for (int k = 0; k < WEIGHTS; k++)
        if (n->weight[k].rank > 0 && scale_mode(&n->weight[k], x) == STRATA_SCALE_AUTO)
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "weight %s has %lld elements; needed are 1, %lld (one per "
                               "channel) or %lld (one per element of an image)",
                               names[k], (long long)dense_count(&n->weight[k]),
                               (long long)x->dims[1], (long long)scale_image(x));
    n->out[0].rank = x->rank;
    memcpy(n->out[0].dims, x->dims, sizeof x->dims);
    return STRATA_OK;
}

static double scale_flops(const strata_node *n)
{
    return 2.0 * (double)n->out[0].count;
}

/* Room for a factor and an addend of each channel, pads included. */
static size_t scale_lanes(const strata_tensor *x)
{
    return ((size_t)x->dims[1] + (size_t)x->vector) * 2 * sizeof(float);
}

static size_t scale_workspace(const strata_node *n)
{
    size_t walk = walk_memory(2 + WEIGHTS, n->out[0].dims, n->out[0].rank);
    size_t lanes = scale_lanes(&n->in[0]);
    return walk > lanes ? walk : lanes;
}

/* Operand k walks over a dense weight. */
static void scale_map(struct walk *w, int k, const strata_tensor *weight,
                      const strata_tensor *x)
{
    int32_t mode = weight->rank ? scale_mode(weight, x) : STRATA_SCALE_UNIFORM;
    int64_t stride = 1;
    if (mode == STRATA_SCALE_UNIFORM)
        return;
    for (int d = mode == STRATA_SCALE_CHANNEL ? 1 : x->rank - 1; d >= 1; d--) {
        for (int64_t i = 0; i < x->dims[d]; i++)
            w->axis[d].at[k][i] = i * stride;
        stride *= x->dims[d];
    }
}

/* An operand of a run: a row of a weight, or one value all along. */
struct factor {
    const float *row;
    float value;
};

static struct factor scale_factor(const strata_run *r, int k, int64_t at, int64_t step,
                                  int64_t n, float *buffer)
{
    const strata_scale *p = r->params;
    const double absent[WEIGHTS] = {p->scale, p->shift, p->power};
    const strata_tensor *weight = &r->weight[k];
    struct factor f = {NULL, (float)absent[k]};
    if (weight->rank && step == 0)
        f.value = ((const float *)weight->data)[at];
    else if (weight->rank)
        f.row = walk_load(weight, at, step, n, buffer);
    return f;
}

static const float *scale_spread(struct factor f, int64_t n, float *buffer)
{
    if (f.row)
        return f.row;
    for (int64_t i = 0; i < n; i++)
        buffer[i] = f.value;
    return buffer;
}

/* y may be x. */
static void scale_apply(const strata_epilogue *e, const struct factor *f, float *y,
                        const float *x, int64_t n, float (*buffer)[WALK_ROW])
{
    if (!f[SCALE].row && !f[SHIFT].row) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] * f[SCALE].value + f[SHIFT].value;
    } else {
        const float *a = scale_spread(f[SCALE], n, buffer[SCALE]);
        const float *b = scale_spread(f[SHIFT], n, buffer[SHIFT]);
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] * a[i] + b[i];
    }
    if (f[POWER].row)
        for (int64_t i = 0; i < n; i++)
            y[i] = powf(y[i], f[POWER].row[i]);
    else if (f[POWER].value != 1)
        for (int64_t i = 0; i < n; i++)
            y[i] = powf(y[i], f[POWER].value);
    if (e->flags & STRATA_EPILOGUE_ACTIVATION)
        activate_row(e->activation, e->alpha, e->beta, y, n);
}

/* Whether the factors are the same at all positions of the inner axis, as they are for
 * one block of channels all over a plane. */
static int scale_fixed(const struct walk_axis *inner)
{
    int64_t last = (inner->n - 1) * inner->every;
    for (int k = 2; k < 2 + WEIGHTS; k++)
        if (inner->at[k][last] != inner->at[k][0])
            return 0;
    return 1;
}

/* n <= WALK_ROW elements of the run from its element j, at every inner position. */
static void scale_piece(const strata_run *r, const struct walk *w, const int64_t *base,
                        int64_t j, int64_t n)
{
    const struct walk_axis *inner = walk_inner(w);
    const int64_t *step = w->step;
    float in[WALK_ROW], buffer[WEIGHTS][WALK_ROW], result[WALK_ROW];
    struct factor f[WEIGHTS];
    int fixed = scale_fixed(inner);
    for (int64_t i = 0; i < inner->n; i++) {
        int64_t at[2 + WEIGHTS];
        for (int k = 0; k < 2 + WEIGHTS; k++)
            at[k] = base[k] + inner->at[k][i * inner->every] + j * step[k];
        for (int k = 0; k < WEIGHTS && (i == 0 || !fixed); k++)
            f[k] = scale_factor(r, k, at[2 + k], step[2 + k], n, buffer[k]);
        const float *x = walk_load(&r->in[0], at[1], step[1], n, in);
        float *y = walk_target(&r->out[0], at[0], step[0], result);
        scale_apply(r->epilogue, f, y, x, n, buffer);
        walk_stored(&r->out[0], at[0], step[0], y, result, n);
    }
}

static void scale_row(const void *arg, const struct walk *w, const int64_t *base,
                      int64_t n)
{
    for (int64_t j = 0; j < n; j += WALK_ROW)
        scale_piece(arg, w, base, j, n - j < WALK_ROW ? n - j : WALK_ROW);
}

/* ---- channels, over memory as it lies ---- */

#define PIECE 4096 /* elements a thread takes at once: they stay in the nearest cache */

/* A tensor as groups of rows of lanes, in the order of its memory: a group is a plane, a
 * plane of blocks, or all pixels. lanes 0: it lies otherwise. */
struct channels {
    int64_t images, groups, rows, lanes;
    int64_t padded;            /* channels of an image */
    int64_t image, group, row; /* strides */
};

static struct channels scale_channels(const strata_tensor *x)
{
    int64_t c = x->dims[1], plane = scale_image(x) / c, pixel = 0, next = 0;
    int64_t padded = (c + x->vector - 1) / x->vector * x->vector;
    struct channels lie = {.images = x->dims[0],
                           .groups = 1,
                           .rows = plane,
                           .padded = padded,
                           .image = x->strides[0],
                           .group = x->strides[1]};
    for (int d = x->rank - 1; d >= 2; d--) {
        if (x->dims[d] == 1)
            continue;
        pixel = pixel ? pixel : x->strides[d];
        if (next && x->strides[d] != next)
            return lie; /* rows are not evenly apart */
        next = x->strides[d] * x->dims[d];
    }
    lie.row = pixel ? pixel : padded;
    if (x->strides[1] == x->vector && lie.row >= padded) {
        lie.lanes = padded;
    } else if (lie.row == x->vector) {
        lie.groups = padded / x->vector;
        lie.lanes = x->vector;
    }
    return lie;
}

static int scale_is_affine(const strata_run *r, const struct channels *c,
                           const struct channels *to)
{
    const strata_scale *p = r->params;
    int is = c->lanes > 0 && c->lanes == to->lanes && c->groups == to->groups &&
             p->power == 1 && r->weight[POWER].rank == 0 &&
             (r->in[0].dtype == STRATA_FP32 || c->lanes <= PIECE);
    for (int k = SCALE; k <= SHIFT; k++)
        is = is && (r->weight[k].rank == 0 ||
                    scale_mode(&r->weight[k], &r->in[0]) != STRATA_SCALE_ELEMENTWISE);
    return is;
}

/* Weight k of each channel, and zeros for pads. */
static void scale_operand(const strata_run *r, int k, float *out, int64_t padded)
{
    const strata_scale *p = r->params;
    const strata_tensor *weight = &r->weight[k];
    const float *data = weight->data;
    int64_t c = r->in[0].dims[1], each = weight->rank && dense_count(weight) == c;
    float all = weight->rank ? data[0] : (float)(k == SCALE ? p->scale : p->shift);
    for (int64_t i = 0; i < padded; i++)
        out[i] = i >= c ? 0 : each ? data[i] : all;
}

/* n elements of memory side by side; at most PIECE of FP16 or BF16. */
static void scale_rows(const strata_run *r, affine_run *run, const struct affine *f,
                       int64_t to, int64_t from, int64_t n)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    if (x->dtype == STRATA_FP32) {
        run(f, (float *)y->data + to, (const float *)x->data + from, n);
        return;
    }
    float row[PIECE] = {0};
    element_widen_row(row, (const uint16_t *)x->data + from, x->dtype, n);
    run(f, row, row, n);
    element_narrow_row((uint16_t *)y->data + to, y->dtype, row, n);
}

/* Rows that lie side by side in both are one. */
static void scale_block(const strata_run *r, affine_run *run, const struct affine *f,
                        const struct channels *to, const struct channels *from,
                        int64_t image, int64_t group, int64_t row, int64_t rows)
{
    const int dense = to->row == to->lanes && from->row == from->lanes;
    const int64_t n = dense ? rows * to->lanes : to->lanes;
    int64_t y = image * to->image + group * to->group + row * to->row;
    int64_t x = image * from->image + group * from->group + row * from->row;
    for (int64_t i = 0; i < (dense ? 1 : rows); i++, y += to->row, x += from->row)
        scale_rows(r, run, f, y, x, n);
}

static void scale_affine(const strata_run *r, const struct channels *c,
                         const struct channels *to)
{
    const strata_epilogue *e = r->epilogue;
    int active = (e->flags & STRATA_EPILOGUE_ACTIVATION) != 0;
    float *factor = r->workspace, *addend = factor + c->padded;
    affine_run *run = affine_choose();
    scale_operand(r, SCALE, factor, c->padded);
    scale_operand(r, SHIFT, addend, c->padded);
    int64_t step = c->lanes < PIECE ? PIECE / c->lanes : 1;
    int64_t pieces = (c->rows + step - 1) / step;
#pragma omp parallel for schedule(static) if (r->out[0].size >= WALK_PARALLEL)
    for (int64_t i = 0; i < c->images * c->groups * pieces; i++) {
        int64_t image = i / pieces / c->groups, group = i / pieces % c->groups;
        int64_t row = i % pieces * step, lane = group * c->lanes;
        int64_t rows = c->rows - row < step ? c->rows - row : step;
        struct affine f = {.factor = factor + lane,
                           .addend = addend + lane,
                           .lanes = c->lanes,
                           .kind = active ? e->activation : -1,
                           .alpha = e->alpha,
                           .beta = e->beta};
        scale_block(r, run, &f, to, c, image, group, row, rows);
    }
}

static int scale_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const struct channels from = scale_channels(x), to = scale_channels(y);
    struct walk w;
    if (scale_is_affine(r, &from, &to)) {
        scale_affine(r, &from, &to);
        walk_clear_pads(y);
        return STRATA_OK;
    }
    walk_over(&w, 2 + WEIGHTS, y, y->dims, r->workspace);
    walk_map_all(&w, 0, y);
    walk_map_all(&w, 1, x);
    for (int k = 0; k < WEIGHTS; k++)
        scale_map(&w, 2 + k, &r->weight[k], x);
    walk_run(&w, scale_row, r);
    walk_clear_pads(y);
    return STRATA_OK;
}

static double scale_value(const strata_node *n, int k, double absent,
                          const double *const *weight, int64_t i)
{
    const strata_tensor *x = &n->in[0], *w = &n->weight[k];
    int64_t image = scale_image(x), plane = image / x->dims[1];
    if (w->rank == 0)
        return absent;
    switch (scale_mode(w, x)) {
    case STRATA_SCALE_UNIFORM:
        return weight[k][0];
    case STRATA_SCALE_CHANNEL:
        return weight[k][i / plane % x->dims[1]];
    default:
        return weight[k][i % image];
    }
}

static int scale_reference(const strata_node *n, const double *const *in,
                           const double *const *weight, double *const *out)
{
    const strata_scale *p = n->params;
    int64_t count = dense_count(&n->out[0]);
    for (int64_t i = 0; i < count; i++) {
        double y = in[0][i] * scale_value(n, SCALE, p->scale, weight, i) +
                   scale_value(n, SHIFT, p->shift, weight, i);
        out[0][i] = pow(y, scale_value(n, POWER, p->power, weight, i));
    }
    return STRATA_OK;
}

static const void *scale_extension(const char *id)
{
    static const strata_reference reference = {sizeof reference, 0, scale_reference};
    return dense_extension(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "mode",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_scale, mode),
     .def = STRATA_SCALE_AUTO,
     .choices = "auto|uniform|channel|elementwise",
     .doc = "shape of the weights: 1, C, or one image's; auto goes by their size"},
    {.name = "scale",
     .type = STRATA_F64,
     .offset = offsetof(strata_scale, scale),
     .def = 1,
     .doc = "factor, where the weight is absent"},
    {.name = "shift",
     .type = STRATA_F64,
     .offset = offsetof(strata_scale, shift),
     .def = 0,
     .doc = "addend, where the weight is absent"},
    {.name = "power",
     .type = STRATA_F64,
     .offset = offsetof(strata_scale, power),
     .def = 1,
     .doc = "exponent, where the weight is absent"},
};

static const strata_weight weights[] = {
    {.name = "scale", .rank = -1, .doc = "factors"},
    {.name = "shift", .rank = -1, .doc = "addends"},
    {.name = "power", .rank = -1, .doc = "exponents"},
};

static const strata_row rows[] = {{{WALK_FLOATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags =
         STRATA_INPLACE_OK | STRATA_PAD_IGNORED | STRATA_PITCHED_IN | STRATA_PITCHED_OUT,
     .epilogues = STRATA_EPILOGUE_ACTIVATION,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .activations = ELEMENT_ALL_ACTIVATIONS,
     .efficiency = 1,
     .bandwidth = 0.8,
     .workspace = scale_workspace,
     .run = scale_run},
};

static const strata_layer scale = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Scale",
    .doc = "Factor, addend and exponent, uniform, per channel or per element",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_scale),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = scale_shape,
    .weight_shape = scale_weight_shape,
    .flops = scale_flops,
    .extension = scale_extension,
};

static const strata_layer *const layers[] = {&scale};
STRATA_MODULE("core", "1.0.0", "Scale", layers)
