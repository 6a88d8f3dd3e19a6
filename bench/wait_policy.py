#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What waiting costs: latency on an idle and a busy machine, by policy.

    python3 bench/wait_policy.py --program ./strata --loads 0,2,4,8,16 NET...

NET is a network or an engine file. A load of N is N busy loops beside the benchmark. The
policies take turns, each turn a process of its own, so that a machine whose speed changes
is as slow for all of them:

    active    OMP_WAIT_POLICY=active, passive OMP_WAIT_POLICY=passive
    default   the environment says nothing and the network neither
    spin, yield, sleep   [runtime] wait

With --contexts A,B,... instead, contexts run beside each other (a stream each): runs a
second and latencies of each number, by policy. Prints medians over the rounds, and their
ratios to active and passive. --set goes to the command.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys

# What a network says has no effect where these are set (docs/serving.md#waiting).
VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
ENVIRONMENT = {"active": {"OMP_WAIT_POLICY": "active"},
               "passive": {"OMP_WAIT_POLICY": "passive"}}


def default_environment(threads=None):
    """This process's, but for how teams wait: figures shall be of who sets nothing."""
    environment = {k: v for k, v in os.environ.items() if k not in VARIABLES}
    if threads:
        environment["OMP_NUM_THREADS"] = str(threads)
    return environment


@contextlib.contextmanager
def busy_loops(n):
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
             for _ in range(n)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def bench(arguments, net, policy, contexts):
    """Median and p95 latency in ms, and runs a second."""
    environment = {**default_environment(), **ENVIRONMENT.get(policy, {})}
    command = [arguments.program, "bench", net, f"--streams={contexts}",
               f"--duration={arguments.seconds}", "--warmUp=200", "-o", "json"]
    sets = list(arguments.set)
    if policy in ("spin", "yield", "sleep"):
        sets.append(f"runtime.wait={policy}")
    for s in sets:
        command += ["--set", s]
    out = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    result, = json.loads(out.stdout)
    return (result["latency"]["median_ms"], result["latency"]["p95_ms"],
            result["throughput"])


def measure(arguments, net, load, contexts):
    samples = {p: [] for p in arguments.policies}
    with busy_loops(load):
        for _ in range(arguments.rounds):
            for policy in arguments.policies:
                samples[policy].append(bench(arguments, net, policy, contexts))
    return {p: [statistics.median(x) for x in zip(*s)] for p, s in samples.items()}


def ratio(medians, policy, to):
    return f"{medians[policy][0] / medians[to][0]:10.2f}" if to in medians else " " * 10


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("nets", nargs="+", metavar="NET")
    parser.add_argument("--program", default="strata")
    parser.add_argument("--loads", default="0,2,4,8,16")
    parser.add_argument("--contexts", default="1")
    parser.add_argument("--policies", default="active,default,passive")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()
    arguments.policies = arguments.policies.split(",")
    print(f"{'network':24} {'load':>4} {'contexts':>8} {'policy':8} {'ms':>9} {'p95 ms':>9}"
          f" {'runs/s':>8} {'/active':>10} {'/passive':>10}")
    for net in arguments.nets:
        for load in map(int, arguments.loads.split(",")):
            for contexts in map(int, arguments.contexts.split(",")):
                medians = measure(arguments, net, load, contexts)
                for policy, (median, p95, rate) in medians.items():
                    print(f"{os.path.basename(net):24} {load:4} {contexts:8} {policy:8}"
                          f" {median:9.3f} {p95:9.3f} {rate:8.1f}"
                          f" {ratio(medians, policy, 'active')}"
                          f" {ratio(medians, policy, 'passive')}", flush=True)


if __name__ == "__main__":
    main()
