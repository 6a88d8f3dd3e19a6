#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX models of any kind on the host: Strata, ONNX Runtime and OpenVINO in turns.

    pip install -r bench/requirements.txt; make python-package
    PYTHONPATH=python/package LD_LIBRARY_PATH=.libs STRATA_PLUGIN_DIR=plugins/.libs \\
        python3 bench/sequences/in_turns.py [--strata ./strata] NAME.onnx ...

The inputs of NAME.onnx and of NAME.ANYTHING.onnx lie in NAME.npz beside it. Strata imports
the model at their shapes and builds an engine by its default costs; all three are called
from Python with bound inputs, in processes that stay and are stopped while it is another's
turn. A turn is --seconds of runs. Printed are the least of a run in ms (with --threads 1
processor time), the median of turns' medians in brackets, the ratio of the least times to
the better peer's, the median of the turns' ratios, and how far Strata's first output is
from ONNX Runtime's, of the largest value.

As processes at a real-time priority (chrt -f 6), they meet little of what else runs.
"""
import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from host_layers import bind_onnxruntime, open_openvino  # noqa: E402
from wait_policy import default_environment  # noqa: E402

WAYS = ("strata", "onnxruntime", "openvino")
BLOCK = 0.004  # seconds of runs timed at once


# ---- a way, in a process of its own ------------------------------------------------------


def open_onnxruntime(model, threads, x):
    session, binding = bind_onnxruntime(model, threads, x)
    for output in session.get_outputs():
        binding.bind_output(output.name, "cpu")
    return (lambda: session.run_with_iobinding(binding),
            lambda: binding.get_outputs()[0].numpy())


def open_strata(engine, _, x):
    import strata
    net = strata.load(engine)
    bound = {name: net.pinned(name) for name in x}
    for name, value in x.items():
        np.asarray(bound[name])[...] = value
    session = net.session(**bound)
    return session.run, session[next(iter(net.outputs))].numpy


OPEN = {"strata": open_strata, "onnxruntime": open_onnxruntime,
        "openvino": open_openvino}


def take(run, seconds, clock):
    """ms of a run, of blocks."""
    times, runs, end = [], 1, time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 2:
        begin = clock()
        for _ in range(runs):
            run()
        used = clock() - begin
        if used < BLOCK:
            runs *= 2
        else:
            times.append(used / runs * 1e3)
    return times


def serve(way, model, arrays, output, threads):
    x = dict(np.load(arrays))  # kept: some read inputs where they are
    run, result = OPEN[way](model, threads, x)
    run()
    np.save(output, np.array(result()))
    print(0, flush=True)
    clock = time.process_time if threads == 1 else time.perf_counter
    for line in sys.stdin:
        times = take(run, float(line), clock)
        print(statistics.median(times), min(times), flush=True)


class Process:
    def __init__(self, a, way, model, arrays, output):
        command = [sys.executable, os.path.abspath(__file__), "--serve", way, model, arrays,
                   output, "--threads", str(a.threads)]
        self.child = subprocess.Popen(command, env=default_environment(a.threads),
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True)

    def answer(self):
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError("a peer has ended")
        self.child.send_signal(signal.SIGSTOP)
        return [float(v) for v in line.split()]

    def ask(self, seconds):
        self.child.send_signal(signal.SIGCONT)
        self.child.stdin.write(f"{seconds}\n")
        self.child.stdin.flush()
        return self.answer()

    def stop(self):
        self.child.kill()
        self.child.wait()


# ---- a network ---------------------------------------------------------------------------


def build(a, model, x, folder):
    ini, engine = f"{folder}/net.ini", f"{folder}/net.engine"
    shapes = [s for n, v in x.items() for s in
              ("--shape", f"{n}={'x'.join(map(str, v.shape))}")]
    for command in (["import", model, "-o", ini, *shapes],
                    ["build", ini, "-o", engine, f"--set=runtime.threads={a.threads}"]):
        done = subprocess.run([a.strata, *command], env=default_environment(a.threads),
                              capture_output=True, check=False, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip()[-300:])
    return engine


def rounds_of(a, model, folder):
    arrays = os.path.join(os.path.dirname(model),
                          os.path.basename(model).split(".")[0] + ".npz")
    engine = build(a, model, dict(np.load(arrays)), folder)
    with contextlib.ExitStack() as stack:
        ways = {}
        for w in WAYS:
            ways[w] = Process(a, w, engine if w == "strata" else model, arrays,
                              f"{folder}/{w}.npy")
            stack.callback(ways[w].stop)
            ways[w].answer()
        rounds = [{w: p.ask(a.seconds) for w, p in ways.items()}
                  for _ in range(a.rounds + 1)]
    return rounds[1:]


def print_row(name, rounds, folder):
    ours, theirs = (np.load(f"{folder}/{w}.npy").ravel().astype("f8") for w in WAYS[:2])
    far = np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30)
    least = {w: min(r[w][1] for r in rounds) for w in WAYS}
    cells = [f"{least[w]:.3g} ({statistics.median(r[w][0] for r in rounds):.3g})"
             for w in WAYS]
    ratio = statistics.median(r["strata"][0] / min(r[w][0] for w in WAYS[1:])
                              for r in rounds)
    best = least["strata"] / min(least[w] for w in WAYS[1:])
    print(f"| {name} | {' | '.join(cells)} | {best:.2f} | {ratio:.2f} | {far:.0e} |",
          flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", nargs="*", metavar="NAME.onnx")
    p.add_argument("--strata", default="./strata", help="the command")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    p.add_argument("--serve", nargs=4, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.serve:
        return serve(*a.serve, a.threads)
    print(f"| network | {' | '.join(WAYS)} | ratio of the least | of turns | differs by |")
    print("|---" * (len(WAYS) + 4) + "|", flush=True)
    for model in a.models:
        with tempfile.TemporaryDirectory() as folder:
            try:
                print_row(os.path.basename(model).removesuffix(".onnx"),
                          rounds_of(a, model, folder), folder)
            except RuntimeError as e:
                print(f"{model}: {e}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
