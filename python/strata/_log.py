"""The library's log as records of logging.getLogger("strata")."""

from __future__ import annotations

from . import _strata

_LEVELS = (40, 30, 20, 10)  # logging's ERROR, WARNING, INFO, DEBUG


def follow_level() -> None:
    """Lines that the logger would drop are not even formatted."""
    from logging import getLogger

    logger = getLogger("strata")
    wanted = [n for n, level in enumerate(_LEVELS) if logger.isEnabledFor(level)]
    _strata.set_log_level(max(wanted, default=-1))


def flush() -> None:
    """What threads of the library have logged since the last time."""
    lines, dropped = _strata.drain_log()
    if not lines and not dropped:
        return
    from logging import getLogger

    logger = getLogger("strata")
    for level, text in lines:
        logger.log(_LEVELS[min(level, 3)], "%s", text)
    if dropped:
        logger.warning("%d lines of the log were dropped", dropped)
