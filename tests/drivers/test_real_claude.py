from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nbs_fleet.drivers.base import Facts
from nbs_fleet.drivers.claude import Claude
from nbs_fleet.model import AgentState, BlockedKind, ExitKind
from nbs_fleet.spec.team import Agent, Dialogs
from tests.drivers.panes import ClientPane
from tests.support import clients
from tests.support.waiting import eventually

pytestmark = [pytest.mark.real, pytest.mark.tmux]
ROOT = {"IS_SANDBOX": "1"} if os.geteuid() == 0 else {}


class World:
    """One project, one client, one pane."""

    def __init__(self, folder: Path, client: clients.Client, pane: ClientPane) -> None:
        self.client, self.pane = client, pane
        self.project = folder / "pro ject"
        self.project.mkdir()
        self.home = folder / "home"
        self.home.mkdir()

    @property
    def environ(self) -> dict[str, str]:
        path = ":".join((*self.client.path, "/usr/bin", "/bin"))
        return {"PATH": path, "HOME": str(self.home), **self.client.environment, **ROOT}

    def facts(self, **given: Any) -> Facts:
        environ = {**self.environ, **given.pop("environ", {})}
        has_prompt = given.pop("has_prompt", False)
        agent = Agent(handle="bo-1", base="bo", role=None, driver="claude", dir=str(self.project), **given)
        return Facts(
            agent=agent,
            team="t",
            run=str(self.home),
            agent_dir=str(self.home),
            settings_path=str(self.home / "settings.json"),
            session_id=str(uuid.uuid4()),
            resume=False,
            has_prompt=has_prompt,
            home=str(self.home),
            env=environ,
            real_dir=str(self.project.resolve()),
        )

    def virgin(self) -> None:
        """Take back all that the client was told beforehand."""
        (self.client.config / ".claude.json").unlink()


@pytest.fixture
def world(tmp_path: Path, short_path: Path) -> Iterator[World]:
    clients.need("claude")
    pane = ClientPane(short_path, Claude())
    with clients.running("claude", tmp_path / "client") as client:
        try:
            yield World(tmp_path, client, pane)
        finally:
            pane.close()


def prompts(world: World) -> list[str]:
    api = world.client.api
    assert api is not None
    return [text for request in api.turns() for text in request.user_texts]


def waits(pane: ClientPane, facts: Facts) -> str:
    """What the state file says the client waits for."""
    state = pane.state_file(facts)
    return state.reading.detail if state and state.reading.state is AgentState.BLOCKED else ""


def test_a_prompt_that_looks_like_a_flag_arrives_without_any_dialog_and_the_session_can_be_resumed(
    world: World,
) -> None:
    pane = world.pane
    facts = world.facts(
        has_prompt=True,
        permission_mode="bypassPermissions" if ROOT else None,
        dialogs=Dialogs(trust="accept", bypass="accept"),
    )
    pane.start(facts, facts.env, prompt="--help: 'quoted' $HOME \\ 😀\nsecond line [[say hello]]")
    eventually(lambda: pane.turns(facts).finished == 1, 40)
    assert prompts(world)[-1] == "--help: 'quoted' $HOME \\ 😀\nsecond line [[say hello]]"
    assert pane.idle().state is AgentState.IDLE
    state = eventually(lambda: pane.state_file(facts), 40)
    assert state.session_id == facts.session_id
    assert state.reading.title == "bo-1"
    assert (pane.title().state, pane.title().title) == (AgentState.UNKNOWN, "bo-1")
    assert pane.turns(facts).last_text == "hello"
    again = replace(facts, resume=True)
    pane.keys("C-d")
    pane.until(lambda r: "Press Ctrl-D again" in "".join(pane.rows()))
    pane.keys("C-d")
    code, lines = pane.ended()
    assert pane.driver.read_exit(code, None, lines) is ExitKind.CLEAN
    pane.start(again, facts.env, prompt="go on [[say back]]")
    eventually(lambda: pane.turns(again).finished == 2, 40)
    assert pane.turns(again).last_text == "back"


@pytest.mark.parametrize("size", [(120, 40), (60, 24), (30, 40)])
def test_every_dialog_of_a_first_start_is_answered_as_the_policy_says(world: World, size: tuple[int, int]) -> None:
    world.virgin()
    (world.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": {"command": "true"}}}))
    world.pane.size = size
    policy = Dialogs(setup="accept", apikey="accept", trust="accept", mcp="accept")
    facts = world.facts()
    # With a token the client skips its call to the outside at the first start.
    world.pane.start(facts, {**facts.env, "ANTHROPIC_AUTH_TOKEN": "none"})
    pressed = world.pane.answer_all(policy)
    assert pressed == [
        ("setup", ("Enter",)),
        ("apikey", ("1",)),
        ("setup", ("Enter",)),
        ("trust", ("1",)),
        ("mcp", ("1",)),
    ]


@pytest.mark.parametrize("size", [(120, 40), (30, 24)])
def test_settings_that_the_client_rejects_and_bypass_are_dialogs_too(world: World, size: tuple[int, int]) -> None:
    world.pane.size = size
    facts = world.facts(permission_mode="bypassPermissions", environ={"CLAUDE_CODE_SANDBOXED": "1", "IS_SANDBOX": "1"})
    Path(facts.settings_path).write_text('{"hooks": {"NoSuchEvent": []}}', encoding="utf-8")
    world.pane.start(facts, facts.env, settings=False)
    pressed = world.pane.answer_all(Dialogs(bypass="accept", settings="accept"))
    assert sorted(pressed) == [("bypass", ("2",)), ("settings", ("1",))]


def test_a_dialog_without_a_policy_waits_for_a_person(world: World) -> None:
    facts = world.facts()
    world.pane.start(facts, facts.env)
    assert world.pane.answer_all(Dialogs()) == [("trust", None)]


def test_a_client_without_a_login_says_so(world: World) -> None:
    facts = world.facts(dialogs=Dialogs(trust="accept"))
    world.pane.start(facts, {key: value for key, value in facts.env.items() if key != "ANTHROPIC_API_KEY"})
    reading = world.pane.until(lambda r: r.state is AgentState.BLOCKED)
    assert reading.blocked is BlockedKind.LOGIN


def test_turns_drafts_permissions_and_errors_are_told_from_the_screen(world: World) -> None:
    pane = world.pane
    facts = world.facts(dialogs=Dialogs(trust="accept"))
    pane.start(facts, {**facts.env, "CLAUDE_CODE_MAX_RETRIES": "0"})
    pane.idle()
    pane.submit("[[bash touch made]] [[slow 3 a b c d e f]]")
    reading = pane.until(lambda r: r.dialog is not None)
    assert reading.blocked is BlockedKind.PERMISSION
    assert reading.dialog is not None
    eventually(lambda: waits(pane, facts) == "permission prompt")
    pane.keys(*(pane.driver.answer(reading.dialog, Dialogs(permission="approve")) or ()))
    pane.until(lambda r: r.state is AgentState.BUSY)
    pane.idle()
    assert (world.project / "made").exists()
    pane.keys("-l", "half typed")
    assert pane.until(lambda r: r.draft == "half typed").blocked is BlockedKind.DRAFT
    pane.keys("C-u")
    pane.idle()
    assert world.client.api is not None
    world.client.api.force("[[err 429 99]]", 9)
    pane.submit("please")
    pane.until(lambda r: r.state is AgentState.LIMITED)


def test_an_approved_plan_keeps_bypass(world: World) -> None:
    pane = world.pane
    facts = world.facts(
        permission_mode="bypassPermissions",
        dialogs=Dialogs(trust="accept", bypass="accept"),
        environ={"IS_SANDBOX": "1"},
    )
    pane.start(facts, facts.env)
    pane.idle()
    pane.submit("[[tool EnterPlanMode {}]] [[plan]] [[tool ExitPlanMode {}]] [[say planned]]")
    reading = pane.until(lambda r: r.blocked is BlockedKind.PLAN)
    assert reading.dialog is not None
    pane.keys(*(pane.driver.answer(reading.dialog, Dialogs(plan="approve")) or ()))
    pane.until(lambda r: r.state is AgentState.IDLE and "● planned" in pane.rows())
    assert any("bypass permissions on" in row for row in pane.rows())


def test_a_resized_pane_is_still_read_right(world: World) -> None:
    pane = world.pane
    facts = world.facts(dialogs=Dialogs(trust="accept"))
    pane.start(facts, facts.env)
    pane.idle()
    pane.submit("[[say " + "many words " * 30 + "]]")
    eventually(lambda: pane.turns(facts).finished == 1, 40)
    for width, height in ((40, 20), (150, 50), (60, 24)):
        pane.tmux("resize-window", "-t", "client:", "-x", str(width), "-y", str(height))
        pane.until(lambda r, w=width: r.state is AgentState.IDLE and any(len(row) == w for row in pane.rows()))  # type: ignore[misc]
    pane.submit("[[bash touch x]]")
    assert pane.until(lambda r: r.dialog is not None).blocked is BlockedKind.PERMISSION


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"args": ("--no-such-flag",)}, ExitKind.REFUSED),
        ({"permission_mode": "wrong"}, ExitKind.REFUSED),
        ({"model": ""}, ExitKind.CLEAN),
    ],
)
def test_a_client_that_refuses_is_told_from_one_that_crashed(
    world: World, given: dict[str, Any], expected: ExitKind
) -> None:
    facts = world.facts(dialogs=Dialogs(trust="accept"), **given)
    world.pane.start(facts, facts.env)
    if expected is ExitKind.CLEAN:
        world.pane.idle()
        world.pane.submit("/exit")
    code, lines = world.pane.ended()
    assert world.pane.driver.read_exit(code, None, lines) is expected


def test_sessions_that_exist_or_do_not_are_told_apart(world: World) -> None:
    pane = world.pane
    facts = world.facts(has_prompt=True, dialogs=Dialogs(trust="accept"))
    pane.start(replace(facts, resume=True, has_prompt=False), facts.env)
    code, lines = pane.ended()
    assert pane.driver.read_exit(code, None, lines) is ExitKind.NO_CONVERSATION
    pane.start(facts, facts.env, prompt="[[say hi]]")
    eventually(lambda: pane.turns(facts).finished == 1, 40)
    pane.start(replace(facts, has_prompt=False), facts.env)
    code, lines = pane.ended()
    assert pane.driver.read_exit(code, None, lines) is ExitKind.SESSION_IN_USE


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused")
def test_root_without_a_sandbox_is_refused(world: World) -> None:
    facts = world.facts(permission_mode="bypassPermissions", dialogs=Dialogs(trust="accept", bypass="accept"))
    world.pane.start(facts, {key: value for key, value in facts.env.items() if key != "IS_SANDBOX"})
    code, lines = world.pane.ended()
    assert world.pane.driver.read_exit(code, None, lines) is ExitKind.REFUSED
