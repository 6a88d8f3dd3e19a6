#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small blocks of transformers with random weights as ONNX models, by PyTorch's exporters:

    blocks.py FOLDER [NET ...] [--batch N] [--free] [--trace] [--seed S]

writes for each NET, or for all of them, FOLDER/NET.onnx, its inputs as NET.in.NAME.npy
and what PyTorch makes of them as NET.out.y.npy:

    encoder-first, encoder-second            two nn.TransformerEncoderLayer, with batches as
                                             the first and as the second dim
    encoder-first-norm, encoder-second-norm  the same, normalized before instead of behind
    encoder-mask                             with a mask of the scores
    decoder-first, decoder-second            two nn.TransformerDecoderLayer, with a memory
    packed                                   attention as in timm's ViT and DeiT
    gpt2                                     attention as in GPT-2: Conv1D, causal
    windows                                  attention within windows of an image, as in Swin
    vit                                      torchvision's ViT of two layers

--free leaves the batch free, --trace is the exporter of TorchScript. Needs torch,
torchvision and onnx.
"""
import argparse
import os

import numpy
import torch
from torch import nn
from torch.nn import functional

LENGTH, MEMORY, HIDDEN, HEADS, INNER, LAYERS = 7, 5, 24, 3, 40, 2
IMAGE, WINDOW, PATCH = 8, 4, 4


class Encoder(nn.Module):
    def __init__(self, batch_first, norm_first=False, masked=False):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(HIDDEN, HEADS, INNER, activation="gelu",
                                       batch_first=batch_first, norm_first=norm_first)
            for _ in range(LAYERS))
        self.register_buffer("mask", torch.randn(LENGTH, LENGTH) if masked else None)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x, src_mask=self.mask)
        return x


class Decoder(nn.Module):
    def __init__(self, batch_first):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.TransformerDecoderLayer(HIDDEN, HEADS, INNER, batch_first=batch_first)
            for _ in range(LAYERS))

    def forward(self, x, memory):
        for layer in self.layers:
            x = layer(x, memory)
        return x


class Block(nn.Module):
    """What blocks of most networks share; `attend` is their own."""

    def __init__(self, linear=nn.Linear):
        super().__init__()
        self.first, self.second = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.proj = linear(HIDDEN, 3 * HIDDEN), linear(HIDDEN, HIDDEN)
        self.up, self.down = linear(HIDDEN, INNER), linear(INNER, HIDDEN)

    def forward(self, x):
        x = x + self.attend(self.first(x))
        return x + self.down(functional.gelu(self.up(self.second(x))))


class Packed(Block):
    def attend(self, x):
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, HEADS, c // HEADS).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        x = functional.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(b, n, c))


class Conv1D(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_in, n_out) * n_in ** -0.5)
        self.bias = nn.Parameter(torch.randn(n_out))

    def forward(self, x):
        y = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        return y.view(x.size()[:-1] + (self.weight.size(1),))


class Gpt2(Block):
    def __init__(self):
        super().__init__(Conv1D)
        self.register_buffer("seen", torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril())

    def attend(self, x):
        def heads(y):
            return y.view(y.shape[:-1] + (HEADS, -1)).permute(0, 2, 1, 3)
        q, k, v = (heads(y) for y in self.qkv(x).split(HIDDEN, dim=2))
        scores = q @ k.transpose(-1, -2) / (HIDDEN // HEADS) ** 0.5
        scores = torch.where(self.seen, scores, torch.finfo(x.dtype).min)
        y = (scores.softmax(-1) @ v).permute(0, 2, 1, 3).contiguous()
        return self.proj(y.view(y.shape[:-2] + (HIDDEN,)))


class Windows(Block):
    def attend(self, x):
        b, h, w, c = x.shape
        x = x.view(b, h // WINDOW, WINDOW, w // WINDOW, WINDOW, c).permute(0, 1, 3, 2, 4, 5)
        x = x.reshape(-1, WINDOW * WINDOW, c)
        qkv = self.qkv(x).reshape(x.size(0), x.size(1), 3, HEADS, c // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = (q * (c // HEADS) ** -0.5) @ k.transpose(-2, -1)
        y = (y.softmax(-1) @ v).transpose(1, 2).reshape(x.size(0), x.size(1), c)
        y = self.proj(y).view(b, h // WINDOW, w // WINDOW, WINDOW, WINDOW, c)
        return y.permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)


def vit():
    from torchvision.models import VisionTransformer
    net = VisionTransformer(image_size=IMAGE, patch_size=PATCH, num_layers=LAYERS,
                            num_heads=HEADS, hidden_dim=HIDDEN, mlp_dim=INNER,
                            num_classes=10)
    nn.init.normal_(net.heads.head.weight)
    return net


def layers(block):
    return nn.Sequential(*(block() for _ in range(LAYERS)))


SEQUENCE, SECOND = ("n", LENGTH, HIDDEN), (LENGTH, "n", HIDDEN)
NETS = {  # how it is made; shapes of the inputs, with "n" for the batch
    "encoder-first": (lambda: Encoder(True), {"x": SEQUENCE}),
    "encoder-second": (lambda: Encoder(False), {"x": SECOND}),
    "encoder-first-norm": (lambda: Encoder(True, True), {"x": SEQUENCE}),
    "encoder-second-norm": (lambda: Encoder(False, True), {"x": SECOND}),
    "encoder-mask": (lambda: Encoder(False, True, True), {"x": SECOND}),
    "decoder-first": (lambda: Decoder(True),
                      {"x": SEQUENCE, "memory": ("n", MEMORY, HIDDEN)}),
    "decoder-second": (lambda: Decoder(False),
                       {"x": SECOND, "memory": (MEMORY, "n", HIDDEN)}),
    "packed": (lambda: layers(Packed), {"x": SEQUENCE}),
    "gpt2": (lambda: layers(Gpt2), {"x": SEQUENCE}),
    "windows": (lambda: layers(Windows), {"x": ("n", IMAGE, IMAGE, HIDDEN)}),
    "vit": (vit, {"x": ("n", 3, IMAGE, IMAGE)}),
}


def export(a, name):
    make, shapes = NETS[name]
    torch.manual_seed(a.seed)
    model = make().eval()
    for p in model.parameters():  # zeros and ones would hide what is left out
        if p.dim() == 1:
            nn.init.normal_(p, 0.5, 0.3)
    given = {k: torch.randn([a.batch if n == "n" else n for n in shape])
             for k, shape in shapes.items()}
    stem = os.path.join(a.folder, name)
    with torch.no_grad():
        numpy.save(f"{stem}.out.y.npy", model(*given.values()).numpy())
    for k, v in given.items():
        numpy.save(f"{stem}.in.{k}.npy", v.numpy())
    free = [{shape.index("n"): "batch"} for shape in shapes.values()]
    how = {}
    if a.free and a.trace:
        how["dynamic_axes"] = dict(zip(shapes, free))
    elif a.free:
        batch = torch.export.Dim("batch")
        how["dynamic_shapes"] = tuple({d: batch for d in dims} for dims in free)
    torch.onnx.export(model, tuple(given.values()), f"{stem}.onnx",
                      input_names=list(given), output_names=["y"], dynamo=not a.trace,
                      **({} if a.trace else {"external_data": False}), **how)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("net", nargs="*")
    p.add_argument("--batch", type=int, default=3)
    p.add_argument("--free", action="store_true")
    p.add_argument("--trace", action="store_true")
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    for name in a.net or NETS:
        export(a, name)


if __name__ == "__main__":
    main()
