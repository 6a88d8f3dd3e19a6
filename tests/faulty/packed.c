/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer with a weight, y = x*w[c], whose setup says that it packs it: with -DKEEPS it
 * keeps the weight's address instead, with -DWRITES it writes to the weight.
 */
#include <strata/plugin.h>

#include <string.h>

struct state {
    const float *weight;
};

static int weight_shape(const strata_node *n, strata_tensor *expected)
{
    expected[0].rank = 1;
    expected[0].dims[0] = n->in[0].rank > 1 ? n->in[0].dims[1] : 1;
    return STRATA_OK;
}

static int setup(const strata_node *n, void *memory)
{
    struct state *s = memory;
    s->weight = n->weight[0].data;
#ifdef WRITES
    *(float *)n->weight[0].data += 1;
#endif
#ifndef KEEPS
    const strata_pack *pack = n->host->extension(STRATA_PACK_V1);
    const size_t bytes = (size_t)n->weight[0].count * sizeof(float);
    void *packed;
    if (!pack)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the host has no " STRATA_PACK_V1);
    int status = pack->alloc(n, bytes, &packed);
    if (status != STRATA_OK)
        return status;
    s->weight = memcpy(packed, n->weight[0].data, bytes);
#endif
    return STRATA_OK;
}

static int64_t channel_of(const strata_tensor *t, int64_t i)
{
    int64_t plane = 1;
    for (int d = 2; d < t->rank; d++)
        plane *= t->dims[d];
    return t->rank > 1 ? i / plane % t->dims[1] : 0;
}

static int run(const strata_run *r)
{
    const struct state *s = r->state;
    const float *x = r->in[0].data;
    float *y = r->out[0].data;
    for (int64_t i = 0; i < r->out[0].count; i++)
        y[i] = x[i] * s->weight[channel_of(&r->out[0], i)];
    return STRATA_OK;
}

static int define(const strata_node *n, const double *const *in,
                  const double *const *weight, double *const *out)
{
    for (int64_t i = 0; i < n->out[0].count; i++)
        out[0][i] = in[0][i] * weight[0][channel_of(&n->out[0], i)];
    return STRATA_OK;
}

static const void *extension(const char *id)
{
    static const strata_reference table = {sizeof table, 0, define};
    return strcmp(id, STRATA_REFERENCE_V1) == 0 ? &table : NULL;
}

static const strata_weight weights[] = {
    {.name = "scale", .flags = STRATA_REQUIRED, .rank = 1, .doc = "a factor a channel"},
};
static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};
static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_WEIGHT_PACKED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .state_size = sizeof(struct state),
     .setup = setup,
     .run = run},
};
static const strata_layer layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Scaled",
    .doc = "y = x*w[c]",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .weight_shape = weight_shape,
    .extension = extension,
};
static const strata_layer *const layers[] = {&layer};
STRATA_MODULE("org.faulty", "1.0.0", "Scaled", layers)
