# SPDX-License-Identifier: Apache-2.0
"""Decoders in the files of others: what a checkpoint of llama2.c and a folder of Hugging
Face's say of sizes and weights, for decoder.py."""
import json
import math
import os
import struct
import sys
from contextlib import contextmanager
from types import SimpleNamespace

PIECE = 1 << 18     # elements read or written at a time
MOST_BLOCKS = 4096  # more are no network of strata's


def fail(message):
    print(f"decoder.py: error: {message}", file=sys.stderr)
    sys.exit(2)


@contextmanager
def about(path):
    """What goes wrong inside is told with the file that it is about."""
    try:
        yield
    except OSError as e:
        fail(f"{e.filename or path}: {e.strerror or e}")
    except KeyError as e:
        fail(f"{path}: {e} is missing")
    except (ValueError, TypeError, AttributeError, IndexError, ArithmeticError, MemoryError,
            RecursionError, struct.error) as e:
        fail(f"{path}: {type(e).__name__}: {e}")


def read_json(path, data=None):
    """An object of JSON: the file, or data of it."""
    with about(path):
        if data is None:
            with open(path, "rb") as f:
                data = f.read()
        found = json.loads(data)
    if not isinstance(found, dict):
        fail(f"{path}: a {type(found).__name__}, not an object of JSON")
    return found


def real(path, pairs, key, default=None):
    """A finite number above 0."""
    value = pairs.get(key, default)
    if value is None:
        fail(f"{path}: {key} is missing")
    if type(value) not in (int, float) or not 0 < value < math.inf:
        fail(f"{path}: {key} is {value!r}; a number above 0 is needed")
    return value


# ---- safetensors ---------------------------------------------------------------------

SIZES = {"F32": 4, "F16": 2, "BF16": 2}
MARK = "decoder.py"  # in the metadata of its files; others are never replaced


def write_safetensors(path, kind, tensors):
    """Tensors in order: (name, shape, an iterable of bytes)."""
    if os.path.lexists(path) and (read_header(path)[1] or {}).get("written by") != MARK:
        fail(f"{path}: decoder.py did not write this file, and leaves it as it is")
    header, at = {"__metadata__": {"written by": MARK}}, 0
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
    """What a safetensors file holds: {name: (dtype, shape)}, and its metadata."""
    with about(path), open(path, "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        if size > 100 << 20:
            fail(f"{path}: the header claims {size} bytes: no safetensors file")
        header = read_json(path, f.read(size))
        marks = header.pop("__metadata__", None)
        return {k: (v["dtype"], v["shape"]) for k, v in header.items()}, marks


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
    of a weight in the network, None for a bias that is not there; block None: of all.
    window(block): keys that it sees back, itself among them; 0: all. weights: what is
    written of them, the arguments of write_safetensors."""
    d = SimpleNamespace(epsilon=1e-5, base=10000.0, interleaved=False, turns=None,
                        precision=None, window=lambda block: 0, weights=None, **given)
    for key in ("layers", "hidden", "heads", "kv_heads", "dim", "ffn", "vocabulary",
                "context"):
        value = getattr(d, key)
        if type(value) is not int or value < 1:
            fail(f"{d.origin}: {key} is {value!r}; an integer of at least 1 is needed")
    if d.layers > MOST_BLOCKS:
        fail(f"{d.origin}: {d.layers} layers; at most {MOST_BLOCKS} are written")
    if d.heads % d.kv_heads or d.dim % 2:
        fail(f"{d.origin}: {d.heads} heads cannot share {d.kv_heads} of keys, or their "
             f"{d.dim} elements do not turn in pairs")
    return d


# ---- llama2.c ------------------------------------------------------------------------

def blocks_of(path, offset, count):
    """So many floats of a file, from a place on, in pieces."""
    with open(path, "rb") as f:
        f.seek(offset)
        left = count * 4
        while left:
            piece = f.read(min(left, 4 * PIECE))
            if not piece:
                fail(f"{path}: the file ends early")
            left -= len(piece)
            yield piece


def from_llama2c(path, stem, context):
    """A header of seven integers, then FP32 matrices, each of all layers: version 0. A
    negative vocabulary says that the classifier is not the embedding."""
    with open(path, "rb") as f:
        head, size = f.read(28), f.seek(0, os.SEEK_END)
    if head[:4] == b"42ka":
        version = struct.unpack_from("<i", head, 4)[0] if len(head) >= 8 else "?"
        fail(f"{path}: a checkpoint of version {version}; of llama2.c, version 0 is read: "
             "export.py --version 0 writes it")
    if len(head) < 28:
        fail(f"{path}: {len(head)} bytes are no checkpoint of llama2.c")
    hidden, ffn, layers, heads, kv_heads, vocabulary, places = struct.unpack("<7i", head)
    if min(hidden, ffn, layers, heads, kv_heads, places) < 1 or vocabulary == 0 or \
            hidden % heads:
        fail(f"{path}: its header (dim {hidden}, hidden_dim {ffn}, {layers} layers, "
             f"{heads} heads, {kv_heads} of keys, vocabulary {vocabulary}, {places} "
             "places) is not that of a checkpoint of llama2.c")
    d = describe(origin=path, layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads,
                 dim=hidden // heads, ffn=ffn, vocabulary=abs(vocabulary),
                 context=context or places)
    d.interleaved = True
    order = ["attention_norm", "query", "key", "value", "output", "ffn_norm", "gate",
             "down", "up"]
    shapes, at, tensors = shapes_of(d), 28, []
    whole = layers * sum(map(math.prod, shapes.values())) + hidden + places * d.dim + \
        d.vocabulary * hidden * (1 if vocabulary > 0 else 2)
    if size != at + 4 * whole:
        fail(f"{path}: the file has {size} bytes; its header makes it {at + 4 * whole}")

    def take(name, shape):
        nonlocal at
        count = math.prod(shape)
        tensors.append((name, shape, blocks_of(path, at, count)))
        at += 4 * count

    take("embedding", [d.vocabulary, hidden])
    for part in order:
        for i in range(layers):
            take(f"{i}.{part}", shapes[part])
    take("norm", [hidden])
    at += 4 * places * d.dim  # tables of cosines and sines, which nobody reads
    if vocabulary < 0:
        take("logits", [d.vocabulary, hidden])
    d.weights = f"{stem}.safetensors", "F32", tensors
    d.files = {"w": os.path.basename(d.weights[0])}
    tied = vocabulary > 0
    d.find = lambda block, part, bias=False: None if bias else "w:" + (
        f"{block}.{part}" if block is not None
        else "embedding" if part == "logits" and tied else part)
    return d


# ---- Hugging Face --------------------------------------------------------------------

FAMILIES = ("llama", "mistral", "qwen2")


def turning(config, path, dim):
    """What rope_scaling makes of the angle of a place and each pair: a factor of the
    frequency. None: nothing."""
    parameters = config.get("rope_parameters") or {}
    given = config.get("rope_scaling") or parameters
    for key, value in (("rope_parameters", parameters), ("rope_scaling", given)):
        if not isinstance(value, dict) or any(isinstance(v, dict) for v in value.values()):
            fail(f"{path}: {key} is {value!r}, not one object for all layers")
    for pairs in (config, parameters, given):
        if pairs.get("partial_rotary_factor") not in (None, 1):
            fail(f"{path}: partial_rotary_factor is {pairs['partial_rotary_factor']!r}; "
                 "heads that turn as a whole are read")
    kind = given.get("rope_type", given.get("type", "default"))
    base = real(path, config if "rope_theta" in config else parameters, "rope_theta", 1e4)
    frequencies = [base ** (-2 * i / dim) for i in range(dim // 2)]
    if kind == "default":
        return base, None
    if kind == "linear":
        return base, [f / real(path, given, "factor") for f in frequencies]
    if kind != "llama3":
        fail(f"{path}: rope_scaling of type '{kind}' is not known here; linear and llama3 "
             "are")
    low, high, factor, old = (real(path, given, key) for key in (
        "low_freq_factor", "high_freq_factor", "factor",
        "original_max_position_embeddings"))

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
    """Of a block: keys that it sees back, itself among them; 0: all."""
    window, first = config.get("sliding_window") or 0, 0
    if config["model_type"] == "qwen2":
        first = config.get("max_window_layers", 28)
        if not config.get("use_sliding_window", False):
            window = 0
    elif config["model_type"] == "llama" and window:
        fail(f"{path}: sliding_window is not of a Llama")
    if type(window) is not int or window < 0 or type(first) is not int:
        fail(f"{path}: sliding_window {window!r} or max_window_layers {first!r} is no count")
    slides = ["sliding_attention" if window and i >= first else "full_attention"
              for i in range(layers)]
    if (config.get("layer_types") or slides) != slides:
        fail(f"{path}: layer_types is not what sliding_window and max_window_layers make of "
             f"a {config['model_type']}")
    return lambda block: window if block >= first else 0


def files_of(folder):
    """Tensors, and in which file each lies: {file: {tensor: (dtype, shape)}}."""
    index = os.path.join(folder, "model.safetensors.index.json")
    names = ["model.safetensors"]
    if not os.path.exists(os.path.join(folder, names[0])):
        if not os.path.exists(index):
            fail(f"{folder}: neither {names[0]} nor its shards are there")
        with about(index):
            shards = read_json(index)["weight_map"]
            if not isinstance(shards, dict):
                fail(f"{index}: weight_map is {shards!r}, not an object")
            names = sorted(set(shards.values()))
        for name in names:
            if not isinstance(name, str) or os.path.basename(name) != name:
                fail(f"{index}: the file '{name}' is not beside it")
    return {name: read_header(os.path.join(folder, name))[0] for name in names}


def from_folder(folder, stem, context):
    path = os.path.join(folder, "config.json")
    config = read_json(path)
    family = config.get("model_type")
    if family not in FAMILIES:
        fail(f"{path}: model_type is '{family}'; {', '.join(FAMILIES)} are read")
    if config.get("quantization_config"):
        fail(f"{path}: quantization_config: quantised models are not read")
    if config.get("hidden_act", "silu") != "silu":
        fail(f"{path}: hidden_act is '{config['hidden_act']}'; silu is read")
    with about(path):
        hidden, heads = config["hidden_size"], config["num_attention_heads"]
        d = describe(origin=folder, layers=config["num_hidden_layers"], hidden=hidden,
                     heads=heads, kv_heads=config.get("num_key_value_heads") or heads,
                     dim=config.get("head_dim") or hidden // heads,
                     ffn=config["intermediate_size"], vocabulary=config["vocab_size"],
                     context=context or config["max_position_embeddings"])
        d.epsilon = real(path, config, "rms_norm_eps", 1e-6)
        d.base, d.turns = turning(config, path, d.dim)
        d.window = windows_of(config, d.layers, path)
    shards = files_of(folder)
    d.files, places = {}, {}
    for i, (file, tensors) in enumerate(shards.items()):
        section = "w" if len(shards) == 1 else f"w{i + 1}"
        # Folders by their own names, so that none of them is a link.
        d.files[section] = os.path.join(
            os.path.relpath(os.path.realpath(folder),
                            os.path.realpath(os.path.dirname(stem))), file)
        places.update({name: (section, *what) for name, what in tensors.items()})
    shapes = shapes_of(d)
    names = {"embedding": "model.embed_tokens", "norm": "model.norm", "logits": "lm_head"}
    whole = {"embedding": [d.vocabulary, hidden], "norm": [hidden],
             "logits": [d.vocabulary, hidden]}

    def find(block, part, bias=False):
        stem = names[part] if block is None else f"model.layers.{block}.{BLOCK[part]}"
        name = stem + (".bias" if bias else ".weight")
        if name not in places and bias:
            return None
        if name not in places and part == "logits" and config.get("tie_word_embeddings"):
            return find(None, "embedding")
        if name not in places:
            fail(f"{folder}: no file has the tensor {name}")
        section, dtype, shape = places[name]
        if dtype not in SIZES:
            fail(f"{folder}: {name} is of {dtype}; {', '.join(SIZES)} are read")
        needed = whole[part] if block is None else shapes[part]
        if shape != (needed[:1] if bias else needed):
            fail(f"{folder}: {name} is {shape}; config.json makes it {needed}")
        return f"{section}:{name}"

    d.find = find
    return d
