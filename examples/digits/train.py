#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train the digit classifier of this folder, in plain NumPy.

    pip install -r requirements.txt
    python3 train.py [FOLDER]

Writes digits.safetensors, digits-test-images.idx, digits-test-labels.idx and
images/*.pgm into FOLDER (default: the folder of this script), then reads the weights and
the test split back and fails unless the network of digits.ini is right on at least 97 %
of it. Two runs write the same bytes.

The data is scikit-learn's copy of the UCI optical digits: 1797 images of 8x8 pixels with
values 0 to 16. Every fifth image is a test image and is never trained on. Pixels are
stored as value*15 (0 to 240) and reach the network as pixel/240.
"""
import json
import os
import struct
import sys

# One thread, so that sums are added in the same order in every run.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402

SEED = 20240229
EPOCHS = 60
BATCH = 32
RATE = 2e-3
WEIGHT_DECAY = 1e-4
LOWEST_ACCURACY = 0.97
SAMPLES = 2  # of each digit in images/


# ---- the network: forward and backward over arrays of (N, C, H, W) ----------------

def patches(x):
    """(N, C, H, W) padded by one to the 3x3 windows (N, H, W, C*9)."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    n, c, h, w = x.shape
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, h, w, c * 9)


def convolution(x, weight, bias):
    columns = patches(x)
    y = columns @ weight.reshape(len(weight), -1).T + bias
    return y.transpose(0, 3, 1, 2), columns


def convolution_gradient(dy, columns, weight):
    """Gradients of weight, bias and input, from that of the output."""
    k, c = weight.shape[:2]
    flat = dy.transpose(0, 2, 3, 1).reshape(-1, k)
    dweight = (flat.T @ columns.reshape(len(flat), -1)).reshape(weight.shape)
    flipped = weight[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
    dx, _ = convolution(dy, flipped, np.zeros(c, weight.dtype))
    return dweight, flat.sum(axis=0), dx


def max_pool(x):
    """2x2, stride 2, and where each maximum came from (the first, on a tie)."""
    n, c, h, w = x.shape
    cells = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5)
    cells = cells.reshape(n, c, h // 2, w // 2, 4)
    first = cells.argmax(axis=-1)
    return cells.max(axis=-1), first


def max_pool_gradient(dy, first):
    n, c, h, w = dy.shape
    cells = (np.arange(4) == first[..., None]) * dy[..., None]
    cells = cells.reshape(n, c, h, w, 2, 2).transpose(0, 1, 2, 4, 3, 5)
    return cells.reshape(n, c, 2 * h, 2 * w)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def forward(p, x):
    """Probabilities (N, 10), and what the backward pass needs."""
    a1, columns1 = convolution(x, p["conv1.weight"], p["conv1.bias"])
    r1 = np.maximum(a1, 0)
    a2, columns2 = convolution(r1, p["conv2.weight"], p["conv2.bias"])
    r2 = np.maximum(a2, 0)
    pooled, first = max_pool(r2)
    flat = pooled.reshape(len(x), -1)
    hidden = np.maximum(flat @ p["hidden.weight"].T + p["hidden.bias"], 0)
    logits = hidden @ p["logits.weight"].T + p["logits.bias"]
    return softmax(logits), (columns1, r1, columns2, r2, first, flat, hidden)


def gradients(p, x, labels, keep):
    """Of the mean cross entropy. keep: dropout mask of the hidden units, scaled."""
    columns1, r1, columns2, r2, first, flat, hidden = forward(p, x)[1]
    dropped = hidden * keep
    prob = softmax(dropped @ p["logits.weight"].T + p["logits.bias"])
    dlogits = (prob - np.eye(10, dtype=x.dtype)[labels]) / len(x)
    g = {"logits.weight": dlogits.T @ dropped, "logits.bias": dlogits.sum(axis=0)}
    dhidden = (dlogits @ p["logits.weight"]) * keep * (hidden > 0)
    g["hidden.weight"], g["hidden.bias"] = dhidden.T @ flat, dhidden.sum(axis=0)
    dflat = dhidden @ p["hidden.weight"]
    d2 = max_pool_gradient(dflat.reshape(first.shape), first) * (r2 > 0)
    g["conv2.weight"], g["conv2.bias"], d1 = convolution_gradient(
        d2, columns2, p["conv2.weight"])
    g["conv1.weight"], g["conv1.bias"], _ = convolution_gradient(
        d1 * (r1 > 0), columns1, p["conv1.weight"])
    return g


# ---- training --------------------------------------------------------------------

def initial(random):
    shapes = {"conv1": (16, 1, 3, 3), "conv2": (32, 16, 3, 3), "hidden": (64, 512),
              "logits": (10, 64)}
    p = {}
    for name, shape in shapes.items():
        scale = np.sqrt(2 / np.prod(shape[1:]))
        p[name + ".weight"] = (random.standard_normal(shape) * scale).astype(np.float32)
        p[name + ".bias"] = np.zeros(shape[0], np.float32)
    return p


def shifted(x, random):
    """Each image moved by up to one pixel, edges filled with zero."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    out = np.empty_like(x)
    for i, (dy, dx) in enumerate(random.integers(0, 3, (len(x), 2))):
        out[i] = padded[i, :, dy:dy + 8, dx:dx + 8]
    return out


def train(images, labels):
    random = np.random.Generator(np.random.PCG64(SEED))
    p = initial(random)
    mean = {n: np.zeros_like(v) for n, v in p.items()}
    square = {n: np.zeros_like(v) for n, v in p.items()}
    steps = EPOCHS * -(-len(images) // BATCH)
    step = 0
    for epoch in range(EPOCHS):
        order = random.permutation(len(images))
        for begin in range(0, len(order), BATCH):
            pick = order[begin:begin + BATCH]
            keep = (random.random((len(pick), 64)) < 0.75).astype(np.float32) / 0.75
            g = gradients(p, shifted(images[pick], random), labels[pick], keep)
            step += 1
            rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            adam(p, g, mean, square, step, np.float32(rate))
        if epoch % 10 == 9:
            right = np.mean(forward(p, images)[0].argmax(axis=1) == labels)
            print(f"epoch {epoch + 1}: {right:.2%} of the training images")
    return p


def adam(p, g, mean, square, step, rate):
    for n in p:
        mean[n] += np.float32(0.1) * (g[n] - mean[n])
        square[n] += np.float32(0.001) * (g[n] * g[n] - square[n])
        m = mean[n] / np.float32(1 - 0.9 ** step)
        s = square[n] / np.float32(1 - 0.999 ** step)
        p[n] -= rate * (m / (np.sqrt(s) + np.float32(1e-8)))
        if n.endswith("weight"):
            p[n] -= rate * np.float32(WEIGHT_DECAY) * p[n]


# ---- files -----------------------------------------------------------------------

def write_safetensors(path, tensors):
    header, offset, names = {}, 0, sorted(tensors)
    for name in names:
        header[name] = {"dtype": "F32", "shape": tensors[name].shape,
                        "data_offsets": [offset, offset + tensors[name].nbytes]}
        offset += tensors[name].nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name in names:
            f.write(tensors[name].astype("<f4").tobytes())


def read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    size, = struct.unpack_from("<Q", data)
    header, body = json.loads(data[8:8 + size]), data[8 + size:]
    return {name: np.frombuffer(body[t["data_offsets"][0]:t["data_offsets"][1]],
                                "<f4").reshape(t["shape"])
            for name, t in header.items()}


def write_idx(path, array):
    with open(path, "wb") as f:
        f.write(bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I",
                                                           *array.shape))
        f.write(array.tobytes())


def read_idx(path):
    with open(path, "rb") as f:
        data = f.read()
    shape = struct.unpack_from(f">{data[3]}I", data, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def write_samples(folder, images, labels):
    """The first test images of each digit, named DIGIT-INDEX.pgm."""
    os.makedirs(folder, exist_ok=True)
    for digit in range(10):
        for i in np.flatnonzero(labels == digit)[:SAMPLES]:
            with open(os.path.join(folder, f"{digit}-{i:03}.pgm"), "wb") as f:
                f.write(b"P5\n8 8\n255\n" + images[i].tobytes())


def accuracy(folder):
    """Of what was written, over the whole test split."""
    p = read_safetensors(os.path.join(folder, "digits.safetensors"))
    images = read_idx(os.path.join(folder, "digits-test-images.idx"))
    labels = read_idx(os.path.join(folder, "digits-test-labels.idx"))
    x = images[:, None].astype(np.float32) / np.float32(240)
    right = int((forward(p, x)[0].argmax(axis=1) == labels).sum())
    print(f"test split: {right} of {len(labels)} right ({right / len(labels):.2%})")
    return right / len(labels)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(
        os.path.abspath(__file__))
    os.makedirs(folder, exist_ok=True)
    data = load_digits()
    images = (data.images * 15).astype(np.uint8)
    labels = data.target.astype(np.uint8)
    test = np.arange(len(images)) % 5 == 4
    x = images[:, None].astype(np.float32) / np.float32(240)
    p = train(x[~test], labels[~test])
    write_safetensors(os.path.join(folder, "digits.safetensors"), p)
    write_idx(os.path.join(folder, "digits-test-images.idx"), images[test])
    write_idx(os.path.join(folder, "digits-test-labels.idx"), labels[test])
    write_samples(os.path.join(folder, "images"), images[test], labels[test])
    if accuracy(folder) < LOWEST_ACCURACY:
        sys.exit(f"below {LOWEST_ACCURACY:.0%}: weights are not fit for the demo")


if __name__ == "__main__":
    main()
