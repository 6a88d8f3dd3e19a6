#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks at batch 1 and FP32 on the host: Strata, ONNX Runtime and OpenVINO in turns.

    pip install -r bench/requirements.txt
    STRATA_PLUGIN_DIR=$PWD/plugins/.libs \\
        python3 bench/host_vs_peers.py --models MODELS [--nets resnet18,...]

From each INI file an ONNX model with the same weights is written (into --folder, which
may be kept), and an engine of each of Strata's settings is built. Outputs, taken before
the softmax, must agree to 1e-4 of the largest value; then rounds of runs alternate, each
in a process of its own:

    default       strata, as it comes
    measured      strata, --costs=measure, kept in --folder
    onnxruntime   2 intra-op threads, all optimisations; arena and spinning as they come
    openvino      CPU, latency hint, 2 threads, inference precision f32 (where a CPU has
                  bfloat16, its default for FP32 models would be that)

Prints medians of the rounds' medians in ms, and each of Strata's over the better peer.
MODELS holds the safetensors of scripts/convert_models.py, for squeezenet and yolo-fastest.
"""
import argparse
import configparser
import json
import os
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

from wait_policy import default_environment

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
NETS = {"squeezenet": "examples/models/squeezenet_v1.1.ini",
        "resnet18": "bench/nets/resnet18.ini",
        "resnet50": "bench/nets/resnet50.ini",
        "mobilenet_v2": "bench/nets/mobilenet_v2.ini",
        "densenet121": "bench/nets/densenet121.ini",
        "yolo-fastest": "examples/models/yolo-fastest-1.1.ini",
        "inception_v3": "bench/nets/inception_v3.ini"}
SETTINGS = {"default": [], "measured": ["--costs=measure", "--save-costs={folder}/{net}.costs"]}
PEERS = ("onnxruntime", "openvino")
WAYS = (*SETTINGS, *PEERS)
TOLERANCE = 1e-4


# ---- weights -----------------------------------------------------------------------

def read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    size, = struct.unpack_from("<Q", data)
    header, body = json.loads(data[8:8 + size]), data[8 + size:]
    return {name: np.frombuffer(body[t["data_offsets"][0]:t["data_offsets"][1]],
                                "<f4").reshape(t["shape"])
            for name, t in header.items() if name != "__metadata__"}


def mix(x):
    """SplitMix64's output function, modulo 2^64, in place."""
    x *= np.uint64(0x9e3779b97f4a7c15)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xbf58476d1ce4e5b9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94d049bb133111eb)
    x ^= x >> np.uint64(31)
    return x


def random_weights(shape, seed, name):
    """The values of io/weights/random.c, bit for bit."""
    key = 0xcbf29ce484222325
    for byte in name.encode():
        key = (key ^ byte) * 0x100000001b3 % 2**64
    seeded = int(mix(np.array([seed + 1], "u8"))[0])
    key = mix(np.array([seeded ^ key], "u8"))[0]
    count = int(np.prod(shape))
    fan_in = count // shape[0] if len(shape) > 1 else count
    values = np.empty(count, "f4")
    for at in range(0, count, 1 << 20):
        index = np.arange(at, min(count, at + (1 << 20)), dtype="u8") * np.uint64(6) + key
        total = np.full(index.shape, 6, "u8")
        for draw in range(6):
            x = mix(index + np.uint64(draw))
            total += (x >> np.uint64(32)) + (x & np.uint64(0xffffffff))
        units = total.astype("i8") - 6 * 2**32
        unit = np.sqrt(2.0 / fan_in) * 2.0**-32
        values[at:at + len(index)] = (units.astype("f8") * unit).astype("f4")
    return values.reshape(shape)


class Weights:
    """What the [weights] section of a network says, and those asked for so far."""

    def __init__(self, ini, models):
        section = ini["weights w"]
        self.seed = int(section["random"]) if "random" in section else None
        self.file = None if self.seed is not None else read_safetensors(
            os.path.join(models, section["file"]))
        self.taken = {}

    def take(self, layer, name, key, shape):
        """Name of the weight `key` of the layer's section, or None if it has none."""
        if "weights" in layer:
            stored = layer["weights"].partition(":")[2] + "." + key
            if stored not in self.file:
                return None
            self.taken[stored] = self.file[stored].reshape(shape)
            return stored
        if key not in layer:
            return None
        stored = f"{name}.{key}"
        self.taken[stored] = random_weights(shape, self.seed, stored)
        return stored


# ---- the ONNX graph of an INI file ---------------------------------------------------

def numbers(text):
    return [int(n) for n in re.split(r"[x,\s]+", text.strip())]


def pair(text):
    values = numbers(text)
    return values * 2 if len(values) == 1 else values


class Graph:
    def __init__(self, ini, models):
        self.ini, self.weights = ini, Weights(ini, models)
        self.nodes, self.channels, self.constants = [], {}, {}

    def node(self, op, inputs, name, **attributes):
        from onnx import helper
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))

    def window(self, layer):
        return {"kernel_shape": pair(layer["kernel"]),
                "strides": pair(layer.get("stride", "1")),
                "pads": pair(layer.get("pad", "0")) * 2}

    def convolution(self, layer, inputs, name):
        filters, groups = int(layer["filters"]), int(layer.get("groups", "1"))
        shape = [filters, self.channels[inputs[0]] // groups, *pair(layer["kernel"])]
        weight = self.weights.take(layer, name, "weight", shape)
        bias = self.weights.take(layer, name, "bias", [filters])
        self.node("Conv", [inputs[0], weight, *([bias] if bias else [])], name,
                  group=groups, **self.window(layer))
        return filters

    def scale(self, layer, inputs, name):
        """As exporters write a batch normalisation; mean 0 and variance 1 are exact."""
        count = self.channels[inputs[0]]
        self.constants.setdefault(f"zeros{count}", np.zeros(count, "f4"))
        self.constants.setdefault(f"ones{count}", np.ones(count, "f4"))
        scale = self.weights.take(layer, name, "scale", [count]) or f"ones{count}"
        shift = self.weights.take(layer, name, "shift", [count]) or f"zeros{count}"
        self.node("BatchNormalization",
                  [inputs[0], scale, shift, f"zeros{count}", f"ones{count}"], name,
                  epsilon=0.0)
        return count

    def activation(self, layer, inputs, name):
        kind = layer["kind"]
        if kind == "relu6":
            self.constants.update(zero=np.float32(0), six=np.float32(6))
            self.node("Clip", [*inputs, "zero", "six"], name)
        elif kind == "leaky_relu":
            self.node("LeakyRelu", inputs, name, alpha=float(layer["alpha"]))
        elif kind == "relu":
            self.node("Relu", inputs, name)
        else:
            raise ValueError(f"{name}: activation {kind} is not translated")
        return self.channels[inputs[0]]

    def pooling(self, layer, inputs, name):
        average = layer["kind"] == "average"
        if layer.getboolean("global", False):
            self.node("GlobalAveragePool" if average else "GlobalMaxPool", inputs, name)
        else:
            self.node("AveragePool" if average else "MaxPool", inputs, name,
                      ceil_mode=int(layer.getboolean("ceil_mode", False)),
                      **self.window(layer))
        return self.channels[inputs[0]]

    def concatenation(self, layer, inputs, name):
        self.node("Concat", inputs, name, axis=int(layer["axis"]))
        return sum(self.channels[i] for i in inputs)

    def elementwise(self, layer, inputs, name):
        if layer["op"] != "sum" or len(inputs) != 2:
            raise ValueError(f"{name}: only the sum of two is translated")
        self.node("Add", inputs, name)
        return self.channels[inputs[0]]

    def fully_connected(self, layer, inputs, name):
        """Of a tensor of one pixel, as all these networks have it."""
        units = int(layer["units"])
        weight = self.weights.take(layer, name, "weight",
                                   [units, self.channels[inputs[0]]])
        bias = self.weights.take(layer, name, "bias", [units])
        self.node("Flatten", inputs, name + ".flat")
        self.node("Gemm", [name + ".flat", weight, *([bias] if bias else [])], name,
                  transB=1)
        return units

    def resize(self, layer, inputs, name):
        if layer["mode"] != "nearest" or layer["coordinates"] != "asymmetric":
            raise ValueError(f"{name}: this resize is not translated")
        self.constants[name + ".scales"] = np.array([1, 1, *pair(layer["scale"])], "f4")
        self.node("Resize", [inputs[0], "", name + ".scales"], name, mode="nearest",
                  coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        return self.channels[inputs[0]]

    def softmax(self, layer, inputs, name):
        self.node("Softmax", inputs, name, axis=int(layer["axis"]))
        return self.channels[inputs[0]]

    KINDS = {"Convolution": convolution, "Scale": scale, "Activation": activation,
             "Pooling": pooling, "Concatenation": concatenation,
             "ElementWise": elementwise, "FullyConnected": fully_connected,
             "Resize": resize, "Softmax": softmax}

    def build(self):
        previous = None
        for section in self.ini.sections():
            kind, _, name = section.partition(" ")
            if kind == "input":
                self.input = name
                shape = self.ini[section]["shape"].replace("${batch}", "1")
                self.shape = numbers(shape)
                self.channels[name] = self.shape[1]
            if kind == "layer":
                layer = self.ini[section]
                inputs = layer.get("inputs", previous).replace("\\", " ")
                inputs = [i.strip() for i in inputs.split(",")]
                self.channels[name] = Graph.KINDS[layer["type"]](self, layer, inputs, name)
            previous = name if kind in ("input", "layer") else previous
        return self

    def save(self, path, outputs):
        from onnx import (TensorProto, checker, helper, numpy_helper, save_model,
                          shape_inference)
        initial = {**self.weights.taken, **self.constants}
        graph = helper.make_graph(
            self.nodes, "network",
            [helper.make_tensor_value_info(self.input, TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs],
            [numpy_helper.from_array(v, n) for n, v in initial.items()])
        model = helper.make_model(graph, ir_version=8,
                                  opset_imports=[helper.make_opsetid("", 13)])
        model = shape_inference.infer_shapes(model)
        checker.check_model(model)
        save_model(model, path)


def read_ini(path):
    ini = configparser.ConfigParser(interpolation=None, strict=True,
                                    inline_comment_prefixes=(";",))
    with open(path, encoding="utf-8") as f:
        ini.read_file(f)
    return ini


def before_softmax(ini):
    """Outputs that tell differences: a softmax of random weights is all but one-hot."""
    names = [n.strip() for n in ini["network"]["outputs"].split(",")]
    order = [s[6:] for s in ini.sections() if s.startswith("layer ")]
    return [order[order.index(n) - 1] if ini["layer " + n]["type"] == "Softmax" else n
            for n in names]


# ---- runs ----------------------------------------------------------------------------

def open_onnxruntime(model, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.graph_optimization_level = \
        onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(model, options,
                                           providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda x: session.run(None, {name: x})


def open_openvino(model, threads):
    import openvino
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()

    def run(x):
        request.set_input_tensor(openvino.Tensor(x, shared_memory=True))
        request.infer()
        return [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]
    return run


OPEN = {"onnxruntime": open_onnxruntime, "openvino": open_openvino}


def peer_block(a):
    """The inside of a peer's process: median ms of runs, or its outputs."""
    peer, model = a.peer
    run, x = OPEN[peer](model, a.threads), np.load(a.input)
    if a.output:
        np.savez(a.output, *[np.array(y) for y in run(x)])
        return
    times, begin = [], time.perf_counter()
    end = begin + a.warmup + a.seconds
    while begin < end:
        run(x)
        now = time.perf_counter()
        if begin > end - a.seconds:
            times.append((now - begin) * 1e3)
        begin = now
    print(statistics.median(times))


def call(command, threads):
    done = subprocess.run(command, env=default_environment(threads), stdout=subprocess.PIPE,
                          check=True, text=True)
    return done.stdout


def peer(a, name, model, x, *more):
    return call([sys.executable, os.path.abspath(__file__), "--peer", name, model,
                 "--input", x, "--threads", str(a.threads), "--seconds", str(a.seconds),
                 "--warmup", str(a.warmup), *more], a.threads)


def one_round(a, way, files):
    if way in PEERS:
        return float(peer(a, way, files["model"], files["x"]))
    line = call([*a.strata.split(), "bench", files[way], "-o", "jsonl",
                 f"--warmup={a.warmup * 1e3:.0f}ms", f"--duration={a.seconds}s"],
                a.threads).splitlines()[0]
    return json.loads(line)["latency"]["median_ms"]


# ---- a network -----------------------------------------------------------------------

def prepare(a, net):
    """ONNX models and engines; those that --folder has are kept."""
    path = os.path.join(ROOT, NETS[net])
    ini = read_ini(path)
    outputs = before_softmax(ini)
    files = {k: os.path.join(a.folder, f"{net}{e}") for k, e in
             {"model": ".onnx", "check": ".check.onnx", "x": ".x.npy",
              **{s: f".{s}.engine" for s in SETTINGS}}.items()}
    graph = None
    for key, names in (("check", outputs), ("model", None)):
        if os.path.exists(files[key]):
            continue
        graph = graph or Graph(ini, a.models).build()
        graph.save(files[key], names or
                   [n.strip() for n in ini["network"]["outputs"].split(",")])
        random = np.random.Generator(np.random.PCG64(1))
        np.save(files["x"], random.uniform(-1, 1, graph.shape).astype("f4"))
    if "file" in ini["weights w"]:
        path = os.path.join(a.models, os.path.basename(path))
    for setting, options in SETTINGS.items():
        if setting in a.ways:
            call([*a.strata.split(), "build", path, "-o", files[setting],
                  *(o.format(folder=a.folder, net=net) for o in options)], a.threads)
    return path, outputs, files


def check(a, path, outputs, files):
    """Largest difference between Strata and a peer, of the largest value."""
    ours, worst = [], 0.0
    arguments = []
    for i, name in enumerate(outputs):
        ours.append(os.path.join(a.folder, f"ours{i}.npy"))
        arguments.append(f"--output={name}={ours[-1]}")
    call([*a.strata.split(), "run", "-q", path, files["x"],
          f"--set=network.outputs={','.join(outputs)}", *arguments], a.threads)
    for name in set(PEERS) & set(a.ways):
        theirs = os.path.join(a.folder, "theirs.npz")
        peer(a, name, files["check"], files["x"], "--output", theirs)
        with np.load(theirs) as data:
            for file, y in zip(ours, data.values()):
                x = np.load(file)
                if x.size != y.size:
                    sys.exit(f"{path}: outputs differ in size: {x.shape}, {y.shape}")
                difference = float(np.abs(x.ravel() - y.ravel()).max() / np.abs(y).max())
                worst = max(worst, difference)
                if not difference <= TOLERANCE:
                    sys.exit(f"{path}: {name} differs by {difference:.2g} of the largest "
                             "value: times of different results are not compared")
    return worst


def measure(a, net):
    path, outputs, files = prepare(a, net)
    error = check(a, path, outputs, files)
    rounds = [{way: one_round(a, way, files) for way in a.ways} for _ in range(a.rounds)]
    row = {way: statistics.median(r[way] for r in rounds) for way in a.ways}
    return {"net": net, "error": error, **row}


def print_row(a, row):
    better = min((row[p] for p in PEERS if p in row), default=None)
    cells = [f"{row[w]:.2f}" if w in row else "-" for w in WAYS]
    ratios = [f"{row[s] / better:.2f}" if s in row and better else "-" for s in SETTINGS]
    print("| " + " | ".join([row["net"], *cells, *ratios, f"{row['error']:.0e}"]) + " |",
          flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--strata", default="./strata", help="the command")
    p.add_argument("--models", default="models", help="folder of trained weights")
    p.add_argument("--nets", default=",".join(NETS), help="which, separated by commas")
    p.add_argument("--ways", default=",".join(WAYS), help="which columns")
    p.add_argument("--folder", help="keep ONNX models here, and use those there")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=1.0, help="of runs, each round")
    p.add_argument("--warmup", type=float, default=0.3, help="seconds before them")
    p.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)
    for hidden in ("--input", "--output"):
        p.add_argument(hidden, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.peer:
        return peer_block(a)
    a.ways = [w for w in WAYS if w in a.ways.split(",")]
    print("| network | " + " | ".join(f"{w} ms" for w in WAYS) +
          " | default / better peer | measured / better peer | outputs differ by |")
    print("|---" * (len(WAYS) + 4) + "|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        a.folder = a.folder or folder
        os.makedirs(a.folder, exist_ok=True)
        for net in a.nets.split(","):
            print_row(a, measure(a, net))


if __name__ == "__main__":
    main()
