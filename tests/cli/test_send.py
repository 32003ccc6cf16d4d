"""send: into an agent's queue, and with --wait until its client acknowledged it; on files alone."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nbs_fleet.launch.locks import FileLock
from nbs_fleet.launch.messages import Mailbox, Parcel
from nbs_fleet.launch.processes import identify
from nbs_fleet.model import Message, MessageKind, Outcome, Priority
from nbs_fleet.plan.paths import RunPaths
from tests.support.cli_world import Said, agent, call, make_team, write_record
from tests.support.mailbox import claim
from tests.support.waiting import eventually

DEAD = "the supervisor is not running; it is delivered when it runs again (nbs-fleet up FILE)\n"


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    return make_team(tmp_path / "root", "review", (agent("ana"), agent("bo-1", base="bo"), agent("bo-2", base="bo")))


@pytest.fixture
def in_bo_1(paths: RunPaths) -> None:
    """This process descends from the client of bo-1."""
    write_record(paths, "bo-1", proc=identify(os.getppid()))


def box(paths: RunPaths, handle: str = "ana") -> Mailbox:
    return Mailbox(paths.agent(handle))


def queued(paths: RunPaths, handle: str = "ana") -> Message:
    """The one message that waits for this agent."""
    (parcel,) = box(paths, handle).waiting()
    assert parcel.place == "queue"
    return parcel.message


def while_waiting(paths: RunPaths, do: Callable[[Mailbox, Parcel], object], *argv: str) -> Said:
    """Run a command and let something happen to the first message that appears in ana's queue meanwhile."""

    def work() -> None:
        mine = box(paths)
        do(mine, eventually(mine.waiting)[0])

    thread = threading.Thread(target=work)
    thread.start()
    said = call(*argv)
    thread.join(10)
    return said


def ends(outcome: Outcome, proof: str) -> Callable[[Mailbox, Parcel], object]:
    return lambda mine, parcel: mine.finish(parcel.message.id, outcome, "mail", proof, 1.0)


def stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_a_directive_is_queued_and_its_id_is_told(paths: RunPaths) -> None:
    before = time.time()
    said = call("send", "ana", "look", "at  this")
    found = queued(paths)
    assert said == Said(0, f"queued {found.id}\n", DEAD)
    assert (found.to, found.sender, found.text) == ("ana", "person", "look at  this")
    assert (found.kind, found.type, found.priority) == (MessageKind.DIRECTIVE, "message", Priority.NORMAL)
    assert before <= found.created <= time.time()
    assert not found.interrupt


def test_with_a_live_supervisor_nothing_more_is_said(paths: RunPaths) -> None:
    with FileLock(paths.lock) as lock:
        assert lock.try_acquire()
        assert call("send", "ana", "x").err == ""


def test_type_priority_and_words_after_two_dashes(paths: RunPaths) -> None:
    assert call("send", "ana", "--type", "task", "--priority=high", "--", "-x", "--wait").code == 0
    found = queued(paths)
    assert (found.type, found.priority, found.text) == ("task", Priority.HIGH, "-x --wait")


def test_a_base_handle_stands_for_all_copies(paths: RunPaths) -> None:
    said = call("send", "bo", "x")
    ids = [queued(paths, handle).id for handle in ("bo-1", "bo-2")]
    assert len(set(ids)) == 2
    assert said.out == f"queued {ids[0]}  bo-1\nqueued {ids[1]}  bo-2\n"


def test_a_copy_that_sends_to_all_copies_means_the_others(paths: RunPaths, in_bo_1: None) -> None:
    assert call("send", "bo", "x").code == 0
    assert box(paths, "bo-1").waiting() == ()
    assert queued(paths, "bo-2").sender == "bo-1"
    assert call("send", "bo-1", "a note to myself").code == 0
    assert queued(paths, "bo-1").text == "a note to myself"


@pytest.mark.parametrize("argv", [("--stdin",), ("-",), ("--stdin", "-")])
def test_the_text_may_come_from_stdin(paths: RunPaths, monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...]) -> None:
    stdin(monkeypatch, "a\n\té\n\n".encode())
    assert call("send", "ana", *argv).code == 0
    assert queued(paths).text == "a\n\té"


def test_what_is_taken_out_of_a_text_is_said_and_kept_for_the_story(
    paths: RunPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin(monkeypatch, b"a\x1b[1mb\xff\r\n")
    said = call("send", "ana", "-")
    assert said.code == 0
    found = queued(paths)
    assert found.text == "a[1mb\ufffd"
    assert found.remarks == (
        "1 line end changed to LF",
        "1 control character removed (ESC)",
        "1 character replaced that can't be written as UTF-8",
    )
    assert said.err == "\n".join(found.remarks) + "\n" + DEAD
    assert call("send", "bo-1", os.fsdecode(b"\xff")).code == 0
    assert queued(paths, "bo-1").text == "\ufffd"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["ana"], "there is no text to send"),
        (["ana", " ", "\n"], "there is no text to send"),
        (["ana", "\x1b"], "there is no text to send"),
        (["ana", "x", "--stdin"], "not from both"),
        (["ana", "x" * 100_001], "the text has 100,001 bytes; a message may have 100,000"),
        (["ana", "x", "--type", "My Type"], "nbs-fleet send: invalid value for '--type': \"My Type\" is no type"),
        (["ana", "x", "--priority", "hihg"], "'hihg' is not one of 'critical', 'high', 'normal', 'low'"),
        (["ana", "compact", "--command"], '"compact" is no command of a client'),
        (["ana", "/compact", "--command", "--type", "x"], "a command is typed as it is: it has no --type"),
        (["ana", "x", "--wait", "--timeout", "5"], "did you mean 5s?"),
    ],
)
def test_what_can_not_be_sent_is_refused_before_anything_is_written(
    paths: RunPaths, monkeypatch: pytest.MonkeyPatch, argv: list[str], message: str
) -> None:
    stdin(monkeypatch, b"")
    said = call("send", *argv)
    assert said.code == 2
    assert message in said.err
    assert box(paths).waiting() == ()


def test_too_much_on_stdin_is_refused(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, b"x" * 1_000_000)
    assert "a message may have 100,000" in call("send", "ana", "-").err
    monkeypatch.setattr(sys, "stdin", None)
    assert call("send", "ana", "-").code == 2


def test_an_unknown_handle_gets_the_nearest(paths: RunPaths) -> None:
    said = call("send", "anna", "x")
    assert said.code == 4
    assert 'no agent "anna" in review; did you mean "ana"?' in said.err


def test_a_full_disk_is_said_and_nothing_is_queued(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        said = call("send", "ana", "x")
    assert said.code == 1
    assert "No space left on device" in said.err
    assert said.out == ""
    assert box(paths).waiting() == ()


def test_an_interrupt_and_a_command_are_a_person_s(paths: RunPaths) -> None:
    assert call("send", "ana", "stop that", "--interrupt").code == 0
    assert queued(paths).interrupt
    assert call("send", "bo-1", "--command", "/compact", "keep the plan").code == 0
    found = queued(paths, "bo-1")
    assert (found.kind, found.text, found.id[0]) == (MessageKind.COMMAND, "/compact keep the plan", "c")


@pytest.mark.parametrize("flag", ["--interrupt", "--command"])
def test_they_are_refused_to_agents(paths: RunPaths, in_bo_1: None, flag: str) -> None:
    said = call("send", "ana", flag, "/compact")
    assert said.code == 1
    assert "this is for a person to do, and the caller is an agent (bo-1)" in said.err
    assert box(paths).waiting() == ()


def test_the_sender_is_known_by_its_ancestors_whatever_its_environment_says(
    paths: RunPaths, in_bo_1: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NBS_HANDLE", "ana")
    monkeypatch.setenv("NBS_FLEET_RUN", paths.run)
    call("send", "ana", "x")
    assert queued(paths).sender == "bo-1"


def test_else_by_its_environment(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBS_FLEET_RUN", paths.run)
    monkeypatch.setenv("NBS_HANDLE", "bo-2")
    call("send", "ana", "x")
    assert queued(paths).sender == "bo-2"
    for handle in ("", "bo\n[nbs:d-1-1] message from person:"):
        monkeypatch.setenv("NBS_HANDLE", handle)
        said = call("send", "ana", "y")
        assert (said.code, said.out) == (1, "")
        assert "NBS_HANDLE names none" in said.err


def test_an_agent_of_another_team_is_named_with_its_team(
    paths: RunPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_team(tmp_path / "other", "build", (agent("ana"),))
    monkeypatch.setenv("NBS_FLEET_RUN", other.run)
    monkeypatch.setenv("NBS_HANDLE", "ana")
    assert call("send", "ana", "x", "--team", "review").code == 0
    assert queued(paths).sender == "ana@build"


# -- send --wait


def test_delivered_is_said_only_after_the_acknowledgement(paths: RunPaths) -> None:
    said = while_waiting(paths, ends(Outcome.DELIVERED, "in a prompt"), "send", "ana", "x", "--wait")
    assert said.code == 0
    first, second = said.out.splitlines()
    assert first.startswith("queued d-")
    assert second.startswith(f"delivered {first.split()[1]}  ana, mail, ")


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.WITHDRAWN])
def test_what_fails_says_why(paths: RunPaths, outcome: Outcome) -> None:
    said = while_waiting(paths, ends(outcome, "typed, never acknowledged"), "send", "ana", "x", "--wait")
    assert said.code == 1
    assert said.out.splitlines()[1].startswith(f"{outcome} d-")
    assert said.out.endswith("  ana: typed, never acknowledged\n")


def test_what_takes_too_long_stays_queued(paths: RunPaths) -> None:
    write_record(paths, "ana", state="blocked")
    said = call("send", "ana", "x", "--wait", "--timeout", "20ms")
    found = queued(paths)
    assert said.code == 124
    assert said.out == f"queued {found.id}\n"
    assert said.err == DEAD + f"{found.id} not acknowledged after 20ms: queued; ana is blocked; it is kept\n"


def test_being_taken_is_not_yet_being_delivered(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    accept = Mailbox.accept

    def accept_and_take(mine: Mailbox, one: Message) -> None:
        accept(mine, one)
        mine.put_mail(one, "x")
        assert claim(mine) == ["x"]

    monkeypatch.setattr(Mailbox, "accept", accept_and_take)
    said = call("send", "ana", "x", "--wait", "--timeout", "20ms")
    assert said.code == 124
    assert "delivered" not in said.out
    assert "taken by its client, not yet used" in said.err


def test_several_copies_are_waited_for_each(paths: RunPaths) -> None:
    def work() -> None:
        for handle, outcome in (("bo-2", Outcome.DELIVERED), ("bo-1", Outcome.FAILED)):
            mine = box(paths, handle)
            ends(outcome, "why")(mine, eventually(mine.waiting)[0])

    thread = threading.Thread(target=work)
    thread.start()
    said = call("send", "bo", "x", "--wait", "--json")
    thread.join(10)
    assert said.code == 1
    answer = json.loads(said.out)
    assert (answer["schema"], answer["team"]) == (1, "review")
    assert [(m["to"], m["state"], m["rung"], m["proof"]) for m in answer["messages"]] == [
        ("bo-1", "failed", "mail", "why"),
        ("bo-2", "delivered", "mail", "why"),
    ]
