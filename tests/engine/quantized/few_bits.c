/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with weights of INT8 and of 4 bits in groups: answers are those of the
 * dequantised weights, whichever impl a plan takes, from the network and from its engine
 * file; one that keeps the bits needs few bytes; what is no such weight is refused.
 */
#include "tests/engine/engine_saved.h"

#include <math.h>
#include <string.h>

static void open_host_files(void)
{
    unsetenv("STRATA_TEST_DEVICE"); /* impls are named */
    open_files();
}

TestSuite(few_bits, .init = open_host_files, .fini = scratch_remove, .timeout = 600);

enum { MOST = 1 << 16 };

/* rows x depth times depth x columns, and how B is stored. */
static const struct product {
    int64_t rows, depth, columns, group;
    int bits;
    bool turned, one_factor; /* transpose_b; one for the whole weight */
} products[] = {
    {1, 256, 80, 128, 4, true, false},  {1, 256, 80, 128, 4, false, false},
    {3, 37, 19, 16, 4, true, false},    {3, 37, 19, 16, 4, false, false},
    {2, 45, 33, 7, 4, true, false},     {5, 45, 33, 7, 4, false, false},
    {4, 9, 17, 128, 4, true, false},    {1, 1, 1, 1, 4, false, false},
    {1, 1, 5, 3, 4, true, false},       {16, 64, 48, 0, 4, true, false},
    {17, 66, 50, 32, 4, false, false},  {150, 131, 70, 32, 4, true, false},
    {3, 21, 10, 0, 4, false, true},     {1, 100, 40, 32, 8, true, false},
    {7, 100, 40, 32, 8, false, false},  {6, 33, 21, 5, 8, true, false},
    {2, 64, 31, 0, 8, false, false},    {40, 35, 18, 8, 8, false, false},
    {1, 30, 16, 0, 8, true, true},
};

struct values {
    uint8_t stored[MOST];
    float factors[MOST];
    double b[MOST]; /* of (k, n), n the faster */
    int64_t bytes, groups, n_factors;
};

static int64_t over(int64_t n, int64_t each)
{
    return (n + each - 1) / each;
}

/* Random integers, their factors and what they stand for. */
static void draw(struct values *v, const struct product *p)
{
    const int64_t group = p->group ? p->group : p->depth;
    const int64_t rows = p->bits == 4 ? over(p->depth, 2) : p->depth;
    v->groups = over(p->depth, group);
    v->bytes = rows * p->columns;
    v->n_factors = p->one_factor ? 1 : v->groups * p->columns;
    cr_assert_leq(p->depth * p->columns, MOST);
    memset(v->stored, 0, sizeof v->stored);
    for (int64_t i = 0; i < v->n_factors; i++)
        v->factors[i] = (float)(rand() % 1000 + 1) / 4096;
    for (int64_t k = 0; k < p->depth; k++)
        for (int64_t n = 0; n < p->columns; n++) {
            const int q = p->bits == 4 ? rand() % 16 - 8 : rand() % 256 - 128;
            const int64_t row = p->bits == 4 ? k / 2 : k, g = k / group;
            const int64_t at = p->turned ? n * rows + row : row * p->columns + n;
            const int64_t f = p->one_factor ? 0
                              : p->turned   ? n * v->groups + g
                                            : g * p->columns + n;
            if (p->bits == 4)
                v->stored[at] |= (uint8_t)((q + 8) << (k % 2 * 4));
            else
                v->stored[at] = (uint8_t)q;
            v->b[k * p->columns + n] = q * (double)v->factors[f];
        }
    if (p->bits == 4 && p->depth % 2 != 0) /* nobody's: must not matter */
        for (int64_t n = 0; n < p->columns; n++)
            v->stored[p->turned ? n * rows + rows - 1 : (rows - 1) * p->columns + n] |=
                (uint8_t)(rand() % 16 << 4);
}

static void save_weights(const struct values *v, const struct product *p)
{
    const int64_t rows = p->bits == 4 ? over(p->depth, 2) : p->depth;
    struct weight_view views[] = {
        {"y.b", p->bits == 4 ? WEIGHT_U8 : WEIGHT_I8, 2, {rows, p->columns}, v->stored,
         (size_t)v->bytes},
        {"y.weight_scale", WEIGHT_F32, 2, {v->groups, p->columns}, v->factors,
         (size_t)v->n_factors * sizeof(float)},
    };
    if (p->turned) {
        views[0].dims[0] = views[1].dims[0] = p->columns;
        views[0].dims[1] = rows;
        views[1].dims[1] = v->groups;
    }
    if (p->one_factor)
        views[1].dims[0] = views[1].dims[1] = 1;
    cr_assert_eq(weights_save(in_scratch("w.safetensors"), views, 2, NULL), STRATA_OK);
}

static const char *spill_net(const struct product *p, const char *impl)
{
    char text[1024];
    snprintf(text, sizeof text,
             "[network]\nformat = 1\noutputs = y\n[input x]\nshape = %d x %d\n"
             "[weights w]\nfile = w.safetensors\nstrict = yes\n"
             "[layer y]\ntype = MatrixMultiply\nweights = w:y\ntranspose_b = %s\n"
             "weight_bits = %d\nweight_group = %d\nimpl = %s\n",
             (int)p->rows, (int)p->depth, p->turned ? "yes" : "no",
             p->bits == 4 ? 4 : 0, (int)p->group, impl);
    return spill_text("net.ini", text);
}

static void expect_product(struct session *s, const struct product *p,
                           const struct values *v, const char *what)
{
    strata_context *c = NULL;
    double worst = 0, largest = 0;
    cr_assert_eq(strata_context_create(&c, s->engine, s->handle, &s->err), STRATA_OK,
                 "%s", s->err.message);
    float *x = strata_context_data(c, 0);
    for (int64_t i = 0; i < p->rows * p->depth; i++)
        x[i] = (float)(rand() % 4001) / 2000 - 1;
    cr_assert_eq(strata_context_run(c, &s->err), STRATA_OK, "%s", s->err.message);
    const float *y = strata_context_data(c, 1);
    for (int64_t m = 0; m < p->rows; m++)
        for (int64_t n = 0; n < p->columns; n++) {
            double sum = 0, sizes = 0;
            for (int64_t k = 0; k < p->depth; k++) {
                const double each =
                    (double)x[m * p->depth + k] * v->b[k * p->columns + n];
                sum += each;
                sizes += fabs(each);
            }
            largest = fmax(largest, fabs(sum));
            worst = fmax(worst, fabs(sum - (double)y[m * p->columns + n]) -
                                    0x1p-22 * (double)(p->depth + 2) * sizes);
        }
    cr_expect_leq(worst, 0, "%s: %dx%dx%d bits %d group %d: off by %g", what,
                  (int)p->rows, (int)p->depth, (int)p->columns, p->bits, (int)p->group,
                  worst);
    cr_expect(largest > 0 || p->depth * p->columns < 16, "%s", what);
    strata_context_destroy(c);
}

Test(few_bits, multiply_as_the_floats_that_they_stand_for)
{
    static const char *const set[] = {"build.precision=fp32"};
    static const char *const impls[] = {"c", "few_bits"};
    static struct values v;
    srand((unsigned)getpid());
    for (size_t i = 0; i < ARRAY_LENGTH(products); i++)
        for (size_t k = 0; k < ARRAY_LENGTH(impls); k++) {
            const struct product *p = &products[i];
            struct session a, b;
            draw(&v, p);
            save_weights(&v, p);
            build(&a, spill_net(p, impls[k]), set, 1);
            expect_product(&a, p, &v, impls[k]);
            save(&a, file);
            cr_assert_eq(load(&b, file), STRATA_OK, "%s", b.err.message);
            expect_product(&b, p, &v, "its engine file");
            release(&a);
            release(&b);
        }
}

Test(few_bits, stay_few_in_engines_and_their_files)
{
    static const struct product big = {1, 512, 128, 128, 4, true, false};
    static const char *const set[] = {"build.precision=fp32"};
    static struct values v;
    struct session s;
    struct file_bytes bytes;
    srand((unsigned)getpid());
    draw(&v, &big);
    save_weights(&v, &big);
    build(&s, spill_net(&big, "few_bits"), set, 1);
    const uint64_t few = strata_engine_weight_bytes(s.engine);
    cr_expect_eq(few, (uint64_t)(big.depth / 2 * big.columns + v.n_factors * 4 * 2),
                 "%d bytes", (int)few);
    save(&s, file);
    cr_assert_eq(file_read(&bytes, file, ENGINE_FILE_MAX, NULL), STRATA_OK);
    cr_expect_not_null(memmem(bytes.data, bytes.size, "\"dtype\":\"U8\"", 12));
    cr_expect_lt(bytes.size, (size_t)(big.depth * big.columns));
    file_free(&bytes);
    release(&s);
}

/* Of a product of 6 columns by 7 values, stored as 4 bits in groups of 4. */
static const struct {
    const char *keys, *message;
} refusals[] = {
    {"b = w:y.b\nweight_scale = w:y.weight_scale\nweight_group = 4\n",
     "tensor 'y.b' has dims 6x4; core::MatrixMultiply@1 needs 6x7"},
    {"b = w:y.b\nweight_scale = w:y.weight_scale\nweight_bits = 4\n",
     "tensor 'y.weight_scale' has dims 6x2; core::MatrixMultiply@1 needs 6x1"},
    {"b = w:y.b\nweight_scale = w:y.weight_scale\nweight_bits = 4\nweight_group = 2\n",
     "tensor 'y.weight_scale' has dims 6x2; core::MatrixMultiply@1 needs 6x4"},
    {"b = w:y.b\nweight_scale = w:y.weight_scale\nweight_bits = 3\nweight_group = 4\n",
     "weight_bits = 3; 4 is a byte for two values"},
    {"b = w:y.b\nweight_scale = w:y.weight_scale\nweight_bits = 8\n",
     "weight_bits"},
    {"b = w:y.b\nweight_scale = w:y.weight_scale\nweight_bits = 4\nweight_group = -1\n",
     "weight_group"},
    {"b = w:y.b\nweight_bits = 4\n",
     "weight 'b' of layer y has two values of 4 bits in a byte, and nothing says by what "
     "they are multiplied; give 'weight_scale'"},
    {"b = r\nunits = 6\nweight_scale = w:y.weight_scale\nweight_bits = 4\n"
     "weight_group = 4\n",
     "but it is not in a file"},
    {"b = w:f\nweight_scale = w:y.weight_scale\nweight_bits = 4\nweight_group = 4\n",
     "but it is not U8 in the file, whose bytes hold two values"},
};

Test(few_bits, are_refused_where_sizes_do_not_fit)
{
    static const uint8_t b[24];
    static const float scale[12], f[24];
    const struct weight_view views[] = {
        {"y.b", WEIGHT_U8, 2, {6, 4}, b, sizeof b},
        {"y.weight_scale", WEIGHT_F32, 2, {6, 2}, scale, sizeof scale},
        {"f", WEIGHT_F32, 2, {6, 4}, f, sizeof f},
    };
    cr_assert_eq(weights_save(in_scratch("w.safetensors"), views, 3, NULL), STRATA_OK);
    for (size_t i = 0; i < ARRAY_LENGTH(refusals); i++) {
        struct session s;
        char text[1024];
        snprintf(text, sizeof text,
                 "[network]\nformat = 1\noutputs = y\n[input x]\nshape = 2 x 7\n"
                 "[weights w]\nfile = w.safetensors\n[weights r]\nrandom = 1\n"
                 "[layer y]\ntype = MatrixMultiply\ntranspose_b = yes\n%s",
                 refusals[i].keys);
        cr_expect_neq(session_load(&s, spill_text("net.ini", text), NULL, NULL, 0),
                      STRATA_OK, "%s", refusals[i].keys);
        cr_expect_not_null(strstr(s.err.message, refusals[i].message), "%s\n%s",
                           refusals[i].keys, s.err.message);
        release(&s);
    }
}
