#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Export torchvision's networks, import them, and hold Strata to PyTorch.

    torch_models.py [-o FOLDER] [--strata PROGRAM] [--exporter EXPORTER] [--set S.K=V]
                    [--most D] [NET...]

Every network, or those named, gets random weights and running statistics that keep values
of a usual size, is exported by torch.onnx.export, by the current exporter and the one
before it, imported by `strata import`, and run by `strata run` on a random image. A line
each: the largest difference of any output over that output's largest value, which has to
be at most D (1e-4), and the seconds that the import took; of classifiers, the class has to
be the same. FOLDER (default: a temporary
one) keeps the models and the networks; a model that is there is not exported again.
--set goes to `strata run`, as in --set build.precision=fp16.

Needs torch, torchvision, onnx and onnxscript. Exit status: 0 all agree, 1 some do not.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings

import numpy
import torch
from torchvision import models

EXPORTERS = {"current": {"dynamo": True}, "older": {"dynamo": False, "opset_version": 17}}


class Detector(torch.nn.Module):
    """A detector up to its boxes and scores: what follows them picks by value, so that
    sizes depend on the image, which no network here can have."""

    def __init__(self, model):
        super().__init__()
        self.backbone, self.head = model.backbone, model.head

    def forward(self, x):
        out = self.head(list(self.backbone(x).values()))
        return out["bbox_regression"], torch.softmax(out["cls_logits"], -1)


class Segmenter(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)["out"]


def deeplab():
    return Segmenter(models.segmentation.deeplabv3_mobilenet_v3_large(
        weights=None, weights_backbone=None))


def ssdlite():
    return Detector(models.detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None))


# name: how it is made, side of its image
NETS = {
    "resnet18": (models.resnet18, 224),
    "resnet50": (models.resnet50, 224),
    "mobilenet_v3_small": (models.mobilenet_v3_small, 224),
    "densenet121": (models.densenet121, 224),
    "efficientnet_b0": (models.efficientnet_b0, 224),
    "swin_t": (models.swin_t, 224),
    "vit_b_16": (models.vit_b_16, 224),
    "deeplabv3_mobilenet_v3_large": (deeplab, 224),
    "ssdlite320_mobilenet_v3_large": (ssdlite, 320),
}


def make(name):
    """The network, an image, and what the network makes of it."""
    torch.manual_seed(0)
    build, side = NETS[name]
    model = build()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None  # statistics are those of the one pass
        if isinstance(module, torch.nn.Linear) and not module.weight.any():
            torch.nn.init.normal_(module.weight, std=0.05)
    with torch.no_grad():
        model.train()(torch.rand(4, 3, side, side))
        x = torch.rand(1, 3, side, side)
        y = model.eval()(x)
    return model, x, y if isinstance(y, tuple) else (y,)


def export(model, x, path, exporter):
    if os.path.exists(path):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (x,), path, external_data=False, verbose=False,
                          **EXPORTERS[exporter])


def run(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())


def outputs_of(ini):
    with open(ini, encoding="utf-8") as f:
        line = re.search(r"^outputs = (.*)$", f.read(), re.M).group(1)
    return [name.strip() for name in line.split(",")]


def compare(options, stem, x, wanted):
    """The imported network's largest difference, whether it finds the same classes, and
    the import's seconds."""
    ini, image, worst, same = stem + ".ini", stem + ".x.npy", 0.0, True
    began = time.monotonic()
    run([options.strata, "import", stem + ".onnx", "-o", ini])
    seconds = time.monotonic() - began
    numpy.save(image, x.numpy())
    files = {name: f"{stem}.y{i}.npy" for i, name in enumerate(outputs_of(ini))}
    run([options.strata, "run", ini, image,
         *(f"--output={name}={path}" for name, path in files.items()),
         *(f"--set={s}" for s in options.set)])
    for path, y in zip(files.values(), wanted, strict=True):
        found, y = numpy.load(path), y.numpy()
        if found.shape != y.shape:
            raise RuntimeError(f"{found.shape}, should be {y.shape}")
        worst = max(worst, float(abs(found - y).max() / abs(y).max()))
        same &= y.ndim != 2 or bool((found.argmax(1) == y.argmax(1)).all())
    return worst, same, seconds


def judge(options, folder, name, exporter):
    stem = os.path.join(folder, f"{name}.{exporter}")
    model, x, wanted = make(name)
    try:
        export(model, x, stem + ".onnx", exporter)
        worst, same, seconds = compare(options, stem, x, wanted)
    except Exception as error:  # whatever an exporter raises
        print(f"{name:30} {exporter:8} failed: {str(error).splitlines()[0][:200]}")
        return False
    equal = same and worst <= options.most
    print(f"{name:30} {exporter:8} {worst:9.2e} {seconds:6.2f} s"
          f"{'' if equal else '  differs'}", flush=True)
    return equal


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--folder")
    parser.add_argument("--strata", default="strata")
    parser.add_argument("--exporter", choices=[*EXPORTERS, "both"], default="both")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--most", type=float, default=1e-4)
    parser.add_argument("nets", nargs="*", default=list(NETS), metavar="NET")
    options = parser.parse_args()
    unknown = [name for name in options.nets if name not in NETS]
    if unknown:
        sys.exit(f"no such network: {', '.join(unknown)}; there are {', '.join(NETS)}")
    exporters = list(EXPORTERS) if options.exporter == "both" else [options.exporter]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or temporary
        os.makedirs(folder, exist_ok=True)
        equal = [judge(options, folder, name, exporter)
                 for name in options.nets for exporter in exporters]
    sys.exit(0 if all(equal) else 1)


if __name__ == "__main__":
    main()
