# SPDX-License-Identifier: Apache-2.0
"""Rows of acceptance.py that hold answers against what they must be: bits, bytes copied,
reloads, lost devices.
"""
import json
import shutil
import struct
import sys
import threading
import time

import numpy as np

from server import CudaRegion, Failed, Server, SystemRegion, load

PORT = 21000


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
        during = case.load(server, "net", rows, 4, "system", seconds=3, tries=1)
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
        found = [server.refusal("digits_gpu1", "image", image, "prob") for _ in range(50)]
        print("a model on another GPU:", *found[0], file=sys.stderr)
        answers = [code for code, _ in found]
        case.table.limit("a model on another GPU of the process serves on",
                         "CUDA: all are lost", f"{answers.count(200)} of 50")
    ready = server.ready("faulty")
    case.table.add("the lost model is ready (servers from 12/2025: no)", "", f"{ready}", None)


def lost_apart(case):
    """Two servers, each of one GPU: what one loses is not the other's."""
    poison, image = np.full((1, 64), np.nan, np.float32), np.zeros((1, 1, 8, 8), np.float32)
    root = case.args.out / "apart"
    shutil.rmtree(root, ignore_errors=True)
    for model in ("digits", "faulty"):
        shutil.copytree(case.repository / model, root / model)
    servers = [Server(case.args, root, f"apart-{k}", PORT + 80 + 10 * k,
                      CUDA_VISIBLE_DEVICES=str(k)) for k in range(2)]
    try:
        for server in servers:
            server.wait()
        code, text = servers[0].refusal("faulty", "x", poison, "y")
        case.table.add("of two servers, a GPU each: one loses its own", "503, by name",
                       f"{code} {text}"[:40], code == 503 and "lost" in text)
        found = [servers[1].refusal("digits", "image", image, "prob")[0] for _ in range(50)]
        case.table.add("the other one goes on serving", "50 of 50",
                       f"{found.count(200)} of 50", found.count(200) == 50)
    finally:
        for server in servers:
            server.close()
