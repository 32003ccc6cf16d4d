from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nbs_fleet.errors import FleetError, TimedOutError
from nbs_fleet.launch import locks
from nbs_fleet.launch.locks import FileLock, holder
from nbs_fleet.launch.processes import identify
from nbs_fleet.model import ProcId
from tests.support.waiting import eventually

HOLD = """
import sys
from nbs_fleet.launch.locks import FileLock
print(FileLock(sys.argv[1]).try_acquire(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "up.lock")


@pytest.fixture
def other(path: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "True\n"
    with child:
        yield child
        child.kill()


def test_one_holder_at_a_time(path: str) -> None:
    first, second = FileLock(path), FileLock(path)
    with first:
        assert first.try_acquire()
        assert first.try_acquire()
        assert not second.try_acquire()
        assert (first.held, second.held) == (True, False)
    assert second.try_acquire()
    second.release()
    second.release()


def test_the_holder_is_named_while_it_holds(path: str, other: subprocess.Popen[str]) -> None:
    assert holder(path) == identify(other.pid)
    other.kill()
    other.wait()
    assert holder(path) is None


@pytest.mark.skipif(not os.path.isdir("/proc/self/fdinfo"), reason="without it the list of all locks is read")
def test_a_holder_that_signed_is_found_without_the_list_of_all_locks(
    path: str, other: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: int) -> int | None:
        raise AssertionError("the list stops all locking for a while")

    monkeypatch.setattr(locks, "_listed", refuse)
    assert holder(path) == identify(other.pid)


def test_a_text_without_a_lock_names_nobody(path: str) -> None:
    assert holder(path) is None
    me = identify(os.getpid())
    assert me is not None
    Path(path).write_text(f"{me.pid} {me.start}\n")
    assert holder(path) is None


def test_a_lock_without_a_true_text_is_held_all_the_same(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = FileLock(path)
    lock.try_acquire()
    for text in ("", "garbage", "1 1", "999999999 5"):
        Path(path).write_text(text)
        assert holder(path) == identify(os.getpid())
    monkeypatch.setattr(locks, "_listed", lambda fd: None)
    assert holder(path) == ProcId(0, 0)
    lock.release()
    assert holder(path) is None


def test_the_lock_is_not_inherited_by_programs(path: str) -> None:
    lock = FileLock(path)
    lock.try_acquire()
    with subprocess.Popen(["sleep", "1000"], close_fds=False) as child:
        lock.release()
        assert FileLock(path).try_acquire()
        child.kill()


def test_waiting_ends_when_the_holder_does(path: str, other: subprocess.Popen[str]) -> None:
    lock = FileLock(path)
    assert other.stdin is not None
    other.stdin.close()
    lock.acquire(20)
    assert lock.held
    lock.release()


def test_waiting_is_bounded_and_says_who_holds_it(path: str, other: subprocess.Popen[str]) -> None:
    began = time.monotonic()
    with pytest.raises(TimedOutError, match=f"still held by pid {other.pid}"):
        FileLock(path).acquire(0.1)
    assert time.monotonic() - began < 10


def test_one_who_sleeps_until_the_lock_is_free_has_it_at_once(path: str, other: subprocess.Popen[str]) -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimedOutError, match=f"still held by pid {other.pid}"):
        FileLock(path).wait(0.1)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before
    killer = threading.Timer(0.1, other.kill)
    killer.start()
    lock = FileLock(path)
    lock.wait(20)
    assert lock.held
    assert holder(path) == identify(os.getpid())
    lock.release()
    killer.join()


def test_one_who_sleeps_takes_no_lock_of_a_removed_file(path: str, other: subprocess.Popen[str]) -> None:
    def free() -> None:
        os.unlink(path)
        other.kill()

    killer = threading.Timer(0.1, free)
    killer.start()
    lock = FileLock(path)
    lock.wait(20)
    assert holder(path) == identify(os.getpid())
    lock.release()
    killer.join()


def test_looking_never_keeps_anyone_from_the_lock(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_listed", lambda fd: None)
    code = "import sys\nfrom nbs_fleet.launch import locks\nlocks._listed = lambda fd: None\nprint(flush=True)\n"
    code += "while True: locks.holder(sys.argv[1])\n"
    Path(path).touch()
    with subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE) as looker:
        assert looker.stdout is not None
        looker.stdout.readline()
        for _ in range(200):
            lock = FileLock(path)
            assert eventually(lock.try_acquire, 5)
            lock.release()
        looker.kill()


def test_a_lock_file_that_was_replaced_is_taken_at_its_place(path: str) -> None:
    first = FileLock(path)
    first.try_acquire()
    os.unlink(path)
    second = FileLock(path)
    assert second.try_acquire()
    assert holder(path) == identify(os.getpid())
    first.release()
    second.release()


def test_a_link_is_no_lock(path: str, tmp_path: Path) -> None:
    os.symlink(tmp_path / "elsewhere", path)
    with pytest.raises(FleetError, match="can't open the lock"):
        FileLock(path).try_acquire()
    with pytest.raises(FleetError, match="can't look at the lock"):
        holder(path)
