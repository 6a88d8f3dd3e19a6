/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of INT8 beside their factors: a layer answers as it does with the products,
 * from the network and from its engine file, which keeps the integers. A product may
 * multiply sums by the factors instead, and so round otherwise.
 */
#include "tests/engine/engine_saved.h"

#include <math.h>
#include <string.h>

TestSuite(int8_weights, .init = open_files, .fini = scratch_remove, .timeout = 600);

enum { MOST = 512, TENSORS = 3 };

/* A layer of x, its weight's dims, and the dim along which factors differ; -1: one. */
static const struct layer_case {
    const char *layer, *weight, *x;
    int rank;
    int64_t dims[4];
    int dim;
} cases[] = {
    {"Convolution\nkernel = 3x2", "weight", "2 x 6 x 5 x 7", 4, {5, 6, 3, 2}, 0},
    {"Convolution\nkernel = 3x2\ngroups = 2",
     "weight",
     "1 x 6 x 5 x 7",
     4,
     {4, 3, 3, 2},
     -1},
    {"Deconvolution\ngroups = 2", "weight", "2 x 4 x 3 x 5", 4, {4, 3, 2, 3}, 1},
    {"FullyConnected", "weight", "3 x 5 x 2 x 1", 2, {7, 10}, 0},
    {"FullyConnected\ntransposed = yes", "weight", "3 x 5 x 2 x 1", 2, {10, 7}, 1},
    {"MatrixMultiply", "b", "2 x 3 x 9", 2, {9, 11}, 1},
    {"MatrixMultiply\ntranspose_b = yes", "b", "2 x 3 x 9", 2, {11, 9}, 0},
};

static int64_t product(const int64_t *dims, int rank)
{
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= dims[d];
    return n;
}

/* w.safetensors: q.NAME of I8 with q.weight_scale, and p.NAME, their products. */
static void spill_products(const struct layer_case *c)
{
    static int8_t q[MOST];
    static float p[MOST], scale[MOST];
    char names[2][16];
    const int64_t count = product(c->dims, c->rank);
    const int64_t scales = c->dim < 0 ? 1 : c->dims[c->dim];
    const int64_t inner =
        c->dim < 0 ? 1 : product(c->dims + c->dim + 1, c->rank - c->dim - 1);
    cr_assert_leq(count, MOST);
    for (int64_t k = 0; k < scales; k++)
        scale[k] = (float)(rand() % 1000 + 1) / 4096;
    for (int64_t i = 0; i < count; i++) {
        q[i] = (int8_t)(rand() % 256 - 128);
        p[i] = (float)q[i] * scale[i / inner % scales];
    }
    snprintf(names[0], sizeof names[0], "q.%s", c->weight);
    snprintf(names[1], sizeof names[1], "p.%s", c->weight);
    struct weight_view views[TENSORS] = {
        {names[0], WEIGHT_I8, c->rank, {0}, q, (size_t)count},
        {names[1], WEIGHT_F32, c->rank, {0}, p, (size_t)count * sizeof *p},
        {"q.weight_scale", WEIGHT_F32, 1, {scales}, scale, (size_t)scales * sizeof *p},
    };
    memcpy(views[0].dims, c->dims, sizeof c->dims);
    memcpy(views[1].dims, c->dims, sizeof c->dims);
    cr_assert_eq(weights_save(in_scratch("w.safetensors"), views, TENSORS, NULL),
                 STRATA_OK);
}

static const char *spill_net(const struct layer_case *c)
{
    char text[1024];
    snprintf(text, sizeof text,
             "[network]\nformat = 1\noutputs = q, p\n[input x]\nshape = %s\n"
             "[weights w]\nfile = w.safetensors\nstrict = yes\n"
             "[layer q]\ntype = %s\ninputs = x\nweights = w:q\n"
             "[layer p]\ntype = %s\ninputs = x\nweights = w:p\n",
             c->x, c->layer, c->layer);
    return spill_text("net.ini", text);
}

/* Whether n outputs are others, up to rounding where factors may be of sums. */
static bool same_outputs(const float *q, const float *p, int64_t n, const char *layer)
{
    float worst = 0, largest = 0;
    if (strncmp(layer, "MatrixMultiply", 14) != 0)
        return memcmp(q, p, (size_t)n * sizeof *q) == 0;
    for (int64_t i = 0; i < n; i++) {
        worst = fmaxf(worst, fabsf(q[i] - p[i]));
        largest = fmaxf(largest, fabsf(p[i]));
    }
    return worst <= 0x1p-20f * largest;
}

/* The first output is the second, and is not all zeros. */
static void expect_equal_outputs(struct session *s, const char *layer)
{
    strata_context *c = NULL;
    strata_binding b = {.struct_size = sizeof b};
    bool zero = true;
    cr_assert_eq(strata_context_create(&c, s->engine, s->handle, &s->err), STRATA_OK,
                 "%s", s->err.message);
    strata_engine_binding(s->engine, 0, &b, NULL);
    float *x = strata_context_data(c, 0);
    for (int64_t i = 0; i < b.bytes / 4; i++)
        x[i] = (float)(rand() % 4001) / 2000 - 1;
    cr_assert_eq(strata_context_run(c, &s->err), STRATA_OK, "%s", s->err.message);
    strata_engine_binding(s->engine, 1, &b, NULL);
    const float *q = strata_context_data(c, 1), *p = strata_context_data(c, 2);
    for (int64_t i = 0; i < b.bytes / 4; i++)
        zero &= q[i] == 0;
    cr_expect_not(zero, "%s", layer);
    cr_expect(same_outputs(q, p, b.bytes / 4, layer), "%s", layer);
    strata_context_destroy(c);
}

Test(int8_weights, answer_as_their_products_do_and_stay_integers_in_engine_files)
{
    static const char *const set[] = {"build.precision=fp32"};
    srand((unsigned)getpid());
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct session a, b;
        struct file_bytes bytes;
        spill_products(&cases[i]);
        build(&a, spill_net(&cases[i]), set, 1);
        expect_equal_outputs(&a, cases[i].layer);
        save(&a, file);
        cr_assert_eq(load(&b, file), STRATA_OK, "%s", b.err.message);
        expect_equal_outputs(&b, cases[i].layer);
        cr_assert_eq(file_read(&bytes, file, ENGINE_FILE_MAX, NULL), STRATA_OK);
        cr_expect_not_null(memmem(bytes.data, bytes.size, "\"dtype\":\"I8\"", 12));
        file_free(&bytes);
        release(&a);
        release(&b);
    }
}

static const struct {
    const char *keys, *message;
} refusals[] = {
    {"weight = w:p.weight\nweight_scale = w:q.weight_scale\n",
     "but it is neither I8 nor F8 in the file"},
    {"weight = r\nweight_scale = w:q.weight_scale\n", "but it is not in a file"},
    {"weight = w:q.weight\nweight_scale = w:p.weight\n",
     "weight 'weight_scale' of layer y: tensor 'p.weight' has dims 5x6x3x2; "
     "core::Convolution@1 needs 5x1x1x1"},
};

Test(int8_weights, are_refused_where_they_say_nothing)
{
    srand((unsigned)getpid());
    spill_products(&cases[0]);
    for (size_t i = 0; i < ARRAY_LENGTH(refusals); i++) {
        struct session s;
        char text[1024];
        snprintf(text, sizeof text,
                 "[network]\nformat = 1\noutputs = y\n[input x]\nshape = 2 x 6 x 5 x 7\n"
                 "[weights w]\nfile = w.safetensors\n[weights r]\nrandom = 1\n"
                 "[layer y]\ntype = Convolution\nfilters = 5\nkernel = 3x2\n%s",
                 refusals[i].keys);
        cr_expect_eq(session_load(&s, spill_text("net.ini", text), NULL, NULL, 0),
                     STRATA_EPARSE, "%s", refusals[i].keys);
        cr_expect_not_null(strstr(s.err.message, refusals[i].message), "%s",
                           s.err.message);
        release(&s);
    }
}
