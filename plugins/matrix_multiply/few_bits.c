/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with a B of few bits: a step of k turns 16 values into floats and multiplies
 * them by an element of each row of A; the sums of a group are multiplied by its factors.
 */
#include "plugins/matrix_multiply/few_bits.h"

#include "plugins/common/element.h"
#include "plugins/matrix_multiply/product.h"

#ifdef ELEMENT_X86
#include <immintrin.h>
#endif

#define COLUMNS FEW_BITS_COLUMNS
#define PARALLEL 200000 /* bytes that pay for a thread team */

/* ---- inner loops ----------------------------------------------------------------- */

/* A panel by up to four rows. */
struct operands {
    const struct few_bits *b;
    const uint8_t *values;
    const float *factors, *a;
    int64_t a_row, a_step;
    float (*c)[COLUMNS];
};

typedef void (*panel_fn)(const struct operands *);

#define BODY __attribute__((always_inline)) static inline
#define UNROLL _Pragma("GCC unroll 8")
#define LOAD(v, p) memcpy(&(v), (p), sizeof(v))

/* Bytes at p as integers: compilers take them one by one if that is not spelled out. */
#define SIGNED_4(p)                                                                      \
    ((whole4){(int8_t)(p)[0], (int8_t)(p)[1], (int8_t)(p)[2], (int8_t)(p)[3]})
#define BYTES_4(p) ((whole4){(p)[0], (p)[1], (p)[2], (p)[3]})
#define LOAD_8(p) _mm_loadl_epi64((const __m128i *)(p))
#define SIGNED_8(p) ((whole8)_mm256_cvtepi8_epi32(LOAD_8(p)))
#define BYTES_8(p) ((whole8)_mm256_cvtepu8_epi32(LOAD_8(p)))
#define LOAD_16(p) _mm_loadu_si128((const __m128i *)(p))
#define SIGNED_16(p) ((whole16)_mm512_cvtepi8_epi32(LOAD_16(p)))
#define BYTES_16(p) ((whole16)_mm512_cvtepu8_epi32(LOAD_16(p)))

/* Floats that the low four bits of integers stand for; 16 are a table's, which looks at
 * no other bits. */
#define NIBBLES_4(x) __builtin_convertvector(((x)&15) - FEW_BITS_ZERO, vector4)
#define NIBBLES_8(x) __builtin_convertvector(((x)&15) - FEW_BITS_ZERO, vector8)
#define NIBBLES_16(x)                                                                    \
    ((vector16)_mm512_permutexvar_ps(                                                    \
        (__m512i)(x), (__m512){-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7}))

/* Of 16 values the v-th vector, as floats. */
#define READ_BODY(LANES, TARGET)                                                         \
    typedef float vector##LANES __attribute__((vector_size(LANES * 4)));                 \
    typedef int32_t whole##LANES __attribute__((vector_size(LANES * 4)));                \
                                                                                         \
    TARGET BODY void read##LANES(vector##LANES *out, const struct operands *o,           \
                                 int64_t k, int v, const int bits)                       \
    {                                                                                    \
        const uint8_t *at = o->values + (bits == 8 ? k : k / 2) * COLUMNS + v * LANES;   \
        if (bits == 8)                                                                   \
            *out = __builtin_convertvector(SIGNED_##LANES(at), vector##LANES);           \
        else                                                                             \
            *out = NIBBLES_##LANES(BYTES_##LANES(at) >> (k % 2 > 0 ? 4 : 0));            \
    }                                                                                    \
                                                                                         \
    TARGET BODY void read_pair##LANES(vector##LANES out[2], const struct operands *o,    \
                                      int64_t k, int v)                                  \
    {                                                                                    \
        const uint8_t *at = o->values + k / 2 * COLUMNS + v * LANES;                     \
        const whole##LANES both = BYTES_##LANES(at);                                     \
        out[0] = NIBBLES_##LANES(both);                                                  \
        out[1] = NIBBLES_##LANES(both >> 4);                                             \
    }

/* `steps` of k from an even one, two of 4 bits at a time; or one, wherever it is. */
#define STEP_BODY(LANES, TARGET)                                                         \
    TARGET BODY void step##LANES(vector##LANES(*sum)[2][COLUMNS / LANES],                \
                                 const struct operands *o, int64_t k, const int steps,   \
                                 const int rows, const int bits)                         \
    {                                                                                    \
        const float *a = o->a + k * o->a_step;                                           \
        UNROLL for (int v = 0; v < COLUMNS / LANES; v++)                                 \
        {                                                                                \
            vector##LANES x[2];                                                          \
            if (bits == 4 && steps == 2)                                                 \
                read_pair##LANES(x, o, k, v);                                            \
            else                                                                         \
                UNROLL for (int s = 0; s < steps; s++)                                   \
                    read##LANES(&x[s], o, k + s, v, bits);                               \
            UNROLL for (int m = 0; m < rows; m++) UNROLL for (int s = 0; s < steps; s++) \
                sum[m][s][v] += a[m * o->a_row + s * o->a_step] * x[s];                  \
        }                                                                                \
    }

/* Few rows leave a step's sums waiting for those before: four steps have their own. */
#define PANEL_BODY(LANES, TARGET)                                                        \
    TARGET BODY void panel_body##LANES(const struct operands *o, const int rows,         \
                                       const int bits)                                   \
    {                                                                                    \
        enum { VECTORS = COLUMNS / LANES };                                              \
        const int twice = rows < 4;                                                      \
        vector##LANES total[4][VECTORS] = {{{0}}};                                       \
        const float *factor = o->factors;                                                \
        for (int64_t k = 0, end; k < o->b->k; k = end, factor += COLUMNS) {              \
            vector##LANES sum[4][2][VECTORS] = {{{{0}}}};                                \
            vector##LANES more[4][2][VECTORS] = {{{{0}}}};                               \
            end = o->b->k - k > o->b->group ? k + o->b->group : o->b->k;                 \
            if (k % 2 != 0 && k < end)                                                   \
                step##LANES(sum, o, k++, 1, rows, bits);                                 \
            for (; twice && k + 4 <= end; k += 4) {                                      \
                step##LANES(sum, o, k, 2, rows, bits);                                   \
                step##LANES(more, o, k + 2, 2, rows, bits);                              \
            }                                                                            \
            for (; k + 2 <= end; k += 2)                                                 \
                step##LANES(sum, o, k, 2, rows, bits);                                   \
            if (k < end)                                                                 \
                step##LANES(sum, o, k, 1, rows, bits);                                   \
            UNROLL for (int m = 0; m < rows; m++)                                        \
                UNROLL for (int v = 0; v < VECTORS; v++)                                 \
            {                                                                            \
                vector##LANES f, all = sum[m][0][v] + sum[m][1][v];                      \
                if (twice)                                                               \
                    all += more[m][0][v] + more[m][1][v];                                \
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

#define PANEL(NAME, TARGET, LANES, ROWS, BITS)                                           \
    TARGET static void NAME##_##BITS##_##ROWS(const struct operands *o)                  \
    {                                                                                    \
        panel_body##LANES(o, ROWS, BITS);                                                \
    }
#define SET(NAME, TARGET, LANES)                                                         \
    PANEL(NAME, TARGET, LANES, 1, 8)                                                     \
    PANEL(NAME, TARGET, LANES, 2, 8)                                                     \
    PANEL(NAME, TARGET, LANES, 4, 8)                                                     \
    PANEL(NAME, TARGET, LANES, 1, 4)                                                     \
    PANEL(NAME, TARGET, LANES, 2, 4)                                                     \
    PANEL(NAME, TARGET, LANES, 4, 4)
SET(plain, , 4)
#ifdef ELEMENT_X86
SET(avx2, AVX2, 8)
SET(avx512, AVX512, 16)
#endif

#define ENTRY(NAME)                                                                      \
    {                                                                                    \
        {NAME##_8_1, NAME##_8_2, NAME##_8_4},                                            \
        {                                                                                \
            NAME##_4_1, NAME##_4_2, NAME##_4_4                                           \
        }                                                                                \
    }

/* By bits, then by 1, 2, 4 rows; for what a CPU has. */
static const panel_fn sets[][2][3] = {
    ENTRY(plain),
#ifdef ELEMENT_X86
    ENTRY(avx2),
    ENTRY(avx512),
#endif
};

static int choose(void)
{
#ifdef ELEMENT_X86
    return __builtin_cpu_supports("avx512f") ? 2 : element_has_f16c() ? 1 : 0;
#else
    return 0;
#endif
}

/* ---- products -------------------------------------------------------------------- */

void few_bits_multiply(const struct few_bits_product *p)
{
    const struct few_bits *b = p->b;
    const panel_fn *run = sets[choose()][b->per_byte == 2];
    float sums[4][COLUMNS];
    struct operands o = {.b = b, .a_row = p->a_row, .a_step = p->a_step, .c = sums};
    for (int64_t column = 0, width; column < p->columns; column += width) {
        const int64_t panel = (p->column + column) / COLUMNS;
        width = p->columns - column < COLUMNS ? p->columns - column : COLUMNS;
        o.values = b->values + panel * b->rows * COLUMNS;
        o.factors = b->factors + panel * b->groups * COLUMNS;
        for (int64_t m = 0, step; m < p->rows; m += step) {
            const int index = p->rows - m >= 4 ? 2 : p->rows - m >= 2;
            step = 1 << index;
            o.a = p->a + m * p->a_row;
            run[index](&o);
            for (int64_t i = 0; i < step; i++)
                memcpy(p->c + (m + i) * p->c_row + column, sums[i],
                       (size_t)width * sizeof *p->c);
        }
    }
}

static void unpack_row(float *to, const uint8_t *from, const float *factor, int64_t n,
                       int64_t k, int per_byte)
{
    if (per_byte == 1)
        for (int64_t i = 0; i < n; i++)
            to[i] = (float)(int8_t)from[i] * factor[i];
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = (float)((from[i] >> k % 2 * 4 & 15) - FEW_BITS_ZERO) * factor[i];
}

void few_bits_unpack(const struct few_bits *b, int64_t k, int64_t depth, int64_t column,
                     int64_t columns, int64_t width, float *to)
{
    for (int64_t i = 0; i < depth; i++, k++, to += width)
        for (int64_t c = 0, n; c < columns; c += n) {
            const int64_t panel = (column + c) / COLUMNS, first = (column + c) % COLUMNS;
            const int64_t row = panel * b->rows + k / b->per_byte;
            const int64_t group = panel * b->groups + k / b->group;
            n = columns - c < COLUMNS - first ? columns - c : COLUMNS - first;
            unpack_row(to + c, b->values + row * COLUMNS + first,
                       b->factors + group * COLUMNS + first, n, k, b->per_byte);
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

static int get(const strata_node *n, int64_t count, size_t size, void **out)
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

/* A panel's rows, out of a matrix that lies either way. */
static void pack_panel(const struct few_bits *b, const uint8_t *from, int turned,
                       int64_t panel, uint8_t *to)
{
    const int64_t first = panel * COLUMNS;
    for (int64_t r = 0; r < b->rows; r++, to += COLUMNS)
        for (int64_t c = 0; c < COLUMNS; c++) {
            const int64_t n = first + c;
            to[c] = n >= b->n ? 0 : from[turned ? n * b->rows + r : r * b->n + n];
        }
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
    const strata_tensor *a = &n->in[MATRIX_A];
    struct few_bits *b = state;
    void *values = NULL, *factors = NULL;
    *b = (struct few_bits){.k = a->dims[a->rank - (p->transpose_a ? 2 : 1)],
                           .n = w->dims[1 - depth],
                           .rows = w->dims[depth],
                           .groups = f->dims[depth],
                           .per_byte = w->dtype == STRATA_UINT8 ? 2 : 1};
    b->group = b->groups > 1 ? p->weight_group : b->k > 0 ? b->k : 1;
    const int64_t panels = (b->n + COLUMNS - 1) / COLUMNS;
    int status = get(n, panels * b->rows * COLUMNS, 1, &values);
    if (status == STRATA_OK)
        status = get(n, panels * b->groups * COLUMNS, sizeof(float), &factors);
    if (status != STRATA_OK)
        return status;
#pragma omp parallel for if (b->n * b->rows > PARALLEL)
    for (int64_t i = 0; i < panels; i++) {
        pack_panel(b, w->data, turned, i, (uint8_t *)values + i * b->rows * COLUMNS);
        pack_factors(b, f, turned, i, (float *)factors + i * b->groups * COLUMNS);
    }
    b->values = values;
    b->factors = factors;
    return STRATA_OK;
}
