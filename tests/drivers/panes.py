"""A client started by its driver in a private tmux, and looked at through the driver alone."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from nbs_fleet.drivers.base import PROMPT, Dialog, Driver, Facts, Reading, Screen, StateFile, Turns
from nbs_fleet.model import AgentState
from nbs_fleet.spec.team import Dialogs
from tests.support.waiting import eventually

PATIENCE = 40.0
TERMINAL = {"TERM": "screen", "LANG": "C.UTF-8", "SHELL": "/bin/sh"}


class ClientPane:
    """One client in one pane. `environ` is the agent's whole environment; end it with `close`."""

    def __init__(self, folder: Path, driver: Driver, size: tuple[int, int] = (80, 24)) -> None:
        self.driver, self.size = driver, size
        self.socket = folder / "s"
        self.status = folder / "status"

    def tmux(self, *words: str, text: str | None = None) -> str:
        """One tmux command on the private server."""
        argv = ["tmux", "-f", "/dev/null", "-S", str(self.socket), *words]
        return subprocess.run(argv, capture_output=True, text=True, input=text, timeout=20, check=True).stdout

    def start(self, facts: Facts, environ: dict[str, str], *, prompt: str = "", settings: bool = True) -> None:
        """Start the client as the driver says, without the hooks, whose programs are not there."""
        launch = self.driver.launch(facts)
        content = {key: value for key, value in self.driver.settings(facts).items() if key != "hooks"}
        if settings:
            Path(facts.settings_path).write_text(json.dumps(content), encoding="utf-8")
        argv = [prompt if word == PROMPT else word for word in launch.argv]
        env = {**TERMINAL, **environ, **launch.env}
        words = ["env", "-i", *(f"{key}={value}" for key, value in env.items() if key not in launch.unset), *argv]
        line = f"cd {shlex.quote(facts.real_dir)} && {shlex.join(words)}; echo $? > {shlex.quote(str(self.status))}"
        self.status.unlink(missing_ok=True)
        width, height = map(str, self.size)
        if self.socket.exists():
            self.tmux("respawn-pane", "-k", "-t", "client:", "/bin/sh", "-c", f"{line}; exec cat")
        else:
            self.tmux(
                "new-session", "-d", "-s", "client", "-x", width, "-y", height, "/bin/sh", "-c", f"{line}; exec cat"
            )
            self.tmux("set", "-g", "focus-events", "on")

    def close(self) -> None:
        """End the server and all in it."""
        if self.socket.exists():
            self.tmux("kill-server")

    def keys(self, *names: str) -> None:
        """Press keys by their tmux names."""
        self.tmux("send-keys", "-t", "client:", *names)

    def submit(self, text: str, *, paste: bool = True) -> None:
        """Put one line into the box, see it there, press Enter."""
        if paste:
            self.tmux("load-buffer", "-b", "t", "-", text=text)
            self.tmux("paste-buffer", "-p", "-d", "-b", "t", "-t", "client:")
        else:
            self.keys("-l", text)
        eventually(lambda: (self.read().draft or "")[:8] == text[:8], PATIENCE)
        self.keys("Enter")

    def rows(self) -> tuple[str, ...]:
        """The visible screen."""
        return tuple(self.tmux("capture-pane", "-p", "-t", "client:").split("\n"))

    def read(self) -> Reading:
        """What the driver says of the screen now."""
        return self.driver.read_screen(Screen(self.rows(), *self.size))

    def title(self) -> Reading:
        """What the driver says of the pane's title now."""
        return self.driver.read_title(self.tmux("display-message", "-p", "-t", "client:", "#{pane_title}").strip())

    def until(self, test: Callable[[Reading], bool]) -> Reading:
        """The first reading of the screen that passes the test."""

        def look() -> Reading | None:
            reading = self.read()
            return reading if test(reading) else None

        try:
            return eventually(look, PATIENCE)
        except AssertionError as error:
            raise AssertionError("\n".join(("it never came true; the screen:", *self.rows()))) from error

    def idle(self) -> Reading:
        """Wait for the input box."""
        return self.until(lambda reading: reading.state is AgentState.IDLE)

    def answer_all(self, policy: Dialogs) -> list[tuple[str, tuple[str, ...] | None]]:
        """Answer dialogs as the policy says until the client is idle or a person is needed; what was pressed."""
        pressed: list[tuple[str, tuple[str, ...] | None]] = []
        while True:
            reading = self.until(partial(_is_news, pressed[-1][0] if pressed else ""))
            if reading != self.read():
                continue  # seen in the middle of a repaint
            if reading.dialog is None:
                return [(seen.partition("\n")[0], keys) for seen, keys in pressed]
            answer = self.driver.answer(reading.dialog, policy)
            pressed.append((_mark(reading.dialog), answer))
            if answer is None:
                return [(seen.partition("\n")[0], keys) for seen, keys in pressed]
            self.keys(*answer)

    def ended(self) -> tuple[int, tuple[str, ...]]:
        """Wait for the client's end: its exit code and what it left on the screen."""
        text = eventually(lambda: self.status.read_text(encoding="utf-8") if self.status.exists() else "", PATIENCE)
        return int(text), tuple(row for row in self.rows() if row.strip())

    def state_file(self, facts: Facts) -> StateFile | None:
        """The newest state file that the driver can read."""
        folder = Path(self.driver.places(facts).state_dir or "/nonexistent")
        files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns) if folder.is_dir() else []
        return self.driver.read_state_file(files[-1].read_text(encoding="utf-8")) if files else None

    def turns(self, facts: Facts) -> Turns:
        """What the driver says of the transcript now."""
        path = Path(self.driver.places(facts).transcript or "/nonexistent")
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return self.driver.read_transcript(text, text)


def _mark(dialog: Dialog) -> str:
    """Kind and text: two dialogs in a row may be of one kind."""
    return f"{dialog.kind}\n{dialog.text}"


def _is_news(seen: str, reading: Reading) -> bool:
    """Whether the client is idle, or shows another dialog than the one seen last."""
    return reading.state is AgentState.IDLE or (reading.dialog is not None and _mark(reading.dialog) != seen)
