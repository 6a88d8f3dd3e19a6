/* SPDX-License-Identifier: Apache-2.0
 *
 * DynamicProduct: rows of UINT8 with a scale and a zero that are inputs, as
 * DynamicQuantize gives them, times a constant matrix of INT8, to floats. The weight is
 * packed in setup, in panels of columns; zeros come off the sums behind them.
 */
#include "plugins/dynamic_product/product.h"

#include <stdalign.h>
#include <string.h>

#include "plugins/common/activate.h"
#include "plugins/common/dense.h"
#include "plugins/common/quantized/quantized.h"
#include "plugins/common/walk.h"

enum { ROW_CHUNK = 96 }; /* that a panel serves while it is in L1 */

struct state {
    const struct dynamic_kernel *kernel;
    int64_t depth, columns, steps; /* steps: of the kernel's group */
    const int8_t *packed;          /* [panel][step][column][group] */
    struct dynamic_columns of;     /* all columns, padded to whole panels */
};

static const strata_attr attrs[] = {
    {.name = "units",
     .type = STRATA_I64,
     .offset = offsetof(strata_dynamic_product, units),
     .min = 0,
     .max = 1e15,
     .doc = "columns of the output; 0: from the weight"},
};

static const strata_weight weights[] = {
    [DYNAMIC_WEIGHT] = {.name = "weight",
                        .flags = STRATA_REQUIRED,
                        .rank = 2,
                        .dtypes = UINT64_C(1) << STRATA_INT8,
                        .doc = "depth x columns"},
    [DYNAMIC_BIAS] = {.name = "bias", .rank = 1, .doc = "one for each column"},
    [DYNAMIC_FACTORS] = {.name = "weight_scale",
                         .flags = STRATA_REQUIRED,
                         .rank = -1,
                         .doc = "factors of the weight: one, or one for each column"},
    [DYNAMIC_WEIGHT_ZERO] = {.name = "weight_zero",
                             .rank = -1,
                             .dtypes = UINT64_C(1) << STRATA_INT8,
                             .doc = "what stands for 0 there: one, or one for each "
                                    "column"},
};

/* ---- shapes ------------------------------------------------------------------------ */

static int check_inputs(const strata_node *n)
{
    const strata_tensor *x = &n->in[DYNAMIC_X], *scale = &n->in[DYNAMIC_SCALE],
                        *zero = &n->in[DYNAMIC_ZERO];
    if (x->rank < 2 || x->dtype != STRATA_UINT8)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "x has rank %d and dtype number %d; needed are rows of u8, as "
                           "DynamicQuantize gives them",
                           (int)x->rank, (int)x->dtype);
    if (dense_count(scale) != 1 || dense_count(zero) != 1)
        return STRATA_FAIL(
            n, STRATA_EINVAL,
            "scale and zero have %lld and %lld elements; needed is one each",
            (long long)dense_count(scale), (long long)dense_count(zero));
    if (scale->dtype != STRATA_FP32 || zero->dtype != STRATA_UINT8)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "scale and zero have dtype numbers %d and %d; needed are fp32 "
                           "and u8, as DynamicQuantize gives them",
                           (int)scale->dtype, (int)zero->dtype);
    return STRATA_OK;
}

/* Columns of the output, from the attribute or the weight. */
static int find_units(const strata_node *n, int64_t *units)
{
    const strata_dynamic_product *p = n->params;
    const strata_tensor *x = &n->in[DYNAMIC_X], *w = &n->weight[DYNAMIC_WEIGHT];
    const int status = check_inputs(n);
    if (status != STRATA_OK)
        return status;
    if (w->rank == 2 && w->dims[0] != x->dims[x->rank - 1])
        return STRATA_FAIL(
            n, STRATA_EINVAL,
            "the weight has %lld rows, x %lld columns; these must be equal",
            (long long)w->dims[0], (long long)x->dims[x->rank - 1]);
    *units = p->units ? p->units : w->rank == 2 ? w->dims[1] : 0;
    if (*units < 1)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "units is not known; give units = N or a weight");
    return STRATA_OK;
}

static int dynamic_shape(const strata_node *n)
{
    const strata_tensor *x = &n->in[DYNAMIC_X];
    int64_t units;
    const int status = find_units(n, &units);
    if (status != STRATA_OK)
        return status;
    n->out[0].dtype = STRATA_FP32;
    n->out[0].rank = x->rank;
    memcpy(n->out[0].dims, x->dims, sizeof n->out[0].dims);
    n->out[0].dims[x->rank - 1] = units;
    return STRATA_OK;
}

/* Vectors have one number, or one for each column. */
static int dynamic_weight_shape(const strata_node *n, strata_tensor *expected)
{
    static const int vectors[] = {DYNAMIC_FACTORS, DYNAMIC_WEIGHT_ZERO};
    const strata_tensor *x = &n->in[DYNAMIC_X];
    int64_t units;
    const int status = find_units(n, &units);
    if (status != STRATA_OK)
        return status;
    expected[DYNAMIC_WEIGHT].dtype = STRATA_INT8;
    expected[DYNAMIC_WEIGHT].rank = 2;
    expected[DYNAMIC_WEIGHT].dims[0] = x->dims[x->rank - 1];
    expected[DYNAMIC_WEIGHT].dims[1] = units;
    expected[DYNAMIC_BIAS].rank = 1;
    expected[DYNAMIC_BIAS].dims[0] = units;
    for (int i = 0; i < 2; i++) {
        strata_tensor *to = &expected[vectors[i]];
        const strata_tensor *given = &n->weight[vectors[i]];
        to->rank = 1;
        to->dims[0] = given->rank == 1 && given->dims[0] == 1 ? 1 : units;
    }
    expected[DYNAMIC_WEIGHT_ZERO].dtype = STRATA_INT8;
    return STRATA_OK;
}

static double dynamic_flops(const strata_node *n)
{
    const strata_tensor *x = &n->in[DYNAMIC_X];
    return 2 * (double)n->out[0].count * (double)x->dims[x->rank - 1];
}

/* ---- set-up ------------------------------------------------------------------------ */

static int64_t steps_of(const struct dynamic_kernel *k, int64_t depth)
{
    const int64_t whole = k->group * k->whole;
    return (depth + whole - 1) / whole * k->whole;
}

static void pack(const struct state *s, int8_t *to, const int8_t *from)
{
    const int64_t group = s->kernel->group, width = s->kernel->columns;
    for (int64_t column = 0; column < s->columns; column += width)
        for (int64_t k = 0; k < s->steps * group; k += group)
            for (int64_t c = column; c < column + width; c++)
                for (int64_t g = k; g < k + group; g++)
                    *to++ = g < s->depth && c < s->columns ? from[g * s->columns + c] : 0;
}

/* Numbers of the columns in `room`, which has four of each. */
static struct dynamic_columns columns_of(const struct state *s, const strata_node *n,
                                         void *room, int64_t padded)
{
    const strata_tensor *zeros = &n->weight[DYNAMIC_WEIGHT_ZERO],
                        *factors = &n->weight[DYNAMIC_FACTORS],
                        *biases = &n->weight[DYNAMIC_BIAS];
    const int8_t *w = n->weight[DYNAMIC_WEIGHT].data, *from = zeros->data;
    int32_t *sum = room, *zero = sum + padded;
    float *factor = (float *)(zero + padded), *bias = factor + padded;
    memset(room, 0, (size_t)padded * 4 * sizeof *sum);
    for (int64_t c = 0; c < s->columns; c++) {
        uint32_t all = 0;
        zero[c] = zeros->rank ? from[dynamic_at(zeros, c)] : 0;
        factor[c] = ((const float *)factors->data)[dynamic_at(factors, c)];
        bias[c] = biases->rank ? ((const float *)biases->data)[c] : 0;
        for (int64_t k = 0; k < s->depth; k++)
            all += (uint32_t)(w[k * s->columns + c] - zero[c]);
        sum[c] = (int32_t)all;
    }
    return (struct dynamic_columns){sum, zero, factor, bias};
}

static int dynamic_setup(const strata_node *n, void *state)
{
    struct state *s = state;
    const strata_tensor *w = &n->weight[DYNAMIC_WEIGHT];
    const struct dynamic_kernel *k = s->kernel = dynamic_kernel();
    void *packed, *numbers;
    s->depth = w->dims[0];
    s->columns = w->dims[1];
    s->steps = steps_of(k, s->depth);
    const int64_t padded = (s->columns + k->columns - 1) / k->columns * k->columns;
    size_t bytes, sizes;
    if (__builtin_mul_overflow((size_t)padded, (size_t)(s->steps * k->group), &bytes) ||
        __builtin_mul_overflow((size_t)padded, 4 * sizeof(int32_t), &sizes))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "the weight does not fit in memory");
    int status = quantized_pack(n, bytes, &packed);
    if (status == STRATA_OK)
        status = quantized_pack(n, sizes, &numbers);
    if (status != STRATA_OK)
        return status;
    pack(s, packed, w->data);
    s->packed = packed;
    s->of = columns_of(s, n, numbers, padded);
    return STRATA_OK;
}

/* ---- run --------------------------------------------------------------------------- */

struct job {
    const strata_run *run;
    const struct state *s;
    int64_t rows, row; /* row: bytes of one of x as staged */
    char *x;
    uint32_t *sums; /* of rows of x */
    struct dynamic_end end;
};

/* Bytes of a row of x as staged: vectors begin on 64. */
static int64_t row_of(const struct dynamic_kernel *k, int64_t depth)
{
    return (steps_of(k, depth) * k->group * k->size + 63) / 64 * 64;
}

static size_t dynamic_workspace(const strata_node *n)
{
    const strata_tensor *x = &n->in[DYNAMIC_X], *y = &n->out[0];
    const struct dynamic_kernel *k = dynamic_kernel();
    const int64_t depth = x->dims[x->rank - 1], rows = y->count / y->dims[y->rank - 1];
    size_t bytes;
    if (__builtin_mul_overflow((size_t)(rows + k->beyond),
                               (size_t)row_of(k, depth) + sizeof(uint32_t), &bytes))
        return SIZE_MAX;
    return bytes;
}

static void stage(const struct job *j)
{
    const struct state *s = j->s;
    const uint8_t *x = j->run->in[DYNAMIC_X].data;
#pragma omp parallel for schedule(static) if (j->rows * s->depth >= WALK_PARALLEL)
    for (int64_t m = 0; m < j->rows; m++)
        j->sums[m] = s->kernel->stage(j->x + m * j->row, x + m * s->depth, s->depth,
                                      s->steps * s->kernel->group);
}

/* Row m, columns from `column` on. */
static void finish(const struct job *j, int64_t m, int64_t column, const int32_t *sums)
{
    const struct state *s = j->s;
    const strata_epilogue *e = j->run->epilogue;
    const int64_t left = s->columns - column;
    const int64_t n = left < s->kernel->columns ? left : s->kernel->columns;
    const int64_t at = m * s->columns + column;
    const struct dynamic_columns c = {s->of.sum + column, s->of.zero + column,
                                      s->of.factor + column, s->of.bias + column};
    struct dynamic_end end = j->end;
    float *y = (float *)j->run->out[0].data + at;
    end.sum = j->sums[m];
    s->kernel->finish(y, sums, &c, &end,
                      e->flags & STRATA_EPILOGUE_RESIDUAL
                          ? (const float *)e->residual->data + at
                          : NULL,
                      n);
    if (e->flags & STRATA_EPILOGUE_ACTIVATION)
        activate_row(e->activation, e->alpha, e->beta, y, n);
}

/* Rows [from, to) by the panel of columns from `column` on. */
static void panel(const struct job *j, int64_t from, int64_t to, int64_t column)
{
    const struct state *s = j->s;
    const struct dynamic_kernel *k = s->kernel;
    alignas(64) int32_t sums[DYNAMIC_ROWS * DYNAMIC_COLUMNS];
    for (int64_t m = from, rows; m < to; m += rows) {
        rows = to - m < k->rows ? to - m : k->rows;
        k->tiles[rows - 1](
            &(struct dynamic_tile){.x = j->x + m * j->row,
                                   .row = j->row,
                                   .w = s->packed + column * s->steps * k->group,
                                   .steps = s->steps,
                                   .sums = sums});
        for (int64_t i = 0; i < rows; i++)
            finish(j, m + i, column, sums + i * k->columns);
    }
}

/* By a team, or by one. */
static void run_panels(const struct job *j, int is_few)
{
    const struct dynamic_kernel *k = j->s->kernel;
    const int64_t panels = (j->s->columns + k->columns - 1) / k->columns;
    const int64_t chunks = (j->rows + ROW_CHUNK - 1) / ROW_CHUNK;
    if (k->open && !is_few)
        k->open();
#pragma omp for schedule(static)
    for (int64_t task = 0; task < panels * chunks; task++) {
        const int64_t from = task % chunks * ROW_CHUNK, to = from + ROW_CHUNK;
        panel(j, from, to < j->rows ? to : j->rows, task / chunks * k->columns);
    }
    if (k->close && !is_few)
        k->close();
}

static int dynamic_run(const strata_run *r)
{
    const struct state *s = r->state;
    const struct dynamic_kernel *k = s->kernel;
    struct job j = {.run = r, .s = s, .row = row_of(k, s->depth), .x = r->workspace};
    j.rows = r->out[0].count / s->columns;
    j.sums = (uint32_t *)(j.x + (j.rows + k->beyond) * j.row);
    j.end.scale = *(const float *)r->in[DYNAMIC_SCALE].data;
    j.end.zero = *(const uint8_t *)r->in[DYNAMIC_ZERO].data;
    stage(&j);
    const int is_few = j.rows < k->few;
    const double work = (double)r->out[0].count * (double)s->depth;
#pragma omp parallel if (work >= (is_few ? k->parallel_few : k->parallel))
    run_panels(&j, is_few);
    return STRATA_OK;
}

/* ---- the definition ---------------------------------------------------------------- */

static int dynamic_reference(const strata_node *n, const void *const *in,
                             const void *const *weight, void *const *out)
{
    const strata_tensor *t = n->weight;
    const int64_t depth = t[DYNAMIC_WEIGHT].dims[0], columns = t[DYNAMIC_WEIGHT].dims[1];
    const int64_t *x = in[DYNAMIC_X], *w = weight[DYNAMIC_WEIGHT],
                  *zero = weight[DYNAMIC_WEIGHT_ZERO];
    const double *factor = weight[DYNAMIC_FACTORS], *bias = weight[DYNAMIC_BIAS];
    const int64_t from = *(const int64_t *)in[DYNAMIC_ZERO];
    const float scale = (float)*(const double *)in[DYNAMIC_SCALE];
    const int one = t[DYNAMIC_FACTORS].dims[0] == 1;
    const int same = t[DYNAMIC_WEIGHT_ZERO].rank && t[DYNAMIC_WEIGHT_ZERO].dims[0] == 1;
    for (int64_t e = 0; e < dense_count(&n->out[0]); e++) {
        const int64_t c = e % columns, row = e / columns;
        uint64_t sum = 0;
        for (int64_t k = 0; k < depth; k++)
            sum += (uint64_t)((x[row * depth + k] - from) *
                              (w[k * columns + c] - (zero ? zero[same ? 0 : c] : 0)));
        const float y =
            (float)(int32_t)(uint32_t)sum * (scale * (float)factor[one ? 0 : c]);
        ((double *)out[0])[e] = (double)(bias ? y + (float)bias[c] : y);
    }
    return STRATA_OK;
}

static const void *dynamic_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     dynamic_reference};
    return dense_extension_typed(id, &reference);
}

/* ---- tables ------------------------------------------------------------------------ */

static const strata_row rows[] = {
    {{STRATA_U8_NCHW, STRATA_F32_NCHW, STRATA_U8_NCHW}, {STRATA_F32_NCHW}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_WEIGHT_PACKED,
     .epilogues = STRATA_EPILOGUE_RESIDUAL | STRATA_EPILOGUE_ACTIVATION,
     .activations = ELEMENT_ALL_ACTIVATIONS,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.8,
     .bandwidth = 0.8,
     .state_size = sizeof(struct state),
     .workspace = dynamic_workspace,
     .setup = dynamic_setup,
     .run = dynamic_run},
};

static const strata_layer dynamic_product = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "DynamicProduct",
    .doc = "Rows of UINT8, whose scale and zero are inputs, times a constant of INT8",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .params_size = sizeof(strata_dynamic_product),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = dynamic_shape,
    .weight_shape = dynamic_weight_shape,
    .flops = dynamic_flops,
    .extension = dynamic_extension,
};

static const strata_layer *const layers[] = {&dynamic_product};
STRATA_MODULE("core", "1.0.0", "DynamicProduct", layers)
