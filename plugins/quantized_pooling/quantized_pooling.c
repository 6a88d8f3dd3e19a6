/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedPooling: averages of windows of 8-bit integers, summed in 32 bits and rounded
 * to 8 bits once; and maxima of floats that are rounded to 8 bits.
 */
#include "plugins/common/dense.h"
#include "plugins/common/plane.h"
#include "plugins/common/quantized/channels.h"
#include "plugins/common/walk.h"
#include "plugins/quantized_pooling/average.h"

static const strata_attr attrs[] = {
    {.name = "kind",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_quantized_pooling, pooling.kind),
     .choices = "max|average",
     .def = STRATA_POOL_AVERAGE,
     .doc = "maxima of floats, or averages of integers"},
    {.name = "global",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_quantized_pooling, pooling.global),
     .doc = "the window is the whole plane; takes no kernel, stride, pad or dilation"},
    WINDOW_ATTRS(strata_pooling, /* which is the first member */
                 "window size, one value or one per spatial dim", "border of the input"),
    {.name = "ceil_mode",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_quantized_pooling, pooling.ceil_mode),
     .doc = "round the output size up; the last window still starts in input or begin "
            "pad"},
    {.name = "count_include_pad",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_quantized_pooling, pooling.count_include_pad),
     .doc = "pads count, as zero_in"},
    QUANTIZED_ATTRS(strata_quantized_pooling),
};

static const strata_weight weights[] = {
    [SCALE_IN] = {.name = "scale_in",
                  .flags = STRATA_REQUIRED,
                  .rank = -1,
                  .doc = "factor of the input; of floats without effect"},
    [SCALE_OUT] = {.name = "scale_out",
                   .rank = -1,
                   .doc = "divisor of the output, where that is an integer"},
};

static int weight_shape(const strata_node *n, strata_tensor *expected)
{
    (void)n;
    quantized_expect(&expected[SCALE_IN], STRATA_FP32, 1);
    quantized_expect(&expected[SCALE_OUT], STRATA_FP32, 1);
    return STRATA_OK;
}

static int check_input(const strata_node *n, const strata_quantized_pooling *p)
{
    const int maxima = p->pooling.kind == STRATA_POOL_MAX;
    if (pooling_of_floats(n->in[0].dtype) != maxima)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "maxima are of floats and averages of integers; Pooling has "
                           "maxima of integers");
    if (maxima)
        return p->quantized.to != 0
                   ? STRATA_OK
                   : STRATA_FAIL(n, STRATA_EINVAL,
                                 "maxima become integers; give to = int8 or u8");
    return quantized_check_byte(n, &n->in[0], p->quantized.zero_in);
}

static int shape(const strata_node *n)
{
    const strata_quantized_pooling *p = n->params;
    struct average a;
    int status = check_input(n, p);
    if (status == STRATA_OK)
        status = average_resolve(&a, n);
    if (status != STRATA_OK)
        return status;
    n->out[0].rank = n->in[0].rank;
    n->out[0].dims[0] = n->in[0].dims[0];
    n->out[0].dims[1] = n->in[0].dims[1];
    for (int d = 0; d < a.w.dims; d++)
        n->out[0].dims[2 + d] = a.w.out[a.w.first + d];
    return quantized_check_output(n, &p->quantized, &n->weight[SCALE_OUT]);
}

/* The sum of what stands for something, over what counts; each operation rounds. */
static float mean_of(const strata_quantized *q, int64_t sum, int64_t counted, float scale)
{
    return quantized_activate(q,
                              counted ? (float)(int32_t)sum * scale / (float)counted : 0);
}

/* ---- plain C ------------------------------------------------------------------- */

/* Of one window: spans of its three dims. */
struct place {
    struct average_span s[WINDOW_DIMS];
    int64_t counted, inside;
};

static struct place place_of(const struct average *a, const int64_t *o)
{
    struct place p = {.counted = 1, .inside = 1};
    for (int d = 0; d < WINDOW_DIMS; d++) {
        p.s[d] = average_span(a, d, o[d]);
        p.counted *= p.s[d].counted;
        p.inside *= p.s[d].n;
    }
    return p;
}

/* What a window has: a sum of bytes or the largest of floats. */
struct fold {
    int64_t sum;
    float most;
};

/* A NaN that was found stays. */
static void keep_larger(struct fold *f, float x)
{
    f->most = x > f->most || isnan(x) ? x : f->most;
}

/* n elements, `step` apart. */
static void fold_row(struct fold *f, const strata_tensor *in, int64_t at, int64_t step,
                     int64_t n)
{
    const uint8_t flip = in->dtype == STRATA_INT8 ? 128 : 0;
    if (in->dtype == STRATA_FP32)
        for (int64_t k = 0; k < n; k++)
            keep_larger(f, ((const float *)in->data)[at + k * step]);
    else
        for (int64_t k = 0; k < n; k++)
            f->sum += (((const uint8_t *)in->data)[at + k * step] ^ flip) - flip;
}

static struct fold fold_window(const struct average *a, const strata_tensor *in,
                               int64_t n, const struct place *p, int64_t channel)
{
    const int64_t *step = a->w.dilation;
    const int64_t along = channels_offset(in, channel);
    struct fold f = {0, -INFINITY};
    for (int64_t d = 0; d < p->s[0].n; d++)
        for (int64_t h = 0; h < p->s[1].n; h++) {
            const int64_t i[] = {p->s[0].first + d * step[0], p->s[1].first + h * step[1],
                                 p->s[2].first};
            fold_row(&f, in, channels_place(in, &a->w, n, i) + along,
                     step[2] * in->strides[in->rank - 1], p->s[2].n);
        }
    return f;
}

/* Of the weights that are there, else 1. */
static float scale_of(const strata_run *r, int weight)
{
    return r->weight[weight].rank > 0 ? *(const float *)r->weight[weight].data : 1;
}

/* ---- bytes whose channels lie side by side ------------------------------------------
 */

enum { LANES = 64 }; /* channels at once */

/* The sums of `lanes` channels from `first` on, of a window of image n. */
static void sum_lanes(int32_t *sum, const struct average *a, const strata_tensor *in,
                      int64_t n, const struct place *p, int64_t first, int64_t lanes)
{
    const int64_t *step = a->w.dilation;
    const uint8_t flip = in->dtype == STRATA_INT8 ? 128 : 0;
    memset(sum, 0, LANES * sizeof *sum);
    for (int64_t d = 0; d < p->s[0].n; d++)
        for (int64_t h = 0; h < p->s[1].n; h++)
            for (int64_t w = 0; w < p->s[2].n; w++) {
                const int64_t i[] = {p->s[0].first + d * step[0],
                                     p->s[1].first + h * step[1],
                                     p->s[2].first + w * step[2]};
                const uint8_t *x =
                    (const uint8_t *)in->data + channels_place(in, &a->w, n, i) + first;
                for (int64_t k = 0; k < lanes; k++)
                    sum[k] += (x[k] ^ flip) - flip;
            }
}

/* One window of LANES channels, or as many as are left. */
static void average_lanes(const strata_run *r, int64_t n, const int64_t *o, int64_t first)
{
    const struct average *a = r->state;
    const strata_quantized *q = &((const strata_quantized_pooling *)r->params)->quantized;
    const strata_tensor *in = &r->in[0], *out = &r->out[0];
    const int64_t lanes = window_min(LANES, out->dims[1] - first);
    const struct place p = place_of(a, o);
    const int64_t at = channels_place(out, &a->w, n, o) + first;
    const float scale_in = scale_of(r, SCALE_IN), scale_out = scale_of(r, SCALE_OUT);
    int32_t sum[LANES];
    if (lanes == LANES)
        sum_lanes(sum, a, in, n, &p, first, LANES);
    else
        sum_lanes(sum, a, in, n, &p, first, lanes);
    for (int64_t k = 0; k < lanes; k++)
        quantized_store(q, out, at + k,
                        mean_of(q, sum[k] - p.inside * q->zero_in, p.counted, scale_in),
                        scale_out);
}

static void run_lanes(const strata_run *r)
{
    const struct window *w = &((const struct average *)r->state)->w;
    const int64_t blocks = (r->out[0].dims[1] + LANES - 1) / LANES;
    const int64_t plane = window_out_count(w);
#pragma omp parallel for schedule(static) if (r->in[0].count > 1 << 16)
    for (int64_t task = 0; task < r->in[0].dims[0] * plane * blocks; task++) {
        const int64_t at = task / blocks, i = at % plane;
        int64_t o[WINDOW_DIMS];
        plane_place(o, w->out, i);
        average_lanes(r, at / plane, o, task % blocks * LANES);
    }
}

static int has_lanes(const strata_run *r)
{
    return r->in[0].dtype != STRATA_FP32 && r->in[0].vector <= 1 &&
           r->out[0].vector <= 1 && r->in[0].strides[1] == 1 && r->out[0].strides[1] == 1;
}

/* ---- any --------------------------------------------------------------------------- */

static int run(const strata_run *r)
{
    const struct average *a = r->state;
    const struct window *w = &a->w;
    const strata_quantized *q = &((const strata_quantized_pooling *)r->params)->quantized;
    const strata_tensor *in = &r->in[0], *out = &r->out[0];
    const float scale_in = scale_of(r, SCALE_IN), scale_out = scale_of(r, SCALE_OUT);
    const int64_t channels = out->dims[1], plane = window_out_count(w);
    const int64_t tasks = in->dims[0] * plane;
    if (has_lanes(r)) {
        run_lanes(r);
        return STRATA_OK;
    }
#pragma omp parallel for schedule(static) if (in->count > 1 << 14)
    for (int64_t task = 0; task < tasks * channels; task++) {
        const int64_t c = task % channels, at = task / channels, i = at % plane;
        int64_t o[WINDOW_DIMS];
        plane_place(o, w->out, i);
        const struct place p = place_of(a, o);
        const struct fold f = fold_window(a, in, at / plane, &p, c);
        const float y =
            in->dtype == STRATA_FP32
                ? quantized_activate(q, f.most)
                : mean_of(q, f.sum - p.inside * q->zero_in, p.counted, scale_in);
        quantized_store(q, out,
                        channels_place(out, w, at / plane, o) + channels_offset(out, c),
                        y, scale_out);
    }
    walk_clear_pads(out);
    return STRATA_OK;
}

/* ---- the definition ------------------------------------------------------------ */

/* x: integers; NULL: floats, for their maximum. */
static float defined_value(const strata_quantized_pooling *p, const struct window *w,
                           const int64_t *x, const double *floats, const int64_t *o,
                           float scale)
{
    struct fold f = {0, -INFINITY};
    int64_t counted = 0;
    for (int64_t k = 0; k < window_kernel_count(w); k++) {
        int64_t i[WINDOW_DIMS];
        const bool inside = plane_source(i, w, o, k);
        bool padded = true;
        for (int d = 0; d < WINDOW_DIMS; d++)
            padded &= i[d] < w->in[d] + w->end[d];
        counted += p->pooling.count_include_pad ? padded : inside;
        const int64_t at = plane_element(w->in, i);
        if (inside && x)
            f.sum += x[at] - p->quantized.zero_in;
        else if (inside)
            keep_larger(&f, (float)floats[at]);
    }
    return x ? mean_of(&p->quantized, f.sum, counted, scale)
             : quantized_activate(&p->quantized, f.most);
}

static int reference_run(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const strata_quantized_pooling *p = n->params;
    const int floats = pooling_of_floats(n->in[0].dtype);
    const float scale = floats ? 1 : (float)*(const double *)weight[SCALE_IN];
    struct average a;
    int status = average_resolve(&a, n);
    if (status != STRATA_OK)
        return status;
    const struct window *w = &a.w;
    const int64_t plane = window_out_count(w), in_plane = window_in_count(w);
    for (int64_t e = 0; e < dense_count(&n->out[0]); e++) {
        const int64_t i = e % plane;
        int64_t o[WINDOW_DIMS];
        plane_place(o, w->out, i);
        const int64_t first = e / plane * in_plane;
        const int64_t *x = floats ? NULL : (const int64_t *)in[0] + first;
        quantized_define(&p->quantized, out[0], e,
                         defined_value(p, w, x, (const double *)in[0] + first, o, scale),
                         weight[SCALE_OUT]);
    }
    return STRATA_OK;
}

static const void *extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0, reference_run};
    return dense_extension_typed(id, &reference);
}

/* ---- tables -------------------------------------------------------------------- */

#define ROW(bytes, floats)                                                               \
    {                                                                                    \
        {bytes},                                                                         \
        {                                                                                \
            (bytes) | (floats)                                                           \
        }                                                                                \
    }
static const strata_row rows[] = {
    ROW(STRATA_I8_NCHW | STRATA_U8_NCHW, STRATA_F32_NCHW),
    ROW(STRATA_I8_NHWC | STRATA_U8_NHWC, STRATA_F32_NHWC),
    ROW(STRATA_I8_NC4HW4 | STRATA_U8_NC4HW4, 0),
    ROW(STRATA_I8_NC32HW32 | STRATA_U8_NC32HW32, 0),
    ROW(STRATA_I8_NHWC16, 0),
};

static const strata_row maxima_rows[] = {
    {{STRATA_F32_NCHW}, {STRATA_I8_NCHW | STRATA_U8_NCHW}},
    {{STRATA_F32_NHWC}, {STRATA_I8_NHWC | STRATA_U8_NHWC}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.02,
     .bandwidth = 0.1,
     .state_size = sizeof(struct average),
     .accept = average_accept,
     .setup = average_setup,
     .run = run},
    {.id = 2,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "maxima",
     .rows = STRATA_ARRAY(maxima_rows),
     .efficiency = 0.002,
     .bandwidth = 0.1,
     .state_size = sizeof(struct average),
     .accept = maxima_accept,
     .setup = average_setup,
     .run = run},
};

static const strata_layer layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "QuantizedPooling",
    .doc = "Averages of windows of 8-bit integers; maxima of floats to such.",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_quantized_pooling),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = shape,
    .weight_shape = weight_shape,
    .extension = extension,
};
static const strata_layer *const layers[] = {&layer};
STRATA_MODULE("core", "1.0.0", "QuantizedPooling", layers)
