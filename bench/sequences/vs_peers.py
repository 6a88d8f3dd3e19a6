#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX models on the host: Strata, ONNX Runtime and OpenVINO in turns, FP32.

    pip install -r bench/requirements.txt
    python3 bench/sequences/vs_peers.py [--strata ./strata] NAME.onnx INPUT=FILE.npy ...

Strata imports the model and plans it by measuring (--costs=measure). Outputs, of the same
inputs, must agree to 1e-4 of the largest value. Each round times every way in a process of
its own, with 2 threads; printed are medians of the rounds' medians in ms, and Strata's over
the better peer. bench/sequences/bert.py and bench/sequences/networks.py make models.
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

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from wait_policy import default_environment  # noqa: E402

PEERS = ("onnxruntime", "openvino")
TOLERANCE = 1e-4


def open_onnxruntime(model, given, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options,
                                           providers=["CPUExecutionProvider"])
    return lambda: session.run(None, given)


def open_openvino(model, given, threads):
    import openvino
    compiled = openvino.Core().compile_model(model, "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    tensors = {n: openvino.Tensor(x, shared_memory=True) for n, x in given.items()}

    def run():
        request.infer(tensors)
        return [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]
    return run


OPEN = {"onnxruntime": open_onnxruntime, "openvino": open_openvino}


def peer_block(a, given):
    """The inside of a peer's process: median ms of runs, or its outputs."""
    run = OPEN[a.peer](a.model, {n: np.load(f) for n, f in given}, a.threads)
    if a.output:
        np.savez(a.output, *[np.array(y) for y in run()])
        return
    times, end = [], time.perf_counter() + a.warmup
    while time.perf_counter() < end:
        run()
    end += a.seconds
    while (begin := time.perf_counter()) < end:
        run()
        times.append((time.perf_counter() - begin) * 1e3)
    print(statistics.median(times))


def call(command, threads):
    return subprocess.run(command, env=default_environment(threads),
                          stdout=subprocess.PIPE, check=True, text=True).stdout


def peer(a, name, *more):
    return call([sys.executable, os.path.abspath(__file__), "--peer", name, a.model,
                 *a.inputs, "--threads", str(a.threads), "--seconds", str(a.seconds),
                 "--warmup", str(a.warmup), *more], a.threads)


def check(a, ini, folder):
    """The largest difference from a peer, of an output's largest value."""
    worst, ours = 0.0, []
    outputs = [line for line in open(ini) if line.startswith("outputs = ")][0]
    arguments = []
    for name in outputs.removeprefix("outputs = ").strip().split(", "):
        ours.append(os.path.join(folder, f"ours{len(ours)}.npy"))
        arguments.append(f"--output={name}={ours[-1]}")
    call([a.strata, "run", "-q", ini, *a.inputs, *arguments], a.threads)
    for name in PEERS:
        theirs = os.path.join(folder, "theirs.npz")
        peer(a, name, "--output", theirs)
        with np.load(theirs) as data:
            for file, y in zip(ours, data.values()):
                difference = np.abs(np.load(file).ravel() - y.ravel()).max()
                worst = max(worst, float(difference / np.abs(y).max()))
    if not worst <= TOLERANCE:
        sys.exit(f"outputs differ by {worst:.2g} of the largest value: times of different "
                 "results are not compared")
    return worst


def one_round(a, way, engine):
    if way in PEERS:
        return float(peer(a, way))
    line = call([a.strata, "bench", engine, "-o", "jsonl",
                 f"--warmup={a.warmup * 1e3:.0f}ms", f"--duration={a.seconds}s"],
                a.threads).splitlines()[0]
    return json.loads(line)["latency"]["median_ms"]


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("inputs", nargs="+", metavar="INPUT=FILE.npy")
    p.add_argument("--strata", default="./strata", help="the command")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=1.0, help="of runs, each round")
    p.add_argument("--warmup", type=float, default=0.3, help="seconds before them")
    p.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    p.add_argument("--output", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.peer:
        return peer_block(a, [i.split("=", 1) for i in a.inputs])
    with tempfile.TemporaryDirectory() as folder:
        ini, engine = (os.path.join(folder, f"net.{e}") for e in ("ini", "engine"))
        call([a.strata, "import", a.model, "-o", ini], a.threads)
        worst = check(a, ini, folder)
        call([a.strata, "build", ini, "-o", engine, "--costs=measure"], a.threads)
        ways = ("strata", *PEERS)
        rounds = [{w: one_round(a, w, engine) for w in ways} for _ in range(a.rounds)]
        row = {w: statistics.median(r[w] for r in rounds) for w in ways}
        ratio = row["strata"] / min(row[w] for w in PEERS)
        print("| " + " | ".join([os.path.basename(a.model).removesuffix(".onnx"),
                                 *(f"{row[w]:.3f}" for w in ways), f"{ratio:.2f}",
                                 f"{worst:.0e}"]) + " |", flush=True)


if __name__ == "__main__":
    main()
