/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with a B of few bits: values of 16 columns become floats in registers, are
 * multiplied by an element of each row of A, and the sums of a group by its factors.
 */
#include "plugins/matrix_multiply/few_bits.h"

#include "plugins/common/element.h"
#include "plugins/matrix_multiply/product.h"

#define COLUMNS FEW_BITS_COLUMNS
#define WORD 8                     /* values of 4 bits in one */
#define BLOCK (COLUMNS * WORD / 2) /* bytes of words for 16 columns */
#define MOST_ROWS 8                /* that share what was turned into floats */
#define DEPTH 512                  /* of rows of A that are copied to lie together */
#define AHEAD 1536                 /* bytes: a cache's own guesses end with a page */
#define PARALLEL 200000            /* bytes that pay for a thread team */

/* ---- inner loops ----------------------------------------------------------------- */

/* A panel by a few rows, from `first` up to `end`; first is a multiple of WORD. */
struct operands {
    const struct few_bits *b;
    const uint8_t *values; /* the panel's */
    const float *factors, *a;
    int64_t a_row, first, end;
    float (*c)[COLUMNS];
};

typedef void (*panel_fn)(const struct operands *);

#define BODY __attribute__((always_inline)) static inline
#define UNROLL _Pragma("GCC unroll 8")
#define LOAD(v, p) memcpy(&(v), (p), sizeof(v))

/* Bytes at p as integers: compilers take them one by one if that is not spelled out. */
#define SIGNED_4(p)                                                                      \
    ((whole4){(int8_t)(p)[0], (int8_t)(p)[1], (int8_t)(p)[2], (int8_t)(p)[3]})
#define SIGNED_8(p) ((whole8)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p))))
#define SIGNED_16(p)                                                                     \
    ((whole16)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(p))))

/* Value j of words, as floats; 16 are a table's, which looks at no higher bits. */
#define NIBBLE_4(x, j) __builtin_convertvector((x) << (28 - 4 * (j)) >> 28, vector4)
#define NIBBLE_8(x, j) __builtin_convertvector((x) << (28 - 4 * (j)) >> 28, vector8)
#define NIBBLE_16(x, j)                                                                  \
    ((vector16)_mm512_permutexvar_ps(                                                    \
        (__m512i)((x) >> 4 * (j)),                                                       \
        (__m512){0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1}))

/* Values of k = j of the WORD at `at`, of columns v and up, as floats. */
#define READ_BODY(LANES, TARGET)                                                         \
    typedef float vector##LANES __attribute__((vector_size(LANES * 4)));                 \
    typedef int32_t whole##LANES __attribute__((vector_size(LANES * 4)));                \
                                                                                         \
    TARGET BODY void read##LANES(vector##LANES *to, const uint8_t *at, int j, int v,     \
                                 const int bits)                                         \
    {                                                                                    \
        whole##LANES x;                                                                  \
        if (bits == 4) {                                                                 \
            LOAD(x, at + v * 4);                                                         \
            *to = NIBBLE_##LANES(x, j);                                                  \
        } else {                                                                         \
            x = SIGNED_##LANES(at + j * COLUMNS + v);                                    \
            *to = __builtin_convertvector(x, vector##LANES);                             \
        }                                                                                \
    }

/* One k, wherever it is, and WORD of them from the first of a word on. */
#define STEP_BODY(LANES, TARGET)                                                         \
    TARGET BODY void one##LANES(vector##LANES(*sum)[4][COLUMNS / LANES],                 \
                                const struct operands *o, int64_t k, const int rows,     \
                                const int bits)                                          \
    {                                                                                    \
        const float *a = o->a + (k - o->first);                                          \
        const int64_t j = k % WORD;                                                      \
        UNROLL for (int v = 0; v < COLUMNS / LANES; v++)                                 \
        {                                                                                \
            vector##LANES b;                                                             \
            read##LANES(&b, o->values + (k - j) * (COLUMNS * bits / 8), (int)j,          \
                        v * LANES, bits);                                                \
            UNROLL for (int m = 0; m < rows; m++) sum[m][0][v] += a[m * o->a_row] * b;   \
        }                                                                                \
    }                                                                                    \
                                                                                         \
    TARGET BODY void word##LANES(vector##LANES(*sum)[4][COLUMNS / LANES],                \
                                 const struct operands *o, int64_t k, const int rows,    \
                                 const int chains, const int bits)                       \
    {                                                                                    \
        const float *a = o->a + (k - o->first);                                          \
        const uint8_t *at = o->values + k * (COLUMNS * bits / 8);                        \
        UNROLL for (int i = 0; i < bits / 4; i++)                                        \
            __builtin_prefetch(at + AHEAD + i * BLOCK);                                  \
        UNROLL for (int v = 0; v < COLUMNS; v += LANES)                                  \
        {                                                                                \
            UNROLL for (int j = 0; j < WORD; j++)                                        \
            {                                                                            \
                vector##LANES b;                                                         \
                read##LANES(&b, at, j, v, bits);                                         \
                UNROLL for (int m = 0; m < rows; m++)                                    \
                {                                                                        \
                    sum[m][j % chains][v / LANES] += a[m * o->a_row + j] * b;            \
                }                                                                        \
            }                                                                            \
        }                                                                                \
    }

/* Few rows leave a step's sums waiting for those before: they have several of them. */
#define PANEL_BODY(LANES, TARGET)                                                        \
    TARGET BODY void panel_body##LANES(const struct operands *o, const int rows,         \
                                       const int chains, const int bits)                 \
    {                                                                                    \
        enum { VECTORS = COLUMNS / LANES };                                              \
        vector##LANES total[MOST_ROWS][VECTORS] = {{{0}}};                               \
        const int64_t group = o->b->group;                                               \
        const float *factor = o->factors + o->first / group * COLUMNS;                   \
        int64_t end = o->first / group * group;                                          \
        for (int64_t k = o->first; k < o->end; factor += COLUMNS) {                      \
            vector##LANES sum[MOST_ROWS][4][VECTORS] = {{{{0}}}};                        \
            end = o->end - end > group ? end + group : o->end;                           \
            for (; k % WORD != 0 && k < end; k++)                                        \
                one##LANES(sum, o, k, rows, bits);                                       \
            for (; k + WORD <= end; k += WORD)                                           \
                word##LANES(sum, o, k, rows, chains, bits);                              \
            for (; k < end; k++)                                                         \
                one##LANES(sum, o, k, rows, bits);                                       \
            UNROLL for (int m = 0; m < rows; m++)                                        \
                UNROLL for (int v = 0; v < VECTORS; v++)                                 \
            {                                                                            \
                vector##LANES f, all = sum[m][0][v];                                     \
                UNROLL for (int i = 1; i < chains; i++) all += sum[m][i][v];             \
                LOAD(f, factor + v * LANES);                                             \
                total[m][v] += f * all;                                                  \
            }                                                                            \
        }                                                                                \
        UNROLL for (int m = 0; m < rows; m++)                                            \
            memcpy(o->c[m], total[m], sizeof total[m]);                                  \
    }

#define BODIES(LANES, TARGET)                                                            \
    READ_BODY(LANES, TARGET)                                                             \
    STEP_BODY(LANES, TARGET)                                                             \
    PANEL_BODY(LANES, TARGET)
#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f")))
BODIES(4, )
#ifdef ELEMENT_X86
BODIES(8, AVX2)
BODIES(16, AVX512)
#endif

#define PANEL(NAME, TARGET, LANES, ROWS, CHAINS)                                         \
    TARGET static void NAME##_8_##ROWS(const struct operands *o)                         \
    {                                                                                    \
        panel_body##LANES(o, ROWS, CHAINS, 8);                                           \
    }                                                                                    \
    TARGET static void NAME##_4_##ROWS(const struct operands *o)                         \
    {                                                                                    \
        panel_body##LANES(o, ROWS, CHAINS, 4);                                           \
    }
#define FEW(NAME, TARGET, LANES)                                                         \
    PANEL(NAME, TARGET, LANES, 1, 4)                                                     \
    PANEL(NAME, TARGET, LANES, 2, 2)                                                     \
    PANEL(NAME, TARGET, LANES, 3, 1)                                                     \
    PANEL(NAME, TARGET, LANES, 4, 1)
FEW(plain, , 4)
#ifdef ELEMENT_X86
FEW(avx2, AVX2, 8)
PANEL(avx512, AVX512, 16, 1, 4)
PANEL(avx512, AVX512, 16, 2, 4)
PANEL(avx512, AVX512, 16, 3, 2)
PANEL(avx512, AVX512, 16, 4, 2)
PANEL(avx512, AVX512, 16, 5, 1)
PANEL(avx512, AVX512, 16, 6, 1)
PANEL(avx512, AVX512, 16, 7, 1)
PANEL(avx512, AVX512, 16, 8, 1)
#endif

/* Panels of 8 and of 4 bits by 1, 2, ... rows. */
struct set {
    int64_t rows;
    panel_fn panel[2][MOST_ROWS];
};

#define UP_TO_4(NAME) NAME##_1, NAME##_2, NAME##_3, NAME##_4
#define UP_TO_8(NAME) UP_TO_4(NAME), NAME##_5, NAME##_6, NAME##_7, NAME##_8

/* For what a CPU has. */
static const struct set sets[] = {
    {4, {{UP_TO_4(plain_8)}, {UP_TO_4(plain_4)}}},
#ifdef ELEMENT_X86
    {4, {{UP_TO_4(avx2_8)}, {UP_TO_4(avx2_4)}}},
    {8, {{UP_TO_8(avx512_8)}, {UP_TO_8(avx512_4)}}},
#endif
};

static const struct set *choose(void)
{
#ifdef ELEMENT_X86
    return &sets[__builtin_cpu_supports("avx512f") ? 2 : element_has_f16c() ? 1 : 0];
#else
    return sets;
#endif
}

/* ---- products -------------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rows [m, m + rows) by k from `first` up to `end`, added to C from the second on. */
static void multiply(const struct few_bits_product *p, panel_fn run, const float *a,
                     int64_t a_row, int64_t m, int64_t rows, int64_t first, int64_t end)
{
    const struct few_bits *b = p->b;
    float sums[MOST_ROWS][COLUMNS];
    struct operands o = {
        .b = b, .a = a, .a_row = a_row, .first = first, .end = end, .c = sums};
    for (int64_t column = 0, width; column < p->columns; column += width) {
        const int64_t panel = (p->column + column) / COLUMNS;
        width = least(p->columns - column, COLUMNS);
        o.values = b->values + panel * b->panel;
        o.factors = b->factors + panel * b->groups * COLUMNS;
        run(&o);
        for (int64_t i = 0; i < rows; i++) {
            float *c = p->c + (m + i) * p->c_row + column;
            for (int64_t n = 0; n < width; n++)
                c[n] = first > 0 ? c[n] + sums[i][n] : sums[i][n];
        }
    }
}

/* The same of all k, where elements of a row of A do not lie together. */
static void multiply_copies(const struct few_bits_product *p, panel_fn run, int64_t m,
                            int64_t rows)
{
    float copy[MOST_ROWS][DEPTH];
    for (int64_t first = 0, end; first < p->b->k; first = end) {
        end = first + least(p->b->k - first, DEPTH);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = first; k < end; k++)
                copy[i][k - first] = p->a[(m + i) * p->a_row + k * p->a_step];
        multiply(p, run, copy[0], DEPTH, m, rows, first, end);
    }
}

void few_bits_multiply(const struct few_bits_product *p)
{
    const struct set *set = choose();
    const int64_t parts = (p->rows + set->rows - 1) / set->rows;
    for (int64_t m = 0, part = 0, rows; part < parts; part++, m += rows) {
        rows = (p->rows - m + parts - part - 1) / (parts - part);
        const panel_fn run = set->panel[p->b->bits == 4][rows - 1];
        if (p->a_step == 1)
            multiply(p, run, p->a + m * p->a_row, p->a_row, m, rows, 0, p->b->k);
        else
            multiply_copies(p, run, m, rows);
    }
}

/* ---- packing --------------------------------------------------------------------- */

int few_bits_accept(const strata_node *n)
{
    const strata_matrix_multiply *p = n->params;
    const int32_t dtype = n->weight[MATRIX_WEIGHT].dtype;
    return dtype == STRATA_INT8 || (dtype == STRATA_UINT8 && p->weight_bits == 4)
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "it takes a weight of int8, or of 4 bits");
}

int matrix_pack_memory(const strata_node *n, int64_t count, size_t size, void **out)
{
    const strata_pack *pack =
        n->host->extension ? n->host->extension(STRATA_PACK_V1) : NULL;
    size_t bytes;
    if (!pack)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1 " for packed weights");
    if (__builtin_mul_overflow((size_t)count, size, &bytes))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "the weight does not fit in memory");
    return pack->alloc(n, bytes ? bytes : size, out);
}

/* A panel out of a matrix that lies either way and has `rows` bytes along K: those of 4
 * bits have 8 added, which their highest bit turned round takes away. */
static void pack_panel(const struct few_bits *b, const uint8_t *from, int64_t rows,
                       int turned, int64_t panel, uint8_t *to)
{
    const int64_t bytes = b->bits == 8 ? 1 : WORD / 2, first = panel * COLUMNS;
    const uint8_t flip = b->bits == 8 ? 0 : 0x88;
    for (int64_t r = 0; r < b->panel / COLUMNS; r += bytes)
        for (int64_t c = first; c < first + COLUMNS; c++)
            for (int64_t i = r; i < r + bytes; i++, to++)
                *to = c >= b->n || i >= rows
                          ? 0
                          : from[turned ? c * rows + i : i * b->n + c] ^ flip;
}

static void pack_factors(const struct few_bits *b, const strata_tensor *t, int turned,
                         int64_t panel, float *to)
{
    const float *from = t->data;
    const int64_t columns = t->dims[turned ? 0 : 1];
    for (int64_t g = 0; g < b->groups; g++, to += COLUMNS)
        for (int64_t c = 0; c < COLUMNS; c++) {
            const int64_t n = panel * COLUMNS + c, own = columns > 1 ? n : 0;
            to[c] =
                n >= b->n ? 0 : from[turned ? own * b->groups + g : g * columns + own];
        }
}

int few_bits_setup(const strata_node *n, void *state)
{
    const strata_matrix_multiply *p = n->params;
    const strata_tensor *w = &n->weight[MATRIX_WEIGHT], *f = &n->weight[MATRIX_FACTORS];
    const int turned = p->transpose_b != 0, depth = turned ? 1 : 0;
    const int64_t rows = w->dims[depth];
    const strata_tensor *a = &n->in[MATRIX_A];
    struct few_bits *b = state;
    void *values = NULL, *factors = NULL;
    *b = (struct few_bits){.k = a->dims[a->rank - (p->transpose_a ? 2 : 1)],
                           .n = w->dims[1 - depth],
                           .groups = f->dims[depth],
                           .bits = w->dtype == STRATA_UINT8 ? 4 : 8};
    b->group = b->groups > 1 ? p->weight_group : b->k > 0 ? b->k : 1;
    b->panel = (b->k + WORD - 1) / WORD * COLUMNS * b->bits;
    const int64_t panels = (b->n + COLUMNS - 1) / COLUMNS;
    int status = matrix_pack_memory(n, panels * b->panel, 1, &values);
    if (status == STRATA_OK)
        status = matrix_pack_memory(n, panels * b->groups * COLUMNS, sizeof(float),
                                    &factors);
    if (status != STRATA_OK)
        return status;
#pragma omp parallel for if (b->n * rows > PARALLEL)
    for (int64_t i = 0; i < panels; i++) {
        pack_panel(b, w->data, rows, turned, i, (uint8_t *)values + i * b->panel);
        pack_factors(b, f, turned, i, (float *)factors + i * b->groups * COLUMNS);
    }
    b->values = values;
    b->factors = factors;
    return STRATA_OK;
}
