/* SPDX-License-Identifier: Apache-2.0
 *
 * LRN, local response normalization over channels: y[c] = x[c]*(bias + alpha/size * sum of
 * x^2 over the channels around c)^-beta. Some pixels are taken at a time with all their
 * channels, so that a window's rows lie in the L1 cache. Each window is summed anew: a sum
 * that slides by subtraction would keep an infinity, and rounding, for all channels behind.
 * `c` works on fp32:nchw in place, `any` unpacks and packs pixels of any float format.
 */
#include "plugins/lrn/lrn.h"

#include "plugins/common/image.h"
#include "plugins/common/walk.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#define LRN_PIXELS 128 /* unpacked at a time */
#define LRN_LANES 32   /* pixels whose sums are registers */

static const strata_attr attrs[] = {
    {.name = "size",
     .type = STRATA_I64,
     .flags = STRATA_REQUIRED,
     .offset = offsetof(strata_lrn, size),
     .min = 1,
     .max = INT32_MAX,
     .doc = "channels in a window; the odd one of an even size lies behind"},
    {.name = "alpha",
     .type = STRATA_F64,
     .offset = offsetof(strata_lrn, alpha),
     .def = 1e-4,
     .doc = "factor of the mean square"},
    {.name = "beta",
     .type = STRATA_F64,
     .offset = offsetof(strata_lrn, beta),
     .def = 0.75,
     .doc = "exponent"},
    {.name = "bias",
     .type = STRATA_F64,
     .offset = offsetof(strata_lrn, bias),
     .def = 1,
     .doc = "what is added to the mean square"},
};

static int lrn_shape(const strata_node *n)
{
    if (n->in[0].rank < 3 || n->in[0].rank > 5)
        return STRATA_FAIL(n, STRATA_EINVAL, "input has rank %d; allowed is 3 to 5",
                           (int)n->in[0].rank);
    n->out[0].rank = n->in[0].rank;
    memcpy(n->out[0].dims, n->in[0].dims, sizeof n->out[0].dims);
    return STRATA_OK;
}

static double lrn_flops(const strata_node *n)
{
    const strata_lrn *p = n->params;
    double flops = 2 * (double)p->size + 8;
    for (int d = 0; d < n->in[0].rank; d++)
        flops *= (double)n->in[0].dims[d];
    return flops;
}

static int lrn_setup(const strata_node *n, void *state)
{
    *(struct lrn *)state = lrn_of(n->params);
    return STRATA_OK;
}

/* ---- pixels -------------------------------------------------------------------- */

/* y = x*base^-beta; the usual exponents need no power. */
static void lrn_scale(const struct lrn *l, float *restrict y, const float *restrict x,
                      const float *restrict sum, int64_t n)
{
    float bias = l->bias, factor = l->factor;
    if (l->beta == 0.75f)
        for (int64_t i = 0; i < n; i++) {
            float root = sqrtf(bias + factor * sum[i]);
            y[i] = x[i] / (root * sqrtf(root));
        }
    else if (l->beta == 0.5f)
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] / sqrtf(bias + factor * sum[i]);
    else if (l->beta == 1)
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] / (bias + factor * sum[i]);
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] * powf(bias + factor * sum[i], -l->beta);
}

static void lrn_sum(float *restrict sum, const float *restrict x, int64_t pitch,
                    int64_t rows)
{
    for (int i = 0; i < LRN_LANES; i++)
        sum[i] = 0;
    for (int64_t r = 0; r < rows; r++, x += pitch)
        for (int i = 0; i < LRN_LANES; i++)
            sum[i] += x[i] * x[i];
}

/* n pixels of all channels; rows of x and y are `pitch` apart. */
static void lrn_pixels(const struct lrn *l, float *y, const float *x, int64_t pitch,
                       int64_t channels, int64_t n)
{
    for (int64_t c = 0; c < channels; c++) {
        int64_t first = c > l->before ? c - l->before : 0;
        int64_t last = channels - c > l->after ? c + l->after + 1 : channels, i = 0;
        float sum[LRN_LANES];
        for (; i + LRN_LANES <= n; i += LRN_LANES) {
            lrn_sum(sum, x + first * pitch + i, pitch, last - first);
            lrn_scale(l, y + c * pitch + i, x + c * pitch + i, sum, LRN_LANES);
        }
        for (int64_t p = i; p < n; p++) {
            sum[p - i] = 0;
            for (int64_t r = first; r < last; r++)
                sum[p - i] += x[r * pitch + p] * x[r * pitch + p];
        }
        lrn_scale(l, y + c * pitch + i, x + c * pitch + i, sum, n - i);
    }
}

/* ---- impls --------------------------------------------------------------------- */

static int64_t lrn_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int c_run(const strata_run *r)
{
    const strata_tensor *in = &r->in[0];
    int64_t plane = image_plane(in), image = in->dims[1] * plane;
    int64_t parts = (plane + LRN_PIXELS - 1) / LRN_PIXELS;
    const float *x = in->data;
    float *y = r->out[0].data;
#pragma omp parallel for if (in->count > IMAGE_PARALLEL)
    for (int64_t task = 0; task < in->dims[0] * parts; task++) {
        int64_t from = task % parts * LRN_PIXELS;
        int64_t at = task / parts * image + from;
        lrn_pixels(r->state, y + at, x + at, plane, in->dims[1],
                   lrn_least(LRN_PIXELS, plane - from));
    }
    return STRATA_OK;
}

static int64_t lrn_threads(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

/* Pixels as they come and as they go, of all channels, at least one; 0: overflow. */
static size_t any_share(const strata_tensor *t)
{
    const size_t channels = t->dims[1] > 0 ? (size_t)t->dims[1] : 1;
    size_t bytes = 2 * LRN_PIXELS * sizeof(float);
    return __builtin_mul_overflow(bytes, channels, &bytes) ? 0 : bytes;
}

static size_t any_workspace(const strata_node *n)
{
    size_t bytes = any_share(&n->in[0]);
    return !bytes || __builtin_mul_overflow(bytes, (size_t)lrn_threads(), &bytes)
               ? SIZE_MAX
               : bytes;
}

static void any_part(const strata_run *r, int64_t image, struct image_part part,
                     float *scratch)
{
    int64_t channels = r->in[0].dims[1], n = part.to - part.from;
    float *out = scratch + channels * LRN_PIXELS;
    image_unpack_part(scratch, &r->in[0], image, part);
    lrn_pixels(r->state, out, scratch, n, channels, n);
    image_pack_part(&r->out[0], image, part, out);
}

static int any_run(const strata_run *r)
{
    const strata_tensor *in = &r->in[0];
    int64_t plane = image_plane(in), parts = (plane + LRN_PIXELS - 1) / LRN_PIXELS;
    size_t share = any_share(in);
    int64_t made = share ? (int64_t)(r->workspace_size / share) : 1; /* never more */
    int threads = (int)lrn_least(in->count > IMAGE_PARALLEL ? made : 1, lrn_threads());
    (void)threads;
#pragma omp parallel for num_threads(threads)
    for (int64_t task = 0; task < in->dims[0] * parts; task++) {
        int64_t from = task % parts * LRN_PIXELS;
        struct image_part part = {from, lrn_least(from + LRN_PIXELS, plane)};
        char *scratch = r->workspace;
#ifdef _OPENMP
        scratch += share * (size_t)omp_get_thread_num();
#endif
        any_part(r, task / parts, part, (float *)(void *)scratch);
    }
    return STRATA_OK;
}

/* ---- the definition ------------------------------------------------------------ */

static int reference_run(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const strata_lrn *p = n->params;
    const double *x = in[0];
    double *y = out[0];
    int64_t channels = n->in[0].dims[1], plane = image_plane(&n->in[0]);
    (void)weight;
    for (int64_t i = 0; i < n->in[0].dims[0] * channels * plane; i++) {
        int64_t c = i / plane % channels;
        int64_t first = c - (p->size - 1) / 2, last = c + p->size / 2;
        double sum = 0;
        for (int64_t k = first < 0 ? 0 : first; k <= last && k < channels; k++) {
            double v = x[i + (k - c) * plane];
            sum += v * v;
        }
        y[i] = x[i] / pow(p->bias + p->alpha / (double)p->size * sum, p->beta);
    }
    return STRATA_OK;
}

static const strata_reference_typed reference = {sizeof reference, 0, reference_run};

static const void *lrn_extension(const char *id)
{
    return strcmp(id, STRATA_REFERENCE_V2) == 0 ? &reference : NULL;
}

/* ---- tables -------------------------------------------------------------------- */

static const strata_row c_rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};
static const strata_row any_rows[] = {{{WALK_FLOATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1, .device = STRATA_HOST, .name = "c", .rows = STRATA_ARRAY(c_rows),
     .efficiency = 0.2, .bandwidth = 0.5, .state_size = sizeof(struct lrn),
     .setup = lrn_setup, .run = c_run},
    {.id = 2, .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED | STRATA_STRIDED_IN | STRATA_STRIDED_OUT, .name = "any",
     .rows = STRATA_ARRAY(any_rows), .efficiency = 0.15, .bandwidth = 0.2,
     .state_size = sizeof(struct lrn), .workspace = any_workspace, .setup = lrn_setup,
     .run = any_run},
};

static const strata_layer lrn = {
    .struct_size = sizeof(strata_layer), .version = 1, .name = "LRN",
    .doc = "Local response normalization over neighbouring channels; ranks 3 to 5.",
    .min_in = 1, .max_in = 1, .n_out = 1, .params_size = sizeof(strata_lrn),
    .attrs = STRATA_ARRAY(attrs), .impls = STRATA_ARRAY(impls), .shape = lrn_shape,
    .flops = lrn_flops, .extension = lrn_extension,
};
static const strata_layer *const layers[] = {&lrn};
STRATA_MODULE("core", "1.0.0", "LRN", layers)
