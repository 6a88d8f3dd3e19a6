/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators whose result is known while the model is imported: no layer is made.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "io/weights/weights.h"
#include "network/import/carry/carry.h"
#include "network/import/map/compose.h"
#include "network/network.h"

#define PI 3.14159265358979323846
#define FILLED_ELEMENTS (INT64_C(1) << 28) /* of weights that a model describes */

/* Memory for the elements of output 0; NULL: refused, or there are none. */
static void *make_elements(struct mapping *m, int dtype, int rank, const int64_t *dims)
{
    const int64_t n = rank ? network_elements(dims, rank) : 1;
    if (n < 0 || n > FILLED_ELEMENTS) {
        map_refuse(m, "it would be a constant of more than %lld elements",
                   (long long)FILLED_ELEMENTS);
        return NULL;
    }
    return arena_get(&m->g->arena, (size_t)n, weight_dtype_size(weight_dtype_of(dtype)));
}

static void give(struct mapping *m, int dtype, int rank, const int64_t *dims,
                 enum weight_dtype from, const void *wide)
{
    void *data = make_elements(m, dtype, rank, dims);
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= dims[d];
    if (data && n > 0)
        weights_convert(data, dtype, wide, from, n, NULL);
    if (!m->refused)
        map_is_constant(m, 0, dtype, rank, dims, data);
}

static void give_integers(struct mapping *m, int dtype, int rank, int64_t n,
                          const int64_t *v)
{
    give(m, dtype, rank, &n, WEIGHT_I64, v);
}

static void give_reals(struct mapping *m, int dtype, int rank, int64_t n, const double *v)
{
    give(m, dtype, rank, &n, WEIGHT_F64, v);
}

/* The core's dtype of attribute `name`, a TensorProto.DataType; -1 and refused: none. */
static int read_dtype(struct mapping *m, const char *name, int64_t otherwise)
{
    const int64_t type = node_integer(m->node, name, otherwise);
    const bool known = type > ONNX_UNDEFINED && type < ONNX_TYPE_COUNT;
    const int dtype = known ? onnx_type_core((enum onnx_type)type) : -1;
    if (dtype < 0)
        map_refuse(m, "'%s' is type %s; Strata has none for it", name,
                   known ? onnx_type_name((enum onnx_type)type) : "?");
    return dtype;
}

/* ---- shapes --------------------------------------------------------------------------
 */

static int64_t limit(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

static void make_shape(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    if (!x)
        return;
    int64_t begin = node_integer(m->node, "start", 0);
    int64_t end = node_integer(m->node, "end", x->rank);
    begin = limit(begin < 0 ? begin + x->rank : begin, 0, x->rank);
    end = limit(end < 0 ? end + x->rank : end, begin, x->rank);
    give_integers(m, STRATA_INT64, 1, end - begin, x->dims + begin);
}

static void make_size(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    const int64_t n = x ? value_count(x) : 0;
    give_integers(m, STRATA_INT64, 0, 1, &n);
}

/* ---- constants -----------------------------------------------------------------------
 */

static void give_tensor(struct mapping *m, const struct onnx_tensor *t)
{
    if (onnx_type_carrier(t->type) < 0)
        map_refuse(m, "its elements are of type %s; Strata has none for it",
                   onnx_type_name(t->type));
    else if (m->node->n_out)
        carry_constant(m->g, m->node->out[0], t);
}

static void make_constant(struct mapping *m)
{
    static const char *const names[] = {"value", "value_float", "value_floats",
                                        "value_int", "value_ints"};
    const struct onnx_attribute *a = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(names) && !a; i++)
        a = node_attribute(m->node, names[i]);
    if (a && a->kind == ONNX_A_TENSOR)
        give_tensor(m, a->tensors);
    else if (a && a->kind == ONNX_A_REAL)
        give_reals(m, STRATA_FP32, 0, 1, &a->real);
    else if (a && a->kind == ONNX_A_REALS)
        give_reals(m, STRATA_FP32, 1, (int64_t)a->n, a->reals);
    else if (a && a->kind == ONNX_A_INTEGER)
        give_integers(m, STRATA_INT64, 0, 1, &a->integer);
    else if (a && a->kind == ONNX_A_INTEGERS)
        give_integers(m, STRATA_INT64, 1, (int64_t)a->n, a->integers);
    else
        map_refuse(m, "it has no tensor, float or integer as its value: strings and "
                      "sparse tensors are not taken");
}

static void make_filled(struct mapping *m)
{
    static const float zero = 0;
    const struct onnx_attribute *a = node_attribute(m->node, "value");
    const struct onnx_tensor *t = a && a->kind == ONNX_A_TENSOR ? a->tensors : NULL;
    const int dtype = t ? onnx_type_core(t->type) : STRATA_FP32;
    int64_t dims[STRATA_MAX_RANK];
    const int rank = map_integers(m, "input", 0, dims);
    if (t && (dtype < 0 || t->count != 1))
        map_refuse(m,
                   "'value' is %lld elements of type %s; one of a type that Strata "
                   "has is needed",
                   (long long)t->count, onnx_type_name(t->type));
    if (m->refused || rank < 0)
        return;
    char *data = make_elements(m, dtype, rank, dims);
    const size_t size = weight_dtype_size(weight_dtype_of(dtype));
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= dims[d];
    for (int64_t i = 0; data && i < n; i++)
        memcpy(data + (size_t)i * size, t ? t->data : &zero, size);
    if (!m->refused)
        map_is_constant(m, 0, dtype, rank, dims, data);
}

static void make_range(struct mapping *m)
{
    const struct value *start = map_constant(m, 0, "start");
    const struct value *end = map_constant(m, 1, "limit");
    const struct value *delta = map_constant(m, 2, "delta");
    if (!start || !end || !delta)
        return;
    const double step = value_real(delta, 0);
    const double exact = ceil((value_real(end, 0) - value_real(start, 0)) / step);
    if (!(step != 0) || !(exact < 0x1p31)) {
        map_refuse(m, "a step of %g does not lead from %g to %g", step,
                   value_real(start, 0), value_real(end, 0));
        return;
    }
    const int64_t n = exact > 0 ? (int64_t)exact : 0;
    const bool real = start->dtype != STRATA_INT32 && start->dtype != STRATA_INT64;
    double *reals = compose_room(m, sizeof *reals, &n, 1);
    int64_t *integers = (int64_t *)reals;
    for (int64_t i = 0; reals && i < n; i++)
        if (real)
            reals[i] = value_real(start, 0) + (double)i * step;
        else
            integers[i] = (int64_t)((uint64_t)value_integer(start, 0) +
                                    (uint64_t)i * (uint64_t)value_integer(delta, 0));
    if (reals)
        give(m, start->dtype, 1, &n, real ? WEIGHT_F64 : WEIGHT_I64, reals);
}

static void make_eye(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    const int64_t diagonal = node_integer(m->node, "k", 0);
    if (!x || x->rank != 2) {
        map_refuse(m, "its input has a rank of %d; a matrix is needed",
                   map_input_rank(m, 0));
        return;
    }
    const int dtype =
        node_attribute(m->node, "dtype") ? read_dtype(m, "dtype", 0) : x->dtype;
    const int64_t n = value_count(x);
    double *v = compose_room(m, sizeof *v, x->dims, 2);
    for (int64_t i = 0; v && i < n; i++)
        v[i] = i % x->dims[1] - i / x->dims[1] == diagonal;
    if (!m->refused && v)
        give(m, dtype, 2, x->dims, WEIGHT_F64, v);
}

/* ---- windows of signals --------------------------------------------------------------
 */

/* first - second·cos(t) + third·cos(2t) over a period, or up to its end. */
static void make_window(struct mapping *m, double first, double second, double third)
{
    const struct value *size = map_constant(m, 0, "size");
    const int dtype = read_dtype(m, "output_datatype", ONNX_FLOAT);
    if (!size || dtype < 0)
        return;
    const int64_t n = value_integer(size, 0);
    double *v = compose_room(m, sizeof *v, &n, 1);
    const int64_t period = v ? n - (node_integer(m->node, "periodic", 1) ? 0 : 1) : 1;
    for (int64_t i = 0; v && i < n; i++) {
        const double t = 2 * PI * (double)i / (double)(period > 0 ? period : 1);
        v[i] = first - second * cos(t) + third * cos(2 * t);
    }
    if (v)
        give_reals(m, dtype, 1, n, v);
}

static void make_hann(struct mapping *m)
{
    make_window(m, 0.5, 0.5, 0);
}

static void make_hamming(struct mapping *m)
{
    make_window(m, 25. / 46, 21. / 46, 0);
}

static void make_blackman(struct mapping *m)
{
    make_window(m, 0.42, 0.5, 0.08);
}

static double mel(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

/* Triangles between neighbouring bins, equally spaced in mel. */
static void fill_mel(double *out, int64_t rows, int64_t bins, const int64_t *at)
{
    for (int64_t i = 0; i < bins; i++) {
        const int64_t low = at[i], centre = at[i + 1], high = at[i + 2];
        if (low == centre && centre >= 0 && centre < rows)
            out[centre * bins + i] = 1;
        for (int64_t k = low < 0 ? 0 : low; low < centre && k <= centre && k < rows; k++)
            out[k * bins + i] = (double)(k - low) / (double)(centre - low);
        for (int64_t k = centre < 0 ? 0 : centre; k < high && k < rows; k++)
            out[k * bins + i] = (double)(high - k) / (double)(high - centre);
    }
}

static void make_mel(struct mapping *m)
{
    static const char *const names[] = {"num_mel_bins", "dft_length", "sample_rate",
                                        "lower_edge_hertz", "upper_edge_hertz"};
    const int dtype = read_dtype(m, "output_datatype", ONNX_FLOAT);
    double in[ARRAY_LENGTH(names)];
    for (int i = 0; i < (int)ARRAY_LENGTH(names); i++) {
        const struct value *v = map_constant(m, i, names[i]);
        in[i] = v ? value_real(v, 0) : 0;
    }
    const int64_t bins = (int64_t)in[0], rows = (int64_t)in[1] / 2 + 1;
    const bool sane = in[0] >= 1 && in[0] < 65536 && in[1] >= 1 && in[1] < 0x1p24;
    if (!m->refused && (!sane || !(in[2] > 0)))
        map_refuse(m, "%g bins of a transform of %g at %g Hz are none", in[0], in[1],
                   in[2]);
    if (m->refused)
        return;
    const double low = mel(in[3]), step = (mel(in[4]) - low) / (double)(bins + 2);
    int64_t *at = arena_get(&m->g->arena, (size_t)bins + 2, sizeof *at);
    double *out = compose_room(m, sizeof *out, (const int64_t[]){rows, bins}, 2);
    for (int64_t i = 0; at && i < bins + 2; i++) {
        const double hertz = 700 * (pow(10, ((double)i * step + low) / 2595) - 1);
        at[i] = (int64_t)floor((in[1] + 1) * hertz / in[2]);
    }
    if (!at || !out)
        return;
    fill_mel(out, rows, bins, at);
    give(m, dtype, 2, (const int64_t[]){rows, bins}, WEIGHT_F64, out);
}

#define ROW(op_, function)                                                               \
    {                                                                                    \
        .op = op_, .finish = function                                                    \
    }

static const struct map_rule rules[] = {
    ROW("Shape", make_shape),
    ROW("Size", make_size),
    {.op = "Constant", .finish = make_constant, .note = "no strings, no sparse tensors"},
    ROW("ConstantOfShape", make_filled),
    ROW("Range", make_range),
    ROW("EyeLike", make_eye),
    ROW("HannWindow", make_hann),
    ROW("HammingWindow", make_hamming),
    ROW("BlackmanWindow", make_blackman),
    ROW("MelWeightMatrix", make_mel),
};

const struct map_table map_constants = {"Constants", rules, ARRAY_LENGTH(rules)};
