# SPDX-License-Identifier: Apache-2.0
"""What a call from Python costs, in turns with ONNX Runtime and with the same call from C.

    python bench/python/calls.py BUILD [--rounds N] [--calls N] [--only calls,requests]

BUILD is a build folder with `make bench python-package`; ONNX Runtime, onnx and NumPy are
bench/requirements.txt. Medians of rounds in turns, and their ratios: the machine may be
loaded, the ratios then stand. One thread each.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

NETWORK = """[network]
format = 1
outputs = y
{profile}[input x]
shape = {shape}
[runtime]
threads = 1
[layer y]
type = Activation
kind = relu
"""


PRODUCT = """[network]
format = 1
outputs = y
[vars]
batch = 1
[input x]
shape = ${{batch}} x {n}
[weights w]
random = 1
[layer y]
type = FullyConnected
units = {n}
weight = w
bias = w
"""


def median_us(call, calls):
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls * 1e6


def turns(ways, rounds, calls):
    """Median microseconds of each way, in turns."""
    found = {name: [] for name in ways}
    for _ in range(rounds):
        for name, call in ways.items():
            found[name].append(median_us(call, calls))
    return {name: statistics.median(times) for name, times in found.items()}


def from_c(build, net, rounds, calls):
    """Of bench/calls: microseconds by its words."""
    out = subprocess.run([build / "bench/calls", net, str(calls), str(rounds)], check=True,
                         capture_output=True, text=True).stdout
    found = {}
    for line in out.splitlines():
        name, _, rest = line.partition("  ")
        found[name.strip()] = float(rest.split()[0])
    return found


def onnx_session(shape):
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto, helper
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ports[:1],
                              ports[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options)


def bound(session, x, y):
    import onnxruntime as ort
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(x))
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(y))
    return lambda: session.run_with_iobinding(binding)


def calls(build, folder, rounds, count):
    import numpy as np
    import strata
    path = Path(folder) / "net.ini"
    path.write_text(NETWORK.format(profile="", shape="1 x 64"))
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(1, 64)
    y = np.empty_like(x)
    net = strata.load(path)
    session = net.session(x=net.pinned("x"), y=net.pinned("y"))
    try:
        ort = onnx_session([1, 64])
        peers = {"ort.run": lambda: ort.run(None, {"x": x}),
                 "ort.run_with_iobinding": bound(ort, x, y)}
    except ImportError:
        print("no ONNX Runtime: not compared with it")
        peers = {}
    found = turns({
        "nothing": lambda: None,
        **peers,
        "net(x)": lambda: net(x),
        "net(x=x)['y'].numpy()": lambda: net(x=x)["y"].numpy(),
        "session.run()": session.run,
    }, rounds, count)
    here = from_c(build, path, rounds, count)
    nothing = found.pop("nothing")
    for name, us in found.items():
        print(f"{name:28} {us - nothing:8.2f} us")
    for name, us in here.items():
        print(f"C: {name:25} {us:8.2f} us")

    def row(text, value, bound_, unit):
        print(f"{text:58} {value:8.3f} {unit:4} bound {bound_}")
    row("session.run() over C", found["session.run()"] - nothing - here["run, here"], 0.5, "us")
    row("net(x) over C", found["net(x)"] - nothing - here["run_parts of one part"], 3, "us")
    if not peers:
        return
    row("net(x=x)['y'].numpy() / ort.run",
        (found["net(x=x)['y'].numpy()"] - nothing) / (found["ort.run"] - nothing), 1, "")
    row("session.run() / run_with_iobinding",
        (found["session.run()"] - nothing) / (found["ort.run_with_iobinding"] - nothing), 1, "")


def counting_thread(folder):
    """How much of its speed a thread of Python keeps beside runs of milliseconds; against
    the same runs in another process, for they take memory and half a core as well."""
    import strata
    path = Path(folder) / "wide.ini"
    path.write_text(NETWORK.format(profile="", shape="1 x 16777216"))
    session = strata.load(path).session()
    code = f"import strata; s = strata.load({str(path)!r}).session()\nwhile True: s.run()"
    counted, end = [0], threading.Event()

    def count():
        while not end.is_set():
            counted[0] += 1

    def speed(work, seconds=1.0):
        before, begin = counted[0], time.perf_counter()
        while time.perf_counter() - begin < seconds:
            work()
        return (counted[0] - before) / (time.perf_counter() - begin)

    def beside_another_process():
        with subprocess.Popen([sys.executable, "-c", code]) as other:
            time.sleep(0.5)
            found = speed(lambda: time.sleep(0.1))
            other.kill()
        return found
    ms = median_us(session.run, 5) / 1e3
    thread = threading.Thread(target=count)
    thread.start()
    ratios = [speed(session.run) / beside_another_process() for _ in range(5)]
    end.set()
    thread.join()
    print(f"a counting thread beside runs of {ms:.1f} ms, of its speed beside those of "
          f"another process: {statistics.median(ratios):.3f}, bound 0.9")


def requests(build, path, batch, rounds, seconds):
    """Requests of 8 threads a second, against bench/batcher's."""
    import numpy as np
    import strata
    net = strata.load(path, define={"batch": batch}, threads=1)
    (name, binding), = net.inputs.items()
    row = np.zeros(binding.shape[1:], np.float32)
    net.submit(**{name: row}).result()

    def ask(x, rows, counts, at, until, depth):
        waiting = []
        while time.perf_counter() < until:
            waiting.append(net.submit(x))
            if len(waiting) == depth:
                waiting.pop(0).result()
                counts[at] += rows
        for future in waiting:
            future.result()
            counts[at] += rows

    def rate(x, rows, depth):
        counts = [0] * 8
        begin = time.perf_counter()
        threads = [threading.Thread(target=ask,
                                    args=(x, rows, counts, i, begin + seconds, depth))
                   for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return sum(counts) / (time.perf_counter() - begin)

    def from_c():
        text = subprocess.run([build / "bench/batcher", "-1", "-b", str(batch), "-t",
                               str(seconds), "-s",
                               "runtime.threads=1", path], check=False, capture_output=True,
                              text=True).stdout
        line = next(line for line in text.splitlines() if line.startswith("| saturated"))
        return float(line.split("|")[3])
    many = np.zeros((16 * batch, *row.shape), np.float32)
    ways = {"a row a future": lambda: rate(row, 1, 16),
            "16 batches a future": lambda: rate(many, len(many), 2), "bench/batcher": from_c}
    found = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            found[name].append(way())
    for name, rates in found.items():
        share = statistics.median(a / b for a, b in zip(rates, found["bench/batcher"]))
        middle = statistics.median(rates)
        print(f"submit from 8 threads, {path.stem:8} {name:20} {middle:10.1f} rows/s, "
              f"{1e6 / middle:6.2f} us a row, of bench/batcher {share:.2f}", flush=True)


def floor():
    """What the interpreter takes for a request of which nothing is done: the loop of
    `requests` around an empty call with the same argument, and around the library's own
    future."""
    import concurrent.futures
    import operator

    import numpy as np
    row = np.zeros((1, 8, 8), np.float32)

    def rate(call, seconds=1.0):
        counts = [0] * 8
        begin = time.perf_counter()

        def ask(at):
            waiting = []
            while time.perf_counter() < begin + seconds:
                waiting.append(call(row, row))
                if len(waiting) == 16:
                    waiting.pop(0)
                    counts[at] += 1
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return sum(counts) / (time.perf_counter() - begin)
    for name, call in (("an empty call", operator.is_),
                       ("concurrent.futures.Future()",
                        lambda a, b: concurrent.futures.Future())):
        rates = [rate(call) for _ in range(3)]
        print(f"floor, 8 threads, {name:28} {statistics.median(rates):10.0f} a second, "
              f"{1e6 / statistics.median(rates):.2f} us", flush=True)


def leaks(folder, times=100000):
    import numpy as np
    import strata
    path = Path(folder) / "net.ini"
    net = strata.load(path)
    x = np.zeros((1, 64), np.float32)

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    for _ in range(1000):
        net(x)
    before = resident()
    for _ in range(times):
        net(x=x)["y"].numpy()
    print(f"{times} calls: {(resident() - before) / 1024:.0f} KiB more resident")


def import_ms(rounds):
    times = [float(subprocess.run([sys.executable, "-c",
                                   "import time; t = time.perf_counter(); import strata;"
                                   "print((time.perf_counter() - t) * 1e3)"],
                                  capture_output=True, text=True, check=True).stdout)
             for _ in range(rounds)]
    print(f"import strata: {statistics.median(times):.1f} ms, bound 30")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=3, help="of requests")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each")
    parser.add_argument("--products", type=lambda text: [int(n) for n in text.split(",")],
                        default=[256, 512, 1024], help="layers of so many inputs and units")
    parser.add_argument("--only", type=lambda text: text.split(","),
                        default=["calls", "requests"])
    options = parser.parse_args()
    build = options.build.resolve()
    os.environ.setdefault("STRATA_PLUGIN_DIR", str(build / "plugins/.libs"))
    os.environ["PYTHONPATH"] = str(build / "python/package")
    os.environ["LD_LIBRARY_PATH"] = str(build / ".libs")
    if "STRATA_CALLS_AGAIN" not in os.environ:  # for the loader to see the library's folder
        os.environ["STRATA_CALLS_AGAIN"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    top = Path(__file__).resolve().parents[2]
    with tempfile.TemporaryDirectory() as folder:
        if "calls" in options.only:
            calls(build, folder, options.rounds, options.calls)
            import_ms(options.rounds)
            leaks(folder)
            counting_thread(folder)
        if "requests" in options.only:
            floor()
            requests(build, top / "examples/digits/digits.ini", 16, options.turns,
                     options.seconds)
            for n in options.products:
                path = Path(folder) / f"{n}.ini"
                path.write_text(PRODUCT.format(n=n))
                requests(build, path, 16, options.turns, options.seconds)


if __name__ == "__main__":
    main()
