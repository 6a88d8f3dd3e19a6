# SPDX-License-Identifier: Apache-2.0
"""Loading, what a network tells, errors, the log, the command, processes."""
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

import strata
from support import buffer, flat, load, positive, relu


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          check=False, cwd=Path(__file__).parent, timeout=600)


class Loading(unittest.TestCase):
    def test_an_engine_file_runs_as_the_network_did(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.ini"
            path.write_text(relu("batch x 8").replace("[input", "[vars]\nbatch = 2\n[input")
                            .replace("batch x", "${batch} x"))
            net = strata.build(path, save=Path(folder) / "net.engine", define={"batch": 3})
            self.assertEqual(net.inputs["x"].shape, (3, 8))
            saved = strata.load(Path(folder) / "net.engine", threads=1, wait="sleep")
            self.assertEqual(flat(saved(buffer((3, 8))).y), positive(flat(buffer((3, 8)))))
            with self.assertRaisesRegex(strata.ArgumentError, "planned already"):
                strata.load(Path(folder) / "net.engine", define={"batch": 3})

    def test_what_build_cannot_save_is_told_before_it_plans(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.ini"
            path.write_text(relu("2 x 8"))
            text = path.read_text()
            with self.assertRaisesRegex(strata.NotFound, "cannot write in folder"):
                strata.build(path, save=Path(folder) / "none" / "net.engine", device="nosuch")
            for change in (lambda: strata.build(path, save=path, device="nosuch"),
                           lambda: strata.load(path).save(path)):
                with self.assertRaisesRegex(strata.ArgumentError, "would be replaced"):
                    change()
            self.assertEqual(path.read_text(), text)
            with self.assertRaisesRegex(TypeError, "a dict is needed"):
                strata.load(path, set="build.fusion=no")

    def test_a_damaged_model_is_told_of(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.onnx"
            path.write_bytes(b":\5")
            with self.assertRaisesRegex(strata.ArgumentError, f"^{path}: byte 0x1: "):
                strata.load(path)

    def test_names_of_files_are_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in (b"net.ini", "ü 日.ini".encode(), b"\xff.ini"):
                path = os.fsencode(folder) + b"/" + name
                with open(path, "w", encoding="ascii") as file:
                    file.write(relu())
                for one in (path, os.fsdecode(path), Path(os.fsdecode(path))):
                    self.assertEqual(strata.load(one).inputs["x"].shape, (1, 64))
                self.assertEqual(len(strata.load(path).explain()["nodes"]), 1)

    def test_names_of_plugins_are_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.fsencode(folder) + b"/\xff.so"
            for one in (file, os.fsdecode(file), Path(os.fsdecode(file))):
                with self.assertRaisesRegex(strata.Error, "not found"):
                    load(plugins=[one])
            for one in (os.fsencode(folder) + b"/\xff", os.fsdecode(file), Path(folder)):
                self.assertEqual(len(load(plugin_path=one).explain()["nodes"]), 1)
            with self.assertRaisesRegex(ValueError, "null byte"):
                load(plugins=[b"a\0b"])

    def test_one_name_is_not_its_letters(self):
        with self.assertRaisesRegex(strata.Error, "plugin /nowhere/x.so: not found"):
            load(plugins="/nowhere/x.so")
        for folders in ("/nowhere", ["/nowhere", b"/neither"], ()):
            self.assertEqual(load(plugin_path=folders).inputs["x"].shape, (1, 64))

    def test_settings_may_be_of_type_bool(self):
        self.assertEqual(load(set={"build.fusion": False}).inputs["x"].shape, (1, 64))
        with self.assertRaisesRegex(strata.ParseError, "fusion=1: .*neither yes nor no"):
            load(set={"build.fusion": 1})

    def test_outputs_are_completed(self):
        self.assertIn("y", dir(load()(buffer((1, 64)))))

    def test_signals_are_heard_while_costs_are_measured(self):
        heard, ended = threading.Event(), threading.Event()
        network, state = strata._network.Network, {"inside": False, "count": 0}

        class Enough(Exception):
            pass

        def hear(number, frame):
            inside, state["inside"] = state["inside"], False  # not again within this
            state["count"] += inside
            if inside and state["count"] == 2:
                load()  # after which the network around it asks again
            heard.set()
            state["inside"] = inside
            if inside and state["count"] == 6:  # two may be heard before it begins, or after
                raise Enough

        def make(*arguments):
            state["inside"] = True
            try:
                return network(*arguments)
            finally:
                state["inside"] = False

        def send():
            while not ended.is_set():
                heard.clear()
                os.kill(os.getpid(), signal.SIGALRM)
                heard.wait(60)

        layers = "".join(f"[layer c{i}]\ntype = Convolution\nfilters = {32 + i}\nkernel = 3\n"
                         "weights = w\n" for i in range(24))
        text = ("[network]\nformat = 1\noutputs = c23\n[input x]\nshape = 1 x 32 x 64 x 64\n"
                "[weights w]\nrandom = 1\n" + layers)
        before = signal.signal(signal.SIGALRM, hear)
        sender = threading.Thread(target=send)
        sender.start()
        try:
            with (mock.patch.object(strata._network, "Network", make),
                  self.assertRaises(Enough)):
                strata.load(text=text, set={"build.costs": "measure"})
        finally:
            ended.set()
            heard.set()
            sender.join()
            signal.signal(signal.SIGALRM, signal.SIG_IGN)  # drops one on its way
            signal.signal(signal.SIGALRM, before)

    def test_what_it_tells(self):
        net = load("N x 8", "[profile]\nN = 1, 4\n")
        self.assertEqual((net.device, net.batch, net.batches), ("host", 4, (1, 4)))
        self.assertEqual(net.names, ("x", "y"))
        self.assertEqual(net.bindings["x"], ("x", (4, 8), "fp32", "fp32:nchw", 128, True))
        self.assertIn("in  x: [4, 8] fp32:nchw", repr(net))
        self.assertEqual(net.labels, [])
        self.assertEqual(set(net.memory), {"weight", "arena", "pinned"})

    def test_what_the_command_tells(self):
        net = load()
        self.assertEqual([n["name"] for n in net.explain()["nodes"]], ["y"])
        self.assertGreater(net.bench("--duration=20ms", "--warmup=5ms")[0]["throughput"], 0)
        profile = net.profile("--runs=3")
        self.assertEqual(profile[0]["name"], "y")
        self.assertIn("<html", profile._repr_html_())
        self.assertIn("<svg", net._repr_html_())
        with self.assertRaisesRegex(strata.Error, "unknown option"):
            net.explain("--no-such-option")


class Errors(unittest.TestCase):
    def test_they_have_a_code_and_places(self):
        with self.assertRaises(strata.ParseError) as caught:
            strata.load(text="[network]\nformat = 1\noutputs = y\nfoo = 1\n[layer y]\ntype=No\n")
        error = caught.exception
        self.assertEqual(error.code, "EPARSE")
        self.assertEqual(error.place, error.diagnostics[0])
        self.assertTrue(error.place.file.endswith("net.ini") and error.place.line > 0)
        with self.assertRaises(strata.NotFound) as caught:
            strata.load("/nowhere/net.ini")
        self.assertIsInstance(caught.exception, LookupError)
        self.assertEqual(caught.exception.place, None)
        for kind, base in ((strata.OutOfMemory, MemoryError), (strata.ArgumentError, ValueError)):
            self.assertTrue(issubclass(kind, base) and issubclass(kind, strata.Error))

    def test_bad_options(self):
        for options in ({}, {"text": relu(), "path": "x"}):
            with self.assertRaises(TypeError):
                strata.load(**options)
        with self.assertRaisesRegex(ValueError, "wait='doze'; one of None, spin"):
            load(wait="doze")
        with self.assertRaisesRegex(ValueError, "math='fp8'; one of default, tensor_op, tf32"):
            load(math="fp8")
        load(math="tf32")
        with self.assertRaises(strata.ArgumentError):
            load(threads=5000)
        with self.assertRaises(strata.Error):
            load(device="moon:0")

    def test_the_log_is_python_s(self):
        with self.assertLogs("strata", logging.DEBUG) as logs:
            load()
        self.assertTrue(all(r.name == "strata" for r in logs.records))


class Process(unittest.TestCase):
    def test_import_brings_little_along(self):
        done = python("import sys; before = set(sys.modules); import strata; print([m for m in"
                      " ('numpy', 'asyncio', 'logging', 'subprocess', 'tempfile')"
                      " if m in sys.modules and m not in before])")
        self.assertEqual(done.stdout.strip(), "[]", done.stderr)

    def test_m_strata_is_the_command(self):
        done = subprocess.run([sys.executable, "-m", "strata", "--version"],
                              capture_output=True, text=True, check=False)
        self.assertIn(strata.__version__, done.stdout)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_forked_child_is_refused_with_the_reason(self):
        done = python("""
import os
from support import *
net = load("8 x 16")
session = net.session(x=buffer((8, 16)))
session.run()
net.submit(buffer((16,))).result()
pid = os.fork()
if pid == 0:
    said = []
    for call in (lambda: net(buffer((8, 16))), session.run, net.session,
                 lambda: net.submit(buffer((16,))), lambda: net.save("x")):
        try:
            call()
        except RuntimeError as error:
            said.append("spawn" in str(error))
    again = load()(buffer((1, 64))).y.shape
    print(said, again, flush=True)
    del net, session
    os._exit(0)
os.waitpid(pid, 0)
print(len(flat(net(buffer((8, 16))).y)))
""")
        self.assertEqual(done.stdout.split("\n")[:2],
                         ["[True, True, True, True, True] (1, 64)", "128"], done.stderr)

    def test_requests_that_wait_at_the_end_are_run(self):
        done = python("""
from support import *
net = load("8 x 16")
for _ in range(200):
    net.submit(buffer((16,))).add_done_callback(lambda f: print(f.result().y.shape))
""")
        self.assertEqual(done.stdout.count("(16,)"), 200, done.stderr)
        self.assertEqual(done.returncode, 0)

    def test_calls_leave_no_memory_behind(self):
        done = python("""
import sys
from support import *
net = load("1 x 256")
x, bad = buffer((1, 256)), buffer((1, 255))
def once():
    net(x), net(x=x)["y"]
    net.submit(x).result()
    with net.session(x=x) as s:
        s.run()
    memoryview(net.pinned("y")).release()
    net(Capsules(net.pinned("x")))
    for wrong in (bad, 3):
        try:
            net(wrong)
        except (TypeError, strata.Error):
            pass
for _ in range(300):
    once()
before, counts = resident(), sys.getrefcount(x)
for _ in range(1500):
    once()
for _ in range(100000):
    net(x)
print(resident() - before < 3 << 20, sys.getrefcount(x) == counts, resident() - before)
""")
        self.assertTrue(done.stdout.startswith("True True"), done.stdout + done.stderr)

    def test_layers_leave_no_memory_behind(self):
        done = python("""
from support import *
text = relu("1 x 256").replace("Activation\\nkind = relu", "Copy")
def define():
    @strata.layer
    def copy(x, y, *, factor=1.0, sizes=(1, 2)):
        memoryview(y).cast("B")[:] = memoryview(x).cast("B")
        if factor > 1:
            raise ValueError(sizes)
    return copy
def calls(net, fails, n):
    for _ in range(n):
        net(x)
        try:
            fails(x)
        except strata.ArgumentError:
            pass
x = buffer((1, 256))
def both():
    return define() and (strata.load(text=text), strata.load(text=text + "factor = 2\\n"))
for _ in range(10):
    calls(*both(), 300)
before = resident()
nets = both()
calls(*nets, 20000)
for _ in range(40):
    calls(*both(), 1)
print(resident() - before < 3 << 20, resident() - before)
""")
        self.assertTrue(done.stdout.startswith("True"), done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
