#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers at FP32 on the host, three sizes each: Strata, ONNX Runtime and OpenVINO in turns.

    pip install -r bench/requirements.txt
    STRATA_PLUGIN_DIR=$PWD/plugins/.libs python3 bench/host_layers.py [--only NAME,...]

Each case is a network of one layer and an ONNX model of one node with the same weights
and inputs (layer_cases.py). Outputs must agree to 1e-4 of the largest value (quantized ones to a
unit, for a peer multiplies by the reciprocal). Then rounds
of runs alternate, so that a slow second of the machine meets all three: the medians of the
rounds count. A round in which other processes had over a tenth of the processors is taken
again. Each has at most --threads threads, and takes fewer where it thinks so;
inputs and outputs lie in memory that stays (ONNX Runtime's are bound). A peer's time is
that of its call from Python, Strata's that of `strata bench`.

--processor takes processor time with one thread instead, which others disturb less: of
blocks of runs in turns the least counts, and Strata is called from Python like its peers
(`make python-package`; PYTHONPATH=python/package LD_LIBRARY_PATH=.libs).

--json keeps the rows, --part 2/5 takes a fifth of the cases, and --table A.json,... writes
the table of what was kept, a row a layer.
"""
import argparse
import json
import os
import resource
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import layer_cases
from wait_policy import default_environment

PEERS = ("onnxruntime", "openvino")
GOAL = 1.1
OTHERS = 0.1  # of the processors
PATIENCE = 60  # seconds
BLOCK = 0.004  # seconds of runs whose processor time is read at once
SAFETENSORS = {"float32": "F32", "uint8": "U8", "int64": "I64"}
INI = {"float32": "fp32", "int64": "i64", "bool": "bool", "uint8": "u8"}


# ---- writing ---------------------------------------------------------------------------


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, x in tensors.items():
        header[name] = {"dtype": SAFETENSORS[str(x.dtype)], "shape": list(x.shape),
                        "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for x in tensors.values():
            f.write(np.ascontiguousarray(x).tobytes())


def write_ini(case, folder, inputs, weights):
    used = {n: w for n, w in weights.items() if f"w:{n}" in case.layer}
    lines = ["[network]", "format = 1", "outputs = y"]
    for name, x in inputs.items():
        lines += [f"[input {name}]", f"shape = {'x'.join(map(str, x.shape))}",
                  f"dtype = {INI[str(x.dtype)]}"]
    if used:
        write_safetensors(f"{folder}/w.safetensors", used)
        lines += ["[weights w]", "file = w.safetensors"]
    lines += ["[layer y]", *case.layer.split("; "), f"inputs = {', '.join(inputs)}", ""]
    with open(f"{folder}/net.ini", "w", encoding="utf-8") as f:
        f.write("\n".join(lines))


def write_onnx(case, folder, inputs, weights):
    from onnx import helper, numpy_helper, save
    outputs = [f"y{i}" for i in range(case.outputs)]
    operands = [*weights, *inputs] if case.weights_first else [*inputs, *weights]
    node = helper.make_node(case.node, operands, outputs, **case.attributes)
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype),
                                       x.shape) for n, x in inputs.items()],
        [helper.make_empty_tensor_value_info("y0")],
        [numpy_helper.from_array(w, n) for n, w in weights.items()])
    model = helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", case.opset)])
    save(model, f"{folder}/net.onnx")


# ---- a peer, in a process of its own ---------------------------------------------------


def bind_onnxruntime(model, threads, x):
    """A session, and a binding of its inputs."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options,
                                           providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, value in x.items():
        binding.bind_ortvalue_input(
            name, onnxruntime.OrtValue.ortvalue_from_numpy(value))
    return session, binding


def open_onnxruntime(model, threads, x):
    import onnxruntime
    session, binding = bind_onnxruntime(model, threads, x)
    y = onnxruntime.OrtValue.ortvalue_from_numpy(session.run(None, x)[0])
    binding.bind_ortvalue_output(session.get_outputs()[0].name, y)
    return lambda: session.run_with_iobinding(binding), y.numpy


def open_openvino(model, threads, x):
    import openvino
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    for name, value in x.items():
        request.set_tensor(name, openvino.Tensor(value, shared_memory=True))
    return request.infer, lambda: request.get_output_tensor(0).data


def open_strata(model, threads, x):
    import strata
    net = strata.load(model.replace(".onnx", ".ini"), threads=threads)
    bound = {name: net.pinned(name) for name in x}
    for name, value in x.items():
        np.asarray(bound[name])[...] = value
    session = net.session(**bound)
    return session.run, session["y"].numpy


OPEN = {"onnxruntime": open_onnxruntime, "openvino": open_openvino,
        "strata": open_strata}


def time_runs(run, seconds):
    times, begin = [], time.perf_counter()
    end = begin + seconds
    while begin < end or not times:
        run()
        now = time.perf_counter()
        if begin > end - 0.7 * seconds or now > end:
            times.append((now - begin) * 1e6)
        begin = now
    return statistics.median(times)


def spend_runs(run, seconds):
    """The least processor time of a run, of blocks of at least BLOCK seconds."""
    runs, used, least, end = 1, 0, [], time.perf_counter() + seconds
    while time.perf_counter() < end or not least:
        begin = time.process_time()
        for _ in range(runs):
            run()
        used = time.process_time() - begin
        if used < BLOCK:
            runs *= 2
        else:
            least.append(used / runs * 1e6)
    return min(least)


def serve(peer, threads, take):
    """Lines of a folder (open the model there) or of seconds (time it)."""
    run = None
    for line in sys.stdin:
        try:
            if "/" in line:
                folder = line.strip()
                with np.load(f"{folder}/x.npz") as data:
                    x = dict(data)
                run, output = OPEN[peer](f"{folder}/net.onnx", threads, x)
                run()
                np.save(f"{folder}/{peer}.npy", output())
                print(0, flush=True)
            else:
                print(take(run, float(line)), flush=True)
        except Exception as e:  # pylint: disable=broad-except
            print("failed", repr(e).replace("\n", " ")[:300], flush=True)


class Peer:
    """Ends with the first answer that does not come; the next question starts it anew.
    Stopped between questions, for its threads spin on when its turn is over."""

    def __init__(self, name, threads, processor=False):
        self.name, self.threads, self.process = name, threads, None
        self.options = ["--processor"] if processor else []

    def start(self):
        environment = default_environment(self.threads)
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--peer", self.name, "--threads",
             str(self.threads), *self.options], env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def seconds(self):
        """Processor time, in hundredths."""
        if not self.process:
            return 0
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            user, system = f.read().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None

    def ask(self, line):
        if not self.process:
            self.start()
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        answer = self.process.stdout.readline() if ready else ""
        if not answer:
            self.stop()
            raise RuntimeError(f"{self.name} does not answer")
        self.process.send_signal(signal.SIGSTOP)
        if answer.startswith("failed"):
            raise RuntimeError(f"{self.name}: {answer[7:].strip()}")
        return float(answer)


# ---- Strata ----------------------------------------------------------------------------


def call(command, threads):
    done = subprocess.run(command, env=default_environment(threads), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or done.stdout)[-300:])
    return done.stdout


def strata_run(a, folder, inputs):
    call([*a.strata.split(), "run", "-q", f"{folder}/net.ini",
          *(f"--input={n}={folder}/{n}.npy" for n in inputs),
          f"--output=y={folder}/strata.npy"], a.threads)


def strata_time(a, folder, inputs):
    line = call([*a.strata.split(), "bench", f"{folder}/net.ini", "-o", "jsonl",
                 *(f"--input={n}={folder}/{n}.npy" for n in inputs),
                 f"--warmup={a.seconds * 300:.0f}ms", f"--duration={0.7 * a.seconds}s"],
                a.threads).splitlines()[0]
    return json.loads(line)["latency"]["median_ms"] * 1e3


# ---- a case ----------------------------------------------------------------------------


def difference(folder, peer):
    ours, theirs = np.load(f"{folder}/strata.npy"), np.load(f"{folder}/{peer}.npy")
    if ours.size < theirs.size:
        raise RuntimeError(f"{peer} gives {theirs.shape}, Strata {ours.shape}")
    theirs = theirs.ravel().astype("f8")
    ours = ours.ravel()[:theirs.size].astype("f8")
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30))


def open_case(case, folder, a, peers):
    """The times to take, by name, and the largest difference."""
    inputs, weights = case.arrays()
    np.savez(f"{folder}/x.npz", **inputs)
    for name, x in inputs.items():
        np.save(f"{folder}/{name}.npy", x)
    write_ini(case, folder, inputs, weights)
    write_onnx(case, folder, inputs, weights)
    strata_run(a, folder, inputs)
    ways, error = {"strata": lambda: strata_time(a, folder, inputs)}, 0
    for peer in peers:
        if peer.name == "strata":  # must open
            peer.ask(folder)
            ways["strata"] = lambda peer=peer: peer.ask(a.seconds)
            continue
        try:
            peer.ask(folder)
        except RuntimeError as e:
            if a.verbose:
                print(f"{case.name}: {e}", file=sys.stderr)
            continue
        ways[peer.name] = lambda peer=peer: peer.ask(a.seconds)
        error = max(error, difference(folder, peer.name))
    return ways, error


def processor_seconds():
    """Of all processes, and of those whose times are taken."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _, _, *rest = (int(x) for x in f.readline().split()[1:])
    tick = os.sysconf("SC_CLK_TCK")
    own = resource.getrusage(resource.RUSAGE_SELF), \
        resource.getrusage(resource.RUSAGE_CHILDREN)
    return ((user + nice + system + sum(rest[:3])) / tick,
            sum(u.ru_utime + u.ru_stime for u in own))


def alone(take, a, peers):
    """A round in which others had no more than a tenth of the processors, or of --tries
    the one in which they had least: their share, and the time."""
    best = None
    for _ in range(a.tries):
        begin, (all_before, own_before) = time.perf_counter(), processor_seconds()
        own_before += sum(p.seconds() for p in peers)
        us = take()
        all_after, own_after = processor_seconds()
        own_after += sum(p.seconds() for p in peers)
        wall = (time.perf_counter() - begin) * os.cpu_count()
        others = (all_after - all_before - own_after + own_before) / wall
        best = min(best or (others, us), (others, us))
        if best[0] < OTHERS:
            break
    return best


def measure(case, folder, a, peers):
    ways, error = open_case(case, folder, a, peers)
    if error > case.tolerance:
        raise RuntimeError(f"differs by {error:.1e} of the largest value")
    rounds, others = {way: [] for way in ways}, 0
    for _ in range(a.rounds):
        for way, take in ways.items():
            share, us = (0, take()) if a.processor else alone(take, a, peers)
            others = max(others, share)
            rounds[way].append(us)
    row = {"case": case.name, "title": case.title, "layer": case.layer.split("; ")[0][7:],
           **{w: min(t) if a.processor else statistics.median(t)
              for w, t in rounds.items()}, "error": error,
           "others": others}
    others = [row[p] for p in PEERS if p in row]
    row["ratio"] = row["strata"] / min(others) if others else None
    return row


def print_row(row):
    cells = [f"{row[w]:.1f}" if w in row else "-" for w in ("strata", *PEERS)]
    ratio = f"{row['ratio']:.2f}" if row["ratio"] else "-"
    print(f"| {row['case']} | {' | '.join(cells)} | {ratio} | {row['error']:.0e} | "
          f"{100 * row['others']:.0f} |", flush=True)


# ---- the table -------------------------------------------------------------------------


def print_table(paths):
    """A row a layer: times and ratio of each size; bold above the goal."""
    rows = {}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            rows.update((row["case"], row) for row in json.load(f))
    titles = {}
    for case in layer_cases.cases():
        if case.name in rows:
            titles.setdefault((case.layer.split("; ")[0][7:], case.title), []).append(
                rows[case.name])
    print("| layer | case | small | medium | large |\n|---|---|---|---|---|")
    for (layer, title), sizes in sorted(titles.items(), key=lambda t: t[0][0]):
        print(f"| {layer} | {title} | {' | '.join(map(cell, sizes))} |")
    ratios = [row["ratio"] for row in rows.values() if row["ratio"]]
    print(f"\n{sum(r <= GOAL for r in ratios)} of {len(ratios)} at most {GOAL}.")


def cell(row):
    if not row["ratio"]:
        return f"{figure(row['strata'])}"
    text = f"{row['ratio']:.2f}"
    best = min(row[p] for p in PEERS if p in row)
    return (f"{figure(row['strata'])}/{figure(best)} = "
            f"{'**' if row['ratio'] > GOAL else ''}{text}"
            f"{'**' if row['ratio'] > GOAL else ''}")


def figure(us):
    return f"{us:.1f}" if us < 100 else f"{us:.0f}"


def chosen(a):
    part, of = (int(x) for x in a.part.split("/"))
    return [c for i, c in enumerate(layer_cases.cases()) if i % of == part - 1 and
            (not a.only or any(p in c.name for p in a.only.split(",")))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--strata", default="./strata")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.15, help="of a round")
    parser.add_argument("--tries", type=int, default=4,
                        help="of a round that others disturb")
    parser.add_argument("--processor", action="store_true",
                        help="processor time, one thread")
    parser.add_argument("--only", help="parts of names, separated by commas")
    parser.add_argument("--part", default="1/1", help="I/N: every N-th case from the I-th")
    parser.add_argument("--json", help="keep the rows in this file")
    parser.add_argument("--table", help="files of --json, separated by commas")
    parser.add_argument("--verbose", action="store_true", help="say why a peer is left out")
    parser.add_argument("--peer", choices=OPEN, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.peer:
        return serve(a.peer, a.threads, spend_runs if a.processor else time_runs)
    if a.table:
        return print_table(a.table.split(","))
    rows, peers = [], [Peer(p, a.threads) for p in PEERS]
    if a.processor:
        a.threads = 1
        peers = [Peer(p, 1, True) for p in OPEN]
    print("| case | strata us | onnxruntime | openvino | / better | error | others % |\n"
          "|---|---|---|---|---|---|---|", flush=True)
    for case in chosen(a):
        with tempfile.TemporaryDirectory() as folder:
            try:
                rows.append(measure(case, folder, a, peers))
                print_row(rows[-1])
            except RuntimeError as e:
                print(f"| {case.name} | {e} |", flush=True)
        if a.json:
            with open(a.json, "w", encoding="utf-8") as f:
                json.dump(rows, f, indent=1)
    for peer in peers:
        peer.stop()
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
