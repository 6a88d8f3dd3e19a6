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


# Batches under way in bench: the streams, and runs in flight on each. What is on one stream
# follows each other, copies too; copies of one stream go beside the run of another, in
# turns where that is found to pay, as in a server. More in flight gain nothing.
ONE_STREAM, TWO_STREAMS = (1, 1), (2, 1)
LANES = {ONE_STREAM: "1 in flight", (1, 2): "1 stream, 2 in flight",
         TWO_STREAMS: "2 streams"}


def measure_in_turns(case, ways, rounds):
    """Of each way all that was found; one that fails is left out from then on."""
    found = {}
    for _ in range(rounds):
        for name, measure in list(ways.items()):
            try:
                found.setdefault(name, []).append(measure())
            except Failed as why:
                case.table.add(f"{name}", "", str(why)[:40], False)
                print(f"{name}: {why}", file=sys.stderr)
                del ways[name]
    return {k: v for k, v in found.items() if v}


def bench_ways(case, lanes, copies):
    options = ["--transfers"] if copies else []
    return {("copies" if copies else "none", lane): lambda lane=lane: case.bench(
        *options, streams=lane[0], in_flight=lane[1])["items_per_second"] for lane in lanes}


def report_bench(case, found):
    """The medians, and the best with copies and without."""
    best = {}
    for way, rates in found.items():
        if way[0] in ("copies", "none"):
            copies = "with" if way[0] == "copies" else "without"
            rate = statistics.median(rates)
            best[way[0]] = max(rate, best.get(way[0], 0))
            case.table.add(f"bench {copies} copies, batch {case.args.batch}, "
                           f"{LANES[way[1]]}", "reported", f"{rate:.0f} rows/s", None)
    return best


def throughput(case, server):
    """Full batches, by bench and by the server in turns, over the best that bench does
    with what moves the same bytes."""
    batch, served = case.args.batch, {}

    def by(memory):
        served[memory] = case.load(server, "net", batch, 4, memory)
        return served[memory]["rows_per_s"]

    ways = {**bench_ways(case, [(1, 2)], False),
            **bench_ways(case, [ONE_STREAM, TWO_STREAMS], True)}
    for memory in (["cuda"] if case.on_gpu else []) + ["system", "none"]:
        ways["served", memory] = lambda memory=memory: by(memory)
    found = measure_in_turns(case, ways, case.args.rounds)
    best = report_bench(case, found)
    for memory, base, bound, name in (
            ("cuda", "none", 0.97, "CUDA shared memory over bench without copies"),
            ("system", "copies", 0.97, "system shared memory over bench with copies"),
            ("none", "copies", None, "plain gRPC over bench with copies")):
        if ("served", memory) in found:
            rate = statistics.median(found["served", memory])
            text = f"{rate:.0f} rows/s"
            if bound:
                case.table.at_least(name, bound, rate / best[base], text)
            else:
                case.table.add(name, "reported", f"{rate / best[base]:.3f} {text}", None)
            print(memory, text_of(served[memory]["server"]), file=sys.stderr)
    if "copies" in best:
        floor(case, server, "a backend as quick as bench: system shared memory",
              best["copies"], 4, batch, alone=True)


def floor(case, server, text, rate, in_flight, rows, **how):
    """What a backend does in the place of ours that takes no longer than bench: it waits
    as long as bench takes for a batch, and computes nothing. `how`: write_null's."""
    a, name = case.args, f"floor{time.monotonic_ns()}"
    try:
        case.write_null(name, a.batch / rate * 1e6, a.batch,
                        dynamic_batching=case.gathering() if rows < a.batch else "{ }", **how)
        server.ask(f"/v2/repository/models/{name}/load", {})
        loads = [case.load(server, name, rows, in_flight, "system") for _ in range(a.rounds)]
    except Failed as why:
        case.table.add(text, "reported", str(why)[:40], None)
        return
    found, mean = median(loads, "rows_per_s"), loads[0]["server"]["batch"]
    case.table.add(text, "reported", f"{found / rate:.3f} {found:.0f} rows/s, mean batch "
                   f"{mean:.0f}", None)


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
    """Clients of 4 rows. Where each waits for its answer no two batches overlap, and the
    most is what bench does with one in flight; where each has two requests under way, what
    it does with two streams."""
    clients, rows, served = case.args.batch // 4, 4, {}

    def by(in_flight):
        served.setdefault(in_flight, []).append(
            case.load(server, "gather", rows, in_flight, "system"))
        return served[in_flight][-1]["rows_per_s"]

    ways = bench_ways(case, [ONE_STREAM, TWO_STREAMS], True)
    for each in (1, 2):
        ways["served", each] = lambda each=each: by(each * clients)
    found = {k: statistics.median(v) for k, v in
             measure_in_turns(case, ways, case.args.rounds).items()}
    for each, lane, text in ((1, ONE_STREAM, "one at a time"),
                             (2, TWO_STREAMS, "two at a time")):
        rate, name = found["served", each], f"{clients} clients x {rows} rows, {text}"
        case.table.at_least(f"{name}, over bench, {LANES[lane]}", 0.95,
                            rate / found["copies", lane],
                            f"{rate:.0f} of {found['copies', lane]:.0f} rows/s")
        case.table.at_least(f"{name}: mean batch", case.args.batch * 3 // 4,
                            statistics.median(f["server"]["batch"]
                                              for f in served[each * clients]))
        print(name, text_of(served[each * clients][0]["server"]), file=sys.stderr)
        floor(case, server, f"a backend as quick as bench: {text}", found["copies", lane],
              each * clients, rows, alone=True)
