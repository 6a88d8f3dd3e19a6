/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer that keeps the contract with inputs of unequal shapes: x of N x C x H x W times
 * a gate of N x C, averaged over pairs of columns, of which the last may have but one.
 * -D puts faults in.
 */
#include <strata/plugin.h>

#include <string.h>

#ifndef WIDTH
#define WIDTH(w) WIDTH_OF(w)
#endif
#ifndef COLUMNS
#define COLUMNS WIDTH_OF(x->dims[3])
#endif
#ifndef LAST
#define LAST (2 * k + 1 == x->dims[3])
#endif
#ifndef ROW
#define ROW x->dims[3]
#endif
#ifndef IMAGE
#define IMAGE (x->dims[1] * x->dims[2] * ROW)
#endif
#ifndef GATE
#define GATE gate[n * x->dims[1] + c]
#endif
#ifndef GAIN
#define GAIN (float)p->gain
#endif
#ifndef SHAPE
#define SHAPE
#endif
#ifndef RUN_END
#define RUN_END
#endif
#ifndef FLAGS
#define FLAGS 0
#endif
#define WIDTH_OF(w) ((w) / 2 + (w) % 2)

struct params {
    double gain;
};

static int shape(const strata_node *n)
{
    const strata_tensor *x = &n->in[0], *gate = &n->in[1];
    if (x->rank != 4 || gate->rank != 2 || gate->dims[0] != x->dims[0] ||
        gate->dims[1] != x->dims[1])
        return STRATA_FAIL(n, STRATA_EINVAL, "N x C x H x W and N x C are needed");
    n->out[0].rank = 4;
    memcpy(n->out[0].dims, x->dims, sizeof x->dims);
    n->out[0].dims[3] = WIDTH(x->dims[3]);
    SHAPE;
    return STRATA_OK;
}

static int run(const strata_run *r)
{
    const struct params *p = r->params;
    const strata_tensor *x = &r->in[0];
    const float *from = x->data, *gate = r->in[1].data;
    float *y = r->out[0].data;
    const int64_t columns = COLUMNS, rows = x->dims[2];
    (void)p;
    for (int64_t n = 0; n < x->dims[0]; n++)
        for (int64_t c = 0; c < x->dims[1]; c++)
            for (int64_t h = 0; h < rows; h++)
                for (int64_t k = 0; k < columns; k++) {
                    const float *in = from + n * IMAGE + (c * rows + h) * ROW + 2 * k;
                    const float mean = LAST ? in[0] : (in[0] + in[1]) / 2;
                    y[((n * x->dims[1] + c) * rows + h) * columns + k] =
                        mean * GATE * GAIN;
                }
    RUN_END;
    return STRATA_OK;
}

static int define(const strata_node *n, const double *const *in,
                  const double *const *weight, double *const *out)
{
    const struct params *p = n->params;
    const int64_t *d = n->in[0].dims, columns = n->out[0].dims[3];
    (void)weight;
    for (int64_t i = 0; i < n->out[0].count; i++) {
        const int64_t k = 2 * (i % columns), row = i / columns, image = row / d[2];
        const double *x = in[0] + row * d[3];
        const double mean = k + 1 < d[3] ? (x[k] + x[k + 1]) / 2 : k < d[3] ? x[k] : 0;
        out[0][i] = mean * in[1][image] * (double)(float)p->gain;
    }
    return STRATA_OK;
}

static const void *extension(const char *id)
{
    static const strata_reference table = {sizeof table, 0, define};
    return strcmp(id, STRATA_REFERENCE_V1) == 0 ? &table : NULL;
}

static const strata_attr attrs[] = {
    {.name = "gain",
     .type = STRATA_F64,
     .offset = offsetof(struct params, gain),
     .def = 1,
     .min = -2,
     .max = 2,
     .doc = "a factor"},
};
static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};
static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = FLAGS,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .run = run},
};
static const strata_layer layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Gate",
    .doc = "y = gain*gate*mean of two columns of x",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .params_size = sizeof(struct params),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = shape,
    .extension = extension,
};
static const strata_layer *const layers[] = {&layer};
STRATA_MODULE("org.faulty", "1.0.0", "Gate", layers)
