# SPDX-License-Identifier: Apache-2.0
"""What all rows of acceptance.py share: the table, the engines and their measurement."""
import json
import shlex
import shutil
import statistics
import sys

import numpy as np

from server import load, run

ROW = "| {:<58} | {:<18} | {:<40} | {:<3} |"


class Table:
    """Rows as they are found, printed again at the end."""

    def __init__(self):
        self.rows = []

    def add(self, figure, bound, found, met):
        """`met`: True, False, or None where nothing is asked."""
        self.rows.append((figure, bound, found, {True: "yes", False: "NO", None: ""}[met]))
        print(ROW.format(*self.rows[-1]), flush=True)

    def at_least(self, figure, bound, found, detail=""):
        self.add(figure, f">= {bound}", f"{found:.3f} {detail}".strip(), found >= bound)

    def at_most(self, figure, bound, unit, found, detail=""):
        self.add(figure, f"<= {bound} {unit}", f"{found:.1f} {unit} {detail}".strip(),
                 found <= bound)

    def limit(self, figure, why, found):
        """What nobody can mend, of which the documentation says why."""
        self.add(figure, why, found, None)

    def missed(self):
        return [r[0] for r in self.rows if r[3] == "NO"]


class Case:
    """The engines, the repository and the tools of a table."""

    def __init__(self, args):
        self.args, self.table = args, Table()
        self.on_gpu = args.device != "host"
        self.repository = args.out / "models"
        self.engine = args.engine or args.out / "net.engine"
        self.strata = shlex.split(args.strata)
        self.first = "cuda:0" if self.on_gpu else "host"
        self.inputs = self.outputs = None

    def command(self, *arguments, seconds=150):
        return run([*self.strata, *arguments], self.args.out / "strata.log", seconds)

    # ---- engines ----------------------------------------------------------------------

    def build(self):
        a = self.args
        fast = ["--set", "build.precision=fp16", "--set", "build.math=tensor_op"]
        if a.budget:
            fast += ["--set", f"build.costs_budget={a.budget}"]
        if not a.engine:
            self.command("build", a.net, "-d", self.first, "-D", "batch=N",
                         "--set", f"profile.N=1, {a.batch}", *(fast if self.on_gpu else []),
                         "-o", self.engine, "--quiet")
        self.deploy("net", self.engine)
        self.copy("net", "gather", dynamic_batching=self.gathering())
        self.copy("net", "direct", max_batch_size=": 1", dynamic_batching=None)
        found = json.loads(self.command("inspect", self.engine, "-o", "json"))
        print("engine:", json.dumps(found)[:300], file=sys.stderr)

    def gathering(self):
        return (f"{{ preferred_batch_size: [ {self.args.batch} ] "
                f"max_queue_delay_microseconds: {self.args.delay} }}")

    def copy(self, model, name, root=None, **settings):
        """The model under another name, with settings of its config anew, or without."""
        root = root or self.repository
        shutil.copytree(root / model, root / name)
        config = root / name / "config.pbtxt"
        lines = [l for l in config.read_text(encoding="utf-8").splitlines()
                 if not l.startswith(tuple(settings))]
        lines += [f"{k} {v}" for k, v in settings.items() if v]
        config.write_text("\n".join([*lines, ""]), encoding="utf-8")

    def build_digits(self, name, device, costs="analytic"):
        engine = self.args.out / f"{name}.engine"
        self.command("build", self.args.digits / "digits.ini", "-d", device, "-D", "batch=N",
                     "--set", "profile.N=1, 4, 32", f"--costs={costs}", "-o", engine,
                     "--quiet")
        self.deploy(name, engine)

    def deploy(self, name, *engines):
        self.command("deploy", *engines, "-o", self.repository, f"--name={name}", "--quiet")

    def describe(self, server):
        model = json.loads(server.ask("/v2/models/net"))
        self.inputs, self.outputs = model["inputs"], model["outputs"]

    def write_null(self, name, wait_us, batch=1, alone=False, root=None, **settings):
        """A model of the network's inputs and outputs that waits and computes nothing;
        `alone`: one batch at a time, as a device that is not shared."""
        def ports(kind, found):
            return [f"{kind} [ {{ name: \"{t['name']}\" data_type: TYPE_{t['datatype']} dims: "
                    f"[ {', '.join(map(str, t['shape'][1:]))} ] }} ]" for t in found]
        folder = (root or self.repository) / name
        (folder / "1").mkdir(parents=True)
        (folder / "config.pbtxt").write_text("\n".join([
            'backend: "null"', f"max_batch_size: {batch}",
            "instance_group [ { kind: KIND_CPU count: 2 } ]",
            f'parameters {{ key: "wait_us" value: {{ string_value: "{wait_us:.0f}" }} }}',
            f'parameters {{ key: "alone" value: {{ string_value: "{int(alone)}" }} }}',
            *(f"{k} {v}" for k, v in settings.items()),
            *ports("input", self.inputs), *ports("output", self.outputs), ""]),
            encoding="utf-8")

    def out_bytes(self, rows):
        """Of the first output, FP32."""
        return rows * int(np.prod([int(n) for n in self.outputs[0]["shape"][1:]])) * 4

    # ---- figures ----------------------------------------------------------------------

    def bench(self, *options, engine=None, batch=None, streams=1, in_flight=2):
        text = self.command("bench", engine or self.engine, "--device", self.first,
                            "--batch", batch or self.args.batch, "--streams", streams,
                            "--in-flight", in_flight, f"--duration={self.args.seconds}s",
                            "--spin", *options, "-o", "json")
        found = json.loads(text)[0]
        print("bench", *options, streams, "x", in_flight, f"{found['items_per_second']:.0f}/s, ms:", *(
            f"{k} {found[k]['median_ms']:.3f}" for k in ("latency", "h2d", "compute", "d2h")
            if k in found), file=sys.stderr)
        return found

    def load(self, server, model, rows, in_flight, memory, **more):
        return load(self.args, server, model, rows, in_flight, memory,
                    self.out_bytes(rows) if model != "digits" else rows * 40, **more)


def median(found, key):
    return statistics.median(f[key] for f in found)


def text_of(server):
    return ", ".join(f"{k} {v:.0f}" for k, v in server.items())
