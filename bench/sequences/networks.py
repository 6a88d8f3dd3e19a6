#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks over sequences with random weights as ONNX models, by PyTorch's exporter:

    networks.py NET FOLDER [--batch N] [--length T] [--seed S]

writes FOLDER/NET.onnx, its inputs as NET.in.NAME.npy and what PyTorch makes of them as
NET.out.NAME.npy, for

    vit      ViT-B/16 of torchvision
    tagger   a bidirectional LSTM tagger: embedding, two layers, a linear layer
    voice    a voice-activity model, a chunk of 512 samples at a time: STFT by convolution,
             magnitudes, two convolutions, an LSTM whose h and c are inputs and outputs
    decoder  two blocks of a decoder with past and present keys and values

Needs torch, torchvision and onnx. bench/sequences/bert.py does the same for BERT-base.
"""
import argparse
import os

import numpy
import torch
from torch import nn
from torch.nn import functional


def vit(a):
    import torchvision
    model = torchvision.models.vit_b_16(weights=None)
    nn.init.normal_(model.heads.head.weight, std=0.02)
    return model, {"x": torch.randn(a.batch, 3, 224, 224)}, ["logits"]


class Tagger(nn.Module):
    WORDS, TAGS = 10000, 17

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(self.WORDS, 128)
        self.lstm = nn.LSTM(128, 128, num_layers=2, bidirectional=True, batch_first=True)
        self.tags = nn.Linear(256, self.TAGS)

    def forward(self, ids):
        return self.tags(self.lstm(self.embedding(ids))[0])


def tagger(a):
    return Tagger(), {"ids": torch.randint(0, Tagger.WORDS, (a.batch, a.length))}, ["tags"]


class Voice(nn.Module):
    """STFT by a convolution whose filters are windowed cosines and sines."""

    CHUNK, WINDOW, HOP, HIDDEN = 512, 256, 128, 128

    def __init__(self):
        super().__init__()
        bins = self.WINDOW // 2 + 1
        angle = 2 * numpy.pi / self.WINDOW * torch.outer(torch.arange(bins),
                                                         torch.arange(self.WINDOW))
        window = torch.hann_window(self.WINDOW)
        filters = torch.cat([angle.cos(), -angle.sin()]) * window
        self.register_buffer("filters", filters[:, None, :].float())
        self.bins = bins
        self.first = nn.Conv1d(bins, 128, 3, padding=1)
        self.second = nn.Conv1d(128, 64, 3, stride=2, padding=1)
        self.lstm = nn.LSTM(64, self.HIDDEN, batch_first=True)
        self.speech = nn.Linear(self.HIDDEN, 1)

    def forward(self, samples, h, c):
        x = functional.pad(samples[:, None, :], (self.WINDOW // 4,) * 2)
        x = functional.conv1d(x, self.filters, stride=self.HOP)
        real, imaginary = x[:, :self.bins], x[:, self.bins:]
        x = torch.sqrt(real * real + imaginary * imaginary)
        x = functional.relu(self.second(functional.relu(self.first(x))))
        x, (h, c) = self.lstm(x.transpose(1, 2), (h, c))
        return torch.sigmoid(self.speech(x[:, -1])), h, c


def voice(a):
    state = torch.zeros(1, a.batch, Voice.HIDDEN)
    given = {"samples": torch.randn(a.batch, Voice.CHUNK), "h": state, "c": state.clone()}
    return Voice(), given, ["speech", "h_next", "c_next"]


class Block(nn.Module):
    HIDDEN, HEADS, KV_HEADS, INNER = 256, 8, 2, 688

    def __init__(self):
        super().__init__()
        dim = self.HIDDEN // self.HEADS
        self.norm = nn.RMSNorm(self.HIDDEN, eps=1e-5)
        self.query = nn.Linear(self.HIDDEN, self.HIDDEN, bias=False)
        self.key = nn.Linear(self.HIDDEN, self.KV_HEADS * dim, bias=False)
        self.value = nn.Linear(self.HIDDEN, self.KV_HEADS * dim, bias=False)
        self.output = nn.Linear(self.HIDDEN, self.HIDDEN, bias=False)
        self.ffn_norm = nn.RMSNorm(self.HIDDEN, eps=1e-5)
        self.gate = nn.Linear(self.HIDDEN, self.INNER, bias=False)
        self.up = nn.Linear(self.HIDDEN, self.INNER, bias=False)
        self.down = nn.Linear(self.INNER, self.HIDDEN, bias=False)

    def forward(self, x, turn, mask, past_k, past_v):
        def heads(y, n):
            return y.view(y.size(0), y.size(1), n, -1).transpose(1, 2)

        def turned(y):
            a, b = y.chunk(2, -1)
            return y * turn[0] + torch.cat([-b, a], -1) * turn[1]
        y = self.norm(x)
        q = turned(heads(self.query(y), self.HEADS))
        k = torch.cat([past_k, turned(heads(self.key(y), self.KV_HEADS))], 2)
        v = torch.cat([past_v, heads(self.value(y), self.KV_HEADS)], 2)
        many = self.HEADS // self.KV_HEADS
        y = functional.scaled_dot_product_attention(
            q, k.repeat_interleave(many, 1), v.repeat_interleave(many, 1), attn_mask=mask)
        x = x + self.output(y.transpose(1, 2).reshape(x.shape))
        y = self.ffn_norm(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y)), k, v


class Decoder(nn.Module):
    WORDS, BLOCKS = 1000, 2

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(self.WORDS, Block.HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(self.BLOCKS))
        self.norm = nn.RMSNorm(Block.HIDDEN, eps=1e-5)

    def forward(self, ids, *past):
        dim, length, before = Block.HIDDEN // Block.HEADS, ids.size(1), past[0].size(2)
        angle = torch.outer(torch.arange(length) + before,
                            10000.0 ** (-torch.arange(0, dim, 2) / dim)).repeat(1, 2)
        mask = torch.ones(length, before + length, dtype=torch.bool).tril(before)
        x, present = self.embedding(ids), []
        for i, block in enumerate(self.blocks):
            x, *kv = block(x, (angle.cos(), angle.sin()), mask, *past[2 * i:2 * i + 2])
            present += kv
        return functional.linear(self.norm(x), self.embedding.weight), *present


def decoder(a):
    dim = Block.HIDDEN // Block.HEADS
    given = {"ids": torch.randint(0, Decoder.WORDS, (a.batch, a.length))}
    names = [f"{k}{i}" for i in range(Decoder.BLOCKS) for k in "kv"]
    for name in names:
        given[f"past_{name}"] = torch.randn(a.batch, Block.KV_HEADS, a.past, dim)
    return Decoder(), given, ["logits"] + [f"present_{n}" for n in names]


NETS = {"vit": vit, "tagger": tagger, "voice": voice, "decoder": decoder}


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("net", choices=NETS)
    p.add_argument("folder")
    p.add_argument("--batch", type=int, default=1)
    p.add_argument("--length", type=int, default=24, help="of tagger and decoder")
    p.add_argument("--past", type=int, default=16, help="keys of decoder")
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    torch.manual_seed(a.seed)
    model, given, outputs = NETS[a.net](a)
    model.eval()
    with torch.no_grad():
        made = model(*given.values())
    made = made if isinstance(made, tuple) else (made,)
    stem = os.path.join(a.folder, a.net)
    for kind, names, values in (("in", given, given.values()), ("out", outputs, made)):
        for name, value in zip(names, values):
            numpy.save(f"{stem}.{kind}.{name}.npy", value.numpy())
    torch.onnx.export(model, tuple(given.values()), f"{stem}.onnx",
                      input_names=list(given), output_names=outputs, external_data=False)


if __name__ == "__main__":
    main()
