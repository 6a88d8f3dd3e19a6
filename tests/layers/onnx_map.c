/* SPDX-License-Identifier: Apache-2.0
 *
 * A row an operator. `ports` has a letter for each input of the operator: x an input of
 * the layer, w a weight, - none of both; + after an x: further ones too. `names` pairs
 * their attributes with ours: "theirs=ours", ended by ? where it is yes or no, by ~ where
 * it is a word; "#k=ours" takes them from input k, which is a constant here.
 */
#include "tests/layers/onnx_map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *op, *layer, *fixed, *ports, *names;
    void (*prepare)(struct onnx_job *j);
};

/* ---- attributes as text -------------------------------------------------------- */

static void add_text(struct onnx_job *j, const char *name, const char *text)
{
    const size_t used = strlen(j->attrs);
    snprintf(j->attrs + used, sizeof j->attrs - used, "%s = %s; ", name, text);
}

static void add_integers(struct onnx_job *j, const char *name, const int64_t *v, int n)
{
    char text[512] = "";
    size_t used = 0;
    for (int i = 0; i < n && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", i ? ", " : "",
                                 (long long)v[i]);
    if (n > 0)
        add_text(j, name, text);
}

static void add_reals(struct onnx_job *j, const char *name, const double *v, int n)
{
    char text[512] = "";
    size_t used = 0;
    for (int i = 0; i < n && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.9g", i ? ", " : "",
                                 v[i]);
    if (n > 0)
        add_text(j, name, text);
}

static void add_boolean(struct onnx_job *j, const char *name, bool value)
{
    add_text(j, name, value ? "yes" : "no");
}

static int64_t integer_attr(const struct onnx_job *j, const char *name, int64_t otherwise)
{
    const struct pb_attr *a = pb_attr(j->m, name);
    return a ? a->integer : otherwise;
}

static const char *text_attr(const struct onnx_job *j, const char *name,
                             const char *otherwise)
{
    const struct pb_attr *a = pb_attr(j->m, name);
    return a ? a->text : otherwise;
}

static int rank_of(const struct onnx_job *j)
{
    return j->given[0] ? j->given[0]->shape.rank : 0;
}

/* Numbers of a list attribute or of a constant input; how many. */
static int integers_of(const struct onnx_job *j, const char *name, int input,
                       int64_t out[PB_LIST])
{
    const struct pb_attr *a = pb_attr(j->m, name);
    const struct pb_tensor *t = input >= 0 ? j->given[input] : NULL;
    int n = a ? a->n_integers : 0;
    if (a)
        memcpy(out, a->integers, sizeof a->integers);
    if (t && !number_is_real(t->dtype) && t->count <= PB_LIST) {
        n = (int)t->count;
        memcpy(out, t->data, (size_t)n * sizeof *out);
    }
    return n;
}

static void add_input(struct onnx_job *j, const char *ours, const struct pb_tensor *t)
{
    if (!t)
        return;
    if (t->count > PB_LIST)
        j->reason = "a constant of many numbers";
    else if (number_is_real(t->dtype))
        add_reals(j, ours, t->data, (int)t->count);
    else
        add_integers(j, ours, t->data, (int)t->count);
}

static void add_attribute(struct onnx_job *j, const char *ours, char kind,
                          const struct pb_attr *a)
{
    char text[PB_NAME];
    size_t i = 0;
    for (; a->text[i]; i++)
        text[i] = (char)(a->text[i] | (kind == '~' ? 0x20 : 0));
    text[i] = '\0';
    if (kind == '?')
        add_boolean(j, ours, a->integer != 0);
    else if (a->kind == 1)
        add_reals(j, ours, &a->real, 1);
    else if (a->kind == 2)
        add_integers(j, ours, &a->integer, 1);
    else if (a->kind == 3)
        add_text(j, ours, text);
    else if (a->kind == 6)
        add_reals(j, ours, a->reals, a->n_reals);
    else
        add_integers(j, ours, a->integers, a->n_integers);
}

static void translate(struct onnx_job *j, const char *names)
{
    char list[256], *rest = list, *pair;
    snprintf(list, sizeof list, "%s", names ? names : "");
    while ((pair = strsep(&rest, ","))) {
        char *ours = strchr(pair, '=');
        if (!ours)
            continue;
        *ours++ = '\0';
        const size_t last = strlen(ours) - 1;
        const char kind = ours[last];
        if (kind == '?' || kind == '~')
            ours[last] = '\0';
        const struct pb_attr *a = pb_attr(j->m, pair);
        if (pair[0] == '#')
            add_input(j, ours, j->given[atoi(pair + 1)]);
        else if (a)
            add_attribute(j, ours, kind, a);
    }
}

/* ---- operators that need more than new names ----------------------------------- */

static void prepare_window(struct onnx_job *j)
{
    const char *mode = text_attr(j, "auto_pad", "NOTSET");
    if (strcmp(mode, "NOTSET") != 0)
        add_text(j, "pad_mode",
                 strcmp(mode, "VALID") == 0        ? "valid"
                 : strcmp(mode, "SAME_UPPER") == 0 ? "same_upper"
                                                   : "same_lower");
    if (integer_attr(j, "storage_order", 0))
        j->reason = "indices in column-major order";
    if (j->m->n_out == 2)
        add_boolean(j, "indices", true);
}

static void prepare_unpool(struct onnx_job *j)
{
    int64_t size[PB_LIST];
    const int n = integers_of(j, "", 2, size);
    if (n > 2)
        add_integers(j, "output_size", size + 2, n - 2);
}

/* Before opset 13 the dims from the axis on are one. */
static void prepare_softmax(struct onnx_job *j)
{
    const bool flat = j->m->opset < 13;
    int64_t axis = integer_attr(j, "axis", flat ? 1 : -1);
    axis += axis < 0 ? rank_of(j) : 0;
    for (int64_t d = axis + 1; flat && d < rank_of(j); d++)
        if (j->given[0]->shape.dims[d] != 1)
            j->reason = "softmax over several dims";
    add_integers(j, "axis", &axis, 1);
}

static void prepare_batch(struct onnx_job *j)
{
    if (integer_attr(j, "training_mode", 0))
        j->reason = "training";
}

static void prepare_cast(struct onnx_job *j)
{
    const int type =
        j->given[1] ? j->given[1]->type : (int)integer_attr(j, "to", 0);
    const int32_t dtype = pb_dtype(type);
    if (dtype < 0)
        j->reason = "a type that there is not";
    else
        add_text(j, "to", strata_dtype_name(dtype));
}

static void prepare_shift(struct onnx_job *j)
{
    const bool left = strcmp(text_attr(j, "direction", ""), "LEFT") == 0;
    add_text(j, "op", left ? "shift_left" : "shift_right");
}

static void prepare_many(struct onnx_job *j)
{
    if (j->n_in == 1) {
        j->layer = "Identity";
        j->attrs[0] = '\0';
    }
}

static void prepare_reduce(struct onnx_job *j)
{
    int64_t axes[PB_LIST];
    if (integers_of(j, "axes", j->m->n_in > 1 ? 1 : -1, axes) == 0 &&
        integer_attr(j, "noop_with_empty_axes", 0)) {
        j->layer = "Identity";
        j->attrs[0] = '\0';
    }
}

static void prepare_arg(struct onnx_job *j)
{
    if (integer_attr(j, "select_last_index", 0))
        add_text(j, "ties", "last");
}

static void prepare_pad(struct onnx_job *j)
{
    int64_t pads[PB_LIST];
    const int n = integers_of(j, "pads", j->m->n_in > 1 ? 1 : -1, pads);
    add_integers(j, "begin", pads, n / 2);
    add_integers(j, "end", pads + n / 2, n / 2);
}

/* Each output of a split is a slice. */
static void prepare_split(struct onnx_job *j)
{
    int64_t axis = integer_attr(j, "axis", 0), parts[PB_LIST], begin = 0;
    axis += axis < 0 ? rank_of(j) : 0;
    if (!integers_of(j, "split", j->m->n_in > 1 ? 1 : -1, parts))
        for (int i = 0; i < j->m->n_out; i++)
            parts[i] = j->given[0]->shape.dims[axis] / j->m->n_out;
    for (int i = 0; i < j->output; i++)
        begin += parts[i];
    add_integers(j, "axes", &axis, 1);
    add_integers(j, "begin", &begin, 1);
    begin += parts[j->output];
    add_integers(j, "end", &begin, 1);
}

/* What the case says that must come out, as a shape. */
static void prepare_shape(struct onnx_job *j)
{
    const struct harness_shape *out = &j->expected[0]->shape;
    int64_t one = 1;
    if (j->expected[0]->count == 0)
        j->reason = "a reshape of nothing to other dims";
    else if (out->rank == 0)
        add_integers(j, "shape", &one, 1);
    else
        add_integers(j, "shape", out->dims, out->rank);
}

static void prepare_transpose(struct onnx_job *j)
{
    int64_t perm[STRATA_MAX_RANK];
    for (int d = 0; d < rank_of(j); d++)
        perm[d] = rank_of(j) - 1 - d;
    if (!pb_attr(j->m, "perm"))
        add_integers(j, "first", perm, rank_of(j));
}

static void prepare_dropout(struct onnx_job *j)
{
    const struct pb_tensor *training = j->given[2];
    if (training && ((const int64_t *)training->data)[0])
        j->reason = "training";
    j->out[1] = -1; /* the mask is a constant */
}

/* Begins of all dims, then their ends; ours are of space alone. */
static void add_region(struct onnx_job *j)
{
    const struct pb_tensor *roi = j->given[1];
    const int rank = rank_of(j), space = rank - 2;
    double region[2 * STRATA_MAX_RANK];
    if (!roi || roi->count != 2 * rank || !number_is_real(roi->dtype)) {
        j->reason = "not of images";
        return;
    }
    for (int d = 0; d < space; d++) {
        region[d] = ((const double *)roi->data)[d + 2];
        region[d + space] = ((const double *)roi->data)[d + 2 + rank];
    }
    add_reals(j, "roi", region, 2 * space);
}

static void prepare_resize(struct onnx_job *j)
{
    const char *mode = text_attr(j, "mode", "nearest");
    const char *coordinates = text_attr(j, "coordinate_transformation_mode", NULL);
    const bool old = j->m->n_in == 2;
    const struct pb_tensor *scales = j->given[old ? 1 : 2], *sizes = j->given[3];
    const int rank = rank_of(j);
    if (rank < 3 || (scales && scales->count && scales->count != rank))
        j->reason = "not of images";
    if (j->reason)
        return;
    add_text(j, "mode", strcmp(mode, "linear") == 0 ? "bilinear" : mode);
    if (old)
        coordinates = "asymmetric";
    if (coordinates)
        add_text(j, "coordinates",
                 strcmp(coordinates, "tf_half_pixel_for_nn") == 0 ? "half_pixel"
                                                                  : coordinates);
    if (old && strcmp(mode, "nearest") == 0)
        add_text(j, "nearest", "floor");
    if (sizes && sizes->count)
        add_integers(j, "size", (const int64_t *)sizes->data + 2, rank - 2);
    else if (scales && scales->count)
        add_reals(j, "scale", (const double *)scales->data + 2, rank - 2);
    if (coordinates && strcmp(coordinates, "tf_crop_and_resize") == 0)
        add_region(j);
}

static void prepare_grid(struct onnx_job *j)
{
    const char *mode = text_attr(j, "mode", "bilinear");
    add_text(j, "mode",
             strcmp(mode, "bilinear") == 0  ? "linear"
             : strcmp(mode, "bicubic") == 0 ? "cubic"
                                            : mode);
}

static void prepare_roi(struct onnx_job *j)
{
    const int64_t size[] = {integer_attr(j, "output_height", 1),
                            integer_attr(j, "output_width", 1)};
    const char *coordinates = text_attr(j, "coordinate_transformation_mode", NULL);
    add_integers(j, "size", size, 2);
    if (!coordinates)
        coordinates = j->m->opset < 16 ? "output_half_pixel" : "half_pixel";
    add_text(j, "coordinates", coordinates);
}

static void prepare_suppression(struct onnx_job *j)
{
    if (integer_attr(j, "center_point_box", 0))
        add_text(j, "box", "center");
    j->trimmed = true;
    j->out[1] = -1;
}

static void prepare_quantize(struct onnx_job *j)
{
    const struct pb_tensor *zero = j->given[2];
    if (zero && zero->dtype >= 0)
        add_text(j, "dtype", strata_dtype_name(zero->dtype));
}

static void prepare_normalization(struct onnx_job *j)
{
    if (j->m->n_out > 1)
        add_boolean(j, "statistics", true);
}

static void prepare_clip(struct onnx_job *j)
{
    if (j->m->n_in > 1 && !number_is_real(j->given[0]->dtype))
        j->reason = "Clip of integers is ElementWise min and max";
}

/* ---- the table ----------------------------------------------------------------- */

#define WINDOW "kernel_shape=kernel,strides=stride,pads=pad,dilations=dilation"
#define REDUCE(op_, name_) \
    {op_, "Reduce", "op = " name_ "; ", "x-", "axes=axes,#1=axes,keepdims=keep_dims?", \
     prepare_reduce}
#define UNARY(op_, name_) {op_, "Unary", "op = " name_ "; ", "x", "", NULL}
#define BINARY(op_, name_) {op_, "ElementWise", "op = " name_ "; ", "x+", "", prepare_many}
#define COMPARE(op_, name_) {op_, "Compare", "op = " name_ "; ", "xx", "", NULL}
#define ACTIVATION(op_, kind_, names_) \
    {op_, "Activation", "kind = " kind_ "; ", "x", names_, NULL}

/* clang-format off */
static const struct row rows[] = {
    {"Conv", "Convolution", "", "xww", WINDOW ",group=groups", prepare_window},
    {"ConvTranspose", "Deconvolution", "", "xww", WINDOW ",group=groups,"
     "output_padding=output_pad,output_shape=output_size", prepare_window},
    {"MaxPool", "Pooling", "kind = max; ", "x", WINDOW ",ceil_mode=ceil_mode?",
     prepare_window},
    {"AveragePool", "Pooling", "kind = average; ", "x", WINDOW ",ceil_mode=ceil_mode?,"
     "count_include_pad=count_include_pad?", prepare_window},
    {"LpPool", "Pooling", "kind = lp; ", "x", WINDOW ",ceil_mode=ceil_mode?,p=p",
     prepare_window},
    {"GlobalAveragePool", "Pooling", "kind = average; global = yes; ", "x", "", NULL},
    {"GlobalMaxPool", "Pooling", "global = yes; ", "x", "", NULL},
    {"GlobalLpPool", "Pooling", "kind = lp; global = yes; ", "x", "p=p", NULL},
    {"MaxUnpool", "MaxUnpool", "", "xx-", "kernel_shape=kernel,strides=stride,pads=pad",
     prepare_unpool},
    {"MatMul", "MatrixMultiply", "", "xx", "", NULL},
    {"Gemm", "MatrixMultiply", "", "xxx", "alpha=alpha,beta=beta,transA=transpose_a?,"
     "transB=transpose_b?", NULL},
    UNARY("Abs", "abs"), UNARY("Neg", "neg"), UNARY("Exp", "exp"), UNARY("Log", "log"),
    UNARY("Sqrt", "sqrt"), UNARY("Reciprocal", "reciprocal"), UNARY("Sign", "sign"),
    UNARY("Floor", "floor"), UNARY("Ceil", "ceil"), UNARY("Round", "round"),
    UNARY("Sin", "sin"), UNARY("Cos", "cos"), UNARY("Tan", "tan"), UNARY("Asin", "asin"),
    UNARY("Acos", "acos"), UNARY("Atan", "atan"), UNARY("Sinh", "sinh"),
    UNARY("Cosh", "cosh"), UNARY("Asinh", "asinh"), UNARY("Acosh", "acosh"),
    UNARY("Atanh", "atanh"), UNARY("Erf", "erf"), UNARY("Not", "not"),
    UNARY("BitwiseNot", "bit_not"), UNARY("IsNaN", "is_nan"),
    {"IsInf", "Unary", "op = is_inf; ", "x", "detect_negative=negative?,"
     "detect_positive=positive?", NULL},
    BINARY("Add", "sum"), BINARY("Sub", "sub"), BINARY("Mul", "product"),
    BINARY("Div", "div"), BINARY("Max", "max"), BINARY("Min", "min"),
    BINARY("Pow", "pow"), BINARY("Sum", "sum"), BINARY("Mean", "mean"),
    BINARY("And", "and"), BINARY("Or", "or"), BINARY("Xor", "xor"),
    BINARY("BitwiseAnd", "bit_and"), BINARY("BitwiseOr", "bit_or"),
    BINARY("BitwiseXor", "bit_xor"),
    {"Mod", "ElementWise", "op = mod; ", "xx", "fmod=fmod?", NULL},
    {"BitShift", "ElementWise", "", "xx", "", prepare_shift},
    COMPARE("Equal", "equal"), COMPARE("Less", "less"), COMPARE("Greater", "greater"),
    COMPARE("LessOrEqual", "less_equal"), COMPARE("GreaterOrEqual", "greater_equal"),
    {"Where", "Select", "", "xxx", "", NULL},
    {"Cast", "Cast", "", "x", "saturate=saturate?", prepare_cast},
    {"CastLike", "Cast", "", "x-", "saturate=saturate?", prepare_cast},
    ACTIVATION("Relu", "relu", ""), ACTIVATION("LeakyRelu", "leaky_relu", "alpha=alpha"),
    ACTIVATION("Sigmoid", "sigmoid", ""), ACTIVATION("Tanh", "tanh", ""),
    ACTIVATION("Elu", "elu", "alpha=alpha"),
    ACTIVATION("Selu", "selu", "alpha=alpha,gamma=beta"),
    ACTIVATION("Softplus", "softplus", ""), ACTIVATION("Softsign", "softsign", ""),
    ACTIVATION("HardSigmoid", "hard_sigmoid", "alpha=alpha,beta=beta"),
    ACTIVATION("HardSwish", "hard_swish", ""), ACTIVATION("Mish", "mish", ""),
    ACTIVATION("Celu", "celu", "alpha=alpha"),
    ACTIVATION("ThresholdedRelu", "thresholded_relu", "alpha=alpha"),
    ACTIVATION("Shrink", "shrink", "lambd=alpha,bias=beta"),
    {"Clip", "Activation", "kind = clip; ", "x--", "min=alpha,max=beta,#1=alpha,#2=beta",
     prepare_clip},
    {"PRelu", "ParametricReLU", "", "xw", "", NULL},
    REDUCE("ReduceSum", "sum"), REDUCE("ReduceMean", "mean"), REDUCE("ReduceMax", "max"),
    REDUCE("ReduceMin", "min"), REDUCE("ReduceProd", "prod"), REDUCE("ReduceL1", "l1"),
    REDUCE("ReduceL2", "l2"), REDUCE("ReduceSumSquare", "sum_square"),
    REDUCE("ReduceLogSum", "log_sum"), REDUCE("ReduceLogSumExp", "log_sum_exp"),
    {"ArgMax", "ArgMax", "", "x", "axis=axis,keepdims=keep_dims?", prepare_arg},
    {"ArgMin", "ArgMax", "op = min; ", "x", "axis=axis,keepdims=keep_dims?", prepare_arg},
    {"TopK", "TopK", "", "x-", "k=k,#1=k,axis=axis,largest=largest?,sorted=sorted?", NULL},
    {"CumSum", "CumSum", "", "x-", "#1=axis,exclusive=exclusive?,reverse=reverse?", NULL},
    {"Softmax", "Softmax", "", "x", "", prepare_softmax},
    {"LogSoftmax", "Softmax", "log = yes; ", "x", "", prepare_softmax},
    {"LRN", "LRN", "", "x", "size=size,alpha=alpha,beta=beta,bias=bias", NULL},
    {"LayerNormalization", "Normalization", "kind = layer; ", "xww",
     "axis=axis,epsilon=epsilon", prepare_normalization},
    {"InstanceNormalization", "Normalization", "kind = instance; ", "xww",
     "epsilon=epsilon", NULL},
    {"BatchNormalization", "Normalization", "kind = batch; ", "xwwww", "epsilon=epsilon",
     prepare_batch},
    {"LpNormalization", "Normalization", "kind = lp; ", "x", "axis=axis,p=p", NULL},
    {"Gather", "Gather", "", "xx", "axis=axis", NULL},
    {"GatherElements", "Gather", "mode = elements; ", "xx", "axis=axis", NULL},
    {"GatherND", "Gather", "mode = nd; ", "xx", "batch_dims=batch_dims", NULL},
    {"Scatter", "Scatter", "", "xxx", "axis=axis", NULL},
    {"ScatterElements", "Scatter", "", "xxx", "axis=axis,reduction=reduction", NULL},
    {"ScatterND", "Scatter", "mode = nd; ", "xxx", "reduction=reduction", NULL},
    {"ReverseSequence", "ReverseSequence", "", "xx",
     "batch_axis=batch_axis,time_axis=time_axis", NULL},
    {"GridSample", "GridSample", "", "xx", "padding_mode=padding,"
     "align_corners=align_corners?", prepare_grid},
    {"RoiAlign", "RoiAlign", "", "xxx",
     "mode=mode,sampling_ratio=sampling,spatial_scale=scale", prepare_roi},
    {"NonMaxSuppression", "NonMaxSuppression", "", "xx---",
     "#2=max_output,#3=iou,#4=score", prepare_suppression},
    {"Concat", "Concatenation", "", "x+", "axis=axis", NULL},
    {"Slice", "Slice", "", "x----", "starts=begin,ends=end,axes=axes,#1=begin,#2=end,"
     "#3=axes,#4=step", NULL},
    {"Split", "Slice", "", "x-", "", prepare_split},
    {"Pad", "Padding", "", "x--", "mode=mode,value=value,#2=value", prepare_pad},
    {"Expand", "Expand", "", "x-", "#1=shape", NULL},
    {"Tile", "Expand", "", "x-", "#1=repeats", NULL},
    {"Trilu", "Triangle", "", "x-", "upper=upper?,#1=k", NULL},
    {"Reshape", "Shuffle", "", "x-", "", prepare_shape},
    {"Flatten", "Shuffle", "", "x", "", prepare_shape},
    {"Squeeze", "Shuffle", "", "x-", "", prepare_shape},
    {"Unsqueeze", "Shuffle", "", "x-", "", prepare_shape},
    {"Transpose", "Shuffle", "", "x", "perm=first", prepare_transpose},
    {"Identity", "Identity", "", "x", "", NULL},
    {"Dropout", "Identity", "", "x--", "", prepare_dropout},
    {"Resize", "Resize", "", "x---", "nearest_mode=nearest,cubic_coeff_a=cubic_a,"
     "exclude_outside=exclude_outside?,extrapolation_value=extrapolation",
     prepare_resize},
    {"Upsample", "Resize", "", "x-", "", prepare_resize},
    {"QuantizeLinear", "Quantize", "", "xww", "axis=axis,saturate=saturate?",
     prepare_quantize},
    {"DequantizeLinear", "Dequantize", "", "xww", "axis=axis", NULL},
};
/* clang-format on */

static void add_port(struct onnx_job *j, char kind, const struct pb_tensor *t)
{
    if (kind == 'x' && j->n_in == HARNESS_INPUTS)
        j->reason = "too many inputs";
    else if (kind == 'x')
        j->in[j->n_in++] = t;
    else if (kind == 'w')
        j->weight[j->n_weights++] = t;
}

/* The layer's inputs and weights; those at the end that are absent are not given. */
static void take_ports(struct onnx_job *j, const char *ports)
{
    char kind = '-';
    for (int i = 0; i < j->m->n_in; i++) {
        kind = *ports && *ports != '+' ? *ports++ : *ports == '+' ? kind : '-';
        add_port(j, kind, j->given[i]);
    }
    while (j->n_in > 0 && !j->in[j->n_in - 1])
        j->n_in--;
}

bool onnx_map_each(const char *op)
{
    return strcmp(op, "Split") == 0;
}

bool onnx_map(struct onnx_job *j)
{
    const struct row *row = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(rows) && !row; i++)
        row = strcmp(rows[i].op, j->m->op) == 0 ? &rows[i] : NULL;
    if (!row)
        return false;
    j->layer = row->layer;
    for (int i = 0; i < HARNESS_OUTPUTS; i++)
        j->out[i] = onnx_map_each(row->op) ? (i == 0 ? j->output : -1)
                    : i < j->m->n_out      ? i
                                           : -1;
    snprintf(j->attrs, sizeof j->attrs, "%s", row->fixed);
    take_ports(j, row->ports);
    translate(j, row->names);
    if (row->prepare && !j->reason)
        row->prepare(j);
    return true;
}
