#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Convert the raw files of the real networks into what examples/models/*.ini read.

    convert_models.py SRC DST [MODEL...]

SRC holds one folder per model with weights.f32 (little-endian FP32, one tensor after
another) and weights.tsv (name, dims, offset and size in bytes). For each model, DST gets
MODEL.safetensors, and the label or data files named in MODELS below. Batch normalisation
becomes the scale and shift of a Scale layer:

    scale = gamma/sqrt(variance + epsilon)        shift = beta - mean*scale

Needs nothing but Python's standard library.
"""
import array
import gzip
import json
import math
import os
import struct
import sys


class Tensor:
    def __init__(self, dims, values):
        if math.prod(dims) != len(values):
            raise ValueError(f"{len(values)} values do not fill dims {dims}")
        self.dims, self.values = list(dims), values

    def reshaped(self, *dims):
        return Tensor(dims, self.values)


def floats(data):
    values = array.array("f")
    values.frombytes(data)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def read_weights(folder):
    """Every tensor of a model folder, by its upstream name."""
    with open(os.path.join(folder, "weights.f32"), "rb") as f:
        data = f.read()
    tensors = {}
    with open(os.path.join(folder, "weights.tsv"), encoding="ascii") as f:
        for line in f:
            if line.startswith("#"):
                continue
            name, dims, offset, size = line.rstrip("\n").split("\t")
            begin, end = int(offset), int(offset) + int(size)
            if end > len(data):
                raise ValueError(f"{name} ends at byte {end} of {len(data)}")
            dims = [int(d) for d in dims.split("x")]
            tensors[name] = Tensor(dims, floats(data[begin:end]))
    return tensors


def write_safetensors(path, tensors):
    """Names sorted, data without holes, header padded to a multiple of 8 bytes."""
    header, offset, names = {}, 0, sorted(tensors)
    for name in names:
        size = 4 * len(tensors[name].values)
        header[name] = {"dtype": "F32", "shape": tensors[name].dims,
                        "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name in names:
            values = tensors[name].values
            if sys.byteorder == "big":
                values = values[:]
                values.byteswap()
            f.write(values.tobytes())


def normalisation(prefix, gamma, beta, mean, variance, epsilon):
    """Tensors of the Scale layer that does what the batch normalisation did."""
    scale = [g / math.sqrt(v + epsilon) for g, v in zip(gamma.values, variance.values)]
    shift = [b - m * s for b, m, s in zip(beta.values, mean.values, scale)]
    return {f"{prefix}.scale": Tensor(gamma.dims, array.array("f", scale)),
            f"{prefix}.shift": Tensor(gamma.dims, array.array("f", shift))}


def mnist_cntk(t):
    """CNTK's parameter numbers become layer names; the last matrix is (K, M)."""
    return {"conv1.weight": t["Parameter5"],
            "conv1.bias": t["Parameter6"].reshaped(8),
            "conv2.weight": t["Parameter87"],
            "conv2.bias": t["Parameter88"].reshaped(16),
            "logits.weight": t["Parameter193"].reshaped(256, 10),
            "logits.bias": t["Parameter194"].reshaped(10)}


def squeezenet(t):
    return t


def resnet20(t):
    """PyTorch's names stay; bnX.{weight,bias,running_*} become bnX.{scale,shift}."""
    out = {n: v for n, v in t.items() if "bn" not in n}
    for prefix in sorted({n.rsplit(".", 1)[0] for n in t if "bn" in n}):
        parts = [t[f"{prefix}.{p}"] for p in ("weight", "bias", "running_mean",
                                              "running_var")]
        out.update(normalisation(prefix, *parts, epsilon=1e-5))
    return out


def yolo_fastest(t):
    """LN is layer N of the .cfg; its batch normalisation becomes LN.bn."""
    out = {n: v for n, v in t.items() if ".bn_" not in n}
    for prefix in sorted({n.split(".")[0] for n in t if ".bn_" in n}):
        parts = [t[f"{prefix}.bn_{p}"] for p in ("scale", "bias", "mean", "var")]
        out.update(normalisation(f"{prefix}.bn", *parts, epsilon=1e-6))
    return out


CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse",
           "ship", "truck")


def copy_file(name):
    def read(folder):
        with open(os.path.join(folder, name), "rb") as f:
            return f.read()
    return read


def unzip_file(name):
    def read(folder):
        with gzip.open(os.path.join(folder, name), "rb") as f:
            return f.read()
    return read


# Model: tensors of the INI from those of upstream, and {file of DST: how to make it}.
MODELS = {
    "mnist_cntk": (mnist_cntk, {
        "mnist-test-images.idx": unzip_file("t10k-images-idx3-ubyte.gz"),
        "mnist-test-labels.idx": unzip_file("t10k-labels-idx1-ubyte.gz")}),
    "squeezenet_v1.1": (squeezenet, {
        "squeezenet_v1.1.labels": copy_file("imagenet_labels.txt")}),
    "resnet20_cifar10": (resnet20, {
        "resnet20_cifar10.labels": lambda _: ("\n".join(CIFAR10) + "\n").encode()}),
    "yolo-fastest-1.1": (yolo_fastest, {
        "yolo-fastest-1.1.labels": copy_file("coco.names")}),
}


def convert(source, target, model):
    rename, files = MODELS[model]
    folder = os.path.join(source, model)
    tensors = rename(read_weights(folder))
    write_safetensors(os.path.join(target, model + ".safetensors"), tensors)
    for name, read in files.items():
        content = read(folder)
        with open(os.path.join(target, name), "wb") as f:
            f.write(content)
    print(f"{model}: {len(tensors)} tensors, "
          f"{sum(len(t.values) for t in tensors.values())} weights")


def main(arguments):
    if len(arguments) < 2 or arguments[0].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    source, target, *models = arguments
    os.makedirs(target, exist_ok=True)
    failed = 0
    for model in models or MODELS:
        if model not in MODELS:
            print(f"convert_models.py: no model '{model}'; there are "
                  f"{', '.join(MODELS)}", file=sys.stderr)
            return 2
        try:
            convert(source, target, model)
        except (OSError, EOFError, KeyError, ValueError) as e:
            print(f"convert_models.py: {model}: {type(e).__name__}: {e}",
                  file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
