#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write INI files of examples/models as the ONNX models that they could have come from.

    models_to_onnx.py FOLDER NET...

For each NET, FOLDER/NET.ini and FOLDER/NET.safetensors (scripts/convert_models.py) become
FOLDER/NET.onnx, of operators as exporters write them and with the names of the layers, so
that importing it can be held to the INI file. Layer types are those of the table MAKERS.
Needs the Python packages onnx and numpy.
"""
import json
import os
import re
import struct
import sys

import numpy
import onnx
from onnx import helper, numpy_helper


def read_ini(path):
    """Sections in order: kind, name, keys. Variables have the values of [vars]."""
    sections, variables = [], {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            line = line.strip()
            if not line or line[0] in ";#":
                continue
            if line[0] == "[":
                kind, _, name = line[1:-1].partition(" ")
                keys = variables if kind == "vars" else {}
                sections.append((kind, name, keys))
            else:
                key, value = (part.strip() for part in line.split("=", 1))
                keys[key] = re.sub(r"\$\{(\w+)\}", lambda m: variables[m[1]], value)
    return sections


def read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "F32":
            raise ValueError(f"{path}: {name} is {entry['dtype']}; F32 is needed")
        begin, end = (8 + size + at for at in entry["data_offsets"])
        tensors[name] = numpy.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])
    return tensors


def integers(text):
    return [int(v) for v in re.split(r"[x,]", text.replace(" ", ""))]


class Writer:
    def __init__(self, tensors):
        self.tensors, self.nodes, self.initializers, self.made = tensors, [], [], set()

    def constant(self, name, value):
        if name not in self.made:
            self.made.add(name)
            self.initializers.append(numpy_helper.from_array(value, name))
        return name

    def weight(self, layer, which):
        """The name of a layer's tensor; "" where it has none."""
        key = f"{layer['weights'].partition(':')[2]}.{which}"
        return self.constant(key, self.tensors[key]) if key in self.tensors else ""

    def integers(self, layer, which, values):
        return self.constant(f"{layer['name']}.{which}", numpy.array(values, numpy.int64))

    def node(self, op, layer, inputs, **attributes):
        while inputs and not inputs[-1]:
            inputs.pop()
        self.nodes.append(helper.make_node(op, inputs, [layer["name"]], layer["name"],
                                           **attributes))


def window(layer):
    kernel = integers(layer["kernel"])
    out = {"kernel_shape": kernel}
    if "stride" in layer:
        out["strides"] = integers(layer["stride"]) * (2 // len(integers(layer["stride"])))
    if "pad" in layer:
        out["pads"] = integers(layer["pad"]) * (4 // len(integers(layer["pad"])))
    if layer.get("pad_mode") == "same_upper":
        out["auto_pad"] = "SAME_UPPER"
    return out


def convolution(w, layer, x):
    w.node("Conv", layer, [*x, w.weight(layer, "weight"), w.weight(layer, "bias")],
           group=int(layer.get("groups", 1)), **window(layer))


def pooling(w, layer, x):
    if layer.get("global") == "yes":
        w.node("GlobalAveragePool", layer, x)
    else:
        w.node("MaxPool", layer, x, ceil_mode=int(layer.get("ceil_mode") == "yes"),
               **window(layer))


def activation(w, layer, x):
    if layer.get("kind", "relu") == "relu":
        w.node("Relu", layer, x)
    else:
        w.node("LeakyRelu", layer, x, alpha=float(layer["alpha"]))


def scale(w, layer, x):
    """Batch normalisation whose statistics are in its factor and shift."""
    factor = w.weight(layer, "scale")
    n = len(w.tensors[factor])
    w.node("BatchNormalization", layer,
           [*x, factor, w.weight(layer, "shift"),
            w.constant(f"zeros{n}", numpy.zeros(n, numpy.float32)),
            w.constant(f"ones{n}", numpy.ones(n, numpy.float32))], epsilon=0.0)


def fully_connected(w, layer, x):
    rows = layer["name"] + "/rows"
    w.nodes.append(helper.make_node("Flatten", x, [rows], rows))
    w.node("Gemm", layer, [rows, w.weight(layer, "weight"), w.weight(layer, "bias")],
           transB=int(layer.get("transposed") != "yes"))


def padding(w, layer, x):
    pads = integers(layer["begin"]) + integers(layer["end"])
    w.node("Pad", layer, [*x, w.integers(layer, "pads", pads)])


def slice_(w, layer, x):
    w.node("Slice", layer, x + [w.integers(layer, key, integers(layer[key]))
                                for key in ("begin", "end", "axes", "step")])


def resize(w, layer, x):
    factors = [1, 1, *integers(layer["scale"])]
    w.node("Resize", layer, [*x, "", w.constant(layer["name"] + ".scales",
                                                numpy.array(factors, numpy.float32))],
           mode="nearest", coordinate_transformation_mode=layer["coordinates"],
           nearest_mode="floor")


MAKERS = {
    "Activation": activation,
    "Concatenation": lambda w, layer, x: w.node("Concat", layer, x,
                                                axis=int(layer["axis"])),
    "Convolution": convolution,
    "ElementWise": lambda w, layer, x: w.node("Add", layer, x),
    "FullyConnected": fully_connected,
    "Padding": padding,
    "Pooling": pooling,
    "Resize": resize,
    "Scale": scale,
    "Slice": slice_,
    "Softmax": lambda w, layer, x: w.node("Softmax", layer, x, axis=int(layer["axis"])),
}


def write_model(folder, net):
    sections = read_ini(os.path.join(folder, net + ".ini"))
    w = Writer(read_safetensors(os.path.join(folder, net + ".safetensors")))
    inputs, outputs, above = [], [], None
    for kind, name, keys in sections:
        if kind == "network":
            outputs = [o.strip() for o in keys["outputs"].split(",")]
        elif kind == "input":
            inputs.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT,
                                                        integers(keys["shape"])))
        elif kind == "layer":
            x = [i.strip() for i in keys["inputs"].split(",")] if "inputs" in keys \
                else [above]
            MAKERS[keys["type"]](w, {"name": name, **keys}, x)
        above = name if kind in ("input", "layer") else above
    graph = helper.make_graph(
        w.nodes, net, inputs,
        [helper.make_tensor_value_info(o, onnx.TensorProto.FLOAT, None) for o in outputs],
        w.initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                ir_version=8), os.path.join(folder, net + ".onnx"))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    for net in sys.argv[2:]:
        write_model(sys.argv[1], net)


if __name__ == "__main__":
    main()
