"""A private surrounding for tests: own home, own state, short runtime directory, no agent CLI within reach."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

AGENT_PROGRAMS = ("claude", "claudeless", "codex", "copilot", "opencode", "qwen", "gemini", "aider")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STUB = '#!/bin/sh\necho "a test reached for a real $(basename "$0")" >&2\nexit 97\n'


def short_folder() -> Path:
    """A new private folder with a path short enough for any socket (the caller removes it)."""
    return Path(tempfile.mkdtemp(prefix="nf-", dir="/tmp"))


def guarded_path(folder: Path) -> str:
    """A PATH that begins with a stub for each agent CLI, so that a person's own is never started by a test."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in AGENT_PROGRAMS:
        stub = folder / name
        stub.write_text(STUB, encoding="utf-8")
        stub.chmod(stub.stat().st_mode | stat.S_IXUSR)
    places = [str(folder), *SYSTEM_PATH.split(":")]
    tmux = shutil.which("tmux")
    if tmux and str(Path(tmux).parent) not in places:
        places.append(str(Path(tmux).parent))
    return ":".join(places)


def surrounding(base: Path, runtime: Path) -> dict[str, str]:
    """The environment of a fresh machine's user whose home is `base/home`. Nothing of the caller's is in it."""
    home = base / "home"
    home.mkdir(parents=True, exist_ok=True)
    return {
        "HOME": str(home),
        "USER": "tester",
        "LOGNAME": "tester",
        "SHELL": "/bin/sh",
        "PATH": guarded_path(base / "no-agents"),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "NO_COLOR": "1",
        "TZ": "UTC",
        "XDG_STATE_HOME": str(base / "state"),
        "XDG_RUNTIME_DIR": str(runtime),
        "PYTHONDONTWRITEBYTECODE": os.environ.get("PYTHONDONTWRITEBYTECODE", ""),
    }
