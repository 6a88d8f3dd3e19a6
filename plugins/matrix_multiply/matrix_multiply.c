/* SPDX-License-Identifier: Apache-2.0
 *
 * MatrixMultiply: Y = alpha*op(A)*op(B) + beta*C + bias over the last two dims, leading
 * dims broadcast. Floats accumulate in FP32, FP64 in FP64, integers wrap around.
 */
#include "plugins/matrix_multiply/host.h"

#include <math.h>

#include "plugins/common/dense.h"
#include "plugins/common/quantized/factors.h"
#include "plugins/matrix_multiply/few_bits.h"

static const strata_attr attrs[] = {
    {.name = "transpose_a", .type = STRATA_BOOL,
     .offset = offsetof(strata_matrix_multiply, transpose_a),
     .doc = "A is given as ... x K x M"},
    {.name = "transpose_b", .type = STRATA_BOOL,
     .offset = offsetof(strata_matrix_multiply, transpose_b),
     .doc = "B is given as ... x N x K"},
    {.name = "alpha", .type = STRATA_F64,
     .offset = offsetof(strata_matrix_multiply, alpha), .def = 1,
     .doc = "factor of the product"},
    {.name = "beta", .type = STRATA_F64, .offset = offsetof(strata_matrix_multiply, beta),
     .def = 1, .doc = "factor of C; 0: C is not read"},
    {.name = "units", .type = STRATA_I64,
     .offset = offsetof(strata_matrix_multiply, units), .min = 0, .max = 1e15,
     .doc = "N where b is a weight; 0: from the weight"},
    {.name = "weight_bits", .type = STRATA_I64,
     .offset = offsetof(strata_matrix_multiply, weight_bits), .max = 4,
     .doc = "4: a byte of the weight b has two values along K; 0: as its dtype says"},
    {.name = "weight_group", .type = STRATA_I64,
     .offset = offsetof(strata_matrix_multiply, weight_group), .max = INT32_MAX,
     .doc = "values along K that a factor of the weight b is for; 0: all of them"},
};

#define BIT(dtype) (UINT64_C(1) << (dtype))
#define EIGHT_BIT                                                                        \
    (BIT(STRATA_INT8) | BIT(STRATA_UINT8) | BIT(STRATA_E4M3) | BIT(STRATA_E5M2))

static const strata_weight weights[] = {
    [MATRIX_WEIGHT] = {"b", 0, 2,
                       BIT(STRATA_FP32) | BIT(STRATA_INT32) | BIT(STRATA_INT64) |
                           BIT(STRATA_FP64) | EIGHT_BIT,
                       "B as a constant, K x N, or N x K transposed"},
    [MATRIX_BIAS] = {"bias", 0, 1,
                     BIT(STRATA_FP32) | BIT(STRATA_INT32) | BIT(STRATA_INT64) |
                         BIT(STRATA_FP64),
                     "N addends"},
    [MATRIX_FACTORS] = FACTORS_WEIGHT("column of B"),
};

/* ---- dtypes -------------------------------------------------------------------- */

/* A dtype that FP16 and BF16 may stand for is FP32 in a layer's definition. */
static int32_t defined(int32_t dtype)
{
    return dtype == STRATA_FP16 || dtype == STRATA_BF16 ? STRATA_FP32 : dtype;
}

static int is_byte(int32_t dtype)
{
    return dtype == STRATA_INT8 || dtype == STRATA_UINT8;
}

static int is_fp8(int32_t dtype)
{
    return dtype == STRATA_E4M3 || dtype == STRATA_E5M2;
}

static int is_integer(int32_t dtype)
{
    return is_byte(dtype) || dtype == STRATA_INT32 || dtype == STRATA_INT64;
}

/* Of Y, C and the bias. */
static int32_t result_dtype(int32_t a)
{
    return is_byte(a) ? STRATA_INT32 : is_fp8(a) ? STRATA_FP32 : defined(a);
}

static int dtypes_agree(int32_t a, int32_t b)
{
    return defined(a) == defined(b) || (is_byte(a) && is_byte(b)) ||
           (is_fp8(a) && is_fp8(b));
}

static int check_dtypes(const strata_node *n)
{
    const strata_matrix_multiply *p = n->params;
    const int32_t a = n->in[MATRIX_A].dtype;
    const int32_t b = matrix_second(n->n_in, n->in, n->weight)->dtype;
    if (a == STRATA_BOOL8 || !dtypes_agree(a, b))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "A has dtype number %d, B %d; both must be the same, and not "
                           "bool; int8 and u8 may meet; put a Cast before the layer",
                           (int)a, (int)b);
    if (n->n_in > MATRIX_C && n->in[MATRIX_C].rank > 0 &&
        defined(n->in[MATRIX_C].dtype) != result_dtype(a))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "C has dtype number %d, the output %d; put a Cast before C",
                           (int)n->in[MATRIX_C].dtype, (int)result_dtype(a));
    if (is_integer(a) && (p->alpha != rint(p->alpha) || p->beta != rint(p->beta) ||
                          fabs(p->alpha) > 0x1p53 || fabs(p->beta) > 0x1p53))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "alpha is %g and beta %g; a product of integers needs whole "
                           "numbers",
                           p->alpha, p->beta);
    return STRATA_OK;
}

/* ---- shapes -------------------------------------------------------------------- */

static int check_rank(const strata_node *n, const char *name, const strata_tensor *t)
{
    return t->rank >= 2 ? STRATA_OK
                        : STRATA_FAIL(n, STRATA_EINVAL,
                                      "%s has rank %d; a matrix has at least 2 dims: "
                                      "give it a dim of 1 by a Shuffle",
                                      name, (int)t->rank);
}

/* What the factors are for, and whether b's values are bytes or halves of one. */
static int shape_factors(const strata_node *n, strata_tensor *expected)
{
    const strata_matrix_multiply *p = n->params;
    const int depth = p->transpose_b ? 1 : 0;
    strata_tensor *b = &expected[MATRIX_WEIGHT], *factors = &expected[MATRIX_FACTORS];
    if (p->weight_bits != 0 && p->weight_bits != 4)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "weight_bits = %lld; 4 is a byte for two values, 0 what the "
                           "weight's own dtype says",
                           (long long)p->weight_bits);
    if ((p->weight_bits != 0 || p->weight_group != 0) &&
        defined(n->in[MATRIX_A].dtype) != STRATA_FP32)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "weight_bits and weight_group are of a weight that stands for "
                           "floats, and A has dtype number %d; leave them out",
                           (int)n->in[MATRIX_A].dtype);
    factors_shape(factors, &n->weight[MATRIX_FACTORS], b, 1 - depth);
    if (b->rank == 2 && p->weight_group > 0)
        factors_group(factors, b, depth, p->weight_group);
    if (p->weight_bits == 4) {
        b->vector_dim = depth;
        b->vector = 2;
    }
    return STRATA_OK;
}

/* Dims of b, the units from the attribute or the file. */
static int matrix_weight_shape(const strata_node *n, strata_tensor *expected)
{
    const strata_matrix_multiply *p = n->params;
    const strata_tensor *a = &n->in[MATRIX_A], *b = &n->weight[MATRIX_WEIGHT];
    const int32_t result = result_dtype(a->dtype);
    int64_t units = p->units;
    int status = check_rank(n, "A", a);
    if (status != STRATA_OK)
        return status;
    expected[MATRIX_BIAS].dtype = result;
    if (!dtypes_agree(a->dtype, expected[MATRIX_WEIGHT].dtype))
        expected[MATRIX_WEIGHT].dtype = defined(a->dtype);
    if (matrix_is_constant(n->n_in, n->in)) {
        if (units == 0 && b->rank == 2)
            units = b->dims[p->transpose_b ? 0 : 1];
        if (units == 0)
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "there is neither a second input nor a weight 'b' of "
                               "known size; give one of them, or 'units'");
        const int64_t k = a->dims[a->rank - (p->transpose_a ? 2 : 1)];
        expected[MATRIX_WEIGHT].rank = 2;
        expected[MATRIX_WEIGHT].dims[p->transpose_b ? 1 : 0] = k;
        expected[MATRIX_WEIGHT].dims[p->transpose_b ? 0 : 1] = units;
    } else if (n->in[MATRIX_B].rank >= 2) {
        units = n->in[MATRIX_B].dims[n->in[MATRIX_B].rank - (p->transpose_b ? 2 : 1)];
    }
    expected[MATRIX_BIAS].rank = 1;
    expected[MATRIX_BIAS].dims[0] = units;
    return shape_factors(n, expected);
}

static int check_second(const strata_node *n)
{
    const strata_matrix_multiply *p = n->params;
    const int constant = matrix_is_constant(n->n_in, n->in);
    if (constant && n->weight[MATRIX_WEIGHT].rank != 2)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "there is neither a second input nor a weight 'b'; give one");
    if (!constant && n->weight[MATRIX_WEIGHT].rank > 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "both a second input and a weight 'b' are given; leave one "
                           "out (C is the third input: inputs = a, none, c)");
    if (!constant && p->units != 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "units = %lld is of the weight 'b', which a second input "
                           "stands for here; leave it out",
                           (long long)p->units);
    if (!constant && (p->weight_bits != 0 || p->weight_group != 0))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "weight_bits and weight_group are of the weight 'b', which a "
                           "second input stands for here; leave them out");
    return constant ? STRATA_OK : check_rank(n, "B", &n->in[MATRIX_B]);
}

/* Stretch the output's dims, `skip` last ones apart, to hold t's. */
static int broadcast(const strata_node *n, const char *name, const strata_tensor *t,
                     int skip)
{
    strata_tensor *out = &n->out[0];
    for (int back = skip; back < t->rank; back++) {
        const int64_t dim = t->dims[t->rank - 1 - back];
        int64_t *own = &out->dims[out->rank - 1 - back];
        if (dim != *own && dim != 1 && (*own != 1 || skip == 0))
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "dim %d from the end of %s is %lld, the others have "
                               "%lld; equal dims or 1 are needed",
                               back, name, (long long)dim, (long long)*own);
        if (*own == 1)
            *own = dim;
    }
    return STRATA_OK;
}

static int shape_batch(const strata_node *n, const strata_tensor *b)
{
    const strata_tensor *a = &n->in[MATRIX_A];
    strata_tensor *out = &n->out[0];
    int status;
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int d = 0; d < out->rank - 2; d++)
        out->dims[d] = 1;
    if ((status = broadcast(n, "A", a, 2)))
        return status;
    return broadcast(n, "B", b, 2);
}

static int matrix_shape(const strata_node *n)
{
    const strata_matrix_multiply *p = n->params;
    const strata_tensor *a = &n->in[MATRIX_A], *b;
    strata_tensor *out = &n->out[0];
    int status;
    if ((status = check_rank(n, "A", a)) || (status = check_second(n)) ||
        (status = check_dtypes(n)))
        return status;
    b = matrix_second(n->n_in, n->in, n->weight);
    const int64_t k = a->dims[a->rank - (p->transpose_a ? 2 : 1)];
    const int64_t depth = b->dims[b->rank - (p->transpose_b ? 1 : 2)];
    if (k != depth)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "A has %lld columns, B %lld rows; these must be equal "
                           "(transpose_a and transpose_b swap the last two dims)",
                           (long long)k, (long long)depth);
    if ((status = shape_batch(n, b)))
        return status;
    out->dims[out->rank - 2] = a->dims[a->rank - (p->transpose_a ? 1 : 2)];
    out->dims[out->rank - 1] = b->dims[b->rank - (p->transpose_b ? 2 : 1)];
    out->dtype = result_dtype(a->dtype);
    if (n->n_in <= MATRIX_C || n->in[MATRIX_C].rank == 0)
        return STRATA_OK;
    if (n->in[MATRIX_C].rank > out->rank)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "C has rank %d, the output %d; C stretches to the output, not "
                           "the other way",
                           (int)n->in[MATRIX_C].rank, (int)out->rank);
    return broadcast(n, "C", &n->in[MATRIX_C], 0);
}

static double matrix_flops(const strata_node *n)
{
    const strata_matrix_multiply *p = n->params;
    const strata_tensor *a = &n->in[MATRIX_A];
    return 2 * (double)n->out[0].count *
           (double)a->dims[a->rank - (p->transpose_a ? 2 : 1)];
}

/* ---- the definition ------------------------------------------------------------ */

/* Dense linear tensors of the node, as the reference has them. */
struct definition {
    struct matrix_product p;
    const void *a, *b, *c, *bias;
    double alpha, beta;
};

static strata_tensor dense_view(const strata_tensor *t)
{
    strata_tensor dense = *t;
    for (int64_t d = t->rank - 1, step = 1; d >= 0; step *= t->dims[d], d--)
        dense.strides[d] = step;
    return dense;
}

static void define(struct definition *f, const strata_node *n, const void *const *in,
                   const void *const *weight)
{
    const strata_matrix_multiply *p = n->params;
    strata_tensor inputs[3] = {{0}}, b, out = dense_view(&n->out[0]);
    for (int i = 0; i < n->n_in && i < 3; i++)
        inputs[i] = dense_view(&n->in[i]);
    b = dense_view(&n->weight[MATRIX_WEIGHT]);
    f->p = matrix_product_of(p, n->n_in, inputs, &b, &out, NULL);
    f->a = in[MATRIX_A];
    f->b = matrix_is_constant(n->n_in, n->in) ? weight[MATRIX_WEIGHT] : in[MATRIX_B];
    f->c = matrix_has_c(p, n->n_in, n->in) ? in[MATRIX_C] : NULL;
    f->bias = n->weight[MATRIX_BIAS].rank > 0 ? weight[MATRIX_BIAS] : NULL;
    f->alpha = p->alpha;
    f->beta = p->beta;
}

/* Where element (row, column) of matrix i of the batch lies. */
static int64_t place(const struct definition *f, int which, int64_t i, int64_t row,
                     int64_t column)
{
    const struct matrix *x = &f->p.at[which];
    return matrix_begin(&f->p, which, i) + row * x->row + column * x->column;
}

static double element_of_floats(const struct definition *f, int64_t i, int64_t m,
                                int64_t n)
{
    const double *a = f->a, *b = f->b, *c = f->c, *bias = f->bias;
    double sum = 0;
    for (int64_t k = 0; k < f->p.k; k++)
        sum += a[place(f, PRODUCT_A, i, m, k)] * b[place(f, PRODUCT_B, i, k, n)];
    sum *= f->alpha;
    if (c)
        sum += f->beta * c[place(f, PRODUCT_C, i, m, n)];
    return bias ? sum + bias[n] : sum;
}

static int64_t element_of_integers(const struct definition *f, int64_t i, int64_t m,
                                   int64_t n)
{
    const int64_t *a = f->a, *b = f->b, *c = f->c, *bias = f->bias;
    uint64_t sum = 0;
    for (int64_t k = 0; k < f->p.k; k++)
        sum += (uint64_t)a[place(f, PRODUCT_A, i, m, k)] *
               (uint64_t)b[place(f, PRODUCT_B, i, k, n)];
    sum *= (uint64_t)(int64_t)f->alpha;
    if (c)
        sum += (uint64_t)(int64_t)f->beta * (uint64_t)c[place(f, PRODUCT_C, i, m, n)];
    return (int64_t)(bias ? sum + (uint64_t)bias[n] : sum);
}

static int reference_run(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const int32_t dtype = result_dtype(n->in[MATRIX_A].dtype);
    struct definition f;
    define(&f, n, in, weight);
    for (int64_t i = 0; i < f.p.batches; i++)
        for (int64_t row = 0; row < f.p.m; row++)
            for (int64_t column = 0; column < f.p.n; column++) {
                const int64_t at = place(&f, PRODUCT_D, i, row, column);
                if (!is_integer(dtype))
                    ((double *)out[0])[at] = element_of_floats(&f, i, row, column);
                else if (dtype == STRATA_INT64)
                    ((int64_t *)out[0])[at] = element_of_integers(&f, i, row, column);
                else
                    ((int64_t *)out[0])[at] =
                        (int32_t)(uint32_t)element_of_integers(&f, i, row, column);
            }
    return STRATA_OK;
}

static const void *matrix_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0, reference_run};
    return dense_extension_typed(id, &reference);
}

static int panels_accept(const strata_node *n)
{
    const strata_tensor *w = &n->weight[MATRIX_WEIGHT];
    return w->dtype == STRATA_FP32 && w->rank == 2
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "it takes a weight of FP32");
}

/* ---- tables -------------------------------------------------------------------- */

#define SAME_ROW(format) {{(format), STRATA_SAME, STRATA_SAME}, {STRATA_SAME}}
#define BYTES (STRATA_I8_NCHW | STRATA_U8_NCHW)

static const strata_row float_rows[] = {SAME_ROW(STRATA_F32_NCHW)};
#define FP8 (STRATA_E4M3_NCHW | STRATA_E5M2_NCHW)
static const strata_row half_rows[] = {
    SAME_ROW(STRATA_F16_NCHW),
    SAME_ROW(STRATA_BF16_NCHW),
    {{FP8, FP8, STRATA_F32_NCHW}, {STRATA_F32_NCHW}},
    {{FP8, FP8, STRATA_F16_NCHW}, {STRATA_F16_NCHW}},
    {{FP8, FP8, STRATA_BF16_NCHW}, {STRATA_BF16_NCHW}},
};
static const strata_row exact_rows[] = {
    {{BYTES, BYTES, STRATA_I32_NCHW}, {STRATA_I32_NCHW}},
    SAME_ROW(STRATA_I32_NCHW),
    SAME_ROW(STRATA_I64_NCHW),
    SAME_ROW(STRATA_F64_NCHW),
};

#define EPILOGUES (STRATA_EPILOGUE_RESIDUAL | STRATA_EPILOGUE_ACTIVATION)
#define STRIDED (STRATA_STRIDED_IN | STRATA_STRIDED_OUT)

static const strata_impl impls[] = {
    {.id = 1, .device = STRATA_HOST, .flags = STRIDED, .epilogues = EPILOGUES,
     .name = "c", .rows = STRATA_ARRAY(float_rows),
     .activations = ELEMENT_ALL_ACTIVATIONS, .efficiency = 0.6, .bandwidth = 0.8,
     .run = matrix_float_run},
    {.id = 2, .device = STRATA_HOST, .flags = STRIDED, .epilogues = EPILOGUES,
     .name = "any", .rows = STRATA_ARRAY(half_rows),
     .activations = ELEMENT_ALL_ACTIVATIONS, .efficiency = 0.5, .bandwidth = 0.4,
     .workspace = matrix_half_workspace, .run = matrix_half_run},
    {.id = 3, .device = STRATA_HOST, .flags = STRIDED, .name = "exact",
     .rows = STRATA_ARRAY(exact_rows), .efficiency = 0.1, .bandwidth = 0.5,
     .run = matrix_exact_run},
    {.id = 4, .device = STRATA_HOST,
     .flags = STRIDED | STRATA_WEIGHT_STORED | STRATA_WEIGHT_PACKED,
     .epilogues = EPILOGUES, .name = "few_bits", .rows = STRATA_ARRAY(float_rows),
     .activations = ELEMENT_ALL_ACTIVATIONS, .efficiency = 0.5, .bandwidth = 0.7,
     .state_size = sizeof(struct few_bits), .accept = few_bits_accept,
     .setup = few_bits_setup, .run = matrix_few_bits_run},
    {.id = 5, .device = STRATA_HOST, .flags = STRIDED | STRATA_WEIGHT_PACKED,
     .epilogues = EPILOGUES, .name = "panels", .rows = STRATA_ARRAY(float_rows),
     .activations = ELEMENT_ALL_ACTIVATIONS, .efficiency = 0.8, .bandwidth = 0.85,
     .state_size = sizeof(struct matrix_panels), .accept = panels_accept,
     .setup = matrix_panels_setup, .run = matrix_panels_run},
};

static const strata_layer matrix_multiply = {
    .struct_size = sizeof(strata_layer), .version = 1, .name = "MatrixMultiply",
    .doc = "Matrix products over the last two dims, scaled, with an addend and a bias.",
    .min_in = 1, .max_in = 3, .n_out = 1, .params_size = sizeof(strata_matrix_multiply),
    .attrs = STRATA_ARRAY(attrs), .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls), .shape = matrix_shape,
    .weight_shape = matrix_weight_shape, .flops = matrix_flops,
    .extension = matrix_extension, .optional_in = 1 << MATRIX_B | 1 << MATRIX_C,
};
static const strata_layer *const layers[] = {&matrix_multiply};
STRATA_MODULE("core", "1.0.0", "MatrixMultiply", layers)
