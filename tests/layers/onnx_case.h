/* SPDX-License-Identifier: Apache-2.0
 *
 * Operator cases exported from other frameworks: a small graph of ONNX operators as text
 * (case.tsv) with inputs, initialisers and expected outputs as raw files beside it.
 */
#ifndef TESTS_LAYERS_ONNX_CASE_H
#define TESTS_LAYERS_ONNX_CASE_H

#include <stdbool.h>

#include "check/harness/harness.h"

#define ONNX_NODES 8
#define ONNX_PORTS 6
#define ONNX_ATTRS 8
#define ONNX_VALUES 16

struct onnx_value {
    struct harness_shape shape;
    double *data;     /* NULL: not known (yet) */
    double *expected; /* of a graph output, else NULL */
};

struct onnx_node {
    char op[32];
    int in[ONNX_PORTS], out[ONNX_PORTS]; /* indices of values */
    int n_in, n_out, n_attrs;
    struct {
        char name[32], text[128];
    } attrs[ONNX_ATTRS];
};

struct onnx_case {
    struct onnx_node nodes[ONNX_NODES];
    struct onnx_value values[ONNX_VALUES];
    int n_nodes;
};

/* Read FOLDER/case.tsv and the files it names. False with the reason in err; free in
 * either case. */
bool onnx_case_read(struct onnx_case *c, const char *folder, strata_error *err);
void onnx_case_free(struct onnx_case *c);

int64_t onnx_count(const struct harness_shape *shape);
/* Text of an attribute, or `otherwise`. */
const char *onnx_attr(const struct onnx_node *n, const char *name, const char *otherwise);

#endif /* TESTS_LAYERS_ONNX_CASE_H */
