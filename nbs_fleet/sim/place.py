"""Where the client keeps its files, how it names a project's folder, and small file helpers."""

from __future__ import annotations

import json
import os
from typing import Any

_SLUG_LIMIT = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def config_dir(env: dict[str, str]) -> str:
    """$CLAUDE_CONFIG_DIR, else ~/.claude."""
    return env.get("CLAUDE_CONFIG_DIR") or os.path.join(env.get("HOME", "/"), ".claude")


def config_file(env: dict[str, str]) -> str:
    """The global config: inside $CLAUDE_CONFIG_DIR if that is set, else ~/.claude.json."""
    given = env.get("CLAUDE_CONFIG_DIR")
    return os.path.join(given or env.get("HOME", "/"), ".claude.json")


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def slug(path: str) -> str:
    """The folder name of a project: each character outside [A-Za-z0-9] becomes "-"; over 200 it is cut and hashed."""
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in path)
    if len(name) <= _SLUG_LIMIT:
        return name
    total = 0
    for unit in path.encode("utf-16-le")[::2] if path.isascii() else _units(path):
        total = (total * 31 + unit) & 0xFFFFFFFF
    signed = total - 0x100000000 if total & 0x80000000 else total
    return f"{name[:_SLUG_LIMIT]}-{_base36(abs(signed))}"


def _units(path: str) -> list[int]:
    data = path.encode("utf-16-le")
    return [data[i] | data[i + 1] << 8 for i in range(0, len(data), 2)]


def transcripts(env: dict[str, str], cwd: str) -> str:
    """The folder that holds the transcripts of sessions begun in `cwd`."""
    return os.path.join(config_dir(env), "projects", slug(os.path.realpath(cwd)))


def read_json(path: str) -> Any:
    """The content of a JSON file; None when it is missing or no JSON."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def write_atomic(path: str, text: str) -> None:
    """Replace a file in one step; its folder is made if need be."""
    folder, name = os.path.split(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    beside = os.path.join(folder, f".{name}.{os.getpid()}")
    with open(beside, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(beside, path)


def process_start(pid: int) -> str | None:
    """Field 22 of /proc/<pid>/stat (clock ticks since boot); None where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def project_root(cwd: str) -> str:
    """The git root above `cwd`, else `cwd`: the key under which trust is kept."""
    path = cwd
    while True:
        if os.path.exists(os.path.join(path, ".git")):
            return path
        parent = os.path.dirname(path)
        if parent == path:
            return cwd
        path = parent
