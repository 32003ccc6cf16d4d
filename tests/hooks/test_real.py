"""The hooks in the real clients: mail arrives once whatever goes on, dialogs and stops follow the policies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nbs_fleet.drivers.claude import Claude
from nbs_fleet.drivers.claudeless import Claudeless
from nbs_fleet.spec.team import Agent, Dialogs
from tests.support import clients, private
from tests.support.clients import Client
from tests.support.hooked import Hooked, Pane, client
from tests.support.waiting import eventually

pytestmark = [pytest.mark.real, pytest.mark.tmux]
SIGNAL = '[[bash touch "$NBS_FLEET_RUN/agents/$NBS_HANDLE/signal.json"]]'
OPTIONS = [{"label": "a", "description": "b"}, {"label": "c", "description": "d"}]
QUESTION = {"question": "Which?", "header": "H", "options": OPTIONS, "multiSelect": False}


class Scene(NamedTuple):
    """A running client with its hooks."""

    ana: Hooked
    pane: Pane
    client: Client

    def state(self) -> str:
        """What the client's state file says."""
        for path in self.client.config.glob("sessions/*.json"):
            try:
                return str(json.loads(path.read_text()).get("status"))
            except ValueError:
                return "half written"
        return "none"

    def wait(self, state: str) -> None:
        """Until it is in this state."""
        eventually(lambda: self.state() == state)

    def requests(self, text: str) -> int:
        """In how many user or system texts of the latest request that holds it this text is found."""
        assert self.client.api is not None
        found = [json.dumps(r.body["messages"]).count(text) for r in self.client.api.turns()]
        return next((n for n in reversed(found) if n), 0)

    def notes(self, event: str) -> list[Any]:
        """What our program answered to each event of this name, oldest first; None for nothing."""
        return [e.get("nbs") for e in self.ana.spooled() if e["hook_event_name"] == event]


@contextmanager
def scene(tmp_path: Path, name: str, run: str = "run", **agent: Any) -> Iterator[Scene]:
    clients.need(name)
    project = tmp_path / "project"
    project.mkdir()
    ana = Hooked(tmp_path / run)
    runtime = private.short_folder()
    env = private.surrounding(tmp_path, runtime)
    driver = Claude() if name == "claude" else Claudeless()
    with clients.running(name, tmp_path / "client", trusted=(str(project),)) as one:
        env = {**env, **one.environment, "PATH": ":".join((*one.path, env["PATH"]))}
        declared = Agent(handle="ana", base="ana", role=None, driver=name, dir=str(project), **agent)
        facts = ana.facts(declared, Path(env["HOME"]), {}, None)
        try:
            with client(ana, driver, facts, env, runtime / "tmux") as pane:
                try:
                    yield Scene(ana, pane, one)
                except AssertionError:
                    print(pane.screen(), *ana.spooled(), sep="\n")
                    raise
        finally:
            for path in runtime.iterdir():
                path.unlink()
            runtime.rmdir()


def test_mail_reaches_the_model_once_whatever_the_client_does(tmp_path: Path) -> None:
    with scene(tmp_path, "claude", run='it\'s a "run" ü(') as s:
        s.wait("idle")
        (s.ana.agent / "mail" / "probe").touch()
        eventually(lambda: "probe" in s.ana.names("claimed"))
        assert s.ana.names("mail") == ["tok"]

        # Idle, with a half-typed draft in the box.
        s.pane.type("half a draft")
        s.pane.shows("half a draft")
        first = s.ana.put("mail", "[nbs:d-1] message from bo:\n[[say heard one]]")
        s.ana.ring()
        s.pane.shows("● heard one")
        s.wait("idle")
        assert "❯\xa0half a draft" in s.pane.screen()
        s.pane.tmux("send-keys", "-t", "main:", "C-u")

        # While a dialog is open: it stays open, and nothing is picked.
        s.pane.type("[[bash touch made-by-bash]][[say done]]", "Enter")
        s.wait("waiting")
        second = s.ana.put("mail", "[nbs:d-2] message from bo:\nsecond")
        s.ana.ring()
        eventually(lambda: second in s.ana.claimed_ids())
        assert s.state() == "waiting"
        assert s.requests("[nbs:d-2]") == 0
        s.pane.tmux("send-keys", "-t", "main:", "1")
        s.pane.shows("● done")
        eventually(lambda: s.requests("[nbs:d-2]"))
        s.wait("idle")

        # While a tool runs (this one needs no permission).
        s.pane.type("[[bash sleep 2]][[say all over]]", "Enter")
        s.pane.shows("● Bash(sleep 2)")
        third = s.ana.put("mail", "[nbs:d-3] message from bo:\nthird")
        s.ana.ring()
        eventually(lambda: third in s.ana.claimed_ids())
        s.pane.shows("● all over")
        s.wait("idle")
        assert [s.requests(f"[nbs:d-{n}]") for n in (1, 2, 3)] == [1, 1, 1]
        assert s.ana.claimed_ids() == [first, second, third]
        events = {e["hook_event_name"] for e in s.ana.spooled()}
        assert {"SessionStart", "UserPromptSubmit", "PermissionRequest", "Stop"} <= events


def test_mail_that_waits_at_the_start_is_taken(tmp_path: Path) -> None:
    with scene(tmp_path, "claude", settings={"verbose": False}) as s:
        s.ana.put("mail", "[nbs:d-1] message from bo:\n[[say heard at the start]]")
        s.pane.shows("● heard at the start")
        s.wait("idle")
        assert s.requests("[nbs:d-1]") == 1


def test_stops_plans_and_questions_follow_the_policies(tmp_path: Path) -> None:
    dialogs = Dialogs(plan="approve", question="deny", bypass="accept")
    with scene(tmp_path, "claude", permission_mode="bypassPermissions", stop="signal", dialogs=dialogs) as s:
        s.wait("idle")
        s.pane.type("[[say first]]", "Enter")
        eventually(lambda: len(s.notes("Stop")) == 2)
        assert s.notes("Stop") == [{"answer": "block", "why": "signal"}, None]
        s.wait("idle")
        asked = json.dumps({"questions": [QUESTION]})
        s.pane.type(f"[[tool AskUserQuestion {asked}]]{SIGNAL}[[say second]]", "Enter")
        s.pane.shows("● second")
        eventually(lambda: len(s.notes("Stop")) == 3)
        assert s.notes("PreToolUse") == [{"answer": "deny", "why": "policy"}]
        assert s.notes("Stop")[2] is None
        s.wait("idle")
        s.pane.type(
            "[[tool EnterPlanMode {}]][[plan do it]][[tool ExitPlanMode {}]]" + SIGNAL + "[[say third]]", "Enter"
        )
        s.pane.shows("● third")
        assert {"answer": "allow", "why": "policy"} in s.notes("PermissionRequest")
        s.wait("idle")
        assert "bypass permissions on" in s.pane.screen()
        s.ana.put("inbox", "[nbs:d-7] message from bo:\nat the end of a turn")
        s.pane.type("[[say fourth]]", "Enter")
        eventually(lambda: s.requests("[nbs:d-7]"))
        assert s.requests("[nbs:d-7]") == 1


def test_claudeless_runs_the_hooks_and_shows_nothing_of_them(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.json"
    told = {"pattern": {"type": "contains", "text": "[nbs:d-1]"}, "response": "heard it"}
    scenario.write_text(json.dumps({"responses": [told, {"pattern": {"type": "any"}, "response": "ok then"}]}))
    with scene(tmp_path, "claudeless", args=("--scenario", str(scenario))) as s:
        s.pane.shows("for shortcuts")
        eventually(lambda: [e["hook_event_name"] for e in s.ana.spooled()] == ["SessionStart"])
        s.ana.put("inbox", "[nbs:d-1] message from bo: hello")
        s.pane.tmux("send-keys", "-l", "-t", "main:", "hello")
        s.pane.shows("hello")
        s.pane.tmux("send-keys", "-t", "main:", "Enter")
        s.pane.shows("heard it")
        eventually(lambda: len(s.notes("Notification")) == 1)
        assert [bool(note) for note in s.notes("Stop")] == [True, False]
        lines = [line for line in s.pane.screen().splitlines() if line.strip()]
        assert not [line for line in lines if "nbs-hook" in line or "rror" in line]
        assert [line for line in lines if line.startswith("⏺")] == ["⏺ ok then", "⏺ heard it"]
