/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling of 1-D, 2-D and 3-D images: maximum or average over a window. Average divides
 * by the elements inside the input, or with count_include_pad inside input and pads; an
 * output that ceil_mode adds counts no position past the end pad. A window in the pads
 * alone gives minus infinity (maximum) or 0 (average).
 *
 * Each output plane is made by one pass per kernel element that meets the input, along
 * rows. `c` works on
 * fp32:nchw in place, `any` unpacks and packs images of any float format.
 */
#include "plugins/common/image.h"
#include "plugins/common/window.h"

struct pooling {
    struct window w;
    int32_t kind, count_include_pad;
};

static const strata_attr attrs[] = {
    {.name = "kind",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_pooling, kind),
     .choices = "max|average",
     .doc = "maximum or mean of the window"},
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
};

static int pooling_shape(const strata_node *n)
{
    struct window w;
    int status = window_of_pooling(&w, n->params, &n->in[0], n->host, n->err);
    if (status != STRATA_OK)
        return status;
    n->out[0].rank = n->in[0].rank;
    n->out[0].dims[0] = n->in[0].dims[0];
    n->out[0].dims[1] = n->in[0].dims[1];
    for (int d = 0; d < w.dims; d++)
        n->out[0].dims[2 + d] = w.out[w.first + d];
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
    return window_of_pooling(&pool->w, p, &n->in[0], n->host, n->err);
}

/* ---- one plane ----------------------------------------------------------------- */

__attribute__((always_inline)) static inline void pooling_max_row(float *restrict y,
                                                                  const float *restrict x,
                                                                  int64_t stride,
                                                                  int64_t n)
{
    if (stride == 1)
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] > y[i] ? x[i] : y[i];
    else if (stride == 2)
        for (int64_t i = 0; i < n; i++)
            y[i] = x[2 * i] > y[i] ? x[2 * i] : y[i];
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i * stride] > y[i] ? x[i * stride] : y[i];
}

static void pooling_sum_row(float *restrict y, const float *restrict x, int64_t stride,
                            int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i * stride];
}

/* Fold one kernel element into the plane. */
static void pooling_pass(const struct pooling *pool, float *out, const float *in,
                         const int64_t k[WINDOW_DIMS])
{
    const struct window *w = &pool->w;
    int64_t lo[WINDOW_DIMS], hi[WINDOW_DIMS], shift[WINDOW_DIMS];
    for (int d = 0; d < WINDOW_DIMS; d++) {
        window_valid(w, d, k[d], &lo[d], &hi[d]);
        shift[d] = k[d] * w->dilation[d] - w->begin[d];
    }
    if (lo[2] >= hi[2])
        return;
    for (int64_t d = lo[0]; d < hi[0]; d++)
        for (int64_t h = lo[1]; h < hi[1]; h++) {
            int64_t row = (d * w->stride[0] + shift[0]) * w->in[1] + h * w->stride[1] +
                          shift[1];
            float *y = out + (d * w->out[1] + h) * w->out[2] + lo[2];
            const float *x = in + row * w->in[2] + lo[2] * w->stride[2] + shift[2];
            if (pool->kind == STRATA_POOL_MAX)
                pooling_max_row(y, x, w->stride[2], hi[2] - lo[2]);
            else
                pooling_sum_row(y, x, w->stride[2], hi[2] - lo[2]);
        }
}

/* Positions of output o's window along d that an average counts. */
static int64_t pooling_counted(const struct window *w, int d, int64_t o, int32_t with_pad)
{
    int64_t at = o * w->stride[d] - w->begin[d], step = w->dilation[d];
    int64_t end = w->in[d] + (with_pad ? w->end[d] : 0);
    int64_t first = with_pad || at >= 0 ? 0 : (-at + step - 1) / step;
    int64_t last = end > at ? window_min((end - at + step - 1) / step, w->kernel[d]) : 0;
    return window_max(last - first, 0);
}

static void pooling_divide(const struct pooling *pool, float *out)
{
    const struct window *w = &pool->w;
    int32_t pad = pool->count_include_pad;
    for (int64_t d = 0; d < w->out[0]; d++)
        for (int64_t h = 0; h < w->out[1]; h++) {
            int64_t rows = pooling_counted(w, 0, d, pad) * pooling_counted(w, 1, h, pad);
            for (int64_t i = 0; i < w->out[2]; i++, out++) {
                int64_t count = rows * pooling_counted(w, 2, i, pad);
                *out = count ? *out / (float)count : 0;
            }
        }
}

/* The whole plane is one window: partial sums in a row keep FP32 exact enough. */
static float pooling_whole(const struct pooling *pool, const float *in)
{
    enum { LANES = 32 };
    int64_t n = window_in_count(&pool->w), i = 0;
    float lane[LANES];
    for (int l = 0; l < LANES; l++)
        lane[l] = pool->kind == STRATA_POOL_MAX ? -INFINITY : 0;
    for (; i + LANES <= n; i += LANES)
        if (pool->kind == STRATA_POOL_MAX)
            pooling_max_row(lane, in + i, 1, LANES);
        else
            pooling_sum_row(lane, in + i, 1, LANES);
    for (int l = 0; i < n; i++, l++)
        lane[l] = pool->kind != STRATA_POOL_MAX ? lane[l] + in[i]
                  : in[i] > lane[l]             ? in[i]
                                                : lane[l];
    double sum = 0;
    float top = -INFINITY;
    for (int l = 0; l < LANES; l++) {
        sum += lane[l];
        top = lane[l] > top ? lane[l] : top;
    }
    return pool->kind == STRATA_POOL_MAX ? top : (float)(sum / (double)n);
}

static int pooling_is_whole(const struct window *w)
{
    int whole = 1;
    for (int d = 0; d < WINDOW_DIMS; d++)
        whole &= w->kernel[d] == w->in[d] && w->begin[d] == 0 && w->end[d] == 0 &&
                 (w->dilation[d] == 1 || w->kernel[d] == 1);
    return whole;
}

static void pooling_plane(const struct pooling *pool, float *out, const float *in)
{
    const struct window *w = &pool->w;
    int64_t plane = window_out_count(w), k[WINDOW_DIMS];
    if (pooling_is_whole(w)) {
        *out = pooling_whole(pool, in);
        return;
    }
    for (int64_t i = 0; i < plane; i++)
        out[i] = pool->kind == STRATA_POOL_MAX ? -INFINITY : 0;
    for (k[0] = window_next(w, 0, 0); k[0] < w->kernel[0];
         k[0] = window_next(w, 0, k[0] + 1))
        for (k[1] = window_next(w, 1, 0); k[1] < w->kernel[1];
             k[1] = window_next(w, 1, k[1] + 1))
            for (k[2] = window_next(w, 2, 0); k[2] < w->kernel[2];
                 k[2] = window_next(w, 2, k[2] + 1))
                pooling_pass(pool, out, in, k);
    if (pool->kind == STRATA_POOL_AVERAGE)
        pooling_divide(pool, out);
}

static void pooling_planes(const struct pooling *pool, float *out, const float *in,
                           int64_t planes)
{
    int64_t in_plane = window_in_count(&pool->w), out_plane = window_out_count(&pool->w);
#pragma omp parallel for if (planes * in_plane > IMAGE_PARALLEL)
    for (int64_t c = 0; c < planes; c++)
        pooling_plane(pool, out + c * out_plane, in + c * in_plane);
}

/* ---- impls --------------------------------------------------------------------- */

static int c_run(const strata_run *r)
{
    pooling_planes(r->state, r->out[0].data, r->in[0].data,
                   r->in[0].dims[0] * r->in[0].dims[1]);
    return STRATA_OK;
}

/* Input and output of one image. */
static size_t any_workspace(const strata_node *n)
{
    size_t bytes = 0;
    return image_reserve(&bytes, &n->in[0]) && image_reserve(&bytes, &n->out[0])
               ? bytes
               : SIZE_MAX;
}

static int any_run(const strata_run *r)
{
    char *workspace = r->workspace;
    float *in = image_take(&workspace, &r->in[0]);
    float *out = image_take(&workspace, &r->out[0]);
    for (int64_t n = 0; n < r->in[0].dims[0]; n++) {
        image_unpack(in, &r->in[0], n);
        pooling_planes(r->state, out, in, r->in[0].dims[1]);
        image_pack(&r->out[0], n, out);
    }
    return STRATA_OK;
}

/* ---- the definition ------------------------------------------------------------ */

static double reference_element(const strata_pooling *p, const struct window *w,
                                const double *in, const int64_t *o)
{
    double sum = 0, top = -INFINITY;
    int64_t counted = 0;
    for (int64_t k = 0; k < window_kernel_count(w); k++) {
        int64_t kernel[] = {k / w->kernel[2] / w->kernel[1],
                            k / w->kernel[2] % w->kernel[1], k % w->kernel[2]};
        int64_t i[WINDOW_DIMS];
        int inside = 1, padded = 1;
        for (int d = 0; d < WINDOW_DIMS; d++) {
            i[d] = o[d] * w->stride[d] - w->begin[d] + kernel[d] * w->dilation[d];
            inside &= i[d] >= 0 && i[d] < w->in[d];
            padded &= i[d] < w->in[d] + w->end[d];
        }
        counted += p->count_include_pad ? padded : inside;
        if (!inside)
            continue;
        double x = in[(i[0] * w->in[1] + i[1]) * w->in[2] + i[2]];
        sum += x;
        top = x > top ? x : top;
    }
    return p->kind == STRATA_POOL_MAX ? top : counted ? sum / (double)counted : 0;
}

static int reference_run(const strata_node *n, const double *const *in,
                         const double *const *weight, double *const *out)
{
    struct window w;
    int status = window_of_pooling(&w, n->params, &n->in[0], n->host, n->err);
    (void)weight;
    if (status != STRATA_OK)
        return status;
    int64_t plane = window_out_count(&w);
    for (int64_t c = 0; c < n->in[0].dims[0] * n->in[0].dims[1]; c++)
        for (int64_t i = 0; i < plane; i++) {
            int64_t o[] = {i / w.out[2] / w.out[1], i / w.out[2] % w.out[1],
                           i % w.out[2]};
            out[0][c * plane + i] =
                reference_element(n->params, &w, in[0] + c * window_in_count(&w), o);
        }
    return STRATA_OK;
}

static const strata_reference reference = {sizeof reference, STRATA_NAN_IGNORED,
                                           reference_run};

static const void *pooling_extension(const char *id)
{
    return strcmp(id, STRATA_REFERENCE_V1) == 0 ? &reference : NULL;
}

/* ---- tables -------------------------------------------------------------------- */

static const strata_row c_rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};
static const strata_row any_rows[] = {
    {{STRATA_FOUR | STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_F32_NC8HW8 |
      STRATA_F32_NC16HW16},
     {STRATA_SAME}},
};

static const strata_impl impls[] = {
    {.id = 1, .device = STRATA_HOST, .name = "c", .rows = STRATA_ARRAY(c_rows),
     .efficiency = 0.007, .bandwidth = 0.9, .state_size = sizeof(struct pooling),
     .setup = pooling_setup, .run = c_run},
    {.id = 2, .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED | STRATA_STRIDED_IN | STRATA_STRIDED_OUT, .name = "any",
     .rows = STRATA_ARRAY(any_rows), .efficiency = 0.007, .bandwidth = 0.18,
     .state_size = sizeof(struct pooling),
     .workspace = any_workspace, .setup = pooling_setup, .run = any_run},
};

static const strata_layer pooling = {
    .struct_size = sizeof(strata_layer), .version = 1, .name = "Pooling",
    .doc = "Maximum or average over a window, or over the whole plane; ranks 3 to 5.",
    .min_in = 1, .max_in = 1, .n_out = 1, .params_size = sizeof(strata_pooling),
    .attrs = STRATA_ARRAY(attrs), .impls = STRATA_ARRAY(impls), .shape = pooling_shape,
    .flops = pooling_flops, .extension = pooling_extension,
};
static const strata_layer *const layers[] = {&pooling};
STRATA_MODULE("core", "1.0.0", "Pooling", layers)
