# SPDX-License-Identifier: Apache-2.0
"""One layer at three sizes each, as a section of an INI file and as a node of ONNX."""
import numpy as np

INDEX = np.int64


class Case:
    """inputs: name -> (shape, dtype or (dtype, below)) or the values themselves;
    weights: name -> shape of random floats, or values. The INI names a weight as w:NAME;
    the node has all inputs, then all weights, or the other way round. tolerance: of the
    largest value; an element that is rounded to its neighbour differs by more than 1."""

    def __init__(self, name, layer, node, inputs, weights=(), attributes=(),
                 opset=22, outputs=1, weights_first=False, tolerance=1e-4):
        self.name, self.layer, self.node = name, layer, node
        self.title = name.rsplit(" ", 1)[0]
        self.inputs = {f"x{i}": x for i, x in enumerate(inputs)}
        self.weights, self.attributes = dict(weights), dict(attributes)
        self.opset, self.outputs = opset, outputs
        self.weights_first, self.tolerance = weights_first, tolerance

    def arrays(self):
        """The values of inputs and weights, the same at every call."""
        random = np.random.Generator(np.random.PCG64(1))

        def values(x):
            if isinstance(x, np.ndarray):
                return x
            shape, dtype = x if isinstance(x[0], tuple) else (x, "f4")
            dtype, below = dtype if isinstance(dtype, tuple) else (dtype, 2)
            if dtype == "f4":
                return random.uniform(-1, 1, shape).astype("f4")
            return random.integers(0, below, shape).astype(dtype)
        return ({n: values(x) for n, x in self.inputs.items()},
                {n: values(x) for n, x in self.weights.items()})


def ints(*x):
    return np.array(x, INDEX)


def permuted(n, c, below):
    """Rows of c indices below `below`, none twice in a row."""
    random = np.random.Generator(np.random.PCG64(2))
    return np.stack([random.permutation(below)[:c] for _ in range(n)]).astype(INDEX)


def pointwise(add, n, c):
    x = (n, c)
    for op in ("Exp", "Log", "Sqrt", "Sin", "Tanh", "Erf", "Abs", "Floor"):
        at = (np.abs(np.random.Generator(np.random.PCG64(1)).uniform(0.1, 2, x)
                     ).astype("f4"),) if op in ("Log", "Sqrt") else (x,)
        add(op.lower(), f"type = Unary; op = {op.lower()}", op, *at)
    for kind, op in (("relu", "Relu"), ("sigmoid", "Sigmoid"), ("gelu", "Gelu"),
                     ("elu", "Elu"), ("softplus", "Softplus"), ("mish", "Mish"),
                     ("hard_swish", "HardSwish")):
        add(kind, f"type = Activation; kind = {kind}", op, x)
    add("gelu_tanh", "type = Activation; kind = gelu_tanh", "Gelu", x, approximate="tanh")
    add("add", "type = ElementWise", "Add", x, x)
    add("add of a row", "type = ElementWise", "Add", x, (c,))
    add("add of a column", "type = ElementWise", "Add", x, (n, 1))
    add("div", "type = ElementWise; op = div", "Div", x, x)
    add("max", "type = ElementWise; op = max", "Max", x, x)
    add("less", "type = Compare; op = less", "Less", x, x)
    add("select", "type = Select", "Where", (x, "?"), x, x)
    add("prelu", "type = ParametricReLU; slope = w:s", "PRelu", x, weights={"s": (c,)})
    add("cast to i32", "type = Cast; to = i32", "Cast", x, to=6)
    add("cast of i64", "type = Cast; to = fp32", "Cast", (x, ("i8", 100)), to=1)
    scale = {"s": np.array(0.01, "f4"), "z": np.array(128, "u1")}
    add("quantize", "type = Quantize; scale = w:s; zero = w:z", "QuantizeLinear", x,
        weights=scale, tolerance=1 / 128)
    add("dequantize", "type = Dequantize; scale = w:s; zero = w:z", "DequantizeLinear",
        (x, ("u1", 256)), weights=scale)


def lines(add, n, c):
    x, axis = (n, c), {"axes": ints(1)}
    scale = {"n.scale": (c,), "n.bias": (c,)}
    add("layer norm", "type = Normalization; kind = layer; scale = w:n.scale; "
        "bias = w:n.bias", "LayerNormalization", x, weights=scale)
    add("rms norm", "type = Normalization; kind = rms; scale = w:n.scale",
        "RMSNormalization", x, weights={"n.scale": (c,)}, opset=23)
    add("lp norm", "type = Normalization; kind = lp; axis = 1", "LpNormalization", x)
    add("softmax", "type = Softmax; axis = 1", "Softmax", x, axis=1)
    add("log softmax", "type = Softmax; axis = 1; log = yes", "LogSoftmax", x, axis=1)
    add("softmax of columns", "type = Softmax; axis = 0", "Softmax", x, axis=0)
    add("row sum", "type = Reduce; op = sum; axes = 1", "ReduceSum", x, weights=axis)
    add("row max", "type = Reduce; op = max; axes = 1", "ReduceMax", x, weights=axis)
    add("row l2", "type = Reduce; op = l2; axes = 1", "ReduceL2", x, weights=axis)
    add("row log_sum_exp", "type = Reduce; op = log_sum_exp; axes = 1", "ReduceLogSumExp",
        x, weights=axis)
    add("column mean", "type = Reduce; op = mean; axes = 0", "ReduceMean", x,
        weights={"axes": ints(0)})
    add("argmax", "type = ArgMax; axis = 1", "ArgMax", x, axis=1)
    add("top 10", "type = TopK; k = 10", "TopK", x, weights={"k": ints(10)}, outputs=2)
    add("cumsum", "type = CumSum; axis = 1", "CumSum", x,
        weights={"axis": np.array(1, INDEX)})
    add("cumsum of columns", "type = CumSum; axis = 0", "CumSum", x,
        weights={"axis": np.array(0, INDEX)})


def moves(add, n, c):
    x, half = (n, c), c // 2
    rows = max(n, min(8192, 4 * n))
    add("gather", "type = Gather", "Gather", (rows, c),
        ((n,), ("i8", rows)))
    add("gather elements", "type = Gather; mode = elements; axis = 1", "GatherElements",
        x, (x, ("i8", c)), axis=1)
    add("gather nd", "type = Gather; mode = nd", "GatherND", (rows, c),
        ((n, 1), ("i8", rows)))
    add("embedding", "type = Embedding; table = w:t", "Gather",
        ((n,), ("i8", rows)), weights={"t": (rows, c)}, weights_first=True)
    add("scatter elements", "type = Scatter; mode = elements; axis = 1",
        "ScatterElements", x, permuted(n, half, c), (n, half), axis=1)
    add("scatter nd", "type = Scatter; mode = nd", "ScatterND", x,
        permuted(1, n // 2, n).T.copy(), (n // 2, c))
    add("expand", f"type = Expand; shape = {n}x{c}", "Expand", (n, 1),
        weights={"shape": ints(n, c)})
    add("tile", "type = Expand; repeats = 1, 2", "Tile", (n, half),
        weights={"repeats": ints(1, 2)})
    add("triangle", "type = Triangle", "Trilu", x)
    add("concatenation", "type = Concatenation", "Concat", (n, half), (n, half), axis=1)
    add("slice", f"type = Slice; axes = 1; begin = 1; end = {c - 1}", "Slice", x,
        weights={"b": ints(1), "e": ints(c - 1), "a": ints(1)})
    add("transpose", "type = Shuffle; first = 1, 0", "Transpose", x, perm=[1, 0])
    add("reverse sequence", "type = ReverseSequence; batch_axis = 0; time_axis = 1",
        "ReverseSequence", x, ((n,), ("i8", c)), batch_axis=0, time_axis=1)


def images(add, n, c, s):
    x, channel = (n, c, s, s), {"n.scale": (c,), "n.bias": (c,)}
    given = "scale = w:n.scale; bias = w:n.bias"
    add("group norm", f"type = Normalization; kind = group; groups = 8; {given}",
        "GroupNormalization", x, weights=channel, num_groups=8)
    add("instance norm", f"type = Normalization; kind = instance; {given}",
        "InstanceNormalization", x, weights=channel)
    add("batch norm", f"type = Normalization; kind = batch; {given}; mean = w:n.mean; "
        "variance = w:n.var", "BatchNormalization", x,
        weights={**channel, "n.mean": (c,),
                 "n.var": np.linspace(0.5, 2, c, dtype="f4")})
    add("LRN", "type = LRN; size = 5", "LRN", x, size=5)
    add("mean of planes", "type = Reduce; op = mean; axes = 2, 3", "ReduceMean", x,
        weights={"axes": ints(2, 3)})
    add("add of channels", "type = ElementWise", "Add", x, (1, c, 1, 1))
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    for kind, op in (("max", "MaxPool"), ("average", "AveragePool")):
        add(f"{kind} pooling 3/2", f"type = Pooling; kind = {kind}; kernel = 3; "
            "stride = 2; pad = 1", op, x, **window)
    add("max pooling 2/2", "type = Pooling; kernel = 2; stride = 2", "MaxPool", x,
        kernel_shape=[2, 2], strides=[2, 2])
    add("lp pooling 2/2", "type = Pooling; kind = lp; kernel = 2; stride = 2", "LpPool",
        x, kernel_shape=[2, 2], strides=[2, 2])
    add("global average", "type = Pooling; kind = average; global = yes",
        "GlobalAveragePool", x)
    place = np.arange(n * c * s * s, dtype=INDEX).reshape(n, c, s, s)
    add("max unpool", "type = MaxUnpool; kernel = 2; stride = 2", "MaxUnpool", x,
        4 * (place // s) * s + 2 * (place % s), kernel_shape=[2, 2], strides=[2, 2])
    for mode in ("reflect", "edge", "wrap", "constant"):
        add(f"pad {mode}", f"type = Padding; mode = {mode}; begin = 2, 2; end = 2, 2",
            "Pad", x, weights={"pads": ints(0, 0, 2, 2, 0, 0, 2, 2)}, mode=mode)
    twice = {"roi": np.zeros(0, "f4"), "scales": np.array([1, 1, 2, 2], "f4")}
    add("resize x2 nearest", "type = Resize; scale = 2; coordinates = asymmetric",
        "Resize", x, weights=twice, mode="nearest", nearest_mode="floor",
        coordinate_transformation_mode="asymmetric")
    add("resize x2 linear", "type = Resize; mode = linear; scale = 2", "Resize", x,
        weights=twice, mode="linear")
    add("resize x2 cubic", "type = Resize; mode = cubic; scale = 2", "Resize", x,
        weights=twice, mode="cubic")
    for mode in ("linear", "nearest", "cubic"):
        add(f"grid sample {mode}", f"type = GridSample; mode = {mode}", "GridSample", x,
            (n, s, s, 2), tolerance=4 if mode == "nearest" else 1e-4, mode=mode)
    corner = np.random.Generator(np.random.PCG64(3)).uniform(0, s / 2, (16, 2))
    regions = np.concatenate([corner, corner + s / 3], 1).astype("f4")
    add("RoI align 16 of 7x7", "type = RoiAlign; size = 7; sampling = 2", "RoiAlign", x,
        regions, ((16,), ("i8", n)), output_height=7, output_width=7, sampling_ratio=2,
        opset=16)
    add("transpose to channels-last", "type = Shuffle; first = 0, 2, 3, 1", "Transpose",
        x, perm=[0, 2, 3, 1])
    add("concatenation of channels", "type = Concatenation", "Concat", x, x, axis=1)


def products(add, n, c, s):
    x = (n, c, s, s)
    add("convolution 3x3", "type = Convolution; pad = 1; weight = w:w", "Conv", x,
        weights={"w": (c, c, 3, 3)}, pads=[1] * 4)
    add("convolution 1x1", "type = Convolution; weight = w:w", "Conv", x,
        weights={"w": (c, c, 1, 1)})
    add("depthwise 3x3", "type = Convolution; pad = 1; weight = w:w; groups = %d" % c,
        "Conv", x, weights={"w": (c, 1, 3, 3)}, pads=[1] * 4, group=c)
    for k, pad in ((2, 0), (4, 1)):
        add(f"deconvolution {k}x{k}/2", f"type = Deconvolution; stride = 2; pad = {pad}; "
            "weight = w:w", "ConvTranspose", x, weights={"w": (c, c // 2, k, k)},
            strides=[2, 2], pads=[pad] * 4)


def recurrent(add, n, h):
    random = np.random.Generator(np.random.PCG64(5))

    def weights(gates):
        rows = gates * h
        return {f"{gates}.{name}": random.uniform(-1, 1, shape).astype("f4") / h ** 0.5
                for name, shape in (("W", (1, rows, h)), ("R", (1, rows, h)),
                                    ("B", (1, 2 * rows)))}

    for op, gates, given in (("LSTM", 4, {}), ("GRU", 3, {"linear_before_reset": 1})):
        add(op, f"type = RNN; op = {op.lower()}; split_directions = yes; "
            f"w = w:{gates}.W; r = w:{gates}.R; b = w:{gates}.B", op, (50, n, h),
            weights=weights(gates), hidden_size=h, **given)


def cases():
    """All, small to large within a layer."""
    rows = []

    def adder(text):
        def add(name, layer, node, *inputs, weights=(), opset=22, outputs=1,
                weights_first=False, tolerance=1e-4, **attributes):
            rows.append(Case(f"{name} {text}", layer, node, inputs, weights, attributes,
                             opset, outputs, weights_first, tolerance))
        return add

    for n, c in ((16, 64), (512, 512), (4096, 4096)):
        for group in (pointwise, lines, moves):
            group(adder(f"{n}x{c}"), n, c)
    for n, c, s in ((1, 16, 14), (1, 64, 56), (8, 64, 112)):
        for group in (images, products):
            group(adder(f"{n}x{c}x{s}x{s}"), n, c, s)
    for d in (8, 16, 28):
        adder(f"1x16x{d}x{d}x{d}")(
            "convolution 3x3x3", "type = Convolution; pad = 1; weight = w:w", "Conv",
            (1, 16, d, d, d), weights={"w": (32, 16, 3, 3, 3)}, pads=[1] * 6)
    for m, n, k in ((1, 4096, 1024), (128, 3072, 768), (1024, 1024, 1024)):
        add = adder(f"{m}x{n}x{k}")
        add("product", "type = MatrixMultiply; b = w:b", "MatMul", (m, k),
            weights={"b": (k, n)})
        add("fully connected", "type = FullyConnected; weight = w:w; bias = w:b", "Gemm",
            (m, k), weights={"w": (n, k), "b": (n,)}, transB=1)
    for n, h in ((1, 64), (8, 64), (1, 256), (8, 256)):
        recurrent(adder(f"50x{n}x{h}"), n, h)
    for b, m, k in ((2, 32, 16), (12, 128, 64), (96, 256, 64)):
        adder(f"{b}x{m}x{m}x{k}")("product of two", "type = MatrixMultiply", "MatMul",
                                  (b, m, k), (b, k, m))
    for boxes in (50, 500, 5000):
        at = np.random.Generator(np.random.PCG64(4)).uniform(0, 1, (1, boxes, 2))
        adder(str(boxes))(
            "non-max suppression", "type = NonMaxSuppression; max_output = 50; iou = 0.5",
            "NonMaxSuppression", np.concatenate([at, at + 0.1], 2).astype("f4"),
            (1, 1, boxes), weights={"m": ints(50), "i": np.array([0.5], "f4")})
    seen = {}
    for row in rows:  # sorted is stable: the sizes of a layer stay in order
        seen.setdefault(row.title, len(seen))
    return sorted(rows, key=lambda row: seen[row.title])
