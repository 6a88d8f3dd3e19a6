/* SPDX-License-Identifier: Apache-2.0
 *
 * Perceptron: small products by constants one behind the other, each with its bias and
 * activation, of rows or of the means of planes; then a softmax, or the channels of the
 * planes times the results (squeeze-and-excite). A plan makes it of the layers that are
 * such a chain, and nothing between them is written.
 */
#include "plugins/perceptron/shape.h"

#include "plugins/common/activate.h"
#include "plugins/common/activation_attrs.h"
#include "plugins/common/dense.h"
#include "plugins/perceptron/planes.h"

enum { CHUNK = 64 }; /* units of a task */

/* ---- shapes ---------------------------------------------------------------------- */

static int resolve(const strata_node *n, struct perceptron_shape *s)
{
    const strata_perceptron *p = n->params;
    const strata_tensor *x = &n->in[0];
    if (x->rank < (p->mean ? 3 : 2))
        return STRATA_FAIL(n, STRATA_EINVAL, "input has rank %d; %s", (int)x->rank,
                           p->mean ? "means are taken of planes, of rank 3 at least"
                                   : "rows have at least 2 dims");
    if (!perceptron_shape_of(s, p, x, n->weight))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "units1 is not known; give units1 = N or a weight1");
    if (s->depth[0] < 1 || (p->mean && perceptron_pixels(x) < 1))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "a row or plane of the input is empty; only the batch may be");
    for (int i = s->products; i < PERCEPTRON_PRODUCTS; i++)
        if (n->weight[perceptron_weight(i)].rank > 0 ||
            n->weight[perceptron_bias(i)].rank > 0 || p->product[i].units > 0)
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "product %d is given, but not product %d", i + 1,
                               s->products + 1);
    if (p->end == STRATA_PERCEPTRON_FACTORS &&
        (!p->mean || perceptron_units(s) != x->dims[1]))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "%lld factors of %lld channels%s; there is one for each, of "
                           "means",
                           (long long)perceptron_units(s), (long long)x->dims[1],
                           p->mean ? "" : " without mean = yes");
    return STRATA_OK;
}

static int perceptron_weight_shape(const strata_node *n, strata_tensor *expected)
{
    const strata_perceptron *p = n->params;
    struct perceptron_shape s;
    const int status = resolve(n, &s);
    for (int i = 0; i < s.products && status == STRATA_OK; i++) {
        strata_tensor *w = &expected[perceptron_weight(i)];
        w->rank = 2;
        w->dims[p->product[i].transposed ? 1 : 0] = s.units[i];
        w->dims[p->product[i].transposed ? 0 : 1] = s.depth[i];
        expected[perceptron_bias(i)].rank = 1;
        expected[perceptron_bias(i)].dims[0] = s.units[i];
    }
    return status;
}

static int perceptron_output(const strata_node *n)
{
    const strata_perceptron *p = n->params;
    const strata_tensor *x = &n->in[0];
    struct perceptron_shape s;
    const int status = resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    n->out[0].rank = p->mean && !p->keep_dims ? 2 : x->rank;
    memcpy(n->out[0].dims, x->dims, sizeof x->dims);
    if (p->end == STRATA_PERCEPTRON_FACTORS) {
        n->out[0].rank = x->rank;
        return STRATA_OK;
    }
    n->out[0].dims[p->mean ? 1 : x->rank - 1] = perceptron_units(&s);
    for (int d = 2; d < x->rank && p->mean; d++)
        n->out[0].dims[d] = 1;
    return STRATA_OK;
}

static double perceptron_flops(const strata_node *n)
{
    const strata_perceptron *p = n->params;
    struct perceptron_shape s;
    double each = 0;
    perceptron_shape_of(&s, p, &n->in[0], n->weight);
    for (int i = 0; i < s.products; i++)
        each += 2 * (double)s.depth[i] * (double)s.units[i];
    return each * (double)s.rows + (p->mean ? (double)n->in[0].count : 0) *
                                       (p->end == STRATA_PERCEPTRON_FACTORS ? 2 : 1);
}

/* ---- plain C --------------------------------------------------------------------- */

/* Results of each product, and its inputs before it, side by side. */
static size_t perceptron_workspace(const strata_node *n)
{
    struct perceptron_shape s;
    int64_t each = 0, all;
    perceptron_shape_of(&s, n->params, &n->in[0], n->weight);
    each = s.depth[0] + IMAGE_LANES;
    for (int i = 0; i < s.products; i++)
        if (__builtin_add_overflow(each, s.units[i], &each))
            return SIZE_MAX;
    return __builtin_mul_overflow(each, s.rows, &all) ||
                   __builtin_mul_overflow(all, (int64_t)sizeof(float), &all)
               ? SIZE_MAX
               : (size_t)all;
}

static int perceptron_accept(const strata_node *n)
{
    const strata_perceptron *p = n->params;
    struct perceptron_shape s;
    perceptron_shape_of(&s, p, &n->in[0], n->weight);
    for (int i = 0; i < s.products; i++)
        if (n->weight[perceptron_weight(i)].rank != 2)
            return STRATA_FAIL(n, STRATA_EINVAL, "product %d has no weight%d", i + 1,
                               i + 1);
    const char *why = perceptron_refuse(p, &n->in[0], &n->out[0]);
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : STRATA_OK;
}

struct job {
    const strata_run *r;
    const strata_perceptron *p;
    struct perceptron_shape s;
    float *values; /* of a row: its inputs, then the results of each product */
    int64_t pitch; /* from row to row */
};

/* Units [first, first + n) of a product of a row. */
static void multiply(const struct job *j, int product, const float *x, float *y,
                     int64_t first, int64_t n)
{
    const strata_perceptron_product *p = &j->p->product[product];
    const float *w = j->r->weight[perceptron_weight(product)].data;
    const float *bias = j->r->weight[perceptron_bias(product)].data;
    const int64_t depth = j->s.depth[product], units = j->s.units[product];
    const strata_activation f = {p->activation - 1, 0, p->alpha, p->beta};
    for (int64_t u = 0; u < n; u++)
        y[u] = bias ? bias[first + u] : 0;
    if (p->transposed)
        for (int64_t k = 0; k < depth; k++)
            for (int64_t u = 0; u < n; u++)
                y[u] += x[k] * w[k * units + first + u];
    else
        for (int64_t u = 0; u < n; u++) {
            const float *row = w + (first + u) * depth;
            float sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t k = 0; k < depth; k++)
                sum += x[k] * row[k];
            y[u] += sum;
        }
    if (p->activation > 0)
        activate_row(f.kind, strata_activation_alpha(&f), strata_activation_beta(&f), y,
                     n);
}

/* The rows of x, or means; one task an image and its lanes of channels. */
static void read_rows(const struct job *j)
{
    const strata_tensor *x = &j->r->in[0];
    const int64_t depth = j->s.depth[0];
    if (!j->p->mean) {
        for (int64_t row = 0; row < j->s.rows; row++)
            element_load_row(j->values + row * j->pitch, x->data, x->dtype, row * depth,
                             1, depth);
        return;
    }
    const int64_t lanes = image_lanes(x), blocks = (depth + lanes - 1) / lanes;
#pragma omp parallel for schedule(static) if (x->count > IMAGE_PARALLEL)
    for (int64_t task = 0; task < j->s.rows * blocks; task++) {
        const int64_t row = task / blocks, channel = task % blocks * lanes;
        const struct planes s = planes_of(x, row, channel);
        take_means(&s, j->values + row * j->pitch + channel);
    }
}

static void run_product(const struct job *j, int product, int64_t from, int64_t to)
{
    const int64_t units = j->s.units[product], chunks = (units + CHUNK - 1) / CHUNK;
    const int64_t work = j->s.rows * units * j->s.depth[product];
#pragma omp parallel for schedule(static) if (work > IMAGE_PARALLEL)
    for (int64_t task = 0; task < j->s.rows * chunks; task++) {
        float *values = j->values + task / chunks * j->pitch;
        const int64_t first = task % chunks * CHUNK;
        multiply(j, product, values + from, values + to + first, first,
                 first + CHUNK < units ? CHUNK : units - first);
    }
}

static void soften(float *x, int64_t n)
{
    float largest = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++)
        largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] = expf(x[i] - largest);
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
}

/* `at`: of the last results in a row's values. */
static void write_rows(const struct job *j, int64_t at)
{
    const strata_tensor *x = &j->r->in[0], *y = &j->r->out[0];
    const int64_t units = perceptron_units(&j->s);
    for (int64_t row = 0; row < j->s.rows; row++) {
        float *values = j->values + row * j->pitch + at;
        if (j->p->end == STRATA_PERCEPTRON_SOFTMAX)
            soften(values, units);
        if (j->p->end != STRATA_PERCEPTRON_FACTORS && j->p->mean)
            image_pack(y, row, values);
        else if (j->p->end != STRATA_PERCEPTRON_FACTORS)
            element_store_row(y->data, y->dtype, row * units, 1, values, units);
    }
    if (j->p->end != STRATA_PERCEPTRON_FACTORS)
        return;
    const int64_t lanes = image_lanes(x), blocks = (units + lanes - 1) / lanes;
#pragma omp parallel for schedule(static) if (x->count > IMAGE_PARALLEL)
    for (int64_t task = 0; task < j->s.rows * blocks; task++) {
        const int64_t row = task / blocks, channel = task % blocks * lanes;
        const struct planes s = planes_of(x, row, channel);
        scale_planes(&s, y, j->values + row * j->pitch + at + channel);
    }
}

static int perceptron_run(const strata_run *r)
{
    struct job j = {.r = r, .p = r->params, .values = r->workspace};
    perceptron_shape_of(&j.s, j.p, &r->in[0], r->weight);
    j.pitch = j.s.depth[0] + IMAGE_LANES;
    int64_t from = 0, to = j.pitch;
    for (int i = 0; i < j.s.products; i++)
        j.pitch += j.s.units[i];
    read_rows(&j);
    for (int i = 0; i < j.s.products; i++) {
        run_product(&j, i, from, to);
        from = to;
        to += j.s.units[i];
    }
    write_rows(&j, from);
    return STRATA_OK;
}

/* ---- the definition -------------------------------------------------------------- */

/* Rows of `depth` to rows of `units`. */
static void reference_product(const strata_perceptron_product *p, const double *w,
                              const double *bias, const double *x, double *y,
                              int64_t depth, int64_t units)
{
    const strata_activation f = {p->activation - 1, 0, p->alpha, p->beta};
    for (int64_t u = 0; u < units; u++) {
        y[u] = bias ? bias[u] : 0;
        for (int64_t k = 0; k < depth; k++)
            y[u] += x[k] * w[p->transposed ? k * units + u : u * depth + k];
        if (p->activation > 0)
            y[u] = element_activate_exact(f.kind, y[u], strata_activation_alpha(&f),
                                          strata_activation_beta(&f));
    }
}

static void reference_soften(double *x, int64_t n)
{
    double largest = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++)
        largest = fmax(largest, x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += x[i] = exp(x[i] - largest);
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
}

/* One row's; x: its inputs, or the planes of which they are the means. */
static void reference_row(const strata_node *n, const struct perceptron_shape *s,
                          const double *x, const void *const *weight, double *values[2],
                          double *y)
{
    const strata_perceptron *p = n->params;
    const int64_t pixels = p->mean ? perceptron_pixels(&n->in[0]) : 1;
    const int64_t units = perceptron_units(s);
    for (int64_t c = 0; c < s->depth[0]; c++) {
        values[0][c] = 0;
        for (int64_t i = 0; i < pixels; i++)
            values[0][c] += x[c * pixels + i] / (double)pixels;
    }
    for (int i = 0; i < s->products; i++)
        reference_product(
            &p->product[i], weight[perceptron_weight(i)],
            n->weight[perceptron_bias(i)].rank > 0 ? weight[perceptron_bias(i)] : NULL,
            values[i % 2], values[(i + 1) % 2], s->depth[i], s->units[i]);
    double *last = values[s->products % 2];
    if (p->end == STRATA_PERCEPTRON_SOFTMAX)
        reference_soften(last, units);
    if (p->end == STRATA_PERCEPTRON_FACTORS)
        for (int64_t i = 0; i < units * pixels; i++)
            y[i] = x[i] * last[i / pixels];
    else
        memcpy(y, last, (size_t)units * sizeof *y);
}

static int reference_run(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const strata_perceptron *p = n->params;
    struct perceptron_shape s;
    perceptron_shape_of(&s, p, &n->in[0], n->weight);
    int64_t most = s.depth[0];
    for (int i = 0; i < s.products; i++)
        most = s.units[i] > most ? s.units[i] : most;
    double *memory = calloc((size_t)most, 2 * sizeof *memory);
    if (!memory)
        return STRATA_FAIL(n, STRATA_ENOMEM, "no memory for the values of a row");
    double *values[2] = {memory, memory + most};
    const int64_t pixels = p->mean ? perceptron_pixels(&n->in[0]) : 1;
    const int64_t made =
        p->end == STRATA_PERCEPTRON_FACTORS ? s.depth[0] * pixels : perceptron_units(&s);
    for (int64_t row = 0; row < s.rows; row++)
        reference_row(n, &s, (const double *)in[0] + row * s.depth[0] * pixels, weight,
                      values, (double *)out[0] + row * made);
    free(memory);
    return STRATA_OK;
}

static const void *perceptron_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0, reference_run};
    return dense_extension_typed(id, &reference);
}

/* ---- tables ---------------------------------------------------------------------- */

#define AT(i, field) offsetof(strata_perceptron, product[i].field)
#define PRODUCT_ATTRS(i, number, more)                                                   \
    {.name = "units" number,                                                             \
     .type = STRATA_I64,                                                                 \
     .offset = AT(i, units),                                                             \
     .max = INT32_MAX,                                                                   \
     .doc = "results of product " number "; 0: from its weight" more},                   \
        {.name = "transposed" number,                                                    \
         .type = STRATA_BOOL,                                                            \
         .offset = AT(i, transposed),                                                    \
         .doc = "its weight is inputs x units instead of units x inputs"},               \
        ACTIVATION_ATTRS("", number, AT(i, activation), AT(i, alpha), AT(i, beta),       \
                         "its results")

static const strata_attr attrs[] = {
    PRODUCT_ATTRS(0, "1", ""),
    PRODUCT_ATTRS(1, "2", ", or no product"),
    PRODUCT_ATTRS(2, "3", ", or no product"),
    {.name = "mean",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_perceptron, mean),
     .doc = "of the means of planes; else of rows along the last dim"},
    {.name = "end",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_perceptron, end),
     .choices = "plain|softmax|factors",
     .doc = "the results, their softmax, or the input's channels times them"},
    {.name = "keep_dims",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_perceptron, keep_dims),
     .doc = "results of means have dims of 1 in place of the planes'"},
};

#define PRODUCT_WEIGHTS(number, needed)                                                  \
    {.name = "weight" number,                                                            \
     .flags = (needed),                                                                  \
     .rank = 2,                                                                          \
     .doc = "units x inputs, or inputs x units if transposed"},                          \
    {                                                                                    \
        .name = "bias" number, .rank = 1, .doc = "one a unit"                            \
    }

static const strata_weight weights[] = {
    PRODUCT_WEIGHTS("1", STRATA_REQUIRED),
    PRODUCT_WEIGHTS("2", 0),
    PRODUCT_WEIGHTS("3", 0),
};

static const strata_row rows[] = {
    {{STRATA_FOUR | STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_F32_NC8HW8 |
      STRATA_F32_NC16HW16 | STRATA_BF16_NCHW | STRATA_BF16_NHWC | STRATA_BF16_NHWC8},
     {STRATA_SAME}},
    {{STRATA_F32_NHWC | STRATA_F32_NC8HW8 | STRATA_F32_NC16HW16}, {STRATA_F32_NCHW}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.1,
     .bandwidth = 0.4,
     .accept = perceptron_accept,
     .workspace = perceptron_workspace,
     .run = perceptron_run},
};

static const strata_layer perceptron = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Perceptron",
    .doc = "Small products by constants behind each other, of rows or means of planes.",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_perceptron),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = perceptron_output,
    .weight_shape = perceptron_weight_shape,
    .flops = perceptron_flops,
    .extension = perceptron_extension,
};

static const strata_layer *const layers[] = {&perceptron};
STRATA_MODULE("core", "1.0.0", "Perceptron", layers)
