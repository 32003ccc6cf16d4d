"""Compaction: the conversation gives way to a summary."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from nbs_fleet.sim.kernel import Interrupted
from nbs_fleet.sim.leaving import note_caveat, note_command
from nbs_fleet.sim.view import Item

if TYPE_CHECKING:
    from nbs_fleet.sim.app import App
    from nbs_fleet.sim.session import Session

Json = dict[str, Any]
FEWEST = 2
"""A conversation with fewer replies has nothing to sum up."""
TOO_FEW = "Not enough messages to compact."
SUMMARY = "<analysis>short</analysis><summary>SUMMARY of the conversation so far.</summary>"
_GOES_ON = """\
This session is being continued from a previous conversation that ran out of context. The summary below covers the \
earlier portion of the conversation.

Summary:
SUMMARY of the conversation so far.

If you need specific details from before compaction (like exact code snippets, error messages, or content you \
generated), read the full transcript at: {}
Continue the conversation from where it left off without asking the user any further questions. Resume directly — do \
not acknowledge the summary, do not recap what was happening, do not preface with "I'll continue" or similar. Pick up \
the last task as if the break never happened."""
_DIM, _PLAIN = "\x1b[2m", "\x1b[22m"


async def compact(app: App, typed: str, given: str) -> None:
    """Sum up, with the hooks around it. `typed` is the whole command, `given` the instructions in it."""
    session, view = app.session, app.view
    view.live = [Item("user", typed)]
    view.start()
    mark, bar = ("●", "▱" * 40) if session.flag("prefersReducedMotion") else ("✽", "▰" + "▱" * 39)
    view.activity = f"{mark} Compacting conversation…\n  {bar} {0 if mark == '●' else 3}%"
    app.refresh()
    try:
        before = await session.run_hooks(
            "PreCompact", {"trigger": "manual", "custom_instructions": given or None}, "manual"
        )
        if sum(message["role"] == "assistant" for message in session.context.messages) < FEWEST:
            _refuse(app, typed, given)
            return
        await app.loop.after(session.scenario.compact_delay_ms / 1000)
        await _tell_subagents(session)
        _replace(session)
        await session.start_hooks("compact")
        after = await session.run_hooks("PostCompact", {"trigger": "manual", "compact_summary": SUMMARY}, "manual")
    except Interrupted:
        note_caveat(session)
        app.editor.set(f"/compact {given}")
        raise
    finally:
        view.live = []
        view.stop()
    lines = ["Compacted (ctrl+o to see full summary)"]
    lines += [
        f"{event} [{v.command}] completed successfully"
        for event, vs in (("PreCompact", before), ("PostCompact", after))
        for v in vs
    ]
    note_command(session, "compact", given)
    said = "\n".join(f"{_DIM}{line}{_PLAIN}" for line in lines)
    text = f"<local-command-stdout>{said}</local-command-stdout>"
    session.transcript.add({"type": "user", "message": {"role": "user", "content": text}})
    session.context.user(text)
    last = max((i for i, item in enumerate(view.items) if item.kind in {"user", "result"}), default=-1)
    kept = view.items[last + 1 :]
    head = Item("done", "✻ Conversation compacted (ctrl+o for history)")
    view.items = [Item("welcome", "old"), head, *kept, Item("user", typed), Item("result", "\n".join(lines))]
    view.redraw()


def _refuse(app: App, typed: str, given: str) -> None:
    """Say that there is too little; what the model sees stays as it is."""
    session = app.session
    session.head()
    note_command(session, "compact", given)
    text = f"<local-command-stdout>{TOO_FEW}</local-command-stdout>"
    line = {"type": "system", "subtype": "local_command", "content": text, "level": "info", "isMeta": False}
    session.transcript.add(line)
    session.context.user(text)
    app.view.add(Item("user", typed), Item("result", TOO_FEW))


async def _tell_subagents(session: Session) -> None:
    """The summary is written by a subagent without a type."""
    name = "a" + os.urandom(8).hex()
    fields: Json = {
        "agent_id": name,
        "agent_type": "",
        "stop_hook_active": False,
        "agent_transcript_path": os.path.join(session.folder, session.id, "subagents", f"agent-{name}.jsonl"),
        "last_assistant_message": SUMMARY,
        "background_tasks": [],
        "session_crons": [],
    }
    await session.run_hooks("SubagentStop", fields, "")


def _replace(session: Session) -> None:
    text = _GOES_ON.format(session.transcript.path)
    session.context.clear()
    session.context.user(text)
    session.transcript.header(session.name, session.mode)
    session.headed = True
    session.transcript.add(
        {
            "type": "system",
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "isMeta": False,
            "compactMetadata": {"trigger": "manual", "preTokens": 1000},
        },
        level="info",
    )
    session.transcript.add(
        {"type": "user", "message": {"role": "user", "content": text}},
        isCompactSummary=True,
        isVisibleInTranscriptOnly=True,
    )
