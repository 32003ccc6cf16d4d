"""What only keys can do: commands of the client, interrupts; and a person in copy mode who is left alone."""

from __future__ import annotations

import pytest

from tests.e2e.delivery import situations
from tests.e2e.delivery.crew import Crew, token

pytest_plugins = ("tests.e2e.delivery.fixtures",)
pytestmark = pytest.mark.clients("sim", "claude")
BOTH = pytest.mark.parametrize("handle", ["ana", "kim"])


def declare(crew: Crew) -> None:
    """By mail: ana; by keys: kim."""
    allowed: dict[str, object] = {"permissions": {"allow": ["Bash"]}}
    if crew.client.name == "sim":
        allowed["scenario"] = {"timeouts": {"compact_delay_ms": 2000}}
    make = crew.client.agent
    crew.write([make("ana", **allowed), make("kim", sidecar={"delivery": "keys"}, **allowed)])


@BOTH
def test_a_command_is_typed_as_it_is(crew: Crew, handle: str) -> None:
    crew.arrives(crew.drop(handle, f"something to sum up {token()}"))
    crew.becomes(handle, "idle")
    passed = crew.passed(handle, "compacting")
    message_id = crew.send(handle, "--command", "/compact")
    crew.begins(handle, "compacting", passed)
    crew.until(lambda: crew.ended(message_id), "it is reported")
    ended = crew.ended(message_id)
    assert ended is not None
    assert (ended.outcome, ended.rung) == ("delivered", "keys")
    crew.becomes(handle, "idle")


@BOTH
def test_a_command_waits_for_the_end_of_a_turn(crew: Crew, handle: str) -> None:
    with situations.tool(crew, handle):
        message_id = crew.send(handle, "--command", "/compact")
        crew.until(lambda: crew.record(handle).queued == 1, "it is known")
        assert crew.ended(message_id) is None
    crew.until(lambda: crew.ended(message_id), "it is typed after the turn")
    crew.becomes(handle, "idle")


@BOTH
def test_an_interrupt_breaks_off_a_turn_and_is_heard_at_once(crew: Crew, handle: str) -> None:
    gate = situations.fresh(crew, "gate")
    crew.type(handle, f"[[bash until [ -e {gate.name} ]; do sleep 0.1; done; touch {gate.name}-passed]]")
    crew.becomes(handle, "busy")
    crew.until(lambda: crew.shows(handle, gate.name), "the tool runs")
    message_id = crew.send(handle, "--interrupt", f"stop, {token()}")
    assert crew.arrives(message_id).rung == "keys"
    crew.becomes(handle, "idle")
    assert crew.count(message_id) == 1
    gate.touch()
    assert not gate.with_name(f"{gate.name}-passed").exists()


@BOTH
def test_an_interrupt_of_an_idle_agent_is_a_plain_message(crew: Crew, handle: str) -> None:
    message_id = crew.send(handle, "--interrupt", token())
    crew.arrives(message_id)
    crew.becomes(handle, "idle")
    assert crew.count(message_id) == 1


@BOTH
def test_a_person_in_copy_mode_stays_there(crew: Crew, handle: str) -> None:
    pane = str(crew.record(handle).pane)
    crew.tmux("copy-mode", "-t", pane)
    message_id = crew.drop(handle, token())
    if handle == "ana":
        crew.arrives(message_id)
    else:
        crew.until(lambda: "copy mode" in str(crew.fleet.told("kim", "decided")[-3:]), "keys were refused")
        assert crew.ended(message_id) is None
    assert crew.tmux("display-message", "-p", "-t", pane, "#{pane_in_mode}").strip() == "1"
    crew.tmux("send-keys", "-t", pane, "-X", "cancel")
    crew.arrives(message_id)
    crew.becomes(handle, "idle")
    assert crew.count(message_id) == 1
