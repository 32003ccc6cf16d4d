"""One client in a private tmux with a home, a project and logging hooks of its own: what the interactions are played on."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbs_fleet.drivers.base import Screen
from nbs_fleet.drivers.claude import Claude
from nbs_fleet.sim.settings import EVENTS
from tests.clients.install import CLAUDE
from tests.support.claude_api import ScriptedApi
from tests.support.clients import API_KEY, onboarded
from tests.support.waiting import whole_lines

Json = dict[str, Any]
CLIENTS = ("sim", "claude")
LOGGED = tuple(e for e in EVENTS if e not in {"WorktreeCreate", "WorktreeRemove", "MessageDisplay", "FileChanged"})
"""FileChanged runs only where it has something to watch, and a Worktree hook would replace what the client does."""
QUIET = {
    "skipDangerousModePermissionPrompt": True,
    "disableAgentView": True,
    "promptSuggestionEnabled": False,
    "spinnerTipsEnabled": False,
    "prefersReducedMotion": True,
    "editorMode": "normal",
}
LOGGER = """\
#!/bin/sh
# Notes that a hook of event $1 began, what it was given, and that it ended. What it does beside that is in effects/$1.
payload=$(cat)
echo "$1" >> '{base}/begun'
printf '%s\\n' "$payload" >> '{base}/hooks.jsonl'
code=0
if [ -f '{base}/effects/'"$1" ]; then sh '{base}/effects/'"$1"; code=$?; fi
echo "$1" >> '{base}/ended'
exit $code
"""


@dataclass(frozen=True)
class Setting:
    """How a client is started for one interaction.

    `settings` goes beside the quiet ones and the logging hooks; `hooked` false leaves those hooks away. `config` is
    merged into `.claude.json`; `fresh` says that the project is not trusted yet. `scenario` is for the simulator
    alone. `timeouts` gives the logging hook of an event a limit in seconds. `files` are put into the project.
    """

    args: tuple[str, ...] = ()
    settings: Json = field(default_factory=dict)
    hooked: bool = True
    config: Json = field(default_factory=dict)
    fresh: bool = False
    env: dict[str, str] = field(default_factory=dict)
    size: tuple[int, int] = (100, 40)
    timeouts: dict[str, float] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    compact_seconds: float = 0.0
    hooks: dict[str, Any] = field(default_factory=dict)
    """Groups that are added to an event's; `{base}` in a command is the interaction's folder."""


class Stage:
    """One client and everything that can be seen of it. `folder` must have a short path: a socket lies in it."""

    def __init__(self, client: str, folder: Path, setting: Setting, api: ScriptedApi | None) -> None:
        self.client, self.base, self.setting, self.api = client, folder, setting, api
        self.home, self.project = folder / "home", folder / "project"
        self.config = self.home / ".claude"
        self.size = setting.size
        self.driver = Claude()
        for path in (self.project, self.config, folder / "effects"):
            path.mkdir(parents=True)
        for name, text in setting.files.items():
            path = self.project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        logger = folder / "log.sh"
        logger.write_text(LOGGER.format(base=folder), encoding="utf-8")
        logger.chmod(0o700)
        known = onboarded(() if setting.fresh else (str(self.project),)) | setting.config
        (self.config / ".claude.json").write_text(json.dumps(known), encoding="utf-8")
        (folder / "settings.json").write_text(json.dumps(self.settings()), encoding="utf-8")

    # --- starting

    def settings(self) -> Json:
        """The settings file: quiet, with a logging hook for every event."""
        logger = self.base / "log.sh"
        hooks: dict[str, list[Json]] = {}
        for event in LOGGED if self.setting.hooked else ():
            hook: Json = {"type": "command", "command": f"{logger} {event}"}
            if event in self.setting.timeouts:
                hook["timeout"] = self.setting.timeouts[event]
            hooks[event] = [{"hooks": [hook]}]
        added = json.loads(json.dumps(self.setting.hooks).replace("{base}", str(self.base)))
        for event, groups in added.items():
            hooks[event] = [*hooks.get(event, []), *groups]
        return {**QUIET, **self.setting.settings, "hooks": hooks}

    def environment(self) -> dict[str, str]:
        """Everything the client is given, and nothing of ours."""
        found = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "SHELL": "/bin/sh",
            "TERM": "screen-256color",
            "LANG": "C.UTF-8",
            "IS_SANDBOX": "1",
            "CLAUDE_CONFIG_DIR": str(self.config),
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "ANTHROPIC_API_KEY": API_KEY,
        }
        if self.api is not None:
            found |= {
                "ANTHROPIC_BASE_URL": self.api.url,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
                "DISABLE_AUTOUPDATER": "1",
            }
        else:
            found["NBS_SIM_LOG"] = str(self.base / "requests.jsonl")
        return found | {key: value.replace("{base}", str(self.base)) for key, value in self.setting.env.items()}

    def program(self) -> list[str]:
        """The client without its arguments."""
        if self.client == "claude":
            return [str(CLAUDE.executable)]
        scenario = self.base / "scenario.json"
        delays = {"compact_delay_ms": int(self.setting.compact_seconds * 1000)}
        extras = {"startup": ["trust", "apikey", *(["mcp"] if ".mcp.json" in self.setting.files else [])]}
        scenario.write_text(json.dumps({"timeouts": delays, "nbs_fleet": extras}), encoding="utf-8")
        return [sys.executable, "-m", "nbs_fleet.sim", "--scenario", str(scenario)]

    def start(self, *args: str) -> None:
        """Start it (again) in the pane."""
        (self.base / "status").unlink(missing_ok=True)
        given = [word.replace("{base}", str(self.base)) for word in args]
        argv = [*self.program(), "--settings", str(self.base / "settings.json"), *given]
        words = ["env", "-i", *(f"{key}={value}" for key, value in self.environment().items()), *argv]
        status = shlex.quote(str(self.base / "status"))
        # The shell outlives signals that its client passes on, to tell how that ended.
        shell = f"trap : HUP INT TERM; echo $$ > {shlex.quote(str(self.base / 'shell'))}; cd {shlex.quote(str(self.project))}; "
        shell += f"{shlex.join(words)}; echo $? > {status}.new; mv {status}.new {status}; exec cat"
        if (self.base / "s").exists():
            self.tmux("respawn-pane", "-k", "-t", "client:", "/bin/sh", "-c", shell)
            return
        width, height = map(str, self.size)
        self.tmux("new-session", "-d", "-s", "client", "-x", width, "-y", height, "/bin/sh", "-c", shell)
        self.tmux("set", "-g", "focus-events", "on")

    def close(self) -> None:
        """End the tmux server and all in it."""
        if (self.base / "s").exists():
            with contextlib.suppress(subprocess.CalledProcessError):
                self.tmux("kill-server")

    # --- the pane

    def tmux(self, *words: str, text: str | None = None) -> str:
        """One tmux command on the private server."""
        argv = ["tmux", "-f", "/dev/null", "-S", str(self.base / "s"), *words]
        plain = {"PATH": os.environ["PATH"], "TERM": "screen-256color", "LANG": "C.UTF-8", "HOME": "/nonexistent"}
        return subprocess.run(
            argv, capture_output=True, text=True, input=text, timeout=30, check=True, env=plain
        ).stdout

    def keys(self, *names: str) -> None:
        """Press keys by their tmux names."""
        self.tmux("send-keys", "-t", "client:", *names)

    def paste(self, text: str) -> None:
        """Paste a text as a terminal does."""
        self.tmux("load-buffer", "-b", "t", "-", text=text)
        self.tmux("paste-buffer", "-p", "-d", "-b", "t", "-t", "client:")

    def resize(self, width: int, height: int) -> None:
        """Another size for the pane."""
        self.size = (width, height)
        self.tmux("resize-window", "-t", "client:", "-x", str(width), "-y", str(height))

    def screen(self) -> Screen:
        """The visible screen with its title."""
        both = self.tmux(
            "capture-pane", "-p", "-t", "client:", ";", "display-message", "-p", "-t", "client:", "=#{pane_title}"
        )
        rows, _, title = both.rstrip("\n").rpartition("\n=")
        return Screen(tuple(row.rstrip(" ") for row in rows.split("\n")), *self.size, title)

    # --- its files

    def pid(self) -> int:
        """The client's process: the child of the pane's shell."""
        shell = (self.base / "shell").read_text().strip()
        children = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        return int(children[0])

    def signal(self, name: str) -> None:
        """Send it a signal."""
        os.kill(self.pid(), signal.Signals[f"SIG{name}"])

    def status(self) -> int | None:
        """Its exit code, once it has ended."""
        path = self.base / "status"
        return int(path.read_text()) if path.exists() else None

    def state(self) -> Json:
        """The newest state file, or nothing."""
        paths = sorted(self.config.glob("sessions/*.json"), key=_changed)
        if not paths:
            return {}
        with contextlib.suppress(OSError, ValueError):
            found = json.loads(paths[-1].read_text(encoding="utf-8"))
            return found if isinstance(found, dict) else {}
        return {}

    def lines(self) -> list[Json]:
        """All lines of all its sessions' transcripts, the older session first."""
        found = [list(_json_lines(path)) for path in self.config.glob("projects/*/*.jsonl")]
        found.sort(key=lambda lines: next((str(line["timestamp"]) for line in lines if "timestamp" in line), "~"))
        return [line for lines in found for line in lines]

    def payloads(self) -> list[Json]:
        """What the hooks were given, in the order in which they began."""
        return list(_json_lines(self.base / "hooks.jsonl"))

    def count(self, what: str, event: str | None = None) -> int:
        """How many hooks have `begun` or `ended`, of one event or of all."""
        path = self.base / what
        names = whole_lines(path.read_text()) if path.exists() else []
        return len(names) if event is None else names.count(event)

    def requests(self) -> list[list[Json]]:
        """The messages of each request to the model that belongs to a conversation."""
        if self.api is not None:
            return [request.body["messages"] for request in self.api.turns()]
        return [line["messages"] for line in _json_lines(self.base / "requests.jsonl")]


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _json_lines(path: Path) -> Iterator[Json]:
    if not path.exists():
        return
    for line in whole_lines(path.read_text(encoding="utf-8", errors="replace")):
        with contextlib.suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict):
                yield found


@contextmanager
def staged(client: str, folder: Path, setting: Setting) -> Iterator[Stage]:
    """A stage with its scripted model, ended with the block. Raises ValueError for a client it doesn't know."""
    if client not in CLIENTS:
        raise ValueError(client)
    with ExitStack() as stack:
        api = None
        if client == "claude":
            api = stack.enter_context(ScriptedApi(folder / "api-log"))
            api.control.compact_seconds = setting.compact_seconds
            api.control.folder = folder / "project"
        stage = Stage(client, folder, setting, api)
        stack.callback(stage.close)
        yield stage
