#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks of INT8 at batch 1 on the host: Strata, ONNX Runtime and OpenVINO in turns.

    pip install -r bench/requirements.txt
    STRATA_PLUGIN_DIR=$PWD/plugins/.libs python3 bench/host_int8.py [--nets resnet50,...]

From each INI file of bench/nets an ONNX model with the same random weights is written
(host_vs_peers.py) and quantized by ONNX Runtime's own tool: INT8 weights with a scale for
each channel, Quantize and Dequantize between layers, ranges of random images. All three
read that one model. Activations are one of

    u8    UINT8, any zero: what comes from a ReLU has 0 as its zero
    s8    INT8, zero 0 (symmetric)
    a8    INT8, any zero: what comes from a ReLU has -128 as its zero

Rounds of runs alternate as in host_layers.py, and one that other processes disturb is
taken again. Printed are the median and the least of the rounds' medians in ms, the median
of each round's ratio to the better peer's time in it and the ratio of the least times,
what share of the processors others had at most, and how far outputs are from ONNX
Runtime's, in dB. Integers that lie between two steps go either way, and the differences
grow from layer to layer. --processor prints the processor time of a run with one thread
in the place of times, the least of several blocks, which others disturb less.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

import numpy as np

import host_layers
import host_vs_peers

IMAGES = 4  # that ranges are taken from
KINDS = {"u8": ("QUInt8", False), "s8": ("QInt8", True), "a8": ("QInt8", False)}
LEAST = 10  # dB
RUNS, BLOCKS = 10, 10


class Images:
    """What ONNX Runtime's tool takes ranges from."""

    def __init__(self, name, shape):
        random = np.random.Generator(np.random.PCG64(1))
        self.all = iter([{name: random.uniform(-1, 1, shape).astype("f4")}
                         for _ in range(IMAGES)])

    def get_next(self):
        return next(self.all, None)


def quantize(source, target, kind, images):
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    prepared = target + ".prepared.onnx"
    quant_pre_process(source, prepared, skip_symbolic_shape=True)
    dtype, symmetric = KINDS[kind]
    quantize_static(prepared, target, images, quant_format=QuantFormat.QDQ,
                    activation_type=QuantType[dtype], weight_type=QuantType.QInt8,
                    per_channel=True, extra_options={"ActivationSymmetric": symmetric})


def prepare(a, net, kind, folder):
    """net.onnx and net.ini of 8 bits, x.npz and x.npy; those that are there are kept."""
    path = os.path.join(host_vs_peers.ROOT, host_vs_peers.NETS[net])
    ini = host_vs_peers.read_ini(path)
    model = f"{folder}/net.onnx"
    if not os.path.exists(model):
        graph = host_vs_peers.Graph(ini, None).build()
        graph.save(f"{folder}/float.onnx", host_vs_peers.before_softmax(ini))
        quantize(f"{folder}/float.onnx", model, kind, Images(graph.input, graph.shape))
        x = Images(graph.input, graph.shape).get_next()
        np.savez(f"{folder}/x.npz", **x)
        np.save(f"{folder}/x.npy", x[graph.input])
    text = f"{folder}/net.ini"
    if not os.path.exists(text):
        host_layers.call([*a.strata.split(), "import", model, "-o", text], a.threads)
    for setting, options in a.settings.items():
        host_layers.call([*a.strata.split(), "build", text, "-o",
                          f"{folder}/{setting}.engine", *options], a.threads)


def strata_time(a, engine):
    line = host_layers.call(
        [*a.strata.split(), "bench", engine, "-o", "jsonl",
         f"--warmup={a.seconds * 300:.0f}ms", f"--duration={0.7 * a.seconds}s"],
        a.threads).splitlines()[0]
    return json.loads(line)["latency"]["median_ms"]


def spent(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def spend(peer, folder):
    """Processor ms of a peer's run on one thread."""
    with np.load(f"{folder}/x.npz") as data:
        arrays = dict(data)
    opened = host_layers.OPEN[peer](f"{folder}/net.onnx", 1, arrays)  # kept while it runs
    run = opened[0]
    blocks = []
    for _ in range(BLOCKS + 1):
        begin = spent(resource.RUSAGE_SELF)
        for _ in range(RUNS):
            run()
        blocks.append((spent(resource.RUSAGE_SELF) - begin) / RUNS * 1e3)
    print(min(blocks[1:]), flush=True)
    os._exit(0)  # some end badly


def strata_spends(a, folder):
    """The same of Strata: of a long bench less that of a short one."""
    engine, options = f"{folder}/one.engine", ["--set=runtime.threads=1"]
    host_layers.call([*a.strata.split(), "build", f"{folder}/net.ini", "-o", engine,
                      *options], 1)

    def bench(runs):
        begin = spent(resource.RUSAGE_CHILDREN)
        host_layers.call([*a.strata.split(), "bench", engine, *options, "--warmup=1ms",
                          "--duration=1ms", f"--iterations={runs}"], 1)
        return spent(resource.RUSAGE_CHILDREN) - begin

    return min((bench(7 * RUNS) - bench(RUNS)) / (6 * RUNS) * 1e3
               for _ in range(BLOCKS // 2))


def print_processor(a, name, folder):
    times = {"strata": strata_spends(a, folder)}
    for peer in host_layers.PEERS:
        times[peer] = float(subprocess.run(
            [sys.executable, os.path.abspath(__file__), "--spend", peer, folder],
            env=dict(os.environ, OMP_NUM_THREADS="1"), stdout=subprocess.PIPE, check=True,
            text=True).stdout)
    print(f"| {name} | {' | '.join(f'{t:.2f}' for t in times.values())} | "
          f"{ratio(times, 'strata'):.2f} |", flush=True)


def decibels(folder):
    ours = np.load(f"{folder}/strata.npy").ravel().astype("f8")
    theirs = np.load(f"{folder}/onnxruntime.npy").ravel().astype("f8")
    return 10 * np.log10((theirs**2).sum() / max(((ours - theirs)**2).sum(), 1e-30))


def measure(a, net, kind, folder, peers):
    prepare(a, net, kind, folder)
    host_layers.call([*a.strata.split(), "run", "-q", f"{folder}/net.ini",
                      f"{folder}/x.npy", f"--output={folder}/strata.npy"], a.threads)
    ways = {s: lambda s=s: strata_time(a, f"{folder}/{s}.engine") for s in a.settings}
    for peer in peers:
        peer.ask(folder)
        ways[peer.name] = lambda peer=peer: peer.ask(a.seconds) / 1e3
    near = decibels(folder)
    if near < LEAST:
        sys.exit(f"{net}: outputs are {near:.0f} dB from ONNX Runtime's")
    rounds, others = [], 0
    for _ in range(a.rounds):
        row = {}
        for way, take in ways.items():
            share, row[way] = host_layers.alone(take, a, peers)
            others = max(others, share)
        rounds.append(row)
    return rounds, others, near


def ratio(times, setting):
    return times[setting] / min(times[p] for p in host_layers.PEERS)


def print_row(a, name, rounds, others, near):
    names = [*a.settings, *host_layers.PEERS]
    cells = [f"{statistics.median(r[n] for r in rounds):.2f}, "
             f"{min(r[n] for r in rounds):.2f}" for n in names]
    ratios = [f"{statistics.median(ratio(r, s) for r in rounds):.2f}, "
              f"{ratio({n: min(r[n] for r in rounds) for n in names}, s):.2f}"
              for s in a.settings]
    print(f"| {name} | {' | '.join(cells)} | {' | '.join(ratios)} | {100 * others:.0f} | "
          f"{near:.0f} |", flush=True)


def print_head(a):
    names = ["strata"] if a.processor else list(a.settings)
    more = [] if a.processor else ["others %", "dB"]
    cells = ["network", *(f"{n} ms" for n in (*names, *host_layers.PEERS)),
             *(f"{n} / better peer" for n in names), *more]
    print(f"| {' | '.join(cells)} |\n{'|---' * len(cells)}|", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--strata", default="./strata", help="the command")
    p.add_argument("--nets", default="resnet50,resnet18,mobilenet_v2")
    p.add_argument("--kinds", default="u8,s8,a8", help="of activations")
    p.add_argument("--folder", help="keep models here, and use those there")
    p.add_argument("--measured", action="store_true", help="plans of measured costs, too")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=float, default=1.0, help="of a round")
    p.add_argument("--tries", type=int, default=3, help="of a round that others disturb")
    p.add_argument("--processor", action="store_true", help="processor time, one thread")
    p.add_argument("--spend", nargs=2, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.spend:
        return spend(*a.spend)
    a.settings = {"default": []}
    if a.measured:
        a.settings["measured"] = ["--costs=measure"]
    peers = [host_layers.Peer(name, a.threads) for name in host_layers.PEERS]
    print_head(a)
    with tempfile.TemporaryDirectory() as scratch:
        for net in a.nets.split(","):
            for kind in a.kinds.split(","):
                folder = os.path.join(a.folder or scratch, f"{net}-{kind}")
                os.makedirs(folder, exist_ok=True)
                if a.processor:
                    prepare(a, net, kind, folder)
                    print_processor(a, f"{net} {kind}", folder)
                else:
                    print_row(a, f"{net} {kind}", *measure(a, net, kind, folder, peers))
    for peer in peers:
        peer.stop()


if __name__ == "__main__":
    main()
