/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of FP32. Few rows are bound by reading B: it is walked once, whole rows at a
 * time. More rows go through register tiles, whose panel of B is packed on the stack and
 * serves a block of rows; a constant B may be packed once and for all.
 */
#include "plugins/matrix_multiply/host.h"

#include <strata/narrow.h>

#include "plugins/common/activate.h"
#include "plugins/common/dense.h"
#include "plugins/common/product/tile.h"
#include "plugins/matrix_multiply/few_bits.h"

#define FEW_ROWS 4       /* up to which B's bytes bound a product */
#define CHUNK 64         /* columns of few rows, and of dot products */
#define LONG_CHUNK 256   /* where B's rows are long */
#define LONG_ROWS 1024   /* columns from which they are */
#define DEPTH 128        /* of a panel: it stays in the L1 cache */
#define ROW_BLOCK 128    /* rows that a panel serves */
#define SMALL_BLOCK 32   /* where there are few panels */
#define MANY_TASKS 16    /* panels from which row blocks are long */
#define PARALLEL 200000. /* multiply-adds that pay for a thread team */
#define GROUP 2          /* panels that a task of a packed B has */
#define PANEL_DEPTH 256  /* of a packed panel: in L1 with AVX2, beside rows of A */

struct job {
    struct matrix_product p;
    const float *a, *b, *c, *bias, *residual;
    float *d;
    float alpha, beta;
    const strata_epilogue *epilogue;
    const struct tile_set *set;
    const struct few_bits *few_bits;    /* B, or NULL */
    const struct matrix_panels *panels; /* B, or NULL; without either it is `b` */
};

/* Rows [row, row + rows) by columns [column, column + columns) of matrix i. */
struct part {
    int64_t i, row, rows, column, columns;
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static const float *place(const struct job *j, int which, const float *from, int64_t i,
                          int64_t row, int64_t column)
{
    const struct matrix *x = &j->p.at[which];
    return from + matrix_begin(&j->p, which, i) + row * x->row + column * x->column;
}

/* ---- the tail ------------------------------------------------------------------ */

static void add_row(float *y, const float *x, int64_t step, float factor, int64_t n)
{
    if (step == 1)
        for (int64_t i = 0; i < n; i++)
            y[i] += factor * x[i];
    else
        for (int64_t i = 0; i < n; i++)
            y[i] += factor * x[i * step];
}

static void finish(const struct job *j, const struct part *t)
{
    const strata_epilogue *e = j->epilogue;
    for (int64_t m = t->row; m < t->row + t->rows; m++) {
        float *y = (float *)place(j, PRODUCT_D, j->d, t->i, m, t->column);
        for (int64_t n = 0; n < t->columns && j->alpha != 1; n++)
            y[n] *= j->alpha;
        if (j->c)
            add_row(y, place(j, PRODUCT_C, j->c, t->i, m, t->column),
                    j->p.at[PRODUCT_C].column, j->beta, t->columns);
        if (j->bias)
            add_row(y, j->bias + t->column, 1, 1, t->columns);
        if (j->residual)
            add_row(y, place(j, PRODUCT_RESIDUAL, j->residual, t->i, m, t->column), 1, 1,
                    t->columns);
        if (e->flags & STRATA_EPILOGUE_ACTIVATION)
            activate_row(e->activation, e->alpha, e->beta, y, t->columns);
    }
}

/* ---- few rows ------------------------------------------------------------------ */

static int has_long_rows(const struct job *j)
{
    return j->p.at[PRODUCT_B].column == 1 || j->p.n == 1;
}

static int has_long_columns(const struct job *j)
{
    return j->p.at[PRODUCT_B].row == 1 && (j->p.at[PRODUCT_A].column == 1 || j->p.k == 1);
}

static struct tile_operands operands(const struct job *j, const struct part *t)
{
    return (struct tile_operands){
        .k = j->p.k,
        .a_row = j->p.at[PRODUCT_A].row,
        .a_step = j->p.at[PRODUCT_A].column,
        .b_row = j->p.at[PRODUCT_B].row,
        .c_row = j->p.at[PRODUCT_D].row,
        .a = place(j, PRODUCT_A, j->a, t->i, t->row, 0),
        .b = j->b ? place(j, PRODUCT_B, j->b, t->i, 0, t->column) : NULL,
        .c = (float *)place(j, PRODUCT_D, j->d, t->i, t->row, t->column),
        .columns = t->columns,
    };
}

static void few_rows(const struct job *j, const struct part *t)
{
    struct tile_operands o = operands(j, t);
    const int dots = !has_long_rows(j);
    if (dots)
        o.b_row = j->p.at[PRODUCT_B].column;
    for (int64_t rows = t->rows, step; rows > 0; rows -= step) {
        const int index = rows >= 4 ? 2 : rows >= 2;
        step = 1 << index;
        (dots ? j->set->dot : j->set->axpy)[index](&o);
        o.a += step * o.a_row;
        o.c += step * o.c_row;
    }
}

static void rows_of_few_bits(const struct job *j, const struct part *t)
{
    const struct few_bits_product p = {
        .b = j->few_bits,
        .a = place(j, PRODUCT_A, j->a, t->i, t->row, 0),
        .a_row = j->p.at[PRODUCT_A].row,
        .a_step = j->p.at[PRODUCT_A].column,
        .c = (float *)place(j, PRODUCT_D, j->d, t->i, t->row, t->column),
        .c_row = j->p.at[PRODUCT_D].row,
        .rows = t->rows,
        .column = t->column,
        .columns = t->columns,
    };
    few_bits_multiply(&p);
}

/* ---- tiles --------------------------------------------------------------------- */

/* k rows of `width` columns, zeros beyond those there are. */
static void pack(const struct job *j, const struct part *t, int64_t k, int64_t depth,
                 int64_t width, float *panel)
{
    const struct matrix *x = &j->p.at[PRODUCT_B];
    if (t->columns < width)
        memset(panel, 0, (size_t)(depth * width) * sizeof *panel);
    const float *b = place(j, PRODUCT_B, j->b, t->i, k, t->column);
    if (x->column == 1)
        for (int64_t i = 0; i < depth; i++)
            memcpy(panel + i * width, b + i * x->row, (size_t)t->columns * sizeof *b);
    else
        for (int64_t n = 0; n < t->columns; n++)
            for (int64_t i = 0; i < depth; i++)
                panel[i * width + n] = b[n * x->column + i * x->row];
}

/* One tile, through a buffer where its columns are not whole vectors. */
static void tile(const struct job *j, struct tile_operands *o, int whole, int64_t rows,
                 int64_t columns, int64_t width)
{
    float buffer[8 * TILE_COLUMNS];
    struct tile_operands through = *o;
    const tile_fn run = j->set->tile[whole][width / j->set->lanes - 1];
    if (columns == width) {
        run(o);
        return;
    }
    through.c = buffer;
    through.c_row = width;
    through.accumulate = 0;
    run(&through);
    for (int64_t m = 0; m < rows; m++)
        for (int64_t n = 0; n < columns; n++) {
            float *c = o->c + m * o->c_row + n;
            *c = o->accumulate ? *c + buffer[m * width + n] : buffer[m * width + n];
        }
}

/* Floats [from, to) of the panel that comes next: a processor's own guesses come late. */
static void fetch(const float *next, int64_t from, int64_t to)
{
    for (int64_t i = from & ~(int64_t)15; i < to; i += 16)
        __builtin_prefetch(next + i, 0, 2);
}

/* A panel, `width` wide, by `all` rows from o's on; next: as large, or NULL. */
static void rows_by_panel(const struct job *j, struct tile_operands o, int64_t all,
                          int64_t columns, int64_t width, const float *next)
{
    const int64_t floats = o.k * width;
    for (int64_t m = 0, rows; m < all; m += rows) {
        rows = all - m >= j->set->rows ? j->set->rows : 1;
        tile(j, &o, rows > 1, rows, columns, width);
        if (next)
            fetch(next, floats * m / all, floats * (m + rows) / all);
        o.a += rows * o.a_row;
        o.c += rows * o.c_row;
    }
}

static void many_rows(const struct job *j, const struct part *t)
{
    float panel[DEPTH * TILE_COLUMNS] __attribute__((aligned(64)));
    const int64_t lanes = j->set->lanes, width = (t->columns + lanes - 1) / lanes * lanes;
    struct tile_operands o = operands(j, t);
    const float *a = o.a;
    o.b = panel;
    o.b_row = width;
    for (int64_t k = 0; k < j->p.k; k += DEPTH) {
        o.k = least(DEPTH, j->p.k - k);
        o.a = a + k * o.a_step;
        o.accumulate = k > 0;
        pack(j, t, k, o.k, width, panel);
        rows_by_panel(j, o, t->rows, t->columns, width, NULL);
    }
}

/* Rows of A as deep as a panel stay in the L2 cache from one panel to the next. */
static void by_packed_panels(const struct job *j, const struct part *t)
{
    const int64_t width = j->panels->width, first = t->column / width;
    const struct tile_operands start = operands(j, t);
    const float *begin = j->panels->b + first * j->p.k * width;
    for (int64_t k = 0; k < j->p.k; k += PANEL_DEPTH)
        for (int64_t n = 0; n < t->columns; n += width) {
            struct tile_operands o = start;
            o.k = least(PANEL_DEPTH, j->p.k - k);
            o.a += k * o.a_step;
            o.b = begin + (n * j->p.k + k * width);
            o.b_row = width;
            o.c += n;
            o.accumulate = k > 0;
            rows_by_panel(j, o, t->rows, least(width, t->columns - n), width,
                          n + width < t->columns ? o.b + j->p.k * width
                                                 : begin + (k + o.k) * width);
        }
}

/* ---- all of it ----------------------------------------------------------------- */

static void clear(const struct job *j, const struct part *t)
{
    for (int64_t m = t->row; m < t->row + t->rows; m++)
        memset((float *)place(j, PRODUCT_D, j->d, t->i, m, t->column), 0,
               (size_t)t->columns * sizeof(float));
}

/* Rows and columns of a task. */
struct shape {
    int64_t height, width;
    void (*run)(const struct job *, const struct part *);
};

/* Whole tiles of rows in blocks as high as each other, at most `most`. */
static int64_t even_height(const struct job *j, int64_t most)
{
    const int64_t rows = j->set->rows, blocks = (j->p.m + most - 1) / most;
    return blocks ? (j->p.m + blocks * rows - 1) / (blocks * rows) * rows : most;
}

static struct shape shape_of(const struct job *j)
{
    const struct matrix_product *p = &j->p;
    const int few =
        j->few_bits || (p->m <= FEW_ROWS && (has_long_rows(j) || has_long_columns(j)));
    const int long_rows = !j->few_bits && p->n >= LONG_ROWS && has_long_rows(j);
    const int64_t chunk = long_rows ? LONG_CHUNK : CHUNK;
    const int64_t width = j->panels ? GROUP * j->panels->width
                          : few     ? chunk
                                    : TILE_VECTORS * (int64_t)j->set->lanes;
    const int64_t panels = (p->n + width - 1) / width;
    const int few_tasks = !j->panels && panels * p->batches <= MANY_TASKS;
    const int64_t most = few_tasks ? SMALL_BLOCK : ROW_BLOCK;
    return (struct shape){.height = j->panels ? even_height(j, most) : most,
                          .width = width,
                          .run = p->k == 0     ? clear
                                 : j->few_bits ? rows_of_few_bits
                                 : j->panels   ? by_packed_panels
                                 : few         ? few_rows
                                               : many_rows};
}

static void compute(const struct job *j)
{
    const struct matrix_product *p = &j->p;
    const struct shape s = shape_of(j);
    const int64_t panels = (p->n + s.width - 1) / s.width;
    const int64_t blocks = (p->m + s.height - 1) / s.height;
    const double work = (double)p->m * (double)p->n * (double)p->k * (double)p->batches;
#pragma omp parallel for schedule(static) if (work > PARALLEL)
    for (int64_t task = 0; task < blocks * panels * p->batches; task++) {
        struct part t = {.row = task / panels % blocks * s.height,
                         .column = task % panels * s.width,
                         .i = task / panels / blocks};
        t.rows = least(s.height, p->m - t.row);
        t.columns = least(s.width, p->n - t.column);
        s.run(j, &t);
        finish(j, &t);
    }
}

/* How a constant B is packed; both NULL: it is not. */
struct packed {
    const struct few_bits *few_bits;
    const struct matrix_panels *panels;
};

/* Tensors may be copies; their dtype is FP32. */
static void multiply(const strata_run *r, const strata_tensor *in,
                     const strata_tensor *weight, struct packed packed,
                     const strata_tensor *residual, const strata_tensor *out)
{
    const strata_matrix_multiply *p = r->params;
    const struct job j = {
        .p = matrix_product_of(p, r->n_in, in, weight, out, residual),
        .a = in[MATRIX_A].data,
        .b = matrix_second(r->n_in, in, weight)->data,
        .c = matrix_has_c(p, r->n_in, in) ? in[MATRIX_C].data : NULL,
        .bias = r->weight[MATRIX_BIAS].rank > 0 ? r->weight[MATRIX_BIAS].data : NULL,
        .residual = residual ? residual->data : NULL,
        .d = out->data,
        .alpha = (float)p->alpha,
        .beta = (float)p->beta,
        .epilogue = r->epilogue,
        .set = tile_choose(),
        .few_bits = packed.few_bits,
        .panels = packed.panels,
    };
    compute(&j);
}

static const strata_tensor *residual_of(const strata_epilogue *e)
{
    return e && e->flags & STRATA_EPILOGUE_RESIDUAL ? e->residual : NULL;
}

int matrix_float_run(const strata_run *r)
{
    multiply(r, r->in, r->weight, (struct packed){0}, residual_of(r->epilogue),
             &r->out[0]);
    return STRATA_OK;
}

int matrix_panels_run(const strata_run *r)
{
    multiply(r, r->in, r->weight, (struct packed){.panels = r->state},
             residual_of(r->epilogue), &r->out[0]);
    return STRATA_OK;
}

int matrix_few_bits_run(const strata_run *r)
{
    multiply(r, r->in, r->weight, (struct packed){.few_bits = r->state},
             residual_of(r->epilogue), &r->out[0]);
    return STRATA_OK;
}

/* ---- a constant B, packed -------------------------------------------------------- */

int matrix_panels_setup(const strata_node *n, void *state)
{
    const strata_tensor *w = &n->weight[MATRIX_WEIGHT];
    struct job j = {.b = w->data, .set = tile_choose()};
    struct matrix_panels *panels = state;
    void *memory;
    j.p = matrix_product_of(n->params, n->n_in, n->in, n->weight, &n->out[0], NULL);
    j.p.dims = 0; /* B has none, and those of an empty batch divide nothing */
    const int64_t width = TILE_VECTORS * (int64_t)j.set->lanes;
    const int64_t count = (j.p.n + width - 1) / width;
    size_t floats;
    if (__builtin_mul_overflow((size_t)(count * width), (size_t)j.p.k, &floats))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "the weight does not fit in memory");
    const int status = matrix_pack_memory(n, (int64_t)floats, sizeof(float), &memory);
    if (status != STRATA_OK)
        return status;
    *panels = (struct matrix_panels){.b = memory, .width = width};
#pragma omp parallel for if (count * j.p.k > PARALLEL / (double)width)
    for (int64_t i = 0; i < count; i++) {
        const struct part t = {.column = i * width,
                               .columns = least(width, j.p.n - i * width)};
        pack(&j, &t, 0, j.p.k, width, (float *)memory + i * width * j.p.k);
    }
    return STRATA_OK;
}

/* ---- through FP32 -------------------------------------------------------------- */

/* Bytes of an FP32 copy; 0: overflow. */
static size_t copy_bytes(int64_t count)
{
    size_t bytes;
    if (count < 0 || __builtin_mul_overflow((size_t)count, sizeof(float), &bytes) ||
        __builtin_add_overflow(bytes, (size_t)64, &bytes))
        return 0;
    return bytes & ~(size_t)63;
}

/* A constant comes as FP32, but for one of FP8. */
static int copies_weight(int n_in, const strata_tensor *in, const strata_tensor *weight)
{
    return matrix_is_constant(n_in, in) && weight[MATRIX_WEIGHT].dtype != STRATA_FP32;
}

/* Copies of the inputs, of the output, of the residual and of a weight. */
size_t matrix_half_workspace(const strata_node *n)
{
    const strata_tensor *all[6] = {&n->out[0]};
    size_t total = 0;
    int count = 1;
    for (int i = 0; i < n->n_in; i++)
        all[count++] = &n->in[i];
    if (n->epilogue && n->epilogue->flags & STRATA_EPILOGUE_RESIDUAL)
        all[count++] = &n->out[0];
    if (copies_weight(n->n_in, n->in, n->weight))
        all[count++] = &n->weight[MATRIX_WEIGHT];
    for (int i = 0; i < count; i++) {
        const size_t bytes = all[i]->rank > 0 ? copy_bytes(all[i]->count) : 64;
        if (bytes == 0 || __builtin_add_overflow(total, bytes, &total))
            return SIZE_MAX;
    }
    return total;
}

/* A dense FP32 tensor of t's shape at *memory, which moves behind it. */
static strata_tensor copy_of(const strata_tensor *t, char **memory)
{
    strata_tensor copy = *t;
    copy.dtype = STRATA_FP32;
    copy.data = *memory;
    for (int64_t d = t->rank - 1, step = 1; d >= 0; step *= t->dims[d], d--)
        copy.strides[d] = step;
    *memory += t->rank > 0 ? copy_bytes(t->count) : 64;
    return copy;
}

static void load_row(float *row, const strata_tensor *t, int64_t at, int64_t n)
{
    const int64_t step = t->strides[t->rank - 1];
    const uint8_t *bytes = t->data;
    if (t->dtype == STRATA_E4M3)
        for (int64_t i = 0; i < n; i++)
            row[i] = strata_float_of_e4m3(bytes[at + i * step]);
    else if (t->dtype == STRATA_E5M2)
        for (int64_t i = 0; i < n; i++)
            row[i] = strata_float_of_e5m2(bytes[at + i * step]);
    else
        element_load_row(row, t->data, t->dtype, at, step, n);
}

/* Between a tensor and its copy, a row of the last dim at a time. */
static void convert(const strata_tensor *t, const strata_tensor *copy, int back)
{
    const int64_t n = t->rank > 0 ? t->dims[t->rank - 1] : 0;
    const int64_t rows = n > 0 ? t->count / n : 0;
#pragma omp parallel for if (t->count > 65536)
    for (int64_t i = 0; i < rows; i++) {
        int64_t index[STRATA_MAX_RANK];
        float *row = (float *)copy->data + i * n;
        dense_index(t, i * n, index);
        const int64_t at = strata_offset(t, index);
        if (back)
            element_store_row(t->data, t->dtype, at, t->strides[t->rank - 1], row, n);
        else
            load_row(row, t, at, n);
    }
}

/* The same as copy_of, filled. */
static strata_tensor loaded(const strata_tensor *t, char **memory)
{
    const strata_tensor copy = copy_of(t, memory);
    convert(t, &copy, 0);
    return copy;
}

int matrix_half_run(const strata_run *r)
{
    const strata_tensor *residual = residual_of(r->epilogue);
    char *memory = r->workspace;
    strata_tensor in[3], weight = r->weight[MATRIX_WEIGHT], added;
    const strata_tensor out = copy_of(&r->out[0], &memory);
    for (int i = 0; i < r->n_in; i++)
        in[i] = loaded(&r->in[i], &memory);
    if (residual)
        added = loaded(residual, &memory);
    if (copies_weight(r->n_in, r->in, r->weight))
        weight = loaded(&r->weight[MATRIX_WEIGHT], &memory);
    multiply(r, in, &weight, (struct packed){0}, residual ? &added : NULL, &out);
    convert(&r->out[0], &out, 1);
    return STRATA_OK;
}
