"""Tool calls of a turn: hooks before and after, permission, the tool itself, and what is shown and recorded of it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from nbs_fleet.sim import choices, permission, tools
from nbs_fleet.sim.hooks import Verdict
from nbs_fleet.sim.kernel import Interrupted
from nbs_fleet.sim.permission import Use
from nbs_fleet.sim.scenario import Call
from nbs_fleet.sim.tools import Result
from nbs_fleet.sim.transcript import new_uuid
from nbs_fleet.sim.turn import INTERRUPTED, Stopped
from nbs_fleet.sim.view import Item

if TYPE_CHECKING:
    from nbs_fleet.sim.turn import Turn

Json = dict[str, Any]
_KNOWN = {"Bash", "Read", "Write", "Edit", "AskUserQuestion", "ExitPlanMode", "EnterPlanMode", "Agent"}
_WITH_DIALOG = {"AskUserQuestion", "ExitPlanMode", "EnterPlanMode"}


class Calls:
    """Runs the calls of one reply after the other."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.session = turn.session
        self.view = turn.view
        self.loop = turn.loop
        self.notes: list[str] = []
        self.after: list[tuple[Use, list[Verdict], str]] = []
        self.kept = False
        """What a failed hook said stands between a call's head and its result."""

    async def run(self, calls: list[Call]) -> str:
        """All calls of a reply; returns the results' texts, joined by newlines."""
        uses = []
        for call in calls:
            use_id = "toolu_" + os.urandom(10).hex()
            given = self._input(call)
            block = {"type": "tool_use", "id": use_id, "name": call.tool, "input": given}
            self.turn.used.append(call.tool)
            uses.append(Use(call, given, use_id, self.turn.line(block, "tool_use")))
        text = [{"type": "text", "text": self.turn.last_text}] if self.turn.last_text else []
        self.turn.last_text = ""
        self.turn.touched = True
        blocks = [{"type": "tool_use", "id": u.use_id, "name": u.call.tool, "input": u.given} for u in uses]
        self.session.context.assistant([*text, *blocks])
        self.notes = []
        found = [await self._one(use) for use in uses]
        self.session.context.results([block for block, _ in found], self.notes)
        await self._batch(uses, [result for _, result in found])
        return "\n".join(result.content for _, result in found)

    def _input(self, call: Call) -> Json:
        """ExitPlanMode is given the plan that was written."""
        if call.tool == "Edit":
            return {"replace_all": False, **call.input}
        if call.tool != "ExitPlanMode":
            return call.input
        try:
            with open(self.session.plan_path, encoding="utf-8") as file:
                return {"plan": file.read(), "planFilePath": self.session.plan_path}
        except OSError:
            return call.input

    def _head(self, use: Use) -> Item | None:
        """The line that names the call; the tools with a dialog have none."""
        if use.call.tool in _WITH_DIALOG:
            return None
        if use.call.tool == "Read":
            return Item("folded", "Read 1 file (ctrl+o to expand)")
        if use.call.tool == "Write" and use.given.get("file_path") == self.session.plan_path:
            return Item("said", "Updated plan")
        return Item("said", tools.label(use.call.tool, use.given, self.session.cwd))

    # --- one call

    def _known(self, call: Call) -> bool:
        """Whether there is such a tool: the client's own, or one that the scenario knows how to treat."""
        scenario = self.session.scenario
        scripted = call.result is not None or call.tool in dict(scenario.tools) or not scenario.live
        return scripted or call.tool in _KNOWN

    async def _one(self, use: Use) -> tuple[Json, Result]:
        if not self._known(use.call):
            text = f"<tool_use_error>Error: No such tool available: {use.call.tool}</tool_use_error>"
            result = Result(text, "", None, error=True)
            return self._record(use, result), result
        head = self._head(use)
        self.view.live = [head] if head is not None else []
        self.view.changed()
        try:
            result = await self._decide_and_do(use)
        except Interrupted:
            self._interrupted(use, head)
            raise
        kept, self.view.live = self.view.live if self.kept else [], []
        self._show(use, result, kept)
        return self._record(use, result), result

    async def _decide_and_do(self, use: Use) -> Result:
        tool = use.call.tool
        given = tools.told(use.given, self.session.cwd)
        base: Json = {"tool_name": tool, "tool_input": given, "tool_use_id": use.use_id}
        verdicts = await self.session.run_hooks("PreToolUse", base, tool)
        self._collect(use, verdicts, "PreToolUse")
        denied = next((v for v in verdicts if v.permission == "deny" or v.block), None)
        if denied is not None:
            why = f"PreToolUse:{tool} hook error: {denied.block}" if denied.block else denied.reason
            return tools.failed(why or "Denied by hook")
        for verdict in verdicts:
            if verdict.updated is not None:
                use = use._replace(given=verdict.updated)
        begun = time.monotonic()
        asked = next((f"{v.reason} [settings]" for v in verdicts if v.permission == "ask"), None)
        if asked is not None:
            asked = f"Hook PreToolUse:{tool} requires confirmation for this command:\n{asked}\nsettings.json to update hooks"
        result = await self._perform(use, allowed=any(v.permission == "allow" for v in verdicts), asked=asked)
        if result.data is not None:
            await self._after(use, result, int((time.monotonic() - begun) * 1000))
        return result

    async def _after(self, use: Use, result: Result, ms: int) -> None:
        tool = use.call.tool
        fields: Json = {"tool_name": tool, "tool_input": result.given or tools.told(use.given, self.session.cwd)}
        if result.error:
            fields |= {"tool_use_id": use.use_id, "error": result.content, "is_interrupt": False, "duration_ms": ms}
            verdicts = await self.session.run_hooks("PostToolUseFailure", fields, tool)
            self._collect(use, verdicts, "PostToolUseFailure")
            return
        fields |= {"tool_response": result.data, "tool_use_id": use.use_id, "duration_ms": ms}
        verdicts = await self.session.run_hooks("PostToolUse", fields, tool)
        self._collect(use, verdicts, "PostToolUse")
        said = f"PostToolUse:{tool} hook blocking error from command:"
        self.notes += [f'{said} "{v.command}": {v.block}' for v in verdicts if v.block]
        stop = next((v.stop for v in verdicts if v.stop), None)
        if stop is not None:
            self.view.live = []
            self._show(use, result)
            self.view.add(Item("result", f"PostToolUse:{tool} hook stopped continuation: {stop}"))
            self.session.context.results([self._record(use, result)], self.notes)
            raise Stopped

    async def _perform(self, use: Use, *, allowed: bool, asked: str | None) -> Result:
        """The tools with a dialog of their own, else permission and the tool. A result without data skips Post hooks."""
        tool = use.call.tool
        own = self.session.scenario.tool(tool)
        if own.error is not None:
            return tools.failed(own.error)._replace(data=None)
        if tool == "AskUserQuestion":
            return await choices.question(self.turn, use, allowed=allowed)
        if tool == "EnterPlanMode":
            return choices.enter_plan(self.turn)
        if tool == "ExitPlanMode":
            return await choices.exit_plan(self.turn, use)
        ruling = await permission.rule(self.turn, use, allowed=allowed or own.auto_approve, asked=asked)
        if not ruling.allow:
            if ruling.cut:
                raise Interrupted
            refused = tools.failed(ruling.reason)._replace(data=None)
            shown = f"{refused.shown}\0Denied by PermissionRequest hook"
            return refused._replace(shown=shown) if ruling.by_hook else refused
        if self.session.scenario.live and use.call.result is None:
            result = await self._execute(use)
        else:
            text = use.call.result if use.call.result is not None else own.result or ""
            data = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": not text}
            result = Result(text, text or "Done", data)
        hook = "\0Allowed by PermissionRequest hook" if ruling.by_hook else ""
        return result._replace(shown=result.shown + hook)

    async def _execute(self, use: Use) -> Result:
        tool, given = use.call.tool, use.given
        if tool == "Bash" and given.get("run_in_background"):
            from nbs_fleet.sim import shells  # noqa: PLC0415 - rare

            return shells.run(self.turn, use.use_id, given)
        if tool == "Bash":
            return await self._bash(given)
        if tool == "Agent":
            from nbs_fleet.sim import subagent  # noqa: PLC0415 - rare

            return await subagent.run(self.turn, given)
        try:
            return {"Read": tools.read, "Write": tools.write, "Edit": tools.edit}[tool](given, self.session.cwd)
        except tools.ToolError as error:
            return tools.failed(str(error))

    async def _bash(self, given: Json) -> Result:
        session = self.session
        self.view.live = [*self.view.live, Item("result", "Running…")]
        self.view.changed()
        result = await tools.bash(self.loop, given, session.tool_env(), session.cwd)
        if result.cwd is not None and result.cwd != session.cwd:
            fields = {"old_cwd": session.cwd, "new_cwd": result.cwd}
            session.cwd = result.cwd
            await session.run_hooks("CwdChanged", fields)
        return result

    # --- what remains of a call

    def _collect(self, use: Use, verdicts: list[Verdict], event: str) -> None:
        """What hooks before a call said is recorded at once; what those after it said follows its result."""
        name = f"{event}:{use.call.tool}"
        if event != "PreToolUse":
            self.after.append((use, verdicts, event))
        for verdict in verdicts:
            if verdict.error:
                self.view.live += [Item("result", f"{name} hook error"), Item("result", verdict.error)]
                self.kept = True
            if event == "PreToolUse":
                self._attach(use, verdict, event)
            if verdict.context:
                self.notes.append(f"{name} hook additional context: {verdict.context}")

    def _attach(self, use: Use, verdict: Verdict, event: str) -> None:
        name = f"{event}:{use.call.tool}"
        self.turn.attach_success(verdict, name, event, use.use_id)
        if verdict.stop and event != "PreToolUse":
            self.turn.attach(name, event, use.use_id, type="hook_stopped_continuation", message=verdict.stop)
        if verdict.context:
            self.turn.attach_context(verdict.context, name, event, use.use_id)
        if verdict.block and event != "PreToolUse":
            error = {"blockingError": verdict.block, "command": verdict.command}
            self.turn.attach(name, event, use.use_id, type="hook_blocking_error", blockingError=error)

    def _show(self, use: Use, result: Result, kept: list[Item] | None = None) -> None:
        head = self._head(use)
        between = [item for item in kept or [] if item.kind == "result" and item.text != "Running…"]
        self.kept = False
        parts = result.shown.split("\0")
        if use.call.tool in _WITH_DIALOG:
            head = Item("said", parts[0]) if parts[0] else None
            parts = parts[1:]
        elif use.call.tool == "Read" and not result.error:
            parts = parts[1:]
        elif head is not None and head.text == "Updated plan" and not result.error:
            parts[0] = "/plan to preview"
        blocks = [v.block for _, verdicts, _ in self.after for v in verdicts if v.block]
        said = [[f"PostToolUse:{use.call.tool} hook returned blocking error", block] for block in blocks]
        below = [*between, *(Item("result", part) for part in [*parts, *(text for pair in said for text in pair)])]
        self.view.add(*([head] if head is not None else []), *below)

    def _record(self, use: Use, result: Result) -> Json:
        block: Json = {"tool_use_id": use.use_id, "type": "tool_result", "content": result.blocks or result.content}
        if result.error:
            block["is_error"] = True
        elif use.call.tool == "Bash":
            block["is_error"] = False
        self._line(use, block, result.data if result.data is not None else f"Error: {result.content}")
        for call, verdicts, event in self.after:
            for verdict in verdicts:
                self._attach(call, verdict, event)
        self.after.clear()
        return block

    def _line(self, use: Use, block: Json, data: Any) -> None:
        message = {"role": "user", "content": [block]}
        self.session.transcript.add(
            {"promptId": self.session.prompt_id, "type": "user", "message": message},
            toolUseResult=data,
            sourceToolAssistantUUID=use.line,
        )

    async def _batch(self, uses: list[Use], results: list[Result]) -> None:
        listed = [
            {
                "tool_name": u.call.tool,
                "tool_input": u.given,
                "tool_use_id": u.use_id,
                "tool_response": r.blocks or r.content,
            }
            for u, r in zip(uses, results, strict=True)
        ]
        for verdict in await self.session.run_hooks("PostToolBatch", {"tool_calls": listed}):
            mark = f"hook-{new_uuid()}"
            self.turn.attach_success(verdict, "PostToolBatch", "PostToolBatch", mark)
            if verdict.context:
                self.turn.attach_context(verdict.context, "PostToolBatch", "PostToolBatch", mark)
                self.session.context.system(f"PostToolBatch hook additional context: {verdict.context}")

    def _interrupted(self, use: Use, head: Item | None) -> None:
        """A person stopped the call, or said no: the result says so and the turn ends."""
        tool = use.call.tool
        self.view.live = []
        if tool == "AskUserQuestion":
            questions = [q for q in use.given.get("questions", []) if isinstance(q, dict)]
            said, _, rows = choices.declined(questions).partition("\0")
            self.view.add(Item("said", said), Item("result", rows))
        elif tool in {"Write", "Edit"} and head is not None:
            path = os.path.relpath(str(use.given.get("file_path", "")), self.session.cwd)
            drawn = permission.preview(self.session.cwd, tool, use.given)
            rows = "\n".join(row.removeprefix(" ") for row in drawn) if tool == "Write" else "\n".join(drawn)
            verb = "write" if tool == "Write" else "update"
            self.view.add(head, Item("result", f"User rejected {verb} to {path}\n{rows}"))
        elif tool == "ExitPlanMode":
            self.view.add(Item("result", choices.rejected(str(use.given.get("plan", ""))).removeprefix("\0")))
        else:
            self.view.add(*([head] if head is not None else []), Item("result", INTERRUPTED))
        block = {"type": "tool_result", "content": tools.REJECTED, "is_error": True, "tool_use_id": use.use_id}
        self._line(use, block, "User rejected tool use")
        self.session.context.results([block], [])
        self.turn.mark_interrupted("[Request interrupted by user for tool use]")
        self.turn.in_tool = True
