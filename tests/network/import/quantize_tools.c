/* SPDX-License-Identifier: Apache-2.0
 *
 * What tools that quantize models write: the layers that it becomes, with the numbers of
 * the operators one by one.
 */
#include "tests/network/import/free_model.h"
#include "tests/network/import/planned.h"

/* ---- products of bytes whose scale and zero are computed -----------------------------
 *
 * Inputs run from -55 to 200, so that the scale is 1, the zero 55, and bytes stand for
 * whole numbers.
 */

#define BEGIN "input x f 2x3\noutput y\nnode DynamicQuantizeLinear x -> a,s,z\n"
#define UNSIGNED "init w u 3x2 130 3 0 255 128 7\n"
#define SIGNED "init w c 3x2 2 -3 -128 127 0 7\n"
#define PRODUCT(in) "node MatMulInteger " in " -> p\nnode Cast p -> c to=1\n"
#define SCALED "node Mul s,t -> k\nnode Mul c,k -> y\n"
#define BIASED "node Mul t,s -> k\nnode Mul k,c -> m\nnode Add b,m -> y\n"
#define ONE "DynamicQuantize DynamicProduct"

static const struct {
    const char *name, *model;
    bool one; /* layer each */
    float y[4];
} cases[] = {
    /* (-55 0 200, 1 2 3) by (2 2, -128 254, 0 6) */
    {"a zero for each column, a bias",
     BEGIN UNSIGNED
     "init q u 2 128 1\ninit t f 2 0.5 2\ninit b f 2 10 20\n" PRODUCT("a,w,z,q") BIASED,
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

/* Its output 0 for an input; the layers' types in `types`. */
static void expect_run(const char *name, const struct free_model *m,
                       const struct import_options *options, const float *in, size_t size,
                       const float *y, size_t n, char *types, size_t room)
{
    struct imported x;
    strata_error err = {0};
    int64_t count;
    cr_assert_eq(imported_open(&x, m->onnx, m->registry, options, &err), STRATA_OK,
                 "%s: %s", name, err.message);
    imported_types(&x, types, room);
    memcpy(imported_data(&x, 0, &count), in, size);
    cr_assert_eq(strata_context_run(x.context, &err), STRATA_OK, "%s: %s", name,
                 err.message);
    const float *out = imported_data(&x, 1, &count);
    cr_assert_eq(count, n);
    for (size_t i = 0; i < n; i++)
        cr_expect_eq(out[i], y[i], "%s, element %zu: %g, should be %g", name, i,
                     (double)out[i], (double)y[i]);
    imported_free(&x);
}

static const struct import_options plain = {.no_patterns = true};

Test(quantize_tools, computed_scales_take_two_layers)
{
    static const float in[] = {-55, 0, 200, 1, 2, 3};
    for (size_t c = 0; c < ARRAY_LENGTH(cases); c++) {
        struct free_model m = free_model_open(cases[c].model, "", "", "");
        char types[512], ways[512];
        expect_run(cases[c].name, &m, NULL, in, sizeof in, cases[c].y, 4, types,
                   sizeof types);
        expect_run(cases[c].name, &m, &plain, in, sizeof in, cases[c].y, 4, ways,
                   sizeof ways);
        cr_expect_eq(strcmp(types, ONE) == 0, cases[c].one, "%s: %s", cases[c].name,
                     types);
        cr_expect_str_neq(ways, ONE, "%s", cases[c].name);
        free_model_close(&m);
    }
}

/* ---- concatenations of several scales ------------------------------------------------
 */

#define BYTES(scale, zero, end)                                                          \
    "init a f - 0.5\ninit v u - 0\nnode QuantizeLinear x,a,v -> i\n"                     \
    "node DequantizeLinear i,a,v -> e\ninit b f - " scale "\ninit w u - " zero           \
    "\nnode QuantizeLinear x,b,w -> j\nnode DequantizeLinear j,b,w -> f\n"               \
    "node Concat e,f -> c axis=1\ninit s f - 1\ninit z u - 100\n" end                    \
    "node QuantizeLinear c,s,z -> q\nnode DequantizeLinear q,s,z -> y\n"

static int count_of(const char *types, const char *type)
{
    int n = 0;
    for (const char *at = types; (at = strstr(at, type)); at += strlen(type))
        n += at == types || at[-1] == ' ';
    return n;
}

/* (-3 0.7, 2.6 300) is (0 0.5, 2.5 127.5) in halves, and (-4 0, 2 254) in twos. */
Test(quantize_tools, concatenations_move_bytes_of_one_scale)
{
    static const struct {
        const char *name, *model;
        int quantizes;
        float y[8];
    } rows[] = {
        {"two scales",
         "input x f 2x2\noutput y\n" BYTES("2", "128", ""),
         5,
         {0, 0, -4, 0, 2, 128, 2, 155}},
        {"one that is the result's",
         "input x f 2x2\noutput y\n" BYTES("1", "100", ""),
         4,
         {0, 0, -3, 1, 2, 128, 3, 155}},
        {"floats that are read elsewhere",
         "input x f 2x2\noutput y\n" BYTES("2", "128", "output c\n"),
         3,
         {0, 0, -4, 0, 2, 128, 2, 155}},
    };
    static const float in[] = {-3, 0.7F, 2.6F, 300};
    for (size_t c = 0; c < ARRAY_LENGTH(rows); c++) {
        struct free_model m = free_model_open(rows[c].model, "", "", "");
        char types[512], ways[512];
        expect_run(rows[c].name, &m, NULL, in, sizeof in, rows[c].y, 8, types,
                   sizeof types);
        expect_run(rows[c].name, &m, &plain, in, sizeof in, rows[c].y, 8, ways,
                   sizeof ways);
        cr_expect_eq(count_of(types, "Quantize"), rows[c].quantizes, "%s: %s",
                     rows[c].name, types);
        cr_expect_eq(count_of(ways, "Quantize"), 3, "%s: %s", rows[c].name, ways);
        free_model_close(&m);
    }
}
