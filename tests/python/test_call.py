# SPDX-License-Identifier: Apache-2.0
"""network(...): what goes in, what comes out, what is refused."""
import sys
import threading
import unittest

import strata
from support import buffer, flat, load, positive, relu


class Call(unittest.TestCase):
    def test_outputs_by_name_attribute_and_position(self):
        net = load()
        x = buffer((1, 64))
        for out in (net(x), net(x=x)):
            self.assertEqual(flat(out["y"]), positive(flat(x)))
            self.assertIs(out.y, out["y"])
            self.assertEqual(out.y.shape, (1, 64))
        with self.assertRaisesRegex(AttributeError, "no output 'z'"):
            out.z

    def test_each_call_has_outputs_of_its_own(self):
        net = load()
        first = net(buffer((1, 64), value=1)).y
        net(buffer((1, 64), value=2))
        self.assertEqual(flat(first), [1] * 64)

    def test_large_arrays_are_used_where_they_are(self):
        net = load("4 x 16384")
        x = net.pinned("x")
        memoryview(x).cast("B")[:] = buffer((4, 16384)).cast("B")
        y = net(x).y
        self.assertEqual(flat(y), positive(flat(x)))
        self.assertEqual(net.stats(), {"contexts": 1, "runs": 1, "copied_in": 0,
                                       "copied_out": 0, "in_place": 1})

    def test_a_tensor_of_one_network_is_an_input_of_another(self):
        self.assertEqual(flat(load()(load()(buffer((1, 64))).y).y),
                         positive(flat(buffer((1, 64)))))

    def test_strided_arrays_and_other_formats_are_converted(self):
        net = load("1 x 4")
        wide = buffer((1, 8)).cast("B").cast("f")
        self.assertEqual(flat(load("8")(wide[::1]).y), positive(wide.tolist()))
        self.assertEqual(flat(load("4")(wide[::2]).y), positive(wide.tolist()[::2]))
        with self.assertRaisesRegex(ValueError, "stride of -4 bytes"):
            load("8")(wide[::-1])
        last = strata.load(text=relu("1 x 2 x 2 x 3", "", "format = fp32:nhwc\n"))
        x = buffer((1, 2, 2, 3))
        y = memoryview(last(x).y)
        self.assertEqual(y.tolist(), [[[[max(v, 0) for v in row] for row in plane]
                                       for plane in image] for image in x.tolist()])
        self.assertEqual(net.outputs["y"].format, "fp32:nchw")

    def test_other_dtypes_are_cast_only_where_that_is_wanted(self):
        net = load()
        x = buffer((1, 64), "fp64")
        with self.assertRaisesRegex(TypeError, r"'x' is fp64, the network takes fp32.*cast=True"):
            net(x)
        self.assertEqual(flat(net(x, cast=True).y), positive(flat(x)))

    def test_sizes_that_vary(self):
        net = load("N x T", "[profile]\nN = 1, 4\nT = 1..16: 8, 16\n")
        for shape in ((1, 8), (3, 16), (4, 5), (1, 1), (4, 16)):
            x = buffer(shape)
            y = net(x).y
            self.assertEqual((y.shape, flat(y)), (shape, positive(flat(x))))
        self.assertEqual([d.name for d in net.dimensions], ["N", "T"])
        with self.assertRaisesRegex(strata.ArgumentError, "17"):
            net(buffer((1, 17)))
        self.assertEqual(net(buffer((2, 2))).y.shape, (2, 2))

    def test_inputs_agree_on_the_sizes_of_names(self):
        net = strata.load(text="[network]\nformat = 1\noutputs = y\n"
                          "[profile]\nT = 1..8: 8\n[input a]\nshape = 1 x T\n"
                          "[input b]\nshape = 1 x T\n"
                          "[layer y]\ntype = ElementWise\nop = sum\ninputs = a, b\n")
        self.assertEqual(flat(net(buffer((1, 5), value=1), buffer((1, 5), value=2)).y), [3] * 5)
        for shapes in ((5, 7), (7, 5), (8, 1)):
            with self.assertRaisesRegex(ValueError, "'a' has another size"):
                net(*(buffer((1, n)) for n in shapes))
        self.assertEqual(flat(net(buffer((1, 8), value=1), buffer((1, 8), value=2)).y), [3] * 8)

    def test_sums_follow_their_names(self):
        net = strata.load(text="[network]\nformat = 1\noutputs = y\n"
                          "[profile]\nT = 1..8: 8\nP = 0..8: 8\n"
                          "[input m]\nshape = 1 x P+T\n[input x]\nshape = 1 x T\n"
                          "[input p]\nshape = 1 x P\n"
                          "[layer j]\ntype = Concatenation\naxis = 1\ninputs = p, x\n"
                          "[layer y]\ntype = ElementWise\nop = sum\ninputs = j, m\n")
        x, p = buffer((1, 3)), buffer((1, 2))
        self.assertEqual(net(m=buffer((1, 5)), x=x, p=p).y.shape, (1, 5))
        for wrong in (4, 6):
            with self.assertRaisesRegex(ValueError, "'m' has another size.*the sum of"):
                net(m=buffer((1, wrong)), x=x, p=p)

    def test_what_is_wrong_is_said(self):
        net = load()
        for message, kind, args, named in (
                ("input 'x' is missing", TypeError, (), {}),
                (r"no input 'z'; the network has \('x',\)", TypeError, (), {"z": 1}),
                ("given twice", TypeError, (buffer((1, 64)),), {"x": 1}),
                ("2 inputs are given; the network has 1", TypeError, (1, 2), {}),
                ("neither a buffer nor __dlpack__", TypeError, (7,), {}),
                ("format 'c'.*convert it", TypeError, (memoryview(bytes(64)).cast("c"),), {}),
                ("dims", strata.ArgumentError, (buffer((64,)),), {}),
        ):
            with self.subTest(message), self.assertRaisesRegex(kind, message):
                net(*args, **named)
        self.assertEqual(len(flat(net(buffer((1, 64))).y)), 64)

    def test_threads_share_a_network(self):
        net = load("1 x 4096")
        wrong = []

        def work(value):
            for _ in range(50):
                if flat(net(buffer((1, 4096), value=value)).y) != [value] * 4096:
                    wrong.append(value)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])
        self.assertLessEqual(net.stats()["contexts"], 8)

    def test_the_lock_of_the_interpreter_is_free_during_a_run(self):
        """With switches by themselves out of the way, another thread goes on only where
        this one lets it."""
        net = load("1 x 4194304")
        x = buffer((1, 4194304), value=1)
        session = net.session(x=x)
        count, end = [0], threading.Event()
        woken = threading.Semaphore(0)

        def work():
            while not end.is_set():
                woken.acquire()
                count[0] += 1

        before = sys.getswitchinterval()
        thread = threading.Thread(target=work)
        thread.start()
        sys.setswitchinterval(1000)
        try:
            seen = 0
            for _ in range(1000):
                at = count[0]
                woken.release()
                session.run()
                seen += count[0] > at
                if seen:
                    break
        finally:
            sys.setswitchinterval(before)
            end.set()
            woken.release()
            thread.join()
        self.assertTrue(seen)


if __name__ == "__main__":
    unittest.main()
