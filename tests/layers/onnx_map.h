/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX operators as layers: which one, with which attributes, inputs and weights. For
 * tests; it is no import.
 */
#ifndef TESTS_LAYERS_ONNX_MAP_H
#define TESTS_LAYERS_ONNX_MAP_H

#include "tests/layers/onnx_pb.h"

struct onnx_job {
    const struct pb_model *m;
    /* Of the operator's ports; NULL: absent, or not known. */
    const struct pb_tensor *given[PB_PORTS], *expected[PB_PORTS];
    int output; /* that is wanted, where an operator is a layer for each of them */
    const char *layer;
    char attrs[1024];
    const struct pb_tensor *in[HARNESS_INPUTS], *weight[HARNESS_WEIGHTS];
    int n_in, n_weights;
    int out[HARNESS_OUTPUTS]; /* the operator's output that is the layer's; -1: none */
    bool trimmed; /* output 0 has rows beyond the operator's: as many as output 1 says */
    const char *reason; /* why it cannot be run; NULL: it can */
};

/* Fill the rest, given m, given, expected and output. False: no row maps the operator. */
bool onnx_map(struct onnx_job *j);
/* Whether each output of an operator is a layer of its own. */
bool onnx_map_each(const char *op);

#endif /* TESTS_LAYERS_ONNX_MAP_H */
