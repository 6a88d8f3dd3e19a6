"""Layers of Python functions, for prototypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, overload

from . import _errors, _strata

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Mapping, Sequence
    from types import CodeType, TracebackType

    from ._checking import Report

    Function = Callable[..., Any]
    Shape = tuple[int, ...]

_I64, _F64, _BOOL, _ENUM, _STRING, _INTS, _REALS = range(7)  # of strata/plugin.h
_KINDS: dict[object, int] = {int: _I64, float: _F64, bool: _BOOL, str: _STRING}
_LISTS: dict[object, int] = {int: _INTS, float: _REALS}
_registered: dict[str, Layer] = {}


# ---- failures, for the extension ----

def _place(trace: TracebackType | None) -> str:
    """Where it was raised, outside of this package."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})"


def explain(error: BaseException | None) -> tuple[int, str]:
    """Status and text of an exception of a layer's function."""
    if error is None:
        return 14, "it failed without an exception"
    status = (error.status if isinstance(error, _errors.Error) else
              2 if isinstance(error, MemoryError) else 1)
    return status, f"{type(error).__name__}: {error}{_place(error.__traceback__)}"


# ---- what a function's signature says ----

class _Attribute(NamedTuple):
    """As the extension takes it."""

    name: str
    type: int
    required: bool
    default: float
    choices: str | None
    default_text: str | None


def _of_choices(name: str, choices: tuple[Any, ...], default: Any) -> _Attribute:
    if not all(isinstance(choice, str) for choice in choices):
        raise TypeError(f"attribute '{name}': choices are words, Literal['a', 'b']")
    if default is not None and default not in choices:
        raise TypeError(f"attribute '{name}': its default {default!r} is none of its choices")
    index = choices.index(default) if default is not None else 0
    return _Attribute(name, _ENUM, default is None, index, "|".join(choices), None)


def _of_list(name: str, item: object, default: Any) -> _Attribute:
    if item not in _LISTS:
        raise TypeError(f"attribute '{name}': a list is of int or float; write "
                        f"{name}: tuple[int, ...], or a default that is not empty")
    text = None if default is None else ", ".join(repr(value) for value in default)
    return _Attribute(name, _LISTS[item], default is None, 0, None, text)


def _attribute(parameter: inspect.Parameter) -> _Attribute:
    """Its type is that of the annotation, or else of the default."""
    from typing import Literal, get_args, get_origin

    name = parameter.name
    default = None if parameter.default is parameter.empty else parameter.default
    kind: Any = parameter.annotation
    if kind is parameter.empty:
        kind = type(default)
    if get_origin(kind) is Literal:
        return _of_choices(name, get_args(kind), default)
    if kind in (tuple, list) or get_origin(kind) in (tuple, list):
        items = [*get_args(kind), *(type(value) for value in default or ())]
        return _of_list(name, items[0] if items else None, default)
    if kind not in _KINDS:
        raise TypeError(f"attribute '{name}' is of {kind}; it can be an int, float, bool, str, "
                        "a Literal of words, or a tuple of int or float: annotate it, or give "
                        "it a default")
    if kind is str:
        return _Attribute(name, _STRING, default is None, 0, None, default)
    return _Attribute(name, _KINDS[kind], default is None, float(default or 0), None, None)


class _Signature(NamedTuple):
    inputs: tuple[str, ...]
    weights: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[_Attribute, ...]


def _read(function: Function, weights: Sequence[str], outputs: int) -> _Signature:
    """Tensors by position, inputs, weights, outputs; attributes behind a '*'."""
    import inspect

    tensors, attributes = [], []
    for one in inspect.signature(function, eval_str=True).parameters.values():
        if one.kind is one.KEYWORD_ONLY:
            attributes.append(_attribute(one))
        elif one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) or one.default is not one.empty:
            raise TypeError(f"parameter '{one.name}': tensors are plain parameters, "
                            "attributes stand behind a '*': def f(x, y, *, alpha=1.0)")
        else:
            tensors.append(one.name)
    end = len(tensors) - outputs
    begin = end - len(weights)
    if outputs < 1 or begin < 0 or tensors[begin:end] != list(weights):
        raise TypeError(f"of the tensors {', '.join(tensors)} the last {outputs} are outputs"
                        + (f", and {', '.join(weights)} must stand before them" if weights
                           else "") + "; inputs come first")
    return _Signature(tuple(tensors[:begin]), tuple(tensors[begin:end]), tuple(tensors[end:]),
                      tuple(attributes))


def _row(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """ "fp32:nchw, i64:nchw -> fp32:nchw"; one format is that of all ports."""
    sides = [tuple(word.strip() for word in side.split(",")) for side in text.split("->")]
    if len(sides) > 2:
        raise ValueError(f"formats {text!r}: write inputs -> outputs")
    return sides[0], sides[-1]


def _class_name(function: Function) -> str:
    """hard_shrink is HardShrink."""
    name: str = function.__name__
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _hash(code: CodeType, start: int = 0) -> int:
    """Of what a function does; costs that were measured go by it."""
    from zlib import crc32

    found = crc32(code.co_code + repr(code.co_names).encode(), start)
    for constant in code.co_consts:
        found = (_hash(constant, found) if hasattr(constant, "co_code") else
                 crc32(repr(constant).encode(), found))
    return found


# ---- layers ----

class Layer:
    """A layer that networks loaded from now on have. Call it as the function that it is."""

    def __init__(self, function: Function, name: str, namespace: str, version: int,
                 signature: _Signature, rows: tuple[Any, ...], shape: Function | None,
                 weight_shapes: Function | None, reference: Function | None) -> None:
        code = getattr(function, "__code__", None)
        self.function, self.signature = function, signature
        self.name = f"{namespace}::{name}@{version}"
        self.key = f"python:{namespace}.{name}@{version}"
        self.__doc__ = function.__doc__
        self.tables = _strata.Tables(
            self.key, namespace, f"{version}.0+{_hash(code) if code else 0:08x}", name, version,
            len(signature.inputs), len(signature.outputs), rows,
            tuple(tuple(one) for one in signature.attributes), signature.weights, function,
            shape, weight_shapes, reference)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        s = self.signature
        words = [", ".join([*s.inputs, *s.weights]), ", ".join(s.outputs)]
        return f"strata.Layer({self.name}: {words[0]} -> {words[1]}, in Python)"

    def remove(self) -> None:
        """Networks loaded from now on have it no more."""
        if _registered.get(self.name) is self:
            del _registered[self.name]

    def check(self, **options: Any) -> Report:
        """Hold it to the contract, as `strata check` does a plugin; docs/python.md."""
        from . import _checking

        return _checking.check(self, **options)


def _weight_rule(weights: Sequence[str] | Mapping[str, Function | None]) -> Function | None:
    """From names with rules to one rule for all."""
    if not hasattr(weights, "values") or not any(weights.values()):
        return None
    rules = list(weights.values())

    def shapes(*inputs: Shape, **attributes: Any) -> list[Shape | None]:
        return [rule(*inputs, **attributes) if rule else None for rule in rules]

    return shapes


@overload
def layer(function: Function, /) -> Layer: ...
@overload
def layer(*, name: str | None = ..., namespace: str = ..., version: int = ...,
          outputs: int = ..., weights: Sequence[str] | Mapping[str, Function | None] = ...,
          shape: Function | None = ..., formats: str | Sequence[str] = ...,
          reference: Function | bool = ...) -> Callable[[Function], Layer]: ...


def layer(function: Function | None = None, /, *, name: str | None = None,
          namespace: str = "python", version: int = 1, outputs: int = 1,
          weights: Sequence[str] | Mapping[str, Function | None] = (),
          shape: Function | None = None, formats: str | Sequence[str] = "fp32:nchw",
          reference: Function | bool = True) -> Layer | Callable[[Function], Layer]:
    """Make a layer of a function, `@strata.layer` or `@strata.layer(...)`: of tensors by
    position, inputs, then the named weights, then so many outputs, which it writes; of
    attributes by name. shape gives the outputs' shapes from those of inputs and weights; a
    weight may have a rule, too. Slow: for prototypes."""
    def make(function: Function) -> Layer:
        signature = _read(function, list(weights), outputs)
        if not signature.inputs and shape is None:
            raise TypeError("a layer without inputs needs shape=, which gives that of its outputs")
        rows = (formats,) if isinstance(formats, str) else tuple(formats)
        checked = function if reference is True else reference or None
        made = Layer(function, name or _class_name(function), namespace, version, signature,
                     tuple(_row(row) for row in rows), shape, _weight_rule(weights), checked)
        _strata.validate(made.tables)
        _registered[made.name] = made
        return made

    return make if function is None else make(function)


def registered() -> list[Layer]:
    return list(_registered.values())


def given() -> tuple[_strata.Tables, ...]:
    """What a network that is loaded now gets."""
    return tuple(one.tables for one in _registered.values())


_warned: set[str] = set()


def warn(names: Sequence[tuple[str, str]]) -> None:
    """Say once of each layer that it is slow."""
    new = [(step, kind) for step, kind in names if kind not in _warned]
    if not new:
        return
    _warned.update(kind for _, kind in new)
    from logging import getLogger

    for step, kind in new:
        getLogger("strata").warning(
            "layer '%s' (%s) runs in Python: slow, and one at a time in a process; a plugin "
            "file that has the layer takes its place", step, kind)
