"""What each client must do for a fleet, for real, through its driver: a start, messages, policies, ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest

from nbs_fleet.drivers.base import PROMPT
from nbs_fleet.launch import registry
from nbs_fleet.spec.load import load_team
from tests.drivers.support import make_facts
from tests.others.conftest import WITHIN, Fields, delivered, send, up
from tests.support.fleet import Fleet
from tests.support.others import WHO, Other

pytestmark = [pytest.mark.long, pytest.mark.real, pytest.mark.e2e]

HARD = 'It\'s "quoted", `ticked` $HOME $(id) a back\\slash \\n, 100% <tags> | pipes; !bang #hash * \U0001f9d1 日本語 @nobody'


def becomes(fleet: Fleet, state: str) -> Fields:
    """Wait until ana is in this state."""
    return fleet.agent("ana", fleet.wait(lambda ps: fleet.states(ps).get("ana") == state, within=WITHIN))


def test_a_prompt_arrives_byte_for_byte_in_a_project_that_nobody_has_trusted(fleet: Fleet, other: Other) -> None:
    text = f"say {HARD}\n  second line\n[[say hello]]"
    row = up(fleet, other, prompt_text=text)
    assert text in other.told()
    assert row["ready"]
    assert row["session_id"]


def test_without_a_prompt_it_is_idle_and_was_told_nothing(fleet: Fleet, other: Other) -> None:
    row = up(fleet, other)
    assert row["state"] == "idle"
    assert other.model_api.turns() == []


@pytest.mark.behaviour("trust")
def test_a_project_that_is_not_trusted_blocks_until_a_person_answers(fleet: Fleet, other: Other) -> None:
    fleet.write_team([other.agent("ana", dialogs=None, permission_mode=None)])
    # A client may show its input box for a moment before it asks.
    assert fleet.up("--no-wait", within=WITHIN).code == 0
    row = becomes(fleet, "blocked")
    assert row["blocked"] == "trust"
    assert other.model_api.turns() == []


# Qwen Code 0.15.10 runs no `sleep` by itself (measured).
WORKS = {"text": "[[slow 8 some words]]", "tool": "[[bash for n in 1 2 3 4; do sleep 2; done]] [[say done]]"}


@pytest.mark.parametrize("doing", WORKS.values(), ids=WORKS)
def test_a_turn_is_busy_from_its_begin_to_its_end(fleet: Fleet, other: Other, doing: str) -> None:
    """Not a moment of idleness while text streams or a tool runs."""
    up(fleet, other, prompt_text="[[say ready]]")
    begun = delivered(fleet, send(fleet, doing))["at"]
    becomes(fleet, "idle")
    states = [(r["at"], r["state"]) for r in fleet.told("ana", "state")]
    ended = [at for at, state in states if state == "idle" and at > begun]
    assert len(ended) == 1, states
    assert ended[0] - begun > 6.0


def test_a_message_to_an_idle_agent_arrives_once_and_as_written(fleet: Fleet, other: Other) -> None:
    up(fleet, other, prompt_text="[[say ready]]")
    text = f"{HARD} from @alice"
    record = delivered(fleet, send(fleet, text))
    becomes(fleet, "idle")
    assert [said.count(text) for said in other.told() if text in said] == [1]
    assert record["rung"] in ("native", "hook", "keys", "mail")


def test_a_first_message_to_an_agent_without_a_prompt_arrives(fleet: Fleet, other: Other) -> None:
    up(fleet, other)
    delivered(fleet, send(fleet, "hello [[say first]]"))
    becomes(fleet, "idle")
    assert other.count("hello [[say first]]") == 1


def test_messages_to_a_busy_agent_arrive_once_each_and_in_order(fleet: Fleet, other: Other) -> None:
    up(fleet, other, prompt_text="[[say ready]]")
    send(fleet, "[[slow 6 words]]")
    becomes(fleet, "busy")
    ids = [send(fleet, f"number {n} of three") for n in (1, 2, 3)]
    for one in ids:
        delivered(fleet, one)
    becomes(fleet, "idle")
    assert re.findall(r"\[nbs:([^\]]+)\]", other.given())[-3:] == ids
    assert [other.count(f"number {n} of three") for n in (1, 2, 3)] == [1, 1, 1]


@pytest.mark.behaviour("context at a tool")
def test_a_directive_is_handed_over_at_a_tool_call_while_the_turn_runs(fleet: Fleet, other: Other) -> None:
    up(fleet, other, prompt_text="[[say ready]]")
    running, gate = fleet.root / "running", fleet.root / "gate"
    waits = f"touch {running}; until [ -e {gate} ]; do sleep 0.2; done"
    send(fleet, f"[[bash {waits}]] [[bash sleep 1]] [[say done]]")
    fleet.until(running.exists, within=WITHIN, what="the tool runs")
    message = send(fleet, "look here")
    fleet.until(lambda: bool(fleet.told("ana", "message put out for a hook")), within=WITHIN, what="it is put out")
    gate.touch()
    record = delivered(fleet, message)
    assert record["rung"] == "hook"
    becomes(fleet, "idle")
    assert other.count("look here") == 1


def test_the_commands_that_it_runs_find_nbs_fleet_and_speak_for_it(fleet: Fleet, other: Other) -> None:
    up(fleet, other, prompt_text="[[say ready]]")
    delivered(fleet, send(fleet, "[[bash nbs-fleet signal complete all done]] [[say done]]"))
    fleet.wait(lambda ps: fleet.agent("ana", ps)["signal"] == "complete", within=WITHIN)


@pytest.mark.behaviour("stop block")
def test_an_agent_that_stops_without_a_word_is_asked_for_one_once(fleet: Fleet, other: Other) -> None:
    up(fleet, other, prompt_text="[[say ready]]", stop="signal")
    assert other.count("nobody knows whether you are done") == 1


@pytest.mark.behaviour("permission hook")
@pytest.mark.parametrize(("wish", "done"), [("approve", True), ("deny", False)])
def test_a_permission_is_answered_by_policy_without_a_dialog(
    fleet: Fleet, other: Other, wish: str, *, done: bool
) -> None:
    dialogs = {"trust": "accept", "permission": wish}
    up(fleet, other, prompt_text="[[say ready]]", permission_mode=None, dialogs=dialogs)
    mark = fleet.root.parent / "outside"
    asked = delivered(fleet, send(fleet, f"[[bash outside: touch {mark}]] [[say done]]"))["at"]
    fleet.until(lambda: ended(fleet, asked), within=WITHIN, what="the turn is over")
    assert mark.exists() == done
    assert hooked(fleet, "allow" if done else "deny")
    assert not [r for r in fleet.story("ana") if r.get("state") == "blocked"]


def ended(fleet: Fleet, since: float) -> bool:
    """Whether the agent has become idle after that wall second."""
    return any(r["state"] == "idle" and r["at"] > since for r in fleet.told("ana", "state"))


def hooked(fleet: Fleet, answer: str) -> bool:
    """Whether a hook gave this answer to the client."""
    news = (r.get("event", {}).get("news") for r in fleet.story("ana") if isinstance(r.get("event"), dict))
    return any(one["answer"] == answer for one in news if one)


@pytest.mark.behaviour("skills")
def test_the_model_is_told_of_the_skills_and_no_link_to_them_is_left(fleet: Fleet, other: Other) -> None:
    up(fleet, other, skills=["nbs-poll"], prompt_text="[[say ready]]")
    bodies = json.dumps([seen.body for seen in other.model_api.requests(WHO)], ensure_ascii=False)
    assert "Have one look at everything that could wait for you" in bodies
    assert fleet.down().code == 0
    assert not (fleet.root / ".agents").exists()


@pytest.mark.behaviour("permission dialog")
def test_a_permission_that_is_asked_blocks_and_a_person_may_approve(fleet: Fleet, other: Other) -> None:
    up(fleet, other, prompt_text="[[say ready]]", permission_mode=None)
    mark = fleet.root.parent / "outside"
    send(fleet, f"[[bash outside: touch {mark}]] [[say done]]")
    row = becomes(fleet, "blocked")
    assert row["blocked"] == "permission"
    held = send(fleet, "held until then")
    items = fleet.run("queue", "--json").json()["items"]
    approved = fleet.run("approve", items[0]["id"], within=WITHIN)
    assert approved.code == 0, str(approved)
    delivered(fleet, held)
    becomes(fleet, "idle")
    assert mark.exists()
    assert other.count("held until then") == 1


def test_a_client_that_is_killed_comes_back_in_its_session(fleet: Fleet, other: Other) -> None:
    row = up(fleet, other, prompt_text="remember the blue elephant [[say ready]]")
    fleet.kill("ana", signal.SIGKILL)
    fleet.wait(lambda ps: fleet.agent("ana", ps)["restarts"] == 1, within=WITHIN)
    back = fleet.agent("ana", fleet.all_idle(within=WITHIN))
    delivered(fleet, send(fleet, "[[say back]]"))
    becomes(fleet, "idle")
    assert other.count("remember the blue elephant") == 1
    if registry.get(other.name).capabilities.resume:
        assert back["session_id"] == row["session_id"]


def test_what_was_given_to_a_client_that_dies_is_not_lost(fleet: Fleet, other: Other) -> None:
    up(fleet, other, prompt_text="[[say ready]]")
    send(fleet, "[[wait 60 never]]")
    becomes(fleet, "busy")
    waiting = send(fleet, "must not be lost")
    fleet.kill("ana", signal.SIGKILL)
    delivered(fleet, waiting)
    # A client that keeps what it was given gives it to the model with what comes next.
    fleet.until(lambda: other.count("must not be lost") > 0, within=WITHIN, what="the model is told")
    becomes(fleet, "idle")
    assert other.count("must not be lost") == 1


@pytest.mark.behaviour("native inbox")
def test_what_lies_in_the_inbox_of_a_client_that_dies_arrives_once(fleet: Fleet, other: Other) -> None:
    up(fleet, other, prompt_text="[[say ready]]")
    waiting = send(fleet, "only this once")
    given = "message given to the client's inbox"
    fleet.until(lambda: bool(fleet.told("ana", given)), within=WITHIN, what="it is given to the client")
    fleet.kill("ana", signal.SIGKILL)
    delivered(fleet, waiting)
    delivered(fleet, send(fleet, "[[say last]]"))
    becomes(fleet, "idle")
    assert other.count("only this once") == 1


def test_the_supervisors_death_doubles_and_loses_nothing(fleet: Fleet, other: Other) -> None:
    row = up(fleet, other, prompt_text="[[say ready]]")
    send(fleet, "[[slow 6 words]]")
    becomes(fleet, "busy")
    one = send(fleet, "only one time")
    fleet.kill_supervisor()
    delivered(fleet, one)
    assert becomes(fleet, "idle")["pid"] == row["pid"]
    assert other.count("only one time") == 1


def test_a_stop_is_polite_and_leaves_nothing(fleet: Fleet, other: Other) -> None:
    up(fleet, other, prompt_text="[[say ready]]")
    before = tree(other.config)
    down = fleet.down()
    assert down.code == 0, str(down)
    assert fleet.leftovers() == []
    assert not [name for name in before ^ tree(other.config) if "nbs" in name]


def tree(folder: Path) -> set[str]:
    """The files below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.behaviour("one shot")
def test_one_turn_without_a_terminal_gets_the_prompt_and_ends(fleet: Fleet, other: Other) -> None:
    up(fleet, other)
    argv = one_shot(fleet, other)
    assert argv is not None
    text = f"{HARD}\n[[say only this]]"
    done = subprocess.run(
        [text if word == PROMPT else word for word in argv],
        cwd=fleet.root, env=fleet.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WITHIN, check=True,
    )  # fmt: skip
    assert "only this" in done.stdout
    assert text in other.told()


def one_shot(fleet: Fleet, other: Other) -> tuple[str, ...] | None:
    """The argv of one turn, for the agent that is up."""
    driver = registry.get(other.name)
    (agent,) = load_team(str(fleet.file), fleet.env).team.agents
    facts = make_facts(driver=other.name, real_dir=str(fleet.root.resolve()), environ=fleet.env)
    return driver.one_shot(msgspec.structs.replace(facts, agent=agent, home=fleet.env["HOME"]))
