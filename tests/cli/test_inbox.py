"""inbox: what waits for an agent, what has ended, and marking a message as done."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nbs_fleet.launch.messages import Mailbox
from nbs_fleet.launch.processes import identify
from nbs_fleet.model import Delivered, Outcome, Priority
from nbs_fleet.plan.paths import RunPaths
from tests.support.cli_world import Said, agent, call, make_team, write_record
from tests.support.mailbox import claim, message


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    return make_team(tmp_path / "root", "review", (agent("ana"), agent("bo-1", base="bo"), agent("bo-2", base="bo")))


@pytest.fixture
def in_bo_1(paths: RunPaths) -> None:
    """This process descends from the client of bo-1."""
    write_record(paths, "bo-1", proc=identify(os.getppid()))


def box(paths: RunPaths, handle: str = "ana") -> Mailbox:
    return Mailbox(paths.agent(handle))


def fill(paths: RunPaths) -> None:
    """One message that ended, two that wait."""
    mine = box(paths)
    for number, more in ((1, {}), (2, {"type": "task", "priority": Priority.HIGH}), (3, {"text": "a\nb"})):
        mine.accept(message(number, **more))
    mine.finish("d-0-1", Outcome.DELIVERED, "mail", "seen", 1_800_000_100.0)
    mine.put_mail(message(2), "x")


def test_an_inbox_lists_what_waits_after_what_has_ended(paths: RunPaths) -> None:
    fill(paths)
    said = call("inbox", "list", "ana")
    assert (said.code, said.err) == (0, "2 waiting\n")
    rows = [line.split() for line in said.out.splitlines()]
    assert [row[0] for row in rows] == ["ID", "d-0-1", "d-0-2", "d-0-3"]
    assert "delivered" in rows[1]
    assert rows[2][1:5] == ["ana", "bo", "task", "(high)"]
    assert " in its mail " in said.out
    assert rows[3][-3:] == ["a", "/", "b"]
    assert call("inbox", "list", "-n", "0").out.count("\n") == 3
    assert call("inbox", "list", "bo") == Said(0, "", "0 waiting\n")


def test_an_inbox_as_json(paths: RunPaths) -> None:
    fill(paths)
    Path(f"{paths.agent('ana').queue}/d-0-9.json").write_text("{")
    answer = json.loads(call("inbox", "list", "--json").out)
    assert [m["id"] for m in answer["ended"]] == ["d-0-1"]
    assert [(m["id"], m["place"]) for m in answer["waiting"]] == [("d-0-2", "mail"), ("d-0-3", "queue")]
    assert answer["damaged"] == ["ana/queue/d-0-9.json"]
    assert answer["ended"][0] == {
        "id": "d-0-1",
        "to": "ana",
        "from": "bo",
        "kind": "directive",
        "type": "message",
        "priority": "normal",
        "interrupt": False,
        "created": "2027-01-15T08:00:01.000Z",
        "place": None,
        "outcome": "delivered",
        "at": "2027-01-15T08:01:40.000Z",
        "rung": "mail",
        "proof": "seen",
        "text": "é\n1",
    }


def test_an_agent_s_list_is_its_own(paths: RunPaths, in_bo_1: None) -> None:
    fill(paths)
    box(paths, "bo-1").accept(message(7, to="bo-1"))
    assert [line.split()[0] for line in call("inbox", "list").out.splitlines()] == ["ID", "d-0-7"]


def test_one_message_is_shown_whole(paths: RunPaths) -> None:
    fill(paths)
    said = call("inbox", "show", "d-0-3")
    head, state, *text = said.out.splitlines()
    assert head.startswith("d-0-3  message from bo to ana, normal, ")
    assert (state, text) == ("queued", ["", "a", "b"])
    assert call("inbox", "show", "d-0-1").out.splitlines()[1] == "delivered: mail, seen"
    assert json.loads(call("inbox", "show", "d-0-2", "--json").out)["place"] == "mail"


def test_an_unknown_message_gets_the_nearest(paths: RunPaths) -> None:
    fill(paths)
    said = call("inbox", "show", "d-0-33")
    assert said.code == 4
    assert 'no message "d-0-33" in review; did you mean "d-0-3"?' in said.err
    assert call("inbox", "show", "../../x").code == 4


def test_an_agent_marks_a_message_as_done_once(paths: RunPaths, in_bo_1: None) -> None:
    mine = box(paths, "bo-1")
    mine.accept(message(7, to="bo-1"))
    mine.put_inbox(message(7, to="bo-1"), "x")
    assert call("inbox", "archive", "d-0-7", "d-0-7") == Said(0, "archived d-0-7\n", "")
    ended = mine.find("d-0-7")
    assert isinstance(ended, Delivered)
    assert (ended.outcome, ended.rung, ended.proof) == (Outcome.DELIVERED, "inbox", "archived by bo-1")
    assert call("inbox", "archive", "d-0-7").out == "already delivered d-0-7\n"


def test_an_agent_marks_only_its_own(paths: RunPaths, in_bo_1: None) -> None:
    fill(paths)
    box(paths, "bo-1").accept(message(7, to="bo-1"))
    said = call("inbox", "archive", "d-0-7", "d-0-3")
    assert (said.code, said.out) == (1, "")
    assert "d-0-3 is for ana, not for bo-1" in said.err
    said = call("inbox", "archive", "d-0-3", "--as", "ana")
    assert said.code == 1
    assert "bo-1 can't speak as ana" in said.err
    assert len(box(paths, "bo-1").waiting()) == 1
    assert len(box(paths).waiting()) == 2


def test_a_person_withdraws_what_was_not_taken_and_may_act_for_an_agent(paths: RunPaths) -> None:
    fill(paths)
    assert call("inbox", "archive", "d-0-2", "--json").code == 0
    ended = box(paths).find("d-0-2")
    assert isinstance(ended, Delivered)
    assert ended.outcome is Outcome.WITHDRAWN
    box(paths).put_mail(message(3, text="a\nb"), "x")
    assert claim(box(paths)) == ["x"]
    said = call("inbox", "archive", "d-0-3")
    assert said.code == 1
    assert "ana's client has taken d-0-3 already" in said.err
    assert call("inbox", "archive", "d-0-3", "--as", "ana").out == "archived d-0-3\n"
    assert box(paths).waiting() == ()
