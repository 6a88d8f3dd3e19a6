#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast plans are that were made from different costs: one network after another, the
sources of costs in turns, medians of the rounds.

    default_plans.py [--strata FILE] [--rounds N] [--threads N] [--device NAME]
                     NETWORK.ini ...

Measures each network's costs once into a file of its own (the measured plan), then times
the plan of analytic costs beside it, and prints both predictions. Ratios above 1 are the
time that a plan without measurements loses. Standard library only.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time


def strata(arguments, *words):
    done = subprocess.run([arguments.strata, *words], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stderr}")
    return done.stdout


def options(arguments, costs):
    words = ["--device", arguments.device, "--costs", costs]
    if arguments.threads:
        words += ["--set", f"runtime.threads={arguments.threads}"]
    return words


def median_ms(arguments, network, costs):
    text = strata(arguments, "bench", network, "--duration", "400ms", "--warmup", "100ms",
                  "-o", "json", *options(arguments, costs))
    return json.loads(text)[0]["latency"]["median_ms"]


def predicted_ms(arguments, network, costs):
    text = strata(arguments, "explain", network, "-o", "json", *options(arguments, costs))
    return json.loads(text)["totals"]["us"] / 1e3


def compare(arguments, network, folder):
    file = os.path.join(folder, "costs")
    begin = time.monotonic()
    strata(arguments, "explain", network, *options(arguments, "measure"),
           "--save-costs", file)
    measuring = time.monotonic() - begin
    times = {"analytic": [], file: []}
    for _ in range(arguments.rounds):
        for costs, ms in times.items():
            ms.append(median_ms(arguments, network, costs))
    analytic, measured = (statistics.median(ms) for ms in times.values())
    said = [predicted_ms(arguments, network, costs) for costs in times]
    os.remove(file)
    print(f"{os.path.basename(network):28} {analytic:9.3f} {measured:9.3f} "
          f"{analytic / measured:6.2f} {said[0] / analytic:8.2f} "
          f"{said[1] / measured:8.2f} {measuring:8.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--strata", default="./strata")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="host")
    arguments = parser.parse_args()
    print(f"{'network':28} {'analytic':>9} {'measured':>9} {'ratio':>6} "
          f"{'said/is':>8} {'said/is':>8} {'first, s':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for network in arguments.networks:
            compare(arguments, network, folder)


if __name__ == "__main__":
    main()
