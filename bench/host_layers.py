#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers at FP32 on the host, three sizes each: Strata, ONNX Runtime and OpenVINO in turns.

    pip install -r bench/requirements.txt
    STRATA_PLUGIN_DIR=$PWD/plugins/.libs python3 bench/host_layers.py [--only NAME,...]

Each case is a network of one layer and an ONNX model of one node with the same weights
and inputs. Outputs must agree to 1e-4 of the largest value; then rounds of runs
alternate, each in a process of its own, with 2 threads and everything else as it comes.
Prints medians of the rounds' medians in us, and Strata's over the better peer.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

PEERS = ("onnxruntime", "openvino")
TOLERANCE = 1e-4


# ---- cases: INI and ONNX of the same ---------------------------------------------------


class Case:
    """inputs: (name, shape, dtype or (dtype, below)); weights: name -> shape."""

    def __init__(self, name, layer, node, inputs, weights=(), attributes=(), opset=21):
        self.name, self.layer, self.node = name, layer, node
        self.inputs, self.weights = inputs, dict(weights)
        self.attributes, self.opset = dict(attributes), opset


def cases():
    rows = []

    def add(name, layer, node, *shapes, weights=(), **attributes):
        inputs = [(f"x{i}", s, "f4") if isinstance(s[0], int) else (f"x{i}", *s)
                  for i, s in enumerate(shapes)]
        rows.append(Case(name, layer, node, inputs, weights, attributes))

    rowsets = ((16, 64), (512, 512), (4096, 4096))
    for n, c in rowsets:
        add(f"layer norm {n}x{c}", "type = Normalization; kind = layer; scale = w:n.scale; bias = w:n.bias",
            "LayerNormalization", (n, c), weights={"n.scale": (c,), "n.bias": (c,)})
        add(f"softmax {n}x{c}", "type = Softmax; axis = 1", "Softmax", (n, c), axis=1)
        add(f"exp {n}x{c}", "type = Unary; op = exp", "Exp", (n, c))
        add(f"erf {n}x{c}", "type = Unary; op = erf", "Erf", (n, c))
        add(f"gelu {n}x{c}", "type = Activation; kind = gelu", "Gelu", (n, c))
        add(f"add {n}x{c}", "type = ElementWise", "Add", (n, c), (n, c))
        add(f"add row {n}x{c}", "type = ElementWise", "Add", (n, c), (c,))
        add(f"less {n}x{c}", "type = Compare; op = less", "Less", (n, c), (n, c))
        add(f"where {n}x{c}", "type = Select", "Where", ((n, c), "?"), (n, c), (n, c))
        add(f"cast to i32 {n}x{c}", "type = Cast; to = i32", "Cast", (n, c), to=6)
        add(f"row sum {n}x{c}", "type = Reduce; op = sum; axes = 1", "ReduceSum", (n, c),
            weights={"axes": np.array([1])})
        add(f"column mean {n}x{c}", "type = Reduce; op = mean; axes = 0", "ReduceMean",
            (n, c), weights={"axes": np.array([0])})
        add(f"argmax {n}x{c}", "type = ArgMax; axis = 1", "ArgMax", (n, c), axis=1)
        add(f"top 10 {n}x{c}", "type = TopK; k = 10", "TopK", (n, c),
            weights={"k": np.array([10])})
        add(f"cumsum {n}x{c}", "type = CumSum; axis = 1", "CumSum", (n, c),
            weights={"axis": np.array(1)})
        add(f"gather {n} of 8192x{c}", "type = Gather", "Gather", (8192, c),
            ((n,), "i8", 8192))
    for m, n, k in ((1, 4096, 1024), (128, 3072, 768), (1024, 1024, 1024)):
        add(f"matmul {m}x{n}x{k}", "type = MatrixMultiply; b = w:b", "MatMul",
            (m, k), weights={"b": (k, n)})
    add("matmul 12x128x64x128", "type = MatrixMultiply", "MatMul", (12, 128, 64),
        (12, 64, 128))
    for n, c, s in ((1, 16, 14), (1, 64, 56), (8, 64, 112)):
        add(f"group norm {n}x{c}x{s}x{s}",
            "type = Normalization; kind = group; groups = 8; scale = w:n.scale; bias = w:n.bias",
            "GroupNormalization", (n, c, s, s), weights={"n.scale": (c,), "n.bias": (c,)},
            num_groups=8)
        add(f"LRN {n}x{c}x{s}x{s}", "type = LRN; size = 5", "LRN", (n, c, s, s), size=5)
        add(f"mean 2,3 {n}x{c}x{s}x{s}", "type = Reduce; op = mean; axes = 2, 3",
            "ReduceMean", (n, c, s, s), weights={"axes": np.array([2, 3])})
        add(f"deconvolution 2/2 {n}x{c}x{s}x{s}",
            "type = Deconvolution; stride = 2; weight = w:w", "ConvTranspose",
            (n, c, s, s), weights={"w": (c, c // 2, 2, 2)}, strides=[2, 2])
        add(f"deconvolution 4/2 {n}x{c}x{s}x{s}",
            "type = Deconvolution; stride = 2; pad = 1; weight = w:w",
            "ConvTranspose", (n, c, s, s), weights={"w": (c, c // 2, 4, 4)},
            strides=[2, 2], pads=[1, 1, 1, 1])
        add(f"cubic x2 {n}x{c}x{s}x{s}", "type = Resize; mode = cubic; scale = 2",
            "Resize", (n, c, s, s),
            weights={"roi": np.zeros(0, "f4"), "scales": np.array([1, 1, 2, 2], "f4")},
            mode="cubic")
        add(f"grid sample {n}x{c}x{s}x{s}", "type = GridSample", "GridSample",
            (n, c, s, s), (n, s, s, 2))
        add(f"wrap {n}x{c}x{s}x{s}", "type = Padding; mode = wrap; begin = 2, 2; end = 2, 2",
            "Pad", (n, c, s, s), weights={"pads": np.array([0, 0, 2, 2, 0, 0, 2, 2])},
            mode="wrap")
    for d in (8, 16, 28):
        add(f"conv3d 1x16x{d}x{d}x{d}", "type = Convolution; pad = 1; weight = w:w",
            "Conv", (1, 16, d, d, d), weights={"w": (32, 16, 3, 3, 3)}, pads=[1] * 6)
    return rows


# ---- writing ---------------------------------------------------------------------------

NUMPY = {"f4": np.float32, "i8": np.int64, "?": np.bool_}
INI = {"f4": "fp32", "i8": "i64", "?": "bool"}


def arrays(case):
    random = np.random.Generator(np.random.PCG64(1))
    inputs = {}
    for name, shape, dtype, *below in case.inputs:
        x = random.integers(0, below[0] if below else 2, shape) if dtype != "f4" else \
            random.uniform(-1, 1, shape)
        inputs[name] = x.astype(NUMPY[dtype])
    weights = {k: w if isinstance(w, np.ndarray) else
               random.uniform(-1, 1, w).astype("f4") for k, w in case.weights.items()}
    return inputs, weights


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, x in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(x.shape),
                        "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for x in tensors.values():
            f.write(np.ascontiguousarray(x).tobytes())


def write_ini(case, folder, weights):
    names = ", ".join(n for n, *_ in case.inputs)
    lines = ["[network]", "format = 1", "outputs = y"]
    for name, shape, dtype, *_ in case.inputs:
        lines += [f"[input {name}]", f"shape = {'x'.join(map(str, shape))}",
                  f"dtype = {INI[dtype]}"]
    if "w:" in case.layer:
        write_safetensors(f"{folder}/w.safetensors",
                          {k: w for k, w in weights.items() if w.dtype == np.float32})
        lines += ["[weights w]", "file = w.safetensors"]
    lines += ["[layer y]", *case.layer.split("; "), f"inputs = {names}", ""]
    with open(f"{folder}/net.ini", "w", encoding="utf-8") as f:
        f.write("\n".join(lines))


def write_onnx(case, folder, weights):
    from onnx import TensorProto, helper, numpy_helper, save
    types = {"f4": TensorProto.FLOAT, "i8": TensorProto.INT64, "?": TensorProto.BOOL}
    outputs = ["y", "indices"] if case.node == "TopK" else ["y"]
    node = helper.make_node(case.node, [n for n, *_ in case.inputs] + list(weights),
                            outputs, **case.attributes)
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(n, types[d], s) for n, s, d, *_ in case.inputs],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(w, k) for k, w in weights.items()])
    model = helper.make_model(graph, ir_version=10,
                              opset_imports=[helper.make_opsetid("", case.opset)])
    save(model, f"{folder}/net.onnx")


# ---- running ---------------------------------------------------------------------------


def open_onnxruntime(model, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options,
                                           providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, x)


def open_openvino(model, threads):
    import openvino
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()

    def run(x):
        for name, value in x.items():
            request.set_tensor(name, openvino.Tensor(value, shared_memory=True))
        request.infer()
        return [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]
    return run


OPEN = {"onnxruntime": open_onnxruntime, "openvino": open_openvino}


def peer_inside(a):
    with np.load(f"{a.folder}/x.npz") as data:
        x = dict(data)
    run = OPEN[a.peer](f"{a.folder}/net.onnx", a.threads)
    np.save(f"{a.folder}/{a.peer}.npy", np.array(run(x)[0]))
    times, begin = [], time.perf_counter()
    end = begin + a.seconds
    while begin < end:
        run(x)
        now = time.perf_counter()
        if begin > end - 0.7 * a.seconds:
            times.append((now - begin) * 1e6)
        begin = now
    print(statistics.median(times))


def call(command, threads):
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or done.stdout)[-300:])
    return done.stdout


def one_round(a, way, folder):
    if way in PEERS:
        return float(call([sys.executable, os.path.abspath(__file__), "--peer", way,
                           "--folder", folder, "--threads", str(a.threads), "--seconds",
                           str(a.seconds)], a.threads))
    line = call([*a.strata.split(), "bench", f"{folder}/net.ini", "-o", "jsonl",
                 f"--warmup={a.seconds * 300:.0f}ms", f"--duration={0.7 * a.seconds}s",
                 f"--set=runtime.threads={a.threads}"], a.threads).splitlines()[0]
    return json.loads(line)["latency"]["median_ms"] * 1e3


def difference(folder, peer):
    ours, theirs = np.load(f"{folder}/ours.npy"), np.load(f"{folder}/{peer}.npy")
    if ours.size != theirs.size:
        raise RuntimeError(f"{peer} gives {theirs.shape}, Strata {ours.shape}")
    ours, theirs = ours.ravel().astype("f8"), theirs.ravel().astype("f8")
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30))


def measure(a, case, folder):
    inputs, weights = arrays(case)
    np.savez(f"{folder}/x.npz", **inputs)
    for name, x in inputs.items():
        np.save(f"{folder}/{name}.npy", x)
    write_ini(case, folder, weights)
    write_onnx(case, folder, weights)
    call([*a.strata.split(), "run", "-q", f"{folder}/net.ini",
          *(f"--input={n}={folder}/{n}.npy" for n in inputs),
          f"--output=y={folder}/ours.npy"], a.threads)
    rounds, failed = {}, {}
    for _ in range(a.rounds):
        for way in ("strata", *PEERS):
            try:
                if way not in failed:
                    rounds.setdefault(way, []).append(one_round(a, way, folder))
            except RuntimeError as e:
                failed[way] = str(e)
    if "strata" in failed:
        raise RuntimeError(failed["strata"])
    row = {"case": case.name, **{w: statistics.median(t) for w, t in rounds.items()}}
    row["error"] = max((difference(folder, p) for p in PEERS if p in rounds), default=0)
    if row["error"] > TOLERANCE:
        raise RuntimeError(f"differs by {row['error']:.1e} of the largest value")
    row["ratio"] = row["strata"] / min(row[p] for p in PEERS if p in row)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--strata", default="./strata")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--only", help="parts of names, separated by commas")
    parser.add_argument("--json")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.peer:
        peer_inside(a)
        return 0
    rows = []
    print("| case | strata us | onnxruntime | openvino | / better | error |\n"
          "|---|---|---|---|---|---|", flush=True)
    for case in cases():
        if a.only and not any(p in case.name for p in a.only.split(",")):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                row = measure(a, case, folder)
            except RuntimeError as e:
                print(f"| {case.name} | {e} |", flush=True)
                continue
        rows.append(row)
        cells = [f"{row[w]:.1f}" if w in row else "-" for w in ("strata", *PEERS)]
        print(f"| {case.name} | {' | '.join(cells)} | {row['ratio']:.2f} | "
              f"{row['error']:.0e} |", flush=True)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
