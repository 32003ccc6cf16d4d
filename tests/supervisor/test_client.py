"""The command line's side of the supervisor's socket: a supervisor that does not answer is said, never a traceback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.supervisor.client import Connection, LeavingSupervisorError, SilentSupervisorError, connection
from nbs_fleet.supervisor.protocol import Request

PING = Request("ping")


@pytest.fixture
def paths(short_path: Path) -> RunPaths:
    return RunPaths(str(short_path), str(short_path), str(short_path / "s"), str(short_path / "t"))


@contextmanager
def listening(paths: RunPaths, heard: Callable[[socket.socket], None], *, room: int = 8) -> Iterator[None]:
    """Somebody listens on the socket, and does with the first who calls what `heard` says."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(paths.socket)
        listener.listen(room)
        thread = threading.Thread(target=lambda: heard(listener.accept()[0]))
        thread.start()
        try:
            yield
        finally:
            thread.join(30)
    assert not thread.is_alive()


def test_one_that_does_not_answer_is_said_to_be_silent(paths: RunPaths) -> None:
    over = threading.Event()

    def heard(link: socket.socket) -> None:
        with link:
            over.wait(30)

    with listening(paths, heard):
        link = Connection(paths, timeout=0.1)
        try:
            with pytest.raises(SilentSupervisorError, match=r"has not answered for 0\.1 s"):
                link.ask(PING)
        finally:
            over.set()
            link.close()


@pytest.mark.parametrize("read", [0, 4096], ids=["unread", "read"])
def test_one_that_hangs_up_instead_of_an_answer_is_said_to_leave(paths: RunPaths, read: int) -> None:
    asked = threading.Event()

    def heard(link: socket.socket) -> None:
        with link:
            # With something unread in it the socket is reset, not just closed.
            if read:
                link.recv(read)
            else:
                assert link.recv(1, socket.MSG_PEEK)
        asked.set()

    with listening(paths, heard), connection(paths) as link:
        with pytest.raises(LeavingSupervisorError, match="closed the connection"):
            link.ask(PING)
        assert asked.wait(30)
        with pytest.raises(LeavingSupervisorError, match="closed the connection"):
            link.ask(PING)


def test_one_that_hears_nobody_any_more_is_silent_too(paths: RunPaths) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(paths.socket)
        listener.listen(0)
        waiting = Connection(paths, timeout=5)
        try:
            with (
                pytest.raises(SilentSupervisorError, match=r"has not answered for 0\.1 s"),
                connection(paths, timeout=0.1),
            ):
                pass
        finally:
            waiting.close()


def test_where_nobody_listens_the_systems_error_is_the_callers(paths: RunPaths) -> None:
    with pytest.raises(OSError, match="No such file"), connection(paths):
        pass
