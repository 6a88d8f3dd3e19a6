#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks over sequences, exported with batch and length left free, imported once, and held
to PyTorch at every size:

    sizes.py [-o FOLDER] [--strata PROGRAM] [--exporter EXPORTER] [--layers L] [NET...]

BERT-base with its attention as one operator and spelled out, and the tagger and decoder of
networks.py, for batches of 1 and 3 and lengths of 1, 7, 24 and 128, the decoder behind 0, 1,
16 and 64 keys. A line for each network and exporter: the largest difference of any output at any size over that output's largest
value, which has to be at most 1e-4, the seconds that the import took, and nodes and reformats
of the plan for the largest sizes. FOLDER (default: a temporary one) keeps models and networks;
a model that is there is not exported again. The exporter before the current one has no
RMSNorm, and so no decoder.

Needs torch, onnx and onnxscript. Exit status: 0 all agree, 1 some do not.
"""
import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
import types
import warnings

import numpy
import torch

import bert
import networks

BATCHES, LENGTHS, PASTS = (1, 3), (1, 7, 24, 128), (0, 1, 16, 64)
SIZES = {"batch": "1,3", "length": "1..128", "past": "0..64"}
EXPORTERS = ("current", "older")
MOST = 1e-4


def free_dims(name):
    """Which dims of an input are free."""
    return {0: "batch", 2: "past"} if name.startswith("past") else {0: "batch", 1: "length"}


def make_bert(a, eager=False):
    return bert.make(types.SimpleNamespace(**vars(a), eager=eager, mask=True))


NETS = {"bert": make_bert, "bert-eager": lambda a: make_bert(a, True),
        "tagger": networks.tagger, "decoder": networks.decoder}
LACKS = {("decoder", "older")}


def make(name, layers, batch, length, past):
    """Network, inputs, names of outputs."""
    torch.manual_seed(0)
    model, given, outputs = NETS[name](types.SimpleNamespace(
        layers=layers, batch=batch, length=length, past=past))
    return model.eval(), given, outputs


def nested(model, given, dims):
    """Dims of inputs as torch.export has them: those of *past are one."""
    shapes = [{d: dims[n] for d, n in free_dims(name).items()} for name in given]
    if isinstance(model, networks.Decoder):
        return shapes[0], tuple(shapes[1:])
    return tuple(shapes)


def export(model, given, outputs, exporter, path):
    names = {"input_names": list(given), "output_names": outputs, "verbose": False}
    if exporter == "current":
        dims = {name: torch.export.Dim(name, min=1, max=512) for name in SIZES}
        how = {"dynamo": True, "external_data": False,
               "dynamic_shapes": nested(model, given, dims)}
    else:
        how = {"dynamo": False, "opset_version": 17,
               "dynamic_axes": {name: free_dims(name) for name in given}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, tuple(given.values()), path, **names, **how)


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout + done.stderr


def outputs_of(ini):
    with open(ini, encoding="utf-8") as f:
        line = re.search(r"^outputs = (.*)$", f.read(), re.M).group(1)
    return [name.strip() for name in line.split(",")]


def differ(options, name, model, ini, sizes):
    _, given, _ = make(name, options.layers, *sizes)
    with torch.no_grad():
        wanted = model(*given.values())
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    stem = f"{ini.removesuffix('.ini')}.{'x'.join(map(str, sizes))}"
    inputs, outputs, worst = [], [], 0.0
    for key, value in given.items():
        numpy.save(f"{stem}.in.{key}.npy", value.numpy())
        inputs.append(f"--input={key}={stem}.in.{key}.npy")
    files = {key: f"{stem}.out.{i}.npy" for i, key in enumerate(outputs_of(ini))}
    for key, path in files.items():
        outputs.append(f"--output={key}={path}")
    run(options.strata, "run", ini, *inputs, *outputs, "--set=build.costs=analytic")
    for path, y in zip(files.values(), wanted, strict=True):
        found, y = numpy.load(path), y.numpy()
        if found.shape != y.shape:
            raise RuntimeError(f"{sizes}: {found.shape}, should be {y.shape}")
        worst = max(worst, float(abs(found - y).max() / abs(y).max()))
    return worst


def judge(options, folder, name, exporter):
    stem = os.path.join(folder, f"{name}.{exporter}")
    model, given, outputs = make(name, options.layers, 2, 9, 5)
    if not os.path.exists(stem + ".onnx"):
        export(model, given, outputs, exporter, stem + ".onnx")
    began = time.monotonic()
    run(options.strata, "import", stem + ".onnx", "-o", stem + ".ini",
        *(f"--dim={key}={sizes}" for key, sizes in SIZES.items()))
    seconds = time.monotonic() - began
    plan = run(options.strata, "explain", stem + ".ini", "--costs=analytic")
    pasts = PASTS if any("past" in free_dims(key).values() for key in given) else (0,)
    worst = max(differ(options, name, model, stem + ".ini", sizes)
                for sizes in itertools.product(BATCHES, LENGTHS, pasts))
    return worst, seconds, re.search(r"\d+ nodes, \d+ reformats", plan).group(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--folder")
    parser.add_argument("--strata", default="strata")
    parser.add_argument("--exporter", choices=[*EXPORTERS, "both"], default="both")
    parser.add_argument("--layers", type=int, default=12, help="of bert")
    parser.add_argument("nets", nargs="*", default=list(NETS), metavar="NET")
    options = parser.parse_args()
    unknown = [name for name in options.nets if name not in NETS]
    if unknown:
        sys.exit(f"no such network: {', '.join(unknown)}; there are {', '.join(NETS)}")
    failed = 0
    exporters = EXPORTERS if options.exporter == "both" else (options.exporter,)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or temporary
        os.makedirs(folder, exist_ok=True)
        for name, exporter in itertools.product(options.nets, exporters):
            if (name, exporter) in LACKS:
                continue
            try:
                worst, seconds, plan = judge(options, folder, name, exporter)
            except Exception as error:  # whatever an exporter raises
                said = str(error).splitlines()[0][:200] if str(error) else repr(error)
                print(f"{name:10} {exporter:8} failed: {said}", flush=True)
                failed += 1
                continue
            failed += worst > MOST
            print(f"{name:10} {exporter:8} {worst:9.2e} {seconds:6.2f} s  {plan}"
                  f"{'' if worst <= MOST else '  differs'}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
