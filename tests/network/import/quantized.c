/* SPDX-License-Identifier: Apache-2.0
 *
 * Models that have weights as integers and a scale: layers are given both where they take
 * them, and floats where they do not.
 */
#include "tests/network/import/imported.h"

#include <criterion/criterion.h>

#define HEAD "ir 8\nopset 17\ninput x f 1x2x3x3\noutput y\n"
#define WEIGHT "init q c 3x2x1x1 1 -2 3 -4 5 -128\ninit s f 3 0.5 0.25 2\n"
#define UNDO(axis) "node DequantizeLinear q,s -> w axis=" #axis "\n"
#define MATRIX "ir 8\nopset 17\ninput x f 5x2\noutput y\ninit q c 2x3 1 -2 3 -4 5 -128\n"

static const struct {
    const char *name, *model;
    const char *layer, *weight; /* NULL: that is a float */
} cases[] = {
    {"a scale each filter", HEAD WEIGHT UNDO(0) "node Conv x,w -> y\n", "Convolution",
     "weight"},
    {"one scale, and a zero of 0",
     HEAD "init q c 3x2x1x1 1 -2 3 -4 5 -128\ninit s f - 0.5\ninit z c - 0\n"
          "node DequantizeLinear q,s,z -> w\nnode Conv x,w -> y\n",
     "Convolution", "weight"},
    {"a zero that is none",
     HEAD "init q c 3x2x1x1 1 -2 3 -4 5 -128\ninit s f - 0.5\ninit z c - 1\n"
          "node DequantizeLinear q,s,z -> w\nnode Conv x,w -> y\n",
     "Convolution", NULL},
    {"scales along inputs",
     HEAD "init q c 3x2x1x1 1 -2 3 -4 5 -128\ninit s f 2 0.5 2\n" UNDO(
         1) "node Conv x,w -> y\n",
     "Convolution", NULL},
    {"a transposed convolution",
     HEAD "init q c 2x3x1x1 1 -2 3 -4 5 -128\ninit s f 3 0.5 0.25 2\n" UNDO(
         1) "node ConvTranspose x,w -> y\n",
     "Deconvolution", "weight"},
    {"a matrix by columns",
     MATRIX "init s f 3 0.5 0.25 2\n" UNDO(-1) "node MatMul x,w -> y\n", "MatrixMultiply",
     "b"},
    {"a matrix by rows", MATRIX "init s f 2 0.5 0.25\n" UNDO(0) "node MatMul x,w -> y\n",
     "MatrixMultiply", NULL},
    {"QLinearConv",
     "ir 8\nopset 17\ninput f f 1x2x3x3\noutput y\n" WEIGHT
     "init a f - 0.5\ninit z u - 3\ninit n c 3 0 0 0\n"
     "node QuantizeLinear f,a,z -> x\n"
     "node QLinearConv x,a,z,q,s,n,a,z -> y\n",
     "Convolution", "weight"},
    {"QLinearMatMul",
     "ir 8\nopset 17\ninput f f 5x2\noutput y\n"
     "init q c 2x3 1 -2 3 -4 5 -128\ninit s f 3 0.5 0.25 2\n"
     "init a f - 0.5\ninit z u - 3\ninit n c 3 0 0 0\n"
     "node QuantizeLinear f,a,z -> x\n"
     "node QLinearMatMul x,a,z,q,s,n,a,z -> y\n",
     "MatrixMultiply", "b"},
};

static const struct section *layer_of(const struct imported *i, const char *type)
{
    for (size_t k = 0; k < i->im->n_sections; k++)
        if (strcmp(i->im->sections[k]->type, type) == 0)
            return i->im->sections[k];
    return NULL;
}

static int count_of(const struct imported *i, const char *type)
{
    int n = 0;
    for (size_t k = 0; k < i->im->n_sections; k++)
        n += strcmp(i->im->sections[k]->type, type) == 0;
    return n;
}

static const struct value *weight_of(const struct imported *i, const struct section *s,
                                     const char *name)
{
    for (int k = 0; k < s->n_weights; k++)
        if (strcmp(s->weights[k].name, name) == 0)
            return &i->im->g.values[s->weights[k].value];
    return NULL;
}

Test(quantized_models, weights_of_int8_stay_integers_where_a_layer_takes_them)
{
    static const int8_t integers[] = {1, -2, 3, -4, 5, -128};
    for (size_t c = 0; c < ARRAY_LENGTH(cases); c++) {
        struct imported i = import_model_text(cases[c].model);
        cr_assert_eq(i.status, STRATA_OK, "%s: %s", cases[c].name, i.err.message);
        const struct section *s = layer_of(&i, cases[c].layer);
        cr_assert_not_null(s, "%s", cases[c].name);
        const struct value *scale = weight_of(&i, s, "weight_scale");
        cr_expect_eq(scale != NULL, cases[c].weight != NULL, "%s", cases[c].name);
        if (cases[c].weight) {
            const struct value *w = weight_of(&i, s, cases[c].weight);
            cr_assert_not_null(w, "%s", cases[c].name);
            cr_expect(w->dtype == STRATA_INT8 && scale->dtype == STRATA_FP32, "%s",
                      cases[c].name);
            cr_expect_eq(memcmp(w->data, integers, sizeof integers), 0, "%s",
                         cases[c].name);
        }
        imported_close(&i);
    }
}

Test(quantized_models, weights_of_int4_become_int8)
{
    static const int8_t integers[] = {7, -8, 0, -1, 3, -5};
    struct imported i = import_model_text(
        "ir 10\nopset 21\ninput x f 5x2\noutput y\ninit p c 2x3 7 -8 16 -1 3 -5\n"
        "init s f 3 0.5 0.25 2\nnode Cast p -> q to=22\n"
        "node DequantizeLinear q,s -> w axis=1\nnode MatMul x,w -> y\n");
    cr_assert_eq(i.status, STRATA_OK, "%s", i.err.message);
    const struct section *s = layer_of(&i, "MatrixMultiply");
    cr_assert_not_null(s);
    const struct value *b = weight_of(&i, s, "b");
    cr_assert(b && b->dtype == STRATA_INT8 && weight_of(&i, s, "weight_scale"));
    cr_expect_arr_eq(b->data, integers, sizeof integers);
    imported_close(&i);
}

/* N x ceil(K / 2) bytes as they are, without the pads of a block that K does not fill; of
 * 8 bits as int8. */
Test(quantized_models, weights_of_few_bits_stay_packed)
{
    static const struct {
        const char *model;
        int dtype;
        bool four; /* bits, told by an attribute */
        uint8_t bytes[10];
        int products; /* with that of zero points by what they are subtracted from */
    } rows[] = {
        {"init w u 2x2x4 1 2 3 4 5 0 0 0 6 7 8 9 10 0 0 0\ninit s f 4 1 2 3 4\n"
         "node com.microsoft::MatMulNBits x,w,s -> y K=9 N=2 block_size=8\n",
         STRATA_UINT8,
         true,
         {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
         1},
        {"init w u 2x2x4 1 2 3 4 5 0 0 0 6 7 8 9 10 0 0 0\ninit s f 4 1 2 3 4\n"
         "init z u 2 136 136\n"
         "node com.microsoft::MatMulNBits x,w,s,z -> y K=9 N=2 block_size=8\n",
         STRATA_UINT8,
         true,
         {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
         1},
        {"init w u 1x2x8 128 129 127 0 255 1 2 3 4 0 0 0 0 0 0 0\ninit s f 2 1 2\n"
         "node com.microsoft::MatMulNBits x,w,s -> y K=9 N=1 block_size=8 bits=8\n",
         STRATA_INT8,
         false,
         {0, 1, 255, 128, 127, 129, 130, 131, 132},
         1},
        {"init w u 2x2x4 1 2 3 4 5 0 0 0 6 7 8 9 10 0 0 0\ninit s f 4 1 2 3 4\n"
         "init z u 2 136 137\n"
         "node com.microsoft::MatMulNBits x,w,s,z -> y K=9 N=2 block_size=8\n",
         STRATA_UINT8,
         true,
         {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
         2},
        {"init w u 1x2x8 128 129 127 0 255 1 2 3 4 0 0 0 0 0 0 0\ninit s f 2 1 2\n"
         "init z f 2 128 0.5\n"
         "node com.microsoft::MatMulNBits x,w,s,z -> y K=9 N=1 block_size=8 bits=8\n",
         STRATA_INT8,
         false,
         {0, 1, 255, 128, 127, 129, 130, 131, 132},
         2},
    };
    for (size_t c = 0; c < ARRAY_LENGTH(rows); c++) {
        char model[512];
        snprintf(model, sizeof model,
                 "ir 8\nopset 17\nopset com.microsoft 1\ninput x f 3x9\noutput y\n%s",
                 rows[c].model);
        struct imported i = import_model_text(model);
        cr_assert_eq(i.status, STRATA_OK, "%zu: %s", c, i.err.message);
        const struct section *s = layer_of(&i, "MatrixMultiply");
        cr_assert_not_null(s);
        const struct value *b = weight_of(&i, s, "b"),
                           *scale = weight_of(&i, s, "weight_scale");
        cr_assert(b && scale && b->dtype == rows[c].dtype, "%zu", c);
        cr_expect_eq(scale->dims[0], b->dims[0]);
        cr_expect_eq(scale->dims[1], 2);
        cr_expect_eq(memcmp(b->data, rows[c].bytes, (size_t)value_count(b)), 0, "%zu", c);
        bool told = false;
        for (int a = 0; a < (int)s->n_attrs; a++)
            told |= strcmp(s->attrs[a].key, "weight_bits") == 0;
        cr_expect_eq(told, rows[c].four, "%zu", c);
        cr_expect_eq(count_of(&i, "MatrixMultiply"), rows[c].products, "%zu", c);
        imported_close(&i);
    }
}

#define OF_ZEROS(x, y)                                                                   \
    "node com.microsoft::MatMulNBits " x ",w,s,z -> " y " K=16 N=2 block_size=8\n"

Test(quantized_models, blocks_of_an_input_are_summed_once_for_all_zero_points)
{
    struct imported i = import_model_text(
        "ir 8\nopset 17\nopset com.microsoft 1\ninput x f 3x16\ninput v f 3x16\noutput "
        "y\n"
        "init w u 2x2x4 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7\ninit s f 4 1 2 3 4\n"
        "init z u 2 1 119\n" OF_ZEROS("x", "a") OF_ZEROS("x", "b")
            OF_ZEROS("v", "c") "node Add a,b -> d\nnode Add c,d -> y\n");
    cr_assert_eq(i.status, STRATA_OK, "%s", i.err.message);
    cr_expect_eq(count_of(&i, "MatrixMultiply"), 6);
    cr_expect_eq(count_of(&i, "Reduce"), 2);
    imported_close(&i);
}

Test(quantized_models, weights_of_e4m3_stay_so)
{
    static const uint8_t floats[] = {0x3c, 0xc0, 0x44, 0xc8, 0x4a, 0xfe};
    struct imported i = import_model_text(
        "ir 10\nopset 21\ninput x f 5x2\noutput y\ninit p f 2x3 1.5 -2 3 -4 5 -448\n"
        "init s f 3 0.5 0.25 2\nnode Cast p -> q to=17\ninit a f - 0.5\ninit n f - 0\n"
        "node Cast n -> z to=17\nnode QuantizeLinear x,a,z -> i\n"
        "node DequantizeLinear i,a,z -> f\nnode DequantizeLinear q,s -> w axis=1\n"
        "node MatMul f,w -> y\n");
    cr_assert_eq(i.status, STRATA_OK, "%s", i.err.message);
    const struct section *s = layer_of(&i, "MatrixMultiply");
    cr_assert_not_null(s);
    const struct value *b = weight_of(&i, s, "b");
    cr_assert(b && b->dtype == STRATA_E4M3 && weight_of(&i, s, "weight_scale"));
    cr_expect_arr_eq(b->data, floats, sizeof floats);
    const struct section *to = layer_of(&i, "Quantize");
    cr_assert(to && layer_of(&i, "Dequantize") && to->n_attrs == 1);
    cr_expect_str_eq(to->attrs[0].value, "e4m3");
    imported_close(&i);
}
