/* SPDX-License-Identifier: Apache-2.0
 *
 * Separable: every channel filtered along its rows and then along its columns, zeros
 * outside. Shows weights, one of them optional, and workspace.
 */
#include <string.h>

#include <strata/plugin.h>

typedef struct {
    int64_t taps;
} params;

enum { HORIZONTAL, VERTICAL };

static int weight_shape(const strata_node *n, strata_tensor *expected)
{
    const params *p = n->params;
    if (p->taps % 2 == 0)
        return STRATA_FAIL(n, STRATA_EINVAL, "taps is %lld; an odd number is needed",
                           (long long)p->taps);
    for (int i = HORIZONTAL; i <= VERTICAL; i++) {
        expected[i].dtype = STRATA_FP32;
        expected[i].rank = 1;
        expected[i].dims[0] = p->taps;
    }
    return STRATA_OK;
}

static int shape(const strata_node *n)
{
    if (n->in[0].rank != 4)
        return STRATA_FAIL(n, STRATA_EINVAL, "input has rank %d; 4 is needed",
                           (int)n->in[0].rank);
    n->out[0].rank = 4;
    memcpy(n->out[0].dims, n->in[0].dims, sizeof n->in[0].dims);
    return STRATA_OK;
}

/* One plane between the two passes. */
static size_t workspace(const strata_node *n)
{
    size_t bytes = sizeof(float);
    for (int d = 2; d < 4; d++)
        if (__builtin_mul_overflow(bytes, (size_t)n->in[0].dims[d], &bytes))
            return SIZE_MAX;
    return bytes;
}

/* n elements, `step` apart, filtered. */
static void filter(float *y, const float *x, int64_t n, int64_t step, const float *taps,
                   int64_t count)
{
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int64_t k = 0; k < count; k++) {
            const int64_t at = i + k - count / 2;
            if (at >= 0 && at < n)
                sum += taps[k] * x[at * step];
        }
        y[i * step] = sum;
    }
}

static int run(const strata_run *r)
{
    const params *p = r->params;
    const strata_tensor *t = &r->out[0];
    const int64_t height = t->dims[2], width = t->dims[3];
    const float *horizontal = r->weight[HORIZONTAL].data;
    /* rank 0: the network gives none */
    const float *vertical =
        r->weight[VERTICAL].rank > 0 ? r->weight[VERTICAL].data : horizontal;
    float *rows = r->workspace;
    for (int64_t plane = 0; plane < t->dims[0] * t->dims[1]; plane++) {
        const float *x = (const float *)r->in[0].data + plane * height * width;
        float *y = (float *)t->data + plane * height * width;
        for (int64_t h = 0; h < height; h++)
            filter(rows + h * width, x + h * width, width, 1, horizontal, p->taps);
        for (int64_t w = 0; w < width; w++)
            filter(y + w, rows + w, height, width, vertical, p->taps);
    }
    return STRATA_OK;
}

/* The definition, in FP64: what `strata check` compares run with. */
static double element(const double *x, const int64_t *dims, int64_t h, int64_t w,
                      const double *const *taps, int64_t count)
{
    const double *vertical = taps[VERTICAL] ? taps[VERTICAL] : taps[HORIZONTAL];
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < count; k++) {
            const int64_t row = h + i - count / 2, column = w + k - count / 2;
            if (row >= 0 && row < dims[2] && column >= 0 && column < dims[3])
                sum += vertical[i] * taps[HORIZONTAL][k] * x[row * dims[3] + column];
        }
    return sum;
}

static int define(const strata_node *n, const double *const *in,
                  const double *const *weight, double *const *out)
{
    const params *p = n->params;
    const int64_t *dims = n->out[0].dims, plane = dims[2] * dims[3];
    for (int64_t i = 0; i < dims[0] * dims[1] * plane; i++)
        out[0][i] = element(in[0] + i / plane * plane, dims, i % plane / dims[3],
                            i % dims[3], weight, p->taps);
    return STRATA_OK;
}

static const strata_reference reference = {sizeof reference, 0, define};

static const void *extension(const char *id)
{
    return strcmp(id, STRATA_REFERENCE_V1) == 0 ? &reference : NULL;
}

static const strata_attr attrs[] = {
    {.name = "taps",
     .type = STRATA_I64,
     .offset = offsetof(params, taps),
     .def = 3,
     .min = 1,
     .max = 63,
     .doc = "length of the filters, odd"},
};
static const strata_weight weights[] = {
    {.name = "horizontal", .flags = STRATA_REQUIRED, .rank = 1, .doc = "taps of a row"},
    {.name = "vertical", .rank = 1, .doc = "taps of a column; absent: as horizontal"},
};
static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};
static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .workspace = workspace,
     .run = run},
};
static const strata_layer layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Separable",
    .doc = "A filter along rows, then one along columns",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(params),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = shape,
    .weight_shape = weight_shape,
    .extension = extension,
};
static const strata_layer *const layers[] = {&layer};
STRATA_MODULE("org.example", "1.0.0", "Separable", layers)
