/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers of stages in plain C, FP32 between: an image at a time, dense.
 */
#ifndef PLUGINS_COMMON_STAGES_RUN_H
#define PLUGINS_COMMON_STAGES_RUN_H

#include "plugins/common/activate.h"
#include "plugins/common/plane.h"
#include "plugins/common/stages/reference.h"

/* What each stage makes of an image. */
struct stages_job {
    const strata_run *r;
    const struct stages *s;
    float *x, *between, *convolved, *y;
};

static const float *stages_weight(const strata_run *r, int weight)
{
    return r->weight[weight].rank > 0 ? r->weight[weight].data : NULL;
}

static void stages_finish(const struct stages *s, int stage, float *row, int64_t n)
{
    const strata_activation *f = &s->f[stage];
    if (f->kind >= 0)
        activate_row(f->kind, strata_activation_alpha(f), strata_activation_beta(f), row,
                     n);
}

/* Rows of `n` elements: each result is a sum of all of x; of what is in y, if `adds`. */
static void stages_multiply(const struct stages_job *j, int stage, const float *x,
                            float *y, int64_t depth, int64_t results, int64_t n,
                            bool adds)
{
    const float *w = stages_weight(j->r, 2 * stage);
    const float *bias = stages_weight(j->r, 2 * stage + 1);
#pragma omp parallel for schedule(static) if (results * depth * n > IMAGE_PARALLEL)
    for (int64_t k = 0; k < results; k++) {
        float *row = y + k * n;
        for (int64_t i = 0; i < n; i++)
            row[i] = (adds ? row[i] : 0) + (bias ? bias[k] : 0);
        for (int64_t c = 0; c < depth; c++) {
            const float factor = w[k * depth + c], *from = x + c * n;
#pragma omp simd
            for (int64_t i = 0; i < n; i++)
                row[i] += factor * from[i];
        }
        stages_finish(j->s, stage, row, n);
    }
}

/* Each result is a sum over the windows of its group's channels. */
static void stages_convolve(const struct stages_job *j, const float *x, float *y)
{
    const struct stages *s = j->s;
    const struct window *w = &s->w;
    const float *weight = stages_weight(j->r, 2 * STAGE_WINDOWS);
    const float *bias = stages_weight(j->r, 2 * STAGE_WINDOWS + 1);
    const int64_t in = window_in_count(w), out = window_out_count(w);
    const int64_t depth = s->before / s->groups, taps = window_kernel_count(w);
#pragma omp parallel for schedule(static) if (s->behind * out > IMAGE_PARALLEL)
    for (int64_t c = 0; c < s->behind; c++) {
        const float *from = x + c / (s->behind / s->groups) * depth * in;
        float *plane = y + c * out;
        for (int64_t i = 0; i < out; i++)
            plane[i] = bias ? bias[c] : 0;
        for (int64_t k = 0; k < depth * taps; k++)
            plane_slide(w, from + k / taps * in, plane, weight[c * depth * taps + k],
                        k % taps / w->kernel[2], k % w->kernel[2]);
        stages_finish(s, STAGE_WINDOWS, plane, out);
    }
}

/* Of the four parts of memory, in floats; 0: too many. */
static int64_t stages_sizes(const struct stages *s, int64_t size[4])
{
    const int64_t in = window_in_count(&s->w), out = window_out_count(&s->w);
    return plane_sizes(4,
                       (const int64_t[]){s->channels, s->first ? s->before : 0, s->behind,
                                         s->last ? s->results : 0},
                       (const int64_t[]){in, in, out, out}, size);
}

static size_t stages_workspace(const strata_node *n)
{
    struct stages s;
    int64_t size[4];
    return stages_of(n, &s) == STRATA_OK ? plane_bytes(stages_sizes(&s, size)) : SIZE_MAX;
}

static void stages_compute(const struct stages_job *j, int64_t image)
{
    const struct stages *s = j->s;
    const strata_run *r = j->r;
    const int64_t in = window_in_count(&s->w), out = window_out_count(&s->w);
    image_unpack(j->x, &r->in[0], image);
    if (s->first)
        stages_multiply(j, STAGE_FIRST, j->x, j->between, s->channels, s->before, in,
                        false);
    stages_convolve(j, s->first ? j->between : j->x, j->convolved);
    if (s->last && r->n_in > 1)
        image_unpack(j->y, &r->in[1], image);
    if (s->shortcut)
        stages_multiply(j, STAGE_SHORTCUT, j->x, j->y, s->channels, s->results, out,
                        false);
    if (s->last)
        stages_multiply(j, STAGE_LAST, j->convolved, j->y, s->behind, s->results, out,
                        r->n_in > 1 || s->shortcut);
    image_pack(&r->out[0], image, s->last ? j->y : j->convolved);
}

static int stages_run(const strata_run *r)
{
    struct stages_job j = {.r = r, .s = r->state};
    int64_t size[4];
    stages_sizes(j.s, size);
    j.x = r->workspace;
    j.between = j.x + size[0];
    j.convolved = j.between + size[1];
    j.y = j.convolved + size[2];
    for (int64_t image = 0; image < r->in[0].dims[0]; image++)
        stages_compute(&j, image);
    return STRATA_OK;
}

static int stages_setup(const strata_node *n, void *state)
{
    return stages_of(n, state);
}

static int stages_accept(const strata_node *n)
{
    struct stages s;
    const int status = stages_of(n, &s);
    if (status == STRATA_OK && n->n_in > 1 && !s.last)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "a second input is added to projected results alone");
    return status;
}

static const strata_row stages_rows[] = {{{ELEMENT_FLOATS}, {STRATA_SAME}}};

static const strata_impl stages_impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .name = "c",
     .rows = STRATA_ARRAY(stages_rows),
     .efficiency = 0.05,
     .bandwidth = 0.1,
     .state_size = sizeof(struct stages),
     .accept = stages_accept,
     .workspace = stages_workspace,
     .setup = stages_setup,
     .run = stages_run},
};

/* What such layers say alike; their attributes and weights are `attrs` and `weights`. */
#define STAGES_LAYER                                                                     \
    .struct_size = sizeof(strata_layer), .version = 1, .min_in = 1, .max_in = 2,         \
    .n_out = 1, .attrs = STRATA_ARRAY(attrs), .weights = STRATA_ARRAY(weights),          \
    .impls = STRATA_ARRAY(stages_impls), .shape = stages_output,                         \
    .weight_shape = stages_weight_shape, .flops = stages_flops,                          \
    .extension = stages_extension

#endif /* PLUGINS_COMMON_STAGES_RUN_H */
