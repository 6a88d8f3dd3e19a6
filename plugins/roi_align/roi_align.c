/* SPDX-License-Identifier: Apache-2.0
 *
 * RoiAlign: regions of images, each cut into bins; a bin is the mean, or the maximum, of
 * points that are interpolated between elements. Any float format.
 */
#include "plugins/roi_align/roi_align.h"

#include "plugins/common/dense.h"
#include "plugins/common/pointwise/taps.h"
#include "plugins/common/team/turn.h"
#include "plugins/common/walk.h"

#define CHANNELS 64 /* at once */

static int roi_shape(const strata_node *n)
{
    const strata_roi_align *p = n->params;
    const strata_tensor *x = &n->in[0], *roi = &n->in[1], *image = &n->in[2];
    if (x->rank != 4 || dense_count(x) == 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "input has rank %d and %lld elements; needed are images of "
                           "rank 4",
                           (int)x->rank, (long long)dense_count(x));
    if (roi->rank != 2 || roi->dims[1] != 4 || image->rank != 1 ||
        image->dims[0] != roi->dims[0])
        return STRATA_FAIL(
            n, STRATA_EINVAL,
            "regions are of rank %d, their images of rank %d; needed are R "
            "x 4 (x1, y1, x2, y2) and R",
            (int)roi->rank, (int)image->rank);
    if (!index_is_integer(image->dtype))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "the regions' images are of no integer type; i32 or i64 is "
                           "needed: a Cast gives one");
    if (p->size.n > 2)
        return STRATA_FAIL(n, STRATA_EINVAL, "size has %lld values; 1 or 2 are needed",
                           (long long)p->size.n);
    n->out[0].rank = 4;
    n->out[0].dims[0] = roi->dims[0];
    n->out[0].dims[1] = x->dims[1];
    n->out[0].dims[2] = roi_bins(p, 0);
    n->out[0].dims[3] = roi_bins(p, 1);
    return STRATA_OK;
}

static double roi_flops(const strata_node *n)
{
    const strata_roi_align *p = n->params;
    const double points = p->sampling ? (double)p->sampling : 2;
    return 8 * points * points * (double)n->out[0].count;
}

/* A region: its sides, by height and width. */
struct region {
    struct roi_side side[2];
    int64_t image; /* -1: there is no such image */
};

static struct region region_of(const strata_roi_align *p, const strata_tensor *x,
                               const double *corner, int64_t image)
{
    struct region g;
    for (int32_t d = 0; d < 2; d++)
        g.side[d] = roi_side(corner[1 - d], corner[3 - d], roi_bins(p, d), x->dims[2 + d],
                             p->scale, p->sampling, p->coordinates);
    g.image = image >= 0 && image < x->dims[0] ? image : -1;
    return g;
}

/* ---- running --------------------------------------------------------------------- */

/* A point's four elements into n channels' results; channel: their offsets. */
static void take_point(const strata_run *r, const struct roi_pair *h,
                       const struct roi_pair *w, const int64_t *channel, float *sum,
                       int64_t n, int first)
{
    const strata_roi_align *p = r->params;
    const strata_tensor *x = &r->in[0];
    const int64_t row[2] = {h->low * x->strides[2], h->high * x->strides[2]};
    const int64_t column[2] = {w->low * x->strides[3], w->high * x->strides[3]};
    const float weight[4] = {(float)(h->low_weight * w->low_weight),
                             (float)(h->low_weight * w->high_weight),
                             (float)(h->high_weight * w->low_weight),
                             (float)(h->high_weight * w->high_weight)};
    for (int64_t c = 0; c < n; c++) {
        float most = 0;
        for (int32_t k = 0; k < 4; k++) {
            const int64_t at = channel[c] + row[k >> 1] + column[k & 1];
            const float value =
                weight[k] != 0 ? weight[k] * element_load(x->data, x->dtype, at) : 0;
            if (p->mode == STRATA_ROI_AVERAGE)
                sum[c] += value;
            else
                most = k == 0 || value > most || value != value ? value : most;
        }
        if (p->mode == STRATA_ROI_MAX)
            sum[c] = first || most > sum[c] || most != most ? most : sum[c];
    }
}

/* n channels of one bin. */
static void take_bin(const strata_run *r, const struct region *g, int64_t i, int64_t j,
                     const int64_t *channel, float *sum, int64_t n)
{
    const strata_roi_align *p = r->params;
    const struct roi_side *h = &g->side[0], *w = &g->side[1];
    const int64_t points = h->points * w->points;
    int64_t top, bottom, left, right;
    roi_inside(h, i, &top, &bottom);
    roi_inside(w, j, &left, &right);
    const int all = (bottom - top) * (right - left) == points; /* else one is a 0 */
    for (int64_t c = 0; c < n; c++)
        sum[c] = 0;
    for (int64_t a = top; a < bottom && g->image >= 0; a++) {
        const struct roi_pair y = roi_point(h, i, a);
        for (int64_t b = left; b < right; b++) {
            const struct roi_pair x = roi_point(w, j, b);
            take_point(r, &y, &x, channel, sum, n, all && a == top && b == left);
        }
    }
    for (int64_t c = 0; c < n && p->mode == STRATA_ROI_AVERAGE; c++)
        sum[c] /= points > 0 ? (float)points : 1;
}

/* What a region's bins take of a plane, made once for all channels: patches, bin after
 * bin, of the four elements around each point. */
#define POINTS 512 /* of all bins */
#define LINE 128   /* of all bins along a dim */

/* Points along a dim: of rows where both neighbours lie, of columns their window. */
struct line {
    int64_t at[LINE][2];
    float weight[LINE][2];
};

struct table {
    struct patches patches;
    int64_t at[POINTS][2];
    float weight[POINTS][4];
};

static void make_line(struct line *l, const struct roi_side *s, int64_t bins,
                      int is_column)
{
    for (int64_t n = 0; n < bins * s->points; n++) {
        const struct roi_pair p = roi_point(s, n / s->points, n % s->points);
        const int64_t at[2] = {p.low, p.high};
        const float weight[2] = {(float)p.low_weight, (float)p.high_weight};
        memcpy(l->at[n], at, sizeof at);
        memcpy(l->weight[n], weight, sizeof weight);
        if (is_column)
            l->at[n][0] = patch_window(l->weight[n], at, weight, 2, s->dim);
    }
}

/* Point n: row u of `down`, column v of `across`. */
static void make_point(struct table *t, int64_t n, const struct line *down,
                       const struct line *across, int64_t u, int64_t v, int64_t stride)
{
    for (int k = 0; k < 4; k++) {
        t->weight[n][k] = down->weight[u][k >> 1] * across->weight[v][k & 1];
        t->patches.has_zeros |= t->weight[n][k] == 0;
    }
    for (int k = 0; k < 2; k++)
        t->at[n][k] = down->at[u][k] * stride + across->at[v][0];
}

/* Whether points are so few, and neighbours in memory; means of FP32 alone. */
static int has_table(const strata_run *r, const struct region *g)
{
    const strata_roi_align *p = r->params;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const struct roi_side *h = &g->side[0], *w = &g->side[1];
    return p->mode == STRATA_ROI_AVERAGE && x->dtype == STRATA_FP32 && g->image >= 0 &&
           x->strides[3] == 1 && x->dims[3] > 1 && y->strides[3] == 1 &&
           y->strides[2] == y->dims[3] && h->points <= LINE / y->dims[2] &&
           w->points <= LINE / y->dims[3] &&
           y->dims[2] * h->points * y->dims[3] * w->points <= POINTS;
}

static void make_table(struct table *t, const strata_run *r, const struct region *g)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const int64_t rows = g->side[0].points, columns = g->side[1].points;
    struct line down, across;
    int64_t n = 0;
    t->patches = (struct patches){t->at[0], t->weight[0], rows * columns, 0, 0};
    make_line(&down, &g->side[0], y->dims[2], 0);
    make_line(&across, &g->side[1], y->dims[3], 1);
    for (int64_t bin = 0; bin < y->dims[2] * y->dims[3]; bin++) {
        const int64_t i = bin / y->dims[3] * rows, j = bin % y->dims[3] * columns;
        for (int64_t a = 0; a < rows; a++)
            for (int64_t b = 0; b < columns; b++)
                make_point(t, n++, &down, &across, i + a, j + b, x->strides[2]);
    }
}

/* All bins of one channel, whose means lie behind each other. */
static void take_plane(const struct table *t, const struct taps_code *code, float *y,
                       const float *x, int64_t bins, float points)
{
    code->patches(y, &t->patches, x, bins);
    for (int64_t i = 0; i < bins; i++)
        y[i] /= points;
}

/* Channels begin .. begin + n - 1 of all bins of a region. */
static void take_region(const strata_run *r, int64_t region, int64_t begin, int64_t n)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const float *roi = (const float *)r->in[1].data + region * 4;
    const double corner[4] = {(double)roi[0], (double)roi[1], (double)roi[2],
                              (double)roi[3]};
    const struct region g = region_of(r->params, x, corner,
                                      index_value(r->in[2].data, r->in[2].dtype, region));
    int64_t channel[CHANNELS];
    float sum[CHANNELS];
    struct table table;
    const int64_t bins = y->dims[2] * y->dims[3];
    const int64_t each = g.side[0].points * g.side[1].points;
    for (int64_t c = 0; c < n; c++)
        channel[c] = element_channel(x, g.image < 0 ? 0 : g.image, begin + c);
    if (has_table(r, &g)) {
        make_table(&table, r, &g);
        for (int64_t c = 0; c < n; c++)
            take_plane(&table, taps_choose(),
                       (float *)y->data + element_channel(y, region, begin + c),
                       (const float *)x->data + channel[c], bins,
                       each > 0 ? (float)each : 1);
        return;
    }
    for (int64_t i = 0; i < y->dims[2]; i++)
        for (int64_t j = 0; j < y->dims[3]; j++) {
            take_bin(r, &g, i, j, channel, sum, n);
            for (int64_t c = 0; c < n; c++)
                element_store(y->data, y->dtype,
                              element_channel(y, region, begin + c) + i * y->strides[2] +
                                  j * y->strides[3],
                              sum[c]);
        }
}

static int roi_run(const strata_run *r)
{
    const strata_tensor *y = &r->out[0];
    const int64_t pieces = (y->dims[1] + CHANNELS - 1) / CHANNELS;
    int64_t next = 0;
#pragma omp parallel if (y->count >= WALK_PARALLEL / 8)
    for (int64_t i; team_turn(&next, y->dims[0] * pieces, &i);) {
        const int64_t begin = i % pieces * CHANNELS, rest = y->dims[1] - begin;
        take_region(r, i / pieces, begin, rest < CHANNELS ? rest : CHANNELS);
    }
    walk_clear_pads(y);
    return STRATA_OK;
}

/* ---- reference ------------------------------------------------------------------- */

/* The sum of a point's weighted elements, or the largest. */
static double exact_point(int32_t mode, const double *image, int64_t width,
                          const struct roi_pair *y, const struct roi_pair *x)
{
    const int64_t at[4] = {y->low * width + x->low, y->low * width + x->high,
                           y->high * width + x->low, y->high * width + x->high};
    const double weight[4] = {
        y->low_weight * x->low_weight, y->low_weight * x->high_weight,
        y->high_weight * x->low_weight, y->high_weight * x->high_weight};
    double result = 0;
    for (int32_t c = 0; c < 4; c++) {
        const double value = weight[c] != 0 ? weight[c] * image[at[c]] : 0;
        if (mode == STRATA_ROI_AVERAGE)
            result += value;
        else
            result = c == 0 || value > result || isnan(value) ? value : result;
    }
    return result;
}

static double exact_bin(const strata_node *n, const struct region *g, const double *image,
                        int64_t i, int64_t j)
{
    const strata_roi_align *p = n->params;
    const struct roi_side *h = &g->side[0], *w = &g->side[1];
    const int64_t points = h->points * w->points;
    int64_t top, bottom, left, right, taken = 0;
    double sum = 0;
    roi_inside(h, i, &top, &bottom);
    roi_inside(w, j, &left, &right);
    const int all = (bottom - top) * (right - left) == points;
    for (int64_t a = top; a < bottom; a++)
        for (int64_t b = left; b < right; b++) {
            const struct roi_pair y = roi_point(h, i, a), x = roi_point(w, j, b);
            const double value = exact_point(p->mode, image, n->in[0].dims[3], &y, &x);
            if (p->mode == STRATA_ROI_AVERAGE)
                sum += value;
            else
                sum = (all && taken == 0) || value > sum || isnan(value) ? value : sum;
            taken++;
        }
    return p->mode == STRATA_ROI_AVERAGE && points > 0 ? sum / (double)points : sum;
}

static int roi_reference(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    const int64_t count = dense_count(y), plane = x->dims[2] * x->dims[3];
    (void)weight;
    for (int64_t i = 0; i < count; i++) {
        int64_t at[STRATA_MAX_RANK];
        dense_index(y, i, at);
        const struct region g = region_of(n->params, x, (const double *)in[1] + at[0] * 4,
                                          ((const int64_t *)in[2])[at[0]]);
        const double *image =
            (const double *)in[0] + (g.image * x->dims[1] + at[1]) * plane;
        ((double *)out[0])[i] = g.image < 0 ? 0 : exact_bin(n, &g, image, at[2], at[3]);
    }
    return STRATA_OK;
}

/* A region of NaN has no points. */
static const void *roi_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, STRATA_NAN_IGNORED,
                                                     roi_reference};
    return strcmp(id, STRATA_REFERENCE_V2) == 0 ? &reference : NULL;
}

/* ---- tables ---------------------------------------------------------------------- */

static const strata_attr attrs[] = {
    {.name = "size",
     .type = STRATA_INTS,
     .offset = offsetof(strata_roi_align, size),
     .min = 1,
     .max = 65536,
     .def_text = "1",
     .doc = "bins by height and width, one for both or one each"},
    {.name = "mode",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_roi_align, mode),
     .def = STRATA_ROI_AVERAGE,
     .choices = "avg|max",
     .doc = "a bin is the mean of its points, or the largest weighted element of them"},
    {.name = "coordinates",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_roi_align, coordinates),
     .def = STRATA_ROI_HALF_PIXEL,
     .choices = "half_pixel|output_half_pixel",
     .doc =
         "half_pixel moves regions by half an element; output_half_pixel does not, and "
         "makes them at least one element large"},
    {.name = "sampling",
     .type = STRATA_I64,
     .offset = offsetof(strata_roi_align, sampling),
     .min = 0,
     .max = ROI_MOST,
     .doc = "points of a bin per dim; 0: as many as the bin has elements, rounded up"},
    {.name = "scale",
     .type = STRATA_F64,
     .offset = offsetof(strata_roi_align, scale),
     .def = 1,
     .doc = "factor from the regions' coordinates to the input's"},
};

static const strata_row rows[] = {
    {{WALK_FLOATS, STRATA_F32_NCHW, INDEX_FORMATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.05,
     .bandwidth = 0.3,
     .run = roi_run},
};

static const strata_layer roi_align = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "RoiAlign",
    .doc = "Regions of images in bins of interpolated points",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .params_size = sizeof(strata_roi_align),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = roi_shape,
    .flops = roi_flops,
    .extension = roi_extension,
};

static const strata_layer *const layers[] = {&roi_align};
STRATA_MODULE("core", "1.0.0", "RoiAlign", layers)
