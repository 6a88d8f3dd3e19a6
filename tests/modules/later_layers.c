/* SPDX-License-Identifier: Apache-2.0
 *
 * Mix, for tests/modules/later_device.c, whose memory is the host's: y = x/2 + 1, or so
 * many sums of each row, to which every element adds. Halves is the same of x rounded to
 * FP16, and says so.
 */
#include <strata/half.h>
#include <strata/plugin.h>

#ifndef DEVICE
#define DEVICE STRATA_CUDA
#endif

struct mix {
    int64_t sums; /* 0: none */
};

static const strata_attr attrs[] = {
    {.name = "sums",
     .type = STRATA_I64,
     .offset = offsetof(struct mix, sums),
     .doc = "sums of each row"},
};

static int shape(const strata_node *n)
{
    const struct mix *p = n->params;
    n->out[0].dtype = n->in[0].dtype;
    n->out[0].rank = n->in[0].rank;
    for (int d = 0; d < n->in[0].rank; d++)
        n->out[0].dims[d] = p->sums == 0 || d == 0 ? n->in[0].dims[d]
                            : d == 1               ? p->sums
                                                   : 1;
    return STRATA_OK;
}

static float same(float x)
{
    return x;
}

static float rounded(float x)
{
    return strata_float_of_half(strata_half_of_float(x));
}

static void mix_of(const strata_run *r, float (*of)(float))
{
    const struct mix *p = r->params;
    const float *x = r->in[0].data;
    float *y = r->out[0].data;
    const int64_t rows = r->in[0].dims[0], row = r->in[0].count / rows;
    for (int64_t i = 0; i < r->in[0].count && p->sums == 0; i++)
        y[i] = of(x[i]) / 2 + 1;
    for (int64_t n = 0; n < rows; n++)
        for (int64_t k = 0; k < p->sums; k++) {
            float sum = 0;
            for (int64_t i = k; i < row; i += p->sums)
                sum += of(x[n * row + i]) * (float)(i % 17 - 8);
            y[n * p->sums + k] = sum;
        }
}

static int run_mix(const strata_run *r)
{
    mix_of(r, same);
    return STRATA_OK;
}

static int run_halves(const strata_run *r)
{
    mix_of(r, rounded);
    return STRATA_OK;
}

static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_F32_NCHW}}};
#define LAYER(layer_, name_, flags_, run_)                                               \
    static const strata_impl layer_##_impls[] = {{.id = 1,                               \
                                                  .device = DEVICE,                      \
                                                  .flags = flags_,                       \
                                                  .name = "later",                       \
                                                  .rows = STRATA_ARRAY(rows),            \
                                                  .run = run_}};                         \
    static const strata_layer layer_ = {.struct_size = sizeof(strata_layer),             \
                                        .version = 1,                                    \
                                        .name = name_,                                   \
                                        .doc = "mixes",                                  \
                                        .min_in = 1,                                     \
                                        .max_in = 1,                                     \
                                        .n_out = 1,                                      \
                                        .params_size = sizeof(struct mix),               \
                                        .attrs = STRATA_ARRAY(attrs),                    \
                                        .impls = STRATA_ARRAY(layer_##_impls),           \
                                        .shape = shape}
LAYER(mix, "Mix", 0, run_mix);
LAYER(halves, "Halves", STRATA_ROUNDS_IN, run_halves);
static const strata_layer *const layers[] = {&mix, &halves};
STRATA_MODULE("test.later", "1.0.0", "Mix,Halves", layers)
