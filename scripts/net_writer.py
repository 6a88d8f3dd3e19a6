# SPDX-License-Identifier: Apache-2.0
"""A network as an INI file in the making, for make_nets.py: sections, layer by layer, and
the layers that architectures share."""

WIDTH = 88  # of a line of inputs, before it is continued


class Net:
    """An INI file in the making. Every method that adds a layer returns its name; `x` is
    the layer or layers it reads."""

    def __init__(self, name, about, shape, outputs):
        self.sections, self.last = [], "image"
        head = [f"; {line}" if line else ";" for line in about.strip().splitlines()]
        self.begin = "\n".join(
            ["; SPDX-License-Identifier: Apache-2.0", *head,
             "; Random weights, made by scripts/make_nets.py. -D batch=N runs N at once.",
             "", "[network]", "format = 1", f"name = {name}", f"outputs = {outputs}",
             "", "[vars]", "batch = 1",
             "", "[input image]", "shape = ${batch} x " + shape,
             "", "[weights w]", "random = 1", ""])

    def title(self, text):
        self.sections.append(f"; ---- {text}\n")

    def add(self, layer, name, x, **keys):
        """One [layer]; its inputs are written unless they are the layer before it, which
        is the default."""
        inputs = [x] if isinstance(x, str) else list(x)
        lines = [f"[layer {name}]", f"type = {layer}"]
        if inputs != [self.last]:
            lines += listed("inputs", inputs)
        lines += [f"{key} = {value}" for key, value in keys.items() if value is not None]
        self.sections.append("\n".join(lines) + "\n")
        self.last = name
        return name

    def text(self):
        return "\n".join([self.begin, *self.sections])

    def conv(self, name, x, filters, kernel, stride=1, pad=None, groups=None,
             pad_mode=None, act="relu"):
        """Convolution that keeps the size at stride 1 unless told otherwise, and its
        activation."""
        height, width = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        if pad is None and pad_mode is None:
            pad = ((height - 1) // 2, (width - 1) // 2)
        self.add("Convolution", name, x, filters=filters, kernel=f"{height}x{width}",
                 stride=stride if stride != 1 else None, pad=pads(pad),
                 pad_mode=pad_mode, groups=groups, weight="w", bias="w")
        return self.activation(f"{name}.{act}", name, act) if act else name

    def activation(self, name, x, kind="relu"):
        return self.add("Activation", name, x, kind=kind)

    def pool(self, name, x, kind, kernel, stride, pad=None, ceil=False):
        return self.add("Pooling", name, x, kind=kind, kernel=f"{kernel}x{kernel}",
                        stride=stride, pad=pad, ceil_mode="yes" if ceil else None)

    def global_pool(self, name, x):
        return self.add("Pooling", name, x, kind="average", **{"global": "yes"})

    def concat(self, name, x):
        return self.add("Concatenation", name, x, axis=1)

    def sum(self, name, x):
        return self.add("ElementWise", name, x, op="sum")

    def upsample(self, name, x, mode="nearest", coordinates=None):
        return self.add("Resize", name, x, mode=mode, coordinates=coordinates, scale=2)

    def classify(self, x, units, pool, dense):
        """Mean of each channel, dense layer, probabilities."""
        self.title("classifier")
        x = self.global_pool(pool, x)
        x = self.add("FullyConnected", dense, x, units=units, weight="w",
                     bias="w")
        return self.add("Softmax", "prob", x, axis=1)


def pads(pad):
    height, width = pad if isinstance(pad, tuple) else (pad, pad)
    if not height and not width:
        return None
    return height if height == width else f"{height}, {width}"


def listed(key, names):
    """'key = a, b, c', continued over lines that are not too long."""
    lines, line = [], f"{key} = {names[0]}"
    for name in names[1:]:
        if len(line) + len(name) + 4 > WIDTH:
            lines.append(line + ", \\")
            line = f"    {name}"
        else:
            line += f", {name}"
    return lines + [line]
