/* SPDX-License-Identifier: Apache-2.0
 *
 * FullyConnected: y[m] = bias[m] + sum of weight[m][k]*x[k] over a whole image x in
 * C, D, H, W order. Small batches are bound by reading the weights, once each, so the
 * inner loops stream them. `c` works on fp32:nchw in place, `any` unpacks the images.
 */
#include <strata/layers.h>

#include "plugins/common/quantized/factors.h"
#include "plugins/common/activate.h"
#include "plugins/common/image.h"

enum { WEIGHT, BIAS, FACTORS };
enum { ROWS = 4, LANES = 8, CHUNK = 8 * LANES };

static const strata_attr attrs[] = {
    {.name = "units", .type = STRATA_I64,
     .offset = offsetof(strata_fully_connected, units), .min = 0, .max = INT32_MAX,
     .doc = "outputs per image; 0 takes them from the weight"},
    {.name = "transposed", .type = STRATA_BOOL,
     .offset = offsetof(strata_fully_connected, transposed),
     .doc = "the weight is inputs x units instead of units x inputs"},
};

static const strata_weight weights[] = {
    {.name = "weight", .flags = STRATA_REQUIRED, .rank = 2,
     .doc = "units x inputs, or inputs x units if transposed"},
    {.name = "bias", .rank = 1, .doc = "units"},
    FACTORS_WEIGHT("unit"),
};

/* ---- shapes -------------------------------------------------------------------- */

static int fully_connected_sizes(const strata_node *n, int64_t *units, int64_t *inputs)
{
    const strata_fully_connected *p = n->params;
    const strata_tensor *in = &n->in[0], *weight = &n->weight[WEIGHT];
    if (in->rank < 2)
        return STRATA_FAIL(n, STRATA_EINVAL, "input has rank %d; at least 2 is needed",
                           (int)in->rank);
    *units = p->units ? p->units : weight->rank == 2 ? weight->dims[p->transposed] : 0;
    if (*units < 1)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "units is not known; give units = N or a weight");
    *inputs = 1;
    for (int d = 1; d < in->rank; d++)
        if (__builtin_mul_overflow(*inputs, in->dims[d], inputs))
            return STRATA_FAIL(n, STRATA_EOVERFLOW,
                               "an image of the input has over 2^63 elements");
    if (*inputs == 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "an image of the input is empty; only the batch may be 0");
    return STRATA_OK;
}

static int fully_connected_weight_shape(const strata_node *n, strata_tensor *expected)
{
    const strata_fully_connected *p = n->params;
    int64_t units = 0, inputs = 0;
    int status = fully_connected_sizes(n, &units, &inputs);
    if (status != STRATA_OK)
        return status;
    expected[WEIGHT].dtype = expected[BIAS].dtype = STRATA_FP32;
    expected[WEIGHT].rank = 2;
    expected[WEIGHT].dims[0] = p->transposed ? inputs : units;
    expected[WEIGHT].dims[1] = p->transposed ? units : inputs;
    expected[BIAS].rank = 1;
    expected[BIAS].dims[0] = units;
    factors_shape(&expected[FACTORS], &n->weight[FACTORS], &expected[WEIGHT],
                  p->transposed != 0);
    return STRATA_OK;
}

/* (N, units) and ones up to the input's rank. */
static int fully_connected_shape(const strata_node *n)
{
    int64_t units = 0, inputs = 0;
    int status = fully_connected_sizes(n, &units, &inputs);
    if (status != STRATA_OK)
        return status;
    n->out[0].rank = n->in[0].rank;
    for (int d = 2; d < n->in[0].rank; d++)
        n->out[0].dims[d] = 1;
    n->out[0].dims[0] = n->in[0].dims[0];
    n->out[0].dims[1] = units;
    return STRATA_OK;
}

static double fully_connected_flops(const strata_node *n)
{
    double flops = 2 * (double)n->out[0].dims[1];
    for (int d = 0; d < n->in[0].rank; d++)
        flops *= (double)n->in[0].dims[d];
    return flops;
}

/* ---- core: FP32 rows ----------------------------------------------------------- */

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));

/* A body is compiled once for the build's CPU and once for AVX2. */
#define BODY __attribute__((always_inline)) static inline
#define LOAD(v, p) memcpy(&(v), (p), sizeof(v))

/* y[0..ROWS) = dot products of x with rows of w, `inputs` apart. The next rows are asked
 * for meanwhile, for a processor that reads ahead by itself stops at the ends of pages; an
 * address behind the last row does no harm. */
BODY void dot_body(float *y, const float *x, const float *w, int64_t inputs)
{
    vector sum[ROWS][2] = {0};
    int64_t k = 0;
    for (; k + 2 * LANES <= inputs; k += 2 * LANES) {
        vector a[2], b[2];
        LOAD(a[0], x + k);
        LOAD(a[1], x + k + LANES);
#pragma GCC unroll 8
        for (int m = 0; m < ROWS; m++) {
            LOAD(b[0], w + m * inputs + k);
            LOAD(b[1], w + m * inputs + k + LANES);
            __builtin_prefetch((const void *)((uintptr_t)w +
                                              (uintptr_t)((m + ROWS) * inputs + k) *
                                                  sizeof *w));
            sum[m][0] += a[0] * b[0];
            sum[m][1] += a[1] * b[1];
        }
    }
    for (int m = 0; m < ROWS; m++) {
        float total = 0;
        for (int64_t i = k; i < inputs; i++)
            total += x[i] * w[m * inputs + i];
        sum[m][0] += sum[m][1];
        for (int l = 0; l < LANES; l++)
            total += sum[m][0][l];
        y[m] = total;
    }
}

/* y[0..CHUNK) = sums over k of x[k] times rows of w, `units` apart. */
BODY void axpy_body(float *y, const float *x, const float *w, int64_t inputs,
                    int64_t units)
{
    vector sum[CHUNK / LANES] = {0};
    for (int64_t k = 0; k < inputs; k++) {
        vector b;
#pragma GCC unroll 8
        for (int i = 0; i < CHUNK / LANES; i++) {
            LOAD(b, w + k * units + i * LANES);
            sum[i] += x[k] * b;
        }
    }
    memcpy(y, sum, sizeof sum);
}

typedef void (*dot_fn)(float *, const float *, const float *, int64_t);
typedef void (*axpy_fn)(float *, const float *, const float *, int64_t, int64_t);

static void dot_plain(float *y, const float *x, const float *w, int64_t inputs)
{
    dot_body(y, x, w, inputs);
}

static void axpy_plain(float *y, const float *x, const float *w, int64_t inputs,
                       int64_t units)
{
    axpy_body(y, x, w, inputs, units);
}

#ifdef ELEMENT_X86
__attribute__((target("avx2,fma"))) static void
dot_avx2(float *y, const float *x, const float *w, int64_t inputs)
{
    dot_body(y, x, w, inputs);
}

__attribute__((target("avx2,fma"))) static void
axpy_avx2(float *y, const float *x, const float *w, int64_t inputs, int64_t units)
{
    axpy_body(y, x, w, inputs, units);
}
#endif

static const struct kernel {
    const char *name;
    dot_fn dot;
    axpy_fn axpy;
} kernels[] = {
    {"plain", dot_plain, axpy_plain},
#ifdef ELEMENT_X86
    {"avx2", dot_avx2, axpy_avx2},
#endif
};

static const struct kernel *kernel_choose(void)
{
#ifdef ELEMENT_X86
    return &kernels[element_has_f16c() ? 1 : 0];
#else
    return &kernels[0];
#endif
}

/* Units [m, m + n) of one image, at most a block of them. */
static void fully_connected_block(const struct kernel *kernel, float *y, const float *x,
                                  const float *w, int64_t inputs, int64_t units,
                                  int64_t n, int32_t transposed)
{
    if (transposed && n == CHUNK) {
        kernel->axpy(y, x, w, inputs, units);
    } else if (!transposed && n == ROWS) {
        kernel->dot(y, x, w, inputs);
    } else {
        int64_t step = transposed ? units : 1, row = transposed ? 1 : inputs;
        for (int64_t m = 0; m < n; m++) {
            double sum = 0;
            for (int64_t k = 0; k < inputs; k++)
                sum += (double)x[k] * w[m * row + k * step];
            y[m] = (float)sum;
        }
    }
}

static void fully_connected_tail(const strata_run *r, float *y, int64_t units)
{
    const strata_epilogue *e = r->epilogue;
    const float *bias = r->weight[BIAS].rank > 0 ? r->weight[BIAS].data : NULL;
    for (int64_t m = 0; m < units && bias; m++)
        y[m] += bias[m];
    for (int64_t m = 0; m < units && e->flags & STRATA_EPILOGUE_SCALE; m++)
        y[m] *= e->scale[m];
    for (int64_t m = 0; m < units && e->flags & STRATA_EPILOGUE_BIAS; m++)
        y[m] += e->bias[m];
    if (e->flags & STRATA_EPILOGUE_ACTIVATION)
        activate_row(e->activation, e->alpha, e->beta, y, units);
}

/* Dense rows of x to dense rows of y; a block of weights serves all images in turn. */
static void fully_connected_compute(const strata_run *r, float *y, const float *x)
{
    const strata_fully_connected *p = r->params;
    const float *w = r->weight[WEIGHT].data;
    const struct kernel *kernel = kernel_choose();
    int64_t units = r->out[0].dims[1], images = r->out[0].dims[0];
    int64_t inputs = r->weight[WEIGHT].dims[!p->transposed];
    int64_t block = p->transposed ? CHUNK : ROWS, row = p->transposed ? 1 : inputs;
#pragma omp parallel for if (images * units * inputs > 4 * IMAGE_PARALLEL)
    for (int64_t m = 0; m < units; m += block)
        for (int64_t n = 0; n < images; n++)
            fully_connected_block(kernel, y + n * units + m, x + n * inputs, w + m * row,
                                  inputs, units, units - m < block ? units - m : block,
                                  p->transposed);
    for (int64_t n = 0; n < images; n++)
        fully_connected_tail(r, y + n * units, units);
}

/* ---- impls --------------------------------------------------------------------- */

static int c_run(const strata_run *r)
{
    fully_connected_compute(r, r->out[0].data, r->in[0].data);
    return STRATA_OK;
}

/* All images of input and output. */
static int any_bytes(const strata_tensor *t, size_t *bytes)
{
    if (t->count < 0 ||
        __builtin_mul_overflow((size_t)t->count, sizeof(float), bytes) ||
        __builtin_add_overflow(*bytes, 255, bytes))
        return 0;
    *bytes &= ~(size_t)255;
    return 1;
}

static size_t any_workspace(const strata_node *n)
{
    size_t in, out;
    if (!any_bytes(&n->in[0], &in) || !any_bytes(&n->out[0], &out) ||
        __builtin_add_overflow(in, out, &in))
        return SIZE_MAX;
    return in;
}

static int any_run(const strata_run *r)
{
    size_t bytes;
    if (!any_bytes(&r->in[0], &bytes))
        return STRATA_FAIL(r, STRATA_EOVERFLOW, "input does not fit in memory");
    float *x = r->workspace, *y = (float *)(void *)((char *)r->workspace + bytes);
    int64_t images = r->in[0].dims[0], inputs = r->in[0].count / images;
    for (int64_t n = 0; n < images; n++)
        image_unpack(x + n * inputs, &r->in[0], n);
    fully_connected_compute(r, y, x);
    for (int64_t n = 0; n < images; n++)
        image_pack(&r->out[0], n, y + n * r->out[0].dims[1]);
    return STRATA_OK;
}

/* ---- the definition ------------------------------------------------------------ */

static int reference_run(const strata_node *n, const double *const *in,
                         const double *const *weight, double *const *out)
{
    const strata_fully_connected *p = n->params;
    int64_t units = 0, inputs = 0;
    int status = fully_connected_sizes(n, &units, &inputs);
    for (int64_t i = 0; i < n->in[0].dims[0] && status == STRATA_OK; i++)
        for (int64_t m = 0; m < units; m++) {
            double sum = weight[BIAS] ? weight[BIAS][m] : 0;
            for (int64_t k = 0; k < inputs; k++)
                sum += in[0][i * inputs + k] *
                       weight[WEIGHT][p->transposed ? k * units + m : m * inputs + k];
            out[0][i * units + m] = sum;
        }
    return status;
}

static const strata_reference reference = {sizeof reference, 0, reference_run};

static const void *fully_connected_extension(const char *id)
{
    return strcmp(id, STRATA_REFERENCE_V1) == 0 ? &reference : NULL;
}

/* ---- tables -------------------------------------------------------------------- */

#define EPILOGUES \
    (STRATA_EPILOGUE_SCALE | STRATA_EPILOGUE_BIAS | STRATA_EPILOGUE_ACTIVATION)

static const strata_row c_rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};
static const strata_row any_rows[] = {{{ELEMENT_FLOATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1, .device = STRATA_HOST, .epilogues = EPILOGUES, .name = "c",
     .rows = STRATA_ARRAY(c_rows), .activations = ELEMENT_ALL_ACTIVATIONS,
     .efficiency = 0.6, .bandwidth = 0.86, .run = c_run},
    {.id = 2, .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED | STRATA_STRIDED_IN | STRATA_STRIDED_OUT,
     .epilogues = EPILOGUES, .name = "any", .rows = STRATA_ARRAY(any_rows),
     .activations = ELEMENT_ALL_ACTIVATIONS, .efficiency = 0.6, .bandwidth = 0.8,
     .workspace = any_workspace, .run = any_run},
};

static const strata_layer fully_connected = {
    .struct_size = sizeof(strata_layer), .version = 1, .name = "FullyConnected",
    .doc = "Matrix product of each flattened image with a weight, plus a bias.",
    .min_in = 1, .max_in = 1, .n_out = 1, .params_size = sizeof(strata_fully_connected),
    .attrs = STRATA_ARRAY(attrs), .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls), .shape = fully_connected_shape,
    .weight_shape = fully_connected_weight_shape, .flops = fully_connected_flops,
    .extension = fully_connected_extension,
};
static const strata_layer *const layers[] = {&fully_connected};
STRATA_MODULE("core", "1.0.0", "FullyConnected", layers)
