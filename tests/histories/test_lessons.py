"""What the nbs tools' users learned about launching and supervising agents, each under the number of its lesson."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Any, cast

import pytest

from nbs_fleet.cli import waiting
from nbs_fleet.cli.app import COMMANDS
from nbs_fleet.drivers.claude import Claude
from nbs_fleet.launch.registry import names
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.model import AgentState, Exit, ExitKind, Priority
from nbs_fleet.nbs.bus_format import Event
from nbs_fleet.plan.types import AgentRecord, Desired
from nbs_fleet.sidecar import wording
from nbs_fleet.sidecar.ground import Ground
from nbs_fleet.sidecar.mind import Mind
from nbs_fleet.spec.load import load_team
from nbs_fleet.supervisor import hosting
from nbs_fleet.supervisor.board import is_call, pending
from nbs_fleet.supervisor.fleet import Asked, Ended, Stop
from nbs_fleet.supervisor.story import Story
from tests.drivers.support import SESSION, make_facts
from tests.supervisor.test_decide import World, agent, plan, started
from tests.support.cli_world import call

ROOT = Path(__file__).resolve().parents[2]


def test_l17_one_agent_has_one_sidecar_however_often_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    living: list[str] = []

    class Watching:
        def __init__(self, handle: str) -> None:
            self.handle = handle

        async def run(self) -> None:
            living.append(self.handle)
            try:
                await asyncio.Event().wait()
            finally:
                living.remove(self.handle)

    def make(_self: object, _plan: object, one: Any, _record: object, _mind: Mind) -> Watching:
        return Watching(one.agent.handle)

    async def story() -> None:
        hosted = hosting.Sidecars(
            cast("Ground", None),
            cast("Watcher", None),
            tell=lambda *_: None,
            heard=lambda *_: None,
            story=lambda handle: Story(str(tmp_path / handle)),
        )
        ana, bo = agent("ana"), agent("bo")
        for _ in range(5):
            for one in (ana, bo):
                record = AgentRecord(one.agent.handle)
                hosted.begin(plan(ana, bo), one, record, prompted=False, adopted=False)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert sorted(living) == ["ana", "bo"]
        assert hosted.states() == {"ana": "running", "bo": "running"}
        hosted.end("ana")
        await asyncio.sleep(0)
        assert living == ["bo"]
        await hosted.close()
        assert living == []

    monkeypatch.setattr(hosting.Sidecars, "_make", make)
    asyncio.run(story())


def test_l44_a_notice_calls_a_skill_that_there_is_under_the_name_it_has_there() -> None:
    call_of_it = wording.notice(None, "3 unread in live (bo)", "ana", by_skill=True)
    name, _, summary = call_of_it.removeprefix("/").partition(" ")
    skill = ROOT / "templates" / "skills" / name / "SKILL.md.j2"
    assert f"\nname: {name}\n" in skill.read_text()
    assert summary == "3 unread in live (bo)"
    assert "$ARGUMENTS" in skill.read_text()


def test_l44_what_a_notice_and_a_recovery_say_to_run_can_be_run() -> None:
    told = wording.recovery("1 unread in live (bo)", "ana", ("live",), (".nbs/events",), ("/s/nbs-poll/SKILL.md",))
    plain = wording.notice(None, "1 unread in live (bo)", "ana", plain=True)
    named = re.findall(r"`nbs-fleet ([a-z]+ [a-z]+)", told + plain)
    assert {"chat read", "bus check", "chat send", "bus ack"} <= set(named) <= set(COMMANDS)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("driver", "pty"),
        ("environment", "nbs-ts"),
        ("stop", "never"),
        ("sidecar", "{delivery: pty}"),
        ("sidecar", "{poll_mode: sometimes}"),
        ("sidecar", "{draft: drop}"),
        ("restart", "{policy: maybe}"),
        ("dialogs", "{trust: yes-please}"),
    ],
)
def test_l22_a_mode_that_does_not_exist_is_an_error_and_never_means_nothing(
    tmp_path: Path, key: str, value: str
) -> None:
    file = tmp_path / "team.yaml"
    driver = "" if key == "driver" else "    driver: claude\n"
    file.write_text(f"version: 1\nteam: t\nroot: .\nagents:\n  - handle: ana\n{driver}    {key}: {value}\n")
    said = call("validate", str(file))
    assert said.code == 2
    assert key in said.err


def test_l22_a_client_that_nobody_knows_is_not_started_as_anything() -> None:
    said = call("solo", "--", "no-such-client")
    assert (said.code, "no client that is known" in said.err) == (2, True)


def test_l26_the_next_client_starts_only_when_the_one_before_has_ended() -> None:
    world = World()
    world.up(agent("ana"))
    first = world.record("ana").proc
    actions = world.tell(Asked("restart", ("ana",)))
    assert [type(a) for a in actions] == [Stop]
    assert started(world.wait(600.0)) == []
    assert world.record("ana").proc == first
    assert started(world.tell(Ended("ana", Exit(ExitKind.STOPPED, world.now)))) == ["ana"]


def test_l58_a_mention_by_the_fleet_itself_waits_like_anything_else() -> None:
    calls = [
        Event(f"{n}-nbs-chat-chat-mention-1.event", n, "nbs-chat", "chat-mention", Priority.HIGH, payload=text)
        for n, text in enumerate(
            ("@ana from sidecar: @ana stand up", "@ana from sidecar2: hello", "@ana from bo: hello")
        )
    ]
    assert [is_call(event) for event in calls] == [False, True, True]
    assert pending(calls).urgent == (calls[1].name, calls[2].name)
    assert len(pending(calls).names) == 3


@pytest.mark.parametrize("resume", [False, True])
def test_l29_a_later_start_is_of_the_same_model_and_session(*, resume: bool) -> None:
    words = Claude().launch(make_facts(model="opus[1m]", resume=resume)).argv
    assert words[words.index("--model") + 1] == "opus[1m]"
    assert SESSION in words


def test_l29_another_model_is_a_reason_to_restart_and_the_same_is_none() -> None:
    world = World()
    world.up(agent("ana", model="opus"))
    assert world.up_again(agent("ana", model="opus")) == []
    assert [type(a) for a in world.up_again(agent("ana", model="haiku"))] == [Stop]


def test_l32_a_restart_counts_once_the_new_client_was_seen_ready() -> None:
    team = plan(agent("ana"))
    world = World()
    world.up(agent("ana"))
    world.tell(Asked("restart", ("ana",)))

    def settled() -> bool:
        return waiting.is_up(world.record("ana"), {"ana": world.record("ana")}, team)

    world.tell(Ended("ana", Exit(ExitKind.STOPPED, world.now)))
    assert not settled()
    world.launch("ana")
    assert not settled()
    world.ready("ana")
    assert settled()
    assert world.record("ana").ready


def test_l32_what_dies_again_is_settled_but_not_ready() -> None:
    world = World()
    world.up(agent("ana"))
    world.tell(Asked("restart", ("ana",)))
    world.tell(Ended("ana", Exit(ExitKind.STOPPED, world.now)))
    world.launch("ana")
    world.die("ana")
    record = world.record("ana")
    assert (waiting.is_up(record, {"ana": record}, plan(agent("ana"))), record.ready) == (True, False)


def test_l33_the_team_s_names_are_those_of_its_file_whatever_lies_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / ".nbs" / "chat"
    folder.mkdir(parents=True)
    for name in ("hub", "a-first", "live-20260101-000000-archive", "2026-01-archive"):
        (folder / f"{name}.chat").touch()
    file = tmp_path / "team.yaml"
    file.write_text(
        "version: 1\nteam: crew\nroot: .\nchats: [live, review]\nstandup: {every: 15m}\n"
        "agents:\n  - {handle: ana, driver: sim}\n"
    )
    team = load_team(str(file), {}, known_drivers=names()).team
    assert team.name == "crew"
    assert [os.path.relpath(c.path, tmp_path) for c in team.chats] == [".nbs/chat/live.chat", ".nbs/chat/review.chat"]
    assert team.standup is not None
    assert team.standup.chat == "live"


def test_l73_a_small_team_that_is_whole_is_left_alone_and_one_death_restarts_one() -> None:
    world = World()
    world.up(agent("ana"), agent("bo"))
    assert [world.wait(3600.0) for _ in range(5)] == [[]] * 5
    world.die("bo")
    assert started(world.wait(60.0)) == ["bo"]
    assert world.record("ana").desired is Desired.UP
    assert world.record("ana").state is AgentState.IDLE
    assert world.fleet.alarm == ""


def test_l85_each_command_has_its_page_and_its_line_of_help() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text()
    listed = call("--help").out
    for name in COMMANDS:
        assert re.search(rf"^#+ `?(nbs-fleet )?{name}\b", page, re.MULTILINE), f"{name} is not in the reference"
        assert re.search(rf"^\s*{name.split()[0]}\b", listed, re.MULTILINE), f"{name} is not in the help"


def test_l85_skills_and_templates_name_only_commands_that_there_are() -> None:
    words = {name.split()[0] for name in COMMANDS} | {"help"}
    for path in sorted((ROOT / "templates").rglob("*.j2")):
        for line in path.read_text().splitlines():
            for verb in re.findall(r"nbs-fleet ([a-z]+)\b", line):
                assert verb in words, f"{path.name}: nbs-fleet {verb}"
