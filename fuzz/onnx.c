/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any bytes as an ONNX model, as a tensor of one, and as a model in a
 * file with values beside it. Everything that is read is used.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/onnx/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;

static void use_graph(const struct onnx_graph *g);

static void use_widened(const struct onnx_tensor *t)
{
    double *wide = malloc((size_t)t->count * sizeof *wide);
    if (wide)
        onnx_widen(wide, t);
    sink += wide && t->count ? (size_t)((char *)wide)[t->count - 1] : 0;
    free(wide);
}

static void use_tensor(const struct onnx_tensor *t)
{
    const int bits = onnx_type_bits(t->type);
    const size_t align = bits < 8 ? 1 : bits / 8 > 8 ? 8 : (size_t)bits / 8;
    const size_t part = t->type == ONNX_COMPLEX64 ? 4 : align;
    const unsigned char *data = t->data;
    size_t sum = strlen(t->name) + strlen(t->location);
    if (t->rank < 0 || t->rank > 8 || t->loose || (uintptr_t)data % part ||
        (data == NULL) != (t->count == 0 || t->type == ONNX_STRING))
        abort();
    for (size_t i = 0; data && i < t->bytes; i++)
        sum += data[i];
    for (size_t i = 0; t->type == ONNX_BOOL && i < t->bytes; i++)
        if (data[i] > 1)
            abort();
    if (data && onnx_type_core(t->type) < 0 && onnx_type_carrier(t->type) >= 0)
        use_widened(t);
    sink += sum;
}

static void use_value(const struct onnx_value *v)
{
    sink += strlen(v->name) + (size_t)v->form;
    if (v->rank < -1 || v->rank > 8)
        abort();
    for (int i = 0; i < v->rank; i++)
        sink += strlen(v->dims[i].symbol) + (v->dims[i].value >= 0);
}

static void use_attribute(const struct onnx_attribute *a)
{
    sink += strlen(a->name) + strlen(a->reference) + (size_t)a->text[a->text_bytes];
    for (size_t i = 0; i < a->n && !a->reference[0]; i++)
        switch (a->kind) {
        case ONNX_A_TENSOR:
        case ONNX_A_TENSORS:
            use_tensor(&a->tensors[i]);
            break;
        case ONNX_A_GRAPH:
        case ONNX_A_GRAPHS:
            use_graph(&a->graphs[i]);
            break;
        case ONNX_A_REALS:
            sink += a->reals[i] > 0;
            break;
        case ONNX_A_INTEGERS:
            sink += a->integers[i] > 0;
            break;
        case ONNX_A_TEXTS:
            sink += strlen(a->texts[i]);
            break;
        default:
            break;
        }
}

static void use_names(const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sink += strlen(names[i]);
}

static void use_nodes(const struct onnx_node *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sink += strlen(nodes[i].name) + strlen(nodes[i].domain);
        if (nodes[i].op[0] == '\0')
            abort();
        use_names(nodes[i].inputs, nodes[i].n_inputs);
        use_names(nodes[i].outputs, nodes[i].n_outputs);
        for (size_t k = 0; k < nodes[i].n_attributes; k++) {
            const struct onnx_attribute *a = &nodes[i].attributes[k];
            use_attribute(a);
            if (onnx_attribute(&nodes[i], a->name) != a)
                abort();
        }
    }
}

static void use_graph(const struct onnx_graph *g)
{
    sink += strlen(g->name) + g->n_sparse;
    use_nodes(g->nodes, g->n_nodes);
    for (size_t i = 0; i < g->n_initializers; i++)
        use_tensor(&g->initializers[i]);
    for (size_t i = 0; i < g->n_inputs; i++)
        use_value(&g->inputs[i]);
    for (size_t i = 0; i < g->n_outputs; i++)
        use_value(&g->outputs[i]);
    for (size_t i = 0; i < g->n_values; i++)
        use_value(&g->values[i]);
}

static void use_model(const struct onnx_model *m)
{
    sink += strlen(m->path) + strlen(m->producer) + strlen(m->producer_version);
    for (size_t i = 0; i < m->n_opsets; i++)
        sink += strlen(m->opsets[i].domain);
    use_graph(&m->graph);
    for (size_t i = 0; i < m->n_functions; i++) {
        const struct onnx_function *f = &m->functions[i];
        sink += strlen(f->name) + strlen(f->domain) + f->n_opsets;
        use_names(f->inputs, f->n_inputs);
        use_names(f->outputs, f->n_outputs);
        use_names(f->attributes, f->n_attributes);
        use_nodes(f->nodes, f->n_nodes);
        for (size_t k = 0; k < f->n_defaults; k++)
            use_attribute(&f->defaults[k]);
    }
}

static void check(const struct onnx_model *m, int status, const strata_error *err)
{
    if (status != err->status || (status == STRATA_OK) != (m != NULL))
        abort();
    if (m)
        use_model(m);
    onnx_close(m);
}

static void parse(const uint8_t *data, size_t size)
{
    strata_error err = {0};
    const struct onnx_model *m;
    int status = onnx_parse(&m, data, size, "fuzz", NULL, &err);
    check(m, status, &err);
}

static size_t put_length(uint8_t *out, size_t n)
{
    size_t size = 0;
    for (; n > 0x7f; n >>= 7)
        out[size++] = (uint8_t)((n & 0x7f) | 0x80);
    out[size++] = (uint8_t)n;
    return size;
}

/* As the one initializer of a graph: few mutations keep three lengths right. */
static void parse_tensor(const uint8_t *data, size_t size)
{
    uint8_t *model = malloc(size + 32), inner[16];
    size_t n = 0, head = 0;
    if (!model)
        return;
    inner[head++] = 5 << 3 | 2;
    head += put_length(inner + head, size);
    model[n++] = 7 << 3 | 2;
    n += put_length(model + n, head + size);
    memcpy(model + n, inner, head);
    if (size)
        memcpy(model + n + head, data, size);
    model = realloc(model, n + head + size); /* for the sanitizer */
    if (model)
        parse(model, n + head + size);
    free(model);
}

static void write_file(const char *path, const uint8_t *data, size_t size)
{
    FILE *f = fopen(path, "w");
    if (!f)
        abort();
    if (size)
        fwrite(data, 1, size, f);
    fclose(f);
}

/* Values are looked for in the file w beside the model. */
static void open_file(const uint8_t *data, size_t size)
{
    static char folder[] = "/tmp/strata-fuzz-XXXXXX", path[64];
    static const uint8_t values[64] = {1};
    strata_error err = {0};
    const struct onnx_model *m;
    if (!path[0]) {
        if (!mkdtemp(folder))
            abort();
        snprintf(path, sizeof path, "%s/w", folder);
        write_file(path, values, sizeof values);
        snprintf(path, sizeof path, "%s/m", folder);
    }
    write_file(path, data, size);
    int status = onnx_open(&m, path, NULL, &err);
    check(m, status, &err);
    err = (strata_error){0};
    status = onnx_open_tensor(&m, path, NULL, &err);
    check(m, status, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse(data, size);
    parse_tensor(data, size);
    if (size % 16 == 0)
        open_file(data, size);
    return 0;
}
