/* SPDX-License-Identifier: Apache-2.0
 *
 * Resize: dims to another size. Nearest copies elements; interpolation weighs neighbours
 * along each dim by a linear or cubic filter, which may be widened where the input is
 * sampled down.
 */
#include <strata/layers.h>

#include "plugins/common/dense.h"
#include "plugins/common/fill.h"
#include "plugins/common/walk.h"
#include "plugins/resize/resize.h"
#include "plugins/resize/interpolate.h"

/* ---- shape ----------------------------------------------------------------------- */

static int check_axes(const strata_node *n)
{
    const strata_resize *p = n->params;
    const int32_t rank = n->in[0].rank, axes = resize_axes(p, rank);
    uint32_t seen = 0;
    if (!p->axes.n && (rank < 3 || rank > 2 + RESIZE_AXES))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "input has rank %d; without axes 3 to %d are allowed",
                           (int)rank, 2 + RESIZE_AXES);
    if (p->mode != STRATA_NEAREST && axes > RESIZE_AXES)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "%d axes are interpolated; at most %d are: leave out those "
                           "that keep their size",
                           (int)axes, RESIZE_AXES);
    for (int32_t k = 0; k < axes; k++) {
        const int32_t d = resize_dim(p, rank, k);
        const int64_t axis = p->axes.n ? p->axes.v[k] : d;
        if (axis < -rank || axis >= rank || (seen >> d & 1))
            return STRATA_FAIL(
                n, STRATA_EINVAL,
                "axes holds %lld; needed are different dims of a tensor of "
                "rank %d",
                (long long)axis, (int)rank);
        seen |= 1u << d;
    }
    return STRATA_OK;
}

static int check_lists(const strata_node *n)
{
    const strata_resize *p = n->params;
    const int64_t axes = resize_axes(p, n->in[0].rank);
    const int64_t given = p->size.n + p->scale.n + p->like.n;
    const int kinds = (p->size.n > 0) + (p->scale.n > 0) + (p->like.n > 0);
    if (kinds != 1)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "%s of size, scale and like given; one is needed",
                           kinds ? "more than one" : "none");
    if ((given != 1 || p->like.n) && given != axes)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "%s has %lld values; %lld dims are resized: %s%lld are needed",
                           p->size.n    ? "size"
                           : p->scale.n ? "scale"
                                        : "like",
                           (long long)given, (long long)axes, p->like.n ? "" : "1 or ",
                           (long long)axes);
    if ((p->like.n > 0) != (n->n_in > 1))
        return STRATA_FAIL(n, STRATA_EINVAL, "like goes with a second input");
    for (int32_t k = 0; k < p->like.n; k++)
        if (resize_like(p, &n->in[1], k) < 0)
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "like holds %lld; the second input has rank %d",
                               (long long)p->like.v[k], (int)n->in[1].rank);
    if (p->coordinates == STRATA_TF_CROP_AND_RESIZE ? p->roi.n != 2 * axes : p->roi.n > 0)
        return STRATA_FAIL(
            n, STRATA_EINVAL,
            "roi has %lld values; coordinates tf_crop_and_resize takes %lld "
            "(begins, then ends), others none",
            (long long)p->roi.n, (long long)(2 * axes));
    return STRATA_OK;
}

static int resize_shape(const strata_node *n)
{
    const strata_resize *p = n->params;
    const strata_tensor *x = &n->in[0];
    strata_tensor *out = &n->out[0];
    int status = check_axes(n);
    if (status == STRATA_OK)
        status = check_lists(n);
    if (status)
        return status;
    out->rank = x->rank;
    memcpy(out->dims, x->dims, sizeof x->dims);
    for (int32_t k = 0; k < resize_axes(p, x->rank); k++) {
        const int32_t d = resize_dim(p, x->rank, k);
        const double dim = x->dims[d] > 0 ? resize_length(p, x, k) : 0;
        if (!(dim >= 1 && dim <= INT32_MAX))
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "dim %d of %lld would become %g; allowed is 1 to %d",
                               (int)d, (long long)x->dims[d], dim, (int)INT32_MAX);
        out->dims[d] = (int64_t)dim;
    }
    return STRATA_OK;
}

static double resize_flops(const strata_node *n)
{
    const strata_resize *p = n->params;
    double taps = 1;
    for (int32_t k = 0; k < resize_axes(p, n->in[0].rank); k++) {
        const struct resize_axis a = resize_axis(p, &n->in[0], &n->out[0], k);
        taps *= a.in == a.out ? 1 : (double)resize_taps(&a);
    }
    return p->mode == STRATA_NEAREST ? 0 : 2 * taps * (double)n->out[0].count;
}

static int accept_nearest(const strata_node *n)
{
    const strata_resize *p = n->params;
    return p->mode == STRATA_NEAREST
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "computes mode nearest only");
}

/* Whether no resized dim lies in vectors. */
static int accept_whole(const strata_node *n)
{
    const strata_resize *p = n->params;
    const strata_tensor *x = &n->in[0];
    for (int32_t k = 0; x->vector > 1 && k < resize_axes(p, x->rank); k++)
        if (resize_dim(p, x->rank, k) == x->vector_dim)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                               "dim %d is resized and lies in vectors of %d; a format "
                               "without vectors is needed",
                               (int)x->vector_dim, (int)x->vector);
    return STRATA_OK;
}

static int accept_taps(const strata_node *n)
{
    const strata_resize *p = n->params;
    return p->mode != STRATA_NEAREST
               ? accept_whole(n)
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "computes interpolation only");
}

static int accept_rows(const strata_node *n)
{
    const strata_resize *p = n->params;
    return p->mode == STRATA_NEAREST && p->coordinates != STRATA_TF_CROP_AND_RESIZE &&
                   resize_axes(p, n->in[0].rank) <= RESIZE_AXES
               ? accept_whole(n)
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "computes mode nearest of up to %d axes only, without "
                             "extrapolation",
                             RESIZE_AXES);
}

/* ---- nearest --------------------------------------------------------------------- */

/* Dim of one resized axis: the output indices that copy an input element, and which. */
static void nearest_map(struct walk *w, const strata_run *r, int32_t k)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const struct resize_axis a = resize_axis(r->params, x, y, k);
    struct walk_axis *axis = &w->axis[a.dim];
    int64_t n = 0;
    for (int64_t i = 0; i < a.out; i++) {
        const int64_t from = resize_nearest(r->params, &a, i);
        if (from < 0)
            continue;
        axis->at[0][n] = walk_offset(y, a.dim, i);
        axis->at[1][n++] = walk_offset(x, a.dim, from);
    }
    axis->n = n;
}

static int nearest_run(const strata_run *r)
{
    const strata_resize *p = r->params;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    struct walk w;
    walk_over(&w, 2, y, y->dims, r->workspace);
    walk_map_all(&w, 0, y);
    walk_map_all(&w, 1, x);
    for (int32_t k = 0; k < resize_axes(p, x->rank); k++)
        nearest_map(&w, r, k);
    if (p->coordinates == STRATA_TF_CROP_AND_RESIZE)
        fill_memory(y, p->extrapolation);
    walk_copy(&w, y, x);
    walk_clear_pads(y);
    return STRATA_OK;
}

/* ---- reference ------------------------------------------------------------------- */

/* Weight of tap k of output index i in FP64, and its index; NAN outside. */
static double exact_tap(const strata_resize *p, const struct resize_axis *a, int64_t i,
                        int64_t k, int64_t *index)
{
    const double at = resize_coordinate(p, a, i);
    const int64_t first = (int64_t)floor(at - a->support) + 1, taps = resize_taps(a);
    double sum = 0;
    for (int64_t t = 0; t < taps; t++)
        sum += resize_share(p, a, at, first + t);
    *index = (int64_t)element_clamp((double)(first + k), 0, (double)(a->in - 1));
    if (resize_outside(p, a, at))
        return NAN;
    return resize_share(p, a, at, first + k) /
           ((p->exclude_outside || resize_smooths(p)) && sum != 0 ? sum : 1);
}

/* Value at an output index, by its neighbours. */
static double exact_mix(const strata_node *n, const struct resize_axis *axis,
                        const double *in, const int64_t *index)
{
    const strata_resize *p = n->params;
    const int32_t axes = resize_axes(p, n->in[0].rank);
    int64_t at[STRATA_MAX_RANK], combinations = 1;
    double sum = 0;
    memcpy(at, index, sizeof at);
    for (int32_t k = 0; k < axes; k++)
        combinations *= resize_taps(&axis[k]);
    for (int64_t m = 0; m < combinations; m++) {
        int64_t rest = m;
        double weight = 1;
        for (int32_t k = 0; k < axes; k++) {
            const int64_t taps = resize_taps(&axis[k]);
            const int32_t d = axis[k].dim;
            weight *= exact_tap(p, &axis[k], index[d], rest % taps, &at[d]);
            rest /= taps;
        }
        if (weight != 0)
            sum += weight * in[dense_offset(&n->in[0], at)];
        if (isnan(weight))
            return p->extrapolation;
    }
    return sum;
}

static void exact_nearest(const strata_node *n, const struct resize_axis *axis,
                          const void *in, int64_t *index, void *out)
{
    const strata_resize *p = n->params;
    int inside = 1;
    for (int32_t k = 0; k < resize_axes(p, n->in[0].rank); k++) {
        const int64_t i = resize_nearest(p, &axis[k], index[axis[k].dim]);
        index[axis[k].dim] = i;
        inside = inside && i >= 0;
    }
    fill_reference(n->out[0].dtype, p->extrapolation, out);
    if (inside) /* a double or an int64_t */
        memcpy(out, (const char *)in + dense_offset(&n->in[0], index) * 8, 8);
}

static int resize_reference(const strata_node *n, const void *const *in,
                            const void *const *weight, void *const *out)
{
    const strata_resize *p = n->params;
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    struct resize_axis axis[STRATA_MAX_RANK];
    int64_t count = dense_count(y), index[STRATA_MAX_RANK];
    (void)weight;
    for (int32_t k = 0; k < resize_axes(p, x->rank); k++)
        axis[k] = resize_axis(p, x, y, k);
    for (int64_t i = 0; i < count; i++) {
        dense_index(y, i, index);
        if (p->mode == STRATA_NEAREST)
            exact_nearest(n, axis, in[0], index, (char *)out[0] + i * 8);
        else
            ((double *)out[0])[i] = exact_mix(n, axis, in[0], index);
    }
    return STRATA_OK;
}

static const void *resize_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     resize_reference};
    return strcmp(id, STRATA_REFERENCE_V2) == 0 ? &reference : NULL;
}

/* ---- tables ---------------------------------------------------------------------- */

static const strata_attr attrs[] = {
    {.name = "mode",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_resize, mode),
     .def = STRATA_NEAREST,
     .choices = "nearest|bilinear|linear|cubic",
     .doc = "interpolation along each resized dim; bilinear is another name of linear"},
    {.name = "coordinates",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_resize, coordinates),
     .def = STRATA_HALF_PIXEL,
     .choices = "half_pixel|asymmetric|align_corners|pytorch_half_pixel|"
                "half_pixel_symmetric|tf_crop_and_resize",
     .doc = "where an output index lies in the input"},
    {.name = "size",
     .type = STRATA_INTS,
     .offset = offsetof(strata_resize, size),
     .min = 1,
     .max = INT32_MAX,
     .doc = "resized dims of the output, one for all or one each"},
    {.name = "scale",
     .type = STRATA_REALS,
     .offset = offsetof(strata_resize, scale),
     .min = 1e-6,
     .max = 1e6,
     .doc = "factors, one for all or one each: out = floor(in*scale)"},
    {.name = "axes",
     .type = STRATA_INTS,
     .offset = offsetof(strata_resize, axes),
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc =
         "dims that are resized; empty: the spatial ones; negative ones count from the "
         "end"},
    {.name = "nearest",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_resize, nearest),
     .def = STRATA_ROUND_BY_COORDINATES,
     .choices = "auto|round_prefer_floor|round_prefer_ceil|floor|ceil",
     .doc = "which index mode nearest takes; auto: floor with asymmetric, else "
            "round_prefer_floor"},
    {.name = "keep_aspect",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_resize, keep_aspect),
     .def = STRATA_ASPECT_STRETCH,
     .choices = "stretch|not_larger|not_smaller",
     .doc = "with size: one factor for all dims, so that none is larger or smaller than "
            "its size"},
    {.name = "cubic_a",
     .type = STRATA_F64,
     .offset = offsetof(strata_resize, cubic_a),
     .def = -0.75,
     .doc = "coefficient of the cubic filter"},
    {.name = "roi",
     .type = STRATA_REALS,
     .offset = offsetof(strata_resize, roi),
     .doc =
         "for tf_crop_and_resize: where each resized dim begins, then where each ends, "
         "in shares of the dim"},
    {.name = "extrapolation",
     .type = STRATA_F64,
     .offset = offsetof(strata_resize, extrapolation),
     .doc = "value where tf_crop_and_resize leaves the input"},
    {.name = "antialias",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_resize, antialias),
     .doc = "widen the filter by 1/scale where a dim gets smaller; not for nearest"},
    {.name = "exclude_outside",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_resize, exclude_outside),
     .doc = "give neighbours outside of the input no share; else they are the border"},
    {.name = "like",
     .type = STRATA_INTS,
     .offset = offsetof(strata_resize, like),
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc = "dims of the second input that the resized dims become, one each"},
};

static const strata_row nearest_rows[] = {{{WALK_ALL, WALK_ALL}, {STRATA_SAME}}};
static const strata_row taps_rows[] = {{{WALK_FLOATS, WALK_ALL}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "nearest",
     .rows = STRATA_ARRAY(nearest_rows),
     .efficiency = 1,
     .bandwidth = 0.3,
     .accept = accept_nearest,
     .workspace = walk_pair_memory,
     .run = nearest_run},
    {.id = 3,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "taps",
     .rows = STRATA_ARRAY(taps_rows),
     .efficiency = 0.15,
     .bandwidth = 0.3,
     .accept = accept_taps,
     .workspace = resize_taps_workspace,
     .run = resize_taps_run},
    {.id = 4,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "rows",
     .rows = STRATA_ARRAY(nearest_rows),
     .efficiency = 1,
     .bandwidth = 0.6,
     .accept = accept_rows,
     .workspace = resize_nearest_workspace,
     .run = resize_nearest_run},
};

static const strata_layer resize = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Resize",
    .doc = "Dims to another size, by nearest, linear or cubic interpolation",
    .min_in = 1,
    .max_in = 2,
    .n_out = 1,
    .params_size = sizeof(strata_resize),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = resize_shape,
    .flops = resize_flops,
    .extension = resize_extension,
};

static const strata_layer *const layers[] = {&resize};
STRATA_MODULE("core", "1.0.0", "Resize", layers)
