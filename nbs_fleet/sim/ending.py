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
BLOCK_CAP = 9


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
    reasons = [v.block.rstrip("\n") for v in verdicts if v.block]
    notes = [v.context for v in verdicts if v.context]
    errors = [v.error for v in verdicts if v.error]
    _show(turn, len(verdicts), reasons + errors, notes)
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
    if not (reasons or notes) or any(v.stop for v in verdicts):
        return False
    turn.blocks += 1
    given = session.env.get("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "")
    cap = int(given) if given.isdigit() else BLOCK_CAP
    if turn.blocks >= cap:
        turn.view.add(Item("notice", _override(cap)))
        return False
    turn.active = True
    turn.pending = "\n".join(reasons + notes)
    return True


def _show(turn: Turn, count: int, errors: list[str], notes: list[str]) -> None:
    lines = [f"Stop hook error: {r}" for r in errors] + [f"Stop hook feedback: {n}" for n in notes]
    if not lines:
        return
    turn.view.add(Item("said", f"Ran {count} stop hook{'s' if count > 1 else ''} (ctrl+o to expand)"))
    turn.view.add(*(Item("result", text) for text in lines))
    turn.view.alert = "Stop hook error occurred · ctrl+o to see"


def _override(cap: int) -> str:
    return (
        f"A hook blocked the turn from ending {cap} consecutive times — overriding and ending turn. For "
        "Stop/SubagentStop hooks, check stop_hook_active in the input and return success while it's true. Set "
        "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP to raise this limit."
    )


def _attach(turn: Turn, verdict: Verdict, use_id: str) -> None:
    """The transcript's line about a hook that blocked or failed."""
    attachment: Json = {"hookName": "Stop", "toolUseID": use_id, "hookEvent": "Stop"}
    if verdict.block:
        attachment["type"] = "hook_blocking_error"
        attachment["blockingError"] = {"blockingError": verdict.block.rstrip("\n"), "command": verdict.command}
    elif verdict.error:
        attachment |= {
            "type": "hook_non_blocking_error",
            "stderr": verdict.error,
            "stdout": verdict.out,
            "exitCode": verdict.code,
            "command": verdict.command,
            "durationMs": verdict.ms,
        }
    else:
        return
    turn.session.transcript.add({"attachment": attachment, "type": "attachment"})


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
    turn.view.add(Item("result" if error.quiet else "notice", error.text + error.tail))
    session.transcript.add(faults.synthetic(error), **faults.marks(error))
    fields: Json = {"error": error.kind}
    if error.details:
        fields["error_details"] = error.details
    fields["last_assistant_message"] = error.text
    await session.run_hooks("StopFailure", fields, error.kind)
