#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# BERT-base with random weights as an ONNX model, by PyTorch's exporters:
#   bert.py [--eager] [--mask] [--trace] [--free] [--batch N] [--length T] [--layers L]
#           OUT.onnx
# --eager spells attention out, as Transformers did; else it is
# scaled_dot_product_attention. --mask adds the input attention_mask. --trace is the
# exporter of TorchScript. --free leaves the batch free, as dim `batch`. Beside OUT.onnx
# lie OUT.ids.npy, OUT.mask.npy and OUT.y.npy, a run of PyTorch, the mask with --mask
# alone. Needs torch and onnx.
import argparse
import math

import numpy
import torch
from torch import nn

HIDDEN, HEADS, INNER, WORDS, PLACES = 768, 12, 3072, 30522, 512


class Attention(nn.Module):
    def __init__(self, eager):
        super().__init__()
        self.eager = eager
        self.query = nn.Linear(HIDDEN, HIDDEN)
        self.key = nn.Linear(HIDDEN, HIDDEN)
        self.value = nn.Linear(HIDDEN, HIDDEN)

    def heads(self, x):
        return x.view(x.size(0), x.size(1), HEADS, HIDDEN // HEADS).transpose(1, 2)

    def forward(self, x, mask):
        q, k, v = (self.heads(f(x)) for f in (self.query, self.key, self.value))
        if self.eager:
            scores = q @ k.transpose(-1, -2) / math.sqrt(HIDDEN // HEADS)
            scores = scores if mask is None else scores + mask
            y = torch.softmax(scores, dim=-1) @ v
        else:
            y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return y.transpose(1, 2).reshape(x.size(0), x.size(1), HIDDEN)


class Layer(nn.Module):
    def __init__(self, eager):
        super().__init__()
        self.attention = Attention(eager)
        self.dense = nn.Linear(HIDDEN, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, eps=1e-12)
        self.up = nn.Linear(HIDDEN, INNER)
        self.down = nn.Linear(INNER, HIDDEN)
        self.last = nn.LayerNorm(HIDDEN, eps=1e-12)

    def forward(self, x, mask):
        x = self.norm(self.dense(self.attention(x, mask)) + x)
        return self.last(self.down(nn.functional.gelu(self.up(x))) + x)


class Bert(nn.Module):
    def __init__(self, layers, eager):
        super().__init__()
        self.words = nn.Embedding(WORDS, HIDDEN)
        self.places = nn.Embedding(PLACES, HIDDEN)
        self.types = nn.Embedding(2, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, eps=1e-12)
        self.layers = nn.ModuleList(Layer(eager) for _ in range(layers))
        self.pooler = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, ids, mask=None):
        places = torch.arange(ids.size(1), device=ids.device)
        x = self.words(ids) + self.places(places) + self.types(torch.zeros_like(ids))
        x = self.norm(x)
        if mask is not None:
            mask = (1 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


def make(a):
    """The network, its inputs, and the names of its outputs."""
    model = Bert(a.layers, a.eager).eval()
    given = {"ids": torch.randint(0, WORDS, (a.batch, a.length))}
    if a.mask:
        given["mask"] = torch.ones(a.batch, a.length, dtype=torch.int64)
        given["mask"][:, a.length - a.length // 4:] = 0
    return model, given, ["y", "pooled"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--eager", action="store_true")
    p.add_argument("--mask", action="store_true")
    p.add_argument("--trace", action="store_true")
    p.add_argument("--free", action="store_true")
    p.add_argument("--batch", type=int, default=1)
    p.add_argument("--length", type=int, default=128)
    p.add_argument("--layers", type=int, default=12)
    p.add_argument("out")
    a = p.parse_args()
    torch.manual_seed(0)
    model, given, outputs = make(a)
    stem = a.out.removesuffix(".onnx")
    with torch.no_grad():
        y = model(*given.values())
    for name, t in (*given.items(), ("y", y[0])):
        numpy.save(f"{stem}.{name}.npy", t.numpy())
    names = {"input_names": list(given), "output_names": outputs}
    how = {"dynamo": False, "opset_version": 17} if a.trace else {"external_data": False}
    if a.free and a.trace:
        how["dynamic_axes"] = {name: {0: "batch"} for name in given}
    elif a.free:
        how["dynamic_shapes"] = tuple({0: torch.export.Dim("batch")} for _ in given)
    torch.onnx.export(model, tuple(given.values()), a.out, **names, **how)


if __name__ == "__main__":
    main()
