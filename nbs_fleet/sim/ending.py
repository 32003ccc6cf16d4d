"""How a turn ends: Stop hooks that may send it on, and API errors that end it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbs_fleet.sim import faults
from nbs_fleet.sim.context import reminder
from nbs_fleet.sim.hooks import Verdict
from nbs_fleet.sim.transcript import new_uuid
from nbs_fleet.sim.view import Item

if TYPE_CHECKING:
    from nbs_fleet.sim.turn import Turn

Json = dict[str, Any]
BLOCK_CAP = 8


async def stop_hooks(turn: Turn) -> bool:
    """Run them; True when one of them wants the turn to go on. `turn.pending` then holds what it said."""
    session = turn.session
    fields: Json = {
        "stop_hook_active": turn.active,
        "last_assistant_message": turn.last_text,
        "background_tasks": turn.front.background(),
        "session_crons": [],
    }
    verdicts = await session.run_hooks("Stop", fields)
    if not verdicts:
        return False
    reasons = [v.block for v in verdicts if v.block]
    notes = [v.context for v in verdicts if v.context]
    errors = [v.error for v in verdicts if v.error]
    stops = [v.stop for v in verdicts if v.stop]
    _show(turn, len(verdicts), reasons + errors, notes, stops)
    for reason in reasons:
        text = f"Stop hook feedback:\n{reason}"
        session.context.user(text)
        session.transcript.add({"type": "user", "message": {"role": "user", "content": text}}, isMeta=True)
    use_id = new_uuid()
    for verdict in verdicts:
        _attach(turn, verdict, use_id)
    for note in notes:
        session.context.user(reminder(f"Stop hook additional context: {note}"))
        turn.attach_context(note, "Stop", "Stop", use_id)
    _summary(turn, verdicts, reasons + errors, notes, use_id)
    if not (reasons or notes) or stops:
        return False
    turn.blocks += 1
    given = session.env.get("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "")
    cap = int(given) if given.isdigit() else BLOCK_CAP
    if turn.blocks > cap:
        text = _override(turn.blocks)
        turn.view.add(Item("notice", text))
        line = {"type": "system", "subtype": "informational", "content": text, "isMeta": False}
        session.transcript.add(line, level="warning")
        return False
    turn.active = True
    turn.pending = "\n".join(reasons + notes)
    return True


def _show(turn: Turn, count: int, errors: list[str], notes: list[str], stops: list[str]) -> None:
    lines = [f"Stop hook error: {r.rstrip()}" for r in errors] + [f"Stop hook feedback: {n}" for n in notes] + stops
    if not lines:
        return
    turn.view.add(Item("said", f"Ran {count} stop hook{'s' if count > 1 else ''} (ctrl+o to expand)"))
    turn.view.add(*(Item("result", text) for text in lines))
    if errors:
        turn.view.alert = "Stop hook error occurred · ctrl+o to see"


def _override(cap: int) -> str:
    return (
        f"A hook blocked the turn from ending {cap} consecutive times — overriding and ending turn. For "
        "Stop/SubagentStop hooks, check stop_hook_active in the input and return success while it's true. Set "
        "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP to raise this limit."
    )


def _attach(turn: Turn, verdict: Verdict, use_id: str) -> None:
    """The transcript's lines about what a hook said, or how it failed. An exit with 2 leaves none."""
    if verdict.stop:
        turn.attach("Stop", "Stop", use_id, type="hook_stopped_continuation", message=verdict.stop)
    if verdict.block and verdict.code == 0:
        error = {"blockingError": verdict.block, "command": verdict.command}
        turn.attach("Stop", "Stop", use_id, type="hook_blocking_error", blockingError=error)
    turn.attach_success(verdict, "Stop", "Stop", use_id)


def _summary(turn: Turn, verdicts: list[Verdict], errors: list[str], notes: list[str], use_id: str) -> None:
    turn.session.transcript.add(
        {
            "type": "system",
            "subtype": "stop_hook_summary",
            "hookCount": len(verdicts),
            "hookInfos": [{"command": v.command, "durationMs": v.ms} for v in verdicts],
            "hookErrors": errors,
            "hookAdditionalContext": notes,
            "preventedContinuation": False,
            "stopReason": "",
            "hasOutput": bool(errors or notes),
            "level": "suggestion",
        },
        toolUseID=use_id,
    )


def refuse(turn: Turn, prompt: str, reason: str) -> None:
    """A hook blocked a prompt: it is dropped, and that is said."""
    text = f"UserPromptSubmit operation blocked by hook:\n{reason}\n\nOriginal prompt: {prompt}"
    turn.view.add(Item("notice", text))
    turn.session.head()
    _warn(turn, text)


def hold_back(turn: Turn, reason: str) -> None:
    """A hook of a prompt said `continue: false`: it is in the conversation, and nothing is asked of the model."""
    text = f"Operation stopped by hook: {reason}"
    turn.view.add(Item("user", text), Item("notice", text))
    turn.session.transcript.add({"type": "user", "message": {"role": "user", "content": text}})
    _warn(turn, text)


def _warn(turn: Turn, text: str) -> None:
    turn.session.transcript.add(
        {"type": "system", "subtype": "informational", "content": text, "isMeta": False},
        level="warning",
        preventContinuation=True,
    )


async def api_error(turn: Turn, error: faults.ApiError) -> None:
    """Shown, recorded as the client's own words, and StopFailure instead of Stop."""
    session = turn.session
    turn.view.activity = None
    kind = "result" if error.quiet else "said" if error.status == 404 else "notice"
    turn.view.add(Item(kind, error.text + error.tail))
    if error.refused:
        line = {"type": "system", "subtype": "model_refusal_no_fallback", "content": "", "isMeta": False}
        session.transcript.add(line, level="warning")
    session.transcript.add(faults.synthetic(error), **faults.marks(error))
    fields: Json = {"error": error.kind}
    if error.details:
        fields["error_details"] = error.details
    fields["last_assistant_message"] = error.text
    await session.run_hooks("StopFailure", fields, error.kind)
