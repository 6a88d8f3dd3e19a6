/* SPDX-License-Identifier: Apache-2.0
 *
 * Deconvolution (transposed convolution) of 1-D, 2-D and 3-D images, by phases of its
 * output. `c` works on fp32:nchw in place, `any` unpacks and packs images of any float
 * format.
 */
#include "plugins/common/deconvolution/deconvolution.h"

#include "plugins/common/filters.h"
#include "plugins/common/quantized/factors.h"
#include "plugins/common/image.h"
#include "plugins/common/plane.h"
#include "plugins/common/walk.h"
#include "plugins/deconvolution/beside.h"

static const strata_attr attrs[] = {
    {.name = "filters",
     .type = STRATA_I64,
     .offset = offsetof(strata_deconvolution, filters),
     .min = 0,
     .max = INT32_MAX,
     .doc = "output channels; 0 takes them from the weight"},
    WINDOW_ATTRS(strata_deconvolution,
                 "window size, one value or one per spatial dim; empty: from the weight",
                 "what is cut from the output"),
    {.name = "output_pad",
     .type = STRATA_INTS,
     .offset = offsetof(strata_deconvolution, output_pad),
     .min = 0,
     .max = INT32_MAX,
     .doc = "outputs added at the end, one value or one per spatial dim; empty: 0"},
    {.name = "output_size",
     .type = STRATA_INTS,
     .offset = offsetof(strata_deconvolution, output_size),
     .min = 1,
     .max = INT32_MAX,
     .doc = "size of the output, from which the pads follow; empty: by the pads"},
    {.name = "groups",
     .type = STRATA_I64,
     .offset = offsetof(strata_deconvolution, groups),
     .def = 1,
     .min = 1,
     .max = INT32_MAX,
     .doc = "groups of channels deconvolved apart; the channel count is depthwise"},
};

static const strata_weight weights[] = {
    {.name = "weight", .flags = STRATA_REQUIRED, .rank = -1,
     .doc = "channels x filters/groups x kernel"},
    {.name = "bias", .rank = 1, .doc = "filters"},
    FACTORS_WEIGHT("filter of a group"),
};

/* ---- shapes -------------------------------------------------------------------- */

static int deconvolution_filters(const strata_node *n, int64_t *filters)
{
    const strata_deconvolution *p = n->params;
    const strata_tensor *weight = &n->weight[DECONVOLUTION_WEIGHT];
    *filters = p->filters;
    if (!p->filters && (weight->rank < 2 ||
                        __builtin_mul_overflow(weight->dims[1], p->groups, filters)))
        *filters = 0;
    const int status = filters_check(n, *filters);
    return status ? status : filters_check_groups(n, p->groups, *filters);
}

static int deconvolution_resolve(const strata_node *n, struct window *w, int64_t *filters)
{
    int status = deconvolution_filters(n, filters);
    return status ? status
                  : deconvolution_window(w, n->params, &n->in[0],
                                         &n->weight[DECONVOLUTION_WEIGHT], n->host,
                                         n->err);
}

static int deconvolution_weight_shape(const strata_node *n, strata_tensor *expected)
{
    const strata_deconvolution *p = n->params;
    strata_tensor *weight = &expected[DECONVOLUTION_WEIGHT];
    strata_tensor *bias = &expected[DECONVOLUTION_BIAS];
    struct window w;
    int64_t filters;
    int status = deconvolution_resolve(n, &w, &filters);
    if (status != STRATA_OK)
        return status;
    weight->dtype = bias->dtype = STRATA_FP32;
    filters_weight_shape(weight, &w, n->in[0].dims[1], filters / p->groups);
    bias->rank = 1;
    bias->dims[0] = filters;
    factors_shape(&expected[DECONVOLUTION_FACTORS], &n->weight[DECONVOLUTION_FACTORS],
                  weight, 1);
    return STRATA_OK;
}

static int deconvolution_shape(const strata_node *n)
{
    struct window w;
    int64_t filters;
    int status = deconvolution_resolve(n, &w, &filters);
    if (status == STRATA_OK)
        filters_shape(n, &w, filters);
    return status;
}

static double deconvolution_flops(const strata_node *n)
{
    return filters_flops(&n->in[0], &n->weight[DECONVOLUTION_WEIGHT]);
}

/* ---- setup --------------------------------------------------------------------- */

static int deconvolution_prepare(const strata_node *n, struct deconvolution *dc)
{
    const strata_deconvolution *p = n->params;
    dc->groups = p->groups;
    dc->in_c = n->in[0].dims[1] / p->groups;
    dc->out_c = n->out[0].dims[1] / p->groups;
    dc->tile = convolution_is_direct(dc->out_c) ? NULL : gemm_choose();
    return deconvolution_window(&dc->w, p, &n->in[0], &n->weight[DECONVOLUTION_WEIGHT],
                                n->host, n->err);
}

static int deconvolution_setup(const strata_node *n, void *state)
{
    struct deconvolution *dc = state;
    const strata_pack *pack = n->host->extension(STRATA_PACK_V1);
    int status = deconvolution_prepare(n, dc);
    void *packed;
    if (status != STRATA_OK)
        return status;
    if (!pack)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1 " for packed weights");
    size_t bytes = deconvolution_packed_size(dc);
    if (bytes == 0)
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    if ((status = pack->alloc(n, bytes, &packed)) != STRATA_OK)
        return status;
    deconvolution_pack(dc, packed, n->weight[DECONVOLUTION_WEIGHT].data);
    dc->packed = packed;
    return STRATA_OK;
}

/* ---- impls --------------------------------------------------------------------- */

/* Whether an image's phases are written before they are woven. */
static int phases_are_kept(const struct deconvolution *dc)
{
    return deconvolution_phases(&dc->w) > 1 && !windows_are_beside(dc);
}

/* The phases of an image, then what the direct method needs. */
static int scratch_reserve(size_t *bytes, const struct deconvolution *dc)
{
    strata_tensor woven = woven_image(&dc->w, dc->groups * dc->out_c);
    return (!phases_are_kept(dc) || image_reserve(bytes, &woven)) &&
           direct_reserve(bytes, dc);
}

static size_t c_workspace(const strata_node *n)
{
    struct deconvolution dc;
    size_t bytes = 0;
    return !deconvolution_prepare(n, &dc) && scratch_reserve(&bytes, &dc) ? bytes
                                                                          : SIZE_MAX;
}

/* Input, output and residual of an image, then the scratch. */
static size_t any_workspace(const strata_node *n)
{
    int residual = n->epilogue && n->epilogue->flags & STRATA_EPILOGUE_RESIDUAL;
    size_t scratch = c_workspace(n), bytes = 0;
    if (scratch == SIZE_MAX || !image_reserve(&bytes, &n->in[0]) ||
        !image_reserve(&bytes, &n->out[0]) ||
        (residual && !image_reserve(&bytes, &n->out[0])) ||
        __builtin_add_overflow(bytes, scratch, &bytes))
        return SIZE_MAX;
    return bytes;
}

/* cv: of the whole layer, for the tail. */
static struct convolution_job tail_job(const strata_run *r, struct convolution *cv)
{
    const struct deconvolution *dc = r->state;
    const strata_tensor *bias = &r->weight[DECONVOLUTION_BIAS];
    *cv = (struct convolution){.w = dc->w, .groups = dc->groups, .out_c = dc->out_c};
    return (struct convolution_job){
        .cv = cv,
        .bias = bias->rank > 0 ? bias->data : NULL,
        .epilogue = r->epilogue,
    };
}

/* The scratch from `workspace` on; the rest is the direct method's. */
static float *take_scratch(const strata_run *r, char *workspace,
                           struct convolution_job *job)
{
    const struct deconvolution *dc = r->state;
    strata_tensor woven = woven_image(&dc->w, dc->groups * dc->out_c);
    float *scratch = NULL;
    if (phases_are_kept(dc))
        scratch = image_take(&workspace, &woven);
    job->scratch = workspace;
    job->scratch_size = r->workspace_size - (size_t)(workspace - (char *)r->workspace);
    return scratch;
}

static void deconvolution_image(const struct deconvolution *dc,
                                const struct convolution_job *tail, const float *in,
                                int64_t image, float *scratch)
{
    if (deconvolution_phases(&dc->w) > 1 && windows_are_beside(dc))
        beside_image(dc, tail, in, image);
    else
        phases_image(dc, tail, in, image, scratch);
}

static int c_run(const strata_run *r)
{
    const struct deconvolution *dc = r->state;
    const float *in = r->in[0].data;
    struct convolution cv;
    struct convolution_job job = tail_job(r, &cv);
    float *scratch = take_scratch(r, r->workspace, &job);
    job.out = r->out[0].data;
    if (r->epilogue->flags & STRATA_EPILOGUE_RESIDUAL)
        job.residual = r->epilogue->residual->data;
    for (int64_t image = 0; image < r->in[0].dims[0]; image++)
        deconvolution_image(
            dc, &job, in + image * dc->groups * dc->in_c * window_in_count(&dc->w), image,
            scratch);
    return STRATA_OK;
}

static int any_run(const strata_run *r)
{
    const strata_tensor *residual =
        r->epilogue->flags & STRATA_EPILOGUE_RESIDUAL ? r->epilogue->residual : NULL;
    char *workspace = r->workspace;
    struct convolution cv;
    struct convolution_job job = tail_job(r, &cv);
    float *in = image_take(&workspace, &r->in[0]);
    float *out = image_take(&workspace, &r->out[0]), *sum = NULL;
    if (residual)
        sum = image_take(&workspace, &r->out[0]);
    float *scratch = take_scratch(r, workspace, &job);
    job.out = out;
    job.residual = sum;
    for (int64_t image = 0; image < r->in[0].dims[0]; image++) {
        image_unpack(in, &r->in[0], image);
        if (residual)
            image_unpack(sum, residual, image);
        deconvolution_image(r->state, &job, in, 0, scratch);
        image_pack(&r->out[0], image, out);
    }
    return STRATA_OK;
}

/* ---- the definition ------------------------------------------------------------ */

/* Adds a row of the input, as one kernel element sees it, to a row of the output where
 * its first lands at `at`. */
static void reference_add_row(const struct window *w, double *out, const double *in,
                              int64_t at, double weight)
{
    for (int64_t i = 0; i < w->in[2]; i++, at += w->stride[2])
        if (at >= 0 && at < w->out[2])
            out[at] += in[i] * weight;
}

/* Adds one channel of the input, as one kernel element sees it, to the output. */
static void reference_add(const struct window *w, double *out, const double *in,
                          int64_t tap, double weight)
{
    int64_t k[WINDOW_DIMS], at[WINDOW_DIMS];
    plane_place(k, w->kernel, tap);
    for (int64_t d = 0; d < w->in[0]; d++)
        for (int64_t h = 0; h < w->in[1]; h++, in += w->in[2]) {
            at[0] = d * w->stride[0] + k[0] * w->dilation[0] - w->begin[0];
            at[1] = h * w->stride[1] + k[1] * w->dilation[1] - w->begin[1];
            at[2] = k[2] * w->dilation[2] - w->begin[2];
            if (at[0] >= 0 && at[0] < w->out[0] && at[1] >= 0 && at[1] < w->out[1])
                reference_add_row(w, out + (at[0] * w->out[1] + at[1]) * w->out[2], in,
                                  at[2], weight);
        }
}

static int reference_run(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const strata_deconvolution *p = n->params;
    const double *bias = weight[DECONVOLUTION_BIAS];
    const double *factors = weight[DECONVOLUTION_WEIGHT], *x = in[0];
    double *y = out[0];
    struct window w;
    int64_t filters;
    int status = deconvolution_resolve(n, &w, &filters);
    if (status != STRATA_OK)
        return status;
    int64_t plane = window_out_count(&w), in_plane = window_in_count(&w);
    int64_t in_c = n->in[0].dims[1] / p->groups, out_c = filters / p->groups;
    int64_t taps = window_kernel_count(&w);
    for (int64_t f = 0; f < n->in[0].dims[0] * filters; f++, y += plane) {
        int64_t k = f % filters, first = k / out_c * in_c;
        for (int64_t i = 0; i < plane; i++)
            y[i] = bias ? bias[k] : 0;
        for (int64_t c = first; c < first + in_c; c++)
            for (int64_t t = 0; t < taps; t++)
                reference_add(&w, y, x + (f / filters * n->in[0].dims[1] + c) * in_plane,
                              t, factors[(c * out_c + k % out_c) * taps + t]);
    }
    return STRATA_OK;
}

static const strata_reference_typed reference = {sizeof reference, 0, reference_run};

static const void *deconvolution_extension(const char *id)
{
    return strcmp(id, STRATA_REFERENCE_V2) == 0 ? &reference : NULL;
}

/* ---- tables -------------------------------------------------------------------- */

#define EPILOGUES                                                                       \
    (STRATA_EPILOGUE_SCALE | STRATA_EPILOGUE_BIAS | STRATA_EPILOGUE_RESIDUAL |          \
     STRATA_EPILOGUE_ACTIVATION)

static const strata_row c_rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};
static const strata_row any_rows[] = {{{WALK_FLOATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1, .device = STRATA_HOST, .flags = STRATA_WEIGHT_PACKED,
     .epilogues = EPILOGUES, .name = "c", .rows = STRATA_ARRAY(c_rows),
     .activations = ELEMENT_ALL_ACTIVATIONS, .efficiency = 0.8, .bandwidth = 0.3,
     .state_size = sizeof(struct deconvolution), .workspace = c_workspace,
     .setup = deconvolution_setup, .run = c_run},
    {.id = 2, .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED | STRATA_STRIDED_IN | STRATA_STRIDED_OUT |
              STRATA_WEIGHT_PACKED,
     .epilogues = EPILOGUES, .name = "any", .rows = STRATA_ARRAY(any_rows),
     .activations = ELEMENT_ALL_ACTIVATIONS, .efficiency = 0.7, .bandwidth = 0.1,
     .state_size = sizeof(struct deconvolution), .workspace = any_workspace,
     .setup = deconvolution_setup, .run = any_run},
};

static const strata_layer deconvolution = {
    .struct_size = sizeof(strata_layer), .version = 1, .name = "Deconvolution",
    .doc = "Transposed convolution with groups, stride, padding and dilation; ranks 3 to "
           "5.",
    .min_in = 1, .max_in = 1, .n_out = 1, .params_size = sizeof(strata_deconvolution),
    .attrs = STRATA_ARRAY(attrs), .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls), .shape = deconvolution_shape,
    .weight_shape = deconvolution_weight_shape, .flops = deconvolution_flops,
    .extension = deconvolution_extension,
};
static const strata_layer *const layers[] = {&deconvolution};
STRATA_MODULE("core", "1.0.0", "Deconvolution", layers)
