"""Runs the real command line on a temporary root: a harness that waits on conditions and explains its failures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from tests.support import processes
from tests.support.clients import Client
from tests.support.waiting import whole_lines

Json = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """How one command ended."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str

    def json(self) -> Json:
        """What it printed, as an object."""
        answer = json.loads(self.out)
        assert isinstance(answer, dict)
        return answer

    def __str__(self) -> str:
        return f"$ nbs-fleet {' '.join(self.argv)}\n{self.out}{self.err}[exit {self.code}]"


class Fleet:
    """One team on a root of its own, driven by the command line as a person would.

    `env` is the whole environment of each command; tests may change it. `team` is the name in the file.
    """

    def __init__(self, base: Path, client: Client, env: dict[str, str], *, root: Path, team: str = "crew") -> None:
        self.base = base
        self.client = client
        self.root = root
        self.team = team
        self.file = root / "team.yaml"
        path = ":".join((*client.path, env["PATH"]))
        self.env = {**env, **client.environment, "PATH": path}
        self.said: list[Result] = []
        root.mkdir(parents=True, exist_ok=True)
        (root / ".nbs").mkdir(exist_ok=True)

    # -- the team file

    def write_team(self, agents: Iterable[Json], **keys: Any) -> Path:
        """Write a team file with these agents; `keys` are set at the top."""
        team = {"version": 1, "team": self.team, "driver": self.client.name, **keys, "agents": list(agents)}
        return self.write_text(yaml.safe_dump(team, sort_keys=False, allow_unicode=True, width=10_000))

    def write_text(self, text: str) -> Path:
        """Write the team file as it stands here."""
        self.file.write_text(text, encoding="utf-8")
        return self.file

    # -- commands

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Begin a command and leave it running."""
        return subprocess.Popen(
            [sys.executable, "-m", "nbs_fleet", *args],
            cwd=self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

    def finish(self, command: subprocess.Popen[str], *args: str, within: float = 120) -> Result:
        """Wait for a begun command."""
        try:
            out, err = command.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            command.kill()
            out, err = command.communicate()
            err += f"\n[killed after {within:.0f} s]"
        result = Result(args, command.returncode, out, err)
        self.said.append(result)
        return result

    def run(self, *args: str, within: float = 120) -> Result:
        """Run a command to its end."""
        return self.finish(self.start(*args), *args, within=within)

    def up(self, *args: str, within: float = 150) -> Result:
        """`up` of the team file."""
        return self.run("up", str(self.file), *args, within=within)

    def down(self, *args: str, within: float = 90) -> Result:
        """`down` of the team."""
        return self.run("down", "--team", self.team, *args, within=within)

    def ps(self) -> Json:
        """What `ps --json` says now."""
        result = self.run("ps", "--team", self.team, "--json")
        assert result.code == 0, str(result)
        return result.json()

    # -- looking

    def wait(self, right: Callable[[Json], bool], *, within: float = 30) -> Json:
        """Ask `ps` until `right` says so, at most `within` seconds; returns what it said last."""
        seen: list[Json] = []

        def ask() -> bool:
            result = self.run("ps", "--team", self.team, "--json")
            if result.code == 0:
                seen.append(result.json())
                return right(seen[-1])
            return False

        self._until(ask, within, lambda: json.dumps(seen[-1:], indent=1), pause=0.3)
        return seen[-1]

    def until(self, right: Callable[[], bool], *, within: float = 30, what: str = "") -> None:
        """Wait until a condition holds, at most `within` seconds."""
        self._until(right, within, lambda: what)

    def _until(self, right: Callable[[], bool], within: float, last: Callable[[], str], pause: float = 0.1) -> None:
        tries = Retrying(
            stop=stop_after_delay(within), wait=wait_fixed(pause), retry=retry_if_result(lambda ok: not ok)
        )
        try:
            tries(right)
        except RetryError:
            raise AssertionError(f"not so after {within:.0f} s: {last()}") from None

    def states(self, ps: Json | None = None) -> dict[str, str]:
        """State by handle."""
        return {agent["handle"]: agent["state"] for agent in (ps or self.ps())["agents"]}

    def agent(self, handle: str, ps: Json | None = None) -> Json:
        """One agent's row of `ps --json`."""
        rows = [row for row in (ps or self.ps())["agents"] if row["handle"] == handle]
        assert len(rows) == 1, f"{handle}: {rows}"
        row = rows[0]
        assert isinstance(row, dict)
        return row

    def pids(self, ps: Json | None = None) -> dict[str, int]:
        """Client process by handle."""
        return {agent["handle"]: agent["pid"] for agent in (ps or self.ps())["agents"]}

    def all_idle(self, *, within: float = 60) -> Json:
        """Wait until every agent is idle and ready: a prompt that was passed has been taken."""

        def right(ps: Json) -> bool:
            return bool(ps["agents"]) and all(row["state"] == "idle" and row["ready"] for row in ps["agents"])

        return self.wait(right, within=within)

    @property
    def run_dir(self) -> Path:
        """The team's run directory (there must be exactly one)."""
        found = sorted((Path(self.env["XDG_STATE_HOME"]) / "nbs-fleet").glob(f"*/{self.team}"))
        assert len(found) == 1, f"run directories: {found}"
        return found[0]

    def story(self, handle: str) -> list[Json]:
        """The records of one agent's story, oldest first."""
        text = (self.run_dir / "agents" / handle / "story.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in whole_lines(text)]

    def told(self, handle: str, what: str) -> list[Json]:
        """The story's records of one kind."""
        return [record for record in self.story(handle) if record["what"] == what]

    def exits(self, handle: str) -> list[Json]:
        """How the agent's client ended, each time: `code`, `signal` and what else the story has."""
        return [{"code": None, "signal": None, **r} for r in self.told(handle, "ended")]

    def exit_codes(self, handle: str) -> list[int]:
        """The exit status of each end, as a shell counts it: 128 + N for signal N."""
        return [128 + int(e["signal"]) if e["signal"] else int(e["code"]) for e in self.exits(handle)]

    def ready_at(self, handle: str) -> float:
        """Wall seconds at which the story first says that it was ready."""
        return float(next(record["at"] for record in self.story(handle) if record.get("ready")))

    def tmux(self, *args: str) -> str:
        """Ask the team's own tmux server."""
        done = subprocess.run(
            ["tmux", "-S", str(self.tmux_socket), *args],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
        return done.stdout

    @property
    def tmux_socket(self) -> Path:
        """The socket of the team's tmux server, as its process says."""
        for process in self.everything():
            line: list[str] = []
            with suppress(psutil.NoSuchProcess):  # it may end while it is looked at
                line = process.cmdline()
            if line and line[0].startswith("tmux") and "-S" in line:
                return Path(line[line.index("-S") + 1])
        raise AssertionError("no tmux server of this team runs")

    # -- breaking

    def kill(self, handle: str, number: int = signal.SIGKILL) -> int:
        """Send a signal to an agent's client; returns the process id it had."""
        pid = int(self.agent(handle)["pid"])
        os.kill(pid, number)
        return pid

    def kill_supervisor(self) -> int:
        """SIGKILL the supervisor; returns the process id it had."""
        pid = int(self.ps()["supervisor"]["pid"])
        os.kill(pid, signal.SIGKILL)
        return pid

    @contextmanager
    def without_supervisor(self) -> Iterator[None]:
        """It is killed, and stays dead until the block ends; `up` then starts another one.

        The loop that would start it again is killed with it: tmux (3.3a) sets a stopped process of a pane going again.
        """
        running = psutil.Process(int(self.ps()["supervisor"]["pid"]))
        loop = running.parent()
        assert loop is not None
        running.suspend()
        loop.kill()
        running.kill()
        self.wait(lambda ps: ps["supervisor"]["state"] != "running")
        yield
        up = self.up()
        assert up.code == 0, str(up)

    def kill_tmux(self) -> int:
        """SIGKILL the team's tmux server; returns the process id it had."""
        pid = int(self.tmux("display-message", "-p", "#{pid}").strip())
        os.kill(pid, signal.SIGKILL)
        psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=10)
        return pid

    # -- cleaning up

    def everything(self) -> list[psutil.Process]:
        """Every process that has this test's home in its environment."""
        return processes.belonging(self.env["HOME"])

    def leftovers(self) -> list[str]:
        """What is still there of a team that is down: processes and sockets, one line each."""
        left = [processes.describe(process) for process in self.everything()]
        places = (self.base, Path(self.env["XDG_RUNTIME_DIR"]))
        left += [f"socket {path}" for place in places for path in place.rglob("*") if path.is_socket()]
        return left

    def end(self) -> None:
        """Take down whatever is left, by force where it must be."""
        if self.everything():
            self.down("--timeout", "5s")
        processes.end(self.everything())

    def artefacts(self) -> str:
        """What explains a failed test: the last commands, stories, the supervisor's log, the last screens."""
        parts = [str(result) for result in self.said[-6:]]
        state = Path(self.env["XDG_STATE_HOME"])
        for pattern, lines in (("story.jsonl", 40), ("*.log", 40), ("launch.sh", 30)):
            parts += [f"-- {p.relative_to(state)}\n{tail(p, lines)}" for p in sorted(state.rglob(pattern))[:8]]
        for folder in sorted(state.rglob("captures"))[:4]:
            parts += [f"-- {path.relative_to(state)}\n{tail(path, 30)}" for path in sorted(folder.iterdir())[-1:]]
        for handle in [p.name for p in sorted(state.glob("nbs-fleet/*/*/agents/*"))][:4]:
            parts.append(str(self.run("peek", handle, "--team", self.team, within=20)))
        return "\n".join(parts)


def tail(path: Path, lines: int) -> str:
    """The last lines of a file."""
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
