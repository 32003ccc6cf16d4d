"""The client in real tmux panes: what a launcher sees of it there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.sim_client import QUIET
from tests.support.waiting import eventually

pytestmark = pytest.mark.tmux
SCREENS = Path(__file__).parent / "screens"


class Tmux:
    """A private server; `begin` starts a client in a window of its own and returns the pane's id."""

    def __init__(self, folder: Path, socket: Path) -> None:
        self.folder = folder
        self.socket = socket
        self.config = folder / "home/.claude"
        (folder / "home").mkdir()
        self.call("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-s", "main", "sleep 600")
        self.call("set-option", "-g", "remain-on-exit", "on")
        self.call("set-option", "-g", "focus-events", "on")

    def call(self, *args: str, data: str | None = None) -> str:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "SHELL": "/bin/sh", "LANG": "C.UTF-8"}
        argv = ["tmux", "-S", str(self.socket), *args]
        done = subprocess.run(argv, capture_output=True, text=True, input=data, env=env, timeout=30, check=True)
        return done.stdout

    def begin(self, *args: str, project: str = "project") -> str:
        where = self.folder / project
        where.mkdir(exist_ok=True)
        env = {
            "HOME": str(self.folder / "home"),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "IS_SANDBOX": "1",
            "CLAUDE_CODE_CHILD_SESSION": "",
        }
        flags = [word for key, value in env.items() for word in ("-e", f"{key}={value}")]
        argv = [sys.executable, "-m", "nbs_fleet.sim", "--settings", json.dumps(QUIET), *args]
        shown = ["new-window", "-d", "-t", "main", "-c", str(where), "-P", "-F", "#{pane_id}", *flags, "--", *argv]
        return self.call(*shown).strip()

    def show(self, pane: str, what: str) -> str:
        return self.call("display-message", "-p", "-t", pane, what).strip()

    def screen(self, pane: str) -> list[str]:
        return [line.rstrip(" ") for line in self.call("capture-pane", "-p", "-t", pane).split("\n")]

    def say(self, pane: str, text: str) -> None:
        """As the fleet does it: a bracketed paste, then Enter by itself."""
        self.call("load-buffer", "-b", "x", "-", data=text)
        self.call("paste-buffer", "-p", "-d", "-b", "x", "-t", pane)
        shown = text.split("\n", maxsplit=1)[0][:20]
        eventually(lambda: any(shown in line or "[Pasted text" in line for line in self.screen(pane)))
        self.call("send-keys", "-t", pane, "Enter")

    def until(self, pane: str, look: Callable[[str], bool]) -> list[str]:
        return eventually(lambda: lines if look("\n".join(lines := self.screen(pane))) else None)

    def titled(self, pane: str, *beginnings: str) -> str:
        """The pane's title once it begins so: it comes by another write than the screen."""
        return eventually(lambda: title if (title := self.show(pane, "#{pane_title}")).startswith(beginnings) else None)

    def states(self) -> list[str]:
        found = []
        for path in self.config.glob("sessions/[0-9]*.json"):
            try:
                found.append(json.loads(path.read_text()).get("status", ""))
            except (OSError, ValueError):
                continue
        return found


@pytest.fixture
def tmux(tmp_path: Path, short_path: Path) -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        pytest.skip("there is no tmux here")
    server = Tmux(tmp_path, short_path / "s")
    yield server
    server.call("kill-server")


def bottom(lines: list[str]) -> list[str]:
    """From the last upper rule on, without blank lines."""
    lines = [line for line in lines if line]
    rules = [i for i, line in enumerate(lines) if re.fullmatch(r"─+( [^─]+ ──)?", line)]
    return lines[rules[-2] :]


def test_the_screen_is_the_captured_one_down_to_the_empty_last_line(tmux: Tmux) -> None:
    pane = tmux.begin("--name", "w1", "--dangerously-skip-permissions")
    lines = tmux.until(pane, lambda text: "● high" in text)
    golden = (SCREENS / "quiet_settings_idle_focus_on.txt").read_text().split("\n")
    assert bottom(lines) == bottom([line.rstrip(" ") for line in golden])
    assert tmux.titled(pane, "✳") == "✳ w1"
    assert tmux.show(pane, "#{cursor_flag} #{alternate_on} #{bracket_paste_flag}").split()[:2] == ["0", "0"]


def test_title_and_screen_follow_a_turn(tmux: Tmux) -> None:
    pane = tmux.begin("--name", "w1")
    tmux.until(pane, lambda text: "● high" in text)
    tmux.say(pane, "[[wait 3 later]]")
    tmux.until(pane, lambda text: "esc to interrupt" in text and "…" in text)
    tmux.titled(pane, "⠂", "⠐")
    lines = tmux.until(pane, lambda text: "● later" in text and "? for shortcuts" in text)
    assert tmux.titled(pane, "✳") == "✳ w1"
    assert lines[-2] == ""  # the last row stays empty


def test_a_pasted_prompt_of_many_lines_is_submitted_whole(tmux: Tmux) -> None:
    pane = tmux.begin("--name", "w1")
    tmux.until(pane, lambda text: "● high" in text)
    text = "first line;\n" + "\n".join(f"line {i} 'x' $HOME \\" for i in range(400)) + "\nlast;"
    tmux.say(pane, text)
    tmux.until(pane, lambda shown: "● ok: first line;" in shown)
    transcript = eventually(lambda: next(tmux.config.glob("projects/*/*.jsonl"), None))
    found = eventually(lambda: [x for x in map(json.loads, transcript.read_text().splitlines()) if x["type"] == "user"])
    assert found[0]["message"]["content"] == text


def test_another_pane_size_draws_the_box_anew(tmux: Tmux) -> None:
    pane = tmux.begin("--name", "w1", "--dangerously-skip-permissions")
    tmux.until(pane, lambda text: "● high" in text)
    for columns in (60, 120, 40):
        tmux.call("resize-window", "-t", pane, "-x", str(columns), "-y", "24")
        rule = "─" * (columns - 6) + " w1 ──"
        lines = tmux.until(pane, lambda text, rule=rule: rule in text)  # type: ignore[misc]
        assert sum("❯\xa0" in line for line in lines) == 1


def test_the_exit_code_is_the_pane_s(tmux: Tmux) -> None:
    pane = tmux.begin("--name", "w1")
    tmux.until(pane, lambda text: "● high" in text)
    tmux.call("send-keys", "-t", pane, "/exit", "Enter")
    eventually(lambda: tmux.show(pane, "#{pane_dead}") == "1")
    assert not list(tmux.config.glob("sessions/*.json"))


@pytest.mark.long
def test_fifty_clients_are_idle_within_seconds(tmux: Tmux) -> None:
    begun = time.monotonic()
    for i in range(50):
        tmux.begin("--name", f"w{i}", "--dangerously-skip-permissions")
    eventually(lambda: tmux.states().count("idle") == 50, 60)
    assert time.monotonic() - begun < 30
