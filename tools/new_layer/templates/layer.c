/* @name@: the layer and its host impl. Put your formula into element and define, your
 * own words into the docs, and keep `make check` passing. */
#include <string.h>

@if cuda
#include "@file@.h"
@else
#include <strata/plugin.h>

@include params.inc
@end

/* One element, as fast as you like. */
static float element(@element_params@float x)
{
    return x > 0 ? x : @slope_float@ * x;
}

/* The same by definition: the checker compares run with it. */
static double element_exact(@element_params@double x)
{
    return x > 0 ? x : @slope_double@ * x;
}

@if several_in
/* All inputs are of one shape, and so are the outputs. */
static int shape(const strata_node *n)
{
    for (int32_t i = 1; i < n->n_in; i++)
        if (n->in[i].rank != n->in[0].rank ||
            memcmp(n->in[i].dims, n->in[0].dims,
                   (size_t)n->in[0].rank * sizeof n->in[0].dims[0]) != 0)
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "input %d has not the shape of input 0; all are alike",
                               (int)i);
    for (int32_t i = 0; i < n->n_out; i++) {
        n->out[i].rank = n->in[0].rank;
        memcpy(n->out[i].dims, n->in[0].dims, sizeof n->in[0].dims);
    }
    return STRATA_OK;
}

@end
@if weight
static int64_t channels_of(const strata_tensor *t)
{
    return t->rank > 1 ? t->dims[1] : 1;
}

/* Elements of one channel of one image, in linear order. */
static int64_t pixels_of(const strata_tensor *t)
{
    int64_t pixels = 1;
    for (int32_t d = 2; d < t->rank; d++)
        pixels *= t->dims[d];
    return pixels;
}

/* Each weight has one value a channel. */
static int weight_shape(const strata_node *n, strata_tensor *expected)
{
    for (int32_t i = 0; i < n->n_weights; i++) {
        expected[i].dtype = STRATA_FP32;
        expected[i].rank = 1;
        expected[i].dims[0] = channels_of(&n->in[0]);
    }
    return STRATA_OK;
}

@end
static int run(const strata_run *r)
{
@if uses_params
    const params *p = r->params;
@end
    const strata_tensor *y = &r->out[0];
@for weight
    const float *@weight.name@ = r->weight[@weight.constant@].data;
@end
@if weight
    const int64_t channels = channels_of(y), pixels = pixels_of(y);
@end
    for (int64_t i = 0; i < y->count; i++) {
        float x = ((const float *)r->in[0].data)[i];
@if several_in
        for (int32_t k = 1; k < r->n_in; k++)
            x += ((const float *)r->in[k].data)[i];
@end
@if weight
        const int64_t c = i / pixels % channels;
@end
@for weight
@if weight.optional
        if (r->weight[@weight.constant@].rank > 0) /* else the network gives none */
            x @weight.operator@ @weight.name@[c];
@else
        x @weight.operator@ @weight.name@[c];
@end
@end
@if several_out
        for (int32_t k = 0; k < r->n_out; k++)
            ((float *)r->out[k].data)[i] = element(@element_arguments@x);
@else
        ((float *)y->data)[i] = element(@element_arguments@x);
@end
    }
    return STRATA_OK;
}

/* Floats are double here, whatever their format; integers would be int64_t. */
static int define(const strata_node *n, const void *const *in, const void *const *weight,
                  void *const *out)
{
@if uses_params
    const params *p = n->params;
@end
@if weight
    const int64_t channels = channels_of(&n->out[0]), pixels = pixels_of(&n->out[0]);
@else
    (void)weight;
@end
    for (int64_t i = 0; i < n->out[0].count; i++) {
        double x = ((const double *)in[0])[i];
@if several_in
        for (int32_t k = 1; k < n->n_in; k++)
            x += ((const double *)in[k])[i];
@end
@if weight
        const int64_t c = i / pixels % channels;
@end
@for weight
@if weight.optional
        if (weight[@weight.constant@])
            x @weight.operator@ ((const double *)weight[@weight.constant@])[c];
@else
        x @weight.operator@ ((const double *)weight[@weight.constant@])[c];
@end
@end
        for (int32_t k = 0; k < n->n_out; k++)
            ((double *)out[k])[i] = element_exact(@element_arguments@x);
    }
    return STRATA_OK;
}

static const strata_reference_typed reference = {sizeof reference, 0, define};

static const void *extension(const char *id)
{
    return strcmp(id, STRATA_REFERENCE_V2) == 0 ? &reference : NULL;
}

@if attr
static const strata_attr attrs[] = {
@for attr
    {.name = "@attr.name@",
     .type = @attr.type@,
     .offset = offsetof(params, @attr.name@),
@if attr.def
     .def = @attr.def@,
@end
@if attr.range
     .min = @attr.min@,
     .max = @attr.max@,
@end
@if attr.choices
     .choices = "@attr.choices@",
@end
@if attr.text
     .def_text = "@attr.text@",
@end
     .doc = "@attr.doc@"},
@end
};

@end
@if weight
static const strata_weight weights[] = {
@for weight
@if weight.optional
    {.name = "@weight.name@", .rank = 1, .doc = "one value a channel"},
@else
    {.name = "@weight.name@", .flags = STRATA_REQUIRED, .rank = 1,
     .doc = "one value a channel"},
@end
@end
};

@end
/* Formats of the inputs, formats of the outputs; the last entry repeats. */
@if several_in
static const strata_row rows[] = {
    {.in = {STRATA_F32_NCHW, STRATA_SAME}, .out = {STRATA_SAME}}};
@else
static const strata_row rows[] = {{.in = {STRATA_F32_NCHW}, .out = {STRATA_SAME}}};
@end

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_INPLACE_OK,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .run = run},
};

static const strata_layer layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "@name@",
    .doc = "@name@ of each element",
    .min_in = @in@,
    .max_in = @in@,
    .n_out = @out@,
@if attr
    .params_size = sizeof(params),
    .attrs = STRATA_ARRAY(attrs),
@end
@if weight
    .weights = STRATA_ARRAY(weights),
@end
    .impls = STRATA_ARRAY(impls),
@if several_in
    .shape = shape,
@end
@if weight
    .weight_shape = weight_shape,
@end
    .extension = extension,
};

static const strata_layer *const layers[] = {&layer};
STRATA_MODULE("@namespace@", "1.0.0", "@name@", layers)
