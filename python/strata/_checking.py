"""Layers in Python held to the contract of plugins, as `strata check` does."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _check, _errors, _layers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType


class Finding(NamedTuple):
    """A rule that was broken: what it asks, what was seen, where, and how to see it again."""

    rule: str
    asked: str
    seen: str
    phase: str
    formats: str
    shape: str
    attrs: str
    variant: str
    again: str

    def __str__(self) -> str:
        lines = [f"  {self.rule}: " + "\n  ".join(self.seen.splitlines())]
        lines += [f"    {name:<7} {value}" for name, value in self._asdict().items()
                  if value and name not in ("rule", "seen")]
        return "\n".join(lines)


class Result(NamedTuple):
    """A test: "ok", "FAILED" or "skipped"."""

    test: str
    layer: str
    verdict: str
    findings: list[Finding]
    runs: int
    note: str
    seconds: float

    def __str__(self) -> str:
        line = f"{self.verdict:<8} {self.test}{' of ' if self.layer else ''}{self.layer}"
        if self.note:
            line += f" ({self.note})"
        if self.runs and self.verdict != "skipped":
            line += f", {self.runs} runs in {self.seconds:.1f} s"
        return "\n".join([line, *map(str, self.findings)])


class Report(list[Result]):
    """The tests of a layer; true where none found anything."""

    seed: int = 0

    @property
    def ok(self) -> bool:
        return not any(one.findings for one in self)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return "\n".join([*map(str, self), f"seed {self.seed}"])


def _in_thread(arguments: tuple[Any, ...]) -> Any:
    """In one that has run nothing: each test is a fork, whose only thread it is."""
    found: list[Any] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.extend(_check.check(*arguments))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, name="strata-check")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found


def check(layer: _layers.Layer, *, test: str | None = None, formats: str | None = None,
          shapes: Sequence[str] = (), attrs: Sequence[str] = (), seed: int | None = None,
          time_limit: float = 60, quick: bool = False, thorough: bool = False,
          in_process: bool = False, command: str | None = None) -> Report:
    """Each test in a process of its own; the options are those of `strata check`."""
    if test is not None and not _check.is_test(test):
        raise _errors.ArgumentError(f"there is no test '{test}'; see strata check --help", 1)
    code = getattr(layer.function, "__code__", None)
    file = code.co_filename if code and os.path.exists(code.co_filename) else "FILE.py"
    report = Report()
    report.seed = int.from_bytes(os.urandom(3), "little") if seed is None else seed
    sys.stdout.flush()
    found = _in_thread((layer.key, layer.tables.tables(),
                        command or f"python -m strata check {file}", test, formats,
                        tuple(shapes), tuple(attrs), report.seed, int(time_limit * 1000),
                        quick, thorough, in_process))
    report.extend(Result(name, of, verdict, [Finding(*one) for one in findings], runs, note,
                         seconds)
                  for name, of, verdict, findings, runs, note, seconds in found)
    return report


# ---- python -m strata check FILE.py ----

def _import(path: str) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    name = os.path.splitext(os.path.basename(path))[0]
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise _errors.NotFound(f"{path} cannot be imported", 5)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _named(layer: _layers.Layer, name: str) -> bool:
    """LeakyReLU, python::LeakyReLU, python::LeakyReLU@1."""
    full = layer.name
    bare = full.split("::")[1]
    return name in (full, full.split("@")[0], bare, bare.split("@")[0])


def main(arguments: Sequence[str]) -> int:
    """What `strata check` is for a plugin file; 0, or 1 where something was found."""
    from argparse import ArgumentParser

    parser = ArgumentParser(prog="python -m strata check",
                            description="Hold the layers of a Python file to the contract.")
    parser.add_argument("file", metavar="FILE.py")
    parser.add_argument("--layer", metavar="NAME", help="only this layer")
    parser.add_argument("--test", metavar="NAME", help="only this test")
    parser.add_argument("--impl", help="python, the only one there is")
    parser.add_argument("--formats", metavar="IN->OUT", help="only these formats")
    parser.add_argument("--shape", action="append", default=[], metavar="DIMS",
                        help="only this input shape (repeatable): 1x3x8x8, or 3x8,3x8x5x5")
    parser.add_argument("--attrs", action="append", default=[], metavar="TEXT",
                        help="a case, as 'limit = 3; mode = soft' (repeatable)")
    parser.add_argument("--reproduce", type=int, metavar="SEED", help="that a finding names")
    parser.add_argument("--time-limit", type=float, default=60, metavar="S",
                        help="seconds for one test")
    parser.add_argument("--thorough", action="store_true", help="more shapes")
    parser.add_argument("--quick", action="store_true", help="fewer shapes")
    parser.add_argument("--in-process", action="store_true", help="no child processes")
    o = parser.parse_args(arguments)
    before = set(_layers.registered())
    _import(o.file)
    layers = [one for one in _layers.registered() if one not in before]
    chosen = [one for one in layers if o.layer is None or _named(one, o.layer)]
    if not chosen:
        parser.error(f"{o.file} has no layer {o.layer or 'made with @strata.layer'}"
                     + "".join(f"; it has {one.name}" for one in layers))
    ok = True
    for one in chosen:
        report = check(one, test=o.test, formats=o.formats, shapes=o.shape, attrs=o.attrs,
                       seed=o.reproduce, time_limit=o.time_limit, quick=o.quick,
                       thorough=o.thorough, in_process=o.in_process,
                       command=f"python -m strata check {o.file}")
        print(report, flush=True)
        ok = ok and report.ok
    return 0 if ok else 1
