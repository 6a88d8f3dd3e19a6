# SPDX-License-Identifier: Apache-2.0
"""A row of acceptance.py beside each other: instances that share a GPU
(--backend-config=strata,turns=0) and such that take turns on it where nothing is said, two
of them and three, and bench.
"""
import shutil
import statistics

from behaviour import PORT
from gpus import SHARED
from server import Server
from speed import measure_in_turns

OPTIONS = {"shared": SHARED, "in turns": []}


def repository(case):
    root = case.args.out / "turns"
    shutil.rmtree(root, ignore_errors=True)
    for model in ("net", "gather"):
        shutil.copytree(case.repository / model, root / model)
    kind = "KIND_GPU" if case.on_gpu else "KIND_CPU"
    case.copy("net", "three", root, instance_group=f"[ {{ kind: {kind} count: 3 }} ]")
    return root


def loads(case):
    """Name, model, rows of a request, requests in flight, memory."""
    batch = case.args.batch
    few, clients = max(batch // 8, 1), 8
    found = [("batches by system shared memory", "net", batch, 4, "system"),
             ("the same, three instances", "three", batch, 6, "system"),
             (f"8 clients x {few} rows, one at a time", "gather", few, clients, "system"),
             (f"8 clients x {few} rows, two at a time", "gather", few, 2 * clients, "system"),
             ("the same, three at a time", "gather", few, 3 * clients, "system")]
    if case.on_gpu:
        found.append(("batches by CUDA shared memory", "net", batch, 4, "cuda"))
    return found


def turns(case):
    root, servers, ways = repository(case), {}, {}
    try:
        for k, (name, options) in enumerate(OPTIONS.items()):
            servers[name] = Server(case.args, root, f"turns-{k}", PORT + 50 + 10 * k, options,
                                   CUDA_VISIBLE_DEVICES="0").wait()
        case.describe(servers["shared"])
        for name, option in (("shared", "--no-turns"), ("in turns", "--turns")):
            ways[f"bench with copies, 2 streams, {name}"] = lambda o=option: case.bench(
                "--transfers", o, streams=2, in_flight=1)["items_per_second"]
        for text, *load in loads(case):
            for name, server in servers.items():
                ways[text, name] = lambda s=server, l=load: case.load(s, *l)["rows_per_s"]
        report(case, measure_in_turns(case, ways, case.args.rounds))
    finally:
        for server in servers.values():
            server.close()


def report(case, found):
    rates = {way: statistics.median(some) for way, some in found.items()}
    for way in [w for w in rates if isinstance(w, str)]:
        case.table.add(f"{way}, beside turns", "reported", f"{rates[way]:.0f} rows/s", None)
    for text, *_ in loads(case):
        if all((text, name) in rates for name in OPTIONS):
            one, other = (rates[text, name] for name in OPTIONS)
            case.table.add(f"{text}: in turns over shared", "reported",
                           f"{other / one:.3f} {one:.0f}, {other:.0f} rows/s", None)
