/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that exercise the network loader: every type of attribute, weights, a number of
 * outputs that an attribute decides, no inputs, and callbacks that break the contract.
 */
#include <strata/plugin.h>

#include <string.h>

/* Copies the first input over each output, as far as it reaches. */
static int copy_run(const strata_run *r)
{
    for (int32_t i = 0; i < r->n_out; i++) {
        size_t bytes = (size_t)r->out[i].size * sizeof(float);
        memset(r->out[i].data, 0, bytes);
        if (r->n_in && r->in[0].size <= r->out[i].size)
            bytes = (size_t)r->in[0].size * sizeof(float);
        if (r->n_in)
            memcpy(r->out[i].data, r->in[0].data, bytes);
    }
    return STRATA_OK;
}

static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_F32_NCHW}}};
static const strata_impl impls[] = {
    {.id = 1, .name = "copy", .rows = STRATA_ARRAY(rows), .run = copy_run},
};
static const strata_row source_rows[] = {{{0}, {STRATA_F32_NCHW}}};
static const strata_impl source_impls[] = {
    {.id = 1, .name = "copy", .rows = STRATA_ARRAY(source_rows), .run = copy_run},
};

/* ---- Affine: all types of attributes, a required and an optional weight ---- */

struct affine {
    int64_t units;
    double gain;
    int32_t flag, mode;
    strata_string label;
    strata_ints steps;
    strata_reals taps;
    int64_t any;
};

static const strata_attr affine_attrs[] = {
    {.name = "units",
     .type = STRATA_I64,
     .flags = STRATA_REQUIRED,
     .offset = offsetof(struct affine, units),
     .min = 1,
     .max = 4096,
     .doc = "rows of the weight"},
    {.name = "gain",
     .type = STRATA_F64,
     .offset = offsetof(struct affine, gain),
     .def = 1.5,
     .min = 0.25,
     .max = 8,
     .doc = "factor of everything"},
    {.name = "flag",
     .type = STRATA_BOOL,
     .offset = offsetof(struct affine, flag),
     .def = 1,
     .doc = "whether to"},
    {.name = "mode",
     .type = STRATA_ENUM,
     .offset = offsetof(struct affine, mode),
     .def = 1,
     .choices = "add|sub|mul",
     .doc = "how to combine"},
    {.name = "label",
     .type = STRATA_STRING,
     .offset = offsetof(struct affine, label),
     .def_text = "plain",
     .doc = "a text"},
    {.name = "steps",
     .type = STRATA_INTS,
     .offset = offsetof(struct affine, steps),
     .def_text = "1x2",
     .min = 1,
     .max = 9,
     .doc = "steps"},
    {.name = "taps",
     .type = STRATA_REALS,
     .offset = offsetof(struct affine, taps),
     .def_text = "0.5, 0.25",
     .min = -1,
     .max = 1,
     .doc = "taps"},
    {.name = "any",
     .type = STRATA_I64,
     .offset = offsetof(struct affine, any),
     .def = -7,
     .doc = "any integer"},
};

static const strata_weight affine_weights[] = {
    {.name = "weight",
     .flags = STRATA_REQUIRED,
     .rank = 2,
     .dtypes = 1u << STRATA_FP32 | 1u << STRATA_FP16,
     .doc = "(units, K)"},
    {.name = "bias", .rank = 1, .doc = "(units)"},
};

static int affine_weight_shape(const strata_node *n, strata_tensor *expected)
{
    const struct affine *p = n->params;
    int64_t k = 1;
    for (int32_t d = 1; d < n->in[0].rank; d++)
        k *= n->in[0].dims[d];
    expected[0].rank = 2;
    expected[0].dims[0] = p->units;
    expected[0].dims[1] = k;
    expected[1].rank = 1;
    expected[1].dims[0] = p->units;
    return STRATA_OK;
}

static int affine_shape(const strata_node *n)
{
    const struct affine *p = n->params;
    if (n->in[0].rank < 2)
        return STRATA_FAIL(n, STRATA_EINVAL, "input has %d dims; at least 2 are needed",
                           n->in[0].rank);
    n->out[0].rank = 2;
    n->out[0].dims[0] = n->in[0].dims[0];
    n->out[0].dims[1] = p->units;
    return STRATA_OK;
}

static const strata_layer affine = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Affine",
    .doc = "A matrix and a vector.",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(struct affine),
    .attrs = STRATA_ARRAY(affine_attrs),
    .weights = STRATA_ARRAY(affine_weights),
    .impls = STRATA_ARRAY(impls),
    .shape = affine_shape,
    .weight_shape = affine_weight_shape,
};

/* ---- Split: `parts` outputs ---- */

struct split {
    int64_t parts;
};

static const strata_attr split_attrs[] = {
    {.name = "parts",
     .type = STRATA_I64,
     .flags = STRATA_REQUIRED,
     .offset = offsetof(struct split, parts),
     .min = 0,
     .max = 100000,
     .doc = "number of outputs"},
};

static int split_outputs(const void *params)
{
    return (int)((const struct split *)params)->parts;
}

static int split_shape(const strata_node *n)
{
    if (n->in[0].rank < 2 || n->in[0].dims[1] % n->n_out != 0)
        return STRATA_FAIL(n, STRATA_EINVAL, "%lld channels do not split in %d",
                           (long long)n->in[0].dims[1], n->n_out);
    for (int32_t i = 0; i < n->n_out; i++) {
        n->out[i] = n->in[0];
        n->out[i].dims[1] /= n->n_out;
    }
    return STRATA_OK;
}

static const strata_layer split = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Split",
    .doc = "Equal parts of the channels.",
    .min_in = 1,
    .max_in = 1,
    .n_out = -1,
    .params_size = sizeof(struct split),
    .attrs = STRATA_ARRAY(split_attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = split_shape,
    .outputs = split_outputs,
};

/* ---- Join: two inputs and more; Pass: one, shape by default ---- */

static int join_shape(const strata_node *n)
{
    n->out[0].rank = n->in[0].rank;
    memcpy(n->out[0].dims, n->in[0].dims, sizeof n->in[0].dims);
    for (int32_t i = 1; i < n->n_in; i++) {
        if (n->in[i].rank != n->in[0].rank || n->in[i].rank < 2)
            return STRATA_FAIL(n, STRATA_EINVAL, "input %d has rank %d; needed %d", i,
                               n->in[i].rank, n->in[0].rank);
        n->out[0].dims[1] += n->in[i].dims[1];
    }
    return STRATA_OK;
}

static const strata_layer join = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Join",
    .doc = "Channels one after the other.",
    .min_in = 2,
    .max_in = -1,
    .n_out = 1,
    .impls = STRATA_ARRAY(impls),
    .shape = join_shape,
};

static const strata_layer pass = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Pass",
    .doc = "The input.",
    .min_in = 1,
    .max_in = 2,
    .n_out = 1,
    .impls = STRATA_ARRAY(impls),
};

/* ---- Source: no inputs, a weight of any shape ---- */

static const strata_weight source_weights[] = {
    {.name = "value",
     .flags = STRATA_REQUIRED,
     .rank = -1,
     .dtypes = 1u << STRATA_FP32 | 1u << STRATA_INT32,
     .doc = "the output"},
};

static int source_shape(const strata_node *n)
{
    n->out[0].rank = n->weight[0].rank;
    n->out[0].dtype = n->weight[0].dtype;
    memcpy(n->out[0].dims, n->weight[0].dims, sizeof n->weight[0].dims);
    return STRATA_OK;
}

static const strata_layer source = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Source",
    .doc = "Its weight.",
    .min_in = 0,
    .max_in = 0,
    .n_out = 1,
    .weights = STRATA_ARRAY(source_weights),
    .impls = STRATA_ARRAY(source_impls),
    .shape = source_shape,
};

/* ---- Fill: output dims from an attribute; Mute: fails without a message ---- */

struct fill {
    strata_ints dims;
};

static const strata_attr fill_attrs[] = {
    {.name = "dims",
     .type = STRATA_INTS,
     .flags = STRATA_REQUIRED,
     .offset = offsetof(struct fill, dims),
     .doc = "of the output"},
};

static int fill_shape(const strata_node *n)
{
    const struct fill *p = n->params;
    n->out[0].rank = (int32_t)p->dims.n;
    for (int64_t d = 0; d < p->dims.n && d < STRATA_MAX_RANK; d++)
        n->out[0].dims[d] = p->dims.v[d];
    return STRATA_OK;
}

static const strata_layer fill = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Fill",
    .doc = "Any shape, sound or not.",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(struct fill),
    .attrs = STRATA_ARRAY(fill_attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = fill_shape,
};

static int mute_shape(const strata_node *n)
{
    (void)n;
    return STRATA_EUNSUPPORTED;
}

static const strata_layer mute = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Mute",
    .doc = "Fails and does not say why.",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .impls = STRATA_ARRAY(impls),
    .shape = mute_shape,
};

/* ---- Shift: one name for an attribute and a weight ---- */

struct shift {
    double shift;
};

static const strata_attr shift_attrs[] = {
    {.name = "shift",
     .type = STRATA_F64,
     .offset = offsetof(struct shift, shift),
     .def = 0.5,
     .doc = "addend where the weight is absent"},
};

static const strata_weight shift_weights[] = {
    {.name = "shift", .rank = 1, .doc = "addends"},
};

static const strata_layer shift = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Shift",
    .doc = "A number or a vector is added.",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(struct shift),
    .attrs = STRATA_ARRAY(shift_attrs),
    .weights = STRATA_ARRAY(shift_weights),
    .impls = STRATA_ARRAY(impls),
};

static const strata_layer *const layers[] = {&affine, &split, &join, &pass,
                                             &source, &fill,  &mute, &shift};

STRATA_MODULE("test", "1.0.0", "Affine,Split,Join,Pass,Source,Fill,Mute,Shift", layers)
