# SPDX-License-Identifier: Apache-2.0
"""What a served engine must show, as a table: each figure with its bound, and whether it
is met. Bench and server run in turns; of each the median is taken.

    acceptance.py --strata CMD --server TRITONSERVER --backends DIR --perf PERF_ANALYZER
                  [--device cuda|host] [--net NET.ini] [OPTION...]

bench/serving/gpu.sh calls it for a build. With --device host the rows that need no GPU are
taken, by the same code. A row that fails says why and the others go on; what programs
said is in --out. Exit code 1: a row failed or missed its bound.
"""
import argparse
import json
import os
import pathlib
import shlex
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import numpy as np

from server import CudaRegion, Failed, Server, SystemRegion, load, run

ROW = "| {:<58} | {:<18} | {:<40} | {:<3} |"
PORT = 21000
FAULTY = """[network]
format = 1
outputs = y
[input x]
shape = 1 x 64
[layer y]
type = org.faulty::Poisoned
"""


class Table:
    """Rows as they are found, printed again at the end."""

    def __init__(self):
        self.rows = []

    def add(self, figure, bound, found, met):
        """`met`: True, False, or None where nothing is asked."""
        self.rows.append((figure, bound, found, {True: "yes", False: "NO", None: ""}[met]))
        print(ROW.format(*self.rows[-1]), flush=True)

    def at_least(self, figure, bound, found, detail=""):
        self.add(figure, f">= {bound}", f"{found:.3f} {detail}".strip(), found >= bound)

    def at_most(self, figure, bound, unit, found, detail=""):
        self.add(figure, f"<= {bound} {unit}", f"{found:.1f} {unit} {detail}".strip(),
                 found <= bound)

    def missed(self):
        return [r[0] for r in self.rows if r[3] == "NO"]


class Case:
    """The engines, the repository and the tools of a table."""

    def __init__(self, args):
        self.args, self.table = args, Table()
        self.on_gpu = args.device != "host"
        self.repository = args.out / "models"
        self.engine = args.out / "net.engine"
        self.strata = shlex.split(args.strata)
        self.first = "cuda:0" if self.on_gpu else "host"
        self.inputs = self.outputs = None

    def command(self, *arguments, seconds=150):
        return run([*self.strata, *arguments], self.args.out / "strata.log", seconds)

    # ---- engines ----------------------------------------------------------------------

    def build(self):
        a = self.args
        fast = ["--set", "build.precision=fp16", "--set", "build.math=tensor_op"]
        self.command("build", a.net, "-d", self.first, "-D", "batch=N",
                     "--set", f"profile.N=1, {a.batch}", *(fast if self.on_gpu else []),
                     "-o", self.engine, "--quiet")
        self.deploy("net", self.engine)
        self.copy("net", "gather", dynamic_batching=(
            f"{{ preferred_batch_size: [ {a.batch} ] "
            f"max_queue_delay_microseconds: {a.delay} }}"))
        self.copy("net", "direct", max_batch_size=": 1", dynamic_batching=None)
        found = json.loads(self.command("inspect", self.engine, "-o", "json"))
        print("engine:", json.dumps(found)[:300], file=sys.stderr)

    def copy(self, model, name, **settings):
        """The model under another name, with settings of its config anew, or without."""
        shutil.copytree(self.repository / model, self.repository / name)
        config = self.repository / name / "config.pbtxt"
        lines = [l for l in config.read_text(encoding="utf-8").splitlines()
                 if not l.startswith(tuple(settings))]
        lines += [f"{k} {v}" for k, v in settings.items() if v]
        config.write_text("\n".join([*lines, ""]), encoding="utf-8")

    def build_digits(self, name, device, costs="analytic"):
        engine = self.args.out / f"{name}.engine"
        self.command("build", self.args.digits / "digits.ini", "-d", device, "-D", "batch=N",
                     "--set", "profile.N=1, 4, 32", f"--costs={costs}", "-o", engine,
                     "--quiet")
        self.deploy(name, engine)

    def deploy(self, name, *engines):
        self.command("deploy", *engines, "-o", self.repository, f"--name={name}", "--quiet")

    def describe(self, server):
        model = json.loads(server.ask("/v2/models/net"))
        self.inputs, self.outputs = model["inputs"], model["outputs"]

    def out_bytes(self, rows):
        """Of the first output, FP32."""
        return rows * int(np.prod([int(n) for n in self.outputs[0]["shape"][1:]])) * 4

    # ---- figures ----------------------------------------------------------------------

    def bench(self, *options, engine=None, batch=None, in_flight=2):
        text = self.command("bench", engine or self.engine, "--device", self.first,
                            "--batch", batch or self.args.batch, "--in-flight", in_flight,
                            f"--duration={self.args.seconds}s", "--spin", *options,
                            "-o", "json")
        found = json.loads(text)[0]
        print("bench", *options, f"{found['items_per_second']:.0f}/s, ms:", *(
            f"{k} {found[k]['median_ms']:.3f}" for k in ("latency", "h2d", "compute", "d2h")
            if k in found), file=sys.stderr)
        return found

    def load(self, server, model, rows, in_flight, memory, **more):
        return load(self.args, server, model, rows, in_flight, memory,
                    self.out_bytes(rows) if model != "digits" else rows * 40, **more)


def median(found, key):
    return statistics.median(f[key] for f in found)


def text_of(server):
    return ", ".join(f"{k} {v:.0f}" for k, v in server.items())


# ---- rows -----------------------------------------------------------------------------


def throughput(case, server):
    """Full batches, by bench and by the server in turns, with what moves the same bytes."""
    batch, found = case.args.batch, {}
    ways = {"bench": lambda: case.bench()["items_per_second"],
            "bench, transfers": lambda: case.bench("--transfers")["items_per_second"]}
    served = {}

    def by(memory):
        served[memory] = case.load(server, "net", batch, 4, memory)
        return served[memory]["rows_per_s"]

    for memory in (["cuda"] if case.on_gpu else []) + ["system", "none"]:
        ways[memory] = lambda memory=memory: by(memory)
    for _ in range(case.args.rounds):
        for name, measure in ways.items():
            try:
                found.setdefault(name, []).append(measure())
            except Failed as why:
                case.table.add(f"throughput, {name}", "", str(why)[:40], False)
                print(f"{name}: {why}", file=sys.stderr)
    middle = {k: statistics.median(v) for k, v in found.items()}
    for name in ("bench", "bench, transfers"):
        case.table.add(f"{name}, batch {batch}, 2 in flight", "", f"{middle[name]:.0f} rows/s",
                       None)
    for memory, base, bound, name in (
            ("cuda", "bench", 0.97, "CUDA shared memory over bench without transfers"),
            ("system", "bench, transfers", 0.97, "system shared memory over with transfers"),
            ("none", "bench, transfers", None, "plain gRPC over bench with transfers")):
        if memory in middle:
            ratio = middle[memory] / middle[base]
            detail = f"{middle[memory]:.0f} rows/s"
            if bound:
                case.table.at_least(name, bound, ratio, detail)
            else:
                case.table.add(name, "reported", f"{ratio:.3f} {detail}", None)
            print(memory, text_of(served[memory]["server"]), file=sys.stderr)


def latency(case, server):
    """One request of one row at a time, over the engine's own time. `direct` is the net
    without the server's batching, which hands a request to one thread more."""
    digits = case.args.out / "digits.engine"
    wake_up(case)
    for model, engine, memory in (("net", case.engine, "system"),
                                  ("direct", case.engine, "system"),
                                  ("direct", case.engine, "cuda"),
                                  ("digits", digits, "system")):
        if memory == "system" or case.on_gpu:
            one_in_flight(case, server, model, engine, memory)


def one_in_flight(case, server, model, engine, memory):
    own, served = [], []
    copied = ["--transfers"] if memory == "system" else []
    for _ in range(case.args.rounds):
        own.append(case.bench(*copied, engine=engine, batch=1, in_flight=1))
        served.append(case.load(server, model, 1, 1, memory))
    alone = statistics.median(f["latency"]["median_ms"] for f in own) * 1e3
    parts = [f["server"] for f in served]
    case.table.at_most(f"{model}: p50 of 1 in flight, {memory} memory, over the engine's",
                       150, "us", median(served, "p50") - alone,
                       f"(of {median(served, 'p50'):.0f} us)")
    case.table.at_most(f"{model}: the server's, without queue and compute", 40, "us",
                       statistics.median(p["overhead"] + p["compute_input"] +
                                         p["compute_output"] for p in parts))
    print(model, memory, text_of(parts[0]), f"alone {alone:.0f} us", file=sys.stderr)


def wake_up(case, times=2000):
    """What it takes this machine to wake a process that waits: a request wakes five."""
    ours, theirs = os.pipe(), os.pipe()
    if os.fork() == 0:
        while os.read(theirs[0], 1) == b"x":
            os.write(ours[1], b"x")
        os._exit(0)
    took = []
    for _ in range(times):
        begin = time.monotonic()
        os.write(theirs[1], b"x")
        os.read(ours[0], 1)
        took.append((time.monotonic() - begin) / 2e-6)
        time.sleep(0.0003)
    os.write(theirs[1], b".")
    os.wait()
    case.table.add("waking a process that waits (of 5 a request)", "reported",
                   f"{statistics.median(took):.0f} us", None)


def backend_time(case, _server):
    if not case.args.backend_time:
        raise Failed("--backend-time is missing")
    found = json.loads(run([*shlex.split(case.args.backend_time), case.repository,
                            "digits_host"], case.args.out / "strata.log"))
    case.table.at_most("the backend's own time, digits, 1 row, no server",
                       3 + found["tensors"], "us", found["own_us"],
                       f"(of {found['backend_us']:.1f} us)")


def small_requests(case, server):
    """Clients of 4 rows. Where each waits for its answer, no two batches overlap: that
    is for who needs no more, and has no bound."""
    clients, rows = case.args.batch // 4, 4
    for in_flight, text in ((clients, "one at a time"), (2 * clients, "two at a time")):
        base, served = [], []
        for _ in range(case.args.rounds):
            base.append(case.bench("--transfers", in_flight=in_flight // clients))
            served.append(case.load(server, "gather", rows, in_flight, "system"))
        ratio = median(served, "rows_per_s") / median(base, "items_per_second")
        name = f"{clients} clients x {rows} rows, {text}"
        detail = f"{median(served, 'rows_per_s'):.0f} rows/s"
        if in_flight > clients:
            case.table.at_least(f"{name}, over bench", 0.95, ratio, detail)
        else:
            case.table.add(f"{name}, over bench", "reported", f"{ratio:.3f} {detail}", None)
        case.table.at_least(f"{name}: mean batch", case.args.batch * 3 // 4,
                            statistics.median(f["server"]["batch"] for f in served))
        print(name, text_of(served[0]["server"]), file=sys.stderr)


def random_rows(tensor, rows, seed=7):
    shape = [rows] + [int(n) for n in tensor["shape"][1:]]
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def outputs(case, server):
    """Bit for bit those of `strata run`, by each way, and what was copied for it."""
    rows = random_rows(case.inputs[0], case.args.batch)
    name, output = case.inputs[0]["name"], case.outputs[0]["name"]
    size = case.out_bytes(case.args.batch)
    np.save(case.args.out / "rows.npy", rows)
    case.command("run", case.engine, "-d", case.first, f"{name}={case.args.out}/rows.npy",
                 "--output", f"{output}={case.args.out}/out.npy")
    ours = np.load(case.args.out / "out.npy").astype(np.float32).tobytes()
    regions = {"system": SystemRegion}
    if case.on_gpu:
        regions["CUDA"] = CudaRegion
    ways = {"HTTP": lambda: server.infer("net", name, rows, output)}
    for kind, region in regions.items():
        ways[f"{kind} shared memory"] = lambda region=region: by_region(
            server, region, name, rows, output, size)
    for way, ask in ways.items():
        before = server.metrics("net")
        try:
            same = ask() == ours
        except (Failed, OSError) as why:
            case.table.add(f"outputs beside strata run, {way}", "equal bits", repr(why)[:40],
                           False)
            continue
        after = server.metrics("net")
        case.table.add(f"outputs beside strata run, {way}", "equal bits",
                       "equal" if same else "not equal", same)
        copies(case, way, {k: after[k] - before[k] for k in after}, rows.nbytes, size)


def by_region(server, region, name, rows, output, size):
    opened = region(server, rows.nbytes, size)
    try:
        return server.infer_shared("net", name, rows, output, size, opened)
    finally:
        opened.close()


def copies(case, way, counted, in_bytes, out_bytes):
    """Where the run can use the memory as it is, none; else each byte once."""
    in_place = way == "system shared memory" and not case.on_gpu
    for name, size in (("in", in_bytes), ("out", out_bytes)):
        times = counted[f"strata_copied_{name}_bytes_total"] / size
        most = 0 if in_place and size > 32 << 10 else 1
        case.table.add(f"bytes copied {name}, of all, {way}", f"{most}", f"{times:.2f}",
                       times == most)


def digits(case, server):
    """The test images, in batches of 32 and one of 7."""
    images = np.fromfile(case.args.digits / "digits-test-images.idx", np.uint8)[16:]
    labels = np.fromfile(case.args.digits / "digits-test-labels.idx", np.uint8)[8:]
    rows = (images.astype(np.float32) * np.float32(1 / 240)).reshape(-1, 1, 8, 8)
    found = [np.frombuffer(server.infer("digits", "image", rows[at:at + 32], "prob"),
                           np.float32).reshape(-1, 10) for at in range(0, len(rows), 32)]
    right = int((np.concatenate(found).argmax(axis=1) == labels).sum())
    case.table.add("digits right", "356 of 359", f"{right} of {len(labels)}", right == 356)


def reload(case, server):
    """Loads of the model one after the other, while clients ask."""
    rows = max(case.args.batch // 4, 1)
    before = case.load(server, "net", rows, 4, "system", seconds=2)
    stop, done, refused = threading.Event(), [], []

    def again():
        while not stop.wait(0.3):
            try:
                server.ask("/v2/repository/models/net/load", {})
                done.append(time.monotonic())
            except (OSError, Failed) as why:
                refused.append(why)

    worker = threading.Thread(target=again)
    worker.start()
    try:
        during = case.load(server, "net", rows, 4, "system", seconds=3)
    finally:
        stop.set()
        worker.join()
    case.table.add(f"{len(done)} reloads under 4 clients", "0 errors",
                   f"{len(refused)} refused, no call failed", bool(done) and not refused)
    case.table.at_most("p99 during reloads, of before", 2, "times",
                       during["p99"] / before["p99"],
                       f"({before['p99']:.0f} -> {during['p99']:.0f} us)")


def memory_report(case, server):
    for model in ("net", "digits"):
        stats = json.loads(server.ask(f"/v2/models/{model}/stats"))["model_stats"][0]
        print(model, "memory:", json.dumps(stats.get("memory_usage")), file=sys.stderr)


def staged_copies(case, server):
    """Requests whose rows are small are one copy a batch."""
    path = case.args.out / "copies"
    if not case.on_gpu:
        raise Failed("needs a GPU")
    rows = np.zeros((32, 1, 8, 8), np.float32)
    server.infer("digits", "image", rows, "prob")
    before, ran = read_copies(path), server.statistics("digits")["runs"]
    for _ in range(16):
        server.infer("digits", "image", rows, "prob")
    load(case.args, server, "digits", 4, 16, "none", 0, seconds=1)
    after, runs = read_copies(path), server.statistics("digits")["runs"] - ran
    for kind, name in ((1, "H2D"), (2, "D2H")):
        case.table.at_most(f"digits: {name} calls a batch of many requests", 1, "calls",
                           (after[kind] - before[kind]) / runs, f"({runs} batches)")


def read_copies(path):
    return struct.unpack("10Q", path.read_bytes()) if path.exists() else (0,) * 10


def lost_device(case, server):
    """A request after which the device is gone, and who goes on serving."""
    poison = np.full((1, 64), np.nan, np.float32)
    image = np.zeros((1, 1, 8, 8), np.float32)
    well = server.refusal("faulty", "x", np.ones((1, 64), np.float32), "y")
    case.table.add("a sound request of the faulty model", "200", f"{well[0]}", well[0] == 200)
    code, text = server.refusal("faulty", "x", poison, "y")
    print("lost device:", code, text, file=sys.stderr)
    case.table.add("the request that loses the device", "503, by name", f"{code} {text}"[:40],
                   code == 503 and "lost" in text)
    code, text = server.refusal("digits_gpu0", "image", image, "prob")
    print("another model on it:", code, text, file=sys.stderr)
    case.table.add("another model on that GPU", "503, by name", f"{code} {text}"[:40],
                   code == 503 and "lost" in text)
    answers = [server.refusal("digits_host", "image", image, "prob")[0] for _ in range(50)]
    case.table.add("a model of the host goes on serving", "50 of 50",
                   f"{answers.count(200)} of 50", answers.count(200) == 50)
    if case.args.gpus > 1:
        answers = [server.refusal("digits_gpu1", "image", image, "prob")[0]
                   for _ in range(50)]
        case.table.add("a model on another GPU goes on serving", "50 of 50",
                       f"{answers.count(200)} of 50", answers.count(200) == 50)
    ready = server.ready("faulty")
    case.table.add("the lost model is ready (servers from 12/2025: no)", "", f"{ready}", None)


# ---- several GPUs -----------------------------------------------------------------------


def many_gpus(case):
    """One server over all; a server each; the batcher. Each against one GPU."""
    a = case.args
    everywhere = ",".join(str(k) for k in range(a.gpus))
    in_flight = {"one": 4, "all": 4 * a.gpus}
    rates = {}
    for name, visible in (("one", "0"), ("all", everywhere)):
        server = Server(a, case.repository, f"gpus-{name}", PORT + 20,
                        CUDA_VISIBLE_DEVICES=visible)
        try:
            rates[name] = case.load(server, "net", a.batch, in_flight[name],
                                    "system")["rows_per_s"]
        finally:
            server.close()
    case.table.at_least(f"one server, {a.gpus} GPUs over one", 0.95 * a.gpus,
                        rates["all"] / rates["one"], f"{rates['all']:.0f} rows/s")
    servers = [Server(a, case.repository, f"gpu-{k}", PORT + 20 + 10 * k,
                      CUDA_VISIBLE_DEVICES=str(k)) for k in range(a.gpus)]
    try:
        both = together(case, servers)
        case.table.at_least(f"{a.gpus} servers, one a GPU, over one", 0.975 * a.gpus,
                            both / rates["one"], f"{both:.0f} rows/s")
        haproxy = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
        if haproxy:
            killed(case, servers, haproxy)
    finally:
        for server in servers:
            server.close()


def together(case, servers):
    found = []
    threads = [threading.Thread(target=lambda s=s: found.append(case.load(
        s, "net", case.args.batch, 4, "system")["rows_per_s"])) for s in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(found)


def killed(case, servers, haproxy):
    """SIGKILL of one behind HAProxy, under 8 clients of the digits."""
    root = pathlib.Path(__file__).resolve().parents[2]
    front, stop = PORT + 90, case.args.out / "stop"
    where = {f"TRITON_{k + 1}": f"127.0.0.1:{s.port}" for k, s in enumerate(servers[:2])}
    log = open(case.args.out / "haproxy.log", "w", encoding="utf-8")
    balancer = subprocess.Popen([haproxy, "-db", "-f", root / "serving/haproxy.cfg"],
                                stdout=log, stderr=log, env={
        **os.environ, **where, "BALANCER": f"127.0.0.1:{front}",
        "MODEL": "digits"})
    time.sleep(2)
    clients = subprocess.Popen([sys.executable, root / "tests/serving/load.py",
                                f"127.0.0.1:{front}", "digits", stop, "8"],
                               stdout=subprocess.PIPE, text=True)
    time.sleep(1)
    servers[1].process.kill()
    time.sleep(2)
    stop.touch()
    said = clients.communicate(timeout=60)[0].splitlines()[0]
    balancer.terminate()
    log.close()
    case.table.add("SIGKILL of one of two behind HAProxy", "0 errors", said,
                   "errors 0 " in said)


def batcher(case):
    devices = ",".join(f"cuda:{k}" for k in range(case.args.gpus)) if case.on_gpu else "host"
    said = run([*shlex.split(case.args.batcher), case.engine, devices, case.args.batch, 4,
                case.args.seconds], case.args.out / "strata.log")
    for line in said.splitlines():
        n = int(line.split()[0])
        ratio = float(line.split(",")[1].split()[0])
        case.table.add(f"the batcher over {line.split(':')[0]}",
                       f">= {0.975 * n:.2f}" if n > 1 else "", line.split(": ")[1],
                       ratio >= 0.975 * n if n > 1 else None)


# ---- all of it ----------------------------------------------------------------------------


def attempt(case, name, row, *arguments):
    """A row; where it fails, why."""
    seconds = time.monotonic() - case.args.begun
    print(f"== {name}, {seconds:.0f} s", file=sys.stderr, flush=True)
    try:
        row(*arguments)
    except Exception as why:  # pylint: disable=broad-except
        traceback.print_exc()
        case.table.add(name, "", f"{type(why).__name__}: {why}"[:40], False)


def serve(case, name, rows, **env):
    """A server for some rows; why it did not start is a row of its own."""
    try:
        server = Server(case.args, case.repository, name, PORT, **env)
    except Failed as why:
        print(why, file=sys.stderr)
        case.table.add(f"the server starts, {name}", "", str(why)[-40:], False)
        return
    try:
        found = server.index()
        print(json.dumps(found), file=sys.stderr)
        bad = [m for m, state in found.items() if not state.startswith("READY")]
        case.table.add(f"models ready, {name}", "all", f"{len(found) - len(bad)} of "
                       f"{len(found)} {' '.join(bad)}", not bad)
        case.describe(server)
        for row in rows:
            attempt(case, row.__name__, row, case, server)
    except Exception as why:  # pylint: disable=broad-except
        traceback.print_exc()
        case.table.add(name, "", f"{type(why).__name__}: {why}"[:40], False)
    code = server.close()
    case.table.add(f"SIGTERM ends the server, {name}", "0" if name == "figures" else "",
                   f"{code}", code == 0 if name == "figures" else None)


def write_faulty(case):
    ini = case.args.out / "faulty.ini"
    ini.write_text(FAULTY, encoding="utf-8")
    engine = case.args.out / "faulty.engine"
    case.command("build", ini, "-d", "cuda:0", "--plugin-path", case.args.plugin_path,
                 "--costs=analytic", "-o", engine, "--quiet")
    folder = case.repository / "faulty"
    (folder / "1").mkdir(parents=True)
    shutil.copy(engine, folder / "1" / "model.engine")
    (folder / "config.pbtxt").write_text(
        'backend: "strata"\ninstance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]\n',
        encoding="utf-8")
    for gpu in range(min(case.args.gpus, 2)):
        case.copy("digits", f"digits_gpu{gpu}",
                  instance_group=f"[ {{ kind: KIND_GPU gpus: [ {gpu} ] }} ]")


def measure(case):
    attempt(case, "build", case.build)
    attempt(case, "digits on the host", case.build_digits, "digits_host", "host")
    attempt(case, "digits", case.build_digits, "digits", case.first)
    rows = [outputs, digits, throughput, small_requests, latency, reload, backend_time,
            memory_report]
    serve(case, "figures", [r for r in rows if not case.args.rows or
                            r.__name__ in case.args.rows], CUDA_VISIBLE_DEVICES="0")
    if case.args.rows:
        return
    if case.args.batcher:
        attempt(case, "batcher", batcher, case)
    if case.args.gpus > 1:
        attempt(case, "several GPUs", many_gpus, case)
    if case.on_gpu and case.args.plugin_path:
        attempt(case, "the faulty model", write_faulty, case)
        more = {"STRATA_COPY_COUNT": str(case.args.out / "copies")}
        if case.args.copy_count:
            more["LD_PRELOAD"] = case.args.copy_count
        serve(case, "faults", [staged_copies, lost_device], **more)


def read_arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = pathlib.Path(__file__).resolve().parents[2]
    p.add_argument("--strata", required=True, help="the command")
    p.add_argument("--server", required=True, help="tritonserver")
    p.add_argument("--backends", required=True, help="the folder with strata/")
    p.add_argument("--perf", required=True, help="perf_analyzer")
    p.add_argument("--perf-libraries", default="", help="its LD_LIBRARY_PATH")
    p.add_argument("--device", choices=("cuda", "host"), default="cuda")
    p.add_argument("--gpus", type=int, default=1)
    p.add_argument("--net", type=pathlib.Path, default=root / "bench/nets/resnet50.ini")
    p.add_argument("--digits", type=pathlib.Path, default=root / "examples/digits")
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--delay", type=int, default=1000, help="us that small requests wait")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=2, help="of each measurement")
    p.add_argument("--plugin-path", default="", help="folder of tests/cuda_faulty.so")
    p.add_argument("--copy-count", default="", help="bench/serving/copy_count.so")
    p.add_argument("--backend-time", default="", help="bench/serving/backend_time")
    p.add_argument("--batcher", default="", help="bench/serving/batcher")
    p.add_argument("--server-option", action="append", default=[])
    p.add_argument("--rows", action="append", default=[], help="these alone")
    p.add_argument("--out", type=pathlib.Path, help="logs stay there")
    args = p.parse_args()
    args.begun = time.monotonic()
    args.out = args.out or pathlib.Path(tempfile.mkdtemp(prefix="strata-acceptance-"))
    args.out.mkdir(parents=True, exist_ok=True)
    return args


def main():
    case = Case(read_arguments())
    print(ROW.format("figure", "bound", "found", "met"))
    print(ROW.format("---", "---", "---", "---"))
    measure(case)
    missed = case.table.missed()
    print(f"{len(case.table.rows)} rows, {len(missed)} missed; logs in {case.args.out}, "
          f"{time.monotonic() - case.args.begun:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
