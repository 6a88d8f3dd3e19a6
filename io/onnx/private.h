/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the reader share. A message is decoded into a raw struct by its table
 * of fields (fields.c, decode.c), then its `finish` checks it and makes what model.h
 * promises of it.
 */
#ifndef IO_ONNX_PRIVATE_H
#define IO_ONNX_PRIVATE_H

#include "io/file.h"
#include "io/onnx/model.h"
#include "io/onnx/wire.h"

/* ---- memory (memory.c) ---------------------------------------------------------------
 * Of one model: blocks, and the files that values lie in. */

struct onnx_memory;
struct onnx_memory *onnx_memory_new(strata_error *err);
void onnx_memory_free(struct onnx_memory *m);
/* Memory for n elements, cleared, aligned for all; NULL with ENOMEM, or EPARSE where the
 * model wants more than a file of its size may. */
void *onnx_allocate(struct onnx_memory *m, size_t n, size_t size, strata_error *err);
/* size bytes and a NUL, aligned for bytes. */
char *onnx_copy_text(struct onnx_memory *m, const void *text, size_t size,
                     strata_error *err);
/* The memory takes the mapping over and allows for a file of this size. name: as the
 * model calls it, "" for the model itself. */
int onnx_keep_file(struct onnx_memory *m, const struct file_bytes *f, const char *name,
                   const struct stat *state, strata_error *err);
void onnx_allow(struct onnx_memory *m, size_t file_bytes);
const struct file_bytes *onnx_kept_file(const struct onnx_memory *m, const char *name);

/* ---- reading ------------------------------------------------------------------------
 */

struct onnx_reader {
    const uint8_t *file;
    const char *folder; /* where external data are; NULL: none are read */
    const char *linked; /* folder of what the model is a link to; NULL: it is none */
    const struct onnx_limits *limits;
    struct onnx_memory *memory;
    uint64_t nodes;
    uint32_t depth;
    bool placed; /* the error says where it is */
    strata_error *err;
};

struct onnx_bytes {
    const uint8_t *at;
    size_t size;
};

/* Raw structs: `seen` has bit i set where row i of the table was read. */
struct raw_opset {
    uint64_t seen;
    struct onnx_opset o;
};

struct raw_entry { /* StringStringEntryProto */
    uint64_t seen;
    struct onnx_entry {
        const char *key, *value;
    } o;
};

enum tensor_row {
    TENSOR_DIMS,
    TENSOR_TYPE,
    TENSOR_SEGMENT,
    TENSOR_FLOATS,
    TENSOR_INT32S,
    TENSOR_TEXTS,
    TENSOR_INT64S,
    TENSOR_NAME,
    TENSOR_RAW,
    TENSOR_DOUBLES,
    TENSOR_UINT64S,
    TENSOR_EXTERNAL,
    TENSOR_LOCATION,
};
struct raw_tensor {
    uint64_t seen;
    const char *name;
    int64_t type, location;
    const int64_t *dims;
    const float *floats;
    int32_t *int32s;
    const int64_t *int64s;
    uint64_t *uint64s;
    const double *doubles;
    struct onnx_bytes raw;
    const struct onnx_entry *external;
    size_t n_dims, n_floats, n_int32s, n_int64s, n_uint64s, n_doubles, n_texts,
        n_external;
};

enum { DIM_VALUE = 1, DIM_SYMBOL = 2 };
struct raw_dim {
    uint64_t seen;
    int64_t which; /* 0, DIM_VALUE, DIM_SYMBOL */
    int64_t value;
    const char *symbol;
};
struct raw_shape {
    uint64_t seen;
    const struct onnx_dim *dims;
    size_t n_dims;
};
enum tensor_type_row { TENSOR_TYPE_ELEMENT, TENSOR_TYPE_SHAPE };
struct raw_tensor_type {
    uint64_t seen;
    int64_t element;
    struct raw_shape shape;
};
struct raw_type {
    uint64_t seen;
    int64_t which; /* field number of the form, 0: none */
    struct raw_tensor_type tensor;
};
struct raw_value {
    uint64_t seen;
    const char *name;
    struct raw_type type;
};

struct raw_node {
    uint64_t seen;
    struct onnx_node o;
};

struct raw_graph {
    uint64_t seen;
    struct onnx_graph o;
};

enum attribute_row {
    ATTRIBUTE_NAME,
    ATTRIBUTE_REFERENCE,
    ATTRIBUTE_KIND,
    ATTRIBUTE_REAL,
    ATTRIBUTE_INTEGER,
    ATTRIBUTE_TEXT,
    ATTRIBUTE_TENSOR,
    ATTRIBUTE_GRAPH,
    ATTRIBUTE_SPARSE,
    ATTRIBUTE_TYPE,
    ATTRIBUTE_REALS,
    ATTRIBUTE_INTEGERS,
    ATTRIBUTE_TEXTS,
    ATTRIBUTE_TENSORS,
    ATTRIBUTE_GRAPHS,
    ATTRIBUTE_SPARSES,
    ATTRIBUTE_TYPES,
};
struct raw_attribute {
    uint64_t seen;
    const char *name, *reference;
    int64_t kind, integer;
    double real;
    struct onnx_bytes text;
    struct raw_tensor tensor;
    struct raw_graph graph;
    const double *reals;
    const int64_t *integers;
    const char *const *texts;
    const struct onnx_tensor *tensors;
    const struct onnx_graph *graphs;
    size_t n_reals, n_integers, n_texts, n_tensors, n_graphs, n_sparses, n_types;
};

struct raw_function {
    uint64_t seen;
    struct onnx_function o;
};

enum model_row { MODEL_GRAPH, MODEL_IR_VERSION };
struct raw_model {
    uint64_t seen;
    struct onnx_model o;
    struct raw_graph graph;
};

/* What an element of a list of messages is decoded into. */
union raw_element {
    struct raw_opset opset;
    struct raw_entry entry;
    struct raw_tensor tensor;
    struct raw_dim dim;
    struct raw_value value;
    struct raw_node node;
    struct raw_graph graph;
    struct raw_attribute attribute;
    struct raw_function function;
};

enum onnx_field_kind {
    FIELD_NUMBER,   /* int64_t */
    FIELD_REAL,     /* double, of a float */
    FIELD_NAME,     /* const char *: UTF-8 within limits->name_bytes; "" if absent */
    FIELD_BYTES,    /* struct onnx_bytes, in the file */
    FIELD_MESSAGE,  /* the message's raw struct */
    FIELD_NOTED,    /* of any type: `seen` tells */
    FIELD_NAMES,    /* lists: pointer, and size_t at `count` */
    FIELD_TEXTS,    /* any bytes but NUL */
    FIELD_NUMBERS,  /* int64_t or uint64_t */
    FIELD_INT32S,   /* int32_t */
    FIELD_REALS,    /* double, of floats */
    FIELD_FLOATS,   /* float, in the file where they lie aligned */
    FIELD_DOUBLES,  /* double, likewise */
    FIELD_MESSAGES, /* what the message's `finish` makes */
    FIELD_COUNTED,  /* messages or texts: no pointer */
    FIELD_KIND_COUNT
};

struct onnx_message;

struct onnx_field {
    uint32_t number;
    enum onnx_field_kind kind;
    uint16_t offset, count; /* in the raw struct */
    /* Of a oneof: where its int64_t `which` is, that takes the number; else 0. */
    uint16_t which;
    const char *name;
    const struct onnx_message *message;
};

enum { FIELD_ROWS = 20 };

struct onnx_message {
    const char *name;
    const struct onnx_field *fields;
    size_t n_fields, raw_size, size;
    /* raw to out, of `size` bytes; a status, its message without a place. */
    int (*finish)(struct onnx_reader *r, void *raw, void *out);
};
extern const struct onnx_message onnx_model_message, onnx_tensor_message;

/* Decode a root message and finish it. */
int onnx_decode(struct onnx_reader *r, const struct onnx_message *m, const void *bytes,
                size_t size, void *raw, void *out);

/* finish.c */
int onnx_finish_opset(struct onnx_reader *r, void *raw, void *out);
int onnx_finish_entry(struct onnx_reader *r, void *raw, void *out);
int onnx_finish_dim(struct onnx_reader *r, void *raw, void *out);
int onnx_finish_value(struct onnx_reader *r, void *raw, void *out);
int onnx_finish_node(struct onnx_reader *r, void *raw, void *out);
int onnx_finish_graph(struct onnx_reader *r, void *raw, void *out);
int onnx_finish_attribute(struct onnx_reader *r, void *raw, void *out);
int onnx_finish_function(struct onnx_reader *r, void *raw, void *out);
int onnx_finish_model(struct onnx_reader *r, void *raw, void *out);
/* tensor.c */
int onnx_finish_tensor(struct onnx_reader *r, void *raw, void *out);
/* external.c: the bytes that the entries lead to, of t->bytes; t->location. */
int onnx_external(struct onnx_reader *r, const struct raw_tensor *raw,
                  struct onnx_tensor *t, struct onnx_bytes *out);

#endif /* IO_ONNX_PRIVATE_H */
