"""The tools that are a dialog with a person: plan mode and questions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nbs_fleet.sim import asking, permission, tools
from nbs_fleet.sim.cells import width
from nbs_fleet.sim.kernel import Interrupted
from nbs_fleet.sim.permission import Use
from nbs_fleet.sim.screen import NBSP
from nbs_fleet.sim.tools import Result

if TYPE_CHECKING:
    from nbs_fleet.sim.turn import Turn

Json = dict[str, Any]


_PLANNING = """\
In plan mode, you should:
1. Thoroughly explore the codebase to understand existing patterns
2. Identify similar features and architectural approaches
3. Consider multiple approaches and their trade-offs
4. Use AskUserQuestion if you need to clarify the approach
5. Design a concrete implementation strategy
6. When ready, use ExitPlanMode to present your plan for approval

Remember: DO NOT write or edit any files yet. This is a read-only exploration and planning phase."""


def enter_plan(turn: Turn) -> Result:
    """EnterPlanMode: no dialog, only another mode."""
    session = turn.session
    if session.mode != "plan":
        session.before_plan = session.mode
    session.mode = "plan"
    text = "Entered plan mode. You should now focus on exploring the codebase and designing an implementation approach."
    session.transcript.add(
        {
            "attachment": {"type": "plan_mode", "planFilePath": session.plan_path, "planExists": False},
            "type": "attachment",
        }
    )
    shown = "Entered plan mode\nClaude is now exploring and designing an implementation approach."
    return Result(f"{text}\n\n{_PLANNING}", shown, {"message": text})


def _not_planning() -> Result:
    text = (
        "You are not in plan mode. To enter plan mode, call the EnterPlanMode tool first. If your plan was already "
        "approved, continue with implementation."
    )
    return Result(f"<tool_use_error>{text}</tool_use_error>", f"\0Error: {text}", None, error=True)


async def exit_plan(turn: Turn, use: Use) -> Result:
    """ExitPlanMode: a person approves the plan, in every mode. A hook's approval restores the mode before the plan."""
    session = turn.session
    if session.mode != "plan":
        return _not_planning()
    plan = str(use.given.get("plan", ""))
    home = session.env.get("HOME", "")
    beyond = "and bypass permissions" if session.can_bypass else "and use auto mode"
    dialog = asking.plan(plan, session.plan_path, beyond, home)
    notice = "Claude Code needs your approval for the plan"
    ruling = await permission.ask(turn, use, dialog, notice=notice)
    if not ruling.allow:
        if ruling.cut:
            raise Interrupted
        return _refused(ruling, rejected(plan))
    if not plan.strip():
        session.mode = session.before_plan if ruling.by_hook else "default"
        text = "User has approved exiting plan mode. You can now proceed."
        data = {"plan": None, "isAgent": False, "filePath": session.plan_path}
        return Result(
            text, "Exited plan mode" + ("\0Allowed by PermissionRequest hook" if ruling.by_hook else ""), data
        )
    if ruling.by_hook:
        session.mode = "bypassPermissions" if session.before_plan == "bypassPermissions" else "default"
    elif ruling.choice == "first":
        session.mode = "bypassPermissions" if session.can_bypass else "auto"
    else:
        session.mode = "default"
    turn.chosen = json.dumps({"plan_approved": True, "approval_mode": session.mode})
    return _approved(session.plan_path, plan, home, by_hook=ruling.by_hook)


def _refused(ruling: permission.Ruling, shown: str) -> Result:
    """A call that did not happen; a hook's refusal is shown as an error."""
    if ruling.by_hook:
        shown = f"\0Error: {ruling.reason}\0Denied by PermissionRequest hook"
    return tools.failed(ruling.reason)._replace(shown=shown, data=None)


def rejected(plan: str) -> str:
    """What is shown of a plan that a person did not want."""
    head = "User rejected Claude's plan:"
    rows = [line.lstrip("# ") if line.startswith("#") else line for line in plan.splitlines()]
    room = max(width(head) - 4, *(width(row) for row in rows)) if rows else width(head) - 4
    body = [f"│ {row}{' ' * (room - width(row))} │" for row in rows]
    return "\0" + "\n".join((head, f"╭{'─' * (room + 2)}╮", *body, f"╰{'─' * (room + 2)}╯"))


def _approved(path: str, plan: str, home: str, *, by_hook: bool) -> Result:
    short = path.replace(home + "/", "~/", 1) if home else path
    shown = f"User approved Claude's plan\0Plan saved to: {short} · /plan to edit\n"
    shown += "\n".join(line.lstrip("# ") if line.startswith("#") else line for line in plan.splitlines())
    if by_hook:
        shown += "\0Allowed by PermissionRequest hook"
    text = (
        "User has approved your plan. You can now start coding. Start with updating your todo list if applicable\n\n"
        f"Your plan has been saved to: {path}\nYou can refer back to it if needed during implementation.\n\n"
        f"## Approved Plan (edited by user):\n{plan}"
    )
    return Result(text, shown, {"plan": plan, "isAgent": False, "filePath": path, "planWasEdited": True})


async def question(turn: Turn, use: Use, *, allowed: bool) -> Result:
    """AskUserQuestion: answered by a hook's updatedInput, by the scenario, or by a person."""
    questions = [q for q in use.given.get("questions", []) if isinstance(q, dict)]
    answers = {str(q): str(a) for q, a in (use.given.get("answers") or {}).items()}
    ready = dict(turn.session.scenario.tool("AskUserQuestion").answers)
    if ready and not answers:
        answers = ready
    by_hook = bool(answers) and allowed and not ready
    if not (answers and (allowed or ready)) and questions:
        dialog = asking.Questions(questions)
        ruling = await permission.ask(turn, use, dialog)
        if not ruling.allow:
            if ruling.cut:
                raise Interrupted
            return _refused(ruling, declined(questions))
        if ruling.choice == asking.CHAT:
            return _clarify(questions)
        answers = dialog.result() or answers
    pairs = ", ".join(f'"{q}"="{a}"' for q, a in answers.items())
    turn.chosen = json.dumps({"questions": questions, "answers": answers})
    text = f"Your questions have been answered: {pairs}. You can now continue with these answers in mind."
    listed = "\n".join(f"· {q} → {a}" for q, a in answers.items())
    shown = f"{NBSP}User answered Claude's questions:\0{listed}"
    more: Json = {} if by_hook else {"annotations": {}}
    given = {**use.given, "answers": answers, **more}
    return Result(text, shown, {"questions": questions, "answers": answers, **more}, given=given)


def _clarify(questions: list[Json]) -> Result:
    asked = "\n".join(f'- "{q.get("question")}"\n  (No answer provided)' for q in questions)
    text = (
        f"{permission.FEEDBACK}The user wants to clarify these questions.\n    This means they may have additional "
        "information, context or questions for you.\n    Take their response into account and then reformulate the "
        "questions if appropriate.\n    Start by asking them what they would like to clarify.\n\n    Questions "
        f"asked:\n{asked}"
    )
    return Result(text, declined(questions), None, error=True)


def declined(questions: list[Json]) -> str:
    """What is shown when a person did not answer."""
    rows = []
    for q in questions:
        labels = " / ".join(str(o.get("label")) for o in q.get("options", []) if isinstance(o, dict))
        rows.append(f"· {q.get('question')} ({labels})")
    return NBSP + "User declined to answer questions\0" + "\n".join(rows)
