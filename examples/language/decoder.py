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
import json
import math
import os
import struct
import sys
from array import array
from types import SimpleNamespace

DEFAULT_CONTEXT = 2048  # of random decoders
PIECE = 1 << 18         # elements written at a time


def fail(message):
    sys.exit(f"decoder.py: {message}")


# ---- safetensors ---------------------------------------------------------------------

SIZES = {"F32": 4, "F16": 2, "BF16": 2}
CODES = {"F32": "f", "F16": "e"}


def write_safetensors(path, kind, tensors):
    """Tensors in order: (name, shape, an iterable of bytes)."""
    header, at = {}, 0
    for name, shape, _ in tensors:
        end = at + math.prod(shape) * SIZES[kind]
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _, _, pieces in tensors:
            for piece in pieces:
                out.write(piece)
        if out.tell() != 8 + len(text) + at:
            fail(f"{path}: {out.tell()} bytes were written, not {8 + len(text) + at}")


def read_header(path):
    """Names and shapes of what a safetensors file holds."""
    try:
        with open(path, "rb") as f:
            size, = struct.unpack("<Q", f.read(8))
            if size > 100 << 20:
                fail(f"{path}: the header claims {size} bytes: no safetensors file")
            header = json.loads(f.read(size))
    except (OSError, ValueError, struct.error) as e:
        fail(f"{path}: {e}")
    return {k: v["shape"] for k, v in header.items() if k != "__metadata__"}


# ---- what a decoder is ---------------------------------------------------------------

# Weights of a block, by the names of Hugging Face's Llama; rows are outputs.
BLOCK = {"attention_norm": "input_layernorm", "query": "self_attn.q_proj",
         "key": "self_attn.k_proj", "value": "self_attn.v_proj",
         "output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
         "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj"}


def shapes_of(d):
    """Of each weight of a block."""
    q, kv = d.heads * d.dim, d.kv_heads * d.dim
    return {"attention_norm": [d.hidden], "query": [q, d.hidden], "key": [kv, d.hidden],
            "value": [kv, d.hidden], "output": [d.hidden, q], "ffn_norm": [d.hidden],
            "gate": [d.ffn, d.hidden], "up": [d.ffn, d.hidden], "down": [d.hidden, d.ffn]}


def describe(**given):
    """A decoder: its sizes, and where its weights are. find(block, part) is the reference
    of a weight in the network, None for a bias that is not there; block None: of all."""
    d = SimpleNamespace(epsilon=1e-5, base=10000.0, interleaved=False, turns=None,
                        precision=None, **given)
    d.windows = [0] * d.layers
    for key in ("layers", "hidden", "heads", "kv_heads", "dim", "ffn", "vocabulary",
                "context"):
        value = getattr(d, key)
        if not isinstance(value, int) or value < 1:
            fail(f"{d.origin}: {key} is {value}; at least 1 is needed")
    if d.heads % d.kv_heads or d.dim % 2:
        fail(f"{d.origin}: {d.heads} heads cannot share {d.kv_heads} of keys, or their "
             f"{d.dim} elements do not turn in pairs")
    return d


# ---- llama2.c ------------------------------------------------------------------------

def blocks_of(f, offset, count):
    """So many floats of a file, from a place on, in pieces."""
    f.seek(offset)
    left = count * 4
    while left:
        piece = f.read(min(left, 4 * PIECE))
        if not piece:
            fail(f"{f.name}: the file ends early")
        left -= len(piece)
        yield piece


def from_llama2c(path, out):
    """A header of seven integers, then FP32 matrices, each of all layers: version 0. A
    negative vocabulary says that the classifier is not the embedding."""
    f = open(path, "rb")
    head = f.read(28)
    if head[:4] == b"42ka":
        version = struct.unpack_from("<i", head, 4)[0] if len(head) >= 8 else "?"
        fail(f"{path}: a checkpoint of version {version}; of llama2.c, version 0 is read: "
             "export.py --version 0 writes it")
    if len(head) < 28:
        fail(f"{path}: {len(head)} bytes are no checkpoint of llama2.c")
    hidden, ffn, layers, heads, kv_heads, vocabulary, context = struct.unpack("<7i", head)
    if min(hidden, ffn, layers, heads, kv_heads, context) < 1 or vocabulary == 0 or \
            hidden % heads:
        fail(f"{path}: its header (dim {hidden}, hidden_dim {ffn}, {layers} layers, "
             f"{heads} heads, {kv_heads} of keys, vocabulary {vocabulary}, {context} "
             "places) is not that of a checkpoint of llama2.c")
    d = describe(origin=path, layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads,
                 dim=hidden // heads, ffn=ffn, vocabulary=abs(vocabulary), context=context)
    d.interleaved = True
    order = ["attention_norm", "query", "key", "value", "output", "ffn_norm", "gate",
             "down", "up"]
    shapes, at, tensors = shapes_of(d), 28, []

    def take(name, shape):
        nonlocal at
        count = math.prod(shape)
        tensors.append((name, shape, blocks_of(f, at, count)))
        at += 4 * count

    take("embedding", [d.vocabulary, hidden])
    for part in order:
        for i in range(layers):
            take(f"{i}.{part}", shapes[part])
    take("norm", [hidden])
    at += 4 * context * d.dim  # tables of cosines and sines, which nobody reads
    if vocabulary < 0:
        take("logits", [d.vocabulary, hidden])
    size = f.seek(0, os.SEEK_END)
    if size != at:
        fail(f"{path}: the file has {size} bytes; its header makes it {at}")
    name = os.path.basename(out.removesuffix(".ini")) + ".safetensors"
    write_safetensors(os.path.join(os.path.dirname(out), name), "F32", tensors)
    d.files = {"w": name}
    tied = vocabulary > 0
    d.find = lambda block, part, bias=False: None if bias else "w:" + (
        f"{block}.{part}" if block is not None
        else "embedding" if part == "logits" and tied else part)
    return d


# ---- Hugging Face --------------------------------------------------------------------

FAMILIES = ("llama", "mistral", "qwen2")


def turning(config, path, dim, context):
    """What rope_scaling makes of the angle of a place and each pair: a factor of the
    frequency. None: nothing."""
    given = config.get("rope_scaling") or {}
    if not given:
        parameters = config.get("rope_parameters") or {}
        given = {k: v for k, v in parameters.items() if k != "rope_theta"}
    kind = given.get("rope_type", given.get("type", "default"))
    base = config.get("rope_theta",
                      (config.get("rope_parameters") or {}).get("rope_theta", 10000.0))
    frequencies = [base ** (-2 * i / dim) for i in range(dim // 2)]
    if kind == "default":
        return base, None
    if kind == "linear":
        return base, [f / given["factor"] for f in frequencies]
    if kind != "llama3":
        fail(f"{path}: rope_scaling of type '{kind}' is not known here; linear and llama3 "
             "are")
    low, high = given["low_freq_factor"], given["high_freq_factor"]
    factor, old = given["factor"], given["original_max_position_embeddings"]

    def scaled(f):
        turns = old * f / (2 * math.pi)  # of the pair in the old context
        if turns < low:
            return f / factor
        if turns > high:
            return f
        share = (turns - low) / (high - low)
        return (1 - share) * f / factor + share * f
    return base, [scaled(f) for f in frequencies]


def windows_of(config, layers, path):
    """Keys that each block sees back, itself among them; 0: all."""
    window = config.get("sliding_window") or 0
    if config["model_type"] == "qwen2":
        if not config.get("use_sliding_window", False):
            return [0] * layers
        first = config.get("max_window_layers", layers)
        return [window if i >= first else 0 for i in range(layers)]
    if config["model_type"] == "llama" and window:
        fail(f"{path}: sliding_window is not of a Llama")
    return [window] * layers


def files_of(folder):
    """Tensors, and in which file each lies: {file: {tensor: shape}}."""
    index = os.path.join(folder, "model.safetensors.index.json")
    single = os.path.join(folder, "model.safetensors")
    if os.path.exists(single):
        return {"model.safetensors": read_header(single)}
    try:
        with open(index) as f:
            names = sorted(set(json.load(f)["weight_map"].values()))
    except (OSError, ValueError, KeyError) as e:
        fail(f"{folder}: neither model.safetensors nor its shards can be read: {e}")
    for name in names:
        if os.path.basename(name) != name:
            fail(f"{index}: the file '{name}' is not beside it")
    return {name: read_header(os.path.join(folder, name)) for name in names}


def from_folder(folder, out, context):
    path = os.path.join(folder, "config.json")
    try:
        with open(path) as f:
            config = json.load(f)
        family = config.get("model_type")
        if family not in FAMILIES:
            fail(f"{path}: model_type is '{family}'; {', '.join(FAMILIES)} are read")
        hidden, heads = config["hidden_size"], config["num_attention_heads"]
        d = describe(origin=folder, layers=config["num_hidden_layers"], hidden=hidden,
                     heads=heads, kv_heads=config.get("num_key_value_heads") or heads,
                     dim=config.get("head_dim") or hidden // heads,
                     ffn=config["intermediate_size"], vocabulary=config["vocab_size"],
                     context=context or config["max_position_embeddings"])
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError) as e:
        fail(f"{path}: {type(e).__name__}: {e}")
    if config.get("hidden_act", "silu") != "silu":
        fail(f"{path}: hidden_act is '{config['hidden_act']}'; silu is read")
    d.epsilon = config.get("rms_norm_eps", 1e-6)
    d.base, d.turns = turning(config, path, d.dim, d.context)
    d.windows = windows_of(config, d.layers, path)
    shards = files_of(folder)
    d.files, places = {}, {}
    for i, (file, tensors) in enumerate(shards.items()):
        section = "w" if len(shards) == 1 else f"w{i + 1}"
        d.files[section] = os.path.relpath(os.path.join(folder, file),
                                           os.path.dirname(out) or ".")
        places.update({name: (section, shape) for name, shape in tensors.items()})
    shapes = shapes_of(d)
    names = {"embedding": "model.embed_tokens", "norm": "model.norm", "logits": "lm_head"}
    whole = {"embedding": [d.vocabulary, hidden], "norm": [hidden],
             "logits": [d.vocabulary, hidden]}

    def find(block, part, bias=False):
        stem = names[part] if block is None else f"model.layers.{block}.{BLOCK[part]}"
        name = stem + (".bias" if bias else ".weight")
        if name not in places and part == "logits":
            return find(None, "embedding") if not bias else None
        if name not in places and bias:
            return None
        if name not in places:
            fail(f"{folder}: no file has the tensor {name}")
        section, shape = places[name]
        needed = whole[part] if block is None else shapes[part]
        if shape != (needed[:1] if bias else needed):
            fail(f"{folder}: {name} is {shape}; config.json makes it {needed}")
        return f"{section}:{name}"

    d.find = find
    return d


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


def from_random(text, out, context, seed, kind):
    """Weights of a spread that keeps what flows through at its size. Matrices repeat a
    draw of 2^18 values, each turned by a place of its own, so that a billion of them take
    seconds."""
    sizes = {}
    for pair in text.split(","):
        key, _, value = pair.partition("=")
        try:
            sizes[key.strip()] = int(value)
        except ValueError:
            fail(f"--random {pair}: NAME=INTEGER is needed")
    needed = {"layers", "hidden", "heads", "kv_heads", "ffn", "vocabulary"}
    if set(sizes) != needed:
        fail(f"--random has {', '.join(sorted(sizes))}; {', '.join(sorted(needed))} are "
             "needed")
    if sizes["heads"] < 1 or sizes["hidden"] % sizes["heads"]:
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
        return struct.pack(f"<{len(values)}{CODES[kind]}", *values)

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
    name = os.path.basename(out.removesuffix(".ini")) + ".safetensors"
    write_safetensors(os.path.join(os.path.dirname(out), name), kind,
                      [(n, shape, pieces(shape)) for n, shape in tensors])
    d.files = {"w": name}
    d.precision = {"F16": "fp16", "BF16": "bf16"}.get(kind)
    d.find = lambda block, part, bias=False: None if bias else "w:" + (
        part if block is None else f"{block}.{part}")
    return d


# ---- the network ---------------------------------------------------------------------

def number(x):
    return repr(int(x)) if x == int(x) else repr(x)


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


def write_head(w, stem):
    d = w.d
    w.say(f"{d.layers} blocks of {d.heads} heads, {d.kv_heads} of them with keys, "
          f"{d.hidden} wide; {d.vocabulary} words, {d.context} places.\n"
          "; ids are the next tokens of each row; logits are of the word behind the last.\n"
          f"; Written by decoder.py from {d.origin}.")
    w.section("network", format=1, name=stem, outputs="logits")
    w.section("profile", N=w.batches, T=f"1..{d.context}: {w.pieces}")
    w.section("input ids", shape="N x T", dtype="i32")
    for name, file in d.files.items():
        w.section(f"weights {name}", file=file,
                  anywhere="yes" if file.startswith("..") or os.path.isabs(file) else None)
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
            window_left=d.windows[i] - 1 if d.windows[i] else None)
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


def write_turns(d, out):
    """Cosines and sines of frequencies that no base gives."""
    name = os.path.basename(out.removesuffix(".ini")) + ".turns.safetensors"
    shape = [d.context, d.dim // 2]

    def rows(f):
        for place in range(d.context):
            yield struct.pack(f"<{len(d.turns)}f", *(f(place * t) for t in d.turns))

    write_safetensors(os.path.join(os.path.dirname(out), name), "F32",
                      [("cos", shape, rows(math.cos)), ("sin", shape, rows(math.sin))])
    d.files["turns"] = name


def write(d, out, batches, pieces):
    w = Writer(d)
    w.batches = ", ".join(batches.split(","))
    w.pieces = ", ".join(dict.fromkeys(str(min(int(n), d.context))
                                       for n in pieces.split(",")))
    if d.turns:
        write_turns(d, out)
    write_head(w, os.path.basename(out.removesuffix(".ini")))
    x = "embedding"
    for i in range(d.layers):
        w.say(f"Block {i}")
        x = write_ffn(w, i, write_attention(w, i, x))
    write_tail(w, x)
    with open(out, "w") as f:
        f.write("".join(w.text).rstrip() + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("source", nargs="?", help="a checkpoint of llama2.c, or a folder")
    p.add_argument("-o", "--output", required=True, help="the network, NAME.ini")
    p.add_argument("--random", metavar="SIZES", help="a decoder of no meaning")
    p.add_argument("--seed", type=int, default=0, help="of --random")
    p.add_argument("--type", choices=SIZES, default="F32", help="of --random's weights")
    p.add_argument("--context", type=int, help="places, in place of the model's")
    p.add_argument("--batch", default="1", help="rows: values of N in [profile]")
    p.add_argument("--sizes", default="1,128",
                   help="tokens of a run that plans are made for; any others run, too")
    a = p.parse_args()
    if not a.output.endswith(".ini"):
        fail(f"-o {a.output}: NAME.ini is needed")
    if (a.source is None) == (a.random is None):
        fail("a checkpoint, a folder or --random is needed, one of them")
    if a.context is not None and a.context < 1:
        fail(f"--context {a.context}: at least 1 is needed")
    if a.random:
        d = from_random(a.random, a.output, a.context, a.seed, a.type)
    elif os.path.isdir(a.source):
        d = from_folder(a.source, a.output, a.context)
    else:
        d = from_llama2c(a.source, a.output)
        d.context = min(d.context, a.context or d.context)
    write(d, a.output, a.batch, a.sizes)


if __name__ == "__main__":
    main()
