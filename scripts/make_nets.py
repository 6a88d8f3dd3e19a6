#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the networks of bench/nets: public architectures with random weights.

    make_nets.py [-o FOLDER] [NET...]

Writes FOLDER/NET.ini (bench/nets beside this script's folder) for every net, or those
named. The same script writes the same bytes everywhere. Layers have the names of the
implementation that each net's comment refers to. Batch normalisation after a convolution
is folded into it, as in a deployed network; where it comes first it is a Scale.

Needs nothing but Python's standard library.
"""
import os
import sys

from net_writer import Net


# ---- ResNet (He et al., 2015; v1.5) ---------------------------------------------------

def residual(net, name, x, filters, stride, bottleneck, project):
    """Basic block of two 3x3, or a bottleneck whose 3x3 takes the stride (v1.5)."""
    out = 4 * filters if bottleneck else filters
    y = x
    if bottleneck:
        y = net.conv(f"{name}.conv1", y, filters, 1)
        y = net.conv(f"{name}.conv2", y, filters, 3, stride)
        y = net.conv(f"{name}.conv3", y, out, 1, act=None)
    else:
        y = net.conv(f"{name}.conv1", y, filters, 3, stride)
        y = net.conv(f"{name}.conv2", y, out, 3, act=None)
    if project:
        x = net.conv(f"{name}.downsample", x, out, 1, stride, act=None)
    y = net.sum(f"{name}.add", [y, x])
    return net.activation(f"{name}.relu", y)


def resnet_trunk(net, counts, bottleneck):
    """Outputs of the four stages."""
    net.title("stem")
    x = net.conv("conv1", "image", 64, 7, 2)
    x = net.pool("maxpool", x, "max", 3, 2, pad=1)
    stages = []
    for stage, count in enumerate(counts):
        net.title(f"layer{stage + 1}: {count} blocks")
        for block in range(count):
            stride = 2 if stage and not block else 1
            project = not block and (stage or bottleneck)
            x = residual(net, f"layer{stage + 1}.{block}", x, 64 << stage, stride,
                         bottleneck, project)
        stages.append(x)
    return stages


def resnet(depth, counts, bottleneck):
    def make(name):
        stride = ", with the stride in the 3x3 (v1.5)" if bottleneck else ""
        net = Net(name, f"ResNet-{depth}{stride}; torchvision's names.",
                  "3 x 224 x 224", "prob")
        x = resnet_trunk(net, counts, bottleneck)[-1]
        net.classify(x, 1000, "avgpool", "fc")
        return net
    return make


# ---- GoogLeNet (Szegedy et al., 2014) -------------------------------------------------

# 1x1; 1x1 then 3x3; 1x1 then 5x5; 1x1 after the pool.
INCEPTIONS = {
    "3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64), "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64), "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128)}


def inception(net, name, x, sizes):
    one, reduce3, three, reduce5, five, project = sizes
    net.title(name)
    a = net.conv(f"{name}/1x1", x, one, 1)
    b = net.conv(f"{name}/3x3_reduce", x, reduce3, 1)
    b = net.conv(f"{name}/3x3", b, three, 3)
    c = net.conv(f"{name}/5x5_reduce", x, reduce5, 1)
    c = net.conv(f"{name}/5x5", c, five, 5)
    d = net.pool(f"{name}/pool", x, "max", 3, 1, pad=1)
    d = net.conv(f"{name}/pool_proj", d, project, 1)
    return net.concat(f"{name}/output", [a, b, c, d])


def googlenet(name):
    net = Net(name, "GoogLeNet without its auxiliary classifiers and its two response\n"
              "normalisations; Caffe's names.", "3 x 224 x 224", "prob")
    net.title("stem")
    x = net.conv("conv1/7x7_s2", "image", 64, 7, 2)
    x = net.pool("pool1/3x3_s2", x, "max", 3, 2, ceil=True)
    x = net.conv("conv2/3x3_reduce", x, 64, 1)
    x = net.conv("conv2/3x3", x, 192, 3)
    x = net.pool("pool2/3x3_s2", x, "max", 3, 2, ceil=True)
    for block, sizes in INCEPTIONS.items():
        x = inception(net, f"inception_{block}", x, sizes)
        if block in ("3b", "4e"):
            x = net.pool(f"pool{int(block[0])}/3x3_s2", x, "max", 3, 2, ceil=True)
    net.classify(x, 1000, "pool5/7x7_s1", "loss3/classifier")
    return net


# ---- Inception v3 (Szegedy et al., 2015) ----------------------------------------------

def chain(net, name, x, *steps):
    """Convolutions one after another: (suffix, filters, kernel[, stride, pad])."""
    for suffix, *arguments in steps:
        x = net.conv(f"{name}{suffix}", x, *arguments)
    return x


def inception_a(net, name, x, pool_filters):
    p = f"{name}.branch"
    a = net.conv(f"{p}1x1", x, 64, 1)
    b = chain(net, f"{p}5x5", x, ("_1", 48, 1), ("_2", 64, 5))
    c = chain(net, f"{p}3x3dbl", x, ("_1", 64, 1), ("_2", 96, 3), ("_3", 96, 3))
    d = net.pool(f"{name}.pool", x, "average", 3, 1, pad=1)
    d = net.conv(f"{p}_pool", d, pool_filters, 1)
    return net.concat(f"{name}.concat", [a, b, c, d])


def inception_b(net, name, x):
    p = f"{name}.branch"
    a = net.conv(f"{p}3x3", x, 384, 3, 2, 0)
    b = chain(net, f"{p}3x3dbl", x, ("_1", 64, 1), ("_2", 96, 3), ("_3", 96, 3, 2, 0))
    c = net.pool(f"{name}.pool", x, "max", 3, 2)
    return net.concat(f"{name}.concat", [a, b, c])


def inception_c(net, name, x, c7):
    row, column, p = (1, 7), (7, 1), f"{name}.branch"
    a = net.conv(f"{p}1x1", x, 192, 1)
    b = chain(net, f"{p}7x7", x, ("_1", c7, 1), ("_2", c7, row), ("_3", 192, column))
    c = chain(net, f"{p}7x7dbl", x, ("_1", c7, 1), ("_2", c7, column), ("_3", c7, row),
              ("_4", c7, column), ("_5", 192, row))
    d = net.pool(f"{name}.pool", x, "average", 3, 1, pad=1)
    d = net.conv(f"{p}_pool", d, 192, 1)
    return net.concat(f"{name}.concat", [a, b, c, d])


def inception_d(net, name, x):
    p = f"{name}.branch"
    a = chain(net, f"{p}3x3", x, ("_1", 192, 1), ("_2", 320, 3, 2, 0))
    b = chain(net, f"{p}7x7x3", x, ("_1", 192, 1), ("_2", 192, (1, 7)),
              ("_3", 192, (7, 1)), ("_4", 192, 3, 2, 0))
    c = net.pool(f"{name}.pool", x, "max", 3, 2)
    return net.concat(f"{name}.concat", [a, b, c])


def inception_e(net, name, x):
    p = f"{name}.branch"
    a = net.conv(f"{p}1x1", x, 320, 1)
    b = net.conv(f"{p}3x3_1", x, 384, 1)
    b = [net.conv(f"{p}3x3_2a", b, 384, (1, 3)), net.conv(f"{p}3x3_2b", b, 384, (3, 1))]
    c = chain(net, f"{p}3x3dbl", x, ("_1", 448, 1), ("_2", 384, 3))
    c = [net.conv(f"{p}3x3dbl_3a", c, 384, (1, 3)),
         net.conv(f"{p}3x3dbl_3b", c, 384, (3, 1))]
    d = net.pool(f"{name}.pool", x, "average", 3, 1, pad=1)
    d = net.conv(f"{p}_pool", d, 192, 1)
    return net.concat(f"{name}.concat", [a, *b, *c, d])


def inception_v3(name):
    net = Net(name, "Inception v3 without its auxiliary classifier; torchvision's names.",
              "3 x 299 x 299", "prob")
    net.title("stem")
    x = chain(net, "Conv2d_", "image", ("1a_3x3", 32, 3, 2, 0), ("2a_3x3", 32, 3, 1, 0),
              ("2b_3x3", 64, 3))
    x = net.pool("maxpool1", x, "max", 3, 2)
    x = chain(net, "Conv2d_", x, ("3b_1x1", 80, 1), ("4a_3x3", 192, 3, 1, 0))
    x = net.pool("maxpool2", x, "max", 3, 2)
    blocks = {"5b": (inception_a, 32), "5c": (inception_a, 64), "5d": (inception_a, 64),
              "6a": (inception_b,), "6b": (inception_c, 128), "6c": (inception_c, 160),
              "6d": (inception_c, 160), "6e": (inception_c, 192), "7a": (inception_d,),
              "7b": (inception_e,), "7c": (inception_e,)}
    for block, (make, *arguments) in blocks.items():
        net.title(f"Mixed_{block}")
        x = make(net, f"Mixed_{block}", x, *arguments)
    net.classify(x, 1000, "avgpool", "fc")
    return net


# ---- DenseNet (Huang et al., 2016) ----------------------------------------------------

def normalised(net, name, x):
    """Batch normalisation that no convolution before it can take, and ReLU."""
    x = net.add("Scale", name, x, mode="channel", scale="w", shift="w")
    return net.activation(f"{name}.relu", x)


def dense_block(net, name, x, layers, running):
    """Each layer adds 32 channels to all before it. `features` are concatenated anew for
    each layer (n-ary), or the last concatenation grows by one (running)."""
    features = [x]
    for i in range(1, layers + 1):
        layer = f"{name}.denselayer{i}"
        y = normalised(net, f"{layer}.norm1", x)
        y = net.conv(f"{layer}.conv1", y, 128, 1)
        y = net.conv(f"{layer}.conv2", y, 32, 3, act=None)
        features = [x, y] if running else features + [y]
        x = net.concat(f"{layer}.concat", features)
    return x


def densenet121(running):
    def make(name):
        how = "grows by one part a layer" if running else "is made anew for each layer"
        net = Net(name, f"DenseNet-121 whose concatenation {how}; torchvision's names.\n"
                  "norm1 reads a concatenation, so that it stays a layer.",
                  "3 x 224 x 224", "prob")
        net.title("stem")
        x = net.conv("conv0", "image", 64, 7, 2)
        x = net.pool("pool0", x, "max", 3, 2, pad=1)
        channels = 64
        for block, layers in enumerate((6, 12, 24, 16), 1):
            net.title(f"denseblock{block}: {layers} layers")
            x = dense_block(net, f"denseblock{block}", x, layers, running)
            channels += 32 * layers
            if block < 4:
                channels //= 2
                net.title(f"transition{block}")
                x = normalised(net, f"transition{block}.norm", x)
                x = net.conv(f"transition{block}.conv", x, channels, 1, act=None)
                x = net.pool(f"transition{block}.pool", x, "average", 2, 2)
        x = normalised(net, "norm5", x)
        net.classify(x, 1000, "avgpool", "classifier")
        return net
    return make


# ---- U-Net (Ronneberger et al., 2015) and U-Net++ (Zhou et al., 2018) -----------------

def double_conv(net, name, x, filters):
    x = net.conv(f"{name}.conv1", x, filters, 3)
    return net.conv(f"{name}.conv2", x, filters, 3)


def unet(name):
    net = Net(name, "U-Net with padded convolutions. An up-convolution is an upsampling\n"
              "by 2 and a 2x2 convolution, as its paper says.", "3 x 256 x 256", "prob")
    x, skips = "image", []
    for level in range(5):
        net.title(f"down{level}")
        if level:
            x = net.pool(f"down{level}.pool", x, "max", 2, 2)
        x = double_conv(net, f"down{level}", x, 64 << level)
        skips.append(x)
    for level in reversed(range(4)):
        net.title(f"up{level}")
        x = net.upsample(f"up{level}.upsample", x)
        x = net.conv(f"up{level}.upconv", x, 64 << level, 2, pad_mode="same_upper",
                     act=None)
        x = net.concat(f"up{level}.concat", [skips[level], x])
        x = double_conv(net, f"up{level}", x, 64 << level)
    net.title("classifier of each pixel")
    x = net.conv("final", x, 2, 1, act=None)
    net.add("Softmax", "prob", x, axis=1)
    return net


def unetpp(name):
    net = Net(name, "U-Net++: xI_J reads all xI_* before it and the last of level I+1.\n"
              "Bilinear upsampling, no deep supervision.", "3 x 256 x 256", "prob")
    columns = {}
    for total in range(5):
        for j in range(total + 1):
            level = total - j
            block = f"x{level}_{j}"
            net.title(block)
            if j:
                up = net.upsample(f"{block}.upsample", columns[level + 1][-1], "bilinear",
                                  "align_corners")
                x = net.concat(f"{block}.concat", columns[level] + [up])
            elif level:
                x = net.pool(f"{block}.pool", columns[level - 1][0], "max", 2, 2)
            else:
                x = "image"
            x = double_conv(net, block, x, 32 << level)
            columns.setdefault(level, []).append(x)
    net.title("classifier of each pixel")
    x = net.conv("final", x, 1, 1, act=None)
    net.activation("prob", x, "sigmoid")
    return net


# ---- MobileNet v2 (Sandler et al., 2018) ----------------------------------------------

def inverted_residual(net, name, x, channels, filters, stride, expand):
    y = x
    if expand != 1:
        y = net.conv(f"{name}.expand", y, channels * expand, 1, act="relu6")
    y = net.conv(f"{name}.depthwise", y, channels * expand, 3, stride,
                 groups=channels * expand, act="relu6")
    y = net.conv(f"{name}.project", y, filters, 1, act=None)
    return net.sum(f"{name}.add", [x, y]) if stride == 1 and channels == filters else y


def mobilenet_v2(name):
    net = Net(name, "MobileNet v2, width 1.0; numbered as in torchvision.",
              "3 x 224 x 224", "prob")
    net.title("stem")
    x = net.conv("features.0", "image", 32, 3, 2, act="relu6")
    channels, number = 32, 1
    for expand, filters, count, stride in (
            (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
            (6, 160, 3, 2), (6, 320, 1, 1)):
        net.title(f"{count} x {filters} channels")
        for i in range(count):
            x = inverted_residual(net, f"features.{number}", x, channels, filters,
                                  stride if i == 0 else 1, expand)
            channels, number = filters, number + 1
    x = net.conv(f"features.{number}", x, 1280, 1, act="relu6")
    net.classify(x, 1000, "avgpool", "classifier")
    return net


# ---- EfficientNet-B0 (Tan and Le, 2019) ------------------------------------------------

def squeeze_excite(net, name, x, channels, squeezed):
    """A factor for each channel, by two dense layers of the channels' means."""
    y = net.global_pool(f"{name}.avgpool", x)
    y = net.conv(f"{name}.fc1", y, squeezed, 1, act="silu")
    y = net.conv(f"{name}.fc2", y, channels, 1, act="sigmoid")
    return net.add("ElementWise", f"{name}.scale", [x, y], op="product")


def mobile_block(net, name, x, channels, filters, kernel, stride, expand):
    y, wide = x, channels * expand
    if expand != 1:
        y = net.conv(f"{name}.expand", y, wide, 1, act="silu")
    y = net.conv(f"{name}.depthwise", y, wide, kernel, stride, groups=wide, act="silu")
    y = squeeze_excite(net, f"{name}.se", y, wide, channels // 4)
    y = net.conv(f"{name}.project", y, filters, 1, act=None)
    return net.sum(f"{name}.add", [x, y]) if stride == 1 and channels == filters else y


def efficientnet_b0(name):
    net = Net(name, "EfficientNet-B0; stages and blocks numbered as in torchvision.",
              "3 x 224 x 224", "prob")
    net.title("stem")
    x = net.conv("features.0", "image", 32, 3, 2, act="silu")
    channels = 32
    for stage, (expand, kernel, stride, filters, count) in enumerate((
            (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3),
            (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)), 1):
        net.title(f"{count} x {filters} channels")
        for i in range(count):
            x = mobile_block(net, f"features.{stage}.{i}", x, channels, filters, kernel,
                             stride if i == 0 else 1, expand)
            channels = filters
    x = net.conv("features.8", x, 1280, 1, act="silu")
    net.classify(x, 1000, "avgpool", "classifier")
    return net


# ---- Detector: SSD heads (Liu et al., 2015) on FPN (Lin et al., 2016) -----------------

ANCHORS, CLASSES = 6, 21


def feature_pyramid(net, stages):
    """p3 to p5 top down, p6 and p7 below c5, 256 channels each."""
    levels, above = {}, None
    for level in (5, 4, 3):
        net.title(f"p{level}")
        x = net.conv(f"fpn.inner{level}", stages[level - 2], 256, 1, act=None)
        if above:
            up = net.upsample(f"fpn.upsample{level}", above)
            x = net.sum(f"fpn.add{level}", [x, up])
        above = x
        levels[level] = net.conv(f"fpn.p{level}", x, 256, 3, act=None)
    net.title("p6, p7")
    levels[6] = net.conv("fpn.p6", stages[3], 256, 3, 2, act=None)
    x = net.activation("fpn.p6.relu", levels[6])
    levels[7] = net.conv("fpn.p7", x, 256, 3, 2, act=None)
    return levels


def head(net, name, x, values):
    """`values` numbers for each anchor: (N, cells * anchors, values)."""
    x = net.conv(name, x, ANCHORS * values, 3, act=None)
    return net.add("Shuffle", f"{name}.flat", x, first="0, 2, 3, 1",
                   shape=f"0, -1, {values}")


def ssd_fpn(name):
    net = Net(name, "Detector in the manner of SSD: ResNet-50, a feature pyramid of\n"
              "strides 8 to 128, and on each level a 3x3 head for the scores of\n"
              f"{CLASSES} classes and one for the boxes of {ANCHORS} anchors a cell.",
              "3 x 512 x 512", "scores, boxes")
    stages = resnet_trunk(net, (3, 4, 6, 3), True)
    levels = feature_pyramid(net, stages)
    scores, boxes = [], []
    for level in range(3, 8):
        net.title(f"heads of p{level}")
        scores.append(head(net, f"scores{level}", levels[level], CLASSES))
        boxes.append(head(net, f"boxes{level}", levels[level], 4))
    net.title("all levels together")
    net.concat("boxes", boxes)
    x = net.concat("logits", scores)
    net.add("Softmax", "scores", x, axis=2)
    return net


NETS = {
    "resnet18": resnet(18, (2, 2, 2, 2), False),
    "resnet50": resnet(50, (3, 4, 6, 3), True),
    "resnet152": resnet(152, (3, 8, 36, 3), True),
    "googlenet": googlenet,
    "inception_v3": inception_v3,
    "densenet121": densenet121(running=False),
    "densenet121_running": densenet121(running=True),
    "unet": unet,
    "unetpp": unetpp,
    "mobilenet_v2": mobilenet_v2,
    "efficientnet_b0": efficientnet_b0,
    "ssd_fpn": ssd_fpn,
}


def main(arguments):
    here = os.path.dirname(os.path.abspath(__file__))
    folder = os.path.join(os.path.dirname(here), "bench", "nets")
    if arguments[:1] == ["-o"] and len(arguments) > 1:
        folder, arguments = arguments[1], arguments[2:]
    unknown = [name for name in arguments if name not in NETS]
    if unknown:
        print(__doc__.strip(), file=sys.stderr)
        print(f"\nmake_nets.py: no net '{unknown[0]}'; there are {', '.join(NETS)}",
              file=sys.stderr)
        return 2
    try:
        os.makedirs(folder, exist_ok=True)
        for name in arguments or NETS:
            path = os.path.join(folder, f"{name}.ini")
            with open(path, "w", encoding="ascii", newline="\n") as f:
                f.write(NETS[name](name).text())
    except OSError as e:
        print(f"make_nets.py: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
