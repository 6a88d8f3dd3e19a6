/* SPDX-License-Identifier: Apache-2.0
 *
 * Models from text, in memory: statements between ';', as patterns have them, but with
 * attributes:
 *
 *     t = Transpose x perm=0,2,1; y = MatMul t {3x4}
 *
 * A name is a value (up to three before the '=', with commas between them), a number a
 * scalar of FP32, {3x4} random FP32 of these dims, {3}*1 one number in all of them,
 * [1,-1] integers, <1> one of rank 0; - an input that is absent. An attribute is an
 * integer, a number with a point, a list with commas (one of one ends in a comma) or a
 * word.
 */
#ifndef TESTS_NETWORK_IMPORT_STATEMENTS_H
#define TESTS_NETWORK_IMPORT_STATEMENTS_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "io/onnx/model.h"

enum {
    MODEL_TEXT_MOST = 32,
    MODEL_TEXT_PORTS = 6,
    MODEL_TEXT_OUTPUTS = 3,
    MODEL_TEXT_NUMBERS = 8192
};

struct model_text {
    struct onnx_model model;
    struct onnx_opset opset;
    struct onnx_value inputs[MODEL_TEXT_PORTS], outputs[MODEL_TEXT_PORTS];
    struct onnx_node nodes[MODEL_TEXT_MOST];
    struct onnx_tensor constants[MODEL_TEXT_MOST];
    struct onnx_attribute attributes[MODEL_TEXT_MOST][MODEL_TEXT_PORTS];
    const char *ports[MODEL_TEXT_MOST][MODEL_TEXT_PORTS + MODEL_TEXT_OUTPUTS];
    int64_t lists[MODEL_TEXT_MOST * MODEL_TEXT_PORTS];
    double numbers[MODEL_TEXT_NUMBERS];
    size_t n_lists, n_numbers;
    char names[MODEL_TEXT_MOST][8];
    char text[4096];
    unsigned seed;
};

/* In [-2, 2), the same on every machine. */
static inline float model_text_random(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) / (1 << 22) - 2;
}

static inline int model_text_dims(const char *text, int64_t *dims)
{
    int n = 0;
    for (char *end = (char *)text; *end && *end != '}'; end += *end == 'x')
        dims[n++] = strtoll(end, &end, 10);
    return n;
}

static inline void *model_text_room(struct model_text *t, size_t bytes)
{
    void *out = &t->numbers[t->n_numbers];
    t->n_numbers += (bytes + 7) / 8;
    cr_assert_leq(t->n_numbers, MODEL_TEXT_NUMBERS);
    return out;
}

static inline const char *model_text_constant(struct model_text *t, const char *word)
{
    const size_t i = t->model.graph.n_initializers++;
    struct onnx_tensor *c = &t->constants[i];
    cr_assert_lt(i, MODEL_TEXT_MOST);
    snprintf(t->names[i], sizeof t->names[i], "c%zu", i);
    *c = (struct onnx_tensor){.name = t->names[i], .type = ONNX_FLOAT, .count = 1};
    if (*word == '{')
        c->rank = model_text_dims(word + 1, c->dims);
    for (int d = 0; d < c->rank; d++)
        c->count *= c->dims[d];
    if (*word == '[' || *word == '<') {
        int64_t *v = model_text_room(t, 8 * sizeof *v);
        c->type = ONNX_INT64;
        c->rank = *word == '[';
        for (char *at = (char *)word + 1; *at != ']' && *at != '>'; at += *at == ',')
            v[c->dims[0]++] = strtoll(at, &at, 10);
        c->count = c->dims[0];
        c->data = v;
    } else {
        const char *fill = strchr(word, '*');
        float *v = model_text_room(t, (size_t)c->count * sizeof *v);
        for (int64_t k = 0; k < c->count; k++)
            v[k] = fill           ? strtof(fill + 1, NULL)
                   : *word == '{' ? model_text_random(&t->seed)
                                  : strtof(word, NULL);
        c->data = v;
    }
    c->bytes = (size_t)c->count * (c->type == ONNX_INT64 ? 8 : 4);
    return c->name;
}

static inline void model_text_attribute(struct model_text *t, struct onnx_attribute *a,
                                        const char *value)
{
    int64_t *list = &t->lists[t->n_lists];
    a->reference = "";
    if (isalpha((unsigned char)*value)) {
        a->kind = ONNX_A_TEXT;
        a->text = value;
        a->text_bytes = strlen(value);
    } else if (strchr(value, ',')) {
        a->kind = ONNX_A_INTEGERS;
        a->integers = list;
        for (char *at = (char *)value; *at; at += *at == ',')
            list[a->n++] = strtoll(at, &at, 10);
        t->n_lists += a->n;
    } else if (strchr(value, '.')) {
        a->kind = ONNX_A_REAL;
        a->real = strtod(value, NULL);
    } else {
        a->kind = ONNX_A_INTEGER;
        a->integer = strtoll(value, NULL, 10);
    }
}

static inline void model_text_op(struct onnx_node *n, char *word)
{
    char *colons = strstr(word, "::");
    n->op = colons ? colons + 2 : word;
    if (colons) {
        *colons = '\0';
        n->domain = word;
    }
}

static inline void model_text_outputs(struct model_text *t, struct onnx_node *n,
                                      char *names)
{
    const char **out = &t->ports[n - t->nodes][MODEL_TEXT_PORTS];
    for (char *name; (name = strsep(&names, ","));) {
        cr_assert_lt(n->n_outputs, MODEL_TEXT_OUTPUTS);
        out[n->n_outputs++] = name;
    }
    n->name = out[0];
}

static inline void model_text_node(struct model_text *t, char *statement)
{
    const size_t i = t->model.graph.n_nodes++;
    struct onnx_node *n = &t->nodes[i];
    char *rest = statement, *word;
    cr_assert_lt(i, MODEL_TEXT_MOST);
    *n = (struct onnx_node){.domain = "",
                            .overload = "",
                            .inputs = t->ports[i],
                            .outputs = &t->ports[i][MODEL_TEXT_PORTS],
                            .attributes = t->attributes[i]};
    for (int k = 0; (word = strsep(&rest, " "));) {
        char *equals = strchr(word, '=');
        if (!*word || (k == 1 && equals == word))
            continue;
        if (k++ == 0)
            model_text_outputs(t, n, word);
        else if (k == 2)
            model_text_op(n, word);
        else if (equals) {
            struct onnx_attribute *a = &t->attributes[i][n->n_attributes++];
            *equals = '\0';
            a->name = word;
            model_text_attribute(t, a, equals + 1);
        } else
            t->ports[i][n->n_inputs++] = strcmp(word, "-") == 0 ? ""
                                         : isalpha((unsigned char)*word)
                                             ? word
                                             : model_text_constant(t, word);
    }
}

/* `shapes`: "x=2x3 w=3x4"; outputs: the last statement's value, and the `further` one. */
static inline struct model_text *model_text_make(const char *shapes, const char *text,
                                                 const char *further)
{
    struct model_text *t = calloc(1, sizeof *t);
    struct onnx_graph *g;
    char *rest, *word;
    cr_assert(t && strlen(shapes) + strlen(text) + 2 < sizeof t->text);
    g = &t->model.graph;
    t->seed = 7;
    t->opset = (struct onnx_opset){"", 21};
    t->model = (struct onnx_model){.path = "text",
                                   .ir_version = 10,
                                   .producer = "",
                                   .producer_version = "",
                                   .opsets = &t->opset,
                                   .n_opsets = 1};
    *g = (struct onnx_graph){.name = "text",
                             .nodes = t->nodes,
                             .initializers = t->constants,
                             .inputs = t->inputs,
                             .outputs = t->outputs};
    snprintf(t->text, sizeof t->text, "%s;%s", shapes, text);
    rest = strchr(t->text, ';');
    *rest++ = '\0';
    for (char *list = t->text; (word = strsep(&list, " "));) {
        struct onnx_value *v = &t->inputs[g->n_inputs++];
        int64_t dims[8];
        char *equals = strchr(word, '=');
        *equals = '\0';
        *v = (struct onnx_value){.name = word, .type = ONNX_FLOAT};
        v->rank = model_text_dims(equals + 1, dims);
        for (int d = 0; d < v->rank; d++)
            v->dims[d] = (struct onnx_dim){dims[d], ""};
    }
    while ((word = strsep(&rest, ";")))
        model_text_node(t, word);
    t->outputs[g->n_outputs++] = (struct onnx_value){
        .name = t->nodes[g->n_nodes - 1].outputs[0], .type = ONNX_FLOAT, .rank = -1};
    if (further)
        t->outputs[g->n_outputs++] =
            (struct onnx_value){.name = further, .type = ONNX_FLOAT, .rank = -1};
    return t;
}

#endif /* TESTS_NETWORK_IMPORT_STATEMENTS_H */
