"""A subagent: a turn of its own inside a tool call, with its own conversation and transcript, and hooks that name it."""

from __future__ import annotations

import copy
import os
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from nbs_fleet.sim.context import Context
from nbs_fleet.sim.editor import Editor
from nbs_fleet.sim.hooks import Hooks
from nbs_fleet.sim.screen import clock
from nbs_fleet.sim.script import Model
from nbs_fleet.sim.tools import Result
from nbs_fleet.sim.transcript import Transcript
from nbs_fleet.sim.turn import Turn
from nbs_fleet.sim.view import View

if TYPE_CHECKING:
    from nbs_fleet.sim.session import Session

Json = dict[str, Any]
TOKENS = 120
"""What the scripted model claims for one reply: 100 of input, 20 of output."""
USAGE: Json = {
    "input_tokens": 100,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 20,
    "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
    "service_tier": "standard",
    "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
    "inference_geo": "",
    "iterations": [],
    "speed": "standard",
}


class Subagent(Turn):
    """The work on one call of Agent. Nothing of it is on the screen; its dialogs are."""

    def __init__(self, above: Turn, given: Json) -> None:
        self.kind = str(given.get("subagent_type") or "general-purpose")
        self.id = "a" + os.urandom(8).hex()
        session = _own(above.session, self.id, self.kind)
        super().__init__(above.loop, session, View(above.loop, session, Editor()), above.front)
        self.prompt = str(given.get("prompt", ""))

    async def perform(self) -> str:
        """Work it off; the last words."""
        await self.session.run_hooks("SubagentStart", {}, self.kind)
        self.session.transcript.add({"type": "user", "message": {"role": "user", "content": self.prompt}})
        self.session.context.user(self.prompt)
        self.pending = self.prompt
        try:
            await self._work()
        finally:
            self.session.transcript.flush()
        return self.last_text

    async def stop(self) -> bool:
        """SubagentStop in place of Stop; it never goes on."""
        fields: Json = {
            "stop_hook_active": False,
            "agent_transcript_path": self.session.transcript.path,
            "last_assistant_message": self.last_text,
            "background_tasks": [],
            "session_crons": [],
        }
        await self.session.run_hooks("SubagentStop", fields, self.kind)
        return False


def _own(session: Session, name: str, kind: str) -> Session:
    """The same session with a conversation, a transcript and hook payloads of its own."""
    own = copy.copy(session)
    own.agent = {"agent_id": name, "agent_type": kind}
    own.context = Context(session.context.log_path)
    own.script = Model(session.scenario)
    path = os.path.join(session.folder, session.id, "subagents", f"agent-{name}.jsonl")
    own.transcript = Transcript(session.loop, path, session.id, session.cwd, off=session.off)
    own.hooks = Hooks(session.loop, lambda: session.settings, own.hook_env, own.base)
    own.hooks.woken, own.hooks.late = session.hooks.woken, session.hooks.late
    own.late = []
    return own


async def run(turn: Turn, given: Json) -> Result:
    """The tool Agent."""
    agent, begun = Subagent(turn, given), time.monotonic()
    text = await agent.perform()
    milliseconds = int((time.monotonic() - begun) * 1000)
    uses = len(agent.used)
    data = {
        "status": "completed",
        "prompt": agent.prompt,
        "agentId": agent.id,
        "agentType": agent.kind,
        "content": [{"type": "text", "text": text}],
        "resolvedModel": turn.session.model_id,
        "totalDurationMs": milliseconds,
        "totalTokens": TOKENS,
        "totalToolUseCount": uses,
        "usage": copy.deepcopy(USAGE),
    }
    if uses:
        data["toolStats"] = _stats(agent.used)
    shown = f"Done ({uses} tool use{'' if uses == 1 else 's'} · {TOKENS} tokens · {clock(milliseconds / 1000)})"
    about = (
        f"agentId: {agent.id} (use SendMessage with to: '{agent.id}', summary: '<5-10 word recap>' to continue this "
        f"agent)\n<usage>subagent_tokens: {TOKENS}\ntool_uses: {uses}\nduration_ms: {milliseconds}</usage>"
    )
    blocks = [{"type": "text", "text": part} for part in (text, about)]
    return Result(f"{text}\n{about}", shown, data, blocks=blocks)


def _stats(used: list[str]) -> Json:
    """How often each kind of tool was used, as hooks are told."""
    known = {"Read": "readCount", "Bash": "bashCount", "Write": "editFileCount", "Edit": "editFileCount"}
    found: Json = dict.fromkeys(
        ("readCount", "searchCount", "bashCount", "editFileCount", "linesAdded", "linesRemoved", "otherToolCount"), 0
    )
    for name, count in Counter(used).items():
        found[known.get(name, "otherToolCount")] += count
    return found
