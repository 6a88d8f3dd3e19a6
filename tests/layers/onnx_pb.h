/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX models of one node and their tensors, read from protobuf files for tests: what
 * the wire says and no more, and nothing beyond the limits below.
 */
#ifndef TESTS_LAYERS_ONNX_PB_H
#define TESTS_LAYERS_ONNX_PB_H

#include "check/harness/harness.h"

#define PB_PORTS 16
#define PB_ATTRS 24
#define PB_LIST 64 /* numbers in an attribute */
#define PB_NAME 80

struct pb_tensor {
    char name[PB_NAME];
    struct harness_shape shape; /* rank 0: a scalar */
    int32_t dtype;              /* STRATA_*, or -1: none that there is */
    int type;                   /* ONNX's number */
    int64_t count;
    void *data; /* check/harness/number.h; owned */
};

struct pb_attr {
    char name[PB_NAME], text[PB_NAME];
    int kind; /* ONNX's AttributeType: 1 float, 2 int, 3 string, 6 floats, 7 ints */
    int64_t integer, integers[PB_LIST];
    double real, reals[PB_LIST];
    int n_integers, n_reals;
};

struct pb_model {
    int nodes;
    int64_t opset;
    char op[PB_NAME];
    char in[PB_PORTS][PB_NAME], out[PB_PORTS][PB_NAME]; /* of the node; "": absent */
    int n_in, n_out, n_attrs;
    char graph_in[PB_PORTS][PB_NAME];
    int n_graph_in;
    struct pb_attr attrs[PB_ATTRS];
};

/* False: not readable, or beyond the limits. */
bool pb_read_model(struct pb_model *m, const char *path);
/* As above; free in every case. */
bool pb_read_tensor(struct pb_tensor *t, const char *path);
void pb_free_tensor(struct pb_tensor *t);
/* STRATA_* of an ONNX element type, or -1. */
int32_t pb_dtype(int type);
const struct pb_attr *pb_attr(const struct pb_model *m, const char *name);

#endif /* TESTS_LAYERS_ONNX_PB_H */
