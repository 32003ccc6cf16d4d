"""A small event loop for one terminal program: futures, tasks, timers, readers and signals, and no thread."""

from __future__ import annotations

import heapq
import os
import selectors
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Interrupted(Exception):  # noqa: N818 - not an error: somebody pressed Esc
    """Thrown into a task that somebody cut short."""


class Future(Generic[T]):
    """A value that is not there yet. The first `set` or `fail` wins, later ones are ignored."""

    __slots__ = ("callbacks", "done", "error", "value")

    def __init__(self) -> None:
        self.done = False
        self.value: T | None = None
        self.error: BaseException | None = None
        self.callbacks: list[Callable[[], None]] = []

    def set(self, value: T) -> None:
        """Resolve, and wake whoever waits."""
        if not self.done:
            self.value = value
            self._finish()

    def fail(self, error: BaseException) -> None:
        """Resolve with an error that is raised where the future is awaited."""
        if not self.done:
            self.error = error
            self._finish()

    def _finish(self) -> None:
        self.done = True
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback()

    def then(self, callback: Callable[[], None]) -> None:
        """Call `callback` when resolved (at once if it is)."""
        if self.done:
            callback()
        else:
            self.callbacks.append(callback)

    def result(self) -> T:
        """The value; only after it is done."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]

    def __await__(self) -> Generator[Future[Any], None, T]:
        if not self.done:
            yield self
        return self.result()


class Task(Future[T]):
    """A coroutine that is driven by the futures it awaits."""

    __slots__ = ("coroutine", "waiting")

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        super().__init__()
        self.coroutine = coroutine
        self.waiting: Future[Any] | None = None
        self._step(None)

    def _resume(self, future: Future[Any]) -> None:
        if self.waiting is future:
            self.waiting = None
            self._step(None)

    def _step(self, error: BaseException | None) -> None:
        try:
            future = self.coroutine.send(None) if error is None else self.coroutine.throw(error)
        except StopIteration as stop:
            self.set(stop.value)
            return
        except Interrupted as cut:
            self.fail(cut)
            return
        self.waiting = future
        future.then(lambda: self._resume(future))

    def interrupt(self) -> None:
        """Raise Interrupted at the point where the task waits."""
        if not self.done and self.waiting is not None:
            self.waiting = None
            self._step(Interrupted())


def first(*futures: Future[Any]) -> Future[int]:
    """A future with the index of whichever of `futures` is resolved first."""
    winner: Future[int] = Future()

    def tell(index: int) -> Callable[[], None]:
        return lambda: winner.set(index)

    for index, future in enumerate(futures):
        future.then(tell(index))
    return winner


async def gather(awaitables: list[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all at once; an interrupt is passed on to each."""
    tasks = [Task(coroutine) for coroutine in awaitables]
    try:
        return [await task for task in tasks]
    except Interrupted:
        for task in tasks:
            task.interrupt()
        raise


class Timer:
    """One call in the future; `cancel` makes it not happen."""

    __slots__ = ("call", "due")

    def __init__(self, due: float, call: Callable[[], None]) -> None:
        self.due = due
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Forget the call."""
        self.call = None

    def __lt__(self, other: Timer) -> bool:
        return self.due < other.due


class Loop:
    """Waits for readers, timers and signals; sleeps without limit when there is nothing due."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.timers: list[Timer] = []
        self.handlers: dict[int, Callable[[], None]] = {}
        self.children: dict[int, Future[int]] = {}
        self.code: int | None = None
        self.before_wait: Callable[[], None] = lambda: None
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self._wake = wake_read
        self.selector.register(wake_read, selectors.EVENT_READ, self._signals)
        self.on_signal(signal.SIGCHLD, self._reap)

    def on_signal(self, number: int, handler: Callable[[], None]) -> None:
        """Call `handler` in the loop after signal `number`."""
        self.handlers[number] = handler
        signal.signal(number, lambda *_: None)

    def _signals(self) -> None:
        try:
            numbers = os.read(self._wake, 4096)
        except BlockingIOError:
            return
        for number in dict.fromkeys(numbers):
            handler = self.handlers.get(number)
            if handler is not None:
                handler()

    def _reap(self) -> None:
        for pid in list(self.children):
            if pid not in self.children:
                continue  # whoever waited for the one before has started a child, which reaps too
            try:
                done, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                done, status = pid, 0
            if done:
                self.children.pop(pid).set(os.waitstatus_to_exitcode(status))

    def child(self, pid: int) -> Future[int]:
        """The exit code of a child (negative: the signal that ended it)."""
        future: Future[int] = Future()
        self.children[pid] = future
        self._reap()
        return future

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call once, `seconds` from now."""
        timer = Timer(time.monotonic() + seconds, call)
        heapq.heappush(self.timers, timer)
        return timer

    def after(self, seconds: float) -> Future[None]:
        """A future that is resolved in `seconds`: the script's own delays and the limits of hooks and commands."""
        future: Future[None] = Future()
        self.call_later(seconds, lambda: future.set(None))
        return future

    def read(self, fd: int, call: Callable[[], None]) -> None:
        """Call whenever `fd` has something to read."""
        self.selector.register(fd, selectors.EVENT_READ, call)

    def write(self, fd: int, call: Callable[[], None]) -> None:
        """Call whenever `fd` takes more."""
        self.selector.register(fd, selectors.EVENT_WRITE, call)

    def forget(self, fd: int) -> None:
        """Watch `fd` no more."""
        self.selector.unregister(fd)

    def stop(self, code: int) -> None:
        """End `run` with this exit code."""
        if self.code is None:
            self.code = code

    def run(self) -> int:
        """Work until `stop`."""
        while self.code is None:
            now = time.monotonic()
            while self.timers and self.timers[0].due <= now:
                call = heapq.heappop(self.timers).call
                if call is not None:
                    call()
            while self.timers and self.timers[0].call is None:
                heapq.heappop(self.timers)
            if self.code is not None:
                break
            self.before_wait()
            wait = max(0.0, self.timers[0].due - time.monotonic()) if self.timers else None
            for key, _ in self.selector.select(wait):
                if self.selector.get_map().get(key.fd) == key:  # one before it may have ended the watching
                    key.data()
        self._deafen()
        return self.code

    def _deafen(self) -> None:
        """Ignore whatever was handled: Python ends by giving signals back their defaults, and most of those kill."""
        for number in self.handlers:
            if number != signal.SIGCHLD:
                signal.signal(number, signal.SIG_IGN)


def start(work: Awaitable[T]) -> Task[T]:
    """Drive an awaitable as a task of its own."""

    async def run() -> T:
        return await work

    return Task(run())
