/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bytes whose scale and zero are computed, as quantize_dynamic of ONNX Runtime
 * writes them: one layer quantizes, one multiplies, and numbers are those of the operators
 * one by one. Inputs run from -55 to 200, so that the scale is 1, the zero 55, and bytes
 * stand for whole numbers.
 */
#include "tests/network/import/free_model.h"
#include "tests/network/import/planned.h"

#define BEGIN "input x f 2x3\noutput y\nnode DynamicQuantizeLinear x -> a,s,z\n"
#define UNSIGNED "init w u 3x2 130 3 0 255 128 7\n"
#define SIGNED "init w c 3x2 2 -3 -128 127 0 7\n"
#define PRODUCT(in) "node MatMulInteger " in " -> p\nnode Cast p -> c to=1\n"
#define SCALED "node Mul s,t -> k\nnode Mul c,k -> y\n"
#define BIASED "node Mul t,s -> k\nnode Mul k,c -> m\nnode Add b,m -> y\n"
#define ONE "DynamicQuantize DynamicProduct"

static const struct {
    const char *name, *model;
    bool one; /* a layer */
    float y[4];
} cases[] = {
    /* (-55 0 200, 1 2 3) by (2 2, -128 254, 0 6) */
    {"a zero for each column, a bias",
     BEGIN UNSIGNED "init q u 2 128 1\ninit t f 2 0.5 2\ninit b f 2 10 20\n" PRODUCT(
         "a,w,z,q") BIASED,
     true,
     {-45, 2200, -117, 1076}},
    {"one zero",
     BEGIN UNSIGNED "init q u - 128\ninit t f - 0.5\n" PRODUCT("a,w,z,q") SCALED,
     true,
     {-55, -8662.5F, -127, -117}},
    {"no zero of the weight, a bias for all",
     BEGIN SIGNED "init t f 1 0.5\ninit b f 1 3\n" PRODUCT("a,w,z") BIASED,
     true,
     {-52, 785.5F, -124, 139}},
    {"of com.microsoft",
     "opset com.microsoft 1\ninput x f 2x3\noutput y\n" SIGNED
     "init t f 2 1 2\ninit b f 2 3 4\n"
     "node com.microsoft::DynamicQuantizeMatMul x,w,t,_,b -> y\n",
     true,
     {-107, 3134, -251, 548}},
    {"sums that are read elsewhere",
     BEGIN SIGNED "init t f - 1\n" PRODUCT("a,w,z") SCALED "output p\n",
     false,
     {-110, 1565, -254, 272}},
    {"another type than FP32's sum",
     BEGIN SIGNED "init t f - 1\nnode MatMulInteger a,w,z -> p\nnode Cast p -> h to=10\n"
                  "node Cast h -> c to=1\n" SCALED,
     false,
     {-110, 1565, -254, 272}},
};

static void expect_run(const char *name, const struct free_model *m,
                       const struct import_options *options, const char *types,
                       const float *y)
{
    static const float in[] = {-55, 0, 200, 1, 2, 3};
    struct imported x;
    strata_error err = {0};
    char found[512];
    int64_t n;
    cr_assert_eq(imported_open(&x, m->onnx, m->registry, options, &err), STRATA_OK,
                 "%s: %s", name, err.message);
    imported_types(&x, found, sizeof found);
    cr_expect((strcmp(found, ONE) == 0) == (types != NULL), "%s: %s", name, found);
    memcpy(imported_data(&x, 0, &n), in, sizeof in);
    cr_assert_eq(strata_context_run(x.context, &err), STRATA_OK, "%s: %s", name,
                 err.message);
    const float *out = imported_data(&x, 1, &n);
    cr_assert_eq(n, 4);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(out[i], y[i], "%s, element %d: %g, should be %g", name, i,
                     (double)out[i], (double)y[i]);
    imported_free(&x);
}

Test(dynamic, products_are_one_layer_with_the_numbers_of_their_operators)
{
    const struct import_options plain = {.no_patterns = true};
    for (size_t c = 0; c < ARRAY_LENGTH(cases); c++) {
        struct free_model m = free_model_open(cases[c].model, "", "", "");
        expect_run(cases[c].name, &m, NULL, cases[c].one ? ONE : NULL, cases[c].y);
        expect_run(cases[c].name, &m, &plain, NULL, cases[c].y);
        free_model_close(&m);
    }
}
