#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 on one GPU: Strata beside PyTorch, in one run.

    resnet50_vs_torch.py [--program NET_TIME] [--nets FOLDER] [--batches 1,8,...]
                         [--precisions fp16,fp32] [--compile default] [--json FILE]

Three rows a batch and precision, all on random data of the same shape, all timed between
CUDA events with runs one behind the other: Strata by its graph; PyTorch eager, captured
into one CUDA graph, channels-last, batch normalisation folded; the same by torch.compile,
captured too. Ratios are to Strata's time: above 1, Strata is
faster. The programs take turns, batch by batch, so that a slow moment of the machine
does not fall on one alone.
"""
import argparse
import json
import statistics
import subprocess
import sys

ROUNDS, RUNS = 5, 20


def strata(options, batch, precision, costs):
    """One line of net_time. Plans are measured once and kept in a cost file."""
    command = [*options.program.split(), "-d", "cuda", "-m", "tensor_op", "-b", str(batch),
               "-p", precision, "-n", "100", *(["-l"] if options.layers else []),
               *costs, f"{options.nets}/resnet50.ini"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(" ".join(command))
    return json.loads(done.stdout)


def fold(module):
    """Batch normalisation into the convolution before it, as in the network file."""
    import torch
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    before = None
    for name, child in list(module.named_children()):
        if isinstance(child, torch.nn.BatchNorm2d):
            setattr(module, before, fuse_conv_bn_eval(getattr(module, before), child))
            setattr(module, name, torch.nn.Identity())
        fold(child)
        before = name
    return module


def captured(run, x):
    """A function that replays run(x) as a CUDA graph."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream), torch.inference_mode():
        for _ in range(3):
            run(x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.inference_mode():
        run(x)
    return graph.replay


def milliseconds(replay):
    """Median of RUNS runs one behind the other, between events."""
    import torch

    events = [torch.cuda.Event(enable_timing=True) for _ in range(RUNS + 1)]
    for _ in range(3):
        replay()
    events[0].record()
    for event in events[1:]:
        replay()
        event.record()
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in zip(events, events[1:]))


def torch_rows(batch, precision, compiled):
    """Name and replay function of each PyTorch way."""
    import torch
    import torchvision

    dtype = torch.float16 if precision == "fp16" else torch.float32
    # As Strata: no TF32, FP32 is FP32.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    model = fold(torchvision.models.resnet50(weights=None).eval())
    model = model.to("cuda", dtype, memory_format=torch.channels_last)
    x = torch.randn(batch, 3, 224, 224, device="cuda", dtype=dtype)
    x = x.contiguous(memory_format=torch.channels_last)
    yield "eager+graph", captured(model, x)
    if compiled:
        torch._dynamo.reset()
        fast = torch.compile(model, mode="max-autotune-no-cudagraphs"
                             if compiled == "autotune" else "default")
        yield "compile+graph", captured(fast, x)


def case(options, batch, precision):
    ways = list(torch_rows(batch, precision, options.compile))
    costs = ["-s", f"build.costs={options.costs}"] if options.costs else []
    times = {name: [] for name, _ in ways}
    times["strata"], line = [], {}
    for _ in range(1 if options.layers else 2):
        for name, replay in ways:
            times[name].append(statistics.median(
                milliseconds(replay) for _ in range(ROUNDS)))
        line = strata(options, batch, precision, costs)
        times["strata"].append(line["device_ms"])
    row = {"batch": batch, "precision": precision,
           **{name: min(values) for name, values in times.items()}}
    row.update({f"{name} / strata": row[name] / row["strata"] for name, _ in ways})
    row.update({key: line[key] for key in
                ("enqueue_us", "weight_bytes", "arena_bytes", "device_bytes")})
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="bench/net_time")
    parser.add_argument("--nets", default="bench/nets")
    parser.add_argument("--batches", default="1,8,32,128,256")
    parser.add_argument("--precisions", default="fp16,fp32")
    parser.add_argument("--compile", choices=["", "default", "autotune"],
                        default="default", help="torch.compile's mode, or none")
    parser.add_argument("--costs", help="build.costs of the network")
    parser.add_argument("--layers", action="store_true", help="Strata's layers on stderr")
    parser.add_argument("--json", help="write the rows here too")
    options = parser.parse_args()
    try:
        import torch
        import torchvision
        print(f"# torch {torch.__version__}, torchvision {torchvision.__version__}, "
              f"cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}")
    except (ImportError, RuntimeError) as e:
        print(f"resnet50_vs_torch.py: skipped: {e}", file=sys.stderr)
        return 0
    rows = []
    for precision in options.precisions.split(","):
        for batch in map(int, options.batches.split(",")):
            rows.append(case(options, batch, precision))
            print(json.dumps({k: round(v, 4) if isinstance(v, float) else v
                              for k, v in rows[-1].items()}), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
