from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nbs_fleet.drivers.base import Facts
from nbs_fleet.drivers.claudeless import Claudeless
from nbs_fleet.model import AgentState, BlockedKind, ExitKind
from nbs_fleet.spec.team import Agent, Dialogs
from tests.clients.install import CLAUDELESS
from tests.drivers.panes import ClientPane
from tests.support import clients
from tests.support.waiting import eventually

pytestmark = [pytest.mark.real, pytest.mark.tmux]


class World:
    """One project, one scenario, one pane."""

    def __init__(self, folder: Path, pane: ClientPane) -> None:
        self.folder, self.pane = folder, pane
        self.environ = {"PATH": f"{CLAUDELESS.executable.parent}:/usr/bin:/bin", "HOME": str(folder)}

    def facts(self, scenario: dict[str, Any], **given: Any) -> Facts:
        path = self.folder / "scenario.json"
        path.write_text(json.dumps({"name": "t", "default_response": {"text": "ok"}, **scenario}), encoding="utf-8")
        given["args"] = (*given.get("args", ()), "--scenario", str(path))
        has_prompt = given.pop("has_prompt", False)
        agent = Agent(handle="bo-1", base="bo", role=None, driver="claudeless", dir=str(self.folder), **given)
        return Facts(
            agent=agent,
            team="t",
            run=str(self.folder),
            agent_dir=str(self.folder),
            settings_path=str(self.folder / "settings.json"),
            session_id=str(uuid.uuid4()),
            resume=False,
            has_prompt=has_prompt,
            home=str(self.folder),
            env=self.environ,
            real_dir=str(self.folder.resolve()),
        )


@pytest.fixture
def world(tmp_path: Path, short_path: Path) -> Iterator[World]:
    clients.need("claudeless")
    pane = ClientPane(short_path, Claudeless())
    try:
        yield World(tmp_path, pane)
    finally:
        pane.close()


def test_a_prompt_is_a_turn_and_the_session_can_be_resumed(world: World) -> None:
    pane = world.pane
    facts = world.facts({}, has_prompt=True, permission_mode="acceptEdits", args=("--effort", "high"))
    pane.start(facts, world.environ, prompt="-hello")
    pane.idle()
    assert eventually(lambda: pane.turns(facts).finished) == 1
    pane.submit("/exit", paste=False)
    code, lines = pane.ended()
    assert pane.driver.read_exit(code, None, lines) is ExitKind.CLEAN
    pane.start(replace(facts, resume=True), world.environ, prompt="again")
    pane.idle()
    assert eventually(lambda: pane.turns(facts).prompts == 2)


def test_the_trust_dialog_is_answered_with_the_keys_it_knows(world: World) -> None:
    facts = world.facts({"trusted": False})
    world.pane.start(facts, world.environ)
    assert world.pane.answer_all(Dialogs(trust="accept")) == [("trust", ("y",))]


def test_a_refused_trust_ends_it_cleanly(world: World) -> None:
    facts = world.facts({"trusted": False})
    world.pane.start(facts, world.environ)
    reading = world.pane.until(lambda r: r.blocked is BlockedKind.TRUST)
    assert reading.dialog is not None
    world.pane.keys(*(world.pane.driver.answer(reading.dialog, Dialogs(trust="deny")) or ()))
    assert world.pane.ended()[0] == 0


def test_the_bypass_dialog_is_answered_with_arrows(world: World) -> None:
    facts = world.facts({}, args=("--dangerously-skip-permissions",))
    world.pane.start(facts, world.environ)
    assert world.pane.answer_all(Dialogs(bypass="accept")) == [("bypass", ("Down", "Enter"))]


def test_a_first_start_goes_past_the_theme_and_stops_at_the_login(world: World) -> None:
    facts = world.facts({"logged_in": False})
    world.pane.start(facts, world.environ)
    assert world.pane.answer_all(Dialogs(setup="accept", login="accept")) == [("setup", ("Enter",)), ("login", None)]


def test_a_permission_is_told_and_approved(world: World) -> None:
    call = {"tool": "Bash", "input": {"command": "true"}}
    rule = {"pattern": {"type": "any"}, "response": {"text": "T.", "tool_calls": [call]}}
    facts = world.facts({"responses": [rule]})
    world.pane.start(facts, world.environ)
    world.pane.idle()
    world.pane.submit("tool", paste=False)
    reading = world.pane.until(lambda r: r.blocked is BlockedKind.PERMISSION)
    assert reading.dialog is not None
    world.pane.keys(*(world.pane.driver.answer(reading.dialog, Dialogs(permission="approve")) or ()))
    world.pane.idle()


def test_a_turn_is_never_idle_while_it_shows_its_text_and_the_flicker_ends_with_it(world: World) -> None:
    rule = {"pattern": {"type": "any"}, "response": {"text": "late", "delay_ms": 1500}}
    facts = world.facts({"responses": [rule]})
    pane = world.pane
    pane.start(facts, world.environ)
    pane.idle()
    pane.submit("slow", paste=False)
    flicker = pane.driver.flicker or ""
    before = pane.tmux("display-message", "-p", "-t", "client:", flicker)
    assert (pane.read().state, pane.read().draft) == (AgentState.UNKNOWN, "slow")
    pane.idle()
    assert any("late" in row for row in pane.rows())
    assert pane.tmux("display-message", "-p", "-t", "client:", flicker) != before


def test_an_unknown_session_is_told(world: World) -> None:
    facts = replace(world.facts({}), resume=True)
    world.pane.start(facts, world.environ)
    code, lines = world.pane.ended()
    assert world.pane.driver.read_exit(code, None, lines) is ExitKind.NO_CONVERSATION
