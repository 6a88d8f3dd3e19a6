# SPDX-License-Identifier: Apache-2.0
"""A network of bench/nets as a PyTorch module, of the same layers with random weights."""
import re

import torch
from torch import nn
from torch.nn import functional

ACTIVATIONS = {"relu": nn.ReLU, "relu6": nn.ReLU6, "silu": nn.SiLU, "sigmoid": nn.Sigmoid}
OPERATIONS = {"sum": torch.add, "product": torch.mul}


def sections(path):
    """(kind, name, {key: value}) of each section, in order."""
    with open(path, encoding="ascii") as f:
        text = f.read().replace("\\\n", " ")
    for begin, body in re.findall(r"^\[(.*)\]\n((?:[^\[\n].*\n|\n)*)", text, re.M):
        kind, _, name = begin.partition(" ")
        yield kind, name, dict(re.findall(r"^(\w+) = (.*)$", body, re.M))


def numbers(text):
    return tuple(int(n) for n in re.findall(r"-?\d+", text))


def window(keys):
    """Arguments that Convolution and Pooling share."""
    return {"kernel_size": numbers(keys["kernel"]), "stride": int(keys.get("stride", 1)),
            "padding": numbers(keys.get("pad", "0"))}


class Step(nn.Module):
    """A layer that is a function of its inputs."""

    def __init__(self, run):
        super().__init__()
        self.run = run

    def forward(self, *x):
        return self.run(*x)


def convolution(keys, shapes):
    arguments = window(keys)
    channels, filters = shapes[0][1], int(keys["filters"])
    if keys.get("pad_mode") == "same_upper":
        arguments["padding"] = "same"
    return nn.Conv2d(channels, filters, groups=int(keys.get("groups", 1)), **arguments)


def pooling(keys, _):
    average = keys.get("kind") == "average"
    if keys.get("global"):
        return nn.AdaptiveAvgPool2d(1)
    kind = nn.AvgPool2d if average else nn.MaxPool2d
    more = {"count_include_pad": False} if average else {}
    return kind(ceil_mode=keys.get("ceil_mode") == "yes", **window(keys), **more)


def fully_connected(keys, shapes):
    return nn.Sequential(nn.Flatten(), nn.Linear(shapes[0][1:].numel(), int(keys["units"])))


class Scale(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(1, channels, 1, 1) + 0.5)
        self.shift = nn.Parameter(torch.rand(1, channels, 1, 1) - 0.5)

    def forward(self, x):
        return x * self.scale + self.shift


def resize(keys, _):
    corners = {"align_corners": True} if "coordinates" in keys else {}
    return Step(lambda x: functional.interpolate(
        x, scale_factor=int(keys["scale"]), mode=keys["mode"], **corners))


def shuffle(keys, _):
    first, shape = numbers(keys["first"]), numbers(keys["shape"])
    return Step(lambda x: x.permute(first).reshape(x.shape[0], *shape[1:]))


LAYERS = {
    "Convolution": convolution,
    "Pooling": pooling,
    "FullyConnected": fully_connected,
    "Resize": resize,
    "Shuffle": shuffle,
    "Activation": lambda keys, _: ACTIVATIONS[keys["kind"]](),
    "ElementWise": lambda keys, _: Step(OPERATIONS[keys["op"]]),
    "Scale": lambda keys, shapes: Scale(shapes[0][1]),
    "Softmax": lambda keys, _: nn.Softmax(int(keys["axis"])),
    "Concatenation": lambda keys, _: Step(
        lambda *x: torch.cat(x, int(keys["axis"]))),
}


class Network(nn.Module):
    """The layers of an INI file, as wide as its shapes at batch 1 say."""

    def __init__(self, path):
        super().__init__()
        self.plan, self.layers, shapes, last = [], nn.ModuleList(), {}, None
        for kind, name, keys in sections(path):
            if kind == "network":
                self.outputs = keys["outputs"].split(", ")
            elif kind == "input":
                self.image, last = name, name
                self.shape = numbers(keys["shape"].partition(" x ")[2])
                shapes[name] = torch.empty(1, *self.shape, device="meta")
            elif kind == "layer":
                inputs = re.split(r",\s*", keys["inputs"]) if "inputs" in keys else [last]
                given = [shapes[x] for x in inputs]
                layer = LAYERS[keys["type"]](keys, [x.shape for x in given])
                with torch.no_grad():
                    shapes[name] = layer.to("meta")(*given)
                self.layers.append(layer)
                self.plan.append((name, inputs))
                last = name

    def forward(self, x):
        values = {self.image: x}
        for (name, inputs), layer in zip(self.plan, self.layers):
            values[name] = layer(*[values[i] for i in inputs])
        return tuple(values[name] for name in self.outputs)


def load(path, device, dtype, memory_format):
    """In evaluation mode, weights drawn so that activations keep their scale."""
    net = Network(path).to_empty(device=device)
    torch.manual_seed(1)
    for weight in net.parameters():
        if weight.dim() > 1:
            weight.data.normal_(0, (2 / max(weight[0].numel(), 1)) ** 0.5)
        else:
            weight.data.zero_()
    return net.eval().to(dtype=dtype, memory_format=memory_format)
