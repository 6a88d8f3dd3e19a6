# SPDX-License-Identifier: Apache-2.0
"""Many arrays into one tensor."""
import random
import sys
import threading
import time
import unittest

import strata
from support import Capsules, buffer, flat

try:
    import numpy
except ImportError:
    numpy = None


class Stack(unittest.TestCase):
    def test_rows_become_the_first_of_the_tensor(self):
        out = strata.pinned_empty((3, 4, 5), "u8")
        memoryview(out).cast("B")[:] = random.randbytes(60)
        rest = flat(out)[40:]
        rows = [memoryview(random.randbytes(20)).cast("B", (4, 5)) for _ in range(2)]
        strata.stack(iter(rows), out)
        expected = [v for row in rows for v in row.cast("B").tolist()]
        self.assertEqual(flat(out), expected + rest, "the third row is as it was")
        strata.stack([], out)
        self.assertEqual(flat(out), expected + rest)

    def test_capsules_are_rows_and_given_back(self):
        x = strata.pinned_empty((5,), "i64")
        memoryview(x)[2] = 9
        out, before = strata.pinned_empty((2, 5), "i64"), sys.getrefcount(x)
        strata.stack([x, Capsules(x)], out)
        self.assertEqual(flat(out), flat(x) * 2)
        self.assertEqual(sys.getrefcount(x), before)

    @unittest.skipUnless(numpy, "no numpy")
    def test_crops_of_any_strides(self):
        random_bytes = numpy.random.default_rng().integers
        for channels, low, step in ((3, 0, 1), (1, 3, 1), (4, 2, 2)):
            images = [random_bytes(0, 256, (31, 37, channels), numpy.uint8) for _ in range(4)]
            rows = [i[low:low + 9 * step:step, 5:26].transpose(2, 0, 1) for i in images]
            for out in (numpy.empty((5, channels, 9, 21), numpy.uint8),
                        numpy.empty((5, 9, 21, channels), numpy.uint8).transpose(0, 3, 1, 2)):
                strata.stack(rows, out)
                self.assertTrue((out[:4] == numpy.stack(rows)).all())

    @unittest.skipUnless(numpy, "no numpy")
    def test_large_rows_of_columns(self):
        rows = list(numpy.random.default_rng().random((2, 65, 1031)).transpose(0, 2, 1))
        out = numpy.empty((2, 1031, 65))
        strata.stack(rows, out)
        self.assertTrue((out == numpy.stack(rows)).all())

    def test_what_does_not_fit_is_refused(self):
        out = strata.pinned_empty((2, 4))
        row = buffer((4,))
        for arrays, error, text in (
                ([row] * 3, ValueError, "3 arrays do not fit 'out', which has 2 rows"),
                ([row, buffer((5,))], ValueError, r"arrays\[1\] has another shape"),
                ([row, buffer((1, 4))], ValueError, r"arrays\[1\] has another shape"),
                ([buffer((4,), "fp64")], TypeError, r"arrays\[0\] is fp64, 'out' is fp32"),
                ([row, None], TypeError, r"'arrays\[1\]' is .*NoneType"),
                (7, TypeError, "not iterable")):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                strata.stack(arrays, out)
        with self.assertRaisesRegex(BufferError, "writable|read"):
            strata.stack([buffer((2,), "u8", 1)], memoryview(bytes(2)).cast("B", (1, 2)))
        with self.assertRaisesRegex(ValueError, "do not fit"):
            strata.stack([row], strata.pinned_empty((4,)))
        with self.assertRaisesRegex(TypeError, "takes arrays"):
            strata.stack([row])

    def test_the_interpreter_goes_on_meanwhile(self):
        rows = [strata.pinned_empty((1 << 24,), "u8") for _ in range(2)]
        out, end, counted = strata.pinned_empty((2, 1 << 24), "u8"), [False], [0]

        def count():
            while not end[0]:
                counted[0] += 1
                time.sleep(0)
        thread = threading.Thread(target=count)
        interval = sys.getswitchinterval()
        thread.start()
        sys.setswitchinterval(60)  # nobody is asked to let the other in
        try:
            before = counted[0]
            for _ in range(2000):  # on a busy machine the other waits for a processor, too
                strata.stack(rows, out)
                if counted[0] > before:
                    break
            self.assertGreater(counted[0], before)
        finally:
            sys.setswitchinterval(interval)
            end[0] = True
            thread.join()


if __name__ == "__main__":
    unittest.main()
