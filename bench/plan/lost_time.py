#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Why a network takes as long as it does: its steps, their floors, and what each loses.

    lost_time.py LAYERS.txt [--json ROWS] [--copy TB/S] [--peak TFLOP/S] [--launch US]
                 [--only NET] [--top N] [--kinds]

LAYERS.txt is what networks_vs_torch.py --layers, or net_time -l, wrote; ROWS its --json,
for what the whole network took.

A step's floor is the longer of its bytes (inputs, outputs and weights, once) at the speed
of a copy, and its operations at the peak that tensor cores hold. Its time is the plan's
price, taken in a graph behind another kernel; where the file has none (and with --events)
what two events around it measured, which is 1 to 2 us more. What is lost is the
difference, and steps are sorted by that.

A step that computes nothing still takes its launch, its wait for the one before and its
end. A column of the summary has that as the least of each step, --launch us: what a plan
of as many kernels can reach. Copies reach 3.0 TB/s on an H100 and 4.1 to 4.2 on an
H200.
"""
import argparse
import collections
import json
import re
import sys

STEP = re.compile(
    r"#\s+(?P<us>[\d.]+)\s+[\d.]+%\s+(?:(?P<price>[\d.]+)\s+)?"
    r"(?:(?P<place>[\d.]+)\s+)?"
    r"(?P<floor>[\d.]+)\s+\d+%\s+(?P<mb>[\d.]+)\s+(?P<gflop>[\d.]+)\s+"
    r"(?P<impl>\S+)\s+(?P<formats>\S+ > \S+)\s+(?P<rest>.*)")
HEAD = re.compile(r"# (?P<net>\w+), (?P<precision>\w+), batch (?P<batch>\d+)$")


class Step:
    """A line of the table: times in us."""

    def __init__(self, found, typed, options):
        self.impl, self.formats = found["impl"], found["formats"].replace(" > ", " → ")
        rest = found["rest"].strip()
        self.type, self.name = rest.split(None, 1) if typed else ("", rest)
        self.us = float(found["us"] if options.events or not found["price"]
                        else found["price"])
        self.memory = float(found["mb"]) / options.copy
        self.arithmetic = float(found["gflop"]) / options.peak * 1e3
        self.floor = max(self.memory, self.arithmetic)
        self.lost = self.us - self.floor
        self.launched = max(self.floor, options.launch)

    def bound(self):
        return "operations" if self.arithmetic > self.memory else "bytes"

    def kind(self):
        return f"{self.type or '-'}, {self.impl}"


def read_networks(path, options):
    """Steps by (net, precision, batch), in the file's order."""
    networks, steps, typed = {}, [], False
    with open(path, encoding="utf-8") as f:
        for line in f:
            head, step = HEAD.match(line.rstrip()), STEP.match(line)
            if head:
                row = (head["net"], head["precision"], int(head["batch"]))
                steps = networks[row] = []
            elif line.startswith("#") and "formats" in line:
                typed = "type" in line.split()
                if not networks:
                    steps = networks[("network", "", 0)] = []
            elif step:
                steps.append(Step(step, typed, options))
    return networks


def measured(path):
    if not path:
        return {}
    with open(path, encoding="utf-8") as f:
        return {(r["net"], r["precision"], r["batch"]): r.get("strata")
                for r in json.load(f)}


def print_steps(steps, top):
    print("| lost us | us | floor us | share | bound by | impl | formats | layer |")
    print("|---" * 8 + "|")
    steps = sorted(steps, key=lambda s: -s.lost)
    for s in steps[:top]:
        print(f"| {s.lost:.1f} | {s.us:.1f} | {s.floor:.1f} | {s.floor / s.us:.2f} | "
              f"{s.bound()} | {s.impl} | {s.formats} | {s.name} |")
    rest = steps[top:]
    if rest:
        us, floor = sum(s.us for s in rest), sum(s.floor for s in rest)
        print(f"| {us - floor:.1f} | {us:.1f} | {floor:.1f} | {floor / us:.2f} | | | | "
              f"{len(rest)} others |")


def print_kinds(steps):
    kinds = collections.defaultdict(list)
    for s in steps:
        kinds[s.kind()].append(s)
    print("| type, impl | steps | us | floor us | share | lost us | us a step |")
    print("|---" * 7 + "|")
    for kind, of in sorted(kinds.items(), key=lambda k: -sum(s.lost for s in k[1])):
        us, floor = sum(s.us for s in of), sum(s.floor for s in of)
        print(f"| {kind} | {len(of)} | {us:.1f} | {floor:.1f} | {floor / us:.2f} | "
              f"{us - floor:.1f} | {us / len(of):.2f} |")


def print_summary(networks, whole):
    print("| network, precision, batch | steps | measured us | of steps us | floors us "
          "| share | at least a launch each us | reformats |")
    print("|---" * 8 + "|")
    for row, steps in networks.items():
        us, floor = sum(s.us for s in steps), sum(s.floor for s in steps)
        ms = whole.get(row)
        reformats = sum(s.impl == "(reformat)" for s in steps)
        print(f"| {', '.join(map(str, row))} | {len(steps)} | "
              f"{f'{ms * 1e3:.0f}' if ms else '-'} | {us:.0f} | {floor:.0f} | "
              f"{floor / (ms * 1e3 if ms else us):.2f} | "
              f"{sum(s.launched for s in steps):.0f} | {reformats} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("layers", metavar="LAYERS.txt")
    parser.add_argument("--json", help="rows of networks_vs_torch.py")
    parser.add_argument("--copy", type=float, default=4.2, help="TB/s (4.2)")
    parser.add_argument("--peak", type=float, default=780, help="TFLOP/s (780)")
    parser.add_argument("--launch", type=float, default=2.0, metavar="US",
                        help="what a step takes at least (2.0)")
    parser.add_argument("--only", help="one network, by its name")
    parser.add_argument("--top", type=int, default=12, help="steps of each (12)")
    parser.add_argument("--kinds", action="store_true",
                        help="a line for each type and impl, not each step")
    parser.add_argument("--events", action="store_true", help="times between events")
    options = parser.parse_args()
    read = read_networks(options.layers, options)
    networks = {row: steps for row, steps in read.items()
                if steps and options.only in (None, row[0])}
    if not networks:
        sys.exit(f"lost_time.py: {options.layers} has no table of layers"
                 + (f" of {options.only}" if options.only else ""))
    for row, steps in networks.items():
        print(f"\n{', '.join(map(str, row))}:\n")
        print_kinds(steps) if options.kinds else print_steps(steps, options.top)
    print()
    print_summary(networks, measured(options.json))
    return 0


if __name__ == "__main__":
    sys.exit(main())
