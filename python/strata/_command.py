"""The `strata` command that belongs to this package."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

from . import _cuda, _errors

if TYPE_CHECKING:
    from collections.abc import Sequence

_STATUS = {2: 1, 3: 11}  # usage or configuration; no device


def command_path() -> str:
    """STRATA_COMMAND, the package's own, or the one on the PATH."""
    from shutil import which

    own = os.path.join(os.path.dirname(__file__), "bin", "strata")
    found = os.environ.get("STRATA_COMMAND") or (own if os.path.exists(own) else None)
    found = found or which("strata")
    if not found:
        raise _errors.NotFound("no `strata` command beside the package or on the PATH", 5)
    return found


def run_command(arguments: Sequence[str]) -> str:
    """Its standard output; what it says of a failure is the exception's message."""
    import subprocess

    done = subprocess.run([command_path(), *arguments], capture_output=True, text=True,
                          check=False, env=_cuda.environment())
    if done.returncode != 0:
        text = done.stderr.strip() or f"strata {arguments[0]} ended with {done.returncode}"
        raise _errors.make(_STATUS.get(done.returncode, 14),
                           text.removeprefix("strata: error: "))
    return done.stdout


def main() -> NoReturn:
    """Become the command; layers of a Python file are checked in this process."""
    if sys.argv[1:2] == ["check"] and any(word.endswith(".py") for word in sys.argv[2:]):
        from . import _checking

        sys.exit(_checking.main(sys.argv[2:]))
    path = command_path()
    sys.stdout.flush()
    os.execve(path, [path, *sys.argv[1:]], _cuda.environment())
