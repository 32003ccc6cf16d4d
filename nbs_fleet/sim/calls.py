"""Tool calls of a turn: hooks before and after, permission, the tool itself, and the dialogs that belong to it."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from nbs_fleet.sim import asking, tools
from nbs_fleet.sim.dialogs import FREE, Answer, Dialog
from nbs_fleet.sim.hooks import Verdict
from nbs_fleet.sim.kernel import Interrupted, Task, first, start
from nbs_fleet.sim.scenario import Call
from nbs_fleet.sim.tools import Result
from nbs_fleet.sim.view import Item

if TYPE_CHECKING:
    from nbs_fleet.sim.turn import Turn

Json = dict[str, Any]
PERMISSION_NOTICE_SECONDS = 6.0
_FEEDBACK = (
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
    """One call on its way."""

    call: Call
    given: Json
    use_id: str
    line: str


class Calls:
    """Runs the calls of one reply after the other."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.session = turn.session
        self.view = turn.view
        self.loop = turn.loop
        self.notes: list[str] = []

    async def run(self, calls: list[Call]) -> str:
        """All calls of a reply; returns the results' texts, joined by newlines."""
        uses = []
        for call in calls:
            use_id = "toolu_" + os.urandom(10).hex()
            given = self._input(call)
            block = {"type": "tool_use", "id": use_id, "name": call.tool, "input": given}
            uses.append(Use(call, given, use_id, self.turn.line(block, "tool_use")))
        text = [{"type": "text", "text": self.turn.last_text}] if self.turn.last_text else []
        self.turn.last_text = ""
        self.turn.touched = True
        blocks = [{"type": "tool_use", "id": u.use_id, "name": u.call.tool, "input": u.given} for u in uses]
        self.session.context.assistant([*text, *blocks])
        self.notes = []
        found = [await self._one(use) for use in uses]
        results = [block for block, _ in found]
        self.session.context.results(results, self.notes)
        await self._batch(uses, found)
        return "\n".join(result.content for _, result in found)

    def _input(self, call: Call) -> Json:
        """ExitPlanMode is given the plan that was written."""
        if call.tool != "ExitPlanMode":
            return call.input
        try:
            with open(self.session.plan_path, encoding="utf-8") as file:
                return {"plan": file.read(), "planFilePath": self.session.plan_path}
        except OSError:
            return call.input

    # --- one call

    async def _one(self, use: Use) -> tuple[Json, Result]:
        quiet = use.call.tool in {"AskUserQuestion", "ExitPlanMode", "EnterPlanMode"}
        head = Item("said", tools.label(use.call.tool, use.given, self.session.cwd))
        if not quiet:
            self.view.live = [head]
            self.view.changed()
        try:
            result = await self._decide_and_do(use)
        except Interrupted:
            self._interrupted(use, None if quiet else head)
            raise
        self.view.live = []
        self._show(use, None if quiet else head, result)
        return self._record(use, result), result

    async def _decide_and_do(self, use: Use) -> Result:
        base: Json = {"tool_name": use.call.tool, "tool_input": use.given, "tool_use_id": use.use_id}
        verdicts = await self.session.run_hooks("PreToolUse", base, use.call.tool)
        self._collect(use, verdicts, "PreToolUse")
        denied = next((v for v in verdicts if v.permission == "deny" or v.block), None)
        if denied is not None:
            why = f"PreToolUse:{use.call.tool} hook error: {denied.block}" if denied.block else denied.reason
            return tools.failed(why or "Denied by hook")
        allowed = any(v.permission == "allow" for v in verdicts)
        for verdict in verdicts:
            if verdict.updated is not None and verdict.permission != "deny":
                use = use._replace(given={**use.given, **verdict.updated})
        begun = time.monotonic()
        result = await self._perform(use, allowed)
        if result.data is None:
            return result
        await self._after(use, result, int((time.monotonic() - begun) * 1000))
        return result

    async def _after(self, use: Use, result: Result, ms: int) -> None:
        base: Json = {"tool_name": use.call.tool, "tool_input": use.given}
        if result.error:
            fields = {"tool_use_id": use.use_id, "error": result.content, "is_interrupt": False, "duration_ms": ms}
            verdicts = await self.session.run_hooks("PostToolUseFailure", {**base, **fields}, use.call.tool)
            self._collect(use, verdicts, "PostToolUseFailure")
            return
        fields = {"tool_response": result.data, "tool_use_id": use.use_id, "duration_ms": ms}
        verdicts = await self.session.run_hooks("PostToolUse", {**base, **fields}, use.call.tool)
        self._collect(use, verdicts, "PostToolUse")
        for verdict in verdicts:
            if verdict.block:
                self.notes.append(f"PostToolUse:{use.call.tool} hook blocking error: {verdict.block}")
        stop = next((v.stop for v in verdicts if v.stop), None)
        if stop is not None:
            self._stop(use, result, stop)

    def _stop(self, use: Use, result: Result, reason: str) -> None:
        from nbs_fleet.sim.turn import Stopped  # noqa: PLC0415 - the two modules need each other

        self.view.live = []
        head = Item("said", tools.label(use.call.tool, use.given, self.session.cwd))
        self._show(use, head, result)
        self.view.add(Item("result", f"PostToolUse:{use.call.tool} hook stopped continuation: {reason}"))
        self.session.context.results([self._record(use, result)], self.notes)
        raise Stopped

    async def _perform(self, use: Use, allowed: bool) -> Result:
        """The tools with a dialog of their own, else permission and the tool. A result without data skips Post hooks."""
        tool, given = use.call.tool, use.given
        own = self.session.scenario.tool(tool)
        if own.error is not None:
            return tools.failed(own.error)._replace(data=None)
        if tool == "AskUserQuestion":
            return await self._question(use, allowed)
        if tool == "EnterPlanMode":
            return self._enter_plan()
        if tool == "ExitPlanMode":
            return await self._exit_plan(use)
        ruling = await self._permission(use, allowed or own.auto_approve)
        if not ruling.allow:
            if ruling.cut:
                raise Interrupted
            return tools.failed(ruling.reason)._replace(data=None)
        if not self.session.scenario.live or use.call.result is not None:
            text = use.call.result if use.call.result is not None else own.result or ""
            result = Result(text, text or "Done", {"stdout": text, "stderr": "", "interrupted": False})
        else:
            result = await self._execute(tool, given)
        if ruling.by_hook:
            result = result._replace(shown=result.shown + "\0Allowed by PermissionRequest hook")
        return result

    async def _execute(self, tool: str, given: Json) -> Result:
        cwd = self.session.cwd
        try:
            if tool == "Bash" and given.get("run_in_background"):
                shell = self.turn.front.started_shell(str(given.get("description", "")), str(given.get("command", "")))
                text = f"Command running in background with ID: {shell}."
                return Result(text, text, {"stdout": "", "stderr": "", "backgroundTaskId": shell})
            if tool == "Bash":
                return await self._bash(given)
            if tool == "Read":
                return tools.read(given, cwd)
            if tool == "Write":
                return tools.write(given, cwd)
            if tool == "Edit":
                return tools.edit(given, cwd)
        except tools.ToolError as error:
            return tools.failed(str(error))
        text = f"<tool_use_error>Error: No such tool available: {tool}</tool_use_error>"
        return Result(text, f"Error: No such tool available: {tool}", None, error=True)

    async def _bash(self, given: Json) -> Result:
        session = self.session
        self.view.live = [*self.view.live, Item("result", "Running…")]
        self.view.changed()
        result = await tools.bash(self.loop, given, session.tool_env(), session.cwd)
        if result.cwd is not None and result.cwd != session.cwd and os.path.isdir(result.cwd):
            fields = {"old_cwd": session.cwd, "new_cwd": result.cwd}
            session.cwd = result.cwd
            await session.run_hooks("CwdChanged", fields)
        return result

    # --- permission

    async def _permission(self, use: Use, allowed: bool) -> Ruling:
        tool, given, session = use.call.tool, use.given, self.session
        if tools.allowed_by(session.settings.deny, tool, given):
            return Ruling(allow=False, reason=f"Permission to use {tool} has been denied.")
        if allowed or self._free(tool, given):
            return Ruling(allow=True)
        if session.mode == "dontAsk":
            return Ruling(allow=False, reason=f"Permission to use {tool} has been denied.")
        preview = self._preview(tool, given)
        self.view.live = [*self.view.live, Item("result", "Waiting…")] if tool == "Bash" else self.view.live
        ruling = await self._ask(use, asking.permission(tool, given, session.cwd, preview))
        if ruling.choice == "always":
            session.allowed.add(tool)
            if tool != "Bash":
                session.mode = "acceptEdits"
        self.view.live = [item for item in self.view.live if item.text != "Waiting…"]
        return ruling

    def _free(self, tool: str, given: Json) -> bool:
        session = self.session
        asked = tools.allowed_by(session.settings.ask, tool, given)
        if session.mode in {"bypassPermissions", "auto"} or (session.mode == "acceptEdits" and tool in {"Write", "Edit"}):
            return not asked
        if tool in session.allowed or tools.allowed_by(session.settings.allow, tool, given):
            return not asked
        if given.get("file_path") == session.plan_path and session.mode == "plan":
            return True
        if tool == "Bash":
            return tools.read_only(str(given.get("command", ""))) and not asked
        return tool not in {"Write", "Edit"}

    def _preview(self, tool: str, given: Json) -> list[str]:
        if tool == "Write":
            return [f" {line}" for line in tools.numbered(str(given.get("content", "")).splitlines()).split("\n")]
        if tool == "Edit":
            path = os.path.join(self.session.cwd, str(given.get("file_path", "")))
            try:
                with open(path, encoding="utf-8") as file:
                    before = file.read()
            except (OSError, UnicodeDecodeError):
                return []
            after = before.replace(str(given.get("old_string", "")), str(given.get("new_string", "")), 1)
            return tools.difference(before, after).split("\n")[1:]
        return []

    async def _ask(self, use: Use, dialog: Dialog, *, notice: str = "Claude needs your permission") -> Ruling:
        """Show a dialog and ask the PermissionRequest hooks at the same time; whoever answers first decides."""
        front = self.turn.front
        fields: Json = {"tool_name": use.call.tool, "tool_input": use.given}
        if use.call.tool not in {"AskUserQuestion", "ExitPlanMode"}:
            add = {"type": "addDirectories", "directories": [self.session.cwd], "destination": "session"}
            mode = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
            fields["permission_suggestions"] = [add, mode]
        answer = front.ask(dialog)
        hooks = start(self.session.run_hooks("PermissionRequest", fields, use.call.tool))
        timer = self.loop.call_later(PERMISSION_NOTICE_SECONDS, lambda: self._notify(notice))
        try:
            while True:
                if await first(answer, hooks) == 0:
                    return self._answered(answer.result())
                decided = self._hook_decision(hooks)
                if decided is not None:
                    return decided
                return self._answered(await answer)
        finally:
            timer.cancel()
            hooks.interrupt()
            front.withdraw()

    def _notify(self, message: str) -> None:
        fields = {"message": message, "notification_type": "permission_prompt"}
        start(self.session.run_hooks("Notification", fields, "permission_prompt"))

    def _hook_decision(self, hooks: Task[list[Verdict]]) -> Ruling | None:
        for verdict in hooks.result():
            decision = verdict.decision or {}
            if decision.get("behavior") == "allow":
                return Ruling(allow=True, by_hook=True, choice="hook")
            if decision.get("behavior") == "deny" or verdict.block:
                reason = decision.get("message") or verdict.block or "Denied by PermissionRequest hook"
                return Ruling(allow=False, reason=reason, by_hook=True)
        return None

    @staticmethod
    def _answered(answer: Answer) -> Ruling:
        if answer.value == FREE:
            return Ruling(allow=False, reason=_FEEDBACK + answer.text, choice="feedback")
        if answer.value in {None, "no"}:
            return Ruling(allow=False, reason=tools.REJECTED, cut=True)
        return Ruling(allow=True, choice=str(answer.value))

    # --- plan mode and questions

    def _enter_plan(self) -> Result:
        session = self.session
        if session.mode != "plan":
            session.before_plan = session.mode
        session.mode = "plan"
        text = "Entered plan mode. You should now focus on exploring the codebase and designing an implementation approach."
        self.turn.session.transcript.add(
            {
                "attachment": {"type": "plan_mode", "planFilePath": session.plan_path, "planExists": False},
                "type": "attachment",
            }
        )
        shown = "Entered plan mode\nClaude is now exploring and designing an implementation approach."
        return Result(text, shown, {"message": text})

    async def _exit_plan(self, use: Use) -> Result:
        session = self.session
        if session.mode != "plan":
            text = (
                "You are not in plan mode. To enter plan mode, call the EnterPlanMode tool first. If your plan was "
                "already approved, continue with implementation."
            )
            return Result(f"<tool_use_error>{text}</tool_use_error>", f"Error: {text}", None, error=True)
        plan = str(use.given.get("plan", ""))
        beyond = "and bypass permissions" if session.can_bypass else "and use auto mode"
        home = session.env.get("HOME", "")
        notice = "Claude Code needs your approval for the plan"
        dialog = asking.plan(plan, session.plan_path, beyond, home)
        ruling = await self._ask(use, dialog, notice=notice)
        if not ruling.allow:
            if ruling.cut:
                raise Interrupted
            return tools.failed(ruling.reason)._replace(data=None)
        if ruling.by_hook:
            session.mode = "bypassPermissions" if session.before_plan == "bypassPermissions" else "default"
        elif ruling.choice == "first":
            session.mode = "bypassPermissions" if session.can_bypass else "auto"
        else:
            session.mode = "default"
        self.turn.chosen = json.dumps({"plan_approved": True, "approval_mode": session.mode})
        path = session.plan_path.replace(home + "/", "~/", 1) if home else session.plan_path
        shown = f"User approved Claude's plan\0Plan saved to: {path} · /plan to edit\n"
        shown += "\n".join(line.lstrip("# ") if line.startswith("#") else line for line in plan.splitlines())
        if ruling.by_hook:
            shown += "\0Allowed by PermissionRequest hook"
        text = (
            "User has approved your plan. You can now start coding. Start with updating your todo list if "
            f"applicable\n\nYour plan has been saved to: {session.plan_path}\nYou can refer back to it if needed during "
            f"implementation.\n\n## Approved Plan:\n{plan}"
        )
        return Result(text, shown, {"plan": plan, "isAgent": False, "filePath": session.plan_path})

    async def _question(self, use: Use, allowed: bool) -> Result:
        questions = [q for q in use.given.get("questions", []) if isinstance(q, dict)]
        answers = {str(q): str(a) for q, a in (use.given.get("answers") or {}).items()}
        ready = dict(self.session.scenario.tool("AskUserQuestion").answers)
        if ready and not answers:
            answers = ready
        if not (answers and (allowed or ready)) and questions:
            dialog = asking.Questions(questions)
            ruling = await self._ask(use, dialog)
            if not ruling.allow:
                if ruling.cut:
                    raise Interrupted
                return tools.failed(ruling.reason)._replace(data=None)
            if ruling.choice == asking.CHAT:
                return self._clarify(questions)
            answers = dialog.result() or answers
        pairs = ", ".join(f'"{q}"="{a}"' for q, a in answers.items())
        self.turn.chosen = json.dumps({"questions": questions, "answers": answers})
        text = f"Your questions have been answered: {pairs}. You can now continue with these answers in mind."
        listed = "\n".join(f"· {q} → {a}" for q, a in answers.items())
        shown = f"User answered Claude's questions:\0{listed}"
        return Result(text, shown, {"questions": questions, "answers": answers, "annotations": {}})

    def _clarify(self, questions: list[Json]) -> Result:
        asked = "\n".join(f'- "{q.get("question")}"\n  (No answer provided)' for q in questions)
        text = (
            f"{_FEEDBACK}The user wants to clarify these questions.\n    This means they may have additional "
            "information, context or questions for you.\n    Take their response into account and then reformulate "
            "the questions if appropriate.\n    Start by asking them what they would like to clarify.\n\n    Questions "
            f"asked:\n{asked}"
        )
        return Result(text, self._declined(questions), None, error=True)

    @staticmethod
    def _declined(questions: list[Json]) -> str:
        rows = []
        for q in questions:
            labels = " / ".join(str(o.get("label")) for o in q.get("options", []) if isinstance(o, dict))
            rows.append(f"· {q.get('question')} ({labels})")
        return "User declined to answer questions\0" + "\n".join(rows)

    # --- what remains of a call

    def _collect(self, use: Use, verdicts: list[Verdict], event: str) -> None:
        name = f"{event}:{use.call.tool}"
        for verdict in verdicts:
            if verdict.error:
                self.view.add(Item("result", f"{name} hook error"), Item("result", verdict.error))
            if verdict.context:
                self.turn.attach_context(verdict.context, name, event, use.use_id)
                self.notes.append(f"{name} hook additional context: {verdict.context}")

    def _show(self, use: Use, head: Item | None, result: Result) -> None:
        parts = result.shown.split("\0")
        if head is not None:
            self.view.add(head)
        elif not result.error or "\0" in result.shown:
            self.view.add(Item("said", parts.pop(0)))
        self.view.add(*(Item("result", part) for part in parts))

    def _record(self, use: Use, result: Result) -> Json:
        block: Json = {"type": "tool_result", "content": result.content, "tool_use_id": use.use_id}
        if result.error:
            block["is_error"] = True
        elif use.call.tool == "Bash":
            block["is_error"] = False
        self.session.transcript.add(
            {
                "promptId": self.session.prompt_id,
                "type": "user",
                "message": {"role": "user", "content": [block]},
            },
            toolUseResult=result.data if result.data is not None else f"Error: {result.content}",
            sourceToolAssistantUUID=use.line,
        )
        return block

    async def _batch(self, uses: list[Use], found: list[tuple[Json, Result]]) -> None:
        listed = [
            {"tool_name": u.call.tool, "tool_input": u.given, "tool_use_id": u.use_id, "tool_response": r.content}
            for u, (_, r) in zip(uses, found, strict=True)
        ]
        for verdict in await self.session.run_hooks("PostToolBatch", {"tool_calls": listed}):
            if verdict.context:
                self.session.context.system(f"PostToolBatch hook additional context: {verdict.context}")

    def _interrupted(self, use: Use, head: Item | None) -> None:
        """A person stopped the call, or said no: the result says so and the turn ends."""
        self.view.live = []
        if use.call.tool == "AskUserQuestion":
            questions = [q for q in use.given.get("questions", []) if isinstance(q, dict)]
            said, _, rows = self._declined(questions).partition("\0")
            self.view.add(Item("said", said), Item("result", rows))
        else:
            from nbs_fleet.sim.turn import INTERRUPTED  # noqa: PLC0415

            head = head or Item("said", "User rejected Claude's plan")
            self.view.add(head, Item("result", INTERRUPTED))
        block = {"type": "tool_result", "content": tools.REJECTED, "is_error": True, "tool_use_id": use.use_id}
        self.session.transcript.add(
            {"promptId": self.session.prompt_id, "type": "user", "message": {"role": "user", "content": [block]}},
            toolUseResult="User rejected tool use",
            sourceToolAssistantUUID=use.line,
        )
        self.session.context.results([block], [])
        self.turn.mark_interrupted("[Request interrupted by user for tool use]")
        self.turn.in_tool = True
