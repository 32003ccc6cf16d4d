"""What was seen of an interaction, made comparable: ids, times, paths and counts are replaced by their names. Pure."""

from __future__ import annotations

import re
from typing import Any

Json = dict[str, Any]
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_WORDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(/[^\s\"'<>]*)?/plans/[\w-]+\.md"), "<plan>"),
    (re.compile(_UUID), "<uuid>"),
    (re.compile(r"/projects/[^/\s]+/"), "/projects/<slug>/"),
    (re.compile(r"\breq_\w+"), "<request>"),
    (re.compile(r"async_hook_\d+"), "<async hook>"),
    (re.compile(r"toolu_\w+"), "<use>"),
    (re.compile(r"\ba[0-9a-f]{16}\b"), "<agent>"),
    (re.compile(r"^b[0-9a-z]{8}$"), "<task>"),
    (re.compile(r"(?<=<task-id>)\w+(?=</task-id>)|(?<=background with ID: )\w+"), "<task>"),
    (re.compile(r"/[^\s<>]*(<uuid>)?/tasks/\w+\.output"), "<output>"),
    (re.compile(r"(?<=duration_ms: )\d+"), "<n>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"^project-[0-9a-f]{2}$"), "project-<x>"),
    (re.compile(r"~\d+ tokens"), "~<n> tokens"),
    (re.compile(r"\(127\.0\.0\.1:\d+\)"), "(127.0.0.1)"),
    (re.compile(r"http://127\.0\.0\.1:\d+"), "<api>"),
)
NUMBERS = {
    "agent_id",
    "agentId",
    "duration_ms",
    "durationMs",
    "pid",
    "messageCount",
    "totalDurationMs",
    "totalTokens",
    "totalToolUseCount",
}
"""Fields whose value is a number that no two runs share."""
SIDE = {
    "Notification",
    "FileChanged",
    "InstructionsLoaded",
    "ConfigChange",
    "CwdChanged",
    "SubagentStart",
    "SubagentStop",
}
"""Events that have no order of their own beside the others: the client does not wait for their hooks."""
NOISE = {"file-history-snapshot", "last-prompt", "ai-title", "summary"}
"""Transcript lines that follow from what only the real client has: file backups, titles."""
ATTACHED_NOISE = {
    "date_change",
    "agent_listing_delta",
    "skill_listing",
    "task_reminder",
    "plan_mode",
    "plan_mode_exit",
    "plan_mode_reentry",
    "deferred_tools_delta",
    "todo_reminder",
}
_MENU = re.compile(r"^(/[\w:-]+ {3,}\S.*| {30}\S.*)$")
"""The list of commands below a box with a slash in it."""
AUTO = "Auto mode lets Claude handle permission prompts"
"""Said once when auto mode begins, sooner or later."""
_VERBS = r"[A-Z][\w'é-]+"
_ROWS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"^[·✢✳✶✻✽●*] {_VERBS}… ?(\(.*\))?$"), "<working>"),
    (re.compile(r"^(.*)Killed$"), r"\1"),
    (re.compile(r"^(  Thought for )[\dms ]+"), r"\1<n>s "),
    (re.compile(rf"^✻ {_VERBS} for [\dms ]+"), "✻ <worked>"),
)


def tidy(value: Any, places: dict[str, str]) -> Any:
    """The value with ids, times and paths replaced; `places` is path -> name, the longest path first."""
    if isinstance(value, dict):
        return {k: "<n>" if k in NUMBERS else tidy(v, places) for k, v in value.items()}
    if isinstance(value, list):
        return [tidy(item, places) for item in value]
    if not isinstance(value, str):
        return value
    for path, name in places.items():
        value = value.replace(path, name)
    for pattern, name in _WORDS:
        value = pattern.sub(name, value)
    return value


def payload(found: Json, places: dict[str, str]) -> Json:
    """One hook's input: what it says beside whose it is."""
    kept = {k: v for k, v in found.items() if k not in {"session_id", "transcript_path", "agent_transcript_path"}}
    shown: Json = tidy(kept, places)
    shown["carries"] = sorted(found.keys() - kept.keys())
    if "prompt_id" in shown:
        shown["prompt_id"] = "<uuid>"
    return shown


def hooks(payloads: list[Json], places: dict[str, str]) -> tuple[list[Json], list[Json]]:
    """The payloads in order, and sorted those that have none."""
    return split([payload(found, places) for found in payloads])


def split(shown: list[Json]) -> tuple[list[Json], list[Json]]:
    """Payloads of events that have an order, and sorted those of events that have none."""
    side = [found for found in shown if found["hook_event_name"] in SIDE]
    return [found for found in shown if found["hook_event_name"] not in SIDE], sorted(side, key=repr)


def line(found: Json, places: dict[str, str]) -> Json | None:
    """One line of a transcript; None for what only the real client has."""
    attachment = found.get("attachment") or {}
    if (
        str(found.get("content")).startswith(AUTO)
        or found.get("type") in NOISE
        or attachment.get("type") in ATTACHED_NOISE
    ):
        return None
    message = found.get("message") or {}
    content = message.get("content")
    shown: Json = {"type": found.get("type")}
    for key in (
        "subtype",
        "operation",
        "isMeta",
        "isApiErrorMessage",
        "error",
        "apiErrorStatus",
        "errorDetails",
        "level",
    ):
        if found.get(key) not in (None, False):
            shown[key] = tidy(found[key], places)
    for key in ("promptSource", "permissionMode", "isCompactSummary", "preventContinuation", "hookErrors", "hookCount"):
        if found.get(key) not in (None, False, []):
            shown[key] = tidy(found[key], places)
    if isinstance(found.get("origin"), dict):
        shown["origin"] = found["origin"].get("kind")
    if attachment:
        shown["attachment"] = tidy({k: v for k, v in attachment.items() if k != "timestamp"}, places)
    if isinstance(found.get("content"), str):
        shown["content"] = tidy(found["content"], places)
    if message:
        shown["message"] = [message.get("role"), message.get("stop_reason")]
        shown["content"] = tidy(content if not isinstance(content, list) else [_block(b) for b in content], places)
    return shown


def _block(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    return {k: v for k, v in block.items() if k not in {"id", "tool_use_id", "caller", "signature", "cache_control"}}


def after_parents(lines: list[Json]) -> list[Json]:
    """The lines, each behind the one it follows from: the real client may write its first turn's lines out of order."""
    known = {line.get("uuid") for line in lines}
    found: list[Json] = []
    seen: set[str | None] = set()
    waiting: dict[str | None, list[Json]] = {}

    def put(line: Json) -> None:
        parent = line.get("parentUuid")
        if parent is not None and parent in known and parent not in seen:
            waiting.setdefault(parent, []).append(line)
            return
        found.append(line)
        seen.add(line.get("uuid"))
        for later in waiting.pop(line.get("uuid"), []):
            put(later)

    for line in lines:
        put(line)
    assert len(found) == len(lines)
    return found


def transcript(lines: list[Json], places: dict[str, str]) -> list[Json]:
    """The lines that both clients write."""
    return [shown for found in after_parents(lines) if (shown := line(found, places)) is not None]


_OWN = (
    "The following skills are available",
    "Available agent types",
    "As you answer the user's questions",
    "Today's date",
    "The TodoWrite tool",
    "The task tools haven't been used",
    "Plan mode is active",
    "Plan mode still active",
    "## Exited Plan Mode",
    "The following deferred tools",
)
"""Beginnings of what the real client tells the model of itself: lists of tools, skills and dates, how a mode works."""


_HOOKED = re.compile(
    r"(?:^|\n\n)(\w+(?::\w+)? hook (?:additional context|success): .*?)(?=\n\n(?:" + "|".join(_OWN) + r")|\Z)",
    re.DOTALL,
)


def requests(found: list[list[Json]], places: dict[str, str]) -> list[list[str]]:
    """For each request to the model, what was new in it: `role: text` of each block, in order."""
    shown: list[list[str]] = []
    before: list[str] = []
    for messages in found:
        said = [text for message in messages for text in _said(message, places)]
        new = list(said)
        for text in before:
            if text in new:
                new.remove(text)
        shown.append(new)
        before = said
    return shown


def _without_own(text: str) -> list[str]:
    """A text without what the client tells of itself; hooks' words stand between that."""
    plain = text.removeprefix("<system-reminder>").strip()
    if not any(plain.startswith(own) or f"\n\n{own}" in plain for own in _OWN):
        return [text] if plain else []
    return [part.strip() for part in _HOOKED.findall(plain)]


def _said(message: Json, places: dict[str, str]) -> list[str]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    found = []
    for block in blocks:
        kind = block.get("type")
        text = (
            block.get("text")
            if kind == "text"
            else block.get("content")
            if kind == "tool_result"
            else block.get("name")
        )
        if isinstance(text, list):
            text = "\n".join(str(part.get("text", "")) for part in text if isinstance(part, dict))
        text = str(tidy(text or "", places)).strip()
        mark = " error" if block.get("is_error") else ""
        found += [f"{message.get('role')} {kind}{mark}: {said}" for said in _without_own(text)]
    return found


def look(found: Json, places: dict[str, str]) -> Json:
    """One look: the driver's reading, title, state file, and the screen below the welcome box."""
    shown: Json = {key: value for key, value in found.items() if key != "rows"}
    shown = tidy(shown, places)
    shown["detail"] = re.sub(rf"^{_VERBS}…( \(.*\))?$", "<working>", shown.get("detail") or "")
    if "title" in shown:
        # The real client has the model think of a title; the simulator's has no such ideas.
        shown["title"] = re.sub(r"^[⠂⠐] ", "<busy> ", shown["title"]).replace("A title", "Claude Code")
    shown["rows"] = rows(found["rows"], places)
    return shown


def rows(found: list[str], places: dict[str, str]) -> list[str]:
    """The screen without the welcome box, blank lines, rules and random words."""
    shown = []
    told = False
    for row in _below_welcome(found):
        told = row.startswith(f"● {AUTO}") or (told and row.startswith("  "))
        if told or _MENU.match(row):
            continue
        text = str(tidy(row, places)).replace("\u00a0", " ").rstrip().replace(" · › stashed", "   › stashed")
        text = re.sub(r"(\S) {3,}", r"\1  ", text)
        for pattern, name in _ROWS:
            text = pattern.sub(name, text).rstrip()
        if text and not re.fullmatch(r"[─╌]+( .* ─+)?", text):
            # The hints at the right fade by themselves.
            text = re.sub(r"● high · /effort|Ctrl\+Y to paste deleted text", "", text).rstrip()
            if text:
                shown.append(re.sub(r"[─╌]{4,}", "──", text))
    return shown


def _below_welcome(found: list[str]) -> list[str]:
    for i, row in enumerate(found):
        if row.startswith("╰"):
            return found[i + 1 :]
    return found
