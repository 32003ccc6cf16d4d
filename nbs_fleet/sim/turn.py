"""One turn: prompts in, requests to the scripted model, tool calls, Stop hooks, and how a turn can end otherwise."""

from __future__ import annotations

import os
import re
import time
from typing import Any

from nbs_fleet.sim import ending, faults, skills
from nbs_fleet.sim.context import MAIL_BUSY, QUEUED
from nbs_fleet.sim.front import Front, Prompt
from nbs_fleet.sim.hooks import Verdict, failure, success
from nbs_fleet.sim.kernel import Interrupted, Loop
from nbs_fleet.sim.screen import clock, count_shells
from nbs_fleet.sim.script import Reply
from nbs_fleet.sim.session import Session
from nbs_fleet.sim.transcript import new_uuid, stamp
from nbs_fleet.sim.view import PAST, Item, View

Json = dict[str, Any]
THOUGHT = "Let me think about this one step at a time and then some more."
GO_ON = (
    "Output token limit hit. Resume directly — no apology, no recap of what you were doing. Pick up mid-thought if that "
    "is where the cut happened. Break remaining work into smaller pieces."
)
MOST_CUTS = 3
LOOK_SECONDS = 0.05
"""How often a reply that waits for a file looks for it."""
INTERRUPTED = "Interrupted · What should Claude do instead?"


class Stopped(Exception):  # noqa: N818 - an ending, not an error
    """A hook ended the turn."""


class Turn:
    """The work on one batch of prompts. `ended` says how: done, failed, blocked, unsent, interrupted or stopped."""

    def __init__(self, loop: Loop, session: Session, view: View, front: Front) -> None:
        self.loop = loop
        self.session = session
        self.view = view
        self.front = front
        self.ended = "done"
        self.touched = False
        self.in_tool = False
        self.partial = ""
        self.pending: str | None = None
        self.chosen: str | None = None
        self.last_text = ""
        self.active = False
        self.blocks = 0
        self.used: list[str] = []
        self.parent_before: str | None = None
        self.failures: dict[str, int] = {}

    async def run(self, prompts: list[Prompt]) -> None:
        """Work it off. Never raises."""
        self.view.start()
        self.front.refresh()
        try:
            if not await self._submit(prompts):
                self.ended = "blocked"
                return
            await self._work()
        except Interrupted:
            self._cut(prompts)
            return
        except Stopped:
            self.ended = "stopped"
        except faults.ApiError as error:
            self.ended = "failed"
            await ending.api_error(self, error)
        finally:
            seconds = self.view.seconds
            self.view.live = []
            self.view.stop()
        self._close(seconds)

    def _close(self, seconds: float) -> None:
        verb = PAST[int(time.monotonic() * 10) % len(PAST)]
        shells = len(self.front.background())
        still = f" · {count_shells(shells)} still running" if shells else ""
        self.view.add(Item("done", f"✻ {verb} for {clock(seconds)}{still}"))
        script = self.session.transcript
        script.add(
            {
                "type": "system",
                "subtype": "turn_duration",
                "durationMs": int(seconds * 1000),
                "messageCount": script.count,
                "isMeta": False,
            }
        )

    # --- prompts

    async def _submit(self, prompts: list[Prompt]) -> bool:
        """UserPromptSubmit for each; what was not blocked is recorded and goes to the model."""
        session = self.session
        session.reload()
        if prompts[0].kind == "answer":
            self.touched = True
            return True
        taken: list[str] = []
        self.parent_before = session.transcript.parent
        self.active = any(p.hook for p in prompts)
        for prompt in prompts:
            self.view.live = [_echo(prompt)]
            self.view.changed()
            fields: Json = {"prompt": prompt.text}
            if session.name is not None:
                fields["session_title"] = session.name
            verdicts = await session.run_hooks("UserPromptSubmit", fields)
            self.view.live = []
            blocked = next((v.block for v in verdicts if v.block), None)
            if blocked is not None:
                ending.refuse(self, prompt.text, blocked)
                continue
            self.view.add(_echo(prompt))
            self._record(prompt)
            stopped = next((v.stop for v in verdicts if v.stop), None)
            if stopped is not None:
                ending.hold_back(self, stopped)
                continue
            taken.append(prompt.body or prompt.text)
            self._note(verdicts, "UserPromptSubmit")
        self.pending = "\n".join(taken)
        return bool(taken)

    def _record(self, prompt: Prompt) -> None:
        session = self.session
        session.head()
        for attachment in session.opening:
            session.transcript.add({"attachment": attachment, "type": "attachment"})
        session.opening.clear()
        if prompt.command is not None:
            skills.record(session, prompt.command, prompt.body or "")
            return
        mail = prompt.kind == "mail"
        content = prompt.body or prompt.text
        marks: Json = {"permissionMode": session.mode, "origin": {"kind": "task-notification" if mail else "human"}}
        if prompt.text.startswith("/") and prompt.body is None:
            marks = {}  # taken for a command at first: a path
        session.transcript.add(
            {
                "promptId": session.prompt_id,
                "type": "user",
                "message": {"role": "user", "content": content},
            },
            **marks,
            promptSource="system" if mail else prompt.source,
        )
        session.context.user(content)

    def _note(self, verdicts: list[Verdict], name: str) -> None:
        """What UserPromptSubmit hooks say becomes system messages."""
        session = self.session
        for verdict in verdicts:
            if verdict.context:
                self.attach_context(verdict.context, name, "UserPromptSubmit", f"hook-{session.prompt_id}")
                session.context.system(f"{name} hook additional context: {verdict.context}")
            elif verdict.text:
                self.attach_success(verdict, name, "UserPromptSubmit", new_uuid())
                session.context.system(f"{name} hook success: {verdict.text}")

    def attach(self, name: str, event: str, use_id: str, **said: Any) -> None:
        """A line of the transcript about a hook."""
        attachment = {"hookName": name, "toolUseID": use_id, "hookEvent": event, **said}
        self.session.transcript.add({"attachment": attachment, "type": "attachment"})

    def attach_success(self, verdict: Verdict, name: str, event: str, use_id: str) -> None:
        """The transcript's line about what a hook printed or how it failed, where there is one."""
        attachment = success(event, name, use_id, verdict) or failure(event, name, use_id, verdict)
        if attachment is not None:
            self.session.transcript.add({"attachment": attachment, "type": "attachment"})

    def attach_context(self, text: str, name: str, event: str, use_id: str) -> None:
        """The transcript's line about additional context."""
        self.attach(name, event, use_id, type="hook_additional_context", content=[text])

    # --- requests

    async def _work(self) -> None:
        from nbs_fleet.sim.calls import Calls  # noqa: PLC0415 - the first turn pays for it, not the start

        calls, session = Calls(self), self.session
        results, cuts = "", 0
        while True:
            for note, attachment in session.late:
                session.context.system(note)
                if attachment is not None:
                    session.transcript.add({"attachment": attachment, "type": "attachment"})
            session.late.clear()
            reply = await self._ask_model(results)
            await self._receive(reply)
            if reply.calls:
                results = await calls.run(list(reply.calls))
                self._take_queue()
                continue
            results = ""
            if reply.stop_reason == "max_tokens" and cuts < MOST_CUTS:
                cuts += 1
                session.context.user(GO_ON)
                self.pending = GO_ON
            elif not await self.stop():
                return

    async def stop(self) -> bool:
        """The model has said all: True when a hook wants it to go on."""
        return await ending.stop_hooks(self)

    async def _ask_model(self, results: str) -> Reply:
        session = self.session
        retry = faults.Retry(session.env)
        while True:
            session.context.request(session.id, session.model_id, session.args.system)
            reply = session.script.reply(
                session.context.messages, self.pending, results, session.plan_path, self.chosen
            )
            if reply.status is not None and self._count(reply) > reply.times:
                reply = Reply(f"recovered after {reply.times} errors")
            if reply.status is None:
                self.pending = self.chosen = None
                self.view.activity = None
                return reply
            wait = retry.next(reply.status)
            if wait is None:
                raise faults.from_status(reply.status, repeated=retry.attempt, model=session.model_id)
            shown = int(wait + 0.999)
            self.view.activity = f"✻ API error · Retrying in {shown}s · attempt {retry.attempt}/{retry.most}"
            self.view.changed()
            await self.loop.after(wait)

    def _count(self, reply: Reply) -> int:
        self.failures[reply.key] = self.failures.get(reply.key, 0) + 1
        return self.failures[reply.key]

    async def _receive(self, reply: Reply) -> None:
        """Wait for the reply, show it as it comes, record it block by block."""
        if reply.wait:
            await self.loop.after(reply.wait)
        if reply.until:
            await self._await_file(os.path.join(self.session.project, reply.until))
        if reply.failure is not None:
            text = str(reply.failure.fields.get("partial_text", ""))
            if text:
                self._say(text, None)
            if reply.failure.kind == "connection_timeout":
                await self.loop.after(reply.failure.fields.get("after_ms", 0) / 1000)
            raise faults.from_failure(reply.failure)
        if reply.think:
            await self.loop.after(reply.think)
            self.touched = True
            self.view.add(Item("folded", f"Thought for {clock(reply.think)} (ctrl+o to expand)"))
            self.line({"type": "thinking", "thinking": THOUGHT, "signature": ""}, reply.stop_reason, reply)
        if reply.stream:
            await self._stream(reply)
        self.partial = ""
        self.view.live = []
        self.view.tokens += reply.output_tokens
        if reply.text:
            self._say(reply.text, None if reply.broken else reply.stop_reason, reply)
        if reply.stop_reason == "refusal":
            raise faults.refusal()
        if reply.broken:
            raise faults.ApiError(f"API Error: scripted {reply.broken}", "unknown")
        if reply.text and not reply.calls:
            self.session.context.assistant([{"type": "text", "text": reply.text}])
        self.view.changed()

    async def _await_file(self, path: str) -> None:
        while not os.path.exists(path):  # noqa: ASYNC240 - this loop has timers and no threads
            await self.loop.after(LOOK_SECONDS)

    async def _stream(self, reply: Reply) -> None:
        quiet = self.session.flag("prefersReducedMotion")
        parts = re.findall(r"\S+\s*|\s+", reply.text) or [reply.text]
        for part in parts:
            await self.loop.after(reply.stream / len(parts))
            self.partial += part
            self.view.tokens += 1
            if not quiet:
                self.touched = True
                self.view.live = [Item("said", self.partial)]
                self.view.changed()

    def _say(self, text: str, reason: str | None, reply: Reply | None = None) -> None:
        self.touched = True
        self.last_text = text.strip()
        self.view.add(Item("said", text))
        self.line({"type": "text", "text": text}, reason, reply)

    def line(self, block: Json, reason: str | None, reply: Reply | None = None) -> str:
        """One assistant line of the transcript."""
        model = self.session.model_id.partition("[")[0]
        message = {
            "id": "msg_" + os.urandom(10).hex(),
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [block],
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {
                "input_tokens": reply.input_tokens if reply else 100,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": reply.output_tokens if reply else 20,
            },
            "stop_details": None,
        }
        request = f"req_sim_{self.session.context.requests}"
        return self.session.transcript.add({"message": message, "requestId": request, "type": "assistant"})

    def _take_queue(self) -> None:
        """At a tool boundary what was typed meanwhile goes to the model, without UserPromptSubmit."""
        for prompt in self.front.hand_over():
            mail = prompt.kind == "mail"
            self.view.add(_echo(prompt))
            self.session.transcript.queue("remove")
            self.session.transcript.add(
                {
                    "attachment": {
                        "type": "queued_command",
                        "prompt": prompt.text,
                        "commandMode": "task-notification" if mail else "prompt",
                        **({} if mail else {"origin": {"kind": "human"}}),
                        "timestamp": stamp(prompt.at),
                    },
                    "type": "attachment",
                    "timestamp": stamp(prompt.at),
                }
            )
            text = MAIL_BUSY + prompt.text if mail else QUEUED.format(prompt.text)
            self.session.context.system(text)
            self.pending = "\n".join(part for part in (self.pending, prompt.text) if part)

    # --- endings

    def _cut(self, prompts: list[Prompt]) -> None:
        """Esc: take the prompt back if nothing came of it yet, else say that it was interrupted."""
        session = self.session
        if not self.touched and all(p.kind == "prompt" for p in prompts):
            self.ended = "unsent"
            session.context.drop_last_user()
            session.transcript.parent = self.parent_before
            echoes = len([p for p in prompts if _echo(p) in self.view.items])
            if echoes:
                del self.view.items[-echoes:]
                self.view.redraw()
            return
        self.ended = "interrupted"
        if self.in_tool:
            return
        if self.partial:
            self.view.add(Item("said", self.partial))
            self.line({"type": "text", "text": self.partial.rstrip()}, None)
            session.context.assistant([{"type": "text", "text": self.partial.rstrip()}])
        self.view.add(Item("result", INTERRUPTED))
        self.mark_interrupted("[Request interrupted by user]")

    def mark_interrupted(self, text: str) -> None:
        """The line that stands in for what would have come."""
        self.session.transcript.add(
            {
                "promptId": self.session.prompt_id,
                "type": "user",
                "message": {"role": "user", "content": [{"type": "text", "text": text}]},
            }
        )
        self.session.context.user(text)


def _echo(prompt: Prompt) -> Item:
    if prompt.kind == "mail":
        return Item("said", prompt.shown or "")
    return Item("user", prompt.shown or prompt.text)
