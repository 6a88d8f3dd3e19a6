#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A decoder (Llama, Mistral, Qwen2) as a network file that a person can read.

    decoder.py stories260K.bin -o stories.ini
    decoder.py FOLDER -o net.ini --context 4096
    decoder.py --random layers=16,hidden=2048,heads=32,kv_heads=8,ffn=8192,vocabulary=32000 \\
        --seed 1 --type F16 -o billion.ini

From a checkpoint of llama2.c, and from --random, net.safetensors is written beside
net.ini. A folder of Hugging Face's (config.json, model.safetensors or its shards) is left
as it is: the network names the tensors in its files. Needs Python's library alone.
"""
import argparse
import math
import os
import shutil
import struct
import sys
from array import array

sys.dont_write_bytecode = True  # in the folder of the sources
from checkpoints import (PIECE, SIZES, about, describe, fail, from_folder, from_llama2c,
                         shapes_of, write_safetensors)

DEFAULT_CONTEXT = 2048  # of random decoders


# ---- random --------------------------------------------------------------------------

def random_bits(seed):
    """SplitMix64: so many values a call, as unsigned integers of 64 bits."""
    state = seed
    while True:
        state = (state + 0x9e3779b97f4a7c15) & 0xffffffffffffffff
        z = state
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & 0xffffffffffffffff
        z = (z ^ z >> 27) * 0x94d049bb133111eb & 0xffffffffffffffff
        yield z ^ z >> 31


def from_random(text, stem, context, seed, kind):
    """Weights of a spread that keeps what flows through at its size. Matrices repeat a
    draw of 2^18 values, each turned by a place of its own, so that a billion of them take
    seconds."""
    sizes = {}
    for pair in text.split(","):
        key, _, value = pair.partition("=")
        try:
            if int(value) < 1 or key.strip() in sizes:
                raise ValueError
            sizes[key.strip()] = int(value)
        except ValueError:
            fail(f"--random {pair}: NAME=INTEGER is needed, at least 1, and once")
    needed = {"layers", "hidden", "heads", "kv_heads", "ffn", "vocabulary"}
    if set(sizes) != needed:
        fail(f"--random has {', '.join(sorted(sizes))}; {', '.join(sorted(needed))} are "
             "needed")
    if sizes["hidden"] % sizes["heads"]:
        fail(f"--random: {sizes['heads']} heads do not divide {sizes['hidden']}")
    d = describe(origin=f"--random {text} --seed {seed}",
                 dim=sizes["hidden"] // sizes["heads"],
                 context=context or DEFAULT_CONTEXT, **sizes)
    bits = random_bits(seed)
    draw = [(next(bits) >> 11) * 2.0**-52 - 1 for _ in range(PIECE)]

    def pack(values):
        if kind == "BF16":
            data = array("f", values).tobytes()
            return b"".join(data[i + 2:i + 4] for i in range(0, len(data), 4))
        return struct.pack(f"<{len(values)}{'e' if kind == 'F16' else 'f'}", *values)

    drawn = {}

    def pieces(shape):
        count = math.prod(shape)
        middle, spread = (1, 1 / 4) if len(shape) == 1 else (0, math.sqrt(3 / shape[1]))
        if (middle, spread) not in drawn:
            drawn[middle, spread] = pack([middle + v * spread for v in draw]) * 2
        data, size = drawn[middle, spread], SIZES[kind]
        while count:
            n, at = min(count, PIECE), next(bits) % PIECE
            yield memoryview(data)[at * size:(at + n) * size]
            count -= n

    tensors = [("embedding", [d.vocabulary, d.hidden])]
    for i in range(d.layers):
        tensors += [(f"{i}.{part}", shape) for part, shape in shapes_of(d).items()]
    tensors += [("norm", [d.hidden]), ("logits", [d.vocabulary, d.hidden])]
    d.weights = f"{stem}.safetensors", kind, [(n, s, pieces(s)) for n, s in tensors]
    d.files = {"w": os.path.basename(d.weights[0])}
    d.precision = {"F16": "fp16", "BF16": "bf16"}.get(kind)
    d.find = lambda block, part, bias=False: None if bias else "w:" + (
        part if block is None else f"{block}.{part}")
    return d


# ---- the network ---------------------------------------------------------------------

def number(x):
    return repr(int(x)) if x == int(x) else repr(x)


def quoted(value):
    """A text as a value of the INI."""
    if '"' in value or " ;" in value or not value.isprintable():
        fail(f"{value!r}: an INI file has no way to write this name; rename it")
    plain = value == value.strip() and not set(value) & set("#;\\")
    value = value.replace("$", "$$")
    return value if plain else f'"{value}"'


def leads_out(folder, file):
    """Whether a file is elsewhere, or a link is on the way to it."""
    steps = file.split(os.sep)
    return os.path.isabs(file) or os.pardir in steps or any(
        os.path.islink(os.path.join(folder, *steps[:i + 1])) for i in range(len(steps)))


class Writer:
    def __init__(self, d):
        self.d, self.text = d, []

    def say(self, line):
        self.text.append(f"; {line}\n")

    def section(self, title, /, **pairs):
        lines = [f"{key} = {value}\n" for key, value in pairs.items() if value is not None]
        self.text.append(f"[{title}]\n{''.join(lines)}\n")

    def layer(self, name, layer_type, /, **pairs):
        self.section(f"layer {name}", type=layer_type, **pairs)

    def product(self, name, inputs, block, part):
        """By a matrix whose rows are outputs."""
        self.layer(name, "MatrixMultiply", inputs=inputs, transpose_b="yes",
                   b=self.d.find(block, part), bias=self.d.find(block, part, bias=True))

    def norm(self, name, inputs, block, part):
        self.layer(name, "Normalization", inputs=inputs, kind="rms",
                   epsilon=number(self.d.epsilon), scale=self.d.find(block, part))


def write_head(w, folder, name):
    d = w.d
    origin = "".join(c if c.isprintable() else "?" for c in d.origin)
    w.say(f"{d.layers} blocks of {d.heads} heads, {d.kv_heads} of them with keys, "
          f"{d.hidden} wide; {d.vocabulary} words, {d.context} places.\n"
          "; ids are the next tokens of each row; logits are of the word behind the last.\n"
          f"; Written by decoder.py from {origin}.")
    w.section("network", format=1, name=quoted(name), outputs="logits")
    w.section("profile", N=w.batches, T=f"1..{d.context}: {w.pieces}")
    w.section("input ids", shape="N x T", dtype="i32")
    for section, file in d.files.items():
        w.section(f"weights {section}", file=quoted(file),
                  anywhere="yes" if leads_out(folder, file) else None)
    if d.precision:
        w.section("build", precision=d.precision)
    w.say("Tokens that each row has had, which is the place of its next one.")
    w.section("state places", shape="N", dtype="i32", next="next_places", room=d.context)
    w.layer("embedding", "Embedding", inputs="ids", table=d.find(None, "embedding"))


def write_attention(w, i, x):
    d, at = w.d, f"block{i}/"
    room = f"N x {d.kv_heads} x {d.context} x {d.dim}"
    w.section(f"state {at}keys", shape=room, next=f"{at}attention:1")
    w.section(f"state {at}values", shape=room, next=f"{at}attention:2")
    w.norm(f"{at}attention_norm", x, i, "attention_norm")
    for part in ("query", "key", "value"):
        w.product(f"{at}{part}", f"{at}attention_norm", i, part)
    table = {"cos": "turns:cos", "sin": "turns:sin"} if d.turns else {
        "base": None if d.base == 10000 else number(d.base)}
    for part, heads in (("query", d.heads), ("key", d.kv_heads)):
        w.layer(f"{at}turned_{part}", "RotaryEmbedding", inputs=f"{at}{part}, places",
                heads=heads, interleaved="yes" if d.interleaved else None, **table)
    w.layer(f"{at}attention", "Attention",
            inputs=f"{at}turned_query, {at}turned_key, {at}value, none, \\\n"
                   f"    {at}keys, {at}values, places",
            heads=d.heads, kv_heads=d.kv_heads, causal="yes", cache="yes",
            window_left=d.window(i) - 1 if d.window(i) else None)
    w.product(f"{at}output", f"{at}attention", i, "output")
    w.layer(f"{at}attended", "ElementWise", op="sum", inputs=f"{at}output, {x}")
    return f"{at}attended"


def write_ffn(w, i, x):
    at = f"block{i}/"
    w.norm(f"{at}ffn_norm", x, i, "ffn_norm")
    w.product(f"{at}gate", f"{at}ffn_norm", i, "gate")
    w.layer(f"{at}silu", "Activation", kind="silu")
    w.product(f"{at}up", f"{at}ffn_norm", i, "up")
    w.layer(f"{at}gated", "ElementWise", op="product", inputs=f"{at}silu, {at}up")
    w.product(f"{at}down", f"{at}gated", i, "down")
    w.layer(f"{at}out", "ElementWise", op="sum", inputs=f"{at}down, {x}")
    return f"{at}out"


def write_tail(w, x):
    d = w.d
    w.say("The last token alone says the next word.")
    w.layer("last", "Slice", inputs=x, axes=1, begin=-1)
    w.norm("norm", "last", None, "norm")
    w.product("scores", "norm", None, "logits")
    w.layer("logits", "Shuffle", shape=f"0, {d.vocabulary}")
    w.say("As many places further as there are tokens in this run.")
    w.layer("tokens", "Shape", inputs="ids", axes=1, to="i32")
    w.layer("next_places", "ElementWise", op="sum", inputs="places, tokens")


def write_turns(d, path):
    """Cosines and sines of frequencies that no base gives."""
    shape = [d.context, d.dim // 2]

    def rows(f):
        for place in range(d.context):
            yield struct.pack(f"<{len(d.turns)}f", *(f(place * t) for t in d.turns))

    write_safetensors(path, "F32", [("cos", shape, rows(math.cos)),
                                    ("sin", shape, rows(math.sin))])


def write(d, stem, batches, sizes):
    w, turns = Writer(d), f"{stem}.turns.safetensors"
    w.batches = ", ".join(map(str, dict.fromkeys(batches)))
    w.pieces = ", ".join(map(str, dict.fromkeys(min(n, d.context) for n in sizes)))
    if d.turns:
        d.files["turns"] = os.path.basename(turns)
    write_head(w, os.path.dirname(stem), os.path.basename(stem))
    x = "embedding"
    for i in range(d.layers):
        w.say(f"Block {i}")
        x = write_ffn(w, i, write_attention(w, i, x))
    write_tail(w, x)
    text = ("".join(w.text).rstrip() + "\n").encode()
    if d.weights:
        write_safetensors(*d.weights)
    if d.turns:
        write_turns(d, turns)
    with open(f"{stem}.ini", "wb") as f:
        f.write(text)


def take_tokenizer(source, stem):
    """To where `strata generate` looks for it; another one that lies there stays."""
    folder, names = source, []
    if not os.path.isdir(source):
        folder, name = os.path.split(source.removesuffix(".bin"))
        names = [f"{name}.tokenizer.json", f"{name}.tokenizer.bin"]
    for name in names + ["tokenizer.json", "tokenizer.bin"]:
        given = os.path.join(folder, name)
        to = f"{stem}.tokenizer{name[name.rindex('.'):]}"
        there = [f for f in (f"{stem}.tokenizer.json", f"{stem}.tokenizer.bin")
                 if os.path.lexists(f)]
        if os.path.isfile(given):
            if there:
                print(f"{there[0]} stays the tokenizer")
            else:
                shutil.copyfile(given, to)
                print(f"{to}: the tokenizer, copied from {given}")
            return
    print(f"{source}: no tokenizer lies there; --tokenizer gives one to strata generate")


def counts(text):
    """Of an option: integers of at least 1."""
    try:
        found = [int(n) for n in text.split(",")]
    except ValueError:
        found = [0]
    if min(found) < 1:
        raise argparse.ArgumentTypeError(f"'{text}': integers of at least 1 are needed")
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("source", nargs="?", help="a checkpoint of llama2.c, or a folder")
    p.add_argument("-o", "--output", required=True, help="the network, NAME.ini")
    p.add_argument("--random", metavar="SIZES", help="a decoder of no meaning")
    p.add_argument("--seed", type=int, default=0, help="of --random")
    p.add_argument("--type", choices=SIZES, default="F32", help="of --random's weights")
    p.add_argument("--context", type=int, help="places, in place of the model's")
    p.add_argument("--batch", type=counts, default="1", help="rows: values of N in [profile]")
    p.add_argument("--sizes", type=counts, default="1,128",
                   help="tokens of a run that plans are made for; any others run, too")
    a = p.parse_args()
    stem = a.output.removesuffix(".ini")
    if stem == a.output or not os.path.basename(stem):
        fail(f"-o {a.output}: NAME.ini is needed")
    if (a.source is None) == (a.random is None):
        fail("a checkpoint, a folder or --random is needed, one of them")
    if a.context is not None and a.context < 1:
        fail(f"--context {a.context}: at least 1 is needed")
    with about(a.output if a.source is None else a.source):
        if a.random is not None:
            d = from_random(a.random, stem, a.context, a.seed, a.type)
        elif os.path.isdir(a.source):
            d = from_folder(a.source, stem, a.context)
        else:
            d = from_llama2c(a.source, stem, a.context)
        write(d, stem, a.batch, a.sizes)
        if a.source is not None:
            take_tokenizer(a.source, stem)


if __name__ == "__main__":
    main()
