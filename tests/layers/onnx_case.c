/* SPDX-License-Identifier: Apache-2.0
 *
 * case.tsv: tab-separated lines `node OP INPUTS OUTPUTS`, `attr NAME VALUE` (of the node
 * before), and `input|init|output ID TYPE DIMS FILE`.
 */
#include "tests/layers/onnx_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t onnx_count(const struct harness_shape *shape)
{
    int64_t count = 1;
    for (int d = 0; d < shape->rank; d++)
        count *= shape->dims[d];
    return count;
}

const char *onnx_attr(const struct onnx_node *n, const char *name, const char *otherwise)
{
    for (int i = 0; i < n->n_attrs; i++)
        if (strcmp(n->attrs[i].name, name) == 0)
            return n->attrs[i].text;
    return otherwise;
}

/* Numbers separated by ',' or 'x'; how many, or -1. */
static int read_numbers(const char *text, int64_t *out, int most)
{
    int n = 0;
    while (*text) {
        char *stop;
        if (n == most)
            return -1;
        out[n++] = strtoll(text, &stop, 10);
        if (stop == text)
            return -1;
        text = *stop ? stop + 1 : stop;
    }
    return n;
}

static int read_ids(const char *text, int *out)
{
    int64_t ids[ONNX_PORTS];
    int n = read_numbers(text, ids, ONNX_PORTS);
    for (int i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= ONNX_VALUES)
            return -1;
        out[i] = (int)ids[i];
    }
    return n;
}

/* Little-endian f32 or i64 elements as FP64. */
static double *read_elements(const char *path, const char *type, int64_t count)
{
    size_t size = strcmp(type, "i64") == 0 ? 8 : 4;
    FILE *file = fopen(path, "rb");
    char *raw = malloc((size_t)count * size + 1);
    double *data = malloc((size_t)count * sizeof *data + 1);
    bool whole = file && raw && data &&
                 fread(raw, size, (size_t)count, file) == (size_t)count;
    for (int64_t i = 0; whole && i < count; i++)
        if (size == 8)
            data[i] = (double)((const int64_t *)(void *)raw)[i];
        else
            data[i] = (double)((const float *)(void *)raw)[i];
    if (file)
        fclose(file);
    free(raw);
    if (whole)
        return data;
    free(data);
    return NULL;
}

/* The first line of a tab-separated field list; empty fields stay. */
static int split(char *line, char **fields, int most)
{
    int n = 0;
    line[strcspn(line, "\n")] = '\0';
    while (line && n < most)
        fields[n++] = strsep(&line, "\t");
    return n;
}

static bool read_value(struct onnx_case *c, const char *folder, char **f)
{
    char path[4096];
    int id;
    if (read_ids(f[1], &id) != 1)
        return false;
    struct onnx_value *v = &c->values[id];
    v->shape.rank = read_numbers(f[3], v->shape.dims, STRATA_MAX_RANK);
    if (v->shape.rank < 0)
        return false;
    snprintf(path, sizeof path, "%s/%s", folder, f[4]);
    double **to = strcmp(f[0], "output") == 0 ? &v->expected : &v->data;
    if (!*to)
        *to = read_elements(path, f[2], onnx_count(&v->shape));
    return *to;
}

static bool read_node(struct onnx_case *c, char **f)
{
    if (c->n_nodes == ONNX_NODES)
        return false;
    struct onnx_node *n = &c->nodes[c->n_nodes++];
    snprintf(n->op, sizeof n->op, "%s", f[1]);
    n->n_in = read_ids(f[2], n->in);
    n->n_out = read_ids(f[3], n->out);
    return n->n_in >= 0 && n->n_out > 0;
}

static bool read_attr(struct onnx_case *c, char **f)
{
    struct onnx_node *n = c->n_nodes > 0 ? &c->nodes[c->n_nodes - 1] : NULL;
    if (!n || n->n_attrs == ONNX_ATTRS)
        return false;
    snprintf(n->attrs[n->n_attrs].name, sizeof n->attrs[0].name, "%s", f[1]);
    snprintf(n->attrs[n->n_attrs++].text, sizeof n->attrs[0].text, "%s", f[2]);
    return true;
}

bool onnx_case_read(struct onnx_case *c, const char *folder, strata_error *err)
{
    char path[4096], line[1024], *f[6];
    memset(c, 0, sizeof *c);
    snprintf(path, sizeof path, "%s/case.tsv", folder);
    FILE *file = fopen(path, "r");
    bool good = file;
    for (int number = 1; good && fgets(line, sizeof line, file); number++) {
        int n = split(line, f, 6);
        if (n == 4 && strcmp(f[0], "node") == 0)
            good = read_node(c, f);
        else if (n == 3 && strcmp(f[0], "attr") == 0)
            good = read_attr(c, f);
        else if (n == 5)
            good = read_value(c, folder, f);
        if (!good)
            error_set(err, STRATA_EPARSE, "%s:%d: not understood", path, number);
    }
    if (file)
        fclose(file);
    else
        error_set(err, STRATA_EIO, "%s: cannot be opened", path);
    return good;
}

void onnx_case_free(struct onnx_case *c)
{
    for (int i = 0; i < ONNX_VALUES; i++) {
        free(c->values[i].data);
        free(c->values[i].expected);
    }
    memset(c, 0, sizeof *c);
}
