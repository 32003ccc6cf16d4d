"""A team under test for delivery: sends messages, plays the person at the pane, and knows what arrived."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from nbs_fleet.drivers.base import Reading, Screen
from nbs_fleet.launch import registry
from nbs_fleet.launch.messages import Mailbox, new_id
from nbs_fleet.model import Delivered, Message, MessageKind, Outcome, Priority
from nbs_fleet.plan.paths import AgentPaths
from nbs_fleet.plan.types import AgentRecord
from nbs_fleet.sidecar import wording
from tests.e2e.delivery.arrivals import ledger
from tests.support.fleet import Fleet, Json

PATIENCE = 60.0
"""Seconds within which anything that should happen happens, on a loaded machine too."""
RECORD = msgspec.json.Decoder(AgentRecord)
# Made here, in one thread: two that meet a type for the first time at once crash (msgspec 0.22, seen).
msgspec.json.Decoder(Message)
msgspec.json.Decoder(Delivered)

WRAPPER = re.compile(r"\n</system-reminder>(?:\s*<task-notification>\s*<summary>.*)?\s*\Z", re.DOTALL)
"""What stands after a text that came by mail: its end, and the beginning of the next mail in the same block."""


def token() -> str:
    """A word that no other text has."""
    return f"tk{secrets.token_hex(6)}"


class Crew:
    """A running team. `sent` has every message that was accepted, by id."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.client = fleet.client
        self.sent: dict[str, Message] = {}
        self.repeats: set[str] = set()
        """Ids that may have arrived more than once: their client was killed meanwhile."""
        self.patience = PATIENCE
        self.hunted = False
        """Whether the test kills the supervisor."""
        self._socket: str | None = None
        self.sim_log = fleet.base / "sim.log"
        self.ledger = ledger(fleet.client, self.sim_log)
        self.driver = registry.get(fleet.client.name)

    # -- the team

    def write(self, agents: list[Json], **keys: Any) -> None:
        """Write the team file, with what the ledger needs."""
        self.fleet.write_team(agents, env={"NBS_SIM_LOG": str(self.sim_log)}, **keys)

    def up(self, *args: str) -> None:
        """Bring it up; every agent must come to an input box."""
        result = self.fleet.up("--timeout", "120s", *args)
        assert result.code == 0, str(result)
        self._socket = str(self.fleet.tmux_socket)

    def paths(self, handle: str) -> AgentPaths:
        """The agent's files."""
        return AgentPaths(str(self.fleet.run_dir / "agents" / handle), "")

    def record(self, handle: str) -> AgentRecord:
        """What the supervisor last wrote down of the agent."""
        with open(self.paths(handle).state, "rb") as file:
            return RECORD.decode(file.read())

    def state(self, handle: str) -> str:
        """`idle`, `busy`, `blocked: plan` and so on."""
        record = self.record(handle)
        return f"blocked: {record.blocked}" if record.state.value == "blocked" else record.state.value

    def until(self, right: Callable[[], object], what: str, within: float | None = None) -> None:
        """Wait until `right` holds."""
        self.fleet.until(lambda: bool(right()), within=within or self.patience, what=what)

    def becomes(self, handle: str, state: str, within: float | None = None) -> None:
        """Wait for a state."""
        self.fleet._until(
            lambda: self.state(handle) == state,
            within or self.patience,
            lambda: f"{handle} is {self.state(handle)}, not {state}",
        )

    def passed(self, handle: str, state: str) -> int:
        """How many times the story says that the agent came into a state.

        What begins and ends while the supervisor is dead is no state in the story: the client's own hook, which is
        read later, counts then.
        """
        times: int = sum(record["state"] == state for record in self.fleet.told(handle, "state"))
        events = (record["event"] for record in self.fleet.told(handle, "decided")) if self.hunted else ()
        hooks = [e for e in events if e["type"] == "HookSeen" and e["news"]["reading"]["state"] == state]
        return times + len(hooks)

    def begins(self, handle: str, state: str, passed: int | None = None) -> None:
        """Wait for a state that passes by itself; while the supervisor is being killed, only the pane may show it.

        `passed` is its count so far, of a state that may be over before a look.
        """

        def begun() -> bool:
            seen = passed is not None and self.passed(handle, state) > passed
            return seen or self.state(handle) == state or (self.hunted and self.reading(handle).state.value == state)

        self.until(begun, f"{handle} is {state}")

    # -- sending

    def make(self, handle: str, text: str, **fields: Any) -> Message:
        """A message as `send` makes it, not yet accepted."""
        said, remarks = wording.clean(text)
        now = time.time()
        kind = fields.get("kind", MessageKind.DIRECTIVE)
        values: Json = {"sender": "person", "kind": kind, "priority": Priority.NORMAL, **fields}
        return Message(
            id=new_id(kind, now, secrets.randbits(64)),
            to=handle,
            text=said.rstrip("\n"),
            created=now,
            remarks=remarks,
            **values,
        )

    def drop(self, handle: str, text: str, **fields: Any) -> str:
        """Accept a message without the cost of a command; returns its id."""
        return self.accept(self.make(handle, text, **fields))

    def accept(self, message: Message) -> str:
        """Put a message into its agent's queue."""
        Mailbox(self.paths(message.to)).accept(message)
        self.sent[message.id] = message
        return message.id

    def send(self, handle: str, *words: str, stdin: bytes | None = None) -> str:
        """`nbs-fleet send`; returns the id."""
        argv = ["send", handle, "--team", self.fleet.team, *words]
        if stdin is None:
            result = self.fleet.run(*argv)
            code, out, err = result.code, result.out, result.err
        else:
            done = subprocess.run(
                [sys.executable, "-m", "nbs_fleet", *argv, "--stdin"],
                cwd=self.fleet.root,
                env=self.fleet.env,
                input=stdin,
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
            code, out, err = done.returncode, done.stdout.decode(), done.stderr.decode()
        assert code == 0, f"{argv}: {out}{err}"
        message_id = out.split()[1]
        self.sent[message_id] = self.message(handle, message_id)
        return message_id

    def message(self, handle: str, message_id: str) -> Message:
        """A message as it lies on the disk."""
        found = Mailbox(self.paths(handle)).find(message_id)
        assert found is not None, f"{message_id} is nowhere"
        return found.message

    def ended(self, message_id: str) -> Delivered | None:
        """How a message ended, if it did."""
        found = Mailbox(self.paths(self.sent[message_id].to)).find(message_id)
        return found if isinstance(found, Delivered) else None

    def arrives(self, message_id: str, within: float | None = None) -> Delivered:
        """Wait until a message is reported delivered; it must really be in a request by then, or soon."""

        def told() -> str:
            box = Mailbox(self.paths(self.sent[message_id].to))
            return f"{message_id} {box.find(message_id)}; {self.state(self.sent[message_id].to)}"

        self.fleet._until(lambda: self.ended(message_id) is not None, within or self.patience, told)
        ended = self.ended(message_id)
        assert ended is not None
        assert ended.outcome is Outcome.DELIVERED, str(ended)
        self.until(lambda: self.count(message_id) > 0, f"{message_id} delivered, but in no request")
        return ended

    def count(self, what: str) -> int:
        """How often an id or token has arrived so far."""
        self.ledger.read()
        return self.ledger.times()[what]

    def body(self, message_id: str) -> str:
        """The text with which a message arrived: what follows its first line."""
        self.ledger.read()
        head = self.sent[message_id].spoken().partition("\n")[0]
        arrived = self.ledger.texts()[message_id]
        assert arrived.startswith(head)
        # A client that takes one line at a time has " / " in the place of a line's end.
        body = arrived.removeprefix(head).removeprefix(" /")[1:]
        return body.rpartition("\n</system-reminder>")[0] if body.rstrip().endswith("</system-reminder>") else body

    def audit(self) -> None:
        """Every message that was sent has arrived, exactly once, and was reported so."""
        self.ledger.read()
        times = self.ledger.times()
        wrong: list[str] = []
        for message_id, message in self.sent.items():
            if message.kind is MessageKind.COMMAND:
                continue
            ended = self.ended(message_id)
            if ended is None or ended.outcome is not Outcome.DELIVERED:
                wrong.append(f"{message_id} to {message.to} not delivered: {ended and ended.outcome}")
            if times[message_id] != 1 and not (times[message_id] > 1 and message_id in self.repeats):
                wrong.append(f"{message_id} to {message.to} arrived {times[message_id]} times")
        assert not wrong, "\n".join(wrong)

    # -- the pane

    def tmux(self, *args: str) -> str:
        """Ask the team's tmux server, whose socket is looked for once."""
        if self._socket is None:
            self._socket = str(self.fleet.tmux_socket)
        argv = ["tmux", "-S", self._socket, *args]
        return subprocess.run(argv, env=self.fleet.env, capture_output=True, text=True, timeout=10, check=True).stdout

    def rows(self, handle: str) -> tuple[str, ...]:
        """What the pane shows."""
        text = self.tmux("capture-pane", "-p", "-t", str(self.record(handle).pane))
        return tuple(line.rstrip() for line in text.split("\n"))

    def reading(self, handle: str) -> Reading:
        """What the driver makes of the screen."""
        return self.driver.read_screen(Screen(self.rows(handle), 200, 50))

    def shows(self, handle: str, text: str) -> bool:
        """Whether the pane shows a text."""
        return any(text in row for row in self.rows(handle))

    def draft(self, handle: str) -> str | None:
        """What stands in the input box."""
        return self.reading(handle).draft

    def type(self, handle: str, text: str, *, enter: bool = True) -> None:
        """Type as a person does: the text, a look at it, then Enter."""
        pane = str(self.record(handle).pane)
        self.tmux("send-keys", "-t", pane, "-l", "--", text)
        if enter:
            head = text[:30]
            self.until(lambda: head in (self.draft(handle) or ""), f"{head!r} typed into {handle}'s box")
            self.tmux("send-keys", "-t", pane, "Enter")

    def press(self, handle: str, *keys: str) -> None:
        """Press keys."""
        self.tmux("send-keys", "-t", str(self.record(handle).pane), *keys)

    def clear(self, handle: str) -> None:
        """Empty the input box."""
        self.press(handle, "C-u")
        self.until(lambda: self.draft(handle) is None, f"{handle}'s box is empty")

    # -- between tests

    def settle(self, handle: str) -> None:
        """Idle, an empty box and nothing on its way, whatever the test before left there."""

        def quiet() -> bool:
            return self.state(handle) == "idle" and not self.draft(handle) and not self.waiting(handle)

        with suppress(AssertionError):
            self.until(quiet, "quiet", within=20)
            return
        for message_id in self.waiting(handle):
            Mailbox(self.paths(handle)).finish(message_id, Outcome.WITHDRAWN, "", "by the next test", time.time())
            self.sent.pop(message_id, None)
        result = self.fleet.run("restart", handle, "--fresh", "--team", self.fleet.team)
        assert result.code == 0, str(result)
        self.until(quiet, f"{handle} is quiet again")

    def waiting(self, handle: str) -> list[str]:
        """Ids of what has not ended."""
        return [parcel.message.id for parcel in Mailbox(self.paths(handle)).waiting()]

    def spool(self, handle: str) -> list[Path]:
        """Hook events that nobody has read."""
        folder = Path(self.paths(handle).spool)
        return [folder / name for name in os.listdir(folder) if not name.startswith(".")]

    def in_mail(self, handle: str) -> list[str]:
        """Mail that the client has not taken."""
        return [name for name in os.listdir(self.paths(handle).mail) if name.endswith(".msg")]
