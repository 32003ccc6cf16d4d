"""What is typed with a first `/` or `!`, and the rewind list."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from nbs_fleet.sim import skills, tools
from nbs_fleet.sim.cells import cut
from nbs_fleet.sim.compaction import compact
from nbs_fleet.sim.dialogs import Card, Dialog, Option
from nbs_fleet.sim.front import Prompt
from nbs_fleet.sim.leaving import note_command
from nbs_fleet.sim.view import Item

if TYPE_CHECKING:
    from nbs_fleet.sim.app import App

Json = dict[str, Any]


async def run(app: App, prompt: Prompt) -> Prompt | None:
    """Carry a command out. A prompt to answer is returned where there is one."""
    if prompt.kind == "shell":
        return await _shell(app, prompt)
    name, _, given = prompt.text[1:].partition(" ")
    given = given.strip()
    if name == "clear":
        await _clear(app)
    elif name == "compact":
        await compact(app, prompt.text, given)
    elif name == "config":
        await _config(app)
    else:
        return await _skill(app, prompt, name, given)
    return None


async def _skill(app: App, prompt: Prompt, name: str, given: str) -> Prompt | None:
    session = app.session
    args = session.args
    path = skills.known(session.env, session.project, args.add_dirs, args.plugin_dirs).get(name)
    if path is None:
        if "/" in name:
            return prompt
        _unknown(app, name, given)
        return None
    fields: Json = {
        "expansion_type": "slash_command",
        "command_name": name,
        "command_args": given,
        "command_source": skills.source(path, session.env, args.plugin_dirs),
        "prompt": prompt.text,
    }
    await session.run_hooks("UserPromptExpansion", fields)
    called = f"<command-message>{name}</command-message>\n<command-name>/{name}</command-name>"
    called += f"\n<command-args>{given}</command-args>" if given else ""
    folder = f"Base directory for this skill: {os.path.dirname(path)}\n\n" if path.endswith("SKILL.md") else ""
    return prompt._replace(body=folder + skills.body(path, given), shown=prompt.text, command=called)


def _unknown(app: App, name: str, given: str) -> None:
    texts = [f"Unknown command: /{name}"] + ([f"Args from unknown skill: {given}"] if given else [])
    app.session.head()
    for text in texts:
        app.view.add(Item("notice", text))
        app.session.transcript.add(
            {"type": "system", "subtype": "informational", "content": text, "isMeta": False}, level="warning"
        )


async def _shell(app: App, prompt: Prompt) -> Prompt | None:
    """!command runs without permission; its output goes to the model, which answers."""
    session, view = app.session, app.view
    view.live = [Item("shell", prompt.text), Item("result", "Running…")]
    view.start()
    app.refresh()
    result = await tools.bash(app.loop, {"command": prompt.text}, session.tool_env(), session.cwd)
    view.live = []
    view.stop()
    view.add(Item("shell", prompt.text), Item("result", result.shown))
    data = result.data if isinstance(result.data, dict) else {"stdout": "", "stderr": result.content}
    texts = (
        f"<bash-input>{prompt.text}</bash-input>",
        f"<bash-stdout>{data.get('stdout', '')}</bash-stdout><bash-stderr>{data.get('stderr', '')}</bash-stderr>",
    )
    session.head()
    for text in texts:
        session.transcript.add({"type": "user", "message": {"role": "user", "content": text}})
        session.context.user(text)
    if session.settings.values.get("respondToBashCommands") is False:
        return None
    return Prompt("", kind="answer")


async def _clear(app: App) -> None:
    session, view = app.session, app.view
    await session.end_hooks("clear")
    session.begin_anew()
    view.items = [Item("welcome"), Item("user", "/clear")]
    view.named = False
    view.redraw()
    app.refresh()
    transcript = session.transcript
    if session.name is not None:
        transcript.raw({"type": "custom-title", "customTitle": session.name, "sessionId": session.id})
    transcript.raw({"type": "mode", "mode": "normal", "sessionId": session.id})
    session.headed = True
    note_command(session, "clear")
    transcript.add(
        {
            "type": "system",
            "subtype": "local_command",
            "content": "<local-command-stdout></local-command-stdout>",
            "level": "info",
            "isMeta": False,
        }
    )
    session.context.user("<local-command-stdout></local-command-stdout>")
    await session.start_hooks("clear")


async def _config(app: App) -> None:
    """A settings dialog that any Esc closes: the state is `waiting: dialog open`."""

    def head(_columns: int) -> list[str]:
        return ["  Settings  Status   Config   Usage   Stats", ""]

    options = [Option("Auto-compact", "a"), Option("Show tips", "b"), Option("Reduce motion", "c")]
    dialog = Dialog(head, options, foot="Enter/Space to change · / to search · Esc to close", waiting_for="dialog open")
    while (await app.ask(dialog)).value is not None:
        continue
    app.withdraw()
    app.session.head()
    said = "<command-name>/config</command-name>\n            <command-message>config</command-message>\n            "
    for text in (
        said + "<command-args></command-args>",
        "<local-command-stdout>Config dialog dismissed</local-command-stdout>",
    ):
        line = {"type": "system", "subtype": "local_command", "content": text, "level": "info", "isMeta": False}
        app.session.transcript.add(line)


async def rewind(app: App) -> None:
    """The list of earlier prompts; it only can be left."""
    prompts = app.prompts[-8:]

    def head(columns: int) -> list[str]:
        lines = ["─" * columns, "  Rewind", "", "  Restore the code and/or conversation to the point before…", ""]
        for text in prompts:
            lines += [f"    {cut(json.dumps(text, ensure_ascii=False)[1:-1], columns - 6)}", "    No code changes", ""]
        return [*lines, "  ❯ (current)", "", "  Enter to continue · Esc to cancel"]

    await app.ask(Card(head, [Option("(current)", "current")], waiting_for=None, title="rewind"))
    app.withdraw()
