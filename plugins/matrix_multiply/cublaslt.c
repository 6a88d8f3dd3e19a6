/* SPDX-License-Identifier: Apache-2.0
 *
 * MatrixMultiply by cuBLASLt, which counts in columns: its A is B here, its B is A here,
 * and its D is Y turned. A constant B lies as rows of K, the way every dtype takes, or as
 * rows of N, which is faster for some sizes.
 */
#include "plugins/common/cublaslt/module.h"

#include "plugins/matrix_multiply/pack.h"
#include "plugins/matrix_multiply/product.h"

struct state {
    struct cublaslt_plan plan;
    const void *weight; /* packed, or NULL: input 1 */
    int32_t adds_c;     /* the addend is input 2, not the residual */
};

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int refuse(const strata_node *n, const char *why)
{
    return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "cuBLASLt: %s", why);
}

/* The distance between lines of a matrix one of whose distances is 1; *turned: which. */
static int lead(const struct matrix *x, int64_t rows, int64_t columns, int32_t *turned,
                int64_t *ld)
{
    *turned = !(x->column == 1 || columns == 1);
    if (*turned ? x->row != 1 && rows != 1 : 0)
        return 0;
    *ld = *turned ? most(x->column, rows) : most(x->row, columns);
    return 1;
}

static int describe_second(const strata_node *n, const struct matrix_product *m,
                           struct cublaslt_problem *p)
{
    const struct matrix *b = &m->at[PRODUCT_B];
    int32_t rows_lie = 0;
    if (matrix_is_constant(n->n_in, n->in)) {
        p->a_transposed = 1;
        p->lda = m->k;
        return STRATA_OK;
    }
    if (b->row == 1 || m->k == 1) {
        p->a_transposed = 1;
        p->lda = most(b->column, m->k);
    } else if (lead(b, m->k, m->n, &rows_lie, &p->lda) && !rows_lie) {
        p->a_transposed = 0;
    } else {
        return refuse(n, "neither rows nor columns of B are of neighbours");
    }
    return STRATA_OK;
}

static int describe_addend(const strata_node *n, const struct matrix_product *m,
                           struct cublaslt_problem *p)
{
    const strata_matrix_multiply *params = n->params;
    const struct matrix *c = &m->at[PRODUCT_C];
    p->c_stride = p->d_stride;
    if (!matrix_has_c(params, n->n_in, n->in))
        return STRATA_OK;
    if (p->addend)
        return refuse(n, "it adds C or a residual, not both");
    if ((c->column != 1 && m->n > 1) || (c->row < m->n && m->m > 1))
        return refuse(n, "C is not a matrix of the output's size");
    p->addend = 1;
    p->beta = params->beta;
    p->ldc = most(c->row, m->n);
    p->c_stride = m->dims ? c->batch[0] : 0;
    return STRATA_OK;
}

/* The library's rules for integers and FP8. */
static int check_dtypes(const strata_node *n, const struct cublaslt_problem *p)
{
    const int fp8 = p->dtype == STRATA_E4M3 || p->dtype == STRATA_E5M2;
    if (p->dtype == STRATA_UINT8 || p->b_dtype == STRATA_UINT8)
        return refuse(n, "it takes no u8");
    if (p->dtype == STRATA_INT8 && (p->bias || p->k % 4 || p->m % 4 || p->n % 4))
        return refuse(n, "int8 goes without a bias and in sizes that are multiples of 4");
    if (fp8 && (p->k % 16 || p->m % 16 || p->n % 16))
        return refuse(n, "fp8 goes in sizes that are multiples of 16");
    if (fp8 && p->bias && p->result == STRATA_FP32)
        return refuse(n, "its bias of an fp8 product with FP32 results is rounded");
    if ((fp8 || p->dtype == STRATA_INT8) && (!p->a_transposed || p->b_transposed))
        return refuse(n, "8-bit operands lie as rows of K only");
    return STRATA_OK;
}

static int describe(const strata_node *n, struct cublaslt_problem *p)
{
    const strata_matrix_multiply *params = n->params;
    const struct matrix_product m =
        matrix_product_of(params, n->n_in, n->in, n->weight, &n->out[0], NULL);
    const int64_t largest = most(most(m.m, m.n), most(m.k, m.batches));
    int status = cublaslt_start(n, p);
    if (status != STRATA_OK)
        return status;
    if (m.dims > 1 || m.k == 0 || params->alpha == 0 || largest > INT32_MAX)
        return refuse(n, "batches of several distances, empty sums and sides of over "
                         "2^31 - 1 are for others");
    p->m = m.n;
    p->n = m.m;
    p->k = m.k;
    p->batch = m.batches;
    p->alpha = params->alpha;
    p->ldd = most(m.at[PRODUCT_D].row, m.n);
    p->dtype = matrix_second(n->n_in, n->in, n->weight)->dtype;
    if (p->dtype == STRATA_FP32)
        p->dtype = n->in[MATRIX_A].dtype;
    if (m.dims > 0) {
        p->a_stride = m.at[PRODUCT_B].batch[0];
        p->b_stride = m.at[PRODUCT_A].batch[0];
        p->d_stride = m.at[PRODUCT_D].batch[0];
    }
    if (!lead(&m.at[PRODUCT_A], m.m, m.k, &p->b_transposed, &p->ldb))
        return refuse(n, "neither rows nor columns of A are of neighbours");
    if ((status = describe_second(n, &m, p)) || (status = describe_addend(n, &m, p)))
        return status;
    return check_dtypes(n, p);
}

/* A constant B as rows of N. */
static int rows_of_n_describe(const strata_node *n, struct cublaslt_problem *p)
{
    int status = describe(n, p);
    if (status != STRATA_OK)
        return status;
    if (!matrix_is_constant(n->n_in, n->in))
        return refuse(n, "B lies as its input does");
    if (p->dtype != STRATA_FP32 && p->dtype != STRATA_FP16 && p->dtype != STRATA_BF16)
        return refuse(n, "8-bit operands lie as rows of K only");
    p->a_transposed = 0;
    p->lda = p->m;
    return STRATA_OK;
}

static int setup_way(const strata_node *n, void *state, int rank,
                     cublaslt_describe *describe_way)
{
    struct state *s = state;
    struct cublaslt_problem p;
    void *weight = NULL, *bias = NULL;
    int status = describe_way(n, &p);
    if (status == STRATA_OK && matrix_is_constant(n->n_in, n->in))
        status = matrix_weight_pack(n, !p.a_transposed, &weight);
    if (status == STRATA_OK && p.bias)
        status = matrix_bias_pack(n, &bias);
    s->weight = weight;
    s->adds_c = matrix_has_c(n->params, n->n_in, n->in);
    return status == STRATA_OK ? cublaslt_plan(n, &p, rank, bias, &s->plan) : status;
}

static int setup_rank(const strata_node *n, void *state, int rank)
{
    return setup_way(n, state, rank, describe);
}

static int rows_of_n_setup_rank(const strata_node *n, void *state, int rank)
{
    return setup_way(n, state, rank, rows_of_n_describe);
}

static int run(const strata_run *r)
{
    const struct state *s = r->state;
    const void *addend = s->adds_c         ? r->in[MATRIX_C].data
                         : s->plan.addend ? r->epilogue->residual->data
                                          : NULL;
    return cublaslt_run(r, &s->plan, s->weight ? s->weight : r->in[MATRIX_B].data,
                        r->in[MATRIX_A].data, addend, r->out[0].data);
}

CUBLASLT_RANK(0)
CUBLASLT_RANK(1)
CUBLASLT_RANK(2)
CUBLASLT_RANK(3)
CUBLASLT_RANK(4)
CUBLASLT_RANK(5)
CUBLASLT_RANK(6)
CUBLASLT_RANK(7)
CUBLASLT_WAY_RANK(rows_of_n_, 0)
CUBLASLT_WAY_RANK(rows_of_n_, 1)
CUBLASLT_WAY_RANK(rows_of_n_, 2)
CUBLASLT_WAY_RANK(rows_of_n_, 3)

#define FP8 (STRATA_E4M3_NCHW | STRATA_E5M2_NCHW)

#define WIDE_ROW                                                                         \
    {                                                                                    \
        {STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW, STRATA_SAME,              \
         STRATA_SAME},                                                                   \
        {                                                                                \
            STRATA_SAME                                                                  \
        }                                                                                \
    }

static const strata_row wide_rows[] = {WIDE_ROW};
static const strata_row rows[] = {
    WIDE_ROW,
    {{FP8, FP8, STRATA_F32_NCHW}, {STRATA_F32_NCHW}},
    {{FP8, FP8, STRATA_F16_NCHW}, {STRATA_F16_NCHW}},
    {{FP8, FP8, STRATA_BF16_NCHW}, {STRATA_BF16_NCHW}},
};
static const strata_row byte_rows[] = {
    {{STRATA_I8_NCHW, STRATA_I8_NCHW, STRATA_I32_NCHW}, {STRATA_I32_NCHW}}};

static const strata_impl impls[] = {
    CUBLASLT_IMPL(0, rows, struct state, run),
    CUBLASLT_IMPL(1, rows, struct state, run),
    CUBLASLT_IMPL(2, rows, struct state, run),
    CUBLASLT_IMPL(3, rows, struct state, run),
    CUBLASLT_IMPL(4, rows, struct state, run),
    CUBLASLT_IMPL(5, rows, struct state, run),
    CUBLASLT_IMPL(6, rows, struct state, run),
    CUBLASLT_IMPL(7, rows, struct state, run),
    {.id = 9, .device = STRATA_CUDA, .flags = STRATA_WEIGHT_PACKED,
     .name = "cublaslt_int8", .rows = STRATA_ARRAY(byte_rows), .efficiency = 0.6,
     .state_size = sizeof(struct state), .accept = accept_0, .workspace = workspace_0,
     .setup = setup_0, .run = run},
    CUBLASLT_WAY_IMPL(rows_of_n_, 10, 0, wide_rows, struct state, run),
    CUBLASLT_WAY_IMPL(rows_of_n_, 10, 1, wide_rows, struct state, run),
    CUBLASLT_WAY_IMPL(rows_of_n_, 10, 2, wide_rows, struct state, run),
    CUBLASLT_WAY_IMPL(rows_of_n_, 10, 3, wide_rows, struct state, run),
};

const strata_extends cublaslt_matrix_multiply = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::MatrixMultiply",
    .params_size = sizeof(strata_matrix_multiply),
    .impls = STRATA_ARRAY(impls),
};
