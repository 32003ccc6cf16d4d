"""Pid files and markers, foreign processes under the same handle, pause, session metadata, standups, Pythia's files."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from nbs_fleet.nbs import presence, pythia_files, standup_file
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.nbs.presence import CollisionError, Session


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "proc").mkdir()
    return tmp_path / "proc"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / ".nbs" / "pids").mkdir(parents=True)
    return tmp_path / "root"


def process(proc: Path, pid: int, *argv: str, handle: str | None = None) -> None:
    """A process as `/proc` shows it."""
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in argv))
    environ = {"PATH": "/bin"} | ({"NBS_HANDLE": handle} if handle else {})
    (folder / "environ").write_bytes(b"".join(f"{k}={v}\0".encode() for k, v in environ.items()))


def test_a_living_nbs_sidecar_under_the_handle_is_named(root: Path, proc: Path) -> None:
    Path(presence.sidecar_path(str(root), "ana")).write_text("4121\n")
    process(proc, 4121, "/usr/bin/nbs-sidecar", "--handle=ana", "--root=/x")
    with pytest.raises(
        CollisionError, match=r"ana: nbs-sidecar \(pid 4121\) works under this handle already"
    ) as caught:
        presence.claim(str(root), "ana", sidecar=os.getpid(), proc=str(proc))
    assert "kill 4121" in (caught.value.hint or "")
    assert Path(presence.sidecar_path(str(root), "ana")).read_text() == "4121\n"


def test_a_living_nbs_claude_under_the_handle_is_named(root: Path, proc: Path) -> None:
    Path(presence.pid_path(str(root), "ana")).write_text("4122")
    process(proc, 4122, "bash", "/home/x/.nbs/bin/nbs-claude", "--root=/x", handle="ana")
    found = presence.find_foreign(str(root), "ana", proc=str(proc))
    assert found is not None
    assert (found.pid, found.what) == (4122, "nbs-claude")


@pytest.mark.parametrize(
    ("argv", "handle"),
    [
        ((), None),
        (("/usr/bin/nbs-sidecar", "--handle=ana2"), None),
        (("vim", "notes about nbs-claude"), None),
        (("bash", "/x/nbs-claude"), "bo"),
        (("python", "--handle=ana"), None),
    ],
)
def test_a_number_that_was_used_again_is_no_collision(
    root: Path, proc: Path, argv: tuple[str, ...], handle: str | None
) -> None:
    for path in (presence.sidecar_path(str(root), "ana"), presence.pid_path(str(root), "ana")):
        Path(path).write_text("4123\n")
    if argv:
        process(proc, 4123, *argv, handle=handle)
    presence.claim(str(root), "ana", sidecar=7, client=8, proc=str(proc))
    assert Path(presence.sidecar_path(str(root), "ana")).read_text() == "7\n"
    assert Path(presence.pid_path(str(root), "ana")).read_text() == "8\n"


def test_only_one_s_own_marks_are_removed(root: Path, proc: Path) -> None:
    presence.claim(str(root), "ana", sidecar=7, client=8, proc=str(proc))
    Path(presence.pid_path(str(root), "ana")).write_text("99")
    presence.release(str(root), "ana", sidecar=7, client=8)
    assert os.listdir(root / ".nbs" / "pids") == ["ana.pid"]


@pytest.mark.parametrize("text", ["", "x", "-5", "0", "12 13"])
def test_nonsense_in_a_pid_file_is_no_process(root: Path, text: str) -> None:
    Path(presence.pid_path(str(root), "ana")).write_text(text)
    assert presence.read_pid(presence.pid_path(str(root), "ana")) is None


def test_without_a_proc_folder_processes_are_still_seen(root: Path, tmp_path: Path) -> None:
    Path(presence.sidecar_path(str(root), "ana")).write_text(f"{os.getppid()}\n")
    assert presence.find_foreign(str(root), "ana", proc=str(tmp_path / "none")) is None
    assert presence._portable_argv(os.getppid())


def test_a_pause_is_a_file_that_anybody_may_make(root: Path) -> None:
    assert not presence.paused(str(root))
    presence.pause(str(root), 1_777_626_000)
    assert (root / ".nbs" / "control-pause").read_text() == "2026-05-01T09:00:00Z\n"
    assert presence.paused(str(root))
    assert presence.resume(str(root))
    assert not presence.resume(str(root))
    (root / ".nbs" / "control-pause").touch()
    assert presence.paused(str(root))


def test_session_metadata_is_what_nbs_claude_writes(root: Path) -> None:
    session = Session("uuid", "ana", "opus[1m]", "2026-05-01T09:00:00Z", str(root), 8, initial_prompt_set=True)
    presence.write_session(str(root), session)
    text = (root / ".nbs" / "sessions" / "ana.json").read_text()
    assert '  "session_id": "uuid",\n' in text
    assert json.loads(text) == {
        "session_id": "uuid",
        "handle": "ana",
        "model": "opus[1m]",
        "started": "2026-05-01T09:00:00Z",
        "project_root": str(root),
        "pid": 8,
        "initial_prompt_set": True,
        "tmux_session": "",
        "transport": "tmux",
    }
    assert presence.read_session(str(root), "ana") == session
    for damage in ("", "{", "[]", '{"handle": "ana"}'):
        (root / ".nbs" / "sessions" / "ana.json").write_text(damage)
        assert presence.read_session(str(root), "ana") is None
    assert presence.read_session(str(root), "bo") is None


def test_the_end_of_a_client_takes_its_own_metadata_away_and_no_other_s(root: Path) -> None:
    session = Session("uuid", "ana", "", "2026-05-01T09:00:00Z", str(root), 8, initial_prompt_set=True)
    presence.write_session(str(root), session)
    presence.release(str(root), "ana", sidecar=1, client=9)
    assert presence.read_session(str(root), "ana") == session
    presence.release(str(root), "ana", sidecar=1, client=8)
    assert not (root / ".nbs" / "sessions" / "ana.json").exists()


def last_standup(chat: Chat) -> float | None:
    return standup_file.last_standup(chat, "sidecar", "check in")


def hold(chat: Chat, now: float) -> bool:
    return standup_file.hold(chat, "sidecar", "check in", now, 900.0)


def test_one_of_many_posts_a_standup(chat: Chat) -> None:
    taken: list[int] = []

    def attempt(n: int) -> None:
        if hold(Chat(chat.path), 1000.0):
            taken.append(n)

    threads = [threading.Thread(target=attempt, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(taken) == 1
    assert last_standup(chat) == 1000.0
    assert not hold(chat, 1899.0)
    assert hold(chat, 1900.0)
    assert Path(f"{chat.path}.standup-ts").read_text() == "1900\n"
    assert [(m.handle, m.at) for m in chat.messages()] == [("sidecar", 1000), ("sidecar", 1900)]


def test_a_standup_of_the_nbs_tools_counts_and_nonsense_does_not(chat: Chat) -> None:
    path = Path(standup_file.standup_path(chat.path))
    path.write_text("1777626000")
    assert last_standup(chat) == 1_777_626_000.0
    assert not hold(chat, 1_777_626_100.0)
    assert hold(chat, 1_777_625_000.0)  # the clock was set back
    for text in ("", "soon", "-4"):
        path.write_text(text)
        assert last_standup(chat) is None


def test_decisions_are_counted_in_the_log_of_the_right_chat(root: Path) -> None:
    bus = root / ".nbs" / "events"
    (bus / "processed").mkdir(parents=True)
    for name in (
        "1-scribe-decision-logged-5.event",
        "2-a-b-decision-logged.event",
        "3-decision-logged-fan-chat-4.event",
    ):
        (bus / name).touch()
    (bus / "processed" / "4-scribe-decision-logged-5.event").touch()
    (bus / ".tmp-5-6.event").touch()
    assert pythia_files.count_decisions(str(root), "live", str(bus)).count == 3
    log = Path(pythia_files.scribe_log(str(root), "live"))
    log.parent.mkdir()
    log.write_text("# Decision Log\n---\n\n### D-1 one\n - **Status**: ok\n### D-2 two\n#### D-3\n")
    found = pythia_files.count_decisions(str(root), "live", str(bus))
    assert (found.count, found.source) == (2, str(log))
    assert pythia_files.count_decisions(str(root), "other", str(bus)).count == 3
    assert pythia_files.count_decisions(str(root), None, str(root / "none")).count == 0


def test_the_last_bucket_is_shared_and_changed_by_one_only(root: Path) -> None:
    assert pythia_files.last_bucket(str(root)) is None
    bus = Bus(str(root / ".nbs" / "events"))
    Path(bus.folder).mkdir()
    won: list[tuple[str, ...]] = []

    def attempt() -> None:
        won.append(
            pythia_files.advance(
                str(root), Bus(bus.folder), lambda last: (3, "look") if last is None or last < 3 else (None, None)
            )
        )

    threads = [threading.Thread(target=attempt) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(len(names) for names in won) == [0] * 5 + [1]
    (event,) = bus.pending().events
    assert (event.source, event.type, event.priority, event.payload) == ("sidecar", "pythia-checkpoint", "high", "look")
    assert pythia_files.advance(str(root), bus, lambda last: (1, None)) == ()
    assert Path(pythia_files.bucket_path(str(root))).read_text() == "1\n"
