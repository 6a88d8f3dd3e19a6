/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMulNBits with zero points of its own, imported: bits stay bits, and the product is
 * that of the numbers they stand for, in FP64.
 */
#include "tests/network/import/model_text.h"
#include "tests/network/import/planned.h"

#include <math.h>

enum zeros { MIDDLE, PACKED, REALS };

static const struct size {
    int64_t rows, columns, units, block;
    int bits;
    enum zeros zeros;
} sizes[] = {
    {3, 70, 7, 32, 4, PACKED},  {1, 45, 5, 16, 4, REALS},  {2, 33, 3, 16, 8, PACKED},
    {5, 64, 9, 32, 4, PACKED},  {2, 20, 1, 32, 4, PACKED}, {4, 49, 17, 16, 4, PACKED},
    {9, 64, 2, 16, 4, REALS},   {2, 40, 6, 16, 8, REALS},  {17, 31, 3, 16, 4, MIDDLE},
    {1, 96, 33, 32, 4, PACKED}, {1, 16, 3, 16, 8, PACKED},
};

enum { MOST = 4096 };

/* What a text says, and where its blocks begin. */
struct model {
    const struct size *s;
    int64_t blocks, row_bytes, zero_bytes;
    uint8_t bytes[MOST], packed[MOST];
    float scales[MOST], reals[MOST], bias[MOST];
};

static uint32_t seed = 7;

static uint32_t random_bits(void)
{
    seed = seed * 1664525 + 1013904223;
    return seed >> 16;
}

static float random_float(float least, float most)
{
    return least + (most - least) * (float)random_bits() / 65535;
}

static void draw(struct model *m, const struct size *s)
{
    m->s = s;
    m->blocks = (s->columns + s->block - 1) / s->block;
    m->row_bytes = m->blocks * s->block * s->bits / 8;
    m->zero_bytes = (m->blocks * s->bits + 7) / 8;
    cr_assert_leq(s->units * m->row_bytes, MOST);
    for (int64_t i = 0; i < MOST; i++) {
        m->bytes[i] = (uint8_t)random_bits();
        m->packed[i] = (uint8_t)random_bits();
        m->scales[i] = random_float(0.01f, 0.02f);
        m->reals[i] = random_float(0, (float)((1 << s->bits) - 1));
        m->bias[i] = random_float(-1, 1);
    }
}

static void print_bytes(FILE *f, const char *name, int64_t n, const uint8_t *v)
{
    fprintf(f, "init %s u %lld", name, (long long)n);
    for (int64_t i = 0; i < n; i++)
        fprintf(f, " %d", v[i]);
    fputc('\n', f);
}

static void print_floats(FILE *f, const char *name, int64_t n, const float *v)
{
    fprintf(f, "init %s f %lld", name, (long long)n);
    for (int64_t i = 0; i < n; i++)
        fprintf(f, " %.9g", (double)v[i]);
    fputc('\n', f);
}

static char *text_of(const struct model *m)
{
    const struct size *s = m->s;
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    cr_assert_not_null(f);
    fprintf(f, "ir 8\nopset 21\nopset com.microsoft 1\ninput x f %lldx%lld\n",
            (long long)s->rows, (long long)s->columns);
    print_bytes(f, "w", s->units * m->row_bytes, m->bytes);
    print_floats(f, "s", s->units * m->blocks, m->scales);
    if (s->zeros == PACKED)
        print_bytes(f, "z", s->units * m->zero_bytes, m->packed);
    else if (s->zeros == REALS)
        print_floats(f, "z", s->units * m->blocks, m->reals);
    print_floats(f, "b", s->units, m->bias);
    fprintf(f,
            "node com.microsoft::MatMulNBits x,w,s,%s,_,b -> y K=%lld N=%lld bits=%d "
            "block_size=%lld\noutput y\n",
            s->zeros == MIDDLE ? "_" : "z", (long long)s->columns, (long long)s->units,
            s->bits, (long long)s->block);
    fclose(f);
    return text;
}

static int field(const uint8_t *bytes, int64_t i, int bits)
{
    return bits == 8 ? bytes[i] : bytes[i / 2] >> (i % 2 * 4) & 15;
}

static double zero_of(const struct model *m, int64_t unit, int64_t block)
{
    if (m->s->zeros == REALS)
        return (double)m->reals[unit * m->blocks + block];
    return m->s->zeros == PACKED
               ? field(m->packed + unit * m->zero_bytes, block, m->s->bits)
               : 1 << (m->s->bits - 1);
}

/* An element, and what its sum may be wrong by. */
static double element(const struct model *m, const float *x, int64_t unit, double *limit)
{
    const struct size *s = m->s;
    double sum = (double)m->bias[unit], most = fabs(sum);
    for (int64_t k = 0; k < s->columns; k++) {
        const double factor =
            (double)x[k] * (double)m->scales[unit * m->blocks + k / s->block];
        sum += factor * (field(m->bytes + unit * m->row_bytes, k, s->bits) -
                         zero_of(m, unit, k / s->block));
        most += fabs(factor) * (1 << s->bits);
    }
    *limit = 5e-7 * most;
    return sum;
}

static void expect_product(const struct model *m, struct imported *i, int case_)
{
    const struct size *s = m->s;
    strata_error err = {0};
    int64_t n_x, n_y;
    float *x = imported_data(i, 0, &n_x);
    const float *y = imported_data(i, 1, &n_y);
    for (int64_t k = 0; k < n_x; k++)
        x[k] = random_float(-1, 2);
    cr_assert_eq(strata_context_run(i->context, &err), STRATA_OK, "%s", err.message);
    cr_assert_eq(n_y, s->rows * s->units);
    for (int64_t at = 0; at < n_y; at++) {
        double limit;
        const double wanted =
            element(m, x + at / s->units * s->columns, at % s->units, &limit);
        cr_expect(fabs((double)y[at] - wanted) <= limit, "case %d, %lld: %g, not %g",
                  case_, (long long)at, (double)y[at], wanted);
    }
}

Test(zero_points, multiply_as_the_numbers_that_they_make)
{
    strata_registry *registry = NULL;
    strata_error err = {0};
    cr_assert_eq(strata_registry_create(&registry, NULL, &err), STRATA_OK, "%s",
                 err.message);
    for (size_t c = 0; c < sizeof sizes / sizeof sizes[0]; c++) {
        struct model m;
        const struct onnx_model *onnx = NULL;
        struct imported i;
        draw(&m, &sizes[c]);
        char *text = text_of(&m);
        struct message bytes = model_bytes(text);
        cr_assert_eq(onnx_parse(&onnx, bytes.bytes, bytes.size, "model", NULL, &err),
                     STRATA_OK, "%s", err.message);
        cr_assert_eq(imported_open(&i, onnx, registry, NULL, &err), STRATA_OK, "%s",
                     err.message);
        cr_expect(strstr(i.text, "weight_group"), "case %d: %s", (int)c, i.text);
        expect_product(&m, &i, (int)c);
        imported_free(&i);
        onnx_close(onnx);
        free(bytes.bytes);
        free(text);
    }
    strata_registry_destroy(registry);
}
