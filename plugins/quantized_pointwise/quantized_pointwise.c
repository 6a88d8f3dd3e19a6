/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedPointwise: bytes that are a function of bytes, one by one. The function is a
 * program of Pointwise's operations between a dequantize and a quantize. Of 256 bytes it
 * is a table, which is made once.
 */
#include <math.h>

#include "plugins/common/dense.h"
#include "plugins/common/pointwise.h"
#include "plugins/common/pointwise/exact.h"
#include "plugins/common/walk.h"
#include "plugins/common/pointwise/program.h"
#include "plugins/quantized_pointwise/table.h"

enum { ROWS = PROGRAM_INPUTS + PROGRAM_KEPT };

static int is_byte(int32_t dtype)
{
    return dtype == STRATA_INT8 || dtype == STRATA_UINT8;
}

static int shape(const strata_node *n)
{
    struct program p;
    const strata_tensor *x = &n->in[0];
    int status = program_parse(&p, n);
    if (status != STRATA_OK)
        return status;
    if (!is_byte(x->dtype))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "the input has dtype number %d; needed is int8 or u8: put a "
                           "Quantize before the layer",
                           (int)x->dtype);
    if (!is_byte(p.dtype))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "program: the last instruction gives no bytes; end it with "
                           "quantize_int8 or quantize_u8");
    n->out[0].dtype = p.dtype;
    n->out[0].rank = x->rank;
    for (int d = 0; d < x->rank; d++)
        n->out[0].dims[d] = x->dims[d];
    return STRATA_OK;
}

/* ---- the table ------------------------------------------------------------------- */

static float to_byte(const struct program_step *s, float value)
{
    const float low = s->op == PROGRAM_INT8 ? -128 : 0, high = low + 255;
    const float whole = rintf(value / (float)s->alpha) + (float)s->beta;
    const float from = whole < low ? low : whole;
    const float to = from > high ? high : from;
    return to == to ? to : 0;
}

static void apply(const struct program_step *s, float row[ROWS][TABLE_BYTES])
{
    const struct pointwise_constants k = {.alpha = s->alpha, .beta = s->beta};
    const float *a = row[s->a];
    float *y = row[s->to];
    if (s->op == POINTWISE_DEQUANTIZE) {
        for (int i = 0; i < TABLE_BYTES; i++)
            y[i] = (a[i] - (float)s->beta) * (float)s->alpha;
    } else if (s->op == PROGRAM_INT8 || s->op == PROGRAM_UINT8) {
        for (int i = 0; i < TABLE_BYTES; i++)
            y[i] = to_byte(s, a[i]);
    } else {
        pointwise_float.apply(s->op, &k, y, a, row[s->b], row[s->c], TABLE_BYTES);
    }
}

static int setup(const strata_node *n, void *state)
{
    struct program p;
    float row[ROWS][TABLE_BYTES] = {{0}};
    uint8_t *table = state;
    int status = program_parse(&p, n);
    if (status != STRATA_OK)
        return status;
    for (int i = 0; i < TABLE_BYTES; i++)
        row[0][i] = n->in[0].dtype == STRATA_INT8 ? (float)(int8_t)i : (float)i;
    for (int32_t i = 0; i < p.n_steps; i++)
        apply(&p.step[i], row);
    for (int i = 0; i < TABLE_BYTES; i++)
        table[i] = (uint8_t)(int32_t)row[p.step[p.n_steps - 1].to][i];
    return STRATA_OK;
}

enum { SPAN_BYTES = 1 << 15 }; /* at a time: worth a thread */

/* Input and output lie alike, pad lanes too. */
static int run(const strata_run *r)
{
    const uint8_t *x = r->in[0].data, *table = r->state;
    uint8_t *y = r->out[0].data;
    const int64_t count = r->out[0].size;
#pragma omp parallel for schedule(static) if (count > SPAN_BYTES)
    for (int64_t i = 0; i < count; i += SPAN_BYTES)
        table_look_up(y + i, x + i, i + SPAN_BYTES < count ? SPAN_BYTES : count - i,
                      table);
    walk_clear_pads(&r->out[0]);
    return STRATA_OK;
}

/* ---- the definition ------------------------------------------------------------ */

static double define(const struct program_step *s, const double *row)
{
    const struct pointwise_constants k = {.alpha = s->alpha, .beta = s->beta};
    if (s->op == POINTWISE_DEQUANTIZE)
        return (float)(row[s->a] - s->beta) * (float)s->alpha;
    if (s->op == PROGRAM_INT8 || s->op == PROGRAM_UINT8)
        return to_byte(s, (float)row[s->a]);
    return exact_double(s->op, &k, row[s->a], row[s->b], row[s->c]);
}

static int reference_run(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    struct program p;
    int status = program_parse(&p, n);
    (void)weight;
    for (int64_t e = 0; status == STRATA_OK && e < dense_count(&n->out[0]); e++) {
        double row[ROWS] = {(double)((const int64_t *)in[0])[e]};
        for (int32_t i = 0; i < p.n_steps; i++)
            row[p.step[i].to] = define(&p.step[i], row);
        ((int64_t *)out[0])[e] = (int64_t)row[p.step[p.n_steps - 1].to];
    }
    return status;
}

static const void *extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0, reference_run};
    return dense_extension_typed(id, &reference);
}

/* ---- tables -------------------------------------------------------------------- */

static const strata_attr attrs[] = {
    {.name = "program",
     .type = STRATA_STRING,
     .offset = offsetof(strata_pointwise, program),
     .def_text = "quantize_int8 x0",
     .doc = "instructions: \"dequantize x0 0.1 0, sigmoid r0, quantize_u8 r1 0.004 0\""},
};

#define ROW(i8, u8)                                                                      \
    {                                                                                    \
        {(i8) | (u8)},                                                                   \
        {                                                                                \
            (i8) | (u8)                                                                  \
        }                                                                                \
    }
static const strata_row rows[] = {
    ROW(STRATA_I8_NCHW, STRATA_U8_NCHW),
    ROW(STRATA_I8_NHWC, STRATA_U8_NHWC),
    ROW(STRATA_I8_NC4HW4, STRATA_U8_NC4HW4),
    ROW(STRATA_I8_NC32HW32, STRATA_U8_NC32HW32),
    ROW(STRATA_I8_NHWC16, 0),
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.05,
     .bandwidth = 0.3,
     .state_size = TABLE_BYTES,
     .setup = setup,
     .run = run},
};

static const strata_layer layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "QuantizedPointwise",
    .doc =
        "A program of element-wise operations from 8-bit integers to others, as a table",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_pointwise),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = shape,
    .flops = walk_no_flops,
    .extension = extension,
};
static const strata_layer *const layers[] = {&layer};
STRATA_MODULE("core", "1.0.0", "QuantizedPointwise", layers)
