/* SPDX-License-Identifier: Apache-2.0
 *
 * Operator cases that nobody in this project wrote, through every host impl and format
 * of the layer that an ONNX operator maps to. To map one more operator, add a row to
 * `mappings`, its attributes to `attributes`, and a `prepare` where text is not enough.
 * Operators without a layer are reported by name.
 */
#include "tests/layers/onnx_case.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/format.h"

#define LEAST_CASES 75 /* of the 99; fewer means that a mapping was lost */

/* One layer to run: an operator, or one output of it. */
struct job {
    const struct onnx_case *c;
    const struct onnx_node *op;
    int output; /* index into op->out */
    char attrs[1024];
    struct onnx_value in[HARNESS_INPUTS], weight[HARNESS_WEIGHTS]; /* not owned */
    int n_in, n_weights;
    double made[HARNESS_WEIGHTS][64]; /* values computed here */
    const char *reason;               /* why it cannot be run */
};

static void add_attribute(struct job *j, const char *name, const char *text)
{
    size_t used = strlen(j->attrs);
    snprintf(j->attrs + used, sizeof j->attrs - used, "%s = %s; ", name, text);
    for (char *p = j->attrs + used + strlen(name) + 3; *p && *p != ';'; p++)
        if (*p == ' ' && p[1] != ';')
            *p = ',';
}

static void add_integers(struct job *j, const char *name, const int64_t *v, int n)
{
    char text[256] = "";
    for (int i = 0, used = 0; i < n; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%lld",
                         i ? "," : "", (long long)v[i]);
    add_attribute(j, name, text);
}

static int integers(const char *text, int64_t *out, int most)
{
    int n = 0;
    for (char *stop; n < most && text && *text; n++, text = stop + strspn(stop, " "))
        out[n] = strtoll(text, &stop, 10);
    return n;
}

static int64_t attr_integer(const struct job *j, const char *name, int64_t otherwise)
{
    const char *text = onnx_attr(j->op, name, NULL);
    return text ? strtoll(text, NULL, 10) : otherwise;
}

static double attr_real(const struct job *j, const char *name, double otherwise)
{
    const char *text = onnx_attr(j->op, name, NULL);
    return text ? strtod(text, NULL) : otherwise;
}

/* ---- operators whose attributes need more than a new name ---------------------- */

static void prepare_pad(struct job *j)
{
    int64_t pads[2 * STRATA_MAX_RANK];
    int n = integers(onnx_attr(j->op, "pads", ""), pads, 2 * STRATA_MAX_RANK);
    add_integers(j, "begin", pads, n / 2);
    add_integers(j, "end", pads + n / 2, n / 2);
}

/* Before opset 13, softmax flattens the dims from its axis on. */
static void prepare_softmax(struct job *j)
{
    int64_t axis = attr_integer(j, "axis", 1), rank = j->in[0].shape.rank;
    axis += axis < 0 ? rank : 0;
    for (int64_t d = axis + 1; d < rank; d++)
        if (j->in[0].shape.dims[d] != 1)
            j->reason = "softmax over several dims";
    add_integers(j, "axis", &axis, 1);
}

static void prepare_gemm(struct job *j)
{
    bool has_bias = attr_real(j, "beta", 1) != 0;
    if (attr_real(j, "alpha", 1) != 1 || (has_bias && attr_real(j, "beta", 1) != 1) ||
        attr_integer(j, "transA", 0))
        j->reason = "Gemm with factors";
    if (!has_bias)
        j->n_weights = 1;
    else if (j->weight[1].shape.rank != 1)
        j->reason = "Gemm with a matrix addend";
    add_attribute(j, "transposed", attr_integer(j, "transB", 0) ? "false" : "true");
}

/* y = (x - mean)/sqrt(var + epsilon)*gamma + beta, as a scale and a shift. */
static void prepare_batch_normalization(struct job *j)
{
    const struct onnx_value *w = j->weight;
    int64_t channels = onnx_count(&w[0].shape);
    for (int64_t c = 0; c < channels && c < 64; c++) {
        double scale = w[0].data[c] / sqrt(w[3].data[c] + attr_real(j, "epsilon", 1e-5));
        j->made[0][c] = scale;
        j->made[1][c] = w[1].data[c] - w[2].data[c] * scale;
    }
    j->weight[0].data = j->made[0];
    j->weight[1].data = j->made[1];
    j->n_weights = 2;
}

static void prepare_prelu(struct job *j)
{
    char text[32];
    if (onnx_count(&j->weight[0].shape) != 1) {
        j->reason = "PRelu with a slope per channel";
        return;
    }
    snprintf(text, sizeof text, "%.17g", j->weight[0].data[0]);
    add_attribute(j, "alpha", text);
    j->n_weights = 0;
}

static void prepare_reshape(struct job *j)
{
    const struct harness_shape *in = &j->in[0].shape;
    struct harness_shape out = { 0, { 0 } };
    int64_t axes[STRATA_MAX_RANK];
    int n = integers(onnx_attr(j->op, "axes", ""), axes, STRATA_MAX_RANK), k = 0;
    if (strcmp(j->op->op, "Unsqueeze") == 0) {
        for (int i = 0, d = 0; d < in->rank || i < n;)
            if (i < n && axes[i] == out.rank)
                out.dims[out.rank++] = 1, i++;
            else
                out.dims[out.rank++] = in->dims[d++];
    } else {
        for (int d = 0; d < in->rank; d++)
            if (k < n && axes[k] == d)
                k++;
            else
                out.dims[out.rank++] = in->dims[d];
    }
    add_integers(j, "shape", out.dims, out.rank);
}

static void prepare_flatten(struct job *j)
{
    int64_t shape[2] = { 1, 1 }, axis = attr_integer(j, "axis", 1);
    for (int d = 0; d < j->in[0].shape.rank; d++)
        shape[d >= axis] *= j->in[0].shape.dims[d];
    add_integers(j, "shape", shape, 2);
}

/* Each output of a split is a slice. */
static void prepare_split(struct job *j)
{
    int64_t axis = attr_integer(j, "axis", 0), parts[ONNX_PORTS], begin = 0;
    axis += axis < 0 ? j->in[0].shape.rank : 0;
    if (!integers(onnx_attr(j->op, "split", ""), parts, ONNX_PORTS))
        for (int i = 0; i < j->op->n_out; i++)
            parts[i] = j->in[0].shape.dims[axis] / j->op->n_out;
    for (int i = 0; i < j->output; i++)
        begin += parts[i];
    add_integers(j, "axes", &axis, 1);
    add_integers(j, "begin", &begin, 1);
    begin += parts[j->output];
    add_integers(j, "end", &begin, 1);
}

/* ---- tables -------------------------------------------------------------------- */

static const struct mapping {
    const char *op, *layer;
    const char *fixed; /* attributes that make the layer this operator */
    int data;          /* operator inputs that are layer inputs, the rest are weights;
                          0: all */
    void (*prepare)(struct job *);
} mappings[] = {
    { "Conv", "Convolution", "", 1, NULL },
    { "MaxPool", "Pooling", "kind = max; ", 1, NULL },
    { "AveragePool", "Pooling", "kind = average; ", 1, NULL },
    { "GlobalAveragePool", "Pooling", "kind = average; global = true; ", 1, NULL },
    { "GlobalMaxPool", "Pooling", "global = true; ", 1, NULL },
    { "Gemm", "FullyConnected", "", 1, prepare_gemm },
    { "MatMul", "FullyConnected", "transposed = true; ", 1, NULL },
    { "BatchNormalization", "Scale", "mode = channel; ", 1, prepare_batch_normalization },
    { "Relu", "Activation", "kind = relu; ", 1, NULL },
    { "LeakyRelu", "Activation", "kind = leaky_relu; ", 1, NULL },
    { "PRelu", "Activation", "kind = leaky_relu; ", 1, prepare_prelu },
    { "Clip", "Activation", "kind = clip; ", 1, NULL },
    { "Sigmoid", "Activation", "kind = sigmoid; ", 1, NULL },
    { "Tanh", "Activation", "kind = tanh; ", 1, NULL },
    { "Elu", "Activation", "kind = elu; ", 1, NULL },
    { "Selu", "Activation", "kind = selu; ", 1, NULL },
    { "Softplus", "Activation", "kind = softplus; ", 1, NULL },
    { "Softsign", "Activation", "kind = softsign; ", 1, NULL },
    { "Softmax", "Softmax", "", 1, prepare_softmax },
    { "LogSoftmax", "Softmax", "log = true; ", 1, prepare_softmax },
    { "Neg", "Scale", "scale = -1; ", 1, NULL },
    { "Sqrt", "Scale", "power = 0.5; ", 1, NULL },
    { "Add", "ElementWise", "op = sum; ", 0, NULL },
    { "Sub", "ElementWise", "op = sub; ", 0, NULL },
    { "Mul", "ElementWise", "op = product; ", 0, NULL },
    { "Div", "ElementWise", "op = div; ", 0, NULL },
    { "Max", "ElementWise", "op = max; ", 0, NULL },
    { "Min", "ElementWise", "op = min; ", 0, NULL },
    { "Pow", "ElementWise", "op = pow; ", 0, NULL },
    { "Concat", "Concatenation", "", 0, NULL },
    { "Split", "Slice", "", 1, prepare_split },
    { "Slice", "Slice", "", 1, NULL },
    { "Pad", "Padding", "", 1, prepare_pad },
    { "Transpose", "Shuffle", "", 1, NULL },
    { "Flatten", "Shuffle", "", 1, prepare_flatten },
    { "Squeeze", "Shuffle", "", 1, prepare_reshape },
    { "Unsqueeze", "Shuffle", "", 1, prepare_reshape },
    { "Identity", "Identity", "", 1, NULL },
};

static const struct attribute {
    const char *op; /* NULL: any */
    const char *theirs, *ours;
} attributes[] = {
    { NULL, "kernel_shape", "kernel" },
    { NULL, "strides", "stride" },
    { NULL, "dilations", "dilation" },
    { NULL, "group", "groups" },
    { "Conv", "pads", "pad" },
    { "MaxPool", "pads", "pad" },
    { "AveragePool", "pads", "pad" },
    { NULL, "count_include_pad", "count_include_pad" },
    { "LeakyRelu", "alpha", "alpha" },
    { "Elu", "alpha", "alpha" },
    { "Selu", "alpha", "alpha" },
    { "Selu", "gamma", "beta" },
    { "Clip", "min", "alpha" },
    { "Clip", "max", "beta" },
    { "Concat", "axis", "axis" },
    { "Slice", "axes", "axes" },
    { "Slice", "starts", "begin" },
    { "Slice", "ends", "end" },
    { "Pad", "mode", "mode" },
    { "Pad", "value", "value" },
    { "Transpose", "perm", "first" },
};

static const struct mapping *mapping_of(const char *op)
{
    for (size_t i = 0; i < ARRAY_LENGTH(mappings); i++)
        if (strcmp(mappings[i].op, op) == 0)
            return &mappings[i];
    return NULL;
}

static void translate(struct job *j)
{
    for (int i = 0; i < j->op->n_attrs; i++)
        for (size_t k = 0; k < ARRAY_LENGTH(attributes); k++)
            if (strcmp(attributes[k].theirs, j->op->attrs[i].name) == 0 &&
                (!attributes[k].op || strcmp(attributes[k].op, j->op->op) == 0))
                add_attribute(j, attributes[k].ours, j->op->attrs[i].text);
}

/* The layer's inputs and weights from the operator's; false with a reason. */
static bool job_make(struct job *j, const struct mapping *m)
{
    static const char unknown[] = "a constant that the case does not spell out";
    int n_data = m->data ? m->data : j->op->n_in;
    if (n_data > HARNESS_INPUTS)
        j->reason = "too many inputs";
    for (int i = 0; i < j->op->n_in && !j->reason; i++) {
        const struct onnx_value *v = &j->c->values[j->op->in[i]];
        if (i < n_data)
            j->in[j->n_in++] = *v;
        else if (j->n_weights < HARNESS_WEIGHTS)
            j->weight[j->n_weights++] = *v;
    }
    if (j->reason)
        return false;
    snprintf(j->attrs, sizeof j->attrs, "%s", m->fixed);
    translate(j);
    for (int i = 0; i < j->n_in; i++)
        j->reason = j->in[i].data ? j->reason : unknown;
    if (m->prepare && !j->reason)
        m->prepare(j);
    for (int i = 0; i < j->n_weights; i++)
        j->reason = j->weight[i].data ? j->reason : unknown;
    return !j->reason;
}

/* ---- running ------------------------------------------------------------------- */

static bool rank_has(const struct harness_node *n, const struct harness_formats *f)
{
    bool fits = true;
    for (int i = 0; i <= n->node.n_in; i++) {
        uint64_t mask = i < n->node.n_in ? f->in[i] : f->out[0];
        int rank = i < n->node.n_in ? n->in[i].rank : n->out[0].rank;
        const struct format *format = mask ? format_at(__builtin_ctzll(mask)) : NULL;
        fits &= format &&
                (format->dtype == STRATA_FP32 || format->dtype == STRATA_FP16) &&
                (rank > 1 || (format->vector == 1 && format->order == ORDER_LINEAR));
    }
    return fits;
}

static double worst_error(const double *got, const double *want, int64_t count)
{
    double largest = 1e-6, worst = 0;
    for (int64_t i = 0; i < count; i++) {
        double error = isnan(got[i]) && isnan(want[i]) ? 0 : fabs(got[i] - want[i]);
        largest = fmax(largest, fabs(want[i]));
        worst = error <= worst ? worst : error; /* keeps a NaN */
    }
    return worst / largest;
}

struct attempt {
    const char *name; /* of the case */
    struct harness_node n;
    const void *in[HARNESS_INPUTS], *weight[HARNESS_WEIGHTS];
    void *out[HARNESS_OUTPUTS];
    struct onnx_value *result; /* gets the first combination's output */
    int runs;
};

static void run_combination(struct attempt *a, const struct registry_impl *impl, int row,
                            const struct harness_formats *f)
{
    struct onnx_value *result = a->result;
    int64_t count = a->n.out[0].count;
    bool half = format_at(__builtin_ctzll(f->in[0]))->dtype == STRATA_FP16 ||
                format_at(__builtin_ctzll(f->out[0]))->dtype == STRATA_FP16;
    int status = harness_run(&a->n, impl, row, f, a->in, a->weight, NULL, a->out);
    if (a->n.vetoed)
        return;
    a->runs++;
    cr_expect(status == STRATA_OK, "%s, impl %s, %s: %s", a->name, impl->impl.name,
              format_mask_name(f->in[0], 4), a->n.err.message);
    if (status != STRATA_OK)
        return;
    if (result->expected) {
        double error = worst_error(a->out[0], result->expected, count);
        cr_expect(count == onnx_count(&result->shape) && error <= (half ? 2e-2 : 1e-5),
                  "%s, impl %s, %s: relative error %g", a->name, impl->impl.name,
                  format_mask_name(f->in[0], 4), error);
    }
    if (!result->data && !half) {
        result->data = malloc((size_t)count * sizeof(double) + 1);
        cr_assert(result->data);
        memcpy(result->data, a->out[0], (size_t)count * sizeof(double));
        result->shape.rank = a->n.out[0].rank;
        memcpy(result->shape.dims, a->n.out[0].dims, sizeof result->shape.dims);
    }
}

static void run_impls(struct attempt *a, const struct registry_layer *layer)
{
    for (size_t i = 0; i < layer->n_impls; i++) {
        const struct registry_impl *impl = &layer->impls[i];
        struct harness_formats f;
        if (impl->impl.device != STRATA_HOST)
            continue;
        for (uint32_t r = 0; r < impl->impl.rows.n; r++)
            for (int64_t k = 0; harness_combination(&f, &impl->rows[r], &a->n, k);
                 k++)
                if (rank_has(&a->n, &f))
                    run_combination(a, impl, (int)r, &f);
    }
}

static void run_job(const char *name, struct job *j, const struct registry_layer *layer,
                    struct onnx_value *result)
{
    struct harness_shape in[HARNESS_INPUTS], weight[HARNESS_WEIGHTS] = { 0 };
    struct attempt a = { .name = name, .result = result };
    for (int i = 0; i < j->n_in; i++) {
        in[i] = j->in[i].shape;
        a.in[i] = j->in[i].data;
    }
    for (int i = 0; i < j->n_weights; i++) {
        weight[i] = j->weight[i].shape;
        a.weight[i] = j->weight[i].data;
    }
    int status = harness_open(&a.n, layer, j->attrs, in, j->n_in, weight,
                              ~0u << j->n_weights);
    cr_expect(status == STRATA_OK, "%s: %s {%s}: %s", name, layer->full_name, j->attrs,
              a.n.err.message);
    if (status == STRATA_OK &&
        (a.out[0] = calloc((size_t)a.n.out[0].count, sizeof(double))))
        run_impls(&a, layer);
    cr_expect(a.runs > 0, "%s: no impl of %s ran", name, layer->full_name);
    free(a.out[0]);
    harness_close(&a.n);
}

/* Run a case node by node; NULL, or why it was skipped. */
static const char *run_case(const char *name, struct onnx_case *c,
                            strata_registry *registry)
{
    static char reason[128];
    for (int i = 0; i < c->n_nodes; i++) {
        const struct onnx_node *op = &c->nodes[i];
        const struct mapping *m = mapping_of(op->op);
        const struct registry_layer *layer;
        strata_error err = { 0 };
        if (strcmp(op->op, "Constant") == 0) /* its value stays unknown */
            continue;
        snprintf(reason, sizeof reason, "operator %s has no layer", op->op);
        if (!m)
            return reason;
        cr_assert(registry_find(registry, m->layer, &layer, &err) == STRATA_OK, "%s",
                  err.message);
        for (int o = 0; o < op->n_out; o++) {
            struct job j = { .c = c, .op = op, .output = o };
            if (!job_make(&j, m))
                return j.reason;
            run_job(name, &j, layer, &c->values[op->out[o]]);
        }
    }
    return NULL;
}

/* The folder of cases, or NULL. */
static const char *cases_folder(void)
{
    static char path[3072];
    const char *models = getenv("STRATA_MODELS"), *source = getenv("srcdir");
    if (models)
        snprintf(path, sizeof path, "%s/onnx_operator_cases", models);
    else
        snprintf(path, sizeof path, "%s/../shared/models/onnx_operator_cases",
                 source ? source : ".");
    DIR *folder = opendir(path);
    if (folder)
        closedir(folder);
    return folder ? path : NULL;
}

TestSuite(onnx_cases, .timeout = 600);

Test(onnx_cases, foreign_expectations_hold_in_every_impl_and_format)
{
    const char *folder = cases_folder();
    struct dirent **names = NULL;
    strata_error err = { 0 };
    int ran = 0, skipped = 0;
    if (!folder)
        cr_skip_test("shared/models/onnx_operator_cases is absent; set STRATA_MODELS");
    strata_registry *registry = harness_registry(&err);
    cr_assert(registry, "%s", err.message);
    int n = scandir(folder, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char path[4096];
        struct onnx_case c;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        if (strncmp(names[i]->d_name, "test_", 5) == 0) {
            error_clear(&err);
            cr_assert(onnx_case_read(&c, path, &err), "%s", err.message);
            const char *reason = run_case(names[i]->d_name, &c, registry);
            if (reason)
                fprintf(stderr, "# skipped %s: %s\n", names[i]->d_name, reason);
            *(reason ? &skipped : &ran) += 1;
            onnx_case_free(&c);
        }
        free(names[i]);
    }
    free(names);
    fprintf(stderr, "# %d cases ran, %d skipped\n", ran, skipped);
    cr_expect(ran >= LEAST_CASES, "only %d cases ran", ran);
    strata_registry_destroy(registry);
}
