/* SPDX-License-Identifier: Apache-2.0
 *
 * Resize: the spatial dims to another size. An output index i is at input coordinate
 *   half_pixel     (i + 1/2)*in/out - 1/2
 *   asymmetric     i*in/out
 *   align_corners  i*(in - 1)/(out - 1)
 * where in/out is 1/scale when a scale is given. Nearest takes the floor of it with
 * asymmetric, else the nearest index, ties to the lower one. Bilinear mixes the 2, 4 or 8
 * neighbours; coordinates outside are moved to the border first.
 */
#include <strata/layers.h>

#include "plugins/common/dense.h"
#include "plugins/resize/resize.h"
#include "plugins/common/walk.h"

#define SPATIAL 3 /* dims at most */
#define CORNERS (1 << SPATIAL)

/* Whether a list has one entry for all, or one for each spatial dim. */
static int resize_fits(int64_t n, int32_t rank)
{
    return n == 1 || n == rank - 2;
}

static int resize_check(const strata_node *n)
{
    const strata_resize *p = n->params;
    int32_t rank = n->in[0].rank;
    if (rank < 3 || rank > 2 + SPATIAL)
        return STRATA_FAIL(n, STRATA_EINVAL, "input has rank %d; allowed is 3 to %d",
                           (int)rank, 2 + SPATIAL);
    if ((p->size.n > 0) == (p->scale.n > 0))
        return STRATA_FAIL(n, STRATA_EINVAL, "%s of size and scale given; one is needed",
                           p->size.n ? "both" : "none");
    if (!resize_fits(p->size.n + p->scale.n, rank))
        return STRATA_FAIL(
            n, STRATA_EINVAL,
            "%s has %lld values; an input with %d spatial dims takes 1 or %d",
            p->size.n ? "size" : "scale", (long long)(p->size.n + p->scale.n),
            (int)rank - 2, (int)rank - 2);
    return STRATA_OK;
}

static int resize_shape(const strata_node *n)
{
    const strata_resize *p = n->params;
    const strata_tensor *x = &n->in[0];
    strata_tensor *out = &n->out[0];
    int status = resize_check(n);
    if (status)
        return status;
    out->rank = x->rank;
    out->dims[0] = x->dims[0];
    out->dims[1] = x->dims[1];
    for (int32_t d = 2; d < x->rank; d++) {
        int64_t k = p->size.n + p->scale.n == 1 ? 0 : d - 2;
        double dim =
            p->size.n ? (double)p->size.v[k] : floor((double)x->dims[d] * p->scale.v[k]);
        if (!(dim >= 1 && dim <= INT32_MAX))
            return STRATA_FAIL(
                n, STRATA_EINVAL,
                "spatial dim %d of %lld would become %g; allowed is 1 to %d", (int)d - 2,
                (long long)x->dims[d], dim, (int)INT32_MAX);
        out->dims[d] = (int64_t)dim;
    }
    return STRATA_OK;
}

static double resize_flops(const strata_node *n)
{
    const strata_resize *p = n->params;
    return p->mode == STRATA_NEAREST
               ? 0
               : 2.0 * (1 << (n->in[0].rank - 2)) * (double)n->out[0].count;
}

static int resize_accept_nearest(const strata_node *n)
{
    const strata_resize *p = n->params;
    return p->mode == STRATA_NEAREST
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "computes mode nearest only");
}

static int resize_accept_bilinear(const strata_node *n)
{
    const strata_resize *p = n->params;
    return p->mode == STRATA_BILINEAR
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "computes mode bilinear only");
}

static int resize_nearest_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    struct walk w;
    walk_over(&w, 2, y, y->dims, r->workspace);
    walk_map_all(&w, 0, y);
    walk_map(&w, 1, 0, x, 0, 1);
    walk_map(&w, 1, 1, x, 0, 1);
    for (int32_t d = 2; d < y->rank; d++)
        for (int64_t i = 0; i < y->dims[d]; i++)
            w.axis[d].at[1][i] = walk_offset(x, d, resize_nearest(r->params, x, y, d, i));
    walk_copy(&w, y, x);
    walk_clear_pads(y);
    return STRATA_OK;
}

/* Operands of the bilinear walk: the output, the corners, and for each spatial dim the
 * index into its shares. */
struct resize_call {
    const strata_run *run;
    int32_t dims, corners;
    float *share[SPATIAL]; /* of the upper neighbour, by output index */
};

static int resize_operands(const strata_node *n)
{
    int dims = n->out[0].rank - 2;
    return 1 + (1 << dims) + dims;
}

static size_t resize_bilinear_workspace(const strata_node *n)
{
    /* one more entry per index than the walk's own holds the shares */
    return walk_memory(resize_operands(n) + 1, n->out[0].dims, n->out[0].rank);
}

/* Tables of spatial dim d (from 0): bit d of a corner's number tells its neighbour. */
static void resize_map(struct walk *w, struct resize_call *c, int32_t d)
{
    const strata_tensor *x = &c->run->in[0], *y = &c->run->out[0];
    struct walk_axis *a = &w->axis[d + 2];
    for (int64_t i = 0; i < a->n; i++) {
        double share;
        int64_t low = resize_lower(c->run->params, x, y, d + 2, i, &share);
        int64_t high = low + 1 < x->dims[d + 2] ? low + 1 : low;
        for (int32_t k = 0; k < c->corners; k++)
            a->at[1 + k][i] = walk_offset(x, d + 2, k >> d & 1 ? high : low);
        a->at[1 + c->corners + d][i] = i;
        c->share[d][i] = (float)share;
    }
}

#define INLINE static inline __attribute__((always_inline))

/* Weight of each corner; at: positions in the shares. */
INLINE void resize_weights(const struct resize_call *c, int32_t dims, const int64_t *at,
                           float *weight)
{
    weight[0] = 1;
    for (int32_t d = 0; d < dims; d++) {
        float share = c->share[d][at[d]];
        for (int32_t k = 0; k < 1 << d; k++) {
            weight[k | 1 << d] = weight[k] * share;
            weight[k] *= 1 - share;
        }
    }
}

/* One element at offsets `at`; dims is a constant where this is inlined. */
INLINE void resize_element(const struct resize_call *c, int32_t dims, const int64_t *at)
{
    const strata_tensor *x = &c->run->in[0], *y = &c->run->out[0];
    float weight[CORNERS], sum = 0;
    resize_weights(c, dims, at + 1 + (1 << dims), weight);
    for (int32_t k = 0; k < 1 << dims; k++)
        if (weight[k] != 0) /* a neighbour that has no share may be infinite */
            sum += weight[k] * element_load(x->data, x->dtype, at[1 + k]);
    element_store(y->data, y->dtype, at[0], sum);
}

/* A run that changes weights, at every inner position. */
INLINE void resize_elements(const struct resize_call *c, int32_t dims,
                            const struct walk *w, const int64_t *base, int64_t n)
{
    const struct walk_axis *inner = walk_inner(w);
    int32_t operands = 1 + (1 << dims) + dims;
    for (int64_t i = 0; i < inner->n; i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t at[WALK_OPERANDS];
            for (int32_t k = 0; k < operands; k++)
                at[k] = base[k] + inner->at[k][i * inner->every] + j * w->step[k];
            resize_element(c, dims, at);
        }
}

/* n <= WALK_ROW elements that share their weights. */
static void resize_piece(const struct resize_call *c, const int64_t *step,
                         const int64_t *at, int64_t n)
{
    const strata_tensor *x = &c->run->in[0], *y = &c->run->out[0];
    float weight[CORNERS], sum[WALK_ROW], buffer[WALK_ROW];
    resize_weights(c, c->dims, at + 1 + c->corners, weight);
    for (int64_t j = 0; j < n; j++)
        sum[j] = 0;
    for (int32_t k = 0; k < c->corners; k++) {
        if (weight[k] == 0)
            continue;
        const float *row = walk_load(x, at[1 + k], step[1 + k], n, buffer);
        for (int64_t j = 0; j < n; j++)
            sum[j] += weight[k] * row[j];
    }
    element_store_row(y->data, y->dtype, at[0], step[0], sum, n);
}

/* Whether weights hold along a run: it has lanes or channels only. */
static int resize_steady(const struct resize_call *c, const struct walk *w, int64_t n)
{
    for (int k = 1 + c->corners; k < w->operands; k++)
        if (w->step[k] != 0)
            return 0;
    return n > 1;
}

static void resize_row(const void *arg, const struct walk *w, const int64_t *base,
                       int64_t n)
{
    const struct resize_call *c = arg;
    const struct walk_axis *inner = walk_inner(w);
    if (!resize_steady(c, w, n)) {
        switch (c->dims) {
        case 1: resize_elements(c, 1, w, base, n); return;
        case 2: resize_elements(c, 2, w, base, n); return;
        default: resize_elements(c, 3, w, base, n); return;
        }
    }
    for (int64_t i = 0; i < inner->n; i++)
        for (int64_t j = 0; j < n; j += WALK_ROW) {
            int64_t at[WALK_OPERANDS];
            for (int k = 0; k < w->operands; k++)
                at[k] = base[k] + inner->at[k][i * inner->every] + j * w->step[k];
            resize_piece(c, w->step, at, n - j < WALK_ROW ? n - j : WALK_ROW);
        }
}

static int resize_bilinear_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    int32_t dims = y->rank - 2, corners = 1 << dims;
    struct resize_call c = {r, dims, corners, {NULL}};
    struct walk w;
    int64_t *memory = r->workspace;
    for (int32_t d = 0; d < dims; d++) {
        c.share[d] = (float *)memory;
        memory += y->dims[2 + d];
    }
    walk_over(&w, 1 + corners + dims, y, y->dims, memory);
    walk_map_all(&w, 0, y);
    for (int32_t k = 0; k < corners; k++) {
        walk_map(&w, 1 + k, 0, x, 0, 1);
        walk_map(&w, 1 + k, 1, x, 0, 1);
    }
    for (int32_t d = 0; d < dims; d++)
        resize_map(&w, &c, d);
    walk_run(&w, resize_row, &c);
    walk_clear_pads(y);
    return STRATA_OK;
}

/* Value at an output index, by its neighbours in FP64. */
static double resize_mix(const strata_node *n, const double *in, const int64_t *index)
{
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    int32_t dims = x->rank - 2;
    double sum = 0;
    for (int32_t k = 0; k < 1 << dims; k++) {
        int64_t at[STRATA_MAX_RANK] = {index[0], index[1]};
        double weight = 1, share;
        for (int32_t d = 0; d < dims; d++) {
            at[2 + d] = resize_lower(n->params, x, y, 2 + d, index[2 + d], &share);
            if (k >> d & 1 && at[2 + d] + 1 < x->dims[2 + d])
                at[2 + d]++;
            weight *= k >> d & 1 ? share : 1 - share;
        }
        if (weight != 0)
            sum += weight * in[dense_offset(x, at)];
    }
    return sum;
}

static int resize_reference(const strata_node *n, const double *const *in,
                            const double *const *weight, double *const *out)
{
    const strata_resize *p = n->params;
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    int64_t count = dense_count(y), index[STRATA_MAX_RANK];
    (void)weight;
    for (int64_t i = 0; i < count; i++) {
        dense_index(y, i, index);
        if (p->mode == STRATA_BILINEAR) {
            out[0][i] = resize_mix(n, in[0], index);
            continue;
        }
        for (int32_t d = 2; d < y->rank; d++)
            index[d] = resize_nearest(p, x, y, d, index[d]);
        out[0][i] = in[0][dense_offset(x, index)];
    }
    return STRATA_OK;
}

static const void *resize_extension(const char *id)
{
    static const strata_reference reference = {sizeof reference, 0, resize_reference};
    return dense_extension(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "mode",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_resize, mode),
     .def = STRATA_NEAREST,
     .choices = "nearest|bilinear",
     .doc = "interpolation; bilinear is linear along each spatial dim"},
    {.name = "coordinates",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_resize, coordinates),
     .def = STRATA_HALF_PIXEL,
     .choices = "half_pixel|asymmetric|align_corners",
     .doc =
         "where an output index lies in the input; nearest rounds down with asymmetric, "
         "else to the nearest, ties down"},
    {.name = "size",
     .type = STRATA_INTS,
     .offset = offsetof(strata_resize, size),
     .min = 1,
     .max = INT32_MAX,
     .doc = "spatial dims of the output, one for all or one each"},
    {.name = "scale",
     .type = STRATA_REALS,
     .offset = offsetof(strata_resize, scale),
     .min = 1e-6,
     .max = 1e6,
     .doc = "factors, one for all or one each: out = floor(in*scale)"},
};

static const strata_row nearest_rows[] = {{{WALK_ALL}, {STRATA_SAME}}};
static const strata_row bilinear_rows[] = {{{WALK_FLOATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "nearest",
     .rows = STRATA_ARRAY(nearest_rows),
     .efficiency = 1,
     .bandwidth = 0.3,
     .accept = resize_accept_nearest,
     .workspace = walk_pair_memory,
     .run = resize_nearest_run},
    {.id = 2,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "bilinear",
     .rows = STRATA_ARRAY(bilinear_rows),
     .efficiency = 0.02,
     .bandwidth = 0.3,
     .accept = resize_accept_bilinear,
     .workspace = resize_bilinear_workspace,
     .run = resize_bilinear_run},
};

static const strata_layer resize = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Resize",
    .doc = "Spatial dims to another size, by nearest or linear interpolation",
    .min_in = 1,
    .max_in = 1,
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
