# SPDX-License-Identifier: Apache-2.0
"""On a GPU: memory that stays there, and streams in order.

PyTorch's kernels are the other side. A kernel that sleeps holds its stream for a tenth of a
second, so that what does not wait for the stream reads what was there before; each test of
order shows that first, by a producer that orders nothing.
"""
import gc
import subprocess
import sys
import unittest

import strata
from support import Capsules, load, relu

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None
try:
    import cupy
except ImportError:
    cupy = None


def has_gpu():
    try:
        strata.pinned_empty((1,), device="cuda:0")
    except strata.Error:
        return False
    return True


GPU = has_gpu()
on_gpu = unittest.skipUnless(GPU, "no GPU")
with_torch = unittest.skipUnless(GPU and torch and torch.cuda.is_available(),
                                 "no GPU" if torch else "no torch")
SHAPE = (4, 16384)
CYCLES = 200_000_000  # a tenth of a second


class Unordered(Capsules):
    """A producer that lets nobody wait for its stream."""

    def __dlpack__(self, *, stream=None, **options):
        return self.tensor.__dlpack__(stream=-1, **options)


def network(**options):
    return load("4 x 16384", device="cuda:0", **options)


def write_late(x, value):
    """On the current stream of PyTorch's."""
    torch.cuda._sleep(CYCLES)
    x.fill_(value)


class Import(unittest.TestCase):
    def test_import_leaves_the_driver_alone(self):
        done = subprocess.run(
            [sys.executable, "-c", "import strata; print([line.split()[-1] for line in "
             "open('/proc/self/maps') if 'libcuda' in line or 'nvidia' in line])"],
            capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout.strip(), "[]", done.stderr)


@on_gpu
class Pinned(unittest.TestCase):
    def test_pinned_memory_is_the_host_s(self):
        x = network().pinned("x")
        self.assertEqual(x.__dlpack_device__(), (1, 0))
        self.assertFalse(hasattr(x, "__cuda_array_interface__"))

    @unittest.skipUnless(torch, "no torch")
    def test_torch_finds_it_pinned(self):
        x = torch.from_dlpack(network().pinned("x"))
        self.assertTrue(x.is_pinned())

    @unittest.skipUnless(numpy, "no numpy")
    def test_memory_of_the_host_comes_and_goes(self):
        net = network()
        x = numpy.linspace(-1, 1, 4 * 16384, dtype=numpy.float32).reshape(SHAPE)
        self.assertTrue((net(x).y.numpy() == numpy.maximum(x, 0)).all())
        pinned, y = net.pinned("x"), net.pinned("y")
        with net.session(x=pinned, y=y) as session:
            for sign in (1, -1):
                pinned[:] = sign * x
                session.run()
                self.assertTrue((y.numpy() == numpy.maximum(sign * x, 0)).all())
            self.assertEqual(session.stats()["copied_in"], 2 * x.nbytes)

    @with_torch
    def test_torch_s_memory_of_the_host_is_taken(self):
        x = torch.linspace(-1, 1, 4 * 16384).reshape(SHAPE)
        self.assertTrue(torch.equal(torch.from_dlpack(network()(x).y), x.relu()))


@with_torch
class Memory(unittest.TestCase):
    def test_outputs_are_not_copied(self):
        net = network()
        x = torch.linspace(-1, 1, 4 * 16384, device="cuda").reshape(SHAPE)
        out = net(x).y
        y = torch.from_dlpack(out)
        self.assertEqual(y.data_ptr(), out.address)
        self.assertTrue(torch.equal(y, x.relu()))
        del out, y
        self.assertEqual(net.stats()["copied_out"], 0)

    def calls(self, net, x, times):
        """So many, each with other values; the bytes that were copied for it."""
        before = net.stats()["copied_in"]
        for value in range(-1, times - 1):
            x.fill_(value)
            y = torch.from_dlpack(net(x).y)
            self.assertEqual((float(y.min()), float(y.max())), (max(value, 0),) * 2)
            del y
        return net.stats()["copied_in"] - before

    def test_inputs_that_come_again_are_used_where_they_are(self):
        net = network()
        x, other = (torch.zeros(SHAPE, device="cuda") for _ in range(2))
        once = x.numel() * 4
        self.assertEqual(self.calls(net, x, 10), 3 * once)
        self.assertEqual(self.calls(net, x, 10), 0)
        self.assertEqual(self.calls(net, other, 1), once)
        self.assertEqual(self.calls(net, x, 1), once)
        self.assertEqual(self.calls(net, other, 20), 6 * once, "it waits longer each time")
        self.assertEqual(float(torch.from_dlpack(net(other.cpu().numpy()).y).max()), 18)
        self.assertEqual(self.calls(net, other, 4), 0)

    def test_addresses_of_sizes_that_vary(self):
        net = load("N x 16384", "[profile]\nN = 2, 4\n", device="cuda:0")
        x = torch.zeros(SHAPE, device="cuda")
        for rows in (x, x[:2], x[:3], x):
            for _ in range(2):
                self.calls(net, rows, 6)

    def test_bound_memory_of_torch_is_used_where_it_is(self):
        x, y = (torch.zeros(SHAPE, device="cuda") for _ in range(2))
        with network().session(x=x, y=y, stream=torch.cuda.current_stream()) as session:
            self.assertEqual((session["x"].address, session["y"].address),
                             (x.data_ptr(), y.data_ptr()))
            for value in (3, -3, 5):
                x.fill_(value)
                session.run()
                self.assertEqual(float(y.sum()), max(value, 0) * x.numel())
            self.assertEqual(session.stats(), {"runs": 3, "copied_in": 0, "copied_out": 0})

    def test_rows_that_are_not_aligned_are_copied_on_the_gpu(self):
        net = load("N x 5", "[profile]\nN = 1, 4\n", device="cuda:0")
        room = torch.linspace(-1, 1, 20, device="cuda").reshape(4, 5)
        for rows in (room[1:], room[1:2], room):
            y = torch.from_dlpack(net(rows).y)
            self.assertTrue(torch.equal(y, rows.relu()))

    def test_the_array_interface_says_the_same(self):
        net = network()
        x = torch.linspace(-1, 1, 4 * 16384, device="cuda").reshape(SHAPE)
        out = net(x).y
        told = out.__cuda_array_interface__
        self.assertEqual((told["data"][0], told["shape"], told["typestr"], told["version"]),
                         (out.address, SHAPE, "<f4", 3))
        y = torch.as_tensor(out, device="cuda")
        self.assertEqual(y.data_ptr(), out.address)
        self.assertTrue(torch.equal(y, x.relu()))

    @unittest.skipUnless(cupy, "no cupy")
    def test_cupy_shares_memory_both_ways(self):
        net = network()
        x = cupy.linspace(-1, 1, 4 * 16384, dtype=cupy.float32).reshape(SHAPE)
        out = net(x).y
        for y in (cupy.from_dlpack(out), cupy.asarray(out)):
            self.assertEqual(y.data.ptr, out.address)
            self.assertTrue(bool((y == cupy.maximum(x, 0)).all()))
        with net.session(x=x) as session:
            self.assertEqual(session["x"].address, x.data.ptr)

    def test_a_network_s_output_is_another_s_input(self):
        first, second = network(), strata.load(text=relu("4 x 16384").replace(
            "kind = relu", "kind = tanh"), device="cuda:0")
        x = torch.linspace(-1, 1, 4 * 16384, device="cuda").reshape(SHAPE)
        y = torch.from_dlpack(second(first(x).y).y)
        self.assertLess(float((y - x.relu().tanh()).abs().max()), 1e-5)

    def test_what_is_not_there_is_refused(self):
        x = torch.zeros(SHAPE, device="cuda")
        with self.assertRaisesRegex(BufferError, "on a GPU, the network on the host"):
            load("4 x 16384")(x)
        net = network()
        out = net(x).y
        for take in (memoryview, lambda t: t.numpy(), numpy.asarray, lambda t: t[0]):
            with self.assertRaisesRegex(BufferError, "on a GPU"):
                take(out)
        with self.assertRaisesRegex(BufferError, "not as"):
            net(x.reshape(16384, 4).T)
        with self.assertRaisesRegex(TypeError, "fp16"):
            net(x.half())
        with self.assertRaisesRegex(TypeError, "host memory"):
            net.submit(x)
        for options in ({"stream": 0}, {"dl_device": (1, 0)}, {"copy": True}):
            with self.subTest(options=options), self.assertRaises(BufferError):
                out.__dlpack__(**options)

    def test_calls_leave_no_memory_of_the_gpu_behind(self):
        net = network()
        x = torch.zeros(SHAPE, device="cuda")

        def calls(n):
            for _ in range(n):
                torch.from_dlpack(net(x).y)
            for _ in range(n // 200):
                with net.session(x=x) as session:
                    session.run()
                net.pinned("x")
            gc.collect()
            torch.cuda.synchronize()
            return torch.cuda.mem_get_info()[0]
        free = calls(400)
        self.assertGreaterEqual(calls(20000), free - (2 << 20))
        self.assertEqual(net.stats()["contexts"], 1)


@with_torch
class Streams(unittest.TestCase):
    def setUp(self):
        self.net = network()
        self.stream = torch.cuda.Stream()
        self.x = torch.zeros(SHAPE, device="cuda")
        self.first(self.net(self.x))  # what is made once is there
        torch.cuda.synchronize()

    def first(self, outputs):
        return float(torch.from_dlpack(outputs.y).flatten()[0].cpu())

    def write(self, value):
        """Zeros now, the value later: in the current stream's order."""
        self.x.zero_()
        torch.cuda.synchronize()
        write_late(self.x, value)

    def test_an_input_is_complete_before_the_run(self):
        with torch.cuda.stream(self.stream):
            self.write(3)
            self.assertEqual(self.first(self.net(Unordered(self.x))), 0, "the test's own")
            self.write(4)
            self.assertEqual(self.first(self.net(self.x)), 4)

    def test_stream_orders_what_dlpack_does_not(self):
        for stream in (self.stream, self.stream.cuda_stream):
            with torch.cuda.stream(self.stream):
                self.write(5)
                self.assertEqual(self.first(self.net(Unordered(self.x), stream=stream)), 5)
        self.write(6)  # the default stream, whose number is 0
        now = torch.cuda.current_stream()
        self.assertEqual(self.first(self.net(Unordered(self.x), stream=now)), 6)

    def test_a_session_is_on_the_stream_that_it_is_given(self):
        for stream in (self.stream, torch.cuda.default_stream()):
            with torch.cuda.stream(stream):
                y = torch.zeros(SHAPE, device="cuda")
                with self.net.session(x=self.x, y=y, stream=stream) as session:
                    for value in (1, 2, 3, 4):
                        self.write(value)
                        session.run()
                        self.assertEqual(float(y.flatten()[0]), value)

    def test_a_session_of_its_own_stream_waits_for_nobody(self):
        with torch.cuda.stream(self.stream):
            y = torch.zeros(SHAPE, device="cuda")
            with self.net.session(x=self.x, y=y) as session:
                for _ in range(3):  # its graph is made
                    session.run()
                self.write(7)
                session.run()
                torch.cuda.current_stream().synchronize()
                self.assertEqual(float(y.flatten()[0]), 0, "the tests above tell nothing")

    def test_outputs_are_complete_for_any_stream(self):
        self.x.fill_(2)
        torch.cuda.synchronize()
        for stream in (self.stream, torch.cuda.Stream(), torch.cuda.default_stream()):
            with torch.cuda.stream(stream):
                y = torch.from_dlpack(self.net(self.x).y)
                self.assertEqual(float((y + 0).sum()), 2 * y.numel())

    def test_a_reader_ends_before_the_next_run_writes(self):
        with torch.cuda.stream(self.stream):
            self.x.fill_(8)
            z = torch.from_dlpack(self.net(self.x).y)
            address = z.data_ptr()
            torch.cuda._sleep(CYCLES)
            copy = z + 0
            del z
            self.x.fill_(9)
            again = torch.from_dlpack(self.net(self.x).y)
            self.assertEqual(again.data_ptr(), address, "the same memory is written")
            self.assertEqual(float(copy.flatten()[0]), 8)
            self.assertEqual(float(again.flatten()[0]), 9)

    def test_threads_with_streams_of_their_own(self):
        from concurrent.futures import ThreadPoolExecutor

        def ask(value):
            with torch.cuda.stream(torch.cuda.Stream()):
                x = torch.full(SHAPE, float(value), device="cuda")
                return [self.first(self.net(x)) for _ in range(20)]
        with ThreadPoolExecutor(8) as pool:
            self.assertEqual(list(pool.map(ask, range(8))), [[v] * 20 for v in range(8)])


if __name__ == "__main__":
    unittest.main()
