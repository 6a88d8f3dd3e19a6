#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SqueezeNet v1.1 at batch 1: Strata against ONNX Runtime, on one machine.

    pip install -r bench/requirements.txt
    make bench
    STRATA_PLUGIN_PATH=$PWD/plugins/.libs \\
        python3 bench/squeezenet_vs_ort.py --program bench/net_time --folder FOLDER

FOLDER holds squeezenet_v1.1.ini (examples/models) and squeezenet_v1.1.safetensors
(scripts/convert_models.py). The ONNX graph is made from these two, so both run the same
network; outputs must agree to 1e-4 of the largest value. Blocks of runs alternate, each
in a process of its own and with the same number of threads. Prints the median time of
each and their ratio, and fails if --limit is given and exceeded.
"""
import argparse
import configparser
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

SHAPE = (1, 3, 227, 227)


# ---- the ONNX graph of the INI file ------------------------------------------------

def read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    size, = struct.unpack_from("<Q", data)
    header, body = json.loads(data[8:8 + size]), data[8 + size:]
    return {name: np.frombuffer(body[t["data_offsets"][0]:t["data_offsets"][1]],
                                "<f4").reshape(t["shape"])
            for name, t in header.items() if name != "__metadata__"}


def pair(text):
    numbers = [int(n) for n in text.split("x")]
    return numbers * 2 if len(numbers) == 1 else numbers


def window(layer):
    return {"kernel_shape": pair(layer["kernel"]),
            "strides": pair(layer.get("stride", "1")),
            "pads": pair(layer.get("pad", "0")) * 2}


def pooling(layer):
    if layer.getboolean("global", False):
        kind = {"average": "GlobalAveragePool", "max": "GlobalMaxPool"}[layer["kind"]]
        return kind, {}
    if layer["kind"] != "max":
        raise ValueError("average pooling of windows is not translated")
    return "MaxPool", dict(window(layer),
                           ceil_mode=int(layer.getboolean("ceil_mode", False)))


def operator(layer):
    """ONNX operator and attributes of one [layer] section."""
    kind = layer["type"]
    if kind == "Convolution":
        return "Conv", window(layer)
    if kind == "Activation" and layer["kind"] == "relu":
        return "Relu", {}
    if kind == "Pooling":
        return pooling(layer)
    if kind == "Concatenation":
        return "Concat", {"axis": int(layer["axis"])}
    if kind == "Softmax":
        return "Softmax", {"axis": int(layer["axis"])}
    raise ValueError(f"{kind} is not translated")


def write_onnx(path, folder):
    from onnx import TensorProto, checker, helper, numpy_helper, save_model
    ini = configparser.ConfigParser(interpolation=None, strict=True,
                                    inline_comment_prefixes=(";",))
    with open(os.path.join(folder, "squeezenet_v1.1.ini"), encoding="utf-8") as f:
        ini.read_file(f)
    weights = read_safetensors(os.path.join(folder, ini["weights w"]["file"]))
    nodes, previous = [], "data"
    for section in ini.sections():
        kind, _, name = section.partition(" ")
        if kind != "layer":
            continue
        layer = ini[section]
        inputs = [i.strip() for i in layer.get("inputs", previous).split(",")]
        if "weights" in layer:
            prefix = layer["weights"].partition(":")[2]
            inputs += [prefix + ".weight", prefix + ".bias"]
        op, attributes = operator(layer)
        nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        previous = name
    output = ini["network"]["outputs"]
    graph = helper.make_graph(
        nodes, "squeezenet_v1.1",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, (1, 1000, 1, 1))],
        [numpy_helper.from_array(v, n) for n, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)],
                              ir_version=8)
    checker.check_model(model)
    save_model(model, path)


# ---- one block of runs of each -----------------------------------------------------

def onnxruntime_block(a):
    """In a process of its own: the same steps as bench/net_time.c."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = a.threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(a.onnxruntime_block, options,
                                           providers=["CPUExecutionProvider"])
    feed = {"data": np.fromfile(a.input, "<f4").reshape(SHAPE)}
    times = []
    for i in range(-a.warmup, a.runs):
        begin = time.perf_counter()
        out, = session.run(None, feed)
        if i >= 0:
            times.append((time.perf_counter() - begin) * 1e3)
    out.astype("<f4").tofile(a.output)
    print(json.dumps({"median_ms": statistics.median(times), "min_ms": min(times),
                      "version": onnxruntime.__version__}))


def block(command, threads):
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def agree(ours, theirs):
    a, b = np.fromfile(ours, "<f4"), np.fromfile(theirs, "<f4")
    if a.shape != b.shape:
        sys.exit(f"outputs differ in size: {a.size} and {b.size}")
    error = float(np.abs(a - b).max() / np.abs(b).max())
    if not error <= 1e-4:
        sys.exit(f"outputs differ by {error:.2g} of the largest value: times of "
                 "different results are not compared")
    return error


def compare(a, folder):
    model, data = os.path.join(folder, "model.onnx"), os.path.join(folder, "input")
    ours, theirs = os.path.join(folder, "ours"), os.path.join(folder, "theirs")
    write_onnx(model, a.folder)
    random = np.random.Generator(np.random.PCG64(1))
    random.uniform(-120, 135, SHAPE).astype("<f4").tofile(data)
    counts = ["-n", str(a.runs), "-w", str(a.warmup), "-i", data]
    strata = [a.program, *counts, "-o", ours, *(f"-s{s}" for s in a.set),
              os.path.join(a.folder, "squeezenet_v1.1.ini")]
    other = [sys.executable, os.path.abspath(__file__), "--onnxruntime-block", model,
             "--runs", str(a.runs), "--warmup", str(a.warmup), "--threads",
             str(a.threads), "--input", data, "--output", theirs]
    rows = [(block(strata, a.threads), block(other, a.threads))
            for _ in range(a.rounds)]
    return rows, agree(ours, theirs)


def report(a, rows, error):
    for i, (s, o) in enumerate(rows):
        print(f"round {i + 1}: strata {s['median_ms']:7.3f} ms   "
              f"onnxruntime {o['median_ms']:7.3f} ms   "
              f"ratio {s['median_ms'] / o['median_ms']:.3f}")
    strata = statistics.median(s["median_ms"] for s, _ in rows)
    other = statistics.median(o["median_ms"] for _, o in rows)
    print(f"median of {a.rounds} rounds of {a.runs} runs, {a.threads} threads: "
          f"strata {strata:.3f} ms, onnxruntime {rows[0][1]['version']} {other:.3f} ms, "
          f"ratio {strata / other:.3f}")
    print(f"fastest run: strata {min(s['min_ms'] for s, _ in rows):.3f} ms, "
          f"onnxruntime {min(o['min_ms'] for _, o in rows):.3f} ms; "
          f"outputs agree to {error:.1e}")
    return strata / other


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--program", default="bench/net_time", help="the built net_time")
    p.add_argument("--folder", help="of the INI file and weights")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--runs", type=int, default=60, help="per round")
    p.add_argument("--warmup", type=int, default=10)
    p.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE",
                   help="override a key of the INI file for Strata")
    p.add_argument("--limit", type=float, help="fail if the ratio exceeds this")
    for hidden in ("--onnxruntime-block", "--input", "--output"):
        p.add_argument(hidden, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.onnxruntime_block:
        return onnxruntime_block(a)
    if not a.folder:
        p.error("--folder is needed")
    with tempfile.TemporaryDirectory() as folder:
        ratio = report(a, *compare(a, folder))
    if a.limit and ratio > a.limit:
        sys.exit(f"ratio {ratio:.3f} exceeds {a.limit}")


if __name__ == "__main__":
    main()
