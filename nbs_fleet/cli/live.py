"""`nbs-fleet doctor --live`: one agent on the person's own account, to see whether the model heeds fleet mail."""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import yaml
from msgspec import Struct

from nbs_fleet.cli import output
from nbs_fleet.cli.waiting import follow, is_up
from nbs_fleet.errors import NotReadyError
from nbs_fleet.jsontext import load_object
from nbs_fleet.launch import registry
from nbs_fleet.launch.messages import Mailbox, new_id
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.model import PERSON, Delivered, Message, MessageKind, Outcome
from nbs_fleet.plan.types import Plan
from nbs_fleet.sidecar.sources import edges
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.bring_up import bring_up
from nbs_fleet.supervisor.facts import gather
from nbs_fleet.supervisor.prepare import prepare
from nbs_fleet.supervisor.take_down import take_down

HANDLE = "probe"
ANSWER_SECONDS = 120.0
ADVICE = "set `sidecar: {delivery: keys}` in the team file: messages are then typed when the agent is idle"


class Verdict(Struct, frozen=True):
    """What was seen: did the mail reach the model, by which rung, and did the model do as it said."""

    delivered: bool
    rung: str
    heeded: bool

    @property
    def good(self) -> bool:
        """Mail works here."""
        return self.heeded and self.rung == "mail"

    def words(self) -> tuple[str, str]:
        """What to tell a person, and what to do about it."""
        if self.good:
            return "the model heeds fleet mail", ""
        if not self.delivered:
            return "the message was not acknowledged", "nbs-fleet doctor; then look at the agent: is it logged in?"
        if self.rung != "mail":
            return f"mail is not armed: the message went in by {self.rung}", "nothing to do; that works as well"
        return "the mail reached the model, and the model did not do as it said", ADVICE


def live(driver: str, environ: dict[str, str]) -> Verdict:
    """Bring up one agent in a folder of its own, mail it, look at its answer, and take it down again.

    Costs the account one or two short requests. Raises NotReadyError if the agent does not come up.
    """
    with tempfile.TemporaryDirectory(prefix="nbs-fleet-live-") as folder:
        root = os.path.realpath(folder)
        file = os.path.join(root, "team.yaml")
        with open(file, "w", encoding="utf-8") as out:
            yaml.safe_dump(team_file(driver), out)
        prepared = prepare(file, environ)
        plan = prepared.plan
        try:
            bring_up(prepared, only=None, now=False)
            _await_ready(plan)
            return _mail(plan)
        finally:
            take_down(plan, timeout=10.0, purge=True, tell_one=lambda _ended: None)


def team_file(driver: str) -> dict[str, Any]:
    """The team of one that is tried: it may answer the dialogs of a new folder, and nothing else."""
    return {
        "version": 1,
        "team": "live",
        "root": ".",
        "driver": driver,
        "dialogs": {"trust": "accept"},
        "agents": [{"handle": HANDLE}],
    }


def _await_ready(plan: Plan) -> None:
    waited = follow(plan.paths, plan, [HANDLE], timeout=60.0, settled=is_up, tell=lambda *_: None)
    record = waited.records.get(HANDLE)
    if record is None or not record.ready:
        state = f"{record.state} {record.blocked or record.detail}".strip() if record else "not there"
        raise NotReadyError(f"the agent did not become ready: {state}", hint="nbs-fleet doctor says what is missing")


def _mail(plan: Plan) -> Verdict:
    """Send one message that asks for a word nobody else knows, and look for the word in the model's own text."""
    word = f"fleet{secrets.token_hex(4)}"
    now = time.time()
    message = Message(
        id=new_id(MessageKind.DIRECTIVE, now, secrets.randbits(64)),
        to=HANDLE,
        sender=PERSON,
        text=f"This checks whether messages reach you. Please answer with this one word and nothing else: {word}",
        created=now,
    )
    box = Mailbox(plan.paths.agent(HANDLE))
    box.accept(message)
    output.note("sent; waiting for the answer")
    found: list[Delivered] = []

    def delivered() -> bool:
        end = box.find(message.id)
        if isinstance(end, Delivered):
            found.append(end)
        return bool(found)

    asyncio.run(_until(delivered, [plan.paths.agent(HANDLE).archive], ANSWER_SECONDS))
    if not found or found[-1].outcome is not Outcome.DELIVERED:
        return Verdict(delivered=False, rung="", heeded=False)
    transcript = _transcript(plan)
    asyncio.run(_until(lambda: said(transcript, word) or _ended(plan), [os.path.dirname(transcript)], ANSWER_SECONDS))
    return Verdict(delivered=True, rung=found[-1].rung, heeded=said(transcript, word))


def _ended(plan: Plan) -> bool:
    """Whether the turn that the mail began is over: the agent was given nothing else to do."""
    agent = plan.find(HANDLE)
    driver = registry.of(agent.agent) if agent else registry.get("claude")
    return driver.read_transcript(*edges(_transcript(plan))).finished > 0


def _transcript(plan: Plan) -> str:
    agent, record = plan.find(HANDLE), store.read_record(plan.paths, HANDLE)
    if agent is None or record is None or record.session_id is None:
        return ""
    facts = gather(plan, agent, session_id=record.session_id, resume=True, has_prompt=False)
    return registry.of(agent.agent).places(facts).transcript or ""


def said(transcript: str, word: str) -> bool:
    """Whether the model itself said the word, in a transcript of Claude Code's form."""
    return any(word in text for text in _assistant_texts(transcript))


def _assistant_texts(path: str) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.readlines()
    except OSError:
        return
    for line in lines:
        entry = load_object(line)
        message = entry.get("message")
        if entry.get("type") != "assistant" or not isinstance(message, dict):
            continue
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "text":
                yield str(block.get("text", ""))


async def _until(holds: Callable[[], bool], folders: list[str], seconds: float) -> None:
    """Look again at each change in the folders until it holds or the time is over."""
    changed = asyncio.Event()
    watcher = Watcher()
    try:
        for folder in folders:
            watcher.add(folder, lambda _name: changed.set())
        async with asyncio.timeout(seconds):
            while not holds():
                await changed.wait()
                changed.clear()
    except TimeoutError:
        return
    finally:
        watcher.close()
