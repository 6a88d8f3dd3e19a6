#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers on one GPU: Strata beside PyTorch and beside a copy, in one run.

    layers_vs_torch.py [--program NET_TIME] [--only NAME,...] [--seconds N] [--json FILE]

A line a case. Strata is a network of the one layer by its measured plan and graph, PyTorch
the function that users call, captured into a graph, on random data that is larger than the
caches where the case is about memory. Both are timed between events, after a rest, with
runs one behind the other; of some rounds' medians the least counts. What must move or be
computed is counted by the case: TB/s are bytes read once and written once, TFLOP/s
multiply-adds as two; `copy` is torch's negation of 1 GiB. "torch / strata" is above 1 where
Strata is faster.
"""
import argparse
import array
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

from torch_times import ROUNDS, RUNS, captured, milliseconds

REST = 0.3  # seconds without work before either is timed: clocks follow what was done


def net(inputs, layers, output="y", precision="fp16", formats=None, weights=True):
    """An INI file: inputs are (name, shape, dtype, format)."""
    lines = ["[network]", "format = 1", f"outputs = {output}"]
    if formats:
        lines.append(f"output_formats = {formats}")
    for name, shape, dtype, layout in inputs:
        lines += [f"[input {name}]", f"shape = {'x'.join(map(str, shape))}"]
        lines += [f"dtype = {dtype}"] if dtype else []
        lines += [f"format = {layout}"] if layout else []
    if weights:
        lines += ["[weights w]", "random = 1"]
    for name, text in layers:
        lines += [f"[layer {name}]", *text.split("; ")]
    return "\n".join([*lines, "[build]", f"precision = {precision}", ""])


def half(name, *shape, layout="fp16:nchw"):
    return (name, shape, None, layout)


def one(layer, *inputs, out="fp16:nchw", **more):
    return net(inputs, [("y", layer)], formats=out, **more)


def product(*dims):
    total = 1
    for d in dims:
        total *= d
    return total


class Case:
    """indices: how many the input is, and below what; without, net_time fills it."""

    path = None  # of an INI file, in place of `ini`

    def __init__(self, name, ini, run, make, tbytes=0, flops=0, indices=None):
        self.name, self.ini, self.run, self.make = name, ini, run, make
        self.bytes, self.flops, self.indices = tbytes, flops, indices


def cases():
    import torch
    import torch.nn.functional as f

    def h(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.float16)

    def last(*shape):
        return h(*shape).contiguous(memory_format=torch.channels_last)

    def last3(*shape):
        return h(*shape).contiguous(memory_format=torch.channels_last_3d)

    rows = []

    def add(*arguments, **more):
        rows.append(Case(*arguments, **more))

    for n, c in ((16384, 4096), (65536, 768), (4096, 16384), (8192, 128)):
        size = 2 * product(n, c) * 2
        add(f"layer_norm {n}x{c}", one("type = Normalization; kind = layer; scale = w:s; bias = w:b",
                                       half("x", n, c)),
            lambda x, s, b: f.layer_norm(x, x.shape[1:], s, b),
            lambda n=n, c=c: (h(n, c), h(c), h(c)), tbytes=size)
        add(f"rms_norm {n}x{c}", one("type = Normalization; kind = rms; scale = w:s",
                                     half("x", n, c)),
            lambda x, s: f.rms_norm(x, x.shape[1:], s),
            lambda n=n, c=c: (h(n, c), h(c)), tbytes=size)
        add(f"softmax {n}x{c}", one("type = Softmax; axis = 1", half("x", n, c)),
            lambda x: torch.softmax(x, 1), lambda n=n, c=c: (h(n, c),), tbytes=size)
    big = (16384, 4096)
    many = product(*big)
    add("row sum 16384x4096", one("type = Reduce; op = sum; axes = 1", half("x", *big)),
        lambda x: x.sum(1), lambda: (h(*big),), tbytes=2 * many)
    add("column sum 16384x4096", one("type = Reduce; op = sum; axes = 0", half("x", *big)),
        lambda x: x.sum(0), lambda: (h(*big),), tbytes=2 * many)
    add("mean over 2,3 of 128x256x56x56",
        one("type = Reduce; op = mean; axes = 2, 3", half("x", 128, 256, 56, 56)),
        lambda x: x.mean((2, 3)), lambda: (h(128, 256, 56, 56),),
        tbytes=2 * product(128, 256, 56, 56))
    add("gelu", one("type = Activation; kind = gelu", half("x", *big)),
        f.gelu, lambda: (h(*big),), tbytes=4 * many)
    add("add", one("type = ElementWise; inputs = a, b", half("a", *big), half("b", *big)),
        torch.add, lambda: (h(*big), h(*big)), tbytes=6 * many)
    add("exp", one("type = Unary; op = exp", half("x", *big)), torch.exp,
        lambda: (h(*big),), tbytes=4 * many)
    add("less", one("type = Compare; op = less; inputs = a, b", half("a", *big),
                    half("b", *big), out="bool:nchw"),
        torch.lt, lambda: (h(*big), h(*big)), tbytes=5 * many)
    add("where", one("type = Select; inputs = c, a, b", ("c", big, "bool", None),
                     half("a", *big), half("b", *big)),
        torch.where, lambda: (h(*big) > 0, h(*big), h(*big)), tbytes=7 * many)
    add("cast fp32 to fp16", one("type = Cast; to = fp16", ("x", big, None, "fp32:nchw"),
                                 precision="any"),
        lambda x: x.half(), lambda: (h(*big).float(),), tbytes=6 * many)
    chain = [("a", "type = Unary; op = exp; inputs = x"),
             ("b", "type = ElementWise; op = product; inputs = a, z"),
             ("c", "type = Activation; kind = sigmoid"),
             ("d", "type = ElementWise; op = sum; inputs = c, x"),
             ("e", "type = Unary; op = abs"),
             ("y", "type = ElementWise; op = max; inputs = e, z")]
    add("chain of 6", net((half("x", *big), half("z", *big)), chain, formats="fp16:nchw"),
        lambda x, z: torch.maximum(
            torch.abs(torch.sigmoid(torch.exp(x) * z) + x), z),
        lambda: (h(*big), h(*big)), tbytes=6 * many)
    add("cumsum 16384x4096", one("type = CumSum; axis = 1", half("x", *big)),
        lambda x: torch.cumsum(x, 1), lambda: (h(*big),), tbytes=4 * many)
    for width in (4096, 768):
        add(f"embedding 65536 of 50257x{width}",
            one(f"type = Embedding; table = w:e; rows = 50257; columns = {width}",
                ("x", (65536,), "i64", None)),
            lambda i, t: f.embedding(i, t),
            lambda width=width: (torch.randint(0, 50257, (65536,), device="cuda"),
                                 h(50257, width)), tbytes=4 * 65536 * width,
            indices=(65536, 50257))
    add("group_norm 32x320x64x64 NHWC, 32 groups",
        one("type = Normalization; kind = group; groups = 32; scale = w:s; bias = w:b",
            half("x", 32, 320, 64, 64, layout="fp16:nhwc8"), out="fp16:nhwc8"),
        lambda x, s, b: f.group_norm(x, 32, s, b),
        lambda: (last(32, 320, 64, 64), h(320), h(320)),
        tbytes=4 * product(32, 320, 64, 64))
    add("LRN 128x64x112x112", one("type = LRN; size = 5", half("x", 128, 64, 112, 112)),
        lambda x: f.local_response_norm(x, 5), lambda: (h(128, 64, 112, 112),),
        tbytes=4 * product(128, 64, 112, 112))
    add("top 10 of 64x50000", one("type = TopK; k = 10", half("x", 64, 50000),
                                  ),
        lambda x: torch.topk(x, 10), lambda: (h(64, 50000),), tbytes=2 * 64 * 50000)
    add("argmax of 64x50000", one("type = ArgMax; axis = 1", half("x", 64, 50000),
                                  out="i64:nchw"),
        lambda x: x.argmax(1), lambda: (h(64, 50000),), tbytes=2 * 64 * 50000)
    nhwc = {"layout": "fp16:nhwc8"}
    add("deconvolution 4x4/2 of 32x256x56x56 to 128",
        one("type = Deconvolution; filters = 128; kernel = 4; stride = 2; pad = 1; "
            "weight = w:w", half("x", 32, 256, 56, 56, **nhwc), out="fp16:nhwc8"),
        lambda x, w: f.conv_transpose2d(x, w, stride=2, padding=1),
        lambda: (last(32, 256, 56, 56), last(256, 128, 4, 4)),
        flops=2 * product(32, 256, 56, 56, 128, 16))
    add("deconvolution 2x2/2 of 32x256x64x64 to 128",
        one("type = Deconvolution; filters = 128; kernel = 2; stride = 2; "
            "weight = w:w", half("x", 32, 256, 64, 64, **nhwc), out="fp16:nhwc8"),
        lambda x, w: f.conv_transpose2d(x, w, stride=2),
        lambda: (last(32, 256, 64, 64), last(256, 128, 2, 2)),
        flops=2 * product(32, 256, 64, 64, 128, 4))
    add("conv3d 3x3x3 of 16x128x16x56x56 to 128",
        one("type = Convolution; filters = 128; kernel = 3; pad = 1; "
            "weight = w:w", half("x", 16, 128, 16, 56, 56, layout="fp16:ndhwc8"),
            out="fp16:ndhwc8"),
        lambda x, w: f.conv3d(x, w, padding=1),
        lambda: (last3(16, 128, 16, 56, 56), last3(128, 128, 3, 3, 3)),
        flops=2 * product(16, 128, 16, 56, 56, 128, 27))
    for m, n, k in ((4096, 4096, 4096), (8192, 8192, 8192), (128, 3072, 768)):
        add(f"matmul {m}x{n}x{k}",
            one(f"type = MatrixMultiply; units = {n}; b = w:b", half("x", m, k)),
            torch.matmul, lambda m=m, n=n, k=k: (h(m, k), h(k, n)), flops=2 * m * n * k)
    for n, k in ((4096, 4096), (28672, 8192), (7168, 57344)):
        add(f"gemv 1x{n}x{k}",
            one(f"type = MatrixMultiply; units = {n}; b = w:b", half("x", 1, k)),
            torch.matmul, lambda n=n, k=k: (h(1, k), h(n, k).t()), tbytes=2 * n * k)
    return rows


# ---- timing --------------------------------------------------------------------------


def torch_time(case):
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    replay = captured(case.run, *case.make())
    torch.cuda.synchronize()
    time.sleep(REST)
    return milliseconds(replay)


def copy_rate():
    """Bytes a second of a kernel that reads 1 GiB and writes as much."""
    import torch

    a = torch.randn(1 << 28, device="cuda")
    b = torch.empty_like(a)
    ms = milliseconds(captured(lambda: torch.neg(a, out=b)))
    return 2 * a.numel() * a.element_size() / (ms * 1e-3)


def write_indices(folder, count, below):
    """A file of int64, as torch.randint chooses them."""
    path, chosen = os.path.join(folder, "indices.raw"), random.Random(1)
    with open(path, "wb") as file:
        array.array("q", (chosen.randrange(below) for _ in range(count))).tofile(file)
    return path


def strata_time(options, case, folder, *more):
    """Milliseconds, as torch_times.milliseconds() takes them, and a table of layers."""
    path, more = case.path or os.path.join(folder, "net.ini"), list(more)
    if not case.path:
        with open(path, "w", encoding="utf-8") as text:
            text.write(case.ini)
    if case.indices:
        more += ["-i", write_indices(folder, *case.indices)]
    command = [*options.program.split(), "-d", options.device, "-m", "tensor_op", "-n",
               str(RUNS), "-w", "5", "-l", "-t", "-s", f"build.trials={options.trials}",
               *more, path]
    with tempfile.TemporaryFile("w+") as log, subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            text=True) as program:
        timer = threading.Timer(options.seconds, program.kill)
        timer.start()
        try:
            times = turns(program)
        finally:
            timer.cancel()
        program.wait()
        log.seek(0)
        errors = log.read()
    if program.returncode or len(times) < ROUNDS:
        raise RuntimeError(errors.strip()[-400:] or "no time left")
    return min(times), errors


def turns(program):
    """Medians of a program that measures again for each line on its input."""
    times = []
    if program.stdout.readline():  # what it measured by itself, plans and layers with it
        time.sleep(REST)
        for _ in range(ROUNDS):
            program.stdin.write("\n")
            program.stdin.flush()
            line = program.stdout.readline()
            if not line:
                break
            times.append(json.loads(line)["device_ms"])
    program.stdin.close()
    return times


def measure(options, case, copy, folder):
    ours, table = strata_time(options, case, folder)
    theirs = torch_time(case)
    work, unit = (case.flops, "TFLOP/s") if case.flops else (case.bytes, "TB/s")
    row = {"case": case.name, "strata_us": ours * 1e3, "torch_us": theirs * 1e3,
           "strata": work / ours * 1e-9, "torch": work / theirs * 1e-9, "unit": unit,
           "of_copy": work / (ours * 1e-3) / copy if case.bytes else None,
           "torch / strata": theirs / ours, "layers": table}
    share = f", {row['of_copy']:.2f} of a copy" if row["of_copy"] else ""
    print(f"{case.name:45} {row['strata_us']:9.1f} us {row['strata']:8.2f} {unit}"
          f"{share}; torch {row['torch_us']:9.1f} us {row['torch']:8.2f}: "
          f"{row['torch / strata']:.2f}", flush=True)
    return row


def parser_of(doc, seconds):
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--program", default="bench/net_time")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--trials", default="15s",
                        help="time for other plans in whole runs, as strata build takes")
    parser.add_argument("--only", help="parts of names, separated by commas")
    parser.add_argument("--seconds", type=float, default=seconds, help="of the whole table")
    parser.add_argument("--json", help="file for the rows")
    return parser


def table(options, chosen, run):
    """run(case, folder) of each case that is asked for, while there is time. Exit status."""
    end, rows = time.monotonic() + options.seconds, []
    with tempfile.TemporaryDirectory() as folder:
        for case in chosen:
            if options.only and not any(p in case.name for p in options.only.split(",")):
                continue
            if time.monotonic() > end:
                print(f"# {case.name}: no time left", flush=True)
                continue
            try:
                rows.append(run(case, folder))
            except (RuntimeError, OSError, subprocess.TimeoutExpired) as e:
                print(f"# {case.name}: {e}", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as text:
            json.dump(rows, text, indent=1)
    return 0 if rows else 1


def main():
    options = parser_of(__doc__, 200).parse_args()
    import torch

    copy = copy_rate()
    print(f"# torch {torch.__version__}, {torch.cuda.get_device_name()}, copy "
          f"{copy * 1e-12:.2f} TB/s", flush=True)
    return table(options, cases(), lambda case, folder: measure(options, case, copy, folder))


if __name__ == "__main__":
    sys.exit(main())
