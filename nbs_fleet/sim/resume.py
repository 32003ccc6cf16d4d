"""Going on with an earlier session: finding it, its conversation on screen and in the model's memory."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from nbs_fleet.sim import context, faults, tools, transcript
from nbs_fleet.sim.args import Args
from nbs_fleet.sim.screen import clock
from nbs_fleet.sim.view import PAST, Item

if TYPE_CHECKING:
    from nbs_fleet.sim.app import App
    from nbs_fleet.sim.session import Session

Json = dict[str, Any]
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


def find(folder: str, given: Args) -> str | None:
    """The session that --resume or --continue means; None when there is none."""
    try:
        names = [n[:-6] for n in os.listdir(folder) if n.endswith(".jsonl")]
    except OSError:
        return None
    if given.resume is None:
        newest = sorted(names, key=lambda n: os.path.getmtime(os.path.join(folder, f"{n}.jsonl")))
        return newest[-1] if newest else None
    if _UUID.fullmatch(given.resume):
        return given.resume if given.resume in names else None
    for name in names:
        if title(transcript.read(os.path.join(folder, f"{name}.jsonl"))) == given.resume:
            return name
    return None


def title(lines: list[Json]) -> str | None:
    """The name that a session was given."""
    titles = [str(line.get("customTitle")) for line in lines if line.get("type") == "custom-title"]
    return titles[-1] if titles else None


def restore(app: App, lines: list[Json]) -> None:
    """Put an earlier conversation back: for the model, on the screen, and as the parent of what comes."""
    session = app.session
    session.context.restore(lines)
    linked = [line for line in lines if line.get("uuid") and not line.get("isSidechain")]
    if linked and not session.args.fork:
        session.transcript.parent = str(linked[-1]["uuid"])
        session.headed = True
    if session.name is None:
        session.name = title(lines)
        session.state.rename(session.name)
    app.view.add(Item("welcome", "old"))
    cut = context.cut_calls(lines)
    app.view.items += [item for line in lines for item in _items(line, session.cwd, cut)][-100:]
    if cut:
        _go_on(session)


def _go_on(session: Session) -> None:
    """A call without a result: the client answers in the model's stead, so that the conversation is whole."""
    said = [{"type": "text", "text": "Continue from where you left off."}]
    session.transcript.add({"type": "user", "message": {"role": "user", "content": said}}, isMeta=True)
    session.context.user("Continue from where you left off.")
    error = faults.ApiError("No response requested.", "")
    session.transcript.add(faults.synthetic(error))
    session.context.assistant([{"type": "text", "text": "No response requested."}])


def _items(line: Json, cwd: str, cut: set[str]) -> list[Item]:
    content = (line.get("message") or {}).get("content")
    if line.get("subtype") == "turn_duration":
        return [Item("done", f"✻ {PAST[0]} for {clock(line.get('durationMs', 0) / 1000)}")]
    if line.get("type") == "user" and isinstance(content, str) and not line.get("isMeta"):
        return [] if content.startswith("<") else [Item("user", content)]
    blocks = content if isinstance(content, list) else []
    items = []
    for block in blocks:
        if block.get("type") == "text" and line.get("type") == "assistant":
            items.append(Item("said", str(block.get("text", ""))))
        elif block.get("type") == "tool_use" and block.get("id") in cut:
            continue
        elif block.get("type") == "tool_use" and block.get("name") not in {"AskUserQuestion", "ExitPlanMode"}:
            items.append(Item("said", tools.label(str(block.get("name")), block.get("input") or {}, cwd)))
    return items
