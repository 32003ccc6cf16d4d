"""One agent with its hooks: a run directory with the real hook programs, and a client in a private tmux around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from nbs_fleet.drivers import claude_hooks
from nbs_fleet.drivers.base import PROMPT, Driver, Facts
from nbs_fleet.hooks.files import programs
from nbs_fleet.spec.team import Agent
from tests.support.waiting import eventually

FOLDERS = ("queue", "mail", "claimed", "inbox", "archive", "spool")
SESSION = "6d0b9c1e-3f6a-4f0e-9a35-0c5f3f6d7a10"
Json = dict[str, Any]


class Hooked:
    """A run directory below `run` with one agent. Tokens are put where the sidecar puts them."""

    def __init__(self, run: Path, handle: str = "ana", policy: Json | None = None) -> None:
        self.run, self.handle = run, handle
        self.agent = run / "agents" / handle
        for name in FOLDERS:
            (self.agent / name).mkdir(parents=True)
        (run / "bin").mkdir()
        for name, text in programs(sys.executable).items():
            (run / "bin" / name).write_bytes(text if isinstance(text, bytes) else text.encode())
            (run / "bin" / name).chmod(0o700)
        if policy is not None:
            self.set_policy(policy)
        self._sequence = 0

    def set_policy(self, policy: Json) -> None:
        """Write hooks.json as the driver does."""
        dialect = claude_hooks.CLAUDELESS if policy.get("dialect") == "claudeless" else claude_hooks.CLAUDE
        rest = {"dialect": "claude", "shapes": dialect.shapes(), **policy}
        first = json.dumps(rest.pop("asks", []))
        (self.agent / "hooks.json").write_text(f'{{"asks": {first},\n{json.dumps(rest)[1:]}\n')

    @property
    def environment(self) -> dict[str, str]:
        """What a hook sees."""
        return {"PATH": "/usr/bin:/bin", "NBS_FLEET_RUN": str(self.run), "NBS_HANDLE": self.handle}

    def command(self, *args: str, shell: str = "/bin/sh") -> list[str]:
        """The argv of one hook call, in a shell of choice."""
        return [shell, str(self.run / "bin" / "nbs-hook"), *args]

    def call(
        self, *args: str, payload: bytes | Json = b"{}", shell: str = "/bin/sh"
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one hook to its end."""
        text = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        return subprocess.run(
            self.command(*args, shell=shell),
            input=text,
            env=self.environment,
            capture_output=True,
            timeout=30,
            check=False,
        )

    def put(self, place: str, text: str, message_id: str | None = None, *, registered: bool = True) -> str:
        """Register a message and put its token into `mail` or `inbox`; returns the id."""
        self._sequence += 1
        message_id = message_id or f"d-{self._sequence:04d}"
        if registered:
            (self.agent / "queue" / f"{message_id}.json").write_text("{}")
        token = self.agent / place / f"{self._sequence:06d}-{message_id}.msg"
        hidden = token.with_name(f".{token.name}")
        hidden.write_bytes(text.encode("utf-8", "surrogatepass"))
        hidden.rename(token)
        return message_id

    def ring(self) -> None:
        """Take the bell away."""
        (self.agent / "mail" / "tok").unlink(missing_ok=True)

    def names(self, place: str) -> list[str]:
        """The names in one of the agent's folders, hidden ones aside."""
        return sorted(n for n in os.listdir(self.agent / place) if not n.startswith("."))

    def claimed_ids(self) -> list[str]:
        """The ids of the tokens that were claimed."""
        return [n.partition("-")[2].removesuffix(".msg") for n in self.names("claimed") if n.endswith(".msg")]

    def spooled(self) -> list[Json]:
        """The events in the spool, oldest first."""
        paths = [self.agent / "spool" / n for n in self.names("spool")]
        return [json.loads(p.read_bytes()) for p in sorted(paths, key=lambda p: p.stat().st_mtime_ns)]

    def facts(self, agent: Agent, home: Path, env: dict[str, str], version: str | None = None) -> Facts:
        """What a driver is told of this agent's start."""
        return Facts(
            agent=msgspec.structs.replace(agent, env={**agent.env, **env}),
            team="crew",
            run=str(self.run),
            agent_dir=str(self.agent),
            settings_path=str(self.agent / "settings.json"),
            session_id=SESSION,
            resume=False,
            has_prompt=False,
            home=str(home),
            env=env,
            real_dir=os.path.realpath(agent.dir),
            version=version,
            is_root=os.geteuid() == 0,
        )


class Pane:
    """A client in a tmux of its own."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket

    def tmux(self, *args: str, text: str | None = None) -> str:
        """One tmux command."""
        done = subprocess.run(
            ["tmux", "-S", str(self.socket), "-f", "/dev/null", *args],
            input=text, capture_output=True, text=True, timeout=20, check=True,
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TERM": "xterm-256color", "LANG": "C.UTF-8"},
        )  # fmt: skip
        return done.stdout

    def screen(self) -> str:
        """What the pane shows."""
        return self.tmux("capture-pane", "-p", "-t", "main:")

    def shows(self, text: str, patience: float = 30.0) -> str:
        """Wait until the pane shows a text; the whole screen."""
        return eventually(lambda: screen if text in (screen := self.screen()) else None, patience)

    def type(self, text: str, *keys: str) -> None:
        """Type text, then keys by name once it is to be seen: a client that reads both at once takes Enter for text."""
        self.tmux("load-buffer", "-b", "t", "-", text=text)
        self.tmux("paste-buffer", "-p", "-d", "-b", "t", "-t", "main:")
        self.shows(text[:40])
        for key in keys:
            self.tmux("send-keys", "-t", "main:", key)


@contextmanager
def client(
    hooked: Hooked,
    driver: Driver,
    facts: Facts,
    env: dict[str, str],
    socket: Path,
    *,
    size: tuple[int, int] = (120, 40),
) -> Iterator[Pane]:
    """The driver's client with its files, in a private tmux; it ends with the block."""
    launch = driver.launch(facts)
    for path, text in ({facts.settings_path: json.dumps(driver.settings(facts))} | launch.files).items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
    assert PROMPT not in launch.argv
    values = {**env, **hooked.environment, "PATH": env["PATH"], **launch.env, "TERM": "xterm-256color"}
    pane = Pane(socket)
    words = ["env", "-i", *(f"{k}={v}" for k, v in values.items()), *launch.argv]
    width, height = (str(n) for n in size)
    try:
        pane.tmux("new-session", "-d", "-s", "main", "-x", width, "-y", height, "-c", facts.agent.dir, "--", *words)
        pane.tmux("set-option", "-g", "remain-on-exit", "on")
        yield pane
    finally:
        subprocess.run(["tmux", "-S", str(socket), "kill-server"], capture_output=True, timeout=20, check=False)
