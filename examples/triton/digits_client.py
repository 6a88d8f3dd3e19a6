# SPDX-License-Identifier: Apache-2.0
"""Sends the test digits to a server of the model `digits`, counts what it reads right.

    digits_client.py FOLDER [--way http|grpc|shm] [--http HOST:PORT] [--grpc HOST:PORT]
                     [--rows N] [--repeat N] [--save FILE.npy]

FOLDER holds the two IDX files. shm sends by gRPC what lies in shared memory. A Python
client takes longer than the server: see docs/triton.md for what the server itself takes.
"""
import argparse
import os
import pathlib
import sys
import time

import numpy as np

SIDE, CLASSES = 8, 10


def read_digits(folder):
    """Images as the network's [input] section prepares them, and their labels."""
    images = np.fromfile(folder / "digits-test-images.idx", np.uint8)[16:]
    labels = np.fromfile(folder / "digits-test-labels.idx", np.uint8)[8:]
    pixels = images.astype(np.float32) * np.float32(1 / 240)
    return pixels.reshape(-1, 1, SIDE, SIDE), labels


def client_of(way, args):
    if way == "http":
        import tritonclient.http as client
        return client, client.InferenceServerClient(args.http)
    import tritonclient.grpc as client
    return client, client.InferenceServerClient(args.grpc)


class Sender:
    """Batches by one of the ways; each gives its rows of `prob`."""

    def __init__(self, way, args):
        self.kind, self.client = client_of(way, args)
        self.model, self.shared = args.model, None
        if way == "shm":
            self.open_shared(args.rows)

    def open_shared(self, rows):
        import tritonclient.utils.shared_memory as shm
        self.shm, self.name = shm, f"strata-digits-{os.getpid()}"
        self.in_bytes, self.out_bytes = rows * SIDE * SIDE * 4, rows * CLASSES * 4
        key, size = "/" + self.name, self.in_bytes + self.out_bytes
        self.shared = shm.create_shared_memory_region(self.name, key, size)
        self.client.register_system_shared_memory(self.name, key, size)

    def close(self):
        if self.shared is not None:
            self.client.unregister_system_shared_memory(self.name)
            self.shm.destroy_shared_memory_region(self.shared)
        self.client.close()

    def __call__(self, rows):
        given = self.kind.InferInput("image", list(rows.shape), "FP32")
        wanted = self.kind.InferRequestedOutput("prob")
        if self.shared is None:
            given.set_data_from_numpy(rows)
            answer = self.client.infer(self.model, [given], outputs=[wanted])
            return answer.as_numpy("prob").reshape(-1, CLASSES)
        self.shm.set_shared_memory_region(self.shared, [rows])
        given.set_shared_memory(self.name, rows.nbytes)
        wanted.set_shared_memory(self.name, len(rows) * CLASSES * 4, self.in_bytes)
        self.client.infer(self.model, [given], outputs=[wanted])
        return self.shm.get_contents_as_numpy(self.shared, np.float32,
                                              [len(rows), CLASSES], self.in_bytes).copy()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--way", choices=("http", "grpc", "shm"), default="http")
    parser.add_argument("--http", default="localhost:8000")
    parser.add_argument("--grpc", default="localhost:8001")
    parser.add_argument("--model", default="digits")
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--save", type=pathlib.Path)
    args = parser.parse_args()
    images, labels = read_digits(args.folder)
    send = Sender(args.way, args)
    begin = time.monotonic()
    for _ in range(args.repeat):
        prob = np.concatenate([send(images[at:at + args.rows])
                               for at in range(0, len(images), args.rows)])
    took = time.monotonic() - begin
    send.close()
    if args.save:
        np.save(args.save, prob)
    right = int((prob.argmax(axis=1) == labels).sum())
    print(f"{args.way}: {right} of {len(labels)} right, "
          f"{args.repeat * len(labels) / took:.0f} images/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
