/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling of 1-D, 2-D and 3-D images: maximum, average or p-norm over a window. Average
 * divides by the elements inside the input, or with count_include_pad inside input and
 * pads; an output that ceil_mode adds counts no position past the end pad. A window in
 * the pads alone gives minus infinity (maximum, of index -1) or 0. A NaN is a window's
 * maximum, and the first of equal ones is its index.
 *
 * Rows of outputs are made one after the other (strip.h); where indices are asked for, a
 * plane by one pass per kernel element that meets the input. `c` works on fp32:nchw in
 * place, `any` unpacks and packs images of any float format.
 */
#include "plugins/common/dense.h"
#include "plugins/common/image.h"
#include "plugins/common/plane.h"
#include "plugins/common/reduce/reduce.h"
#include "plugins/common/walk.h"
#include "plugins/common/window.h"
#include "plugins/pooling/pairs.h"
#include "plugins/pooling/triples.h"

static const strata_attr attrs[] = {
    {.name = "kind",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_pooling, kind),
     .choices = "max|average|lp",
     .doc = "maximum, mean or p-norm of the window"},
    {.name = "global",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_pooling, global),
     .doc = "the window is the whole plane; takes no kernel, stride, pad or dilation"},
    WINDOW_ATTRS(strata_pooling, "window size, one value or one per spatial dim",
                 "border of the input"),
    {.name = "ceil_mode",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_pooling, ceil_mode),
     .doc = "round the output size up; the last window still starts in input or begin "
            "pad"},
    {.name = "count_include_pad",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_pooling, count_include_pad),
     .doc = "average counts pads as zeros"},
    {.name = "indices",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_pooling, indices),
     .doc = "a second output, i64: where each maximum is in the whole input, flat"},
    {.name = "p",
     .type = STRATA_F64,
     .offset = offsetof(strata_pooling, p),
     .def = 2,
     .min = 1,
     .max = 1e6,
     .doc = "of lp: (sum |x|^p)^(1/p)"},
};

static int pooling_outputs(const void *params)
{
    return ((const strata_pooling *)params)->indices ? 2 : 1;
}

static int pooling_shape(const strata_node *n)
{
    const strata_pooling *p = n->params;
    struct window w;
    int status = window_of_pooling(&w, p, &n->in[0], n->host, n->err);
    if (status != STRATA_OK)
        return status;
    if (p->indices && p->kind != STRATA_POOL_MAX)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "indices are of maxima; remove indices, or give kind = max");
    for (int i = 0; i < pooling_outputs(p); i++) {
        n->out[i].rank = n->in[0].rank;
        n->out[i].dims[0] = n->in[0].dims[0];
        n->out[i].dims[1] = n->in[0].dims[1];
        for (int d = 0; d < w.dims; d++)
            n->out[i].dims[2 + d] = w.out[w.first + d];
    }
    if (p->indices)
        n->out[1].dtype = STRATA_INT64;
    return STRATA_OK;
}

static double pooling_flops(const strata_node *n)
{
    struct window w;
    double flops = 1;
    if (window_of_pooling(&w, n->params, &n->in[0], n->host, n->err) != STRATA_OK)
        return 0;
    for (int d = 0; d < n->out[0].rank; d++)
        flops *= (double)n->out[0].dims[d];
    return flops * (double)window_kernel_count(&w);
}

static int pooling_setup(const strata_node *n, void *state)
{
    const strata_pooling *p = n->params;
    struct pooling *pool = state;
    pool->kind = p->kind;
    pool->count_include_pad = p->count_include_pad;
    pool->p = (float)p->p;
    return window_of_pooling(&pool->w, p, &n->in[0], n->host, n->err);
}

/* ---- one plane ----------------------------------------------------------------- */

/* The maximum and its place: `at` is that of x[0] in the whole input. */
static void pooling_index_row(float *restrict y, int64_t *restrict index,
                              const float *restrict x, int64_t at, int64_t stride,
                              int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float v = x[i * stride], a = y[i];
        int take = v > a || index[i] < 0 || (v != v && a == a);
        y[i] = take ? v : a;
        index[i] = take ? at + i * stride : index[i];
    }
}

/* Where a plane goes; index NULL: it is not asked for. */
struct pooling_target {
    float *out;
    int64_t *index;
    pooling_run_rows *fold;
    int64_t at; /* of the plane in the whole input */
};

static void pooling_index_rows(const struct pooling_target *to, int64_t y,
                               const float *in, int64_t x, const struct pooling_rows *r)
{
    for (int64_t i = 0; i < r->rows; i++, y += r->y_step, x += r->x_step)
        pooling_index_row(to->out + y, to->index + y, in + x, to->at + x, r->stride,
                          r->n);
}

/* Fold one kernel element into the plane. */
static void pooling_pass(const struct pooling *pool, const struct pooling_target *to,
                         const float *in, const int64_t k[WINDOW_DIMS])
{
    const struct window *w = &pool->w;
    int64_t lo[WINDOW_DIMS], hi[WINDOW_DIMS], shift[WINDOW_DIMS];
    for (int d = 0; d < WINDOW_DIMS; d++) {
        window_valid(w, d, k[d], &lo[d], &hi[d]);
        shift[d] = k[d] * w->dilation[d] - w->begin[d];
    }
    if (lo[2] >= hi[2])
        return;
    const struct pooling_rows rows = {hi[1] - lo[1], hi[2] - lo[2], w->stride[2],
                                      w->out[2], w->stride[1] * w->in[2]};
    for (int64_t d = lo[0]; d < hi[0]; d++) {
        const int64_t row =
            (d * w->stride[0] + shift[0]) * w->in[1] + lo[1] * w->stride[1] + shift[1];
        const int64_t y = (d * w->out[1] + lo[1]) * w->out[2] + lo[2];
        const int64_t x = row * w->in[2] + lo[2] * w->stride[2] + shift[2];
        if (to->index)
            pooling_index_rows(to, y, in, x, &rows);
        else
            to->fold(pool, to->out + y, in + x, &rows);
    }
}

/* Means of a plane's sums. */
static void pooling_divide(const struct pooling *pool, float *out)
{
    const struct window *w = &pool->w;
    for (int64_t d = 0; d < w->out[0]; d++)
        for (int64_t h = 0; h < w->out[1]; h++, out += w->out[2]) {
            const int64_t rows =
                pooling_counted(pool, 0, d) * pooling_counted(pool, 1, h);
            for (int64_t i = 0; i < w->out[2]; i++) {
                const int64_t count = rows * pooling_counted(pool, 2, i);
                out[i] = count ? out[i] / (float)count : 0;
            }
        }
}

/* The whole plane is one window: partial sums in a row keep FP32 exact enough. */
static float pooling_whole(const struct pooling *pool, const float *in)
{
    enum { LANES = 32 };
    int64_t n = window_in_count(&pool->w), i = 0;
    float lane[LANES];
    if (pool->kind == STRATA_POOL_AVERAGE)
        return gather_choose()->row(GATHER_SUM, in, n, 0) / (float)n;
    for (int l = 0; l < LANES; l++)
        lane[l] = pool->kind == STRATA_POOL_MAX ? -INFINITY : 0;
    for (; i + LANES <= n; i += LANES)
        pooling_rows_of(pool, lane, in + i, &(struct pooling_rows){1, LANES, 1, 0, 0});
    pooling_rows_of(pool, lane, in + i, &(struct pooling_rows){1, n - i, 1, 0, 0});
    double sum = 0;
    float top = -INFINITY;
    for (int l = 0; l < LANES; l++) {
        sum += lane[l];
        top = pooling_larger(top, lane[l]);
    }
    return pool->kind == STRATA_POOL_MAX ? top : pooling_root(pool->p, sum);
}

static int pooling_is_whole(const struct window *w)
{
    int whole = 1;
    for (int d = 0; d < WINDOW_DIMS; d++)
        whole &= w->kernel[d] == w->in[d] && w->begin[d] == 0 && w->end[d] == 0 &&
                 (w->dilation[d] == 1 || w->kernel[d] == 1);
    return whole;
}

/* All kernel elements that some output sees. */
static void pooling_passes(const struct pooling *pool, const struct pooling_target *to,
                           const float *in)
{
    const struct window *w = &pool->w;
    int64_t k[WINDOW_DIMS];
    for (k[0] = window_next(w, 0, 0); k[0] < w->kernel[0];
         k[0] = window_next(w, 0, k[0] + 1))
        for (k[1] = window_next(w, 1, 0); k[1] < w->kernel[1];
             k[1] = window_next(w, 1, k[1] + 1))
            for (k[2] = window_next(w, 2, 0); k[2] < w->kernel[2];
                 k[2] = window_next(w, 2, k[2] + 1))
                pooling_pass(pool, to, in, k);
}

static void pooling_plane(const struct pooling *pool, const struct pooling_target *to,
                          const float *in)
{
    int64_t plane = window_out_count(&pool->w);
    for (int64_t i = 0; i < plane; i++)
        to->out[i] = pool->kind == STRATA_POOL_MAX ? -INFINITY : 0;
    for (int64_t i = 0; i < plane && to->index; i++)
        to->index[i] = -1;
    pooling_passes(pool, to, in);
    if (pool->kind == STRATA_POOL_AVERAGE)
        pooling_divide(pool, to->out);
    for (int64_t i = 0; i < plane && pool->kind == STRATA_POOL_LP; i++)
        to->out[i] = pooling_root(pool->p, (double)to->out[i]);
}

/* Rows of outputs in strips of `most`. */
static void pooling_strips(const struct pooling *pool, float *out, const float *in,
                           int64_t planes, int64_t most)
{
    const int64_t in_plane = window_in_count(&pool->w), all = pool->w.out[2];
    const int64_t out_plane = window_out_count(&pool->w);
    pooling_run_strip *run = ROW_BEST(pooling_strip);
#pragma omp parallel if (planes * in_plane > IMAGE_PARALLEL)
    for (int64_t first = 0; first < all; first += most) {
        struct pooling_strip s;
        pooling_strip_at(&s, pool, first, window_min(most, all - first));
#pragma omp for schedule(static) nowait
        for (int64_t c = 0; c < planes; c++)
            run(pool, &s, out + c * out_plane, in + c * in_plane);
    }
}

/* The planes of a thread one after the other. units: of a plane, that `run` takes. */
static void pooling_straight(const struct pooling *pool, pooling_run_pairs *run,
                             float *out, const float *in, int64_t planes, int64_t units)
{
    const int64_t in_plane = window_in_count(&pool->w);
    const int64_t out_plane = window_out_count(&pool->w);
#pragma omp parallel for schedule(static) if (planes * in_plane > IMAGE_PARALLEL)
    for (int64_t c = 0; c < planes; c++)
        run(pool, out + c * out_plane, in + c * in_plane, units);
}

/* Where they ask for indices, or windows are very wide: by the kernel's elements. */
static void pooling_by_elements(const struct pooling *pool, float *out, int64_t *index,
                                const float *in, int64_t first, int64_t planes)
{
    int64_t in_plane = window_in_count(&pool->w), out_plane = window_out_count(&pool->w);
#pragma omp parallel for if (planes * in_plane > IMAGE_PARALLEL)
    for (int64_t c = 0; c < planes; c++) {
        struct pooling_target to = {out + c * out_plane,
                                    index ? index + c * out_plane : NULL,
                                    ROW_BEST(pooling_rows), (first + c) * in_plane};
        pooling_plane(pool, &to, in + c * in_plane);
    }
}

/* index: NULL, or that of the first plane, which is number `first` of the input. */
static void pooling_planes(const struct pooling *pool, float *out, int64_t *index,
                           const float *in, int64_t first, int64_t planes)
{
    const int64_t in_plane = window_in_count(&pool->w);
    const int64_t most = pooling_strip_most(&pool->w);
    const int simple = pool->kind != STRATA_POOL_LP || pool->p == 2;
    if (index || (most == 0 && !pooling_is_whole(&pool->w)))
        pooling_by_elements(pool, out, index, in, first, planes);
    else if (simple && pooling_is_pairs(&pool->w))
        pooling_straight(pool, ROW_BEST(pooling_pairs), out, in, planes,
                         pool->w.out[0] * pool->w.out[1]);
    else if (simple && pooling_triples(pool))
        pooling_straight(pool, pooling_triples(pool), out, in, planes, 1);
    else if (!pooling_is_whole(&pool->w))
        pooling_strips(pool, out, in, planes, most);
    else
#pragma omp parallel for if (planes * in_plane > IMAGE_PARALLEL)
        for (int64_t c = 0; c < planes; c++)
            out[c] = pooling_whole(pool, in + c * in_plane);
}

/* ---- impls --------------------------------------------------------------------- */

static int c_run(const strata_run *r)
{
    pooling_planes(r->state, r->out[0].data, r->n_out > 1 ? r->out[1].data : NULL,
                   r->in[0].data, 0, r->in[0].dims[0] * r->in[0].dims[1]);
    return STRATA_OK;
}

/* Input, output and, at 8 bytes each, indices of one image. */
static size_t any_workspace(const strata_node *n)
{
    const strata_tensor *out = &n->out[0];
    size_t bytes = 0;
    if (!image_reserve(&bytes, &n->in[0]) || !image_reserve(&bytes, out) ||
        (n->n_out > 1 && (!image_reserve(&bytes, out) || !image_reserve(&bytes, out))))
        return SIZE_MAX;
    return bytes;
}

/* Indices of image n to where they belong, whatever the pitches. */
static void any_pack_indices(const strata_tensor *t, int64_t n, const int64_t *from)
{
    struct image_rows r = image_rows(t);
    for (int64_t c = 0; c < t->dims[1]; c++)
        for (int64_t row = 0; row < r.n[0] * r.n[1]; row++, from += r.length) {
            int64_t *to = (int64_t *)t->data + element_channel(t, n, c) +
                          row / r.n[1] * r.stride[0] + row % r.n[1] * r.stride[1];
            for (int64_t i = 0; i < r.length; i++)
                to[i * r.step] = from[i];
        }
}

static int any_run(const strata_run *r)
{
    char *workspace = r->workspace;
    int64_t channels = r->in[0].dims[1], *index = NULL;
    float *in = image_take(&workspace, &r->in[0]);
    float *out = image_take(&workspace, &r->out[0]);
    if (r->n_out > 1)
        index = (int64_t *)(void *)workspace;
    for (int64_t n = 0; n < r->in[0].dims[0]; n++) {
        image_unpack(in, &r->in[0], n);
        pooling_planes(r->state, out, index, in, n * channels, channels);
        image_pack(&r->out[0], n, out);
        if (index)
            any_pack_indices(&r->out[1], n, index);
    }
    return STRATA_OK;
}

/* ---- the definition ------------------------------------------------------------ */

/* One output; *index: where its maximum is in the plane, -1 in the pads alone. */
static double reference_element(const strata_pooling *p, const struct window *w,
                                const void *in, int32_t dtype, int64_t first,
                                const int64_t *o, int64_t *index)
{
    const int real = dense_is_real(dtype);
    double sum = 0, top = -INFINITY;
    int64_t counted = 0;
    *index = -1;
    for (int64_t k = 0; k < window_kernel_count(w); k++) {
        int64_t i[WINDOW_DIMS];
        const bool inside = plane_source(i, w, o, k);
        bool padded = true;
        for (int d = 0; d < WINDOW_DIMS; d++)
            padded &= i[d] < w->in[d] + w->end[d];
        counted += p->count_include_pad ? padded : inside;
        if (!inside)
            continue;
        int64_t at = plane_element(w->in, i);
        double x = real ? ((const double *)in)[first + at]
                        : (double)((const int64_t *)in)[first + at];
        sum += p->kind == STRATA_POOL_LP ? pow(fabs(x), p->p) : x;
        if (*index < 0 || x > top || (isnan(x) && !isnan(top))) {
            top = x;
            *index = at;
        }
    }
    return p->kind == STRATA_POOL_MAX  ? top
           : p->kind == STRATA_POOL_LP ? pow(sum, 1 / p->p)
           : counted                   ? sum / (double)counted
                                       : 0;
}

static int reference_run(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const strata_pooling *p = n->params;
    const int32_t dtype = n->in[0].dtype;
    struct window w;
    int status = window_of_pooling(&w, p, &n->in[0], n->host, n->err);
    (void)weight;
    if (status != STRATA_OK)
        return status;
    int64_t plane = window_out_count(&w), in_plane = window_in_count(&w);
    for (int64_t i = 0; i < n->in[0].dims[0] * n->in[0].dims[1] * plane; i++) {
        int64_t c = i / plane, rest = i % plane, index;
        int64_t o[WINDOW_DIMS];
        plane_place(o, w.out, rest);
        const double y = reference_element(p, &w, in[0], dtype, c * in_plane, o, &index);
        if (dense_is_real(dtype))
            ((double *)out[0])[i] = y;
        else /* the maximum of none is the least there is */
            ((int64_t *)out[0])[i] =
                y == -INFINITY ? (dtype == STRATA_UINT8 ? 0 : INT8_MIN) : (int64_t)y;
        if (p->indices)
            ((int64_t *)out[1])[i] = index < 0 ? -1 : c * in_plane + index;
    }
    return STRATA_OK;
}

static const strata_reference_typed reference = {sizeof reference, 0, reference_run};

static const void *pooling_extension(const char *id)
{
    return strcmp(id, STRATA_REFERENCE_V2) == 0 ? &reference : NULL;
}

/* ---- tables -------------------------------------------------------------------- */

/* Indices, where they are asked for, are linear. */
static const strata_row c_rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME, STRATA_I64_NCHW}}};
static const strata_row any_rows[] = {{{WALK_FLOATS}, {STRATA_SAME, STRATA_I64_NCHW}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .name = "c",
     .rows = STRATA_ARRAY(c_rows),
     .efficiency = 0.04,
     .bandwidth = 0.9,
     .state_size = sizeof(struct pooling),
     .setup = pooling_setup,
     .run = c_run},
    {.id = 2,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED | STRATA_STRIDED_IN | STRATA_STRIDED_OUT,
     .name = "any",
     .rows = STRATA_ARRAY(any_rows),
     .efficiency = 0.007,
     .bandwidth = 0.18,
     .state_size = sizeof(struct pooling),
     .workspace = any_workspace,
     .setup = pooling_setup,
     .run = any_run},
};

static const strata_layer pooling = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Pooling",
    .doc = "Maximum, average or p-norm over a window, or the whole plane; ranks 3 to 5.",
    .min_in = 1,
    .max_in = 1,
    .n_out = -1,
    .params_size = sizeof(strata_pooling),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = pooling_shape,
    .flops = pooling_flops,
    .outputs = pooling_outputs,
    .extension = pooling_extension,
};
static const strata_layer *const layers[] = {&pooling};
STRATA_MODULE("core", "1.0.0", "Pooling", layers)
