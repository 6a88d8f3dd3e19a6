#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Integers of quantised ONNX operators: Strata, ONNX Runtime, and what ONNX defines.

    pip install -r bench/requirements.txt
    STRATA_PLUGIN_DIR=$PWD/plugins/.libs python3 bench/integers/compare.py [--cases 40]

Random small models of awkward shapes run four ways: ONNX Runtime without its graph
optimisations and with all of them, and Strata with its layers one by one (fusion = no)
and as planned. Each is held to the definition, computed here:

    QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, and graphs that only move
    elements between them: each operation of ONNX's formula in FP32, half to even
    ConvInteger, MatMulInteger: the sum of integers
    QLinearConv, QLinearMatMul, graphs that compute between Dequantize and Quantize: the
    real number that the formula stands for, to nearest, half to even

ONNX leaves open how the last kind's real number is rounded on its way. An element is
`open` where that number is nearer to a half than FP32's roundings can move it: for
QLinear five of them, for graphs one for each addend and six more. Scales are powers of
two in every other case; there FP32 is exact and nothing is open (but of averages). In
every fourth, the output's scale is the nearest to the inputs' scales by a power of two:
then what ends at a half, or would but for FP32's scales, is open. Half of the cases have
integers near their zeros alone, so that halves are many.

`in integers` counts models whose plan has one of Strata's Quantized layers, `halves`
elements that the definition rounds from exactly between two, `wrong` those that are not
open and differ from the definition, `neighbour` the open ones that are not what is
nearest to the real number, a column with != all that differ between two ways, and `far`
those of Strata by more than one from ONNX Runtime's without optimisations.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import onnx
import onnxruntime

from cases import OPERATORS, Model

WAYS = ("ORT", "ORT optimised", "one by one", "planned")
WHAT = ("wrong", "neighbour")
STRATA = {"one by one": ["--set=build.fusion=no"], "planned": []}


def run_theirs(path, inputs, names, optimised):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL if optimised
        else onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    return dict(zip(names, session.run(names, inputs)))


def plans_integers(a, path):
    """Whether the plan computes with integers what the model does in floats."""
    plan = subprocess.run([*a.strata.split(), "explain", "-q", "--costs=analytic", path],
                          stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, XDG_CACHE_HOME=os.path.dirname(path)))
    return "  Quantized" in plan.stdout


def run_ours(a, path, inputs, names, options):
    folder = os.path.dirname(path)
    words = [*a.strata.split(), "run", "-q", "--costs=analytic", path, *options]
    for name, array in inputs.items():
        np.save(f"{folder}/{name}.npy", array)
        words.append(f"{name}={folder}/{name}.npy")
    words += [f"--output={n}={folder}/{n}.out.npy" for n in names]
    done = subprocess.run(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          text=True, env=dict(os.environ, XDG_CACHE_HOME=folder))
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return {n: np.load(f"{folder}/{n}.out.npy") for n in names}


def attempt(failed, way, run):
    try:
        return run()
    except Exception as error:  # a refusal is counted and shown, whosever it is
        failed[way] = str(error)
        return None


def bits(array):
    return array.ravel().view("i4") if array.dtype == "f4" else array.ravel().astype("i8")


def compared(model, results, row):
    for name, (want, undecided) in model.wants.items():
        decided, expected = ~undecided.ravel(), bits(want)
        got = {w: bits(r[name]) for w, r in results.items() if r}
        row["elements"] += want.size
        row["halves"] += model.halves * (name == "y")
        row["open"] += int(undecided.sum())
        for way, values in got.items():
            row["wrong", way] += int((decided & (values != expected)).sum())
            row["neighbour", way] += int((~decided & (values != expected)).sum())
        for ours in STRATA:
            for theirs in WAYS[:2]:
                if ours in got and theirs in got:
                    apart = np.abs(got[ours].astype("i8") - got[theirs])
                    row["differ", ours, theirs] += int((apart > 0).sum())
                    row["far"] += int((apart > 1).sum()) * (theirs == "ORT")


def measure(a, name, number):
    row = dict.fromkeys(["in integers", "elements", "halves", "open", *(
        (what, w) for what in WHAT for w in WAYS), *(
        ("differ", o, t) for o in STRATA for t in WAYS[:2]), "far"], 0)
    for case in range(number):
        seed = [a.seed, zlib.crc32(name.encode()), case]
        model = Model(np.random.Generator(np.random.PCG64(seed)), case)
        with tempfile.TemporaryDirectory() as folder:
            if a.keep:
                folder = f"{a.keep}/{name.replace(' ', '-')}-{case}"
                os.makedirs(folder, exist_ok=True)
            path, failed = f"{folder}/case.onnx", {}
            OPERATORS[name](model)
            model.save(path)
            read = model.inputs, list(model.wants)
            results = {w: attempt(failed, w, lambda w=w: run_theirs(
                path, *read, w != "ORT")) for w in WAYS[:2]}
            for way, options in STRATA.items():
                results[way] = attempt(failed, way, lambda o=options: run_ours(
                    a, path, *read, o))
            row["in integers"] += plans_integers(a, path)
        for way, why in failed.items():
            print(f"{name} {case}: {way} refused: {why}", file=sys.stderr)
        before = dict(row)
        compared(model, results, row)
        if a.verbose:
            print(name, case, {k: row[k] - before[k] for k in row if row[k] != before[k]})
    return row


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--strata", default="./strata", help="the command")
    p.add_argument("--cases", type=int, default=40, help="of each operator")
    p.add_argument("--operators", default=",".join(OPERATORS))
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--keep", help="a folder for the models and their inputs")
    p.add_argument("--verbose", action="store_true", help="a line for each case")
    a = p.parse_args()
    print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}, "
          f"numpy {np.__version__}, seed {a.seed}, {a.cases} cases each")
    pairs = [(o, t) for o in STRATA for t in WAYS[:2]]
    head = ["operator", "in integers", "elements", "halves", "open",
            *(f"{w} {what}" for what in WHAT for w in WAYS),
            *(f"{o} != {t}" for o, t in pairs), "far"]
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|", flush=True)
    for name in a.operators.split(","):
        row = measure(a, name, a.cases)
        print(f"| {name} | {' | '.join(str(v) for v in row.values())} |", flush=True)


if __name__ == "__main__":
    main()
