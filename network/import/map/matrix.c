/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of matrices.
 */
#include "network/import/map/quantize.h"

#include <string.h>

#include "core/alloc.h"
#include "formats/format.h"

/* A float matrix that is constant can be packed once: a weight of the layer. */
static bool is_weight(const struct value *b)
{
    return b && b->constant && b->rank == 2 && dtype_is_free(b->dtype);
}

/* A product; b joins as a weight where it can. */
static int product(struct mapping *m, int a, int b)
{
    const bool weight = is_weight(graph_value(m->g, b));
    const int y = weight ? compose_one(m, "MatrixMultiply", a)
                         : compose_two(m, "MatrixMultiply", a, b);
    if (weight)
        section_weight(m->s, "b", b);
    return y;
}

/* A vector is a matrix of one row or one column. */
static int as_matrix(struct mapping *m, int x, bool row)
{
    const struct value *v = graph_value(m->g, x);
    if (!v || v->rank != 1)
        return x;
    const int64_t dims[2] = {row ? 1 : v->dims[0], row ? v->dims[0] : 1};
    if (v->constant)
        return graph_add_constant(m->g, v->name, v->dtype, 2, dims, v->data);
    return compose_reshape(m, x, 2, dims);
}

/* Dims of a product of tensors: those before the last two stretch. */
static int product_dims(const struct value *a, const struct value *b, int64_t *dims)
{
    const int batch_a = a->rank > 2 ? a->rank - 2 : 0;
    const int batch_b = b->rank > 2 ? b->rank - 2 : 0;
    const int batch = batch_a > batch_b ? batch_a : batch_b;
    int n = 0;
    for (; n < batch; n++) {
        const int i = n - (batch - batch_a), k = n - (batch - batch_b);
        dims[n] = i < 0 || (k >= 0 && a->dims[i] == 1) ? b->dims[k] : a->dims[i];
    }
    if (a->rank > 1)
        dims[n++] = a->dims[a->rank - 2];
    if (b->rank > 1)
        dims[n++] = b->dims[b->rank - 1];
    return n;
}

/* The product of two values of the node as its output 0. */
static int multiply(struct mapping *m, int a, int b)
{
    const struct value va = *graph_value(m->g, a), vb = *graph_value(m->g, b);
    int64_t dims[STRATA_MAX_RANK];
    if (va.rank == 0 || vb.rank == 0) {
        map_refuse(m, "an operand is a scalar");
        return VALUE_NONE;
    }
    const int left = as_matrix(m, a, true), right = as_matrix(m, b, false);
    const int y = product(m, left, right);
    if (va.rank > 1 && vb.rank > 1)
        return y;
    const int rank = product_dims(&va, &vb, dims);
    return compose_reshape(m, y, rank, dims);
}

static bool has_operands(struct mapping *m)
{
    if (map_input(m, 0) && map_input(m, 1))
        return true;
    map_refuse(m, "it needs two operands");
    return false;
}

static void map_mat_mul(struct mapping *m)
{
    const struct value *a = map_input(m, 0), *b = map_input(m, 1);
    if (!has_operands(m))
        return;
    multiply(m, compose_input(m, 0), compose_input(m, 1));
    compose_end(m, 0, a->rank == 1 && b->rank == 1 ? 0 : -1);
}

/* beta·C as a bias of N numbers; VALUE_NONE: it is not constant, or has rows. */
static int bias_of(struct mapping *m, const struct value *c, int64_t n, double beta)
{
    const int64_t count = value_count(c);
    const int64_t last = c->rank ? c->dims[c->rank - 1] : 1;
    if (!c->constant || !dtype_is_free(c->dtype) || (count != 1 && count != n) ||
        last != count)
        return VALUE_NONE;
    if (beta == 1 && c->rank == 1 && count == n)
        return compose_input(m, 2);
    const double *from = compose_values(m, c);
    double *to = arena_get(&m->g->arena, (size_t)n + 1, sizeof *to);
    for (int64_t i = 0; from && to && i < n; i++)
        to[i] = beta * from[count == 1 ? 0 : i];
    return from && to ? compose_reals(m, 1, &n, to) : VALUE_NONE;
}

static void map_gemm(struct mapping *m)
{
    const struct value *b = map_input(m, 1), *c = map_input(m, 2);
    const double beta = node_real(m->node, "beta", 1);
    if (!has_operands(m))
        return;
    const bool turned = node_integer(m->node, "transB", 0) != 0;
    const int64_t n = b->rank == 2 ? b->dims[turned ? 0 : 1] : 0;
    const int bias = c ? bias_of(m, c, n, beta) : VALUE_NONE;
    const bool addend = c && bias < 0;
    if (is_weight(b)) {
        compose(m, "MatrixMultiply",
                (const int[]){compose_input(m, 0), VALUE_NONE, compose_input(m, 2)},
                addend ? 3 : 1);
        section_weight(m->s, "b", compose_input(m, 1));
    } else
        compose(m, "MatrixMultiply", m->node->in, addend ? 3 : 2);
    section_weight(m->s, "bias", bias);
    map_names(m, addend ? "alpha=alpha,beta=beta,transA=transpose_a?,transB=transpose_b?"
                        : "alpha=alpha,transA=transpose_a?,transB=transpose_b?");
    compose_end(m, 0, -1);
}

/* ---- integers -------------------------------------------------------------------------
 */

/* Zero points as integers; those of rows as a column. */
static int zero_of_rows(struct mapping *m, int z)
{
    const struct value *zero = map_input(m, z);
    const int64_t dims[2] = {zero->rank == 1 ? zero->dims[0] : 1, 1};
    const int wide = compose_cast(m, compose_input(m, z), STRATA_INT32);
    return dims[0] != 1 ? compose_reshape(m, wide, 2, dims) : wide;
}

/* An operand less its zero point: one for all, or one a row of A or a column of B. */
static int less_zero(struct mapping *m, int i, int z, bool rows)
{
    const struct value *zero = map_input(m, z);
    int wide = compose_cast(m, compose_input(m, i), STRATA_INT32);
    if (!zero)
        return wide;
    const int less =
        rows ? zero_of_rows(m, z) : compose_cast(m, compose_input(m, z), STRATA_INT32);
    wide = compose_op(m, "ElementWise", "sub", wide, less);
    const struct value *x = map_input(m, i);
    struct value *v = graph_value(m->g, wide);
    if (v) { /* what multiply asks for */
        v->rank = x->rank;
        memcpy(v->dims, x->dims, sizeof v->dims);
    }
    return wide;
}

/* Whether b is a constant matrix of bytes with constant zero points, none, one or one a
 * column. */
static bool is_bytes(const struct mapping *m)
{
    const struct value *b = map_input(m, 1), *z = map_input(m, 3);
    if (!b->constant || b->rank != 2 || value_count(b) == 0 ||
        (b->dtype != STRATA_INT8 && b->dtype != STRATA_UINT8))
        return false;
    return !z || (z->constant &&
                  (value_count(z) == 1 || (z->rank == 1 && z->dims[0] == b->dims[1])));
}

/* What b counts from as int8: uint8 begins 128 lower. */
static int64_t zero_of_column(const struct mapping *m, int64_t k)
{
    const struct value *b = map_input(m, 1), *z = map_input(m, 3);
    const int64_t zero = z ? (int64_t)value_real(z, value_count(z) == 1 ? 0 : k) : 0;
    return zero - (b->dtype == STRATA_UINT8 ? 128 : 0);
}

/* b as int8. */
static int signed_bytes(struct mapping *m)
{
    const struct value *b = map_input(m, 1);
    const size_t n = (size_t)value_count(b);
    const uint8_t *from = b->data;
    if (b->dtype == STRATA_INT8)
        return compose_input(m, 1);
    uint8_t *to = arena_get(&m->g->arena, n, 1);
    for (size_t i = 0; to && i < n; i++)
        to[i] = from[i] ^ 0x80;
    return to ? graph_add_constant(m->g, b->name, STRATA_INT8, 2, b->dims, to)
              : VALUE_NONE;
}

/* Numbers of columns as a constant; they wrap as sums do. */
static int whole_numbers(struct mapping *m, const int64_t *v, int64_t n)
{
    int32_t *to = arena_get(&m->g->arena, (size_t)n, sizeof *to);
    for (int64_t k = 0; to && k < n; k++)
        to[k] = (int32_t)(uint32_t)v[k];
    return to ? graph_add_constant(m->g, "", STRATA_INT32, 1, &n, to) : VALUE_NONE;
}

/* y less the zero point of a times what the columns of b sum up to. */
static int less_columns(struct mapping *m, int y)
{
    const struct value *b = map_input(m, 1);
    const int64_t n = b->dims[1];
    const uint8_t *row = b->data, flip = b->dtype == STRATA_UINT8 ? 0x80 : 0;
    if (!map_input(m, 2))
        return y;
    int64_t *sums = arena_get(&m->g->arena, (size_t)n, sizeof *sums);
    for (int64_t k = 0; sums && k < n; k++)
        sums[k] = -b->dims[0] * zero_of_column(m, k);
    for (int64_t i = 0; sums && i < b->dims[0]; i++, row += n)
        for (int64_t k = 0; k < n; k++)
            sums[k] += (int8_t)(row[k] ^ flip);
    const int times = compose_op(m, "ElementWise", "product", zero_of_rows(m, 2),
                                 sums ? whole_numbers(m, sums, n) : VALUE_NONE);
    return compose_op(m, "ElementWise", "sub", y, times);
}

/* Those of all columns of b; NULL: all are 0. */
static int64_t *zeros_of_columns(struct mapping *m)
{
    const int64_t n = map_input(m, 1)->dims[1];
    int64_t *zeros = arena_get(&m->g->arena, (size_t)n, sizeof *zeros);
    bool any = false;
    for (int64_t k = 0; zeros && k < n; k++)
        any |= (zeros[k] = zero_of_column(m, k)) != 0;
    return any ? zeros : NULL;
}

/* y less the zero points of b, each times what a row of a sums up to. */
static int less_rows(struct mapping *m, int y)
{
    const struct value *a = map_input(m, 0), *b = map_input(m, 1);
    const int64_t n = b->dims[1], last = a->rank - 1;
    const int64_t *zeros = zeros_of_columns(m);
    if (!zeros)
        return y;
    const int wide = compose_cast(m, compose_input(m, 0), STRATA_INT32);
    const int rows = compose_reduce(m, "sum", wide, &last, 1, true);
    const int times =
        compose_op(m, "ElementWise", "product", rows, whole_numbers(m, zeros, n));
    return compose_op(m, "ElementWise", "sub", y, times);
}

/* Sums of (a - zero)(b - zero), of bytes as they are: zero points come behind. */
static void multiply_bytes(struct mapping *m)
{
    less_rows(m, less_columns(m, product(m, compose_input(m, 0), signed_bytes(m))));
}

static void map_mat_mul_integer(struct mapping *m)
{
    const struct value *a = map_input(m, 0), *b = map_input(m, 1);
    const bool zeros = map_input(m, 2) || map_input(m, 3);
    if (!has_operands(m))
        return;
    if (a->rank < 2 || b->rank < 2) {
        map_refuse(m, "an operand of rank %d is not a matrix",
                   a->rank < 2 ? a->rank : b->rank);
        return;
    }
    if (is_bytes(m))
        multiply_bytes(m);
    else if (zeros)
        product(m, less_zero(m, 0, 2, true), less_zero(m, 1, 3, false));
    else
        product(m, compose_input(m, 0), compose_input(m, 1));
    compose_end(m, 0, -1);
}

/* Numbers of columns as INT8. */
static int few_numbers(struct mapping *m, const int64_t *v, int64_t n)
{
    int8_t *to = arena_get(&m->g->arena, (size_t)n, 1);
    for (int64_t k = 0; to && k < n; k++)
        to[k] = (int8_t)v[k];
    return to ? graph_add_constant(m->g, "", STRATA_INT8, 1, &n, to) : VALUE_NONE;
}

void matrix_of_dynamic(struct mapping *m)
{
    const int64_t *zeros = zeros_of_columns(m);
    map_section(m, "DynamicProduct");
    map_in(m, 0);
    map_in(m, 4);
    map_in(m, 2);
    map_out(m, 0);
    section_weight(m->s, "weight", signed_bytes(m));
    section_weight(m->s, "weight_scale", compose_input(m, 5));
    section_weight(m->s, "bias", compose_input(m, 6));
    if (zeros)
        section_weight(m->s, "weight_zero",
                       few_numbers(m, zeros, map_input(m, 1)->dims[1]));
}

/* Inputs `whole` and `scale` are what a constant is the product of, if no zero point was
 * taken off. */
static void tell_product(struct mapping *m, int product, int whole, int scale,
                         const struct value *zero)
{
    struct value *v = graph_value(m->g, product);
    bool none = true;
    for (int64_t i = 0; zero && i < value_count(zero); i++)
        none &= value_real(zero, i) == 0;
    if (!v || !none)
        return;
    v->whole = m->node->in[whole];
    v->factors = m->node->in[scale];
}

/* Whether b is a constant matrix of INT8 with constant scales. */
static bool is_matrix(const struct mapping *m)
{
    const struct value *b = map_input(m, 3), *s = map_input(m, 4), *z = map_input(m, 5);
    return b->constant && b->rank == 2 && b->dtype == STRATA_INT8 && s && s->constant &&
           s->dtype == STRATA_FP32 && s->rank <= 1 && (!z || z->constant);
}

/* The matrix as FP32: (b - zero)*scale, each of one number or one a column. */
static int matrix_of_columns(struct mapping *m)
{
    const struct value *b = map_input(m, 3), *s = map_input(m, 4), *z = map_input(m, 5);
    double *v = compose_values(m, b);
    const int64_t n = value_count(b);
    for (int64_t i = 0; v && i < n; i++) {
        const int64_t k = i % b->dims[1];
        const double zero = z ? value_real(z, value_count(z) == 1 ? 0 : k) : 0;
        v[i] = (v[i] - zero) * value_real(s, value_count(s) == 1 ? 0 : k);
    }
    const int product = v ? compose_reals(m, 2, b->dims, v) : VALUE_NONE;
    tell_product(m, product, 3, 4, z);
    return product;
}

/* a, its scale and zero, b, its scale and zero, those of the result. */
static void map_q_linear_mat_mul(struct mapping *m)
{
    const struct value *a = map_input(m, 0), *b = map_input(m, 3);
    if (!a || !b || a->rank < 2 || b->rank < 2) {
        map_refuse(m, "an operand is not a matrix");
        return;
    }
    const int64_t row = a->rank - 2, column = b->rank - 1;
    const int left = quantize_undo(m, compose_input(m, 0), 1, 2, row);
    const int right = is_matrix(m) ? matrix_of_columns(m)
                                   : quantize_undo(m, compose_input(m, 3), 4, 5, column);
    quantize_do(m, product(m, left, right), 6, 7, row);
    compose_end(m, 0, -1);
}

/* ---- convolution of integers ----------------------------------------------------------
 */

/* Filters as FP32: (w - zero)·scale, each of one number or one a filter. */
static int filters(struct mapping *m)
{
    const struct value *w = map_constant(m, 3, "w");
    const struct value *s = map_constant(m, 4, "w_scale");
    const struct value *z = map_constant(m, 5, "w_zero_point");
    double *v = compose_values(m, w);
    if (!v || !s || m->refused || !w->rank || !w->dims[0])
        return VALUE_NONE;
    const int64_t n = value_count(w), each = n / w->dims[0];
    for (int64_t i = 0; each && i < n; i++) {
        const int64_t k = i / each;
        const double zero = z ? value_real(z, value_count(z) == 1 ? 0 : k) : 0;
        v[i] = (v[i] - zero) * value_real(s, value_count(s) == 1 ? 0 : k);
    }
    const int product = compose_reals(m, w->rank, w->dims, v);
    tell_product(m, product, 3, 4, z);
    return product;
}

/* The bias counts in steps of both scales' product. */
static int bias_of_filters(struct mapping *m)
{
    const struct value *b = map_constant(m, 8, "B");
    const struct value *x = map_constant(m, 1, "x_scale");
    const struct value *w = map_constant(m, 4, "w_scale");
    double *v = compose_values(m, b);
    if (!v || !x || !w || m->refused)
        return VALUE_NONE;
    const int64_t n = value_count(b);
    for (int64_t i = 0; i < n; i++)
        v[i] *= value_real(x, 0) * value_real(w, value_count(w) == 1 ? 0 : i);
    return compose_reals(m, 1, &n, v);
}

static void map_q_linear_conv(struct mapping *m)
{
    const int x = quantize_undo(m, compose_input(m, 0), 1, 2, 1);
    const int y = compose_one(m, "Convolution", x);
    section_weight(m->s, "weight", filters(m));
    section_weight(m->s, "bias", bias_of_filters(m));
    compose_window(m);
    quantize_do(m, y, 6, 7, 1);
    compose_end(m, 0, -1);
}

static const struct map_rule rules[] = {
    {.op = "MatMul", .finish = map_mat_mul},
    {.op = "Gemm", .finish = map_gemm},
    {.op = "MatMulInteger", .finish = map_mat_mul_integer},
    {.op = "QLinearMatMul",
     .finish = map_q_linear_mat_mul,
     .note = "constant scales and zero points"},
    {.op = "QLinearConv",
     .finish = map_q_linear_conv,
     .note = "constant weights, scales and zero points"},
};

const struct map_table map_matrix = {"Matrices", rules, ARRAY_LENGTH(rules)};
