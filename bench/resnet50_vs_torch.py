#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 on one GPU: Strata beside PyTorch, in one run.

    resnet50_vs_torch.py [--program NET_TIME] [--nets FOLDER] [--cases fp16:1,32,... ...]
                         [--plugins FOLDER] [--compile MODE] [--seconds N] [--json FILE]

A line a case, all on random data of the same shape, times in milliseconds between CUDA
events with runs one behind the other:

    strata           the plan of least measured time, by its graph; FP16 on tensor cores
    strata_cudnn     the same with cuDNN's convolutions alone (needs --plugins)
    eager            PyTorch, channels-last, batch normalisation folded, no TF32
    eager_graph      the same, captured into one CUDA graph
    compile_graph    the same by torch.compile, captured; compiled last, all cases in turn

and of Strata: enqueue_us of the host, device_bytes of engine and context, reformats in
all and between layers, and stem_us and maxpool_us of the layers where the net has them.
"X / strata" is above 1 where Strata is faster.

Costs are measured once and kept in --costs. What does not fit into --seconds is left out
and said so.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from torch_times import captured, milliseconds

NOT_CUDNN = ("convolution-cuda.so", "cublaslt.so")
WAYS = ("strata", "strata_cudnn", "eager", "eager_graph", "compile_graph")
TAKEN = ("enqueue_us", "weight_bytes", "arena_bytes", "device_bytes", "reformats",
         "inner_reformats", "build_ms")


class Clock:
    """Seconds left of those given."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()


# ---- Strata --------------------------------------------------------------------------


def layer_us(table, name):
    """Of the table of layers on stderr; None if the plan has no such layer."""
    for line in table.splitlines():
        found = re.match(r"#\s+([\d.]+)\s+[\d.]+%.*\s" + name + r"( \+ .*)?$", line)
        if found and "(reformat)" not in line:
            return float(found.group(1))
    return None


def strata(options, precision, batch, clock, plugins=None):
    """One line of net_time as a dict, and its table of layers."""
    runs = 100 if batch < 64 else 40
    command = [*options.program.split(), "-d", options.device, "-m", "tensor_op", "-l",
               "-b", str(batch), "-p", precision, "-n", str(runs), "-w", "5",
               *(["-c", options.costs] if options.costs else []),
               *options.net_time.split(),
               f"{options.nets}/resnet50.ini"]
    environment = {**os.environ, **({"STRATA_PLUGIN_PATH": plugins} if plugins else {})}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False, env=environment,
                          timeout=max(clock.left(), 1))
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-500:]}")
    return json.loads(done.stdout), done.stderr


def cudnn_folder(plugins, folder):
    """A folder with the plugins but for convolutions that are not cuDNN's."""
    for name in os.listdir(plugins):
        if name.endswith(".so") and name not in NOT_CUDNN:
            shutil.copy(os.path.join(plugins, name), folder)
    return folder


# ---- PyTorch -------------------------------------------------------------------------


def fold(module):
    """Batch normalisation into the convolution before it, as in the network file."""
    import torch
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    before = None
    for name, child in list(module.named_children()):
        if isinstance(child, torch.nn.BatchNorm2d):
            setattr(module, before, fuse_conv_bn_eval(getattr(module, before), child))
            setattr(module, name, torch.nn.Identity())
        fold(child)
        before = name
    return module


def model_and_input(precision, batch):
    import torch
    import torchvision

    dtype = torch.float16 if precision == "fp16" else torch.float32
    # As Strata: no TF32, FP32 is FP32.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    model = fold(torchvision.models.resnet50(weights=None).eval())
    model = model.to("cuda", dtype, memory_format=torch.channels_last)
    x = torch.randn(batch, 3, 224, 224, device="cuda", dtype=dtype)
    return model, x.contiguous(memory_format=torch.channels_last)


def eager_times(precision, batch):
    import torch

    model, x = model_and_input(precision, batch)
    with torch.inference_mode():
        for _ in range(3):
            model(x)
        eager = milliseconds(lambda: model(x))
    return {"eager": eager, "eager_graph": milliseconds(captured(model, x))}


def compile_cases(cases, mode):
    """The inside of the process that compiles: a line of JSON a case."""
    import torch

    for precision, batch in cases:
        model, x = model_and_input(precision, batch)
        torch._dynamo.reset()
        fast = torch.compile(model, mode=mode, dynamic=False)
        ms = milliseconds(captured(fast, x))
        print(json.dumps([precision, batch, ms]), flush=True)


def compiled_times(options, clock):
    """By (precision, batch), as far as the time goes. A process of its own: compiling may
    take minutes, and may hang."""
    command = [sys.executable, __file__, "--inside", "--compile", options.compile,
               "--cases", *options.cases]
    if not options.compile:
        return {}
    with tempfile.TemporaryFile("w+") as lines:
        with subprocess.Popen(command, stdout=lines, text=True) as process:
            try:
                process.wait(max(clock.left(), 1))
            except subprocess.TimeoutExpired:
                process.kill()
        lines.seek(0)
        found = [json.loads(line) for line in lines if line.endswith("]\n")]
    return {(precision, batch): ms for precision, batch, ms in found}


# ---- the table -----------------------------------------------------------------------


def parse_cases(texts):
    return [(precision, int(batch)) for text in texts
            for precision, batches in [text.split(":")] for batch in batches.split(",")]


def show(row):
    print(json.dumps({k: round(v, 4) if isinstance(v, float) else v
                      for k, v in row.items()}), flush=True)


def add_ratios(row):
    row.update({f"{way} / strata": row[way] / row["strata"] for way in WAYS[1:]
                if row.get(way) and row.get("strata")})


def measure(options, precision, batch, cudnn, torch_too, clock):
    line, table = strata(options, precision, batch, clock)
    row = {"precision": precision, "batch": batch, "strata": line["device_ms"],
           **{key: line[key] for key in TAKEN},
           "stem_us": layer_us(table, "conv1"), "maxpool_us": layer_us(table, "maxpool")}
    if options.layers:
        with open(options.layers, "a", encoding="utf-8") as f:
            f.write(f"# {precision}, batch {batch}\n{table}")
    if cudnn and clock.left() > 0:
        line = strata(options, precision, batch, clock, cudnn)[0]
        row.update(strata_cudnn=line["device_ms"], cudnn_enqueue_us=line["enqueue_us"])
    if torch_too and clock.left() > 0:
        row.update(eager_times(precision, batch))
    add_ratios(row)
    return row


def table(options, torch_too):
    rows, clock = [], Clock(options.seconds)
    with tempfile.TemporaryDirectory() as folder:
        cudnn = cudnn_folder(options.plugins, folder) if options.plugins else None
        for precision, batch in parse_cases(options.cases):
            if clock.left() <= 0:
                print(f"# {precision}, batch {batch}: no time left", flush=True)
                continue
            try:
                rows.append(measure(options, precision, batch, cudnn, torch_too, clock))
                show(rows[-1])
            except (RuntimeError, subprocess.TimeoutExpired) as e:
                print(f"# {precision}, batch {batch}: {e}", flush=True)
    times = compiled_times(options, clock) if torch_too else {}
    for row in rows:
        row["compile_graph"] = times.get((row["precision"], row["batch"]))
        add_ratios(row)
    return rows


def print_markdown(rows):
    print("\n| precision | batch | " + " | ".join(f"{w} ms" for w in WAYS) +
          " | best of PyTorch / strata | enqueue us | reformats, between layers |")
    print("|---" * (len(WAYS) + 5) + "|")
    for row in rows:
        others = [row[w] for w in WAYS[2:] if row.get(w)]
        best = f"{min(others) / row['strata']:.2f}" if others else "-"
        times = [f"{row[w]:.3f}" if row.get(w) else "-" for w in WAYS]
        print(f"| {row['precision']} | {row['batch']} | " + " | ".join(times) +
              f" | {best} | {row['enqueue_us']:.1f} | {row['reformats']}, "
              f"{row['inner_reformats']} |")


def start_torch():
    """Whether PyTorch can be measured here; says which."""
    try:
        import torch
        import torchvision
        print(f"# torch {torch.__version__}, torchvision {torchvision.__version__}, "
              f"cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}",
              flush=True)
        return True
    except (ImportError, RuntimeError, AssertionError) as e:
        print(f"# without PyTorch: {e}", flush=True)
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="bench/net_time")
    parser.add_argument("--nets", default="bench/nets")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cases", nargs="+", metavar="PRECISION:BATCH,...",
                        default=["fp16:1,32,128,8,256", "fp32:1,8,32"])
    parser.add_argument("--plugins", help="folder of Strata's plugins: adds strata_cudnn")
    parser.add_argument("--compile", default="default", metavar="MODE",
                        help="torch.compile's mode; empty: leave it out")
    parser.add_argument("--costs", default="resnet50.costs",
                        help="file of measured costs; empty: as the network says")
    parser.add_argument("--net-time", default="", help="further options of the program")
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--layers", help="file for Strata's layers of each case")
    parser.add_argument("--json", help="file for the rows")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        compile_cases(parse_cases(options.cases), options.compile)
        return 0
    rows = table(options, start_torch())
    print_markdown(rows)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
