# SPDX-License-Identifier: Apache-2.0
"""What the tests share: networks as text, and arrays without NumPy."""
import gc
import math
import re
from array import array
from pathlib import Path

import strata

CODES = {"fp32": "f", "i32": "i", "i64": "q", "fp64": "d", "u8": "B", "int8": "b"}


def relu(shape="1 x 64", profile="", extra=""):
    return (f"[network]\nformat = 1\noutputs = y\n{profile}[input x]\nshape = {shape}\n{extra}"
            "[layer y]\ntype = Activation\nkind = relu\n")


def load(*args, **options):
    """By the analytic costs: nothing is measured."""
    return strata.load(text=relu(*args), **options)


def buffer(shape, dtype="fp32", value=None):
    """A memoryview of a shape, of small numbers of both signs."""
    n = math.prod(shape)
    values = array(CODES[dtype], (value if value is not None else i % 7 - 3 for i in range(n)))
    return memoryview(values).cast("B").cast(CODES[dtype], list(shape))


def flat(tensor):
    view = memoryview(tensor)
    return view.cast("B").cast(view.format).tolist() if view.c_contiguous else None


def positive(values):
    return [max(v, 0) for v in values]


def resident():
    """Bytes; those of status are off by what each processor has not yet told."""
    gc.collect()
    rollup = Path("/proc/self/smaps_rollup")
    text = (rollup if rollup.exists() else Path("/proc/self/status")).read_text("ascii")
    return int(re.search(r"^(?:Rss|VmRSS): *(\d+) kB", text, re.M | re.A)[1]) * 1024


class Capsules:
    """A producer that has DLPack and nothing else; of old ones where versioned is False."""

    def __init__(self, tensor, versioned=True):
        self.tensor, self.versioned, self.streams = tensor, versioned, []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **options):
        if not self.versioned and options:
            raise TypeError("no such argument")
        self.streams.append(stream)
        return self.tensor.__dlpack__(**options)
