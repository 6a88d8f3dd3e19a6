/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX models and tensors, as their files say them: names, nodes, attributes, values.
 * Nothing here knows an operator. A file is hostile input: it is read through a private
 * mapping by a reader that cannot see past the message it is in, within onnx_limits, and
 * whatever it claims is checked against the bytes there are before memory is asked for.
 *
 * All that a model points to is the model's: texts, lists and messages in its memory,
 * values in the mapping of its file or of a file beside it where they lie aligned. A
 * model may be read by many threads.
 */
#ifndef IO_ONNX_MODEL_H
#define IO_ONNX_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

/* TensorProto.DataType. */
enum onnx_type {
    ONNX_UNDEFINED,
    ONNX_FLOAT,
    ONNX_UINT8,
    ONNX_INT8,
    ONNX_UINT16,
    ONNX_INT16,
    ONNX_INT32,
    ONNX_INT64,
    ONNX_STRING,
    ONNX_BOOL,
    ONNX_FLOAT16,
    ONNX_DOUBLE,
    ONNX_UINT32,
    ONNX_UINT64,
    ONNX_COMPLEX64,
    ONNX_COMPLEX128,
    ONNX_BFLOAT16,
    ONNX_FLOAT8E4M3FN,
    ONNX_FLOAT8E4M3FNUZ,
    ONNX_FLOAT8E5M2,
    ONNX_FLOAT8E5M2FNUZ,
    ONNX_UINT4,
    ONNX_INT4,
    ONNX_FLOAT4E2M1,
    ONNX_FLOAT8E8M0,
    ONNX_UINT2,
    ONNX_INT2,
    ONNX_TYPE_COUNT
};

/* AttributeProto.AttributeType. */
enum onnx_kind {
    ONNX_A_NONE,
    ONNX_A_REAL,
    ONNX_A_INTEGER,
    ONNX_A_TEXT,
    ONNX_A_TENSOR,
    ONNX_A_GRAPH,
    ONNX_A_REALS,
    ONNX_A_INTEGERS,
    ONNX_A_TEXTS,
    ONNX_A_TENSORS,
    ONNX_A_GRAPHS,
    ONNX_A_SPARSE_TENSOR,
    ONNX_A_SPARSE_TENSORS,
    ONNX_A_TYPE,
    ONNX_A_TYPES
};

/* What a value is, beside a tensor. */
enum onnx_form {
    ONNX_TENSOR,
    ONNX_SPARSE,
    ONNX_SEQUENCE,
    ONNX_MAP,
    ONNX_OPTIONAL,
    ONNX_UNTYPED
};

struct onnx_limits {
    uint64_t file_bytes;     /* 2 GiB: protobuf's own */
    uint64_t external_bytes; /* 1 TiB: of a file beside the model */
    uint32_t depth;          /* 32: of messages in each other */
    uint32_t nodes;          /* 65,536: of the model, graphs in attributes included */
    uint32_t ports;          /* 1,024: inputs of a node, and outputs */
    uint32_t name_bytes;     /* 4,096 */
    /* 0: every value is aligned, by a copy where it is not in the file. Else a tensor of
     * so many bytes or more stays in its file as it lies there, for whoever only copies
     * or counts bytes. */
    uint64_t loose_bytes;
};
extern const struct onnx_limits onnx_default_limits;

struct onnx_tensor {
    const char *name; /* "" where there is none; so are all texts here */
    enum onnx_type type;
    int rank; /* 0: a scalar */
    int64_t dims[8];
    int64_t count;
    /* Row-major elements, little-endian, aligned to their size unless loose; 4- and 2-bit
     * elements as the file packs them, low bits first. NULL for STRING and where count
     * is 0. */
    const void *data;
    size_t bytes;
    const char *location; /* the file of external data, as the model names it */
    bool loose;           /* data are not aligned: see limits.loose_bytes */
};

struct onnx_dim {
    int64_t value;      /* -1: not said */
    const char *symbol; /* "batch", or "" */
};

struct onnx_value {
    const char *name;
    enum onnx_form form;
    enum onnx_type type; /* of the elements; ONNX_UNDEFINED: not said */
    int rank;            /* -1: not said */
    struct onnx_dim dims[8];
};

struct onnx_graph;

struct onnx_attribute {
    const char *name;
    enum onnx_kind
        kind; /* told by the fields that are there where the file does not say */
    const char *reference; /* name of the function's attribute that gives the value, "" */
    double real;
    int64_t integer;
    const char *text;
    size_t text_bytes; /* a text may hold any byte; it ends in a further NUL */
    const struct onnx_tensor *tensors; /* TENSOR: one */
    const struct onnx_graph *graphs;   /* GRAPH: one */
    const double *reals;               /* as float in the file */
    const int64_t *integers;
    const char *const *texts;
    size_t n; /* elements of the list that `kind` says */
};

struct onnx_node {
    const char *name, *op, *domain, *overload;
    const char *const *inputs; /* "": absent */
    const char *const *outputs;
    size_t n_inputs, n_outputs;
    const struct onnx_attribute *attributes;
    size_t n_attributes;
};

struct onnx_graph {
    const char *name;
    const struct onnx_node *nodes;
    const struct onnx_tensor *initializers;
    const struct onnx_value *inputs, *outputs, *values; /* values: value_info */
    size_t n_nodes, n_initializers, n_inputs, n_outputs, n_values;
    size_t n_sparse; /* sparse initializers, which are not read */
};

struct onnx_opset {
    const char *domain; /* "" is ai.onnx, written so or in full */
    int64_t version;
};

struct onnx_function {
    const char *name, *domain, *overload;
    const char *const *inputs, *const *outputs, *const *attributes;
    size_t n_inputs, n_outputs, n_attributes;
    const struct onnx_attribute *defaults;
    size_t n_defaults;
    const struct onnx_node *nodes;
    size_t n_nodes;
    const struct onnx_opset *opsets;
    size_t n_opsets;
};

struct onnx_model {
    const char *path;
    int64_t ir_version;
    const char *producer, *producer_version;
    const struct onnx_opset *opsets;
    size_t n_opsets;
    struct onnx_graph graph;
    const struct onnx_function *functions;
    size_t n_functions;
    struct onnx_memory *memory; /* of the reader */
};

/* Read a model and the values beside it, which are below its folder by the rules of
 * external data. limits NULL: the default ones. EPARSE names the file, the byte, the
 * message (GraphProto.node[7].attribute[2]), what was found and what is allowed. */
int onnx_open(const struct onnx_model **out, const char *path,
              const struct onnx_limits *limits, strata_error *err);
/* Over bytes that stay the caller's while the model lives; `path` is for messages, and
 * external data are refused. For tests and fuzzing. */
int onnx_parse(const struct onnx_model **out, const void *bytes, size_t size,
               const char *path, const struct onnx_limits *limits, strata_error *err);
void onnx_close(const struct onnx_model *m);
struct stat;
/* The i-th file beside the model that values were read from, as the model calls it, and
 * its state before it was opened, zeros where that is not known; NULL: there are fewer.
 */
const char *onnx_file_beside(const struct onnx_model *m, size_t i, struct stat *state);

/* A TensorProto in a file of its own (input_0.pb): the graph of the model that is given
 * has it as its one initializer. */
int onnx_open_tensor(const struct onnx_model **out, const char *path,
                     const struct onnx_limits *limits, strata_error *err);

/* "float16", "?" beyond the table. */
const char *onnx_type_name(enum onnx_type type);
/* Bits of an element; 0 for STRING and what is unknown. */
int onnx_type_bits(enum onnx_type type);
/* The core's dtype with the same elements (STRATA_FP32 ...), or -1. */
int onnx_type_core(enum onnx_type type);
/* That, or, of a type that the core has not, the dtype that holds each of its values: of
 * UINT64, INT64 with the same bits. -1: there is none. */
int onnx_type_carrier(enum onnx_type type);
/* The elements of such a tensor as t->count of its carrier, which `out` has room for. */
void onnx_widen(void *out, const struct onnx_tensor *t);

/* By name, or NULL. */
const struct onnx_attribute *onnx_attribute(const struct onnx_node *n, const char *name);

#endif /* IO_ONNX_MODEL_H */
