/* SPDX-License-Identifier: Apache-2.0
 *
 * A faster special case of core::Convolution: depthwise (as many groups as channels and
 * filters) in fp32:nhwc, where a pixel's channels are one vector. The file defines no
 * layer: dropped into a plugin folder, it is priced against the built-in impls wherever
 * accept does not refuse. Shows extends, accept, packed weights and an epilogue.
 */
#include <strata/layers.h>

enum { WEIGHT, BIAS };

/* What run needs, worked out once. */
typedef struct {
    int64_t height, width, pitch; /* of the window; pitch: elements of an input row */
    int64_t step[2], pad[2];
    const float *packed; /* height x width x channels */
} state;

/* A list has one entry for all spatial dims or one for each; of pads the begins count,
 * the ends follow from the output's size. */
static int64_t entry(strata_ints list, int dim, int64_t otherwise)
{
    return list.n == 0 ? otherwise : list.v[list.n == 1 ? 0 : dim];
}

static int accept(const strata_node *n)
{
    const strata_convolution *p = n->params;
    if (n->in[0].rank != 4)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "rank %d, not 4", (int)n->in[0].rank);
    if (p->groups != n->in[0].dims[1] || p->groups != n->out[0].dims[1])
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "not depthwise");
    if (entry(p->dilation, 0, 1) != 1 || entry(p->dilation, 1, 1) != 1)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "dilated");
    if (p->pad_mode != STRATA_PAD_EXPLICIT && p->pad_mode != STRATA_PAD_VALID)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "pad_mode same");
    return STRATA_OK;
}

static int setup(const strata_node *n, void *memory)
{
    const strata_convolution *p = n->params;
    const strata_pack *pack = n->host->extension(STRATA_PACK_V1);
    const strata_tensor *weight = &n->weight[WEIGHT];
    const int64_t channels = n->in[0].dims[1];
    state *s = memory;
    void *packed;
    if (!pack)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the host lacks " STRATA_PACK_V1);
    s->height = weight->dims[2];
    s->width = weight->dims[3];
    s->pitch = n->in[0].dims[3] * channels;
    for (int d = 0; d < 2; d++) {
        s->step[d] = entry(p->stride, d, 1);
        s->pad[d] = p->pad_mode == STRATA_PAD_VALID ? 0 : entry(p->pad, d, 0);
    }
    int status = pack->alloc(n, (size_t)weight->count * sizeof(float), &packed);
    if (status != STRATA_OK)
        return status;
    const int64_t taps = s->height * s->width;
    for (int64_t i = 0; i < weight->count; i++)
        ((float *)packed)[i % taps * channels + i / taps] = ((float *)weight->data)[i];
    s->packed = packed;
    return STRATA_OK;
}

/* y += x * weight over one pixel's channels: the compiler's vectors do the work. */
static void add_tap(float *restrict y, const float *restrict x,
                    const float *restrict weight, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++)
        y[c] += x[c] * weight[c];
}

static void pixel(const strata_run *r, float *y, const float *image, int64_t top,
                  int64_t left)
{
    const state *s = r->state;
    const strata_tensor *in = &r->in[0];
    const float *bias = r->weight[BIAS].rank > 0 ? r->weight[BIAS].data : NULL;
    const int64_t channels = in->dims[1];
    for (int64_t c = 0; c < channels; c++)
        y[c] = bias ? bias[c] : 0;
    for (int64_t i = 0; i < s->height; i++)
        for (int64_t k = 0; k < s->width; k++)
            if (top + i >= 0 && top + i < in->dims[2] && left + k >= 0 &&
                left + k < in->dims[3])
                add_tap(y, image + (top + i) * s->pitch + (left + k) * channels,
                        s->packed + (i * s->width + k) * channels, channels);
    if (r->epilogue->flags & STRATA_EPILOGUE_ACTIVATION) /* RELU: no other is declared */
        for (int64_t c = 0; c < channels; c++)
            y[c] = y[c] < 0 ? 0 : y[c];
}

static int run(const strata_run *r)
{
    const state *s = r->state;
    const strata_tensor *in = &r->in[0], *out = &r->out[0];
    const int64_t height = out->dims[2], width = out->dims[3], channels = out->dims[1];
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < out->dims[0] * height; row++) {
        const float *image = (const float *)in->data + row / height * in->strides[0];
        float *y = (float *)out->data + row * width * channels;
        for (int64_t w = 0; w < width; w++)
            pixel(r, y + w * channels, image, row % height * s->step[0] - s->pad[0],
                  w * s->step[1] - s->pad[1]);
    }
    return STRATA_OK;
}

static const strata_row rows[] = {{{STRATA_F32_NHWC}, {STRATA_F32_NHWC}}};
static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .epilogues = STRATA_EPILOGUE_ACTIVATION,
     .name = "depthwise_nhwc",
     .rows = STRATA_ARRAY(rows),
     .activations = UINT64_C(1) << STRATA_RELU,
     .efficiency = 0.2,
     .state_size = sizeof(state),
     .accept = accept,
     .setup = setup,
     .run = run},
};
static const strata_extends convolution = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Convolution",
    .params_size = sizeof(strata_convolution),
    .impls = STRATA_ARRAY(impls),
};
static const strata_extends *const extends[] = {&convolution};
STRATA_MODULE_EXTENDS("org.example", "1.0.0", "+core::Convolution", extends)
