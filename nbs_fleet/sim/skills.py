"""Skills and commands of a person's own: where they are found and what the model gets for `/name args`."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from nbs_fleet.sim import place

if TYPE_CHECKING:
    from nbs_fleet.sim.session import Session


def _front(text: str) -> tuple[dict[str, str], str]:
    """The simple keys of a front matter, and the body."""
    if not text.startswith("---\n"):
        return {}, text
    head, end, body = text[4:].partition("\n---\n")
    if not end:
        return {}, text
    return dict(re.findall(r"^([\w-]+):\s*(.*?)\s*$", head, re.MULTILINE)), body.lstrip("\n")


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None


def _plugin(folder: str) -> list[tuple[str, str]]:
    manifest = place.read_json(os.path.join(folder, ".claude-plugin", "plugin.json"))
    prefix = manifest.get("name") if isinstance(manifest, dict) else None
    found = []
    skills = os.path.join(folder, "skills")
    for name in sorted(os.listdir(skills)) if os.path.isdir(skills) else []:
        path = os.path.join(skills, name, "SKILL.md")
        text = _read(path)
        if text is None:
            continue
        found.append((f"{prefix or os.path.basename(folder)}:{name}", path))
        own = _front(text)[0].get("name")
        if own:
            found.append((own, path))
    return found


def known(env: dict[str, str], cwd: str, add_dirs: tuple[str, ...], plugins: tuple[str, ...]) -> dict[str, str]:
    """Command name -> file, for project, config directory, added directories and plugins."""
    found: dict[str, str] = {}
    roots = [os.path.join(cwd, ".claude"), place.config_dir(env), *(os.path.join(d, ".claude") for d in add_dirs)]
    for root in roots:
        skills = os.path.join(root, "skills")
        for name in sorted(os.listdir(skills)) if os.path.isdir(skills) else []:
            path = os.path.join(skills, name, "SKILL.md")
            if os.path.isfile(path):
                found.setdefault(name, path)
        commands = os.path.join(root, "commands")
        for name in sorted(os.listdir(commands)) if os.path.isdir(commands) else []:
            if name.endswith(".md"):
                found.setdefault(name[:-3], os.path.join(commands, name))
    for folder in plugins:
        for name, path in _plugin(folder):
            found.setdefault(name, path)
    return found


def body(path: str, given: str) -> str:
    """The text that the model gets: the file's body with $ARGUMENTS filled in, or the arguments at its end."""
    text = _front(_read(path) or "")[1]
    if "$ARGUMENTS" in text:
        return text.replace("$ARGUMENTS", given)
    return f"{text}\n\nARGUMENTS: {given}" if given else text


def source(path: str, env: dict[str, str], plugins: tuple[str, ...]) -> str:
    """Where a command came from, as UserPromptExpansion names it."""
    if any(path.startswith(folder) for folder in plugins):
        return "plugin"
    return "userSettings" if path.startswith(place.config_dir(env)) else "projectSettings"


def record(session: Session, command: str, text: str) -> None:
    """A skill's call for transcript and model: its name, then its text."""
    about = {"promptId": session.prompt_id, "type": "user"}
    session.transcript.add({**about, "message": {"role": "user", "content": command}})
    said = [{"type": "text", "text": text}]
    session.transcript.add({**about, "message": {"role": "user", "content": said}}, isMeta=True)
    attachment = {"type": "command_permissions", "allowedTools": []}
    session.transcript.add({"attachment": attachment, "type": "attachment"})
    session.context.user(command)
    session.context.user(text)
