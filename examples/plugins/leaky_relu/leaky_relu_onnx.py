#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write leaky_relu.onnx: y = LeakyReLU(x * w), by the operator of this folder's plugin.

    pip install onnx
    python3 leaky_relu_onnx.py [FILE]

The node's domain is the plugin's namespace, its operator the layer's name, and its
attributes are the layer's.
"""
import os
import sys

from onnx import TensorProto, checker, helper, save

HERE = os.path.dirname(os.path.abspath(__file__))
WEIGHTS = [1, 0, -1, 0,
           0, 1, 0, -1,
           2, 0, 0, 1]  # 3 x 4

graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["h"], name="product"),
     helper.make_node("LeakyReLU", ["h"], ["y"], name="leaky", domain="org.example",
                      slope=0.5)],
    "leaky_relu",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])],
    [helper.make_tensor("w", TensorProto.FLOAT, [3, 4], WEIGHTS)])
model = helper.make_model(
    graph, ir_version=10,
    opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("org.example", 1)])
checker.check_model(model)
save(model, sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "leaky_relu.onnx"))
