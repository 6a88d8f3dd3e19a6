/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution of 1-D, 2-D and 3-D images: y[k] = bias[k] + sum of weight[k][c] over the
 * window, channels in groups. Two host impls share one FP32 core: `c` works on fp32:nchw
 * in place, `any` unpacks bands of an image of any float format, computes, and packs.
 * `depthwise` takes one channel a group in blocks of channels, `winograd` 3x3 windows
 * at every pixel, in blocks or with the channels last.
 */
#include "plugins/common/filters.h"
#include "plugins/common/plane.h"
#include "plugins/common/quantized/factors.h"
#include "plugins/common/walk.h"
#include "plugins/convolution/band.h"
#include "plugins/convolution/depthwise.h"
#include "plugins/convolution/winograd/winograd.h"

enum { WEIGHT, BIAS, FACTORS };

struct convolution_any {
    struct convolution cv;
    struct convolution_bands bands;
};

static const strata_attr attrs[] = {
    FILTER_ATTRS,
};

static const strata_weight weights[] = {
    {.name = "weight", .flags = STRATA_REQUIRED, .rank = -1,
     .doc = "filters x channels/groups x kernel"},
    {.name = "bias", .rank = 1, .doc = "filters"},
    FACTORS_WEIGHT("filter"),
};

/* ---- shapes -------------------------------------------------------------------- */

static int convolution_weight_shape(const strata_node *n, strata_tensor *expected)
{
    const strata_convolution *p = n->params;
    struct window w;
    int64_t filters;
    int status = filters_of_convolution(n, p, &n->weight[WEIGHT], &w, &filters);
    if (status != STRATA_OK)
        return status;
    expected[WEIGHT].dtype = expected[BIAS].dtype = STRATA_FP32;
    filters_weight_shape(&expected[WEIGHT], &w, filters, n->in[0].dims[1] / p->groups);
    expected[BIAS].rank = 1;
    expected[BIAS].dims[0] = filters;
    factors_shape(&expected[FACTORS], &n->weight[FACTORS], &expected[WEIGHT], 0);
    return STRATA_OK;
}

static int convolution_shape(const strata_node *n)
{
    struct window w;
    int64_t filters;
    int status = filters_of_convolution(n, n->params, &n->weight[WEIGHT], &w, &filters);
    if (status == STRATA_OK)
        filters_shape(n, &w, filters);
    return status;
}

static double convolution_flops(const strata_node *n)
{
    return filters_flops(&n->out[0], &n->weight[WEIGHT]);
}

/* ---- impls --------------------------------------------------------------------- */

/* All but the packed weights. */
static int convolution_resolve(struct convolution *cv, const strata_node *n)
{
    const strata_convolution *p = n->params;
    const struct window *w = &cv->w;
    int status = window_of_convolution(&cv->w, p, &n->in[0], &n->weight[WEIGHT], n->host,
                                       n->err);
    if (status != STRATA_OK)
        return status;
    cv->groups = p->groups;
    cv->in_c = n->in[0].dims[1] / p->groups;
    cv->out_c = n->out[0].dims[1] / p->groups;
    cv->depth = cv->in_c * window_kernel_count(w);
    cv->tile = convolution_is_direct(cv->out_c) ? NULL : gemm_choose();
    cv->pointwise = cv->tile && cv->depth == cv->in_c;
    for (int d = 0; d < WINDOW_DIMS; d++)
        cv->pointwise &= w->stride[d] == 1 && w->begin[d] == 0 && w->end[d] == 0;
    convolution_drop_strides(&cv->w);
    return STRATA_OK;
}

static int convolution_setup(const strata_node *n, void *state)
{
    struct convolution *cv = state;
    int status = convolution_resolve(cv, n);
    const strata_pack *pack = n->host->extension(STRATA_PACK_V1);
    if (status != STRATA_OK || !cv->tile || !pack)
        return status;
    size_t bytes = convolution_packed_size(cv);
    void *packed;
    if (bytes == 0)
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    if ((status = pack->alloc(n, bytes, &packed)) != STRATA_OK)
        return status;
    convolution_pack_all(cv, packed, n->weight[WEIGHT].data);
    cv->packed = packed;
    return STRATA_OK;
}

/* Scratch of the direct method in whole 256 bytes; SIZE_MAX: overflow. */
static size_t c_workspace(const strata_node *n)
{
    const strata_convolution *p = n->params;
    struct window w;
    if (!convolution_is_direct(n->out[0].dims[1] / p->groups))
        return 0;
    if (window_of_convolution(&w, p, &n->in[0], &n->weight[WEIGHT], n->host, n->err) !=
        STRATA_OK)
        return SIZE_MAX;
    convolution_drop_strides(&w);
    size_t bytes = convolution_scratch(&w);
    if (bytes == 0 || __builtin_add_overflow(bytes, 255, &bytes))
        return SIZE_MAX;
    return bytes & ~(size_t)255;
}

static struct convolution_job convolution_job(const strata_run *r)
{
    return (struct convolution_job){
        .cv = r->state,
        .weight = r->weight[WEIGHT].data,
        .bias = r->weight[BIAS].rank > 0 ? r->weight[BIAS].data : NULL,
        .epilogue = r->epilogue,
    };
}

static int c_run(const strata_run *r)
{
    struct convolution_job job = convolution_job(r);
    job.in = r->in[0].data;
    job.out = r->out[0].data;
    job.images = r->in[0].dims[0];
    job.scratch = r->workspace;
    job.scratch_size = r->workspace_size;
    if (r->epilogue->flags & STRATA_EPILOGUE_RESIDUAL)
        job.residual = r->epilogue->residual->data;
    convolution_compute(&job);
    return STRATA_OK;
}

/* Bands of input, output and residual, then the scratch. */
static size_t any_workspace(const strata_node *n)
{
    struct convolution cv = {0};
    size_t scratch = c_workspace(n), bytes;
    if (scratch == SIZE_MAX || convolution_resolve(&cv, n) != STRATA_OK)
        return SIZE_MAX;
    convolution_merge(&cv);
    struct convolution_bands b = convolution_bands(&cv, n);
    if (b.bytes == 0 || __builtin_mul_overflow(b.bytes, (size_t)b.teams, &bytes) ||
        __builtin_add_overflow(bytes, scratch, &bytes))
        return SIZE_MAX;
    return bytes;
}

static int any_setup(const strata_node *n, void *state)
{
    struct convolution_any *any = state;
    int status = convolution_setup(n, &any->cv);
    convolution_merge(&any->cv);
    if (status == STRATA_OK)
        any->bands = convolution_bands(&any->cv, n);
    return status;
}

static int any_run(const strata_run *r)
{
    const struct convolution_any *any = r->state;
    struct convolution_job job = convolution_job(r);
    job.cv = &any->cv;
    convolution_in_bands(&job, r, &any->bands);
    return STRATA_OK;
}

/* ---- depthwise ---- */

static int depthwise_resolve(struct depthwise *d, const strata_node *n)
{
    const strata_convolution *p = n->params;
    const strata_tensor *in = &n->in[0], *out = &n->out[0];
    int status = window_of_convolution(&d->w, p, in, &n->weight[WEIGHT], n->host, n->err);
    if (status != STRATA_OK)
        return status;
    if (in->rank != 4 || p->groups != in->dims[1] || p->groups != out->dims[1])
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "takes images of rank 4 with one channel and filter a group");
    if (d->w.dilation[1] != 1 || d->w.dilation[2] != 1)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "takes no dilation");
    d->lanes = in->vector;
    d->blocks = (in->dims[1] + d->lanes - 1) / d->lanes;
    return STRATA_OK;
}

static int depthwise_accept(const strata_node *n)
{
    struct depthwise d;
    return depthwise_resolve(&d, n);
}

static int depthwise_setup(const strata_node *n, void *state)
{
    struct depthwise *d = state;
    const strata_pack *pack = n->host->extension(STRATA_PACK_V1);
    void *packed;
    int status = depthwise_resolve(d, n);
    if (status != STRATA_OK)
        return status;
    if (!pack)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1 " for packed weights");
    size_t count = depthwise_packed(d);
    if (count == 0)
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    if ((status = pack->alloc(n, count * sizeof(float), &packed)) != STRATA_OK)
        return status;
    depthwise_pack(d, packed, n->weight[WEIGHT].data,
                   n->weight[BIAS].rank > 0 ? n->weight[BIAS].data : NULL,
                   n->in[0].dims[1]);
    return STRATA_OK;
}

static int depthwise_run(const strata_run *r)
{
    depthwise_compute(r->state, r->out[0].data, r->in[0].data, r->in[0].dims[0],
                      r->epilogue);
    walk_clear_pads(&r->out[0]);
    return STRATA_OK;
}

/* ---- the definition ------------------------------------------------------------ */

/* One output element; o: its spatial index, in: the group's first channel. */
static double reference_element(const struct window *w, const double *in,
                                const double *weight, int64_t channels, const int64_t *o)
{
    double sum = 0;
    int64_t plane = window_in_count(w), i[WINDOW_DIMS];
    for (int64_t c = 0; c < channels; c++)
        for (int64_t k = 0; k < window_kernel_count(w); k++, weight++)
            if (plane_source(i, w, o, k))
                sum += *weight * in[c * plane + plane_element(w->in, i)];
    return sum;
}

static int reference_run(const strata_node *n, const double *const *in,
                         const double *const *weight, double *const *out)
{
    const strata_convolution *p = n->params;
    struct window w;
    int status = window_of_convolution(&w, p, &n->in[0], &n->weight[WEIGHT], n->host,
                                       n->err);
    if (status != STRATA_OK)
        return status;
    int64_t filters = n->out[0].dims[1], plane = window_out_count(&w);
    int64_t in_c = n->in[0].dims[1] / p->groups, out_c = filters / p->groups;
    for (int64_t image = 0; image < n->in[0].dims[0]; image++)
        for (int64_t k = 0; k < filters; k++)
            for (int64_t i = 0; i < plane; i++) {
                int64_t o[WINDOW_DIMS];
                plane_place(o, w.out, i);
                int64_t channel = (image * p->groups + k / out_c) * in_c;
                out[0][(image * filters + k) * plane + i] =
                    (weight[BIAS] ? weight[BIAS][k] : 0) +
                    reference_element(&w, in[0] + channel * window_in_count(&w),
                                      weight[WEIGHT] + k * in_c * window_kernel_count(&w),
                                      in_c, o);
            }
    return STRATA_OK;
}

static const strata_reference reference = {sizeof reference, 0, reference_run};

static const void *convolution_extension(const char *id)
{
    return strcmp(id, STRATA_REFERENCE_V1) == 0 ? &reference : NULL;
}

/* ---- tables -------------------------------------------------------------------- */

#define EPILOGUES                                                                       \
    (STRATA_EPILOGUE_SCALE | STRATA_EPILOGUE_BIAS | STRATA_EPILOGUE_RESIDUAL |          \
     STRATA_EPILOGUE_ACTIVATION)

static const strata_row c_rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};
static const strata_row any_rows[] = {{{ELEMENT_FLOATS}, {STRATA_SAME}}};

static const strata_row depthwise_rows[] = {
    {{STRATA_F32_NC8HW8 | STRATA_F32_NC16HW16}, {STRATA_SAME}},
};

static const strata_row winograd_rows[] = {
    {{STRATA_F32_NC8HW8 | STRATA_F32_NC16HW16 | STRATA_F32_NHWC}, {STRATA_SAME}},
};

static const strata_impl impls[] = {
    {.id = 1, .device = STRATA_HOST, .epilogues = EPILOGUES, .name = "c",
     .rows = STRATA_ARRAY(c_rows), .activations = ELEMENT_ALL_ACTIVATIONS,
     .efficiency = 0.9, .bandwidth = 0.17, .state_size = sizeof(struct convolution),
     .workspace = c_workspace, .setup = convolution_setup, .run = c_run},
    {.id = 2, .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED | STRATA_STRIDED_IN | STRATA_STRIDED_OUT |
              STRATA_PITCHED_RESIDUAL,
     .epilogues = EPILOGUES, .name = "any", .rows = STRATA_ARRAY(any_rows),
     .activations = ELEMENT_ALL_ACTIVATIONS, .efficiency = 0.9, .bandwidth = 0.11,
     .state_size = sizeof(struct convolution_any), .workspace = any_workspace,
     .setup = any_setup, .run = any_run},
    {.id = 3, .device = STRATA_HOST, .epilogues = STRATA_EPILOGUE_ACTIVATION,
     .name = "depthwise", .rows = STRATA_ARRAY(depthwise_rows),
     .activations = ELEMENT_ALL_ACTIVATIONS, .efficiency = 0.7, .bandwidth = 0.8,
     .state_size = sizeof(struct depthwise), .accept = depthwise_accept,
     .setup = depthwise_setup, .run = depthwise_run},
    {.id = 4, .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED | STRATA_WEIGHT_PACKED | STRATA_PITCHED_RESIDUAL,
     .epilogues = EPILOGUES, .name = "winograd", .rows = STRATA_ARRAY(winograd_rows),
     .activations = ELEMENT_ALL_ACTIVATIONS, .efficiency = 0.83, .bandwidth = 0.4,
     .state_size = sizeof(struct winograd), .accept = winograd_accept,
     .workspace = winograd_workspace, .setup = winograd_setup, .run = winograd_run},
};

static const strata_layer convolution = {
    .struct_size = sizeof(strata_layer), .version = 1, .name = "Convolution",
    .doc = "Convolution with groups, stride, padding and dilation; ranks 3 to 5.",
    .min_in = 1, .max_in = 1, .n_out = 1, .params_size = sizeof(strata_convolution),
    .attrs = STRATA_ARRAY(attrs), .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls), .shape = convolution_shape,
    .weight_shape = convolution_weight_shape, .flops = convolution_flops,
    .extension = convolution_extension,
};
static const strata_layer *const layers[] = {&convolution};
STRATA_MODULE("core", "1.0.0", "Convolution", layers)
