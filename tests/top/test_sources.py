"""What the dashboard sees of a team on this machine, and when it looks again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from nbs_fleet.cli.lookup import Found, find_team
from nbs_fleet.errors import UnknownNameError
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.model import AgentState
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.top import acts
from nbs_fleet.top.look import Wish
from nbs_fleet.top.sources import TeamSource
from tests.support.cli_world import agent, call, make_team, write_record, write_story
from tests.top import sample


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunPaths:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    made = make_team(tmp_path / "root", "review", (agent("ana"), agent("bo")))
    write_record(made, "ana", state=AgentState.STOPPED, since=5.0, tokens={"": 7})
    write_record(made, "bo", state=AgentState.FAILED, since=5.0)
    write_story(made.agent("bo").story, {"at": 6.0, "what": "start", "why": "asked"}, {"at": 7.0, "what": "decided"})
    (tmp_path / "root" / ".nbs" / "chat").mkdir(parents=True)
    chat = Chat(str(tmp_path / "root" / ".nbs" / "chat" / "live.chat"))
    chat.create()
    chat.send("ana", "hello")
    return made


@pytest.fixture
def found(paths: RunPaths) -> Found:
    return find_team("review")


@contextmanager
def source(found: Found) -> Iterator[TeamSource]:
    made = TeamSource(found)
    try:
        yield made
    finally:
        made.close()


def test_a_look_has_what_the_commands_show(found: Found) -> None:
    with source(found) as team:
        first = team.look(Wish())
        assert [(row.handle, row.state) for row in first.fleet.agents] == [("ana", "stopped"), ("bo", "failed")]
        assert (first.handle, first.story, first.chat) == ("ana", (), "live")
        assert [(m.handle, m.text) for m in first.messages] == [("ana", "hello")]
        second = team.look(Wish("bo", "live"))
        assert [(told.at, told.what, told.particulars) for told in second.story] == [(6.0, "start", ("asked",))]
        assert team.look(Wish("gone", "gone")).handle == "ana"
        assert team.mirror("ana").remark == "ana has no pane, and no screen of it was kept."


def test_without_a_pane_the_last_screen_kept_is_shown(found: Found, paths: RunPaths) -> None:
    write_atomic(f"{paths.agent('bo').captures}/12.500.txt", "one\ntwo\n")
    with source(found) as team:
        mirror = team.mirror("bo")
    assert (mirror.at, mirror.rows) == (12.5, ("one", "two"))


def test_a_team_that_was_never_up_is_an_error(found: Found, paths: RunPaths) -> None:
    Path(paths.plan).unlink()
    with source(found) as team, pytest.raises(UnknownNameError):
        team.look(Wish())


async def test_it_is_told_of_every_change_that_a_look_would_see(found: Found, paths: RunPaths, tmp_path: Path) -> None:
    changed = asyncio.Event()

    async def told() -> None:
        async with asyncio.timeout(30):
            await changed.wait()
        await asyncio.sleep(0.05)
        changed.clear()

    with source(found) as team:
        team.watch(team.look(Wish()), changed.set)
        write_record(paths, "ana", state=AgentState.IDLE, since=9.0)
        await told()
        write_atomic(paths.attention, msgspec.json.encode(sample.QUEUE))
        await told()
        write_story(paths.agent("ana").story, {"at": 9.0, "what": "start"})
        await told()
        Chat(str(tmp_path / "root" / ".nbs" / "chat" / "live.chat")).send("bo", "hello back")
        await told()
        team.look(Wish())  # changes nothing itself, else it would be followed by another one for ever
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await changed.wait()


def test_an_act_is_a_command_for_this_team(found: Found) -> None:
    argv = acts.argv(found, acts.answer("a7", "-1", "really"))
    assert argv[-8:] == ["answer", "--team", "review", "-m", "really", "--", "a7", "-1"]
    assert acts.argv(found, acts.send("ana", "secret words"))[-4:] == ["review", "--stdin", "--", "ana"]
    assert acts.pause("ana", paused=True).words == ("resume", "--", "ana")
    assert acts.pause("ana", paused=False).words == ("pause", "--", "ana")


async def test_agents_are_refused_here_as_on_the_command_line(
    found: Found, paths: RunPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NBS_FLEET_RUN", paths.run)
    monkeypatch.setenv("NBS_HANDLE", "ana")
    done = await acts.perform(found, acts.pause("bo", paused=False))
    assert done.code == 1
    assert "this is for a person to do, and the caller is an agent (ana)" in done.said


def test_without_the_extra_it_says_how_to_get_it(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "textual.app", None)
    monkeypatch.setenv("TEXTUAL_DRIVER", "x")
    for name in [n for n in __import__("sys").modules if n.startswith("nbs_fleet.top.") and "command" not in n]:
        monkeypatch.delitem(__import__("sys").modules, name)
    said = call("top", "--team", "review")
    assert (said.code, said.out) == (3, "")
    assert said.err.splitlines()[0].startswith("error: the dashboard needs the packages of the extra `top` (textual")
    assert "pip install 'nbs-fleet[top]'" in said.err


def test_it_needs_a_terminal(found: Found) -> None:
    said = call("top", "--team", "review")
    assert (said.code, said.err.splitlines()[0]) == (2, "error: the dashboard needs a terminal")
