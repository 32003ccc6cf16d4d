"""Many processes post to one chat at the same time, some are killed: nothing is lost, nothing is doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from nbs_fleet.nbs.chat import Chat
from nbs_fleet.nbs.files import NbsFileError
from tests.support.nbs_reading import read_chat, read_cursors
from tests.support.waiting import eventually

POSTER = str(Path(__file__).parent.parent / "support" / "nbs_posters.py")
HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.readline()
"""


@contextmanager
def started(*argv: str, close_fds: bool = True) -> Iterator[subprocess.Popen[str]]:
    """A Python process with pipes, gone at the end whatever happens."""
    process = subprocess.Popen(
        [sys.executable, *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=os.getcwd(),
        close_fds=close_fds,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("go\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def remainder(process: subprocess.Popen[str], timeout: float) -> str:
    """What it says until it ends. (`communicate` would forget what `readline` has buffered.)"""
    assert process.stdout
    said = process.stdout.read()
    process.wait(timeout)
    return said


def hear_all(process: subprocess.Popen[str], timeout: float) -> list[str]:
    """The whole lines it still says, to its end."""
    assert process.stdout
    watch = threading.Timer(timeout, process.kill)
    watch.start()
    said = process.stdout.read()
    watch.cancel()
    process.wait(30)
    return said[: said.rfind("\n") + 1].split()


def all_messages(chat: Chat) -> list[tuple[str, str]]:
    """Archives first: everything that was ever said."""
    found = [read_chat(Path(path)) for path in (*chat.archives(), chat.path)]
    return [(who, text) for part in found for who, _, text in part.messages]


def crowd(chat: Chat, posters: int, each: int, killed: int, timeout: float) -> None:
    """Let posters loose, kill some in the middle, and look at what is there afterwards."""
    with ExitStack() as stack:
        names = [f"p{n}" for n in range(posters)]
        crew = {name: stack.enter_context(started(POSTER, chat.path, name, str(each))) for name in names}
        for process in crew.values():
            assert hear(process) == "ready"
        for process in crew.values():
            tell(process)
        confirmed: dict[str, int] = {}
        for name in names[:killed]:
            for _ in range(each // 3):
                hear(crew[name])
            crew[name].send_signal(signal.SIGKILL)
            rest = remainder(crew[name], timeout).split()
            confirmed[name] = int(rest[-1]) + 1 if rest else each // 3
        for name in names[killed:]:
            assert remainder(crew[name], timeout).split()[-1] == str(each - 1)
            assert crew[name].returncode == 0
            confirmed[name] = each
    chat.send("judge", "the end")
    found = all_messages(chat)
    for name, number in confirmed.items():
        said = [text for who, text in found if who == name]
        assert said == [f"{name} says {n}" for n in range(len(said))]
        # What was written just before the end may be unconfirmed.
        assert len(said) in ((number, number + 1) if name in names[:killed] else (number,))
    now = read_chat(Path(chat.path))  # it asserts the length and the form of the header
    people = now.participants
    assert now.fields["last-writer"] == "judge"
    assert people == {name: len([1 for who, _ in found if who == name]) for name in people}
    last = chat.count() - 1
    assert all(0 <= index <= last for index in read_cursors(Path(chat.path)).values())


def test_eight_processes_with_500_messages_each_two_of_them_killed_lose_and_double_nothing(chat: Chat) -> None:
    crowd(chat, posters=8, each=500, killed=2, timeout=200)
    assert len(chat.archives()) >= 1


def test_the_lock_of_another_program_is_respected_and_its_holder_named(chat: Chat) -> None:
    with started("-c", HOLDER, f"{chat.path}.lock") as other:
        assert hear(other) == "held"
        with pytest.raises(NbsFileError, match=rf"still held by pid {other.pid} after"):
            chat.send("ana", "x", timeout=0.1)
        assert chat.count() == 0
        tell(other)
        other.wait(30)
    assert chat.send("ana", "x").index == 0


def test_a_lock_is_gone_with_its_holder(chat: Chat) -> None:
    with started("-c", HOLDER, f"{chat.path}.lock") as other:
        assert hear(other) == "held"
        other.kill()
        assert chat.send("ana", "x", timeout=30).index == 0


def test_the_lock_is_not_inherited_by_programs_started_meanwhile(chat: Chat) -> None:
    # A program that closes nothing that it was given, as one started by C code does.
    with chat._file.locked(5), started("-c", "print('up', flush=True); input()", close_fds=False) as child:
        assert hear(child) == "up"
        held = [os.readlink(f"/proc/{child.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{child.pid}/fd")]
        assert not [target for target in held if target.endswith(".lock")]


def test_a_lock_file_that_was_removed_meanwhile_is_made_again(chat: Chat) -> None:
    with started("-c", HOLDER, f"{chat.path}.lock") as other:
        assert hear(other) == "held"
        os.unlink(f"{chat.path}.lock")
        assert chat.send("ana", "x", timeout=5).index == 0
    assert eventually(lambda: os.path.exists(f"{chat.path}.lock"))
