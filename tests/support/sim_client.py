"""The simulator on a terminal of its own (a pseudo-terminal), for tests that look at its files, hooks and exit codes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tests.support.waiting import whole_lines

T = TypeVar("T")
Json = dict[str, Any]
QUIET = {
    "skipDangerousModePermissionPrompt": True,
    "disableAgentView": True,
    "promptSuggestionEnabled": False,
    "spinnerTipsEnabled": False,
    "prefersReducedMotion": True,
    "editorMode": "normal",
}
PATIENCE = 30.0


class SimClient:
    """One run of the client in `project`, with HOME and config directory under `home`."""

    def __init__(
        self,
        home: Path,
        project: Path,
        *args: str,
        settings: Json | None = None,
        env: dict[str, str] | None = None,
        columns: int = 100,
        rows: int = 40,
        program: tuple[str, ...] = (sys.executable, "-m", "nbs_fleet.sim"),
    ) -> None:
        self.hurried = program[0] != sys.executable
        self.config = home / ".claude"
        self.config.mkdir(parents=True, exist_ok=True)
        project.mkdir(parents=True, exist_ok=True)
        self.project = project
        self.log = home / "requests.jsonl"
        argv = [*program, "--settings", json.dumps({**QUIET, **(settings or {})}), *args]
        surrounding = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "SHELL": "/bin/sh",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "IS_SANDBOX": "1",
            "CLAUDE_CONFIG_DIR": str(self.config),
            "NBS_SIM_LOG": str(self.log),
            "CLAUDE_CODE_MAX_RETRIES": "0",
            **(env or {}),
        }
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(project)
                os.execve(argv[0], argv, surrounding)
            finally:
                os._exit(127)
        self.resize(columns, rows)
        self.output = b""
        self.code: int | None = None

    # --- the terminal

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def drain(self) -> None:
        """Take what it wrote; a terminal that nobody reads would stop it."""
        while self.fd >= 0 and select.select([self.fd], [], [], 0)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                os.close(self.fd)
                self.fd = -1
                return
            self.output += data

    def send(self, data: str | bytes) -> None:
        assert self.fd >= 0, f"the client is gone; it said:\n{self.text()[-3000:]}"
        os.write(self.fd, data.encode() if isinstance(data, str) else data)

    def paste(self, text: str) -> None:
        self.send(f"\x1b[200~{text}\x1b[201~")

    def say(self, text: str) -> None:
        """Paste a prompt and press Enter once it is in the box."""
        seen = len(self.output)
        self.paste(text)
        self.until(lambda: len(self.output) > seen)
        if not self.hurried:
            self.send("\r")
            return
        mark = self.mark()
        for _ in range(3):
            self.quiet()
            self.send("\r")
            with contextlib.suppress(AssertionError):
                self.until(lambda: self.mark() != mark, patience=2.0)
                return

    def mark(self) -> tuple[object, int]:
        """Changes when a prompt was taken."""
        return self.state().get("statusUpdatedAt"), len(self.lines())

    def quiet(self, seconds: float = 0.15) -> None:
        """Until it wrote nothing for so long: the real client takes an Enter that comes too soon for part of the paste."""
        end = time.monotonic() + PATIENCE
        while select.select([self.fd], [], [], seconds)[0] and time.monotonic() < end:
            self.drain()

    def text(self) -> str:
        """All that was ever written, without escape sequences."""
        self.drain()
        plain = re.sub(r"\x1b\][^\x07]*\x07|\x1b\[[0-9;?]*[A-Za-z]", "", self.output.decode("utf-8", "replace"))
        return plain.replace("\r", "")

    def titles(self) -> list[str]:
        self.drain()
        return re.findall(r"\x1b\]0;([^\x07]*)\x07", self.output.decode("utf-8", "replace"))

    # --- waiting

    def until(self, look: Callable[[], T | None], patience: float = PATIENCE) -> T:
        end = time.monotonic() + patience
        while True:
            self.drain()
            found = look()
            if found:
                return found
            assert time.monotonic() < end, f"it never came true; the screen said:\n{self.text()[-3000:]}"
            if self.fd >= 0:
                select.select([self.fd], [], [], 0.01)

    def until_status(self, status: str) -> Json:
        return self.until(lambda: self.state() if self.state().get("status") == status else None)

    def until_text(self, text: str) -> None:
        if self.hurried:  # the real client moves the cursor instead of writing blanks
            wanted = "".join(text.split())
            self.until(lambda: wanted in "".join(self.text().split()))
        else:
            self.until(lambda: text in self.text())

    def turn(self, text: str) -> None:
        """Say something and wait for the end of the turn."""
        before = self.ended()
        self.say(text)
        self.until(lambda: self.ended() > before and self.state().get("status") == "idle")

    # --- its files

    def state(self) -> Json:
        try:
            found = json.loads((self.config / "sessions" / f"{self.pid}.json").read_text())
        except (OSError, ValueError):
            return {}
        assert isinstance(found, dict)
        return found

    def transcript(self) -> Path | None:
        session = self.state().get("sessionId")
        return next(iter(self.config.glob(f"projects/*/{session}.jsonl")), None) if session else None

    def lines(self, path: Path | None = None) -> list[Json]:
        path = path or self.transcript()
        if path is None:
            return []
        found = []
        for line in path.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return found

    def ended(self) -> int:
        return len([line for line in self.lines() if line.get("subtype") == "turn_duration"])

    def requests(self) -> list[list[Json]]:
        """The messages of each request to the model."""
        if not self.log.exists():
            return []
        return [json.loads(line)["messages"] for line in whole_lines(self.log.read_text())]

    def heard(self) -> str:
        """Everything the model saw in its last request, as one text."""
        return json.dumps(self.requests()[-1], ensure_ascii=False)

    # --- ends

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, patience: float = PATIENCE) -> int:
        """Its exit code (128 and more: by a signal)."""
        if self.code is not None:
            return self.code

        def gone() -> bool:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                self.code = 128 - code if code < 0 else code
            return pid != 0

        self.until(gone, patience)
        self.drain()
        assert self.code is not None
        return self.code

    def close(self) -> None:
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.code = 137
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
