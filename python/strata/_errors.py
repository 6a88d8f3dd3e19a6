"""Failures of the library as exceptions."""

from __future__ import annotations

from typing import NamedTuple

_PLACE = r"^([^:\n]+):(\d+)(?::(\d+))?: error: (.*)$"


class Place(NamedTuple):
    """Where in a file something is wrong; column 0: the whole line."""

    file: str
    line: int
    column: int
    text: str


class Error(Exception):
    """What failed: `status` is STRATA_E...'s number, `code` its name ("EINVAL"), `message`
    says what, where, found, needed and the remedy; `place` is the first file and line that
    it names, or None."""

    def __init__(self, message: str, status: int = 14) -> None:
        super().__init__(message)
        self.status = status
        self.message = message

    @property
    def code(self) -> str:
        return _CODES[self.status] if 0 <= self.status < len(_CODES) else str(self.status)

    @property
    def diagnostics(self) -> list[Place]:
        """All places that the message names."""
        import re  # a failure has time for it, an import of the package has not

        return [Place(m[1], int(m[2]), int(m[3] or 0), m[4])
                for m in re.finditer(_PLACE, self.message, re.MULTILINE)]

    @property
    def place(self) -> Place | None:
        return next(iter(self.diagnostics), None)


class ArgumentError(Error, ValueError):
    """An argument that breaks the contract."""


class OutOfMemory(Error, MemoryError):
    """Memory of the host or the device ran out."""


class NotFound(Error, LookupError):
    """A file, a layer or a name that is not there."""


class ParseError(Error):
    """A file's content is malformed; `diagnostics` lists each place."""


class Unsupported(Error):
    """Valid, but not available here."""


class Busy(Error):
    """The object is in use by another thread."""


class DeviceLost(Error):
    """The device is unusable until the process ends."""


_CODES = ("OK", "EINVAL", "ENOMEM", "EOVERFLOW", "EIO", "ENOTFOUND", "EPARSE", "EUNSUPPORTED",
          "EBUSY", "EMODULE", "EPLAN", "EDEVICE", "EDEVICELOST", "EMISMATCH", "EINTERNAL")
_CLASSES = {"EINVAL": ArgumentError, "ENOMEM": OutOfMemory, "ENOTFOUND": NotFound,
            "EPARSE": ParseError, "EUNSUPPORTED": Unsupported, "EBUSY": Busy,
            "EDEVICELOST": DeviceLost}


def make(status: int, message: str) -> Error:
    code = _CODES[status] if 0 <= status < len(_CODES) else ""
    return _CLASSES.get(code, Error)(message, status)
