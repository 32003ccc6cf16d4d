"""Whether a tool call may run: rules, mode, hooks, and a person's answer to a dialog."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from nbs_fleet.sim import asking, tools
from nbs_fleet.sim.dialogs import FREE, Answer, Dialog
from nbs_fleet.sim.hooks import Verdict
from nbs_fleet.sim.kernel import Task, first, start
from nbs_fleet.sim.scenario import Call
from nbs_fleet.sim.session import Session
from nbs_fleet.sim.view import Item

if TYPE_CHECKING:
    from nbs_fleet.sim.turn import Turn

Json = dict[str, Any]
NOTICE_SECONDS = 6.0
FEEDBACK = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). To tell you how to proceed, the user said:\n"
)


class Ruling(NamedTuple):
    """What was decided about one call. `cut`: a person said no, and the turn ends with it."""

    allow: bool
    reason: str = ""
    by_hook: bool = False
    cut: bool = False
    choice: str = ""


class Use(NamedTuple):
    """One call on its way; `line` is the uuid of its transcript line."""

    call: Call
    given: Json
    use_id: str
    line: str


async def rule(turn: Turn, use: Use, *, allowed: bool, asked: str | None = None) -> Ruling:
    """Decide about a tool without a dialog of its own.

    `allowed`: a hook or the scenario already said yes; `asked`: a hook wants it asked, in these words.
    """
    tool, given, session = use.call.tool, use.given, turn.session
    denied = Ruling(allow=False, reason=f"Permission to use {_subject(tool, given)} has been denied.")
    if tools.allowed_by(session.settings.deny, tool, given):
        return denied
    if asked is None and (allowed or free(session, tool, given)):
        return Ruling(allow=True)
    if session.mode == "dontAsk":
        return denied
    rule_ = next((r for r in session.settings.ask if tools.allowed_by((r,), tool, given)), None)
    why = _confirm(rule_) if rule_ else asked
    dialog = asking.permission(tool, given, session.cwd, preview(session.cwd, tool, given), why)
    if tool == "Bash":
        turn.view.live = [*turn.view.live, Item("result", "Waiting…")]
    ruling = await ask(turn, use, dialog, suggest=why is None)
    if ruling.choice == "always":
        session.allowed.add(tool)
        session.mode = "acceptEdits"
    turn.view.live = [item for item in turn.view.live if item.text != "Waiting…"]
    return ruling


def _confirm(asking_rule: str) -> str:
    return f"Permission rule {asking_rule} requires confirmation for this command.\n/permissions to update rules"


def _subject(tool: str, given: Json) -> str:
    return f"{tool} with command {given.get('command', '')}" if tool == "Bash" else tool


def free(session: Session, tool: str, given: Json) -> bool:
    """Whether mode and rules let this call run without asking."""
    if tools.allowed_by(session.settings.ask, tool, given):
        return False
    mode = session.mode
    if mode in {"bypassPermissions", "auto"} or (mode == "acceptEdits" and tool in {"Write", "Edit"}):
        return True
    if tool in session.allowed or tools.allowed_by(session.settings.allow, tool, given):
        return True
    if mode == "plan" and given.get("file_path") == session.plan_path:
        return True
    if tool == "Bash":
        return tools.read_only(str(given.get("command", "")))
    return tool not in {"Write", "Edit"}


def preview(cwd: str, tool: str, given: Json) -> list[str]:
    """How a file will look, as shown in the dialog and under a refusal."""
    if tool == "Write":
        return [f" {line}" for line in tools.numbered(str(given.get("content", "")).splitlines()).split("\n")]
    if tool != "Edit":
        return []
    try:
        with open(os.path.join(cwd, str(given.get("file_path", ""))), encoding="utf-8") as file:
            before = file.read()
    except (OSError, UnicodeDecodeError):
        return []
    after = before.replace(str(given.get("old_string", "")), str(given.get("new_string", "")), 1)
    return tools.difference(before, after).split("\n")[1:]


async def ask(
    turn: Turn, use: Use, dialog: Dialog, *, notice: str = "Claude needs your permission", suggest: bool = True
) -> Ruling:
    """Show a dialog and ask the PermissionRequest hooks at the same time; whoever answers first decides."""
    fields: Json = {"tool_name": use.call.tool, "tool_input": tools.told(use.given, turn.session.cwd)}
    if suggest and use.call.tool not in {"AskUserQuestion", "ExitPlanMode"}:
        add = {"type": "addDirectories", "directories": [turn.session.cwd], "destination": "session"}
        mode = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
        fields["permission_suggestions"] = [mode] if use.call.tool in {"Write", "Edit"} else [add, mode]
    answer = turn.front.ask(dialog)
    hooks = start(turn.session.run_hooks("PermissionRequest", fields, use.call.tool))
    timer = turn.loop.call_later(NOTICE_SECONDS, lambda: _notify(turn.session, notice))
    try:
        if await first(answer, hooks) == 1:
            decided = _hook_decision(hooks)
            if decided is not None:
                _attach(turn.session, use, allow=decided.allow)
                return decided
        return _answered(await answer)
    finally:
        # A hook that is still at work is left to finish; its answer comes too late to count.
        timer.cancel()
        turn.front.withdraw()


def _attach(session: Session, use: Use, *, allow: bool) -> None:
    session.transcript.add(
        {
            "attachment": {
                "type": "hook_permission_decision",
                "decision": "allow" if allow else "deny",
                "toolUseID": use.use_id,
                "hookEvent": "PermissionRequest",
            },
            "type": "attachment",
        }
    )


def _notify(session: Session, message: str) -> None:
    fields = {"message": message, "notification_type": "permission_prompt"}
    start(session.run_hooks("Notification", fields, "permission_prompt"))


def _hook_decision(hooks: Task[list[Verdict]]) -> Ruling | None:
    for verdict in hooks.result():
        decision = verdict.decision or {}
        if decision.get("behavior") == "allow":
            return Ruling(allow=True, by_hook=True, choice="hook")
        if decision.get("behavior") == "deny" or verdict.block:
            reason = decision.get("message") or verdict.block or "Denied by PermissionRequest hook"
            return Ruling(allow=False, reason=reason, by_hook=True)
    return None


def _answered(answer: Answer) -> Ruling:
    if answer.value == FREE:
        return Ruling(allow=False, reason=FEEDBACK + answer.text, choice="feedback")
    if answer.value in {None, "no"}:
        return Ruling(allow=False, reason=tools.REJECTED, cut=True)
    return Ruling(allow=True, choice=str(answer.value))
