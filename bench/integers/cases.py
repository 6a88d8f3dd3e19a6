# SPDX-License-Identifier: Apache-2.0
"""Random models of quantised ONNX operators, and the integers that ONNX defines for them.

compare.py says what is taken as the definition, and runs them.
"""
import numpy as np
import onnx
from onnx import helper, numpy_helper

ROUNDING = 2.0**-24


class Model:
    """A graph that is being made, with what it reads and what it should write."""

    def __init__(self, random, case):
        self.random, self.exact, self.near = random, case % 2 == 0, case % 4 == 3
        self.few, self.bias = case % 4 > 1, 50 if case % 4 > 1 else 9999
        self.large = case % 8 > 3
        self.step, self.halves = None, 0  # what a sum of 1 stands for
        self.nodes, self.constants, self.inputs, self.wants = [], [], {}, {}

    def name(self):
        return f"t{len(self.nodes) + len(self.constants) + len(self.inputs)}"

    def input(self, array):
        name = self.name()
        self.inputs[name] = array
        return name

    def constant(self, array):
        name = self.name()
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, outputs=None, **attributes):
        outputs = outputs or [self.name() + "n"]
        self.nodes.append(helper.make_node(op, inputs, outputs, **attributes))
        return outputs[0]

    def want(self, name, array, undecided=None):
        if undecided is None:
            undecided = np.zeros(array.shape, bool)
        self.wants[name] = array, undecided

    def save(self, path):
        infos = [[helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in pairs]
            for pairs in (self.inputs.items(),
                          [(n, w[0]) for n, w in self.wants.items()])]
        graph = helper.make_graph(self.nodes, "case", *infos, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)],
                                  ir_version=10)
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)

    # Random parts

    def size(self, low, high):
        return int(self.random.integers(low, high + 1))

    def pick(self, *choices):
        return choices[self.random.integers(len(choices))]

    def scale(self, near=0.05, shape=()):
        exponent = np.log2(near) + self.random.uniform(-1, 1, shape)
        return np.asarray(2.0**(np.rint(exponent) if self.exact else exponent), "f4")

    def integers(self, shape, dtype):
        ends = np.iinfo(dtype)
        return self.random.integers(ends.min, ends.max + 1, shape).astype(dtype)

    def zero(self, dtype):
        ends = np.iinfo(dtype)
        middle = (int(ends.min) + int(ends.max) + 1) // 2
        return np.asarray(self.pick(ends.min, middle, middle + self.size(-90, 90)), dtype)


class Quantised:
    """Integers with scale and zero, and the reals that they stand for."""

    def __init__(self, m, shape, dtype, zero=None, scale=None):
        self.zero = m.zero(dtype) if zero is None else np.asarray(zero, dtype)
        self.q = m.integers(shape, dtype)
        if m.few:
            near = m.random.integers(-5, 6, shape) + int(self.zero.ravel()[0])
            ends = np.iinfo(dtype)
            self.q = np.clip(near, ends.min, ends.max).astype(dtype)
        self.scale = m.scale() if scale is None else scale
        self.whole = self.q.astype("f8") - self.zero.astype("f8")

    def floats(self):
        return (self.whole.astype("f4") * self.scale).astype("f4")

    def dequantised(self, m, constant=False, **attributes):
        name = (m.constant if constant else m.input)(self.q)
        return m.node("DequantizeLinear", [name, m.constant(self.scale),
                                           m.constant(self.zero)], **attributes)


def count_halves(m, whole, zero, dtype):
    ends = np.iinfo(dtype)
    inside = np.abs(whole + zero.astype("f8") - (ends.max + ends.min) / 2) < 128
    m.halves += int((inside & (np.abs(np.modf(whole)[0]) == 0.5)).sum())


def saturated(whole, zero, dtype):
    ends = np.iinfo(dtype)
    return np.clip(np.rint(whole) + zero.astype("f8"), ends.min, ends.max).astype(dtype)


def quantised(m, x, scale, zero, dtype):
    """QuantizeLinear by FP32's division."""
    whole = (x.astype("f4") / scale.astype("f4")).astype("f8")
    count_halves(m, whole, zero, dtype)
    return saturated(whole, zero, dtype)


def rounded(m, real, magnitude, roundings, zero, dtype, exact):
    """Integers of reals, and which of them FP32 may move to the neighbour."""
    if exact:
        count_halves(m, real, zero, dtype)
    result = saturated(real, zero, dtype)
    band = (0 if exact else roundings * ROUNDING) * magnitude
    low, high = (saturated(real + s * band, zero, dtype) for s in (-1, 1))
    return result, low != high


def output_scale(m, real):
    scale = m.scale(max(float(np.std(real)), 1e-3) / m.pick(20, 50, 90))
    if m.near and m.step:
        scale = np.asarray(m.step * 2.0**np.rint(np.log2(scale / m.step)), "f4")
    return scale


def finish(m, name, real, magnitude, roundings, undecided=False, exact=True):
    """A Quantize of what a graph has computed."""
    dtype = m.pick("u1", "i1")
    zero, scale = m.zero(dtype), output_scale(m, real)
    m.node("QuantizeLinear", [name, m.constant(scale), m.constant(zero)], ["y"])
    integers, more = rounded(m, real / scale, magnitude / scale, roundings, zero, dtype,
                             m.exact and exact)
    m.want("y", integers, more | undecided)


# Windows


def window(m):
    kernel = [m.size(1, 4), m.size(1, 4)]
    return {"kernel_shape": kernel, "strides": [m.size(1, 3), m.size(1, 2)],
            "pads": [m.size(0, k - 1) for k in kernel * 2]}


def convolved(x, w, a, group):
    """Of doubles, in which the sums of integers are exact."""
    (top, left, bottom, right), (sy, sx) = a["pads"], a["strides"]
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    n, c, h, width = x.shape
    k, part, kh, kw = w.shape
    oh, ow = (h - kh) // sy + 1, (width - kw) // sx + 1
    x, w = x.reshape(n, group, part, h, width), w.reshape(group, k // group, part, kh, kw)
    y = np.zeros((n, group, k // group, oh, ow))
    for i in range(kh):
        for j in range(kw):
            piece = x[..., i:i + sy * oh:sy, j:j + sx * ow:sx][..., :oh, :ow]
            y += np.einsum("ngchw,gkc->ngkhw", piece, w[..., i, j])
    return y.reshape(n, k, oh, ow)


def deconvolved(x, w, a, group):
    (top, left, bottom, right), (sy, sx) = a["pads"], a["strides"]
    n, c, h, width = x.shape
    part, kh, kw = w.shape[1:]
    x = x.reshape(n, group, c // group, h, width)
    w = w.reshape(group, c // group, part, kh, kw)
    y = np.zeros((n, group, part, (h - 1) * sy + kh, (width - 1) * sx + kw))
    for i in range(kh):
        for j in range(kw):
            y[..., i:i + sy * h:sy, j:j + sx * width:sx][..., :h, :width] += np.einsum(
                "ngchw,gck->ngkhw", x, w[..., i, j])
    y = y.reshape(n, group * part, *y.shape[3:])
    return y[..., top:y.shape[2] - bottom, left:y.shape[3] - right]


def pooled(x, a, what, outside):
    (top, left, bottom, right), (sy, sx) = a["pads"], a["strides"]
    kernel = a["kernel_shape"]
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=outside)
    views = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))
    return what(views[:, :, ::sy, ::sx], (4, 5))


def image(m, channels, at_least=4):
    return (m.size(1, 2), channels, m.size(at_least, 13), m.size(at_least, 9))


def kernels(m, group, turned=False):
    """Channels of an input, a window and the shape of weights."""
    most, a = 70 // group if m.large else 9, window(m)
    ins, outs = m.size(1, most) * group, m.size(1, most) * group
    front = (ins, outs // group) if turned else (outs, ins // group)
    return ins, outs, a, (*front, *a["kernel_shape"])


# Operators: each makes a model


def along(m):
    """A shape, an axis of it or None, and the shape of scales for it."""
    shape = m.size(1, 3), m.size(1, 9), m.size(1, 17)
    axis = m.pick(None, 0, 1, 2, -1)
    wide = () if axis is None else tuple(
        shape[i] if i == axis % 3 else 1 for i in range(3))
    return shape, axis, wide


def quantize_linear(m):
    shape, axis, broad = along(m)
    dtype = m.pick("u1", "i1")
    scale, zero = m.scale(shape=broad), np.asarray(
        m.zero(dtype) if axis is None else m.integers(broad, dtype))
    halves = m.random.integers(-300, 300, shape) + 0.5
    x = np.where(m.random.random(shape) < 0.5, halves, m.random.normal(0, 90, shape))
    x = (x * scale).astype("f4")
    x.ravel()[:2] = [np.inf, -np.inf][:x.size]
    flat = [m.constant(v.ravel() if axis is not None else v) for v in (scale, zero)]
    m.node("QuantizeLinear", [m.input(x), *flat], ["y"],
           **({} if axis is None else {"axis": axis}))
    m.want("y", quantised(m, x, scale, zero, dtype))


def dequantize_linear(m):
    shape, axis, broad = along(m)
    dtype = m.pick("u1", "i1", "i4")
    scale = m.scale(shape=broad)
    if dtype == "i4":
        x = m.random.integers(-2**23, 2**23, shape).astype("i4")
        zero = np.zeros(broad, "i4")
    else:
        x, zero = m.integers(shape, dtype), m.integers(broad, dtype)
    flat = [m.constant(v.ravel() if axis is not None else v) for v in (scale, zero)]
    m.node("DequantizeLinear", [m.input(x), *flat], ["y"],
           **({} if axis is None else {"axis": axis}))
    m.want("y", (x.astype("f4") - zero.astype("f4")) * scale)


def dynamic_quantize_linear(m):
    shape = (m.size(1, 3), m.size(1, 9), m.size(2, 17))
    x = m.random.normal(m.pick(0, 3, -3, 0.4), 1, shape).astype("f4")
    if m.exact:  # then many quotients are halves
        x = np.rint(x * 16).astype("f4") / np.float32(32)
        x.ravel()[:2] = 0, 255 / 16
    low, high = np.minimum(x.min(), np.float32(0)), np.maximum(x.max(), np.float32(0))
    scale = (high - low) / np.float32(255)
    zero = np.asarray(np.rint(np.clip((0 - low) / scale, 0, 255)), "u1")
    m.node("DynamicQuantizeLinear", [m.input(x)], ["y", "scale", "zero"])
    m.want("y", quantised(m, x, scale, zero, "u1"))
    m.want("scale", np.asarray(scale))
    m.want("zero", zero)


def conv_integer(m):
    group = m.pick(1, 1, 2, 3)
    ins, _, a, shape = kernels(m, group)
    x = Quantised(m, image(m, ins), m.pick("u1", "i1"))
    w = Quantised(m, shape, "i1", m.pick(0, 0, 5))
    m.node("ConvInteger", [m.input(x.q), m.constant(w.q), m.constant(x.zero),
                           m.constant(w.zero)], ["y"], group=group, **a)
    m.want("y", convolved(x.whole, w.whole, a, group).astype("i4"))


def matrices(m, constant_type=None):
    front = m.pick((), (), (2,), (2, 3))
    rows, depth, columns = m.size(1, 9), m.size(1, 70), m.size(1, 19)
    if m.large:
        rows, depth, columns = m.size(1, 60), m.size(30, 300), m.size(16, 99)
    a = Quantised(m, (*front, rows, depth), m.pick("u1", "i1"))
    b_type = constant_type or m.pick("u1", "i1") if a.q.dtype == "u1" else "i1"
    wide = m.pick((), (columns,))
    b = Quantised(m, (*m.pick((), front), depth, columns), b_type,
                  m.pick(0, 0, 7), m.scale(shape=wide))
    return a, b


def matmul_integer(m):
    a, b = matrices(m)
    m.node("MatMulInteger", [m.input(a.q), m.pick(m.input, m.constant)(b.q),
                             m.constant(a.zero), m.constant(b.zero)], ["y"])
    m.want("y", (a.whole @ b.whole).astype("i4"))


def q_linear(m, op, inputs, sums, scales, more, **attributes):
    """The end of QLinearConv and QLinearMatMul. They have no type but their input's."""
    dtype = inputs[0].q.dtype
    zero, real, m.step = m.zero(dtype), sums * scales, float(np.ravel(scales)[0])
    scale = output_scale(m, real)
    names = []
    for i, t in enumerate(inputs):
        names += [(m.constant if i else m.input)(t.q), m.constant(t.scale),
                  m.constant(np.broadcast_to(t.zero, t.scale.shape) if i else t.zero)]
    m.node(op, [*names, m.constant(scale), m.constant(zero), *more], ["y"], **attributes)
    real = real / scale
    m.want("y", *rounded(m, real, np.abs(real), 5, zero, dtype, m.exact))


def q_linear_conv(m):
    group = m.pick(1, 1, 2, 3)
    ins, outs, a, shape = kernels(m, group)
    x = Quantised(m, image(m, ins), m.pick("u1", "i1"))
    w = Quantised(m, shape, "u1" if x.q.dtype == "u1" and m.size(0, 3) == 0 else "i1",
                  m.pick(0, 0, 0, 5), m.scale(shape=m.pick((), (outs,))))
    sums, more = convolved(x.whole, w.whole, a, group), []
    if m.size(0, 1):
        bias = m.random.integers(-m.bias, m.bias + 1, outs).astype("i4")
        sums, more = sums + bias[:, None, None], [m.constant(bias)]
    scales = float(x.scale) * w.scale.astype("f8").reshape(-1, 1, 1)
    q_linear(m, "QLinearConv", [x, w], sums, scales, more, group=group, **a)


def q_linear_matmul(m):
    a, b = matrices(m)
    while b.q.ndim > 2 and b.scale.ndim:
        a, b = matrices(m)
    q_linear(m, "QLinearMatMul", [a, b], a.whole @ b.whole,
             float(a.scale) * b.scale.astype("f8"), [])


def layer_between(m, op, compute, turned=False):
    """Conv or ConvTranspose of dequantised numbers: its name, reals, magnitudes."""
    group = m.pick(1, 1, 2)
    ins, outs, a, shape = kernels(m, group, turned)
    x = Quantised(m, image(m, ins), m.pick("u1", "i1"))
    many = not turned or group == 1
    scale = m.scale(shape=m.pick((), (outs,)) if many else ())
    w = Quantised(m, shape, "i1", 0, scale)
    w.zero = np.zeros(scale.shape, "i1")
    names = [x.dequantised(m), w.dequantised(
        m, True, **({"axis": 1 if turned else 0} if scale.ndim else {}))]
    factor = float(x.scale) * scale.astype("f8").reshape(-1, 1, 1)
    real, m.step = compute(x.whole, w.whole, a, group) * factor, factor.ravel()[0]
    size = compute(np.abs(x.whole), np.abs(w.whole), a, group) * factor
    if m.size(0, 1):
        b, s = m.random.integers(-m.bias, m.bias + 1, outs).astype("i4"), x.scale * scale
        names.append(m.node("DequantizeLinear", [
            m.constant(b), m.constant(np.asarray(s, "f4"))],
            **({"axis": 0} if scale.ndim else {})))
        bias = (b * s.astype("f8"))[:, None, None]
        real, size = real + bias, size + np.abs(bias)
    name = m.node(op, names, group=group, **a)
    return name, real, size, int(np.prod(shape)) // shape[1 if turned else 0] + 7


def conv(m):
    finish(m, *layer_between(m, "Conv", convolved))


def conv_transpose(m):
    finish(m, *layer_between(m, "ConvTranspose", deconvolved, True))


def residual(m):
    name, real, size, roundings = layer_between(m, "Conv", convolved)
    undecided = False
    if m.size(0, 1):  # the sum is rounded to 8 bits before it is added
        zero, scale, dtype = m.zero("i1"), output_scale(m, real), "i1"
        pair = [m.constant(scale), m.constant(zero)]
        name = m.node("DequantizeLinear",
                      [m.node("QuantizeLinear", [name, *pair]), *pair])
        whole, undecided = rounded(m, real / scale, size / scale, roundings, zero, dtype,
                                   m.exact)
        real = (whole.astype("f8") - zero.astype("f8")) * scale
        size, roundings = np.abs(real), 2
    b = Quantised(m, real.shape, m.pick("u1", "i1"), scale=output_scale(m, real))
    addend = b.whole * float(b.scale)
    name = m.node("Relu", [m.node("Add", [name, b.dequantised(m)])])
    finish(m, name, np.maximum(real + addend, 0), size + np.abs(addend), roundings + 3,
           undecided)


def matmul(m):
    a, b = matrices(m, "i1")
    b.zero = np.zeros(b.scale.shape, "i1")
    b.whole = b.q.astype("f8")
    wide = {"axis": b.q.ndim - 1} if b.scale.ndim else {}
    name = m.node("MatMul", [a.dequantised(m), b.dequantised(m, True, **wide)])
    factor = float(a.scale) * b.scale.astype("f8")
    m.step = factor.ravel()[0]
    finish(m, name, a.whole @ b.whole * factor,
           np.abs(a.whole) @ np.abs(b.whole) * factor, a.q.shape[-1] + 6)


def average_pool(m):
    x, a = Quantised(m, image(m, m.size(1, 20)), m.pick("u1", "i1")), window(m)
    all_of = m.size(0, 1)
    name = m.node("AveragePool", [x.dequantised(m)], count_include_pad=all_of, **a)
    m.step = float(x.scale)
    count = pooled(np.ones(x.q.shape), a, np.sum, all_of)
    real, size = (pooled(v, a, np.sum, 0) * float(x.scale) / count
                  for v in (x.whole, np.abs(x.whole)))
    finish(m, name, real, size, int(count.max()) + 6, exact=False)


def moved(m, name, floats, like):
    """A Quantize of numbers that were only moved: with their scale, or another."""
    dtype, scale, zero = like.q.dtype, like.scale, like.zero
    if m.size(0, 2) == 0:
        dtype = np.dtype(m.pick("u1", "i1"))
        scale, zero = m.scale(), m.zero(dtype)
    m.node("QuantizeLinear", [name, m.constant(scale), m.constant(zero)], ["y"])
    m.want("y", quantised(m, floats, scale, zero, dtype))


def max_pool(m):
    x, a = Quantised(m, image(m, m.size(1, 20)), m.pick("u1", "i1")), window(m)
    moved(m, m.node("MaxPool", [x.dequantised(m)], **a),
          pooled(x.floats(), a, np.max, -np.inf), x)


def concat(m):
    dtype, axis = m.pick("u1", "i1"), m.size(1, 3)
    shape = list(image(m, m.size(1, 20), 1))
    parts = [Quantised(m, shape, dtype)]
    for _ in range(m.size(1, 3)):
        shape = list(shape)
        shape[axis] = m.size(1, 9)
        parts.append(Quantised(m, shape, dtype, *m.pick(
            (), (parts[0].zero, parts[0].scale))))
    name = m.node("Concat", [p.dequantised(m) for p in parts], axis=axis)
    moved(m, name, np.concatenate([p.floats() for p in parts], axis), parts[0])


def resize(m):
    x = Quantised(m, image(m, m.size(1, 20), 1), m.pick("u1", "i1"))
    by = m.size(1, 3), m.size(1, 3)
    times = m.constant(np.array([1, 1, *by], "f4"))
    name = m.node("Resize", [x.dequantised(m), "", times],
                  mode="nearest", coordinate_transformation_mode="asymmetric",
                  nearest_mode="floor")
    moved(m, name, x.floats().repeat(by[0], 2).repeat(by[1], 3), x)


OPERATORS = {
    "QuantizeLinear": quantize_linear, "DequantizeLinear": dequantize_linear,
    "DynamicQuantizeLinear": dynamic_quantize_linear, "ConvInteger": conv_integer,
    "MatMulInteger": matmul_integer, "QLinearConv": q_linear_conv,
    "QLinearMatMul": q_linear_matmul, "DQ Conv Q": conv,
    "DQ Conv Add Relu Q": residual, "DQ ConvTranspose Q": conv_transpose,
    "DQ MatMul Q": matmul, "DQ AveragePool Q": average_pool, "DQ MaxPool Q": max_pool,
    "DQ Concat Q": concat, "DQ Resize Q": resize,
}
