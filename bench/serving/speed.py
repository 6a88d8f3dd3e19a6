# SPDX-License-Identifier: Apache-2.0
"""Rows of acceptance.py that time: each with bench in turns, medians of both."""
import json
import os
import shlex
import statistics
import sys
import time

from case import median, text_of
from server import Failed, run


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
    null_model(case, server, 0)
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
    null_model(case, server, alone)
    print(model, memory, text_of(parts[0]), f"alone {alone:.0f} us", file=sys.stderr)


def null_model(case, server, wait_us):
    """What a request takes that only waits so long: of the row above the server's and the
    transport's part, which no backend can be without."""
    name = f"null{wait_us:.0f}"
    text = f"a backend that waits {wait_us:.0f} us: p50 over these"
    try:
        if not (case.repository / name).exists():
            case.write_null(name, wait_us)
        server.ask(f"/v2/repository/models/{name}/load", {})
        served = [case.load(server, name, 1, 1, "system") for _ in range(case.args.rounds)]
    except Failed as why:
        case.table.add(text, "reported", str(why)[:40], None)
        return
    own = statistics.median(f["server"]["overhead"] + f["server"]["compute_input"] +
                            f["server"]["compute_output"] for f in served)
    case.table.add(text, "reported", f"{median(served, 'p50') - wait_us:.0f} us, {own:.0f} "
                   "without queue and compute", None)


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
