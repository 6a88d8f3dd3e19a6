#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Writes logits.npy, what the decoder of decoder.safetensors says behind each of 40 tokens,
# in NumPy's FP64: 40 x 29. decoder.ini and its weights are
#   examples/language/decoder.py --random \
#       layers=2,hidden=16,heads=4,kv_heads=2,ffn=24,vocabulary=29 \
#       --context 40 --seed 3 --batch 1,2 --sizes 1,8 -o decoder.ini
import json
import os
import struct

import numpy as np

LAYERS, HEADS, KV_HEADS, DIM, PLACES, WORDS = 2, 4, 2, 4, 40, 29
folder = os.path.dirname(os.path.abspath(__file__))

with open(os.path.join(folder, "decoder.safetensors"), "rb") as f:
    data = f.read()
size, = struct.unpack_from("<Q", data)
w = {name: np.frombuffer(data, "<f4", int(np.prod(t["shape"])),
                         8 + size + t["data_offsets"][0]).reshape(t["shape"]).astype("f8")
     for name, t in json.loads(data[8:8 + size]).items()}


def norm(x, scale):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale


def turn(x):
    """Places x heads x elements, by a half each."""
    angle = np.arange(PLACES)[:, None, None] * 10000.0 ** (-np.arange(DIM // 2) * 2 / DIM)
    a, b = x[..., :DIM // 2], x[..., DIM // 2:]
    c, s = np.cos(angle), np.sin(angle)
    return np.concatenate([a * c - b * s, a * s + b * c], -1)


def attention(x, at):
    q = turn((x @ w[at + "query"].T).reshape(PLACES, HEADS, DIM))
    k = turn((x @ w[at + "key"].T).reshape(PLACES, KV_HEADS, DIM))
    v = (x @ w[at + "value"].T).reshape(PLACES, KV_HEADS, DIM)
    k, v = (np.repeat(t, HEADS // KV_HEADS, 1) for t in (k, v))
    scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(DIM)
    scores[:, ~np.tri(PLACES, dtype=bool)] = -np.inf
    p = np.exp(scores - scores.max(-1, keepdims=True))
    y = np.einsum("hij,jhd->ihd", p / p.sum(-1, keepdims=True), v)
    return y.reshape(PLACES, HEADS * DIM) @ w[at + "output"].T


ids = (np.arange(PLACES) * 7 + np.arange(PLACES) ** 2) % WORDS
x = w["embedding"][ids]
for i in range(LAYERS):
    at = f"{i}."
    x = x + attention(norm(x, w[at + "attention_norm"]), at)
    y = norm(x, w[at + "ffn_norm"])
    gate = y @ w[at + "gate"].T
    x = x + (gate / (1 + np.exp(-gate)) * (y @ w[at + "up"].T)) @ w[at + "down"].T
np.save(os.path.join(folder, "logits.npy"), norm(x, w["norm"]) @ w["logits"].T)
