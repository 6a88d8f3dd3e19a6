#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks and layers over sequences on one GPU: Strata beside PyTorch, in one run.

    vs_torch.py [--program NET_TIME] [--models FOLDER] [--only NAME,...] [--seconds N]
                [--json FILE]

A line a case, FP16 with tensor cores, both in CUDA graphs, medians between events of runs
one behind the other. Strata takes the plan of measured costs. FOLDER holds what `strata
import` made of what bench/sequences/bert.py and networks.py export: bert128.ini and
bert384.ini whose batch is free (bert.py --free, import --dim=batch=1,8,32), vit1.ini and
vit32.ini. Without FOLDER those rows are left out. RNN and attention are networks of one
layer on random data. "torch / strata" is above 1 where Strata is faster; a goal follows
where there is one.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from layers_vs_torch import half, one, parser_of, strata_time, table  # noqa: E402
from torch_times import captured, milliseconds  # noqa: E402


class Case:
    """path: of an INI file, in place of `ini`; batch: where that leaves it free; work:
    operations, or steps; unit: what one is counted in."""

    indices = None

    def __init__(self, name, make, ini=None, path=None, batch=None, work=0, unit="ms",
                 goal=None):
        self.name, self.make, self.ini, self.path = name, make, ini, path
        self.batch, self.work, self.unit, self.goal = batch, work, unit, goal

    def figure(self, ms):
        return {"ms": ms, "TFLOP/s": self.work / ms * 1e-9 if self.work else 0,
                "us a step": ms * 1e3 / self.work if self.work else 0}[self.unit]

    def reached(self, figure):
        if not self.goal:
            return ""
        good = figure >= self.goal if self.unit == "TFLOP/s" else figure <= self.goal
        return f"; goal {self.goal:g}{'' if good else ' MISSED'}"


def bert(length, batch):
    def make():
        import torch
        from bert import WORDS, Bert
        model = Bert(12, False).eval().half().cuda()
        return model, (torch.randint(0, WORDS, (batch, length), device="cuda"),)
    return make


def vit(batch):
    def make():
        import torch
        import torchvision
        model = torchvision.models.vit_b_16(weights=None).eval().half().cuda()
        return model, (torch.randn(batch, 3, 224, 224, device="cuda").half(),)
    return make


def attention(batch, heads, length, dim, causal):
    def make():
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention

        def run(q, k, v):
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return scaled_dot_product_attention(q, k, v, is_causal=causal)
        shape = (batch, heads, length, dim)
        return run, tuple(torch.randn(*shape, device="cuda").half() for _ in range(3))
    return make


def recurrent(op, hidden, batch, steps, both):
    def make():
        import torch
        module = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[op]
        model = module(hidden, hidden, bidirectional=both).eval().half().cuda()
        return model, (torch.randn(steps, batch, hidden, device="cuda").half(),)
    return make


def network_cases(folder):
    goals = {("bert128", 1): 0.30, ("bert128", 8): 0.52, ("bert128", 32): 1.45,
             ("bert384", 1): 0.40, ("bert384", 32): 4.5, ("vit", 1): 0.40,
             ("vit", 32): 2.7}
    for (net, batch), goal in goals.items():
        path = os.path.join(folder, f"vit{batch}.ini" if net == "vit" else net + ".ini")
        make = vit(batch) if net == "vit" else bert(int(net[4:]), batch)
        free = None if net == "vit" else batch
        yield Case(f"{net}, batch {batch}", make, path=path, batch=free, goal=goal)


def attention_cases():
    for dim, heads, causal, goal in ((128, 16, False, 650), (128, 16, True, 600),
                                     (64, 32, False, 480), (64, 32, True, None)):
        shape = (4, heads, 8192, dim)
        ini = one(f"type = Attention; inputs = q, k, v; causal = {'yes' if causal else 'no'}",
                  *(half(name, *shape) for name in "qkv"), weights=False)
        yield Case(f"attention d={dim}{' causal' if causal else ''}",
                   attention(*shape, causal), ini=ini, goal=goal, unit="TFLOP/s",
                   work=4 * shape[0] * heads * 8192**2 * dim // (2 if causal else 1))


def recurrent_cases():
    for op, hidden, batch, both, goal in (
            ("lstm", 1024, 1, False, 3), ("lstm", 1024, 16, False, 3),
            ("lstm", 1024, 64, False, 5), ("gru", 1024, 1, False, 3),
            ("gru", 1024, 16, False, 3), ("gru", 1024, 64, False, 5),
            ("lstm", 256, 16, True, 4)):
        ini = one(f"type = RNN; op = {op}; hidden = {hidden}; "
                  f"direction = {'bidirectional' if both else 'forward'}; w = w:w; r = w:r; b = w:b",
                  half("x", 100, batch, hidden))
        yield Case(f"{op} {hidden}{' bidirectional' if both else ''}, batch {batch}",
                   recurrent(op, hidden, batch, 100, both), ini=ini, goal=goal, work=100,
                   unit="us a step")


def torch_milliseconds(case):
    try:
        run, given = case.make()
        return milliseconds(captured(run, *given))
    except (RuntimeError, ImportError) as e:
        print(f"# {case.name}: PyTorch: {str(e).strip()[-200:]}", flush=True)
        return None


def measure(options, case, folder):
    more = ("-p", "fp16") if case.path else ()
    more += ("-s", f"profile.batch={case.batch}") if case.batch else ()
    ours, table = strata_time(options, case, folder, *more)
    theirs = torch_milliseconds(case)
    row = {"case": case.name, "strata": case.figure(ours), "unit": case.unit,
           "torch": case.figure(theirs) if theirs else None,
           "torch / strata": theirs / ours if theirs else None, "goal": case.goal,
           "layers": table}
    beside = f"; torch {row['torch']:8.3f}: {theirs / ours:.2f}" if theirs else ""
    print(f"{case.name:32} {row['strata']:8.3f} {case.unit}{beside}"
          f"{case.reached(row['strata'])}", flush=True)
    return row


def main():
    parser = parser_of(__doc__, 300)
    parser.add_argument("--models", help="folder of imported networks")
    options = parser.parse_args()
    chosen = [*(network_cases(options.models) if options.models else ()),
              *attention_cases(), *recurrent_cases()]
    return table(options, chosen, lambda case, folder: measure(options, case, folder))


if __name__ == "__main__":
    sys.exit(main())
