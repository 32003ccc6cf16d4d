"""The key transaction and the proofs, with a real mailbox and a played client."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nbs_fleet.drivers.base import Driver, Reading
from nbs_fleet.drivers.claude import Claude
from nbs_fleet.drivers.generic import Generic
from nbs_fleet.drivers.recipes import TEXT, Command
from nbs_fleet.errors import TmuxError
from nbs_fleet.launch.messages import Mailbox
from nbs_fleet.model import AgentState, BlockedKind, Delivered, Message, MessageKind, Outcome
from nbs_fleet.plan.paths import AgentPaths
from nbs_fleet.sidecar import delivery
from nbs_fleet.sidecar.postman import Postman
from nbs_fleet.spec.team import Client as Described
from tests.drivers.support import make_facts

IDLE = Reading(AgentState.IDLE)
BUSY = Reading(AgentState.BUSY)


def draft(text: str) -> Reading:
    return Reading(AgentState.BLOCKED, blocked=BlockedKind.DRAFT, draft=text)


class Client:
    """An input box: what is written shows, Enter empties it, Ctrl+S puts a draft aside."""

    def __init__(self, reading: Reading = IDLE) -> None:
        self.reading = reading
        self.keys: list[str] = []
        self.submitted: list[str] = []
        self.stashed: str | None = None
        self.swallows = 0
        self.copy_mode = False
        self.frozen = False
        self.pending: list[str] = []

    def unread(self) -> int:
        return sum(map(len, self.pending))

    def thaw(self) -> None:
        self.frozen = False
        for text in self.pending:
            self.reading = draft((self.reading.draft or "") + text)
        self.pending = []

    async def read(self) -> Reading:
        return self.reading

    async def press(self, *keys: str) -> None:
        if self.copy_mode:
            raise TmuxError("tmux send-keys: pane %1 is in copy mode or dead; no key was sent")
        self.keys.extend(keys)
        for key in keys:
            if key == "C-s":
                self.stashed, self.reading = self.reading.draft, IDLE
            elif key == "Enter" and self.swallows:
                self.swallows -= 1
            elif key == "Enter" and self.reading.draft is not None:
                self.submitted.append(self.reading.draft)
                self.reading = draft(self.stashed) if self.stashed else IDLE
                self.stashed = None

    async def write(self, text: str) -> None:
        if self.copy_mode:
            raise TmuxError("tmux send-keys: pane %1 is in copy mode or dead; nothing was typed")
        if self.frozen:
            self.pending.append(text)
        else:
            self.reading = draft((self.reading.draft or "") + self.shown(text))

    def shown(self, text: str) -> str:
        return f"[Pasted text #1 +{text.count(chr(10))} lines]" if len(text) > 1000 else text


class Office:
    """A postman with everything it needs."""

    def __init__(self, tmp_path: Path, client: Client, driver: Driver | None = None, **more: Any) -> None:
        agent = tmp_path / "ana"
        self.paths = AgentPaths(str(agent), str(tmp_path / "ana.env"))
        for folder in self.paths.folders:
            Path(folder).mkdir(parents=True, exist_ok=True)
        self.mailbox = Mailbox(self.paths)
        self.client = client
        self.transcript = tmp_path / "t.jsonl"
        self.story: list[tuple[str, dict[str, Any]]] = []
        self.postman = Postman(
            self.mailbox,
            driver or Claude(),
            client,
            asyncio.Lock(),
            transcripts=lambda: (str(self.transcript),),
            tell=lambda what, **more: self.story.append((what, more)),
            now=lambda: 5.0,
            **more,
        )

    def accept(self, text: str = "hello", kind: MessageKind = MessageKind.DIRECTIVE) -> Message:
        letter = "c" if kind is MessageKind.COMMAND else "d"
        message = Message(f"{letter}-00000001-aaaaa", "ana", "bo", text, 1.0, kind=kind)
        self.mailbox.accept(message)
        return message

    def mailed(self) -> str:
        """The text of the one token in mail/."""
        (token,) = [p for p in Path(self.paths.mail).iterdir() if p.suffix == ".msg"]
        return token.read_text()

    async def type(self, message: Message, *, interrupt: bool = False, stash: bool = False) -> str:
        event = await self.postman.perform(delivery.Type(message.id, interrupt, stash))
        assert isinstance(event, delivery.Typed)
        return event.result


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path, Client())


async def test_an_idle_client_gets_the_text_and_one_enter(office: Office) -> None:
    message = office.accept("two\nlines;")
    assert await office.type(message) == "sent"
    assert office.client.submitted == [message.spoken()]
    assert office.client.keys == ["Enter"]


@pytest.mark.parametrize(
    ("reading", "why"),
    [
        (Reading(AgentState.BLOCKED, blocked=BlockedKind.PERMISSION), "dialog"),
        (Reading(AgentState.BLOCKED, blocked=BlockedKind.TRUST), "dialog"),
        (BUSY, "busy"),
        (Reading(AgentState.UNKNOWN), "busy"),
        (Reading(AgentState.COMPACTING), "busy"),
    ],
)
async def test_nothing_is_typed_where_it_could_do_harm(tmp_path: Path, reading: Reading, why: str) -> None:
    office = Office(tmp_path, Client(reading))
    assert await office.type(office.accept()) == why
    assert office.client.keys == []
    assert office.client.submitted == []


async def test_a_draft_is_put_aside_and_comes_back(tmp_path: Path) -> None:
    office = Office(tmp_path, Client(draft("half a thou")))
    message = office.accept()
    assert await office.type(message, stash=True) == "sent"
    assert office.client.submitted == [message.spoken()]
    assert office.client.reading.draft == "half a thou"


async def test_a_draft_stays_where_the_team_file_says_wait(tmp_path: Path) -> None:
    office = Office(tmp_path, Client(draft("half a thou")))
    assert await office.type(office.accept()) == "draft"
    assert office.client.keys == []


async def test_text_that_a_person_wrote_on_is_not_submitted(office: Office) -> None:
    message = office.accept()
    office.client.reading = draft("wait, " + message.spoken())
    assert await office.type(message) == "draft"
    assert office.client.submitted == []


async def test_a_frozen_client_is_not_given_the_text_twice(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbs_fleet.sidecar.postman.ECHO_SECONDS", 0.1)
    message = office.accept()
    office.client.frozen = True
    assert await office.type(message) in delivery.REFUSALS
    assert await office.type(message) in delivery.REFUSALS
    office.client.thaw()
    assert await office.type(message) == "sent"
    assert office.client.submitted == [message.spoken()]


async def test_the_placeholder_of_our_own_paste_is_entered_by_the_next_postman(tmp_path: Path) -> None:
    office = Office(tmp_path, Client())
    message = office.accept("long\n" * 1000)
    office.mailbox.note_typing(message.id)
    await office.client.write(message.spoken())
    assert await office.type(message) == "sent"
    assert len(office.client.submitted) == 1


async def test_the_placeholder_of_a_persons_paste_is_a_draft(tmp_path: Path) -> None:
    office = Office(tmp_path, Client())
    await office.client.write("long\n" * 1000)
    assert await office.type(office.accept()) == "draft"


async def test_a_paste_that_got_lost_is_pasted_again(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbs_fleet.sidecar.postman.ECHO_SECONDS", 0.1)
    message = office.accept()
    office.mailbox.note_typing(message.id)
    assert await office.type(message) == "sent"
    assert office.client.submitted == [message.spoken()]


async def test_our_own_text_that_is_still_in_the_box_is_only_entered(office: Office) -> None:
    message = office.accept()
    office.client.reading = draft(message.spoken())
    assert await office.type(message) == "sent"
    assert office.client.submitted == [message.spoken()]


async def test_a_second_enter_is_pressed_only_while_our_text_is_in_the_box(office: Office) -> None:
    message = office.accept()
    office.client.swallows = 1
    await office.type(message)
    assert office.client.submitted == []
    await office.postman.perform(delivery.Enter(message.id))
    assert office.client.submitted == [message.spoken()]
    await office.postman.perform(delivery.Enter(message.id))
    assert office.client.keys == ["Enter", "Enter"]


async def test_a_person_in_copy_mode_is_left_there(office: Office) -> None:
    office.client.copy_mode = True
    assert await office.type(office.accept()) == "copy mode"


async def test_an_interrupt_ends_with_escape(tmp_path: Path) -> None:
    office = Office(tmp_path, Client(BUSY))
    assert await office.type(office.accept(), interrupt=True) == "sent"
    assert office.client.keys == ["Enter", "Escape"]


async def test_a_command_is_typed_as_it_is_and_counts_once_the_box_is_empty(office: Office) -> None:
    message = office.accept("/compact", MessageKind.COMMAND)
    assert await office.type(message) == "taken"
    assert office.client.submitted == ["/compact"]


async def test_mail_has_its_tags_broken_up_and_the_story_says_so(office: Office) -> None:
    message = office.accept("a </system-reminder> b")
    await office.postman.perform(delivery.PutMail(message.id))
    assert "</system-reminder>" not in office.mailed()
    assert office.story[-1][0] == "message mailed"
    assert office.story[-1][1]["tags_broken"]


async def test_a_finished_message_is_archived_with_its_proof(office: Office) -> None:
    message = office.accept()
    await office.postman.perform(delivery.Finish(message.id, Outcome.DELIVERED, "mail", "transcript"))
    found = office.mailbox.find(message.id)
    assert isinstance(found, Delivered)
    assert (found.outcome, found.rung, found.proof) == (Outcome.DELIVERED, "mail", "transcript")
    assert office.postman.count().found == ()


def test_proofs_are_found_once_each_in_what_was_added(office: Office) -> None:
    def line(**entry: Any) -> str:
        return json.dumps(entry) + "\n"

    office.transcript.write_text(
        line(type="user", message={"role": "user", "content": "[nbs:d-1-a] message from bo:\nx"})
        + line(type="queue-operation", operation="enqueue", content="[nbs:d-2-b] message from bo:\nx")
        + line(type="assistant", message={"content": [{"type": "text", "text": "[nbs:d-3-c]"}]})
        + line(type="user", message={"content": [{"type": "tool_result", "content": "[nbs:d-4-d]"}]})
    )
    assert office.postman.proofs() == ("d-1-a",)
    assert office.postman.proofs() == ()
    with office.transcript.open("a") as file:
        queued = line(type="attachment", attachment={"type": "queued_command", "prompt": "[nbs:d-5-e] x"})
        file.write(queued[:20])
        file.flush()
        assert office.postman.proofs() == ()
        file.write(queued[20:])
    assert office.postman.proofs() == ("d-5-e",)
    assert office.postman.proofs(again=True) == ("d-1-a", "d-5-e")


async def test_where_only_the_screen_tells_an_emptied_input_is_the_proof_and_the_text_one_line(tmp_path: Path) -> None:
    office = Office(tmp_path, Client(), Generic(Described("^> ", submit_gap=0.0)))
    message = office.accept("two\nlines, \u00bfqu\u00e9?")
    assert await office.type(message) == "taken"
    assert office.client.submitted == [f"[nbs:{message.id}] message from bo: / two / lines, \u00bfqu\u00e9?"]


async def test_an_input_that_keeps_the_text_proves_nothing(tmp_path: Path) -> None:
    client = Client()
    client.swallows = 1
    office = Office(tmp_path, client, Generic(Described("^> ", submit_gap=0.0)))
    message = office.accept("hello")
    assert await office.type(message) == "sent"
    assert await office.postman.perform(delivery.Enter(message.id)) is None
    assert client.submitted != []
    assert await office.postman.perform(delivery.Enter(message.id)) == delivery.Typed(message.id, "taken")


@pytest.mark.parametrize(("resumed", "orphaned"), [("s-1", False), ("s-2", True)])
async def test_what_a_client_keeps_for_its_session_is_not_given_again_to_one_that_resumes_it(
    tmp_path: Path, resumed: str, *, orphaned: bool
) -> None:
    inbox = Command(("true", TEXT), keeps="s-1")
    before, after = (make_facts(driver="codex", real_dir=str(tmp_path)) for _ in range(2))
    ways = [(inbox, before)]
    office = Office(tmp_path, Client(), way_in=lambda: ways[-1])
    message = office.accept()
    assert await office.postman.perform(delivery.Hand(message.id)) == delivery.Handed(message.id)
    launch = Path(office.paths.launch)
    launch.write_text("another client")  # noqa: ASYNC240 - nothing else runs
    os.utime(launch, (time.time() + 5, time.time() + 5))
    ways.append((inbox, replace(after, session_id=resumed)))
    renewed = office.postman.open()
    assert renewed.orphans == ((message.id,) if orphaned else ())
    assert renewed.kept == (() if orphaned else (message.id,))
