"""A network that can be called, and what it tells of itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _command, _errors, _layers, _log, _strata

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from tempfile import TemporaryDirectory

    from ._outputs import Outputs

    AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_MAGIC = b"\x93STR\r\n\x1a\n"
_WAIT = {None: 0, "spin": 1, "yield": 2, "sleep": 3}
_MATH = {"default": 0, "tensor_op": 1, "tf32": 2}


class Binding(NamedTuple):
    """An input or output: its largest shape, and how it lies in memory."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    format: str
    bytes: int
    is_input: bool


class Dimension(NamedTuple):
    """A name of [profile] that stands for several sizes."""

    name: str
    least: int
    most: int
    sizes: tuple[int, ...]
    is_batch: bool


def _choose(choices: Mapping[Any, int], word: Any, what: str) -> int:
    if word not in choices:
        names = ", ".join(str(name) for name in choices)
        raise ValueError(f"{what}={word!r}; one of {names}")
    return choices[word]


def _pairs(values: Mapping[str, object]) -> tuple[str, ...]:
    if not hasattr(values, "items"):
        raise TypeError(f"{values!r}: a dict is needed, as {{'build.precision': 'fp16'}} for "
                        "set= and {'batch': 8} for define=")
    flag = {True: "yes", False: "no"}
    return tuple(f"{name}={flag[value] if isinstance(value, bool) else value}"
                 for name, value in values.items())


def _names(given: AnyPath | Sequence[AnyPath] | None) -> list[str]:
    """Names of files: one, or several."""
    if given is None:
        return []
    if isinstance(given, (str, bytes, os.PathLike)):
        given = [given]
    return [os.fsdecode(name) for name in given]


def _encode(texts: Sequence[str]) -> tuple[bytes, ...]:
    """What the library reads is UTF-8, but for names of files in it, which are any bytes."""
    return tuple(one.encode("utf-8", "surrogateescape") for one in texts)


class Network(_strata.Network):
    """A network planned for a device. Call it with its inputs by position or name; any
    number of threads may. `strata.load` makes one."""

    _arguments: list[str]
    _folder: TemporaryDirectory[str] | None  # of text, as long as the network

    # ---- what it is ----

    @property
    def bindings(self) -> dict[str, Binding]:
        return {b[0]: Binding(*b) for b in self._bindings()}

    @property
    def inputs(self) -> dict[str, Binding]:
        return {name: b for name, b in self.bindings.items() if b.is_input}

    @property
    def outputs(self) -> dict[str, Binding]:
        return {name: b for name, b in self.bindings.items() if not b.is_input}

    @property
    def dimensions(self) -> list[Dimension]:
        return [Dimension(*d) for d in self._dimensions()]

    @property
    def device(self) -> str:
        return str(self._facts()["device"])

    @property
    def batch(self) -> int:
        """Rows of a run, at most."""
        return int(self._facts()["batch"])

    @property
    def batches(self) -> tuple[int, ...]:
        """Those that it was planned for."""
        return tuple(self._facts()["batches"])

    @property
    def memory(self) -> dict[str, int]:
        """Bytes: of weights, of a context's arena, of pinned tensors that live."""
        facts = self._facts()
        return {name: facts[f"{name}_bytes"] for name in ("weight", "arena", "pinned")}

    @property
    def labels(self) -> list[str]:
        """Names of classes."""
        return self._labels()

    def stats(self) -> dict[str, int]:
        """Of calls so far: contexts, runs, bytes copied in and out, runs in place."""
        return self._stats()

    def __repr__(self) -> str:
        memory = self.memory
        lines = [f"strata.Network on {self.device}, batches {list(self.batches)}"]
        lines += [f"  {'in ' if b.is_input else 'out'} {b.name}: {list(b.shape)} {b.format}"
                  for b in self.bindings.values()]
        lines += [f"  in Python, slow: {step} ({kind})" for step, kind in self._given()]
        lines.append(f"  weights {memory['weight']:,} bytes, arena {memory['arena']:,}, "
                     f"pinned {memory['pinned']:,}")
        return "\n".join(lines)

    # ---- requests ----

    def batcher(self, *, max_batch: int = 0, max_delay_us: int = 0, contexts: int = 0,
                max_waiting: int = 0, turns: bool | None = None) -> None:
        """Set the batcher up before the first request, with other than its usual options.

        turns: whether its contexts take turns on a GPU; None: where that was found to pay.
        """
        from . import _requests

        self._open_batcher(max_batch, max_delay_us, contexts, max_waiting,
                           0 if turns is None else 1 if turns else -1)
        _requests.batching.add(self)

    def _open_queue(self) -> None:
        """Called by submit, once."""
        from . import _requests

        _requests.open_batcher(self)
        self._use_queue(_requests.thread_queue(), _requests.Request)

    async def submit_async(self, *inputs: Any, **named: Any) -> Outputs:
        """The same from a coroutine, which waits for the outputs."""
        from . import _requests

        return await _requests.submit_async(self, inputs, named)

    # ---- the command's ----

    def _tell(self, command: str, *options: str) -> Any:
        import json

        own = self._given()
        if own:
            raise _errors.Unsupported(
                f"{command} is done by the command, which has no Python: layer '{own[0][0]}' "
                f"({own[0][1]}) is of this process alone; write a plugin for it", 7)
        return json.loads(_command.run_command([command, *self._arguments, "-o", "json",
                                                *options]))

    def explain(self, *options: str) -> dict[str, Any]:
        """The plan, as `strata explain -o json` prints it; options are the command's."""
        plan: dict[str, Any] = self._tell("explain", *options)
        return plan

    def bench(self, *options: str) -> list[dict[str, Any]]:
        """What `strata bench` measures, in a process of its own: a dict a case."""
        cases: list[dict[str, Any]] = self._tell("bench", *options)
        return cases

    def profile(self, *options: str) -> Profile:
        """Each step with its time against the device's ceilings, as `strata profile`."""
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder:
            page = os.path.join(folder, "profile.html")
            found = self._tell("profile", f"--html={page}", *options)
            with open(page, encoding="utf-8") as file:
                return Profile(found, file.read())

    def _repr_html_(self) -> str:
        if self._given():  # the command cannot draw it
            from html import escape

            return f"<pre>{escape(repr(self))}</pre>"
        return _command.run_command(["explain", *self._arguments, "--svg", "-"])


class Profile(list[dict[str, Any]]):
    """Steps of a profile; in a notebook, the report."""

    def __init__(self, found: Any, html: str) -> None:
        self.report = found
        super().__init__(found.get("steps", []) if isinstance(found, dict) else found)
        self.html = html

    def _repr_html_(self) -> str:
        return self.html


def _is_engine(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(8) == _MAGIC
    except OSError:
        return False  # the library says what is wrong with it


def _make_source(text: str | None, model: str) -> tuple[str, TemporaryDirectory[str]]:
    """An INI file of a text, or of an ONNX model."""
    from tempfile import TemporaryDirectory

    folder = TemporaryDirectory(prefix="strata-")
    path = os.path.join(folder.name, "net.ini")
    if text is None:
        _command.run_command(["import", model, "-o", path])
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return path, folder


def _command_arguments(path: str, device: str | None, sets: Sequence[str],
                       defines: Sequence[str], plugins: Sequence[str],
                       plugin_path: str | None) -> list[str]:
    arguments = [path]
    arguments += [f"--device={device}"] if device else []
    arguments += [word for one in sets for word in ("--set", one)]
    arguments += [word for one in defines for word in ("--define", one)]
    arguments += [word for one in plugins for word in ("--plugin", one)]
    return arguments + ([f"--plugin-path={plugin_path}"] if plugin_path else [])


def load(path: AnyPath | None = None, *, text: str | None = None,
         device: str | None = None, set: Mapping[str, object] | None = None,
         define: Mapping[str, object] | None = None,
         plugins: AnyPath | Sequence[AnyPath] = (),
         plugin_path: AnyPath | Sequence[AnyPath] | None = None, threads: int = 0,
         wait: str | None = None, math: str = "default") -> Network:
    """A network, ready to be called: an INI file, its text, an ONNX model, or an engine
    file. device is "host" or "cuda:N"; set and define are the command's --set and -D;
    threads of each run on the host, 0 as the network says; wait "spin", "yield" or "sleep";
    math "default", "tensor_op" or "tf32"."""
    if (path is None) == (text is None):
        raise TypeError("load() takes a path, or text=")
    folder = None
    source = os.fsdecode(path) if path is not None else ""
    if text is not None or source.endswith(".onnx"):
        source, folder = _make_source(text, source)
    sets, defines = _pairs(set or {}), _pairs(define or {})
    files, folders = _names(plugins), ":".join(_names(plugin_path)) or None
    is_engine = _is_engine(source)
    if is_engine and (sets or defines):
        raise _errors.ArgumentError(f"{source}: an engine is planned already; set and define "
                                    "are for networks", 1)
    _log.follow_level()
    try:
        network = Network(os.fsencode(source), device, is_engine, threads,
                          _choose(_WAIT, wait, "wait"), _choose(_MATH, math, "math"),
                          _encode(sets), _encode(defines), tuple(map(os.fsencode, files)),
                          os.fsencode(folders) if folders is not None else None,
                          _layers.given())
    finally:
        _log.flush()
    network._arguments = _command_arguments(source, device, sets, defines, files, folders)
    network._folder = folder
    _layers.warn(network._given())
    return network


def _check_save(path: AnyPath | None, save: AnyPath) -> None:
    """What can be told before minutes of planning."""
    name = os.fsdecode(save)
    folder = os.path.dirname(name) or "."
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _errors.NotFound(f"{name}: cannot write in folder '{folder}'", 5)
    if path is not None and os.path.exists(path) and os.path.exists(name) \
            and os.path.samefile(path, save):
        raise _errors.ArgumentError(
            f"{name}: would be replaced, but the network is made of it; name another file", 1)


def build(path: AnyPath | None = None, *, save: AnyPath, **options: Any) -> Network:
    """The same, and written to an engine file that load() takes without planning."""
    _check_save(path, save)
    network = load(path, **options)
    network.save(save)
    return network
