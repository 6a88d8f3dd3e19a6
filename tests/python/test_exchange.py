# SPDX-License-Identifier: Apache-2.0
"""Buffers and DLPack, both ways, without a copy."""
import gc
import sys
import unittest

import strata
from support import Capsules, buffer, flat, load, positive, relu

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None


class Exchange(unittest.TestCase):
    def test_capsules_of_both_kinds_come_in(self):
        net = load()
        x = strata.pinned_empty((1, 64))
        memoryview(x).cast("B")[:] = buffer((1, 64)).cast("B")
        for versioned in (True, False):
            before = sys.getrefcount(x)
            producer = Capsules(x, versioned)
            self.assertEqual(flat(net(producer).y), positive(flat(x)))
            self.assertEqual(producer.streams, [None])
            del producer
            self.assertEqual(sys.getrefcount(x), before, "the capsule was given back")

    def test_a_capsule_that_nobody_takes_frees_itself(self):
        x = strata.pinned_empty((4,))
        before = sys.getrefcount(x)
        for options in ({}, {"max_version": (1, 1)}, {"max_version": (0, 8)}):
            capsule = x.__dlpack__(**options)
            self.assertIn("dltensor", repr(capsule))
            self.assertEqual(sys.getrefcount(x), before + 1)
            del capsule
            self.assertEqual(sys.getrefcount(x), before)

    def test_what_dlpack_may_not_ask(self):
        x = strata.pinned_empty((4,))
        self.assertEqual(x.__dlpack_device__(), (1, 0))
        for options in ({"dl_device": (2, 0)}, {"stream": 7}):
            with self.subTest(options=options), self.assertRaises(BufferError):
                x.__dlpack__(**options)
        x.__dlpack__(dl_device=(1, 0), copy=False, stream=None)
        self.assertFalse(hasattr(x, "__cuda_array_interface__"))

    def test_buffers_say_what_they_are(self):
        for dtype, code, size in (("fp32", "f", 4), ("fp16", "e", 2), ("i64", "q", 8),
                                  ("u8", "B", 1), ("bool", "?", 1), ("fp64", "d", 8)):
            view = memoryview(strata.pinned_empty((2, 3), dtype))
            self.assertEqual((view.format, view.itemsize, view.shape, view.readonly),
                             (code, size, (2, 3), False))
        with self.assertRaisesRegex(BufferError, "bf16"):
            memoryview(strata.pinned_empty((2,), "bf16"))
        with self.assertRaisesRegex(ValueError, "no dtype 'float'"):
            strata.pinned_empty((2,), "float")
        with self.assertRaisesRegex(ValueError, "dim"):
            strata.pinned_empty((2, -1))
        with self.assertRaises(OverflowError):
            strata.pinned_empty((2**31 - 1,) * 8)

    def test_pinned_memory_is_counted_while_it_lives(self):
        net = load()
        x = net.pinned("x")
        view = memoryview(x)
        del x
        gc.collect()
        self.assertEqual(net.memory["pinned"], 256)
        view.release()
        del view
        self.assertEqual(net.memory["pinned"], 0)

    @unittest.skipUnless(numpy, "no numpy")
    def test_numpy_shares_memory_both_ways(self):
        net = load("4 x 16384")
        y = net(numpy.ones((4, 16384), numpy.float32)).y
        self.assertEqual(y.numpy().ctypes.data, y.address)
        self.assertEqual(numpy.from_dlpack(y).ctypes.data, y.address)
        x = net.pinned("x")
        x[:] = numpy.arange(4 * 16384, dtype=numpy.float32).reshape(4, 16384)
        self.assertEqual(float(x[1, 2]), 16386)
        with net.session(x=x.numpy(), y=y.numpy()) as s:
            s.run()
            self.assertEqual(s["x"].address, x.address)
            self.assertEqual(s.stats(), {"runs": 1, "copied_in": 0, "copied_out": 0})
        self.assertTrue((y.numpy() == x.numpy()).all())
        self.assertEqual(len(x), 4)

    @unittest.skipUnless(numpy, "no numpy")
    def test_views_of_numpy_with_strides(self):
        x = numpy.arange(-32, 32, dtype=numpy.float32).reshape(8, 8).T
        self.assertTrue((load("8 x 8")(x).y.numpy() == numpy.maximum(x, 0)).all())

    def test_a_copy_is_one_if_it_is_asked_for(self):
        class Copied(Capsules):
            def __dlpack__(self, *, stream=None, **options):
                if options and not self.versioned:
                    raise TypeError("no such argument")
                return self.tensor.__dlpack__(copy=True, **options)

        net = strata.load(text=relu("2 x 3 x 4 x 5", "", "format = fp32:nhwc\n"))
        x = buffer((2, 3, 4, 5))
        first = net(x).y
        for versioned in (True, False):
            again = net(Copied(first, versioned)).y
            self.assertEqual(memoryview(again).tolist(), memoryview(first).tolist())
        before = sys.getrefcount(first)
        capsule = first.__dlpack__(copy=True)
        self.assertEqual(sys.getrefcount(first), before, "the copy holds nothing")
        del capsule

    def test_formats_have_the_names_of_bindings(self):
        for name in ("fp32:nchw", "fp32:nhwc"):
            net = load("2 x 3 x 4 x 5", set={"network.output_formats": name})
            self.assertEqual((net(buffer((2, 3, 4, 5))).y.format, net.outputs["y"].format),
                             (name, name))
        self.assertEqual(strata.pinned_empty((3,), "i64").format, "i64:nchw")

    @unittest.skipUnless(torch, "no torch")
    def test_torch_shares_memory_both_ways(self):
        net = load("4 x 16384")
        x = torch.linspace(-1, 1, 4 * 16384).reshape(4, 16384)
        y = torch.from_dlpack(net(x).y)
        self.assertTrue(torch.equal(y, x.relu()))
        out = net.pinned("y")
        self.assertEqual(torch.from_dlpack(out).data_ptr(), out.address)
        half = torch.zeros(4, 16384, dtype=torch.bfloat16)
        with self.assertRaisesRegex(TypeError, "bf16"):
            net(half)

    @unittest.skipUnless(numpy, "no numpy")
    def test_numpy_is_told_why_there_is_no_buffer(self):
        x = strata.pinned_empty((2, 3), "bf16")
        for take in (numpy.asarray, lambda t: t.numpy(), lambda t: t[0]):
            with self.assertRaisesRegex(BufferError, "bf16"):
                take(x)
        x = strata.pinned_empty((2, 3))
        self.assertEqual(x.__array__().ctypes.data, x.address)
        self.assertEqual(x.__array__(numpy.float64).dtype, numpy.float64)
        self.assertNotEqual(x.__array__(copy=True).ctypes.data, x.address)


if __name__ == "__main__":
    unittest.main()
