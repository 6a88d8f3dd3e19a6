/* SPDX-License-Identifier: Apache-2.0
 *
 * Small ONNX models from a text, a line each:
 *
 *   ir 8 | opset 13 | opset my.domain 1
 *   input NAME TYPE DIMS            dims "2x3", "-" of a scalar; a name stays free, as
 *                                   does ? without one
 *   init NAME TYPE DIMS V V ...     a constant; f: float, i: int64, b: bool,
 *                                   u: uint8, c: int8
 *   node OP A,B -> C,D [KEY=V ...]  OP may be domain::OP, OP/OVERLOAD; _ is absent
 *   output NAME [TYPE DIMS]
 *   function domain::NAME A,B -> C [KEY|KEY=V ...]   its nodes, and "end"
 *
 * Values of attributes: 3, 1.5f, 'text', [1,2], [1.5f,2f], @name (the function's), and
 * { on a line's end, which begins a graph of lines up to one of } alone.
 */
#ifndef TESTS_NETWORK_IMPORT_MODEL_TEXT_H
#define TESTS_NETWORK_IMPORT_MODEL_TEXT_H

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/onnx/model.h"

struct message {
    unsigned char *bytes;
    size_t size;
};

static inline void put_bytes(struct message *m, const void *bytes, size_t size)
{
    m->bytes = realloc(m->bytes, m->size + size + 1);
    cr_assert_not_null(m->bytes);
    if (size)
        memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

static inline void put_varint(struct message *m, uint64_t v)
{
    do {
        const unsigned char byte = (unsigned char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        put_bytes(m, &byte, 1);
    } while (v >>= 7);
}

static inline void put_integer(struct message *m, unsigned field, int64_t v)
{
    put_varint(m, field << 3);
    put_varint(m, (uint64_t)v);
}

static inline void put_float(struct message *m, unsigned field, float v)
{
    put_varint(m, field << 3 | 5);
    put_bytes(m, &v, sizeof v);
}

static inline void put_string(struct message *m, unsigned field, const char *s, size_t n)
{
    put_varint(m, field << 3 | 2);
    put_varint(m, n);
    put_bytes(m, s, n);
}

static inline void put_text(struct message *m, unsigned field, const char *text)
{
    put_string(m, field, text, strlen(text));
}

/* The sub-message, which is freed. */
static inline void put_message(struct message *m, unsigned field, struct message *sub)
{
    put_string(m, field, (char *)sub->bytes, sub->size);
    free(sub->bytes);
    *sub = (struct message){0};
}

/* ---- parts of a line -----------------------------------------------------------------
 */

static inline int type_code(char c)
{
    return c == 'f'   ? ONNX_FLOAT
           : c == 'b' ? ONNX_BOOL
           : c == 'u' ? ONNX_UINT8
           : c == 'c' ? ONNX_INT8
                      : ONNX_INT64;
}

/* Numbers between 'x', as `field` of m each; inside messages where `wrapped`. */
static inline void put_dims(struct message *m, unsigned field, char *text, bool wrapped)
{
    char *rest = NULL;
    for (char *d = strtok_r(text, "x", &rest); d && *text != '-';
         d = strtok_r(NULL, "x", &rest)) {
        struct message dim = {0};
        if (!wrapped)
            put_integer(m, field, atoll(d));
        else if (*d >= '0' && *d <= '9')
            put_integer(&dim, 1, atoll(d));
        else if (*d != '?')
            put_text(&dim, 2, d);
        if (wrapped)
            put_message(m, field, &dim);
    }
}

/* NAME TYPE DIMS as a ValueInfoProto; only NAME: of no type. */
static inline void put_value_info(struct message *m, unsigned field, char *rest)
{
    struct message info = {0}, type = {0}, tensor = {0}, shape = {0};
    char *name = strtok_r(NULL, " ", &rest), *kind = strtok_r(NULL, " ", &rest);
    char *dims = strtok_r(NULL, " ", &rest);
    put_text(&info, 1, name);
    if (dims) {
        put_integer(&tensor, 1, type_code(*kind));
        put_dims(&shape, 1, dims, true);
        put_message(&tensor, 2, &shape);
        put_message(&type, 1, &tensor);
        put_message(&info, 2, &type);
    }
    put_message(m, field, &info);
}

/* NAME TYPE DIMS V V ... as a TensorProto. */
static inline void put_tensor(struct message *m, unsigned field, char *rest)
{
    struct message t = {0};
    char *name = strtok_r(NULL, " ", &rest), *kind = strtok_r(NULL, " ", &rest);
    char *dims = strtok_r(NULL, " ", &rest);
    put_dims(&t, 1, dims, false);
    put_integer(&t, 2, type_code(*kind));
    for (char *v = strtok_r(NULL, " ", &rest); v; v = strtok_r(NULL, " ", &rest))
        if (*kind == 'f')
            put_float(&t, 4, strtof(v, NULL));
        else
            put_integer(&t, strchr("buc", *kind) ? 5 : 7, atoll(v));
    put_text(&t, 8, name);
    put_message(m, field, &t);
}

/* Names between ',', as `field` each. */
static inline void put_names(struct message *m, unsigned field, char *text)
{
    char *rest = NULL;
    for (char *n = strtok_r(text, ",", &rest); n; n = strtok_r(NULL, ",", &rest))
        put_text(m, field, strcmp(n, "_") == 0 ? "" : n);
}

static inline void put_list(struct message *a, char *text)
{
    char *rest = NULL;
    const bool real = strchr(text, 'f') != NULL;
    for (char *v = strtok_r(text, "[,]", &rest); v; v = strtok_r(NULL, "[,]", &rest))
        if (real)
            put_float(a, 7, strtof(v, NULL));
        else
            put_integer(a, 8, atoll(v));
    put_integer(a, 20, real ? ONNX_A_REALS : ONNX_A_INTEGERS);
}

static inline void put_graph(struct message *g, char **lines);

/* KEY=V; a graph's lines are taken from `lines`. */
static inline void put_attribute(struct message *m, unsigned field, char *text,
                                 char **lines)
{
    struct message a = {0}, graph = {0};
    char *v = strchr(text, '=');
    cr_assert_not_null(v, "no attribute: %s", text);
    *v++ = '\0';
    put_text(&a, 1, text);
    if (*v == '{') {
        put_graph(&graph, lines);
        put_message(&a, 6, &graph);
        put_integer(&a, 20, ONNX_A_GRAPH);
    } else if (*v == '@') {
        put_text(&a, 21, v + 1);
        put_integer(&a, 20, ONNX_A_REAL);
    } else if (*v == '\'') {
        put_string(&a, 4, v + 1, strlen(v) - 2);
        put_integer(&a, 20, ONNX_A_TEXT);
    } else if (*v == '[') {
        put_list(&a, v);
    } else if (v[strlen(v) - 1] == 'f') {
        put_float(&a, 2, strtof(v, NULL));
        put_integer(&a, 20, ONNX_A_REAL);
    } else {
        put_integer(&a, 3, atoll(v));
        put_integer(&a, 20, ONNX_A_INTEGER);
    }
    put_message(m, field, &a);
}

/* domain::NAME: cut there; the domain, or "". */
static inline const char *cut_domain(char **name)
{
    const char *domain = *name;
    char *cut = strstr(*name, "::");
    if (!cut)
        return "";
    *cut = '\0';
    *name = cut + 2;
    return domain;
}

/* NAME/OVERLOAD: cut there; the overload, or "". */
static inline const char *cut_overload(char *name)
{
    char *cut = strchr(name, '/');
    if (!cut)
        return "";
    *cut = '\0';
    return cut + 1;
}

/* ---- lines ---------------------------------------------------------------------------
 */

static inline void put_node(struct message *m, unsigned field, char *rest, char **lines)
{
    static int count;
    struct message n = {0};
    char name[16], *op = strtok_r(NULL, " ", &rest), *in = strtok_r(NULL, " ", &rest);
    const char *domain = cut_domain(&op), *overload = cut_overload(op);
    if (strcmp(in, "->") != 0) {
        put_names(&n, 1, in);
        strtok_r(NULL, " ", &rest);
    }
    put_names(&n, 2, strtok_r(NULL, " ", &rest));
    snprintf(name, sizeof name, "n%d", count++);
    put_text(&n, 3, name);
    put_text(&n, 4, op);
    put_text(&n, 7, domain);
    put_text(&n, 8, overload);
    for (char *a = strtok_r(NULL, " ", &rest); a; a = strtok_r(NULL, " ", &rest))
        put_attribute(&n, 5, a, lines);
    put_message(m, field, &n);
}

/* A line of a graph, its first word taken; false: it is none. */
static inline bool put_graph_line(struct message *g, const char *word, char *rest,
                                  char **lines)
{
    if (strcmp(word, "node") == 0)
        put_node(g, 1, rest, lines);
    else if (strcmp(word, "init") == 0)
        put_tensor(g, 5, rest);
    else if (strcmp(word, "input") == 0)
        put_value_info(g, 11, rest);
    else if (strcmp(word, "output") == 0)
        put_value_info(g, 12, rest);
    else
        return false;
    return true;
}

/* Lines up to "}". */
static inline void put_graph(struct message *g, char **lines)
{
    char *line, *rest = NULL;
    put_text(g, 2, "graph");
    while ((line = strsep(lines, "\n"))) {
        char *word = strtok_r(line, " ", &rest);
        if (word && *word == '}')
            return;
        if (word)
            cr_assert(put_graph_line(g, word, rest, lines), "no line: %s", word);
    }
}

static inline void put_opset(struct message *m, unsigned field, char *rest)
{
    struct message o = {0};
    char *first = strtok_r(NULL, " ", &rest), *second = strtok_r(NULL, " ", &rest);
    put_text(&o, 1, second ? first : "");
    put_integer(&o, 2, atoll(second ? second : first));
    put_message(m, field, &o);
}

/* Lines up to "end". */
static inline void put_function(struct message *m, char *rest, char **lines)
{
    struct message f = {0};
    char *line, *name = strtok_r(NULL, " ", &rest);
    const char *domain = cut_domain(&name), *overload = cut_overload(name);
    put_text(&f, 1, name);
    put_text(&f, 10, domain);
    put_text(&f, 13, overload);
    put_names(&f, 4, strtok_r(NULL, " ", &rest));
    strtok_r(NULL, " ", &rest);
    put_names(&f, 5, strtok_r(NULL, " ", &rest));
    for (char *a = strtok_r(NULL, " ", &rest); a; a = strtok_r(NULL, " ", &rest))
        if (strchr(a, '='))
            put_attribute(&f, 11, a, lines);
        else
            put_text(&f, 6, a);
    while ((line = strsep(lines, "\n"))) {
        char *word = strtok_r(line, " ", &rest);
        if (word && strcmp(word, "end") == 0)
            break;
        if (word && strcmp(word, "opset") == 0)
            put_opset(&f, 9, rest);
        else if (word)
            put_node(&f, 7, rest, lines);
    }
    put_message(m, 25, &f);
}

/* The model's bytes, the caller's to free. */
static inline struct message model_bytes(const char *text)
{
    struct message m = {0}, graph = {0};
    char *copy = strdup(text), *lines = copy, *line, *rest = NULL;
    put_text(&graph, 2, "model");
    while ((line = strsep(&lines, "\n"))) {
        const char *word = strtok_r(line, " ", &rest);
        if (!word)
            continue;
        if (strcmp(word, "ir") == 0)
            put_integer(&m, 1, atoll(rest));
        else if (strcmp(word, "opset") == 0)
            put_opset(&m, 8, rest);
        else if (strcmp(word, "function") == 0)
            put_function(&m, rest, &lines);
        else
            cr_assert(put_graph_line(&graph, word, rest, &lines), "no line: %s", word);
    }
    put_message(&m, 7, &graph);
    free(copy);
    return m;
}

#endif /* TESTS_NETWORK_IMPORT_MODEL_TEXT_H */
