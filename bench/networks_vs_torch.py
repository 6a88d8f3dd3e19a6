#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks of bench/nets on one GPU: Strata beside torch.compile, in turns.

    networks_vs_torch.py [--rows NET:PRECISION:BATCH,... ...] [--ways strata,own,compile]
                         [--program NET_TIME] [--nets FOLDER] [--plugins FOLDER]
                         [--costs FILE] [--json FILE] [--layers FILE] [--seconds N]
    networks_vs_torch.py --compile-only [--rows ...]   fill torch's cache, all at once
    networks_vs_torch.py --table FILE...               one table of what runs have left

Times are milliseconds between CUDA events of runs one behind the other, the median of
--turns turns in which the ways follow each other:

    strata    the plan of least measured time, by its graph
    own       the same without cuDNN and cuBLASLt in the plugin folder
    compile   the same layers (ini_torch.py) by torch.compile in channels-last, captured
              as a graph

A precision is fp16 (tensor cores), fp32 (none, no TF32) or tf32 (FP32 whose products may
be TF32 in either). A goal is in milliseconds, or so many times as fast as compile.
`predicted` is the sum of the plan's costs, `inner` counts reformats between two layers.

--json keeps rows: those it holds are not measured again, so a run may be split. What does
not fit into --seconds is left out and said so. Costs are measured once, into --costs, and
other plans tried in whole runs for --trials, as by `strata build`.
"""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from torch_times import captured, milliseconds

FOREIGN = ("convolution-cudnn.so", "cublaslt.so")
WAYS = ("strata", "own", "compile")
# ms, or "1.3x": times as fast as torch.compile.
GOALS = {
    ("resnet50", "fp16"): {1: 0.18, 8: 0.31, 32: 0.72, 128: 2.25, 256: 4.4},
    ("mobilenet_v2", "fp16"): {1: 0.13, 32: 0.45, 128: 1.4},
    ("densenet121", "fp16"): {1: 0.60, 32: 1.7},
    ("googlenet", "fp16"): {1: 0.20, 32: 0.55},
    ("inception_v3", "fp16"): {1: 0.40, 32: 1.3},
    ("resnet152", "fp16"): {1: 0.60, 32: 1.9},
    ("efficientnet_b0", "fp16"): {1: "1.3x", 32: "1.3x"},
    ("unet", "fp16"): {1: "1.3x"},
    ("resnet50", "fp32"): {1: "1.3x", 8: "1.3x", 32: "1.3x"},
    ("resnet50", "tf32"): {1: "1.3x", 8: "1.3x", 32: "1.3x"},
}
MATH = {"fp16": ("fp16", "tensor_op"), "fp32": ("fp32", "default"),
        "tf32": ("fp32", "tf32")}


class Clock:
    """Seconds left of those given."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return max(self.end - time.monotonic(), 0)


def parse_rows(texts):
    rows = []
    for text in texts:
        net, precision, batches = text.split(":")
        rows += [(net, precision, int(batch)) for batch in batches.split(",")]
    return rows


def name_of(row):
    return "{}, {}, batch {}".format(*row)


# ---- whoever takes turns: a process that answers each line with milliseconds ----------


class Runner:
    def __init__(self, command, environment=None):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
            text=True, env={**os.environ, **(environment or {})}, start_new_session=True)

    def kill(self):
        """With what it started, which may hold its end of the pipe."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def answer(self, clock):
        """The next line as JSON; the process ends when time does."""
        timer = threading.Timer(max(clock.left(), 0.5), self.kill)
        timer.start()
        try:
            for line in self.process.stdout:
                if line.startswith("{"):
                    return json.loads(line)
        finally:
            timer.cancel()
        raise RuntimeError(self.said()[-600:] or "no time left")

    def turn(self, clock):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.answer(clock)["device_ms"]

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def close(self):
        self.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.log):
            stream.close()


def strata(options, row, plugins, layers):
    net, precision, batch = row
    dtype, math = MATH[precision]
    command = [*options.program.split(), "-d", options.device, "-m", math, "-t",
               "-b", str(batch), "-p", dtype, "-n", "60", "-w", "5",
               *(["-l"] if layers else []),
               *(["-c", options.costs] if options.costs else []),
               "-s", f"build.trials={options.trials}",
               f"{options.nets}/{net}.ini"]
    return Runner(command, {"STRATA_PLUGIN_PATH": plugins} if plugins else None)


def own_folder(plugins, folder):
    """A folder with the plugins but for those that call others' kernels."""
    for name in os.listdir(plugins):
        if name.endswith(".so") and name not in FOREIGN:
            shutil.copy(os.path.join(plugins, name), folder)
    return folder


# ---- PyTorch -------------------------------------------------------------------------


def compiled(options, row):
    """The network and its input; compiled with no choice of algorithms, which is made when
    it is captured and nobody else computes."""
    import torch
    import ini_torch

    net, precision, batch = row
    dtype = torch.float16 if precision == "fp16" else torch.float32
    allowed = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    model = ini_torch.load(f"{options.nets}/{net}.ini", "cuda", dtype,
                           torch.channels_last)
    x = torch.randn(batch, *model.shape, device="cuda", dtype=dtype)
    x = x.contiguous(memory_format=torch.channels_last)
    fast = torch.compile(model, mode=options.compile, dynamic=False)
    with torch.inference_mode():
        fast(x)
    torch.cuda.synchronize()
    return fast, x


def serve(options, row):
    """The inside of a process that compiles, says so, and takes turns."""
    import torch

    network = compiled(options, row)
    print(json.dumps({"ready": True}), flush=True)
    replay = None
    for _ in sys.stdin:
        torch.backends.cudnn.benchmark = True
        replay = replay or captured(*network)
        print(json.dumps({"device_ms": milliseconds(replay)}), flush=True)


def torch_runner(options, row):
    command = [sys.executable, os.path.abspath(__file__), "--serve", *map(str, row),
               "--nets", options.nets, "--compile", options.compile]
    return Runner(command, {"TORCHINDUCTOR_COMPILE_THREADS": "2"})


def start_torch(options, rows, clock):
    """Runners of rows that are ready, by row."""
    runners = {row: torch_runner(options, row) for row in rows}
    for row in rows:
        try:
            runners[row].answer(clock)
        except RuntimeError as e:
            print(f"# {name_of(row)}: torch.compile: {e}", flush=True)
            runners.pop(row).close()
    return runners


# ---- measuring -----------------------------------------------------------------------


def take_turns(options, runners, clock):
    times = {way: [] for way in runners}
    for _ in range(options.turns):
        for way, runner in runners.items():
            times[way].append(runner.turn(clock))
    return {way: statistics.median(ms) for way, ms in times.items()}


def measure(options, row, own, torch_process, clock):
    """One row: engines built one after the other, then turns."""
    runners, found = {}, {}
    plugins = {"own": own, "strata": options.plugins}
    try:
        for way in ("own", "strata"):
            if way not in options.ways or (way == "own" and not own):
                continue
            runners[way] = strata(options, row, plugins[way],
                                  options.layers and way == "strata")
            found[way] = runners[way].answer(clock)
        if torch_process:
            runners["compile"] = torch_process
        result = dict(zip(("net", "precision", "batch"), row))
        result.update(take_turns(options, runners, clock))
        line = found.get("strata", {})
        result.update(predicted=line.get("predicted_ms"),
                      inner=line.get("inner_reformats"),
                      own_predicted=found.get("own", {}).get("predicted_ms"),
                      build_ms={way: line["build_ms"] for way, line in found.items()},
                      enqueue_us=line.get("enqueue_us"))
        if options.layers and "strata" in runners:
            with open(options.layers, "a", encoding="utf-8") as f:
                f.write(f"# {name_of(row)}\n{runners['strata'].said()}")
        return result
    finally:
        for runner in runners.values():
            runner.close()


def measure_all(options, rows, known):
    rows = [row for row in rows if row not in known]
    runners = {}
    if "compile" in options.ways:
        runners = start_torch(options, rows, Clock(options.compile_seconds))
    clock = Clock(options.seconds)
    with tempfile.TemporaryDirectory() as folder:
        own = own_folder(options.plugins, folder) if options.plugins else None
        for row in rows:
            if clock.left() <= 0:
                print(f"# {name_of(row)}: no time left", flush=True)
                continue
            try:
                known[row] = measure(options, row, own, runners.pop(row, None), clock)
                print(json.dumps(known[row]), flush=True)
            except (RuntimeError, OSError) as e:
                print(f"# {name_of(row)}: {e}", flush=True)
            keep_rows(options.json, known)
    for runner in runners.values():
        runner.close()


# ---- the table -----------------------------------------------------------------------


def read_rows(paths):
    known = {}
    for path in paths:
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                known.update({(r["net"], r["precision"], r["batch"]): r
                              for r in json.load(f)})
    return known


def keep_rows(path, known):
    if path:
        with open(path, "w", encoding="utf-8") as f:
            json.dump(list(known.values()), f, indent=1)


def goal_ms(row):
    """As a number, and as it is written."""
    goal = GOALS.get((row["net"], row["precision"]), {}).get(row["batch"])
    if isinstance(goal, str) and row.get("compile"):
        return row["compile"] / float(goal[:-1]), goal
    return (goal, f"{goal:.2f}") if isinstance(goal, float) else (None, goal or "-")


def cell(value, digits=3):
    return "-" if value is None else f"{value:.{digits}f}"


def ratio(row, a, b):
    return row[a] / row[b] if row.get(a) and row.get(b) else None


def print_markdown(known):
    print("| network, precision, batch | Strata ms | compile ms | compile / Strata | goal "
          "| reached | predicted ms | predicted / ms | inner reformats | own ms "
          "| own / Strata |")
    print("|---" * 11 + "|")
    for row in known.values():
        goal, text = goal_ms(row)
        ours = row.get("strata")
        reached = "-" if not goal or not ours else "yes" if ours <= goal else "no"
        print(f"| {row['net']}, {row['precision']}, {row['batch']} | {cell(ours)} | "
              f"{cell(row.get('compile'))} | {cell(ratio(row, 'compile', 'strata'), 2)} | "
              f"{text} | {reached} | {cell(row.get('predicted'))} | "
              f"{cell(ratio(row, 'predicted', 'strata'), 2)} | {row.get('inner', '-')} | "
              f"{cell(row.get('own'))} | {cell(ratio(row, 'own', 'strata'), 2)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="bench/net_time")
    parser.add_argument("--nets", default="bench/nets")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", nargs="+", metavar="NET:PRECISION:BATCH,...",
                        default=[f"{net}:{precision}:{','.join(map(str, goals))}"
                                 for (net, precision), goals in GOALS.items()])
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--plugins", type=os.path.abspath,
                        help="folder of Strata's plugins, needed for `own`")
    parser.add_argument("--compile", default="default", metavar="MODE",
                        help="torch.compile's mode")
    parser.add_argument("--costs", default="networks.costs", help="file of measured costs")
    parser.add_argument("--trials", default="15s",
                        help="time for other plans in whole runs, as strata build takes")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--compile-seconds", type=float, default=300,
                        help="what compiles longer is left out")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--layers", help="file for the tables of layers")
    parser.add_argument("--json", help="file of rows, read and written")
    parser.add_argument("--table", nargs="+", metavar="JSON", help="print, do not measure")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        net, precision, batch = options.serve
        serve(options, (net, precision, int(batch)))
        return 0
    rows = parse_rows(options.rows)
    if options.compile_only:
        runners = start_torch(options, rows, Clock(options.compile_seconds))
        for runner in runners.values():
            runner.close()
        print(f"# {len(runners)} of {len(rows)} compiled")
        return 0
    known = read_rows(options.table or ([options.json] if options.json else []))
    if not options.table:
        measure_all(options, rows, known)
    print_markdown(known)
    return 0


if __name__ == "__main__":
    sys.exit(main())
