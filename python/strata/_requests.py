"""Requests on their way: one thread completes futures, or an event loop its own."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from . import _errors, _log, _strata
from ._outputs import Outputs

if TYPE_CHECKING:
    from ._network import Network

Results = list[tuple[Any, Any, int, str | None]]

# ---- futures ----

_making = threading.Lock()  # of what waits


class Request(Future[Outputs]):
    """A Future whose condition is made when somebody asks for more than its result: where
    requests are many, most are done before, and one thread waits for the others, which a
    plain lock does. Those the queue finishes by itself."""

    _state = "PENDING"
    _result: Outputs | None = None
    _exception: BaseException | None = None
    _done_callbacks: Any = ()
    _lock: threading.Condition | None = None
    _waiter: threading.Lock | None = None  # held until it is done

    __init__ = object.__init__  # the base's makes a condition

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]
        if self._lock is None:
            with _making:
                if self._lock is None:
                    self._waiters: list[Any] = []
                    self._done_callbacks = []
                    self._lock = threading.Condition()
        return self._lock

    def result(self, timeout: float | None = None) -> Outputs:
        if self._state != "FINISHED" and self._lock is None:
            with _making:
                waiter = None if self._waiter else threading.Lock()
                if waiter:
                    waiter.acquire()
                    self._waiter = waiter
            if waiter and self._state == "PENDING" and not waiter.acquire(
                    timeout=-1 if timeout is None else max(timeout, 0)):
                return super().result(0)
        if self._state == "FINISHED" and self._exception is None:
            return self._result  # type: ignore[return-value]
        return super().result(timeout)

    def cancel(self) -> bool:
        cancelled = super().cancel()
        if cancelled:
            self.wake()
        return cancelled

    def wake(self) -> None:
        """It is done; the queue does that for those it finishes."""
        with _making:
            if self._waiter and self._waiter.locked():
                self._waiter.release()

    def done(self) -> bool:
        return self._state == "FINISHED" or super().done()


class _Completer:
    """A thread that waits for the queue of this process."""

    def __init__(self) -> None:
        self.queue = _strata.Queue()
        self.pid = os.getpid()
        self.ended = False
        self.thread = threading.Thread(target=self._work, name="strata-requests", daemon=True)
        self.thread.start()

    def _work(self) -> None:
        while not self.ended:
            finish(self.queue.wait())
            _log.flush()

    def end(self) -> None:
        if self.pid != os.getpid():
            return
        self.ended = True
        self.queue.wake()
        self.thread.join()
        finish(self.queue.drain())


_lock = threading.Lock()
_completer: _Completer | None = None
_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _strata.Queue] = (
    weakref.WeakKeyDictionary())
batching: weakref.WeakSet[Network] = weakref.WeakSet()


def finish(results: Results) -> None:
    """Tell whoever holds the futures; one that was cancelled wants to know nothing."""
    for future, outputs, status, message in results:
        if isinstance(future, Future) and not future.set_running_or_notify_cancel():
            continue
        if future.done():
            continue
        if status == 0:
            future.set_result(outputs)
        else:
            future.set_exception(_errors.make(status, message or ""))
        if isinstance(future, Request):
            future.wake()


def open_batcher(network: Network) -> None:
    with _lock:
        if network not in batching:
            network.batcher()


async def submit_async(network: Network, inputs: tuple[Any, ...],
                       named: dict[str, Any]) -> Outputs:
    if network not in batching:
        open_batcher(network)
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Outputs] = loop.create_future()
    network._submit_to(loop_queue(loop), future, *inputs, **named)
    return await future


async def run_session(session: _strata.Session) -> None:
    """In a thread of the loop's, which computes without the interpreter's lock."""
    await asyncio.get_running_loop().run_in_executor(None, session.run)


def thread_queue() -> _strata.Queue:
    global _completer
    if _completer is not None and _completer.pid == os.getpid():
        return _completer.queue
    with _lock:
        if _completer is None or _completer.pid != os.getpid():
            _completer = _Completer()
        return _completer.queue


def _read(queue: _strata.Queue) -> None:
    finish(queue.wait())


def loop_queue(loop: asyncio.AbstractEventLoop) -> _strata.Queue:
    """Read by the loop itself, as long as it lives."""
    queue = _loops.get(loop)
    if queue is None:
        queue = _loops[loop] = _strata.Queue()
        loop.add_reader(queue.fileno(), _read, queue)
    return queue


@atexit.register
def _end() -> None:
    """Batchers end before the interpreter does."""
    for network in list(batching):
        network._close_batcher()
    if _completer is not None:
        _completer.end()
