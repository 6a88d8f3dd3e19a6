#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""DynamicQuantizeLSTM: whose numbers are right, of Strata, ONNX Runtime and arithmetic?

    pip install -r bench/requirements.txt
    LD_LIBRARY_PATH=.libs STRATA_PLUGIN_DIR=plugins/.libs \\
        python3 bench/sequences/dynamic_lstm.py [--strata ./strata]

One LSTM of both directions with weights of INT8, computed

    floats      with the weights' values in FP64, x and h as they are
    integers    as the operator says: x, and h of each step, rounded to UINT8 with the scale
                and zero point of their range, products summed exactly
    saturating  the same, but each pair of neighbouring products summed to 16 bits, as
                vpmaddubsw does it, of which ONNX Runtime's products are made on processors
                with AVX2 and without VNNI

and by Strata, by ONNX Runtime as it comes, and by ONNX Runtime with the option that avoids
vpmaddubsw. Printed is how far each is from each, of the largest value.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

INT16 = np.iinfo(np.int16)


# ---- arithmetic --------------------------------------------------------------------------


def quantize(a):
    low, high = np.float32(min(a.min(), 0)), np.float32(max(a.max(), 0))
    scale = (high - low) / np.float32(255) or np.float32(1)
    zero = np.rint(-low / scale)
    bytes_ = np.clip(np.rint(a.astype("f4") / scale) + zero, 0, 255)
    return bytes_.astype("i8"), float(scale), int(zero)


def exact(a, b):
    return a @ b


def saturating(a, b):
    pairs = (a[:, k, None] * b[k] + a[:, k + 1, None] * b[k + 1]
             for k in range(0, len(b), 2))
    return sum(np.clip(p, INT16.min, INT16.max) for p in pairs)


def product(a, b, scale, multiply):
    if multiply is None:
        return a @ (b * scale)
    q, q_scale, zero = quantize(a)
    return (multiply(q, b) - zero * b.sum(0)) * (q_scale * scale)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def one_way(x, w, r, scales, multiply):
    """x: steps, inputs; without a bias. Gates are i, o, f, c."""
    given, h = product(x, w, scales[0], multiply), np.zeros((1, len(r)))
    c, out = h, []
    for row in given:
        i, o, f, g = np.split(row + product(h, r, scales[1], multiply), 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        out.append(h[0])
    return np.stack(out)


def lstm(x, w, r, scales, multiply):
    """[steps, directions, hidden]"""
    w, r = w.astype("i8"), r.astype("i8")
    ways = (one_way(x[::s], w[d], r[d], scales[:, d], multiply)[::s]
            for d, s in enumerate((1, -1)))
    return np.stack(list(ways), axis=1)


# ---- the two programs --------------------------------------------------------------------


def write_model(path, x, w, r, scales):
    steps, hidden = len(x), r.shape[1]
    zero = np.zeros(2, "i1")
    tensors = {"w": w, "r": r, "ws": scales[0].astype("f4"), "wz": zero,
               "rs": scales[1].astype("f4"), "rz": zero}
    names = ["x", "w", "r", *[""] * 5, "ws", "wz", "rs", "rz"]
    node = helper.make_node("DynamicQuantizeLSTM", names, ["y"], domain="com.microsoft",
                            hidden_size=hidden, direction="bidirectional")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "lstm", [value("x", TensorProto.FLOAT, [steps, 1, x.shape[1]])],
        [value("y", TensorProto.FLOAT, [steps, 2, 1, hidden])],
        [numpy_helper.from_array(a, n) for n, a in tensors.items()])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def by_onnxruntime(model, x, precise):
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", str(int(precise)))
    session = onnxruntime.InferenceSession(model, options,
                                           providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x[:, None]})[0][:, :, 0]


def by_strata(strata, model, x, folder):
    ini, given, made = (os.path.join(folder, f) for f in ("net.ini", "x.npy", "y.npy"))
    np.save(given, x[:, None])
    for command in (["import", model, "-o", ini],
                    ["run", ini, given, "--output", made, "--costs=analytic"]):
        subprocess.run([strata, *command], check=True, stdout=subprocess.DEVNULL)
    return np.load(made)[:, :, 0]


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--strata", default="./strata", help="the command")
    p.add_argument("--hidden", type=int, default=256)
    p.add_argument("--steps", type=int, default=50)
    a = p.parse_args()
    random = np.random.default_rng(1)
    x = random.standard_normal((a.steps, 128)).astype("f4")
    weights = [random.integers(-127, 128, (2, n, 4 * a.hidden)).astype("i1")
               for n in (x.shape[1], a.hidden)]
    scales = np.full((2, 2), a.hidden ** -0.5 / 127, "f4").astype("f8")
    made = {name: lstm(x, *weights, scales, multiply) for name, multiply in
            (("floats", None), ("integers", exact), ("saturating", saturating))}
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "lstm.onnx")
        write_model(model, x, *weights, scales)
        made["strata"] = by_strata(a.strata, model, x, folder)
        made["onnxruntime"] = by_onnxruntime(model, x, False)
        made["precise"] = by_onnxruntime(model, x, True)
    print("| | " + " | ".join(made) + " |\n" + "|---" * (len(made) + 1) + "|")
    for name, y in made.items():
        far = (np.abs(y - other).max() / np.abs(other).max() for other in made.values())
        print(f"| {name} | " + " | ".join(f"{v:.0e}" for v in far) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
