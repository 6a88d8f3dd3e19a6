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
import pathlib
import shutil
import sys
import tempfile
import time
import traceback

from behaviour import (PORT, digits, lost_apart, lost_device, memory_report, outputs,
                       reload, staged_copies)
from case import ROW, Case
from gpus import batcher, bench_all, one_server, servers_each, soak
from server import Failed, Server
from speed import backend_time, latency, small_requests, throughput
from turns import turns

FAULTY = """[network]
format = 1
outputs = y
[input x]
shape = 1 x 64
[layer y]
type = org.faulty::Poisoned
"""


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


def attempt(case, name, row, *arguments):
    """A row; where it fails, why; none where the time is over."""
    seconds = time.monotonic() - case.args.begun
    if seconds > case.args.limit:
        case.table.add(name, "", f"not begun: {seconds:.0f} s are over", None)
        return
    print(f"== {name}, {seconds:.0f} s", file=sys.stderr, flush=True)
    try:
        row(*arguments)
    except Exception as why:  # pylint: disable=broad-except
        traceback.print_exc()
        case.table.add(name, "", f"{type(why).__name__}: {why}"[:40], False)


def serve(case, name, rows, **env):
    """A server for some rows; why it did not start is a row of its own."""
    try:
        server = Server(case.args, case.repository, name, PORT, **env).wait()
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


def wanted(case, *rows):
    return [r for r in rows if not case.args.rows or r.__name__ in case.args.rows]


def measure(case):
    """What takes several GPUs comes first: a machine with them is the rarer one."""
    attempt(case, "build", case.build)
    for row in wanted(case, *([batcher] if case.args.batcher else []),
                      *([one_server, bench_all, servers_each] if case.args.gpus > 1 else [])):
        attempt(case, row.__name__, row, case)
    attempt(case, "digits on the host", case.build_digits, "digits_host", "host")
    attempt(case, "digits", case.build_digits, "digits", case.first)
    rows = wanted(case, throughput, small_requests, outputs, digits, latency, reload,
                  backend_time, memory_report)
    if rows:
        serve(case, "figures", rows, CUDA_VISIBLE_DEVICES="0")
    for row in wanted(case, turns):
        attempt(case, row.__name__, row, case)
    rows = wanted(case, staged_copies, lost_device)
    if case.on_gpu and case.args.plugin_path and rows:
        attempt(case, "the faulty model", write_faulty, case)
        more = {"STRATA_COPY_COUNT": str(case.args.out / "copies")}
        if case.args.copy_count:
            more["LD_PRELOAD"] = case.args.copy_count
        serve(case, "faults", rows, **more)
    for row in wanted(case, *([lost_apart] if case.args.gpus > 1 else [])):
        if case.on_gpu and case.args.plugin_path:
            attempt(case, row.__name__, row, case)
    for row in wanted(case, *([soak] if case.args.soak > 0 else [])):
        attempt(case, row.__name__, row, case)
    failures = case.args.failures
    case.table.add("loads that were measured anew, or not at all", "0",
                   f"{len(failures)} {'; '.join(failures)}"[:120], not failures)


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
    p.add_argument("--engine", type=pathlib.Path, help="of --net, built before so")
    p.add_argument("--digits", type=pathlib.Path, default=root / "examples/digits")
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--delay", type=int, default=1000, help="us that small requests wait")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=2, help="of each measurement")
    p.add_argument("--budget", default="", help="for the costs of the network, as 10s")
    p.add_argument("--plugin-path", default="", help="folder of tests/cuda_faulty.so")
    p.add_argument("--copy-count", default="", help="bench/serving/copy_count.so")
    p.add_argument("--backend-time", default="", help="bench/serving/backend_time")
    p.add_argument("--batcher", default="", help="bench/serving/batcher")
    p.add_argument("--haproxy", default="", help="its command; default: that of PATH")
    p.add_argument("--soak", type=float, default=0,
                   help="s of loads that begin and end on all GPUs")
    p.add_argument("--limit", type=float, default=1e9, help="s after which no row begins")
    p.add_argument("--server-option", action="append", default=[])
    p.add_argument("--rows", action="append", default=[], help="these alone")
    p.add_argument("--out", type=pathlib.Path, help="logs stay there")
    args = p.parse_args()
    args.begun, args.failures = time.monotonic(), []
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
