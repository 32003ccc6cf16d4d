"""The command line's side of the supervisor's socket; blocking, bounded in time."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import msgspec

from nbs_fleet import jsontext
from nbs_fleet.errors import FleetError
from nbs_fleet.launch.locks import holder
from nbs_fleet.model import ProcId
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.supervisor.protocol import Answer, Request

SILENCE = 5.0
"""Seconds after which a supervisor that holds the lock and does not answer is reported."""


class SilentSupervisorError(FleetError):
    """The lock is held, the socket says nothing."""


class LeavingSupervisorError(FleetError):
    """It hung up before it answered: it is just ending."""


class Connection:
    """One connection to a running supervisor."""

    def __init__(self, paths: RunPaths, *, timeout: float = SILENCE) -> None:
        self._paths = paths
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        self._buffer = b""
        try:
            self._socket.connect(paths.socket)
        except OSError:
            self._socket.close()
            raise

    def ask(self, request: Request) -> Answer:
        """Send one request and wait for its answer; an answer that says no is a FleetError, and so is none."""
        try:
            self._socket.sendall(jsontext.encode(request) + b"\n")
            answer = self._read()
        except TimeoutError as error:
            raise silent(self._paths, self._socket.gettimeout() or 0.0) from error
        except ConnectionError:
            answer = None
        if answer is None:
            raise LeavingSupervisorError("the supervisor closed the connection")
        if not answer.ok:
            raise FleetError(answer.error or "the supervisor refused")
        return answer

    def changes(self, timeout: float | None) -> Iterator[Answer | None]:
        """What follows a `follow`: changes as they come; None each time `timeout` seconds pass without one."""
        while True:
            self._socket.settimeout(timeout)
            try:
                answer = self._read()
            except TimeoutError:
                yield None
                continue
            if answer is None:
                return
            yield answer

    def wait(self, timeout: float) -> None:
        """Set how long the next answer may take."""
        self._socket.settimeout(timeout)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _read(self) -> Answer | None:
        while b"\n" not in self._buffer:
            try:
                chunk = self._socket.recv(65_536)
            except ConnectionError:
                return None
            if not chunk:
                return None
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            return msgspec.json.decode(line, type=Answer)
        except jsontext.MALFORMED as error:
            raise FleetError(
                f"the supervisor's answer can't be read: {error}",
                hint="is it of another version? `nbs-fleet up FILE` renews it",
            ) from error


@contextlib.contextmanager
def connection(paths: RunPaths, *, timeout: float = SILENCE) -> Iterator[Connection]:
    """A connection that is closed at the end. Raises OSError where nobody listens."""
    try:
        link = Connection(paths, timeout=timeout)
    except (TimeoutError, BlockingIOError) as error:
        # So many wait already to be heard.
        raise silent(paths, timeout) from error
    try:
        yield link
    finally:
        link.close()


def silent(paths: RunPaths, seconds: float) -> SilentSupervisorError:
    """The error for a supervisor that holds the lock and has not answered for so long."""
    owner: ProcId | None = holder(paths.lock)
    who = f"pid {owner.pid}" if owner else "unknown pid"
    return SilentSupervisorError(
        f"the supervisor ({who}) holds {paths.lock} but has not answered for {seconds:g} s",
        hint=f"if it hangs: kill -9 {owner.pid if owner else 'PID'}; it comes back by itself and agents are not touched",
    )
