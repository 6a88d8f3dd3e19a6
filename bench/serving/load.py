# SPDX-License-Identifier: Apache-2.0
"""Keeps a served model busy over gRPC and system shared memory, and says what it serves.

    load.py HOST:GRPC-PORT MODEL [--rows N] [--clients N] [--seconds S]

Each client is a process with memory of its own, which asks again as soon as it has its
answer. Nothing is sent but names: inputs and outputs stay in shared memory, inputs as they
are at first. Prints one line of JSON: rows a second, and p50 and p99 of the calls in ms.
Several servers, with "," between, have the clients dealt to them in turn.
"""
import argparse
import json
import multiprocessing
import os
import time

import numpy as np

BYTES = {"FP32": 4, "FP16": 2, "BF16": 2, "FP64": 8, "INT8": 1, "UINT8": 1, "INT32": 4,
         "INT64": 8, "BOOL": 1}


def describe(tensor, rows):
    shape = [rows] + [int(n) for n in tensor.shape[1:]]
    return tensor.name, tensor.datatype, shape, int(np.prod(shape)) * BYTES[tensor.datatype]


def client(index, target, args, start, found):
    import tritonclient.grpc as grpc
    import tritonclient.utils.shared_memory as shm
    server = grpc.InferenceServerClient(target)
    model = server.get_model_metadata(args.model)
    inputs = [describe(t, args.rows) for t in model.inputs]
    outputs = [describe(t, args.rows) for t in model.outputs]
    page = 4096
    whole = sum(-(-t[3] // page) * page for t in inputs + outputs)
    name = f"strata-load-{os.getpid()}"
    region = shm.create_shared_memory_region(name, "/" + name, whole)
    server.register_system_shared_memory(name, "/" + name, whole)
    at, given, wanted = 0, [], []
    for tensor, datatype, shape, size in inputs:
        one = grpc.InferInput(tensor, shape, datatype)
        one.set_shared_memory(name, size, at)
        given.append(one)
        at += -(-size // page) * page
    for tensor, _, _, size in outputs:
        one = grpc.InferRequestedOutput(tensor)
        one.set_shared_memory(name, size, at)
        wanted.append(one)
        at += -(-size // page) * page
    server.infer(args.model, given, outputs=wanted)
    start.wait()
    begin, took = time.monotonic(), []
    while time.monotonic() - begin < args.seconds:
        asked = time.monotonic()
        server.infer(args.model, given, outputs=wanted)
        took.append(time.monotonic() - asked)
    found.put((len(took) / (time.monotonic() - begin), took))
    server.unregister_system_shared_memory(name)
    shm.destroy_shared_memory_region(region)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", help="HOST:PORT, several with ',' between")
    parser.add_argument("model")
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5)
    args = parser.parse_args()
    targets = args.targets.split(",")
    start, found = multiprocessing.Barrier(args.clients), multiprocessing.Queue()
    clients = [multiprocessing.Process(target=client, args=(
        i, targets[i % len(targets)], args, start, found)) for i in range(args.clients)]
    for one in clients:
        one.start()
    results = [found.get() for _ in clients]
    for one in clients:
        one.join()
    times = np.sort(np.concatenate([took for _, took in results])) * 1e3
    print(json.dumps({"rows_per_s": round(sum(rate for rate, _ in results) * args.rows, 1),
                      "p50_ms": round(float(np.percentile(times, 50)), 3),
                      "p99_ms": round(float(np.percentile(times, 99)), 3),
                      "calls": len(times)}))


if __name__ == "__main__":
    main()
