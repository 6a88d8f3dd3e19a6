"""The conformance checker."""

from typing import Any

def check(key: str, tables: Any, command: str, test: str | None, formats: str | None,
          shapes: tuple[str, ...], attrs: tuple[str, ...], seed: int, limit_ms: int, quick: bool,
          thorough: bool, in_process: bool, /
          ) -> list[tuple[str, str, str, list[tuple[str, str, str, str, str, str, str, str, str]],
                          int, str, float]]: ...
def is_test(name: str, /) -> bool: ...
