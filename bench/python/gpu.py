# SPDX-License-Identifier: Apache-2.0
"""Python on a GPU: what a call costs over C, what stays behind, and images through the
pipeline of examples/python against `strata bench`.

    python bench/python/gpu.py FOLDER [--calls PROGRAM] [--seconds S] [--rounds N]
                                       [--only PART,...]

FOLDER keeps the engines, which are built where they are missing. PROGRAM is bench/calls.
The package `strata` and its CUDA plugins must be there, NumPy, PyTorch, and Pillow for the
row of JPEG files. What is compared is measured in turns; medians.
"""
import argparse
import gc
import io
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
RELU = ("[network]\nformat = 1\noutputs = y\n[input x]\nshape = 1 x 64\n"
        "[layer y]\ntype = Activation\nkind = relu\n")
PIXELS = """[input pixels]
shape = ${batch} x 3 x 224 x 224
dtype = u8
format = u8:nhwc

[layer image]
type = Cast
to = fp16
"""
FAST = {"build.precision": "fp16", "build.math": "tensor_op"}
DEVICE = "cuda:0"


def row(text, value, unit, bound="", met=None):
    verdict = "" if met is None else "met" if met else "NOT MET"
    print(f"| {text:64} | {value:12,.3f} {unit:9} | {bound:8} | {verdict:7} |", flush=True)


class Engines(dict):
    """Paths by name; each is built when it is first wanted."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        resnet = (TOP / "bench/nets/resnet50.ini").read_text()
        image = resnet[resnet.index("[input image]"):resnet.index("[weights")]
        self.texts = {"relu": (RELU, {}, {}), "resnet50": (resnet, FAST, {"batch": 1}),
                      # with pixels as files have them
                      "pixels": (resnet.replace(image, PIXELS + "\n"), FAST, {"batch": 32})}

    def __missing__(self, name):
        import strata
        path, (text, options, define) = self.folder / f"{name}.engine", self.texts[name]
        if not path.exists():
            begin = time.perf_counter()
            strata.build(text=text, save=path, device=DEVICE, set=options, define=define)
            print(f"# {name} built in {time.perf_counter() - begin:.1f} s", flush=True)
        self[name] = path
        return path


def microseconds(call, calls):
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls * 1e6


def over_c(engine, program, calls, rounds):
    """Medians of session.run() and of strata_context_run, in turns."""
    import strata
    session = strata.load(engine, device=DEVICE).session()
    microseconds(session.run, 50)
    ours, theirs = [], []
    for _ in range(rounds):
        ours += [microseconds(session.run, calls) for _ in range(5)]
        out = subprocess.run([program, engine, str(calls), "5", DEVICE], check=True,
                             capture_output=True, text=True).stdout
        theirs += [float(line.split()[2]) for line in out.splitlines()
                   if line.startswith("run, here")]
    return statistics.median(ours), statistics.median(theirs)


def calls(paths, options):
    if not options.calls:
        print("# no --calls: not compared with C")
        return
    for name, count in (("relu", 2000), ("resnet50", 300)):
        python, c = over_c(paths[name], options.calls, count, options.rounds)
        row(f"{name}: session.run()", python, "us")
        row(f"{name}: strata_context_run from C", c, "us")
        row(f"{name}: over C", python - c, "us", "<= 1", python - c <= 1)
        if name == "resnet50":
            row(f"{name}: over C", 100 * (python - c) / c, "%", "<= 1", python <= 1.01 * c)


def tensors(paths, options):
    import strata
    import torch
    net = strata.load(paths["relu"], device=DEVICE)
    x = torch.linspace(-1, 1, 64, device="cuda").reshape(1, 64)
    x_own = net(x).y
    for name, call in {"net(x).y, x on the GPU": lambda: net(x).y,
                       "net(a strata.Tensor).y": lambda: net(x_own).y,
                       "torch.from_dlpack(net(x).y)": lambda: torch.from_dlpack(net(x).y),
                       "torch.relu(x), and wait": lambda: (torch.relu(x),
                                                           torch.cuda.synchronize())}.items():
        microseconds(call, 200)
        row(f"relu: {name}",
            statistics.median(microseconds(call, 1000) for _ in range(9)), "us")


def leaks(paths, options):
    import strata
    import torch
    net = strata.load(paths["relu"], device=DEVICE)
    x = torch.zeros(1, 64, device="cuda")

    def measured(times):
        for _ in range(times):
            torch.from_dlpack(net(x).y)
        gc.collect()
        torch.cuda.synchronize()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return torch.cuda.mem_get_info()[0], pages * os.sysconf("SC_PAGESIZE")
    before = measured(2000)
    copied = net.stats()["copied_in"]
    after = measured(100000)
    device, host = before[0] - after[0], after[1] - before[1]
    row("100,000 calls: more of the GPU's memory", device / 1024, "KiB", "flat", device <= 0)
    row("100,000 calls: more resident", host / 1024, "KiB", "flat", host < 1 << 20)
    copied = net.stats()["copied_in"] - copied + net.stats()["copied_out"]
    row("of these, copied", copied, "bytes", "0", copied == 0)


def importing(paths, options):
    code = ("import time; t = time.perf_counter(); import strata; print((time.perf_counter() -"
            " t) * 1e3, any('libcuda' in line for line in open('/proc/self/maps')))")
    found = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                            check=True).stdout.split() for _ in range(9)]
    ms = statistics.median(float(one[0]) for one in found)
    row("import strata", ms, "ms", "<= 30", ms <= 30)
    mapped = any(one[1] == "True" for one in found)
    row("of CUDA, mapped by it", mapped, "libraries", "0", not mapped)


# ---- images --------------------------------------------------------------------------------

def from_bench(engine, seconds):
    """Images a second by numbers of streams."""
    out = subprocess.run([sys.executable, "-m", "strata", "bench", engine, f"--device={DEVICE}",
                          "--transfers", "--threads", "--streams=2,3,4,8", "-o", "json",
                          f"--duration={seconds}s"], check=True, capture_output=True, text=True)
    return {case["streams"]: case["items_per_second"] for case in json.loads(out.stdout)}


def images_a_second(lanes, items, seconds):
    """Of as many as take so long."""
    import numpy as np
    classes = np.zeros(len(items), np.int64)

    def take(first, rows):
        at = np.arange(first, first + len(rows)) % len(classes)
        classes[at] = rows.reshape(len(rows), -1).argmax(1)
    end = [0.0]

    def some():
        for item in itertools.cycle(items):
            if time.perf_counter() >= end[0]:
                return
            yield item
    end[0] = time.perf_counter() + 0.3  # graphs are made, memory is touched
    lanes.run(some(), lambda first, rows: None)
    counted = [0]

    def count(first, rows):
        take(first, rows)
        counted[0] += len(rows)
    begin = time.perf_counter()
    end[0] = begin + seconds
    lanes.run(some(), count)
    return counted[0] / (time.perf_counter() - begin)


def crops(images, rows):
    """The middle of 256 x 256 pixels that were decoded before."""
    import strata
    strata.stack([image[16:240, 16:240].transpose(2, 0, 1) for image in images], rows)


def crops_by_numpy(images, rows):
    """The same, each an assignment."""
    for image, row in zip(images, rows):
        row.transpose(1, 2, 0)[:] = image[16:240, 16:240]


def nothing(images, rows):
    """What the interpreter and the GPU take."""


FILLS = {fill.__name__: fill for fill in (crops, crops_by_numpy, nothing)}


def decoded(count):
    import numpy as np
    return list(np.random.default_rng(1).integers(0, 256, (count, 256, 256, 3), np.uint8))


def files(count):
    """JPEG files of 500 x 375 pixels, of about 60 KB: noise of several sizes."""
    import numpy as np
    from PIL import Image
    random, found = np.random.default_rng(2), []
    for _ in range(count):
        pixels = sum(np.asarray(Image.fromarray(random.integers(
            0, 256, (375 // s, 500 // s, 3), np.uint8)).resize((500, 375)), np.float32) * weight
            for s, weight in ((50, 0.5), (12, 0.3), (3, 0.2)))
        file = io.BytesIO()
        Image.fromarray(pixels.astype(np.uint8)).save(file, "JPEG", quality=90)
        found.append(file.getvalue())
    return found


def decode_only(lanes, items, seconds):
    """The same threads without the network."""
    sessions = lanes.sessions
    lanes.sessions = [type("Nothing", (), {"run": staticmethod(lambda: None)})] * len(sessions)
    rate = images_a_second(lanes, items, seconds)
    lanes.sessions = sessions
    return rate


def images(paths, options):
    sys.path.insert(0, str(TOP / "examples/python"))
    import pipeline
    import strata
    net, seconds = strata.load(paths["pixels"], device=DEVICE), options.seconds
    items = decoded(256)
    ways = {(fill, lanes, flight): pipeline.Lanes(net, FILLS[fill], lanes, flight)
            for fill, lanes, flight in options.ways}
    whole, found = [], {way: [] for way in ways}
    for _ in range(options.rounds):
        whole.append(from_bench(paths["pixels"], seconds))
        for way, lanes in ways.items():
            found[way].append(images_a_second(lanes, items, seconds))
    for streams in whole[0]:
        row(f"strata bench, transfers, {streams} streams, ResNet-50 at 32",
            statistics.median(one[streams] for one in whole), "images/s")
    most = [max(one.values()) for one in whole]
    bench = statistics.median(most)
    for (fill, lanes, flight), rates in found.items():
        row(f"pipeline, {lanes} lanes, {flight} in flight: {fill}", statistics.median(rates),
            "images/s")
    best = max((way for way in found if way[0] == "crops"),
               key=lambda way: statistics.median(found[way]))
    share = statistics.median(a / b for a, b in zip(found[best], most))
    row(f"crops, {best[1]} lanes, {best[2]} in flight, of strata bench", share, "",
        ">= 0.95", share >= 0.95)
    row("crops by these lanes without the network", decode_only(ways[best], items, 0.5),
        "images/s")
    if "jpeg" in options.only:
        jpeg(net, bench, options)


def jpeg(net, bench, options):
    import pipeline
    seconds = options.seconds
    try:
        compressed = files(64)
    except ImportError:
        print("# no Pillow: no JPEG files")
        return
    processors = len(os.sched_getaffinity(0))
    row("JPEG files, of 500 x 375, mean", statistics.mean(map(len, compressed)) / 1024, "KiB")
    way = pipeline.Lanes(net, lambda files, rows: pipeline.decode_images(
        map(io.BytesIO, files), rows), processors, processors)
    pairs = [(images_a_second(way, compressed, seconds), decode_only(way, compressed, seconds))
             for _ in range(options.rounds)]
    row(f"pipeline, JPEG, {processors} lanes", statistics.median(a for a, _ in pairs), "images/s")
    row(f"the same threads decode alone: {processors} processors' bound",
        statistics.median(b for _, b in pairs), "images/s")
    share = statistics.median(a / min(b, bench) for a, b in pairs)
    row("pipeline with JPEG, of the lesser of the two", share, "", ">= 0.95", share >= 0.95)


PARTS = {"calls": calls, "images": images, "tensors": tensors, "leaks": leaks,
         "import": importing, "jpeg": None}  # jpeg: rows of images


def read_ways(text):
    ways = (way.replace(":", "x").split("x") for way in text.split(","))
    return [(fill, int(lanes), int(flight)) for fill, lanes, flight in ways]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--calls", type=Path)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument("--ways", type=read_ways, default=read_ways(
        "crops:4x4,crops:6x6,crops:8x3,crops:8x8,crops_by_numpy:8x8,nothing:4x4,nothing:8x8"),
        help="FILL:LANESxIN_FLIGHT,...")
    parser.add_argument("--budget", default="15s", help="for the costs of each network")
    options = parser.parse_args()
    FAST["build.costs_budget"] = options.budget
    options.folder.mkdir(parents=True, exist_ok=True)
    paths = Engines(options.folder)
    for part in (part for part in options.only if PARTS[part]):
        try:
            PARTS[part](paths, options)
        except Exception as error:  # the rest is wanted all the same
            print(f"# {part}: {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()
