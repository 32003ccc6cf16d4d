"""chat: as nbs-chat has it, by name or by file, for people and agents."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import time
from pathlib import Path

import msgspec
import pytest

from nbs_fleet.launch.processes import identify
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.spec.team import Chat as Declared
from nbs_fleet.supervisor import store
from tests.support.cli_world import Said, agent, call, make_team, write_record
from tests.support.nbs_reading import read_cursors


@pytest.fixture
def root(here: Path) -> Path:
    """A folder with what the nbs tools make, and no team."""
    (here / ".nbs" / "events").mkdir(parents=True)
    return here


@pytest.fixture
def team(root: Path) -> RunPaths:
    """A team with a chat in the usual place and one elsewhere."""
    paths = make_team(root, "review", (agent("ana"), agent("bo"), agent("medic")))
    plan = store.read_plan(paths)
    assert plan is not None
    chats = (
        Declared("live", str(root / ".nbs/chat/live.chat"), ("ana", "bo")),
        Declared("side", str(root / "talk.chat"), ("ana",)),
    )
    store.write_plan(paths, msgspec.structs.replace(plan, chats=chats))
    return paths


@pytest.fixture
def in_bo(team: RunPaths) -> None:
    """This process descends from the client of bo."""
    write_record(team, "bo", proc=identify(os.getppid()))


def said(*texts: tuple[str, str], name: str = "live") -> Chat:
    """A chat with these messages, made by the commands."""
    assert call("chat", "create", name).code == 0
    for handle, text in texts:
        assert call("chat", "send", name, handle, text) == Said(0, "", "")
    return Chat(f".nbs/chat/{name}.chat")


def test_a_chat_is_made_by_name_in_the_usual_place(root: Path) -> None:
    path = f"{root}/.nbs/chat/live.chat"
    assert call("chat", "create", "live") == Said(0, f"Created: {path}\n", "")
    again = call("chat", "create", "live")
    assert (again.code, again.err) == (1, f"error: File already exists: {path}\n")


def test_a_chat_is_made_at_a_path_whose_folder_exists(here: Path) -> None:
    assert call("chat", "create", "./x.chat") == Said(0, f"Created: {here}/x.chat\n", "")
    assert call("chat", "create", "no/x.chat").code == 1
    assert call("chat", "count", "x.chat").out == "0\n"


def test_messages_are_printed_as_nbs_chat_prints_them(root: Path) -> None:
    said(("ana", "hello"), ("bo", "two\nlines"))
    shown = call("chat", "read", "live")
    assert shown.code == 0
    assert re.fullmatch(r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\] ana: hello\n\[[^]]*Z\] bo: two\nlines\n", shown.out)
    assert call("chat", "read", "live", "--last", "1").out.endswith("bo: two\nlines\n")
    assert call("chat", "read", "live", "--since", "ana").out.startswith("[")
    assert call("chat", "read", "live", "--since", "bo") == Said(0, "", "")
    assert call("chat", "read", "live", "--before", "1h") == Said(0, "", "")
    assert call("chat", "read", "live", "--after", "1h").out == shown.out
    assert call("chat", "read", "live", "--offset", "1").out.endswith("ana: hello\n")


def test_what_is_unread_is_printed_once(root: Path) -> None:
    said(("ana", "hello"))
    assert call("chat", "read", "live", "--unread", "--as", "bo").out.endswith("ana: hello\n")
    assert call("chat", "read", "live", "--unread", "--as", "bo") == Said(0, "", "")
    assert call("chat", "read", "live", "--unread").out.endswith("ana: hello\n")
    assert read_cursors(root / ".nbs/chat/live.chat") == {"ana": 0, "bo": 0, "person": 0}


def test_what_could_not_be_printed_stays_unread(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = said(("ana", "hello"))

    class Gone(io.StringIO):
        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Gone())
    from nbs_fleet.cli import chat as command

    with pytest.raises(OSError, match="No space"):
        command.read("live", unread=True, as_="bo")
    monkeypatch.undo()
    assert chat.cursor("bo") == -1


@pytest.mark.parametrize("more", [["--last", "1"], ["--since", "ana"], ["--after", "1h"], ["--offset", "1"]])
def test_unread_stands_alone(root: Path, more: list[str]) -> None:
    said(("ana", "hello"))
    answer = call("chat", "read", "live", "--unread", "--as", "bo", *more)
    assert (answer.code, answer.out) == (4, "")
    assert read_cursors(root / ".nbs/chat/live.chat") == {"ana": 0}


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["read", "none"], 2),
        (["send", "none", "ana", "x"], 2),
        (["count", "./none.chat"], 2),
        (["participants", "none"], 2),
        (["search", "none", "x"], 2),
        (["read"], 4),
        (["read", "live", "--last", "x"], 4),
        (["read", "live", "--after", "soon"], 4),
        (["read", "live", "--as", "bo"], 4),
        (["send", "live", "ana"], 4),
        (["send", "live", "[ana]", "x"], 4),
        (["send", "live", "a=b", "x"], 4),
        (["search", "live"], 4),
        (["dance"], 4),
        ([], 4),
    ],
)
def test_exit_codes_are_those_of_nbs_chat(root: Path, argv: list[str], code: int) -> None:
    said(("ana", "hello"))
    answer = call("chat", *argv)
    assert (answer.code, answer.out) == (code, "")
    assert answer.err.startswith("error: ")
    assert Chat(".nbs/chat/live.chat").count() == 1


def test_what_is_no_chat_is_a_failure(root: Path) -> None:
    Path("notes.chat").write_text("hello\n")
    answer = call("chat", "read", "notes.chat")
    assert (answer.code, answer.err) == (
        1,
        f"error: {root}/notes.chat is no chat: it has no nbs-chat header\n",
    )


def test_a_text_may_be_several_words_or_come_from_stdin(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = said()
    assert call("chat", "send", "live", "ana", "several", "words", "--", "-x").code == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("two\nliñes\n".encode())))
    assert call("chat", "send", "live", "ana", "-").code == 0
    assert [m.text for m in chat.messages()] == ["several words -x", "two\nliñes"]


def test_a_message_goes_to_the_bus_and_the_team_is_the_roster(root: Path, team: RunPaths) -> None:
    said(("ana", "@team and @cy? look"))
    events = Bus(f"{root}/.nbs/events").pending().events
    assert {(e.type, e.addressee) for e in events} == {
        ("chat-message", None),
        ("chat-mention", "bo"),
        ("chat-mention", "medic"),
        ("chat-query", "cy"),
    }


def test_without_a_team_the_team_is_who_has_posted(root: Path) -> None:
    said(("ana", "hello"), ("bo", "@team hi"))
    events = Bus(f"{root}/.nbs/events").pending().events
    assert [e.addressee for e in events if e.type == "chat-mention"] == ["ana"]


def test_names_are_those_of_the_team_file(root: Path, team: RunPaths) -> None:
    said(("ana", "in the other place"), name="side")
    assert Chat(str(root / "talk.chat")).count() == 1
    os.chdir("/")
    assert call("chat", "count", "side", "--team", "review").out == "1\n"
    assert call("chat", "count", "talk.chat", "--team", "review").out == "1\n"
    assert call("chat", "count", ".nbs/chat/none.chat", "--team", "review").code == 2


def test_a_name_without_team_and_folder_is_no_chat(here: Path) -> None:
    answer = call("chat", "read", "live")
    if answer.code == 4:  # no folder .nbs anywhere above
        assert 'no chat "live": neither a team nor a folder .nbs is here' in answer.err


def test_an_agent_posts_and_reads_as_itself_only(root: Path, team: RunPaths, in_bo: None) -> None:
    said()
    answer = call("chat", "send", "live", "ana", "as if")
    assert (answer.code, answer.err) == (
        1,
        "error: bo can't act as ana\nhint: an agent is known by its pane: this one is bo\n",
    )
    assert call("chat", "send", "live", "bo", "mine").code == 0
    assert call("chat", "read", "live", "--unread", "--as", "ana").code == 1
    assert call("chat", "read", "live", "--unread") == Said(0, "", "")
    assert Chat(".nbs/chat/live.chat").participants() == (("bo", 1),)


def test_an_agent_of_nbs_claude_is_known_by_its_environment(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said(("ana", "hello"))
    monkeypatch.setenv("NBS_HANDLE", "bo")
    assert call("chat", "send", "live", "ana", "as if").code == 1
    assert call("chat", "read", "live", "--unread").out.endswith("hello\n")
    assert read_cursors(root / ".nbs/chat/live.chat")["bo"] == 0


def test_participants_and_count_as_nbs_chat_prints_them(root: Path) -> None:
    said(("ana", "1"), ("bo", "2"), ("ana", "3"))
    with Path(".nbs/chat/live.chat").open("a") as file:
        file.write("raw text\n")
    assert call("chat", "participants", "live").out == (
        "ana                      2 messages\nbo                       1 messages\n"
    )
    assert call("chat", "count", "live") == Said(0, "3\n", "warning: 1 message(s) skipped (decode failure)\n")
    assert call("chat", "read", "live", "--last", "0").err == "warning: 1 message(s) skipped (decode failure)\n"


def test_search_prints_the_number_of_each_message(root: Path) -> None:
    said(("ana", "Alpha"), ("bo", "beta ALPHA"), ("ana", "gamma"))
    found = call("chat", "search", "live", "alpha")
    assert re.fullmatch(r"\[0\] \[[^]]+Z\] ana: Alpha\n\[1\] \[[^]]+Z\] bo: beta ALPHA\n", found.out)
    assert call("chat", "search", "live", "alpha", "--handle", "bo").out.startswith("[1] ")
    assert call("chat", "search", "live", "delta") == Said(0, "No matches found.\n", "")
    assert call("chat", "search", "live", "").out.count("\n") == 3
    assert json.loads(call("chat", "search", "live", "gamma", "--json").out)["messages"][0]["index"] == 2


def test_archives_are_searched_on_demand(root: Path) -> None:
    chat = said(("ana", "new"))
    Path(chat.path.replace(".chat", "-20260501-090000-archive.chat")).write_bytes(
        Path(chat.path).read_bytes().replace(b"participants: ana(1)", b"participants: (archived)")
    )
    found = call("chat", "search", "live", "new", "--include-archives").out.splitlines()
    assert [line[: line.rindex("] ana") - 22] for line in found] == ["[0]", "[live-20260501-090000-archive.chat] [0]"]


def test_the_list_shows_the_team_s_chats_and_the_others(root: Path, team: RunPaths) -> None:
    said(("ana", "1"), ("bo", "2"))
    said(name="debug")
    rows = [line.split() for line in call("chat", "list").out.splitlines()]
    assert [row[0] for row in rows] == ["CHAT", "live", "side", "debug"]
    assert rows[1][1:4] == ["2", "2", "2"]
    assert rows[2][1] == "missing"
    facts = json.loads(call("chat", "list", "--json").out)["chats"]
    assert [(c["name"], c["messages"], c["unread"], c["error"]) for c in facts] == [
        ("live", 2, 2, None),
        ("side", None, None, "missing"),
        ("debug", 0, 0, None),
    ]


def test_no_chats_are_no_failure(root: Path) -> None:
    assert call("chat", "list") == Said(0, "", "no chats yet; nbs-fleet chat create NAME makes one\n")


def test_a_chat_as_json(root: Path) -> None:
    said(("ana", "hello\nthere"))
    answer = json.loads(call("chat", "read", "live", "--json").out)
    (message,) = answer["messages"]
    assert (message["index"], message["handle"], message["text"]) == (0, "ana", "hello\nthere")
    assert abs(time.time() - time.mktime(time.strptime(message["at"][:19], "%Y-%m-%dT%H:%M:%S"))) < 100_000
    assert answer["skipped"] == 0
    assert json.loads(call("chat", "participants", "live", "--json").out)["participants"] == [
        {"handle": "ana", "messages": 1}
    ]


def test_what_steers_a_terminal_is_shown_not_sent(root: Path) -> None:
    said(("ana", "red \x1b[31m"))
    assert call("chat", "read", "live").out.endswith("ana: red ^[[31m\n")
