# SPDX-License-Identifier: Apache-2.0
"""Classify images: processors decode while the GPU computes.

    pipeline.py NETWORK [--device cuda:0] [--lanes N] [--in-flight N] [--raw] IMAGE...

NETWORK (an INI file or an engine) takes rows of pixels, u8 in NHWC; it has what turns them
into numbers. Each lane is a thread with a session of its own: it decodes a batch into
pinned memory, and runs it, at most --in-flight lanes at a time: enough for the GPU to be
busy, and the others decode meanwhile. Decoders and runs leave the interpreter's lock.
Images are decoded by Pillow; with --raw files are rows as the network takes them.
"""
import argparse
import itertools
import queue
import threading

import numpy
import strata


class Lanes:
    """Batches of items through a network, by threads; fill(items, rows) writes the first of
    the rows."""

    def __init__(self, net, fill, lanes, in_flight):
        (self.input, binding), = net.inputs.items()
        (self.output, _), = net.outputs.items()
        self.rows, self.fill = binding.shape[0], fill
        self.lanes = [(net.pinned(self.input), net.pinned(self.output)) for _ in range(lanes)]
        self.sessions = [net.session(**{self.input: x, self.output: y}) for x, y in self.lanes]
        self.turns = queue.SimpleQueue()
        for _ in range(in_flight):
            self.turns.put(None)

    def work(self, lane, batches, take):
        x, y = (tensor.numpy() for tensor in self.lanes[lane])
        run = self.sessions[lane].run
        while True:
            with self.lock:
                first, items = next(batches, (0, None))
            if not items:
                return
            self.fill(items, x)
            self.turns.get()
            run()
            self.turns.put(None)
            take(first, y[:len(items)])

    def run(self, items, take):
        """take(first, rows) gets the outputs of items from the first on, from any thread."""
        self.lock = threading.Lock()
        whole = iter(items)
        batches = zip(itertools.count(0, self.rows),
                      iter(lambda: list(itertools.islice(whole, self.rows)), []))
        threads = [threading.Thread(target=self.work, args=(i, batches, take))
                   for i in range(len(self.lanes))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def decode_images(paths, rows):
    for path, row in zip(paths, rows):
        decode_image(path, row)


def decode_image(path, row):
    from PIL import Image

    with Image.open(path) as image:
        height, width = row.shape[1:]
        image.draft("RGB", (width, height))  # JPEG: no more pixels than are needed
        pixels = image.convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
    row[:] = numpy.asarray(pixels).transpose(2, 0, 1)


def read_raw(paths, rows):
    for path, row in zip(paths, rows):
        with open(path, "rb") as file:
            file.readinto(row.transpose(1, 2, 0))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("network")
    parser.add_argument("images", nargs="+")
    parser.add_argument("--device", default="host")
    parser.add_argument("--lanes", type=int, default=4)
    parser.add_argument("--in-flight", type=int, default=3)
    parser.add_argument("--raw", action="store_true")
    options = parser.parse_args()
    net = strata.load(options.network, device=options.device)
    classes = {}

    def take(first, rows):
        for i, row in enumerate(rows):
            classes[first + i] = int(row.argmax())
    fill = read_raw if options.raw else decode_images
    Lanes(net, fill, options.lanes, options.in_flight).run(options.images, take)
    for i, image in enumerate(options.images):
        print(image, net.labels[classes[i]] if net.labels else classes[i])


if __name__ == "__main__":
    main()
