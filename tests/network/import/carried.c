/* SPDX-License-Identifier: Apache-2.0
 *
 * Types without a dtype: what is computed in them is what C computes in its own types of
 * that size, or the operator is refused.
 */
#include <math.h>
#include <time.h>

#include "core/alloc.h"
#include "tests/network/import/imported.h"

#define N 40 /* values of an operand */
#define HEAD "ir 10\nopset 25\n"
#define LEFT "BitShift direction='LEFT'"
#define RIGHT "BitShift direction='RIGHT'"

TestSuite(carried, .timeout = 300);

static uint64_t seed;

static uint64_t draw(void)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return seed ^ seed >> 29;
}

/* ---- integers ------------------------------------------------------------------------
 */

static const struct type {
    enum onnx_type type;
    int bits;
    bool is_signed;
} types[] = {
    {ONNX_INT16, 16, true},   {ONNX_UINT16, 16, false}, {ONNX_UINT32, 32, false},
    {ONNX_UINT64, 64, false}, {ONNX_INT4, 4, true},     {ONNX_UINT4, 4, false},
    {ONNX_INT2, 2, true},     {ONNX_UINT2, 2, false},
};

/* The low bits as a number of the type; of UINT64, INT64's of the same bits. */
static int64_t wrap(const struct type *t, uint64_t v)
{
    const uint64_t low = t->bits < 64 ? v & ((UINT64_C(1) << t->bits) - 1) : v;
    const bool negative = t->is_signed && low >> (t->bits - 1);
    return (int64_t)(negative ? low - (UINT64_C(1) << t->bits) : low);
}

/* Small ones, the ends of the type, and any. */
static int64_t draw_number(const struct type *t)
{
    switch (draw() % 3) {
    case 0:
        return wrap(t, draw() % 5 - 2);
    case 1:
        return wrap(t, (UINT64_C(1) << (t->bits - 1)) + draw() % 3 - 1);
    default:
        return wrap(t, draw());
    }
}

static bool is_less(const struct type *t, int64_t a, int64_t b)
{
    return t->is_signed ? a < b : (uint64_t)a < (uint64_t)b;
}

static int64_t remain(int64_t a, int64_t b)
{
    const int64_t rest = a % b;
    return rest && (rest < 0) != (b < 0) ? rest + b : rest;
}

static uint64_t compute(const struct type *t, const char *op, int64_t a, int64_t b)
{
    const uint64_t x = (uint64_t)a, y = (uint64_t)b;
    const bool falls_out = y >= (uint64_t)t->bits; /* of a shift, all of it */
    const struct {
        const char *op;
        uint64_t value;
    } values[] = {
        {"Add", x + y},
        {"Sub", x - y},
        {"Mul", x * y},
        {"Div", !b             ? 0
                : t->is_signed ? (uint64_t)(a / b)
                               : x / y},
        {"Mod", !b             ? 0
                : t->is_signed ? (uint64_t)remain(a, b)
                               : x % y},
        {"Max", is_less(t, a, b) ? y : x},
        {"Min", is_less(t, a, b) ? x : y},
        {"BitwiseAnd", x & y},
        {"BitwiseOr", x | y},
        {"BitwiseXor", x ^ y},
        {LEFT, falls_out ? 0 : x << y},
        {RIGHT, falls_out ? 0 : x >> y},
        {"Less", is_less(t, a, b)},
        {"LessOrEqual", !is_less(t, b, a)},
        {"Greater", is_less(t, b, a)},
        {"GreaterOrEqual", !is_less(t, a, b)},
        {"Equal", a == b},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(values); i++)
        if (strcmp(values[i].op, op) == 0)
            return values[i].value;
    cr_assert_fail("%s", op);
    return 0;
}

static void put_numbers(FILE *f, const char *name, const int64_t *v)
{
    fprintf(f, "init %s i %d", name, N);
    for (int i = 0; i < N; i++)
        fprintf(f, " %lld", (long long)v[i]);
    fputc('\n', f);
}

static void check_operator(const struct type *t, const char *op)
{
    int64_t a[N], b[N];
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    fputs(HEAD "output y\n", f);
    for (int i = 0; i < N; i++) {
        a[i] = draw_number(t);
        b[i] = draw_number(t);
        if ((strcmp(op, "Div") == 0 || strcmp(op, "Mod") == 0) && b[i] == 0)
            b[i] = 1;
        if (op[3] == 'S') /* for shifts, more that leave something */
            b[i] = i % 2 ? b[i] & 7 : b[i];
    }
    put_numbers(f, "p", a);
    put_numbers(f, "q", b);
    fprintf(f,
            "node Cast p -> a to=%d\nnode Cast q -> b to=%d\nnode %.*s a,b -> c%s\n"
            "node Cast c -> y to=7\n",
            t->type, t->type, (int)strcspn(op, " "), op, op + strcspn(op, " "));
    fclose(f);
    struct imported i = import_model_text(text);
    cr_assert_eq(i.status, STRATA_OK, "%s", i.err.message);
    const struct value *y = imported_constant(&i, 0);
    cr_assert(y && value_count(y) == N, "%s", text);
    for (int k = 0; k < N; k++) {
        const uint64_t wanted = compute(t, op, a[k], b[k]);
        const bool truth = strchr("LGE", op[0]) != NULL;
        cr_expect_eq(value_integer(y, k), truth ? (int64_t)wanted : wrap(t, wanted),
                     "%s of %s: %lld, %lld give %lld, should be %lld", op,
                     onnx_type_name(t->type), (long long)a[k], (long long)b[k],
                     (long long)value_integer(y, k), (long long)wrap(t, wanted));
    }
    imported_close(&i);
    free(text);
}

Test(carried, integers_compute_as_those_of_c)
{
    static const char *const ops[] = {
        "Add",       "Sub",         "Mul",     "Div",
        "Mod",       "Max",         "Min",     "BitwiseAnd",
        "BitwiseOr", "BitwiseXor",  LEFT,      RIGHT,
        "Less",      "LessOrEqual", "Greater", "GreaterOrEqual",
        "Equal"};
    seed = (uint64_t)time(NULL);
    for (size_t t = 0; t < ARRAY_LENGTH(types); t++)
        for (size_t k = 0; k < ARRAY_LENGTH(ops); k++)
            if (!types[t].is_signed || ops[k][3] != 'S') /* no shifts of a sign */
                check_operator(&types[t], ops[k]);
}

/* Halves of neighbours are where a rounding that is done twice goes wrong. */
Test(carried, uint64_becomes_a_float_in_one_rounding)
{
    seed = (uint64_t)time(NULL);
    for (int round = 0; round < 30; round++) {
        const int shift = (int)(draw() % 40);
        const uint64_t v = draw() >> shift | (UINT64_C(1) << (63 - shift)),
                       near = (v & ~UINT64_C(0xff)) | (draw() % 3 + 127);
        const uint64_t x = round % 2 ? near : v;
        char text[200];
        snprintf(text, sizeof text,
                 HEAD "output y\ninit p i - %lld\nnode Cast p -> a to=%d\n"
                      "node Cast a -> y to=1\n",
                 (long long)x, ONNX_UINT64);
        struct imported i = import_model_text(text);
        const struct value *y = imported_constant(&i, 0);
        cr_assert_not_null(y, "%s", i.err.message);
        cr_expect_eq(value_real(y, 0), (double)(float)x, "%llu gives %.17g",
                     (unsigned long long)x, value_real(y, 0));
        imported_close(&i);
    }
}

Test(carried, floats_become_uint64)
{
    static const struct {
        const char *number, *values; /* of INT64's bits */
    } cases[] = {{"9223372036854775808", "1: -9.2234e+18"},
                 {"18446742974197923840", "1: -1.0995e+12"},
                 {"9223371487098961920", "1: 9.2234e+18"},
                 {"3.75", "1: 3"}};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char text[200];
        snprintf(text, sizeof text,
                 HEAD "output y\ninit x f 1 %s\nnode Cast x -> a to=%d\n"
                      "node Cast a -> y to=7\n",
                 cases[i].number, ONNX_UINT64);
        expect_values(cases[i].number, text, cases[i].values);
    }
}

/* ---- models that say a little --------------------------------------------------------
 */

#define AS(name, from, type) "node Cast " #from " -> " #name " to=" #type "\n"

static const struct {
    const char *name, *model, *values;
} known[] = {
    {"moves keep the type, which then wraps",
     HEAD "output y\ninit p i 2x2 1 2 65535 4\ninit one i 1 1\n" AS(a, p, 4)
         AS(k, one, 4) "node Transpose a -> b\nnode Add b,k -> c\n" AS(y, c, 7),
     "2x2: 2 0 3 5"},
    {"a number of another type by CastLike",
     HEAD "output y\ninit p i 2 70000 -1\ninit q i 1 0\n" AS(
         like, q, 4) "node CastLike p,like -> a\n" AS(y, a, 7),
     "2: 4464 65535"},
    {"bits as the other sign",
     HEAD "output y\ninit p i 2 65535 7\n" AS(a, p,
                                              4) "node BitCast a -> b to=5\n" AS(y, b, 7),
     "2: -1 7"},
    {"the largest of UINT64, and its place",
     HEAD "output y\noutput i\ninit p i 3 5 -1 7\ninit k i 1 2\n" AS(
         a, p, 13) "node TopK a,k -> v,i\n" AS(y, v, 7),
     "2: -1 7; 2: 1 2"},
    {"the largest along a dim",
     HEAD "output y\ninit p i 2x2 1 -2 65535 4\ninit d i 1 1\n" AS(
         a, p, 13) "node ReduceMax a,d -> c keepdims=0\n" AS(y, c, 7),
     "2: -2 65535"},
    {"parts, each of the type",
     HEAD "output y\ninit p i 2 65535 7\ninit one i 1 1\n" AS(a, p, 4)
         AS(k, one, 4) "node Split a -> l,r axis=0 num_outputs=2\nnode Add r,l -> c\n"
                       "node Sub c,k -> d\n" AS(y, d, 7),
     "1: 5"},
    {"integers of 16 bits saturate",
     HEAD "output y\ninit x f 3 -9e9 2.5 70000\ninit s f - 1\n"
          "node QuantizeLinear x,s -> q output_dtype=5\n" AS(y, q, 7),
     "3: -32768 2 32767"},
    {"and of 4, in blocks",
     HEAD
     "output y\ninit x f 1x4 -9 1 30 8\ninit s f 1x2 1 4\n"
     "node QuantizeLinear x,s -> q output_dtype=21 axis=1 block_size=2\n" AS(y, q, 7),
     "1x4: 0 1 8 2"},
    {"in one block",
     HEAD
     "output y\ninit x f 1x4 -9 1 30 8\ninit s f 1x1 4\n"
     "node QuantizeLinear x,s -> q output_dtype=21 axis=1 block_size=4\n" AS(y, q, 7),
     "1x4: 0 0 8 2"},
    {"floats round to even",
     HEAD "output y\ninit x f 6 0.25 0.75 2.5 3.5 5 -100\n" AS(a, x, 23) AS(y, a, 1),
     "6: 0 1 2 4 4 -6"},
    {"floats are multiplied by their scale",
     HEAD "output y\ninit x f 2 0.6 300\ninit s f - 3\n" AS(
         a, x, 18) "node DequantizeLinear a,s -> y\n",
     "2: 1.875 720"},
    {"powers of two, upwards",
     HEAD "output y\ninit x f 3 1.1 4 0.3\n" AS(a, x, 24) AS(y, a, 1), "3: 2 4 0.5"},
};

Test(carried, values_are_those_of_the_type)
{
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
        expect_values(known[i].name, known[i].model, known[i].values);
}

#define TWO(type) HEAD "output y\ninit p i 2x2 1 2 3 4\n" AS(a, p, type)

static const struct {
    const char *name, *model, *why;
} refused[] = {
    {"a product of matrices", TWO(12) "node MatMul a,a -> y\n", "type uint32"},
    {"a plugin's operator", TWO(4) "node org.example::LeakyReLU a -> y\n", "type uint16"},
    {"arithmetic of floats",
     HEAD "output y\ninit x f 2 1 2\n" AS(a, x, 18) "node Add a,a -> y\n",
     "type float8e4m3fnuz"},
    {"mixed types", TWO(4) AS(b, p, 5) "node Add a,b -> y\n", "type"},
    {"a type and the dtype that carries it",
     TWO(4) AS(b, p, 6) "node Concat a,b -> y axis=0\n", "type"},
    {"a float of 8 bits as UINT64",
     HEAD "output y\ninit x f 1 1\n" AS(a, x, 17) AS(b, a, 13) AS(y, b, 7),
     "not cast from float8e4m3fn"},
    {"a float's bits",
     HEAD "output y\ninit x f 2 1 2\n" AS(a, x, 18) "node BitCast a -> y to=2\n",
     "not taken as uint8"},
};

Test(carried, what_would_go_wrong_is_refused)
{
    for (size_t i = 0; i < ARRAY_LENGTH(refused); i++)
        expect_import_refused(refused[i].name, refused[i].model, refused[i].why);
}
