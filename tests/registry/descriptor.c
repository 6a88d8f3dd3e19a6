/* SPDX-License-Identifier: Apache-2.0
 *
 * Validation of tables, one broken field at a time.
 */
#include "registry/descriptor.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

TestSuite(descriptor, .timeout = 600);

static int run(const strata_run *r)
{
    return r->n_in == 1 ? STRATA_OK : STRATA_EINVAL;
}

static int shape(const strata_node *n)
{
    n->out[0].rank = 1;
    return STRATA_OK;
}

/* A good module of two layers and an extension; each case breaks one field of it. */
struct tables {
    strata_attr attrs[7];
    strata_weight weights[2];
    strata_row rows[2];
    strata_impl impls[2];
    strata_layer layer, source;
    strata_extends extends;
    const strata_layer *layers[2];
    const strata_extends *extend_list[1];
    strata_module module;
};

static const struct tables good = {
    .attrs =
        {
            {"axis", STRATA_I64, 0, 0, 1, -8, 7, NULL, NULL, NULL},
            {"slope", STRATA_F64, 0, 8, 0.5, 0, 1, NULL, NULL, "doc"},
            {"flag", STRATA_BOOL, 0, 16, 1, 0, 0, NULL, NULL, NULL},
            {"mode", STRATA_ENUM, 0, 20, 1, 0, 0, "max|average", NULL, NULL},
            {"label", STRATA_STRING, 0, 24, 0, 0, 0, NULL, "text", NULL},
            {"kernel", STRATA_INTS, 0, 40, 0, 1, 64, NULL, "3x3, 5", NULL},
            {"scale", STRATA_REALS, 0, 56, 0, 0, 0, NULL, "0.5, 1e3", NULL},
        },
    .weights =
        {
            {"weight", STRATA_REQUIRED, 4, 0, NULL},
            {"bias", 0, -1, 3, NULL},
        },
    .rows =
        {
            {{STRATA_FOUR, STRATA_SAME}, {STRATA_SAME}},
            {{STRATA_F32_NCHW}, {STRATA_F16_NCHW}},
        },
    .impls =
        {
            {.id = 1, .device = STRATA_HOST, .name = "c", .run = run},
            {.id = 2, .device = STRATA_CUDA, .name = "c", .run = run},
        },
    .layer = {sizeof(strata_layer), 1, "Good", "doc", 1, 2, 1, 0, 72},
    .source = {sizeof(strata_layer), 1, "Source", NULL, 0, 0, 1, 0, 0, .shape = shape},
    .extends = {sizeof(strata_extends), 1, "core::Pooling", 8},
    .module = {sizeof(strata_module), 0, "org.example", "1.0.0"},
};

static void connect(struct tables *t)
{
    *t = good;
    for (size_t i = 0; i < 2; i++)
        t->impls[i].rows = (strata_array)STRATA_ARRAY(t->rows);
    t->layer.attrs = (strata_array)STRATA_ARRAY(t->attrs);
    t->layer.weights = (strata_array)STRATA_ARRAY(t->weights);
    t->layer.impls = (strata_array)STRATA_ARRAY(t->impls);
    t->extends.impls = (strata_array){t->impls, 1, sizeof t->impls[0]};
    t->layers[0] = &t->layer;
    t->layers[1] = &t->source;
    t->extend_list[0] = &t->extends;
    t->module.layers = t->layers;
    t->module.n_layers = 2;
    t->module.extends = t->extend_list;
    t->module.n_extends = 1;
}

static int copy(const struct tables *t, strata_error *err)
{
    struct descriptor d;
    int status = descriptor_copy(&d, &t->module, NULL, err);
    descriptor_free(&d);
    return status;
}

Test(descriptor, good_tables_are_copied)
{
    struct tables t;
    struct descriptor d;
    strata_error err = {0};
    connect(&t);
    cr_assert_eq(descriptor_copy(&d, &t.module, NULL, &err), STRATA_OK, "%s",
                 err.message);
    const struct registry_layer *l = &d.layers[0].layer;
    cr_expect_str_eq(l->full_name, "org.example::Good@1");
    cr_expect_eq(l->n_attrs, 7);
    cr_expect_neq(l->attrs, t.attrs);
    cr_expect_str_eq(l->attrs[0].doc, "", "a missing doc is empty, not NULL");
    cr_expect_eq(l->weights[0].dtypes, 1 << STRATA_FP32, "no dtypes means FP32");
    cr_expect_eq(l->weights[1].dtypes, 3);
    cr_expect_eq(l->impls[1].rows[1].out[0], STRATA_F16_NCHW);
    cr_expect_str_eq(d.layers[1].layer.layer.doc, "");
    cr_expect_str_eq(d.extends[0].layer, "core::Pooling");
    descriptor_free(&d);
}

struct broken {
    const char *text;
    void (*damage)(struct tables *t);
};

static void fill_row(strata_row *row)
{
    for (int i = 1; i < STRATA_MAX_PORTS; i++)
        row->in[i] = STRATA_SAME;
    row->in_more[0] = STRATA_SAME;
}

/* A damage is one assignment, named for the message that it must give. */
/* clang-format off */
#define DAMAGE(id, statement) \
    static void damage_##id(struct tables *t) { statement; }
DAMAGE(module_size, t->module.struct_size = 12)
DAMAGE(module_ns, t->module.ns = "Org")
DAMAGE(module_ns_null, t->module.ns = NULL)
DAMAGE(module_version, t->module.version = "1 0")
DAMAGE(module_layers, t->module.layers = NULL)
DAMAGE(module_extends, t->module.extends = NULL)
DAMAGE(module_count, t->module.n_layers = 5000)
DAMAGE(module_empty, t->module.n_layers = t->module.n_extends = 0)
DAMAGE(layer_null, t->layers[1] = NULL)
DAMAGE(layer_size, t->layer.struct_size = 40)
DAMAGE(layer_name_null, t->layer.name = NULL)
DAMAGE(layer_name, t->layer.name = "good")
DAMAGE(layer_name_underscore, t->layer.name = "Go_od")
DAMAGE(layer_version, t->layer.version = 0)
DAMAGE(layer_twice, t->source.name = "Good")
DAMAGE(layer_min_in, t->layer.min_in = -1)
DAMAGE(layer_max_in, t->layer.max_in = 0)
DAMAGE(layer_n_out, t->layer.n_out = 0)
DAMAGE(layer_outputs, t->layer.n_out = -1)
DAMAGE(layer_shape, t->source.shape = NULL)
DAMAGE(layer_flags, t->layer.flags = 4)
DAMAGE(layer_params, t->layer.params_size = (size_t)1 << 40)
DAMAGE(attrs_null, t->layer.attrs.ptr = NULL)
DAMAGE(attrs_many, t->layer.attrs.n = 100000)
DAMAGE(attrs_stride, t->layer.attrs.stride = 8)
DAMAGE(attr_name_null, t->attrs[2].name = NULL)
DAMAGE(attr_name, t->attrs[2].name = "Flag")
DAMAGE(attr_key, t->attrs[2].name = "impl")
DAMAGE(attr_twice, t->attrs[2].name = "axis")
DAMAGE(attr_type, t->attrs[2].type = 7)
DAMAGE(attr_flags, t->attrs[2].flags = 2)
DAMAGE(attr_offset, t->attrs[2].offset = 72)
DAMAGE(attr_offset_wraps, t->attrs[2].offset = SIZE_MAX - 1)
DAMAGE(attr_align, t->attrs[1].offset = 12)
DAMAGE(attr_overlap, t->attrs[3].offset = 12)
DAMAGE(attr_choices, t->attrs[3].choices = NULL)
DAMAGE(attr_choice_empty, t->attrs[3].choices = "max||average")
DAMAGE(attr_choice_twice, t->attrs[3].choices = "max|min|max")
DAMAGE(attr_choice_default, t->attrs[3].def = 2)
DAMAGE(attr_choice_negative, t->attrs[3].def = -1)
DAMAGE(attr_limits, t->attrs[0].min = 9)
DAMAGE(attr_nan, t->attrs[1].max = NAN)
DAMAGE(attr_default, t->attrs[1].def = 1.5)
DAMAGE(attr_default_nan, t->attrs[1].def = NAN)
DAMAGE(attr_integer, t->attrs[0].def = 0.5)
DAMAGE(attr_boolean, t->attrs[2].def = 2)
DAMAGE(attr_list, t->attrs[5].def_text = "3xx3")
DAMAGE(attr_list_range, t->attrs[5].def_text = "3x65")
DAMAGE(attr_list_real, t->attrs[6].def_text = "0.5x2")
DAMAGE(weight_name, t->weights[1].name = "Bias")
DAMAGE(weight_key, t->weights[1].name = "weights")
DAMAGE(weight_null, t->weights[1].name = NULL)
DAMAGE(weight_twice, t->weights[1].name = "weight")
DAMAGE(weight_flags, t->weights[1].flags = 8)
DAMAGE(weight_rank, t->weights[1].rank = 9)
DAMAGE(weight_rank_zero, t->weights[1].rank = 0)
DAMAGE(weight_dtypes, t->weights[1].dtypes = UINT64_C(1) << 60)
DAMAGE(impl_null, t->impls[1].name = NULL)
DAMAGE(impl_name, t->impls[1].name = "a b")
DAMAGE(impl_id, t->impls[1].id = 1)
DAMAGE(impl_twice, t->impls[1].device = STRATA_HOST)
DAMAGE(impl_device, t->impls[1].device = 2)
DAMAGE(impl_run, t->impls[1].run = NULL)
DAMAGE(impl_sm, (t->impls[1].min_sm = 90, t->impls[1].max_sm = 80))
DAMAGE(impl_efficiency, t->impls[1].efficiency = 1.5)
DAMAGE(impl_nan, t->impls[1].efficiency = NAN)
DAMAGE(impl_epilogues, t->impls[1].epilogues = 16)
DAMAGE(impl_activation, t->impls[1].epilogues = STRATA_EPILOGUE_ACTIVATION)
DAMAGE(impl_activations, t->impls[1].activations = UINT64_C(1) << 63)
DAMAGE(impl_flags, t->impls[1].flags = 1 << 30)
DAMAGE(impl_state, t->impls[1].state_size = SIZE_MAX)
DAMAGE(impl_ctx, t->impls[1].ctx_size = SIZE_MAX)
DAMAGE(impl_stride, t->layer.impls.stride = 16)
DAMAGE(rows_none, t->impls[1].rows.n = 0)
DAMAGE(rows_null, t->impls[1].rows.ptr = NULL)
DAMAGE(row_same, t->rows[0].in[0] = STRATA_SAME)
DAMAGE(row_mixed, t->rows[0].out[0] = STRATA_SAME | STRATA_F32_NCHW)
DAMAGE(row_unknown, t->rows[0].in[1] = UINT64_C(1) << 62)
DAMAGE(row_gap, (t->rows[0].in[1] = 0, t->rows[0].in[2] = STRATA_SAME))
DAMAGE(row_in, t->rows[1].in[0] = 0)
DAMAGE(row_out, t->rows[1].out[0] = 0)
DAMAGE(row_port, t->rows[0].in[2] = STRATA_SAME)
DAMAGE(row_out_port, t->rows[0].out[1] = STRATA_SAME)
DAMAGE(row_more, t->rows[0].in_more[1] = STRATA_F32_NCHW)
DAMAGE(row_more_port, (t->layer.max_in = 4, fill_row(&t->rows[0])))
DAMAGE(row_more_out, t->rows[0].out_more[3] = UINT64_C(1) << 62)
DAMAGE(rows_stride, t->impls[1].rows.stride = 56)
DAMAGE(layer_optional, t->layer.optional_in = 4)
DAMAGE(extends_null, t->extend_list[0] = NULL)
DAMAGE(extends_size, t->extends.struct_size = 8)
DAMAGE(extends_layer, t->extends.layer = "Pooling")
DAMAGE(extends_layer_null, t->extends.layer = NULL)
DAMAGE(extends_version, t->extends.version = 0)
DAMAGE(extends_impls, t->extends.impls.n = 0)
/* clang-format on */

static const struct broken cases[] = {
    {"struct_size 12 of strata_module < 48", damage_module_size},
    {"module.ns 'Org' is not", damage_module_ns},
    {"module.ns '(NULL)' is not", damage_module_ns_null},
    {"module.version '1 0' is not", damage_module_version},
    {"module.layers is NULL", damage_module_layers},
    {"module.extends is NULL", damage_module_extends},
    {"module has 5000 layers", damage_module_count},
    {"module has no layers and extends none", damage_module_empty},
    {"layers[1]: it is NULL", damage_layer_null},
    {"layers[0]: struct_size 40 of strata_layer < ", damage_layer_size},
    {"layers[0]: name is NULL", damage_layer_name_null},
    {"layers[0]: name 'good' is not [A-Z][A-Za-z0-9]*", damage_layer_name},
    {"layers[0]: name 'Go_od' is not", damage_layer_name_underscore},
    {"layer 'Good': version is 0", damage_layer_version},
    {"layers[0] and layers[1] are both org.example::Good@1", damage_layer_twice},
    {"layer 'Good': min_in -1 and max_in 2", damage_layer_min_in},
    {"layer 'Good': min_in 1 and max_in 0", damage_layer_max_in},
    {"layer 'Good': n_out 0, need 1 or more", damage_layer_n_out},
    {"layer 'Good': n_out is -1 and outputs is NULL", damage_layer_outputs},
    {"layer 'Source': shape is NULL", damage_layer_shape},
    {"layer 'Good': flags 0x4", damage_layer_flags},
    {"layer 'Good': params_size 1099511627776 > 1048576", damage_layer_params},
    {"layer 'Good': attrs.ptr is NULL for 7 elements", damage_attrs_null},
    {"layer 'Good': attrs.n 100000 > ", damage_attrs_many},
    {"layer 'Good': attrs.stride 8 < ", damage_attrs_stride},
    {"layer 'Good': attrs[2].name is NULL", damage_attr_name_null},
    {"layer 'Good': attrs[2].name 'Flag' is not", damage_attr_name},
    {"layer 'Good': attrs[2].name 'impl' is a key of every layer", damage_attr_key},
    {"layer 'Good': attrs[0] and attrs[2] are both named 'axis'", damage_attr_twice},
    {"layer 'Good': attrs[2] 'flag': type 7 is unknown", damage_attr_type},
    {"layer 'Good': attrs[2] 'flag': flags 0x2", damage_attr_flags},
    {"layer 'Good': attrs[2].offset 72 + 4 > params_size 72", damage_attr_offset},
    {"layer 'Good': attrs[2].offset 18446744073709551614 + 4 >",
     damage_attr_offset_wraps},
    {"layer 'Good': attrs[1].offset 12 is not a multiple of 8", damage_attr_align},
    {"layer 'Good': attrs[3] 'mode' overlaps attrs[1] 'slope'", damage_attr_overlap},
    {"layer 'Good': attrs[3].choices is NULL", damage_attr_choices},
    {"layer 'Good': attrs[3].choices \"max||average\": item 1", damage_attr_choice_empty},
    {"layer 'Good': attrs[3].choices has 'max' twice", damage_attr_choice_twice},
    {"layer 'Good': attrs[3] 'mode': default 2 is not one of 2 choices",
     damage_attr_choice_default},
    {"layer 'Good': attrs[3] 'mode': default -1 is not", damage_attr_choice_negative},
    {"layer 'Good': attrs[0] 'axis': min 9 > max 7", damage_attr_limits},
    {"layer 'Good': attrs[1] 'slope': min 0 > max nan", damage_attr_nan},
    {"layer 'Good': attrs[1] 'slope': default 1.5 is outside [0, 1]",
     damage_attr_default},
    {"layer 'Good': attrs[1] 'slope': default nan is outside", damage_attr_default_nan},
    {"layer 'Good': attrs[0] 'axis': default 0.5 is not an integer", damage_attr_integer},
    {"layer 'Good': attrs[2] 'flag': default 2 is not 0 or 1", damage_attr_boolean},
    {"layer 'Good': attrs[5] 'kernel': default \"3xx3\" is not a list of integers",
     damage_attr_list},
    {"layer 'Good': attrs[5] 'kernel': default 65 is outside [1, 64]",
     damage_attr_list_range},
    {"layer 'Good': attrs[6] 'scale': default \"0.5x2\" is not", damage_attr_list_real},
    {"layer 'Good': weights[1].name 'Bias' is not", damage_weight_name},
    {"layer 'Good': weights[1].name 'weights' is a key of every layer",
     damage_weight_key},
    {"layer 'Good': weights[1].name is NULL", damage_weight_null},
    {"layer 'Good': weights[0] and weights[1] are both named", damage_weight_twice},
    {"layer 'Good': weights[1] 'bias': flags 0x8", damage_weight_flags},
    {"layer 'Good': weights[1] 'bias': rank 9, need -1 or 1 to 8", damage_weight_rank},
    {"layer 'Good': weights[1] 'bias': rank 0, need", damage_weight_rank_zero},
    {"layer 'Good': weights[1] 'bias': dtypes 0x1000000000000000", damage_weight_dtypes},
    {"layer 'Good': impls[1].name is NULL", damage_impl_null},
    {"layer 'Good': impls[1].name 'a b' is not", damage_impl_name},
    {"layer 'Good': impls[0] 'c' and impls[1] 'c' both have id 1", damage_impl_id},
    {"layer 'Good': impls[0] and impls[1] are both named 'c'", damage_impl_twice},
    {"layer 'Good': impls[1] 'c': device 2 is unknown", damage_impl_device},
    {"layer 'Good': impls[1] 'c': run is NULL", damage_impl_run},
    {"layer 'Good': impls[1] 'c': min_sm 90 and max_sm 80", damage_impl_sm},
    {"layer 'Good': impls[1] 'c': efficiency 1.5 is outside", damage_impl_efficiency},
    {"layer 'Good': impls[1] 'c': efficiency nan is outside", damage_impl_nan},
    {"layer 'Good': impls[1] 'c': epilogues 0x10 has unknown bits",
     damage_impl_epilogues},
    {"layer 'Good': impls[1] 'c': STRATA_EPILOGUE_ACTIVATION without activations",
     damage_impl_activation},
    {"layer 'Good': impls[1] 'c': activations 0x8000000000000000 has unknown bits",
     damage_impl_activations},
    {"layer 'Good': impls[1] 'c': flags 0x40000000 has unknown bits", damage_impl_flags},
    {"layer 'Good': impls[1] 'c': state_size 18446744073709551615 > ", damage_impl_state},
    {"layer 'Good': impls[1] 'c': ctx_size 18446744073709551615 > ", damage_impl_ctx},
    {"layer 'Good': impls.stride 16 < ", damage_impl_stride},
    {"layer 'Good': impls[1] 'c': it has no format rows", damage_rows_none},
    {"layer 'Good': impls[1]: rows.ptr is NULL for 2 elements", damage_rows_null},
    {"layer 'Good': impls[0] 'c': rows[0].in[0] is STRATA_SAME", damage_row_same},
    {"layer 'Good': impls[0] 'c': rows[0].out[0] joins STRATA_SAME", damage_row_mixed},
    {"layer 'Good': impls[0] 'c': rows[0].in[1] 0x4000000000000000 has unknown formats",
     damage_row_unknown},
    {"layer 'Good': impls[0] 'c': rows[0].in[1] is empty before in[2]", damage_row_gap},
    {"layer 'Good': impls[0] 'c': rows[1].in[0] is empty", damage_row_in},
    {"layer 'Good': impls[0] 'c': rows[1].out[0] is empty", damage_row_out},
    {"layer 'Good': impls[0] 'c': rows[0].in[2] is set, the layer has 2",
     damage_row_port},
    {"layer 'Good': impls[0] 'c': rows[0].out[1] is set, the layer has 1",
     damage_row_out_port},
    {"layer 'Good': impls[0] 'c': rows[0].in[4] is empty before in[5]", damage_row_more},
    {"layer 'Good': impls[0] 'c': rows[0].in[4] is set, the layer has 4",
     damage_row_more_port},
    {"layer 'Good': impls[0] 'c': rows[0].out[7] 0x4000000000000000 has unknown",
     damage_row_more_out},
    {"layer 'Good': impls[1]: rows.stride 56 < 64", damage_rows_stride},
    {"layer 'Good': optional_in 0x4 names inputs from max_in 2 on",
     damage_layer_optional},
    {"extends[0]: it is NULL", damage_extends_null},
    {"extends[0]: struct_size 8 of strata_extends < ", damage_extends_size},
    {"extends[0]: layer 'Pooling' is not like", damage_extends_layer},
    {"extends[0]: layer is NULL", damage_extends_layer_null},
    {"extends 'core::Pooling': version is 0", damage_extends_version},
    {"extends 'core::Pooling': it has no impls", damage_extends_impls},
};

Test(descriptor, each_broken_field_is_named)
{
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct tables t;
        strata_error err = {0};
        connect(&t);
        cases[i].damage(&t);
        cr_expect_eq(copy(&t, &err), STRATA_EMODULE, "case %zu (%s): accepted", i,
                     cases[i].text);
        cr_expect_eq(strncmp(err.message, cases[i].text, strlen(cases[i].text)), 0,
                     "case %zu: want '%s', got '%s'", i, cases[i].text, err.message);
    }
}

/* A module of ABI 1.0 or 1.1: rows end with their first four ports. */
Test(descriptor, rows_of_four_ports_are_read)
{
    struct {
        uint64_t in[STRATA_MAX_PORTS], out[STRATA_MAX_PORTS];
    } short_rows[2] = {{{STRATA_F32_NCHW, STRATA_SAME}, {STRATA_SAME}},
                       {{STRATA_F16_NCHW}, {STRATA_F32_NCHW}}};
    struct tables t;
    struct descriptor d;
    strata_error err = {0};
    connect(&t);
    t.impls[0].rows = (strata_array)STRATA_ARRAY(short_rows);
    cr_assert_eq(descriptor_copy(&d, &t.module, NULL, &err), STRATA_OK, "%s",
                 err.message);
    const struct registry_row *rows = d.layers[0].layer.impls[0].rows;
    cr_expect_eq(rows[1].in[0], STRATA_F16_NCHW);
    cr_expect_eq(rows[1].out[0], STRATA_F32_NCHW);
    for (int i = STRATA_MAX_PORTS; i < REGISTRY_PORTS; i++)
        cr_expect(rows[0].in[i] == 0 && rows[0].out[i] == 0, "port %d", i);
    descriptor_free(&d);
}

Test(descriptor, rows_of_eight_ports_are_read)
{
    struct tables t;
    struct descriptor d;
    strata_error err = {0};
    connect(&t);
    t.layer.max_in = 8;
    t.layer.optional_in = 0xfe;
    fill_row(&t.rows[0]);
    for (int i = 0; i < STRATA_MORE_PORTS; i++)
        t.rows[0].in_more[i] = STRATA_F32_NCHW | UINT64_C(1) << i;
    cr_assert_eq(descriptor_copy(&d, &t.module, NULL, &err), STRATA_OK, "%s",
                 err.message);
    const struct registry_layer *l = &d.layers[0].layer;
    cr_expect_eq(l->layer.optional_in, 0xfe);
    for (int i = 0; i < STRATA_MORE_PORTS; i++)
        cr_expect_eq(l->impls[0].rows[0].in[STRATA_MAX_PORTS + i],
                     STRATA_F32_NCHW | UINT64_C(1) << i);
    descriptor_free(&d);
}

/* A module of a later minor: longer structs, wider elements. */
Test(descriptor, longer_structs_and_strides_are_read_to_our_size)
{
    struct {
        strata_layer layer;
        uint64_t later[4];
    } layer = {0};
    struct {
        strata_impl impl;
        uint64_t later[2];
    } impls[2] = {0};
    struct tables t;
    struct descriptor d;
    strata_error err = {0};
    connect(&t);
    impls[0].impl = t.impls[0];
    impls[1].impl = t.impls[1];
    impls[0].later[0] = impls[1].later[1] = ~UINT64_C(0);
    layer.layer = t.layer;
    layer.layer.struct_size = sizeof layer;
    layer.layer.impls = (strata_array)STRATA_ARRAY(impls);
    layer.later[0] = ~UINT64_C(0);
    t.layers[0] = &layer.layer;
    cr_assert_eq(descriptor_copy(&d, &t.module, NULL, &err), STRATA_OK, "%s",
                 err.message);
    cr_expect_eq(d.layers[0].layer.n_impls, 2);
    cr_expect_eq(d.layers[0].layer.impls[1].impl.id, 2);
    cr_expect_str_eq(d.layers[0].layer.impls[1].impl.name, "c");
    descriptor_free(&d);
}

Test(descriptor, an_extension_must_suit_the_layer)
{
    static const struct {
        size_t params_size;
        int32_t max_in;
        const char *text; /* NULL: it suits */
    } suits[] = {
        {8, 2, NULL},
        {4, 2, "params_size 8 > 4 of core::Pooling@1: built with a newer layers.h"},
        {8, 1, "extends 'core::Pooling': impls[0] 'c': rows[0].in[1] is set"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(suits); i++) {
        struct tables t;
        struct descriptor d;
        strata_error err = {0};
        char name[] = "core::Pooling@1";
        struct registry_layer layer = {.full_name = name};
        connect(&t);
        cr_assert_eq(descriptor_copy(&d, &t.module, NULL, &err), STRATA_OK);
        layer.layer = t.layer;
        layer.layer.params_size = suits[i].params_size;
        layer.layer.max_in = suits[i].max_in;
        int status = descriptor_fits(&d.extends[0], &layer, &err);
        cr_expect_eq(status, suits[i].text ? STRATA_EMODULE : STRATA_OK, "case %zu: %s",
                     i, err.message);
        if (suits[i].text)
            cr_expect_not_null(strstr(err.message, suits[i].text), "case %zu: %s", i,
                               err.message);
        descriptor_free(&d);
    }
}
