# SPDX-License-Identifier: Apache-2.0
"""@strata.layer: what its functions get, what is refused, who wins, and its check."""
import gc
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Literal

import strata
from support import buffer, flat, load, positive


def words(view):
    """A tensor's elements, for reading and writing without NumPy."""
    view = memoryview(view)
    return view.cast("B").cast(view.format) if 0 not in view.shape else memoryview(bytearray())


def network(kind, shape="2 x 3 x 5", options="", inputs="x", sections="", outputs="y"):
    return (f"[network]\nformat = 1\noutputs = {outputs}\n[input x]\nshape = {shape}\n{sections}"
            f"[layer y]\ntype = {kind}\ninputs = {inputs}\n{options}")


def source(body):
    """A file of layers, which lives as long as the test."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name, "layers.py")
    path.write_text(f"import strata\n{body}")
    return folder, str(path)


class Case(unittest.TestCase):
    def setUp(self):
        logging.getLogger("strata").addHandler(logging.NullHandler())
        self.made = []

    def tearDown(self):
        for one in self.made:
            one.remove()

    def layer(self, function, **options):
        self.made.append(strata.layer(**options)(function))
        return self.made[-1]


class Run(Case):
    def test_a_function_is_a_layer(self):
        def times_two(x, y, *, shift=0.5):
            for i, value in enumerate(words(x)):
                words(y)[i] = 2 * value + shift

        made = self.layer(times_two)
        self.assertEqual(made.name, "python::TimesTwo@1")
        net = strata.load(text=network("TimesTwo", options="shift = -1.25\n"))
        x = buffer((2, 3, 5))
        self.assertEqual(flat(net(x).y), [2 * v - 1.25 for v in flat(x)])
        self.assertEqual(flat(strata.load(text=network("python::TimesTwo"))(x).y),
                         [2 * v + 0.5 for v in flat(x)])
        self.assertIn("in Python, slow: y (python::TimesTwo@1)", repr(net))

    def test_attributes_of_every_type(self):
        seen = []

        def all_kinds(x, y, *, count: int, factor=1.0, on=True, word="plain",
                      mode: Literal["first", "second"] = "second", sizes=(3, 5),
                      parts: tuple[float, ...] = ()):
            seen.append((count, factor, on, word, mode, sizes, parts))
            words(y)[:] = words(x)

        self.layer(all_kinds)
        with self.assertRaisesRegex(strata.Error, "count"):
            strata.load(text=network("AllKinds"))
        strata.load(text=network("AllKinds", options="count = 7\n"))(buffer((2, 3, 5)))
        self.assertEqual(seen[-1], (7, 1.0, True, "plain", "second", (3, 5), ()))
        strata.load(text=network("AllKinds", options=(
            "count = -3\nfactor = 0.5\non = no\nword = two words\nmode = first\nsizes = 4x1x2\n"
            "parts = 0.5, -2\n")))(buffer((2, 3, 5)))
        self.assertEqual(seen[-1], (-3, 0.5, False, "two words", "first", (4, 1, 2), (0.5, -2)))
        with self.assertRaisesRegex(strata.ParseError, "third"):
            strata.load(text=network("AllKinds", options="count = 1\nmode = third\n"))

    def test_shapes_weights_and_several_outputs(self):
        def split_scaled(x, scale, low, high, *, at=1):
            rows, columns = x.shape
            self.assertEqual((scale.shape, low.shape, high.shape),
                             ((columns,), (rows, at), (rows, columns - at)))
            for r in range(rows):
                for c in range(columns):
                    to, k = (low, c) if c < at else (high, c - at)
                    words(to)[r * to.shape[1] + k] = (words(x)[r * columns + c] * words(scale)[c])

        def shape(x, scale, *, at):
            if not 0 < at < x[1]:
                raise ValueError(f"at is {at}, need 1 to {x[1] - 1}")
            return (x[0], at), (x[0], x[1] - at)

        self.layer(split_scaled, outputs=2, shape=shape,
                   weights={"scale": lambda x, *, at: (x[1],)})
        text = ("[network]\nformat = 1\noutputs = y, y:1\n[input x]\nshape = 3 x 7\n"
                "[weights w]\nrandom = 5\n[layer y]\ntype = SplitScaled\nat = 3\nscale = {}\n")
        net = strata.load(text=text.format("w"))
        self.assertEqual([b.shape for b in net.outputs.values()], [(3, 3), (3, 4)])
        one = buffer((3, 7), value=1)
        scale = sum((flat(t)[:t.shape[1]] for t in net(one).values()), [])
        x = buffer((3, 7))
        low, high = net(x).values()
        expected = [[v * s for v, s in zip(row, scale)] for row in x.tolist()]
        self.assertEqual(flat(low), memoryview(low).tolist() and
                         [v for row in memoryview(low).tolist() for v in row])
        for row, a, b in zip(expected, memoryview(low).tolist(), memoryview(high).tolist()):
            for wanted, got in zip(row, a + b):
                self.assertAlmostEqual(wanted, got, 5)
        with self.assertRaisesRegex(strata.Error, r"at is 7, need 1 to 6 \(.*test_layer.py:"):
            strata.load(text=text.format("w").replace("at = 3", "at = 7"))

    def test_other_dtypes_and_formats(self):
        def count_positive(x, y):
            view = memoryview(x).tolist()
            words(y)[:] = words(buffer((2,), "i64"))
            for n, image in enumerate(view):
                words(y)[n] = sum(v > 0 for plane in image for row in plane for v in row)

        seen = []

        def note_strides(x, y):
            seen.append(memoryview(x).strides)
            words(y)[:] = buffer((120,), value=0)

        self.layer(count_positive, formats="fp32:nchw -> i64:nchw", shape=lambda x: x[:1])
        net = strata.load(text=network("CountPositive", "2 x 3 x 4 x 5"))
        x = buffer((2, 3, 4, 5))
        self.assertEqual((net.outputs["y"].dtype, flat(net(x).y)),
                         ("i64", [sum(v > 0 for v in flat(x)[i:i + 60]) for i in (0, 60)]))
        self.layer(note_strides, formats=("fp32:nhwc -> fp32:nchw",))
        strata.load(text=network("NoteStrides", "2 x 3 x 4 x 5"))(x)
        self.assertEqual(seen[-1], (240, 4, 60, 12))

    def test_many_threads_and_the_batcher(self):
        def plus_one(x, y):
            for i, value in enumerate(words(x)):
                words(y)[i] = value + 1

        self.layer(plus_one)
        net = strata.load(text=network("PlusOne", "4 x 6"))
        wrong = []

        def work(value):
            for _ in range(20):
                if flat(net(buffer((4, 6), value=value)).y) != [value + 1] * 24:
                    wrong.append(value)
                if flat(net.submit(buffer((6,), value=value)).result(60).y) != [value + 1] * 6:
                    wrong.append(-value)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])


class Refused(Case):
    def run_of(self, function):
        self.layer(function, name="Subject")
        return strata.load(text=network("Subject"))

    def test_what_a_function_raises_is_told_with_its_place(self):
        def fails(x, y):
            raise IndexError("no such thing")

        with self.assertRaisesRegex(strata.ArgumentError, "run of Subject in Python: IndexError: "
                                    r"no such thing \(.*test_layer.py:\d+\)") as caught:
            self.run_of(fails)(buffer((2, 3, 5)))
        self.assertIn("'y'", caught.exception.message)

        def empty(x, y):
            raise strata.Unsupported("not here", 7)

        with self.assertRaisesRegex(strata.Unsupported, "not here"):
            self.run_of(empty)(buffer((2, 3, 5)))

    def test_an_interrupt_stays_one(self):
        def interrupted(x, y):
            raise KeyboardInterrupt

        net = self.run_of(interrupted)
        # Who is started with SIGINT ignored, as in the background of a shell, has none.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        with self.assertRaises(KeyboardInterrupt):
            try:
                net(buffer((2, 3, 5)))
            except strata.ArgumentError:
                for _ in range(1000):  # where it is raised is the interpreter's to say
                    pass

    def test_outputs_are_written_not_returned(self):
        with self.assertRaisesRegex(strata.Error, r"gives something back.*y\[\.\.\.\] = value"):
            self.run_of(lambda x, y: 7)(buffer((2, 3, 5)))

    def test_inputs_are_only_read(self):
        def writes(x, y):
            words(x)[0] = 1

        with self.assertRaisesRegex(strata.Error, "TypeError: cannot modify read-only memory"):
            self.run_of(writes)(buffer((2, 3, 5)))

    def test_tensors_end_with_the_call(self):
        kept = []

        def keeps(x, y):
            words(y)[:] = words(x)
            kept.append(x)

        net = self.run_of(keeps)
        net(buffer((2, 3, 5)))
        for use in (memoryview, lambda t: t.__dlpack__(max_version=(1, 0)), net,
                    lambda t: t.address):
            with self.assertRaisesRegex(BufferError, "which has ended"):
                use(kept[0])

    def test_views_must_not_be_kept(self):
        kept = []

        def keeps(x, y):
            words(y)[:] = words(x)
            kept.append(memoryview(x))

        with self.assertRaisesRegex(strata.ArgumentError, "keeps views of 1 of its tensors"):
            self.run_of(keeps)(buffer((2, 3, 5)))

        def in_a_cycle(x, y):
            words(y)[:] = words(x)
            cycle = [memoryview(x)]
            cycle.append(cycle)

        x = buffer((2, 3, 5))
        self.assertEqual(flat(self.run_of(in_a_cycle)(x).y), flat(x))

    def test_signatures_and_tables_are_checked(self):
        def two(x, w, y):
            pass

        for error, message, function, options in (
                (TypeError, "tensors are plain parameters", lambda *xs: None, {}),
                (TypeError, "tensors are plain parameters", lambda x, y=None: None, {}),
                (TypeError, "the last 3 are outputs", lambda x, y: None, {"outputs": 3}),
                (TypeError, "must stand before them", two, {"weights": ["v"]}),
                (TypeError, "without inputs needs shape=", lambda y: None, {}),
                (ValueError, "format 'fp16:nc/2hw2'", two, {"formats": "fp16:nc/2hw2"}),
                (strata.Error, "name 'lower' is not", two, {"name": "lower"}),
                (strata.Error, "module.ns 'Upper'", two, {"namespace": "Upper"})):
            with self.subTest(message), self.assertRaisesRegex(error, message):
                strata.layer(**{"name": "Refused", **options})(function)

        def wrong(x, y, *, thing=object()):
            pass

        with self.assertRaisesRegex(TypeError, "attribute 'thing' is of <class 'object'>"):
            strata.layer(wrong)

        def no_choice(x, y, *, mode: Literal["a", "b"] = "c"):
            pass

        with self.assertRaisesRegex(TypeError, "default 'c' is none of its choices"):
            strata.layer(no_choice)
        with self.assertRaisesRegex(strata.ParseError, "no layer type 'Refused'"):
            strata.load(text=network("Refused"))

    def test_the_command_cannot_have_it(self):
        net = self.run_of(lambda x, y: None)
        for ask in (net.explain, net.bench, net.profile):
            with self.assertRaisesRegex(strata.Unsupported, r"layer 'y' \(python::Subject@1\)"):
                ask()
        self.assertIn("python::Subject@1", net._repr_html_())


class Names(Case):
    def test_a_file_wins_and_that_is_said(self):
        def activation(x, y, *, kind="relu"):
            words(y)[:] = buffer((len(words(y)),), value=9)

        self.layer(activation, namespace="proto")
        x = buffer((1, 64))
        with self.assertLogs("strata", "WARNING") as logs:
            self.assertEqual(flat(load()(x).y), positive(flat(x)))
        self.assertRegex("\n".join(logs.output), r"'Activation' alone is core::Activation of .*"
                         r"write proto::Activation for this one")
        net = strata.load(text=network("proto::Activation"))
        self.assertEqual(flat(net(buffer((2, 3, 5))).y), [9] * 30)

    def test_the_newest_function_is_taken_by_networks_to_come(self):
        def writes(value):
            def fill(x, y):
                words(y)[:] = buffer((len(words(y)),), value=value)
            return fill

        x = buffer((2, 3, 5))
        self.layer(writes(1))
        first = strata.load(text=network("Fill"))
        self.layer(writes(2))
        second = strata.load(text=network("Fill"))
        self.assertEqual([flat(net(x).y)[0] for net in (first, second, first)], [1, 2, 1])
        self.made[-1].remove()
        with self.assertRaisesRegex(strata.ParseError, "no layer type 'Fill'"):
            strata.load(text=network("Fill"))
        self.assertEqual(flat(second(x).y)[0], 2)

    def test_an_engine_file_says_what_it_needs(self):
        def negate(x, y):
            for i, value in enumerate(words(x)):
                words(y)[i] = -value

        made = self.layer(negate)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.engine")
            strata.build(text=network("Negate"), save=path)
            x = buffer((2, 3, 5))
            self.assertEqual(flat(strata.load(path)(x).y), [-v for v in flat(x)])
            made.remove()
            with self.assertRaisesRegex(strata.Error, "(?s)layer 'y' needs module python:python."
                                        "Negate@1 .*@strata.layer"):
                strata.load(path)

    def test_layers_end_with_their_last_network(self):
        for i in range(300):  # more than can be alive
            self.layer(lambda x, y: None, name="Short").remove()
            self.made.pop()
        for i in range(150):
            self.layer(lambda x, y: None, name="Short")
            strata.load(text=network("Short"))(buffer((2, 3, 5)))
            self.made.pop().remove()
        gc.collect()
        alive = []
        with self.assertRaisesRegex(RuntimeError, "layers in Python are alive"):
            while len(alive) < 1000:
                alive.append(self.layer(lambda x, y: None, name=f"L{len(alive)}"))
        self.assertGreater(len(alive), 100)


class Check(Case):
    def found(self, function, **options):
        report = self.layer(function, name="Subject").check(quick=True, **options)
        return {f.rule: f for one in report for f in one.findings}

    def test_a_good_layer_passes(self):
        def copy(x, y, *, times=1):
            words(y)[:] = words(x)

        big = load("1 x 4194304", threads=2)  # OpenMP has a team in this process
        big(buffer((1, 4194304), value=1))
        report = self.layer(copy).check(quick=True, seed=random.randrange(1 << 20))
        self.assertTrue(report, str(report))
        self.assertEqual({one.test for one in report if one.verdict == "ok"},
                         {"load", "attributes", "shapes", "round-trip", "values", "memory",
                          "determinism", "concurrency", "leaks", "errors"})

    def test_faults_are_found(self):
        def unwritten(x, y):
            words(y)[:1] = words(x)[:1]

        calls = []

        def counts(x, y):
            calls.append(0)
            for i in range(len(words(y))):
                words(y)[i] = len(calls)

        def ends(x, y):
            os._exit(3)

        def crashes(x, y):
            import ctypes
            ctypes.string_at(8)

        def loops(x, y):
            while True:
                pass

        for function, test, rule in ((unwritten, "memory", "unwritten"),
                                     (counts, "determinism", "nondeterministic"),
                                     (ends, "values", "exit"), (crashes, "values", "crash"),
                                     (loops, "values", "hang")):
            with self.subTest(rule):
                found = self.found(function, test=test, time_limit=1)
                self.assertIn(rule, found)
                self.assertIn("python -m strata check", found[rule].again)
        with self.assertRaisesRegex(strata.ArgumentError, "no test 'speed'"):
            self.found(unwritten, test="speed")

    def test_the_command_checks_a_file(self):
        folder, path = source(
            "@strata.layer\n"
            "def copy(x, y):\n"
            "    memoryview(y).cast('B')[:] = memoryview(x).cast('B')\n"
            "@strata.layer\n"
            "def twice(x, y):\n"
            "    values = memoryview(x).cast('B').cast(memoryview(x).format)\n"
            "    out = memoryview(y).cast('B').cast(memoryview(y).format)\n"
            "    for i, v in enumerate(values):\n"
            "        out[i] = 2 * v if out.itemsize == 8 else 3 * v\n")
        with folder:
            for options, code, text in ((["--layer", "Copy"], 0, "values of python::Copy@1"),
                                        (["--test", "values"], 1,
                                         "again   python -m strata check " + path),
                                        (["--layer", "Other"], 2, "no layer Other; it has")):
                done = subprocess.run([sys.executable, "-m", "strata", "check", path, "--quick",
                                       *options], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, code, done.stdout + done.stderr)
                self.assertIn(text, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
