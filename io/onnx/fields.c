/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages of ONNX: tables, and nothing else. Fields that are in no table are
 * skipped: doc_string, metadata_props, quantization_annotation, training_info ...
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/onnx/private.h"

#define ROW(number, kind, type, member, name)                                            \
    {                                                                                    \
        number, kind, offsetof(struct type, member), 0, 0, name, NULL                    \
    }
#define LIST(number, kind, type, member, n, name)                                        \
    {                                                                                    \
        number, kind, offsetof(struct type, member), offsetof(struct type, n), 0, name,  \
            NULL                                                                         \
    }
#define NOTED(number, name)                                                              \
    {                                                                                    \
        number, FIELD_NOTED, 0, 0, 0, name, NULL                                         \
    }
#define COUNTED(number, type, n, name)                                                   \
    {                                                                                    \
        number, FIELD_COUNTED, 0, offsetof(struct type, n), 0, name, NULL                \
    }
#define SUB(number, type, member, name, message)                                         \
    {                                                                                    \
        number, FIELD_MESSAGE, offsetof(struct type, member), 0, 0, name, message        \
    }
#define SUBS(number, type, member, n, name, message)                                     \
    {                                                                                    \
        number, FIELD_MESSAGES, offsetof(struct type, member), offsetof(struct type, n), \
            0, name, message                                                             \
    }
#define MESSAGE(text, rows, raw, out, finished)                                          \
    {                                                                                    \
        text, rows, ARRAY_LENGTH(rows), sizeof(struct raw), sizeof(out), finished        \
    }

static const struct onnx_message graph_message;

static const struct onnx_field opset_fields[] = {
    ROW(1, FIELD_NAME, raw_opset, o.domain, "domain"),
    ROW(2, FIELD_NUMBER, raw_opset, o.version, "version"),
};
static const struct onnx_message opset_message = MESSAGE(
    "OperatorSetIdProto", opset_fields, raw_opset, struct onnx_opset, onnx_finish_opset);

static const struct onnx_field entry_fields[] = {
    ROW(1, FIELD_NAME, raw_entry, o.key, "key"),
    ROW(2, FIELD_NAME, raw_entry, o.value, "value"),
};
static const struct onnx_message entry_message =
    MESSAGE("StringStringEntryProto", entry_fields, raw_entry, struct onnx_entry,
            onnx_finish_entry);

static const struct onnx_field tensor_fields[] = {
    [TENSOR_DIMS] = LIST(1, FIELD_NUMBERS, raw_tensor, dims, n_dims, "dims"),
    [TENSOR_TYPE] = ROW(2, FIELD_NUMBER, raw_tensor, type, "data_type"),
    [TENSOR_SEGMENT] = NOTED(3, "segment"),
    [TENSOR_FLOATS] = LIST(4, FIELD_FLOATS, raw_tensor, floats, n_floats, "float_data"),
    [TENSOR_INT32S] = LIST(5, FIELD_INT32S, raw_tensor, int32s, n_int32s, "int32_data"),
    [TENSOR_TEXTS] = COUNTED(6, raw_tensor, n_texts, "string_data"),
    [TENSOR_INT64S] = LIST(7, FIELD_NUMBERS, raw_tensor, int64s, n_int64s, "int64_data"),
    [TENSOR_NAME] = ROW(8, FIELD_NAME, raw_tensor, name, "name"),
    [TENSOR_RAW] = ROW(9, FIELD_BYTES, raw_tensor, raw, "raw_data"),
    [TENSOR_DOUBLES] =
        LIST(10, FIELD_DOUBLES, raw_tensor, doubles, n_doubles, "double_data"),
    [TENSOR_UINT64S] =
        LIST(11, FIELD_NUMBERS, raw_tensor, uint64s, n_uint64s, "uint64_data"),
    [TENSOR_EXTERNAL] =
        SUBS(13, raw_tensor, external, n_external, "external_data", &entry_message),
    [TENSOR_LOCATION] = ROW(14, FIELD_NUMBER, raw_tensor, location, "data_location"),
};
const struct onnx_message onnx_tensor_message = MESSAGE(
    "TensorProto", tensor_fields, raw_tensor, struct onnx_tensor, onnx_finish_tensor);

static const struct onnx_field dim_fields[] = {
    {DIM_VALUE, FIELD_NUMBER, offsetof(struct raw_dim, value), 0,
     offsetof(struct raw_dim, which), "dim_value", NULL},
    {DIM_SYMBOL, FIELD_NAME, offsetof(struct raw_dim, symbol), 0,
     offsetof(struct raw_dim, which), "dim_param", NULL},
};
static const struct onnx_message dim_message = MESSAGE(
    "TensorShapeProto.Dimension", dim_fields, raw_dim, struct onnx_dim, onnx_finish_dim);

static const struct onnx_field shape_fields[] = {
    SUBS(1, raw_shape, dims, n_dims, "dim", &dim_message),
};
static const struct onnx_message shape_message =
    MESSAGE("TensorShapeProto", shape_fields, raw_shape, struct raw_shape, NULL);

static const struct onnx_field tensor_type_fields[] = {
    [TENSOR_TYPE_ELEMENT] = ROW(1, FIELD_NUMBER, raw_tensor_type, element, "elem_type"),
    [TENSOR_TYPE_SHAPE] = SUB(2, raw_tensor_type, shape, "shape", &shape_message),
};
static const struct onnx_message tensor_type_message =
    MESSAGE("TypeProto.Tensor", tensor_type_fields, raw_tensor_type,
            struct raw_tensor_type, NULL);

/* A sparse tensor's type has the fields of a tensor's; of the others the form is known.
 */
#define FORM(number, kind, name, message)                                                \
    {                                                                                    \
        number, kind, offsetof(struct raw_type, tensor), 0,                              \
            offsetof(struct raw_type, which), name, message                              \
    }
static const struct onnx_field type_fields[] = {
    FORM(1, FIELD_MESSAGE, "tensor_type", &tensor_type_message),
    FORM(4, FIELD_NOTED, "sequence_type", NULL),
    FORM(5, FIELD_NOTED, "map_type", NULL),
    FORM(7, FIELD_NOTED, "opaque_type", NULL),
    FORM(8, FIELD_MESSAGE, "sparse_tensor_type", &tensor_type_message),
    FORM(9, FIELD_NOTED, "optional_type", NULL),
};
static const struct onnx_message type_message =
    MESSAGE("TypeProto", type_fields, raw_type, struct raw_type, NULL);

static const struct onnx_field value_fields[] = {
    ROW(1, FIELD_NAME, raw_value, name, "name"),
    SUB(2, raw_value, type, "type", &type_message),
};
static const struct onnx_message value_message = MESSAGE(
    "ValueInfoProto", value_fields, raw_value, struct onnx_value, onnx_finish_value);

static const struct onnx_field attribute_fields[] = {
    [ATTRIBUTE_NAME] = ROW(1, FIELD_NAME, raw_attribute, name, "name"),
    [ATTRIBUTE_REFERENCE] =
        ROW(21, FIELD_NAME, raw_attribute, reference, "ref_attr_name"),
    [ATTRIBUTE_KIND] = ROW(20, FIELD_NUMBER, raw_attribute, kind, "type"),
    [ATTRIBUTE_REAL] = ROW(2, FIELD_REAL, raw_attribute, real, "f"),
    [ATTRIBUTE_INTEGER] = ROW(3, FIELD_NUMBER, raw_attribute, integer, "i"),
    [ATTRIBUTE_TEXT] = ROW(4, FIELD_BYTES, raw_attribute, text, "s"),
    [ATTRIBUTE_TENSOR] = SUB(5, raw_attribute, tensor, "t", &onnx_tensor_message),
    [ATTRIBUTE_GRAPH] = SUB(6, raw_attribute, graph, "g", &graph_message),
    [ATTRIBUTE_SPARSE] = NOTED(22, "sparse_tensor"),
    [ATTRIBUTE_TYPE] = NOTED(14, "tp"),
    [ATTRIBUTE_REALS] = LIST(7, FIELD_REALS, raw_attribute, reals, n_reals, "floats"),
    [ATTRIBUTE_INTEGERS] =
        LIST(8, FIELD_NUMBERS, raw_attribute, integers, n_integers, "ints"),
    [ATTRIBUTE_TEXTS] = LIST(9, FIELD_TEXTS, raw_attribute, texts, n_texts, "strings"),
    [ATTRIBUTE_TENSORS] =
        SUBS(10, raw_attribute, tensors, n_tensors, "tensors", &onnx_tensor_message),
    [ATTRIBUTE_GRAPHS] =
        SUBS(11, raw_attribute, graphs, n_graphs, "graphs", &graph_message),
    [ATTRIBUTE_SPARSES] = COUNTED(23, raw_attribute, n_sparses, "sparse_tensors"),
    [ATTRIBUTE_TYPES] = COUNTED(15, raw_attribute, n_types, "type_protos"),
};
_Static_assert(ARRAY_LENGTH(attribute_fields) <= FIELD_ROWS, "the longest table");
static const struct onnx_message attribute_message =
    MESSAGE("AttributeProto", attribute_fields, raw_attribute, struct onnx_attribute,
            onnx_finish_attribute);

static const struct onnx_field node_fields[] = {
    LIST(1, FIELD_NAMES, raw_node, o.inputs, o.n_inputs, "input"),
    LIST(2, FIELD_NAMES, raw_node, o.outputs, o.n_outputs, "output"),
    ROW(3, FIELD_NAME, raw_node, o.name, "name"),
    ROW(4, FIELD_NAME, raw_node, o.op, "op_type"),
    SUBS(5, raw_node, o.attributes, o.n_attributes, "attribute", &attribute_message),
    ROW(7, FIELD_NAME, raw_node, o.domain, "domain"),
    ROW(8, FIELD_NAME, raw_node, o.overload, "overload"),
};
static const struct onnx_message node_message =
    MESSAGE("NodeProto", node_fields, raw_node, struct onnx_node, onnx_finish_node);

static const struct onnx_field graph_fields[] = {
    SUBS(1, raw_graph, o.nodes, o.n_nodes, "node", &node_message),
    ROW(2, FIELD_NAME, raw_graph, o.name, "name"),
    SUBS(5, raw_graph, o.initializers, o.n_initializers, "initializer",
         &onnx_tensor_message),
    SUBS(11, raw_graph, o.inputs, o.n_inputs, "input", &value_message),
    SUBS(12, raw_graph, o.outputs, o.n_outputs, "output", &value_message),
    SUBS(13, raw_graph, o.values, o.n_values, "value_info", &value_message),
    COUNTED(15, raw_graph, o.n_sparse, "sparse_initializer"),
};
static const struct onnx_message graph_message =
    MESSAGE("GraphProto", graph_fields, raw_graph, struct onnx_graph, onnx_finish_graph);

static const struct onnx_field function_fields[] = {
    ROW(1, FIELD_NAME, raw_function, o.name, "name"),
    LIST(4, FIELD_NAMES, raw_function, o.inputs, o.n_inputs, "input"),
    LIST(5, FIELD_NAMES, raw_function, o.outputs, o.n_outputs, "output"),
    LIST(6, FIELD_NAMES, raw_function, o.attributes, o.n_attributes, "attribute"),
    SUBS(7, raw_function, o.nodes, o.n_nodes, "node", &node_message),
    SUBS(9, raw_function, o.opsets, o.n_opsets, "opset_import", &opset_message),
    ROW(10, FIELD_NAME, raw_function, o.domain, "domain"),
    SUBS(11, raw_function, o.defaults, o.n_defaults, "attribute_proto",
         &attribute_message),
    ROW(13, FIELD_NAME, raw_function, o.overload, "overload"),
};
static const struct onnx_message function_message =
    MESSAGE("FunctionProto", function_fields, raw_function, struct onnx_function,
            onnx_finish_function);

static const struct onnx_field model_fields[] = {
    [MODEL_GRAPH] = SUB(7, raw_model, graph, "graph", &graph_message),
    [MODEL_IR_VERSION] = ROW(1, FIELD_NUMBER, raw_model, o.ir_version, "ir_version"),
    ROW(2, FIELD_NAME, raw_model, o.producer, "producer_name"),
    ROW(3, FIELD_NAME, raw_model, o.producer_version, "producer_version"),
    SUBS(8, raw_model, o.opsets, o.n_opsets, "opset_import", &opset_message),
    SUBS(25, raw_model, o.functions, o.n_functions, "functions", &function_message),
};
const struct onnx_message onnx_model_message =
    MESSAGE("ModelProto", model_fields, raw_model, struct onnx_model, onnx_finish_model);
