# SPDX-License-Identifier: Apache-2.0
"""Times of PyTorch functions on a GPU, as benchmarks beside it take them."""
import statistics

RUNS, ROUNDS = 20, 3


def captured(run, *arguments):
    """A function that replays run(*arguments) as a CUDA graph."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream), torch.inference_mode():
        for _ in range(3):
            run(*arguments)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.inference_mode():
        run(*arguments)
    return graph.replay


def milliseconds(replay):
    """Median of runs one behind the other, between events; the least of some rounds."""
    import torch

    medians = []
    for _ in range(ROUNDS):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(RUNS + 1)]
        replay()
        events[0].record()
        for event in events[1:]:
            replay()
            event.record()
        torch.cuda.synchronize()
        medians.append(statistics.median(
            a.elapsed_time(b) for a, b in zip(events, events[1:])))
    return min(medians)
