# SPDX-License-Identifier: Apache-2.0
"""Rows of acceptance.py over several GPUs: the batcher, bench, one server over all, a
server each behind HAProxy, one of them killed. Each against one GPU, in turns.
"""
import json
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import time

from behaviour import PORT
from case import median
from clients import Clients
from server import Failed, Lost, Server, run

ROOT = pathlib.Path(__file__).resolve().parents[2]


def device_list(case):
    if case.on_gpu:
        return [f"cuda:{k}" for k in range(case.args.gpus)]
    return ["host"] * max(case.args.gpus, 1)


def batcher(case):
    """Twice, as one round alone may fall on a busy moment of the machine."""
    if not case.args.batcher:
        raise Failed("--batcher is missing")
    found = {}
    for _ in range(2):
        said = run([*shlex.split(case.args.batcher), case.engine,
                    ",".join(device_list(case)), case.args.batch, 4, case.args.seconds],
                   case.args.out / "strata.log")
        for line in said.splitlines():
            found.setdefault(int(line.split()[0]), []).append(
                (float(line.split(",")[1].split()[0]), float(line.split()[2])))
    for n, rounds in found.items():
        ratio = statistics.mean(r[0] for r in rounds)
        detail = ", ".join(f"{r[1]:.0f}" for r in rounds) + " rows/s"
        if n > 1:
            case.table.at_least(f"the batcher over {n} devices, over one", 0.975 * n, ratio,
                                detail)
        else:
            case.table.add("the batcher over one device", "reported", detail, None)


def bench_all(case):
    """What engines alone compute, on one device and on all, copies aside and with them."""
    for name, options in (("without copies", ["--in-flight", 2]),
                          ("with copies, 2 streams", ["--streams", 2, "--transfers"])):
        rates = []
        for devices in (case.first, "cuda:all" if case.on_gpu else "host,host"):
            text = case.command("bench", case.engine, "--device", devices, "--batch",
                                case.args.batch, f"--duration={case.args.seconds}s",
                                *options, "-o", "json")
            rates.append(json.loads(text)[0]["items_per_second"])
        case.table.at_least(f"strata bench over {case.args.gpus} devices, {name}",
                            0.975 * case.args.gpus, rates[1] / rates[0],
                            f"{rates[0]:.0f}, {rates[1]:.0f} rows/s")


# ---- Triton -----------------------------------------------------------------------------


def repository(case):
    """The network on one GPU and on all, as models beside each other."""
    root = case.args.out / "gpus"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(case.repository / "net", root / "net")
    group = ("[ { kind: KIND_GPU count: 2 gpus: [ 0 ] } ]" if case.on_gpu else
             "[ { kind: KIND_CPU count: 1 } ]")
    case.copy("net", "one", root, instance_group=group)
    case.copy("net", "other", root, instance_group=group.replace("[ 0 ]", "[ 1 ]"))
    return root


SHARED = ["--backend-config=strata,turns=0"]
SERVERS = 3  # that may lose their GPUs before the row is given up


def one_server(case):
    """One server over all GPUs; what it serves by one of them in turns with all. A GPU that
    is lost meanwhile is a row of its own, and the rates are found by another server."""
    root = repository(case)
    for n in range(SERVERS):
        server = Server(case.args, root, f"gpus-all-{n}", PORT + 20).wait()
        try:
            rates_of_all(case, server)
            return
        except Lost as why:
            case.table.add("one server over all GPUs loses one", "never", str(why)[:90],
                           False)
        finally:
            server.close()
    raise Failed(f"{SERVERS} servers lost a GPU")


def rates_of_all(case, server):
    a, rates = case.args, {}
    case.describe(server)
    for memory in ["system"] + (["cuda"] if case.on_gpu else []):
        models = [("one", 4), ("net", 4 * a.gpus)]
        if memory == "cuda":
            models.append(("other", 4))
        for _ in range(a.rounds):
            for model, in_flight in models:
                found = case.load(server, model, a.batch, in_flight, memory)
                rates.setdefault((model, memory), []).append(found["rows_per_s"])
        one, both = (statistics.median(rates[m, memory]) for m in ("one", "net"))
        case.table.at_least(f"one server, {a.gpus} GPUs over one, {memory} memory",
                            0.975 * a.gpus, both / one, f"{one:.0f}, {both:.0f} rows/s")
    other_gpu(case, rates)


# What is left of a fault: the kernel and its place, without memory.
CORE = {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1",
        "CUDA_COREDUMP_GENERATION_FLAGS":
            "skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,"
            "skip_local_memory,skip_constbank_memory,skip_abort"}


def soak(case):
    """Loads that begin and end, one behind the other, on all GPUs by one server whose runs
    share them: whether one is ever lost. A fault leaves --out/core-*, for cuda-gdb's
    `target cudacore`."""
    a, loads, end = case.args, 0, time.monotonic() + case.args.soak
    server = Server(a, repository(case), "soak", PORT + 20, SHARED, **CORE,
                    CUDA_COREDUMP_FILE=str(a.out / "core-%p")).wait()
    try:
        case.describe(server)
        while time.monotonic() < end:
            case.load(server, "net", a.batch, 4 * a.gpus, "system", seconds=0.3)
            loads += 1
        case.table.add("loads that begin and end on all GPUs", "no failure", f"{loads}",
                       True)
    except Lost as why:
        case.table.add("loads that begin and end on all GPUs", "no failure",
                       f"after {loads}: {why}"[:120], False)
    finally:
        server.close()


def other_gpu(case, rates):
    """Rows in CUDA shared memory of the first GPU, served by another alone: what both can
    do together at most."""
    if ("other", "cuda") in rates:
        one, other = (statistics.median(rates[m, "cuda"]) for m in ("one", "other"))
        case.table.add("rows on GPU 0 served by GPU 1 alone, over GPU 0", "reported",
                       f"{other / one:.3f} {other:.0f} rows/s", None)


def servers_each(case):
    """Two servers, each of one GPU, behind HAProxy, over one that is asked directly. Then
    one of them is killed."""
    a, root = case.args, repository(case)
    servers = [Server(a, root, f"gpu-{k}", PORT + 30 + 10 * k, CUDA_VISIBLE_DEVICES=str(k))
               for k in range(2)]
    clients = None
    try:
        for server in servers:
            server.wait()
        case.describe(servers[0])
        clients = Clients(servers, "net", case.inputs[0], a.batch,
                          case.outputs[0]["name"], case.out_bytes(a.batch), 3 * EACH)
        behind_balancer(case, root, servers, clients)
    finally:
        if clients:
            clients.close()
        for server in servers:
            server.close()


EACH = 4  # clients of a server: two batches run, two wait


def behind_balancer(case, root, servers, clients):
    """What two serve over one, and the same without the balancer, with more clients, and
    by a backend that only waits as long: which part of the way limits it."""
    front = PORT + 90
    direct, balancer = [s.port for s in servers], balance(case, servers, front)
    ways = {"one": (direct[:1], EACH), "all": ([front], 2 * EACH),
            "without HAProxy": (direct, 2 * EACH),
            f"{3 * EACH} clients": ([front], 3 * EACH)}
    try:
        rates = rates_by_clients(case, clients, ways)
        case.table.at_least("2 servers, one a GPU, behind HAProxy, over one", 1.95,
                            rates["all"] / rates["one"],
                            f"{rates['one']:.0f}, {rates['all']:.0f} rows/s")
        for name in list(ways)[2:]:
            case.table.add(f"the same, {name}", "reported", f"{rates[name] / rates['one']:.3f} "
                           f"{rates[name]:.0f} rows/s", None)
        waiting_servers(case, root, servers, clients, rates["one"], ways)
        clients.use("net")
        killed(case, servers, clients, front)
    finally:
        balancer.terminate()
        balancer.wait()


def rates_by_clients(case, clients, ways):
    """Rows a second, each way in turns; a request that failed is a row of its own."""
    found = {way: [] for way in ways}
    for _ in range(case.args.rounds):
        for way, (ports, n) in ways.items():
            found[way].append(clients.run(ports, case.args.seconds, n=n))
    errors = [e for some in found.values() for f in some for e in f["errors"]]
    case.table.add("errors meanwhile", "0", f"{len(errors)} {errors[:1]}"[:40], not errors)
    return {way: max(median(some, "rows_per_s"), 1) for way, some in found.items()}


def waiting_servers(case, root, servers, clients, rate, ways):
    """The same clients, balancer and servers where a batch computes nothing and takes what
    one takes."""
    case.write_null("waits", case.args.batch / rate * 1e6, case.args.batch, alone=True,
                    root=root)
    for server in servers:
        server.ask("/v2/repository/models/waits/load", {})
    clients.use("waits")
    rates = rates_by_clients(case, clients, ways)
    for name in list(ways)[1:]:
        case.table.add(f"a backend that waits: {name}, over one", "reported",
                       f"{rates[name] / rates['one']:.3f} {rates['one']:.0f}, "
                       f"{rates[name]:.0f} rows/s", None)


def balance(case, servers, front):
    where = {f"TRITON_{k + 1}": f"127.0.0.1:{s.port}" for k, s in enumerate(servers)}
    command = case.args.haproxy or shutil.which(
        "haproxy", path=os.environ["PATH"] + ":/usr/sbin")
    if not command:
        raise Failed("there is no haproxy")
    with open(case.args.out / "haproxy.log", "w", encoding="utf-8") as log:
        balancer = subprocess.Popen(
            [*shlex.split(command), "-db", "-f", ROOT / "serving/haproxy.cfg"], stdout=log,
            stderr=log, env={**os.environ, **where, "BALANCER": f"127.0.0.1:{front}",
                             "MODEL": "net"})
    time.sleep(1)
    if balancer.poll() is not None:
        raise Failed((case.args.out / "haproxy.log").read_text(encoding="utf-8")[-80:])
    return balancer


def killed(case, servers, clients, front):
    """SIGKILL of one, a third into the clients' time."""
    seconds = max(3 * case.args.seconds, 3)

    def kill():
        time.sleep(seconds / 3)
        servers[1].process.kill()

    found = clients.run([front], seconds, kill, 2 * EACH)
    print("after SIGKILL:", found["errors"][:5], file=sys.stderr)
    case.table.add("SIGKILL of one of two behind HAProxy", "0 errors",
                   f"{len(found['errors'])} of {found['answers']}", not found["errors"])
