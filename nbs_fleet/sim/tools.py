"""The tools of the scripted model: Bash in a session of its own, Read, Write and Edit on real files."""

from __future__ import annotations

import os
import re
import shlex
from typing import Any, NamedTuple

from nbs_fleet.sim.kernel import Loop
from nbs_fleet.sim.process import Child

Json = dict[str, Any]
BASH_SECONDS = 120.0
EMPTY = "(Bash completed with no output)"
REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed."
)


class Result(NamedTuple):
    """What a tool did: `content` for the model, `shown` under the call, `data` for transcript and hooks."""

    content: str
    shown: str
    data: Any
    error: bool = False
    cwd: str | None = None
    given: Json | None = None
    """The call's input as hooks are told it afterwards, where a dialog added to it."""
    blocks: list[Json] | None = None
    """What the model gets where that is more than one text; `content` then has the texts."""


class ToolError(Exception):
    """A tool could not do it; the text goes to the model."""


def failed(text: str) -> Result:
    """An error as result."""
    return Result(text, f"Error: {text}", f"Error: {text}", error=True)


def told(given: Json, cwd: str) -> Json:
    """A call's input as hooks are told it: with whole paths."""
    path = given.get("file_path")
    return {**given, "file_path": os.path.join(cwd, path)} if isinstance(path, str) else given


def label(tool: str, given: Json, cwd: str) -> str:
    """How a call is shown: Bash(ls), Update(f.txt)."""
    if tool == "Bash":
        return f"Bash({str(given.get('command', '')).strip()})"
    path = str(given.get("file_path", ""))
    name = {"Edit": "Update"}.get(tool, tool)
    if path:
        shown = os.path.relpath(path, cwd) if path.startswith(cwd + "/") else path
        return f"{name}({shown})"
    return f"{name}({', '.join(f'{k}: {v}' for k, v in given.items())})" if given else name


async def bash(loop: Loop, given: Json, env: dict[str, str], cwd: str) -> Result:
    """Run a command as the real client does: bash, own session, no input; an interrupt kills the group."""
    command = str(given.get("command", ""))
    read, write = os.pipe()
    os.set_inheritable(write, True)
    script = f"cd {shlex.quote(cwd)} && eval {shlex.quote(command)} < /dev/null 2>&1 {write}>&- && pwd -P >&{write}"
    timeout = given.get("timeout")
    seconds = timeout / 1000 if isinstance(timeout, int | float) else BASH_SECONDS
    try:
        child = Child(loop, ["/bin/bash", "-c", script], env)
    except OSError as error:
        os.close(read)
        return failed(str(error))
    finally:
        os.close(write)
    try:
        done = await child.finish(seconds)
        os.set_blocking(read, False)
        try:
            where = os.read(read, 4096).decode("utf-8", "replace").strip()
        except BlockingIOError:
            where = ""
    finally:
        os.close(read)
    out = done.out.rstrip("\n")
    err = done.err.rstrip("\n")
    if done.timed_out:
        return failed(f"Command timed out after {int(seconds)}s\n{out}".rstrip())
    code = 128 - done.code if done.code < 0 else done.code
    if code != 0:
        return failed("\n".join(part for part in (f"Exit code {code}", out, err) if part))
    content = "\n".join(part for part in (out, err) if part)
    silent = all(_SILENT.match(part) for part in _PARTS.split(command) if part.strip())
    data = {"stdout": out, "stderr": err, "interrupted": False, "isImage": False, "noOutputExpected": silent}
    return Result(content or EMPTY, content or ("Done" if silent else "(No output)"), data, cwd=where or None)


_PARTS = re.compile(r"&&|\|\||;|\|")
_SILENT = re.compile(r"\s*(mv|cp|rm|mkdir|rmdir|chmod|chown|chgrp|touch|ln|cd|export|unset|wait)\b")
"""Commands that say nothing when all is well."""


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        raise ToolError(f"File does not exist: {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(str(error)) from None


def read(given: Json, cwd: str) -> Result:
    """Lines with numbers."""
    path = os.path.join(cwd, str(given.get("file_path", "")))
    text = _text(path)
    lines = text.split("\n")
    content = "\n".join(f"{i}\t{line}" for i, line in enumerate(lines, 1))
    data = {
        "type": "text",
        "file": {
            "filePath": given.get("file_path", ""),
            "content": text,
            "numLines": len(lines),
            "startLine": 1,
            "totalLines": len(lines),
        },
    }
    return Result(content, f"Read {len(lines)} lines", data)


_FRESH = "(file state is current in your context — no need to Read it back)"


def write(given: Json, cwd: str) -> Result:
    """Create or replace a file, with its folders."""
    path = os.path.join(cwd, str(given.get("file_path", "")))
    text = str(given.get("content", ""))
    try:
        before: str | None = _text(path)
    except ToolError:
        before = None
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ToolError(str(error)) from None
    verb = "File created successfully at: {}" if before is None else "The file {} has been updated successfully."
    data: Json = {
        "type": "create" if before is None else "update",
        "filePath": given.get("file_path", ""),
        "content": text,
        "structuredPatch": [],
        "originalFile": before,
        "userModified": False,
    }
    lines = text.splitlines()
    shown = f"Wrote {len(lines)} lines to {os.path.relpath(path, cwd)}\n" + numbered(lines)
    return Result(f"{verb.format(given.get('file_path', ''))} {_FRESH}", shown.rstrip("\n"), data)


def numbered(lines: list[str]) -> str:
    """The first lines of a file as the client shows them."""
    return "\n".join(f" {i} {line}" for i, line in enumerate(lines[:10], 1))


def edit(given: Json, cwd: str) -> Result:
    """Replace one piece of text (all of them with replace_all)."""
    path = os.path.join(cwd, str(given.get("file_path", "")))
    old, new = str(given.get("old_string", "")), str(given.get("new_string", ""))
    everywhere = bool(given.get("replace_all"))
    before = _text(path)
    if not old or old not in before:
        raise ToolError(f"String to replace not found in file.\nString: {old}")
    if before.count(old) > 1 and not everywhere:
        raise ToolError(
            f"Found {before.count(old)} matches of the string to replace, but replace_all is false. To replace all "
            f"occurrences, set replace_all to true. String: {old}"
        )
    after = before.replace(old, new) if everywhere else before.replace(old, new, 1)
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(after)
    except OSError as error:
        raise ToolError(str(error)) from None
    data = {
        "filePath": given.get("file_path", ""),
        "oldString": old,
        "newString": new,
        "originalFile": before,
        "structuredPatch": patch(before, after),
        "userModified": False,
        "replaceAll": everywhere,
    }
    return Result(
        f"The file {given.get('file_path', '')} has been updated successfully. {_FRESH}",
        difference(before, after),
        data,
    )


def patch(before: str, after: str) -> list[Json]:
    """An edit as hooks are told it: one piece per changed place, with three lines around."""
    import difflib  # noqa: PLC0415 - few clients ever edit

    old, new = before.splitlines(), after.splitlines()
    found: list[Json] = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3):
        lines: list[str] = []
        for tag, a, b, c, d in group:
            if tag == "equal":
                lines += [" " + line for line in old[a:b]]
                continue
            lines += ["-" + line for line in old[a:b]] + ["+" + line for line in new[c:d]]
        start, end = group[0], group[-1]
        found.append(
            {
                "oldStart": start[1] + 1,
                "oldLines": end[2] - start[1],
                "newStart": start[3] + 1,
                "newLines": end[4] - start[3],
                "lines": lines,
            }
        )
    return found


def difference(before: str, after: str) -> str:
    """A small diff as the client shows it under an edit."""
    old, new = before.splitlines(), after.splitlines()
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    gone, come = old[start : len(old) - end], new[start : len(new) - end]
    words = [
        f"{verb} {len(part)} line{'' if len(part) == 1 else 's'}"
        for verb, part in (("Added", come), ("removed", gone))
        if part
    ]
    rows = [f" {i}  {line}" for i, line in enumerate(old[max(0, start - 3) : start], max(0, start - 3) + 1)]
    rows += [f" {i} -{line}" for i, line in enumerate(gone, start + 1)]
    rows += [f" {i} +{line}" for i, line in enumerate(come, start + 1)]
    first = len(new) - end
    rows += [f" {i}  {line}" for i, line in enumerate(new[first : first + 3], first + 1)]
    return "\n".join([", ".join(words) or "No change", *rows])


SAFE = re.compile(
    r"^\s*(ls|cat|echo|pwd|true|false|sleep|head|tail|wc|grep|find|which|date|env|printenv|stat|test|printf|id|whoami|"
    r"hostname|uname|ps|df|du|git (status|log|diff|show|branch))\b[^>`$]*$"
)


def read_only(command: str) -> bool:
    """Whether a command is one of those that run without asking."""
    return all(SAFE.match(part) for part in _PARTS.split(command) if part.strip())


def allowed_by(rules: tuple[str, ...], tool: str, given: Json) -> bool:
    """Whether a permission rule takes this call: `Tool`, `Bash(exact)`, `Bash(prefix:*)`, `Edit(/path/**)`."""
    subject = str(given.get("command", given.get("file_path", "")))
    for rule in rules:
        name, _, inside = rule.partition("(")
        if name.strip() != tool and not (name.strip() == "Edit" and tool == "Write"):
            continue
        inside = inside.rstrip(")")
        if not inside or inside == "*":
            return True
        pattern = re.escape(inside).replace(r"\*\*", ".*").replace(r":\*", ".*").replace(r"\*", "[^\n]*")
        if re.fullmatch(pattern, subject, re.DOTALL):
            return True
    return False
