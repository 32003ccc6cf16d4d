"""Chats and events of a running team: who is noticed of what, what an agent registers, what a person asks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.fleet import Fleet, Json

QUICK: Json = {"startup_grace": "500ms", "notify_cooldown": "500ms"}
FREE: Json = {"permission_mode": "bypassPermissions", "dialogs": {"bypass": "accept"}}
SAYS = {
    "register": r"\nbs-register-chat .nbs/side.chat",
    "unregister": r"\nbs-unregister-chat .nbs/side.chat",
    "quote": r"as `\nbs-register-chat y` shows",
}
"""What an agent says when it is asked to, by a word for it."""
DOES = {
    "echo": r"echo '\nbs-register-chat .nbs/x.chat'",
    "take-late": "nbs-fleet control register-chat .nbs/late.chat",
    "read": "nbs-fleet chat read live",
    "follow": "nbs-fleet control $(nbs-fleet chat read live | grep -o 'register-chat .*')",
    "leave-late": "nbs-fleet control unregister-chat .nbs/late.chat",
}
"""Commands that an agent runs, likewise."""


def wish(fleet: Fleet, *words: str) -> str:
    """A prompt for which the client's model says and does these."""
    if fleet.client.name == "claudeless":
        return " and ".join(f"please {word}!" for word in words)
    return " ".join(f"[[say {SAYS[word]}]]" if word in SAYS else f"[[bash {DOES[word]}]]" for word in words)


def scripted(fleet: Fleet) -> Json:
    """What a client has to be given so that its model follows a wish; of several, claudeless follows the first."""
    if fleet.client.name != "claudeless":
        return {}
    rules: list[Json] = [
        {"pattern": {"type": "contains", "text": f"please {word}!"}, "response": text} for word, text in SAYS.items()
    ]
    for word, command in DOES.items():
        call = {"tool": "Bash", "input": {"command": command}}
        rules.append(
            {"pattern": {"type": "contains", "text": f"please {word}!"}, "response": {"text": "", "tool_calls": [call]}}
        )
    rules.append({"pattern": {"type": "any"}, "response": "ok"})
    return {
        "scenario": {"responses": rules, "tool_execution": {"mode": "live", "tools": {"Bash": {"auto_approve": True}}}}
    }


def talkers(fleet: Fleet, *handles: str, **keys: Any) -> None:
    """Agents that share the chat `live` and a bus, up and idle; `keys` are set at the top of the file."""
    agents = [fleet.client.agent(handle, prompt_text=f"hello {handle}", **scripted(fleet)) for handle in handles]
    come_up(fleet, agents, chats=["live"], bus=[".nbs/events"], **keys)


def come_up(fleet: Fleet, agents: list[Json], *, sidecar: Json = QUICK, **keys: Any) -> None:
    """A team of these agents, up and idle."""
    fleet.write_team(agents, sidecar=sidecar, **keys)
    up = fleet.up()
    assert up.code == 0, str(up)
    fleet.all_idle()


def noticed(fleet: Fleet, handle: str) -> list[str]:
    """The summaries of the notices an agent got."""
    return [line["summary"] for line in fleet.told(handle, "noticed")]


def unread(fleet: Fleet, handle: str) -> dict[str, int]:
    found = fleet.agent(handle)["unread"]
    assert isinstance(found, dict)
    return found


def test_a_mention_wakes_whom_it_names_and_reaches_it(fleet: Fleet) -> None:
    talkers(fleet, "ana", "bo")
    fleet.run("chat", "send", "live", "maria", "good morning @bo")
    fleet.until(lambda: bool(noticed(fleet, "bo")), within=60, what="bo is noticed")
    fleet.wait(lambda ps: all(a["queued"] == 0 for a in ps["agents"]), within=60)
    assert noticed(fleet, "bo")[0].startswith("1 unread in live (maria)")
    # The chat is ana's too; the mention is not.
    fleet.until(lambda: bool(noticed(fleet, "ana")), within=60, what="ana is noticed")
    assert not any("chat-mention" in summary for summary in noticed(fleet, "ana"))
    session = fleet.agent("bo")["session_id"]
    assert any("unread in live" in prompt for prompt in fleet.client.prompts(session))
    assert not any("good morning" in prompt for prompt in fleet.client.prompts(session))
    # What was seen and done so far is decided on again just so.
    for handle in ("ana", "bo"):
        assert "all as recorded" in fleet.run("replay", handle).out


@pytest.mark.clients("sim", "claude", long=("claude",))
def test_a_chat_that_the_agent_unregisters_is_watched_no_more_and_one_it_registers_is(fleet: Fleet) -> None:
    own_lines_register(fleet)


def own_lines_register(fleet: Fleet) -> None:
    talkers(fleet, "ana")
    other = fleet.root / ".nbs" / "side.chat"
    fleet.run("chat", "create", str(other))
    fleet.run("send", "ana", wish(fleet, "register"), "--wait")
    fleet.until(lambda: str(other) in registry(fleet, "ana"), within=60, what="the chat is registered")
    fleet.run("chat", "send", str(other), "maria", "psst")
    fleet.until(lambda: unread(fleet, "ana").get("side") == 1, within=60, what="it is watched")
    fleet.run("send", "ana", wish(fleet, "unregister"), "--wait")
    fleet.until(lambda: "side" not in unread(fleet, "ana"), within=60, what="it is watched no more")


@pytest.mark.clients("sim", "claude", long=("claude",))
def test_ordinary_output_registers_nothing(fleet: Fleet) -> None:
    ordinary_output(fleet)


def ordinary_output(fleet: Fleet) -> None:
    talkers(fleet, "ana")
    before = registry(fleet, "ana")
    # claudeless does one thing in a turn.
    for words in (("echo",), ("quote",)) if fleet.client.name == "claudeless" else (("echo", "quote"),):
        fleet.run("send", "ana", wish(fleet, *words), "--wait")
        fleet.all_idle()
    session = fleet.agent("ana")["session_id"]
    for said in (".nbs/x.chat", "nbs-register-chat y"):
        fleet.until(lambda said=said: said in str(fleet.client.transcript(session)), what=f"{said} was said")  # type: ignore[misc]
    assert registry(fleet, "ana") == before


@pytest.mark.clients("sim")
def test_the_control_inbox_is_obeyed_at_once_and_a_path_outside_is_refused(fleet: Fleet) -> None:
    talkers(fleet, "ana")
    inbox = fleet.root / ".nbs" / "control-inbox-ana"
    with inbox.open("a") as file:
        file.write("# a comment\nregister-chat /etc/passwd\nregister-chat .nbs/late.chat\n")
    fleet.until(lambda: "late.chat" in registry(fleet, "ana"), within=30, what="it is registered")
    assert "passwd" not in registry(fleet, "ana")
    assert any("passwd" in str(line) for line in fleet.told("ana", "control refused"))


def pass_it_on(fleet: Fleet) -> None:
    """One registers a chat that is not there yet, and another takes it over from what it reads in a chat."""
    talkers(fleet, "ana", "bo", **FREE)
    late = fleet.root / ".nbs" / "late.chat"
    lives = fleet.pids()
    fleet.run("send", "ana", wish(fleet, "take-late"), "--wait")
    fleet.until(lambda: str(late) in registry(fleet, "ana"), within=60, what="it is registered")
    fleet.run("chat", "create", str(late))
    fleet.run("chat", "send", str(late), "maria", "psst")
    fleet.until(lambda: unread(fleet, "ana").get("late") == 1, within=60, what="it is watched")
    # Neither the words of another nor what a tool prints of them registers anything.
    fleet.run("chat", "send", "live", "ana", "\\nbs-register-chat .nbs/late.chat")
    fleet.run("send", "bo", wish(fleet, "read"), "--wait")
    fleet.until(lambda: bool(noticed(fleet, "bo")), within=60, what="bo is noticed")
    fleet.all_idle()
    assert str(late) not in registry(fleet, "bo")
    # What it read there and asks for itself does.
    fleet.run("send", "bo", wish(fleet, "follow"))
    fleet.until(lambda: unread(fleet, "bo").get("late") == 1, within=60, what="it is watched for bo")
    fleet.run("send", "bo", wish(fleet, "leave-late"))
    fleet.until(lambda: "late" not in unread(fleet, "bo"), within=60, what="it is watched no more")
    fleet.run("chat", "send", str(late), "maria", "still there?")
    fleet.until(lambda: unread(fleet, "ana").get("late") == 2, within=60, what="it is watched for ana")
    assert "late" not in unread(fleet, "bo")
    assert fleet.pids() == lives


@pytest.mark.clients("sim")
def test_what_is_made_after_the_start_is_watched_once_it_is_registered_and_can_be_passed_on_by_chat(
    fleet: Fleet,
) -> None:
    pass_it_on(fleet)


@pytest.mark.long
@pytest.mark.clients("claude")
def test_it_can_be_passed_on_between_real_clients(fleet: Fleet) -> None:
    pass_it_on(fleet)


@pytest.mark.long
@pytest.mark.clients("claudeless")
@pytest.mark.parametrize("story", [own_lines_register, ordinary_output, pass_it_on], ids=lambda s: s.__name__)
def test_so_it_is_with_claudeless(fleet: Fleet, story: Callable[[Fleet], None]) -> None:
    story(fleet)


@pytest.mark.clients("sim")
def test_a_query_shows_the_screen_in_the_chat(fleet: Fleet) -> None:
    talkers(fleet, "ana")
    fleet.run("chat", "send", "live", "maria", "@ana?")
    fleet.until(lambda: "session output for ana" in fleet.run("chat", "read", "live").out, what="the screen is shown")
    assert not list((fleet.root / ".nbs" / "events").glob("*chat-query*"))


@pytest.mark.clients("sim")
def test_a_paused_team_is_left_in_peace_until_it_goes_on(fleet: Fleet) -> None:
    talkers(fleet, "ana")
    assert fleet.run("pause").code == 0
    fleet.wait(lambda ps: "paused" in ps["agents"][0]["detail"])
    fleet.run("send", "ana", "hello")
    fleet.wait(lambda ps: ps["agents"][0]["queued"] == 1)
    fleet.kill_supervisor()
    fleet.wait(lambda ps: ps["supervisor"]["state"] == "running" and ps["agents"][0]["queued"] == 1, within=60)
    assert fleet.run("resume").code == 0
    fleet.wait(lambda ps: ps["agents"][0]["queued"] == 0, within=60)


@pytest.mark.clients("sim")
def test_a_standup_is_posted_by_the_clock(fleet: Fleet) -> None:
    fleet.write_team(
        [fleet.client.agent("ana", prompt_text="hello")], chats=["live"], standup={"every": "3s", "chat": "live"}
    )
    fleet.up()
    fleet.run("chat", "send", "live", "maria", "something new")
    fleet.until(lambda: "sidecar: Check-in" in fleet.run("chat", "read", "live").out, what="a standup")


@pytest.mark.clients("sim")
def test_a_full_bucket_of_decisions_is_one_checkpoint(fleet: Fleet) -> None:
    fleet.write_team(
        [fleet.client.agent("ana", prompt_text="hello")],
        bus=[".nbs/events"],
        pythia={"every": 2, "agent": "ana", "bus": ".nbs/events"},
        sidecar=QUICK,
    )
    fleet.up()
    fleet.all_idle()
    for number in range(3):
        done = fleet.run("bus", "publish", ".nbs/events", "scribe", "decision-logged", "normal", f"D-{number}")
        assert done.code == 0, str(done)
    fleet.until(lambda: bool(checkpoints(fleet)), what="a checkpoint")
    fleet.until(lambda: bool(noticed(fleet, "ana")), what="ana is noticed of it")
    fleet.kill_supervisor()
    fleet.wait(lambda ps: ps["supervisor"]["state"] == "running", within=60)
    assert len(checkpoints(fleet)) == 1


@pytest.mark.clients("sim", "claude")
def test_an_agent_with_the_skill_is_noticed_by_its_call_and_reads_its_own_commands(fleet: Fleet) -> None:
    mine = fleet.root / "greet"
    mine.mkdir()
    (mine / "SKILL.md.j2").write_text("---\ndescription: Greets.\n---\nSay hello as {{ handle }}: $ARGUMENTS\n")
    ana = fleet.client.agent("ana", prompt_text="hello ana", skills=["nbs-notify", "greet"])
    come_up(fleet, [ana], chats=["live"])
    session = fleet.agent("ana")["session_id"]
    fleet.run("chat", "send", "live", "maria", "good morning")
    fleet.until(lambda: read(fleet, session, "nbs-fleet chat read live --unread"), within=60, what="the skill is read")
    assert read(fleet, session, "The notice: 1 unread in live (maria)")
    fleet.run("send", "ana", "/greet maria", "--command", "--wait")
    fleet.until(lambda: read(fleet, session, "Say hello as ana: maria"), within=60, what="the team's own skill is read")


@pytest.mark.clients("sim", "claude", long=("claude",))
def test_a_call_that_the_client_does_not_know_is_made_good_in_plain_words(fleet: Fleet) -> None:
    ana = fleet.client.agent("ana", prompt_text="hello ana")
    come_up(fleet, [ana], chats=["live"], sidecar={**QUICK, "notify": "/nbs-notify {summary}"})
    session = fleet.agent("ana")["session_id"]
    fleet.run("chat", "send", "live", "maria", "good morning")
    fleet.until(lambda: read(fleet, session, "You are ana. This waits for you"), within=60, what="it is told in words")
    assert [line["why"] for line in fleet.told("ana", "noticed")][1:] == ["recovery"]


@pytest.mark.clients("sim")
def test_the_nbs_tools_are_told_of_a_session_while_it_lives(fleet: Fleet) -> None:
    talkers(fleet, "ana")
    row = fleet.agent("ana")
    said = json.loads((fleet.root / ".nbs" / "sessions" / "ana.json").read_text())
    assert (said["session_id"], said["pid"], said["handle"]) == (row["session_id"], row["pid"], "ana")
    assert fleet.down().code == 0
    assert not (fleet.root / ".nbs" / "sessions" / "ana.json").exists()


@pytest.mark.clients("sim")
def test_an_agent_s_own_interval_holds_while_it_lives(fleet: Fleet) -> None:
    ana = fleet.client.agent("ana", prompt_text="hello ana")
    come_up(fleet, [ana], sidecar={**QUICK, "poll_mode": "always", "poll": "1h"})
    with (fleet.root / ".nbs" / "control-inbox-ana").open("a") as file:
        file.write("set-poll-interval 1\n")
    fleet.until(lambda: polls(fleet) >= 1, what="it polls")
    before = polls(fleet)
    fleet.kill_supervisor()
    fleet.until(lambda: polls(fleet) > before, within=60, what="it polls on after the supervisor's death")


def polls(fleet: Fleet) -> int:
    return sum(line["why"] == "poll" for line in fleet.told("ana", "noticed"))


def read(fleet: Fleet, session: str, words: str) -> bool:
    """Whether the model was given these words in a prompt."""
    return any(words in prompt for prompt in fleet.client.prompts(session))


def checkpoints(fleet: Fleet) -> list[Path]:
    return list((fleet.root / ".nbs" / "events").glob("*pythia-checkpoint*"))


def registry(fleet: Fleet, handle: str) -> str:
    return (fleet.root / ".nbs" / f"control-registry-{handle}").read_text()
