#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Choose few runs that launch all kernels that any run does:

    choose_runs.py FOLDER KERNELS

FOLDER has, of each process of tests/cuda/candidates.c, choose.N.log, what it printed,
and choose.N.kernels, what tests/cuda/launch_count.c told of it. The runs go to stdout,
"ID CASE WEIGHT" a line, as candidates -k reads them; what they launch to KERNELS,
"LIBRARY NAME" a line. The kernels that the fewest runs launch come first: others often
come with them. Of impls over libraries, whose kernels are not seen, the two quickest
runs are kept.
"""
import glob
import re
import sys

OVERHEAD = 30000  # us that a run takes under a tool beside what it took without


def read_logs(folder):
    """Of each run its time in us, its case and its impl."""
    took, case, impl = {}, {}, {}
    for path in glob.glob(f"{folder}/choose.*.log"):
        with open(path, errors="replace") as file:
            for line in file:
                words = line.split()
                if words[:1] == ["run"] and len(words) >= 4:
                    case.setdefault(words[1], words[2])
                    impl[words[1]] = words[3]
                elif words[:1] == ["took"] and len(words) == 3:
                    took[words[1]] = float(words[2])
    return took, case, impl


def read_launches(folder):
    """Of each run the kernels that it launched."""
    launches = {}
    for path in glob.glob(f"{folder}/choose.*.kernels"):
        run = None
        with open(path, errors="replace") as file:
            for line in file:
                words = line.split()
                if words[:1] == ["run"]:
                    run = words[1]
                elif words[:1] == ["launched"] and run:
                    launches.setdefault(run, set()).add(" ".join(words[1:]))
    return launches


def choose(took, launches):
    of = {}
    for run, kernels in launches.items():
        for kernel in kernels if run in took else ():
            of.setdefault(kernel, []).append(run)
    chosen, seen = set(), set()
    for kernel in sorted(of, key=lambda k: (len(of[k]), k)):
        if kernel not in seen:
            run = min(of[kernel],
                      key=lambda r: (took[r] + OVERHEAD) / len(launches[r] - seen))
            chosen.add(run)
            seen |= launches[run]
    return chosen, seen


def choose_libraries(took, impl):
    chosen, count = set(), {}
    for run in sorted(took, key=took.get):
        if re.match("cudnn|cublaslt", impl[run]) and count.get(impl[run], 0) < 2:
            count[impl[run]] = count.get(impl[run], 0) + 1
            chosen.add(run)
    return chosen


def main():
    folder, kernels = sys.argv[1:]
    took, case, impl = read_logs(folder)
    chosen, seen = choose(took, read_launches(folder))
    with open(kernels, "w") as file:
        file.writelines(f"{kernel}\n" for kernel in sorted(seen))
    for run in sorted(chosen | choose_libraries(took, impl), key=lambda r: (case[r], r)):
        print(run, case[run], OVERHEAD + took[run])


if __name__ == "__main__":
    main()
