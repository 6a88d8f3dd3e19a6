"""What a call gives: outputs by name."""

from __future__ import annotations

from . import _strata


class Outputs(dict[str, "_strata.Tensor"]):
    """Tensors by name, `out["prob"]`, or as attributes, `out.prob`."""

    __slots__ = ()

    def __getattr__(self, name: str) -> _strata.Tensor:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no output '{name}'; there are {', '.join(self)}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]
