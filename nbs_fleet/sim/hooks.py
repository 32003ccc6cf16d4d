"""Runs the hooks of an event side by side and says what each of them decided."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from nbs_fleet.sim.kernel import Loop, Task, gather, start
from nbs_fleet.sim.process import Child, Output
from nbs_fleet.sim.settings import Hook, Settings

DEFAULT_SECONDS = 600.0
SESSION_END_SECONDS = 1.5
Json = dict[str, Any]


class Verdict(NamedTuple):
    """What one hook said. `block` carries the reason; `error` is shown and changes nothing."""

    command: str
    code: int = 0
    out: str = ""
    err: str = ""
    ms: int = 0
    block: str | None = None
    permission: str | None = None
    reason: str = ""
    updated: Json | None = None
    context: str | None = None
    text: str | None = None
    stop: str | None = None
    decision: Json | None = None
    error: str | None = None
    timed_out: bool = False
    limit_ms: int = 0


def matches(matcher: str, value: str | None) -> bool:
    """Whether a group's matcher takes this value: empty or "*" all, plain names by "|", else a regular expression."""
    if matcher in {"", "*"} or value is None:
        return True
    if re.fullmatch(r"[A-Za-z0-9_|]+", matcher):
        return value in matcher.split("|")
    try:
        return re.search(matcher, value) is not None
    except re.error:
        return False


def judge(event: str, command: str, result: Output, ms: int, limit_ms: int = 0) -> Verdict:
    """Read a finished hook's exit code and output (rules as measured on the real client)."""
    base = Verdict(command=command, code=result.code, out=result.out, err=result.err, ms=ms)
    if result.timed_out:
        return base._replace(timed_out=True, limit_ms=limit_ms)
    if result.code == 2:
        return base._replace(block=f"[{command}]: {result.err}")
    if result.code != 0:
        return base._replace(error=f"Failed with non-blocking status code: {result.err.strip() or 'No stderr output'}")
    text = result.out.strip()
    if not text.startswith("{"):
        return base._replace(text=text or None)
    try:
        said = json.loads(text)
    except ValueError:
        return base._replace(text=text)
    return _read_json(event, base, said)


def _read_json(event: str, base: Verdict, said: Json) -> Verdict:
    specific = said.get("hookSpecificOutput")
    if specific is not None:
        name = specific.get("hookEventName") if isinstance(specific, dict) else None
        if name is None:
            return base._replace(
                error='Hook JSON output validation failed — hookSpecificOutput is missing required field "hookEventName"'
            )
        if name != event:
            return base._replace(
                error=f"Hook JSON output validation failed — expected hookEventName {event}, received {name}"
            )
    specific = specific or {}
    verdict = base._replace(
        context=specific.get("additionalContext") or None,
        permission=specific.get("permissionDecision"),
        reason=specific.get("permissionDecisionReason") or said.get("reason") or "",
        updated=specific.get("updatedInput"),
        decision=specific.get("decision"),
    )
    if said.get("decision") == "block":
        verdict = verdict._replace(block=said.get("reason") or "Blocked by hook")
        if event == "PreToolUse":
            verdict = verdict._replace(permission="deny", block=None, reason=said.get("reason") or "Blocked by hook")
    if said.get("continue") is False:
        verdict = verdict._replace(stop=said.get("stopReason") or "Execution stopped by hook")
    return verdict


def success(event: str, name: str, use_id: str, verdict: Verdict) -> Json | None:
    """The transcript's attachment about what a hook printed; None where the client keeps none."""
    quiet = verdict.code != 0 or verdict.timed_out or verdict.error or verdict.block or verdict.permission == "deny"
    if quiet or not verdict.out or event == "PermissionRequest":
        return None
    if (event == "UserPromptSubmit" and verdict.text is None) or (verdict.stop and event != "Stop"):
        return None
    return {
        "type": "hook_success",
        "hookName": name,
        "toolUseID": use_id,
        "hookEvent": event,
        "content": verdict.text or "",
        "stdout": verdict.out,
        "stderr": verdict.err,
        "exitCode": verdict.code,
        "command": verdict.command,
        "durationMs": verdict.ms,
    }


def failure(event: str, name: str, use_id: str, verdict: Verdict) -> Json | None:
    """The transcript's attachment about a hook that failed or was cut for its time; None for any other."""
    about: Json = {"hookName": name, "toolUseID": use_id, "hookEvent": event, "command": verdict.command}
    about["durationMs"] = verdict.ms
    if verdict.timed_out:
        return {"type": "hook_cancelled", **about, "timedOut": True, "timeoutMs": verdict.limit_ms}
    if not verdict.error:
        return None
    said = {"stderr": verdict.error, "stdout": verdict.out, "exitCode": verdict.code or 1}
    return {"type": "hook_non_blocking_error", **about, **said}


class Hooks:
    """The hooks of one client. `settings`, `env` and `base` are asked anew each time, for they change while it runs."""

    def __init__(
        self,
        loop: Loop,
        settings: Callable[[], Settings],
        env: Callable[[str], dict[str, str]],
        base: Callable[[str], Json],
    ) -> None:
        self.loop = loop
        self.settings = settings
        self.env = env
        self.base = base
        self.woken: Callable[[Hook, str], None] = lambda _hook, _text: None
        self.late: Callable[[str, str, Verdict], None] = lambda _event, _name, _verdict: None
        self.background: list[Task[None]] = []

    def chosen(self, event: str, value: str | None) -> list[Hook]:
        """The hooks that will run."""
        if self.settings().values.get("disableAllHooks") is True:
            return []
        return [h for h in self.settings().hooks if h.event == event and matches(h.matcher, value)]

    async def run(self, event: str, fields: Json, value: str | None = None) -> list[Verdict]:
        """Run all hooks of `event` at once and wait for them, the background ones aside."""
        hooks = self.chosen(event, value)
        if not hooks:
            return []
        payload = json.dumps({**self.base(event), **fields}, ensure_ascii=False).encode()
        for hook in hooks:
            if hook.background:
                self.background = [task for task in self.background if not task.done]
                self.background.append(start(self._behind(hook, payload, f"{event}:{value}" if value else event)))
        return await gather([self._one(hook, payload) for hook in hooks if not hook.background])

    async def _behind(self, hook: Hook, payload: bytes, name: str) -> None:
        result, ms = await self._execute(hook, payload)
        if hook.rewake:
            if result.code == 2 and not result.timed_out:
                self.woken(hook, result.err or result.out)
            return
        self.late(hook.event, name, judge(hook.event, hook.command, result, ms))

    async def _one(self, hook: Hook, payload: bytes) -> Verdict:
        result, ms = await self._execute(hook, payload)
        return judge(hook.event, hook.command, result, ms, int((hook.timeout or DEFAULT_SECONDS) * 1000))

    async def _execute(self, hook: Hook, payload: bytes) -> tuple[Output, int]:
        begun = time.monotonic()
        argv = [hook.command, *hook.args] if hook.args is not None else ["/bin/sh", "-c", hook.command]
        seconds = hook.timeout or (SESSION_END_SECONDS if hook.event == "SessionEnd" else DEFAULT_SECONDS)
        env = self.env(hook.event)
        if hook.event == "SessionEnd" and env.get("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS", "").isdigit():
            seconds = int(env["CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS"]) / 1000
        try:
            child = Child(self.loop, argv, env, payload)
        except OSError as error:
            return Output(127, "", str(error)), 0
        result = await child.finish(seconds)
        return result, int((time.monotonic() - begun) * 1000)
